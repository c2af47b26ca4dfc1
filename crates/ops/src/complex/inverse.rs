//! Inverse trigonometric and hyperbolic functions of complex numbers.
//!
//! Branch cuts follow the signs of zeros; the inverse sine and tangent are the hyperbolic ones of
//! the rotated argument.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

use super::{C64, INF, NAN, NATURAL, c, log_modulus, over_i, times_i};

/// The inverse sine and cosine of one number in the first quadrant, after Hull, Fairgrieve and
/// Tang: both have the imaginary part `height` up to sign, and the real part is the angle whose
/// tangent is `opposite / adjacent` for the sine, the inverse of it for the cosine.
struct Arc {
    opposite: f64,
    adjacent: f64,
    height: f64,
}

impl Arc {
    /// For finite `x, y >= 0`.
    fn new(x: f64, y: f64) -> Arc {
        let gap = (x - 1.0).abs();
        if x.max(y) > 1e10 {
            // asin(z) = -i log(2iz), up to a relative error of |z|⁻².
            let height = log_modulus(x, y, &NATURAL) + LN_2;
            return Arc { opposite: x, adjacent: y, height };
        }
        if x == 1.0 && y < 1e-30 {
            // At the branch point itself; halves of the least numbers would be lost below.
            return Arc { opposite: 1.0, adjacent: y.sqrt(), height: y.sqrt() };
        }
        if y <= f64::EPSILON * gap {
            // So near the axis, first order in y is exact to all bits.
            let root = (gap * (x + 1.0)).sqrt();
            return if x < 1.0 {
                Arc { opposite: x, adjacent: root, height: y / root }
            } else {
                Arc { opposite: root, adjacent: y, height: (gap + root).ln_1p() }
            };
        }
        // The ellipse through z with foci ±1: `axis` is its half axis, x/axis the sine wanted.
        let right = (x + 1.0).hypot(y);
        let left = gap.hypot(y);
        let axis = 0.5 * (right + left);
        let from_right = y * (y / (right + (x + 1.0)));
        let from_left = y * (y / (left + gap));
        let (axis_minus_1, axis_minus_x) = if x < 1.0 {
            (0.5 * (from_right + from_left), 0.5 * (from_right + (left + gap)))
        } else {
            (0.5 * (from_right + (left + gap)), 0.5 * (from_right + from_left))
        };
        let height = if axis < 1.5 {
            (axis_minus_1 + (axis_minus_1 * (axis + 1.0)).sqrt()).ln_1p()
        } else {
            (axis + (axis_minus_1 * (axis + 1.0)).sqrt()).ln()
        };
        Arc { opposite: x, adjacent: (axis_minus_x * (axis + x)).sqrt(), height }
    }
}

/// The inverse hyperbolic sine; the cuts are the imaginary axis beyond ±i.
pub fn asinh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if a.is_finite() && b.is_finite() {
        let arc = Arc::new(b.abs(), a.abs());
        let angle = arc.opposite.atan2(arc.adjacent);
        return c(arc.height.copysign(a), angle.copysign(b));
    }
    if a.is_infinite() {
        let angle = if b.is_infinite() { FRAC_PI_4 } else { 0.0 };
        return c(a, if b.is_nan() { NAN } else { angle.copysign(b) });
    }
    if b.is_infinite() {
        return c(INF.copysign(a), if a.is_nan() { NAN } else { FRAC_PI_2.copysign(b) });
    }
    c(NAN, if b == 0.0 { b } else { NAN })
}

/// The inverse cosine; the cuts are the real axis beyond ±1.
pub fn acos(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if a.is_finite() && b.is_finite() {
        let arc = Arc::new(a.abs(), b.abs());
        let angle = arc.adjacent.atan2(arc.opposite.copysign(a));
        return c(angle, -arc.height.copysign(b));
    }
    if a.is_infinite() {
        let height = -INF.copysign(b);
        return match (b.is_nan(), b.is_infinite()) {
            (true, _) => c(NAN, INF),
            (_, true) => c(if a > 0.0 { FRAC_PI_4 } else { 3.0 * FRAC_PI_4 }, height),
            _ => c(if a > 0.0 { 0.0 } else { PI }, height),
        };
    }
    if b.is_infinite() {
        return c(if a.is_nan() { NAN } else { FRAC_PI_2 }, -b);
    }
    c(if a == 0.0 { FRAC_PI_2 } else { NAN }, NAN)
}

/// The inverse hyperbolic cosine; the cut is the real axis below 1.
pub fn acosh(z: C64) -> C64 {
    // i acos(z) or -i acos(z), whichever lies in the right half plane.
    let w = acos(z);
    c(w.im.abs(), w.re.copysign(z.im))
}

/// The inverse hyperbolic tangent; the cuts are the real axis beyond ±1.
pub fn atanh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    let (x, y) = (a.abs(), b.abs());
    if x.is_infinite() || y.is_infinite() {
        let angle = if b.is_nan() { NAN } else { FRAC_PI_2.copysign(b) };
        return c(if a.is_nan() { 0.0 } else { 0.0f64.copysign(a) }, angle);
    }
    if a.is_nan() || b.is_nan() {
        return c(if a == 0.0 { a } else { NAN }, NAN);
    }
    let (re, im) = if x.max(y) > 1e150 {
        // πi/2 + 1/z: squares would overflow, and nothing else is visible.
        let modulus = (0.5 * x).hypot(0.5 * y);
        (0.25 * x / modulus / modulus, FRAC_PI_2)
    } else if x == 1.0 && y < 1e-150 {
        // Here the square of the distance to the pole would underflow.
        (0.5 * (LN_2 - y.ln()), 0.5 * y.atan2(0.0))
    } else {
        let gap = x - 1.0;
        let re = 0.25 * (4.0 * x / (gap * gap + y * y)).ln_1p();
        (re, 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y))
    };
    c(re.copysign(a), im.copysign(b))
}

/// The inverse sine; the cuts are the real axis beyond ±1.
pub fn asin(z: C64) -> C64 {
    over_i(asinh(times_i(z)))
}

/// The inverse tangent; the cuts are the imaginary axis beyond ±i.
pub fn atan(z: C64) -> C64 {
    over_i(atanh(times_i(z)))
}
