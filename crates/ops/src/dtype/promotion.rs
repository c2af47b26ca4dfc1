//! What dtypes become together, and what may be cast to what.
//!
//! Promotion is the table of the Python array API standard, extended by float16 and bfloat16, and
//! by NumPy's answers where the standard leaves mixed kinds undefined. Called by whatever takes
//! operands of several dtypes.

use super::DType::{self, *};
use super::Kind;

impl DType {
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
}

const fn wider(a: DType, b: DType) -> DType {
    if a.size() >= b.size() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
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
}
