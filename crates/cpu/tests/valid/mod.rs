//! The doors to the backend for tests and examples, whose requests are valid.

use tilework_backend::{Backend, Request};
use tilework_error::Result;

/// Runs a request.
pub(crate) fn run(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<()> {
    // SAFETY: every caller has made its views and targets for this very request.
    unsafe { tilework_backend::run(backend, operation, request) }
}

/// How a request would be done.
#[allow(dead_code, reason = "few tests ask")]
pub(crate) fn explain(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<String> {
    // SAFETY: as above.
    unsafe { tilework_backend::explain(backend, operation, request) }
}
