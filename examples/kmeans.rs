//! k-means: cluster points by broadcasting, argmin and a product with a one-hot matrix.
//!
//! Run with `cargo run --release -p tilework --example kmeans`.

use tilework::{Array, DType, Result, Rng};

const POINTS: usize = 20_000;
const CLUSTERS: usize = 5;

fn main() -> Result<()> {
    let points = sample()?;
    let mut centres =
        points.slice(&tilework::s![..;POINTS as isize / CLUSTERS as isize])?.copy()?;
    for round in 1..=50 {
        let (labels, spread) = assign(&points, &centres)?;
        // Sums of the points of each cluster are one matrix product.
        let member = labels.one_hot(CLUSTERS, DType::Float64)?;
        let sums = member.transpose().matmul(&points)?;
        let sizes = member.sum(0)?.maximum(1.0)?.expand_dims(1)?;
        let moved = (&sums / &sizes)?;
        let shift = moved.subtract(&centres)?.norm((), 2.0)?.item::<f64>()?;
        centres = moved;
        if shift < 1e-9 {
            println!("settled after {round} rounds, mean square distance {spread:.4}");
            break;
        }
    }
    println!("centres:\n{centres}");
    Ok(())
}

/// Points around five centres.
fn sample() -> Result<Array> {
    let rng = Rng::new(2026);
    let centres = (&rng.uniform(&[CLUSTERS, 2], DType::Float64)? * 10.0)?;
    let which = rng.integers(0, CLUSTERS as i64, &[POINTS])?;
    let noise = (&rng.normal(&[POINTS, 2], DType::Float64)? * 0.5)?;
    &centres.take(&which, 0)? + &noise
}

/// The nearest centre of each point, and the mean square distance to it.
fn assign(points: &Array, centres: &Array) -> Result<(Array, f64)> {
    let difference = points.expand_dims(1)?.subtract(&centres.expand_dims(0)?)?;
    let distances = difference.square()?.sum(-1)?;
    let spread = distances.min(1)?.mean(())?.item::<f64>()?;
    Ok((distances.argmin(1)?, spread))
}
