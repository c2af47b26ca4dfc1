//! Sums of weights times right-hand sides: every component of a tape's output is a product of numbers of the pair, the
//! same for all, times numbers of i and of j, and some are the difference of two points too.
//!
//! Decided here and nowhere else, from the steps alone. Such a sum is a product of matrices, and one with a
//! difference is x_i (sum of w q) - (sum of w q y). Called by the plans of backends.

use smallvec::SmallVec;
use tilework_ops::{Id, Scalar};

use crate::{Action, Builder, Per, SlotId, Step, Tape};

/// Parts of an output, at most.
const MOST_PARTS: usize = 128;

/// Factors of a component, at most, and numbers of the pair among them; formulas of more are left alone.
const MOST_FACTORS: usize = 64;
const MOST_WEIGHTS: usize = 2;

/// A tape's output as a weight, and part by part what it is multiplied by.
#[derive(Debug)]
pub struct Weighed {
    /// The numbers of a pair whose product all components share: a kernel, and in gradients of sums of several columns the
    /// inner product of these with what comes in.
    pub weights: SmallVec<[SlotId; 1]>,
    /// The other factors of each part, and its components.
    pub parts: Vec<(Factors, usize)>,
    /// The one part that is a difference, if there is one.
    pub difference: Option<Difference>,
}

/// Components that are differences of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The first of them.
    pub from: usize,
    /// How many there are.
    pub len: usize,
    /// The inputs that are points of i and of j, as they are or cast.
    pub points: [SlotId; 2],
}

/// What a component is a product of.
#[derive(Debug, Default)]
pub struct Factors {
    weights: SmallVec<[SlotId; 1]>,
    /// What varies with i alone.
    pub of_i: Vec<SlotId>,
    /// What varies with j alone or with nothing.
    pub of_j: Vec<SlotId>,
    points: Option<[SlotId; 2]>,
    negative: bool,
}

impl Tape {
    /// The output as a weight and what it is multiplied by; none where it is nothing like that.
    pub fn weighed(&self) -> Option<Weighed> {
        let &[output] = self.outputs() else { return None };
        let per = self.sections();
        let (mut all, mut weights, mut difference, mut from) = (Vec::new(), None, None, 0);
        for part in parts(self, output)? {
            let mut factors = Factors::default();
            factors.gather(self, &per, part)?;
            factors.weights.sort_unstable();
            if factors.weights.is_empty()
                || weights.get_or_insert_with(|| factors.weights.clone()) != &factors.weights
            {
                return None;
            }
            let len = self.slot(part).len as usize;
            if let Some(points) = factors.points
                && difference.replace(Difference { from, len, points }).is_some()
            {
                return None;
            }
            all.push((factors, len));
            from += len;
        }
        Some(Weighed { weights: weights?, parts: all, difference })
    }
}

impl Factors {
    /// Whether the points of a difference are among them.
    pub fn is_difference(&self) -> bool {
        self.points.is_some()
    }

    /// Takes a slot apart; none where it is no such product, or one of very many factors.
    fn gather(&mut self, tape: &Tape, per: &[Per], slot: SlotId) -> Option<()> {
        let mut rest = vec![slot];
        for _ in 0..MOST_FACTORS {
            let Some(slot) = rest.pop() else { return Some(()) };
            match per[usize::from(slot)] {
                Per::Once | Per::J => self.of_j.push(slot),
                Per::I => match tape.step_of(slot).map(|step| (&step.action, &step.operands)) {
                    Some((Action::Apply(Id::Multiply), factors)) => rest.extend(factors),
                    _ => self.of_i.push(slot),
                },
                Per::Pair => rest.extend(self.take(tape, per, slot)?),
            }
        }
        None
    }

    /// Takes a number of a pair for what it is, and gives the factors that it is a product of.
    fn take(&mut self, tape: &Tape, per: &[Per], slot: SlotId) -> Option<SmallVec<[SlotId; 2]>> {
        let of = |slot: SlotId| per[usize::from(slot)];
        match tape.step_of(slot).map(|step| (&step.action, &step.operands[..])) {
            Some((Action::Apply(Id::Multiply), factors)) => Some(factors.into()),
            Some((Action::Apply(Id::Negative), factors)) => {
                self.negative = !self.negative;
                Some(factors.into())
            }
            Some((Action::Apply(Id::Subtract), &[a, b])) if tape.slot(slot).len > 1 => {
                let (x, y) = if of(a) == Per::I { (a, b) } else { (b, a) };
                let points = [tape.input_of(x)?, tape.input_of(y)?];
                if (of(x), of(y)) != (Per::I, Per::J) || self.points.is_some() {
                    return None;
                }
                self.negative ^= x != a;
                self.points = Some(points);
                Some(SmallVec::new())
            }
            _ if tape.slot(slot).len == 1 && self.weights.len() < MOST_WEIGHTS => {
                self.weights.push(slot);
                Some(SmallVec::new())
            }
            _ => None,
        }
    }

    /// The product of what belongs to j, in so many components, in a tape whose slots `now` names.
    pub fn product(
        &self,
        build: &mut Builder,
        now: impl Fn(SlotId) -> SlotId,
        one: Scalar,
        len: u32,
    ) -> Option<SlotId> {
        let mut factors = self.of_j.iter().map(|&slot| now(slot));
        let mut all = match factors.next() {
            Some(first) => first,
            None => build.constant(one, len),
        };
        for factor in factors {
            all = build.apply(Id::Multiply, &[all, factor]).ok()?;
        }
        if self.negative {
            all = build.apply(Id::Negative, &[all]).ok()?;
        }
        if build.slot(all).len < len {
            let ones = build.constant(one, len);
            all = build.apply(Id::Multiply, &[all, ones]).ok()?;
        }
        (build.slot(all).len == len).then_some(all)
    }
}

/// The slots that are put together to one, in order; none where they are more than components.
pub(crate) fn parts(tape: &Tape, slot: SlotId) -> Option<Vec<SlotId>> {
    let (mut parts, mut rest) = (Vec::new(), vec![slot]);
    while let Some(slot) = rest.pop() {
        match tape.step_of(slot) {
            Some(Step { action: Action::Concat, operands, .. }) => {
                rest.extend(operands.iter().rev());
            }
            _ => parts.push(slot),
        }
        if parts.len() + rest.len() > MOST_PARTS {
            return None;
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use tilework_ops::DType;

    use super::*;
    use crate::Slot;

    /// Inputs x and e of i, y and c of j, in a tape that ends with what is made of them and of the
    /// exponential of the distance.
    fn weighed(make: impl Fn(&mut Builder, [SlotId; 5]) -> SlotId) -> Option<Weighed> {
        let mut build = Builder::new();
        let slot = |len: u32| Slot { dtype: DType::Float32, len };
        let (x, y) = (build.input(slot(5), Per::I), build.input(slot(5), Per::J));
        let (e, c) = (build.input(slot(1), Per::I), build.input(slot(1), Per::J));
        let difference = build.apply(Id::Subtract, &[x, y]).unwrap();
        let distance = build.dot(difference, difference).unwrap();
        let weight = build.apply(Id::Exp, &[distance]).unwrap();
        let output = make(&mut build, [difference, weight, e, c, y]);
        build.finish(&[output]).unwrap().weighed()
    }

    fn product(build: &mut Builder, factors: &[SlotId]) -> SlotId {
        let times = |all, &factor| build.apply(Id::Multiply, &[all, factor]).unwrap();
        factors[1..].iter().fold(factors[0], times)
    }

    #[test]
    fn values_and_gradients_share_their_weight() {
        let found = weighed(|build, [difference, weight, e, c, _]| {
            let value = product(build, &[weight, c]);
            let of_i = product(build, &[e, e]);
            let slope = product(build, &[of_i, c, weight, difference]);
            build.concat(&[value, slope]).unwrap()
        });
        let found = found.unwrap();
        let difference = Difference { from: 1, len: 5, points: [0, 1] };
        assert_eq!(found.difference, Some(difference));
        let [(value, 1), (slope, 5)] = &found.parts[..] else { panic!("{found:?}") };
        assert_eq!((&value.of_i[..], &value.of_j[..]), (&[][..], &[3][..]));
        assert_eq!((&slope.of_i[..], &slope.of_j[..]), (&[2, 2][..], &[3][..]));
        assert!(slope.is_difference() && !value.is_difference());
    }

    #[test]
    fn numbers_of_a_pair_are_one_weight() {
        let found = weighed(|build, [difference, weight, e, c, _]| {
            let product = build.dot(e, c).unwrap();
            let of_pair = build.apply(Id::Sin, &[product]).unwrap();
            let slope = super::tests::product(build, &[of_pair, difference, weight]);
            build.apply(Id::Negative, &[slope]).unwrap()
        });
        let found = found.unwrap();
        assert_eq!((found.weights.len(), found.parts.len()), (2, 1));
        assert!(found.difference.is_some());
    }

    #[test]
    fn other_sums_are_none() {
        // Three numbers of the pair, two differences, a sum, and other weights.
        assert!(weighed(|b, [d, w, ..]| product(b, &[d, w, w, w])).is_none());
        let differ = |b: &mut Builder, [d, w, _, c, _]: [SlotId; 5]| {
            let (one, both) = (product(b, &[w, c]), product(b, &[d, w, w]));
            b.concat(&[one, both]).unwrap()
        };
        assert!(weighed(differ).is_none());
        assert!(weighed(|b, [d, w, ..]| product(b, &[d, d, w])).is_none());
        assert!(weighed(|b, [_, w, e, ..]| b.apply(Id::Add, &[w, e]).unwrap()).is_some());
        assert!(weighed(|b, [d, _, e, ..]| b.apply(Id::Add, &[d, e]).unwrap()).is_none());
    }
}
