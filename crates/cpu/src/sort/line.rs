//! Sorts one line of values, stably.
//!
//! Values are sorted as their keys and had back from them; elements that share a key (NaN, zeros of
//! both signs) are put back in the order they came in. Complex numbers are fetched by their sorted
//! indices. Both need room, which [`Line::room`] measures, so that whoever calls can have it before
//! the first result is written. Called by the drivers in `sort/mod.rs`, once for each line.

use std::ops::Range;

use bytemuck::cast_slice_mut;
use smallvec::{SmallVec, smallvec};
use tilework_ops::{Complex, bf16, f16};

use super::key::{Bits, Key, Reversible};
use super::quick::{Make, Take};
use super::runs::Runs;
use super::short::{Lines, Network};
use super::{Block, Places, Row, count, few, indices, quick, radix, short};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// Elements of one piece of work that goes over all of a line.
pub(super) const PIECE: usize = 1 << 16;

/// Elements that are looked at together.
const TOGETHER: usize = 256;

/// Elements whose keys stay in the nearest cache.
const BATCH: usize = 1 << 10;

/// How the elements of a dtype are sorted.
pub(super) trait Line: Key {
    /// Bytes that sorting `len` values takes.
    fn room(len: usize) -> usize;

    /// Writes the elements of `line`, in order, to `out`; `work` has as many bytes as there is room
    /// asked for.
    fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]);

    /// Sorts short lines in columns, if that can be done: whether it has been.
    fn sort_short(
        _network: &Network,
        _from: Lines<Self::Raw>,
        _to: Lines<Self::Raw>,
        _flip: Self::Bits,
        _work: &mut [u8],
    ) -> bool {
        false
    }
}

macro_rules! reversible {
    ($($type:ty)*) => {$(
        impl Line for $type {
            fn room(len: usize) -> usize {
                (2 * len * size_of::<Lane<$type>>()).max(count::ROOM)
            }
            fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]) {
                sort_by_keys::<$type>(line, out, flip, work);
            }
            fn sort_short(
                network: &Network,
                from: Lines<Self::Raw>,
                to: Lines<Self::Raw>,
                flip: Self::Bits,
                work: &mut [u8],
            ) -> bool {
                short::sort::<$type>(network, from, to, flip, work)
            }
        }
    )*};
}

reversible!(bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

macro_rules! by_indices {
    ($($type:ty)*) => {$(
        impl Line for $type {
            fn room(len: usize) -> usize {
                len * size_of::<i64>() + indices::room::<$type>(len)
            }
            fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]) {
                let (work, order) = work.split_at_mut(indices::room::<$type>(line.len()));
                let order = cast_slice_mut::<u8, i64>(order);
                // SAFETY: the row is used no longer than the slice is borrowed.
                let places = unsafe { Row::new(order.as_mut_ptr(), 1, order.len()) };
                indices::argsort::<$type>(line, flip, work, places);
                out.fill_from(0..line.len(), order, |index| line.get(index as usize));
            }
        }
    )*};
}

by_indices!(Complex<f32> Complex<f64>);

/// The integer that elements are sorted as.
pub(super) type Lane<T> = <<T as Key>::Bits as Bits>::Lane;

/// Sorts the integers that `make` makes by their bits from `low` on, and hands them to `take`;
/// `data` and `other` are room for them. Those bits below must be in order already, and differ in
/// all elements.
pub(super) fn sort_integers<E: Bits>(
    data: &mut [E],
    other: &mut [E],
    low: u32,
    make: &Make<'_, E>,
    take: &Take<'_, E>,
) {
    let Some(sorter) = E::SORTERS[Isa::current() as usize] else {
        quick::make_all(data, make);
        return quick::hand_on(sort_made(data, other, low), take);
    };
    // SAFETY: the current instruction set is available.
    unsafe { quick::sort(sorter, data, other, make, take) }
}

/// Sorts integers like [`sort_integers`] that are there already: the array that the outcome is in.
pub(super) fn sort_made<'a, E: Bits>(
    data: &'a mut [E],
    other: &'a mut [E],
    low: u32,
) -> &'a mut [E] {
    assert_eq!(data.len(), other.len());
    if let Some(runs) = Runs::few(data) {
        return runs.merge(data, other);
    }
    let Some(sorter) = E::SORTERS[Isa::current() as usize] else {
        return radix::sort(data, other, low);
    };
    // SAFETY: the current instruction set is available, and both have as many integers.
    unsafe { (sorter.sort)(data.as_mut_ptr(), other.as_mut_ptr(), false, data.len()) };
    data
}

fn sort_by_keys<T: Reversible>(
    line: Row<T::Raw>,
    out: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
) {
    let len = line.len();
    if !few::sort::<T>(line, out, flip) && !count::sort::<T>(line, out, flip, work) {
        let keys = &mut cast_slice_mut::<u8, Lane<T>>(work)[..2 * len];
        let (keys, other) = keys.split_at_mut(len);
        let make = |places: Places<'_>, keys: &mut [Lane<T>]| {
            with_isa(Isa::current(), ToKeys::<T, false> { line, places, keys, flip });
        };
        let take = |range: Range<usize>, keys: &[Lane<T>]| {
            with_isa(Isa::current(), FromKeys::<T> { keys, out, range, flip });
        };
        sort_integers(keys, other, 0, &make, &take);
    }
    if T::SHARES {
        put_back::<T>(line, out, flip);
    }
}

/// Makes keys of elements, or only of zeros and all ones of the others.
pub(super) struct ToKeys<'a, T: Reversible, const ZEROS: bool> {
    pub(super) line: Row<T::Raw>,
    pub(super) places: Places<'a>,
    pub(super) keys: &'a mut [Lane<T>],
    pub(super) flip: T::Bits,
}

impl<T: Reversible, const ZEROS: bool> Work for ToKeys<'_, T, ZEROS> {
    #[inline(always)]
    fn run(self) {
        let flip = self.flip;
        self.line.each_of(self.places, self.keys, |_, raw| {
            let left_out = ZEROS && !T::is_zero(raw);
            if left_out { Lane::<T>::ONES } else { T::spread_key(raw, flip).widened() }
        });
    }
}

/// Makes elements of keys.
struct FromKeys<'a, T: Reversible> {
    keys: &'a [Lane<T>],
    out: Row<T::Raw>,
    range: Range<usize>,
    flip: T::Bits,
}

impl<T: Reversible> Work for FromKeys<'_, T> {
    #[inline(always)]
    fn run(self) {
        let flip = self.flip;
        let restore = |key| T::restore(T::Bits::narrowed(key), flip);
        self.out.fill_from(self.range, self.keys, restore);
    }
}

/// Writes elements that share a key in the order they came in; those of `out` are sorted.
fn put_back<T: Reversible>(line: Row<T::Raw>, out: Row<T::Raw>, flip: T::Bits) {
    let before = |bound: &dyn Fn(T::Bits) -> bool| {
        out.partition_point(|raw| bound(T::spread_key(raw, flip)))
    };
    // Zeros of one sign only need nothing: equal keys are then equal bits.
    let [low, high] = T::zero_keys(flip);
    let first = before(&|key| key < low);
    let middle = before(&|key| key < high);
    let last = before(&|key| key <= high);
    if first < middle && middle < last {
        put_zeros_back::<T>(line, out, flip, first..last);
    }
    // Most NaN have the bits that their key gives back.
    let numbers = before(&|key| key < T::Bits::ONES);
    let mut unusual = false;
    if numbers < line.len() {
        with_isa(Isa::current(), AnyUnusual::<T> { line, found: &mut unusual });
    }
    if unusual {
        put_back_one_by_one(line, out, numbers..line.len(), T::is_nan);
    }
}

/// Writes zeros of both signs in the order they came in.
fn put_zeros_back<T: Reversible>(
    line: Row<T::Raw>,
    out: Row<T::Raw>,
    flip: T::Bits,
    places: Range<usize>,
) {
    let Some(sorter) = Lane::<T>::SORTERS[Isa::current() as usize] else {
        return put_back_one_by_one(line, out, places, T::is_zero);
    };
    each_piece_of(line, places, T::is_zero, &|piece, places| {
        let (mut keys, mut zeros) = ([Lane::<T>::ZERO; BATCH], [Lane::<T>::ZERO; BATCH]);
        let mut at = places.start;
        for start in piece.clone().step_by(BATCH) {
            let range = start..piece.end.min(start + BATCH);
            let (keys, zeros) = (&mut keys[..range.len()], &mut zeros[..range.len()]);
            let (count, places) = (range.len(), range.into());
            with_isa(Isa::current(), ToKeys::<T, true> { line, places, keys, flip });
            // What comes before the key of no number, in its order.
            // SAFETY: there are so many of both; the current instruction set is available.
            let count =
                unsafe { (sorter.part)(keys.as_ptr(), zeros.as_mut_ptr(), count, Lane::<T>::ONES) };
            let range = at..at + count;
            with_isa(Isa::current(), FromKeys::<T> { keys: &zeros[..count], out, range, flip });
            at += count;
        }
    });
}

/// Finds whether there is NaN of other bits than the usual one.
struct AnyUnusual<'a, T: Reversible> {
    line: Row<T::Raw>,
    found: &'a mut bool,
}

impl<T: Reversible> Work for AnyUnusual<'_, T> {
    #[inline(always)]
    fn run(self) {
        let line = self.line;
        *self.found = match line.slice(0..line.len()) {
            Some(elements) => elements.chunks(TOGETHER).any(|elements| {
                elements.iter().fold(false, |seen, &raw| seen | T::is_unusual(raw))
            }),
            None => (0..line.len()).any(|i| T::is_unusual(line.get(i))),
        };
    }
}

/// Writes those elements of which something holds, as many as there are places, in their order.
fn put_back_one_by_one<R: Copy + Send>(
    line: Row<R>,
    out: Row<R>,
    places: Range<usize>,
    holds: impl Fn(R) -> bool + Copy + Sync,
) {
    each_piece_of(line, places, holds, &|piece, places| {
        // Written whether it holds or not, where that does no harm: the next one that does comes here
        // too. False when all places have been written.
        let mut at = places.start;
        let mut put = |raw| {
            let more = at < places.end;
            if more {
                out.put(at, raw);
                at += usize::from(holds(raw));
            }
            more
        };
        match line.slice(piece.clone()) {
            Some(elements) => elements.iter().all(|&raw| put(raw)),
            None => piece.clone().all(|i| put(line.get(i))),
        };
    });
}

/// Calls `f` with pieces of a line and where those of their elements belong of which something holds,
/// of all places for these; on any thread.
fn each_piece_of<R: Copy + Send>(
    line: Row<R>,
    places: Range<usize>,
    holds: impl Fn(R) -> bool + Copy + Sync,
    f: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let len = line.len();
    let piece = |number: usize| number * PIECE..len.min((number + 1) * PIECE);
    let mut starts: SmallVec<[usize; 1]> = smallvec![places.start; len.div_ceil(PIECE)];
    let counts = Block(starts.as_mut_ptr());
    // Where a piece begins is known from those before it.
    pool::run(starts.len() - 1, &|number| {
        // SAFETY: each piece has a place of its own, behind the first.
        let count = unsafe { &mut *counts.at(number + 1) };
        with_isa(Isa::current(), Count { line, range: piece(number), holds, count });
    });
    for number in 1..starts.len() {
        starts[number] += starts[number - 1];
    }
    pool::run(starts.len(), &|number| {
        let end = starts.get(number + 1).copied().unwrap_or(places.end);
        f(piece(number), starts[number]..end);
    });
}

/// Counts the elements of which something holds.
struct Count<'a, R, F> {
    line: Row<R>,
    range: Range<usize>,
    holds: F,
    count: &'a mut usize,
}

impl<R: Copy, F: Fn(R) -> bool> Work for Count<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let Count { line, range, holds, count } = self;
        *count = match line.slice(range.clone()) {
            Some(elements) => elements.iter().map(|&raw| usize::from(holds(raw))).sum(),
            None => range.map(|i| usize::from(holds(line.get(i)))).sum(),
        };
    }
}
