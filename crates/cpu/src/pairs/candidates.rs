//! What a search keeps of every row of i: candidates for the K smallest, and the K smallest upper
//! bounds, which say what can still be one.
//!
//! A value comes with the bound of its error, so the K-th smallest of the upper ends of some points
//! is a limit that no K smallest exceeds; `filter` keeps these, for the lanes of a
//! panel at once. What has its lower end above the limit is thrown out when room is short. May
//! assume values in the order of j. Called by `nearest`.

use tilework_backend::try_filled;
use tilework_error::Result;

use super::aligned::Aligned;
use super::filter::{Found, Smallest};
use super::products::Number;

/// What is kept of every row: the K smallest upper bounds, and candidates.
pub(super) struct Kept<T> {
    k: usize,
    /// Rows of a panel.
    lanes: usize,
    /// Candidates that a row has room for.
    room: usize,
    /// The K smallest upper bounds of the rows of each panel: K times a number for each lane,
    /// ascending. Lanes that fill a panel have none, so that nothing is below.
    upper: Aligned<T>,
    /// Lower bounds and places, in the order of places, and how many.
    candidates: Vec<(T, u32)>,
    count: Vec<u32>,
    /// The bound of the error in this block, by row.
    bound: Aligned<T>,
}

impl<T: Number> Kept<T> {
    pub(super) fn new(k: usize, rows: usize, lanes: usize) -> Result<Kept<T>> {
        // Enough that what is thrown out at a time pays for looking.
        let (room, panels) = (4 * k + 28, rows.div_ceil(lanes));
        let mut upper = Aligned::filled("search", T::of(f64::INFINITY), panels * lanes * k)?;
        let last = upper.chunks_exact_mut(lanes).skip(k * panels.saturating_sub(1));
        last.for_each(|row| row[rows - (panels - 1) * lanes..].fill(T::of(f64::NEG_INFINITY)));
        Ok(Kept {
            k,
            lanes,
            room,
            upper,
            candidates: try_filled("search", (T::ZERO, 0), rows * room)?,
            count: try_filled("search", 0, rows)?,
            bound: Aligned::filled("search", T::ZERO, panels * lanes)?,
        })
    }

    /// Candidates that a row may have.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// A block begins, with its own bounds.
    pub(super) fn begin_block(&mut self, bound: impl Fn(usize) -> T) {
        self.bound.iter_mut().enumerate().for_each(|(row, held)| *held = bound(row));
    }

    /// What the filter knows of a panel.
    pub(super) fn smallest(&mut self, panel: usize) -> Smallest<'_, T> {
        let size = self.k * self.lanes;
        Smallest {
            upper: &mut self.upper[panel * size..][..size],
            bound: &self.bound[panel * self.lanes..][..self.lanes],
        }
    }

    /// The K-th smallest upper bound of a lane of a panel.
    fn worst(&self, panel: usize, lane: usize) -> T {
        self.upper[(panel * self.k + self.k - 1) * self.lanes + lane]
    }

    /// Takes what the filter found in a panel; `place` is that of the tile's first row. False if
    /// there are too many candidates.
    pub(super) fn take(&mut self, found: &Found<T>, panel: usize, place: u32) -> bool {
        for ((mut lanes, values), place) in found.rows().zip(place..) {
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                let (row, worst) = (panel * self.lanes + lane, self.worst(panel, lane));
                if !self.push(row, worst, values[lane], place) {
                    return false;
                }
            }
        }
        true
    }

    fn push(&mut self, row: usize, worst: T, value: T, place: u32) -> bool {
        let mut count = self.count[row] as usize;
        if count == self.room {
            let candidates = &mut self.candidates[row * self.room..][..self.room];
            count = 0;
            for c in 0..candidates.len() {
                candidates[count] = candidates[c];
                count += usize::from(candidates[c].0 <= worst);
            }
            if 4 * count > 3 * self.room {
                return false;
            }
        }
        self.candidates[row * self.room + count] = (value - self.bound[row], place);
        self.count[row] = count as u32 + 1;
        true
    }

    /// The places of a row's candidates, in order.
    pub(super) fn candidates(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let worst = self.worst(row / self.lanes, row % self.lanes);
        let held = &self.candidates[row * self.room..][..self.count[row] as usize];
        held.iter().filter(move |(low, _)| *low <= worst).map(|(_, place)| *place)
    }
}
