//! Reshaping without a copy, where there are strides that make it possible.
//!
//! Shapes may come from outside. Called by `reshape`, `ravel`, `flatten` of the array crate, which
//! copy where this says that no view exists.

use smallvec::{SmallVec, smallvec};
use tilework_error::{Error, Result, tuple};

use crate::layout::check_shape;
use crate::{Dims, Layout, Strides, contiguous_strides};

/// The shape of `len` elements that `shape` asks for, where one axis may be -1: whatever is left.
///
/// A shape without -1 passes as it is; [`Layout::reshape`] compares the number of elements.
///
/// ```
/// # use tilework_layout::resolve_shape;
/// assert_eq!(resolve_shape(12, &[3, -1])?.as_slice(), [3, 4]);
/// assert_eq!(
///     resolve_shape(12, &[5, -1]).unwrap_err().to_string(),
///     "reshape: cannot view 12 elements as (5, -1): 12 is not a multiple of 5"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn resolve_shape(len: usize, shape: &[isize]) -> Result<Dims> {
    let op = "reshape";
    let fail = |reason: String| {
        let message = format!("cannot view {len} elements as {}: {reason}", tuple(shape));
        Err(Error::shape(op, message))
    };
    let mut resolved = Dims::with_capacity(shape.len());
    let mut unknown = None;
    for (axis, &n) in shape.iter().enumerate() {
        match n {
            0.. => resolved.push(n.unsigned_abs()),
            -1 if unknown.is_none() => {
                unknown = Some(axis);
                resolved.push(1);
            }
            -1 => return fail("only one axis can be -1".into()),
            _ => return fail(format!("{n} is no size; one axis can be -1, all others count")),
        }
    }
    check_shape(op, &resolved)?;
    if let Some(axis) = unknown {
        let known: usize = resolved.iter().product();
        if known == 0 {
            return fail("-1 could be anything beside an axis of size 0".into());
        }
        if !len.is_multiple_of(known) {
            return fail(format!("{len} is not a multiple of {known}"));
        }
        resolved[axis] = len / known;
    }
    Ok(resolved)
}

impl Layout {
    /// This layout with its elements, in row-major order, under another shape; `None` where no
    /// strides can say that and the elements must be copied.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let matrix = Layout::contiguous(&[4, 6])?;
    /// let blocks = matrix.reshape(&[2, 2, 6])?.unwrap();
    /// assert_eq!(blocks.strides(), [12, 6, 1]);
    /// assert_eq!(matrix.transpose().reshape(&[24])?, None);
    /// assert_eq!(
    ///     matrix.reshape(&[5, 5]).unwrap_err().to_string(),
    ///     "reshape: cannot view (4, 6) as (5, 5): 24 elements are not 25"
    /// );
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn reshape(&self, shape: &[usize]) -> Result<Option<Layout>> {
        let op = "reshape";
        check_shape(op, shape)?;
        let (have, want) = (self.len(), shape.iter().product::<usize>());
        if have != want {
            let (from, to) = (tuple(self.shape()), tuple(shape));
            let message = format!("cannot view {from} as {to}: {have} elements are not {want}");
            return Err(Error::shape(op, message));
        }
        let strides = if have == 0 {
            contiguous_strides(shape)
        } else {
            match self.strides_for(shape) {
                Some(strides) => strides,
                None => return Ok(None),
            }
        };
        Ok(Some(self.derived(Dims::from_slice(shape), strides, 0)))
    }

    /// Strides that give `shape`, of as many elements and not empty, the same order.
    ///
    /// Old and new axes are taken in the smallest groups with equal products. Inside a group the
    /// old axes must merge into one even progression, which the new axes then divide.
    fn strides_for(&self, shape: &[usize]) -> Option<Strides> {
        let old: SmallVec<[(usize, isize); 6]> = self.axes().filter(|&(n, _)| n != 1).collect();
        let mut strides: Strides = smallvec![1; shape.len()];
        let (mut from, mut to) = (0, 0);
        while from < old.len() {
            let (mut from_end, mut to_end) = (from + 1, to + 1);
            let (mut from_len, mut to_len) = (old[from].0, shape[to]);
            // Both ends stay in bounds: the products of all axes are equal.
            while from_len != to_len {
                if to_len < from_len {
                    to_len *= shape[to_end];
                    to_end += 1;
                } else {
                    from_len *= old[from_end].0;
                    from_end += 1;
                }
            }
            for pair in old[from..from_end].windows(2) {
                let (inner_len, inner_stride) = pair[1];
                if inner_stride.checked_mul(inner_len.cast_signed()) != Some(pair[0].1) {
                    return None;
                }
            }
            let mut step = old[from_end - 1].1;
            for k in (to..to_end).rev() {
                strides[k] = step;
                // Overflow can only reach the stride of an axis of size one.
                step = step.wrapping_mul(shape[k].cast_signed());
            }
            (from, to) = (from_end, to_end);
        }
        // What is left of `shape` are axes of size one, which keep stride one.
        Some(strides)
    }
}
