//! `f32`: log, log2, log10, log1p, asinh, acosh, atanh, logaddexp, each half in `f64`.
//!
//! Exponent and mantissa are split in `f32`, where a register holds twice the lanes; the
//! polynomial runs in `f64`.

use super::coef::{LN2, LOG2E, LOG10_2, LOG10E, W_LOG};
use super::log64::log_edges;
use super::poly;
use super::power::exp_wide;
use crate::vector::{Single, Vector};

/// log(1 + f) for f in [-0.25, 0.5], relative error 2^-32.
#[inline(always)]
fn log1p_poly<W: Vector<Elem = f64>>(f: W) -> W {
    poly(f, &W_LOG).mul_add(f * f, f)
}

/// e * `per_e` + log(m) * `per_log`.
#[inline(always)]
fn log_base<V: Single>(x: V, per_e: f64, per_log: f64) -> V {
    let (m, e) = x.frexp();
    let f = m - V::lit(1.0);
    let scaled = log1p_poly(f.widen()) * V::Wide::lit(per_log);
    log_edges(x, V::narrow(e.widen().mul_add(V::Wide::lit(per_e), scaled)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log<V: Single>(x: V) -> V {
    log_base(x, LN2.0 + LN2.1, 1.0)
}

/// Logarithm to base 2.
#[inline(always)]
pub fn log2<V: Single>(x: V) -> V {
    log_base(x, 1.0, LOG2E.0)
}

/// Logarithm to base 10.
#[inline(always)]
pub fn log10<V: Single>(x: V) -> V {
    log_base(x, LOG10_2.0 + LOG10_2.1, LOG10E.0)
}

/// log(1 + x) for finite x > -1 within the range of `f32` and a little beyond.
#[inline(always)]
fn log1p_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let one = W::lit(1.0);
    let (_, e) = (x + one).frexp();
    let s = W::pow2(-e);
    // (1 + x) 2^-e - 1, which is x itself for e = 0.
    let f = x.mul_add(s, s - one);
    e.mul_add(W::lit(LN2.0 + LN2.1), log1p_poly(f))
}

/// log(1 + x).
#[inline(always)]
pub fn log1p<V: Single>(x: V) -> V {
    let (one, zero, inf) = (V::lit(1.0), V::lit(0.0), V::lit(f64::INFINITY));
    let y = V::narrow(log1p_wide(x.widen()));
    let y = V::select(x.lt(inf) & !x.eq(zero), y, x);
    let edge = V::select(x.eq(-one), -inf, V::lit(f64::NAN));
    V::select(x.gt(-one), y, edge)
}

#[inline(always)]
fn asinh_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let one = W::lit(1.0);
    let root = a.mul_add(a, one).sqrt();
    log1p_wide(a + (root - one))
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<V: Single>(x: V) -> V {
    let a = x.abs();
    let y = V::narrow(asinh_wide(a.widen())).or(x.sign());
    // Below 2^-14 the cube is beyond the last bit; the sum above would lose bits.
    let keep = a.lt(V::lit(6.103515625e-5)) | !a.lt(V::lit(f64::INFINITY));
    V::select(keep, x, y)
}

#[inline(always)]
fn acosh_wide<W: Vector<Elem = f64>>(x: W) -> W {
    let d = x - W::lit(1.0);
    log1p_wide(d + (d * (x + W::lit(1.0))).sqrt())
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh<V: Single>(x: V) -> V {
    let y = V::narrow(acosh_wide(x.widen()));
    let y = V::select(x.lt(V::lit(f64::INFINITY)), y, x);
    V::select(x.lt(V::lit(1.0)), V::lit(f64::NAN), y)
}

#[inline(always)]
fn atanh_wide<W: Vector<Elem = f64>>(a: W) -> W {
    let q = (a + a) * (W::lit(1.0) - a).rcp_fast();
    log1p_wide(q) * W::lit(0.5)
}

/// Inverse hyperbolic tangent; infinite at 1, NaN beyond.
#[inline(always)]
pub fn atanh<V: Single>(x: V) -> V {
    let (a, one) = (x.abs(), V::lit(1.0));
    let y = V::narrow(atanh_wide(a.widen()));
    let y = V::select(a.lt(one), y, V::lit(f64::INFINITY));
    V::select(a.le(one), y, V::lit(f64::NAN)).or(x.sign())
}

#[inline(always)]
fn logaddexp_wide<W: Vector<Elem = f64>>(a: W, b: W) -> W {
    let d = W::select(a.eq(b), W::lit(0.0), -(a - b).abs());
    a.max(b) + log1p_wide(exp_wide(d))
}

/// log(e^a + e^b).
#[inline(always)]
pub fn logaddexp<V: Single>(a: V, b: V) -> V {
    let y = V::narrow(logaddexp_wide(a.widen(), b.widen()));
    V::select(a.unordered(b), a + b, y)
}
