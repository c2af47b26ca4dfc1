//! Methods from the tables: the functions of formulas and the reductions of `LazyTensor`.
//!
//! A method is a descriptor that knows its row; its documentation, with an example (`examples`), and
//! its signature come from the row too, so that a new row is a new method in Python without a line of code.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilework::formula::functions::Takes;
use tilework::formula::methods::{self, Method};
use tilework::formula::reduction::{REDUCTIONS, ReductionRow, Weight};
use tilework::pairs::{LazyArg, LazyTensor};

use super::examples;
use super::lazy::PyLazy;
use super::operand::{Like, Operand, is_listed};
use super::reductions::{PyReduced, along_components, arguments, method_name, reduction};
use crate::errors::OrRaise;

/// What a method does.
#[derive(Clone, Copy)]
enum Row {
    Function(&'static Method),
    Later(&'static str),
    Reduction(&'static ReductionRow),
}

// No documentation of the class: each method has its own.
#[pyclass(frozen, name = "LazyMethod", module = "tilework")]
struct PyMethod {
    row: Row,
    name: String,
    signature: String,
    doc: String,
}

// A method and its tensor.
#[pyclass(frozen, name = "BoundLazyMethod", module = "tilework")]
struct PyBoundMethod {
    method: Py<PyMethod>,
    tensor: Py<PyLazy>,
}

#[pymethods]
impl PyMethod {
    fn __get__(
        slf: &Bound<'_, Self>,
        instance: Option<&Bound<'_, PyAny>>,
        _owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(instance) = instance.filter(|instance| !instance.is_none()) else {
            return Ok(slf.clone().into_any().unbind());
        };
        let tensor = instance.cast_exact::<PyLazy>()?.clone().unbind();
        let bound = PyBoundMethod { method: slf.clone().unbind(), tensor };
        Ok(Py::new(slf.py(), bound)?.into_any())
    }

    #[pyo3(signature = (tensor, /, *args, **kwargs))]
    fn __call__(
        &self,
        tensor: &Bound<'_, PyLazy>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        match self.row {
            Row::Function(method) => function(method, tensor, args, kwargs),
            Row::Later(what) => {
                let message = format!("{}: {what} are not supported yet", self.name);
                Err(PyNotImplementedError::new_err(message))
            }
            Row::Reduction(row) => reduction(row, &self.name, tensor, args, kwargs),
        }
    }

    /// The text of the row, and an example.
    #[getter]
    fn __doc__(&self, py: Python<'_>) -> PyResult<String> {
        let example = match self.row {
            Row::Function(method) => examples::of_function(py, method)?,
            Row::Reduction(row) => examples::of_reduction(py, row, &self.name)?,
            Row::Later(_) => return Ok(self.doc.clone()),
        };
        Ok(format!("{}\n\n{example}", self.doc))
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    #[getter]
    fn __qualname__(&self) -> String {
        format!("LazyTensor.{}", self.name)
    }

    #[getter]
    fn __text_signature__(&self) -> &str {
        &self.signature
    }

    fn __repr__(&self) -> String {
        format!("<method '{}' of 'tilework.LazyTensor' objects>", self.name)
    }
}

#[pymethods]
impl PyBoundMethod {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.method.get().__call__(self.tensor.bind(py), args, kwargs)
    }

    /// The signature of the method without its tensor, for `inspect` and whoever shows help.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let whole = py.import("inspect")?.call_method1("signature", (&self.method,))?;
        let named = whole.getattr("parameters")?.call_method0("values")?;
        let others: Vec<Bound<'py, PyAny>> = named.try_iter()?.skip(1).collect::<PyResult<_>>()?;
        let keywords = PyDict::new(py);
        keywords.set_item("parameters", others)?;
        whole.call_method("replace", (), Some(&keywords))
    }

    #[getter]
    fn __self__(&self, py: Python<'_>) -> Py<PyLazy> {
        self.tensor.clone_ref(py)
    }

    #[getter]
    fn __func__(&self, py: Python<'_>) -> Py<PyMethod> {
        self.method.clone_ref(py)
    }

    #[getter]
    fn __doc__(&self, py: Python<'_>) -> PyResult<String> {
        self.method.get().__doc__(py)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.method.get().name
    }
}

/// Calls a function of formulas.
fn function(
    method: &Method,
    tensor: &Bound<'_, PyLazy>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (name, parameters) = (method.name, &method.parameters);
    let like = Like::tensor(&tensor.get().0);
    let many = parameters.last().is_some_and(|last| last.takes == Takes::Formulas);
    let plain = parameters.len() - usize::from(many);
    if args.len() > plain && !many {
        let message = format!("{name}: takes {plain} arguments, not {}", args.len());
        return Err(PyTypeError::new_err(message));
    }
    let mut given: SmallVec<[Option<Bound<'_, PyAny>>; 4]> = SmallVec::new();
    given.resize(plain, None);
    for (place, value) in args.iter().enumerate().take(plain) {
        given[place] = Some(value);
    }
    for (keyword, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        let keyword: String = keyword.extract()?;
        match parameters.iter().take(plain).position(|parameter| parameter.name == keyword) {
            Some(place) if given[place].is_none() => given[place] = Some(value),
            _ => {
                let message = format!("{name}: the keyword {keyword} is unknown or given twice");
                return Err(PyTypeError::new_err(message));
            }
        }
    }
    if method.function == "Diff"
        && let [Some(v), Some(e)] = &given[..]
        && is_listed(v)
    {
        return along_several(method, tensor, v, e);
    }
    let further = args.iter().skip(plain).collect::<Vec<_>>();
    let mut operands: SmallVec<[(usize, Operand<'_>); 4]> = SmallVec::new();
    let mut lists: SmallVec<[(&str, Vec<isize>); 4]> = SmallVec::new();
    operands.push((method.own, Operand::Ours(&tensor.get().0)));
    for (parameter, value) in parameters.iter().zip(&given) {
        let value = value.as_ref().filter(|value| !(parameter.optional && value.is_none()));
        match (parameter.takes, value) {
            (Takes::Counts | Takes::MaybeCounts, Some(value)) => {
                let numbers = value.extract().map_err(|_| {
                    let message = format!("{name}: {} is a list of integers", parameter.name);
                    PyTypeError::new_err(message)
                })?;
                lists.push((parameter.name, numbers));
            }
            (_, Some(value)) => {
                let operand = Operand::required(value, like, name)?;
                let is_component =
                    matches!(method.function, "Elem" | "Extract") && parameter.name == "i";
                let operand = match operand {
                    Operand::Number(at) if is_component && at < 0.0 => {
                        Operand::Number(from_the_end(name, at, tensor.get().0.dim())?)
                    }
                    other => other,
                };
                operands.push((parameter.place, operand));
            }
            (_, None) => match parameter.default {
                Some(number) => {
                    operands.push((parameter.place, Operand::Number(number as f64)));
                }
                None if parameter.optional => {}
                None => {
                    let message = format!("{name}: the argument {} is missing", parameter.name);
                    return Err(PyTypeError::new_err(message));
                }
            },
        }
    }
    for (k, value) in further.iter().enumerate() {
        operands.push((plain + 1 + k, Operand::required(value, like, name)?));
    }
    operands.sort_by_key(|(place, _)| *place);
    let operands: SmallVec<[LazyArg<'_>; 4]> = operands.iter().map(|(_, o)| o.arg()).collect();
    let lists = counted(name, &lists)?;
    let lists: SmallVec<[&[usize]; 4]> = lists.iter().map(|list| &list[..]).collect();
    let made = LazyTensor::function(method.function, &operands, &lists).py()?;
    Ok(Py::new(tensor.py(), PyLazy(made))?.into_any())
}

/// The place of a component that is counted from the end.
fn from_the_end(name: &str, at: f64, dim: usize) -> PyResult<f64> {
    match at + dim as f64 {
        found if found >= 0.0 => Ok(found),
        _ => {
            let message = format!("{name}: the component {at} is out of {dim}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Lists of sizes and of axes, which count from the end of the sizes that they are axes of where they
/// are negative; sizes are not.
fn counted(name: &str, lists: &[(&str, Vec<isize>)]) -> PyResult<SmallVec<[Vec<usize>; 4]>> {
    let len = |list: &str| {
        lists.iter().find(|(known, _)| *known == list).map_or(0, |(_, numbers)| numbers.len())
    };
    let found = lists.iter().map(|(list, numbers)| {
        let axes = match *list {
            "contf" => len("dimf"),
            "contg" => len("dimg"),
            "perm" => (len("dimf") + len("dimg")).saturating_sub(2 * len("contf")),
            "to" => len("dims"),
            _ => 0,
        };
        let place = |&number: &isize| match usize::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => axes.checked_add_signed(number).ok_or_else(|| {
                let limit = if axes > 0 { format!("out of {axes}") } else { "less than 0".into() };
                PyValueError::new_err(format!("{name}: {list}: {number} is {limit}"))
            }),
        };
        numbers.iter().map(place).collect()
    });
    found.collect()
}

/// The derivative in several directions at once: the sum of those in each.
fn along_several(
    method: &Method,
    tensor: &Bound<'_, PyLazy>,
    variables: &Bound<'_, PyAny>,
    directions: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = tensor.py();
    let variables: Vec<Bound<'_, PyAny>> = variables.try_iter()?.collect::<PyResult<_>>()?;
    let directions: Vec<Bound<'_, PyAny>> = match is_listed(directions) {
        true => directions.try_iter()?.collect::<PyResult<_>>()?,
        false => vec![directions.clone()],
    };
    if variables.len() != directions.len() || variables.is_empty() {
        let (some, others) = (variables.len(), directions.len());
        let message = format!("diff: {some} variables and {others} directions; each has its own");
        return Err(PyValueError::new_err(message));
    }
    let mut sum: Option<LazyTensor> = None;
    for pair in variables.into_iter().zip(directions) {
        let made = function(method, tensor, &pair.into_pyobject(py)?, None)?;
        let made = made.bind(py).cast_exact::<PyLazy>()?.get().0.clone();
        sum = Some(match sum {
            Some(sum) => sum.add(&made).py()?,
            None => made,
        });
    }
    let sum = sum.unwrap_or_else(|| LazyTensor::constant(0.0));
    Ok(Py::new(py, PyLazy(sum))?.into_any())
}

/// KeOps' methods that are refused for now, and what they are about.
const LATER: &[(&str, &str)] = &[
    ("exp1j", "complex tensors"),
    ("imag2complex", "complex tensors"),
    ("real2complex", "complex tensors"),
    ("softdtw_sqdist", "distances by dynamic time warping"),
];

/// Puts the methods of the tables into the class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<PyReduced>()?;
    let class = py.get_type::<PyLazy>();
    for method in methods::all() {
        let signature = match method.signature {
            "" => "($self, /)".to_string(),
            some => format!("($self, {some})"),
        };
        let doc = format!("{}\n\nIn text: {}.", method.doc, method.function);
        let name = method.name.to_string();
        let made = PyMethod { row: Row::Function(method), name, signature, doc };
        class.setattr(method.name, Py::new(py, made)?)?;
    }
    for (name, what) in LATER {
        let (signature, doc) = ("($self, *args)".into(), format!("Not there yet: {what}."));
        let made = PyMethod { row: Row::Later(what), name: name.to_string(), signature, doc };
        class.setattr(*name, Py::new(py, made)?)?;
    }
    // The operator takes keywords too, as KeOps' does: `K.__matmul__(v, sum_scheme=...)`.
    class.setattr("__matmul__", class.getattr("matmul")?)?;
    // Components can be indexed, but a tensor is no sequence of them.
    class.setattr("__iter__", py.None())?;
    for row in REDUCTIONS {
        let axis = if along_components(row) { "axis=-1" } else { "axis=None" };
        let named = |name: &str| match name {
            "axis" => axis.to_string(),
            "weight" if row.weight == Weight::Optional => "weight=None".to_string(),
            name => name.to_string(),
        };
        let names: Vec<String> = arguments(row).into_iter().map(named).collect();
        let signature = format!("($self, {}, **options)", names.join(", "));
        let components = match along_components(row) {
            true => " Along the components (axis -1) it is a function of the formula.",
            false => "",
        };
        let doc = format!(
            "{}\n\nOver i (axis 0) or j (axis 1), after batch axes.{components} Options: accuracy, \
             scheme, sum_scheme, device, progress, out, call, and KeOps' own.",
            row.doc
        );
        let method = method_name(row);
        for name in [method.clone(), format!("{method}_reduction")] {
            let (signature, doc) = (signature.clone(), doc.clone());
            let made = PyMethod { row: Row::Reduction(row), name: name.clone(), signature, doc };
            class.setattr(name, Py::new(py, made)?)?;
        }
    }
    Ok(())
}
