//! Launches of plans whose pairs threads take: slice by slice, and some rows after others where what is kept of them
//! would take too much memory; of long work some blocks after others.
//!
//! Of two plans, the second does what blocks of the first refuse. Called by `launching`.

use std::sync::Arc;

use tilework_backend::Session;
use tilework_error::Result;

use super::choice::Choice;
use super::course::{Course, STEPS_OF_LAUNCH};
use super::cut::{BLOCKS_OF_LAUNCH, Cut, MERGE_THREADS, PARTIAL_BYTES};
use super::plan::Plan;
use super::print::Unit;
use super::slices::Of;
use super::words::{self, States, shape};
use super::{Job, key};
use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::{Address, Handle};
use crate::launch::{self, Args, Width};
use crate::memory::Block;

/// Bytes of what is noted of a row between slices of its ranks.
const LAST_BYTES: usize = 16;

/// A share of a call, as fractions of all: what is done before it, and how much it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    before: f64,
    own: f64,
}

impl Share {
    /// All of a call.
    pub(super) const WHOLE: Share = Share { before: 0.0, own: 1.0 };

    /// Part `k` of so many equal ones.
    pub(super) fn part(self, k: usize, count: usize) -> Share {
        let own = self.own / count as f64;
        Share { before: self.before + k as f64 * own, own }
    }

    /// The fraction of the call that is done when this one of the share is.
    fn done(self, fraction: f64) -> f64 {
        self.before + self.own * fraction
    }
}

/// Rows that are launched together.
struct Rows {
    /// Where operands begin, as kernels read it.
    nest: Vec<u8>,
    batches: usize,
    /// Rows of a batch.
    m: usize,
    cut: Cut,
    /// Where ranks are taken in slices: the addresses at which the number and the index of each row's rank are noted that
    /// the next slice comes after, and the place of that rank in its slice.
    last: [u64; 3],
    share: Share,
}

/// One of the forms that are launched together.
struct Form<'r> {
    plan: &'r Plan<'r>,
    /// Held as long as its function may be launched.
    _module: Arc<Module>,
    function: Handle,
    inputs: Vec<u8>,
    choice: Choice,
}

/// What rows have beside their results.
struct Buffers {
    states: Option<Block>,
    value_bytes: usize,
    /// Whether each block refused.
    refused: Option<Block>,
}

impl Buffers {
    fn new(cuda: &Cuda, plans: &[&Plan<'_>], rows: &Rows, blocks: usize) -> Result<Buffers> {
        let (folding, count) = (&plans[0].folding, rows.cut.ranges * rows.batches * rows.m);
        let [values, indices] =
            [folding.monoid().values(folding.shape), folding.monoid().indices(folding.shape)];
        let value_bytes = (count * values * folding.accumulates.size()).next_multiple_of(8);
        let states = match rows.cut.ranges {
            1 => None,
            _ => Some(cuda.allocate_block(value_bytes + count * indices * 8)?),
        };
        let refused = match plans.len() {
            1 => None,
            _ => Some(cuda.allocate_block(blocks * size_of::<u32>())?),
        };
        Ok(Buffers { states, value_bytes, refused })
    }

    fn states(&self, last: [u64; 3]) -> States {
        let at = self.states.as_ref().map_or(0, |block| block.address);
        States { states: [at, at + self.value_bytes as u64], last }
    }

    fn refused(&self) -> Address {
        self.refused.as_ref().map_or(0, |block| block.address)
    }
}

/// The blocks of i and of j that launches have.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    all: [usize; 2],
    /// The most of them in one launch.
    most: [usize; 2],
    /// Steps of a block.
    steps: f64,
}

impl Blocks {
    /// All blocks in one launch, or in several where the work is long: each has some blocks of i with all of j, or one
    /// block of i with some of j, and at least as many as a card needs to be busy (`least`). So cut, no bit of a result
    /// changes.
    fn new(steps: f64, [blocks, strips]: [usize; 2], least: usize) -> Blocks {
        let most = ((STEPS_OF_LAUNCH / steps.max(1.0)) as usize).max(least);
        let most = [(most / strips).clamp(1, blocks.max(1)), most.clamp(1, strips)];
        Blocks { all: [blocks, strips], most, steps }
    }

    /// The first blocks of each launch, and how many it has.
    fn launches(self) -> impl Iterator<Item = [[usize; 2]; 2]> {
        let [all, most] = [self.all, self.most];
        let firsts = (0..all[0]).step_by(most[0]);
        let firsts = firsts.flat_map(move |i| (0..all[1]).step_by(most[1]).map(move |j| [i, j]));
        firsts.map(move |first| [first, [0, 1].map(|k| most[k].min(all[k] - first[k]))])
    }

    /// The fraction of all blocks that is done before a launch.
    fn before(&self, [first, here]: [[usize; 2]; 2]) -> f64 {
        let [blocks, strips] = self.all;
        (first[0] * strips + here[0] * first[1]) as f64 / (blocks * strips) as f64
    }
}

impl Job<'_> {
    /// Launches plans for all rows, in pieces whose states there is memory for: a scheme that is asked for has ranges
    /// however many rows there are.
    pub(super) fn launch_plans(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plans: &[&Plan<'_>],
        choice: Choice,
        share: Share,
        course: &Course<'_>,
    ) -> Result<()> {
        let (plan, cut) = (plans[0], plans[0].cut);
        let span = plan.tiling.span();
        let ranks = plan.slices.filter(|slices| slices.of == Of::Ranks);
        let innermost = self.batches.lens.last().copied().unwrap_or(1);
        let room = PARTIAL_BYTES.checked_div(self.row_bytes(plans)).unwrap_or(usize::MAX);
        let pieces = pieces([self.sizes.batches, self.sizes.m], innermost, room, span);
        let nests = self.nests(plan);
        let firsts: Vec<usize> = ranks.map_or(Vec::new(), |ranks| ranks.firsts().collect());
        for (number, &Piece { batch, batches, row, m }) in pieces.iter().enumerate() {
            // The rank of each row that those of the next slice come after: none yet.
            let last = match ranks {
                Some(_) => Some(cuda.allocate_zeroed(batches * m * LAST_BYTES)?),
                None => None,
            };
            for (k, nest) in nests.iter().enumerate() {
                let nest = match pieces.len() {
                    1 => nest.encode(Width::Wide),
                    _ => self.moved(plan, &nest.run(batch, batches), [row, 0]).encode(Width::Wide),
                };
                // Where rows are few a block has all of them, in several ranges.
                let blocks = if m == self.sizes.m { cut.blocks } else { m.div_ceil(span) };
                let cut = Cut { blocks, ..cut };
                let place = firsts.get(k + 1).map_or(0, |next| next - firsts[k] - 1);
                let last = last.as_ref().map_or([0; 3], |block| {
                    [block.address, block.address + (batches * m * 8) as u64, place as u64]
                });
                let count = pieces.len() * nests.len();
                let share = share.part(number * nests.len() + k, count);
                let rows = Rows { nest, batches, m, cut, last, share };
                self.launch_rows(cuda, session, plans, &rows, choice, course)?;
            }
        }
        Ok(())
    }

    /// Bytes of what is kept of a row beside its results.
    fn row_bytes(&self, plans: &[&Plan<'_>]) -> usize {
        let (plan, cut) = (plans[0], plans[0].cut);
        let states = if cut.ranges > 1 { cut.ranges * plan.folding.state_bytes() } else { 0 };
        // Whether each block refused.
        let flags =
            cut.blocks * cut.ranges.div_ceil(plan.tiling.ranges_per_block) * size_of::<u32>();
        let flags = if plans.len() > 1 { flags.div_ceil(self.sizes.m) } else { 0 };
        let ranks = plan.slices.is_some_and(|slices| slices.of == Of::Ranks);
        states + flags + usize::from(ranks) * LAST_BYTES
    }

    /// Launches plans for some rows, and merges their ranges.
    fn launch_rows<'p>(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plans: &[&'p Plan<'p>],
        rows: &Rows,
        choice: Choice,
        course: &Course<'_>,
    ) -> Result<()> {
        let plan = plans[0];
        let strips = rows.cut.ranges.div_ceil(plan.tiling.ranges_per_block);
        let count = rows.batches * rows.cut.blocks * strips;
        let buffers = Buffers::new(cuda, plans, rows, count)?;
        let states = buffers.states(rows.last);
        let steps = self.sizes.m as f64 * self.sizes.n as f64 * plan.body as f64;
        let steps = steps / (plan.cut.blocks * strips) as f64;
        let least = self.sizes.multiprocessors * BLOCKS_OF_LAUNCH;
        let blocks = Blocks::new(steps, [rows.batches * rows.cut.blocks, strips], least);
        let form = |plan: &&'p Plan<'p>| {
            let module = self.module(cuda, plan, Unit::Pairs)?;
            let function = cuda.function(self.name, &module, c"reduce")?;
            // A second plan may have several blocks for one of the first.
            let blocks_for_one = plan.cut.blocks / plans[0].cut.blocks;
            let choice = Choice { refused: buffers.refused(), blocks_for_one, ..choice };
            let inputs = self.inputs(session, plan);
            Ok(Form { plan, _module: module, function, inputs, choice })
        };
        let launch = |plans: &[&'p Plan<'p>]| {
            let forms = plans.iter().map(form).collect::<Result<Vec<_>>>()?;
            self.launch_over(cuda, session, &forms, rows, (blocks, states), course)
        };
        // What is still being compiled is waited for only if something was refused.
        let there = plans.iter().position(|plan| !cuda.is_loaded(&key::of(plan, Unit::Pairs)));
        let (now, later) = plans.split_at(there.unwrap_or(plans.len()).max(1));
        launch(now)?;
        if !later.is_empty() && any(cuda, self.name, buffers.refused(), count)? {
            launch(later)?;
        }
        if rows.cut.ranges > 1 {
            let args = Args::new().bytes(&rows.nest).bytes(&self.shape_of(rows, [0, 0], 1));
            let args = self.ends(session, plan, args, states, choice);
            self.merge(cuda, plan, args, rows.batches * rows.m * rows.cut.lanes)?;
        }
        Ok(())
    }

    /// Launches forms for all blocks; of each launch of some blocks, one form after the other.
    fn launch_over(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        forms: &[Form<'_>],
        rows: &Rows,
        (blocks, states): (Blocks, States),
        course: &Course<'_>,
    ) -> Result<()> {
        for [first, here] in blocks.launches() {
            if course.is_due((here[0] * here[1]) as f64 * blocks.steps) {
                let done = rows.share.done(blocks.before([first, here]));
                course.go_on(cuda, self.name, done)?;
            }
            for Form { plan, function, inputs, choice, .. } in forms {
                let shape = self.shape_of(rows, first, choice.blocks_for_one);
                let args = Args::new().bytes(&rows.nest).bytes(inputs).bytes(&shape);
                let args = self.ends(session, plan, args, states, *choice);
                let blocks = [here[0] * choice.blocks_for_one, here[1]];
                let grid = launch::grid(self.name, blocks, plan.tiling.threads)?;
                let grid = plan.asked.map_or(grid, |it| grid.asking(it.bytes, it.declared));
                // SAFETY: the source declares these arguments; rows are those of checked layouts,
                // and the buffers have room for a state of every row and range, and a number of
                // every block.
                unsafe { cuda.launch(self.name, *function, grid, args)? };
            }
        }
        Ok(())
    }

    /// `Shape` of some rows, for a form that has so many blocks for one of the first form.
    fn shape_of(&self, rows: &Rows, first: [usize; 2], blocks_for_one: usize) -> Vec<u8> {
        let cut = Cut { blocks: rows.cut.blocks * blocks_for_one, ..rows.cut };
        let first = [first[0] * blocks_for_one, first[1]];
        shape([rows.m, self.sizes.n], self.request.start, cut, 0..rows.batches, first)
    }

    /// Launches the kernel that joins the ranges of rows, by so many threads for each component that is merged apart.
    /// `args` are all arguments but the last, which says how many of these components there are.
    pub(super) fn merge(
        &self,
        cuda: &Cuda,
        plan: &Plan<'_>,
        args: Args,
        threads: usize,
    ) -> Result<()> {
        let apart = plan.folding.apart();
        let blocks = (threads * apart).div_ceil(MERGE_THREADS);
        let grid = launch::grid(self.name, [blocks, 1], MERGE_THREADS)?;
        let module = self.module(cuda, plan, Unit::Merge)?;
        let function = cuda.function(self.name, &module, c"merge")?;
        // SAFETY: the source declares these arguments; the states are those of all rows and ranges, and rows of outputs
        // are those of checked layouts. The stream keeps the order of all.
        unsafe { cuda.launch(self.name, function, grid, args.bytes(&words::apart(apart))) }
    }
}

/// Rows whose states there is memory for at a time: of whole batches, or some of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    batch: usize,
    batches: usize,
    row: usize,
    /// Rows of a batch.
    m: usize,
}

/// All rows in pieces that there is `room` for, or of the rows of one block (`span`) where that is more. Pieces are batches
/// that follow each other in the innermost loop over them, or some rows of one batch where there is no room for all of it.
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

/// Waits for all blocks, and reads whether any of them refused.
fn any(cuda: &Cuda, name: &str, refused: Address, blocks: usize) -> Result<bool> {
    let mut bytes = vec![0; blocks * size_of::<u32>()];
    cuda.copy_out(name, refused, &mut bytes)?;
    Ok(bytes.iter().any(|&byte| byte != 0))
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
