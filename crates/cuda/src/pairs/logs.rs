//! Logarithms of sums of exponentials as logarithms of sums: exp(F) as a power of two, without the largest F, where F is
//! a scaled square of points whose norms are looked at.
//!
//! Norms with which squares may be expanded leave exponents of two of less than a hundred, with which no sum leaves the
//! range of float32: nothing has to be shifted, and a pair needs neither a look at the largest exponent nor a way back.
//! On tensor cores only: there all of a call is in one form, and states of the other never meet these. Called by `pairs`.

use std::f64::consts::LOG2_E;

use tilework_ops::pair_fold::{Finish, PairFoldId, PairShape};
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Builder, SlotId, Tape};

use super::folding::Folding;

/// A formula whose sum has the logarithm that a reduction asks for.
pub(super) struct Logs {
    pub(super) tape: Tape,
}

impl Logs {
    /// Powers of two in place of a formula's exponentials; none where the reduction is another one, or the formula is no
    /// scaled squared distance by itself.
    pub(super) fn new(tape: &Tape, folding: &Folding) -> Option<Logs> {
        let may = folding.fold.row().finish == Finish::LogSums
            && folding.finish
            && folding.shape == (PairShape { dim: 1, k: 1, weights: 0 })
            && [folding.computes, folding.accumulates] == [DType::Float32; 2]
            && !folding.strict
            && !folding.compensated;
        let &[output] = tape.outputs() else { return None };
        may.then(|| Logs::of_power(tape, output)).flatten()
    }

    /// The exponential of `output` as a power of two: log2(e) is a factor of the number that the square is multiplied by.
    fn of_power(tape: &Tape, output: SlotId) -> Option<Logs> {
        let is_square = |slot: SlotId| {
            tape.step_of(slot).is_some_and(|step| tape.squared_difference(step).is_some())
        };
        let mut build = Builder::continuing(tape);
        let number = |build: &mut Builder, value: f64| build.constant(Scalar::new(value as f32), 1);
        let (square, scale) = match tape.step_of(output).map(|it| (&it.action, &it.operands[..])) {
            _ if is_square(output) => (output, number(&mut build, LOG2_E)),
            Some((Action::Apply(Id::Negative), &[square])) if is_square(square) => {
                (square, number(&mut build, -LOG2_E))
            }
            Some((Action::Apply(Id::Multiply), &[a, b])) if is_square(a) != is_square(b) => {
                let (square, scale) = if is_square(a) { (a, b) } else { (b, a) };
                let log2_e = number(&mut build, LOG2_E);
                (square, build.apply(Id::Multiply, &[scale, log2_e]).ok()?)
            }
            _ => return None,
        };
        let exponent = build.apply(Id::Multiply, &[square, scale]).ok()?;
        let power = build.apply(Id::Exp2Pair, &[exponent]).ok()?;
        Some(Logs { tape: build.finish(&[power]).ok()?.only(&[power]) })
    }

    /// How the powers are folded in place of `of`: summed, with the logarithm at the end.
    pub(super) fn folding(&self, of: &Folding) -> Folding {
        Folding { fold: PairFoldId::Sum, logarithm: true, ..*of }
    }
}

#[cfg(test)]
mod tests {
    use tilework_backend::Scheme;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};

    use super::super::plan::Sizes;
    use super::super::tests::sum_of;
    use super::super::{Expanded, Forms, Plans};
    use super::*;

    #[test]
    fn distances_by_themselves_need_no_shift() {
        let of = |text: &str, weight: Option<&str>, change: fn(&mut Folding)| {
            let aliases = ["x = Vi(40)", "y = Vj(40)", "s = Pm(1)", "b = Vj(1)"];
            let [parsed, one] = [text, "b"].map(|text| formula(text, &aliases).unwrap());
            let weight = weight.map(|_| &one);
            let reduction = Reduction::new("LogSumExp", &parsed, Axis::J, None, weight).unwrap();
            let purpose = Purpose { dtype: DType::Float32, cheap: true };
            let tape = lower_for(&reduction.outputs(), purpose).unwrap().tape;
            let (_, sum) = sum_of("b", &aliases);
            let mut folding =
                Folding { fold: PairFoldId::LogSumExp, shape: reduction.shape(), ..sum };
            change(&mut folding);
            Logs::new(&tape, &folding).map(|logs| logs.tape)
        };
        for (text, expected) in [
            ("-SqDist(x,y) * s", true),
            ("SqDist(x,y) / s", true),
            ("-SqDist(x,y)", true),
            ("SqDist(x,y)", true),
            ("b - SqDist(x,y)", false),
            ("(x|y) * s", false),
            ("-Sqrt(SqDist(x,y))", false),
            ("SqDist(x,y) * SqDist(x,y)", false),
        ] {
            let found = of(text, None, |_| {});
            assert_eq!(found.is_some(), expected, "{text}");
            let Some(tape) = found else { continue };
            let last = tape.step_of(tape.outputs()[0]).unwrap();
            assert!(last.action == Action::Apply(Id::Exp2Pair), "{text}: {tape:?}");
        }
        let gauss = "-SqDist(x,y) * s";
        assert!(of(gauss, Some("b"), |_| {}).is_none(), "weights");
        assert!(of(gauss, None, |folding| folding.finish = false).is_none(), "states");
        assert!(of(gauss, None, |folding| folding.strict = true).is_none(), "strict");
        assert!(of(gauss, None, |folding| folding.compensated = true).is_none(), "Kahan");
    }

    /// Norms count for at least their own share of what the limit bounds; a square is at most four times as large.
    #[test]
    fn exponents_stay_in_range() {
        let mut seen = 0;
        for dim in (8..400).chain([784, 2000]) {
            let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
            let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)"];
            let (tape, sum) = sum_of("-SqDist(x,y) * s", &aliases);
            let folding = Folding { fold: PairFoldId::LogSumExp, ..sum };
            let forms = Forms::new(&tape, &folding);
            let sizes = Sizes {
                batches: 1,
                m: 100_000,
                n: 100_000,
                multiprocessors: 132,
                scheme: Scheme::Auto,
                capability: (9, 0),
            };
            let expanded = Plans::new(&forms, folding, sizes).expanded;
            let Some(Expanded { plan, limit }) = expanded.filter(|it| it.plan.folding.logarithm)
            else {
                continue;
            };
            let square = plan.sections.square.unwrap();
            let exponent = 4.0 * limit / square.shares(plan.sections.tape)[0];
            assert!(exponent < 60.0, "{exponent} of {dim} components");
            seen += 1;
        }
        assert!(seen > 380, "{seen} are taken so");
    }
}
