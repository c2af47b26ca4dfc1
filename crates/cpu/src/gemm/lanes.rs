//! What the kernels need from a vector register, and how code gets compiled for an instruction set.
//!
//! [`Lanes`] is a vector of packed elements; `avx2`, `avx512` and `complex` implement it, and
//! [`Plain`] does for every type by arrays that the compiler vectorises. [`Level`] is the door into
//! an instruction set: everything reached through [`Level::enter`] is `#[inline(always)]`, so that
//! it is compiled with that level's features. Called by `kernel`, `pack`, `vector` and `family`.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A piece of work that is compiled once for every [`Level`] it is entered through.
pub(super) trait Job {
    /// What it works on.
    type Args;

    /// Does it. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The instruction set of the lanes it uses is available; `args` is valid in the sense of the
    /// job.
    unsafe fn run(args: &Self::Args);
}

/// An instruction set as a type.
pub(super) trait Level: Copy + 'static {
    /// Runs a job, compiled for this instruction set.
    ///
    /// # Safety
    /// The CPU has the instruction set, and the job's own contract holds.
    unsafe fn enter<J: Job>(args: &J::Args);
}

/// What the compilation target guarantees.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Level for Baseline {
    unsafe fn enter<J: Job>(args: &J::Args) {
        // SAFETY: the job's contract is the caller's; the baseline is always available.
        unsafe { J::run(args) }
    }
}

/// AVX2, FMA and F16C.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[derive(Clone, Copy)]
pub(super) struct Avx2;

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Level for Avx2 {
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn enter<J: Job>(args: &J::Args) {
        // SAFETY: the job's contract is the caller's.
        unsafe { J::run(args) }
    }
}

/// AVX-512 F, BW, CD, DQ and VL, on top of AVX2.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[derive(Clone, Copy)]
pub(super) struct Avx512;

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Level for Avx512 {
    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn enter<J: Job>(args: &J::Args) {
        // SAFETY: the job's contract is the caller's.
        unsafe { J::run(args) }
    }
}

/// A vector of elements as the kernels compute with them.
///
/// # Safety of the methods
/// Every method may be called only where `Self::Level` is available; pointers are valid for the
/// elements that the method names and need no alignment beyond the element's.
pub(super) trait Lanes: Copy + 'static {
    /// One lane.
    type Elem: Copy + Send + Sync + 'static;
    /// Which lanes a masked access touches.
    type Mask: Copy;
    /// The instruction set that the methods need.
    type Level: Level;

    /// How many lanes.
    const WIDTH: usize;
    /// Whether [`Lanes::transpose`] works and pays; otherwise packing moves single elements.
    const TRANSPOSES: bool;
    /// Whether packed panels of B hold a vector's elements in another order than memory.
    const REORDERS: bool = false;
    /// The element zero.
    const ZERO: Self::Elem;

    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// The element at `from` in every lane.
    unsafe fn splat(from: *const Self::Elem) -> Self;
    /// `WIDTH` elements.
    unsafe fn load(from: *const Self::Elem) -> Self;
    /// Writes `WIDTH` elements.
    unsafe fn store(self, to: *mut Self::Elem);
    /// The mask of the first `count` lanes, `1..=WIDTH`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// The masked elements, zero elsewhere; the others are not touched.
    unsafe fn load_masked(from: *const Self::Elem, mask: Self::Mask) -> Self;
    /// Writes the masked elements and no others.
    unsafe fn store_masked(self, to: *mut Self::Elem, mask: Self::Mask);
    /// `self * other + sum`, fused where the instruction set can.
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self;
    /// Lane by lane sum.
    unsafe fn add(self, other: Self) -> Self;
    /// The sum of all lanes: of each and the one half the lanes away, until one is left.
    #[inline(always)]
    unsafe fn sum(self) -> Self::Elem {
        let mut parts = MaybeUninit::<[Self::Elem; 64]>::uninit();
        let parts = parts.as_mut_ptr().cast::<Self::Elem>();
        // SAFETY: no lanes are wider than 64, and all that are read have been written.
        unsafe {
            self.store(parts);
            let mut half = Self::WIDTH / 2;
            while half > 0 {
                for i in 0..half {
                    let sum = Self::add_elems(parts.add(i).read(), parts.add(i + half).read());
                    parts.add(i).write(sum);
                }
                half /= 2;
            }
            parts.read()
        }
    }
    /// Sum of two elements.
    fn add_elems(left: Self::Elem, right: Self::Elem) -> Self::Elem;
    /// `left * right + sum` of elements, with the bits of [`Lanes::mul_add`].
    fn mul_add_elems(left: Self::Elem, right: Self::Elem, sum: Self::Elem) -> Self::Elem;

    /// Transposes the first `WIDTH` vectors of `square` as a square matrix.
    unsafe fn transpose(square: &mut [Self; 16]) {
        let _ = square;
        unreachable!("transposing lanes that do not transpose");
    }

    /// Like [`Lanes::load`], from a packed panel of B, where lanes may lie in another order.
    #[inline(always)]
    unsafe fn load_packed(from: *const Self::Elem) -> Self {
        // SAFETY: the same contract.
        unsafe { Self::load(from) }
    }

    /// Like [`Lanes::store`], into a packed panel of B.
    #[inline(always)]
    unsafe fn store_packed(self, to: *mut Self::Elem) {
        // SAFETY: the same contract.
        unsafe { self.store(to) }
    }
}

/// Lanes of real numbers, from which complex lanes are made.
pub(super) trait RealLanes: Lanes {
    /// `sum - self * other`, fused where the instruction set can.
    ///
    /// # Safety
    /// `Self::Level` is available.
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self;

    /// The negative of an element.
    fn negative(elem: Self::Elem) -> Self::Elem;

    /// The elements at even and those at odd places of two vectors that follow each other.
    ///
    /// # Safety
    /// `Self::Level` is available.
    unsafe fn unzip(low: Self, high: Self) -> (Self, Self);

    /// The elements of two vectors in turn: undoes [`unzip`](Self::unzip).
    ///
    /// # Safety
    /// `Self::Level` is available.
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self);
}

/// The arithmetic of one element: all that [`Plain`] needs to know.
pub(super) trait Ring: Copy + Send + Sync + 'static {
    /// Neutral for [`Ring::plus`].
    const ZERO: Self;
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// The product; integers wrap.
    fn times(self, other: Self) -> Self;
    /// The additive inverse.
    fn negative(self) -> Self;
}

impl Ring for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f32) -> f32 {
        self * other
    }
    #[inline(always)]
    fn negative(self) -> f32 {
        -self
    }
}

impl Ring for f64 {
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn negative(self) -> f64 {
        -self
    }
}

impl Ring for i16 {
    const ZERO: i16 = 0;
    #[inline(always)]
    fn plus(self, other: i16) -> i16 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: i16) -> i16 {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn negative(self) -> i16 {
        self.wrapping_neg()
    }
}

impl Ring for i32 {
    const ZERO: i32 = 0;
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: i32) -> i32 {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn negative(self) -> i32 {
        self.wrapping_neg()
    }
}

impl Ring for i64 {
    const ZERO: i64 = 0;
    #[inline(always)]
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn negative(self) -> i64 {
        self.wrapping_neg()
    }
}

/// A bool as the byte that it is (0 or 1): plus is or, times is and.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bit(pub(super) u8);

impl Ring for Bit {
    const ZERO: Bit = Bit(0);
    #[inline(always)]
    fn plus(self, other: Bit) -> Bit {
        Bit(self.0 | other.0)
    }
    #[inline(always)]
    fn times(self, other: Bit) -> Bit {
        Bit(self.0 & other.0)
    }
    #[inline(always)]
    fn negative(self) -> Bit {
        self
    }
}

/// `N` elements in an array; the compiler makes vectors of level `L` of it.
pub(super) struct Plain<T, const N: usize, L>([T; N], PhantomData<L>);

impl<T: Copy, const N: usize, L> Clone for Plain<T, N, L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy, const N: usize, L> Copy for Plain<T, N, L> {}

impl<T: Ring, const N: usize, L: Level> Plain<T, N, L> {
    #[inline(always)]
    fn from_fn(lane: impl Fn(usize) -> T) -> Self {
        let mut lanes = [T::ZERO; N];
        for (i, to) in lanes.iter_mut().enumerate() {
            *to = lane(i);
        }
        Plain(lanes, PhantomData)
    }
}

impl<T: Ring, const N: usize, L: Level> Lanes for Plain<T, N, L> {
    type Elem = T;
    type Mask = usize;
    type Level = L;

    const WIDTH: usize = N;
    const TRANSPOSES: bool = false;
    const ZERO: T = T::ZERO;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Plain([T::ZERO; N], PhantomData)
    }

    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: the caller's pointer is valid for one element.
        Plain([unsafe { from.read() }; N], PhantomData)
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's pointer is valid for N elements.
        Plain(unsafe { from.cast::<[T; N]>().read() }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's pointer is valid for N elements.
        unsafe { to.cast::<[T; N]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const T, count: usize) -> Self {
        let mut lanes = [T::ZERO; N];
        for (i, to) in lanes.iter_mut().enumerate().take(count) {
            // SAFETY: the caller's pointer is valid for `count` elements.
            *to = unsafe { from.add(i).read() };
        }
        Plain(lanes, PhantomData)
    }

    #[inline(always)]
    unsafe fn store_masked(self, to: *mut T, count: usize) {
        for (i, lane) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller's pointer is valid for `count` elements.
            unsafe { to.add(i).write(lane) };
        }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        Self::from_fn(|i| self.0[i].times(other.0[i]).plus(sum.0[i]))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self::from_fn(|i| self.0[i].plus(other.0[i]))
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

impl<T: Ring, const N: usize, L: Level> RealLanes for Plain<T, N, L> {
    #[inline(always)]
    unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
        Self::from_fn(|i| self.0[i].times(other.0[i]).negative().plus(sum.0[i]))
    }

    #[inline(always)]
    fn negative(elem: T) -> T {
        elem.negative()
    }

    #[inline(always)]
    unsafe fn unzip(low: Self, high: Self) -> (Self, Self) {
        let at = |i: usize| if i < N { low.0[i] } else { high.0[i - N] };
        (Self::from_fn(|i| at(2 * i)), Self::from_fn(|i| at(2 * i + 1)))
    }

    #[inline(always)]
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
        let at = |i: usize| if i.is_multiple_of(2) { even.0[i / 2] } else { odd.0[i / 2] };
        (Self::from_fn(at), Self::from_fn(|i| at(N + i)))
    }
}
