//! Derivatives of every function and every row against finite differences, to second order, in
//! both directions.

mod common;

use common::{ALIASES, Numbers, arguments, cases, corpus, elementwise, random_formula, slices};
use proptest::prelude::*;
use tilework_error::Error;
use tilework_formula::{Axis, Expr, Reduction, Variable, derive, forward, parse};

const STEP: f64 = 1e-5;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The derivative of `f` at a point when argument `position` moves in a direction.
fn difference(f: &Expr, point: &[Vec<f64>], position: usize, direction: &[f64]) -> Vec<f64> {
    let moved = |step: f64| {
        let mut point = point.to_vec();
        for (x, u) in point[position].iter_mut().zip(direction) {
            *x += step * u;
        }
        f.evaluate(&slices(&point)).unwrap()
    };
    moved(STEP).iter().zip(moved(-STEP)).map(|(up, down)| (up - down) / (2.0 * STEP)).collect()
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 2e-6 * (1.0 + scale)
}

/// Checks derivatives of `f` by all its variables, and those of the gradients up to `order`.
fn check(name: &str, f: &Expr, point: &[Vec<f64>], order: usize, numbers: &mut Numbers) {
    for v in f.variables().unwrap() {
        let variable = Expr::variable(v).unwrap();
        let (mut point, e_position) = (point.to_vec(), point.len());
        let e = Expr::vi(e_position, f.dim()).unwrap();
        point.push(numbers.vector(f.dim()));
        let direction = numbers.vector(v.dim);
        let gradient = derive::grad(f, &variable, &e).unwrap();
        assert_eq!(gradient.dim(), v.dim, "{name} by {v}");

        let wanted = difference(f, &point, v.position, &direction);
        let got = gradient.evaluate(&slices(&point)).unwrap();
        let (wanted_sum, got_sum) = (dot(&wanted, &point[e_position]), dot(&got, &direction));
        let scale = wanted.iter().map(|x| x.abs()).fold(0.0, f64::max);
        assert!(
            close(wanted_sum, got_sum, scale),
            "{name} by {v}: differences give {wanted_sum}, the gradient {got_sum}\n{gradient}"
        );

        let u = Expr::vi(e_position + 1, v.dim).unwrap();
        point.push(direction);
        let tangent = forward::diff(f, &[(variable, u)]).unwrap();
        let got = tangent.evaluate(&slices(&point)).unwrap();
        for (wanted, got) in wanted.iter().zip(&got) {
            assert!(close(*wanted, *got, scale), "{name} forward by {v}: {wanted} is not {got}");
        }
        if order > 1 {
            check(name, &gradient, &point, order - 1, numbers);
        }
    }
}

#[test]
fn every_function_to_second_order() {
    let mut numbers = Numbers(7);
    for (text, f) in corpus() {
        let point = arguments(&f.variables().unwrap(), &mut numbers);
        check(&text, &f, &point, 2, &mut numbers);
    }
}

#[test]
fn every_row_to_second_order_with_broadcasting() {
    let mut numbers = Numbers(11);
    for (id, f, domains) in elementwise() {
        let mut point = arguments(&f.variables().unwrap(), &mut numbers);
        for (vector, (low, high)) in point.iter_mut().zip(domains) {
            for x in vector.iter_mut() {
                *x = low + (high - low) * (0.1 + 0.2 * (*x + 2.0));
            }
        }
        check(&format!("{id:?}"), &f, &point, 2, &mut numbers);
    }
}

#[test]
fn third_order_stays_small_and_right() {
    let aliases = ["x = Vi(3)", "y = Vj(3)", "e = Vi(1)", "u = Vi(3)", "v = Vi(3)"];
    let text = "Grad(Grad(Grad(Exp(-SqDist(x,y)), x, e), x, u), x, v)";
    let third = parse::formula(text, &aliases).unwrap();
    let nodes = Expr::order(std::slice::from_ref(&third)).len();
    assert!(nodes < 60, "{nodes} nodes: {third}");
    let mut numbers = Numbers(5);
    let point = arguments(&third.variables().unwrap(), &mut numbers);
    check("third", &third, &point, 1, &mut numbers);
}

#[test]
fn special_points() {
    let at = |text: &str, x: f64| {
        let f = parse::formula(&format!("Grad({text}, x, IntCst(1))"), &["x = Vi(1)"]).unwrap();
        f.evaluate(&[&[x]]).unwrap()[0]
    };
    assert_eq!(at("Sqrt(x)", 0.0), 0.0);
    assert_eq!(at("Rsqrt(x)", 0.0), 0.0);
    assert_eq!(at("Norm2(x)", 0.0), 0.0);
    assert_eq!(at("Abs(x)", 0.0), 0.0);
    assert_eq!(at("ReLU(x)", 0.0), 1.0);
    assert_eq!(at("Step(x)", 0.0), 0.0);
    assert_eq!(at("Acos(x)", 1.0), 0.0);
    assert_eq!(at("SinXDivX(x)", 0.0), 0.0);
    assert_eq!(at("XLogX(x)", 0.0), f64::NEG_INFINITY);
    assert_eq!(at("Round(x,0)", 1.3), 0.0);
}

#[test]
fn known_derivatives() {
    let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)"];
    let same = |a: &str, b: &str| {
        let (a, b) = (parse::formula(a, &aliases).unwrap(), parse::formula(b, &aliases).unwrap());
        assert_eq!(a, b);
    };
    same("Grad(SqNorm2(x), x, IntCst(1))", "2 * x");
    same("Grad(x, x, y)", "y");
    same("Grad(y, x, y)", "Zero(3)");
    same("Diff((x|y), x, x)", "(x|y)");
    same("Diff((x|y), (x,y), (y,s*x))", "Diff((x|y), x, y) + Diff((x|y), y, s*x)");
    same("Diff((x|y), (x,), x)", "(x|y)");
    same("Grad((x|y), x, s)", "s * y");
    same("Divergence(x, x)", "IntCst(3)");
    same("Laplacian(SqNorm2(x), x)", "IntCst(6)");
    same("TraceOperator(s * x, x)", "3 * s");
    // Made component by component: no longer for more of them.
    same("Divergence(Exp(x) * s - y, x)", "s * Sum(Exp(x))");
    same("TraceOperator(x * y, x, y)", "SqNorm2(y)");
    // Each sum has both of those before it.
    let (x, y) = (Expr::vi(0, 3).unwrap(), Expr::vj(1, 3).unwrap());
    let (mut before, mut sum) = (x.exp().unwrap(), x.multiply(&y).unwrap());
    for _ in 0..90 {
        (before, sum) = (sum.clone(), sum.add(&before).unwrap());
    }
    assert_eq!(forward::divergence(&sum, &x).unwrap().dim(), 1);
    for dim in [3, 300] {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})"), "s = Pm(1)".to_owned()];
        let aliases = aliases.each_ref().map(|alias| &alias[..]);
        let made =
            tilework_formula::parse::formula("Laplacian(Exp(-SqDist(x,y) * s), x)", &aliases)
                .unwrap();
        assert!(made.to_string().len() < 250, "{made}");
    }
    same("Grad(s * x, s, y)", "(y|x)");
    same("GradMatrix(s * x, s)", "x");
}

#[test]
fn what_cannot_be_derived_says_so() {
    let aliases = ["x = Vi(3)", "y = Vj(3)"];
    for text in [
        "Grad(x, x + y, y)",
        "Grad(x, x, IntCst(1))",
        "Laplacian(x, x)",
        "Divergence(SqNorm2(x), x)",
        "Diff(x, x, IntCst(1))",
        "Diff(x, (x,y), x)",
        "Diff(x, (x,y), (x,y), x)",
        "Diff(x, (x, x+y), (x,y))",
        "(x,y)",
        "(x,y) + x",
        "Grad(x, (x,y), (x,y))",
        "TraceOperator(x, x, Concat(x,y))",
    ] {
        assert!(parse::formula(text, &aliases).is_err(), "{text}");
    }
    // Each order multiplies the size: this must end in an error, soon.
    let deep = format!("{}Exp(Sin(x)|Cos(x * y)){}", "Laplacian(".repeat(40), ", x)".repeat(40));
    assert!(parse::formula(&deep, &aliases).is_err());
}

struct Cloud {
    arguments: Vec<Vec<f64>>,
    m: usize,
    n: usize,
}

impl Cloud {
    fn run(&self, reduction: &Reduction) -> Vec<f64> {
        reduction.evaluate(&slices(&self.arguments), self.m, self.n).unwrap().0
    }
}

fn rows(v: Variable, m: usize, n: usize) -> usize {
    [m, n, 1][v.category as usize] * v.dim
}

#[test]
fn gradients_of_reductions_against_differences() {
    use tilework_formula::Need;
    let aliases = ["x = Vi(2)", "y = Vj(2)", "p = Pm(1)"];
    let parse = |text: &str| parse::formula(text, &aliases).unwrap();
    let number = parse("1 + p * SqDist(x, y) + Sin(Elem(x,0))");
    let vector = parse("x * y + p * Sin(x - y) + 3");
    let weight = parse("Concat(2 + Sin(y), 1 + p * p) + Square(Elem(x,1))");
    // Without a derivative where a point meets itself, which is not what is selected.
    let low = parse("Log((1 + p * p) * SqDist(x, y))");
    let low_vector = parse("Log((1 + p * p) * Square(x - y))");
    let cases: [(&str, &Expr, Option<usize>, Option<&Expr>); 23] = [
        ("Sum", &vector, None, None),
        ("Mean", &vector, None, None),
        ("Prod", &vector, None, None),
        ("Min", &vector, None, None),
        ("Max", &vector, None, None),
        ("Max_ArgMax", &vector, None, None),
        ("KMin", &vector, Some(2), None),
        ("KMax", &vector, Some(3), None),
        ("Max", &low, None, None),
        ("Min", &low.negative().unwrap(), None, None),
        ("KMax", &low, Some(2), None),
        ("Max", &low_vector, None, None),
        ("KMin", &low_vector.negative().unwrap(), Some(2), None),
        ("LogSumExp", &number, None, None),
        ("LogSumExp", &vector, None, None),
        ("LogSumExp", &number, None, Some(&weight)),
        ("LogSumExpWeight", &number, None, Some(&weight)),
        ("Max_SumShiftExp", &number, None, None),
        ("Max_SumShiftExpWeight", &number, None, Some(&weight)),
        ("SumSoftMaxWeight", &number, None, Some(&weight)),
        ("Any", &vector, None, None),
        ("ArgMin", &vector, None, None),
        ("Count", &vector, None, None),
    ];
    let (m, n) = (3, 4);
    let mut numbers = Numbers(3);
    for axis in [Axis::I, Axis::J] {
        let (kept, reduced) = if axis == Axis::J { (m, n) } else { (n, m) };
        for (name, f, k, weight) in &cases {
            let reduction = Reduction::new(name, f, axis, *k, *weight).unwrap();
            let variables = Expr::variables_of(&reduction.outputs()).unwrap();
            let mut cloud = Cloud { arguments: Vec::new(), m, n };
            for v in &variables {
                cloud.arguments.push(numbers.vector(rows(*v, m, n)));
            }
            let first = cloud.arguments[0][..2].to_vec();
            cloud.arguments[1][..2].copy_from_slice(&first);
            // The incoming gradient, then what the derivative wants.
            let survivor = |position, dim| {
                Expr::variable(Variable { position, dim, category: axis.survivor() }).unwrap()
            };
            let e = survivor(3, reduction.width());
            cloud.arguments.push(numbers.vector(kept * reduction.width()));
            let mut saved = Vec::new();
            for need in reduction.saved() {
                let position = cloud.arguments.len();
                let v = Variable { position, dim: need.dim, category: need.category };
                saved.push(Expr::variable(v).unwrap());
                cloud.arguments.push(match reduction.saving(need.need).unwrap() {
                    None if need.need == Need::Index => (0..reduced).map(|k| k as f64).collect(),
                    None => vec![reduced as f64],
                    Some(by) => {
                        let got = by.evaluate(&slices(&cloud.arguments), m, n).unwrap();
                        let indices = got.1.iter().map(|index| *index as f64);
                        if got.0.is_empty() { indices.collect() } else { got.0 }
                    }
                });
            }
            for v in &variables {
                let variable = Expr::variable(*v).unwrap();
                let adjoint = reduction.gradient(&variable, &e, &saved).unwrap();
                let mut gradient = cloud.run(&adjoint.reduction);
                if adjoint.sum_rows {
                    let sums = (0..v.dim).map(|c| gradient.iter().skip(c).step_by(v.dim).sum());
                    gradient = sums.collect();
                }
                let direction = numbers.vector(gradient.len());
                let moved = |step: f64| {
                    let mut arguments = cloud.arguments.clone();
                    for (x, u) in arguments[v.position].iter_mut().zip(&direction) {
                        *x += step * u;
                    }
                    let moved = Cloud { arguments, m, n };
                    let (values, _) = reduction.evaluate(&slices(&moved.arguments), m, n).unwrap();
                    if values.is_empty() { 0.0 } else { dot(&values, &cloud.arguments[3]) }
                };
                let wanted = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let got = dot(&gradient, &direction);
                assert!(
                    (wanted - got).abs() < 1e-5 * (1.0 + wanted.abs()),
                    "{name} over {axis:?} by {v}: differences give {wanted}, the gradient {got}"
                );

                let position = cloud.arguments.len();
                let u = Expr::variable(Variable { position, ..*v }).unwrap();
                let tangent = reduction.tangent(&[(variable, u)], &saved).unwrap();
                cloud.arguments.push(direction.clone());
                let forward = cloud.run(&tangent);
                cloud.arguments.pop();
                let forward = dot(&forward, &cloud.arguments[3]);
                assert!(
                    (wanted - forward).abs() < 1e-5 * (1.0 + wanted.abs()),
                    "{name} over {axis:?} forward by {v}: {wanted} is not {forward}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    /// Both directions are the same linear map, whatever the formula, and so are those of its gradient:
    /// no step size, and no tolerance beyond what roundings of the arguments make of the result.
    #[test]
    fn reverse_and_forward_are_adjoint(text in random_formula(), seed in any::<u64>()) {
        let Ok(f) = parse::formula(&text, &ALIASES) else { return Ok(()) };
        let mut numbers = Numbers(seed);
        let mut point = arguments(&f.variables().unwrap(), &mut numbers);
        point.resize(20, Vec::new());
        point.extend([f.dim(), 3, 3].map(|dim| numbers.vector(dim)));
        let moved: Vec<Vec<f64>> =
            point.iter().map(|row| row.iter().map(|x| x * (1.0 + 1e-13)).collect()).collect();
        let (x, u) = (Expr::vi(0, 3)?, Expr::vi(22, 3)?);
        let first = derive::grad(&f, &x, &Expr::vi(20, f.dim())?)?;
        for (order, f, e) in [(1, f, 20), (2, first, 21)] {
            let gradient = derive::grad(&f, &x, &Expr::vi(e, f.dim())?)?;
            let tangent = forward::diff(&f, &[(x.clone(), u.clone())])?;
            let both = |point: &[Vec<f64>]| -> Result<(f64, f64), Error> {
                let gradient = gradient.evaluate(&slices(point))?;
                let tangent = tangent.evaluate(&slices(point))?;
                Ok((dot(&gradient, &point[22]), dot(&tangent, &point[e])))
            };
            let ((a, b), (c, d)) = (both(&point)?, both(&moved)?);
            // Steep formulas overflow; what is left must agree.
            let allowed = 1e-9 * (1.0 + a.abs()) + 100.0 * ((a - c).abs() + (b - d).abs());
            let overflows = !(a + b + c + d).is_finite();
            prop_assert!(overflows || (a - b).abs() <= allowed, "order {order}: {a} is not {b}");
        }
    }
}

/// What a formula gives for numbers x, y and its gradient towards x; both in one dimension.
fn at(text: &str, x: f64, y: f64) -> (f64, f64) {
    let aliases = ["x = Vi(1)", "y = Vj(1)"];
    let parse::Meaning::Formula(f) = parse::parse(text, &aliases).unwrap().meaning else {
        panic!("{text} is a formula")
    };
    let gradient = derive::grad(&f, &Expr::vi(0, 1).unwrap(), &Expr::constant(1.0)).unwrap();
    let value = |expr: &Expr| expr.evaluate(&[&[x], &[y]]).unwrap()[0];
    (value(&f), value(&gradient))
}

/// Branches guard poles: what was not taken has no part in the gradient, whatever it would be there.
#[test]
fn branches_that_are_not_taken_send_nothing_back() {
    for (text, x, y, gradient) in [
        ("IfElse(x, Sqrt(x), x)", -1.0, 0.0, 1.0),
        ("IfElse(x, Sqrt(x), x)", 4.0, 0.0, 0.25),
        ("Where(x != 0, Sin(x) / x, 1)", 0.0, 0.0, 0.0),
        ("Where(SqDist(x,y) > 0, 1 / SqDist(x,y), 0)", 2.0, 2.0, 0.0),
        ("Where(SqDist(x,y) > 0, 1 / SqDist(x,y), 0)", 3.0, 2.0, -2.0),
        ("Where(SqDist(x,y) > 0, SqDist(x,y) * Log(SqDist(x,y)), 0)", 2.0, 2.0, 0.0),
        // One branch in another, and both beside a way without any.
        ("Where(x > 0, Where(x > 1, 1 / (x - 1), Log(x)), x) + x * x", 1.0, 0.0, 3.0),
        ("Where(x > 0, Where(x > 1, 1 / (x - 1), Log(x)), x) + x * x", 0.0, 0.0, 1.0),
        ("Where(x > 0, Where(x > 1, 1 / (x - 1), Log(x)), x) + x * x", 2.0, 0.0, 3.0),
        // Masks of components do not pass sums, but what is below them does not come to its pole.
        ("Sum(Where(Concat(x,y) > 0, Sqrt(Concat(x,y)), 0))", 0.0, 1.0, 0.0),
        ("Sum(Where(Concat(x,y) > 0, Sqrt(Concat(x,y)), 0))", 4.0, 0.0, 0.25),
        ("Sum(Where(Concat(x,y) > 0, Concat(Log(x),Log(y)), 0))", 0.0, 1.0, 0.0),
        ("Sum(Where(Concat(y,x) > 0, Concat(y,Log(x)), 0))", 2.0, 0.0, 0.5),
        // More ways to one node than go on alone.
        (
            "Where(x>1,Log(x),0) + Where(x>2,Log(x),0) + Where(x>3,Log(x),0) + Where(x>4,Log(x),0) + Where(x>5,Log(x),0)",
            0.0,
            0.0,
            0.0,
        ),
        (
            "Where(x>1,Log(x),0) + Where(x>2,Log(x),0) + Where(x>3,Log(x),0) + Where(x>4,Log(x),0) + Where(x>5,Log(x),0)",
            4.0,
            0.0,
            0.75,
        ),
        // Many branches one after the other.
        (
            "Where(x>0,x*x,x) + Where(x>1,x/y,x) + Where(x>2,x,x/y) + Where(x>3,x,2*x) + Where(x>4,x,x*x)",
            0.5,
            0.5,
            1.0 + 1.0 + 2.0 + 2.0 + 1.0,
        ),
    ] {
        let (value, got) = at(text, x, y);
        assert!(value.is_finite(), "{text} at {x}, {y}: {value}");
        assert!((got - gradient).abs() < 1e-14, "{text} at {x}, {y}: {got}, not {gradient}");
    }
}

/// A chain of branches over what they share stays of a reasonable size.
#[test]
fn chains_of_branches_do_not_double() {
    let x = Expr::vi(0, 1).unwrap();
    let mut y = x.clone();
    for k in 0..40 {
        let condition = y.subtract(&Expr::constant(f64::from(k))).unwrap();
        y = condition.select(&y.exp().unwrap(), &Expr::constant(0.0)).unwrap().add(&y).unwrap();
    }
    let gradient = derive::grad(&y, &x, &Expr::constant(1.0)).unwrap();
    assert!(Expr::order(&[gradient]).len() < 3000);
}
/// Powers of zero do not depend on their exponent, and a length of zero is at its least.
#[test]
fn powers_and_lengths_of_zero_have_no_slope() {
    for (text, x, y, gradient) in [
        ("Powf(SqDist(y,y), x)", 1.5, 3.0, 0.0),
        ("Powf(y, x)", 2.0, 3.0, 9.0 * 3f64.ln()),
        ("Hypot(x - y, y - y)", 1.0, 1.0, 0.0),
        ("Hypot(x - y, y - y)", 2.0, 1.0, 1.0),
    ] {
        assert!((at(text, x, y).1 - gradient).abs() < 1e-13, "{text} at {x}, {y}");
    }
}
