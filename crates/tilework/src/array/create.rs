//! New arrays: constants, ranges, identity, from Rust data.

use std::ops::{Range, RangeInclusive};

use tilework_error::{Error, Result, tuple};
use tilework_layout::Layout;
use tilework_ops::{DType, Element, Id, Number};

use super::Array;
use super::nested::Nested;
use super::operands::Arg;
use crate::device::Device;

/// A range of real numbers, with its end (`0.0..=1.0`) or without it (`0.0..1.0`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    start: f64,
    stop: f64,
    closed: bool,
}

impl From<Range<f64>> for Span {
    fn from(range: Range<f64>) -> Span {
        Span { start: range.start, stop: range.end, closed: false }
    }
}

impl From<RangeInclusive<f64>> for Span {
    fn from(range: RangeInclusive<f64>) -> Span {
        Span { start: *range.start(), stop: *range.end(), closed: true }
    }
}

impl Array {
    /// An array whose elements are not set: old data, never undefined memory.
    pub fn empty(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::empty_on(Device::current(), shape, dtype)
    }

    /// [`Array::empty`] on a device.
    pub fn empty_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Ok(Array::from_fresh(device.allocate(shape, dtype, false)?, device))
    }

    /// An array of zeros.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::zeros_on(Device::current(), shape, dtype)
    }

    /// [`Array::zeros`] on a device.
    pub fn zeros_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Ok(Array::from_fresh(device.allocate(shape, dtype, true)?, device))
    }

    /// An array of ones.
    pub fn ones(shape: &[usize], dtype: DType) -> Result<Array> {
        Array::ones_on(Device::current(), shape, dtype)
    }

    /// [`Array::ones`] on a device.
    pub fn ones_on(device: Device, shape: &[usize], dtype: DType) -> Result<Array> {
        Array::full_on(device, shape, Number::from(1), dtype)
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
        let value = value.into();
        value.to_scalar("full", dtype)?;
        let array = Array::empty_on(device, shape, dtype)?;
        array.fill(Arg::Number(value))?;
        Ok(array)
    }

    /// The numbers from `start` up to, not including, `stop`, in steps.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// assert_eq!(Array::arange(5, 0, -2, DType::Int32)?.to_vec::<i32>()?, [5, 3, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn arange(
        start: impl Into<Number>,
        stop: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
    ) -> Result<Array> {
        Array::arange_on(Device::current(), start, stop, step, dtype)
    }

    /// [`Array::arange`] on a device.
    pub fn arange_on(
        device: Device,
        start: impl Into<Number>,
        stop: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
    ) -> Result<Array> {
        let (start, stop, step) = (start.into(), stop.into(), step.into());
        if let (Number::Int(start), Number::Int(stop), Number::Int(step)) = (start, stop, step) {
            return arange_integers(device, start, stop, step, dtype);
        }
        let real = |number: Number| number.cast(DType::Float64).get::<f64>();
        let (start, stop, step) = (real(start), real(stop), real(step));
        let count = ((stop - start) / step).ceil();
        if step == 0.0 || !count.is_finite() {
            return Err(Error::value(
                "arange",
                format!("no range from {start} to {stop} in steps of {step}"),
            ));
        }
        let numbers = Array::count_on(device, count.max(0.0) as usize)?.astype(DType::Float64)?;
        numbers.mul_assign(step)?;
        numbers.add_assign(start)?;
        numbers.to_dtype(dtype)
    }

    /// `count` numbers at equal distances in a range, with its end or without it.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let closed = Array::linspace(0.0..=1.0, 5, DType::Float64)?;
    /// assert_eq!(closed.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// let open = Array::linspace(0.0..1.0, 4, DType::Float64)?;
    /// assert_eq!(open.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn linspace(range: impl Into<Span>, count: usize, dtype: DType) -> Result<Array> {
        Array::linspace_on(Device::current(), range, count, dtype)
    }

    /// [`Array::linspace`] on a device.
    pub fn linspace_on(
        device: Device,
        range: impl Into<Span>,
        count: usize,
        dtype: DType,
    ) -> Result<Array> {
        let Span { start, stop, closed } = range.into();
        let steps = if closed { count.saturating_sub(1) } else { count };
        let numbers = Array::count_on(device, count)?.astype(DType::Float64)?;
        let step = (stop - start) / steps.max(1) as f64;
        if step == 0.0 || !step.is_finite() {
            // A step that vanishes or overflows: scale the fraction instead.
            numbers.div_assign(steps.max(1))?;
            numbers.mul_assign(stop - start)?;
        } else {
            numbers.mul_assign(step)?;
        }
        numbers.add_assign(start)?;
        if closed && count > 1 {
            numbers.slice(&[(count - 1).into()])?.fill(stop)?;
        }
        if dtype.is_integer() { numbers.floor()?.to_dtype(dtype) } else { numbers.to_dtype(dtype) }
    }

    /// 0, 1, 2, ... as int64.
    pub(crate) fn count_on(device: Device, count: usize) -> Result<Array> {
        Array::ramp_on(device, count, 0, 1)
    }

    /// start, start + step, start + 2 step, ... as int64.
    ///
    /// Memory is asked for first, and the host makes the numbers block by block: a count that is too
    /// large is an error and nothing else.
    fn ramp_on(device: Device, count: usize, start: i64, step: i64) -> Result<Array> {
        const BLOCK: usize = 1 << 16;
        let array = Array::empty_on(device, &[count], DType::Int64)?;
        let mut numbers: Vec<i64> = Vec::with_capacity(count.min(BLOCK));
        for first in (0..count).step_by(BLOCK) {
            let block = first as i64..count.min(first + BLOCK) as i64;
            numbers.clear();
            numbers.extend(block.map(|k| start.wrapping_add(k.wrapping_mul(step))));
            let (bytes, at) = (bytemuck::cast_slice(&numbers), first * size_of::<i64>());
            device.upload("arange", bytes, array.storage(), at)?;
        }
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
        let array = Array::zeros_on(device, &[rows, columns], dtype)?;
        array.diagonal(diagonal, 0, 1)?.fill(1)?;
        Ok(array)
    }

    /// For each index a row of zeros with a one at that place.
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
        let places = Array::count_on(self.device, classes)?;
        self.expand_dims(-1)?.equal(&places)?.to_dtype(dtype)
    }

    /// The lower triangle of the last two axes: elements on and below a diagonal, zeros elsewhere.
    pub fn tril(&self, diagonal: isize) -> Result<Array> {
        self.triangle("tril", diagonal, Id::GreaterEqual)
    }

    /// The upper triangle of the last two axes: elements on and above a diagonal, zeros elsewhere.
    pub fn triu(&self, diagonal: isize) -> Result<Array> {
        self.triangle("triu", diagonal, Id::LessEqual)
    }

    fn triangle(&self, operation: &str, diagonal: isize, keeps: Id) -> Result<Array> {
        let [.., rows, columns] = *self.shape() else {
            let message = format!("needs two axes or more, not shape {}", tuple(self.shape()));
            return Err(Error::shape(operation, message));
        };
        // Beyond these all diagonals are alike, and sums with a row number do not overflow.
        let diagonal = diagonal.clamp(-(rows as isize), columns as isize);
        let row = (&Array::count_on(self.device, rows)?.expand_dims(1)? + diagonal as i64)?;
        let column = Array::count_on(self.device, columns)?;
        let mask = super::apply(keeps, &[Arg::Array(&row), Arg::Array(&column)])?;
        super::select(&mask, self, Number::Bool(false))
    }

    /// An array of one axis with these elements.
    pub fn from_slice<T: Element>(elements: &[T]) -> Result<Array> {
        Array::from_slice_on(Device::current(), elements)
    }

    /// [`Array::from_slice`] on a device.
    pub fn from_slice_on<T: Element>(device: Device, elements: &[T]) -> Result<Array> {
        const BLOCK: usize = 1 << 16;
        let array = Array::empty_on(device, &[elements.len()], T::DTYPE)?;
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
        Array::from_slice_on(device, elements)?.with_layout(Layout::contiguous(shape)?)
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
        if device == self.device {
            return Ok(self.clone());
        }
        let array = Array::empty_on(device, self.shape(), self.dtype())?;
        let mut at = 0;
        self.compact()?.each_piece("to_device", &mut |piece| {
            device.upload("to_device", piece, array.storage(), at)?;
            at += piece.len();
            Ok(())
        })?;
        Ok(array)
    }
}

fn arange_integers(
    device: Device,
    start: i128,
    stop: i128,
    step: i128,
    dtype: DType,
) -> Result<Array> {
    if step == 0 {
        return Err(Error::value("arange", "the step is zero"));
    }
    for number in [start, stop, step] {
        if number < i64::MIN.into() || number > u64::MAX.into() {
            return Err(Error::value("arange", format!("{number} is out of range")));
        }
    }
    let span = if step > 0 { stop - start } else { start - stop };
    let count = if span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
    let count = usize::try_from(count)
        .map_err(|_| Error::out_of_memory("arange", format!("{count} elements")))?;
    let last = start + step * (count as i128 - 1).max(0);
    let unsigned = dtype == DType::UInt64;
    let fits = |x: i128| i64::try_from(x).is_ok() || unsigned && u64::try_from(x).is_ok();
    if let Some(number) = [start, last].into_iter().find(|&number| !fits(number)) {
        return Err(Error::value("arange", format!("{number} is out of range")));
    }
    // Both ends fit 64 bits, so the bits between them are right, whatever was cut off the step.
    Array::ramp_on(device, count, start as i64, step as i64)?.to_dtype(dtype)
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
