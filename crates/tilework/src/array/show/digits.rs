//! Decimal digits of binary floating-point numbers, exactly.
//!
//! The classic method of Steele and White on big integers: the value and the half-way points to
//! its neighbours are kept as one fraction, from which digit after digit is taken until no other
//! number of the type is meant, or until a place where the caller wants to stop; there the exact
//! value is rounded, halves to the even digit. One method for all widths, so that float16 and
//! bfloat16 get their own shortest digits. Called by `number`; may assume finite values.

use std::cmp::Ordering;

use tilework_ops::DType;

/// A positive number `mantissa * 2^exponent` and how far its neighbours are.
#[derive(Debug, Clone, Copy)]
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// Whether the next smaller number is only half as far as the next larger one.
    narrow_below: bool,
}

impl Binary {
    /// Takes apart a positive number that `dtype` can hold.
    fn new(value: f64, dtype: DType) -> Binary {
        // Bits of the mantissa, and the exponent of its last bit in the smallest numbers.
        let (precision, least) = match dtype {
            DType::Float16 => (11, -24),
            DType::BFloat16 => (8, -133),
            DType::Float32 | DType::Complex64 => (24, -149),
            _ => (53, -1074),
        };
        let bits = value.to_bits();
        let (fraction, field) = (bits & ((1 << 52) - 1), (bits >> 52) as i32 & 0x7ff);
        let (full, last) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        let highest = last + 63 - full.leading_zeros() as i32;
        let exponent = (highest + 1 - precision).max(least);
        let mantissa =
            if exponent >= last { full >> (exponent - last) } else { full << (last - exponent) };
        let narrow_below = mantissa == 1 << (precision - 1) && exponent > least;
        Binary { mantissa, exponent, narrow_below }
    }
}

/// Digits from the place `first` (a power of ten) downwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) digits: Vec<u8>,
    pub(super) first: i32,
}

/// Where to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    /// Stop as soon as no other number of the type is meant.
    pub(super) unique: bool,
    /// At most this many digits, after the first one or after the point.
    pub(super) most: Option<usize>,
    /// At least this many, if the number has them.
    pub(super) least: usize,
    /// Whether digits are counted from the point, and not from the first one.
    pub(super) from_point: bool,
}

/// The digits of a number that is not negative.
pub(super) fn digits(value: f64, dtype: DType, stop: Stop) -> Digits {
    if value == 0.0 {
        return Digits { digits: vec![0], first: 0 };
    }
    let binary = Binary::new(value, dtype);
    // value = rest / scale, and the half-way points are margins away; all four times as large, so
    // that half of half a step is still an integer.
    let mut rest = Big::new(binary.mantissa << 2);
    let mut scale = Big::new(4);
    let mut above = Big::new(2);
    let mut below = Big::new(if binary.narrow_below { 1 } else { 2 });
    if binary.exponent > 0 {
        let shift = binary.exponent as usize;
        [&mut rest, &mut above, &mut below].into_iter().for_each(|big| big.shift(shift));
    } else {
        scale.shift(binary.exponent.unsigned_abs() as usize);
    }
    // The estimate is right or one too small; then the fraction says which.
    let mut first = (value.log10() - 0.01).floor() as i32;
    if first > 0 {
        scale.times_power_of_ten(first as usize);
    } else {
        let power = first.unsigned_abs() as usize;
        [&mut rest, &mut above, &mut below]
            .into_iter()
            .for_each(|big| big.times_power_of_ten(power));
    }
    let mut ten = scale.clone();
    ten.times(10);
    if rest.compare(&ten) != Ordering::Less {
        first += 1;
        scale = ten;
    }
    let place = |count: usize| {
        let count = i32::try_from(count).unwrap_or(i32::MAX / 2);
        if stop.from_point { -count } else { first - count }
    };
    // A number below the last place that is wanted has a zero there, perhaps to be rounded up.
    let last = stop.most.map(place);
    let enough = place(stop.least);
    let start = last.map_or(first, |last| last.max(first));
    if start > first {
        // Beyond a few places the number is nothing whatever its digits are.
        scale.times_power_of_ten((start - first).min(400) as usize);
    }
    let even = binary.mantissa.is_multiple_of(2);
    let mut digits = Vec::new();
    let mut at = start;
    let up = loop {
        let digit = rest.take_digit(&scale);
        digits.push(digit);
        if rest.is_zero() && at <= enough {
            break false;
        }
        let (mut low, mut high) = (false, false);
        if stop.unique {
            let mut far = rest.clone();
            far.add(&above);
            let (to_below, to_above) = (rest.compare(&below), far.compare(&scale));
            low = to_below == Ordering::Less || even && to_below == Ordering::Equal;
            high = to_above == Ordering::Greater || even && to_above == Ordering::Equal;
        }
        if (low || high) && at <= enough || last.is_some_and(|last| at <= last) {
            if low != high {
                break high;
            }
            rest.times(2);
            break match rest.compare(&scale) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => digit % 2 == 1,
            };
        }
        [&mut rest, &mut above, &mut below].into_iter().for_each(|big| big.times(10));
        at -= 1;
    };
    if up { round_up(digits, start) } else { Digits { digits, first: start } }
}

/// Adds one to the last digit; nines become zeros, which are not told.
fn round_up(mut digits: Vec<u8>, first: i32) -> Digits {
    while digits.last() == Some(&9) {
        digits.pop();
    }
    match digits.last_mut() {
        Some(digit) => *digit += 1,
        None => return Digits { digits: vec![1], first: first + 1 },
    }
    Digits { digits, first }
}

/// A natural number of any size, the lowest word first and none of the highest zero.
#[derive(Debug, Clone)]
struct Big(Vec<u32>);

impl Big {
    fn new(value: u64) -> Big {
        let mut big = Big(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn times(&mut self, factor: u32) {
        let mut carry = 0u64;
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn times_power_of_ten(&mut self, power: usize) {
        for _ in 0..power / 9 {
            self.times(1_000_000_000);
        }
        for _ in 0..power % 9 {
            self.times(10);
        }
    }

    /// Times two to a power.
    fn shift(&mut self, power: usize) {
        self.times(1 << (power % 32));
        if !self.is_zero() {
            self.0.splice(0..0, std::iter::repeat_n(0, power / 32));
        }
    }

    fn add(&mut self, other: &Big) {
        self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
        let mut carry = 0u64;
        for (index, word) in self.0.iter_mut().enumerate() {
            carry += u64::from(*word) + u64::from(other.0.get(index).copied().unwrap_or(0));
            *word = carry as u32;
            carry >>= 32;
        }
        self.trim();
    }

    /// Takes away a number that is not larger.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0i64;
        for (index, word) in self.0.iter_mut().enumerate() {
            borrow += i64::from(*word) - i64::from(other.0.get(index).copied().unwrap_or(0));
            *word = borrow as u32;
            borrow >>= 32;
        }
        self.trim();
    }

    fn compare(&self, other: &Big) -> Ordering {
        let by_size = self.0.len().cmp(&other.0.len());
        by_size.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Divides by a number of which this one is less than ten times; the remainder stays.
    fn take_digit(&mut self, scale: &Big) -> u8 {
        let mut digit = 0;
        while self.compare(scale) != Ordering::Less {
            self.subtract(scale);
            digit += 1;
        }
        digit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_ops::{bf16, f16};

    const SHORTEST: Stop = Stop { unique: true, most: None, least: 0, from_point: false };

    fn text(digits: &Digits) -> String {
        let all: String = digits.digits.iter().map(|digit| (b'0' + digit) as char).collect();
        format!("{}.{}e{}", &all[..1], &all[1..], digits.first).replace(".e", "e")
    }

    #[test]
    fn shortest_digits_are_as_many_as_those_of_the_standard_library() {
        // Where two are equally near, the standard library takes the larger and we the even one.
        let check = |found: String, wanted: String| {
            let same = found == wanted
                || found.len() == wanted.len() && found.parse::<f64>() == wanted.parse();
            assert!(same, "{found} {wanted}");
        };
        let mut state = 1u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let power = 2f64.powi((step % 2100) as i32 - 1074);
            for x in [f64::from_bits(state >> 1), power, 1.0 / (step + 1) as f64, step as f64 * 1e3]
            {
                if x.is_finite() && x != 0.0 {
                    check(text(&digits(x, DType::Float64, SHORTEST)), format!("{x:e}"));
                }
                let x = x as f32;
                if x.is_finite() && x != 0.0 {
                    let found = digits(f64::from(x), DType::Float32, SHORTEST);
                    let even = text(&found).parse::<f32>() == Ok(x);
                    assert!(even && text(&found).len() == format!("{x:e}").len());
                }
            }
        }
    }

    #[test]
    fn every_half_number_reads_back_from_its_digits() {
        // Conversions of the half crate drop the last bits of a double, so the nearest number is
        // found by comparing with the neighbours.
        let check = |dtype: DType, longest: usize, number: &dyn Fn(u16) -> f64| {
            for bits in 1..0x7fff {
                let [below, value, above] = [bits - 1, bits, bits + 1].map(number);
                if above.is_finite() {
                    let found = digits(value, dtype, SHORTEST);
                    assert!(found.digits.len() <= longest, "{found:?}");
                    let read: f64 = text(&found).parse().unwrap();
                    let miss = (read - value).abs();
                    assert!(miss <= (read - below).abs() && miss <= (read - above).abs());
                }
            }
        };
        check(DType::Float16, 5, &|bits| f16::from_bits(bits).to_f64());
        check(DType::BFloat16, 4, &|bits| bf16::from_bits(bits).to_f64());
    }

    #[test]
    fn cutting_rounds_the_exact_value_halves_to_even() {
        let cut = |x: f64, most| {
            let stop = Stop { unique: true, most: Some(most), least: 0, from_point: true };
            text(&digits(x, DType::Float64, stop))
        };
        assert_eq!(cut(0.125, 2), "1.2e-1");
        assert_eq!(cut(0.375, 2), "3.8e-1");
        assert_eq!(cut(2.5, 0), "2e0");
        assert_eq!(cut(0.5, 0), "0e0");
        assert_eq!(cut(1.5, 0), "2e0");
        assert_eq!(cut(99.96, 1), "1e2");
        assert_eq!(cut(6e-9, 8), "1e-8");
        assert_eq!(cut(4e-9, 8), "0e-8");
        assert_eq!(cut(1e-300, 8), "0e-8");
        let stop = Stop { unique: true, most: Some(8), least: 8, from_point: false };
        assert_eq!(text(&digits(f64::from(1.1f32), DType::Float32, stop)), "1.10000002e0");
    }
}
