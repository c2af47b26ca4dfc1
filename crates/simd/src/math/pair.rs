//! Cheaper rows for the inner loops of pair formulas, each with its own name and bound.
//!
//! `exp2_pair`: relative error about |x| 2^-24 (`f32`) or |x| 2^-53 (`f64`), no more than what the
//! rounding of its own argument costs; overflow, infinities and NaN are right, and what would be
//! subnormal is 0 (a subnormal result takes as long as a hundred others).
//! `rcp_pair`, `rsqrt_pair`, `sqrt_pair`: a few ulp for every value, by estimates where these know
//! subnormal numbers. `rsqrt_or_zero` is no cheaper form but a meaning that only formulas have.
//! Called by the pair plans of the CPU backend, run or recorded.

use super::coef::{EXP2_UNIT, S_EXP2_UNIT};
use super::poly;
use crate::vector::Vector;

/// 2^t by one fraction, a polynomial of degree 6 and a scaling.
#[inline(always)]
pub fn exp2_pair32<V: Vector<Elem = f32>>(t: V) -> V {
    let f = t.fract();
    poly(f, &S_EXP2_UNIT).mul_add(f, V::lit(1.0)).scalef_floor(t)
}

/// 2^t for `f64`, degree 11.
#[inline(always)]
pub fn exp2_pair64<V: Vector<Elem = f64>>(t: V) -> V {
    let f = t.fract();
    poly(f, &EXP2_UNIT).mul_add(f, V::lit(1.0)).scalef_floor(t)
}

/// 1 / x: estimate and one Newton step.
#[inline(always)]
pub fn rcp_pair32<V: Vector<Elem = f32>>(x: V) -> V {
    if !V::SUBNORMAL_ESTIMATES {
        return V::lit(1.0) / x;
    }
    let y = x.rcp_est();
    let better = y.mul_add(x.neg_mul_add(y, V::lit(1.0)), y);
    // At 0 and infinity the step is 0 * inf; the estimate is right there.
    V::select(better.is_nan(), y, better)
}

/// 1 / sqrt(x): estimate and one Newton step.
#[inline(always)]
pub fn rsqrt_pair32<V: Vector<Elem = f32>>(x: V) -> V {
    if !V::SUBNORMAL_ESTIMATES {
        return V::lit(1.0) / x.sqrt();
    }
    let y = x.rsqrt_est();
    let h = (x * y).neg_mul_add(y, V::lit(1.0));
    let better = (y * V::lit(0.5)).mul_add(h, y);
    V::select(better.is_nan(), y, better)
}

/// 1 / x for `f64`: the division itself, since the estimates of AVX2 have the range of `f32`.
#[inline(always)]
pub fn rcp_pair64<V: Vector<Elem = f64>>(x: V) -> V {
    V::lit(1.0) / x
}

/// 1 / sqrt(x) for `f64`, by division and square root.
#[inline(always)]
pub fn rsqrt_pair64<V: Vector<Elem = f64>>(x: V) -> V {
    V::lit(1.0) / x.sqrt()
}

/// sqrt(x): estimate of the inverse and one Newton step.
#[inline(always)]
pub fn sqrt_pair32<V: Vector<Elem = f32>>(x: V) -> V {
    if !V::SUBNORMAL_ESTIMATES {
        return x.sqrt();
    }
    let y = x.rsqrt_est();
    let s = x * y;
    // The residual is that of 1, not of x, which may be subnormal.
    let better = (s * V::lit(0.5)).mul_add(s.neg_mul_add(y, V::lit(1.0)), s);
    // 0 and infinity have no finite step.
    let near = x.gt(V::lit(0.0)) & x.lt(V::lit(f64::INFINITY));
    let far = V::select(x.lt(V::lit(0.0)), V::lit(f64::NAN), x);
    V::select(near, better, far)
}

/// sqrt(x) for `f64`: the square root itself.
#[inline(always)]
pub fn sqrt_pair64<V: Vector<Elem = f64>>(x: V) -> V {
    x.sqrt()
}

/// 1 / sqrt(x), 0 at 0.
#[inline(always)]
pub fn rsqrt_or_zero<V: Vector>(x: V) -> V {
    V::select(x.eq(V::lit(0.0)), V::lit(0.0), x.rsqrt())
}
