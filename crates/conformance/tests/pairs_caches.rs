//! A program that makes ever new formulas does not grow.
//!
//! Alone in its binary, since memory is that of the process.

use tilework::pairs::LazyTensor;
use tilework::{Array, DType};

/// The resident memory in bytes, where the system tells.
fn memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

#[test]
fn ever_new_formulas_take_bounded_memory() {
    let x = Array::linspace(0.0..=1.0, 24, DType::Float32).unwrap().reshape(&[8, 3]).unwrap();
    let (i, j) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
    let distance = i.sqdist(&j).unwrap();
    // Each has a tape, a loop and a page of code of its own.
    let reduce = |k: u32| {
        let kernel = (&distance * (-1.0 / f64::from(k + 1))).unwrap().exp().unwrap();
        kernel.sum(1).unwrap().to_vec::<f32>().unwrap()
    };
    let first = reduce(0);
    (1..2000).for_each(|k| drop(reduce(k)));
    let Some(before) = memory() else { return };
    (2000..6000).for_each(|k| drop(reduce(k)));
    let grown = memory().unwrap().saturating_sub(before);
    // 4000 of them would take 16 MiB for the pages of code alone.
    assert!(grown < 4 << 20, "{} KiB more after 4000 formulas", grown >> 10);
    assert_eq!(reduce(0), first);
}
