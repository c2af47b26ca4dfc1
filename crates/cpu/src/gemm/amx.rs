//! bfloat16 products on the tile unit (AMX).
//!
//! K is taken all at once, so that sums stay inside of the tiles and are rounded once. The tile
//! unit takes subnormal numbers for zero. To give what float32 arithmetic gives, packing looks for
//! values so small that they, or sums of their products, could become subnormal; if there is one,
//! the product is declined. Called by `tiles`; assumes AVX-512.

use super::avx512::F32x16;
use super::family::Bfloat16;
use super::lanes::Lanes;
use super::plan::TileUnit;
use super::tiles::{DEPTH, PANEL, Panel, Sums, TILE, Tiling, tile_loop};
use crate::prefetch;
use half::bf16;
use std::arch::x86_64::*;

/// The smallest magnitude (as bits) that is safe: above 2^-50, products and their sums are
/// multiples of 2^-114, so nothing on the way is subnormal.
const SMALLEST: u16 = 77 << 7;

/// The tile unit for bfloat16.
pub(super) static UNIT: TileUnit<bf16> = TileUnit::of::<Whole>();

/// bfloat16 as it is.
struct Whole;

impl Tiling for Whole {
    type Family = Bfloat16<F32x16>;

    const STEP: usize = 2 * TILE;
    const LEAST: usize = 48 * 48 * 48;
    const DECLINES: bool = true;

    fn block_of_k(k: usize) -> usize {
        k
    }

    #[inline(always)]
    unsafe fn pack(panel: &Panel<bf16>) -> bool {
        let mut to = panel.to;
        let mut small = 0;
        let mut k = 0;
        while k < panel.depth {
            for half in 0..2 {
                let lane = half * 16;
                let lanes = panel.lanes.saturating_sub(lane).min(16);
                // SAFETY: the tile stays inside of the panel, which has two for every step of k.
                unsafe {
                    let mut tile = [F32x16::zero(); 16];
                    if lanes > 0 && read_tile(panel, lane, lanes, k, &mut tile) == panel.is_b {
                        F32x16::transpose(&mut tile);
                    }
                    for (row, vector) in tile.into_iter().enumerate() {
                        small |= too_small(vector.to_bits());
                        vector.store(to.wrapping_add(row * 64).cast());
                    }
                }
                to = to.wrapping_add(TILE);
            }
            k += DEPTH;
        }
        small == 0
    }

    #[inline(always)]
    unsafe fn multiply(a: *const u8, b: *const u8, steps: usize, sums: &mut Sums) {
        // SAFETY: the loop reads `steps` times 2 KiB of each panel and writes 4 KiB of sums; all
        // registers that it changes are named.
        unsafe {
            tile_loop!((a, b, steps, sums)
                "tileloadd tmm4, [{a} + {row}*1]",
                "tileloaddt1 tmm6, [{b} + {row}*1]",
                "tileloaddt1 tmm7, [{b} + {row}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "add {a}, 2048",
                "add {b}, 2048",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
            );
        }
    }
}

/// Reads 16 lanes and 32 k, zeros where there are none. Says whether a vector is one lane (16 pairs
/// of k) or one pair of k (16 lanes).
///
/// # Safety
/// `lanes` lanes from `lane` on exist at `k`; AVX-512 is available.
#[inline(always)]
unsafe fn read_tile(
    panel: &Panel<bf16>,
    lane: usize,
    lanes: usize,
    k: usize,
    tile: &mut [F32x16; 16],
) -> bool {
    let from = panel.from.cast::<u16>().wrapping_offset(lane as isize * panel.across);
    let from = from.wrapping_offset(k as isize * panel.along);
    let depth = DEPTH.min(panel.depth - k);
    // SAFETY: masks and loops end at `lanes` and `depth`.
    unsafe {
        if panel.along == 1 {
            let mask = u32::MAX >> (32 - depth);
            for (i, vector) in tile.iter_mut().enumerate() {
                if i < lanes {
                    let row = from.wrapping_offset(i as isize * panel.across);
                    *vector = F32x16::from_bits(_mm512_maskz_loadu_epi16(mask, row.cast()));
                }
            }
            true
        } else if panel.across == 1 {
            let mask = (u32::MAX >> (32 - lanes)) as __mmask16;
            let row = |k: usize| {
                if k >= depth {
                    return _mm512_setzero_si512();
                }
                let at = from.wrapping_offset(k as isize * panel.along);
                prefetch::into_l1(at.wrapping_offset(DEPTH as isize * panel.along));
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at.cast()))
            };
            for (pair, vector) in tile.iter_mut().enumerate() {
                let upper = _mm512_slli_epi32::<16>(row(2 * pair + 1));
                *vector = F32x16::from_bits(_mm512_or_si512(row(2 * pair), upper));
            }
            false
        } else {
            for (i, vector) in tile.iter_mut().enumerate() {
                let mut row = [0u16; DEPTH];
                if i < lanes {
                    let start = from.wrapping_offset(i as isize * panel.across);
                    for (k, element) in row.iter_mut().enumerate().take(depth) {
                        *element = start.wrapping_offset(k as isize * panel.along).read();
                    }
                }
                *vector = F32x16::from_bits(_mm512_loadu_si512(row.as_ptr().cast()));
            }
            true
        }
    }
}

/// Whether any of 32 bfloat16 is below [`SMALLEST`] but not zero.
///
/// # Safety
/// AVX-512 is available.
#[inline(always)]
unsafe fn too_small(bits: __m512i) -> u32 {
    // SAFETY: the caller has AVX-512 BW.
    unsafe {
        let magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff));
        // One less: zero becomes the largest.
        let less = _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1));
        _mm512_cmplt_epu16_mask(less, _mm512_set1_epi16(SMALLEST as i16 - 1))
    }
}
