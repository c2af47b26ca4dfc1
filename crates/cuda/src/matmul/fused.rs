//! float32 and float64 by asynchronous copies: fused steps in register tiles, and for float64 on
//! tensor cores. Few tiles with a long sum are cut along k, and the pieces added in order.

use std::sync::Arc;

use tilework_error::Result;
use tilework_ops::DType;

use super::{Product, SCRATCH, begin};
use crate::compile::Module;
use crate::driver::{Address, Grid};
use crate::source;

/// As in `kernels/matmul_async.cu`: k of a tile, tiles on their way, and bytes of the larger way that
/// one lies in shared memory: padded by 4 elements in each row.
const DEEP: usize = 16;
const STAGES: usize = 4;
fn tile(side: usize, size: usize) -> usize {
    (DEEP * (side + 4)).max(side * (DEEP + 4)) * size
}
/// Sides of the tiles that a block computes, and its threads.
const SMALL: (usize, u32) = (64, 64);
const LARGE: (usize, u32) = (128, 256);
/// The least of k that is worth a piece of its own.
const PIECE: usize = 128;

/// Where the marks of a product lie that this one mends: see `Marks` of the kernel.
pub(super) struct Marks {
    pub(super) at: Address,
    pub(super) rows: usize,
    pub(super) tiles: usize,
    pub(super) deep: usize,
}

pub(super) fn suits(p: &Product<'_>) -> Result<bool> {
    let dtype = matches!(p.dtype, DType::Float32 | DType::Float64);
    Ok(dtype && p.k > 0 && p.cuda.facts()?.capability >= (8, 0))
}

pub(super) fn run(p: &Product<'_>, marks: Option<Marks>) -> Result<()> {
    let (size, card) = (p.dtype.size(), p.cuda.facts()?.multiprocessors as usize);
    let large = marks.is_some() || p.tiles(LARGE.0, LARGE.0) * p.batches >= card;
    let (function, (side, threads)) = if large { (c"blocks", LARGE) } else { (c"patches", SMALL) };
    let tiles = p.tiles(side, side);
    let piece = if large { p.k } else { piece(p.k, tiles * p.batches, card) };
    let results = p.m * p.n * p.batches * size;
    let piece = if p.k.div_ceil(piece) * results > SCRATCH { p.k } else { piece };
    let pieces = p.k.div_ceil(piece);

    let module = module(p, large)?;
    let partial = (pieces > 1).then(|| p.cuda.allocate_block(pieces * results)).transpose()?;
    let scratch = partial.as_ref().map_or(0, |block| block.address);
    let marks = marks.unwrap_or(Marks { at: 0, rows: 0, tiles: 0, deep: 0 });
    let mut words = marks.at.to_le_bytes().to_vec();
    let counts = [marks.rows, marks.tiles, marks.deep, 0];
    words.extend(counts.iter().flat_map(|&count| (count as u32).to_le_bytes()));
    let [a, b, c] = p.blocks;
    let args = p.args(piece).bytes(&words).pointer(a).pointer(b).pointer(c).pointer(scratch);
    let shared = (STAGES * 2 * tile(side, size)) as u32;
    let grid = Grid { blocks: [tiles as u32, p.batches as u32, pieces as u32], threads, shared };
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, all others are positions of checked layouts, and the scratch has
    // room for a result of each piece.
    unsafe { p.launch(&module, function, grid, args)? };
    if pieces == 1 {
        return Ok(());
    }
    let args = p.args(piece).pointer(scratch).pointer(c);
    let blocks = [(p.m * p.n).div_ceil(32) as u32, p.batches as u32, 1];
    // SAFETY: as above.
    unsafe { p.launch(&module, c"pieces", Grid { blocks, threads: 256, shared: 0 }, args) }
}

/// The kernel for large or small tiles, which a product that may need mending loads before it writes.
pub(super) fn module(p: &Product<'_>, large: bool) -> Result<Arc<Module>> {
    let along = match p.dtype {
        DType::Float64 => [p.a.column == 1, p.b.row == 1],
        _ => [false, false],
    };
    let key = [b'F', large as u8, along[0] as u8, along[1] as u8];
    p.module(&key, || text(p.dtype, large, along))
}

/// How k is cut: into as many pieces as give each multiprocessor some blocks.
fn piece(k: usize, tiles: usize, card: usize) -> usize {
    let wanted = (4 * card).div_ceil(tiles).min(k / PIECE).max(1);
    k.div_ceil(wanted).next_multiple_of(DEEP)
}

/// For float64, tiles lie in shared memory as the operands do: `along` if neighbours are along the
/// sum.
pub(super) fn text(dtype: DType, large: bool, along: [bool; 2]) -> String {
    let mut defines = vec![("STAGES", STAGES.to_string()), ("LARGE", (large as u8).to_string())];
    if dtype == DType::Float64 {
        defines.push(("DOUBLES", String::new()));
        defines.push(("ALONG_A", (along[0] as u8).to_string()));
        defines.push(("ALONG_B", (along[1] as u8).to_string()));
    }
    [begin(dtype, &defines).as_str(), include_str!("../kernels/matmul_async.cu"), source::END]
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_k_and_are_few() {
        for (k, tiles) in [(1, 1), (16, 1), (65_536, 1), (1000, 4), (100_000, 3), (4096, 400)] {
            let piece = piece(k, tiles, 132);
            let pieces = k.div_ceil(piece);
            assert!(piece.is_multiple_of(DEEP) && piece * pieces >= k);
            assert!(pieces == 1 || (piece >= PIECE && (pieces - 1) * tiles <= 4 * 132));
        }
        assert_eq!(piece(65_536, 1, 132), 128);
    }
}
