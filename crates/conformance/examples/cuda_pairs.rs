//! Rates of reductions over pairs on the first CUDA device, in pairs per second.
//!
//! `cargo run --release --example cuda_pairs`, or from the folder that `make cuda-bundle` makes. Each
//! line is the best of several rounds; a round ends when the device is done. An argument is a
//! pattern of lines. The last column is the error against float64 relative to the largest result.

use std::time::Instant;

use tilework::Rng;
use tilework::pairs::{Accuracy, Genred, Options};
use tilework_conformance::{Array, DType, Device, Result, pairs::floats};

/// Seconds of one call: the first, and the best of several rounds of many.
fn time(device: Device, work: impl Fn() -> Result<()>) -> Result<(f64, f64)> {
    let round = |calls: u32| -> Result<f64> {
        device.synchronize()?;
        let begin = Instant::now();
        for _ in 0..calls {
            work()?;
        }
        device.synchronize()?;
        Ok(begin.elapsed().as_secs_f64() / calls as f64)
    };
    let first = round(1)?;
    let calls = ((0.02 / round(1)?) as u32).clamp(1, 1000);
    let rounds = (0..3).map(|_| round(calls)).collect::<Result<Vec<f64>>>()?;
    Ok((first, rounds.into_iter().fold(f64::INFINITY, f64::min)))
}

/// A line of the table.
struct Work {
    name: &'static str,
    reduction: &'static str,
    k: Option<usize>,
    formula: &'static str,
    dim: usize,
    width: usize,
    sizes: (usize, usize, usize),
    dtype: DType,
    accuracy: Accuracy,
}

const GAUSS: &str = "Exp(-SqDist(x,y) * s) * b";

fn works() -> Vec<Work> {
    let base = |name, dim, n| Work {
        name,
        reduction: "Sum",
        k: None,
        formula: GAUSS,
        dim,
        width: 1,
        sizes: (1, n, n),
        dtype: DType::Float32,
        accuracy: Accuracy::Declared,
    };
    let n = 100_000;
    let other =
        |name, reduction, k, formula, dim| Work { reduction, k, formula, ..base(name, dim, n) };
    let (distance, laplace) = ("SqDist(x,y)", "Exp(-Sqrt(SqDist(x,y))) * b");
    let (logarithm, both) = (
        "-SqDist(x,y) * s",
        "Concat(Exp(-SqDist(x,y) * s) * b, Grad(Exp(-SqDist(x,y) * s) * b, x, b))",
    );
    vec![
        base("gauss D=3 N=1e4", 3, 10_000),
        base("gauss D=3 N=1e5", 3, n),
        base("gauss D=3 N=1e6", 3, 1_000_000),
        Work { accuracy: Accuracy::Strict, ..base("gauss D=3 N=1e6 strict", 3, 1_000_000) },
        base("gauss D=10", 10, n),
        base("gauss D=64", 64, n),
        base("gauss D=784 N=1e4", 784, 10_000),
        other("exp(-sqrt) D=3", "Sum", None, laplace, 3),
        other("argmin D=3", "ArgMin", None, distance, 3),
        other("argmin D=10", "ArgMin", None, distance, 10),
        other("argmin D=64", "ArgMin", None, distance, 64),
        other("argKmin10 D=3", "ArgKMin", Some(10), distance, 3),
        other("argKmin10 D=10", "ArgKMin", Some(10), distance, 10),
        other("argKmin10 D=64", "ArgKMin", Some(10), distance, 64),
        other("argKmin100 D=3", "ArgKMin", Some(100), distance, 3),
        other("logsumexp D=3", "LogSumExp", None, logarithm, 3),
        other("logsumexp D=10", "LogSumExp", None, logarithm, 10),
        other("logsumexp D=64", "LogSumExp", None, logarithm, 64),
        other("gauss and gradient D=3", "Sum", None, both, 3),
        other("gauss and gradient D=10", "Sum", None, both, 10),
        other("gauss and gradient D=64", "Sum", None, both, 64),
        other("outer products D=10", "Sum", None, "TensorProd(x - y, x - y)", 10),
        Work { sizes: (1, 100, 10_000_000), ..base("gauss M=100 N=1e7", 3, n) },
        Work { width: 16, ..base("gauss width 16", 3, n) },
        Work { width: 128, ..base("gauss width 128", 3, n) },
        Work { width: 64, ..other("exp(-sqrt) width 64", "Sum", None, laplace, 3) },
        Work { dtype: DType::Float16, ..base("gauss float16 D=64", 64, n) },
        Work {
            dtype: DType::Float16,
            ..other("argmin float16 D=64", "ArgMin", None, distance, 64)
        },
        Work {
            sizes: (1, 10_000, 1_000_000),
            ..other("argmin M=1e4 N=1e6 D=64", "ArgMin", None, distance, 64)
        },
        Work { dtype: DType::Float64, ..base("gauss float64", 3, n) },
        Work { dtype: DType::Float64, ..other("argmin float64", "ArgMin", None, distance, 3) },
        Work { sizes: (64, 2000, 2000), ..base("gauss 64 x 2000 x 2000", 3, n) },
        base("gauss 10 x 10", 3, 10),
    ]
}

fn run(device: Device, work: &Work) -> Result<()> {
    let (batches, m, n) = work.sizes;
    let rng = Rng::new(1);
    let draw = |rows: usize, dim: usize| -> Result<Array> {
        let shape = if batches == 1 { vec![rows, dim] } else { vec![batches, rows, dim] };
        rng.normal(&shape, DType::Float64)?.astype(work.dtype)
    };
    let (x, y, b) = (draw(m, work.dim)?, draw(n, work.dim)?, draw(n, work.width)?);
    let s = Array::full_on(Device::cpu(), &[1], 1.0 / work.dim as f64, work.dtype)?;
    let aliases = [
        format!("x = Vi({})", work.dim),
        format!("y = Vj({})", work.dim),
        "s = Pm(1)".to_owned(),
        format!("b = Vj({})", work.width),
    ];
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    let call = Genred::with(work.formula, &aliases, work.reduction, 1, work.k, None)?;
    let options = Options { accuracy: work.accuracy, ..Options::default() };
    let here = [x, y, s, b];
    let there = here.iter().map(|x| x.to_device(device)).collect::<Result<Vec<Array>>>()?;
    let arrays: Vec<&Array> = there.iter().collect();
    let (first, seconds) = time(device, || call.call_with(&arrays, &options).map(drop))?;
    let got = call.call_with(&arrays, &options)?;
    let error = error(&call, &here, got.values, work)?;
    let pairs = (batches * m * n) as f64 / seconds;
    let us = seconds * 1e6;
    println!(
        "{:<26} {us:>11.1} us {pairs:>11.3e}/s first {first:>6.3} s error {error:.1e}",
        work.name
    );
    Ok(())
}

/// The error of the first rows against float64, relative to the largest.
fn error(call: &Genred, here: &[Array], got: Option<Array>, work: &Work) -> Result<f64> {
    let Some(got) = got.filter(|_| work.sizes.0 == 1) else { return Ok(0.0) };
    let rows = 32.min(work.sizes.1 as isize);
    let exact = here.iter().map(|x| x.astype(DType::Float64)).collect::<Result<Vec<Array>>>()?;
    let x = exact[0].slice(&tilework::s![..rows])?;
    let exact = call.call(&[&x, &exact[1], &exact[2], &exact[3]])?;
    let (got, exact) = (floats(&got.slice(&tilework::s![..rows])?), floats(&exact));
    let size = exact.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    Ok(got.iter().zip(&exact).fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs() / size)))
}

fn main() {
    let pattern = std::env::args().nth(1).unwrap_or_default();
    let done = Device::parse("cuda:0").and_then(|device| {
        works()
            .iter()
            .filter(|work| work.name.contains(&pattern))
            .try_for_each(|work| run(device, work))
    });
    if let Err(error) = done {
        println!("{error}");
    }
}
