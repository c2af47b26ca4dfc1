//! How elements lie in memory: row by row, column by column, or as they do already; and the same
//! bytes seen as another dtype.
//!
//! Everything here is a permutation of axes around an operation in row-major order. Called by users
//! and by the Python shell, whose `order=` and `view` these are.

use tilework_error::{Error, Result, tuple};
use tilework_layout::{Dims, Layout, Strides};
use tilework_ops::DType;

use super::Array;

/// An order of elements, by NumPy's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// C: the last index runs fastest.
    RowMajor,
    /// F: the first index runs fastest.
    ColumnMajor,
    /// A: column-major for arrays that lie so without gaps, row-major for all others.
    Either,
    /// K: as they lie in memory, from the longest step to the shortest.
    Keep,
}

impl Array {
    /// Whether the elements lie in column-major order without gaps.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let x = Array::zeros(&[2, 3], DType::Float32)?;
    /// assert!(x.transpose().is_column_major() && !x.is_column_major());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn is_column_major(&self) -> bool {
        self.transpose().is_contiguous()
    }

    /// Whether a new array in this order would lie as this one does.
    fn is_in(&self, order: Order) -> bool {
        match order {
            Order::RowMajor => self.is_contiguous(),
            Order::ColumnMajor => self.is_column_major(),
            Order::Either => self.is_contiguous() || self.is_column_major(),
            Order::Keep => true,
        }
    }

    /// The axes from the slowest to the fastest that an order means for this array.
    fn axes_in(&self, order: Order) -> Strides {
        let mut axes: Strides = (0..self.ndim() as isize).collect();
        match order {
            Order::RowMajor => {}
            Order::ColumnMajor => axes.reverse(),
            Order::Either if self.is_column_major() && !self.is_contiguous() => axes.reverse(),
            Order::Either => {}
            Order::Keep => {
                let step = |&axis: &isize| self.strides()[axis as usize].unsigned_abs();
                axes.sort_by_key(|axis| std::cmp::Reverse(step(axis)));
            }
        }
        axes
    }

    /// What `work` makes of the array with its axes in this order, axes put back.
    fn in_order(&self, order: Order, work: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
        let axes = self.axes_in(order);
        if axes.is_sorted() {
            return work(self);
        }
        let mut back = axes.clone();
        for (to, &from) in axes.iter().enumerate() {
            back[from as usize] = to as isize;
        }
        work(&self.permute(&axes)?)?.permute(&back)
    }

    /// A new array whose elements lie in this order.
    ///
    /// ```
    /// use tilework::{Array, DType, Order};
    /// let x = Array::zeros(&[2, 3], DType::Float32)?;
    /// assert_eq!(x.copy_in(Order::ColumnMajor)?.strides(), [1, 2]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn copy_in(&self, order: Order) -> Result<Array> {
        self.in_order(order, Array::copy)
    }

    /// The elements cast to `dtype`, in this order; this array itself if it is both already.
    pub fn to_dtype_in(&self, dtype: DType, order: Order) -> Result<Array> {
        if dtype == self.dtype() && self.is_in(order) {
            return Ok(self.clone());
        }
        self.astype_in(dtype, order)
    }

    /// A new array of the elements cast to `dtype`, in this order.
    pub fn astype_in(&self, dtype: DType, order: Order) -> Result<Array> {
        self.in_order(order, |array| array.astype(dtype))
    }

    /// One axis, in this order; a view where the strides permit.
    ///
    /// ```
    /// use tilework::{Array, Order};
    /// let x = Array::from_shape(&[2, 2], &[1, 2, 3, 4])?;
    /// assert_eq!(x.ravel_in(Order::ColumnMajor)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn ravel_in(&self, order: Order) -> Result<Array> {
        let axes = self.axes_in(order);
        if axes.is_sorted() { self.ravel() } else { self.permute(&axes)?.ravel() }
    }

    /// Another shape, elements taken and laid out in this order; a view where the strides permit.
    pub fn reshape_in(&self, shape: &[isize], order: Order) -> Result<Array> {
        let columns = match order {
            Order::RowMajor => false,
            Order::ColumnMajor => true,
            Order::Either => self.is_column_major() && !self.is_contiguous(),
            Order::Keep => {
                let message = "an order is needed that does not depend on the memory: C, F or A";
                return Err(Error::value("reshape", message));
            }
        };
        if !columns {
            return self.reshape(shape);
        }
        let reversed: Vec<isize> = shape.iter().rev().copied().collect();
        Ok(self.transpose().reshape(&reversed)?.transpose())
    }

    /// The same memory as elements of another dtype. Where their sizes differ, the last axis grows or
    /// shrinks, and its elements must lie side by side.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let x = Array::from_slice(&[1.0f32, -2.0])?;
    /// assert_eq!(x.view_as(DType::UInt32)?.to_vec::<u32>()?, [0x3f80_0000, 0xc000_0000]);
    /// assert_eq!(x.view_as(DType::UInt8)?.shape(), [8]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn view_as(&self, dtype: DType) -> Result<Array> {
        let (old, new) = (self.dtype().size(), dtype.size());
        if old == new {
            return self.reinterpret(self.layout().clone(), dtype);
        }
        let wrong = |why: &str| {
            let (shape, from) = (tuple(self.shape()), self.dtype());
            let message = format!("{from} of shape {shape} as {dtype}: {why}");
            Err(Error::value("view", message))
        };
        let (mut shape, mut strides) =
            (Dims::from_slice(self.shape()), Strides::from_slice(self.strides()));
        let (Some(last), Some(step)) = (shape.last_mut(), strides.last_mut()) else {
            return wrong("there is no axis that could take the difference");
        };
        if *step != 1 && *last != 1 {
            return wrong("the elements of the last axis do not lie side by side; copy it first");
        }
        let offset;
        if new < old {
            let parts = old / new;
            let Some(more) = last.checked_mul(parts) else {
                return wrong("the last axis would have more elements than memory");
            };
            *last = more;
            offset = self.offset() * parts;
            // Those of axes that nobody walks may hold any number.
            strides.iter_mut().for_each(|step| *step = step.wrapping_mul(parts as isize));
        } else {
            let parts = new / old;
            if !last.is_multiple_of(parts) {
                return wrong("the last axis does not divide");
            }
            *last /= parts;
            let outer = &strides[..strides.len() - 1];
            let whole = |step: &isize| step.unsigned_abs().is_multiple_of(parts);
            if !self.offset().is_multiple_of(parts) || !outer.iter().all(whole) {
                return wrong("elements would begin at odd places; copy it first");
            }
            offset = self.offset() / parts;
            strides.iter_mut().for_each(|step| *step /= parts as isize);
        }
        if let Some(step) = strides.last_mut() {
            *step = 1;
        }
        self.reinterpret(Layout::new(&shape, &strides, offset)?, dtype)
    }
}
