//! Products of any elements on any card, in register tiles, and those in tiles of the textbook.

use tilework_error::Result;
use tilework_layout::Layout;
use tilework_ops::DType;

use super::{Product, begin};
use crate::compile::Room;
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::Args;
use crate::source;

/// Rows and columns of the result that a block computes, by the small and by the large kernel.
const SMALL: usize = 64;
const LARGE: usize = 128;

pub(super) fn run(p: &Product<'_>) -> Result<()> {
    // Tiles of the larger kind where there are enough of them for the whole card.
    let enough = p.tiles(LARGE, LARGE) * p.batches >= p.cuda.facts()?.multiprocessors as usize;
    let (function, side) =
        if has_large(p.dtype) && enough { (c"large", LARGE) } else { (c"small", SMALL) };
    let module = p.module(b"P", || text(p.dtype))?;
    let [a, b, c] = p.blocks;
    let args = p.args(p.k).pointer(a).pointer(b).pointer(c);
    let grid = p.grid([p.tiles(side, side), p.batches, 1], 256, 0)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, and all others are positions of checked layouts.
    unsafe { p.launch(&module, function, grid, args) }
}

/// The textbook's tiles: see [`tilework_backend::MatmulKernel::Tiled`].
pub(super) fn textbook(
    cuda: &Cuda,
    name: &str,
    dtype: DType,
    layouts: [&Layout; 3],
    blocks: [Address; 3],
) -> Result<()> {
    let shape = layouts[2].shape();
    let sizes = [shape[0], shape[1], layouts[0].shape()[1], shape[3]];
    let mut tiles: Vec<u8> = sizes.iter().flat_map(|&x| (x as u64).to_le_bytes()).collect();
    for layout in layouts {
        tiles.extend(layout.strides().iter().flat_map(|&step| (step as i64).to_le_bytes()));
    }
    let mut args = Args::new().bytes(&tiles);
    for (block, layout) in blocks.into_iter().zip(layouts) {
        args = args.pointer(block + (layout.offset() * dtype.size()) as Address);
    }
    let grid = Grid::new(name, [layouts[2].len().div_ceil(256), 1, 1], 256, 0)?;
    let module =
        cuda.module(name, &[Room::Product as u8, dtype as u8, b'P'], || Ok(text(dtype)))?;
    let function = cuda.function(name, &module, c"tiles")?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts.
    unsafe { cuda.launch(name, function, grid, args) }
}

/// Whether there is a kernel with large tiles: elements of up to 4 bytes, whose sums fit registers.
fn has_large(dtype: DType) -> bool {
    dtype.size() <= 4
}

pub(super) fn text(dtype: DType) -> String {
    let large = has_large(dtype).then(|| ("LARGE", String::new()));
    [
        begin(dtype, large.as_slice()).as_str(),
        include_str!("../kernels/matmul_plain.cu"),
        source::END,
    ]
    .concat()
}
