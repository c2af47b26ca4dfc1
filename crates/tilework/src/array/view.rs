//! Views: other shapes, strides and offsets on the same memory. Nothing here copies, but for
//! [`Array::reshape`] where no view exists.

use tilework_backend::{Recycled, try_room};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, Layout, normalize_axis, resolve_shape};

use super::Array;

impl Array {
    /// Another shape for the same elements in row-major order; one length may be -1.
    ///
    /// A view where the strides permit, a copy otherwise; [`Array::reshape_view`] never copies.
    pub fn reshape(&self, shape: &[isize]) -> Result<Array> {
        let shape = resolve_shape(self.len(), shape)?;
        match self.layout().reshape(&shape)? {
            Some(layout) => self.with_layout(layout),
            None => self.copy()?.with_layout(Layout::contiguous(&shape)?),
        }
    }

    /// Another shape on the same memory; an error where that takes a copy.
    pub fn reshape_view(&self, shape: &[isize]) -> Result<Array> {
        let shape = resolve_shape(self.len(), shape)?;
        let layout = self.layout().reshape(&shape)?.ok_or_else(|| {
            let (from, strides, to) = (tuple(self.shape()), tuple(self.strides()), tuple(&shape));
            let message = format!(
                "shape {from} with strides {strides} has no view of shape {to}; let it copy"
            );
            Error::shape("reshape_view", message)
        })?;
        self.with_layout(layout)
    }

    /// One axis, in row-major order; a view where the strides permit.
    pub fn ravel(&self) -> Result<Array> {
        self.reshape(&[-1])
    }

    /// The axes in another order.
    pub fn permute(&self, axes: &[isize]) -> Result<Array> {
        self.with_layout(self.layout().permute(axes)?)
    }

    /// The axes in reverse order.
    pub fn transpose(&self) -> Array {
        Array { view: Recycled::new(self.view.transposed()), device: self.device }
    }

    /// The last two axes swapped.
    pub fn matrix_transpose(&self) -> Result<Array> {
        if self.ndim() < 2 {
            let message = format!("needs two axes or more, not shape {}", tuple(self.shape()));
            return Err(Error::shape("matrix_transpose", message));
        }
        self.swap_axes(-2, -1)
    }

    /// Two axes swapped.
    pub fn swap_axes(&self, axis1: isize, axis2: isize) -> Result<Array> {
        self.with_layout(self.layout().swap_axes(axis1, axis2)?)
    }

    /// Axes moved to other places, the others keeping their order.
    pub fn move_axes(&self, from: &[isize], to: &[isize]) -> Result<Array> {
        self.with_layout(self.layout().move_axes(from, to)?)
    }

    /// The array repeated along axes of length 1 and new leading axes, without copies.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        self.with_layout(self.layout().broadcast_to(shape)?)
    }

    /// A part of the array: see [`s!`](crate::s).
    ///
    /// ```
    /// use tilework::{Array, DType, s};
    /// let x = Array::arange(0, 10, 1, DType::Int64)?;
    /// assert_eq!(x.slice(&s![1..9;3])?.to_vec::<i64>()?, [1, 4, 7]);
    /// assert_eq!(x.slice(&s![..;-4])?.to_vec::<i64>()?, [9, 5, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn slice(&self, indices: &[Index]) -> Result<Array> {
        Ok(Array { view: self.view.slice(indices)?, device: self.device })
    }

    /// A new axis of length 1.
    pub fn expand_dims(&self, axis: isize) -> Result<Array> {
        self.with_layout(self.layout().expand_dims(axis)?)
    }

    /// Without these axes of length 1, or without all of them.
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<Array> {
        self.with_layout(self.layout().squeeze(axes)?)
    }

    /// Reversed along these axes, or along all.
    pub fn flip(&self, axes: Option<&[isize]>) -> Result<Array> {
        self.with_layout(self.layout().flip(axes)?)
    }

    /// A diagonal of two axes, as a new last axis.
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<Array> {
        self.with_layout(self.layout().diagonal(offset, axis1, axis2)?)
    }

    /// All windows of a size, as new last axes; an axis named twice gives windows of windows.
    pub fn sliding_windows(&self, window: &[usize], axes: &[isize]) -> Result<Array> {
        self.with_layout(self.layout().sliding_windows(window, axes)?)
    }

    /// Any shape and strides on the same memory, beginning `shift` elements after this array's
    /// first element; an error if an index would leave the block.
    pub fn as_strided(&self, shape: &[usize], strides: &[isize], shift: isize) -> Result<Array> {
        let block = self.storage().bytes() / self.dtype().size();
        self.with_layout(self.layout().as_strided(shape, strides, shift, block)?)
    }

    /// Parts along an axis, cut before each of these indices.
    pub fn split_at(&self, boundaries: &[usize], axis: isize) -> Result<Vec<Array>> {
        let parts = self.layout().split(axis, boundaries)?;
        parts.into_iter().map(|layout| self.with_layout(layout)).collect()
    }

    /// Equal parts along an axis.
    pub fn split(&self, parts: usize, axis: isize) -> Result<Vec<Array>> {
        let at = normalize_axis("split", axis, self.ndim())?;
        let len = self.shape()[at];
        if parts == 0 || !len.is_multiple_of(parts) {
            let message = format!("axis {at} of length {len} has no {parts} equal parts");
            return Err(Error::value("split", message));
        }
        // An empty axis has any number of equal parts: more than memory has room for, even.
        let mut boundaries = try_room("split", parts)?;
        boundaries.extend((1..parts).map(|part| part * (len / parts)));
        self.split_at(&boundaries, axis)
    }
}

/// Views of the arrays, all broadcast to one shape.
pub fn broadcast_arrays(arrays: &[&Array]) -> Result<Vec<Array>> {
    let shapes: Vec<&[usize]> = arrays.iter().map(|array| array.shape()).collect();
    let shape = tilework_layout::broadcast_shapes("broadcast_arrays", &shapes)?;
    arrays.iter().map(|array| array.broadcast_to(&shape)).collect()
}
