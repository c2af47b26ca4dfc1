//! Walks the input of a reduction in pieces, and merges what the kernels give.
//!
//! Two ways. *Inner*: the elements of one result are taken along the reduced axes, result after
//! result; a long range is split. *Outer*: the reduced axes are walked outside, and whole rows of
//! neighbouring results are updated together, columns and rows in blocks. Whatever a kernel cannot
//! read in place is packed into a buffer first.
//!
//! What the pieces are depends on the layout alone, never on threads, so the bits of results do
//! not either. May assume what `reduce::run` has settled; called by it alone.

use std::mem::MaybeUninit;
use std::ops::Range;

use tilework_backend::Reduce;
use tilework_error::Result;
use tilework_layout::{LoopNest, ReduceNest};

use super::pack::Loader;
use super::states::{Shared, Stack, States};
use super::table::{Cell, Columns, Inner, MAX_RUN, MAX_STATE, Rows};
use super::{GROUP, Output, each_piece};
use crate::isa::Isa;
use crate::map::moves::Line;
use crate::pool;
use crate::scratch::Scratch;

/// Elements of one piece of work on the inner way: about ten microseconds. The pool gets nothing
/// smaller, so this is also what makes a reduction worth sharing.
const PIECE: usize = MAX_RUN;

/// Elements of one piece of work on the outer way, whose pieces give many states each.
const OUTER_PIECE: usize = 1 << 18;

/// Bytes of states that the outer way updates together: a part of L1.
const OUTER_STATES: usize = 16 << 10;

/// Bytes of the buffer that elements are packed into. It begins at a cache line, as all do: of vectors
/// that begin elsewhere, each is written to two lines and read from two.
const TILE: usize = 16 << 10;

/// Columns and rows that the outer way packs together: a part of L2 for the widest elements.
const PACKED_COLUMNS: usize = 512;
const PACKED_ROWS: usize = 32;

/// Columns that narrow rows are put together to, where they follow each other in memory.
const WIDE: usize = 512;

/// Runs shorter than this are packed together rather than handed to a kernel one by one: bringing its
/// lanes together takes a kernel as long as copying a thousand elements.
const SHORT: usize = 1024;

/// A reduction with everything that its pieces share.
struct Job<'a> {
    cell: &'static Cell,
    isa: Isa,
    /// What folds runs of loaded elements.
    kernel: Inner,
    loader: Loader,
    src: *const u8,
    out: &'a Output,
    /// Kept axes: operand 0 is the input, operand 1 the output.
    kept: &'a LoopNest,
    /// Reduced axes, relative to a position of `kept`.
    reduced: &'a LoopNest,
    /// Elements of each result.
    count: usize,
}

// SAFETY: the input is only read, under the guard of the session that waits for all pieces
// (storage invariant 3); `out` is shared by its own promise.
unsafe impl Sync for Job<'_> {}

/// Runs the reduction of `request` from `src` to `out`.
pub(super) fn run(
    isa: Isa,
    loader: Loader,
    src: *const u8,
    out: &Output,
    request: &Reduce<'_>,
) -> Result<()> {
    let nest = ReduceNest::new(request.input.layout(), request.axes, request.output.layout())?;
    let reduced = if out.cell.ordered { nest.reduced_in_order() } else { nest.reduced() };
    let count = nest.reduced_len();
    let kept = nest.kept();
    if kept.is_empty() {
        return Ok(());
    }
    let kernel = out.cell.inner[isa as usize];
    let mut job = Job { cell: out.cell, isa, kernel, loader, src, out, kept, reduced, count };
    if count == 0 {
        job.nothing();
        return Ok(());
    }
    let (across, along) = (kept.inner_strides()[0], reduced.inner_strides()[0]);
    let outer = along != 1
        && (kept.inner_len() >= 8 || job.together(kept.inner_len()) > 1)
        && (across == 1 || across.unsigned_abs() < along.unsigned_abs());
    let operation = request.fold.row().name;
    if let (false, Some(of_halves)) = (outer, out.cell.inner_of_halves) {
        job.kernel = of_halves[isa as usize];
        job.loader = Loader::of_elements(request.input.dtype());
    }
    if outer { job.outer(operation) } else { job.inner(operation) }
}

impl Job<'_> {
    /// Results of no elements.
    fn nothing(&self) {
        let mut states = States::new(GROUP * self.cell.state);
        let states = states.pointer();
        // SAFETY: there is room for a group of states.
        unsafe { (self.cell.init)(GROUP, states) };
        self.each_group(0..self.kept.len(), &mut |_, position, n, stride| {
            // SAFETY: the results are elements of the output's view, `n` is at most a group.
            unsafe { self.out.write(n, states, 0, position, stride) };
        });
    }

    /// Calls `f` for groups of neighbouring results: number of the first result, position in the
    /// output, how many, step in the output.
    fn each_group(&self, results: Range<usize>, f: &mut dyn FnMut(usize, usize, usize, isize)) {
        let stride = self.kept.inner_strides()[1];
        let mut first = results.start;
        each_piece(self.kept, results, &mut |at, len| {
            let mut done = 0;
            while done < len {
                let n = GROUP.min(len - done);
                let position = at[1].wrapping_add_signed(done.cast_signed() * stride);
                f(first + done, position, n, stride);
                done += n;
            }
            first += len;
        });
    }

    fn inner(&self, operation: &str) -> Result<()> {
        let results = self.kept.len();
        let splits = self.count.div_ceil(PIECE);
        if splits == 1 {
            let grain = (PIECE / self.count).max(1);
            pool::for_ranges(results, grain, &|range| {
                let mut states = [const { MaybeUninit::<[u128; 2]>::uninit() }; GROUP];
                const { assert!(MAX_STATE == size_of::<[u128; 2]>()) };
                let states = states.as_mut_ptr().cast::<u8>();
                let strides = self.kept.inner_strides();
                each_piece(self.kept, range, &mut |at, len| {
                    let mut done = 0;
                    while done < len {
                        let n = GROUP.min(len - done);
                        let step = |stride: isize| done.cast_signed() * stride;
                        let from = at[0].wrapping_add_signed(step(strides[0]));
                        let to = at[1].wrapping_add_signed(step(strides[1]));
                        self.fold_rows(from, n, 0..self.count, states);
                        // SAFETY: all `n` states are there; the results are elements of the
                        // output's view, and no other piece has them.
                        unsafe { self.out.write(n, states, self.count, to, strides[1]) };
                        done += n;
                    }
                });
            });
            return Ok(());
        }
        let mut partial = self.partial(operation, splits)?;
        let shared = Shared(partial.pointer());
        let part = |result: usize, range: Range<usize>| {
            let split = range.start / PIECE;
            let state = shared.state(split * results + result, self.cell.state);
            each_piece(self.kept, result..result + 1, &mut |at, _| {
                self.fold_rows(at[0], 1, range.clone(), state);
            });
        };
        if results == 1 {
            pool::for_ranges(self.count, PIECE, &|range| part(0, range));
        } else {
            pool::run(results * splits, &|item| {
                let (result, split) = (item / splits, item % splits);
                part(result, split * PIECE..self.count.min((split + 1) * PIECE));
            });
        }
        self.merge_splits(shared, splits);
        Ok(())
    }

    /// Room for the states of all results over each of `splits` parts of their elements. A view with
    /// strides of zero can have more elements than there is memory.
    fn partial(&self, operation: &str, splits: usize) -> Result<Scratch> {
        let states = self.kept.len().saturating_mul(splits);
        Scratch::new(operation, states.saturating_mul(self.cell.state))
    }

    /// Writes the states of `n` neighbouring results from input position `from` on, each over
    /// `range` of its elements, which is no longer than a piece.
    fn fold_rows(&self, from: usize, n: usize, range: Range<usize>, states: *mut u8) {
        let (cell, size) = (self.cell, self.loader.size);
        let kernel = self.kernel;
        let across = self.kept.inner_strides()[0];
        let (len, index) = (range.len(), range.start as i64);
        let unit = self.reduced.inner_strides()[0] == 1 && !self.loader.widens;
        if unit && self.reduced.axes() == 1 {
            let position = from + self.reduced.offsets()[0] + range.start;
            // SAFETY: all these elements are of the input's view, which lies in its block, and the
            // session holds its guard (storage invariants 1 to 3); `states` has room for `n`.
            unsafe {
                let src = self.src.add(position * size);
                kernel(&Rows { src, len, rows: n, stride: across, index }, states);
            }
            return;
        }
        let mut tile = [MaybeUninit::<Line>::uninit(); TILE / size_of::<Line>()];
        let tile = tile.as_mut_ptr().cast::<u8>();
        let room = TILE / self.loader.loaded;
        if !unit && len <= room / 2 {
            // Several short rows together.
            let together = room / len;
            let mut done = 0;
            while done < n {
                let rows = together.min(n - done);
                for row in 0..rows {
                    let from = from.wrapping_add_signed((done + row).cast_signed() * across);
                    self.pack(
                        from,
                        range.clone(),
                        tile.wrapping_add(row * len * self.loader.loaded),
                    );
                }
                let rows = Rows { src: tile, len, rows, stride: len.cast_signed(), index };
                // SAFETY: the tile holds these rows, `states` has room for `n`.
                unsafe { kernel(&rows, states.add(done * cell.state)) };
                done += rows.rows;
            }
            return;
        }
        for row in 0..n {
            let from = from.wrapping_add_signed(row.cast_signed() * across);
            let mut stack = Stack::new(cell, 1);
            let mut fold = |src: *const u8, len: usize, index: usize| {
                let rows = Rows { src, len, rows: 1, stride: 0, index: index as i64 };
                // SAFETY: the caller of `fold` lends a readable run, `push` room for a state.
                stack.push(|state| unsafe { kernel(&rows, state) });
            };
            if unit && self.reduced.inner_len() >= SHORT {
                let mut index = range.start;
                each_piece(self.reduced, range.clone(), &mut |at, len| {
                    fold(self.src.wrapping_add((from + at[0]) * size), len, index);
                    index += len;
                });
            } else {
                let mut index = range.start;
                while index < range.end {
                    let len = room.min(range.end - index);
                    self.pack(from, index..index + len, tile);
                    fold(tile, len, index);
                    index += len;
                }
            }
            // SAFETY: `states` has room for `n`.
            stack.finish(unsafe { states.add(row * cell.state) });
        }
    }

    /// Loads `range` of the elements of the result at input position `from`; `tile` has room.
    fn pack(&self, from: usize, range: Range<usize>, tile: *mut u8) {
        let stride = self.reduced.inner_strides()[0];
        let mut to = tile;
        each_piece(self.reduced, range, &mut |at, len| {
            // SAFETY: these elements are of the input's view (storage invariants 1 to 3), and the
            // caller's tile has room for all of the range.
            unsafe {
                let src = self.src.add((from + at[0]) * self.loader.size);
                self.loader.pack(len, src, stride, to);
                to = to.add(len * self.loader.loaded);
            }
        });
    }

    fn outer(&self, operation: &str) -> Result<()> {
        let (results, width) = (self.kept.len(), self.kept.inner_len());
        let most = if self.in_place() { OUTER_STATES / self.cell.state } else { PACKED_COLUMNS };
        let columns = most.min(width);
        let blocks = width.div_ceil(columns);
        let rows = (OUTER_PIECE / columns).next_multiple_of(self.cell.rows.min(256));
        let splits = self.count.div_ceil(rows);
        let mut partial = (splits > 1).then(|| self.partial(operation, splits)).transpose()?;
        let shared = Shared(partial.as_mut().map_or(std::ptr::null_mut(), Scratch::pointer));
        let strides = self.kept.inner_strides();
        let work = |item: usize| {
            let (place, split) = (item / splits, item % splits);
            let (run, block) = (place / blocks, place % blocks);
            let first = block * columns;
            let n = columns.min(width - first);
            let range = split * rows..self.count.min((split + 1) * rows);
            self.kept.for_each_run(run..run + 1, |at| {
                let from = at[0].wrapping_add_signed(first.cast_signed() * strides[0]);
                let stack = self.fold_columns(from, n, range.clone());
                if splits > 1 {
                    let place = split * results + run * width + first;
                    stack.finish(shared.state(place, self.cell.state));
                    return;
                }
                let to = at[1].wrapping_add_signed(first.cast_signed() * strides[1]);
                let mut states = stack.into_states();
                // SAFETY: all `n` states are there; the results are elements of the output's view,
                // and no other piece has them.
                unsafe { self.out.write(n, states.pointer(), self.count, to, strides[1]) };
            });
        };
        let items = self.kept.outer_len() * blocks * splits;
        // Small pieces are given out several at a time.
        let grain = (OUTER_PIECE / (columns * self.count.min(rows))).max(1);
        pool::for_ranges(items, grain, &|range| range.for_each(&work));
        if splits > 1 {
            self.merge_splits(shared, splits);
        }
        Ok(())
    }

    /// Whether the outer way can read its rows where they are.
    fn in_place(&self) -> bool {
        self.kept.inner_strides()[0] == 1 && !self.loader.widens
    }

    /// How many rows of `n` columns the outer way can take as one: several if all columns of rows
    /// that follow each other without a gap are wanted, and their order does not matter.
    fn together(&self, n: usize) -> usize {
        let gapless =
            self.reduced.axes() == 1 && self.reduced.inner_strides()[0] == n.cast_signed();
        let usable = gapless && self.in_place() && !self.cell.ordered;
        if usable && n <= WIDE / 2 && self.count >= 4 * (WIDE / n) { WIDE / n } else { 1 }
    }

    /// The states of `n` neighbouring results from input position `from` on, each over `range` of
    /// its elements.
    fn fold_columns(&self, from: usize, n: usize, mut range: Range<usize>) -> Stack {
        let (cell, size) = (self.cell, self.loader.size);
        let kernel = cell.outer[self.isa as usize];
        let across = self.kept.inner_strides()[0];
        let along = self.reduced.inner_strides()[0];
        let direct = self.in_place();
        let mut stack = Stack::new(cell, n);
        let together = self.together(n);
        if together > 1 && range.len() >= together {
            let rows = range.len() / together;
            stack.push(|states| self.fold_wide(from, n, together, range.start, rows, states));
            range.start += rows * together;
        }
        let mut tile = Vec::new();
        let most = if direct { cell.rows } else { PACKED_ROWS };
        if !direct {
            let lines = (most * n * self.loader.loaded).div_ceil(size_of::<Line>());
            tile.resize_with(lines, MaybeUninit::<Line>::uninit);
        }
        let mut index = range.start;
        each_piece(self.reduced, range, &mut |at, len| {
            let mut done = 0;
            while done < len {
                let rows = most.min(len - done);
                let start =
                    from.wrapping_add(at[0]).wrapping_add_signed(done.cast_signed() * along);
                let mut block = Columns {
                    src: self.src.wrapping_add(start * size),
                    columns: n,
                    rows,
                    stride: along,
                    index: (index + done) as i64,
                };
                if !direct {
                    let tile = tile.as_mut_ptr().cast::<u8>();
                    for row in 0..rows {
                        // SAFETY: these elements are of the input's view (storage invariants 1 to
                        // 3), and the tile has room for as many rows.
                        unsafe {
                            let skip = row.cast_signed() * along * size.cast_signed();
                            let to = tile.add(row * n * self.loader.loaded);
                            self.loader.pack(n, block.src.offset(skip), across, to);
                        }
                    }
                    block.src = tile;
                    block.stride = n.cast_signed();
                }
                // SAFETY: these elements are of the input's view or in the tile; `push` lends room
                // for `n` states.
                stack.push(|states| unsafe { kernel(&block, states) });
                done += rows;
            }
            index += len;
        });
        stack
    }

    /// Writes the states of `n` neighbouring results over `rows` times `together` of their elements
    /// from number `first` on, taking `together` rows as one.
    fn fold_wide(
        &self,
        from: usize,
        n: usize,
        together: usize,
        first: usize,
        rows: usize,
        states: *mut u8,
    ) {
        let cell = self.cell;
        let (columns, stride) = (n * together, (n * together).cast_signed());
        let start = from + self.reduced.offsets()[0] + first * n;
        let mut stack = Stack::new(cell, columns);
        for row in (0..rows).step_by(cell.rows) {
            let src = self.src.wrapping_add((start + row * columns) * self.loader.size);
            let rows = cell.rows.min(rows - row);
            let block = Columns { src, columns, rows, stride, index: 0 };
            // SAFETY: the rows follow each other, so that these are elements of the input's view
            // (storage invariants 1 to 3); `push` lends room for as many states.
            stack.push(|states| unsafe { cell.outer[self.isa as usize](&block, states) });
        }
        let mut all = stack.into_states();
        let all = all.pointer();
        let mut left = together;
        while left > 1 {
            let half = left / 2;
            // SAFETY: the last half of the groups of states does not overlap the first.
            unsafe { (cell.merge)(half * n, all, all.add((left - half) * n * cell.state)) };
            left -= half;
        }
        // SAFETY: both have room for `n` states and are different blocks.
        unsafe { std::ptr::copy_nonoverlapping(all, states, n * cell.state) };
    }

    /// Merges `splits` planes of states, one for each result, in pairs, and writes the results.
    fn merge_splits(&self, shared: Shared, splits: usize) {
        let (results, size) = (self.kept.len(), self.cell.state);
        // Reading a state costs about as much as reading an element.
        let grain = (PIECE / splits).clamp(1, PIECE).next_multiple_of(GROUP);
        pool::for_ranges(results, grain, &|range| {
            self.each_group(range, &mut |first, position, n, stride| {
                let plane = |split: usize| shared.state(split * results + first, size);
                let mut gap = 1;
                while gap < splits {
                    for split in (0..splits - gap).step_by(2 * gap) {
                        // SAFETY: the planes hold states for all results, and different planes do
                        // not overlap.
                        unsafe { (self.cell.merge)(n, plane(split), plane(split + gap)) };
                    }
                    gap *= 2;
                }
                // SAFETY: the first plane holds the merged states; the results are elements of the
                // output's view, and no other piece has them.
                unsafe { self.out.write(n, plane(0), self.count, position, stride) };
            });
        });
    }
}
