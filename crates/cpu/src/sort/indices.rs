//! Sorts the indices of one line, stably.
//!
//! A key, less the least of all, and the index of its element make one integer, which is sorted like any
//! other: indices differ, so there are no ties. Of keys of 64 bits as many bits are taken as there is
//! room for above the index; elements that are equal in those are sorted by the others afterwards.
//! Keys of which all lie within a byte, or that have few values, are counted instead. Called by the drivers in `sort/mod.rs` and by `line.rs`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::cast_slice_mut;

use super::key::{Bits, Key};
use super::line::{PIECE, sort_integers, sort_made};
use super::runs::Runs;
use super::{Block, Places, Row, bytes, few, quick, radix};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// Narrow keys of more elements than this are sorted digit by digit, up to as many as the cache has room
/// for.
const NARROW: usize = 512;
const WIDE: usize = 1 << 15;

/// So few equal ones are sorted by comparing.
const FEW: usize = 8;

/// Integers that are looked at together.
const BLOCK: usize = 64;

/// Whether keys of `T` and indices below `len` are sorted as one integer.
fn fit<T: Key>(len: usize) -> bool {
    T::Bits::BITS <= u64::BITS && len as u64 <= 1 << 32
}

/// Bytes that sorting the indices of `len` elements takes.
pub(super) fn room<T: Key>(len: usize) -> usize {
    len * if fit::<T>(len) { size_of::<[u64; 2]>() } else { size_of::<[u128; 2]>() }
}

/// Writes the indices of the elements, in their order, to `out`; `work` has as many bytes as there
/// is room asked for.
pub(super) fn argsort<T: Key>(line: Row<T::Raw>, flip: T::Bits, work: &mut [u8], out: Row<i64>) {
    let len = line.len();
    if !fit::<T>(len) {
        if !few::argsort::<T>(line, flip, work, out) {
            by_comparing::<T>(line, flip, cast_slice_mut(work), out);
        }
        return;
    }
    let packing = Packing::of::<T>(line, flip);
    if packing.key_bits == 0 {
        // All are equal.
        return out.set_all(|i| i as i64);
    }
    if packing.key_bits <= u8::BITS && len >= bytes::LEAST {
        let byte = |raw| packing.cut(key_of::<T>(raw, flip)) as u8;
        return bytes::argsort(line, byte, work, out);
    }
    if few::argsort::<T>(line, flip, work, out) {
        return;
    }
    let (pairs, other) = cast_slice_mut::<u8, u64>(work).split_at_mut(len);
    let make = |places: Places<'_>, pairs: &mut [u64]| {
        with_isa(Isa::current(), Pack::<T> { line, flip, packing, places, pairs });
    };
    // What is not told apart yet stays as it is, to be seen by its neighbours.
    let index = if packing.tells_all() { packing.index_mask() } else { u64::MAX };
    let take = |range: Range<usize>, pairs: &[u64]| {
        with_isa(Isa::current(), Unpack { pairs, index, range, out });
    };
    if packing.key_bits <= u16::BITS && (NARROW + 1..=WIDE).contains(&len) {
        quick::make_all(pairs, &make);
        return match Runs::few(pairs) {
            Some(runs) => runs.merge_for(pairs, other, &take),
            None => quick::hand_on(radix::sort(pairs, other, packing.index_bits), &take),
        };
    }
    sort_integers(pairs, other, packing.index_bits, &make, &take);
    if !packing.tells_all() {
        tell_apart::<T>(line, flip, packing, [pairs, other], out);
    }
}

/// How a key and an index make one integer.
#[derive(Clone, Copy)]
struct Packing {
    /// The least of all keys.
    least: u64,
    /// The lowest bit of what keys are above it that counts.
    low: u32,
    /// The lowest bit in which any keys differ.
    differ: u32,
    /// Bits of a key from `low` on, and of an index.
    key_bits: u32,
    index_bits: u32,
}

impl Packing {
    fn of<T: Key>(line: Row<T::Raw>, flip: T::Bits) -> Packing {
        let first = key_of::<T>(line.get(0), flip);
        let (differ, least, most) =
            (AtomicU64::new(0), AtomicU64::new(first), AtomicU64::new(first));
        pool::for_ranges(line.len(), PIECE, &|range| {
            let mut spread = Spread { differ: 0, least: first, most: first };
            with_isa(Isa::current(), Look::<T> { line, flip, range, spread: &mut spread });
            differ.fetch_or(spread.differ, Ordering::Relaxed);
            least.fetch_min(spread.least, Ordering::Relaxed);
            most.fetch_max(spread.most, Ordering::Relaxed);
        });
        let (differ, least) = (differ.into_inner().max(1).trailing_zeros(), least.into_inner());
        let index_bits = usize::BITS - (line.len() - 1).leading_zeros();
        let top = u64::BITS - (most.into_inner() - least).leading_zeros();
        let low = differ.max((top + index_bits).saturating_sub(u64::BITS));
        Packing { least, low, differ, key_bits: top.saturating_sub(low), index_bits }
    }

    /// Whether all bits in which keys differ are in the integer.
    fn tells_all(self) -> bool {
        self.low == self.differ
    }

    fn index_mask(self) -> u64 {
        (1 << self.index_bits) - 1
    }

    /// What counts of a key.
    #[inline(always)]
    fn cut(self, key: u64) -> u64 {
        key.wrapping_sub(self.least) >> self.low
    }

    /// The integer of a key and an index.
    #[inline(always)]
    fn pack(self, key: u64, index: usize) -> u64 {
        // An index that takes no bits is 0 of one element, whatever its key.
        self.cut(key).unbounded_shl(self.index_bits) | index as u64
    }
}

#[inline(always)]
fn key_of<T: Key>(raw: T::Raw, flip: T::Bits) -> u64 {
    T::key(raw, flip).to_u128() as u64
}

/// How keys differ: the bits in which some differ from the first of the line, the least and the most.
#[derive(Clone, Copy)]
struct Spread {
    differ: u64,
    least: u64,
    most: u64,
}

/// Looks how keys differ.
struct Look<'a, T: Key> {
    line: Row<T::Raw>,
    flip: T::Bits,
    range: Range<usize>,
    spread: &'a mut Spread,
}

impl<T: Key> Work for Look<'_, T> {
    #[inline(always)]
    fn run(self) {
        let first = key_of::<T>(self.line.get(0), self.flip);
        let with = |Spread { differ, least, most }, raw| {
            let key = key_of::<T>(raw, self.flip);
            Spread { differ: differ | (key ^ first), least: least.min(key), most: most.max(key) }
        };
        *self.spread = match self.line.slice(self.range.clone()) {
            Some(elements) => elements.iter().fold(*self.spread, |seen, &raw| with(seen, raw)),
            None => self.range.fold(*self.spread, |seen, i| with(seen, self.line.get(i))),
        };
    }
}

/// Makes integers of keys and indices.
struct Pack<'a, T: Key> {
    line: Row<T::Raw>,
    flip: T::Bits,
    packing: Packing,
    places: Places<'a>,
    pairs: &'a mut [u64],
}

impl<T: Key> Work for Pack<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Pack { line, flip, packing, places, pairs } = self;
        line.each_of(places, pairs, |i, raw| packing.pack(key_of::<T>(raw, flip), i));
    }
}

/// Writes what is left of integers under a mask.
struct Unpack<'a> {
    pairs: &'a [u64],
    index: u64,
    range: Range<usize>,
    out: Row<i64>,
}

impl Work for Unpack<'_> {
    #[inline(always)]
    fn run(self) {
        let index = self.index;
        self.out.fill_from(self.range, self.pairs, |pair| (pair & index).cast_signed());
    }
}

/// Sorts elements that are equal in what the integers in `out` have of their keys by the rest, and
/// writes all indices; `work` is as long each.
fn tell_apart<T: Key>(
    line: Row<T::Raw>,
    flip: T::Bits,
    packing: Packing,
    work: [&mut [u64]; 2],
    out: Row<i64>,
) {
    let len = line.len();
    let pair = |i: usize| out.get(i).cast_unsigned();
    let same = |i: usize, j: usize| (pair(i) ^ pair(j)) >> packing.index_bits == 0;
    // Pieces are cut where keys differ, as long as all are there to be seen.
    let mut cuts: Vec<usize> = Vec::with_capacity(len / PIECE + 2);
    cuts.push(0);
    while let Some(&start) = cuts.last().filter(|&&start| start < len) {
        let cut = (len.min(start + PIECE)..len).find(|&i| !same(i - 1, i));
        cuts.push(cut.unwrap_or(len));
    }
    let work = work.map(|work| Block(work.as_mut_ptr()));
    let rest = |index: u64| {
        let key = key_of::<T>(line.get(index as usize), flip);
        (key.wrapping_sub(packing.least) & ((1 << packing.low) - 1)) << 32 | index
    };
    pool::run(cuts.len() - 1, &|piece| {
        let (mut start, end) = (cuts[piece], cuts[piece + 1]);
        while start < end {
            if start + BLOCK < end {
                let mut told = false;
                with_isa(Isa::current(), Tell { out, start, packing, told: &mut told });
                if told {
                    start += BLOCK;
                    continue;
                }
            }
            let next = (start + 1..end).find(|&i| !same(start, i)).unwrap_or(end);
            let index = |i: usize| pair(i) & packing.index_mask();
            if next - start == 1 {
                out.put(start, index(start).cast_signed());
            } else {
                // SAFETY: the places belong to this piece alone and lie in both arrays.
                let [rests, other] = work.map(|work| unsafe {
                    std::slice::from_raw_parts_mut(work.at(start), next - start)
                });
                for (to, i) in rests.iter_mut().zip(start..) {
                    *to = rest(index(i));
                }
                let sorted = if rests.len() <= FEW {
                    rests.sort_unstable();
                    rests
                } else {
                    sort_made(rests, other, 32)
                };
                out.fill_from(start..next, sorted, |pair| i64::from(pair as u32));
            }
            start = next;
        }
    });
}

/// Writes the indices of a block, if all that it is told apart by is there, and tells so.
struct Tell<'a> {
    out: Row<i64>,
    start: usize,
    packing: Packing,
    told: &'a mut bool,
}

impl Work for Tell<'_> {
    #[inline(always)]
    fn run(self) {
        let Tell { out, start, packing, told } = self;
        let mut pairs = [0; BLOCK + 1];
        out.each_of((start..start + BLOCK + 1).into(), &mut pairs, |_, pair| pair);
        let same = |a: i64, b: i64| (a ^ b).cast_unsigned() >> packing.index_bits == 0;
        let neighbours = pairs.iter().zip(&pairs[1..]);
        *told = !neighbours.fold(false, |seen, (&a, &b)| seen | same(a, b));
        if *told {
            let mask = packing.index_mask().cast_signed();
            out.fill_from(start..start + BLOCK, &pairs[..BLOCK], |pair| pair & mask);
        }
    }
}

/// Sorts keys that are too wide for any other way.
fn by_comparing<T: Key>(line: Row<T::Raw>, flip: T::Bits, pairs: &mut [[u128; 2]], out: Row<i64>) {
    line.each_of((0..line.len()).into(), pairs, |i, raw| [T::key(raw, flip).to_u128(), i as u128]);
    // A long line sorts for seconds in one go: it asks now and then whether to go on.
    let mut compared = 0u32;
    pairs.sort_unstable_by(|a, b| {
        compared = compared.wrapping_add(1);
        if compared.is_multiple_of(1 << 16) {
            pool::check();
        }
        a.cmp(b)
    });
    out.fill_from(0..line.len(), pairs, |pair| pair[1] as i64);
}
