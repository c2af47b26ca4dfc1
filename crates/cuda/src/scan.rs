//! Running reductions, in one pass: a warp for each short row; tiles of longer ones tell each other what
//! they come to.
//!
//! Which tile has which elements, and how states are merged, depends on the sizes alone. Called by
//! `device.rs`.

use tilework_backend::{Scan, Session};
use tilework_error::Result;
use tilework_ops::{DType, FoldId};

use crate::compile::Room;
use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, Args, Rows, Width};
use crate::reduce::{STATE, fold_text};
use crate::source;

/// Threads of a block, and how many times each has neighbours: as in `kernels/scan.cu`.
const THREADS: usize = 256;
const ROUNDS: usize = 8;
/// Tiles of a group, and groups of a field.
const GROUP: usize = 32;

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Scan<'_>,
    name: &str,
) -> Result<()> {
    let (input, output) = (request.input, request.output.view());
    let (from, to) = (input.layout(), output.layout());
    if to.is_empty() {
        return Ok(());
    }
    let axis = Rows::new([from, to], request.axis)?;
    let (rows, count) = (axis.count, axis.len);
    let dtypes = (input.dtype(), output.dtype());
    let each = each(dtypes);
    // Rows that a warp can hold have one each.
    let short = count <= 32 * ROUNDS * each;
    let tiles = count.div_ceil(THREADS * ROUNDS * each);
    let width = Width::of(count.max(rows), [launch::elements(&input), launch::elements(&output)])
        .for_axes(axis.nest.lens.len());
    let fold = request.fold;
    let kind = [width as u8, short as u8, fold as u8, dtypes.0 as u8, dtypes.1 as u8];
    let key = [&[Room::Scan as u8], &kind[..]].concat();
    let module = cuda.module(name, &key, || Ok(text(fold, dtypes, short, width)))?;

    let mut shape: Vec<u8> =
        [rows, count].iter().flat_map(|&number| width.bytes(number as u64)).collect();
    shape.extend((tiles as u32).to_le_bytes());
    shape.resize(shape.len().next_multiple_of(8), 0);
    shape.extend(axis.steps.iter().flat_map(|&step| (step as i64).to_le_bytes()));
    let args = Args::new()
        .bytes(&axis.nest.encode(width))
        .bytes(&shape)
        .pointer(launch::source(&input, session))
        .pointer(launch::target(&request.output, session));
    if short {
        let grid = launch::grid(name, [rows.div_ceil(THREADS / 32), 1], THREADS)?;
        let function = cuda.function(name, &module, c"short_rows")?;
        // SAFETY: the source declares these arguments, and the loops are those of checked layouts.
        return unsafe { cuda.launch(name, function, grid, args) };
    }
    let grid = launch::grid(name, [rows * tiles, 1], THREADS)?;
    // A state and a mark for each tile, group and field.
    let groups = tiles.div_ceil(GROUP);
    let slots = rows * (tiles + groups + groups.div_ceil(GROUP));
    let scratch = match tiles {
        1 => None,
        _ => Some(cuda.allocate_zeroed(slots * (STATE + 4))?),
    };
    let states = scratch.as_ref().map_or(0, |block| block.address);
    let marks = states + (slots * STATE) as Address;
    let args = args.bytes([states, marks].map(u64::to_le_bytes).as_flattened());
    let function = cuda.function(name, &module, c"scan")?;
    // SAFETY: as above, and the scratch has room for a state and a mark of each slot.
    unsafe { cuda.launch(name, function, grid, args) }
}

/// Neighbours that a thread has: what 16 bytes hold of the larger type, but at most four.
fn each((input, output): (DType, DType)) -> usize {
    (16 / input.size().max(output.size())).clamp(1, 4)
}

fn text(fold: FoldId, dtypes: (DType, DType), short: bool, width: Width) -> String {
    let define = format!("#define EACH {}\n#define SHORT {}\n", each(dtypes), short as u8);
    let begin = fold_text(fold, dtypes.0, dtypes.1, width);
    [&begin, &define, include_str!("kernels/scan.cu"), source::END].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_scans_compiles() {
        let sample = [
            (FoldId::Sum, DType::Float32, DType::Float32, Width::Narrow),
            (FoldId::Prod, DType::Int16, DType::Int64, Width::Wide),
            (FoldId::Sum, DType::Float64, DType::Float64, Width::Deep),
            (FoldId::Max, DType::BFloat16, DType::BFloat16, Width::Narrow),
            (FoldId::Min, DType::Complex64, DType::Complex64, Width::Narrow),
        ];
        let both = [false, true].map(|short| {
            sample.map(|(fold, from, to, width)| {
                let name = format!("{fold:?} of {from}, short rows: {short}");
                (name, text(fold, (from, to), short, width))
            })
        });
        crate::check::compiles(both.into_iter().flatten().collect());
    }
}
