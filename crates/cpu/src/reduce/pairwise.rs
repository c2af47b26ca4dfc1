//! Partial results merged in pairs as they come, in order.
//!
//! Like a binary counter: a slot of level k holds the merge of 2^k neighbours. What is merged with
//! what depends on the number of results only. Used by the kernels of reductions.

use std::mem::MaybeUninit;

/// Up to 2^(LEVELS - 1) results of type `T`, merged in pairs; further ones are merged into the last
/// level one after another.
pub(super) struct Pairwise<T, const LEVELS: usize> {
    /// Level k holds a value exactly if bit k of `full` is set.
    levels: [MaybeUninit<T>; LEVELS],
    full: u32,
}

impl<T: Copy, const LEVELS: usize> Pairwise<T, LEVELS> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        const { assert!(LEVELS > 0 && LEVELS <= 32) };
        Pairwise { levels: [MaybeUninit::uninit(); LEVELS], full: 0 }
    }

    /// Adds a result that comes after all before; `merge` takes the earlier one first.
    #[inline(always)]
    pub(super) fn push(&mut self, mut value: T, merge: impl Fn(T, T) -> T) {
        let mut level = 0;
        while self.full >> level & 1 == 1 {
            // SAFETY: the bit says that the level holds a value.
            value = merge(unsafe { self.levels[level].assume_init() }, value);
            self.full &= !(1 << level);
            if level + 1 < LEVELS {
                level += 1;
            }
        }
        self.levels[level] = MaybeUninit::new(value);
        self.full |= 1 << level;
    }

    /// The merge of all, followed by a last one.
    #[inline(always)]
    pub(super) fn finish_with(self, last: T, merge: impl Fn(T, T) -> T) -> T {
        let mut all = last;
        let mut left = self.full;
        while left != 0 {
            let level = left.trailing_zeros() as usize;
            left &= left - 1;
            // SAFETY: the bit says that the level holds a value.
            all = merge(unsafe { self.levels[level].assume_init() }, all);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_merged_in_order_and_evenly() {
        for n in 1..70u32 {
            // Text, so that order shows; depth, so that evenness does.
            let merge = |a: (u32, u32, u32), b: (u32, u32, u32)| {
                assert_eq!(a.1, b.0);
                (a.0, b.1, a.2.max(b.2) + 1)
            };
            let mut all = Pairwise::<_, 7>::new();
            for i in 0..n - 1 {
                all.push((i, i + 1, 0), merge);
            }
            let (first, last, depth) = all.finish_with((n - 1, n, 0), merge);
            assert_eq!((first, last), (0, n));
            assert!(depth <= n.next_power_of_two().trailing_zeros() + 1, "{n}: {depth}");
        }
    }
}
