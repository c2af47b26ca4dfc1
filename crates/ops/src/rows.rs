//! The table of operations: one row says everything that is particular to one operation.
//!
//! To add an operation, add a row (see `docs/add-an-operation.md`). Everything else follows from
//! it: the reference backend, CPU and CUDA kernels, Rust methods, Python functions, documentation
//! and tests. The grammar of a row is in `table.rs`; the functions that meanings are made of
//! are in [`crate::scalar`], [`crate::special`] and [`crate::complex`].

use num_complex::Complex;

use crate::algebra::Term;
use crate::complex as cx;
use crate::dtype::Class;
use crate::op::Tolerance::{Exact, Fused, Ulp};
use crate::op::{Bool, Column, Entry, Gives, Ints, Op, Part, Row, Same};
use crate::scalar::{Int, Real, Value};
use crate::special as sp;

impl Id {
    /// Its row.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The operation with this public name.
    pub fn named(name: &str) -> Option<Id> {
        Id::ALL.into_iter().find(|id| id.row().name == name)
    }
}

fn operands<'a, const N: usize>(x: &[Term<'a>]) -> [Term<'a>; N] {
    std::array::from_fn(|i| x[i])
}

/// The slope of y = sin(a) / a: (cos(a) - y) / a, which cancels near zero, where it is a series.
fn sinc_slope<'a>(a: Term<'a>, y: Term<'a>) -> Term<'a> {
    // (-1)^k 2k / (2k + 1)!: below one half, what is left out is less than a rounding of float64.
    const SERIES: [f64; 7] = [
        -1.0 / 3.0,
        1.0 / 30.0,
        -1.0 / 840.0,
        1.0 / 45_360.0,
        -1.0 / 3_991_680.0,
        1.0 / 518_918_400.0,
        -1.0 / 93_405_312_000.0,
    ];
    let (square, near) = (a * a, a.f(Id::Abs).lt(0.5));
    let [.., last] = SERIES;
    let terms = SERIES.iter().rev().skip(1);
    let series = a * terms.fold(a.constant(last), |sum, &term| sum * square + term);
    // Derivatives of what is not chosen are finite too.
    let far = (a.f(Id::Cos) - y) / a.constant(1.0).or_else(near, a);
    series.or_else(near, far)
}

const LN_2: f64 = std::f64::consts::LN_2;
const LN_10: f64 = std::f64::consts::LN_10;
const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;

ops! { $
    // Arithmetic.

    /// Sum.
    Add add [a, b] -> Same { bool: a | b; int signless: a.wrapping_add(b); real: a + b; complex: a.plus(b); }
        cuda "a + b"; grad |y, g| [g, g]; test [-1e3..1e3], Exact;

    /// Difference.
    Subtract subtract [a, b] -> Same { int signless: a.wrapping_sub(b); real: a - b; complex: Complex::new(a.re - b.re, a.im - b.im); }
        cuda "a - b"; grad |y, g| [g, -g]; test [-1e3..1e3], Exact;

    /// Product.
    Multiply multiply [a, b] -> Same { bool: a & b; int signless: a.wrapping_mul(b); real: a * b; complex: a.times(b); }
        cuda "a * b"; grad |y, g| [g * b, g * a]; test [-1e3..1e3], Fused;

    /// Quotient; integers are divided as float64.
    Divide divide [a, b] -> Same double { real: a / b; complex calls: T::lift2(a, b, cx::div); }
        cuda "a / b"; grad |y, g| [g / b, -(g * y / b)]; test [-1e3..1e3, 0.1..1e3], Exact;

    /// Quotient rounded down, as Python's `//`; integers divided by zero give 0.
    FloorDivide floor_divide [a, b] -> Same { int calls: a.floor_divide(b); real: a.floor_divide(b); }
        cuda "floor_divide(a, b)"; grad |y, g| [g.zero(), g.zero()]; test [-1e3..1e3, 0.7..1e2], Exact;

    /// What floor division leaves, with the sign of the divisor, as Python's `%`.
    Remainder remainder [a, b] -> Same { int calls: a.remainder(b); real: a.remainder(b); }
        cuda "remainder(a, b)"; grad |y, g| [g, -(g * a.f2(Id::FloorDivide, b))]; test [-1e3..1e3, 0.7..1e2], Exact;

    /// `a * b + c`, rounded once.
    Fma fma [a, b, c] -> Same { int signless: a.wrapping_mul(b).wrapping_add(c); real: a.mul_add(b, c); complex: a.times(b).plus(c); }
        cuda "fma(a, b, c)"; grad |y, g| [g * b, g * a, g]; test [-1e3..1e3], Fused;

    /// Opposite.
    Negative negative [a] -> Same { int signless: a.wrapping_neg(); real: -a; complex: Complex::new(-a.re, -a.im); }
        cuda "-a"; grad |y, g| [-g]; test [-1e3..1e3], Exact;

    /// The operand itself.
    Positive positive [a] -> Same { bool: a; int signless: a; real: a; complex: a; }
        cuda "a"; grad |y, g| [g]; test [-1e3..1e3], Exact;

    /// Absolute value; the modulus of complex numbers.
    Abs abs [a] -> Part { bool: a; int: a.wrapping_abs(); real: a.abs(); complex: T::of(cx::modulus(Complex::new(a.re.f64(), a.im.f64()), T::SQUARES_FIT)); }
        cuda "abs(a)"; grad |y, g| [g * a.f(Id::Sign)]; test [-1e3..1e3], Ulp(1.0);

    /// -1, 0 or 1; a / |a| for complex numbers; NaN stays NaN.
    Sign sign [a] -> Same {
        int: a.signum();
        real: if a > T::ZERO { T::ONE } else if a < T::ZERO { -T::ONE } else if a == T::ZERO { T::ZERO } else { a };
        complex calls: T::lift(a, cx::sign);
    }
        cuda "sign(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Ulp(2.0);

    /// Square.
    Square square [a] -> Same { int signless: a.wrapping_mul(a); real: a * a; complex: a.times(a); }
        cuda "a * a"; grad |y, g| [g * (2.0 * a)]; test [-1e3..1e3], Fused;

    /// One over the operand.
    Reciprocal reciprocal [a] -> Same { real: T::ONE / a; complex calls: T::lift(a, cx::reciprocal); }
        cuda "reciprocal(a)"; grad |y, g| [-(g * y * y)]; test [0.1..1e3], Ulp(2.0);

    /// Square root.
    Sqrt sqrt [a] -> Same { real: a.sqrt(); complex: T::lift(a, |z| cx::root(z, T::SQUARES_FIT)); }
        cuda "sqrt(a)"; grad |y, g| [g * 0.5 / y]; test [0.1..1e3], Ulp(2.0);

    /// One over the square root.
    Rsqrt rsqrt [a] -> Same { real: a.by(|x| 1.0 / x.sqrt()); complex calls: T::lift(a, cx::rsqrt); }
        cuda "rsqrt(a)"; grad |y, g| [g * -0.5 * y * y * y]; test [0.1..1e3], Ulp(2.0);

    /// Cube root.
    Cbrt cbrt [a] -> Same { real calls: a.by(f64::cbrt); }
        cuda "cbrt(a)"; grad |y, g| [g / (3.0 * y * y)]; test [0.1..1e3], Ulp(2.0);

    /// `a` to the power of `b`; integers refuse negative powers.
    Pow pow [a, b] -> Same natural { int calls: a.wrapping_pow(b); real calls: a.by2(b, f64::powf); complex calls: T::lift2(a, b, cx::pow); }
        cuda "pow(a, b)"; grad |y, g| [g * b * a.f2(Id::Pow, b - 1.0), (g * y * a.f(Id::Log)).only_where(a.f2(Id::NotEqual, 0.0))]; test [0.1..10.0, -3.0..3.0], Ulp(4.0);

    /// Length of the hypotenuse, without overflow.
    Hypot hypot [a, b] -> Same { real calls: a.by2(b, f64::hypot); }
        cuda "hypot(a, b)"; grad |y, g| [g * (a / y).only_where(y.f2(Id::NotEqual, 0.0)), g * (b / y).only_where(y.f2(Id::NotEqual, 0.0))]; test [0.1..1e3], Ulp(2.0);

    // Choosing and bounding.

    /// The larger; NaN if either is.
    Maximum maximum [a, b] -> Same { bool: a | b; int: if a > b { a } else { b }; real: if a > b || a.is_nan() { a } else { b }; complex: if b.precedes(a) || a.is_nan() { a } else { b }; }
        cuda "maximum(a, b)"; grad |y, g| [g.only_where(b.lt(a)), g.only_where(a.le(b))]; test [-1e3..1e3], Exact;

    /// The smaller; NaN if either is.
    Minimum minimum [a, b] -> Same { bool: a & b; int: if a < b { a } else { b }; real: if a < b || a.is_nan() { a } else { b }; complex: if a.precedes(b) || a.is_nan() { a } else { b }; }
        cuda "minimum(a, b)"; grad |y, g| [g.only_where(a.lt(b)), g.only_where(b.le(a))]; test [-1e3..1e3], Exact;

    /// `a` held between `low` and `high`; `high` wins where they cross, NaN anywhere gives NaN.
    Clip clip [a, low, high] -> Same between {
        int: { let up = if a < low { low } else { a }; if up > high { high } else { up } };
        real: { let up = if a < low || low.is_nan() { low } else { a }; if up > high || high.is_nan() { high } else { up } };
    }
        cuda "clip(a, low, high)";
        grad |y, g| [g.only_where(low.le(a)).only_where(a.le(high)), g.only_where(a.lt(low)).only_where(low.le(high)), g.only_where(high.lt(a.f2(Id::Maximum, low)))];
        test [-1e3..1e3, -9e2..1e2, -1e2..9e2], Exact;

    /// Zero where negative; NaN stays NaN.
    Relu relu [a] -> Same { int: if a < T::ZERO { T::ZERO } else { a }; real: if a < T::ZERO { T::ZERO } else { a }; }
        cuda "a < 0 ? 0 : a"; grad |y, g| [g.only_where(a.constant(0.0).le(a))]; test [-1e3..1e3], Exact;

    /// 0 where negative, else 1.
    Step step [a] -> Same { int: if a < T::ZERO { T::ZERO } else { T::ONE }; real: if a < T::ZERO { T::ZERO } else { T::ONE }; }
        cuda "a < 0 ? 0 : 1"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    // Rounding.

    /// The largest integer that is not above.
    Floor floor [a] -> Same { int signless: a; real: a.floor(); }
        cuda "floor(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    /// The smallest integer that is not below.
    Ceil ceil [a] -> Same { int signless: a; real: a.ceil(); }
        cuda "ceil(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    /// The integer next to it towards zero.
    Trunc trunc [a] -> Same { int signless: a; real: a.trunc(); }
        cuda "trunc(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    /// The nearest integer, halves to even.
    Round round [a] -> Same { int signless: a; real: a.round_half_even(); complex: Complex::new(a.re.round_half_even(), a.im.round_half_even()); }
        cuda "rint(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    /// The nearest integer, halves away from zero.
    RoundAway round_away [a] -> Same { int signless: a; real: a.round_half_away(); }
        cuda "round(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    // Exponentials and logarithms.

    /// e to the power of the operand.
    Exp exp [a] -> Same { real calls: a.by(f64::exp); complex calls: T::lift(a, cx::exp); }
        cuda "exp(a)"; grad |y, g| [g * y]; test [-20.0..20.0], Ulp(2.0);

    /// 2 to the power of the operand.
    Exp2 exp2 [a] -> Same { real calls: a.by(f64::exp2); complex calls: T::lift(a, cx::exp2); }
        cuda "exp2(a)"; grad |y, g| [g * y * LN_2]; test [-30.0..30.0], Ulp(2.0);

    /// e to the power of the operand, minus one, accurate near zero.
    Expm1 expm1 [a] -> Same { real calls: a.by(f64::exp_m1); complex calls: T::lift(a, cx::expm1); }
        cuda "expm1(a)"; grad |y, g| [g * (y + 1.0)]; test [-20.0..20.0], Ulp(2.0);

    /// Natural logarithm.
    Log log [a] -> Same { real calls: a.by(f64::ln); complex calls: T::lift(a, cx::log); }
        cuda "log(a)"; grad |y, g| [g / a]; test [0.01..1e3], Ulp(2.0);

    /// Natural logarithm of one plus the operand, accurate near zero.
    Log1p log1p [a] -> Same { real calls: a.by(f64::ln_1p); complex calls: T::lift(a, cx::log1p); }
        cuda "log1p(a)"; grad |y, g| [g / (a + 1.0)]; test [-0.9..1e3], Ulp(2.0);

    /// Logarithm to base 2.
    Log2 log2 [a] -> Same { real calls: a.by(f64::log2); complex calls: T::lift(a, cx::log2); }
        cuda "log2(a)"; grad |y, g| [g / (a * LN_2)]; test [0.01..1e3], Ulp(2.0);

    /// Logarithm to base 10.
    Log10 log10 [a] -> Same { real calls: a.by(f64::log10); complex calls: T::lift(a, cx::log10); }
        cuda "log10(a)"; grad |y, g| [g / (a * LN_10)]; test [0.01..1e3], Ulp(3.0);

    /// Logarithm of e^a + e^b, without overflow.
    LogAddExp logaddexp [a, b] -> Same { real calls: a.by2(b, sp::logaddexp); }
        cuda "logaddexp(a, b)"; grad |y, g| [g * (a - y).f(Id::Exp), g * (b - y).f(Id::Exp)]; test [-80.0..80.0], Ulp(3.0);

    /// 1 / (1 + e^-a), without overflow.
    Sigmoid sigmoid [a] -> Same { real calls: a.by(sp::sigmoid); complex calls: T::lift(a, cx::sigmoid); }
        cuda "sigmoid(a)"; grad |y, g| [g * y * (1.0 - y)]; test [-20.0..20.0], Ulp(4.0);

    /// a log(a), 0 at 0.
    XLogX xlogx [a] -> Same { real calls: if a == T::ZERO { T::ZERO } else { a.by(|x| x * x.ln()) }; }
        cuda "a == 0 ? 0 : a * log(a)"; grad |y, g| [g * (a.f(Id::Log) + 1.0)]; test [0.01..1e3], Ulp(4.0);

    /// The error function.
    Erf erf [a] -> Same { real calls: a.by(libm::erf); }
        cuda "erf(a)"; grad |y, g| [g * (-(a * a)).f(Id::Exp) * TWO_OVER_SQRT_PI]; test [-4.0..4.0], Ulp(3.0);

    // Trigonometry.

    /// Sine.
    Sin sin [a] -> Same { real calls: a.by(libm::sin); complex calls: T::lift(a, cx::sin); }
        cuda "sin(a)"; grad |y, g| [g * a.f(Id::Cos)]; test [-10.0..10.0], Ulp(2.0);

    /// Cosine.
    Cos cos [a] -> Same { real calls: a.by(libm::cos); complex calls: T::lift(a, cx::cos); }
        cuda "cos(a)"; grad |y, g| [-(g * a.f(Id::Sin))]; test [-10.0..10.0], Ulp(2.0);

    /// Tangent.
    Tan tan [a] -> Same { real calls: a.by(libm::tan); complex calls: T::lift(a, cx::tan); }
        cuda "tan(a)"; grad |y, g| [g * (1.0 + y * y)]; test [-1.5..1.5], Ulp(3.0);

    /// Inverse sine.
    Asin asin [a] -> Same { real calls: a.by(f64::asin); complex calls: T::lift(a, cx::asin); }
        cuda "asin(a)"; grad |y, g| [g * (1.0 - a * a).f(Id::RsqrtOrZero)]; test [-0.95..0.95], Ulp(2.0);

    /// Inverse cosine.
    Acos acos [a] -> Same { real calls: a.by(f64::acos); complex calls: T::lift(a, cx::acos); }
        cuda "acos(a)"; grad |y, g| [-(g * (1.0 - a * a).f(Id::RsqrtOrZero))]; test [-0.95..0.95], Ulp(2.0);

    /// Inverse tangent.
    Atan atan [a] -> Same { real calls: a.by(f64::atan); complex calls: T::lift(a, cx::atan); }
        cuda "atan(a)"; grad |y, g| [g / (1.0 + a * a)]; test [-1e2..1e2], Ulp(2.0);

    /// The angle of the point with height `a` and width `b`.
    Atan2 atan2 [a, b] -> Same { real calls: a.by2(b, f64::atan2); }
        cuda "atan2(a, b)"; grad |y, g| [g * b / (a * a + b * b), -(g * a / (a * a + b * b))]; test [0.1..1e2, -1e2..1e2], Ulp(2.0);

    /// Hyperbolic sine.
    Sinh sinh [a] -> Same { real calls: a.by(f64::sinh); complex calls: T::lift(a, cx::sinh); }
        cuda "sinh(a)"; grad |y, g| [g * a.f(Id::Cosh)]; test [-20.0..20.0], Ulp(3.0);

    /// Hyperbolic cosine.
    Cosh cosh [a] -> Same { real calls: a.by(f64::cosh); complex calls: T::lift(a, cx::cosh); }
        cuda "cosh(a)"; grad |y, g| [g * a.f(Id::Sinh)]; test [-20.0..20.0], Ulp(3.0);

    /// Hyperbolic tangent.
    Tanh tanh [a] -> Same { real calls: a.by(f64::tanh); complex calls: T::lift(a, cx::tanh); }
        cuda "tanh(a)"; grad |y, g| [g * (1.0 - y * y)]; test [-8.0..8.0], Ulp(4.0);

    /// Inverse hyperbolic sine.
    Asinh asinh [a] -> Same { real calls: a.by(libm::asinh); complex calls: T::lift(a, cx::asinh); }
        cuda "asinh(a)"; grad |y, g| [g * (1.0 + a * a).f(Id::Rsqrt)]; test [-1e2..1e2], Ulp(3.0);

    /// Inverse hyperbolic cosine.
    Acosh acosh [a] -> Same { real calls: a.by(sp::acosh); complex calls: T::lift(a, cx::acosh); }
        cuda "acosh(a)"; grad |y, g| [g * (a * a - 1.0).f(Id::Rsqrt)]; test [1.01..1e2], Ulp(3.0);

    /// Inverse hyperbolic tangent.
    Atanh atanh [a] -> Same { real calls: a.by(libm::atanh); complex calls: T::lift(a, cx::atanh); }
        cuda "atanh(a)"; grad |y, g| [g / (1.0 - a * a)]; test [-0.95..0.95], Ulp(3.0);

    /// sin(a) / a, 1 at 0.
    SinXDivX sinxdivx [a] -> Same { real calls: if a == T::ZERO { T::ONE } else { a.by(|x| x.sin() / x) }; }
        cuda "a == 0 ? 1 : sin(a) / a"; grad |y, g| [g * sinc_slope(a, y)]; test [1e-5..10.0], Ulp(4.0);

    // Comparisons.

    /// Whether both are equal; NaN equals nothing.
    Equal equal [a, b] -> Bool ordered { bool: a == b; int signless: a == b; real: a == b; complex: a.re == b.re && a.im == b.im; }
        cuda "a == b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether they differ; NaN differs from everything.
    NotEqual not_equal [a, b] -> Bool ordered { bool: a != b; int signless: a != b; real: a != b; complex: a.re != b.re || a.im != b.im; }
        cuda "a != b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether `a` is smaller.
    Less less [a, b] -> Bool ordered { bool: !a & b; int: a < b; real: a < b; complex: a.precedes(b); }
        cuda "a < b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether `a` is smaller or equal.
    LessEqual less_equal [a, b] -> Bool ordered { bool: !a | b; int: a <= b; real: a <= b; complex: a.precedes(b) || a == b; }
        cuda "a <= b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether `a` is larger.
    Greater greater [a, b] -> Bool ordered { bool: a & !b; int: a > b; real: a > b; complex: b.precedes(a); }
        cuda "a > b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether `a` is larger or equal.
    GreaterEqual greater_equal [a, b] -> Bool ordered { bool: a | !b; int: a >= b; real: a >= b; complex: b.precedes(a) || a == b; }
        cuda "a >= b"; grad |y, g| [g.zero(), g.zero()]; test [-5.0..5.0], Exact;

    /// Whether it is NaN, in any part.
    IsNan isnan [a] -> Bool { bool: false; int: false; real: a.is_nan(); complex: a.is_nan(); }
        cuda "isnan(a)"; grad |y, g| [g.zero()]; test [-5.0..5.0], Exact;

    /// Whether it is infinite, in any part.
    IsInf isinf [a] -> Bool { bool: false; int: false; real: a.is_infinite(); complex: a.re.is_infinite() || a.im.is_infinite(); }
        cuda "isinf(a)"; grad |y, g| [g.zero()]; test [-5.0..5.0], Exact;

    /// Whether it is neither infinite nor NaN.
    IsFinite isfinite [a] -> Bool { bool: true; int: true; real: a.is_finite(); complex: a.re.is_finite() && a.im.is_finite(); }
        cuda "isfinite(a)"; grad |y, g| [g.zero()]; test [-5.0..5.0], Exact;

    /// Whether the sign bit is set, also of zeros and NaN.
    SignBit signbit [a] -> Bool { int: a < T::ZERO; real: a.sign_bit(); }
        cuda "signbit(a)"; grad |y, g| [g.zero()]; test [-5.0..5.0], Exact;

    // Logic and bits.

    /// Whether both are true, that is, not zero.
    LogicalAnd logical_and [a, b] -> Bool { bool: a & b; int signless: a.is_true() & b.is_true(); real: a.is_true() & b.is_true(); complex: a.is_true() & b.is_true(); }
        cuda "a != 0 && b != 0"; grad |y, g| [g.zero(), g.zero()]; test [-2.0..2.0], Exact;

    /// Whether one of them is true.
    LogicalOr logical_or [a, b] -> Bool { bool: a | b; int signless: a.is_true() | b.is_true(); real: a.is_true() | b.is_true(); complex: a.is_true() | b.is_true(); }
        cuda "a != 0 || b != 0"; grad |y, g| [g.zero(), g.zero()]; test [-2.0..2.0], Exact;

    /// Whether exactly one of them is true.
    LogicalXor logical_xor [a, b] -> Bool { bool: a ^ b; int signless: a.is_true() ^ b.is_true(); real: a.is_true() ^ b.is_true(); complex: a.is_true() ^ b.is_true(); }
        cuda "(a != 0) != (b != 0)"; grad |y, g| [g.zero(), g.zero()]; test [-2.0..2.0], Exact;

    /// Whether it is false, that is, zero.
    LogicalNot logical_not [a] -> Bool { bool: !a; int signless: !a.is_true(); real: !a.is_true(); complex: !a.is_true(); }
        cuda "a == 0"; grad |y, g| [g.zero()]; test [-2.0..2.0], Exact;

    /// Bits that both have.
    BitwiseAnd bitwise_and [a, b] -> Same { bool: a & b; int signless: a.bit_and(b); }
        cuda "a & b"; grad |y, g| []; test [-1e2..1e2], Exact;

    /// Bits that one of them has.
    BitwiseOr bitwise_or [a, b] -> Same { bool: a | b; int signless: a.bit_or(b); }
        cuda "a | b"; grad |y, g| []; test [-1e2..1e2], Exact;

    /// Bits that exactly one of them has.
    BitwiseXor bitwise_xor [a, b] -> Same { bool: a ^ b; int signless: a.bit_xor(b); }
        cuda "a ^ b"; grad |y, g| []; test [-1e2..1e2], Exact;

    /// Bits that it does not have.
    BitwiseInvert bitwise_invert [a] -> Same { bool: !a; int signless: a.bit_not(); }
        cuda "invert(a)"; grad |y, g| []; test [-1e2..1e2], Exact;

    /// Bits moved up by `b` places; 0 for negative or too large amounts.
    LeftShift bitwise_left_shift [a, b] -> Same { int signless: a.shift_left(b); }
        cuda "shift_left(a, b)"; grad |y, g| []; test [-1e2..1e2, -2.0..70.0], Exact;

    /// Bits moved down by `b` places, keeping the sign.
    RightShift bitwise_right_shift [a, b] -> Same { int: a.shift_right(b); }
        cuda "shift_right(a, b)"; grad |y, g| []; test [-1e2..1e2, -2.0..70.0], Exact;

    // Floating-point representation and complex parts.

    /// Magnitude of `a` with the sign of `b`.
    CopySign copysign [a, b] -> Same { real: a.copysign(b); }
        cuda "copysign(a, b)"; grad |y, g| [g * (a.f(Id::Sign) * a.f2(Id::CopySign, b).f(Id::Sign)), g.zero()]; test [-1e3..1e3], Exact;

    /// The next number after `a` towards `b`.
    NextAfter nextafter [a, b] -> Same not_half { real: a.next_after(b); }
        cuda "nextafter(a, b)"; grad |y, g| [g, g.zero()]; test [-1e3..1e3], Exact;

    /// Complex conjugate; real numbers are their own.
    Conj conj [a] -> Same { bool: a; int signless: a; real: a; complex: Complex::new(a.re, -a.im); }
        cuda "conj(a)"; grad |y, g| [g]; test [-1e3..1e3], Exact;

    /// Real part.
    RealPart real [a] -> Part { bool: a; int: a; real: a; complex: a.re; }
        cuda "real(a)"; grad |y, g| [g]; test [-1e3..1e3], Exact;

    /// Imaginary part; zero for real numbers.
    ImagPart imag [a] -> Part { bool: false; int: T::ZERO; real: T::ZERO; complex: a.im; }
        cuda "imag(a)"; grad |y, g| [g.zero()]; test [-1e3..1e3], Exact;

    // Meanings that formulas over pairs have and arrays have not.

    /// One over the square root, 0 at 0.
    RsqrtOrZero rsqrt_or_zero [a] -> Same inner { real: if a == T::ZERO { T::ZERO } else { a.by(|x| 1.0 / x.sqrt()) }; }
        cuda "a == 0 ? 0 : rsqrt(a)"; grad |y, g| [g * -0.5 * y * y * y]; test [0.1..1e3], Ulp(2.0);

    /// Square root, whose derivative at 0 is 0.
    SqrtFlat sqrt_flat [a] -> Same inner { real: a.sqrt(); }
        cuda "sqrt(a)"; grad |y, g| [g * 0.5 * a.f(Id::RsqrtOrZero)]; test [0.1..1e3], Ulp(2.0);

    /// `a - n floor((a - offset) / n)`: `a` moved by multiples of `n` into [offset, offset + n).
    ModFrom mod_from [a, n, offset] -> Same inner { real: a - n * ((a - offset) / n).floor(); }
        cuda "a - n * floor((a - offset) / n)";
        grad |y, g| [g, -(g * ((a - offset) / n).f(Id::Floor)), g.zero()]; test [-1e2..1e2, 0.7..9.0, -3.0..3.0], Exact;

    /// The larger, where NaN never wins.
    FMax fmax [a, b] -> Same { int: if a > b { a } else { b }; real: if a >= b || b.is_nan() { a } else { b }; }
        cuda "a >= b || b != b ? a : b"; grad |y, g| [g.only_where(b.le(a)), g.only_where(a.lt(b))]; test [-1e3..1e3], Exact;

    /// The smaller, where NaN never wins.
    FMin fmin [a, b] -> Same { int: if a < b { a } else { b }; real: if a <= b || b.is_nan() { a } else { b }; }
        cuda "a <= b || b != b ? a : b"; grad |y, g| [g.only_where(a.le(b)), g.only_where(b.lt(a))]; test [-1e3..1e3], Exact;

    // Cheaper forms for the inner loops of formulas over pairs, each with its own bound. The passes
    // of the formula crate put them in place of the rows above where a call allows it.

    /// 2 to the power of the operand, with an error of the operand's own rounding; 0 where it would be subnormal.
    Exp2Pair exp2_pair [a] -> Same inner { real calls: a.by(f64::exp2).normal_or_zero(); }
        cuda "normal_or_zero(exp2(a))"; grad |y, g| [g * y * LN_2]; test [-30.0..30.0], Ulp(4.0);

    /// One over the operand, by an estimate and a Newton step.
    RcpPair rcp_pair [a] -> Same inner { real: T::ONE / a; }
        cuda "reciprocal(a)"; grad |y, g| [-(g * y * y)]; test [0.1..1e3], Ulp(4.0);

    /// One over the square root, by an estimate and a Newton step.
    RsqrtPair rsqrt_pair [a] -> Same inner { real: a.by(|x| 1.0 / x.sqrt()); }
        cuda "rsqrt(a)"; grad |y, g| [g * -0.5 * y * y * y]; test [0.1..1e3], Ulp(4.0);

    /// Square root, by an estimate and a Newton step.
    SqrtPair sqrt_pair [a] -> Same inner { real: a.sqrt(); }
        cuda "sqrt(a)"; grad |y, g| [g * 0.5 / y]; test [0.1..1e3], Ulp(4.0);
}
