//! Reductions over pairs for Python: `LazyTensor`, `Genred`, `Partial` and their functions.
//!
//! A shell over `tilework::pairs`. Rooms: `operand` (objects as tensors and numbers), `lazy` and
//! `operators` (the class), `methods`, `examples` and `reductions` (what comes from the tables), `settings`
//! (keywords and defaults), `work` (the GIL, progress, Ctrl-C), `genred`, `gradient`, `solve`,
//! `partial`.

mod examples;
pub mod genred;
mod gradient;
pub mod lazy;
pub mod methods;
mod operand;
mod operators;
pub mod partial;
mod reductions;
mod settings;
pub mod solve;
mod work;

use pyo3::prelude::*;

/// Runs multiply-adds on every thread and says how many operations (two each) that were: what
/// `bench/pairs.py` holds its times against. 0 where the machine's vectors are not known.
#[pyfunction]
#[pyo3(signature = (double, /))]
fn _multiply_adds(py: Python<'_>, double: bool) -> f64 {
    py.detach(|| tilework_cpu::limits::multiply_adds(double))
}

/// Adds the classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lazy::register(module)?;
    methods::register(module)?;
    genred::register(module)?;
    partial::register(module)?;
    solve::register(module)?;
    module.add_function(wrap_pyfunction!(_multiply_adds, module)?)?;
    settings::register(module)
}
