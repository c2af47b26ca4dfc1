//! Sixteen float32 or eight float64 in an AVX-512 register.
//!
//! Every method assumes AVX-512 F, BW, DQ and VL and valid pointers (see [`Lanes`]); used only
//! through kernels that were entered by [`Avx512`].

use super::avx2;
use super::family::HalfLanes;
use super::lanes::{Avx512, Lanes, RealLanes};
use super::register::register_lanes;
use std::arch::x86_64::*;

register_lanes! {
    /// Sixteen float32.
    F32x16(__m512) = f32 x 16, Avx512, __mmask16;
    _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_add_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps;
    load |from, mask| _mm512_maskz_loadu_ps(mask, from);
    store |to, mask, value| _mm512_mask_storeu_ps(to, mask, value);
    first_f32, transpose_f32, unzip_f32, zip_f32, sum_f32
}

/// The sum of all lanes, by halves.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn sum_f32(lanes: __m512) -> f32 {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let high = _mm512_extractf32x8_ps::<1>(lanes);
        avx2::sum_f32(_mm256_add_ps(_mm512_castps512_ps256(lanes), high))
    }
}

/// Even and odd elements of two vectors.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn unzip_f32(low: __m512, high: __m512) -> (__m512, __m512) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        (_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high))
    }
}

/// The elements of two vectors in turn.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn zip_f32(even: __m512, odd: __m512) -> (__m512, __m512) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        (_mm512_permutex2var_ps(even, low, odd), _mm512_permutex2var_ps(even, high, odd))
    }
}

impl F32x16 {
    /// Any bits; for moving them around.
    ///
    /// # Safety
    /// AVX-512 is available.
    #[inline(always)]
    pub(super) unsafe fn from_bits(bits: __m512i) -> Self {
        // SAFETY: the caller has AVX-512.
        F32x16(unsafe { _mm512_castsi512_ps(bits) })
    }

    /// The bits.
    ///
    /// # Safety
    /// AVX-512 is available.
    #[inline(always)]
    pub(super) unsafe fn to_bits(self) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_castps_si512(self.0) }
    }
}

/// The mask of the first `count` lanes, at least one.
///
/// # Safety
/// None of its own: it is called as the mask of other registers is.
#[inline(always)]
unsafe fn first_f32(count: usize) -> __mmask16 {
    (u32::MAX >> (32 - count)) as __mmask16
}

/// Transposes sixteen vectors as a square matrix.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn transpose_f32(square: &mut [F32x16; 16]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let zero = _mm512_setzero_ps();
        // After two rounds of interleaving, word 4i + j holds in its 128-bit part p rows 4i to
        // 4i + 3 of column 4p + j.
        let mut pairs = [zero; 16];
        for i in 0..8 {
            pairs[2 * i] = _mm512_unpacklo_ps(square[2 * i].0, square[2 * i + 1].0);
            pairs[2 * i + 1] = _mm512_unpackhi_ps(square[2 * i].0, square[2 * i + 1].0);
        }
        let mut quads = [zero; 16];
        for i in 0..4 {
            for half in 0..2 {
                let left = _mm512_castps_pd(pairs[4 * i + half]);
                let right = _mm512_castps_pd(pairs[4 * i + 2 + half]);
                quads[4 * i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(left, right));
                quads[4 * i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(left, right));
            }
        }
        // Then the 128-bit parts form 4 x 4 matrices of their own.
        for j in 0..4 {
            let even_low = _mm512_shuffle_f32x4::<0x88>(quads[j], quads[4 + j]);
            let odd_low = _mm512_shuffle_f32x4::<0xdd>(quads[j], quads[4 + j]);
            let even_high = _mm512_shuffle_f32x4::<0x88>(quads[8 + j], quads[12 + j]);
            let odd_high = _mm512_shuffle_f32x4::<0xdd>(quads[8 + j], quads[12 + j]);
            square[j].0 = _mm512_shuffle_f32x4::<0x88>(even_low, even_high);
            square[4 + j].0 = _mm512_shuffle_f32x4::<0x88>(odd_low, odd_high);
            square[8 + j].0 = _mm512_shuffle_f32x4::<0xdd>(even_low, even_high);
            square[12 + j].0 = _mm512_shuffle_f32x4::<0xdd>(odd_low, odd_high);
        }
    }
}

impl HalfLanes for F32x16 {
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: the caller has AVX-512 and a pointer to 16 halves.
        F32x16(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // SAFETY: the caller has AVX-512 and a pointer to 16 halves.
        unsafe {
            let half = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0);
            _mm256_storeu_si256(to.cast(), half);
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: the caller has AVX-512 and a pointer to 16 halves.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            F32x16(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)))
        }
    }

    #[inline(always)]
    unsafe fn store_bf16(self, to: *mut u16) {
        // SAFETY: the caller has AVX-512 and a pointer to 16 halves.
        unsafe {
            // To nearest, ties to even, by integer addition; a NaN keeps its upper bits and
            // becomes quiet.
            let bits = _mm512_castps_si512(self.0);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_add_epi32(bits, bias);
            let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0);
            let chosen = _mm512_mask_mov_epi32(rounded, nan, quiet);
            let half = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(chosen));
            _mm256_storeu_si256(to.cast(), half);
        }
    }
}

register_lanes! {
    /// Eight float64.
    F64x8(__m512d) = f64 x 8, Avx512, __mmask8;
    _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
    _mm512_add_pd, _mm512_fmadd_pd, _mm512_fnmadd_pd;
    load |from, mask| _mm512_maskz_loadu_pd(mask, from);
    store |to, mask, value| _mm512_mask_storeu_pd(to, mask, value);
    first_f64, transpose_f64, unzip_f64, zip_f64, sum_f64
}

/// The sum of all lanes, by halves.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn sum_f64(lanes: __m512d) -> f64 {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let high = _mm512_extractf64x4_pd::<1>(lanes);
        avx2::sum_f64(_mm256_add_pd(_mm512_castpd512_pd256(lanes), high))
    }
}

/// Even and odd elements of two vectors.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn unzip_f64(low: __m512d, high: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        (_mm512_permutex2var_pd(low, even, high), _mm512_permutex2var_pd(low, odd, high))
    }
}

/// The elements of two vectors in turn.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn zip_f64(even: __m512d, odd: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        (_mm512_permutex2var_pd(even, low, odd), _mm512_permutex2var_pd(even, high, odd))
    }
}

/// The mask of the first `count` lanes, at least one.
///
/// # Safety
/// None of its own: it is called as the mask of other registers is.
#[inline(always)]
unsafe fn first_f64(count: usize) -> __mmask8 {
    (u32::MAX >> (32 - count)) as __mmask8
}

/// Transposes the first eight vectors as a square matrix.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn transpose_f64(square: &mut [F64x8; 16]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        // After interleaving, word 2i + j holds in its 128-bit part p rows 2i and 2i + 1 of
        // column 2p + j; the parts then form 4 x 4 matrices.
        let mut pairs = [_mm512_setzero_pd(); 8];
        for i in 0..4 {
            pairs[2 * i] = _mm512_unpacklo_pd(square[2 * i].0, square[2 * i + 1].0);
            pairs[2 * i + 1] = _mm512_unpackhi_pd(square[2 * i].0, square[2 * i + 1].0);
        }
        for j in 0..2 {
            let even_low = _mm512_shuffle_f64x2::<0x88>(pairs[j], pairs[2 + j]);
            let odd_low = _mm512_shuffle_f64x2::<0xdd>(pairs[j], pairs[2 + j]);
            let even_high = _mm512_shuffle_f64x2::<0x88>(pairs[4 + j], pairs[6 + j]);
            let odd_high = _mm512_shuffle_f64x2::<0xdd>(pairs[4 + j], pairs[6 + j]);
            square[j].0 = _mm512_shuffle_f64x2::<0x88>(even_low, even_high);
            square[2 + j].0 = _mm512_shuffle_f64x2::<0x88>(odd_low, odd_high);
            square[4 + j].0 = _mm512_shuffle_f64x2::<0xdd>(even_low, even_high);
            square[6 + j].0 = _mm512_shuffle_f64x2::<0xdd>(odd_low, odd_high);
        }
    }
}
