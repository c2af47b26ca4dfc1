//! bfloat16 products on the tile unit (AMX).
//!
//! Both operands are packed once, by all threads, into tiles of 16 rows of 64 bytes; then pieces of
//! C are computed, 32 x 32 at a time and over all of K inside of the tiles, and rounded once.
//! The tile unit takes subnormal numbers for zero. To give what float32 arithmetic gives, packing
//! looks for values so small that they, or sums of their products, could become subnormal; if there
//! is one, [`product`] declines before it has written anything, and the caller takes the vector
//! units. Called by `plan` through `family`; assumes AVX-512.

use super::avx512::F32x16;
use super::blocking::part;
use super::family::Bfloat16;
use super::lanes::{Avx512, Job, Lanes, Level};
use super::matrix::{Finish, FinishArgs, Shared};
use super::scratch::try_with_block;
use super::{Parallel, Product};
use half::bf16;
use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows or columns of a panel: two tiles.
pub(super) const PANEL: usize = 32;
/// k per tile.
pub(super) const DEPTH: usize = 32;
/// Bytes of a panel per [`DEPTH`].
const STEP: usize = 2048;
/// Bytes of B's panels that stay in L2 while the rows of A pass.
const RESIDENT: usize = 1 << 20;
/// Panels that are packed in one piece of work.
const PACKED_AT_ONCE: usize = 4;
/// Multiplications below which the vector units are as fast.
const LEAST: usize = 48 * 48 * 48;
/// The smallest magnitude (as bits) that is safe: above 2^-50, products and their sums are
/// multiples of 2^-114, so nothing on the way is subnormal.
const SMALLEST: u16 = 77 << 7;

/// Whether this CPU has the tile unit and the kernel lets this process use it; asked once.
pub(super) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        if __cpuid(0).eax < 7 {
            return false;
        }
        // Bits 22 and 24: bfloat16 tiles, tiles.
        let wanted = 1 << 22 | 1 << 24;
        __cpuid_count(7, 0).edx & wanted == wanted && permitted()
    })
}

/// Asks Linux for the tile registers, which are too large to be saved for every process.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: this request takes no pointers and changes only what threads of this process may do.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// Computes the product if the tile unit can do it well; says whether it did.
///
/// # Safety
/// The contract of `gemm`; AVX-512 is available.
pub(super) unsafe fn product(parallel: &dyn Parallel, p: &Product<bf16>) -> bool {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    if work < LEAST || p.m.min(p.n) < 8 || p.k < 16 || !available() {
        return false;
    }
    let (a_panels, b_panels) = (p.m.div_ceil(PANEL), p.n.div_ceil(PANEL));
    let steps = p.k.div_ceil(DEPTH);
    let size = steps * STEP;
    // Copies of both operands: without the memory for them, the vector units do it in little.
    let done = try_with_block((a_panels + b_panels) * size, |block| {
        let a = Shared(block.start());
        let b = Shared(block.start().wrapping_add(a_panels * size));
        let small = AtomicBool::new(false);
        let a_pieces = a_panels.div_ceil(PACKED_AT_ONCE);
        let b_pieces = b_panels.div_ceil(PACKED_AT_ONCE);
        let pack = |index: usize| {
            let (is_b, index) =
                if index < a_pieces { (false, index) } else { (true, index - a_pieces) };
            let panels = if is_b { b_panels } else { a_panels };
            let first = index * PACKED_AT_ONCE;
            for panel in first..(first + PACKED_AT_ONCE).min(panels) {
                let lane = panel * PANEL;
                let args = if is_b {
                    PackArgs {
                        from: p.b.wrapping_offset(lane as isize * p.b_cols).cast(),
                        across: p.b_cols,
                        along: p.b_rows,
                        lanes: PANEL.min(p.n - lane),
                        depth: p.k,
                        to: b.get().wrapping_add(panel * size),
                        is_b,
                        small: Cell::new(false),
                    }
                } else {
                    PackArgs {
                        from: p.a.wrapping_offset(lane as isize * p.a_rows).cast(),
                        across: p.a_rows,
                        along: p.a_cols,
                        lanes: PANEL.min(p.m - lane),
                        depth: p.k,
                        to: a.get().wrapping_add(panel * size),
                        is_b,
                        small: Cell::new(false),
                    }
                };
                // SAFETY: the lanes and k of a panel are in the operand; every panel has its own
                // place in the block; bf16 is a transparent u16.
                unsafe { Avx512::enter::<Pack>(&args) };
                if args.small.get() {
                    small.store(true, Ordering::Relaxed);
                }
            }
        };
        let alone = work < 4 * LEAST;
        if alone {
            (0..a_pieces + b_pieces).for_each(pack);
        } else {
            parallel.run(a_pieces + b_pieces, &pack);
        }
        if small.into_inner() {
            return false;
        }
        // Columns so that their panels stay in L2; rows as well if that gives too few pieces.
        let threads = if alone { 1 } else { parallel.threads() };
        let most = (RESIDENT / size).clamp(1, 8);
        let columns = b_panels.div_ceil(most).max(threads.min(b_panels));
        let rows = (2 * threads).div_ceil(columns).min(a_panels);
        let rows = if threads == 1 { 1 } else { rows };
        let compute = |index: usize| {
            let args = TilesArgs {
                product: *p,
                a: a.get(),
                b: b.get(),
                steps,
                rows: part(a_panels, rows, 1, index / columns),
                columns: part(b_panels, columns, 1, index % columns),
            };
            // SAFETY: all panels are packed; pieces of C are disjoint.
            unsafe { Avx512::enter::<Tiles>(&args) };
        };
        if threads == 1 {
            (0..rows * columns).for_each(compute);
        } else {
            parallel.run(rows * columns, &compute);
        }
        true
    });
    done == Some(true)
}

/// One panel on its way into tiles.
struct PackArgs {
    from: *const u16,
    /// From one row of A, or column of B, to the next.
    across: isize,
    /// From one k to the next.
    along: isize,
    lanes: usize,
    depth: usize,
    to: *mut u8,
    /// Tiles of A have a row per lane, tiles of B a row per pair of k.
    is_b: bool,
    /// Set if a value is too small for the tile unit.
    small: Cell<bool>,
}

/// Packs one panel.
struct Pack;

impl Job for Pack {
    type Args = PackArgs;

    #[inline(always)]
    unsafe fn run(args: &PackArgs) {
        let mut to = args.to;
        // SAFETY: `tile` stays inside of the panel; the panel has two tiles for every step of k.
        unsafe {
            let mut small = 0u32;
            let mut k = 0;
            while k < args.depth {
                for half in 0..2 {
                    let lane = half * 16;
                    let lanes = args.lanes.saturating_sub(lane).min(16);
                    let mut tile = [F32x16::zero(); 16];
                    let by_lane = if lanes == 0 {
                        args.is_b
                    } else {
                        read_tile(args, lane, lanes, k, &mut tile)
                    };
                    if by_lane == args.is_b && lanes > 0 {
                        F32x16::transpose(&mut tile);
                    }
                    for (row, vector) in tile.into_iter().enumerate() {
                        small |= too_small(vector.to_bits());
                        vector.store(to.wrapping_add(row * 64).cast());
                    }
                    to = to.wrapping_add(1024);
                }
                k += DEPTH;
            }
            args.small.set(small != 0);
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
    args: &PackArgs,
    lane: usize,
    lanes: usize,
    k: usize,
    tile: &mut [F32x16; 16],
) -> bool {
    let from = args.from.wrapping_offset(lane as isize * args.across);
    let from = from.wrapping_offset(k as isize * args.along);
    let depth = DEPTH.min(args.depth - k);
    // SAFETY: masks and loops end at `lanes` and `depth`.
    unsafe {
        if args.along == 1 {
            let mask = u32::MAX >> (32 - depth);
            for (i, vector) in tile.iter_mut().enumerate() {
                if i < lanes {
                    let row = from.wrapping_offset(i as isize * args.across);
                    *vector = F32x16::from_bits(_mm512_maskz_loadu_epi16(mask, row.cast()));
                }
            }
            true
        } else if args.across == 1 {
            let mask = (u32::MAX >> (32 - lanes)) as __mmask16;
            let row = |k: usize| {
                if k >= depth {
                    return _mm512_setzero_si512();
                }
                let at = from.wrapping_offset(k as isize * args.along);
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
                    let start = from.wrapping_offset(i as isize * args.across);
                    for (k, element) in row.iter_mut().enumerate().take(depth) {
                        *element = start.wrapping_offset(k as isize * args.along).read();
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

/// A piece of C in panels.
struct TilesArgs {
    product: Product<bf16>,
    a: *const u8,
    b: *const u8,
    steps: usize,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
}

/// Computes a piece of C.
struct Tiles;

/// How the eight tile registers are shaped: 16 rows of 64 bytes each.
#[repr(C, align(64))]
pub(super) struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// All eight registers whole; edges are zeros in the panels.
pub(super) static CONFIG: TileConfig = {
    let mut config = TileConfig {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [0; 16],
        rows: [0; 16],
    };
    let mut tile = 0;
    while tile < 8 {
        config.row_bytes[tile] = 64;
        config.rows[tile] = 16;
        tile += 1;
    }
    config
};

/// A block of sums as the tile unit stores it.
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [f32; PANEL * PANEL]);

impl Job for Tiles {
    type Args = TilesArgs;

    #[inline(always)]
    unsafe fn run(args: &TilesArgs) {
        let p = &args.product;
        let mut sums = Sums([0.0; PANEL * PANEL]);
        let size = args.steps * STEP;
        // SAFETY: `available` was asked: the instruction exists and is permitted.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
        for row in args.rows.clone() {
            for column in args.columns.clone() {
                let (i, j) = (row * PANEL, column * PANEL);
                // SAFETY: the panels hold `steps` steps; C has the rows and columns from (i, j).
                unsafe {
                    multiply(
                        args.a.wrapping_add(row * size),
                        args.b.wrapping_add(column * size),
                        args.steps,
                        &mut sums,
                    );
                    let c = p.c.wrapping_offset(i as isize * p.c_rows);
                    <Finish<Bfloat16<F32x16>> as Job>::run(&FinishArgs {
                        sums: sums.0.as_ptr(),
                        pitch: PANEL,
                        height: PANEL.min(p.m - i),
                        width: PANEL.min(p.n - j),
                        c: c.wrapping_offset(j as isize * p.c_cols),
                        c_rows: p.c_rows,
                        c_cols: p.c_cols,
                        accumulate: p.accumulate,
                    });
                }
            }
        }
        // SAFETY: as above. Released, so that the kernel need not save tiles at every switch.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// 32 x 32 sums of one panel of A and one of B.
///
/// # Safety
/// The panels hold `steps` (at least one) steps; the tile registers are configured.
#[inline(always)]
unsafe fn multiply(a: *const u8, b: *const u8, steps: usize, sums: &mut Sums) {
    // SAFETY: the loop reads `steps` times 2 KiB of each panel and writes 4 KiB of sums; all
    // registers that it changes are named.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {row}*1]",
            "tileloadd tmm6, [{b} + {row}*1]",
            "tileloadd tmm7, [{b} + {row}*1 + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{a} + {row}*1 + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
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
