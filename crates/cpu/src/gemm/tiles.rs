//! Products on the tile unit (AMX): what its two uses have in common.
//!
//! C is cut into pieces of columns. Whoever computes a piece packs B's columns into tiles of 16 rows
//! of 64 bytes, which stay in its L2, then a few rows of A at a time, and multiplies 32 x 32 sums.
//! The unit is so fast that what counts is how often operands come from the shared cache: packing
//! reads them once for each piece, and nothing packed leaves L2. How elements become tiles and
//! which products of tiles make a sum is a [`Tiling`]'s affair: `amx` has one for bfloat16, `split`
//! one for float32 by pieces. To `plan` they are a [`TileUnit`], which may decline a product; then
//! the vector units do it. Assumes AVX-512.

use super::avx512::F32x16;
use super::blocking::{Grid, part, widest};
use super::caches::CacheSizes;
use super::family::Family;
use super::finish::{Finish, FinishArgs};
use super::lanes::{Avx512, Job, Level};
use super::plan::TileUnit;
use super::scratch::{Area, Room};
use super::{Parallel, Product, tile_state};
use crate::pool;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows or columns of a panel: two tiles.
pub(super) const PANEL: usize = 32;
/// k per tile.
pub(super) const DEPTH: usize = 32;
/// Bytes of a tile.
pub(super) const TILE: usize = 1024;
/// Panels of A that are packed at a time where its columns are contiguous: a line of a column is
/// one panel wide, and memory is fetched in stretches of several.
const ROWS_ACROSS: usize = 4;

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
    /// Whether [`pack`](Self::pack) may find what the unit cannot multiply.
    const DECLINES: bool;

    /// How much of K is packed and multiplied at a time.
    fn block_of_k(k: usize) -> usize;

    /// Whether the unit can do the product to the accuracy that is promised, as far as packing does
    /// not find out.
    ///
    /// # Safety
    /// A and B may be read; AVX-512 is available.
    unsafe fn accepts(parallel: &dyn Parallel, p: &Product<Store<Self>>) -> bool {
        let _ = (parallel, p);
        true
    }

    /// Packs a panel. False if it holds what the unit cannot multiply.
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

/// How a product is cut.
struct Cut {
    /// Panels of A and of B.
    panels: [usize; 2],
    /// Bytes of a panel.
    size: usize,
    /// Pieces of C.
    grid: Grid,
    /// Panels of A that are packed at a time.
    pass: usize,
}

impl Cut {
    fn new<T: Tiling>(p: &Product<Store<T>>, threads: usize) -> Cut {
        let panels = [p.m, p.n].map(|lanes| lanes.div_ceil(PANEL));
        let [a_panels, b_panels] = panels;
        let size = panel_bytes::<T>(p.k);
        // Columns so that their panels take half of L2, equally many for each thread; rows as well
        // if that gives too few pieces.
        let resident = (CacheSizes::of_this_machine().l2 / 2 / size).max(1);
        let columns = b_panels.div_ceil(resident).next_multiple_of(threads).min(b_panels);
        let rows = threads.div_ceil(columns).min(a_panels);
        let pass = if p.a_rows == 1 && p.a_cols != 1 { ROWS_ACROSS } else { 1 };
        Cut { panels, size, grid: Grid { rows, columns }, pass: pass.min(a_panels) }
    }

    /// Bytes of B's panels in a piece.
    fn b_bytes(&self) -> usize {
        widest(self.panels[1], self.grid.columns, 1).saturating_mul(self.size)
    }
}

/// Small products take less time than waking a thread.
fn useful_threads<T: Tiling>(p: &Product<Store<T>>, threads: usize) -> usize {
    if work(p) < 4 * T::LEAST { 1 } else { threads }
}

fn room<T: Tiling>(p: &Product<Store<T>>, threads: usize) -> Option<Room> {
    if work(p) < T::LEAST || p.m.min(p.n) < 8 || p.k < 16 || !tile_state::available() {
        return None;
    }
    let cut = Cut::new::<T>(p, useful_threads::<T>(p, threads));
    let each = cut.b_bytes().saturating_add(cut.pass.saturating_mul(cut.size));
    Some(Room { whole: 0, each })
}

unsafe fn product<T: Tiling>(
    parallel: &dyn Parallel,
    threads: usize,
    p: &Product<Store<T>>,
    area: &Area,
) -> bool {
    let threads = useful_threads::<T>(p, threads);
    let cut = Cut::new::<T>(p, threads);
    let slots = &area.slots;
    let run = |pieces: usize, piece: &(dyn Fn(usize) + Sync)| match threads {
        1 => (0..pieces).for_each(piece),
        _ => parallel.run(pieces, piece),
    };
    let declined = AtomicBool::new(false);
    let pack = |panels: PanelsArgs<Store<T>>| {
        // SAFETY: the panels are in the operand, and each has its own place in the caller's slot.
        unsafe { Avx512::enter::<Panels<T>>(&panels) };
        if !panels.good.get() {
            declined.store(true, Ordering::Relaxed);
        }
    };
    // SAFETY: the operands may be read.
    if !unsafe { T::accepts(parallel, p) } {
        return false;
    }
    let [a_panels, b_panels] = cut.panels;
    let kc = T::block_of_k(p.k);
    if T::DECLINES && p.accumulate {
        // What is added to C cannot be done over: everything is packed once to be looked at.
        run(a_panels + b_panels, &|index| {
            slots.with(|slot| {
                for k in (0..p.k).step_by(kc) {
                    let panels = match index.checked_sub(a_panels) {
                        None => PanelsArgs::of_a(p, index..index + 1),
                        Some(index) => PanelsArgs::of_b(p, index..index + 1),
                    };
                    pack(panels.over(k..(k + kc).min(p.k), slot, cut.size));
                }
            });
        });
        if declined.load(Ordering::Relaxed) {
            return false;
        }
    }
    run(cut.grid.rows * cut.grid.columns, &|index| {
        let rows = part(a_panels, cut.grid.rows, 1, index / cut.grid.columns);
        let columns = part(b_panels, cut.grid.columns, 1, index % cut.grid.columns);
        slots.with(|packed_b| {
            let packed_a = packed_b.wrapping_add(cut.b_bytes());
            for k in (0..p.k).step_by(kc) {
                let depth = k..(k + kc).min(p.k);
                pack(PanelsArgs::of_b(p, columns.clone()).over(depth.clone(), packed_b, cut.size));
                for row in rows.clone() {
                    // Pieces are cut for the caches and may take seconds each.
                    pool::check();
                    if declined.load(Ordering::Relaxed) {
                        return;
                    }
                    let place = (row - rows.start) % cut.pass;
                    if place == 0 {
                        let pass = row..(row + cut.pass).min(rows.end);
                        pack(PanelsArgs::of_a(p, pass).over(depth.clone(), packed_a, cut.size));
                    }
                    let args = TilesArgs::<T> {
                        product: *p,
                        a: packed_a.wrapping_add(place * cut.size),
                        b: packed_b,
                        size: cut.size,
                        steps: depth.len().div_ceil(DEPTH),
                        accumulate: p.accumulate || k > 0,
                        row,
                        columns: columns.clone(),
                    };
                    // SAFETY: these panels are packed; pieces of C are disjoint.
                    unsafe { Avx512::enter::<Tiles<T>>(&args) };
                }
            }
        });
    });
    !declined.into_inner()
}

/// Some panels of an operand on their way into tiles, one after the other.
struct PanelsArgs<S> {
    /// Lane 0, k 0 of the operand.
    from: *const S,
    across: isize,
    along: isize,
    /// Rows of A, or columns of B.
    lanes: usize,
    is_b: bool,
    panels: Range<usize>,
    depth: Range<usize>,
    to: *mut u8,
    /// Bytes of a panel.
    size: usize,
    /// Whether the unit can multiply what they hold.
    good: Cell<bool>,
}

impl<S> PanelsArgs<S> {
    fn of_a(p: &Product<S>, panels: Range<usize>) -> PanelsArgs<S> {
        let (from, across, along, lanes) = (p.a, p.a_rows, p.a_cols, p.m);
        let good = Cell::new(true);
        let to = std::ptr::null_mut();
        PanelsArgs {
            from,
            across,
            along,
            lanes,
            is_b: false,
            panels,
            depth: 0..0,
            to,
            size: 0,
            good,
        }
    }

    fn of_b(p: &Product<S>, panels: Range<usize>) -> PanelsArgs<S> {
        let (from, across, along, lanes) = (p.b, p.b_cols, p.b_rows, p.n);
        PanelsArgs { from, across, along, lanes, is_b: true, ..Self::of_a(p, panels) }
    }

    /// Over a block of K, to a place with `size` bytes for each panel.
    fn over(self, depth: Range<usize>, to: *mut u8, size: usize) -> PanelsArgs<S> {
        PanelsArgs { depth, to, size, ..self }
    }
}

/// Packs them.
struct Panels<T>(PhantomData<T>);

impl<T: Tiling> Job for Panels<T> {
    type Args = PanelsArgs<Store<T>>;

    #[inline(always)]
    unsafe fn run(args: &PanelsArgs<Store<T>>) {
        // Where lanes are contiguous, all panels take some k before the next ones: memory is read
        // in long stretches.
        let at_once = if args.across == 1 { DEPTH } else { args.depth.len() };
        let mut good = true;
        let mut k = 0;
        while k < args.depth.len() {
            let depth = at_once.min(args.depth.len() - k);
            let along = (args.depth.start + k) as isize * args.along;
            for (place, index) in args.panels.clone().enumerate() {
                let lane = index * PANEL;
                let panel = Panel {
                    from: args.from.wrapping_offset(lane as isize * args.across + along),
                    across: args.across,
                    along: args.along,
                    lanes: PANEL.min(args.lanes - lane),
                    depth,
                    to: args.to.wrapping_add(place * args.size + k / DEPTH * T::STEP),
                    is_b: args.is_b,
                };
                // SAFETY: the lanes and k of a panel are in the operand; every panel has its place.
                good &= unsafe { T::pack(&panel) };
            }
            k += depth;
        }
        args.good.set(good);
    }
}

/// A row of panels of C, over one block of K.
struct TilesArgs<T: Tiling> {
    product: Product<Store<T>>,
    /// The panel of A that belongs to the row.
    a: *const u8,
    /// The panels of B that belong to the columns.
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
        // SAFETY: `available` was asked.
        unsafe { tile_state::configure() };
        let i = args.row * PANEL;
        let c = p.c.wrapping_offset(i as isize * p.c_rows);
        for (place, column) in args.columns.clone().enumerate() {
            let j = column * PANEL;
            // SAFETY: the panels hold `steps` steps; C has the rows and columns from (i, j).
            unsafe {
                T::multiply(args.a, args.b.wrapping_add(place * args.size), args.steps, &mut sums);
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
        // SAFETY: as above.
        unsafe { tile_state::release() };
    }
}

/// A block of sums as the tile unit stores it.
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [f32; PANEL * PANEL]);
