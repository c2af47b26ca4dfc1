//! A short walk through storage and every kind of request, made for memory checkers: small sizes,
//! odd strides, every dtype; then once past every threshold at which a kernel changes its way.
//! Results are looked at elsewhere; here every byte must be defined.

use tilework::pairs::LazyTensor;
use tilework::{Array, DType, Device, Direction, Indexer, PadMode, Result, Rng, concat, s, select};

/// Uses every element, so that a checker sees one that was never written.
fn touch(array: &Array) -> Result<()> {
    let nonzero = array.count_nonzero(())?.item::<i64>()?;
    assert!(nonzero <= array.len() as i64);
    Ok(())
}

fn walk(device: Device, dtype: DType) -> Result<()> {
    let _scope = device.scope();
    let rng = Rng::new(3);
    let x = rng.integers(1, 100, &[7, 19])?.astype(dtype)?;
    let y = x.transpose().copy()?.transpose();
    let odd = x.slice(&s![..;-2, 1..;3])?;
    let mut results =
        vec![x.add(&y)?, odd.multiply(&odd)?, x.equal(&y)?, x.slice(&s![.., 3])?.add(1)?];
    results.push(x.sort(1, Direction::Ascending)?);
    results.push(x.argsort(0, Direction::Descending)?);
    results.push(odd.sum(0)?.astype(dtype)?);
    results.push(x.max(1)?);
    results.push(x.argmin(())?);
    results.push(y.matmul(&x.transpose())?);
    results.push(concat(&[&x, &y], 1)?);
    results.push(x.pad(&[(1, 2), (0, 3)], PadMode::Edge)?);
    results.push(select(&x.less_equal(50)?, &x, &y)?);
    results.push(x.index(&[Indexer::Array(&x.greater_equal(50)?)])?);
    results.push(x.unique()?.inverse);
    if dtype != DType::Bool {
        results.push(odd.cumulative_sum(1)?);
    }
    if dtype.is_inexact() {
        results.push(odd.exp()?);
        results.push(x.divide(&y)?);
    }
    let target = x.copy()?;
    target.slice(&s![1..;2, ..;-3])?.assign(&x.slice(&s![1..;2, ..;3])?)?;
    target.index_set(&[Indexer::Array(&Array::from_slice(&[0i64, -1])?)], 1)?;
    results.push(target);
    results.iter().try_for_each(touch)
}

#[test]
fn every_request_reads_and_writes_its_own_memory() {
    for device in Device::all() {
        for dtype in DType::ALL {
            walk(device, dtype).unwrap_or_else(|error| panic!("{dtype} on {device}: {error}"));
        }
    }
}

/// Sizes past the thresholds: pieces for the pool, chunks, transposes by panels, packed products,
/// partial states, sorts by several ways, blocks that are pages of their own.
fn large(dtype: DType) -> Result<()> {
    let _scope = Device::cpu().scope();
    let rng = Rng::new(5);
    let x = rng.integers(0, 100, &[250, 280])?.astype(dtype)?;
    let mut results = vec![x.add(&x.flip(None)?)?, x.transpose().copy()?, x.transpose().add(1)?];
    results.push(x.slice(&s![..;2, ..;-3])?.multiply(2)?);
    results.push(x.sum(0)?.astype(dtype)?);
    results.push(x.transpose().max(0)?);
    results.push(x.reshape(&[-1])?.argmax(())?);
    results.push(x.reshape(&[-1])?.sort(0, Direction::Ascending)?);
    results.push(x.reshape(&[-1])?.argsort(0, Direction::Descending)?);
    results.push(x.index(&[Indexer::Array(&x.greater_equal(50)?)])?);
    if dtype != DType::Bool {
        results.push(x.reshape(&[-1])?.cumulative_sum(0)?);
    }
    // Packed, cut along K, few rows, one row.
    for (m, k, n) in [(60, 90, 96), (17, 2100, 18), (3, 700, 130), (1, 2000, 1)] {
        let a = rng.integers(0, 3, &[m, k])?.astype(dtype)?;
        let b = rng.integers(0, 3, &[k, n])?.astype(dtype)?;
        results.push(a.matmul(&b)?);
        results.push(a.matmul(&b.transpose().copy()?.transpose())?);
    }
    results.iter().try_for_each(touch)
}

#[test]
fn past_every_threshold() {
    for dtype in [DType::Float32, DType::Complex128, DType::Int8, DType::Float16, DType::BFloat16] {
        large(dtype).unwrap_or_else(|error| panic!("{dtype}: {error}"));
    }
    let pages = Array::zeros(&[2 << 20], DType::UInt8).expect("pages of its own");
    touch(&pages).expect("touch");
}

/// Formulas over pairs, interpreted and assembled, over several tiles.
#[test]
fn pairs_read_and_write_their_own_memory() {
    let rng = Rng::new(7);
    let points = |n: usize, dtype| rng.normal(&[n, 3], dtype).expect("points");
    for dtype in [DType::Float32, DType::Float64] {
        let (x, y) = (points(70, dtype), points(300, dtype));
        let run = || -> Result<()> {
            let (x, y) = (LazyTensor::vi(&x)?, LazyTensor::vj(&y)?);
            let kernel = (-&x.sqdist(&y)?)?.exp()?;
            touch(&kernel.sum(1)?)?;
            touch(&kernel.sum(0)?)?;
            touch(&x.sqdist(&y)?.argkmin(4, 1)?)?;
            touch(&kernel.logsumexp(1)?)
        };
        run().unwrap_or_else(|error| panic!("{dtype}: {error}"));
    }
}

#[test]
fn blocks_are_recycled_and_given_back() {
    for round in 0..3 {
        let arrays: Vec<Array> = (0..40)
            .map(|k| Array::zeros(&[k * 577 + round], DType::UInt8).expect("zeros"))
            .collect();
        for array in &arrays {
            assert!(!array.any(()).expect("any").item::<bool>().expect("item"), "zeros are zero");
            array.fill(7).expect("fill");
        }
        drop(arrays);
        tilework::empty_cache();
    }
}
