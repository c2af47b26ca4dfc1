//! What a sum takes of a tape's first output: which products go into it fused.
//!
//! Decided here and nowhere else, so that every reader of a tape rounds the same products and leaves
//! the same ones to the sum. Called by the plans of backends, where the reduction is a plain sum.

use smallvec::SmallVec;
use tilework_ops::Id;

use crate::{Action, Per, SlotId, Tape};

/// Some components of what is summed: those of a slot, or its products with another that the sum
/// takes fused, so that they are never rounded or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// What is summed, or the first factor of it.
    pub slot: SlotId,
    /// The second factor, of a product that goes into the sum fused.
    pub factor: Option<SlotId>,
    /// How many components there are; a factor of one component is that of all of them.
    pub len: usize,
    /// How many components the second factor has, of an outer product: each of the first is multiplied by all of them.
    pub across: Option<usize>,
}

impl Term {
    /// A slot as it is.
    pub fn whole(slot: SlotId, len: usize) -> Term {
        Term { slot, factor: None, len, across: None }
    }

    /// Which components of the first factor and of the second make a component.
    pub fn places(&self, component: usize) -> [usize; 2] {
        match self.across {
            Some(columns) => [component / columns, component % columns],
            None => [component; 2],
        }
    }
}

/// What a sum takes, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// The terms, whose components follow one another as those of the output do.
    pub terms: Vec<Term>,
    /// The steps, counted from the first one, that need not be run: the sum does their work.
    pub inside: SmallVec<[usize; 4]>,
}

impl Tape {
    /// How often each slot is read: by the steps that the outputs need, and as an output.
    pub fn uses(&self) -> Vec<u32> {
        let first = self.inputs().len();
        let mut uses = vec![0; self.slots()];
        self.outputs().iter().for_each(|&slot| uses[usize::from(slot)] += 1);
        for (k, step) in self.steps().iter().enumerate().rev() {
            if uses[first + k] > 0 {
                step.operands.iter().for_each(|&slot| uses[usize::from(slot)] += 1);
            }
        }
        uses
    }

    /// What a sum takes of the first output: vectors that are put together only to be summed are
    /// taken apart again, and products of pairs that nobody else reads are left to the sum.
    /// `sections` and `uses` are those of this tape.
    pub fn terms(&self, sections: &[Per], uses: &[u32]) -> Terms {
        let first = self.inputs().len();
        let mut found = Terms::default();
        let mut rest: SmallVec<[SlotId; 4]> = self.outputs().iter().take(1).copied().collect();
        while let Some(slot) = rest.pop() {
            let (at, len) = (usize::from(slot), self.slot(slot).len as usize);
            let only_summed = uses[at] == 1 && sections[at] == Per::Pair;
            let step = self.step_of(slot).filter(|_| only_summed);
            match step.map(|step| (&step.action, &step.operands[..])) {
                Some((Action::Concat, parts)) => {
                    found.inside.push(at - first);
                    rest.extend(parts.iter().rev().copied());
                }
                Some((Action::Apply(Id::Multiply), &[slot, factor])) => {
                    found.inside.push(at - first);
                    found.terms.push(Term { slot, factor: Some(factor), len, across: None });
                }
                Some((Action::Contract(outer), &[slot, factor])) if outer.over.is_empty() => {
                    found.inside.push(at - first);
                    let across = Some(self.slot(factor).len as usize);
                    found.terms.push(Term { slot, factor: Some(factor), len, across });
                }
                _ => found.terms.push(Term::whole(slot, len)),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::DType;

    use super::*;
    use crate::{Builder, Contraction, Slot};

    fn real(len: u32) -> Slot {
        Slot { dtype: DType::Float32, len }
    }

    fn terms(tape: &Tape) -> Terms {
        tape.terms(&tape.sections(), &tape.uses())
    }

    #[test]
    fn products_that_only_the_sum_reads_go_into_it() {
        let mut build = Builder::new();
        let (x, y) = (build.input(real(1), Per::I), build.input(real(1), Per::J));
        let b = build.input(real(2), Per::J);
        let k = build.apply(Id::Subtract, &[x, y]).unwrap();
        let product = build.apply(Id::Multiply, &[k, b]).unwrap();
        let of_j = build.apply(Id::Multiply, &[y, b]).unwrap();
        // A step that no output needs is no reader.
        let _unused = build.apply(Id::Exp, &[product]).unwrap();
        let all = build.concat(&[product, k, of_j]).unwrap();
        let tape = build.finish(&[all]).unwrap();
        assert_eq!(tape.uses()[usize::from(k)], 2);
        let found = terms(&tape);
        let expected = [
            Term { slot: k, factor: Some(b), len: 2, across: None },
            Term::whole(k, 1),
            // One product for each j is computed once, and not again for every pair.
            Term::whole(of_j, 2),
        ];
        assert_eq!(found.terms, expected);
        let step = |slot: SlotId| usize::from(slot) - tape.inputs().len();
        assert_eq!(found.inside[..], [step(all), step(product)]);
    }

    #[test]
    fn products_with_other_readers_are_rounded_once() {
        let mut build = Builder::new();
        let (x, y) = (build.input(real(1), Per::I), build.input(real(1), Per::J));
        let product = build.apply(Id::Multiply, &[x, y]).unwrap();
        let twice = build.concat(&[product, product]).unwrap();
        let tape = build.finish(&[twice]).unwrap();
        let alone = Term::whole(product, 1);
        assert_eq!(terms(&tape).terms, [alone, alone]);
        // What is an output itself and in another step too.
        let mut build = Builder::new();
        let (x, y) = (build.input(real(1), Per::I), build.input(real(1), Per::J));
        let product = build.apply(Id::Multiply, &[x, y]).unwrap();
        let other = build.apply(Id::Exp, &[product]).unwrap();
        let tape = build.finish(&[product, other]).unwrap();
        assert_eq!(terms(&tape).terms, [alone]);
    }

    #[test]
    fn outer_products_are_never_stored() {
        let mut build = Builder::new();
        let (x, y) = (build.input(real(2), Per::I), build.input(real(3), Per::J));
        let shape = |len: u32| SmallVec::from_slice(&[len]);
        let outer = Contraction { left: shape(2), right: shape(3), over: SmallVec::new() };
        let matrix = build.contract(x, y, outer).unwrap();
        let tape = build.finish(&[matrix]).unwrap();
        let found = terms(&tape);
        let term = Term { slot: x, factor: Some(y), len: 6, across: Some(3) };
        assert_eq!((&found.terms[..], &found.inside[..]), (&[term][..], &[0][..]));
        let places: Vec<[usize; 2]> = (0..6).map(|k| term.places(k)).collect();
        assert_eq!(places, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        // A contraction that sums is computed for itself.
        let mut build = Builder::new();
        let (x, y) = (build.input(real(6), Per::I), build.input(real(3), Per::J));
        let left = SmallVec::from_slice(&[2, 3]);
        let over = SmallVec::from_slice(&[(1, 0)]);
        let sums = build.contract(x, y, Contraction { left, right: shape(3), over }).unwrap();
        let tape = build.finish(&[sums]).unwrap();
        assert_eq!(terms(&tape).terms, [Term::whole(sums, 2)]);
    }
}
