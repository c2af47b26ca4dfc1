//! Matrix products of any dtype, size and strides, in register tiles.
//!
//! Floats up to 32 bits are summed in float32 by fused steps, in ascending order of k; integers
//! wrap. Products in tiles of the textbook are the same with another layout. Called by `device.rs`.

use tilework_backend::{Matmul, MatmulKernel, Session};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{Class, DType};

use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::Grid;
use crate::launch::{self, Args, MAX_AXES, Nest, Width};
use crate::reduce::too_many_axes;
use crate::source;

/// Rows and columns of the result that a block computes, by the small and by the large kernel.
const SMALL: usize = 64;
const LARGE: usize = 128;
/// What a grid can have in its second and third direction.
const MAX_BLOCKS: usize = 65_535;

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Matmul<'_>,
    name: &str,
) -> Result<()> {
    let (a, b, c) = (request.a.layout(), request.b.layout(), request.output.layout());
    if c.is_empty() {
        return Ok(());
    }
    if request.kernel == MatmulKernel::Tiled {
        return tiled(cuda, session, request, name);
    }
    let axes = c.ndim();
    let (m, n, k) = (c.shape()[axes - 2], c.shape()[axes - 1], a.shape()[axes - 1]);
    let dtype = request.a.dtype();
    let mut batch = Nest {
        lens: c.shape()[..axes - 2].iter().copied().collect(),
        strides: (0..axes - 2)
            .map(|axis| [a, b, c].iter().map(|layout| layout.strides()[axis]).collect())
            .collect(),
        offsets: [a, b, c].iter().map(|layout| layout.offset()).collect(),
    };
    batch.merge();
    let batches = batch.len();
    // Tiles of the larger kind where there are enough of them for the whole card.
    let tiles = |tile: usize| m.div_ceil(tile) * n.div_ceil(tile) * batches;
    let enough = tiles(LARGE) >= cuda.facts()?.multiprocessors as usize;
    let (function, tile) =
        if has_large(dtype) && enough { (c"large", LARGE) } else { (c"small", SMALL) };
    let grid = [n.div_ceil(tile), m.div_ceil(tile), batches];
    if batch.lens.len() > MAX_AXES {
        return Err(too_many_axes(name));
    }
    if grid[1].max(grid[2]) > MAX_BLOCKS || m.max(n).max(k) > u32::MAX as usize / 2 {
        let message = format!("{batches} products of {m} x {k} x {n} are too many or too large");
        return Err(Error::unsupported(name, message));
    }

    let module = module(cuda, name, dtype)?;
    let mut product: Vec<u8> =
        [m, n, k, 0].iter().flat_map(|&x| (x as u32).to_le_bytes()).collect();
    for layout in [a, b, c] {
        let steps = &layout.strides()[axes - 2..];
        product.extend(steps.iter().flat_map(|&step| (step as i64).to_le_bytes()));
    }
    let args = Args::new()
        .bytes(&batch.encode(Width::Wide))
        .bytes(&product)
        .pointer(launch::source(&request.a, session))
        .pointer(launch::source(&request.b, session))
        .pointer(launch::target(&request.output, session));
    let blocks = grid.map(|blocks| blocks as u32);
    let function = cuda.function(name, &module, function)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, and all others are positions of checked layouts.
    unsafe { cuda.launch(name, function, Grid { blocks, threads: 256, shared: 0 }, args) }
}

/// The textbook's tiles: see [`MatmulKernel::Tiled`].
fn tiled(cuda: &Cuda, session: &Session<'_>, request: &Matmul<'_>, name: &str) -> Result<()> {
    let layouts = [request.a.layout(), request.b.layout(), request.output.layout()];
    let size = request.a.dtype().size();
    let shape = layouts[2].shape();
    let sizes = [shape[0], shape[1], layouts[0].shape()[1], shape[3]];
    let mut tiles: Vec<u8> = sizes.iter().flat_map(|&x| (x as u64).to_le_bytes()).collect();
    for layout in layouts {
        tiles.extend(layout.strides().iter().flat_map(|&step| (step as i64).to_le_bytes()));
    }
    let first = |address, layout: &Layout| address + (layout.offset() * size) as u64;
    let args = Args::new()
        .bytes(&tiles)
        .pointer(first(launch::source(&request.a, session), layouts[0]))
        .pointer(first(launch::source(&request.b, session), layouts[1]))
        .pointer(first(launch::target(&request.output, session), layouts[2]));
    let blocks = [layouts[2].len().div_ceil(256) as u32, 1, 1];
    let function = cuda.function(name, &*module(cuda, name, request.a.dtype())?, c"tiles")?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts.
    unsafe { cuda.launch(name, function, Grid { blocks, threads: 256, shared: 0 }, args) }
}

fn module(cuda: &Cuda, name: &str, dtype: DType) -> Result<std::sync::Arc<Module>> {
    cuda.module(name, &[b'X', dtype as u8], || Ok(text(dtype)))
}

/// Whether there is a kernel with large tiles: elements of up to 4 bytes, whose sums fit registers.
fn has_large(dtype: DType) -> bool {
    dtype.size() <= 4
}

fn text(dtype: DType) -> String {
    let storage = source::storage(dtype);
    let (sum, leave) = match (dtype.class(), dtype.size()) {
        (Class::Int, 8) => ("u64", format!("({storage})x")),
        (Class::Int, _) => ("u32", format!("({storage})x")),
        _ => (source::value(dtype), format!("narrow<{storage}>(x)")),
    };
    let large = if has_large(dtype) { "#define LARGE\n" } else { "" };
    [
        &source::begin("u64", [dtype]),
        &format!(
            "typedef {storage} S;\ntypedef {sum} A;\n{large}FN S leave(A x) {{ return {leave}; }}\n"
        ),
        include_str!("kernels/matmul.cu"),
        source::END,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_every_dtype_compile() {
        crate::check::compiles(DType::ALL.map(|dtype| (dtype.to_string(), text(dtype))).into());
    }
}
