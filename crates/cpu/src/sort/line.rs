//! Sorts one line, stably.
//!
//! Values are sorted as their keys and had back from them; elements that share a key (NaN, zeros of
//! both signs) are put back in the order they came in. Indices are sorted together with keys, in
//! one integer where both fit. Both need room, which [`Line::room`] and [`argsort_room`] measure, so
//! that whoever calls can have it before the first result is written. Called by the drivers in
//! `sort/mod.rs`, once for each line.

use std::ops::Range;

use bytemuck::{bytes_of, cast_slice_mut};
use tilework_ops::{Complex, bf16, f16};

use super::key::{Bits, Key, Reversible};
use super::quick::{Make, Take};
use super::{Row, quick, radix};
use crate::isa::Isa;
use crate::pool;

/// Elements of one piece of work that goes over all of a line.
const PIECE: usize = 1 << 16;

/// How the elements of a dtype are sorted.
pub(super) trait Line: Key {
    /// A key together with an index; keys too wide for any integer have another way.
    type Pair: Bits;

    /// Bytes that sorting `len` values takes.
    fn room(len: usize) -> usize;

    /// Writes the elements of `line`, in order, to `out`; `work` has as many bytes as there is room
    /// asked for.
    fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]);
}

macro_rules! reversible {
    ($($type:ty, $pair:ty;)*) => {$(
        impl Line for $type {
            type Pair = $pair;
            fn room(len: usize) -> usize {
                2 * len * size_of::<Self::Bits>()
            }
            fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]) {
                sort_by_keys::<$type>(line, out, flip, work);
            }
        }
    )*};
}

reversible! {
    bool, u64; i8, u64; i16, u64; i32, u64; i64, u128;
    u8, u64; u16, u64; u32, u64; u64, u128;
    f16, u64; bf16, u64; f32, u64; f64, u128;
}

macro_rules! by_indices {
    ($($type:ty)*) => {$(
        impl Line for $type {
            type Pair = u128;
            fn room(len: usize) -> usize {
                argsort_room::<$type>(len)
            }
            fn sort(line: Row<Self::Raw>, out: Row<Self::Raw>, flip: Self::Bits, work: &mut [u8]) {
                argsort::<$type>(line, flip, work, |i, index| out.put(i, line.get(index as usize)));
            }
        }
    )*};
}

by_indices!(Complex<f32> Complex<f64>);

/// Sorts the integers that `make` makes by their bits from `low` on, and hands them to `take`;
/// `data` and `other` are room for them. Those bits below must be in order already, and differ in
/// all elements.
fn sort_integers<E: Bits>(
    data: &mut [E],
    other: &mut [E],
    low: u32,
    make: &Make<'_, E>,
    take: &Take<'_, E>,
) {
    let Some(sorter) = E::SORTERS[Isa::current() as usize] else {
        let len = data.len();
        quick::make_all(data, make);
        radix::sort(data, other, low);
        return pool::for_ranges(len, PIECE, &|range| take(range.clone(), &data[range]));
    };
    // SAFETY: the current instruction set is available.
    unsafe { quick::sort(sorter, data, other, make, take) }
}

/// Makes `f` of the places and values of some elements.
#[inline(always)]
fn each_of<R: Copy, B>(line: Row<R>, range: Range<usize>, to: &mut [B], f: impl Fn(usize, R) -> B) {
    if let Some(elements) = line.slice(range.clone()) {
        for ((to, &x), i) in to.iter_mut().zip(elements).zip(range) {
            *to = f(i, x);
        }
    } else {
        for (to, i) in to.iter_mut().zip(range) {
            *to = f(i, line.get(i));
        }
    }
}

fn sort_by_keys<T: Reversible>(
    line: Row<T::Raw>,
    out: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
) {
    let (keys, other) = cast_slice_mut::<u8, T::Bits>(work).split_at_mut(line.len());
    let make = |range: Range<usize>, keys: &mut [T::Bits]| {
        each_of(line, range, keys, |_, raw| T::spread_key(raw, flip));
    };
    let take = |range: Range<usize>, keys: &[T::Bits]| {
        out.fill_from(range, keys, |key| T::restore(key, flip));
    };
    sort_integers(keys, other, 0, &make, &take);
    if T::SHARES {
        put_back::<T>(line, out, keys, flip);
    }
}

/// Writes elements that share a key in the order they came in; `keys` are sorted.
fn put_back<T: Reversible>(line: Row<T::Raw>, out: Row<T::Raw>, keys: &[T::Bits], flip: T::Bits) {
    let nan = <T::Bits as Bits>::ONES;
    let numbers = keys.partition_point(|&key| key < nan);
    // Zeros of one sign only need nothing: equal keys are then equal bits.
    let [low, high] = T::zero_keys(flip);
    let first_zero = keys.partition_point(|&key| key < low);
    let middle = keys.partition_point(|&key| key < high);
    let last = keys.partition_point(|&key| key <= high);
    let mixed = first_zero < middle && middle < last;
    if mixed {
        refill(line, out, first_zero..last, T::is_zero);
    }
    // Most NaN have the bits that their key gives back.
    let (usual, is_nan) = (T::restore(nan, flip), |raw| T::key(raw, flip) == nan);
    let is_other = |raw: T::Raw| is_nan(raw) & (bytes_of(&raw) != bytes_of(&usual));
    if numbers < keys.len() && (0..line.len()).any(|i| is_other(line.get(i))) {
        refill(line, out, numbers..keys.len(), is_nan);
    }
}

/// Writes those elements of which something holds, as many as there are places, in their order.
fn refill<R: Copy>(line: Row<R>, out: Row<R>, mut places: Range<usize>, holds: impl Fn(R) -> bool) {
    for i in 0..line.len() {
        if places.is_empty() {
            break;
        }
        let raw = line.get(i);
        // Written whether it holds or not, where that does no harm: the next one that does comes here too.
        out.put(places.start, raw);
        places.start += usize::from(holds(raw));
    }
}

/// Whether a key of `T` and an index below `len` fit into its pair.
fn fits_pair<T: Line>(len: usize) -> bool {
    let half = T::Pair::BITS / 2;
    T::Bits::BITS <= half && len as u64 <= u64::MAX >> (64 - half)
}

/// Bytes that sorting the indices of `len` elements takes.
pub(super) fn argsort_room<T: Line>(len: usize) -> usize {
    let each = if fits_pair::<T>(len) { 2 * size_of::<T::Pair>() } else { size_of::<[u128; 2]>() };
    len * each
}

/// Calls `put` with places and the indices of the elements that belong there; `work` has as many
/// bytes as there is room asked for.
pub(super) fn argsort<T: Line>(
    line: Row<T::Raw>,
    flip: T::Bits,
    work: &mut [u8],
    put: impl Fn(usize, i64) + Sync,
) {
    if fits_pair::<T>(line.len()) {
        let (pairs, other) = cast_slice_mut::<u8, T::Pair>(work).split_at_mut(line.len());
        let make = |range: Range<usize>, pairs: &mut [T::Pair]| {
            each_of(line, range, pairs, |i, raw| T::Pair::with_index(T::key(raw, flip), i));
        };
        let take = |range: Range<usize>, pairs: &[T::Pair]| {
            range.zip(pairs).for_each(|(i, pair)| put(i, pair.index()));
        };
        return sort_integers(pairs, other, T::Pair::BITS / 2, &make, &take);
    }
    let pairs = cast_slice_mut::<u8, [u128; 2]>(work);
    each_of(line, 0..line.len(), pairs, |i, raw| [T::key(raw, flip).to_u128(), i as u128]);
    // Indices differ, so there are no ties whose order could be lost. A long line sorts for seconds
    // in one go: it asks now and then whether to go on.
    let mut compared = 0u32;
    pairs.sort_unstable_by(|a, b| {
        compared = compared.wrapping_add(1);
        if compared.is_multiple_of(1 << 16) {
            pool::check();
        }
        a.cmp(b)
    });
    for (i, pair) in pairs.iter().enumerate() {
        put(i, pair[1] as i64);
    }
}
