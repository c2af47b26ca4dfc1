//! Arrays from what is not ours: numbers, nested lists (`lists`), buffers, and the protocols of others.
//!
//! The questions are asked in the order: list, buffer, `__dlpack__`, `__cuda_array_interface__`,
//! `__array_interface__`, `__array__`. Memory is shared where it can be and the caller does not ask
//! for a copy. What lies on a card stays there until somebody asks for it elsewhere.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyString, PyTuple};
use tilework::{Array, DType, Device, Memory, Order};

use crate::array::PyArray;
use crate::buffer;
use crate::class;
use crate::cuda;
use crate::device::{self, DeviceArg};
use crate::dlpack;
use crate::dtype::DTypeArg;
use crate::layout;
use crate::lists;
use crate::memory;
use crate::operand;
use crate::pairs::lazy::PyLazy;
use crate::run::run;

/// The array of an object of another kind on a device, sharing memory where it can; None if the
/// object is nothing that could be one. Memory of a card is shared there, whatever the device. Numbers
/// of Python and our own arrays are not meant here.
pub fn foreign(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Option<Array>> {
    if is_sequence(object) {
        return lists::nested(object, None, device).map(Some);
    }
    let formula = object.is_exact_instance_of::<PyLazy>();
    if formula || object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let host = memory::host_of(device);
    match shared(object, host)? {
        Some(array) if host == device || array.device().memory() == Memory::Cuda => Ok(Some(array)),
        Some(array) => run(object.py(), array.len(), host, || array.to_device(device)).map(Some),
        None => Ok(None),
    }
}

/// An array on the memory of an object that has some, for a device of the host if it is the host's.
fn shared(object: &Bound<'_, PyAny>, host: Device) -> PyResult<Option<Array>> {
    // Dates and texts of NumPy's show their bytes as a buffer, which are no numbers.
    let mut ask_numpy = false;
    if let Some(array) = buffer::array(object, host)? {
        ask_numpy = array.dtype() == DType::UInt8 && operand::is_numpy_scalar(object)?;
        if !ask_numpy {
            return Ok(Some(array));
        }
    }
    if object.hasattr("__dlpack__")? {
        return dlpack::import(object, host, None).map(Some);
    }
    if cuda::has_interface(object)? {
        return cuda::array(object).map(Some);
    }
    let numpy_knows =
        ask_numpy || object.hasattr("__array_interface__")? || object.hasattr("__array__")?;
    if numpy_knows && !object.is_instance_of::<pyo3::types::PyType>() {
        let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
        let found = buffer::array(&array, host)?;
        return found.map(Some).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "asarray: {} gives no array of numbers",
                object.get_type()
            ))
        });
    }
    Ok(None)
}

/// Whether an object is a sequence of elements: a list, a tuple, a range, a deque. Text and what has
/// memory of its own to share is not.
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return true;
    }
    // SAFETY: the object is valid and the thread is attached.
    let has_memory = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    !has_memory && !object.is_instance_of::<PyString>() && object.cast::<PySequence>().is_ok()
}

/// The array of any object, sharing memory where it can; what has no device of its own goes to
/// `device`.
pub fn asarray_near(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: Device,
) -> PyResult<Array> {
    let array = if let Some(array) = class::ours(object) {
        array.clone()
    } else if let Some(number) = operand::number(object)? {
        return lists::single(object.py(), number, dtype, device);
    } else if is_sequence(object) {
        return lists::nested(object, dtype, device);
    } else {
        foreign(object, device)?.ok_or_else(|| not_an_array(object))?
    };
    match dtype {
        Some(dtype) if dtype != array.dtype() => {
            run(object.py(), array.len(), array.device(), || array.to_dtype(dtype))
        }
        _ => Ok(array),
    }
}

/// The same, and on `device` wherever it was.
pub fn asarray_on(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: Device,
) -> PyResult<Array> {
    let array = asarray_near(object, dtype, device)?;
    if array.device() == device {
        return Ok(array);
    }
    run(object.py(), array.len(), array.device(), || array.to_device(device))
}

fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    if object.is_exact_instance_of::<PyLazy>() {
        return PyLazy::not_an_array();
    }
    let kind = crate::args::kind_of(object);
    PyTypeError::new_err(format!("asarray: {kind} is not an array, a list or a number"))
}

/// An array of numbers from lists, numbers, buffers, or the arrays of other libraries.
///
/// Memory is shared where that is possible, unless `copy=True`; `copy=False` makes it an error
/// where it is not. With `order="C"` or "F" the elements lie so, copied if they did not.
///
/// >>> import tilework as tw
/// >>> tw.asarray([[1, 2], [3, 4]], dtype="float32").shape
/// (2, 2)
#[pyfunction]
#[pyo3(signature = (obj, /, dtype=None, *, device=None, copy=None, order=None))]
pub fn asarray(
    py: Python<'_>,
    obj: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    copy: Option<bool>,
    order: Option<&str>,
) -> PyResult<PyArray> {
    let order = order.map_or(Ok(Order::Keep), layout::order)?;
    let ours = class::ours(obj);
    let dtype = dtype.map(|dtype| dtype.0);
    let array = match device {
        Some(device) => asarray_on(obj, dtype, device.0)?,
        None => asarray_near(obj, dtype, device::current())?,
    };
    // Only what is copied anyway comes in one of two orders.
    let array = match order {
        Order::Keep | Order::Either => array,
        _ => run(py, array.len(), array.device(), || array.to_dtype_in(array.dtype(), order))?,
    };
    let shares = match ours {
        Some(ours) => array.is_same_block(ours),
        // Foreign memory is foreign to the pool; what was made here is a copy.
        None => array.storage().is_foreign(),
    };
    match copy {
        Some(true) if shares => {
            run(py, array.len(), array.device(), || array.copy_in(order)).map(PyArray)
        }
        Some(false) if !shares => {
            Err(PyValueError::new_err("asarray: there is no array here without a copy"))
        }
        _ => Ok(PyArray(array)),
    }
}

/// The device where arguments of one operation meet: that of the first array of ours among them, else
/// where new arrays are made. Numbers, lists and memory of the host go there.
pub fn meeting<'a, 'py: 'a>(objects: impl IntoIterator<Item = &'a Bound<'py, PyAny>>) -> Device {
    let ours = objects.into_iter().find_map(|object| class::ours(object));
    ours.map_or_else(device::current, Array::device)
}

/// The arguments of one operation as arrays, on the device where they [meet](meeting); another array of ours,
/// or of a card, stays where it is.
pub fn together<const N: usize>(objects: [&Bound<'_, PyAny>; N]) -> PyResult<[Array; N]> {
    let arrays = all_together(objects)?;
    Ok(arrays.try_into().unwrap_or_else(|_| unreachable!("as many arrays as objects")))
}

/// [`together`] for any number of arguments.
pub fn all_together<'a, 'py: 'a>(
    objects: impl IntoIterator<Item = &'a Bound<'py, PyAny>> + Clone,
) -> PyResult<Vec<Array>> {
    let device = meeting(objects.clone());
    objects.into_iter().map(|object| asarray_near(object, None, device)).collect()
}

/// An argument that is or becomes an array, on its device or where new arrays are made: for operations
/// of one array, since of several [`together`] knows where they meet.
pub struct ArrayArg(pub Array);

impl<'py> FromPyObject<'_, 'py> for ArrayArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(array) = class::ours(&object) {
            return Ok(ArrayArg(array.clone()));
        }
        asarray_near(&object, None, device::current()).map(ArrayArg)
    }
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(asarray, module)?)
}
