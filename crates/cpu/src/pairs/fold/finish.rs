//! The end of a tile: its states, component by component, become rows of states, one for each lane.
//!
//! May assume that all blocks have been taken and ended. Called by `pairs::piece`.

use smallvec::SmallVec;
use tilework_backend::Accumulator;
use tilework_error::Result;
use tilework_ops::pair_fold::Monoid;

use super::{NOWHERE, States, join};
use crate::pairs::course::Course;
use crate::pairs::jit::Folding;
use crate::pairs::lanes::Summed;
use crate::pairs::rows::Part;

impl<T: Summed<A>, A: Accumulator> States<T, A> {
    /// Writes the states of all lanes; `start` is the index of the first j. An error if the work is to
    /// be stopped.
    pub(in crate::pairs) fn finish(
        mut self,
        start: i64,
        to: Part<'_, A>,
        course: &Course<'_>,
    ) -> Result<()> {
        let Folding { monoid, shape, .. } = self.folding;
        let mut total: Option<Vec<A>> = None;
        for sums in self.levels.drain(..).rev().flatten() {
            match &mut total {
                Some(total) => join(self.isa, monoid, total, &sums),
                None => total = Some(sums),
            }
        }
        let total = total.unwrap_or_else(|| std::mem::take(&mut self.block));
        let (lanes, pitch, spread) = (self.lanes, self.pitch, self.spread);
        let index = |lane: usize, at: u32| match at {
            NOWHERE => -1,
            _ => start + i64::from(at) * spread as i64 + (lane % spread) as i64,
        };
        let column = |c: usize| c * pitch..c * pitch + lanes;
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
                for (lane, c) in (0..lanes).flat_map(|lane| (0..shape.dim).map(move |c| (lane, c)))
                {
                    let best = match monoid {
                        Monoid::Smallest => self.several.best::<true>(c * lanes + lane),
                        _ => self.several.best::<false>(c * lanes + lane),
                    };
                    let first = lane * width + c;
                    let values = to.values[first..].iter_mut().step_by(shape.dim);
                    let indices = to.indices[first..].iter_mut().step_by(shape.dim);
                    for ((to, to_index), (value, at)) in values.zip(indices).zip(best) {
                        (*to, *to_index) = (value.to_sum(), index(lane, *at));
                    }
                    if !self.several.is_sorted() {
                        course.go_on(0)?;
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
        Ok(())
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
