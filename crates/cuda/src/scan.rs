//! Running reductions: rows in pieces, reduced first and then scanned.
//!
//! Pieces depend on the sizes alone. Called by `device.rs`.

use tilework_backend::{Scan, Session};
use tilework_error::Result;
use tilework_ops::{DType, FoldId};

use crate::device::Cuda;
use crate::launch::{self, Args, Rows, Width};
use crate::reduce::{STATE, fold_text};
use crate::source;

/// Threads of a block, and elements of a tile: as in `kernels/scan.cu`.
const THREADS: usize = 256;
const TILE: usize = 2048;
/// Pieces that rows are cut into where there are too few of them to keep the card busy.
const PIECES: usize = 4096;

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
    let axis = Rows::new(name, [from, to], request.axis)?;
    let (rows, count) = (axis.count, axis.len);
    // One row alone is cut so that many blocks share it; many rows are work enough as they are.
    let few = rows < 4 * cuda.facts()?.multiprocessors as usize;
    let wanted = if few { PIECES.div_ceil(rows) } else { 1 };
    let piece = count.div_ceil(wanted).next_multiple_of(TILE);
    let pieces = count.div_ceil(piece);
    let width = Width::of(count.max(rows), [launch::elements(&input), launch::elements(&output)]);
    let key = [b'C', width as u8, request.fold as u8, input.dtype() as u8, output.dtype() as u8];
    let module =
        cuda.module(name, &key, || Ok(text(request.fold, input.dtype(), output.dtype(), width)))?;

    let mut shape: Vec<u8> =
        [rows, count, piece].iter().flat_map(|&number| width.bytes(number as u64)).collect();
    shape.extend((pieces as u32).to_le_bytes());
    shape.resize(shape.len().next_multiple_of(8), 0);
    shape.extend(axis.steps.iter().flat_map(|&step| (step as i64).to_le_bytes()));
    let nest = axis.nest.encode(width);
    let (input, output) =
        (launch::source(&input, session), launch::target(&request.output, session));
    let grid = |pieces: usize| launch::grid(name, [rows, pieces], THREADS);
    let partial = match pieces {
        1 => None,
        _ => Some(cuda.allocate_block(rows * pieces * STATE)?),
    };
    let scratch = partial.as_ref().map_or(0, |block| block.address);
    if partial.is_some() {
        let args = Args::new().bytes(&nest).bytes(&shape).pointer(input).pointer(scratch);
        let function = cuda.function(name, &module, c"totals")?;
        // SAFETY: the source declares these arguments; the loops are those of checked layouts, and
        // the scratch has room for a state of each piece.
        unsafe { cuda.launch(name, function, grid(pieces)?, args)? };
        let args = Args::new().bytes(&shape).pointer(scratch);
        let function = cuda.function(name, &module, c"carries")?;
        // SAFETY: as above.
        unsafe { cuda.launch(name, function, grid(1)?, args)? };
    }
    let args =
        Args::new().bytes(&nest).bytes(&shape).pointer(input).pointer(output).pointer(scratch);
    let function = cuda.function(name, &module, c"scan")?;
    // SAFETY: as above.
    unsafe { cuda.launch(name, function, grid(pieces)?, args) }
}

fn text(fold: FoldId, input: DType, output: DType, width: Width) -> String {
    [&fold_text(fold, input, output, width), include_str!("kernels/scan.cu"), source::END].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_scans_compiles() {
        let sample = [
            (FoldId::Sum, DType::Float32, DType::Float32, Width::Narrow),
            (FoldId::Prod, DType::Int16, DType::Int64, Width::Wide),
            (FoldId::Max, DType::BFloat16, DType::BFloat16, Width::Narrow),
            (FoldId::Min, DType::Complex64, DType::Complex64, Width::Narrow),
        ];
        let texts = sample.map(|(fold, from, to, width)| {
            (format!("{fold:?} of {from}"), text(fold, from, to, width))
        });
        crate::check::compiles(texts.into());
    }
}
