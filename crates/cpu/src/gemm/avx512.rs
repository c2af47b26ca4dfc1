//! Sixteen float32 or eight float64 in an AVX-512 register.
//!
//! Every method assumes AVX-512 F, BW, DQ and VL and valid pointers (see [`Lanes`]); used only
//! through kernels that were entered by [`Avx512`].

use super::family::HalfLanes;
use super::lanes::{Avx512, Lanes, RealLanes};
use std::arch::x86_64::*;

/// Sixteen float32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F32x16(__m512);

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

impl Lanes for F32x16 {
    type Elem = f32;
    type Mask = __mmask16;
    type Level = Avx512;

    const WIDTH: usize = 16;
    const TRANSPOSES: bool = true;
    const ZERO: f32 = 0.0;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX-512.
        F32x16(unsafe { _mm512_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        F32x16(unsafe { _mm512_set1_ps(*from) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        F32x16(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> __mmask16 {
        (u32::MAX >> (32 - count)) as __mmask16
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __mmask16) -> Self {
        // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
        F32x16(unsafe { _mm512_maskz_loadu_ps(mask, from) })
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __mmask16) {
        // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
        unsafe { _mm512_mask_storeu_ps(to, mask, self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F32x16(unsafe { _mm512_fmadd_ps(self.0, other.0, sum.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F32x16(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn add_elems(left: f32, right: f32) -> f32 {
        left + right
    }

    #[inline(always)]
    unsafe fn transpose(square: &mut [Self; 16]) {
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
}

impl RealLanes for F32x16 {
    #[inline(always)]
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F32x16(unsafe { _mm512_fnmadd_ps(self.0, other.0, sum.0) })
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

/// Eight float64.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F64x8(__m512d);

impl Lanes for F64x8 {
    type Elem = f64;
    type Mask = __mmask8;
    type Level = Avx512;

    const WIDTH: usize = 8;
    const TRANSPOSES: bool = true;
    const ZERO: f64 = 0.0;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX-512.
        F64x8(unsafe { _mm512_setzero_pd() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f64) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        F64x8(unsafe { _mm512_set1_pd(*from) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        F64x8(unsafe { _mm512_loadu_pd(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        unsafe { _mm512_storeu_pd(to, self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> __mmask8 {
        (u32::MAX >> (32 - count)) as __mmask8
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: __mmask8) -> Self {
        // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
        F64x8(unsafe { _mm512_maskz_loadu_pd(mask, from) })
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f64, mask: __mmask8) {
        // SAFETY: the caller has AVX-512; lanes outside of the mask are not accessed.
        unsafe { _mm512_mask_storeu_pd(to, mask, self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F64x8(unsafe { _mm512_fmadd_pd(self.0, other.0, sum.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F64x8(unsafe { _mm512_add_pd(self.0, other.0) })
    }

    #[inline(always)]
    fn add_elems(left: f64, right: f64) -> f64 {
        left + right
    }

    #[inline(always)]
    unsafe fn transpose(square: &mut [Self; 16]) {
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
}

impl RealLanes for F64x8 {
    #[inline(always)]
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        F64x8(unsafe { _mm512_fnmadd_pd(self.0, other.0, sum.0) })
    }
}
