//! Sorts what consists of few ascending or descending runs already, by merging them.
//!
//! That covers what is in order, backwards, constant, or has been put together of sorted pieces.
//! Looking for runs ends at the first elements of what has too many. Equal integers cannot be told
//! apart, so it does not matter which of them a merge takes first. Called by `quick.rs` and
//! `line.rs`.

use std::ops::Range;

use smallvec::SmallVec;

use super::Block;
use super::key::Bits;
use super::quick::{Take, hand_on};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// The most runs that merging is faster for than sorting.
const MOST: usize = 4;

/// The most elements that one piece of work merges, and the least that are worth sharing out.
const PIECE: usize = 1 << 15;
const LEAST: usize = 1 << 11;

/// Elements that are looked at together.
const TOGETHER: usize = 128;

/// The runs that integers consist of.
#[derive(Default)]
pub(super) struct Runs {
    /// Where they end.
    ends: SmallVec<[usize; MOST]>,
    /// Those that descend.
    backwards: SmallVec<[Range<usize>; MOST]>,
}

impl Runs {
    /// The runs, if they are so few that merging them is worth while.
    pub(super) fn few<E: Bits>(data: &[E]) -> Option<Runs> {
        let (mut runs, mut start) = (Runs::default(), 0);
        while start < data.len() {
            if runs.ends.len() == MOST {
                return None;
            }
            let rest = &data[start..];
            let descends = rest.len() > 1 && rest[0] > rest[1];
            let end = start + if descends { run::<E, true>(rest) } else { run::<E, false>(rest) };
            if descends {
                runs.backwards.push(start..end);
            }
            runs.ends.push(end);
            start = end;
        }
        Some(runs)
    }

    /// Ascending runs that end there.
    pub(super) fn ascending(ends: impl Iterator<Item = usize>) -> Runs {
        Runs { ends: ends.collect(), backwards: SmallVec::new() }
    }

    /// Sorts what these are the runs of, using `other`, which is as long: the array that the outcome
    /// is in.
    pub(super) fn merge<'a, E: Bits>(
        mut self,
        data: &'a mut [E],
        other: &'a mut [E],
    ) -> &'a mut [E] {
        let [sorted, _] = self.merge_all_but(1, [data, other]);
        sorted
    }

    /// Sorts what these are the runs of, using `other`, which is as long, and hands it to `take`.
    pub(super) fn merge_for<E: Bits>(
        mut self,
        data: &mut [E],
        other: &mut [E],
        take: &Take<'_, E>,
    ) {
        let [from, to] = self.merge_all_but(2, [data, other]);
        match self.ends[..] {
            [middle, _] => merge_pair(&from[..middle], &from[middle..], to, take),
            _ => hand_on(from, take),
        }
    }

    /// Merges until no more runs are left than that; the array that they are in comes first.
    fn merge_all_but<'a, E: Bits>(
        &mut self,
        left: usize,
        [mut from, mut to]: [&'a mut [E]; 2],
    ) -> [&'a mut [E]; 2] {
        for run in self.backwards.drain(..) {
            from[run].reverse();
        }
        while self.ends.len() > left {
            let mut start = 0;
            let pairs = self.ends.chunks(2).map(|pair| {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                let (first, second) = from[start..end].split_at(middle - start);
                merge_pair(first, second, &mut to[start..end], &|_, _| {});
                start = end;
                end
            });
            self.ends = pairs.collect();
            (from, to) = (to, from);
        }
        [from, to]
    }
}

/// How many elements the run at the beginning has.
fn run<E: Bits, const DESCENDS: bool>(data: &[E]) -> usize {
    let goes_on = |pair: &[E]| if DESCENDS { pair[0] >= pair[1] } else { pair[0] <= pair[1] };
    // Most that are no run end at once.
    let first = data.windows(2).take(TOGETHER).position(|pair| !goes_on(pair));
    let mut len = first.map_or(TOGETHER.min(data.len() - 1), |at| at) + 1;
    if first.is_none() {
        with_isa(Isa::current(), GoOn::<E, DESCENDS> { data, len: &mut len });
        len += data[len - 1..].windows(2).take_while(|pair| goes_on(pair)).count();
    }
    len
}

/// Lengthens a run by groups of elements, each looked at as a whole.
struct GoOn<'a, E, const DESCENDS: bool> {
    data: &'a [E],
    len: &'a mut usize,
}

impl<E: Bits, const DESCENDS: bool> Work for GoOn<'_, E, DESCENDS> {
    #[inline(always)]
    fn run(self) {
        while *self.len + TOGETHER <= self.data.len() {
            let first = &self.data[*self.len - 1..][..TOGETHER];
            let second = &self.data[*self.len..][..TOGETHER];
            let breaks = first
                .iter()
                .zip(second)
                .fold(false, |seen, (a, b)| seen | if DESCENDS { a < b } else { a > b });
            if breaks {
                break;
            }
            *self.len += TOGETHER;
        }
    }
}

/// Merges two runs, shared out among the threads, and hands on what each has merged.
fn merge_pair<E: Bits>(a: &[E], b: &[E], to: &mut [E], take: &Take<'_, E>) {
    let (len, target) = (to.len(), Block(to.as_mut_ptr()));
    let sorter = E::SORTERS[Isa::current() as usize];
    let grain = len.div_ceil(pool::hands()).clamp(LEAST, PIECE);
    pool::for_ranges(len, grain, &|range| {
        let [first, last] = [range.start, range.end].map(|place| from_first(a, b, place));
        let (a, b) = (&a[first..last], &b[range.start - first..range.end - last]);
        // SAFETY: the range lies in the slice, and no other piece has it.
        let to = unsafe { std::slice::from_raw_parts_mut(target.at(range.start), range.len()) };
        match sorter {
            // SAFETY: the level is available, and there is room for both.
            Some(sorter) => unsafe {
                (sorter.merge)(a.as_ptr(), a.len(), b.as_ptr(), b.len(), to.as_mut_ptr());
            },
            None => merge_plainly(a, b, to),
        }
        take(range, to);
    });
}

/// How many of the least `count` elements of two runs are of the first.
fn from_first<E: Bits>(a: &[E], b: &[E], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let middle = low.midpoint(high);
        // That element of the first belongs to them if it does not come after the last of the
        // second that would have to.
        if a[middle] <= b[count - middle - 1] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Merges two runs element by element, without a branch that could be mispredicted.
fn merge_plainly<E: Bits>(a: &[E], b: &[E], to: &mut [E]) {
    let (mut i, mut j) = (0, 0);
    for to in to.iter_mut() {
        if i == a.len() || j == b.len() {
            break;
        }
        let second = b[j] < a[i];
        *to = if second { b[j] } else { a[i] };
        i += usize::from(!second);
        j += usize::from(second);
    }
    to[i + b.len()..].copy_from_slice(&a[i..]);
    to[a.len() + j..].copy_from_slice(&b[j..]);
}
