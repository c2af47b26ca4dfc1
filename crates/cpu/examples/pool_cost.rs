//! What it costs to hand a job to the pool, in the middle and at the far end of many calls.
//!
//! `cargo run --release -p tilework-cpu --example pool_cost` prints microseconds.

use std::time::{Duration, Instant};
use std::{hint, thread};

use tilework_cpu::pool::{run, set_threads};

/// About a microsecond of work for every 100 steps, which no compiler can remove.
fn work(steps: usize) {
    let mut x = 1_u64;
    for _ in 0..steps {
        x = hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

fn main() {
    let calls = |gap: Duration, job: &dyn Fn()| {
        let mut times: Vec<f64> = (0..if gap.is_zero() { 5000 } else { 2000 })
            .map(|_| {
                if gap < Duration::from_micros(100) {
                    busy(gap)
                } else {
                    thread::sleep(gap)
                }
                let start = Instant::now();
                job();
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], times[times.len() * 99 / 100])
    };
    set_threads(2);
    let start = Instant::now();
    work(1_000_000);
    let per_us = (1e6 / (start.elapsed().as_secs_f64() * 1e6)) as usize;
    let start = Instant::now();
    run(2, &|_| ());
    println!("first job, which starts a worker: {:.1} us", start.elapsed().as_secs_f64() * 1e6);
    println!("p50 (p99) in us:             back to back     20 us gap      1 ms gap");
    let rows: [(&str, usize, usize, usize); 7] = [
        ("empty, 2 pieces", 2, 0, 2),
        ("empty, 8 pieces", 8, 0, 2),
        ("20 us serial", 8, 20, 1),
        ("20 us, 8 pieces", 8, 20, 2),
        ("20 us, 2 pieces", 2, 20, 2),
        ("100 us serial", 8, 100, 1),
        ("100 us, 8 pieces", 8, 100, 2),
    ];
    for (name, pieces, us, threads) in rows {
        set_threads(threads);
        let steps = per_us * us / pieces;
        let cells = [0, 20, 1000].map(|gap| {
            let (middle, far) =
                calls(Duration::from_micros(gap), &|| run(pieces, &|_| work(steps)));
            format!("{middle:7.2} ({far:6.1})")
        });
        println!("{name:26} {}", cells.join(" "));
    }
    set_threads(1);
    let start = Instant::now();
    for _ in 0..1_000_000 {
        run(hint::black_box(1), hint::black_box(&|_| ()));
    }
    println!("one piece: {:.1} ns", start.elapsed().as_secs_f64() * 1e3);
}
