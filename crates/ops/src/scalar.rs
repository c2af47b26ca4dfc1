//! What elements compute in: the classes of values, elements as they lie in memory, and casts.
//!
//! A [`Value`] is something the machine can add: bool, integers, f32, f64 and complex. An
//! [`Element`] is how an array stores it; float16 and bfloat16 are elements that compute as f32
//! and round once when stored. A cast between any two dtypes is defined here and nowhere else:
//! integers wrap, floats become integers by truncation with saturation (NaN becomes 0), anything
//! becomes bool by comparison with zero, complex becomes real by dropping the imaginary part. The
//! implementations for each type are in `numbers`.

mod integers;
mod numbers;

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use bytemuck::Pod;
use num_complex::Complex;

use crate::dtype::DType;
use crate::op::{Gives, Op};

/// A value that arithmetic is done on.
pub trait Value: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// The type of its real and imaginary parts.
    type Part: Value;

    /// The neutral element of addition; false.
    const ZERO: Self;

    /// The neutral element of multiplication; true.
    const ONE: Self;

    /// Applies an operation: the type chooses the meaning of its class.
    fn apply<O: Op<N>, const N: usize>(x: [Self; N]) -> <O::Gives as Gives>::Of<Self>;

    /// Sum; integers wrap, bool is `or`.
    fn plus(self, other: Self) -> Self;

    /// Product; integers wrap, bool is `and`.
    fn times(self, other: Self) -> Self;

    /// Strictly before in the order of sorting; complex numbers by real part, then imaginary.
    fn precedes(self, other: Self) -> bool;

    /// Whether it is, or contains, a NaN.
    fn is_nan(self) -> bool;

    /// Whether it differs from zero.
    fn is_true(self) -> bool;

    /// The element that holds it, by the one definition of casts.
    fn cast<E: Element>(self) -> E;

    /// Divided by a count; meant for floating point, a cast of the quotient otherwise.
    fn over(self, count: f64) -> Self;

    /// Cast to double precision.
    fn to_f64(self) -> f64 {
        self.cast::<f64>()
    }

    /// Cast from double precision.
    fn of_f64(x: f64) -> Self;
}

/// An element as an array stores it: one type for each [`DType`], and no others.
pub trait Element:
    Copy + PartialEq + Debug + Default + Send + Sync + 'static + sealed::Sealed
{
    /// Its dtype.
    const DTYPE: DType;

    /// The plain memory it lies in: itself, but a byte for bool, whose memory may come from
    /// elsewhere and hold any byte.
    type Raw: Pod + Send + Sync;

    /// What it computes in.
    type V: Value;

    /// The element type of its real and imaginary parts.
    type Part: Element<V = <Self::V as Value>::Part>;

    /// From memory.
    fn from_raw(raw: Self::Raw) -> Self;

    /// To memory.
    fn to_raw(self) -> Self::Raw;

    /// To what it computes in, without loss.
    fn widen(self) -> Self::V;

    /// From what it computes in, rounding once.
    fn narrow(value: Self::V) -> Self;

    /// Cast from a signed integer.
    fn from_i64(x: i64) -> Self;

    /// Cast from an unsigned integer.
    fn from_u64(x: u64) -> Self;

    /// Cast from a real number.
    fn from_f64(x: f64) -> Self;

    /// Cast from a complex number.
    fn from_complex(re: f64, im: f64) -> Self;
}

/// What keeps [`Element`] to the types of the table, which those who read memory rely on.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Integers of any width and sign.
pub trait Int: Value<Part = Self> + Ord {
    /// How many bits it has.
    const BITS: u32;
    /// Sum modulo 2^bits.
    fn wrapping_add(self, other: Self) -> Self;
    /// Difference modulo 2^bits.
    fn wrapping_sub(self, other: Self) -> Self;
    /// Product modulo 2^bits.
    fn wrapping_mul(self, other: Self) -> Self;
    /// Opposite modulo 2^bits.
    fn wrapping_neg(self) -> Self;
    /// Absolute value modulo 2^bits.
    fn wrapping_abs(self) -> Self;
    /// Power modulo 2^bits; a negative exponent truncates the true value (0 for most bases).
    fn wrapping_pow(self, exponent: Self) -> Self;
    /// Quotient rounded towards minus infinity; 0 for division by zero; wraps for MIN / -1.
    fn floor_divide(self, other: Self) -> Self;
    /// What [`Int::floor_divide`] leaves, with the sign of the divisor; 0 for division by zero.
    fn remainder(self, other: Self) -> Self;
    /// Bits moved up; 0 for amounts that are negative or not below the width.
    fn shift_left(self, amount: Self) -> Self;
    /// Bits moved down, with the sign; for amounts that are negative or not below the width, 0 or,
    /// for a negative number, -1.
    fn shift_right(self, amount: Self) -> Self;
    /// -1, 0 or 1.
    fn signum(self) -> Self;
    /// Bitwise and.
    fn bit_and(self, other: Self) -> Self;
    /// Bitwise or.
    fn bit_or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn bit_xor(self, other: Self) -> Self;
    /// Bitwise complement.
    fn bit_not(self) -> Self;
}

/// f32 and f64.
///
/// Functions of f32 are computed in f64 and rounded, so that the definition of an operation is
/// right to half an ulp for all practical purposes.
pub trait Real:
    Value<Part = Self>
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Whether squares of its numbers, and sums of them, are inside the range of double precision.
    const SQUARES_FIT: bool;
    /// The value of a constant, rounded.
    fn of(x: f64) -> Self;
    /// In double precision, without loss.
    fn f64(self) -> f64;
    /// A function of one number, computed in double precision.
    fn by(self, f: impl Fn(f64) -> f64) -> Self {
        Self::of(f(self.f64()))
    }
    /// A function of two numbers, computed in double precision.
    fn by2(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self::of(f(self.f64(), other.f64()))
    }
    /// A function of one complex number, computed in double precision.
    #[inline(always)]
    fn lift(z: Complex<Self>, f: impl Fn(Complex<f64>) -> Complex<f64>) -> Complex<Self> {
        let w = f(Complex::new(z.re.f64(), z.im.f64()));
        Complex::new(Self::of(w.re), Self::of(w.im))
    }
    /// A function of two complex numbers, computed in double precision.
    fn lift2(
        z: Complex<Self>,
        w: Complex<Self>,
        f: impl Fn(Complex<f64>, Complex<f64>) -> Complex<f64>,
    ) -> Complex<Self> {
        Self::lift(z, |z| f(z, Complex::new(w.re.f64(), w.im.f64())))
    }
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Rounded down.
    fn floor(self) -> Self;
    /// Rounded up.
    fn ceil(self) -> Self;
    /// Rounded towards zero.
    fn trunc(self) -> Self;
    /// Rounded to the nearest integer, halves to even.
    fn round_half_even(self) -> Self;
    /// Rounded to the nearest integer, halves away from zero.
    fn round_half_away(self) -> Self;
    /// Magnitude of `self` with the sign of `other`.
    fn copysign(self, other: Self) -> Self;
    /// Whether the sign bit is set.
    fn sign_bit(self) -> bool;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Plus or minus infinity.
    fn is_infinite(self) -> bool;
    /// The number itself, or 0 where it is subnormal.
    fn normal_or_zero(self) -> Self;
    /// `self * b + c` with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The next number towards `other`.
    fn next_after(self, other: Self) -> Self;
    /// Quotient rounded towards minus infinity, as Python defines it.
    fn floor_divide(self, other: Self) -> Self;
    /// What [`Real::floor_divide`] leaves, with the sign of the divisor.
    fn remainder(self, other: Self) -> Self;
}
