//! Exceptions: the one place where an error of the core becomes one of Python's.
//!
//! Python gets what NumPy would raise. Everything else in this crate ends with [`OrRaise::py`].

use std::io::ErrorKind;

use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyNotImplementedError,
    PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use tilework::{Error, Result};

pyo3::create_exception!(
    tilework,
    DeviceError,
    PyRuntimeError,
    "A device that does not exist or failed, or operands on different devices."
);
pyo3::create_exception!(
    tilework,
    FormulaError,
    PyValueError,
    "A formula that does not parse or whose dimensions do not match; `position` is where."
);

/// NumPy's `AxisError` is a ValueError and an IndexError, and so is ours.
fn axis_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases = (py.get_type::<PyValueError>(), py.get_type::<PyIndexError>());
        let body = PyDict::new(py);
        body.set_item("__module__", "tilework")?;
        body.set_item("__doc__", "An axis that does not exist, or is named twice.")?;
        let class = py.get_type::<PyType>().call1(("AxisError", bases, body))?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// The kind of OSError that Python makes of a number of the system's: FileNotFoundError and its kin.
/// The numbers are the same on all systems.
fn os_error(kind: ErrorKind, message: String) -> PyErr {
    let number = match kind {
        ErrorKind::NotFound => 2,
        ErrorKind::PermissionDenied => 13,
        ErrorKind::AlreadyExists => 17,
        ErrorKind::NotADirectory => 20,
        ErrorKind::IsADirectory => 21,
        ErrorKind::StorageFull => 28,
        ErrorKind::ReadOnlyFilesystem => 30,
        _ => return PyOSError::new_err(message),
    };
    PyOSError::new_err((number, message))
}

/// The exception for an error.
#[cold]
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Shape(_) | Error::Value(_) | Error::ReadOnly(_) | Error::Format(_) => {
            PyValueError::new_err(message)
        }
        Error::DType(_) => PyTypeError::new_err(message),
        Error::Overflow(_) => PyOverflowError::new_err(message),
        Error::Index(_) => PyIndexError::new_err(message),
        Error::Axis(_) => Python::attach(|py| match axis_error(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(error) => error,
        }),
        Error::Device(_) | Error::Driver(_) => DeviceError::new_err(message),
        Error::Borrowed(_) => PyBufferError::new_err(message),
        Error::OutOfMemory(_) => PyMemoryError::new_err(message),
        Error::Unsupported(_) => PyNotImplementedError::new_err(message),
        Error::Io { kind, .. } => os_error(kind, message),
        Error::Formula { position, .. } => Python::attach(|py| {
            let error = FormulaError::new_err(message);
            // An exception without its position is better than none.
            let _ = error.value(py).setattr("position", position);
            error
        }),
        Error::Interrupted(_) => PyKeyboardInterrupt::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Results of the core as results of Python.
pub trait OrRaise<T> {
    /// The value, or the exception that NumPy users expect.
    fn py(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    #[inline]
    fn py(self) -> PyResult<T> {
        self.map_err(raise)
    }
}

/// Adds the exception classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("FormulaError", py.get_type::<FormulaError>())?;
    module.add("AxisError", axis_error(py)?)
}
