//! Reductions and running reductions over every set of axes, on every layout.

use tilework::{Array, DType, Device, FoldId, KeepDims, Result};
use tilework_ops::Tolerance;

use crate::compare::{assert_close, assert_close_beside};
use crate::each;
use crate::layouts::{BASE, CASES};
use crate::values::{draw, draw_special};

/// Where elements are drawn from: the row's domain is one of magnitudes, and both parts of a complex
/// number have a share in it.
fn domain(fold: FoldId, dtype: DType) -> std::ops::Range<f64> {
    let std::ops::Range { start, end } = fold.row().domain;
    let share = if dtype.is_complex() { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
    start * share..end * share
}

/// Every subset of the axes of an array of up to four axes.
fn subsets(ndim: usize) -> Vec<Vec<isize>> {
    (0..1u32 << ndim)
        .map(|bits| {
            (0..ndim).filter(|axis| bits >> axis & 1 == 1).map(|axis| axis as isize).collect()
        })
        .collect()
}

/// Every reduction, dtype, layout and set of axes.
pub fn folds(device: Device) {
    each(FoldId::ALL, |fold| {
        let row = fold.row();
        for dtype in DType::ALL.into_iter().filter(|dtype| row.accumulates(*dtype).is_some()) {
            for special in [false, true] {
                // Sums of overflowing numbers depend on their order: keep to tame ones there.
                if special && matches!(row.tolerance, Tolerance::Ulp(ulp) if ulp > 0.0) {
                    continue;
                }
                // Which of several complex NaN an extreme is, is not promised.
                if special && dtype.is_complex() && matches!(fold, FoldId::Max | FoldId::Min) {
                    continue;
                }
                let domain = domain(fold, dtype);
                let make = |device| -> Result<Vec<Array>> {
                    let draw = if special { draw_special } else { draw };
                    Ok(vec![draw(device, &BASE, dtype, domain.clone(), fold as u64)?])
                };
                let (here, there) =
                    (make(device).expect("draw"), make(Device::reference()).expect("draw"));
                for (name, views) in CASES {
                    let (x, y) =
                        (views(&here).expect(name).remove(0), views(&there).expect(name).remove(0));
                    for axes in subsets(x.ndim()) {
                        let what = format!(
                            "{} of {dtype} over {axes:?}, {name}, special {special}",
                            row.name
                        );
                        let run = |array: &Array| array.reduce(fold, &axes[..], KeepDims::No, 0.0);
                        match (run(&x), run(&y)) {
                            (Ok(got), Ok(expected)) => {
                                // A variance is a difference of squares that can cancel.
                                let eps = got.dtype().finfo().map_or(0.0, |info| info.eps);
                                let beside = if fold == FoldId::Var { 100.0 * eps } else { 0.0 };
                                assert_close_beside(&what, &got, &expected, row.tolerance, beside);
                            }
                            (Err(got), Err(expected)) => assert_eq!(got, expected, "{what}"),
                            (got, expected) => panic!("{what}: {got:?} but {expected:?}"),
                        }
                    }
                }
            }
        }
    });
}

/// Running sums, products, maxima and minima along every axis.
pub fn scans(device: Device) {
    for fold in FoldId::ALL.into_iter().filter(|fold| fold.row().running.is_some()) {
        for dtype in DType::ALL.into_iter().filter(|dtype| fold.row().accumulates(*dtype).is_some())
        {
            let domain = domain(fold, dtype);
            let make = |device| draw(device, &BASE, dtype, domain.clone(), 5).map(|x| vec![x]);
            let (here, there) =
                (make(device).expect("draw"), make(Device::reference()).expect("draw"));
            for (name, views) in CASES {
                let (x, y) =
                    (views(&here).expect(name).remove(0), views(&there).expect(name).remove(0));
                for axis in 0..x.ndim() as isize {
                    let what =
                        format!("cumulative {} of {dtype} along {axis}, {name}", fold.row().name);
                    let (got, expected) =
                        (x.scan(fold, axis).expect(&what), y.scan(fold, axis).expect(&what));
                    let tolerance =
                        if dtype.is_inexact() { fold.row().tolerance } else { Tolerance::Exact };
                    assert_close(&what, &got, &expected, tolerance);
                }
            }
        }
    }
}

/// Running sums and products that leave the range of numbers nowhere but where one element after the other does, however many
/// elements are taken together.
pub fn scans_at_the_edge(device: Device) {
    for n in [50, 1000, 300_000] {
        // A zero, or a small number, with more behind it than numbers can hold.
        let mut products = vec![30.0f32; n];
        (products[3], products[n / 2]) = (1e-30, 0.0);
        // The same the other way round, and back.
        let mut small = vec![1.0f32; n];
        small[0] = 1e30;
        small[n - 9..n - 4].copy_from_slice(&[1e-30, 1e-30, 1e5, 1e24, 3e-6]);
        // From near one end of the range to near the other, and back.
        let step = f32::MAX / 150.0;
        let sums = (0..n).map(|k| if (k + 128) / 256 % 2 == 0 { step } else { -step }).collect();
        for (fold, numbers, size) in [
            (FoldId::Prod, products, 0.0),
            (FoldId::Prod, small, 0.0),
            (FoldId::Sum, sums, f32::MAX),
        ] {
            let numbers: Vec<f32> = numbers;
            let x = Array::from_slice(&numbers).and_then(|x| x.to_device(device)).expect("x");
            let got = x.scan(fold, 0).and_then(|x| x.to_vec::<f32>()).expect("scan");
            let mut one = if fold == FoldId::Prod { 1.0 } else { 0.0 };
            for (k, (got, x)) in got.iter().zip(&numbers).enumerate() {
                one = if fold == FoldId::Prod { one * x } else { one + x };
                let near = *got == one || (got - one).abs() <= 1e-4 * one.abs().max(size);
                assert!(
                    near || got.is_nan() && one.is_nan(),
                    "{fold:?} of {n} at {k}: {got}, {one}"
                );
            }
        }
    }
}

/// Sums of many equal numbers, and variances far from zero, as accurate as promised.
pub fn accuracy(device: Device) {
    let n = 1 << 20;
    let x = Array::full_on(device, &[n], 0.1, DType::Float32).expect("full");
    let exact = 0.1f32 as f64 * n as f64;
    let sum = x.sum(()).expect("sum").item::<f64>().expect("item");
    // The promise: the error grows with the logarithm of the count.
    let promised = (n as f64).log2() * f32::EPSILON as f64 / 2.0;
    assert!((sum - exact).abs() / exact < promised, "sum of tenths: {sum} is not {exact}");
    let columns = x.reshape(&[n as isize / 4, 4]).expect("reshape").sum(0).expect("sum");
    for sum in columns.to_vec::<f32>().expect("to_vec") {
        assert!((sum as f64 - exact / 4.0).abs() / (exact / 4.0) < promised, "column sum {sum}");
    }
    let far = draw(device, &[10_001], DType::Float32, 0.0..1.0, 3)
        .expect("draw")
        .add(4096.0)
        .expect("add");
    let wide = far.astype(DType::Float64).expect("astype");
    let (var, exact) = (far.var((), 0.0), wide.var((), 0.0));
    let (var, exact) = (
        var.expect("var").item::<f64>().expect("item"),
        exact.expect("var").item::<f64>().expect("item"),
    );
    assert!((var - exact).abs() / exact < 1e-6, "variance {var} is not {exact}");
}
