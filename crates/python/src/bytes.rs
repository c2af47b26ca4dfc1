//! Elements as Python's bytes, in row-major order: what `tobytes` gives and pickles hold.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilework::Array;

use crate::errors::OrRaise;

/// The elements, written straight into the bytes object.
pub fn of<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyBytes>> {
    let count = array.len() * array.dtype().size();
    PyBytes::new_with(py, count, |into| py.detach(|| array.read_bytes(into)).py())
}
