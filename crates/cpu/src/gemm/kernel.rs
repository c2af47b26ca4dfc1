//! The micro-kernel: one tile of C, all of a K block, everything in registers.
//!
//! One generic source, instantiated for every tile height up to the lanes' maximum and, for floats,
//! one or two vectors of width, so that the edges of C need neither padding nor branches: rows by a
//! smaller kernel, columns by a mask on the last vector. [`Tiled`] is the table of function pointers, read
//! by `matrix`.

use super::complex::Split;
use super::lanes::{Job, Lanes, Level, Plain, RealLanes, Ring};
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
use super::{
    avx2::{F32x8, F64x4},
    avx512::{F32x16, F64x8},
    integers::{Int256, Int512, Ints},
};
use crate::prefetch;
use std::marker::PhantomData;

/// What a micro-kernel works on.
pub(super) struct Tile<E> {
    /// Length of the sums.
    pub(super) k: usize,
    /// The tile's first element of A.
    pub(super) a: *const E,
    /// From one row of A to the next; ignored by kernels for packed A.
    pub(super) a_rows: isize,
    /// From one column of A to the next; ignored by kernels for packed A.
    pub(super) a_cols: isize,
    /// The tile's first element of B; the elements of a row are contiguous.
    pub(super) b: *const E,
    /// From one row of B to the next.
    pub(super) b_rows: isize,
    /// The tile's first element of C; the elements of a row are contiguous.
    pub(super) c: *mut E,
    /// From one row of C to the next.
    pub(super) c_rows: isize,
    /// How many columns the tile has.
    pub(super) width: usize,
    /// Whether C is added to, or written.
    pub(super) accumulate: bool,
    /// What is needed after this tile; only kernels for packed A see to it.
    pub(super) ahead: Ahead,
}

/// Cache lines that will be needed soon: one every [`STRETCH`] of k is fetched into L2. All at once
/// they would take the fill buffers that B's stream needs.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// The first; any address will do.
    pub(super) at: *const u8,
    /// Bytes from one to the next.
    pub(super) step: isize,
}

/// A micro-kernel. Unsafe: the level of its lanes must be available, and the tile's pointers and
/// strides must reach only what may be read (A, B) and written (C).
pub(super) type Kernel<E> = unsafe fn(&Tile<E>);

/// How a kernel reads its operands and writes C: one instance each, but not of every lanes.
pub(super) mod access {
    /// A is a packed panel, B whole vectors, the last vector of C masked.
    pub(in super::super) const PACKED: usize = 0;
    /// A by its strides, B whole vectors, the last vector of C masked.
    pub(in super::super) const STRIDED: usize = 1;
    /// A by its strides, the last vector of B and C masked.
    pub(in super::super) const MASKED: usize = 2;
    /// A by its strides, B whole vectors, any part of C: serves all widths.
    pub(in super::super) const ANY_WIDTH: usize = 3;
}

/// The kernels of a type of lanes.
pub(super) struct Kernels<E: 'static> {
    /// The highest tile.
    pub(super) rows: usize,
    /// The widest tile, in vectors.
    pub(super) vectors: usize,
    /// Whether narrow tiles have kernels of their own. Otherwise B is packed in panels of full width.
    pub(super) every_width: bool,
    /// Whether B can be read where it lies: there is a kernel for each access.
    pub(super) in_place: bool,
    /// By rows; then by vectors, if there are kernels for every width; then by access.
    table: &'static [Kernel<E>],
}

impl<E> Kernels<E> {
    /// The kernel for a tile of `rows` x `vectors`.
    #[inline(always)]
    pub(super) fn get(&self, rows: usize, vectors: usize, access: usize) -> Kernel<E> {
        let by_width =
            if self.every_width { (rows - 1) * self.vectors + vectors - 1 } else { rows - 1 };
        self.table[if self.in_place { by_width * 3 + access } else { by_width }]
    }
}

/// Lanes that have a table of kernels.
pub(super) trait Tiled: Lanes {
    /// The table.
    const KERNELS: Kernels<Self::Elem>;
}

/// Steps before the end of the k loop at which C is fetched into L1: late enough that B's stream
/// does not evict it, early enough to arrive.
const PREFETCH: usize = 48;

/// Steps of k between two lines of [`Ahead`].
pub(super) const STRETCH: usize = 16;

/// The micro-kernel for `MR` rows and `NV` vectors, with one of the [`access`]es.
struct Micro<V, const MR: usize, const NV: usize, const ACCESS: usize>(PhantomData<V>);

impl<V: Lanes, const MR: usize, const NV: usize, const ACCESS: usize> Job
    for Micro<V, MR, NV, ACCESS>
{
    type Args = Tile<V::Elem>;

    // Loops over rows and vectors are counted ones throughout: they unroll to the same code as
    // iterators and compile in half the time, and there are some three hundred instances.
    #[expect(clippy::needless_range_loop, reason = "see above")]
    #[inline(always)]
    unsafe fn run(tile: &Tile<V::Elem>) {
        let packed = ACCESS == access::PACKED;
        // SAFETY: the contract of `Kernel`: the tile's rows, columns and depth are inside of the
        // operands; pointers that run one step past the end are formed by wrapping arithmetic and
        // not read. The level is available.
        unsafe {
            let last = if ACCESS == access::ANY_WIDTH {
                V::WIDTH
            } else {
                tile.width - (NV - 1) * V::WIDTH
            };
            let mask = V::mask(last);
            let mut sums = [[V::zero(); NV]; MR];
            let (mut a, mut middle, mut high) = (tile.a, tile.a, tile.a);
            if !packed && MR > GROUP {
                (middle, high) = later_rows(tile.a, tile.a_rows);
            }
            let mut b = tile.b;
            // Packed operands are those of large products, where C is not in L1 and the next panel
            // of A not in L2.
            let mut fetch_c = packed;
            let mut ahead = tile.ahead.at;
            let mut left = tile.k;
            while left > 0 {
                let steps = if packed { left.min(STRETCH) } else { left };
                if packed {
                    prefetch::into_l2(ahead);
                    ahead = ahead.wrapping_offset(tile.ahead.step);
                }
                if fetch_c && left <= PREFETCH {
                    fetch_c = false;
                    for i in 0..MR {
                        let row = tile.c.wrapping_offset(i as isize * tile.c_rows);
                        for j in 0..NV {
                            prefetch::into_l1(row.wrapping_add(j * V::WIDTH));
                        }
                    }
                }
                let mut step = 0;
                while step < steps {
                    let mut columns = [V::zero(); NV];
                    for j in 0..NV {
                        let from = b.add(j * V::WIDTH);
                        columns[j] = if ACCESS == access::MASKED && j == NV - 1 {
                            V::load_masked(from, mask)
                        } else {
                            V::load_packed(from)
                        };
                    }
                    for i in 0..MR {
                        let base = if packed || i < GROUP {
                            a
                        } else if i < 2 * GROUP {
                            middle
                        } else {
                            high
                        };
                        let across = if packed { 1 } else { tile.a_rows };
                        let row = if packed { i } else { i % GROUP };
                        let from = base.wrapping_offset(row as isize * across);
                        let factor = V::splat(from);
                        for j in 0..NV {
                            sums[i][j] = factor.mul_add(columns[j], sums[i][j]);
                        }
                    }
                    let along = if packed { MR as isize } else { tile.a_cols };
                    a = a.wrapping_offset(along);
                    middle = middle.wrapping_offset(along);
                    high = high.wrapping_offset(along);
                    b = b.wrapping_offset(tile.b_rows);
                    step += 1;
                }
                left -= steps;
            }
            for i in 0..MR {
                let row = tile.c.wrapping_offset(i as isize * tile.c_rows);
                for j in 0..NV {
                    let to = row.wrapping_add(j * V::WIDTH);
                    if ACCESS == access::ANY_WIDTH {
                        let count = tile.width.saturating_sub(j * V::WIDTH).min(V::WIDTH);
                        if count > 0 {
                            finish(sums[i][j], to, count, tile.accumulate);
                        }
                    } else if j < NV - 1 {
                        let mut sum = sums[i][j];
                        if tile.accumulate {
                            sum = V::load(to).add(sum);
                        }
                        sum.store(to);
                    } else {
                        let mut sum = sums[i][j];
                        if tile.accumulate {
                            sum = V::load_masked(to, mask).add(sum);
                        }
                        sum.store_masked(to, mask);
                    }
                }
            }
        }
    }
}

/// How many rows of A are reached from one pointer: with a stride that is 0 to 4 times another,
/// addresses need no arithmetic of their own.
const GROUP: usize = 5;

/// The first rows of the second and third group of rows of A. One pointer for all would be moved
/// from row to row, and the chain of these moves takes as long as the tile's multiply-adds;
/// `black_box` keeps the compiler from finding out that the pointers are related.
#[inline(always)]
fn later_rows<E>(a: *const E, rows: isize) -> (*const E, *const E) {
    let group = |index: isize| a.wrapping_offset(index * GROUP as isize * rows);
    std::hint::black_box((group(1), group(2)))
}

/// Writes or adds the first `count` lanes to C.
///
/// # Safety
/// `to` is valid for `count` elements, `1..=WIDTH`; the lanes' level is available.
#[inline(always)]
unsafe fn finish<V: Lanes>(sum: V, to: *mut V::Elem, count: usize, accumulate: bool) {
    // SAFETY: the same contract.
    unsafe {
        let mask = V::mask(count);
        let sum = if accumulate { V::load_masked(to, mask).add(sum) } else { sum };
        sum.store_masked(to, mask);
    }
}

/// The kernel of one tile size and access, compiled for the lanes' level.
const fn kernel<V: Lanes, const MR: usize, const NV: usize, const ACCESS: usize>() -> Kernel<V::Elem>
{
    V::Level::enter::<Micro<V, MR, NV, ACCESS>>
}

/// The six kernels of one height: one and two vectors, three accesses.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
const fn height<V: Lanes, const MR: usize>() -> [Kernel<V::Elem>; 6] {
    [
        kernel::<V, MR, 1, { access::PACKED }>(),
        kernel::<V, MR, 1, { access::STRIDED }>(),
        kernel::<V, MR, 1, { access::MASKED }>(),
        kernel::<V, MR, 2, { access::PACKED }>(),
        kernel::<V, MR, 2, { access::STRIDED }>(),
        kernel::<V, MR, 2, { access::MASKED }>(),
    ]
}

/// Tables over lanes `V`.
struct Table<V>(PhantomData<V>);

impl<V: Lanes> Table<V> {
    /// For 32 registers: 28 sums, two of B, one of A.
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    const TALL: Kernels<V::Elem> = Kernels {
        rows: 14,
        vectors: 2,
        every_width: true,
        in_place: true,
        table: [
            height::<V, 1>(),
            height::<V, 2>(),
            height::<V, 3>(),
            height::<V, 4>(),
            height::<V, 5>(),
            height::<V, 6>(),
            height::<V, 7>(),
            height::<V, 8>(),
            height::<V, 9>(),
            height::<V, 10>(),
            height::<V, 11>(),
            height::<V, 12>(),
            height::<V, 13>(),
            height::<V, 14>(),
        ]
        .as_flattened(),
    };

    /// For 16 registers: 12 sums, two of B, one of A.
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    const SHORT: Kernels<V::Elem> = Kernels {
        rows: 6,
        vectors: 2,
        every_width: true,
        in_place: true,
        table: [
            height::<V, 1>(),
            height::<V, 2>(),
            height::<V, 3>(),
            height::<V, 4>(),
            height::<V, 5>(),
            height::<V, 6>(),
        ]
        .as_flattened(),
    };

    /// One kernel for each height and no more: for types whose products are rare.
    const LEAN: Kernels<V::Elem> = Kernels {
        rows: 6,
        vectors: 2,
        every_width: false,
        in_place: false,
        table: &[
            kernel::<V, 1, 2, { access::ANY_WIDTH }>(),
            kernel::<V, 2, 2, { access::ANY_WIDTH }>(),
            kernel::<V, 3, 2, { access::ANY_WIDTH }>(),
            kernel::<V, 4, 2, { access::ANY_WIDTH }>(),
            kernel::<V, 5, 2, { access::ANY_WIDTH }>(),
            kernel::<V, 6, 2, { access::ANY_WIDTH }>(),
        ],
    };

    /// For complex numbers in 32 registers: 6 x 2 sums, which take two each, as vectors do.
    const PAIRS: Kernels<V::Elem> = Kernels {
        rows: 6,
        vectors: 2,
        every_width: true,
        in_place: false,
        table: &[
            kernel::<V, 1, 1, { access::STRIDED }>(),
            kernel::<V, 1, 2, { access::STRIDED }>(),
            kernel::<V, 2, 1, { access::STRIDED }>(),
            kernel::<V, 2, 2, { access::STRIDED }>(),
            kernel::<V, 3, 1, { access::STRIDED }>(),
            kernel::<V, 3, 2, { access::STRIDED }>(),
            kernel::<V, 4, 1, { access::STRIDED }>(),
            kernel::<V, 4, 2, { access::STRIDED }>(),
            kernel::<V, 5, 1, { access::STRIDED }>(),
            kernel::<V, 5, 2, { access::STRIDED }>(),
            kernel::<V, 6, 1, { access::STRIDED }>(),
            kernel::<V, 6, 2, { access::STRIDED }>(),
        ],
    };

    /// For complex numbers in 16 registers: 6 x 1 sums.
    const NARROW_PAIRS: Kernels<V::Elem> = Kernels {
        rows: 6,
        vectors: 1,
        every_width: true,
        in_place: false,
        table: &[
            kernel::<V, 1, 1, { access::STRIDED }>(),
            kernel::<V, 2, 1, { access::STRIDED }>(),
            kernel::<V, 3, 1, { access::STRIDED }>(),
            kernel::<V, 4, 1, { access::STRIDED }>(),
            kernel::<V, 5, 1, { access::STRIDED }>(),
            kernel::<V, 6, 1, { access::STRIDED }>(),
        ],
    };
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Tiled for F32x16 {
    const KERNELS: Kernels<f32> = Table::<F32x16>::TALL;
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Tiled for F64x8 {
    const KERNELS: Kernels<f64> = Table::<F64x8>::TALL;
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Tiled for F32x8 {
    const KERNELS: Kernels<f32> = Table::<F32x8>::SHORT;
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl Tiled for F64x4 {
    const KERNELS: Kernels<f64> = Table::<F64x4>::SHORT;
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl<T: Ints> Tiled for Int512<T> {
    const KERNELS: Kernels<T> = Table::<Int512<T>>::LEAN;
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
impl<T: Ints> Tiled for Int256<T> {
    const KERNELS: Kernels<T> = Table::<Int256<T>>::LEAN;
}

impl<T: Ring, const N: usize, L: Level> Tiled for Plain<T, N, L> {
    const KERNELS: Kernels<T> = Table::<Plain<T, N, L>>::LEAN;
}

impl<V: RealLanes> Tiled for Split<V>
where
    Split<V>: Lanes,
{
    const KERNELS: Kernels<<Split<V> as Lanes>::Elem> = if V::WIDTH * size_of::<V::Elem>() == 64 {
        Table::<Split<V>>::PAIRS
    } else {
        Table::<Split<V>>::NARROW_PAIRS
    };
}
