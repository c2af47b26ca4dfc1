//! What kernels are known by: bytes that differ wherever their text does.
//!
//! Made at every call, so it is cheaper than printing. Called by `launching`.

use tilework_tape::{Action, Tape};

use super::plan::Plan;
use super::wide::Wide;

/// The key of a plan's kernels: everything that their text depends on.
pub(super) fn of(plan: &Plan<'_>) -> Vec<u8> {
    let (folding, tiling) = (&plan.folding, plan.tiling);
    let mut key = vec![
        b'P',
        folding.fold as u8,
        folding.accumulates as u8,
        folding.compensated as u8,
        folding.strict as u8,
        folding.finish as u8,
        folding.output as u8,
        plan.sections.square.is_some() as u8,
    ];
    let numbers =
        [folding.shape.k, tiling.threads, tiling.rows, tiling.tile, tiling.group, tiling.ahead];
    key.extend(numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()));
    if let Some(wide) = tiling.wide {
        let Wide { groups, stages, resident, depths, shallow, parts, right, .. } = wide;
        let numbers = [groups, stages, resident.into(), depths, shallow.into(), parts, right];
        key.extend(numbers.map(|number| number as u8));
    }
    encode(plan.sections.tape, &mut key);
    if let Some(right) = &plan.right {
        let difference = right.of.difference.map(|it| [it.from, it.len]);
        let numbers = [plan.folding.shape.dim].into_iter().chain(difference.into_iter().flatten());
        key.extend(numbers.flat_map(|number| (number as u32).to_le_bytes()));
        encode(&right.of.sides, &mut key);
    }
    key
}

/// A tape as bytes that differ where tapes do.
fn encode(tape: &Tape, key: &mut Vec<u8>) {
    let word = |key: &mut Vec<u8>, number: u32| key.extend(number.to_le_bytes());
    word(key, tape.inputs().len() as u32);
    for input in tape.inputs() {
        key.extend([input.slot.dtype as u8, input.per as u8]);
        word(key, input.slot.len);
    }
    for step in tape.steps() {
        match &step.action {
            Action::Apply(id) => key.extend([0, *id as u8]),
            Action::Cast => key.push(1),
            Action::Select => key.push(2),
            Action::Constant(value) => {
                key.push(3);
                key.extend(value.bytes());
            }
            Action::Extract(start) => {
                key.push(4);
                word(key, *start);
            }
            Action::Concat => key.push(5),
            Action::Place(start) => {
                key.push(6);
                word(key, *start);
            }
            Action::Fold(fold) => key.extend([7, *fold as u8]),
            Action::Dot => key.push(8),
            Action::Contract(contraction) => {
                key.push(9);
                for shape in [&contraction.left, &contraction.right] {
                    word(key, shape.len() as u32);
                    shape.iter().for_each(|&size| word(key, size));
                }
                word(key, contraction.over.len() as u32);
                contraction.over.iter().for_each(|&(left, right)| key.extend([left, right]));
            }
        }
        key.push(step.slot.dtype as u8);
        word(key, step.slot.len);
        word(key, step.operands.len() as u32);
        key.extend(step.operands.iter().flat_map(|operand| operand.to_le_bytes()));
    }
    key.extend(tape.outputs().iter().flat_map(|output| output.to_le_bytes()));
}
