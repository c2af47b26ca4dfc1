//! Slice conversions between half floats and `f32`: float16 and bfloat16, both ways, per level.
//!
//! Rounding is to nearest even; NaN stays NaN, made quiet; subnormals are kept. All levels give the
//! same bits. Called by the CPU backend around computations that run in `f32`.

use crate::{Kernel, Level};

/// float16 bits to `f32`.
pub fn f16_to_f32(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7FFF) << 13;
    let exponent = magnitude & 0x0F80_0000;
    let bits = if exponent == 0x0F80_0000 {
        // Infinity or NaN; the quiet bit as hardware sets it.
        let quiet = if magnitude > 0x0F80_0000 { 0x0040_0000 } else { 0 };
        magnitude | 0x7F80_0000 | quiet
    } else if exponent == 0 {
        // Subnormal: the mantissa counts units of 2^-24, exactly.
        (f32::from(h & 0x03FF) * 5.960_464_5e-8).to_bits()
    } else {
        magnitude + (112 << 23)
    };
    f32::from_bits(bits | sign)
}

/// `f32` to float16 bits.
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let a = bits & 0x7FFF_FFFF;
    let h = if a > 0x7F80_0000 {
        0x7E00 | (a >> 13) as u16 & 0x03FF
    } else if a >= 0x4780_0000 {
        0x7C00
    } else if a < 0x3880_0000 {
        // Below 2^-14: adding 0.5 rounds at 2^-24 and leaves the units in the low bits.
        ((f32::from_bits(a) + 0.5).to_bits() - 0x3F00_0000) as u16
    } else {
        // A carry out of the mantissa moves the exponent up, to infinity if need be.
        ((a - 0x3800_0000 + 0x0FFF + (a >> 13 & 1)) >> 13) as u16
    };
    h | sign
}

/// bfloat16 bits to `f32`.
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

/// `f32` to bfloat16 bits.
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x0040;
    }
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

/// A loop over single elements, compiled for the target's own instructions.
macro_rules! scalar {
    ($name:ident, $from:ty, $f:path) => {
        unsafe fn $name(n: usize, out: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
            let (out, a) = (out.cast(), a.cast::<$from>());
            for i in 0..n {
                // SAFETY: i < n, and the caller vouches for n elements of both sides.
                unsafe { out_write(out, i, $f(a.add(i).read_unaligned())) }
            }
        }
    };
}

/// # Safety
/// `p` is writable at element `i`.
#[inline(always)]
unsafe fn out_write<T>(p: *mut T, i: usize, x: T) {
    // SAFETY: the caller's promise.
    unsafe { p.add(i).write_unaligned(x) }
}

scalar!(f16_up_scalar, u16, f16_to_f32);
scalar!(f16_down_scalar, f32, f32_to_f16);
scalar!(bf16_up_scalar, u16, bf16_to_f32);
scalar!(bf16_down_scalar, f32, f32_to_bf16);

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod x86 {
    //! The vector loops; tails go through a padded buffer and the same instructions.

    use std::arch::x86_64::*;

    /// A loop over blocks of `$lanes` elements.
    macro_rules! vector {
        ($name:ident, $features:literal, $lanes:literal, $from:ty, $to:ty, $step:ident) => {
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(
                n: usize,
                out: *mut u8,
                a: *const u8,
                _: *const u8,
                _: *const u8,
            ) {
                let (out, a) = (out.cast::<$to>(), a.cast::<$from>());
                let mut i = 0;
                while i + $lanes <= n {
                    // SAFETY: i + lanes <= n, and the caller vouches for n elements.
                    unsafe { $step(a.add(i), out.add(i)) };
                    i += $lanes;
                }
                if i < n {
                    let mut from = [<$from>::default(); $lanes];
                    let mut to = [<$to>::default(); $lanes];
                    // SAFETY: n - i elements are left, fewer than lanes; bytes need no alignment.
                    unsafe {
                        let size = (n - i) * size_of::<$from>();
                        from.as_mut_ptr().cast::<u8>().copy_from(a.add(i).cast(), size);
                        $step(from.as_ptr(), to.as_mut_ptr());
                        let size = (n - i) * size_of::<$to>();
                        out.add(i).cast::<u8>().copy_from(to.as_ptr().cast(), size);
                    }
                }
            }
        };
    }

    /// # Safety
    /// Eight elements readable at `a`, writable at `out`; so for all steps, with their lanes.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn f16_up8(a: *const u16, out: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(a.cast()))) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn f16_down8(a: *const f32, out: *mut u16) {
        // SAFETY: the caller's promise.
        unsafe {
            let h = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(a));
            _mm_storeu_si128(out.cast(), h);
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn bf16_up8(a: *const u16, out: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(a.cast()));
            _mm256_storeu_si256(out.cast(), _mm256_slli_epi32::<16>(wide));
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn bf16_down8(a: *const f32, out: *mut u16) {
        // SAFETY: the caller's promise.
        unsafe {
            let x = _mm256_loadu_ps(a);
            let b = _mm256_castps_si256(x);
            let high = _mm256_srli_epi32::<16>(b);
            let odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
            let sum = _mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7FFF)), odd);
            let rounded = _mm256_srli_epi32::<16>(sum);
            let quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            let r = _mm256_blendv_epi8(rounded, quiet, nan);
            // Each half packs its own four; the permutation brings them together.
            let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(r, r));
            _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(packed));
        }
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
    unsafe fn f16_up16(a: *const u16, out: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(a.cast()))) }
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
    unsafe fn f16_down16(a: *const f32, out: *mut u16) {
        // SAFETY: the caller's promise.
        unsafe {
            let h = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(a));
            _mm256_storeu_si256(out.cast(), h);
        }
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
    unsafe fn bf16_up16(a: *const u16, out: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(a.cast()));
            _mm512_storeu_si512(out.cast(), _mm512_slli_epi32::<16>(wide));
        }
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
    unsafe fn bf16_down16(a: *const f32, out: *mut u16) {
        // SAFETY: the caller's promise.
        unsafe {
            let x = _mm512_loadu_ps(a);
            let b = _mm512_castps_si512(x);
            let high = _mm512_srli_epi32::<16>(b);
            let odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
            let sum = _mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7FFF)), odd);
            let rounded = _mm512_srli_epi32::<16>(sum);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let r = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
            _mm256_storeu_si256(out.cast(), _mm512_cvtepi32_epi16(r));
        }
    }

    vector!(f16_up_avx2, "avx2,fma,f16c", 8, u16, f32, f16_up8);
    vector!(f16_down_avx2, "avx2,fma,f16c", 8, f32, u16, f16_down8);
    vector!(bf16_up_avx2, "avx2,fma,f16c", 8, u16, f32, bf16_up8);
    vector!(bf16_down_avx2, "avx2,fma,f16c", 8, f32, u16, bf16_down8);
    vector!(
        f16_up_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd",
        16,
        u16,
        f32,
        f16_up16
    );
    vector!(
        f16_down_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd",
        16,
        f32,
        u16,
        f16_down16
    );
    vector!(
        bf16_up_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd",
        16,
        u16,
        f32,
        bf16_up16
    );
    vector!(
        bf16_down_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd",
        16,
        f32,
        u16,
        bf16_down16
    );
}

/// Every conversion: name and one function a [`Level`], with one input and the signature of
/// [`Kernel`]; half floats are `u16` bit patterns. A build without vector levels repeats the
/// scalar function.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
pub const CONVERSIONS: &[(&str, [Kernel; 3])] = &[
    ("f16_to_f32", [f16_up_scalar, x86::f16_up_avx2, x86::f16_up_avx512]),
    ("f32_to_f16", [f16_down_scalar, x86::f16_down_avx2, x86::f16_down_avx512]),
    ("bf16_to_f32", [bf16_up_scalar, x86::bf16_up_avx2, x86::bf16_up_avx512]),
    ("f32_to_bf16", [bf16_down_scalar, x86::bf16_down_avx2, x86::bf16_down_avx512]),
];
/// Every conversion: name and the scalar function for each [`Level`].
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
pub const CONVERSIONS: &[(&str, [Kernel; 3])] = &[
    ("f16_to_f32", [f16_up_scalar; 3]),
    ("f32_to_f16", [f16_down_scalar; 3]),
    ("bf16_to_f32", [bf16_up_scalar; 3]),
    ("f32_to_bf16", [bf16_down_scalar; 3]),
];

/// The conversion of this name, if there is one. The caller sees to it that the CPU has `level`.
pub fn conversion(name: &str, level: Level) -> Option<Kernel> {
    CONVERSIONS.iter().find(|c| c.0 == name).map(|c| c.1[level as usize])
}
