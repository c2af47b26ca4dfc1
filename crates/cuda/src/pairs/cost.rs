//! What a pair costs, roughly, in instructions: `plan` chooses sizes by it, `launching` pieces, and `pairs` forms.

use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id};
use tilework_tape::{Action, Per, Tape};

use super::plan::{Plan, Sizes};
use super::sections::{Sections, bytes};
use super::square::Square;

/// What a choice of forms costs where blocks choose, in instructions of all lanes of a card: a launch of the form that
/// has nothing to do. On an H200 that is 3 us, at 3.3e13 instructions a second.
const CHOICE_BY_BLOCKS: f64 = 1e8;

/// What a choice costs for which norms are measured before, in the same instructions: several launches, 9 us on an H200.
const CHOICE: f64 = 3e8;

/// What each byte of points costs whose norms are measured, in the same instructions: an H200 takes 2.3e12 bytes a
/// second.
const MEASURED_BYTE: f64 = 14.0;

/// Instructions that take as long as the three products of a component, or of a column of right-hand sides, on tensor
/// cores: on an H200 0.34 and 0.42, by the times of Gaussians of 784 components, and of 3 and a width of 128.
const TENSOR_CORES: f64 = 0.4;

/// `CHOICE_BY_BLOCKS` for points of more than `MANY` components in single precision, so high that only long work has the
/// choice: short ranges of j take no longer by differences, for which NVRTC takes half as long.
const CHOICE_OF_MANY: f64 = 1e10;

/// The most components of points of which threads keep several pairs.
const MANY: u32 = 24;

/// Whether a square saves more instructions of all pairs (`Square::saves`) than the choice costs.
pub(super) fn pays(square: &Square, tape: &Tape, sizes: &Sizes, by_block: bool) -> bool {
    let rows = sizes.batches as f64 * (sizes.m as f64 + sizes.n as f64);
    let measured = rows * bytes(tape, square.x) as f64 * MEASURED_BYTE;
    let many = square.dim(tape) > MANY && tape.slot(square.x).dtype == DType::Float32;
    let choice = match by_block {
        true if many => CHOICE_OF_MANY,
        true => CHOICE_BY_BLOCKS,
        false => CHOICE + measured,
    };
    sizes.pairs() * square.saves(tape) >= choice
}

/// The fewest tiles of j of which a block finds a centre: of fewer it would take 1 us of 43.
const TILES_OF_CENTRE: usize = 4;

/// Whether a centre costs less than it may save. Loops that shift exponents have none, since they would lose a fortieth
/// of their speed, and those of blocks of several ranges a thirtieth, as the assembler has it.
pub(super) fn centre_pays(plan: &Plan<'_>) -> bool {
    let folding = &plan.folding;
    plan.chooses()
        && (folding.monoid(), folding.computes) == (Monoid::Add, DType::Float32)
        && plan.tiling.ranges_per_block == 1
        && plan.sections.square.is_some_and(|square| !square.is_direct())
        && plan.cut.range >= TILES_OF_CENTRE * plan.tiling.tile
}

/// Steps of a pair in all slices of a plan, in the units of [`body`].
pub(super) fn steps(plan: &Plan<'_>) -> f64 {
    let slices = plan.slices.map_or(1, |slices| slices.firsts().count());
    slices as f64 * plan.body as f64
}

/// Steps that products of so many components or columns cost on tensor cores.
pub(super) fn on_tensor_cores(count: usize) -> usize {
    (count as f64 * TENSOR_CORES).ceil() as usize
}

/// Steps of a pair, counted by what they cost.
pub(super) fn body(sections: &Sections<'_>) -> usize {
    let steps = sections.steps(Per::Pair).map(|(_, step)| {
        let operands = step.operands.iter().map(|&slot| sections.tape.slot(slot).len);
        let len = operands.max().unwrap_or(1).max(step.slot.len) as usize;
        let each = match &step.action {
            Action::Apply(_) if sections.square.is_some_and(|square| square.is_power(step)) => {
                cost(Id::Exp2Pair)
            }
            Action::Apply(id) => cost(*id),
            Action::Contract(contraction) => {
                contraction.left.iter().map(|&n| n as usize).product::<usize>().max(1)
            }
            _ => 1,
        };
        each * len
    });
    // Vectors that come in chunks are made on the way; a difference goes with its product.
    let vectors = sections.long.iter().flat_map(|long| &long.vectors);
    let vectors = vectors.filter(|&&slot| sections.per[usize::from(slot)] == Per::Pair);
    let vectors: usize = vectors
        .filter_map(|&slot| sections.step(slot))
        .map(|step| match &step.action {
            Action::Apply(Id::Subtract) => 0,
            Action::Apply(id) => cost(*id) * step.slot.len as usize,
            _ => step.slot.len as usize,
        })
        .sum();
    let square = sections.square.map_or(0, |square| {
        let dim = square.dim(sections.tape) as usize;
        if square.is_direct() { 2 * dim } else { dim }
    });
    let square = if sections.by_tiles() { on_tensor_cores(square) } else { square };
    steps.sum::<usize>() + vectors + square + bytes(sections.tape, sections.tape.outputs()[0]) / 4
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

#[cfg(test)]
mod tests {
    use tilework_backend::Scheme;

    use super::super::tests::sum_of;
    use super::super::{Forms, Plans};
    use super::*;

    /// What calls took on an H200, by docs/benchmarks, and wider ones as much more.
    #[test]
    fn steps_on_tensor_cores_take_as_long_as_others() {
        let gradient = "Concat(Exp(-SqDist(x,y)) * b, Grad(Exp(-SqDist(x,y)) * b, x, b))";
        for (text, dim, width, n, seconds) in [
            ("Exp(-SqDist(x,y)) * b", 64, 1, 100_000, 8.0e-3),
            ("Exp(-SqDist(x,y)) * b", 784, 1, 10_000, 0.89e-3),
            ("Exp(-SqDist(x,y)) * b", 3, 128, 100_000, 19.5e-3),
            ("Exp(-SqDist(x,y)) * b", 3, 512, 100_000, 4.0 * 19.5e-3),
            (gradient, 64, 1, 100_000, 17.8e-3),
        ] {
            let [x, y] = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
            let (tape, folding) = sum_of(text, &[&x[..], &y, &format!("b = Vj({width})")]);
            let sizes = Sizes {
                batches: 1,
                m: n,
                n,
                multiprocessors: 132,
                scheme: Scheme::Auto,
                capability: (9, 0),
            };
            let forms = Forms::new(&tape, &folding);
            let plan = Plans::new(&forms, folding, sizes).expanded.unwrap().plan;
            assert!(plan.tiling.wide.is_some());
            let counted = sizes.pairs() * steps(&plan) / 3.3e13 / seconds;
            assert!((0.7..1.5).contains(&counted), "{text}, {dim}, {width}: {counted}");
        }
    }
}
