//! Sorting long rows of real numbers by the digits of their keys: a pass for each byte.
//!
//! What order and equality mean is said by `key` of the kernels. Called by `sort.rs`.

use tilework_backend::{Session, Sort};
use tilework_error::Result;
use tilework_ops::{DType, Kind};

use crate::compile::Room;
use crate::device::Cuda;
use crate::launch::{self, Args, Rows, Width};
use crate::source;

/// Threads of a block, elements that it moves, and digits: as in `kernels/sort_radix.cu`.
const THREADS: usize = 256;
const TILE: usize = 4096;
const DIGITS: usize = 256;

/// The longest rows that are sorted by digits: positions have 32 bits.
pub(crate) fn longest(dtype: DType) -> Option<usize> {
    (!dtype.is_complex()).then_some(u32::MAX as usize - TILE)
}

/// Whether rows of some length are sorted faster by digits than by merging.
pub(crate) fn suits(dtype: DType, len: usize) -> bool {
    len > TILE && longest(dtype).is_some_and(|longest| len <= longest)
}

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Sort<'_>,
    rows: &Rows,
    name: &str,
) -> Result<()> {
    let (input, output) = (request.input, request.output.view());
    let dtype = input.dtype();
    let (n, tiles) = (rows.count * rows.len, rows.len.div_ceil(TILE));
    let width = Width::of(rows.count, [launch::elements(&input), launch::elements(&output)])
        .for_axes(rows.nest.lens.len());
    let module = cuda
        .module(name, &[Room::Radix as u8, width as u8, dtype as u8], || Ok(text(dtype, width)))?;
    let nest = rows.nest.encode(width);
    let mut shape: Vec<u8> =
        [rows.len, tiles].iter().flat_map(|&size| (size as u32).to_le_bytes()).collect();
    shape.extend(rows.steps.iter().flat_map(|&step| (step as i64).to_le_bytes()));
    shape.extend((request.descending as u64).to_le_bytes());
    let (source, target) =
        (launch::source(&input, session), launch::target(&request.output, session));

    let block = |bytes: usize| cuda.allocate_block(bytes);
    let keys = [block(n * key_size(dtype))?, block(n * key_size(dtype))?];
    let indexed = request.indices || dtype.kind() == Kind::Float;
    let indices = if indexed { Some([block(n * 4)?, block(n * 4)?]) } else { None };
    let index = |side: usize| indices.as_ref().map_or(0, |indices| indices[side].address);
    let counts = block(rows.count * DIGITS * tiles * 4)?;
    let totals = block(rows.count * DIGITS * 4)?;
    let launch = |function, blocks: usize, args| {
        let grid = launch::grid(name, [blocks, 1], THREADS)?;
        let function = cuda.function(name, &module, function)?;
        // SAFETY: the source declares these arguments; positions are those of checked layouts, and
        // the scratch has room for a key, an index and their like of each element, and for the
        // digits of each tile.
        unsafe { cuda.launch(name, function, grid, args) }
    };

    let args = Args::new().bytes(&nest).bytes(&shape).number(n as u64).pointer(source);
    launch(c"enter", n.div_ceil(THREADS), args.pointer(keys[0].address).pointer(index(0)))?;
    let mut side = 0;
    for byte in 0..dtype.size() {
        let args = || Args::new().bytes(&shape).number(8 * byte as u64).pointer(keys[side].address);
        launch(c"count", rows.count * tiles, args().pointer(counts.address))?;
        let sums = Args::new().bytes(&shape).pointer(counts.address).pointer(totals.address);
        launch(c"starts", rows.count * DIGITS, sums)?;
        let args = args()
            .pointer(index(side))
            .pointer(counts.address)
            .pointer(totals.address)
            .pointer(keys[1 - side].address)
            .pointer(index(1 - side));
        launch(c"move", rows.count * tiles, args)?;
        side = 1 - side;
    }
    let args = Args::new()
        .bytes(&nest)
        .bytes(&shape)
        .number(n as u64)
        .number(request.indices as u64)
        .pointer(source)
        .pointer(keys[side].address)
        .pointer(index(side))
        .pointer(target);
    launch(c"finish", n.div_ceil(THREADS), args)
}

fn key_size(dtype: DType) -> usize {
    dtype.size().max(4)
}

fn text(dtype: DType, width: Width) -> String {
    let key = if key_size(dtype) == 8 { "u64" } else { "u32" };
    let (floating, signed) = (dtype.kind() == Kind::Float, dtype.kind() == Kind::Signed);
    [
        &source::begin(width, [dtype]),
        &format!("typedef {} S;\ntypedef {key} K;\n", source::storage(dtype)),
        &format!("#define FLOATING {}\n#define SIGNED {}\n", floating as u8, signed as u8),
        include_str!("kernels/sort_radix.cu"),
        source::END,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_keys_compiles() {
        let dtypes = [DType::Bool, DType::BFloat16, DType::Int64, DType::UInt16, DType::Float64];
        crate::check::compiles(
            dtypes.map(|dtype| (dtype.to_string(), text(dtype, Width::Narrow))).into(),
        );
    }
}
