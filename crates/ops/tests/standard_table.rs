//! Reads the special-case tables of `data/standard`; other tests include this file as a module.
//!
//! The format is described in `scripts/standard_special_cases.py`, which also holds the parser for
//! Python. A test takes [`all`], applies its function to the operands, and asks [`Expected`].

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::f64::consts::PI;
use std::path::Path;

/// What the operands of a row are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Real numbers.
    Real,
    /// Complex numbers.
    Complex,
    /// One list of real numbers, to be reduced; the correction is for std and var.
    Reduce { correction: f64 },
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The standard's name of the function.
    pub function: String,
    /// What the operands are.
    pub kind: Kind,
    /// The operands: one number each if real, two parts if complex, any number of a list.
    pub operands: Vec<Vec<f64>>,
    /// What the standard says of the result.
    pub expected: Expected,
    /// The line, for messages.
    pub text: String,
}

/// What a result must be: for each part, any of some choices.
#[derive(Clone, Debug)]
pub struct Expected {
    parts: Vec<Vec<Choice>>,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Truth(bool),
    /// Any number with this sign bit.
    Sign(bool),
    /// NaN, with this sign bit if one is given.
    Nan(Option<bool>),
    Number {
        value: f64,
        either_sign: bool,
    },
}

impl Choice {
    fn parse(token: &str) -> Choice {
        match token {
            "true" => Choice::Truth(true),
            "false" => Choice::Truth(false),
            "+" => Choice::Sign(false),
            "-" => Choice::Sign(true),
            "nan" => Choice::Nan(None),
            "+nan" => Choice::Nan(Some(false)),
            "-nan" => Choice::Nan(Some(true)),
            _ => Choice::Number {
                value: number(token.trim_start_matches('?')),
                either_sign: token.starts_with('?'),
            },
        }
    }

    fn admits(self, got: f64, tolerance: f64) -> bool {
        match self {
            Choice::Truth(truth) => (got != 0.0) == truth,
            Choice::Sign(negative) => !got.is_nan() && got.is_sign_negative() == negative,
            Choice::Nan(sign) => got.is_nan() && sign.is_none_or(|s| got.is_sign_negative() == s),
            Choice::Number { value, either_sign } => {
                let (got, value) =
                    if either_sign { (got.abs(), value.abs()) } else { (got, value) };
                if value == 0.0 || value.is_infinite() {
                    got.to_bits() == value.to_bits()
                } else {
                    (got - value).abs() <= tolerance * value.abs()
                }
            }
        }
    }
}

impl Expected {
    fn parse(text: &str) -> Expected {
        let part = |part: &str| part.split('|').map(Choice::parse).collect();
        Expected { parts: text.split(',').map(part).collect() }
    }

    /// Whether the parts of a result are admitted: one part for a real result, two for a complex
    /// one, 0 or 1 for a truth. Numbers may deviate by the relative tolerance; zeros, infinities
    /// and signs may not.
    pub fn admits(&self, got: &[f64], tolerance: f64) -> bool {
        self.parts.len() == got.len()
            && self
                .parts
                .iter()
                .zip(got)
                .all(|(choices, &x)| choices.iter().any(|c| c.admits(x, tolerance)))
    }
}

/// The value of one token: nan, inf, a decimal, or a multiple of pi.
fn number(token: &str) -> f64 {
    let Some((times, over)) = token.split_once("pi") else {
        // Rust may read "-nan" without its sign.
        return if token == "-nan" {
            -f64::NAN
        } else {
            token.parse().unwrap_or_else(|_| panic!("{token:?}"))
        };
    };
    let times = match times {
        "" => 1.0,
        "-" => -1.0,
        digits => digits.parse().expect("a count of pi"),
    };
    times * PI
        / over.strip_prefix('/').map_or(1.0, |digits| digits.parse().expect("a divisor of pi"))
}

fn parse_row(line: &str) -> Row {
    let (left, right) = line.split_once(" -> ").unwrap_or_else(|| panic!("no arrow: {line}"));
    let mut words = left.split_whitespace();
    let function = words.next().expect("a function").to_string();
    let kind = match words.next().expect("a kind") {
        "real" => Kind::Real,
        "complex" => Kind::Complex,
        other => {
            let (word, correction) = other.split_once(":correction=").unwrap_or((other, "0"));
            assert_eq!(word, "reduce", "{line}");
            Kind::Reduce { correction: number(correction) }
        }
    };
    let operand = |word: &str| {
        let items = word.trim_start_matches('[').trim_end_matches(']');
        items.split(',').filter(|item| !item.is_empty()).map(number).collect()
    };
    let expected = right.split('#').next().unwrap_or("").trim();
    Row {
        function,
        kind,
        operands: words.map(operand).collect(),
        expected: Expected::parse(expected),
        text: line.to_string(),
    }
}

/// All rows of all tables under the repository's root.
pub fn all(root: &Path) -> Vec<Row> {
    let folder = root.join("data/standard");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{folder:?}: {e}"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    let read = |path| std::fs::read_to_string(path).expect("a readable table");
    let texts: Vec<String> = paths.iter().map(read).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse_row).collect()
}

#[test]
fn every_row_is_readable() {
    let rows = all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    assert!(rows.len() > 3000, "{} rows", rows.len());
    for row in &rows {
        let parts = if row.kind == Kind::Complex { 2 } else { 1 };
        let list = matches!(row.kind, Kind::Reduce { .. });
        assert!(list || row.operands.iter().all(|o| o.len() == parts), "{}", row.text);
    }
}

#[test]
fn expectations_mean_what_the_format_says() {
    let admits = |text: &str, got: &[f64]| Expected::parse(text).admits(got, 1e-15);
    assert!(admits("0", &[0.0]) && !admits("0", &[-0.0]) && admits("?0", &[-0.0]));
    assert!(
        admits("nan", &[-f64::NAN])
            && !admits("+nan", &[-f64::NAN])
            && admits("-nan", &[-f64::NAN])
    );
    assert!(admits("-3pi/4,?inf", &[-0.75 * PI, f64::NEG_INFINITY]) && !admits("pi/2", &[1.5]));
    assert!(admits("+", &[0.0]) && !admits("+", &[-0.0]) && !admits("-", &[f64::NAN]));
    assert!(admits("-0|-1", &[-1.0]) && admits("-0|-1", &[-0.0]) && !admits("-0|-1", &[0.0]));
    assert!(admits("true", &[1.0]) && admits("false", &[0.0]) && !admits("nan,nan", &[f64::NAN]));
}
