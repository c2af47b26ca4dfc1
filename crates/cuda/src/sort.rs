//! Order: sorting by merging runs, and searching in what is sorted.
//!
//! Elements are compared as the definition does, so that every dtype goes the same way and equal
//! elements keep their order; long rows of real numbers are sorted by `radix.rs`. Called by
//! `device.rs`.

use tilework_backend::{Search, Session, Sort};
use tilework_error::{Error, Result};
use tilework_layout::LoopNest;
use tilework_ops::DType;

use crate::compile::{Module, Room};
use crate::device::Cuda;
use crate::driver::Grid;
use crate::launch::{self, Args, Nest, Rows, Width};
use crate::radix;
use crate::source;

/// Threads of a block, and elements that it sorts: as in `kernels/sort.cu`.
const THREADS: usize = 256;
const TILE: usize = 1024;
/// Tiles of the longest row: the second direction of a grid.
const MAX_TILES: usize = Grid::MOST[1];

fn grid(name: &str, blocks: [usize; 2]) -> Result<Grid> {
    launch::grid(name, blocks, THREADS)
}

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Sort<'_>,
    name: &str,
) -> Result<()> {
    let (input, output) = (request.input, request.output.view());
    let (from, to) = (input.layout(), output.layout());
    if to.is_empty() {
        return Ok(());
    }
    let axis = Rows::new([from, to], request.axis)?;
    if radix::suits(input.dtype(), axis.len) {
        return radix::run(cuda, session, request, &axis, name);
    }
    let (rows, len) = (axis.count, axis.len);
    if len > MAX_TILES * TILE {
        let most = radix::longest(input.dtype()).unwrap_or(MAX_TILES * TILE);
        let message = format!("rows of {len} elements are longer than {most}");
        return Err(Error::unsupported(name, message));
    }
    let dtype = input.dtype();
    let width = Width::of(rows, [launch::elements(&input), launch::elements(&output)])
        .for_axes(axis.nest.lens.len());
    let module = module(cuda, name, dtype, width)?;
    let function = |function| cuda.function(name, &module, function);
    let nest = axis.nest.encode(width);
    let (n, down) = (rows * len, request.descending as u64);
    let values = [cuda.allocate_block(n * dtype.size())?, cuda.allocate_block(n * dtype.size())?];
    let indices = [cuda.allocate_block(n * 4)?, cuda.allocate_block(n * 4)?];
    let mut side = 0;

    let args = Args::new()
        .bytes(&nest)
        .number(len as u64)
        .number(axis.steps[0] as u64)
        .number(down)
        .pointer(launch::source(&input, session))
        .pointer(values[0].address)
        .pointer(indices[0].address);
    // SAFETY: the source declares these arguments; the loops are those of checked layouts, and
    // there is room for all rows in the scratch.
    unsafe {
        cuda.launch(name, function(c"tiles")?, grid(name, [rows, len.div_ceil(TILE)])?, args)?
    };
    let mut run = TILE;
    while run < len {
        let args = Args::new()
            .number(n as u64)
            .number(len as u64)
            .number(run as u64)
            .number(down)
            .pointer(values[side].address)
            .pointer(indices[side].address)
            .pointer(values[1 - side].address)
            .pointer(indices[1 - side].address);
        // SAFETY: as above.
        unsafe {
            cuda.launch(name, function(c"merge")?, grid(name, [n.div_ceil(THREADS), 1])?, args)?
        };
        side = 1 - side;
        run *= 2;
    }
    let args = Args::new()
        .bytes(&nest)
        .number(n as u64)
        .number(len as u64)
        .number(axis.steps[1] as u64)
        .number(request.indices as u64)
        .pointer(values[side].address)
        .pointer(indices[side].address)
        .pointer(launch::target(&request.output, session));
    // SAFETY: as above; the output holds elements or, if indices are wanted, int64.
    unsafe { cuda.launch(name, function(c"put")?, grid(name, [n.div_ceil(THREADS), 1])?, args) }
}

pub(crate) fn search(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Search<'_>,
    name: &str,
) -> Result<()> {
    let (sorted, values, output) = (request.sorted, request.values, request.output.view());
    if output.layout().is_empty() {
        return Ok(());
    }
    let nest = LoopNest::new(&[values.layout(), output.layout()]);
    let (n, len) = (nest.len(), sorted.layout().len());
    if len > u32::MAX as usize / 2 {
        let message = format!("a sorted array of {len} elements is too long");
        return Err(Error::unsupported(name, message));
    }
    let size = values.dtype().size();
    let width =
        Width::of(n, [launch::elements(&values), launch::elements(&output)]).for_axes(nest.axes());
    let module = module(cuda, name, values.dtype(), width)?;
    let args = Args::new()
        .bytes(&Nest::new(&nest).encode(width))
        .number(n as u64)
        .pointer(launch::source(&sorted, session) + (sorted.layout().offset() * size) as u64)
        .number(sorted.layout().strides()[0] as u64)
        .number(len as u64)
        .number(request.right as u64)
        .pointer(launch::source(&values, session))
        .pointer(launch::target(&request.output, session));
    let function = cuda.function(name, &module, c"search")?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts.
    unsafe { cuda.launch(name, function, grid(name, [n.div_ceil(THREADS), 1])?, args) }
}

fn module(cuda: &Cuda, name: &str, dtype: DType, width: Width) -> Result<std::sync::Arc<Module>> {
    cuda.module(name, &[Room::Sort as u8, width as u8, dtype as u8], || Ok(text(dtype, width)))
}

fn text(dtype: DType, width: Width) -> String {
    [
        &source::begin(width, [dtype]),
        &format!("typedef {} S;\n", source::storage(dtype)),
        include_str!("kernels/sort.cu"),
        source::END,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_orders_compiles() {
        let dtypes = [DType::Bool, DType::Float16, DType::Int64, DType::Complex128];
        crate::check::compiles(
            dtypes.map(|dtype| (dtype.to_string(), text(dtype, Width::Narrow))).into(),
        );
    }
}
