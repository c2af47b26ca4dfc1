//! Quicksort that parts whole registers, from one array to another and back.
//!
//! Generic over [`Keys`]; inlined into the entries of `registers.rs`, which have the instruction set.

use super::network::{NETWORK, small};
use super::{Integer, Keys};

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
