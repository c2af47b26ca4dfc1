//! Reductions over pairs against the limit of the machine.
//!
//! For every row: pairs per second, the share of the limit that counted operations set (the FMA
//! rate is measured in the same rounds), and the error against float64. Operations of a pair: 2D
//! for the squared distance, 1 for its scale, 9 (float32) or 15 (float64) for an exponential, 1 for
//! the sum; 2 more for logsumexp, 3 for argmin, 1 for the K smallest, D + 1 instead of 1 where the
//! gradient is summed too, and as many as there are columns of b.
//! `cargo run --release --example pairs_speed [rounds [part of a row's name [explain]]]`.
//!
//! `pairs_speed growth [rounds [part of a work's name]]` prints the time for a pair against N and
//! against D instead, of the sizes that `bench/pairs.py` plots, and which neighbours differ by more than
//! [`NEIGHBOURS`], beside the operations that a larger D adds.

use std::hint::black_box;
use std::time::Instant;

use tilework::pairs::{Genred, Options};
use tilework::{Array, DType, Result, Rng, s, set_num_threads};
use tilework_cpu::limits::multiply_adds;

struct Row {
    name: String,
    formula: &'static str,
    reduction: &'static str,
    k: Option<usize>,
    dtype: DType,
    d: usize,
    m: usize,
    n: usize,
    /// Columns of b.
    columns: usize,
    operations: usize,
}

const GAUSS: &str = "Exp(-SqDist(x,y) / {d}) * b";
const EXPONENT: &str = "-SqDist(x,y) / {d}";
const BOTH: &str =
    "Concat(Exp(-SqDist(x,y) / {d}) * b, Grad(Exp(-SqDist(x,y) / {d}) * b, x, IntCst(1)))";

/// Neighbouring sizes should take this much more or less for a pair at most.
const NEIGHBOURS: f64 = 1.3;

/// The row of some work of a name, with its counted operations.
fn row(
    (work, formula, reduction, k): (&str, &'static str, &'static str, Option<usize>),
    dtype: DType,
    d: usize,
    (m, n): (usize, usize),
    columns: usize,
) -> Row {
    let exponential = if dtype == DType::Float64 { 15 } else { 9 };
    let rest = match work {
        "sum of exp" => 1 + exponential + columns,
        "logsumexp" => 1 + exponential + 3,
        "argmin" => 3,
        "argkmin 10" => 1,
        _ => 1 + exponential + d + 1,
    };
    let name = format!("{work} {dtype} D={d} {m}x{n} b={columns}");
    let operations = 2 * d + rest;
    Row { name, formula, reduction, k, dtype, d, m, n, columns, operations }
}

type Work = (&'static str, &'static str, &'static str, Option<usize>);
const SUM: Work = ("sum of exp", GAUSS, "Sum", None);
const LOG: Work = ("logsumexp", EXPONENT, "LogSumExp", None);
const NEAREST: Work = ("argmin", "SqDist(x,y)", "ArgMin", None);
const TEN: Work = ("argkmin 10", "SqDist(x,y)", "ArgKMin", Some(10));
const GRADIENT: Work = ("value and gradient", BOTH, "Sum", None);

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let (single, double) = (DType::Float32, DType::Float64);
    for (d, n) in [(3, 20_000), (10, 20_000), (64, 10_000)] {
        rows.extend([SUM, LOG, NEAREST, TEN].map(|work| row(work, single, d, (n, n), 1)));
        rows.extend([SUM, NEAREST].map(|work| row(work, double, d, (n, n), 1)));
    }
    rows.push(row(GRADIENT, single, 3, (20_000, 20_000), 1));
    rows.push(row(SUM, single, 3, (100, 1_000_000), 1));
    for n in [10, 100] {
        rows.extend([SUM, LOG, NEAREST].map(|work| row(work, single, 3, (1_000_000, n), 1)));
    }
    rows.push(row(SUM, single, 2, (6_000, 6_000), 1));
    rows.push(row(LOG, single, 2, (3_000, 3_000), 1));
    rows.push(row(SUM, single, 3, (10_000, 10_000), 16));
    rows.push(row(SUM, single, 3, (10_000, 10_000), 100));
    rows
}

/// The call of a row and its arrays.
fn ready(row: &Row, rng: &Rng) -> Result<(Genred, [Array; 3])> {
    let formula = row.formula.replace("{d}", &row.d.to_string());
    let aliases = [
        format!("x = Vi({})", row.d),
        format!("y = Vj({})", row.d),
        format!("b = Vj({})", row.columns),
    ];
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    let call = Genred::with(&formula, &aliases, row.reduction, 1, row.k, None)?;
    let arrays = [
        rng.normal(&[row.m, row.d], row.dtype)?,
        rng.normal(&[row.n, row.d], row.dtype)?,
        rng.normal(&[row.n, row.columns], row.dtype)?,
    ];
    Ok((call, arrays))
}

/// Prints how time grows with N and with D. Sizes take turns in every round.
fn growth(rounds: usize, wanted: &str) -> Result<()> {
    let works = [SUM, LOG, NEAREST, TEN].into_iter().filter(|work| work.0.contains(wanted));
    let works: Vec<Work> = works.collect();
    let by_n = (0..27).map(|k| ((500.0 * 1.2f64.powi(k)).round() as usize, 3));
    let by_d = [1, 2, 3, 4, 6, 8, 10, 12, 15, 16, 20, 28, 40, 64, 96].map(|d| (6000, d));
    let mut apart = Vec::new();
    for (sizes, along) in [(by_n.collect::<Vec<_>>(), "N"), (by_d.to_vec(), "D")] {
        let mut calls = Vec::new();
        let rng = Rng::new(1);
        for &(n, d) in &sizes {
            for &work in &works {
                let row = row(work, DType::Float32, d, (n, n), 1);
                let (call, arrays) = ready(&row, &rng)?;
                call.call(&arrays.each_ref())?;
                calls.push((row, call, arrays, f64::INFINITY));
            }
        }
        for _ in 0..rounds {
            for (row, call, arrays, best) in &mut calls {
                // Small sizes are repeated, so that the clock is exact.
                let repeat = (4_000_000 / (row.n * row.n)).max(1);
                // One call alone: what other sizes have pushed out of the caches costs as much as
                // two small calls, on one thread too.
                black_box(call.call(&arrays.each_ref())?);
                let start = Instant::now();
                for _ in 0..repeat {
                    black_box(call.call(&arrays.each_ref())?);
                }
                *best = best.min(start.elapsed().as_secs_f64() / repeat as f64);
            }
        }
        println!("{:>6}  ns for a pair, and of the size before", along);
        let cost = |number: usize| {
            let (row, .., best) = &calls[number];
            (best * 1e9 / (row.n * row.n) as f64, row.operations as f64)
        };
        for (k, &(n, d)) in sizes.iter().enumerate() {
            let size = if along == "N" { n } else { d };
            print!("{size:>6}");
            for (w, work) in works.iter().enumerate() {
                let (now, operations) = cost(k * works.len() + w);
                let (before, fewer) = cost(k.saturating_sub(1) * works.len() + w);
                let ratio = now / before;
                print!("  {:>10} {now:.5} {ratio:.2}", work.0);
                if !(1.0 / NEIGHBOURS..=NEIGHBOURS * operations / fewer).contains(&ratio) {
                    apart.push(format!("{along} {} {size}: {ratio:.2}", work.0));
                }
            }
            println!();
        }
    }
    println!("more than {NEIGHBOURS} apart: {}", apart.join("; "));
    Ok(())
}

/// Fused operations on one lane that the machine does a second with all threads.
fn fused_rate(double: bool) -> f64 {
    let once = |_| {
        let start = Instant::now();
        multiply_adds(double) / 2.0 / start.elapsed().as_secs_f64()
    };
    (0..200).map(once).fold(0.0, f64::max)
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
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let grows = arguments.first().is_some_and(|first| first == "growth");
    arguments.drain(..usize::from(grows));
    let rounds: usize = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(5);
    let wanted = arguments.get(1).cloned().unwrap_or_default();
    let explained = arguments.get(2).is_some();
    set_num_threads(std::thread::available_parallelism().map_or(1, |n| n.get()));
    if grows {
        return growth(rounds, &wanted);
    }
    let rng = Rng::new(1);
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.name.contains(&wanted)).collect();
    let mut work = Vec::new();
    for row in &rows {
        let (call, arrays) = ready(row, &rng)?;
        let start = Instant::now();
        call.call(&[&first(&arrays[0], 100)?, &arrays[1], &arrays[2]])?;
        work.push((call, arrays, start.elapsed().as_secs_f64(), f64::INFINITY));
    }
    let mut rates = [0.0f64; 2];
    for _ in 0..rounds {
        rates = [rates[0].max(fused_rate(false)), rates[1].max(fused_rate(true))];
        for (call, arrays, _, best) in &mut work {
            let start = Instant::now();
            black_box(call.call(&[&arrays[0], &arrays[1], &arrays[2]])?);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    println!("FMA {:.0} GFLOP/s float32, {:.0} float64", rates[0] * 2e-9, rates[1] * 2e-9);
    println!("{:<52} {:>9} {:>6} {:>9} {:>9}", "", "Gpairs/s", "share", "error", "first ms");
    for (row, (call, arrays, first, best)) in rows.iter().zip(&work) {
        let pairs = (row.m * row.n) as f64 / best;
        let limit = rates[usize::from(row.dtype == DType::Float64)] / row.operations as f64;
        let (rate, share, first) = (pairs * 1e-9, pairs / limit, first * 1e3);
        let error = error(row, &arrays.each_ref(), call)?;
        println!("{:<52} {rate:>9.2} {share:>6.2} {error:>9.1e} {first:>9.2}", row.name);
        if explained {
            println!("{}", call.explain(&arrays.each_ref(), &Options::default())?);
        }
    }
    Ok(())
}
