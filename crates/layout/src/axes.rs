//! Numbering of axes: negative axes counted from the end, bounds, repetition.
//!
//! Everywhere an `isize` is an axis as its user wrote it, and a `usize` one that exists: this is the
//! only place that makes the second of the first. Assumes nothing of its arguments. Called by the view
//! functions here and by every operation of the array crate that takes an axis from its user.

use tilework_error::{Error, Result, tuple};

use crate::Dims;

/// The axis that `axis` names among `ndim` axes, where negative numbers count from the end.
///
/// ```
/// # use tilework_layout::normalize_axis;
/// assert_eq!(normalize_axis("sum", -1, 3)?, 2);
/// assert_eq!(
///     normalize_axis("sum", 3, 3).unwrap_err().to_string(),
///     "sum: axis 3 is out of bounds for an array with 3 axes"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn normalize_axis(op: &str, axis: isize, ndim: usize) -> Result<usize> {
    let found = if axis < 0 {
        ndim.checked_sub(axis.unsigned_abs())
    } else {
        Some(axis.unsigned_abs()).filter(|&axis| axis < ndim)
    };
    found.ok_or_else(|| out_of_bounds(op, axis, ndim))
}

/// [`normalize_axis`] for several axes, in their order; an axis named twice is an error.
///
/// ```
/// # use tilework_layout::normalize_axes;
/// assert_eq!(normalize_axes("sum", &[-1, 0], 3)?.as_slice(), [2, 0]);
/// assert_eq!(
///     normalize_axes("sum", &[-1, 2], 3).unwrap_err().to_string(),
///     "sum: axis 2 is named twice in (-1, 2)"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn normalize_axes(op: &str, axes: &[isize], ndim: usize) -> Result<Dims> {
    let mut found = Dims::with_capacity(axes.len());
    for &axis in axes {
        let axis = normalize_axis(op, axis, ndim)?;
        if found.contains(&axis) {
            return Err(Error::axis(op, format!("axis {axis} is named twice in {}", tuple(axes))));
        }
        found.push(axis);
    }
    Ok(found)
}

#[cold]
fn out_of_bounds(op: &str, axis: isize, ndim: usize) -> Error {
    let s = if ndim == 1 { "axis" } else { "axes" };
    Error::axis(op, format!("axis {axis} is out of bounds for an array with {ndim} {s}"))
}
