//! What is done to a distance before it is compared, where that keeps or reverses its order.
//!
//! Called by `nearest` and `shortlist`.

use tilework_ops::{Id, Scalar};
use tilework_tape::{Action, SlotId, Step, Tape};

use super::products::Number;
use crate::map::kernels::kernel;

/// Units in the last place that the square root of pairs may be off (`tilework_ops::rows`).
const SQRT_PAIR_ULP: f64 = 4.0;

/// What is done to a distance before it is compared: functions that keep or reverse its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Then<T> {
    Negate,
    Times(T),
    /// One of the square roots.
    Root(Id),
}

impl<T: Number> Then<T> {
    /// Roundings that it adds, as the bound of `nearest` counts them, to what it gives.
    pub(super) fn roundings(self) -> f64 {
        match self {
            Then::Negate => 0.0,
            Then::Times(_) | Then::Root(Id::Sqrt | Id::SqrtFlat) => 2.0,
            Then::Root(_) => 4.0 * SQRT_PAIR_ULP,
        }
    }

    /// Does it to numbers, with the bits that a tile gets; `room` is for as many.
    pub(super) fn apply(self, numbers: &mut Vec<T>, room: &mut Vec<T>) {
        match self {
            Then::Negate => numbers.iter_mut().for_each(|number| *number = -*number),
            Then::Times(factor) => numbers.iter_mut().for_each(|number| *number = *number * factor),
            Then::Root(id) => {
                let Some(root) = kernel(id, T::DTYPE) else { return };
                room.resize(numbers.len(), T::ZERO);
                let from = numbers.as_ptr().cast();
                // SAFETY: two vectors of as many numbers of the kernel's dtype.
                unsafe { root(numbers.len(), room.as_mut_ptr().cast(), from, from, from) };
                std::mem::swap(numbers, room);
            }
        }
    }
}

/// A step as a monotone function of one slot.
pub(super) fn monotone<T: Number>(tape: &Tape, step: &Step) -> Option<(SlotId, Then<T>)> {
    let constant = |slot: SlotId| match tape.step_of(slot)?.action {
        Action::Constant(value) => Some(value),
        _ => None,
    };
    let number = |value: Scalar| T::of(value.cast(tilework_ops::DType::Float64).get::<f64>());
    match (&step.action, &step.operands[..]) {
        (Action::Apply(Id::Negative), &[a]) => Some((a, Then::Negate)),
        (Action::Apply(id @ (Id::Sqrt | Id::SqrtFlat | Id::SqrtPair)), &[a]) => {
            kernel(*id, T::DTYPE).map(|_| (a, Then::Root(*id)))
        }
        (Action::Apply(Id::Multiply), &[a, b]) => match (constant(a), constant(b)) {
            (Some(factor), _) => Some((b, Then::Times(number(factor)))),
            (_, Some(factor)) => Some((a, Then::Times(number(factor)))),
            _ => None,
        },
        _ => None,
    }
}
