//! One value at run time: [`Scalar`] with a dtype of its own, [`Number`] without.
//!
//! A `Number` is what a person writes (`2`, `0.5`, `true`): it is weak, that is, it takes the dtype
//! of the array it meets as long as its kind allows. A `Scalar` is an element that has left its
//! array; the reference backend and the tests compute with these.

use std::fmt;

use bytemuck::{Zeroable, bytes_of, bytes_of_mut};
use num_complex::Complex;
use tilework_error::{Error, Result};

use crate::dtype::{DType, Kind};
use crate::scalar::{Element, Value};
use crate::with_element;

/// One element with its dtype.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    dtype: DType,
    /// Its memory, zero behind its end. In words: scalars are handed on with every operation, and bytes
    /// at odd places would be moved one by one.
    words: [u64; 2],
}

impl Scalar {
    /// The scalar that holds `element`.
    pub fn new<E: Element>(element: E) -> Scalar {
        Scalar::from_bytes(E::DTYPE, bytes_of(&element.to_raw()))
    }

    /// The scalar of `dtype` whose memory begins `bytes`.
    ///
    /// # Panics
    /// If there are fewer bytes than the dtype has.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Scalar {
        let mut scalar = Scalar::zero(dtype);
        bytes_of_mut(&mut scalar.words)[..dtype.size()].copy_from_slice(&bytes[..dtype.size()]);
        scalar
    }

    /// Zero, or false.
    pub fn zero(dtype: DType) -> Scalar {
        Scalar { dtype, words: [0; 2] }
    }

    /// Its dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its memory: as many bytes as the dtype has.
    pub fn bytes(&self) -> &[u8] {
        &bytes_of(&self.words)[..self.dtype.size()]
    }

    /// Its value as the element type that it has, or cast to another.
    ///
    /// ```
    /// use tilework_ops::Scalar;
    /// assert_eq!(Scalar::new(2.75f32).get::<i32>(), 2);
    /// ```
    pub fn get<E: Element>(&self) -> E {
        if self.dtype == E::DTYPE {
            let mut raw = E::Raw::zeroed();
            bytes_of_mut(&mut raw).copy_from_slice(&self.bytes()[..size_of::<E::Raw>()]);
            return E::from_raw(raw);
        }
        with_element!(self.dtype, T => self.get::<T>().widen().cast::<E>())
    }

    /// Cast to another dtype.
    pub fn cast(&self, dtype: DType) -> Scalar {
        if dtype == self.dtype {
            return *self;
        }
        with_element!(dtype, T => Scalar::new(self.get::<T>()))
    }

    /// Whether it differs from zero.
    pub fn is_true(&self) -> bool {
        self.get::<bool>()
    }

    /// The number it is.
    pub fn to_number(&self) -> Number {
        match self.dtype.kind() {
            Kind::Bool => Number::Bool(self.get()),
            Kind::Signed => Number::Int(self.get::<i64>() as i128),
            Kind::Unsigned => Number::Int(self.get::<u64>() as i128),
            Kind::Float => Number::Float(self.get()),
            Kind::Complex => Number::Complex(self.get()),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.dtype, self.to_number())
    }
}

/// A number without a dtype: what stands beside an array in an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

impl Number {
    /// The dtype of the two together: the array's, unless the number's kind is higher.
    ///
    /// ```
    /// use tilework_ops::{DType, Number};
    /// assert_eq!(Number::from(2).promote(DType::Float32), DType::Float32);
    /// assert_eq!(Number::from(0.5).promote(DType::Int8), DType::Float64);
    /// ```
    pub fn promote(self, dtype: DType) -> DType {
        match (self, dtype.kind()) {
            (Number::Bool(_), _) => dtype,
            (Number::Int(_), Kind::Bool) => DType::Int64,
            (Number::Int(_), _) => dtype,
            (Number::Float(_), Kind::Float | Kind::Complex) => dtype,
            (Number::Float(_), _) => DType::Float64,
            (Number::Complex(_), Kind::Complex | Kind::Float) => dtype.with_imaginary(),
            (Number::Complex(_), _) => DType::Complex128,
        }
    }

    /// The dtype it has when it stands alone.
    pub fn default_dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Int(i) if i > i64::MAX as i128 => DType::UInt64,
            Number::Int(_) => DType::Int64,
            Number::Float(_) => DType::Float64,
            Number::Complex(_) => DType::Complex128,
        }
    }

    /// Its value in `dtype`, for use by `operation`; an integer must fit an integer dtype, and a
    /// number of a higher kind fits no dtype of a lower one.
    pub fn to_scalar(self, operation: &str, dtype: DType) -> Result<Scalar> {
        let kind_fits = match self {
            Number::Bool(_) | Number::Int(_) => true,
            Number::Float(_) => dtype.is_inexact() || dtype == DType::Bool,
            Number::Complex(_) => dtype.is_complex() || dtype == DType::Bool,
        };
        if !kind_fits {
            return Err(Error::dtype(
                operation,
                format!("{self} is not a value of {dtype}; cast it first"),
            ));
        }
        if let Number::Int(i) = self
            && dtype.is_integer()
            && let Ok(limits) = dtype.iinfo()
            && (i < limits.min || i > limits.max)
        {
            return Err(Error::overflow(
                operation,
                format!("{i} is out of bounds for {dtype} ({} to {})", limits.min, limits.max),
            ));
        }
        Ok(self.cast(dtype))
    }

    /// Its value in `dtype` where it is written to an element by `operation`: as [`Number::to_scalar`], but a
    /// float is cut to an integer, which must fit.
    pub fn to_element(self, operation: &str, dtype: DType) -> Result<Scalar> {
        // Asked first: where there are no limits, the error that says so takes longer than the number.
        if !dtype.is_integer() {
            return self.to_scalar(operation, dtype);
        }
        let (Number::Float(x), Ok(limits)) = (self, dtype.iinfo()) else {
            return self.to_scalar(operation, dtype);
        };
        if x.is_nan() {
            return Err(Error::value(operation, format!("NaN is not a value of {dtype}")));
        }
        // The end itself may have no float, the power of two behind it has.
        let (least, end) = (limits.min as f64, (limits.max + 1) as f64);
        if x.trunc() < least || x.trunc() >= end {
            return Err(Error::overflow(
                operation,
                format!("{x:?} is out of bounds for {dtype} ({} to {})", limits.min, limits.max),
            ));
        }
        Ok(self.cast(dtype))
    }

    /// Its value in `dtype` by the definition of casts, whatever is lost.
    pub fn cast(self, dtype: DType) -> Scalar {
        with_element!(dtype, T => Scalar::new(match self {
            Number::Bool(b) => <bool as Value>::cast::<T>(b),
            Number::Int(i) => match (u64::try_from(i), i64::try_from(i)) {
                (Ok(u), _) => T::from_u64(u),
                (_, Ok(s)) => T::from_i64(s),
                _ => T::from_f64(i as f64),
            },
            Number::Float(x) => T::from_f64(x),
            Number::Complex(z) => T::from_complex(z.re, z.im),
        }))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(b) => write!(f, "{b}"),
            Number::Int(i) => write!(f, "{i}"),
            Number::Float(x) => write!(f, "{x:?}"),
            Number::Complex(z) => write!(f, "{:?}{:+?}j", z.re, z.im),
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident as $to:ty),*) => {$(
        impl From<$type> for Number {
            fn from(x: $type) -> Number { Number::$variant(x as $to) }
        }
    )*};
}

from!(
    bool => Bool as bool, i8 => Int as i128, i16 => Int as i128, i32 => Int as i128,
    i64 => Int as i128, isize => Int as i128, u8 => Int as i128, u16 => Int as i128,
    u32 => Int as i128, u64 => Int as i128, usize => Int as i128, f32 => Float as f64,
    f64 => Float as f64
);

impl From<Complex<f64>> for Number {
    fn from(z: Complex<f64>) -> Number {
        Number::Complex(z)
    }
}

impl From<Complex<f32>> for Number {
    fn from(z: Complex<f32>) -> Number {
        Number::Complex(Complex::new(z.re as f64, z.im as f64))
    }
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Number {
        scalar.to_number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_numbers_keep_the_dtype() {
        assert_eq!(Number::from(3).promote(DType::UInt8), DType::UInt8);
        assert_eq!(Number::from(true).promote(DType::Float16), DType::Float16);
        assert_eq!(Number::from(3).promote(DType::Bool), DType::Int64);
        assert_eq!(Number::from(Complex::new(0.0, 1.0)).promote(DType::Float32), DType::Complex64);
        assert!(Number::from(300).to_scalar("add", DType::UInt8).is_err());
        assert!(Number::from(-1).to_scalar("add", DType::UInt8).is_err());
        assert!(Number::from(1.5).to_scalar("full", DType::Int8).is_err());
        assert_eq!(
            Number::from(u64::MAX).to_scalar("add", DType::UInt64).unwrap().get::<u64>(),
            u64::MAX
        );
    }

    #[test]
    fn scalars_keep_their_bytes() {
        for dtype in DType::ALL {
            let one = Number::from(1).cast(dtype);
            assert_eq!(Scalar::from_bytes(dtype, one.bytes()), one);
            assert_eq!(one.get::<f64>(), 1.0);
        }
    }
}
