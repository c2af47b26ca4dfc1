//! Scans of the CPU backend against the definition of the folds: every dtype, axis and kind of layout,
//! and lines long enough to be cut.

mod reduce_support;

use reduce_support::*;
use tilework_backend::View;
use tilework_layout::Layout;
use tilework_ops::{DType, FoldId, fold_column};

fn check_scan(fold: FoldId, view: &View, axis: usize, what: &str) {
    let Some(accumulates) = fold.row().accumulates(view.dtype()) else { return };
    let oracle = fold_column::<Oracles>()[fold as usize];
    let got = scan(fold, view, axis);
    let got = groups(&got, &[axis]);
    for (got, line) in got.iter().zip(groups(view, &[axis])) {
        // Long lines are checked at a few places.
        let stride = (line.len() / 40).max(1);
        for i in (0..line.len()).filter(|i| i % stride == 0 || i + 1 == line.len()) {
            let want = oracle(&line[..=i], accumulates, 0.0);
            // A running sum cannot be taken in pairs.
            let scale = scale_of(fold, &line[..=i], want) * (i + 1).min(200) as f64;
            assert!(
                agree(got[i], want, scale, accumulates),
                "running {} of {} {what} axis {axis}, place {i}: {:?} is not {want:?}",
                fold.row().name,
                view.dtype(),
                got[i]
            );
        }
    }
}

#[test]
fn scans_of_every_dtype_and_layout() {
    for fold in [FoldId::Sum, FoldId::Prod, FoldId::Max, FoldId::Min] {
        for dtype in DType::ALL {
            for shape in [&[1][..], &[0], &[20, 17], &[4, 3, 5], &[2, 600]] {
                for (name, layout) in layouts(shape) {
                    let kind = if fold == FoldId::Prod { Kind::NearOne } else { Kind::Few };
                    let view = input(layout, dtype, kind, 7);
                    for axis in 0..shape.len() {
                        check_scan(fold, &view, axis, &format!("{shape:?} {name}"));
                    }
                }
            }
        }
    }
}

#[test]
fn long_scans() {
    for fold in [FoldId::Sum, FoldId::Max] {
        for dtype in [DType::Float32, DType::Int32, DType::Float16] {
            for (shape, axis) in
                [(&[300_000][..], 0), (&[2, 200_000], 1), (&[200_000, 2], 0), (&[2000, 90], 0)]
            {
                let view = input(Layout::contiguous(shape).unwrap(), dtype, Kind::Few, 17);
                check_scan(fold, &view, axis, &format!("long {shape:?}"));
            }
        }
    }
    let n = 1_000_000;
    let line = floats((0..n).map(|_| 0.1));
    let last = read(&scan(FoldId::Sum, &line, 0))[n - 1].get::<f64>();
    assert!((last / (f64::from(0.1f32) * n as f64) - 1.0).abs() < 1e-4);
}
