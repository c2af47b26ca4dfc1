//! What a pair costs, roughly, in instructions: `plan` chooses sizes by it, and `launching` pieces.

use tilework_ops::Id;
use tilework_tape::{Action, Per};

use super::sections::{Sections, bytes};

/// Steps of a pair, counted by what they cost.
pub(super) fn body(sections: &Sections<'_>) -> usize {
    let steps = sections.steps(Per::Pair).map(|(_, step)| {
        let operands = step.operands.iter().map(|&slot| sections.tape.slot(slot).len);
        let len = operands.max().unwrap_or(1).max(step.slot.len) as usize;
        let each = match &step.action {
            Action::Apply(id) => cost(*id),
            Action::Contract(contraction) => {
                contraction.left.iter().map(|&n| n as usize).product::<usize>().max(1)
            }
            _ => 1,
        };
        each * len
    });
    let square = sections.square.map_or(0, |square| square.dim(sections.tape) as usize);
    steps.sum::<usize>() + square + bytes(sections.tape, sections.tape.outputs()[0]) / 4
}

/// What a step on one number costs, roughly, in instructions.
fn cost(id: Id) -> usize {
    match id {
        Id::Add | Id::Subtract | Id::Multiply | Id::Fma | Id::Negative | Id::Square => 1,
        Id::Exp2Pair | Id::RcpPair | Id::RsqrtPair | Id::SqrtPair => 2,
        Id::Exp | Id::Exp2 | Id::Divide | Id::Sqrt | Id::SqrtFlat | Id::Reciprocal => 10,
        Id::FloorDivide | Id::Remainder | Id::ModFrom | Id::Pow | Id::Hypot | Id::Cbrt => 80,
        Id::Rsqrt | Id::RsqrtOrZero | Id::Expm1 | Id::LogAddExp | Id::Sigmoid | Id::Erf => 80,
        Id::Log | Id::Log1p | Id::Log2 | Id::Log10 | Id::XLogX | Id::SinXDivX => 80,
        Id::Sin | Id::Cos | Id::Tan | Id::Asin | Id::Acos | Id::Atan | Id::Atan2 => 80,
        Id::Sinh | Id::Cosh | Id::Tanh | Id::Asinh | Id::Acosh | Id::Atanh => 80,
        _ => 3,
    }
}
