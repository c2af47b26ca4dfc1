//! Registers of unsigned integers of AVX-512, and the sorts made of them and of those of AVX2.
//!
//! Used only below functions with the matching `#[target_feature]`, which are the three entries at
//! the end; `order/mod.rs` lists them.

use std::arch::x86_64::*;

use super::avx2::U32x8;
use super::{Integer, Keys, Sorter, network, quick};

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            const MAX: $type = $type::MAX;
        }
    )*};
}

integers!(u32 u64);

macro_rules! avx512 {
    ($name:ident, $module:ident, $elem:ident, $lanes:literal, $mask:ident, $numbers:expr,
     $set1:ident $loadu:ident $storeu:ident $mask_loadu:ident $mask_storeu:ident $min:ident $max:ident
     $permute:ident $mask_permute:ident $shift_right:ident $test:ident $mask_max:ident $less:ident $greater:ident $compress:ident $part:ident
     $equal:ident) => {
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
                let mask = ((1u32 << count) - 1) as $mask;
                // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
                $name(unsafe { $mask_loadu($set1(-1), mask, from.cast()) })
            }

            #[inline(always)]
            unsafe fn load_last(end: *const $elem, count: usize) -> Self {
                let mask = !((1u32 << ($lanes - count)) - 1) as $mask;
                let from = end.wrapping_sub($lanes);
                // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
                $name(unsafe { $mask_loadu(_mm512_setzero_si512(), mask, from.cast()) })
            }

            #[inline(always)]
            unsafe fn store_first(self, to: *mut $elem, count: usize) {
                let mask = ((1u32 << count) - 1) as $mask;
                // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
                unsafe { $mask_storeu(to.cast(), mask, self.0) }
            }

            #[inline(always)]
            unsafe fn sort_few(from: *const $elem, to: *mut $elem, count: usize) {
                // SAFETY: the same contract.
                unsafe { $module::sort_few(from, to, count) }
            }

            #[inline(always)]
            unsafe fn equal(self, other: Self) -> usize {
                // SAFETY: the caller has AVX-512.
                unsafe { $equal(self.0, other.0).count_ones() as usize }
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
            unsafe fn interleaved(self, other: Self) -> (Self, Self) {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    // Even lanes from the first, odd ones from the second.
                    let lanes = $shift_right::<1>($numbers);
                    let odd = $test($numbers, Self::splat(1).0);
                    let first = $mask_permute($permute(lanes, self.0), odd, lanes, other.0);
                    let lanes = _mm512_add_epi64(lanes, Self::splat($lanes / 2).0);
                    let second = $mask_permute($permute(lanes, self.0), odd, lanes, other.0);
                    ($name(first), $name(second))
                }
            }

            #[inline(always)]
            unsafe fn part_to(self, pivot: Self, low: *mut $elem, end: *mut $elem) -> usize {
                // SAFETY: the same contract.
                unsafe { $part(self, pivot, low, end) }
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

avx512!(U32x16, avx512_u32, u32, 16, __mmask16,
    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    _mm512_set1_epi32 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_mask_loadu_epi32
    _mm512_mask_storeu_epi32 _mm512_min_epu32 _mm512_max_epu32 _mm512_permutexvar_epi32
    _mm512_mask_permutexvar_epi32 _mm512_srli_epi32 _mm512_test_epi32_mask _mm512_mask_max_epu32 _mm512_cmplt_epu32_mask
    _mm512_cmpgt_epu32_mask _mm512_maskz_compress_epi32 part_u32
    _mm512_cmpeq_epu32_mask);

avx512!(U64x8, avx512_u64, u64, 8, __mmask8, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
    _mm512_set1_epi64 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_mask_loadu_epi64
    _mm512_mask_storeu_epi64 _mm512_min_epu64 _mm512_max_epu64 _mm512_permutexvar_epi64
    _mm512_mask_permutexvar_epi64 _mm512_srli_epi64 _mm512_test_epi64_mask _mm512_mask_max_epu64 _mm512_cmplt_epu64_mask
    _mm512_cmpgt_epu64_mask _mm512_maskz_compress_epi64 part_u64
    _mm512_cmpeq_epu64_mask);

/// For each set of lanes: those first, the others behind.
pub(super) static PARTED: [[u8; 8]; 256] = {
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

/// [`Keys::part_to`] of sixteen lanes.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn part_u32(lanes: U32x16, pivot: U32x16, low: *mut u32, end: *mut u32) -> usize {
    // SAFETY: the caller has AVX-512 and room for a register.
    unsafe {
        let is_below = _mm512_cmplt_epu32_mask(lanes.0, pivot.0);
        let below = is_below.count_ones() as usize;
        let above = 16 - below;
        U32x16(_mm512_maskz_compress_epi32(is_below, lanes.0)).store(low);
        U32x16(_mm512_maskz_compress_epi32(!is_below, lanes.0)).store_first(end.sub(above), above);
        below
    }
}

/// [`Keys::part_to`] of eight lanes: few enough that a table has the order of all cases, which takes
/// half as long as to compress twice.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn part_u64(lanes: U64x8, pivot: U64x8, low: *mut u64, end: *mut u64) -> usize {
    // SAFETY: the caller has AVX-512; where there is room for more than one register there is for
    // two, so that neither overwrites what the other has to say.
    unsafe {
        let is_below = _mm512_cmplt_epu64_mask(lanes.0, pivot.0);
        let order = _mm_loadl_epi64(PARTED[usize::from(is_below)].as_ptr().cast());
        let parted = U64x8(_mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(order), lanes.0));
        parted.store(low);
        parted.store(end.sub(8));
        is_below.count_ones() as usize
    }
}

/// A [`Sorter`] compiled for an instruction set.
macro_rules! sorter {
    ($module:ident, $name:ident, $register:ident, $elem:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;
            #[inline(never)]
            #[target_feature(enable = $features)]
            pub(in crate::order) unsafe fn sort_few(
                from: *const $elem,
                to: *mut $elem,
                count: usize,
            ) {
                // SAFETY: the same contract.
                unsafe { network::small::<$register>(from, to, count) }
            }
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
            #[target_feature(enable = $features)]
            pub(super) unsafe fn occurrences(
                from: *const $elem,
                count: usize,
                integer: $elem,
            ) -> usize {
                // SAFETY: the same contract.
                unsafe { quick::occurrences::<$register>(from, count, integer) }
            }
        }

        pub(super) const $name: Sorter<$elem> = Sorter {
            sort: $module::sort,
            part: $module::part,
            part_around: $module::part_around,
            merge: $module::merge,
            occurrences: $module::occurrences,
        };
    };
}

sorter!(avx2_u32, AVX2_U32, U32x8, u32, "avx2,popcnt");
sorter!(avx512_u32, AVX512_U32, U32x16, u32, "avx512f,avx512bw,avx512dq,avx512vl,popcnt");
sorter!(avx512_u64, AVX512_U64, U64x8, u64, "avx512f,avx512bw,avx512dq,avx512vl,popcnt");
