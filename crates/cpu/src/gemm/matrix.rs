//! The loops around the micro-kernel.
//!
//! `plan` has turned the problem so that C's rows are contiguous wherever they can be, and has
//! chosen a [`Blocking`]. [`product`] hands pieces of C (or blocks of K) to the threads; [`region`]
//! is the loop nest of one piece: columns, blocks of K, pack B, rows, pack A, tiles. Pieces share
//! nothing, so no thread ever waits for another inside of a product. They are cut for the caches and
//! may take seconds, so they ask between blocks whether they are still wanted.

use super::blocking::{Blocking, widest};
use super::depth;
use super::family::{Elem, Family};
use super::finish::{Finish, FinishArgs};
use super::kernel::{Ahead, Tile, Tiled, access};
use super::lanes::{Lanes, Level};
use super::pack::{self, Upcoming};
use super::scratch::{Area, Room, room};
use super::{Parallel, Product, vector};
use crate::pool;
use std::ops::Range;

/// The level that a family's kernels are compiled for.
pub(super) type LevelOf<F> = <<F as Family>::Lanes as Lanes>::Level;

/// Rows and columns of the largest tile of a family.
pub(super) fn tile_size<F: Family>() -> (usize, usize) {
    let kernels = &F::Lanes::KERNELS;
    (kernels.rows, kernels.vectors * F::Lanes::WIDTH)
}

/// Elements per k of a packed panel of B that holds `width` columns.
pub(super) fn panel_width<F: Family>(width: usize) -> usize {
    let (_, nr) = tile_size::<F>();
    if F::Lanes::KERNELS.every_width { width.next_multiple_of(F::Lanes::WIDTH) } else { nr }
}

/// Whether kernels can read a family's operands where they lie (given fitting strides).
pub(super) fn reads_in_place<F: Family>() -> bool {
    F::DIRECT && F::Lanes::KERNELS.in_place
}

/// Where sums go: contiguous rows of computed elements.
#[derive(Clone, Copy)]
pub(super) struct Target<E> {
    pub(super) at: *mut E,
    pub(super) rows: isize,
    pub(super) accumulate: bool,
}

/// A part of the product: rows and columns of C, a range of K.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
    pub(super) depth: Range<usize>,
}

/// What [`product`] needs.
pub(super) fn need<F: Family>(p: &Product<F::Store>, blocking: &Blocking) -> Room {
    if blocking.k_at_once > 0 {
        let each = a_room::<F>(blocking) + b_room::<F>(blocking, p.n);
        return Room { whole: depth::results_room::<F>(p, blocking), each };
    }
    let (_, nr) = tile_size::<F>();
    let columns = widest(p.n, blocking.grid.columns, nr);
    let sums = Sums::new::<F>(p, blocking).map_or(0, |sums| sums.room::<F>());
    Room { whole: 0, each: sums + a_room::<F>(blocking) + b_room::<F>(blocking, columns) }
}

/// Bytes of the packed panels of A.
fn a_room<F: Family>(blocking: &Blocking) -> usize {
    if blocking.pack_a { room::<Elem<F>>(blocking.mc * blocking.kc) } else { 0 }
}

/// Bytes of the packed block of B, for pieces of at most so many columns.
fn b_room<F: Family>(blocking: &Blocking, columns: usize) -> usize {
    let (_, nr) = tile_size::<F>();
    let width = columns.min(blocking.most_columns()).next_multiple_of(nr);
    if blocking.pack_b { room::<Elem<F>>(width * blocking.kc) } else { 0 }
}

/// The block of computed elements that a piece of C fills first where the result takes another form
/// in memory: some rows at a time, so that the block stays in L2.
struct Sums {
    /// From one row to the next: enough for the widest piece.
    pitch: usize,
    height: usize,
}

impl Sums {
    /// None where kernels write C itself.
    fn new<F: Family>(p: &Product<F::Store>, blocking: &Blocking) -> Option<Sums> {
        if F::DIRECT && p.c_cols == 1 {
            return None;
        }
        let (mr, nr) = tile_size::<F>();
        let columns = widest(p.n, blocking.grid.columns, nr);
        let pitch = columns.next_multiple_of(F::Lanes::WIDTH);
        let fitting = (1 << 20) / (pitch * size_of::<Elem<F>>());
        Some(Sums { pitch, height: fitting.next_multiple_of(mr).max(8 * mr).min(p.m) })
    }

    fn room<F: Family>(&self) -> usize {
        room::<Elem<F>>(self.pitch * self.height)
    }
}

/// Computes the product.
///
/// # Safety
/// The contract of `gemm`; `k` is not zero, and the area has the room that [`need`] says.
pub(super) unsafe fn product<F: Family>(
    parallel: &dyn Parallel,
    p: &Product<F::Store>,
    blocking: &Blocking,
    area: &Area,
) {
    // SAFETY: the same contract.
    unsafe {
        if blocking.k_at_once > 0 {
            return depth::cut_k::<F>(parallel, p, blocking, area);
        }
        let pieces = blocking.pieces();
        if pieces == 1 {
            return area.slots.with(|slot| piece::<F>(p, blocking, 0..p.m, 0..p.n, slot));
        }
        let slots = &area.slots;
        let (_, nr) = tile_size::<F>();
        // All that threads read, side by side: it comes from the caller's core line by line. Copied
        // once more there, since the caller goes on to write beside it.
        let plan = (*p, *blocking);
        let work = move |index| {
            let (p, blocking) = std::hint::black_box(plan);
            let (rows, columns) = blocking.piece((p.m, p.n), nr, index);
            slots.with(|slot| piece::<F>(&p, &blocking, rows, columns, slot));
        };
        if blocking.awake_only {
            parallel.run_brief(pieces, &work);
        } else {
            parallel.run(pieces, &work);
        }
    }
}

/// Whether a product can be computed by [`at_once`], as it would be after longer thought.
#[inline]
pub(super) fn is_plain<F: Family>(p: &Product<F::Store>) -> bool {
    let few = vector::most_rows::<F>();
    reads_in_place::<F>()
        && p.b_cols == 1
        && p.c_cols == 1
        && p.k > 0
        && p.m > few
        && p.n > few
        && Blocking::is_brief(p.m, p.n, p.k, size_of::<Elem<F>>())
}

/// Computes a product that [`is_plain`]: in place, on this thread. Small ones take less time than a
/// plan.
///
/// # Safety
/// The contract of `gemm`.
pub(super) unsafe fn at_once<F: Family>(p: &Product<F::Store>) {
    let (mr, _) = tile_size::<F>();
    let blocking = Blocking::in_place(p.n, p.k, mr);
    let strips = Strips { at: p.b.cast(), rows: Some(p.b_rows), depth: p.k, columns: p.n };
    let target = Target { at: p.c.cast(), rows: p.c_rows, accumulate: p.accumulate };
    let nowhere = std::ptr::null_mut();
    // SAFETY: the same contract; nothing is packed, and the elements are those of the lanes.
    unsafe { rows_of_tiles::<F>(p, &blocking, p.a, nowhere, p.m, &strips, target) };
}

/// Rows of A that are read from end to end before the next, where nothing is packed and so nothing is
/// gained by a block of K for all rows: A comes from memory then, as fast as a few long streams allow.
/// Of 2048 x 2048 float64 times 8 columns, 8 took 0.80 ms, 14 took 0.91 and blocks of K 1.18.
const ROWS_ALONG: usize = 8;

/// Computes a piece of C over all of K.
///
/// # Safety
/// The contract of `gemm`; no other thread works on the same piece or uses the slot.
unsafe fn piece<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    rows: Range<usize>,
    columns: Range<usize>,
    slot: *mut u8,
) {
    if rows.is_empty() || columns.is_empty() {
        return;
    }
    let depth = 0..p.k;
    let Some(sums) = Sums::new::<F>(p, blocking) else {
        let packs = blocking.pack_a || blocking.pack_b;
        let along = !packs && p.a_cols == 1 && p.k > blocking.kc;
        let at_once = if along { ROWS_ALONG } else { rows.len() };
        for row in rows.clone().step_by(at_once) {
            let c = at(p.c, row, p.c_rows, columns.start, 1).cast::<Elem<F>>();
            let target = Target { at: c, rows: p.c_rows, accumulate: p.accumulate };
            let rows = row..rows.end.min(row + at_once);
            let part = Part { rows, columns: columns.clone(), depth: depth.clone() };
            // SAFETY: the same contract; without sums, the two element types are one.
            unsafe { region::<F>(p, blocking, &part, target, slot) };
        }
        return;
    };
    let packed = slot.wrapping_add(sums.room::<F>());
    let Sums { pitch, height } = sums;
    let sums = slot.cast::<Elem<F>>();
    let mut row = rows.start;
    while row < rows.end {
        let end = (row + height).min(rows.end);
        let target = Target { at: sums, rows: pitch as isize, accumulate: false };
        let part = Part { rows: row..end, columns: columns.clone(), depth: depth.clone() };
        let finish = FinishArgs::<F> {
            sums,
            pitch,
            height: end - row,
            width: columns.len(),
            c: at(p.c, row, p.c_rows, columns.start, p.c_cols),
            c_rows: p.c_rows,
            c_cols: p.c_cols,
            accumulate: p.accumulate,
        };
        // SAFETY: the slot has room for `height` rows of `pitch` and, behind them, for packing; the
        // rest is the caller's contract.
        unsafe {
            region::<F>(p, blocking, &part, target, packed);
            LevelOf::<F>::enter::<Finish<F>>(&finish);
        }
        row = end;
    }
}

/// The address of element (i, j); formed by wrapping arithmetic, so it may be formed before it is
/// known whether it will be used.
fn at<T>(base: *mut T, i: usize, rows: isize, j: usize, cols: isize) -> *mut T {
    base.wrapping_offset(i as isize * rows).wrapping_offset(j as isize * cols)
}

/// The loop nest of one part.
///
/// # Safety
/// A and B may be read and the target written over the part; the family's level is available;
/// `packed` has room for the panels of A and the block of B.
pub(super) unsafe fn region<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    part: &Part,
    target: Target<Elem<F>>,
    packed: *mut u8,
) {
    let (_, nr) = tile_size::<F>();
    let Blocking { kc, pack_b, .. } = *blocking;
    let width = blocking.columns_at_once(part.columns.len(), nr);
    let packed_a = packed.cast::<Elem<F>>();
    let packed_b = packed.wrapping_add(a_room::<F>(blocking)).cast::<Elem<F>>();
    let mut column = part.columns.start;
    while column < part.columns.end {
        let columns = column..(column + width).min(part.columns.end);
        let mut k = part.depth.start;
        while k < part.depth.end {
            let depth = k..(k + kc).min(part.depth.end);
            let first = k == part.depth.start;
            if !first {
                pool::check();
            }
            let b = at(p.b.cast_mut(), k, p.b_rows, column, p.b_cols).cast_const();
            let strips = Strips {
                at: if pack_b { packed_b.cast_const() } else { b.cast() },
                rows: (!pack_b).then_some(p.b_rows),
                depth: depth.len(),
                columns: columns.len(),
            };
            let target = Target {
                at: target.at.wrapping_add(column - part.columns.start),
                rows: target.rows,
                accumulate: target.accumulate || !first,
            };
            // SAFETY: the part lies in the operands, there is room for both packings, and B is read
            // in place only where the plan found its rows contiguous and its elements those of the
            // lanes.
            unsafe {
                if pack_b {
                    LevelOf::<F>::enter::<pack::Block<F>>(&pack::BlockArgs {
                        from: b,
                        across: p.b_cols,
                        along: p.b_rows,
                        columns: columns.len(),
                        depth: depth.len(),
                        panel: nr,
                        to: packed_b,
                    });
                }
                let a = at(p.a.cast_mut(), part.rows.start, p.a_rows, k, p.a_cols).cast_const();
                rows_of_tiles::<F>(p, blocking, a, packed_a, part.rows.len(), &strips, target);
            }
            k = depth.end;
        }
        column = columns.end;
    }
}

/// A block of B as strips of tile width: packed, or in place with a row stride.
struct Strips<E> {
    at: *const E,
    rows: Option<isize>,
    depth: usize,
    columns: usize,
}

/// All tiles over one block of K and of columns.
///
/// # Safety
/// As [`region`]; `a` is the first element of A there.
unsafe fn rows_of_tiles<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    a: *const F::Store,
    packed_a: *mut Elem<F>,
    rows: usize,
    strips: &Strips<Elem<F>>,
    target: Target<Elem<F>>,
) {
    let (mr, _) = tile_size::<F>();
    let panels = rows.div_ceil(mr);
    let per_pass = blocking.mc / mr;
    let (height, taller) = (rows / panels, rows % panels);
    let mut panel = 0;
    let mut row = 0;
    while panel < panels {
        if panel > 0 {
            pool::check();
        }
        let pass = panel..(panel + per_pass).min(panels);
        if blocking.pack_a {
            let args = pack::PanelsArgs {
                from: a,
                across: p.a_rows,
                along: p.a_cols,
                depth: strips.depth,
                rows,
                panels,
                pass: pass.clone(),
                to: packed_a,
            };
            // SAFETY: the rows are in A; the buffer has room for `mc` of them.
            unsafe { LevelOf::<F>::enter::<pack::Panels<F>>(&args) };
        }
        let mut upcoming = blocking.pack_a.then(|| {
            let next = pass.end..pass.end + per_pass;
            let [first, last] = [next.start, next.end].map(|at| pack::even(rows, panels, at));
            Upcoming::new(p, a, first..last, strips.depth)
        });
        let mut packed = packed_a.cast_const();
        for index in pass {
            let height = height + usize::from(index < taller);
            let tile = Tile {
                k: strips.depth,
                a: if blocking.pack_a {
                    packed
                } else {
                    a.wrapping_offset(row as isize * p.a_rows).cast()
                },
                a_rows: if blocking.pack_a { 1 } else { p.a_rows },
                a_cols: if blocking.pack_a { height as isize } else { p.a_cols },
                b: strips.at,
                b_rows: 0,
                c: target.at.wrapping_offset(row as isize * target.rows),
                c_rows: target.rows,
                width: 0,
                accumulate: target.accumulate,
                ahead: Ahead { at: std::ptr::null(), step: 0 },
            };
            // SAFETY: the same contract.
            unsafe { tiles::<F>(tile, height, strips, upcoming.as_mut()) };
            packed = packed.wrapping_add(height * strips.depth);
            row += height;
            panel += 1;
        }
    }
}

/// One row of tiles, along the strips of B.
///
/// # Safety
/// As [`region`]; `tile` is the first tile of the row, of height `height`. If A is packed, what
/// will be packed next is given.
#[inline(always)]
unsafe fn tiles<F: Family>(
    mut tile: Tile<Elem<F>>,
    height: usize,
    strips: &Strips<Elem<F>>,
    mut upcoming: Option<&mut Upcoming>,
) {
    let lanes = F::Lanes::WIDTH;
    let (_, nr) = tile_size::<F>();
    let kernels = &F::Lanes::KERNELS;
    let mut column = 0;
    while column < strips.columns {
        let width = nr.min(strips.columns - column);
        let vectors = width.div_ceil(lanes);
        tile.width = width;
        tile.b_rows = strips.rows.unwrap_or(panel_width::<F>(width) as isize);
        let access = match strips.rows {
            Some(_) if width % lanes != 0 => access::MASKED,
            _ if upcoming.is_some() => access::PACKED,
            _ => access::STRIDED,
        };
        if let Some(upcoming) = &mut upcoming {
            tile.ahead = upcoming.next(tile.b.cast());
        }
        // SAFETY: the caller's contract; the tile ends where the strip does.
        unsafe { kernels.get(height, vectors, access)(&tile) };
        let step =
            if strips.rows.is_some() { width } else { panel_width::<F>(width) * strips.depth };
        tile.b = tile.b.wrapping_add(step);
        tile.c = tile.c.wrapping_add(width);
        column += width;
    }
}
