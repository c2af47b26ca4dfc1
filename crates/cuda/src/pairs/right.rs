//! Sums of weights times right-hand sides: every component is one number of the pair, the same for all,
//! times numbers of j. Tensor cores multiply a tile of weights by a tile of right-hand sides then ([`Right`]).
//!
//! Components that are a difference of two points times a number q_j, as the gradients of kernels are,
//! become x_i (sum of w q) - (sum of w q y), on tensor cores with both points about a centre. Where there are
//! few of them, threads sum the columns ([`Columns`]). `kernels/pairs_wide_right.cu` says what the numbers
//! mean there. Made by `pairs`, read by `plan`, `print` and `wide`.

use smallvec::SmallVec;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Builder, Per, SlotId, Step, Tape};

/// Columns of a product, at most, and components from which it pays.
pub(super) const MOST: usize = 128;
const LEAST: usize = 8;

/// Factors of a component, at most; formulas of more are left alone.
const MOST_FACTORS: usize = 64;

/// Components of points up to which q y is kept for every j: it saves a product, and takes room in tiles.
const FEW_POINTS: usize = 4;

/// Columns that threads have registers for.
const MOST_OF_THREADS: usize = 16;

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
    weight: Option<SlotId>,
    of_j: Vec<SlotId>,
    points: Option<[SlotId; 2]>,
    negative: bool,
}

/// A formula's components, part by part.
struct Weighed {
    weight: SlotId,
    /// What belongs to j, and how many components.
    parts: Vec<(Factors, usize)>,
    difference: Option<Difference>,
}

impl Weighed {
    /// None where the formula's components are not such products.
    fn new(tape: &Tape) -> Option<Weighed> {
        let &[output] = tape.outputs() else { return None };
        let single =
            (0..tape.slots()).all(|slot| tape.slot(slot as SlotId).dtype == DType::Float32);
        if !single {
            return None;
        }
        let per = tape.sections();
        let (mut all, mut weight, mut difference, mut from) = (Vec::new(), None, None, 0);
        for part in parts(tape, output)? {
            let mut factors = Factors::default();
            factors.gather(tape, &per, part)?;
            let own = factors.weight?;
            if *weight.get_or_insert(own) != own {
                return None;
            }
            let len = tape.slot(part).len as usize;
            if let Some(points) = factors.points
                && difference.replace(Difference { from, len, points }).is_some()
            {
                return None;
            }
            all.push((factors, len));
            from += len;
        }
        Some(Weighed { weight: weight?, parts: all, difference })
    }
}

/// A formula with a difference as a sum of columns, which threads compute: first those of the result, where
/// the difference has w q y instead, then w q.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) tape: Tape,
    pub(super) difference: Difference,
}

impl Columns {
    /// None where the formula's components are no such products, or too many.
    pub(super) fn new(tape: &Tape) -> Option<Columns> {
        let weighed = Weighed::new(tape)?;
        let difference = weighed.difference?;
        if tape.slot(tape.outputs()[0]).len as usize >= MOST_OF_THREADS {
            return None;
        }
        let mut build = Builder::continuing(tape);
        let mut columns = Vec::new();
        let mut last = None;
        let times = |build: &mut Builder, a, b| build.apply(Id::Multiply, &[a, b]).ok();
        for (factors, len) in &weighed.parts {
            let Some([_, y]) = factors.points else {
                let side = factors.product(&mut build, *len as u32)?;
                columns.push(times(&mut build, weighed.weight, side)?);
                continue;
            };
            let q = factors.product(&mut build, 1)?;
            let wq = times(&mut build, weighed.weight, q)?;
            columns.push(match *len <= FEW_POINTS {
                true => {
                    let qy = times(&mut build, q, y)?;
                    times(&mut build, weighed.weight, qy)?
                }
                false => times(&mut build, wq, y)?,
            });
            last = Some(wq);
        }
        columns.extend(last);
        let all = build.concat(&columns).ok()?;
        Some(Columns { tape: build.finish(&[all]).ok()?.only(&[all]), difference })
    }
}

impl Right {
    /// None where the formula's components are not such products, or too few or too many.
    pub(super) fn new(tape: &Tape) -> Option<Right> {
        let Weighed { weight, parts, difference } = Weighed::new(tape)?;
        let dim = tape.slot(tape.outputs()[0]).len as usize;
        if !(LEAST..=MOST).contains(&dim) {
            return None;
        }
        let mut build = Builder::continuing(tape);
        let (last, sides): (Vec<_>, Vec<_>) =
            parts.iter().partition(|(factors, _)| factors.points.is_some());
        let sides =
            sides.into_iter().map(|(factors, len)| factors.product(&mut build, *len as u32));
        let mut sides = sides.collect::<Option<Vec<SlotId>>>()?;
        if let Some((factors, _)) = last.first() {
            sides.push(factors.product(&mut build, 1)?);
        }
        let all = if sides.len() == 1 { sides[0] } else { build.concat(&sides).ok()? };
        let right = Right {
            weight: tape.only(&[weight]),
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
    /// Takes a slot apart; none where it is no such product, or one of very many factors.
    fn gather(&mut self, tape: &Tape, per: &[Per], slot: SlotId) -> Option<()> {
        let mut rest = vec![slot];
        for _ in 0..MOST_FACTORS {
            let Some(slot) = rest.pop() else { return Some(()) };
            match per[usize::from(slot)] {
                Per::Once | Per::J => self.of_j.push(slot),
                Per::I => return None,
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
                let inputs = [x, y].iter().all(|&p| usize::from(p) < tape.inputs().len());
                if !inputs || (of(x), of(y)) != (Per::I, Per::J) || self.points.is_some() {
                    return None;
                }
                self.negative ^= x != a;
                self.points = Some([x, y]);
                Some(SmallVec::new())
            }
            _ if tape.slot(slot).len == 1 && self.weight.is_none() => {
                self.weight = Some(slot);
                Some(SmallVec::new())
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

/// The slots that are put together to one, in order; none where they are more than components.
fn parts(tape: &Tape, slot: SlotId) -> Option<Vec<SlotId>> {
    let (mut parts, mut rest) = (Vec::new(), vec![slot]);
    while let Some(slot) = rest.pop() {
        match tape.step_of(slot) {
            Some(Step { action: Action::Concat, operands, .. }) => {
                rest.extend(operands.iter().rev());
            }
            _ => parts.push(slot),
        }
        if parts.len() + rest.len() > MOST {
            return None;
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};
    use tilework_tape::Slot;

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
    fn long_products_are_left_alone() {
        let single = |len| Slot { dtype: DType::Float32, len };
        let product = |step: fn(&mut Builder, SlotId, SlotId) -> SlotId, times: usize| {
            let mut build = Builder::new();
            let (x, y) = (build.input(single(3), Per::I), build.input(single(3), Per::J));
            let (b, c) = (build.input(single(12), Per::J), build.input(single(1), Per::J));
            let mut all = build.dot(x, y).unwrap();
            (0..times).for_each(|_| all = step(&mut build, all, c));
            all = build.apply(Id::Multiply, &[all, b]).unwrap();
            Right::new(&build.finish(&[all]).unwrap())
        };
        let times = |build: &mut Builder, a, c| build.apply(Id::Multiply, &[a, c]).unwrap();
        assert!(product(times, 10).is_some());
        assert!(product(times, 20_000).is_none());
        // Every step has the one before it as a factor, twice.
        let square = |build: &mut Builder, a, _| build.apply(Id::Multiply, &[a, a]).unwrap();
        assert!(product(square, 40).is_none());
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
