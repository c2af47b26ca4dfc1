//! Straight-line programs over the operations of the table: what backends run.
//!
//! A [`Tape`] has inputs, steps and outputs. Every input and every step defines one slot, once, in
//! order; a slot holds a short vector of one dtype (of length 1 in maps over arrays, of the
//! vector's dimension in formulas over pairs), and slots of length 1 broadcast. `x.exp()` is a tape
//! of one step, `exp(-|x - y|^2)` one of four.
//!
//! Readers are many (the reference evaluates, the CPU runs kernels or assembles, CUDA prints), the
//! form is one: [`Tape::check`] says what is well formed, [`Tape::evaluate`] what it means.

#![forbid(unsafe_code)]

mod build;
mod carry;
mod evaluate;
mod print;
mod signature;
mod slice;
mod terms;
mod weighed;

pub use build::Builder;
pub use carry::Carried;
pub use slice::{Again, Slice};
pub use terms::{Term, Terms};
pub use weighed::{Difference, Factors, Weighed};

use smallvec::SmallVec;
use tilework_fork::ForkOnce;
use tilework_ops::{DType, FoldId, Id, Kind, Scalar};

/// Names a slot: inputs first, then steps, in order.
pub type SlotId = u16;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The dtype of its numbers.
    pub dtype: DType,
    /// How many there are.
    pub len: u32,
}

impl Slot {
    /// A slot of one number.
    pub fn scalar(dtype: DType) -> Slot {
        Slot { dtype, len: 1 }
    }
}

/// Which indices a slot varies with: nothing, i, j, or both.
///
/// Maps over arrays have one index and call it i. What does not vary with an index is computed
/// once and not once per index: readers group steps into sections by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Per {
    /// The same everywhere: parameters and constants.
    Once = 0,
    /// One for each i.
    I = 1,
    /// One for each j.
    J = 2,
    /// One for each pair.
    Pair = 3,
}

impl Per {
    /// Varies with whatever one of the two varies with.
    pub fn union(self, other: Per) -> Per {
        match self as u8 | other as u8 {
            0 => Per::Once,
            1 => Per::I,
            2 => Per::J,
            _ => Per::Pair,
        }
    }
}

/// A sum of products over shared axes of two row-major tensors.
///
/// The result has the free axes of the left operand followed by those of the right one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Contraction {
    /// Shape of the left operand.
    pub left: SmallVec<[u32; 4]>,
    /// Shape of the right operand.
    pub right: SmallVec<[u32; 4]>,
    /// Pairs of axes (left, right) that are summed over.
    pub over: SmallVec<[(u8, u8); 2]>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// An operation of the table, number by number.
    Apply(Id),
    /// A cast to the slot's dtype.
    Cast,
    /// The second operand where the first (bool) is true, the third elsewhere. Moves numbers
    /// without computing: bits stay.
    Select,
    /// The same constant in every place.
    Constant(Scalar),
    /// The part of the operand that begins here.
    Extract(u32),
    /// The operands one after the other.
    Concat,
    /// The operand from this place on, zeros elsewhere.
    Place(u32),
    /// A reduction along the slot to one number.
    Fold(FoldId),
    /// Sum of products of two slots.
    Dot,
    /// A contraction of two tensors.
    Contract(Box<Contraction>),
}

/// One step: an action on earlier slots that defines the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// What it reads.
    pub operands: SmallVec<[SlotId; 3]>,
    /// What it defines.
    pub slot: Slot,
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Input {
    /// What it holds.
    pub slot: Slot,
    /// What it varies with.
    pub per: Per,
}

/// A straight-line program.
#[derive(Debug, Clone, PartialEq)]
pub struct Tape {
    inputs: SmallVec<[Input; 3]>,
    steps: SmallVec<[Step; 1]>,
    outputs: SmallVec<[SlotId; 1]>,
    /// See [`Tape::single`].
    single: Option<Id>,
}

impl Tape {
    /// The inputs, which are the first slots.
    #[inline]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The steps, which define the slots after the inputs.
    #[inline]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The slots that are results.
    #[inline]
    pub fn outputs(&self) -> &[SlotId] {
        &self.outputs
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.inputs.len() + self.steps.len()
    }

    /// What slot `id` holds.
    #[inline]
    pub fn slot(&self, id: SlotId) -> Slot {
        match self.inputs.get(id as usize) {
            Some(input) => input.slot,
            None => self.steps[id as usize - self.inputs.len()].slot,
        }
    }

    /// The step that defines a slot; none for an input.
    pub fn step_of(&self, id: SlotId) -> Option<&Step> {
        usize::from(id).checked_sub(self.inputs.len()).and_then(|k| self.steps.get(k))
    }

    /// The input that a slot is, as it is or cast.
    pub fn input_of(&self, id: SlotId) -> Option<SlotId> {
        let slot = match self.step_of(id) {
            None => id,
            Some(step) if step.action == Action::Cast => step.operands[0],
            Some(_) => return None,
        };
        (usize::from(slot) < self.inputs.len()).then_some(slot)
    }

    /// The slots whose steps read one.
    pub fn users(&self, id: SlotId) -> Vec<SlotId> {
        let readers = self.steps.iter().enumerate().filter(|(_, step)| step.operands.contains(&id));
        readers.map(|(k, _)| (self.inputs.len() + k) as SlotId).collect()
    }

    /// Where a step is |p - q|^2, which backends have other forms for: the slot of the difference,
    /// and those of p and q.
    pub fn squared_difference(&self, step: &Step) -> Option<(SlotId, [SlotId; 2])> {
        let &[difference, again] = &step.operands[..] else { return None };
        let minus = self.step_of(difference)?;
        let &[p, q] = &minus.operands[..] else { return None };
        let is_square = step.action == Action::Dot
            && difference == again
            && minus.action == Action::Apply(Id::Subtract);
        is_square.then_some((difference, [p, q]))
    }

    /// What each slot varies with.
    pub fn sections(&self) -> Vec<Per> {
        let mut per: Vec<Per> = self.inputs.iter().map(|input| input.per).collect();
        for step in &self.steps {
            let of_step = step.operands.iter().map(|&id| per[id as usize]);
            per.push(of_step.fold(Per::Once, Per::union));
        }
        per
    }

    /// The tape that gives its only input back: a copy.
    pub fn copy(dtype: DType) -> Tape {
        Tape {
            inputs: [number(dtype)].into_iter().collect(),
            steps: SmallVec::new(),
            outputs: [0].into_iter().collect(),
            single: None,
        }
    }

    /// The tape that casts its only input.
    pub fn cast(from: DType, to: DType) -> Tape {
        if from == to {
            return Tape::copy(from);
        }
        Tape {
            inputs: [number(from)].into_iter().collect(),
            steps: [step(Action::Cast, &[0], to)].into_iter().collect(),
            outputs: [1].into_iter().collect(),
            single: None,
        }
    }

    /// The tape of one operation on numbers of `dtype`, which it must compute in.
    pub fn apply(id: Id, dtype: DType) -> Tape {
        let arity = id.row().arity;
        let operands = [0, 1, 2];
        Tape {
            inputs: (0..arity).map(|_| number(dtype)).collect(),
            steps: [step(Action::Apply(id), &operands[..arity], id.row().result(dtype))]
                .into_iter()
                .collect(),
            outputs: [arity as SlotId].into_iter().collect(),
            single: Some(id),
        }
    }

    /// [`Tape::apply`], made once for each operation and dtype: what small arrays need.
    #[inline]
    pub fn call(id: Id, dtype: DType) -> &'static Tape {
        static CALLS: [ForkOnce<Tape>; tilework_ops::COUNT * DType::COUNT] =
            [const { ForkOnce::new() }; tilework_ops::COUNT * DType::COUNT];
        let call = &CALLS[id as usize * DType::COUNT + dtype as usize];
        call.get_or_make(|| Tape::apply(id, dtype))
    }

    /// [`Tape::cast`], made once for each pair of dtypes, as [`Tape::call`] is.
    #[inline]
    pub fn casting(from: DType, to: DType) -> &'static Tape {
        static CASTS: [ForkOnce<Tape>; DType::COUNT * DType::COUNT] =
            [const { ForkOnce::new() }; DType::COUNT * DType::COUNT];
        let cast = &CASTS[from as usize * DType::COUNT + to as usize];
        cast.get_or_make(|| Tape::cast(from, to))
    }

    /// [`Tape::select`], made once for each dtype, as [`Tape::call`] is.
    #[inline]
    pub fn selecting(dtype: DType) -> &'static Tape {
        static SELECTS: [ForkOnce<Tape>; DType::COUNT] = [const { ForkOnce::new() }; DType::COUNT];
        SELECTS[dtype as usize].get_or_make(|| Tape::select(dtype))
    }

    /// The tape of one operation that casts inputs of these dtypes to `dtype` first. Comparisons of
    /// uint64 with integers that have a sign are exact, though no dtype holds both.
    pub fn apply_to(id: Id, inputs: &[DType], dtype: DType) -> Tape {
        if inputs.iter().all(|input| *input == dtype) {
            return Tape::apply(id, dtype);
        }
        if let (true, &[left, right]) = (id.row().ordered, inputs) {
            match (left.kind(), right.kind()) {
                (Kind::Signed, _) if right == DType::UInt64 => {
                    return Tape::compare(id, left, true);
                }
                (_, Kind::Signed) if left == DType::UInt64 => {
                    return Tape::compare(id, right, false);
                }
                _ => {}
            }
        }
        let mut build = Builder::new();
        let slots: SmallVec<[SlotId; 3]> =
            inputs.iter().map(|input| build.input(Slot::scalar(*input), Per::I)).collect();
        let slots: SmallVec<[SlotId; 3]> =
            slots.into_iter().map(|slot| build.cast(slot, dtype)).collect();
        let result = build.push(Action::Apply(id), &slots, Slot::scalar(id.row().result(dtype)));
        build.finish_unchecked(&[result])
    }

    /// The comparison of uint64 with integers of the dtype `signed`, which stand on the left or on
    /// the right: as uint64, but a negative number is the smaller one.
    fn compare(id: Id, signed: DType, on_the_left: bool) -> Tape {
        let mut build = Builder::new();
        let (left, right) =
            if on_the_left { (signed, DType::UInt64) } else { (DType::UInt64, signed) };
        let inputs = [left, right].map(|dtype| build.input(Slot::scalar(dtype), Per::I));
        let zero = build.constant(Scalar::zero(signed), 1);
        let [a, b] = inputs.map(|input| build.cast(input, DType::UInt64));
        let mut ask = |id: Id, a: SlotId, b: SlotId| {
            build.push(Action::Apply(id), &[a, b], Slot::scalar(DType::Bool))
        };
        let negative = ask(Id::Less, inputs[usize::from(!on_the_left)], zero);
        let (less, greater) = (ask(Id::Less, a, b), ask(Id::Greater, a, b));
        // Of bools, `Less` is "not the first, but the second".
        let (less, greater) = match on_the_left {
            true => (ask(Id::BitwiseOr, negative, less), ask(Id::Less, negative, greater)),
            false => (ask(Id::Less, negative, less), ask(Id::BitwiseOr, negative, greater)),
        };
        let result = ask(id, greater, less);
        build.finish_unchecked(&[result])
    }

    /// The tape that chooses between its second and third input by its first.
    pub fn select(dtype: DType) -> Tape {
        Tape {
            inputs: [number(DType::Bool), number(dtype), number(dtype)].into_iter().collect(),
            steps: [step(Action::Select, &[0, 1, 2], dtype)].into_iter().collect(),
            outputs: [3].into_iter().collect(),
            single: None,
        }
    }

    /// The tape with one more step on its only output, a number of `dtype`.
    pub fn then(mut self, action: Action, dtype: DType) -> Tape {
        self.single = None;
        self.steps.push(step(action, &self.outputs.clone(), dtype));
        self.outputs[0] = (self.inputs.len() + self.steps.len() - 1) as SlotId;
        self
    }

    /// The tape with fewer components of one input, if these go through elementwise steps only, to the
    /// first output: that has as many then, each of which is computed as before.
    pub fn narrowed(&self, input: usize, len: u32) -> Option<Tape> {
        let mut tape = Tape { single: None, ..self.clone() };
        let mut narrow = vec![false; self.slots()];
        tape.inputs.get_mut(input)?.slot.len = len;
        narrow[input] = true;
        for (k, step) in self.steps.iter().enumerate() {
            let is_narrow = |id: &SlotId| narrow[usize::from(*id)];
            if !step.operands.iter().any(is_narrow) {
                continue;
            }
            let elementwise =
                matches!(step.action, Action::Apply(_) | Action::Cast | Action::Select);
            if !elementwise
                || !step.operands.iter().all(|id| is_narrow(id) || self.slot(*id).len == 1)
            {
                return None;
            }
            tape.steps[k].slot.len = len;
            narrow[self.inputs.len() + k] = true;
        }
        let first = usize::from(*self.outputs.first()?);
        narrow[first].then_some(tape)
    }

    /// The tape of the same inputs that gives these slots, without the steps that they do not need.
    pub fn only(&self, outputs: &[SlotId]) -> Tape {
        let first = self.inputs.len();
        let mut needed = vec![false; self.slots()];
        outputs.iter().for_each(|&slot| needed[usize::from(slot)] = true);
        for (k, step) in self.steps.iter().enumerate().rev() {
            if needed[first + k] {
                step.operands.iter().for_each(|&slot| needed[usize::from(slot)] = true);
            }
        }
        let mut names: Vec<SlotId> = (0..first as SlotId).collect();
        let mut steps = SmallVec::new();
        for (k, step) in self.steps.iter().enumerate() {
            names.push((first + steps.len()) as SlotId);
            if needed[first + k] {
                let operands = step.operands.iter().map(|&slot| names[usize::from(slot)]).collect();
                steps.push(Step { operands, ..step.clone() });
            }
        }
        let outputs = outputs.iter().map(|&slot| names[usize::from(slot)]).collect();
        Tape { inputs: self.inputs.clone(), steps, outputs, single: None }
    }

    /// The operation, if the tape is [`Tape::apply`] of it and nothing else.
    #[inline]
    pub fn single(&self) -> Option<Id> {
        self.single
    }
}

fn number(dtype: DType) -> Input {
    Input { slot: Slot::scalar(dtype), per: Per::I }
}

fn step(action: Action, operands: &[SlotId], dtype: DType) -> Step {
    Step { action, operands: SmallVec::from_slice(operands), slot: Slot::scalar(dtype) }
}
