//! `f64`: exp, exp2, expm1 and the functions built from exponentials: sinh, cosh, tanh, sigmoid.
//!
//! x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is split so that `n * head` is exact. The hyperbolic
//! functions need no division of exponentials: with e^r = C + S (even and odd part of the same
//! polynomial), sinh x = (2^n - 2^-n)/2 C + (2^n + 2^-n)/2 S.

use super::coef::{EXP, EXP2, LN2, LOG2E};
use super::dd::{Pair, pair, quick_sum, two_prod, two_sum};
use super::{MAGIC64, clamp, poly, quotient};
use crate::vector::Vector;

/// `(n, r, tail)` with x = n ln 2 + r + tail, for |x| up to about 1100.
#[inline(always)]
fn reduce<V: Vector<Elem = f64>>(x: V) -> (V, V, V) {
    let n = x.mul_add(V::lit(LOG2E.0), V::lit(MAGIC64)) - V::lit(MAGIC64);
    let head = n.neg_mul_add(V::lit(LN2.0), x);
    let r = n.neg_mul_add(V::lit(LN2.1), head);
    (n, r, n.neg_mul_add(V::lit(LN2.1), head - r))
}

/// e^x.
#[inline(always)]
pub fn exp<V: Vector<Elem = f64>>(x: V) -> V {
    let x = if V::SCALES_BY_ANY { x } else { clamp(x, -746.0, 710.0) };
    let n = x.mul_add(V::lit(LOG2E.0), V::lit(MAGIC64)) - V::lit(MAGIC64);
    let r = n.neg_mul_add(V::lit(LN2.1), n.neg_mul_add(V::lit(LN2.0), x));
    // Beyond the limits of results `n` says it all, if only what it scales is an ordinary number.
    let r = if V::SCALES_BY_ANY { r.within(0.5) } else { r };
    let p = poly(r, &EXP).mul_add(r * r, r) + V::lit(1.0);
    p.scalef(n)
}

/// e^(hi + lo), the low part taken to first order.
#[inline(always)]
pub(crate) fn exp_pair_sum<V: Vector<Elem = f64>>(x: Pair<V>) -> V {
    let hi = clamp(x.hi, -746.0, 710.0);
    let (n, r, tail) = reduce(hi);
    let t = tail + x.lo;
    let p = poly(r, &EXP) * (r * r);
    // The low part may be hundreds of ulp of 1, so it meets all of e^r = 1 + (r + p).
    let s = quick_sum(V::lit(1.0), r);
    let y = s.hi + (s.lo + (p + t.mul_add(r + p, t)));
    y.scalef(n)
}

/// 2^x.
#[inline(always)]
pub fn exp2<V: Vector<Elem = f64>>(x: V) -> V {
    let x = clamp(x, -1080.0, 1030.0);
    let n = (x + V::lit(MAGIC64)) - V::lit(MAGIC64);
    let r = x - n;
    poly(r, &EXP2).mul_add(r, V::lit(1.0)).scalef(n)
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<V: Vector<Elem = f64>>(x: V) -> V {
    let c = clamp(x, -60.0, 710.0);
    let (n, r, tail) = reduce(c);
    let t = poly(r, &EXP).mul_add(r * r, tail);
    // 2^n (1 + r + t) - 1, halved so that 2^1024 is not needed.
    let s = V::pow2(n - V::lit(1.0));
    let sum = two_sum(s - V::lit(0.5), s * r);
    let y = sum.hi + s.mul_add(t, sum.lo);
    V::select(x.abs().lt(V::lit(1e-18)), x, y + y)
}

/// a (1 + c) + b (r + s) as a pair.
#[inline(always)]
fn combine<V: Vector<Elem = f64>>(a: Pair<V>, b: Pair<V>, r: V, c: V, s: V) -> Pair<V> {
    let p = two_prod(b.hi, r);
    let h = two_sum(a.hi, p.hi);
    let low = b.lo.mul_add(r, a.lo) + (h.lo + p.lo);
    pair(h.hi, low + a.hi.mul_add(c, b.hi * s))
}

/// sinh and cosh of `a >= 0`, both divided by two.
#[inline(always)]
fn half_sinh_cosh<V: Vector<Elem = f64>>(a: V) -> (Pair<V>, Pair<V>) {
    let (n, r, tail) = reduce(a);
    let z = r * r;
    let even: [f64; 5] = [EXP[0], EXP[2], EXP[4], EXP[6], EXP[8]];
    let odd: [f64; 5] = [EXP[1], EXP[3], EXP[5], EXP[7], EXP[9]];
    let c = poly(z, &even).mul_add(z, r * tail);
    let s = poly(z, &odd).mul_add(z * r, tail);
    let up = V::pow2(n - V::lit(2.0));
    // 2^-n beyond 2^-60 is lost against 2^n; limiting it keeps the exponent in range.
    let down = V::pow2(-V::lit(60.0).min(n) - V::lit(2.0));
    // Pairs: from n = 27 on, 2^n - 2^-n has more bits than one float.
    let (minus, plus) = (quick_sum(up, -down), quick_sum(up, down));
    (combine(minus, plus, r, c, s), combine(plus, minus, r, c, s))
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    // 710.6 is beyond overflow and still has n = 1025.
    let y = half_sinh_cosh(V::lit(710.6).min(a)).0.value();
    let y = (y + y).or(x.sign());
    V::select(a.lt(V::lit(1e-10)), x, y)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<V: Vector<Elem = f64>>(x: V) -> V {
    let y = half_sinh_cosh(V::lit(710.6).min(x.abs())).1.value();
    y + y
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<V: Vector<Elem = f64>>(x: V) -> V {
    // tanh = m / (m + 2) with m = e^2a - 1; beyond 22 it is 1.
    let a = x.abs();
    let (n, r, tail) = reduce(V::lit(44.0).min(a + a));
    let t = poly(r, &EXP).mul_add(r * r, tail);
    let s = V::pow2(n);
    // m = 2^n (1 + r + t) - 1, its two large terms exactly: |2^n - 1| >= |2^n r|, or n = 0.
    let sum = quick_sum(s - V::lit(1.0), s * r);
    let m = sum.hi + s.mul_add(t, sum.lo);
    let y = quotient(pair(m, V::lit(0.0)), quick_sum(V::lit(2.0), m));
    V::select(a.lt(V::lit(1e-10)), x, y.or(x.sign()))
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid<V: Vector<Elem = f64>>(x: V) -> V {
    // The exponential of -|x| cannot overflow, and for x < 0 it is the numerator.
    let e = exp(-x.abs());
    let d = quick_sum(V::lit(1.0), e);
    let num = V::select(x.lt(V::lit(0.0)), e, V::lit(1.0));
    quotient(pair(num, V::lit(0.0)), d)
}
