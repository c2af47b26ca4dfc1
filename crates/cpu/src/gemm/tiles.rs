//! Products on the tile unit (AMX): what its two uses have in common.
//!
//! Both operands are packed by all threads into tiles of 16 rows of 64 bytes; then pieces of C are
//! computed, 32 x 32 at a time. How elements become tiles and which products of tiles make a sum is
//! a [`Tiling`]'s affair: `amx` has one for bfloat16, `split` one for float32 by pieces. To `plan`
//! they are a [`TileUnit`], which may decline a product before it has written anything; then the
//! vector units do it. Assumes AVX-512.

use super::avx512::F32x16;
use super::blocking::part;
use super::family::Family;
use super::finish::{Finish, FinishArgs, Shared};
use super::lanes::{Avx512, Job, Level};
use super::plan::TileUnit;
use super::{Parallel, Product};
use crate::pool;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows or columns of a panel: two tiles.
pub(super) const PANEL: usize = 32;
/// k per tile.
pub(super) const DEPTH: usize = 32;
/// Bytes of a tile.
pub(super) const TILE: usize = 1024;
/// Bytes of B's panels, and how many, that stay in L2 while the rows of A pass.
const RESIDENT: usize = 1 << 20;
const RESIDENT_PANELS: usize = 8;
/// Panels that are packed in one piece of work.
const PACKED_AT_ONCE: usize = 2;

/// The loop of [`Tiling::multiply`] around what one step of K does: products of 2 x 2 tiles are summed
/// in `tmm0` to `tmm3`, and stored at the end. A step may use `tmm4` to `tmm7`, reads its tiles at
/// `{a}` and `{b}` with `{row}` bytes from row to row, and moves both on.
macro_rules! tile_loop {
    (($a:ident, $b:ident, $steps:ident, $sums:ident) $($line:literal,)*) => {
        std::arch::asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            $($line,)*
            "dec {steps}",
            "jnz 2b",
            "tilestored [{c} + {pitch}*1], tmm0",
            "tilestored [{c} + {pitch}*1 + 64], tmm1",
            "tilestored [{c} + {pitch}*1 + 2048], tmm2",
            "tilestored [{c} + {pitch}*1 + 2112], tmm3",
            a = inout(reg) $a => _,
            b = inout(reg) $b => _,
            steps = inout(reg) $steps => _,
            row = in(reg) 64usize,
            pitch = in(reg) 4 * PANEL,
            c = in(reg) $sums.0.as_mut_ptr(),
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            out("tmm4") _,
            out("tmm5") _,
            out("tmm6") _,
            out("tmm7") _,
            options(nostack),
        )
    };
}
pub(super) use tile_loop;

/// A use of the tile unit.
pub(super) trait Tiling: 'static {
    /// How sums of the unit, which are float32, get into C.
    type Family: Family<Lanes = F32x16>;
    /// Bytes of a panel per [`DEPTH`].
    const STEP: usize;
    /// Multiplications below which the vector units are as fast.
    const LEAST: usize;

    /// How much of K is packed and multiplied at a time.
    fn block_of_k(k: usize) -> usize;

    /// Whether the unit can do the product to the accuracy that is promised, as far as that must be
    /// known before packing.
    ///
    /// # Safety
    /// A and B may be read; AVX-512 is available.
    unsafe fn accepts(parallel: &dyn Parallel, p: &Product<Store<Self>>) -> bool {
        let _ = (parallel, p);
        true
    }

    /// Packs a panel. False if it holds what the unit cannot multiply; only a tiling that takes all
    /// of K at once may say so.
    ///
    /// # Safety
    /// The panel lies in its operand and has room for its tiles; AVX-512 is available.
    unsafe fn pack(panel: &Panel<Store<Self>>) -> bool;

    /// 32 x 32 sums of one panel of A and one of B.
    ///
    /// # Safety
    /// The panels hold `steps` (at least one) steps; the tile registers are configured.
    unsafe fn multiply(a: *const u8, b: *const u8, steps: usize, sums: &mut Sums);
}

/// What a tiling reads and writes.
pub(super) type Store<T> = <<T as Tiling>::Family as Family>::Store;

/// One panel on its way into tiles.
pub(super) struct Panel<S> {
    /// Its first element.
    pub(super) from: *const S,
    /// From one row of A, or column of B, to the next.
    pub(super) across: isize,
    /// From one k to the next.
    pub(super) along: isize,
    /// Rows of A, or columns of B.
    pub(super) lanes: usize,
    /// How many k.
    pub(super) depth: usize,
    /// Its tiles.
    pub(super) to: *mut u8,
    /// Tiles of A have a row per lane, tiles of B a row per pair of k.
    pub(super) is_b: bool,
}

impl<S> TileUnit<S> {
    /// The unit as this tiling uses it.
    pub(super) const fn of<T: Tiling<Family: Family<Store = S>>>() -> TileUnit<S> {
        TileUnit { room: room::<T>, product: product::<T> }
    }
}

fn work<S>(p: &Product<S>) -> usize {
    p.m.saturating_mul(p.n).saturating_mul(p.k)
}

/// Bytes of a packed panel.
fn panel_bytes<T: Tiling>(k: usize) -> usize {
    T::block_of_k(k).div_ceil(DEPTH).saturating_mul(T::STEP)
}

fn room<T: Tiling>(p: &Product<Store<T>>) -> Option<usize> {
    if work(p) < T::LEAST || p.m.min(p.n) < 8 || p.k < 16 || !available() {
        return None;
    }
    let panels = p.m.div_ceil(PANEL) + p.n.div_ceil(PANEL);
    Some(panels.saturating_mul(panel_bytes::<T>(p.k)))
}

unsafe fn product<T: Tiling>(
    parallel: &dyn Parallel,
    threads: usize,
    p: &Product<Store<T>>,
    packed: *mut u8,
) -> bool {
    // SAFETY: the operands may be read.
    if !unsafe { T::accepts(parallel, p) } {
        return false;
    }
    let (a_panels, b_panels) = (p.m.div_ceil(PANEL), p.n.div_ceil(PANEL));
    let size = panel_bytes::<T>(p.k);
    let packed = Shared(packed);
    // Small products take less time than waking a thread.
    let threads = if work(p) < 4 * T::LEAST { 1 } else { threads };
    let run = |pieces: usize, piece: &(dyn Fn(usize) + Sync)| match threads {
        1 => (0..pieces).for_each(piece),
        _ => parallel.run(pieces, piece),
    };
    // Columns so that their panels stay in L2; rows as well if that gives too few pieces.
    let most = (RESIDENT / size).clamp(1, RESIDENT_PANELS);
    let columns = b_panels.div_ceil(most).max(threads.min(b_panels));
    let rows = if threads == 1 { 1 } else { (2 * threads).div_ceil(columns).min(a_panels) };

    let kc = T::block_of_k(p.k);
    let mut k = 0;
    while k < p.k {
        let depth = kc.min(p.k - k);
        let declined = AtomicBool::new(false);
        run((a_panels + b_panels).div_ceil(PACKED_AT_ONCE), &|index| {
            let first = index * PACKED_AT_ONCE;
            for panel in first..(first + PACKED_AT_ONCE).min(a_panels + b_panels) {
                let is_b = panel >= a_panels;
                let (from, across, along, lanes, number) = match is_b {
                    false => (p.a, p.a_rows, p.a_cols, p.m, panel),
                    true => (p.b, p.b_cols, p.b_rows, p.n, panel - a_panels),
                };
                let lane = number * PANEL;
                let args = PackArgs {
                    panel: Panel {
                        from: from.wrapping_offset(lane as isize * across + k as isize * along),
                        across,
                        along,
                        lanes: PANEL.min(lanes - lane),
                        depth,
                        to: packed.get().wrapping_add(panel * size),
                        is_b,
                    },
                    good: Cell::new(true),
                };
                // SAFETY: the lanes and k of a panel are in the operand; every panel has its own
                // place.
                unsafe { Avx512::enter::<Pack<T>>(&args) };
                if !args.good.get() {
                    declined.store(true, Ordering::Relaxed);
                }
            }
        });
        if declined.into_inner() {
            debug_assert!(k == 0 && depth == p.k);
            return false;
        }
        run(rows * columns, &|index| {
            for row in part(a_panels, rows, 1, index / columns) {
                // Pieces are cut for the caches and may take seconds each.
                pool::check();
                let args = TilesArgs::<T> {
                    product: *p,
                    a: packed.get().wrapping_add(row * size),
                    b: packed.get().wrapping_add(a_panels * size),
                    size,
                    steps: depth.div_ceil(DEPTH),
                    accumulate: p.accumulate || k > 0,
                    row,
                    columns: part(b_panels, columns, 1, index % columns),
                };
                // SAFETY: all panels are packed; pieces of C are disjoint.
                unsafe { Avx512::enter::<Tiles<T>>(&args) };
            }
        });
        k += depth;
    }
    true
}

/// A panel, and whether the unit can multiply it.
struct PackArgs<S> {
    panel: Panel<S>,
    good: Cell<bool>,
}

/// Packs one panel.
struct Pack<T>(PhantomData<T>);

impl<T: Tiling> Job for Pack<T> {
    type Args = PackArgs<Store<T>>;

    #[inline(always)]
    unsafe fn run(args: &PackArgs<Store<T>>) {
        // SAFETY: the same contract.
        args.good.set(unsafe { T::pack(&args.panel) });
    }
}

/// A row of panels of C, over one block of K.
struct TilesArgs<T: Tiling> {
    product: Product<Store<T>>,
    /// The panel of A that belongs to the row.
    a: *const u8,
    /// All panels of B.
    b: *const u8,
    /// Bytes of a panel.
    size: usize,
    steps: usize,
    accumulate: bool,
    row: usize,
    columns: Range<usize>,
}

/// Computes them.
struct Tiles<T>(PhantomData<T>);

impl<T: Tiling> Job for Tiles<T> {
    type Args = TilesArgs<T>;

    #[inline(always)]
    unsafe fn run(args: &TilesArgs<T>) {
        let p = &args.product;
        let mut sums = Sums([0.0; PANEL * PANEL]);
        // SAFETY: `available` was asked: the instruction exists and is permitted.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
        let i = args.row * PANEL;
        let c = p.c.wrapping_offset(i as isize * p.c_rows);
        for column in args.columns.clone() {
            let j = column * PANEL;
            // SAFETY: the panels hold `steps` steps; C has the rows and columns from (i, j).
            unsafe {
                T::multiply(args.a, args.b.wrapping_add(column * args.size), args.steps, &mut sums);
                <Finish<T::Family> as Job>::run(&FinishArgs {
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
        // SAFETY: as above. Released, so that the kernel need not save tiles at every switch.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// How the eight tile registers are shaped: 16 rows of 64 bytes each.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// All eight registers whole; edges are zeros in the panels.
static CONFIG: TileConfig = {
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

/// Whether this CPU has the tile unit and the kernel lets this process use it; asked once.
fn available() -> bool {
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
