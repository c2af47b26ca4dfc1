//! The several best values of every lane and component, with their places.
//!
//! A few are kept sorted, so that what comes is held against the K-th best of all before it. Many
//! are a list with room for as many more, which is cut down to K when it is full and sorted in the
//! end. Places come in order, so whoever is equal was before; a NaN never enters.

use tilework_backend::{Accumulator, try_filled, try_room};
use tilework_error::Result;

use crate::pairs::select::{better, shorten, sort};

/// Values kept at most that are cheaper to be kept sorted.
const SORTED: usize = 24;

/// Columns of values, one for each component and lane.
pub(super) struct Several<T> {
    k: usize,
    /// Values that a column has room for.
    room: usize,
    columns: Vec<(T, u32)>,
    count: Vec<u32>,
    spare: Vec<T>,
}

impl<T: Accumulator> Several<T> {
    /// So many columns, each of which is given `most` values at most.
    pub(super) fn new(
        operation: &'static str,
        k: usize,
        columns: usize,
        most: usize,
    ) -> Result<Several<T>> {
        let room = if k <= SORTED { k } else { most.min(k.saturating_mul(2)) };
        let spare = if k <= SORTED || columns == 0 { 0 } else { room };
        Ok(Several {
            k,
            room,
            columns: try_filled(operation, (T::ZERO, 0), columns.saturating_mul(room))?,
            count: try_filled(operation, 0, columns)?,
            spare: try_room(operation, spare)?,
        })
    }

    /// Whether columns are sorted at all times.
    pub(super) fn is_sorted(&self) -> bool {
        self.k <= SORTED
    }

    /// A value of a column. `limit` is what it must be better than where K are known, and changes as
    /// they do.
    #[inline]
    pub(super) fn take<const LESS: bool>(
        &mut self,
        column: usize,
        value: T,
        place: u32,
        limit: &mut T,
    ) {
        let mut count = self.count[column] as usize;
        if value.is_nan() || (count >= self.k && !better::<T, LESS>(value, *limit)) {
            return;
        }
        let held = &mut self.columns[column * self.room..][..self.room];
        if self.k <= SORTED {
            let mut rank = count.min(self.k - 1);
            while rank > 0 && better::<T, LESS>(value, held[rank - 1].0) {
                held[rank] = held[rank - 1];
                rank -= 1;
            }
            held[rank] = (value, place);
            count = self.k.min(count + 1);
            if count == self.k {
                *limit = held[count - 1].0;
            }
        } else {
            if count == held.len() {
                *limit = shorten::<T, LESS>(held, self.k, &mut self.spare);
                count = self.k;
            }
            if count < self.k || better::<T, LESS>(value, *limit) {
                held[count] = (value, place);
                count += 1;
            }
        }
        self.count[column] = count as u32;
    }

    /// The values of a column, K at most, best first.
    pub(super) fn best<const LESS: bool>(&mut self, column: usize) -> &[(T, u32)] {
        let mut count = self.count[column] as usize;
        let held = &mut self.columns[column * self.room..][..count];
        if self.k > SORTED {
            if count > self.k {
                shorten::<T, LESS>(held, self.k, &mut self.spare);
                count = self.k;
            }
            sort::<T, LESS>(&mut held[..count]);
        }
        &held[..count]
    }
}
