//! Elements as Python's bytes, in row-major order: what `tobytes` gives and pickles hold.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilework::Array;

use crate::errors::OrRaise;
use crate::run::detached;

/// More bytes than any memory has, though elements that repeat may ask for them.
const MOST: usize = isize::MAX as usize / 2;

/// The elements, written straight into the bytes object.
pub fn of<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyBytes>> {
    let count = array.len().checked_mul(array.dtype().size()).filter(|&count| count <= MOST);
    let Some(count) = count else {
        let message = format!("tobytes: {} elements of {}", array.len(), array.dtype());
        return Err(PyMemoryError::new_err(message));
    };
    PyBytes::new_with(py, count, |into| detached(py, || array.read_bytes(into)).py())
}
