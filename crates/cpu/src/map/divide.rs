//! Floored division of integers without the machine's division.
//!
//! Floating point is precise enough for integers of up to 32 bits: float32 for 8 and 16, float64 for
//! 32. With half a unit of the divisor's sign added to `a`, the quotient by `b` is at least `0.5 / |b|`
//! away from every integer, which no rounding here comes near (`|a| + 1` is at most 2^17 beside 2^24,
//! 2^33 beside 2^53). So the integer next to one half less is the quotient rounded down. Adding
//! [`Rounds::MAGIC`], whose last place is one, rounds, and leaves the integer in the low bits.
//!
//! A divisor that all elements of a block share, as in `a // 7`, becomes a multiplier. For 64 bits that
//! is the only way, and divisors that change are divided by as the row says. By zero, quotient and rest
//! are 0. Called through `by_hand`.

use tilework_ops::{DType, Id, Int};

use super::kernels::Kernel;
use crate::isa::Isa;

/// Elements that share a look at their divisors.
const BLOCK: usize = 1024;

/// An integer that is divided here.
trait Divides: Int {
    /// What a divisor becomes to serve many elements.
    type Multiplier: Copy;
    /// Of how many elements it pays to make one.
    const PAYS: usize;
    /// The multiplier of a divisor; None where it has none: zero, and where the machine is as good.
    fn multiplier(self) -> Option<Self::Multiplier>;
    /// The quotient, rounded down, by the divisor that the multiplier was made of.
    fn times_multiplier(self, multiplier: Self::Multiplier) -> Self;
    /// The quotient, rounded down; 0 by zero.
    fn quotient(self, divisor: Self) -> Self;
}

macro_rules! narrow {
    ($($type:ident by $float:ident),*) => {$(
        impl Divides for $type {
            /// The reciprocal, and half of it, without sign, less one half.
            type Multiplier = ($float, $float);
            const PAYS: usize = 1;
            #[inline(always)]
            fn multiplier(self) -> Option<($float, $float)> {
                let reciprocal = 1.0 / self as $float;
                (self != 0).then_some((reciprocal, 0.5 * reciprocal.abs() - 0.5))
            }
            #[inline(always)]
            fn times_multiplier(self, (reciprocal, shift): ($float, $float)) -> $type {
                (self as $float * reciprocal + shift + $float::MAGIC).to_bits() as $type
            }
            #[inline(always)]
            fn quotient(self, divisor: $type) -> $type {
                let by = divisor as $float;
                let quotient = (self as $float + (0.5 as $float).copysign(by)) / by;
                let floor = (quotient - 0.5 + $float::MAGIC).to_bits() as $type;
                if divisor == 0 { 0 } else { floor }
            }
        }
    )*};
}

narrow!(i8 by f32, u8 by f32, i16 by f32, u16 by f32, i32 by f64, u32 by f64);

/// A floating point number that rounds by addition.
trait Rounds {
    /// One and a half times the power of two from which on the last place is one: in its range
    /// integers lie in the low bits, negative ones as complements.
    const MAGIC: Self;
}

impl Rounds for f32 {
    const MAGIC: f32 = 1.5 * (1u32 << (f32::MANTISSA_DIGITS - 1)) as f32;
}

impl Rounds for f64 {
    const MAGIC: f64 = 1.5 * (1u64 << (f64::MANTISSA_DIGITS - 1)) as f64;
}

/// One over a divisor of at least two, `(2^64 + high) / 2^(64 + bits)`, where `bits` are those that count
/// up to the divisor: too large by at most the last place, so that the product with a number of
/// 64 bits exceeds the quotient by less than one over the divisor, and rounds down to the same.
#[derive(Clone, Copy)]
struct Fixed {
    high: u64,
    shift: u32,
}

impl Fixed {
    fn over(divisor: u64) -> Option<Fixed> {
        if divisor < 2 {
            return None;
        }
        let bits = u64::BITS - (divisor - 1).leading_zeros();
        let beyond = ((1u128 << bits) - u128::from(divisor)) << 64;
        let high = (beyond / u128::from(divisor)) as u64 + 1;
        Some(Fixed { high, shift: bits - 1 })
    }

    #[inline(always)]
    fn times(self, x: u64) -> u64 {
        let part = ((u128::from(self.high) * u128::from(x)) >> 64) as u64;
        // The sum of the two may need 65 bits, half of it does not.
        (part + ((x - part) >> 1)) >> self.shift
    }
}

impl Divides for u64 {
    type Multiplier = Fixed;
    const PAYS: usize = 16;
    fn multiplier(self) -> Option<Fixed> {
        Fixed::over(self)
    }
    #[inline(always)]
    fn times_multiplier(self, multiplier: Fixed) -> u64 {
        multiplier.times(self)
    }
    #[inline(always)]
    fn quotient(self, divisor: u64) -> u64 {
        self.floor_divide(divisor)
    }
}

impl Divides for i64 {
    /// That of the magnitude, and one where the divisor is negative.
    type Multiplier = (Fixed, i64);
    const PAYS: usize = 16;
    fn multiplier(self) -> Option<(Fixed, i64)> {
        Some((Fixed::over(self.unsigned_abs())?, i64::from(self < 0)))
    }
    #[inline(always)]
    fn times_multiplier(self, (magnitude, negative): (Fixed, i64)) -> i64 {
        // Complements turn rounding around: floor(x / d) = !floor(!x / d), and floor(x / -d) =
        // !floor((x - 1) / d). The least x less one wraps, and is its complement as it should be.
        let sign = -i64::from(self < negative);
        let from_zero = (self.wrapping_sub(negative) ^ sign).cast_unsigned();
        magnitude.times(from_zero).cast_signed() ^ sign ^ -negative
    }
    #[inline(always)]
    fn quotient(self, divisor: i64) -> i64 {
        self.floor_divide(divisor)
    }
}

/// What a division gives: its quotient, or where `REST` what it leaves.
#[inline(always)]
fn result<T: Divides, const REST: bool>(x: T, divisor: T, quotient: T) -> T {
    if !REST {
        quotient
    } else if divisor == T::ZERO {
        T::ZERO
    } else {
        x.wrapping_sub(quotient.wrapping_mul(divisor))
    }
}

/// The loop itself, block by block.
///
/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn body<T: Divides, const REST: bool>(
    n: usize,
    out: *mut u8,
    x: *const u8,
    divisors: *const u8,
) {
    let (out, x, divisors) = (out.cast::<T>(), x.cast::<T>(), divisors.cast::<T>());
    for start in (0..n).step_by(BLOCK) {
        let len = BLOCK.min(n - start);
        // SAFETY: the caller vouches for `n` elements behind every pointer, and no element of the
        // block is beyond them.
        unsafe {
            let (out, x, divisors) = (out.add(start), x.add(start), divisors.add(start));
            let first = divisors.read();
            let differ =
                (1..len).fold(false, |differ, i| differ | (divisors.add(i).read() != first));
            let multiplier = if differ || len < T::PAYS { None } else { first.multiplier() };
            if let Some(multiplier) = multiplier {
                for i in 0..len {
                    let x = x.add(i).read();
                    let quotient = x.times_multiplier(multiplier);
                    out.add(i).write(result::<T, REST>(x, first, quotient));
                }
            } else {
                for i in 0..len {
                    let (x, divisor) = (x.add(i).read(), divisors.add(i).read());
                    out.add(i).write(result::<T, REST>(x, divisor, x.quotient(divisor)));
                }
            }
        }
    }
}

unsafe fn scalar<T: Divides, const REST: bool>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<T, REST>(n, out, a, b) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<T: Divides, const REST: bool>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<T, REST>(n, out, a, b) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn avx512<T: Divides, const REST: bool>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<T, REST>(n, out, a, b) }
}

/// The kernel for an instruction set. No vectors divide by 64 bits: compilers that have the longest
/// take them apart for it, which takes twice the time of the plain loop.
fn of<T: Divides, const REST: bool>(isa: Isa) -> Kernel {
    match isa {
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 if T::BITS < 64 => avx512::<T, REST>,
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 | Isa::Avx2 => avx2::<T, REST>,
        _ => scalar::<T, REST>,
    }
}

/// The kernel of a division of integers; None for anything else.
pub(super) fn kernel(id: Id, dtype: DType, isa: Isa) -> Option<Kernel> {
    fn either<T: Divides>(id: Id, isa: Isa) -> Option<Kernel> {
        match id {
            Id::FloorDivide => Some(of::<T, false>(isa)),
            Id::Remainder => Some(of::<T, true>(isa)),
            _ => None,
        }
    }
    match dtype {
        DType::Int8 => either::<i8>(id, isa),
        DType::Int16 => either::<i16>(id, isa),
        DType::Int32 => either::<i32>(id, isa),
        DType::Int64 => either::<i64>(id, isa),
        DType::UInt8 => either::<u8>(id, isa),
        DType::UInt16 => either::<u16>(id, isa),
        DType::UInt32 => either::<u32>(id, isa),
        DType::UInt64 => either::<u64>(id, isa),
        _ => None,
    }
}
