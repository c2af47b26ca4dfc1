//! Sums of weights times right-hand sides: every component is a number of the pair, the same for all,
//! times numbers of j. Tensor cores multiply a tile of weights by a tile of right-hand sides then ([`Right`]).
//!
//! Components that are a difference of two points times a number q_j, as the gradients of kernels are,
//! become x_i (sum of w q) - (sum of w q y), with both points about a centre. Where there are
//! few of them, threads sum the columns ([`Columns`]). `kernels/pairs_wide_right.cu` says what the numbers
//! mean there. Made by `pairs`, read by `plan`, `print` and `wide`.

use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id, Scalar};
pub(super) use tilework_tape::Difference;
use tilework_tape::{Action, Builder, Factors, Per, SlotId, Step, Tape, Weighed};

use super::folding::Folding;
use super::slices::Slices;
use super::square::Square;
use super::wide::NARROW;

/// The most columns of a product beside points whose squares threads compute.
const MOST: usize = 128;

/// The most columns of a product where tensor cores make the squares, too.
const MOST_OF_BOTH: usize = 72;

/// Components of a result from which the product pays.
const LEAST: usize = 8;

/// Components from which it pays for weights that are as they are written: threads sum sixteen at a time.
const LEAST_AS_WRITTEN: usize = 17;

/// The most right-hand sides of a j that are cut into slices of columns: each thread that makes tiles of them holds all.
const MOST_SIDES: usize = 256;

/// Components of points up to which q y is kept for every j: it saves a product, and takes room in tiles.
pub(super) const FEW_POINTS: usize = 4;

/// The most columns that threads have registers for.
const MOST_OF_THREADS: usize = 16;

/// The most numbers of a row beside its point that threads have registers for, where they sum columns.
const MOST_OF_ROW: usize = 16;

/// A formula as a weight and right-hand sides.
#[derive(Debug)]
pub(super) struct Right {
    /// Gives the weight of a pair, and behind it, where there is one, what all results of a row are multiplied by.
    pub(super) weight: Tape,
    /// Gives the numbers of a j; the last is q where there is a difference.
    pub(super) sides: Tape,
    pub(super) difference: Option<Difference>,
    /// Components of the result.
    pub(super) dim: usize,
    /// Components of a slice of columns: all where there are none.
    len: usize,
}

/// A formula's components as weights and factors, part by part. None where they are no such products, or where their
/// factors of i are not numbers that all components have, as all of a gradient have the number of i that comes in.
fn weighed(tape: &Tape) -> Option<Weighed> {
    // Halves are widened before all else.
    let single = tape.inputs().iter().all(|input| input.slot.dtype.size() <= 4)
        && tape.steps().iter().all(|step| step.slot.dtype == DType::Float32);
    let weighed = tape.weighed().filter(|_| single)?;
    let (first, _) = weighed.parts.first()?;
    let numbers = first.of_i.iter().all(|&slot| tape.slot(slot).len == 1);
    let alike = weighed.parts.iter().all(|(factors, _)| factors.of_i == first.of_i);
    (numbers && alike).then_some(weighed)
}

/// The product of the numbers of i that all components have; none where there are none.
fn of_row(weighed: &Weighed, build: &mut Builder) -> Option<SlotId> {
    product_of(&weighed.parts.first()?.0.of_i, build)
}

/// The product of numbers; none where there are none.
fn product_of(numbers: &[SlotId], build: &mut Builder) -> Option<SlotId> {
    let (first, others) = numbers.split_first()?;
    others.iter().try_fold(*first, |all, &factor| build.apply(Id::Multiply, &[all, factor]).ok())
}

/// The product of what belongs to j, in so many components.
fn product(factors: &Factors, build: &mut Builder, len: usize) -> Option<SlotId> {
    factors.product(build, |slot| slot, Scalar::new(1f32), len as u32)
}

/// The numbers of an input in the dtype that formulas compute in.
fn number(tape: &Tape, input: SlotId) -> Option<SlotId> {
    let is = |slot: &SlotId| {
        tape.input_of(*slot) == Some(input) && tape.slot(*slot).dtype == DType::Float32
    };
    (0..tape.slots() as SlotId).find(is)
}

/// Whether registers have room for what the numbers of a pair need of its row, beside the point.
fn has_room(tape: &Tape, weighed: &Weighed, difference: Difference) -> bool {
    let weights = tape.only(&weighed.weights);
    let of_i = weights.inputs().iter().zip(0..).filter(|(input, slot)| {
        input.per == Per::I && *slot != difference.points[0] && !weights.users(*slot).is_empty()
    });
    of_i.map(|(input, _)| input.slot.len as usize).sum::<usize>() <= MOST_OF_ROW
}

/// A formula with a difference as a sum of columns, which threads compute: first those of the result, where
/// the difference has w q y instead, then w q.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) tape: Tape,
    pub(super) difference: Difference,
    /// The step that stands for the point of j about a centre.
    pub(super) moved: SlotId,
}

impl Columns {
    /// The columns of a formula; none where its components are no such products, make no difference, or are too many.
    pub(super) fn new(tape: &Tape) -> Option<Columns> {
        let weighed = weighed(tape)?;
        let difference = weighed.difference?;
        if tape.slot(tape.outputs()[0]).len as usize >= MOST_OF_THREADS
            || !has_room(tape, &weighed, difference)
        {
            return None;
        }
        let mut build = Builder::continuing(tape);
        let y = number(tape, difference.points[1])?;
        // All of the point: other steps may need it where it is.
        let moved = build.extract(y, 0, tape.slot(y).len).ok()?;
        let mut columns = Vec::new();
        let mut last = None;
        let times = |build: &mut Builder, a, b| build.apply(Id::Multiply, &[a, b]).ok();
        let weight = product_of(&weighed.weights, &mut build)?;
        let weight = match of_row(&weighed, &mut build) {
            Some(row) => times(&mut build, weight, row)?,
            None => weight,
        };
        for (factors, len) in &weighed.parts {
            if !factors.is_difference() {
                let side = product(factors, &mut build, *len)?;
                columns.push(times(&mut build, weight, side)?);
                continue;
            }
            let q = product(factors, &mut build, 1)?;
            let wq = times(&mut build, weight, q)?;
            columns.push(match *len <= FEW_POINTS {
                true => {
                    let qy = times(&mut build, q, moved)?;
                    times(&mut build, weight, qy)?
                }
                false => times(&mut build, wq, moved)?,
            });
            last = Some(wq);
        }
        columns.extend(last);
        let all = build.concat(&columns).ok()?;
        let tape = build.finish(&[all]).ok()?.only(&[all]);
        let y = number(&tape, difference.points[1])?;
        // The last such step: those of the formula come before it.
        let is_moved = |step: &Step| {
            (&step.action, &step.operands[..], step.slot)
                == (&Action::Extract(0), &[y], tape.slot(y))
        };
        let place = tape.steps().iter().rposition(is_moved)?;
        let moved = (tape.inputs().len() + place) as SlotId;
        Some(Columns { tape, difference, moved })
    }
}

impl Right {
    /// The weight and right-hand sides of a formula, or of its slices where registers do not hold all columns: these are
    /// slices of a narrower formula, or columns of the same right-hand sides. None where its components are no such
    /// products.
    pub(super) fn sliced(tape: &Tape, folding: &Folding) -> Option<(Right, Option<Slices>)> {
        let right = Right::new(tape)?;
        let points = match Square::find(&right.weight, folding) {
            Some(square) => square.dim(&right.weight),
            // Nothing is beside the right-hand sides.
            None if right.may_be_as_written(folding) => 0,
            None => return None,
        };
        let most = if points <= NARROW { MOST } else { MOST_OF_BOTH };
        if right.columns() <= most {
            return Some((right, None));
        }
        if let Some(slices) = Slices::of_input(tape, folding, most) {
            return Some((Right::new(Slices::tape(Some(&slices), tape))?, Some(slices)));
        }
        let slices = Slices::of_columns(right.dim, most - usize::from(right.difference.is_some()))?;
        (right.sides() <= MOST_SIDES).then_some((Right { len: slices.len, ..right }, Some(slices)))
    }

    /// The weight and right-hand sides of all components; none where these are no such products, or too few.
    fn new(tape: &Tape) -> Option<Right> {
        let weighed = weighed(tape)?;
        let dim = tape.slot(tape.outputs()[0]).len as usize;
        if dim < LEAST {
            return None;
        }
        let mut build = Builder::continuing(tape);
        let (weight, row) =
            (product_of(&weighed.weights, &mut build)?, of_row(&weighed, &mut build));
        let Weighed { parts, difference, .. } = weighed;
        let weights: Vec<SlotId> = [Some(weight), row].into_iter().flatten().collect();
        let (last, sides): (Vec<_>, Vec<_>) =
            parts.iter().partition(|(factors, _)| factors.is_difference());
        let sides = sides.into_iter().map(|(factors, len)| product(factors, &mut build, *len));
        let mut sides = sides.collect::<Option<Vec<SlotId>>>()?;
        if let Some((factors, _)) = last.first() {
            sides.push(product(factors, &mut build, 1)?);
        }
        let all = if sides.len() == 1 { sides[0] } else { build.concat(&sides).ok()? };
        let outputs: Vec<SlotId> = weights.iter().copied().chain([all]).collect();
        let both = build.finish(&outputs).ok()?;
        let right = Right {
            weight: both.only(&weights),
            sides: both.only(&[all]),
            difference,
            dim,
            len: dim,
        };
        let section = right.sides.sections()[usize::from(right.sides.outputs()[0])];
        matches!(section, Per::J | Per::Once).then_some(right)
    }

    /// Whether the weight may be multiplied as it is written, of so many columns that threads would compute it twice.
    pub(super) fn may_be_as_written(&self, folding: &Folding) -> bool {
        self.dim >= LEAST_AS_WRITTEN
            && self.difference.is_none()
            && folding.monoid() == Monoid::Add
            && !folding.compensated
            && !folding.strict
            && folding.computes == DType::Float32
            && folding.accumulates == DType::Float32
    }

    /// Whether the formula has a square that may be expanded.
    pub(super) fn has_square(&self, folding: &Folding) -> bool {
        Square::find(&self.weight, folding).is_some()
    }

    /// How many right-hand sides a j has.
    pub(super) fn sides(&self) -> usize {
        self.sides.slot(self.sides.outputs()[0]).len as usize
    }

    /// Columns of the product, whole eights of them.
    pub(super) fn columns(&self) -> usize {
        (self.len + usize::from(self.difference.is_some())).next_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sum_of;
    use super::*;
    use tilework_tape::Slot;

    fn right(text: &str) -> Option<Right> {
        let aliases =
            ["x = Vi(10)", "y = Vj(10)", "b = Vj(12)", "c = Vj(1)", "e = Vi(1)", "f = Vi(12)"];
        Right::new(&sum_of(text, &aliases).0)
    }

    #[test]
    fn weights_and_their_right_hand_sides_are_told_apart() {
        let many = right("Exp(-SqDist(x,y)) * b").unwrap();
        assert_eq!((many.columns(), many.difference), (16, None));
        let both = right("Concat(Exp(-SqDist(x,y)) * c, Grad(Exp(-SqDist(x,y)) * c, x, c))");
        let both = both.unwrap();
        let difference = both.difference.unwrap();
        assert_eq!((both.columns(), difference.from, difference.len), (16, 1, 10));
        // Numbers that come in for rows.
        let gradient = right("Grad(Exp(-SqDist(x,y)) * c, x, e)").unwrap();
        assert_eq!((gradient.columns(), gradient.weight.outputs().len()), (16, 2));
        // Of several columns, whose inner product is part of the weight.
        let columns = right("Grad(Exp(-SqDist(x,y)) * b, x, f)").unwrap();
        assert_eq!((columns.columns(), columns.weight.outputs().len()), (16, 1));
        columns.weight.check().unwrap();
        for tape in [&many.weight, &many.sides, &both.weight, &both.sides, &gradient.weight] {
            tape.check().unwrap();
        }
    }

    /// The columns of a product, the components of a slice, and how many slices there are.
    fn slices(text: &str, dim: usize, width: usize) -> Option<(usize, usize, usize)> {
        let aliases =
            [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
        let aliases = [&aliases[0][..], &aliases[1], &aliases[2]];
        let (tape, folding) = sum_of(text, &aliases);
        let (right, slices) = Right::sliced(&tape, &folding)?;
        let len = slices.as_ref().map_or(right.dim, |slices| slices.len);
        Some((right.columns(), len, slices.map_or(1, |slices| slices.firsts().count())))
    }

    #[test]
    fn no_width_is_too_wide() {
        let gradient = "Grad(Exp(-SqDist(x,y)) * b, x, b)";
        let both = "Concat(Exp(-SqDist(x,y)) * b, Grad(Exp(-SqDist(x,y)) * b, x, b))";
        assert_eq!(slices(gradient, 71, 1), Some((72, 71, 1)));
        assert_eq!(slices(both, 71, 1), Some((40, 36, 2)));
        assert_eq!(slices(gradient, 128, 1), Some((72, 64, 2)));
        assert_eq!(slices("Exp(-SqDist(x,y)) * b", 64, 64), Some((64, 64, 1)));
        assert_eq!(slices("Exp(-SqDist(x,y)) * b", 3, 300), Some((104, 100, 3)));
        for dim in 8..390 {
            for (text, width) in [(gradient, 1), (both, 2), ("Exp(-SqDist(x,y)) * b", 400 - dim)] {
                let (columns, len, count) = slices(text, dim, width).unwrap();
                let (all, most) = match text == gradient {
                    true => (dim, 1),
                    _ if text == both => (dim + width, 1),
                    _ => (width, 0),
                };
                assert!(columns <= if dim > 16 { 72 } else { 128 }, "{text}, {dim}, {width}");
                assert!(columns >= len + most && count * len >= all, "{text}, {dim}, {width}");
                assert!((count - 1) * len < all, "{text}, {dim}, {width}");
            }
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
        // Too few components; a factor of i that only some have; two weights.
        for text in [
            "Exp(-SqDist(x,y)) * c",
            "Concat(Exp(-SqDist(x,y)) * e * b, Exp(-SqDist(x,y)) * b)",
            "Concat(Exp(-SqDist(x,y)) * b, Sqrt(SqDist(x,y)) * b)",
        ] {
            assert!(right(text).is_none(), "{text}");
        }
    }
}
