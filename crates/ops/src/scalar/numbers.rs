//! The numbers behind every dtype as values and elements: bool, reals, halves and complex numbers.
//! Integers have a file of their own.

use half::{bf16, f16};
use num_complex::Complex;

use super::{Element, Real, Value};
use crate::dtype::DType;
use crate::op::{Gives, Op};
use crate::special;

/// `Value::apply` of one class of numbers.
macro_rules! class {
    ($method:ident) => {
        #[inline(always)]
        fn apply<O: Op<N>, const N: usize>(x: [Self; N]) -> <O::Gives as Gives>::Of<Self> {
            O::$method(x)
        }
    };
}

impl Value for bool {
    type Part = bool;
    const ZERO: bool = false;
    const ONE: bool = true;
    class!(boolean);
    #[inline(always)]
    fn plus(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn times(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn precedes(self, other: bool) -> bool {
        !self & other
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self
    }
    #[inline(always)]
    fn cast<E: Element>(self) -> E {
        E::from_u64(self as u64)
    }
    fn over(self, count: f64) -> bool {
        self && count.is_finite()
    }
    fn of_f64(x: f64) -> bool {
        x != 0.0
    }
}

impl super::sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    type Raw = u8;
    type V = bool;
    type Part = bool;
    #[inline(always)]
    fn from_raw(raw: u8) -> bool {
        raw != 0
    }
    #[inline(always)]
    fn to_raw(self) -> u8 {
        self as u8
    }
    #[inline(always)]
    fn widen(self) -> bool {
        self
    }
    #[inline(always)]
    fn narrow(value: bool) -> bool {
        value
    }
    #[inline(always)]
    fn from_i64(x: i64) -> bool {
        x != 0
    }
    #[inline(always)]
    fn from_u64(x: u64) -> bool {
        x != 0
    }
    #[inline(always)]
    fn from_f64(x: f64) -> bool {
        x != 0.0
    }
    #[inline(always)]
    fn from_complex(re: f64, im: f64) -> bool {
        re != 0.0 || im != 0.0
    }
}

/// `Element` methods of types that store themselves and compute in themselves.
macro_rules! plain {
    ($dtype:ident) => {
        const DTYPE: DType = DType::$dtype;
        type Raw = Self;
        type V = Self;
        #[inline(always)]
        fn from_raw(raw: Self) -> Self {
            raw
        }
        #[inline(always)]
        fn to_raw(self) -> Self {
            self
        }
        #[inline(always)]
        fn widen(self) -> Self {
            self
        }
        #[inline(always)]
        fn narrow(value: Self) -> Self {
            value
        }
    };
}

/// `Element` conversions of Rust's own number types, as `as` makes them.
macro_rules! primitive {
    ($type:ident) => {
        type Part = $type;
        #[inline(always)]
        fn from_i64(x: i64) -> $type {
            x as $type
        }
        #[inline(always)]
        fn from_u64(x: u64) -> $type {
            x as $type
        }
        #[inline(always)]
        fn from_f64(x: f64) -> $type {
            x as $type
        }
        #[inline(always)]
        fn from_complex(re: f64, _: f64) -> $type {
            re as $type
        }
    };
}

pub(super) use {class, plain, primitive};

macro_rules! reals {
    ($($type:ident $dtype:ident),*) => {$(
        impl Value for $type {
            type Part = $type;
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            class!(real);
            #[inline(always)]
            fn plus(self, other: $type) -> $type { self + other }
            #[inline(always)]
            fn times(self, other: $type) -> $type { self * other }
            #[inline(always)]
            fn precedes(self, other: $type) -> bool { self < other }
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
            #[inline(always)]
            fn is_true(self) -> bool { self != 0.0 }
            #[inline(always)]
            fn cast<E: Element>(self) -> E { E::from_f64(self as f64) }
            #[inline(always)]
            fn over(self, count: f64) -> $type { self / count as $type }
            #[inline(always)]
            fn of_f64(x: f64) -> $type { x as $type }
        }

        impl super::sealed::Sealed for $type {}

        impl Element for $type {
            plain!($dtype);
            primitive!($type);
        }

        impl Real for $type {
            const SQUARES_FIT: bool = $type::MAX_EXP < f64::MAX_EXP / 2;
            #[inline(always)]
            fn of(x: f64) -> $type { x as $type }
            #[inline(always)]
            fn f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn sqrt(self) -> $type { $type::sqrt(self) }
            #[inline(always)]
            fn abs(self) -> $type { $type::abs(self) }
            #[inline(always)]
            fn floor(self) -> $type { $type::floor(self) }
            #[inline(always)]
            fn ceil(self) -> $type { $type::ceil(self) }
            #[inline(always)]
            fn trunc(self) -> $type { $type::trunc(self) }
            #[inline(always)]
            fn round_half_even(self) -> $type { $type::round_ties_even(self) }
            #[inline(always)]
            fn round_half_away(self) -> $type { $type::round(self) }
            #[inline(always)]
            fn copysign(self, other: $type) -> $type { $type::copysign(self, other) }
            #[inline(always)]
            fn sign_bit(self) -> bool { self.is_sign_negative() }
            #[inline(always)]
            fn is_finite(self) -> bool { $type::is_finite(self) }
            #[inline(always)]
            fn normal_or_zero(self) -> $type { if self.is_subnormal() { 0.0 } else { self } }
            #[inline(always)]
            fn is_infinite(self) -> bool { $type::is_infinite(self) }
            #[inline(always)]
            fn mul_add(self, b: $type, c: $type) -> $type { $type::mul_add(self, b, c) }
            #[inline(always)]
            fn next_after(self, other: $type) -> $type { special::$type::next_after(self, other) }
            #[inline(always)]
            fn floor_divide(self, other: $type) -> $type { special::$type::floor_divmod(self, other).0 }
            #[inline(always)]
            fn remainder(self, other: $type) -> $type { special::$type::floor_divmod(self, other).1 }
        }
    )*};
}

reals!(f32 Float32, f64 Float64);

/// A double in single precision such that rounding it further gives what rounding the double once
/// would: where bits are lost, the last one kept is set, so that no tie appears that was none.
#[inline(always)]
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    if near as f64 == x || near.is_nan() {
        return near;
    }
    let away_from_zero = (near.abs() as f64) > x.abs();
    f32::from_bits((near.to_bits() - away_from_zero as u32) | 1)
}

macro_rules! halves {
    ($($type:ident $dtype:ident),*) => {$(
        impl super::sealed::Sealed for $type {}

        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Raw = $type;
            type V = f32;
            type Part = $type;
            #[inline(always)]
            fn from_raw(raw: $type) -> $type { raw }
            #[inline(always)]
            fn to_raw(self) -> $type { self }
            #[inline(always)]
            fn widen(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn narrow(value: f32) -> $type { $type::from_f32(value) }
            #[inline(always)]
            fn from_i64(x: i64) -> $type { <$type as Element>::from_f64(x as f64) }
            #[inline(always)]
            fn from_u64(x: u64) -> $type { <$type as Element>::from_f64(x as f64) }
            #[inline(always)]
            fn from_f64(x: f64) -> $type { $type::from_f32(round_to_odd(x)) }
            #[inline(always)]
            fn from_complex(re: f64, _: f64) -> $type { <$type as Element>::from_f64(re) }
        }
    )*};
}

halves!(f16 Float16, bf16 BFloat16);

impl<T: Real> Value for Complex<T>
where
    Complex<T>: PartialEq,
{
    type Part = T;
    const ZERO: Complex<T> = Complex { re: T::ZERO, im: T::ZERO };
    const ONE: Complex<T> = Complex { re: T::ONE, im: T::ZERO };
    class!(complex);
    #[inline(always)]
    fn plus(self, other: Complex<T>) -> Complex<T> {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
    #[inline(always)]
    fn times(self, other: Complex<T>) -> Complex<T> {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
    #[inline(always)]
    fn precedes(self, other: Complex<T>) -> bool {
        // A part that is NaN keeps the whole out of the order, as in NumPy.
        let ordered = !self.im.is_nan() && !other.im.is_nan();
        ordered && (self.re < other.re || (self.re == other.re && self.im < other.im))
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self.re.is_true() || self.im.is_true()
    }
    #[inline(always)]
    fn cast<E: Element>(self) -> E {
        E::from_complex(self.re.f64(), self.im.f64())
    }
    #[inline(always)]
    fn over(self, count: f64) -> Complex<T> {
        Complex { re: self.re.over(count), im: self.im.over(count) }
    }
    #[inline(always)]
    fn of_f64(x: f64) -> Complex<T> {
        Complex { re: T::of(x), im: T::ZERO }
    }
}

macro_rules! complexes {
    ($($type:ident $dtype:ident),*) => {$(
        impl super::sealed::Sealed for Complex<$type> {}

        impl Element for Complex<$type> {
            plain!($dtype);
            type Part = $type;
            #[inline(always)]
            fn from_i64(x: i64) -> Self { Complex::new(x as $type, 0.0) }
            #[inline(always)]
            fn from_u64(x: u64) -> Self { Complex::new(x as $type, 0.0) }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { Complex::new(x as $type, 0.0) }
            #[inline(always)]
            fn from_complex(re: f64, im: f64) -> Self { Complex::new(re as $type, im as $type) }
        }
    )*};
}

complexes!(f32 Complex64, f64 Complex128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_are_defined_at_the_edges() {
        assert_eq!(Value::cast::<u8>(300.7f32), 255);
        assert_eq!(Value::cast::<i32>(f64::NAN), 0);
        assert_eq!(Value::cast::<i8>(-1e30f64), -128);
        assert_eq!(Value::cast::<u8>(-1i32), 255);
        assert_eq!(Value::cast::<f32>(i64::MAX), 9.223_372e18);
        assert!(Value::cast::<bool>(f32::NAN) && !Value::cast::<bool>(-0.0f64));
        assert_eq!(Value::cast::<f16>(65520.0f64), f16::INFINITY);
        // One rounding: through f32 this would tie and go the other way.
        let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(Value::cast::<f16>(x).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(Value::cast::<f64>(Complex::new(2.0f32, 3.0)), 2.0);
    }
}
