//! Reductions over pairs against the limit of the machine.
//!
//! For every row: pairs per second, the share of the limit that counted operations set (the FMA
//! rate is measured in the same rounds), and the error against float64. Operations of a pair: 2D
//! for the squared distance, 1 for its scale, 9 (float32) or 15 (float64) for an exponential, 1 for
//! the sum; 2 more for logsumexp, 3 for argmin, 1 for the K smallest, D + 1 instead of 1 where the
//! gradient is summed too, and as many as there are columns of b.
//! `cargo run --release --example pairs_speed [rounds [part of a row's name [explain]]]`.

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

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |work: &str, formula, reduction, k, dtype: DType, d: usize, (m, n), columns| {
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
        rows.push(Row { name, formula, reduction, k, dtype, d, m, n, columns, operations });
    };
    let (single, double) = (DType::Float32, DType::Float64);
    for (d, n) in [(3, 20_000), (10, 20_000), (64, 10_000)] {
        row("sum of exp", GAUSS, "Sum", None, single, d, (n, n), 1);
        row("logsumexp", EXPONENT, "LogSumExp", None, single, d, (n, n), 1);
        row("argmin", "SqDist(x,y)", "ArgMin", None, single, d, (n, n), 1);
        row("argkmin 10", "SqDist(x,y)", "ArgKMin", Some(10), single, d, (n, n), 1);
        row("sum of exp", GAUSS, "Sum", None, double, d, (n, n), 1);
        row("argmin", "SqDist(x,y)", "ArgMin", None, double, d, (n, n), 1);
    }
    row("value and gradient", BOTH, "Sum", None, single, 3, (20_000, 20_000), 1);
    row("sum of exp", GAUSS, "Sum", None, single, 3, (100, 1_000_000), 1);
    for n in [10, 100] {
        row("sum of exp", GAUSS, "Sum", None, single, 3, (1_000_000, n), 1);
        row("logsumexp", EXPONENT, "LogSumExp", None, single, 3, (1_000_000, n), 1);
        row("argmin", "SqDist(x,y)", "ArgMin", None, single, 3, (1_000_000, n), 1);
    }
    row("sum of exp", GAUSS, "Sum", None, single, 2, (6_000, 6_000), 1);
    row("logsumexp", EXPONENT, "LogSumExp", None, single, 2, (3_000, 3_000), 1);
    row("sum of exp", GAUSS, "Sum", None, single, 3, (10_000, 10_000), 16);
    row("sum of exp", GAUSS, "Sum", None, single, 3, (10_000, 10_000), 100);
    rows
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
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let explained = std::env::args().nth(3).is_some();
    set_num_threads(std::thread::available_parallelism().map_or(1, |n| n.get()));
    let rng = Rng::new(1);
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.name.contains(&wanted)).collect();
    let mut work = Vec::new();
    for row in &rows {
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
