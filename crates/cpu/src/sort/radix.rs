//! Sorts unsigned integers by some of their bits, stably.
//!
//! What fits the cache is sorted digit by digit, the lowest first. More than that is parted by its
//! highest digit until it fits: moving elements to 256 places of a large array costs a cache miss
//! each, so that is done as seldom as possible. Threads share the first parting in pieces, and then
//! the parts. The outcome of a stable sort is unique, so pieces may be cut as suits the threads.
//! Called by `line.rs`.

use super::Block;
use super::key::Bits;
use crate::pool;

/// Bits of a digit.
const DIGIT: u32 = 8;

/// Values of a digit.
const BUCKETS: usize = 1 << DIGIT;

/// Below this many elements comparing is faster.
const SMALL: usize = 512;

/// Bytes of elements that are sorted from the lowest digit on: with their copy, a part of L2.
const CACHE: usize = 1 << 18;

/// The most digits that the lower bits are cut into.
const PASSES: usize = 8;

/// The least elements that a piece of a shared pass has.
const PIECE: usize = 1 << 15;

/// Sorts `data` by its bits from `low` on, using `other`, which is as long: the array that the
/// outcome is in. At most 64 bits count; those below `low` must be in order already, and differ in
/// all elements.
pub(super) fn sort<'a, E: Bits>(data: &'a mut [E], other: &'a mut [E], low: u32) -> &'a mut [E] {
    assert!(data.len() == other.len() && E::BITS - low <= PASSES as u32 * DIGIT);
    if order(data, other, low) { other } else { data }
}

/// Sorts `data`; true if the outcome is in `other`.
fn order<E: Bits>(data: &mut [E], other: &mut [E], low: u32) -> bool {
    if data.len() <= SMALL {
        data.sort_unstable();
        return false;
    }
    let first = data[0];
    let differ = data.iter().fold(E::ZERO, |seen, &x| x.differences(first, seen));
    let top = E::BITS - differ.leading_zeros();
    if top <= low {
        return false;
    }
    if size_of_val(data) <= CACHE {
        return from_the_lowest(data, other, low, top);
    }
    let shift = low.max(top.saturating_sub(DIGIT));
    let ends = part(data, other, shift);
    let (parts, target) = (Block(other.as_mut_ptr()), Block(data.as_mut_ptr()));
    pool::run(BUCKETS, &|bucket| {
        let start = if bucket == 0 { 0 } else { ends[bucket - 1] };
        let len = ends[bucket] - start;
        if len == 0 {
            return;
        }
        // SAFETY: the ends ascend to the length of both slices, so that buckets lie apart and inside;
        // each is touched by its own piece only.
        let (from, to) = unsafe {
            let from = std::slice::from_raw_parts_mut(parts.at(start), len);
            (from, std::slice::from_raw_parts_mut(target.at(start), len))
        };
        if !order(from, to, low) {
            to.copy_from_slice(from);
        }
    });
    false
}

/// Sorts what fits the cache by its bits from `low` to `top`; true if the outcome is in `other`.
fn from_the_lowest<E: Bits>(data: &mut [E], other: &mut [E], low: u32, top: u32) -> bool {
    let passes = (top - low).div_ceil(DIGIT);
    // Digits of one width, no wider than need be.
    let width = (top - low).div_ceil(passes);
    let mask = (1 << width) - 1;
    let mut counts = [[0u32; BUCKETS]; PASSES];
    let counts = &mut counts[..passes as usize];
    // Several digits in one go, their number known to the compiler.
    for (group, counts) in (0..).zip(counts.chunks_mut(4)) {
        let shifts = std::array::from_fn(|k| low + (4 * group + k as u32) * width);
        match counts.len() {
            1 => count::<E, 1>(data, shifts, mask, counts),
            2 => count::<E, 2>(data, shifts, mask, counts),
            3 => count::<E, 3>(data, shifts, mask, counts),
            _ => count::<E, 4>(data, shifts, mask, counts),
        }
    }
    let (mut from, mut to, mut swapped) = (data, other, false);
    for (pass, counts) in (0..).zip(counts) {
        let shift = low + pass * width;
        if counts[from[0].digit(shift) & mask] as usize == from.len() {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        let target = Block(to.as_mut_ptr());
        for &x in &*from {
            let place = &mut counts[x.digit(shift) & mask];
            // SAFETY: the places of a digit are as many as it has elements, apart from all others,
            // and together as many as `to` has.
            unsafe { *target.at(*place as usize) = x };
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    swapped
}

/// Counts the values of the first `N` digits.
fn count<E: Bits, const N: usize>(
    data: &[E],
    shifts: [u32; 4],
    mask: usize,
    counts: &mut [[u32; BUCKETS]],
) {
    let Some(counts) = counts.first_chunk_mut::<N>() else { return };
    for x in data {
        for k in 0..N {
            counts[k][x.digit(shifts[k]) & mask] += 1;
        }
    }
}

/// Moves all elements of `from` to `to`, in the order of the digit at `shift`; the ends of the
/// digits' buckets.
fn part<E: Bits>(from: &[E], to: &mut [E], shift: u32) -> [usize; BUCKETS] {
    let n = from.len();
    let pieces = (n / PIECE).clamp(1, pool::threads());
    let mut counts = vec![[0usize; BUCKETS]; pieces];
    let piece = |number: usize| &from[n * number / pieces..n * (number + 1) / pieces];
    let places = Block(counts.as_mut_ptr());
    pool::run(pieces, &|number| {
        // SAFETY: each piece has counts of its own.
        let counts = unsafe { &mut *places.at(number) };
        for x in piece(number) {
            counts[x.digit(shift)] += 1;
        }
    });
    // Where each piece puts its first element of each digit: after all smaller digits, and after
    // the same digit of earlier pieces.
    let mut next = 0;
    let mut ends = [0; BUCKETS];
    for digit in 0..BUCKETS {
        for counts in counts.iter_mut() {
            next += std::mem::replace(&mut counts[digit], next);
        }
        ends[digit] = next;
    }
    assert!(next == n && to.len() == n);
    let places = Block(counts.as_mut_ptr());
    let target = Block(to.as_mut_ptr());
    pool::run(pieces, &|number| {
        // SAFETY: each piece has places of its own.
        let places = unsafe { &mut *places.at(number) };
        for &x in piece(number) {
            let place = &mut places[x.digit(shift)];
            // SAFETY: the places of a piece and digit are as many as it has elements of that digit,
            // apart from all others, and `n` together, as `to` has.
            unsafe { *target.at(*place) = x };
            *place += 1;
        }
    });
    ends
}
