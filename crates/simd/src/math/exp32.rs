//! `f32`: exp, exp2, expm1, tanh and sigmoid in `f32` itself; sinh and cosh with each half in `f64`.
//!
//! In `f32` the sums whose rounding would be seen are kept as pairs. In `f64` a polynomial of degree 7
//! leaves 2^-31, so the one rounding that counts is the last.

use super::coef::{LN2, LN2_F32, LOG2E, S_EXP, S_EXP2, S_TANH, W_EXP};
use super::dd::{pair, quick_sum};
use super::power::exp_wide_limited;
use super::{MAGIC32, MAGIC64, clamp, poly, power32, quotient};
use crate::vector::{Single, Vector};

/// e^x.
#[inline(always)]
pub fn exp<V: Vector<Elem = f32>>(x: V) -> V {
    let x = if V::SCALES_BY_ANY { x } else { clamp(x, -105.0, 89.0) };
    let n = x.mul_add(V::lit(LOG2E.0), V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = n.neg_mul_add(V::lit(LN2_F32.1), n.neg_mul_add(V::lit(LN2_F32.0), x));
    // Beyond the limits of results `n` says it all, if only what it scales is an ordinary number.
    let r = if V::SCALES_BY_ANY { r.within(0.5) } else { r };
    let one = V::lit(1.0);
    poly(r, &S_EXP).mul_add(r, one).mul_add(r, one).scalef(n)
}

/// 2^x.
#[inline(always)]
pub fn exp2<V: Vector<Elem = f32>>(x: V) -> V {
    let x = clamp(x, -152.0, 130.0);
    let n = (x + V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = x - n;
    poly(r, &S_EXP2).mul_add(r, V::lit(1.0)).scalef(n)
}

/// e^x - 1 halved, for x from -30 to 89.
#[inline(always)]
fn half_expm1<V: Vector<Elem = f32>>(x: V) -> V {
    let n = x.mul_add(V::lit(LOG2E.0), V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = n.neg_mul_add(V::lit(LN2_F32.1), n.neg_mul_add(V::lit(LN2_F32.0), x));
    let t = poly(r, &S_EXP) * (r * r);
    // 2^(n-1) (1 + r + t) - 1/2. The two large terms: |2^(n-1) - 1/2| >= |2^(n-1) r|, or n = 0.
    let s = V::pow2(n - V::lit(1.0));
    let sum = quick_sum(s - V::lit(0.5), s * r);
    sum.hi + s.mul_add(t, sum.lo)
}

/// Below this (2^-26) a square is beyond the last bit of 1, and halves may be subnormal.
const TINY: f64 = 1.4901161193847656e-8;

/// e^x - 1.
#[inline(always)]
pub fn expm1<V: Vector<Elem = f32>>(x: V) -> V {
    let y = half_expm1(clamp(x, -30.0, 89.0));
    V::select(x.abs().lt(V::lit(TINY)), x, y + y)
}

/// Where the exponential takes over from the polynomial: log(3) / 2, so that what it takes from 1 is
/// at most a half.
const TANH_TURN: f64 = 0.5493061443340548;

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<V: Vector<Elem = f32>>(x: V) -> V {
    let (a, one) = (x.abs(), V::lit(1.0));
    let z = a * a;
    let small = a * poly(z, &S_TANH).mul_add(z, one);
    // 1 - 2 / (e^2a + 1), with e^2a = 2^(n + r); beyond 10 that is 1. The divider works beside the
    // other instructions, which are more than it takes.
    let (b, scale) = (V::lit(10.0).min(a), V::lit(2.0 * LOG2E.0));
    let (n, power) = power32(b, scale);
    let r = b.fms(scale, n);
    let e = poly(r, &S_EXP2).mul_add(r, one);
    let large = one - V::lit(2.0) / e.mul_add(power, one);
    V::select(a.lt(V::lit(TANH_TURN)), small, large).or(x.sign())
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid<V: Vector<Elem = f32>>(x: V) -> V {
    // The exponential of -|x| cannot overflow, and for x < 0 it is the numerator.
    let e = exp(-x.abs());
    let over = quick_sum(V::lit(1.0), e);
    let numerator = V::select(x.lt(V::lit(0.0)), e, V::lit(1.0));
    quotient(pair(numerator, V::lit(0.0)), over)
}

/// e^t - 1, relative error 2^-31, |t| up to 200.
#[inline(always)]
fn expm1_wide<W: Vector<Elem = f64>>(t: W) -> W {
    let n = t.mul_add(W::lit(LOG2E.0), W::lit(MAGIC64)) - W::lit(MAGIC64);
    let r = n.neg_mul_add(W::lit(LN2.0 + LN2.1), t);
    let s = W::pow2(n);
    // For n = 0 the last term vanishes and the relative error stays that of the polynomial.
    s.mul_add(poly(r, &W_EXP) * r, s - W::lit(1.0))
}

#[inline(always)]
fn sinh_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let m = expm1_wide(a);
    (m + m * (m + W::lit(1.0)).rcp_fast()) * W::lit(0.5)
}

#[inline(always)]
fn cosh_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let e = exp_wide_limited(a);
    (e + e.rcp_fast()) * W::lit(0.5)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<V: Single>(x: V) -> V {
    // 90 is beyond overflow.
    V::narrow(sinh_wide(V::lit(90.0).min(x.abs()).widen())).or(x.sign())
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<V: Single>(x: V) -> V {
    V::narrow(cosh_wide(V::lit(90.0).min(x.abs()).widen()))
}
