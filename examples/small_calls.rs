//! What a call costs where the arithmetic is nothing: operations on eight numbers.
//!
//! `cargo run --release -p tilework --example small_calls` prints nanoseconds for each call, best of
//! many rounds taken in turns.

use std::hint::black_box;
use std::time::Instant;

use tilework::{Array, DType, Result, s};

const ROUNDS: usize = 400;
const CALLS: u32 = 500;

fn main() -> Result<()> {
    let x = Array::arange(0, 8, 1, DType::Float32)?;
    let y = x.copy()?;
    let square = Array::arange(0, 64, 1, DType::Float32)?.reshape(&[8, 8])?;
    type Call<'a> = &'a dyn Fn() -> Result<Array>;
    let calls: [(&str, Call<'_>); 6] = [
        ("x + x", &|| x.add(&x)),
        ("x + y", &|| x.add(&y)),
        ("x + 1.5", &|| x.add(1.5)),
        ("x[1..5, ..;2]", &|| square.slice(&s![1..5, ..;2])),
        ("x.sum()", &|| x.sum(())),
        ("x.copy()", &|| x.copy()),
    ];
    let mut best = [f64::INFINITY; 6];
    for _ in 0..ROUNDS {
        for (best, (_, call)) in best.iter_mut().zip(&calls) {
            let start = Instant::now();
            for _ in 0..CALLS {
                black_box(call()?);
            }
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
        }
    }
    for (best, (name, _)) in best.iter().zip(&calls) {
        println!("{name:14} {best:6.1} ns");
    }
    Ok(())
}
