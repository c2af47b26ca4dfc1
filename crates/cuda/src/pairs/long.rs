//! Numbers of pairs that are folded of long vectors, as inner products, squared and other distances are. The length of
//! vectors is an argument, so that a formula has one kernel for all lengths; and vectors come to shared memory in chunks,
//! so that no length is too large.
//!
//! Found where all long vectors of a formula are made component by component, and few numbers of a pair are folded of
//! them, each of few vectors of i, of j and of neither. What is folded of vectors of i or of j alone, as norms are, is a
//! loop over memory. Numbers of the same vectors are folded in one pass, others in passes after each other: so are the
//! two inner products in the gradient of a kernel whose points and right-hand sides are both long.
//! `kernels/pairs_long.cu` computes the numbers of pairs. Made by `sections`, read by `plan`, `functions`, `chunks` and
//! `print`.

use std::collections::BTreeSet;
use std::ops::Range;

use smallvec::SmallVec;
use tilework_ops::{DType, FoldId, Id};
use tilework_tape::{Action, Per, SlotId, Step, Tape};

use super::sections::{self, LONG, is_elementwise};

/// Bytes of a j beside its vectors, at most, that there is room for.
const BESIDE: usize = 256;

/// Bytes of a row, at most, where other threads need its numbers: there is room for those of all rows of a warp.
const OF_ROW: usize = 768;

/// The most numbers of a pair: threads have registers for so many, of several rows and j.
const MOST: usize = 4;

/// The most vectors of one section that a number may be made of: they share the room of a chunk.
const MOST_VECTORS: usize = 4;

/// What a pair has of long vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Long {
    /// The numbers of a pair, sums along vectors and extremes, pass by pass.
    pub(super) numbers: Vec<SlotId>,
    pub(super) passes: Vec<Pass>,
    /// All long vectors: inputs, and steps that are made number by number wherever they are needed.
    pub(super) vectors: Vec<SlotId>,
    /// Sums along vectors of j alone, which need no other number of j: threads make them together.
    pub(super) of_j: Vec<SlotId>,
    /// Whether the vectors of i and of j that pairs are made of need other numbers of i and of j.
    pub(super) scaled: [bool; 2],
    /// Whether the numbers of a pair, or the vectors of i that they are made of, need numbers of i.
    pub(super) of_rows: bool,
    /// Whether zeros in place of all vectors add nothing.
    pub(super) vanishes: bool,
    /// All lengths, each once.
    pub(super) depths: Vec<u32>,
}

/// Numbers that are folded of the same vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pass {
    /// Their places among all numbers.
    pub(super) numbers: Range<usize>,
    /// The vectors of i, of j and of neither that they are made of.
    pub(super) ends: [SmallVec<[SlotId; 1]>; 3],
    /// The vectors of pairs that are made on the way.
    pub(super) made: BTreeSet<SlotId>,
    /// The place of the vectors' length in `Long::depths`.
    pub(super) depth: usize,
}

/// The sections of [`Pass::ends`], by place.
const ENDS: [Per; 3] = [Per::I, Per::J, Per::Once];

impl Long {
    /// What pairs have of long vectors. None where not all of these are made component by component, where a number needs
    /// too many of one section, or where a pair has no number of them or too many.
    pub(super) fn find(tape: &Tape) -> Option<Long> {
        let (first, per) = (tape.inputs().len(), tape.sections());
        let vectors: Vec<SlotId> =
            (0..tape.slots() as SlotId).filter(|&slot| tape.slot(slot).len > LONG).collect();
        let is_vector = |slot: &SlotId| tape.slot(*slot).len > LONG;
        if tape.outputs().iter().any(is_vector) {
            return None;
        }
        let scaled = scaled(tape, &per);
        let is_scaled = |slot: &SlotId| scaled[usize::from(*slot)];
        let (mut numbers, mut of_j) = (Vec::new(), Vec::new());
        for (k, step) in tape.steps().iter().enumerate() {
            let slot = (first + k) as SlotId;
            if !step.operands.iter().any(is_vector) && !is_vector(&slot) {
                continue;
            }
            match per[first + k] {
                _ if is_vector(&slot) => is_elementwise(step).then_some(())?,
                Per::Pair if is_number(step) && numbers.len() < MOST => numbers.push(slot),
                Per::J if is_sum(step) && !step.operands.iter().any(is_scaled) => of_j.push(slot),
                Per::Pair => return None,
                _ => matches!(step.action, Action::Dot | Action::Fold(_)).then_some(())?,
            }
        }
        let mut depths: Vec<u32> = vectors.iter().map(|&slot| tape.slot(slot).len).collect();
        depths.sort_unstable();
        depths.dedup();
        let (passes, numbers) = passes(tape, &per, &numbers, &depths)?;
        let dtype = tape.slot(*numbers.first()?).dtype;
        let ends = |place: usize| passes.iter().flat_map(move |pass| &pass.ends[place]);
        let fits = matches!(dtype, DType::Float32 | DType::Float64)
            && (0..3).flat_map(ends).all(|&end| tape.slot(end).dtype == dtype)
            && numbers.iter().chain(&of_j).all(|&slot| tape.slot(slot).dtype == dtype);
        let scaled = [0, 1].map(|place| ends(place).any(is_scaled));
        let is_of_i = |slot: &SlotId| per[usize::from(*slot)] == Per::I && !is_vector(slot);
        let of_rows =
            scaled[0] || of_pairs(tape, &per).any(|(_, step)| step.operands.iter().any(is_of_i));
        let adds = |slot: &SlotId| tape.step_of(*slot).is_some_and(is_sum);
        let of_zeros = of_pairs(tape, &per).all(|(_, step)| {
            matches!(&step.action, Action::Apply(id) if VANISHING.contains(id))
                && step.operands.iter().all(is_vector)
        });
        let vanishes = of_zeros && numbers.iter().all(adds);
        let short = tape.inputs().iter().filter(|input| input.per == Per::J);
        let bytes = short.filter(|input| input.slot.len <= LONG);
        let bytes: usize =
            bytes.map(|input| input.slot.len as usize * input.slot.dtype.size()).sum();
        let outside = |slot: &SlotId| {
            let steps = tape.steps().iter().zip(first..);
            let mut users = steps.filter(|(step, _)| step.operands.contains(slot));
            users.any(|(step, at)| per[at] != Per::I || step.slot.len > LONG)
        };
        let of_row = (0..tape.slots() as SlotId).filter(|slot| is_of_i(slot) && outside(slot));
        let of_row: usize = of_row.map(|slot| sections::bytes(tape, slot)).sum();
        (fits && bytes <= BESIDE && (!of_rows || of_row <= OF_ROW)).then_some(Long {
            numbers,
            passes,
            vectors,
            of_j,
            scaled,
            of_rows,
            vanishes,
            depths,
        })
    }

    /// Components that are folded for a pair.
    pub(super) fn folded(&self) -> usize {
        self.passes.iter().map(|pass| self.depths[pass.depth] as usize).sum()
    }

    /// The most vectors of i, of j and of neither that a pass has, and at least one of each.
    pub(super) fn vectors_of(&self) -> [usize; 3] {
        let most = |place: usize| self.passes.iter().map(move |pass| pass.ends[place].len()).max();
        [0, 1, 2].map(|place| most(place).unwrap_or(1).max(1))
    }

    /// How many vectors share a chunk, as a power of two.
    pub(super) fn shared_by(&self) -> usize {
        let [of_i, of_j, _] = self.vectors_of();
        of_i.max(of_j).next_power_of_two()
    }

    /// The place of a length in `depths`.
    pub(super) fn place_of(&self, len: u32) -> Option<usize> {
        self.depths.binary_search(&len).ok()
    }

    /// Whether a slot is one of the vectors.
    pub(super) fn has(&self, slot: SlotId) -> bool {
        self.vectors.binary_search(&slot).is_ok()
    }
}

/// Operations that give zero of zeros.
const VANISHING: [Id; 6] = [Id::Add, Id::Subtract, Id::Multiply, Id::Square, Id::Negative, Id::Abs];

/// Whether a step sums along vectors.
fn is_sum(step: &Step) -> bool {
    matches!(step.action, Action::Dot | Action::Fold(FoldId::Sum))
}

/// Whether a step folds vectors to a number, with a number as its state.
fn is_number(step: &Step) -> bool {
    is_sum(step) || matches!(step.action, Action::Fold(FoldId::Max | FoldId::Min))
}

/// The steps that are vectors of pairs.
fn of_pairs<'t>(tape: &'t Tape, per: &'t [Per]) -> impl Iterator<Item = (SlotId, &'t Step)> + 't {
    let first = tape.inputs().len();
    let steps = tape.steps().iter().enumerate().map(move |(k, step)| (first + k, step));
    let vectors = steps.filter(|(slot, step)| step.slot.len > LONG && per[*slot] == Per::Pair);
    vectors.map(|(slot, step)| (slot as SlotId, step))
}

/// The passes that fold these numbers, and the numbers in the order of the passes. None where a number is made of too many
/// vectors of a section, or of other numbers of the pair.
fn passes(
    tape: &Tape,
    per: &[Per],
    numbers: &[SlotId],
    depths: &[u32],
) -> Option<(Vec<Pass>, Vec<SlotId>)> {
    let mut found: Vec<(Pass, Vec<SlotId>)> = Vec::new();
    for &number in numbers {
        let own = Pass::of(tape, per, number, depths)?;
        match found.iter_mut().find(|(pass, _)| pass.may_join(&own)) {
            Some((pass, numbers)) => {
                pass.join(own);
                numbers.push(number);
            }
            None => found.push((own, vec![number])),
        }
    }
    let mut all = Vec::new();
    let passes = found.into_iter().map(|(pass, numbers)| {
        let first = all.len();
        all.extend(numbers);
        Pass { numbers: first..all.len(), ..pass }
    });
    Some((passes.collect(), all))
}

impl Pass {
    /// The pass of one number by itself; none as in [`passes`].
    fn of(tape: &Tape, per: &[Per], number: SlotId, depths: &[u32]) -> Option<Pass> {
        let mut pass = Pass::default();
        let mut open = vec![number];
        while let Some(step) = open.pop().and_then(|slot| tape.step_of(slot)) {
            for &operand in &step.operands {
                let (section, len) = (per[usize::from(operand)], tape.slot(operand).len);
                let place = ENDS.iter().position(|end| *end == section);
                if len > LONG {
                    pass.depth = depths.binary_search(&len).ok()?;
                }
                match place {
                    None if len <= LONG => return None,
                    None if pass.made.insert(operand) => open.push(operand),
                    Some(place) if len > LONG => {
                        let ends = &mut pass.ends[place];
                        if !ends.contains(&operand) {
                            ends.push(operand);
                        }
                        if ends.len() > MOST_VECTORS {
                            return None;
                        }
                    }
                    _ => {}
                }
            }
        }
        Some(pass)
    }

    /// The place in `ends` of a vector's section, and of the vector among those of the section.
    pub(super) fn end(&self, slot: SlotId) -> Option<(usize, usize)> {
        let mut ends = self.ends.iter().enumerate();
        ends.find_map(|(place, ends)| Some((place, ends.iter().position(|end| *end == slot)?)))
    }

    /// Whether numbers of another pass can be folded in this one: where one has the vectors of the other, or some of them.
    fn may_join(&self, other: &Pass) -> bool {
        let has = |all: &[SlotId], some: &[SlotId]| some.iter().all(|slot| all.contains(slot));
        let mut ends = self.ends.iter().zip(&other.ends);
        self.depth == other.depth && ends.all(|(own, other)| has(own, other) || has(other, own))
    }

    /// Takes the vectors of another pass.
    fn join(&mut self, other: Pass) {
        for (own, other) in self.ends.iter_mut().zip(other.ends) {
            if other.len() > own.len() {
                *own = other;
            }
        }
        self.made.extend(other.made);
    }
}

/// For each slot, whether it is a vector that is made with numbers of its section.
fn scaled(tape: &Tape, per: &[Per]) -> Vec<bool> {
    let mut scaled = vec![false; tape.slots()];
    for (slot, step) in (tape.inputs().len()..).zip(tape.steps()) {
        let with = |&operand: &SlotId| {
            let own = per[usize::from(operand)] == per[slot];
            own && (tape.slot(operand).len == 1 || scaled[usize::from(operand)])
        };
        scaled[slot] = step.slot.len > LONG && step.operands.iter().any(with);
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};

    fn find(text: &str, dtype: DType) -> Option<Long> {
        let aliases = [
            "x = Vi(100)",
            "y = Vj(100)",
            "b = Vj(2)",
            "c = Vj(70)",
            "q = Pm(100)",
            "s = Pm(1)",
            "t = Vi(1)",
            "v = Vi(100)",
            "w = Vi(100)",
            "r = Vi(100)",
            "l = Vi(100)",
            "z = Vj(100)",
            "u = Vi(70)",
            "e = Vi(64)",
            "f = Vi(64)",
            "g = Vi(64)",
            "h = Vj(64)",
        ];
        let parsed = formula(text, &aliases).unwrap();
        let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).unwrap();
        let purpose = Purpose { dtype, cheap: true };
        Long::find(&lower_for(&reduction.outputs(), purpose).unwrap().tape)
    }

    #[test]
    fn numbers_of_long_vectors_are_found() {
        for dtype in [DType::Float16, DType::Float32, DType::Float64] {
            let distance = find("Exp(-SqDist(x,y)) * b", dtype).unwrap();
            assert_eq!((&distance.depths[..], distance.vanishes), (&[100][..], true));
            assert_eq!((distance.passes.len(), distance.passes[0].ends[2].len()), (1, 0));
            assert_eq!(distance.vectors.len(), if dtype == DType::Float16 { 5 } else { 3 });
            let product = find("(x|y) * b", dtype).unwrap();
            assert_eq!(product.vectors.len(), distance.vectors.len() - 1);
        }
        for (text, numbers) in
            [("SqDist(x,y) * (x|y)", 2), ("Sum(Abs(x - y)) * SqDist(x,y) * (x|y)", 3)]
        {
            assert_eq!(find(text, DType::Float32).expect(text).numbers.len(), numbers, "{text}");
        }
        // With how many sums of j, whether vectors of i and of j need their numbers, and whether zeros add nothing.
        for (text, of_j, scaled, vanishes) in [
            ("(x|y) / (Norm2(x) * Norm2(y))", 1, [false, false], true),
            ("SqNorm2(x) * (x|y)", 0, [false, false], true),
            ("Sum(Abs(x - y))", 0, [false, false], true),
            ("WeightedSqDist(q, x, y)", 0, [false, false], true),
            ("SqDist(x / q, y / q)", 0, [false, false], true),
            ("SqDist(x * t, y / s)", 0, [true, false], true),
            ("SqDist(x, y / Sum(Abs(y)))", 1, [false, true], true),
            ("Sum(Square(x - y) / (x + y))", 0, [false, false], false),
            ("Sum(Exp(x * y * s))", 0, [false, false], false),
            ("SqDist(x,y) * (x|y)", 0, [false, false], true),
            ("Max(Abs(x - y))", 0, [false, false], false),
            ("SqDist(x * t, y) * ((e|h) + (Exp(e)|h))", 0, [true, false], true),
            ("Min(x * t + y) * SqDist(x * t, y)", 0, [true, false], false),
            (
                "SqDist(x,y) * (x|y) / (Norm2(x) * Norm2(y)) * Sum(Abs(x - y))",
                1,
                [false, false],
                true,
            ),
        ] {
            let long = find(text, DType::Float32).expect(text);
            let found = (long.of_j.len(), long.scaled, long.vanishes);
            assert_eq!(found, (of_j, scaled, vanishes), "{text}");
        }
    }

    #[test]
    fn numbers_of_other_vectors_have_passes_of_their_own() {
        for (text, passes, depths) in [
            ("SqDist(x,y) * (x|y)", 1, &[100][..]),
            ("SqDist(x,y) * (v|y)", 2, &[100]),
            ("SqDist(x,y) * (u|c)", 2, &[70, 100]),
            ("(x|y) * (u|c) * SqDist(x,y)", 2, &[70, 100]),
            ("SqDist(x,y) * (u|c) * (v|q)", 2, &[70, 100]),
        ] {
            let long = find(text, DType::Float32).expect(text);
            assert_eq!((long.passes.len(), &long.depths[..]), (passes, depths), "{text}");
            let numbers = long.passes.iter().flat_map(|pass| pass.numbers.clone());
            assert!(numbers.eq(0..long.numbers.len()), "{text}: {long:?}");
        }
    }

    #[test]
    fn vectors_of_a_row_share_chunks() {
        for (text, vectors, shared, passes) in [
            ("SqDist(x,y)", [1, 1, 1], 1, 1),
            ("WeightedSqDist(v, x, y)", [2, 1, 1], 2, 1),
            ("Sum(v * Square(x - y) * z * q)", [2, 2, 1], 2, 1),
            ("Sum(v * Abs(w * x - y))", [2, 1, 1], 2, 1),
            ("Sum(v * Abs(x - y) * Abs(w - y))", [3, 1, 1], 4, 1),
            // Numbers of some of the vectors are folded with that of all.
            ("SqDist(x,y) * Sum(v * Square(x - y))", [2, 1, 1], 2, 1),
            ("SqDist(w,y) * Sum(v * Square(x - y))", [2, 1, 1], 2, 2),
        ] {
            let long = find(text, DType::Float32).expect(text);
            let found = (long.vectors_of(), long.shared_by(), long.passes.len());
            assert_eq!(found, (vectors, shared, passes), "{text}");
        }
    }

    #[test]
    fn other_vectors_stay() {
        for text in [
            // More numbers of i than others have room for.
            "SqDist(x * t, y) * ((e|h) + (f|h) + (g|h))",
            // Results, five numbers of a pair, five vectors of i, more than a number.
            "Grad(Exp(-SqDist(x,y)), x, Extract(b, 0, 1))",
            "SqDist(x,y) * c",
            "SqDist(x,y) * (x|y) * Sum(Abs(x - y)) * Sum(Square(x * y)) * Sum(Abs(x + y))",
            "Sum(v * Abs(w - y) * Abs(r - y) * Abs(l - y) * Abs(x - y))",
            "ArgMax(x - y)",
        ] {
            assert_eq!(find(text, DType::Float32), None, "{text}");
        }
    }
}
