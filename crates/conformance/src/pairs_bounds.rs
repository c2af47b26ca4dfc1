//! What reductions over pairs promise in numbers: the errors of forms and of sums, exact counts,
//! exponents of any size, infinities, weights of what has none.

use tilework::pairs::{Accuracy, Genred, LazyTensor, Options, Scheme, SumScheme};
use tilework::{Array, DType, Device, Rng, s};

use crate::pairs::{after_first_calls, floats, is_card};

const ALIASES: [&str; 4] = ["x = Vi(3)", "y = Vj(3)", "p = Pm(1)", "q = Pm(1)"];

/// A squared distance that reaches an exponent by 2^n ways.
fn ways(n: usize) -> String {
    let lines = (0..n).map(|k| format!("a{} = a{k} * p - a{k} * q; ", k + 1));
    format!("a0 = SqDist(x,y); {}Exp(-a{n})", lines.collect::<String>())
}

/// What `explain` says of the form of a call.
pub(crate) fn form_of(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("form")).expect("a form")
}

/// What a form may add to the error of an exponent, as devices say it; none where no square is expanded.
fn bound_of(form: &str) -> Option<f64> {
    // Blocks that are within the limit make use of all that is promised, whatever the others would err by.
    if form.contains("beyond the limit, else expanded") {
        return Some(1e-5);
    }
    let spellings = ["error of the exponent <= ", "error of the exponent expanded <= "];
    let named = spellings.iter().find_map(|spelling| form.split(spelling).nth(1));
    let named = named.filter(|_| form.contains("expanded square"))?;
    let number = named.split([',', ' ']).next().expect("a bound");
    Some(number.parse().expect("a number"))
}

/// Formula, dimension, M and N of sums whose errors are held against bounds, and whether data that are near enough are
/// always expanded there. Cards do so for many pairs only, and not where the way to the exponent goes through numbers
/// that they do not look at.
fn bounded(device: Device) -> Vec<(String, usize, (usize, usize), bool)> {
    let powers = "Square(Square(Exp(-SqDist(x,y) * p)))".to_owned();
    let square = (1050, 1050);
    let mut all: Vec<_> = [1, 6, 40].map(|n| (ways(n), 3, square, false)).into();
    // Fewer rows, whose points do not reach as far as the others.
    let sizes = match is_card(device) {
        false => vec![(3, square), (3, (300, 4_000))],
        true => vec![(3, (10_001, 10_003)), (3, (3_001, 40_009)), (64, (5_003, 6_007))],
    };
    for (dim, sizes) in sizes {
        all.push((ways(0), dim, sizes, true));
    }
    let many = if is_card(device) { (10_001, 10_003) } else { square };
    all.push((powers, 3, many, true));
    all
}

/// The worst relative error of positive sums is within the bound that `explain` names, and in no time
/// however many ways lead from a distance to an exponent.
pub fn errors_are_within_their_bounds(device: Device) {
    let rng = Rng::new(5);
    for (text, dim, (m, n), near) in bounded(device) {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases = [&aliases[0][..], &aliases[1], ALIASES[2], ALIASES[3]];
        let sum = Genred::new(&text, &aliases, "Sum", 1).expect(&text);
        let mut expanded = 0;
        for width in [0.3, 1.0, 2.0, 4.0] {
            let what = format!("{text:.40}, {m} x {n}, D = {dim}, width {width}");
            // Every point is its own neighbour, so that no sum is 0. Points of all dimensions reach about as far.
            let normal = rng.normal(&[m.max(n), dim], DType::Float32).expect("normal");
            let points = normal.multiply(width * (3.0 / dim as f64).sqrt()).expect("width");
            let halves =
                [0.5, -0.5].map(|x| Array::full_on(Device::cpu(), &[1], x, DType::Float32));
            let [p, q] = halves.map(|x| x.expect("full"));
            let [few, many] = [m, n].map(|n| points.slice(&s![..n as isize]).expect("slice"));
            let here = [few, many, p, q];
            let exact: Vec<Array> =
                here.iter().map(|x| x.astype(DType::Float64).expect("astype")).collect();
            let exact = floats(&sum.call(&exact.iter().collect::<Vec<_>>()).expect(&what));
            let there = here.map(|x| x.to_device(device).expect("to_device"));
            let there: Vec<&Array> = there.iter().collect();
            let error = |accuracy: Accuracy| -> f64 {
                let options = Options { accuracy, ..Options::default() };
                let got = sum.call_with(&there, &options).and_then(|sums| sums.only());
                let got = floats(&got.expect(&what));
                got.iter().zip(&exact).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
            };
            let said = sum.explain(&there, &Options::default()).expect("explain");
            let form = form_of(&said);
            expanded += usize::from(form.contains("expanded square"));
            let bound = bound_of(form).unwrap_or(0.0);
            assert!(bound <= 1e-5, "{what}: {bound:e} is allowed");
            // What every form rounds, beside the error of the form.
            let strict = error(Accuracy::Strict);
            let limit = bound + 2.0 * strict + 2e-6;
            // First calls of a card go another way than those that follow.
            for call in ["first", "second"] {
                let declared = error(Accuracy::Declared);
                assert!(
                    declared <= limit,
                    "{what}, {call} call: {declared:e} is more than {limit:e}: {form}"
                );
                after_first_calls(device);
            }
        }
        assert!(expanded > 0 || !near, "{text:.40}, {m} x {n}, D = {dim}: no form was tried");
    }
    // Extremes are those of the direct form.
    let n = if is_card(device) { 10_001 } else { 300 };
    for name in ["Max", "ArgMax", "Prod"] {
        let call = Genred::new("Exp(-SqDist(x,y))", &ALIASES[..2], name, 1).expect(name);
        let points = rng.normal(&[n, 3], DType::Float32).and_then(|x| x.to_device(device));
        let points = points.expect("normal");
        let said = call.explain(&[&points, &points], &Options::default()).expect("explain");
        assert!(!form_of(&said).contains("expanded square"), "{name}: {said:.2000}");
    }
}

/// Counts are exact integers, whatever the dtype of the variables and however many there are.
pub fn counts_are_exact(device: Device) {
    let rows = |n: usize, dtype: DType| {
        let one = Array::full_on(device, &[1, 1], 1.0, dtype).expect("full");
        one.broadcast_to(&[n, 1]).expect("broadcast")
    };
    for (dtype, m, n) in [
        (DType::Float16, 2, 70_001),
        (DType::Float16, 100, 70_001),
        (DType::BFloat16, 3, 1001),
        (DType::Float32, 2, (1 << 24) + 3),
        (DType::Float64, 2, 1001),
    ] {
        let x = LazyTensor::vi(&rows(m, dtype)).expect("vi");
        let part = |n: usize| {
            let y = LazyTensor::vj(&rows(n, dtype)).expect("vj");
            x.multiply(&y).expect("multiply")
        };
        let whole = part(n).count(1).expect("count");
        let partial = |n: usize, offset: i64| {
            part(n).partial("Count", 1, None, offset, &Options::default()).expect("partial")
        };
        let merged = partial(n - 3, 0).merge(&partial(3, n as i64 - 3)).expect("merge");
        let merged = merged.finish().and_then(|counts| counts.only()).expect("finish");
        for counts in [whole, merged] {
            assert_eq!(counts.dtype(), DType::Int64, "{dtype}");
            assert_eq!(counts.to_vec::<i64>().expect("to_vec"), vec![n as i64; m], "{dtype}");
        }
    }
}

/// Exponents of any size: a row of equal ones is a plain mean, and the largest wins where it is far
/// from the rest, as in rows that are masked whole.
pub fn large_exponents(device: Device) {
    let aliases = ["a = Vi(1)", "c = Vj(1)", "b = Vj(1)"];
    let n = 1100;
    let weights: Vec<f64> = (0..n).map(|k| (k % 7) as f64).collect();
    let mean = weights.iter().sum::<f64>() / n as f64;
    for dtype in [DType::Float32, DType::Float64] {
        // Few i have lanes that are j, many do not.
        for m in [3, 64] {
            for size in [1e6, 1e10, 1e20, -1e6, -1e10, -1e30] {
                for raised in [false, true] {
                    let mut exponents = vec![size; n];
                    if raised {
                        exponents[n - 1] += 1e-3 * f64::abs(size);
                    }
                    let here = |x: &[f64], rows: usize| {
                        let x = Array::from_slice(x).and_then(|x| x.astype(dtype));
                        let x = x.and_then(|x| x.reshape(&[rows as isize, 1]));
                        x.and_then(|x| x.to_device(device)).expect("array")
                    };
                    let zeros = here(&vec![0.0; m], m);
                    let (exponents, weights) = (here(&exponents, n), here(&weights, n));
                    let arrays = [&zeros, &exponents, &weights];
                    let of = |name: &str, weight: Option<&str>| {
                        let call = Genred::with("a + c", &aliases, name, 1, None, weight);
                        floats(&call.and_then(|call| call.call(&arrays)).expect(name))
                    };
                    let what = format!("{dtype} {m} {size:e} {raised}");
                    let expected = match raised {
                        false => (size + (n as f64).ln(), mean),
                        true => (size + 1e-3 * size.abs(), ((n - 1) % 7) as f64),
                    };
                    let roundoff = if dtype == DType::Float32 { 1e-6 } else { 1e-14 };
                    for value in of("LogSumExp", None) {
                        let error = (value - expected.0).abs();
                        assert!(error <= roundoff * expected.0.abs(), "{what}: {value:e}");
                    }
                    for value in of("SumSoftMaxWeight", Some("b")) {
                        let error = (value - expected.1).abs();
                        assert!(error <= 10.0 * roundoff * expected.1, "{what}: mean {value}");
                    }
                }
            }
        }
    }
}

/// Exponents whose level changes on the way, up, down and at random, from below to above where float32 has only whole
/// numbers and further: what is left of the ones before counts.
pub fn wandering_exponents(device: Device) {
    // Points of many components and rows are tiles on some cards.
    let sizes = [(2, 1), (130, 1), (20_000, 64)];
    let sizes = &sizes[..if is_card(device) { 3 } else { 2 }];
    let rng = Rng::new(31);
    let walks: [&[f32]; 6] = [
        &[-2e9, -1.1e9, -1e9, -1e7, -2e6, -300.0, -280.0, 0.0, 3.0, 90.0],
        &[0.0, 5.0, 70.0, 130.0, 3e6, 1e8, 5.2e8, 1.07e9, 1.08e9, 3e38],
        &[1e30, 1.1e9, 1.05e9, 1e5, 0.0, -1e9],
        &[-2e9, -1_073_741_824.0, -1_073_741_760.0],
        &[40.0, 1_073_741_760.0, 1_073_741_824.0, f32::INFINITY],
        &[f32::NEG_INFINITY, -3e38, f32::NEG_INFINITY, -20.0, -2e9],
    ];
    for (walk, spread) in
        walks.iter().flat_map(|walk| [0.0, 2.0, 40.0].map(|spread| (walk, spread)))
    {
        // More than kernels for few pairs take.
        let each = 1040usize.div_ceil(walk.len());
        let noise = floats(&rng.normal(&[walk.len() * each], DType::Float64).expect("normal"));
        let along: Vec<f32> =
            noise.iter().zip(0..).map(|(e, k)| walk[k / each] + (e * spread) as f32).collect();
        let shuffled = (0..along.len()).map(|k| along[k * 1009 % along.len()]).collect();
        for exponents in [along, shuffled] {
            let n = exponents.len();
            let weights: Vec<f32> = (0..n).map(|k| (k % 7) as f32 - 1.0).collect();
            let top = exponents.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
            let factor =
                |v: &f32| if *v == top { 1.0 } else { (f64::from(*v) - f64::from(top)).exp() };
            let sum: f64 = exponents.iter().map(factor).sum();
            let both = exponents.iter().zip(&weights);
            let mean = both.map(|(v, w)| factor(v) * f64::from(*w)).sum::<f64>() / sum;
            let here = |x: &[f32]| {
                let x = Array::from_slice(x).and_then(|x| x.reshape(&[x.len() as isize, 1]));
                x.and_then(|x| x.to_device(device)).expect("array")
            };
            let (exponents, weights) = (here(&exponents), here(&weights));
            for &(m, dim) in sizes {
                let aliases = [format!("p = Vi({dim})"), format!("q = Vj({dim})")];
                let aliases = [&aliases[0][..], &aliases[1], "c = Vj(1)", "b = Vj(1)"];
                let zeros = |rows: usize| Array::full_on(device, &[rows, dim], 0.0, DType::Float32);
                let (p, q) = (zeros(m).expect("full"), zeros(n).expect("full"));
                let arrays = [&p, &q, &exponents, &weights];
                for accuracy in [Accuracy::Declared, Accuracy::Strict] {
                    let options = Options { accuracy, ..Options::default() };
                    let of = |name: &str, weight: Option<&str>| {
                        let call = Genred::with("c - SqDist(p,q)", &aliases, name, 1, None, weight);
                        let got = call.and_then(|call| call.call_with(&arrays, &options)?.only());
                        floats(&got.expect(name))
                    };
                    let what = format!("{walk:?} {spread} {m} {accuracy:?}");
                    for value in of("LogSumExp", None) {
                        let expected = f64::from(top) + sum.ln();
                        let close = (value - expected).abs() <= 1e-6 * expected.abs().max(1.0);
                        assert!(value == expected || close, "{what}: {value:e}, not {expected:e}");
                    }
                    for value in of("SumSoftMaxWeight", Some("b")) {
                        assert!((value - mean).abs() <= 2e-5, "{what}: {value}, not {mean}");
                    }
                }
            }
        }
    }
}

/// Infinities stay what they are in every kind of sum.
pub fn infinite_sums(device: Device) {
    let aliases = ["a = Vi(1)", "c = Vj(1)"];
    let sum = Genred::new("a * c", &aliases, "Sum", 1).expect("formula");
    for (odd, expected) in [(f64::INFINITY, f64::INFINITY), (3e38, f64::INFINITY)] {
        for m in [3, 64] {
            let mut numbers = vec![1.0f32; 600];
            (numbers[7], numbers[400]) = (odd as f32, odd as f32);
            let c = Array::from_slice(&numbers).and_then(|c| c.reshape(&[600, 1]));
            let c = c.and_then(|c| c.to_device(device)).expect("array");
            let a = Array::full_on(device, &[m, 1], 1.0, DType::Float32).expect("full");
            for sums in [SumScheme::Blocks, SumScheme::Kahan] {
                let options = Options { sums, ..Options::default() };
                let got = sum.call_with(&[&a, &c], &options).and_then(|sums| sums.only());
                for value in floats(&got.expect("sum")) {
                    assert_eq!(value, expected, "{sums:?} {m} {odd}");
                }
            }
        }
    }
}

/// Points whose squares leave the range, or come near to its ends, under scales that bring exponents back: a form
/// that never makes these squares gives what the formula as it is written gives. M, N and D are such that the device
/// has other forms.
pub fn ranges(device: Device, sizes: [(usize, usize, usize); 2]) {
    let rng = Rng::new(23);
    for (m, n, dim) in sizes {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)"];
        let normal = |rows: usize, dim: usize| rng.normal(&[rows, dim], DType::Float64);
        let (x, y, b) = (normal(m, dim), normal(n, dim), normal(n, 1).and_then(|b| b.abs()));
        let (x, y, b) = (x.expect("x"), y.expect("y"), b.expect("b"));
        for (dtype, size, scale) in [
            (DType::Float32, 1e17, 1e-35),
            (DType::Float32, 1e19, 1e-39),
            (DType::Float32, 1e19, 0.0),
            (DType::Float32, 1e3, 0.0),
            (DType::Float32, 3e37, 1e-44),
            (DType::Float32, 1e-19, 1e37),
            (DType::Float32, 1e-30, 3e38),
            (DType::Float64, 1e152, 1e-305),
            (DType::Float64, 1e154, 1e-308),
            (DType::Float64, 1e154, 0.0),
            (DType::Float64, 1e-155, 1e308),
        ] {
            let put = |x: &Array, size: f64| {
                let x = x.multiply(size).and_then(|x| x.astype(dtype));
                x.and_then(|x| x.to_device(device)).expect("to_device")
            };
            let s = Array::full_on(device, &[1], scale / dim as f64, dtype).expect("full");
            let arrays = [put(&x, size), put(&y, size), s, put(&b, 1.0)];
            for (name, text) in [
                ("Sum", "Exp(-SqDist(x,y) * s) * b"),
                ("LogSumExp", "-SqDist(x,y) * s"),
                ("LogSumExp", "b - SqDist(x,y) * s"),
                ("LogSumExp", "(x|y) * s"),
            ] {
                let call = Genred::new(text, &aliases, name, 1).expect(text);
                let of = |accuracy: Accuracy| {
                    let options = Options { accuracy, ..Options::default() };
                    let got = call.call_with(&arrays.each_ref(), &options);
                    floats(&got.and_then(|sums| sums.only()).expect(text))
                };
                let pairs = of(Accuracy::Declared).into_iter().zip(of(Accuracy::Strict));
                for (row, (a, b)) in pairs.enumerate() {
                    let near =
                        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 2e-5 * b.abs();
                    assert!(
                        near,
                        "{name}, {dtype}, {size:e}, {scale:e}, D = {dim}: {row} is {a}, not {b}"
                    );
                }
            }
        }
    }
}

/// Numbers that are near the end of the range or beyond it on the way to a sum: weights and right-hand sides. Forms that
/// scale sums at their end, or split what they multiply, give what the formula as it is written gives; in first calls, too.
pub fn near_overflow(device: Device) {
    let rng = Rng::new(29);
    for (m, n, dim, width) in [
        (12_001, 21_003, 3, 1),
        (3_001, 9_003, 70, 1),
        (6_001, 7_003, 3, 20),
        (3_001, 5_003, 70, 64),
    ] {
        let aliases =
            [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
        let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", &aliases[2]];
        let normal = |rows: usize, dim: usize| rng.normal(&[rows, dim], DType::Float32);
        let (x, y) = (normal(m, dim).expect("x"), normal(n, dim).expect("y"));
        // Neighbours at no distance, beside one of the largest numbers that there are.
        let few = s![..7];
        let same = x.slice(&few).and_then(|to| to.assign(&y.slice(&few)?));
        same.expect("assign");
        let alone = |number: f64| {
            let b = Array::zeros(&[n, width], DType::Float32)?;
            b.slice(&s![..2])?.fill(number)?;
            Ok::<Array, tilework::Error>(b)
        };
        let ones = Array::full(&[n, width], 1.0, DType::Float32).expect("full");
        for (text, scale, b) in [
            // More than there is before |x|^2 is taken out of it.
            ("Exp(-SqDist(x,y) * s) * b", 3.0, alone(1.5e38)),
            ("Exp(-SqDist(x,y) * s) * b", 0.9, alone(1.5e38)),
            ("Exp(-SqDist(x,y) * s) * b", 0.9, alone(f64::INFINITY)),
            // Weights that are infinite.
            ("Exp((x|y) * s) * b", 40.0 * dim as f64, Ok(ones.clone())),
            ("Exp(200 * s - SqDist(x,y) * s) * b", dim as f64, Ok(ones.clone())),
            ("Exp(-SqDist(x,y) * s) * b", 0.9, Ok(ones.clone())),
        ] {
            let s = Array::full(&[1], scale / dim as f64, DType::Float32).expect("full");
            let arrays = [x.clone(), y.clone(), s, b.expect("b")];
            let arrays = arrays.map(|x| x.to_device(device).expect("to_device"));
            let call = Genred::new(text, &aliases, "Sum", 1).expect(text);
            let of = |accuracy: Accuracy| {
                let options = Options { accuracy, ..Options::default() };
                let got = call.call_with(&arrays.each_ref(), &options);
                floats(&got.and_then(|sums| sums.only()).expect(text))
            };
            let pairs = of(Accuracy::Declared).into_iter().zip(of(Accuracy::Strict));
            for (k, (a, b)) in pairs.enumerate() {
                let near = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 3e-5 * b.abs();
                assert!(
                    near,
                    "{text}, {scale}, {m} x {n}, D = {dim}, {width}: {k} is {a}, not {b}"
                );
            }
        }
    }
}

/// Weights that would be infinite beyond the last j, where a tile has no point: with points there whose right-hand sides
/// are zero, a card gives the same bits, so neither call was left to the formula as it is written.
pub fn edges_of_tiles(device: Device) {
    let rng = Rng::new(31);
    for (dim, width) in [(64, 64), (3, 40)] {
        let (m, n, whole) = (8_001, 8_001, 8_064);
        let normal = |rows: usize, dim: usize| {
            rng.normal(&[rows, dim], DType::Float32).and_then(|x| x.multiply(0.1)).expect("normal")
        };
        let number = |rows: usize, number: f64| {
            Array::full(&[rows, 1], number, DType::Float32).expect("full")
        };
        let b = normal(whole, width);
        b.slice(&s![n as isize..]).and_then(|rest| rest.fill(0.0)).expect("fill");
        let arrays =
            [normal(m, dim), normal(whole, dim), number(m, 100.0), number(whole, -100.0), b]
                .map(|x| x.to_device(device).expect("to_device"));
        let aliases =
            [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
        let aliases = [&aliases[0][..], &aliases[1], "f = Vi(1)", "g = Vj(1)", &aliases[2]];
        let call = Genred::new("Exp(f + g - SqDist(x,y)) * b", &aliases, "Sum", 1).expect("call");
        let [x, y, f, g, b] = &arrays;
        let few = |all: &Array| all.slice(&s![..n as isize]).expect("slice");
        let (cut, all) = ([x, &few(y), f, &few(g), &few(b)], [x, y, f, g, b]);
        let of = |arrays: &[&Array; 5]| floats(&call.call(arrays).expect("sums"));
        let worst = |a: &[f64], b: &[f64], of: fn(f64) -> f64| {
            a.iter().zip(b).map(|(a, b)| of((a - b).abs())).fold(0.0, f64::max)
        };
        let (got, expected) = (of(&cut), of(&all));
        assert!(worst(&got, &expected, |error| error) < 1e-3, "{dim} x {width}");
        let options = Options::default();
        let by_tiles = [&cut, &all].iter().all(|arrays| {
            call.explain(&arrays[..], &options).expect("explain").contains("tensor cores, left")
        });
        let differ = worst(&got, &expected, |error| f64::from(u8::from(error != 0.0)));
        assert!(!by_tiles || differ == 0.0, "{dim} x {width}: other bits");
    }
}

/// Squares that are not alone in their exponent, of either sign and with whatever is added before and behind, and inner
/// products: float32 and float64 against float64 as it is written, and some of all biases infinite, which mask their pairs.
pub fn exponents(device: Device) {
    // So many that devices have other forms, and so few that an emulated one is done soon.
    let (m, n, dim) = (2501, 2702, 20);
    let rng = Rng::new(29);
    let normal = |rows: usize, dim: usize, size: f64| {
        rng.normal(&[rows, dim], DType::Float64).and_then(|x| x.multiply(size)).expect("normal")
    };
    let biases = normal(n, 1, 1.0);
    biases.slice(&s![7..90]).and_then(|some| some.fill(f64::NEG_INFINITY)).expect("fill");
    let s = Array::full_on(Device::cpu(), &[1], 0.7, DType::Float64).expect("full");
    let numbers =
        [normal(m, dim, 0.1), normal(n, dim, 0.1), biases, normal(m, 1, 1.0), s, normal(n, 1, 1.0)];
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases =
        [&aliases[0][..], &aliases[1], "h = Vj(1)", "f = Vi(1)", "s = Pm(1)", "b = Vj(1)"];
    for (name, text) in [
        ("LogSumExp", "-SqDist(x,y)"),
        ("LogSumExp", "SqDist(x,y)"),
        ("LogSumExp", "h - SqDist(x,y) / 8"),
        ("LogSumExp", "h + SqDist(x,y) * (-s)"),
        ("LogSumExp", "(f + h - SqDist(x,y)) / 4"),
        ("LogSumExp", "f - (b - SqDist(x,y) * s)"),
        ("LogSumExp", "-(b - SqDist(x,y) * s)"),
        ("LogSumExp", "h + (x|y) * s"),
        ("Sum", "Exp(h - SqDist(x,y) / 3)"),
        ("Sum", "Exp(f * b - SqDist(x,y) * s) * b"),
        ("Sum", "Square(Exp(-SqDist(x,y))) * b"),
        ("Sum", "Exp(-SqDist(x,y)) * Exp(h - SqDist(x,y) * 2)"),
        ("Sum", "Exp(-SqDist(x,y) * s) * y"),
        ("Sum", "Exp(h + (x|y)) * x"),
    ] {
        let call = Genred::new(text, &aliases, name, 1).expect(text);
        let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
        for (dtype, tolerance) in [(DType::Float32, 3e-6), (DType::Float64, 1e-13)] {
            let narrow = numbers.each_ref().map(|x| x.astype(dtype).expect("astype"));
            let there = narrow.each_ref().map(|x| x.to_device(device).expect("to_device"));
            let got = floats(&call.call(&there.each_ref()).expect(text));
            let exact = narrow.each_ref().map(|x| x.astype(DType::Float64).expect("astype"));
            let expected = call.call_with(&exact.each_ref(), &strict);
            let expected = floats(&expected.and_then(|sums| sums.only()).expect(text));
            let size = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
                let near = (a - b).abs() <= tolerance * size;
                assert!(near, "{name} of {text}, {dtype}: element {k} is {a}, not {b}");
            }
        }
    }
}

/// A pair whose exponent is minus infinity has the factor 0, as in a dense evaluation: finite weights
/// of it do not count, others make the sum NaN.
pub fn masked_weights(device: Device) {
    let n = 600usize;
    let aliases = ["a = Vi(1)", "c = Vj(1)", "w = Vj(1)"];
    let column = |numbers: &[f32]| {
        let column = Array::from_slice(numbers).and_then(|c| c.reshape(&[n as isize, 1]));
        column.and_then(|c| c.to_device(device)).expect("array")
    };
    for name in ["LogSumExp", "LogSumExpWeight", "SumSoftMaxWeight", "Max_SumShiftExpWeight"] {
        let call = Genred::with("a + c", &aliases, name, 1, None, Some("w")).expect(name);
        for (masked, m) in [(1, 3), (1, 64), (n, 3), (n, 64)] {
            let mut exponents = vec![0.0f32; n];
            exponents[n - masked..].fill(f32::NEG_INFINITY);
            let a = Array::full_on(device, &[m, 1], 0.0, DType::Float32).expect("full");
            for odd in [-3.0f32, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                let mut weights = vec![1.0f32; n];
                weights[n - 1] = odd;
                let arrays = [&a, &column(&exponents), &column(&weights)];
                for scheme in [Scheme::OneD, Scheme::TwoD] {
                    let options = Options { scheme, ..Options::default() };
                    let got = call.call_with(&arrays, &options).and_then(|got| got.only());
                    let count = (n - masked) as f64;
                    let expected = match name {
                        _ if odd.is_infinite() || odd.is_nan() => f64::NAN,
                        "SumSoftMaxWeight" if masked == n => f64::NAN,
                        "SumSoftMaxWeight" => 1.0,
                        "Max_SumShiftExpWeight" => count,
                        _ => count.ln(),
                    };
                    for row in floats(&got.expect(name)).chunks_exact(if name.starts_with("Max") {
                        2
                    } else {
                        1
                    }) {
                        let value = row[row.len() - 1];
                        let same = value == expected
                            || (value - expected).abs() <= 1e-6 * expected.abs()
                            || value.is_nan() && expected.is_nan();
                        assert!(
                            same,
                            "{name} {masked} of {m} {odd} {scheme:?}: {value} {expected}"
                        );
                    }
                }
            }
        }
    }
}

/// Exponents after any number of masked ones are found, however small they are.
pub fn masked_first(device: Device) {
    let n = 600usize;
    let aliases = ["a = Vi(1)", "c = Vj(1)", "w = Vj(1)"];
    for dtype in [DType::Float32, DType::Float64] {
        let column = |numbers: &[f64]| {
            let column = Array::from_slice(numbers).and_then(|c| c.astype(dtype));
            let column = column.and_then(|c| c.reshape(&[n as isize, 1]));
            column.and_then(|c| c.to_device(device)).expect("array")
        };
        let weights = column(&vec![2.0; n]);
        for masked in [1, 16, 31, 255, 256, 257, n - 1] {
            for size in [3.0, -90.0, -1e30] {
                let mut exponents = vec![size; n];
                exponents[..masked].fill(f64::NEG_INFINITY);
                let exponents = column(&exponents);
                let log = size + ((n - masked) as f64).ln();
                // Few i have lanes that are j, many do not.
                for m in [1, 64] {
                    let a = Array::full_on(device, &[m, 1], 0.0, dtype).expect("full");
                    for (scheme, accuracy) in
                        [(Scheme::OneD, Accuracy::Declared), (Scheme::TwoD, Accuracy::Strict)]
                    {
                        let options = Options { scheme, accuracy, ..Options::default() };
                        for (name, weight, expected) in
                            [("LogSumExp", None, log), ("SumSoftMaxWeight", Some("w"), 2.0)]
                        {
                            let call = Genred::with("a + c", &aliases, name, 1, None, weight);
                            let arrays = [&a, &exponents, &weights];
                            let got = call.and_then(|call| call.call_with(&arrays, &options));
                            for value in floats(&got.and_then(|got| got.only()).expect(name)) {
                                assert!(
                                    (value - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                                    "{dtype} {name} {masked} of {n} {size} {m} {scheme:?}: {value}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Rows of which nothing can be known, or nothing but infinities, beside others: values and indices are
/// those of the reference.
pub fn rows_without_numbers(device: Device) {
    let (m, n) = (300usize, 600usize);
    let rng = Rng::new(8);
    let y = rng.normal(&[n, 3], DType::Float32).expect("normal");
    let points = rng.normal(&[m, 3], DType::Float32).and_then(|x| x.to_vec::<f32>());
    let points = points.expect("to_vec");
    let some: &[&[usize]] = &[&[0], &[299], &[5, 6, 130, 255, 256], &[]];
    for rows in some {
        for odd in [f32::NAN, f32::INFINITY] {
            let mut x = points.clone();
            for row in 0..m {
                if rows.is_empty() && row % 3 > 0 || rows.contains(&row) {
                    x[3 * row + row % 3] = odd;
                }
            }
            let x = Array::from_slice(&x).and_then(|x| x.reshape(&[m as isize, 3])).expect("x");
            for name in ["ArgMin", "Max"] {
                let call = Genred::new("SqDist(x,y)", &ALIASES[..2], name, 1).expect(name);
                let on = |device: Device| {
                    let there = |x: &Array| x.to_device(device).expect("to_device");
                    floats(&call.call(&[&there(&x), &there(&y)]).expect(name))
                };
                let (got, expected) = (on(device), on(Device::reference()));
                for (row, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let same = got == expected
                        || got.is_nan() && expected.is_nan()
                        || (got - expected).abs() <= 1e-6 * expected.abs();
                    assert!(same, "{name} {rows:?} {odd} row {row}: {got} is not {expected}");
                }
            }
        }
    }
}

/// Sums of equal terms, whose roundings go the same way, are as exact as `SumScheme::Blocks` says.
pub fn equal_terms(device: Device) {
    let aliases = ["a = Vi(1)", "c = Vj(1)"];
    let sum = Genred::new("a * c", &aliases, "Sum", 1).expect("formula");
    // The second is among the worst there are for 256 terms one after the other.
    for value in [0.1f32, 1.984_756_5, 1.3] {
        for (m, n) in [(2, 64), (2, 256), (64, 256), (64, 511), (64, 40_000), (20, 40_000)] {
            let full = |rows: usize, value: f64| {
                Array::full_on(device, &[rows, 1], value, DType::Float32).expect("full")
            };
            let got = sum.call(&[&full(m, 1.0), &full(n, f64::from(value))]).expect("sum");
            let exact = f64::from(value) * n as f64;
            for got in floats(&got) {
                let error = (got / exact - 1.0).abs();
                assert!(error <= 4e-6, "{n} times {value}: an error of {error:e}");
            }
        }
    }
}
