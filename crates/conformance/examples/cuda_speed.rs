//! Rates of the first CUDA device: byte rates count what must be read and written.
//!
//! `cargo run --release --example cuda_speed`, or from the folder that `make cuda-bundle` makes.
//! Each line is the best of several rounds; a round ends when the device is done.

use std::time::Instant;

use tilework_conformance::{Array, DType, Device, Result};

/// Seconds of one call, the best of several rounds of many calls.
fn time(device: Device, work: impl Fn() -> Result<Array>) -> Result<f64> {
    let round = |calls: u32| -> Result<f64> {
        device.synchronize()?;
        let begin = Instant::now();
        for _ in 0..calls {
            drop(work()?);
        }
        device.synchronize()?;
        Ok(begin.elapsed().as_secs_f64() / calls as f64)
    };
    round(1)?;
    let calls = ((0.03 / round(1)?) as u32).clamp(1, 1000);
    let rounds = (0..5).map(|_| round(calls)).collect::<Result<Vec<f64>>>()?;
    Ok(rounds.into_iter().fold(f64::INFINITY, f64::min))
}

fn run(device: Device) -> Result<()> {
    let gigabytes = |name: &str, bytes: f64, work: &dyn Fn() -> Result<Array>| -> Result<()> {
        let seconds = time(device, work)?;
        println!("{name:<36} {:>10.1} us {:>8.0} GB/s", seconds * 1e6, bytes / seconds / 1e9);
        Ok(())
    };
    let n = 1usize << 28;
    let bytes = 4.0 * n as f64;
    let flat = Array::full_on(device, &[n], 0.37, DType::Float32)?;
    let x = flat.reshape(&[16384, 16384])?;
    let (row, column) = (x.slice(&tilework::s![0..1])?, x.slice(&tilework::s![.., 0..1])?);
    gigabytes("copy 2^28", 2.0 * bytes, &|| flat.copy())?;
    gigabytes("add 2^28", 3.0 * bytes, &|| flat.add(&flat))?;
    gigabytes("exp 2^28", 2.0 * bytes, &|| flat.exp())?;
    gigabytes("tanh 2^28", 2.0 * bytes, &|| flat.tanh())?;
    gigabytes("x + row", 2.0 * bytes, &|| x.add(&row))?;
    gigabytes("x + column", 2.0 * bytes, &|| x.add(&column))?;
    gigabytes("x + x.T", 3.0 * bytes, &|| x.add(&x.transpose()))?;
    gigabytes("transposing copy 16384^2", 2.0 * bytes, &|| x.transpose().copy())?;
    gigabytes("sum of all", bytes, &|| flat.sum(()))?;
    gigabytes("sum over rows", bytes, &|| x.sum(1))?;
    gigabytes("sum over columns", bytes, &|| x.sum(0))?;
    gigabytes("max of all", bytes, &|| flat.max(()))?;
    gigabytes("argmax over rows", bytes, &|| x.argmax(1))?;
    gigabytes("var over rows", bytes, &|| x.var(1, 0.0))?;
    gigabytes("cumulative sum 2^28", 2.0 * bytes, &|| flat.cumulative_sum(0))?;
    let part = flat
        .slice(&tilework::s![..1 << 24])?
        .multiply(&flat.slice(&tilework::s![1 << 24..1 << 25])?)?;
    gigabytes("sort 2^24", bytes / 8.0, &|| part.sort(0, false))?;
    let small = Array::full_on(device, &[8], 1.0, DType::Float32)?;
    gigabytes("x + x of 8 elements", 96.0, &|| small.add(&small))?;
    for (dtype, sizes) in [
        (DType::Float32, &[1024, 2048, 4096, 8192][..]),
        (DType::Float64, &[4096]),
        (DType::BFloat16, &[4096]),
        (DType::Float16, &[4096]),
    ] {
        for &size in sizes {
            let a = Array::full_on(device, &[size, size], 0.5, dtype)?;
            let seconds = time(device, || a.matmul(&a))?;
            let rate = 2.0 * (size as f64).powi(3) / seconds / 1e12;
            println!("matmul {dtype} {size:<20} {:>10.1} us {rate:>8.1} TFLOP/s", seconds * 1e6);
        }
    }
    Ok(())
}

fn main() {
    let done = Device::parse("cuda:0").and_then(run);
    if let Err(error) = done {
        println!("{error}");
    }
}
