//! Elementwise functions, one for each row of the table of operations.
//!
//! A new row is a new function here without a line of code; only `clip`, whose bounds may be left
//! out, is written by hand. Also NumPy's protocol for its own functions (`np.exp(x)`).

#![allow(unsafe_op_in_unsafe_fn, reason = "in what PyO3 makes of the macro below")]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilework::{Arg, Device, Id, apply, apply_into};

use crate::args;
use crate::array::PyArray;
use crate::operand::Operand;
use crate::run::run;

type Operands<'a> = SmallVec<[Operand<'a>; 3]>;

/// The device of the first array of ours; where new arrays are made if there is none.
fn device_of(objects: &[&Bound<'_, PyAny>]) -> Device {
    objects
        .iter()
        .find_map(|object| object.cast_exact::<PyArray>().ok())
        .map_or_else(Device::current, |array| array.get().0.device())
}

/// An operation of the table on objects of Python, into `out` if there is one.
fn call<'py>(
    py: Python<'py>,
    id: Id,
    objects: &[&Bound<'py, PyAny>],
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let device = device_of(objects);
    let mut operands = Operands::new();
    for object in objects {
        let operand = Operand::of(object, device)?;
        operands.push(operand.ok_or_else(|| {
            let kind = object.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
            let name = id.row().name;
            PyTypeError::new_err(format!("{name}: {kind} is not an array or a number"))
        })?);
    }
    let elements = operands.iter().map(Operand::len).max().unwrap_or(1);
    let operands: SmallVec<[Arg<'_>; 3]> = operands.iter().map(Operand::arg).collect();
    match out {
        None => {
            let result = run(py, elements, device, || apply(id, &operands))?;
            Ok(Py::new(py, PyArray(result))?.into_any())
        }
        Some(out) => {
            let target = args::target(out, device)?;
            run(py, target.len(), device, || apply_into(id, &operands, &target))?;
            Ok(out.clone().unbind())
        }
    }
}

macro_rules! functions {
    ($([[$($doc:literal)+] $Type:ident $name:ident $operands:tt $gives:ident])+) => {
        $(functions! { @one [$($doc)+] $Type $name $operands })+

        /// Adds the functions to the module.
        pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)+
            Ok(())
        }
    };
    (@one $doc:tt Clip $name:ident $operands:tt) => {};
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident]) => {
        $(#[doc = $doc])+
        ///
        /// >>> import tilework as tw
        #[doc = concat!(">>> tw.", stringify!($name), "(tw.asarray([1, 2])).shape")]
        /// (2,)
        #[pyfunction]
        #[pyo3(signature = (x, /, *, out=None))]
        fn $name<'py>(
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            out: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Py<PyAny>> {
            call(py, Id::$Type, &[x], out)
        }
    };
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident, $b:ident]) => {
        $(#[doc = $doc])+
        ///
        /// >>> import tilework as tw
        #[doc = concat!(">>> tw.", stringify!($name), "(tw.asarray([1, 2]), tw.asarray([[2], [3]])).shape")]
        /// (2, 2)
        #[pyfunction]
        #[pyo3(signature = (x1, x2, /, *, out=None))]
        fn $name<'py>(
            py: Python<'py>,
            x1: &Bound<'py, PyAny>,
            x2: &Bound<'py, PyAny>,
            out: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Py<PyAny>> {
            call(py, Id::$Type, &[x1, x2], out)
        }
    };
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident, $b:ident, $c:ident]) => {
        $(#[doc = $doc])+
        ///
        /// >>> import tilework as tw
        #[doc = concat!(">>> tw.", stringify!($name), "(tw.asarray([1.0, 2.0]), 3.0, 4.0).shape")]
        /// (2,)
        #[pyfunction]
        #[pyo3(signature = (x1, x2, x3, /, *, out=None))]
        fn $name<'py>(
            py: Python<'py>,
            x1: &Bound<'py, PyAny>,
            x2: &Bound<'py, PyAny>,
            x3: &Bound<'py, PyAny>,
            out: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Py<PyAny>> {
            call(py, Id::$Type, &[x1, x2, x3], out)
        }
    };
}

tilework_ops::each_op!(functions);

/// Elements held between two bounds, either of which may be left out.
///
/// >>> import tilework as tw
/// >>> tw.clip(tw.asarray([1, 5, 9]), 2, 6).tolist()
/// [2, 5, 6]
#[pyfunction]
#[pyo3(signature = (x, /, min=None, max=None, *, out=None))]
pub fn clip<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    min: Option<&Bound<'py, PyAny>>,
    max: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    match (min, max) {
        (Some(min), Some(max)) => call(py, Id::Clip, &[x, min, max], out),
        (Some(min), None) => call(py, Id::Maximum, &[x, min], out),
        (None, Some(max)) => call(py, Id::Minimum, &[x, max], out),
        (None, None) => call(py, Id::Positive, &[x], out),
    }
}

/// Our operation for a NumPy function; most have the same name.
fn of_numpy(name: &str) -> Option<Id> {
    let ours = match name {
        "absolute" | "fabs" => "abs",
        "arccos" => "acos",
        "arccosh" => "acosh",
        "arcsin" => "asin",
        "arcsinh" => "asinh",
        "arctan" => "atan",
        "arctan2" => "atan2",
        "arctanh" => "atanh",
        "conjugate" => "conj",
        "invert" => "bitwise_invert",
        "left_shift" => "bitwise_left_shift",
        "mod" => "remainder",
        "power" => "pow",
        "right_shift" => "bitwise_right_shift",
        "rint" => "round",
        "true_divide" => "divide",
        same => same,
    };
    Id::named(ours)
}

/// The method that reduces as a NumPy function's `reduce` does.
fn reduction_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => "sum",
        "multiply" => "prod",
        "maximum" => "max",
        "minimum" => "min",
        "logical_and" => "all",
        "logical_or" => "any",
        _ => return None,
    })
}

#[pymethods]
impl PyArray {
    /// Before NumPy's arrays, where Python asks who is to do an operation.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "NumPy's name")]
    const __array_priority__: f64 = 1000.0;

    /// NumPy's functions on our arrays: the result is ours.
    #[pyo3(signature = (ufunc, method, /, *inputs, **options))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &str,
        inputs: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let name: String = ufunc.getattr("__name__")?.extract()?;
        let refuse = || Ok(py.NotImplemented());
        if method == "reduce" {
            let (Some(method), Ok(array)) =
                (reduction_of(&name), inputs.get_item(0)?.cast_into_exact::<PyArray>())
            else {
                return refuse();
            };
            // NumPy's `reduce` takes the first axis where none is named; the methods take all.
            let options = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
            if !options.contains("axis")? {
                options.set_item("axis", 0)?;
            }
            return Ok(array.call_method(method, (), Some(&options))?.unbind());
        }
        let mut out = None;
        for (key, value) in options.map(|options| options.iter()).into_iter().flatten() {
            // NumPy passes targets as a tuple, one for each result.
            match key.extract::<String>()?.as_str() {
                "out" => out = Some(value.get_item(0)?).filter(|out| !out.is_none()),
                _ => return refuse(),
            }
        }
        if method != "__call__" {
            return refuse();
        }
        if name == "matmul" && inputs.len() == 2 {
            let (a, b) = (inputs.get_item(0)?, inputs.get_item(1)?);
            return crate::functions::linalg::matmul(py, &a, &b, out.as_ref());
        }
        let Some(id) = of_numpy(&name).filter(|id| id.row().arity == inputs.len()) else {
            return refuse();
        };
        let inputs: SmallVec<[Bound<'py, PyAny>; 3]> = inputs.iter().collect();
        let inputs: SmallVec<[&Bound<'py, PyAny>; 3]> = inputs.iter().collect();
        call(py, id, &inputs, out.as_ref())
    }
}
