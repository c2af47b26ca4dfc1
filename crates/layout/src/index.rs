//! Basic indexing: the [`Index`] of one axis, the [`s!`](crate::s) macro, [`Layout::slice`].
//!
//! Indices come from users and are checked here with NumPy's rules. Called by `slice`, `get`,
//! `set` of the array crate and by its Python shell.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use tilework_error::{Error, Result};

use crate::layout::check_shape;
use crate::{Dims, Layout, Strides};

/// What to take from one axis, or what to do between axes.
///
/// Integers and ranges convert; [`s!`](crate::s) writes several in a row.
///
/// ```
/// # use tilework_layout::Index;
/// assert_eq!(Index::from(-1), Index::At(-1));
/// assert_eq!(Index::from(1..), Index::Slice { start: Some(1), stop: None, step: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// One element, counted from the end if negative; the axis disappears.
    At(isize),
    /// Every `step`-th element from `start` up to but without `stop`, clipped to the axis.
    ///
    /// Negative bounds count from the end. With a negative step the default is to run from the
    /// last element down to the first.
    Slice {
        /// The first element.
        start: Option<isize>,
        /// The first element that is left out.
        stop: Option<isize>,
        /// Distance of neighbours; not zero.
        step: isize,
    },
    /// A new axis of size one.
    NewAxis,
    /// As many full axes as it takes to name all of them; at most one.
    Ellipsis,
}

/// A range of one axis that can be given a step: `a..b`, `a..`, `..b` and `..`.
pub trait AxisRange {
    /// The slice from the range's start towards its end by `step`.
    fn with_step(self, step: isize) -> Index;
}

/// Numbers beyond `isize` lie beyond every axis, and so do its ends.
fn saturate<T: TryInto<isize> + PartialOrd + Default>(value: T) -> isize {
    let below = value < T::default();
    value.try_into().unwrap_or(if below { isize::MIN } else { isize::MAX })
}

impl AxisRange for RangeFull {
    fn with_step(self, step: isize) -> Index {
        Index::Slice { start: None, stop: None, step }
    }
}

impl From<RangeFull> for Index {
    fn from(range: RangeFull) -> Index {
        range.with_step(1)
    }
}

macro_rules! conversions {
    ($($int:ty),*) => {$(
        impl From<$int> for Index {
            fn from(index: $int) -> Index {
                Index::At(saturate(index))
            }
        }
        conversions!(@range $int, Range<$int>, |r| (Some(r.start), Some(r.end)));
        conversions!(@range $int, RangeFrom<$int>, |r| (Some(r.start), None));
        conversions!(@range $int, RangeTo<$int>, |r| (None, Some(r.end)));
    )*};
    (@range $int:ty, $range:ty, |$r:ident| ($start:expr, $stop:expr)) => {
        impl AxisRange for $range {
            fn with_step(self, step: isize) -> Index {
                let $r = self;
                let (start, stop): (Option<$int>, Option<$int>) = ($start, $stop);
                Index::Slice { start: start.map(saturate), stop: stop.map(saturate), step }
            }
        }
        impl From<$range> for Index {
            fn from(range: $range) -> Index {
                range.with_step(1)
            }
        }
    };
}

conversions!(i32, i64, isize, u32, u64, usize);

/// An array of [`Index`], written as one would in NumPy.
///
/// | here | NumPy | meaning |
/// |---|---|---|
/// | `2`, `-1` | `2`, `-1` | one element; the axis disappears |
/// | `1..5`, `1..`, `..-1` | `1:5`, `1:`, `:-1` | a range, clipped to the axis |
/// | `..` | `:` | the full axis |
/// | `1..5;2`, `..;-1` | `1:5:2`, `::-1` | a range with a step (an `isize`) |
/// | `NewAxis` | `None` | a new axis of size one |
/// | `Ellipsis` | `...` | as many full axes as needed |
///
/// Numbers may be any expression of a common integer type, or a ready [`Index`].
///
/// ```
/// # use tilework_layout::{Layout, s};
/// let cube = Layout::contiguous(&[4, 5, 6])?;
/// assert_eq!(cube.slice(&s![1.., .., ..;2])?.shape(), [3, 5, 3]);
/// assert_eq!(cube.slice(&s![Ellipsis, NewAxis, -1])?.shape(), [4, 5, 1]);
/// # Ok::<(), tilework_error::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    () => { [$crate::Index::Ellipsis; 0] };
    (@done [$($done:tt)*]) => { [$($done)*] };
    (@done [$($done:tt)*] NewAxis $(, $($rest:tt)*)?) => {
        $crate::s!(@done [$($done)* $crate::Index::NewAxis,] $($($rest)*)?)
    };
    (@done [$($done:tt)*] Ellipsis $(, $($rest:tt)*)?) => {
        $crate::s!(@done [$($done)* $crate::Index::Ellipsis,] $($($rest)*)?)
    };
    (@done [$($done:tt)*] $range:expr ; $step:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@done [$($done)* {
            // `1..-1` means something here: negative numbers count from the end.
            #[allow(clippy::reversed_empty_ranges)]
            let range = $range;
            $crate::AxisRange::with_step(range, $step)
        },] $($($rest)*)?)
    };
    (@done [$($done:tt)*] $index:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@done [$($done)* {
            #[allow(clippy::reversed_empty_ranges)]
            let index = $index;
            $crate::Index::from(index)
        },] $($($rest)*)?)
    };
    ($($rest:tt)+) => { $crate::s!(@done [] $($rest)+) };
}

/// The place that an index names on an axis of `size` elements, a negative one from the end; None if
/// it names none.
#[inline(always)]
pub fn resolve_index(index: i64, size: usize) -> Option<usize> {
    let from_end = if index < 0 { size as u64 } else { 0 };
    let place = index.cast_unsigned().wrapping_add(from_end);
    (place < size as u64).then_some(place as usize)
}

/// The error of an index that [`resolve_index`] finds no place for.
#[cold]
pub fn out_of_bounds(operation: &str, index: i64, axis: usize, size: usize) -> Error {
    Error::index(operation, format!("{index} is out of bounds for axis {axis} with size {size}"))
}

/// First element and length of a slice of an axis of `n` elements, clipped as Python does.
#[inline]
fn clip(n: usize, start: Option<isize>, stop: Option<isize>, step: isize) -> (isize, usize) {
    let n = n.cast_signed();
    // The places where a walk can stand: one before the axis is a place only when going down.
    let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
    let place = |bound: isize| {
        let bound = if bound < 0 { bound.saturating_add(n) } else { bound };
        bound.clamp(low, high)
    };
    let (first, last) = if step < 0 { (high, low) } else { (low, high) };
    let (start, stop) = (start.map_or(first, place), stop.map_or(last, place));
    let ahead = if step < 0 { start - stop } else { stop - start };
    let len = match (ahead, step.unsigned_abs()) {
        (..=0, _) => 0,
        (_, 1) => ahead.unsigned_abs(),
        (_, step) => (ahead.unsigned_abs() - 1) / step + 1,
    };
    (start, len)
}

impl Layout {
    /// The part that `indices` name, by NumPy's rules; axes that are not named stay whole.
    ///
    /// ```
    /// # use tilework_layout::{Layout, s};
    /// let matrix = Layout::contiguous(&[3, 4])?;
    /// let part = matrix.slice(&s![-2.., ..;-1])?;
    /// assert_eq!((part.shape(), part.strides(), part.offset()), (&[2, 4][..], &[4, -1][..], 7));
    /// assert_eq!(
    ///     matrix.slice(&s![5]).unwrap_err().to_string(),
    ///     "index: 5 is out of bounds for axis 0 with size 3"
    /// );
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn slice(&self, indices: &[Index]) -> Result<Layout> {
        let mut view = Layout::scalar();
        self.slice_to(indices, &mut view)?;
        Ok(view)
    }

    /// The position of the element at one index for each axis; negative ones count from the end.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[2, 3])?;
    /// assert_eq!(layout.element(&[1, -1])?, 5);
    /// assert!(layout.element(&[2, 0]).is_err() && layout.element(&[1]).is_err());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    #[inline]
    pub fn element(&self, index: &[isize]) -> Result<usize> {
        if index.len() != self.ndim() {
            let message =
                format!("{} indices name no element of {} axes", index.len(), self.ndim());
            return Err(Error::index("index", message));
        }
        let mut position = self.offset();
        for (axis, (&i, (n, stride))) in index.iter().zip(self.axes()).enumerate() {
            let Some(at) = resolve_index(i as i64, n) else {
                return Err(out_of_bounds("index", i as i64, axis, n));
            };
            // No overflow: it is a position that the layout reaches, once all axes are added.
            position = position.wrapping_add_signed(at.cast_signed().wrapping_mul(stride));
        }
        Ok(position)
    }

    /// [`Layout::slice`] into a layout that exists.
    #[inline]
    pub fn slice_to(&self, indices: &[Index], view: &mut Layout) -> Result<()> {
        view.set_derived(self, |shape, strides| self.sliced(indices, shape, strides))
    }

    /// Writes shape and strides of a slice; by how much its first element moves.
    fn sliced(&self, indices: &[Index], shape: &mut Dims, strides: &mut Strides) -> Result<isize> {
        let op = "index";
        let (mut named, mut ellipses, mut added) = (0, 0, 0);
        for index in indices {
            match index {
                Index::At(_) | Index::Slice { .. } => named += 1,
                Index::Ellipsis => ellipses += 1,
                Index::NewAxis => added += 1,
            }
        }
        if ellipses > 1 {
            return Err(Error::index(op, format!("{ellipses} ellipses; there can be only one")));
        }
        let Some(unnamed) = self.ndim().checked_sub(named) else {
            let message = format!("{named} indices are too many for {} axes", self.ndim());
            return Err(Error::index(op, message));
        };

        let (own_shape, own_strides) = (self.shape(), self.strides());
        let mut shift = 0isize;
        let mut axis = 0;
        for index in indices {
            match *index {
                Index::At(i) => {
                    let n = own_shape[axis];
                    let Some(at) = resolve_index(i as i64, n) else {
                        return Err(out_of_bounds(op, i as i64, axis, n));
                    };
                    shift = shift.wrapping_add(at.cast_signed().wrapping_mul(own_strides[axis]));
                    axis += 1;
                }
                Index::Slice { step: 0, .. } => {
                    return Err(Error::value(op, format!("the step on axis {axis} is zero")));
                }
                Index::Slice { start, stop, step } => {
                    let stride = own_strides[axis];
                    let (first, len) = clip(own_shape[axis], start, stop, step);
                    shift = shift.wrapping_add(first.wrapping_mul(stride));
                    shape.push(len);
                    strides.push(stride.wrapping_mul(step));
                    axis += 1;
                }
                Index::NewAxis => {
                    shape.push(1);
                    strides.push(0);
                }
                Index::Ellipsis => {
                    shape.extend_from_slice(&own_shape[axis..axis + unnamed]);
                    strides.extend_from_slice(&own_strides[axis..axis + unnamed]);
                    axis += unnamed;
                }
            }
        }
        if axis < own_shape.len() {
            shape.extend_from_slice(&own_shape[axis..]);
            strides.extend_from_slice(&own_strides[axis..]);
        }
        if added > 0 {
            // Otherwise there are no more axes than before, and none is longer.
            check_shape(op, shape)?;
        }
        Ok(shift)
    }
}
