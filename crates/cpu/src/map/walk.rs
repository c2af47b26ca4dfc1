//! The loops of a nest with the axis of one's choice next to the innermost, walked operand by
//! operand in bursts of rows.
//!
//! A *row* is a run of the innermost axis; rows are numbered in the order of the walk. A burst is
//! as many rows as follow each other with one stride, which is what [`super::moves::block`] takes.
//! Positions are those of the nest (an invariant of `LoopNest`). Called by `chunks` and `copy`.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_layout::LoopNest;

/// See the module.
#[derive(Debug)]
pub(super) struct Walk {
    lens: SmallVec<[usize; 6]>,
    /// A row of strides, one for each operand, for each axis.
    strides: SmallVec<[isize; 24]>,
    offsets: SmallVec<[usize; 4]>,
    rows: usize,
}

impl Walk {
    /// The walk of `nest` in which `axis` has been moved next to the innermost.
    pub(super) fn new(nest: &LoopNest, axis: Option<usize>) -> Walk {
        let last = nest.axes() - 1;
        let outer = (0..last).filter(|&a| Some(a) != axis);
        let order = outer.chain(axis).chain([last]);
        let mut walk = Walk {
            lens: SmallVec::new(),
            strides: SmallVec::new(),
            offsets: SmallVec::from_slice(nest.offsets()),
            rows: nest.outer_len(),
        };
        for axis in order {
            walk.lens.push(nest.lens()[axis]);
            walk.strides.extend_from_slice(nest.strides(axis));
        }
        walk
    }

    fn stride(&self, axis: usize, operand: usize) -> isize {
        self.strides[axis * self.offsets.len() + operand]
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row.
    pub(super) fn columns(&self) -> usize {
        self.lens[self.lens.len() - 1]
    }

    /// Steps of an operand: from row to row inside a burst, and inside a row.
    pub(super) fn steps(&self, operand: usize) -> (isize, isize) {
        let inner = self.lens.len() - 1;
        let row = if inner == 0 { 0 } else { self.stride(inner - 1, operand) };
        (row, self.stride(inner, operand))
    }

    /// Whether the operand's elements follow each other in the order of the walk.
    pub(super) fn is_dense(&self, operand: usize) -> bool {
        let mut step = 1;
        (0..self.lens.len()).rev().all(|axis| {
            let follows = self.stride(axis, operand) == step;
            step *= self.lens[axis].cast_signed();
            follows
        })
    }

    /// Whether all rows of the operand are the same.
    pub(super) fn is_still(&self, operand: usize) -> bool {
        (0..self.lens.len() - 1).all(|axis| self.stride(axis, operand) == 0)
    }

    /// Where the operand starts.
    pub(super) fn offset(&self, operand: usize) -> usize {
        self.offsets[operand]
    }

    /// Calls `f` with the operand's position at the first row of each burst in `rows`, and the
    /// number of rows in it.
    pub(super) fn bursts(
        &self,
        operand: usize,
        rows: Range<usize>,
        mut f: impl FnMut(isize, usize),
    ) {
        let mut left = rows.end - rows.start;
        let mut position = self.offsets[operand].cast_signed();
        let Some(last) = self.lens.len().checked_sub(2) else {
            return f(position, left);
        };
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, last + 1);
        let mut number = rows.start;
        for axis in (0..=last).rev() {
            index[axis] = number % self.lens[axis];
            number /= self.lens[axis];
            position += index[axis].cast_signed() * self.stride(axis, operand);
        }
        while left > 0 {
            let count = left.min(self.lens[last] - index[last]);
            f(position, count);
            left -= count;
            position -= index[last].cast_signed() * self.stride(last, operand);
            index[last] = 0;
            for axis in (0..last).rev() {
                index[axis] += 1;
                if index[axis] < self.lens[axis] {
                    position += self.stride(axis, operand);
                    break;
                }
                position -= (self.lens[axis].cast_signed() - 1) * self.stride(axis, operand);
                index[axis] = 0;
            }
        }
    }
}
