//! Integers and bools in vector registers.
//!
//! One type per register width serves 16, 32 and 64-bit integers and bools: loads and stores only
//! move bytes, and [`Ints`] says how a type multiplies and adds. Assumes the instruction set of its
//! level, like all lanes; used by `element` for everything that is not a float.

use super::lanes::{Avx2, Avx512, Bit, Lanes, Ring};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Elements that a vector unit multiplies and adds, wrapping.
///
/// # Safety of the methods
/// Those with 512 need AVX-512 F, BW and DQ, those with 256 AVX2.
pub(super) trait Ints: Ring {
    /// `a * b + sum`.
    unsafe fn mul_add_512(a: __m512i, b: __m512i, sum: __m512i) -> __m512i;
    /// `a + b`.
    unsafe fn add_512(a: __m512i, b: __m512i) -> __m512i;
    /// `a * b + sum`.
    unsafe fn mul_add_256(a: __m256i, b: __m256i, sum: __m256i) -> __m256i;
    /// `a + b`.
    unsafe fn add_256(a: __m256i, b: __m256i) -> __m256i;
}

impl Ints for i16 {
    #[inline(always)]
    unsafe fn mul_add_512(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_add_epi16(_mm512_mullo_epi16(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_512(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_add_epi16(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add_256(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_add_epi16(_mm256_mullo_epi16(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_256(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_add_epi16(a, b) }
    }
}

impl Ints for i32 {
    #[inline(always)]
    unsafe fn mul_add_512(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_add_epi32(_mm512_mullo_epi32(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_512(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add_256(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_add_epi32(_mm256_mullo_epi32(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_256(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_add_epi32(a, b) }
    }
}

impl Ints for i64 {
    #[inline(always)]
    unsafe fn mul_add_512(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512 DQ.
        unsafe { _mm512_add_epi64(_mm512_mullo_epi64(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_512(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add_256(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe {
            // AVX2 multiplies 32 bits: low x low, and the cross products 32 bits higher.
            let swapped = _mm256_shuffle_epi32::<0b10_11_00_01>(b);
            let crossed = _mm256_mullo_epi32(a, swapped);
            let both = _mm256_add_epi32(crossed, _mm256_srli_epi64::<32>(crossed));
            let low = _mm256_mul_epu32(a, b);
            _mm256_add_epi64(_mm256_add_epi64(low, _mm256_slli_epi64::<32>(both)), sum)
        }
    }
    #[inline(always)]
    unsafe fn add_256(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_add_epi64(a, b) }
    }
}

impl Ints for Bit {
    #[inline(always)]
    unsafe fn mul_add_512(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_or_si512(_mm512_and_si512(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_512(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add_256(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_or_si256(_mm256_and_si256(a, b), sum) }
    }
    #[inline(always)]
    unsafe fn add_256(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_or_si256(a, b) }
    }
}

/// An AVX-512 register of `T`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Int512<T>(__m512i, PhantomData<T>);

impl<T: Ints> Lanes for Int512<T> {
    type Elem = T;
    /// One bit per byte.
    type Mask = __mmask64;
    type Level = Avx512;

    const WIDTH: usize = 64 / size_of::<T>();
    const TRANSPOSES: bool = false;
    const ZERO: T = T::ZERO;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX-512.
        Int512(unsafe { _mm512_setzero_si512() }, PhantomData)
    }

    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer to an element of that size.
        let lanes = unsafe {
            match size_of::<T>() {
                1 => _mm512_set1_epi8(from.cast::<i8>().read()),
                2 => _mm512_set1_epi16(from.cast::<i16>().read()),
                4 => _mm512_set1_epi32(from.cast::<i32>().read()),
                _ => _mm512_set1_epi64(from.cast::<i64>().read()),
            }
        };
        Int512(lanes, PhantomData)
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        Int512(unsafe { _mm512_loadu_si512(from.cast()) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller has AVX-512 and a valid pointer.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> __mmask64 {
        u64::MAX >> (64 - count * size_of::<T>())
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const T, mask: __mmask64) -> Self {
        // SAFETY: the caller has AVX-512; bytes outside of the mask are not accessed.
        Int512(unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut T, mask: __mmask64) {
        // SAFETY: the caller has AVX-512; bytes outside of the mask are not accessed.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        Int512(unsafe { T::mul_add_512(self.0, other.0, sum.0) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        Int512(unsafe { T::add_512(self.0, other.0) }, PhantomData)
    }

    #[inline(always)]
    fn add_elems(left: T, right: T) -> T {
        left.plus(right)
    }

    #[inline(always)]
    fn mul_add_elems(left: T, right: T, sum: T) -> T {
        left.times(right).plus(sum)
    }
}

/// An AVX2 register of `T`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Int256<T>(__m256i, PhantomData<T>);

impl<T: Ints> Lanes for Int256<T> {
    type Elem = T;
    /// How many lanes: AVX2 has no masks for small elements.
    type Mask = usize;
    type Level = Avx2;

    const WIDTH: usize = 32 / size_of::<T>();
    const TRANSPOSES: bool = false;
    const ZERO: T = T::ZERO;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has AVX2.
        Int256(unsafe { _mm256_setzero_si256() }, PhantomData)
    }

    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer to an element of that size.
        let lanes = unsafe {
            match size_of::<T>() {
                1 => _mm256_set1_epi8(from.cast::<i8>().read()),
                2 => _mm256_set1_epi16(from.cast::<i16>().read()),
                4 => _mm256_set1_epi32(from.cast::<i32>().read()),
                _ => _mm256_set1_epi64x(from.cast::<i64>().read()),
            }
        };
        Int256(lanes, PhantomData)
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller has AVX2 and a valid pointer.
        Int256(unsafe { _mm256_loadu_si256(from.cast()) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller has AVX2 and a valid pointer.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const T, count: usize) -> Self {
        let mut lanes = [T::ZERO; 32];
        // SAFETY: the caller's pointer is valid for `count` elements, at most `WIDTH`.
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            Self::load(lanes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut T, count: usize) {
        let mut lanes = [T::ZERO; 32];
        // SAFETY: the caller's pointer is valid for `count` elements, at most `WIDTH`.
        unsafe {
            self.store(lanes.as_mut_ptr());
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the caller has AVX2.
        Int256(unsafe { T::mul_add_256(self.0, other.0, sum.0) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        Int256(unsafe { T::add_256(self.0, other.0) }, PhantomData)
    }

    #[inline(always)]
    fn add_elems(left: T, right: T) -> T {
        left.plus(right)
    }

    #[inline(always)]
    fn mul_add_elems(left: T, right: T, sum: T) -> T {
        left.times(right).plus(sum)
    }
}
