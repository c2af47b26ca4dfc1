//! Objects of Python as operands of formulas: tensors, numbers, arrays.
//!
//! Python's and NumPy's numbers are numbers and take the dtype of the arrays; arrays are variables
//! by their shape, as in `LazyTensor(x)`.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilework::pairs::{LazyArg, LazyTensor};
use tilework::{Array, DType, Number};

use super::lazy::PyLazy;
use crate::args::kind_of;
use crate::class;
use crate::convert;
use crate::device;
use crate::errors::OrRaise;
use crate::operand;

/// An operand of a formula.
pub enum Operand<'a> {
    /// A tensor of Python's.
    Ours(&'a LazyTensor),
    /// A tensor made for this call.
    Made(Box<LazyTensor>),
    /// A number.
    Number(f64),
}

impl<'a> Operand<'a> {
    /// The operand of an object; None if it can be none. Lists take the dtype of `like`.
    pub fn of(object: &'a Bound<'_, PyAny>, like: Option<DType>) -> PyResult<Option<Operand<'a>>> {
        if let Ok(tensor) = object.cast_exact::<PyLazy>() {
            return Ok(Some(Operand::Ours(&tensor.get().0)));
        }
        if let Some(number) = number(object)? {
            return Ok(Some(Operand::Number(number)));
        }
        let Some(array) = array(object, like)? else { return Ok(None) };
        let tensor = LazyTensor::from_array(&array).py()?;
        Ok(Some(Operand::Made(Box::new(made_of(tensor, object)?.0))))
    }

    /// The operand of an object that must be one.
    pub fn required(
        object: &'a Bound<'_, PyAny>,
        like: Option<DType>,
        operation: &str,
    ) -> PyResult<Operand<'a>> {
        Operand::of(object, like)?.ok_or_else(|| not_one(object, operation))
    }

    /// The operand as the core takes it.
    pub fn arg(&self) -> LazyArg<'_> {
        match self {
            Operand::Ours(tensor) => LazyArg::Tensor(tensor),
            Operand::Made(tensor) => LazyArg::Tensor(tensor),
            Operand::Number(number) => LazyArg::Number(*number),
        }
    }

    /// The operand as a tensor.
    pub fn tensor(self) -> LazyTensor {
        match self {
            Operand::Ours(tensor) => tensor.clone(),
            Operand::Made(tensor) => *tensor,
            Operand::Number(number) => LazyTensor::constant(number),
        }
    }
}

#[cold]
fn not_one(object: &Bound<'_, PyAny>, operation: &str) -> PyErr {
    let kind = kind_of(object);
    PyTypeError::new_err(format!("{operation}: {kind} is not a LazyTensor, an array or a number"))
}

/// The real number that an object of Python or NumPy is.
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    match operand::number(object)? {
        Some(Number::Bool(value)) => return Ok(Some(value.into())),
        Some(Number::Int(value)) => return Ok(Some(value as f64)),
        Some(Number::Float(value)) => return Ok(Some(value)),
        Some(Number::Complex(_)) => {
            let message = "formulas are real; complex numbers are not supported yet";
            return Err(PyNotImplementedError::new_err(message));
        }
        None => {}
    }
    if class::ours(object).is_some() || !operand::is_numpy_scalar(object)? {
        return Ok(None);
    }
    object.call_method0("item")?.extract::<f64>().map(Some)
}

/// Whether an object is a list or a tuple.
pub fn is_listed(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// The dtype that numbers and lists take among the arguments of a call: that of the first array.
pub fn dtype_of<'py>(objects: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Option<DType>> {
    for object in objects {
        if !is_listed(&object)
            && number(&object)?.is_none()
            && let Some(array) = array(&object, None)?
        {
            return Ok(Some(array.dtype()));
        }
    }
    Ok(None)
}

/// The variable made of an object; numbers, alone or in lists, have no dtype of their own and take
/// that of the arrays that they meet.
pub fn made_of(tensor: LazyTensor, object: &Bound<'_, PyAny>) -> PyResult<PyLazy> {
    let weak = is_listed(object) || number(object)?.is_some();
    Ok(PyLazy(if weak { tensor.weak() } else { tensor }))
}

/// The array of an object; lists and tuples are given the dtype of `like`.
pub fn array(object: &Bound<'_, PyAny>, like: Option<DType>) -> PyResult<Option<Array>> {
    if let Some(array) = class::ours(object) {
        return Ok(Some(array.clone()));
    }
    if is_listed(object) {
        let dtype = Some(like.unwrap_or(DType::Float64));
        return convert::asarray_on(object, dtype, device::current()).map(Some);
    }
    convert::foreign(object, device::current())
}

/// The array of an object that must be one.
pub fn required_array(
    object: &Bound<'_, PyAny>,
    like: Option<DType>,
    operation: &str,
) -> PyResult<Array> {
    if let Some(number) = number(object)? {
        let dtype = like.unwrap_or(DType::Float64);
        return Array::full_on(device::current(), &[1], number, dtype).py();
    }
    array(object, like)?.ok_or_else(|| not_one(object, operation))
}
