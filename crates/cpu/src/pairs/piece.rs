//! One piece of work: a block of i against a range of j.
//!
//! Loads variables, runs what depends on one index once, and takes every tile of i through every
//! block of j, by assembled code where there is some and by the interpreter otherwise. May assume a
//! job whose plan and code belong together; called by `Job::run`, on any thread.

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use tilework_backend::try_room;
use tilework_error::Result;
use tilework_tape::{Per, SlotId};

use super::Job;
use super::columns::Vectors;
use super::fold::{Component, Onto, States};
use super::jit::{Arguments, Compiled, HIT_BYTES, HIT_NOTE, HITS};
use super::lanes::Summed;
use super::plan::GIVEN;
use super::products::Number;
use super::rows::Rows;
use super::tile::{BUFFERS, Frame};
use crate::map::moves;

/// Rows whose largest exponent is the reference of the first block.
const REFERENCE_ROWS: usize = 16;

/// One in so many lanes of a tile is few: done alone, it costs as much as so many beside each other.
const FEW_OF: usize = 16;

/// Room for hits.
#[repr(align(64))]
struct Hits(MaybeUninit<[u8; HITS * HIT_BYTES]>);

/// A block of j for a tile of i.
pub(super) struct Block<'f, 'p, 'a> {
    pub(super) tile: &'f Frame<'p, 'a>,
    /// How many j there are.
    pub(super) rows: usize,
    /// The place of the first in the range.
    pub(super) place: usize,
    /// The vectors of j, where [`super::plan::Plan::columns`] is set.
    pub(super) vectors: Vectors,
}

impl<T: Number + Summed<A>, A: Number> Job<'_, T, A> {
    /// The states of a block of i over a range of j.
    pub(super) fn piece(&self, batch: usize, block: usize, range: usize) -> Result<Rows<A>> {
        if let Some(states) = self.nearest(batch, block, range)? {
            return Ok(states);
        }
        let plan = &self.plan;
        let tiles = self.ranges(block, range).0.len().div_ceil(plan.lanes);
        let elements = plan.pairs.max(plan.block).max(plan.lanes).next_multiple_of(64);
        let buffer = elements * 8;
        let [once, i, j, pair, given, panel, pack] = plan.bytes;
        let of_pairs = once + j + pair;
        let of_i = of_pairs + given + panel + pack;
        let buffers = of_i + i * tiles;
        moves::with_scratch(self.request.fold.row().name, buffers + BUFFERS * buffer, |arena| {
            let at = |offset: usize| arena.wrapping_add(offset);
            let frame = Frame {
                plan,
                isa: self.isa,
                regions: [0, of_i, once, once + j, of_pairs, of_pairs + given, of_i - pack].map(at),
                buffers: at(buffers),
                buffer,
                section: Per::Once,
                rows: 1,
                lanes: 1,
                first: 0,
                i: 0,
                across: plan.spread > 1,
            };
            self.piece_in(frame, &self.batch_index(batch), block, range)
        })?
    }

    fn piece_in(
        &self,
        frame: Frame<'_, '_>,
        batch: &[usize],
        block: usize,
        range: usize,
    ) -> Result<Rows<A>> {
        let (plan, request) = (&self.plan, self.request);
        let (rows, js) = self.ranges(block, range);
        self.load(&frame, batch, Per::Once, 0);
        frame.run()?;
        let name = request.fold.row().name;
        let mut tiles = try_room(name, rows.len().div_ceil(plan.lanes))?;
        for (number, first) in rows.clone().step_by(plan.lanes).enumerate() {
            let mut tile = frame;
            tile.section = Per::I;
            tile.lanes = plan.lanes.min(rows.end - first);
            let region = &mut tile.regions[Per::I as usize];
            *region = region.wrapping_add(number * plan.bytes[Per::I as usize]);
            let states = self.begin_tile(&tile, batch, first, js.len())?;
            tiles.push((tile, first..first + tile.lanes, states));
        }
        for first in js.clone().step_by(plan.block) {
            let count = self.begin_block(&frame, batch, first..js.end)?;
            let vectors = self.vectors(&frame, batch, first, count);
            for (tile, of_tile, states) in &mut tiles {
                self.fill(tile, of_tile, first..first + count);
                let block = Block { tile, rows: count, place: first - js.start, vectors };
                if block.place == 0 && states.needs_reference() {
                    self.refer(&block, states)?;
                }
                self.take(&block, states)?;
                while states.end_block()? {
                    self.take(&block, states)?;
                }
            }
            self.course.go_on((count * rows.len()) as u64)?;
        }
        let start = request.start + js.start as i64;
        let of_rows = |rows| Rows::of(request.fold, self.folding.shape, rows, js.len() as u64);
        let mut all = of_rows(rows.len())?;
        for (tile, of_tile, states) in tiles {
            let part = of_tile.start - rows.start..of_tile.end - rows.start;
            if plan.spread == 1 {
                let unknown: SmallVec<[usize; 16]> = states.knowing_nothing().collect();
                states.finish(start, all.part(part), &self.course)?;
                for i in runs(&unknown, of_tile.len()) {
                    let i = of_tile.start + i.start..of_tile.start + i.end;
                    let states = self.interpreted(&frame, tile, batch, i.clone(), js.clone())?;
                    let part = all.part(i.start - rows.start..i.end - rows.start);
                    states.finish(start, part, &self.course)?;
                }
                continue;
            }
            let lanes = of_tile.len() * plan.spread;
            let mut of_lanes = of_rows(lanes)?;
            states.finish(start, of_lanes.part(0..lanes), &self.course)?;
            all.gather(part, of_lanes);
        }
        Ok(all)
    }

    /// Loads a tile of i from an index on, and runs what depends on i alone; its states before any of
    /// `most` j.
    fn begin_tile(
        &self,
        tile: &Frame<'_, '_>,
        batch: &[usize],
        first: usize,
        most: usize,
    ) -> Result<States<T, A>> {
        self.load(tile, batch, Per::I, first);
        tile.run()?;
        let (name, lanes) = (self.request.fold.row().name, (tile.lanes, self.plan.spread));
        let sizes = (most, self.plan.pairs);
        States::new(name, self.folding, lanes, sizes, self.isa)
    }

    /// Loads the first block of some j, and runs what depends on j alone; how many j it has.
    fn begin_block(
        &self,
        frame: &Frame<'_, '_>,
        batch: &[usize],
        js: Range<usize>,
    ) -> Result<usize> {
        let mut of_block = *frame;
        of_block.section = Per::J;
        of_block.lanes = self.plan.block.min(js.len());
        self.load(&of_block, batch, Per::J, js.start);
        of_block.run()?;
        Ok(of_block.lanes)
    }

    /// The states of some i of a tile over a range of j, by the interpreter alone.
    fn interpreted<'p, 'a>(
        &self,
        frame: &Frame<'p, 'a>,
        mut tile: Frame<'p, 'a>,
        batch: &[usize],
        i: Range<usize>,
        js: Range<usize>,
    ) -> Result<States<T, A>> {
        tile.lanes = i.len();
        let mut states = self.begin_tile(&tile, batch, i.start, js.len())?;
        for first in js.clone().step_by(self.plan.block) {
            let rows = self.begin_block(frame, batch, first..js.end)?;
            self.fill(&tile, &i, first..first + rows);
            let (place, vectors) = (first - js.start, Vectors::none());
            let block = Block { tile: &tile, rows, place, vectors };
            for row in (0..rows).step_by(self.plan.rows) {
                self.interpret(&block, 0, row, &mut states)?;
            }
            self.course.go_on(0)?;
        }
        Ok(states)
    }

    /// Takes all pairs of a block into the states.
    fn take(&self, block: &Block<'_, '_, '_>, states: &mut States<T, A>) -> Result<()> {
        let taken = match &self.code {
            Ok(code) if self.columns().is_some() => self.run_columns(code, block, states),
            Ok(code) if states.is_plain() => self.run_code(code, block, states),
            _ => 0,
        };
        // Assembled code does not see values that are as bad as none; the interpreter does, and
        // what is known already it finds no better. Lanes that are i wait for the end of the range.
        let again = self.plan.spread > 1 && states.knowing_nothing().next().is_some();
        let from = if again { 0 } else { taken };
        for i in 0..if block.tile.across { block.tile.lanes } else { 1 } {
            for row in (from..block.rows).step_by(self.plan.rows) {
                self.interpret(block, i, row, states)?;
            }
        }
        Ok(())
    }

    /// Interprets the tile of a block from a j on, of one i where its lanes are j.
    fn interpret(
        &self,
        block: &Block<'_, '_, '_>,
        i: usize,
        row: usize,
        states: &mut States<T, A>,
    ) -> Result<()> {
        let pairs = self.run_tile(block, i, row, self.plan.rows.min(block.rows - row))?;
        let spread = self.plan.spread;
        let (count, lanes) = (pairs.rows * pairs.lanes, lanes_of(&pairs, spread));
        let (place, whole) = ((block.place + row) / spread, count / lanes.len());
        // Whole rows of lanes, and what is left of the last one.
        let cut = whole * lanes.len();
        let last = lanes.start..lanes.start + count - cut;
        let rows = Onto { lanes, rows: whole, place };
        let rest = Onto { lanes: last, rows: 1, place: place + whole };
        for (onto, values) in [(rows, 0..cut), (rest, cut..count)] {
            if values.is_empty() {
                continue;
            }
            let slice = |from: *const u8| {
                // SAFETY: a component of a tile has a number of type `T` for every pair, in memory
                // that nobody writes before the fold has read it.
                let all = unsafe { std::slice::from_raw_parts(from.cast::<T>(), count) };
                &all[values.clone()]
            };
            let component = |c: usize| {
                let (slot, factor, [first, second]) = self.term(c);
                Component {
                    values: slice(pairs.folded(slot, first, 0)),
                    factor: factor.map(|factor| slice(pairs.folded(factor, second, 1))),
                }
            };
            let weight = |c: usize| {
                let slot = self.plan.weight.unwrap_or_default();
                slice(pairs.folded(slot, c, 2))
            };
            states.step(&onto, component, weight);
        }
        Ok(())
    }

    /// The slot and the factor of what is folded as component `c`, and their components.
    fn term(&self, mut c: usize) -> (SlotId, Option<SlotId>, [usize; 2]) {
        for term in &self.plan.terms {
            if c < term.len {
                return (term.slot, term.factor, term.places(c));
            }
            c -= term.len;
        }
        (0, None, [0; 2])
    }

    /// Computes some rows of a block; where their values are.
    fn run_tile<'p, 'a>(
        &self,
        block: &Block<'_, 'p, 'a>,
        i: usize,
        row: usize,
        rows: usize,
    ) -> Result<Frame<'p, 'a>> {
        let mut pairs = *block.tile;
        pairs.section = Per::Pair;
        (pairs.i, pairs.first) = (i, row);
        (pairs.rows, pairs.lanes) = if pairs.across { (1, rows) } else { (rows, block.tile.lanes) };
        pairs.run()?;
        Ok(pairs)
    }

    /// Gives every lane its first reference.
    fn refer(&self, block: &Block<'_, '_, '_>, states: &mut States<T, A>) -> Result<()> {
        let spread = self.plan.spread;
        let rows = self.plan.rows.min(block.rows).min(REFERENCE_ROWS * spread);
        for i in 0..if block.tile.across { block.tile.lanes } else { 1 } {
            let pairs = self.run_tile(block, i, 0, rows)?;
            let (slot, _, [c, _]) = self.term(0);
            let values = pairs.folded(slot, c, 0).cast::<T>();
            // SAFETY: as in `interpret`.
            let values = unsafe { std::slice::from_raw_parts(values, pairs.rows * pairs.lanes) };
            states.refer(lanes_of(&pairs, spread), values);
        }
        Ok(())
    }

    /// Runs assembled code over a block; how many j it took, which is all, or all whole rows of lanes
    /// where i have several, or none if there is no code.
    fn run_code(
        &self,
        code: &Compiled,
        block: &Block<'_, '_, '_>,
        states: &mut States<T, A>,
    ) -> usize {
        let (tile, lanes, spread) = (block.tile, code.lanes(), self.plan.spread);
        let (all, count) = ((tile.lanes * spread).div_ceil(lanes), block.rows / spread);
        let groups = groups(all, code.vectors());
        if !groups.clone().all(|vectors| code.is_ready(vectors)) {
            return 0;
        }
        let mut hits = Hits(MaybeUninit::uninit());
        let hits = hits.0.as_mut_ptr().cast::<u8>();
        let mut rows = states.rows();
        let mut vector = 0;
        for vectors in groups {
            let lane = vector * lanes;
            let across = lane / spread * size_of::<T>();
            let step = tile.lanes * size_of::<T>();
            let mut left = count;
            while left > 0 {
                let done = count - left;
                let mut arguments = Arguments {
                    lanes: tile.regions[Per::I as usize].wrapping_add(across),
                    row: tile.regions[Per::J as usize].wrapping_add(done * spread * size_of::<T>()),
                    numbers: tile.regions[Per::Once as usize],
                    given: tile.regions[GIVEN].wrapping_add(across + done * step),
                    given_step: step,
                    count: left,
                    place: (block.place / spread + done) as u64,
                    states: rows.as_ptr(),
                    hit: hits,
                    last_hit: hits.wrapping_add((HITS - code.hits()) * HIT_BYTES),
                };
                // SAFETY: regions and states have room for whole vectors; the block has `left` rows
                // of lanes from `done` on; the code was compiled for this plan and this fold.
                unsafe { code.run(vectors, &mut arguments) };
                // SAFETY: the code wrote hits up to the end that it gave back.
                unsafe { self.look(block, hits, &arguments, (lane, vectors, lanes), states) };
                left = arguments.count;
            }
            vector += vectors;
            // States are as wide as what is computed, or there would be no code.
            let bytes = vectors * lanes * size_of::<T>();
            rows.iter_mut().for_each(|row| *row = row.wrapping_add(bytes));
        }
        count * spread
    }

    /// Takes the hits that assembled code wrote down.
    ///
    /// # Safety
    /// Hits from `hits` to the end in `arguments` have been written, for a call on these vectors.
    unsafe fn look(
        &self,
        block: &Block<'_, '_, '_>,
        hits: *const u8,
        arguments: &Arguments,
        (first, vectors, lanes): (usize, usize, usize),
        states: &mut States<T, A>,
    ) {
        let mut hit = hits;
        while hit < arguments.hit.cast_const() {
            // SAFETY: a hit is values, lanes, component and vector, and how many j were left.
            let (mut found, which, left) = unsafe {
                let note = hit.add(HIT_NOTE);
                let left = note.add(8).cast::<u64>().read() as usize;
                (note.cast::<u32>().read(), note.add(4).cast::<u32>().read() as usize, left)
            };
            let place = ((block.place + block.rows) / self.plan.spread - left) as u32;
            let (component, vector) = (which / vectors, which % vectors);
            while found != 0 {
                let lane = found.trailing_zeros() as usize;
                found &= found - 1;
                if lane < lanes {
                    // SAFETY: a hit begins with the values of a whole vector.
                    let value = unsafe { hit.cast::<T>().add(lane).read() };
                    states.hit(component, first + vector * lanes + lane, value, place);
                }
            }
            hit = hit.wrapping_add(HIT_BYTES);
        }
    }
}

/// How many of `all` vectors each call takes, at most `most`, as evenly as pairs of them go: an odd one
/// would be alone with its latency.
fn groups(all: usize, most: usize) -> impl Iterator<Item = usize> + Clone {
    let (groups, unit) = (all.div_ceil(most), 2 - most % 2);
    let units = all.div_ceil(unit);
    (0..groups).map(move |group| {
        let end = |before: usize| all.min(units * before / groups * unit);
        end(group + 1) - end(group)
    })
}

/// Some lanes of a tile as ranges: each by itself where they are few, and one of all otherwise.
fn runs(some: &[usize], lanes: usize) -> SmallVec<[Range<usize>; 16]> {
    match some {
        [] => SmallVec::new(),
        [first, .., last] if some.len() * FEW_OF > lanes => smallvec![*first..last + 1],
        _ => some.iter().map(|lane| *lane..lane + 1).collect(),
    }
}

/// The lanes of the states that values of a tile go to, row after row.
fn lanes_of(pairs: &Frame<'_, '_>, spread: usize) -> Range<usize> {
    let lanes = if pairs.across { spread } else { pairs.lanes };
    pairs.i * lanes..(pairs.i + 1) * lanes
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn vectors_are_taken_in_pairs() {
        for (all, most, expected) in [
            (16, 4, &[4, 4, 4, 4][..]),
            (11, 4, &[4, 4, 3]),
            (10, 4, &[2, 4, 4]),
            (9, 4, &[2, 4, 3]),
            (5, 4, &[2, 3]),
            (3, 2, &[2, 1]),
            (3, 1, &[1, 1, 1]),
        ] {
            assert_eq!(groups(all, most).collect::<Vec<_>>(), expected, "{all} by {most}");
        }
        for all in 1..100 {
            for most in 1..=4 {
                assert_eq!(groups(all, most).sum::<usize>(), all);
                assert!(groups(all, most).all(|vectors| (1..=most).contains(&vectors)));
            }
        }
    }
}
