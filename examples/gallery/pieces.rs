//! The five jobs. Each draws its data, does its reductions under a watch, and draws a picture.

use std::f64::consts::TAU;

use tilework::pairs::{LazyTensor, Options, Solve};
use tilework::{Array, DType, Result, Rng, s};

use crate::dense::cost;
use crate::draw::{Image, Plot, heat, hue};
use crate::page::counted;
use crate::{Picture, Piece, Watch};

const FLOAT: DType = DType::Float32;

/// A job: it makes its piece.
type Job = fn() -> Result<Piece>;

/// All jobs, in the order of the page.
pub(crate) const ALL: &[Job] = &[density, neighbours, kmeans, regression, transport];

/// The centres of `side` x `side` cells of a square, row by row from the top.
fn grid(side: usize, low: f64, high: f64) -> Result<Array> {
    let step = (high - low) / side as f64;
    let at = |k: usize| low + (k as f64 + 0.5) * step;
    let points: Vec<f32> = (0..side * side)
        .flat_map(|k| [at(k % side) as f32, at(side - 1 - k / side) as f32])
        .collect();
    Array::from_slice(&points)?.reshape(&[(side * side) as isize, 2])
}

/// Points on the arms of a spiral, and which arm each is on.
fn spirals(n: usize, arms: usize, noise: f64) -> Result<(Array, Vec<usize>)> {
    let rng = Rng::new(7);
    let along = rng.uniform(&[n], DType::Float64)?.to_vec::<f64>()?;
    let jitter = rng.normal(&[n, 2], DType::Float64)?.to_vec::<f64>()?;
    let arm: Vec<usize> = (0..n).map(|k| k % arms).collect();
    let mut points = Vec::with_capacity(2 * n);
    for k in 0..n {
        let radius = 0.15 + 0.8 * along[k].sqrt();
        let angle = TAU * arm[k] as f64 / arms as f64 + 3.0 * radius;
        points.push((radius * angle.cos() + noise * jitter[2 * k]) as f32);
        points.push((radius * angle.sin() + noise * jitter[2 * k + 1]) as f32);
    }
    Ok((Array::from_slice(&points)?.reshape(&[n as isize, 2])?, arm))
}

/// exp(-|x - y|^2 / (2 s^2)).
fn gauss(x: &Array, y: &Array, s: f64) -> Result<LazyTensor> {
    let d = LazyTensor::vi(x)?.sqdist(&LazyTensor::vj(y)?)?;
    (&d * (-0.5 / (s * s)))?.exp()
}

/// Kernel density of 100,000 points on a grid.
fn density() -> Result<Piece> {
    const SIDE: usize = 200;
    let (points, _) = spirals(100_000, 3, 0.05)?;
    let cells = grid(SIDE, -1.2, 1.2)?;
    let mut watch = Watch::default();
    let values = watch.run(|| gauss(&cells, &points, 0.02)?.sum(1))?;
    let dense = cost(&cells, &points, 1.0, |d| (d * -1250.0)?.exp()?.sum(1))?;
    let values = values.to_vec::<f32>()?;
    let top = values.iter().copied().fold(0.0, f32::max);
    let shade = |k: usize| heat(f64::from(values[k] / top).sqrt());
    Ok(Piece {
        name: "density",
        title: "Kernel density",
        story: format!(
            "100,000 points, a Gaussian on each, summed in {} cells.",
            counted(SIDE * SIDE)
        ),
        code: "K = (-Vi(grid).sqdist(Vj(points)) / (2 * s**2)).exp()\ndensity = K.sum(axis=1)",
        picture: Picture::Png(Image::new(SIDE, SIDE, shade).scaled(3).png()),
        pairs: (SIDE * SIDE * 100_000) as f64,
        seconds: watch.0,
        dense,
    })
}

/// A map of which arm the nearest neighbours of a place are on.
fn neighbours() -> Result<Piece> {
    const SIDE: usize = 200;
    const POINTS: usize = 20_000;
    const ARMS: usize = 5;
    const NEAREST: usize = 15;
    let (points, arm) = spirals(POINTS, ARMS, 0.06)?;
    let cells = grid(SIDE, -1.2, 1.2)?;
    let mut watch = Watch::default();
    let nearest = watch
        .run(|| LazyTensor::vi(&cells)?.sqdist(&LazyTensor::vj(&points)?)?.argkmin(NEAREST, 1))?;
    // A partition is what NumPy has; a minimum is a polite estimate of it.
    let dense = cost(&cells, &points, 1.0, |d| d.min(1))?;
    let nearest = nearest.to_vec::<i64>()?;
    let shade = |k: usize| {
        let mut votes = [0; ARMS];
        for &j in &nearest[k * NEAREST..(k + 1) * NEAREST] {
            votes[arm[j as usize]] += 1;
        }
        let (winner, most) =
            votes.iter().enumerate().max_by_key(|(_, votes)| **votes).unwrap_or((0, &0));
        hue(winner as f64 / ARMS as f64, *most as f64 / NEAREST as f64)
    };
    Ok(Piece {
        name: "neighbours",
        title: "Nearest neighbours",
        story: format!(
            "Each of {} places takes the colour of the {NEAREST} nearest among 20,000 points of \
             five kinds; it is paler where they disagree. Indices are exact.",
            counted(SIDE * SIDE)
        ),
        code: "nearest = Vi(places).sqdist(Vj(points)).argKmin(15, axis=1)",
        picture: Picture::Png(Image::new(SIDE, SIDE, shade).scaled(3).png()),
        pairs: (SIDE * SIDE * POINTS) as f64,
        seconds: watch.0,
        dense,
    })
}

/// Lloyd's algorithm: nearest centres, then means, both reductions.
fn kmeans() -> Result<Piece> {
    const POINTS: usize = 100_000;
    const CENTRES: usize = 60;
    const ROUNDS: usize = 25;
    let (points, _) = spirals(POINTS, 4, 0.09)?;
    let mut centres = points.slice(&s![0..CENTRES as isize])?.copy()?;
    let numbers = Array::arange(0, CENTRES as i64, 1, FLOAT)?.reshape(&[CENTRES as isize, 1])?;
    let mut watch = Watch::default();
    let mut labels = Array::zeros(&[POINTS, 1], DType::Int64)?;
    for _ in 0..ROUNDS {
        labels =
            watch.run(|| LazyTensor::vi(&points)?.sqdist(&LazyTensor::vj(&centres)?)?.argmin(1))?;
        // Sums over the points of each centre, and how many they are, in one reduction over i.
        let sums = watch.run(|| {
            let label = LazyTensor::vi(&labels.astype(FLOAT)?)?;
            let mine = label.equal(&LazyTensor::vj(&numbers)?)?;
            let with_one = LazyTensor::vi(&points)?.concat(1.0)?;
            mine.multiply(&with_one)?.sum(0)
        })?;
        let counts = sums.slice(&s![.., 2..3])?.maximum(1.0)?;
        centres = sums.slice(&s![.., 0..2])?.divide(&counts)?;
    }
    let dense = cost(&points, &centres, ROUNDS as f64, |d| d.argmin(1))?;
    let (at, label, middle) =
        (points.to_vec::<f32>()?, labels.to_vec::<i64>()?, centres.to_vec::<f32>()?);
    let mut plot = Plot::new(-1.3, 1.3);
    // A step that meets every arm.
    for k in (0..POINTS).step_by(19) {
        let colour = hue(label[k] as f64 * 0.382, 0.55);
        plot.dot(at[2 * k], at[2 * k + 1], 1.4, colour);
    }
    for centre in middle.chunks_exact(2) {
        plot.ring(centre[0], centre[1]);
    }
    Ok(Piece {
        name: "kmeans",
        title: "k-means",
        story: format!("100,000 points, {CENTRES} centres, {ROUNDS} rounds of Lloyd's algorithm."),
        code: "label = Vi(x).sqdist(Vj(centres)).argmin(axis=1)\n\
               mine = Vi(label) == Vj(numbers)\n\
               sums = (mine * Vi(x).concat(1)).sum(axis=0)",
        picture: Picture::Svg(plot.svg()),
        pairs: (2 * POINTS * CENTRES * ROUNDS) as f64,
        seconds: watch.0,
        dense,
    })
}

/// Kernel ridge regression of a noisy surface by conjugate gradients.
fn regression() -> Result<Piece> {
    const POINTS: usize = 6_000;
    const SIDE: usize = 160;
    const WIDTH: f64 = 0.12;
    let rng = Rng::new(11);
    let x = (&(&rng.uniform(&[POINTS, 2], FLOAT)? * 2.0)? - 1.0)?;
    let noise = rng.normal(&[POINTS, 1], FLOAT)?.to_vec::<f32>()?;
    let surface = |a: f32, b: f32| (5.0 * a).sin() * (4.0 * b).cos() + 0.6 * (9.0 * a * b).sin();
    let values: Vec<f32> = x
        .to_vec::<f32>()?
        .chunks_exact(2)
        .zip(&noise)
        .map(|(at, noise)| surface(at[0], at[1]) + 0.3 * noise)
        .collect();
    let b = Array::from_slice(&values)?.reshape(&[POINTS as isize, 1])?;
    let mut watch = Watch::default();
    let system = Solve { alpha: 1.0, tol: 1e-4, maxiter: None };
    let solved = watch.run(|| gauss(&x, &x, WIDTH)?.solve(&b, &system, &Options::default()))?;
    let steps = solved.iterations;
    let weights = solved.converged()?;
    let cells = grid(SIDE, -1.0, 1.0)?;
    let fitted = watch.run(|| gauss(&cells, &x, WIDTH)?.matmul(&weights))?.to_vec::<f32>()?;
    let dense = cost(&x, &x, 1.0, |d| (d * -30.0)?.exp())?;
    let shade = |k: usize| heat((f64::from(fitted[k]) + 1.6) / 3.2);
    Ok(Piece {
        name: "regression",
        title: "Kernel ridge regression",
        story: format!(
            "A surface from {points} noisy samples: a linear system with a {points} x {points} \
             matrix that is never stored, solved in {steps} products, then read off at {} places.",
            counted(SIDE * SIDE),
            points = counted(POINTS)
        ),
        code: "K = (-Vi(x).sqdist(Vj(x)) / (2 * s**2)).exp()\na = K.solve(b, alpha=1.0)",
        picture: Picture::Png(Image::new(SIDE, SIDE, shade).scaled(4).png()),
        pairs: (POINTS * POINTS * steps + SIDE * SIDE * POINTS) as f64,
        seconds: watch.0,
        dense,
    })
}

/// Entropic optimal transport between two clouds, by Sinkhorn's iterations in the log domain.
fn transport() -> Result<Piece> {
    const POINTS: usize = 3_000;
    const ROUNDS: usize = 60;
    let (from, _) = spirals(POINTS, 2, 0.03)?;
    let rng = Rng::new(3);
    let to = (&rng.normal(&[POINTS, 2], FLOAT)? * 0.35)?;
    let mut watch = Watch::default();
    let log_weight = -(POINTS as f64).ln();
    let mut g = Array::zeros(&[POINTS, 1], FLOAT)?;
    let mut blur = 0.5;
    let cost_of = |from: &Array, to: &Array| LazyTensor::vi(from)?.sqdist(&LazyTensor::vj(to)?);
    for _ in 0..ROUNDS {
        blur = f64::max(blur * 0.9, 0.02);
        let eps = blur * blur;
        // f_i = -eps log sum_j exp((g_j - c_ij) / eps) / N, and the same for g.
        let half = |from: &Array, to: &Array, g: &Array| -> Result<Array> {
            let score = LazyTensor::vj(g)?.subtract(&cost_of(from, to)?)?.multiply(1.0 / eps)?;
            &(&score.logsumexp(1)? + log_weight)? * -eps
        };
        let f = watch.run(|| half(&from, &to, &g))?;
        g = watch.run(|| half(&to, &from, &f))?;
    }
    let eps = blur * blur;
    let mapped = watch.run(|| {
        let score = LazyTensor::vj(&g)?.subtract(&cost_of(&from, &to)?)?.multiply(1.0 / eps)?;
        score.sumsoftmaxweight(&LazyTensor::vj(&to)?, 1)
    })?;
    let dense = cost(&from, &to, 2.0 * ROUNDS as f64, |d| (d * -9.0)?.exp()?.sum(1)?.log())?;
    let (a, b, c) = (from.to_vec::<f32>()?, mapped.to_vec::<f32>()?, to.to_vec::<f32>()?);
    let mut plot = Plot::new(-1.3, 1.3);
    for k in (0..POINTS).step_by(5) {
        plot.line((a[2 * k], a[2 * k + 1]), (b[2 * k], b[2 * k + 1]));
    }
    for k in 0..POINTS {
        plot.dot(a[2 * k], a[2 * k + 1], 1.5, [66, 110, 200]);
        plot.dot(c[2 * k], c[2 * k + 1], 1.5, [222, 110, 60]);
    }
    Ok(Piece {
        name: "transport",
        title: "Optimal transport",
        story: format!(
            "Where {} points of a spiral go when they become a Gaussian cloud at the least \
             cost: {ROUNDS} rounds of Sinkhorn's algorithm in the log domain.",
            counted(POINTS)
        ),
        code: "score = (Vj(g) - Vi(x).sqdist(Vj(y))) / eps\n\
               f = -eps * score.logsumexp(axis=1)\n\
               moved = score.sumsoftmaxweight(Vj(y), axis=1)",
        picture: Picture::Svg(plot.svg()),
        pairs: (POINTS * POINTS) as f64 * (2.0 * ROUNDS as f64 + 1.0),
        seconds: watch.0,
        dense,
    })
}
