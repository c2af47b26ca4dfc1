//! What NumPy users reach for beyond the standard: softmax, pad, comparisons, windows.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tilework::{Array, Complex, Nan, Number, PadMode};
use tilework_ops::{Element, Kind, Value};

use crate::args::{Integers, ShapeArg, register};
use crate::array::{PyArray, PyNumber};
use crate::convert::{ArrayArg, together};
use crate::device;
use crate::errors::OrRaise;
use crate::operand::Operand;
use crate::run::{result_len, run, volume};

/// Exponentials that sum to one along an axis, without overflow.
///
/// >>> import tilework as tw
/// >>> tw.softmax(tw.asarray([0.0, 0.0])).tolist()
/// [0.5, 0.5]
#[pyfunction]
#[pyo3(signature = (x, /, axis=-1), text_signature = "(x, /, axis=-1)")]
fn softmax(py: Python<'_>, x: ArrayArg, axis: isize) -> PyResult<PyArray> {
    run(py, x.0.len(), x.0.device(), || x.0.softmax(axis)).map(PyArray)
}

fn nan(equal: bool) -> Nan {
    if equal { Nan::Equal } else { Nan::Unequal }
}

/// Whether elements are equal up to `atol + rtol * |x2|`.
///
/// >>> import tilework as tw
/// >>> tw.isclose(tw.asarray([1.0, 2.0]), tw.asarray([1.0 + 1e-9, 3.0])).tolist()
/// [True, False]
#[pyfunction]
#[pyo3(signature = (x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=false))]
fn isclose(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
) -> PyResult<PyArray> {
    let [x1, x2] = together([x1, x2])?;
    let work = || x1.isclose(&x2, rtol, atol, nan(equal_nan));
    run(py, result_len(&[x1.shape(), x2.shape()]), x1.device(), work).map(PyArray)
}

/// Whether all elements are equal up to `atol + rtol * |x2|`.
///
/// >>> import tilework as tw
/// >>> tw.allclose(tw.asarray([1.0]), tw.asarray([1.0 + 1e-9]))
/// True
#[pyfunction]
#[pyo3(signature = (x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=false))]
fn allclose(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
) -> PyResult<bool> {
    let [x1, x2] = together([x1, x2])?;
    let work = || x1.allclose(&x2, rtol, atol, nan(equal_nan));
    run(py, result_len(&[x1.shape(), x2.shape()]), x1.device(), work)
}

/// Whether two arrays have one shape and equal elements.
///
/// >>> import tilework as tw
/// >>> tw.array_equal(tw.asarray([1, 2]), tw.asarray([1.0, 2.0]))
/// True
#[pyfunction]
#[pyo3(signature = (x1, x2, /, equal_nan=false))]
fn array_equal(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    equal_nan: bool,
) -> PyResult<bool> {
    let [x1, x2] = together([x1, x2])?;
    run(py, x1.len(), x1.device(), || x1.array_equal(&x2, nan(equal_nan)))
}

/// A margin around an array: a number, a pair (before, after), or one pair for each axis; filled
/// by mode "constant", "edge", "reflect", "symmetric" or "wrap". Constants are given as widths are; in corners
/// those of the last axis stand.
///
/// >>> import tilework as tw
/// >>> tw.pad(tw.asarray([1, 2]), 1).tolist()
/// [0, 1, 2, 0]
#[pyfunction]
#[pyo3(signature = (x, pad_width, /, mode="constant", *, constant_values=None), text_signature = "(x, pad_width, /, mode='constant', *, constant_values=0)")]
fn pad(
    py: Python<'_>,
    x: ArrayArg,
    pad_width: &Bound<'_, PyAny>,
    mode: &str,
    constant_values: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let ndim = x.0.ndim();
    let widths =
        for_axes("pad: widths are", pad_width, ndim, |width| width.extract::<isize>().ok())?;
    let natural = |&(before, after): &(isize, isize)| {
        let width = |n: isize| usize::try_from(n).ok();
        width(before).zip(width(after)).ok_or_else(|| {
            PyValueError::new_err(format!("pad: a margin of ({before}, {after}) is negative"))
        })
    };
    let widths: Vec<(usize, usize)> = widths.iter().map(natural).collect::<PyResult<_>>()?;
    let mut values = Vec::new();
    let mode = match mode {
        "constant" => {
            values = match constant_values {
                Some(values) => for_axes("pad: constant_values are", values, ndim, single)?,
                None => vec![(Number::Int(0), Number::Int(0)); ndim],
            };
            if values.len() != ndim {
                let message = format!("pad: {} pairs of constants for {ndim} axes", values.len());
                return Err(PyValueError::new_err(message));
            }
            let fits = |value| crate::indexing::for_writing("pad", value, x.0.dtype());
            for (before, after) in values.iter_mut() {
                (*before, *after) = (fits(*before)?, fits(*after)?);
            }
            PadMode::Constant(values.first().map_or(Number::Int(0), |first| first.0))
        }
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "symmetric" => PadMode::Symmetric,
        "wrap" => PadMode::Wrap,
        other => return Err(PyValueError::new_err(format!("pad: there is no mode {other:?}"))),
    };
    let padded = x.0.shape().iter().zip(&widths);
    let padded: Vec<usize> = padded
        .map(|(&n, &(before, after))| n.saturating_add(before).saturating_add(after))
        .collect();
    run(py, volume(&padded), x.0.device(), || match mode {
        PadMode::Constant(all)
            if values.iter().any(|&(before, after)| before != all || after != all) =>
        {
            margin_by_margin(&x.0, &widths, &values)
        }
        _ => x.0.pad(&widths, mode),
    })
    .map(PyArray)
}

/// An array with margins that are filled each with a number of its own.
fn margin_by_margin(
    array: &Array,
    widths: &[(usize, usize)],
    values: &[(Number, Number)],
) -> tilework::Result<Array> {
    let mut result = array.clone();
    for (axis, (&(before, after), value)) in widths.iter().zip(values).enumerate() {
        for (width, value) in [((before, 0), value.0), ((0, after), value.1)] {
            let mut only = vec![(0, 0); widths.len()];
            only[axis] = width;
            result = result.pad(&only, PadMode::Constant(value))?;
        }
    }
    Ok(result)
}

/// The number that an object is, or that an array of no axes holds.
fn single(object: &Bound<'_, PyAny>) -> Option<Number> {
    let array = match Operand::of(object, device::current()).ok()?? {
        Operand::Number(number) => return Some(number),
        Operand::Ours(array) => array.clone(),
        Operand::Made(array) => array,
    };
    (array.ndim() == 0).then(|| PyArray(array).number(object.py()).ok())?
}

/// What is given for the margins of all axes: one for all, a pair (before, after), or a pair for each.
fn for_axes<'py, T: Copy>(
    what: &str,
    given: &Bound<'py, PyAny>,
    ndim: usize,
    one: impl Fn(&Bound<'py, PyAny>) -> Option<T>,
) -> PyResult<Vec<(T, T)>> {
    let wrong =
        || PyTypeError::new_err(format!("{what} a number, a pair, or one pair for each axis"));
    let list =
        |given: &Bound<'py, PyAny>| given.extract::<Vec<Bound<'py, PyAny>>>().map_err(|_| wrong());
    let pair = |ones: Vec<Option<T>>| match ones[..] {
        [Some(one)] => Ok((one, one)),
        [Some(before), Some(after)] => Ok((before, after)),
        _ => Err(wrong()),
    };
    if let Some(one) = one(given) {
        return Ok(vec![(one, one); ndim]);
    }
    let rows = list(given)?;
    let ones: Vec<Option<T>> = rows.iter().map(&one).collect();
    if ones.iter().any(Option::is_some) {
        return Ok(vec![pair(ones)?; ndim]);
    }
    let row = |row: &Bound<'py, PyAny>| pair(list(row)?.iter().map(&one).collect());
    let pairs = rows.iter().map(row).collect::<PyResult<Vec<_>>>()?;
    if let [one] = pairs[..] { Ok(vec![one; ndim]) } else { Ok(pairs) }
}

/// Any shape and strides (in bytes) on the memory of an array; an error if they leave it.
///
/// >>> import tilework as tw
/// >>> tw.as_strided(tw.arange(4), (3, 2), (8, 8)).tolist()
/// [[0, 1], [1, 2], [2, 3]]
#[pyfunction]
#[pyo3(signature = (x, /, shape, strides, *, offset=0))]
fn as_strided(x: ArrayArg, shape: ShapeArg, strides: Integers, offset: isize) -> PyResult<PyArray> {
    let size = x.0.dtype().size() as isize;
    if strides.0.iter().any(|stride| stride % size != 0) {
        let message = format!("as_strided: strides in bytes are multiples of the item's {size}");
        return Err(PyValueError::new_err(message));
    }
    let steps: Vec<isize> = strides.0.iter().map(|stride| stride / size).collect();
    x.0.as_strided(&shape.0, &steps, offset).py().map(PyArray)
}

/// All windows of a size along axes, as new last axes; a view.
///
/// >>> import tilework as tw
/// >>> tw.sliding_window_view(tw.arange(4), 2).tolist()
/// [[0, 1], [1, 2], [2, 3]]
#[pyfunction]
#[pyo3(signature = (x, /, window_shape, axis=None))]
fn sliding_window_view(
    x: ArrayArg,
    window_shape: ShapeArg,
    axis: Option<Integers>,
) -> PyResult<PyArray> {
    let axes = match axis {
        Some(Integers(axes)) => axes.to_vec(),
        None => (0..x.0.ndim() as isize).collect(),
    };
    let windows = x.0.sliding_windows(&window_shape.0, &axes);
    windows.map_err(|error| error.of("sliding_window_view")).py().map(PyArray)
}

/// Whether some element belongs to both arrays.
///
/// >>> import tilework as tw
/// >>> x = tw.arange(6)
/// >>> tw.shares_memory(x, x[::2]), tw.shares_memory(x[::2], x[1::2])
/// (True, False)
#[pyfunction]
#[pyo3(signature = (x1, x2, /))]
fn shares_memory(x1: &Bound<'_, PyArray>, x2: &Bound<'_, PyArray>) -> bool {
    x1.get().0.shares_memory(&x2.get().0)
}

/// The elements as nested lists of Python's numbers.
pub fn to_list(py: Python<'_>, array: &Array) -> PyResult<Py<PyAny>> {
    tilework_ops::with_element!(array.dtype(), T => {
        let elements = run(py, array.len(), array.device(), || array.to_vec::<T>())?;
        nest(py, array.shape(), &mut elements.into_iter().map(|x| PyNumber(number_of(x))))
    })
}

/// The number that an element is. Its type tells the kind, so that nothing is asked of each of them.
fn number_of<T: Element>(element: T) -> Number {
    let value = element.widen();
    match T::DTYPE.kind() {
        Kind::Bool => Number::Bool(value.is_true()),
        Kind::Signed => value.cast::<i64>().into(),
        Kind::Unsigned => value.cast::<u64>().into(),
        Kind::Float => value.to_f64().into(),
        Kind::Complex => value.cast::<Complex<f64>>().into(),
    }
}

fn nest(
    py: Python<'_>,
    shape: &[usize],
    numbers: &mut impl ExactSizeIterator<Item = PyNumber>,
) -> PyResult<Py<PyAny>> {
    match shape {
        [] => numbers.next().unwrap_or(PyNumber(Number::Int(0))).into_py_any(py),
        [length] => PyList::new(py, numbers.take(*length))?.into_py_any(py),
        [length, inner @ ..] => {
            let items: PyResult<Vec<_>> = (0..*length).map(|_| nest(py, inner, numbers)).collect();
            PyList::new(py, items?)?.into_py_any(py)
        }
    }
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: softmax, isclose, allclose, array_equal, pad, as_strided, sliding_window_view,
        shares_memory);
    Ok(())
}
