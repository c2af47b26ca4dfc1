//! Sorts many short lines at a time, each in a column of its own.
//!
//! A network compares whole rows of columns, element by element, in the same order whatever they
//! hold: nothing is looked up or mispredicted for a line of a few elements. Columns hold integers in
//! the order of sorting, of elements or of elements and their indices. Called by the drivers in `sort/mod.rs`.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::Row;
use super::key::{Bits, Key, Reversible};
use crate::isa::{Isa, Work, with_isa};

/// The most elements of a line that is sorted in a column: from about there on a line fills the
/// registers that sort it by itself.
const SHORT: usize = 32;

/// Columns that are sorted at a time, and the least lines that are worth it.
pub(super) const COLUMNS: usize = 32;
const LEAST: usize = 8;

/// The comparisons that sort lines of one length: pairs of places, the lesser element to the first.
pub(super) struct Network(Vec<(u8, u8)>);

impl Network {
    /// That of `lines` lines of `len` elements, if columns are the way to sort them.
    pub(super) fn of_lines(lines: usize, len: usize) -> Option<Network> {
        (lines >= LEAST && (2..=SHORT).contains(&len)).then(|| Network::new(len))
    }

    /// That of `len` elements, up to [`SHORT`]: Batcher's odd-even merges of runs that double.
    fn new(len: usize) -> Network {
        let mut pairs = Vec::new();
        let mut run = 1;
        while run < len {
            let mut distance = run;
            while distance > 0 {
                let firsts = (0..len - distance).filter(|low| {
                    let starts = distance % run;
                    *low >= starts
                        && (low - starts) / distance % 2 == 0
                        && low / (2 * run) == (low + distance) / (2 * run)
                });
                pairs.extend(firsts.map(|low| (low as u8, (low + distance) as u8)));
                distance /= 2;
            }
            run *= 2;
        }
        Network(pairs)
    }

    /// Sorts all columns, of which each row has [`COLUMNS`].
    #[inline(always)]
    fn sort<E: Bits>(&self, rows: &mut [[E; COLUMNS]]) {
        for &(low, high) in &self.0 {
            let [low, high] = [usize::from(low), usize::from(high)];
            let (a, b) = (rows[low], rows[high]);
            for (to, (a, b)) in rows[low].iter_mut().zip(a.iter().zip(&b)) {
                *to = *a.min(b);
            }
            for (to, (a, b)) in rows[high].iter_mut().zip(a.iter().zip(&b)) {
                *to = *a.max(b);
            }
        }
    }
}

/// Lines of elements, up to [`COLUMNS`], at a constant distance from each other.
#[derive(Clone, Copy)]
pub(super) struct Lines<R> {
    first: Row<R>,
    apart: isize,
    count: usize,
}

impl<R: Copy> Lines<R> {
    /// The first line, how far it is from one to the next, and how many there are.
    ///
    /// # Safety
    /// As for [`Row::new`], of all lines.
    pub(super) unsafe fn new(first: Row<R>, apart: isize, count: usize) -> Lines<R> {
        Lines { first, apart, count }
    }

    /// One of the lines.
    #[inline(always)]
    pub(super) fn line(self, number: usize) -> Row<R> {
        assert!(number < self.count);
        let start = self.first.start.0.wrapping_offset(number.cast_signed() * self.apart);
        // SAFETY: the promise of `new`.
        unsafe { Row::new(start, self.first.step, self.first.len) }
    }

    /// Whether elements at one place of all columns lie side by side.
    fn are_neighbours(self) -> bool {
        self.apart == 1 && self.count == COLUMNS
    }

    /// Writes the elements of all lines to columns; those of the last line to what is left of them.
    #[inline(always)]
    fn to_columns(self, rows: &mut [[R; COLUMNS]]) {
        if self.are_neighbours() {
            for (i, row) in rows.iter_mut().enumerate() {
                // SAFETY: the promise of `new`, of neighbours in as many lines.
                *row = unsafe { *self.first.at(i).cast() };
            }
            return;
        }
        for column in 0..COLUMNS {
            let line = self.line(column.min(self.count - 1));
            for (i, row) in rows.iter_mut().enumerate() {
                row[column] = line.get(i);
            }
        }
    }

    /// Writes columns to the lines.
    #[inline(always)]
    fn set_columns(self, rows: &[[R; COLUMNS]]) {
        if self.are_neighbours() {
            for (i, row) in rows.iter().enumerate() {
                // SAFETY: the promise of `new`, of neighbours in as many lines.
                unsafe { *self.first.at(i).cast() = *row };
            }
            return;
        }
        for column in 0..self.count {
            let line = self.line(column);
            for (i, row) in rows.iter().enumerate() {
                line.put(i, row[column]);
            }
        }
    }
}

/// Bytes that sorting columns of `len` elements takes: neither these nor integers are wider than 64
/// bits.
pub(super) const fn room(len: usize) -> usize {
    2 * len * COLUMNS * size_of::<u64>()
}

/// Cuts the room in two: for integers, and for what lines have.
fn halves<E: Pod, R: Pod>(
    work: &mut [u8],
    len: usize,
) -> (&mut [[E; COLUMNS]], &mut [[R; COLUMNS]]) {
    let (keys, rows) = work.split_at_mut(len * COLUMNS * size_of::<E>());
    let (keys, rows) = (cast_slice_mut::<u8, E>(keys), cast_slice_mut::<u8, R>(rows));
    (keys.as_chunks_mut().0, &mut rows.as_chunks_mut().0[..len])
}

/// Sorts lines; false, and nothing is written, if they are too few, or if equal integers are not equal
/// bits in some of them.
pub(super) fn sort<T: Reversible>(
    network: &Network,
    from: Lines<T::Raw>,
    to: Lines<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
) -> bool {
    let mut sorted = false;
    if from.count < LEAST {
        return false;
    }
    with_isa(Isa::current(), Sorting::<T> { network, from, to, flip, work, sorted: &mut sorted });
    sorted
}

struct Sorting<'a, T: Reversible> {
    network: &'a Network,
    from: Lines<T::Raw>,
    to: Lines<T::Raw>,
    flip: T::Bits,
    work: &'a mut [u8],
    sorted: &'a mut bool,
}

impl<T: Reversible> Work for Sorting<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Sorting { network, from, to, flip, work, sorted } = self;
        let (keys, rows) = halves::<<T::Bits as Bits>::Lane, T::Raw>(work, from.first.len);
        from.to_columns(rows);
        let odd = rows.as_flattened().iter().fold(false, |seen, &raw| seen | T::is_odd(raw));
        if odd {
            return;
        }
        for (key, &raw) in keys.as_flattened_mut().iter_mut().zip(rows.as_flattened()) {
            *key = T::spread_key(raw, flip).widened();
        }
        network.sort(keys);
        for (raw, &key) in rows.as_flattened_mut().iter_mut().zip(keys.as_flattened()) {
            *raw = T::restore(T::Bits::narrowed(key), flip);
        }
        to.set_columns(rows);
        *sorted = true;
    }
}

/// Sorts the indices of lines; false, and nothing is written, if they are too few, or a key leaves no
/// room for an index.
pub(super) fn argsort<T: Key>(
    network: &Network,
    from: Lines<T::Raw>,
    to: Lines<i64>,
    flip: T::Bits,
    work: &mut [u8],
) -> bool {
    let can = from.count >= LEAST && T::Bits::BITS <= 32;
    if can {
        with_isa(Isa::current(), Arranging::<T> { network, from, to, flip, work });
    }
    can
}

struct Arranging<'a, T: Key> {
    network: &'a Network,
    from: Lines<T::Raw>,
    to: Lines<i64>,
    flip: T::Bits,
    work: &'a mut [u8],
}

impl<T: Key> Work for Arranging<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Arranging { network, from, to, flip, work } = self;
        let (pairs, rows) = halves::<u64, T::Raw>(work, from.first.len);
        from.to_columns(rows);
        for (i, (pairs, row)) in (0..).zip(pairs.iter_mut().zip(&*rows)) {
            for (pair, &raw) in pairs.iter_mut().zip(row) {
                *pair = (T::key(raw, flip).to_u128() as u64) << 32 | i;
            }
        }
        network.sort(pairs);
        for pair in pairs.as_flattened_mut() {
            *pair &= u64::from(u32::MAX);
        }
        to.set_columns(cast_slice::<u64, i64>(pairs.as_flattened()).as_chunks().0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_sort_whatever_they_are_given() {
        // A network that sorts all zeros and ones sorts everything.
        for len in 0..=16usize {
            let network = Network::new(len);
            for first in (0..1u32 << len).step_by(COLUMNS) {
                let set = |column: usize| first + column as u32;
                let mut rows: Vec<[u32; COLUMNS]> =
                    (0..len).map(|i| std::array::from_fn(|j| set(j) >> i & 1)).collect();
                network.sort(&mut rows);
                for column in 0..COLUMNS {
                    let zeros = len - (set(column) & ((1 << len) - 1)).count_ones() as usize;
                    let want = (0..len).map(|i| u32::from(i >= zeros));
                    assert!(rows.iter().map(|row| row[column]).eq(want), "{len}");
                }
            }
        }
    }
}
