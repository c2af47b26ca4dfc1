//! float32 products from bfloat16 pieces on the tile unit (AMX); asked for, never chosen.
//!
//! x = x0 + x1 + x2, each the bfloat16 nearest to what remains. Of the nine products of pieces the
//! three smallest are below 2^-26 of |a| |b| and left out. Sums start at zero in every block of K and
//! are added to C in float32, so there are fewer roundings than multiply-adds make. What the tile
//! unit cannot do as float32 does (it takes subnormal numbers for zero, and a number beyond
//! bfloat16's largest splits into infinities) is found by looking at all operands first; then
//! [`product`] declines before it has written anything. Called by `gemm::batched_by_pieces`; assumes
//! AVX-512.

use super::amx::{CONFIG, DEPTH, PANEL, Sums, available};
use super::avx512::F32x16;
use super::blocking::{Blocking, part};
use super::family::Same;
use super::lanes::{Avx512, Job, Lanes, Level};
use super::matrix::{Finish, FinishArgs, Shared};
use super::scratch::try_with_block;
use super::{Parallel, Product};
use std::arch::asm;
use std::arch::x86_64::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a tile.
const TILE: usize = 1024;
/// Bytes of a panel per [`DEPTH`]: two tiles of each piece.
const STEP: usize = 6 * TILE;
/// Panels of B that stay in L2 while the rows of A pass.
const RESIDENT: usize = 8;
/// Panels that are packed in one piece of work.
const PACKED_AT_ONCE: usize = 2;
/// Multiplications below which the vector units are as fast.
const LEAST: usize = 64 * 64 * 64;
/// Rows of an operand that are looked at in one piece of work.
const ROWS_AT_ONCE: usize = 64;

/// Computes the product if the tile unit can do it to float32's accuracy; says whether it did.
///
/// # Safety
/// The contract of `gemm`; AVX-512 is available.
pub(super) unsafe fn product(parallel: &dyn Parallel, p: &Product<f32>) -> bool {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    if work < LEAST || p.m.min(p.n) < 8 || p.k < 16 || !available() {
        return false;
    }
    // SAFETY: the operands may be read.
    let (a, b) = unsafe {
        (
            Extremes::of(parallel, p.a, (p.m, p.a_rows), (p.k, p.a_cols)),
            Extremes::of(parallel, p.b, (p.k, p.b_rows), (p.n, p.b_cols)),
        )
    };
    if !a.can_be_split_with(&b, p.k) {
        return false;
    }
    let kc = Blocking::block_of_k(p.k, size_of::<f32>());
    let (a_panels, b_panels) = (p.m.div_ceil(PANEL), p.n.div_ceil(PANEL));
    let size = kc.div_ceil(DEPTH) * STEP;
    // Without the memory for the pieces, the vector units do it in little.
    let done = try_with_block((a_panels + b_panels) * size, |block| {
        let a = Shared(block.start());
        let b = Shared(block.start().wrapping_add(a_panels * size));
        let mut k = 0;
        while k < p.k {
            let depth = kc.min(p.k - k);
            let pack = |index: usize| {
                let first = index * PACKED_AT_ONCE;
                for panel in first..(first + PACKED_AT_ONCE).min(a_panels + b_panels) {
                    let args = if panel < a_panels {
                        let lane = panel * PANEL;
                        PackArgs {
                            from: p
                                .a
                                .wrapping_offset(lane as isize * p.a_rows + k as isize * p.a_cols),
                            across: p.a_rows,
                            along: p.a_cols,
                            lanes: PANEL.min(p.m - lane),
                            depth,
                            to: a.get().wrapping_add(panel * size),
                            is_b: false,
                        }
                    } else {
                        let panel = panel - a_panels;
                        let lane = panel * PANEL;
                        PackArgs {
                            from: p
                                .b
                                .wrapping_offset(lane as isize * p.b_cols + k as isize * p.b_rows),
                            across: p.b_cols,
                            along: p.b_rows,
                            lanes: PANEL.min(p.n - lane),
                            depth,
                            to: b.get().wrapping_add(panel * size),
                            is_b: true,
                        }
                    };
                    // SAFETY: the lanes and k of a panel are in the operand; every panel has its
                    // own place in the block.
                    unsafe { Avx512::enter::<Pack>(&args) };
                }
            };
            parallel.run((a_panels + b_panels).div_ceil(PACKED_AT_ONCE), &pack);
            let threads = parallel.threads();
            let columns = b_panels.div_ceil(RESIDENT).max(threads.min(b_panels));
            let rows = (2 * threads).div_ceil(columns).min(a_panels);
            let compute = |index: usize| {
                let args = TilesArgs {
                    product: *p,
                    a: a.get(),
                    b: b.get(),
                    size,
                    steps: depth.div_ceil(DEPTH),
                    accumulate: p.accumulate || k > 0,
                    rows: part(a_panels, rows, 1, index / columns),
                    columns: part(b_panels, columns, 1, index % columns),
                };
                // SAFETY: all panels are packed; pieces of C are disjoint.
                unsafe { Avx512::enter::<Tiles>(&args) };
            };
            parallel.run(rows * columns, &compute);
            k += depth;
        }
    });
    done.is_some()
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

/// One panel on its way into tiles.
struct PackArgs {
    from: *const f32,
    /// From one row of A, or column of B, to the next.
    across: isize,
    /// From one k to the next.
    along: isize,
    lanes: usize,
    depth: usize,
    to: *mut u8,
    /// Tiles of A have a row per lane, tiles of B a row per pair of k.
    is_b: bool,
}

/// Splits and packs one panel.
struct Pack;

impl Job for Pack {
    type Args = PackArgs;

    #[inline(always)]
    unsafe fn run(args: &PackArgs) {
        let mut k = 0;
        while k < args.depth {
            let to = args.to.wrapping_add(k / DEPTH * STEP);
            for half in 0..2 {
                let lane = half * 16;
                let lanes = args.lanes.saturating_sub(lane).min(16);
                // SAFETY: these lanes and k are in the panel, which has six tiles for every step.
                unsafe {
                    let mut pairs = Pairs { even: [F32x16::zero(); 16], odd: [F32x16::zero(); 16] };
                    let by_lane = pairs.read(args, lane, lanes, k);
                    for piece in 0..3 {
                        let mut tile = [F32x16::zero(); 16];
                        for (row, word) in tile.iter_mut().enumerate() {
                            let even = take_piece(&mut pairs.even[row]);
                            let odd = take_piece(&mut pairs.odd[row]);
                            let word_bits = _mm512_or_si512(_mm512_srli_epi32::<16>(even), odd);
                            *word = F32x16::from_bits(word_bits);
                        }
                        if by_lane == args.is_b {
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
    unsafe fn read(&mut self, args: &PackArgs, lane: usize, lanes: usize, k: usize) -> bool {
        let from = args.from.wrapping_offset(lane as isize * args.across);
        let from = from.wrapping_offset(k as isize * args.along);
        let depth = DEPTH.min(args.depth - k);
        // SAFETY: masks and loops end at `lanes` and `depth`.
        unsafe {
            if args.across == 1 && lanes > 0 {
                let mask = F32x16::mask(lanes);
                for at in 0..depth {
                    let row = from.wrapping_offset(at as isize * args.along);
                    let to = if at % 2 == 0 { &mut self.even } else { &mut self.odd };
                    to[at / 2] = F32x16::load_masked(row, mask);
                }
                return false;
            }
            for i in 0..lanes {
                let row = from.wrapping_offset(i as isize * args.across);
                let mut line = [0.0f32; DEPTH];
                let line = if args.along == 1 && depth == DEPTH {
                    row
                } else {
                    for (at, element) in line.iter_mut().enumerate().take(depth) {
                        *element = row.wrapping_offset(at as isize * args.along).read();
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

/// A piece of C in panels, over one block of K.
struct TilesArgs {
    product: Product<f32>,
    a: *const u8,
    b: *const u8,
    /// Bytes of a panel.
    size: usize,
    steps: usize,
    accumulate: bool,
    rows: Range<usize>,
    columns: Range<usize>,
}

/// Computes a piece of C.
struct Tiles;

impl Job for Tiles {
    type Args = TilesArgs;

    #[inline(always)]
    unsafe fn run(args: &TilesArgs) {
        let p = &args.product;
        let mut sums = Sums([0.0; PANEL * PANEL]);
        // SAFETY: `available` was asked: the instruction exists and is permitted.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
        for row in args.rows.clone() {
            for column in args.columns.clone() {
                let (i, j) = (row * PANEL, column * PANEL);
                // SAFETY: the panels hold `steps` steps; C has the rows and columns from (i, j).
                unsafe {
                    multiply(
                        args.a.wrapping_add(row * args.size),
                        args.b.wrapping_add(column * args.size),
                        args.steps,
                        &mut sums,
                    );
                    let c = p.c.wrapping_offset(i as isize * p.c_rows);
                    <Finish<Same<F32x16>> as Job>::run(&FinishArgs {
                        sums: sums.0.as_ptr(),
                        pitch: PANEL,
                        height: PANEL.min(p.m - i),
                        width: PANEL.min(p.n - j),
                        c: c.wrapping_offset(j as isize * p.c_cols),
                        c_rows: p.c_rows,
                        c_cols: p.c_cols,
                        accumulate: args.accumulate,
                    });
                }
            }
        }
        // SAFETY: as above. Released, so that the kernel need not save tiles at every switch.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// Six products of pieces, the smallest first; each changes one operand, so that four tiles of C
/// leave room for all that is loaded. A's piece `p` lies at `2048 p`, B's too.
///
/// # Safety
/// The panels hold `steps` (at least one) steps; the tile registers are configured.
#[inline(always)]
unsafe fn multiply(a: *const u8, b: *const u8, steps: usize, sums: &mut Sums) {
    // SAFETY: the loop reads `steps` times 6 KiB of each panel and writes 4 KiB of sums; all
    // registers that it changes are named.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
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
            "dec {steps}",
            "jnz 2b",
            "tilestored [{c} + {pitch}*1], tmm0",
            "tilestored [{c} + {pitch}*1 + 64], tmm1",
            "tilestored [{c} + {pitch}*1 + 2048], tmm2",
            "tilestored [{c} + {pitch}*1 + 2112], tmm3",
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            steps = inout(reg) steps => _,
            row = in(reg) 64usize,
            pitch = in(reg) 4 * PANEL,
            c = in(reg) sums.0.as_mut_ptr(),
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            out("tmm4") _,
            out("tmm5") _,
            out("tmm6") _,
            out("tmm7") _,
            options(nostack),
        );
    }
}
