//! Sums of rows of half floats, which are widened in registers.
//!
//! Other folds have their elements widened into a buffer before; that takes longer than a sum. The
//! order is that of `lanes.rs`: as many lanes, and blocks as long. May assume the contract of
//! [`Rows`](super::table::Rows), for elements as they lie in the array. Named by `table.rs`.

use tilework_ops::fold::Sum;
use tilework_ops::{bf16, f16};

use super::define;
use super::table::Inner;

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
pub(super) const FLOAT16: [Inner; 3] =
    [define::inner::<Sum, f16, f32>, x86::float16_avx2, x86::float16_avx512];
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
pub(super) const BFLOAT16: [Inner; 3] =
    [define::inner::<Sum, bf16, f32>, x86::bfloat16_avx2, x86::bfloat16_avx512];

#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
pub(super) const FLOAT16: [Inner; 3] = [define::inner::<Sum, f16, f32>; 3];
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
pub(super) const BFLOAT16: [Inner; 3] = [define::inner::<Sum, bf16, f32>; 3];

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod x86 {
    use std::arch::x86_64::*;

    use tilework_ops::fold::Sum;

    use crate::reduce::lanes::{STEPS, collapse, join_all};
    use crate::reduce::pairwise::Pairwise;
    use crate::reduce::table::Rows;

    /// Sums side by side, and the elements that they take in one step.
    const LANES: usize = 64;

    /// The kernel of one half type on one instruction set, whose vectors have `$wide` lanes.
    macro_rules! kernel {
        ($name:ident, $features:literal, $wide:literal, $zero:ident, $add:ident, $store:ident, $load:expr) => {
            /// # Safety
            /// The contract of `Rows`, room for a state for each, and the CPU has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(rows: &Rows, states: *mut u8) {
                /// The lanes of a block.
                #[target_feature(enable = $features)]
                fn lanes_of(block: &[u16]) -> [f32; LANES] {
                    let mut sums = [$zero(); LANES / $wide];
                    let (whole, rest) = block.as_chunks::<LANES>();
                    // Zeros behind the last elements change no sum.
                    let mut last = [0; LANES];
                    last[..rest.len()].copy_from_slice(rest);
                    let last = (!rest.is_empty()).then_some(&last);
                    for chunk in whole.iter().chain(last) {
                        for (sum, part) in sums.iter_mut().zip(chunk.as_chunks::<$wide>().0) {
                            *sum = $add(*sum, $load(part));
                        }
                    }
                    let mut lanes = [0.0; LANES];
                    for (to, sum) in lanes.as_chunks_mut::<$wide>().0.iter_mut().zip(sums) {
                        // SAFETY: the array has as many elements as the vector.
                        unsafe { $store(to.as_mut_ptr(), sum) };
                    }
                    lanes
                }
                let base = rows.src.cast::<u16>();
                for row in 0..rows.rows {
                    // SAFETY: the row is one of those that the contract of `Rows` lets us read.
                    let mut left = unsafe {
                        let first = base.offset(row.cast_signed() * rows.stride);
                        std::slice::from_raw_parts(first, rows.len)
                    };
                    let mut blocks = Pairwise::<[f32; LANES], 7>::new();
                    let last = loop {
                        let (block, after) = left.split_at(left.len().min(LANES * STEPS));
                        let lanes = lanes_of(block);
                        if after.is_empty() {
                            break lanes;
                        }
                        blocks.push(lanes, join_all::<Sum, f32, LANES>);
                        left = after;
                    };
                    let all = blocks.finish_with(last, join_all::<Sum, f32, LANES>);
                    let sum = collapse::<Sum, f32, LANES>(all);
                    // SAFETY: there is room for one state for each row.
                    unsafe { states.cast::<f32>().add(row).write(sum) };
                }
            }
        };
    }

    kernel!(
        float16_avx2,
        "avx2,fma,f16c",
        8,
        _mm256_setzero_ps,
        _mm256_add_ps,
        _mm256_storeu_ps,
        // SAFETY: eight elements, here and below as many as the vector has lanes.
        |part: &[u16; 8]| _mm256_cvtph_ps(unsafe { _mm_loadu_si128(part.as_ptr().cast()) })
    );
    kernel!(
        bfloat16_avx2,
        "avx2,fma,f16c",
        8,
        _mm256_setzero_ps,
        _mm256_add_ps,
        _mm256_storeu_ps,
        |part: &[u16; 8]| {
            // SAFETY: as above.
            let halves = unsafe { _mm_loadu_si128(part.as_ptr().cast()) };
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
        }
    );
    kernel!(
        float16_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl",
        16,
        _mm512_setzero_ps,
        _mm512_add_ps,
        _mm512_storeu_ps,
        // SAFETY: as above.
        |part: &[u16; 16]| _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(part.as_ptr().cast()) })
    );
    kernel!(
        bfloat16_avx512,
        "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl",
        16,
        _mm512_setzero_ps,
        _mm512_add_ps,
        _mm512_storeu_ps,
        |part: &[u16; 16]| {
            // SAFETY: as above.
            let halves = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
        }
    );
}
