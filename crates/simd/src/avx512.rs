//! AVX-512 (F, BW, DQ, VL, CD): sixteen `f32` or eight `f64`, masks in mask registers.
//!
//! May assume that every use is inlined below a function with these target features (the rule of
//! [`Vector`]). Called by the drivers of level `Avx512`.

use crate::instructions::rounding::{DOWN, NEAREST, UP, ZERO};
use crate::instructions::{binary, compare, ins, integer, negative, operator, ternary, unary};
use crate::twin::Twin;
use crate::vector::{Lanes, Picks, Single, Vector, estimate_ops};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Sixteen `f32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512F32(pub __m512);
/// Eight `f64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512F64(pub __m512d);

operator!(Avx512F32, Add, add, _mm512_add_ps);
operator!(Avx512F32, Sub, sub, _mm512_sub_ps);
operator!(Avx512F32, Mul, mul, _mm512_mul_ps);
operator!(Avx512F32, Div, div, _mm512_div_ps);
operator!(Avx512F64, Add, add, _mm512_add_pd);
operator!(Avx512F64, Sub, sub, _mm512_sub_pd);
operator!(Avx512F64, Mul, mul, _mm512_mul_pd);
operator!(Avx512F64, Div, div, _mm512_div_pd);

negative!(Avx512F32);
negative!(Avx512F64);

/// For the range instructions: the operand of the smaller magnitude, with the first one's sign.
const SMALLER_MAGNITUDE: i32 = 0b0010;

impl Vector for Avx512F32 {
    type Elem = f32;
    type Mask = __mmask16;

    #[inline(always)]
    fn lit(x: f64) -> Self {
        Avx512F32(ins!(_mm512_set1_ps(x as f32)))
    }
    #[inline(always)]
    fn bits(b: u64) -> Self {
        Avx512F32(ins!(_mm512_castsi512_ps(_mm512_set1_epi32(b as i32))))
    }
    ternary! { Avx512F32,
        mul_add = _mm512_fmadd_ps; neg_mul_add = _mm512_fnmadd_ps; fma = _mm512_fmadd_ps;
        fms = _mm512_fmsub_ps; fnma = _mm512_fnmadd_ps;
    }
    unary! { Avx512F32,
        sqrt = _mm512_sqrt_ps; rcp_est = _mm512_rcp14_ps; rsqrt_est = _mm512_rsqrt14_ps;
        round = _mm512_roundscale_ps::<NEAREST>; floor = _mm512_roundscale_ps::<DOWN>;
        ceil = _mm512_roundscale_ps::<UP>; trunc = _mm512_roundscale_ps::<ZERO>;
        fract = _mm512_reduce_ps::<DOWN>;
    }
    binary! { Avx512F32,
        min = _mm512_min_ps; max = _mm512_max_ps; scalef = _mm512_scalef_ps;
        and = _mm512_and_ps; or = _mm512_or_ps; xor = _mm512_xor_ps;
    }
    #[inline(always)]
    fn within(self, limit: f64) -> Self {
        Avx512F32(ins!(_mm512_range_ps::<SMALLER_MAGNITUDE>(self.0, Self::lit(limit).0)))
    }
    #[inline(always)]
    fn scalef_floor(self, t: Self) -> Self {
        // Lanes that are masked out do not underflow; NaN is not less.
        let normal = ins!(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(t.0, _mm512_set1_ps(-126.0)));
        Avx512F32(ins!(_mm512_maskz_scalef_ps(normal, self.0, t.0)))
    }
    compare! { Avx512F32, __mmask16, std::convert::identity, _mm512_cmp_ps_mask,
        lt = _CMP_LT_OQ; le = _CMP_LE_OQ; eq = _CMP_EQ_OQ; unordered = _CMP_UNORD_Q;
    }
    integer! { Avx512F32, _mm512_castps_si512, _mm512_castsi512_ps,
        add_int = _mm512_add_epi32; sub_int = _mm512_sub_epi32;
    }
    #[inline(always)]
    fn sign_mask(self) -> __mmask16 {
        ins!(_mm512_movepi32_mask(_mm512_castps_si512(self.0)))
    }
    #[inline(always)]
    fn select(m: __mmask16, a: Self, b: Self) -> Self {
        Avx512F32(ins!(_mm512_mask_blend_ps(m, b.0, a.0)))
    }
    #[inline(always)]
    fn and_not(self, b: Self) -> Self {
        Avx512F32(ins!(_mm512_andnot_ps(b.0, self.0)))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        let v = ins!(_mm512_slli_epi32::<N>(_mm512_castps_si512(self.0)));
        Avx512F32(ins!(_mm512_castsi512_ps(v)))
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        let v = ins!(_mm512_srli_epi32::<N>(_mm512_castps_si512(self.0)));
        Avx512F32(ins!(_mm512_castsi512_ps(v)))
    }
    estimate_ops!(f32);
    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let m = ins!(_mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_ZERO>(self.0));
        let e = ins!(_mm512_getexp_ps(self.0));
        let one = Self::lit(1.0);
        // A mantissa below 1 came from [1.5, 2) and was halved.
        let up = Avx512F32(m).lt(one);
        (Avx512F32(m), Avx512F32(ins!(_mm512_mask_add_ps(e, up, e, one.0))))
    }
}

impl Vector for Avx512F64 {
    type Elem = f64;
    type Mask = __mmask8;

    #[inline(always)]
    fn lit(x: f64) -> Self {
        Avx512F64(ins!(_mm512_set1_pd(x)))
    }
    #[inline(always)]
    fn bits(b: u64) -> Self {
        Avx512F64(ins!(_mm512_castsi512_pd(_mm512_set1_epi64(b as i64))))
    }
    ternary! { Avx512F64,
        mul_add = _mm512_fmadd_pd; neg_mul_add = _mm512_fnmadd_pd; fma = _mm512_fmadd_pd;
        fms = _mm512_fmsub_pd; fnma = _mm512_fnmadd_pd;
    }
    unary! { Avx512F64,
        sqrt = _mm512_sqrt_pd; rcp_est = _mm512_rcp14_pd; rsqrt_est = _mm512_rsqrt14_pd;
        round = _mm512_roundscale_pd::<NEAREST>; floor = _mm512_roundscale_pd::<DOWN>;
        ceil = _mm512_roundscale_pd::<UP>; trunc = _mm512_roundscale_pd::<ZERO>;
        fract = _mm512_reduce_pd::<DOWN>;
    }
    binary! { Avx512F64,
        min = _mm512_min_pd; max = _mm512_max_pd; scalef = _mm512_scalef_pd;
        and = _mm512_and_pd; or = _mm512_or_pd; xor = _mm512_xor_pd;
    }
    #[inline(always)]
    fn within(self, limit: f64) -> Self {
        Avx512F64(ins!(_mm512_range_pd::<SMALLER_MAGNITUDE>(self.0, Self::lit(limit).0)))
    }
    #[inline(always)]
    fn scalef_floor(self, t: Self) -> Self {
        // Lanes that are masked out do not underflow; NaN is not less.
        let normal = ins!(_mm512_cmp_pd_mask::<_CMP_NLT_UQ>(t.0, _mm512_set1_pd(-1022.0)));
        Avx512F64(ins!(_mm512_maskz_scalef_pd(normal, self.0, t.0)))
    }
    compare! { Avx512F64, __mmask8, std::convert::identity, _mm512_cmp_pd_mask,
        lt = _CMP_LT_OQ; le = _CMP_LE_OQ; eq = _CMP_EQ_OQ; unordered = _CMP_UNORD_Q;
    }
    integer! { Avx512F64, _mm512_castpd_si512, _mm512_castsi512_pd,
        add_int = _mm512_add_epi64; sub_int = _mm512_sub_epi64;
    }
    #[inline(always)]
    fn sign_mask(self) -> __mmask8 {
        ins!(_mm512_movepi64_mask(_mm512_castpd_si512(self.0)))
    }
    #[inline(always)]
    fn select(m: __mmask8, a: Self, b: Self) -> Self {
        Avx512F64(ins!(_mm512_mask_blend_pd(m, b.0, a.0)))
    }
    #[inline(always)]
    fn and_not(self, b: Self) -> Self {
        Avx512F64(ins!(_mm512_andnot_pd(b.0, self.0)))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        let v = ins!(_mm512_slli_epi64::<N>(_mm512_castpd_si512(self.0)));
        Avx512F64(ins!(_mm512_castsi512_pd(v)))
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        let v = ins!(_mm512_srli_epi64::<N>(_mm512_castpd_si512(self.0)));
        Avx512F64(ins!(_mm512_castsi512_pd(v)))
    }
    estimate_ops!(f64);
    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let m = ins!(_mm512_getmant_pd::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_ZERO>(self.0));
        let e = ins!(_mm512_getexp_pd(self.0));
        let one = Self::lit(1.0);
        let up = Avx512F64(m).lt(one);
        (Avx512F64(m), Avx512F64(ins!(_mm512_mask_add_pd(e, up, e, one.0))))
    }
}

impl Single for Avx512F32 {
    type Wide = Twin<Avx512F64>;
    #[inline(always)]
    fn widen(self) -> Twin<Avx512F64> {
        let hi = ins!(_mm512_extractf32x8_ps::<1>(self.0));
        let lo = ins!(_mm512_castps512_ps256(self.0));
        Twin(Avx512F64(ins!(_mm512_cvtps_pd(lo))), Avx512F64(ins!(_mm512_cvtps_pd(hi))))
    }
    #[inline(always)]
    fn narrow(Twin(lo, hi): Twin<Avx512F64>) -> Self {
        let lo = ins!(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo.0)));
        Avx512F32(ins!(_mm512_insertf32x8::<1>(lo, _mm512_cvtpd_ps(hi.0))))
    }
}

impl Lanes for Avx512F32 {
    const LANES: usize = 16;
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller vouches for 16 readable elements.
        Avx512F32(unsafe { _mm512_loadu_ps(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller vouches for 16 writable elements.
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        Avx512F32(unsafe { _mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, p) })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        unsafe { _mm512_mask_storeu_ps(p, ((1u32 << n) - 1) as u16, self.0) }
    }
    #[inline(always)]
    fn any(m: __mmask16) -> bool {
        m != 0
    }
    #[inline(always)]
    fn lanes(m: __mmask16) -> u32 {
        m.into()
    }
}

impl Lanes for Avx512F64 {
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the caller vouches for 8 readable elements.
        Avx512F64(unsafe { _mm512_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: the caller vouches for 8 writable elements.
        unsafe { _mm512_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f64, n: usize) -> Self {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        Avx512F64(unsafe { _mm512_maskz_loadu_pd(((1u32 << n) - 1) as u8, p) })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f64, n: usize) {
        // SAFETY: masked-off lanes are not accessed; the caller vouches for the first n.
        unsafe { _mm512_mask_storeu_pd(p, ((1u32 << n) - 1) as u8, self.0) }
    }
    #[inline(always)]
    fn any(m: __mmask8) -> bool {
        m != 0
    }
    #[inline(always)]
    fn lanes(m: __mmask8) -> u32 {
        m.into()
    }
}

impl Picks for Avx512F64 {
    #[inline(always)]
    fn pick(self, table: &[f64; 16]) -> Self {
        let (low, high) = table.split_at(8);
        // SAFETY: each half has as many entries as a register.
        let (low, high) = unsafe { (Self::load(low.as_ptr()), Self::load(high.as_ptr())) };
        let which = ins!(_mm512_castpd_si512(self.0));
        Avx512F64(ins!(_mm512_permutex2var_pd(low.0, which, high.0)))
    }
}
