//! New arrays: constants, ranges, identity, grids.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilework::{Array, DType, Device, Indexing, Number, Span};

use crate::args::{Diagonal, Length, ShapeArg, or_float, register};
use crate::array::{PyArray, shape_text};
use crate::convert::{self, ArrayArg};
use crate::device::{self, DeviceArg, or_current};
use crate::dtype::DTypeArg;
use crate::indexing::for_writing;
use crate::operand::Operand;
use crate::run::{run, volume};

/// A number, or an array of no axes that stands for one.
fn number(object: &Bound<'_, PyAny>, operation: &str) -> PyResult<Number> {
    let array = match Operand::of(object, device::current())? {
        Some(Operand::Number(number)) => return Ok(number),
        Some(Operand::Ours(array)) => array.clone(),
        Some(Operand::Made(array)) => array,
        None => {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{operation}: {kind} is not a number")));
        }
    };
    if array.len() != 1 {
        let shape = shape_text(array.shape());
        let message = format!("{operation}: one number is needed, not an array of shape {shape}");
        return Err(PyValueError::new_err(message));
    }
    PyArray(array).number(object.py())
}

/// A new array whose elements are not set.
///
/// >>> import tilework as tw
/// >>> tw.empty((2, 3)).shape
/// (2, 3)
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, device=None))]
fn empty(
    py: Python<'_>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let device = or_current(device);
    run(py, 1, device, || Array::empty_on(device, &shape.0, or_float(dtype))).map(PyArray)
}

/// A new array of zeros.
///
/// >>> import tilework as tw
/// >>> tw.zeros(3, dtype=tw.int8).tolist()
/// [0, 0, 0]
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, device=None))]
fn zeros(
    py: Python<'_>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let device = or_current(device);
    let make = || Array::zeros_on(device, &shape.0, or_float(dtype));
    run(py, volume(&shape.0), device, make).map(PyArray)
}

/// A new array of ones.
///
/// >>> import tilework as tw
/// >>> tw.ones(2).tolist()
/// [1.0, 1.0]
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, device=None))]
fn ones(
    py: Python<'_>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    filled(py, "ones", &shape.0, Number::Int(1), or_float(dtype), or_current(device))
}

/// A new array of one value.
///
/// >>> import tilework as tw
/// >>> tw.full(2, 7).tolist()
/// [7, 7]
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, *, device=None))]
fn full(
    py: Python<'_>,
    shape: ShapeArg,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let value = number(fill_value, "full")?;
    let dtype = dtype.map_or(value.default_dtype(), |dtype| dtype.0);
    filled(py, "full", &shape.0, value, dtype, or_current(device))
}

fn filled(
    py: Python<'_>,
    operation: &str,
    shape: &[usize],
    value: Number,
    dtype: DType,
    device: Device,
) -> PyResult<PyArray> {
    let value = for_writing(operation, value, dtype)?;
    run(py, volume(shape), device, || {
        Array::full_on(device, shape, value, dtype).map_err(|error| error.of(operation))
    })
    .map(PyArray)
}

/// The dtype and device of a new array that is made after another.
fn like(x: &Array, dtype: Option<DTypeArg>, device: Option<DeviceArg>) -> (DType, Device) {
    (dtype.map_or(x.dtype(), |d| d.0), device.map_or(x.device(), |d| d.0))
}

/// A new array of the shape of another, whose elements are not set.
///
/// >>> import tilework as tw
/// >>> tw.empty_like(tw.asarray([1, 2]), dtype="float32").dtype
/// dtype('float32')
#[pyfunction]
#[pyo3(signature = (x, /, dtype=None, *, device=None))]
fn empty_like(
    py: Python<'_>,
    x: ArrayArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (dtype, device) = like(&x.0, dtype, device);
    run(py, 1, device, || Array::empty_on(device, x.0.shape(), dtype)).map(PyArray)
}

/// Zeros in the shape of another array.
///
/// >>> import tilework as tw
/// >>> tw.zeros_like(tw.asarray([1.5, 2.5])).tolist()
/// [0.0, 0.0]
#[pyfunction]
#[pyo3(signature = (x, /, dtype=None, *, device=None))]
fn zeros_like(
    py: Python<'_>,
    x: ArrayArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (dtype, device) = like(&x.0, dtype, device);
    run(py, x.0.len(), device, || Array::zeros_on(device, x.0.shape(), dtype)).map(PyArray)
}

/// Ones in the shape of another array.
///
/// >>> import tilework as tw
/// >>> tw.ones_like(tw.asarray([[5, 6]])).tolist()
/// [[1, 1]]
#[pyfunction]
#[pyo3(signature = (x, /, dtype=None, *, device=None))]
fn ones_like(
    py: Python<'_>,
    x: ArrayArg,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (dtype, device) = like(&x.0, dtype, device);
    filled(py, "ones_like", x.0.shape(), Number::Int(1), dtype, device)
}

/// One value in the shape of another array.
///
/// >>> import tilework as tw
/// >>> tw.full_like(tw.asarray([5, 6]), 9).tolist()
/// [9, 9]
#[pyfunction]
#[pyo3(signature = (x, /, fill_value, dtype=None, *, device=None))]
fn full_like(
    py: Python<'_>,
    x: ArrayArg,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (dtype, device) = like(&x.0, dtype, device);
    let value = number(fill_value, "full_like")?;
    filled(py, "full_like", x.0.shape(), value, dtype, device)
}

/// The numbers from `start` up to, not including, `stop`; from 0 if only one number is given.
///
/// >>> import tilework as tw
/// >>> tw.arange(2, 8, 2).tolist()
/// [2, 4, 6]
#[pyfunction]
#[pyo3(signature = (start, /, stop=None, step=None, dtype=None, *, device=None), text_signature = "(start, /, stop=None, step=1, dtype=None, *, device=None)")]
fn arange(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    stop: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let first = number(start, "arange")?;
    let (start, stop) = match stop {
        Some(stop) => (first, number(stop, "arange")?),
        None => (Number::Int(0), first),
    };
    let step = step.map_or(Ok(Number::Int(1)), |step| number(step, "arange"))?;
    let whole = |number: Number| match number {
        Number::Bool(value) => Number::Int(value.into()),
        other => other,
    };
    let bounds = [start, stop, step].map(whole);
    if bounds.iter().any(|number| matches!(number, Number::Complex(_))) {
        return Err(PyTypeError::new_err("arange: complex numbers are in no order"));
    }
    let integers = bounds.iter().all(|number| matches!(number, Number::Int(_)));
    let default = if integers { DType::Int64 } else { DType::Float64 };
    let (dtype, device) = (dtype.map_or(default, |dtype| dtype.0), or_current(device));
    let [start, stop, step] = bounds;
    let work = || {
        let _scope = device.scope();
        Array::arange(start, stop, step, dtype)
    };
    // About how many there are, for judging how long it takes; the core counts them.
    let real = |number: Number| number.cast(DType::Float64).get::<f64>();
    let count = (real(stop) - real(start)) / real(step);
    let numbers = run(py, count as usize, device, work)?;
    if dtype == DType::Bool && numbers.len() > 2 {
        let message = format!("arange: {} steps of bools; there are two of them", numbers.len());
        return Err(PyTypeError::new_err(message));
    }
    Ok(PyArray(numbers))
}

/// `num` numbers from `start` to `stop`, which is the last of them unless `endpoint=False`.
///
/// >>> import tilework as tw
/// >>> tw.linspace(0.0, 1.0, 5).tolist()
/// [0.0, 0.25, 0.5, 0.75, 1.0]
#[pyfunction]
#[pyo3(signature = (start, stop, /, num=Length(50), endpoint=true, *, dtype=None, device=None), text_signature = "(start, stop, /, num=50, endpoint=True, *, dtype=None, device=None)")]
fn linspace(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Length,
    endpoint: bool,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (start, stop) = (number(start, "linspace")?, number(stop, "linspace")?);
    let Length(num) = num;
    let parts = |number: Number| {
        let z = number.cast(DType::Complex128).get::<tilework::Complex<f64>>();
        (z.re, z.im)
    };
    let complex = |number: Number| matches!(number, Number::Complex(_));
    let is_complex = complex(start) || complex(stop);
    let default = if is_complex { DType::Complex128 } else { DType::Float64 };
    let (dtype, device) = (dtype.map_or(default, |dtype| dtype.0), or_current(device));
    let ((a, b), (c, d)) = (parts(start), parts(stop));
    let span = |start, stop| if endpoint { Span::from(start..=stop) } else { (start..stop).into() };
    run(py, num, device, || {
        let _scope = device.scope();
        if !is_complex {
            return Array::linspace(span(a, c), num, dtype);
        }
        let real = Array::linspace(span(a, c), num, DType::Float64)?;
        let imag = Array::linspace(span(b, d), num, DType::Float64)?;
        tilework::complex(&real, &imag)?.to_dtype(dtype)
    })
    .map(PyArray)
}

/// Ones on a diagonal, zeros elsewhere.
///
/// >>> import tilework as tw
/// >>> tw.eye(2, dtype=tw.int8).tolist()
/// [[1, 0], [0, 1]]
#[pyfunction]
#[pyo3(signature = (n_rows, n_cols=None, /, k=Diagonal(0), dtype=None, *, device=None), text_signature = "(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None)")]
fn eye(
    py: Python<'_>,
    n_rows: Length,
    n_cols: Option<Length>,
    k: Diagonal,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let Length(rows) = n_rows;
    let (columns, device) = (n_cols.map_or(rows, |n| n.0), or_current(device));
    run(py, rows.saturating_mul(columns), device, || {
        let _scope = device.scope();
        Array::eye(rows, columns, k.0, or_float(dtype))
    })
    .map(PyArray)
}

/// The lower triangle of the last two axes, zeros above diagonal `k`.
///
/// >>> import tilework as tw
/// >>> tw.tril(tw.asarray([[1, 2], [3, 4]])).tolist()
/// [[1, 0], [3, 4]]
#[pyfunction]
#[pyo3(signature = (x, /, k=Diagonal(0)), text_signature = "(x, /, k=0)")]
fn tril(py: Python<'_>, x: ArrayArg, k: Diagonal) -> PyResult<PyArray> {
    run(py, x.0.len(), x.0.device(), || x.0.tril(k.0)).map(PyArray)
}

/// The upper triangle of the last two axes, zeros below diagonal `k`.
///
/// >>> import tilework as tw
/// >>> tw.triu(tw.asarray([[1, 2], [3, 4]]), k=1).tolist()
/// [[0, 2], [0, 0]]
#[pyfunction]
#[pyo3(signature = (x, /, k=Diagonal(0)), text_signature = "(x, /, k=0)")]
fn triu(py: Python<'_>, x: ArrayArg, k: Diagonal) -> PyResult<PyArray> {
    run(py, x.0.len(), x.0.device(), || x.0.triu(k.0)).map(PyArray)
}

/// Coordinates of a grid, one array for each axis.
///
/// >>> import tilework as tw
/// >>> x, y = tw.meshgrid(tw.arange(3), tw.arange(2))
/// >>> x.shape
/// (2, 3)
#[pyfunction]
#[pyo3(signature = (*arrays, indexing="xy"))]
fn meshgrid<'py>(
    py: Python<'py>,
    arrays: &Bound<'py, PyTuple>,
    indexing: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let indexing = match indexing {
        "ij" => Indexing::Ij,
        "xy" => Indexing::Xy,
        other => {
            let message = format!("meshgrid: indexing is \"xy\" or \"ij\", not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    let arrays = convert::all_together(&arrays.iter().collect::<Vec<_>>())?;
    let arrays: Vec<&Array> = arrays.iter().collect();
    let Some(first) = arrays.first() else { return Ok(PyTuple::empty(py)) };
    let size = arrays.iter().fold(1usize, |size, array| size.saturating_mul(array.len()));
    let grids = run(py, size, first.device(), || tilework::meshgrid(&arrays, indexing))?;
    PyTuple::new(py, grids.into_iter().map(PyArray))
}

/// A new array from anything that `asarray` takes; copies unless `copy` says otherwise.
///
/// >>> import tilework as tw
/// >>> tw.array([1, 2, 3]).shape
/// (3,)
#[pyfunction]
#[pyo3(signature = (obj, /, dtype=None, *, device=None, copy=true, order="K"))]
fn array(
    py: Python<'_>,
    obj: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    copy: Option<bool>,
    order: Option<&str>,
) -> PyResult<PyArray> {
    convert::asarray(py, obj, dtype, device, copy, order)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: empty, zeros, ones, full, empty_like, zeros_like, ones_like, full_like, arange,
        linspace, eye, tril, triu, meshgrid, array);
    Ok(())
}
