//! The door to the backends, which trust requests: whatever comes through here was made by this
//! crate's operations, which check shapes, dtypes, axes and overlap first. Called by `device`.

#![allow(unsafe_code, reason = "nobody below checks a request")]

use tilework_backend::{Backend, Held, Request};
use tilework_error::Result;

/// Runs a request for the operation of this name.
#[inline]
pub(crate) fn run(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<()> {
    // SAFETY: every request of this crate is made of arrays whose views were checked, by an operation
    // that settled what its fields promise; arrays are of blocks that their device made or reaches
    // (`Array::from_storage`).
    unsafe { tilework_backend::run(backend, operation, request) }
}

/// Runs requests as one step, the first of which make what the last reads.
pub(crate) fn run_after(
    backend: &dyn Backend,
    operation: &'static str,
    first: &[Request<'_>],
    last: &Request<'_>,
) -> Result<()> {
    // SAFETY: as for `run`.
    unsafe { tilework_backend::run_after(backend, operation, first, last) }
}

/// Runs a request that reads a held block and writes what is new.
pub(crate) fn run_held(held: &Held<'_>, request: &Request<'_>) -> Result<()> {
    // SAFETY: as for `run`.
    unsafe { held.run(request) }
}

/// How a request would be done.
pub(crate) fn explain(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<String> {
    // SAFETY: as for `run`.
    unsafe { tilework_backend::explain(backend, operation, request) }
}
