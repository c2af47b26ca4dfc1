//! Which kernels serve which dtype on which instruction set.
//!
//! One `impl` per dtype is the whole table. Unsigned integers use the kernels of their signed
//! twins, since wrapping sums and products have the same bits. Called by `gemm` and `batched`.

use super::complex::Split;
use super::family::{Bfloat16, Byte, Family, Float16, Same};
use super::lanes::{Baseline, Bit, Plain};
use super::{Parallel, Product, plan};
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
use super::{
    avx2::{F32x8, F64x4},
    avx512::{F32x16, F64x8},
    integers::{Int256, Int512},
};
use crate::isa::Isa;
use half::{bf16, f16};
use num_complex::Complex;

/// Elsewhere, every instruction set is the plainest one (and `Isa` never offers another).
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
mod plain_only {
    use super::{Baseline, Plain};
    pub(super) type Int256<T> = Plain<T, 4, Baseline>;
    pub(super) type Int512<T> = Plain<T, 4, Baseline>;
    pub(super) type F32x8 = Plain<f32, 4, Baseline>;
    pub(super) type F32x16 = Plain<f32, 4, Baseline>;
    pub(super) type F64x4 = Plain<f64, 2, Baseline>;
    pub(super) type F64x8 = Plain<f64, 2, Baseline>;
}
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
use plain_only::{F32x8, F32x16, F64x4, F64x8, Int256, Int512};

/// A dtype that products are made of. Floats multiply and add; half floats do so in float32 and
/// round once; integers wrap; bools are an or of ands.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// All products of a batch: see [`super::batched`], which is the way to call it.
    ///
    /// # Safety
    /// As [`super::batched`].
    #[doc(hidden)]
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    );
}

/// Only the dtypes of this workspace are elements: kernels rely on their layout.
mod sealed {
    /// See [`super::Element`].
    pub trait Sealed {}
}

/// The same addresses, read as another type of the same layout.
fn read_as<T, S>(p: &Product<T>) -> Product<S> {
    Product {
        m: p.m,
        n: p.n,
        k: p.k,
        a: p.a.cast(),
        a_rows: p.a_rows,
        a_cols: p.a_cols,
        b: p.b.cast(),
        b_rows: p.b_rows,
        b_cols: p.b_cols,
        c: p.c.cast(),
        c_rows: p.c_rows,
        c_cols: p.c_cols,
        accumulate: p.accumulate,
    }
}

/// The arguments of one call, as the families take them.
struct Call<'a, T> {
    isa: Isa,
    parallel: &'a dyn Parallel,
    product: &'a Product<T>,
    offsets: &'a [(isize, isize, isize)],
}

impl<T> Call<'_, T> {
    /// Runs the family of the instruction set: `P` for the plainest, then AVX2, then AVX-512.
    ///
    /// # Safety
    /// As [`super::batched`]; `T` and the families' `Store` have the same layout.
    unsafe fn run<P, V2, V512>(&self)
    where
        P: Family,
        V2: Family<Store = P::Store>,
        V512: Family<Store = P::Store>,
    {
        debug_assert_eq!(size_of::<T>(), size_of::<P::Store>());
        let product = read_as(self.product);
        // SAFETY: the same contract.
        unsafe {
            match self.isa {
                Isa::Scalar => plan::products::<P>(self.parallel, &product, self.offsets),
                Isa::Avx2 => plan::products::<V2>(self.parallel, &product, self.offsets),
                Isa::Avx512 => plan::products::<V512>(self.parallel, &product, self.offsets),
            }
        }
    }
}

impl sealed::Sealed for f32 {}

impl Element for f32 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<f32, 4, Baseline>>, Same<F32x8>, Same<F32x16>>() }
    }
}

impl sealed::Sealed for f64 {}

impl Element for f64 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<f64, 2, Baseline>>, Same<F64x4>, Same<F64x8>>() }
    }
}

impl sealed::Sealed for f16 {}

impl Element for f16 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Float16<Plain<f32, 4, Baseline>>, Float16<F32x8>, Float16<F32x16>>() }
    }
}

impl sealed::Sealed for bf16 {}

impl Element for bf16 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe {
            call.run::<Bfloat16<Plain<f32, 4, Baseline>>, Bfloat16<F32x8>, Bfloat16<F32x16>>()
        }
    }
}

impl sealed::Sealed for Complex<f32> {}

impl Element for Complex<f32> {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe {
            call.run::<Same<Split<Plain<f32, 4, Baseline>>>, Same<Split<F32x8>>, Same<Split<F32x16>>>()
        }
    }
}

impl sealed::Sealed for Complex<f64> {}

impl Element for Complex<f64> {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe {
            call.run::<Same<Split<Plain<f64, 2, Baseline>>>, Same<Split<F64x4>>, Same<Split<F64x8>>>()
        }
    }
}

impl sealed::Sealed for bool {}

impl Element for bool {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe {
            call.run::<Same<Plain<Bit, 16, Baseline>>, Same<Int256<Bit>>, Same<Int512<Bit>>>()
        }
    }
}

impl sealed::Sealed for i8 {}

impl Element for i8 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Byte<Plain<i16, 8, Baseline>>, Byte<Int256<i16>>, Byte<Int512<i16>>>() }
    }
}

impl sealed::Sealed for i16 {}

impl Element for i16 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i16, 8, Baseline>>, Same<Int256<i16>>, Same<Int512<i16>>>() }
    }
}

impl sealed::Sealed for i32 {}

impl Element for i32 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i32, 4, Baseline>>, Same<Int256<i32>>, Same<Int512<i32>>>() }
    }
}

impl sealed::Sealed for i64 {}

impl Element for i64 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i64, 2, Baseline>>, Same<Int256<i64>>, Same<Int512<i64>>>() }
    }
}

impl sealed::Sealed for u8 {}

impl Element for u8 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Byte<Plain<i16, 8, Baseline>>, Byte<Int256<i16>>, Byte<Int512<i16>>>() }
    }
}

impl sealed::Sealed for u16 {}

impl Element for u16 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i16, 8, Baseline>>, Same<Int256<i16>>, Same<Int512<i16>>>() }
    }
}

impl sealed::Sealed for u32 {}

impl Element for u32 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i32, 4, Baseline>>, Same<Int256<i32>>, Same<Int512<i32>>>() }
    }
}

impl sealed::Sealed for u64 {}

impl Element for u64 {
    unsafe fn products(
        isa: Isa,
        parallel: &dyn Parallel,
        product: &Product<Self>,
        offsets: &[(isize, isize, isize)],
    ) {
        let call = Call { isa, parallel, product, offsets };
        // SAFETY: the caller's contract.
        unsafe { call.run::<Same<Plain<i64, 2, Baseline>>, Same<Int256<i64>>, Same<Int512<i64>>>() }
    }
}
