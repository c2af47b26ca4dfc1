//! Where work meets the interpreter's lock.
//!
//! Short work keeps the GIL, since giving it up and waiting for it again costs more than the work;
//! but it never waits for a block while it holds it: the operation that holds the block may need
//! the GIL. Long work gives the GIL up first, and takes it about ten times a second to see whether
//! a signal has come: what makes a new array is given up on Ctrl-C, what writes to one runs to its
//! end. A panic of the core, which would be a bug, becomes a RuntimeError and never a
//! `PanicException`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tilework::{Array, Device, Result, interruptible};
use tilework_backend::without_waiting;

use crate::errors::OrRaise;

/// Elements up to which any device is done within a few microseconds.
const FEW: usize = 32;
/// Elements up to which the CPU backend is.
const SHORT: usize = 8 << 10;

/// Whether work on so many elements takes longer than a few microseconds.
#[inline]
fn is_long(elements: usize, device: Device) -> bool {
    elements > FEW && (elements > SHORT || !device.is_quick())
}

/// How many elements a shape has, for judging how long work is.
pub fn volume(shape: &[usize]) -> usize {
    shape.iter().fold(1usize, |volume, &n| volume.saturating_mul(n))
}

/// How many elements shapes broadcast to: work is as long as its result, which may be far longer than
/// every operand. Shapes that do not broadcast give some number; the core refuses them.
#[inline]
pub fn result_len(shapes: &[&[usize]]) -> usize {
    let axes = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let length = |shape: &[usize], back| shape.len().checked_sub(back).map_or(1, |at| shape[at]);
    let longest = |back| shapes.iter().map(|shape| length(shape, back)).max().unwrap_or(1);
    (1..=axes).fold(1usize, |volume, back| volume.saturating_mul(longest(back)))
}

/// How many elements there are where an axis gets another length.
pub fn len_along(array: &Array, axis: isize, length: usize) -> usize {
    let at = if axis < 0 { axis.saturating_add_unsigned(array.ndim()) } else { axis };
    let axis = usize::try_from(at).ok().and_then(|at| array.shape().get(at));
    // An axis that is not there is refused by the core.
    let lines = array.len() / axis.copied().unwrap_or(1).max(1);
    lines.saturating_mul(length)
}

/// The result of work on about so many elements, if the work is short, waits for nobody and
/// succeeds.
#[inline]
pub fn at_once<T>(elements: usize, device: Device, work: impl FnOnce() -> Result<T>) -> Option<T> {
    if is_long(elements, device) {
        return None;
    }
    let mut done = None;
    catch_unwind(AssertUnwindSafe(|| done = without_waiting(work))).ok()?;
    done?.ok()
}

/// Does work of any length without the GIL that is not to be stopped once it has begun.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| interruptible(|| false, work))
}

/// Does work on about so many elements of a device. Since the work may be begun twice, it must not
/// write but in its last operation.
#[inline]
pub fn run<T: Send>(
    py: Python<'_>,
    elements: usize,
    device: Device,
    work: impl Fn() -> Result<T> + Sync,
) -> PyResult<T> {
    if !is_long(elements, device) {
        // Through a slot and not as a value: results are large, and every way out copies them.
        let mut done = None;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| done = without_waiting(&work))) {
            return Err(bug(&*panic));
        }
        if let Some(result) = done {
            return result.py();
        }
    }
    let (done, raised) = py.detach(|| {
        let raised = Rc::new(Cell::new(None));
        let stop = {
            let raised = Rc::clone(&raised);
            move || is_signalled(&raised)
        };
        let done = catch_unwind(AssertUnwindSafe(|| interruptible(stop, &work)));
        (done, raised.take())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    // A signal that arrived meanwhile is raised here and not after the next operation.
    py.check_signals()?;
    match done {
        Ok(result) => result.py(),
        Err(panic) => Err(bug(&*panic)),
    }
}

/// Lets Python handle signals, on a thread without the GIL; true if a handler raised an exception,
/// which is then in `raised`.
fn is_signalled(raised: &Cell<Option<PyErr>>) -> bool {
    let error = Python::try_attach(|py| py.check_signals().err()).flatten();
    let signalled = error.is_some();
    raised.set(error);
    signalled
}

/// The exception for a panic of the core.
#[cold]
pub fn bug(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    PyRuntimeError::new_err(format!("tilework has a bug, please report it: {message}"))
}
