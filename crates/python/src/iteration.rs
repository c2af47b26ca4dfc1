//! `iter(x)`: the parts of an array along its first axis; of one axis its elements.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use tilework::{Array, Index};

use crate::array::PyArray;
use crate::errors::OrRaise;
use crate::run::run;

/// The parts of an array along its first axis, one by one.
#[pyclass(frozen, name = "ArrayIterator", module = "tilework")]
pub struct PyArrayIter {
    array: Array,
    next: AtomicUsize,
}

impl PyArrayIter {
    /// From the first part on; the array has an axis.
    pub fn new(array: Array) -> PyArrayIter {
        PyArrayIter { array, next: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl PyArrayIter {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<PyArray> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        if at >= self.array.shape()[0] {
            // Stay past the end, whatever is asked.
            self.next.store(self.array.shape()[0], Ordering::Relaxed);
            return Err(PyStopIteration::new_err(()));
        }
        let (array, at) = (&self.array, at.cast_signed());
        match array.ndim() {
            1 => run(py, 1, array.device(), || array.element(&[at])),
            _ => array.slice(&[Index::At(at)]).py(),
        }
        .map(PyArray)
    }

    fn __length_hint__(&self) -> usize {
        let next = self.next.load(Ordering::Relaxed);
        self.array.shape()[0].saturating_sub(next)
    }
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyArrayIter>()
}
