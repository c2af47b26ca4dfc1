//! Objects of Python as operands of formulas: tensors, numbers, arrays.
//!
//! Python's and NumPy's numbers are numbers and take the dtype of the arrays; arrays are variables
//! by their shape, as in `LazyTensor(x)`. What has no device of its own goes where the arrays are that it meets.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilework::pairs::{LazyArg, LazyTensor};
use tilework::{Array, DType, Device, Memory, Number};

use super::lazy::PyLazy;
use crate::args::kind_of;
use crate::class;
use crate::convert;
use crate::device;
use crate::errors::OrRaise;
use crate::{memory, operand};

/// What objects take of the arrays that they meet: numbers and lists a dtype and a device, arrays of other libraries on the
/// host a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Like {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
}

impl Like {
    pub fn tensor(tensor: &LazyTensor) -> Like {
        Like { dtype: tensor.dtype(), device: tensor.device() }
    }

    /// Among the arguments of a call: the dtype of the first array, and the device of the first of ours, or else of the first on
    /// a card.
    pub fn among<'py>(objects: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Like> {
        // Where arrays of the host are looked at without a copy.
        let host = Like { dtype: None, device: Some(memory::host_of(device::current())) };
        let (mut like, mut on_card) = (Like::default(), None);
        for object in objects {
            if let Some(ours) = class::ours(&object) {
                like = like.or(Like { dtype: Some(ours.dtype()), device: Some(ours.device()) });
                continue;
            }
            let known = like.dtype.is_some() && like.device.or(on_card).is_some();
            if known || is_listed(&object) || number(&object)?.is_some() {
                continue;
            }
            if let Some(array) = array(&object, host)? {
                like.dtype = like.dtype.or(Some(array.dtype()));
                let is_card = array.device().memory() == Memory::Cuda;
                on_card = on_card.or(is_card.then(|| array.device()));
            }
        }
        Ok(Like { device: like.device.or(on_card), ..like })
    }

    /// What it has, or else what the other has.
    pub fn or(self, other: Like) -> Like {
        Like { dtype: self.dtype.or(other.dtype), device: self.device.or(other.device) }
    }

    fn device(self) -> Device {
        self.device.unwrap_or_else(device::current)
    }
}

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
    /// The operand of an object; None if it can be none.
    pub fn of(object: &'a Bound<'_, PyAny>, like: Like) -> PyResult<Option<Operand<'a>>> {
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
        like: Like,
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

/// The variable made of an object; numbers, alone or in lists, have no dtype of their own and take
/// that of the arrays that they meet.
pub fn made_of(tensor: LazyTensor, object: &Bound<'_, PyAny>) -> PyResult<PyLazy> {
    let weak = is_listed(object) || number(object)?.is_some();
    Ok(PyLazy(if weak { tensor.weak() } else { tensor }))
}

/// The array of an object; lists and tuples are given the dtype of `like`.
pub fn array(object: &Bound<'_, PyAny>, like: Like) -> PyResult<Option<Array>> {
    if let Some(array) = class::ours(object) {
        return Ok(Some(array.clone()));
    }
    if is_listed(object) {
        let dtype = Some(like.dtype.unwrap_or(DType::Float64));
        return convert::asarray_on(object, dtype, like.device()).map(Some);
    }
    convert::foreign(object, like.device())
}

/// The array of an object that must be one.
pub fn required_array(object: &Bound<'_, PyAny>, like: Like, operation: &str) -> PyResult<Array> {
    if let Some(number) = number(object)? {
        let dtype = like.dtype.unwrap_or(DType::Float64);
        return Array::full_on(like.device(), &[1], number, dtype).py();
    }
    array(object, like)?.ok_or_else(|| not_one(object, operation))
}
