//! Element types: their names, sizes, promotion and limits, and the one dispatch on them.
//!
//! Promotion is the table of the Python array API standard, extended by float16 and bfloat16, and
//! by NumPy's answers where the standard leaves mixed kinds undefined. Everything that must
//! become generic code for one element type goes through [`with_element!`](crate::with_element).

use std::fmt;
use std::str::FromStr;

use tilework_error::{Error, Result};

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// True or false, one byte.
    Bool,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    UInt8,
    /// Unsigned, 16 bits.
    UInt16,
    /// Unsigned, 32 bits.
    UInt32,
    /// Unsigned, 64 bits.
    UInt64,
    /// IEEE half precision: stored only, computed in float32.
    Float16,
    /// The upper half of a float32: stored only, computed in float32.
    BFloat16,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
    /// Two float32: real and imaginary part.
    Complex64,
    /// Two float64: real and imaginary part.
    Complex128,
}

/// The four classes for which an operation has a meaning of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// bool
    Bool = 1,
    /// signed and unsigned integers
    Int = 2,
    /// real floating point
    Real = 4,
    /// complex floating point
    Complex = 8,
}

/// The five kinds that decide promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// bool
    Bool,
    /// unsigned integers
    Unsigned,
    /// signed integers
    Signed,
    /// real floating point
    Float,
    /// complex floating point
    Complex,
}

use DType::*;

impl DType {
    /// How many there are.
    pub const COUNT: usize = 15;

    /// All of them, in order of their numbers.
    pub const ALL: [DType; DType::COUNT] = [
        Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, BFloat16, Float32,
        Float64, Complex64, Complex128,
    ];

    /// Its name, as NumPy and the array API standard spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            Int8 => "int8",
            Int16 => "int16",
            Int32 => "int32",
            Int64 => "int64",
            UInt8 => "uint8",
            UInt16 => "uint16",
            UInt32 => "uint32",
            UInt64 => "uint64",
            Float16 => "float16",
            BFloat16 => "bfloat16",
            Float32 => "float32",
            Float64 => "float64",
            Complex64 => "complex64",
            Complex128 => "complex128",
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Bool | Int8 | UInt8 => 1,
            Int16 | UInt16 | Float16 | BFloat16 => 2,
            Int32 | UInt32 | Float32 => 4,
            Int64 | UInt64 | Float64 | Complex64 => 8,
            Complex128 => 16,
        }
    }

    /// What the address of an element is a multiple of; a power of two.
    pub const fn alignment(self) -> usize {
        self.part().size()
    }

    /// Which meaning of an operation applies to it.
    pub const fn class(self) -> Class {
        match self.kind() {
            Kind::Bool => Class::Bool,
            Kind::Unsigned | Kind::Signed => Class::Int,
            Kind::Float => Class::Real,
            Kind::Complex => Class::Complex,
        }
    }

    /// The kind that decides how it promotes.
    pub const fn kind(self) -> Kind {
        match self {
            Bool => Kind::Bool,
            Int8 | Int16 | Int32 | Int64 => Kind::Signed,
            UInt8 | UInt16 | UInt32 | UInt64 => Kind::Unsigned,
            Float16 | BFloat16 | Float32 | Float64 => Kind::Float,
            Complex64 | Complex128 => Kind::Complex,
        }
    }

    /// Integers, signed or not.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Int)
    }

    /// Real floating point.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Real)
    }

    /// Complex floating point.
    pub const fn is_complex(self) -> bool {
        matches!(self.class(), Class::Complex)
    }

    /// Floating point, real or complex.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Whether it is stored in 16 bits and computed in float32.
    pub const fn is_half(self) -> bool {
        matches!(self, Float16 | BFloat16)
    }

    /// What arithmetic on it is done in: float32 for the half types, itself otherwise.
    pub const fn computes_in(self) -> DType {
        if self.is_half() { Float32 } else { self }
    }

    /// What the definition of products sums in: floats up to 32 bits in double precision.
    pub const fn sums_in(self) -> DType {
        match self {
            Float16 | BFloat16 | Float32 => Float64,
            Complex64 => Complex128,
            other => other,
        }
    }

    /// The unsigned integer of its size if it is a signed one, itself otherwise: the same bits, and
    /// the same results of all that wraps.
    pub const fn unsigned(self) -> DType {
        match self {
            Int8 => UInt8,
            Int16 => UInt16,
            Int32 => UInt32,
            Int64 => UInt64,
            other => other,
        }
    }

    /// The type of its real and imaginary parts: itself unless complex.
    pub const fn part(self) -> DType {
        match self {
            Complex64 => Float32,
            Complex128 => Float64,
            other => other,
        }
    }

    /// The complex type whose parts hold it without loss of its precision.
    pub const fn with_imaginary(self) -> DType {
        match self {
            Bool | Int8 | UInt8 | Int16 | UInt16 | Float16 | BFloat16 | Float32 | Complex64 => {
                Complex64
            }
            _ => Complex128,
        }
    }

    /// The float that NumPy computes mathematical functions of this type in.
    ///
    /// The least float that holds every value, for integers of up to 16 bits; float64 for wider
    /// ones; floating-point types themselves.
    pub const fn to_inexact(self) -> DType {
        match self {
            Bool | Int8 | UInt8 => Float16,
            Int16 | UInt16 => Float32,
            Int32 | UInt32 | Int64 | UInt64 => Float64,
            other => other,
        }
    }

    /// The type in which sums and products of this type are accumulated and given: 64-bit
    /// integers for bool and integers, itself otherwise.
    pub const fn to_accumulator(self) -> DType {
        match self.kind() {
            Kind::Bool | Kind::Signed => Int64,
            Kind::Unsigned => UInt64,
            _ => self,
        }
    }

    /// The type that holds the values of both, where one exists without surprise.
    ///
    /// ```
    /// use tilework_ops::DType::*;
    /// assert_eq!(UInt8.promote(Int8), Int16);
    /// assert_eq!(Int32.promote(Float32), Float64);
    /// assert_eq!(Float16.promote(BFloat16), Float32);
    /// ```
    pub const fn promote(self, other: DType) -> DType {
        let (low, high) =
            if self.kind() as u8 <= other.kind() as u8 { (self, other) } else { (other, self) };
        if matches!(low.kind(), Kind::Bool) {
            return high;
        }
        match (low.kind(), high.kind()) {
            (Kind::Unsigned, Kind::Unsigned) | (Kind::Signed, Kind::Signed) => wider(low, high),
            (Kind::Unsigned, Kind::Signed) => match (low.size() * 2, high.size()) {
                (16, _) => Float64,
                (need, have) if need <= have => high,
                (2, _) => Int16,
                (4, _) => Int32,
                _ => Int64,
            },
            (Kind::Float, Kind::Float) => match (low, high) {
                (Float16, BFloat16) | (BFloat16, Float16) => Float32,
                _ => wider(low, high),
            },
            (Kind::Complex, Kind::Complex) => wider(low, high),
            (Kind::Unsigned | Kind::Signed, Kind::Float) => match low.to_inexact() {
                // An 8-bit integer fits either half type, so it leaves bfloat16 as it is.
                Float16 => high,
                least => wider(least, high.computes_in_at_least(least)),
            },
            (_, _) => match (low.to_inexact(), high) {
                (Float64, _) | (_, Complex128) => Complex128,
                _ => Complex64,
            },
        }
    }

    const fn computes_in_at_least(self, least: DType) -> DType {
        if self.size() < least.size() { least } else { self }
    }

    /// Whether every conversion from `self` to `to` keeps the kind or climbs it: the standard's
    /// `can_cast`, which is true exactly where promotion of the two gives `to`.
    pub const fn can_cast(self, to: DType) -> bool {
        self.promote(to) as u8 == to as u8
    }

    /// Whether a conversion to `to` keeps the kind or climbs, whatever the sizes: NumPy's casting rule
    /// "same_kind", which is what may be written into a target.
    pub const fn can_cast_kind(self, to: DType) -> bool {
        matches!(
            (self.kind(), to.kind()),
            (Kind::Bool, _)
                | (_, Kind::Complex)
                | (Kind::Unsigned | Kind::Signed | Kind::Float, Kind::Float)
                | (Kind::Unsigned | Kind::Signed, Kind::Signed)
                | (Kind::Unsigned, Kind::Unsigned)
        )
    }

    /// Properties of a floating-point type, of its parts if complex.
    pub fn finfo(self) -> Result<FInfo> {
        let (bits, mantissa, min_exponent, max_exponent) = match self.part() {
            Float16 => (16, 10, -14, 15),
            BFloat16 => (16, 7, -126, 127),
            Float32 => (32, 23, -126, 127),
            Float64 => (64, 52, -1022, 1023),
            _ => return Err(Error::dtype("finfo", format!("{self} is not a floating-point type"))),
        };
        let eps = 2f64.powi(-mantissa);
        let max = (2.0 - eps) * 2f64.powi(max_exponent);
        let smallest_normal = 2f64.powi(min_exponent);
        let smallest_subnormal = f64::from_bits(1).max(smallest_normal * eps);
        Ok(FInfo {
            bits,
            eps,
            max,
            min: -max,
            smallest_normal,
            smallest_subnormal,
            dtype: self.part(),
        })
    }

    /// Limits of an integer type.
    pub fn iinfo(self) -> Result<IInfo> {
        let bits = self.size() as u32 * 8;
        match self.kind() {
            Kind::Signed => Ok(IInfo {
                bits,
                min: -(1i128 << (bits - 1)),
                max: (1i128 << (bits - 1)) - 1,
                dtype: self,
            }),
            Kind::Unsigned => Ok(IInfo { bits, min: 0, max: (1i128 << bits) - 1, dtype: self }),
            _ => Err(Error::dtype("iinfo", format!("{self} is not an integer type"))),
        }
    }
}

const fn wider(a: DType, b: DType) -> DType {
    if a.size() >= b.size() { a } else { b }
}

/// What [`DType::finfo`] tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FInfo {
    /// Bits of one real number.
    pub bits: u32,
    /// Distance from 1 to the next larger number.
    pub eps: f64,
    /// Largest finite number.
    pub max: f64,
    /// Smallest (most negative) finite number.
    pub min: f64,
    /// Smallest positive number of full precision.
    pub smallest_normal: f64,
    /// Smallest positive number.
    pub smallest_subnormal: f64,
    /// The real type itself.
    pub dtype: DType,
}

/// What [`DType::iinfo`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IInfo {
    /// Bits of one number.
    pub bits: u32,
    /// Smallest number.
    pub min: i128,
    /// Largest number.
    pub max: i128,
    /// The type itself.
    pub dtype: DType,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            Error::dtype(
                "dtype",
                format!("{name:?} is not a dtype; the dtypes are {}", names.join(", ")),
            )
        })
    }
}

/// Runs generic code for the element type of a dtype: the only place where a dtype becomes a type.
///
/// ```
/// use tilework_ops::{with_element, DType, Element};
/// fn alignment(dtype: DType) -> usize {
///     with_element!(dtype, T => std::mem::align_of::<<T as Element>::Raw>())
/// }
/// assert_eq!(alignment(DType::Float64), 8);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::with_element!(@all $dtype, $T => $body;
            Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64,
            UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float16 $crate::f16, BFloat16 $crate::bf16, Float32 f32, Float64 f64,
            Complex64 $crate::Complex<f32>, Complex128 $crate::Complex<f64>)
    };
    (@all $dtype:expr, $T:ident => $body:expr; $($variant:ident $type:ty),*) => {
        match $dtype {
            $($crate::DType::$variant => { type $T = $type; $body })*
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_associative_where_the_standard_says_so_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
            }
        }
    }

    #[test]
    fn promotion_follows_the_standard() {
        let rows = [
            (Int8, UInt8, Int16),
            (Int8, UInt16, Int32),
            (Int8, UInt32, Int64),
            (Int16, UInt8, Int16),
            (Int32, UInt16, Int32),
            (Int64, UInt32, Int64),
            (Int64, UInt64, Float64),
            (Float32, Float64, Float64),
            (Float64, Complex64, Complex128),
            (Float32, Complex64, Complex64),
            (Float16, Complex64, Complex64),
            (Int8, Float32, Float32),
            (Int16, Float16, Float32),
            (Int32, Float32, Float64),
            (Int8, BFloat16, BFloat16),
            (Int16, BFloat16, Float32),
            (Int64, Complex64, Complex128),
            (Bool, UInt8, UInt8),
            (Float16, BFloat16, Float32),
        ];
        for (a, b, both) in rows {
            assert_eq!(a.promote(b), both, "{a} {b}");
        }
    }

    #[test]
    fn limits() {
        assert_eq!(Int8.iinfo().unwrap().min, -128);
        assert_eq!(UInt64.iinfo().unwrap().max, u64::MAX as i128);
        assert_eq!(Float32.finfo().unwrap().max, f32::MAX as f64);
        assert_eq!(Float64.finfo().unwrap().eps, f64::EPSILON);
        assert_eq!(Float64.finfo().unwrap().smallest_subnormal, f64::from_bits(1));
        assert_eq!(Float16.finfo().unwrap().max, 65504.0);
        assert!(Int8.finfo().is_err() && Bool.iinfo().is_err());
    }

    #[test]
    fn names_parse_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
        assert!("float128".parse::<DType>().is_err());
    }
}
