//! Where packed panels and partial results lie.
//!
//! A plan says how much [`Room`] its product needs, and the memory for it is there before anything
//! is written: nothing can fail any more once a product runs. What the threads of a product need
//! for themselves are slots of one [`Area`], which a thread holds for as long as it works on a
//! piece. Called by `plan`, `matrix` and `vector`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Areas and slots start at a page, if their memory does.
const ALIGN: usize = 4096;

/// How many bytes a product needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// Once.
    pub(super) whole: usize,
    /// For every thread that works on it.
    pub(super) each: usize,
}

impl Room {
    /// With so many threads.
    pub(super) fn bytes(&self, threads: usize) -> usize {
        rounded(self.whole).saturating_add(rounded(self.each).saturating_mul(threads))
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX)
}

/// How many bytes `count` elements of type `T` take, so that what follows is aligned to 128 bytes;
/// more than there can be, if there are too many to be counted.
pub(super) fn room<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>()).checked_next_multiple_of(128).unwrap_or(usize::MAX)
}

/// The memory of one product.
pub(super) struct Area {
    whole: *mut u8,
    /// What a thread holds while it works on a piece.
    pub(super) slots: Slots,
}

impl Area {
    /// At `start`, where there are `room.bytes(threads)` bytes (none are needed for no room).
    pub(super) fn new(start: *mut u8, room: Room, threads: usize) -> Area {
        let slots = start.wrapping_add(rounded(room.whole));
        Area { whole: start, slots: Slots::new(slots, rounded(room.each), threads) }
    }

    /// What the product has once.
    pub(super) fn whole(&self) -> *mut u8 {
        self.whole
    }
}

/// Pieces of memory for threads.
pub(super) struct Slots {
    start: *mut u8,
    each: usize,
    count: usize,
    /// A bit for every slot that is held.
    held: [AtomicU64; Self::MOST / 64],
}

// SAFETY: a slot is used by whoever has set its bit, and by nobody else.
unsafe impl Sync for Slots {}

impl Slots {
    /// As many threads as the pool has at most.
    const MOST: usize = 1024;

    /// `count` slots of `each` bytes, one after the other.
    pub(super) fn new(start: *mut u8, each: usize, count: usize) -> Slots {
        let held = [const { AtomicU64::new(0) }; Self::MOST / 64];
        Slots { start, each, count: count.clamp(1, Self::MOST), held }
    }

    /// Calls `work` with the address of a slot that is nobody else's meanwhile.
    #[inline]
    pub(super) fn with<R>(&self, work: impl FnOnce(*mut u8) -> R) -> R {
        if self.each == 0 {
            return work(self.start);
        }
        let held = self.claim();
        work(self.start.wrapping_add(held.slot * self.each))
    }

    fn claim(&self) -> Held<'_> {
        // A thread begins at a place of its own, so that it finds in its cache what it had before.
        thread_local! {
            static PLACE: usize = {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                NEXT.fetch_add(1, Ordering::Relaxed)
            };
        }
        let first = PLACE.try_with(|place| place % self.count).unwrap_or(0);
        loop {
            for slot in (first..self.count).chain(0..first) {
                let (bits, bit) = (&self.held[slot / 64], 1 << (slot % 64));
                if bits.fetch_or(bit, Ordering::Acquire) & bit == 0 {
                    return Held { slots: self, slot };
                }
            }
            // The pool has been given more threads than it had when memory was taken. Pieces do not
            // wait for each other otherwise, so one of them will end.
            std::thread::yield_now();
        }
    }
}

/// A slot that a thread holds; given back also if a piece is stopped half-way.
struct Held<'a> {
    slots: &'a Slots,
    slot: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let bit = 1 << (self.slot % 64);
        self.slots.held[self.slot / 64].fetch_and(!bit, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_never_share_a_slot_and_more_of_them_than_slots_wait() {
        const EACH: usize = 4096;
        let mut memory = vec![0u64; 3 * EACH / 8];
        let slots = Slots::new(memory.as_mut_ptr().cast(), EACH, 3);
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let slots = &slots;
                scope.spawn(move || {
                    for round in 0..500 {
                        slots.with(|at| {
                            let at = at.cast::<u64>();
                            // SAFETY: the slot lies in the memory and is this thread's.
                            unsafe {
                                at.write_volatile(thread << 32 | round);
                                std::thread::yield_now();
                                assert_eq!(at.read_volatile(), thread << 32 | round);
                            }
                        });
                    }
                });
            }
        });
        assert!(slots.held.iter().all(|bits| bits.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn sizes_that_cannot_be_counted_are_too_large_for_any_memory() {
        assert_eq!(room::<f64>(usize::MAX / 4), usize::MAX);
        assert_eq!(Room { whole: usize::MAX, each: 1 }.bytes(2), usize::MAX);
        assert_eq!(Room { whole: 1, each: 1 }.bytes(2), 3 * ALIGN);
        assert_eq!(Room::default().bytes(1000), 0);
    }
}
