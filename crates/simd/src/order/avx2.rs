//! Registers of unsigned integers of AVX2.
//!
//! Used only below functions with the matching `#[target_feature]`: the entries of `registers.rs`.

use std::arch::x86_64::*;

use super::Keys;
use super::registers::{PARTED, avx2_u32};

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
            let order = _mm_loadl_epi64(PARTED[usize::from(first)].as_ptr().cast());
            U32x8(_mm256_permutevar8x32_epi32(self.0, _mm256_cvtepu8_epi32(order)))
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
    unsafe fn load_last(end: *const u32, count: usize) -> Self {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe {
            let mask = _mm256_cmpgt_epi32(Self::numbers(), _mm256_set1_epi32(7 - count as i32));
            U32x8(_mm256_maskload_epi32(end.wrapping_sub(8).cast(), mask))
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u32, count: usize) {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe { _mm256_maskstore_epi32(to.cast(), Self::first(count), self.0) }
    }

    #[inline(always)]
    unsafe fn sort_few(from: *const u32, to: *mut u32, count: usize) {
        // SAFETY: the same contract.
        unsafe { avx2_u32::sort_few(from, to, count) }
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> usize {
        // SAFETY: the caller has AVX2.
        unsafe {
            let equal = _mm256_cmpeq_epi32(self.0, other.0);
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)).count_ones() as usize
        }
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
    unsafe fn interleaved(self, other: Self) -> (Self, Self) {
        // SAFETY: the caller has AVX2.
        unsafe {
            // Quarters by turns, of which the even ones belong to the first.
            let even = _mm256_unpacklo_epi32(self.0, other.0);
            let odd = _mm256_unpackhi_epi32(self.0, other.0);
            let first = _mm256_permute2x128_si256::<0x20>(even, odd);
            (U32x8(first), U32x8(_mm256_permute2x128_si256::<0x31>(even, odd)))
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
