//! AVX2 with FMA: eight `f32` or four `f64`, masks as registers of all-ones lanes.
//!
//! May assume that every use is inlined below a function with these target features (the rule of
//! [`Vector`]). Called by the drivers of level `Avx2`.

use crate::instructions::rounding::{DOWN, NEAREST, UP, ZERO};
use crate::instructions::{binary, compare, ins, integer, negative, operator, ternary, unary};
use crate::twin::Twin;
use crate::vector::{Lanes, Picks, Single, Vector, exponent_ops};
use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// Eight `f32`; as a mask, eight lanes of all ones or all zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2F32(pub __m256);
/// Four `f64`; as a mask, four lanes of all ones or all zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2F64(pub __m256d);
/// A mask of eight lanes. Only the sign bit of a lane counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask32(pub __m256);
/// A mask of four lanes. Only the sign bit of a lane counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask64(pub __m256d);

operator!(Avx2F32, Add, add, _mm256_add_ps);
operator!(Avx2F32, Sub, sub, _mm256_sub_ps);
operator!(Avx2F32, Mul, mul, _mm256_mul_ps);
operator!(Avx2F32, Div, div, _mm256_div_ps);
operator!(Mask32, BitAnd, bitand, _mm256_and_ps);
operator!(Mask32, BitOr, bitor, _mm256_or_ps);
operator!(Avx2F64, Add, add, _mm256_add_pd);
operator!(Avx2F64, Sub, sub, _mm256_sub_pd);
operator!(Avx2F64, Mul, mul, _mm256_mul_pd);
operator!(Avx2F64, Div, div, _mm256_div_pd);
operator!(Mask64, BitAnd, bitand, _mm256_and_pd);
operator!(Mask64, BitOr, bitor, _mm256_or_pd);

impl Not for Mask32 {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Mask32(ins!(_mm256_xor_ps(self.0, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))))
    }
}
impl Not for Mask64 {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Mask64(ins!(_mm256_xor_pd(self.0, _mm256_castsi256_pd(_mm256_set1_epi32(-1)))))
    }
}
negative!(Avx2F32);
negative!(Avx2F64);

impl Vector for Avx2F32 {
    type Elem = f32;
    type Mask = Mask32;

    #[inline(always)]
    fn lit(x: f64) -> Self {
        Avx2F32(ins!(_mm256_set1_ps(x as f32)))
    }
    #[inline(always)]
    fn bits(b: u64) -> Self {
        Avx2F32(ins!(_mm256_castsi256_ps(_mm256_set1_epi32(b as i32))))
    }
    ternary! { Avx2F32,
        mul_add = _mm256_fmadd_ps; neg_mul_add = _mm256_fnmadd_ps; fma = _mm256_fmadd_ps;
        fms = _mm256_fmsub_ps; fnma = _mm256_fnmadd_ps;
    }
    unary! { Avx2F32,
        sqrt = _mm256_sqrt_ps; rcp_est = _mm256_rcp_ps; rsqrt_est = _mm256_rsqrt_ps;
        round = _mm256_round_ps::<NEAREST>; floor = _mm256_round_ps::<DOWN>;
        ceil = _mm256_round_ps::<UP>; trunc = _mm256_round_ps::<ZERO>;
    }
    binary! { Avx2F32,
        min = _mm256_min_ps; max = _mm256_max_ps;
        and = _mm256_and_ps; or = _mm256_or_ps; xor = _mm256_xor_ps;
    }
    compare! { Avx2F32, Mask32, Mask32, _mm256_cmp_ps,
        lt = _CMP_LT_OQ; le = _CMP_LE_OQ; eq = _CMP_EQ_OQ; unordered = _CMP_UNORD_Q;
    }
    integer! { Avx2F32, _mm256_castps_si256, _mm256_castsi256_ps,
        add_int = _mm256_add_epi32; sub_int = _mm256_sub_epi32;
    }
    #[inline(always)]
    fn sign_mask(self) -> Mask32 {
        // Copied through all bits, so that `not` and `and` of masks work.
        let s = ins!(_mm256_srai_epi32::<31>(_mm256_castps_si256(self.0)));
        Mask32(ins!(_mm256_castsi256_ps(s)))
    }
    #[inline(always)]
    fn select(m: Mask32, a: Self, b: Self) -> Self {
        Avx2F32(ins!(_mm256_blendv_ps(b.0, a.0, m.0)))
    }
    #[inline(always)]
    fn and_not(self, b: Self) -> Self {
        Avx2F32(ins!(_mm256_andnot_ps(b.0, self.0)))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        let n = ins!(_mm_cvtsi32_si128(N as i32));
        let v = ins!(_mm256_sll_epi32(_mm256_castps_si256(self.0), n));
        Avx2F32(ins!(_mm256_castsi256_ps(v)))
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        let n = ins!(_mm_cvtsi32_si128(N as i32));
        let v = ins!(_mm256_srl_epi32(_mm256_castps_si256(self.0), n));
        Avx2F32(ins!(_mm256_castsi256_ps(v)))
    }
    #[inline(always)]
    fn rcp_fast(self) -> Self {
        let y = self.rcp_est();
        y.fma(self.fnma(y, Self::lit(1.0)), y)
    }
    exponent_ops!(f32);
}

impl Vector for Avx2F64 {
    type Elem = f64;
    type Mask = Mask64;

    #[inline(always)]
    fn lit(x: f64) -> Self {
        Avx2F64(ins!(_mm256_set1_pd(x)))
    }
    #[inline(always)]
    fn bits(b: u64) -> Self {
        Avx2F64(ins!(_mm256_castsi256_pd(_mm256_set1_epi64x(b as i64))))
    }
    ternary! { Avx2F64,
        mul_add = _mm256_fmadd_pd; neg_mul_add = _mm256_fnmadd_pd; fma = _mm256_fmadd_pd;
        fms = _mm256_fmsub_pd; fnma = _mm256_fnmadd_pd;
    }
    unary! { Avx2F64,
        sqrt = _mm256_sqrt_pd;
        round = _mm256_round_pd::<NEAREST>; floor = _mm256_round_pd::<DOWN>;
        ceil = _mm256_round_pd::<UP>; trunc = _mm256_round_pd::<ZERO>;
    }
    binary! { Avx2F64,
        min = _mm256_min_pd; max = _mm256_max_pd;
        and = _mm256_and_pd; or = _mm256_or_pd; xor = _mm256_xor_pd;
    }
    compare! { Avx2F64, Mask64, Mask64, _mm256_cmp_pd,
        lt = _CMP_LT_OQ; le = _CMP_LE_OQ; eq = _CMP_EQ_OQ; unordered = _CMP_UNORD_Q;
    }
    integer! { Avx2F64, _mm256_castpd_si256, _mm256_castsi256_pd,
        add_int = _mm256_add_epi64; sub_int = _mm256_sub_epi64;
    }
    #[inline(always)]
    fn sign_mask(self) -> Mask64 {
        // No arithmetic shift of 64-bit lanes: shift the high words, then copy them down.
        let s = ins!(_mm256_srai_epi32::<31>(_mm256_castpd_si256(self.0)));
        Mask64(ins!(_mm256_castsi256_pd(_mm256_shuffle_epi32::<0xF5>(s))))
    }
    #[inline(always)]
    fn select(m: Mask64, a: Self, b: Self) -> Self {
        Avx2F64(ins!(_mm256_blendv_pd(b.0, a.0, m.0)))
    }
    #[inline(always)]
    fn and_not(self, b: Self) -> Self {
        Avx2F64(ins!(_mm256_andnot_pd(b.0, self.0)))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        let n = ins!(_mm_cvtsi32_si128(N as i32));
        let v = ins!(_mm256_sll_epi64(_mm256_castpd_si256(self.0), n));
        Avx2F64(ins!(_mm256_castsi256_pd(v)))
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        let n = ins!(_mm_cvtsi32_si128(N as i32));
        let v = ins!(_mm256_srl_epi64(_mm256_castpd_si256(self.0), n));
        Avx2F64(ins!(_mm256_castsi256_pd(v)))
    }
    #[inline(always)]
    fn rcp_est(self) -> Self {
        Avx2F64(ins!(_mm256_cvtps_pd(_mm_rcp_ps(_mm256_cvtpd_ps(self.0)))))
    }
    #[inline(always)]
    fn rsqrt_est(self) -> Self {
        Avx2F64(ins!(_mm256_cvtps_pd(_mm_rsqrt_ps(_mm256_cvtpd_ps(self.0)))))
    }
    #[inline(always)]
    fn rcp_fast(self) -> Self {
        let y = self.rcp_est();
        // 11.4 bits; e + e^2 in one step gives 34.
        let e = self.fnma(y, Self::lit(1.0));
        y.fma(e.fma(e, e), y)
    }
    exponent_ops!(f64);
}

impl Single for Avx2F32 {
    type Wide = Twin<Avx2F64>;
    #[inline(always)]
    fn widen(self) -> Twin<Avx2F64> {
        let lo = ins!(_mm256_castps256_ps128(self.0));
        let hi = ins!(_mm256_extractf128_ps::<1>(self.0));
        Twin(Avx2F64(ins!(_mm256_cvtps_pd(lo))), Avx2F64(ins!(_mm256_cvtps_pd(hi))))
    }
    #[inline(always)]
    fn narrow(Twin(lo, hi): Twin<Avx2F64>) -> Self {
        Avx2F32(ins!(_mm256_set_m128(_mm256_cvtpd_ps(hi.0), _mm256_cvtpd_ps(lo.0))))
    }
}

/// A window into ones and zeros: the mask of the first `n` of eight lanes starts at `8 - n`.
static WINDOW32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
/// The same for four lanes.
static WINDOW64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

#[inline(always)]
fn part32(n: usize) -> __m256i {
    debug_assert!(n <= 8);
    // SAFETY: 8 - n + 8 <= 16 elements of the window.
    unsafe { _mm256_loadu_si256(WINDOW32.as_ptr().add(8 - n).cast()) }
}

#[inline(always)]
fn part64(n: usize) -> __m256i {
    debug_assert!(n <= 4);
    // SAFETY: 4 - n + 4 <= 8 elements of the window.
    unsafe { _mm256_loadu_si256(WINDOW64.as_ptr().add(4 - n).cast()) }
}

impl Lanes for Avx2F32 {
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller vouches for 8 readable elements.
        Avx2F32(unsafe { _mm256_loadu_ps(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller vouches for 8 writable elements.
        unsafe { _mm256_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        Avx2F32(unsafe { _mm256_maskload_ps(p, part32(n)) })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        unsafe { _mm256_maskstore_ps(p, part32(n), self.0) }
    }
    #[inline(always)]
    fn any(m: Mask32) -> bool {
        ins!(_mm256_movemask_ps(m.0)) != 0
    }
    #[inline(always)]
    fn lanes(m: Mask32) -> u32 {
        ins!(_mm256_movemask_ps(m.0)) as u32
    }
}

impl Lanes for Avx2F64 {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the caller vouches for 4 readable elements.
        Avx2F64(unsafe { _mm256_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: the caller vouches for 4 writable elements.
        unsafe { _mm256_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f64, n: usize) -> Self {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        Avx2F64(unsafe { _mm256_maskload_pd(p, part64(n)) })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f64, n: usize) {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        unsafe { _mm256_maskstore_pd(p, part64(n), self.0) }
    }
    #[inline(always)]
    fn any(m: Mask64) -> bool {
        ins!(_mm256_movemask_pd(m.0)) != 0
    }
    #[inline(always)]
    fn lanes(m: Mask64) -> u32 {
        ins!(_mm256_movemask_pd(m.0)) as u32
    }
}

impl Picks for Avx2F64 {
    #[inline(always)]
    fn pick(self, table: &[f64; 16]) -> Self {
        let which = ins!(_mm256_castpd_si256(self.and(Self::bits(15)).0));
        // SAFETY: AVX2 by the rule of `Vector`, and four bits are an entry of sixteen.
        Avx2F64(unsafe { _mm256_i64gather_pd::<8>(table.as_ptr(), which) })
    }
}
