//! pow for `f64` and `f32`, with all special cases of C99.
//!
//! |x|^y = e^(y log |x|). The logarithm of a mantissa m near j / 16 is one of a table and that of
//! 1 + r, r = m 16 / j - 1. For `f64` the logarithm and the product are pairs; for `f32` they are
//! `f64`, which has bits to spare, and the power of two is `f32` again. Negative numbers, zeros,
//! infinities and NaN are seen to on a path of their own, taken where a register holds any.

use super::coef::{
    INVERSE, LN2, LOG_HEAD, LOG_REST, LOG_TAIL, LOG2E, S_EXP2, W_EXP, W_INVERSE, W_LOG2,
    W_LOG2_REST,
};
use super::dd::{Pair, pair, quick_sum, two_prod};
use super::exp64::exp_pair_sum;
use super::{MAGIC64, clamp, poly};
use crate::vector::{Lanes, Picks, Single, Vector};

/// Adding it rounds to sixteenths, which then stand in the low bits.
const SIXTEENTHS: f64 = MAGIC64 / 16.0;

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

/// log(m 2^e) as a pair, relative error about 2^-63, for m in [0.75, 1.5).
#[inline(always)]
fn log_pair<V: Picks>(m: V, e: V) -> Pair<V> {
    let which = m + V::lit(SIXTEENTHS);
    // Both exact: the factor has few bits, and so have the head of ln 2 and that of the table.
    let r = m.fma(which.pick(&INVERSE), V::lit(-1.0));
    let head = e.mul_add(V::lit(LN2.0), which.pick(&LOG_HEAD));
    // head + r - r^2 / 2, the large terms exactly: the head is 0 or well above r.
    let square = two_prod(r, r);
    let sum = quick_sum(head, r);
    let parted = quick_sum(sum.hi, square.hi * V::lit(-0.5));
    let low = e.mul_add(V::lit(LN2.1), which.pick(&LOG_TAIL)) + (sum.lo + parted.lo);
    let low = square.lo.mul_add(V::lit(-0.5), low);
    quick_sum(parted.hi, poly(r, &LOG_REST).mul_add(r * square.hi, low))
}

/// x^y.
#[inline(always)]
pub fn pow64<V: Picks>(x: V, y: V) -> V {
    let a = x.abs();
    let (m, e) = a.frexp();
    let l = log_pair(m, e);
    let p = two_prod(y, l.hi);
    let lo = l.lo.mul_add(y, p.lo);
    // Where the result saturates, the low part may be NaN or huge.
    let lo = V::select(p.hi.abs().lt(V::lit(800.0)), lo, V::lit(0.0));
    let r = exp_pair_sum(pair(p.hi, lo));
    if V::any(!is_plain(x, y)) { edges(x, y, limits(a, y, r)) } else { r }
}

/// y log2(m 2^e) with a relative error of 2^-33, for the halves of an `f32`, where `scalef` needs that
/// limited to where 2^t saturates in `f32`.
#[inline(always)]
fn product_log2<W: Picks>(m: W, e: W, y: W) -> W {
    let which = m + W::lit(SIXTEENTHS);
    let r = m.mul_add(which.pick(&W_INVERSE), W::lit(-1.0));
    // The sum cancels at most two bits: e = 0 or |e| is well above |log2 m|.
    let l = poly(r, &W_LOG2_REST).mul_add(r, which.pick(&W_LOG2) + e);
    if W::SCALES_BY_ANY { y * l } else { clamp(y * l, -200.0, 200.0) }
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

/// x^y.
#[inline(always)]
pub fn pow32<V: Single<Wide: Picks> + Lanes>(x: V, y: V) -> V {
    let a = x.abs();
    let (m, e) = a.frexp();
    let t = product_log2(m.widen(), e.widen(), y.widen());
    let magic = V::Wide::lit(MAGIC64);
    let whole = (t + magic) - magic;
    // What is left below a half has bits to spare as an `f32`, and so has 2 to its power.
    let r = V::narrow(t - whole);
    // Beyond the limits of results `whole` says it all, if only what it scales is an ordinary number.
    let r = if V::SCALES_BY_ANY { r.within(0.5) } else { r };
    let p = poly(r, &S_EXP2).mul_add(r, V::lit(1.0)).scalef(V::narrow(whole));
    if V::any(!is_plain(x, y)) { edges(x, y, limits(a, y, p)) } else { p }
}

/// Where |x|^y is e^(y log x) with finite numbers only.
#[inline(always)]
fn is_plain<V: Vector>(x: V, y: V) -> V::Mask {
    let inf = V::lit(f64::INFINITY);
    x.gt(V::lit(0.0)) & x.lt(inf) & y.abs().lt(inf)
}

/// `r` for finite `a` > 0 and finite `y`; elsewhere what a^y tends to, if a is not 1.
#[inline(always)]
fn limits<V: Vector>(a: V, y: V, r: V) -> V {
    let (zero, one, inf) = (V::lit(0.0), V::lit(1.0), V::lit(f64::INFINITY));
    // Grows without bound where the exponent and the logarithm have one sign.
    let grows = y.gt(zero) & a.gt(one) | y.lt(zero) & a.lt(one);
    let limit = V::select(grows, inf, zero);
    let plain = a.gt(zero) & a.lt(inf) & y.abs().lt(inf);
    V::select(plain, r, limit)
}
