//! Arguments of functions: shapes, axes, lists of integers, targets.

use std::ops::Deref;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use smallvec::SmallVec;
use tilework::{Array, Axes, DType, Device, Error};
use tilework_layout::Dims;

use crate::array::shape_text;
use crate::buffer;
use crate::class;
use crate::cuda::{self, Written};
use crate::errors::{DeviceError, OrRaise};
use crate::memory;

/// An integer, or a sequence of integers.
pub struct Integers(pub SmallVec<[isize; 6]>);

impl<'py> FromPyObject<'_, 'py> for Integers {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A tuple is mostly what comes; to take it for an integer first would raise an exception.
        let tuple = object.cast_exact::<PyTuple>();
        if tuple.is_err()
            && let Ok(one) = object.extract::<isize>()
        {
            return Ok(Integers(SmallVec::from_slice(&[one])));
        }
        let too_large = |object: &Bound<'_, PyAny>| {
            let message = format!("{object} is too large for a length or an axis");
            PyOverflowError::new_err(message)
        };
        if object.is_instance_of::<PyInt>() {
            return Err(too_large(&object));
        }
        let wrong = || {
            let kind = kind_of(&object);
            PyTypeError::new_err(format!("an integer or a tuple of integers, not {kind}"))
        };
        if object.is_instance_of::<PyString>() {
            return Err(wrong());
        }
        let integer = |item: &Bound<'_, PyAny>| {
            item.extract::<isize>().map_err(|_| match item.is_instance_of::<PyInt>() {
                true => too_large(item),
                false => wrong(),
            })
        };
        let integers = match tuple {
            Ok(tuple) => tuple.iter().map(|item| integer(&item)).collect::<PyResult<_>>(),
            Err(_) => {
                let items = object.try_iter().map_err(|_| wrong())?;
                items.map(|item| integer(&item?)).collect()
            }
        };
        integers.map(Integers)
    }
}

/// How many: an integer that is not negative.
#[derive(Clone, Copy)]
pub struct Length(pub usize);

impl<'py> FromPyObject<'_, 'py> for Length {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        length(object.extract()?).map(Length)
    }
}

fn length(number: isize) -> PyResult<usize> {
    usize::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{number} is not a length: it is negative")))
}

/// What an object is, for messages.
pub fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// An integer that an argument wants not to be negative; the error says `what` it is.
pub fn not_negative(what: &str, number: isize) -> PyResult<usize> {
    usize::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{what} {number} is less than 0")))
}

/// Which diagonal: an integer of any size, since those far off all hold nothing.
pub struct Diagonal(pub isize);

impl<'py> FromPyObject<'_, 'py> for Diagonal {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<isize>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Diagonal(if object.lt(0)? { isize::MIN } else { isize::MAX }))
            }
            other => other.map(Diagonal),
        }
    }
}

/// A shape: lengths that are not negative.
pub struct ShapeArg(pub Dims);

impl<'py> FromPyObject<'_, 'py> for ShapeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Integers(lengths) = object.extract()?;
        lengths.into_iter().map(length).collect::<PyResult<_>>().map(ShapeArg)
    }
}

/// The axes that an optional argument names; None is all of them.
pub fn axes(axis: Option<Integers>) -> Axes {
    axis.map_or(Axes::All, |Integers(axes)| Axes::Some(axes.to_vec()))
}

/// One axis or none, where several make no sense.
pub fn one_axis(axis: Option<isize>) -> Axes {
    axis.map_or(Axes::All, Axes::from)
}

/// Several arguments in a row, or one tuple of them: `x.reshape(2, 3)`, `x.reshape((2, 3))`.
pub fn spread(arguments: &Bound<'_, PyTuple>) -> PyResult<Integers> {
    if arguments.len() == 1 {
        return arguments.get_item(0)?.extract();
    }
    arguments.as_any().extract()
}

/// An array that is written to. That of another library on a card is read there in the order of writing: what is
/// asked of it after this is dropped comes after what was asked of ours before.
pub struct Target {
    array: Array,
    _written: Option<Written>,
}

impl Deref for Target {
    type Target = Array;
    fn deref(&self) -> &Array {
        &self.array
    }
}

/// The array that an `out=` argument names: one of ours, or memory that may be written.
pub fn target(out: &Bound<'_, PyAny>, device: Device) -> PyResult<Target> {
    if let Some(array) = class::ours(out) {
        return Ok(Target { array: array.clone(), _written: None });
    }
    // Only memory that is shared can be a target; a list would be written to in vain.
    let shared = match buffer::array(out, memory::host_of(device))? {
        None if out.hasattr("__dlpack__")? => {
            Some(crate::dlpack::import(out, memory::host_of(device), Some(false))?)
        }
        found => found,
    };
    match shared {
        Some(array) if array.storage().is_foreign() && array.device() == device => {
            let written = cuda::card(device).map(|card| Written::new(card, out));
            Ok(Target { array, _written: written })
        }
        Some(_) if memory::host_of(device) != device => {
            let message = format!("out: {device} cannot write to memory of the host");
            Err(DeviceError::new_err(message))
        }
        _ => Err(PyTypeError::new_err("out: an array is written to, nothing else")),
    }
}

/// Refuses a target that cannot be written, or that a result of this shape and dtype does not fit into. It
/// has the shape exactly, and the dtype too if `is_exact`; else the result may be cast, but to no lower
/// kind, which is the rule of elementwise operations.
pub fn fits(to: &Array, shape: &[usize], dtype: DType, is_exact: bool) -> PyResult<()> {
    let casts = if is_exact { dtype == to.dtype() } else { dtype.can_cast_kind(to.dtype()) };
    if to.shape() == shape && casts {
        return can_be_written(to);
    }
    let (held, held_shape) = (to.dtype(), shape_text(to.shape()));
    let shape = shape_text(shape);
    let message = format!("out: {dtype} of shape {shape} is wanted, not {held} of {held_shape}");
    // As for elementwise operations, a cast that is refused is an error of types.
    Err(match casts || is_exact {
        true => PyValueError::new_err(message),
        false => PyTypeError::new_err(message),
    })
}

/// What writing would refuse too, but only when there is a result to be written.
fn can_be_written(to: &Array) -> PyResult<()> {
    if !to.is_writable() {
        return Err(Error::read_only("out", "the memory is read-only; copy the array first")).py();
    }
    if to.layout().has_internal_overlap() {
        let shape = shape_text(to.shape());
        let message =
            format!("out: one element is reached by several indices of the shape {shape}");
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

/// The dtype asked for, or the default of its kind.
pub fn or_float(dtype: Option<crate::dtype::DTypeArg>) -> DType {
    dtype.map_or(DType::Float64, |dtype| dtype.0)
}

/// Adds functions to a module by their names.
macro_rules! register {
    ($module:ident: $($function:ident),* $(,)?) => {
        $($module.add_function(wrap_pyfunction!($function, $module)?)?;)*
    };
}
pub(crate) use register;
