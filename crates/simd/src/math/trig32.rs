//! `f32`: sin, cos, tan, each half in `f64`, where a reduction with two parts of pi has bits to
//! spare and one polynomial serves all of [-pi/2, pi/2].
//!
//! As in `trig64`, `*_near` assume |x| <= [`LIMIT`] and the others mend the lanes beyond.

use super::coef::{HALF_PI, PI, W_SIN, W_TAN};
use super::trig64::{any_huge, cos_huge, sin_huge, tan_huge};
use super::{MAGIC64, huge, poly};
use crate::vector::{Lanes, Single, Vector};

/// The largest argument of the `*_near` functions.
pub const LIMIT: f64 = 268435456.0;

/// sin(r), |r| <= pi/2.
#[inline(always)]
fn sin_poly<W: Vector<Elem = f64>>(r: W) -> W {
    let z = r * r;
    poly(z, &W_SIN).mul_add(z * r, r)
}

#[inline(always)]
fn sin_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let magic = W::lit(MAGIC64);
    let q = x.mul_add(W::lit(std::f64::consts::FRAC_1_PI), magic);
    let n = q - magic;
    let r = n.fnma(W::lit(PI.1), n.fnma(W::lit(PI.0), x));
    // An odd number of half turns changes the sign.
    sin_poly(r).xor(q.shl::<63>())
}

#[inline(always)]
fn cos_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let magic = W::lit(MAGIC64);
    // x = (n + 1/2) pi + r, cos x = -(-1)^n sin r.
    let q = x.mul_add(W::lit(std::f64::consts::FRAC_1_PI), W::lit(-0.5)) + magic;
    let n = (q - magic) + W::lit(0.5);
    let r = n.fnma(W::lit(PI.1), n.fnma(W::lit(PI.0), x));
    sin_poly(-r).xor(q.shl::<63>())
}

#[inline(always)]
fn tan_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let magic = W::lit(MAGIC64);
    let q = x.mul_add(W::lit(std::f64::consts::FRAC_2_PI), magic);
    let n = q - magic;
    let r = n.fnma(W::lit(HALF_PI.1), n.fnma(W::lit(HALF_PI.0), x));
    let z = r * r;
    let t = poly(z, &W_TAN).mul_add(z * r, r);
    W::select(q.shl::<63>().sign_mask(), -t.rcp_fast(), t)
}

/// Sine for |x| <= [`LIMIT`].
#[inline(always)]
pub fn sin_near<V: Single>(x: V) -> V {
    V::select(x.eq(V::lit(0.0)), x, V::narrow(sin_wide(x.widen())))
}

/// Cosine for |x| <= [`LIMIT`].
#[inline(always)]
pub fn cos_near<V: Single>(x: V) -> V {
    V::narrow(cos_wide(x.widen()))
}

/// Tangent for |x| <= [`LIMIT`].
#[inline(always)]
pub fn tan_near<V: Single>(x: V) -> V {
    V::select(x.eq(V::lit(0.0)), x, V::narrow(tan_wide(x.widen())))
}

/// Sine.
#[inline(always)]
pub fn sin<V: Single + Lanes>(x: V) -> V {
    let y = sin_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| sin_huge(x.into()) as f32) } else { y }
}

/// Cosine.
#[inline(always)]
pub fn cos<V: Single + Lanes>(x: V) -> V {
    let y = cos_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| cos_huge(x.into()) as f32) } else { y }
}

/// Tangent.
#[inline(always)]
pub fn tan<V: Single + Lanes>(x: V) -> V {
    let y = tan_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| tan_huge(x.into()) as f32) } else { y }
}
