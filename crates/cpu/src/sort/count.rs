//! Sorts elements of so few possible values that all of them can be counted, by counting them: those of
//! one or two bytes, and integers that lie close together.
//!
//! Threads count in tables of their own, of which there are several where they are small: one
//! counter that goes up time after time waits for itself. Called by `line.rs`.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::cast_slice_mut;

use super::key::{Bits, Reversible};
use super::{Block, Row};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// The least elements that one thread counts.
const PIECE: usize = 1 << 15;

/// The least elements of two bytes that are counted: there are counters to go through for all values.
const WIDE: usize = 1 << 17;

/// Elements that are counted before somebody may want to stop.
const LONG: usize = 1 << 22;

/// Elements that show whether there are few different ones.
const SAMPLE: usize = 64;

/// Counters of one byte's values, and how many tables of them one thread has.
const BYTE: usize = 1 << 8;
const TABLES: usize = 4;

/// The most values of integers that lie close together, and the least of these that are counted; and how
/// many tables of them one thread has.
const RANGE: usize = 1 << 11;
const RANGE_TABLES: usize = 2;

/// The least bytes of room that counting takes; more where there are more pieces than one.
pub(super) const ROOM: usize = TABLES * BYTE * size_of::<u32>();

/// Sorts `line` into `out`, if counting is the way to: whether it has. There are at least as many
/// bytes to work in as [`ROOM`], and eight for each element.
pub(super) fn sort<T: Reversible>(
    line: Row<T::Raw>,
    out: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
) -> bool {
    let len = line.len();
    if u32::try_from(len).is_err() {
        return false;
    }
    let key = |raw| T::spread_key(raw, flip).to_u128() as usize;
    let sampled = |i: usize| key(line.get(len / SAMPLE * i));
    match T::Bits::BITS {
        8 if len >= BYTE / 2 => count::<T, BYTE, TABLES>(line, out, flip, 0, work),
        // Few values are sorted faster than the counters of all are gone through.
        16 if len >= WIDE && !are_few(std::array::from_fn(sampled)) => {
            count::<T, { 1 << 16 }, 1>(line, out, flip, 0, work);
        }
        16 | 32 | 64 if !T::SHARES && len >= RANGE => {
            let few = Extent::of_all(std::array::from_fn::<_, SAMPLE, _>(sampled)).width() < RANGE;
            let extent = if few { extent::<T>(line, flip) } else { return false };
            match extent.width() {
                width if width < BYTE => {
                    count::<T, BYTE, TABLES>(line, out, flip, extent.least, work);
                }
                width if width < RANGE => {
                    count::<T, RANGE, RANGE_TABLES>(line, out, flip, extent.least, work);
                }
                _ => return false,
            }
        }
        _ => return false,
    }
    true
}

/// The least and the most of keys.
#[derive(Clone, Copy)]
struct Extent {
    least: usize,
    most: usize,
}

impl Extent {
    const NOTHING: Extent = Extent { least: usize::MAX, most: 0 };

    #[inline(always)]
    fn of_all(keys: impl IntoIterator<Item = usize>) -> Extent {
        keys.into_iter().fold(Extent::NOTHING, |Extent { least, most }, key| Extent {
            least: least.min(key),
            most: most.max(key),
        })
    }

    /// How far apart they are.
    fn width(self) -> usize {
        self.most.wrapping_sub(self.least)
    }
}

/// That of all keys of a line.
fn extent<T: Reversible>(line: Row<T::Raw>, flip: T::Bits) -> Extent {
    let (least, most) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
    pool::for_ranges(line.len(), PIECE, &|range| {
        let mut extent = Extent::NOTHING;
        with_isa(Isa::current(), Look::<T> { line, flip, range, extent: &mut extent });
        least.fetch_min(extent.least, Ordering::Relaxed);
        most.fetch_max(extent.most, Ordering::Relaxed);
    });
    Extent { least: least.into_inner(), most: most.into_inner() }
}

/// Looks for the least and the most of keys.
struct Look<'a, T: Reversible> {
    line: Row<T::Raw>,
    flip: T::Bits,
    range: Range<usize>,
    extent: &'a mut Extent,
}

impl<T: Reversible> Work for Look<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Look { line, flip, range, extent } = self;
        let key = |raw| T::spread_key(raw, flip).to_u128() as usize;
        *extent = match line.slice(range.clone()) {
            Some(elements) => Extent::of_all(elements.iter().map(|&raw| key(raw))),
            None => Extent::of_all(range.map(|i| key(line.get(i)))),
        };
    }
}

/// Sorts `line` into `out` by counting so many values from `least` on, in so many tables.
fn count<T: Reversible, const VALUES: usize, const TABLES: usize>(
    line: Row<T::Raw>,
    out: Row<T::Raw>,
    flip: T::Bits,
    least: usize,
    work: &mut [u8],
) {
    let len = line.len();
    let pieces = (len / PIECE).clamp(1, pool::threads());
    let counts = &mut cast_slice_mut::<u8, u32>(work)[..pieces * TABLES * VALUES];
    let each = Block(counts.as_mut_ptr());
    pool::run(pieces, &|piece| {
        // SAFETY: each piece has tables of its own.
        let counts = unsafe {
            let at = each.at(piece * TABLES * VALUES);
            std::slice::from_raw_parts_mut(at, TABLES * VALUES)
        };
        counts.fill(0);
        let end = len * (piece + 1) / pieces;
        for start in (len * piece / pieces..end).step_by(LONG) {
            pool::check();
            let range = start..end.min(start + LONG);
            // A key is below the number of values, so that the mask changes nothing but the check.
            let key = |raw| {
                let key = T::spread_key(raw, flip).to_u128() as usize;
                key.wrapping_sub(least) & (VALUES - 1)
            };
            match line.slice(range.clone()) {
                Some(elements) => {
                    for (i, &raw) in elements.iter().enumerate() {
                        counts[i % TABLES * VALUES + key(raw)] += 1;
                    }
                }
                None => range.for_each(|i| counts[i % TABLES * VALUES + key(line.get(i))] += 1),
            }
        }
    });
    let (total, others) = counts.split_at_mut(VALUES);
    for table in others.chunks(VALUES) {
        total.iter_mut().zip(table).for_each(|(total, count)| *total += count);
    }
    // Several groups of values for each thread: some may be most of the elements.
    let groups = if pieces == 1 { 1 } else { 8 * pieces };
    let mut starts = vec![0; groups];
    for group in 1..groups {
        let before = &total[VALUES * (group - 1) / groups..VALUES * group / groups];
        starts[group] = starts[group - 1] + before.iter().map(|&n| n as usize).sum::<usize>();
    }
    let total = &*total;
    pool::run(groups, &|group| {
        let (mut start, stop) = (starts[group], starts.get(group + 1).copied().unwrap_or(len));
        let values = VALUES * group / groups..VALUES * (group + 1) / groups;
        for (value, &count) in values.clone().zip(&total[values]) {
            let end = start + count as usize;
            out.fill_within(
                start..end,
                stop,
                T::restore(T::Bits::of(least.wrapping_add(value)), flip),
            );
            start = end;
        }
    });
}

/// Whether a sample is of few different values.
fn are_few(mut sample: [usize; SAMPLE]) -> bool {
    sample.sort_unstable();
    sample.windows(2).filter(|pair| pair[0] < pair[1]).count() < SAMPLE / 4
}
