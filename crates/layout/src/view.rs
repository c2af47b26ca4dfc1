//! Views that rename, remove, reverse or regroup axes; each maps a layout to a layout.
//!
//! Axes may come from outside and are written as users write them: signed, negative ones counted from
//! the end. The layout satisfies its invariants. Called by the view methods of the array crate and by
//! operations that prepare their operands.

use smallvec::SmallVec;
use smallvec::smallvec;
use tilework_error::{Error, Result, tuple};

use crate::layout::check_shape;
use crate::{Dims, Layout, Strides, normalize_axes, normalize_axis};

impl Layout {
    /// The axes in the order that `axes` names them.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[2, 3, 4])?.permute(&[2, 0, 1])?;
    /// assert_eq!((layout.shape(), layout.strides()), (&[4, 2, 3][..], &[1, 12, 4][..]));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn permute(&self, axes: &[isize]) -> Result<Layout> {
        let op = "permute";
        let order = normalize_axes(op, axes, self.ndim())?;
        if order.len() != self.ndim() {
            let (axes, shape) = (tuple(axes), tuple(self.shape()));
            let message = format!("axes {axes} do not name every axis of shape {shape}");
            return Err(Error::axis(op, message));
        }
        Ok(self.pick(&order))
    }

    /// The axes in reverse order.
    pub fn transpose(&self) -> Layout {
        self.pick(&(0..self.ndim()).rev().collect::<Dims>())
    }

    /// Two axes exchanged.
    pub fn swap_axes(&self, axis1: isize, axis2: isize) -> Result<Layout> {
        let mut order: Dims = (0..self.ndim()).collect();
        order.swap(self.axis("swap_axes", axis1)?, self.axis("swap_axes", axis2)?);
        Ok(self.pick(&order))
    }

    /// Axis `from` moved to place `to`; the others keep their order.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// assert_eq!(Layout::contiguous(&[2, 3, 4])?.move_axis(0, -1)?.shape(), [3, 4, 2]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn move_axis(&self, from: isize, to: isize) -> Result<Layout> {
        self.move_axes(&[from], &[to])
    }

    /// Axes `from` moved to places `to`; the others keep their order.
    pub fn move_axes(&self, from: &[isize], to: &[isize]) -> Result<Layout> {
        let op = "move_axes";
        if from.len() != to.len() {
            let (from, to) = (tuple(from), tuple(to));
            return Err(Error::axis(op, format!("{from} and {to} differ in length")));
        }
        let from = normalize_axes(op, from, self.ndim())?;
        let to = normalize_axes(op, to, self.ndim())?;
        let mut order: Dims = (0..self.ndim()).filter(|axis| !from.contains(axis)).collect();
        let mut moves: SmallVec<[(usize, usize); 6]> = to.into_iter().zip(from).collect();
        // First places first: each finds all axes that belong before it.
        moves.sort_unstable();
        moves.into_iter().for_each(|(place, axis)| order.insert(place, axis));
        Ok(self.pick(&order))
    }

    /// A new axis of size one at place `axis` of the result.
    pub fn expand_dims(&self, axis: isize) -> Result<Layout> {
        let op = "expand_dims";
        // One of the axes of the result.
        let axis = normalize_axis(op, axis, self.ndim() + 1)?;
        let (mut shape, mut strides) = (self.dims(), self.steps());
        shape.insert(axis, 1);
        strides.insert(axis, 0);
        check_shape(op, &shape)?;
        Ok(self.derived(shape, strides, 0))
    }

    /// Without the named axes, which must have size one; without all of size one for `None`.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[1, 3, 1])?;
    /// assert_eq!(layout.squeeze(None)?.shape(), [3]);
    /// assert_eq!(layout.squeeze(Some(&[-1]))?.shape(), [1, 3]);
    /// assert!(layout.squeeze(Some(&[1])).is_err());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<Layout> {
        let op = "squeeze";
        let Some(axes) = axes else {
            let order: Dims = (0..self.ndim()).filter(|&axis| self.shape()[axis] != 1).collect();
            return Ok(self.pick(&order));
        };
        let axes = normalize_axes(op, axes, self.ndim())?;
        for &axis in &axes {
            let n = self.shape()[axis];
            if n != 1 {
                let shape = tuple(self.shape());
                let message = format!("axis {axis} of shape {shape} has size {n}, not 1");
                return Err(Error::shape(op, message));
            }
        }
        let order: Dims = (0..self.ndim()).filter(|axis| !axes.contains(axis)).collect();
        Ok(self.pick(&order))
    }

    /// The named axes run backwards; all of them for `None`.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[3, 4])?.flip(Some(&[0]))?;
    /// assert_eq!((layout.strides(), layout.offset()), (&[-4, 1][..], 8));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn flip(&self, axes: Option<&[isize]>) -> Result<Layout> {
        Ok(match axes {
            Some(axes) => self.reversed(&normalize_axes("flip", axes, self.ndim())?),
            None => self.reversed(&(0..self.ndim()).collect::<Dims>()),
        })
    }

    /// The diagonal of two axes as the last axis; `offset` counts to the right of the main
    /// diagonal (below it if negative), and beyond the edge the diagonal is empty.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[3, 4])?.diagonal(1, 0, 1)?;
    /// assert_eq!((layout.shape(), layout.strides(), layout.offset()), (&[3][..], &[5][..], 1));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<Layout> {
        let axes = normalize_axes("diagonal", &[axis1, axis2], self.ndim())?;
        let (axis1, axis2) = (axes[0], axes[1]);
        let (stride1, stride2) = (self.strides()[axis1], self.strides()[axis2]);
        let (mut n1, mut n2) = (self.shape()[axis1], self.shape()[axis2]);
        let shift = if offset < 0 {
            n1 = n1.saturating_sub(offset.unsigned_abs());
            offset.wrapping_neg().wrapping_mul(stride1)
        } else {
            n2 = n2.saturating_sub(offset.unsigned_abs());
            offset.wrapping_mul(stride2)
        };
        let (mut shape, mut strides) = (Dims::new(), Strides::new());
        for (axis, (n, stride)) in self.axes().enumerate() {
            if axis != axis1 && axis != axis2 {
                shape.push(n);
                strides.push(stride);
            }
        }
        shape.push(n1.min(n2));
        strides.push(stride1.wrapping_add(stride2));
        Ok(self.derived(shape, strides, shift))
    }

    /// Every window of the given sizes along `axes`; the windows are new axes at the end. As in NumPy's
    /// `sliding_window_view`, an axis named twice gives windows of windows.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[10])?.sliding_windows(&[3], &[0])?;
    /// assert_eq!((layout.shape(), layout.strides()), (&[8, 3][..], &[1, 1][..]));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn sliding_windows(&self, window: &[usize], axes: &[isize]) -> Result<Layout> {
        let op = "sliding_windows";
        if window.len() != axes.len() {
            let (window, axes) = (tuple(window), tuple(axes));
            let message = format!("window {window} and axes {axes} differ in length");
            return Err(Error::value(op, message));
        }
        let (mut shape, mut strides) = (self.dims(), self.steps());
        for (&size, &axis) in window.iter().zip(axes) {
            let axis = self.axis(op, axis)?;
            let n = shape[axis];
            if size == 0 || size > n {
                let message = format!("a window of {size} does not fit axis {axis} with size {n}");
                return Err(Error::value(op, message));
            }
            shape[axis] = n - size + 1;
            shape.push(size);
            strides.push(strides[axis]);
        }
        check_shape(op, &shape)?;
        Ok(self.derived(shape, strides, 0))
    }

    /// The parts of `axis` between `boundaries`, one more than there are boundaries.
    ///
    /// As in NumPy, boundaries beyond the end and boundaries that go back give empty parts.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let parts = Layout::contiguous(&[7])?.split(0, &[2, 5])?;
    /// let sizes: Vec<_> = parts.iter().map(|part| part.len()).collect();
    /// assert_eq!(sizes, [2, 3, 2]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn split(&self, axis: isize, boundaries: &[usize]) -> Result<Vec<Layout>> {
        let axis = self.axis("split", axis)?;
        let n = self.shape()[axis];
        let starts = std::iter::once(0).chain(boundaries.iter().copied());
        let stops = boundaries.iter().copied().chain(std::iter::once(n));
        let parts = starts.zip(stops).map(|(start, stop)| {
            let start = start.min(n);
            self.part(axis, start, stop.min(n).saturating_sub(start))
        });
        Ok(parts.collect())
    }

    /// The `len` elements of `axis` from `start` on.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[3, 4])?.narrow(1, 1, 2)?;
    /// assert_eq!((layout.shape(), layout.offset()), (&[3, 2][..], 1));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn narrow(&self, axis: isize, start: usize, len: usize) -> Result<Layout> {
        let op = "narrow";
        let axis = self.axis(op, axis)?;
        let n = self.shape()[axis];
        if start.checked_add(len).is_none_or(|stop| stop > n) {
            let message = format!("{len} from {start} on leave axis {axis} with size {n}");
            return Err(Error::index(op, message));
        }
        Ok(self.part(axis, start, len))
    }

    /// Element `index` of `axis`, without that axis.
    pub fn index_axis(&self, axis: isize, index: usize) -> Result<Layout> {
        let axis = self.axis("index", axis)?;
        let n = self.shape()[axis];
        if index >= n {
            let message = format!("{index} is out of bounds for axis {axis} with size {n}");
            return Err(Error::index("index", message));
        }
        let order: Dims = (0..self.ndim()).filter(|&k| k != axis).collect();
        Ok(self.part(axis, index, 1).pick(&order))
    }

    /// The axis that a user's number names.
    fn axis(&self, op: &str, axis: isize) -> Result<usize> {
        normalize_axis(op, axis, self.ndim())
    }

    /// The named axes, each at most once; those left out must have size one.
    fn pick(&self, order: &[usize]) -> Layout {
        let shape = order.iter().map(|&axis| self.shape()[axis]).collect();
        let strides = order.iter().map(|&axis| self.strides()[axis]).collect();
        self.derived(shape, strides, 0)
    }

    /// [`Layout::flip`] of axes that exist, each named once.
    pub(crate) fn reversed(&self, axes: &[usize]) -> Layout {
        let mut strides = self.steps();
        let mut shift = 0isize;
        for &axis in axes {
            let last = self.shape()[axis].wrapping_sub(1).cast_signed();
            shift = shift.wrapping_add(last.wrapping_mul(strides[axis]));
            strides[axis] = strides[axis].wrapping_neg();
        }
        self.derived(self.dims(), strides, shift)
    }

    /// [`Layout::narrow`] with numbers known to be in bounds.
    fn part(&self, axis: usize, start: usize, len: usize) -> Layout {
        let mut shape = self.dims();
        shape[axis] = len;
        let shift = start.cast_signed().wrapping_mul(self.strides()[axis]);
        self.derived(shape, self.steps(), shift)
    }

    fn dims(&self) -> Dims {
        Dims::from_slice(self.shape())
    }

    fn steps(&self) -> Strides {
        Strides::from_slice(self.strides())
    }

    /// The given axes as a layout of their own from `offset`; for nests that walk some axes apart.
    ///
    /// The caller vouches that every index of those axes stays in `0..=isize::MAX` from there.
    pub(crate) fn subspace(&self, axes: &[usize], offset: usize) -> Layout {
        let shape: Dims = axes.iter().map(|&axis| self.shape()[axis]).collect();
        let strides = if self.is_empty() {
            // Strides of an empty layout hold any number, yet these axes alone may be walked.
            smallvec![0; axes.len()]
        } else {
            axes.iter().map(|&axis| self.strides()[axis]).collect()
        };
        Layout::scalar().derived(shape, strides, offset.cast_signed())
    }
}
