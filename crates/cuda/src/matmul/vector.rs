//! Products where one operand is a vector, of every dtype, at the speed of memory. Long sums of few
//! results are cut into pieces, and the pieces added in order.

use std::ffi::CStr;

use tilework_error::Result;
use tilework_ops::DType;

use super::{MAX_BLOCKS, Product, begin};
use crate::launch::{Args, Width};
use crate::source;

/// How a kernel of `kernels/matvec.cu` shares out its work.
struct Way {
    function: &'static CStr,
    threads: usize,
    /// Results of a block.
    results: usize,
    /// The least of k that is worth a piece of its own.
    least: usize,
    /// Blocks of a multiprocessor that keep the memory busy: with fewer, k is cut into pieces.
    busy: usize,
}

pub(super) fn run(p: &Product<'_>) -> Result<()> {
    // The matrix's steps along the result and along the sum, and those of the vectors; of a row
    // times a matrix, the right operand is the matrix.
    let right = p.m == 1;
    let (rows, row, deep, x, y) = match right {
        true => (p.n, p.b.column, p.b.row, p.a.column, p.c.column),
        false => (p.m, p.a.row, p.a.column, p.b.row, p.c.row),
    };
    let mut batch = p.batch.clone();
    let (matrix, vector) = if right { (1, 0) } else { (0, 1) };
    if right {
        batch.offsets.swap(0, 1);
        batch.strides.iter_mut().for_each(|strides| strides.swap(0, 1));
    }
    let run = (16 / p.dtype.size()).max(1);
    let across = row.unsigned_abs() < deep.unsigned_abs();
    let way = match across {
        true => Way { function: c"across", threads: 512, results: 8 * run, least: 512, busy: 1 },
        false => Way { function: c"along", threads: 256, results: 8, least: 4096, busy: 8 },
    };
    let blocks = rows.div_ceil(way.results);
    let wanted = way.busy * p.cuda.facts()?.multiprocessors as usize / (blocks * p.batches);
    let pieces = wanted.min(p.k / way.least).clamp(1, MAX_BLOCKS);
    // Whole runs, so that every piece is aligned where the first is.
    let piece = p.k.div_ceil(pieces).next_multiple_of(run);
    let pieces = p.k.div_ceil(piece);

    let module = p.module(b"V", || text(p.dtype))?;
    let sum = p.dtype.size().max(4);
    let partial =
        (pieces > 1).then(|| p.cuda.allocate_block(p.batches * pieces * rows * sum)).transpose()?;
    let scratch = partial.as_ref().map_or(0, |block| block.address);
    let sizes = [rows, p.k, piece, pieces, p.first, 0];
    let sizes = sizes.into_iter().flat_map(|size| (size as u32).to_le_bytes());
    let steps = [row, deep, x, y].into_iter().flat_map(|step| (step as i64).to_le_bytes());
    let sizes: Vec<u8> = sizes.chain(steps).collect();
    let args = || Args::new().bytes(&batch.encode(Width::Wide)).bytes(&sizes);
    let first = args().pointer(p.blocks[matrix]).pointer(p.blocks[vector]).pointer(p.blocks[2]);
    let grid = p.grid([blocks, pieces, p.batches], way.threads, 0)?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts, and the
    // scratch has room for a sum of each piece.
    unsafe { p.launch(&module, way.function, grid, first.pointer(scratch))? };
    if pieces == 1 {
        return Ok(());
    }
    let then = args().pointer(p.blocks[2]).pointer(scratch);
    let grid = p.grid([rows.div_ceil(32), 1, p.batches], 256, 0)?;
    // SAFETY: as above.
    unsafe { p.launch(&module, c"join", grid, then) }
}

pub(super) fn text(dtype: DType) -> String {
    [begin(dtype, &[]).as_str(), include_str!("../kernels/matvec.cu"), source::END].concat()
}
