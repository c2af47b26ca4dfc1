//! From a tape to a list of kernel calls over a few buffers.
//!
//! Steps that nobody needs are left out, casts become chains, operations on halves are widened and
//! narrowed. Every value gets a *place*: inputs first, then constants, then buffers, then the
//! output. Buffers are reused when their value is dead, but a call never gets an operand's buffer
//! for its result: kernels need them apart. May assume a tape that [`Tape::check`] accepts, with
//! one output and slots of length 1. Called by `map::run` for whatever is not a single kernel.

use smallvec::{SmallVec, smallvec};
use tilework_error::{Error, Result};
use tilework_ops::{DType, Scalar};
use tilework_tape::{Action, Tape};

use super::kernels::{self, Kernel};
use super::{cast, moves};
use crate::isa::Isa;

/// Where a value is: an index into [`Program`]'s places.
pub(super) type Place = u16;

/// One kernel call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) kernel: Kernel,
    pub(super) out: Place,
    pub(super) operands: [Place; 3],
}

/// Kernel calls that compute the output from the inputs, chunk by chunk.
#[derive(Debug)]
pub(super) struct Program {
    /// How many inputs there are: the first places.
    pub(super) inputs: usize,
    /// Values that are the same everywhere: the places after the inputs.
    pub(super) constants: SmallVec<[Scalar; 2]>,
    /// How many buffers there are: the places after the constants. The output's place is last.
    pub(super) buffers: usize,
    /// Calls whose operands are the same everywhere: done once, over a whole chunk.
    pub(super) once: SmallVec<[Call; 2]>,
    /// The calls of every chunk.
    pub(super) calls: SmallVec<[Call; 4]>,
    /// Where the result is: the output's place, unless no call computes it.
    pub(super) result: Place,
    /// Bytes of the widest element of any place.
    pub(super) widest: usize,
}

impl Program {
    /// The program of one call on the inputs in order.
    pub(super) fn of_one(kernel: Kernel, inputs: usize, widest: usize) -> Program {
        let out = inputs as Place;
        let operand = |k: usize| k.min(inputs - 1) as Place;
        Program {
            inputs,
            constants: SmallVec::new(),
            buffers: 0,
            once: SmallVec::new(),
            calls: smallvec![Call { kernel, out, operands: [operand(0), operand(1), operand(2)] }],
            result: out,
            widest,
        }
    }

    /// The place of the output.
    pub(super) fn output(&self) -> Place {
        (self.inputs + self.constants.len() + self.buffers) as Place
    }

    /// The program of a tape; `varies` says of each input whether it is an array.
    pub(super) fn new(tape: &Tape, varies: &[bool]) -> Result<Program> {
        let mut plan = Plan::new(tape, varies);
        plan.translate()?;
        Ok(plan.finish())
    }
}

/// A value that is being planned: what it is and whether it varies over the array.
#[derive(Clone, Copy)]
struct Known {
    dtype: DType,
    varies: bool,
}

/// Calls over values, before values have places. Values are numbered: inputs, constants and the
/// results of calls, in order of appearance.
struct Plan<'a> {
    tape: &'a Tape,
    values: SmallVec<[Known; 12]>,
    constants: SmallVec<[(u16, Scalar); 2]>,
    calls: SmallVec<[Call; 8]>,
    /// The value of each slot of the tape, once it is planned.
    of_slot: SmallVec<[u16; 12]>,
    /// Halves that have been widened already: (value, its float32).
    widened: SmallVec<[(u16, u16); 4]>,
}

const UNPLANNED: u16 = u16::MAX;

impl<'a> Plan<'a> {
    fn new(tape: &'a Tape, varies: &[bool]) -> Plan<'a> {
        let known = |(input, &varies): (&tilework_tape::Input, &bool)| Known {
            dtype: input.slot.dtype,
            varies,
        };
        Plan {
            tape,
            values: tape.inputs().iter().zip(varies).map(known).collect(),
            constants: SmallVec::new(),
            calls: SmallVec::new(),
            of_slot: (0..tape.inputs().len() as u16).collect(),
            widened: SmallVec::new(),
        }
    }

    /// Which slots the output depends on.
    fn needed(&self) -> SmallVec<[bool; 12]> {
        let mut needed: SmallVec<[bool; 12]> = smallvec![false; self.tape.slots()];
        needed[self.tape.outputs()[0] as usize] = true;
        let inputs = self.tape.inputs().len();
        for (k, step) in self.tape.steps().iter().enumerate().rev() {
            if needed[inputs + k] {
                step.operands.iter().for_each(|&slot| needed[slot as usize] = true);
            }
        }
        needed
    }

    fn translate(&mut self) -> Result<()> {
        let needed = self.needed();
        let (tape, isa) = (self.tape, Isa::current());
        for (k, step) in tape.steps().iter().enumerate() {
            if !needed[tape.inputs().len() + k] {
                self.of_slot.push(UNPLANNED);
                continue;
            }
            let operands: SmallVec<[u16; 3]> =
                step.operands.iter().map(|&slot| self.of_slot[slot as usize]).collect();
            let dtype = step.slot.dtype;
            let value = match &step.action {
                Action::Apply(id) => {
                    let operands: SmallVec<[u16; 3]> =
                        operands.iter().map(|&value| self.widen(value)).collect();
                    let computes = self.values[operands[0] as usize].dtype;
                    let kernel = kernels::kernel(*id, computes).ok_or_else(|| {
                        Error::dtype(id.row().name, format!("no kernel for {computes}"))
                    })?;
                    let value = self.call(kernel, &operands, id.row().result(computes));
                    self.cast(value, dtype)
                }
                Action::Cast => self.cast(operands[0], dtype),
                Action::Select => self.call(moves::select(dtype.size(), isa), &operands, dtype),
                Action::Constant(scalar) => {
                    let value = self.define(Known { dtype, varies: false });
                    self.constants.push((value, *scalar));
                    value
                }
                other => {
                    let message = format!("{other:?} is not an action of maps");
                    return Err(Error::unsupported("map", message));
                }
            };
            self.of_slot.push(value);
        }
        Ok(())
    }

    fn define(&mut self, known: Known) -> u16 {
        self.values.push(known);
        (self.values.len() - 1) as u16
    }

    fn call(&mut self, kernel: Kernel, operands: &[u16], dtype: DType) -> u16 {
        let varies = operands.iter().any(|&value| self.values[value as usize].varies);
        let out = self.define(Known { dtype, varies });
        let operand = |k: usize| operands[k.min(operands.len() - 1)];
        self.calls.push(Call { kernel, out, operands: [operand(0), operand(1), operand(2)] });
        out
    }

    fn cast(&mut self, mut value: u16, dtype: DType) -> u16 {
        for &(kernel, gives) in cast::chain(self.values[value as usize].dtype, dtype) {
            value = self.call(kernel, &[value], gives);
        }
        value
    }

    /// The value in what it computes in.
    fn widen(&mut self, value: u16) -> u16 {
        let dtype = self.values[value as usize].dtype;
        if dtype.computes_in() == dtype {
            return value;
        }
        if let Some(&(_, wide)) = self.widened.iter().find(|(half, _)| *half == value) {
            return wide;
        }
        let wide = self.cast(value, dtype.computes_in());
        self.widened.push((value, wide));
        wide
    }

    /// Gives every value a place.
    fn finish(self) -> Program {
        let inputs = self.tape.inputs().len();
        let result = self.of_slot[self.tape.outputs()[0] as usize];
        let mut places: SmallVec<[Place; 12]> = smallvec![Place::MAX; self.values.len()];
        for (input, place) in places.iter_mut().enumerate().take(inputs) {
            *place = input as Place;
        }
        for (k, &(value, _)) in self.constants.iter().enumerate() {
            places[value as usize] = (inputs + k) as Place;
        }
        let first = (inputs + self.constants.len()) as Place;
        let mut last_use: SmallVec<[usize; 12]> = smallvec![0; self.values.len()];
        for (k, call) in self.calls.iter().enumerate() {
            call.operands.iter().for_each(|&value| last_use[value as usize] = k);
        }
        // The result of a varying last call goes to the output directly.
        let direct = self.calls.last().is_some_and(|call| call.out == result)
            && self.values[result as usize].varies;
        let mut free: SmallVec<[Place; 8]> = SmallVec::new();
        let mut buffers: Place = 0;
        for (k, call) in self.calls.iter().enumerate() {
            let varies = self.values[call.out as usize].varies;
            if !(direct && call.out == result) {
                // What is computed once must outlive all chunks: it is never freed, and neither
                // does it take the place of something else.
                let place = if varies { free.pop() } else { None };
                places[call.out as usize] = place.unwrap_or_else(|| {
                    buffers += 1;
                    first + buffers - 1
                });
            }
            // Only now may the operands' buffers go, so that the result has not got one of them.
            let mut dead = call.operands;
            dead.sort_unstable();
            for (i, &value) in dead.iter().enumerate() {
                let again = i > 0 && dead[i - 1] == value;
                let place = places[value as usize];
                let known = self.values[value as usize];
                if !again
                    && last_use[value as usize] == k
                    && known.varies
                    && place >= first
                    && value != result
                {
                    free.push(place);
                }
            }
        }
        if direct {
            places[result as usize] = first + buffers;
        }
        let place = |call: &Call| Call {
            kernel: call.kernel,
            out: places[call.out as usize],
            operands: call.operands.map(|value| places[value as usize]),
        };
        let varies = |call: &&Call| self.values[call.out as usize].varies;
        Program {
            inputs,
            constants: self.constants.iter().map(|(_, scalar)| *scalar).collect(),
            buffers: buffers as usize,
            once: self.calls.iter().filter(|call| !varies(call)).map(place).collect(),
            calls: self.calls.iter().filter(varies).map(place).collect(),
            result: places[result as usize],
            widest: self.values.iter().map(|known| known.dtype.size()).max().unwrap_or(1),
        }
    }
}
