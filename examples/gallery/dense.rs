//! What a job would cost with the M x N matrix stored, array at a time, as one writes it in NumPy.
//!
//! Memory is counted. Time is measured on some of the rows, with this library's own arrays, and
//! scaled: the page says so.

use std::time::Instant;

use tilework::{Array, Result, s};

/// Bytes and seconds.
pub(crate) struct Cost {
    pub(crate) bytes: f64,
    pub(crate) seconds: f64,
}

/// Elements of the block of differences that is measured.
const BLOCK: usize = 4 << 20;

/// The cost of |x - y|^2 for all pairs, and then of `rest` on the distances; `times` over.
pub(crate) fn cost(
    x: &Array,
    y: &Array,
    times: f64,
    rest: impl Fn(&Array) -> Result<Array>,
) -> Result<Cost> {
    let (m, n, d) = (x.shape()[0], y.shape()[0], x.shape()[1]);
    let rows = (BLOCK / (n * d)).clamp(1, m);
    let block = x.slice(&s![0..rows as isize])?.expand_dims(1)?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let began = Instant::now();
        let distances = (&block - &y.expand_dims(0)?)?.square()?.sum(-1)?;
        rest(&distances)?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    // The differences and the distances are both there at once.
    let bytes = m as f64 * n as f64 * (d + 1) as f64 * x.dtype().size() as f64;
    Ok(Cost { bytes, seconds: best * m as f64 / rows as f64 * times })
}
