//! Reductions over pairs against the limit of the machine.
//!
//! For every row: pairs per second, the share of the limit that counted operations set (the FMA
//! rate is measured in the same rounds), and the error against float64. Operations of a pair: 2D
//! for the squared distance, 1 for its scale, 9 (float32) or 15 (float64) for an exponential, 1 for
//! the sum; 2 more for logsumexp, 3 for argmin, 1 for the K smallest, D + 1 instead of 1 where the
//! gradient is summed too. `cargo run --release --example pairs_speed [rounds]`.

use std::hint::black_box;
use std::time::Instant;

use tilework::pairs::{Genred, Options};

use tilework::{Array, DType, Result, Rng, s, set_num_threads};

struct Row {
    name: &'static str,
    formula: &'static str,
    reduction: &'static str,
    k: Option<usize>,
    dtype: DType,
    d: usize,
    m: usize,
    n: usize,
    operations: fn(usize, usize) -> usize,
}

const GAUSS: &str = "Exp(-SqDist(x,y) / {d}) * b";
const EXPONENT: &str = "-SqDist(x,y) / {d}";
const BOTH: &str =
    "Concat(Exp(-SqDist(x,y) / {d}) * b, Grad(Exp(-SqDist(x,y) / {d}) * b, x, IntCst(1)))";

fn rows() -> Vec<Row> {
    let sum: fn(usize, usize) -> usize = |d, e| 2 * d + 1 + e + 1;
    let log: fn(usize, usize) -> usize = |d, e| 2 * d + 1 + e + 3;
    let min: fn(usize, usize) -> usize = |d, _| 2 * d + 3;
    let smallest: fn(usize, usize) -> usize = |d, _| 2 * d + 1;
    let both: fn(usize, usize) -> usize = |d, e| 2 * d + 1 + e + d + 1;
    let mut rows = Vec::new();
    let mut row = |name, formula, reduction, k, dtype, d, (m, n), operations| {
        rows.push(Row { name, formula, reduction, k, dtype, d, m, n, operations });
    };
    let size = (10_000, 10_000);
    for d in [3, 10] {
        row("sum of exp", GAUSS, "Sum", None, DType::Float32, d, size, sum);
        row("logsumexp", EXPONENT, "LogSumExp", None, DType::Float32, d, size, log);
        row("argmin", "SqDist(x,y)", "ArgMin", None, DType::Float32, d, size, min);
        row("argkmin 10", "SqDist(x,y)", "ArgKMin", Some(10), DType::Float32, d, size, smallest);
        row("sum of exp", GAUSS, "Sum", None, DType::Float64, d, size, sum);
        row("argmin", "SqDist(x,y)", "ArgMin", None, DType::Float64, d, size, min);
    }
    row("value and gradient", BOTH, "Sum", None, DType::Float32, 3, size, both);
    row("sum of exp", GAUSS, "Sum", None, DType::Float32, 3, (100, 1_000_000), sum);
    rows
}

/// Fused operations on one lane that the machine does a second with all threads.
fn fused_rate() -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let once = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| black_box(chains()));
            }
        });
        (threads * CHAINS * REPEATS) as f64 / start.elapsed().as_secs_f64()
    };
    let best = (0..3).map(|_| once()).fold(0.0, f64::max);
    let lanes = if is_x86_feature_detected!("avx512f") { 16 } else { 8 };
    best * lanes as f64
}

const CHAINS: usize = 24;
const REPEATS: usize = 1 << 21;

/// Many independent chains of fused products.
fn chains() -> f32 {
    use std::arch::x86_64::*;
    #[target_feature(enable = "avx512f")]
    fn wide() -> f32 {
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(1e-3)));
        let mut sums = [_mm512_setzero_ps(); CHAINS];
        for _ in 0..REPEATS {
            sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(*sum, a, b));
        }
        sums.iter().map(|sum| _mm512_reduce_add_ps(*sum)).sum()
    }
    #[target_feature(enable = "avx2,fma")]
    fn narrow() -> f32 {
        let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(1e-3)));
        let mut sums = [_mm256_setzero_ps(); CHAINS];
        for _ in 0..REPEATS {
            sums.iter_mut().for_each(|sum| *sum = _mm256_fmadd_ps(*sum, a, b));
        }
        sums.iter().map(|sum| _mm256_cvtss_f32(*sum)).sum()
    }
    // SAFETY: the CPU has what it was just asked for, or any that the row below needs.
    unsafe { if is_x86_feature_detected!("avx512f") { wide() } else { narrow() } }
}

/// The largest difference to float64, relative to the largest value; or the part of indices that
/// differ.
fn error(row: &Row, arrays: &[&Array], call: &Genred) -> Result<f64> {
    let x = first(arrays[0], row.m.min(200))?;
    let exact: Vec<Array> = [&x, arrays[1], arrays[2]]
        .iter()
        .map(|a| a.astype(DType::Float64))
        .collect::<Result<_>>()?;
    let wanted = call.call(&exact.iter().collect::<Vec<_>>())?;
    let got = call.call(&[&x, arrays[1], arrays[2]])?;
    let numbers = |a: &Array| a.astype(DType::Float64)?.to_vec::<f64>();
    let (wanted, got) = (numbers(&wanted)?, numbers(&got)?);
    if row.reduction.starts_with("Arg") {
        let differ = wanted.iter().zip(&got).filter(|(a, b)| a != b).count();
        return Ok(differ as f64 / wanted.len() as f64);
    }
    let scale = wanted.iter().fold(0.0f64, |max, x| max.max(x.abs()));
    Ok(wanted.iter().zip(&got).fold(0.0f64, |max, (a, b)| max.max((a - b).abs())) / scale)
}

/// The first rows of an array.
fn first(array: &Array, rows: usize) -> Result<Array> {
    array.slice(&s![0..rows as isize])
}

fn main() -> Result<()> {
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let wanted = std::env::args().nth(2).unwrap_or_default();
    set_num_threads(std::thread::available_parallelism().map_or(1, |n| n.get()));
    let rng = Rng::new(1);
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.name.contains(&wanted)).collect();
    let mut work = Vec::new();
    for row in &rows {
        let formula = row.formula.replace("{d}", &row.d.to_string());
        let aliases =
            [format!("x = Vi({})", row.d), format!("y = Vj({})", row.d), "b = Vj(1)".into()];
        let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let call = Genred::with(&formula, &aliases, row.reduction, 1, row.k, None)?;
        let arrays = [
            rng.normal(&[row.m, row.d], row.dtype)?,
            rng.normal(&[row.n, row.d], row.dtype)?,
            rng.normal(&[row.n, 1], row.dtype)?,
        ];
        let start = Instant::now();
        call.call(&[&first(&arrays[0], 100)?, &arrays[1], &arrays[2]])?;
        work.push((call, arrays, start.elapsed().as_secs_f64(), f64::INFINITY));
    }
    let mut rate = 0.0f64;
    for _ in 0..rounds {
        rate = rate.max(fused_rate());
        for (call, arrays, _, best) in &mut work {
            let start = Instant::now();
            black_box(call.call(&[&arrays[0], &arrays[1], &arrays[2]])?);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    println!("FMA {:.0} GFLOP/s float32", rate * 2e-9);
    println!(
        "{:<20} {:>8} {:>3} {:>9} {:>7} {:>10} {:>10}",
        "", "dtype", "D", "Gpairs/s", "share", "error", "first ms"
    );
    for (row, (call, arrays, first, best)) in rows.iter().zip(&work) {
        let pairs = (row.m * row.n) as f64 / best;
        let double = row.dtype == DType::Float64;
        let operations = (row.operations)(row.d, if double { 15 } else { 9 });
        let limit = rate / if double { 2.0 } else { 1.0 } / operations as f64;
        let error = error(row, &arrays.each_ref(), call)?;
        println!(
            "{:<20} {:>8} {:>3} {:>9.2} {:>7.2} {:>10.1e} {:>10.2}",
            row.name,
            row.dtype.to_string(),
            row.d,
            pairs * 1e-9,
            pairs / limit,
            error,
            first * 1e3
        );
    }
    if let Some((call, arrays, ..)) = work.first() {
        println!("\n{}", call.explain(&arrays.each_ref(), &Options::default())?);
    }
    Ok(())
}
