//! Sorts unsigned integers by the vector quicksort of the simd crate, on all threads.
//!
//! A long array is parted by several pivots at once, so that there are some parts for every thread
//! and none takes long: each piece makes its integers and parts them while they are in the cache,
//! then puts each of its parts where those of all pieces belong. Parts are sorted, and handed on
//! while they are in the cache, by the threads, each by itself. An integer that a sample shows to be
//! frequent is a pivot of its own: those equal to it are counted, neither moved nor sorted. An array
//! of some thousands is too short for that: threads sort a piece each, and merge them. Equal integers
//! cannot be told apart, so it does not matter how the array is cut. Called by `line.rs`.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_simd::order::Sorter;

use super::key::Bits;
use super::runs::Runs;
use super::{Block, Places};
use crate::pool;

/// The least elements that are parted by several threads.
const SHARED: usize = 1 << 16;

/// The least bytes that a thread sorts before they are merged with those of others: some microseconds'
/// work, of which the merge is a tenth.
const HALF: usize = 1 << 14;

/// The most pieces that are merged: each doubling is one more time through all of them.
const MOST_HALVES: usize = 4;

/// Elements that show whether there are few runs, or many equal ones.
const GLANCE: usize = 64;

/// How many times faster many equal ones are sorted than others.
const REPEATS: usize = 4;

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

/// A pivot that the sample has so often is frequent: a quarter of what belongs between two.
const FREQUENT: usize = SAMPLE / 4;

/// Equal integers that are handed on at a time.
const EQUAL: usize = 1 << 12;

/// What is sorted: makes the integers of some places.
pub(super) type Make<'a, E> = dyn Fn(Places<'_>, &mut [E]) + Sync + 'a;

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
    let threads = pool::hands();
    let wanted = if threads > 1 && len >= SHARED { PARTS * threads } else { 1 }.max(len / LONG);
    let parts = wanted.next_power_of_two().min(MOST_PARTS);
    let halves = if parts == 1 { halves::<E>(len, threads) } else { 1 };
    let count = match (parts, halves) {
        (1, 1) => 0,
        (1, _) => GLANCE,
        _ => parts * SAMPLE,
    };
    let mut sample = sample(len, count, make);
    // What has few runs shows that in its sample, or soon.
    if Runs::few(&sample[..sample.len() / 2]).is_some() {
        make_all(data, make);
        if let Some(runs) = Runs::few(data) {
            return runs.merge_for(data, other, take);
        }
        if parts == 1 && halves == 1 {
            // SAFETY: both have as many integers; the level is the caller's promise.
            unsafe { (sorter.sort)(data.as_mut_ptr(), other.as_mut_ptr(), false, len) };
            return take(0..len, data);
        }
    }
    let at = sample.as_mut_ptr();
    // SAFETY: there are so many of both; the level is the caller's promise.
    unsafe { (sorter.sort)(at, at.add(count), false, count) };
    let sample = &sample[..count];
    if parts == 1 {
        // What repeats is sorted so fast that fewer are not worth sharing.
        let repeats = sample.windows(2).filter(|pair| pair[0] == pair[1]).count() > GLANCE / 4;
        let halves = if repeats { self::halves::<E>(len / REPEATS, threads) } else { halves };
        // SAFETY: the caller's promise.
        return unsafe { sort_halves(sorter, [data, other], halves, make, take) };
    }
    let pivots = Pivot::chosen(sample, parts);
    // SAFETY: the caller's promise.
    let (ends, moved) = unsafe { part(sorter, data, other, &pivots, make) };
    let pieces = pieces(&ends, &pivots);
    let (data, other) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    let (here, there) = if moved { (other, data) } else { (data, other) };
    pool::run(pieces.len(), &|index| {
        let (range, equal) = pieces[index].clone();
        let (start, count) = (range.start, range.len());
        // SAFETY: pieces lie apart, inside of both arrays; the level is the caller's promise.
        unsafe {
            if let Some(integer) = equal {
                let some = std::slice::from_raw_parts_mut(data.at(start), count.min(EQUAL));
                some.fill(integer);
                for at in range.step_by(EQUAL) {
                    let count = EQUAL.min(start + count - at);
                    take(at..at + count, &some[..count]);
                }
            } else {
                (sorter.sort)(here.at(start), there.at(start), moved, count);
                take(range, std::slice::from_raw_parts(data.at(start), count));
            }
        }
    });
}

/// Into how many pieces, one for a thread, so many are cut that are sorted each and then merged.
fn halves<E>(len: usize, threads: usize) -> usize {
    let most = (len * size_of::<E>() / HALF).clamp(1, MOST_HALVES.min(threads));
    1 << most.ilog2()
}

/// Sorts some pieces, each on a thread, and merges them, like [`sort`].
///
/// # Safety
/// The CPU has the sorter's instruction set; both arrays are as long.
unsafe fn sort_halves<E: Bits>(
    sorter: Sorter<E>,
    [data, other]: [&mut [E]; 2],
    halves: usize,
    make: &Make<'_, E>,
    take: &Take<'_, E>,
) {
    let len = data.len();
    let end = |half: usize| len * half / halves;
    let (here, there) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    pool::run(halves, &|half| {
        let (range, count) = (end(half)..end(half + 1), end(half + 1) - end(half));
        // SAFETY: pieces lie apart, inside of both arrays; the level is the caller's promise.
        unsafe {
            let at = here.at(range.start);
            let there = there.at(range.start);
            make(range.into(), std::slice::from_raw_parts_mut(at, count));
            (sorter.sort)(at, there, false, count);
        }
    });
    Runs::ascending((1..=halves).map(end)).merge_for(data, other, take);
}

/// Hands on integers that are in order.
pub(super) fn hand_on<E: Bits>(sorted: &[E], take: &Take<'_, E>) {
    pool::for_ranges(sorted.len(), PIECE, &|range| take(range.clone(), &sorted[range]));
}

/// What parts the integers.
struct Pivot<E> {
    at: E,
    /// Whether those equal to it are a part of their own, which needs no sorting.
    frequent: bool,
}

impl<E: Bits> Pivot<E> {
    /// Different integers that part all of them evenly, ascending: from a sorted sample.
    fn chosen(sample: &[E], parts: usize) -> SmallVec<[Pivot<E>; 16]> {
        let mut chosen: SmallVec<[Pivot<E>; 16]> = SmallVec::new();
        for part in 1..parts {
            let at = sample[part * SAMPLE];
            if chosen.last().is_none_or(|last| last.at < at) {
                let first = sample.partition_point(|&x| x < at);
                let frequent = sample.get(first + FREQUENT) == Some(&at);
                chosen.push(Pivot { at, frequent });
            }
        }
        chosen
    }
}

/// The places that are sorted, or filled with one integer, at a time: parts between pivots end at the
/// even ones of `ends`, those equal to a pivot at the odd ones.
fn pieces<E: Bits>(ends: &[usize], pivots: &[Pivot<E>]) -> Vec<(Range<usize>, Option<E>)> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    for (part, &end) in ends.iter().enumerate() {
        let equal = (part % 2 == 1).then(|| pivots[part / 2].at);
        let most = if equal.is_some() { PIECE } else { usize::MAX };
        while start < end {
            let next = end.min(start.saturating_add(most));
            pieces.push((start..next, equal));
            start = next;
        }
    }
    pieces
}

/// Makes all integers.
pub(super) fn make_all<E: Bits>(data: &mut [E], make: &Make<'_, E>) {
    let (len, room) = (data.len(), Block(data.as_mut_ptr()));
    pool::for_ranges(len, PIECE, &|range| {
        // SAFETY: the range lies in the slice, and no other piece has it.
        let to = unsafe { std::slice::from_raw_parts_mut(room.at(range.start), range.len()) };
        make(range.into(), to);
    });
}

/// So many of the integers, at [uneven] places, and room for as many.
fn sample<E: Bits>(len: usize, count: usize, make: &Make<'_, E>) -> Vec<E> {
    let places: SmallVec<[usize; GLANCE]> = uneven(len, count).collect();
    let mut sample = vec![E::ZERO; 2 * count];
    make(Places::These(&places), &mut sample[..count]);
    sample
}

/// So many of `len` places: one of each stretch of the same length, at changing places of it, since what
/// repeats could show one face only at even ones.
pub(super) fn uneven(len: usize, count: usize) -> impl Iterator<Item = usize> {
    // The fraction of the golden ratio, of which no few multiples are close to each other.
    const UNEVEN: u64 = 0x9e37_79b9;
    (0..count).map(move |i| {
        let (stretch, part) = ((len / count) as u64, (i as u64 * UNEVEN) & u64::from(u32::MAX));
        i * stretch as usize + ((stretch * part) >> 32) as usize
    })
}

/// Makes all integers and parts them by the pivots; where the parts end, as [`pieces`] has them, and
/// whether they are in `other`.
///
/// # Safety
/// The CPU has the sorter's instruction set.
unsafe fn part<E: Bits>(
    sorter: Sorter<E>,
    data: &mut [E],
    other: &mut [E],
    pivots: &[Pivot<E>],
    make: &Make<'_, E>,
) -> (Vec<usize>, bool) {
    let (len, parts) = (data.len(), 2 * pivots.len() + 1);
    let halvings = (pivots.len() + 1).next_power_of_two().ilog2();
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
            make(range.into(), std::slice::from_raw_parts_mut(data.at(start), count));
            part_piece(sorter, data.at(start), other.at(start), count, pivots, halvings, counts);
        }
    });

    // Where each piece puts each of its parts: after all lower parts, and the same of earlier pieces.
    let (mut next, mut ends) = (0, Vec::with_capacity(parts));
    let mut places = vec![0usize; pieces * parts];
    for part in 0..parts {
        for at in (part..pieces * parts).step_by(parts) {
            places[at] = next;
            next += counts[at];
        }
        ends.push(next);
    }
    // A piece has changed sides once for each halving.
    let parted_in_other = halvings % 2 == 1;
    let (from, to) = if parted_in_other { (other, data) } else { (data, other) };
    pool::run(pieces, &|number| {
        let mut start = piece(number).start;
        for (part, at) in (number * parts..(number + 1) * parts).enumerate() {
            // Those equal to a pivot are not there.
            if part % 2 == 0 {
                // SAFETY: the places of all pieces and parts lie apart and fill the array; each
                // piece's parts follow each other where it has put them.
                unsafe { to.at(places[at]).copy_from_nonoverlapping(from.at(start), counts[at]) };
            }
            start += counts[at];
        }
    });
    (ends, !parted_in_other)
}

/// Parts integers by pivots, in so many halvings, and counts the parts and those equal to the pivots
/// between them. They come to lie in `to` if the number of halvings is odd, else in `from`; where
/// equal ones would be is anything.
///
/// # Safety
/// The CPU has the sorter's instruction set; `from` and `to` may be read and written for `count`
/// integers and do not overlap.
unsafe fn part_piece<E: Bits>(
    sorter: Sorter<E>,
    from: *mut E,
    to: *mut E,
    count: usize,
    pivots: &[Pivot<E>],
    halvings: u32,
    counts: &mut [usize],
) {
    let middle = pivots.len() / 2;
    let Some(pivot) = pivots.get(middle) else {
        counts[0] = count;
        if halvings % 2 == 1 {
            // SAFETY: the caller's promise.
            unsafe { to.copy_from_nonoverlapping(from, count) };
        }
        return;
    };
    let (low_counts, rest) = counts.split_at_mut(2 * middle + 1);
    let (equal, high_counts) = rest.split_at_mut(1);
    // SAFETY: the caller's promise, for both parts of what has been parted.
    unsafe {
        let (below, above) = if pivot.frequent {
            (sorter.part_around)(from, to, count, pivot.at)
        } else {
            let below = (sorter.part)(from, to, count, pivot.at);
            (below, count - below)
        };
        equal[0] = count - below - above;
        let (lower, higher) = (&pivots[..middle], &pivots[middle + 1..]);
        part_piece(sorter, to, from, below, lower, halvings - 1, low_counts);
        let (to, from) = (to.add(count - above), from.add(count - above));
        part_piece(sorter, to, from, above, higher, halvings - 1, high_counts);
    }
}
