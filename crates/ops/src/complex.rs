//! Elementary functions on complex numbers, in double precision.
//!
//! The special values are those of the Python array API standard, which are those of C99 Annex G;
//! the branch cuts follow the signs of zeros. Nothing overflows or underflows on the way to a
//! result that does not. Single precision is served by widening to `f64` and rounding back.
//! Sine, cosine, tangent and their inverses are the hyperbolic functions of the rotated argument,
//! so that each table of special values is written once. Errors are measured in `tests/complex.rs`.

mod hyperbolic;
mod inverse;
mod power;
mod root;

use num_complex::Complex;
use std::f64::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E};

pub use hyperbolic::{cos, cosh, sin, sinh, tan, tanh};
pub use inverse::{acos, acosh, asin, asinh, atan, atanh};
pub use power::pow;
pub use root::{abs, modulus, root, rsqrt, sqrt};

/// A complex number in double precision.
pub type C64 = Complex<f64>;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// What `LN_2` lacks of the logarithm of two.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;

/// Above this, `exp` must be applied in steps, so that a small factor can bring the product back.
const EXP_STEP: f64 = 708.0;

fn c(re: f64, im: f64) -> C64 {
    C64::new(re, im)
}

/// The product with i, without arithmetic on the parts: a zero keeps its meaning.
fn times_i(z: C64) -> C64 {
    c(-z.im, z.re)
}

/// The product with -i, likewise.
fn over_i(z: C64) -> C64 {
    c(z.im, -z.re)
}

/// The sum and its rounding error, whatever the order of magnitudes.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// The product and its rounding error.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// `a * b + c * d` with an error of about one ulp, also when the products cancel.
fn sum_of_products(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let (product, error) = two_product(c, d);
    let sum = a.mul_add(b, product);
    // Adding a zero error would turn the sum -0 into +0.
    if error == 0.0 { sum } else { sum + error }
}

/// The binary exponent of a finite nonzero number.
fn exponent(x: f64) -> i32 {
    libm::ilogb(x)
}

fn scale(z: C64, by: i32) -> C64 {
    c(libm::scalbn(z.re, by), libm::scalbn(z.im, by))
}

/// `factor * exp(x)` where the exponential alone may overflow or underflow.
fn times_exp(factor: f64, x: f64) -> f64 {
    let mut product = factor;
    let mut rest = x;
    while rest.abs() > EXP_STEP && product.is_finite() && product != 0.0 {
        let step = EXP_STEP.copysign(rest);
        product *= step.exp();
        rest -= step;
    }
    product * rest.exp()
}

/// `exp` where one part is infinite or NaN, or the imaginary part zero; `None` elsewhere.
/// `real` is the exponential of real numbers to the base in question.
fn exp_special(z: C64, real: fn(f64) -> f64) -> Option<C64> {
    if z.im == 0.0 {
        return Some(c(real(z.re), z.im));
    }
    if z.re.is_nan() {
        return Some(c(NAN, NAN));
    }
    if !z.im.is_finite() {
        return Some(match z.re {
            f64::NEG_INFINITY => c(0.0, 0.0),
            INF => c(INF, NAN),
            _ => c(NAN, NAN),
        });
    }
    None
}

/// The exponential.
pub fn exp(z: C64) -> C64 {
    if let Some(special) = exp_special(z, f64::exp) {
        return special;
    }
    let (sin, cos) = z.im.sin_cos();
    if z.re.abs() <= EXP_STEP || z.re.is_infinite() {
        let modulus = z.re.exp();
        return c(modulus * cos, modulus * sin);
    }
    c(times_exp(cos, z.re), times_exp(sin, z.re))
}

/// Two to the power of `z`. Beyond an imaginary part of 2⁵³ the angle loses its precision.
pub fn exp2(z: C64) -> C64 {
    if let Some(special) = exp_special(z, f64::exp2) {
        return special;
    }
    // The angle is rounded to two doubles: one ulp of a large angle is visible in the result.
    let (high, error) = two_product(z.im, LN_2);
    let turn = cis(high, z.im.mul_add(LN_2_LOW, error));
    if z.re.is_infinite() {
        let modulus = z.re.exp2();
        return c(modulus * turn.re, modulus * turn.im);
    }
    // The whole powers of two go on last, as they cannot round before the result does.
    let whole = z.re.round_ties_even().clamp(-4000.0, 4000.0);
    let modulus = (z.re - whole).exp2();
    scale(c(modulus * turn.re, modulus * turn.im), whole as i32)
}

/// The unit number at the angle `high + low`.
fn cis(high: f64, low: f64) -> C64 {
    let (sin, cos) = high.sin_cos();
    let (sin_low, cos_low) = low.sin_cos();
    c(cos * cos_low - sin * sin_low, sin * cos_low + cos * sin_low)
}

/// `exp(z) - 1` without cancellation at zero.
pub fn expm1(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b == 0.0 {
        // The sum makes the real part of both zeros +0, as the standard has it.
        return c(a.exp_m1() + 0.0, b);
    }
    if a == f64::NEG_INFINITY {
        return c(-1.0, if b.is_finite() { 0.0 * b.sin() } else { 0.0 });
    }
    if a > EXP_STEP || !a.is_finite() || !b.is_finite() {
        return exp(z);
    }
    let (sin, cos) = b.sin_cos();
    // exp(a) cos(b) - 1 = expm1(a) cos(b) + (cos(b) - 1), and the bracket is -2 sin²(b/2).
    let half = (0.5 * b).sin();
    c(sum_of_products(a.exp_m1(), cos, -2.0 * half, half), a.exp() * sin)
}

/// A base of logarithms: its logarithm of real numbers, that of e and that of two.
struct Base {
    log: fn(f64) -> f64,
    of_e: f64,
    of_two: f64,
}

const NATURAL: Base = Base { log: f64::ln, of_e: 1.0, of_two: LN_2 };
const BINARY: Base = Base { log: f64::log2, of_e: LOG2_E, of_two: 1.0 };
const DECIMAL: Base = Base { log: f64::log10, of_e: LOG10_E, of_two: LOG10_2 };

/// The logarithm of the modulus of `a + bi`.
fn log_modulus(a: f64, b: f64, base: &Base) -> f64 {
    let (large, small) = (a.abs().max(b.abs()), a.abs().min(b.abs()));
    if (0.5..3.0).contains(&(a * a + b * b)) {
        // Near the unit circle the logarithm is that of 1 + x, and x = |z|² - 1 needs all its bits.
        let (p, p_low) = two_product(large, large);
        let (q, q_low) = two_product(small, small);
        let (sum, first) = two_sum(p, -1.0);
        let (sum, second) = two_sum(sum, q);
        return 0.5 * (sum + (first + second + p_low + q_low)).ln_1p() * base.of_e;
    }
    // Moduli that would overflow, or be subnormal and so imprecise, are scaled by a power of two.
    let shift = if large > 1e300 {
        60
    } else if large < 1e-280 {
        -120
    } else {
        0
    };
    if shift == 0 || large == 0.0 || !large.is_finite() {
        return (base.log)(a.hypot(b));
    }
    let scaled = scale(c(a, b), -shift);
    (base.log)(scaled.re.hypot(scaled.im)) + f64::from(shift) * base.of_two
}

fn log_to_base(z: C64, base: &Base) -> C64 {
    c(log_modulus(z.re, z.im, base), z.im.atan2(z.re) * base.of_e)
}

/// The natural logarithm; the cut is the negative real axis.
pub fn log(z: C64) -> C64 {
    log_to_base(z, &NATURAL)
}

/// The logarithm to base two.
pub fn log2(z: C64) -> C64 {
    log_to_base(z, &BINARY)
}

/// The logarithm to base ten.
pub fn log10(z: C64) -> C64 {
    log_to_base(z, &DECIMAL)
}

/// `log(1 + z)` without cancellation at zero.
pub fn log1p(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    let shifted = 1.0 + a;
    let angle = b.atan2(shifted);
    let square = shifted * shifted + b * b;
    if !(0.5..3.0).contains(&square) {
        return c(log_modulus(shifted, b, &NATURAL), angle);
    }
    // |1 + z|² - 1 = 2a + a² + b², whose terms may cancel.
    let (p, p_low) = two_product(a, a);
    let (q, q_low) = two_product(b, b);
    let (sum, first) = two_sum(2.0 * a, p);
    let (sum, second) = two_sum(sum, q);
    let low = first + second + p_low + q_low;
    // Adding a zero would turn the sum -0 into +0.
    let excess = if low == 0.0 { sum } else { sum + low };
    c(0.5 * excess.ln_1p(), angle)
}

/// The product by its definition in real products, as NumPy has it: infinite factors are not
/// recovered from NaN parts as in Annex G.
pub fn mul(z: C64, w: C64) -> C64 {
    c(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)
}

/// The product with itself.
pub fn square(z: C64) -> C64 {
    mul(z, z)
}

/// The quotient. Division by zero and infinite or NaN parts give what NumPy gives.
pub fn div(z: C64, w: C64) -> C64 {
    let top = z.re.abs().max(z.im.abs());
    let bottom = w.re.abs().max(w.im.abs());
    let ordinary = z.re.is_finite() && z.im.is_finite() && w.re.is_finite() && w.im.is_finite();
    if !ordinary || top == 0.0 || bottom == 0.0 {
        return div_by_ratio(z, w);
    }
    // Both are brought to a largest part in [1, 2), so no square or product can overflow.
    let (up, down) = (exponent(top), exponent(bottom));
    let (n, d) = (scale(z, -up), scale(w, -down));
    let norm = d.re * d.re + d.im * d.im;
    let re = sum_of_products(n.re, d.re, n.im, d.im) / norm;
    let im = sum_of_products(n.im, d.re, -n.re, d.im) / norm;
    scale(c(re, im), up - down)
}

/// The quotient by the ratio of the divisor's parts (Smith), which decides the special values.
fn div_by_ratio(z: C64, w: C64) -> C64 {
    if w.re.abs() >= w.im.abs() {
        if w.re == 0.0 && w.im == 0.0 {
            return c(z.re / w.re.abs(), z.im / w.re.abs());
        }
        let ratio = w.im / w.re;
        let factor = 1.0 / (w.re + w.im * ratio);
        c((z.re + z.im * ratio) * factor, (z.im - z.re * ratio) * factor)
    } else {
        let ratio = w.re / w.im;
        let factor = 1.0 / (w.im + w.re * ratio);
        c((z.re * ratio + z.im) * factor, (z.im * ratio - z.re) * factor)
    }
}

/// One over `z`. The one is real, so the parts keep the signs of the conjugate also when zero; of
/// zero itself it is what `div` makes of it.
pub fn reciprocal(z: C64) -> C64 {
    let large = z.re.abs().max(z.im.abs());
    if large == 0.0 {
        return div_by_ratio(c(1.0, 0.0), z);
    }
    if !(z.re.is_finite() && z.im.is_finite()) {
        let both = z.re.is_infinite() && z.im.is_infinite();
        let lost = both || z.re.is_nan() || z.im.is_nan();
        return if lost { c(NAN, NAN) } else { c(0.0f64.copysign(z.re), -0.0f64.copysign(z.im)) };
    }
    let down = exponent(large);
    let d = scale(z, -down);
    let norm = d.re * d.re + d.im * d.im;
    scale(c(d.re / norm, -d.im / norm), -down)
}

/// `z / |z|`, and zero at zero. One infinite part gives the direction of that axis, as in NumPy.
pub fn sign(z: C64) -> C64 {
    let large = z.re.abs().max(z.im.abs());
    if z.re.is_nan() || z.im.is_nan() || (z.re.is_infinite() && z.im.is_infinite()) {
        return c(NAN, NAN);
    }
    if large == 0.0 {
        return c(0.0, 0.0);
    }
    if large.is_infinite() {
        let part = |x: f64| if x.is_infinite() { 1.0f64.copysign(x) } else { 0.0 };
        return c(part(z.re), part(z.im));
    }
    let scaled = scale(z, -exponent(large));
    let modulus = abs(scaled);
    c(scaled.re / modulus, scaled.im / modulus)
}

/// Each part to the nearest integer, halves to the even one.
pub fn round(z: C64) -> C64 {
    c(z.re.round_ties_even(), z.im.round_ties_even())
}

/// `1 / (1 + exp(-z))`.
pub fn sigmoid(z: C64) -> C64 {
    if z.im == 0.0 {
        // The derivative on the real axis is positive, so the zero keeps its sign.
        let small = (-z.re.abs()).exp();
        return c(if z.re < 0.0 { small } else { 1.0 } / (1.0 + small), z.im);
    }
    if z.re < 0.0 {
        // exp(z) / (1 + exp(z)): the small numerator keeps the relative precision of the tail.
        return div(exp(z), one_plus_exp(z));
    }
    reciprocal(one_plus_exp(-z))
}

/// `1 + exp(z)` for a real part that is not positive, precise near its zeros at odd multiples of πi.
fn one_plus_exp(z: C64) -> C64 {
    if !z.re.is_finite() || !z.im.is_finite() {
        let w = exp(z);
        return c(1.0 + w.re, w.im);
    }
    let (sin, cos) = z.im.sin_cos();
    let half = (0.5 * z.im).cos();
    c(sum_of_products(z.re.exp_m1(), cos, 2.0 * half, half), z.re.exp() * sin)
}
