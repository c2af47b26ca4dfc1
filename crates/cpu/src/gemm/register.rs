//! What every type of lanes over one vector register has in common, as a macro over its instructions.
//!
//! A type of lanes is one call: the register, the element, the instruction set, and the name of the
//! instruction for each method; the mask of the first lanes and what moves elements between lanes,
//! which differ in kind, are functions beside the call. Used by `avx2` and `avx512`.

/// The type `$name` with its [`Lanes`](super::lanes::Lanes) and [`RealLanes`](super::lanes::RealLanes).
/// The functions named last are called as the methods of the same contract are.
macro_rules! register_lanes {
    (
        $(#[$doc:meta])*
        $name:ident($register:ty) = $elem:ident x $width:literal, $level:ident, $mask:ty;
        $zero:ident, $splat:ident, $load:ident, $store:ident,
        $add:ident, $fmadd:ident, $fnmadd:ident;
        load |$from:ident, $of_load:ident| $load_masked:expr;
        store |$to:ident, $of_store:ident, $value:ident| $store_masked:expr;
        $first:ident, $transpose:ident, $unzip:ident, $zip:ident, $sum:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name($register);

        impl Lanes for $name {
            type Elem = $elem;
            type Mask = $mask;
            type Level = $level;

            const WIDTH: usize = $width;
            const TRANSPOSES: bool = true;
            const ZERO: $elem = 0.0;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller has the level.
                $name(unsafe { $zero() })
            }

            #[inline(always)]
            unsafe fn splat(from: *const $elem) -> Self {
                // SAFETY: the caller has the level and a valid pointer.
                $name(unsafe { $splat(*from) })
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller has the level and a valid pointer.
                $name(unsafe { $load(from) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller has the level and a valid pointer.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            unsafe fn mask(count: usize) -> $mask {
                // SAFETY: the caller has the level.
                unsafe { $first(count) }
            }

            #[inline(always)]
            unsafe fn load_masked($from: *const $elem, $of_load: $mask) -> Self {
                // SAFETY: the caller has the level; lanes outside of the mask are not accessed.
                $name(unsafe { $load_masked })
            }

            #[inline(always)]
            unsafe fn store_masked(self, $to: *mut $elem, $of_store: $mask) {
                let $value = self.0;
                // SAFETY: the caller has the level; lanes outside of the mask are not accessed.
                unsafe { $store_masked }
            }

            #[inline(always)]
            unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: the caller has the level.
                $name(unsafe { $fmadd(self.0, other.0, sum.0) })
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller has the level.
                $name(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn sum(self) -> $elem {
                // SAFETY: the caller has the level.
                unsafe { $sum(self.0) }
            }

            #[inline(always)]
            fn add_elems(left: $elem, right: $elem) -> $elem {
                left + right
            }

            #[inline(always)]
            fn mul_add_elems(left: $elem, right: $elem, sum: $elem) -> $elem {
                left.mul_add(right, sum)
            }

            #[inline(always)]
            unsafe fn transpose(square: &mut [Self; 16]) {
                // SAFETY: the caller has the level.
                unsafe { $transpose(square) }
            }
        }

        impl RealLanes for $name {
            #[inline(always)]
            unsafe fn neg_mul_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: the caller has the level.
                $name(unsafe { $fnmadd(self.0, other.0, sum.0) })
            }

            #[inline(always)]
            fn negative(elem: $elem) -> $elem {
                -elem
            }

            #[inline(always)]
            unsafe fn unzip(low: Self, high: Self) -> (Self, Self) {
                // SAFETY: the caller has the level.
                let (even, odd) = unsafe { $unzip(low.0, high.0) };
                ($name(even), $name(odd))
            }

            #[inline(always)]
            unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
                // SAFETY: the caller has the level.
                let (low, high) = unsafe { $zip(even.0, odd.0) };
                ($name(low), $name(high))
            }
        }
    };
}
pub(super) use register_lanes;
