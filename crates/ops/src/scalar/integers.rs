//! Integers as values and elements: arithmetic wraps, division by zero gives 0, and amounts out of
//! range shift everything out.

use super::numbers::{class, plain, primitive};
use super::{Element, Int, Value};
use crate::dtype::DType;
use crate::op::{Gives, Op};

macro_rules! integers {
    ($($type:ident $dtype:ident $from:ident $wide:ident),*) => {$(
        impl Value for $type {
            type Part = $type;
            const ZERO: $type = 0;
            const ONE: $type = 1;
            class!(int);
            #[inline(always)]
            fn plus(self, other: $type) -> $type { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: $type) -> $type { self.wrapping_mul(other) }
            #[inline(always)]
            fn precedes(self, other: $type) -> bool { self < other }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn is_true(self) -> bool { self != 0 }
            #[inline(always)]
            fn cast<E: Element>(self) -> E { E::$from(self as $wide) }
            #[inline(always)]
            fn over(self, count: f64) -> $type { (self as f64 / count) as $type }
            #[inline(always)]
            fn of_f64(x: f64) -> $type { x as $type }
        }

        impl super::sealed::Sealed for $type {}

        impl Element for $type {
            plain!($dtype);
            primitive!($type);
        }

        impl Int for $type {
            const BITS: u32 = $type::BITS;
            #[inline(always)]
            fn wrapping_add(self, other: $type) -> $type { $type::wrapping_add(self, other) }
            #[inline(always)]
            fn wrapping_sub(self, other: $type) -> $type { $type::wrapping_sub(self, other) }
            #[inline(always)]
            fn wrapping_mul(self, other: $type) -> $type { $type::wrapping_mul(self, other) }
            #[inline(always)]
            fn wrapping_neg(self) -> $type { $type::wrapping_neg(self) }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn wrapping_abs(self) -> $type {
                if self < 0 { $type::wrapping_neg(self) } else { self }
            }
            #[allow(unused_comparisons)]
            fn wrapping_pow(self, exponent: $type) -> $type {
                if exponent < 0 {
                    let odd = exponent & 1 != 0;
                    // The true value lies in (-1, 1) unless the base is 1 or -1.
                    return if self == 1 {
                        1
                    } else if self < 0 && self.wrapping_add(1) == 0 {
                        if odd { self } else { 1 }
                    } else {
                        0
                    };
                }
                let (mut base, mut left, mut result) = (self, exponent, 1 as $type);
                while left > 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_divide(self, other: $type) -> $type {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                if inexact && (self < 0) != (other < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn remainder(self, other: $type) -> $type {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            fn shift_left(self, amount: $type) -> $type {
                // A negative amount becomes a huge unsigned one, so one comparison serves both.
                if (amount as u64) < $type::BITS as u64 { self << amount } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, amount: $type) -> $type {
                if (amount as u64) < $type::BITS as u64 {
                    self >> amount
                } else {
                    // Twice, so that an unsigned top bit does not stay.
                    self >> ($type::BITS - 1) >> 1
                }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn signum(self) -> $type {
                ((self > 0) as $type).wrapping_sub((self < 0) as $type)
            }
            #[inline(always)]
            fn bit_and(self, other: $type) -> $type { self & other }
            #[inline(always)]
            fn bit_or(self, other: $type) -> $type { self | other }
            #[inline(always)]
            fn bit_xor(self, other: $type) -> $type { self ^ other }
            #[inline(always)]
            fn bit_not(self) -> $type { !self }
        }
    )*};
}

integers!(
    i8 Int8 from_i64 i64, i16 Int16 from_i64 i64, i32 Int32 from_i64 i64, i64 Int64 from_i64 i64,
    u8 UInt8 from_u64 u64, u16 UInt16 from_u64 u64, u32 UInt32 from_u64 u64, u64 UInt64 from_u64 u64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_edges() {
        assert_eq!(Int::floor_divide(-7i32, 2), -4);
        assert_eq!(Int::remainder(-7i32, 2), 1);
        assert_eq!(Int::remainder(7i32, -2), -1);
        assert_eq!(Int::floor_divide(i8::MIN, -1), i8::MIN);
        assert_eq!(Int::floor_divide(5u8, 0), 0);
        assert_eq!(Int::remainder(5i64, 0), 0);
        assert_eq!((1i8.shift_left(7), 1i8.shift_left(8), 1i8.shift_left(-1)), (-128, 0, 0));
        assert_eq!(((-5i16).shift_right(100), 5i16.shift_right(-1)), (-1, 0));
        assert_eq!(
            (255u8.shift_right(8), 255u8.shift_right(7), i64::MIN.shift_right(64)),
            (0, 1, -1)
        );
        assert_eq!(Int::wrapping_pow(3i8, 5), 243u8 as i8);
        assert_eq!((Int::wrapping_pow(-1i32, -3), Int::wrapping_pow(2i32, -1)), (-1, 0));
        assert_eq!((Int::wrapping_pow(1i32, -3), Int::wrapping_pow(-1i32, -2)), (1, 1));
        assert_eq!(Int::wrapping_pow(2u8, 255), 0);
        assert_eq!((Int::signum(-3i8), Int::signum(0u8), Int::signum(9u64)), (-1, 0, 1));
    }
}
