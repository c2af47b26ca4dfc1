//! Reductions over pairs against a dense evaluation in float64 by the formula crate's oracle.

use tilework::formula::parse::formula;
use tilework::formula::reduction::{REDUCTIONS, Weight};
use tilework::formula::{Category, Expr, Reduction};
use tilework::pairs::{Accuracy, Axis, Genred, LazyTensor, Options, Partial, Progress, SumScheme};
use tilework::{Array, DType, Device, Result, s, set_num_threads};
use tilework_ops::random::{block, uniform_f64};

/// The variables of the formulas below.
const ALIASES: [&str; 7] =
    ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "a = Vi(1)", "b = Vj(2)", "A = Vj(6)", "t = Pm(5)"];

/// Formulas that use every kind of step in every section.
const FORMULAS: &[&str] = &[
    "Exp(-SqDist(x,y)) * b",
    "Exp(-SqDist(x,y) * s) * Square(a)",
    "x + y * s",
    "(x|y) / (2 + Square(a))",
    "s / (3 + Square(x)) - y",
    "Sqrt(SqDist(x,y) + 1) * Exp(-SqDist(x,y) / 3)",
    "Pow(x,3) + Pow(2 + Square(y),-2)",
    "Powf(2 + Square(x), y)",
    "Atan2(x, y) + Sin(x) * Cos(y)",
    "IfElse(x - y, Exp(x), Sin(y))",
    "Where(x < y, x * x, y)",
    "Clamp(x, s - 3, y + 3) * y",
    "Max(x + y) + Min(x * y)",
    "ArgMax(x * y) + ArgMin(x + y) * s",
    "Concat(x, y * s) * a",
    "Extract(Concat(x * y, b), 1, 3)",
    "ExtractT(x * a, 1, 5) + t",
    "MatVecMult(A, x) + b",
    "VecMatMult(b, A) * x",
    "TensorProd(x, b)",
    "TensorDot(A, TensorProd(x, y), [2,3], [3,3], [1], [0])",
    "OneHot(a, 3) * y",
    "Sum(x * Exp(y))",
    "Normalize(x - y)",
    "Tanh(x) * Erf(y) + Sigmoid(x + y) * Log1p(Square(a))",
    "Grad(Exp(-SqDist(x,y)) * b, x, b)",
    "Grad(Grad(Exp(-SqDist(x,y)), x, IntCst(1)), y, x)",
    "Laplacian(Exp(-SqDist(x,y)), x)",
    "Exp(-SqNorm2(x))",
    "Exp(y)",
    "s * 2",
    "IntCst(3)",
    "SymSqNorm(TensorProd(x,x), y)",
    "BSpline(t, a, 1)",
];

/// The length of an axis that is reduced over so many that a card takes its kernels for many pairs; one text serves it
/// for all fewer.
pub(crate) const MANY: usize = 1040;

/// Whether a device is a card. Others have suites of their own at such sizes, and the oracle takes its time for them.
pub(crate) fn is_card(device: Device) -> bool {
    device != Device::cpu() && device != Device::reference()
}

/// Waits for what a card compiles behind first calls, so that the next one goes the way of all others.
pub(crate) fn after_first_calls(device: Device) {
    if is_card(device) {
        tilework_cuda::finish_compiling();
    }
}

/// Few rows, of many pairs each, by the axis that is reduced.
pub(crate) fn long_rows(axis: usize, rows: usize) -> (usize, usize) {
    if axis == 0 { (MANY, rows) } else { (rows, MANY) }
}

pub(crate) fn number(seed: u64, k: usize) -> f64 {
    2.0 * uniform_f64(block(seed, k as u64)) - 1.0
}

/// Numbers that are exact in every dtype and often equal.
fn whole(seed: u64, k: usize) -> f64 {
    (number(seed, k) * 4.0).round()
}

/// An array of these numbers.
pub fn array(device: Device, shape: &[usize], dtype: DType, numbers: &[f64]) -> Array {
    let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
    let exact = Array::from_slice_on(device, numbers).expect("from_slice");
    exact.reshape(&shape).expect("reshape").astype(dtype).expect("astype")
}

/// The elements of an array.
pub fn floats(array: &Array) -> Vec<f64> {
    array.astype(DType::Float64).expect("astype").to_vec::<f64>().expect("to_vec")
}

fn rows(category: Category, m: usize, n: usize) -> usize {
    [m, n, 1][category as usize]
}

/// Arrays for the variables of `ALIASES`, as the oracle's numbers and on the device.
fn arguments(
    device: Device,
    dtype: DType,
    (m, n): (usize, usize),
    draw: fn(u64, usize) -> f64,
) -> (Vec<Vec<f64>>, Vec<Array>) {
    let mut numbers = Vec::new();
    let mut arrays = Vec::new();
    for (k, alias) in ALIASES.iter().enumerate() {
        let variable = tilework::formula::declare::declaration(alias, k).expect(alias).variable;
        let rows = rows(variable.category, m, n);
        let drawn: Vec<f64> = (0..rows * variable.dim).map(|i| draw(k as u64 + 7, i)).collect();
        let shape = match variable.category {
            Category::Parameter => vec![variable.dim],
            _ => vec![rows, variable.dim],
        };
        let array = array(device, &shape, dtype, &drawn);
        numbers.push(floats(&array));
        arrays.push(array);
    }
    (numbers, arrays)
}

/// Fails unless all numbers are equal, or near relative to one or to their size.
pub fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    let allowed: Vec<f64> = expected.iter().map(|b| tolerance * (1.0 + b.abs())).collect();
    within(what, got, expected, &allowed);
}

/// Fails unless all numbers are equal, or differ by no more than is allowed of each.
pub(crate) fn within(what: &str, got: &[f64], expected: &[f64], allowed: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths");
    for (k, ((a, b), allowed)) in got.iter().zip(expected).zip(allowed).enumerate() {
        let near = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= *allowed;
        assert!(near, "{what}: element {k} is {a}, not {b}; {allowed:e} is allowed");
    }
}

/// The error that arithmetic may cause, relative to the sum of absolute terms, and the one of
/// rounding the result to its dtype, relative to itself.
fn promised(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::Float64 => (2e-14, 0.0),
        DType::Float32 => (1e-5, 0.0),
        DType::Float16 => (1e-5, f64::exp2(-11.0)),
        _ => (1e-5, f64::exp2(-8.0)),
    }
}

/// What may be missing of each number whose terms have these absolute sums.
pub(crate) fn allowances(dtype: DType, expected: &[f64], terms: &[f64]) -> Vec<f64> {
    let (arithmetic, rounding) = promised(dtype);
    expected.iter().zip(terms).map(|(b, t)| arithmetic * t + rounding * b.abs()).collect()
}

pub(crate) fn oracle(
    reduction: &Reduction,
    numbers: &[Vec<f64>],
    m: usize,
    n: usize,
) -> (Vec<f64>, Vec<i64>) {
    let numbers: Vec<&[f64]> = numbers.iter().map(|numbers| &numbers[..]).collect();
    reduction.evaluate(&numbers, m, n).expect("the oracle evaluates")
}

/// Every formula, summed over i and over j.
pub fn formulas(device: Device) {
    // A thread for each dtype and axis, since devices that compile do little else here.
    std::thread::scope(|scope| {
        for dtype in [DType::Float64, DType::Float32, DType::Float16, DType::BFloat16] {
            for axis in [0, 1] {
                scope.spawn(move || formulas_of(device, dtype, axis));
            }
        }
    });
}

fn formulas_of(device: Device, dtype: DType, axis: usize) {
    // Cards compile these once more for many pairs: in each of two dtypes along one axis.
    let long = [(DType::Float64, 0), (DType::Float32, 1)].contains(&(dtype, axis));
    let long = (long && is_card(device)).then(|| long_rows(axis, 2));
    for (m, n) in [(2, 40), (21, 9)].into_iter().chain(long) {
        let (numbers, arrays) = arguments(device, dtype, (m, n), number);
        let arrays: Vec<&Array> = arrays.iter().collect();
        for text in FORMULAS {
            let what = format!("{text} of {dtype} over {axis}, {m} x {n}");
            let sum = Genred::new(text, &ALIASES, "Mean", axis).expect(&what);
            let got = sum.call(&arrays).expect(&what);
            assert_eq!(got.dtype(), dtype, "{what}");
            let (expected, _) = oracle(sum.reduction(), &numbers, m, n);
            let sizes = Genred::new(&format!("Abs({text})"), &ALIASES, "Mean", axis).expect(&what);
            let (terms, _) = oracle(sizes.reduction(), &numbers, m, n);
            let mut allowed = allowances(dtype, &expected, &terms);
            add_roundings(&mut allowed, &terms, m.max(n));
            within(&what, &floats(&got), &expected, &allowed);
        }
    }
}

/// Allows for the oracle's own roundings of so many terms, which it adds one after the other in float64.
fn add_roundings(allowed: &mut [f64], terms: &[f64], count: usize) {
    let roundings = count as f64 * f64::EPSILON;
    allowed.iter_mut().zip(terms).for_each(|(allowed, term)| *allowed += roundings * term.abs());
}

/// Every reduction, of numbers and of vectors, with ties and with K larger than the axis.
pub fn reductions(device: Device) {
    std::thread::scope(|scope| {
        for dtype in [DType::Float64, DType::Float32] {
            for axis in [0, 1] {
                scope.spawn(move || reductions_of(device, dtype, axis));
            }
        }
    });
}

fn reductions_of(device: Device, dtype: DType, axis: usize) {
    let long = [(DType::Float64, 1), (DType::Float32, 0)].contains(&(dtype, axis));
    let long = (long && is_card(device)).then(|| long_rows(axis, 2));
    for (m, n) in [(1, 1), (2, 5), (20, 33), (5, 0), (0, 5), (1, 300)].into_iter().chain(long) {
        let (numbers, arrays) = arguments(device, dtype, (m, n), whole);
        let arrays: Vec<&Array> = arrays.iter().collect();
        // A product is rounded at each of its factors, which nothing promises to do better.
        let long = m.max(n) == MANY;
        for row in REDUCTIONS.iter().filter(|row| !long || row.name != "Prod") {
            let formulas: &[&str] = match (row.scalar, row.name) {
                (true, "LogSumExp") => &["(x|y) / 4", "x * y / 4"],
                (true, _) => &["(x|y) / 4"],
                (_, "Prod") => &["1 + Square(x) * Square(y) / 5000"],
                _ => &["SqDist(x,y)", "x * y", "Inv(Square(x)) * Sqrt(y)"],
            };
            let weight = (row.weight == Weight::Required).then_some("b");
            let k = row.takes_k.then_some(4);
            for text in formulas {
                let what = format!("{} of {text}, {dtype}, over {axis}, {m} x {n}", row.name);
                let call = Genred::with(text, &ALIASES, row.name, axis, k, weight);
                let call = call.expect(&what);
                let got = call.call_with(&arrays, &Options::default()).expect(&what);
                let (values, indices) = oracle(call.reduction(), &numbers, m, n);
                assert_eq!(got.values.is_some(), row.gives_values, "{what}");
                if let Some(found) = got.values {
                    // Weights of both signs cancel, before a logarithm too, which is exact relative to one.
                    let positive = weight.map(|_| "Abs(b)");
                    let sums = Genred::with(text, &ALIASES, row.name, axis, k, positive);
                    let (sums, _) = oracle(sums.expect(&what).reduction(), &numbers, m, n);
                    let size = |(sum, value): (&f64, &f64)| match row.name.contains("LogSumExp") {
                        true => value.abs() + (sum - value).exp(),
                        false => sum.abs(),
                    };
                    let sizes: Vec<f64> = sums.iter().zip(&values).map(size).collect();
                    let mut allowed = allowances(dtype, &values, &sizes);
                    add_roundings(&mut allowed, &sizes, m.max(n));
                    within(&what, &floats(&found), &values, &allowed);
                }
                if let Some(found) = got.indices {
                    assert_eq!(found.to_vec::<i64>().expect("indices"), indices, "{what}");
                }
            }
        }
    }
}

/// Batch axes that broadcast on every operand, parameters included, and strided operands.
pub fn batches(device: Device) {
    for sizes in [(6, 18), (4, MANY), (MANY, 4)] {
        batches_of(device, sizes);
    }
    batches_of_many_axes(device);
}

/// More batch axes than kernels walk, of which no two can be one: x has every second of them, y the others.
fn batches_of_many_axes(device: Device) {
    const AXES: usize = 9;
    let (m, n) = (3, 5);
    let draw = |odd: usize, rows: usize, seed: u64| {
        let of_batch = |axis: usize| if axis % 2 == odd { 2 } else { 1 };
        let shape: Vec<usize> = (0..AXES).map(of_batch).chain([rows, 2]).collect();
        let numbers: Vec<f64> = (0..shape.iter().product()).map(|k| number(seed, k)).collect();
        array(device, &shape, DType::Float64, &numbers)
    };
    let (x, y) = (draw(0, m, 1), draw(1, n, 2));
    let aliases = ["x = Vi(2)", "y = Vj(2)"];
    for (name, text) in [("Sum", "Exp(-SqDist(x,y))"), ("Min_ArgMin", "SqDist(x,y)")] {
        let call = Genred::new(text, &aliases, name, 1).expect(text);
        let all = call.call_with(&[&x, &y], &Options::default()).expect(text);
        let values = floats(&all.values.expect("values"));
        let flat = |array: &Array, rows: usize| {
            let shape: Vec<usize> = [2; AXES].into_iter().chain([rows, 2]).collect();
            let shared = array.broadcast_to(&shape).expect("broadcast");
            shared.reshape(&[-1, rows as isize, 2]).expect("reshape")
        };
        let [x, y] = [flat(&x, m), flat(&y, n)];
        let expected = call.call_with(&[&x, &y], &Options::default()).expect(text);
        close(name, &values, &floats(&expected.values.expect("values")), 1e-13);
        let indices = |found: Option<Array>| found.map(|it| it.to_vec::<i64>().expect("indices"));
        assert_eq!(indices(all.indices), indices(expected.indices), "{name}");
    }
}

fn batches_of(device: Device, (m, n): (usize, usize)) {
    let dtype = DType::Float64;
    let draw = |shape: &[usize], seed: u64| {
        let numbers: Vec<f64> = (0..shape.iter().product()).map(|k| number(seed, k)).collect();
        array(device, shape, dtype, &numbers)
    };
    // Axes in another order, and every second row backwards.
    let x = draw(&[3, m, 2, 1], 1).permute(&[2, 3, 1, 0]).expect("permute");
    let y = draw(&[3, 2 * n, 3], 2).slice(&s![.., ..;-2, ..]).expect("slice");
    let p = draw(&[2, 1, 1], 3);
    let text = "Exp(-SqDist(x,y) * p * p)";
    let aliases = ["x = Vi(3)", "y = Vj(3)", "p = Pm(1)"];
    for (axis, kept) in [(0, n), (1, m)] {
        let sum = Genred::new(text, &aliases, "Sum", axis).expect("genred");
        let got = sum.call(&[&x, &y, &p]).expect("call");
        assert_eq!(got.shape(), [2, 3, kept, 1], "batches of axis {axis}");
        for b in 0..2isize {
            for c in 0..3isize {
                let numbers = vec![
                    floats(&x.slice(&s![b, 0]).expect("slice")),
                    floats(&y.slice(&s![c]).expect("slice")),
                    floats(&p.slice(&s![b, 0]).expect("slice")),
                ];
                let (expected, _) = oracle(sum.reduction(), &numbers, m, n);
                let part = floats(&got.slice(&s![b, c]).expect("slice"));
                close(&format!("batch {b}, {c} of axis {axis}"), &part, &expected, 1e-12);
            }
        }
    }
}

/// The same bits for any number of threads, whichever way the work is cut.
pub fn threads(device: Device) {
    for (m, n) in [(3, 50_000), (40, 20_001), (700, 600)] {
        let (_, arrays) = arguments(device, DType::Float32, (m, n), number);
        let arrays: Vec<&Array> = arrays.iter().collect();
        for (name, text, k) in [
            ("Sum", "Exp(-SqDist(x,y)) * b", None),
            ("LogSumExp", "(x|y)", None),
            ("ArgKMin", "SqDist(x,y)", Some(3)),
            ("Min_ArgMin", "SqDist(x,y)", None),
        ] {
            let call = Genred::with(text, &ALIASES, name, 1, k, None).expect(name);
            let run = |threads: usize| {
                set_num_threads(threads);
                let got = call.call_with(&arrays, &Options::default()).expect(name);
                let bits = |values: Array| -> Vec<u32> {
                    values.to_vec::<f32>().expect("values").iter().map(|x| x.to_bits()).collect()
                };
                (got.values.map(bits), got.indices.map(|at| at.to_vec::<i64>().expect("indices")))
            };
            let before = tilework::num_threads();
            let one = run(1);
            for threads in [2, 3] {
                assert!(run(threads) == one, "{name} differs on {threads} threads, {m} x {n}");
            }
            set_num_threads(before);
        }
    }
}

/// Blocks of j merged in any order give what the whole gives.
pub fn partials(device: Device) {
    let (m, n) = (4, 37);
    for dtype in [DType::Float32, DType::Float64] {
        let draw = |rows: usize, seed: u64| {
            let numbers: Vec<f64> = (0..rows * 2).map(|k| whole(seed, k)).collect();
            array(device, &[rows, 2], dtype, &numbers)
        };
        let (x, y) = (draw(m, 1), draw(n, 2));
        for row in REDUCTIONS {
            let options = Options { k: row.takes_k.then_some(3), ..Options::default() };
            let over = |from: isize, to: isize| -> Result<(LazyTensor, LazyTensor)> {
                let y = LazyTensor::vj(&y.slice(&s![from..to])?)?;
                let f = LazyTensor::vi(&x)?.dot(&y)?.multiply(0.125)?;
                Ok((f, y))
            };
            let weight = |y: LazyTensor| (row.weight == Weight::Required).then_some(y);
            let part = |from: isize, to: isize| -> Result<Partial> {
                let (f, y) = over(from, to)?;
                f.partial(row.name, 1, weight(y).as_ref(), from as i64, &options)
            };
            let (f, y_all) = over(0, n as isize).expect("over");
            let whole = f.reduce(row.name, 1, weight(y_all).as_ref(), &options).expect(row.name);
            let merged = part(20, 37)
                .and_then(|b| b.merge(&part(0, 7)?)?.merge(&part(7, 7)?)?.merge(&part(7, 20)?))
                .and_then(|all| {
                    let weights = if row.weight == Weight::Required { 2 } else { 0 };
                    let numbers = (1, options.k.unwrap_or(1), weights);
                    Partial::from_arrays(row.name, numbers, dtype, all.arrays())?.finish()
                })
                .expect(row.name);
            if let (Some(a), Some(b)) = (merged.values, whole.values) {
                close(row.name, &floats(&a), &floats(&b), promised(dtype).0);
            }
            if let (Some(a), Some(b)) = (merged.indices, whole.indices) {
                let indices = |at: Array| at.to_vec::<i64>().expect("indices");
                assert_eq!(indices(a), indices(b), "{}", row.name);
            }
        }
    }
}

/// Accuracy of long sums, products with vectors, dense values, interruption.
pub fn odds_and_ends(device: Device, n: usize) {
    let tenth = Array::full_on(device, &[n, 1], 0.1, DType::Float32).expect("full");
    let x = Array::full_on(device, &[2, 1], 1.0, DType::Float32).expect("full");
    let product = LazyTensor::vi(&x).and_then(|x| x.multiply(&LazyTensor::vj(&tenth)?));
    let product = product.expect("product");
    let exact = f64::from(0.1f32) * n as f64;
    for (sums, promised) in [(SumScheme::Blocks, 2e-6), (SumScheme::Double, 1e-7)] {
        let options = Options { sums, ..Options::default() };
        let sum = product.reduce("Sum", 1, None, &options).and_then(|sum| sum.only());
        for sum in floats(&sum.expect("sum")) {
            assert!((sum - exact).abs() <= promised * exact, "{sums:?}: {sum} is not {exact}");
        }
    }
    let stop = |_: f64| false;
    let options = Options { progress: Some(Progress(&stop)), ..Options::default() };
    let stopped = product.reduce("Sum", 1, None, &options);
    if device != Device::cpu() {
        assert!(stopped.unwrap_err().to_string().contains("stopped"));
    }
    let small = tenth.slice(&s![..3]).expect("slice");
    let k = LazyTensor::vi(&x).and_then(|x| x.add(&LazyTensor::vj(&small)?)).expect("add");
    assert_eq!(k.dense().expect("dense").shape(), [2, 3, 1]);
    let b = Array::full_on(device, &[3], 2.0, DType::Float32).expect("full");
    close("matmul", &floats(&k.matmul(&b).expect("matmul")), &[6.6, 6.6], 1e-6);
    let turned = k.t().and_then(|t| t.sum(0)).expect("sum");
    close("transpose", &floats(&turned), &[3.3, 3.3], 1e-6);
    let explained = |accuracy: Accuracy| {
        let options = Options { accuracy, ..Options::default() };
        k.exp().and_then(|k| k.explain("Sum", 1, None, &options)).expect("explain")
    };
    assert!(explained(Accuracy::Declared).contains("per pair"));
    let card = ![Device::cpu(), Device::reference()].contains(&device);
    for (accuracy, own) in [(Accuracy::Declared, card), (Accuracy::Strict, false)] {
        let said = explained(accuracy);
        assert_eq!(said.contains("the card's own exponentials within 2^-22"), own, "{said}");
    }
}

/// The oracle is reached the way a user would: a formula without its text.
pub fn oracle_agrees_with_text() {
    let text = formula("Exp(-SqDist(x,y))", &ALIASES).expect("formula");
    let built = Expr::vi(0, 3)
        .and_then(|x| x.sqdist(&Expr::vj(1, 3)?)?.negative()?.exp())
        .expect("expression");
    assert_eq!(text, built);
    assert_eq!(Axis::J.survivor(), Category::I);
}
