//! pow for `f64` and `f32`, with all special cases of C99.
//!
//! |x|^y = e^(y log |x|). For `f64` the logarithm and the product are pairs; for `f32` plain `f64`
//! has bits to spare. Zero and infinity take part by their logarithm, -inf and inf.

use super::coef::{LN2, LOG2E, W_ATANH, W_EXP};
use super::dd::{pair, quick_sum, two_prod};
use super::exp64::exp_pair_sum;
use super::log64::log_pair;
use super::{MAGIC64, clamp, poly};
use crate::vector::{Single, Vector};

/// The signs and the special cases around `r`, which is |x|^y for |x| not 1.
#[inline(always)]
fn edges<V: Vector>(x: V, y: V, r: V) -> V {
    let (zero, one, inf) = (V::lit(0.0), V::lit(1.0), V::lit(f64::INFINITY));
    let a = x.abs();
    let whole = y.floor().eq(y);
    let half = y * V::lit(0.5);
    let odd = whole & !half.floor().eq(half);
    let r = V::select(a.eq(one), one, r);
    let r = r.or(V::select(odd, x.sign(), zero));
    let invalid = x.lt(zero) & a.lt(inf) & !whole;
    let r = V::select(invalid | x.unordered(y), V::lit(f64::NAN), r);
    V::select(x.eq(one) | y.eq(zero), one, r)
}

/// x^y.
#[inline(always)]
pub fn pow64<V: Vector<Elem = f64>>(x: V, y: V) -> V {
    let inf = V::lit(f64::INFINITY);
    let a = x.abs();
    let (m, e) = a.frexp();
    let l = log_pair(m - V::lit(1.0));
    // e ln 2 + log m, the first product exact. |e ln 2| >= |log m| unless e = 0.
    let head = quick_sum(e * V::lit(LN2.0), l.hi);
    let l = quick_sum(head.hi, head.lo + e.mul_add(V::lit(LN2.1), l.lo));
    let hi = V::select(a.lt(inf), l.hi, inf);
    let hi = V::select(a.eq(V::lit(0.0)), -inf, hi);
    let p = two_prod(y, hi);
    let lo = l.lo.mul_add(y, p.lo);
    // Where the result saturates, the low part may be NaN or huge.
    let lo = V::select(p.hi.abs().lt(V::lit(800.0)), lo, V::lit(0.0));
    edges(x, y, exp_pair_sum(pair(p.hi, lo)))
}

/// log |x| with a relative error of 2^-40, for the halves of an `f32`.
#[inline(always)]
fn log_wide<W: Vector<Elem = f64>>(m: W, e: W) -> W {
    let f = m - W::lit(1.0);
    let s = f * (f + W::lit(2.0)).rcp_fast();
    let z = s * s;
    let cubic = poly(z, &W_ATANH) * z;
    let two_s = s + s;
    // The sum e ln 2 + 2 s cancels at most two bits: e = 0 or |e ln 2| is well above |log m|.
    e.mul_add(W::lit(LN2.0 + LN2.1), two_s.mul_add(cubic, two_s))
}

/// e^t with a relative error of 2^-31; any t, the exponent range of `f32` and well beyond.
#[inline(always)]
pub(crate) fn exp_wide<W: Vector<Elem = f64>>(t: W) -> W {
    exp_wide_limited(clamp(t, -200.0, 200.0))
}

/// The same for |t| <= 200.
#[inline(always)]
pub(crate) fn exp_wide_limited<W: Vector<Elem = f64>>(t: W) -> W {
    let n = t.mul_add(W::lit(LOG2E.0), W::lit(MAGIC64)) - W::lit(MAGIC64);
    let r = n.neg_mul_add(W::lit(LN2.0 + LN2.1), t);
    poly(r, &W_EXP).mul_add(r, W::lit(1.0)) * W::pow2(n)
}

/// a^y for a = m 2^e.
#[inline(always)]
fn magnitude<W: Vector<Elem = f64>>(m: W, e: W, y: W, a: W) -> W {
    let inf = W::lit(f64::INFINITY);
    let l = W::select(a.lt(inf), log_wide(m, e), inf);
    let l = W::select(a.eq(W::lit(0.0)), -inf, l);
    exp_wide(y * l)
}

/// x^y.
#[inline(always)]
pub fn pow32<V: Single>(x: V, y: V) -> V {
    let a = x.abs();
    let (m, e) = a.frexp();
    let r = V::narrow(magnitude(m.widen(), e.widen(), y.widen(), a.widen()));
    edges(x, y, r)
}
