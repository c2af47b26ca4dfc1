//! The pool under real threads: every piece once, nesting, many callers, panics, idle cores.
//!
//! Uses only the public face of `tilework_cpu::pool`; the interleavings themselves are explored in
//! `pool_loom.rs`, forking is tested in `pool_fork.rs`. The tests take turns, since the number of
//! threads and the CPU time belong to the whole process. `examples/pool_cost.rs` prints what it
//! costs.

#![cfg(not(loom))]

use std::collections::HashSet;
use std::hint;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tilework_cpu::pool::{claim::Claims, for_ranges, run, run_brief, set_threads, threads};

/// One test at a time, with this many threads.
fn turn(threads: usize) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_threads(threads);
    guard
}

/// After so long something counts as never happening. No machine needs that.
const PATIENCE: Duration = Duration::from_secs(600);

fn counters(count: usize) -> Vec<AtomicUsize> {
    (0..count).map(|_| AtomicUsize::new(0)).collect()
}

/// Runs a job and asserts that each piece has run once.
fn check(pieces: usize) {
    let ran = counters(pieces);
    run(pieces, &|piece| _ = ran[piece].fetch_add(1, Ordering::Relaxed));
    assert!(ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1), "{pieces} pieces");
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

/// The CPU time that all threads of this process have used.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn every_piece_once() {
    for threads in [1, 2, 3, 8] {
        let _turn = turn(threads);
        for pieces in (0..100).chain([1000, 4097, 100_000]) {
            check(pieces);
        }
        for _ in 0..20_000 {
            check(3);
        }
    }
}

#[test]
fn brief_work_is_done_whoever_is_awake() {
    for threads in [1, 2, 3] {
        let _turn = turn(threads);
        for round in 0..2000 {
            let ran = counters(4);
            run_brief(4, &|piece| _ = ran[piece].fetch_add(1, Ordering::Relaxed));
            assert!(ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1));
            if round % 100 == 0 {
                // Long enough for workers to fall asleep.
                thread::sleep(Duration::from_millis(2));
            }
        }
        let ran = AtomicUsize::new(0);
        run(3, &|_| run_brief(5, &|_| _ = ran.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(ran.into_inner(), 15);
    }
}

#[test]
fn workers_that_sleep_do_not_watch() {
    let claims = Claims::new(1);
    assert!(!claims.is_watched());
    claims.set_wanted(1);
    thread::scope(|scope| {
        claims.enlist(|| drop_handle(scope.spawn(|| claims.serve()))).unwrap();
        assert!(claims.run(2, &|_| (), &|| ()));
        let start = Instant::now();
        while claims.is_watched() && start.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert!(!claims.is_watched());
        claims.set_wanted(0);
    });
}

fn drop_handle<T>(_: T) -> bool {
    true
}

#[test]
fn more_pieces_than_a_job_can_count() {
    let _turn = turn(4);
    let pieces = (1 << 25) + 3;
    let (count, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let first = pieces - 1000;
    run(pieces, &|piece| {
        if piece >= first {
            count.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(piece, Ordering::Relaxed);
        }
    });
    assert_eq!(count.into_inner(), 1000);
    assert_eq!(sum.into_inner(), (first..pieces).sum());
}

#[test]
fn workers_take_part() {
    let _turn = turn(3);
    // Three pieces that wait for each other: this ends only if three threads run them. (A real
    // piece must not do that; here the workers get all the time they need to wake up.)
    let barrier = Barrier::new(3);
    let names = Mutex::new(HashSet::new());
    run(3, &|_| {
        names.lock().unwrap().insert(thread::current().id());
        barrier.wait();
    });
    assert_eq!(names.into_inner().unwrap().len(), 3);
}

#[test]
fn effects_are_visible() {
    let _turn = turn(4);
    let mut data = vec![0_u64; 100_000];
    for round in 1..50 {
        let start = data.as_mut_ptr() as usize;
        let len = data.len();
        for_ranges(len, 4096, &|range: Range<usize>| {
            let start = start as *mut u64;
            // SAFETY: ranges lie inside the vector and do not overlap; nobody else uses it now.
            let part =
                unsafe { std::slice::from_raw_parts_mut(start.add(range.start), range.len()) };
            part.iter_mut().for_each(|value| *value += 1);
        });
        assert!(data.iter().all(|&value| value == round));
    }
}

#[test]
fn ranges() {
    for threads in [1, 4] {
        let _turn = turn(threads);
        for len in [0, 1, 2, 63, 64, 65, 95, 96, 97, 128, 129, 1000, 6400] {
            for grain in [0, 1, 7, 64, 1000, usize::MAX] {
                let given = Mutex::new(Vec::new());
                for_ranges(len, grain, &|range| given.lock().unwrap().push(range));
                let mut given = given.into_inner().unwrap();
                given.sort_by_key(|range| range.start);
                let grain = grain.max(1);
                let expected: Vec<_> = (0..len.div_ceil(grain))
                    .map(|k| k * grain..len.min((k * grain).saturating_add(grain)))
                    .collect();
                assert_eq!(given, expected, "len {len}, grain {grain}");
            }
        }
    }
}

#[test]
fn nested_calls_run_inline() {
    let _turn = turn(4);
    let ran = counters(8 * 5 * 3);
    run(8, &|a| {
        let me = thread::current().id();
        run(5, &|b| {
            run(3, &|c| {
                assert_eq!(thread::current().id(), me);
                ran[(a * 5 + b) * 3 + c].fetch_add(1, Ordering::Relaxed);
            });
        });
    });
    assert!(ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1));
    check(10);
}

#[test]
fn eight_callers() {
    let _turn = turn(4);
    thread::scope(|scope| {
        for caller in 0..8 {
            scope.spawn(move || {
                for round in 0..2000 {
                    check(2 + (caller + round) % 40);
                }
            });
        }
        // The number of threads may change at any time.
        for round in 0..200 {
            set_threads(1 + round % 7);
            thread::sleep(Duration::from_micros(100));
        }
    });
}

#[test]
fn panics_reach_the_caller() {
    let _turn = turn(4);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    for round in 0..200 {
        let ended = AtomicUsize::new(0);
        let begun = AtomicUsize::new(0);
        let job = |piece| {
            begun.fetch_add(1, Ordering::Relaxed);
            if piece % 7 == round % 7 {
                ended.fetch_add(1, Ordering::Relaxed);
                panic!("piece {piece}");
            }
            busy(Duration::from_micros(5));
            ended.fetch_add(1, Ordering::Relaxed);
        };
        let payload = catch_unwind(AssertUnwindSafe(|| run(20, &job))).unwrap_err();
        assert!(payload.downcast_ref::<String>().unwrap().starts_with("piece "));
        assert_eq!(begun.into_inner(), ended.into_inner());
        check(20);
    }
    std::panic::set_hook(hook);
}

#[test]
fn the_number_of_threads() {
    fn workers() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name == b"tilework\n").count()
    }
    let _turn = turn(0);
    assert_eq!(threads(), 1);
    for wanted in [5, 2, 7, 1, 3] {
        set_threads(wanted);
        assert_eq!(threads(), wanted);
        run(100, &|_| busy(Duration::from_micros(10)));
        if cfg!(target_os = "linux") {
            let start = Instant::now();
            while workers() != wanted - 1 {
                assert!(start.elapsed() < PATIENCE, "{} workers", workers());
                thread::sleep(Duration::from_millis(1));
            }
        }
        check(50);
    }
}

#[test]
fn an_idle_pool_uses_no_core() {
    let _turn = turn(8);
    check(1000);
    let start = Instant::now();
    loop {
        let before = cpu_time();
        thread::sleep(Duration::from_millis(100));
        let used = cpu_time() - before;
        // On a busy machine some workers have yet to find out that there is nothing to do.
        if used < Duration::from_millis(5) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{used:?} in 100 ms");
    }
}
