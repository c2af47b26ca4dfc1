//! `f32`: sin, cos, tan, sin(x) / x.
//!
//! Sine and cosine of |x| <= `NEAR` are computed in `f32`, with three parts of pi/2. Beyond it, and
//! for the tangent, each half is in `f64`, where two parts have bits to spare and one polynomial serves
//! all of [-pi/2, pi/2]. As in `trig64`, `*_near` assume |x| <= [`LIMIT`] and the others mend the
//! lanes beyond.

use super::coef::{HALF_PI, HALF_PI_F32, PI, S_COS, S_SIN, W_SIN, W_TAN};
use super::trig64::{any_huge, cos_huge, sin_huge, sinxdivx_huge, tan_huge};
use super::{MAGIC32, MAGIC64, huge, poly};
use crate::vector::{Lanes, Single, Vector};

/// The largest argument of the `*_near` functions.
pub const LIMIT: f64 = 268435456.0;

/// The largest argument whose quarter turns are counted in `f32`: the count is then off by at most
/// some thousandths before it is rounded, and so is the rest from [-pi/4, pi/4].
const NEAR: f64 = 32768.0;

/// The quarter turns of |x| <= [`NEAR`] (in the low bits) and the rest.
#[inline(always)]
fn reduce<V: Vector<Elem = f32>>(x: V) -> (V, V) {
    let magic = V::lit(MAGIC32);
    let q = x.mul_add(V::lit(std::f64::consts::FRAC_2_PI), magic);
    let n = q - magic;
    // The first difference is exact: both sides are multiples of 2^-24, and it is below 1. The second
    // is rounded, and the third sees to arguments that are next to a multiple of pi / 2.
    let [a, b, c] = HALF_PI_F32.map(V::lit);
    (q, n.fnma(c, n.fnma(b, n.fnma(a, x))))
}

/// sin(r + q pi/2): q counts in the low bits.
#[inline(always)]
fn sin_of<V: Vector<Elem = f32>>(q: V, r: V) -> V {
    let z = r * r;
    let s = poly(z, &S_SIN).mul_add(z * r, r);
    let c = poly(z, &S_COS).mul_add(z, V::lit(1.0));
    let odd = q.shl::<31>().sign_mask();
    // Bit 1 of the quarters is the sign.
    V::select(odd, c, s).xor(q.shl::<30>().sign())
}

/// Sine for |x| <= [`NEAR`].
#[inline(always)]
fn sin_single<V: Vector<Elem = f32>>(x: V) -> V {
    let (q, r) = reduce(x);
    // Keeps -0.
    V::select(x.eq(V::lit(0.0)), x, sin_of(q, r))
}

/// Cosine for |x| <= [`NEAR`].
#[inline(always)]
fn cos_single<V: Vector<Elem = f32>>(x: V) -> V {
    let (q, r) = reduce(x);
    sin_of(q.add_int(V::bits(1)), r)
}

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
    V::select(x.abs().le(V::lit(NEAR)), sin_single(x), V::narrow(sin_wide(x.widen())))
}

/// Cosine for |x| <= [`LIMIT`].
#[inline(always)]
pub fn cos_near<V: Single>(x: V) -> V {
    V::select(x.abs().le(V::lit(NEAR)), cos_single(x), V::narrow(cos_wide(x.widen())))
}

/// Tangent for |x| <= [`LIMIT`].
#[inline(always)]
pub fn tan_near<V: Single>(x: V) -> V {
    V::select(x.eq(V::lit(0.0)), x, V::narrow(tan_wide(x.widen())))
}

/// Sine.
#[inline(always)]
pub fn sin<V: Single + Lanes>(x: V) -> V {
    if !any_huge(x, NEAR) {
        return sin_single(x);
    }
    let y = sin_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| sin_huge(x.into()) as f32) } else { y }
}

/// sin(x) / x, 1 at zero.
#[inline(always)]
pub fn sinxdivx<V: Single + Lanes>(x: V) -> V {
    let w = x.widen();
    let y = V::select(x.eq(V::lit(0.0)), V::lit(1.0), V::narrow(sin_wide(w) / w));
    if any_huge(x, LIMIT) {
        huge::patch(x, y, LIMIT, |x| sinxdivx_huge(x.into()) as f32)
    } else {
        y
    }
}

/// Cosine.
#[inline(always)]
pub fn cos<V: Single + Lanes>(x: V) -> V {
    if !any_huge(x, NEAR) {
        return cos_single(x);
    }
    let y = cos_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| cos_huge(x.into()) as f32) } else { y }
}

/// Tangent.
#[inline(always)]
pub fn tan<V: Single + Lanes>(x: V) -> V {
    let y = tan_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, |x| tan_huge(x.into()) as f32) } else { y }
}
