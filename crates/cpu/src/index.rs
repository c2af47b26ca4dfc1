//! Elements picked from places and put into places that arrays of indices name, and the places of
//! true elements.
//!
//! An index array picks *rows*: what is left of the source when its first axes are fixed, down to
//! single elements. May assume that sources and targets do not overlap (the contract), and nothing
//! of indices: each is checked where it is followed. Called by the backend.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_backend::{Gather, Indices, Nonzero, Scatter, Session};
use tilework_error::Result;
use tilework_fork::ForkOnce;
use tilework_layout::{Layout, LoopNest, resolve_index};

use crate::map::{PIECE, moves};
use crate::{pool, prefetch};

/// An address that pieces of work share.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: pieces write different elements and read memory that nobody writes.
unsafe impl Sync for Shared {}

impl Shared {
    /// The address of an element of type `T`.
    fn at<T>(&self, position: isize) -> *mut T {
        self.0.cast::<T>().wrapping_offset(position)
    }
}

/// An index outside of its axis: the number of its array, and itself.
type Outside = (usize, i64);

/// Picks elements.
pub(crate) fn gather(session: &Session<'_>, request: &Gather<'_>) -> Result<()> {
    let (source, indices) = (request.source.layout(), &request.indices);
    let rows = Rows::new(request.output.layout(), source, indices)?;
    let size = request.output.dtype().size();
    let plan = Plan {
        dense: Shared(request.output.pointer(session)),
        picked: Shared(request.source.pointer(session).cast_mut()),
        indices: pointers(session, indices),
        size,
    };
    let row = rows.inner.len().max(1) * size;
    let outside = ForkOnce::new();
    pool::for_ranges(rows.outer.len(), (PIECE / (row + 8)).max(1), &|range| {
        // SAFETY: positions of both sides are those of views, inside their blocks; the session holds
        // the blocks; ranges of the output are apart.
        if let Err(found) = unsafe { rows.each::<true>(&plan, range) } {
            outside.get_or_make(|| found);
        }
    });
    match outside.get() {
        // The output is new, and nobody will see what was written to it.
        Some(&(array, index)) => Err(indices.outside(session, array, index, source)),
        None => Ok(()),
    }
}

/// Puts elements; the last of several stays.
pub(crate) fn scatter(session: &Session<'_>, request: &Scatter<'_>) -> Result<()> {
    let (target, indices) = (request.target.layout(), &request.indices);
    let rows = Rows::new(request.source.layout(), target, indices)?;
    let plan = Plan {
        dense: Shared(request.source.pointer(session).cast_mut()),
        picked: Shared(request.target.pointer(session)),
        indices: pointers(session, indices),
        size: request.target.dtype().size(),
    };
    let outside = |(array, index): Outside| indices.outside(session, array, index, target);
    // Before the first write.
    // SAFETY: as in `gather`.
    unsafe { rows.check(&plan) }.map_err(outside)?;
    // In order and on one thread: two indices may name the same place.
    // SAFETY: as in `gather`.
    unsafe { rows.each::<false>(&plan, 0..rows.outer.len()) }.map_err(outside)
}

fn pointers(session: &Session<'_>, indices: &Indices<'_>) -> SmallVec<[Shared; 3]> {
    indices.arrays.iter().map(|view| Shared(view.pointer(session).cast_mut())).collect()
}

/// What the loops need to know of memory.
struct Plan {
    /// The side that has the shape of the indices.
    dense: Shared,
    /// The side that is indexed.
    picked: Shared,
    indices: SmallVec<[Shared; 3]>,
    size: usize,
}

/// The loops of a gather or scatter.
struct Rows {
    /// Over the indices, in order: the dense side's first axes, then every array of indices.
    outer: LoopNest,
    /// Over a row: the dense side, then the picked one, from where each begins.
    inner: LoopNest,
    /// Where rows begin in `inner`, to be replaced by where they really begin.
    origin: (usize, usize),
    /// Lengths and steps of the indexed axes.
    axes: SmallVec<[(usize, isize); 3]>,
}

impl Rows {
    fn new(dense: &Layout, picked: &Layout, indices: &Indices<'_>) -> Result<Rows> {
        let indices = indices.arrays;
        let lead = indices.first().map_or(0, |view| view.layout().ndim());
        let part = |layout: &Layout, axes: Range<usize>| {
            Layout::new(&layout.shape()[axes.clone()], &layout.strides()[axes], layout.offset())
        };
        // Nothing is picked from an empty array, and its strides may hold any number.
        let empty = dense.is_empty();
        let (outer_dense, inner_dense, inner_picked) = if empty {
            let nothing = Layout::contiguous(&[0])?;
            (nothing.clone(), nothing.clone(), nothing)
        } else {
            (
                part(dense, 0..lead)?,
                part(dense, lead..dense.ndim())?,
                part(picked, indices.len()..picked.ndim())?,
            )
        };
        let mut layouts: SmallVec<[&Layout; 4]> = SmallVec::new();
        layouts.push(&outer_dense);
        if !empty {
            layouts.extend(indices.iter().map(|view| view.layout()));
        }
        Ok(Rows {
            outer: LoopNest::in_order(&layouts),
            inner: LoopNest::new(&[&inner_dense, &inner_picked]),
            origin: (dense.offset(), picked.offset()),
            axes: picked
                .shape()
                .iter()
                .copied()
                .zip(picked.strides().iter().copied())
                .take(indices.len())
                .collect(),
        })
    }

    /// That every index is inside of its axis.
    ///
    /// # Safety
    /// Positions of the arrays of indices are elements of their blocks, which may be read.
    unsafe fn check(&self, plan: &Plan) -> Result<(), Outside> {
        let strides = self.outer.inner_strides();
        let mut outside = Ok(());
        self.outer.for_each_piece(0..self.outer.len(), |at, len| {
            for (k, indices) in plan.indices.iter().enumerate() {
                let first = indices.0.cast::<i64>().cast_const().wrapping_add(at[k + 1]);
                for i in 0..len.cast_signed() {
                    // SAFETY: an element of the array of indices, which the caller vouches for.
                    let index = unsafe { first.offset(i * strides[k + 1]).read() };
                    if resolve_index(index, self.axes[k].0).is_none() && outside.is_ok() {
                        outside = Err((k, index));
                    }
                }
            }
        });
        outside
    }

    /// Moves the rows of these indices, from the picked side to the dense one if `GATHER`, up to an
    /// index that is outside of its axis.
    ///
    /// # Safety
    /// Positions of both sides and of the arrays of indices are elements of their blocks, which may
    /// be read or written from this thread.
    unsafe fn each<const GATHER: bool>(
        &self,
        plan: &Plan,
        range: Range<usize>,
    ) -> Result<(), Outside> {
        let mut result = Ok(());
        let size = plan.size;
        let strides = self.outer.inner_strides();
        let single = self.inner.len() == 1;
        let whole = self.inner.outer_len() == 1 && self.inner.inner_strides() == [1, 1];
        self.outer.for_each_piece(range, |at, len| {
            if result.is_err() {
                return;
            }
            if single && plan.indices.len() == 1 {
                let indices = plan.indices[0].0.cast::<i64>().cast_const();
                let indices = (indices.wrapping_add(at[1]), strides[1]);
                let dense = plan.dense.0.wrapping_add(at[0] * size);
                let picked = plan.picked.0.wrapping_add(self.origin.1 * size);
                // SAFETY: a run of the indices and of the dense side, and the picked side's own
                // positions, all of which the caller vouches for.
                let moved = moves::by_width!(size, T => unsafe {
                    let (dense, picked) = ((dense.cast(), strides[0]), picked.cast());
                    elements::<T, GATHER>(len, indices, dense, picked, self.axes[0])
                });
                result = moved.map_err(|index| (0, index));
                return;
            }
            // Where the row of index number `i` begins, on both sides.
            let begin = |i: isize| -> Result<(isize, isize), Outside> {
                let dense = at[0].cast_signed() + i * strides[0];
                let mut picked = self.origin.1.cast_signed();
                for (axis, indices) in plan.indices.iter().enumerate() {
                    let position = at[axis + 1].cast_signed() + i * strides[axis + 1];
                    // SAFETY: a position of the view of indices, which the caller vouches for.
                    let index = unsafe { indices.0.cast::<i64>().offset(position).read() };
                    let (size, step) = self.axes[axis];
                    let place = resolve_index(index, size).ok_or((axis, index))?;
                    picked += place.cast_signed() * step;
                }
                Ok((dense, picked))
            };
            for i in 0..len.cast_signed() {
                let (dense, picked) = match begin(i) {
                    Ok(places) => places,
                    Err(outside) => {
                        result = Err(outside);
                        return;
                    }
                };
                if single {
                    // SAFETY: one element on both sides, which the caller vouches for.
                    unsafe {
                        let dense = plan.dense.0.offset(dense * size.cast_signed());
                        let picked = plan.picked.0.offset(picked * size.cast_signed());
                        let (to, from) = if GATHER { (dense, picked) } else { (picked, dense) };
                        moves::by_width!(size, T => {
                            to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned());
                        });
                    }
                    continue;
                }
                let shift =
                    (dense - self.origin.0.cast_signed(), picked - self.origin.1.cast_signed());
                if whole {
                    let starts = self.inner.offsets();
                    // SAFETY: a whole row on both sides, which the caller vouches for.
                    unsafe {
                        let dense = (starts[0].cast_signed() + shift.0) * size.cast_signed();
                        let picked = (starts[1].cast_signed() + shift.1) * size.cast_signed();
                        let dense = plan.dense.0.offset(dense);
                        let picked = plan.picked.0.offset(picked);
                        let (to, from) = if GATHER { (dense, picked) } else { (picked, dense) };
                        to.copy_from_nonoverlapping(from, self.inner.inner_len() * size);
                    }
                    continue;
                }
                let steps = self.inner.inner_strides();
                self.inner.for_each_run(0..self.inner.outer_len(), |at| {
                    // SAFETY: a run of the row, which the caller vouches for.
                    unsafe {
                        let dense = (at[0].cast_signed() + shift.0) * size.cast_signed();
                        let picked = (at[1].cast_signed() + shift.1) * size.cast_signed();
                        let dense = (plan.dense.0.offset(dense), steps[0]);
                        let picked = (plan.picked.0.offset(picked), steps[1]);
                        let (to, from) = if GATHER { (dense, picked) } else { (picked, dense) };
                        moves::line(
                            size,
                            self.inner.inner_len(),
                            to,
                            (from.0.cast_const(), from.1),
                        );
                    }
                });
            }
        });
        result
    }
}

/// Moves single elements between a run and the places that a run of indices names, up to an index
/// that is outside of an axis of `size` elements.
///
/// # Safety
/// `n` indices with their step may be read; the elements that `n` steps reach from `dense`, and
/// `size` ones from `picked`, may be read or written.
unsafe fn elements<T: Copy, const GATHER: bool>(
    n: usize,
    indices: (*const i64, isize),
    dense: (*mut T, isize),
    picked: *mut T,
    (size, step): (usize, isize),
) -> Result<(), i64> {
    // Unlike reads, writes to places far apart do not overlap unless their lines are asked for.
    let ahead = if GATHER { n } else { n.min(32) };
    for i in 0..n.cast_signed() {
        // SAFETY: the caller's promise.
        unsafe {
            if !GATHER && i < (n - ahead).cast_signed() {
                let index = indices.0.offset((i + ahead.cast_signed()) * indices.1).read();
                let place = resolve_index(index, size).unwrap_or(0).cast_signed();
                prefetch::into_l1(picked.wrapping_offset(place * step));
            }
            let index = indices.0.offset(i * indices.1).read();
            let place = resolve_index(index, size).ok_or(index)?;
            let dense = dense.0.offset(i * dense.1);
            let picked = picked.offset(place.cast_signed() * step);
            let (to, from) = if GATHER { (dense, picked) } else { (picked, dense) };
            to.write_unaligned(from.read_unaligned());
        }
    }
    Ok(())
}

/// Lists the indices of true elements.
pub(crate) fn nonzero(session: &Session<'_>, request: &Nonzero<'_>) -> Result<()> {
    let input = request.input.layout();
    if input.is_empty() || request.output.layout().is_empty() {
        return Ok(());
    }
    let from = request.input.pointer(session);
    let to = request.output.pointer(session).cast::<i64>();
    let (rows, columns) =
        (request.output.layout().strides()[0], request.output.layout().strides()[1]);
    let count = request.output.layout().shape()[0];
    if let (&[len], &[step]) = (input.shape(), input.strides()) {
        let from = from.wrapping_offset(input.offset().cast_signed());
        let to = to.wrapping_offset(request.output.layout().offset().cast_signed());
        // SAFETY: positions of both views, inside their blocks (the invariant of views), which the
        // session holds; the output has `count` rows.
        unsafe { nonzero_of_line((from, step, len), (to, rows, count)) };
        return Ok(());
    }
    let mut found = 0;
    let mut write = |outer: &[usize], last: Option<usize>| {
        // The output has one row for each true element (the contract); whoever changes the input
        // behind our back must not make us write beyond it.
        if found == count {
            return;
        }
        let row = request.output.layout().offset().cast_signed() + rows * found.cast_signed();
        for (axis, index) in outer.iter().copied().chain(last).enumerate() {
            // SAFETY: row `found < count` of the output, inside its block (the invariant of
            // views), which the session holds for writing.
            unsafe { to.offset(row + columns * axis.cast_signed()).write(index as i64) };
        }
        found += 1;
    };
    let Some(last) = input.ndim().checked_sub(1) else {
        // A single element has no index to write, but its row is there.
        return Ok(());
    };
    let (len, step) = (input.shape()[last], input.strides()[last]);
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, last);
    loop {
        let start: isize = index
            .iter()
            .zip(input.strides())
            .fold(input.offset().cast_signed(), |at, (&i, &s)| at + i.cast_signed() * s);
        for i in 0..len {
            // SAFETY: a position of the input's layout, inside its block (the invariant of views),
            // which the session holds.
            if unsafe { from.offset(start + i.cast_signed() * step).read() } != 0 {
                write(&index, Some(i));
            }
        }
        let Some(axis) = (0..last).rev().find(|&axis| index[axis] + 1 < input.shape()[axis]) else {
            return Ok(());
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

/// Bools of one piece of work.
const NONZERO_PIECE: usize = 1 << 14;

/// Lists the places of true elements, the first `count` of them. Each is written whether or not the
/// element is true, and overwritten by the next if it is not: no branch could foresee it.
///
/// # Safety
/// `len` bools at a step may be read at `from`, and `count` places at a step written at `to`, from any
/// thread.
unsafe fn nonzero_of_line(
    (from, step, len): (*const u8, isize, usize),
    (to, to_step, count): (*mut i64, isize, usize),
) {
    let (from, to) = (Shared(from.cast_mut()), Shared(to.cast()));
    let pieces = len.div_ceil(NONZERO_PIECE);
    let piece = |number: usize| number * NONZERO_PIECE..len.min((number + 1) * NONZERO_PIECE);
    let is_true = |i: usize| {
        // SAFETY: an element of the line.
        unsafe { from.at::<u8>(i.cast_signed() * step).read() != 0 }
    };
    let mut counts = vec![0usize; pieces];
    let counted = Shared(counts.as_mut_ptr().cast());
    pool::run(pieces, &|number| {
        let found = piece(number).map(|i| usize::from(is_true(i))).sum();
        // SAFETY: every piece has a count of its own.
        unsafe { counted.at::<usize>(number.cast_signed()).write(found) };
    });
    let mut ends = counts;
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        // Whoever changes the input behind our back must not make us write beyond the output.
        *end = sum.min(count);
    }
    pool::run(pieces, &|number| {
        let mut place = if number == 0 { 0 } else { ends[number - 1] };
        for i in piece(number) {
            if place == ends[number] {
                return;
            }
            // SAFETY: the places up to the piece's end are its own.
            unsafe { to.at::<i64>(place.cast_signed() * to_step).write(i as i64) };
            place += usize::from(is_true(i));
        }
    });
}
