//! A long reduction needs no memory beside its inputs, its outputs and a block.
//!
//! Alone in its binary, since the peak is that of the process. Runs where `TILEWORK_SLOW_TESTS` is
//! set, as in `make slow`.

use tilework::pairs::LazyTensor;
use tilework::{Array, DType};

/// The most memory that was resident at once, in bytes, where the system tells.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

#[test]
fn long_reductions_need_what_their_blocks_need() {
    if std::env::var_os("TILEWORK_SLOW_TESTS").is_none() {
        return;
    }
    let (m, n) = (500, 10_000_000);
    let points = |rows: usize, scale: f64| {
        let line = Array::linspace(0.0..=scale, rows * 3, DType::Float32).unwrap();
        line.reshape(&[rows as isize, 3]).unwrap()
    };
    let (x, y) = (points(m, 1.0), points(n, 1.0));
    let Some(before) = peak_memory() else { return };
    let kernel = LazyTensor::vi(&x).unwrap().sqdist(&LazyTensor::vj(&y).unwrap()).unwrap();
    let kernel = (&kernel * -1.0).unwrap().exp().unwrap();
    let sums = kernel.sum(1).unwrap();
    let nearest = kernel.argkmin(5, 1).unwrap();
    let after = peak_memory().unwrap();
    assert_eq!((sums.shape(), nearest.shape()), (&[m, 1][..], &[m, 5][..]));
    assert!(after - before < 200 << 20, "{} MB more", (after - before) >> 20);
    // A result that comes in blocks is there once: 256 MB of it, and a block beside it.
    let rows = 1 << 25;
    let line = Array::ones(&[1, 1], DType::Float64).unwrap().broadcast_to(&[rows, 1]).unwrap();
    let point = LazyTensor::vj(&Array::ones(&[2, 1], DType::Float64).unwrap()).unwrap();
    tilework::empty_cache();
    // From here on the peak counts anew.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_memory().unwrap();
    let sums = LazyTensor::vi(&line).unwrap().multiply(&point).unwrap().sum(1).unwrap();
    let after = peak_memory().unwrap();
    assert_eq!(sums.sum(()).unwrap().item::<f64>().unwrap(), 2.0 * rows as f64);
    assert!(after - before < 350 << 20, "{} MB more", (after - before) >> 20);
}
