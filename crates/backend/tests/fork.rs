//! A child that is forked while other threads take and give back memory, or are in the middle of
//! operations, can use all of it itself.
//!
//! Alone in its file, because it forks: nothing else must run in this process. Uses the public face
//! of `tilework_backend`.

#![cfg(all(unix, not(loom)))]

#[path = "../../fork/tests/forked/mod.rs"]
mod forked;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forked::{fork, forked, leave, was_good};
use tilework_backend::lock::{Access, BlockLock, OpGuards, Waiting, acquire};
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
        let good = (0..100).all(|_| forked(|| works(5)));
        stop.store(true, Ordering::Relaxed);
        assert!(good, "a child hung, crashed or got memory that it should not");
    });
}

/// Takes and releases every lock for reading and for writing.
fn all_can_be_taken(locks: &[BlockLock]) -> bool {
    [Access::Read, Access::Write].into_iter().all(|access| {
        let wanted: Vec<_> = locks.iter().map(|lock| (lock, access)).collect();
        acquire(&wanted).is_ok_and(|guards| guards.len() == locks.len())
            && locks.iter().all(BlockLock::is_free)
    })
}

fn what_operations_of_other_threads_held_is_free_in_a_child() {
    let locks: Vec<BlockLock> = (0..3).map(|_| BlockLock::new()).collect();
    let [written, read, _] = &locks[..] else { unreachable!() };
    let guards = acquire(&[(written, Access::Write), (read, Access::Read)]).unwrap();
    // A child whose own operation was interrupted by the fork holds nothing either, and releasing
    // it later is harmless; nor does a grandchild inherit what its parent was doing.
    assert!(forked(|| {
        let free = all_can_be_taken(&locks);
        drop(guards);
        let again = acquire(&[(written, Access::Write)]).unwrap();
        let grandchild = forked(|| all_can_be_taken(&locks));
        drop(again);
        free && grandchild && all_can_be_taken(&locks)
    }));
    // The guard of a user stays, and refuses, but nobody waits.
    let lock = BlockLock::new();
    lock.lock_user(Access::Write).unwrap();
    assert!(forked(|| {
        let refused = lock.lock_op(Access::Read).is_err();
        lock.unlock_user(Access::Write);
        refused && all_can_be_taken(std::slice::from_ref(&lock))
    }));

    // Whoever is asked while an operation waits forks: the child takes the whole set afresh.
    let [a, b] = [BlockLock::new(), BlockLock::new()];
    let (first, second) = if (&raw const a) < (&raw const b) { (&a, &b) } else { (&b, &a) };
    let held = acquire(&[(second, Access::Read)]).unwrap();
    let child = Cell::new(-1);
    let go_on = || {
        child.set(fork());
        child.get() == 0
    };
    let mut guards = OpGuards::new();
    guards.wish(first, Access::Write);
    guards.wish(second, Access::Write);
    let taken = guards.take(Waiting::Asking { every: Duration::ZERO, go_on: &go_on });
    if child.get() == 0 {
        let whole = taken == Ok(true) && guards.len() == 2 && !first.is_free() && !second.is_free();
        drop((guards, held));
        leave(whole && first.is_free() && second.is_free());
    }
    assert_eq!(taken, Ok(false));
    assert!(was_good(child.get()) && first.is_free());
    drop(held);

    // Threads that take, wait, sleep and wake while the process forks.
    let stop = AtomicBool::new(false);
    let locks: Vec<BlockLock> = (0..2).map(|_| BlockLock::new()).collect();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (locks, stop) = (&locks, &stop);
            scope.spawn(move || {
                let access = if thread == 0 { Access::Read } else { Access::Write };
                while !stop.load(Ordering::Relaxed) {
                    let _guards = acquire(&[(&locks[0], access), (&locks[1], access)]).unwrap();
                    thread::sleep(std::time::Duration::from_micros(20));
                }
            });
        }
        let contended = || {
            all_can_be_taken(&locks)
                && thread::scope(|scope| {
                    let take = || (0..20).all(|_| acquire(&[(&locks[0], Access::Write)]).is_ok());
                    let others: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
                    others.into_iter().all(|other| other.join().unwrap_or(false))
                })
        };
        let good = (0..100).all(|_| forked(contended));
        stop.store(true, Ordering::Relaxed);
        assert!(good, "a child hung or crashed");
    });
    assert!(all_can_be_taken(&locks));
}

/// One test, since a process must not fork while another test runs in it.
#[test]
fn children_begin_afresh() {
    a_child_allocates_whatever_other_threads_were_doing();
    what_operations_of_other_threads_held_is_free_in_a_child();
}
