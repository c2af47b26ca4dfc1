//! From plans to launches: arguments, the buffer of states, the choice between forms, pieces.
//!
//! Where there is a choice, `measure` looks at the data, and both forms are launched: the kernels
//! look themselves which of them is to work, so that nothing waits. Long work is launched in pieces
//! that are waited for, so that it can be stopped; then the choice is made here. Called by `pairs`.

use tilework_backend::{Session, Target, interrupt};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_tape::Per;

use super::plan::Plan;
use super::{Job, key, print};
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{self, Args, Width};
use crate::memory::Block;

/// Threads of a block of `merge`, and of `measure`.
const MERGE_THREADS: usize = 128;
const MEASURE_THREADS: usize = 256;

/// Pairs of a launch, where somebody may want to stop the work or to know how far it is: a tenth of
/// a second of a cheap formula. Fewer would leave multiprocessors idle at the end of every launch.
/// Calls of fewer pairs are not waited for.
const PAIRS: f64 = 4e11;

/// Whom kernels ask whether to work.
#[derive(Clone, Copy)]
struct Choice {
    /// Where the largest norms are; none where there is no choice.
    measured: Address,
    limit: f64,
}

const NO_CHOICE: Choice = Choice { measured: 0, limit: 0.0 };

impl Job<'_> {
    pub(super) fn launch(&self, cuda: &Cuda, session: &Session<'_>) -> Result<()> {
        let Some((expanded, limit)) = &self.expanded else {
            return self.launch_plan(cuda, session, &self.direct, NO_CHOICE);
        };
        let measured = self.measure(cuda, session, expanded)?;
        if self.is_long() {
            let small = largest(cuda, self.name, &measured)?.iter().all(|norm| norm <= limit);
            let plan = if small { expanded } else { &self.direct };
            return self.launch_plan(cuda, session, plan, NO_CHOICE);
        }
        let choice = Choice { measured: measured.address, limit: *limit };
        self.launch_plan(cuda, session, expanded, choice)?;
        self.launch_plan(cuda, session, &self.direct, choice)
    }

    /// The largest norms of the data, if there is a choice that depends on them.
    pub(super) fn norms(&self, cuda: &Cuda, session: &Session<'_>) -> Result<Option<[f64; 2]>> {
        let Some((expanded, _)) = &self.expanded else { return Ok(None) };
        largest(cuda, self.name, &self.measure(cuda, session, expanded)?).map(Some)
    }

    /// Has the largest norms measured.
    fn measure(&self, cuda: &Cuda, session: &Session<'_>, plan: &Plan<'_>) -> Result<Block> {
        let module = cuda.module(self.name, &key::of(plan), || print::source(plan))?;
        let measured = cuda.allocate_zeroed(2 * size_of::<f64>())?;
        let args = Args::new()
            .bytes(&self.batches.encode(Width::Wide))
            .bytes(&self.inputs(session))
            .bytes(&self.shape(plan, 0))
            .pointer(measured.address);
        let rows = self.sizes.batches * (self.sizes.m + self.sizes.n);
        let blocks = rows.div_ceil(4 * MEASURE_THREADS).min(8 * self.sizes.multiprocessors);
        let grid =
            Grid { blocks: [blocks as u32, 1, 1], threads: MEASURE_THREADS as u32, shared: 0 };
        let function = cuda.function(self.name, &module, c"measure")?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // block has room for two numbers.
        unsafe { cuda.launch(self.name, function, grid, args)? };
        Ok(measured)
    }

    fn launch_plan(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plan: &Plan<'_>,
        choice: Choice,
    ) -> Result<()> {
        let cut = plan.cut;
        let module = cuda.module(self.name, &key::of(plan), || print::source(plan))?;
        let rows = self.sizes.batches * self.sizes.m;
        let values = plan.folding.monoid().values(plan.folding.shape);
        let value_bytes =
            (cut.ranges * rows * values * plan.folding.accumulates.size()).next_multiple_of(8);
        let states = match cut.ranges {
            1 => None,
            ranges => {
                let indices = plan.folding.monoid().indices(plan.folding.shape);
                Some(cuda.allocate_block(value_bytes + ranges * rows * indices * 8)?)
            }
        };
        let partial = states.as_ref().map_or(0, |block| block.address);
        let batches = self.batches.encode(Width::Wide);
        let ends = |args: Args| {
            args.bytes(&output(self.request.values.as_ref(), session))
                .bytes(&output(self.request.indices.as_ref(), session))
                .bytes(&words(&[partial, partial + value_bytes as u64]))
                .bytes(&words(&[choice.measured, choice.limit.to_bits()]))
        };
        let inputs = self.inputs(session);
        let function = cuda.function(self.name, &module, c"reduce")?;
        let blocks = self.sizes.batches * cut.blocks;
        let piece = self.piece(cut.blocks, blocks);
        for first in (0..blocks).step_by(piece) {
            let shape = self.shape(plan, first);
            let args = ends(Args::new().bytes(&batches).bytes(&inputs).bytes(&shape));
            let here = [piece.min(blocks - first) as u32, cut.ranges as u32, 1];
            let grid = Grid { blocks: here, threads: plan.tiling.threads as u32, shared: 0 };
            // SAFETY: the source declares these arguments; rows are those of checked layouts, and
            // the buffer has room for a state of every row and range.
            unsafe { cuda.launch(self.name, function, grid, args)? };
            if self.is_long() {
                self.go_on(cuda, (first + piece).min(blocks) as f64 / blocks as f64)?;
            }
        }
        if cut.ranges > 1 {
            let args = ends(Args::new().bytes(&batches).bytes(&self.shape(plan, 0)));
            let blocks = [(rows * cut.lanes).div_ceil(MERGE_THREADS) as u32, 1, 1];
            let grid = Grid { blocks, threads: MERGE_THREADS as u32, shared: 0 };
            let function = cuda.function(self.name, &module, c"merge")?;
            // SAFETY: as above; the stream keeps the order of the two.
            unsafe { cuda.launch(self.name, function, grid, args)? };
        }
        Ok(())
    }

    /// Whether the work is waited for, piece by piece.
    fn is_long(&self) -> bool {
        let pairs = self.sizes.m as f64 * self.sizes.n as f64 * self.sizes.batches as f64;
        pairs > PAIRS || self.request.progress.is_some()
    }

    /// How many blocks a launch has: all of them unless the work is long. Cutting over i changes no
    /// bit of a result.
    fn piece(&self, of_batch: usize, blocks: usize) -> usize {
        let each = self.sizes.m as f64 * self.sizes.n as f64 / of_batch as f64;
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

    /// `Inputs` of the kernels.
    fn inputs(&self, session: &Session<'_>) -> Vec<u8> {
        let inputs = self.request.inputs.iter().zip(self.request.tape.inputs());
        let bytes: Vec<u8> = inputs
            .flat_map(|(view, input)| {
                let (row, component) = steps(view.layout(), input.per != Per::Once);
                words(&[launch::source(view, session), row as u64, component as u64])
            })
            .collect();
        // A formula of no variable still has the argument.
        if bytes.is_empty() { words(&[0, 0, 0]) } else { bytes }
    }

    /// `Shape` of the kernels, for a launch that begins with this block.
    fn shape(&self, plan: &Plan<'_>, first: usize) -> Vec<u8> {
        let cut = plan.cut;
        let long = [self.sizes.m, self.sizes.n, cut.range].map(|number| number as u64);
        let short = [cut.blocks, cut.ranges, cut.lanes, self.sizes.batches, first, 0];
        let mut bytes = words(&long);
        bytes.extend(self.request.start.to_le_bytes());
        bytes.extend(short.iter().flat_map(|&number| (number as u32).to_le_bytes()));
        bytes
    }
}

/// The numbers that `measure` wrote, when it is done.
fn largest(cuda: &Cuda, name: &str, measured: &Block) -> Result<[f64; 2]> {
    let mut bytes = [0; 16];
    cuda.copy_out(name, measured.address, &mut bytes)?;
    let (x, y) = bytes.split_at(8);
    Ok([x, y].map(|part| part.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))))
        .map(|bits: [u64; 2]| bits.map(f64::from_bits))
}

/// `Output` of the kernels.
fn output(target: Option<&Target<'_>>, session: &Session<'_>) -> Vec<u8> {
    let Some(target) = target else { return words(&[0, 0, 0]) };
    let (row, component) = steps(target.layout(), true);
    words(&[launch::target(target, session), row as u64, component as u64])
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
