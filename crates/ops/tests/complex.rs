//! The complex functions against mpmath's values (`data/complex`) and the standard's special cases
//! (`data/standard`). `cargo test -p tilework-ops --test complex -- --nocapture` prints the errors.

use num_complex::Complex;
use std::path::{Path, PathBuf};
use tilework_ops::complex;

#[path = "standard_table.rs"]
mod standard_table;

use standard_table::Kind;

type C64 = Complex<f64>;
type Unary = fn(C64) -> C64;
type Binary = fn(C64, C64) -> C64;

const UNARY: &[(&str, Unary)] = &[
    ("exp", complex::exp),
    ("exp2", complex::exp2),
    ("expm1", complex::expm1),
    ("log", complex::log),
    ("log2", complex::log2),
    ("log10", complex::log10),
    ("log1p", complex::log1p),
    ("sqrt", complex::sqrt),
    ("rsqrt", complex::rsqrt),
    ("sin", complex::sin),
    ("cos", complex::cos),
    ("tan", complex::tan),
    ("sinh", complex::sinh),
    ("cosh", complex::cosh),
    ("tanh", complex::tanh),
    ("asin", complex::asin),
    ("acos", complex::acos),
    ("atan", complex::atan),
    ("asinh", complex::asinh),
    ("acosh", complex::acosh),
    ("atanh", complex::atanh),
    ("reciprocal", complex::reciprocal),
    ("sigmoid", complex::sigmoid),
    ("sign", complex::sign),
    ("square", complex::square),
    ("round", complex::round),
];

const BINARY: &[(&str, Binary)] =
    &[("pow", complex::pow), ("divide", complex::div), ("multiply", complex::mul)];

/// The bound on the error of every function, in units of 2⁻⁵² of the result's modulus.
const NORMWISE: f64 = 4.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of one mpmath table: operands and value.
fn table(name: &str) -> Vec<(Vec<C64>, C64)> {
    let path = root().join("data/complex").join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let numbers = |side: &str| -> Vec<C64> {
        let parts: Vec<f64> = side
            .split_whitespace()
            .map(|word| f64::from_bits(u64::from_str_radix(word, 16).expect("hex bits")))
            .collect();
        parts.chunks(2).map(|p| C64::new(p[0], p[1])).collect()
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (operands, value) = line.split_once("->").expect("an arrow");
            (numbers(operands), numbers(value)[0])
        })
        .collect()
}

/// Errors in units of 2⁻⁵²: of the number, and the larger of its parts' own.
struct Errors {
    normwise: f64,
    partwise: f64,
}

/// A modulus is taken to be no smaller than the least normal number, below which the units are
/// those of subnormal numbers.
fn errors(got: C64, want: C64) -> Errors {
    let unit = |size: f64| size.max(f64::MIN_POSITIVE) * f64::EPSILON;
    let part = |g: f64, w: f64| {
        if g == w {
            0.0
        } else if g.is_finite() && w.is_finite() {
            // Halved, since the difference may overflow.
            (g * 0.5 - w * 0.5).abs() / unit(w.abs() * 0.5).max(f64::MIN_POSITIVE * f64::EPSILON)
        } else {
            f64::INFINITY
        }
    };
    let partwise = part(got.re, want.re).max(part(got.im, want.im));
    let modulus = want.re.hypot(want.im);
    let finite = [got.re, got.im, want.re, want.im].iter().all(|x| x.is_finite());
    let normwise = if partwise == 0.0 {
        0.0
    } else if finite && modulus.is_finite() {
        (got - want).norm() / unit(modulus)
    } else {
        // With an infinite part, or one near overflow, the parts speak for themselves.
        partwise
    };
    Errors { normwise, partwise }
}

fn check_table(name: &str, f: impl Fn(&[C64]) -> C64) {
    let rows = table(name);
    assert!(rows.len() >= 140, "{name}: {} rows", rows.len());
    let (mut worst, mut worst_part, mut where_part) = (0.0f64, 0.0f64, String::new());
    let mut failures = Vec::new();
    for (operands, want) in &rows {
        let got = f(operands);
        let e = errors(got, *want);
        worst = worst.max(e.normwise);
        if e.partwise > worst_part {
            worst_part = e.partwise;
            where_part = format!("{operands:?} = {got:?}, not {want:?}");
        }
        let sign =
            |g: f64, w: f64| w == 0.0 && g == 0.0 && g.is_sign_negative() != w.is_sign_negative();
        let zero = operands.iter().any(|z| z.re == 0.0 || z.im == 0.0);
        let wrong_sign = zero && (sign(got.re, want.re) || sign(got.im, want.im));
        if e.normwise.is_nan() || e.normwise > NORMWISE || wrong_sign {
            failures.push(format!("{name}{operands:?} = {got:?}, not {want:?}: {}", e.normwise));
        }
    }
    println!("{name:>10}: normwise {worst:.2}, parts {worst_part:.2e} ({} rows)", rows.len());
    if worst_part > 2.0 * NORMWISE {
        println!("{:>12}parts lost at {where_part}", "");
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), rows.len(), failures.join("\n"));
}

#[test]
fn unary_functions_agree_with_mpmath() {
    let mut failed = Vec::new();
    for (name, f) in UNARY.iter().filter(|(name, _)| !["square", "round"].contains(name)) {
        if let Err(e) = std::panic::catch_unwind(|| check_table(name, |z| f(z[0]))) {
            failed.push(e.downcast_ref::<String>().cloned().unwrap_or_default());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn powers_agree_with_mpmath() {
    check_table("pow", |z| complex::pow(z[0], z[1]));
}

#[test]
fn quotients_agree_with_mpmath() {
    check_table("div", |z| complex::div(z[0], z[1]));
}

#[test]
fn special_cases_are_those_of_the_standard() {
    let rows = standard_table::all(&root());
    let mut checked = 0;
    let mut failures = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Complex) {
        let operands: Vec<C64> = row.operands.iter().map(|o| C64::new(o[0], o[1])).collect();
        let name = row.function.as_str();
        let got = if let Some((_, f)) = UNARY.iter().find(|(n, _)| *n == name) {
            let w = f(operands[0]);
            vec![w.re, w.im]
        } else if let Some((_, f)) = BINARY.iter().find(|(n, _)| *n == name) {
            let w = f(operands[0], operands[1]);
            vec![w.re, w.im]
        } else if name == "abs" {
            vec![complex::abs(operands[0])]
        } else {
            continue;
        };
        checked += 1;
        if !row.expected.admits(&got, 4.0 * f64::EPSILON) {
            failures.push(format!("{} but got {got:?}", row.text));
        }
    }
    println!("{checked} special cases of complex numbers");
    assert!(checked > 900, "{checked} rows");
    assert!(failures.is_empty(), "{} rows:\n{}", failures.len(), failures.join("\n"));
}

/// The values NumPy 2.4 gives, where the standard leaves the choice.
#[test]
fn quotients_and_powers_of_special_values_are_numpys() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let z = C64::new;
    let same = |got: C64, re: f64, im: f64| {
        let part = |g: f64, w: f64| (g.is_nan() && w.is_nan()) || g.to_bits() == w.to_bits();
        assert!(part(got.re, re) && part(got.im, im), "{got:?}, not {re} {im}");
    };
    same(complex::div(z(1.0, 1.0), z(0.0, 0.0)), inf, inf);
    same(complex::div(z(-1.0, 0.0), z(-0.0, 0.0)), -inf, nan);
    same(complex::div(z(0.0, 0.0), z(0.0, 0.0)), nan, nan);
    same(complex::div(z(1.0, 1.0), z(inf, 0.0)), 0.0, 0.0);
    same(complex::div(z(1.0, 1.0), z(inf, inf)), nan, nan);
    same(complex::div(z(inf, 1.0), z(2.0, 0.0)), inf, nan);
    same(complex::div(z(-0.0, -0.0), z(1.0, 0.0)), -0.0, 0.0);
    same(complex::reciprocal(z(0.0, 0.0)), inf, nan);
    same(complex::reciprocal(z(-inf, 0.0)), -0.0, -0.0);
    same(complex::mul(z(inf, 1.0), z(0.0, 1.0)), nan, inf);
    same(complex::pow(z(0.0, 0.0), z(0.0, 0.0)), 1.0, 0.0);
    same(complex::pow(z(0.0, 0.0), z(-1.0, 0.0)), nan, nan);
    same(complex::pow(z(0.0, 0.0), z(1.0, 1.0)), 0.0, 0.0);
    same(complex::pow(z(nan, inf), z(0.0, 0.0)), 1.0, 0.0);
    same(complex::pow(z(-2.0, 0.0), z(3.0, 0.0)), -8.0, 0.0);
    same(complex::pow(z(-2.0, -0.0), z(2.0, 0.0)), 4.0, 0.0);
    same(complex::sign(z(inf, 1.0)), 1.0, 0.0);
    same(complex::sign(z(inf, inf)), nan, nan);
    same(complex::sign(z(-0.0, 0.0)), 0.0, 0.0);
}

#[test]
fn exponentials_of_special_values_without_a_table() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(complex::exp2(C64::new(f64::NEG_INFINITY, nan)), C64::new(0.0, 0.0));
    assert_eq!(complex::exp2(C64::new(3.0, 0.0)), C64::new(8.0, 0.0));
    assert_eq!(complex::sigmoid(C64::new(inf, 1.0)), C64::new(1.0, 0.0));
    assert_eq!(complex::sigmoid(C64::new(-inf, 1.0)), C64::new(0.0, 0.0));
    assert!(complex::sigmoid(C64::new(nan, 1.0)).re.is_nan());
}

/// Numbers that look random.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The modulus of integers against the exact sum of their squares: within 0.51 ulp, and the same for
/// all powers of two that scale it.
#[test]
fn moduli_are_rounded_almost_correctly() {
    let mut state = 88_172_645_463_325_252;
    for _ in 0..100_000 {
        // Of 53 bits, so that the modulus is an integer, with a last place of one or two.
        let x = next(&mut state) >> 11 | 1 << 52;
        let shift = next(&mut state) % 53;
        let y = next(&mut state) >> (11 + shift);
        let (a, b) = (x as f64, -(y as f64));
        let got = complex::abs(C64::new(b, a));
        let half = if got >= 2f64.powi(53) { 102 } else { 51 };
        let exact = 10_000 * (u128::from(x).pow(2) + u128::from(y).pow(2));
        let hundredfold = 100 * got as u128;
        assert!(
            (hundredfold - half).pow(2) <= exact && exact <= (hundredfold + half).pow(2),
            "|{x} + {y}i| = {got}"
        );
        for power in [-1074, -900, -453, -452, 0, 346, 349, 900, 969] {
            // In two steps, as neither factor may be subnormal or infinite.
            let scaled = |x: f64| x * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
            assert_eq!(complex::abs(C64::new(scaled(a), scaled(b))), scaled(got), "2^{power}");
        }
    }
}

#[test]
fn moduli_at_the_edges() {
    let (inf, nan, least) = (f64::INFINITY, f64::NAN, f64::from_bits(1));
    let abs = |re: f64, im: f64| complex::abs(C64::new(re, im));
    for x in [0.0, least, 3.0 * least, f64::MIN_POSITIVE, 1e-160, 0.1, 1e160, f64::MAX] {
        assert_eq!((abs(x, 0.0), abs(-0.0, -x), abs(-x, -0.0)), (x, x, x));
        assert!(abs(x, nan).is_nan() && abs(nan, -x).is_nan());
        assert_eq!(
            (abs(x, -inf), abs(-inf, x), abs(inf, nan), abs(nan, -inf)),
            (inf, inf, inf, inf)
        );
    }
    assert!(abs(0.0, -0.0).is_sign_positive());
    assert_eq!(abs(3.0 * least, 4.0 * least), 5.0 * least);
    assert_eq!(abs(3e307, -4e307), 5e307);
    assert_eq!((abs(f64::MAX, f64::MAX), abs(f64::MAX, 1e292)), (inf, f64::MAX));
}

/// What was single is computed without scaling, and rounds to what the scaled form rounds to.
#[test]
fn single_precision_needs_no_scaling() {
    let mut state = 7;
    for _ in 0..100_000 {
        let parts = next(&mut state);
        let z = C64::new(
            f32::from_bits(parts as u32).into(),
            f32::from_bits((parts >> 32) as u32).into(),
        );
        let same = |a: f64, b: f64| (a.is_nan() && b.is_nan()) || a as f32 == b as f32;
        let (plain, scaled) = (complex::modulus(z, true), complex::modulus(z, false));
        assert!(same(plain, scaled), "|{z:?}|: {plain}, not {scaled}");
        let (plain, scaled) = (complex::root(z, true), complex::root(z, false));
        let alike = same(plain.re, scaled.re) && same(plain.im, scaled.im);
        assert!(alike, "root of {z:?}: {plain}, not {scaled}");
    }
}

/// Roots of zeros, and of numbers whose squares leave the range or whose parts are far apart.
#[test]
fn roots_at_the_edges() {
    let least = f64::from_bits(1);
    let same = |re: f64, im: f64, want: C64| {
        let got = complex::sqrt(C64::new(re, im));
        let bits = |z: C64| (z.re.to_bits(), z.im.to_bits());
        assert!(bits(got) == bits(want), "sqrt({re} + {im}i) = {got:?}, not {want:?}");
    };
    for zero in [0.0, -0.0] {
        same(0.0, zero, C64::new(0.0, zero));
        same(-0.0, zero, C64::new(0.0, zero));
        for x in [4.0 * least, 4.0, 2f64.powi(1000), 2f64.powi(-1000)] {
            same(x, zero, C64::new(x.sqrt(), zero));
            same(-x, zero, C64::new(0.0, x.sqrt().copysign(zero)));
        }
    }
    // sqrt(2i) = 1 + i, scaled by even powers of two.
    for power in [-536, -300, -200, -1, 1, 200, 300, 511] {
        let part = 2f64.powi(power);
        same(0.0, 2.0 * part * part, C64::new(part, part));
        same(-0.0, -2.0 * part * part, C64::new(part, -part));
    }
    let (huge, tiny) = (2f64.powi(1000), 2f64.powi(-500));
    same(huge, tiny, C64::new(2f64.powi(500), 2f64.powi(-1001)));
    same(-huge, -tiny, C64::new(2f64.powi(-1001), -2f64.powi(500)));
    let largest = complex::sqrt(C64::new(f64::MAX, f64::MAX));
    assert!((largest.re / 1.473_094_556_905_565e154 - 1.0).abs() < 1e-15, "{largest:?}");
    assert!((largest.im / 6.101_757_441_282_702e153 - 1.0).abs() < 1e-15, "{largest:?}");
}
