//! Roots: cbrt and hypot, the latter the same for `f32` and `f64` but for constants. (rsqrt is an
//! operation of the vector itself.)

use super::coef::CBRT;
use super::poly;
use crate::vector::{Real, Single, Vector};

/// Where the squares of an element type leave its range, and the power of two that helps.
pub trait SquareRange: Real {
    /// Above this, squares are scaled down.
    const HIGH: f64;
    /// Below this, squares are scaled up.
    const LOW: f64;
    /// The power of two to scale by.
    const SCALE: f64;
}

impl SquareRange for f32 {
    const HIGH: f64 = 9.223372036854776e18; // 2^63
    const LOW: f64 = 8.881784197001252e-16; // 2^-50
    const SCALE: f64 = 1.2379400392853803e27; // 2^90
}

impl SquareRange for f64 {
    const HIGH: f64 = 3.273390607896142e150; // 2^500
    const LOW: f64 = 3.054936363499605e-151; // 2^-500
    const SCALE: f64 = 4.149515568880993e180; // 2^600
}

/// sqrt(a^2 + b^2) without overflow or underflow on the way; infinite if either is, even beside NaN.
#[inline(always)]
pub fn hypot<V: Vector>(a: V, b: V) -> V
where
    V::Elem: SquareRange,
{
    let (a, b) = (a.abs(), b.abs());
    let top = a.max(b);
    let one = V::lit(1.0);
    let (big, small) = (top.gt(V::lit(V::Elem::HIGH)), top.lt(V::lit(V::Elem::LOW)));
    let (down, up) = (V::lit(1.0 / V::Elem::SCALE), V::lit(V::Elem::SCALE));
    let scale = V::select(big, down, V::select(small, up, one));
    let back = V::select(big, up, V::select(small, down, one));
    let (s, t) = (a * scale, b * scale);
    let y = s.mul_add(s, t * t).sqrt() * back;
    let inf = V::lit(f64::INFINITY);
    V::select(a.eq(inf) | b.eq(inf), inf, y)
}

/// m^(1/3) scaled by 2^k, where |x| = m 2^(3k), 3/8 <= m < 3: one fourth-order step on m^(-1/3),
/// which has no division.
#[inline(always)]
fn inverse_cbrt<W: Vector>(m: W) -> W {
    let y = poly(m, &CBRT);
    let h = (y * y).neg_mul_add(m * y, W::lit(1.0));
    let step = h
        .mul_add(W::lit(35.0 / 243.0), W::lit(14.0 / 81.0))
        .mul_add(h, W::lit(2.0 / 9.0))
        .mul_add(h, W::lit(1.0 / 3.0));
    (y * h).mul_add(step, y)
}

/// `(m, k)` with |x| = m 2^(3k).
#[inline(always)]
fn thirds<V: Vector>(a: V, magic: f64) -> (V, V) {
    let (m, e) = a.frexp();
    let magic = V::lit(magic);
    let k = e.mul_add(V::lit(1.0 / 3.0), magic) - magic;
    (m * V::pow2(k.neg_mul_add(V::lit(3.0), e)), k)
}

/// Cube root of `f64`.
#[inline(always)]
pub fn cbrt64<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    let (m, k) = thirds(a, super::MAGIC64);
    let y = inverse_cbrt(m);
    let h = (y * y).neg_mul_add(m * y, V::lit(1.0));
    let y = (y * h).mul_add(V::lit(1.0 / 3.0), y);
    let c = m * y * y;
    // One more step on c itself, the residual m - c^3 with an exact square.
    let sq = c * c;
    let sq_low = c.fms(c, sq);
    let rest = c.fnma(sq, m) - c * sq_low;
    let c = (rest * y * y).mul_add(V::lit(1.0 / 3.0), c) * V::pow2(k);
    let keep = a.eq(V::lit(0.0)) | !a.lt(V::lit(f64::INFINITY));
    V::select(keep, x, c.or(x.sign()))
}

/// m^(1/3) for a half of an `f32`.
#[inline(always)]
fn cbrt_wide<W: Vector<Elem = f64>>(m: W) -> W {
    let y = inverse_cbrt(m);
    m * y * y
}

/// Cube root of `f32`.
#[inline(always)]
pub fn cbrt32<V: Single>(x: V) -> V {
    let a = x.abs();
    let (m, k) = thirds(a, super::MAGIC32);
    let c = V::narrow(cbrt_wide(m.widen())) * V::pow2(k);
    let keep = a.eq(V::lit(0.0)) | !a.lt(V::lit(f64::INFINITY));
    V::select(keep, x, c.or(x.sign()))
}
