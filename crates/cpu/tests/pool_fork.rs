//! A forked child has none of the workers, starts its own and does not hang.
//!
//! Alone in its file, because it forks: nothing else must run in this process. Uses the public face
//! of `tilework_cpu::pool`.

#![cfg(all(unix, not(loom)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tilework_cpu::pool::{run, set_threads};

/// Whether each of many pieces ran once, over several jobs.
fn works() -> bool {
    (2..50).all(|pieces| {
        let ran: Vec<_> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        run(pieces, &|piece| _ = ran[piece].fetch_add(1, Ordering::Relaxed));
        ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1)
    })
}

/// Forks; the child runs jobs, forks a grandchild that does too, and leaves.
fn fork_and_check(generations: usize) {
    // SAFETY: the child only runs jobs (which allocate and start threads: glibc allows that after
    // a fork) and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // A child that hangs is killed, and its parent sees that.
        // SAFETY: no handler is installed; the signal ends the process.
        unsafe { libc::alarm(20) };
        let mut good = works();
        if generations > 1 {
            fork_and_check(generations - 1);
        }
        good &= works();
        // SAFETY: ends the process at once, without running anything else of the test harness.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writes, `child` is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child hung, crashed or found a piece missing");
}

#[test]
fn children_have_their_own_pool() {
    // Before the pool exists, after it, with its workers awake, with them asleep.
    set_threads(4);
    fork_and_check(1);
    assert!(works());
    fork_and_check(2);
    thread::sleep(Duration::from_millis(10));
    fork_and_check(2);
    assert!(works());

    // While another thread is in the middle of jobs.
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(works());
            }
        });
        for _ in 0..50 {
            fork_and_check(1);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(works());
}
