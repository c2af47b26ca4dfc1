//! The error function: an odd polynomial below 1, one minus a small quantity above.

use super::coef::{ERF, ERFC, S_ERF, S_ERFC, S_EXP2, TWO_OVER_SQRT_PI};
use super::dd::two_prod;
use super::exp64::exp;
use super::{MAGIC32, poly};
use crate::vector::Vector;

/// erf for `f64`.
#[inline(always)]
pub fn erf64<V: Vector<Elem = f64>>(x: V) -> V {
    let one = V::lit(1.0);
    let a = x.abs();
    let z = a * a;
    let head = two_prod(a, V::lit(TWO_OVER_SQRT_PI.0));
    let low = a.mul_add(V::lit(TWO_OVER_SQRT_PI.1), head.lo);
    let small = head.hi + poly(z, &ERF).mul_add(z * a, low);
    // erf(6) is 1 to the last bit.
    let c = V::lit(6.0).min(a);
    // (c - 2.5) / (c + 2.5) without a division, which takes as long as a polynomial: what is left of
    // its error is lost in 1 - y, where y is below 0.16.
    let (above, below) = (c - V::lit(2.5), c + V::lit(2.5));
    let inverse = below.rcp_fast();
    let t = above * inverse;
    let t = inverse.mul_add(t.neg_mul_add(below, above), t);
    let large = poly(t, &ERFC).neg_mul_add(exp(-(c * c)), one);
    V::select(a.lt(one), small, large).or(x.sign())
}

/// erf for `f32`.
#[inline(always)]
pub fn erf32<V: Vector<Elem = f32>>(x: V) -> V {
    let one = V::lit(1.0);
    let a = x.abs();
    let z = a * a;
    let head = f64::from(TWO_OVER_SQRT_PI.0 as f32);
    let low = V::lit(TWO_OVER_SQRT_PI.0 - head);
    let small = a.fma(V::lit(head), poly(z, &S_ERF).mul_add(z, low) * a);
    // 1 - 2^q(x); beyond 4 that is 1.
    let q = poly(V::lit(4.0).min(a) - V::lit(2.0), &S_ERFC);
    let n = (q + V::lit(MAGIC32)) - V::lit(MAGIC32);
    let r = q - n;
    let e = poly(r, &S_EXP2).mul_add(r, one);
    let large = e.neg_mul_add(V::pow2(n), one);
    V::select(a.lt(one), small, large).or(x.sign())
}
