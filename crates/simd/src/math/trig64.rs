//! `f64`: sin, cos, tan, sin(x) / x.
//!
//! The sine counts half turns: x = n pi + r, and one polynomial serves all of [-pi/2, pi/2]. The first
//! difference is exact, the second rounds once (the third is seen only next to a zero, where it rounds
//! once more): r is within half an ulp, and the result within 1.7. Cosine and tangent need r as a pair,
//! the one to be 1 around 0, the other as a quotient: x = q pi/2 + r, with exact products. All that
//! holds up to [`LIMIT`]; the functions named `*_near` assume it (beyond it they are wrong, infinities
//! give NaN), the others mend the lanes beyond it one by one.

use super::coef::{COS, HALF_PI, HALF_PI_TAIL, PI, SIN, SIN_HALF};
use super::dd::{Pair, pair, quick_sum, two_prod, two_sum};
use super::huge;
use super::{MAGIC64, poly};
use crate::scalar::ScalarF64;
use crate::vector::{Lanes, Vector};

/// The largest argument of the `*_near` functions.
pub const LIMIT: f64 = 134217728.0;

/// The quadrant (in the low bits) and the rest.
#[inline(always)]
fn reduce<V: Vector<Elem = f64>>(x: V) -> (V, Pair<V>) {
    let magic = V::lit(MAGIC64);
    let q = x.mul_add(V::lit(std::f64::consts::FRAC_2_PI), magic);
    let n = q - magic;
    // Exact: both sides are multiples of 2^-52 or finer and the difference is below 1.
    let a = n.fnma(V::lit(HALF_PI.0), x);
    let p = two_prod(n, V::lit(HALF_PI.1));
    let r = two_sum(a, -p.hi);
    let lo = (r.lo - p.lo) - n * V::lit(HALF_PI_TAIL);
    (q, quick_sum(r.hi, lo))
}

/// sin(r) as a pair, |r| <= pi/4.
#[inline(always)]
fn sin_pair_of<V: Vector<Elem = f64>>(r: Pair<V>, z: V) -> Pair<V> {
    // cos(r) ~ 1 - z/2 multiplies the low part.
    let low = (z * V::lit(0.5)).neg_mul_add(r.lo, r.lo);
    pair(r.hi, poly(z, &SIN).mul_add(z * r.hi, low))
}

/// cos(r) as a pair, |r| <= pi/4.
#[inline(always)]
fn cos_pair_of<V: Vector<Elem = f64>>(r: Pair<V>, z: V) -> Pair<V> {
    let half = z * V::lit(0.5);
    let head = quick_sum(V::lit(1.0), -half);
    // The square's own rounding error is part of the result's last bit.
    let z_low = r.hi.fms(r.hi, z);
    let low = z_low.mul_add(V::lit(-0.5), head.lo);
    let low = r.hi.neg_mul_add(r.lo, low);
    pair(head.hi, poly(z, &COS).mul_add(z * z, low))
}

/// sin(r + q pi/2): q counts in the low bits.
#[inline(always)]
fn sin_of<V: Vector<Elem = f64>>(q: V, r: Pair<V>) -> V {
    let z = r.hi * r.hi;
    let (s, c) = (sin_pair_of(r, z).value(), cos_pair_of(r, z).value());
    let odd = q.shl::<63>().sign_mask();
    // Bit 1 of the quadrant is the sign.
    V::select(odd, c, s).xor(q.shl::<62>().sign())
}

/// sin(r + q pi/2) / x, rounded once: the quotient of a rounded sine may be off by another ulp.
#[inline(always)]
fn sin_over<V: Vector<Elem = f64>>(q: V, r: Pair<V>, x: V) -> V {
    let z = r.hi * r.hi;
    let (s, c) = (sin_pair_of(r, z).renorm(), cos_pair_of(r, z).renorm());
    let odd = q.shl::<63>().sign_mask();
    let sine = pair(V::select(odd, c.hi, s.hi), V::select(odd, c.lo, s.lo));
    sine.over(pair(x, V::lit(0.0))).value().xor(q.shl::<62>().sign())
}

/// tan(r + q pi/2).
#[inline(always)]
fn tan_of<V: Vector<Elem = f64>>(q: V, r: Pair<V>) -> V {
    let z = r.hi * r.hi;
    let (s, c) = (sin_pair_of(r, z).renorm(), cos_pair_of(r, z).renorm());
    let odd = q.shl::<63>().sign_mask();
    let num = pair(V::select(odd, c.hi, s.hi), V::select(odd, c.lo, s.lo));
    let den = pair(V::select(odd, s.hi, c.hi), V::select(odd, s.lo, c.lo));
    num.over(den).value().xor(q.shl::<63>())
}

/// Sine for |x| <= [`LIMIT`].
#[inline(always)]
pub fn sin_near<V: Vector<Elem = f64>>(x: V) -> V {
    let magic = V::lit(MAGIC64);
    // Of the magnitude, so that the sign of a zero is seen to as any other.
    let a = x.abs();
    let q = a.mul_add(V::lit(std::f64::consts::FRAC_1_PI), magic);
    let n = q - magic;
    let [head, middle, tail] = [PI.0, PI.1, 2.0 * HALF_PI_TAIL].map(V::lit);
    let r = n.fnma(tail, n.fnma(middle, n.fnma(head, a)));
    let z = r * r;
    let y = poly(z, &SIN_HALF).mul_add(z * r, r);
    // An odd number of half turns changes the sign.
    y.xor(x.xor(q.shl::<63>()).sign())
}

/// Cosine for |x| <= [`LIMIT`].
#[inline(always)]
pub fn cos_near<V: Vector<Elem = f64>>(x: V) -> V {
    let (q, r) = reduce(x);
    sin_of(q.add_int(V::bits(1)), r)
}

/// Tangent for |x| <= [`LIMIT`].
#[inline(always)]
pub fn tan_near<V: Vector<Elem = f64>>(x: V) -> V {
    let (q, r) = reduce(x);
    V::select(x.abs().lt(V::lit(1e-9)), x, tan_of(q, r))
}

/// The parts of one huge argument, ready for the polynomials on one lane.
fn huge_parts(x: f64, turn: u32) -> (ScalarF64, Pair<ScalarF64>) {
    let (q, hi, lo) = huge::reduce(x);
    (ScalarF64::bits(u64::from(q + turn)), pair(ScalarF64(hi), ScalarF64(lo)))
}

/// Sine of one huge argument.
pub(crate) fn sin_huge(x: f64) -> f64 {
    let (q, r) = huge_parts(x, 0);
    sin_of(q, r).0
}

/// sin(x) / x of one huge argument.
pub(crate) fn sinxdivx_huge(x: f64) -> f64 {
    let (q, r) = huge_parts(x, 0);
    sin_over(q, r, ScalarF64(x)).0
}

/// Cosine of one huge argument.
pub(crate) fn cos_huge(x: f64) -> f64 {
    let (q, r) = huge_parts(x, 1);
    sin_of(q, r).0
}

/// Tangent of one huge argument.
pub(crate) fn tan_huge(x: f64) -> f64 {
    let (q, r) = huge_parts(x, 0);
    tan_of(q, r).0
}

/// Whether any lane is beyond the limit, infinite or NaN.
#[inline(always)]
pub(crate) fn any_huge<V: Lanes>(x: V, limit: f64) -> bool {
    V::any(!x.abs().le(V::lit(limit)))
}

/// Sine.
#[inline(always)]
pub fn sin<V: Lanes<Elem = f64>>(x: V) -> V {
    let y = sin_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, sin_huge) } else { y }
}

/// sin(x) / x, 1 at zero.
#[inline(always)]
pub fn sinxdivx<V: Lanes<Elem = f64>>(x: V) -> V {
    let (q, r) = reduce(x);
    let y = V::select(x.abs().lt(V::lit(1e-9)), V::lit(1.0), sin_over(q, r, x));
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, sinxdivx_huge) } else { y }
}

/// Cosine.
#[inline(always)]
pub fn cos<V: Lanes<Elem = f64>>(x: V) -> V {
    let y = cos_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, cos_huge) } else { y }
}

/// Tangent.
#[inline(always)]
pub fn tan<V: Lanes<Elem = f64>>(x: V) -> V {
    let y = tan_near(x);
    if any_huge(x, LIMIT) { huge::patch(x, y, LIMIT, tan_huge) } else { y }
}
