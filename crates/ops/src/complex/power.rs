//! Powers of complex numbers, whose logarithms need more than double precision.

use std::f64::consts::LN_2;

use super::{
    C64, LN_2_LOW, NAN, c, cis, exp, exponent, log, mul, reciprocal, scale, times_exp, two_product,
    two_sum,
};

/// A real number as an unevaluated sum of two doubles: some 106 bits.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    fn new(high: f64, low: f64) -> Double {
        let (high, low) = two_sum(high, low);
        Double { high, low }
    }

    fn add(self, other: Double) -> Double {
        let (sum, error) = two_sum(self.high, other.high);
        Double::new(sum, error + (self.low + other.low))
    }

    fn mul(self, other: Double) -> Double {
        let (product, error) = two_product(self.high, other.high);
        Double::new(product, error + (self.high * other.low + self.low * other.high))
    }

    fn neg(self) -> Double {
        Double { high: -self.high, low: -self.low }
    }

    fn div_by(self, divisor: f64) -> Double {
        let quotient = self.high / divisor;
        Double::new(quotient, ((-quotient).mul_add(divisor, self.high) + self.low) / divisor)
    }

    fn scale(self, by: i32) -> Double {
        Double { high: libm::scalbn(self.high, by), low: libm::scalbn(self.low, by) }
    }
}

/// A complex number with parts in two doubles each: powers raise an error of the logarithm by the
/// size of the exponent, so one double is not enough for it.
#[derive(Clone, Copy)]
struct Wide {
    re: Double,
    im: Double,
}

impl Wide {
    fn new(z: C64) -> Wide {
        Wide { re: Double { high: z.re, low: 0.0 }, im: Double { high: z.im, low: 0.0 } }
    }

    fn add(self, other: Wide) -> Wide {
        Wide { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    fn mul(self, other: Wide) -> Wide {
        Wide {
            re: self.re.mul(other.re).add(self.im.mul(other.im).neg()),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }

    fn scale(self, by: i32) -> Wide {
        Wide { re: self.re.scale(by), im: self.im.scale(by) }
    }

    fn high(self) -> C64 {
        c(self.re.high, self.im.high)
    }

    /// The exponential for a modulus of at most 4: a short series at z/1024, squared ten times.
    fn exp(self) -> Wide {
        let one = Wide::new(c(1.0, 0.0));
        let small = self.scale(-10);
        let mut sum = one;
        for k in (1..=8).rev() {
            let term = small.mul(sum);
            let k = f64::from(k);
            sum = one.add(Wide { re: term.re.div_by(k), im: term.im.div_by(k) });
        }
        for _ in 0..10 {
            sum = sum.mul(sum);
        }
        sum
    }

    /// The logarithm of a finite nonzero number: one Newton step from the one in double precision.
    fn log(z: C64) -> Wide {
        let shift = exponent(z.re.abs().max(z.im.abs()));
        let scaled = scale(z, -shift);
        let first = log(scaled);
        let ratio = Wide::new(scaled).mul(Wide::new(-first).exp());
        let correction = ratio.add(Wide::new(c(-1.0, 0.0))).high();
        let (high, error) = two_product(f64::from(shift), LN_2);
        let power = Double::new(high, f64::from(shift).mul_add(LN_2_LOW, error));
        let log = Wide::new(first).add(Wide::new(correction));
        Wide { re: log.re.add(power), im: log.im }
    }
}

/// The largest exponent taken by repeated squaring.
const MAX_REPEATED: f64 = 1024.0;

/// `z` to the power of `w`. Zero to a power with positive real part is zero, any power zero of a
/// number is 1, and zero to all others is NaN, as in NumPy.
pub fn pow(z: C64, w: C64) -> C64 {
    if w.re == 0.0 && w.im == 0.0 {
        return c(1.0, 0.0);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return if w.re > 0.0 { c(0.0, 0.0) } else { c(NAN, NAN) };
    }
    let real = w.im == 0.0;
    if real && w.re == 1.0 {
        return z;
    }
    if !(z.re.is_finite() && z.im.is_finite() && w.re.is_finite() && w.im.is_finite()) {
        let log = log(z);
        // A real exponent multiplies each part, so that an infinite one is not spoilt by zero.
        return exp(if real { c(w.re * log.re, w.re * log.im) } else { mul(w, log) });
    }
    let whole = real && w.re.fract() == 0.0;
    if real && z.im == 0.0 && (whole || z.re > 0.0) {
        // The zero takes the sign of the derivative, which is w z^(w-1).
        let slope = w.re * z.re.signum() * if w.re % 2.0 == 0.0 { 1.0 } else { z.re.signum() };
        return c(z.re.powf(w.re), z.im * slope.signum());
    }
    if whole && w.re.abs() <= MAX_REPEATED {
        return pow_repeated(z, w.re as i32);
    }
    let log = Wide::log(z);
    let power = Wide::new(w).mul(log);
    let turn = cis(power.im.high, power.im.low);
    let (re, im) = (times_exp(turn.re, power.re.high), times_exp(turn.im, power.re.high));
    let rest = power.re.low;
    if rest.is_finite() { c(re + re * rest, im + im * rest) } else { c(re, im) }
}

/// An integer power by squaring in two doubles, with the powers of two kept apart.
fn pow_repeated(z: C64, n: i32) -> C64 {
    let normal = |v: Wide, e: i32| {
        let shift = exponent(v.re.high.abs().max(v.im.high.abs()));
        (v.scale(-shift), e + shift)
    };
    let (mut base, mut base_exponent) = normal(Wide::new(z), 0);
    let (mut result, mut result_exponent) = (Wide::new(c(1.0, 0.0)), 0);
    let mut rest = n.unsigned_abs();
    loop {
        if rest & 1 == 1 {
            (result, result_exponent) = normal(result.mul(base), result_exponent + base_exponent);
        }
        rest >>= 1;
        if rest == 0 {
            break;
        }
        (base, base_exponent) = normal(base.mul(base), 2 * base_exponent);
    }
    let value = result.high();
    if n < 0 { scale(reciprocal(value), -result_exponent) } else { scale(value, result_exponent) }
}
