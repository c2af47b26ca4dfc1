//! The end of a tile: its states, component by component, become rows of states, one for each lane.
//!
//! May assume that all blocks have been taken and ended. Called by `pairs::piece`.

use smallvec::SmallVec;
use tilework_backend::Accumulator;
use tilework_ops::pair_fold::Monoid;

use super::{NOWHERE, States, join};
use crate::pairs::jit::Folding;
use crate::pairs::lanes::Summed;
use crate::pairs::rows::Part;

impl<T: Summed<A>, A: Accumulator> States<T, A> {
    /// Writes the states of all lanes; `start` is the index of the first j.
    pub(in crate::pairs) fn finish(mut self, start: i64, to: Part<'_, A>) {
        let Folding { monoid, shape, .. } = self.folding;
        let mut total: Option<Vec<A>> = None;
        for sums in self.levels.drain(..).rev().flatten() {
            match &mut total {
                Some(total) => join(self.isa, monoid, total, &sums),
                None => total = Some(sums),
            }
        }
        let total = total.unwrap_or_else(|| std::mem::take(&mut self.block));
        let index = |lane: usize, at: u32| match at {
            NOWHERE => -1,
            _ => start + i64::from(at) * self.spread as i64 + (lane % self.spread) as i64,
        };
        let column = |c: usize| c * self.pitch..c * self.pitch + self.lanes;
        let width = to.width;
        match monoid {
            Monoid::Shifted => {
                let factors = self.exponents(&total, to.values, width);
                for (sum, place) in (1..width).enumerate() {
                    let sums = total[column(sum)].iter().zip(&factors);
                    for (to, (sum, factor)) in
                        to.values[place..].iter_mut().step_by(width).zip(sums)
                    {
                        *to = *sum * *factor;
                    }
                }
            }
            Monoid::Smallest | Monoid::Largest if shape.k > 1 => {
                for (place, (k, c)) in
                    (0..shape.k).flat_map(|k| (0..shape.dim).map(move |c| (k, c))).enumerate()
                {
                    let kept = &self.kept[c * self.lanes * shape.k + k..];
                    let rows = to.values[place..].iter_mut().zip(&mut to.indices[place..]);
                    let kept = kept.iter().step_by(shape.k).enumerate();
                    for ((to, to_index), (lane, (value, at))) in rows.step_by(width).zip(kept) {
                        (*to, *to_index) = (value.to_sum(), index(lane, *at));
                    }
                }
            }
            Monoid::Smallest | Monoid::Largest => {
                for c in 0..shape.dim {
                    let best = self.best[column(c)].iter().zip(&self.at[column(c)]).enumerate();
                    let rows = to.values[c..].iter_mut().zip(&mut to.indices[c..]);
                    for ((to, to_index), (lane, (best, at))) in rows.step_by(width).zip(best) {
                        (*to, *to_index) = (best.to_sum(), index(lane, T::index(*at)));
                    }
                }
            }
            _ => {
                for c in 0..width {
                    for (to, sum) in to.values[c..].iter_mut().step_by(width).zip(&total[column(c)])
                    {
                        *to = *sum;
                    }
                }
            }
        }
    }

    /// Writes the largest exponent of every lane; what its sums are multiplied by to be relative
    /// to it.
    fn exponents(&self, total: &[A], to: &mut [A], width: usize) -> SmallVec<[A; 64]> {
        let references = self.max.iter().zip(&self.reference);
        let lanes = to.iter_mut().step_by(width).zip(total).zip(references);
        lanes
            .map(|((to, sum), (max, reference))| {
                let (max, reference) = (max.to_sum(), reference.to_sum().f64());
                let (max, factor) = match max.f64() {
                    _ if sum.is_nan() => (A::of(f64::NAN), A::ONE),
                    f64::NEG_INFINITY => (max, A::ZERO),
                    f64::INFINITY => (max, A::ONE),
                    largest => (max, self.exponential(reference - largest)),
                };
                *to = max;
                factor
            })
            .collect()
    }
}
