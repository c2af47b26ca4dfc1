//! Elements picked from places and put into places that arrays of indices name.
//!
//! An index array picks *rows*: what is left of the source when its first axes are fixed, down to
//! single elements. May assume that sources and targets do not overlap (the contract), and nothing
//! of indices: each is checked where it is followed. Called by the backend.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_backend::{Gather, Indices, Scatter, Session};
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

/// The most indices for which no loops are made.
const FEW: usize = 256;

/// An index outside of its axis: the number of its array, and itself.
type Outside = (usize, i64);

/// Picks elements.
pub(crate) fn gather(session: &Session<'_>, request: &Gather<'_>) -> Result<()> {
    let (source, indices) = (request.source.layout(), &request.indices);
    if let Some(few) = Few::of(request.output.layout(), source, indices) {
        let (dense, picked) = (request.output.pointer(session), request.source.pointer(session));
        let index = indices.arrays[0].pointer(session);
        // SAFETY: elements of views, inside their blocks, which the session holds.
        let moved = unsafe {
            few.each::<true>(request.output.dtype().size(), index, dense, picked.cast_mut())
        };
        return moved.map_err(|index| indices.outside(session, 0, index, source));
    }
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
    if let Some(few) = Few::of(request.source.layout(), target, indices) {
        let (dense, picked) = (request.source.pointer(session), request.target.pointer(session));
        let index = indices.arrays[0].pointer(session);
        // SAFETY: as in `gather`. The first write comes after the last check.
        let moved = unsafe {
            few.check(index).and_then(|()| {
                few.each::<false>(request.target.dtype().size(), index, dense.cast_mut(), picked)
            })
        };
        return moved.map_err(|index| indices.outside(session, 0, index, target));
    }
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

/// Indices so few that loops over axes would take longer to make than to run, for single elements of one axis.
struct Few {
    n: usize,
    /// Where they begin in their blocks, and their steps: the indices, the dense side, the picked one.
    index: (usize, isize),
    dense: (usize, isize),
    picked: (usize, isize),
    /// Length of the indexed axis.
    length: usize,
}

impl Few {
    /// None if it is anything else.
    fn of(dense: &Layout, picked: &Layout, indices: &Indices<'_>) -> Option<Few> {
        let line = |layout: &Layout| match (layout.shape(), layout.strides()) {
            (&[n], &[step]) => Some((n, (layout.offset(), step))),
            _ => None,
        };
        let [index] = indices.arrays else { return None };
        let ((n, index), (_, dense)) = (line(index.layout())?, line(dense)?);
        let (length, picked) = line(picked)?;
        (n <= FEW).then_some(Few { n, index, dense, picked, length })
    }

    /// That every index is inside of the axis, or the first that is not.
    ///
    /// # Safety
    /// As [`Few::each`], of the indices.
    unsafe fn check(&self, index: *const u8) -> Result<(), i64> {
        let first = index.cast::<i64>().wrapping_add(self.index.0);
        for i in 0..self.n.cast_signed() {
            // SAFETY: the caller's promise.
            let index = unsafe { first.offset(i * self.index.1).read() };
            resolve_index(index, self.length).ok_or(index)?;
        }
        Ok(())
    }

    /// As [`elements`], from where the blocks begin.
    ///
    /// # Safety
    /// All elements of the three views may be read, or written.
    unsafe fn each<const GATHER: bool>(
        &self,
        size: usize,
        index: *const u8,
        dense: *mut u8,
        picked: *mut u8,
    ) -> Result<(), i64> {
        let indices = (index.cast::<i64>().wrapping_add(self.index.0), self.index.1);
        moves::by_width!(size, T => {
            let dense = (dense.cast::<T>().wrapping_add(self.dense.0), self.dense.1);
            let picked = picked.cast::<T>().wrapping_add(self.picked.0);
            // SAFETY: the caller's promise.
            unsafe {
                elements::<T, GATHER>(self.n, indices, dense, picked, (self.length, self.picked.1))
            }
        })
    }
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
    let side_by_side = GATHER && [indices.1, dense.1, step] == [1; 3];
    let (mut next, mut pause) = (0, RUN);
    while next < n {
        // Masks and sorted indices have many neighbours side by side. Where there are none, they are
        // looked for less and less often.
        // SAFETY: the caller's promise; neighbours are inside of the axis.
        unsafe {
            while side_by_side
                && next + RUN <= n
                && let Some(first) = first_of_neighbours(indices.0.add(next), size)
            {
                let some = picked.add(first).cast::<[T; RUN]>().read_unaligned();
                dense.0.add(next).cast::<[T; RUN]>().write_unaligned(some);
                (next, pause) = (next + RUN, RUN);
            }
        }
        let end = if side_by_side { n.min(next + pause) } else { n };
        pause = LONGEST_PAUSE.min(2 * pause);
        for i in next.cast_signed()..end.cast_signed() {
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
        next = end;
    }
    Ok(())
}

/// Elements that are moved at once if they lie side by side, and the most that are moved one by one
/// before such are looked for again.
const RUN: usize = 8;
const LONGEST_PAUSE: usize = 256;

/// The place of the first if indices are those of [`RUN`] neighbours in an axis of `size` elements.
///
/// # Safety
/// So many may be read.
#[inline(always)]
unsafe fn first_of_neighbours(indices: *const i64, size: usize) -> Option<usize> {
    // SAFETY: the caller's promise.
    let indices = unsafe { indices.cast::<[i64; RUN]>().read() };
    let first = resolve_index(indices[0], size)?;
    // The last one tells most of those that are not.
    let are = indices[RUN - 1] == indices[0].wrapping_add(RUN as i64 - 1)
        && first + RUN <= size
        && (0..).zip(indices).fold(true, |all, (i, index)| all & (index == indices[0] + i));
    are.then_some(first)
}
