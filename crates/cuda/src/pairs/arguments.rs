//! Numbers of a formula that kernels get as arguments, so that a formula with another number, as a search for
//! a width or a line search has one in every step, is the same kernel.
//!
//! Numbers that formulas are made of, as 1, 2 or log2(e), are part of the text, where the compiler sees them.
//! Found by `sections`, printed by `functions`, left out of the key, given with the inputs by `launching`.

use std::f64::consts::LOG2_E;

use tilework_ops::{DType, Scalar};
use tilework_tape::{Action, SlotId, Tape};

/// The most numbers that a kernel gets: a formula of more has the rest in its text.
const MOST: usize = 32;

/// The constants of a tape that are arguments, in order.
pub(super) fn of(tape: &Tape) -> Vec<SlotId> {
    let first = tape.inputs().len();
    let constants = tape.steps().iter().enumerate().filter_map(|(k, step)| match &step.action {
        Action::Constant(number) if is_argument(number) => Some((first + k) as SlotId),
        _ => None,
    });
    constants.take(MOST).collect()
}

/// The bits of an argument.
pub(super) fn bits(tape: &Tape, slot: SlotId) -> u64 {
    match tape.step_of(slot).map(|step| &step.action) {
        Some(Action::Constant(number)) => {
            number.bytes().iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
        }
        _ => 0,
    }
}

/// Argument number `k` of a kernel as a number of a dtype.
pub(super) fn text(dtype: DType, k: usize) -> String {
    match dtype {
        DType::Float64 => format!("__longlong_as_double((i64)in.numbers[{k}])"),
        _ => format!("__uint_as_float((u32)in.numbers[{k}])"),
    }
}

fn is_argument(number: &Scalar) -> bool {
    let plain = [0.0, 0.5, 1.0, 2.0, LOG2_E, 2.0 * LOG2_E];
    let is = |plain: f64| {
        [plain, -plain].iter().any(|&plain| *number == Scalar::new(plain).cast(number.dtype()))
    };
    matches!(number.dtype(), DType::Float32 | DType::Float64) && !plain.into_iter().any(is)
}
