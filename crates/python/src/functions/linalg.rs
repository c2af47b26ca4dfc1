//! Products of matrices and tensors.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilework::Array;

use crate::args::{Integers, register, target};
use crate::array::PyArray;
use crate::convert::{ArrayArg, all_together, together};
use crate::device;
use crate::errors::OrRaise;
use crate::operators::matmul_work;
use crate::run::{len_along, result_len, run};

/// Matrix product; axes before the last two are batches and broadcast.
///
/// `method="pieces"` multiplies float32 as three bfloat16 pieces each where the CPU has tiles for them (AMX): as
/// accurate, often faster, with other last bits. Elsewhere, and for numbers that have no such pieces, it is the
/// usual product.
///
/// >>> import tilework as tw
/// >>> tw.matmul(tw.asarray([[1, 2], [3, 4]]), tw.asarray([1, 1])).tolist()
/// [3, 7]
#[pyfunction]
#[pyo3(signature = (x1, x2, /, *, out=None, method="best"))]
pub fn matmul<'py>(
    py: Python<'py>,
    x1: &Bound<'py, PyAny>,
    x2: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    method: &str,
) -> PyResult<Py<PyAny>> {
    let in_pieces = match (method, out) {
        ("best", _) => false,
        ("pieces", None) => true,
        ("pieces", Some(_)) => {
            return Err(PyValueError::new_err("matmul: method=\"pieces\" makes a new array"));
        }
        (other, _) => {
            let message = format!("matmul: method is \"best\" or \"pieces\", not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    let [a, b] = together([x1, x2])?;
    let work = matmul_work(&a, b.len());
    let Some(out) = out else {
        let result = run(py, work, a.device(), || match in_pieces {
            true => a.matmul_by_pieces(&b),
            false => a.matmul(&b),
        })?;
        return PyArray(result).into_py_any(py);
    };
    let target = target(out, a.device())?;
    run(py, work, a.device(), || a.matmul_into(&b, &target))?;
    Ok(out.clone().unbind())
}

/// The last two axes swapped; a view.
///
/// >>> import tilework as tw
/// >>> tw.matrix_transpose(tw.asarray([[1, 2], [3, 4]])).tolist()
/// [[1, 3], [2, 4]]
#[pyfunction]
#[pyo3(signature = (x, /))]
fn matrix_transpose(x: ArrayArg) -> PyResult<PyArray> {
    x.0.matrix_transpose().py().map(PyArray)
}

/// Sum of products over pairs of axes: so many last and first ones, or two lists of axes.
///
/// >>> import tilework as tw
/// >>> tw.tensordot(tw.ones((2, 3)), tw.ones((3, 4)), axes=1).shape
/// (2, 4)
#[pyfunction]
#[pyo3(signature = (x1, x2, /, axes=None), text_signature = "(x1, x2, /, axes=2)")]
fn tensordot(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    axes: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let [a, b] = together([x1, x2])?;
    let count = match axes {
        None => Some(2),
        Some(axes) => axes.extract::<isize>().ok(),
    };
    let (left, right): (Vec<isize>, Vec<isize>) = match (count, axes) {
        (Some(count), _) => {
            let most = a.ndim().min(b.ndim()) as isize;
            if !(0..=most).contains(&count) {
                let message = format!("tensordot: there are no {count} axes to sum over");
                return Err(PyValueError::new_err(message));
            }
            let first = a.ndim() as isize - count;
            ((0..count).map(|axis| first + axis).collect(), (0..count).collect())
        }
        (None, Some(axes)) => {
            let (left, right): (Integers, Integers) = axes.extract().map_err(|_| {
                PyTypeError::new_err("tensordot: axes are a number or two lists of axes")
            })?;
            (left.0.to_vec(), right.0.to_vec())
        }
        (None, None) => (Vec::new(), Vec::new()),
    };
    let summed =
        left.iter().fold(1, |summed, &axis| summed * (a.len() / len_along(&a, axis, 1).max(1)));
    let work = a.len().saturating_mul(b.len()) / summed.max(1);
    run(py, work, a.device(), || a.tensordot(&b, &left, &right)).map(PyArray)
}

/// NumPy's product of that name: of numbers the product, else the sum over the last axis of the first and
/// the last but one of the second.
pub fn dot(py: Python<'_>, x1: &Bound<'_, PyAny>, x2: &Bound<'_, PyAny>) -> PyResult<PyArray> {
    let [a, b] = together([x1, x2])?;
    let work = a.len().saturating_mul(b.len());
    run(py, work, a.device(), || match (a.ndim(), b.ndim()) {
        (0, _) | (_, 0) => a.multiply(&b),
        (1 | 2, 1 | 2) => a.matmul(&b),
        (_, axes) => a.tensordot(&b, &[-1], &[if axes == 1 { -1 } else { -2 }]),
    })
    .map(PyArray)
}

/// Sum of products along an axis of both arrays; the left one is conjugated.
///
/// >>> import tilework as tw
/// >>> tw.vecdot(tw.asarray([1, 2]), tw.asarray([3, 4])).item()
/// 11
#[pyfunction]
#[pyo3(signature = (x1, x2, /, *, axis=-1), text_signature = "(x1, x2, /, *, axis=-1)")]
fn vecdot(
    py: Python<'_>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
    axis: isize,
) -> PyResult<PyArray> {
    let [a, b] = together([x1, x2])?;
    run(py, result_len(&[a.shape(), b.shape()]), a.device(), || a.vecdot(&b, axis)).map(PyArray)
}

/// Sum of products by Einstein's notation: "ij,jk->ik". The order of the products is chosen by their sizes,
/// whatever `optimize` says.
///
/// >>> import tilework as tw
/// >>> tw.einsum("ij->ji", tw.ones((2, 3))).shape
/// (3, 2)
#[pyfunction]
#[pyo3(signature = (subscripts, /, *operands, optimize=None))]
fn einsum(
    py: Python<'_>,
    subscripts: &str,
    operands: &Bound<'_, PyTuple>,
    optimize: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let _ = optimize;
    let operands: Vec<Bound<'_, PyAny>> = operands.iter().collect();
    let operands = all_together(&operands)?;
    let operands: Vec<&Array> = operands.iter().collect();
    let device = operands.first().map_or_else(device::current, |operand| operand.device());
    let work = operands.iter().fold(1usize, |work, operand| work.saturating_mul(operand.len()));
    run(py, work, device, || tilework::einsum(subscripts, &operands)).map(PyArray)
}

/// All products of an element of one array with one of another, both flattened.
///
/// >>> import tilework as tw
/// >>> tw.outer(tw.asarray([1, 2]), tw.asarray([3, 4])).tolist()
/// [[3, 4], [6, 8]]
#[pyfunction]
#[pyo3(signature = (x1, x2, /))]
fn outer(py: Python<'_>, x1: &Bound<'_, PyAny>, x2: &Bound<'_, PyAny>) -> PyResult<PyArray> {
    let [a, b] = together([x1, x2])?;
    run(py, a.len().saturating_mul(b.len()), a.device(), || a.outer(&b)).map(PyArray)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: matmul, matrix_transpose, tensordot, vecdot, einsum, outer);
    Ok(())
}
