//! One minimal loop nest over several layouts of the same shape.
//!
//! The one room that walks several arrays together: axes of size one are dropped, the others
//! sorted for the locality of the first operand, and merged where all operands allow it. What is
//! left is a short list of axes whose last one is handed out as whole runs. Assumes layouts of one
//! shape with their invariants; every position that a nest hands out is a position of its layout,
//! so code that checked the layouts against their blocks may use it unchecked. Called by every
//! backend for copy, map, gather, and by [`crate::ReduceNest`].

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::{Dims, Layout};

/// Positions of each operand; up to four live inline.
type Starts = SmallVec<[usize; 4]>;

/// Steps of each operand along one axis.
type Row = SmallVec<[isize; 4]>;

/// Loops over the elements of several layouts at once; see [`LoopNest::new`].
///
/// # Invariants
///
/// 1. There is at least one axis: one of length one for a single element, one of length zero for
///    none.
/// 2. `strides` holds a row of `offsets.len()` numbers for each axis, outermost first.
/// 3. The tuples of positions that the loops visit are those of the layouts under equal indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopNest {
    lens: Dims,
    strides: SmallVec<[isize; 24]>,
    offsets: Starts,
    outer_len: usize,
}

impl LoopNest {
    /// The nest that visits every element once, in the order that suits the first layout: its
    /// longest strides outermost, and axes along which it runs backwards reversed for all.
    ///
    /// Ties of the first layout are broken by the second, and so on.
    ///
    /// ```
    /// # use tilework_layout::{Layout, LoopNest};
    /// let a = Layout::contiguous(&[3, 4, 5])?;
    /// assert_eq!(LoopNest::new(&[&a, &a]).lens(), [60]);
    ///
    /// let row = Layout::contiguous(&[5])?.broadcast_to(&[3, 4, 5])?;
    /// let nest = LoopNest::new(&[&a, &row]);
    /// assert_eq!((nest.lens(), nest.inner_strides()), (&[12, 5][..], &[1, 1][..]));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ: positions would leave their layouts, so nothing may go on.
    pub fn new(layouts: &[&Layout]) -> LoopNest {
        LoopNest::build(layouts, true)
    }

    /// The nest that visits every element in row-major order of the shape, for walks whose order
    /// can be seen; axes are dropped and merged, but neither sorted nor reversed.
    ///
    /// ```
    /// # use tilework_layout::{Layout, LoopNest};
    /// let columns = Layout::contiguous(&[3, 4])?.transpose();
    /// assert_eq!(LoopNest::new(&[&columns]).lens(), [12]);
    /// assert_eq!(LoopNest::in_order(&[&columns]).lens(), [4, 3]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ.
    pub fn in_order(layouts: &[&Layout]) -> LoopNest {
        LoopNest::build(layouts, false)
    }

    fn build(layouts: &[&Layout], reorder: bool) -> LoopNest {
        let still: Row = smallvec![0; layouts.len()];
        let shape = layouts.first().map_or(&[][..], |first| first.shape());
        assert!(
            layouts.iter().all(|layout| layout.shape() == shape),
            "loop nest: operands must be broadcast to one shape first"
        );
        let mut nest = LoopNest {
            lens: Dims::new(),
            strides: SmallVec::new(),
            offsets: layouts.iter().map(|layout| layout.offset()).collect(),
            outer_len: 1,
        };
        if shape.contains(&0) {
            nest.push_axis(0, &still);
            nest.outer_len = 0;
            return nest;
        }

        let len: usize = shape.iter().product();
        if len > 1 && layouts.iter().all(|layout| layout.is_contiguous()) {
            // What the general way comes to as well; most calls are of this kind.
            let ones: Row = smallvec![1; layouts.len()];
            nest.push_axis(len, &ones);
            return nest;
        }

        let mut order: Dims = (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
        if reorder {
            // Few axes, mostly sorted already; must be stable to keep ties in logical order.
            order.sort_by(|&a, &b| by_stride(layouts, a, b));
        }
        for &axis in &order {
            let n = shape[axis];
            let mut row: Row = layouts.iter().map(|layout| layout.strides()[axis]).collect();
            if reorder && row.iter().find(|&&stride| stride != 0).is_some_and(|&s| s < 0) {
                for (stride, offset) in row.iter_mut().zip(&mut nest.offsets) {
                    *offset = offset.wrapping_add_signed((n - 1).cast_signed() * *stride);
                    *stride = -*stride;
                }
            }
            nest.push_axis(n, &row);
        }
        if nest.lens.is_empty() {
            nest.push_axis(1, &still);
        }
        nest.outer_len = nest.lens[..nest.axes() - 1].iter().product();
        nest
    }

    /// Adds an innermost axis, merged with the one outside of it where all operands allow that.
    fn push_axis(&mut self, n: usize, row: &[isize]) {
        if let Some(outer_len) = self.lens.last_mut() {
            let outer_row = self.strides.len() - row.len();
            let outer = &mut self.strides[outer_row..];
            let even = |(&outer, &inner): (&isize, &isize)| {
                inner.checked_mul(n.cast_signed()) == Some(outer)
            };
            if outer.iter().zip(row).all(even) {
                *outer_len *= n;
                outer.copy_from_slice(row);
                return;
            }
        }
        self.lens.push(n);
        self.strides.extend_from_slice(row);
    }

    /// Number of layouts.
    #[inline]
    pub fn operands(&self) -> usize {
        self.offsets.len()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.outer_len * self.inner_len()
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.outer_len == 0
    }

    /// Number of loops, at least one.
    #[inline]
    pub fn axes(&self) -> usize {
        self.lens.len()
    }

    /// Lengths of the loops, outermost first.
    #[inline]
    pub fn lens(&self) -> &[usize] {
        &self.lens
    }

    /// The step of each operand along loop `axis`; empty if there is no such loop.
    #[inline]
    pub fn strides(&self, axis: usize) -> &[isize] {
        let n = self.operands();
        if axis < self.axes() { &self.strides[axis * n..(axis + 1) * n] } else { &[] }
    }

    /// Where each operand starts.
    #[inline]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Length of the innermost loop, and so of every run.
    #[inline]
    pub fn inner_len(&self) -> usize {
        self.lens[self.lens.len() - 1]
    }

    /// The step of each operand along the innermost loop.
    #[inline]
    pub fn inner_strides(&self) -> &[isize] {
        self.strides(self.axes() - 1)
    }

    /// Number of runs of the innermost loop.
    #[inline]
    pub fn outer_len(&self) -> usize {
        self.outer_len
    }

    /// Calls `f` with the position of each operand at the start of each run among `runs`.
    ///
    /// Runs are numbered in the order of the nest, so that threads can share them out; numbers
    /// from [`LoopNest::outer_len`] on are left out.
    ///
    /// ```
    /// # use tilework_layout::{Layout, LoopNest, s};
    /// let left = Layout::contiguous(&[4, 3])?.slice(&s![.., ..2])?;
    /// let nest = LoopNest::new(&[&left]);
    /// let mut starts = Vec::new();
    /// nest.for_each_run(1..nest.outer_len(), |at| starts.push(at[0]));
    /// assert_eq!((starts, nest.inner_len()), (vec![3, 6, 9], 2));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn for_each_run(&self, runs: Range<usize>, mut f: impl FnMut(&[usize])) {
        let mut left = runs.end.min(self.outer_len).saturating_sub(runs.start);
        if left == 0 {
            return;
        }
        let outer = self.axes() - 1;
        let mut starts = self.offsets.clone();
        let at = starts.as_mut_slice();
        let Some(last) = outer.checked_sub(1) else {
            return f(at);
        };

        let mut index: Dims = smallvec![0; outer];
        let mut number = runs.start;
        for axis in (0..outer).rev() {
            index[axis] = number % self.lens[axis];
            number /= self.lens[axis];
            advance(at, self.strides(axis), index[axis].cast_signed());
        }
        let steps = self.strides(last);
        loop {
            // One row of the innermost of the outer loops, without looking at the others.
            let row = left.min(self.lens[last] - index[last]);
            for _ in 0..row {
                f(at);
                advance(at, steps, 1);
            }
            left -= row;
            if left == 0 {
                return;
            }
            // More is left, so the row was walked to its end and some outer loop goes on.
            advance(at, steps, -self.lens[last].cast_signed());
            index[last] = 0;
            for axis in (0..last).rev() {
                index[axis] += 1;
                if index[axis] < self.lens[axis] {
                    advance(at, self.strides(axis), 1);
                    break;
                }
                index[axis] = 0;
                advance(at, self.strides(axis), 1 - self.lens[axis].cast_signed());
            }
        }
    }

    /// Calls `f` with start positions and length of each piece of a run that `elements` covers,
    /// for threads that share out elements where there are fewer runs than threads.
    ///
    /// Elements are numbered in the order of the nest.
    ///
    /// ```
    /// # use tilework_layout::{Layout, LoopNest};
    /// let nest = LoopNest::new(&[&Layout::contiguous(&[10, 10])?]);
    /// nest.for_each_piece(25..75, |at, len| assert_eq!((at, len), (&[25][..], 50)));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn for_each_piece(&self, elements: Range<usize>, mut f: impl FnMut(&[usize], usize)) {
        let end = elements.end.min(self.len());
        if elements.start >= end {
            return;
        }
        let inner = self.inner_len();
        let (first, last) = (elements.start / inner, (end - 1) / inner);
        let mut skip = elements.start % inner;
        let mut run = first;
        let strides = self.inner_strides();
        self.for_each_run(first..last + 1, |at| {
            let stop = if run == last { end - run * inner } else { inner };
            if skip == 0 {
                f(at, stop);
            } else {
                let mut at = Starts::from_slice(at);
                advance(&mut at, strides, skip.cast_signed());
                f(&at, stop - skip);
                skip = 0;
            }
            run += 1;
        });
    }
}

/// Longer strides first, by the first layout that makes a difference.
fn by_stride(layouts: &[&Layout], a: usize, b: usize) -> Ordering {
    layouts
        .iter()
        .map(|layout| {
            let strides = layout.strides();
            strides[b].unsigned_abs().cmp(&strides[a].unsigned_abs())
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Moves every position by `times` its stride; wraps, since a loop may step past its end.
#[inline]
fn advance(at: &mut [usize], strides: &[isize], times: isize) {
    for (position, &stride) in at.iter_mut().zip(strides) {
        *position = position.wrapping_add_signed(stride.wrapping_mul(times));
    }
}
