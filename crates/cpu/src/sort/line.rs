//! Sorts one contiguous line, stably.
//!
//! Values are sorted as their keys and had back from them; elements that share a key (NaN, zeros of
//! both signs) are put back in the order they came in. Indices are sorted together with keys, in
//! one integer where both fit. Called by the drivers in `sort/mod.rs`, once for each line.

use tilework_ops::{Complex, Element, bf16, f16};

use super::key::{Bits, Key, Reversible};
use super::{Block, radix};
use crate::pool;

/// Elements of one piece of work that goes over all of a line.
const PIECE: usize = 1 << 16;

/// How the elements of a dtype are sorted.
pub(super) trait Line: Key {
    /// What values are sorted as.
    type Sorted: Bits;

    /// A key together with an index; keys too wide for any integer have another way.
    type Pair: Bits;

    /// Sorts `line` in place; `work` is as long.
    fn sort(line: &mut [Self::Raw], flip: Self::Bits, work: [&mut [Self::Sorted]; 2]);
}

macro_rules! reversible {
    ($($type:ty, $pair:ty;)*) => {$(
        impl Line for $type {
            type Sorted = Self::Bits;
            type Pair = $pair;
            fn sort(line: &mut [Self::Raw], flip: Self::Bits, work: [&mut [Self::Bits]; 2]) {
                sort_by_keys::<$type>(line, flip, work);
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
            type Sorted = u128;
            type Pair = u128;
            fn sort(line: &mut [Self::Raw], flip: Self::Bits, work: [&mut [u128]; 2]) {
                let mut indices = vec![0; line.len()];
                argsort::<$type>(line, &mut indices, flip, work);
                let sorted: Vec<Self::Raw> = indices.iter().map(|&i| line[i as usize]).collect();
                line.copy_from_slice(&sorted);
            }
        }
    )*};
}

by_indices!(Complex<f32> Complex<f64>);

/// Writes `f` of each element's place and value, by several threads if there are many.
fn each<A: Copy + Sync, B: Copy + Send>(
    from: &[A],
    to: &mut [B],
    f: impl Fn(usize, A) -> B + Sync,
) {
    assert_eq!(from.len(), to.len());
    let to = Block(to.as_mut_ptr());
    pool::for_ranges(from.len(), PIECE, &|range| {
        // SAFETY: the range lies in both slices, and no other piece has it.
        let target = unsafe { std::slice::from_raw_parts_mut(to.at(range.start), range.len()) };
        for ((target, &x), i) in target.iter_mut().zip(&from[range.clone()]).zip(range) {
            *target = f(i, x);
        }
    });
}

fn sort_by_keys<T: Reversible>(
    line: &mut [T::Raw],
    flip: T::Bits,
    [keys, other]: [&mut [T::Bits]; 2],
) {
    each(line, keys, |_, raw| T::spread_key(raw, flip));
    radix::sort(keys, other, 0);
    let shared = if T::SHARES { Shared::<T>::of(line, keys, flip) } else { None };
    each(keys, line, |_, key| T::restore(key, flip));
    if let Some(shared) = shared {
        shared.put_back(line);
    }
}

/// Elements that share a key, in the order they came in.
struct Shared<T: Element> {
    /// Where the zeros begin in the sorted line.
    first_zero: usize,
    zeros: Vec<T::Raw>,
    nans: Vec<T::Raw>,
}

impl<T: Reversible> Shared<T> {
    /// Those of `line`, if there are any that matter; `keys` are its sorted keys.
    fn of(line: &[T::Raw], keys: &[T::Bits], flip: T::Bits) -> Option<Shared<T>> {
        let nan = <T::Bits as Bits>::ONES;
        let nans = keys.len() - keys.partition_point(|&key| key < nan);
        // Zeros of one sign only need nothing: equal keys are then equal bits.
        let [low, high] = T::zero_keys(flip);
        let first_zero = keys.partition_point(|&key| key < low);
        let middle = keys.partition_point(|&key| key < high);
        let last = keys.partition_point(|&key| key <= high);
        let mixed = first_zero < middle && middle < last;
        if nans == 0 && !mixed {
            return None;
        }
        let pick = |wanted: bool, is_it: &dyn Fn(T::Raw) -> bool| -> Vec<T::Raw> {
            if wanted {
                line.iter().copied().filter(|&raw| is_it(raw)).collect()
            } else {
                Vec::new()
            }
        };
        Some(Shared {
            first_zero,
            zeros: pick(mixed, &T::is_zero),
            nans: pick(nans > 0, &|raw| T::key(raw, flip) == nan),
        })
    }

    fn put_back(&self, line: &mut [T::Raw]) {
        line[self.first_zero..][..self.zeros.len()].copy_from_slice(&self.zeros);
        let numbers = line.len() - self.nans.len();
        line[numbers..].copy_from_slice(&self.nans);
    }
}

/// Writes the indices that would sort `line` to `indices`; all slices are as long.
pub(super) fn argsort<T: Line>(
    line: &[T::Raw],
    indices: &mut [i64],
    flip: T::Bits,
    [pairs, other]: [&mut [T::Pair]; 2],
) {
    let half = T::Pair::BITS / 2;
    if T::Bits::BITS <= half && line.len() as u64 <= u64::MAX >> (64 - half) {
        each(line, pairs, |i, raw| T::Pair::with_index(T::key(raw, flip), i));
        radix::sort(pairs, other, half);
        each(pairs, indices, |_, pair| pair.index());
        return;
    }
    let keys = line.iter().map(|&raw| T::key(raw, flip).to_u128());
    let mut pairs: Vec<(u128, i64)> = keys.zip(0..).collect();
    // Indices differ, so there are no ties whose order could be lost.
    pairs.sort_unstable();
    for (index, pair) in indices.iter_mut().zip(pairs) {
        *index = pair.1;
    }
}
