//! Complex numbers as two vectors, one of real and one of imaginary parts.
//!
//! In memory a complex number is a pair; in packed panels of B a vector of `WIDTH` numbers is its
//! real parts followed by its imaginary parts, so that the kernel is four plain multiply-adds and
//! no shuffles. A and C keep the pairs. Used by `kernel` and `pack` like any other lanes.

use super::lanes::{Lanes, RealLanes};
use num_complex::Complex;

/// `WIDTH` complex numbers.
#[derive(Clone, Copy)]
pub(super) struct Split<V> {
    re: V,
    im: V,
}

impl<V> Lanes for Split<V>
where
    V: RealLanes,
    V::Elem: Copy,
{
    type Elem = Complex<V::Elem>;
    type Mask = usize;
    type Level = V::Level;

    const WIDTH: usize = V::WIDTH;
    const TRANSPOSES: bool = false;
    const REORDERS: bool = true;
    const ZERO: Complex<V::Elem> = Complex { re: V::ZERO, im: V::ZERO };

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the level is the caller's promise.
        unsafe { Split { re: V::zero(), im: V::zero() } }
    }

    #[inline(always)]
    unsafe fn splat(from: *const Self::Elem) -> Self {
        let parts = from.cast::<V::Elem>();
        // SAFETY: a complex number is two elements; the level is the caller's promise.
        unsafe { Split { re: V::splat(parts), im: V::splat(parts.add(1)) } }
    }

    #[inline(always)]
    unsafe fn load(from: *const Self::Elem) -> Self {
        // SAFETY: the same contract.
        unsafe { Self::load_masked(from, V::WIDTH) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Elem) {
        // SAFETY: the same contract.
        unsafe { self.store_masked(to, V::WIDTH) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const Self::Elem, count: usize) -> Self {
        let mut re = [V::ZERO; 16];
        let mut im = [V::ZERO; 16];
        for i in 0..count {
            // SAFETY: `i < count`, which the caller's pointer covers.
            let value = unsafe { from.add(i).read() };
            re[i] = value.re;
            im[i] = value.im;
        }
        // SAFETY: real lanes are at most 16 wide; the level is the caller's promise.
        unsafe { Split { re: V::load(re.as_ptr()), im: V::load(im.as_ptr()) } }
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut Self::Elem, count: usize) {
        let mut re = [V::ZERO; 16];
        let mut im = [V::ZERO; 16];
        // SAFETY: real lanes are at most 16 wide; the level is the caller's promise.
        unsafe {
            self.re.store(re.as_mut_ptr());
            self.im.store(im.as_mut_ptr());
        }
        for i in 0..count {
            // SAFETY: `i < count`, which the caller's pointer covers.
            unsafe { to.add(i).write(Complex { re: re[i], im: im[i] }) };
        }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: the level is the caller's promise.
        unsafe {
            let re = self.re.mul_add(other.re, sum.re);
            let im = self.re.mul_add(other.im, sum.im);
            Split { re: self.im.neg_mul_add(other.im, re), im: self.im.mul_add(other.re, im) }
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the level is the caller's promise.
        unsafe { Split { re: self.re.add(other.re), im: self.im.add(other.im) } }
    }

    #[inline(always)]
    fn add_elems(left: Self::Elem, right: Self::Elem) -> Self::Elem {
        Complex { re: V::add_elems(left.re, right.re), im: V::add_elems(left.im, right.im) }
    }

    #[inline(always)]
    unsafe fn load_packed(from: *const Self::Elem) -> Self {
        let parts = from.cast::<V::Elem>();
        // SAFETY: `WIDTH` complex numbers are 2 `WIDTH` elements.
        unsafe { Split { re: V::load(parts), im: V::load(parts.add(V::WIDTH)) } }
    }

    #[inline(always)]
    unsafe fn store_packed(self, to: *mut Self::Elem) {
        let parts = to.cast::<V::Elem>();
        // SAFETY: `WIDTH` complex numbers are 2 `WIDTH` elements.
        unsafe {
            self.re.store(parts);
            self.im.store(parts.add(V::WIDTH));
        }
    }
}
