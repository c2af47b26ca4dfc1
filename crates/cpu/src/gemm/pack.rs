//! Packing: a block of A or B copied into the order in which the kernel reads it.
//!
//! A panel of A (some rows) and a panel of B (some columns) are the same thing: `lanes` neighbours
//! for every k, contiguous, k after k. What differs is which stride leads across the panel and
//! which along k. Where neighbours are contiguous in memory, vectors are copied; where k is,
//! squares are transposed in registers; otherwise elements are gathered one by one (as are the few rows
//! of a tile of complex numbers, which would leave most of a square empty). `matrix` calls
//! [`Panels`] for A and [`Block`] for B.

use super::Product;
use super::family::{Elem, Family};
use super::kernel::{Ahead, STRETCH};
use super::lanes::{Job, Lanes};
use super::matrix::panel_width;
use crate::prefetch;
use std::marker::PhantomData;
use std::ops::Range;

/// One panel to be packed.
struct Panel<F: Family> {
    /// First element of the source.
    from: *const F::Store,
    /// From one neighbour to the next.
    across: isize,
    /// From one k to the next.
    along: isize,
    /// How many neighbours there are.
    lanes: usize,
    /// How many k.
    depth: usize,
    /// The packed panel.
    to: *mut Elem<F>,
}

/// Some row panels of A.
pub(super) struct PanelsArgs<F: Family> {
    /// Row 0 (of `rows`) and the first k of the source.
    pub(super) from: *const F::Store,
    /// From one row to the next.
    pub(super) across: isize,
    /// From one k to the next.
    pub(super) along: isize,
    /// How many k.
    pub(super) depth: usize,
    /// Rows that are cut into panels.
    pub(super) rows: usize,
    /// Into how many.
    pub(super) panels: usize,
    /// Which panels to pack.
    pub(super) pass: Range<usize>,
    /// The packed panels, one after the other.
    pub(super) to: *mut Elem<F>,
}

/// Where panel `index` of `panels` starts (all panels beyond the last, at the end): rows are cut
/// evenly, since a rest of one or two rows would be bound by latency.
#[inline(always)]
pub(super) fn even(rows: usize, panels: usize, index: usize) -> usize {
    let index = index.min(panels);
    rows / panels * index + (rows % panels).min(index)
}

/// The part of A that is packed next, as tracks of cache lines: each tile of C fetches one of them
/// while it is computed.
pub(super) struct Upcoming {
    start: *const u8,
    /// Tracks lie at `outer` times their number over `per` plus `inner` times the rest.
    per: usize,
    outer: isize,
    inner: isize,
    step: isize,
    tracks: usize,
    track: usize,
}

impl Upcoming {
    /// Some rows of A, over `depth` columns from `a` (which is row 0) on.
    pub(super) fn new<T>(
        p: &Product<T>,
        a: *const T,
        rows: Range<usize>,
        depth: usize,
    ) -> Upcoming {
        const LINE: usize = 64;
        let size = size_of::<T>();
        let lines = depth.div_ceil(STRETCH);
        let start = a.wrapping_offset(rows.start as isize * p.a_rows).cast();
        let (row, column) = (p.a_rows * size as isize, p.a_cols * size as isize);
        let none = Upcoming { start, per: 1, outer: 0, inner: 0, step: 0, tracks: 0, track: 0 };
        if p.a_cols == 1 {
            let per = (depth * size).div_ceil(lines * LINE);
            let (inner, step) = ((lines * LINE) as isize, LINE as isize);
            Upcoming { per, outer: row, inner, step, tracks: rows.len() * per, ..none }
        } else if p.a_rows == 1 {
            let per = depth.div_ceil(lines);
            let (inner, tracks) =
                (lines as isize * column, (rows.len() * size).div_ceil(LINE) * per);
            Upcoming { per, outer: LINE as isize, inner, step: column, tracks, ..none }
        } else {
            none
        }
    }

    /// The next track; without one, `idle` again and again.
    #[inline(always)]
    pub(super) fn next(&mut self, idle: *const u8) -> Ahead {
        if self.track == self.tracks {
            return Ahead { at: idle, step: 0 };
        }
        let (outer, inner) = ((self.track / self.per) as isize, (self.track % self.per) as isize);
        self.track += 1;
        let at = self.start.wrapping_offset(outer * self.outer + inner * self.inner);
        Ahead { at, step: self.step }
    }
}

/// Packs row panels of A.
pub(super) struct Panels<F>(PhantomData<F>);

impl<F: Family> Job for Panels<F> {
    type Args = PanelsArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &PanelsArgs<F>) {
        // Where columns are contiguous, all panels take some columns before the next ones: a line
        // of a column serves several panels while it is in L1.
        let at_once = if args.across == 1 { ROWS_AT_ONCE } else { args.depth };
        let first = even(args.rows, args.panels, args.pass.start);
        let mut k = 0;
        while k < args.depth {
            let depth = at_once.min(args.depth - k);
            for index in args.pass.clone() {
                let row = even(args.rows, args.panels, index);
                let lanes = even(args.rows, args.panels, index + 1) - row;
                let column = args.from.wrapping_offset(k as isize * args.along);
                let panel = Panel {
                    from: column.wrapping_offset(row as isize * args.across),
                    across: args.across,
                    along: args.along,
                    lanes,
                    depth,
                    to: args.to.wrapping_add((row - first) * args.depth + k * lanes),
                };
                // SAFETY: the panel is a part of the caller's rows, and has its own place.
                unsafe { pack::<F, false>(&panel, lanes) };
            }
            k += depth;
        }
    }
}

/// Elements at a stride.
pub(super) struct RowArgs<F: Family> {
    pub(super) from: *const F::Store,
    pub(super) stride: isize,
    pub(super) count: usize,
    /// Room for whole vectors, if they are written in the lanes' packed order.
    pub(super) to: *mut Elem<F>,
}

/// Copies elements at a stride without gaps, as computed elements: in the order of memory, or (`B`) as
/// panels of B hold vectors.
pub(super) struct Row<F, const B: bool>(PhantomData<F>);

impl<F: Family, const B: bool> Job for Row<F, B> {
    type Args = RowArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &RowArgs<F>) {
        let RowArgs { from, stride, count, to } = *args;
        // One long panel with a single k is exactly this.
        let panel = Panel::<F> { from, across: stride, along: 0, lanes: count, depth: 1, to };
        let width = if B { count.next_multiple_of(F::Lanes::WIDTH) } else { count };
        // SAFETY: the caller's contract, which is that of `pack`.
        unsafe { pack::<F, B>(&panel, width) };
    }
}

/// A block of B: all its panels.
pub(super) struct BlockArgs<F: Family> {
    /// First element of the source.
    pub(super) from: *const F::Store,
    /// From one column to the next.
    pub(super) across: isize,
    /// From one k to the next.
    pub(super) along: isize,
    /// How many columns.
    pub(super) columns: usize,
    /// How many k.
    pub(super) depth: usize,
    /// Columns of a whole panel: a multiple of the lanes' width.
    pub(super) panel: usize,
    /// The packed panels, one after the other; the last may be narrower.
    pub(super) to: *mut Elem<F>,
}

/// Packs a block of B.
pub(super) struct Block<F>(PhantomData<F>);

/// How many rows of B are copied over all panels before the next ones: few enough that their
/// pages stay in the TLB, enough that a panel's lines are written whole.
const ROWS_AT_ONCE: usize = 8;

impl<F: Family> Job for Block<F> {
    type Args = BlockArgs<F>;

    #[inline(always)]
    unsafe fn run(block: &BlockArgs<F>) {
        let rows = if block.across == 1 { ROWS_AT_ONCE } else { block.depth };
        let mut k = 0;
        while k < block.depth {
            let depth = rows.min(block.depth - k);
            let mut column = 0;
            while column < block.columns {
                let lanes = block.panel.min(block.columns - column);
                let width = panel_width::<F>(lanes);
                let row = block.from.wrapping_offset(k as isize * block.along);
                let panel = Panel {
                    from: row.wrapping_offset(column as isize * block.across),
                    across: block.across,
                    along: block.along,
                    lanes,
                    depth,
                    to: block.to.wrapping_add(column * block.depth + k * width),
                };
                // SAFETY: the panel is a part of the caller's block; panels before it are whole
                // and take `column * depth` elements.
                unsafe {
                    pack::<F, true>(&panel, width);
                    clear::<F>(&panel, width);
                }
                column += lanes;
            }
            k += depth;
        }
    }
}

/// Zeroes the whole vectors of a panel of B that hold no column, so that nobody reads memory that
/// was never written.
///
/// # Safety
/// As [`pack`].
#[inline(always)]
unsafe fn clear<F: Family>(panel: &Panel<F>, width: usize) {
    let mut lane = panel.lanes.next_multiple_of(F::Lanes::WIDTH);
    while lane < width {
        for k in 0..panel.depth {
            // SAFETY: `to` has room for `width` elements per k.
            unsafe { F::Lanes::zero().store_packed(panel.to.add(k * width + lane)) };
        }
        lane += F::Lanes::WIDTH;
    }
}

/// Packs one panel with `width` elements per k; what those beyond `lanes` hold does not matter, since
/// kernels mask them at C. `B` says that vectors are written in the lanes' packed order (and then
/// `width` is a multiple of theirs).
///
/// # Safety
/// The source may be read at every neighbour and k; `to` has room for `width * depth` elements;
/// the lanes' level is available.
#[inline(always)]
unsafe fn pack<F: Family, const B: bool>(panel: &Panel<F>, width: usize) {
    // SAFETY: the same contract.
    unsafe {
        if panel.across == 1 {
            copy::<F, B>(panel, width);
        } else if panel.along == 1 && F::Lanes::TRANSPOSES && (B || !F::Lanes::REORDERS) {
            transpose::<F, B>(panel, width);
        } else {
            gather::<F, B>(panel, width);
        }
    }
}

/// Writes the vector that starts at lane `lane` of one k. If `room`, the elements from this k to the
/// end, has place for it, the vector is written whole: what it spoils of the next k must be written
/// later. Masked stores that cross lines are slow.
///
/// # Safety
/// `to` has room for the lanes up to `width`, and for `room`; the lanes' level is available.
#[inline(always)]
unsafe fn put<V: Lanes, const B: bool>(
    vector: V,
    to: *mut V::Elem,
    lane: usize,
    width: usize,
    room: usize,
) {
    // SAFETY: the caller's promise; a vector that would reach beyond `room` is masked.
    unsafe {
        if B {
            vector.store_packed(to.add(lane));
        } else if lane + V::WIDTH <= room {
            vector.store(to.add(lane));
        } else {
            vector.store_masked(to.add(lane), V::mask(width - lane));
        }
    }
}

/// Neighbours are contiguous: vectors are copied.
///
/// # Safety
/// As [`pack`], and `across` is 1.
#[inline(always)]
unsafe fn copy<F: Family, const B: bool>(panel: &Panel<F>, width: usize) {
    for k in 0..panel.depth {
        let from = panel.from.wrapping_offset(k as isize * panel.along);
        prefetch::into_l1(from.wrapping_offset(ROWS_AT_ONCE as isize * panel.along));
        let to = panel.to.wrapping_add(k * width);
        let mut lane = 0;
        while lane < panel.lanes {
            // SAFETY: lanes below `panel.lanes` may be read, `to` has room for `width`.
            unsafe {
                let vector = if lane + F::Lanes::WIDTH <= panel.lanes {
                    F::load(from.add(lane))
                } else {
                    F::load_first(from.add(lane), panel.lanes - lane)
                };
                put::<F::Lanes, B>(vector, to, lane, width, (panel.depth - k) * width);
            }
            lane += F::Lanes::WIDTH;
        }
    }
}

/// k is contiguous: squares are transposed in registers.
///
/// # Safety
/// As [`pack`], and `along` is 1.
#[expect(
    clippy::needless_range_loop,
    reason = "counted loops unroll, and the square stays in registers"
)]
#[inline(always)]
unsafe fn transpose<F: Family, const B: bool>(panel: &Panel<F>, width: usize) {
    let side = F::Lanes::WIDTH;
    // The highest lanes first: see `put`.
    let mut lane = panel.lanes.next_multiple_of(side);
    while lane > 0 {
        lane -= side;
        // Lanes beyond the panel's repeat its last one: no branches, and nothing foreign is read.
        let last = side.min(panel.lanes - lane) as isize - 1;
        let from = panel.from.wrapping_offset(lane as isize * panel.across);
        let mut k = 0;
        while k < panel.depth {
            let depth = side.min(panel.depth - k);
            // SAFETY: neighbours `lane..=lane + last` and k `k..k + depth` are in the panel.
            unsafe {
                let mut square = [F::Lanes::zero(); 16];
                for i in 0..side {
                    let row = from.wrapping_offset(last.min(i as isize) * panel.across).add(k);
                    square[i] =
                        if depth == side { F::load(row) } else { F::load_first(row, depth) };
                }
                F::Lanes::transpose(&mut square);
                let to = panel.to.add(k * width);
                let room = (panel.depth - k) * width;
                if depth == side {
                    for i in 0..side {
                        put::<F::Lanes, B>(
                            square[i],
                            to.add(i * width),
                            lane,
                            width,
                            room - i * width,
                        );
                    }
                } else {
                    for (i, vector) in square.into_iter().enumerate().take(depth) {
                        put::<F::Lanes, B>(
                            vector,
                            to.add(i * width),
                            lane,
                            width,
                            room - i * width,
                        );
                    }
                }
            }
            k += depth;
        }
    }
}

/// Any strides, zero and negative ones too: element by element.
///
/// # Safety
/// As [`pack`].
#[inline(always)]
unsafe fn gather<F: Family, const B: bool>(panel: &Panel<F>, width: usize) {
    for k in 0..panel.depth {
        let from = panel.from.wrapping_offset(k as isize * panel.along);
        let to = panel.to.wrapping_add(k * width);
        for lane in 0..panel.lanes {
            let at = from.wrapping_offset(lane as isize * panel.across);
            // SAFETY: neighbour `lane` and k are in the panel; `to` has room for `width`.
            unsafe { to.add(lane).write(F::widen(at.read())) };
        }
        if B && F::Lanes::REORDERS {
            // Read in memory's order, written back in that of panels.
            let mut lane = 0;
            while lane < panel.lanes {
                let count = F::Lanes::WIDTH.min(panel.lanes - lane);
                let at = to.wrapping_add(lane);
                // SAFETY: `count` elements were just written, and whole vectors have room.
                unsafe {
                    F::Lanes::load_masked(at, F::Lanes::mask(count)).store_packed(at);
                }
                lane += F::Lanes::WIDTH;
            }
        }
    }
}
