//! Elementwise functions, one for each row of the table of operations.
//!
//! A new row is a new function here without a line of code; only `clip`, whose bounds may be left
//! out, is written by hand. Also NumPy's protocol for its own functions (`np.exp(x)`).

#![allow(unsafe_op_in_unsafe_fn, reason = "in what PyO3 makes of the macro below")]

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilework::{Arg, Array, DType, Device, Id, Number, apply, apply_into, result_type};

use crate::args;
use crate::array::PyArray;
use crate::class;
use crate::convert;
use crate::device;
use crate::errors::OrRaise;
use crate::memory;
use crate::operand::Operand;
use crate::run::{result_len, run};

type Operands<'a> = SmallVec<[Operand<'a>; 3]>;

/// The device of the first array of ours; where new arrays are made if there is none.
fn device_of(objects: &[&Bound<'_, PyAny>]) -> Device {
    objects
        .iter()
        .find_map(|object| class::ours(object))
        .map_or_else(device::current, Array::device)
}

/// An operation of the table on objects of Python, into `out` if there is one.
fn call<'py>(
    py: Python<'py>,
    id: Id,
    objects: &[&Bound<'py, PyAny>],
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let device = device_of(objects);
    let operands = operands_of(id, objects, device)?;
    compute(py, id, &operands, device, out)
}

/// The operands of an operation, all of which must be some.
fn operands_of<'a>(
    id: Id,
    objects: &[&'a Bound<'_, PyAny>],
    device: Device,
) -> PyResult<Operands<'a>> {
    let mut operands = Operands::new();
    for object in objects {
        let operand = Operand::of(object, device)?;
        operands.push(operand.ok_or_else(|| {
            let kind = crate::args::kind_of(object);
            let name = id.row().name;
            PyTypeError::new_err(format!("{name}: {kind} is not an array or a number"))
        })?);
    }
    Ok(operands)
}

fn compute<'py>(
    py: Python<'py>,
    id: Id,
    operands: &[Operand<'_>],
    device: Device,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    // Three operands at most.
    let shape = |at: usize| operands.get(at).map_or(&[][..], Operand::shape);
    let elements = result_len(&[shape(0), shape(1), shape(2)]);
    let operands: SmallVec<[Arg<'_>; 3]> = operands.iter().map(Operand::arg).collect();
    match out {
        None => {
            let result = run(py, elements, device, || apply(id, &operands))?;
            PyArray(result).into_py_any(py)
        }
        Some(out) => {
            let target = args::target(out, device)?;
            run(py, target.len(), device, || apply_into(id, &operands, &target))?;
            Ok(out.clone().unbind())
        }
    }
}

macro_rules! functions {
    ($([[$($doc:literal)+] $Type:ident $name:ident $operands:tt $gives:ident $($mark:ident)?])+) => {
        $(functions! { @one $($mark)? [$($doc)+] $Type $name $operands })+

        /// Adds the functions to the module.
        pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(functions! { @add $($mark)? [module $name] })+
            Ok(())
        }
    };
    // Rows for formulas only.
    (@one inner $($row:tt)+) => {};
    (@add inner $names:tt) => {};
    (@one $mark:ident [$($doc:literal)+] $($row:tt)+) => {
        functions! { @one [$($doc)+] $($row)+ }
    };
    (@add $mark:ident $names:tt) => {
        functions! { @add $names }
    };
    (@add [$module:ident $name:ident]) => {
        $module.add_function(wrap_pyfunction!($name, $module)?)?;
    };
    // Those with arguments of their own follow below.
    (@one $doc:tt Clip $name:ident $operands:tt) => {};
    (@one $doc:tt Round $name:ident $operands:tt) => {};
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
    let given: SmallVec<[&Bound<'py, PyAny>; 3]> =
        [Some(x), min, max].into_iter().flatten().collect();
    let device = device_of(&given);
    let mut operands = operands_of(Id::Clip, &given, device)?;
    // A bound that was left out is the end of the range that all have together.
    let common = {
        let args: SmallVec<[Arg<'_>; 3]> = operands.iter().map(Operand::arg).collect();
        result_type(&args).py()?
    };
    let (low, high) = match common.iinfo() {
        Ok(range) => (Number::Int(range.min), Number::Int(range.max)),
        Err(_) if common == DType::Bool => (Number::Bool(false), Number::Bool(true)),
        Err(_) => (Number::Float(f64::NEG_INFINITY), Number::Float(f64::INFINITY)),
    };
    if min.is_none() {
        operands.insert(1, Operand::Number(low));
    }
    if max.is_none() {
        operands.push(Operand::Number(high));
    }
    compute(py, Id::Clip, &operands, device, out)
}

/// Rounded to so many decimals, halves to even; to tens if `decimals` is negative.
///
/// >>> import tilework as tw
/// >>> tw.round(tw.asarray([1.5, 2.5])).tolist()
/// [2.0, 2.0]
/// >>> tw.round(tw.asarray([1.234, 56.7]), decimals=1).tolist()
/// [1.2, 56.7]
#[pyfunction]
#[pyo3(signature = (x, /, decimals=0, *, out=None))]
pub fn round<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    decimals: i32,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    if decimals == 0 {
        return call(py, Id::Round, &[x], out);
    }
    let array = convert::asarray_near(x, None, device_of(&[x]))?;
    let (elements, device) = (array.len(), array.device());
    let Some(out) = out else {
        let rounded = run(py, elements, device, || array.round_to(decimals))?;
        return PyArray(rounded).into_py_any(py);
    };
    let target = args::target(out, device)?;
    run(py, elements, device, || {
        let rounded = array.round_to(decimals)?;
        // As any elementwise operation writes its result.
        apply_into(Id::Positive, &[(&rounded).into()], &target).map_err(|error| error.of("round"))
    })?;
    Ok(out.clone().unbind())
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

    /// NumPy's functions on our arrays: the result is ours. Those that are no rows of the table are
    /// computed by NumPy, on memory that it shares with the arrays.
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
        let options = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        if method == "reduce"
            && let Some(method) = reduction_of(&name)
            && let Ok(array) = inputs.get_item(0)?.cast_into_exact::<PyArray>()
        {
            // NumPy's `reduce` takes the first axis where none is named; the methods take all.
            if !options.contains("axis")? {
                options.set_item("axis", 0)?;
            }
            return Ok(array.call_method(method, (), Some(&options))?.unbind());
        }
        // NumPy passes targets as a tuple, one for each result.
        let targets = options.get_item("out")?;
        let plain = method == "__call__" && options.len() == usize::from(targets.is_some());
        let one = targets.as_ref().map_or(Ok(1), |targets| targets.len())? == 1;
        if plain && one {
            let out = targets.map(|targets| targets.get_item(0)).transpose()?;
            let out = out.as_ref().filter(|out| !out.is_none());
            if name == "matmul" && inputs.len() == 2 {
                let (a, b) = (inputs.get_item(0)?, inputs.get_item(1)?);
                return crate::functions::linalg::matmul(py, &a, &b, out, "best");
            }
            if let Some(id) = of_numpy(&name).filter(|id| id.row().arity == inputs.len()) {
                let inputs: SmallVec<[Bound<'py, PyAny>; 3]> = inputs.iter().collect();
                let inputs: SmallVec<[&Bound<'py, PyAny>; 3]> = inputs.iter().collect();
                return call(py, id, &inputs, out);
            }
        }
        let device = slf.get().0.device();
        let writes = method == "at" || options.contains("out")?;
        if writes && memory::host_of(device) != device {
            // NumPy would write to a copy.
            return Ok(py.NotImplemented());
        }
        through_numpy(device, &ufunc.getattr(method)?, inputs, &options)
    }
}

/// A function of NumPy on arrays of its own over the memory of ours, with results that are ours.
fn through_numpy<'py>(
    device: Device,
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Py<PyAny>> {
    let py = function.py();
    let asarray = py.import("numpy")?.getattr("asarray")?;
    let theirs = |object: Bound<'py, PyAny>| match class::ours(&object) {
        Some(_) => asarray.call1((object,)),
        None => Ok(object),
    };
    let inputs = inputs.iter().map(theirs).collect::<PyResult<Vec<_>>>()?;
    let targets = options.get_item("out")?;
    for (key, value) in options.iter() {
        let value = match value.cast::<PyTuple>() {
            Ok(several) => {
                let several = several.iter().map(theirs).collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, several)?.into_any()
            }
            Err(_) => theirs(value)?,
        };
        options.set_item(key, value)?;
    }
    let result = function.call(PyTuple::new(py, inputs)?, Some(options))?;
    let ours = |object: &Bound<'py, PyAny>| -> PyResult<Py<PyAny>> {
        let array = convert::asarray_on(object, None, device)?;
        PyArray(array).into_py_any(py)
    };
    match (targets, result.cast::<PyTuple>()) {
        // What was written to is given back as it was given.
        (Some(targets), Err(_)) => Ok(targets.get_item(0)?.unbind()),
        (Some(targets), Ok(_)) => Ok(targets.unbind()),
        (None, Ok(several)) => {
            let several = several.iter().map(|one| ours(&one)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, several)?.into_any().unbind())
        }
        (None, Err(_)) if result.is_none() => Ok(py.None()),
        (None, Err(_)) => ours(&result),
    }
}
