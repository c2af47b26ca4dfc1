//! A child that is forked while other threads take and give back memory can do so itself.
//!
//! Alone in its file, because it forks: nothing else must run in this process. Uses the public face
//! of `tilework_backend`.

#![cfg(all(unix, not(loom)))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tilework_backend::{DeviceId, Storage, UserWrite, empty_cache};

const HERE: DeviceId = DeviceId { backend: "cpu", index: None };

/// Takes blocks of all kinds (with the header, without it, pages of their own), writes to them and
/// gives them back; says whether they are as they should be.
fn works(rounds: usize) -> bool {
    (0..rounds).all(|round| {
        [100, 5_000, 50_000, 2 << 20].into_iter().all(|bytes| {
            let Ok(block) = Storage::host(HERE, bytes, true) else { return false };
            let Ok(mut guard) = UserWrite::new("test", &block) else { return false };
            let clean = guard[0] == 0 && guard[bytes - 1] == 0;
            guard[0] = round as u8 | 1;
            clean && guard.len() == bytes
        })
    })
}

#[test]
fn a_child_allocates_whatever_other_threads_were_doing() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(works(10));
                    empty_cache();
                }
            });
        }
        let good = (0..100).all(|_| {
            // SAFETY: the child only allocates, which glibc allows after a fork, and leaves by
            // `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // A child that hangs is killed, and its parent sees that.
                // SAFETY: no handler is installed; the signal ends the process.
                unsafe { libc::alarm(20) };
                let good = works(5);
                // SAFETY: ends the process at once, without anything else of the test harness.
                unsafe { libc::_exit(if good { 0 } else { 1 }) };
            }
            let mut status = -1;
            // SAFETY: `status` is valid for writes, `child` is ours.
            let ended = unsafe { libc::waitpid(child, &mut status, 0) };
            ended == child && status == 0
        });
        stop.store(true, Ordering::Relaxed);
        assert!(good, "a child hung, crashed or got memory that it should not");
    });
}
