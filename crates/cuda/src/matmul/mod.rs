//! Matrix products of any dtype, size and strides: what they share, and which kernel does which.
//!
//! A kernel is a room: `vector` where one operand is a vector, `split` for float32 and `half` for half
//! types on tensor cores, `fused` for float32 and float64 by asynchronous copies, `plain` for all
//! else. The choice depends on dtype, sizes, strides and the card alone, so that the same input gives
//! the same bits. Floats up to 32 bits are summed in float32; integers wrap. Called by `device.rs`.

mod fused;
mod half;
mod plain;
mod split;
mod thin;
mod vector;

use std::ffi::CStr;
use std::sync::Arc;

use tilework_backend::{Matmul, MatmulKernel, Session};
use tilework_error::{Error, Result};
use tilework_ops::{Class, DType};

use crate::compile::{Module, Room};
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{self, Args, Nest, Width};
use crate::source;

/// What a grid can have in its second and third direction.
const MAX_BLOCKS: usize = Grid::MOST[1];
/// Bytes that a product may take beside its result.
const SCRATCH: usize = 512 << 20;

/// Steps along rows and columns of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps {
    row: isize,
    column: isize,
}

/// Products of `m` x `k` by `k` x `n` matrices, with everything that a kernel needs.
struct Product<'a> {
    cuda: &'a Cuda,
    name: &'a str,
    dtype: DType,
    m: usize,
    n: usize,
    k: usize,
    a: Steps,
    b: Steps,
    c: Steps,
    /// Loops over the batches, with the first element of each operand.
    batch: Nest,
    /// The first of the batches, and how many there are: no more than a grid counts.
    first: usize,
    batches: usize,
    /// Where the blocks of `a`, `b` and the result begin.
    blocks: [Address; 3],
}

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Matmul<'_>,
    name: &str,
) -> Result<()> {
    let layouts = [request.a.layout(), request.b.layout(), request.output.layout()];
    let [a, _, c] = layouts;
    if c.is_empty() {
        return Ok(());
    }
    let blocks = [
        launch::source(&request.a, session),
        launch::source(&request.b, session),
        launch::target(&request.output, session),
    ];
    let dtype = request.a.dtype();
    if request.kernel == MatmulKernel::Tiled {
        return plain::textbook(cuda, name, dtype, layouts, blocks);
    }
    let axes = c.ndim();
    let (m, n, k) = (c.shape()[axes - 2], c.shape()[axes - 1], a.shape()[axes - 1]);
    let mut batch = Nest {
        lens: c.shape()[..axes - 2].iter().copied().collect(),
        strides: (0..axes - 2)
            .map(|axis| layouts.iter().map(|layout| layout.strides()[axis]).collect())
            .collect(),
        offsets: layouts.iter().map(|layout| layout.offset()).collect(),
    };
    batch.merge();
    if m.max(n).max(k) > i32::MAX as usize {
        let message = format!("a product of {m} x {k} x {n} is too large");
        return Err(Error::unsupported(name, message));
    }
    let [a, b, c] = layouts.map(|layout| {
        let steps = &layout.strides()[axes - 2..];
        Steps { row: steps[0], column: steps[1] }
    });
    for batch in batch.cut() {
        let all = batch.len();
        let mut product =
            Product { cuda, name, dtype, m, n, k, a, b, c, batch, first: 0, batches: 0, blocks };
        while product.first < all {
            product.batches = (all - product.first).min(MAX_BLOCKS);
            product.run()?;
            product.first += product.batches;
        }
    }
    Ok(())
}

impl Product<'_> {
    fn run(&self) -> Result<()> {
        if self.k > 0 && self.m.min(self.n) == 1 {
            return vector::run(self);
        }
        if split::suits(self)? {
            return split::run(self);
        }
        if half::suits(self)? {
            return half::run(self);
        }
        if fused::suits(self)? {
            return fused::run(self);
        }
        plain::run(self)
    }

    /// How many tiles of some rows and columns there are in a result.
    fn tiles(&self, rows: usize, columns: usize) -> usize {
        self.m.div_ceil(rows) * self.n.div_ceil(columns)
    }

    /// The sizes and steps as `Product` of the kernels, with k cut into pieces of `piece`.
    fn encode(&self, piece: usize) -> Vec<u8> {
        let pieces = self.k.div_ceil(piece.max(1)).max(1);
        let sizes = [self.m, self.n, self.k, piece, pieces, self.first];
        let steps = [self.a, self.b, self.c].into_iter().flat_map(|s| [s.row, s.column]);
        let sizes = sizes.into_iter().flat_map(|size| (size as u32).to_le_bytes());
        sizes.chain(steps.flat_map(|step| (step as i64).to_le_bytes())).collect()
    }

    /// What every kernel's arguments begin with: the loops over batches, and the sizes.
    fn args(&self, piece: usize) -> Args {
        Args::new().bytes(&self.batch.encode(Width::Wide)).bytes(&self.encode(piece))
    }

    fn key(&self, details: &[u8]) -> Vec<u8> {
        [&[Room::Product as u8, self.dtype as u8], details].concat()
    }

    /// The module of a room: its letter, details of the source, and what prints it.
    fn module(&self, details: &[u8], text: impl FnOnce() -> String) -> Result<Arc<Module>> {
        self.cuda.module(self.name, &self.key(details), || Ok(text()))
    }

    /// A grid of so many blocks; an error where the device cannot have them.
    fn grid(&self, blocks: [usize; 3], threads: usize, shared: usize) -> Result<Grid> {
        Grid::new(self.name, blocks, threads, shared)
    }

    /// # Safety
    /// As [`Cuda::launch`].
    unsafe fn launch(
        &self,
        module: &Module,
        function: &'static CStr,
        grid: Grid,
        args: Args,
    ) -> Result<()> {
        let function = self.cuda.function(self.name, module, function)?;
        // SAFETY: as the caller promises.
        unsafe { self.cuda.launch(self.name, function, grid, args) }
    }

    /// The part of the result from a row and a column on, of at most so many of them.
    fn part(&self, [row, column]: [usize; 2], [rows, columns]: [usize; 2]) -> Product<'_> {
        let moved = [
            self.a.row * row as isize,
            self.b.column * column as isize,
            self.c.row * row as isize + self.c.column * column as isize,
        ];
        let mut batch = self.batch.clone();
        for (offset, moved) in batch.offsets.iter_mut().zip(moved) {
            *offset = offset.wrapping_add_signed(moved);
        }
        Product { m: rows.min(self.m - row), n: columns.min(self.n - column), batch, ..*self }
    }
}

/// What every source of a product begins with: the element, the sum, and what is common.
fn begin(dtype: DType, defines: &[(&str, String)]) -> String {
    let storage = source::storage(dtype);
    let (sum, leave) = match (dtype.class(), dtype.size()) {
        (Class::Int, 8) => ("u64", format!("({storage})x")),
        (Class::Int, _) => ("u32", format!("({storage})x")),
        _ => (source::value(dtype), format!("narrow<{storage}>(x)")),
    };
    let defines: String =
        defines.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect();
    [
        source::begin(Width::Wide, [dtype]).as_str(),
        &format!("typedef {storage} S;\ntypedef {sum} A;\n{defines}"),
        &format!("FN S leave(A x) {{ return {leave}; }}\n"),
        include_str!("../kernels/matmul.cu"),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_every_kind_compile() {
        // One of each kind of sum; the others differ in the type's name alone.
        let dtypes = [DType::Bool, DType::Int8, DType::UInt64, DType::BFloat16, DType::Float32];
        let dtypes = dtypes.into_iter().chain([DType::Complex64, DType::Complex128]);
        let mut texts: Vec<(String, String)> = Vec::new();
        for dtype in dtypes {
            texts.push((format!("plain {dtype}"), plain::text(dtype)));
            texts.push((format!("vector {dtype}"), vector::text(dtype)));
        }
        for dtype in [DType::Float32, DType::Float64] {
            for large in [false, true] {
                let text = fused::text(dtype, large, [true, false]);
                texts.push((format!("fused {dtype}, large tiles: {large}"), text));
            }
        }
        for dtype in [DType::Float16, DType::BFloat16] {
            texts.push((format!("half {dtype}"), half::text(dtype)));
            texts.push((format!("copies of {dtype}"), half::copy_text(dtype)));
        }
        crate::check::compiles(texts);
    }

    #[test]
    fn products_of_hopper_compile() {
        let mut texts: Vec<_> = split::Part::ALL
            .iter()
            .map(|part| (format!("{part:?} of a split product"), part.text()))
            .collect();
        for together in [false, true] {
            texts.push((format!("thin, together: {together}"), thin::text(together)));
        }
        for across in [[false, false], [true, false], [false, true], [true, true]] {
            let text = half::hopper_text(DType::BFloat16, across);
            texts.push((format!("half of Hopper {across:?}"), text));
        }
        crate::check::compiles_for(&["sm_90a"], texts);
    }
}
