//! Sums of weights times right-hand sides: every component is one number of the pair, the same for all,
//! times numbers of j. Tensor cores multiply a tile of weights by a tile of right-hand sides then.
//!
//! Components that are a difference of two points times a number q_j, as the gradients of kernels are,
//! become x_i (sum of w q) - (sum of w q y), both points about a centre. `kernels/pairs_wide_right.cu` says
//! what the numbers mean there. Made by `pairs`, read by `plan`, `print` and `wide`.

use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Builder, Per, SlotId, Step, Tape};

/// Columns of a product, at most, and components from which it pays.
pub(super) const MOST: usize = 128;
const LEAST: usize = 8;

/// A formula as a weight and right-hand sides.
#[derive(Debug)]
pub(super) struct Right {
    /// Gives the weight of a pair.
    pub(super) weight: Tape,
    /// Gives the numbers of a j; the last is q where there is a difference.
    pub(super) sides: Tape,
    pub(super) difference: Option<Difference>,
    /// Components of the result.
    dim: usize,
}

/// Components that are differences of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Difference {
    /// The first of them, and how many.
    pub(super) from: usize,
    pub(super) len: usize,
    /// The inputs: points of i and of j.
    pub(super) points: [SlotId; 2],
}

/// What a component is a product of.
#[derive(Default)]
struct Factors {
    weights: Vec<SlotId>,
    of_j: Vec<SlotId>,
    points: Option<[SlotId; 2]>,
    negative: bool,
}

impl Right {
    /// None where the formula's components are not such products, or too few or too many.
    pub(super) fn new(tape: &Tape) -> Option<Right> {
        let &[output] = tape.outputs() else { return None };
        let dim = tape.slot(output).len as usize;
        let single =
            (0..tape.slots()).all(|slot| tape.slot(slot as SlotId).dtype == DType::Float32);
        if !single || !(LEAST..=MOST).contains(&dim) {
            return None;
        }
        let per = tape.sections();
        let mut build = Builder::continuing(tape);
        let (mut sides, mut weight, mut difference, mut from) = (Vec::new(), None, None, 0);
        for part in parts(tape, output) {
            let mut factors = Factors::default();
            factors.gather(tape, &per, part)?;
            let &[own] = &factors.weights[..] else { return None };
            if *weight.get_or_insert(own) != own {
                return None;
            }
            let len = tape.slot(part).len as usize;
            match factors.points {
                None => sides.push((factors, len as u32)),
                Some(_) if difference.is_some() => return None,
                Some(points) => difference = Some((Difference { from, len, points }, factors)),
            }
            from += len;
        }
        let (difference, last) = difference.unzip();
        sides.extend(last.map(|factors| (factors, 1)));
        let sides = sides.iter().map(|(factors, len)| factors.product(&mut build, *len));
        let sides = sides.collect::<Option<Vec<SlotId>>>()?;
        let all = if sides.len() == 1 { sides[0] } else { build.concat(&sides).ok()? };
        let right = Right {
            weight: tape.only(&[weight?]),
            sides: build.finish(&[all]).ok()?.only(&[all]),
            difference,
            dim,
        };
        let of_j = right.sides.sections()[usize::from(right.sides.outputs()[0])] == Per::J;
        (of_j && right.columns() <= MOST).then_some(right)
    }

    /// Columns of the product, whole eights of them.
    pub(super) fn columns(&self) -> usize {
        (self.dim + usize::from(self.difference.is_some())).next_multiple_of(8)
    }
}

impl Factors {
    /// Takes a slot apart; none where it is no such product.
    fn gather(&mut self, tape: &Tape, per: &[Per], slot: SlotId) -> Option<()> {
        let of = |slot: SlotId| per[usize::from(slot)];
        match of(slot) {
            Per::Once | Per::J => {
                self.of_j.push(slot);
                return Some(());
            }
            Per::I => return None,
            Per::Pair => {}
        }
        let step: Option<&Step> =
            usize::from(slot).checked_sub(tape.inputs().len()).map(|k| &tape.steps()[k]);
        match step.map(|step| (&step.action, &step.operands[..])) {
            Some((Action::Apply(Id::Multiply), &[a, b])) => {
                self.gather(tape, per, a)?;
                self.gather(tape, per, b)
            }
            Some((Action::Apply(Id::Negative), &[a])) => {
                self.negative = !self.negative;
                self.gather(tape, per, a)
            }
            Some((Action::Apply(Id::Subtract), &[a, b])) if tape.slot(slot).len > 1 => {
                let (x, y) = if of(a) == Per::I { (a, b) } else { (b, a) };
                let inputs = [x, y].iter().all(|&p| usize::from(p) < tape.inputs().len());
                if !inputs || (of(x), of(y)) != (Per::I, Per::J) || self.points.is_some() {
                    return None;
                }
                self.negative ^= x != a;
                self.points = Some([x, y]);
                Some(())
            }
            _ if tape.slot(slot).len == 1 => {
                self.weights.push(slot);
                Some(())
            }
            _ => None,
        }
    }

    /// The product of what belongs to j, in so many components.
    fn product(&self, build: &mut Builder, len: u32) -> Option<SlotId> {
        let mut factors = self.of_j.iter().copied();
        let mut all = match factors.next() {
            Some(first) => first,
            None => build.constant(Scalar::new(1f32), len),
        };
        for factor in factors {
            all = build.apply(Id::Multiply, &[all, factor]).ok()?;
        }
        if self.negative {
            all = build.apply(Id::Negative, &[all]).ok()?;
        }
        if build.slot(all).len < len {
            let ones = build.constant(Scalar::new(1f32), len);
            all = build.apply(Id::Multiply, &[all, ones]).ok()?;
        }
        (build.slot(all).len == len).then_some(all)
    }
}

/// The slots that are put together to one, in order.
fn parts(tape: &Tape, slot: SlotId) -> Vec<SlotId> {
    let step = usize::from(slot).checked_sub(tape.inputs().len()).map(|k| &tape.steps()[k]);
    match step {
        Some(Step { action: Action::Concat, operands, .. }) => {
            operands.iter().flat_map(|&part| parts(tape, part)).collect()
        }
        _ => vec![slot],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};

    fn right(text: &str) -> Option<Right> {
        let aliases = ["x = Vi(10)", "y = Vj(10)", "b = Vj(12)", "c = Vj(1)", "e = Vi(1)"];
        let parsed = formula(text, &aliases).unwrap();
        let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).unwrap();
        let purpose = Purpose { dtype: DType::Float32, cheap: true };
        Right::new(&lower_for(&reduction.outputs(), purpose).unwrap().tape)
    }

    #[test]
    fn weights_and_their_right_hand_sides_are_told_apart() {
        let many = right("Exp(-SqDist(x,y)) * b").unwrap();
        assert_eq!((many.columns(), many.difference), (16, None));
        let both = right("Concat(Exp(-SqDist(x,y)) * c, Grad(Exp(-SqDist(x,y)) * c, x, c))");
        let both = both.unwrap();
        let difference = both.difference.unwrap();
        assert_eq!((both.columns(), difference.from, difference.len), (16, 1, 10));
        for tape in [&many.weight, &many.sides, &both.weight, &both.sides] {
            tape.check().unwrap();
        }
    }

    #[test]
    fn other_sums_are_left_alone() {
        // Too few components; a factor of i; two weights.
        for text in [
            "Exp(-SqDist(x,y)) * c",
            "Exp(-SqDist(x,y)) * e * b",
            "Concat(Exp(-SqDist(x,y)) * b, Sqrt(SqDist(x,y)) * b)",
        ] {
            assert!(right(text).is_none(), "{text}");
        }
    }
}
