//! `f32`: asin, acos, atan, atan2, each half in `f64`.

use super::coef::{HALF_PI, PI, W_ASIN, W_ATAN};
use super::poly;
use crate::vector::{Single, Vector};

/// atan(t) for 0 <= t <= 1, relative error 2^-33.
#[inline(always)]
fn atan_poly<W: Vector<Elem = f64>>(t: W) -> W {
    let z = t * t;
    poly(z, &W_ATAN).mul_add(z * t, t)
}

#[inline(always)]
fn atan_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let one = W::lit(1.0);
    let t = atan_poly(a.min(one) * one.max(a).rcp_fast());
    W::select(a.gt(one), W::lit(HALF_PI.0) - t, t)
}

/// Arc tangent.
#[inline(always)]
pub fn atan<V: Single>(x: V) -> V {
    // Beyond 2^60 the angle is pi/2 to the last bit; the limit serves the reciprocal.
    V::narrow(atan_wide(V::lit(1.152921504606847e18).min(x.abs()).widen())).or(x.sign())
}

/// The angle in [0, pi] for y >= 0 by its magnitude and x with its sign.
#[inline(always)]
fn atan2_wide<W: Vector<Elem = f64>>(y: W, x: W) -> W {
    let (zero, one, inf) = (W::lit(0.0), W::lit(1.0), W::lit(f64::INFINITY));
    let a = x.abs();
    let (low, high) = (a.min(y), a.max(y));
    // The origin lies on the axis; two infinities are a diagonal.
    let high = W::select(high.eq(zero), one, high);
    let t = W::select(low.eq(inf), one, low / high);
    let t = atan_poly(t);
    let t = W::select(y.gt(a), W::lit(HALF_PI.0) - t, t);
    W::select(x.sign_mask(), W::lit(PI.0) - t, t)
}

/// The angle of the point (x, y), by the quadrant, with the special cases of C99.
#[inline(always)]
pub fn atan2<V: Single>(y: V, x: V) -> V {
    let r = V::narrow(atan2_wide(y.abs().widen(), x.widen()));
    V::select(x.unordered(y), x + y, r.or(y.sign()))
}

/// sqrt(z) for z in [0, 1/4], relative error 2^-32, by estimate and one step of third order.
#[inline(always)]
fn sqrt_wide<W: Vector<Elem = f64>>(z: W) -> W {
    let y = z.max(W::lit(1e-30)).rsqrt_est();
    let s = z * y;
    let h = s.neg_mul_add(y, W::lit(1.0));
    (s * h).mul_add(h.mul_add(W::lit(0.375), W::lit(0.5)), s)
}

/// asin(a) for a <= 1/2, or pi/4 - asin(a)/2 above.
#[inline(always)]
fn asin_half<W: Vector<Elem = f64>>(a: W, small: W::Mask) -> W {
    let other = a.neg_mul_add(W::lit(0.5), W::lit(0.5));
    let z = W::select(small, a * a, other);
    let t = W::select(small, a, sqrt_wide(other));
    poly(z, &W_ASIN).mul_add(z * t, t)
}

#[inline(always)]
fn asin_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let small = a.le(W::lit(0.5));
    let t = asin_half(a, small);
    W::select(small, t, t.mul_add(W::lit(-2.0), W::lit(HALF_PI.0)))
}

#[inline(always)]
fn acos_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let a = x.abs();
    let small = a.le(W::lit(0.5));
    let t = asin_half(a, small);
    let turn = W::select(x.sign_mask(), W::lit(PI.0), W::lit(0.0));
    let turn = W::select(small, W::lit(HALF_PI.0), turn);
    let factor = W::select(small, W::lit(-1.0), W::lit(2.0)).xor(x.sign());
    t.mul_add(factor, turn)
}

/// Arc sine; NaN beyond 1.
#[inline(always)]
pub fn asin<V: Single>(x: V) -> V {
    let a = x.abs();
    let y = V::narrow(asin_wide(a.widen())).or(x.sign());
    V::select(a.le(V::lit(1.0)), y, V::lit(f64::NAN))
}

/// Arc cosine; NaN beyond 1.
#[inline(always)]
pub fn acos<V: Single>(x: V) -> V {
    let y = V::narrow(acos_wide(x.widen()));
    V::select(x.abs().le(V::lit(1.0)), y, V::lit(f64::NAN))
}
