//! How cost grows with size: time against size for a product, a sum of two arrays and a reduction,
//! and the check that neighbouring sizes cost about the same for each unit of work.

use std::io::{self, Write};

use tilework::{DType, FoldId, Id};

use super::chart::Curve;
use super::clock::{Times, window};
use super::rows::Row;
use super::work::{Work, ours};

/// Sizes of a group may differ by this factor in the cost of a unit of work.
const NEIGHBOURS: f64 = 1.3;

/// How often sizes that differ by more are measured, all of them: a core that others take for a second
/// looks like a step, and a step is there every time.
const SITTINGS: usize = 3;

/// One operation over sizes.
struct Growth {
    name: &'static str,
    work: Work,
    shape: fn(usize) -> Vec<usize>,
    /// Units of work at a size.
    units: fn(usize) -> f64,
    /// Sizes whose neighbours below and above are measured too.
    centres: &'static [usize],
}

const PLAIN: Work = Work::Matmul { a_transposed: false, b_transposed: false };

/// Powers of two, and the edges of the tiles and blocks that kernels work in.
static GROWTHS: &[Growth] = &[
    Growth {
        name: "matmul",
        work: PLAIN,
        shape: |n| vec![n; 3],
        units: |n| (n as f64).powi(3),
        centres: &[64, 84, 128, 224, 256, 448, 512, 640, 768, 1024, 1536],
    },
    Growth {
        name: "add",
        work: Work::Map { id: Id::Add, out: true },
        shape: |n| vec![n],
        units: |n| n as f64,
        centres: &[1024, 4096, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24],
    },
    Growth {
        name: "sum",
        work: Work::Reduce { fold: FoldId::Sum, axis: None },
        shape: |n| vec![n],
        units: |n| n as f64,
        centres: &[1024, 4096, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24],
    },
];

/// How much the cost of a unit of work differs between the sizes around a centre.
pub(crate) struct Spread {
    name: &'static str,
    centre: usize,
    factor: f64,
}

/// What was found, in a sentence.
pub(crate) fn verdict(spreads: &[Spread]) -> String {
    let uneven: Vec<&Spread> = spreads.iter().filter(|spread| spread.factor > NEIGHBOURS).collect();
    let named: Vec<String> = uneven
        .iter()
        .map(|spread| format!("{} around {} ({:.2})", spread.name, spread.centre, spread.factor))
        .collect();
    let (fine, all) = (spreads.len() - uneven.len(), spreads.len());
    let rest =
        if named.is_empty() { String::new() } else { format!(" Not: {}.", named.join(", ")) };
    format!(
        "Of {all} groups of three neighbouring sizes, {fine} are within {NEIGHBOURS} of each other \
         for each unit of work.{rest}\n"
    )
}

/// Measures all curves, and says for each size whether it keeps with its neighbours.
pub(crate) fn run(
    out: &mut impl Write,
    rounds: usize,
    length: f64,
) -> io::Result<(Vec<Curve>, Vec<Spread>)> {
    let (mut curves, mut spreads) = (Vec::new(), Vec::new());
    for growth in GROWTHS {
        let mut curve = Vec::new();
        for &centre in growth.centres {
            let sizes = [centre - 1, centre, centre + 1];
            let mut times = vec![f64::INFINITY; sizes.len()];
            let mut spread = f64::INFINITY;
            for _ in 0..SITTINGS {
                let again = measure(growth, &sizes, rounds, length).map_err(io::Error::other)?;
                times.iter_mut().zip(again).for_each(|(best, time)| *best = best.min(time));
                let cost = |(&n, time): (&usize, &f64)| time / (growth.units)(n);
                let costs: Vec<f64> = sizes.iter().zip(&times).map(cost).collect();
                spread = costs.iter().copied().fold(0.0, f64::max)
                    / costs.iter().copied().fold(f64::INFINITY, f64::min);
                if spread <= NEIGHBOURS {
                    break;
                }
            }
            let fine = spread <= NEIGHBOURS;
            spreads.push(Spread { name: growth.name, centre, factor: spread });
            writeln!(
                out,
                "{:8} {centre:>9} -1 +0 +1: {:.3e} {:.3e} {:.3e} s, spread {spread:.2}, {}",
                growth.name,
                times[0],
                times[1],
                times[2],
                if fine { "pass" } else { "MISS" }
            )?;
            curve.extend(sizes.iter().map(|&n| n as f64).zip(times));
        }
        curves.push((growth.name.to_owned(), curve));
    }
    Ok((curves, spreads))
}

fn measure(
    growth: &Growth,
    sizes: &[usize],
    rounds: usize,
    length: f64,
) -> tilework::Result<Vec<f64>> {
    let row = |&n: &usize| Row {
        group: "growth",
        work: growth.work,
        dtype: DType::Float32,
        shape: (growth.shape)(n),
        target: 1.0.into(),
    };
    let mut calls = sizes.iter().map(|n| ours(&row(n))).collect::<tilework::Result<Vec<_>>>()?;
    let mut times = vec![Times::default(); sizes.len()];
    for _ in 0..rounds {
        for (call, times) in calls.iter_mut().zip(&mut times) {
            let mut failed = None;
            let seconds = window(length, &mut || failed = call().err().or(failed.take()));
            if let Some(error) = failed {
                return Err(error);
            }
            times.push(seconds);
        }
    }
    Ok(times.iter().map(Times::best).collect())
}
