//! What a search keeps of every row of i: candidates for the K smallest, and the K smallest upper
//! bounds, which say what can still be one.
//!
//! A value comes with the bound of its error, so the K-th smallest of the upper ends of some points
//! is a limit that no K smallest exceeds. Of few, `filter` keeps the upper ends, for the lanes of a
//! panel at once; of many, the limit comes from the candidates whenever there is no room for more. What
//! has its lower end above the limit is thrown out when room is short. May assume values in the order
//! of j. Called by `nearest`.

use tilework_backend::{try_filled, try_room};
use tilework_error::Result;

use super::aligned::Aligned;
use super::filter::{Found, Smallest};
use super::products::Number;
use super::select::{kth, retain, shorten};

/// Values kept at most whose upper bounds are cheaper to be kept sorted.
const SORTED: usize = 128;

/// What is kept of every row: the K smallest upper bounds, and candidates.
pub(super) struct Kept<T> {
    k: usize,
    /// Rows of a panel.
    lanes: usize,
    /// Candidates that a row has room for.
    room: usize,
    /// Upper bounds that are kept of a row: the K smallest, or only a limit that the K-th is below.
    height: usize,
    /// The upper bounds of the rows of each panel: so many times a number for each lane, ascending. Lanes
    /// that fill a panel have none, so that nothing is below.
    upper: Aligned<T>,
    /// Lower bounds and places, in the order of places, and how many.
    candidates: Vec<(T, u32)>,
    count: Vec<u32>,
    /// The bound of the error in this block, by row.
    bound: Aligned<T>,
    /// The largest of these so far, by row.
    widest: Vec<T>,
    spare: Vec<T>,
}

impl<T: Number> Kept<T> {
    pub(super) fn new(k: usize, rows: usize, lanes: usize) -> Result<Kept<T>> {
        // Enough that what is thrown out at a time pays for looking.
        let (height, room) = if k <= SORTED { (k, 4 * k + 28) } else { (1, 2 * k + 28) };
        let panels = rows.div_ceil(lanes);
        let mut upper = Aligned::filled("search", T::of(f64::INFINITY), panels * lanes * height)?;
        let last = upper.chunks_exact_mut(lanes).skip(height * panels.saturating_sub(1));
        last.for_each(|row| row[rows - (panels - 1) * lanes..].fill(T::of(f64::NEG_INFINITY)));
        Ok(Kept {
            k,
            lanes,
            room,
            height,
            upper,
            candidates: try_filled("search", (T::ZERO, 0), rows * room)?,
            count: try_filled("search", 0, rows)?,
            bound: Aligned::filled("search", T::ZERO, panels * lanes)?,
            widest: try_filled("search", T::ZERO, rows)?,
            spare: try_room("search", if k <= SORTED { 0 } else { room })?,
        })
    }

    /// Whether upper bounds are kept sorted, by the filter.
    pub(super) fn is_sorted(&self) -> bool {
        self.k <= SORTED
    }

    /// Candidates that a row may have.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// A block begins, with its own bounds.
    pub(super) fn begin_block(&mut self, bound: impl Fn(usize) -> T) {
        self.bound.iter_mut().enumerate().for_each(|(row, held)| *held = bound(row));
        for (widest, bound) in self.widest.iter_mut().zip(&*self.bound) {
            *widest = if *bound > *widest { *bound } else { *widest };
        }
    }

    /// What the filter knows of a panel.
    pub(super) fn smallest(&mut self, panel: usize) -> Smallest<'_, T> {
        let size = self.height * self.lanes;
        Smallest {
            upper: &mut self.upper[panel * size..][..size],
            bound: &self.bound[panel * self.lanes..][..self.lanes],
        }
    }

    /// Where the limit of a row is: the K-th smallest upper bound, or something above it.
    fn worst(&self, row: usize) -> usize {
        let (panel, lane) = (row / self.lanes, row % self.lanes);
        (panel * self.height + self.height - 1) * self.lanes + lane
    }

    /// Takes what the filter found in a panel; `place` is that of the tile's first row. False if
    /// there are too many candidates.
    pub(super) fn take(&mut self, found: &Found<T>, panel: usize, place: u32) -> bool {
        for ((mut lanes, values), place) in found.rows().zip(place..) {
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                let worst = ((panel + 1) * self.height - 1) * self.lanes + lane;
                if !self.push(panel * self.lanes + lane, worst, values[lane], place) {
                    return false;
                }
            }
        }
        true
    }

    #[inline]
    fn push(&mut self, row: usize, worst: usize, value: T, place: u32) -> bool {
        let low = value - self.bound[row];
        // Where the limit comes from candidates, K points before this one are as near.
        let is_far = |kept: &Kept<T>| !kept.is_sorted() && low >= kept.upper[worst];
        if is_far(self) {
            return true;
        }
        let mut count = self.count[row] as usize;
        if count == self.room {
            count = self.shorten(row);
            if 4 * count > 3 * self.room {
                return false;
            }
            if is_far(self) {
                return true;
            }
        }
        self.candidates[row * self.room + count] = (low, place);
        self.count[row] = count as u32 + 1;
        true
    }

    /// Throws out the candidates of a row that are none any more; how many are left.
    fn shorten(&mut self, row: usize) -> usize {
        let (worst, count) = (self.worst(row), self.count[row] as usize);
        let list = &mut self.candidates[row * self.room..][..count];
        let (bound, upper, all) = (self.widest[row], &mut self.upper[worst], usize::MAX);
        let count = match () {
            () if self.k <= SORTED => retain::<T, true>(list, *upper, all),
            () if count < self.k => count,
            // These are the distances, of which the first ones of the same win.
            () if bound == T::ZERO => {
                *upper = shorten::<T, true>(list, self.k, &mut self.spare);
                self.k
            }
            () => {
                let low = kth::<T, true>(list, self.k, &mut self.spare);
                *upper = low + (bound + bound);
                retain::<T, true>(list, *upper, all)
            }
        };
        self.count[row] = count as u32;
        count
    }

    /// The places of a row's candidates.
    pub(super) fn candidates(&mut self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let count = self.shorten(row);
        self.candidates[row * self.room..][..count].iter().map(|(_, place)| *place)
    }
}
