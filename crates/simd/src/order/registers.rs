//! Registers of unsigned integers of AVX-512 and AVX2, and the sorts made of them.
//!
//! Used only below functions with the matching `#[target_feature]`, which are the three entries at
//! the end; `order/mod.rs` lists them.

use std::arch::x86_64::*;

use super::{Integer, Keys, Sorter, quick};

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            const MAX: $type = $type::MAX;
        }
    )*};
}

integers!(u32 u64);

macro_rules! avx512 {
    ($name:ident, $elem:ident, $lanes:literal, $mask:ident, $numbers:expr,
     $set1:ident $loadu:ident $storeu:ident $mask_loadu:ident $mask_storeu:ident $min:ident $max:ident
     $permute:ident $mask_permute:ident $test:ident $mask_max:ident $less:ident $greater:ident $compress:ident) => {
        /// A register of AVX-512.
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name(__m512i);

        // SAFETY of all methods: the caller has AVX-512 and vouches for pointers.
        impl Keys for $name {
            type Elem = $elem;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                // SAFETY: the caller has AVX-512.
                $name(unsafe { $set1(value.cast_signed()) })
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller has AVX-512 and a valid pointer.
                $name(unsafe { $loadu(from.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller has AVX-512 and a valid pointer.
                unsafe { $storeu(to.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn load_first(from: *const $elem, count: usize) -> Self {
                let mask = (u32::MAX >> (32 - count)) as $mask;
                // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
                $name(unsafe { $mask_loadu($set1(-1), mask, from.cast()) })
            }

            #[inline(always)]
            unsafe fn store_first(self, to: *mut $elem, count: usize) {
                let mask = ((1u32 << count) - 1) as $mask;
                // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
                unsafe { $mask_storeu(to.cast(), mask, self.0) }
            }

            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                // SAFETY: the caller has AVX-512.
                $name(unsafe { $min(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // SAFETY: the caller has AVX-512.
                $name(unsafe { $max(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn swapped(self, mask: usize) -> Self {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    let lanes = _mm512_xor_si512($numbers, Self::splat(mask as $elem).0);
                    $name($permute(lanes, self.0))
                }
            }

            #[inline(always)]
            unsafe fn exchanged(self, other: Self, bit: usize) -> Self {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    let having = $test($numbers, Self::splat(bit as $elem).0);
                    $name($mask_max(self.min(other).0, having, self.0, other.0))
                }
            }

            #[inline(always)]
            unsafe fn turned(self, other: Self, bit: usize) -> (Self, Self) {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    let bit = Self::splat(bit as $elem).0;
                    let (having, across) = ($test($numbers, bit), _mm512_xor_si512($numbers, bit));
                    let first = $mask_permute(self.0, having, across, other.0);
                    ($name(first), $name($mask_permute(other.0, !having, across, self.0)))
                }
            }

            #[inline(always)]
            unsafe fn part_to(self, pivot: Self, low: *mut $elem, end: *mut $elem) -> usize {
                // SAFETY: the caller has AVX-512 and room for a register.
                unsafe {
                    let is_below = $less(self.0, pivot.0);
                    let below = is_below.count_ones() as usize;
                    let above = $lanes - below;
                    $name($compress(is_below, self.0)).store(low);
                    $name($compress(!is_below, self.0)).store_first(end.sub(above), above);
                    below
                }
            }

            #[inline(always)]
            unsafe fn part_around_to(
                self,
                pivot: Self,
                low: *mut $elem,
                end: *mut $elem,
            ) -> (usize, usize) {
                // SAFETY: the caller has AVX-512 and room for a register.
                unsafe {
                    let is_below = $less(self.0, pivot.0);
                    let is_above = $greater(self.0, pivot.0);
                    let above = is_above.count_ones() as usize;
                    $name($compress(is_below, self.0)).store(low);
                    $name($compress(is_above, self.0)).store_first(end.sub(above), above);
                    (is_below.count_ones() as usize, above)
                }
            }
        }
    };
}

avx512!(U32x16, u32, 16, __mmask16,
    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    _mm512_set1_epi32 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_mask_loadu_epi32
    _mm512_mask_storeu_epi32 _mm512_min_epu32 _mm512_max_epu32 _mm512_permutexvar_epi32
    _mm512_mask_permutexvar_epi32 _mm512_test_epi32_mask _mm512_mask_max_epu32 _mm512_cmplt_epu32_mask
    _mm512_cmpgt_epu32_mask _mm512_maskz_compress_epi32);

avx512!(U64x8, u64, 8, __mmask8, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
    _mm512_set1_epi64 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_mask_loadu_epi64
    _mm512_mask_storeu_epi64 _mm512_min_epu64 _mm512_max_epu64 _mm512_permutexvar_epi64
    _mm512_mask_permutexvar_epi64 _mm512_test_epi64_mask _mm512_mask_max_epu64 _mm512_cmplt_epu64_mask
    _mm512_cmpgt_epu64_mask _mm512_maskz_compress_epi64);

/// For each set of lanes: those first, the others behind.
static PARTED: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut at, mut wanted) = (0, 1);
        while at < 8 {
            let mut lane = 0;
            while lane < 8 {
                if set >> lane & 1 == wanted {
                    table[set][at] = lane;
                    at += 1;
                }
                lane += 1;
            }
            wanted = 0;
        }
        set += 1;
    }
    table
};

/// Eight `u32` of AVX2.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct U32x8(__m256i);

impl U32x8 {
    /// The number of each lane.
    ///
    /// # Safety
    /// AVX2 is available.
    #[inline(always)]
    unsafe fn numbers() -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) }
    }

    /// All bits of the lanes below `count`.
    ///
    /// # Safety
    /// AVX2 is available.
    #[inline(always)]
    unsafe fn first(count: usize) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), Self::numbers()) }
    }

    /// The lanes that are less than those of another.
    ///
    /// # Safety
    /// AVX2 is available.
    #[inline(always)]
    unsafe fn below(self, other: U32x8) -> u8 {
        // SAFETY: the caller has AVX2.
        unsafe {
            // There is no unsigned comparison: not below is to be the greater of both.
            let not_below = _mm256_cmpeq_epi32(_mm256_max_epu32(self.0, other.0), self.0);
            !_mm256_movemask_ps(_mm256_castsi256_ps(not_below)) as u8
        }
    }

    /// Some lanes first, the others behind, each in order.
    ///
    /// # Safety
    /// AVX2 is available.
    #[inline(always)]
    unsafe fn parted(self, first: u8) -> U32x8 {
        // SAFETY: the caller has AVX2; a set has eight bits, as many rows as the table has.
        unsafe {
            let lanes = _mm256_loadu_si256(PARTED[usize::from(first)].as_ptr().cast());
            U32x8(_mm256_permutevar8x32_epi32(self.0, lanes))
        }
    }
}

impl Keys for U32x8 {
    type Elem = u32;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: u32) -> Self {
        // SAFETY: the caller has AVX2.
        U32x8(unsafe { _mm256_set1_epi32(value.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        U32x8(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller has AVX2 and a valid pointer.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u32, count: usize) -> Self {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe {
            let mask = Self::first(count);
            let lanes = _mm256_maskload_epi32(from.cast(), mask);
            U32x8(_mm256_blendv_epi8(_mm256_set1_epi32(-1), lanes, mask))
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u32, count: usize) {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe { _mm256_maskstore_epi32(to.cast(), Self::first(count), self.0) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        U32x8(unsafe { _mm256_min_epu32(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        U32x8(unsafe { _mm256_max_epu32(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn swapped(self, mask: usize) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe {
            let lanes = _mm256_xor_si256(Self::numbers(), _mm256_set1_epi32(mask as i32));
            U32x8(_mm256_permutevar8x32_epi32(self.0, lanes))
        }
    }

    #[inline(always)]
    unsafe fn exchanged(self, other: Self, bit: usize) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe {
            let bit = _mm256_set1_epi32(bit as i32);
            let having = _mm256_cmpeq_epi32(_mm256_and_si256(Self::numbers(), bit), bit);
            U32x8(_mm256_blendv_epi8(self.min(other).0, self.max(other).0, having))
        }
    }

    #[inline(always)]
    unsafe fn turned(self, other: Self, bit: usize) -> (Self, Self) {
        // SAFETY: the caller has AVX2.
        unsafe {
            let (across, back) = (other.swapped(bit).0, self.swapped(bit).0);
            let bit = _mm256_set1_epi32(bit as i32);
            let having = _mm256_cmpeq_epi32(_mm256_and_si256(Self::numbers(), bit), bit);
            let first = _mm256_blendv_epi8(self.0, across, having);
            (U32x8(first), U32x8(_mm256_blendv_epi8(back, other.0, having)))
        }
    }

    #[inline(always)]
    unsafe fn part_to(self, pivot: Self, low: *mut u32, end: *mut u32) -> usize {
        // SAFETY: the caller has AVX2; where there is room for more than one register there is for
        // two, so that neither overwrites what the other has to say.
        unsafe {
            let below = self.below(pivot);
            let parted = self.parted(below);
            parted.store(low);
            parted.store(end.sub(8));
            below.count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn part_around_to(self, pivot: Self, low: *mut u32, end: *mut u32) -> (usize, usize) {
        // SAFETY: the caller has AVX2, and room for two registers.
        unsafe {
            let (below, not_above) = (self.below(pivot), !pivot.below(self));
            self.parted(below).store(low);
            self.parted(not_above).store(end.sub(8));
            (below.count_ones() as usize, not_above.count_zeros() as usize)
        }
    }
}

/// A [`Sorter`] compiled for an instruction set.
macro_rules! sorter {
    ($module:ident, $name:ident, $register:ident, $elem:ident, $features:literal) => {
        mod $module {
            use super::*;
            #[target_feature(enable = $features)]
            pub(super) unsafe fn sort(d: *mut $elem, o: *mut $elem, to_other: bool, count: usize) {
                // SAFETY: the same contract.
                unsafe { quick::sort::<$register>(d, o, to_other, count) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn part(
                from: *const $elem,
                to: *mut $elem,
                count: usize,
                pivot: $elem,
            ) -> usize {
                // SAFETY: the same contract.
                unsafe { quick::part::<$register>(from, to, count, pivot) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn part_around(
                from: *const $elem,
                to: *mut $elem,
                count: usize,
                pivot: $elem,
            ) -> (usize, usize) {
                // SAFETY: the same contract.
                unsafe { quick::part_around::<$register>(from, to, count, pivot) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn merge(
                a: *const $elem,
                a_count: usize,
                b: *const $elem,
                b_count: usize,
                to: *mut $elem,
            ) {
                // SAFETY: the same contract.
                unsafe { quick::merge::<$register>(a, a_count, b, b_count, to) }
            }
        }

        pub(super) const $name: Sorter<$elem> = Sorter {
            sort: $module::sort,
            part: $module::part,
            part_around: $module::part_around,
            merge: $module::merge,
        };
    };
}

sorter!(avx2_u32, AVX2_U32, U32x8, u32, "avx2,popcnt");
sorter!(avx512_u32, AVX512_U32, U32x16, u32, "avx512f,avx512bw,avx512dq,avx512vl,popcnt");
sorter!(avx512_u64, AVX512_U64, U64x8, u64, "avx512f,avx512bw,avx512dq,avx512vl,popcnt");
