//! Forks, for tests: what a child finds, told by how it ends.
//!
//! Tests of other crates include this file by its path. Each is alone in its file, because it forks:
//! nothing else must run in its process, and nothing else of the test harness in the child.

#![allow(dead_code, reason = "most tests need no more than `forked`")]

use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// After so many seconds a child counts as one that hangs. Far more than any child needs on any
/// machine: a test of what is right never gets there.
const PATIENCE: u32 = 600;

/// Whether a forked child that does this says yes. One that says no, panics or hangs does not.
pub(crate) fn forked(does: impl FnOnce() -> bool) -> bool {
    match fork() {
        0 => leave(catch_unwind(AssertUnwindSafe(does)).unwrap_or(false)),
        child => was_good(child),
    }
}

/// Whether `then` holds in a child that is forked about so many turns after another thread has begun
/// `first`, which must hold too. All of it in a process of its own, for what happens once in a life.
pub(crate) fn forked_beside(
    turns: usize,
    first: impl FnOnce() -> bool + Send,
    then: impl FnOnce() -> bool,
) -> bool {
    forked(|| {
        let (ready, go) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let beside = scope.spawn(|| {
                ready.store(true, Ordering::Release);
                while !go.load(Ordering::Acquire) {
                    hint::spin_loop();
                }
                first()
            });
            while !ready.load(Ordering::Acquire) {
                thread::yield_now();
            }
            go.store(true, Ordering::Release);
            (0..turns).for_each(|_| hint::spin_loop());
            forked(then) && beside.join().unwrap_or(false)
        })
    })
}

/// Forks; 0 in the child, which is ended if it hangs, and must [`leave`].
pub(crate) fn fork() -> libc::pid_t {
    // SAFETY: the child takes locks, allocates and starts threads, which the system's library allows
    // after a fork, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system forks no more");
    if child == 0 {
        // SAFETY: no handler is installed: the signal ends the process.
        unsafe { libc::alarm(PATIENCE) };
    }
    child
}

/// What a child does at its end.
pub(crate) fn leave(good: bool) -> ! {
    // SAFETY: ends the process at once, without running anything else of the test harness.
    unsafe { libc::_exit(i32::from(!good)) }
}

/// Whether a child has ended, and well.
pub(crate) fn was_good(child: libc::pid_t) -> bool {
    let mut status = -1;
    // SAFETY: `status` is valid for writes, `child` is ours.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    ended == child && status == 0
}
