//! Where the best of roots and negatives of squared distances are: where the best squares are, for which there are
//! filters.
//!
//! Only for indices, without states: values are those of the formula as it is written, and so are states, which have
//! values. Of roots that rounding makes equal the nearer point comes first here, and the smaller index where the formula
//! is taken as it is written: by states, and where accuracy is strict. Called by `pairs`.

use tilework_backend::{Accuracy, PairReduce};
use tilework_error::Result;
use tilework_ops::{Id, PairFoldId};
use tilework_tape::{Action, SlotId, Tape};

/// A reduction of squares that finds the same indices as one of roots or negatives of them.
pub(super) struct Ordered {
    tape: Tape,
    fold: PairFoldId,
}

impl Ordered {
    /// The reduction of squares for a request; none where it is of another formula, or needs more than an order.
    pub(super) fn of(request: &PairReduce<'_>) -> Option<Ordered> {
        let indices = request.values.is_none() && request.finish;
        let may = indices && request.accuracy == Accuracy::Declared;
        may.then(|| Ordered::by_square(request.tape, request.fold)).flatten()
    }

    fn by_square(tape: &Tape, fold: PairFoldId) -> Option<Ordered> {
        let &[output] = tape.outputs() else { return None };
        let (square, turned) = square_under(tape, output)?;
        let fold = if turned { opposite(fold)? } else { fold };
        Some(Ordered { tape: tape.only(&[square]), fold })
    }

    /// Calls `work` with the request for the squares.
    pub(super) fn ask<R>(
        &self,
        request: &PairReduce<'_>,
        name: &str,
        work: impl FnOnce(&PairReduce<'_>) -> Result<R>,
    ) -> Result<R> {
        let indices = request.indices.as_ref().map(|target| target.part(name, target.layout()));
        let indices = indices.transpose()?;
        let Ordered { tape, fold } = self;
        work(&PairReduce { tape, fold: *fold, values: None, indices, ..*request })
    }
}

/// The square that a slot is made of by operations that keep its order or turn it, and whether they turn it. None where
/// there are others, or none at all.
fn square_under(tape: &Tape, output: SlotId) -> Option<(SlotId, bool)> {
    let (mut slot, mut turned, mut rooted) = (output, false, false);
    loop {
        let step = tape.step_of(slot)?;
        if tape.squared_difference(step).is_some() {
            return (slot != output).then_some((slot, turned));
        }
        slot = match (&step.action, &step.operands[..]) {
            (Action::Apply(Id::Sqrt | Id::SqrtFlat | Id::SqrtPair), &[a]) => {
                rooted = true;
                a
            }
            // Under a root a negative square would be no number.
            (Action::Apply(Id::Negative), &[a]) if !rooted => {
                turned = !turned;
                a
            }
            _ => return None,
        };
    }
}

/// What finds the indices of the largest where this finds those of the smallest, and the other way around.
fn opposite(fold: PairFoldId) -> Option<PairFoldId> {
    Some(match fold {
        PairFoldId::ArgMin => PairFoldId::ArgMax,
        PairFoldId::ArgMax => PairFoldId::ArgMin,
        PairFoldId::ArgKMin => PairFoldId::ArgKMax,
        PairFoldId::ArgKMax => PairFoldId::ArgKMin,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};
    use tilework_ops::DType;

    use super::*;

    #[test]
    fn roots_and_negatives_are_in_the_order_of_their_squares() {
        use PairFoldId::{ArgKMax, ArgKMin, ArgMax, ArgMin, KMin};
        for (text, fold, expected) in [
            ("Sqrt(SqDist(x,y))", ArgMin, Some(ArgMin)),
            ("Norm2(x - y)", ArgKMin, Some(ArgKMin)),
            ("Norm2(x - y)", ArgMax, Some(ArgMax)),
            ("-SqDist(x,y)", ArgKMax, Some(ArgKMin)),
            ("-Sqrt(SqDist(x,y))", ArgMax, Some(ArgMin)),
            ("-(-Sqrt(Sqrt(SqDist(x,y))))", ArgKMin, Some(ArgKMin)),
            ("-SqDist(x,y)", ArgKMin, Some(ArgKMax)),
            ("Sqrt(-SqDist(x,y))", ArgMin, None),
            ("SqDist(x,y)", ArgMin, None),
            ("SqDist(x,y) * s", ArgMin, None),
            ("Sqrt((x|y))", ArgMin, None),
            ("-SqDist(x,y)", KMin, None),
        ] {
            let parsed = formula(text, &["x = Vi(40)", "y = Vj(40)", "s = Pm(1)"]).unwrap();
            let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).unwrap();
            let purpose = Purpose { dtype: DType::Float32, cheap: true };
            let tape = lower_for(&reduction.outputs(), purpose).unwrap().tape;
            let found = Ordered::by_square(&tape, fold);
            assert_eq!(found.as_ref().map(|it| it.fold), expected, "{fold:?} of {text}");
            let Some(Ordered { tape, .. }) = found else { continue };
            let first = tape.step_of(tape.outputs()[0]);
            assert!(tape.squared_difference(first.unwrap()).is_some(), "{text}: {tape:?}");
        }
    }
}
