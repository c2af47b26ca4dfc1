//! Reductions against naive values: ties, NaN, infinities, nothing, K larger than N, any split.

mod common;

use common::cases;
use proptest::prelude::*;
use tilework_formula::reduction::{REDUCTIONS, Weight};
use tilework_formula::{Axis, Expr, Reduction, parse};

/// A reduction of these values, row by row, cut into blocks at these places.
fn cut(reduction: &Reduction, values: &[f64], cuts: &[usize]) -> (Vec<f64>, Vec<i64>) {
    let dim = reduction.formula().dim();
    let rows: Vec<&[f64]> = values.chunks_exact(dim).collect();
    let mut total = reduction.init();
    let mut start = 0;
    for end in cuts.iter().copied().chain([rows.len()]) {
        let mut state = reduction.init();
        let end = end.min(rows.len()).max(start);
        for (index, row) in (start..).zip(&rows[start..end]) {
            // Weights of one sign, where they are taken: sums of both could cancel.
            let weight = [index as f64 + 0.5, 0.25];
            let weight = &weight[..reduction.shape().weights];
            reduction.step(&mut state, row, weight, index as i64).unwrap();
        }
        start = end;
        reduction.merge(&mut total, &state).unwrap();
    }
    reduction.finish(total).unwrap()
}

/// The reduction of this name over numbers, cut likewise.
fn reduce(name: &str, k: Option<usize>, values: &[f64], cuts: &[usize]) -> (Vec<f64>, Vec<i64>) {
    let y = Expr::vj(0, 1).unwrap();
    cut(&Reduction::new(name, &y, Axis::J, k, None).unwrap(), values, cuts)
}

fn value(name: &str, values: &[f64]) -> f64 {
    reduce(name, None, values, &[]).0[0]
}

fn index(name: &str, values: &[f64]) -> i64 {
    reduce(name, None, values, &[]).1[0]
}

#[test]
fn plain_values() {
    let v = [3.0, -1.0, 4.0, -1.0, 0.0];
    assert_eq!(value("Sum", &v), 5.0);
    assert_eq!(value("Mean", &v), 1.0);
    assert_eq!(value("Prod", &v[..4]), 12.0);
    assert_eq!((value("Any", &v), value("All", &v), value("Count", &v)), (1.0, 0.0, 4.0));
    assert_eq!((value("Min", &v), value("Max", &v)), (-1.0, 4.0));
    assert_eq!((index("ArgMin", &v), index("ArgMax", &v)), (1, 2));
    assert_eq!(reduce("Min_ArgMin", None, &v, &[2]), (vec![-1.0], vec![1]));
    assert_eq!(
        reduce("KMin_ArgKMin", Some(3), &v, &[1, 4]),
        (vec![-1.0, -1.0, 0.0], vec![1, 3, 4])
    );
    assert_eq!(reduce("KMax_ArgKMax", Some(2), &v, &[3]), (vec![4.0, 3.0], vec![2, 0]));
    let lse = v.iter().map(|x: &f64| x.exp()).sum::<f64>().ln();
    assert!((value("LogSumExp", &v) - lse).abs() < 1e-14);
}

#[test]
fn over_nothing() {
    let inf = f64::INFINITY;
    for (name, wanted) in [
        ("Sum", 0.0),
        ("Prod", 1.0),
        ("Any", 0.0),
        ("All", 1.0),
        ("Count", 0.0),
        ("Min", inf),
        ("Max", -inf),
        ("LogSumExp", -inf),
    ] {
        assert_eq!(value(name, &[]), wanted, "{name}");
    }
    assert!(value("Mean", &[]).is_nan());
    assert_eq!((index("ArgMin", &[]), index("ArgMax", &[])), (-1, -1));
    assert_eq!(reduce("KMin_ArgKMin", Some(2), &[], &[]), (vec![inf, inf], vec![-1, -1]));
}

#[test]
fn more_asked_for_than_there_is() {
    let inf = f64::INFINITY;
    let v = [5.0, 2.0];
    assert_eq!(
        reduce("KMin_ArgKMin", Some(4), &v, &[1]),
        (vec![2.0, 5.0, inf, inf], vec![1, 0, -1, -1])
    );
    assert_eq!(reduce("KMax", Some(3), &v, &[]).0, [5.0, 2.0, -inf]);
}

#[test]
fn nan_never_wins_and_infinity_may() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(reduce("Min_ArgMin", None, &[nan, 2.0, nan], &[]), (vec![2.0], vec![1]));
    assert_eq!(reduce("Max_ArgMax", None, &[nan, nan], &[]), (vec![-inf], vec![-1]));
    assert_eq!(reduce("Min_ArgMin", None, &[inf, inf], &[1]), (vec![inf], vec![0]));
    assert_eq!(
        reduce("KMin_ArgKMin", Some(2), &[inf, nan, 1.0], &[]),
        (vec![1.0, inf], vec![2, 0])
    );
    assert!(value("Sum", &[nan, 1.0]).is_nan() && value("LogSumExp", &[1.0, nan, 2.0]).is_nan());
    assert_eq!(value("LogSumExp", &[inf, 1.0]), inf);
    assert_eq!(value("LogSumExp", &[-inf, -inf]), -inf);
    assert_eq!(value("LogSumExp", &[-inf, 3.0]), 3.0);
    assert!((value("LogSumExp", &[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
}

#[test]
fn weights_and_shifts() {
    let aliases = ["f = Vj(1)", "g = Vj(2)"];
    let f = parse::formula("f", &aliases).unwrap();
    let g = parse::formula("g", &aliases).unwrap();
    let (fs, gs) = ([0.5, -2.0, 3.0], [1.0, 2.0, 0.5, 4.0, 2.5, 1.0]);
    let run = |name: &str| {
        let r = Reduction::new(name, &f, Axis::J, None, Some(&g)).unwrap();
        r.evaluate(&[&fs, &gs], 1, 3).unwrap().0
    };
    let sum = |c: usize| (0..3).map(|j| fs[j].exp() * gs[2 * j + c]).sum::<f64>();
    let all = fs.iter().map(|f| f.exp()).sum::<f64>();
    for name in ["LogSumExp", "LogSumExpWeight"] {
        let got = run(name);
        assert!((0..2).all(|c| (got[c] - sum(c).ln()).abs() < 1e-14), "{got:?}");
    }
    let soft = run("SumSoftMaxWeight");
    assert!((0..2).all(|c| (soft[c] - sum(c) / all).abs() < 1e-14), "{soft:?}");
    let raw = run("Max_SumShiftExpWeight");
    assert_eq!((raw.len(), raw[0]), (3, 3.0));
    assert!((0..2).all(|c| (raw[1 + c] - sum(c) * (-3f64).exp()).abs() < 1e-14), "{raw:?}");
    let plain = Reduction::new("Max_SumShiftExp", &f, Axis::J, None, None).unwrap();
    let got = plain.evaluate(&[&fs], 1, 3).unwrap().0;
    assert!(got[0] == 3.0 && (got[1] - all * (-3f64).exp()).abs() < 1e-14);
}

#[test]
fn vectors_reduce_by_component_and_both_axes_work() {
    let aliases = ["x = Vi(2)", "y = Vj(2)"];
    let f = parse::formula("x - y", &aliases).unwrap();
    let (x, y) = ([0.0, 10.0, 1.0, 20.0], [5.0, 1.0, 4.0, 2.0, 6.0, 0.0]);
    let over_j = Reduction::new("KMin_ArgKMin", &f, Axis::J, Some(2), None).unwrap();
    let (values, indices) = over_j.evaluate(&[&x, &y], 2, 3).unwrap();
    assert_eq!(values, [-6.0, 8.0, -5.0, 9.0, -5.0, 18.0, -4.0, 19.0]);
    assert_eq!(indices, [2, 1, 0, 0, 2, 1, 0, 0]);
    let over_i = Reduction::new("Sum", &f, Axis::I, None, None).unwrap();
    assert_eq!(over_i.evaluate(&[&x, &y], 2, 3).unwrap().0, [-9.0, 28.0, -7.0, 26.0, -11.0, 30.0]);
    assert!(over_i.evaluate(&[&x, &y], 2, 2).is_err());
    assert!(over_i.evaluate(&[&x], 2, 2).is_err());
}

#[test]
fn wrong_reductions_are_refused() {
    let (x, s) = (Expr::vi(0, 3).unwrap(), Expr::vi(1, 1).unwrap());
    let new = |name: &str, f: &Expr, k, w| Reduction::new(name, f, Axis::J, k, w);
    assert!(new("Summ", &x, None, None).is_err());
    assert!(new("Sum", &x, Some(2), None).is_err());
    assert!(new("KMin", &x, None, None).is_err());
    assert!(new("KMin", &x, Some(0), None).is_err());
    assert!(new("KMin", &x, Some(usize::MAX), None).is_err());
    assert!(new("LogSumExp", &x, None, Some(&s)).is_err());
    assert!(new("Max_SumShiftExp", &x, None, None).is_err());
    assert!(new("Sum", &x, None, Some(&s)).is_err());
    assert!(new("SumSoftMaxWeight", &s, None, None).is_err());
    let sum = new("Sum", &x, None, None).unwrap();
    assert!(sum.gradient(&x, &s, &[]).is_err());
    let lse = new("LogSumExp", &s, None, None).unwrap();
    assert!(lse.gradient(&x, &s, &[]).is_err());
}

#[test]
fn exponentials_of_vectors_are_those_of_their_components() {
    let y = Expr::vj(0, 2).unwrap();
    let both = Reduction::new("LogSumExp", &y, Axis::J, None, None).unwrap();
    let values = [1.0, -800.0, 2.0, -801.0, 700.0, -802.0];
    let (found, _) = both.evaluate(&[&values], 1, 3).unwrap();
    assert_eq!((both.width(), found.len()), (2, 2));
    for (k, found) in found.into_iter().enumerate() {
        let column: Vec<f64> = values.iter().copied().skip(k).step_by(2).collect();
        assert_eq!(found, value("LogSumExp", &column));
    }
    assert!(both.step(&mut both.init(), &[1.0], &[], 0).is_err());
}

#[test]
fn states_of_other_reductions_are_refused() {
    let s = Expr::vi(0, 1).unwrap();
    let sum = Reduction::new("Sum", &s, Axis::J, None, None).unwrap();
    let knn = Reduction::new("KMin", &s, Axis::J, Some(3), None).unwrap();
    let mut state = sum.init();
    assert!(sum.step(&mut state, &[], &[], 0).is_err());
    assert!(sum.step(&mut state, &[1.0], &[1.0], 0).is_err());
    assert!(sum.merge(&mut state, &knn.init()).is_err());
    assert!(knn.step(&mut state, &[1.0], &[], 0).is_err());
    assert!(knn.finish(state).is_err());
}

fn same(a: &(Vec<f64>, Vec<i64>), b: &(Vec<f64>, Vec<i64>)) -> bool {
    let close = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * a.abs().max(1.0)
    };
    a.1 == b.1 && a.0.iter().zip(&b.0).all(close)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_split_gives_the_same(
        values in proptest::collection::vec(
            prop_oneof![
                -9.0f64..9.0,
                (-3i32..3).prop_map(f64::from),
                Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY),
            ],
            0..12,
        ),
        cuts in proptest::collection::vec(0usize..12, 0..4),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(values.len())).collect();
        cuts.sort_unstable();
        let weights = Expr::vj(1, 2).unwrap();
        for row in REDUCTIONS {
            let k = row.takes_k.then_some(3);
            let weights = (row.weight != Weight::None).then_some(&weights);
            for (dim, weight) in [(1, None), (2, None), (1, weights)] {
                let y = Expr::vj(0, dim).unwrap();
                // Not all take vectors, or go without a weight.
                let Ok(reduction) = Reduction::new(row.name, &y, Axis::J, k, weight) else { continue };
                let (whole, parts) = (cut(&reduction, &values, &[]), cut(&reduction, &values, &cuts));
                prop_assert!(same(&whole, &parts), "{}: {:?} and {:?}", reduction, whole, parts);
            }
        }
    }
}
