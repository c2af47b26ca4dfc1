//! Products where one operand is a vector, of every dtype, at the speed of memory. Long sums of few
//! results are cut into pieces, and the pieces added in order.

use tilework_error::Result;
use tilework_ops::DType;

use super::{MAX_BLOCKS, Product, begin};
use crate::launch::{Args, Width};
use crate::source;

/// Warps of a block, and rows in flight: as in `kernels/matvec.cu`.
const WARPS: usize = 8;
/// Blocks that a multiprocessor should have, to keep the memory busy.
const BUSY: usize = 8;
/// The least of k that is worth a piece of its own: along the memory, and across it.
const ALONG: usize = 4096;
const ACROSS: usize = 64;

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
    let (function, each, least) =
        if across { (c"across", 32 * run, ACROSS) } else { (c"along", WARPS, ALONG) };
    let blocks = rows.div_ceil(each);
    let wanted = BUSY * p.cuda.facts()?.multiprocessors as usize / (blocks * p.batches);
    let pieces = wanted.min(p.k / least).clamp(1, MAX_BLOCKS);
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
    let grid = |blocks: usize, pieces: usize| p.grid([blocks, pieces, p.batches], 256, 0);
    let first = args().pointer(p.blocks[matrix]).pointer(p.blocks[vector]).pointer(p.blocks[2]);
    // SAFETY: the source declares these arguments; positions are those of checked layouts, and the
    // scratch has room for a sum of each piece.
    unsafe { p.launch(&module, function, grid(blocks, pieces)?, first.pointer(scratch))? };
    if pieces == 1 {
        return Ok(());
    }
    let then = args().pointer(p.blocks[2]).pointer(scratch);
    // SAFETY: as above.
    unsafe { p.launch(&module, c"join", grid(rows.div_ceil(32), 1)?, then) }
}

pub(super) fn text(dtype: DType) -> String {
    [begin(dtype, &[]).as_str(), include_str!("../kernels/matvec.cu"), source::END].concat()
}
