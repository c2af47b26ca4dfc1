//! Copies and fills: maps that move elements and compute nothing.
//!
//! Contiguous runs go by `memcpy`, everything else by blocks of the two innermost axes, with the
//! axis along which the source is contiguous as one of them, so that a transpose is cut into tiles,
//! which are collected in a buffer first if they are many. Many short rows are left to `rows`.
//! Called by `map::run`.

use std::mem::MaybeUninit;

use tilework_backend::{Session, Target, ViewRef};
use tilework_layout::{Layout, LoopNest};
use tilework_ops::Scalar;

use super::moves::Steps;
use super::walk::Walk;
use super::{PIECE, moves, rows, stream};
use crate::pool;

/// An address that pieces of work share.
#[derive(Clone, Copy)]
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: pieces of one copy or fill write different elements and read memory that nobody writes.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn at(&self, position: isize, size: usize) -> *mut u8 {
        self.0.wrapping_offset(position * size.cast_signed())
    }
}

/// Bytes of copies and fills that are done before a nest of loops is made.
const FEW: usize = 4 << 10;

/// How many elements a layout has, if they follow each other and are few.
#[inline]
fn few(layout: &Layout, size: usize) -> Option<usize> {
    let n = layout.len();
    (n <= FEW / size && layout.is_contiguous()).then_some(n)
}

/// Copies `source` to `target`, of one shape and one element size.
pub(super) fn copy(session: &Session<'_>, source: &ViewRef<'_>, target: &Target<'_>) {
    let size = target.dtype().size();
    let to = Shared(target.pointer(session));
    let from = Shared(source.pointer(session).cast_mut());
    if let Some(n) = few(target.layout(), size)
        && source.layout().is_contiguous()
    {
        let to = to.at(target.layout().offset().cast_signed(), size);
        let from = from.at(source.layout().offset().cast_signed(), size);
        // SAFETY: all elements of both views, inside their blocks (the invariant of views), which the
        // session holds; by contract the two are one or do not overlap.
        unsafe { to.copy_from(from, n * size) };
        return;
    }
    let nest = LoopNest::new(&[target.layout(), source.layout()]);
    if nest.is_empty() {
        return;
    }
    let starts = nest.offsets();
    if to.at(starts[0].cast_signed(), size) == from.at(starts[1].cast_signed(), size) {
        // By contract a source that starts where the target does is the target.
        return;
    }
    let strides = nest.inner_strides();
    if nest.outer_len() == 1 {
        let read = (strides[1].unsigned_abs() * size).min(stream::LINE);
        let streams = strides[0] == 1 && read > 0 && stream::pays(nest.len() * (size + read));
        let pieces = if streams { stream::PIECES } else { 1 };
        let grain = (pieces * PIECE / size).next_multiple_of(64);
        pool::for_ranges(nest.len(), grain, &|elements| {
            let first = elements.start.cast_signed();
            let at = |operand: usize| starts[operand].cast_signed() + first * strides[operand];
            let to = to.at(at(0), size);
            let from = from.at(at(1), size).cast_const();
            // SAFETY: these are positions of the nest, hence of the layouts, inside their blocks
            // (the invariant of views), which the session holds; target and source do not overlap.
            unsafe {
                match strides[1] {
                    1 if streams => stream::copy(to, from, elements.len() * size),
                    step if streams => spaced(size, elements.len(), to, (from, step)),
                    step => moves::line(size, elements.len(), (to, strides[0]), (from, step)),
                }
            }
            if streams {
                stream::finish();
            }
        });
        return;
    }
    let across = across(&nest);
    // SAFETY: as above.
    if across.is_none() && unsafe { rows::copy(&nest, size, to, from) } {
        return;
    }
    let walk = Walk::new(&nest, across);
    let (to_steps, from_steps) = (walk.steps(0), walk.steps(1));
    let (row_grain, column_grain) = grains(walk.rows(), walk.columns(), size, across.is_some());
    let collects = across.is_some() && to_steps.1 == 1;
    let streams = collects && stream::pays(2 * nest.len() * size);
    let strips = walk.columns().div_ceil(column_grain);
    let pieces = walk.rows().div_ceil(row_grain) * strips;
    pool::run(pieces, &|piece| {
        let (row, strip) = (piece / strips * row_grain, piece % strips);
        let rows = row..walk.rows().min(row + row_grain);
        let first = strip * column_grain;
        let columns = column_grain.min(walk.columns() - first);
        let mut sources = smallvec::SmallVec::<[(isize, usize); 4]>::new();
        walk.bursts(1, rows.clone(), |position, count| sources.push((position, count)));
        let mut sources = sources.into_iter();
        walk.bursts(0, rows, |position, count| {
            // Both operands have the same bursts.
            let Some((source, _)) = sources.next() else { return };
            let first = first.cast_signed();
            let to = to.at(position + first * to_steps.1, size);
            let from = from.at(source + first * from_steps.1, size).cast_const();
            let part = (count, columns);
            // SAFETY: as above.
            unsafe {
                let large = if is_even(size, to, to_steps.0) { LARGE } else { UNEVEN };
                if streams || collects && part.0 * part.1 * size >= large {
                    collect(size, part, (to, to_steps.0), (from, from_steps), streams);
                } else {
                    moves::block(size, part, (to, to_steps), (from, from_steps));
                }
            }
        });
        if streams {
            stream::finish();
        }
    });
}

/// Elements with gaps between them, past the caches.
///
/// # Safety
/// As [`moves::line`].
unsafe fn spaced(size: usize, n: usize, to: *mut u8, (from, step): (*const u8, isize)) {
    let mut together = MaybeUninit::<[moves::Line; stream::BURST / stream::LINE]>::uninit();
    let together = together.as_mut_ptr().cast::<u8>();
    let apart = step * size.cast_signed();
    let burst = stream::burst(size, step.unsigned_abs(), size);
    for first in (0..n).step_by(burst) {
        let count = burst.min(n - first);
        let from = from.wrapping_offset(first.cast_signed() * apart);
        stream::fetch(from, count, apart);
        // SAFETY: the elements are among those for which the caller vouches; a burst has room.
        unsafe {
            moves::line(size, count, (together, 1), (from, step));
            stream::copy(to.add(first * size), together, count * size);
        }
    }
}

/// Bytes of a row, and of the whole, that a transpose collects before it writes: memory is quick
/// only where many lines that follow each other are written (or read) at a time, and what is
/// collected must stay in the second-level cache.
pub(super) const COLLECTED_ROW: usize = 1024;
const COLLECTED: usize = 256 << 10;

/// Blocks from this size on are collected: about what does not stay in the caches anyway.
const LARGE: usize = 1 << 20;

/// The same where rows of the target begin anywhere in a line: two tiles write to each line, and what does not stay
/// in the first-level cache from one to the other costs three times as much.
const UNEVEN: usize = 32 << 10;

/// Whether all rows of a target begin with a line.
fn is_even(size: usize, to: *const u8, step: isize) -> bool {
    to.align_offset(64) == 0 && (step.unsigned_abs() * size).is_multiple_of(64)
}

/// A block whose source runs across its target, which has contiguous rows: turned around part by
/// part in a buffer, and written row by row.
///
/// # Safety
/// As [`moves::block`].
unsafe fn collect(
    size: usize,
    (rows, columns): (usize, usize),
    (to, to_step): (*mut u8, isize),
    (from, from_steps): (*const u8, Steps),
    streams: bool,
) {
    // Only whole lines go past the caches well.
    let streams = streams && is_even(size, to, to_step);
    let wide = (COLLECTED_ROW / size).min(columns);
    let high = (COLLECTED / (wide * size)).min(rows);
    // Whole lines, and one more than they need, so that the lines of a column do not all fall into the
    // same set of a cache; but where rows of whole lines follow each other without a gap, all are
    // written as one.
    let line = 64 / size;
    let gapless =
        wide == columns && to_step == columns.cast_signed() && columns.is_multiple_of(line);
    let pitch = if gapless { wide } else { wide.next_multiple_of(line) + line };
    let bytes = |elements: isize| elements * size.cast_signed();
    let collecting = moves::with_scratch("copy", high * pitch * size, |collected| {
        for row in (0..rows).step_by(high) {
            let high = high.min(rows - row);
            for column in (0..columns).step_by(wide) {
                let wide = wide.min(columns - column);
                let (row, column) = (row.cast_signed(), column.cast_signed());
                // SAFETY: the part lies inside of the block, for which the caller vouches; the
                // collection has `high` rows of `pitch` elements.
                unsafe {
                    let start = row * from_steps.0 + column * from_steps.1;
                    let into = (collected, (pitch.cast_signed(), 1));
                    moves::block(size, (high, wide), into, (from.offset(bytes(start)), from_steps));
                    let (lines, long) = if gapless { (1, high * wide) } else { (high, wide) };
                    for r in 0..lines {
                        let start = (row + r.cast_signed()) * to_step + column;
                        let (to, line) = (to.offset(bytes(start)), collected.add(r * pitch * size));
                        if streams {
                            stream::copy(to, line, long * size);
                        } else {
                            to.copy_from_nonoverlapping(line, long * size);
                        }
                    }
                }
            }
        }
    });
    if collecting.is_err() {
        // SAFETY: the caller's promise. Without a buffer it needs no memory.
        unsafe { moves::block(size, (rows, columns), (to, (to_step, 1)), (from, from_steps)) }
    }
}

/// The axis that makes a block with the innermost one: where the source runs across the target,
/// the one along which it takes its shortest steps.
fn across(nest: &LoopNest) -> Option<usize> {
    let step = |axis: usize| nest.strides(axis)[1].unsigned_abs();
    let inner = nest.axes() - 1;
    let shorter = |axis: &usize| step(*axis) != 0 && step(*axis) < step(inner);
    (0..inner).filter(shorter).min_by_key(|&axis| step(axis))
}

/// How many rows and columns make a piece: all columns of some rows if there are enough rows, of a
/// transpose at least as many as `moves` collects.
fn grains(rows: usize, columns: usize, size: usize, turned: bool) -> (usize, usize) {
    let elements = PIECE / size;
    let least = if turned { 256 } else { 1 };
    if rows <= least.max(16) {
        return (rows, (elements / rows).max(64));
    }
    ((elements / columns).max(least), columns)
}

/// Writes one value to all of `target`.
pub(super) fn fill(session: &Session<'_>, value: &Scalar, target: &Target<'_>) {
    let size = target.dtype().size();
    let to = Shared(target.pointer(session));
    if let Some(n) = few(target.layout(), size) {
        let to = to.at(target.layout().offset().cast_signed(), size);
        // SAFETY: all elements of the view, inside its block (the invariant of views), which the session
        // holds for writing.
        unsafe { moves::fill(size, n, (to, 1), value.bytes().as_ptr()) };
        return;
    }
    let nest = LoopNest::new(&[target.layout()]);
    if nest.is_empty() {
        return;
    }
    let step = nest.inner_strides()[0];
    let grain = (PIECE / size).next_multiple_of(64);
    pool::for_ranges(nest.len(), grain, &|elements| {
        nest.for_each_piece(elements, |at, len| {
            let to = to.at(at[0].cast_signed(), size);
            // SAFETY: positions of the nest are those of the layout, inside the block (the
            // invariant of views), which the session holds for writing.
            unsafe { moves::fill(size, len, (to, step), value.bytes().as_ptr()) };
        });
    });
}
