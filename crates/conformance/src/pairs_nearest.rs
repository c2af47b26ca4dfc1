//! The smallest of all values over pairs, where filters find them: the same values and indices as without.

use tilework::pairs::{Accuracy, Genred, LazyTensor, Options, Scheme, SumScheme};
use tilework::{Array, DType, Device, Rng};

use crate::each;
use crate::pairs::{after_first_calls, is_card};
use crate::pairs_sizes::{CHOSEN, agree, arguments};

/// The smallest squared distances where a filter finds them: values and indices are those of the
/// CPU, bit for bit, whatever the data are.
pub fn nearest(device: Device) {
    std::thread::scope(|scope| {
        for sizes in &CHOSEN[2..] {
            scope.spawn(move || nearest_at(device, *sizes));
        }
    });
}

fn nearest_at(device: Device, (m, n, dim): (usize, usize, usize)) {
    let rng = Rng::new(12);
    let normal = |rows: usize| rng.normal(&[rows, dim], DType::Float64).expect("normal");
    let (x, y) = (normal(m), normal(n));
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    let ten = Genred::with("SqDist(x,y)", &aliases, "KMin_ArgKMin", 1, Some(10), None);
    let one = Genred::with("SqDist(x,y)", &aliases, "Min_ArgMin", 1, None, None);
    type Data = fn(&Array) -> Result<Array, tilework::Error>;
    let mut kinds: [(&str, Data, Option<f64>); 8] = [
        ("normal", |x| x.multiply(1.0), None),
        ("far", |x| x.add(1e4), None),
        ("ties", |x| x.multiply(0.7)?.round_to(0), None),
        ("all the same", |x| x.multiply(0.0)?.add(3.0), None),
        ("large", |x| x.multiply(1e18), None),
        ("small", |x| x.multiply(1e-21), None),
        ("not a number", |x| x.multiply(1.0), Some(f64::NAN)),
        ("infinite", |x| x.multiply(1.0), Some(f64::INFINITY)),
    ];
    // First calls are of other data at every size: of such that a form gives up, too.
    kinds.rotate_left(n % 8);
    for (call, name) in [(one.expect("one"), "one"), (ten.expect("ten"), "ten")] {
        for (what, data, odd) in kinds {
            let single = |x: &Array| data(x).and_then(|x| x.astype(DType::Float32)).expect(what);
            let here = [single(&x), single(&y)];
            if let Some(odd) = odd {
                here[1].slice(&tilework::s![5..6]).and_then(|row| row.fill(odd)).expect("fill");
                here[0].slice(&tilework::s![9..10]).and_then(|row| row.fill(odd)).expect("fill");
            }
            let there: Vec<Array> =
                here.iter().map(|x| x.to_device(device).expect("to_device")).collect();
            let run = |arrays: &[&Array]| call.call_with(arrays, &Options::default()).expect(what);
            let expected = run(&here.iter().collect::<Vec<_>>());
            for again in [false, true] {
                let got = run(&there.iter().collect::<Vec<_>>());
                let what = format!("{name} of {what}, {m} x {n}, D = {dim}, again: {again}");
                agree(&what, &got, &expected, 0.0);
                after_first_calls(device);
            }
        }
    }
}

/// Many ranks, which a card keeps in the registers of a warp, and very many, which it takes slice by slice: values and
/// indices are those of the CPU, bit for bit, with equal, infinite and missing values among them, and with more ranks
/// than there are.
pub fn many_ranks(device: Device) {
    std::thread::scope(|scope| {
        for k in [17, 32, 33, 100, 1000, 1025, 2600] {
            scope.spawn(move || ranked(device, k));
        }
        scope.spawn(move || ranked_components(device));
        for dim in [65, 100] {
            scope.spawn(move || ranked_of_long_vectors(device, dim));
        }
    });
}

/// More ranks than a team has, of every component of vectors, with ties.
fn ranked_components(device: Device) {
    let rng = Rng::new(17);
    for (m, n, dtype) in [(70, 2500, DType::Float32), (3, 900, DType::Float64)] {
        let points = |rows: usize| {
            let numbers = rng.normal(&[rows, 3], DType::Float64).and_then(|x| x.multiply(50.0));
            numbers.and_then(|x| x.round_to(0)?.astype(dtype)).expect("points")
        };
        let here = [points(m), points(n)];
        let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
        for (reduction, formula) in [("KMin_ArgKMin", "x - y"), ("ArgKMax", "Concat(x * y, x)")] {
            let aliases = ["x = Vi(3)", "y = Vj(3)"];
            let call =
                Genred::with(formula, &aliases, reduction, 1, Some(1100), None).expect(formula);
            let options = Options::default();
            let run = |arrays: &[Array; 2]| {
                call.call_with(&[&arrays[0], &arrays[1]], &options).expect(formula)
            };
            agree(&format!("{reduction} of {formula}, {m} x {n}"), &run(&there), &run(&here), 0.0);
        }
    }
}

/// The same of long vectors, of few pairs and of many. Coordinates are whole, so that every order of sums gives the same.
fn ranked_of_long_vectors(device: Device, dim: usize) {
    let rng = Rng::new(16);
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    for (m, n, dtype) in [
        (1, 30, DType::Float32),
        (50, 200, DType::Float32),
        (7, 60, DType::Float64),
        (301, 1500, DType::Float16),
        (300, 4001, DType::Float32),
        (5, 60_001, DType::Float32),
        (70, 2500, DType::Float64),
    ] {
        let points = |rows: usize| {
            let numbers = rng.normal(&[rows, dim], DType::Float64).and_then(|x| x.multiply(20.0));
            numbers.and_then(|x| x.round_to(0)?.astype(dtype)).expect("points")
        };
        let here = [points(m), points(n)];
        here[1].slice(&tilework::s![3..4]).and_then(|row| row.fill(f64::NAN)).expect("fill");
        let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
        // What is few is held against the reference.
        let by = if m * n <= 10_000 { Device::reference() } else { Device::cpu() };
        let here = here.each_ref().map(|x| x.to_device(by).expect("to_device"));
        for (k, formula, reduction) in [
            (17, "SqDist(x,y)", "KMin_ArgKMin"),
            (20, "SqDist(x,y)", "KMin_ArgKMin"),
            (100, "SqDist(x,y)", "KMin_ArgKMin"),
            (100, "(x|y)", "KMax_ArgKMax"),
            (1500, "SqDist(x,y)", "KMin_ArgKMin"),
            // Two vectors of i, which do not come in chunks.
            (100, "SqDist(x,y) + (Abs(x)|y)", "KMin_ArgKMin"),
            (1500, "SqDist(x,y) + (Abs(x)|y)", "KMin_ArgKMin"),
        ] {
            let call = Genred::with(formula, &aliases, reduction, 1, Some(k), None).expect(formula);
            let run = |arrays: &[Array; 2], scheme| {
                let options = Options { scheme, ..Options::default() };
                call.call_with(&[&arrays[0], &arrays[1]], &options).expect(formula)
            };
            let expected = run(&here, Scheme::Auto);
            for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                let what = format!("{reduction} of {k}, {m} x {n}, D = {dim}, {dtype}, {scheme:?}");
                agree(&what, &run(&there, scheme), &expected, 0.0);
            }
        }
    }
}

fn ranked(device: Device, k: usize) {
    let rng = Rng::new(15);
    let aliases = ["x = Vi(3)", "y = Vj(3)"];
    for (m, n, dtype) in [
        (1, 20, DType::Float32),
        (33, 700, DType::Float64),
        (70, 5000, DType::Float32),
        (9, 250_000, DType::Float32),
    ] {
        type Data = fn(&Array) -> Result<Array, tilework::Error>;
        let kinds: [(&str, Data); 3] = [
            ("normal", |x| x.multiply(1.0)),
            ("ties", |x| x.multiply(3.0)?.round_to(0)),
            ("all the same", |x| x.multiply(0.0)?.add(3.0)),
        ];
        for (what, data) in kinds {
            let points = |rows: usize| {
                let numbers = rng.normal(&[rows, 3], DType::Float64).and_then(|x| data(&x));
                numbers.and_then(|x| x.astype(dtype)).expect(what)
            };
            let here = [points(m), points(n)];
            for (at, odd) in [(3, f64::NAN), (5, f64::INFINITY), (6, f64::INFINITY)] {
                here[1]
                    .slice(&tilework::s![at..at + 1])
                    .and_then(|row| row.fill(odd))
                    .expect("fill");
            }
            let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
            for reduction in ["KMin_ArgKMin", "KMax_ArgKMax"] {
                let call = Genred::with("SqDist(x,y)", &aliases, reduction, 1, Some(k), None);
                let call = call.expect(reduction);
                let run = |arrays: &[Array; 2], scheme| {
                    let options = Options { scheme, ..Options::default() };
                    call.call_with(&[&arrays[0], &arrays[1]], &options).expect(what)
                };
                let expected = run(&here, Scheme::Auto);
                for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                    let got = run(&there, scheme);
                    let what = format!("{reduction} of {k}, {what}, {m} x {n}, {scheme:?}");
                    agree(&what, &got, &expected, 0.0);
                }
            }
        }
    }
}

/// More j than 32 bits count, on a device that has memory for them: the last are found, and all are counted.
pub fn more_than_32_bits_count(device: Device) {
    let n = (1usize << 32) + 77;
    let y = Array::zeros_on(device, &[n, 1], DType::Float16).expect("zeros");
    for at in [1 << 31, n - 2] {
        let row = y.slice(&tilework::s![at as isize..at as isize + 1]);
        row.and_then(|row| row.fill(-1.0)).expect("fill");
    }
    let x = Array::full_on(device, &[3, 1], 1.0, DType::Float16).expect("full");
    let of = |name: &str, k: Option<usize>| {
        let call = Genred::with("x * y", &["x = Vi(1)", "y = Vj(1)"], name, 1, k, None);
        let got = call.expect(name).call(&[&x, &y]);
        got.and_then(|it| it.to_vec::<i64>()).expect(name)
    };
    assert_eq!(of("ArgMin", None), [1 << 31; 3]);
    assert_eq!(of("ArgKMin", Some(2)), [1 << 31, n as i64 - 2].repeat(3));
    assert_eq!(of("Count", None), [2; 3]);
}

/// The nearest by distance, root and all, are those of all distances; on the CPU they go through the filter too.
pub fn nearest_by_distance(device: Device) {
    for (m, n) in [(64, 900), (200, 5000)] {
        let arrays = arguments(device, DType::Float32, m, n);
        let (x, y) = (LazyTensor::vi(&arrays[0]), LazyTensor::vj(&arrays[1]));
        let square = x.and_then(|x| x.sqdist(&y?));
        let distance = square.and_then(|square| square.sqrt()).expect("distance");
        let way = (device == Device::cpu()).then_some("filtered by the expanded square");
        nearest_of_all(&format!("distance, {m} x {n}"), &distance, way);
        // What a card compiles behind a first call gives the same.
        after_first_calls(device);
        nearest_of_all(&format!("distance again, {m} x {n}"), &distance, way);
    }
}

/// Roots of negative distances are no numbers, and none of them is the largest: nothing is found, with
/// as many points as a filter wants.
pub fn roots_of_nothing(device: Device) {
    let arrays = arguments(device, DType::Float32, 64, 9000);
    let (x, y) = (LazyTensor::vi(&arrays[0]).expect("x"), LazyTensor::vj(&arrays[1]).expect("y"));
    let minus = x.sqdist(&y).and_then(|square| square.negative());
    let roots = minus.and_then(|minus| minus.sqrt()).expect("roots");
    for accuracy in [Accuracy::Declared, Accuracy::Strict] {
        let options = Options { accuracy, ..Options::default() };
        let found = roots.reduce("ArgMax", 1, None, &options).and_then(|found| found.only());
        let found = found.expect("reduce");
        let none = found.to_vec::<i64>().expect("indices").iter().all(|&index| index == -1);
        assert!(none, "{accuracy:?}: {found:?}");
    }
}

/// So are the nearest on a line, where many are as near as each other or nearer than a square is
/// rounded.
pub fn nearest_on_a_line(device: Device) {
    let rng = Rng::new(14);
    for (m, n) in [(33, 170), (64, 900), (100, 7000)] {
        type Data = fn(&Array) -> Result<Array, tilework::Error>;
        let kinds: [(&str, Data); 6] = [
            ("normal", |x| x.multiply(1.0)),
            ("far", |x| x.add(1e4)),
            ("ties", |x| x.multiply(30.0)?.round_to(0)),
            ("many ties", |x| x.multiply(0.7)?.round_to(0)),
            ("all the same", |x| x.multiply(0.0)?.add(3.0)),
            ("close", |x| x.multiply(1e-4)?.add(1.0)),
        ];
        for (what, data) in kinds {
            let points = |rows: usize| {
                let numbers = rng.normal(&[rows, 1], DType::Float64).and_then(|x| data(&x));
                let numbers = numbers.and_then(|x| x.astype(DType::Float32));
                numbers.and_then(|x| x.to_device(device)).expect(what)
            };
            let (x, y) = (LazyTensor::vi(&points(m)), LazyTensor::vj(&points(n)));
            let square = x.and_then(|x| x.sqdist(&y?)).expect(what);
            let what = format!("{what}, {m} x {n}");
            let way = (device == Device::cpu()).then_some("filtered by the direct form");
            nearest_of_all(&what, &square, way);
            let minus = square.negative().expect("negative");
            let options = Options { k: Some(3), ..Options::default() };
            let largest = minus.reduce("ArgKMax", 1, None, &options).expect("reduce");
            let smallest = square.reduce("ArgKMin", 1, None, &options).expect("reduce");
            agree(&what, &largest, &smallest, 0.0);
        }
    }
}

/// The indices of the smallest distances and of the largest negatives are those of squares that are as small, at sizes of
/// both forms: of roots that rounding makes equal any may come first.
pub fn orders_of_squares(device: Device) {
    for (m, n, dim) in [(33, 70, 3), (500, 3000, 3), (4000, 4200, 64)] {
        if m * n * dim > 1 << 24 && !is_card(device) {
            continue;
        }
        let rng = Rng::new(23);
        let points = |rows: usize| {
            let numbers = rng.normal(&[rows, dim], DType::Float32).expect("normal");
            numbers.to_device(device).expect("to_device")
        };
        let (x, y) = (points(m), points(n));
        let (i, j) = (LazyTensor::vi(&x).expect("i"), LazyTensor::vj(&y).expect("j"));
        let square = i.sqdist(&j).expect("square");
        let root = square.sqrt().expect("root");
        let [minus, minus_root] = [&square, &root].map(|it| it.negative().expect("negative"));
        for (k, smallest, largest) in [(1, "ArgMin", "ArgMax"), (10, "ArgKMin", "ArgKMax")] {
            let options = Options { k: (k > 1).then_some(k), ..Options::default() };
            // Squares of what was found, by themselves, in float64.
            let squares = |of: &LazyTensor, reduction: &str| {
                let found = of.reduce(reduction, 1, None, &options).expect(reduction).indices;
                let places = found.and_then(|at| at.to_vec::<i64>().ok()).expect("indices");
                let [x, y] = [&x, &y].map(|it| it.to_vec::<f32>().expect("points"));
                let square = |(place, &j): (usize, &i64)| {
                    let (row, j) = (place / k, usize::try_from(j).expect("an index"));
                    let pairs = x[row * dim..][..dim].iter().zip(&y[j * dim..][..dim]);
                    pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
                };
                places.iter().enumerate().map(square).collect::<Vec<f64>>()
            };
            let expected = squares(&square, smallest);
            for (of, reduction) in [(&root, smallest), (&minus, largest), (&minus_root, largest)] {
                let what = format!("{reduction} of {m} x {n}, D = {dim}");
                let found = squares(of, reduction);
                assert_eq!(found.len(), expected.len(), "{what}");
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() <= 1e-5 * expected,
                        "{what}: {found}, {expected}"
                    );
                }
                if is_card(device) {
                    let said = of.explain(reduction, 1, None, &options).expect("explain");
                    assert!(said.contains("that of the squares"), "{what}: {said}");
                }
            }
        }
    }
}

/// Extremes of doubles from one end of their range to the other, of which a card compares the upper halves first: values
/// that differ in their last bits, of either sign, subnormal, infinite and missing ones, each the best of some rows.
pub fn extremes_of_doubles(device: Device) {
    let large = f64::from_bits(0x7f80_0000_0000_0000); // 2^1017, where the upper half is as infinity is
    let above = |v: f64| f64::from_bits(v.to_bits() + 1);
    let sizes = [0.0, 5e-324, 1e-310, f64::MIN_POSITIVE, 1e-306, 0.1, 1.0, 1e15, large, f64::MAX];
    let each =
        sizes.into_iter().flat_map(|v| [v, above(v).min(f64::MAX), -v, -above(v).min(f64::MAX)]);
    let kinds: Vec<f64> = each.chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).collect();
    // Few pairs against the definition, and so many that a card takes groups of them against the CPU.
    for (n, expected) in [(300, Device::reference()), (2_500, Device::cpu())] {
        // Better ones come in another order each time.
        let values: Vec<f64> = (0..n).map(|j| kinds[(j * j / 3 + 7 * j) % kinds.len()]).collect();
        let numbers: Vec<f64> = (0..n as u32).map(f64::from).collect();
        for (reduction, k) in [
            ("Min_ArgMin", None),
            ("Max_ArgMax", None),
            ("KMin_ArgKMin", Some(3)),
            ("KMax_ArgKMax", Some(20)),
        ] {
            // A row takes the values from its own number on, and zero of the others.
            let aliases = ["i = Vi(1)", "j = Vj(1)", "v = Vj(1)"];
            let call = Genred::with("Where(j < i, 0, v)", &aliases, reduction, 1, k, None);
            let call = call.expect(reduction);
            let of = |device: Device| {
                let column = |of: &Vec<f64>| {
                    let column = Array::from_slice_on(device, of);
                    column.and_then(|x| x.reshape(&[-1, 1])).expect("column")
                };
                let [i, j, v] = [&numbers, &numbers, &values].map(column);
                call.call_with(&[&i, &j, &v], &Options::default()).expect(reduction)
            };
            agree(&format!("{reduction} of {n}"), &of(device), &of(expected), 0.0);
        }
    }
}

/// As many as a filter, a sorted list and a list with room have, and as many as there are or more: with
/// and without a filter, in lanes, in ranges and interpreted, the best of all values, sorted.
pub fn many_of_all(device: Device) {
    type Data = fn(&Array) -> Result<Array, tilework::Error>;
    let kinds: [(&str, Data); 3] = [
        ("normal", |x| x.multiply(1.0)),
        ("ties", |x| x.multiply(2.0)?.round_to(0)),
        ("odd", |x| {
            x.slice(&tilework::s![5..9])?.fill(f64::NAN)?;
            x.slice(&tilework::s![20..21])?.fill(f64::INFINITY)?;
            x.multiply(0.7)?.round_to(0)
        }),
    ];
    let n = 2100;
    let sizes = [(33, 1), (33, 3), (3, 3)];
    each(sizes.into_iter().flat_map(|sizes| kinds.map(|kind| (sizes, kind))), |(sizes, kind)| {
        let ((m, dim), (what, data), rng) = (sizes, kind, Rng::new(15));
        let points = |rows: usize, data: Data| {
            let numbers = rng.normal(&[rows, dim], DType::Float64).and_then(|x| data(&x));
            let numbers = numbers.and_then(|x| x.astype(DType::Float32));
            numbers.and_then(|x| x.to_device(device)).expect(what)
        };
        let (x, y) = (points(m, kinds[1].1), points(n, data));
        let square = LazyTensor::vi(&x).and_then(|x| x.sqdist(&LazyTensor::vj(&y)?));
        let square = square.expect(what);
        let minus = square.negative().expect(what);
        let what = format!("{what}, {m} x {n} x {dim}");
        many_at(device, &format!("nearest of {what}"), &square, "KMin_ArgKMin", true);
        many_at(device, &format!("minus nearest of {what}"), &minus, "KMax_ArgKMax", true);
        many_at(device, &format!("farthest of {what}"), &square, "KMax_ArgKMax", false);
    });
}

fn many_at(device: Device, what: &str, values_of: &LazyTensor, reduction: &str, near: bool) {
    let declared = Options::default();
    let strict = Options { accuracy: Accuracy::Strict, ..declared };
    let ways = [
        declared,
        strict,
        Options { scheme: Scheme::TwoD, ..declared },
        Options { scheme: Scheme::TwoD, sums: SumScheme::Double, ..strict },
    ];
    let sorted = Sorted::of(values_of, reduction.starts_with("KMin"));
    let (m, n) = (sorted.rows.len(), sorted.n);
    // A card compiles for each of them: those about what its threads, warps and slices have room for.
    let ranks: &[usize] = match is_card(device) {
        false => &[24, 25, 63, 64, 65, 100, 128, 129, n - 1, n, n + 5],
        true => &[16, 17, 32, 33, n / 2, n, n + 5],
    };
    for &k in ranks {
        let (values, indices) = sorted.first(k);
        for (way, options) in ways.iter().enumerate() {
            let (what, options) =
                (format!("{k} {what}, way {way}"), Options { k: Some(k), ..*options });
            if device == Device::cpu() {
                let how = values_of.explain(reduction, 1, None, &options).expect("explain");
                let strict = options.accuracy == Accuracy::Strict;
                let filtered = near && m >= 32 && k <= n / 16 && !strict;
                assert_eq!(how.contains("filtered by"), filtered, "{what}: {how}");
                assert!(!how.contains("exponent"), "{what}: {how}");
            }
            let found = values_of.reduce(reduction, 1, None, &options).expect("reduce");
            let of = |found: Option<Array>| found.expect("both");
            let found = (of(found.values), of(found.indices));
            assert!(found.0.to_vec::<f32>().expect("values") == values, "{what}: values");
            assert!(found.1.to_vec::<i64>().expect("indices") == indices, "{what}: indices");
        }
    }
}

/// All values of every row but those that are NaN, best first, with their indices.
struct Sorted {
    n: usize,
    rows: Vec<Vec<(f32, i64)>>,
    worst: f32,
}

impl Sorted {
    fn of(values_of: &LazyTensor, ascending: bool) -> Sorted {
        let dense = values_of.dense().expect("dense");
        let n = dense.shape()[1];
        let sort = |row: &[f32]| {
            let mut row: Vec<(f32, i64)> = row.iter().copied().zip(0..).collect();
            row.retain(|(value, _)| !value.is_nan());
            // Stable, so equal values stay in the order of their indices.
            row.sort_by(|(a, _), (b, _)| {
                let (a, b) = if ascending { (a, b) } else { (b, a) };
                a.partial_cmp(b).expect("no NaN")
            });
            row
        };
        let rows = dense.to_vec::<f32>().expect("dense").chunks_exact(n).map(sort).collect();
        Sorted { n, rows, worst: if ascending { f32::INFINITY } else { f32::NEG_INFINITY } }
    }

    /// The K best of all rows.
    fn first(&self, k: usize) -> (Vec<f32>, Vec<i64>) {
        let nothing = std::iter::repeat((self.worst, -1));
        let rows = self.rows.iter();
        rows.flat_map(|row| row.iter().copied().chain(nothing.clone()).take(k)).unzip()
    }
}

/// Holds the ten smallest against all values, found the way that a device is to go.
fn nearest_of_all(what: &str, values_of: &LazyTensor, way: Option<&str>) {
    let k = 10;
    let options = Options { k: Some(k), ..Options::default() };
    let how = values_of.explain("KMin_ArgKMin", 1, None, &options).expect("explain");
    assert!(way.is_none_or(|way| how.contains(way)), "{what}: {how:.2000}");
    let found = values_of.reduce("KMin_ArgKMin", 1, None, &options).expect("reduce");
    let (values, indices) = Sorted::of(values_of, true).first(k);
    assert_eq!(found.values.expect("values").to_vec::<f32>().expect("values"), values, "{what}");
    assert_eq!(
        found.indices.expect("indices").to_vec::<i64>().expect("indices"),
        indices,
        "{what}"
    );
}
