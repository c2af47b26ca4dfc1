//! What the formula makes of a squared distance: what it is scaled by, and whether its exponentials are normal
//! numbers.
//!
//! May assume a tape whose numbers that vary with nothing can be read. Each question is one pass over
//! the steps. Called by `form`.

use tilework_backend::PairReduce;
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Per, SlotId, Tape};

use super::Source;
use super::fold::LOG2_E;
use super::products::Number;

/// The values of the slots that hold one number and vary with nothing.
pub(super) struct Numbers(Vec<Option<Scalar>>);

impl Numbers {
    pub(super) fn of(tape: &Tape, sources: &[Source]) -> Numbers {
        let mut all: Vec<Option<Scalar>> = Vec::with_capacity(tape.slots());
        for (input, source) in tape.inputs().iter().zip(sources) {
            let size = input.slot.dtype.size();
            let at = source.base.wrapping_add(source.layout.offset() * size);
            all.push((input.per == Per::Once && input.slot.len == 1).then(|| {
                // SAFETY: an input that varies with nothing has one number, which may be read: the
                // layout lies inside of its block, whose guard the session holds.
                let bytes = unsafe { std::slice::from_raw_parts(at, size) };
                Scalar::from_bytes(input.slot.dtype, bytes)
            }));
        }
        for step in tape.steps() {
            let operands = step.operands.iter().map(|&slot| all[usize::from(slot)]);
            let operands: Option<Vec<Scalar>> = operands.collect();
            all.push(operands.filter(|_| step.slot.len == 1).and_then(|x| match &step.action {
                Action::Constant(value) => Some(*value),
                Action::Cast => Some(x[0].cast(step.slot.dtype)),
                Action::Apply(id) => id.evaluate(&x),
                _ => None,
            }));
        }
        Numbers(all)
    }

    pub(super) fn get(&self, slot: SlotId) -> Option<f64> {
        self.0[usize::from(slot)].map(|value| value.cast(DType::Float64).get::<f64>())
    }
}

/// Whether no exponential of a formula is too small for a normal number, if the squared distance of a
/// slot is that of points whose squared norms are at most `radius`: each is one of the distance times
/// a factor, and exponents that are shifted by one another are too.
pub(super) fn are_normal<T: Number>(
    request: &PairReduce<'_>,
    numbers: &Numbers,
    distance: SlotId,
    radius: f64,
) -> bool {
    let tape = request.tape;
    let (slot, factor) = scaled(tape, numbers, distance);
    let mut exponentials =
        tape.steps().iter().filter(|step| step.action == Action::Apply(Id::Exp2Pair));
    let shifted = request.fold.row().monoid == Monoid::Shifted;
    let scale = if shifted { LOG2_E } else { 1.0 };
    exponentials.all(|step| step.operands[0] == slot)
        && (!shifted || tape.outputs().first() == Some(&slot))
        && 4.0 * radius * (factor * scale).abs() <= T::NORMAL
}

/// The slot that is this one times a factor, and nothing else becomes of it; and the factor.
pub(super) fn scaled(tape: &Tape, numbers: &Numbers, mut slot: SlotId) -> (SlotId, f64) {
    let first = tape.inputs().len();
    // For every slot how often it is used, and the step that uses it last.
    let mut uses = vec![(0usize, 0usize); tape.slots()];
    for (k, step) in tape.steps().iter().enumerate() {
        step.operands.iter().for_each(|&x| uses[usize::from(x)] = (uses[usize::from(x)].0 + 1, k));
    }
    let mut scale = 1.0;
    while let (1, k) = uses[usize::from(slot)]
        && !tape.outputs().contains(&slot)
    {
        let step = &tape.steps()[k];
        let factor = match (&step.action, &step.operands[..]) {
            (Action::Apply(Id::Negative), _) => Some(-1.0),
            (Action::Apply(Id::Multiply), &[a, b]) => numbers.get(if a == slot { b } else { a }),
            (Action::Apply(Id::Divide), &[a, b]) if a == slot => {
                numbers.get(b).map(|divisor| 1.0 / divisor)
            }
            _ => None,
        };
        let Some(factor) = factor else { break };
        scale *= factor;
        slot = (first + k) as SlotId;
    }
    (slot, scale)
}
