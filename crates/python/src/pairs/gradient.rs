//! Gradients of reductions for Python; those of formulas are methods from the table.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::Array;
use tilework::pairs::LazyTensor;

use super::lazy::PyLazy;
use super::operand::{Like, required_array};
use super::partial::with_axis;
use super::reductions::{Asked, named};
use super::settings::OF_RESULTS;
use super::work::watched;
use crate::array::PyArray;

#[pymethods]
impl PyLazy {
    /// The gradient of a reduction towards a variable of this formula: how the sum of `e` times
    /// the result changes with it. `e` has the shape of the result, the gradient that of the variable's
    /// array as rows: `(..., M, D)` of i, `(..., N, D)` of j, `(..., D)` of a parameter, also where a tensor
    /// was made of `x[:, None, :]`. Keywords are those of the reduction.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.Vi(tw.asarray([[1.0], [2.0]])), tw.Vj(tw.asarray([[0.0], [5.0], [7.0]]))
    /// >>> x.sqdist(y).reduction_grad("sum", x, [[1.0], [1.0]], axis=1).tolist()
    /// [[-18.0], [-12.0]]
    #[pyo3(signature = (reduction, v, e, axis=None, **options))]
    fn reduction_grad(
        slf: &Bound<'_, Self>,
        reduction: &str,
        v: &Bound<'_, PyLazy>,
        e: &Bound<'_, PyAny>,
        axis: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyArray> {
        let (py, tensor, row) = (slf.py(), slf.get(), named(reduction)?);
        let keywords = with_axis(py, options, axis)?;
        let asked = Asked::from_keywords(row, "reduction_grad", &tensor.0, &keywords, OF_RESULTS)?;
        let index = asked.index("reduction_grad")?;
        let e = required_array(e, Like::tensor(&tensor.0), "reduction_grad")?;
        let (variable, weight) = (&v.get().0, asked.weight.as_ref());
        watched(py, tensor.effort(weight), tensor.device(), &asked.settings, |options| {
            tensor.0.reduction_grad(row.name, index, weight, variable, &e, options)
        })
        .map(PyArray)
    }

    /// The values of a reduction and the gradients of the sum of `e` times them (of their sum,
    /// without `e`) towards variables, as far as possible in one pass over the pairs. What came from one
    /// pass may be views of one array, which stays as long as any of them: copy what is to be kept alone.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.Vi(tw.asarray([[1.0], [2.0]])), tw.Vj(tw.asarray([[0.0], [5.0], [7.0]]))
    /// >>> value, (gradient,) = x.sqdist(y).value_and_grad("sum", [x], axis=1)
    /// >>> value.tolist(), gradient.tolist()
    /// ([[53.0], [38.0]], [[-18.0], [-12.0]])
    #[pyo3(signature = (reduction, variables, e=None, axis=None, **options))]
    fn value_and_grad<'py>(
        slf: &Bound<'py, Self>,
        reduction: &str,
        variables: &Bound<'py, PyAny>,
        e: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(PyArray, Bound<'py, PyTuple>)> {
        let (py, tensor, row) = (slf.py(), slf.get(), named(reduction)?);
        let variables: Vec<Bound<'py, PyLazy>> = variables.extract().map_err(|_| {
            PyTypeError::new_err("value_and_grad: variables are a list of tensors, as in [x]")
        })?;
        let keywords = with_axis(py, options, axis)?;
        let asked = Asked::from_keywords(row, "value_and_grad", &tensor.0, &keywords, OF_RESULTS)?;
        let index = asked.index("value_and_grad")?;
        let like = Like::tensor(&tensor.0);
        let e = e.map(|e| required_array(e, like, "value_and_grad")).transpose()?;
        let variables: Vec<&LazyTensor> = variables.iter().map(|v| &v.get().0).collect();
        let weight = asked.weight.as_ref();
        let (value, gradients): (Array, Vec<Array>) =
            watched(py, tensor.effort(weight), tensor.device(), &asked.settings, |options| {
                tensor.0.value_and_grad(row.name, index, weight, &variables, e.as_ref(), options)
            })?;
        Ok((PyArray(value), PyTuple::new(py, gradients.into_iter().map(PyArray))?))
    }
}
