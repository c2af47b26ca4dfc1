//! Nanoseconds an element of every kernel, per level: `cargo run --release --example speed [name]`.
//!
//! Arrays that stay in L1 and L2 (4096 elements), the best of many windows; run by hand.

use std::time::Instant;
use tilework_simd::{CONVERSIONS, Elem, KERNELS, Kernel, Level};

fn best(f: Kernel, n: usize, out: &mut [u64], a: &[u64], b: &[u64]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..60 {
        let start = Instant::now();
        for _ in 0..4 {
            // SAFETY: the level was checked; all buffers hold n elements of at most 8 bytes.
            unsafe {
                f(
                    n,
                    out.as_mut_ptr().cast(),
                    a.as_ptr().cast(),
                    b.as_ptr().cast(),
                    a.as_ptr().cast(),
                )
            };
        }
        best = best.min(start.elapsed().as_secs_f64() / (4 * n) as f64 * 1e9);
    }
    best
}

fn main() {
    let only = std::env::args().nth(1);
    let n = 4096;
    let mut out = vec![0u64; n];
    println!(
        "{:12} {:4} {:>8} {:>8} {:>8}  ns an element",
        "function", "elem", "scalar", "avx2", "avx512"
    );
    for (name, elem, functions) in KERNELS {
        if only.as_deref().is_some_and(|o| o != *name) {
            continue;
        }
        // Within every domain but acosh's, which gets 1 more.
        let value = |i: usize| {
            0.05 + 0.9 * ((i * 7919 % n) as f64 / n as f64)
                + if *name == "acosh" { 1.0 } else { 0.0 }
        };
        let pack = |i: usize| match elem {
            Elem::F64 => value(i).to_bits(),
            Elem::F32 => {
                u64::from((value(2 * i % n) as f32).to_bits()) << 32
                    | u64::from((value((2 * i + 1) % n) as f32).to_bits())
            }
        };
        let a: Vec<u64> = (0..n).map(pack).collect();
        let t = Level::ALL.map(|l| {
            if l.is_available() {
                best(functions[l as usize], n, &mut out, &a, &a)
            } else {
                f64::NAN
            }
        });
        println!("{name:12} {:4} {:8.3} {:8.3} {:8.3}", format!("{elem:?}"), t[0], t[1], t[2]);
    }
    for (name, functions) in CONVERSIONS {
        if only.is_none() {
            let a = vec![0x3C00_3C00_3C00_3C00u64; n];
            let t = Level::ALL.map(|l| {
                if l.is_available() {
                    best(functions[l as usize], n, &mut out, &a, &a)
                } else {
                    f64::NAN
                }
            });
            println!("{name:17} {:8.3} {:8.3} {:8.3}", t[0], t[1], t[2]);
        }
    }
}
