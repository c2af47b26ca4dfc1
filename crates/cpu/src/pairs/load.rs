//! Inputs on their way into the regions of a piece: loaded from arrays, or made by a form.
//!
//! May assume regions with room for whole tiles and blocks. Called by `piece`.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_tape::Per;

use super::lanes::Summed;
use super::plan::{GIVEN, Place};
use super::products::Number;
use super::tile::Frame;
use super::{Given, Job, Side, position};
use crate::map::moves;

impl<T: Number + Summed<A>, A: Number> Job<'_, T, A> {
    /// Loads the inputs of a section from an index on.
    pub(super) fn load(&self, frame: &Frame<'_, '_>, batch: &[usize], section: Per, first: usize) {
        for (slot, (source, input)) in
            self.operands.sources.iter().zip(self.operands.tape.inputs()).enumerate()
        {
            // Vectors of j that products of matrices read are read where they are.
            let elsewhere = self
                .columns()
                .is_some_and(|columns| columns.alone && usize::from(columns.vector) == slot);
            if input.per != section || elsewhere || source.base.is_null() {
                continue;
            }
            let place = self.plan.places[slot];
            let to = frame.regions[section as usize].wrapping_add(place.offset);
            let strides = &source.layout.strides()[batch.len()..];
            let (step, component) = match section {
                Per::Once => (0, strides[0]),
                _ => (strides[0], strides[1]),
            };
            let at = position(&source.layout, batch) + first as isize * step;
            let from = source.base.wrapping_offset(at * place.size as isize);
            let shape = (place.len, frame.lanes);
            let steps = ((place.stride / place.size) as isize, 1);
            // SAFETY: indices of the layout, which lie inside of the block (the invariant of
            // views), whose guard the session holds; a place has room for all components and lanes.
            unsafe { moves::block(place.size, shape, (to, steps), (from, (component, step))) };
        }
        self.make(frame, section, first);
    }

    /// Has the inputs of a section that are made written, from an index on.
    fn make(&self, frame: &Frame<'_, '_>, per: Per, first: usize) {
        let Some((_, load)) = self.operands.made else { return };
        let inputs = self.operands.tape.inputs().iter().zip(&self.operands.sources);
        let made = inputs.zip(&self.plan.places).filter_map(|((input, source), place)| {
            (input.per == per && source.base.is_null()).then_some(place)
        });
        let made: SmallVec<[_; 2]> = made.collect();
        if let [points, numbers] = made[..] {
            let at = |place: &Place| frame.regions[per as usize].wrapping_add(place.offset);
            let (rows, pitch) = (first..first + frame.lanes, points.stride / points.size);
            load(&Side { per, rows, points: at(points), pitch, numbers: at(numbers) });
        }
    }

    /// Has the input that is given for every pair of a tile of i and a block of j written.
    pub(super) fn fill(&self, tile: &Frame<'_, '_>, i: &Range<usize>, j: Range<usize>) {
        let Some((fill, _)) = self.operands.made else { return };
        let inputs = self.operands.tape.inputs().len();
        for place in self.plan.places[..inputs].iter().filter(|place| place.region == GIVEN) {
            let to = tile.regions[GIVEN].wrapping_add(place.offset);
            fill(&Given { i: i.clone(), j: j.clone(), to });
        }
    }
}
