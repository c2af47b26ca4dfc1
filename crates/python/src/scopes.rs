//! What holds inside of a `with` statement, and only for whoever entered it.
//!
//! Kept in a variable of the context (`contextvars`), as NumPy keeps its options: each thread and each
//! task of asyncio has its own. A statement that ends takes away its own entry and no other, so that
//! generators, which may end at any time, leave the others' as they are.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyTuple};

/// The statements of one kind that the context is inside of.
pub struct Scopes {
    name: &'static str,
    variable: PyOnceLock<Py<PyAny>>,
    /// Whether any was ever entered: most programs enter none, and need not look.
    used: AtomicBool,
}

impl Scopes {
    /// No statement so far.
    pub const fn new(name: &'static str) -> Scopes {
        Scopes { name, variable: PyOnceLock::new(), used: AtomicBool::new(false) }
    }

    fn variable<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = self.variable.get_or_try_init(py, || {
            let nothing = [("default", PyTuple::empty(py))].into_py_dict(py)?;
            let class = py.import("contextvars")?.getattr("ContextVar")?;
            class.call((self.name,), Some(&nothing)).map(Bound::unbind)
        })?;
        Ok(made.bind(py))
    }

    /// Pairs of who entered a statement and what holds inside, the innermost last.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        Ok(self.variable(py)?.call_method0(intern!(py, "get"))?.cast_into()?)
    }

    fn set<'py>(&self, py: Python<'py>, entries: Vec<Bound<'py, PyAny>>) -> PyResult<()> {
        self.used.store(true, Ordering::Relaxed);
        let entries = PyTuple::new(py, entries)?;
        self.variable(py)?.call_method1(intern!(py, "set"), (entries,)).map(|_| ())
    }

    /// Whether any statement was ever entered.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// A statement of `owner` begins, inside of which `value` holds.
    pub fn enter(&self, owner: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = owner.py();
        let mut entries: Vec<Bound<'_, PyAny>> = self.entries(py)?.iter().collect();
        entries.push((owner, value).into_pyobject(py)?.into_any());
        self.set(py, entries)
    }

    /// The innermost statement of `owner` ends. One that this context did not enter is another's.
    pub fn leave(&self, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = owner.py();
        let mut entries: Vec<Bound<'_, PyAny>> = self.entries(py)?.iter().collect();
        let is_its = |entry: &Bound<'_, PyAny>| entry.get_item(0).is_ok_and(|who| who.is(owner));
        match entries.iter().rposition(is_its) {
            Some(k) => {
                entries.remove(k);
                self.set(py, entries)
            }
            None => Ok(()),
        }
    }

    /// What holds here, by the innermost statement.
    pub fn innermost<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.is_used() {
            return Ok(None);
        }
        let entries = self.entries(py)?;
        match entries.len() {
            0 => Ok(None),
            n => entries.get_item(n - 1)?.get_item(1).map(Some),
        }
    }

    /// Lets something else hold until the innermost statement ends; false where there is none.
    pub fn replace(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let mut entries: Vec<Bound<'_, PyAny>> = self.entries(py)?.iter().collect();
        let Some(last) = entries.pop() else { return Ok(false) };
        entries.push((last.get_item(0)?, value).into_pyobject(py)?.into_any());
        self.set(py, entries)?;
        Ok(true)
    }
}
