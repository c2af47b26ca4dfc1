//! Sorts the indices of a line by a byte that each element has, stably, by counting.
//!
//! Pieces of the line are counted apart, and then put their indices where those of all pieces belong.
//! Called by `few.rs`, whose bytes are the numbers of few values, and by `indices.rs`.

use std::ops::Range;

use super::{Block, Row};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// The least elements that are worth it.
pub(super) const LEAST: usize = 1 << 10;

/// The most elements of a piece.
const PIECE: usize = 1 << 13;

/// Pieces that are gone through in turn: the next place of a byte waits for the one before it.
const STREAMS: usize = 4;

/// Pieces of a line, all of about the same length.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    len: usize,
    groups: usize,
}

impl Pieces {
    /// Those of so many elements.
    pub(super) fn of(len: usize) -> Pieces {
        Pieces { len, groups: len.div_ceil(STREAMS * PIECE) }
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.groups * STREAMS
    }

    /// The elements of one.
    pub(super) fn range(self, number: usize) -> Range<usize> {
        let start = |number: usize| self.len / self.count() * number + number.min(self.longer());
        start(number)..start(number + 1)
    }

    /// How many have one element more than the others.
    fn longer(self) -> usize {
        self.len % self.count()
    }

    /// Calls `f` with the number of a group, on any thread.
    fn each_group(self, f: &(dyn Fn(usize) + Sync)) {
        pool::run(self.groups, f);
    }

    /// Calls `f` with the number of a piece in its group and each of its elements, in order; those of
    /// different pieces of the group in turn.
    #[inline(always)]
    fn each_in_turn(self, group: usize, mut f: impl FnMut(usize, usize)) {
        let ranges: [_; STREAMS] = std::array::from_fn(|s| self.range(group * STREAMS + s));
        let common = self.len / self.count();
        for i in 0..common {
            for (s, range) in ranges.iter().enumerate() {
                f(s, range.start + i);
            }
        }
        for (s, range) in ranges.into_iter().enumerate() {
            (range.start + common..range.end).for_each(|i| f(s, i));
        }
    }
}

/// Writes the indices of the elements in the order of their bytes, of which each piece has `counts`.
pub(super) fn place<const VALUES: usize>(
    pieces: Pieces,
    bytes: &[u8],
    counts: &mut [[usize; VALUES]],
    out: Row<i64>,
) {
    const { assert!(VALUES.is_power_of_two()) };
    assert!(bytes.len() == pieces.len && counts.len() == pieces.count());
    // Where each piece puts the indices of each byte: after all lower ones, and those of earlier
    // pieces.
    let mut next = 0;
    for value in 0..VALUES {
        for counts in &mut *counts {
            next += std::mem::replace(&mut counts[value], next);
        }
    }
    let places = Block(counts.as_mut_ptr());
    pieces.each_group(&|group| {
        // SAFETY: each group has places of its own.
        let places = unsafe { std::slice::from_raw_parts_mut(places.at(group * STREAMS), STREAMS) };
        pieces.each_in_turn(group, |stream, i| {
            // Bytes are below the number of values, so that the mask changes nothing but the check.
            let place = &mut places[stream][usize::from(bytes[i]) % VALUES];
            out.put(*place, i as i64);
            *place += 1;
        });
    });
}

/// Writes the indices of the elements, in the order of the bytes that `byte` gives, to `out`. There is
/// a byte to work in for each element.
pub(super) fn argsort<R: Copy + Send>(
    line: Row<R>,
    byte: impl Fn(R) -> u8 + Copy + Sync,
    work: &mut [u8],
    out: Row<i64>,
) {
    const VALUES: usize = 1 << 8;
    let (pieces, bytes) = (Pieces::of(line.len()), &mut work[..line.len()]);
    let mut counts = vec![[0; VALUES]; pieces.count()];
    let (shared, counted) = (Block(bytes.as_mut_ptr()), Block(counts.as_mut_ptr()));
    pieces.each_group(&|group| {
        let first = group * STREAMS;
        let range = pieces.range(first).start..pieces.range(first + STREAMS - 1).end;
        // SAFETY: groups lie apart, and each has counts of its own.
        let (bytes, counts) = unsafe {
            let at = shared.at(range.start);
            let bytes = std::slice::from_raw_parts_mut(at, range.len());
            (bytes, std::slice::from_raw_parts_mut(counted.at(first), STREAMS))
        };
        let start = range.start;
        with_isa(Isa::current(), ToBytes { line, range, byte, bytes });
        pieces.each_in_turn(group, |stream, i| {
            counts[stream][usize::from(bytes[i - start])] += 1;
        });
    });
    place(pieces, bytes, &mut counts, out);
}

/// Makes bytes of elements.
struct ToBytes<'a, R, F> {
    line: Row<R>,
    range: Range<usize>,
    byte: F,
    bytes: &'a mut [u8],
}

impl<R: Copy, F: Fn(R) -> u8> Work for ToBytes<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let ToBytes { line, range, byte, bytes } = self;
        line.each_of(range.into(), bytes, |_, raw| byte(raw));
    }
}
