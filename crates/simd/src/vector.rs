//! The trait that all vector mathematics is written against.
//!
//! A [`Vector`] is one register of lanes of `f32` or `f64`. Everything in [`Vector`] maps lanes to
//! lanes with no control flow, so an implementation may run the instructions (scalar, AVX2,
//! AVX-512) or record them (a JIT). What only a running implementation can do, touching memory and
//! asking whether any lane of a mask is set, is kept apart in [`Lanes`].
//!
//! Called by `math` and by the drivers of `kernels`; the CPU backend may use it for its own loops.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// The element of a vector, `f32` or `f64`.
pub trait Real: Copy + PartialOrd + std::fmt::Debug + 'static {
    /// The nearest value to `x`.
    fn from_f64(x: f64) -> Self;
    /// The value as `f64`, exactly.
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

/// A register of lanes of one instruction set.
///
/// Bit operations treat each lane as an unsigned integer of the lane's width. `min` and `max`
/// follow the x86 rule: the second operand wins when either is NaN, so `lo.max(x)` keeps the NaN
/// of `x`. Operators round to nearest even; subnormals are kept.
///
/// Naming a concrete type of an instruction set promises that the CPU has it: use those types only
/// below a function with the matching `#[target_feature]`. Math functions stay generic and are
/// `#[inline(always)]`, so they take on the features of the driver that calls them.
pub trait Vector:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// What a lane holds.
    type Elem: Real;
    /// One truth value a lane.
    type Mask: Copy
        + BitAnd<Output = Self::Mask>
        + BitOr<Output = Self::Mask>
        + Not<Output = Self::Mask>;

    /// All lanes set to `x`, rounded to the element type.
    fn lit(x: f64) -> Self;
    /// All lanes set to the bit pattern `b` (its low 32 bits for `f32`).
    fn bits(b: u64) -> Self;

    /// `self * b + c`, fused where the instruction set has that, rounded twice where not.
    /// For polynomials and for products known to be exact.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`, fused or not as [`mul_add`](Vector::mul_add).
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// `self * b + c` rounded once, always: what error-free products need.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `self * b - c` rounded once.
    fn fms(self, b: Self, c: Self) -> Self;
    /// `c - self * b` rounded once.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// `if self < b { self } else { b }`.
    fn min(self, b: Self) -> Self;
    /// `if self > b { self } else { b }`.
    fn max(self, b: Self) -> Self;
    /// Nearest integer, halves to even.
    fn round(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Integer part.
    fn trunc(self) -> Self;

    /// `self < b`, false for NaN.
    fn lt(self, b: Self) -> Self::Mask;
    /// `self <= b`, false for NaN.
    fn le(self, b: Self) -> Self::Mask;
    /// `self == b`, false for NaN.
    fn eq(self, b: Self) -> Self::Mask;
    /// Either is NaN.
    fn unordered(self, b: Self) -> Self::Mask;
    /// The sign bit.
    fn sign_mask(self) -> Self::Mask;
    /// Lane by lane `if m { a } else { b }`.
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;

    /// Bitwise and.
    fn and(self, b: Self) -> Self;
    /// Bitwise or.
    fn or(self, b: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, b: Self) -> Self;
    /// Bitwise `self & !b`.
    fn and_not(self, b: Self) -> Self;
    /// Shift left by `N` bits.
    fn shl<const N: u32>(self) -> Self;
    /// Logical shift right by `N` bits.
    fn shr<const N: u32>(self) -> Self;
    /// Wrapping integer sum.
    fn add_int(self, b: Self) -> Self;
    /// Wrapping integer difference.
    fn sub_int(self, b: Self) -> Self;

    /// `1 / self` with a relative error below 2^-11 for magnitudes in 2^-120 .. 2^120.
    fn rcp_est(self) -> Self;
    /// `1 / sqrt(self)` with a relative error below 2^-11 for values in 2^-120 .. 2^120.
    fn rsqrt_est(self) -> Self;
    /// Whether estimates take and give subnormal numbers as any other; else as zeros and infinities.
    const SUBNORMAL_ESTIMATES: bool = false;
    /// `1 / self` with a relative error below 2^-33 (`f64`) or 2^-22 (`f32`), for magnitudes in
    /// 2^-120 .. 2^120: the cheapest way to that accuracy, often not a division.
    fn rcp_fast(self) -> Self;
    /// `1 / sqrt(self)` within 1.5 ulp for every value: infinite at +-0 with its sign, NaN below.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::lit(1.0) / self.sqrt()
    }
    /// `self * 2^n` for an integral `n`, rounded once also where the result is subnormal.
    /// `|n|` at most 250 (`f32`) or 2000 (`f64`), and |self| between 1/8 and 8, or 0, or NaN.
    fn scalef(self, n: Self) -> Self;
    /// Whether `scalef` takes any `n`, infinite ones and NaN too, for finite `self`.
    const SCALES_BY_ANY: bool = false;
    /// `self` limited to [-limit, limit], `limit` > 0. Of NaN it makes anything between, or NaN.
    #[inline(always)]
    fn within(self, limit: f64) -> Self {
        Self::lit(-limit).max(Self::lit(limit).min(self))
    }
    /// `2^n` for an integral `n` in the range of normal exponents.
    fn pow2(n: Self) -> Self;
    /// `self - floor(self)`, 0 for infinities.
    fn fract(self) -> Self;
    /// `self * 2^floor(t)` for any `t`, overflowing to infinity, and 0 where `t` is below the
    /// exponent of the smallest normal number: subnormal results cost a hundred times as much as
    /// others. |self| in [1, 2], or NaN.
    fn scalef_floor(self, t: Self) -> Self;
    /// `(m, e)` with `self = m * 2^e`, `m` in [0.75, 1.5), for finite `self > 0`, subnormals too.
    /// For all other values `m` and `e` mean nothing.
    fn frexp(self) -> (Self, Self);

    /// `self > b`, false for NaN.
    #[inline(always)]
    fn gt(self, b: Self) -> Self::Mask {
        b.lt(self)
    }
    /// `self >= b`, false for NaN.
    #[inline(always)]
    fn ge(self, b: Self) -> Self::Mask {
        b.le(self)
    }
    /// NaN lanes.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        self.unordered(self)
    }
    /// Magnitude: the sign bit cleared.
    #[inline(always)]
    fn abs(self) -> Self {
        self.and_not(Self::lit(-0.0))
    }
    /// The sign bit alone: +0 or -0.
    #[inline(always)]
    fn sign(self) -> Self {
        self.and(Self::lit(-0.0))
    }
    /// The magnitude of `self` with the sign of `s`.
    #[inline(always)]
    fn copysign(self, s: Self) -> Self {
        self.abs().or(s.sign())
    }
}

/// What a vector of `f32` can do beyond the common part: turn into `f64` and back.
pub trait Single: Vector<Elem = f32> {
    /// As many lanes of `f64`, usually in two registers.
    type Wide: Vector<Elem = f64>;
    /// The same values as `f64`.
    fn widen(self) -> Self::Wide;
    /// The inverse of `widen`, rounding once.
    fn narrow(wide: Self::Wide) -> Self;
}

/// A vector that runs: it reads and writes memory and can be asked about its masks.
pub trait Lanes: Vector {
    /// Lanes, at most 32.
    const LANES: usize;
    /// Reads `LANES` elements.
    ///
    /// # Safety
    /// `p` is readable for `LANES` elements; no alignment is needed.
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Writes `LANES` elements.
    ///
    /// # Safety
    /// `p` is writable for `LANES` elements; no alignment is needed.
    unsafe fn store(self, p: *mut Self::Elem);
    /// Reads the first `n < LANES` elements, the other lanes are zero.
    ///
    /// # Safety
    /// `p` is readable for `n` elements.
    unsafe fn load_part(p: *const Self::Elem, n: usize) -> Self;
    /// Writes the first `n < LANES` elements.
    ///
    /// # Safety
    /// `p` is writable for `n` elements.
    unsafe fn store_part(self, p: *mut Self::Elem, n: usize);
    /// Whether any lane is set.
    fn any(m: Self::Mask) -> bool;
    /// The lanes that are set, the first as the lowest bit.
    fn lanes(m: Self::Mask) -> u32;
}

/// A running vector of `f64` that looks up tables.
pub trait Picks: Lanes<Elem = f64> {
    /// For each lane the entry that its four lowest bits name.
    fn pick(self, table: &[f64; 16]) -> Self;
}

/// Bodies for `scalef`, `pow2` and `frexp` made of other operations, for instruction sets without
/// an instruction for them. The trick of `pow2`: adding 1.5 * 2^p (p the mantissa bits) leaves
/// the integer `n` in the low bits, and a shift moves it to the exponent field.
macro_rules! exponent_ops {
    (f32) => {
        $crate::vector::exponent_ops!(@ 23, 12582912.0, 127.0, 8388608.0, 1.1754943508222875e-38,
            0x00C0_0000, 0x4B00_0000, 128.0, 0x4000_0000, 24.0, 250.0);
    };
    (f64) => {
        $crate::vector::exponent_ops!(@ 52, 6755399441055744.0, 1023.0, 4503599627370496.0,
            2.2250738585072014e-308, 0x0018_0000_0000_0000, 0x4330_0000_0000_0000, 1024.0,
            0x4000_0000_0000_0000, 53.0, 2000.0);
    };
    (@ $p:literal, $magic:literal, $bias:literal, $one:literal, $tiny:literal, $offset:literal,
        $one_bits:literal, $k0:literal, $two_bits:literal, $lift:literal,
        $huge:literal) => {
        #[inline(always)]
        fn pow2(n: Self) -> Self {
            (n + Self::lit($magic + $bias)).shl::<$p>()
        }
        #[inline(always)]
        fn scalef(self, n: Self) -> Self {
            // Two factors: the first product is exact, the second rounds once.
            let half = n.mul_add(Self::lit(0.5), Self::lit($magic)) - Self::lit($magic);
            self * Self::pow2(half) * Self::pow2(n - half)
        }
        #[inline(always)]
        fn fract(self) -> Self {
            // Clamped to integers on which `scalef` saturates; NaN passes.
            let t = Self::lit(-$huge).max(Self::lit($huge).min(self));
            t - t.floor()
        }
        #[inline(always)]
        fn scalef_floor(self, t: Self) -> Self {
            let least = Self::lit(1.0 - $bias);
            let n = least.max(Self::lit($huge).min(t)).floor();
            Self::select(t.lt(least), Self::lit(0.0), self.scalef(n))
        }
        #[inline(always)]
        fn frexp(self) -> (Self, Self) {
            let small = self.lt(Self::lit($tiny));
            let x = Self::select(small, self * Self::pow2(Self::lit($lift)), self);
            // The offset makes the exponent field step at 1.5 instead of 2.
            let k = x.add_int(Self::bits($offset)).shr::<$p>();
            let m = x.sub_int(k.shl::<$p>()).add_int(Self::bits($two_bits));
            let e = k.or(Self::bits($one_bits)) - Self::lit($one + $k0);
            (m, e - Self::select(small, Self::lit($lift), Self::lit(0.0)))
        }
    };
}
pub(crate) use exponent_ops;

/// Bodies for `rcp_fast`, `rsqrt` and `pow2` made of the estimates and the scaling of AVX-512, and
/// what these two can do.
macro_rules! estimate_ops {
    (f32) => {
        const SUBNORMAL_ESTIMATES: bool = true;
        const SCALES_BY_ANY: bool = true;
        #[inline(always)]
        fn rcp_fast(self) -> Self {
            let y = self.rcp_est();
            y.fma(self.fnma(y, Self::lit(1.0)), y)
        }
        #[inline(always)]
        fn rsqrt(self) -> Self {
            let y = self.rsqrt_est();
            // One step of third order takes 14 bits beyond 24; the residual is exact.
            let p = self * y;
            let low = self.fms(y, p);
            let h = p.fnma(y, Self::lit(1.0)) - low * y;
            let better = (y * h).fma(h.fma(Self::lit(0.375), Self::lit(0.5)), y);
            // 0 and infinity have no finite step; the estimate is right there.
            Self::select(better.is_nan(), y, better)
        }
        #[inline(always)]
        fn pow2(n: Self) -> Self {
            Self::lit(1.0).scalef(n)
        }
    };
    (f64) => {
        const SUBNORMAL_ESTIMATES: bool = true;
        const SCALES_BY_ANY: bool = true;
        #[inline(always)]
        fn rcp_fast(self) -> Self {
            let y = self.rcp_est();
            // 14 bits; e + e^2 in one step gives 42.
            let e = self.fnma(y, Self::lit(1.0));
            y.fma(e.fma(e, e), y)
        }
        #[inline(always)]
        fn rsqrt(self) -> Self {
            let y = self.rsqrt_est();
            // A step of third order to 42 bits, then Newton's with an exact residual.
            let h = (self * y).fnma(y, Self::lit(1.0));
            let near = (y * h).fma(h.fma(Self::lit(0.375), Self::lit(0.5)), y);
            let p = self * near;
            let low = self.fms(near, p);
            let h = p.fnma(near, Self::lit(1.0)) - low * near;
            let better = (near * Self::lit(0.5)).fma(h, near);
            // 0 and infinity have no finite step; the estimate is right there.
            Self::select(better.is_nan(), y, better)
        }
        #[inline(always)]
        fn pow2(n: Self) -> Self {
            Self::lit(1.0).scalef(n)
        }
    };
}
pub(crate) use estimate_ops;
