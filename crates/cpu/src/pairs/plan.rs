//! From a tape over pairs to sections, tile sizes and places for every slot.
//!
//! A slot lives in the region of its section: one number for each component (once), a tile of i, a
//! block of j, or a tile of pairs. Components lie one after the other, each with room for a whole
//! tile, so that kernels run along lanes. Places of pairs are reused when their value is dead;
//! everything else stays. Inputs that are given for every pair have a region of their own, with
//! room for a tile of i and a whole block of j, row after row of lanes. Rooms depend on the tape
//! and on what is fused only, so that assembled code finds everything at the same place in every
//! call. Sizes depend on the tape, on M and N and on the length of vectors only, never on threads, so
//! that the order of every sum does too. Made once a call by `pairs::run`.
//!
//! Lanes are i, and all of them take the same j. Where i fill whole vectors badly, every i has a
//! vector of lanes instead, which take j side by side ([`Plan::spread`]); its states are merged at the
//! end.

use smallvec::SmallVec;
use tilework_ops::Id;
use tilework_simd::tiles::MOST_ROWS;
use tilework_tape::{Action, Per, SlotId, Step, Tape, Term, Terms};

use super::form::FEW;
use super::products::MOST_LANES;

/// Pairs of a tile, where the formula is small.
const PAIRS: usize = 1024;

/// Bytes that the places of pairs may take together: some of the second-level cache.
const PAIR_BYTES: usize = 128 << 10;

/// Lanes of a tile, at least.
const FEW_LANES: usize = 16;

/// Bytes that the variables of a tile of i may take, where that leaves it those lanes: half of a
/// second-level cache.
const TILE_BYTES: usize = 1 << 20;

/// Rows of a tile and of a block, at least, where M and N allow.
const FEW_ROWS: usize = 4;

/// Sixteenths of the lanes of whole vectors that i should fill, and i from which they do well enough.
const FILLED: usize = 15;
const MANY_I: usize = 256;

/// j that a lane should take before one i has several, unless i do not fill even one vector.
const SPREAD_ROWS: usize = 64;

/// j that each lane of an i takes in a block, at most, and the bytes of such a block: what the
/// first-level cache holds.
const SPREAD_BLOCK: usize = 128;
const SPREAD_BYTES: usize = 48 << 10;

/// j in a block, unless a tile needs more or the variables are wide.
const BLOCK: usize = 256;

/// j in a block where something is given for every pair by products of matrices: whole tiles of them,
/// and points of j that the first-level cache keeps while all panels of i meet them.
pub(super) const GIVEN_BLOCK: usize = 10 * MOST_ROWS;

/// Bytes that a block of j may take.
const BLOCK_BYTES: usize = 256 << 10;

/// Bytes that a block of j may take where its vectors are packed for products: nobody reads them twice.
const PACKED_BYTES: usize = 4 * BLOCK_BYTES;

/// Components of a vector of j from which a sum of numbers times it is a matrix product: so many sums
/// leave the loop no registers to hide its latency with.
const COLUMNS: usize = MOST_ROWS;

/// j whose numbers are in a panel at a time: what the first-level cache keeps beside their vectors.
pub(super) const PANEL_ROWS: usize = 128;

/// How many regions there are.
pub(super) const REGIONS: usize = 7;

/// The region of what is given for every pair.
pub(super) const GIVEN: usize = 4;

/// The region of a panel of numbers for every pair, where [`Plan::columns`] needs one.
pub(super) const PANEL: usize = 5;

/// The region of vectors of j that are packed, where [`Columns::packed`] says so.
pub(super) const PACK: usize = 6;

/// Where the components of a slot are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// What it varies with.
    pub(super) section: Per,
    /// The region that it is in: that of its section, or [`GIVEN`].
    pub(super) region: usize,
    /// Bytes from the beginning of the region.
    pub(super) offset: usize,
    /// Bytes from one component to the next.
    pub(super) stride: usize,
    /// How many components there are.
    pub(super) len: usize,
    /// Bytes of a number.
    pub(super) size: usize,
}

/// What is to be done with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Nothing: nobody needs it, or another step does it.
    Skip,
    /// What its action says.
    Run,
    /// The squared distance of these two, without storing their difference.
    Distance(SlotId, SlotId),
    /// The inner product of the first two, summed onto the third.
    ProductOnto(SlotId, SlotId, SlotId),
}

/// A sum over j of a number times a vector of j, which is a product of matrices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// The number of a pair.
    pub(super) number: SlotId,
    /// The vector of j.
    pub(super) vector: SlotId,
    pub(super) len: usize,
    /// Whether it is an input that nobody else reads, which need not be loaded.
    pub(super) alone: bool,
    /// Whether vectors are packed, row by row: not all lie as products read them.
    pub(super) packed: bool,
}

/// Everything about a call that does not depend on where it is.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) tape: &'a Tape,
    pub(super) places: Vec<Place>,
    pub(super) how: Vec<How>,
    /// Whether the fold takes products fused, which decides what is stored and so where things are.
    pub(super) fuses: bool,
    /// The sum that an inner product goes onto, if there is one.
    pub(super) onto: Option<SlotId>,
    /// What is folded, in order.
    pub(super) terms: Vec<Term>,
    /// Set where what is folded is a long vector of j times a number.
    pub(super) columns: Option<Columns>,
    /// Whether no exponential of a pair is too small for a normal number, which saves a comparison.
    pub(super) normal: bool,
    /// The weights of a fold that has them.
    pub(super) weight: Option<SlotId>,
    /// i in a tile.
    pub(super) lanes: usize,
    /// Lanes of an i, which take j side by side: 1, or as many as a vector has.
    pub(super) spread: usize,
    /// j in a tile: whole rows of lanes, where i have several.
    pub(super) rows: usize,
    /// j in a block: whole tiles.
    pub(super) block: usize,
    /// Pairs that a place has room for.
    pub(super) pairs: usize,
    /// Bytes of each region; that of i is one tile.
    pub(super) bytes: [usize; REGIONS],
}

impl<'a> Plan<'a> {
    /// The plan for M and N and vectors of so many lanes; `fuses` says that the fold is a sum which
    /// takes products fused, `onto` names the sum of an inner product and a number that may be summed
    /// in any order.
    pub(super) fn new(
        tape: &'a Tape,
        (m, n): (usize, usize),
        vector: usize,
        fuses: bool,
        onto: Option<SlotId>,
    ) -> Plan<'a> {
        let sections = tape.sections();
        let (how, terms) = decide(tape, &sections, fuses, onto);
        let weight = tape.outputs().get(1).copied();
        let (offsets, mut units) = assign(tape, &sections, &how, &terms);
        // Room for whole cache lines of numbers of one byte keeps every component aligned.
        let mut pairs = PAIRS;
        while pairs > 64 && pairs * units[Per::Pair as usize] > PAIR_BYTES {
            pairs /= 2;
        }
        let mut most_lanes = (pairs / FEW_ROWS).max(FEW_LANES);
        while most_lanes > FEW_LANES && most_lanes * units[Per::I as usize] > TILE_BYTES {
            most_lanes /= 2;
        }
        let columns = columns(tape, &sections, &terms);
        let given = (0..tape.inputs().len()).any(|slot| sections[slot] == Per::Pair);
        let spread = if given || columns.is_some() { 1 } else { spread(m, n, vector) };
        // Vectors that are read where they are take no room of a block.
        let elsewhere = columns.filter(|columns| columns.alone);
        let elsewhere = elsewhere.map_or(0, |columns| bytes_of(tape, columns.vector));
        let unit = (units[Per::J as usize] - elsewhere).max(1);
        let longest = if given { GIVEN_BLOCK } else { BLOCK };
        let most_rows = match spread {
            1 if elsewhere == 0 && columns.is_some() => {
                (PACKED_BYTES / unit).clamp(FEW_ROWS, longest)
            }
            1 => (BLOCK_BYTES / unit).clamp(FEW_ROWS, longest),
            _ => (SPREAD_BYTES / unit).clamp(spread, SPREAD_BLOCK * spread),
        };
        let lanes = m.min(most_lanes / spread).max(1);
        let rows = match spread {
            1 => (pairs / lanes).clamp(1, n.max(1)).min(most_rows),
            _ => pairs.min(most_rows) / spread * spread,
        };
        let block = most_rows / rows * rows;
        // Elements that a component has room for, by region.
        let (i, j) = (most_lanes.next_multiple_of(64), most_rows.next_multiple_of(64));
        // Columns of j some lines more than a power of two apart: the numbers of one j must not all
        // want the same few sets of the cache.
        let room = [1, i, j + 64, pairs, i * j, PANEL_ROWS * MOST_LANES, 0];
        let place = |slot: usize| {
            let (section, held) = (sections[slot], tape.slot(slot as SlotId));
            let (len, size) = (held.len as usize, held.dtype.size());
            let region = region_of(tape, section, slot);
            let (offset, stride) = (offsets[slot] * room[region], size * room[region]);
            Place { section, region, offset, stride, len, size }
        };
        if let Some(Columns { number, .. }) = columns {
            units[PANEL] = tape.slot(number).dtype.size();
        }
        let bytes =
            std::array::from_fn(|region| (units[region] * room[region]).next_multiple_of(64));
        Plan {
            places: (0..tape.slots()).map(place).collect(),
            tape,
            how,
            fuses,
            onto,
            terms,
            columns,
            normal: false,
            weight,
            lanes,
            spread,
            rows,
            block,
            pairs,
            bytes,
        }
    }

    /// The steps of a section that are run, each with the slot that it defines.
    pub(super) fn steps(&self, section: Per) -> impl Iterator<Item = (SlotId, How, &'a Step)> + '_ {
        let first = self.tape.inputs().len();
        self.tape.steps().iter().enumerate().filter_map(move |(k, step)| {
            let (slot, how) = (first + k, self.how[k]);
            let here = how != How::Skip && self.places[slot].section == section;
            here.then_some((slot as SlotId, how, step))
        })
    }
}

/// Lanes of an i: those of a vector where i would fill whole vectors badly and there are j for all.
fn spread(m: usize, n: usize, vector: usize) -> usize {
    let filled = 16 * m >= FILLED * m.next_multiple_of(vector) || m >= MANY_I;
    let worth = m < vector || n >= SPREAD_ROWS * vector;
    if worth && !filled { vector } else { 1 }
}

/// Sums of how many columns pay for a pass more over the pairs, and how many products of all: 3000 x 3000 pairs of 64
/// components with 64 weights take 51 ms in one pass and 41 in two, with 32 weights 25 and 35; of three components 40 and 22,
/// and 11 and 13.
const MANY_COLUMNS: u32 = 49;
const MANY_PRODUCTS: f64 = 1e8;

/// Whether a sum is a product of matrices, and large enough for a pass more over the pairs to pay.
pub(super) fn multiplies(tape: &Tape, [batches, m, n]: [usize; 3]) -> bool {
    let width = tape.outputs().first().map_or(0, |&slot| tape.slot(slot).len);
    let sections = tape.sections();
    let (_, terms) = decide(tape, &sections, true, None);
    batches == 1
        && m.min(n) >= FEW
        && width >= MANY_COLUMNS
        && m as f64 * n as f64 * f64::from(width) >= MANY_PRODUCTS
        && columns(tape, &sections, &terms).is_some()
}

/// What is folded as a number times a long vector of j, if it is that and nothing else.
fn columns(tape: &Tape, sections: &[Per], terms: &[Term]) -> Option<Columns> {
    let &[Term { slot, factor: Some(factor), len: len @ COLUMNS.., across: None }] = terms else {
        return None;
    };
    let is_number = |slot: SlotId| tape.slot(slot).len == 1 && sections[slot as usize] == Per::Pair;
    let is_vector = |slot: SlotId| sections[slot as usize] == Per::J;
    let (number, vector) = match (is_number(slot), is_number(factor)) {
        (true, _) if is_vector(factor) => (slot, factor),
        (_, true) if is_vector(slot) => (factor, slot),
        _ => return None,
    };
    let readers = tape.steps().iter().filter(|step| step.operands.contains(&vector)).count();
    let alone = usize::from(vector) < tape.inputs().len() && readers == 1;
    Some(Columns { number, vector, len, alone, packed: false })
}

/// The region that a slot is in.
fn region_of(tape: &Tape, section: Per, slot: usize) -> usize {
    let is_given = section == Per::Pair && slot < tape.inputs().len();
    if is_given { GIVEN } else { section as usize }
}

/// What is to be done with each step, and what is folded.
fn decide(
    tape: &Tape,
    sections: &[Per],
    fuses: bool,
    onto: Option<SlotId>,
) -> (Vec<How>, Vec<Term>) {
    let first = tape.inputs().len();
    let uses = tape.uses();
    let is_needed = |k: usize| if uses[first + k] > 0 { How::Run } else { How::Skip };
    let mut how: Vec<How> = (0..tape.steps().len()).map(is_needed).collect();
    for k in 0..how.len() {
        let step = &tape.steps()[k];
        let &[a, b] = &step.operands[..] else { continue };
        let Some(difference) = (a as usize).checked_sub(first) else { continue };
        let of = &tape.steps()[difference];
        let is_distance = how[k] == How::Run
            && step.action == Action::Dot
            && a == b
            && uses[a as usize] == 2
            && of.action == Action::Apply(Id::Subtract)
            && sections[a as usize] == Per::Pair;
        if is_distance {
            how[difference] = How::Skip;
            how[k] = How::Distance(of.operands[0], of.operands[1]);
        }
    }
    if let Some(sum) = onto.and_then(|slot| usize::from(slot).checked_sub(first))
        && let &[product, number] = &tape.steps()[sum].operands[..]
        && let Some(k) = usize::from(product).checked_sub(first)
        && let &[a, b] = &tape.steps()[k].operands[..]
    {
        how[k] = How::Skip;
        how[sum] = How::ProductOnto(a, b, number);
    }
    if fuses {
        let Terms { terms, inside } = tape.terms(sections, &uses);
        inside.iter().for_each(|&k| how[k] = How::Skip);
        return (how, terms);
    }
    let whole = |&slot| Term::whole(slot, tape.slot(slot).len as usize);
    (how, tape.outputs().iter().take(1).map(whole).collect())
}

/// What a step reads, given what is done with it.
fn reads(step: &Step, how: How) -> SmallVec<[SlotId; 3]> {
    match how {
        How::Skip => SmallVec::new(),
        How::Run => step.operands.clone(),
        How::Distance(a, b) => SmallVec::from_slice(&[a, b]),
        How::ProductOnto(a, b, c) => SmallVec::from_slice(&[a, b, c]),
    }
}

/// Bytes of a slot for each element. Places of numbers that are wider than what is before them must be
/// aligned.
fn bytes_of(tape: &Tape, slot: SlotId) -> usize {
    let held = tape.slot(slot);
    (held.len as usize * held.dtype.size()).next_multiple_of(8)
}

/// Offsets of all slots in their regions, and the sizes of the regions, in bytes for each element.
fn assign(
    tape: &Tape,
    sections: &[Per],
    how: &[How],
    terms: &[Term],
) -> (Vec<usize>, [usize; REGIONS]) {
    let first = tape.inputs().len();
    let bytes = |slot: usize| bytes_of(tape, slot as SlotId);
    let mut last_use = vec![0; tape.slots()];
    for (k, step) in tape.steps().iter().enumerate() {
        reads(step, how[k]).iter().for_each(|&slot| last_use[slot as usize] = k);
    }
    let folded = terms.iter().flat_map(|term| [Some(term.slot), term.factor]).flatten();
    folded
        .chain(tape.outputs().get(1).copied())
        .for_each(|slot| last_use[slot as usize] = usize::MAX);
    let mut offsets = vec![0; tape.slots()];
    let mut units = [0; REGIONS];
    let mut free: Vec<(usize, usize)> = Vec::new();
    for slot in 0..tape.slots() {
        let region = region_of(tape, sections[slot], slot);
        if slot >= first && how[slot - first] == How::Skip {
            continue;
        }
        let reused =
            free.iter().position(|(size, _)| region == Per::Pair as usize && *size == bytes(slot));
        offsets[slot] = match reused {
            Some(at) => free.swap_remove(at).1,
            None => {
                units[region] += bytes(slot);
                units[region] - bytes(slot)
            }
        };
        let Some(k) = slot.checked_sub(first) else { continue };
        // Only now may the operands' places go, so that the result has not got one of them.
        let mut dead = reads(&tape.steps()[k], how[k]);
        dead.sort_unstable();
        dead.dedup();
        for operand in dead.into_iter().map(usize::from) {
            let region = region_of(tape, sections[operand], operand);
            if region == Per::Pair as usize && last_use[operand] == k {
                free.push((bytes(operand), offsets[operand]));
            }
        }
    }
    (offsets, units)
}
