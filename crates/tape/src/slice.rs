//! Tapes of some components of a vector: those that stand side by side are computed from the same
//! components of its inputs, which come a second time, narrower, so that the whole ones are left to what needs them. Those of a
//! row of an outer product need one component of its first factor beside.
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
    /// What they are made of: narrower ones of these inputs, behind all inputs of the whole, of which those that nothing reads
    /// have one component.
    pub again: SmallVec<[Again; 2]>,
    /// Components of a row, where slices lie inside of rows of an outer product.
    pub row: Option<usize>,
}

/// An input of which a slice has some components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Its number.
    pub input: usize,
    /// How many components of the result stand for one of its own, and after how many of its own they begin anew.
    unit: usize,
    period: usize,
}

impl Again {
    /// One whose components are those of the result.
    pub fn alike(input: usize) -> Again {
        Again { input, unit: 1, period: usize::MAX }
    }

    /// The first of its components for a slice that begins with this one.
    pub fn first(&self, component: usize) -> usize {
        component / self.unit % self.period
    }
}

/// Components that a slice needs of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    len: u32,
    unit: u32,
    period: u32,
}

/// What a slice needs of every slot: side by side, or one for all, as of the factor of rows that are cut.
struct Needs {
    several: Vec<Option<Need>>,
    one: Vec<Option<Need>>,
    row: Option<u32>,
}

impl Tape {
    /// The slots that the first output is put together from, in order; none where they are very many.
    pub fn parts(&self) -> Option<Vec<SlotId>> {
        parts(self, *self.outputs.first()?)
    }

    /// The tape that gives `len` components of a slot, from those of its inputs, behind other slots as they are; none where
    /// components do not stand side by side, as those of vectors do, rows of outer products, and components of such a row.
    pub fn slice(&self, others: &[SlotId], slot: SlotId, len: u32) -> Option<Slice> {
        let first = self.inputs.len();
        let needs = self.needs(slot, len)?;
        let roles = [&needs.several, &needs.one];
        let needed = |role: usize| {
            roles[role][..first].iter().enumerate().filter_map(|(k, need)| Some((k, (*need)?)))
        };
        let again: SmallVec<[(usize, Need); 2]> = needed(0).chain(needed(1)).collect();
        let mut inputs = self.inputs.clone();
        inputs.extend(again.iter().map(|&(input, Need { len, .. })| {
            let Input { slot, per } = self.inputs[input];
            Input { slot: crate::Slot { len, ..slot }, per }
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
        let whole: Vec<SlotId> = (0..self.slots()).map(|slot| moved(slot as SlotId)).collect();
        let mut names = [whole.clone(), whole];
        let of_inputs = needed(0).map(|(input, _)| (0, input));
        for ((role, input), to) in of_inputs.chain(needed(1).map(|(k, _)| (1, k))).zip(first..) {
            names[role][input] = to as SlotId;
        }
        for (k, step) in self.steps.iter().enumerate() {
            for role in [1, 0] {
                let Some(need) = roles[role][first + k] else { continue };
                let mut made = step.clone();
                made.slot.len = need.len;
                let own = |slot: &SlotId| names[role][usize::from(*slot)];
                made.operands.iter_mut().for_each(|slot| *slot = own(slot));
                if let Action::Contract(contraction) = &mut made.action {
                    let columns = contraction.right.iter().product();
                    let [rows, columns] = match needs.row {
                        // Some columns of one row.
                        Some(_) => {
                            made.operands[0] = names[1][usize::from(step.operands[0])];
                            [1, need.len]
                        }
                        // All columns of some rows.
                        None => {
                            made.operands[1] = moved(step.operands[1]);
                            [need.len / columns, columns]
                        }
                    };
                    contraction.left = SmallVec::from_slice(&[rows]);
                    contraction.right = SmallVec::from_slice(&[columns]);
                }
                names[role][first + k] = SlotId::try_from(inputs.len() + steps.len()).ok()?;
                steps.push(made);
            }
        }
        let last = names[0][usize::from(slot)];
        let outputs: SmallVec<[SlotId; 2]> =
            others.iter().map(|&other| moved(other)).chain([last]).collect();
        let tape = Tape { inputs, steps, outputs: outputs.iter().copied().collect(), single: None };
        let mut tape = tape.only(&outputs);
        // What is read no more takes no room.
        let unused = |slot: &usize| {
            let slot = *slot as SlotId;
            tape.users(slot).is_empty() && !tape.outputs.contains(&slot)
        };
        let unused: Vec<usize> = (0..first).filter(unused).collect();
        unused.into_iter().for_each(|input| tape.inputs[input].slot.len = 1);
        let again = again.into_iter().map(|(input, Need { unit, period, .. })| Again {
            input,
            unit: unit as usize,
            period: period as usize,
        });
        let row = needs.row.map(|row| row as usize);
        Some(Slice { tape, again: again.collect(), row })
    }

    /// What a slice of one slot needs of all.
    fn needs(&self, slot: SlotId, len: u32) -> Option<Needs> {
        let (first, all) = (self.inputs.len(), self.slot(slot).len);
        if len == 0 || len > all || all == 1 {
            return None;
        }
        let (mut several, mut one) = (vec![None; self.slots()], vec![None; self.slots()]);
        several[usize::from(slot)] = Some(Need { len, unit: 1, period: all });
        let mut row = None;
        for (k, step) in self.steps.iter().enumerate().rev() {
            if let Some(own) = one[first + k] {
                self.ask(step, own, &mut one)?;
            }
            let Some(own) = several[first + k] else { continue };
            match &step.action {
                Action::Contract(outer) if outer.over.is_empty() => {
                    let columns: u32 = outer.right.iter().product();
                    let rows = step.slot.len.checked_div(columns)?;
                    let [left, right] = [step.operands[0], step.operands[1]];
                    let unit = own.unit * columns;
                    if own.len.is_multiple_of(columns) {
                        let len = own.len / columns;
                        add(&mut several, left, Need { len, unit, period: rows })?;
                    } else if own.len < columns && row.replace(columns).is_none() {
                        // Of rows of one component all have the same.
                        if rows > 1 {
                            add(&mut one, left, Need { len: 1, unit, period: rows })?;
                        }
                        add(&mut several, right, Need { period: columns, ..own })?;
                    } else {
                        return None;
                    }
                }
                _ => self.ask(step, own, &mut several)?,
            }
        }
        Some(Needs { several, one, row })
    }

    /// Notes what components of a step's slot need of its operands, where it makes them one by one.
    fn ask(&self, step: &Step, own: Need, needs: &mut [Option<Need>]) -> Option<()> {
        match &step.action {
            Action::Apply(_) | Action::Cast | Action::Select => {
                step.operands.iter().try_for_each(|&operand| match self.slot(operand).len {
                    1 => Some(()),
                    count if count == step.slot.len => add(needs, operand, own),
                    _ => None,
                })
            }
            Action::Constant(_) => Some(()),
            _ => None,
        }
    }
}

/// Notes what is needed of a slot; none where that is something else already.
fn add(needs: &mut [Option<Need>], slot: SlotId, need: Need) -> Option<()> {
    let there = needs[usize::from(slot)].get_or_insert(need);
    (*there == need).then_some(())
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
        let Slice { tape, again, row } = whole.slice(&[], all, 2).unwrap();
        tape.check().unwrap();
        let firsts: Vec<_> = again.iter().map(|again| (again.input, again.first(3))).collect();
        assert_eq!((&firsts[..], tape.inputs().len(), row), (&[(0, 3), (1, 3)][..], 4, None));
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
    fn rows_of_outer_products_are_whole_or_cut() {
        let mut build = Builder::new();
        let x = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::I);
        let y = build.input(Slot { dtype: DType::Float32, len: 4 }, Per::J);
        let d = build.apply(Id::Subtract, &[x, y]).unwrap();
        let shape = SmallVec::from_slice(&[4]);
        let outer = Contraction { left: shape.clone(), right: shape, over: SmallVec::new() };
        let outer = build.contract(d, d, outer).unwrap();
        let d2 = build.dot(d, d).unwrap();
        let all_slot = build.apply(Id::Multiply, &[d2, outer]).unwrap();
        let whole = build.finish(&[all_slot]).unwrap();
        assert!(whole.slice(&[], all_slot, 6).is_none());
        let Slice { tape, again, .. } = whole.slice(&[], all_slot, 8).unwrap();
        tape.check().unwrap();
        let firsts: Vec<_> = again.iter().map(|again| (again.input, again.first(4))).collect();
        assert_eq!(firsts, [(0, 1), (1, 1)]);
        let numbers = |step: f32| -> Vec<Scalar> {
            (0..4).map(|k| Scalar::new(step * (k * k) as f32)).collect()
        };
        let (x, y) = (numbers(0.1), numbers(0.07));
        let all = whole.evaluate(&[&x, &y]).unwrap();
        let some = tape.evaluate(&[&x, &y, &x[1..3], &y[1..3]]).unwrap();
        assert_eq!(all[0][4..12], some[0][..]);
        // Three components of one row.
        let Slice { tape, again, row } = whole.slice(&[], all_slot, 3).unwrap();
        tape.check().unwrap();
        assert_eq!(row, Some(4));
        for first in [0, 1, 4, 9, 13] {
            let of = |again: &Again, x: &[Scalar], y: &[Scalar], len: usize| -> Vec<Scalar> {
                let from = again.first(first);
                [x, y][again.input][from..from + len].to_vec()
            };
            let given: Vec<Vec<Scalar>> = (again.iter().zip(&tape.inputs()[2..]))
                .map(|(again, input)| of(again, &x, &y, input.slot.len as usize))
                .collect();
            let some = tape.evaluate(&[&x, &y, &given[0], &given[1], &given[2], &given[3]]);
            assert_eq!(all[0][first..first + 3], some.unwrap()[0][..], "{first}");
        }
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
