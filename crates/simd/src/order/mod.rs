//! Sorting of unsigned integers by vectors: quicksort that parts whole registers, networks below.
//!
//! `Keys` is a register of integers (`registers.rs` implements it); here is the sort, generic over
//! it. [`SORT_U32`] and [`SORT_U64`] list what each [`Level`](crate::Level) has. Equal integers cannot
//! be told apart, so the outcome is that of any sort. Called by the CPU backend's sort.

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod registers;

/// The functions of one instruction set and integer.
#[derive(Clone, Copy, Debug)]
pub struct Sorter<E> {
    /// Sorts `count` integers at `data`; the outcome is at `to`, which is `data` or `other`. Both
    /// have room for `count`.
    ///
    /// # Safety
    /// The CPU has the level. `data` and `other` may be read and written for `count` integers, are
    /// initialised and do not overlap.
    pub sort: unsafe fn(data: *mut E, other: *mut E, to_other: bool, count: usize),
    /// Parts `count` integers at `from` by a pivot: those below it at the beginning of `to`, the
    /// others behind. How many are below.
    ///
    /// # Safety
    /// The CPU has the level; `from` may be read, `to` written, for `count` integers; no overlap.
    pub part: unsafe fn(from: *const E, to: *mut E, count: usize, pivot: E) -> usize,
}

/// What each level has for `u32`.
pub const SORT_U32: [Option<Sorter<u32>>; 3] = {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    {
        [None, Some(registers::AVX2_U32), Some(registers::AVX512_U32)]
    }
    #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
    [None; 3]
};

/// What each level has for `u64`; AVX2 neither compares nor orders these.
pub const SORT_U64: [Option<Sorter<u64>>; 3] = {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    {
        [None, None, Some(registers::AVX512_U64)]
    }
    #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
    [None; 3]
};

/// An integer that registers hold.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
trait Integer: Copy + Ord {
    /// The largest.
    const MAX: Self;
    /// The next larger one, if there is one.
    fn next(self) -> Option<Self>;
}

/// A register of unsigned integers.
///
/// # Safety of the methods
/// Called only where the instruction set is available; pointers are valid for the lanes named.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
trait Keys: Copy {
    type Elem: Integer;
    /// Lanes: 8 or 16.
    const LANES: usize;

    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    /// The first `count` lanes, 1 to `LANES`; the largest integer in the others.
    unsafe fn load_first(from: *const Self::Elem, count: usize) -> Self;
    /// Writes the first `count` lanes, 0 to `LANES`, and nothing else.
    unsafe fn store_first(self, to: *mut Self::Elem, count: usize);
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// Lane `i` gets lane `i ^ mask`.
    unsafe fn swapped(self, mask: usize) -> Self;
    /// The lesser of both, but in lanes whose number has `bit` the greater.
    unsafe fn exchanged(self, other: Self, bit: usize) -> Self;
    /// Lanes below the pivot first, the others behind, each in order; and how many are below.
    unsafe fn parted(self, pivot: Self) -> (Self, usize);
}

/// Registers that a network sorts at once.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
const NETWORK: usize = 16;

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod quick {
    use super::{Integer, Keys, NETWORK};

    /// See [`super::Sorter::sort`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn sort<V: Keys>(
        data: *mut V::Elem,
        other: *mut V::Elem,
        to_other: bool,
        count: usize,
    ) {
        // What is left to do; a stack of our own, since a recursive function cannot be inlined into
        // the one that has the instruction set. The larger part waits, so few parts ever do.
        let mut waiting = [(0usize, 0usize, false, 0u32); 64];
        let mut waits = 0;
        let (mut start, mut len, mut moved) = (0, count, false);
        // A sort that parts badly all the time is left to one that cannot.
        let mut turns = 2 * (usize::BITS - count.leading_zeros());
        loop {
            let (here, there) = if moved { (other, data) } else { (data, other) };
            let done = moved == to_other;
            // SAFETY: `start..start + len` lies in both arrays, by induction; the rest is the
            // caller's promise.
            let below = unsafe {
                let (from, to) = (here.add(start), there.add(start));
                let target = if done { from } else { to };
                if len <= NETWORK * V::LANES {
                    small::<V>(from, target, len);
                    None
                } else if turns == 0 {
                    std::slice::from_raw_parts_mut(from, len).sort_unstable();
                    if !done {
                        to.copy_from_nonoverlapping(from, len);
                    }
                    None
                } else {
                    let pivot = pivot::<V>(from, len);
                    let below = part::<V>(from, to, len, pivot);
                    if below > 0 {
                        Some(below)
                    } else if let Some(next) = pivot.next() {
                        // The pivot is the least: those equal to it are in their places.
                        let equal = part::<V>(from, to, len, next);
                        if done {
                            from.copy_from_nonoverlapping(to, equal);
                        }
                        start += equal;
                        len -= equal;
                        moved = !moved;
                        turns -= 1;
                        if len > 0 {
                            continue;
                        }
                        None
                    } else {
                        // All are the largest integer.
                        if !done {
                            to.copy_from_nonoverlapping(from, len);
                        }
                        None
                    }
                }
            };
            if let Some(below) = below {
                turns -= 1;
                moved = !moved;
                let (low, high) = ((start, below), (start + below, len - below));
                let (next, later) = if low.1 < high.1 { (low, high) } else { (high, low) };
                waiting[waits] = (later.0, later.1, moved, turns);
                waits += 1;
                (start, len) = next;
            } else if waits == 0 {
                return;
            } else {
                waits -= 1;
                (start, len, moved, turns) = waiting[waits];
            }
        }
    }

    /// An element near the middle: the median of some, evenly spread.
    ///
    /// # Safety
    /// `count` integers, more than a network sorts, may be read; the level is available.
    #[inline(always)]
    unsafe fn pivot<V: Keys>(from: *const V::Elem, count: usize) -> V::Elem {
        const SAMPLE: usize = 64;
        let mut sample = [V::Elem::MAX; SAMPLE];
        let wanted = if count < 1 << 12 { SAMPLE / 4 } else { SAMPLE };
        let step = count / wanted;
        for (i, element) in sample.iter_mut().enumerate().take(wanted) {
            // SAFETY: `wanted * step <= count`.
            *element = unsafe { from.add(i * step + step / 2).read() };
        }
        let at = sample.as_mut_ptr();
        // SAFETY: the sample has `wanted` elements, no more than a network sorts.
        unsafe { small::<V>(at, at, wanted) };
        sample[wanted / 2]
    }

    /// See [`super::Sorter::part`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn part<V: Keys>(
        from: *const V::Elem,
        to: *mut V::Elem,
        count: usize,
        pivot: V::Elem,
    ) -> usize {
        // SAFETY: `low..high` are the places not yet written, as many as elements not yet read;
        // whole registers are written at both of its ends, and there is room for two of them until
        // the last, which fills it exactly.
        unsafe {
            let pivot = V::splat(pivot);
            let (mut low, mut high) = (0, count);
            let odd = count % V::LANES;
            if odd > 0 {
                let (parted, below) = V::load_first(from, odd).parted(pivot);
                parted.store_first(to, below);
                // Lanes beyond the odd ones hold the largest integer and stand behind the others.
                let rest = odd - below;
                let mut last = [V::Elem::MAX; 64];
                parted.store(last.as_mut_ptr());
                to.add(high - rest).copy_from_nonoverlapping(last.as_ptr().add(below), rest);
                (low, high) = (below, high - rest);
            }
            let mut at = odd;
            while high - low > V::LANES {
                let (parted, below) = V::load(from.add(at)).parted(pivot);
                parted.store(to.add(low));
                parted.store(to.add(high - V::LANES));
                low += below;
                high -= V::LANES - below;
                at += V::LANES;
            }
            if high > low {
                let (parted, below) = V::load(from.add(at)).parted(pivot);
                parted.store(to.add(low));
                low += below;
            }
            low
        }
    }

    /// Sorts what a network takes, from one place to the same or another.
    ///
    /// # Safety
    /// `count` integers may be read at `from` and written at `to`; no more than [`NETWORK`]
    /// registers of them; the level is available.
    #[inline(always)]
    unsafe fn small<V: Keys>(from: *const V::Elem, to: *mut V::Elem, count: usize) {
        // SAFETY: the same contract.
        unsafe {
            match count.div_ceil(V::LANES) {
                0 => {}
                1 => network::<V, 1>(from, to, count),
                2 => network::<V, 2>(from, to, count),
                3..=4 => network::<V, 4>(from, to, count),
                5..=8 => network::<V, 8>(from, to, count),
                _ => network::<V, NETWORK>(from, to, count),
            }
        }
    }

    /// Sorts `N` registers, a power of two: each by itself, then bitonic merges.
    ///
    /// # Safety
    /// As [`small`]; `count` is at least 1 and at most `N` registers' lanes.
    #[inline(always)]
    unsafe fn network<V: Keys, const N: usize>(
        from: *const V::Elem,
        to: *mut V::Elem,
        count: usize,
    ) {
        // SAFETY: lanes below `count` exist; the level is available.
        unsafe {
            let mut rows = [V::splat(V::Elem::MAX); N];
            for (i, row) in rows.iter_mut().enumerate() {
                let start = i * V::LANES;
                if start + V::LANES <= count {
                    *row = V::load(from.add(start));
                } else if start < count {
                    *row = V::load_first(from.add(start), count - start);
                }
            }
            for row in &mut rows {
                *row = sorted(*row);
            }
            merge_runs::<V, N, 1>(&mut rows);
            merge_runs::<V, N, 2>(&mut rows);
            merge_runs::<V, N, 4>(&mut rows);
            merge_runs::<V, N, 8>(&mut rows);
            for (i, row) in rows.into_iter().enumerate() {
                let start = i * V::LANES;
                if start + V::LANES <= count {
                    row.store(to.add(start));
                } else if start < count {
                    row.store_first(to.add(start), count - start);
                }
            }
        }
    }

    /// Merges neighbouring ascending runs of `RUN` registers.
    ///
    /// # Safety
    /// The level is available.
    #[inline(always)]
    unsafe fn merge_runs<V: Keys, const N: usize, const RUN: usize>(rows: &mut [V; N]) {
        for pair in rows.chunks_exact_mut(2 * RUN) {
            // SAFETY: the caller's promise.
            unsafe {
                // The second run backwards, against the first.
                let (_, second) = pair.split_at_mut(RUN);
                second.reverse();
                for row in second {
                    *row = row.swapped(V::LANES - 1);
                }
                let mut distance = RUN;
                while distance > 0 {
                    for block in pair.chunks_exact_mut(2 * distance) {
                        for i in 0..distance {
                            let (a, b) = (block[i], block[i + distance]);
                            block[i] = a.min(b);
                            block[i + distance] = a.max(b);
                        }
                    }
                    distance /= 2;
                }
                for row in pair {
                    *row = merged(*row, V::LANES);
                }
            }
        }
    }

    /// Lanes against those `i ^ mask`: the lesser where the number lacks `bit`, else the greater.
    ///
    /// # Safety
    /// The level is available.
    #[inline(always)]
    unsafe fn exchanged<V: Keys>(row: V, mask: usize, bit: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { row.exchanged(row.swapped(mask), bit) }
    }

    /// All lanes in order. This and [`merged`] are written out, so that every shuffle is a constant.
    ///
    /// # Safety
    /// The level is available.
    #[inline(always)]
    unsafe fn sorted<V: Keys>(mut row: V) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            // The far half of each run backwards against the near one, then as in merges.
            row = exchanged(row, 1, 1);
            row = merged(exchanged(row, 3, 2), 2);
            row = merged(exchanged(row, 7, 4), 4);
            if V::LANES > 8 {
                row = merged(exchanged(row, 15, 8), 8);
            }
            row
        }
    }

    /// Bitonic runs of `run` lanes (up to 16), in order.
    ///
    /// # Safety
    /// The level is available.
    #[inline(always)]
    unsafe fn merged<V: Keys>(mut row: V, run: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            if run > 8 {
                row = exchanged(row, 8, 8);
            }
            if run > 4 {
                row = exchanged(row, 4, 4);
            }
            if run > 2 {
                row = exchanged(row, 2, 2);
            }
            exchanged(row, 1, 1)
        }
    }
}
