//! A child that is forked while another thread makes a value that is made once makes its own.
//!
//! Alone in its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

mod forked;

use std::sync::Barrier;
use std::thread;

use forked::forked;
use tilework_fork::ForkOnce;

static ONCE: ForkOnce<u64> = ForkOnce::new();

#[test]
fn a_child_does_not_wait_for_a_thread_that_it_does_not_have() {
    let (inside, go_on) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let make = || {
                inside.wait();
                go_on.wait();
                1
            };
            assert_eq!(*ONCE.get_or_make(make), 1);
        });
        inside.wait();
        let good = forked(|| *ONCE.get_or_make(|| 2) == 2 && ONCE.get() == Some(&2));
        go_on.wait();
        assert!(good);
    });
    assert_eq!(ONCE.get(), Some(&1), "the parent has its own");
}
