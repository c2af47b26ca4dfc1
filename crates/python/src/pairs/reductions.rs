//! Reductions of `LazyTensor`: their arguments, now or later, and what they give.
//!
//! What a reduction takes is read from its row. Called by `methods`, `operators` and `partial`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilework::formula::functions::FUNCTIONS;
use tilework::formula::reduction::{ReductionRow, Weight};
use tilework::pairs::{Along, LazyArg, LazyTensor, Outline, Reduced};
use tilework::{Device, Result};

use super::genred::count;
use super::lazy::PyLazy;
use super::operand::{Like, Operand, required_array};
use super::settings::{OF_TIME, Settings};
use super::work::watched;
use crate::args::{fits, target};
use crate::array::PyArray;
use crate::errors::OrRaise;
use crate::run::run;

/// The name that a reduction has as a method: KeOps' keep a large K.
pub fn method_name(row: &ReductionRow) -> String {
    row.name.chars().map(|c| if c == 'K' { c } else { c.to_ascii_lowercase() }).collect()
}

/// The reduction with this name, however it is written: `Sum`, `sum`, `argKmin`.
pub fn named(name: &str) -> PyResult<&'static ReductionRow> {
    tilework::formula::reduction::named(name).py()
}

/// Whether a reduction is also a function of the components, and so has a default axis.
pub fn along_components(row: &ReductionRow) -> bool {
    FUNCTIONS.iter().any(|function| function.name == row.name)
}

/// The arguments of a reduction in their order.
pub fn arguments(row: &ReductionRow) -> Vec<&'static str> {
    let mut names = Vec::new();
    if row.takes_k {
        names.push("K");
    }
    if row.weight == Weight::Required {
        names.push("weight");
    }
    names.push("axis");
    if row.weight == Weight::Optional {
        names.push("weight");
    }
    names
}

/// What a call of a reduction says.
pub struct Asked {
    pub row: &'static ReductionRow,
    pub along: Along,
    pub weight: Option<LazyTensor>,
    pub settings: Settings,
}

impl Asked {
    /// Reads keywords, without those that mean nothing to the operation.
    pub fn from_keywords(
        row: &'static ReductionRow,
        name: &str,
        tensor: &LazyTensor,
        kwargs: &Bound<'_, PyDict>,
        without: &[&str],
    ) -> PyResult<Asked> {
        Asked::read(row, name, tensor, &[], Some(kwargs), without)
    }

    /// Reads the arguments after the tensor.
    fn read(
        row: &'static ReductionRow,
        name: &str,
        tensor: &LazyTensor,
        args: &[Bound<'_, PyAny>],
        kwargs: Option<&Bound<'_, PyDict>>,
        without: &[&str],
    ) -> PyResult<Asked> {
        let mut settings = Settings::default();
        let mut axis: Option<isize> = None;
        let mut weight: Option<LazyTensor> = None;
        let names = arguments(row);
        if args.len() > names.len() {
            let message = format!("{name}: takes {} arguments, not {}", names.len(), args.len());
            return Err(PyTypeError::new_err(message));
        }
        let mut k: Option<usize> = None;
        let mut keeps = false;
        let mut take = |keyword: &str, value: &Bound<'_, PyAny>| -> PyResult<bool> {
            match keyword {
                "axis" | "dim" if value.is_none() => {}
                "axis" | "dim" => {
                    once(name, "the axis", "dim is another word for it", &axis)?;
                    axis = Some(value.extract()?);
                }
                "K" | "opt_arg" if row.takes_k => {
                    once(name, "K", "opt_arg is another word for it", &k)?;
                    k = Some(count(value.extract()?)?);
                }
                "keepdim" | "keepdims" => keeps = value.is_truthy()?,
                "weight" | "other" if value.is_none() => {}
                "weight" | "other" if row.weight != Weight::None => {
                    once(name, "the weight", "other is another word for it", &weight)?;
                    weight = Some(Operand::required(value, Like::tensor(tensor), name)?.tensor());
                }
                _ => return Ok(false),
            }
            Ok(true)
        };
        for (keyword, value) in names.iter().zip(args) {
            take(keyword, value)?;
        }
        settings.take_all(name, kwargs, without, take)?;
        settings.k = k;
        let axis = match axis {
            Some(axis) => axis,
            None if along_components(row) => -1,
            None => {
                let i = tensor.batch_axes();
                let message = format!("{name}: axis is missing: {i} is over i, {} over j", i + 1);
                return Err(PyTypeError::new_err(message));
            }
        };
        let along = tensor.along(axis).py()?;
        if keeps && along != Along::Components {
            let message = format!("{name}: what is reduced does not stay; only components do");
            return Err(PyValueError::new_err(message));
        }
        Ok(Asked { row, along, weight, settings })
    }

    /// The index that is reduced over; an error for the components.
    pub fn index(&self, name: &str) -> PyResult<usize> {
        match self.along {
            Along::Index(axis) => Ok(axis),
            Along::Components => {
                let message = format!("{name}: components are not reduced, only i or j");
                Err(PyValueError::new_err(message))
            }
        }
    }
}

/// Refuses what was given already.
pub fn once<T>(operation: &str, what: &str, hint: &str, known: &Option<T>) -> PyResult<()> {
    match known {
        None => Ok(()),
        Some(_) => {
            let message = format!("{operation}: {what} is given twice; {hint}");
            Err(PyTypeError::new_err(message))
        }
    }
}

/// Calls a reduction as a method.
pub fn reduction(
    row: &'static ReductionRow,
    name: &str,
    tensor: &Bound<'_, PyLazy>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, lazy) = (tensor.py(), tensor.get());
    let args: SmallVec<[Bound<'_, PyAny>; 3]> = args.iter().collect();
    let asked = Asked::read(row, name, &lazy.0, &args, kwargs, &[])?;
    if asked.along == Along::Components && along_components(row) {
        let settings = &asked.settings;
        if settings.out.is_some() || settings.later {
            let message =
                format!("{name}: along components nothing is computed: no out, no call=False");
            return Err(PyTypeError::new_err(message));
        }
        let made = LazyTensor::function(row.name, &[LazyArg::Tensor(&lazy.0)], &[]).py()?;
        return Ok(Py::new(py, PyLazy(made))?.into_any());
    }
    let axis = asked.index(name)?;
    let symbolic = |tensor: &LazyTensor| !tensor.symbols().is_empty();
    if asked.settings.later || symbolic(&lazy.0) || asked.weight.as_ref().is_some_and(symbolic) {
        let keywords = kwargs.map_or_else(|| Ok(PyDict::new(py)), |kwargs| kwargs.copy())?;
        for (keyword, value) in arguments(row).iter().zip(&args) {
            keywords.set_item(keyword, value)?;
        }
        keywords.set_item("call", false)?;
        let keywords = keywords.unbind();
        let later = PyReduced { tensor: lazy.0.clone(), axis, asked, keywords };
        return Ok(Py::new(py, later)?.into_any());
    }
    compute(py, &lazy.0, axis, &asked, &asked.settings)
}

/// The sum over an index.
pub fn summed(
    py: Python<'_>,
    tensor: &PyLazy,
    axis: usize,
    settings: Settings,
) -> PyResult<Py<PyAny>> {
    let asked = Asked { row: named("Sum")?, along: Along::Index(axis), weight: None, settings };
    compute(py, &tensor.0, axis, &asked, &asked.settings)
}

fn compute(
    py: Python<'_>,
    tensor: &LazyTensor,
    axis: usize,
    asked: &Asked,
    settings: &Settings,
) -> PyResult<Py<PyAny>> {
    let (shown, weight) = (PyLazy(tensor.clone()), asked.weight.as_ref());
    fits_out(py, settings, shown.device(), || {
        tensor.outline(asked.row.name, axis, weight, &settings.options())
    })?;
    let reduced = watched(py, shown.effort(weight), shown.device(), settings, |options| {
        tensor.reduce(asked.row.name, axis, weight, options)
    })?;
    result(py, reduced, settings)
}

/// Refuses an `out` that the result does not fit into, before there is any work.
pub fn fits_out(
    py: Python<'_>,
    settings: &Settings,
    device: Device,
    outline: impl FnOnce() -> Result<Outline>,
) -> PyResult<()> {
    let Some(out) = &settings.out else { return Ok(()) };
    let Outline { shape, dtype, is_two } = outline().py()?;
    if is_two {
        let message = "out: the reduction gives values and indices, out takes one array";
        return Err(PyValueError::new_err(message));
    }
    let to = target(out.bind(py), device)?;
    fits(&to, &shape, dtype, true)
}

/// What a reduction gives, as an object: an array, or values and indices.
pub fn result(py: Python<'_>, reduced: Reduced, settings: &Settings) -> PyResult<Py<PyAny>> {
    match (reduced.values, reduced.indices) {
        (Some(values), Some(indices)) => {
            let both = (PyArray(values), PyArray(indices)).into_pyobject(py)?;
            Ok(both.into_any().unbind())
        }
        (values, indices) => {
            let array = Reduced { values, indices }.only().py()?;
            let Some(out) = &settings.out else {
                return PyArray(array).into_py_any(py);
            };
            let to = target(out.bind(py), array.device())?;
            // At the end and at once, not block by block: work that fails or is stopped leaves `out` as it
            // was, and the blocks may read what it overlaps.
            run(py, array.len(), array.device(), || to.assign(&array))?;
            Ok(out.clone_ref(py))
        }
    }
}

#[pymethods]
impl PyLazy {
    /// The reduction of this name: what KeOps' methods are made of. `other` is the weight and
    /// `opt_arg` is K, where the reduction takes them.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.Vi(tw.asarray([[1.0], [3.0]])) * tw.Vj(tw.asarray([[1.0], [2.0]]))
    /// >>> x.reduction("ArgKMin", opt_arg=2, axis=1).tolist()
    /// [[0, 1], [0, 1]]
    #[pyo3(signature = (reduction_op, other=None, opt_arg=None, axis=None, **options))]
    fn reduction(
        slf: &Bound<'_, Self>,
        reduction_op: &str,
        other: Option<&Bound<'_, PyAny>>,
        opt_arg: Option<isize>,
        axis: Option<isize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, row) = (slf.py(), named(reduction_op)?);
        let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        if let Some(axis) = axis {
            keywords.set_item("axis", axis)?;
        }
        if let Some(weight) = other {
            keywords.set_item("other", weight)?;
        }
        if let Some(k) = opt_arg {
            keywords.set_item("opt_arg", k)?;
        }
        reduction(row, "reduction", slf, &PyTuple::empty(py), Some(&keywords))
    }
}

/// A reduction that waits for the arrays of its symbolic variables.
#[pyclass(frozen, name = "ReducedLazyTensor", module = "tilework")]
pub struct PyReduced {
    tensor: LazyTensor,
    axis: usize,
    asked: Asked,
    /// What it was made with, for pickles.
    keywords: Py<PyDict>,
}

#[pymethods]
impl PyReduced {
    // NumPy would wrap it as one object, and go on with that.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__(&self, dtype: Option<Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<()> {
        let _ = (dtype, copy);
        let mut symbols = self.tensor.symbols();
        symbols.extend(self.asked.weight.iter().flat_map(LazyTensor::symbols));
        let message = format!(
            "asarray: this reduction has symbolic variables, and so is no array before it is called \
             with {}",
            LazyTensor::wanted(&symbols)
        );
        Err(PyTypeError::new_err(message))
    }

    /// Computes it with arrays for the symbolic variables, in the order of their indices.
    #[pyo3(signature = (*arrays, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let mut symbols = self.tensor.symbols();
        symbols.extend(self.asked.weight.iter().flat_map(LazyTensor::symbols));
        symbols.sort_unstable();
        symbols.dedup();
        if symbols.len() != arrays.len() {
            let message = format!(
                "{}: takes {}, not {}",
                method_name(self.asked.row),
                LazyTensor::wanted(&symbols),
                arrays.len()
            );
            return Err(PyTypeError::new_err(message));
        }
        let like = Like::tensor(&self.tensor).or(Like::among(arrays.iter())?);
        let mut found = Vec::with_capacity(symbols.len());
        for (symbol, object) in symbols.iter().zip(arrays.iter()) {
            found.push(required_array(&object, like, &symbol.to_string())?);
        }
        let fill = |tensor: &LazyTensor| {
            let own = tensor.symbols();
            let arrays = symbols.iter().zip(&found).filter(|(symbol, _)| own.contains(symbol));
            let arrays: Vec<&tilework::Array> = arrays.map(|(_, array)| array).collect();
            tensor.fill(&arrays).py()
        };
        let tensor = fill(&self.tensor)?;
        let mut settings = self.asked.settings.for_a_call(py);
        settings.take_all("call", options, OF_TIME, |_, _| Ok(false))?;
        let weight = self.asked.weight.as_ref().map(fill).transpose()?;
        let asked = Asked {
            row: self.asked.row,
            along: self.asked.along,
            weight,
            settings: Settings::default(),
        };
        compute(py, &tensor, self.axis, &asked, &settings)
    }

    fn __repr__(&self) -> String {
        format!("{}({:?}, axis={})", self.asked.row.name, self.tensor, self.axis)
    }

    // The method is called once more, on the tensor of the pickle.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let caller = py.import("operator")?.getattr("methodcaller")?;
        let name = ("reduction", self.asked.row.name);
        let made = caller.call(name, Some(self.keywords.bind(py)))?;
        Ok((made, (PyLazy(self.tensor.clone()),).into_pyobject(py)?))
    }
}
