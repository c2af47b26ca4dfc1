//! Functions of real numbers that the standard library lacks or defines otherwise.
//!
//! They follow the special cases of the Python array API standard and, where the standard leaves a
//! choice, NumPy. Functions are computed in double precision, and who has single precision rounds
//! the result once; floored division and neighbours alone are particular to each precision. Called
//! by the rows.

macro_rules! precisions {
    ($($type:ident)*) => {$(
        #[doc = concat!("What is particular to `", stringify!($type), "`.")]
        pub mod $type {
            /// Quotient and remainder of floored division, as Python has it.
            ///
            /// The remainder has the sign of the divisor, also when it is zero. By zero the
            /// quotient is that of the division and the remainder NaN; of an infinity both are
            /// NaN; by an infinity the quotient is 0 or -1.
            #[inline]
            pub fn floor_divmod(x: $type, divisor: $type) -> ($type, $type) {
                let rest = x % divisor;
                if divisor == 0.0 {
                    return (x / divisor, rest);
                }
                // Exact but for rounding of the quotient, since the rest is exact.
                let mut quotient = (x - rest) / divisor;
                let mut modulus = rest;
                if rest == 0.0 {
                    modulus = (0.0 as $type).copysign(divisor);
                } else if (divisor < 0.0) != (rest < 0.0) {
                    modulus += divisor;
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return ((0.0 as $type).copysign(x / divisor), modulus);
                }
                // The rounded quotient may lie on either side of the integer it stands for.
                let floor = quotient.floor();
                (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, modulus)
            }

            /// The next number after `from` in the direction of `toward`; `toward` itself when
            /// they are equal.
            #[inline]
            pub fn next_after(from: $type, toward: $type) -> $type {
                if from.is_nan() || toward.is_nan() {
                    $type::NAN
                } else if from == toward {
                    // The signs of two zeros may differ, and the second wins.
                    toward
                } else if from < toward {
                    from.next_up()
                } else {
                    from.next_down()
                }
            }
        }
    )*};
}

precisions!(f32 f64);

/// `log(exp(x) + exp(y))` without overflow; of two negative infinities it is negative infinity.
#[inline]
pub fn logaddexp(x: f64, y: f64) -> f64 {
    if x == y {
        // Also for two equal infinities, whose difference below would be NaN.
        x + std::f64::consts::LN_2
    } else if x > y {
        x + (y - x).exp().ln_1p()
    } else {
        // Also for NaN, which fails each comparison and spoils the sum.
        y + (x - y).exp().ln_1p()
    }
}

/// `1 / (1 + exp(-x))` without overflow, to full relative precision in both tails.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    if x < 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) }
}

/// Inverse hyperbolic cosine; NaN below 1, also where the usual formula would cancel to a number.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}
