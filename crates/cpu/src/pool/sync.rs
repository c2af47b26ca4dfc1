//! What the claim protocol is made of: the standard library, or loom's model of it.
//!
//! Assumes nothing. Used by `claim.rs` only.

#[cfg(loom)]
pub(super) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize},
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize},
};

use std::time::Duration;
#[cfg(not(loom))]
use std::time::Instant;

/// Sleeps until the bell rings or some time has passed; under the model, it does not pass.
pub(super) fn wait_a_while<'a>(
    bell: &Condvar,
    guard: MutexGuard<'a, ()>,
) -> Option<MutexGuard<'a, ()>> {
    #[cfg(not(loom))]
    return bell.wait_timeout(guard, Duration::from_millis(50)).ok().map(|woken| woken.0);
    #[cfg(loom)]
    return bell.wait(guard).ok();
}

/// How long threads wait awake before they sleep.
pub const PATIENCE: Duration = Duration::from_micros(50);

/// Waits awake until `done`, but not longer than [`PATIENCE`]; says whether it was.
#[cfg(not(loom))]
pub(super) fn spin_until(done: impl Fn() -> bool) -> bool {
    let mut started = None;
    loop {
        // Reading the clock costs as much as one or two pauses: do it now and then.
        for _ in 0..16 {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        let started = *started.get_or_insert_with(Instant::now);
        if started.elapsed() >= PATIENCE {
            return false;
        }
    }
}

/// Under the model, time does not pass: looks once.
#[cfg(loom)]
pub(super) fn spin_until(done: impl Fn() -> bool) -> bool {
    done()
}
