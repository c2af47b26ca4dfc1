//! The end of a search: what is left of every row is computed by the direct form and sorted.
//!
//! The direct form is the sum over components, ascending, of fused squares of differences. May assume
//! candidates that are all that can be among the K smallest. Called by `nearest`.

use tilework_backend::{Accumulator, try_room};
use tilework_error::Result;

use super::candidates::Kept;
use super::lanes::Summed;
use super::nearest::{Piece, Search};
use super::products::Number;
use super::rows::Part;
use super::select::sort;
use crate::isa::Work;

/// The candidates of a row: what they are worth, room for as many, where they are, and both.
pub(super) struct Shortlist<T> {
    values: Vec<T>,
    room: Vec<T>,
    places: Vec<u32>,
    sorted: Vec<(T, u32)>,
}

impl<T> Shortlist<T> {
    pub(super) fn new(most: usize) -> Result<Shortlist<T>> {
        let name = "search";
        let (values, room) = (try_room(name, most)?, try_room(name, most)?);
        Ok(Shortlist { values, room, places: try_room(name, most)?, sorted: try_room(name, most)? })
    }
}

/// The K best of the candidates of some rows by the direct form.
pub(super) struct Finish<'a, T, A> {
    pub(super) search: &'a Search<T>,
    pub(super) piece: &'a Piece<'a, T>,
    pub(super) kept: &'a mut Kept<T>,
    pub(super) list: &'a mut Shortlist<T>,
    /// The first of the rows.
    pub(super) first: usize,
    pub(super) to: Part<'a, A>,
}

impl<T: Number + Summed<A>, A: Accumulator> Work for Finish<'_, T, A> {
    #[inline(always)]
    fn run(self) {
        let Finish { search, piece, kept, list, first, to } = self;
        let Shortlist { values, room, places, sorted } = list;
        let k = search.k;
        let start = piece.request.start + piece.js.start as i64;
        let rows = to.values.chunks_exact_mut(k).zip(to.indices.chunks_exact_mut(k));
        for (row, (to_values, to_indices)) in (first..).zip(rows) {
            values.clear();
            places.clear();
            sorted.clear();
            for place in kept.candidates(row) {
                let (i, j) = (piece.rows.start + row, piece.js.start + place as usize);
                let mut sum = T::ZERO;
                for c in 0..search.components {
                    // SAFETY: points of the piece, which the caller of `Search::piece` vouches for.
                    let difference = unsafe { piece.x.at(i, c) - piece.y.at(j, c) };
                    sum = difference.mul_add(difference, sum);
                }
                values.push(sum);
                places.push(place);
            }
            search.then.iter().for_each(|then| then.apply(values, room));
            sorted.extend(values.iter().copied().zip(places.iter().copied()));
            // A distance has one sign, so magnitudes ascend.
            match values.iter().any(|value| *value < T::ZERO) {
                true => sort::<T, false>(sorted),
                false => sort::<T, true>(sorted),
            }
            let to = to_values.iter_mut().zip(to_indices);
            for ((to, to_index), (value, place)) in to.zip(&*sorted) {
                (*to, *to_index) = (value.to_sum(), start + i64::from(*place));
            }
        }
    }
}
