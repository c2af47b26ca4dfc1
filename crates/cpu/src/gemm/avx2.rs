//! Eight float32 or four float64 in an AVX register.
//!
//! Every method assumes AVX2, FMA and F16C and valid pointers (see [`Lanes`]); used only through
//! kernels that were entered by [`Avx2`].

use super::family::HalfLanes;
use super::lanes::{Avx2, Lanes, RealLanes};
use super::register::register_lanes;
use std::arch::x86_64::*;

register_lanes! {
    /// Eight float32.
    F32x8(__m256) = f32 x 8, Avx2, __m256i;
    _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
    _mm256_add_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps;
    load |from, mask| _mm256_maskload_ps(from, mask);
    store |to, mask, value| _mm256_maskstore_ps(to, mask, value);
    first_f32, transpose_f32
}

/// The mask of the first `count` lanes.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn first_f32(count: usize) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
    }
}

/// Transposes the first eight vectors as a square matrix.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn transpose_f32(square: &mut [F32x8; 16]) {
    // SAFETY: the caller has AVX2.
    unsafe {
        // After two rounds of interleaving, word 4i + j holds in its 128-bit part p rows 4i to
        // 4i + 3 of column 4p + j.
        let zero = _mm256_setzero_ps();
        let mut pairs = [zero; 8];
        for i in 0..4 {
            pairs[2 * i] = _mm256_unpacklo_ps(square[2 * i].0, square[2 * i + 1].0);
            pairs[2 * i + 1] = _mm256_unpackhi_ps(square[2 * i].0, square[2 * i + 1].0);
        }
        let mut quads = [zero; 8];
        for i in 0..2 {
            for half in 0..2 {
                let left = _mm256_castps_pd(pairs[4 * i + half]);
                let right = _mm256_castps_pd(pairs[4 * i + 2 + half]);
                quads[4 * i + 2 * half] = _mm256_castpd_ps(_mm256_unpacklo_pd(left, right));
                quads[4 * i + 2 * half + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(left, right));
            }
        }
        for j in 0..4 {
            square[j].0 = _mm256_permute2f128_ps::<0x20>(quads[j], quads[4 + j]);
            square[4 + j].0 = _mm256_permute2f128_ps::<0x31>(quads[j], quads[4 + j]);
        }
    }
}

impl HalfLanes for F32x8 {
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: the caller has F16C and a pointer to 8 halves.
        F32x8(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) })
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // SAFETY: the caller has F16C and a pointer to 8 halves.
        unsafe {
            let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm_storeu_si128(to.cast(), half);
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: the caller has AVX2 and a pointer to 8 halves.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            F32x8(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide)))
        }
    }

    #[inline(always)]
    unsafe fn store_bf16(self, to: *mut u16) {
        // SAFETY: the caller has AVX2 and a pointer to 8 halves.
        unsafe {
            // To nearest, ties to even, by integer addition; a NaN keeps its upper bits and
            // becomes quiet.
            let bits = _mm256_castps_si256(self.0);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
            let rounded = _mm256_add_epi32(bits, bias);
            let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(self.0, self.0));
            let chosen = _mm256_blendv_epi8(rounded, quiet, nan);
            let upper = _mm256_srli_epi32::<16>(chosen);
            // The pack works within 128-bit parts: its two useful quarters are brought together.
            let packed = _mm256_packus_epi32(upper, upper);
            let ordered = _mm256_permute4x64_epi64::<0b1000>(packed);
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(ordered));
        }
    }
}

register_lanes! {
    /// Four float64.
    F64x4(__m256d) = f64 x 4, Avx2, __m256i;
    _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd,
    _mm256_add_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd;
    load |from, mask| _mm256_maskload_pd(from, mask);
    store |to, mask, value| _mm256_maskstore_pd(to, mask, value);
    first_f64, transpose_f64
}

/// The mask of the first `count` lanes.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn first_f64(count: usize) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
}

/// Transposes the first four vectors as a square matrix.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn transpose_f64(square: &mut [F64x4; 16]) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let mut pairs = [_mm256_setzero_pd(); 4];
        for i in 0..2 {
            pairs[2 * i] = _mm256_unpacklo_pd(square[2 * i].0, square[2 * i + 1].0);
            pairs[2 * i + 1] = _mm256_unpackhi_pd(square[2 * i].0, square[2 * i + 1].0);
        }
        for j in 0..2 {
            square[j].0 = _mm256_permute2f128_pd::<0x20>(pairs[j], pairs[2 + j]);
            square[2 + j].0 = _mm256_permute2f128_pd::<0x31>(pairs[j], pairs[2 + j]);
        }
    }
}
