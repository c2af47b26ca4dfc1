//! float32 and float64 by asynchronous copies: fused steps in register tiles, and for float64 on
//! tensor cores. Few tiles with a long sum are cut along k, and the pieces added in order; many pieces
//! of float32 are summed by `thin` on Hopper.

use std::sync::Arc;

use tilework_error::Result;
use tilework_ops::DType;

use super::{MAX_BLOCKS, Product, SCRATCH, Steps, begin, thin};
use crate::compile::Module;
use crate::memory::Block;
use crate::source;

/// k of a tile, and of those whose next depth is always on its way; elements that a row of a tile is padded by, at
/// the most.
const DEEP: usize = 16;
const SHALLOW: usize = 8;
const PAD: usize = 8;
/// Blocks that a multiprocessor should have, and from how many tiles of which sides on there are enough
/// for large ones.
const BLOCKS: usize = 2;
const LARGE: usize = 128;
/// The least of k that is worth a piece of its own, and the most that `Tripled` sums without loss.
const PIECE: usize = 128;
pub(super) const LONGEST: usize = 512;
/// From how many rows (columns) of the other operand and elements of its own on one that lies along the sum is
/// turned first. To bring it element by element takes 3e-15 s for each step of a product on an H200, and to turn it
/// 2.4e-12 s for each element and 3e-6 for the launch.
const TURNED_FOR: usize = 1024;
const TURNED: usize = 1 << 20;
/// As in `kernels/matmul_wide.cu`: rows and depths of a tile that is turned.
const TURNS: usize = 64;
/// Sums so short are taken by fused steps, with tiles for large products whatever their size: three products of heads and
/// tails round each term, which long sums do not show.
const SHORT: usize = 32;
/// Pieces that one thread adds.
pub(super) const FEW: usize = 16;

const WIDE: &str = include_str!("../kernels/matmul_wide.cu");
const PATCHES: &str = include_str!("../kernels/matmul_patches.cu");
const TRIPLED: &str = concat!(
    include_str!("../kernels/matmul_heads.cu"),
    include_str!("../kernels/matmul_tripled.cu")
);
pub(super) const PIECES: &str = include_str!("../kernels/matmul_pieces.cu");
const DOUBLES: &str = include_str!("../kernels/matmul_doubles.cu");

/// A core of the kernel: its source, rows, columns and depth of its tiles, its threads, and tiles that are on
/// their way.
struct Core {
    source: &'static str,
    high: usize,
    wide: usize,
    deep: usize,
    threads: usize,
    stages: usize,
    /// Which operands lie with neighbours along the sum.
    along: [bool; 2],
}

impl Core {
    fn new(dtype: DType, large: bool, along: [bool; 2]) -> Core {
        let side = if large { LARGE } else { 64 };
        let (source, high, wide, threads, stages) = match (dtype, large, along) {
            (DType::Float64, true, [true, false]) => (DOUBLES, 64, 128, 128, 3),
            (DType::Float64, true, _) => (DOUBLES, 128, 64, 128, 3),
            (DType::Float32, true, _) => (WIDE, side, side, 128, 4),
            (DType::Float32, false, _) => (TRIPLED, side, side, 128, 4),
            _ => (PATCHES, side, side, side * side / 64, 4),
        };
        // Copies one by one take less time than registers for tiles that lie along the sum.
        let shallow = dtype == DType::Float32 && large;
        let (along, deep) = if shallow { ([false; 2], SHALLOW) } else { (along, DEEP) };
        Core { source, high, wide, deep, threads, stages, along }
    }

    /// Bytes of shared memory: rows of a tile lie along the sum or across.
    fn shared(&self, size: usize) -> usize {
        let tile = |side: usize, along: bool| match along {
            true => side * (self.deep + PAD),
            false => self.deep * (side + PAD),
        };
        let [left, right] = self.along;
        self.stages * (tile(self.high, left) + tile(self.wide, right)) * size
    }
}

pub(super) fn suits(p: &Product<'_>) -> Result<bool> {
    let dtype = matches!(p.dtype, DType::Float32 | DType::Float64);
    Ok(dtype && p.k > 0 && p.cuda.facts()?.capability >= (8, 0))
}

pub(super) fn run(p: &Product<'_>) -> Result<()> {
    let (size, card) = (p.dtype.size(), p.cuda.facts()?.multiprocessors as usize);
    let results = p.m * p.n * p.batches * size;
    let small = Core::new(p.dtype, false, along(p));
    let piece = piece(p.k, p.tiles(small.high, small.wide) * p.batches, card, p.dtype);
    let fits = p.k.div_ceil(piece) * results <= SCRATCH;
    let short = p.dtype == DType::Float32 && p.k <= SHORT;
    let large = !fits || short || p.tiles(LARGE, LARGE) * p.batches >= card;
    let (core, piece) = match large {
        true => (Core::new(p.dtype, true, along(p)), p.k),
        false => (small, piece),
    };
    let pieces = p.k.div_ceil(piece);
    if thin::suits(p, pieces)? {
        return thin::run(p, piece);
    }
    let module = module(p, large, core.along)?;
    let (turned, _blocks);
    let p = match large && p.dtype == DType::Float32 {
        true => {
            (turned, _blocks) = turned_first(p, &module)?;
            &turned
        }
        false => p,
    };
    let partial = (pieces > 1).then(|| p.cuda.allocate_block(pieces * results)).transpose()?;
    let scratch = partial.as_ref().map_or(0, |block| block.address);
    let [a, b, c] = p.blocks;
    let args = p.args(piece).pointer(a).pointer(b).pointer(c).pointer(scratch);
    let tiles = p.tiles(core.high, core.wide);
    let grid = p.grid([tiles, p.batches, pieces], core.threads, core.shared(size))?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, all others are positions of checked layouts, and the scratch has
    // room for a result of each piece.
    unsafe { p.launch(&module, c"blocks", grid, args)? };
    if pieces == 1 { Ok(()) } else { add_pieces(p, &module, piece, scratch) }
}

/// Adds the pieces of a product, which lie in the scratch.
pub(super) fn add_pieces(
    p: &Product<'_>,
    module: &Module,
    piece: usize,
    scratch: u64,
) -> Result<()> {
    let many = p.k.div_ceil(piece) > FEW;
    let args = p.args(piece).pointer(scratch).pointer(p.blocks[2]);
    let (function, each) = if many { (c"many_pieces", 32) } else { (c"few_pieces", 256) };
    let grid = p.grid([(p.m * p.n).div_ceil(each), p.batches, 1], 256, 0)?;
    // SAFETY: the source declares these arguments, and the scratch has a result of each piece.
    unsafe { p.launch(module, function, grid, args) }
}

/// The same product of operands of which those are turned that lie along the sum, where that pays; and the
/// blocks that hold them.
fn turned_first<'a>(
    p: &'a Product<'_>,
    module: &Module,
) -> Result<(Product<'a>, [Option<Block>; 2])> {
    let mut turned = p.part([0, 0], [p.m, p.n]);
    let mut blocks = [None, None];
    let lies = [(p.m, p.n, p.a.row, p.a.column), (p.n, p.m, p.b.column, p.b.row)];
    for (which, (rows, others, step, deep)) in lies.into_iter().enumerate() {
        let pitch = rows.next_multiple_of(4);
        let each = p.k * pitch;
        let moves = p.batch.strides.iter().any(|strides| strides[which] != 0);
        let batches = if moves { p.batches } else { 1 };
        let fits = each.saturating_mul(batches * p.dtype.size()) <= SCRATCH;
        let pays = others >= TURNED_FOR && rows * p.k >= TURNED;
        if deep != 1 || step == 1 || !pays || !fits {
            continue;
        }
        let block = p.cuda.allocate_block(each * batches * p.dtype.size())?;
        let numbers =
            [rows, pitch, which, step as usize].map(|number| (number as u64).to_le_bytes());
        let args = p.args(p.k).bytes(numbers.as_flattened());
        let args = args.pointer(p.blocks[which]).pointer(block.address);
        let tiles = rows.div_ceil(TURNS) * p.k.div_ceil(TURNS);
        let grid = p.grid([tiles, batches, 1], 256, 0)?;
        // SAFETY: the source declares these arguments; positions are those of checked layouts, and the
        // block has room for all batches.
        unsafe { p.launch(module, c"turn", grid, args)? };
        let steps = Steps { row: 1, column: pitch as isize };
        match which {
            0 => turned.a = steps,
            _ => turned.b = Steps { row: steps.column, column: steps.row },
        }
        turned.blocks[which] = block.address;
        // Batches lie one after the other, from the first of this launch on.
        let mut between = if moves { each as isize } else { 0 };
        turned.batch.offsets[which] = 0usize.wrapping_add_signed(-between * p.first as isize);
        for (strides, len) in turned.batch.strides.iter_mut().zip(&p.batch.lens).rev() {
            strides[which] = between;
            between *= *len as isize;
        }
        blocks[which] = Some(block);
    }
    Ok((turned, blocks))
}

/// Which operands lie with neighbours along the sum.
fn along(p: &Product<'_>) -> [bool; 2] {
    [p.a.column == 1, p.b.row == 1]
}

/// The kernel for large or small tiles.
fn module(p: &Product<'_>, large: bool, along: [bool; 2]) -> Result<Arc<Module>> {
    let key = [b'F', large as u8, along[0] as u8, along[1] as u8];
    p.module(&key, || text(p.dtype, large, along))
}

/// How k is cut: into as many pieces as give each multiprocessor some blocks, none too long for the
/// core, unless a grid cannot have so many.
fn piece(k: usize, tiles: usize, card: usize, dtype: DType) -> usize {
    let wanted = (BLOCKS * card).div_ceil(tiles).min(k / PIECE).max(1);
    let longest = if dtype == DType::Float32 { LONGEST } else { k };
    let pieces = wanted.max(k.div_ceil(longest)).min(MAX_BLOCKS);
    k.div_ceil(pieces).next_multiple_of(DEEP)
}

pub(super) fn text(dtype: DType, large: bool, along: [bool; 2]) -> String {
    let core = Core::new(dtype, large, along);
    let [along_a, along_b] = core.along.map(|along| (along as u8).to_string());
    let defines = [
        ("STAGES", core.stages.to_string()),
        ("SIDES", core.high.to_string()),
        ("DEEP", core.deep.to_string()),
        ("ALONG_A", along_a),
        ("ALONG_B", along_b),
    ];
    let frame = include_str!("../kernels/matmul_async.cu");
    // Large tiles have whole sums.
    let pieces = if large { "" } else { PIECES };
    [begin(dtype, &defines).as_str(), frame, core.source, pieces, source::END].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_k_and_are_few() {
        for (k, tiles) in [(1, 1), (16, 1), (65_536, 1), (1000, 4), (100_000, 3), (4096, 400)] {
            for dtype in [DType::Float32, DType::Float64] {
                let piece = piece(k, tiles, 132, dtype);
                let pieces = k.div_ceil(piece);
                assert!(piece.is_multiple_of(DEEP) && piece * pieces >= k);
                assert!(pieces == 1 || piece >= PIECE);
                assert!(dtype == DType::Float64 || piece <= LONGEST);
            }
        }
        assert_eq!(piece(65_536, 1, 132, DType::Float32), 256);
        let k: usize = 50_000_000;
        let pieces = k.div_ceil(piece(k, 1, 132, DType::Float32));
        assert!(pieces <= MAX_BLOCKS, "{pieces} are more than a grid has");
    }
}
