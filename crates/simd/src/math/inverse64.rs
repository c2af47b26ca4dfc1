//! `f64`: asin, acos, atan, atan2.
//!
//! atan of a quotient: the quotient is brought below tan(pi/8) by turning its vector back by pi/4
//! or pi/2, numerator and denominator and the turn being pairs.

use super::coef::{ASIN, ATAN, HALF_PI, PI, QUARTER_PI};
use super::dd::{Pair, pair, quick_sum, two_sum};
use super::{MAGIC64, poly};
use crate::vector::Vector;

/// tan(pi/8) and tan(3 pi/8).
const EIGHTH: (f64, f64) = (0.4142135623730951, 2.414213562373095);

/// The angle of (x, y), x >= 0, y >= 0, not both zero, both below 2^110 and the larger above
/// 2^-110.
#[inline(always)]
fn angle<V: Vector<Elem = f64>>(y: V, x: V) -> Pair<V> {
    let zero = V::lit(0.0);
    let flat = y.le(x * V::lit(EIGHTH.0));
    let steep = y.gt(x * V::lit(EIGHTH.1));
    let (minus, plus) = (two_sum(y, -x), two_sum(y, x));
    let num = V::select(flat, y, V::select(steep, -x, minus.hi));
    let den = V::select(flat, x, V::select(steep, y, plus.hi));
    let single = flat | steep;
    let num = pair(num, V::select(single, zero, minus.lo));
    let den = pair(den, V::select(single, zero, plus.lo));
    let turn = V::select(steep, V::lit(HALF_PI.0), V::lit(QUARTER_PI.0));
    let turn = V::select(flat, zero, turn);
    // Both turns have the same tail but for a factor of two.
    let turn_low = turn * V::lit(HALF_PI.1 / HALF_PI.0);
    let t = num.over(den);
    let z = t.hi * t.hi;
    let sum = quick_sum(turn, t.hi);
    let low = poly(z, &ATAN).mul_add(z * t.hi, t.lo + turn_low);
    pair(sum.hi, sum.lo + low)
}

/// Arc tangent.
#[inline(always)]
pub fn atan<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    // Beyond 2^100 the angle is pi/2 to the last bit.
    let y = angle(V::lit(1.2676506002282294e30).min(a), V::lit(1.0)).value();
    V::select(a.lt(V::lit(1e-9)), x, y.or(x.sign()))
}

/// The angle of the point (x, y), by the quadrant, with the special cases of C99.
#[inline(always)]
pub fn atan2<V: Vector<Elem = f64>>(y: V, x: V) -> V {
    let (zero, one, inf) = (V::lit(0.0), V::lit(1.0), V::lit(f64::INFINITY));
    let (a, b) = (x.abs(), y.abs());
    // Infinite points become finite ones of the same direction, the origin lies on the axis.
    let (ia, ib) = (a.eq(inf), b.eq(inf));
    let a1 = V::select(ia, one, V::select(ib, zero, a));
    let b1 = V::select(ib, one, V::select(ia, zero, b));
    let a1 = V::select(a1.eq(zero) & b1.eq(zero), one, a1);
    let (_, e) = a1.max(b1).frexp();
    let half = e.mul_add(V::lit(-0.5), V::lit(MAGIC64)) - V::lit(MAGIC64);
    let (s, t) = (V::pow2(half), V::pow2(-e - half));
    let r = angle(b1 * s * t, a1 * s * t);
    let back = two_sum(V::lit(PI.0), -r.hi);
    let back = back.hi + (back.lo + (V::lit(PI.1) - r.lo));
    let y1 = V::select(x.sign_mask(), back, r.value());
    V::select(x.unordered(y), x + y, y1.or(y.sign()))
}

/// `(t, tail, small)`: asin(t) + tail for |x| <= 1/2, or of sqrt((1 - |x|) / 2).
#[inline(always)]
fn asin_parts<V: Vector<Elem = f64>>(a: V) -> (Pair<V>, V::Mask) {
    let small = a.le(V::lit(0.5));
    let other = a.neg_mul_add(V::lit(0.5), V::lit(0.5));
    let root = pair(other, V::lit(0.0)).sqrt();
    let z = V::select(small, a * a, other);
    let t = V::select(small, a, root.hi);
    let low = V::select(small, V::lit(0.0), root.lo);
    (pair(t, poly(z, &ASIN).mul_add(z * t, low)), small)
}

/// Arc sine; NaN beyond 1.
#[inline(always)]
pub fn asin<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    let (t, small) = asin_parts(a);
    let head = quick_sum(V::lit(HALF_PI.0), -(t.hi + t.hi));
    let low = head.lo + (t.lo.mul_add(V::lit(-2.0), V::lit(HALF_PI.1)));
    let y = V::select(small, t.value(), head.hi + low).or(x.sign());
    // Not the NaN of the square root, whose sign depends on how the compiler orders operands.
    V::select(a.le(V::lit(1.0)), y, V::lit(f64::NAN))
}

/// Arc cosine; NaN beyond 1.
#[inline(always)]
pub fn acos<V: Vector<Elem = f64>>(x: V) -> V {
    let a = x.abs();
    let (t, small) = asin_parts(a);
    let negative = x.sign_mask();
    // small: pi/2 - asin(x); x > 1/2: 2 asin(t); x < -1/2: pi - 2 asin(t).
    let turn_hi = V::select(negative, V::lit(PI.0), V::lit(0.0));
    let turn_hi = V::select(small, V::lit(HALF_PI.0), turn_hi);
    let turn_low = turn_hi * V::lit(HALF_PI.1 / HALF_PI.0);
    let factor = V::select(small, V::lit(-1.0), V::lit(2.0)).xor(x.sign());
    let head = quick_sum(turn_hi, t.hi * factor);
    let y = head.hi + (head.lo + t.lo.mul_add(factor, turn_low));
    V::select(a.le(V::lit(1.0)), y, V::lit(f64::NAN))
}
