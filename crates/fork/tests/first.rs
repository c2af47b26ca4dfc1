//! A child that is forked while another thread takes the very first mutex finds it free.
//!
//! There is one such moment in the life of a process, so every try is a process of its own. Alone in
//! its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

mod forked;

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use forked::forked;
use tilework_fork::ForkMutex;

static FIRST: ForkMutex<u64> = ForkMutex::new(0);

#[test]
fn a_fork_beside_the_first_lock_finds_it_free() {
    for wait in 0..400 {
        let good = forked(|| {
            let (ready, go) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| {
                    ready.store(true, Ordering::Release);
                    while !go.load(Ordering::Acquire) {
                        hint::spin_loop();
                    }
                    *FIRST.lock() += 1;
                });
                while !ready.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                go.store(true, Ordering::Release);
                (0..wait).for_each(|_| hint::spin_loop());
                forked(|| *FIRST.lock() <= 1)
            })
        });
        assert!(good, "a fork after {wait} turns hung");
    }
}
