//! Copies of what a write would overwrite before it is read, made in the same step as the write: other
//! threads see both done or neither. Called by `map`, `index` and `mask`.

use tilework_backend::{Map, Operand, Request, Target};
use tilework_error::Result;
use tilework_tape::Tape;

use super::Array;

/// An array as it is when the step begins.
pub(super) struct Snapshot<'a> {
    tape: &'static Tape,
    of: [Operand<'a>; 1],
    copy: Array,
}

impl<'a> Snapshot<'a> {
    /// Room for a copy of an array, in row-major order; [`request`](Self::request) makes it.
    pub(super) fn new(operation: &'static str, array: &'a Array) -> Result<Snapshot<'a>> {
        Ok(Snapshot {
            tape: Tape::casting(array.dtype(), array.dtype()),
            of: [Operand::View(array.borrow())],
            copy: Array::unset(operation, array.device, array.shape(), array.dtype())?,
        })
    }

    /// A copy of `array` if it shares memory with `target`.
    pub(super) fn if_shared(
        operation: &'static str,
        array: &'a Array,
        target: &Array,
    ) -> Result<Option<Snapshot<'a>>> {
        array.shares_memory(target).then(|| Snapshot::new(operation, array)).transpose()
    }

    /// What to read in the place of the array, once the request is done.
    pub(super) fn copy(&self) -> &Array {
        &self.copy
    }

    /// Makes the copy.
    pub(super) fn request(&self, operation: &'static str) -> Result<Request<'_>> {
        let output = Target::shared(operation, self.copy.borrow())?;
        Ok(Request::Map(Map { tape: self.tape, inputs: &self.of, output }))
    }
}
