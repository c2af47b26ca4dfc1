//! Random kernels as users write them, in float32 and over so many pairs that cards have a choice of all their forms:
//! some rows against the evaluator of formulas in float64.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tilework::formula::parse::formula;
use tilework::formula::{Axis, Expr, Reduction};
use tilework::pairs::{Genred, Options, Reduced};
use tilework::{Array, DType, Device, Rng, s};

use crate::each;
use crate::pairs::{after_first_calls, floats, is_card, within};
use crate::pairs_bounds::form_of;
use crate::pairs_random::Dice;

/// Components of points: those that threads keep several pairs of, those on either side of where tensor cores begin to
/// pay, those that take all registers, and those that come in chunks.
const DIMS: [usize; 5] = [3, 10, 24, 64, 80];

/// The most components of what is summed.
const WIDEST: usize = 80;

/// Rows that are checked.
const CHECKED: usize = 4;

/// What float32 may cost, relative to the sum of absolute terms: as much as is promised of an exponent.
const PROMISED: f64 = 1e-5;

/// What a card is to meet: formulas as they are written, squares that threads expand, and on Hopper's tensor cores squares,
/// inner products, filters of the smallest and right-hand sides.
const FORMS: [&str; 6] =
    ["direct", "expanded", "squares", "products", "filters", "right-hand sides"];

/// Which of them an explanation is of.
fn met(said: &str) -> Vec<&'static str> {
    let form = form_of(said);
    let has = |part: &str| form.contains(part);
    let mut all = vec![match has("tensor cores") {
        true if has("a filter within") => "filters",
        true if has("inner product") => "products",
        true => "squares",
        false if has("expanded square") => "expanded",
        false => "direct",
    }];
    all.extend(said.lines().any(|line| line.starts_with("right ")).then_some("right-hand sides"));
    all
}

/// A reduction, and what its errors are relative to.
struct Asked {
    name: &'static str,
    k: Option<usize>,
    formula: String,
    weight: Option<String>,
    /// The size of a term, of as many components as a result has; of extremes that of a value. Nothing for logarithms of
    /// sums, whose errors are relative to one.
    size: Option<String>,
}

/// A call and its variables: x and e of the rows that stay, y, b and c of those that are reduced, and s.
struct Case {
    what: String,
    asked: Asked,
    aliases: [String; 6],
    axis: Axis,
    here: [Array; 6],
    rows: [usize; 2],
}

/// An exponent of an inner product, which are the first two, or of a square, with a bias or without; and what multiplies
/// either of them: a parameter or a number.
fn exponent(dice: &mut Dice, dim: usize, texts: usize) -> (String, String) {
    let scale = match dice.below(4) {
        0 => format!("{:.4}", (0.1 + 1.4 * dice.roll()) / dim as f64),
        _ => "s".to_owned(),
    };
    let text = match dice.below(texts) {
        0 => format!("(x|y) * {scale}"),
        1 => format!("(x|y) * {scale} + c"),
        2 => format!("c - SqDist(x,y) * {scale}"),
        3 => format!("-(SqDist(x,y) * {scale}) + c"),
        _ => format!("-SqDist(x,y) * {scale}"),
    };
    (text, scale)
}

/// What is asked of the points about a place, by the number of its kind.
fn asked(dice: &mut Dice, kind: u64, dim: usize, place: f64) -> Asked {
    let (exponent, scale) = exponent(dice, dim, if kind == 4 { 2 } else { 6 });
    let plain = |name, k, formula: &str, size: &str| Asked {
        name,
        k,
        formula: formula.to_owned(),
        weight: None,
        size: Some(size.to_owned()),
    };
    let kernel = format!("Exp({exponent})");
    // Differences may be made of sums of either point about a centre, so they count as much as those do.
    let slope = match exponent.contains("SqDist") {
        true => format!("2 * (Abs(x - {place}) + Abs(y - {place}))"),
        false => "Abs(y)".to_owned(),
    };
    // The incoming gradient is one of the rows that stay, or as if it were one of the others.
    let e = ["e", "b"][dice.below(2)];
    let slope = format!("{kernel} * {scale} * (Abs(b)|Abs({e})) * {slope}");
    let value = format!("{kernel} * b");
    let gradient = format!("Grad({value}, x, {e})");
    let sizes = format!("{kernel} * Abs(b)");
    let k = [1, 3, 10, 16, 20][dice.below(5)];
    match kind {
        0 => plain("Sum", None, &value, &sizes),
        1 => plain("Sum", None, &gradient, &slope),
        2 => plain(
            "Sum",
            None,
            &format!("Concat({value}, {gradient})"),
            &format!("Concat({sizes}, {slope})"),
        ),
        3 => {
            let other = ["Exp(-Sqrt(SqDist(x,y) * s))", "Inv(1 + SqDist(x,y) * s)"];
            let other = other[dice.below(2)];
            plain("Sum", None, &format!("{other} * b"), &format!("{other} * Abs(b)"))
        }
        4 if dice.below(2) == 0 => plain("Sum", None, &value, &sizes),
        4 | 5 => Asked { name: "LogSumExp", k: None, formula: exponent, weight: None, size: None },
        6 => {
            let weight = dice.below(2);
            Asked {
                name: ["SumSoftMaxWeight", "LogSumExpWeight"][weight],
                k: None,
                formula: exponent,
                weight: Some(["b", "Square(b)"][weight].to_owned()),
                size: (weight == 0).then(|| "Abs(b)".to_owned()),
            }
        }
        // The smallest and the largest: squares alone are what filters are for.
        7 => plain(["Min_ArgMin", "ArgMin"][dice.below(2)], None, "SqDist(x,y)", "SqDist(x,y)"),
        8 => plain("KMin_ArgKMin", Some(k), "SqDist(x,y)", "SqDist(x,y)"),
        _ => {
            let (square, product) = ("SqDist(x,y) * s", "(Abs(x)|Abs(y)) * s");
            let all = [
                ("KMin_ArgKMin", format!("{square} + c"), format!("{square} + Abs(c)")),
                ("ArgKMin", format!("Sqrt({square})"), format!("Sqrt({square})")),
                ("KMax_ArgKMax", "(x|y) * s".to_owned(), product.to_owned()),
                ("ArgKMax", "(x|y) * s + c".to_owned(), format!("{product} + Abs(c)")),
            ];
            let (name, formula, size) = &all[dice.below(4)];
            plain(name, Some(k), formula, size)
        }
    }
}

/// Kinds of what is asked.
const KINDS: u64 = 10;

/// Seeds that meet every kind with points of every length.
pub const ALL: u64 = KINDS * DIMS.len() as u64;

impl Case {
    /// The case of a seed, with about so many rows of either side.
    fn drawn(seed: u64, about: usize) -> Case {
        let mut dice = Dice::new(5000 + seed);
        let dim = DIMS[(seed % DIMS.len() as u64) as usize];
        let axis = [Axis::I, Axis::J][dice.below(2)];
        let [m, n] = [(); 2].map(|()| about - about / 20 + dice.below(about / 2));
        let kind = seed / DIMS.len() as u64 % KINDS;
        let width = if kind > 0 && dice.below(2) == 0 { 1 } else { 1 + dice.below(WIDEST) };
        let place = [0.0, 0.0, 3.0][dice.below(3)];
        let asked = asked(&mut dice, kind, dim, place);
        // Inner products are of the size of the scale about the origin only.
        let product = asked.formula.contains("(x|y)");
        let (place, length) = match product {
            true => (0.0, (dim as f64).sqrt()),
            false => (place, dim as f64),
        };
        let scale = (0.1 + 1.4 * dice.roll()) / length;
        let rng = Rng::new(6000 + seed);
        let normal = |rows: usize, dim: usize, place: f64| {
            let numbers = rng.normal(&[rows, dim], DType::Float32).and_then(|x| x.add(place));
            numbers.expect("normal")
        };
        let here = [
            normal(m, dim, place),
            normal(n, dim, place),
            normal(n, width, 0.0),
            normal(n, 1, 0.0),
            normal(m, width, 0.0),
            Array::full(&[1], scale, DType::Float32).expect("full"),
        ];
        let [kept, reduced] = if axis == Axis::J { ["Vi", "Vj"] } else { ["Vj", "Vi"] };
        let aliases = [
            format!("x = {kept}({dim})"),
            format!("y = {reduced}({dim})"),
            format!("b = {reduced}({width})"),
            format!("c = {reduced}(1)"),
            format!("e = {kept}({width})"),
            "s = Pm(1)".to_owned(),
        ];
        let what = format!(
            "kernel {seed}: {} of {}, K = {:?}, weight {:?}, {m} x {n}, D = {dim}, width {width}, about {place}, \
             s = {scale:.4}, over {axis:?}",
            asked.name, asked.formula, asked.k, asked.weight
        );
        Case { what, asked, aliases, axis, here, rows: [m, n] }
    }

    fn aliases(&self) -> [&str; 6] {
        self.aliases.each_ref().map(String::as_str)
    }

    /// The call, on the reduced axis.
    fn call(&self) -> Genred {
        let Asked { name, k, formula, weight, .. } = &self.asked;
        let axis = if self.axis == Axis::J { 1 } else { 0 };
        Genred::with(formula, &self.aliases(), name, axis, *k, weight.as_deref()).expect(&self.what)
    }

    /// The rows that are checked: the first, the last, and some between them.
    fn checked(&self) -> [usize; CHECKED] {
        let last = self.rows[0] - 1;
        [0, last / 3, last - last / 4, last]
    }

    /// The numbers of all variables, with those rows only of what stays.
    fn numbers(&self) -> [Vec<f64>; 6] {
        let kept = |x: &Array| {
            let rows = self.checked().map(|row| {
                let row = row as isize;
                floats(&x.slice(&s![row..row + 1]).expect("slice"))
            });
            rows.concat()
        };
        let [x, y, b, c, e, s] = &self.here;
        [kept(x), floats(y), floats(b), floats(c), kept(e), floats(s)]
    }

    fn parsed(&self, text: &str) -> Expr {
        formula(text, &self.aliases()).expect(text)
    }

    /// What a reduction of a formula gives for the rows that are checked.
    fn oracle(&self, name: &str, formula: &str, weight: Option<&str>) -> Vec<f64> {
        let (formula, weight) = (self.parsed(formula), weight.map(|text| self.parsed(text)));
        let reduction = Reduction::new(name, &formula, self.axis, None, weight.as_ref());
        let numbers = self.numbers();
        let numbers = numbers.each_ref().map(Vec::as_slice);
        let n = self.rows[1];
        let (m, n) = if self.axis == Axis::J { (CHECKED, n) } else { (n, CHECKED) };
        reduction.and_then(|it| it.evaluate(&numbers, m, n)).expect(&self.what).0
    }

    fn check(&self, got: &Reduced) {
        match (&got.indices, self.asked.k) {
            (None, None) => self.check_sums(got.values.as_ref().expect("values")),
            _ => self.check_extremes(got),
        }
    }

    /// The rows of a result that are checked, one after the other.
    fn taken(&self, all: &Array) -> Vec<f64> {
        let rows = self.checked().map(|row| floats(&all.slice(&s![row as isize]).expect("slice")));
        rows.concat()
    }

    fn check_sums(&self, got: &Array) {
        let Asked { name, formula, weight, size, .. } = &self.asked;
        // Values and their sizes at once, one behind the other in every row.
        let both =
            |of: &str| size.as_ref().map_or(of.to_owned(), |by| format!("Concat({of}, {by})"));
        let all = match weight {
            Some(weight) => self.oracle(name, formula, Some(&both(weight))),
            None => self.oracle(name, &both(formula), None),
        };
        let (mut expected, mut allowed) = (Vec::new(), Vec::new());
        for row in all.chunks_exact(all.len() / CHECKED) {
            let (values, sizes) =
                row.split_at(if size.is_some() { row.len() / 2 } else { row.len() });
            expected.extend(values);
            match size {
                Some(_) => allowed.extend(sizes.iter().map(|size| PROMISED * size)),
                None => allowed.extend(values.iter().map(|value| PROMISED * (1.0 + value.abs()))),
            }
        }
        within(&self.what, &self.taken(got), &expected, &allowed);
    }

    /// The best are no worse than those of all values, rank by rank. Which of two that float32 cannot tell apart comes
    /// first is nobody's promise.
    fn check_extremes(&self, got: &Reduced) {
        let k = self.asked.k.unwrap_or(1);
        let sign = if self.asked.name.contains("Max") { -1.0 } else { 1.0 };
        let size = self.asked.size.as_ref().expect("a size");
        let roots = [&self.asked.formula, size].map(|text| self.parsed(text));
        let [x, y, b, c, e, s] = self.numbers();
        let [dim, width] = [&self.here[1], &self.here[2]].map(|of| of.shape()[1]);
        let found = got.indices.as_ref().map(|at| self.taken(at));
        let values = got.values.as_ref().map(|values| self.taken(values));
        for row in 0..CHECKED {
            let x = &x[row * dim..(row + 1) * dim];
            let e = &e[row * width..(row + 1) * width];
            let at = |j: usize| {
                let (y, b) = (&y[j * dim..(j + 1) * dim], &b[j * width..(j + 1) * width]);
                let both = Expr::evaluate_all(&roots, &[x, y, b, &c[j..j + 1], e, &s]);
                let both = both.expect(&self.what);
                (sign * both[0][0], PROMISED * both[1][0])
            };
            let all: Vec<(f64, f64)> = (0..self.rows[1]).map(at).collect();
            let mut best = all.clone();
            best.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let what = format!("{}: row {row} of those checked", self.what);
            let (expected, allowed): (Vec<f64>, Vec<f64>) = best[..k].iter().copied().unzip();
            if let Some(values) = &values {
                let values: Vec<f64> = values[row * k..][..k].iter().map(|x| sign * x).collect();
                within(&what, &values, &expected, &allowed);
            }
            if let Some(found) = &found {
                let found: Vec<usize> =
                    found[row * k..][..k].iter().map(|&at| at as usize).collect();
                let different: HashSet<&usize> = found.iter().collect();
                assert_eq!(different.len(), k, "{what}: {found:?}");
                // Either of two that change places errs.
                let (there, theirs): (Vec<f64>, Vec<f64>) = found.iter().map(|&at| all[at]).unzip();
                let both: Vec<f64> = allowed.iter().zip(theirs).map(|(a, b)| a + b).collect();
                within(&format!("{what}, by indices"), &there, &expected, &both);
            }
        }
    }
}

/// Kernels of seeds, with about so many rows of either side. Cards are to meet all of their forms.
pub fn random_kernels(device: Device, seeds: Range<u64>, about: usize) {
    let first = Mutex::new(Vec::new());
    each(seeds, |seed| {
        let case = Case::drawn(seed, about);
        let there = case.here.each_ref().map(|x| x.to_device(device).expect("to_device"));
        let call = case.call();
        let got = call.call_with(&there.each_ref(), &Options::default()).expect(&case.what);
        case.check(&got);
        first.lock().unwrap_or_else(PoisonError::into_inner).push((case.what, call, there, got));
    });
    let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What is compiled behind first calls gives the same bits.
    after_first_calls(device);
    each(&first, |(what, call, there, first)| {
        let again = call.call_with(&there.each_ref(), &Options::default()).expect(what);
        for (first, again) in [(&first.values, &again.values), (&first.indices, &again.indices)] {
            let bits =
                |of: &Array| -> Vec<u64> { floats(of).iter().map(|x| x.to_bits()).collect() };
            assert!(first.as_ref().map(bits) == again.as_ref().map(bits), "{what}: other bits");
        }
    });
    let said = first.iter().map(|(what, call, there, _)| {
        call.explain(&there.each_ref(), &Options::default()).expect(what)
    });
    let met: Vec<&str> = said.flat_map(|said| met(&said)).collect();
    let is_hopper = device.properties().contains(&("capability", "9.0".to_owned()));
    let required = if is_hopper { FORMS.len() } else { 2 };
    for form in FORMS[..required].iter().filter(|_| is_card(device)) {
        assert!(met.contains(form), "no kernel had {form}: {met:?}");
    }
}
