//! Mathematics on vectors, generic over [`Vector`]: one file a family, `f64` in `*64`, `f32` in
//! `*32`.
//!
//! Every function is `#[inline(always)]` and free of branches on data, with two exceptions that need
//! [`Lanes`](crate::vector::Lanes) to see whether a cold path is due: pow, and the trigonometric
//! functions, which also come in a form for arguments of ordinary size that any [`Vector`] can take.
//! Results do not depend on the position of an element in its register. Called by the drivers in
//! `kernels` and by the pair formulas of the CPU backend.

use crate::vector::Vector;
use dd::Pair;

pub(crate) mod coef;
pub mod dd;
pub mod erf;
pub mod exp32;
pub mod exp64;
pub mod huge;
pub mod inverse32;
pub mod inverse64;
pub mod log32;
pub mod log64;
pub mod pair;
pub mod power;
pub mod root;
pub mod trig32;
pub mod trig64;

/// 1.5 * 2^52: adding it rounds an `f64` to an integer, which then stands in the low bits.
pub(crate) const MAGIC64: f64 = 6755399441055744.0;
/// 1.5 * 2^23, the same for `f32`.
pub(crate) const MAGIC32: f64 = 12582912.0;

/// A product `x * y` rounded to an integer n, and 2^n, for |n| < 120.
#[inline(always)]
pub(crate) fn power32<V: Vector<Elem = f32>>(x: V, y: V) -> (V, V) {
    // The integer that stands in the low bits is what the exponent field of 2^n holds.
    let magic = V::lit(MAGIC32 + 127.0);
    let q = x.mul_add(y, magic);
    (q - magic, q.shl::<23>())
}

/// A polynomial, lowest coefficient first: by Horner's rule, or, from [`LONG`] coefficients on, the
/// even and the odd powers each by that rule. A chain in which every step waits for the last leaves a
/// processor with nothing to do, once the steps of the next elements no longer fit its scheduler.
#[inline(always)]
pub(crate) fn poly<V: Vector, const N: usize>(x: V, c: &[f64; N]) -> V {
    if N < LONG {
        return horner(x, c, 0, 1);
    }
    let z = x * x;
    horner(z, c, 1, 2).mul_add(x, horner(z, c, 0, 2))
}

/// Coefficients from which on the two halves of a polynomial are quicker than its whole.
const LONG: usize = 9;

/// Horner's rule with every `step`th coefficient from the `first` on.
#[inline(always)]
fn horner<V: Vector, const N: usize>(x: V, c: &[f64; N], first: usize, step: usize) -> V {
    let mut k = first + (N - 1 - first) / step * step;
    let mut sum = V::lit(c[k]);
    while k > first {
        k -= step;
        sum = sum.mul_add(x, V::lit(c[k]));
    }
    sum
}

/// `(a + a_lo) / (b + b_lo)` within some hundredths beyond the rounding of the result, without the
/// divider, which takes as long as a dozen other instructions; |b| in 2^-120 .. 2^120.
#[inline(always)]
pub(crate) fn quotient<V: Vector>(a: Pair<V>, b: Pair<V>) -> V {
    let inverse = b.hi.rcp_fast();
    let q = a.hi * inverse;
    let rest = q.fnma(b.hi, a.hi) + q.neg_mul_add(b.lo, a.lo);
    rest.mul_add(inverse, q)
}

/// `x` limited to [lo, hi]; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp<V: Vector>(x: V, lo: f64, hi: f64) -> V {
    V::lit(lo).max(V::lit(hi).min(x))
}
