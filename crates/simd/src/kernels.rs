//! Contiguous kernels: one function of plain pointers per operation, element and level, and the
//! table that lists them.
//!
//! A kernel reads `n` elements from each input and writes `n` to `out`, which overlaps no input.
//! Tails run through the same vector code behind masks, so the bits of a result do not depend on
//! where its element stands. Called through the tables of the CPU backend.

use crate::functions::each_function;
use crate::math::{
    erf as error, exp32, exp64, inverse32, inverse64, log32, log64, pair, power, root, trig32,
    trig64,
};
use crate::scalar::{ScalarF32, ScalarF64};
use crate::vector::{Lanes, Vector};
use crate::{Elem, Kernel, Level};

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
use crate::{
    avx2::{Avx2F32, Avx2F64},
    avx512::{Avx512F32, Avx512F64},
};

/// The loops of a kernel, written out in the driver so that everything below them is compiled with
/// the driver's target features. Running two registers at once (`Twin`) was measured and gains nothing:
/// the loop is bound by instructions, not by their latency.
macro_rules! body {
    ($arity:tt, $v:ty, $f:path, $n:ident, $out:ident, $a:ident, $b:ident) => {{
        type E = <$v as Vector>::Elem;
        let (out, a, b) = ($out.cast::<E>(), $a.cast::<E>(), $b.cast::<E>());
        // An operation of one input ignores the second pointer.
        let _ = b;
        let mut i = 0;
        while i + <$v>::LANES <= $n {
            // SAFETY: i + LANES <= n, and the caller vouches for n elements.
            unsafe { body!(@ $arity, $v, $f, elem(a, i), elem(b, i)).store(elem_mut(out, i)) };
            i += <$v>::LANES;
        }
        if i < $n {
            let k = $n - i;
            // SAFETY: k elements are left, fewer than LANES.
            unsafe {
                body!(@part $arity, $v, $f, elem(a, i), elem(b, i), k).store_part(elem_mut(out, i), k)
            };
        }
    }};
    (@ 1, $v:ty, $f:path, $a:expr, $b:expr) => {
        $f(<$v>::load($a))
    };
    (@ 2, $v:ty, $f:path, $a:expr, $b:expr) => {
        $f(<$v>::load($a), <$v>::load($b))
    };
    (@part 1, $v:ty, $f:path, $a:expr, $b:expr, $k:ident) => {
        $f(<$v>::load_part($a, $k))
    };
    (@part 2, $v:ty, $f:path, $a:expr, $b:expr, $k:ident) => {
        $f(<$v>::load_part($a, $k), <$v>::load_part($b, $k))
    };
}

/// # Safety
/// `i` elements from `p` lie in one allocation.
#[inline(always)]
unsafe fn elem<T>(p: *const T, i: usize) -> *const T {
    // SAFETY: the caller's promise.
    unsafe { p.add(i) }
}

/// # Safety
/// `i` elements from `p` lie in one allocation.
#[inline(always)]
unsafe fn elem_mut<T>(p: *mut T, i: usize) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { p.add(i) }
}

/// Defines a module per operation with six kernels, and the table of all.
macro_rules! kernels {
    ($([$($name:ident: $arity:tt, $f32:path, $f64:path;)*])*) => {
        $($(
            mod $name {
                use super::*;
                pub(super) unsafe fn scalar32(
                    n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                ) {
                    body!($arity, ScalarF32, $f32, n, out, a, b)
                }
                pub(super) unsafe fn scalar64(
                    n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                ) {
                    body!($arity, ScalarF64, $f64, n, out, a, b)
                }
                #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                mod x86 {
                    use super::*;
                    #[target_feature(enable = "avx2,fma,f16c")]
                    pub(in super::super) unsafe fn avx2_32(
                        n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                    ) {
                        body!($arity, Avx2F32, $f32, n, out, a, b)
                    }
                    #[target_feature(enable = "avx2,fma,f16c")]
                    pub(in super::super) unsafe fn avx2_64(
                        n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                    ) {
                        body!($arity, Avx2F64, $f64, n, out, a, b)
                    }
                    #[target_feature(
                        enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"
                    )]
                    pub(in super::super) unsafe fn avx512_32(
                        n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                    ) {
                        body!($arity, Avx512F32, $f32, n, out, a, b)
                    }
                    #[target_feature(
                        enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"
                    )]
                    pub(in super::super) unsafe fn avx512_64(
                        n: usize, out: *mut u8, a: *const u8, b: *const u8, _: *const u8,
                    ) {
                        body!($arity, Avx512F64, $f64, n, out, a, b)
                    }
                }
                #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                pub(super) const ROWS: [[Kernel; 3]; 2] = [
                    [scalar32, x86::avx2_32, x86::avx512_32],
                    [scalar64, x86::avx2_64, x86::avx512_64],
                ];
                #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
                pub(super) const ROWS: [[Kernel; 3]; 2] = [[scalar32; 3], [scalar64; 3]];
            }
        )*)*

        /// Every kernel: name, element, and one function a [`Level`]. A build without vector
        /// levels repeats the scalar function.
        pub const KERNELS: &[(&str, Elem, [Kernel; 3])] = &[
            $($(
                (stringify!($name), Elem::F32, $name::ROWS[0]),
                (stringify!($name), Elem::F64, $name::ROWS[1]),
            )*)*
        ];
    };
}

each_function!(kernels);

/// The kernel of an operation, if there is one. The caller sees to it that the CPU has `level`
/// ([`Level::is_available`]).
pub fn kernel(name: &str, elem: Elem, level: Level) -> Option<Kernel> {
    KERNELS.iter().find(|k| k.0 == name && k.1 == elem).map(|k| k.2[level as usize])
}
