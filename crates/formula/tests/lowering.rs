//! Tapes against the oracle: the same bits in float64, nearly the same in float32 and halves.

mod common;

use common::{ALIASES, Numbers, arguments, cases, corpus, elementwise, random_formula, slices};
use proptest::prelude::*;
use tilework_error::Error;
use tilework_formula::{Expr, derive, lower, parse};
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Per};

/// The outputs of the tape of `outputs` at a point, as float64.
fn run(outputs: &[Expr], dtype: DType, point: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let lowered = lower(outputs, dtype).unwrap();
    lowered.tape.check().unwrap();
    let inputs: Vec<Vec<Scalar>> = lowered
        .variables
        .iter()
        .map(|v| point[v.position].iter().map(|x| Scalar::new(*x).cast(dtype)).collect())
        .collect();
    let inputs: Vec<&[Scalar]> = inputs.iter().map(|input| &input[..]).collect();
    let results = lowered.tape.evaluate(&inputs).unwrap();
    results.iter().map(|result| result.iter().map(Scalar::get::<f64>).collect()).collect()
}

fn agree(name: &str, f: &Expr, point: &[Vec<f64>]) {
    let wanted = f.evaluate(&slices(point)).unwrap();
    let got = run(std::slice::from_ref(f), DType::Float64, point).remove(0);
    assert_eq!(wanted.len(), got.len());
    for (wanted, got) in wanted.iter().zip(&got) {
        // Integer powers are products on the tape, so the last bits may differ.
        let close = (wanted - got).abs() <= 1e-14 * (1.0 + wanted.abs());
        assert!(close || wanted.to_bits() == got.to_bits(), "{name}: {wanted} is not {got}");
    }
}

#[test]
fn a_formula_may_have_as_many_steps_as_a_tape() {
    let x = Expr::vi(0, 1).unwrap();
    let long = |terms: usize| {
        let term = |k: usize| x.add(&Expr::constant(k as f64 + 0.5)).unwrap().unary(Id::Sin);
        let sum = (1..terms).fold(term(0).unwrap(), |sum, k| sum.add(&term(k).unwrap()).unwrap());
        lower(&[sum], DType::Float32)
    };
    assert_eq!(long(16_000).unwrap().tape.slots(), 4 * 16_000);
    let message = long(17_000).unwrap_err().to_string();
    assert!(message.contains("steps, more than 65535"), "{message}");
}

#[test]
fn every_function_and_its_gradients_run_as_tapes() {
    let mut numbers = Numbers(21);
    for (text, f) in corpus() {
        let mut point = arguments(&f.variables().unwrap(), &mut numbers);
        agree(&text, &f, &point);
        let e = Expr::vi(point.len(), f.dim()).unwrap();
        point.push(numbers.vector(f.dim()));
        for v in f.variables().unwrap() {
            let g = derive::grad(&f, &Expr::variable(v).unwrap(), &e).unwrap();
            agree(&format!("gradient of {text}"), &g, &point);
        }
        let low = run(std::slice::from_ref(&f), DType::Float32, &point).remove(0);
        assert_eq!(low.len(), f.dim());
    }
    for (id, f, _) in elementwise() {
        let point = arguments(&f.variables().unwrap(), &mut numbers);
        agree(&format!("{id:?}"), &f, &point);
    }
}

#[test]
fn sections_follow_the_indices() {
    let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)"];
    let f = parse::formula("Exp(-SqDist(x,y) * Exp(s)) * Sin(Sum(y)) * Cos(Sum(x))", &aliases);
    let lowered = lower(&[f.unwrap()], DType::Float32).unwrap();
    let sections = lowered.tape.sections();
    let of = |id: Id, per: Per| {
        let inputs = lowered.tape.inputs().len();
        let steps = lowered.tape.steps().iter().enumerate();
        steps.filter(|(k, s)| s.action == Action::Apply(id) && sections[inputs + k] == per).count()
    };
    assert_eq!((of(Id::Exp, Per::Once), of(Id::Exp, Per::Pair)), (1, 1));
    assert_eq!((of(Id::Sin, Per::J), of(Id::Cos, Per::I)), (1, 1));
}

#[test]
fn a_value_and_its_gradient_share_their_steps() {
    let (x, y) = (Expr::vi(0, 3).unwrap(), Expr::vj(1, 3).unwrap());
    let k = x.sqdist(&y).unwrap().negative().unwrap().exp().unwrap();
    let g = derive::grad(&k, &x, &Expr::constant(1.0)).unwrap();
    let both = lower(&[k, g.clone()], DType::Float32).unwrap().tape;
    let exps = both.steps().iter().filter(|s| s.action == Action::Apply(Id::Exp)).count();
    assert_eq!(exps, 1);
    let alone = lower(&[g], DType::Float32).unwrap().tape;
    assert_eq!(both.steps().len(), alone.steps().len());
    assert!(both.steps().len() <= 8, "{both}");
}

#[test]
fn comparisons_become_numbers_only_where_they_are_used_as_such() {
    let aliases = ["x = Vi(3)", "y = Vj(3)"];
    let casts = |text: &str| {
        let f = parse::formula(text, &aliases).unwrap();
        let tape = lower(&[f], DType::Float32).unwrap().tape;
        tape.steps().iter().filter(|step| step.action == Action::Cast).count()
    };
    assert_eq!(casts("IfElse(x - y, x, y)"), 0);
    assert_eq!(casts("Where(LogicalAnd(x < y, x < 1), x, y)"), 0);
    assert_eq!(casts("(x < y) * x"), 1);
    assert_eq!(casts("x < y"), 1);
}

#[test]
fn halves_are_computed_in_float32() {
    let f = Expr::vi(0, 2).unwrap().sqdist(&Expr::vj(1, 2).unwrap()).unwrap();
    let lowered = lower(std::slice::from_ref(&f), DType::Float16).unwrap();
    assert_eq!(lowered.tape.inputs()[0].slot.dtype, DType::Float16);
    assert_eq!(lowered.tape.slot(lowered.tape.outputs()[0]).dtype, DType::Float32);
    let point = vec![vec![1.0, 2.0], vec![1.5, 4.0]];
    assert_eq!(run(&[f], DType::Float16, &point)[0], [4.25]);
}

#[test]
fn ranges_take_few_steps() {
    for len in [1, 2, 3, 7, 8, 9, 1000, 100_000] {
        let lowered = lower(&[Expr::range(len).unwrap()], DType::Float32).unwrap();
        assert!(lowered.tape.steps().len() < 70, "{len}: {} steps", lowered.tape.steps().len());
        let wanted: Vec<f64> = (0..len).map(|k| k as f64).collect();
        assert_eq!(run(&[Expr::range(len).unwrap()], DType::Float32, &[])[0], wanted);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = Expr::vi(0, 1).unwrap();
    assert!(matches!(lower(std::slice::from_ref(&x), DType::Int32), Err(Error::DType(_))));
    assert!(lower(std::slice::from_ref(&x), DType::Complex64).is_err());
    let mut f = x.clone();
    for _ in 0..70_000 {
        f = f.unary(Id::Sin).unwrap();
    }
    assert!(matches!(lower(&[f], DType::Float32), Err(Error::Formula { .. })));
    let other = Expr::vj(0, 1).unwrap();
    assert!(lower(&[x.add(&other).unwrap()], DType::Float32).is_err());
    // A number against a vector below the depth that rules reach.
    let mut deep = x;
    for _ in 0..300 {
        deep = deep.unary(Id::Sin).unwrap();
    }
    let dot = deep.dot(&Expr::vj(1, 3).unwrap()).unwrap();
    agree("deep dot", &dot, &[vec![0.5], vec![1.0, 2.0, 3.0]]);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_formulas_run_as_tapes(text in random_formula(), seed in any::<u64>()) {
        if let Ok(f) = parse::formula(&text, &ALIASES) {
            let point = arguments(&f.variables().unwrap(), &mut Numbers(seed));
            agree(&text, &f, &point);
        }
    }
}
