//! Large blocks that are kept for reuse, for the whole process: a table of places, without a lock.
//!
//! A place holds one block. Its `size` says what is there, and whoever changes it from a size or
//! from [`EMPTY`] to [`BUSY`] owns the place until it writes the next state. Nobody waits for an
//! owner: a busy place is passed by. So a process that forks while another thread is between the
//! two leaves its child with one place that stays busy, and never with a lock that stays locked.
//! Called by `host` alone.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// How many bytes are kept at most.
const KEPT: usize = 2 << 30;
/// How many blocks are kept at most: few enough to look through in less time than a page takes.
const PLACES: usize = 256;

/// Nothing is there. No block has this size or the next.
const EMPTY: usize = 0;
/// Somebody is about to put or to take a block.
const BUSY: usize = 1;

struct Place {
    size: AtomicUsize,
    address: AtomicPtr<u8>,
}

static TABLE: [Place; PLACES] =
    [const { Place { size: AtomicUsize::new(EMPTY), address: AtomicPtr::new(ptr::null_mut()) } };
        PLACES];

static BYTES: AtomicUsize = AtomicUsize::new(0);

impl Place {
    /// Makes the place this thread's own, if it is in this state.
    fn own(&self, state: usize) -> bool {
        // Most places are in another state, and looking is cheaper than trying.
        self.size.load(Relaxed) == state
            && self.size.compare_exchange(state, BUSY, Acquire, Relaxed).is_ok()
    }

    /// The block of this size that is here, which leaves.
    fn take(&self, size: usize) -> Option<NonNull<u8>> {
        if !self.own(size) {
            return None;
        }
        let address = self.address.load(Relaxed);
        self.size.store(EMPTY, Release);
        BYTES.fetch_sub(size, Relaxed);
        NonNull::new(address)
    }
}

/// A block of exactly this size, if there is one.
pub(super) fn take(size: usize) -> Option<NonNull<u8>> {
    TABLE.iter().find_map(|place| place.take(size))
}

/// Any block, and its size.
pub(super) fn take_any() -> Option<(NonNull<u8>, usize)> {
    TABLE.iter().find_map(|place| match place.size.load(Relaxed) {
        EMPTY | BUSY => None,
        size => place.take(size).map(|address| (address, size)),
    })
}

/// Keeps a block; false if there is no room, and then the block is still the caller's.
pub(super) fn put(address: NonNull<u8>, size: usize) -> bool {
    if BYTES.fetch_add(size, Relaxed).saturating_add(size) <= KEPT
        && let Some(place) = TABLE.iter().find(|place| place.own(EMPTY))
    {
        place.address.store(address.as_ptr(), Relaxed);
        place.size.store(size, Release);
        return true;
    }
    BYTES.fetch_sub(size, Relaxed);
    false
}
