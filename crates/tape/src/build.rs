//! Making tapes step by step, each step checked when it is added, and checking whole tapes.

use smallvec::SmallVec;
use tilework_error::{Error, Result};
use tilework_ops::{DType, FoldId, Id, Scalar};

use crate::{Action, Contraction, Input, Per, Slot, SlotId, Step, Tape};

/// Builds a [`Tape`].
///
/// ```
/// use tilework_ops::{DType, Id};
/// use tilework_tape::{Builder, Per, Slot};
/// let mut build = Builder::new();
/// let x = build.input(Slot { dtype: DType::Float32, len: 3 }, Per::I);
/// let y = build.input(Slot { dtype: DType::Float32, len: 3 }, Per::J);
/// let d = build.apply(Id::Subtract, &[x, y])?;
/// let d2 = build.dot(d, d)?;
/// let minus = build.apply(Id::Negative, &[d2])?;
/// let k = build.apply(Id::Exp, &[minus])?;
/// let tape = build.finish(&[k])?;
/// assert_eq!(tape.sections()[k as usize], Per::Pair);
/// # Ok::<(), tilework_error::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    inputs: SmallVec<[Input; 3]>,
    steps: SmallVec<[Step; 1]>,
}

impl Builder {
    /// An empty tape.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A tape that begins as another one, whose slots keep their names.
    pub fn continuing(tape: &Tape) -> Builder {
        Builder { inputs: tape.inputs.clone(), steps: tape.steps.clone() }
    }

    /// Adds an input. All inputs come before the first step.
    pub fn input(&mut self, slot: Slot, per: Per) -> SlotId {
        debug_assert!(self.steps.is_empty(), "inputs come before steps");
        self.inputs.push(Input { slot, per });
        (self.inputs.len() - 1) as SlotId
    }

    /// What slot `id` holds.
    pub fn slot(&self, id: SlotId) -> Slot {
        match self.inputs.get(id as usize) {
            Some(input) => input.slot,
            None => self.steps[id as usize - self.inputs.len()].slot,
        }
    }

    /// An operation on slots of one dtype and of one length or length 1.
    pub fn apply(&mut self, id: Id, operands: &[SlotId]) -> Result<SlotId> {
        let slot = self.result_of(&Action::Apply(id), operands)?;
        Ok(self.push(Action::Apply(id), operands, slot))
    }

    /// A cast; nothing if the slot has that dtype.
    pub fn cast(&mut self, operand: SlotId, dtype: DType) -> SlotId {
        let slot = self.slot(operand);
        if slot.dtype == dtype {
            return operand;
        }
        self.push(Action::Cast, &[operand], Slot { dtype, ..slot })
    }

    /// `then` where `mask` is true, `otherwise` elsewhere.
    pub fn select(&mut self, mask: SlotId, then: SlotId, otherwise: SlotId) -> Result<SlotId> {
        let operands = [mask, then, otherwise];
        let slot = self.result_of(&Action::Select, &operands)?;
        Ok(self.push(Action::Select, &operands, slot))
    }

    /// A constant in `len` places.
    pub fn constant(&mut self, value: Scalar, len: u32) -> SlotId {
        self.push(Action::Constant(value), &[], Slot { dtype: value.dtype(), len })
    }

    /// Numbers `start..start + len` of a slot.
    pub fn extract(&mut self, operand: SlotId, start: u32, len: u32) -> Result<SlotId> {
        let slot = self.slot(operand);
        if u64::from(start) + u64::from(len) > u64::from(slot.len) {
            let message =
                format!("{start}..{} is not inside a vector of {}", start + len, slot.len);
            return Err(Error::shape("extract", message));
        }
        Ok(self.push(Action::Extract(start), &[operand], Slot { len, ..slot }))
    }

    /// A slot at `start` of a vector of `len` zeros.
    pub fn place(&mut self, operand: SlotId, start: u32, len: u32) -> Result<SlotId> {
        let slot = self.slot(operand);
        if u64::from(start) + u64::from(slot.len) > u64::from(len) {
            let message = format!("{} numbers at {start} do not fit a vector of {len}", slot.len);
            return Err(Error::shape("place", message));
        }
        Ok(self.push(Action::Place(start), &[operand], Slot { len, ..slot }))
    }

    /// Slots one after the other.
    pub fn concat(&mut self, operands: &[SlotId]) -> Result<SlotId> {
        let slot = self.result_of(&Action::Concat, operands)?;
        Ok(self.push(Action::Concat, operands, slot))
    }

    /// A reduction along a slot.
    pub fn fold(&mut self, fold: FoldId, operand: SlotId) -> Result<SlotId> {
        let slot = self.result_of(&Action::Fold(fold), &[operand])?;
        Ok(self.push(Action::Fold(fold), &[operand], slot))
    }

    /// Sum of the products of two slots of equal length.
    pub fn dot(&mut self, a: SlotId, b: SlotId) -> Result<SlotId> {
        let slot = self.result_of(&Action::Dot, &[a, b])?;
        Ok(self.push(Action::Dot, &[a, b], slot))
    }

    /// A contraction of two slots seen as tensors.
    pub fn contract(&mut self, a: SlotId, b: SlotId, contraction: Contraction) -> Result<SlotId> {
        let action = Action::Contract(Box::new(contraction));
        let slot = self.result_of(&action, &[a, b])?;
        Ok(self.push(action, &[a, b], slot))
    }

    pub(crate) fn push(&mut self, action: Action, operands: &[SlotId], slot: Slot) -> SlotId {
        self.steps.push(Step { action, operands: SmallVec::from_slice(operands), slot });
        (self.inputs.len() + self.steps.len() - 1) as SlotId
    }

    /// The tape that gives these slots.
    pub fn finish(self, outputs: &[SlotId]) -> Result<Tape> {
        let tape = self.finish_unchecked(outputs);
        tape.check()?;
        Ok(tape)
    }

    pub(crate) fn finish_unchecked(self, outputs: &[SlotId]) -> Tape {
        let outputs = SmallVec::from_slice(outputs);
        Tape { inputs: self.inputs, steps: self.steps, outputs, single: None }
    }

    fn result_of(&self, action: &Action, operands: &[SlotId]) -> Result<Slot> {
        let slots: SmallVec<[Slot; 3]> = operands.iter().map(|&id| self.slot(id)).collect();
        result_of(action, &slots)
    }
}

/// What an action on these slots defines; an error where it cannot.
fn result_of(action: &Action, slots: &[Slot]) -> Result<Slot> {
    let malformed = |message: String| Error::shape("tape", message);
    match action {
        Action::Apply(id) => {
            let row = id.row();
            if slots.len() != row.arity {
                return Err(malformed(format!(
                    "{} takes {} operands, not {}",
                    row.name,
                    row.arity,
                    slots.len()
                )));
            }
            let dtype = slots[0].dtype;
            if !row.takes(dtype) || slots.iter().any(|slot| slot.dtype != dtype) {
                return Err(Error::dtype(row.name, format!("no meaning for operands {slots:?}")));
            }
            Ok(Slot { dtype: row.result(dtype), len: common_length(row.name, slots)? })
        }
        Action::Select => match slots {
            [mask, a, b] if mask.dtype == DType::Bool && a.dtype == b.dtype => {
                Ok(Slot { dtype: a.dtype, len: common_length("select", slots)? })
            }
            _ => Err(malformed(format!("select takes a bool and two alike, not {slots:?}"))),
        },
        Action::Concat => {
            let first = slots.first().ok_or_else(|| malformed("concat of nothing".into()))?;
            if slots.iter().any(|slot| slot.dtype != first.dtype) {
                return Err(malformed(format!("concat of different dtypes {slots:?}")));
            }
            Ok(Slot { len: slots.iter().map(|slot| slot.len).sum(), ..*first })
        }
        Action::Fold(fold) => {
            let row = fold.row();
            let dtype = row.accumulates(slots[0].dtype).filter(|dtype| *dtype == slots[0].dtype);
            let dtype =
                dtype.ok_or_else(|| malformed(format!("{} of {:?}", row.name, slots[0])))?;
            Ok(Slot { dtype: row.result(dtype), len: 1 })
        }
        Action::Dot => match slots {
            [a, b] if a == b => Ok(Slot { len: 1, ..*a }),
            _ => Err(malformed(format!("dot takes two alike, not {slots:?}"))),
        },
        Action::Contract(contraction) => {
            let size = |shape: &[u32]| shape.iter().map(|&n| u64::from(n)).product::<u64>();
            let fits = |slot: &Slot, shape: &[u32]| u64::from(slot.len) == size(shape);
            let paired = |&(l, r): &(u8, u8)| {
                let (l, r) = (contraction.left.get(l as usize), contraction.right.get(r as usize));
                l.is_some() && l == r
            };
            match slots {
                [a, b]
                    if a.dtype == b.dtype
                        && fits(a, &contraction.left)
                        && fits(b, &contraction.right)
                        && contraction.over.iter().all(paired) =>
                {
                    let summed: u64 = contraction
                        .over
                        .iter()
                        .map(|&(l, _)| u64::from(contraction.left[l as usize]))
                        .product();
                    let len = (size(&contraction.left) / summed.max(1))
                        * (size(&contraction.right) / summed.max(1));
                    let len = u32::try_from(len)
                        .map_err(|_| malformed("contraction too large".into()))?;
                    Ok(Slot { dtype: a.dtype, len })
                }
                _ => Err(malformed(format!("{contraction:?} does not fit {slots:?}"))),
            }
        }
        // What these define is a choice, made and checked where they are added.
        Action::Cast | Action::Constant(_) | Action::Extract(_) | Action::Place(_) => {
            Err(malformed(format!("{action:?} has no result of its own")))
        }
    }
}

fn common_length(name: &str, slots: &[Slot]) -> Result<u32> {
    let mut common = 1;
    for slot in slots {
        if slot.len != 1 && common != 1 && slot.len != common {
            return Err(Error::shape(
                name,
                format!("lengths {common} and {} do not broadcast", slot.len),
            ));
        }
        if slot.len != 1 {
            common = slot.len;
        }
    }
    Ok(common)
}

impl Tape {
    /// Whether the tape is well formed: every step reads earlier slots, and defines what its
    /// action gives. Builders call it, and passes that rewrite tapes call it after each.
    pub fn check(&self) -> Result<()> {
        let malformed = |message: String| Err(Error::value("tape", message));
        for (k, step) in self.steps.iter().enumerate() {
            let here = self.inputs.len() + k;
            if step.operands.iter().any(|&id| id as usize >= here) {
                return malformed(format!("slot {here} reads a slot that is not defined yet"));
            }
            let slots: Vec<Slot> = step.operands.iter().map(|&id| self.slot(id)).collect();
            let given = match &step.action {
                Action::Cast => Slot { dtype: step.slot.dtype, ..slots[0] },
                Action::Constant(value) => Slot { dtype: value.dtype(), ..step.slot },
                Action::Extract(start) if start + step.slot.len <= slots[0].len => {
                    Slot { dtype: slots[0].dtype, ..step.slot }
                }
                Action::Place(start) if start + slots[0].len <= step.slot.len => {
                    Slot { dtype: slots[0].dtype, ..step.slot }
                }
                action => result_of(action, &slots)?,
            };
            if given != step.slot {
                return malformed(format!(
                    "slot {here} is declared {:?} but is {given:?}",
                    step.slot
                ));
            }
        }
        match self.outputs.iter().find(|&&id| id as usize >= self.slots()) {
            Some(id) => malformed(format!("output {id} is not defined")),
            None => Ok(()),
        }
    }
}
