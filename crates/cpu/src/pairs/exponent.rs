//! What the formula makes of a slot: how steeply exponents depend on it, and what it is scaled by.
//!
//! May assume a tape whose numbers that vary with nothing can be read. Called by `form`.

use tilework_backend::PairReduce;
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Per, SlotId};

use super::Source;
use super::form::step_of;

/// What exponents make of a slot.
pub(super) struct Exponents<'a> {
    pub(super) request: &'a PairReduce<'a>,
    pub(super) sources: &'a [Source],
}

impl Exponents<'_> {
    /// The largest |d exponent / d slot|, times a factor, if all that the slot is used for is to be
    /// scaled by what varies with nothing, added to something, and then exponentiated.
    pub(super) fn slope(&self, slot: SlotId, factor: f64) -> Option<f64> {
        let tape = self.request.tape;
        let mut largest: Option<f64> = None;
        let mut take = |slope: f64| largest = Some(largest.map_or(slope, |held| held.max(slope)));
        for (k, &output) in tape.outputs().iter().enumerate() {
            let is_exponent = k == 0 && self.request.fold.row().monoid == Monoid::Shifted;
            match (output == slot, is_exponent) {
                (true, true) => take(factor.abs()),
                (true, false) => return None,
                _ => {}
            }
        }
        for (k, step) in tape.steps().iter().enumerate() {
            if !step.operands.contains(&slot) {
                continue;
            }
            let next = (tape.inputs().len() + k) as SlotId;
            take(match (&step.action, &step.operands[..]) {
                (Action::Apply(Id::Exp), _) => factor.abs(),
                (Action::Apply(Id::Exp2 | Id::Exp2Pair), _) => {
                    factor.abs() * std::f64::consts::LN_2
                }
                (Action::Apply(Id::Negative), _) => self.slope(next, factor)?,
                (Action::Apply(Id::Add | Id::Subtract), &[a, b]) if a != b => {
                    self.slope(next, factor)?
                }
                (Action::Apply(Id::Fma), &[a, b, c]) if c == slot && a != slot && b != slot => {
                    self.slope(next, factor)?
                }
                (Action::Apply(Id::Fma), &[a, b, c]) if c != slot => {
                    let other = if a == slot { b } else { a };
                    self.slope(next, factor * self.once(other)?)?
                }
                (Action::Apply(Id::Multiply), &[a, b]) => {
                    let other = if a == slot { b } else { a };
                    self.slope(next, factor * self.once(other)?)?
                }
                (Action::Apply(Id::Divide), &[a, b]) if a == slot => {
                    self.slope(next, factor / self.once(b)?)?
                }
                _ => return None,
            });
        }
        largest
    }

    /// The slot that is this one times a factor, and nothing else becomes of it; and the factor.
    pub(super) fn scaled(&self, mut slot: SlotId) -> (SlotId, f64) {
        let tape = self.request.tape;
        let mut scale = 1.0;
        loop {
            let mut uses =
                tape.steps().iter().enumerate().filter(|(_, s)| s.operands.contains(&slot));
            let (Some((k, step)), None, false) =
                (uses.next(), uses.next(), tape.outputs().contains(&slot))
            else {
                return (slot, scale);
            };
            let factor = match (&step.action, &step.operands[..]) {
                (Action::Apply(Id::Negative), _) => Some(-1.0),
                (Action::Apply(Id::Multiply), &[a, b]) if a != b => {
                    self.once(if a == slot { b } else { a })
                }
                (Action::Apply(Id::Divide), &[a, b]) if a == slot => {
                    self.once(b).map(|divisor| 1.0 / divisor)
                }
                _ => None,
            };
            let Some(factor) = factor else { return (slot, scale) };
            scale *= factor;
            slot = (tape.inputs().len() + k) as SlotId;
        }
    }

    /// The value of a number that varies with nothing.
    fn once(&self, slot: SlotId) -> Option<f64> {
        self.scalar(slot).map(|value| value.cast(DType::Float64).get::<f64>())
    }

    fn scalar(&self, slot: SlotId) -> Option<Scalar> {
        let tape = self.request.tape;
        if tape.slot(slot).len != 1 {
            return None;
        }
        let Some(step) = step_of(tape, slot) else {
            let (input, source) =
                (tape.inputs()[usize::from(slot)], &self.sources[usize::from(slot)]);
            let size = input.slot.dtype.size();
            let at = source.base.wrapping_add(source.layout.offset() * size);
            // SAFETY: an input that varies with nothing has one number, which may be read: the
            // layout lies inside of its block, whose guard the session holds.
            let bytes = (input.per == Per::Once)
                .then(|| unsafe { std::slice::from_raw_parts(at, size) })?;
            return Some(Scalar::from_bytes(input.slot.dtype, bytes));
        };
        match &step.action {
            Action::Constant(value) => Some(*value),
            Action::Cast => Some(self.scalar(step.operands[0])?.cast(step.slot.dtype)),
            Action::Apply(id) => {
                let operands: Option<Vec<Scalar>> =
                    step.operands.iter().map(|&operand| self.scalar(operand)).collect();
                id.evaluate(&operands?)
            }
            _ => None,
        }
    }
}
