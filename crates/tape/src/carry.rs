//! How far an error of one slot reaches.
//!
//! One pass in the order of the steps, one bound a slot, so that it takes as long as the tape, however
//! many ways lead from the slot to an output. Called by backends that put a cheaper form in the place
//! of a step.

use std::f64::consts::LN_2;

use smallvec::SmallVec;
use tilework_ops::{FoldId, Id};

use crate::{Action, SlotId, Step, Tape};

/// The largest error of a slot, to first order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Carried {
    /// There is none.
    Nothing,
    /// So large, whatever the value is.
    Absolute(f64),
    /// So large relative to the value, and in a sum relative to the sum of the magnitudes of its
    /// terms: what the error of an exponent becomes in the exponential.
    Relative(f64),
    /// No bound is known.
    Unknown,
}

use Carried::{Absolute, Nothing, Relative, Unknown};

impl Carried {
    /// The error of a sum. Ways that meet again add up, since one may have lost its sign.
    fn plus(self, other: Carried) -> Carried {
        match (self, other) {
            (Absolute(a), Absolute(b)) => Absolute(a + b),
            _ => self.or(other),
        }
    }

    /// The error of what is one or the other.
    fn or(self, other: Carried) -> Carried {
        // Not `f64::max`, which drops a NaN.
        let larger = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
        match (self, other) {
            (Nothing, error) | (error, Nothing) => error,
            (Absolute(a), Absolute(b)) => Absolute(larger(a, b)),
            (Relative(a), Relative(b)) => Relative(larger(a, b)),
            _ => Unknown,
        }
    }

    /// The error of a product with a factor, whose number is known if it varies with nothing.
    fn times(self, number: Option<f64>, factor: Carried) -> Carried {
        match (self, number, factor) {
            (Nothing, _, Nothing) => Nothing,
            (Absolute(a), Some(factor), Nothing) => Absolute(a * factor.abs()),
            (Relative(a), _, Nothing) | (Nothing, _, Relative(a)) => Relative(a),
            (Relative(a), _, Relative(b)) => Relative(a + b),
            _ => Unknown,
        }
    }
}

impl Tape {
    /// The errors of the outputs, where a slot has an absolute error and all that is computed from it
    /// is exact. `number` gives the values of slots that vary with nothing, where they are known.
    ///
    /// ```
    /// use tilework_ops::{DType, Id, Scalar};
    /// use tilework_tape::{Builder, Carried, Per, Slot};
    /// let mut build = Builder::new();
    /// let d2 = build.input(Slot::scalar(DType::Float32), Per::Pair);
    /// let scale = build.constant(Scalar::new(-0.5f32), 1);
    /// let exponent = build.apply(Id::Multiply, &[d2, scale])?;
    /// let k = build.apply(Id::Exp, &[exponent])?;
    /// let tape = build.finish(&[k])?;
    /// let number = |slot| (slot == scale).then_some(-0.5);
    /// assert_eq!(tape.carried(d2, 1e-6, number)[..], [Carried::Relative(0.5e-6)]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn carried(
        &self,
        from: SlotId,
        error: f64,
        number: impl Fn(SlotId) -> Option<f64>,
    ) -> SmallVec<[Carried; 1]> {
        let mut errors = vec![Nothing; self.slots()];
        errors[usize::from(from)] = Absolute(error);
        let first = self.inputs().len();
        for (slot, step) in (first..).zip(self.steps()) {
            if slot > usize::from(from) {
                errors[slot] = through(step, &errors, &number);
            }
        }
        self.outputs().iter().map(|&slot| errors[usize::from(slot)]).collect()
    }
}

/// The error that a step gives on.
fn through(step: &Step, errors: &[Carried], number: impl Fn(SlotId) -> Option<f64>) -> Carried {
    let of = |k: usize| errors[usize::from(step.operands[k])];
    let product = |a: usize, b: usize| match of(a) {
        Nothing => of(b).times(number(step.operands[a]), of(a)),
        _ => of(a).times(number(step.operands[b]), of(b)),
    };
    if (0..step.operands.len()).all(|k| of(k) == Nothing) {
        return Nothing;
    }
    match &step.action {
        Action::Cast | Action::Extract(_) | Action::Place(_) => of(0),
        Action::Apply(Id::Negative | Id::Abs) => of(0),
        Action::Apply(Id::Add | Id::Subtract) => of(0).plus(of(1)),
        Action::Apply(Id::Multiply) => product(0, 1),
        Action::Apply(Id::Square) => of(0).times(None, of(0)),
        Action::Apply(Id::Fma) => product(0, 1).plus(of(2)),
        Action::Apply(Id::Clip) if (of(1), of(2)) == (Nothing, Nothing) => match of(0) {
            Absolute(error) => Absolute(error),
            _ => Unknown,
        },
        // What a sum is divided by is not its terms, so a relative error must not be below.
        Action::Apply(Id::Divide) if of(1) == Nothing => {
            of(0).times(number(step.operands[1]).map(|divisor| 1.0 / divisor), Nothing)
        }
        Action::Apply(Id::Exp | Id::Exp2 | Id::Exp2Pair) => match (of(0), &step.action) {
            (Absolute(error), Action::Apply(Id::Exp)) => Relative(error),
            (Absolute(error), _) => Relative(error * LN_2),
            _ => Unknown,
        },
        Action::Concat => (1..step.operands.len()).fold(of(0), |error, k| error.or(of(k))),
        Action::Select if of(0) == Nothing => of(1).or(of(2)),
        Action::Fold(FoldId::Sum) => of(0).times(None, Nothing),
        Action::Dot | Action::Contract(_) => of(0).times(None, of(1)),
        _ => Unknown,
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::{DType, Scalar};

    use super::*;
    use crate::{Builder, Per, Slot};

    /// The error of the output of a tape over d2, an error of 1, and s, which is 3.
    fn error(make: impl Fn(&mut Builder, SlotId, SlotId) -> SlotId) -> Carried {
        let mut build = Builder::new();
        let one = Slot::scalar(DType::Float64);
        let (d2, s) = (build.input(one, Per::Pair), build.input(one, Per::Once));
        let output = make(&mut build, d2, s);
        let tape = build.finish(&[output]).unwrap();
        tape.carried(d2, 1.0, |slot| (slot == s).then_some(3.0))[0]
    }

    #[test]
    fn clipping_adds_nothing_to_what_is_no_share() {
        let clipped = |of: fn(&mut Builder, SlotId) -> SlotId| {
            error(|b, d2, s| {
                let x = of(b, d2);
                b.apply(Id::Clip, &[x, s, s]).unwrap()
            })
        };
        assert_eq!(clipped(|_, d2| d2), Absolute(1.0));
        assert_eq!(clipped(|b, d2| b.apply(Id::Exp, &[d2]).unwrap()), Unknown);
        let bounds = error(|b, d2, s| b.apply(Id::Clip, &[s, s, d2]).unwrap());
        assert_eq!(bounds, Unknown);
    }

    #[test]
    fn ways_that_meet_add_up() {
        let twice = |b: &mut Builder, x: SlotId, s: SlotId| {
            let (p, q) = (b.apply(Id::Multiply, &[x, s]).unwrap(), b.apply(Id::Divide, &[x, s]));
            b.apply(Id::Subtract, &[p, q.unwrap()]).unwrap()
        };
        assert_eq!(error(twice), Absolute(3.0 + 1.0 / 3.0));
        let exponentials = |b: &mut Builder, x: SlotId, s: SlotId| {
            let scaled = b.apply(Id::Fma, &[s, x, x]).unwrap();
            let (p, q) = (b.apply(Id::Exp, &[x]).unwrap(), b.apply(Id::Exp2, &[scaled]).unwrap());
            b.apply(Id::Multiply, &[p, q]).unwrap()
        };
        assert_eq!(error(exponentials), Relative(1.0 + 4.0 * LN_2));
        let square = |b: &mut Builder, x: SlotId, _: SlotId| {
            let exponential = b.apply(Id::Exp, &[x]).unwrap();
            let square = b.apply(Id::Square, &[exponential]).unwrap();
            let both = b.concat(&[exponential, square]).unwrap();
            b.fold(FoldId::Sum, both).unwrap()
        };
        assert_eq!(error(square), Relative(2.0));
        // As many ways as there are numbers of 60 bits.
        let many = |b: &mut Builder, x: SlotId, _: SlotId| {
            (0..60).fold(x, |x, _| b.apply(Id::Add, &[x, x]).unwrap())
        };
        assert_eq!(error(many), Absolute(2f64.powi(60)));
    }

    #[test]
    fn what_is_no_sum_of_exponentials_has_no_bound() {
        for id in [Id::Sqrt, Id::Log, Id::Square, Id::Reciprocal] {
            assert_eq!(error(|b, x, _| b.apply(id, &[x]).unwrap()), Unknown, "{id:?}");
        }
        let kinds = |b: &mut Builder, x: SlotId, _: SlotId| {
            let exponential = b.apply(Id::Exp, &[x]).unwrap();
            b.apply(Id::Add, &[x, exponential]).unwrap()
        };
        assert_eq!(error(kinds), Unknown);
        let below = |b: &mut Builder, x: SlotId, s: SlotId| {
            let exponential = b.apply(Id::Exp, &[x]).unwrap();
            b.apply(Id::Divide, &[s, exponential]).unwrap()
        };
        assert_eq!(error(below), Unknown);
        assert_eq!(error(|_, _, s| s), Nothing);
        let infinite = |b: &mut Builder, x: SlotId, s: SlotId| {
            let zero = b.constant(Scalar::new(0.0f64), 1);
            let product = b.apply(Id::Multiply, &[x, s]).unwrap();
            b.apply(Id::Multiply, &[product, zero]).unwrap()
        };
        assert_eq!(error(infinite), Unknown);
    }
}
