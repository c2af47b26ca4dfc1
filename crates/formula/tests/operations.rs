//! Every function against values that NumPy and SciPy gave (`expected.py`), and at special points.

use tilework_formula::{Expr, derive, functions, names, parse};
use tilework_ops::Id;

const ALIASES: [&str; 9] = [
    "x = Vi(3)",
    "y = Vj(3)",
    "s = Pm(1)",
    "a = Vi(1)",
    "b = Vj(2)",
    "M = Pm(6)",
    "t = Pm(5)",
    "S = Vi(9)",
    "w = Vj(1)",
];

const ARGUMENTS: [&[f64]; 9] = [
    &[0.5, -1.5, 2.0],
    &[1.0, 0.25, -2.0],
    &[0.75],
    &[1.25],
    &[-0.5, 3.0],
    &[1.0, -2.0, 3.0, 0.5, 4.0, -1.0],
    &[-1.0, 0.0, 0.5, 2.0, 3.0],
    &[2.0, 0.5, -1.0, 0.25, 1.0, 3.0, -2.0, 1.5, 0.125],
    &[2.0],
];

fn expected() -> impl Iterator<Item = (&'static str, Vec<f64>)> {
    include_str!("expected.txt").lines().map(|line| {
        let (text, numbers) = line.split_once(" => ").unwrap();
        (text, numbers.split(' ').map(|number| number.parse().unwrap()).collect())
    })
}

#[test]
fn values_are_numpy_s() {
    for (text, wanted) in expected() {
        let formula =
            parse::formula(text, &ALIASES).unwrap_or_else(|error| panic!("{text}: {error}"));
        let got = formula.evaluate(&ARGUMENTS).unwrap();
        assert_eq!(got.len(), wanted.len(), "{text}");
        for (got, wanted) in got.iter().zip(&wanted) {
            let close = (got - wanted).abs() <= 4e-15 * wanted.abs().max(1.0);
            assert!(close, "{text}: {got} is not {wanted}");
        }
    }
}

#[test]
fn nothing_is_left_out() {
    let used = |name: &str| expected().any(|(text, _)| text.contains(&format!("{name}(")));
    for function in functions::FUNCTIONS {
        assert!(used(function.name), "{}", function.name);
    }
    // Rows that formulas rename on the way in, or that are their own test in the ops crate.
    let elsewhere = [
        "SqrtSteep",
        "RsqrtOrInf",
        "GreaterThan",
        "GreaterOrEqual",
        "Positive",
        "Conj",
        "RealPart",
        "ImagPart",
        "NextAfter",
        "IsInf",
        "SignBit",
        "LogicalXor",
        "Exp2Pair",
        "RcpPair",
        "RsqrtPair",
        "SqrtPair",
    ];
    for id in Id::ALL.into_iter().filter(|id| names::is_real(*id)) {
        let name = names::of(id);
        assert!(used(name) || elsewhere.contains(&name), "{name}");
    }
}

#[test]
fn special_points() {
    let at = |text: &str, x: f64| {
        let f = parse::formula(text, &["x = Vi(1)"]).unwrap();
        f.evaluate(&[&[x]]).unwrap()[0]
    };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(at("Rsqrt(x)", 0.0), 0.0);
    assert_eq!(at("SinXDivX(x)", 0.0), 1.0);
    assert_eq!(at("XLogX(x)", 0.0), 0.0);
    assert_eq!((at("Step(x)", 0.0), at("Sign(x)", 0.0)), (1.0, 0.0));
    assert_eq!((at("Round(x,0)", 2.5), at("Round(x,0)", -2.5)), (3.0, -3.0));
    assert_eq!(at("IfElse(x, 1, 2)", nan), 2.0);
    assert!(at("ReLU(x)", nan).is_nan() && at("Clamp(x, 0, 1)", nan).is_nan());
    assert_eq!((at("x - x", inf), at("0 * x", inf)), (0.0, 0.0));
    assert_eq!(at("FMax(x, 3)", nan), 3.0);
    assert_eq!(at("OneHot(x, 1)", -1.0), 0.0);
    assert_eq!((at("x == x", nan), at("x != x", nan)), (0.0, 1.0));
}

#[test]
fn constants_are_exact() {
    let f = parse::formula("x / 3", &["x = Vi(1)"]).unwrap();
    assert_eq!(f.evaluate(&[&[1.0]]).unwrap(), [1.0 / 3.0]);
    let f = parse::formula("16777217 * x", &["x = Vi(1)"]).unwrap();
    assert_eq!(f.evaluate(&[&[1.0]]).unwrap(), [16_777_217.0]);
}

#[test]
fn arguments_are_checked() {
    let f = Expr::vi(1, 3).unwrap();
    assert!(f.evaluate(&[&[1.0]]).is_err());
    assert!(f.evaluate(&[&[1.0], &[1.0, 2.0]]).is_err());
    assert_eq!(f.evaluate(&[&[], &[1.0, 2.0, 3.0]]).unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn wrong_dimensions_are_refused_by_every_constructor() {
    let (x, b) = (Expr::vi(0, 3).unwrap(), Expr::vj(1, 2).unwrap());
    let s = Expr::pm(2, 1).unwrap();
    assert!(x.add(&b).is_err() && x.dot(&b).is_err() && x.sqdist(&b).is_err());
    assert!(x.repeat(4).is_err() && s.repeat(0).is_err() && s.repeat(usize::MAX).is_err());
    assert!(x.extract(2, 2).is_err() && x.extract(0, 0).is_err());
    assert!(x.extract(usize::MAX, 1).is_err() && x.extract(1, usize::MAX).is_err());
    assert!(x.place(1, 3).is_err() && x.place(usize::MAX, 3).is_err());
    assert!(Expr::concat(&[]).is_err());
    assert!(x.matvecmult(&b).is_err() && b.vecmatmult(&x).is_err());
    assert!(x.kron(&b, &[3], &[1, 2]).is_err() && x.kron(&b, &[2], &[2]).is_err());
    assert!(x.tensordot(&b, (&[3], &[2]), (&[0], &[0]), &[]).is_err());
    assert!(x.tensordot(&x, (&[3], &[3]), (&[1], &[0]), &[]).is_err());
    assert!(x.tensordot(&x, (&[3], &[3]), (&[0], &[]), &[]).is_err());
    assert!(x.tensordot(&b, (&[3], &[2]), (&[], &[]), &[0, 0]).is_err());
    assert!(x.tensordot(&b, (&[3, 1 << 40], &[2]), (&[300], &[0]), &[]).is_err());
    assert!(x.permute(&[3], &[1]).is_err() && x.permute(&[3, 0], &[0, 1]).is_err());
    assert!(x.one_hot(3).is_err() && x.bspline(&b, 0).is_err() && x.bspline(&s, 2).is_err());
    assert!(x.bspline(&s, usize::MAX).is_err());
    assert!(b.weighted_sqnorm(&x).is_err());
    assert!(x.select(&x, &b).is_err() && x.clamp(&b, &s).is_err());
    assert!(Expr::vi(0, (1 << 20) + 1).is_err() && Expr::range(0).is_err());
    assert!(
        Expr::apply(Id::Add, &[]).is_err() && Expr::apply(Id::BitwiseAnd, &[x.clone(), x]).is_err()
    );
    assert!(s.round(99).is_err());
    let big = Expr::vi(0, 1 << 20).unwrap();
    assert!(big.tensorprod(&big).is_err());
}

#[test]
fn vectors_without_components_are_summed_to_zero() {
    let (x, y, s) = (Expr::vi(0, 0).unwrap(), Expr::vj(1, 0).unwrap(), Expr::pm(2, 1).unwrap());
    let b = Expr::vj(3, 2).unwrap();
    let nothing = Expr::zero(0).unwrap();
    for made in [
        x.add(&y),
        s.multiply(&x),
        x.exp(),
        x.exp().unwrap().divide(&y.exp().unwrap()),
        x.select(&s, &y),
        x.tensorprod(&b),
        x.difference_matrix(&y),
        Expr::concat(&[x.clone(), y.clone()]),
        x.extract(0, 0),
        x.permute(&[0, 3], &[1, 0]),
        derive::grad(&s.square().unwrap(), &x, &s),
    ] {
        assert_eq!(made.unwrap(), nothing);
    }
    let zero = Expr::constant(0.0);
    for made in [x.sum(), x.sqdist(&y), x.dot(&s), x.norm2(), x.weighted_sqnorm(&s)] {
        assert_eq!(made.unwrap(), zero);
    }
    assert_eq!(Expr::concat(&[x.clone(), b.clone(), y.clone()]).unwrap(), b);
    assert_eq!(x.place(0, 2).unwrap(), Expr::zero(2).unwrap());
    let contracted = x.tensordot(&y, (&[2, 0], &[0, 3]), (&[1], &[0]), &[]).unwrap();
    assert_eq!(contracted, Expr::zero(6).unwrap());
    assert_eq!(derive::grad(&x, &x, &y).unwrap(), y);
    assert_eq!(parse::formula("SqDist(x,y) + s", &["x=Vi(0)", "y=Vj(0)", "s=Pm(1)"]).unwrap(), s);
    assert!(x.add(&b).is_err() && x.dot(&b).is_err() && b.matvecmult(&x).is_err());
    assert!(x.fold(tilework_ops::FoldId::Max).is_err() && x.elem(0).is_err());
    assert!(x.vecmatmult(&x).is_err() && x.bspline(&s, 0).is_err());
    let sum = tilework_formula::Reduction::new("Sum", &x, tilework_formula::Axis::J, None, None);
    assert_eq!(sum.unwrap().evaluate(&[&[], &[]], 2, 3).unwrap().0, [0.0; 0]);
    let weighted = |f: &Expr, weight: &Expr| {
        let axis = tilework_formula::Axis::J;
        tilework_formula::Reduction::new("LogSumExp", f, axis, None, Some(weight))
    };
    assert!(weighted(&s, &x).is_err() && weighted(&x, &s).is_err());
}

#[test]
fn transposing_exchanges_the_indices() {
    let f = parse::formula("x * Exp(y)", &ALIASES).unwrap();
    let t = f.transpose().unwrap();
    assert_eq!(t.to_string(), "Vj(0,3) * Exp(Vi(1,3))");
    assert_eq!(t.transpose().unwrap(), f);
}
