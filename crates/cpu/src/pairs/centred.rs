//! Differences of wide points that are summed with weights, as the gradients of kernels are: the sum of
//! w q (x - y) is x (sum of w q) less the sum of w q y, both points about a centre.
//!
//! The tape then gives a weight times a vector of j, which is a product of matrices (`columns`): first q,
//! then the components of the formula with q y in the place of the differences. When all pairs are in,
//! [`Centred::combine`] makes the differences of them, in float64. What rounds are the sums, relative to
//! the weights times the norms about the centre. Made by `form`, used by `pairs::Job::write`.

use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{Id, Scalar};
use tilework_tape::{Action, Builder, Difference, Per, SlotId, Tape, Weighed};

use super::Source;
use super::exponent::Numbers;
use super::products::{Number, Points};

/// What a formula's differences are made of.
pub(super) struct Centred<T> {
    pub(super) weighed: Weighed,
    weight: SlotId,
    difference: Difference,
    x: Points<T>,
    /// Numbers of i that the differences are multiplied by.
    factors: Vec<Points<T>>,
    pub(super) centre: Vec<T>,
    pub(super) layout: Layout,
}

impl<T: Number> Centred<T> {
    /// None where the formula is no such sum of these points, or has factors that are not finite: those
    /// of `m` i and `n` j are looked at. `radius` is the largest norm about the centre.
    ///
    /// # Safety
    /// The inputs may be read.
    pub(super) unsafe fn of(
        tape: &Tape,
        sources: &[Source],
        points: [SlotId; 2],
        (m, n): (usize, usize),
        (centre, radius): (Vec<T>, f64),
    ) -> Option<Centred<T>> {
        let weighed = tape.weighed()?;
        // A product of several has no bound, so that sums of it could leave the range where differences do not.
        let &[weight] = &weighed.weights[..] else { return None };
        let difference = weighed.difference.filter(|difference| difference.points == points)?;
        let numbers = Numbers::of(tape, sources);
        let mut factors = Vec::new();
        for (part, _) in &weighed.parts {
            if !part.is_difference() {
                part.of_i.is_empty().then_some(())?;
                continue;
            }
            let mut largest = radius;
            // Not `f64::max`, which drops a NaN.
            let at_least_one = |x: f64| if x < 1.0 { 1.0 } else { x };
            let mut rest: Vec<(SlotId, usize)> = part.of_j.iter().map(|&slot| (slot, n)).collect();
            rest.extend(part.of_i.iter().map(|&slot| (slot, m)));
            while let Some((slot, count)) = rest.pop() {
                if let Some(number) = numbers.get(slot) {
                    largest *= at_least_one(number.abs());
                    continue;
                }
                let step = tape.step_of(slot).map(|step| (&step.action, &step.operands[..]));
                if let Some((Action::Apply(Id::Multiply | Id::Negative), operands)) = step {
                    rest.extend(operands.iter().map(|&slot| (slot, count)));
                    continue;
                }
                let input = tape.inputs().get(usize::from(slot))?;
                if input.slot.len != 1 || input.slot.dtype != T::DTYPE {
                    return None;
                }
                let points = Points::of(&sources[usize::from(slot)], &[]);
                // SAFETY: the caller's promise.
                largest *= at_least_one(unsafe { points.largest(count) });
                if input.per == Per::I {
                    factors.push(points);
                }
            }
            // A NaN is not below it either.
            let is_safe = largest <= T::SAFE;
            let are_inputs = part.of_i.iter().all(|&slot| usize::from(slot) < tape.inputs().len());
            (is_safe && are_inputs).then_some(())?;
        }
        let x = Points::of(&sources[usize::from(points[0])], &[]);
        let layout = Layout::contiguous(&[centre.len()]).ok()?;
        Some(Centred { weighed, weight, difference, x, factors, centre, layout })
    }

    /// The slots that the weight and the vectors of j are made of.
    pub(super) fn roots(&self) -> impl Iterator<Item = SlotId> + '_ {
        let of_j = self.weighed.parts.iter().flat_map(|(part, _)| part.of_j.iter().copied());
        of_j.chain([self.weight, self.difference.points[1]])
    }

    /// The weight times the vector of j, in a tape whose slots are `now`, with the centre in one.
    pub(super) fn output(
        &self,
        build: &mut Builder,
        now: &[SlotId],
        centre: SlotId,
    ) -> Result<SlotId> {
        let now = |slot: SlotId| now[usize::from(slot)];
        let one = Scalar::new(1f32).cast(T::DTYPE);
        let moved = build.apply(Id::Subtract, &[now(self.difference.points[1]), centre])?;
        let mut sides = vec![0];
        for (part, len) in &self.weighed.parts {
            let len = if part.is_difference() { 1 } else { *len as u32 };
            let side = part.product(build, now, one, len);
            let side = side.ok_or_else(|| Error::value("sum", "factors of j have lengths"))?;
            if part.is_difference() {
                sides[0] = side;
                sides.push(build.apply(Id::Multiply, &[side, moved])?);
            } else {
                sides.push(side);
            }
        }
        let sides = build.concat(&sides)?;
        build.apply(Id::Multiply, &[now(self.weight), sides])
    }

    /// Makes the differences of an i of its sums, which begin with that of w q.
    pub(super) fn combine(&self, i: usize, sums: &mut [f64]) {
        let Some((&mut weight, sums)) = sums.split_first_mut() else { return };
        // SAFETY: the inputs of a request may be read, as many points as it says.
        let factor: f64 = self.factors.iter().map(|of| unsafe { of.at(i, 0) }.f64()).product();
        let of_points = &mut sums[self.difference.from..][..self.centre.len()];
        for (c, (sum, centre)) in of_points.iter_mut().zip(&self.centre).enumerate() {
            // SAFETY: as above.
            let x = unsafe { self.x.at(i, c) }.f64() - centre.f64();
            *sum = factor * (x * weight - *sum);
        }
    }
}
