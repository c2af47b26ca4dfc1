//! The table of functions: name, number of operands, and where the one for f32 and the one for f64
//! are.
//!
//! Names are those of the operations. Functions of the first list run the same instructions for all
//! values; those of the second do so for f32, and look up tables for f64; those of the third look at
//! their values and take a shorter way if they can. What looks something up or takes another way cannot
//! be recorded. Read by `kernels` and `record`, which import what the paths begin with.

/// Calls a macro with the three lists, each in brackets.
macro_rules! each_function {
    ($callback:ident) => {
        $callback! {
            [
                exp: 1, exp32::exp, exp64::exp;
                exp2: 1, exp32::exp2, exp64::exp2;
                expm1: 1, exp32::expm1, exp64::expm1;
                log: 1, log32::log, log64::log;
                log1p: 1, log32::log1p, log64::log1p;
                log2: 1, log32::log2, log64::log2;
                log10: 1, log32::log10, log64::log10;
                tanh: 1, exp32::tanh, exp64::tanh;
                sinh: 1, exp32::sinh, exp64::sinh;
                cosh: 1, exp32::cosh, exp64::cosh;
                asin: 1, inverse32::asin, inverse64::asin;
                acos: 1, inverse32::acos, inverse64::acos;
                atan: 1, inverse32::atan, inverse64::atan;
                atan2: 2, inverse32::atan2, inverse64::atan2;
                asinh: 1, log32::asinh, log64::asinh;
                acosh: 1, log32::acosh, log64::acosh;
                atanh: 1, log32::atanh, log64::atanh;
                sigmoid: 1, exp32::sigmoid, exp64::sigmoid;
                cbrt: 1, root::cbrt32, root::cbrt64;
                rsqrt: 1, Vector::rsqrt, Vector::rsqrt;
                hypot: 2, root::hypot, root::hypot;
                logaddexp: 2, log32::logaddexp, log64::logaddexp;
                rsqrt_or_zero: 1, pair::rsqrt_or_zero, pair::rsqrt_or_zero;
                exp2_pair: 1, pair::exp2_pair32, pair::exp2_pair64;
                rcp_pair: 1, pair::rcp_pair32, pair::rcp_pair64;
                rsqrt_pair: 1, pair::rsqrt_pair32, pair::rsqrt_pair64;
                sqrt_pair: 1, pair::sqrt_pair32, pair::sqrt_pair64;
            ]
            [
                erf: 1, error::erf32, error::erf64;
            ]
            [
                sin: 1, trig32::sin, trig64::sin;
                cos: 1, trig32::cos, trig64::cos;
                tan: 1, trig32::tan, trig64::tan;
                sinxdivx: 1, trig32::sinxdivx, trig64::sinxdivx;
                pow: 2, power::pow32, power::pow64;
            ]
        }
    };
}

pub(crate) use each_function;
