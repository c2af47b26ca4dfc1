//! The numbers that a dtype holds: `finfo` and `iinfo`.

use tilework_error::{Error, Result};

use super::DType::{self, *};
use super::Kind;

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

impl DType {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
