//! Sine, cosine and tangent, the hyperbolic ones and, by turning the plane, those of angles.

use super::{C64, EXP_STEP, INF, NAN, c, over_i, times_exp, times_i};

/// `factor * exp(x) / 2` where `x` is beyond [`EXP_STEP`]: halved behind the first step, since half of the
/// least number is zero.
fn times_half_exp(factor: f64, x: f64) -> f64 {
    times_exp(factor * EXP_STEP.exp() * 0.5, x - EXP_STEP)
}

/// The hyperbolic sine.
pub fn sinh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b == 0.0 {
        return c(a.sinh(), b);
    }
    if !b.is_finite() {
        return if a == 0.0 || a.is_infinite() { c(a, NAN) } else { c(NAN, NAN) };
    }
    let (sin, cos) = b.sin_cos();
    if a.abs() <= EXP_STEP || !a.is_finite() {
        return c(a.sinh() * cos, a.cosh() * sin);
    }
    c(times_half_exp(cos.copysign(cos * a), a.abs()), times_half_exp(sin, a.abs()))
}

/// The hyperbolic cosine.
pub fn cosh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b == 0.0 {
        return c(a.cosh(), if a.is_sign_negative() { -b } else { b });
    }
    if !b.is_finite() {
        return match a {
            0.0 => c(NAN, 0.0),
            _ if a.is_infinite() => c(INF, NAN),
            _ => c(NAN, NAN),
        };
    }
    let (sin, cos) = b.sin_cos();
    if a.abs() <= EXP_STEP || !a.is_finite() {
        return c(a.cosh() * cos, a.sinh() * sin);
    }
    c(times_half_exp(cos, a.abs()), times_half_exp(sin.copysign(sin * a), a.abs()))
}

/// The hyperbolic tangent.
pub fn tanh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b == 0.0 {
        return c(a.tanh(), b);
    }
    if a.is_infinite() {
        // The standard's zero has the sign of b, where C99's has that of sin(2b).
        let zero = if b.is_nan() { 0.0 } else { 0.0f64.copysign(b) };
        return c(1.0f64.copysign(a), zero);
    }
    if !b.is_finite() {
        return c(if a == 0.0 { a } else { NAN }, NAN);
    }
    let (sin, cos) = b.sin_cos();
    if a.abs() > 22.0 {
        // The real part is 1 to all bits, and the squares below would overflow.
        return c(1.0f64.copysign(a), times_exp(sin * cos, -2.0 * a.abs()) * 4.0);
    }
    let sinh = a.sinh();
    let modulus = sinh * sinh + cos * cos;
    c(sinh * a.cosh() / modulus, sin * cos / modulus)
}

/// The sine.
pub fn sin(z: C64) -> C64 {
    over_i(sinh(times_i(z)))
}

/// The cosine.
pub fn cos(z: C64) -> C64 {
    cosh(times_i(z))
}

/// The tangent.
pub fn tan(z: C64) -> C64 {
    over_i(tanh(times_i(z)))
}
