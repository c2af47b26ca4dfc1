//! The error function. For `f64` sixteen polynomials, looked up by the interval that an argument is in;
//! for `f32`, which can be recorded, an odd polynomial below 1 and one minus a power of two above.

use super::coef::{ERF, ERF_WIDTH, S_ERF, S_ERFC, S_EXP2, TWO_OVER_SQRT_PI};
use super::{MAGIC64, poly, power32};
use crate::vector::{Picks, Vector};

/// erf for `f64`.
#[inline(always)]
pub fn erf64<V: Picks>(x: V) -> V {
    // In the last interval it is 1.
    let a = V::lit(6.1).min(x.abs());
    let magic = V::lit(MAGIC64);
    let which = a.mul_add(V::lit(1.0 / ERF_WIDTH), magic);
    let t = (which - magic).fnma(V::lit(ERF_WIDTH), a);
    let z = t * t;
    // Even and odd powers apart, as `poly` has them.
    let [even, odd] = ERF;
    let mut sums = [which.pick(&even[6]), which.pick(&odd[6])];
    for k in (0..6).rev() {
        sums = [sums[0].mul_add(z, which.pick(&even[k])), sums[1].mul_add(z, which.pick(&odd[k]))];
    }
    let [even, odd] = sums;
    odd.mul_add(t, even).or(x.sign())
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
