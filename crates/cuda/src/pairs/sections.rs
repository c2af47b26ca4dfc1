//! What a kernel does with every slot of a tape: in which section, where its numbers lie, and which
//! of them are made on the way.
//!
//! Slots of the sections "once", "per i" and "per j" that later sections need are held in a
//! structure of their section; all else is local. A vector of pairs that only loops along it need is
//! not stored: each loop makes its numbers as it goes. May assume a checked tape. Made by `plan`,
//! read by `print`.

use smallvec::SmallVec;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Per, SlotId, Step, Tape, Term, Terms};

use super::arguments;
use super::long::Long;
use super::square::Square;

/// The longest vector that is kept in registers, and whose loops are unrolled.
pub(super) const LONG: u32 = 64;

/// The largest number by which 2^-63 may be multiplied and still is nothing beside the rounding of an exponential.
const SMALL: f32 = 16.0;

/// What is known of a tape's slots.
#[derive(Debug)]
pub(super) struct Sections<'a> {
    pub(super) tape: &'a Tape,
    pub(super) per: Vec<Per>,
    /// Whether a slot is in the structure of its section.
    pub(super) held: Vec<bool>,
    /// Whether a slot is made number by number in the loops that need it.
    pub(super) passing: Vec<bool>,
    /// Whether a step is run at all.
    pub(super) run: Vec<bool>,
    /// What is summed, in order; empty for other reductions.
    pub(super) terms: Vec<Term>,
    /// A squared distance that is computed in another form than it is written, or whose exponential is.
    pub(super) square: Option<Square>,
    /// Whether it is of the weights of right-hand sides: kernels name the norms of rows and j even where there is no square.
    is_weight: bool,
    /// Whether all threads bring long vectors of j together, to shared memory.
    pub(super) together: bool,
    /// The constants that are arguments of the kernel.
    pub(super) arguments: Vec<SlotId>,
    /// What long vectors are needed for, where nothing is expanded.
    pub(super) long: Option<Long>,
    /// Vectors that no section holds: inputs are read where they are, and steps are made number by number. Their length is
    /// not in the text.
    unheld: Vec<SlotId>,
}

impl<'a> Sections<'a> {
    /// `sums` says that the reduction is a sum, which takes products fused; `together`, that long
    /// vectors of j are brought by all threads.
    pub(super) fn new(
        tape: &'a Tape,
        sums: bool,
        square: Option<Square>,
        together: bool,
    ) -> Sections<'a> {
        let long = if square.is_none() && together { Long::find(tape) } else { None };
        let unheld = long.as_ref().map_or(Vec::new(), |long| long.vectors.clone());
        Sections::with(tape, sums, square, together, (long, unheld))
    }

    /// The sections of weights of right-hand sides.
    pub(super) fn of_weight(tape: &'a Tape, square: Option<Square>) -> Sections<'a> {
        Sections { is_weight: true, ..Sections::new(tape, false, square, false) }
    }

    /// The sections of right-hand sides, whose numbers are asked for one by one.
    pub(super) fn of_sides(tape: &'a Tape) -> Sections<'a> {
        let is_vector = |slot: &SlotId| tape.slot(*slot).len > 1;
        let alike = (tape.inputs().len()..).zip(tape.steps()).all(|(slot, step)| {
            let touches = is_vector(&(slot as SlotId)) || step.operands.iter().any(is_vector);
            !touches || (is_vector(&(slot as SlotId)) && is_elementwise(step))
        });
        let unheld = (0..tape.slots() as SlotId).filter(|slot| alike && is_vector(slot));
        Sections::with(tape, false, None, false, (None, unheld.collect()))
    }

    fn with(
        tape: &'a Tape,
        sums: bool,
        square: Option<Square>,
        together: bool,
        (long, unheld): (Option<Long>, Vec<SlotId>),
    ) -> Sections<'a> {
        let (per, first) = (tape.sections(), tape.inputs().len());
        let mut run = needed(tape, tape.outputs());
        for slot in square.iter().flat_map(|square| [square.difference, square.distance]) {
            run[usize::from(slot) - first] = square.is_some_and(|square| square.scaled == slot);
        }
        // Points that come in tiles are widened when these are made.
        let in_tiles = square.filter(|square| square.leave().is_some());
        for point in in_tiles.iter().flat_map(|square| [square.x, square.y]) {
            if let Some(step) = usize::from(point).checked_sub(first) {
                run[step] = false;
            }
        }
        let vectors: Vec<usize> =
            unheld.iter().filter_map(|&slot| usize::from(slot).checked_sub(first)).collect();
        vectors.iter().for_each(|&k| run[k] = false);
        let uses = uses(tape, &run);
        let Terms { terms, inside } =
            if sums { tape.terms(&per, &tape.uses()) } else { Terms::default() };
        inside.iter().for_each(|&k| run[k] = false);
        let mut sections = Sections {
            tape,
            held: vec![false; per.len()],
            passing: vec![false; per.len()],
            per,
            run,
            terms,
            square,
            is_weight: false,
            together,
            arguments: arguments::of(tape),
            long,
            unheld,
        };
        for slot in sections.folded() {
            sections.hold(slot, Per::Pair);
        }
        if let Some(square) = square {
            square.factor().iter().for_each(|&factor| sections.hold(factor, Per::I));
            square.plus.iter().for_each(|&plus| sections.hold(plus, Per::Pair));
            match square.moved {
                Some(moved) => sections.hold(moved, Per::Pair),
                None if sections.is_centred() || sections.by_tiles() => {}
                None => sections.hold(square.y, Per::Pair),
            }
        }
        for (k, step) in tape.steps().iter().enumerate() {
            let section = sections.per[first + k];
            let expanded = square.is_some_and(|square| usize::from(square.scaled) == first + k);
            let slot = (first + k) as SlotId;
            let folded = sections.long.as_ref().is_some_and(|long| long.numbers.contains(&slot));
            if sections.run[k] && !expanded && !folded {
                step.operands.iter().for_each(|&operand| sections.hold(operand, section));
            }
        }
        // Vectors are made where they are needed, of numbers that have to be there.
        for &k in &vectors {
            let numbers = tape.steps()[k].operands.iter().filter(|&&slot| tape.slot(slot).len == 1);
            numbers.for_each(|&slot| sections.hold(slot, Per::Pair));
        }
        for (slot, input) in tape.inputs().iter().enumerate() {
            let point = sections.is_point(slot as SlotId);
            sections.held[slot] |=
                together && !point && input.per == Per::J && input.slot.len > LONG;
        }
        for slot in 0..tape.slots() {
            sections.held[slot] &= !sections.is_unheld(slot as SlotId);
        }
        let mut folded = vec![false; tape.slots()];
        sections.folded().iter().for_each(|&slot| folded[usize::from(slot)] = true);
        let passes = |slot: usize| sections.passes(slot as SlotId, &uses, folded[slot]);
        let mut passing: Vec<bool> = (0..tape.slots()).map(passes).collect();
        vectors.iter().for_each(|&k| passing[first + k] = true);
        sections.passing = passing;
        sections
    }

    /// The slots that the reduction takes.
    pub(super) fn folded(&self) -> Vec<SlotId> {
        let outputs = self.tape.outputs().iter().copied();
        let terms = self.terms.iter().flat_map(|term| [Some(term.slot), term.factor]).flatten();
        if self.terms.is_empty() { outputs.collect() } else { terms.collect() }
    }

    /// The steps of a section that are run, each with the slot that it defines.
    pub(super) fn steps(&self, section: Per) -> impl Iterator<Item = (SlotId, &'a Step)> + '_ {
        let first = self.tape.inputs().len();
        let steps = self.tape.steps().iter().enumerate().filter(|(k, _)| self.run[*k]);
        steps
            .map(move |(k, step)| ((first + k) as SlotId, step))
            .filter(move |(slot, _)| self.per[usize::from(*slot)] == section)
    }

    /// The slots of a section's structure.
    pub(super) fn held_by(&self, section: Per) -> impl Iterator<Item = SlotId> + '_ {
        (0..self.tape.slots())
            .filter(move |&slot| self.held[slot] && self.per[slot] == section)
            .map(|slot| slot as SlotId)
    }

    /// Whether tensor cores make the inner products of the square.
    pub(super) fn by_tiles(&self) -> bool {
        self.square.is_some_and(|square| square.leave().is_some())
    }

    /// The dtype of the norms that rows and j have.
    pub(super) fn norm(&self) -> Option<DType> {
        let of_square = self.square.map(|square| self.tape.slot(square.distance).dtype);
        of_square.or(self.is_weight.then_some(DType::Float32))
    }

    /// Whether threads compute the square of points that they move to a centre.
    pub(super) fn is_centred(&self) -> bool {
        self.together && self.square.is_some_and(|square| square.centred)
    }

    /// The square whose point of j has a place of its own beside the slots.
    pub(super) fn placed(&self) -> Option<Square> {
        self.square.filter(|square| self.is_centred() && square.moved.is_none())
    }

    /// Whether a slot is a point that comes in tiles or chunks, so that no section has it.
    pub(super) fn is_point(&self, slot: SlotId) -> bool {
        self.is_unheld(slot)
            || self.by_tiles()
                && self.square.is_some_and(|square| {
                    [square.x, square.y].contains(&slot)
                        || square.inputs(self.tape).is_some_and(|inputs| inputs.contains(&slot))
                })
    }

    /// Whether a slot is a vector that no section holds.
    pub(super) fn is_unheld(&self, slot: SlotId) -> bool {
        self.unheld.binary_search(&slot).is_ok()
    }

    /// The text for the length of vectors, where that is an argument.
    pub(super) fn depth(&self, len: u32) -> Option<String> {
        let place = self.long.as_ref().and_then(|long| long.place_of(len));
        place.map(|place| format!("DEPTH({place})"))
    }

    /// Bytes of a section's structure, rounded up to whole ones of its widest numbers.
    pub(super) fn bytes(&self, section: Per) -> usize {
        let product = self.square.filter(|_| !self.by_tiles());
        let norms = match (self.norm(), section) {
            (Some(norm), Per::I) => {
                norm.size() + product.map_or(0, |square| bytes(self.tape, square.x))
            }
            (Some(norm), Per::J) => norm.size(),
            _ => 0,
        };
        let point = self.placed().filter(|_| section == Per::J);
        let norms = norms + point.map_or(0, |square| bytes(self.tape, square.y));
        let held = self.held_by(section).map(|slot| bytes(self.tape, slot)).sum::<usize>();
        let widest = self.held_by(section).map(|slot| self.tape.slot(slot).dtype.size()).max();
        (norms + held).next_multiple_of(widest.unwrap_or(1).max(4))
    }

    /// The step that defines a slot.
    pub(super) fn step(&self, slot: SlotId) -> Option<&'a Step> {
        usize::from(slot).checked_sub(self.tape.inputs().len()).map(|k| &self.tape.steps()[k])
    }

    /// The number of a slot, where it is part of the kernel's text.
    pub(super) fn constant(&self, slot: SlotId) -> Option<&'a Scalar> {
        match self.step(slot).map(|step| &step.action) {
            Some(Action::Constant(number)) => {
                self.arguments.binary_search(&slot).is_err().then_some(number)
            }
            _ => None,
        }
    }

    /// Whether a square root only goes into exponents, as it is or times one of the text's numbers, which are
    /// small: roots of subnormal numbers, below 2^-63, are then nothing beside the rounding of an exponential.
    pub(super) fn is_root_of_exponent(&self, slot: SlotId) -> bool {
        let tape = self.tape;
        let applies = |slot: SlotId, id: Id| {
            tape.step_of(slot).is_some_and(|step| step.action == Action::Apply(id))
        };
        let only = |slot: SlotId, is: &dyn Fn(SlotId) -> bool| {
            let users = tape.users(slot);
            !users.is_empty() && !tape.outputs().contains(&slot) && users.into_iter().all(is)
        };
        let exponent = |user: SlotId| applies(user, Id::Exp2Pair);
        let small = |slot: SlotId| {
            self.constant(slot).is_some()
                && f32::from_bits(arguments::bits(tape, slot) as u32).abs() <= SMALL
        };
        let scaled = |user: SlotId| {
            let factors = tape.step_of(user).map_or(&[][..], |step| &step.operands);
            applies(user, Id::Multiply)
                && factors.iter().all(|&factor| factor == slot || small(factor))
                && factors.iter().filter(|factor| **factor == slot).count() == 1
                && only(user, &exponent)
        };
        applies(slot, Id::SqrtPair)
            && tape.slot(slot).dtype == DType::Float32
            && only(slot, &|user| exponent(user) || scaled(user))
    }

    /// Notes that a section needs a slot, which is held if it is of an earlier one.
    fn hold(&mut self, slot: SlotId, by: Per) {
        let section = self.per[usize::from(slot)];
        let constant = self.constant(slot).is_some();
        if self.long.as_ref().is_some_and(|long| long.has(slot)) {
            return;
        }
        self.held[usize::from(slot)] |= section != by && section != Per::Pair && !constant;
    }

    /// Whether a slot of pairs can be made on the way, at no cost in work: by one loop only, unless
    /// it is too long to be stored.
    fn passes(&self, slot: SlotId, uses: &[SmallVec<[SlotId; 2]>], folded: bool) -> bool {
        let Some(step) = self.step(slot) else { return false };
        let users = &uses[usize::from(slot)];
        let elementwise = is_elementwise(step);
        let loops = |user: &SlotId| match self.step(*user) {
            Some(user) => {
                is_elementwise(user) || matches!(user.action, Action::Dot | Action::Fold(_))
            }
            None => false,
        };
        self.per[usize::from(slot)] == Per::Pair
            && elementwise
            && step.slot.len > 1
            && users.iter().all(loops)
            && match step.slot.len > LONG {
                true => true,
                false => users.len() == 1 && !folded,
            }
    }
}

/// Whether a step makes every number of its own numbers.
pub(super) fn is_elementwise(step: &Step) -> bool {
    matches!(step.action, Action::Apply(_) | Action::Cast | Action::Select)
}

/// Bytes of a slot.
pub(super) fn bytes(tape: &Tape, slot: SlotId) -> usize {
    let slot = tape.slot(slot);
    slot.len as usize * slot.dtype.size()
}

/// For each step, whether these slots need it.
fn needed(tape: &Tape, outputs: &[SlotId]) -> Vec<bool> {
    let first = tape.inputs().len();
    let mut needed = vec![false; tape.slots()];
    outputs.iter().for_each(|&slot| needed[usize::from(slot)] = true);
    for (k, step) in tape.steps().iter().enumerate().rev() {
        if needed[first + k] {
            step.operands.iter().for_each(|&slot| needed[usize::from(slot)] = true);
        }
    }
    needed.split_off(first)
}

/// The steps that use each slot, once each.
fn uses(tape: &Tape, run: &[bool]) -> Vec<SmallVec<[SlotId; 2]>> {
    let first = tape.inputs().len();
    let mut uses = vec![SmallVec::new(); tape.slots()];
    for (k, step) in tape.steps().iter().enumerate().filter(|(k, _)| run[*k]) {
        for &operand in &step.operands {
            let users: &mut SmallVec<[SlotId; 2]> = &mut uses[usize::from(operand)];
            if !users.contains(&((first + k) as SlotId)) {
                users.push((first + k) as SlotId);
            }
        }
    }
    uses
}
