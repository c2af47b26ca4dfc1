//! Quicksort that parts whole registers, from one array to another and back.
//!
//! Generic over [`Keys`]; inlined into the entries of `registers.rs`, which have the instruction set.

use std::hint::select_unpredictable;

use super::network::{NETWORK, merge_two};
use super::{Integer, Keys};

/// The least registers that are merged from both ends.
const BOTH_ENDS: usize = 8;

/// How many networks' worth of integers are sorted by networks and merged.
const MERGED: usize = 2;

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
    if count <= NETWORK * V::LANES {
        // SAFETY: the same contract.
        return unsafe { V::sort_few(data, if to_other { other } else { data }, count) };
    }
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
        let parts = unsafe {
            let (from, to) = (here.add(start), there.add(start));
            let target = if done { from } else { to };
            if len <= NETWORK * V::LANES {
                V::sort_few(from, target, len);
                None
            } else if len <= MERGED * NETWORK * V::LANES {
                sort_some::<V>(from, if done { to } else { from }, target, len);
                None
            } else if turns == 0 {
                std::slice::from_raw_parts_mut(from, len).sort_unstable();
                if !done {
                    to.copy_from_nonoverlapping(from, len);
                }
                None
            } else {
                let (pivot, repeats) = pivot::<V>(from, len);
                let below = if repeats { 0 } else { part::<V>(from, to, len, pivot) };
                // One that is frequent, or the least, leaves those equal to it where they belong.
                if below > 0 {
                    Some((below, len - below))
                } else {
                    let (below, above) = part_around::<V>(from, to, len, pivot);
                    let equal = len - below - above;
                    std::slice::from_raw_parts_mut(target.add(below), equal).fill(pivot);
                    Some((below, above))
                }
            }
        };
        if let Some((below, above)) = parts {
            turns -= 1;
            moved = !moved;
            let (low, high) = ((start, below), (start + len - above, above));
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

/// Sorts more than a network does: two halves by networks, from `from` to `between`, which may be the
/// same, and merged from there to `to`, which is another. That takes less than to find a pivot and to
/// part by it, after which most networks would be half empty.
///
/// # Safety
/// `count` integers, no more than two networks sort, may be read at `from` and written at the others;
/// the level is available.
#[inline(always)]
unsafe fn sort_some<V: Keys>(
    from: *const V::Elem,
    between: *mut V::Elem,
    to: *mut V::Elem,
    count: usize,
) {
    let half = NETWORK * V::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        for (start, count) in [(0, half), (half, count - half)] {
            V::sort_few(from.add(start), between.add(start), count);
        }
        merge::<V>(between, half, between.add(half), count - half, to);
    }
}

/// An element near the middle, the median of some, evenly spread; and whether another of those is
/// equal to it.
///
/// # Safety
/// `count` integers, more than a network sorts, may be read; the level is available.
#[inline(always)]
unsafe fn pivot<V: Keys>(from: *const V::Elem, count: usize) -> (V::Elem, bool) {
    const SAMPLE: usize = 64;
    let mut sample = [V::Elem::MAX; SAMPLE];
    let wanted = if count < 1 << 12 { SAMPLE / 2 } else { SAMPLE };
    let step = count / wanted;
    for (i, element) in sample.iter_mut().enumerate().take(wanted) {
        // SAFETY: `wanted * step <= count`.
        *element = unsafe { from.add(i * step + step / 2).read() };
    }
    let at = sample.as_mut_ptr();
    // SAFETY: the sample has `wanted` elements, no more than a network sorts.
    unsafe { V::sort_few(at, at, wanted) };
    let middle = wanted / 2;
    let pivot = sample[middle];
    (pivot, sample[middle - 1] == pivot || sample[middle + 1] == pivot)
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
    // SAFETY: `low..high` are the places not yet written, as many as elements not yet read, and
    // after the odd ones a multiple of whole registers.
    unsafe {
        let pivot = V::splat(pivot);
        let odd = count % V::LANES;
        let (mut low, above) = few::<V>(from, odd, to, to.add(count), |x, low, end| {
            let below = x.part_to(pivot, low, end);
            (below, V::LANES - below)
        });
        let mut high = count - above;
        let mut at = odd;
        while at < count {
            let below = V::load(from.add(at)).part_to(pivot, to.add(low), to.add(high));
            low += below;
            high -= V::LANES - below;
            at += V::LANES;
        }
        low
    }
}

/// See [`super::Sorter::part_around`].
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn part_around<V: Keys>(
    from: *const V::Elem,
    to: *mut V::Elem,
    count: usize,
    pivot: V::Elem,
) -> (usize, usize) {
    // SAFETY: `low..high` are the places not yet written, at least as many as elements not yet
    // read: two whole registers until the last one.
    unsafe {
        let pivot = V::splat(pivot);
        let (mut low, mut high, mut at) = (0, count, 0);
        while at + 2 * V::LANES <= count {
            let row = V::load(from.add(at));
            let (below, above) = row.part_around_to(pivot, to.add(low), to.add(high));
            low += below;
            high -= above;
            at += V::LANES;
        }
        while at < count {
            let left = V::LANES.min(count - at);
            let (below, above) =
                few::<V>(from.add(at), left, to.add(low), to.add(high), |x, l, e| {
                    x.part_around_to(pivot, l, e)
                });
            low += below;
            high -= above;
            at += left;
        }
        (low, count - high)
    }
}

/// See [`super::Sorter::merge`].
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn merge<V: Keys>(
    a: *const V::Elem,
    a_count: usize,
    b: *const V::Elem,
    b_count: usize,
    to: *mut V::Elem,
) {
    let count = a_count + b_count;
    for (run, run_count, other) in [(a, a_count, b_count), (b, b_count, a_count)] {
        if other == 0 {
            // SAFETY: the same contract.
            return unsafe { to.copy_from_nonoverlapping(run, run_count) };
        }
    }
    // SAFETY: what is read lies between beginnings and ends, and no more is written than both have.
    unsafe {
        let [a_end, b_end] = [a.add(a_count), b.add(b_count)];
        let ([mut a_next, mut b_next], [mut a_last, mut b_last]) = ([a, b], [a_end, b_end]);
        // The next register of the run that goes on with the lesser integer: all that are not yet
        // read come after the lesser half of it and of what is left of those before. The largest
        // integer stands for what a run's last register lacks.
        let mut next = || {
            let no_greater = a_next.min(a_end.sub(1)).read() <= b_next.min(b_end.sub(1)).read();
            let first = (b_next >= b_end) | ((a_next < a_end) & no_greater);
            let at = select_unpredictable(first, a_next, b_next);
            let end = select_unpredictable(first, a_end, b_end);
            let after = at.wrapping_add(V::LANES);
            a_next = select_unpredictable(first, after, a_next);
            b_next = select_unpredictable(first, b_next, after);
            if after <= end {
                V::load(at)
            } else {
                V::load_first(at, end.offset_from(at).max(0).cast_unsigned())
            }
        };
        if count < BOTH_ENDS * V::LANES {
            let registers = a_count.div_ceil(V::LANES) + b_count.div_ceil(V::LANES);
            let mut rest = next();
            for done in (0..count).step_by(V::LANES) {
                let other =
                    if done < (registers - 1) * V::LANES { next() } else { V::splat(V::Elem::MAX) };
                let (low, high) = merge_two(rest, other);
                low.store_first(to.add(done), V::LANES.min(count - done));
                rest = high;
            }
            return;
        }
        // The same from the ends backwards, with the least integer instead: a merge waits for the one
        // before it, so two at a time take hardly longer than one.
        let mut before = || {
            let greater =
                a_last.wrapping_sub(1).max(a).read() > b_last.wrapping_sub(1).max(b).read();
            let first = (b_last <= b) | ((a_last > a) & greater);
            let end = select_unpredictable(first, a_last, b_last);
            let start = select_unpredictable(first, a, b);
            let at = end.wrapping_sub(V::LANES);
            a_last = select_unpredictable(first, at, a_last);
            b_last = select_unpredictable(first, b_last, at);
            if at >= start {
                V::load(at)
            } else {
                V::load_last(end, end.offset_from(start).max(0).cast_unsigned())
            }
        };
        let (mut lower, mut upper) = (next(), before());
        // Both meet in the middle, where the last registers write the same.
        for done in (0..count.div_ceil(2)).step_by(V::LANES) {
            let (low, high) = merge_two(lower, next());
            low.store(to.add(done));
            lower = high;
            let (low, high) = merge_two(before(), upper);
            high.store(to.add(count - done - V::LANES));
            upper = low;
        }
    }
}

/// See [`super::Sorter::occurrences`].
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn occurrences<V: Keys>(
    from: *const V::Elem,
    count: usize,
    integer: V::Elem,
) -> usize {
    // SAFETY: what is read lies before the end.
    unsafe {
        let wanted = V::splat(integer);
        let (mut found, mut at, odd) = (0, 0, count % V::LANES);
        while at + 4 * V::LANES <= count {
            let equal = |row: usize| V::load(from.add(at + row * V::LANES)).equal(wanted);
            found += (equal(0) + equal(1)) + (equal(2) + equal(3));
            at += 4 * V::LANES;
        }
        while at + V::LANES <= count {
            found += V::load(from.add(at)).equal(wanted);
            at += V::LANES;
        }
        found += V::load_first(from.add(at), odd).equal(wanted);
        // The largest integer stands for what the last register lacks.
        if integer == V::Elem::MAX { found - (V::LANES - odd) } else { found }
    }
}

/// Does what `store` does for `count` integers, up to a register of them, and writes no more than
/// what belongs there: some from `low` on, some up to `end`. How many of both.
///
/// # Safety
/// `count` integers may be read at `from`; what `store` says how many of may be written; the level
/// is available.
#[inline(always)]
unsafe fn few<V: Keys>(
    from: *const V::Elem,
    count: usize,
    low: *mut V::Elem,
    end: *mut V::Elem,
    store: impl Fn(V, *mut V::Elem, *mut V::Elem) -> (usize, usize),
) -> (usize, usize) {
    if count == 0 {
        return (0, 0);
    }
    // SAFETY: the room has two registers, and one to read on behind them; the rest is the caller's
    // promise.
    unsafe {
        let mut room = [V::Elem::MAX; 48];
        let at = room.as_mut_ptr();
        let (below, padded) = store(V::load_first(from, count), at, at.add(2 * V::LANES));
        // Lanes beyond the count hold the largest integer, and stand behind the others.
        let above = padded.saturating_sub(V::LANES - count);
        V::load(at).store_first(low, below);
        V::load(at.add(2 * V::LANES - padded)).store_first(end.sub(above), above);
        (below, above)
    }
}
