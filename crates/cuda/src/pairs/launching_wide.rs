//! Launches of plans whose inner products are products of tiles: a piece of rows and a panel of j at a time, of as many
//! batches as there is room for, within a scratch that does not grow with the call.
//!
//! A part of a call is the same kernels with other offsets: its first row and its first j are added to where
//! operands begin. States of a piece go on from panel to panel and are merged after the last. Called by `launching`.

use std::ops::Range;
use std::sync::Arc;

use tilework_backend::{Session, Target};
use tilework_error::Result;
use tilework_tape::Per;

use super::choice::Choice;
use super::course::Course;
use super::cut::{Cut, MERGE_THREADS, lanes};
use super::panels::Parts;
use super::plan::{Plan, Sizes};
use super::print::Unit;
use super::slices::Of;
use super::wide::{RIGHT_BYTES, SIDE};
use super::words::{WideWords, shape, steps};
use super::{Expanded, Job};
use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{Args, Nest, Width};
use crate::memory::Block;

/// Threads of a block of the kernels that prepare: `centre`, `measure_wide` and `split`.
const THREADS: usize = 256;

/// Components that a block of `centre` has.
const CENTRED: usize = 32;

/// What a square of the direct form may differ by for each component, where numbers are subnormal.
const SUBNORMAL: f32 = 1.5e-45;

/// What a call needs beside its arrays, in one block.
struct Scratch {
    _block: Block,
    rows: Address,
    columns: Address,
    of_columns: Address,
    norms: Address,
    right: Address,
    /// Values and indices of states.
    states: [Address; 2],
}

/// A part of a call.
#[derive(Clone)]
struct Part {
    batches: Range<usize>,
    /// The first row and the first j.
    from: [usize; 2],
    rows: usize,
    columns: usize,
}

impl Part {
    /// Whether panels came before.
    fn goes_on(&self) -> bool {
        self.from[1] > 0
    }

    /// Whether it has the last of so many j.
    fn ends(&self, n: usize) -> bool {
        self.from[1] + self.columns == n
    }
}

/// A part of a slice, and the fraction of the call that is done before.
struct Step {
    slice: usize,
    part: Part,
    done: f64,
}

impl Job<'_> {
    /// Launches the kernel that finds the centres of all batches, if something needs them.
    pub(super) fn centres(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
    ) -> Result<Block> {
        let plan = &expanded.plan;
        let depth = expanded.depth();
        let centres = cuda.allocate_block(self.sizes.batches * depth * size_of::<f32>())?;
        let differences = plan.right.as_ref().is_some_and(|right| right.of.difference.is_some());
        if !plan.sections.by_tiles() && !differences {
            return Ok(centres);
        }
        let module = self.module(cuda, plan, Unit::Measure)?;
        let find = cuda.function(self.name, &module, c"centre")?;
        let args = self.begin(session, plan, &self.first_nest(plan), &self.whole(), plan.cut);
        let args = args.pointer(centres.address).number(depth as u64);
        let blocks = [depth.div_ceil(CENTRED), 1, self.sizes.batches];
        let grid = Grid::new(self.name, blocks, THREADS, 0)?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // block has room for the centre of every batch.
        unsafe { cuda.launch(self.name, find, grid, args)? };
        Ok(centres)
    }

    /// Launches the kernel that measures the largest norms about the centres.
    pub(super) fn measure_wide(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
        [largest, centres]: [Address; 2],
    ) -> Result<()> {
        let plan = &expanded.plan;
        let module = self.module(cuda, plan, Unit::Measure)?;
        let Sizes { batches, m, n, multiprocessors, .. } = self.sizes;
        let measure = cuda.function(self.name, &module, c"measure_wide")?;
        let most = (8 * multiprocessors).div_ceil(batches);
        let blocks = (m + n).div_ceil(THREADS / 32).min(most);
        let wide = self.wide(expanded, None, centres, [false, false]);
        let args = self.begin(session, plan, &self.first_nest(plan), &self.whole(), plan.cut);
        let args = args.bytes(&wide).pointer(largest);
        let grid = Grid::new(self.name, [blocks, 1, batches], THREADS, 0)?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // block has room for four numbers.
        unsafe { cuda.launch(self.name, measure, grid, args) }
    }

    /// All of the call as one part.
    fn whole(&self) -> Part {
        let Sizes { batches, m, n, .. } = self.sizes;
        Part { batches: 0..batches, from: [0, 0], rows: m, columns: n }
    }

    /// Launches all parts of the call, unless the work is long and the form gave up meanwhile.
    pub(super) fn launch_wide(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
        choice: Choice,
        centres: Address,
        course: &Course<'_>,
    ) -> Result<()> {
        let plan = &expanded.plan;
        let parts = self.parts(expanded);
        let scratch = self.scratch(cuda, expanded, &parts)?;
        let of = |unit| self.module(cuda, plan, unit);
        let modules = Modules { pairs: of(Unit::Pairs)?, tiles: of(Unit::Tiles)? };
        let nests = self.nests(plan);
        // Where slices are columns, the first of each.
        let columns = plan.slices.filter(|slices| slices.of == Of::Columns);
        let firsts: Vec<usize> = columns.map_or(vec![0; nests.len()], |it| it.firsts().collect());
        // The panel whose tiles are there.
        let mut held = None;
        for Step { slice, part, done } in self.walk(&parts, nests.len()) {
            let pairs = (part.batches.len() * part.rows) as f64 * part.columns as f64;
            if course.is_due(pairs * plan.body as f64) {
                // Kernels of a form that gave up have nothing to do.
                if !self.allows(cuda, choice)? {
                    return Ok(());
                }
                course.go_on(cuda, self.name, done)?;
            }
            let flags = [part.goes_on(), part.ends(self.sizes.n)];
            let wide = self.wide(expanded, Some((&scratch, &parts, firsts[slice])), centres, flags);
            let cut = parts.cut(&plan.tiling, part.rows, expanded.is_filter(), &self.sizes);
            let here = Some((slice, part.batches.start, part.from[1]));
            let (modules, nest) = (&modules, &nests[slice]);
            let launch =
                Launch { job: self, cuda, session, plan, modules, nest, part, cut, wide, choice };
            launch.split(held != here)?;
            held = here;
            launch.multiply(&scratch)?;
            if launch.part.ends(self.sizes.n) && (cut.ranges > 1 || launch.part.goes_on()) {
                launch.merge(&scratch)?;
            }
        }
        Ok(())
    }

    /// The parts of a call in order: slice by slice, batches by batches, piece by piece of rows, panel by panel of j.
    fn walk(&self, parts: &Parts, slices: usize) -> impl Iterator<Item = Step> {
        let Sizes { batches, m, n, .. } = self.sizes;
        let Parts { batches: together, rows, columns, .. } = *parts;
        // Rows of all slices and batches.
        let all = (slices * batches * m) as f64;
        let groups = move |slice| (0..batches).step_by(together).map(move |first| (slice, first));
        let pieces = (0..slices).flat_map(groups).flat_map(move |(slice, first)| {
            (0..m).step_by(rows).map(move |row| (slice, first..batches.min(first + together), row))
        });
        pieces.flat_map(move |(slice, group, row)| {
            (0..n).step_by(columns).map(move |column| {
                let rows = rows.min(m - row);
                let before = (slice * batches + group.start) * m + group.len() * row;
                let here = (group.len() * rows) as f64 * column as f64 / n as f64;
                let part = Part {
                    batches: group.clone(),
                    from: [row, column],
                    rows,
                    columns: columns.min(n - column),
                };
                Step { slice, part, done: (before as f64 + here) / all }
            })
        })
    }

    /// Allocates what the largest part needs.
    fn scratch(&self, cuda: &Cuda, expanded: &Expanded<'_>, parts: &Parts) -> Result<Scratch> {
        let plan = &expanded.plan;
        let right = plan.tiling.wide.map_or(0, |wide| wide.right) * RIGHT_BYTES;
        let (monoid, shape) = (plan.folding.monoid(), plan.folding.shape);
        // The largest buffer of states is that of a whole piece, or of what is left at the end.
        let last = self.sizes.m - (self.sizes.m - 1) / parts.rows * parts.rows;
        let states = [parts.rows.min(self.sizes.m), last].map(|rows| {
            rows * parts.cut(&plan.tiling, rows, expanded.is_filter(), &self.sizes).ranges
        });
        let states = parts.batches * states.into_iter().max().unwrap_or(0);
        let (rows, columns) = (parts.batches * parts.rows, parts.batches * parts.columns);
        let sizes = [
            rows * parts.row,
            columns * parts.row,
            columns * beside(plan),
            rows * size_of::<f32>(),
            columns * right,
            states * monoid.values(shape) * plan.folding.accumulates.size(),
            states * monoid.indices(shape) * 8,
        ];
        let sizes = sizes.map(|bytes| bytes.next_multiple_of(1024));
        let block = cuda.allocate_block(sizes.iter().sum())?;
        let mut next = block.address;
        let [rows, columns, of_columns, norms, right, values, indices] = sizes.map(|bytes| {
            let at = next;
            next += bytes as u64;
            at
        });
        let states = [values, indices];
        Ok(Scratch { _block: block, rows, columns, of_columns, norms, right, states })
    }

    /// The sizes of the parts of a call.
    pub(super) fn parts(&self, expanded: &Expanded<'_>) -> Parts {
        let plan = &expanded.plan;
        let right = plan.tiling.wide.map_or(0, |wide| wide.right) * RIGHT_BYTES;
        let bytes = [beside(plan) + right, plan.folding.state_bytes()];
        Parts::new(&plan.tiling, expanded.depth(), bytes, &self.sizes)
    }

    /// `Wide` of the kernels, as bytes.
    fn wide(
        &self,
        expanded: &Expanded<'_>,
        part: Option<(&Scratch, &Parts, usize)>,
        centres: Address,
        [goes_on, ends]: [bool; 2],
    ) -> Vec<u8> {
        let (plan, square) = (&expanded.plan, expanded.square());
        let (tape, depth) = (plan.sections.tape, expanded.depth() as u32);
        let scratch = |of: fn(&Scratch) -> Address| part.map_or(0, |(scratch, ..)| of(scratch));
        let count = |of: fn(&Parts) -> usize| part.map_or(0, |(_, parts, _)| of(parts) as u32);
        let depths = plan.tiling.wide.map_or(0, |wide| wide.depths) as u32;
        let [of_norm, of_split, of_largest, of_later, of_centre] =
            square.map_or([0.0; 5], |square| square.shares(tape)).map(|share| share as f32);
        let right = plan.right.as_ref().map(|right| right.of);
        let difference = right.and_then(|right| right.difference);
        WideWords {
            rows: scratch(|it| it.rows),
            columns: scratch(|it| it.columns),
            of_columns: scratch(|it| it.of_columns),
            row_norms: scratch(|it| it.norms),
            right: scratch(|it| it.right),
            centre: centres,
            row_count: count(|it| it.rows),
            column_count: count(|it| it.columns),
            depth,
            deep: if depths == 0 { 1 } else { depth.div_ceil(depths) },
            error: square.map_or(0.0, |square| square.doubt(tape)) as f32,
            least: SUBNORMAL * depth as f32,
            of_norm,
            of_split,
            of_largest,
            of_later,
            of_centre,
            goes_on: goes_on.into(),
            ends: ends.into(),
            dim: plan.folding.shape.dim as u32,
            first: part.map_or(0, |(.., first)| first as u32),
            from: difference.map_or(0, |it| it.from as u32),
            alike: difference.map_or(0, |it| it.len as u32),
            sides: right.map_or(0, |right| right.sides() as u32),
        }
        .bytes()
    }

    /// The first arguments of all kernels.
    fn begin(
        &self,
        session: &Session<'_>,
        plan: &Plan<'_>,
        nest: &Nest,
        part: &Part,
        cut: Cut,
    ) -> Args {
        let start = self.request.start + part.from[1] as i64;
        Args::new()
            .bytes(&self.moved(plan, nest, part.from).encode(Width::Wide))
            .bytes(&self.inputs(session, plan))
            .bytes(&shape([part.rows, part.columns], start, cut, part.batches.clone(), [0, 0]))
    }

    /// A nest whose operands begin at a row and a j.
    pub(super) fn moved(&self, plan: &Plan<'_>, nest: &Nest, from: [usize; 2]) -> Nest {
        let [row, column] = from.map(|first| first as isize);
        let of_inputs = self.views(plan).map(|(view, per)| match per {
            Per::I => row * steps(view.layout(), true).0,
            Per::J => column * steps(view.layout(), true).0,
            _ => 0,
        });
        let outputs = [&self.request.values, &self.request.indices];
        let of_outputs = outputs.map(|target: &Option<Target<'_>>| {
            target.as_ref().map_or(0, |target| row * steps(target.layout(), true).0)
        });
        let mut nest = nest.clone();
        for (offset, moved) in nest.offsets.iter_mut().zip(of_inputs.chain(of_outputs)) {
            *offset = offset.wrapping_add_signed(moved);
        }
        nest
    }
}

/// Bytes of what belongs to a j beside its point.
fn beside(plan: &Plan<'_>) -> usize {
    plan.sections.bytes(Per::J).next_multiple_of(8)
}

/// The kernels of a plan.
struct Modules {
    pairs: Arc<Module>,
    tiles: Arc<Module>,
}

/// What the launches of a part share.
struct Launch<'a, 's> {
    job: &'a Job<'a>,
    cuda: &'a Cuda,
    session: &'a Session<'s>,
    plan: &'a Plan<'a>,
    modules: &'a Modules,
    nest: &'a Nest,
    part: Part,
    cut: Cut,
    wide: Vec<u8>,
    choice: Choice,
}

impl Launch<'_, '_> {
    /// Launches what makes the tiles of rows before the first panel of a piece, and those of a panel that has none yet.
    fn split(&self, panel: bool) -> Result<()> {
        if self.plan.sections.by_tiles() {
            let rows = if self.part.goes_on() { 0 } else { self.part.rows };
            self.split_points(rows, if panel { self.part.columns } else { 0 })?;
        }
        if panel && self.plan.right.is_some() {
            self.split_right(self.part.columns)?;
        }
        Ok(())
    }

    /// Launches the kernel that makes the tiles of so many rows and of so many j, if there are any to be made.
    fn split_points(&self, rows: usize, columns: usize) -> Result<()> {
        // Rows are tiled up to the edge of the last block, so that whole blocks can be copied.
        let lefts = rows.next_multiple_of(self.plan.tiling.span()) / SIDE;
        let tiles = lefts + columns.next_multiple_of(self.plan.tiling.tile) / SIDE;
        if tiles == 0 {
            return Ok(());
        }
        let choice = self.choice.words(self.plan);
        let args = self.begin().bytes(&self.wide).bytes(&choice).number(lefts as u64);
        self.launch(&self.modules.tiles, c"split", [tiles, 1], [THREADS, 0], args)
    }

    /// Launches the kernel that makes the tiles of so many right-hand sides: a warp for 32 of them.
    fn split_right(&self, count: usize) -> Result<()> {
        let tiles = count.next_multiple_of(self.plan.tiling.tile) / 32;
        let choice = self.choice.words(self.plan);
        let args = self.begin().bytes(&self.wide).bytes(&choice).number(tiles as u64);
        let blocks = [tiles.div_ceil(4), 1];
        self.launch(&self.modules.tiles, c"split_right", blocks, [MERGE_THREADS, 0], args)
    }

    /// Launches the kernel that takes the pairs of the part.
    fn multiply(&self, scratch: &Scratch) -> Result<()> {
        let args = self.job.ends(
            self.session,
            self.plan,
            self.begin(),
            scratch.states.into(),
            self.choice,
        );
        let shared = self.plan.tiling.wide.map_or(0, |wide| wide.shared);
        let threads = [self.plan.tiling.threads, shared];
        let blocks = [self.cut.blocks, self.cut.ranges];
        self.launch(&self.modules.pairs, c"wide", blocks, threads, args.bytes(&self.wide))
    }

    /// Launches the kernel that joins the ranges of the piece. It gets all j, since a mean is over their number.
    fn merge(&self, scratch: &Scratch) -> Result<()> {
        let (part, job) = (&self.part, self.job);
        let rows = part.batches.len() * part.rows;
        let cut = Cut { lanes: lanes(rows, self.cut.ranges), ..self.cut };
        let args = Args::new()
            .bytes(&job.moved(self.plan, self.nest, part.from).encode(Width::Wide))
            .bytes(&shape(
                [part.rows, job.sizes.n],
                job.request.start,
                cut,
                part.batches.clone(),
                [0, 0],
            ));
        let args = job.ends(self.session, self.plan, args, scratch.states.into(), self.choice);
        job.merge(self.cuda, self.plan, args, rows * cut.lanes)
    }

    /// The first arguments of the part's kernels.
    fn begin(&self) -> Args {
        self.job.begin(self.session, self.plan, self.nest, &self.part, self.cut)
    }

    /// Launches a kernel, with a layer of blocks for each batch.
    fn launch(
        &self,
        module: &Module,
        name: &'static std::ffi::CStr,
        blocks: [usize; 2],
        [threads, shared]: [usize; 2],
        args: Args,
    ) -> Result<()> {
        let operation = self.job.name;
        let function = self.cuda.function(operation, module, name)?;
        let layers = self.part.batches.len();
        let grid = Grid::new(operation, [blocks[0], blocks[1], layers], threads, shared)?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, the
        // scratch has room for the tiles, norms and states of the largest part, and shared memory for what the
        // source asserts that it keeps there.
        unsafe { self.cuda.launch(operation, function, grid, args) }
    }
}
