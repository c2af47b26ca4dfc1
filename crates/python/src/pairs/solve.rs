//! Linear systems for Python: `LazyTensor.solve`, `KernelSolve`, and the error that tells how far
//! they came.

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::formula::Variable;
use tilework::pairs::{
    Category, Columns, Genred, LazyTensor, Options, Solution, Solve, conjugate_gradient,
};
use tilework::{Array, DType};

use super::genred::{arrays, declarations, effort_of, index, restored};
use super::lazy::PyLazy;
use super::operand::{Like, number, required_array};
use super::reductions::once;
use super::settings::{OF_RESULTS, Settings};
use super::work::watched;
use crate::array::PyArray;
use crate::device;
use crate::errors::OrRaise;

pyo3::create_exception!(
    tilework,
    SolveError,
    PyRuntimeError,
    "A linear system that was not solved; `residual` is relative to the right-hand side, \
     `iterations` is how many steps were taken, `x` the best that was found."
);

/// The unknowns, or the exception that carries the residual.
fn solved(py: Python<'_>, solution: Solution) -> PyResult<PyArray> {
    if solution.failure.is_none() {
        return Ok(PyArray(solution.x));
    }
    let (x, residual, iterations) = (solution.x.clone(), solution.residual, solution.iterations);
    let message = match solution.converged() {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    let error = SolveError::new_err(message);
    let value = error.value(py);
    value.setattr("residual", residual)?;
    value.setattr("iterations", iterations)?;
    value.setattr("x", PyArray(x))?;
    Err(error)
}

/// When to stop, from keywords; `eps` is KeOps' name of the tolerance.
struct System {
    solve: Solve,
    settings: Settings,
}

impl System {
    fn read(
        name: &str,
        mut settings: Settings,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<System> {
        let mut solve = Solve::default();
        let mut tolerance = None;
        settings.take_all(name, options, OF_RESULTS, |keyword, value| {
            match keyword {
                "alpha" => solve.alpha = one_number(keyword, value)?,
                "tol" | "eps" => {
                    once(name, "the tolerance", "eps is KeOps' word for tol", &tolerance)?;
                    tolerance = Some(one_number(keyword, value)?);
                }
                "maxiter" => {
                    let steps: Option<isize> = value.extract()?;
                    let wrong =
                        |_| PyValueError::new_err(format!("{name}: maxiter is less than 0"));
                    solve.maxiter = steps.map(usize::try_from).transpose().map_err(wrong)?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        solve.tol = tolerance.unwrap_or(solve.tol);
        Ok(System { solve, settings })
    }

    /// How much work it may be, if a product with the matrix is so much.
    fn effort(&self, product: usize) -> usize {
        product.saturating_mul(self.solve.maxiter.unwrap_or(product))
    }
}

/// A number, or the only one of an array, as KeOps' users pass them.
fn one_number(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Some(number) = number(value)? {
        return Ok(number);
    }
    let array = required_array(value, Like::default(), keyword)?;
    if array.len() != 1 {
        let message = format!("{keyword}: a number is expected, not {} of them", array.len());
        return Err(PyValueError::new_err(message));
    }
    array.to_dtype(DType::Float64).and_then(|array| array.item::<f64>()).py()
}

#[pymethods]
impl PyLazy {
    /// Solves (alpha + K) a = b by conjugate gradients, for K symmetric and positive.
    ///
    /// `b` is an array of one number or row for each i, or a LazyTensor made of one by `Vi`. With
    /// `var`, a symbolic variable of this formula, the formula must be linear in it and is summed.
    /// Keywords: `alpha=1e-10`, `tol=1e-6` (of the residual, relative to b), `maxiter=None`, and
    /// those of reductions. Raises `SolveError`, which carries the residual.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.linspace(0.0, 1.0, 20).reshape(-1, 1)
    /// >>> K = (-10 * tw.Vi(x).sqdist(tw.Vj(x))).exp()
    /// >>> a = K.solve(x, alpha=0.1)
    /// >>> (tw.max(abs(K @ a + 0.1 * a - x)) < 1e-5).item()
    /// True
    #[pyo3(signature = (b, var=None, **options))]
    fn solve(
        slf: &Bound<'_, Self>,
        b: &Bound<'_, PyAny>,
        var: Option<&Bound<'_, PyLazy>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyArray> {
        let (py, tensor) = (slf.py(), slf.get());
        let system = System::read("solve", Settings::default(), options)?;
        let right = match b.cast_exact::<PyLazy>() {
            Ok(lazy) => lazy.get().0.array().cloned().ok_or_else(|| {
                PyTypeError::new_err("solve: the right-hand side is an array, or Vi of one")
            })?,
            Err(_) => required_array(b, Like::tensor(&tensor.0), "solve")?,
        };
        let lazy = &tensor.0;
        let linear = var.map(|var| linear_in(lazy, &var.get().0)).transpose()?;
        let effort = system.effort(tensor.effort(None));
        let solution =
            watched(py, effort, tensor.device(), &system.settings, |options| match linear {
                None => lazy.solve(&right, &system.solve, options),
                Some((axis, unknown)) => {
                    let columns = Columns::of(lazy.expr(), unknown);
                    let product = |v: &Array, options: &Options<'_>| {
                        lazy.fill(&[v])?.reduce("Sum", axis, None, options)?.only()
                    };
                    conjugate_gradient(product, &right, columns, &system.solve, options)
                }
            })?;
        solved(py, solution)
    }
}

/// The index to sum over so that the symbolic variable is what is solved for, and that variable.
fn linear_in(tensor: &LazyTensor, var: &LazyTensor) -> PyResult<(usize, Variable)> {
    let (symbols, own) = (tensor.symbols(), var.symbols());
    match (&symbols[..], &own[..]) {
        ([symbol], [unknown]) if symbol == unknown => match symbol.category as usize {
            0 => Ok((0, *symbol)),
            1 => Ok((1, *symbol)),
            _ => Err(PyValueError::new_err("solve: the unknown is a variable of i or of j")),
        },
        _ => {
            let message = "solve: var is the one symbolic variable of the formula";
            Err(PyValueError::new_err(message))
        }
    }
}

/// The solution of (alpha + K) a = b, for a formula in text that is linear in one of its variables.
///
/// `varinvalias` names that variable; the array in its place is the right-hand side. Called with
/// `alpha=1e-10`, `tol=1e-6` (KeOps' `eps`), `maxiter=None`.
///
/// >>> import tilework as tw
/// >>> aliases = ["x = Vi(1)", "y = Vj(1)", "b = Vj(1)"]
/// >>> solver = tw.KernelSolve("Exp(-SqDist(x,y)) * b", aliases, "b", axis=1)
/// >>> x = tw.linspace(0.0, 1.0, 5).reshape(-1, 1)
/// >>> solver(x, x, x, alpha=0.1).shape
/// (5, 1)
#[pyclass(frozen, name = "KernelSolve", module = "tilework")]
pub struct PyKernelSolve {
    genred: Genred,
    unknown: usize,
    settings: Settings,
    /// What it was made from, for pickles.
    made_from: Py<PyTuple>,
    keywords: Option<Py<PyDict>>,
}

#[pymethods]
impl PyKernelSolve {
    #[new]
    #[pyo3(signature = (formula, aliases, varinvalias, axis=0, **options))]
    fn new(
        py: Python<'_>,
        formula: &str,
        aliases: &Bound<'_, PyAny>,
        varinvalias: &str,
        axis: isize,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyKernelSolve> {
        let mut settings = Settings::default();
        settings.take_all("KernelSolve", options, OF_RESULTS, |_, _| Ok(false))?;
        let aliases = declarations("KernelSolve", aliases)?;
        let texts: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let genred = Genred::new(formula, &texts, "Sum", index(axis)?).py()?;
        let Some(unknown) = genred.position(varinvalias) else {
            let message = format!("KernelSolve: {varinvalias:?} is none of the variables");
            return Err(PyValueError::new_err(message));
        };
        let used = genred.reduction().formula().variables().py()?;
        if used.iter().any(|it| it.position == unknown && it.category == Category::Parameter) {
            let message = format!(
                "KernelSolve: {varinvalias:?} is a parameter; the unknown is a variable of i or of j"
            );
            return Err(PyValueError::new_err(message));
        }
        let made_from = (formula, aliases, varinvalias, axis).into_pyobject(py)?.unbind();
        let keywords = options.map(|options| options.copy()).transpose()?.map(Bound::unbind);
        Ok(PyKernelSolve { genred, unknown, settings, made_from, keywords })
    }

    /// Solves with these arrays, that of the unknown being the right-hand side.
    #[pyo3(signature = (*args, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyArray> {
        let system = System::read("KernelSolve", self.settings.for_a_call(py), options)?;
        let arrays = arrays(args, "KernelSolve")?;
        let arrays: Vec<&Array> = arrays.iter().collect();
        let device = arrays.first().map_or_else(device::current, |array| array.device());
        let effort = system.effort(effort_of(&self.genred, &arrays)?);
        let solution = watched(py, effort, device, &system.settings, |options| {
            self.genred.solve(&arrays, self.unknown, &system.solve, options)
        })?;
        solved(py, solution)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let keywords = self.keywords.as_ref().map(|keywords| keywords.bind(py));
        restored(py.get_type::<PyKernelSolve>().as_any(), self.made_from.bind(py), keywords)
    }

    fn __repr__(&self) -> String {
        format!("KernelSolve({}, argument {})", self.genred.reduction(), self.unknown)
    }
}

/// Adds the class and the exception to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKernelSolve>()?;
    module.add("SolveError", module.py().get_type::<SolveError>())
}
