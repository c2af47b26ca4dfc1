//! Elements as unsigned integers in the order of sorting.
//!
//! Keys compare as the elements do: -0.0 and 0.0 have one key, NaN come last whatever the direction,
//! complex numbers go by real, then imaginary part, those with a NaN after all others (NaN only in
//! the imaginary part, only in the real part, in both, as NumPy orders them). Safe code, used by the
//! other files of this room.

use bytemuck::Pod;
use tilework_ops::{Complex, Element, bf16, f16};
use tilework_simd::order::{SORT_U32, SORT_U64, Sorter};

/// An unsigned integer that elements are sorted by.
pub(super) trait Bits: Pod + Ord + Send + Sync {
    /// Bits of it.
    const BITS: u32;
    /// All bits zero.
    const ZERO: Self;
    /// All bits one.
    const ONES: Self;
    /// What sorts them by vectors, for each instruction set.
    const SORTERS: [Option<Sorter<Self>>; 3];
    /// An integer that vectors sort, no narrower.
    type Lane: Bits;
    /// As a lane.
    fn widened(self) -> Self::Lane;
    /// Of a lane.
    fn narrowed(lane: Self::Lane) -> Self;
    /// The eight bits from bit `shift` on.
    fn digit(self, shift: u32) -> usize;
    /// Widened.
    fn to_u128(self) -> u128;
    /// Zero bits above the highest that is set.
    fn leading_zeros(self) -> u32;
    /// The bits in which the two differ, added to those of `seen`.
    fn differences(self, other: Self, seen: Self) -> Self;
    /// Of the lowest bits of another.
    fn of(bits: usize) -> Self;
}

macro_rules! bits {
    ($($type:ident $lane:ident $sorters:expr;)*) => {$(
        impl Bits for $type {
            const BITS: u32 = $type::BITS;
            const ZERO: $type = 0;
            const ONES: $type = $type::MAX;
            const SORTERS: [Option<Sorter<$type>>; 3] = $sorters;
            type Lane = $lane;
            #[inline(always)]
            fn widened(self) -> $lane {
                self.into()
            }
            #[inline(always)]
            fn narrowed(lane: $lane) -> $type {
                lane as $type
            }
            #[inline(always)]
            fn digit(self, shift: u32) -> usize {
                (self >> shift) as usize & 0xff
            }
            #[inline(always)]
            fn to_u128(self) -> u128 {
                self.into()
            }
            #[inline(always)]
            fn leading_zeros(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn differences(self, other: $type, seen: $type) -> $type {
                seen | (self ^ other)
            }
            #[inline(always)]
            fn of(bits: usize) -> $type {
                bits as $type
            }
        }
    )*};
}

bits! {
    u8 u32 [None; 3];
    u16 u32 [None; 3];
    u32 u32 SORT_U32;
    u64 u64 SORT_U64;
    u128 u128 [None; 3];
}

/// An element that can be sorted.
pub(super) trait Key: Element {
    /// What its key is.
    type Bits: Bits;

    /// Its key; `flip` is [`Bits::ZERO`] for ascending order and [`Bits::ONES`] for descending.
    fn key(raw: Self::Raw, flip: Self::Bits) -> Self::Bits;
}

/// An element that can be had back from what it is sorted by.
pub(super) trait Reversible: Key {
    /// Whether there are elements that share a key: NaN, and zeros of both signs.
    const SHARES: bool;

    /// Like [`Key::key`], but -0.0 comes just before 0.0 (after, if flipped).
    fn spread_key(raw: Self::Raw, flip: Self::Bits) -> Self::Bits;

    /// The element of a spread key; the usual NaN for that of NaN.
    fn restore(key: Self::Bits, flip: Self::Bits) -> Self::Raw;

    /// The spread keys of zeros of both signs, ascending.
    fn zero_keys(flip: Self::Bits) -> [Self::Bits; 2];

    /// Whether it is zero, of either sign.
    fn is_zero(raw: Self::Raw) -> bool;

    /// Whether it is NaN.
    fn is_nan(raw: Self::Raw) -> bool;

    /// Whether it is NaN of other bits than the usual one.
    fn is_unusual(raw: Self::Raw) -> bool;

    /// Whether elements that share its key and have more usual bits are likely: NaN that is unusual,
    /// and -0.0. Where there are none of these, equal keys are equal bits.
    fn is_odd(raw: Self::Raw) -> bool;
}

impl Key for bool {
    type Bits = u8;
    #[inline(always)]
    fn key(raw: u8, flip: u8) -> u8 {
        u8::from(raw != 0) ^ flip
    }
}

impl Reversible for bool {
    const SHARES: bool = false;
    #[inline(always)]
    fn spread_key(raw: u8, flip: u8) -> u8 {
        Self::key(raw, flip)
    }
    #[inline(always)]
    fn restore(key: u8, flip: u8) -> u8 {
        key ^ flip
    }
    fn zero_keys(flip: u8) -> [u8; 2] {
        [flip; 2]
    }
    fn is_zero(_: u8) -> bool {
        false
    }
    fn is_nan(_: u8) -> bool {
        false
    }
    fn is_unusual(_: u8) -> bool {
        false
    }
    fn is_odd(_: u8) -> bool {
        false
    }
}

macro_rules! integers {
    ($($type:ident $bits:ident $low:expr;)*) => {$(
        impl Key for $type {
            type Bits = $bits;
            #[inline(always)]
            fn key(raw: $type, flip: $bits) -> $bits {
                raw as $bits ^ $low ^ flip
            }
        }
        impl Reversible for $type {
            const SHARES: bool = false;
            #[inline(always)]
            fn spread_key(raw: $type, flip: $bits) -> $bits {
                Self::key(raw, flip)
            }
            #[inline(always)]
            fn restore(key: $bits, flip: $bits) -> $type {
                (key ^ $low ^ flip) as $type
            }
            fn zero_keys(flip: $bits) -> [$bits; 2] {
                [Self::key(0, flip); 2]
            }
            fn is_zero(_: $type) -> bool {
                false
            }
            fn is_nan(_: $type) -> bool {
                false
            }
            fn is_unusual(_: $type) -> bool {
                false
            }
            fn is_odd(_: $type) -> bool {
                false
            }
        }
    )*};
}

integers! {
    i8 u8 1 << 7;
    i16 u16 1 << 15;
    i32 u32 1 << 31;
    i64 u64 1 << 63;
    u8 u8 0;
    u16 u16 0;
    u32 u32 0;
    u64 u64 0;
}

// Finite and infinite numbers leave room at both ends of the keys, so that all ones is beyond them
// in either direction.
macro_rules! floats {
    ($($type:ident $bits:ident $signed:ident $infinity:expr;)*) => {$(
        impl Key for $type {
            type Bits = $bits;
            #[inline(always)]
            fn key(raw: $type, flip: $bits) -> $bits {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let (raw, size) = (raw.to_bits(), raw.to_bits() & !SIGN);
                let all_if_negative = (raw as $signed >> ($bits::BITS - 1)) as $bits;
                // As far from that of zero on both sides, so that bits which no number has stay zero.
                let signed = (size ^ all_if_negative).wrapping_sub(all_if_negative);
                let key = SIGN.wrapping_add(signed) ^ flip;
                if size > $infinity { $bits::MAX } else { key }
            }
        }
        impl Reversible for $type {
            const SHARES: bool = true;
            #[inline(always)]
            fn spread_key(raw: $type, flip: $bits) -> $bits {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let raw = raw.to_bits();
                let all_if_negative = (raw as $signed >> ($bits::BITS - 1)) as $bits;
                let key = raw ^ (all_if_negative | SIGN) ^ flip;
                if raw & !SIGN > $infinity { $bits::MAX } else { key }
            }
            #[inline(always)]
            fn restore(key: $bits, flip: $bits) -> $type {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let nan = key == $bits::MAX;
                let key = key ^ flip;
                let all_if_positive = (key as $signed >> ($bits::BITS - 1)) as $bits;
                let bits = key ^ (!all_if_positive | SIGN);
                $type::from_bits(if nan { $type::NAN.to_bits() } else { bits })
            }
            fn zero_keys(flip: $bits) -> [$bits; 2] {
                let mut keys = [1 << ($bits::BITS - 1), 0]
                    .map(|bits| Self::spread_key($type::from_bits(bits), flip));
                keys.sort_unstable();
                keys
            }
            #[inline(always)]
            fn is_zero(raw: $type) -> bool {
                raw.to_bits() << 1 == 0
            }
            #[inline(always)]
            fn is_nan(raw: $type) -> bool {
                raw.to_bits() << 1 > $infinity << 1
            }
            #[inline(always)]
            fn is_unusual(raw: $type) -> bool {
                Self::is_nan(raw) & (raw.to_bits() != $type::NAN.to_bits())
            }
            #[inline(always)]
            fn is_odd(raw: $type) -> bool {
                Self::is_unusual(raw) | (raw.to_bits() == 1 << ($bits::BITS - 1))
            }
        }
    )*};
}

floats! {
    f16 u16 i16 0x7c00;
    bf16 u16 i16 0x7f80;
    f32 u32 i32 0x7f80_0000;
    f64 u64 i64 0x7ff0_0000_0000_0000;
}

macro_rules! complexes {
    ($($part:ident $half:ident $whole:ident;)*) => {$(
        impl Key for Complex<$part> {
            type Bits = $whole;
            #[inline(always)]
            fn key(raw: Complex<$part>, flip: $whole) -> $whole {
                let flip = flip as $half;
                let (re, im) = (<$part as Key>::key(raw.re, flip), <$part as Key>::key(raw.im, flip));
                // The keys just below that of NaN belong to no number: they part the three kinds.
                let (high, low) = match (re == $half::MAX, im == $half::MAX) {
                    (false, false) => (re, im),
                    (false, true) => ($half::MAX - 2, re),
                    (true, false) => ($half::MAX - 1, im),
                    (true, true) => ($half::MAX, 0),
                };
                (high as $whole) << $half::BITS | low as $whole
            }
        }
    )*};
}

complexes! {
    f32 u32 u64;
    f64 u64 u128;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_floats_in_both_directions() {
        let order = [f32::NEG_INFINITY, -2.5, -1e-45, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        for pair in order.windows(2) {
            assert!(f32::key(pair[0], 0) < f32::key(pair[1], 0));
            assert!(f32::key(pair[0], u32::MAX) > f32::key(pair[1], u32::MAX));
        }
        for flip in [0, u32::MAX] {
            assert_eq!(f32::key(-0.0, flip), f32::key(0.0, flip));
            for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)] {
                assert_eq!(f32::key(nan, flip), u32::MAX);
                assert!(order.iter().all(|&x| f32::key(x, flip) < u32::MAX - 2));
            }
            for x in order.into_iter().chain([-0.0]) {
                let back = f32::restore(f32::spread_key(x, flip), flip);
                assert_eq!(back.to_bits(), x.to_bits());
            }
        }
    }

    #[test]
    fn complex_keys_part_the_kinds_of_nan() {
        let nan = f64::NAN;
        let order =
            [(1.0, 2.0), (1.0, 3.0), (2.0, 0.0), (5.0, nan), (7.0, nan), (nan, 1.0), (nan, nan)];
        for pair in order.windows(2) {
            let key = |(re, im)| <Complex<f64> as Key>::key(Complex::new(re, im), 0);
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
    }
}
