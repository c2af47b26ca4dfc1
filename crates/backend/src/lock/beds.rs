//! Where threads sleep that wait for a block: a few places shared by all locks.
//!
//! Each lock has the place that its address gives. Who is woken for another lock looks at its own
//! and lies down again. Every generation has places of its own, since a fork may leave a mutex
//! locked. Called by the lock alone, which changes under the place's mutex what sleepers go by.

use std::sync::PoisonError;
use std::time::Duration;

use super::BlockLock;
use super::sync::{Condvar, Mutex, MutexGuard};

/// A place to sleep.
pub(super) struct Bed {
    mutex: Mutex<()>,
    bell: Condvar,
}

impl Bed {
    /// Keeps others from falling asleep here, and from waking anybody.
    pub(super) fn enter(&self) -> MutexGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the bell rings or until so much time has passed. May return early.
    pub(super) fn sleep(&self, place: MutexGuard<'_, ()>, limit: Option<Duration>) {
        match limit {
            None => drop(self.bell.wait(place)),
            // A model has no clock: the time has passed at once.
            Some(_) if cfg!(loom) => drop(place),
            Some(limit) => drop(self.bell.wait_timeout(place, limit)),
        }
    }

    /// Wakes all who sleep here.
    pub(super) fn wake(&self, place: MutexGuard<'_, ()>) {
        drop(place);
        self.bell.notify_all();
    }
}

/// The place of a lock.
#[cfg(not(loom))]
pub(super) fn bed(lock: &BlockLock) -> &'static Bed {
    use super::generation;
    const BITS: u32 = 6;
    static BEDS: [[Bed; 1 << BITS]; generation::COUNT] =
        [const { [const { Bed { mutex: Mutex::new(()), bell: Condvar::new() } }; 1 << BITS] };
            generation::COUNT];
    // Fibonacci hashing: locks lie at equal distances, which must not put them all in one place.
    let hash = (std::ptr::from_ref(lock).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let generation = generation::current() >> generation::MASK.trailing_zeros();
    &BEDS[generation as usize][(hash >> (u64::BITS - BITS)) as usize]
}

#[cfg(loom)]
pub(super) fn bed(_: &BlockLock) -> &'static Bed {
    loom::lazy_static! {
        static ref BED: Bed = Bed { mutex: Mutex::new(()), bell: Condvar::new() };
    }
    &BED
}
