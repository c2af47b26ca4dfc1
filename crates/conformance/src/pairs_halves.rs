//! Points in half precision: a formula is computed in float32, of their widened numbers, in the form that points of
//! float32 have at the same sizes, and its results are rounded once.

use tilework::pairs::{Genred, Options, Reduced, Scheme};
use tilework::{Array, DType, Device, Rng};

use crate::each;
use crate::pairs::{after_first_calls, is_card};
use crate::pairs_bounds::form_of;
use crate::pairs_sizes::agree;

/// A reduction, of points of so many components, and about the fewest rows and j at which cards expand squares, on tensor
/// cores but for the last; on the CPU a few rows are enough.
type Case =
    (&'static str, Option<usize>, &'static str, Option<&'static str>, usize, (usize, usize));

const CASES: [Case; 9] = [
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", None, 64, (1703, 1709)),
    ("LogSumExp", None, "b - SqDist(x,y) * s", None, 40, (2111, 2113)),
    ("LogSumExp", None, "-SqDist(x,y) * s", None, 100, (2777, 2801)),
    ("SumSoftMaxWeight", None, "(x|y) * s", Some("b"), 64, (1703, 1709)),
    ("ArgMin", None, "SqDist(x,y)", None, 64, (3109, 3119)),
    ("KMin_ArgKMin", Some(3), "SqDist(x,y)", None, 100, (3511, 3517)),
    ("Sum", None, "Grad(Exp(-SqDist(x,y) * s) * b, x, b)", None, 40, (2309, 2311)),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * w", None, 3, (3607, 3613)),
    ("Sum", None, "Grad(Exp(-SqDist(x,y) * s) * b, x, b)", None, 3, (20_003, 8009)),
];

/// Calls of halves against the same of their widened numbers, with the same form.
pub fn halves(device: Device) {
    let cases = CASES.into_iter().flat_map(|case| {
        [DType::Float16, DType::BFloat16].into_iter().map(move |dtype| (case, dtype))
    });
    each(cases, |(case, dtype)| check(device, case, dtype));
}

fn check(device: Device, (name, k, text, weight, dim, (m, n)): Case, dtype: DType) {
    let what = format!("{name} of {text}, {dim} components of {dtype}");
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)", "w = Vj(16)"];
    let call = Genred::with(text, &aliases, name, 1, k, weight).expect(&what);
    let m = if is_card(device) { m } else { 37 };
    let rng = Rng::new(21);
    let draw = |rows: usize, dim: usize| {
        let numbers = rng.normal(&[rows, dim], DType::Float64).expect(&what);
        numbers.astype(dtype).and_then(|x| x.to_device(device)).expect(&what)
    };
    let s = Array::full_on(device, &[1], 0.5 / dim as f64, dtype).expect(&what);
    let halves = [draw(m, dim), draw(n, dim), s, draw(n, 1), draw(n, 16)];
    let widened = halves.each_ref().map(|x| x.astype(DType::Float32).expect(&what));
    let (halves, widened) = (halves.each_ref(), widened.each_ref());
    let options = Options::default();
    let of = |arrays: &[&Array; 5]| -> Reduced {
        let first = call.call_with(arrays, &options).expect(&what);
        after_first_calls(device);
        let again = call.call_with(arrays, &options).expect(&what);
        agree(&what, &again, &first, 0.0);
        again
    };
    let (got, mut expected) = (of(&halves), of(&widened));
    expected.values = expected.values.map(|values| values.astype(dtype).expect(&what));
    // A step of the type: sums may be taken in another order, and end on either side of its middle.
    let step = if dtype == DType::Float16 { 1.0 / 1024.0 } else { 1.0 / 128.0 };
    agree(&what, &got, &expected, step);
    for scheme in [Scheme::OneD, Scheme::TwoD] {
        let cut = call.call_with(&halves, &Options { scheme, ..options }).expect(&what);
        agree(&format!("{what}, {scheme:?}"), &cut, &got, step);
    }
    if is_card(device) {
        let said = |arrays: &[&Array; 5]| call.explain(arrays, &options).expect(&what);
        let [of_halves, of_widened] = [said(&halves), said(&widened)];
        let form = form_of(&of_halves).split(':').next();
        assert_eq!(form, form_of(&of_widened).split(':').next(), "{what}");
        // A card with these tensor cores expands all of them.
        let expanded = form.is_some_and(|form| !form.contains("direct"));
        assert!(expanded || !of_halves.contains(", 132 multiprocessors,"), "{what}: {form:?}");
    }
}
