//! Random numbers as a function of a key and a place: Philox 4x32-10, one block per element.
//!
//! Element number k of a stream with key `seed` is made from the four words that Philox gives for
//! the counter (low word of k, high word of k, 0, 0). So any element can be computed alone, on any
//! device, in any order, and uniform numbers and integers are the same bits everywhere.

use crate::dtype::DType;
use crate::number::Scalar;

/// How random numbers are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Raw 64-bit words, as uint64.
    Bits,
    /// Uniform on [0, 1), with as many random bits as the dtype holds exactly below 1: 11 in float16, 8
    /// in bfloat16, 24 in float32, 53 in float64. So none is rounded up to 1.
    Uniform,
    /// Standard normal, as float32 or float64.
    Normal,
    /// Integers `low .. low + span`, as int64; each value's probability is off by less than 2^-64 of
    /// itself.
    Integers {
        /// The smallest.
        low: i64,
        /// How many there are; zero stands for 2^64.
        span: u64,
    },
}

impl Distribution {
    /// Element number `k` of the stream with this key, in `dtype`.
    pub fn evaluate(self, key: u64, k: u64, dtype: DType) -> Scalar {
        let words = block(key, k);
        match (self, dtype) {
            (Distribution::Bits, _) => Scalar::new(bits(words)).cast(dtype),
            (Distribution::Uniform, DType::Float64) => Scalar::new(uniform_f64(words)),
            (Distribution::Uniform, DType::Float16) => {
                Scalar::new(uniform::<11>(words)).cast(dtype)
            }
            (Distribution::Uniform, DType::BFloat16) => {
                Scalar::new(uniform::<8>(words)).cast(dtype)
            }
            (Distribution::Uniform, _) => Scalar::new(uniform::<24>(words)).cast(dtype),
            (Distribution::Normal, DType::Float64) => Scalar::new(normal_f64(words)),
            (Distribution::Normal, _) => Scalar::new(normal_f32(words)).cast(dtype),
            (Distribution::Integers { low, span }, _) => {
                Scalar::new(integer(words, low, span)).cast(dtype)
            }
        }
    }
}

/// What each round of Philox multiplies its first and third word by.
pub const ROUND: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What each round of Philox adds to the key.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox on four words.
#[inline(always)]
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let (a, b) = (ROUND[0] as u64 * counter[0] as u64, ROUND[1] as u64 * counter[2] as u64);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
    }
    counter
}

/// The four words of element `k`.
#[inline(always)]
pub fn block(key: u64, k: u64) -> [u32; 4] {
    philox([k as u32, (k >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32])
}

/// 64 random bits.
#[inline(always)]
pub fn bits(words: [u32; 4]) -> u64 {
    words[0] as u64 | (words[1] as u64) << 32
}

/// Uniform on [0, 1), a multiple of 2^-BITS, of which there are up to 24.
#[inline(always)]
pub fn uniform<const BITS: u32>(words: [u32; 4]) -> f32 {
    (words[0] >> (32 - BITS)) as f32 * (1.0 / (1u32 << BITS) as f32)
}

/// Uniform on [0, 1), a multiple of 2^-53.
#[inline(always)]
pub fn uniform_f64(words: [u32; 4]) -> f64 {
    (bits(words) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Standard normal by Box and Muller, from 53 bits each of radius and angle.
pub fn normal_f64(words: [u32; 4]) -> f64 {
    let scale = 1.0 / (1u64 << 53) as f64;
    let radius = ((bits(words) >> 11) as f64 + 1.0) * scale;
    let angle = ((words[2] as u64 | (words[3] as u64) << 32) >> 11) as f64 * scale;
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Standard normal by Box and Muller, from 32 bits each of radius and angle, rounded from double
/// precision.
pub fn normal_f32(words: [u32; 4]) -> f32 {
    let scale = 1.0 / (1u64 << 32) as f64;
    let (radius, angle) = ((words[0] as f64 + 1.0) * scale, words[1] as f64 * scale);
    ((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()) as f32
}

/// An integer from `low .. low + span`: the span times a fraction of 128 bits, since with 64 some of
/// many values would be twice as likely as others.
#[inline(always)]
pub fn integer(words: [u32; 4], low: i64, span: u64) -> i64 {
    let (high, more) = (bits(words), words[2] as u64 | (words[3] as u64) << 32);
    let times = |part: u64| part as u128 * span as u128;
    let offset = match span {
        0 => high,
        _ => ((times(high) + (times(more) >> 64)) >> 64) as u64,
    };
    low.wrapping_add(offset as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_generator() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let n = 100_000;
        let mean = |d: Distribution| {
            (0..n).map(|k| d.evaluate(7, k, DType::Float64).get::<f64>()).sum::<f64>() / n as f64
        };
        assert!((mean(Distribution::Uniform) - 0.5).abs() < 0.005);
        assert!(mean(Distribution::Normal).abs() < 0.01);
        for dtype in [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64] {
            let draw = |k| Distribution::Uniform.evaluate(7, k, dtype).get::<f64>();
            let (low, high) = (0..n)
                .map(draw)
                .fold((1.0, 0.0f64), |(low, high), x| (if x < low { x } else { low }, high.max(x)));
            assert!((0.0..0.01).contains(&low) && high > 0.99 && high < 1.0, "{dtype}: {high}");
        }
        let dice = Distribution::Integers { low: 1, span: 6 };
        let values: Vec<i64> = (0..n).map(|k| dice.evaluate(7, k, DType::Int64).get()).collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&1), Some(&6)));
        // Three quarters of all integers: each third of them is drawn as often as the others.
        let wide = Distribution::Integers { low: 0, span: 3 << 62 };
        let mut thirds = [0; 3];
        for k in 0..n {
            thirds[(wide.evaluate(7, k, DType::UInt64).get::<u64>() % 3) as usize] += 1;
        }
        let even = n as f64 / 3.0;
        let off = thirds.map(|count| (count as f64 / even - 1.0).abs());
        assert!(off.iter().all(|off| *off < 0.02), "{thirds:?}");
        let square =
            (0..n).map(|k| normal_f32(block(9, k)) as f64).map(|x| x * x).sum::<f64>() / n as f64;
        assert!((square - 1.0).abs() < 0.02);
    }
}
