//! `f64`: log, log2, log10, log1p and the functions built from logarithms: asinh, acosh, atanh,
//! logaddexp.
//!
//! x = m 2^e with m = 1 + f in [0.75, 1.5), s = f / (2 + f), log m = 2 atanh s. Two accuracies:
//! `log_near` ends in one float (below one ulp), `log_mid` in a pair good to 2^-56 for the
//! logarithms of other bases. The one of pow, good to 2^-63, is in `power`.

use super::coef::{ATANH, LN2, LOG2E, LOG10_2, LOG10E, THIRD};
use super::dd::{Pair, constant, pair, quick_sum, two_prod, two_sum};
use super::exp64::exp;
use super::poly;
use crate::vector::Vector;

/// log(1 + f) + e ln 2 for a pair f in [-0.25, 0.5].
#[inline(always)]
fn log_near<V: Vector<Elem = f64>>(f: Pair<V>, e: V) -> V {
    let s = f.hi / (f.hi + V::lit(2.0));
    let z = s * s;
    let half = f.hi * f.hi * V::lit(0.5);
    let a = poly(z, &ATANH).mul_add(z, V::lit(THIRD.0));
    let r = (z + z) * a;
    // f - half + s (half + r), the large terms last; f.lo / (1 + f) to first order.
    let low = e.mul_add(V::lit(LN2.1), f.lo.neg_mul_add(f.hi, f.lo));
    let low = s.mul_add(half + r, low);
    let head = e * V::lit(LN2.0);
    let sum = quick_sum(head, f.hi);
    sum.hi + (sum.lo - (half - low))
}

/// log(1 + f) as a pair, relative error about 2^-56, for f in [-0.25, 0.5]: the two large terms
/// exactly, the rest in one float.
#[inline(always)]
fn log_mid<V: Vector<Elem = f64>>(f: V) -> Pair<V> {
    let s = f / (f + V::lit(2.0));
    let z = s * s;
    let half = two_prod(f, f * V::lit(0.5));
    let a = poly(z, &ATANH).mul_add(z, V::lit(THIRD.0));
    let sum = quick_sum(f, -half.hi);
    let rest = s.mul_add((z + z).mul_add(a, half.hi), -half.lo);
    quick_sum(sum.hi, sum.lo + rest)
}

/// `y` where 0 < x < inf, and what a logarithm is elsewhere.
#[inline(always)]
pub(crate) fn log_edges<V: Vector>(x: V, y: V) -> V {
    let inf = V::lit(f64::INFINITY);
    let y = V::select(x.lt(inf), y, x);
    let edge = V::select(x.eq(V::lit(0.0)), -inf, V::lit(f64::NAN));
    V::select(x.gt(V::lit(0.0)), y, edge)
}

/// Natural logarithm.
#[inline(always)]
pub fn log<V: Vector<Elem = f64>>(x: V) -> V {
    let (m, e) = x.frexp();
    let f = m - V::lit(1.0);
    log_edges(x, log_near(pair(f, V::lit(0.0)), e))
}

/// Logarithm to base 2; exact for powers of two.
#[inline(always)]
pub fn log2<V: Vector<Elem = f64>>(x: V) -> V {
    let (m, e) = x.frexp();
    let p = log_mid(m - V::lit(1.0)).times(constant(LOG2E));
    let sum = quick_sum(e, p.hi);
    log_edges(x, sum.hi + (sum.lo + p.lo))
}

/// Logarithm to base 10; exact for powers of ten.
#[inline(always)]
pub fn log10<V: Vector<Elem = f64>>(x: V) -> V {
    let (m, e) = x.frexp();
    let p = log_mid(m - V::lit(1.0)).times(constant(LOG10E));
    let sum = two_sum(e * V::lit(LOG10_2.0), p.hi);
    let low = e.mul_add(V::lit(LOG10_2.1), p.lo);
    log_edges(x, sum.hi + (sum.lo + low))
}

/// log(w) + extra ln 2 for a pair w from 2^-60 up.
#[inline(always)]
fn log_of<V: Vector<Elem = f64>>(w: Pair<V>, extra: V) -> V {
    let (m, e) = w.hi.frexp();
    // The low part matters only while w is not huge; the limit keeps the power in range.
    let lo = w.lo * V::pow2(-V::lit(900.0).min(e));
    log_near(two_sum(m - V::lit(1.0), lo), e + extra)
}

/// log(1 + x).
#[inline(always)]
pub fn log1p<V: Vector<Elem = f64>>(x: V) -> V {
    let w = two_sum(V::lit(1.0), x);
    let y = log_edges(w.hi, log_of(w, V::lit(0.0)));
    V::select(x.abs().lt(V::lit(1e-18)), x, y)
}

/// Above this, sqrt(x^2 +- 1) is x, and x^2 is still far from overflow.
const LARGE: f64 = 1152921504606846976.0;

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    let large = a.gt(V::lit(LARGE));
    let square = two_prod(a, a);
    let sum = two_sum(square.hi, V::lit(1.0));
    let root = pair(sum.hi, sum.lo + square.lo).sqrt();
    let w = two_sum(root.hi, a);
    let w = quick_sum(w.hi, w.lo + root.lo);
    let zero = V::lit(0.0);
    let w = pair(V::select(large, a, w.hi), V::select(large, zero, w.lo));
    let y = log_of(w, V::select(large, V::lit(1.0), zero));
    let y = V::select(a.lt(V::lit(f64::INFINITY)), y, a);
    // Below 2^-26 two terms of the series are exact enough, and the square may underflow above.
    let tiny = (a * a * V::lit(-1.0 / 6.0)).mul_add(a, a);
    V::select(a.lt(V::lit(1.4901161193847656e-8)), tiny, y).or(x.sign())
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh<V: Vector<Elem = f64>>(x: V) -> V {
    let large = x.gt(V::lit(LARGE));
    let square = two_prod(x, x);
    let sum = two_sum(square.hi, V::lit(-1.0));
    let root = quick_sum(sum.hi, sum.lo + square.lo).sqrt();
    let w = quick_sum(x, root.hi);
    let w = quick_sum(w.hi, w.lo + root.lo);
    let zero = V::lit(0.0);
    let w = pair(V::select(large, x, w.hi), V::select(large, zero, w.lo));
    let y = log_of(w, V::select(large, V::lit(1.0), zero));
    let y = V::select(x.lt(V::lit(f64::INFINITY)), y, x);
    V::select(x.lt(V::lit(1.0)), V::lit(f64::NAN), y)
}

/// Inverse hyperbolic tangent; infinite at 1, NaN beyond.
#[inline(always)]
pub fn atanh<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    let one = V::lit(1.0);
    // (1+a)/(1-a) = 2^k m, and s = (m - 1)/(m + 1) = ((1+a) 2^-k - (1-a)) / ((1+a) 2^-k + (1-a)):
    // for k = 0 that is a itself.
    let (u, v) = (quick_sum(one, a), quick_sum(one, -a));
    let (_, k) = (u.hi * v.hi.max(V::lit(1e-17)).rcp_est()).frexp();
    let p = V::pow2(-k);
    let u = pair(u.hi * p, u.lo * p);
    let num = two_sum(u.hi, -v.hi);
    let num = two_sum(num.hi, num.lo + (u.lo - v.lo));
    let den = two_sum(u.hi, v.hi);
    let den = quick_sum(den.hi, den.lo + (u.lo + v.lo));
    let s = num.over(den);
    let z = s.hi * s.hi;
    let cubic = poly(z, &ATANH).mul_add(z, V::lit(THIRD.0)) * z * s.hi;
    let half = k * V::lit(0.5);
    let sum = two_sum(half * V::lit(LN2.0), s.hi);
    let y = sum.hi + (sum.lo + (cubic + half.mul_add(V::lit(LN2.1), s.lo)));
    let y = V::select(a.eq(one), V::lit(f64::INFINITY), y);
    let y = V::select(a.le(one), y, V::lit(f64::NAN));
    V::select(a.lt(V::lit(1e-10)), x, y.or(x.sign()))
}

/// log(e^a + e^b). The error is relative to the larger of |a|, |b| and the result.
#[inline(always)]
pub fn logaddexp<V: Vector<Elem = f64>>(a: V, b: V) -> V {
    let same = a.eq(b);
    let top = a.max(b);
    let d = V::select(same, V::lit(0.0), -(a - b).abs());
    let y = top + log1p(exp(d));
    V::select(a.unordered(b), a + b, y)
}
