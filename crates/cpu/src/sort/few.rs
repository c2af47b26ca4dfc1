//! Sorts the indices of a line of few different elements by counting them.
//!
//! A sample says whether there may be few; values that it has missed are found on the first way through
//! all elements. Each is compared with all values, which vectors do without looking at what comes.
//! Called by `indices.rs`.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::key::{Bits, Key};
use super::{Block, Row, quick};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// The most different values, and elements that show whether there may be so few.
const MOST: usize = 16;
const SAMPLE: usize = 64;

/// The least elements that are worth it.
const LEAST: usize = 1 << 10;

/// Elements of a piece, whose values are counted apart.
const PIECE: usize = 1 << 12;

/// Elements that are compared together: a byte counts them.
const BLOCK: usize = 128;

/// Pieces whose indices are written in turn: the place of the next index of a value waits for the one
/// before it.
const STREAMS: usize = 4;

/// Different keys.
type Values<B> = SmallVec<[B; MOST]>;

/// How many of each value there are, or where the next one belongs.
type Counts = [usize; MOST];

/// Writes the indices of the elements, in their order, to `out`, if there are few values: whether it
/// has. There is a byte to work in for each element.
pub(super) fn argsort<T: Key>(
    line: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
    out: Row<i64>,
) -> bool {
    let Some(told) = Told::of(line, |raw| T::key(raw, flip), work) else { return false };
    let Told { mut counts, which } = told;
    // Where each piece puts the indices of each value: after all lower values, and those of earlier
    // pieces.
    let mut next = 0;
    for v in 0..MOST {
        for counts in &mut counts {
            next += std::mem::replace(&mut counts[v], next);
        }
    }
    let pieces = which.len().div_ceil(PIECE);
    pool::run(pieces.div_ceil(STREAMS), &|group| {
        let first = group * STREAMS;
        let start = first * PIECE;
        if start + STREAMS * PIECE <= which.len() {
            let mut places: [Counts; STREAMS] = std::array::from_fn(|s| counts[first + s]);
            for i in start..start + PIECE {
                for (s, places) in places.iter_mut().enumerate() {
                    put(out, places, which[i + s * PIECE], i + s * PIECE);
                }
            }
        } else {
            let pieces = which[start..].chunks(PIECE).zip(&counts[first..]);
            for (number, (piece, &places)) in (first..).zip(pieces) {
                let mut places = places;
                for (i, &which) in (number * PIECE..).zip(piece) {
                    put(out, &mut places, which, i);
                }
            }
        }
    });
    true
}

/// Writes an index to the next place of its value.
#[inline(always)]
fn put(out: Row<i64>, places: &mut Counts, which: u8, index: usize) {
    // There are no more values, so that the mask changes nothing but the check.
    let place = &mut places[usize::from(which) % MOST];
    out.put(*place, index as i64);
    *place += 1;
}

/// Which of few values all elements are.
struct Told<'a> {
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
        let mut counts = vec![[0; MOST]; len.div_ceil(PIECE)];
        loop {
            values.sort_unstable();
            let missed = Mutex::new(Some(Values::new()));
            let shared = Block(which.as_mut_ptr());
            let counted = Block(counts.as_mut_ptr());
            pool::run(len.div_ceil(PIECE), &|number| {
                let missed = || missed.lock().unwrap_or_else(PoisonError::into_inner);
                if missed().is_none() {
                    return;
                }
                let range = number * PIECE..len.min((number + 1) * PIECE);
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
                return Some(Told { counts, which });
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
            let mut told = [MOST as u8; BLOCK];
            for (v, value) in (0..).zip(values) {
                for (told, key) in told.iter_mut().zip(&keys) {
                    *told = if key == value { v } else { *told };
                }
            }
            which.copy_from_slice(&told[..which.len()]);
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
