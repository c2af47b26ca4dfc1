//! A child that is forked while other threads hold mutexes finds them free and their values whole.
//!
//! Alone in its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

mod forked;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use forked::forked;
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
                // Whoever forks waits for both mutexes, which are not fair, and so in the worst case
                // until these are through.
                for _ in 0..100_000 {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    change();
                    thread::yield_now();
                }
            });
        }
        let good = (0..300).all(|_| forked(|| is_whole() && (change(), is_whole()).1));
        stop.store(true, Ordering::Relaxed);
        assert!(good && is_whole());
    });
}
