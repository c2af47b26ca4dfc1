//! Running reductions, in one pass: a warp for each short row; tiles of longer ones tell each other what
//! they come to. Many tiles that lie side by side go round a ring on Hopper and later cards.
//!
//! Which tile has which elements, and how states are merged, depends on the sizes alone. Called by
//! `device.rs`.

use tilework_backend::{Scan, Session};
use tilework_error::Result;
use tilework_ops::{DType, FoldId};

use crate::compile::Room;
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{self, Args, Rows, Width};
use crate::reduce::{STATE, fold_text};
use crate::source;

/// Threads of a block, and how many times each has neighbours: as in `kernels/scan.cu`.
const THREADS: usize = 256;
const ROUNDS: usize = 8;
/// Tiles of a group, and groups of a field.
const GROUP: usize = 32;
/// As in `kernels/scan_ring.cu`: tiles of a block; and how many a multiprocessor should have in all.
const STAGES: usize = 6;
const MANY: usize = 24;

/// Which kernel: as in `kernels/scan.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tiles,
    Short,
    Ring,
}

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
    let (source, size) = (launch::source(&input, session), dtypes.0.size());
    let facts = cuda.facts()?;
    let rings = tiles > 1
        && facts.capability >= (9, 0)
        && (MANY * facts.multiprocessors as usize..=i32::MAX as usize).contains(&(rows * tiles))
        && each * size == 16
        && axis.steps[0] == 1
        && is_aligned(&axis, source, size);
    let kind = match (short, rings) {
        (true, _) => Kind::Short,
        (false, true) => Kind::Ring,
        (false, false) => Kind::Tiles,
    };
    let width = Width::of(count.max(rows), [launch::elements(&input), launch::elements(&output)])
        .for_axes(axis.nest.lens.len());
    let fold = request.fold;
    let details = [width as u8, kind as u8, fold as u8, dtypes.0 as u8, dtypes.1 as u8];
    let key = [&[Room::Scan as u8], &details[..]].concat();
    let module = cuda.module(name, &key, || Ok(text(fold, dtypes, kind, width)))?;

    let mut shape: Vec<u8> =
        [rows, count].iter().flat_map(|&number| width.bytes(number as u64)).collect();
    shape.extend((tiles as u32).to_le_bytes());
    shape.resize(shape.len().next_multiple_of(8), 0);
    shape.extend(axis.steps.iter().flat_map(|&step| (step as i64).to_le_bytes()));
    let args = Args::new()
        .bytes(&axis.nest.encode(width))
        .bytes(&shape)
        .pointer(source)
        .pointer(launch::target(&request.output, session));
    if kind == Kind::Short {
        let grid = launch::grid(name, [rows.div_ceil(THREADS / 32), 1], THREADS)?;
        let function = cuda.function(name, &module, c"short_rows")?;
        // SAFETY: the source declares these arguments, and the loops are those of checked layouts.
        return unsafe { cuda.launch(name, function, grid, args) };
    }
    // A state and a mark for each tile, group and field; and the next tile's number.
    let groups = tiles.div_ceil(GROUP);
    let slots = rows * (tiles + groups + groups.div_ceil(GROUP));
    let scratch = match tiles {
        1 => None,
        _ => Some(cuda.allocate_zeroed(slots * (STATE + 4) + 4)?),
    };
    let states = scratch.as_ref().map_or(0, |block| block.address);
    let marks = states + (slots * STATE) as Address;
    let args = args.bytes([states, marks].map(u64::to_le_bytes).as_flattened());
    let (function, grid, args) = match kind {
        Kind::Ring => {
            let blocks = facts.multiprocessors as usize;
            let shared = STAGES * THREADS * ROUNDS * 16;
            let grid = Grid::new(name, [blocks, 1, 1], 2 * THREADS + 64, shared)?;
            (c"ring", grid, args.pointer(marks + (slots * 4) as Address))
        }
        _ => (c"scan", launch::grid(name, [rows * tiles, 1], THREADS)?, args),
    };
    let function = cuda.function(name, &module, function)?;
    // SAFETY: as above, and the scratch has room for a state and a mark of each slot, and for a number.
    unsafe { cuda.launch(name, function, grid, args) }
}

/// Whether every row of the input begins at a multiple of 16 bytes, as the copy engine wants it.
fn is_aligned(rows: &Rows, block: Address, size: usize) -> bool {
    let apart = |step: isize| step.unsigned_abs() * size;
    (block as usize + rows.nest.offsets[0] * size).is_multiple_of(16)
        && rows.nest.strides.iter().all(|strides| apart(strides[0]).is_multiple_of(16))
}

/// Neighbours that a thread has: what 16 bytes hold of the larger type, but at most four.
fn each((input, output): (DType, DType)) -> usize {
    (16 / input.size().max(output.size())).clamp(1, 4)
}

fn text(fold: FoldId, dtypes: (DType, DType), kind: Kind, width: Width) -> String {
    let define = format!("#define EACH {}\n#define KIND {}\n", each(dtypes), kind as u8);
    let begin = fold_text(fold, dtypes.0, dtypes.1, width);
    let ring = [include_str!("kernels/hopper.cu"), include_str!("kernels/scan_ring.cu")];
    let [engine, ring] = if kind == Kind::Ring { ring } else { [""; 2] };
    [&begin, &define, include_str!("kernels/scan.cu"), engine, ring, source::END].concat()
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
        let texts = |kind| {
            sample.map(|(fold, from, to, width)| {
                (format!("{fold:?} of {from}: {kind:?}"), text(fold, (from, to), kind, width))
            })
        };
        let everywhere = [Kind::Tiles, Kind::Short].map(texts);
        crate::check::compiles(everywhere.into_iter().flatten().collect());
        crate::check::compiles_for(&["sm_90a", "sm_100"], texts(Kind::Ring).into());
    }
}
