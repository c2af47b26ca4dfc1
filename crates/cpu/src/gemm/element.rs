//! Which kernels serve which dtype on which instruction set.
//!
//! One row per dtype is the whole table. Unsigned integers use the kernels of their signed twins,
//! since wrapping sums and products have the same bits. Called by `batched`.

use super::complex::Split;
use super::family::{Bfloat16, Byte, Float16, Same};
use super::lanes::{Baseline, Bit, Plain};
use super::plan::{Batch, TileUnit, products};
use super::{Parallel, Product};
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
use super::{
    amx,
    avx2::{F32x8, F64x4},
    avx512::{F32x16, F64x8},
    integers::{Int256, Int512},
    split,
};
use crate::isa::Isa;
use half::{bf16, f16};
use num_complex::Complex;
use tilework_error::Result;

/// The units that this machine may have beside its vectors.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
const BF16_UNIT: Option<&TileUnit<bf16>> = Some(&amx::UNIT);
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
const PIECES_UNIT: Option<&TileUnit<f32>> = Some(&split::UNIT);

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
    pub(super) const BF16_UNIT: Option<&super::TileUnit<super::bf16>> = None;
    pub(super) const PIECES_UNIT: Option<&super::TileUnit<f32>> = None;
}
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
use plain_only::{BF16_UNIT, F32x8, F32x16, F64x4, F64x8, Int256, Int512, PIECES_UNIT};

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
    ) -> Result<()>;
}

/// Only the dtypes of this workspace are elements: kernels rely on their layout.
mod sealed {
    /// See [`super::Element`].
    pub trait Sealed {}
}

/// The families that serve a dtype.
macro_rules! elements {
    ($($dtype:ty: $plain:ty, $avx2:ty, $avx512:ty, $unit:expr;)*) => {$(
        impl sealed::Sealed for $dtype {}

        impl Element for $dtype {
            unsafe fn products(
                isa: Isa,
                parallel: &dyn Parallel,
                product: &Product<Self>,
                offsets: &[(isize, isize, isize)],
            ) -> Result<()> {
                let batch = Batch { product: read_as(product), offsets };
                // SAFETY: the same contract; a dtype lies in memory as the `Store` of its families.
                unsafe {
                    match isa {
                        Isa::Scalar => products::<$plain>(parallel, &batch, None),
                        Isa::Avx2 => products::<$avx2>(parallel, &batch, None),
                        Isa::Avx512 => products::<$avx512>(parallel, &batch, $unit),
                    }
                }
            }
        }
    )*};
}

// The plainest instruction set, AVX2, AVX-512, and a unit of its own beside AVX-512.
elements! {
    f32: Same<Plain<f32, 4, Baseline>>, Same<F32x8>, Same<F32x16>, None;
    f64: Same<Plain<f64, 2, Baseline>>, Same<F64x4>, Same<F64x8>, None;
    f16: Float16<Plain<f32, 4, Baseline>>, Float16<F32x8>, Float16<F32x16>, None;
    bf16: Bfloat16<Plain<f32, 4, Baseline>>, Bfloat16<F32x8>, Bfloat16<F32x16>, BF16_UNIT;
    Complex<f32>: Same<Split<Plain<f32, 4, Baseline>>>, Same<Split<F32x8>>, Same<Split<F32x16>>, None;
    Complex<f64>: Same<Split<Plain<f64, 2, Baseline>>>, Same<Split<F64x4>>, Same<Split<F64x8>>, None;
    bool: Same<Plain<Bit, 16, Baseline>>, Same<Int256<Bit>>, Same<Int512<Bit>>, None;
    i8: Byte<Plain<i16, 8, Baseline>>, Byte<Int256<i16>>, Byte<Int512<i16>>, None;
    i16: Same<Plain<i16, 8, Baseline>>, Same<Int256<i16>>, Same<Int512<i16>>, None;
    i32: Same<Plain<i32, 4, Baseline>>, Same<Int256<i32>>, Same<Int512<i32>>, None;
    i64: Same<Plain<i64, 2, Baseline>>, Same<Int256<i64>>, Same<Int512<i64>>, None;
    u8: Byte<Plain<i16, 8, Baseline>>, Byte<Int256<i16>>, Byte<Int512<i16>>, None;
    u16: Same<Plain<i16, 8, Baseline>>, Same<Int256<i16>>, Same<Int512<i16>>, None;
    u32: Same<Plain<i32, 4, Baseline>>, Same<Int256<i32>>, Same<Int512<i32>>, None;
    u64: Same<Plain<i64, 2, Baseline>>, Same<Int256<i64>>, Same<Int512<i64>>, None;
}

/// All float32 products of a batch, by pieces on the tile unit: see [`super::batched_by_pieces`].
///
/// # Safety
/// As [`super::batched`].
pub(super) unsafe fn products_by_pieces(
    isa: Isa,
    parallel: &dyn Parallel,
    product: &Product<f32>,
    offsets: &[(isize, isize, isize)],
) -> Result<()> {
    let batch = Batch { product: *product, offsets };
    // SAFETY: the same contract.
    unsafe {
        match isa {
            Isa::Avx512 => products::<Same<F32x16>>(parallel, &batch, PIECES_UNIT),
            _ => f32::products(isa, parallel, product, offsets),
        }
    }
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
