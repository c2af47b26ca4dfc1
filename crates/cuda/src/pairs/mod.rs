//! Reductions over pairs: kernels printed for the formula at hand.
//!
//! The walk of a call: [`run`] makes a `plan` (sections of the tape, rows and tiles, ranges of j),
//! looks its kernels up or has them printed (`print`) and compiled, and launches `reduce` over
//! blocks of i and ranges of j, then `merge` where a row has several ranges. Called by `device.rs`.

mod plan;
mod print;
mod sections;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use smallvec::SmallVec;
use tilework_backend::{PairReduce, Session, Target, ViewRef, interrupt};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_tape::{Action, Per, Tape};

use crate::device::Cuda;
use crate::driver::Grid;
use crate::launch::{self, Args, MAX_AXES, Nest, Width};
use crate::reduce::too_many_axes;
use plan::{Folding, Plan, Sizes};

/// Threads of a block of `merge`.
const MERGE_THREADS: usize = 128;

/// Pairs of a launch, where somebody may want to stop the work or to know how far it is: a tenth of
/// a second or less. Calls of fewer pairs are not waited for.
const PAIRS: f64 = 5e10;

/// Does what a `PairReduce` request asks.
pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &PairReduce<'_>,
    name: &str,
) -> Result<()> {
    let Some(job) = Job::new(cuda, request, name)? else { return Ok(()) };
    job.launch(cuda, session)
}

/// How a request would be done, for human eyes.
pub(crate) fn explain(cuda: &Cuda, request: &PairReduce<'_>, name: &str) -> Result<String> {
    match Job::new(cuda, request, name)? {
        Some(job) => job.explain(cuda),
        None => Ok(format!("{cuda}: no rows, nothing to do\n")),
    }
}

/// A request and its plan.
struct Job<'r> {
    request: &'r PairReduce<'r>,
    name: &'r str,
    plan: Plan<'r>,
    sizes: Sizes,
    batches: Nest,
}

impl<'r> Job<'r> {
    /// None where there are no rows.
    fn new(cuda: &Cuda, request: &'r PairReduce<'r>, name: &'r str) -> Result<Option<Job<'r>>> {
        let [batch @ .., m, _] = request.output_shape() else { return Ok(None) };
        let sizes = Sizes {
            batches: batch.iter().product(),
            m: *m,
            n: request.n,
            multiprocessors: cuda.facts()?.multiprocessors as usize,
            scheme: request.scheme,
        };
        if sizes.batches == 0 || sizes.m == 0 {
            return Ok(None);
        }
        let plan = Plan::new(request.tape, Folding::new(request), sizes);
        let mut batches = batch_loops(request, batch);
        batches.merge();
        if batches.lens.len() > MAX_AXES {
            return Err(too_many_axes(name));
        }
        if sizes.batches.saturating_mul(plan.cut.blocks) >= 1 << 31 {
            let message =
                format!("{} batches of {m} rows are too many for one call", sizes.batches);
            return Err(Error::unsupported(name, message));
        }
        Ok(Some(Job { request, name, plan, sizes, batches }))
    }

    fn launch(&self, cuda: &Cuda, session: &Session<'_>) -> Result<()> {
        let (plan, cut, tiling) = (&self.plan, self.plan.cut, self.plan.tiling);
        let module = cuda.module(self.name, &self.key(), || print::source(plan))?;
        let rows = self.sizes.batches * self.sizes.m;
        let values = plan.folding.monoid().values(plan.folding.shape);
        let value_bytes =
            (cut.ranges * rows * values * plan.folding.accumulates.size()).next_multiple_of(8);
        let partial = match cut.ranges {
            1 => None,
            ranges => {
                let indices = plan.folding.monoid().indices(plan.folding.shape);
                Some(cuda.allocate_block(value_bytes + ranges * rows * indices * 8)?)
            }
        };
        let partial = partial.as_ref().map_or(0, |block| block.address);
        let batches = self.batches.encode(Width::Wide);
        let ends = |args: Args| {
            args.bytes(&self.output(self.request.values.as_ref(), session))
                .bytes(&self.output(self.request.indices.as_ref(), session))
                .bytes(&words(&[partial, partial + value_bytes as u64]))
        };
        let inputs: Vec<u8> = self.request.inputs.iter().zip(self.request.tape.inputs()).fold(
            Vec::new(),
            |mut bytes, (view, input)| {
                let (row, component) = steps(view.layout(), input.per != Per::Once);
                let base = launch::source(view, session);
                bytes.extend(words(&[base, row as u64, component as u64]));
                bytes
            },
        );
        // A formula of no variable still has the argument.
        let inputs = if inputs.is_empty() { words(&[0, 0, 0]) } else { inputs };
        let function = cuda.function(self.name, &module, c"reduce")?;
        let blocks = self.sizes.batches * cut.blocks;
        let piece = self.piece(blocks);
        for first in (0..blocks).step_by(piece) {
            let shape = self.shape(first);
            let args = ends(Args::new().bytes(&batches).bytes(&inputs).bytes(&shape));
            let here = [piece.min(blocks - first) as u32, cut.ranges as u32, 1];
            let grid = Grid { blocks: here, threads: tiling.threads as u32, shared: 0 };
            // SAFETY: the source declares these arguments; rows are those of checked layouts, and
            // the buffer has room for a state of every row and range.
            unsafe { cuda.launch(self.name, function, grid, args)? };
            if piece < blocks || self.request.progress.is_some() {
                self.go_on(cuda, (first + piece).min(blocks) as f64 / blocks as f64)?;
            }
        }
        if cut.ranges > 1 {
            let args = ends(Args::new().bytes(&batches).bytes(&self.shape(0)));
            let blocks = [(rows * cut.lanes).div_ceil(MERGE_THREADS) as u32, 1, 1];
            let grid = Grid { blocks, threads: MERGE_THREADS as u32, shared: 0 };
            let function = cuda.function(self.name, &module, c"merge")?;
            // SAFETY: as above; the stream keeps the order of the two.
            unsafe { cuda.launch(self.name, function, grid, args)? };
        }
        Ok(())
    }

    /// How many blocks a launch has: all of them unless the work is long. Cutting over i changes no
    /// bit of a result.
    fn piece(&self, blocks: usize) -> usize {
        let each = self.sizes.m as f64 * self.sizes.n as f64 / self.plan.cut.blocks as f64;
        ((PAIRS / each.max(1.0)) as usize).clamp(1, blocks.max(1))
    }

    /// Waits for what was launched, and tells how far the work is; an error if it is to be stopped.
    fn go_on(&self, cuda: &Cuda, fraction: f64) -> Result<()> {
        cuda.wait(self.name)?;
        interrupt::check();
        match self.request.progress {
            Some(progress) if !progress.goes_on(fraction) => {
                Err(Error::interrupted(self.request.fold.row().name, "stopped on request"))
            }
            _ => Ok(()),
        }
    }

    /// `Shape` of the kernels, for a launch that begins with this block.
    fn shape(&self, first: usize) -> Vec<u8> {
        let cut = self.plan.cut;
        let long = [self.sizes.m, self.sizes.n, cut.range].map(|number| number as u64);
        let short = [cut.blocks, cut.ranges, cut.lanes, self.sizes.batches, first, 0];
        let mut bytes = words(&long);
        bytes.extend(self.request.start.to_le_bytes());
        bytes.extend(short.iter().flat_map(|&number| (number as u32).to_le_bytes()));
        bytes
    }

    /// `Output` of the kernels.
    fn output(&self, target: Option<&Target<'_>>, session: &Session<'_>) -> Vec<u8> {
        let Some(target) = target else { return words(&[0, 0, 0]) };
        let (row, component) = steps(target.layout(), true);
        words(&[launch::target(target, session), row as u64, component as u64])
    }

    /// What the kernels are known by: everything that their text depends on.
    fn key(&self) -> Vec<u8> {
        let (tape, tiling) = (self.request.tape, self.plan.tiling);
        let folding = &self.plan.folding;
        let mut key = vec![
            b'P',
            folding.fold as u8,
            folding.accumulates as u8,
            folding.compensated as u8,
            folding.strict as u8,
            folding.finish as u8,
            folding.output as u8,
        ];
        let numbers =
            [folding.shape.k, tiling.threads, tiling.rows, tiling.tile, tiling.group, tiling.ahead];
        key.extend(numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()));
        encode(tape, &mut key);
        key
    }

    fn explain(&self, cuda: &Cuda) -> Result<String> {
        let (tiling, cut, sections) = (self.plan.tiling, self.plan.cut, &self.plan.sections);
        let Sizes { batches, m, n, multiprocessors, .. } = self.sizes;
        let mut text = String::new();
        let mut line = |name: &str, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<9} {rest}");
        };
        let pairs = format!("{m} x {n} pairs in {batches} batches");
        line("device", format!("{cuda}, {multiprocessors} multiprocessors, {pairs}"));
        let steps =
            [(Per::Once, "once"), (Per::I, "per i"), (Per::J, "per j"), (Per::Pair, "per pair")]
                .map(|(per, name)| format!("{} {name}", sections.steps(per).count()));
        line("steps", steps.join(", "));
        let products = sections.terms.iter().filter(|term| term.factor.is_some()).count();
        let passing = sections.passing.iter().filter(|passing| **passing).count();
        line("fused", format!("{passing} vectors into loops, {products} products into sums"));
        line(
            "tiles",
            format!(
                "{} threads of {} i, {} j in shared memory, {} j at once",
                tiling.threads, tiling.rows, tiling.tile, tiling.group
            ),
        );
        let scheme = match cut.ranges {
            1 => format!("1D: {} blocks, every i sees all j in one go", cut.blocks * batches),
            ranges => format!(
                "2D: {} blocks by {ranges} ranges of {} j, merged in order",
                cut.blocks * batches,
                cut.range
            ),
        };
        line("scheme", scheme);
        let sums = match (self.plan.folding.compensated, self.request.sums) {
            (true, _) => "compensated",
            (_, tilework_backend::SumScheme::Double) => "in float64, in runs of runs of 64",
            _ => "in runs of runs of 64",
        };
        line("sums", sums.to_owned());
        line("form", "direct".to_owned());
        Ok(text + &print::source(&self.plan)?)
    }
}

/// The batch axes of inputs and outputs, in this order.
fn batch_loops(request: &PairReduce<'_>, batch: &[usize]) -> Nest {
    let layouts: SmallVec<[Option<&Layout>; 8]> = (request.inputs.iter())
        .map(|view: &ViewRef<'_>| Some(view.layout()))
        .chain([&request.values, &request.indices].map(|x| x.as_ref().map(Target::layout)))
        .collect();
    let stride = |layout: &Option<&Layout>, axis: usize| layout.map_or(0, |it| it.strides()[axis]);
    Nest {
        lens: batch.iter().copied().collect(),
        strides: (0..batch.len())
            .map(|axis| layouts.iter().map(|layout| stride(layout, axis)).collect())
            .collect(),
        offsets: layouts.iter().map(|layout| layout.map_or(0, Layout::offset)).collect(),
    }
}

/// From one row to the next, and from one component to the next, in elements.
fn steps(layout: &Layout, has_rows: bool) -> (isize, isize) {
    match (layout.strides(), has_rows) {
        ([.., row, component], true) => (*row, *component),
        ([.., component], _) => (0, *component),
        _ => (0, 0),
    }
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A tape as bytes that differ where tapes do.
fn encode(tape: &Tape, key: &mut Vec<u8>) {
    let word = |key: &mut Vec<u8>, number: u32| key.extend(number.to_le_bytes());
    word(key, tape.inputs().len() as u32);
    for input in tape.inputs() {
        key.extend([input.slot.dtype as u8, input.per as u8]);
        word(key, input.slot.len);
    }
    for step in tape.steps() {
        match &step.action {
            Action::Apply(id) => key.extend([0, *id as u8]),
            Action::Cast => key.push(1),
            Action::Select => key.push(2),
            Action::Constant(value) => {
                key.push(3);
                key.extend(value.bytes());
            }
            Action::Extract(start) => {
                key.push(4);
                word(key, *start);
            }
            Action::Concat => key.push(5),
            Action::Place(start) => {
                key.push(6);
                word(key, *start);
            }
            Action::Fold(fold) => key.extend([7, *fold as u8]),
            Action::Dot => key.push(8),
            Action::Contract(contraction) => {
                key.push(9);
                for shape in [&contraction.left, &contraction.right] {
                    word(key, shape.len() as u32);
                    shape.iter().for_each(|&size| word(key, size));
                }
                word(key, contraction.over.len() as u32);
                contraction.over.iter().for_each(|&(left, right)| key.extend([left, right]));
            }
        }
        key.push(step.slot.dtype as u8);
        word(key, step.slot.len);
        word(key, step.operands.len() as u32);
        key.extend(step.operands.iter().flat_map(|operand| operand.to_le_bytes()));
    }
    key.extend(tape.outputs().iter().flat_map(|output| output.to_le_bytes()));
}
