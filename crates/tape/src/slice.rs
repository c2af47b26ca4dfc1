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
    /// What they are made of, behind all inputs of the whole, those of which that nothing reads have one component: narrower ones of these inputs, each with how many components
    /// of the result stand for one of its own.
    pub again: SmallVec<[(usize, usize); 2]>,
}

impl Tape {
    /// The slots that the first output is put together from, in order; none where they are very many.
    pub fn parts(&self) -> Option<Vec<SlotId>> {
        parts(self, *self.outputs.first()?)
    }

    /// The tape that gives `len` components of a slot, from those of its inputs, behind other slots as they are; none where
    /// components do not stand side by side, as those of vectors do and rows of outer products, or these rows are cut.
    pub fn slice(&self, others: &[SlotId], slot: SlotId, len: u32) -> Option<Slice> {
        let first = self.inputs.len();
        let narrow = self.narrow(slot, len)?;
        let is_narrow = |slot: &usize| narrow[*slot] > 0;
        let again: SmallVec<[usize; 2]> = (0..first).filter(is_narrow).collect();
        let mut inputs = self.inputs.clone();
        inputs.extend(again.iter().map(|&input| {
            let Input { slot, per } = self.inputs[input];
            Input { slot: crate::Slot { len: narrow[input], ..slot }, per }
        }));
        // Steps as they are, then the narrower ones.
        let moved = |slot: SlotId| match usize::from(slot) < first {
            true => slot,
            false => slot + again.len() as SlotId,
        };
        let mut steps: SmallVec<[Step; 1]> = (self.steps.iter())
            .map(|step| Step {
                operands: step.operands.iter().map(|&slot| moved(slot)).collect(),
                ..step.clone()
            })
            .collect();
        let mut names: Vec<SlotId> = (0..self.slots()).map(|slot| moved(slot as SlotId)).collect();
        for (k, &input) in again.iter().enumerate() {
            names[input] = (first + k) as SlotId;
        }
        for (k, step) in self.steps.iter().enumerate().filter(|(k, _)| is_narrow(&(first + k))) {
            let mut made = step.clone();
            made.slot.len = narrow[first + k];
            made.operands.iter_mut().for_each(|slot| *slot = names[usize::from(*slot)]);
            if let Action::Contract(contraction) = &mut made.action {
                // All columns of some rows.
                made.operands[1] = moved(step.operands[1]);
                let columns = contraction.right.iter().product();
                contraction.left = SmallVec::from_slice(&[made.slot.len / columns]);
                contraction.right = SmallVec::from_slice(&[columns]);
            }
            names[first + k] = SlotId::try_from(inputs.len() + steps.len()).ok()?;
            steps.push(made);
        }
        let outputs = others.iter().map(|&other| moved(other)).chain([names[usize::from(slot)]]);
        let outputs: SmallVec<[SlotId; 2]> = outputs.collect();
        let tape = Tape { inputs, steps, outputs: outputs.iter().copied().collect(), single: None };
        let mut tape = tape.only(&outputs);
        // What is read no more takes no room.
        let unused = |slot: &usize| {
            let slot = *slot as SlotId;
            tape.users(slot).is_empty() && !tape.outputs.contains(&slot)
        };
        let unused: Vec<usize> = (0..first).filter(unused).collect();
        unused.into_iter().for_each(|input| tape.inputs[input].slot.len = 1);
        let unit = |input: usize| (input, (len / narrow[input]) as usize);
        Some(Slice { tape, again: again.into_iter().map(unit).collect() })
    }

    /// How many components of each slot a slice of one is made of; 0 where it is made of none, or of all.
    fn narrow(&self, slot: SlotId, len: u32) -> Option<Vec<u32>> {
        let (first, all) = (self.inputs.len(), self.slot(slot).len);
        if len == 0 || len > all || all == 1 {
            return None;
        }
        let mut narrow = vec![0; self.slots()];
        narrow[usize::from(slot)] = len;
        for (k, step) in self.steps.iter().enumerate().rev() {
            let (own, all) = (narrow[first + k], step.slot.len);
            if own == 0 {
                continue;
            }
            let mut needs = |operand: SlotId, len: u32| {
                let there = &mut narrow[usize::from(operand)];
                let fits = *there == 0 || *there == len;
                *there = len;
                fits.then_some(())
            };
            match &step.action {
                Action::Apply(_) | Action::Cast | Action::Select => {
                    for &operand in &step.operands {
                        match self.slot(operand).len {
                            1 => {}
                            count if count == all => needs(operand, own)?,
                            _ => return None,
                        }
                    }
                }
                Action::Contract(outer) if outer.over.is_empty() => {
                    let columns: u32 = outer.right.iter().product();
                    let whole = columns > 0 && own.is_multiple_of(columns);
                    whole.then(|| needs(step.operands[0], own / columns))??;
                }
                Action::Constant(_) => {}
                _ => return None,
            }
        }
        Some(narrow)
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::{DType, Id, Scalar};

    use super::*;
    use crate::{Builder, Contraction, Per, Slot};

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
        assert_eq!((again.as_slice(), tape.inputs().len()), (&[(0, 1), (1, 1)][..], 4));
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
    fn rows_of_outer_products_are_whole() {
        let mut build = Builder::new();
        let x = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::I);
        let y = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::J);
        let d = build.apply(Id::Subtract, &[x, y]).unwrap();
        let shape = SmallVec::from_slice(&[4]);
        let outer = Contraction { left: shape.clone(), right: shape, over: SmallVec::new() };
        let outer = build.contract(d, d, outer).unwrap();
        let d2 = build.dot(d, d).unwrap();
        let all = build.apply(Id::Multiply, &[d2, outer]).unwrap();
        let whole = build.finish(&[all]).unwrap();
        assert!(whole.slice(&[], all, 6).is_none());
        let Slice { tape, again } = whole.slice(&[], all, 8).unwrap();
        tape.check().unwrap();
        assert_eq!(again.as_slice(), [(0, 4), (1, 4)]);
        let numbers = |step: f32| -> Vec<Scalar> {
            (0..4).map(|k| Scalar::new(step * (k * k) as f32)).collect()
        };
        let (x, y) = (numbers(0.1), numbers(0.07));
        let all = whole.evaluate(&[&x, &y]).unwrap();
        let some = tape.evaluate(&[&x, &y, &x[1..3], &y[1..3]]).unwrap();
        assert_eq!(all[0][4..12], some[0][..]);
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
