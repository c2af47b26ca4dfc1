//! The cold path of sin, cos and tan: reduction of huge arguments by the bits of 2/pi.
//!
//! Plain integers, one element at a time; runs only when an argument is beyond what the vector
//! reduction takes, or infinite or NaN. Called by `trig32` and `trig64`.

use super::coef::{HALF_PI, TWO_OVER_PI};
use crate::vector::{Lanes, Real};

/// 64 bits of 2/pi from bit `at` after the binary point (0 is the first); zeros before the point.
fn two_over_pi_bits(at: i32) -> u64 {
    let word = at.div_euclid(64);
    let shift = at.rem_euclid(64) as u32;
    let get =
        |w: i32| usize::try_from(w).ok().and_then(|w| TWO_OVER_PI.get(w)).copied().unwrap_or(0);
    if shift == 0 { get(word) } else { get(word) << shift | get(word + 1) >> (64 - shift) }
}

/// `(q, hi, lo)` with x = (4 j + q) pi/2 + hi + lo, |hi| <= pi/4 and q in 0..4, for any `x`.
/// Infinite and NaN give NaN.
pub(crate) fn reduce(x: f64) -> (u32, f64, f64) {
    if !x.is_finite() {
        return (0, f64::NAN, 0.0);
    }
    if x.abs() < 0.5 {
        return (0, x, 0.0);
    }
    // |x| = mantissa * 2^exponent. Bits of 2/pi that weigh 4 or more after the product only
    // count whole turns: start at the bit of weight 2.
    let bits = x.abs().to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let exponent = (bits >> 52) as i32 - 1075;
    let words = [0, 64, 128].map(|k| two_over_pi_bits(exponent - 2 + k));
    let full = |w: u64| u128::from(mantissa) * u128::from(w);
    // mantissa * words modulo 2^192: two bits of quadrant, 190 of fraction.
    let low = full(words[2]);
    let mid = full(words[1]) + (low >> 64);
    let high = mantissa.wrapping_mul(words[0]).wrapping_add((mid >> 64) as u64);
    let quadrant = (high >> 62) as u32;
    let fraction = u128::from(high << 2 | (mid as u64) >> 62) << 64
        | u128::from((mid as u64) << 2 | (low as u64) >> 62);
    // To the nearest quadrant: a fraction of a half or more counts from above.
    let up = fraction >> 127 != 0;
    let magnitude = if up { fraction.wrapping_neg() } else { fraction };
    let head = leading(magnitude);
    let rest = magnitude - head;
    let unit = 2f64.powi(-128);
    let (fh, fl) = (head as f64 * unit, rest as f64 * unit);
    let hi = fh * HALF_PI.0;
    let lo = fh.mul_add(HALF_PI.0, -hi) + (fh * HALF_PI.1 + fl * HALF_PI.0);
    let sum = hi + lo;
    let low = lo - (sum - hi);
    let quadrant = if up { quadrant + 1 } else { quadrant } & 3;
    let negative = up != (x < 0.0);
    let quadrant = if x < 0.0 { quadrant.wrapping_neg() & 3 } else { quadrant };
    if negative { (quadrant, -sum, -low) } else { (quadrant, sum, low) }
}

/// The leading 53 bits of `m`, the others zero.
fn leading(m: u128) -> u128 {
    let drop = (128 - m.leading_zeros()).saturating_sub(53);
    m >> drop << drop
}

/// Replaces the lanes of `y` whose argument is huge by `f` of it.
///
/// The registers pass through memory here, so that `f` and the loop are compiled once, not inlined
/// into each driver.
#[inline(always)]
pub(crate) fn patch<V: Lanes>(x: V, y: V, limit: f64, f: fn(V::Elem) -> V::Elem) -> V {
    let zero = V::Elem::from_f64(0.0);
    let (mut xs, mut ys) = ([zero; 32], [zero; 32]);
    // SAFETY: LANES is at most 32.
    unsafe {
        x.store(xs.as_mut_ptr());
        y.store(ys.as_mut_ptr());
    }
    patch_lanes(&xs[..V::LANES], &mut ys[..V::LANES], limit, f);
    // SAFETY: as above.
    unsafe { V::load(ys.as_ptr()) }
}

#[cold]
#[inline(never)]
fn patch_lanes<T: Real>(xs: &[T], ys: &mut [T], limit: f64, f: fn(T) -> T) {
    for (x, y) in xs.iter().zip(ys) {
        // Written so that NaN goes the same way.
        let ordinary = x.to_f64().abs() <= limit;
        if !ordinary {
            *y = f(*x);
        }
    }
}
