//! float32 products of few tiles and long sums on Hopper's tensor cores: the sums are cut into many
//! pieces, and each block splits what it reads into TF32 heads and tails itself.

use tilework_error::Result;
use tilework_ops::DType;

use super::fused::{self, FEW, LONGEST, PIECES};
use super::{Product, begin};
use crate::memory::COUNTER;
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

/// The product in pieces of about so many of k for a half of a multiprocessor, all of which a block takes. Blocks that
/// can all run at once add the pieces themselves.
pub(super) fn run(p: &Product<'_>, piece: usize) -> Result<()> {
    let tiles = p.tiles(SIDE, SIDE) * p.batches;
    let card = p.cuda.facts()?.multiprocessors as usize;
    let piece = thin_piece(p.k, piece, tiles, card);
    let pieces = p.k.div_ceil(piece);
    let together = tiles * pieces <= card;
    let module = p.module(&[b'T', together as u8], || text(together))?;
    let [a, b, c] = p.blocks;
    // The split tile begins at a multiple of 1024.
    let shared = GROUPS * (SPLIT + STAGES * STAGE) + 1024;
    let grid = p.grid([p.tiles(SIDE, SIDE), p.batches, pieces], 128 * GROUPS, shared)?;
    let args = p.args(piece).pointer(a).pointer(b);
    if together {
        return p.cuda.at_meeting(tiles * pieces * SIDE * SIDE * p.dtype.size(), |place| {
            let args = args.pointer(place + COUNTER as u64).pointer(c).pointer(place);
            // SAFETY: as below; the place has slots for a tile of each block, and the driver sees to it that
            // all of them run at once.
            unsafe { p.launch(&module, c"thin", grid.together(), args) }
        });
    }
    let partial = p.cuda.allocate_block(pieces * p.m * p.n * p.batches * p.dtype.size())?;
    let args = args.pointer(partial.address).pointer(c).pointer(0);
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, all others are positions of checked layouts, and the scratch has
    // room for a result of each piece.
    unsafe { p.launch(&module, c"thin", grid, args)? };
    fused::add_pieces(p, &module, piece, partial.address)
}

/// How much of k a block takes: twice a piece for a half of a multiprocessor, or a little more where all blocks
/// can then run at once.
fn thin_piece(k: usize, piece: usize, tiles: usize, card: usize) -> usize {
    let piece = (2 * piece).next_multiple_of(DEPTHS);
    let at_once = k.div_ceil((card / tiles).max(1)).next_multiple_of(DEPTHS);
    if at_once <= (2 * LONGEST).min(piece + piece / 4) { piece.max(at_once) } else { piece }
}

pub(super) fn text(together: bool) -> String {
    let defines = [
        ("GROUPS", GROUPS.to_string()),
        ("STAGES", STAGES.to_string()),
        ("TOGETHER", (together as u8).to_string()),
    ];
    [
        begin(DType::Float32, &defines).as_str(),
        include_str!("../kernels/hopper.cu"),
        include_str!("../kernels/matmul_tiles.cu"),
        include_str!("../kernels/matmul_heads.cu"),
        include_str!("../kernels/matmul_meeting.cu"),
        include_str!("../kernels/matmul_thin.cu"),
        if together { "" } else { PIECES },
        source::END,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_few_tiles_run_at_once_where_their_sums_are_not_too_long() {
        for (k, piece, tiles) in
            [(65_536, 256, 1), (9000, 144, 4), (5001, 96, 5), (300_000, 512, 1)]
        {
            let found = thin_piece(k, piece, tiles, 132);
            assert!(found.is_multiple_of(DEPTHS) && found >= 2 * piece && found <= 2 * LONGEST);
            assert_eq!(
                tiles * k.div_ceil(found) <= 132,
                k < 200_000,
                "{k}, {tiles} tiles: {found}"
            );
        }
        assert_eq!(thin_piece(65_536, 256, 1, 132), 512);
    }
}
