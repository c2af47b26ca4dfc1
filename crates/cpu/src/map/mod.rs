//! Elementwise work: tapes over arrays of any strides.
//!
//! The walk of a call: [`run`] -> a write under a mask: `masked` -> one contiguous operation: its kernel
//! (`whole`) -> a copy: `copy` -> anything else: `plan` turns the tape into kernel calls and `chunks`
//! runs them over the loop nest. `kernels` holds the table of loops, `by_hand` what replaces its cells,
//! `divide` some of that, `cast` the casts, `moves` everything that moves bytes (`turn` its tiles, `rows`
//! what is short and many), `stream` stores past the caches. Shapes, dtypes and overlap are settled above the contract.
//!
//! Results do not depend on how work is cut: every element is computed by itself.

mod arena;
pub(crate) mod by_hand;
pub(crate) mod cast;
mod chunks;
mod copy;
mod divide;
pub(crate) mod kernels;
mod masked;
pub(crate) mod moves;
mod plan;
mod rows;
mod stream;
mod turn;
mod walk;
mod whole;

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Session};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};
use tilework_tape::{Action, Step};

use crate::isa::Isa;
use arena::CHUNK;
use chunks::{Feed, Job};
use kernels::{ARITHMETIC, Chosen, Kernel};
use plan::Program;

/// How much work is worth a piece of its own, in bytes read and written: the one threshold of
/// elementwise work. A piece takes some ten microseconds, a few times what waking a thread costs.
pub(crate) const PIECE: usize = 256 << 10;

/// Elements of a piece where one costs so many bytes: whole cache lines of every dtype.
fn piece_elements(cost: usize) -> usize {
    (PIECE / cost.max(1)).next_multiple_of(CHUNK)
}

/// Does what a `Map` request asks.
pub(crate) fn run(session: &Session<'_>, map: &Map<'_>) -> Result<()> {
    if masked::run(session, map) {
        return Ok(());
    }
    let only = OnlyCall::of(map);
    if let Some(only) = only
        && whole::run(session, map, only)
    {
        return Ok(());
    }
    let output = map.tape.outputs()[0] as usize;
    match map.inputs.get(output) {
        Some(Operand::View(view)) => copy::copy(session, view, &map.output),
        Some(Operand::Scalar(scalar)) => copy::fill(session, scalar, &map.output),
        None => return run_tape(session, map, only),
    }
    Ok(())
}

/// A tape that is one call on its inputs in order.
#[derive(Clone, Copy)]
struct OnlyCall {
    kernel: Kernel,
    /// What an element costs: see [`Chosen`].
    cost: usize,
    /// Bytes of the operands' elements.
    sizes: [usize; 3],
}

impl OnlyCall {
    /// None for any other tape.
    #[inline]
    fn of(map: &Map<'_>) -> Option<OnlyCall> {
        let inputs = map.tape.inputs();
        if let Some(id) = map.tape.single() {
            let dtype = inputs[0].slot.dtype;
            let Chosen { kernel, cost } = kernels::chosen(id, dtype)?;
            return Some(OnlyCall { kernel, cost, sizes: [dtype.size(); 3] });
        }
        let [Step { action, operands, slot }] = map.tape.steps() else { return None };
        let kernel = match (action, &operands[..]) {
            (Action::Cast, [0]) => match cast::chain(inputs[0].slot.dtype, slot.dtype) {
                [(kernel, _)] => *kernel,
                _ => return None,
            },
            (Action::Select, [0, 1, 2]) => moves::select(slot.dtype.size(), Isa::current()),
            _ => return None,
        };
        if map.tape.outputs()[0] as usize != inputs.len() {
            return None;
        }
        let mut sizes = [1; 3];
        for (size, input) in sizes.iter_mut().zip(inputs) {
            *size = input.slot.dtype.size();
        }
        Some(OnlyCall { kernel, cost: ARITHMETIC, sizes })
    }
}

/// Any tape that computes something.
fn run_tape(session: &Session<'_>, map: &Map<'_>, only: Option<OnlyCall>) -> Result<()> {
    let layout = map.output.layout();
    let mut layouts: SmallVec<[&Layout; 4]> = SmallVec::new();
    layouts.push(layout);
    let mut feeds: SmallVec<[Feed; 4]> = SmallVec::new();
    let mut varies: SmallVec<[bool; 4]> = SmallVec::new();
    for input in map.inputs {
        varies.push(matches!(input, Operand::View(_)));
        feeds.push(match input {
            Operand::Scalar(scalar) => Feed::Value(*scalar),
            Operand::View(view) => {
                layouts.push(view.layout());
                Feed::Array {
                    base: view.pointer(session),
                    size: view.dtype().size(),
                    operand: layouts.len() - 1,
                }
            }
        });
    }
    let program = match only {
        Some(OnlyCall { kernel, sizes: [a, b, c], .. }) if varies.contains(&true) => {
            let widest = map.output.dtype().size().max(a).max(b).max(c);
            Program::of_one(kernel, map.inputs.len(), widest)
        }
        _ => Program::new(map.tape, &varies)?,
    };
    let nest = LoopNest::new(&layouts);
    if nest.is_empty() {
        return Ok(());
    }
    let output = (map.output.pointer(session), map.output.dtype().size());
    // By contract an input that starts where the output does is the output.
    let start = |base: *const u8, size: usize, operand: usize| {
        base.wrapping_add(nest.offsets()[operand] * size)
    };
    let out_start = start(output.0, output.1, 0);
    let is_output = |feed: &Feed| match *feed {
        Feed::Array { base, size, operand } => start(base, size, operand) == out_start,
        Feed::Value(_) => false,
    };
    let in_place = feeds.iter().any(is_output);
    let traffic = |feed: &Feed| match feed {
        Feed::Array { size, .. } => *size,
        Feed::Value(_) => 0,
    };
    let cost = output.1 + feeds.iter().map(traffic).sum::<usize>() + calls_cost(map.tape.steps());
    let job = Job { program: &program, nest: &nest, feeds, output, in_place, cost };
    // SAFETY: the nest is that of the output's and the inputs' layouts, whose positions lie inside
    // their blocks (the invariant of views); the session holds the blocks until this returns; by
    // contract the output overlaps no input unless it is the same.
    unsafe { job.run() };
    Ok(())
}

fn calls_cost(steps: &[Step]) -> usize {
    let cost = |step: &Step| match step.action {
        Action::Apply(id) => {
            kernels::chosen(id, step.slot.dtype).map_or(ARITHMETIC, |chosen| chosen.cost)
        }
        _ => ARITHMETIC,
    };
    steps.iter().map(cost).sum()
}
