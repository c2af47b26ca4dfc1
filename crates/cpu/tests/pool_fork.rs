//! A forked child has none of the workers, starts its own and does not hang.
//!
//! Alone in its file, because it forks: nothing else must run in this process. Uses the public face
//! of `tilework_cpu::pool`.

#![cfg(all(unix, not(loom)))]

#[path = "../../fork/tests/forked/mod.rs"]
mod forked;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use forked::forked;
use tilework_cpu::pool::{run, set_threads};

/// Whether each of many pieces ran once, over several jobs.
fn works() -> bool {
    (2..50).all(|pieces| {
        let ran: Vec<_> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        run(pieces, &|piece| _ = ran[piece].fetch_add(1, Ordering::Relaxed));
        ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1)
    })
}

/// Whether a child runs jobs, before and after a child of its own that does too.
fn child_works(generations: usize) -> bool {
    forked(|| works() && (generations == 1 || child_works(generations - 1)) && works())
}

#[test]
fn children_have_their_own_pool() {
    // Before the pool exists, after it, with its workers awake, with them asleep.
    set_threads(4);
    assert!(child_works(1));
    assert!(works());
    assert!(child_works(2));
    thread::sleep(Duration::from_millis(10));
    assert!(child_works(2));
    assert!(works());

    // While another thread is in the middle of jobs.
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(works());
            }
        });
        let good = (0..50).all(|_| child_works(1));
        stop.store(true, Ordering::Relaxed);
        assert!(good, "a child hung, crashed or found a piece missing");
    });
    assert!(works());
}
