//! Sorts unsigned integers by the vector quicksort of the simd crate, on all threads.
//!
//! A long array is parted by several pivots at once, so that there are some parts for every thread
//! and none takes long: each piece makes its integers and parts them while they are in the cache,
//! then puts each of its parts where those of all pieces belong. Parts are sorted, and handed on
//! while they are in the cache, by the threads, each by itself. Equal integers cannot be told
//! apart, so it does not matter how the array is cut. Called by `line.rs`.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use tilework_simd::order::Sorter;

use super::Block;
use super::key::Bits;
use crate::pool;

/// The least elements that are parted by several threads.
const SHARED: usize = 1 << 16;

/// Elements that one piece parts: with room as large, a part of L2.
const PIECE: usize = 1 << 15;

/// Parts for each thread, so that an unlucky pivot does not leave one with all the work.
const PARTS: usize = 4;

/// The most parts: those of a piece must not become too short to be moved quickly.
const MOST_PARTS: usize = 256;

/// Elements of a part that takes about a tenth of a second, after which somebody may want to stop.
const LONG: usize = 1 << 22;

/// Elements of the sample for each part: pivots are then a part or so in ten off.
const SAMPLE: usize = 64;

/// What is sorted: makes the integers of some places.
pub(super) type Make<'a, E> = dyn Fn(Range<usize>, &mut [E]) + Sync + 'a;

/// What becomes of it: takes the integers that belong at some places.
pub(super) type Take<'a, E> = dyn Fn(Range<usize>, &[E]) + Sync + 'a;

/// Sorts what `make` makes into `data`, using `other`, which is as long, and hands it to `take`.
///
/// # Safety
/// The CPU has the sorter's instruction set.
pub(super) unsafe fn sort<E: Bits>(
    sorter: Sorter<E>,
    data: &mut [E],
    other: &mut [E],
    make: &Make<'_, E>,
    take: &Take<'_, E>,
) {
    let len = data.len();
    assert_eq!(len, other.len());
    let threads = pool::threads();
    let wanted = if threads > 1 && len >= SHARED { PARTS * threads } else { 1 }.max(len / LONG);
    let parts = wanted.next_power_of_two().min(MOST_PARTS);
    let mut ends: SmallVec<[usize; 16]> = smallvec![len];
    let (mut pivots, mut moved) = (SmallVec::new(), false);
    let mut sample = sample(len, if parts == 1 { 0 } else { parts * SAMPLE }, make);
    // What is in order already is seen by its sample, or at its first elements not to be.
    if parts == 1 || sample.is_sorted() {
        make_all(data, make);
        if data.is_sorted() {
            return pool::for_ranges(len, PIECE, &|range| take(range.clone(), &data[range]));
        }
    }
    if parts > 1 {
        sample.sort_unstable();
        pivots = chosen_pivots(&sample, parts);
        // SAFETY: the caller's promise.
        (ends, moved) = unsafe { part(sorter, data, other, &pivots, make) };
    }
    let (data, other) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    let (here, there) = if moved { (other, data) } else { (data, other) };
    pool::run(ends.len(), &|index| {
        let (start, end) = (if index == 0 { 0 } else { ends[index - 1] }, ends[index]);
        // SAFETY: parts lie apart, inside of both arrays; the level is the caller's promise.
        let sorted = unsafe {
            match only_integer(&pivots, index) {
                Some(only) => {
                    std::slice::from_raw_parts_mut(data.at(start), end - start).fill(only);
                }
                None => (sorter.sort)(here.at(start), there.at(start), moved, end - start),
            }
            std::slice::from_raw_parts(data.at(start), end - start)
        };
        take(start..end, sorted);
    });
}

/// The integer that a part consists of, if it can have but one.
fn only_integer<E: Bits>(pivots: &[E], part: usize) -> Option<E> {
    let low = pivots.get(part.checked_sub(1)?)?;
    (low.next().as_ref() == pivots.get(part)).then_some(*low)
}

/// Makes all integers.
pub(super) fn make_all<E: Bits>(data: &mut [E], make: &Make<'_, E>) {
    let (len, room) = (data.len(), Block(data.as_mut_ptr()));
    pool::for_ranges(len, PIECE, &|range| {
        // SAFETY: the range lies in the slice, and no other piece has it.
        let to = unsafe { std::slice::from_raw_parts_mut(room.at(range.start), range.len()) };
        make(range, to);
    });
}

/// So many of the integers, evenly spread.
fn sample<E: Bits>(len: usize, count: usize, make: &Make<'_, E>) -> Vec<E> {
    let mut sample = vec![E::ZERO; count];
    for (i, integer) in sample.iter_mut().enumerate() {
        let place = len / count * i;
        make(place..place + 1, std::slice::from_mut(integer));
    }
    sample
}

/// Integers that part all of them evenly, ascending: from a sorted sample. One that is more than a whole
/// part gets a part of its own, which needs no sorting.
fn chosen_pivots<E: Bits>(sample: &[E], parts: usize) -> SmallVec<[E; 16]> {
    let at = |part: usize| sample[part * SAMPLE];
    let pivot = |part: usize| match part > 1 && at(part) == at(part - 1) {
        true => at(part).next().unwrap_or(at(part)),
        false => at(part),
    };
    (1..parts).map(pivot).collect()
}

/// Makes all integers and parts them by the pivots, one fewer than a power of two; where the parts
/// end, and whether they are in `other`.
///
/// # Safety
/// The CPU has the sorter's instruction set.
unsafe fn part<E: Bits>(
    sorter: Sorter<E>,
    data: &mut [E],
    other: &mut [E],
    pivots: &[E],
    make: &Make<'_, E>,
) -> (SmallVec<[usize; 16]>, bool) {
    let (len, parts) = (data.len(), pivots.len() + 1);
    let pieces = len.div_ceil(PIECE);
    let piece = |number: usize| number * PIECE..len.min((number + 1) * PIECE);
    let mut counts = vec![0usize; pieces * parts];
    let (data, other) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    let counted = Block(counts.as_mut_ptr());
    pool::run(pieces, &|number| {
        let range = piece(number);
        let (start, count) = (range.start, range.len());
        // SAFETY: the piece lies in both arrays, and it and its counts are this call's alone; the
        // level is the caller's promise.
        unsafe {
            let counts = std::slice::from_raw_parts_mut(counted.at(number * parts), parts);
            make(range, std::slice::from_raw_parts_mut(data.at(start), count));
            part_piece(sorter, data.at(start), other.at(start), count, pivots, counts);
        }
    });

    // Where each piece puts each of its parts: after all lower parts, and the same of earlier pieces.
    let mut next = 0;
    let mut ends = SmallVec::new();
    let mut places = vec![0usize; pieces * parts];
    for part in 0..parts {
        for at in (part..pieces * parts).step_by(parts) {
            places[at] = next;
            next += counts[at];
        }
        ends.push(next);
    }
    // A piece has changed sides once for each halving.
    let parted_in_other = parts.ilog2() % 2 == 1;
    let (from, to) = if parted_in_other { (other, data) } else { (data, other) };
    pool::run(pieces, &|number| {
        let mut start = piece(number).start;
        for at in number * parts..(number + 1) * parts {
            // SAFETY: the places of all pieces and parts lie apart and fill the array; each piece's
            // parts follow each other where it has put them.
            unsafe { to.at(places[at]).copy_from_nonoverlapping(from.at(start), counts[at]) };
            start += counts[at];
        }
    });
    (ends, !parted_in_other)
}

/// Parts integers by pivots, one fewer than a power of two, and counts the parts. They come to lie
/// in `to` if the number of halvings is odd, else in `from`.
///
/// # Safety
/// The CPU has the sorter's instruction set; `from` and `to` may be read and written for `count`
/// integers and do not overlap.
unsafe fn part_piece<E: Bits>(
    sorter: Sorter<E>,
    from: *mut E,
    to: *mut E,
    count: usize,
    pivots: &[E],
    counts: &mut [usize],
) {
    if pivots.is_empty() {
        counts[0] = count;
        return;
    }
    let middle = pivots.len() / 2;
    let (low_counts, high_counts) = counts.split_at_mut(middle + 1);
    // SAFETY: the caller's promise, for both parts of what `part` has parted.
    unsafe {
        let below = (sorter.part)(from, to, count, pivots[middle]);
        part_piece(sorter, to, from, below, &pivots[..middle], low_counts);
        let (to, from) = (to.add(below), from.add(below));
        part_piece(sorter, to, from, count - below, &pivots[middle + 1..], high_counts);
    }
}
