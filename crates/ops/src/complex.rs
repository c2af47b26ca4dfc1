//! Elementary functions on complex numbers, in double precision.
//!
//! The special values are those of the Python array API standard, which are those of C99 Annex G;
//! the branch cuts follow the signs of zeros. Nothing overflows or underflows on the way to a
//! result that does not. Single precision is served by widening to `f64` and rounding back.
//! Sine, cosine, tangent and their inverses are the hyperbolic functions of the rotated argument,
//! so that each table of special values is written once. Errors are measured in `tests/complex.rs`.

use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_2, LOG10_E, PI};

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

/// `factor * exp(x)` where the exponential alone may overflow or underflow; `|factor| <= 1`.
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
        return c(a.exp_m1(), b);
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

/// The square root in the right half plane; the cut is the negative real axis.
pub fn sqrt(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b.is_infinite() {
        return c(INF, b);
    }
    if a == 0.0 && b == 0.0 {
        return c(0.0, b);
    }
    if a.is_infinite() {
        let other = if b.is_nan() { NAN } else { 0.0 };
        return if a > 0.0 { c(a, other.copysign(b)) } else { c(other, INF.copysign(b)) };
    }
    if a.is_nan() || b.is_nan() {
        return c(NAN, NAN);
    }
    // An even power of two is taken out and its root put back, both without rounding.
    let large = a.abs().max(b.abs());
    let half_shift = if (1e-290..1e300).contains(&large) { 0 } else { exponent(large) / 2 };
    let scaled = scale(z, -2 * half_shift);
    let root = (0.5 * (scaled.re.abs() + scaled.re.hypot(scaled.im))).sqrt();
    let other = scaled.im / (2.0 * root);
    let result = if a >= 0.0 { c(root, other) } else { c(other.abs(), root.copysign(b)) };
    scale(result, half_shift)
}

/// One over the square root.
pub fn rsqrt(z: C64) -> C64 {
    reciprocal(sqrt(z))
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
    c(times_exp((0.5 * cos).copysign(cos * a), a.abs()), times_exp(0.5 * sin, a.abs()))
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
    c(times_exp(0.5 * cos, a.abs()), times_exp((0.5 * sin).copysign(sin * a), a.abs()))
}

/// The hyperbolic tangent.
pub fn tanh(z: C64) -> C64 {
    let (a, b) = (z.re, z.im);
    if b == 0.0 {
        return c(a.tanh(), b);
    }
    if a.is_infinite() {
        // The sign that the imaginary part has on the way to infinity.
        let sign = if b.is_finite() { (2.0 * b).sin() } else { b };
        let zero = if sign.is_nan() { 0.0 } else { 0.0f64.copysign(sign) };
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

/// The modulus.
pub fn abs(z: C64) -> f64 {
    z.re.hypot(z.im)
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

/// A real number as an unevaluated sum of two doubles: some 106 bits.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    fn new(high: f64, low: f64) -> Double {
        let (high, low) = two_sum(high, low);
        Double { high, low }
    }

    fn add(self, other: Double) -> Double {
        let (sum, error) = two_sum(self.high, other.high);
        Double::new(sum, error + (self.low + other.low))
    }

    fn mul(self, other: Double) -> Double {
        let (product, error) = two_product(self.high, other.high);
        Double::new(product, error + (self.high * other.low + self.low * other.high))
    }

    fn neg(self) -> Double {
        Double { high: -self.high, low: -self.low }
    }

    fn div_by(self, divisor: f64) -> Double {
        let quotient = self.high / divisor;
        Double::new(quotient, ((-quotient).mul_add(divisor, self.high) + self.low) / divisor)
    }

    fn scale(self, by: i32) -> Double {
        Double { high: libm::scalbn(self.high, by), low: libm::scalbn(self.low, by) }
    }
}

/// A complex number with parts in two doubles each: powers raise an error of the logarithm by the
/// size of the exponent, so one double is not enough for it.
#[derive(Clone, Copy)]
struct Wide {
    re: Double,
    im: Double,
}

impl Wide {
    fn new(z: C64) -> Wide {
        Wide { re: Double { high: z.re, low: 0.0 }, im: Double { high: z.im, low: 0.0 } }
    }

    fn add(self, other: Wide) -> Wide {
        Wide { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    fn mul(self, other: Wide) -> Wide {
        Wide {
            re: self.re.mul(other.re).add(self.im.mul(other.im).neg()),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }

    fn scale(self, by: i32) -> Wide {
        Wide { re: self.re.scale(by), im: self.im.scale(by) }
    }

    fn high(self) -> C64 {
        c(self.re.high, self.im.high)
    }

    /// The exponential for a modulus of at most 4: a short series at z/1024, squared ten times.
    fn exp(self) -> Wide {
        let one = Wide::new(c(1.0, 0.0));
        let small = self.scale(-10);
        let mut sum = one;
        for k in (1..=8).rev() {
            let term = small.mul(sum);
            let k = f64::from(k);
            sum = one.add(Wide { re: term.re.div_by(k), im: term.im.div_by(k) });
        }
        for _ in 0..10 {
            sum = sum.mul(sum);
        }
        sum
    }

    /// The logarithm of a finite nonzero number: one Newton step from the one in double precision.
    fn log(z: C64) -> Wide {
        let shift = exponent(z.re.abs().max(z.im.abs()));
        let scaled = scale(z, -shift);
        let first = log(scaled);
        let ratio = Wide::new(scaled).mul(Wide::new(-first).exp());
        let correction = ratio.add(Wide::new(c(-1.0, 0.0))).high();
        let (high, error) = two_product(f64::from(shift), LN_2);
        let power = Double::new(high, f64::from(shift).mul_add(LN_2_LOW, error));
        let log = Wide::new(first).add(Wide::new(correction));
        Wide { re: log.re.add(power), im: log.im }
    }
}

/// The largest exponent taken by repeated squaring.
const MAX_REPEATED: f64 = 1024.0;

/// `z` to the power of `w`. Zero to a power with positive real part is zero, any power zero of a
/// number is 1, and zero to all others is NaN, as in NumPy.
pub fn pow(z: C64, w: C64) -> C64 {
    if w.re == 0.0 && w.im == 0.0 {
        return c(1.0, 0.0);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return if w.re > 0.0 { c(0.0, 0.0) } else { c(NAN, NAN) };
    }
    let real = w.im == 0.0;
    if real && w.re == 1.0 {
        return z;
    }
    if !(z.re.is_finite() && z.im.is_finite() && w.re.is_finite() && w.im.is_finite()) {
        let log = log(z);
        // A real exponent multiplies each part, so that an infinite one is not spoilt by zero.
        return exp(if real { c(w.re * log.re, w.re * log.im) } else { mul(w, log) });
    }
    let whole = real && w.re.fract() == 0.0;
    if real && z.im == 0.0 && (whole || z.re > 0.0) {
        // The zero takes the sign of the derivative, which is w z^(w-1).
        let slope = w.re * z.re.signum() * if w.re % 2.0 == 0.0 { 1.0 } else { z.re.signum() };
        return c(z.re.powf(w.re), z.im * slope.signum());
    }
    if whole && w.re.abs() <= MAX_REPEATED {
        return pow_repeated(z, w.re as i32);
    }
    let log = Wide::log(z);
    let power = Wide::new(w).mul(log);
    let turn = cis(power.im.high, power.im.low);
    let (re, im) = (times_exp(turn.re, power.re.high), times_exp(turn.im, power.re.high));
    let rest = power.re.low;
    if rest.is_finite() { c(re + re * rest, im + im * rest) } else { c(re, im) }
}

/// An integer power by squaring in two doubles, with the powers of two kept apart.
fn pow_repeated(z: C64, n: i32) -> C64 {
    let normal = |v: Wide, e: i32| {
        let shift = exponent(v.re.high.abs().max(v.im.high.abs()));
        (v.scale(-shift), e + shift)
    };
    let (mut base, mut base_exponent) = normal(Wide::new(z), 0);
    let (mut result, mut result_exponent) = (Wide::new(c(1.0, 0.0)), 0);
    let mut rest = n.unsigned_abs();
    loop {
        if rest & 1 == 1 {
            (result, result_exponent) = normal(result.mul(base), result_exponent + base_exponent);
        }
        rest >>= 1;
        if rest == 0 {
            break;
        }
        (base, base_exponent) = normal(base.mul(base), 2 * base_exponent);
    }
    let value = result.high();
    if n < 0 { scale(reciprocal(value), -result_exponent) } else { scale(value, result_exponent) }
}
