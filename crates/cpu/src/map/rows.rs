//! Copies of many short rows: repeated ones, parts of stacks of small matrices, columns joined side by side.
//!
//! What [`super::moves::block`] is given are bursts of rows, and where those are short a burst takes as long to
//! begin as to move. Here two axes outside of the rows are walked in one loop, and a row moves as two words,
//! which overlap where it is shorter than both. Called by `copy`.

use smallvec::SmallVec;
use tilework_layout::LoopNest;

use super::PIECE;
use super::copy::Shared;
use super::moves::Steps;
use crate::pool;

/// Bytes of the longest rows that move as two words.
const LONGEST: usize = 128;

/// Rows outside of a burst that are worth a loop.
const MANY: usize = 8;

/// Copies a nest of target and source whose rows are short and without gaps; false, with nothing done, if
/// it is another. Both sides begin where the first operand of the nest and the second do.
///
/// # Safety
/// Positions of the nest are elements of `size` bytes that may be written, and read, from any thread; the two
/// sides do not overlap.
pub(super) unsafe fn copy(nest: &LoopNest, size: usize, to: Shared, from: Shared) -> bool {
    let (lens, row) = (nest.lens(), nest.inner_len() * size);
    let [outer @ .., burst, _] = lens else { return false };
    if row > LONGEST || nest.inner_strides() != [1, 1] || outer.is_empty() {
        return false;
    }
    let last = outer.len() - 1;
    // The next axis is the best for the caches, if it has some rows.
    let longest = (0..=last).max_by_key(|&axis| lens[axis]).unwrap_or(last);
    let long = if lens[last] >= MANY { last } else { longest };
    let others: SmallVec<[usize; 4]> = (0..=last).filter(|&axis| axis != long).collect();
    let bytes = size.cast_signed();
    let steps = |operand: usize| {
        let step = |axis: usize| nest.strides(axis)[operand] * bytes;
        (step(long), step(last + 1))
    };
    let (to_steps, from_steps, length) = (steps(0), steps(1), lens[long]);
    let grain = (PIECE / (row * burst)).max(1);
    pool::for_ranges(outer.iter().product(), grain, &|range| {
        let mut next = range.start;
        while next < range.end {
            let (mut other, first) = (next / length, next % length);
            let count = (length - first).min(range.end - next);
            let mut at = [0, 1].map(|operand| {
                let start = nest.offsets()[operand].cast_signed();
                start + first.cast_signed() * nest.strides(long)[operand]
            });
            for &axis in others.iter().rev() {
                let place = (other % lens[axis]).cast_signed();
                other /= lens[axis];
                for (at, stride) in at.iter_mut().zip(nest.strides(axis)) {
                    *at += place * stride;
                }
            }
            let to = (to.at(at[0], size), to_steps);
            let from = (from.at(at[1], size).cast_const(), from_steps);
            let counts = (count, *burst);
            // SAFETY: rows of the nest, for which the caller vouches, of at least a word and at most two.
            unsafe {
                match row {
                    1 => by_words::<u8>(counts, row, to, from),
                    2..4 => by_words::<u16>(counts, row, to, from),
                    4..8 => by_words::<u32>(counts, row, to, from),
                    8..16 => by_words::<u64>(counts, row, to, from),
                    16..32 => by_words::<[u64; 2]>(counts, row, to, from),
                    32..64 => by_words::<[u64; 4]>(counts, row, to, from),
                    _ => by_words::<[u64; 8]>(counts, row, to, from),
                }
            }
            next += count;
        }
    });
    true
}

/// Rows of `row` bytes, `counts.0` times `counts.1` of them; steps count bytes.
///
/// # Safety
/// All of them may be written, and read; a row has at least the bytes of a word, and at most those of two.
unsafe fn by_words<W: Copy>(
    counts: (usize, usize),
    row: usize,
    (to, to_steps): (*mut u8, Steps),
    (from, from_steps): (*const u8, Steps),
) {
    let rest = row - size_of::<W>();
    for i in 0..counts.0.cast_signed() {
        for j in 0..counts.1.cast_signed() {
            // SAFETY: the caller's promise.
            unsafe {
                let from = from.offset(i * from_steps.0 + j * from_steps.1);
                let to = to.offset(i * to_steps.0 + j * to_steps.1);
                let head = from.cast::<W>().read_unaligned();
                let tail = from.add(rest).cast::<W>().read_unaligned();
                to.cast::<W>().write_unaligned(head);
                to.add(rest).cast::<W>().write_unaligned(tail);
            }
        }
    }
}
