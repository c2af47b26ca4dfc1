//! Elementwise work: tapes over arrays of any strides.
//!
//! The walk of a call: [`run`] -> one contiguous operation: its kernel, called once -> a copy:
//! `copy` -> anything else: `plan` turns the tape into kernel calls and `chunks` runs them over the
//! loop nest. `kernels` holds the table of loops, `by_hand` what replaces its cells, `cast` the casts,
//! `moves` everything that moves bytes (`turn` its tiles), `stream` stores past the caches. Shapes,
//! dtypes and overlap are settled above the contract.
//!
//! Results do not depend on how work is cut: every element is computed by itself.

pub(crate) mod by_hand;
pub(crate) mod cast;
mod chunks;
mod copy;
pub(crate) mod kernels;
pub(crate) mod moves;
mod plan;
mod stream;
mod turn;
mod walk;

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Session};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};
use tilework_tape::{Action, Step};

use crate::isa::Isa;
use crate::pool;
use chunks::{CHUNK, Feed, Job};
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
    let only = OnlyCall::of(map);
    if let Some(only) = only
        && run_contiguous(session, map, only)
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

/// Elements of the largest work that needs no more than its kernel and a few buffers.
const SMALL: usize = CHUNK / 16;

/// A line of buffers, aligned for kernels.
#[repr(align(64))]
struct Buffers(MaybeUninit<[[u8; CHUNK]; 4]>);

/// One kernel on contiguous arrays: no loops, no plan. False, with nothing done, if it is anything
/// else, or if the result had better go past the caches.
fn run_contiguous(session: &Session<'_>, map: &Map<'_>, only: OnlyCall) -> bool {
    let OnlyCall { kernel, sizes, cost } = only;
    let layout = map.output.layout();
    let n = layout.len();
    let out_size = map.output.dtype().size();
    let few = n <= SMALL;
    if !layout.is_contiguous() || stream::pays(n * out_size) {
        return false;
    }
    let out = map.output.pointer(session).wrapping_add(layout.offset() * out_size);
    let mut buffers = Buffers(MaybeUninit::uninit());
    let mut buffer = |k: usize| buffers.0.as_mut_ptr().cast::<u8>().wrapping_add(k * CHUNK);
    let mut operands = [out.cast_const(); 3];
    let mut in_place = false;
    let mut traffic = out_size;
    for (k, input) in map.inputs.iter().enumerate() {
        operands[k] = match input {
            Operand::View(view) if view.layout().is_contiguous() => {
                let start = view.layout().offset() * sizes[k];
                view.pointer(session).wrapping_add(start)
            }
            Operand::Scalar(scalar) if few => {
                let to = buffer(k);
                // SAFETY: a buffer holds 16 bytes for each of a few elements.
                unsafe { moves::fill(sizes[k], n, (to, 1), scalar.bytes().as_ptr()) };
                to.cast_const()
            }
            _ => return false,
        };
        in_place |= operands[k] == out.cast_const();
        traffic += sizes[k];
    }
    if in_place && !few {
        return false;
    }
    let whole = Whole { kernel, operands, sizes, out, out_size };
    if in_place {
        let to = buffer(3);
        let apart = Whole { out: to, ..whole };
        // SAFETY: as below; a buffer holds a few elements and is nobody's operand.
        unsafe {
            apart.part(0..n);
            out.copy_from_nonoverlapping(to, n * out_size);
        }
        return true;
    }
    pool::for_ranges(n, piece_elements(traffic + cost), &|elements| {
        // SAFETY: all views have `n` elements inside their blocks (the invariant of views), one
        // after the other; the session holds the blocks. No operand is where the results go, so
        // none overlaps it. Buffers hold a few elements, which are one range.
        unsafe { whole.part(elements) }
    });
    true
}

/// A kernel and the contiguous arrays that it runs over.
struct Whole {
    kernel: Kernel,
    operands: [*const u8; 3],
    /// Bytes of the operands' elements.
    sizes: [usize; 3],
    out: *mut u8,
    out_size: usize,
}

// SAFETY: an address book; the session that it was made under outlives all work on it, and parts
// that are run at a time write different elements.
unsafe impl Sync for Whole {}

impl Whole {
    /// Some of the elements.
    ///
    /// # Safety
    /// They are inside of the arrays, whose blocks are held, and `out` is none of the operands.
    unsafe fn part(&self, elements: Range<usize>) {
        let at = |k: usize| self.operands[k].wrapping_add(elements.start * self.sizes[k]);
        let out = self.out.wrapping_add(elements.start * self.out_size);
        // SAFETY: the caller's promise; the kernel is one of the current instruction set.
        unsafe { (self.kernel)(elements.len(), out, at(0), at(1), at(2)) }
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
