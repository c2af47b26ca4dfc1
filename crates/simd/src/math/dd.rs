//! Unevaluated sums of two floats, for the places where one rounding is not enough.
//!
//! A [`Pair`] stands for `hi + lo` with `|lo|` at most about an ulp of `hi`. Assumes no overflow
//! and no underflow of the products; callers scale or select. Used by the other files of `math`.

use crate::vector::Vector;

/// `hi + lo`.
#[derive(Clone, Copy, Debug)]
pub struct Pair<V> {
    /// The sum rounded (nearly).
    pub hi: V,
    /// What rounding left over.
    pub lo: V,
}

/// A pair from its parts.
#[inline(always)]
pub fn pair<V: Vector>(hi: V, lo: V) -> Pair<V> {
    Pair { hi, lo }
}

/// A constant pair.
#[inline(always)]
pub fn constant<V: Vector>((hi, lo): (f64, f64)) -> Pair<V> {
    pair(V::lit(hi), V::lit(lo))
}

/// `a + b` exactly.
#[inline(always)]
pub fn two_sum<V: Vector>(a: V, b: V) -> Pair<V> {
    let hi = a + b;
    let b1 = hi - a;
    let a1 = hi - b1;
    pair(hi, (a - a1) + (b - b1))
}

/// `a + b` exactly where |a| >= |b| or a = 0.
#[inline(always)]
pub fn quick_sum<V: Vector>(a: V, b: V) -> Pair<V> {
    let hi = a + b;
    pair(hi, b - (hi - a))
}

/// `a * b` exactly.
#[inline(always)]
pub fn two_prod<V: Vector>(a: V, b: V) -> Pair<V> {
    let hi = a * b;
    pair(hi, a.fms(b, hi))
}

impl<V: Vector> Pair<V> {
    /// The product of two pairs, relative error some 2^-2p.
    #[inline(always)]
    pub fn times(self, b: Pair<V>) -> Pair<V> {
        let p = two_prod(self.hi, b.hi);
        pair(p.hi, p.lo + self.hi.mul_add(b.lo, self.lo * b.hi))
    }

    /// The product with a single float.
    #[inline(always)]
    pub fn scale(self, b: V) -> Pair<V> {
        let p = two_prod(self.hi, b);
        pair(p.hi, self.lo.mul_add(b, p.lo))
    }

    /// The quotient of two pairs; `b.hi` within 2^-120 .. 2^120 so that the estimate of its
    /// reciprocal, good enough for the second digit, exists.
    #[inline(always)]
    pub fn over(self, b: Pair<V>) -> Pair<V> {
        let q = self.hi / b.hi;
        let rest = q.fnma(b.hi, self.hi) + q.neg_mul_add(b.lo, self.lo);
        pair(q, rest * b.hi.rcp_est())
    }

    /// The square root; `hi` zero or within 2^-200 .. 2^200.
    #[inline(always)]
    pub fn sqrt(self) -> Pair<V> {
        let s = self.hi.sqrt();
        let rest = s.fnma(s, self.hi) + self.lo;
        // The lower limit turns the 0 * inf of a zero into a zero. Not the estimate: callers
        // subtract `hi` away and are left with `lo`.
        let inverse = s.max(V::lit(1e-30)).rcp_fast();
        pair(s, rest * inverse * V::lit(0.5))
    }

    /// Both parts moved into shape again after `hi` and `lo` have grown together.
    #[inline(always)]
    pub fn renorm(self) -> Pair<V> {
        quick_sum(self.hi, self.lo)
    }

    /// The sum as one float.
    #[inline(always)]
    pub fn value(self) -> V {
        self.hi + self.lo
    }
}
