//! Squared distances that may be computed expanded: c |x - y|^2 = c |x|^2 + c |y|^2 - 2c <x, y>.
//!
//! The norms belong to i and to j, so a pair costs one operation a component instead of two, or none
//! where tensor cores do the inner products; where the result is linear in the exponential, the part of
//! |x|^2 is even applied once a row, after all pairs. The form cancels: `tilework_backend::square` is the rule by
//! which a call uses it, for exponents, and only where the largest c |x|^2 and c |y|^2 of its data are small enough;
//! a kernel measures them, and the kernels of the two forms look there which of them is to work. And it is a filter
//! for the smallest squares, which are then computed directly. Norms are taken in float64, about a centre, or about the
//! origin where threads would take longer to find one than it saves. Called by
//! `plan` and `pairs`.

use std::f64::consts::LN_2;

use smallvec::SmallVec;
use tilework_backend::square::{self, Tiles};
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{FoldId, Id};
use tilework_tape::{Action, Per, SlotId, Tape};

use super::folding::Folding;
use super::sections::LONG;

/// Components from which the form pays.
const LEAST: u32 = 2;

/// Inner products of a formula that are looked at, and uses of each: longer formulas have other costs.
const MOST: usize = 64;

/// Norms with which a filter's squares neither overflow nor lose their range: `in_range` of `kernels/pair_math.cu`.
const FILTERED: f64 = 1e37;

/// How an expanded square is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Products {
    /// By every thread for its own pairs.
    Fused,
    /// As products of tiles, on tensor cores, which the sum leaves every so many of D.
    Tiles { leave: usize },
}

/// A squared distance whose uses are all exponents, or whose smallest values are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Square {
    pub(super) difference: SlotId,
    pub(super) distance: SlotId,
    /// The distance times the scale: what the form computes.
    pub(super) scaled: SlotId,
    /// None where the distance itself is compared.
    pub(super) scale: Option<SlotId>,
    pub(super) x: SlotId,
    pub(super) y: SlotId,
    /// The point of j about the centre, where a step of the tape stands for it.
    pub(super) moved: Option<SlotId>,
    /// Whether threads move points to a centre.
    pub(super) centred: bool,
    /// Whether the part of |x|^2 is applied to the state of a row instead.
    pub(super) outside: bool,
    /// What an error of it makes of a term.
    pub(super) slope: f64,
    pub(super) products: Products,
}

impl Square {
    /// The first that a tape has.
    pub(super) fn find(tape: &Tape, folding: &Folding) -> Option<Square> {
        if folding.strict || folding.computes != folding.accumulates {
            return None;
        }
        let uses = Uses::of(tape);
        let first = tape.inputs().len();
        let dots = tape.steps().iter().enumerate().filter(|(_, step)| step.action == Action::Dot);
        let scaled = dots.take(MOST).flat_map(|(k, _)| {
            let dot = (first + k) as SlotId;
            uses.by[first + k].iter().copied().take(MOST).chain([dot])
        });
        let mut scaled: Vec<SlotId> = scaled.collect();
        scaled.sort_unstable();
        scaled.into_iter().find_map(|slot| at(tape, folding, &uses, slot))
    }

    pub(super) fn dim(&self, tape: &Tape) -> u32 {
        tape.slot(self.x).len
    }

    /// Whether threads can compute it: short vectors, and an exponent.
    pub(super) fn suits_threads(&self, tape: &Tape) -> bool {
        self.dim(tape) <= LONG && self.scale.is_some()
    }

    /// Whether its points are inputs that nothing else looks at.
    pub(super) fn is_of_inputs(&self, tape: &Tape) -> bool {
        [self.x, self.y].iter().all(|&point| {
            usize::from(point) < tape.inputs().len()
                && tape.users(point) == [self.difference]
                && !tape.outputs().contains(&point)
        })
    }

    /// Whether it only finds candidates.
    pub(super) fn is_filter(&self) -> bool {
        self.scale.is_none()
    }

    /// Of D, how many go through a tensor core before the sum leaves it; none where no tile is made.
    pub(super) fn leave(&self) -> Option<usize> {
        match self.products {
            Products::Fused => None,
            Products::Tiles { leave } => Some(leave),
        }
    }

    /// The largest error of the scaled square, in units of roundoff of the largest norm; of threads, about the origin.
    pub(super) fn error(&self, tape: &Tape) -> f64 {
        match self.products {
            Products::Fused => square::fused(self.dim(tape)),
            Products::Tiles { leave } => Tiles::new(self.dim(tape), leave).most(),
        }
    }

    /// The largest c |x|^2 and c |y|^2 with which the form may be used, in the exponent's own units.
    pub(super) fn limit(&self, tape: &Tape) -> f64 {
        match self.is_filter() {
            true => FILTERED,
            false => square::largest_norm(self.slope, self.error(tape)),
        }
    }

    /// What [`Tiles`] counts for, as shares of [`Square::error`]. A filter's norms are as they are.
    pub(super) fn shares(&self, tape: &Tape) -> [f64; 5] {
        match self.products {
            Products::Tiles { leave } if !self.is_filter() => {
                let tiles = Tiles::new(self.dim(tape), leave);
                let parts = [tiles.norm, tiles.split, tiles.largest, tiles.later, tiles.centre];
                parts.map(|part| part / tiles.most())
            }
            _ => [1.0, 0.0, 0.0, 0.0, 0.0],
        }
    }

    /// The difference between a filter's square and the direct form, which rounds D + 2 times, relative
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
}

/// The square whose scaled distance is this slot.
fn at(tape: &Tape, folding: &Folding, uses: &Uses, scaled: SlotId) -> Option<Square> {
    let outputs = tape.outputs();
    let per = |slot: SlotId| uses.sections[usize::from(slot)];
    let users = |slot: SlotId| &uses.by[usize::from(slot)][..];
    let product = tape.step_of(scaled)?;
    let (distance, scale) = match (&product.action, &product.operands[..]) {
        (Action::Dot, _) => (scaled, None),
        (Action::Apply(Id::Multiply), &[a, b]) if per(a) == Per::Pair => (a, Some(b)),
        (Action::Apply(Id::Multiply), &[a, b]) => (b, Some(a)),
        _ => return None,
    };
    let (difference, [p, q]) = tape.squared_difference(tape.step_of(distance)?)?;
    let (x, y) = if per(p) == Per::I { (p, q) } else { (q, p) };
    let is_square = scale.is_none_or(|scale| (per(scale), tape.slot(scale).len) == (Per::Once, 1))
        && (per(x), per(y)) == (Per::I, Per::J)
        && tape.slot(x) == tape.slot(y)
        && tape.slot(x).len >= LEAST;
    let alone = |slot: SlotId, user: SlotId| {
        slot == user || (users(slot) == [user] && !outputs.contains(&slot))
    };
    if !is_square || !alone(difference, distance) || !alone(distance, scaled) {
        return None;
    }
    let exponent = |slot: SlotId| {
        tape.step_of(slot).is_some_and(|step| step.action == Action::Apply(Id::Exp2Pair))
    };
    let is_output = outputs.contains(&scaled);
    // What else it is multiplied by is not known here.
    let slope = || square::slope(tape, folding.monoid(), scaled, 1.0, |_| None);
    let (outside, slope) = match (folding.monoid(), users(scaled), scale) {
        (Monoid::Smallest, [], None) => (folding.shape.dim == 1, 0.0),
        (_, _, None) => return None,
        (Monoid::Shifted, [], _) if outputs[0] == scaled => (true, slope()?),
        (Monoid::Add, &[exponential], _) if !is_output && exponent(exponential) => {
            // The limit is that of one exponential: what multiplies it with itself has more error.
            let slope = slope().filter(|slope| *slope == LN_2)?;
            (is_linear(tape, exponential), slope)
        }
        // In other reductions the exponential is judged by itself, where 1e-5 was not promised.
        _ => return None,
    };
    let products = Products::Fused;
    let (moved, centred) = (None, false);
    Some(Square {
        difference,
        distance,
        scaled,
        scale,
        x,
        y,
        moved,
        centred,
        outside,
        slope,
        products,
    })
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
