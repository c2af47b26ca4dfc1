//! Shapes, orders and joins of arrays.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use tilework::{Array, DType, Error, Order};

use crate::args::{Integers, Length, ShapeArg, register};
use crate::array::PyArray;
use crate::class;
use crate::convert::{ArrayArg, all_together};
use crate::device;
use crate::errors::{DeviceError, OrRaise};
use crate::layout;
use crate::run::{run, volume};

/// Arrays as a tuple.
pub fn tuple(py: Python<'_>, arrays: Vec<Array>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, arrays.into_iter().map(PyArray))
}

fn total(arrays: &[&Array]) -> usize {
    arrays.iter().map(|array| array.len()).sum()
}

/// Arrays of a sequence, or the parts of one array along its first axis.
fn arrays_of(object: &Bound<'_, PyAny>, operation: &str) -> PyResult<Vec<Array>> {
    let items = object
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("{operation}: takes a tuple of arrays")))?;
    all_together(&items.collect::<PyResult<Vec<_>>>()?)
}

/// Arrays one after the other along an axis; flattened first if the axis is None.
///
/// >>> import tilework as tw
/// >>> tw.concat([tw.asarray([1, 2]), tw.asarray([3])]).tolist()
/// [1, 2, 3]
#[pyfunction]
#[pyo3(signature = (arrays, /, axis=Some(0)), text_signature = "(arrays, /, axis=0)")]
fn concat(py: Python<'_>, arrays: &Bound<'_, PyAny>, axis: Option<isize>) -> PyResult<PyArray> {
    let arrays = arrays_of(arrays, "concat")?;
    let arrays: Vec<&Array> = arrays.iter().collect();
    let device = arrays.first().map_or_else(device::current, |array| array.device());
    run(py, total(&arrays), device, || match axis {
        Some(axis) => tilework::concat(&arrays, axis),
        None => {
            let flat: Vec<Array> =
                arrays.iter().map(|array| array.ravel()).collect::<tilework::Result<_>>()?;
            tilework::concat(&flat.iter().collect::<Vec<_>>(), 0)
        }
    })
    .map(PyArray)
}

/// Arrays of one shape along a new axis.
///
/// >>> import tilework as tw
/// >>> tw.stack([tw.asarray([1, 2]), tw.asarray([3, 4])]).shape
/// (2, 2)
#[pyfunction]
#[pyo3(signature = (arrays, /, axis=0))]
fn stack(py: Python<'_>, arrays: &Bound<'_, PyAny>, axis: isize) -> PyResult<PyArray> {
    let arrays = arrays_of(arrays, "stack")?;
    let arrays: Vec<&Array> = arrays.iter().collect();
    let device = arrays.first().map_or_else(device::current, |array| array.device());
    run(py, total(&arrays), device, || tilework::stack(&arrays, axis)).map(PyArray)
}

/// The parts of an array along an axis, without that axis; views.
///
/// >>> import tilework as tw
/// >>> [part.tolist() for part in tw.unstack(tw.asarray([[1, 2], [3, 4]]), axis=1)]
/// [[1, 3], [2, 4]]
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=0))]
fn unstack(py: Python<'_>, x: ArrayArg, axis: isize) -> PyResult<Bound<'_, PyTuple>> {
    tuple(py, x.0.unstack(axis).py()?)
}

/// Views of the arrays, all broadcast to one shape.
///
/// >>> import tilework as tw
/// >>> [a.shape for a in tw.broadcast_arrays(tw.ones((2, 1)), tw.ones(3))]
/// [(2, 3), (2, 3)]
#[pyfunction]
#[pyo3(signature = (*arrays))]
fn broadcast_arrays<'py>(
    py: Python<'py>,
    arrays: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let arrays = all_together(&arrays.iter().collect::<Vec<_>>())?;
    let arrays: Vec<&Array> = arrays.iter().collect();
    tuple(py, tilework::broadcast_arrays(&arrays).py()?)
}

/// The shape that arrays of these shapes have together.
///
/// >>> import tilework as tw
/// >>> tw.broadcast_shapes((2, 1), (3,))
/// (2, 3)
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let shapes: Vec<ShapeArg> = shapes.extract()?;
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape.0[..]).collect();
    PyTuple::new(py, tilework::broadcast_shapes("broadcast_shapes", &shapes).py()?)
}

/// The array repeated along axes of length 1 and new leading axes; a view.
///
/// >>> import tilework as tw
/// >>> tw.broadcast_to(tw.asarray([1, 2]), (2, 2)).tolist()
/// [[1, 2], [1, 2]]
#[pyfunction]
#[pyo3(signature = (x, /, shape))]
fn broadcast_to(x: ArrayArg, shape: ShapeArg) -> PyResult<PyArray> {
    x.0.broadcast_to(&shape.0).py().map(PyArray)
}

/// A new axis of length 1; a view.
///
/// >>> import tilework as tw
/// >>> tw.expand_dims(tw.zeros((2, 3)), 1).shape
/// (2, 1, 3)
#[pyfunction]
#[pyo3(signature = (x, /, axis))]
fn expand_dims(x: ArrayArg, axis: Integers) -> PyResult<PyArray> {
    let ndim = (x.0.ndim() + axis.0.len()) as isize;
    let mut axes = axis.0;
    if axes.len() > 1 {
        // Several axes count in the result; added in ascending order they all come to their place.
        let found = tilework_layout::normalize_axes("expand_dims", &axes, ndim as usize).py()?;
        axes = found.iter().map(|&axis| axis as isize).collect();
        axes.sort_unstable();
    }
    let mut result = x.0;
    for &axis in &axes {
        result = result.expand_dims(axis).py()?;
    }
    Ok(PyArray(result))
}

/// Without these axes of length 1; a view.
///
/// >>> import tilework as tw
/// >>> tw.squeeze(tw.zeros((2, 1, 3)), 1).shape
/// (2, 3)
#[pyfunction]
#[pyo3(signature = (x, /, axis=None))]
fn squeeze(x: ArrayArg, axis: Option<Integers>) -> PyResult<PyArray> {
    x.0.squeeze(axis.as_ref().map(|axis| &axis.0[..])).py().map(PyArray)
}

/// Reversed along axes, or along all; a view.
///
/// >>> import tilework as tw
/// >>> tw.flip(tw.asarray([1, 2, 3])).tolist()
/// [3, 2, 1]
#[pyfunction]
#[pyo3(signature = (x, /, axis=None))]
fn flip(x: ArrayArg, axis: Option<Integers>) -> PyResult<PyArray> {
    x.0.flip(axis.as_ref().map(|axis| &axis.0[..])).py().map(PyArray)
}

/// Axes moved to other places, the others keeping their order; a view.
///
/// >>> import tilework as tw
/// >>> tw.moveaxis(tw.zeros((2, 3, 4)), 0, -1).shape
/// (3, 4, 2)
#[pyfunction]
#[pyo3(signature = (x, source, destination, /))]
fn moveaxis(x: ArrayArg, source: Integers, destination: Integers) -> PyResult<PyArray> {
    let moved = x.0.move_axes(&source.0, &destination.0);
    moved.map_err(|error| error.of("moveaxis")).py().map(PyArray)
}

/// The axes in another order; a view.
///
/// >>> import tilework as tw
/// >>> tw.permute_dims(tw.zeros((2, 3, 4)), (2, 0, 1)).shape
/// (4, 2, 3)
#[pyfunction]
#[pyo3(signature = (x, /, axes))]
fn permute_dims(x: ArrayArg, axes: Integers) -> PyResult<PyArray> {
    x.0.permute(&axes.0).map_err(|error| error.of("permute_dims")).py().map(PyArray)
}

/// Another shape for the same elements; a view where the strides permit, unless `copy=True`.
///
/// >>> import tilework as tw
/// >>> tw.reshape(tw.arange(6), (2, -1)).shape
/// (2, 3)
#[pyfunction]
#[pyo3(signature = (x, /, shape, order="C", *, copy=None))]
fn reshape(
    py: Python<'_>,
    x: ArrayArg,
    shape: Integers,
    order: &str,
    copy: Option<bool>,
) -> PyResult<PyArray> {
    reshaped(py, &x.0, &shape.0, order, copy)
}

/// [`reshape`], for the method too.
pub fn reshaped(
    py: Python<'_>,
    x: &Array,
    shape: &[isize],
    order: &str,
    copy: Option<bool>,
) -> PyResult<PyArray> {
    let order = layout::order(order)?;
    run(py, x.len(), x.device(), || {
        let no_view = || {
            let message = "the strides permit no view of this shape; let it copy";
            Error::value("reshape", message)
        };
        if copy == Some(false) && order == Order::RowMajor {
            return x.reshape_view(shape).map_err(|error| error.of("reshape"));
        }
        let result = x.reshape_in(shape, order)?;
        match (copy, result.is_same_block(x)) {
            (Some(true), true) => result.copy_in(order),
            (Some(false), false) => Err(no_view()),
            _ => Ok(result),
        }
    })
    .map(PyArray)
}

/// Each element repeated, along an axis or flattened.
///
/// >>> import tilework as tw
/// >>> tw.repeat(tw.asarray([1, 2]), 2).tolist()
/// [1, 1, 2, 2]
#[pyfunction]
#[pyo3(signature = (x, repeats, /, axis=None))]
pub fn repeat(
    py: Python<'_>,
    x: ArrayArg,
    repeats: &Bound<'_, PyAny>,
    axis: Option<isize>,
) -> PyResult<PyArray> {
    let negative = || PyValueError::new_err("repeat: a count is negative");
    let times: Vec<usize> = match class::ours(repeats) {
        Some(array) => {
            if !array.dtype().is_integer() {
                return Err(PyTypeError::new_err("repeat: counts are integers"));
            }
            let (here, there) = (x.0.device(), array.device());
            if here != there {
                let message = format!(
                    "repeat: operands are on {here} and {there}; move one with to_device(\"{here}\")"
                );
                return Err(DeviceError::new_err(message));
            }
            let counts = run(py, array.len(), array.device(), || {
                array.ravel()?.to_dtype(DType::Int64)?.to_vec::<i64>()
            })?;
            counts
                .iter()
                .map(|&n| usize::try_from(n).map_err(|_| negative()))
                .collect::<PyResult<_>>()?
        }
        None => {
            let Integers(counts) = repeats.extract()?;
            counts
                .iter()
                .map(|&n| usize::try_from(n).map_err(|_| negative()))
                .collect::<PyResult<_>>()?
        }
    };
    let most = times.iter().copied().max().unwrap_or(0);
    run(py, x.0.len().saturating_mul(most), x.0.device(), || {
        let source = if axis.is_none() { x.0.ravel()? } else { x.0.clone() };
        let axis = axis.unwrap_or(0);
        match times[..] {
            [one] => source.repeat(one, axis),
            _ => source.repeat_each(&times, axis),
        }
    })
    .map(PyArray)
}

/// The whole array repeated along each axis.
///
/// >>> import tilework as tw
/// >>> tw.tile(tw.asarray([1, 2]), (2,)).tolist()
/// [1, 2, 1, 2]
#[pyfunction]
#[pyo3(signature = (x, repetitions, /))]
fn tile(py: Python<'_>, x: ArrayArg, repetitions: ShapeArg) -> PyResult<PyArray> {
    let elements = x.0.len().saturating_mul(volume(&repetitions.0));
    run(py, elements, x.0.device(), || x.0.tile(&repetitions.0)).map(PyArray)
}

/// Elements moved along axes; what leaves one end enters at the other.
///
/// >>> import tilework as tw
/// >>> tw.roll(tw.asarray([1, 2, 3]), 1).tolist()
/// [3, 1, 2]
#[pyfunction]
#[pyo3(signature = (x, /, shift, axis=None))]
fn roll(py: Python<'_>, x: ArrayArg, shift: Integers, axis: Option<Integers>) -> PyResult<PyArray> {
    run(py, x.0.len(), x.0.device(), || {
        let Some(Integers(axes)) = &axis else {
            let shape: Vec<isize> = x.0.shape().iter().map(|&n| n as isize).collect();
            let total = shift.0.iter().fold(0isize, |total, &shift| total.wrapping_add(shift));
            return x.0.ravel()?.roll(total, 0)?.reshape(&shape);
        };
        let shifts: SmallVec<[isize; 6]> = match (&shift.0[..], axes.len()) {
            (&[one], axes) => SmallVec::from_elem(one, axes),
            (several, axes) if several.len() == axes => SmallVec::from_slice(several),
            (several, axes) => {
                let message = format!("{} shifts for {axes} axes", several.len());
                return Err(tilework::Error::value("roll", message));
            }
        };
        let mut result = x.0.clone();
        for (&shift, &axis) in shifts.iter().zip(axes) {
            result = result.roll(shift, axis)?;
        }
        if axes.is_empty() { result.copy() } else { Ok(result) }
    })
    .map(PyArray)
}

/// Parts along an axis: so many equal ones, or cut before each of some indices; views.
///
/// >>> import tilework as tw
/// >>> [part.tolist() for part in tw.split(tw.arange(4), 2)]
/// [[0, 1], [2, 3]]
#[pyfunction]
#[pyo3(signature = (x, indices_or_sections, /, axis=0))]
fn split<'py>(
    py: Python<'py>,
    x: ArrayArg,
    indices_or_sections: &Bound<'py, PyAny>,
    axis: isize,
) -> PyResult<Bound<'py, PyTuple>> {
    if let Ok(sections) = indices_or_sections.extract::<isize>() {
        let sections = usize::try_from(sections)
            .map_err(|_| PyValueError::new_err(format!("split: there are no {sections} parts")))?;
        return tuple(py, x.0.split(sections, axis).py()?);
    }
    let Integers(cuts) = indices_or_sections.extract()?;
    let at = tilework_layout::normalize_axis("split", axis, x.0.ndim()).py()?;
    // As in a slice, negative cuts count from the end.
    let length = x.0.shape()[at] as isize;
    let from_start = |&cut: &isize| if cut < 0 { (cut + length).max(0) } else { cut } as usize;
    let cuts: SmallVec<[usize; 6]> = cuts.iter().map(from_start).collect();
    tuple(py, x.0.split_at(&cuts, axis).py()?)
}

/// Differences of neighbours along an axis, `n` times.
///
/// >>> import tilework as tw
/// >>> tw.diff(tw.asarray([1, 4, 9])).tolist()
/// [3, 5]
#[pyfunction]
#[pyo3(signature = (x, /, n=Length(1), axis=-1, prepend=None, append=None), text_signature = "(x, /, n=1, axis=-1, prepend=None, append=None)")]
fn diff(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    n: Length,
    axis: isize,
    prepend: Option<&Bound<'_, PyAny>>,
    append: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let Length(n) = n;
    // Where no differences are taken nothing is joined for them, as in NumPy.
    let (prepend, append) = if n == 0 { (None, None) } else { (prepend, append) };
    let mut parts = all_together([prepend, Some(x), append].into_iter().flatten())?;
    // A number before or behind the array stands before or behind each of its lines.
    let mut edge = parts[usize::from(prepend.is_some())].shape().to_vec();
    if !edge.is_empty() {
        let along = tilework_layout::normalize_axis("diff", axis, edge.len()).py()?;
        edge[along] = 1;
        for part in parts.iter_mut().filter(|part| part.ndim() == 0) {
            *part = part.broadcast_to(&edge).py()?;
        }
    }
    let parts: Vec<&Array> = parts.iter().collect();
    // Every time is about as long as the first.
    run(py, total(&parts).saturating_mul(n.max(1)), parts[0].device(), || match parts[..] {
        [one] => one.diff(n, axis),
        _ => tilework::concat(&parts, axis)?.diff(n, axis),
    })
    .map(PyArray)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: concat, stack, unstack, broadcast_arrays, broadcast_shapes, broadcast_to,
        expand_dims, squeeze, flip, moveaxis, permute_dims, reshape, repeat, tile, roll, split, diff);
    Ok(())
}
