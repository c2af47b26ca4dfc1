//! A child that is forked while another thread takes the very first mutex finds it free.
//!
//! There is one such moment in the life of a process, so every try is a process of its own. Alone in
//! its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

mod forked;

use forked::forked_beside;
use tilework_fork::ForkMutex;

static FIRST: ForkMutex<u64> = ForkMutex::new(0);

#[test]
fn a_fork_beside_the_first_lock_finds_it_free() {
    for turns in 0..400 {
        let take = || {
            *FIRST.lock() += 1;
            true
        };
        let good = forked_beside(turns, take, || *FIRST.lock() <= 1);
        assert!(good, "a fork after {turns} turns hung");
    }
}
