//! Complex numbers as two vectors, one of real and one of imaginary parts.
//!
//! In memory a complex number is a pair; in packed panels of B a vector of `WIDTH` numbers is its
//! real parts followed by its imaginary parts, so that the kernel is four plain multiply-adds and
//! no shuffles. A and C keep the pairs, which are taken apart and put together in registers. Used by `kernel` and `pack` like any other lanes.

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
    /// How many real numbers of the pairs are touched.
    type Mask = usize;
    type Level = V::Level;

    const WIDTH: usize = V::WIDTH;
    const TRANSPOSES: bool = V::TRANSPOSES;
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
        let parts = from.cast::<V::Elem>();
        // SAFETY: `WIDTH` complex numbers are 2 `WIDTH` elements.
        let (re, im) = unsafe { V::unzip(V::load(parts), V::load(parts.add(V::WIDTH))) };
        Split { re, im }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Elem) {
        let parts = to.cast::<V::Elem>();
        // SAFETY: `WIDTH` complex numbers are 2 `WIDTH` elements.
        unsafe {
            let (low, high) = V::zip(self.re, self.im);
            low.store(parts);
            high.store(parts.add(V::WIDTH));
        }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        2 * count
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const Self::Elem, count: usize) -> Self {
        let parts = from.cast::<V::Elem>();
        // SAFETY: the pointer covers `count` elements, and each branch names no more.
        let (re, im) = unsafe {
            if count <= V::WIDTH {
                V::unzip(V::load_masked(parts, V::mask(count)), V::zero())
            } else {
                let high = V::load_masked(parts.add(V::WIDTH), V::mask(count - V::WIDTH));
                V::unzip(V::load(parts), high)
            }
        };
        Split { re, im }
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut Self::Elem, count: usize) {
        let parts = to.cast::<V::Elem>();
        // SAFETY: the pointer covers `count` elements, and each branch names no more.
        unsafe {
            let (low, high) = V::zip(self.re, self.im);
            if count <= V::WIDTH {
                low.store_masked(parts, V::mask(count));
            } else {
                low.store(parts);
                high.store_masked(parts.add(V::WIDTH), V::mask(count - V::WIDTH));
            }
        }
    }

    #[inline(always)]
    unsafe fn transpose(square: &mut [Self; 16]) {
        // SAFETY: the level is the caller's promise.
        unsafe {
            let mut re = square.map(|row| row.re);
            let mut im = square.map(|row| row.im);
            V::transpose(&mut re);
            V::transpose(&mut im);
            for (row, (re, im)) in square.iter_mut().zip(re.into_iter().zip(im)) {
                *row = Split { re, im };
            }
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
    unsafe fn sum(self) -> Self::Elem {
        // SAFETY: the level is the caller's promise.
        unsafe { Complex { re: self.re.sum(), im: self.im.sum() } }
    }

    #[inline(always)]
    fn add_elems(left: Self::Elem, right: Self::Elem) -> Self::Elem {
        Complex { re: V::add_elems(left.re, right.re), im: V::add_elems(left.im, right.im) }
    }

    #[inline(always)]
    fn mul_add_elems(left: Self::Elem, right: Self::Elem, sum: Self::Elem) -> Self::Elem {
        let re = V::mul_add_elems(left.re, right.re, sum.re);
        let im = V::mul_add_elems(left.re, right.im, sum.im);
        Complex {
            re: V::mul_add_elems(V::negative(left.im), right.im, re),
            im: V::mul_add_elems(left.im, right.re, im),
        }
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
