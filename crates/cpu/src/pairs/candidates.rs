//! What a search keeps of every row of i: candidates for the K smallest, and the limit below which a
//! value is one.
//!
//! A value comes with the bound of its error, so the K-th smallest of the upper ends is a limit that
//! no K smallest exceeds; what has its lower end above it is thrown out when room is short. May
//! assume values in the order of j. Called by `nearest`.

use super::products::{Found, Number};

/// What is kept of every row: the K smallest upper bounds, and candidates.
pub(super) struct Kept<T> {
    k: usize,
    /// Candidates that a row has room for.
    room: usize,
    /// The K smallest upper bounds of each row, ascending.
    upper: Vec<T>,
    /// Lower bounds and places, in the order of places, and how many.
    candidates: Vec<(T, u32)>,
    count: Vec<u32>,
    /// The bound of the error in this block, by row.
    bound: Vec<T>,
    /// What a value must be below to be a candidate, by row; rows that fill a panel have none.
    pub(super) limit: Vec<T>,
}

impl<T: Number> Kept<T> {
    pub(super) fn new(k: usize, rows: usize, lanes: usize) -> Kept<T> {
        // Enough that what is thrown out at a time pays for looking.
        let room = 4 * k + 28;
        Kept {
            k,
            room,
            upper: vec![T::of(f64::INFINITY); rows * k],
            candidates: vec![(T::ZERO, 0); rows * room],
            count: vec![0; rows],
            bound: vec![T::ZERO; rows],
            limit: vec![T::of(f64::NEG_INFINITY); lanes],
        }
    }

    /// A block begins, with its own bounds.
    pub(super) fn begin_block(&mut self, bound: impl Fn(usize) -> T) {
        let worst = self.upper.iter().skip(self.k - 1).step_by(self.k);
        let rows = self.bound.iter_mut().zip(&mut self.limit).zip(worst);
        for (row, ((held, limit), worst)) in rows.enumerate() {
            *held = bound(row);
            *limit = *worst + *held;
        }
    }

    /// Takes what the filter found in lanes from row `first` on; `place` is that of the tile's
    /// first row. False if there are too many candidates.
    pub(super) fn take(&mut self, found: &Found<T>, first: usize, place: u32) -> bool {
        for (r, lanes) in found.lanes.iter().enumerate() {
            let mut lanes = *lanes;
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                let (row, value) = (first + lane, found.value(r, lane));
                if value < self.limit[row] && !self.push(row, value, place + r as u32) {
                    return false;
                }
            }
        }
        true
    }

    fn push(&mut self, row: usize, value: T, place: u32) -> bool {
        let (k, bound) = (self.k, self.bound[row]);
        let upper = &mut self.upper[row * k..][..k];
        let candidates = &mut self.candidates[row * self.room..][..self.room];
        let mut count = self.count[row] as usize;
        if count == self.room {
            let worst = upper[k - 1];
            count = 0;
            for c in 0..candidates.len() {
                candidates[count] = candidates[c];
                count += usize::from(candidates[c].0 <= worst);
            }
            if 4 * count > 3 * self.room {
                return false;
            }
        }
        candidates[count] = (value - bound, place);
        self.count[row] = count as u32 + 1;
        let high = value + bound;
        if high < upper[k - 1] {
            let mut rank = k - 1;
            while rank > 0 && upper[rank - 1] > high {
                upper[rank] = upper[rank - 1];
                rank -= 1;
            }
            upper[rank] = high;
            self.limit[row] = upper[k - 1] + bound;
        }
        true
    }

    /// The places of a row's candidates, in order.
    pub(super) fn candidates(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let worst = self.upper[row * self.k + self.k - 1];
        let held = &self.candidates[row * self.room..][..self.count[row] as usize];
        held.iter().filter(move |(low, _)| *low <= worst).map(|(_, place)| *place)
    }
}
