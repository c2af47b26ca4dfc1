//! `tilework.Partial`: reductions over some of the indices, to be merged with others.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilework::pairs::Partial;

use super::lazy::PyLazy;
use super::reductions::{Asked, named, result};
use super::settings::{OF_RESULTS, Settings};
use super::work::watched;
use crate::args::{kind_of, not_negative};
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DTypeArg;
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
pub struct PyPartial(pub Partial);

#[pymethods]
impl PyPartial {
    /// The state as plain values: a dict of the integers `version`, `dim`, `K`, `weights` and `count`, the
    /// texts `reduction` and `dtype`, and the arrays `values` and, for extremes, `indices`.
    ///
    /// `numpy.savez` keeps it without pickles, and `from_arrays(**numpy.load(file))` takes what it wrote; all but the
    /// arrays can be written as JSON.
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
        state.set_item("dtype", dtype.name())?;
        state.set_item("count", count)?;
        state.set_item("values", PyArray(values).into_pyobject(py)?)?;
        if let Some(indices) = indices {
            state.set_item("indices", PyArray(indices).into_pyobject(py)?)?;
        }
        Ok(state)
    }

    /// The state that `arrays` gave, as keywords; texts and numbers may be arrays of one, as
    /// `numpy.load` gives them.
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
        version: &Bound<'_, PyAny>,
        reduction: &Bound<'_, PyAny>,
        dim: &Bound<'_, PyAny>,
        K: &Bound<'_, PyAny>,
        weights: &Bound<'_, PyAny>,
        dtype: &Bound<'_, PyAny>,
        count: &Bound<'_, PyAny>,
        values: ArrayArg,
        indices: Option<ArrayArg>,
    ) -> PyResult<PyPartial> {
        let version = number("version", version)?;
        if version != Partial::VERSION as usize {
            let message = format!("Partial: version {version} is not {}", Partial::VERSION);
            return Err(PyValueError::new_err(message));
        }
        let reduction: String = alone(reduction)?
            .extract()
            .map_err(|_| PyTypeError::new_err("Partial: reduction is a name, such as \"Sum\""))?;
        let (row, dtype) = (named(&reduction)?, alone(dtype)?.extract::<DTypeArg>()?.0);
        let state = (number("count", count)? as u64, values.0, indices.map(|indices| indices.0));
        let shape = (number("dim", dim)?, number("K", K)?, number("weights", weights)?);
        Partial::from_arrays(row.name, shape, dtype, state).py().map(PyPartial)
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

/// What an array of one holds, as files give texts and numbers back; other objects are themselves.
fn alone<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match object.getattr("ndim").and_then(|ndim| ndim.extract::<usize>()) {
        Ok(0) => object.call_method0("item"),
        _ => Ok(object.clone()),
    }
}

/// The number that a key of a state holds.
fn number(key: &str, object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let found = alone(object)?.extract().map_err(|_| {
        let kind = kind_of(object);
        PyTypeError::new_err(format!("Partial: {key} is an integer, not {kind}"))
    })?;
    not_negative(&format!("Partial: {key}"), found)
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
