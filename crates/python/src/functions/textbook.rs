//! The textbook's tiled product on flat buffers, for the needle package.

use pyo3::prelude::*;

use crate::args::register;
use crate::array::PyArray;
use crate::run::run;

/// `out = a @ b` on flat buffers of square tiles, row after row of tiles.
#[pyfunction]
#[pyo3(signature = (a, b, out, sizes, tile, /))]
fn _matmul_tiled_flat(
    py: Python<'_>,
    a: &Bound<'_, PyArray>,
    b: &Bound<'_, PyArray>,
    out: &Bound<'_, PyArray>,
    sizes: [usize; 3],
    tile: usize,
) -> PyResult<()> {
    let (a, b, out) = (&a.get().0, &b.get().0, &out.get().0);
    let work = a.len().saturating_mul(sizes[2]);
    run(py, work, a.device(), || tilework::matmul_tiled_flat(a, b, out, sizes, tile))
}

/// Adds the function to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: _matmul_tiled_flat);
    Ok(())
}
