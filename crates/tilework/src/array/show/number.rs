//! Elements as text: one format for all numbers of an array, so that they stand in columns.
//!
//! The rules are NumPy's: a first look at all numbers decides between positional and scientific
//! notation and finds the widths, a second one prints. Called by the parent module with the
//! elements that are shown and no others; may assume nothing of their values.

use tilework_ops::{Complex, DType, bf16, f16};

use super::digits::{Digits, Stop, digits};
use super::{FloatMode, PrintOptions, Sign};

/// How trailing zeros of a fraction are dealt with.
#[derive(Clone, Copy, PartialEq)]
enum Zeros {
    /// Filled up to this many digits.
    Fill(usize),
    /// Cut.
    Cut,
}

/// The parts of a number's text before and after the point, the sign with the former, and the
/// exponent with its sign, where there is one.
struct Parts {
    whole: String,
    fraction: String,
    exponent: Option<i32>,
}

fn sign(value: f64, plus: bool) -> &'static str {
    match (value.is_sign_negative(), plus) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => "",
    }
}

fn decimal(digits: &[u8]) -> String {
    digits.iter().map(|digit| (b'0' + digit) as char).collect()
}

fn finish(mut fraction: String, zeros: Zeros) -> String {
    fraction.truncate(fraction.trim_end_matches('0').len());
    if let Zeros::Fill(count) = zeros {
        let missing = count.saturating_sub(fraction.len());
        fraction.extend(std::iter::repeat_n('0', missing));
    }
    fraction
}

fn positional(value: f64, dtype: DType, stop: Stop, zeros: Zeros, plus: bool) -> Parts {
    let Digits { digits, first } = digits(value.abs(), dtype, Stop { from_point: true, ..stop });
    let whole_len = usize::try_from(first + 1).unwrap_or(0);
    let mut whole = decimal(&digits[..whole_len.min(digits.len())]);
    let zeros_left = whole_len.max(1).saturating_sub(whole.len());
    whole.extend(std::iter::repeat_n('0', zeros_left));
    let mut fraction = "0".repeat(usize::try_from(-1 - first).unwrap_or(0));
    fraction.push_str(&decimal(&digits[whole_len.min(digits.len())..]));
    let whole = format!("{}{whole}", sign(value, plus));
    Parts { whole, fraction: finish(fraction, zeros), exponent: None }
}

fn scientific(value: f64, dtype: DType, stop: Stop, zeros: Zeros, plus: bool) -> Parts {
    let Digits { digits, first } = digits(value.abs(), dtype, Stop { from_point: false, ..stop });
    Parts {
        whole: format!("{}{}", sign(value, plus), digits[0]),
        fraction: finish(decimal(&digits[1..]), zeros),
        exponent: Some(first),
    }
}

/// `e+05`: the exponent with a sign and at least this many digits.
fn exponent_text(exponent: i32, least: usize) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:0least$}", exponent.unsigned_abs())
}

/// One format for real numbers of one dtype.
pub(super) struct Floats {
    dtype: DType,
    stop: Stop,
    zeros: Zeros,
    scientific: bool,
    pad_left: usize,
    pad_right: usize,
    exponent_digits: usize,
    plus: bool,
}

impl Floats {
    pub(super) fn new(values: &[f64], dtype: DType, options: &PrintOptions) -> Floats {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mode = options.float_mode;
        let precision = (mode != FloatMode::Unique).then_some(options.precision);
        let fixed = mode == FloatMode::Fixed;
        let plus = options.sign == Sign::Always;
        let stop = Stop { unique: !fixed, most: precision, least: 0, from_point: true };
        let zeros = if fixed { Zeros::Fill(options.precision) } else { Zeros::Cut };
        let scientific = is_scientific(&finite, dtype, options.suppress);
        let mut format = Floats {
            dtype,
            stop,
            zeros,
            scientific,
            pad_left: 0,
            pad_right: 0,
            exponent_digits: 2,
            plus,
        };
        for &value in &finite {
            let parts = format.parts(value);
            format.pad_left = format.pad_left.max(parts.whole.len());
            format.pad_right = format.pad_right.max(parts.fraction.len());
            if let Some(exponent) = parts.exponent {
                let digits = exponent_text(exponent, 2).len() - 2;
                format.exponent_digits = format.exponent_digits.max(digits);
            }
        }
        if scientific || matches!(mode, FloatMode::Fixed | FloatMode::MaxPrecisionEqual) {
            // All fractions as long as the longest, with the digits that the numbers really have.
            let count = format.pad_right;
            format.stop = Stop { most: Some(count), least: count, ..format.stop };
            format.zeros = Zeros::Fill(count);
        }
        if scientific && !finite.is_empty() {
            format.pad_right += format.exponent_digits + 2;
        }
        if options.sign == Sign::Space
            && !finite.is_empty()
            && !finite.iter().any(|value| value.is_sign_negative())
        {
            format.pad_left += 1;
        }
        if finite.len() != values.len() {
            let negative = options.sign != Sign::Negative || values.contains(&f64::NEG_INFINITY);
            let beside = format.pad_right + 1;
            let widest = 3 + usize::from(negative);
            format.pad_left = format.pad_left.max(widest.saturating_sub(beside));
        }
        format
    }

    fn parts(&self, value: f64) -> Parts {
        let print = if self.scientific { scientific } else { positional };
        print(value, self.dtype, self.stop, self.zeros, self.plus)
    }

    pub(super) fn text(&self, value: f64) -> String {
        if !value.is_finite() {
            let width = self.pad_left + self.pad_right + 1;
            let text = match (value.is_nan(), value < 0.0, self.plus) {
                (true, _, false) => "nan",
                (true, _, true) => "+nan",
                (false, true, _) => "-inf",
                (false, false, false) => "inf",
                (false, false, true) => "+inf",
            };
            return format!("{text:>width$}");
        }
        let Parts { whole, fraction, exponent } = self.parts(value);
        let left = self.pad_left;
        match exponent {
            Some(exponent) => {
                let exponent = exponent_text(exponent, self.exponent_digits);
                format!("{whole:>left$}.{fraction}{exponent}")
            }
            None => format!("{whole:>left$}.{fraction:<right$}", right = self.pad_right),
        }
    }
}

/// From which size on numbers are told by exponents: digits beyond those of the dtype would be
/// noise, so narrow dtypes change over earlier.
fn cutoff(dtype: DType, widest: f64) -> f64 {
    match dtype {
        DType::Float16 | DType::BFloat16 => 1e3,
        DType::Float32 | DType::Complex64 => 1e6,
        _ => widest,
    }
}

/// Whether numbers of such different sizes, or so large or small, are better told by exponents.
fn is_scientific(finite: &[f64], dtype: DType, suppress: bool) -> bool {
    let sizes = || finite.iter().map(|value| value.abs()).filter(|value| *value != 0.0);
    let (Some(largest), Some(smallest)) = (sizes().reduce(f64::max), sizes().reduce(f64::min))
    else {
        return false;
    };
    let narrow = |value: f64| match dtype {
        DType::Float16 => f16::from_f32(value as f32).to_f64(),
        DType::BFloat16 => bf16::from_f32(value as f32).to_f64(),
        DType::Float32 | DType::Complex64 => f64::from(value as f32),
        _ => value,
    };
    largest >= cutoff(dtype, 1e8)
        || !suppress && (smallest < narrow(1e-4) || narrow(largest / smallest) > 1000.0)
}

/// All elements of an array as texts of one width.
pub(super) fn floats(values: &[f64], dtype: DType, options: &PrintOptions) -> Vec<String> {
    let format = Floats::new(values, dtype, options);
    values.iter().map(|value| format.text(*value)).collect()
}

pub(super) fn complexes(
    values: &[Complex<f64>],
    dtype: DType,
    options: &PrintOptions,
) -> Vec<String> {
    let (re, im): (Vec<f64>, Vec<f64>) = values.iter().map(|value| (value.re, value.im)).unzip();
    let real = Floats::new(&re, dtype, options);
    let imaginary = Floats::new(&im, dtype, &PrintOptions { sign: Sign::Always, ..*options });
    let text = |value: &Complex<f64>| {
        let im = imaginary.text(value.im);
        let (shown, padding) = im.split_at(im.trim_end().len());
        format!("{}{shown}j{padding}", real.text(value.re))
    };
    values.iter().map(text).collect()
}

pub(super) fn integers(values: &[i128], sign: Sign) -> Vec<String> {
    let negative = values.iter().any(|value| *value < 0);
    let before = match sign {
        Sign::Always => "+",
        Sign::Space if !negative => " ",
        _ => "",
    };
    let text = |value: &i128| match *value {
        value if value < 0 => value.to_string(),
        value => format!("{before}{value}"),
    };
    let texts: Vec<String> = values.iter().map(text).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    texts.into_iter().map(|text| format!("{text:>width$}")).collect()
}

pub(super) fn booleans(values: &[bool], scalar: bool) -> Vec<String> {
    let yes = if scalar { "True" } else { " True" };
    values.iter().map(|value| if *value { yes } else { "False" }.to_string()).collect()
}

/// A number that stands alone: all its digits, and a zero after the point.
pub(super) fn lone_float(value: f64, dtype: DType) -> String {
    lone(value, dtype, false, ".0")
}

/// A complex number that stands alone.
pub(super) fn lone_complex(value: Complex<f64>, dtype: DType) -> String {
    let imaginary = |plus| lone(value.im, dtype, plus, "");
    if value.re == 0.0 && value.re.is_sign_positive() {
        return format!("{}j", imaginary(false));
    }
    format!("({}{}j)", lone(value.re, dtype, false, ""), imaginary(true))
}

fn lone(value: f64, dtype: DType, plus: bool, whole_ends: &str) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        let sign = if value.is_nan() && !plus { "" } else { sign(value, plus) };
        let sign = if value.is_nan() && plus { "+" } else { sign };
        return format!("{sign}{name}");
    }
    let stop = Stop { unique: true, most: None, least: 0, from_point: true };
    let size = value.abs();
    if size == 0.0 || (1e-4..cutoff(dtype, 1e16)).contains(&size) {
        let Parts { whole, fraction, .. } = positional(value, dtype, stop, Zeros::Cut, plus);
        return if fraction.is_empty() {
            format!("{whole}{whole_ends}")
        } else {
            format!("{whole}.{fraction}")
        };
    }
    let Parts { whole, fraction, exponent } = scientific(value, dtype, stop, Zeros::Cut, plus);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{whole}{point}{fraction}{}", exponent_text(exponent.unwrap_or(0), 2))
}
