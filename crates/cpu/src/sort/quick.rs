//! Sorts unsigned integers by the vector quicksort of the simd crate, on all threads.
//!
//! A long array is parted by pivots until there are some parts for every thread, and none takes
//! long: pieces part what they have into the other array, then put both halves where those of all
//! pieces belong. Parts are then sorted by the threads, each by itself. Equal integers cannot be
//! told apart, so it does not matter how the array is cut. Called by `line.rs`.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use tilework_simd::order::Sorter;

use super::Block;
use super::key::Bits;
use crate::pool;

/// The least elements that are parted by several threads.
const SHARED: usize = 1 << 16;

/// Elements that one piece parts.
const PIECE: usize = 1 << 15;

/// Parts for each thread, so that an unlucky pivot does not leave one with all the work.
const PARTS: usize = 4;

/// Elements of a part that takes about a tenth of a second, after which somebody may want to stop.
const LONG: usize = 1 << 22;

/// Elements that a pivot is the median of.
const SAMPLE: usize = 255;

/// Sorts `data`, using `other`, which is as long.
///
/// # Safety
/// The CPU has the sorter's instruction set.
pub(super) unsafe fn sort<E: Bits>(sorter: Sorter<E>, data: &mut [E], other: &mut [E]) {
    assert_eq!(data.len(), other.len());
    let threads = pool::threads();
    let wanted = if threads > 1 { PARTS * threads } else { 1 }.max(data.len() / LONG);
    let mut parts: SmallVec<[Range<usize>; 16]> = smallvec![0..data.len()];
    for _ in 0..wanted.next_power_of_two().ilog2() {
        let mut halves = SmallVec::new();
        for part in parts {
            let mut middle = part.start;
            if part.len() >= SHARED {
                let (data, other) = (&mut data[part.clone()], &mut other[part.clone()]);
                // SAFETY: the caller's promise.
                middle += unsafe { part_in_pieces(sorter, data, other) };
            }
            let both = [part.start..middle, middle..part.end];
            halves.extend(both.into_iter().filter(|half| !half.is_empty()));
        }
        parts = halves;
    }
    let (data, other) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    pool::run(parts.len(), &|index| {
        let Range { start, end } = parts[index];
        // SAFETY: parts lie apart, inside of both arrays; the level is the caller's promise.
        unsafe { (sorter.sort)(data.at(start), other.at(start), false, end - start) }
    });
}

/// Puts the elements of `data` that are below some element near the middle first; how many.
///
/// # Safety
/// The CPU has the sorter's instruction set.
unsafe fn part_in_pieces<E: Bits>(sorter: Sorter<E>, data: &mut [E], other: &mut [E]) -> usize {
    let len = data.len();
    let mut sample: [E; SAMPLE] = std::array::from_fn(|i| data[len / SAMPLE * i]);
    sample.sort_unstable();
    let pivot = sample[SAMPLE / 2];

    let pieces = len.div_ceil(PIECE);
    let piece = |number: usize| number * PIECE..len.min((number + 1) * PIECE);
    let mut below: SmallVec<[usize; 64]> = smallvec![0; pieces];
    let (from, to) = (Block(data.as_mut_ptr()), Block(other.as_mut_ptr()));
    let counts = Block(below.as_mut_ptr());
    pool::run(pieces, &|number| {
        let Range { start, end } = piece(number);
        // SAFETY: the piece lies in both arrays, and it and its count are this call's alone; the
        // level is the caller's promise.
        unsafe {
            *counts.at(number) = (sorter.part)(from.at(start), to.at(start), end - start, pivot);
        }
    });

    let all_below: usize = below.iter().sum();
    // Where each piece puts what is below, and the others.
    let mut places: SmallVec<[(usize, usize); 64]> = SmallVec::new();
    let (mut low, mut high) = (0, all_below);
    for (number, &count) in below.iter().enumerate() {
        places.push((low, high));
        low += count;
        high += piece(number).len() - count;
    }
    pool::run(pieces, &|number| {
        let Range { start, end } = piece(number);
        let ((low, high), count) = (places[number], below[number]);
        // SAFETY: the places of all pieces lie apart and fill `data`; each piece's halves lie in
        // `other` where it has put them.
        unsafe {
            from.at(low).copy_from_nonoverlapping(to.at(start), count);
            from.at(high).copy_from_nonoverlapping(to.at(start + count), end - start - count);
        }
    });
    all_below
}
