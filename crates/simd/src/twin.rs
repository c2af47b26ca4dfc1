//! Two registers side by side as one vector: every operation is done on both.
//!
//! The instructions of two independent chains then alternate, which a processor with a short
//! scheduler needs: a polynomial alone waits for its own last step most of the time. Used as the
//! `f64` form of a register of `f32`; a loop may also run two registers at once with it. Lane by
//! lane the results are those of the single register.

use crate::vector::{Lanes, Picks, Single, Vector};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// Low lanes and high lanes; also the mask of both.
#[derive(Clone, Copy, Debug)]
pub struct Twin<V>(pub V, pub V);

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<V: $trait<Output = V>> $trait for Twin<V> {
            type Output = Twin<V>;
            #[inline(always)]
            fn $method(self, b: Twin<V>) -> Twin<V> {
                Twin(self.0.$method(b.0), self.1.$method(b.1))
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);
operator!(BitAnd, bitand);
operator!(BitOr, bitor);

impl<V: Neg<Output = V>> Neg for Twin<V> {
    type Output = Twin<V>;
    #[inline(always)]
    fn neg(self) -> Twin<V> {
        Twin(-self.0, -self.1)
    }
}
impl<V: Not<Output = V>> Not for Twin<V> {
    type Output = Twin<V>;
    #[inline(always)]
    fn not(self) -> Twin<V> {
        Twin(!self.0, !self.1)
    }
}

macro_rules! unary {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(self) -> Self {
            Twin(self.0.$method(), self.1.$method())
        })*
    };
}

macro_rules! binary {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(self, b: Self) -> Self {
            Twin(self.0.$method(b.0), self.1.$method(b.1))
        })*
    };
}

macro_rules! ternary {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(self, b: Self, c: Self) -> Self {
            Twin(self.0.$method(b.0, c.0), self.1.$method(b.1, c.1))
        })*
    };
}

macro_rules! compare {
    ($($method:ident)*) => {
        $(#[inline(always)]
        fn $method(self, b: Self) -> Self::Mask {
            Twin(self.0.$method(b.0), self.1.$method(b.1))
        })*
    };
}

impl<V: Vector> Vector for Twin<V> {
    type Elem = V::Elem;
    type Mask = Twin<V::Mask>;

    unary! { sqrt round floor ceil trunc rcp_est rsqrt_est rcp_fast rsqrt fract }
    binary! { min max and or xor and_not add_int sub_int scalef scalef_floor }
    ternary! { mul_add neg_mul_add fma fms fnma }
    compare! { lt le eq unordered }

    #[inline(always)]
    fn lit(x: f64) -> Self {
        Twin(V::lit(x), V::lit(x))
    }
    #[inline(always)]
    fn bits(b: u64) -> Self {
        Twin(V::bits(b), V::bits(b))
    }
    #[inline(always)]
    fn sign_mask(self) -> Self::Mask {
        Twin(self.0.sign_mask(), self.1.sign_mask())
    }
    #[inline(always)]
    fn select(m: Self::Mask, a: Self, b: Self) -> Self {
        Twin(V::select(m.0, a.0, b.0), V::select(m.1, a.1, b.1))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        Twin(self.0.shl::<N>(), self.1.shl::<N>())
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        Twin(self.0.shr::<N>(), self.1.shr::<N>())
    }
    const SCALES_BY_ANY: bool = V::SCALES_BY_ANY;
    #[inline(always)]
    fn within(self, limit: f64) -> Self {
        Twin(self.0.within(limit), self.1.within(limit))
    }
    #[inline(always)]
    fn pow2(n: Self) -> Self {
        Twin(V::pow2(n.0), V::pow2(n.1))
    }
    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let ((m0, e0), (m1, e1)) = (self.0.frexp(), self.1.frexp());
        (Twin(m0, m1), Twin(e0, e1))
    }
}

impl<V: Single> Single for Twin<V> {
    type Wide = Twin<V::Wide>;
    #[inline(always)]
    fn widen(self) -> Self::Wide {
        Twin(self.0.widen(), self.1.widen())
    }
    #[inline(always)]
    fn narrow(wide: Self::Wide) -> Self {
        Twin(V::narrow(wide.0), V::narrow(wide.1))
    }
}

impl<V: Lanes> Lanes for Twin<V> {
    const LANES: usize = 2 * V::LANES;
    #[inline(always)]
    unsafe fn load(p: *const V::Elem) -> Self {
        // SAFETY: the caller vouches for both halves.
        unsafe { Twin(V::load(p), V::load(p.add(V::LANES))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut V::Elem) {
        // SAFETY: the caller vouches for both halves.
        unsafe {
            self.0.store(p);
            self.1.store(p.add(V::LANES));
        }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const V::Elem, n: usize) -> Self {
        // SAFETY: the caller vouches for n elements; the halves divide them.
        unsafe {
            if n < V::LANES {
                Twin(V::load_part(p, n), V::lit(0.0))
            } else {
                Twin(V::load(p), V::load_part(p.add(V::LANES), n - V::LANES))
            }
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut V::Elem, n: usize) {
        // SAFETY: the caller vouches for n elements; the halves divide them.
        unsafe {
            if n < V::LANES {
                self.0.store_part(p, n);
            } else {
                self.0.store(p);
                self.1.store_part(p.add(V::LANES), n - V::LANES);
            }
        }
    }
    #[inline(always)]
    fn any(m: Self::Mask) -> bool {
        V::any(m.0) | V::any(m.1)
    }
    #[inline(always)]
    fn lanes(m: Self::Mask) -> u32 {
        V::lanes(m.0) | V::lanes(m.1) << V::LANES
    }
}

impl<V: Picks> Picks for Twin<V> {
    #[inline(always)]
    fn pick(self, table: &[f64; 16]) -> Self {
        Twin(self.0.pick(table), self.1.pick(table))
    }
}
