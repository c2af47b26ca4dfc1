//! Reductions over pairs of shapes of their own: few rows by many columns, and vectors of any length, against
//! the CPU; right-hand sides of any layout; results of many components; gradients of wide points. Called by
//! `tests/pairs.rs`.

use tilework::pairs::{Accuracy, Genred, Options, Reduced, Scheme, SumScheme};
use tilework::{Array, DType, Device, Rng, s};

use crate::pairs::{floats, is_card};
use crate::pairs_sizes::agree;

/// Reduction, K, formula, weight.
type Case = (&'static str, Option<usize>, &'static str, Option<&'static str>);

/// Components of other vectors beside those of x and y: another length where these are long.
fn beside(dim: usize) -> usize {
    if dim > 64 { dim / 2 + 40 } else { 1 }
}

/// M rows of i and N of j, whose x and y have so many components.
fn arguments(device: Device, dtype: DType, [m, n, dim]: [usize; 3]) -> Vec<Array> {
    let rng = Rng::new(11);
    let draw = |rows: usize, dim: usize| {
        let numbers = rng.normal(&[rows, dim], DType::Float64).expect("normal");
        numbers.astype(dtype).and_then(|x| x.to_device(device)).expect("to_device")
    };
    let s = Array::full_on(device, &[1], 1.0 / dim as f64, dtype).expect("full");
    let q = draw(1, dim).abs().and_then(|q| q.add(0.5)?.reshape(&[-1])).expect("weights");
    let others = [draw(m, dim), draw(m, beside(dim)), draw(n, beside(dim))];
    [draw(m, dim), draw(n, dim), s, draw(n, 2), q, draw(m, 1)].into_iter().chain(others).collect()
}

/// The device agrees with the CPU within a tolerance, and with itself.
fn check(device: Device, case: Case, dtype: DType, shape: [usize; 3], tolerance: f64) {
    let (name, k, text, weight) = case;
    let [x, y, q] = ["x = Vi", "y = Vj", "q = Pm"].map(|of| format!("{of}({})", shape[2]));
    let own = format!("f = Vi({})", shape[2]);
    let [e, c] = ["e = Vi", "c = Vj"].map(|of| format!("{of}({})", beside(shape[2])));
    let aliases = [&x[..], &y, "s = Pm(1)", "b = Vj(2)", &q, "t = Vi(1)", &own, &e, &c];
    let call = Genred::with(text, &aliases, name, 1, k, weight);
    let call = call.expect(text);
    for accuracy in [Accuracy::Declared, Accuracy::Strict] {
        let options = Options { accuracy, ..Options::default() };
        let run = |arrays: &[Array]| {
            call.call_with(&arrays.iter().collect::<Vec<_>>(), &options).expect(text)
        };
        let what = format!("{name} of {text}, {dtype}, {shape:?}, {accuracy:?}");
        let there = arguments(device, dtype, shape);
        let (got, expected) = (run(&there), run(&arguments(Device::cpu(), dtype, shape)));
        agree(&what, &got, &expected, tolerance);
        agree(&what, &run(&there), &got, 0.0);
    }
}

/// Fewer rows than a block of threads has, by so many columns that devices cut these.
pub fn few_rows(device: Device) {
    const CASES: [Case; 5] = [
        ("Sum", None, "Exp(-SqDist(x,y) * s) * b", None),
        ("ArgMin", None, "SqDist(x,y)", None),
        ("KMin_ArgKMin", Some(7), "SqDist(x,y)", None),
        ("LogSumExp", None, "-SqDist(x,y) * s", None),
        ("SumSoftMaxWeight", None, "(x|y) * s", Some("b")),
    ];
    std::thread::scope(|scope| {
        for case in CASES {
            for shape in [[100, 1_200_007, 3], [37, 1_900_001, 3], [1, 1_500_003, 2]] {
                scope.spawn(move || check(device, case, DType::Float32, shape, 1e-5));
            }
        }
    });
}

/// So many rows that the states of several ranges of j take more memory than a card gives them: a scheme that is
/// asked for gives the same.
pub fn many_rows(device: Device) {
    let rng = Rng::new(29);
    let draw = |shape: &[usize]| {
        let numbers = rng.normal(shape, DType::Float32);
        numbers.and_then(|x| x.to_device(device)).expect("to_device")
    };
    let s = Array::full_on(device, &[1], 0.25, DType::Float32).expect("full");
    for (batch, m, n) in [(1, 3_000_001, 700), (3, 900_001, 701)] {
        let arrays = [draw(&[batch, m, 3]), draw(&[batch, n, 3]), s.clone(), draw(&[batch, n, 2])];
        for (name, k, text) in [
            ("Sum", None, "Exp(-SqDist(x,y) * s) * b"),
            ("ArgMin", None, "SqDist(x,y)"),
            ("KMin_ArgKMin", Some(3), "SqDist(x,y)"),
        ] {
            let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "b = Vj(2)"];
            let call = Genred::with(text, &aliases, name, 1, k, None).expect(text);
            let run = |scheme: Scheme| {
                let options = Options { scheme, ..Options::default() };
                call.call_with(&arrays.each_ref(), &options).expect(text)
            };
            agree(
                &format!("{name}, {batch} x {m} x {n}"),
                &run(Scheme::TwoD),
                &run(Scheme::OneD),
                1e-5,
            );
        }
    }
}

/// Formulas of vectors that are x and y, and others beside them.
const OF_LONG_VECTORS: [Case; 35] = [
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", None),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * (x|y) * b", None),
    ("LogSumExp", None, "((x|y) - Sum(Abs(x - y)) - Sqrt(SqDist(x,y))) * s", None),
    ("Min_ArgMin", None, "Sum(Abs(x - y)) * s + Sum(Square(x + y) / q) * t", None),
    ("KMin", Some(20), "Sum(Abs(x - y)) * s + WeightedSqDist(q, x, y) * s", None),
    ("Sum", None, "Exp((y|x) * s) * b", None),
    ("ArgMin", None, "SqDist(y,x)", None),
    ("ArgKMin", Some(3), "SqDist(x,y)", None),
    ("LogSumExp", None, "-SqDist(x,y) * s", None),
    ("Sum", None, "(x|y) / (Norm2(x) * Norm2(y)) * b", None),
    // Weights that do not cancel.
    ("LogSumExp", None, "(Normalize(x)|Normalize(y))", Some("Square(b)")),
    ("Sum", None, "Exp(-Sum(Abs(x - y)) * s) * b", None),
    ("Sum", None, "Exp(-WeightedSqDist(q, x, y) * s)", None),
    ("Sum", None, "Exp(-SqDist(x / q, y / q) * s)", None),
    ("Sum", None, "Exp(-SqDist(x * Sin(t), y / (Sum(Abs(y)) * s)) * s) * t", None),
    ("Sum", None, "Sum(Exp(x * y * s - 2)) * s", None),
    ("Sum", None, "Exp(-SqDist(x - Sum(x) * s, y - Sum(y) * s) * s + Max(q) - Max(x))", None),
    ("KMin", Some(40), "WeightedSqDist(q, x, y) * s", None),
    ("KMin", Some(20), "SqDist(x * t, y) * s", None),
    ("Sum", None, "Exp(-Max(Abs(x - y)) * s) * b", None),
    ("Min_ArgMin", None, "Max(Abs(x - y)) + Min(x * y) * t + SqDist(x,y) * s", None),
    ("KMin", Some(20), "Max(Abs(x * t - y))", None),
    // Several vectors of a row, of one length and of two.
    ("Sum", None, "Exp(-SqDist(x,y) * s) * (f|y)", None),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * (e|c)", None),
    ("Sum", None, "Grad(Exp(-SqDist(x,y) * s) * c, x, e)", None),
    ("LogSumExp", None, "((x|y) + Sum(Abs(e * t - c))) * s", None),
    ("KMin", Some(20), "(SqDist(x,y) + SqDist(e,c) + (f|y)) * s", None),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * (e|c) / (Norm2(c) * Norm2(y))", None),
    ("Min_ArgMin", None, "Max(Abs(x - y)) + Max(Abs(e - c)) * s", None),
    // Numbers of several vectors of a row, and of a j.
    ("Sum", None, "Exp(-WeightedSqDist(Square(f), x, y) * s) * b", None),
    ("Sum", None, "Grad(Exp(-WeightedSqDist(Square(f), x, y) * s), f, t)", None),
    ("LogSumExp", None, "Sum(Exp(x) * (x - y) * Exp(y * s)) * s", None),
    ("Min_ArgMin", None, "Max(Abs(x - y) * Abs(f - y * q)) + Sum(Cos(y) * Sin(x * y))", None),
    ("KMin", Some(20), "Sum(Square(f) * Abs(x * t - y) * q) * s", None),
    ("Sum", None, "Sum(f * Abs(x - y) * Cos(f) * Sin(x) * Cos(y)) * (f|y) * s", None),
];

/// Vectors that no thread has registers for, up to more than a card's multiprocessor has memory for: in squares and inner
/// products, and in others that are made component by component, with norms and factors of i, of j and of neither.
pub fn long_vectors(device: Device) {
    std::thread::scope(|scope| {
        for case in OF_LONG_VECTORS {
            for shape in [[300, 1001, 65], [33, 500, 96], [129, 333, 1000], [70, 90, 33_001]] {
                let dtypes = [DType::Float32, DType::Float64, DType::Float16];
                for &dtype in &dtypes[..if shape[2] > 1000 { 1 } else { 3 }] {
                    // Distances are sums of so many roundings, and exponents are near two.
                    let rounding = match dtype {
                        DType::Float64 => f64::EPSILON * shape[2] as f64,
                        DType::Float32 => f64::from(f32::EPSILON) * shape[2] as f64,
                        _ => 2e-3,
                    };
                    scope.spawn(move || check(device, case, dtype, shape, rounding));
                }
            }
        }
    });
}

/// The same of few pairs, which tools that look at every access have time for.
pub fn few_long_vectors(device: Device) {
    for case in OF_LONG_VECTORS {
        for shape in [[33, 70, 65], [140, 300, 100]] {
            let rounding = f64::from(f32::EPSILON) * shape[2] as f64;
            check(device, case, DType::Float32, shape, rounding);
        }
    }
}

/// Sums of a number of the pair times a long vector of j, however these vectors lie and whichever way they
/// are summed: all terms are exact, so that only the sums round.
pub fn right_hand_sides(device: Device) {
    const DIM: usize = 37;
    let (m, n) = (75, 1500);
    let rng = Rng::new(13);
    let power = |rows: usize, of: usize| {
        let exponents: Vec<f64> = (0..rows).map(|k| 2f64.powi((k % of) as i32 - 1)).collect();
        Array::from_slice(&exponents).and_then(|x| x.reshape(&[rows as isize, 1])).expect("powers")
    };
    // float16 holds them all.
    let numbers = |shape: &[usize]| {
        let numbers = rng.uniform(shape, DType::Float16).and_then(|x| x.astype(DType::Float64));
        numbers.expect("numbers")
    };
    let (x, y) = (power(m, 5), power(n, 3));
    type Layout = (&'static str, [usize; 2], fn(Array) -> tilework::Result<Array>);
    let layouts: [Layout; 6] = [
        ("rows", [n, DIM], Ok),
        ("columns", [DIM, n], |b| Ok(b.transpose())),
        ("every other column", [n, 2 * DIM], |b| b.slice(&s![.., ..;2])),
        ("backwards", [n, DIM], |b| b.flip(None)),
        ("one row", [1, DIM], |b| b.broadcast_to(&[1500, DIM])),
        ("far apart", [n, 256], |b| b.slice(&s![.., 3..40])),
    ];
    let call = Genred::new("x * y * b", &["x = Vi(1)", "y = Vj(1)", "b = Vj(37)"], "Sum", 1);
    let call = call.expect("formula");
    for (layout, shape, view) in layouts {
        let base = numbers(&shape);
        let (of_x, of_y) = (floats(&x), floats(&y));
        let of_b = floats(&view(base.clone()).expect(layout));
        let exact = |k: usize| -> f64 {
            let terms = of_y.iter().zip(of_b.iter().skip(k % DIM).step_by(DIM));
            terms.map(|(y, b)| of_x[k / DIM] * y * b).sum()
        };
        let exact: Vec<f64> = (0..m * DIM).map(exact).collect();
        for dtype in [DType::Float16, DType::Float32, DType::Float64] {
            let cast = |array: &Array| array.astype(dtype).and_then(|x| x.to_device(device));
            let arrays = [cast(&x), cast(&y), cast(&base).and_then(view)];
            let arrays = arrays.map(|array| array.expect(layout));
            for (sums, limit) in
                [(SumScheme::Blocks, 300.0), (SumScheme::Kahan, 2.1), (SumScheme::Double, 1.1)]
            {
                let options = Options { sums, ..Options::default() };
                let got = call.call_with(&arrays.each_ref(), &options).expect(layout);
                let got = floats(&got.values.expect("values"));
                // In halves of the last place; sums in float64 round like those that they are held against.
                let unit = match dtype {
                    DType::Float16 => 2.0 * 2f64.powi(-11),
                    DType::Float32 => limit * 2f64.powi(-24),
                    _ => 300.0 * 2f64.powi(-53),
                };
                for (k, (got, exact)) in got.iter().zip(&exact).enumerate() {
                    let near = (got - exact).abs() <= unit * exact;
                    assert!(near, "{layout}, {dtype}, {sums:?}: {k} is {got}, not {exact}");
                }
                let how = call.explain(&arrays.each_ref(), &options).expect("explain");
                let products = !how.contains("assembled") || how.contains("by matrix products");
                assert!(products || device != Device::cpu(), "{layout}, {dtype}, {sums:?}: {how}");
            }
        }
    }
}

/// Results of so many components that devices take some at a time: extremes, ranks, counts and products of vectors, and exponentials
/// with many weights; of few pairs and of many, in batches, with vectors that do not lie side by side.
pub fn wide_results(device: Device) {
    const CASES: [Case; 15] = [
        ("Sum", None, "TensorProd(x, b) * (b|c)", None),
        ("Sum", None, "Concat(TensorProd(b - c, x - y), x)", None),
        ("Max", None, "TensorProd(b - c, x - y)", None),
        ("KMin_ArgKMin", Some(5), "x - y", None),
        ("ArgKMax", Some(30), "Concat(b, x * y)", None),
        ("KMax", Some(2), "x + y", None),
        ("Max", None, "x - y", None),
        ("ArgMin", None, "Abs(x - y)", None),
        ("Min_ArgMin", None, "Concat(x * y, Concat(x + y, b))", None),
        ("Count", None, "x - y > 0", None),
        ("Any", None, "x - y > 3", None),
        ("Mean", None, "Concat(b, x * y)", None),
        ("SumSoftMaxWeight", None, "-SqDist(b, c) * s", Some("y")),
        ("LogSumExp", None, "(b|c) * s", Some("Square(y) + Abs(x) + 1")),
        ("Max_SumShiftExpWeight", None, "-SqDist(b, c) * s", Some("y")),
    ];
    // Rows of an outer product that are cut, components that cannot be, and ranks of these.
    const MANY: [Case; 3] = [
        ("Sum", None, "(b|c) * TensorProd(x - y, x + y)", None),
        ("Min_ArgMin", None, "TensorProd(x, x - y)", None),
        ("Sum", None, "MatVecMult(TensorProd(x, b), c)", None),
    ];
    const RANKS: [Case; 1] = [("KMin", Some(20), "MatVecMult(TensorProd(x, b), c)", None)];
    let rng = Rng::new(19);
    for (dim, dtype, near) in [
        (17, DType::Float32, 1e-5),
        (33, DType::Float64, 1e-13),
        (70, DType::Float32, 1e-5),
        (131, DType::Float16, 1e-2),
        (200, DType::Float32, 1e-5),
    ] {
        // Others have one way, and take their time.
        let many: &[_] =
            if is_card(device) { &[(2, 9, 1040), (1, 140, 300)] } else { &[(2, 4, 40)] };
        for &(batches, m, n) in [(1, 3, 5)].iter().chain(many) {
            // Whole, so that extremes have ties, and every second one of what lies in memory.
            let draw = |rows: usize, dim: usize, batches: usize| {
                let numbers = rng.normal(&[batches, rows, 2 * dim], DType::Float64);
                let numbers = numbers.and_then(|x| x.multiply(3.0)?.round_to(0)?.astype(dtype));
                let numbers = numbers.and_then(|x| x.slice(&s![.., .., ..;2])).expect("numbers");
                let there = numbers.to_device(device).expect("to_device");
                [there, numbers]
            };
            let s = Array::full_on(Device::cpu(), &[1], 0.02, dtype).expect("full");
            let s = [s.to_device(device).expect("to_device"), s];
            let arrays =
                [draw(m, dim, batches), draw(n, dim, 1), s, draw(n, 2, batches), draw(m, 2, 1)];
            let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
            let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(2)", "c = Vi(2)"];
            let many = MANY.into_iter().filter(|_| dim <= 70);
            let ranks = RANKS.into_iter().filter(|_| dim == 17);
            for (name, k, text, weight) in CASES.into_iter().chain(many).chain(ranks) {
                let call = Genred::with(text, &aliases, name, 1, k, weight).expect(text);
                for scheme in [Scheme::Auto, Scheme::TwoD] {
                    let options = Options { scheme, ..Options::default() };
                    let [got, expected] = [0, 1].map(|place| {
                        let arrays = arrays.each_ref().map(|both| &both[place]);
                        call.call_with(&arrays, &options).expect(text)
                    });
                    let what = format!("{name} of {text}, {dim}, {dtype}, {m} x {n}, {scheme:?}");
                    agree(&what, &got, &expected, near);
                }
            }
        }
    }
}

/// Slices of a formula whose square may be expanded: the data are measured, whatever else its inputs are. Weights of i, too,
/// which no product of matrices has, so that it is one pass.
pub fn measured_slices(device: Device) {
    let draw = |dim: usize| {
        let numbers = Rng::new(23).normal(&[9000, dim], DType::Float32);
        numbers.and_then(|x| x.to_device(device)).expect("numbers")
    };
    let arrays = [draw(3), draw(3), draw(20), draw(1)];
    let aliases = ["x = Vi(3)", "y = Vj(3)", "b = Vj(20)", "t = Vi(1)"];
    let weight = Some("b * t");
    let call = Genred::with("-SqDist(x,y) / 3", &aliases, "SumSoftMaxWeight", 1, None, weight);
    let how = call.and_then(|call| call.explain(&arrays.each_ref(), &Options::default()));
    let how = how.expect("explain");
    assert!(how.contains("2 of 10 weights") && how.contains("expanded square"), "{how}");
}

/// Exponentials with so many weights, of so many pairs, that they take two passes: results and states, some exponents
/// masked, against float64 of the first and the last rows; several blocks of rows, and of batches.
pub fn many_weights(device: Device) {
    // Exponents that no square may be expanded for, of hundreds.
    const FAR: &str = "-SqDist(x,y) * 4";
    // Reduction, formula, components, weights, batches, rows; all of it over the other index where there is one batch.
    const CASES: [(&str, &str, usize, usize, usize, usize); 6] = [
        ("SumSoftMaxWeight", "(x|y) * s", 64, 64, 1, 40_000),
        ("SumSoftMaxWeight", FAR, 20, 70, 1, 1500),
        ("SumSoftMaxWeight", "h - SqDist(x,y) * s", 20, 50, 1, 1500),
        ("LogSumExpWeight", "h - SqDist(x,y) * s", 3, 49, 1, 1500),
        ("Max_SumShiftExpWeight", "h + (x|y) * s", 70, 70, 1, 1500),
        ("SumSoftMaxWeight", "-SqDist(x,y) * s", 12, 50, 3, 6000),
    ];
    let rng = Rng::new(29);
    for (name, text, dim, width, batches, m) in CASES {
        let products = if is_card(device) { 1.6e9 } else { 1.01e8 };
        if batches > 1 && !is_card(device) {
            continue;
        }
        let m = if is_card(device) { m } else { m.min(1500) };
        let n = (products / (m * width) as f64).max(1300.0) as usize;
        let draw = |rows: usize, dim: usize| {
            let shape = if batches == 1 { vec![rows, dim] } else { vec![batches, rows, dim] };
            rng.normal(&shape, DType::Float32).expect("normal")
        };
        let (x, y, b, h) = (draw(m, dim), draw(n, dim), draw(n, width), draw(n, 1));
        let b = b.abs().expect("weights");
        h.set(&s![Ellipsis, ..;3, ..], f64::NEG_INFINITY).expect("masks");
        let s = Array::full(&[1], 1.0 / (dim as f64).sqrt(), DType::Float32).expect("full");
        let there = [&x, &y, &s, &b, &h].map(|it| it.to_device(device).expect("to_device"));
        let [first, last] = [s![Ellipsis, ..20, ..], s![Ellipsis, -20.., ..]];
        let ends = |of: &Array| {
            let parts = [of.slice(&first).expect("first"), of.slice(&last).expect("last")];
            let ends = tilework::concat(&[&parts[0], &parts[1]], -2).expect("ends");
            ends.astype(DType::Float64).expect("float64")
        };
        let exact = [&y, &s, &b, &h].map(|it| it.astype(DType::Float64).expect("float64"));
        let exact = [&ends(&x), &exact[0], &exact[1], &exact[2], &exact[3]];
        let arrays = there.each_ref();
        let options = Options::default();
        for axis in [1, 0] {
            let [i, j] = if axis == 1 { ["Vi", "Vj"] } else { ["Vj", "Vi"] };
            let aliases =
                [("x", i, dim), ("y", j, dim), ("s", "Pm", 1), ("b", j, width), ("h", j, 1)];
            let aliases = aliases.map(|(name, of, dim)| format!("{name} = {of}({dim})"));
            let aliases = aliases.each_ref().map(|alias| &alias[..]);
            let call = Genred::with(text, &aliases, name, axis, None, Some("b")).expect(text);
            let what = format!("{name} of {text}, {m} x {n}, axis {axis}");
            let how = call.explain(&arrays, &options).expect("explain");
            // Without assembled code, and on cards that have no such tensor cores, one pass is as good.
            let one = how.contains("interpreted")
                || (is_card(device) && !how.contains(", 132 multiprocessors,"));
            assert!(how.contains("in two passes") || one, "{what}: {how}");
            let got = call.call_with(&arrays, &options).expect(text);
            let found = Reduced { values: got.values.as_ref().map(ends), indices: None };
            let near = if text == FAR { 5e-4 } else { 2e-5 };
            agree(&what, &found, &call.call_with(exact.as_slice(), &options).expect(text), near);
            agree(&what, &call.call_with(&arrays, &options).expect(text), &got, 0.0);
            let state = call.partial(&arrays, 0, &options).and_then(|state| state.finish());
            agree(&what, &state.expect("state"), &got, 1e-6);
        }
    }
}

/// Means of weights that are all one are one, however large exponents are, and however they are rounded.
pub fn means_of_ones(device: Device) {
    let m = if is_card(device) { 3000 } else { 300 };
    let (n, dim, width) = (8500, 64, 64);
    let draw = |rows: usize, seed: u64| {
        let numbers = Rng::new(seed).normal(&[rows, dim], DType::Float32);
        numbers.and_then(|x| x.to_device(device)).expect("normal")
    };
    let ones = Array::full_on(device, &[n, width], 1.0, DType::Float32).expect("ones");
    let aliases = ["x = Vi(64)", "y = Vj(64)", "b = Vj(64)"];
    let call = Genred::with("(x|y) * 20", &aliases, "SumSoftMaxWeight", 1, None, Some("b"));
    let means = call.expect("call").call(&[&draw(m, 31), &draw(n, 32), &ones]).expect("means");
    assert!(floats(&means).iter().all(|mean| *mean == 1.0), "{means}");
}

/// Gradients of kernels of wide points against float64 of the same numbers, near the origin and far from it,
/// alone and with their value, with factors of i and of j that need not be finite.
pub fn wide_gradients(device: Device) {
    const TEXTS: [&str; 3] = [
        "Concat(Exp(-SqDist(x,y) * s) * c, Grad(Exp(-SqDist(x,y) * s) * c, x, e))",
        "Concat(Grad(Exp(-SqDist(x,y) * s), x, IntCst(1)), c * Exp(-s * SqDist(x,y)))",
        "c * Exp(-SqDist(y,x) * s) * (y - x) * e",
    ];
    let rng = Rng::new(17);
    for (m, n, dim) in [(300, 700, 16), (1030, 257, 37), (260, 600, 131), (40, 9, 40), (25, 7, 64)]
    {
        let draw = |rows: usize, dim: usize, offset: f64| {
            let numbers = rng.normal(&[rows, dim], DType::Float32).and_then(|x| x.add(offset));
            numbers.and_then(|x| x.astype(DType::Float64)).expect("normal")
        };
        let s = Array::full_on(Device::cpu(), &[1], 1.0 / dim as f64, DType::Float64);
        let s = s.expect("full");
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "c = Vj(1)", "e = Vi(1)"];
        for (offset, odd) in [(0.0, 1.0), (30.0, 1.0), (0.0, f64::INFINITY), (0.0, f64::NAN)] {
            let (x, y) = (draw(m, dim, offset), draw(n, dim, offset));
            let (c, e) = (draw(n, 1, 1.0), draw(m, 1, 1.0));
            e.slice(&s![7..8]).and_then(|row| row.fill(odd)).expect("fill");
            let arrays = [x, y, s.clone(), c, e];
            for text in TEXTS {
                let call = Genred::new(text, &aliases, "Sum", 1).expect(text);
                let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
                let exact = call.call_with(&arrays.each_ref(), &strict).expect(text);
                for (dtype, near) in [(DType::Float32, 1e-5), (DType::Float64, 1e-13)] {
                    let there = arrays.each_ref().map(|array| {
                        array.astype(dtype).and_then(|x| x.to_device(device)).expect("to_device")
                    });
                    for sums in [SumScheme::Blocks, SumScheme::Kahan, SumScheme::Double] {
                        let options = Options { sums, ..Options::default() };
                        let what =
                            format!("{text}, {m} x {n}, D = {dim}, {offset}, {odd}, {dtype}");
                        let got = call.call_with(&there.each_ref(), &options).expect(text);
                        agree_finite(&what, &got, &exact, near);
                        // Few pairs are no product of matrices.
                        if device == Device::cpu() && odd == 1.0 && n > 100 {
                            let how = call.explain(&there.each_ref(), &options).expect("explain");
                            assert!(how.contains("differences about the centre"), "{what}: {how}");
                        }
                    }
                }
            }
        }
    }
}

/// Numbers that are finite agree relative to the largest of them, and the same ones are not finite.
fn agree_finite(what: &str, got: &Reduced, expected: &Reduced, tolerance: f64) {
    let [got, expected] = [got, expected].map(|of| floats(of.values.as_ref().expect("values")));
    let finite = expected.iter().filter(|x| x.is_finite());
    let size = finite.fold(0.0f64, |most, x| most.max(x.abs()));
    for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
        let near = a == b || (a - b).abs() <= tolerance * size || a.is_nan() && b.is_nan();
        assert!(near, "{what}: element {k} is {a}, not {b}, of {size}");
    }
}

/// Many problems at once that each are too small for tensor cores: sums, nearest points, right-hand sides and gradients,
/// with a side that all problems share, against the CPU.
pub fn batches_of_wide_points(device: Device) {
    let rng = Rng::new(37);
    for (batches, m, n, dim) in
        [(150, 301, 350, 64), (120, 333, 390, 200), (7, 1_500, 2_003, 24), (60, 700, 650, 3)]
    {
        let gauss = "Exp(-SqDist(x,y) * s) * b";
        let gradient = format!("Grad({gauss}, x, b)");
        for (text, name, k, width) in [
            (gauss, "Sum", None, 1),
            (gauss, "Sum", None, 20),
            (&gradient[..], "Sum", None, 1),
            ("b - SqDist(x,y) * s", "LogSumExp", None, 1),
            ("SqDist(x,y)", "ArgMin", None, 1),
            ("SqDist(x,y)", "KMin_ArgKMin", Some(3), 1),
        ] {
            let aliases =
                [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
            let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", &aliases[2]];
            let call = Genred::with(text, &aliases, name, 1, k, None).expect(text);
            let draw = |shape: &[usize]| rng.normal(shape, DType::Float32).expect("normal");
            // All problems have the same rows, or each its own.
            for shared in [false, true] {
                let x = draw(&[if shared { 1 } else { batches }, m, dim]);
                let (y, b) = (draw(&[batches, n, dim]), draw(&[batches, n, width]));
                let s = Array::full(&[1], 0.9 / dim as f64, DType::Float32).expect("full");
                let here = [x, y, s, b];
                let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
                let of = |arrays: &[Array; 4]| {
                    call.call_with(&arrays.each_ref(), &Options::default()).expect(text)
                };
                let what = format!("{name} of {text}, {batches} x {m} x {n}, D = {dim}, {shared}");
                agree(&what, &of(&there), &of(&here), 3e-5);
                if is_card(device) && dim > 20 && text == gauss && width == 1 {
                    let there: Vec<&Array> = there.iter().collect();
                    let said = call.explain(&there, &Options::default()).expect("explain");
                    let line = said.lines().find(|line| line.starts_with("scheme"));
                    assert!(
                        line.is_some_and(|line| line.contains("batches at once")),
                        "{what}: {line:?}"
                    );
                }
            }
        }
    }
}

/// What belongs to a j has numbers of several sizes: choices beside those that are chosen by.
pub fn choices_of_j(device: Device) {
    let rng = Rng::new(41);
    for (m, n, dim) in [(3_001, 4_003, 64), (2_001, 1_503, 3)] {
        let draw =
            |rows: usize, dim: usize| rng.normal(&[rows, dim], DType::Float32).expect("normal");
        let s = Array::full(&[1], 0.9 / dim as f64, DType::Float32).expect("full");
        let here = [draw(m, dim), draw(n, dim), s, draw(n, 1), draw(n, 1), draw(m, 1)];
        let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases =
            [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)", "c = Vj(1)", "e = Vi(1)"];
        for (name, text) in [
            ("Sum", "Exp(-SqDist(x,y) * s) * IfElse(b, e, Sin(b)) * IfElse(c, e, Sin(c))"),
            ("LogSumExp", "IfElse(b, e, Sin(b)) + IfElse(c, e, Sin(c)) - SqDist(x,y) * s"),
        ] {
            let call = Genred::with(text, &aliases, name, 1, None, None).expect(text);
            let of = |arrays: &[Array; 6]| {
                call.call_with(&arrays.each_ref(), &Options::default()).expect(text)
            };
            agree(&format!("{name} of {text}, D = {dim}"), &of(&there), &of(&here), 3e-5);
        }
    }
}
