//! Every interleaving of small jobs over the claim protocol of the pool, explored by loom.
//!
//! Assumes `--cfg loom` (otherwise this file is empty): `RUSTFLAGS="--cfg loom" cargo test -p
//! tilework-cpu --test pool_loom --release`. Run by `make loom`. A lost wake-up shows
//! as a deadlock, which loom reports; a piece that runs twice, or in a job that has ended, as two
//! accesses to one cell or as a wrong sum.

#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilework_cpu::pool::claim::Claims;

/// One cell a piece; loom watches who touches a cell at a time.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: a cell is touched by its piece while the job runs and by the caller after it.
unsafe impl Sync for Cells {}

impl Cells {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, piece: usize) {
        // SAFETY: only this piece touches the cell now (loom checks it).
        self.0[piece].with_mut(|cell| unsafe { *cell += 1 });
    }

    /// Asserts that every piece has run `times` times.
    fn check(&self, times: usize) {
        for cell in &self.0 {
            // SAFETY: the job has ended (loom checks it).
            assert_eq!(cell.with(|cell| unsafe { *cell }), times);
        }
    }
}

/// A pool of this model with its workers.
fn pool(slots: usize, workers: usize) -> (Arc<Claims>, Vec<JoinHandle<()>>) {
    let claims = Arc::new(Claims::new(slots));
    let mut threads = Vec::new();
    claims.set_wanted(workers);
    let start = || {
        let claims = Arc::clone(&claims);
        threads.push(thread::spawn(move || claims.serve()));
        true
    };
    claims.enlist(start).unwrap();
    (claims, threads)
}

/// Sends the workers home, which they must hear even in their sleep.
fn close(claims: &Claims, threads: Vec<JoinHandle<()>>) {
    claims.set_wanted(0);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Explores all interleavings with at most `preemptions` involuntary switches.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

#[test]
fn one_job_one_worker() {
    explore(4, || {
        let (claims, threads) = pool(1, 1);
        let cells = Cells::new(2);
        assert!(claims.run(2, &|piece| cells.add(piece), &|| ()));
        cells.check(1);
        drop(cells);
        close(&claims, threads);
    });
}

/// The slot is used again at once: a worker that is late must not touch the second job.
#[test]
fn two_jobs_one_worker() {
    explore(2, || {
        let (claims, threads) = pool(1, 1);
        for _ in 0..2 {
            let cells = Cells::new(2);
            assert!(claims.run(2, &|piece| cells.add(piece), &|| ()));
            cells.check(1);
        }
        close(&claims, threads);
    });
}

#[test]
fn one_job_two_workers() {
    explore(1, || {
        let (claims, threads) = pool(1, 2);
        let cells = Cells::new(3);
        assert!(claims.run(3, &|piece| cells.add(piece), &|| ()));
        cells.check(1);
        drop(cells);
        close(&claims, threads);
    });
}

/// A second caller, with a slot of its own or without.
#[test]
fn two_callers() {
    for slots in [1, 2] {
        explore(2, move || {
            let (claims, threads) = pool(slots, 1);
            let other = Arc::clone(&claims);
            let caller = thread::spawn(move || {
                let cells = Cells::new(2);
                if other.run(2, &|piece| cells.add(piece), &|| ()) {
                    cells.check(1);
                }
            });
            let cells = Cells::new(2);
            if claims.run(2, &|piece| cells.add(piece), &|| ()) {
                cells.check(1);
            }
            drop(cells);
            caller.join().unwrap();
            close(&claims, threads);
        });
    }
}

/// Pieces that have begun end before the panic goes on, and the slot is free afterwards.
#[test]
fn a_piece_panics() {
    std::panic::set_hook(Box::new(|_| ()));
    explore(2, || {
        let (claims, threads) = pool(1, 1);
        let cells = Cells::new(2);
        let job = |piece| {
            cells.add(piece);
            if piece == 0 {
                std::panic::resume_unwind(Box::new("no"));
            }
        };
        let result = catch_unwind(AssertUnwindSafe(|| claims.run(2, &job, &|| ())));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"no"));
        let again = Cells::new(2);
        assert!(claims.run(2, &|piece| again.add(piece), &|| ()));
        again.check(1);
        close(&claims, threads);
    });
}

/// Fewer workers are wanted while a job runs; it ends all the same.
#[test]
fn a_worker_leaves() {
    explore(3, || {
        let (claims, threads) = pool(1, 1);
        let other = Arc::clone(&claims);
        let cells = Cells::new(2);
        let setter = thread::spawn(move || other.set_wanted(0));
        assert!(claims.run(2, &|piece| cells.add(piece), &|| ()));
        cells.check(1);
        drop(cells);
        setter.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
