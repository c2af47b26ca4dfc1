//! Searching, sorting, sets, and picking by indices.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilework::{Array, Direction, Side, Unique};

use super::manipulation::tuple;
use crate::args::register;
use crate::array::PyArray;
use crate::convert::{ArrayArg, asarray_near, meeting, together};
use crate::operand::Operand;
use crate::run::{len_along, result_len, run};

/// Elements of `x1` where the condition is true, of `x2` elsewhere.
///
/// >>> import tilework as tw
/// >>> tw.where(tw.asarray([True, False]), 1, 2).tolist()
/// [1, 2]
#[pyfunction]
#[pyo3(name = "where", signature = (condition, x1, x2, /))]
fn where_(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
) -> PyResult<PyArray> {
    let device = meeting([condition, x1, x2]);
    let mask = asarray_near(condition, None, device)?;
    let (Some(x1), Some(x2)) = (Operand::of(x1, device)?, Operand::of(x2, device)?) else {
        return Err(PyTypeError::new_err("where: chooses between arrays or numbers"));
    };
    let elements = result_len(&[mask.shape(), x1.shape(), x2.shape()]);
    run(py, elements, device, || tilework::select(&mask, x1.arg(), x2.arg())).map(PyArray)
}

/// The indices of elements that are not zero, one array for each axis.
///
/// >>> import tilework as tw
/// >>> tw.nonzero(tw.asarray([0, 3, 5]))[0].tolist()
/// [1, 2]
#[pyfunction]
#[pyo3(signature = (x, /))]
pub fn nonzero(py: Python<'_>, x: ArrayArg) -> PyResult<Bound<'_, PyTuple>> {
    let found = run(py, x.0.len(), x.0.device(), || x.0.nonzero())?;
    tuple(py, found)
}

/// The indices of elements that are not zero, one row each.
///
/// >>> import tilework as tw
/// >>> tw.argwhere(tw.asarray([[0, 3], [5, 0]])).tolist()
/// [[0, 1], [1, 0]]
#[pyfunction]
#[pyo3(signature = (x, /))]
fn argwhere(py: Python<'_>, x: ArrayArg) -> PyResult<PyArray> {
    run(py, x.0.len(), x.0.device(), || x.0.argwhere()).map(PyArray)
}

/// Where values would be inserted into an ascending array of one axis.
///
/// >>> import tilework as tw
/// >>> tw.searchsorted(tw.asarray([1, 3, 5]), 3, side="right").item()
/// 2
#[pyfunction]
#[pyo3(signature = (x1, x2, /, side="left", sorter=None))]
pub fn searchsorted(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    side: &str,
    sorter: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let side = match side {
        "left" => Side::Left,
        "right" => Side::Right,
        other => {
            let message = format!("searchsorted: side is \"left\" or \"right\", not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    let device = meeting([x1, x2].into_iter().chain(sorter));
    let sorted = asarray_near(x1, None, device)?;
    let sorter = sorter.map(|order| asarray_near(order, None, device)).transpose()?;
    let Some(values) = Operand::of(x2, device)? else {
        return Err(PyTypeError::new_err("searchsorted: looks for an array or a number"));
    };
    run(py, sorted.len() + values.len(), device, || {
        let values = match &values {
            // A number takes the dtype of what it is looked for in.
            Operand::Number(number) => {
                let dtype = number.promote(sorted.dtype());
                Array::full_on(device, &[], *number, dtype)
                    .map_err(|error| error.of("searchsorted"))?
            }
            other => other.to_array(device)?,
        };
        match &sorter {
            Some(order) => sorted.take(order, 0)?.searchsorted(&values, side),
            None => sorted.searchsorted(&values, side),
        }
    })
    .map(PyArray)
}

/// Elements in ascending or descending order along an axis; equal ones keep their order.
///
/// >>> import tilework as tw
/// >>> tw.sort(tw.asarray([3, 1, 2]), descending=True).tolist()
/// [3, 2, 1]
#[pyfunction]
#[pyo3(signature = (x, /, axis=-1, *, descending=false, stable=true, kind=None), text_signature = "(x, /, axis=-1, *, descending=False, stable=True, kind=None)")]
fn sort(
    py: Python<'_>,
    x: ArrayArg,
    axis: isize,
    descending: bool,
    stable: bool,
    kind: Option<&str>,
) -> PyResult<PyArray> {
    // The order is always stable; who does not ask for it gets it all the same.
    let _ = stable;
    known_kind("sort", kind)?;
    run(py, sorting(&x.0), x.0.device(), || x.0.sort(axis, direction(descending))).map(PyArray)
}

/// The indices that would sort an array along an axis.
///
/// >>> import tilework as tw
/// >>> tw.argsort(tw.asarray([3, 1, 2])).tolist()
/// [1, 2, 0]
#[pyfunction]
#[pyo3(signature = (x, /, axis=-1, *, descending=false, stable=true, kind=None), text_signature = "(x, /, axis=-1, *, descending=False, stable=True, kind=None)")]
pub fn argsort(
    py: Python<'_>,
    x: ArrayArg,
    axis: isize,
    descending: bool,
    stable: bool,
    kind: Option<&str>,
) -> PyResult<PyArray> {
    let _ = stable;
    known_kind("argsort", kind)?;
    run(py, sorting(&x.0), x.0.device(), || x.0.argsort(axis, direction(descending))).map(PyArray)
}

/// That NumPy knows this kind of sorting: all of them are the one that there is, whose results are theirs.
pub fn known_kind(operation: &str, kind: Option<&str>) -> PyResult<()> {
    const KINDS: [&str; 4] = ["quicksort", "mergesort", "heapsort", "stable"];
    match kind {
        Some(kind) if !KINDS.contains(&kind) => {
            let message = format!("{operation}: {kind:?} is none of {}", KINDS.join(", "));
            Err(PyValueError::new_err(message))
        }
        _ => Ok(()),
    }
}

fn direction(descending: bool) -> Direction {
    if descending { Direction::Descending } else { Direction::Ascending }
}

/// Sorting takes longer than its elements say.
fn sorting(x: &Array) -> usize {
    x.len().saturating_mul(16)
}

/// Elements of an axis picked by an array of integers; of the flat array if the axis is None.
///
/// >>> import tilework as tw
/// >>> tw.take(tw.asarray([10, 20, 30]), tw.asarray([2, 0])).tolist()
/// [30, 10]
#[pyfunction]
#[pyo3(signature = (x, indices, /, axis=None))]
pub fn take(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    axis: Option<isize>,
) -> PyResult<PyArray> {
    let [x, indices] = together([x, indices])?;
    let elements = match axis {
        Some(axis) => len_along(&x, axis, indices.len()),
        // The flat array may have to be made first.
        None => x.len().max(indices.len()),
    };
    run(py, elements, x.device(), || match axis {
        Some(axis) => x.take(&indices, axis),
        None => x.ravel()?.take(&indices, 0),
    })
    .map(PyArray)
}

/// For each place of `indices` the element at that index along an axis.
///
/// >>> import tilework as tw
/// >>> tw.take_along_axis(tw.asarray([[3, 1], [2, 4]]), tw.asarray([[1], [0]])).tolist()
/// [[1], [2]]
#[pyfunction]
#[pyo3(signature = (x, indices, /, axis=-1), text_signature = "(x, indices, /, axis=-1)")]
fn take_along_axis(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    axis: isize,
) -> PyResult<PyArray> {
    let [x, indices] = together([x, indices])?;
    let elements = result_len(&[x.shape(), indices.shape()]);
    run(py, elements, x.device(), || x.take_along_axis(&indices, axis)).map(PyArray)
}

/// Whether each element of `x1` is among those of `x2`, or is not.
///
/// >>> import tilework as tw
/// >>> tw.isin(tw.asarray([1, 2, 3]), tw.asarray([3, 1])).tolist()
/// [True, False, True]
#[pyfunction]
#[pyo3(signature = (x1, x2, /, *, invert=false))]
fn isin(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    invert: bool,
) -> PyResult<PyArray> {
    let device = meeting([x1, x2]);
    let (Some(x1), Some(x2)) = (Operand::of(x1, device)?, Operand::of(x2, device)?) else {
        return Err(PyTypeError::new_err("isin: compares arrays or numbers"));
    };
    run(py, x1.len() + x2.len(), device, || {
        let found = x1.to_array(device)?.isin(&x2.to_array(device)?)?;
        if invert { found.logical_not() } else { Ok(found) }
    })
    .map(PyArray)
}

/// A named tuple of the package, which the standard asks these functions to return.
fn named<'py>(py: Python<'py>, name: &str, arrays: Vec<Array>) -> PyResult<Bound<'py, PyAny>> {
    py.import("tilework._results")?.getattr(name)?.call1(tuple(py, arrays)?)
}

fn unique(py: Python<'_>, x: &Array) -> PyResult<Unique> {
    run(py, sorting(x), x.device(), || x.unique())
}

/// The different elements, their first places, the way back, and how often each occurs.
///
/// >>> import tilework as tw
/// >>> tw.unique_all(tw.asarray([2, 1, 2])).counts.tolist()
/// [1, 2]
#[pyfunction]
#[pyo3(signature = (x, /))]
fn unique_all<'py>(py: Python<'py>, x: ArrayArg) -> PyResult<Bound<'py, PyAny>> {
    let Unique { values, indices, inverse, counts } = unique(py, &x.0)?;
    named(py, "UniqueAllResult", vec![values, indices, inverse, counts])
}

/// The different elements and how often each occurs.
///
/// >>> import tilework as tw
/// >>> values, counts = tw.unique_counts(tw.asarray([2, 1, 2]))
/// >>> values.tolist(), counts.tolist()
/// ([1, 2], [1, 2])
#[pyfunction]
#[pyo3(signature = (x, /))]
fn unique_counts<'py>(py: Python<'py>, x: ArrayArg) -> PyResult<Bound<'py, PyAny>> {
    let Unique { values, counts, .. } = unique(py, &x.0)?;
    named(py, "UniqueCountsResult", vec![values, counts])
}

/// The different elements and for each element its place among them.
///
/// >>> import tilework as tw
/// >>> values, places = tw.unique_inverse(tw.asarray([7, 5, 7]))
/// >>> values[places].tolist()
/// [7, 5, 7]
#[pyfunction]
#[pyo3(signature = (x, /))]
fn unique_inverse<'py>(py: Python<'py>, x: ArrayArg) -> PyResult<Bound<'py, PyAny>> {
    let Unique { values, inverse, .. } = unique(py, &x.0)?;
    named(py, "UniqueInverseResult", vec![values, inverse])
}

/// The different elements, ascending; every NaN is different.
///
/// >>> import tilework as tw
/// >>> tw.unique_values(tw.asarray([3, 1, 3])).tolist()
/// [1, 3]
#[pyfunction]
#[pyo3(signature = (x, /))]
fn unique_values(py: Python<'_>, x: ArrayArg) -> PyResult<PyArray> {
    run(py, sorting(&x.0), x.0.device(), || x.0.unique_values()).map(PyArray)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: where_, nonzero, argwhere, searchsorted, sort, argsort, take, take_along_axis,
        isin, unique_all, unique_counts, unique_inverse, unique_values);
    Ok(())
}
