//! The block lock under real threads: rules, sets, exclusion, progress.
//!
//! Uses only the public face of `tilework_backend::lock`; the interleavings themselves are
//! explored in `lock_loom.rs`, and `examples/lock_cost.rs` prints what it costs.

#![cfg(not(loom))]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

use Access::{Read, Write};
use tilework_backend::lock::{
    Access, BlockLock, Conflict, OpGuards, Waiting, acquire, try_acquire,
};

/// Two counters that must be equal whenever somebody may look.
struct Block {
    lock: BlockLock,
    pair: UnsafeCell<[usize; 2]>,
}

// SAFETY: the pair is touched only under the lock.
unsafe impl Sync for Block {}

impl Block {
    fn new() -> Self {
        Self { lock: BlockLock::new(), pair: UnsafeCell::new([0, 0]) }
    }

    /// Reads; the caller holds the lock.
    fn look(&self) -> usize {
        // SAFETY: the caller holds the lock, so nobody writes.
        let [a, b] = unsafe { self.pair.get().read_volatile() };
        assert_eq!(a, b);
        a
    }

    /// Writes; the caller holds the lock for writing.
    fn add(&self) {
        // SAFETY: the caller holds the lock alone.
        unsafe {
            let [a, b] = self.pair.get().read_volatile();
            assert_eq!(a, b);
            (&raw mut (*self.pair.get())[0]).write_volatile(a + 1);
            hint::spin_loop();
            (&raw mut (*self.pair.get())[1]).write_volatile(b + 1);
        }
    }
}

/// A generator of numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides
    }
}

#[test]
fn users_and_operations() {
    let lock = BlockLock::new();
    let conflict = |wanted, held| Err(Conflict { wanted, held, index: 0 });

    lock.lock_user(Read).unwrap();
    lock.lock_user(Read).unwrap();
    lock.lock_op(Read).unwrap();
    lock.unlock_op(Read);
    assert_eq!(lock.lock_op(Write), conflict(Write, Read));
    assert_eq!(lock.lock_user(Write), conflict(Write, Read));
    lock.unlock_user(Read);
    assert_eq!(lock.lock_op(Write), conflict(Write, Read));
    assert!(!lock.would_block_op(Write) && !lock.is_free());
    lock.unlock_user(Read);
    assert!(lock.is_free());

    lock.lock_user(Write).unwrap();
    for access in [Read, Write] {
        assert_eq!(lock.lock_op(access), conflict(access, Write));
        assert_eq!(lock.lock_user(access), conflict(access, Write));
        assert!(!lock.would_block_op(access));
    }
    lock.unlock_user(Write);

    lock.lock_op(Write).unwrap();
    for access in [Read, Write] {
        assert!(lock.would_block_op(access));
        assert_eq!(lock.try_lock_op(access), Ok(false));
        assert_eq!(lock.try_lock_user(access), Ok(false));
    }
    lock.unlock_op(Write);

    lock.lock_op(Read).unwrap();
    assert!(!lock.would_block_op(Read) && lock.would_block_op(Write));
    assert_eq!(lock.try_lock_op(Read), Ok(true));
    assert_eq!(lock.try_lock_user(Write), Ok(false));
    assert_eq!(lock.try_lock_user(Read), Ok(true));
    lock.unlock_user(Read);
    lock.unlock_op(Read);
    lock.unlock_op(Read);
    assert!(lock.is_free());
}

#[test]
fn the_counts_do_not_overflow() {
    let lock = BlockLock::new();
    for _ in 0..BlockLock::MAX_USER_READERS {
        lock.lock_user(Read).unwrap();
    }
    let refused = Conflict { wanted: Read, held: Read, index: 0 };
    assert_eq!(lock.lock_user(Read), Err(refused));
    lock.lock_op(Read).unwrap();
    lock.unlock_op(Read);
    for _ in 0..BlockLock::MAX_USER_READERS {
        lock.unlock_user(Read);
    }
    assert!(lock.is_free());

    let mut readers = 0;
    while lock.try_lock_op(Read).unwrap() {
        readers += 1;
    }
    assert!(readers >= 2000);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.lock_op(Read));
        thread::sleep(Duration::from_millis(20));
        lock.unlock_op(Read);
        waiter.join().unwrap().unwrap();
    });
    for _ in 0..readers {
        lock.unlock_op(Read);
    }
    assert!(lock.is_free());
}

#[test]
fn a_set_is_taken_whole_or_not_at_all() {
    let locks: Vec<BlockLock> = (0..12).map(|_| BlockLock::new()).collect();
    for refusing in 0..locks.len() {
        locks[refusing].lock_user(Read).unwrap();
        for count in refusing + 1..=locks.len() {
            let mut wanted: Vec<_> = locks[..count].iter().map(|lock| (lock, Write)).collect();
            wanted.rotate_left(count / 3);
            let index = wanted.iter().position(|w| std::ptr::eq(w.0, &locks[refusing])).unwrap();
            let expected = Conflict { wanted: Write, held: Read, index };
            assert_eq!(acquire(&wanted).unwrap_err(), expected);
            assert_eq!(try_acquire(&wanted).unwrap_err(), expected);
            let others = locks.iter().enumerate().filter(|(k, _)| *k != refusing);
            assert!(others.into_iter().all(|(_, lock)| lock.is_free()));

            let reading: Vec<_> = wanted.iter().map(|w| (w.0, Read)).collect();
            assert_eq!(acquire(&reading).unwrap().len(), count);
        }
        locks[refusing].unlock_user(Read);
    }

    // Read and written in one operation: held once, as written.
    let lock = &locks[0];
    let guards = acquire(&[(lock, Read), (lock, Write), (lock, Read)]).unwrap();
    assert_eq!(guards.len(), 1);
    assert!(lock.would_block_op(Read));
    assert!(try_acquire(&[(&locks[1], Write), (lock, Read)]).unwrap().is_none());
    assert!(locks[1].is_free());
    drop(guards);
    assert!(acquire(&[]).unwrap().is_empty());
    assert!(locks.iter().all(BlockLock::is_free));
}

#[test]
fn who_waits_is_woken() {
    let block = Block::new();
    for access in [Read, Write] {
        block.lock.lock_op(Write).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    block.lock.lock_op(access).unwrap();
                    block.lock.unlock_op(access);
                });
            }
            thread::sleep(Duration::from_millis(20));
            block.add();
            block.lock.unlock_op(Write);
        });
        assert!(block.lock.is_free());
    }
    assert_eq!(block.look(), 2);
}

/// [`acquire`], asking all the time whether to go on; None if it was given up.
fn acquire_while<'a>(
    locks: &[(&'a BlockLock, Access)],
    go_on: &dyn Fn() -> bool,
) -> Result<Option<OpGuards<'a>>, Conflict> {
    let mut guards = OpGuards::new();
    locks.iter().for_each(|&(lock, access)| guards.wish(lock, access));
    let taken = guards.take(Waiting::Asking { every: Duration::ZERO, go_on })?;
    Ok(taken.then_some(guards))
}

#[test]
fn who_waits_is_asked_and_can_give_up() {
    let locks: [BlockLock; 3] = std::array::from_fn(|_| BlockLock::new());
    let [a, b, c] = &locks;
    for (held, wanted) in [(Read, Write), (Write, Read), (Write, Write)] {
        b.lock_op(held).unwrap();
        let asked = AtomicUsize::new(0);
        // What the operation has already it keeps, and a writer's place too.
        let go_on = || {
            assert_eq!(a.try_lock_op(Read), Ok(false));
            assert_eq!(b.try_lock_op(Read), Ok(false));
            asked.fetch_add(1, Ordering::Relaxed) < 4
        };
        let set = [(a, Write), (b, wanted), (c, Write)];
        assert!(acquire_while(&set, &go_on).unwrap().is_none());
        assert_eq!(asked.into_inner(), 5);
        // It holds nothing any more, and nobody stands back for it.
        assert!(a.is_free() && c.is_free());
        assert_eq!(b.try_lock_op(Read), Ok(held == Read));
        if held == Read {
            b.unlock_op(Read);
        }
        // A user waits likewise.
        let user = Waiting::Asking { every: Duration::ZERO, go_on: &|| false };
        assert_eq!(b.lock_user_if(Write, user), Ok(false));
        b.unlock_op(held);
        assert!(b.is_free());
        // Where there is nothing to wait for, nobody is asked.
        let unasked = acquire_while(&set, &|| panic!("asked")).unwrap();
        assert_eq!(unasked.map(|guards| guards.len()), Some(3));
    }
}

/// Who slept behind a writer goes on when it gives up.
#[test]
fn a_writer_that_gives_up_lets_others_pass() {
    let lock = BlockLock::new();
    lock.lock_op(Read).unwrap();
    let (announced, told) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let go_on = || {
                announced.store(true, Ordering::Release);
                !told.load(Ordering::Acquire)
            };
            acquire_while(&[(&lock, Write)], &go_on).unwrap().is_some()
        });
        while !announced.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                lock.lock_op(Read).unwrap();
                lock.unlock_op(Read);
            })
        });
        told.store(true, Ordering::Release);
        assert!(!writer.join().unwrap());
        for reader in readers {
            reader.join().unwrap();
        }
    });
    lock.unlock_op(Read);
    assert!(lock.is_free());
}

/// Eight threads, six blocks, all kinds of holders; every counter comes out right.
#[test]
fn many_threads_and_blocks() {
    const ROUNDS: usize = 20_000;
    let blocks: [Block; 6] = std::array::from_fn(|_| Block::new());
    let added = AtomicUsize::new(0);
    thread::scope(|scope| {
        for seed in 0..8 {
            let (blocks, added) = (&blocks, &added);
            scope.spawn(move || {
                let mut dice = Dice(seed + 1);
                for _ in 0..ROUNDS {
                    let block = &blocks[dice.roll(blocks.len())];
                    match dice.roll(8) {
                        0 => {
                            if block.lock.lock_user(Write).is_ok() {
                                block.add();
                                added.fetch_add(1, Ordering::Relaxed);
                                block.lock.unlock_user(Write);
                            }
                        }
                        1 => {
                            if block.lock.lock_user(Read).is_ok() {
                                block.look();
                                block.lock.unlock_user(Read);
                            }
                        }
                        size => {
                            let wanted: Vec<_> = (0..size)
                                .map(|_| {
                                    let access = if dice.roll(3) == 0 { Write } else { Read };
                                    (&blocks[dice.roll(blocks.len())], access)
                                })
                                .collect();
                            let locks: Vec<_> = wanted.iter().map(|w| (&w.0.lock, w.1)).collect();
                            let guards = match dice.roll(3) {
                                0 => acquire(&locks).ok(),
                                1 => try_acquire(&locks).ok().flatten(),
                                _ => {
                                    let patience = Cell::new(dice.roll(4));
                                    let go_on = || patience.replace(patience.get() / 2) > 0;
                                    acquire_while(&locks, &go_on).ok().flatten()
                                }
                            };
                            if guards.is_some() {
                                for (block, access) in wanted {
                                    match access {
                                        Read => _ = block.look(),
                                        Write => {
                                            block.add();
                                            added.fetch_add(1, Ordering::Relaxed);
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            });
        }
    });
    assert!(blocks.iter().all(|block| block.lock.is_free()));
    assert_eq!(blocks.iter().map(Block::look).sum::<usize>(), added.into_inner());
}

/// Readers that never leave the block free between them do not keep a writer out.
#[test]
fn a_writer_gets_through_a_stream_of_readers() {
    let block = Block::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    block.lock.lock_op(Read).unwrap();
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_micros(200) {
                        block.look();
                    }
                    block.lock.unlock_op(Read);
                }
            });
        }
        for _ in 0..50 {
            block.lock.lock_op(Write).unwrap();
            block.add();
            block.lock.unlock_op(Write);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(block.look(), 50);
    assert!(block.lock.is_free());
}
