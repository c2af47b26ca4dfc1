//! Launches of plans whose inner products are products of tiles: batch by batch, a piece of rows and a
//! panel of j at a time, within a scratch that does not grow with the call.
//!
//! A part of a call is the same kernels with other offsets: its batch, its first row and its first j
//! are added to where operands begin. States of a piece go on from panel to panel and are merged after
//! the last. Called by `launching`.

use std::sync::Arc;

use smallvec::SmallVec;
use tilework_backend::{Session, Target};
use tilework_error::Result;
use tilework_tape::Per;

use super::choice::Choice;
use super::course::Course;
use super::plan::{Cut, MERGE_THREADS, Plan, lanes};
use super::print::Unit;
use super::slices::Of;
use super::wide::{Parts, RIGHT_BYTES, SIDE};
use super::words::{shape, steps, words};
use super::{Expanded, Job};
use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{self, Args, Nest, Width};
use crate::memory::Block;

/// Threads of the kernels that prepare, and components that a block of `centre` has.
const THREADS: usize = 256;
const CENTRED: usize = 32;

/// What the direct form may differ by where numbers are subnormal, for each component.
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
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) batch: usize,
    /// The first row and the first j.
    pub(super) from: [usize; 2],
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Job<'_> {
    /// Has the centres of all batches found, if somebody needs them.
    pub(super) fn centres(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
    ) -> Result<Block> {
        let plan = &expanded.plan;
        let depth = expanded.square.dim(plan.sections.tape) as usize;
        let centres = cuda.allocate_block(self.sizes.batches * depth * size_of::<f32>())?;
        let differences = plan.right.as_ref().is_some_and(|right| right.of.difference.is_some());
        if !plan.sections.by_tiles() && !differences {
            return Ok(centres);
        }
        let module = self.module(cuda, plan, Unit::Measure)?;
        let find = cuda.function(self.name, &module, c"centre")?;
        let nest = self.first_nest(plan);
        for batch in 0..self.sizes.batches {
            let part = Part { batch, from: [0, 0], rows: self.sizes.m, columns: self.sizes.n };
            let centre = centres.address + (batch * depth * size_of::<f32>()) as u64;
            let args = self.begin(session, plan, &nest, &part, plan.cut);
            let args = args.pointer(centre).number(depth as u64);
            let grid = launch::grid(self.name, [depth.div_ceil(CENTRED), 1], THREADS)?;
            // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
            // block has room for the centre of every batch.
            unsafe { cuda.launch(self.name, find, grid, args)? };
        }
        Ok(centres)
    }

    /// Has the largest norms about the centres found.
    pub(super) fn measure_wide(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
        [largest, centres]: [Address; 2],
    ) -> Result<()> {
        let plan = &expanded.plan;
        let module = self.module(cuda, plan, Unit::Measure)?;
        let depth = expanded.square.dim(plan.sections.tape) as usize;
        let (m, n) = (self.sizes.m, self.sizes.n);
        let measure = cuda.function(self.name, &module, c"measure_wide")?;
        let nest = self.first_nest(plan);
        for batch in 0..self.sizes.batches {
            let part = Part { batch, from: [0, 0], rows: m, columns: n };
            let centre = centres + (batch * depth * size_of::<f32>()) as u64;
            let blocks = (m + n).div_ceil(THREADS / 32).min(8 * self.sizes.multiprocessors);
            let wide = self.wide(expanded, None, centre, [false, false]);
            let args = self.begin(session, plan, &nest, &part, plan.cut);
            let args = args.bytes(&wide).pointer(largest);
            let grid = launch::grid(self.name, [blocks, 1], THREADS)?;
            // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
            // block has room for four numbers.
            unsafe { cuda.launch(self.name, measure, grid, args)? };
        }
        Ok(())
    }

    /// All of the call, unless the work is long and the form gave up meanwhile.
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
        let depth = expanded.square.dim(plan.sections.tape) as usize;
        let (m, n, tiling) = (self.sizes.m, self.sizes.n, &plan.tiling);
        let parts = self.parts(expanded);
        let scratch = self.scratch(cuda, expanded, &parts)?;
        let of = |unit| self.module(cuda, plan, unit);
        let modules =
            Modules { pairs: of(Unit::Pairs)?, tiles: of(Unit::Tiles)?, merge: of(Unit::Merge)? };
        let (by_tiles, right) = (plan.sections.by_tiles(), plan.right.is_some());
        let nests = self.nests(plan);
        // Where slices are columns, the first of each.
        let columns = plan.slices.filter(|slices| slices.of == Of::Columns);
        let firsts: Vec<usize> = columns.map_or(vec![0; nests.len()], |it| it.firsts().collect());
        // Rows of all slices and batches.
        let batches = self.sizes.batches;
        let all = (nests.len() * batches * m) as f64;
        // The panel whose tiles are there.
        let mut held = None;
        for number in 0..nests.len() * batches {
            let (slice, batch) = (number / batches, number % batches);
            let centre = centres + (batch * depth * size_of::<f32>()) as u64;
            for row in (0..m).step_by(parts.rows) {
                let rows = parts.rows.min(m - row);
                let cut = parts.cut(tiling, rows, expanded.square.is_filter(), &self.sizes);
                for column in (0..n).step_by(parts.columns) {
                    let columns = parts.columns.min(n - column);
                    if course.is_due(rows as f64 * columns as f64 * plan.body as f64) {
                        // Kernels of a form that gave up have nothing to do.
                        if !self.allows(cuda, choice)? {
                            return Ok(());
                        }
                        let done = rows as f64 * column as f64 / n as f64;
                        let done = (number * m + row) as f64 + done;
                        course.go_on(cuda, self.name, done / all)?;
                    }
                    let part = Part { batch, from: [row, column], rows, columns };
                    let ends = column + columns == n;
                    let flags = [column > 0, ends];
                    let wide = self.wide(expanded, Some((&scratch, firsts[slice])), centre, flags);
                    let modules = &modules;
                    let nest = &nests[slice];
                    let launch = Launch {
                        job: self,
                        cuda,
                        session,
                        plan,
                        modules,
                        nest,
                        part,
                        cut,
                        wide,
                        choice,
                    };
                    if column == 0 && by_tiles {
                        launch.split(rows, true)?;
                    }
                    if held != Some((slice, batch, column)) {
                        if by_tiles {
                            launch.split(columns, false)?;
                        }
                        if right {
                            launch.split_right(columns)?;
                        }
                        held = Some((slice, batch, column));
                    }
                    launch.multiply(&scratch)?;
                    if ends && (cut.ranges > 1 || column > 0) {
                        launch.merge(&scratch)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn scratch(&self, cuda: &Cuda, expanded: &Expanded<'_>, parts: &Parts) -> Result<Scratch> {
        let Expanded { plan, square, .. } = expanded;
        let right = plan.tiling.wide.map_or(0, |wide| wide.right) * RIGHT_BYTES;
        let (monoid, shape) = (plan.folding.monoid(), plan.folding.shape);
        // The largest buffer of states is that of a whole piece, or of what is left at the end.
        let last = self.sizes.m - (self.sizes.m - 1) / parts.rows * parts.rows;
        let states = [parts.rows.min(self.sizes.m), last].map(|rows| {
            rows * parts.cut(&plan.tiling, rows, square.is_filter(), &self.sizes).ranges
        });
        let states = states.into_iter().max().unwrap_or(0);
        let sizes = [
            parts.rows * parts.row,
            parts.columns * parts.row,
            parts.columns * beside(plan),
            parts.rows * size_of::<f32>(),
            parts.columns * right,
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

    /// The parts that every batch is worked on in.
    pub(super) fn parts(&self, Expanded { plan, square, .. }: &Expanded<'_>) -> Parts {
        let right = plan.tiling.wide.map_or(0, |wide| wide.right) * RIGHT_BYTES;
        let depth = square.dim(plan.sections.tape) as usize;
        let bytes = [beside(plan) + right, plan.folding.state_bytes()];
        Parts::new(&plan.tiling, depth, bytes, &self.sizes)
    }

    /// `Wide` of the kernels.
    fn wide(
        &self,
        Expanded { plan, square, .. }: &Expanded<'_>,
        part: Option<(&Scratch, usize)>,
        centre: Address,
        [goes_on, ends]: [bool; 2],
    ) -> Vec<u8> {
        let tape = plan.sections.tape;
        let depth = square.dim(tape);
        let (scratch, first) = part.unzip();
        let at = scratch.map_or([0; 5], |s| [s.rows, s.columns, s.of_columns, s.norms, s.right]);
        let mut bytes = words(&at);
        bytes.extend(words(&[centre]));
        let depths = plan.tiling.wide.map_or(0, |wide| wide.depths) as u32;
        let deep = if depths == 0 { 1 } else { depth.div_ceil(depths) };
        bytes.extend([depth, deep].iter().flat_map(|x| x.to_le_bytes()));
        let doubt = [square.doubt(tape) as f32, SUBNORMAL * depth as f32];
        let shares = square.shares(tape).map(|share| share as f32);
        bytes.extend(doubt.iter().chain(&shares).flat_map(|x| x.to_le_bytes()));
        bytes.extend([goes_on, ends].iter().flat_map(|&flag| u32::from(flag).to_le_bytes()));
        bytes.extend([0; 4]); // up to a whole word
        bytes.extend((first.unwrap_or(0) as u64).to_le_bytes());
        bytes
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
            .bytes(&self.offsets(plan, nest, part).encode(Width::Wide))
            .bytes(&self.inputs(session, plan))
            .bytes(&shape([part.rows, part.columns], start, cut, [1, 0, 0]))
    }

    /// A nest of one batch, whose operands begin where the part does.
    pub(super) fn offsets(&self, plan: &Plan<'_>, nest: &Nest, part: &Part) -> Nest {
        let mut offsets: SmallVec<[isize; 8]> =
            nest.offsets.iter().map(|&offset| offset as isize).collect();
        let mut rest = part.batch;
        for (len, strides) in nest.lens.iter().zip(&nest.strides).rev() {
            let index = (rest % len) as isize;
            rest /= len;
            offsets.iter_mut().zip(strides).for_each(|(offset, stride)| *offset += index * stride);
        }
        let [row, column] = part.from.map(|first| first as isize);
        let of_inputs = self.views(plan).map(|(view, per)| match per {
            Per::I => row * steps(view.layout(), true).0,
            Per::J => column * steps(view.layout(), true).0,
            _ => 0,
        });
        let outputs = [&self.request.values, &self.request.indices];
        let of_outputs = outputs.map(|target: &Option<Target<'_>>| {
            target.as_ref().map_or(0, |target| row * steps(target.layout(), true).0)
        });
        for (offset, moved) in offsets.iter_mut().zip(of_inputs.chain(of_outputs)) {
            *offset += moved;
        }
        Nest {
            lens: SmallVec::from_elem(1, 1),
            strides: SmallVec::from_elem(SmallVec::from_elem(0, offsets.len()), 1),
            // Elements of checked layouts: none is before its block.
            offsets: offsets.iter().map(|&offset| offset as usize).collect(),
        }
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
    merge: Arc<Module>,
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
    /// Makes the tiles of so many rows, or of so many j.
    fn split(&self, count: usize, left: bool) -> Result<()> {
        // Rows are tiled up to the edge of the last block, so that whole blocks can be copied.
        let step = if left { self.plan.tiling.span() } else { self.plan.tiling.tile };
        let tiles = count.next_multiple_of(step) / SIDE;
        let choice = self.choice.words(self.plan);
        let args = self.begin().bytes(&self.wide).bytes(&choice).number(left.into());
        self.launch(&self.modules.tiles, c"split", [tiles, 1], [THREADS, 0], args)
    }

    /// Makes the tiles of so many right-hand sides, a warp for 32 of them.
    fn split_right(&self, count: usize) -> Result<()> {
        let tiles = count.next_multiple_of(self.plan.tiling.tile) / 32;
        let choice = self.choice.words(self.plan);
        let args = self.begin().bytes(&self.wide).bytes(&choice).number(tiles as u64);
        let blocks = [tiles.div_ceil(4), 1];
        self.launch(&self.modules.tiles, c"split_right", blocks, [MERGE_THREADS, 0], args)
    }

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

    /// Joins the ranges of the piece; the count of a mean is that of all j.
    fn merge(&self, scratch: &Scratch) -> Result<()> {
        let (part, job) = (self.part, self.job);
        let cut = Cut { lanes: lanes(part.rows, self.cut.ranges), ..self.cut };
        let args = Args::new()
            .bytes(&job.offsets(self.plan, self.nest, &part).encode(Width::Wide))
            .bytes(&shape([part.rows, job.sizes.n], job.request.start, cut, [1, 0, 0]));
        let args = job.ends(self.session, self.plan, args, scratch.states.into(), self.choice);
        let apart = self.plan.folding.apart();
        let blocks = (part.rows * cut.lanes * apart).div_ceil(MERGE_THREADS);
        self.launch(&self.modules.merge, c"merge", [blocks, 1], [MERGE_THREADS, 0], args)
    }

    fn begin(&self) -> Args {
        self.job.begin(self.session, self.plan, self.nest, &self.part, self.cut)
    }

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
        let grid = Grid::new(operation, [blocks[0], blocks[1], 1], threads, shared)?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // scratch has room for the tiles, norms and states of the largest part.
        unsafe { self.cuda.launch(operation, function, grid, args) }
    }
}
