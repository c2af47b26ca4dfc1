//! From plans to launches: arguments, the buffer of states, the choice between forms, pieces.
//!
//! Where there is a choice, both forms are launched, and kernels look themselves which of them is to work, so that
//! nothing waits: each block of the expanded form at its own points, and the other form does what was refused; or,
//! where tensor cores take the pairs, both at what `measure` found of all points. Long work is launched in pieces
//! that are waited for, so that it can be stopped (`course`); then the second kind of choice is made here, before the
//! first piece, and again where a form gave up. So are both kinds in the first calls of a formula, as long as the
//! form that is seldom needed is still being compiled. Called by `pairs`.

use std::sync::Arc;

use tilework_backend::Session;
use tilework_error::Result;

use super::choice::Choice;
use super::course::{Course, STEPS_OF_LAUNCH};
use super::plan::{BLOCKS_OF_LAUNCH, Cut, MERGE_THREADS, PARTIAL_BYTES, Plan};
use super::print::Unit;
use super::slices::Of;
use super::words::{self, States, shape};
use super::{Expanded, Job, cost, key, print};
use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::{Address, Handle};
use crate::launch::{self, Args, Width};
use crate::memory::Block;

/// Threads of a block of `measure`.
const MEASURE_THREADS: usize = 256;

/// What was done of a form before, and what is to be done: all of it.
const WHOLE: [f64; 2] = [0.0, 1.0];

/// Bytes of what is noted of a row between slices of its ranks.
const LAST_BYTES: usize = 16;

/// One of the forms that are launched together.
struct Form<'r> {
    plan: &'r Plan<'r>,
    /// Held as long as its function may be launched.
    _module: Arc<Module>,
    function: Handle,
    inputs: Vec<u8>,
    choice: Choice,
}

/// A kernel that is not loaded.
struct Missing<'r> {
    plan: &'r Plan<'r>,
    unit: Unit,
    key: Vec<u8>,
    /// Whether somebody is to compile it while the call goes on.
    behind: bool,
}

/// What was measured, on the device.
pub(super) struct Measured {
    /// The largest norms of i and of j, as they count against the limit; whether the form gave up; and whether threads
    /// move points to a centre.
    pub(super) largest: Block,
    /// What norms were taken about, for each batch; the origin where there is none.
    pub(super) centres: Option<Block>,
}

/// Rows that are launched together.
struct Rows {
    /// Where operands begin, as kernels read it.
    nest: Vec<u8>,
    batches: usize,
    /// Of a batch.
    m: usize,
    cut: Cut,
    /// Where the rank is noted, as a number and an index, that those of the next slice come after, and which one it is.
    last: [u64; 3],
    /// The share of the call that was done before, and that of these.
    done: [f64; 2],
}

impl Job<'_> {
    pub(super) fn launch(&self, cuda: &Cuda, session: &Session<'_>) -> Result<()> {
        let course = Course::new(self.request, self.steps());
        let all = self.load(cuda, &course)?;
        self.launch_forms(cuda, session, &course, all)?;
        course.end(cuda, self.name)
    }

    /// Steps of the longest of the forms that may be launched.
    fn steps(&self) -> f64 {
        let steps = |plan: &Plan<'_>| self.sizes.pairs() * cost::steps(plan);
        let expanded = self.expanded.as_ref().map_or(0.0, |expanded| steps(&expanded.plan));
        self.as_written().map(steps).sum::<f64>().max(expanded)
    }

    /// Loads kernels, at the same time where several are to be compiled, and before anything is written. Of two forms, those
    /// of the one that data seldom ask for are compiled behind, unless the work is long; who needs them waits, and is told
    /// if they do not compile when the other form has written. Whether all are there.
    fn load(&self, cuda: &Cuda, course: &Course<'_>) -> Result<bool> {
        let first = self.expanded.iter().map(|expanded| &expanded.plan);
        let mut missing: Vec<Missing<'_>> = Vec::new();
        for (place, plan) in first.chain(self.as_written()).enumerate() {
            let behind = place > 0 && self.expanded.is_some() && !course.is_long();
            for unit in self.units(plan) {
                let key = key::of(plan, unit);
                // Two plans may share what joins their states.
                if !cuda.is_loaded(&key) && missing.iter().all(|other| other.key != key) {
                    missing.push(Missing { plan, unit, key, behind });
                }
            }
        }
        if missing.is_empty() {
            return Ok(true);
        }
        missing.sort_by_key(|it| it.unit.turn(it.plan));
        let (behind, now): (Vec<_>, Vec<_>) = missing.into_iter().partition(|it| it.behind);
        let all = behind.is_empty();
        let load = |it: &Missing<'_>| {
            cuda.module(self.name, &it.key, || print::source(it.plan, it.unit)).map(drop)
        };
        std::thread::scope(|scope| {
            let spawn =
                |other| std::thread::Builder::new().spawn_scoped(scope, move || load(other));
            let (last, others) = now.split_last().unzip();
            let others: Vec<_> =
                others.into_iter().flatten().map(|other| (other, spawn(other))).collect();
            for it in behind {
                cuda.module_behind(it.key, print::source(it.plan, it.unit)?)?;
            }
            last.map_or(Ok(()), load)?;
            // Whoever compiles may not panic; where no thread is to be had, this one compiles.
            others.into_iter().try_for_each(|(other, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| load(other)),
                Err(_) => load(other),
            })
        })?;
        Ok(all)
    }

    /// The kernels of a plan that are launched. Where blocks choose for themselves nothing is measured before.
    pub(super) fn units(&self, plan: &Plan<'_>) -> impl Iterator<Item = Unit> + use<> {
        let by_block = self.by_block;
        Unit::of(plan).filter(move |unit| !(by_block && *unit == Unit::Measure))
    }

    /// The plans of the formula as it is written, one for each part.
    pub(super) fn as_written(&self) -> impl Iterator<Item = &Plan<'_>> {
        [&self.direct].into_iter().chain(&self.others)
    }

    pub(super) fn module(&self, cuda: &Cuda, plan: &Plan<'_>, unit: Unit) -> Result<Arc<Module>> {
        cuda.module(self.name, &key::of(plan, unit), || print::source(plan, unit))
    }

    /// `all` says that the kernels of both forms are there.
    fn launch_forms(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        course: &Course<'_>,
        all: bool,
    ) -> Result<()> {
        let Some(expanded) = &self.expanded else {
            return self.launch_written(cuda, session, Choice::made(0.0), course);
        };
        let limit = expanded.limit;
        if self.by_block {
            let plans = [&expanded.plan, &self.direct];
            return self.launch_plans(cuda, session, &plans, Choice::made(limit), WHOLE, course);
        }
        let measured = self.measure(cuda, session, expanded)?;
        let choice = Choice { measured: measured.largest.address, ..Choice::made(limit) };
        let launch = || match &measured.centres {
            Some(centres) => {
                self.launch_wide(cuda, session, expanded, choice, centres.address, course)
            }
            None => self.launch_plans(cuda, session, &[&expanded.plan], choice, WHOLE, course),
        };
        if all && !course.is_long() {
            launch()?;
            return self.launch_written(cuda, session, choice, course);
        }
        if self.allows(cuda, choice)? {
            launch()?;
            if !expanded.plan.may_give_up() || self.allows(cuda, choice)? {
                return Ok(());
            }
            course.begin_anew();
        }
        self.launch_written(cuda, session, Choice::made(limit), course)
    }

    /// Whether the data allow the expanded form, by what was measured and by what it found since, when that is done.
    pub(super) fn allows(&self, cuda: &Cuda, choice: Choice) -> Result<bool> {
        let [x, y, gave_up, _] = largest(cuda, self.name, choice.measured)?;
        Ok(x <= choice.limit && y <= choice.limit && gave_up == 0.0)
    }

    /// Part by part, as the formula is written.
    fn launch_written(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        choice: Choice,
        course: &Course<'_>,
    ) -> Result<()> {
        let share = 1.0 / (1 + self.others.len()) as f64;
        self.as_written().enumerate().try_for_each(|(k, plan)| {
            self.launch_plans(cuda, session, &[plan], choice, [k as f64 * share, share], course)
        })
    }

    /// The largest norms of the data, if there is a choice that depends on them, and whether they are about a centre, so
    /// that they count for more.
    pub(super) fn norms(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
    ) -> Result<Option<([f64; 2], bool)>> {
        let Some(expanded) = &self.expanded else { return Ok(None) };
        let measured = self.measure(cuda, session, expanded)?;
        let [x, y, _, moved] = largest(cuda, self.name, measured.largest.address)?;
        Ok(Some(([x, y], moved != 0.0)))
    }

    /// Has the largest norms measured.
    fn measure(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
    ) -> Result<Measured> {
        let plan = &expanded.plan;
        let largest = cuda.allocate_zeroed(4 * size_of::<f64>())?;
        let centres = match plan.tiling.wide {
            Some(_) => Some(self.centres(cuda, session, expanded)?),
            None => None,
        };
        match &centres {
            Some(centres) if plan.sections.by_tiles() => {
                self.measure_wide(cuda, session, expanded, [largest.address, centres.address])?;
            }
            _ => self.measure_narrow(cuda, session, plan, largest.address)?,
        }
        Ok(Measured { largest, centres })
    }

    /// Has the norms measured that threads compute themselves.
    fn measure_narrow(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plan: &Plan<'_>,
        largest: Address,
    ) -> Result<()> {
        let module = self.module(cuda, plan, Unit::Measure)?;
        let args = Args::new()
            .bytes(&self.first_nest(plan).encode(Width::Wide))
            .bytes(&self.inputs(session, plan))
            .bytes(&self.shape(plan.cut, [0, 0]))
            .pointer(largest);
        let most = 8 * self.sizes.multiprocessors;
        let blocks = (self.sizes.m + self.sizes.n).div_ceil(4 * MEASURE_THREADS).min(most);
        let batches = self.sizes.batches.min((most / blocks).max(1));
        let grid = launch::grid(self.name, [blocks, batches], MEASURE_THREADS)?;
        let function = cuda.function(self.name, &module, c"measure")?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // block has room for four numbers.
        unsafe { cuda.launch(self.name, function, grid, args) }
    }

    /// Slice by slice, and some rows after others where the states of ranges would take too much memory: a scheme
    /// that is asked for has ranges however many rows there are. Of two plans, the second does what blocks of the
    /// first refuse. `done` is the share of the form that was done before, `all` that of this.
    fn launch_plans(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plans: &[&Plan<'_>],
        choice: Choice,
        [done, all]: [f64; 2],
        course: &Course<'_>,
    ) -> Result<()> {
        let (plan, cut) = (plans[0], plans[0].cut);
        let span = plan.tiling.span();
        let ranks = plan.slices.filter(|slices| slices.of == Of::Ranks);
        let states = if cut.ranges > 1 { cut.ranges * plan.folding.state_bytes() } else { 0 };
        // Whether each block refused.
        let flags = cut.blocks * cut.ranges.div_ceil(plan.tiling.slices) * size_of::<u32>();
        let flags = if plans.len() > 1 { flags.div_ceil(self.sizes.m) } else { 0 };
        let bytes = states + flags + ranks.map_or(0, |_| LAST_BYTES);
        let room = PARTIAL_BYTES.checked_div(bytes).unwrap_or(usize::MAX);
        let innermost = self.batches.lens.last().copied().unwrap_or(1);
        let pieces = pieces([self.sizes.batches, self.sizes.m], innermost, room, span);
        let nests = self.nests(plan);
        let share = all / (pieces.len() * nests.len()) as f64;
        let mut done = [done, share];
        let firsts: Vec<usize> = ranks.map_or(Vec::new(), |ranks| ranks.firsts().collect());
        for piece in &pieces {
            let &Piece { batch, batches, row, m } = piece;
            // What ranks come after, of each row: nothing yet.
            let last = match ranks {
                Some(_) => Some(cuda.allocate_zeroed(batches * m * LAST_BYTES)?),
                None => None,
            };
            for (k, nest) in nests.iter().enumerate() {
                let nest = match pieces.len() {
                    1 => nest.encode(Width::Wide),
                    _ => self.moved(plan, &nest.run(batch, batches), [row, 0]).encode(Width::Wide),
                };
                // Of few rows a block has all, in slices.
                let blocks = if m == self.sizes.m { cut.blocks } else { m.div_ceil(span) };
                let cut = Cut { blocks, ..cut };
                let place = firsts.get(k + 1).map_or(0, |next| next - firsts[k] - 1);
                let last = last.as_ref().map_or([0; 3], |block| {
                    [block.address, block.address + (batches * m * 8) as u64, place as u64]
                });
                let rows = Rows { nest, batches, m, cut, last, done };
                self.launch_rows(cuda, session, plans, &rows, choice, course)?;
                done[0] += share;
            }
        }
        Ok(())
    }

    fn launch_rows<'p>(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plans: &[&'p Plan<'p>],
        &Rows { ref nest, batches, m, cut, last, done: [before, share] }: &Rows,
        choice: Choice,
        course: &Course<'_>,
    ) -> Result<()> {
        let (plan, rows) = (plans[0], batches * m);
        // Of a form that has several blocks for one.
        let shape = |first: [usize; 2], parts: usize| {
            let cut = Cut { blocks: cut.blocks * parts, ..cut };
            let first = [first[0] * parts, first[1]];
            shape([m, self.sizes.n], self.request.start, cut, 0..batches, first)
        };
        let values = plan.folding.monoid().values(plan.folding.shape);
        let value_bytes =
            (cut.ranges * rows * values * plan.folding.accumulates.size()).next_multiple_of(8);
        let block = match cut.ranges {
            1 => None,
            ranges => {
                let indices = plan.folding.monoid().indices(plan.folding.shape);
                Some(cuda.allocate_block(value_bytes + ranges * rows * indices * 8)?)
            }
        };
        let partial = block.as_ref().map_or(0, |block| block.address);
        let states = States { states: [partial, partial + value_bytes as u64], last };
        let blocks = batches * cut.blocks;
        let strips = cut.ranges.div_ceil(plan.tiling.slices);
        let refused = match plans.len() {
            1 => None,
            _ => Some(cuda.allocate_block(blocks * strips * size_of::<u32>())?),
        };
        let refused = refused.as_ref().map_or(0, |block| block.address);
        let form = |plan: &&'p Plan<'p>| {
            let module = self.module(cuda, plan, Unit::Pairs)?;
            let function = cuda.function(self.name, &module, c"reduce")?;
            let parts = plan.cut.blocks / plans[0].cut.blocks;
            let choice = Choice { refused, parts, ..choice };
            let inputs = self.inputs(session, plan);
            Ok(Form { plan, _module: module, function, inputs, choice })
        };
        // Of a block of i and one of j.
        let steps = self.sizes.m as f64 * self.sizes.n as f64 * plan.body as f64;
        let steps = steps / (plan.cut.blocks * strips) as f64;
        let least = self.sizes.multiprocessors * BLOCKS_OF_LAUNCH;
        let [piece, few] = piece(steps, blocks, strips, least);
        let launch = |forms: &[Form<'_>]| -> Result<()> {
            let firsts = (0..blocks).step_by(piece);
            for first in firsts.flat_map(|first| (0..strips).step_by(few).map(move |k| [first, k]))
            {
                let here = [piece.min(blocks - first[0]), few.min(strips - first[1])];
                if course.is_due((here[0] * here[1]) as f64 * steps) {
                    let done = (first[0] * strips + here[0] * first[1]) as f64;
                    let done = before + share * done / (blocks * strips) as f64;
                    course.go_on(cuda, self.name, done)?;
                }
                for Form { plan, function, inputs, choice, .. } in forms {
                    let shape = shape(first, choice.parts);
                    let args = Args::new().bytes(nest).bytes(inputs).bytes(&shape);
                    let args = self.ends(session, plan, args, states, *choice);
                    let blocks = [here[0] * choice.parts, here[1]];
                    let grid = launch::grid(self.name, blocks, plan.tiling.threads)?;
                    // SAFETY: the source declares these arguments; rows are those of checked layouts,
                    // and the buffers have room for a state of every row and range, and a number of
                    // every block.
                    unsafe { cuda.launch(self.name, *function, grid, args)? };
                }
            }
            Ok(())
        };
        // What is still being compiled is waited for only if something was refused.
        let there = plans.iter().position(|plan| !cuda.is_loaded(&key::of(plan, Unit::Pairs)));
        let (now, later) = plans.split_at(there.unwrap_or(plans.len()).max(1));
        launch(&now.iter().map(form).collect::<Result<Vec<_>>>()?)?;
        if !later.is_empty() && any(cuda, self.name, refused, blocks * strips)? {
            launch(&later.iter().map(form).collect::<Result<Vec<_>>>()?)?;
        }
        if cut.ranges > 1 {
            let args = Args::new().bytes(nest).bytes(&shape([0, 0], 1));
            let apart = plan.folding.apart();
            let args = self.ends(session, plan, args, states, choice).bytes(&words::apart(apart));
            let blocks = (rows * cut.lanes * apart).div_ceil(MERGE_THREADS);
            let grid = launch::grid(self.name, [blocks, 1], MERGE_THREADS)?;
            let module = self.module(cuda, plan, Unit::Merge)?;
            let function = cuda.function(self.name, &module, c"merge")?;
            // SAFETY: as above; the stream keeps the order of all.
            unsafe { cuda.launch(self.name, function, grid, args)? };
        }
        Ok(())
    }
}

/// Rows whose states there is memory for at a time: of whole batches, or some of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    batch: usize,
    batches: usize,
    row: usize,
    /// Of a batch.
    m: usize,
}

/// All rows in pieces of at most so many as there is room for, or those of one block: batches that follow each other in
/// the innermost loop over them, if there is room for one.
fn pieces([batches, m]: [usize; 2], innermost: usize, room: usize, span: usize) -> Vec<Piece> {
    if batches.saturating_mul(m) <= room.max(span) {
        return vec![Piece { batch: 0, batches, row: 0, m }];
    }
    let (mut pieces, mut batch) = (Vec::new(), 0);
    let (together, rows) = (room / m, (room / span * span).max(span));
    while batch < batches {
        let here = together.min(innermost - batch % innermost).max(1);
        match together {
            0 => pieces.extend((0..m).step_by(rows).map(|row| Piece {
                batch,
                batches: 1,
                row,
                m: rows.min(m - row),
            })),
            _ => pieces.push(Piece { batch, batches: here, row: 0, m }),
        }
        batch += here;
    }
    pieces
}

/// How many blocks of i and of j a launch has, of these in all, each of so many steps: all of them unless the work is
/// long, and then some blocks of i, or one and some of its blocks of j, and never fewer than the `least` that a card
/// needs to be busy. So cut, no bit of a result changes.
fn piece(steps: f64, blocks: usize, strips: usize, least: usize) -> [usize; 2] {
    let most = ((STEPS_OF_LAUNCH / steps.max(1.0)) as usize).max(least);
    [(most / strips).clamp(1, blocks.max(1)), most.clamp(1, strips)]
}

/// Whether any block refused, when all are done.
fn any(cuda: &Cuda, name: &str, refused: Address, blocks: usize) -> Result<bool> {
    let mut bytes = vec![0; blocks * size_of::<u32>()];
    cuda.copy_out(name, refused, &mut bytes)?;
    Ok(bytes.iter().any(|&byte| byte != 0))
}

/// The numbers that `measure` wrote, when it is done.
fn largest(cuda: &Cuda, name: &str, measured: Address) -> Result<[f64; 4]> {
    let mut bytes = [0; 32];
    cuda.copy_out(name, measured, &mut bytes)?;
    let number = |at: usize| {
        bytes[at..at + 8].iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
    };
    Ok([0, 8, 16, 24].map(|at| f64::from_bits(number(at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_all_rows_and_as_many_as_there_is_room_for() {
        for (batches, m, innermost, room, most) in [
            (1, 1000, 1, usize::MAX, 1),
            (1, 1000, 1, 256, 4),
            (1_000_000, 10, 1_000_000, 4_000_000, 3),
            (60, 10, 20, 70, 9),
            (6, 100, 6, 50, 6),
        ] {
            let pieces = pieces([batches, m], innermost, room, 128);
            assert!(pieces.len() <= most, "{pieces:?}");
            let (mut next, mut rows) = ([0, 0], 0);
            for &Piece { batch, batches, row, m: here } in &pieces {
                assert_eq!([batch, row], next, "{pieces:?}");
                assert!(batches * here <= room.max(128) && (batches == 1 || here == m));
                assert_eq!(batch / innermost, (batch + batches - 1) / innermost, "one loop");
                next = if row + here < m { [batch, row + here] } else { [batch + batches, 0] };
                rows += batches * here;
            }
            assert_eq!((next, rows), ([batches, 0], batches * m));
        }
    }
}
