//! `f32`: exp and exp2 in `f32` itself; expm1, sinh, cosh, tanh, sigmoid with each half in `f64`.
//!
//! In `f64` a polynomial of degree 7 leaves 2^-31, so the one rounding that counts is the last.

use super::coef::{LN2, LN2_F32, LOG2E, S_EXP, S_EXP2, W_EXP};
use super::power::exp_wide_limited;
use super::{MAGIC32, MAGIC64, clamp, poly};
use crate::vector::{Single, Vector};

/// e^x.
#[inline(always)]
pub fn exp<V: Vector<Elem = f32>>(x: V) -> V {
    let x = clamp(x, -105.0, 89.0);
    let n = x.mul_add(V::lit(LOG2E.0), V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = n.neg_mul_add(V::lit(LN2_F32.1), n.neg_mul_add(V::lit(LN2_F32.0), x));
    let p = poly(r, &S_EXP).mul_add(r * r, r) + V::lit(1.0);
    p.scalef(n)
}

/// 2^x.
#[inline(always)]
pub fn exp2<V: Vector<Elem = f32>>(x: V) -> V {
    let x = clamp(x, -152.0, 130.0);
    let n = (x + V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = x - n;
    poly(r, &S_EXP2).mul_add(r, V::lit(1.0)).scalef(n)
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

#[inline(always)]
fn tanh_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let m = expm1_wide(x + x);
    m * (m + W::lit(2.0)).rcp_fast()
}

#[inline(always)]
fn sigmoid_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let e = exp_wide_limited(-x.abs());
    let num = W::select(x.lt(W::lit(0.0)), e, W::lit(1.0));
    num * (e + W::lit(1.0)).rcp_fast()
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<V: Single>(x: V) -> V {
    let y = V::narrow(expm1_wide(clamp(x, -120.0, 120.0).widen()));
    V::select(x.eq(V::lit(0.0)), x, y)
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

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<V: Single>(x: V) -> V {
    // The limits are beyond saturation.
    V::narrow(tanh_wide(clamp(x, -20.0, 20.0).widen())).or(x.sign())
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid<V: Single>(x: V) -> V {
    V::narrow(sigmoid_wide(clamp(x, -120.0, 120.0).widen()))
}
