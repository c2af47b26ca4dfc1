//! The modulus and the square root: the same instructions for all numbers, so that loops over them
//! become vectors. What is special is chosen at the end, never branched to.
//!
//! Numbers whose squares leave the range of double precision are scaled by powers of two. Those that
//! were single are known not to (`squares_fit`, a constant of the caller).

use super::{C64, INF, c, reciprocal};

/// Above this, and below one over it, squares are scaled: 2⁴⁰⁰.
const FAR: f64 = f64::from_bits((1023 + 400) << 52);

/// What they are scaled by: 2⁶⁰⁰, whose root is 2³⁰⁰.
const SCALE: f64 = f64::from_bits((1023 + 600) << 52);
const ROOT_OF_SCALE: f64 = f64::from_bits((1023 + 300) << 52);

/// `large` where the number is far above one, `small` where it is far below, else 1.
#[inline(always)]
fn by_size(x: f64, large: f64, small: f64) -> f64 {
    if x > FAR {
        large
    } else if x < 1.0 / FAR {
        small
    } else {
        1.0
    }
}

/// The modulus, infinite if either part is, even beside NaN: within half an ulp, and a little.
#[inline(always)]
pub fn modulus(z: C64, squares_fit: bool) -> f64 {
    let (a, b) = (z.re.abs(), z.im.abs());
    let length = if squares_fit {
        // Squares of single precision are exact, and who asks rounds the root once more.
        (a * a + b * b).sqrt()
    } else {
        let (large, small) = if a > b { (a, b) } else { (b, a) };
        let scale = by_size(large, 1.0 / SCALE, SCALE);
        let (x, y) = (large * scale, small * scale);
        let square = x * x;
        let root = y.mul_add(y, square).sqrt();
        // A step of Newton's on the root. Its square is at most twice that of x, so that their
        // difference is exact, and so are what the squares were rounded by.
        let again = root * root;
        let low = root.mul_add(root, -again) - x.mul_add(x, -square);
        let excess = (-y).mul_add(y, again - square) + low;
        // The root of zero is the one that the least number is not lost beside.
        let length = root - excess / (2.0 * root + f64::MIN_POSITIVE);
        length * by_size(large, SCALE, 1.0 / SCALE)
    };
    if a == INF || b == INF { INF } else { length }
}

/// The square root in the right half plane; the cut is the negative real axis.
#[inline(always)]
pub fn root(z: C64, squares_fit: bool) -> C64 {
    let (a, b) = (z.re.abs(), z.im.abs());
    let large = if squares_fit {
        1.0
    } else if a > b {
        a
    } else {
        b
    };
    let scale = by_size(large, 1.0 / SCALE, SCALE);
    let (x, y) = (a * scale, b * scale);
    let modulus = if a == INF || b == INF { INF } else { (x * x + y * y).sqrt() };
    let back = by_size(large, ROOT_OF_SCALE, 1.0 / ROOT_OF_SCALE);
    let longer = (0.5 * (x + modulus)).sqrt() * back;
    // Roots are far above the least number; but that of zero takes the zero beside it as it is.
    let shorter = z.im / (2.0 * longer + f64::MIN_POSITIVE);
    let right = z.re >= 0.0;
    let re = if right { longer } else { shorter.abs() };
    let im = if right { shorter } else { longer.copysign(z.im) };
    c(if b == INF { INF } else { re }, if b == INF { z.im } else { im })
}

/// The modulus.
pub fn abs(z: C64) -> f64 {
    modulus(z, false)
}

/// The square root: see [`root`].
pub fn sqrt(z: C64) -> C64 {
    root(z, false)
}

/// One over the square root.
pub fn rsqrt(z: C64) -> C64 {
    reciprocal(sqrt(z))
}
