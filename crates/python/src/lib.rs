//! The Python package's native module, `tilework._core`.
//!
//! A shell: every function parses its arguments, calls the core, and wraps the result. Rooms:
//! `errors`, `run` and `scopes` (exceptions, the GIL, `with`), `dtype`, `device`, `array` with `class`, `operators`,
//! `indexing`, `iteration`, `methods`, `statistics`, `layout`, `buffer`, `pickle`, `dlpack` and `cuda` (the
//! classes), `args`, `convert`, `lists`, `memory` and `operand` (arguments), `functions` (the namespace),
//! `random`, `stream` (open files), `pairs` (formulas), `command` (the command line).

#![allow(missing_docs, reason = "the documentation of this crate is Python's")]
#![allow(unreachable_pub, reason = "nothing of this crate is reached from Rust")]

mod args;
mod array;
mod buffer;
mod bytes;
mod class;
mod command;
mod convert;
mod cuda;
mod device;
mod dlpack;
mod dtype;
mod errors;
mod functions;
mod indexing;
mod iteration;
mod layout;
mod lists;
mod memory;
mod methods;
mod operand;
mod operators;
mod pairs;
mod pickle;
mod random;
mod run;
mod scopes;
mod statistics;
mod stream;

use pyo3::prelude::*;

/// The native part of tilework; use it through the package.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Whoever forgets `run` fails where it would have to wait, instead of waiting with the GIL.
    tilework_backend::wait_only_watched();
    errors::register(module)?;
    dtype::register(module)?;
    device::register(module)?;
    class::register(module)?;
    pickle::register(module)?;
    iteration::register(module)?;
    convert::register(module)?;
    cuda::register(module)?;
    dlpack::register(module)?;
    layout::register(module)?;
    functions::elementwise::register(module)?;
    functions::creation::register(module)?;
    functions::manipulation::register(module)?;
    functions::types::register(module)?;
    functions::reductions::register(module)?;
    functions::searching::register(module)?;
    functions::linalg::register(module)?;
    functions::textbook::register(module)?;
    functions::extras::register(module)?;
    functions::printing::register(module)?;
    functions::files::register(module)?;
    functions::archive::register(module)?;
    functions::info::register(module)?;
    random::register(module)?;
    pairs::register(module)?;
    command::register(module)?;
    public_names(module)
}

/// Leaves in `__all__` what the package shows: not the helpers, nor the classes that only functions
/// make.
fn public_names(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const INNER: &[&str] = &[
        "ArrayIterator",
        "Generator",
        "NamespaceInfo",
        "NpzFile",
        "ReducedLazyTensor",
        "SolveError",
        "Var",
        "cuda_empty_cache",
        "cuda_memory_info",
        "cuda_synchronize",
        "cuda_why_not",
        "default_rng",
        "finfo_object",
        "flagsobj",
        "flatiter",
        "get_defaults",
        "iinfo_object",
        "set_defaults",
    ];
    let names: Vec<String> = module.index()?.extract()?;
    let shown = |name: &String| !name.starts_with('_') && !INNER.contains(&name.as_str());
    let mut names: Vec<String> = names.into_iter().filter(shown).collect();
    names.sort();
    module.setattr("__all__", names)
}
