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
    first_f32, transpose_f32, unzip_f32, zip_f32, sum_f32
}

/// The sum of all lanes, by halves.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
pub(super) unsafe fn sum_f32(lanes: __m256) -> f32 {
    // SAFETY: the caller has AVX2.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

/// Even and odd elements of two vectors.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn unzip_f32(low: __m256, high: __m256) -> (__m256, __m256) {
    // SAFETY: the caller has AVX2.
    unsafe {
        // Shuffles work within 128-bit parts: the middle quarters change places afterwards.
        let pick = |part| _mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(_mm256_castps_pd(part)));
        (pick(_mm256_shuffle_ps::<0x88>(low, high)), pick(_mm256_shuffle_ps::<0xdd>(low, high)))
    }
}

/// The elements of two vectors in turn.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn zip_f32(even: __m256, odd: __m256) -> (__m256, __m256) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (low, high) = (_mm256_unpacklo_ps(even, odd), _mm256_unpackhi_ps(even, odd));
        (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
    }
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
    first_f64, transpose_f64, unzip_f64, zip_f64, sum_f64
}

/// The sum of all lanes, by halves.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
pub(super) unsafe fn sum_f64(lanes: __m256d) -> f64 {
    // SAFETY: the caller has AVX2.
    unsafe {
        let two = _mm_add_pd(_mm256_castpd256_pd128(lanes), _mm256_extractf128_pd::<1>(lanes));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    }
}

/// Even and odd elements of two vectors.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn unzip_f64(low: __m256d, high: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (even, odd) = (_mm256_unpacklo_pd(low, high), _mm256_unpackhi_pd(low, high));
        (_mm256_permute4x64_pd::<0xd8>(even), _mm256_permute4x64_pd::<0xd8>(odd))
    }
}

/// The elements of two vectors in turn.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn zip_f64(even: __m256d, odd: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (low, high) = (_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd));
        (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
    }
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
