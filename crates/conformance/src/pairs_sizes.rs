//! Reductions over pairs at sizes that are cut: tiles, rows and ranges with their edges, every
//! scheme and way to sum, against the CPU. Formulas are those whose kernels have golden files.

use tilework::pairs::{Accuracy, Genred, LazyTensor, Options, Reduced, Scheme, SumScheme};
use tilework::{Array, DType, Device, Rng, s};

use crate::pairs::{after_first_calls, floats};

const ALIASES: [&str; 6] =
    ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "b = Vj(2)", "u = Vi(100)", "v = Vj(100)"];

/// Reduction, K, formula, weight.
type Case = (&'static str, Option<usize>, &'static str, Option<&'static str>);

const CASES: [Case; 14] = [
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", None),
    ("Mean", None, "Exp(-SqDist(x,y) * s) * b", None),
    ("Sum", None, "Exp(-Sqrt(SqDist(x,y))) * b", None),
    ("Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, b)", None),
    ("Sum", None, "Exp(-SqDist(u,v) * s)", None),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * v", None),
    ("ArgMin", None, "SqDist(x,y)", None),
    ("ArgKMin", Some(10), "SqDist(x,y)", None),
    ("KMax_ArgKMax", Some(100), "SqDist(x,y)", None),
    ("LogSumExp", None, "-SqDist(x,y) * s", None),
    ("SumSoftMaxWeight", None, "(x|y)", Some("b")),
    ("Prod", None, "1 + Where(x < y, x * s, Max(x + y) + ArgMin(y)) / 10000", None),
    ("Max", None, "TensorDot(Concat(x,y), TensorProd(x,b), [2,3], [3,2], [1], [0])", None),
    ("Count", None, "Extract(Concat(x * y, b), 1, 3)", None),
];

/// M and N around the sizes of tiles, groups, blocks and ranges.
const SIZES: [(usize, usize); 7] =
    [(1, 4099), (31, 257), (100, 20_001), (193, 64), (1000, 1000), (1537, 640), (5000, 333)];

pub(crate) fn arguments(device: Device, dtype: DType, m: usize, n: usize) -> Vec<Array> {
    let rng = Rng::new(7);
    let draw = |rows: usize, dim: usize| {
        let numbers = rng.normal(&[rows, dim], DType::Float64).expect("normal");
        numbers.astype(dtype).and_then(|x| x.to_device(device)).expect("to_device")
    };
    let s = Array::full_on(device, &[1], 0.25, dtype).expect("full");
    vec![draw(m, 3), draw(n, 3), s, draw(n, 2), draw(m, 100), draw(n, 100)]
}

/// Fails unless numbers agree relative to the largest, and indices exactly.
pub(crate) fn agree(what: &str, got: &Reduced, expected: &Reduced, tolerance: f64) {
    if let (Some(got), Some(expected)) = (&got.values, &expected.values) {
        let (got, expected) = (floats(got), floats(expected));
        let size = expected.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
            let near = a == b || (a - b).abs() <= tolerance * size || a.is_nan() && b.is_nan();
            assert!(near, "{what}: element {k} is {a}, not {b}");
        }
    }
    if let (Some(got), Some(expected)) = (&got.indices, &expected.indices) {
        let indices = |at: &Array| at.to_vec::<i64>().expect("indices");
        assert!(indices(got) == indices(expected), "{what}: indices");
    }
}

fn check(device: Device, case: Case, dtype: DType) {
    let (name, k, text, weight) = case;
    let call = Genred::with(text, &ALIASES, name, 1, k, weight).expect(text);
    for (m, n) in SIZES {
        let there = arguments(device, dtype, m, n);
        let here = arguments(Device::cpu(), dtype, m, n);
        let run = |arrays: &[Array], options: &Options<'_>| {
            call.call_with(&arrays.iter().collect::<Vec<_>>(), options).expect(text)
        };
        let mut ways = vec![Options::default()];
        for scheme in [Scheme::OneD, Scheme::TwoD] {
            ways.push(Options { scheme, ..Options::default() });
        }
        if m == 1000 {
            ways.push(Options { sums: SumScheme::Kahan, ..Options::default() });
            ways.push(Options { sums: SumScheme::Double, ..Options::default() });
            ways.push(Options { accuracy: Accuracy::Strict, ..Options::default() });
        }
        for options in ways {
            let what = format!("{name} of {text}, {dtype}, {m} x {n}, {options:?}");
            let expected = run(&here, &options);
            let got = run(&there, &options);
            // A product has the roundings of all its factors, in whatever order.
            let (near, rounding) = match dtype {
                DType::Float64 => (1e-12, f64::EPSILON),
                _ => (1e-5, f64::from(f32::EPSILON)),
            };
            let tolerance = if name == "Prod" { n as f64 * rounding } else { near };
            agree(&what, &got, &expected, tolerance);
            // The same bits once more, for other data at the same place.
            after_first_calls(device);
            agree(&what, &run(&there, &options), &got, 0.0);
        }
    }
}

/// All cases, on threads of their own since a device may compile.
pub fn sizes(device: Device) {
    std::thread::scope(|scope| {
        for case in CASES {
            for dtype in [DType::Float32, DType::Float64] {
                scope.spawn(move || check(device, case, dtype));
            }
        }
    });
}

/// M, N and D at which devices choose the form by the data, or cut the work into pieces and panels.
pub(crate) const CHOSEN: [(usize, usize, usize); 5] = [
    (24_001, 21_003, 3),
    (100, 700_001, 3),
    (2_999, 12_007, 70),
    (70_001, 700, 100),
    (200, 140_003, 100),
];

/// Sums and logarithms of exponentials of distances, at sizes where devices choose the form by the
/// data: near the origin, far from it, both, with a scale too small for the expanded square, and with
/// numbers that are not finite. The first and the last rows against float64 on the CPU.
pub fn forms(device: Device) {
    std::thread::scope(|scope| {
        for sizes in CHOSEN {
            scope.spawn(move || forms_at(device, sizes));
        }
    });
}

fn forms_at(device: Device, (m, n, dim): (usize, usize, usize)) {
    let rng = Rng::new(11);
    let normal = |rows: usize| rng.normal(&[rows, dim], DType::Float64).expect("normal");
    let (x, y) = (normal(m), normal(n));
    let b = rng.normal(&[n, 1], DType::Float64).expect("normal");
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)"];
    // Squares alone, beside other terms of an exponent, and inner products, which only tensor cores have another form of.
    for (name, text) in [
        ("Sum", "Exp(-SqDist(x,y) * s) * b"),
        ("LogSumExp", "-SqDist(x,y) * s"),
        ("LogSumExp", "b - SqDist(x,y) * s"),
        ("LogSumExp", "b / 3 + SqDist(x,y) * (-s)"),
        ("Sum", "Exp((b - SqDist(x,y) * s) / 2) * b"),
        ("Sum", "Exp((x|y) * s) * b"),
        ("LogSumExp", "(x|y) * s - b"),
    ] {
        let call = Genred::new(text, &aliases, name, 1).expect(text);
        let plain = text.contains("-SqDist") || text.contains("/ 3");
        let dtypes: &[DType] = &[DType::Float32, DType::Float64][..1 + usize::from(plain)];
        for (what, offset, scale, odd) in [
            ("near", 0.0, 0.9, None),
            ("far", 50.0, 0.9, None),
            ("some far", 0.0, 0.9, None),
            ("sharp", 0.0, 8.0, None),
            ("not a number", 0.0, 0.9, Some(f64::NAN)),
            ("infinite", 0.0, 0.9, Some(f64::INFINITY)),
        ] {
            for &dtype in dtypes {
                let moved = |points: &Array| points.add(offset).and_then(|x| x.astype(dtype));
                let (x, y) = (moved(&x).expect("x"), moved(&y).expect("y"));
                if let Some(odd) = odd {
                    y.slice(&tilework::s![5..6]).and_then(|row| row.fill(odd)).expect("fill");
                }
                if what == "some far" {
                    // At one place, so that they see each other.
                    for (points, from) in [(&x, m - 20), (&y, n / 2)] {
                        let from = from as isize;
                        let few = points.slice(&tilework::s![from..from + 20]);
                        few.and_then(|few| few.fill(50.0)).expect("fill");
                    }
                }
                let scale = scale / dim as f64;
                let s = Array::full_on(Device::cpu(), &[1], scale, dtype).expect("full");
                let here = [x, y, s, b.astype(dtype).expect("b")];
                let there: Vec<Array> =
                    here.iter().map(|x| x.to_device(device).expect("to_device")).collect();
                let there: Vec<&Array> = there.iter().collect();
                let all = call.call(&there).expect(text);
                if what == "near" && dtype == DType::Float32 {
                    let said = call.explain(&there, &Options::default()).expect("explain");
                    let other = if text.contains("SqDist") { "expanded" } else { "inner product" };
                    let there = said.contains(other) || (other == "inner product" && dim < 10);
                    assert!(there, "{name} of {text}, D = {dim}: {said:.2000}");
                }
                let exact: Vec<Array> =
                    here.iter().map(|x| x.astype(DType::Float64).expect("astype")).collect();
                for begin in [0, m as isize - 40] {
                    let some = tilework::s![begin..begin + 40];
                    let rows = exact[0].slice(&some).expect("slice");
                    let sums = |call: &Genred| {
                        let arrays = [&rows, &exact[1], &exact[2], &exact[3]];
                        floats(&call.call(&arrays).expect(text))
                    };
                    let terms = Genred::new(&format!("Abs({text})"), &aliases, name, 1);
                    let (expected, sizes) = (sums(&call), sums(&terms.expect(text)));
                    let got = floats(&all.slice(&some).expect("slice"));
                    // The error of an exponent, relative to the sum of the absolute terms; far from
                    // the origin the direct form has the errors of its differences.
                    let tolerance = if dtype == DType::Float64 { 1e-13 } else { 2e-5 };
                    for (k, ((a, b), size)) in got.iter().zip(&expected).zip(&sizes).enumerate() {
                        let size = if name == "Sum" { *size } else { 1.0 + b.abs() };
                        let near = a == b || a.is_nan() && b.is_nan();
                        let near = near || (a - b).abs() <= tolerance * size;
                        let row = begin + k as isize;
                        assert!(
                            near,
                            "{name} of {text}, {what}, {dtype}, {m} x {n}, D = {dim}: row {row} is {a}, not {b}"
                        );
                    }
                }
                after_first_calls(device);
                let again = floats(&call.call(&there).expect(text));
                let same = floats(&all).iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(
                    same,
                    "{name} of {text}, {what}, {dtype}, {m} x {n}, D = {dim}: other bits"
                );
            }
        }
    }
}

/// M, N, D and the components of b at which devices multiply weights by right-hand sides; without b, the
/// sum together with its gradient.
const WEIGHED: [(usize, usize, usize, usize); 13] = [
    (9_001, 12_007, 3, 20),
    (10_007, 12_001, 3, 13),
    (9_003, 11_001, 2, 16),
    (300, 200_003, 3, 100),
    (5_003, 6_007, 5, 300),
    (6_001, 15_003, 70, 24),
    (3_001, 9_003, 33, 130),
    (12_001, 15_007, 10, 0),
    (7_001, 9_003, 40, 0),
    (4_001, 8_003, 71, 0),
    (3_001, 7_003, 128, 0),
    (2_001, 6_007, 300, 0),
    (4_003, 8_001, 90, 64),
];

/// Sums of many components, and gradients: near the origin and far from it, with a scale too small for
/// the expanded square, and with right-hand sides that are not finite, huge or tiny. The first and the
/// last rows against float64 on the CPU, relative to the sums of absolute terms.
pub fn weighed(device: Device) {
    std::thread::scope(|scope| {
        for sizes in WEIGHED {
            scope.spawn(move || weighed_at(device, sizes));
        }
    });
}

fn weighed_at(device: Device, (m, n, dim, width): (usize, usize, usize, usize)) {
    let rng = Rng::new(13);
    let normal = |rows: usize, dim| rng.normal(&[rows, dim], DType::Float64).expect("normal");
    let (x, y, b) = (normal(m, dim), normal(n, dim), normal(n, width.max(1)));
    let aliases =
        [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({})", width.max(1))];
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", &aliases[2]];
    let (text, size) = match width {
        // Points are taken about a centre, so a difference counts as much as they do.
        0 => (
            "Concat(Exp(-SqDist(x,y) * s) * b, Grad(Exp(-SqDist(x,y) * s) * b, x, b))",
            "Exp(-SqDist(x,y) * s) * Concat(Abs(b), 8 * s * Square(b) * (1 + 0 * y))",
        ),
        _ => ("Exp(-SqDist(x,y) * s) * b", "Exp(-SqDist(x,y) * s) * Abs(b)"),
    };
    let call = Genred::new(text, &aliases, "Sum", 1).expect(text);
    let size = Genred::new(size, &aliases, "Sum", 1).expect(size);
    let mut kinds = [
        ("near", 0.0, 0.9, 1.0, None),
        ("far", 50.0, 0.9, 1.0, None),
        ("sharp", 0.0, 8.0, 1.0, None),
        ("huge", 0.0, 0.9, 1e17, None),
        ("tiny", 0.0, 0.9, 1e-17, None),
        ("not a number", 0.0, 0.9, 1.0, Some(f64::NAN)),
        ("infinite", 0.0, 0.9, 1.0, Some(f64::INFINITY)),
    ];
    // First calls choose in another way than later ones: of either kind of data.
    if m % 4 == 1 {
        kinds.reverse();
    }
    for (what, offset, scale, factor, odd) in kinds {
        let single = |x: Array| x.astype(DType::Float32).expect("float32");
        let (x, y) = (single(x.add(offset).expect("x")), single(y.add(offset).expect("y")));
        let b = single(b.multiply(factor).expect("b"));
        if let Some(odd) = odd {
            b.slice(&tilework::s![5..6]).and_then(|row| row.fill(odd)).expect("fill");
        }
        let s = Array::full_on(Device::cpu(), &[1], scale / dim as f64, DType::Float32);
        let here = [x, y, s.expect("full"), b];
        let there: Vec<Array> =
            here.iter().map(|x| x.to_device(device).expect("to_device")).collect();
        let there: Vec<&Array> = there.iter().collect();
        let all = call.call(&there).expect(text);
        if what == "near" {
            let said = call.explain(&there, &Options::default()).expect("explain");
            assert!(said.contains("expanded"), "{text}, D = {dim}: {said:.2000}");
        }
        let exact: Vec<Array> =
            here.iter().map(|x| x.astype(DType::Float64).expect("astype")).collect();
        for begin in [0, m as isize - 20] {
            let some = tilework::s![begin..begin + 20];
            let rows = exact[0].slice(&some).expect("slice");
            let sums = |call: &Genred| {
                floats(&call.call(&[&rows, &exact[1], &exact[2], &exact[3]]).expect(text))
            };
            let got = floats(&all.slice(&some).expect("slice"));
            let expected = sums(&call);
            for (k, ((a, b), size)) in got.iter().zip(&expected).zip(&sums(&size)).enumerate() {
                let near = a == b || a.is_nan() && b.is_nan();
                assert!(
                    near || (a - b).abs() <= 2e-5 * size,
                    "{what}, {m} x {n}, D = {dim}, width {width}: from row {begin} on, number {k} is {a}, not {b} ({size})"
                );
            }
        }
        after_first_calls(device);
        let again = floats(&call.call(&there).expect(text));
        let same = floats(&all).iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{what}, {m} x {n}, D = {dim}, width {width}: other bits");
    }
}

/// Gradients of more components than a thread has registers for, and with their values, as they are written: strict, and in
/// float64, in two batches, against float64 on the CPU.
pub fn long_gradients(device: Device) {
    let rng = Rng::new(21);
    let (m, n) = (301, 2003);
    for (dim, dtype) in
        [(40, DType::Float64), (64, DType::Float32), (70, DType::Float32), (130, DType::Float64)]
    {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases = [&aliases[0][..], &aliases[1], "b = Vj(1)"];
        let normal = |rows: usize, dim| rng.normal(&[2, rows, dim], dtype).expect("normal");
        let scaled = |x: Array| x.multiply(0.6 / (dim as f64).sqrt()).expect("multiply");
        let here = [scaled(normal(m, dim)), scaled(normal(n, dim)), normal(n, 1)];
        let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
        let exact = here.each_ref().map(|x| x.astype(DType::Float64).expect("astype"));
        for text in [
            "Grad(Exp(-SqDist(x,y)) * b, x, b)",
            "Concat(Exp(-SqDist(x,y)) * b, Grad(Exp(-SqDist(x,y)) * b, x, b))",
        ] {
            let call = Genred::new(text, &aliases, "Sum", 1).expect(text);
            let run = |of: &[Array; 3], scheme| {
                let accuracy = Accuracy::Strict;
                let options = Options { scheme, accuracy, ..Options::default() };
                let reduced = call.call_with(&[&of[0], &of[1], &of[2]], &options).expect(text);
                floats(&reduced.values.expect(text))
            };
            let expected = run(&exact, Scheme::Auto);
            let near = if dtype == DType::Float64 { 1e-11 } else { 2e-4 };
            for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                let got = run(&there, scheme);
                let apart = got.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                let worst = apart.fold(0.0, f64::max);
                assert!(
                    got.len() == expected.len() && worst <= near,
                    "{text}, D = {dim}, {scheme:?}: {worst} apart"
                );
            }
        }
    }
}

/// Arrays of the host reduced on a device, which gets them in three blocks of j.
pub fn streamed(device: Device) {
    let n = (2usize << 24) + 5;
    let column = |end: f64, n: usize| {
        Array::linspace(-end..=end, n, DType::Float32).and_then(|x| x.reshape(&[-1, 1]))
    };
    let (x, y) = (column(1.0, 3).expect("x"), column(8.0, n).expect("y"));
    for (name, k) in [("Sum", None), ("ArgKMin", Some(3)), ("LogSumExp", None)] {
        let formula = if name == "Sum" { "Exp(-SqDist(x,y))" } else { "SqDist(x,y)" };
        let call = Genred::with(formula, &["x = Vi(1)", "y = Vj(1)"], name, 1, k, None);
        let (call, arrays) = (call.expect(name), [&x, &y]);
        let here = call.call_with(&arrays, &Options::default()).expect(name);
        let options = Options { device: Some(device), ..Options::default() };
        let there = call.call_with(&arrays, &options).expect(name);
        agree(name, &there, &here, 1e-5);
        let how = call.explain(&arrays, &options).expect(name);
        assert!(how.contains("3 of 16777216 like this one"), "{how}");
    }
    // Rows in several blocks, each copied while the device works on the one before.
    let (x, y) = (column(3.0, 1_000_001).expect("x"), column(2.0, 100_000).expect("y"));
    let call = Genred::with("Exp(-SqDist(x,y))", &["x = Vi(1)", "y = Vj(1)"], "Sum", 1, None, None);
    let call = call.expect("call");
    let options = Options { device: Some(device), ..Options::default() };
    let there = call.call_with(&[&x, &y], &options).expect("streamed").only().expect("sums");
    let how = call.explain(&[&x, &y], &options).expect("explain");
    assert!(how.contains("2 times 1 of 100000 like this one"), "{how}");
    // Around the edge of the blocks, too.
    for rows in [0..40, 833_300..833_370, 999_961..1_000_001] {
        let some = |of: &Array| of.slice(&s![rows.clone()]).expect("rows");
        let here = call.call(&[&some(&x), &y]).expect("here");
        let both = [some(&there), here].map(|it| Reduced { values: Some(it), indices: None });
        agree("rows in blocks", &both[0], &both[1], 1e-5);
    }
    // The same of two problems at once, whose results have their places apart.
    let x = tilework::stack(&[&x, &x.negative().expect("x")], 0).expect("two problems");
    let both = call.call_with(&[&x, &y], &options).expect("streamed").only().expect("sums");
    let how = call.explain(&[&x, &y], &options).expect("explain");
    assert!(how.contains("3 times 1 of 100000 like this one"), "{how}");
    let turned = both.slice(&s![1, ..]).and_then(|of| of.slice(&s![..;-1])).expect("turned");
    for (k, of) in [both.slice(&s![0, ..]).expect("first"), turned].into_iter().enumerate() {
        let both = [&of, &there].map(|it| Reduced { values: Some(it.clone()), indices: None });
        agree(&format!("problem {k} in blocks"), &both[0], &both[1], 1e-5);
    }
}

/// Ways to sum do not get in each other's way: the same formula in one process, one after the other.
pub fn ways_to_sum(device: Device) {
    let arrays = arguments(device, DType::Float64, 1000, 1000);
    let arrays: Vec<&Array> = arrays.iter().collect();
    for formula in ["Exp(-SqDist(x,y) * s) * v", "Exp(-SqDist(x,y)) * b", "Exp(-SqDist(u,v)) * v"] {
        let call = Genred::with(formula, &ALIASES, "Sum", 1, None, None).expect(formula);
        let sum = |sums: SumScheme| {
            call.call_with(&arrays, &Options { sums, ..Options::default() }).expect(formula)
        };
        let first = sum(SumScheme::Kahan);
        for sums in [SumScheme::Blocks, SumScheme::Double, SumScheme::Blocks, SumScheme::Kahan] {
            agree(&format!("{formula} by {sums:?}"), &sum(sums), &first, 1e-12);
        }
    }
}

/// Gradients in narrow dtypes and over many j are those of the same numbers in float64, to the
/// rounding of the result: indices and counts do not fit into the narrow ones.
pub fn gradients(device: Device) {
    let rng = Rng::new(21);
    for n in [5, 300, 3000, 70_000] {
        // Whole numbers, so that ties are ties in every dtype.
        let whole = |rows: usize| {
            let numbers = rng.normal(&[rows, 2], DType::Float64).and_then(|x| x.multiply(3.0));
            numbers.and_then(|x| x.round_to(0)).and_then(|x| x.to_device(device)).expect("whole")
        };
        let points = [whole(4), whole(n)];
        let gradient = |dtype: DType, name: &str, k: Option<usize>, of: usize| -> Vec<f64> {
            let made = || -> tilework::Result<Array> {
                let x = LazyTensor::vi(&points[0].astype(dtype)?)?;
                let y = LazyTensor::vj(&points[1].astype(dtype)?)?;
                // Small enough that sums stay in the range of float16.
                let d = x.sqdist(&y)?.multiply(1.0 / 1024.0)?;
                let options = Options { k, ..Options::default() };
                let e = Array::full_on(device, &[4, k.unwrap_or(1)], 1.0, dtype)?;
                d.reduction_grad(name, 1, None, [&x, &y][of], &e, &options)
            };
            floats(&made().unwrap_or_else(|error| panic!("{name} {dtype} {n}: {error}")))
        };
        for (name, k) in [
            ("Min", None),
            ("Max", None),
            ("KMin", Some(3)),
            ("KMax", Some(2)),
            ("Sum", None),
            ("Mean", None),
            ("LogSumExp", None),
        ] {
            for of in [0, 1] {
                let exact = gradient(DType::Float64, name, k, of);
                let size = exact.iter().fold(0.0f64, |a, b| a.max(b.abs()));
                // Four units in the last place of what the result is stored in, and its smallest
                // number.
                for (dtype, unit, least) in [
                    (DType::Float16, 2f64.powi(-10), 2f64.powi(-24)),
                    (DType::BFloat16, 2f64.powi(-7), 0.0),
                    (DType::Float32, 2f64.powi(-20), 0.0),
                ] {
                    let got = gradient(dtype, name, k, of);
                    for (a, b) in got.iter().zip(&exact) {
                        let near = (a - b).abs() <= 4.0 * unit * size + least;
                        assert!(near, "{name} towards {of} in {dtype}, N = {n}: {a} is not {b}");
                    }
                }
            }
        }
    }
}
