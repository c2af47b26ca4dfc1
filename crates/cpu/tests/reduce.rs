//! Reductions of the CPU backend against the definition of the folds: every fold, dtype, choice of axes
//! and kind of layout; accuracy; the same bits for any number of threads.

mod reduce_support;

use reduce_support::*;
use tilework_backend::{Fresh, Reduce, Request, Storage, View};
use tilework_cpu::{Cpu, pool};
use tilework_layout::Layout;
use tilework_ops::{DType, FoldId, Scalar};

#[test]
fn every_fold_dtype_layout_and_choice_of_axes() {
    assert_eq!(KINDS.iter().map(|(_, folds)| folds.len()).sum::<usize>(), FoldId::ALL.len());
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[0], &[3, 0], &[33, 10], &[4, 3, 5], &[2, 1, 9, 3]];
    for dtype in DType::ALL {
        for (kind, folds) in KINDS {
            for shape in shapes {
                for (name, layout) in layouts(shape) {
                    let view = input(layout, dtype, kind, 7);
                    for axes in subsets(shape.len()) {
                        check(folds, &view, &axes, &format!("{shape:?} {name}"));
                    }
                }
            }
        }
    }
}

#[test]
fn special_values() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_inexact()) {
        // Infinite parts make products of complex numbers depend on how they are grouped.
        let folds: Vec<FoldId> = FoldId::ALL
            .into_iter()
            .filter(|&fold| fold != FoldId::Prod || !dtype.is_complex())
            .collect();
        for (seed, shape) in [(1, [40, 17]), (3, [2, 300]), (4, [70, 9])] {
            for (name, layout) in layouts(&shape) {
                let view = input(layout, dtype, Kind::Special, seed);
                for axes in subsets(2) {
                    check(&folds, &view, &axes, &format!("special {shape:?} {name}"));
                }
            }
        }
    }
}

#[test]
fn lengths_around_the_edges() {
    let lengths = [
        2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 66, 70, 127, 129, 257, 1000,
        1025, 2049, 4097,
    ];
    for dtype in DType::ALL {
        for (kind, folds) in KINDS {
            for n in lengths {
                let line = input(Layout::contiguous(&[n]).unwrap(), dtype, kind, n as u64);
                check(folds, &line, &[0], "line");
                if n < 70 {
                    let rows = input(Layout::contiguous(&[3, n]).unwrap(), dtype, kind, n as u64);
                    check(folds, &rows, &[0], "rows");
                    check(folds, &rows, &[1], "rows");
                    let tall = input(Layout::contiguous(&[n, 9]).unwrap(), dtype, kind, n as u64);
                    check(folds, &tall, &[0], "tall");
                }
            }
        }
    }
}

#[test]
fn long_ranges_are_split_and_merged_in_order() {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[140_001], &[0]),
        (&[2, 70_000], &[1]),
        (&[70_000, 2], &[0]),
        (&[20_000, 9], &[0]),
        (&[3, 10_000, 3], &[0, 1]),
        (&[600, 500], &[0]),
        (&[2, 33_000, 2], &[0, 2]),
        (&[66_000], &[0]),
    ];
    for dtype in [DType::Float32, DType::Int16, DType::Float16] {
        for (shape, axes) in shapes {
            if dtype != DType::Float32 && shape != [66_000] {
                continue;
            }
            for (kind, folds) in KINDS {
                // A product of so many numbers has no digits left to compare.
                let folds: Vec<FoldId> =
                    folds.iter().copied().filter(|&fold| fold != FoldId::Prod).collect();
                let view = input(Layout::contiguous(shape).unwrap(), dtype, kind, 11);
                check(&folds, &view, axes, &format!("long {shape:?}"));
            }
        }
    }
}

#[test]
fn one_element_far_away_is_found() {
    for n in [100, 5_000, 70_000] {
        for at in [0, 64, n / 2, n - 1] {
            let mut scalars = vec![Scalar::new(0f32); n];
            for (value, max) in [(5f32, true), (-5.0, false), (f32::NAN, true), (f32::NAN, false)] {
                scalars[at] = Scalar::new(value);
                let line = view_of(&scalars, DType::Float32, Layout::contiguous(&[n]).unwrap());
                let (arg, ext) =
                    if max { (FoldId::ArgMax, FoldId::Max) } else { (FoldId::ArgMin, FoldId::Min) };
                assert_eq!(read(&reduce(arg, &line, &[0], 0.0)), [Scalar::new(at as i64)]);
                let found = read(&reduce(ext, &line, &[0], 0.0))[0].get::<f32>();
                assert!(found == value || found.is_nan() && value.is_nan());
                let column =
                    view_of(&scalars, DType::Float32, Layout::contiguous(&[n / 10, 10]).unwrap());
                let places = read(&reduce(arg, &column, &[0], 0.0));
                assert_eq!(places[at % 10].get::<i64>(), (at / 10) as i64, "{n} {at}");
                assert!((0..10).all(|i| i == at % 10 || places[i].get::<i64>() == 0));
            }
            assert_eq!(
                read(&reduce(
                    FoldId::Any,
                    &view_of(&scalars, DType::Float32, Layout::contiguous(&[n]).unwrap()),
                    &[0],
                    0.0
                )),
                [Scalar::new(true)]
            );
        }
    }
}

fn folded(fold: FoldId, view: &View, axes: &[usize]) -> f64 {
    read(&reduce(fold, view, axes, 0.0))[0].get::<f64>()
}

#[test]
fn sums_are_accurate() {
    let n = 10_000_000;
    let line = floats((0..n).map(|_| 0.1));
    let exact = f64::from(0.1f32) * n as f64;
    let error = |got: f64| ((got - exact) / exact).abs();
    assert!(error(folded(FoldId::Sum, &line, &[0])) < 5e-7);
    assert!(error(folded(FoldId::Mean, &line, &[0]) * n as f64) < 5e-7);
    let columns = line.with_layout(Layout::contiguous(&[n / 10, 10]).unwrap()).unwrap();
    assert!(error(folded(FoldId::Sum, &columns, &[0]) * 10.0) < 5e-7);
    let every_second = line.with_layout(Layout::new(&[n / 2], &[2], 0).unwrap()).unwrap();
    assert!(error(folded(FoldId::Sum, &every_second, &[0]) * 2.0) < 5e-7);

    // Large numbers that cancel beside small ones that must not be lost.
    let n = 1_000_000;
    let value = |i: usize| if i.is_multiple_of(2) { 1e4 + 0.5 } else { -1e4 };
    let line = floats((0..n).map(|i| value(i) as f32));
    let exact: f64 = (0..n).map(|i| f64::from(value(i) as f32)).sum();
    let bound = n as f64 * 1e4 * f64::from(f32::EPSILON) * 4.0;
    assert!((folded(FoldId::Sum, &line, &[0]) - exact).abs() < bound);
}

#[test]
fn variance_of_numbers_far_from_zero() {
    let mut random = Rng(5);
    let n = 1_000_000;
    let values: Vec<f32> = (0..n).map(|_| 1e6 + random.unit() as f32 * 4.0).collect();
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
    let exact = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n as f64;
    let line = floats(values.iter().copied());
    let error = |got: f64| ((got - exact) / exact).abs();
    assert!(error(folded(FoldId::Var, &line, &[0])) < 1e-6);
    let columns = line.with_layout(Layout::contiguous(&[n, 1]).unwrap()).unwrap();
    assert!(error(folded(FoldId::Var, &columns, &[0])) < 1e-6);
}

/// Means of blocks are far from zero and near each other: their distances must be known better than they.
#[test]
fn variance_of_doubles_far_from_zero() {
    let mut random = Rng(6);
    let (rows, columns) = (1500, 41);
    // Multiples of 2^-20, so that sums and squares of distances from 10^6 are exact in integers.
    let steps: Vec<i64> = (0..rows * columns).map(|_| random.below(4 << 20) as i64).collect();
    let value = |step: i64| Scalar::new(1e6 + step as f64 / f64::from(1 << 20));
    let scalars: Vec<Scalar> = steps.iter().map(|&step| value(step)).collect();
    let exact = |steps: &mut dyn Iterator<Item = i64>| {
        let (mut n, mut sum, mut squares) = (0i128, 0i128, 0i128);
        for step in steps {
            (n, sum, squares) = (n + 1, sum + i128::from(step), squares + i128::from(step).pow(2));
        }
        (n * squares - sum * sum) as f64 / (n * n) as f64 / f64::from(1 << 20).powi(2)
    };
    let view = view_of(&scalars, DType::Float64, Layout::contiguous(&[rows, columns]).unwrap());
    let check = |got: Scalar, want: f64, what: &str| {
        let error = (got.get::<f64>() - want).abs() / want;
        assert!(error < 1e-14, "{what}: {error:e}");
    };
    let by_column = read(&reduce(FoldId::Var, &view, &[0], 0.0));
    for (j, &got) in by_column.iter().enumerate() {
        check(got, exact(&mut steps.iter().copied().skip(j).step_by(columns)), "axis 0");
    }
    let by_row = read(&reduce(FoldId::Var, &view, &[1], 0.0));
    for (&got, row) in by_row.iter().zip(steps.chunks(columns)) {
        check(got, exact(&mut row.iter().copied()), "axis 1");
    }
    let all = read(&reduce(FoldId::Var, &view, &[0, 1], 0.0));
    check(all[0], exact(&mut steps.iter().copied()), "all");
    let turned = view.with_layout(Layout::new(&[columns, rows], &[1, 41], 0).unwrap()).unwrap();
    let strided = read(&reduce(FoldId::Var, &turned, &[1], 0.0));
    check(strided[0], exact(&mut steps.iter().copied().step_by(columns)), "turned");
}

/// Distances beyond the largest number make an infinite variance, not NaN.
#[test]
fn variance_of_the_largest_numbers() {
    for n in [2, 40, 3000] {
        let huge = |i: usize| if i.is_multiple_of(2) { 1e308 } else { -1e308 };
        let scalars: Vec<Scalar> = (0..2 * n).map(|i| Scalar::new(huge(i / 2))).collect();
        let view = view_of(&scalars, DType::Float64, Layout::contiguous(&[n, 2]).unwrap());
        for axes in [&[0][..], &[0, 1]] {
            for got in read(&reduce(FoldId::Var, &view, axes, 0.0)) {
                assert_eq!(got.get::<f64>(), f64::INFINITY, "{n} {axes:?}");
            }
        }
    }
}

#[test]
fn results_are_cast_to_the_output() {
    let line = input(Layout::contiguous(&[3, 40]).unwrap(), DType::Int32, Kind::Few, 3);
    let want = read(&reduce(FoldId::Sum, &line, &[1], 0.0));
    for dtype in [DType::Int8, DType::Float32, DType::Complex128, DType::Int64] {
        let got = read(&reduce_as(FoldId::Sum, &line, &[1], 0.0, dtype));
        let cast: Vec<Scalar> = want.iter().map(|s| s.cast(dtype)).collect();
        assert_eq!(got, cast);
    }
}

#[test]
fn strided_outputs_are_written_in_place() {
    let view = input(Layout::contiguous(&[6, 50]).unwrap(), DType::Float32, Kind::Few, 3);
    for axis in [0, 1] {
        let want = read(&reduce(FoldId::Sum, &view, &[axis], 0.0));
        let n = want.len();
        let storage = Storage::host(Cpu::ID, 3 * n * 4, true).unwrap();
        let layout = Layout::new(&[n], &[-3], 3 * n - 1).unwrap();
        let mut fresh = Fresh::new(storage, layout, DType::Float32).unwrap();
        let output = fresh.target();
        let request = Reduce {
            fold: FoldId::Sum,
            input: view.borrow(),
            axes: &[axis],
            correction: 0.0,
            output,
        };
        run(&Cpu, "test", &Request::Reduce(request)).unwrap();
        assert_eq!(read(&fresh.finish()), want);
    }
}

/// Runs `f` with 1, 2 and 3 threads and checks that it gives the same each time.
fn same_for_any_threads<T: PartialEq + std::fmt::Debug>(f: impl Fn() -> T) {
    let before = pool::threads();
    pool::set_threads(1);
    let one = f();
    for threads in [2, 3] {
        pool::set_threads(threads);
        for _ in 0..3 {
            assert!(f() == one, "{threads} threads differ from one");
        }
    }
    pool::set_threads(before);
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::Complex64] {
        for (shape, axes) in [
            (&[300_001][..], &[0][..]),
            (&[300, 1001], &[0]),
            (&[300, 1001], &[1]),
            (&[90_000, 3], &[0]),
            (&[40, 80, 90], &[1]),
            (&[40, 80, 90], &[0, 2]),
        ] {
            let view = input(Layout::contiguous(shape).unwrap(), dtype, Kind::NearOne, 13);
            for fold in FoldId::ALL {
                if fold.row().accumulates(dtype).is_some() {
                    same_for_any_threads(|| bytes_of(&reduce(fold, &view, axes, 0.0)));
                }
            }
            for axis in 0..shape.len() {
                same_for_any_threads(|| bytes_of(&scan(FoldId::Sum, &view, axis)));
            }
        }
    }
}
