//! float32 products from bfloat16 pieces on the tile unit (AMX); asked for, never chosen.
//!
//! x = x0 + x1 + x2, each the bfloat16 nearest to what remains. Of the nine products of pieces the
//! three smallest are below 2^-26 of |a| |b| and left out. Sums start at zero in every block of K and
//! are added to C in float32, so there are fewer roundings than multiply-adds make. What the tile
//! unit cannot do as float32 does (it takes subnormal numbers for zero, and a number beyond
//! bfloat16's largest splits into infinities) is found by looking at all operands first; then the
//! product is declined. Called by `tiles`; assumes AVX-512.

use super::avx512::F32x16;
use super::blocking::Blocking;
use super::family::Same;
use super::finish::Shared;
use super::lanes::{Avx512, Job, Lanes, Level};
use super::plan::TileUnit;
use super::tiles::{DEPTH, PANEL, Panel, Sums, TILE, Tiling, tile_loop};
use super::{Parallel, Product};
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows of an operand that are looked at in one piece of work.
const ROWS_AT_ONCE: usize = 64;

/// The tile unit for float32 by pieces.
pub(super) static UNIT: TileUnit<f32> = TileUnit::of::<Pieces>();

/// float32 in three pieces.
struct Pieces;

impl Tiling for Pieces {
    type Family = Same<F32x16>;

    /// Two tiles of each piece.
    const STEP: usize = 6 * TILE;
    const LEAST: usize = 64 * 64 * 64;
    /// [`accepts`](Tiling::accepts) looks at everything.
    const DECLINES: bool = false;

    fn block_of_k(k: usize) -> usize {
        Blocking::block_of_k(k, size_of::<f32>())
    }

    unsafe fn accepts(parallel: &dyn Parallel, p: &Product<f32>) -> bool {
        // SAFETY: the operands may be read.
        let (a, b) = unsafe {
            (
                Extremes::of(parallel, p.a, (p.m, p.a_rows), (p.k, p.a_cols)),
                Extremes::of(parallel, p.b, (p.k, p.b_rows), (p.n, p.b_cols)),
            )
        };
        a.can_be_split_with(&b, p.k)
    }

    #[inline(always)]
    unsafe fn pack(panel: &Panel<f32>) -> bool {
        let mut k = 0;
        while k < panel.depth {
            let to = panel.to.wrapping_add(k / DEPTH * Self::STEP);
            for half in 0..2 {
                let lane = half * 16;
                let lanes = panel.lanes.saturating_sub(lane).min(16);
                // SAFETY: these lanes and k are in the panel, which has six tiles for every step.
                unsafe {
                    let mut pairs = Pairs { even: [F32x16::zero(); 16], odd: [F32x16::zero(); 16] };
                    let by_lane = pairs.read(panel, lane, lanes, k);
                    for piece in 0..3 {
                        let mut tile = [F32x16::zero(); 16];
                        for (row, word) in tile.iter_mut().enumerate() {
                            let even = take_piece(&mut pairs.even[row]);
                            let odd = take_piece(&mut pairs.odd[row]);
                            let word_bits = _mm512_or_si512(_mm512_srli_epi32::<16>(even), odd);
                            *word = F32x16::from_bits(word_bits);
                        }
                        if by_lane == panel.is_b {
                            F32x16::transpose(&mut tile);
                        }
                        let to = to.wrapping_add((2 * piece + half) * TILE);
                        for (row, vector) in tile.into_iter().enumerate() {
                            vector.store(to.wrapping_add(row * 64).cast());
                        }
                    }
                }
            }
            k += DEPTH;
        }
        true
    }

    /// Six products of pieces, the smallest first; each changes one operand, so that four tiles of C
    /// leave room for all that is loaded. A's piece `p` lies at `2048 p`, B's too.
    #[inline(always)]
    unsafe fn multiply(a: *const u8, b: *const u8, steps: usize, sums: &mut Sums) {
        // SAFETY: the loop reads `steps` times 6 KiB of each panel and writes 4 KiB of sums; all
        // registers that it changes are named.
        unsafe {
            tile_loop!((a, b, steps, sums)
                // a0 b2
                "tileloadd tmm4, [{a} + {row}*1]",
                "tileloadd tmm6, [{b} + {row}*1 + 4096]",
                "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                "tileloadd tmm7, [{b} + {row}*1 + 5120]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // a0 b1
                "tileloadd tmm6, [{b} + {row}*1 + 2048]",
                "tileloadd tmm7, [{b} + {row}*1 + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // a1 b1
                "tileloadd tmm4, [{a} + {row}*1 + 2048]",
                "tileloadd tmm5, [{a} + {row}*1 + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // a1 b0
                "tileloadd tmm6, [{b} + {row}*1]",
                "tileloadd tmm7, [{b} + {row}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // a2 b0
                "tileloadd tmm4, [{a} + {row}*1 + 4096]",
                "tileloadd tmm5, [{a} + {row}*1 + 5120]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // a0 b0
                "tileloadd tmm4, [{a} + {row}*1]",
                "tileloadd tmm5, [{a} + {row}*1 + 1024]",
                "add {a}, 6144",
                "add {b}, 6144",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
            );
        }
    }
}

/// The least magnitude of an operand that is not zero, and the greatest, as bits.
struct Extremes {
    least: u32,
    most: u32,
}

impl Extremes {
    /// Those of a matrix: first element, then size and stride of rows and columns.
    ///
    /// # Safety
    /// All elements may be read; AVX-512 is available.
    unsafe fn of(
        parallel: &dyn Parallel,
        at: *const f32,
        rows: (usize, isize),
        columns: (usize, isize),
    ) -> Extremes {
        // The shorter steps innermost.
        let (outer, inner) = if columns.1.unsigned_abs() <= rows.1.unsigned_abs() {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let (least, most) = (AtomicU32::new(u32::MAX), AtomicU32::new(0));
        let at = Shared(at.cast_mut());
        parallel.run(outer.0.div_ceil(ROWS_AT_ONCE), &|index| {
            let first = index * ROWS_AT_ONCE;
            let args = ScanArgs {
                from: at.get().wrapping_offset(first as isize * outer.1),
                outer: (ROWS_AT_ONCE.min(outer.0 - first), outer.1),
                inner,
                least: &least,
                most: &most,
            };
            // SAFETY: these rows are in the operand.
            unsafe { Avx512::enter::<Scan>(&args) };
        });
        Extremes { least: least.into_inner().saturating_add(1), most: most.into_inner() }
    }

    /// Whether pieces of both, and their products and sums of `k` of them, are what they should be:
    /// nothing that matters is subnormal, nothing becomes infinite that is not in float32.
    fn can_be_split_with(&self, other: &Extremes, k: usize) -> bool {
        let exponent = |bits: u32| f64::from(f32::from_bits(bits)).log2();
        // Beyond these bits numbers round up to infinity, or are infinite or NaN.
        const LARGEST: u32 = 0x7f7f_8000;
        if self.most >= LARGEST || other.most >= LARGEST {
            return false;
        }
        if self.most == 0 || other.most == 0 {
            return true;
        }
        let (least, other_least) = (exponent(self.least), exponent(other.least));
        let most = exponent(self.most) + exponent(other.most) + (k as f64).log2();
        least >= -103.0 && other_least >= -103.0 && least + other_least >= -102.0 && most < 127.0
    }
}

/// Rows to be looked at.
struct ScanArgs<'a> {
    from: *const f32,
    outer: (usize, isize),
    inner: (usize, isize),
    /// One less than the least magnitude, so that zero is the largest.
    least: &'a AtomicU32,
    most: &'a AtomicU32,
}

/// Finds the extremes of some rows.
struct Scan<'a>(std::marker::PhantomData<&'a ()>);

impl<'a> Job for Scan<'a> {
    type Args = ScanArgs<'a>;

    #[inline(always)]
    unsafe fn run(args: &ScanArgs<'a>) {
        let (mut least, mut most) = (u32::MAX, 0);
        let mut take = |x: f32| {
            let magnitude = x.to_bits() & 0x7fff_ffff;
            least = least.min(magnitude.wrapping_sub(1));
            most = most.max(magnitude);
        };
        for row in 0..args.outer.0 {
            let from = args.from.wrapping_offset(row as isize * args.outer.1);
            // SAFETY: row and column are in the operand.
            unsafe {
                if args.inner.1 == 1 {
                    std::slice::from_raw_parts(from, args.inner.0).iter().for_each(|&x| take(x));
                } else {
                    for column in 0..args.inner.0 {
                        take(from.wrapping_offset(column as isize * args.inner.1).read());
                    }
                }
            }
        }
        args.least.fetch_min(least, Ordering::Relaxed);
        args.most.fetch_max(most, Ordering::Relaxed);
    }
}

/// Takes the nearest bfloat16 off each lane: its bits, with sixteen zeros below.
///
/// # Safety
/// AVX-512 is available.
#[inline(always)]
unsafe fn take_piece(value: &mut F32x16) -> __m512i {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let bits = value.to_bits();
        let is_odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let half = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff));
        let kept = _mm512_set1_epi32(0xffff_0000u32.cast_signed());
        let piece = _mm512_and_si512(_mm512_add_epi32(bits, half), kept);
        // Exact: the rest has fewer bits than the number had.
        let rest = _mm512_sub_ps(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(piece));
        *value = F32x16::from_bits(_mm512_castps_si512(rest));
        piece
    }
}

/// 16 lanes and 32 k: the even k and the odd ones.
struct Pairs {
    even: [F32x16; 16],
    odd: [F32x16; 16],
}

impl Pairs {
    /// Reads them; zeros where there are none. Says whether a vector is one lane (16 pairs of k) or
    /// one pair of k (16 lanes).
    ///
    /// # Safety
    /// `lanes` lanes from `lane` on exist at `k`; AVX-512 is available.
    #[inline(always)]
    unsafe fn read(&mut self, panel: &Panel<f32>, lane: usize, lanes: usize, k: usize) -> bool {
        let from = panel.from.wrapping_offset(lane as isize * panel.across);
        let from = from.wrapping_offset(k as isize * panel.along);
        let depth = DEPTH.min(panel.depth - k);
        // SAFETY: masks and loops end at `lanes` and `depth`.
        unsafe {
            if panel.across == 1 && lanes > 0 {
                let mask = F32x16::mask(lanes);
                for at in 0..depth {
                    let row = from.wrapping_offset(at as isize * panel.along);
                    let to = if at % 2 == 0 { &mut self.even } else { &mut self.odd };
                    to[at / 2] = F32x16::load_masked(row, mask);
                }
                return false;
            }
            for i in 0..lanes {
                let row = from.wrapping_offset(i as isize * panel.across);
                let mut line = [0.0f32; DEPTH];
                let line = if panel.along == 1 && depth == DEPTH {
                    row
                } else {
                    for (at, element) in line.iter_mut().enumerate().take(depth) {
                        *element = row.wrapping_offset(at as isize * panel.along).read();
                    }
                    line.as_ptr()
                };
                let (low, high) = (_mm512_loadu_ps(line), _mm512_loadu_ps(line.add(16)));
                let evens =
                    _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                let odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
                let pick = |which| _mm512_permutex2var_ps(low, which, high);
                self.even[i] = F32x16::from_bits(_mm512_castps_si512(pick(evens)));
                self.odd[i] = F32x16::from_bits(_mm512_castps_si512(pick(odds)));
            }
            true
        }
    }
}
