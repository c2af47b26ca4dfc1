//! Elements picked from places and put into places that arrays of indices name, and the places of
//! true elements.
//!
//! An index array picks *rows*: what is left of the source when its first axes are fixed, down to
//! single elements. May assume that every index is inside its axis and that sources and targets do
//! not overlap (the contract). Called by the backend.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_backend::{Gather, Nonzero, Scatter, Session, ViewRef};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};

use crate::map::{PIECE, moves};
use crate::pool;

/// An address that pieces of work share.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: pieces write different elements and read memory that nobody writes.
unsafe impl Sync for Shared {}

/// Picks elements.
pub(crate) fn gather(session: &Session<'_>, request: &Gather<'_>) -> Result<()> {
    let rows = Rows::new(request.output.layout(), request.source.layout(), request.indices)?;
    let size = request.output.dtype().size();
    let plan = Plan {
        dense: Shared(request.output.pointer(session)),
        picked: Shared(request.source.pointer(session).cast_mut()),
        indices: pointers(session, request.indices),
        size,
    };
    let row = rows.inner.len().max(1) * size;
    pool::for_ranges(rows.outer.len(), (PIECE / (row + 8)).max(1), &|range| {
        // SAFETY: positions of both sides are those of views, inside their blocks, since indices
        // are inside their axes (the contract); the session holds the blocks; ranges of the output
        // are apart.
        unsafe { rows.each::<true>(&plan, range) }
    });
    Ok(())
}

/// Puts elements; the last of several stays.
pub(crate) fn scatter(session: &Session<'_>, request: &Scatter<'_>) -> Result<()> {
    let rows = Rows::new(request.source.layout(), request.target.layout(), request.indices)?;
    let plan = Plan {
        dense: Shared(request.source.pointer(session).cast_mut()),
        picked: Shared(request.target.pointer(session)),
        indices: pointers(session, request.indices),
        size: request.target.dtype().size(),
    };
    // In order and on one thread: two indices may name the same place.
    // SAFETY: as in `gather`.
    unsafe { rows.each::<false>(&plan, 0..rows.outer.len()) };
    Ok(())
}

fn pointers(session: &Session<'_>, indices: &[ViewRef<'_>]) -> SmallVec<[Shared; 3]> {
    indices.iter().map(|view| Shared(view.pointer(session).cast_mut())).collect()
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
    /// Steps of the indexed axes.
    steps: SmallVec<[isize; 3]>,
}

impl Rows {
    fn new(dense: &Layout, picked: &Layout, indices: &[ViewRef<'_>]) -> Result<Rows> {
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
            steps: picked.strides()[..indices.len()].into(),
        })
    }

    /// Moves the rows of these indices, from the picked side to the dense one if `GATHER`.
    ///
    /// # Safety
    /// Positions of both sides are elements of their blocks, which may be read or written from
    /// this thread; every index is inside its axis.
    unsafe fn each<const GATHER: bool>(&self, plan: &Plan, range: Range<usize>) {
        let size = plan.size;
        let strides = self.outer.inner_strides();
        let single = self.inner.len() == 1;
        self.outer.for_each_piece(range, |at, len| {
            if single && plan.indices.len() == 1 {
                let indices = plan.indices[0].0.cast::<i64>().cast_const();
                let indices = (indices.wrapping_add(at[1]), strides[1]);
                let dense = plan.dense.0.wrapping_add(at[0] * size);
                let picked = plan.picked.0.wrapping_add(self.origin.1 * size);
                let steps = (strides[0], self.steps[0]);
                // SAFETY: a run of the indices and of the dense side, and the picked side's own
                // positions, all of which the caller vouches for.
                return moves::by_width!(size, T => unsafe {
                    elements::<T, GATHER>(len, indices, (dense.cast(), picked.cast()), steps)
                });
            }
            // Where the row of index number `i` begins, on both sides.
            let begin = |i: isize| {
                let dense = at[0].cast_signed() + i * strides[0];
                let mut picked = self.origin.1.cast_signed();
                for (axis, indices) in plan.indices.iter().enumerate() {
                    let position = at[axis + 1].cast_signed() + i * strides[axis + 1];
                    // SAFETY: a position of the view of indices, which the caller vouches for.
                    let index = unsafe { indices.0.cast::<i64>().offset(position).read() };
                    picked += index as isize * self.steps[axis];
                }
                (dense, picked)
            };
            for i in 0..len.cast_signed() {
                let (dense, picked) = begin(i);
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
    }
}

/// Moves single elements between a run and the places that a run of indices names.
///
/// # Safety
/// `n` indices with their step may be read; the elements that the steps reach from `dense`, and the
/// indices from `picked`, may be read or written.
unsafe fn elements<T: Copy, const GATHER: bool>(
    n: usize,
    indices: (*const i64, isize),
    (dense, picked): (*mut T, *mut T),
    steps: (isize, isize),
) {
    for i in 0..n.cast_signed() {
        // SAFETY: the caller's promise.
        unsafe {
            let index = indices.0.offset(i * indices.1).read() as isize;
            let (dense, picked) = (dense.offset(i * steps.0), picked.offset(index * steps.1));
            let (to, from) = if GATHER { (dense, picked) } else { (picked, dense) };
            to.write_unaligned(from.read_unaligned());
        }
    }
}

/// Lists the indices of true elements.
pub(crate) fn nonzero(session: &Session<'_>, request: &Nonzero<'_>) -> Result<()> {
    let input = request.input.layout();
    if input.is_empty() || request.output.layout().is_empty() {
        return Ok(());
    }
    let from = request.input.pointer(session);
    let to = request.output.pointer(session).cast::<i64>();
    let (rows, columns) = match request.output.layout().strides() {
        &[rows, columns] => (rows, columns),
        _ => (1, 1),
    };
    let count = request.output.layout().shape()[0];
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
