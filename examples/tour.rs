//! A tour: views without copies, broadcasting, reductions, a product, random numbers, and what
//! each costs on this machine.
//!
//! Run with `cargo run --release -p tilework --example tour`.

use std::time::{Duration, Instant};

use tilework::{Array, DType, Device, Direction, Result, Rng, s, select};

fn main() -> Result<()> {
    views()?;
    picture()?;
    // The processor, and the cards where there are any; the reference is not made for speed.
    for device in Device::all().into_iter().filter(|device| *device != Device::reference()) {
        let _scope = device.scope();
        costs()?;
    }
    Ok(())
}

/// Transposing, slicing and broadcasting rewrite five fields; the numbers stay where they are.
fn views() -> Result<()> {
    let x = Array::arange(0, 12, 1, DType::Int32)?.reshape(&[3, 4])?;
    let corner = x.transpose().slice(&s![..;-2, 1..])?;
    println!("x =\n{x}\n\nx.T[::-2, 1:] =\n{corner}");
    println!(
        "shape {:?}, strides {:?}, offset {}, one block: {}\n",
        corner.shape(),
        corner.strides(),
        corner.offset(),
        corner.is_same_block(&x)
    );
    corner.fill(0)?;
    println!("after filling the view with zeros, x =\n{x}\n");
    Ok(())
}

/// The Mandelbrot set: complex arithmetic on a whole grid at a time.
fn picture() -> Result<()> {
    let (rows, columns) = (28, 76);
    let re = Array::linspace(-2.1..=0.7, columns, DType::Float64)?;
    let im = Array::linspace(-1.2..=1.2, rows, DType::Float64)?.expand_dims(1)?;
    let grid = [rows, columns];
    let c = tilework::complex(&re.broadcast_to(&grid)?, &im.broadcast_to(&grid)?)?;
    let z = Array::zeros(&grid, c.dtype())?;
    let steps = Array::zeros(&grid, DType::Int64)?;
    for _ in 0..60 {
        let inside = z.abs()?.less(2.0)?;
        z.assign(&select(&inside, &z.square()?.add(&c)?, &z)?)?;
        steps.add_assign(&inside)?;
    }
    let shades = b" .:-=+*#%@";
    for row in steps.unstack(0)? {
        let line: String = row
            .iter::<i64>()?
            .map(|n| shades[(n as usize * (shades.len() - 1)) / 60] as char)
            .collect();
        println!("{line}");
    }
    Ok(())
}

/// What operations cost here: the best of several runs.
fn costs() -> Result<()> {
    let rng = Rng::new(1);
    let n = 1 << 22;
    let (x, y) = (rng.normal(&[n], DType::Float32)?, rng.normal(&[n], DType::Float32)?);
    let m = rng.normal(&[1024, 1024], DType::Float32)?;
    let big = rng.normal(&[2048, 2048], DType::Float32)?;
    println!("\nOn {}, best of five:", Device::current());
    let report = |what: &str, amount: f64, unit: &str, time: Duration| {
        println!(
            "  {what:<28} {:>9.3} ms   {:>8.1} {unit}",
            time.as_secs_f64() * 1e3,
            amount / time.as_secs_f64() / 1e9
        );
    };
    let bytes = (n * 4) as f64;
    report("add, 4 M float32", 3.0 * bytes, "GB/s", best(|| x.add(&y))?);
    report("exp, 4 M float32", 2.0 * bytes, "GB/s", best(|| x.exp())?);
    report("sum, 4 M float32", bytes, "GB/s", best(|| x.sum(()))?);
    report("sort, 4 M float32", bytes, "GB/s", best(|| x.sort(0, Direction::Ascending))?);
    report("transposed copy, 2048 x 2048", 2.0 * bytes, "GB/s", best(|| big.transpose().copy())?);
    report("matmul, 1024 x 1024", 2.0 * 1024f64.powi(3), "GFLOP/s", best(|| m.matmul(&m))?);
    Ok(())
}

fn best(mut work: impl FnMut() -> Result<Array>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        work()?.device().synchronize()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}
