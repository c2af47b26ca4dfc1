//! A child that is forked while other threads hold mutexes finds them free and their values whole.
//!
//! Alone in its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tilework_fork::ForkMutex;

/// Two numbers that are equal whenever nobody holds them.
static PAIR: ForkMutex<(u64, u64)> = ForkMutex::new((0, 0));
static OTHER: ForkMutex<Vec<u64>> = ForkMutex::new(Vec::new());

/// Changes both for as long as a fork takes, to be met in the middle.
fn change() {
    let mut pair = PAIR.lock();
    pair.0 += 1;
    (0..1000).for_each(|_| std::hint::spin_loop());
    pair.1 += 1;
    drop(pair);
    let mut other = OTHER.lock();
    if other.len() > 100 {
        other.clear();
    }
    let next = other.len() as u64;
    other.push(next);
}

fn is_whole() -> bool {
    let pair = *PAIR.lock();
    let other = OTHER.lock();
    pair.0 == pair.1 && other.iter().enumerate().all(|(k, &value)| value == k as u64)
}

#[test]
fn a_child_finds_everything_free_and_whole() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    change();
                    // Whoever forks waits for both mutexes, which are not fair.
                    thread::yield_now();
                }
            });
        }
        let mut good = true;
        for _ in 0..300 {
            // SAFETY: the child takes the mutexes, allocates, which the system allows after a fork,
            // and leaves by `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: no handler is installed: a child that hangs is ended.
                unsafe { libc::alarm(20) };
                let good = is_whole() && (change(), is_whole()).1;
                // SAFETY: ends the process at once, without anything else of the test harness.
                unsafe { libc::_exit(if good { 0 } else { 1 }) };
            }
            let mut status = -1;
            // SAFETY: `status` is valid for writes, `child` is ours.
            let ended = unsafe { libc::waitpid(child, &mut status, 0) };
            good &= ended == child && status == 0;
        }
        stop.store(true, Ordering::Relaxed);
        assert!(good && is_whole());
    });
}
