//! New arrays: constants, identity, from Rust data. Evenly spaced numbers are in `ranges`.

use tilework_backend::{Fresh, Memory, Moment};
use tilework_error::{Error, Result, tuple};
use tilework_layout::Layout;
use tilework_ops::{DType, Element, Id, Number};

use super::Array;
use super::nested::Nested;
use super::operands::Arg;
use crate::device::Device;

impl Array {
    /// An array whose elements are not set: old data, never undefined memory.
    pub fn empty(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::empty_on(Device::current(), shape, dtype)
    }

    /// [`Array::empty`] on a device.
    pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Array::unset("empty", device, shape, dtype)
    }

    /// [`Array::empty_on`] for an operation, which its errors name.
    pub(crate) fn unset(
        operation: &str,
        device: Device,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Array> {
        Ok(Array::from_fresh(device.allocate(operation, shape, dtype, false)?, device))
    }

    /// An array of zeros.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::zeros_on(Device::current(), shape, dtype)
    }

    /// [`Array::zeros`] on a device.
    pub fn zeros_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Array::zeros_for("zeros", device, shape, dtype)
    }

    /// [`Array::zeros_on`] for an operation, which its errors name.
    fn zeros_for(operation: &str, device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Ok(Array::from_fresh(device.allocate(operation, shape, dtype, true)?, device))
    }

    /// An array of ones.
    pub fn ones(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::ones_on(Device::current(), shape, dtype)
    }

    /// [`Array::ones`] on a device.
    pub fn ones_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Array::full_for("ones", device, shape, Number::from(1), dtype)
    }

    /// An array of one value, which `dtype` must be able to hold.
    pub fn full(shape: &[usize], value: impl Into<Number>, dtype: DType) -> Result<Array> {
        Array::full_on(Device::current(), shape, value, dtype)
    }

    /// [`Array::full`] on a device.
    pub fn full_on(
        device: Device,
        shape: &[usize],
        value: impl Into<Number>,
        dtype: DType,
    ) -> Result<Array> {
        Array::full_for("full", device, shape, value.into(), dtype)
    }

    /// [`Array::full_on`] for an operation, which its errors name.
    pub(super) fn full_for(
        operation: &str,
        device: Device,
        shape: &[usize],
        value: Number,
        dtype: DType,
    ) -> Result<Array> {
        value.to_scalar(operation, dtype)?;
        let array = Array::unset(operation, device, shape, dtype)?;
        array.fill(Arg::Number(value))?;
        Ok(array)
    }

    /// Ones on a diagonal, zeros elsewhere.
    pub fn eye(rows: usize, columns: usize, diagonal: isize, dtype: DType) -> Result<Array> {
        Array::eye_on(Device::current(), rows, columns, diagonal, dtype)
    }

    /// [`Array::eye`] on a device.
    pub fn eye_on(
        device: Device,
        rows: usize,
        columns: usize,
        diagonal: isize,
        dtype: DType,
    ) -> Result<Array> {
        let array = Array::zeros_for("eye", device, &[rows, columns], dtype)?;
        array.diagonal(diagonal, 0, 1)?.fill(1)?;
        Ok(array)
    }

    /// For each index a row of zeros with a one at that place, counted from the end if negative.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let rows = Array::from_slice(&[2i64, 0])?.one_hot(3, DType::Int8)?;
    /// assert_eq!(rows.to_vec::<i8>()?, [0, 0, 1, 1, 0, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn one_hot(&self, classes: usize, dtype: DType) -> Result<Array> {
        if !self.dtype().is_integer() {
            return Err(Error::dtype(
                "one_hot",
                format!("indices are integers, not {}", self.dtype()),
            ));
        }
        super::index::check_bounds("one_hot", self, 0, classes)?;
        let places = Array::count_for("one_hot", self.device, classes)?;
        // In 64 bits, since a narrow dtype need not hold the number of classes.
        let at = self.to_dtype(DType::Int64)?.expand_dims(-1)?;
        let at = crate::select(&at.less(0)?, &(&at + classes as i64)?, &at)?;
        at.equal(&places)?.to_dtype(dtype)
    }

    /// The lower triangle of the last two axes: elements on and below a diagonal, zeros elsewhere.
    pub fn tril(&self, diagonal: isize) -> Result<Array> {
        self.triangle("tril", diagonal, Id::GreaterEqual)
    }

    /// The upper triangle of the last two axes: elements on and above a diagonal, zeros elsewhere.
    pub fn triu(&self, diagonal: isize) -> Result<Array> {
        self.triangle("triu", diagonal, Id::LessEqual)
    }

    fn triangle(&self, operation: &'static str, diagonal: isize, keeps: Id) -> Result<Array> {
        let [.., rows, columns] = *self.shape() else {
            let message = format!("needs two axes or more, not shape {}", tuple(self.shape()));
            return Err(Error::shape(operation, message));
        };
        // Beyond these all diagonals are alike, and sums with a row number do not overflow.
        let diagonal = diagonal.clamp(-(rows as isize), columns as isize);
        let row =
            (&Array::count_for(operation, self.device, rows)?.expand_dims(1)? + diagonal as i64)?;
        let column = Array::count_for(operation, self.device, columns)?;
        let mask = super::apply(keeps, &[Arg::Array(&row), Arg::Array(&column)])?;
        super::select(&mask, self, Number::Bool(false))
    }

    /// An array of one axis with these elements.
    pub fn from_slice<T: Element>(elements: &[T]) -> Result<Array> {
        Array::from_slice_on(Device::current(), elements)
    }

    /// [`Array::from_slice`] on a device.
    pub fn from_slice_on<T: Element>(device: Device, elements: &[T]) -> Result<Array> {
        Array::holding(device, &[elements.len()], elements)
    }

    /// An array of this shape with these elements, which are as many.
    fn holding<T: Element>(device: Device, shape: &[usize], elements: &[T]) -> Result<Array> {
        const BLOCK: usize = 1 << 16;
        let array = Array::unset("from_slice", device, shape, T::DTYPE)?;
        let mut raw: Vec<T::Raw> = Vec::with_capacity(elements.len().min(BLOCK));
        for (k, block) in elements.chunks(BLOCK).enumerate() {
            raw.clear();
            raw.extend(block.iter().map(|element| element.to_raw()));
            let at = k * BLOCK * size_of::<T::Raw>();
            device.upload("from_slice", bytemuck::cast_slice(&raw), array.storage(), at)?;
        }
        Ok(array)
    }

    /// An array of this shape with these elements in row-major order.
    pub fn from_shape<T: Element>(shape: &[usize], elements: &[T]) -> Result<Array> {
        Array::from_shape_on(Device::current(), shape, elements)
    }

    /// [`Array::from_shape`] on a device.
    pub fn from_shape_on<T: Element>(
        device: Device,
        shape: &[usize],
        elements: &[T],
    ) -> Result<Array> {
        if Layout::contiguous(shape)?.len() != elements.len() {
            let message = format!("{} elements do not fill shape {}", elements.len(), tuple(shape));
            return Err(Error::shape("from_shape", message));
        }
        Array::holding(device, shape, elements)
    }

    /// An array from nested vectors, arrays or slices of one shape.
    ///
    /// ```
    /// use tilework::Array;
    /// assert_eq!(Array::from_nested(&vec![vec![1.0f64, 2.0], vec![3.0, 4.0]])?.shape(), [2, 2]);
    /// let why = Array::from_nested(&vec![vec![1.0f64, 2.0], vec![3.0]]).unwrap_err();
    /// assert_eq!(why.to_string(), "from_nested: shapes (2,) and (1,) in one list");
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn from_nested<N: Nested>(nested: &N) -> Result<Array> {
        Array::from_nested_on(Device::current(), nested)
    }

    /// [`Array::from_nested`] on a device.
    pub fn from_nested_on<N: Nested>(device: Device, nested: &N) -> Result<Array> {
        let shape = nested.shape();
        let mut elements = Vec::new();
        nested.flatten(&shape, &mut elements)?;
        Array::from_shape_on(device, &shape, &elements)
    }

    /// An array of no axes.
    pub fn scalar<T: Element>(element: T) -> Result<Array> {
        Array::from_shape(&[], &[element])
    }

    /// The same elements on another device; this array itself if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        self.to_device_at(device, &Moment::default())
    }

    /// The elements that it has at a moment since which nobody wrote it, on another device.
    pub(crate) fn to_device_at(&self, device: Device, moment: &Moment) -> Result<Array> {
        if device == self.device {
            return Ok(self.clone());
        }
        let (compact, now) = (self.compact()?, Moment::default());
        if !compact.storage().is_on_host() && device.memory() == Memory::Host {
            // A copy that is compact is there later.
            let moment = if self.is_contiguous() { moment } else { &now };
            let here = Array::unset("to_device", device, self.shape(), self.dtype())?;
            here.assign_from("to_device", &compact, moment)?;
            return Ok(here);
        }
        let size = self.dtype().size();
        // Over all pieces, so that none of them sees a write that others do not.
        let held = compact.device.held("to_device", compact.storage())?;
        let block = device.receive("to_device", self.len() * size, &mut |at, piece| {
            held.download(compact.offset() * size + at, piece)
        })?;
        drop(held);
        let fresh = Fresh::row_major(block, self.shape(), self.dtype())?;
        Ok(Array::from_fresh(fresh, device))
    }
}

/// What the first two axes of a grid are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Rows and columns of a picture: the first array varies along the second axis.
    Xy,
    /// Indices of a matrix: the first array varies along the first axis.
    Ij,
}

/// Coordinates of a grid: from arrays of one axis, arrays of one axis per array.
///
/// ```
/// use tilework::{Array, Indexing, meshgrid};
/// let (x, y) = (Array::from_slice(&[1, 2, 3])?, Array::from_slice(&[4, 5])?);
/// assert_eq!(meshgrid(&[&x, &y], Indexing::Xy)?[0].shape(), [2, 3]);
/// assert_eq!(meshgrid(&[&x, &y], Indexing::Ij)?[0].shape(), [3, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn meshgrid(arrays: &[&Array], indexing: Indexing) -> Result<Vec<Array>> {
    let flat = |array: &&Array| array.ndim() <= 1;
    if !arrays.iter().all(flat) {
        return Err(Error::shape("meshgrid", "coordinates have one axis each"));
    }
    let mut shape: Vec<usize> = arrays.iter().map(|array| array.len()).collect();
    let swap = indexing == Indexing::Xy && arrays.len() >= 2;
    if swap {
        shape.swap(0, 1);
    }
    let place = |k: usize| match (swap, k) {
        (true, 0) => 1,
        (true, 1) => 0,
        _ => k,
    };
    arrays
        .iter()
        .enumerate()
        .map(|(k, array)| {
            let mut along = vec![1isize; arrays.len()];
            along[place(k)] = array.len() as isize;
            array.reshape(&along)?.broadcast_to(&shape)?.copy()
        })
        .collect()
}
