//! float32 products of few tiles and long sums on Hopper's tensor cores: the sums are cut into many
//! pieces, and each block splits what it reads into TF32 heads and tails itself.

use tilework_error::Result;
use tilework_ops::DType;

use super::fused::{self, FEW, PIECES};
use super::{Product, begin};
use crate::source;

/// As in `kernels/matmul_thin.cu`: groups of warps in a block, sides of a tile, k that is brought at once,
/// stages of that, and bytes.
const GROUPS: usize = 3;
const SIDE: usize = 64;
const DEPTHS: usize = 32;
const STAGES: usize = 3;
const PITCH: usize = 40;
const STAGE: usize = (SIDE * PITCH + DEPTHS * SIDE) * 4;
const SPLIT: usize = 2 * SIDE * DEPTHS * 4;

/// Whether there are so many pieces that their sums are most of the work.
pub(super) fn suits(p: &Product<'_>, pieces: usize) -> Result<bool> {
    let hopper = p.cuda.facts()?.capability == (9, 0);
    Ok(hopper && p.dtype == DType::Float32 && pieces > FEW)
}

/// The product in pieces of about so many of k for a half of a multiprocessor, all of which a block takes.
pub(super) fn run(p: &Product<'_>, piece: usize) -> Result<()> {
    let piece = (2 * piece).next_multiple_of(DEPTHS);
    let pieces = p.k.div_ceil(piece);
    let module = p.module(b"T", text)?;
    let partial = p.cuda.allocate_block(pieces * p.m * p.n * p.batches * p.dtype.size())?;
    let [a, b, _] = p.blocks;
    let args = p.args(piece).pointer(a).pointer(b).pointer(partial.address);
    // The split tile begins at a multiple of 1024.
    let shared = GROUPS * (SPLIT + STAGES * STAGE) + 1024;
    let grid = p.grid([p.tiles(SIDE, SIDE), p.batches, pieces], 128 * GROUPS, shared)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, all others are positions of checked layouts, and the scratch has
    // room for a result of each piece.
    unsafe { p.launch(&module, c"thin", grid, args)? };
    fused::add_pieces(p, &module, piece, partial.address)
}

pub(super) fn text() -> String {
    let defines = [("GROUPS", GROUPS.to_string()), ("STAGES", STAGES.to_string())];
    [
        begin(DType::Float32, &defines).as_str(),
        include_str!("../kernels/hopper.cu"),
        include_str!("../kernels/matmul_tiles.cu"),
        include_str!("../kernels/matmul_heads.cu"),
        include_str!("../kernels/matmul_thin.cu"),
        PIECES,
        source::END,
    ]
    .concat()
}
