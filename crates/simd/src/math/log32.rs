//! `f32`: log, log2 and log1p in `f32` itself, where a register holds twice the lanes; log10 (exact
//! for powers of ten), asinh, acosh, atanh and logaddexp with each half in `f64`.
//!
//! x = m 2^e with m = 1 + f in [0.75, 1.5); log m = f + y, and the sum with e ln 2 is kept as a pair.

use super::coef::{LN2, LN2_F32, LOG2E, LOG10_2, LOG10E, S_LOG, W_LOG};
use super::dd::{quick_sum, two_prod};
use super::log64::log_edges;
use super::poly;
use super::power::exp_wide;
use crate::vector::{Single, Vector};

/// log(1 + f) for f in [-0.25, 0.5], relative error 2^-32.
#[inline(always)]
fn log1p_poly<W: Vector<Elem = f64>>(f: W) -> W {
    poly(f, &W_LOG).mul_add(f * f, f)
}

/// log(1 + f) - f for f in [-0.25, 0.5], within 2^-26 of log(1 + f).
#[inline(always)]
fn log_tail<V: Vector<Elem = f32>>(f: V) -> V {
    poly(f, &S_LOG) * (f * f)
}

/// log(1 + f) + e ln 2.
#[inline(always)]
fn log_near<V: Vector<Elem = f32>>(f: V, e: V) -> V {
    // The first product is exact, and not below f unless it is 0.
    let sum = quick_sum(e * V::lit(LN2_F32.0), f);
    sum.hi + (sum.lo + e.mul_add(V::lit(LN2_F32.1), log_tail(f)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log<V: Vector<Elem = f32>>(x: V) -> V {
    let (m, e) = x.frexp();
    log_edges(x, log_near(m - V::lit(1.0), e))
}

/// Logarithm to base 2; exact for powers of two.
#[inline(always)]
pub fn log2<V: Vector<Elem = f32>>(x: V) -> V {
    let (m, e) = x.frexp();
    let f = m - V::lit(1.0);
    let factor = f64::from(LOG2E.0 as f32);
    let head = two_prod(f, V::lit(factor));
    let low = f.mul_add(V::lit(LOG2E.0 - factor), log_tail(f).mul_add(V::lit(factor), head.lo));
    let sum = quick_sum(e, head.hi);
    log_edges(x, sum.hi + (sum.lo + low))
}

/// Logarithm to base 10.
#[inline(always)]
pub fn log10<V: Single>(x: V) -> V {
    let (m, e) = x.frexp();
    let scaled = log1p_poly((m - V::lit(1.0)).widen()) * V::Wide::lit(LOG10E.0);
    log_edges(x, V::narrow(e.widen().mul_add(V::Wide::lit(LOG10_2.0 + LOG10_2.1), scaled)))
}

/// log(1 + x).
#[inline(always)]
pub fn log1p<V: Vector<Elem = f32>>(x: V) -> V {
    let (one, zero, inf) = (V::lit(1.0), V::lit(0.0), V::lit(f64::INFINITY));
    let (m, e) = (x + one).frexp();
    // (1 + x) 2^-e - 1, which is x itself for e = 0. 2^-e - 1 is exact while it matters, and for
    // large x the sum loses nothing.
    let large = V::lit(100.0);
    let s = V::pow2(-large.min(e));
    let f = V::select(e.lt(large), x.fma(s, s - one), m - one);
    let y = V::select(x.lt(inf) & !x.eq(zero), log_near(f, e), x);
    let edge = V::select(x.eq(-one), -inf, V::lit(f64::NAN));
    V::select(x.gt(-one), y, edge)
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
