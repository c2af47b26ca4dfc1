//! Inner products and squared distances of long vectors: their length is an argument, so that a formula has
//! one kernel for all of them, and they come to shared memory in chunks, so that no length is too large.
//!
//! Found where a long vector of i and one of j are needed for nothing else; `kernels/pairs_long.cu` computes
//! the numbers of pairs that they give. Made by `sections`, read by `plan`, `functions` and `print`.

use smallvec::SmallVec;
use tilework_ops::DType;
use tilework_tape::{Action, Per, SlotId, Step, Tape};

use super::sections::LONG;

/// Bytes of a j beside its vector that there is room for.
const BESIDE: usize = 256;

/// The one product of long vectors of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Long {
    /// Gives the number of a pair.
    pub(super) slot: SlotId,
    /// The vectors of i and of j: inputs.
    pub(super) inputs: [SlotId; 2],
    /// Steps before it, of vectors: casts, and the difference. None of them is run as such.
    pub(super) before: SmallVec<[SlotId; 3]>,
    pub(super) difference: Option<SlotId>,
    /// The length.
    pub(super) depth: u32,
}

impl Long {
    /// None where other vectors are long, or these are needed elsewhere.
    pub(super) fn find(tape: &Tape) -> Option<Long> {
        let first = tape.inputs().len();
        let dots = tape.steps().iter().enumerate().filter(|(_, step)| step.action == Action::Dot);
        let mut found = dots.filter_map(|(k, step)| at(tape, (first + k) as SlotId, step));
        let long = found.next()?;
        let beside = |slot: &usize| !long.has(*slot as SlotId);
        let short = (0..tape.slots()).filter(beside).all(|slot| length(tape, slot) <= LONG);
        let of_j = tape
            .inputs()
            .iter()
            .enumerate()
            .filter(|(k, input)| input.per == Per::J && *k != usize::from(long.inputs[1]));
        let bytes = of_j.map(|(_, input)| input.slot.len as usize * input.slot.dtype.size());
        (short && bytes.sum::<usize>() <= BESIDE).then_some(long)
    }

    /// Whether a slot is one of the vectors.
    pub(super) fn has(&self, slot: SlotId) -> bool {
        self.inputs.contains(&slot) || self.before.contains(&slot)
    }
}

fn length(tape: &Tape, slot: usize) -> u32 {
    tape.slot(slot as SlotId).len
}

/// The product that a step is, if it is one of two long vectors that nothing else needs.
fn at(tape: &Tape, slot: SlotId, step: &Step) -> Option<Long> {
    let only = |of: SlotId, user: SlotId| tape.users(of) == [user] && !tape.outputs().contains(&of);
    let mut before = SmallVec::new();
    let (difference, points) = match tape.squared_difference(step) {
        Some((difference, points)) => (Some(difference), points),
        None => (None, [*step.operands.first()?, *step.operands.get(1)?]),
    };
    let user = difference.unwrap_or(slot);
    if difference.is_some_and(|difference| !only(difference, slot)) || points[0] == points[1] {
        return None;
    }
    let mut inputs = [0; 2];
    for (k, &point) in points.iter().enumerate() {
        if !only(point, user) {
            return None;
        }
        inputs[k] = match tape.step_of(point) {
            None => point,
            Some(Step { action: Action::Cast, operands, .. }) if only(operands[0], point) => {
                before.push(point);
                operands[0]
            }
            Some(_) => return None,
        };
    }
    before.extend(difference);
    let per = |input: SlotId| tape.inputs().get(usize::from(input)).map(|input| input.per);
    if (per(inputs[0]), per(inputs[1])) == (Some(Per::J), Some(Per::I)) {
        inputs.swap(0, 1);
    }
    let depth = tape.slot(inputs[0]).len;
    let fits = (per(inputs[0]), per(inputs[1])) == (Some(Per::I), Some(Per::J))
        && tape.slot(inputs[1]).len == depth
        && depth > LONG
        && matches!(tape.slot(slot).dtype, DType::Float32 | DType::Float64)
        && points.iter().all(|&point| tape.slot(point).dtype == tape.slot(slot).dtype);
    fits.then_some(Long { slot, inputs, before, difference, depth })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};

    fn find(text: &str, dtype: DType) -> Option<Long> {
        let aliases = ["x = Vi(100)", "y = Vj(100)", "b = Vj(2)", "c = Vj(70)"];
        let parsed = formula(text, &aliases).unwrap();
        let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).unwrap();
        let purpose = Purpose { dtype, cheap: true };
        Long::find(&lower_for(&reduction.outputs(), purpose).unwrap().tape)
    }

    #[test]
    fn distances_and_products_of_long_vectors_are_found() {
        for dtype in [DType::Float16, DType::Float32, DType::Float64] {
            let distance = find("Exp(-SqDist(x,y)) * b", dtype).unwrap();
            assert!(distance.difference.is_some() && distance.depth == 100);
            assert_eq!(distance.before.len(), if dtype == DType::Float16 { 3 } else { 1 });
            let product = find("(x|y) * b", dtype).unwrap();
            assert_eq!((product.difference, product.inputs), (None, distance.inputs));
        }
    }

    #[test]
    fn vectors_that_are_needed_elsewhere_stay() {
        // Twice the same vector; a gradient; a third long vector.
        for text in ["SqNorm2(x) * (x|y)", "Grad(Exp(-SqDist(x,y)), x, b)", "SqDist(x,y) * c"] {
            let text = text.replace("x, b", "x, Extract(b, 0, 1)");
            assert_eq!(find(&text, DType::Float32), None, "{text}");
        }
    }
}
