//! Every interleaving of small programs over the block lock, explored by loom.
//!
//! Assumes `--cfg loom` (otherwise this file is empty): `RUSTFLAGS="--cfg loom" cargo test -p
//! tilework-backend --test lock_loom --release`. Run by `make loom`. A lost wake-up
//! shows as a deadlock, which loom reports; a broken exclusion as two accesses to one cell.

#![cfg(loom)]

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use tilework_backend::lock::{Access, BlockLock, OpGuards, Waiting, acquire, try_acquire};

/// Memory under a lock; loom watches who touches the cell at a time.
struct Block {
    lock: BlockLock,
    value: UnsafeCell<usize>,
}

// SAFETY: the cell is touched only by `look` and `add`, whose callers hold the lock.
unsafe impl Sync for Block {}

impl Block {
    fn new() -> Self {
        Self { lock: BlockLock::new(), value: UnsafeCell::new(0) }
    }

    /// Reads; the caller holds the lock.
    fn look(&self) -> usize {
        // SAFETY: the caller holds the lock, so nobody writes (loom checks it).
        self.value.with(|value| unsafe { *value })
    }

    /// Writes; the caller holds the lock for writing.
    fn add(&self) {
        // SAFETY: the caller holds the lock alone (loom checks it).
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn op_read(&self) -> usize {
        self.lock.lock_op(Access::Read).unwrap();
        let seen = self.look();
        self.lock.unlock_op(Access::Read);
        seen
    }

    fn op_write(&self) {
        self.lock.lock_op(Access::Write).unwrap();
        self.add();
        self.lock.unlock_op(Access::Write);
    }

    /// Writes unless it had to wait: a model's time has passed at once. Whether it wrote.
    fn op_write_or_give_up(&self) -> bool {
        let mut guards = OpGuards::new();
        guards.wish(&self.lock, Access::Write);
        let waiting = Waiting::Asking { every: Duration::ZERO, go_on: &|| false };
        let taken = guards.take(waiting).unwrap();
        if taken {
            self.add();
        }
        taken
    }
}

/// Explores all interleavings with at most `preemptions` involuntary switches.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn two_writers() {
    explore(5, || {
        let block = Arc::new(Block::new());
        let other = Arc::clone(&block);
        let writer = thread::spawn(move || {
            other.op_write();
            other.op_write();
        });
        block.op_write();
        writer.join().unwrap();
        assert_eq!(block.look(), 3);
        assert!(block.lock.is_free());
    });
}

#[test]
fn three_writers() {
    explore(3, || {
        let block = Arc::new(Block::new());
        let writers = [0, 1].map(|_| {
            let other = Arc::clone(&block);
            thread::spawn(move || other.op_write())
        });
        block.op_write();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(block.op_read(), 3);
        assert!(block.lock.is_free());
    });
}

#[test]
fn a_writer_among_readers() {
    explore(3, || {
        let block = Arc::new(Block::new());
        let readers = [0, 1].map(|_| {
            let other = Arc::clone(&block);
            thread::spawn(move || {
                other.op_read();
                other.op_read()
            })
        });
        block.op_write();
        for reader in readers {
            assert!(reader.join().unwrap() <= 1);
        }
        assert_eq!(block.look(), 1);
        assert!(block.lock.is_free());
    });
}

#[test]
fn two_writers_and_a_reader() {
    explore(3, || {
        let block = Arc::new(Block::new());
        let other = Arc::clone(&block);
        let writer = thread::spawn(move || other.op_write());
        let other = Arc::clone(&block);
        let reader = thread::spawn(move || other.op_read());
        block.op_write();
        writer.join().unwrap();
        assert!(reader.join().unwrap() <= 2);
        assert_eq!(block.look(), 2);
        assert!(block.lock.is_free());
    });
}

/// Those who stood back for a writer go on when it gives up, and a second writer still gets the
/// block, though the first has taken back the announcement of both.
#[test]
fn a_writer_gives_up_among_others() {
    for access in [Access::Read, Access::Write] {
        explore(3, move || {
            let block = Arc::new(Block::new());
            let other = Arc::clone(&block);
            let second = thread::spawn(move || match access {
                Access::Read => _ = other.op_read(),
                Access::Write => other.op_write(),
            });
            let other = Arc::clone(&block);
            let first = thread::spawn(move || other.op_write_or_give_up());
            block.op_read();
            second.join().unwrap();
            let written = usize::from(first.join().unwrap());
            assert_eq!(block.look(), written + usize::from(access == Access::Write));
            assert!(block.lock.is_free());
        });
    }
}

/// A user who writes ends the wait of those who slept behind it: they are refused, or come first.
#[test]
fn a_user_writes_among_operations() {
    explore(3, || {
        let block = Arc::new(Block::new());
        let others = [Access::Read, Access::Write].map(|access| {
            let other = Arc::clone(&block);
            thread::spawn(move || match other.lock.lock_op(access) {
                Ok(()) => {
                    match access {
                        Access::Read => drop(other.look()),
                        Access::Write => other.add(),
                    }
                    other.lock.unlock_op(access);
                    true
                }
                Err(conflict) => {
                    assert_eq!((conflict.wanted, conflict.held), (access, Access::Write));
                    false
                }
            })
        });
        block.lock.lock_user(Access::Write).unwrap();
        block.add();
        block.lock.unlock_user(Access::Write);
        let [_, wrote] = others.map(|other| other.join().unwrap());
        assert_eq!(block.look(), 1 + usize::from(wrote));
        assert!(block.lock.is_free());
    });
}

/// The same with two readers: one may fall asleep behind the user's announcement when nobody holds
/// the block any more, and only the user can wake it.
#[test]
fn a_user_writes_among_readers() {
    explore(4, || {
        let block = Arc::new(Block::new());
        let readers = [0, 1].map(|_| {
            let other = Arc::clone(&block);
            thread::spawn(move || {
                if other.lock.lock_op(Access::Read).is_ok() {
                    other.look();
                    other.lock.unlock_op(Access::Read);
                }
            })
        });
        block.lock.lock_user(Access::Write).unwrap();
        block.add();
        // Held until both have ended: a refusal must not need the user's release.
        for reader in readers {
            reader.join().unwrap();
        }
        block.lock.unlock_user(Access::Write);
        assert!(block.lock.is_free());
    });
}

/// A user who reads makes a waiting writer give up; the reader that stood back for it goes on.
#[test]
fn a_user_reads_among_operations() {
    explore(3, || {
        let block = Arc::new(Block::new());
        let other = Arc::clone(&block);
        let writer = thread::spawn(move || match other.lock.lock_op(Access::Write) {
            Ok(()) => {
                other.add();
                other.lock.unlock_op(Access::Write);
                true
            }
            Err(conflict) => {
                assert_eq!(conflict.held, Access::Read);
                false
            }
        });
        let other = Arc::clone(&block);
        let reader = thread::spawn(move || {
            other.op_read();
        });
        block.lock.lock_user(Access::Read).unwrap();
        let seen = block.look();
        block.lock.unlock_user(Access::Read);
        reader.join().unwrap();
        let wrote = writer.join().unwrap();
        assert!(seen <= usize::from(wrote));
        assert!(block.lock.is_free());
    });
}

/// Two operations that name the same two blocks in opposite order.
#[test]
fn sets_in_any_order() {
    explore(3, || {
        let blocks = Arc::new([Block::new(), Block::new()]);
        let others = Arc::clone(&blocks);
        let other = thread::spawn(move || {
            let [a, b] = &*others;
            let _guards = acquire(&[(&b.lock, Access::Write), (&a.lock, Access::Read)]).unwrap();
            a.look();
            b.add();
        });
        let [a, b] = &*blocks;
        let wanted = [(&a.lock, Access::Write), (&b.lock, Access::Read), (&a.lock, Access::Read)];
        if let Some(guards) = try_acquire(&wanted).unwrap() {
            a.add();
            b.look();
            drop(guards);
        }
        let guards = acquire(&wanted).unwrap();
        a.add();
        b.look();
        drop(guards);
        other.join().unwrap();
        assert!(a.lock.is_free() && b.lock.is_free());
    });
}
