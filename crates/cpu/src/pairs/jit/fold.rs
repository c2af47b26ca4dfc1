//! How values enter the states of a fold, on vectors that record.
//!
//! The same steps, in the same order, as those of `pairs::fold` for one lane, which documents them;
//! states are numbered as `States::rows` there lists them. Called by `program`.

use tilework_ops::DType;
use tilework_ops::pair_fold::{Monoid, PairShape};
use tilework_simd::record::{Recording, Value};

use super::program::{Hit, Leaf, Recorder};
use crate::pairs::fold::LOG2_E;

/// Which fold, of numbers of which dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::pairs) struct Folding {
    pub(in crate::pairs) monoid: Monoid,
    pub(in crate::pairs) shape: PairShape,
    pub(in crate::pairs) dtype: DType,
    /// Sums are compensated.
    pub(in crate::pairs) kahan: bool,
    /// Exponentials are those of the table.
    pub(in crate::pairs) strict: bool,
}

/// What states become, and what is looked at.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) next: Vec<Value>,
    pub(super) hits: Vec<Hit>,
    /// A value that is written down for every pair instead.
    pub(super) stored: Option<Value>,
}

/// Records one row: values are a term, or the product of two that sums take fused.
pub(super) fn record<V: Recording>(
    recorder: &mut Recorder<'_, '_, V>,
    folding: Folding,
    terms: &[(V, Option<V>)],
    weight: &[V],
) -> Folded {
    let mut folded = Folded::default();
    let count = terms.len() as u32;
    let mut state = |number: u32| recorder.leaf(Leaf::State(number));
    let truth = |x: V| V::select(x.eq(V::lit(0.0)), V::lit(0.0), V::lit(1.0));
    match folding.monoid {
        Monoid::Add if folding.kahan => {
            let mut lost = Vec::new();
            for (k, &(value, _)) in (0..).zip(terms) {
                let (sum, low) = (state(k), state(count + k));
                let added = value - low;
                let next = sum + added;
                folded.next.push(next.value());
                // An infinity has lost nothing.
                let is_finite = next.abs().lt(V::lit(f64::INFINITY));
                lost.push(V::select(is_finite, (next - sum) - added, V::lit(0.0)).value());
            }
            folded.next.append(&mut lost);
        }
        Monoid::Smallest | Monoid::Largest if folding.shape.k > 1 => {
            for (k, &(value, _)) in (0..).zip(terms) {
                let worst = recorder.leaf(Leaf::Fixed(k));
                let smallest = folding.monoid == Monoid::Smallest;
                let mask = if smallest { value.le(worst) } else { value.ge(worst) };
                folded.hits.push(Hit { mask: mask.value(), value: value.value() });
            }
        }
        Monoid::Smallest | Monoid::Largest => {
            let mut places = Vec::new();
            for (k, &(value, _)) in (0..).zip(terms) {
                let (best, at) =
                    (recorder.leaf(Leaf::State(k)), recorder.leaf(Leaf::State(count + k)));
                let smallest = folding.monoid == Monoid::Smallest;
                let wins = if smallest { value.lt(best) } else { value.gt(best) };
                folded.next.push(V::select(wins, value, best).value());
                places.push(V::select(wins, recorder.leaf(Leaf::Place), at).value());
            }
            folded.next.append(&mut places);
        }
        Monoid::Shifted => {
            let (value, _) = terms[0];
            let max = value.max(state(0));
            folded.next.push(max.value());
            let sums = 1 + weight.len() as u32;
            let difference = value - recorder.leaf(Leaf::Fixed(1 + sums));
            let (name, argument) = match folding.strict {
                true => ("exp", difference),
                false => ("exp2_pair", difference * V::lit(LOG2_E)),
            };
            let Some(exp) = V::function(name) else { return folded };
            let e = exp(&[argument]);
            for (k, factor) in (1..).zip([None].into_iter().chain(weight.iter().map(Some))) {
                let sum = recorder.leaf(Leaf::State(k));
                let next = factor.map_or_else(|| sum + e, |factor| e.fma(*factor, sum));
                folded.next.push(next.value());
            }
        }
        monoid => {
            for (k, &(value, factor)) in (0..).zip(terms) {
                let sum = state(k);
                let next = match (monoid, factor) {
                    (Monoid::Add, Some(factor)) => value.fma(factor, sum),
                    (Monoid::Multiply, _) => sum * value,
                    (Monoid::Count, _) => sum + truth(value),
                    (Monoid::Any, _) => sum.max(truth(value)),
                    (Monoid::All, _) => sum.min(truth(value)),
                    _ => sum + value,
                };
                folded.next.push(next.value());
            }
        }
    }
    folded
}
