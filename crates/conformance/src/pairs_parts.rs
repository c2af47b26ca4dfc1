//! Reductions over so many pairs that devices have other forms of them, in parts: states of parts that are merged, and
//! arrays of the host that a device gets block by block. Places are those in the whole, and sums as good as in one piece.
//!
//! Squares of distances between these points are numbers of float32, whatever the order of sums, so that places are exact,
//! also those of equal squares.

use tilework::pairs::{Genred, Options, Partial, Reduced};
use tilework::{Array, DType, Device, Result, Rng, s};

use crate::pairs::{after_first_calls, floats, is_card};

const GAUSS: &str = "Exp(-SqDist(x,y) * s) * b";
const LOGARITHM: &str = "-SqDist(x,y) * s";
const SQUARE: &str = "SqDist(x,y)";

/// Several ranks, so few that a filter on tensor cores has room for them.
const RANKS: usize = 10;

/// Reduction, K, formula.
pub(crate) type Case = (&'static str, Option<usize>, &'static str);

pub(crate) const CASES: [Case; 4] = [
    ("Sum", None, GAUSS),
    ("LogSumExp", None, LOGARITHM),
    ("ArgMin", None, SQUARE),
    ("ArgKMin", Some(RANKS), SQUARE),
];

/// What sums of positive terms may miss of themselves, and logarithms beside one: what is promised of exponents, and the
/// roundings of all else.
const NEAR: f64 = 1.3e-5;

/// The index of the first j of all parts: 32 bits do not count so far.
const FIRST: i64 = (1 << 40) + 5;

/// How far from the origin points are: about it, and so far that forms which cancel need a centre.
pub(crate) const OFFSETS: [f64; 2] = [0.0, 100.0];

/// A reduction of points of `dim` components, with weights of `width`.
pub(crate) fn call((name, k, text): Case, [dim, width]: [usize; 2]) -> Genred {
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
    // A formula without them takes no notice of the last two.
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", &aliases[2]];
    Genred::with(text, &aliases, name, 1, k, None).expect(text)
}

/// Points of so few bits that float32 has all of their differences, squares and sums.
fn points(rng: &Rng, rows: usize, dim: usize, offset: f64) -> Array {
    let numbers = rng.normal(&[rows, dim], DType::Float32).and_then(|x| x.multiply(32.0));
    let numbers = numbers.and_then(|x| x.round_to(0)?.divide(32.0)?.add(offset));
    numbers.expect("points")
}

/// Points of i and of j, the scale of an exponent, and positive weights; on the host.
pub(crate) fn arguments(
    (m, n): (usize, usize),
    [dim, width]: [usize; 2],
    offset: f64,
) -> [Array; 4] {
    let rng = Rng::new(51);
    let (x, y) = (points(&rng, m, dim, offset), points(&rng, n, dim, offset));
    let scale = Array::full(&[1], 0.5 / dim as f64, DType::Float32).expect("full");
    let b = rng.normal(&[n, width], DType::Float32).and_then(|b| b.abs()).expect("normal");
    [x, y, scale, b]
}

pub(crate) fn indices(found: &Reduced) -> Vec<i64> {
    found.indices.as_ref().expect("indices").to_vec().expect("to_vec")
}

/// What a row is by squares in float64, one after the other and not by any reduction over pairs.
struct Exact {
    /// The weighted sum of exponentials.
    sum: f64,
    /// The largest exponent, and the logarithm of the sum of exponentials.
    largest: f64,
    logarithm: f64,
    /// The places of the smallest squares.
    nearest: Vec<i64>,
}

impl Exact {
    fn of(row: usize, [x, y, scale, b]: &[Array; 4]) -> Exact {
        let wide = |x: &Array| x.astype(DType::Float64);
        let made = || -> Result<Exact> {
            let point = wide(&x.slice(&s![row as isize])?)?;
            let squares = y.subtract(&point)?.square()?.sum(1)?;
            let exponents = squares.multiply(&wide(scale)?)?.negative()?;
            let terms = exponents.exp()?;
            let number = |x: Array| x.item::<f64>();
            Ok(Exact {
                sum: number(terms.multiply(&wide(b)?.reshape(&[-1])?)?.sum(())?)?,
                largest: number(exponents.max(())?)?,
                logarithm: number(terms.sum(())?)?.ln(),
                nearest: smallest(&floats(&squares)),
            })
        };
        made().expect("a row")
    }

    /// Fails unless this is what a reduction gives for the row, with indices from `first` on.
    fn check(&self, what: &str, row: usize, (name, k, _): Case, got: &Reduced, first: i64) {
        let expected = match name {
            "Sum" => self.sum,
            "LogSumExp" => self.logarithm,
            _ => {
                let k = k.unwrap_or(1);
                let found = &indices(got)[row * k..][..k];
                let expected: Vec<i64> = self.nearest[..k].iter().map(|j| first + j).collect();
                assert!(found == expected, "{what}: row {row} has {found:?}, not {expected:?}");
                return;
            }
        };
        let found = number_at(got.values.as_ref().expect("values"), row, 0);
        let near = (found - expected).abs() <= NEAR * size(name, expected);
        assert!(near, "{what}: row {row} is {found}, not {expected}");
    }
}

/// The places of the smallest numbers, of equal ones the first before others.
fn smallest(numbers: &[f64]) -> Vec<i64> {
    let mut found: Vec<(f64, i64)> = Vec::with_capacity(RANKS + 1);
    for (&number, j) in numbers.iter().zip(0..) {
        if found.len() < RANKS || number < found[RANKS - 1].0 {
            found.insert(found.partition_point(|(held, _)| *held <= number), (number, j));
            found.truncate(RANKS);
        }
    }
    found.into_iter().map(|(_, j)| j).collect()
}

/// What the error of a value is relative to.
fn size(name: &str, value: f64) -> f64 {
    if name == "Sum" { value } else { 1.0 + value.abs() }
}

fn number_at(array: &Array, row: usize, column: usize) -> f64 {
    let number = array.slice(&s![row as isize, column as isize]).and_then(|x| x.copy());
    floats(&number.expect("a number"))[0]
}

/// Fails unless both are the same, sums but for what either may miss; indices of the first begin at `first`.
fn alike(what: &str, name: &str, got: &Reduced, whole: &Reduced, first: i64) {
    if let (Some(got), Some(whole)) = (&got.values, &whole.values) {
        for (row, (a, b)) in floats(got).into_iter().zip(floats(whole)).enumerate() {
            let near = (a - b).abs() <= 2.0 * NEAR * size(name, b);
            assert!(near, "{what}: row {row} is {a}, not {b} as in one piece");
        }
    } else {
        let got: Vec<i64> = indices(got).into_iter().map(|j| j - first).collect();
        assert!(got == indices(whole), "{what}: other indices than in one piece");
    }
}

/// Rows, two unequal parts of j, and components: so many that a card expands the squares of each part, those of three
/// components on threads and those of 64 on tensor cores ([`assert_form`]). Others have forms of their own at any size.
fn sizes(device: Device) -> [(usize, [usize; 2], usize); 2] {
    match is_card(device) {
        true => [(40_003, [60_001, 70_003], 3), (6_001, [6_003, 7_001], 64)],
        false if device == Device::cpu() => [(301, [400, 703], 3), (301, [300, 403], 64)],
        false => [(11, [20, 37], 3), (11, [20, 33], 64)],
    }
}

/// States of two parts of j, each with its offset, are merged to what all j give.
pub fn parts_of_many(device: Device) {
    std::thread::scope(|scope| {
        for sizes in sizes(device) {
            for offset in OFFSETS {
                scope.spawn(move || parts_at(device, sizes, offset));
            }
        }
    });
}

fn parts_at(device: Device, (m, parts, dim): (usize, [usize; 2], usize), offset: f64) {
    let here = arguments((m, parts[0] + parts[1]), [dim, 1], offset);
    let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
    let [middle, end] = [parts[0], parts[0] + parts[1]].map(|j| j as isize);
    // All of what belongs to some j.
    let some = |all: &[Array; 4], from: isize, to: isize| -> [Array; 4] {
        let [y, b] = [1, 3].map(|k: usize| all[k].slice(&s![from..to]).expect("slice"));
        [all[0].clone(), y, all[2].clone(), b]
    };
    let options = Options::default();
    let rows = [0, 1, m / 2, m - 2, m - 1].map(|row| (row, Exact::of(row, &here)));
    let of_part = some(&here, middle, end);
    let second = [3, m - 1].map(|row| (row, Exact::of(row, &of_part)));
    for case in CASES {
        let (name, _, text) = case;
        let call = call(case, [dim, 1]);
        for turn in ["first", "second"] {
            let what = format!("{name} of {text}, D = {dim}, by {offset}, {turn} call");
            let state = |from: isize, to: isize| -> Partial {
                let arrays = some(&there, from, to);
                if is_card(device) {
                    let said = call.explain(&arrays.each_ref(), &options).expect("explain");
                    assert_form(&what, &said, case, [dim, 1], offset);
                }
                call.partial(&arrays.each_ref(), FIRST + from as i64, &options).expect(&what)
            };
            let states = [state(0, middle), state(middle, end)];
            let whole = call.call_with(&there.each_ref(), &options).expect(&what);
            let done = |state: &Partial| state.finish().expect(&what);
            // The indices tell which of them is the first.
            for merged in [states[0].merge(&states[1]), states[1].merge(&states[0])] {
                let merged = done(&merged.expect(&what));
                alike(&what, name, &merged, &whole, FIRST);
                for (row, exact) in &rows {
                    exact.check(&what, *row, case, &merged, FIRST);
                    exact.check(&what, *row, case, &whole, 0);
                }
            }
            for (row, exact) in &second {
                let what = format!("{what}, of the second part");
                exact.check(&what, *row, case, &done(&states[1]), FIRST + middle as i64);
                if name == "LogSumExp" {
                    // A state of its own has the largest exponent itself, whatever sums are about.
                    let (_, values, _) = states[1].arrays();
                    let (found, expected) = (number_at(&values, *row, 0), exact.largest);
                    let near = (found - expected).abs() <= NEAR * (1.0 + expected.abs());
                    assert!(near, "{what}: row {row} has {found}, not {expected}, as its largest");
                }
            }
            after_first_calls(device);
        }
    }
}

/// Fails unless a card takes the form that these sizes are chosen for: of many components tensor cores; of few squares that
/// threads expand, for which they find a centre only of sums of one column; the smallest of these are as they are written.
pub(crate) fn assert_form(
    what: &str,
    said: &str,
    (name, ..): Case,
    [dim, width]: [usize; 2],
    offset: f64,
) {
    let form = said.lines().find(|line| line.starts_with("form")).unwrap_or_default();
    let wide = dim == 64;
    let centred = offset != 0.0 && (wide || name == "Sum" && width == 1);
    let near = offset == 0.0 && ["Sum", "LogSumExp"].contains(&name);
    let has = |part: &str| form.contains(part);
    assert!(has("expanded square") || !(wide || centred || near), "{what}: {form}");
    assert!(has("on tensor cores") || !wide, "{what}: {form}");
    assert!(has("about a centre") || !centred, "{what}: {form}");
}

/// Arrays of the host that a device gets in three blocks of j, the last of which is short; that device may be the host, which
/// cuts long arrays, too.
pub fn streamed_of_many(device: Device) {
    // Blocks have 64 MiB of y, and of b where a formula needs it. Tensor cores take filters of so many j where there are
    // enough rows (`worth.rs`).
    let sizes = match is_card(device) {
        true => [(6_003, 600_011, 64), (1_003, 11_300_003, 3)],
        false => [(2, 600_011, 64), (1, 11_300_003, 3)],
    };
    for (m, n, dim) in sizes {
        // Tensor cores need a centre then, and threads have none for logarithms.
        let offset = if dim == 64 { 100.0 } else { 0.0 };
        let arrays = arguments((m, n), [dim, 1], offset);
        let rows: Vec<_> =
            [0, m - 1][..m.min(2)].iter().map(|&row| (row, Exact::of(row, &arrays))).collect();
        let options = Options { device: Some(device), ..Options::default() };
        for case in CASES {
            let (name, _, text) = case;
            let call = call(case, [dim, 1]);
            let what = format!("{name} of {text}, {m} x {n}, D = {dim}");
            let said = call.explain(&arrays.each_ref(), &options).expect(&what);
            let blocks = said.lines().find(|line| line.starts_with("blocks")).unwrap_or_default();
            assert!(blocks.contains(" 3 of "), "{what}: {blocks}");
            if is_card(device) {
                assert_form(&what, &said, case, [dim, 1], offset);
            }
            let got = call.call_with(&arrays.each_ref(), &options).expect(&what);
            after_first_calls(device);
            let states = call.partial(&arrays.each_ref(), FIRST, &options).expect(&what);
            let states = states.finish().expect(&what);
            alike(&what, name, &states, &got, FIRST);
            for (row, exact) in &rows {
                exact.check(&what, *row, case, &got, 0);
                exact.check(&what, *row, case, &states, FIRST);
            }
        }
    }
}
