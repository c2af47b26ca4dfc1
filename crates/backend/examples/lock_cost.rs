//! What it costs to take and release the lock of a block: the guards of every operation.
//!
//! `cargo run --release -p tilework-backend --example lock_cost` prints nanoseconds, best of many
//! rounds.

use std::hint;
use std::time::Instant;

use Access::{Read, Write};
use tilework_backend::lock::{Access, BlockLock, acquire};

/// Nanoseconds for one call, best of many rounds.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    const CALLS: u32 = 10_000;
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..200).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let locks: [BlockLock; 3] = std::array::from_fn(|_| BlockLock::new());
    let [a, b, c] = hint::black_box(&locks);
    for access in [Read, Write] {
        let op = nanoseconds(|| {
            hint::black_box(a).lock_op(access).unwrap();
            hint::black_box(a).unlock_op(access);
        });
        let user = nanoseconds(|| {
            hint::black_box(a).lock_user(access).unwrap();
            hint::black_box(a).unlock_user(access);
        });
        println!("{access:?}: operation {op:.1} ns, user {user:.1} ns");
    }
    a.lock_user(Read).unwrap();
    let beside = nanoseconds(|| {
        hint::black_box(a).lock_op(Read).unwrap();
        hint::black_box(a).unlock_op(Read);
    });
    a.unlock_user(Read);
    println!("operation reads beside a user who reads: {beside:.1} ns");
    let one = nanoseconds(|| drop(acquire(hint::black_box(&[(a, Read)])).unwrap()));
    let two = nanoseconds(|| drop(acquire(hint::black_box(&[(b, Read), (a, Read)])).unwrap()));
    let same = nanoseconds(|| drop(acquire(hint::black_box(&[(a, Read), (a, Read)])).unwrap()));
    let three = nanoseconds(|| {
        drop(acquire(hint::black_box(&[(c, Write), (a, Read), (b, Read)])).unwrap())
    });
    println!("sets: one {one:.1}, two {two:.1}, the same twice {same:.1}, three {three:.1} ns");
}
