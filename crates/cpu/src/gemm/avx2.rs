//! Eight float32 or four float64 in an AVX register.
//!
//! Every method assumes AVX2, FMA and F16C and valid pointers (see [`Lanes`]); used only through
//! kernels that were entered by [`Avx2`].

use super::family::HalfLanes;
use super::lanes::{Avx2, Lanes, RealLanes};
use std::arch::x86_64::*;

/// Eight float32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F32x8(__m256);

impl Lanes for F32x8 {
    type Elem = f32;
    type Mask = __m256i;
    type Level = Avx2;

    const WIDTH: usize = 8;
    const TRANSPOSES: bool = true;
    const ZERO: f32 = 0.0;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX2.
        F32x8(unsafe { _mm256_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        F32x8(unsafe { _mm256_set1_ps(*from) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        F32x8(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller has AVX2 and a valid pointer.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
        }
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __m256i) -> Self {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        F32x8(unsafe { _mm256_maskload_ps(from, mask) })
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __m256i) {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe { _mm256_maskstore_ps(to, mask, self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has FMA.
        F32x8(unsafe { _mm256_fmadd_ps(self.0, other.0, sum.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        F32x8(unsafe { _mm256_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn add_elems(left: f32, right: f32) -> f32 {
        left + right
    }

    #[inline(always)]
    unsafe fn transpose(square: &mut [Self; 16]) {
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
}

impl RealLanes for F32x8 {
    #[inline(always)]
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has FMA.
        F32x8(unsafe { _mm256_fnmadd_ps(self.0, other.0, sum.0) })
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

/// Four float64.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F64x4(__m256d);

impl Lanes for F64x4 {
    type Elem = f64;
    type Mask = __m256i;
    type Level = Avx2;

    const WIDTH: usize = 4;
    const TRANSPOSES: bool = true;
    const ZERO: f64 = 0.0;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX2.
        F64x4(unsafe { _mm256_setzero_pd() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f64) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        F64x4(unsafe { _mm256_set1_pd(*from) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        F64x4(unsafe { _mm256_loadu_pd(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller has AVX2 and a valid pointer.
        unsafe { _mm256_storeu_pd(to, self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), lanes)
        }
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: __m256i) -> Self {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        F64x4(unsafe { _mm256_maskload_pd(from, mask) })
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f64, mask: __m256i) {
        // SAFETY: the caller has AVX2; lanes outside of the mask are not accessed.
        unsafe { _mm256_maskstore_pd(to, mask, self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has FMA.
        F64x4(unsafe { _mm256_fmadd_pd(self.0, other.0, sum.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        F64x4(unsafe { _mm256_add_pd(self.0, other.0) })
    }

    #[inline(always)]
    fn add_elems(left: f64, right: f64) -> f64 {
        left + right
    }

    #[inline(always)]
    unsafe fn transpose(square: &mut [Self; 16]) {
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
}

impl RealLanes for F64x4 {
    #[inline(always)]
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has FMA.
        F64x4(unsafe { _mm256_fnmadd_pd(self.0, other.0, sum.0) })
    }
}
