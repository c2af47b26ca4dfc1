//! `tilework.Genred`: reductions of formulas written as text.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::Array;
use tilework::pairs::Genred;

use super::operand::{Like, required_array};
use super::partial::PyPartial;
use super::reductions::{fits_out, result};
use super::settings::{OF_RESULTS, OF_TIME, Settings};
use super::work::{effort, watched};
use crate::array::PyArray;
use crate::device;
use crate::errors::OrRaise;
use crate::run::run;

/// A reduction of a formula in text, to be called with arrays.
///
/// `aliases` declare the variables: `x = Vi(3)` has rows of three numbers for each i, `Vj` for each
/// j, `Pm` is a parameter. As in KeOps, `axis` is 0 (over i) unless it is given.
///
/// >>> import tilework as tw
/// >>> sums = tw.Genred("Exp(-SqDist(x,y)) * b", ["x = Vi(1)", "y = Vj(1)", "b = Vj(1)"], axis=1)
/// >>> x = tw.asarray([[0.0], [1.0]])
/// >>> sums(x, x, tw.ones((2, 1))).shape
/// (2, 1)
#[pyclass(frozen, name = "Genred", module = "tilework")]
pub struct PyGenred {
    genred: Genred,
    settings: Settings,
    /// What it was made from, for pickles.
    made_from: Py<PyTuple>,
    keywords: Option<Py<PyDict>>,
}

/// The texts that declare variables.
pub(super) fn declarations(name: &str, aliases: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    aliases.extract().map_err(|_| {
        let message = format!("{name}: aliases are a list of texts, as in [\"x = Vi(3)\"]");
        PyTypeError::new_err(message)
    })
}

#[pymethods]
impl PyGenred {
    #[new]
    #[pyo3(signature = (formula, aliases, reduction_op="Sum", axis=0, dtype=None, opt_arg=None, formula2=None, **options))]
    #[allow(clippy::too_many_arguments, reason = "KeOps' signature")]
    fn new(
        py: Python<'_>,
        formula: String,
        aliases: &Bound<'_, PyAny>,
        reduction_op: &str,
        axis: isize,
        dtype: Option<&Bound<'_, PyAny>>,
        opt_arg: Option<isize>,
        formula2: Option<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyGenred> {
        // The arrays have their dtype; KeOps ignores this one too.
        let _ = dtype;
        let aliases = declarations("Genred", aliases)?;
        let texts: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let weight = formula2.as_deref();
        let (over, k) = (index(axis)?, opt_arg.map(count).transpose()?);
        let genred = Genred::with(&formula, &texts, reduction_op, over, k, weight).py()?;
        let mut settings = Settings::default();
        settings.take_all("Genred", options, OF_RESULTS, |_, _| Ok(false))?;
        settings.k = k;
        let parts = (formula, aliases, reduction_op, axis, py.None(), opt_arg, formula2);
        let made_from = parts.into_pyobject(py)?.unbind();
        let keywords = options.map(|options| options.copy()).transpose()?.map(Bound::unbind);
        Ok(PyGenred { genred, settings, made_from, keywords })
    }

    /// Reduces; arrays are `(..., M, D)`, `(..., N, D)` and `(..., D)`, batch axes broadcast.
    #[pyo3(signature = (*args, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let mut settings = self.settings.for_a_call(py);
        settings.take_all("Genred", options, OF_TIME, |_, _| Ok(false))?;
        let arrays = arrays(args, "Genred")?;
        let arrays: Vec<&Array> = arrays.iter().collect();
        let device = arrays.first().map_or_else(device::current, |array| array.device());
        let effort = effort_of(&self.genred, &arrays)?;
        fits_out(py, &settings, device, || self.genred.outline(&arrays))?;
        let reduced = watched(py, effort, device, &settings, |options| {
            self.genred.call_with(&arrays, options)
        })?;
        result(py, reduced, &settings)
    }

    /// What a call with these arrays gives, and the gradients of the sum of `e` times it (of its sum,
    /// without `e`) towards variables, by name; as far as possible in one pass over the pairs. What came
    /// from one pass may be views of one array, which stays as long as any of them: copy what is to be
    /// kept alone. Keywords are those of calls.
    ///
    /// >>> import tilework as tw
    /// >>> sums = tw.Genred("p * SqDist(x, y)", ["x = Vi(1)", "y = Vj(1)", "p = Pm(1)"], axis=1)
    /// >>> x, y = tw.asarray([[1.0], [2.0]]), tw.asarray([[0.0], [5.0], [7.0]])
    /// >>> value, (of_x, of_p) = sums.value_and_grad(x, y, tw.ones(1), variables=["x", "p"])
    /// >>> value.tolist(), of_x.tolist(), of_p.tolist()
    /// ([[53.0], [38.0]], [[-18.0], [-12.0]], [91.0])
    #[pyo3(signature = (*args, variables, e=None, **options))]
    fn value_and_grad<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        variables: Vec<String>,
        e: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(PyArray, Bound<'py, PyTuple>)> {
        let py = args.py();
        let mut settings = self.settings.for_a_call(py);
        settings.take_all("value_and_grad", options, OF_RESULTS, |_, _| Ok(false))?;
        let arrays = arrays(args, "value_and_grad")?;
        let arrays: Vec<&Array> = arrays.iter().collect();
        let device = arrays.first().map_or_else(device::current, |array| array.device());
        let dtype = arrays.first().map(|array| array.dtype());
        let like = Like { dtype, device: Some(device) };
        let e = e.map(|e| required_array(e, like, "value_and_grad")).transpose()?;
        let effort = effort_of(&self.genred, &arrays)?;
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let (value, gradients) = watched(py, effort, device, &settings, |options| {
            self.genred.value_and_grad(&arrays, &variables, e.as_ref(), options)
        })?;
        Ok((PyArray(value), PyTuple::new(py, gradients.into_iter().map(PyArray))?))
    }

    /// The state of a call over the rows at hand, the first of which has the index `offset` of a longer
    /// array; see `Partial`. Keywords are those of calls.
    ///
    /// >>> import tilework as tw
    /// >>> nearest = tw.Genred("SqDist(x, y)", ["x = Vi(1)", "y = Vj(1)"], "ArgMin", axis=1)
    /// >>> x, y = tw.asarray([[2.5]]), tw.asarray([[4.0], [2.0], [9.0], [2.0]])
    /// >>> parts = [nearest.partial(x, y[k : k + 2], offset=k) for k in (0, 2)]
    /// >>> parts[1].merge(parts[0]).finish().tolist()
    /// [[1]]
    #[pyo3(signature = (*args, offset=0, **options))]
    fn partial(
        &self,
        args: &Bound<'_, PyTuple>,
        offset: i64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPartial> {
        let py = args.py();
        let mut settings = self.settings.for_a_call(py);
        settings.take_all("partial", options, OF_RESULTS, |_, _| Ok(false))?;
        let arrays = arrays(args, "partial")?;
        let arrays: Vec<&Array> = arrays.iter().collect();
        let device = arrays.first().map_or_else(device::current, |array| array.device());
        let effort = effort_of(&self.genred, &arrays)?;
        let state = watched(py, effort, device, &settings, |options| {
            self.genred.partial(&arrays, offset, options)
        })?;
        Ok(PyPartial(state))
    }

    /// How a call with these arrays and keywords would go.
    ///
    /// >>> import tilework as tw
    /// >>> sums = tw.Genred("SqDist(x, y)", ["x = Vi(2)", "y = Vj(2)"], axis=1)
    /// >>> "SqDist" in sums.explain(tw.zeros((5, 2)), tw.zeros((6, 2)))
    /// True
    #[pyo3(signature = (*args, **options))]
    fn explain(
        &self,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let mut settings = self.settings.for_a_call(args.py());
        settings.take_all("explain", options, OF_TIME, |_, _| Ok(false))?;
        let arrays = arrays(args, "explain")?;
        let arrays: Vec<&Array> = arrays.iter().collect();
        let device = arrays.first().map_or_else(device::current, |array| array.device());
        let effort = effort_of(&self.genred, &arrays)?;
        run(args.py(), effort, device, || self.genred.explain(&arrays, &settings.options()))
    }

    fn __repr__(&self) -> String {
        format!("Genred({})", self.genred.reduction())
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let keywords = self.keywords.as_ref().map(|keywords| keywords.bind(py));
        restored(py.get_type::<PyGenred>().as_any(), self.made_from.bind(py), keywords)
    }
}

/// The index that a number stands for in a constructor, where there are no batch axes to count.
pub fn index(axis: isize) -> PyResult<usize> {
    let wrong = || format!("{axis} is not 0 (over i) or 1 (over j)");
    usize::try_from(axis).map_err(|_| tilework::Error::axis("reduction", wrong())).py()
}

/// How many values are to be kept.
pub fn count(k: isize) -> PyResult<usize> {
    let count = usize::try_from(k).ok().filter(|count| *count > 0);
    count.ok_or_else(|| PyValueError::new_err(format!("K = {k} is less than 1")))
}

/// How much work a call is.
pub fn effort_of(genred: &Genred, arrays: &[&Array]) -> PyResult<usize> {
    let reduction = genred.reduction();
    Ok(effort(genred.pairs(arrays).py()?, reduction.formula(), reduction.weight()))
}

/// The arrays of a call; lists take the dtype of the first array, and what has no device goes to the others.
pub fn arrays(args: &Bound<'_, PyTuple>, operation: &str) -> PyResult<Vec<Array>> {
    let like = Like::among(args.iter())?;
    args.iter().map(|object| required_array(&object, like, operation)).collect()
}

/// What a pickle of an object holds that is made by calling its class once more.
pub fn restored<'py>(
    class: &Bound<'py, PyAny>,
    made_from: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let py = class.py();
    let Some(keywords) = keywords else { return Ok((class.clone(), made_from.clone())) };
    let partial = py.import("functools")?.getattr("partial")?;
    Ok((partial.call((class,), Some(keywords))?, made_from.clone()))
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGenred>()
}
