//! The error function: an odd polynomial below 1, one minus a power of two above.

use super::coef::{ERF, ERFC, EXP2, S_ERF, S_ERFC, S_EXP2, TWO_OVER_SQRT_PI};
use super::{poly, power32, power64};
use crate::vector::Vector;

/// erf for `f64`.
#[inline(always)]
pub fn erf64<V: Vector<Elem = f64>>(x: V) -> V {
    let one = V::lit(1.0);
    let a = x.abs();
    let z = a * a;
    let low = V::lit(TWO_OVER_SQRT_PI.1);
    let small = a.fma(V::lit(TWO_OVER_SQRT_PI.0), poly(z, &ERF).mul_add(z, low) * a);
    // 1 - 2^q(x), where what is rounded in 2^q, below 0.16, is lost; at 6 that is 1.
    let q = poly(V::lit(6.0).min(a) - one, &ERFC);
    let (n, power) = power64(q);
    let r = q - n;
    let e = poly(r, &EXP2).mul_add(r, one);
    let large = e.neg_mul_add(power, one);
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
    let (n, power) = power32(q, one);
    let r = q - n;
    let e = poly(r, &S_EXP2).mul_add(r, one);
    let large = e.neg_mul_add(power, one);
    V::select(a.lt(one), small, large).or(x.sign())
}
