//! Tapes of some components of a vector: those that stand side by side are computed from the same
//! components of its inputs, which come a second time, narrower, so that the whole ones are left to what needs them.
//!
//! Used by backends that sum many components, some of them at a time.

use smallvec::SmallVec;

use crate::weighed::parts;
use crate::{Action, Input, SlotId, Step, Tape};

/// A tape of some components.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Gives them.
    pub tape: Tape,
    /// Inputs of the tape that they are made of, behind all inputs of the whole: narrower ones of these.
    pub again: SmallVec<[usize; 2]>,
}

impl Tape {
    /// The slots that the first output is put together from, in order; none where they are very many.
    pub fn parts(&self) -> Option<Vec<SlotId>> {
        parts(self, *self.outputs.first()?)
    }

    /// The tape that gives `len` components of a slot, from those of its inputs, behind other slots as they are; none where
    /// components do not stand side by side.
    pub fn slice(&self, others: &[SlotId], slot: SlotId, len: u32) -> Option<Slice> {
        let (first, all) = (self.inputs.len(), self.slot(slot).len);
        if len == 0 || len > all || all == 1 {
            return None;
        }
        let mut wide = vec![false; self.slots()];
        wide[usize::from(slot)] = true;
        for (k, step) in
            self.steps.iter().enumerate().rev().filter(|(k, _)| first + k <= usize::from(slot))
        {
            if !wide[first + k] {
                continue;
            }
            let elementwise =
                matches!(step.action, Action::Apply(_) | Action::Cast | Action::Select);
            for &operand in &step.operands {
                let count = self.slot(operand).len;
                if !elementwise || (count != 1 && count != all) {
                    return None;
                }
                wide[usize::from(operand)] |= count == all;
            }
            if !elementwise && !matches!(step.action, Action::Constant(_)) {
                return None;
            }
        }
        let again: SmallVec<[usize; 2]> = (0..first).filter(|&input| wide[input]).collect();
        let narrow = |input: &usize| {
            let Input { slot, per } = self.inputs[*input];
            Input { slot: crate::Slot { len, ..slot }, per }
        };
        let mut inputs = self.inputs.clone();
        inputs.extend(again.iter().map(narrow));
        // Steps as they are, then the narrower ones.
        let moved = |slot: SlotId| match usize::from(slot) < first {
            true => slot,
            false => slot + again.len() as SlotId,
        };
        let renamed = |step: &Step, name: &dyn Fn(SlotId) -> SlotId| Step {
            operands: step.operands.iter().map(|&slot| name(slot)).collect(),
            ..step.clone()
        };
        let mut steps: SmallVec<[Step; 1]> =
            self.steps.iter().map(|step| renamed(step, &moved)).collect();
        let mut names: Vec<SlotId> = (0..self.slots()).map(|slot| moved(slot as SlotId)).collect();
        for (k, &input) in again.iter().enumerate() {
            names[input] = (first + k) as SlotId;
        }
        for (k, step) in self.steps.iter().enumerate().filter(|(k, _)| wide[first + k]) {
            let mut narrow = renamed(step, &|slot| names[usize::from(slot)]);
            narrow.slot.len = len;
            names[first + k] = SlotId::try_from(inputs.len() + steps.len()).ok()?;
            steps.push(narrow);
        }
        let outputs = others.iter().map(|&other| moved(other)).chain([names[usize::from(slot)]]);
        let outputs: SmallVec<[SlotId; 2]> = outputs.collect();
        let tape = Tape { inputs, steps, outputs: outputs.iter().copied().collect(), single: None };
        Some(Slice { tape: tape.only(&outputs), again })
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::{DType, Id, Scalar};

    use super::*;
    use crate::{Builder, Per, Slot};

    #[test]
    fn components_are_those_of_the_whole() {
        let mut build = Builder::new();
        let x = build.input(Slot { dtype: DType::Float32, len: 5 }, Per::I);
        let y = build.input(Slot { dtype: DType::Float32, len: 5 }, Per::J);
        let d = build.apply(Id::Subtract, &[x, y]).unwrap();
        let d2 = build.dot(d, d).unwrap();
        let w = build.apply(Id::Exp, &[d2]).unwrap();
        let all = build.apply(Id::Multiply, &[w, d]).unwrap();
        let both = build.concat(&[w, all]).unwrap();
        let whole = build.finish(&[both]).unwrap();
        assert_eq!(whole.parts().unwrap(), [w, all]);
        let Slice { tape, again } = whole.slice(&[], all, 2).unwrap();
        tape.check().unwrap();
        assert_eq!((again.as_slice(), tape.inputs().len()), (&[0, 1][..], 4));
        assert_eq!(tape.slot(tape.outputs()[0]).len, 2);
        let numbers = |from: usize, len: usize, step: f32| -> Vec<Scalar> {
            (from..from + len).map(|k| Scalar::new(step * k as f32 * k as f32)).collect()
        };
        let (x, y) = (numbers(0, 5, 0.1), numbers(1, 5, 0.07));
        let all = whole.only(&[all]).evaluate(&[&x, &y]).unwrap();
        let some = tape.evaluate(&[&x, &y, &x[2..4], &y[2..4]]).unwrap();
        assert_eq!(all[0][2..4], some[0][..]);
        // Behind another, which is whole.
        let beside = whole.slice(&[w], d, 3).unwrap().tape;
        beside.check().unwrap();
        let both = beside.evaluate(&[&x, &y, &x[1..4], &y[1..4]]).unwrap();
        let whole = whole.only(&[w, d]).evaluate(&[&x, &y]).unwrap();
        assert_eq!((&both[0], &both[1][..]), (&whole[0], &whole[1][1..4]));
    }

    #[test]
    fn others_have_no_slices() {
        let mut build = Builder::new();
        let x = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::I);
        let y = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::J);
        let both = build.concat(&[x, y]).unwrap();
        let all = build.apply(Id::Exp, &[both]).unwrap();
        let d = build.dot(x, y).unwrap();
        let tape = build.finish(&[all, d]).unwrap();
        assert!(tape.slice(&[], all, 2).is_none() && tape.slice(&[], d, 1).is_none());
    }
}
