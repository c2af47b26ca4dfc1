//! One lane in plain Rust: the instruction set that every target has.
//!
//! Without FMA hardware `mul_add` is a product and a sum; only the operations that promise one
//! rounding pay for an exact one. Called by the drivers of level `Scalar`, and by the cold paths
//! of the trigonometric functions on every level.

use crate::vector::{Lanes, Picks, Single, Vector, exponent_ops};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// One `f32`.
#[derive(Clone, Copy, Debug)]
pub struct ScalarF32(pub f32);
/// One `f64`.
#[derive(Clone, Copy, Debug)]
pub struct ScalarF64(pub f64);
/// The mask of one lane.
#[derive(Clone, Copy, Debug)]
pub struct Flag(pub bool);

impl BitAnd for Flag {
    type Output = Flag;
    #[inline(always)]
    fn bitand(self, b: Flag) -> Flag {
        Flag(self.0 & b.0)
    }
}
impl BitOr for Flag {
    type Output = Flag;
    #[inline(always)]
    fn bitor(self, b: Flag) -> Flag {
        Flag(self.0 | b.0)
    }
}
impl Not for Flag {
    type Output = Flag;
    #[inline(always)]
    fn not(self) -> Flag {
        Flag(!self.0)
    }
}

/// One rounding. The product of two `f32` is exact in `f64`; the sum is rounded there and then
/// once more, which differs from a true FMA in rare halfway cases but is exact for residuals.
#[inline(always)]
fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") {
        a.mul_add(b, c)
    } else {
        (f64::from(a) * f64::from(b) + f64::from(c)) as f32
    }
}

/// One rounding, by the platform's `fma` where there is no instruction.
#[inline(always)]
fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

macro_rules! scalar {
    ($name:ident, $elem:ident, $uint:ident, $fma:ident) => {
        impl Add for $name {
            type Output = $name;
            #[inline(always)]
            fn add(self, b: $name) -> $name {
                $name(self.0 + b.0)
            }
        }
        impl Sub for $name {
            type Output = $name;
            #[inline(always)]
            fn sub(self, b: $name) -> $name {
                $name(self.0 - b.0)
            }
        }
        impl Mul for $name {
            type Output = $name;
            #[inline(always)]
            fn mul(self, b: $name) -> $name {
                $name(self.0 * b.0)
            }
        }
        impl Div for $name {
            type Output = $name;
            #[inline(always)]
            fn div(self, b: $name) -> $name {
                $name(self.0 / b.0)
            }
        }
        impl Neg for $name {
            type Output = $name;
            #[inline(always)]
            fn neg(self) -> $name {
                $name(-self.0)
            }
        }

        impl $name {
            #[inline(always)]
            fn int(self) -> $uint {
                self.0.to_bits()
            }
            #[inline(always)]
            fn from_int(b: $uint) -> $name {
                $name($elem::from_bits(b))
            }
        }

        impl Vector for $name {
            type Elem = $elem;
            type Mask = Flag;

            #[inline(always)]
            fn lit(x: f64) -> Self {
                $name(x as $elem)
            }
            #[inline(always)]
            fn bits(b: u64) -> Self {
                Self::from_int(b as $uint)
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                if cfg!(target_feature = "fma") {
                    $name(self.0.mul_add(b.0, c.0))
                } else {
                    $name(self.0 * b.0 + c.0)
                }
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                (-self).mul_add(b, c)
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                $name($fma(self.0, b.0, c.0))
            }
            #[inline(always)]
            fn fms(self, b: Self, c: Self) -> Self {
                $name($fma(self.0, b.0, -c.0))
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                $name($fma(-self.0, b.0, c.0))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $name(self.0.sqrt())
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                if self.0 < b.0 { self } else { b }
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                if self.0 > b.0 { self } else { b }
            }
            #[inline(always)]
            fn round(self) -> Self {
                $name(self.0.round_ties_even())
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $name(self.0.floor())
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $name(self.0.ceil())
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $name(self.0.trunc())
            }
            #[inline(always)]
            fn lt(self, b: Self) -> Flag {
                Flag(self.0 < b.0)
            }
            #[inline(always)]
            fn le(self, b: Self) -> Flag {
                Flag(self.0 <= b.0)
            }
            #[inline(always)]
            fn eq(self, b: Self) -> Flag {
                Flag(self.0 == b.0)
            }
            #[inline(always)]
            fn unordered(self, b: Self) -> Flag {
                Flag(self.0.is_nan() | b.0.is_nan())
            }
            #[inline(always)]
            fn sign_mask(self) -> Flag {
                Flag(self.0.is_sign_negative())
            }
            #[inline(always)]
            fn select(m: Flag, a: Self, b: Self) -> Self {
                if m.0 { a } else { b }
            }
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                Self::from_int(self.int() & b.int())
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                Self::from_int(self.int() | b.int())
            }
            #[inline(always)]
            fn xor(self, b: Self) -> Self {
                Self::from_int(self.int() ^ b.int())
            }
            #[inline(always)]
            fn and_not(self, b: Self) -> Self {
                Self::from_int(self.int() & !b.int())
            }
            #[inline(always)]
            fn shl<const N: u32>(self) -> Self {
                Self::from_int(self.int() << N)
            }
            #[inline(always)]
            fn shr<const N: u32>(self) -> Self {
                Self::from_int(self.int() >> N)
            }
            #[inline(always)]
            fn add_int(self, b: Self) -> Self {
                Self::from_int(self.int().wrapping_add(b.int()))
            }
            #[inline(always)]
            fn sub_int(self, b: Self) -> Self {
                Self::from_int(self.int().wrapping_sub(b.int()))
            }
            #[inline(always)]
            fn rcp_est(self) -> Self {
                $name(1.0 / self.0)
            }
            #[inline(always)]
            fn rsqrt_est(self) -> Self {
                $name(1.0 / self.0.sqrt())
            }
            #[inline(always)]
            fn rcp_fast(self) -> Self {
                $name(1.0 / self.0)
            }
            exponent_ops!($elem);
        }

        impl Lanes for $name {
            const LANES: usize = 1;
            #[inline(always)]
            unsafe fn load(p: *const $elem) -> Self {
                // SAFETY: the caller vouches for one readable element.
                $name(unsafe { p.read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $elem) {
                // SAFETY: the caller vouches for one writable element.
                unsafe { p.write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn load_part(_: *const $elem, _: usize) -> Self {
                $name(0.0)
            }
            #[inline(always)]
            unsafe fn store_part(self, _: *mut $elem, _: usize) {}
            #[inline(always)]
            fn any(m: Flag) -> bool {
                m.0
            }
            #[inline(always)]
            fn lanes(m: Flag) -> u32 {
                m.0.into()
            }
        }
    };
}

scalar!(ScalarF32, f32, u32, fma_f32);
scalar!(ScalarF64, f64, u64, fma_f64);

impl Single for ScalarF32 {
    type Wide = ScalarF64;
    #[inline(always)]
    fn widen(self) -> ScalarF64 {
        ScalarF64(self.0.into())
    }
    #[inline(always)]
    fn narrow(wide: ScalarF64) -> Self {
        ScalarF32(wide.0 as f32)
    }
}

impl Picks for ScalarF64 {
    #[inline(always)]
    fn pick(self, table: &[f64; 16]) -> Self {
        ScalarF64(table[(self.0.to_bits() & 15) as usize])
    }
}
