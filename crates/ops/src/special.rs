//! Functions of real numbers and integers that the standard library lacks or defines otherwise.
//!
//! Floating point follows the special cases of the Python array API standard and, where the
//! standard leaves a choice, NumPy. Integers wrap, and division by zero gives zero; both are what
//! NumPy computes, without its warnings. Single precision is computed in double and rounded once,
//! except where the operation in single precision is itself the definition.
//!
//! Half precision has no functions here: it is computed in a wider type, and `half`'s `from_f64`
//! rounds a double to half precision once. Going through `f32` would round twice.

mod sealed {
    pub trait Sealed {}
}

/// A floating-point type that is computed in: `f32` or `f64`.
pub trait Float: Copy + PartialOrd + sealed::Sealed {
    /// The value in double precision, exactly.
    fn widen(self) -> f64;
    /// The nearest value to a double.
    fn narrow(x: f64) -> Self;
    /// Quotient and remainder of floored division; see [`floor_divide`] and [`remainder`].
    fn floor_divmod(self, divisor: Self) -> (Self, Self);
    /// The neighbour in the direction of another number; see [`nextafter`].
    fn neighbour(self, toward: Self) -> Self;
    /// The root of the sum of squares; see [`hypot`].
    fn hypotenuse(self, other: Self) -> Self;
    /// The magnitude of one with the sign bit of another, NaN included; see [`copysign`].
    fn with_sign_of(self, sign: Self) -> Self;
    /// The nearest integer, halves to the even one; see [`round_half_even`].
    fn rounded(self) -> Self;
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl sealed::Sealed for $type {}

        impl Float for $type {
            #[inline(always)]
            fn widen(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn narrow(x: f64) -> $type {
                x as $type
            }

            #[inline]
            fn floor_divmod(self, divisor: $type) -> ($type, $type) {
                let rest = self % divisor;
                if divisor == 0.0 {
                    return (self / divisor, rest);
                }
                // Exact but for rounding of the quotient, since the rest is exact.
                let mut quotient = (self - rest) / divisor;
                let mut modulus = rest;
                if rest == 0.0 {
                    modulus = (0.0 as $type).copysign(divisor);
                } else if (divisor < 0.0) != (rest < 0.0) {
                    modulus += divisor;
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return ((0.0 as $type).copysign(self / divisor), modulus);
                }
                // The rounded quotient may lie on either side of the integer it stands for.
                let floor = quotient.floor();
                (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, modulus)
            }

            #[inline]
            fn neighbour(self, toward: $type) -> $type {
                if self.is_nan() || toward.is_nan() {
                    $type::NAN
                } else if self == toward {
                    // The signs of two zeros may differ, and the second wins.
                    toward
                } else if self < toward {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }

            #[inline(always)]
            fn hypotenuse(self, other: $type) -> $type {
                self.hypot(other)
            }

            #[inline(always)]
            fn with_sign_of(self, sign: $type) -> $type {
                self.copysign(sign)
            }

            #[inline(always)]
            fn rounded(self) -> $type {
                self.round_ties_even()
            }
        }
    )*};
}

floats!(f32 f64);

/// The next number after `from` in the direction of `toward`; `toward` itself when they are equal.
#[inline]
pub fn nextafter<F: Float>(from: F, toward: F) -> F {
    from.neighbour(toward)
}

/// [`nextafter`] by the name of its type, for macros that have that name.
pub mod next_after {
    /// The next `f32` after `from` in the direction of `toward`.
    #[inline]
    pub fn f32(from: f32, toward: f32) -> f32 {
        super::nextafter(from, toward)
    }

    /// The next `f64` after `from` in the direction of `toward`.
    #[inline]
    pub fn f64(from: f64, toward: f64) -> f64 {
        super::nextafter(from, toward)
    }
}

/// Floored division as Python has it: the integer `q` with `x = q * divisor + remainder`.
///
/// Division by zero divides; an infinite dividend gives NaN; an infinite divisor gives 0 or -1.
#[inline]
pub fn floor_divide<F: Float>(x: F, divisor: F) -> F {
    x.floor_divmod(divisor).0
}

/// The remainder of floored division, with the sign of the divisor also when it is zero.
///
/// By zero, or of an infinity, it is NaN. By an infinity it is `x` itself, or that infinity when
/// the signs differ.
#[inline]
pub fn remainder<F: Float>(x: F, divisor: F) -> F {
    x.floor_divmod(divisor).1
}

/// The error function.
#[inline]
pub fn erf<F: Float>(x: F) -> F {
    F::narrow(libm::erf(x.widen()))
}

/// `log(exp(x) + exp(y))` without overflow; of two negative infinities it is negative infinity.
#[inline]
pub fn logaddexp<F: Float>(x: F, y: F) -> F {
    let (x, y) = (x.widen(), y.widen());
    F::narrow(if x == y {
        // Also for two equal infinities, whose difference below would be NaN.
        x + std::f64::consts::LN_2
    } else if x > y {
        x + (y - x).exp().ln_1p()
    } else {
        // Also for NaN, which fails each comparison and spoils the sum.
        y + (x - y).exp().ln_1p()
    })
}

/// `1 / (1 + exp(-x))` without overflow, to full relative precision in both tails.
#[inline]
pub fn sigmoid<F: Float>(x: F) -> F {
    let x = x.widen();
    let small = (-x.abs()).exp();
    F::narrow(if x < 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) })
}

/// The nearest integer, halves to the even one; zeros and what rounds to zero keep their sign.
#[inline]
pub fn round_half_even<F: Float>(x: F) -> F {
    x.rounded()
}

/// -1, 0 or 1; zero of either sign gives +0, NaN stays NaN.
#[inline]
pub fn sign<F: Float>(x: F) -> F {
    let zero = F::narrow(0.0);
    if x > zero {
        F::narrow(1.0)
    } else if x < zero {
        F::narrow(-1.0)
    } else if x == zero {
        zero
    } else {
        x
    }
}

/// The larger of two numbers; NaN if either is, and +0 is larger than -0.
#[inline]
pub fn maximum<F: Float>(x: F, y: F) -> F {
    pick(x, y, x > y, false)
}

/// The smaller of two numbers; NaN if either is, and -0 is smaller than +0.
#[inline]
pub fn minimum<F: Float>(x: F, y: F) -> F {
    pick(x, y, x < y, true)
}

/// `x` if it wins, else `y`, where NaN always wins and among zeros the one with this sign bit.
#[inline(always)]
fn pick<F: Float>(x: F, y: F, x_wins: bool, negative_zero: bool) -> F {
    #[allow(clippy::eq_op)]
    let x_is_nan = x != x;
    let x_is_the_zero = x == y && x.widen().is_sign_negative() == negative_zero;
    if x_wins || x_is_nan || x_is_the_zero { x } else { y }
}

/// `x` between `low` and `high`; NaN if any of the three is.
#[inline]
pub fn clip<F: Float>(x: F, low: F, high: F) -> F {
    minimum(maximum(x, low), high)
}

/// The root of the sum of squares, without overflow; infinite if either is, also beside a NaN.
#[inline]
pub fn hypot<F: Float>(x: F, y: F) -> F {
    x.hypotenuse(y)
}

/// The magnitude of `x` with the sign bit of `sign`, also where these are NaN.
#[inline]
pub fn copysign<F: Float>(x: F, sign: F) -> F {
    x.with_sign_of(sign)
}

/// `x` where it is positive and +0 elsewhere, but NaN stays NaN.
#[inline]
pub fn relu<F: Float>(x: F) -> F {
    if x <= F::narrow(0.0) { F::narrow(0.0) } else { x }
}

/// An integer type of up to 64 bits.
pub trait Integer: Copy + sealed::Sealed {
    /// See [`int_floor_divide`].
    fn floored_quotient(self, divisor: Self) -> Self;
    /// See [`int_remainder`].
    fn floored_remainder(self, divisor: Self) -> Self;
    /// See [`left_shift`].
    fn shifted_left(self, by: Self) -> Self;
    /// See [`right_shift`].
    fn shifted_right(self, by: Self) -> Self;
    /// See [`ipow`].
    fn raised(self, exponent: u64) -> Self;
    /// See [`float_to_int`].
    fn truncated(x: f64) -> Self;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl sealed::Sealed for $type {}

        impl Integer for $type {
            #[inline]
            fn floored_quotient(self, divisor: $type) -> $type {
                if divisor == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(divisor);
                let down = self.floored_remainder(divisor) != self.wrapping_rem(divisor);
                quotient.wrapping_sub(<$type>::from(down))
            }

            #[inline]
            fn floored_remainder(self, divisor: $type) -> $type {
                if divisor == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(divisor);
                // Only signed types have numbers whose exclusive or with another is negative.
                #[allow(unused_comparisons)]
                if rest != 0 && (rest ^ divisor) < 0 { rest.wrapping_add(divisor) } else { rest }
            }

            #[inline]
            fn shifted_left(self, by: $type) -> $type {
                u32::try_from(by).ok().and_then(|by| self.checked_shl(by)).unwrap_or(0)
            }

            #[inline]
            fn shifted_right(self, by: $type) -> $type {
                // All bits gone: in two steps, since a shift by the full width does not exist.
                let emptied = self >> (<$type>::BITS - 1) >> 1;
                u32::try_from(by).ok().and_then(|by| self.checked_shr(by)).unwrap_or(emptied)
            }

            #[inline]
            fn raised(self, exponent: u64) -> $type {
                let (mut base, mut rest, mut result) = (self, exponent, 1 as $type);
                while rest != 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                result
            }

            #[inline(always)]
            fn truncated(x: f64) -> $type {
                x as $type
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Division rounded down. By zero it is 0; the least number by -1 wraps to itself.
#[inline]
pub fn int_floor_divide<I: Integer>(x: I, divisor: I) -> I {
    x.floored_quotient(divisor)
}

/// The remainder of division rounded down, with the sign of the divisor. By zero it is 0.
#[inline]
pub fn int_remainder<I: Integer>(x: I, divisor: I) -> I {
    x.floored_remainder(divisor)
}

/// The bits moved up; by a negative amount or by all bits and more, 0.
#[inline]
pub fn left_shift<I: Integer>(x: I, by: I) -> I {
    x.shifted_left(by)
}

/// The bits moved down, the sign kept; by a negative amount or by all bits and more, 0 or -1.
#[inline]
pub fn right_shift<I: Integer>(x: I, by: I) -> I {
    x.shifted_right(by)
}

/// The power by repeated squaring, wrapping. Negative exponents are the caller's to refuse.
#[inline]
pub fn ipow<I: Integer>(x: I, exponent: u64) -> I {
    x.raised(exponent)
}

/// The one definition of the cast from floating point to integers: towards zero, what lies beyond
/// the ends to the end, NaN to 0. (NumPy leaves the last two to the machine.)
#[inline]
pub fn float_to_int<F: Float, I: Integer>(x: F) -> I {
    I::truncated(x.widen())
}

/// Inverse hyperbolic cosine; NaN below 1, also where the usual formula would cancel to a number.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}
