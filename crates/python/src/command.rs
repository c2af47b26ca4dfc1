//! The command line, for the package's script `tilework`.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::args::register;
use crate::run::detached;

/// Does what the words of a line ask for, the program's name first; the exit code. Ctrl-C stops the
/// work from then on and raises nothing: this is the last thing that a process does.
#[pyfunction]
#[pyo3(signature = (line, /))]
fn _command_line(py: Python<'_>, line: Vec<OsString>) -> u8 {
    detached(py, || tilework_cli::main(line.into_iter()))
}

/// Adds the function to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: _command_line);
    Ok(())
}
