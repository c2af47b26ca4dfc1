//! Reductions over pairs: kernels printed for the formula at hand.
//!
//! The walk of a call: [`run`] cuts sums of many components into `slices`, and makes a `plan` (sections of the tape, rows and tiles, ranges of j),
//! and a second one where the formula has a `square` that may be expanded, on tensor cores where it
//! is `wide`. `launching` looks kernels up or has them printed (`print`) and compiled, measures the
//! data where there is a choice, and launches `reduce` over blocks of i and ranges of j, then `merge`
//! where a row has several ranges; `launching_wide` does the same part by part. Called by `device.rs`.

mod explain;
mod functions;
mod key;
mod launching;
mod launching_wide;
mod plan;
mod print;
mod sections;
mod slices;
mod square;
#[cfg(test)]
mod tests;
mod wide;

use smallvec::SmallVec;
use tilework_backend::{PairReduce, Session, Target, ViewRef};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_tape::Tape;

use crate::device::Cuda;
use crate::launch::{MAX_AXES, Nest, too_many_axes};
use plan::{Folding, Plan, Sizes};
use slices::{Slice, Slices};
use square::Square;

/// Pairs below which a choice of forms costs more than it saves.
const WORTH_MEASURING: f64 = 5e8;

/// Does what a `PairReduce` request asks.
pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &PairReduce<'_>,
    name: &str,
) -> Result<()> {
    let Some(slices) = Slices::new(request) else {
        return match Job::new(cuda, request, name, None)? {
            Some(job) => job.launch(cuda, session),
            None => Ok(()),
        };
    };
    slices.firsts().try_for_each(|first| {
        let slice = Slice { of: &slices, first };
        match Job::new(cuda, request, name, Some(slice))? {
            Some(job) => job.launch(cuda, session),
            None => Ok(()),
        }
    })
}

/// How a request would be done, for human eyes.
pub(crate) fn explain(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &PairReduce<'_>,
    name: &str,
) -> Result<String> {
    let slices = Slices::new(request);
    let slice = slices.as_ref().map(|of| Slice { of, first: 0 });
    match Job::new(cuda, request, name, slice)? {
        Some(job) => job.explain(cuda, session, slice),
        None => Ok(format!("{cuda}: no rows, nothing to do\n")),
    }
}

/// A request and its plans.
struct Job<'r> {
    request: &'r PairReduce<'r>,
    name: &'r str,
    /// The formula as it is written.
    direct: Plan<'r>,
    expanded: Option<Expanded<'r>>,
    sizes: Sizes,
    batches: Nest,
}

/// A plan with a square expanded, to be used if the data allow it.
struct Expanded<'r> {
    plan: Plan<'r>,
    square: Square,
    /// The largest norms of the data that do.
    limit: f64,
}

impl<'r> Job<'r> {
    /// None where there are no rows.
    fn new(
        cuda: &Cuda,
        request: &'r PairReduce<'r>,
        name: &'r str,
        slice: Option<Slice<'r>>,
    ) -> Result<Option<Job<'r>>> {
        let [batch @ .., m, _] = request.output_shape() else { return Ok(None) };
        let facts = cuda.facts()?;
        let sizes = Sizes {
            batches: batch.iter().product(),
            m: *m,
            n: request.n,
            multiprocessors: facts.multiprocessors as usize,
            scheme: request.scheme,
            capability: facts.capability,
        };
        if sizes.batches == 0 || sizes.m == 0 {
            return Ok(None);
        }
        let tape = slice.map_or(request.tape, |slice| &slice.of.tape);
        let folding = Folding::new(request, slice.map(|slice| slice.of.len));
        let direct = Plan::new(tape, folding, sizes, None);
        let expanded = expanded(tape, &folding, &sizes).map(|square| Expanded {
            plan: Plan::new(tape, folding, sizes, Some(square)),
            square,
            limit: square.limit(tape, &folding),
        });
        let mut batches = batch_loops(request, batch, slice);
        batches.merge();
        if batches.lens.len() > MAX_AXES {
            return Err(too_many_axes(name));
        }
        if sizes.batches.saturating_mul(direct.cut.blocks) >= 1 << 31 {
            let message =
                format!("{} batches of {m} rows are too many for one call", sizes.batches);
            return Err(Error::unsupported(name, message));
        }
        Ok(Some(Job { request, name, direct, expanded, sizes, batches }))
    }
}

/// The square that may be expanded, and how, where that may pay.
fn expanded(tape: &Tape, folding: &Folding, sizes: &Sizes) -> Option<Square> {
    let square = Square::find(tape, folding)?;
    let pairs = sizes.batches as f64 * sizes.m as f64 * sizes.n as f64;
    let fused = square.suits_threads(tape) && pairs >= WORTH_MEASURING;
    wide::by_tiles(square, tape, folding, sizes).or(fused.then_some(square))
}

/// The batch axes of inputs and outputs, in this order.
fn batch_loops(request: &PairReduce<'_>, batch: &[usize], slice: Option<Slice<'_>>) -> Nest {
    let layouts: SmallVec<[Option<&Layout>; 8]> = (request.inputs.iter())
        .map(|view: &ViewRef<'_>| Some(view.layout()))
        .chain([&request.values, &request.indices].map(|x| x.as_ref().map(Target::layout)))
        .collect();
    // A slice begins inside of its input's rows, and of the rows of values.
    let first = |operand: usize, layout: &Layout| {
        let cut = slice.filter(|slice| [slice.of.input, request.inputs.len()].contains(&operand));
        let component = layout.strides().last().copied().unwrap_or(0);
        let moved = cut.map_or(0, |slice| slice.first as isize * component);
        layout.offset().wrapping_add_signed(moved)
    };
    let stride = |layout: &Option<&Layout>, axis: usize| layout.map_or(0, |it| it.strides()[axis]);
    Nest {
        lens: batch.iter().copied().collect(),
        strides: (0..batch.len())
            .map(|axis| layouts.iter().map(|layout| stride(layout, axis)).collect())
            .collect(),
        offsets: (layouts.iter().enumerate())
            .map(|(operand, layout)| layout.map_or(0, |layout| first(operand, layout)))
            .collect(),
    }
}
