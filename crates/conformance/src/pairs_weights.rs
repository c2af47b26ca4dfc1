//! Sums of a number of the pair times many numbers of j, whatever that number is: cards compute it once as it is written,
//! and multiply it by all of them.

use tilework::pairs::{Accuracy, Genred, Options, Scheme};
use tilework::{Array, DType, Device, Rng, s};

use crate::each;
use crate::pairs::{after_first_calls, floats, is_card, within};
use crate::pairs_bounds::form_of;
use crate::pairs_sizes::agree;

/// A weight, components of points, columns, and rows and j from which cards multiply them, or each of their slices.
const CASES: [(&str, usize, usize, usize); 6] = [
    ("Exp(-Sqrt(SqDist(x,y)))", 3, 17, 3511),
    ("(1 + Sqrt(SqDist(x,y)) + SqDist(x,y) / 3) * Exp(-Sqrt(SqDist(x,y)))", 5, 40, 2309),
    ("Inv(1 + SqDist(x,y))", 3, 130, 1811),
    ("e * Exp(-Sum(Abs(x - y)) * s)", 9, 33, 2503),
    ("Cos((x|y)) * c", 2, 24, 2909),
    ("Exp(-SqDist(x / e, y / e))", 4, 64, 1801),
];

/// What is put into the arrays: nothing, or numbers that heads and tails cannot be made of, in which case the formula is
/// computed as it is written.
const ODD: [(&str, f64); 4] =
    [("plain", 0.0), ("infinite", f64::INFINITY), ("not a number", f64::NAN), ("large", 1e30)];

/// Against float64 on the CPU in the last rows, and against the same device's strict sums in all.
pub fn weights_as_written(device: Device) {
    let cases = CASES.into_iter().flat_map(|case| ODD.into_iter().map(move |odd| (case, odd)));
    each(cases, |(case, odd)| check(device, case, odd));
    batches(device);
}

fn aliases(dim: usize, width: usize) -> [String; 6] {
    let all = [
        ("x = Vi", dim),
        ("y = Vj", dim),
        ("s = Pm", 1),
        ("b = Vj", width),
        ("c = Vj", 1),
        ("e = Vi", 1),
    ];
    all.map(|(name, dim)| format!("{name}({dim})"))
}

/// The arrays of the aliases, in float32: e is near 1.
fn draw(batch: &[usize], (m, n): (usize, usize), [dim, width]: [usize; 2]) -> [Array; 6] {
    let rng = Rng::new(37);
    let normal = |rows: usize, dim: usize, scale: f64, plus: f64| {
        let numbers = rng.normal(&[batch, &[rows, dim]].concat(), DType::Float32);
        let numbers = numbers.and_then(|x| x.multiply(scale)).and_then(|x| x.add(plus));
        numbers.and_then(|x| x.astype(DType::Float32)).expect("normal")
    };
    let s = Array::full_on(Device::cpu(), &[1], 0.25, DType::Float32).expect("full");
    [
        normal(m, dim, 1.0, 0.0),
        normal(n, dim, 1.0, 0.0),
        s,
        normal(n, width, 1.0, 0.5),
        normal(n, 1, 1.0, 0.0),
        normal(m, 1, 0.1, 1.0),
    ]
}

fn check(
    device: Device,
    (weight, dim, width, size): (&str, usize, usize, usize),
    (odd, number): (&str, f64),
) {
    let text = format!("{weight} * b");
    let what = format!("{text}, {dim} components, {width} columns, {odd}");
    let aliases = aliases(dim, width);
    let aliases = aliases.each_ref().map(String::as_str);
    let call = Genred::new(&text, &aliases, "Sum", 1).expect(&what);
    let (m, n) = if is_card(device) { (size, size + 7) } else { (45, 400) };
    let here = draw(&[], (m, n), [dim, width]);
    if odd != "plain" {
        // One number, in the middle of one column.
        let some = here[3].slice(&s![200..201, 3..4]).expect(&what);
        some.fill(number).expect(&what);
    }
    let there = here.each_ref().map(|x| x.to_device(device).expect(&what));
    let there = there.each_ref();
    let options = Options::default();
    let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
    let got = call.call_with(&there, &options).expect(&what);
    after_first_calls(device);
    agree(&what, &call.call_with(&there, &options).expect(&what), &got, 0.0);
    let direct = call.call_with(&there, &strict).expect(&what);
    let [got, direct] = [got, direct].map(|it| floats(&it.values.expect(&what)));
    // What a column errs by is relative to it, and large numbers are in one alone.
    for column in 0..width {
        let of = |all: &[f64]| all.iter().skip(column).step_by(width).copied().collect::<Vec<_>>();
        let (got, direct) = (of(&got), of(&direct));
        let largest = direct.iter().filter(|x| x.is_finite()).fold(0.0f64, |a, b| a.max(b.abs()));
        for (row, (a, b)) in got.iter().zip(&direct).enumerate() {
            let near = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 2e-5 * largest;
            assert!(near, "{what}: row {row} of column {column} is {a}, not {b}");
        }
    }
    if odd != "plain" {
        return;
    }
    for scheme in [Scheme::OneD, Scheme::TwoD] {
        let cut = call.call_with(&there, &Options { scheme, ..options }).expect(&what);
        let cut = floats(&cut.values.expect(&what));
        let largest = got.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        let near = got.iter().zip(&cut).all(|(a, b)| (a - b).abs() <= 1e-5 * largest);
        assert!(near, "{what}: {scheme:?}");
    }
    let ends = s![-20.., ..];
    let exact: Vec<Array> = (here.iter().zip(aliases))
        .map(|(x, alias)| {
            let part = if alias.contains("Vi") { x.slice(&ends) } else { Ok(x.clone()) };
            part.and_then(|x| x.astype(DType::Float64)).expect(&what)
        })
        .collect();
    let exact: Vec<&Array> = exact.iter().collect();
    let of = |text: &str| {
        let call = Genred::new(text, &aliases, "Sum", 1).expect(&what);
        let sums = call.call_with(&exact, &strict).expect(&what);
        floats(&sums.values.expect(&what))
    };
    // Relative to what is summed: weights round a few times, products and sums less.
    let allowed: Vec<f64> =
        of(&format!("Abs({weight}) * Abs(b)")).iter().map(|x| 4e-6 * x).collect();
    within(&what, &got[(m - 20) * width..], &of(&text), &allowed);
    if is_card(device) {
        let said = call.explain(&there, &options).expect(&what);
        let form = form_of(&said);
        // Of a card that has these tensor cores.
        let is_hopper = said.contains(", 132 multiprocessors,");
        assert!(!is_hopper || form.contains("weights as they are written"), "{what}: {form}");
    }
}

/// Several problems at once are those one by one.
fn batches(device: Device) {
    let what = "batches of weights";
    let (m, n) = if is_card(device) { (1501, 1607) } else { (31, 200) };
    let arrays = draw(&[3], (m, n), [3, 41]).map(|x| x.to_device(device).expect(what));
    let aliases = aliases(3, 41);
    let aliases = aliases.each_ref().map(String::as_str);
    let call = Genred::new("Exp(-Sqrt(SqDist(x,y))) * b", &aliases, "Sum", 1).expect(what);
    let of = |arrays: &[Array; 6]| {
        let sums = call.call_with(&arrays.each_ref(), &Options::default()).expect(what);
        sums.values.expect(what)
    };
    let all = of(&arrays);
    for k in 0..3 {
        let one = arrays.each_ref().map(|x| match x.ndim() {
            3 => x.slice(&s![k]).expect(what),
            _ => x.clone(),
        });
        let (one, both) = (floats(&of(&one)), floats(&all.slice(&s![k]).expect(what)));
        let largest = one.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        assert!(one.iter().zip(&both).all(|(a, b)| (a - b).abs() <= 1e-5 * largest), "{what}: {k}");
    }
}
