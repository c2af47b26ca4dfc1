//! Broadcasting: the common shape of several, and the view that repeats along stride zero.
//!
//! Shapes may come from outside; layouts satisfy their invariants. Called by every elementwise
//! operation, assignment and `where`.

use smallvec::smallvec;
use tilework_error::{Error, Result, tuple};

use crate::layout::check_shape;
use crate::{Dims, Layout, Strides};

/// The shape that all `shapes` broadcast to by NumPy's rule: aligned at the last axis, sizes agree
/// or one of them is one.
///
/// ```
/// # use tilework_layout::broadcast_shapes;
/// assert_eq!(broadcast_shapes("add", &[&[3, 1], &[4]])?.as_slice(), [3, 4]);
/// assert_eq!(
///     broadcast_shapes("add", &[&[3, 4], &[5]]).unwrap_err().to_string(),
///     "add: shapes (3, 4) and (5,) do not broadcast: 4 and 5 differ on axis 1"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn broadcast_shapes(op: &str, shapes: &[&[usize]]) -> Result<Dims> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut common: Dims = smallvec![1; ndim];
    for (k, shape) in shapes.iter().enumerate() {
        let skip = ndim - shape.len();
        for (axis, (size, &n)) in common[skip..].iter_mut().zip(*shape).enumerate() {
            if *size == 1 {
                *size = n;
            } else if n != 1 && n != *size {
                return Err(mismatch(op, &shapes[..=k], axis + skip, *size, ndim));
            }
        }
    }
    check_shape(op, &common)?;
    Ok(common)
}

/// Names the last of `shapes` and the earlier one that had set `size` on `axis`.
#[cold]
fn mismatch(op: &str, shapes: &[&[usize]], axis: usize, size: usize, ndim: usize) -> Error {
    let at = |shape: &[usize]| (axis + shape.len()).checked_sub(ndim).map(|k| shape[k]);
    let last = shapes[shapes.len() - 1];
    let earlier = shapes.iter().find(|shape| at(shape) == Some(size)).unwrap_or(&last);
    let n = at(last).unwrap_or(1);
    let (earlier, last) = (tuple(earlier), tuple(last));
    let message = format!(
        "shapes {earlier} and {last} do not broadcast: {size} and {n} differ on axis {axis}"
    );
    Error::shape(op, message)
}

impl Layout {
    /// This layout repeated to `shape`: new axes and axes of size one get stride zero.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let row = Layout::contiguous(&[3])?;
    /// assert_eq!(row.broadcast_to(&[2, 3])?.strides(), [0, 1]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout> {
        let op = "broadcast_to";
        let fail = |reason: String| {
            let (from, to) = (tuple(self.shape()), tuple(shape));
            Err(Error::shape(op, format!("cannot broadcast {from} to {to}: {reason}")))
        };
        check_shape(op, shape)?;
        let Some(skip) = shape.len().checked_sub(self.ndim()) else {
            return fail(format!("{} axes are more than {}", self.ndim(), shape.len()));
        };
        let mut strides: Strides = smallvec![0; shape.len()];
        for (axis, (n, stride)) in self.axes().enumerate() {
            let to = shape[axis + skip];
            if n == to {
                strides[axis + skip] = stride;
            } else if n != 1 {
                return fail(format!("{n} and {to} differ on axis {}", axis + skip));
            }
        }
        Ok(self.derived(Dims::from_slice(shape), strides, 0))
    }
}
