//! `tilework.Partial`: reductions over some of the indices, to be merged with others.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilework::pairs::Partial;

use super::lazy::PyLazy;
use super::reductions::{Asked, named, result};
use super::settings::{OF_RESULTS, Settings};
use super::work::watched;
use crate::array::PyArray;
use crate::dtype::{self, DTypeArg};
use crate::errors::OrRaise;
use crate::run::run;

/// A reduction over some of the indices: made by `LazyTensor.partial`, merged with others, finished.
///
/// >>> import tilework as tw
/// >>> x, y = tw.asarray([[2.5]]), tw.asarray([[4.0], [2.0], [9.0], [2.0]])
/// >>> def part(first, last):
/// ...     d = tw.Vi(x).sqdist(tw.Vj(y[first:last]))
/// ...     return d.partial("argmin", axis=1, offset=first)
/// >>> part(2, 4).merge(part(0, 2)).finish().tolist()
/// [[1]]
#[pyclass(frozen, name = "Partial", module = "tilework")]
pub struct PyPartial(Partial);

#[pymethods]
impl PyPartial {
    /// The state as plain values: a dict of `version`, `reduction`, `dim`, `K`, `weights`, `dtype`,
    /// `count`, and the arrays `values` and `indices` (None where there are none).
    ///
    /// Version 1: `values` is `(..., rows, width)` in float32 or float64, `indices` the same in
    /// int64. Extremes hold `K * dim` values and indices, best first; exponentials, one component
    /// of F after the other, the largest exponent m, the sum of exp(F - m), then that sum for each
    /// weight; others `dim` values.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.asarray([[0.0], [1.0]]), tw.asarray([[5.0], [7.0]])
    /// >>> (tw.Vi(x) - tw.Vj(y)).partial("Sum", axis=1).arrays()["values"].tolist()
    /// [[-12.0], [-10.0]]
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (count, values, indices) = self.0.arrays();
        let (reduction, (dim, k, weights), dtype) = self.0.layout();
        let state = PyDict::new(py);
        state.set_item("version", Partial::VERSION)?;
        state.set_item("reduction", reduction)?;
        state.set_item("dim", dim)?;
        state.set_item("K", k)?;
        state.set_item("weights", weights)?;
        state.set_item("dtype", dtype::object(py, dtype))?;
        state.set_item("count", count)?;
        state.set_item("values", PyArray(values).into_pyobject(py)?)?;
        state.set_item("indices", indices.map(PyArray))?;
        Ok(state)
    }

    /// The state that `arrays` gave, as keywords.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.asarray([[0.0], [1.0]]), tw.asarray([[5.0], [7.0]])
    /// >>> state = (tw.Vi(x) - tw.Vj(y)).partial("Sum", axis=1).arrays()
    /// >>> tw.Partial.from_arrays(**state).finish().tolist()
    /// [[-12.0], [-10.0]]
    #[staticmethod]
    #[pyo3(signature = (*, version, reduction, dim, K, weights, dtype, count, values, indices=None))]
    #[allow(clippy::too_many_arguments, non_snake_case, reason = "the keys of `arrays`")]
    fn from_arrays(
        version: u32,
        reduction: &str,
        dim: usize,
        K: usize,
        weights: usize,
        dtype: DTypeArg,
        count: u64,
        values: crate::convert::ArrayArg,
        indices: Option<crate::convert::ArrayArg>,
    ) -> PyResult<PyPartial> {
        if version != Partial::VERSION {
            let message = format!("Partial: version {version} is not {}", Partial::VERSION);
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        let state = (count, values.0, indices.map(|indices| indices.0));
        let row = named(reduction)?;
        Partial::from_arrays(row.name, (dim, K, weights), dtype.0, state).py().map(PyPartial)
    }

    /// Both together; indices are exact whatever the grouping.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.asarray([[0.0], [1.0]]), tw.asarray([[5.0], [7.0]])
    /// >>> parts = [(tw.Vi(x) - tw.Vj(y[k : k + 1])).partial("Max", axis=1, offset=k) for k in (0, 1)]
    /// >>> parts[0].merge(parts[1]).finish().tolist()
    /// [[-5.0], [-4.0]]
    #[pyo3(signature = (other, /))]
    fn merge(&self, py: Python<'_>, other: &PyPartial) -> PyResult<PyPartial> {
        let (_, values, _) = self.0.arrays();
        run(py, values.len(), values.device(), || self.0.merge(&other.0)).map(PyPartial)
    }

    /// The result of the reduction.
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.asarray([[0.0], [1.0]]), tw.asarray([[5.0], [7.0]])
    /// >>> (tw.Vi(x) - tw.Vj(y)).partial("Min", axis=1).finish().tolist()
    /// [[-7.0], [-6.0]]
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (_, values, _) = self.0.arrays();
        let reduced = run(py, values.len(), values.device(), || self.0.finish())?;
        result(py, reduced, &Settings::default())
    }

    fn __repr__(&self) -> String {
        let (count, values, _) = self.0.arrays();
        let (reduction, ..) = self.0.layout();
        format!("Partial({reduction} of {count} indices, values {:?})", values.shape())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let restore = py.import("tilework._core")?.getattr("_restore_partial")?;
        Ok((restore, (self.arrays(py)?,)).into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl PyLazy {
    /// The state of a reduction over the rows at hand, the first of which has the index `offset` of
    /// a longer array. Further keywords are those of the reduction: `K`, `weight`, `accuracy`, ...
    ///
    /// >>> import tilework as tw
    /// >>> x, y = tw.asarray([[0.0], [1.0]]), tw.asarray([[5.0], [7.0]])
    /// >>> (tw.Vi(x) - tw.Vj(y)).partial("ArgMax", axis=1, offset=100).finish().tolist()
    /// [[100], [100]]
    #[pyo3(signature = (reduction, axis=None, *, offset=0, **options))]
    fn partial(
        slf: &Bound<'_, Self>,
        reduction: &str,
        axis: Option<&Bound<'_, PyAny>>,
        offset: i64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPartial> {
        let (py, tensor, row) = (slf.py(), slf.get(), named(reduction)?);
        let keywords = with_axis(py, options, axis)?;
        let asked = Asked::from_keywords(row, "partial", &tensor.0, &keywords, OF_RESULTS)?;
        let index = asked.index("partial")?;
        let weight = asked.weight.as_ref();
        watched(py, tensor.effort(weight), tensor.device(), &asked.settings, |options| {
            tensor.0.partial(row.name, index, weight, offset, options)
        })
        .map(PyPartial)
    }

    /// How a reduction would go: what is computed once, for each i, for each j and for every pair,
    /// and what the device makes of it. Keywords are those of the reduction.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.zeros((5, 2))
    /// >>> "SqDist" in tw.Vi(x).sqdist(tw.Vj(x)).explain(axis=1)
    /// True
    #[pyo3(signature = (reduction="Sum", axis=None, **options))]
    fn explain(
        slf: &Bound<'_, Self>,
        reduction: &str,
        axis: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let (py, lazy, row) = (slf.py(), slf.get(), named(reduction)?);
        let tensor = &lazy.0;
        let keywords = with_axis(py, options, axis)?;
        if axis.is_none() && !keywords.contains("dim")? {
            keywords.set_item("axis", tensor.batch_axes() + 1)?;
        }
        let asked = Asked::from_keywords(row, "explain", tensor, &keywords, &[])?;
        let index = asked.index("explain")?;
        let weight = asked.weight.as_ref();
        run(py, lazy.effort(weight), lazy.device(), || {
            tensor.explain(row.name, index, weight, &asked.settings.options())
        })
    }
}

/// The keywords of a reduction with its axis among them.
pub fn with_axis<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
    axis: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
    if let Some(axis) = axis {
        keywords.set_item("axis", axis)?;
    }
    Ok(keywords)
}

/// The Partial of a pickle.
#[pyfunction]
#[pyo3(signature = (state, /))]
fn _restore_partial<'py>(
    py: Python<'py>,
    state: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<PyPartial>().call_method("from_arrays", (), Some(state))
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPartial>()?;
    module.add_function(wrap_pyfunction!(_restore_partial, module)?)
}
