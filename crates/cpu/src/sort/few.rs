//! Sorts a line of few different elements, or its indices, by counting them.
//!
//! A sample says whether there may be few; values that it has missed are found on the way through
//! all elements. Each is compared with all values, which vectors do without looking at what comes.
//! Called by `line.rs` and `indices.rs`.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::bytes::{LEAST, Pieces};
use super::key::{Bits, Key, Reversible};
use super::line::{Lane, ToKeys};
use super::{Block, Row, bytes, quick};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// The most different values, and elements that show whether there may be so few.
const MOST: usize = 16;
const SAMPLE: usize = 64;

/// Elements that are compared together: a byte counts them.
const BLOCK: usize = 128;

/// The most different values that are worth counting when elements are sorted: those are compared with
/// a register at a time, and more take longer than parting them does.
const MOST_COUNTED: usize = 32;

/// The most of integers, which may lie so close together that all of them can be counted.
const MOST_INTEGERS: usize = 12;

/// So many elements of a sample that all differ are not of few values.
const FIRST: usize = 16;

/// Elements that are counted by one piece of work, and those of them whose keys stay in the nearest
/// cache.
const COUNTED: usize = 1 << 14;
const BATCH: usize = 1 << 10;

/// Values, and how many there are of each.
type Counted<B> = SmallVec<[(B, usize); MOST_COUNTED]>;

/// Different keys.
type Values<B> = SmallVec<[B; MOST]>;

/// How many of each value there are.
type Counts = [usize; MOST];

/// Writes the elements of a line, sorted by their spread keys, to `out`, if there are few values: whether
/// it has.
pub(super) fn sort<T: Reversible>(line: Row<T::Raw>, out: Row<T::Raw>, flip: T::Bits) -> bool {
    let len = line.len();
    let Some(sorter) = Lane::<T>::SORTERS[Isa::current() as usize] else { return false };
    // Bytes are counted as they are.
    if len < LEAST || T::Bits::BITS == 8 {
        return false;
    }
    let most = if T::SHARES { MOST_COUNTED } else { MOST_INTEGERS };
    let mut values = Counted::<Lane<T>>::new();
    let places = quick::uneven(len, SAMPLE);
    let key = |i| T::spread_key(line.get(i), flip).widened();
    let few = places.enumerate().all(|(number, i)| {
        count_more(&mut values, key(i), 0)
            && (number + 1 != FIRST || values.len() < FIRST)
            && values.len() <= most
    });
    if !few {
        return false;
    }
    let all = Mutex::new(Some(values.clone()));
    pool::for_ranges(len, COUNTED, &|piece| {
        let all = || all.lock().unwrap_or_else(PoisonError::into_inner);
        if all().is_none() {
            return;
        }
        let (mut keys, mut here) = ([Lane::<T>::ZERO; BATCH], Some(values.clone()));
        for start in piece.clone().step_by(BATCH) {
            let range = start..piece.end.min(start + BATCH);
            let keys = &mut keys[..range.len()];
            let places = range.into();
            with_isa(Isa::current(), ToKeys::<T, false> { line, places, keys, flip });
            let mut left = keys.len();
            for (value, count) in here.iter_mut().flatten() {
                // SAFETY: there are so many; the current instruction set is available.
                let found = unsafe { (sorter.occurrences)(keys.as_ptr(), keys.len(), *value) };
                *count += found;
                left -= found;
            }
            if left > 0 {
                with_isa(Isa::current(), CountOthers { keys, values: &mut here });
            }
            if here.is_none() {
                break;
            }
        }
        let mut all = all();
        *all = all.take().zip(here).and_then(|(mut all, here)| {
            here.into_iter().all(|(key, count)| count_more(&mut all, key, count)).then_some(all)
        });
    });
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(mut counted) = all else { return false };
    counted.sort_unstable();
    pool::for_ranges(len, COUNTED, &|piece| {
        let restore = |key| T::restore(T::Bits::narrowed(key), flip);
        with_isa(Isa::current(), Fill { counted: &counted, restore, out, piece });
    });
    true
}

/// Adds to the count of a value; false if it is new and there is no more room.
#[inline(always)]
fn count_more<B: Bits>(values: &mut Counted<B>, key: B, more: usize) -> bool {
    if let Some((_, count)) = values.iter_mut().find(|(value, _)| *value == key) {
        *count += more;
        return true;
    }
    let room = values.len() < MOST_COUNTED;
    if room {
        values.push((key, more));
    }
    room
}

/// Adds keys that are none of the values, and counts them; None if there is no room for them.
struct CountOthers<'a, B: Bits> {
    keys: &'a [B],
    values: &'a mut Option<Counted<B>>,
}

impl<B: Bits> Work for CountOthers<'_, B> {
    #[inline(always)]
    fn run(self) {
        let Some(mut values) = self.values.take() else { return };
        let known = values.len();
        for keys in self.keys.chunks(BLOCK) {
            let mut unknown = [B::ONES; BLOCK];
            for (value, _) in &values[..known] {
                for (unknown, key) in unknown.iter_mut().zip(keys) {
                    *unknown = if key == value { B::ZERO } else { *unknown };
                }
            }
            let others = keys.iter().zip(&unknown).filter(|(_, unknown)| **unknown != B::ZERO);
            let any = unknown[..keys.len()].iter().fold(false, |any, &x| any | (x != B::ZERO));
            if any && !others.into_iter().all(|(&key, _)| count_more(&mut values, key, 1)) {
                return;
            }
        }
        *self.values = Some(values);
    }
}

/// Writes as many of each value as there are, from the first place of all on: those of a piece.
struct Fill<'a, B, R, F> {
    counted: &'a Counted<B>,
    restore: F,
    out: Row<R>,
    piece: Range<usize>,
}

impl<B: Bits, R: Copy, F: Fn(B) -> R> Work for Fill<'_, B, R, F> {
    #[inline(always)]
    fn run(self) {
        let mut start = 0;
        for &(key, count) in self.counted {
            let end = start + count;
            let part = start.max(self.piece.start)..end.min(self.piece.end);
            if !part.is_empty() {
                self.out.fill(part, (self.restore)(key));
            }
            start = end;
        }
    }
}

/// Writes the indices of the elements, in their order, to `out`, if there are few values: whether it
/// has. There is a byte to work in for each element.
pub(super) fn argsort<T: Key>(
    line: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
    out: Row<i64>,
) -> bool {
    let Some(mut told) = Told::of(line, |raw| T::key(raw, flip), work) else { return false };
    bytes::place(told.pieces, told.which, &mut told.counts, out);
    true
}

/// Which of few values all elements are.
struct Told<'a> {
    pieces: Pieces,
    /// How many of each value, ascending, there are in each piece.
    counts: Vec<Counts>,
    /// The number of each element's value.
    which: &'a [u8],
}

impl<'a> Told<'a> {
    /// None if there are too many values, or too few elements.
    fn of<R: Copy + Send, B: Bits>(
        line: Row<R>,
        key: impl Fn(R) -> B + Copy + Sync,
        work: &'a mut [u8],
    ) -> Option<Told<'a>> {
        let len = line.len();
        if len < LEAST {
            return None;
        }
        let mut values = Values::new();
        if !quick::uneven(len, SAMPLE).all(|i| add(&mut values, key(line.get(i)))) {
            return None;
        }
        let which = &mut work[..len];
        let pieces = Pieces::of(len);
        let mut counts = vec![[0; MOST]; pieces.count()];
        loop {
            values.sort_unstable();
            let missed = Mutex::new(Some(Values::new()));
            let shared = Block(which.as_mut_ptr());
            let counted = Block(counts.as_mut_ptr());
            pool::run(pieces.count(), &|number| {
                let missed = || missed.lock().unwrap_or_else(PoisonError::into_inner);
                if missed().is_none() {
                    return;
                }
                let range = pieces.range(number);
                // SAFETY: pieces lie apart, and each has counts of its own.
                let (which, counts) = unsafe {
                    let at = shared.at(range.start);
                    (std::slice::from_raw_parts_mut(at, range.len()), &mut *counted.at(number))
                };
                let mut here = Some(Values::new());
                let values = &values[..];
                let tell = Tell { line, range, key, values, which, counts, missed: &mut here };
                with_isa(Isa::current(), tell);
                if here.as_ref().is_none_or(|here| !here.is_empty()) {
                    let mut all = missed();
                    *all = all.take().zip(here).and_then(|(mut all, here)| {
                        here.into_iter().all(|key| add(&mut all, key)).then_some(all)
                    });
                }
            });
            let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner)?;
            if missed.is_empty() {
                return Some(Told { pieces, counts, which });
            }
            if !missed.into_iter().all(|key| add(&mut values, key)) {
                return None;
            }
        }
    }
}

/// Adds a key to different ones, unless it is there; false if there is no more room.
fn add<B: Bits>(values: &mut Values<B>, key: B) -> bool {
    let is_new = !values.contains(&key);
    if is_new && values.len() < MOST {
        values.push(key);
    }
    !is_new || values.contains(&key)
}

/// Writes which values the elements of a piece are, and counts them.
struct Tell<'a, R, B, K> {
    line: Row<R>,
    range: Range<usize>,
    key: K,
    values: &'a [B],
    which: &'a mut [u8],
    counts: &'a mut Counts,
    /// Keys that are no value; None if there are too many.
    missed: &'a mut Option<Values<B>>,
}

impl<R: Copy, B: Bits, K: Fn(R) -> B> Work for Tell<'_, R, B, K> {
    #[inline(always)]
    fn run(self) {
        let Tell { line, range, key, values, which, counts, missed } = self;
        *counts = [0; MOST];
        for (which, start) in which.chunks_mut(BLOCK).zip(range.step_by(BLOCK)) {
            let mut keys = [B::ZERO; BLOCK];
            let places = start..start + which.len();
            line.each_of(places.into(), &mut keys, |_, raw| key(raw));
            // As wide as keys, so that one register has the outcome of a comparison.
            let mut told = [B::of(MOST); BLOCK];
            for (v, value) in (0..).zip(values) {
                for (told, key) in told.iter_mut().zip(&keys) {
                    *told = if key == value { B::of(v) } else { *told };
                }
            }
            for (which, told) in which.iter_mut().zip(&told) {
                *which = told.digit(0) as u8;
            }
            let mut left = which.len();
            for (v, count) in (0..).zip(counts.iter_mut().take(values.len())) {
                let here: u8 = which.iter().map(|&told| u8::from(told == v)).sum();
                *count += usize::from(here);
                left -= usize::from(here);
            }
            if left > 0 {
                let unknown =
                    which.iter().zip(&keys).filter(|(told, _)| usize::from(**told) == MOST);
                let known = missed
                    .as_mut()
                    .is_some_and(|missed| unknown.into_iter().all(|(_, &key)| add(missed, key)));
                if !known {
                    *missed = None;
                    return;
                }
            }
        }
    }
}
