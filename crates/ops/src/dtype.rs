//! Element types: their names, sizes and kinds, and the one dispatch on them.
//!
//! `promotion` says what two of them become together, `limits` what numbers they hold. Everything that
//! must become generic code for one element type goes through [`with_element!`](crate::with_element).

mod limits;
mod promotion;

use std::fmt;
use std::str::FromStr;

use tilework_error::{Error, Result};

pub use limits::{FInfo, IInfo};

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
    fn names_parse_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
        assert!("float128".parse::<DType>().is_err());
    }
}
