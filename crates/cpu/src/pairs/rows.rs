//! States of many rows side by side in two arrays, and where finished rows go.
//!
//! A piece writes the states of its i here, ranges of j are merged row by row, and whole blocks are
//! finished in place and written at once: nothing is allocated for a row. What the numbers mean is
//! said by `tilework_ops::pair_fold`. Made by `pairs::piece` and `pairs::nearest`, written by
//! `pairs::Job`.

use tilework_backend::{Accumulator, PairReduce, Session, Target, try_filled};
use tilework_error::Result;
use tilework_layout::Layout;
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Element, PairFoldId, PairShape};

use super::position;
use crate::map::{cast, moves};

/// The states of some rows after equally many pairs.
pub(super) struct Rows<A> {
    fold: PairFoldId,
    shape: PairShape,
    count: u64,
    rows: usize,
    values: Vec<A>,
    /// As many as there are values, for extremes; else none.
    indices: Vec<i64>,
}

impl<A: Accumulator> Rows<A> {
    /// States after nothing, which are to be overwritten by those after `count` pairs.
    pub(super) fn new(request: &PairReduce<'_>, rows: usize, count: u64) -> Result<Rows<A>> {
        Rows::of(request.fold, request.shape(), rows, count)
    }

    /// The same for states of another shape.
    pub(super) fn of(
        fold: PairFoldId,
        shape: PairShape,
        rows: usize,
        count: u64,
    ) -> Result<Rows<A>> {
        let row = fold.row();
        let (values, indices) = (row.monoid.values(shape), row.monoid.indices(shape));
        Ok(Rows {
            fold,
            shape,
            count,
            rows,
            values: try_filled(row.name, row.monoid.neutral(0), rows * values)?,
            indices: try_filled(row.name, -1, rows * indices)?,
        })
    }

    /// The values and indices of some rows, to be written.
    pub(super) fn part(&mut self, rows: std::ops::Range<usize>) -> Part<'_, A> {
        let (values, indices) = self.widths();
        Part {
            width: values,
            values: &mut self.values[rows.start * values..rows.end * values],
            indices: &mut self.indices[rows.start * indices..rows.end * indices],
        }
    }

    /// How many values and indices a row has.
    fn widths(&self) -> (usize, usize) {
        let monoid = self.fold.row().monoid;
        (monoid.values(self.shape), monoid.indices(self.shape))
    }

    /// The pairs of other states of the same rows too.
    pub(super) fn merge(&mut self, other: &Rows<A>) {
        self.count += other.count;
        let (values, indices) = self.widths();
        for row in 0..self.rows {
            let (of_values, of_indices) =
                (row * values..(row + 1) * values, row * indices..(row + 1) * indices);
            self.fold.merge_row(
                self.shape,
                (&mut self.values[of_values.clone()], &mut self.indices[of_indices.clone()]),
                (&other.values[of_values], &other.indices[of_indices]),
            );
        }
    }

    /// Takes those of some rows from the states of their lanes, as many for each, merged in pairs.
    pub(super) fn gather(&mut self, rows: std::ops::Range<usize>, mut lanes: Rows<A>) {
        let (values, indices) = self.widths();
        let spread = lanes.rows / rows.len();
        // States of sums are merged number by number, so that many at once are as well.
        let is_sum = indices == 0 && self.fold.row().monoid != Monoid::Shifted;
        for (row, first) in rows.zip((0..lanes.rows).step_by(spread)) {
            let mut left = spread;
            while left > 1 {
                let (half, both) = (left.div_ceil(2), left / 2);
                let count = if is_sum { both } else { 1 };
                for lane in (first..first + both).step_by(count) {
                    let (held, other) = lanes.values.split_at_mut((lane + half) * values);
                    let (at, other_at) = lanes.indices.split_at_mut((lane + half) * indices);
                    let (held, at) = (&mut held[lane * values..], &mut at[lane * indices..]);
                    let (values, indices) = (values * count, indices * count);
                    self.fold.merge_row(
                        self.shape,
                        (&mut held[..values], &mut at[..indices]),
                        (&other[..values], &other_at[..indices]),
                    );
                }
                left = half;
            }
            let part = self.part(row..row + 1);
            part.values.copy_from_slice(&lanes.values[first * values..][..values]);
            part.indices.copy_from_slice(&lanes.indices[first * indices..][..indices]);
        }
    }

    /// Has the values of every row changed, by the row's number.
    pub(super) fn change(&mut self, change: impl Fn(usize, &mut [f64])) -> Result<()> {
        let (values, _) = self.widths();
        let mut numbers = try_filled(self.fold.row().name, 0.0, values)?;
        for (row, held) in self.values.chunks_exact_mut(values.max(1)).enumerate() {
            numbers.iter_mut().zip(&*held).for_each(|(number, held)| *number = held.f64());
            change(row, &mut numbers);
            held.iter_mut().zip(&numbers).for_each(|(held, number)| *held = A::of(*number));
        }
        Ok(())
    }

    /// Turns states into results.
    pub(super) fn finish(&mut self) {
        let (values, _) = self.widths();
        for row in self.values.chunks_exact_mut(values.max(1)) {
            self.fold.finish_row(self.shape, self.count, row);
        }
    }

    /// Writes values and indices to where they are wanted, from row `first` of a batch on.
    ///
    /// # Safety
    /// The session of the sinks is held, and nobody else writes these rows.
    pub(super) unsafe fn write(
        &self,
        (values, indices): (Option<&Sink<'_>>, Option<&Sink<'_>>),
        batch: &[usize],
        first: usize,
    ) -> Result<()> {
        let name = self.fold.row().name;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(sink) = values {
                sink.write(name, batch, first, (&self.values, self.rows))?;
            }
            if let Some(sink) = indices {
                sink.write(name, batch, first, (&self.indices, self.rows))?;
            }
        }
        Ok(())
    }
}

/// Some rows of states.
pub(super) struct Part<'a, A> {
    /// Values of a row, and indices where there are any.
    pub(super) width: usize,
    pub(super) values: &'a mut [A],
    pub(super) indices: &'a mut [i64],
}

/// An output as an address.
pub(super) struct Sink<'a> {
    base: *mut u8,
    layout: &'a Layout,
    dtype: DType,
}

impl<'a> Sink<'a> {
    pub(super) fn new(session: &Session<'_>, target: &Target<'a>) -> Sink<'a> {
        Sink { base: target.pointer(session), layout: target.layout(), dtype: target.dtype() }
    }

    /// Writes the last numbers of each of some rows, as many as the layout has.
    ///
    /// # Safety
    /// The session holds the block, and nobody else writes the rows.
    unsafe fn write<N: Element>(
        &self,
        operation: &str,
        batch: &[usize],
        first: usize,
        (numbers, rows): (&[N], usize),
    ) -> Result<()> {
        let (strides, size) = (&self.layout.strides()[batch.len()..], self.dtype.size());
        let width = self.layout.shape()[batch.len() + 1];
        let Some(pitch) = numbers.len().checked_div(rows) else { return Ok(()) };
        let at = position(self.layout, batch) + first as isize * strides[0];
        let to = (self.base.wrapping_offset(at * size as isize), (strides[0], strides[1]));
        let write = |from: *const u8| {
            let from = from.wrapping_add((pitch - width) * size);
            // SAFETY: indices of the layout, which lie inside of the block (the invariant of views);
            // `from` has as many numbers of this size as `numbers`.
            unsafe { moves::block(size, (rows, width), to, (from, (pitch as isize, 1))) };
        };
        let chain = cast::chain(N::DTYPE, self.dtype);
        if chain.is_empty() {
            write(numbers.as_ptr().cast());
            return Ok(());
        }
        // No number is longer than 16 bytes.
        let room = numbers.len() * 16;
        moves::with_scratch(operation, 2 * room, |scratch| {
            let mut from = numbers.as_ptr().cast::<u8>();
            for (k, (kernel, _)) in chain.iter().enumerate() {
                let to = scratch.wrapping_add(k % 2 * room);
                // SAFETY: both halves of the scratch have room for all numbers, and steps of a cast
                // go from one to the other.
                unsafe { kernel(numbers.len(), to, from, from, from) };
                from = to.cast_const();
            }
            write(from);
        })
    }
}
