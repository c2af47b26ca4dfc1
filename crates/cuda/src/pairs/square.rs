//! Squared distances that may be computed expanded, c |x - y|^2 = c |x|^2 + c |y|^2 - 2c <x, y>, and inner products.
//!
//! The norms belong to i and to j, so a pair costs one operation a component instead of two, or none
//! where tensor cores do the inner products; where the result is linear in the exponential, the part of
//! |x|^2 is even applied once a row, after all pairs. The form cancels: `tilework_backend::square` is the rule by
//! which a call uses it, for exponents, and only where the largest c |x|^2 and c |y|^2 of its data are small enough;
//! a kernel measures them, and the kernels of the two forms look there which of them is to work. And it is a filter
//! for the smallest squares, which are then computed directly. Norms are taken in float64, about a centre, or about the
//! origin where threads would take longer to find one than it saves.
//!
//! An inner product c <x, y> is the last part of -c/2 |x - y|^2: threads compute it as it is written, tensor cores as
//! that part, without norms and centre. Of many components their error is not above that of a sum in float32, whatever
//! the norms. Where accuracy is strict nothing is expanded, but norms tell where exponentials are normal numbers, for
//! which the card has an instruction. Called by `plan` and `pairs`.

use smallvec::SmallVec;
use tilework_backend::square::{self, Tiles};
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, FoldId, Id};
use tilework_tape::{Action, Per, SlotId, Step, Tape};

use super::folding::Folding;
use super::sections::LONG;

/// Components from which an expanded square pays.
const LEAST: u32 = 2;

/// The most inner products of a formula that are looked at, and the most uses of each: longer formulas have other costs.
const MOST: usize = 64;

/// Norms up to which a filter's squares neither overflow nor lose their range: `in_range` of `kernels/pair_math.cu`.
const IN_RANGE: f64 = 1e37;

/// Norms of either side up to which a power of two is a normal number: its exponent is at most four times as large, so
/// below 126, whatever is rounded.
const NORMAL: f64 = 31.375;

/// Components up to which exponentials that are normal numbers pay beside differences.
const SHORT: u32 = 16;

/// Instructions of a pair that such an exponential saves.
const SAVED: f64 = 7.0;

/// Norms of the exponent up to which inner products may be used that are as good as sums in float32. Tails of numbers
/// that are small beside the largest have fewer bits: of the largest norm they leave less than 2^-37, so less than 1e-6
/// here.
const OF_PRODUCTS: f64 = 65536.0;

/// How an expanded square is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Products {
    /// By every thread for its own pairs.
    Fused,
    /// As products of tiles, on tensor cores, which sums leave every so many components.
    Tiles { leave: usize },
    /// Not at all: the square is one of differences, as it is written, and norms only tell how large exponents are.
    Differences,
}

/// What a distance is multiplied by in the step whose place the form takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Nothing: the distance itself.
    One,
    MinusOne,
    /// A number that varies with nothing.
    By(SlotId),
}

/// What the form is of, and for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A squared distance whose uses are all exponents.
    Exponent,
    /// A squared distance whose smallest values are asked for: it only finds candidates.
    Filter,
    /// An inner product.
    Product,
}

/// With which sign a term is part of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// A squared distance, or an inner product, that another form may take the place of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Square {
    pub(super) kind: Kind,
    /// The step x - y; of an inner product, that itself.
    pub(super) difference: SlotId,
    /// The step |x - y|^2; of an inner product, that itself.
    pub(super) distance: SlotId,
    /// The distance times the scale, and with `plus` where that is the same step: what the form computes.
    pub(super) scaled: SlotId,
    pub(super) scale: Scale,
    pub(super) plus: Option<SlotId>,
    pub(super) x: SlotId,
    pub(super) y: SlotId,
    /// The point of j about the centre, where a step of the tape stands for it.
    pub(super) moved: Option<SlotId>,
    /// Whether threads move points to a centre.
    pub(super) centred: bool,
    /// With which sign the part of |x|^2 is in the exponent, where it is applied to the state of a row instead.
    pub(super) outside: Option<Sign>,
    /// How much larger than an error of it the error of a term is: `tilework_backend::square::slope`.
    pub(super) slope: f64,
    pub(super) products: Products,
}

impl Square {
    /// The first square of a tape that may be expanded, or the first inner product where it has none.
    pub(super) fn find(tape: &Tape, folding: &Folding) -> Option<Square> {
        if folding.strict || folding.computes != folding.accumulates {
            return None;
        }
        let uses = Uses::of(tape);
        let first = tape.inputs().len();
        let dots = tape.steps().iter().enumerate().filter(|(_, step)| step.action == Action::Dot);
        let dots: Vec<SlotId> = dots.take(MOST).map(|(k, _)| (first + k) as SlotId).collect();
        let users = dots.iter().flat_map(|&dot| uses.by[usize::from(dot)].iter().take(MOST));
        let mut scaled: Vec<SlotId> = users.copied().collect();
        scaled.sort_unstable();
        // What is multiplied by a number saves more than what is not.
        scaled.extend(dots);
        let mut product = None;
        for slot in scaled {
            match at(tape, folding, &uses, slot) {
                Some(found) if found.is_product() => product = product.or(Some(found)),
                Some(found) => return Some(found),
                None => {}
            }
        }
        product
    }

    /// The first square of a strict formula that is the exponent of a power of e, of short points in single precision. It
    /// is computed by differences, with log2(e) in the number that it is multiplied by, so that the card's power of two
    /// does. With two roundings of the exponent, the exponential of a, a product of the square as it was rounded, errs by
    /// at most |a| 2^-23 + 2^-22; as it is written, by |a| 2^-24 less. Norms are about the origin: points that were moved
    /// would be rounded.
    pub(super) fn of_normal_powers(tape: &Tape, folding: &Folding) -> Option<Square> {
        let single = folding.computes == DType::Float32 && folding.accumulates == DType::Float32;
        if !folding.strict || !single || folding.monoid() != Monoid::Add {
            return None;
        }
        let uses = Uses::of(tape);
        let slots = (tape.inputs().len()..tape.slots()).take(MOST).map(|slot| slot as SlotId);
        let found = slots.filter_map(|slot| at(tape, folding, &uses, slot)).find(|found| {
            let is_power = |slot: &SlotId| {
                tape.step_of(*slot).is_some_and(|step| step.action == Action::Apply(Id::Exp))
            };
            let slots = [found.x, found.y, found.distance, found.scaled];
            found.kind == Kind::Exponent
                && found.plus.is_none()
                && found.dim(tape) <= SHORT
                && slots.iter().all(|&slot| tape.slot(slot).dtype == DType::Float32)
                && !tape.outputs().contains(&found.scaled)
                && matches!(uses.of_slot(found.scaled), [user] if is_power(user))
        })?;
        Some(Square { products: Products::Differences, outside: None, ..found })
    }

    /// Whether it is computed by differences.
    pub(super) fn is_direct(&self) -> bool {
        self.products == Products::Differences
    }

    /// Whether a step is the power of e whose exponent is this square, computed by differences.
    pub(super) fn is_power(&self, step: &Step) -> bool {
        self.is_direct()
            && step.action == Action::Apply(Id::Exp)
            && step.operands[..] == [self.scaled]
    }

    /// Instructions of a pair that it saves.
    pub(super) fn saves(&self, tape: &Tape) -> f64 {
        if self.is_direct() { SAVED } else { f64::from(self.dim(tape) - 1) }
    }

    pub(super) fn dim(&self, tape: &Tape) -> u32 {
        tape.slot(self.x).len
    }

    /// Whether threads can compute it: short vectors, and an exponent.
    pub(super) fn suits_threads(&self, tape: &Tape) -> bool {
        self.dim(tape) <= LONG && self.kind == Kind::Exponent
    }

    /// The inputs that its points are, as they are or widened.
    pub(super) fn inputs(&self, tape: &Tape) -> Option<[SlotId; 2]> {
        Some([tape.input_of(self.x)?, tape.input_of(self.y)?])
    }

    /// Whether its points are inputs that nothing else reads, of one dtype.
    pub(super) fn is_of_inputs(&self, tape: &Tape) -> bool {
        let Some(inputs) = self.inputs(tape) else { return false };
        let [of_x, of_y] = inputs.map(|input| tape.slot(input).dtype);
        let alone = |slot: SlotId, user: SlotId| {
            slot == user || (tape.users(slot) == [user] && !tape.outputs().contains(&slot))
        };
        let points = [self.x, self.y].into_iter().zip(inputs);
        of_x == of_y
            && points
                .into_iter()
                .all(|(point, input)| alone(input, point) && alone(point, self.difference))
    }

    /// Whether the first output of the tape is this square as it is, which small norms then bound.
    pub(super) fn is_all_of(&self, tape: &Tape) -> bool {
        !self.is_filter() && self.plus.is_none() && tape.outputs()[0] == self.scaled
    }

    /// Whether it only finds candidates.
    pub(super) fn is_filter(&self) -> bool {
        self.kind == Kind::Filter
    }

    pub(super) fn is_product(&self) -> bool {
        self.kind == Kind::Product
    }

    /// The number that it is multiplied by.
    pub(super) fn factor(&self) -> Option<SlotId> {
        match self.scale {
            Scale::By(slot) => Some(slot),
            _ => None,
        }
    }

    /// How many components go through a tensor core before sums leave it; none where no tiles are made.
    pub(super) fn leave(&self) -> Option<usize> {
        match self.products {
            Products::Fused | Products::Differences => None,
            Products::Tiles { leave } => Some(leave),
        }
    }

    /// What the error of a product of tiles is made of.
    fn tiles(&self, tape: &Tape, leave: usize) -> Tiles {
        match self.kind {
            Kind::Product => Tiles::of_products(self.dim(tape), leave),
            _ => Tiles::new(self.dim(tape), leave),
        }
    }

    /// The largest error of the scaled square, in units of roundoff of the largest norm; where threads compute it, that
    /// about the origin.
    pub(super) fn error(&self, tape: &Tape) -> f64 {
        match self.products {
            Products::Fused => square::fused(self.dim(tape)),
            Products::Differences => 0.0,
            Products::Tiles { leave } => self.tiles(tape, leave).most(),
        }
    }

    /// Whether it errs by no more than an inner product that is summed in float32 may.
    pub(super) fn is_as_good(&self, tape: &Tape) -> bool {
        self.is_product() && self.error(tape) <= square::product_in_order(self.dim(tape))
    }

    /// The largest c |x|^2 and c |y|^2 with which the form may be used, in the exponent's own units.
    pub(super) fn limit(&self, tape: &Tape) -> f64 {
        match self.kind {
            Kind::Filter => IN_RANGE,
            _ if self.is_direct() => NORMAL,
            _ if self.is_as_good(tape) => OF_PRODUCTS / self.slope,
            _ => square::largest_norm(self.slope, self.error(tape)),
        }
    }

    /// The parts of [`Tiles`] as shares of [`Square::error`], by which a norm counts. Where that does not matter, norms count
    /// as they are.
    pub(super) fn shares(&self, tape: &Tape) -> [f64; 5] {
        match self.products {
            Products::Tiles { leave } if !self.is_filter() && !self.is_as_good(tape) => {
                let tiles = self.tiles(tape, leave);
                let parts = [tiles.norm, tiles.split, tiles.largest, tiles.later, tiles.centre];
                parts.map(|part| part / tiles.most())
            }
            _ => [1.0, 0.0, 0.0, 0.0, 0.0],
        }
    }

    /// The largest difference between a filter's square and that of the direct form, which rounds D + 2 times, relative
    /// to the sum of the largest norms; the square is at most twice that sum.
    pub(super) fn doubt(&self, tape: &Tape) -> f64 {
        let direct = 2.0 * (f64::from(self.dim(tape)) + 2.0);
        (direct + self.error(tape)) * f64::from(f32::EPSILON) / 2.0
    }
}

/// What is known of a tape's slots, found once.
struct Uses {
    sections: Vec<Per>,
    /// The steps that read a slot, once each.
    by: Vec<SmallVec<[SlotId; 2]>>,
}

impl Uses {
    fn of(tape: &Tape) -> Uses {
        let mut by: Vec<SmallVec<[SlotId; 2]>> = vec![SmallVec::new(); tape.slots()];
        for (k, step) in tape.steps().iter().enumerate() {
            let user = (tape.inputs().len() + k) as SlotId;
            for &operand in &step.operands {
                let users = &mut by[usize::from(operand)];
                if users.last() != Some(&user) {
                    users.push(user);
                }
            }
        }
        Uses { sections: tape.sections(), by }
    }

    /// The steps that read a slot.
    fn of_slot(&self, slot: SlotId) -> &[SlotId] {
        &self.by[usize::from(slot)]
    }
}

/// The square, or inner product, whose scaled distance is this slot.
fn at(tape: &Tape, folding: &Folding, uses: &Uses, scaled: SlotId) -> Option<Square> {
    let outputs = tape.outputs();
    let per = |slot: SlotId| uses.sections[usize::from(slot)];
    let step = tape.step_of(scaled)?;
    let by = |a: SlotId, b: SlotId| match per(a) {
        Per::Pair => (a, Scale::By(b)),
        _ => (b, Scale::By(a)),
    };
    let ((distance, scale), plus) = match (&step.action, &step.operands[..]) {
        (Action::Dot, _) => ((scaled, Scale::One), None),
        (Action::Apply(Id::Negative), &[a]) => ((a, Scale::MinusOne), None),
        (Action::Apply(Id::Multiply), &[a, b]) => (by(a, b), None),
        (Action::Apply(Id::Fma), &[a, b, c]) => (by(a, b), Some(c)),
        _ => return None,
    };
    let step = tape.step_of(distance)?;
    let (kind, difference, [p, q]) = match (tape.squared_difference(step), &step.operands[..]) {
        (Some((difference, points)), _) => (Kind::Exponent, difference, points),
        (None, &[a, b]) if step.action == Action::Dot => (Kind::Product, distance, [a, b]),
        _ => return None,
    };
    let (x, y) = if per(p) == Per::I { (p, q) } else { (q, p) };
    let is_number = |slot: SlotId| (per(slot), tape.slot(slot).len) == (Per::Once, 1);
    let is_scaled = match scale {
        Scale::By(slot) => is_number(slot),
        _ => true,
    };
    let are_points = (per(x), per(y)) == (Per::I, Per::J)
        && tape.slot(x) == tape.slot(y)
        && tape.slot(x).len >= LEAST;
    let alone = |slot: SlotId, user: SlotId| {
        slot == user || (uses.of_slot(slot) == [user] && !outputs.contains(&slot))
    };
    if plus == Some(distance)
        || !is_scaled
        || !are_points
        || !alone(difference, distance)
        || !alone(distance, scaled)
    {
        return None;
    }
    let monoid = folding.monoid();
    let is_smallest = monoid == Monoid::Smallest && kind == Kind::Exponent && scale == Scale::One;
    let (kind, outside, slope) = match monoid {
        Monoid::Smallest if is_smallest && uses.of_slot(scaled).is_empty() => {
            (Kind::Filter, (folding.shape.dim == 1).then_some(Sign::Plus), 0.0)
        }
        // In other reductions the exponential is judged by itself, where 1e-5 was not promised, and extremes
        // are those of products as they are written.
        Monoid::Add | Monoid::Shifted => {
            let slope = square::slope(tape, monoid, scaled, 1.0, |slot| number(tape, slot));
            let inside = kind == Kind::Product || (monoid == Monoid::Add && plus.is_some());
            let outside = if inside { None } else { outside(tape, monoid, uses, scaled) };
            (kind, outside, slope?)
        }
        _ => return None,
    };
    let (products, moved, centred) = (Products::Fused, None, false);
    Some(Square {
        kind,
        difference,
        distance,
        scaled,
        scale,
        plus,
        x,
        y,
        moved,
        centred,
        outside,
        slope,
        products,
    })
}

/// The number of a slot, where the tape has it.
fn number(tape: &Tape, slot: SlotId) -> Option<f64> {
    match &tape.step_of(slot)?.action {
        Action::Constant(number) => Some(number.cast(DType::Float64).get::<f64>()),
        _ => None,
    }
}

/// With which sign the part of |x|^2 can be applied to the state of a row instead of every pair; none where it cannot.
/// Without it `scaled` is too large by at most the limit of norms. It can be a factor of sums where `scaled` is all of
/// their exponent, so that nothing else brings that near the end of the range; or be added to exponents that are shifted,
/// where `scaled` is a term of these.
fn outside(tape: &Tape, monoid: Monoid, uses: &Uses, scaled: SlotId) -> Option<Sign> {
    let outputs = tape.outputs();
    let applies = |slot: SlotId, id: Id| {
        tape.step_of(slot).is_some_and(|step| step.action == Action::Apply(id))
    };
    if monoid == Monoid::Add {
        let &[exponential] = uses.of_slot(scaled) else { return None };
        let linear = applies(exponential, Id::Exp2Pair)
            && !outputs.contains(&scaled)
            && is_linear(tape, exponential);
        return linear.then_some(Sign::Plus);
    }
    let (mut slot, mut sign) = (scaled, Sign::Plus);
    while slot != outputs[0] {
        let &[user] = uses.of_slot(slot) else { return None };
        let step = tape.step_of(user)?;
        let turns = match (&step.action, &step.operands[..]) {
            (Action::Apply(Id::Add), [a, b]) if a != b => false,
            (Action::Apply(Id::Subtract), [a, b]) if a != b => *b == slot,
            (Action::Apply(Id::Negative), _) => true,
            _ => return None,
        };
        if turns {
            sign = if sign == Sign::Plus { Sign::Minus } else { Sign::Plus };
        }
        if outputs.contains(&slot) {
            return None;
        }
        slot = user;
    }
    let alone = uses.of_slot(slot).is_empty() && !outputs[1..].contains(&slot);
    alone.then_some(sign)
}

/// Whether the first output is linear in a slot.
fn is_linear(tape: &Tape, of: SlotId) -> bool {
    let first = tape.inputs().len();
    let mut degree: Vec<Option<u32>> = vec![Some(0); tape.slots()];
    for (k, step) in tape.steps().iter().enumerate() {
        let slot = first + k;
        if slot == usize::from(of) {
            degree[slot] = Some(1);
            continue;
        }
        let x: Option<Vec<u32>> = step.operands.iter().map(|&x| degree[usize::from(x)]).collect();
        degree[slot] = x.and_then(|x| match (&step.action, &x[..]) {
            (_, x) if x.iter().all(|degree| *degree == 0) => Some(0),
            (Action::Apply(Id::Multiply), [a, b]) | (Action::Dot | Action::Contract(_), [a, b]) => {
                Some(a + b)
            }
            (Action::Apply(Id::Negative), [a]) => Some(*a),
            (Action::Extract(_) | Action::Place(_) | Action::Fold(FoldId::Sum), [a]) => Some(*a),
            (Action::Apply(Id::Add | Id::Subtract), [a, b]) if a == b => Some(*a),
            (Action::Apply(Id::Fma), [a, b, c]) if a + b == *c => Some(*c),
            (Action::Concat, x) if x.iter().all(|degree| *degree == x[0]) => Some(x[0]),
            _ => None,
        });
    }
    degree[usize::from(tape.outputs()[0])] == Some(1)
}
