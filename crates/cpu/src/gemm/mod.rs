//! The matrix product of the CPU backend: C = A B, or C += A B, on raw memory with any strides.
//!
//! Callers (the backend's `Matmul` request and the pair formulas) have settled shapes, bounds and
//! overlap; nothing is validated here again. The walk of one call:
//! [`gemm`] -> [`Element`] picks the family of kernels for the dtype and the instruction set ->
//! `plan` turns the problem so that C's rows are contiguous, picks a path and takes the memory for it
//! -> `matrix` (the loops around the micro-kernel), or `vector` and `dots` (few rows of A), or `tiles`
//! (AMX) -> `pack` and `kernel`. Products of a few elements go to `tiny` without a plan. Without the
//! memory a product fails before C is written.
//!
//! **One rule makes the result independent of threads and paths**: K is cut into blocks by its
//! length alone (see [`Blocking::block_of_k`]); within a block every element of C is one chain of
//! multiply-adds in ascending k that starts at zero; the block sums are added in ascending order.
//! Packed, unpacked, K-cut and batched products all do exactly this, so they agree bit for bit. An
//! old C comes before the block sums where kernels write C in place, and after them where sums
//! take another form on their way to C (half floats, bytes, C with no unit stride, few rows of A):
//! again a matter of shape, strides and dtype. Two paths have an order of their own, chosen by
//! shape, strides and, for AMX, the absence of tiny values: dot products (one row of A, or a few of
//! complex numbers, columns of B contiguous, and more than a few terms) sum over lanes, and AMX sums
//! pairs inside of a tile.

mod blocking;
mod caches;
mod complex;
mod depth;
mod dots;
mod element;
mod family;
mod finish;
mod kernel;
mod lanes;
mod matrix;
mod pack;
mod plan;
mod scratch;
mod tiny;
mod vector;

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod amx;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod integers;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod register;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod split;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod tile_state;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod tiles;

pub use blocking::{Blocking, Grid, Shape};
pub use caches::CacheSizes;
pub use element::Element;

use crate::isa::Isa;
use tilework_error::Result;

/// One product `C = A B`, or `C += A B`: `m x k` times `k x n`, strides in elements and of any
/// sign. A stride may be zero in A and B; the elements of C must be distinct from each other and
/// from those of A and B.
#[derive(Debug, Clone, Copy)]
pub struct Product<T> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B: the length of each sum.
    pub k: usize,
    /// Element (0, 0) of A.
    pub a: *const T,
    /// From one row of A to the next.
    pub a_rows: isize,
    /// From one column of A to the next.
    pub a_cols: isize,
    /// Element (0, 0) of B.
    pub b: *const T,
    /// From one row of B to the next.
    pub b_rows: isize,
    /// From one column of B to the next.
    pub b_cols: isize,
    /// Element (0, 0) of C.
    pub c: *mut T,
    /// From one row of C to the next.
    pub c_rows: isize,
    /// From one column of C to the next.
    pub c_cols: isize,
    /// Whether the product is added to C; otherwise C is written and never read.
    pub accumulate: bool,
}

// SAFETY: a product is an address book. Whoever runs it (`gemm`, `batched`) promises that A and B
// may be read and C written from any thread for as long as the call lasts.
unsafe impl<T: Sync> Sync for Product<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Product<T> {}

/// Whoever can run pieces of work on several threads.
pub trait Parallel: Sync {
    /// How many threads may be at work at once, the caller's included. It steers how work is cut,
    /// never what is computed.
    fn threads(&self) -> usize;

    /// Runs `work(0)` to `work(pieces - 1)`, each exactly once, on any threads and in any order,
    /// and returns when all are done.
    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync));

    /// As [`run`](Self::run), for work of some microseconds, which may not be worth a thread that has
    /// to be woken.
    fn run_brief(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        self.run(pieces, work);
    }
}

/// Everything on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Serial;

impl Parallel for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        for piece in 0..pieces {
            work(piece);
        }
    }
}

/// Computes one product, or fails for want of memory with C as it was.
///
/// # Safety
/// `isa` is available on this CPU. Every element of A and B that the sizes and strides reach is
/// initialised and readable, every element of C writable (and initialised if `accumulate`), for
/// the length of the call and from any thread; no two elements of C share memory, nor does C share
/// any with A or B.
pub unsafe fn gemm<T: Element>(
    isa: Isa,
    parallel: &dyn Parallel,
    product: &Product<T>,
) -> Result<()> {
    // SAFETY: the contract of this function is that of `batched` with one product.
    unsafe { batched(isa, parallel, product, &[(0, 0, 0)]) }
}

/// Computes many products of one shape and one set of strides, or none of them for want of memory:
/// for every `(a, b, c)` of `offsets`, the product with that many elements added to the three base
/// addresses.
///
/// # Safety
/// As [`gemm`], for each of the products; no two of them share memory in C.
pub unsafe fn batched<T: Element>(
    isa: Isa,
    parallel: &dyn Parallel,
    product: &Product<T>,
    offsets: &[(isize, isize, isize)],
) -> Result<()> {
    // SAFETY: the same contract.
    unsafe { T::products(isa, parallel, product, offsets) }
}

/// As [`batched`], for float32 by products of bfloat16 pieces on the CPU's tile unit: as accurate,
/// with other last bits. Products that the unit cannot do, for want of it, for their size or for
/// values too small or too large to be split, are computed as `batched` does.
///
/// # Safety
/// As [`batched`].
pub unsafe fn batched_by_pieces(
    isa: Isa,
    parallel: &dyn Parallel,
    product: &Product<f32>,
    offsets: &[(isize, isize, isize)],
) -> Result<()> {
    // SAFETY: the same contract.
    unsafe { element::products_by_pieces(isa, parallel, product, offsets) }
}
