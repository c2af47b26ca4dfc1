//! Tiles of inner products of points of i with points of j, in registers.
//!
//! The matrix product of a formula: a panel of points of i (its lanes) stays close while points of
//! j pass in groups of a few rows, each component read as a broadcast. Unlike a matrix product it
//! need not write the tile: [`Filter`] compares it with a limit for each lane where it stands, and
//! only tiles that hold something small leave the registers. Points of j lie component by component
//! ([`Columns`]), as the sections of a tape have them. Called by `nearest`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use tilework_backend::Accumulator;
use tilework_simd::{Lanes, Real};

use crate::isa::Isa;

/// Vectors of lanes in a panel.
const VECTORS: usize = 2;

/// Rows of a tile at most.
const MOST_ROWS: usize = 12;

/// Lanes of a panel at most.
const MOST_LANES: usize = 32;

/// A number that formulas are computed in, with its vectors.
pub(super) trait Number: Accumulator + tilework_simd::Real {
    /// Half the distance from 1 to the next number.
    const ROUNDOFF: f64;
    /// The smallest number above zero.
    const TINY: f64;
    /// Squares up to here may be added and scaled without overflow.
    const SAFE: f64;
    /// The plainest vector.
    type Plain: Lanes<Elem = Self>;
    /// The vector of AVX2.
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx2: Lanes<Elem = Self>;
    /// The vector of AVX-512.
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx512: Lanes<Elem = Self>;
}

impl Number for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    const TINY: f64 = f32::from_bits(1) as f64;
    const SAFE: f64 = (1u128 << 64) as f64;
    type Plain = tilework_simd::scalar::ScalarF32;
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx2 = tilework_simd::avx2::Avx2F32;
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx512 = tilework_simd::avx512::Avx512F32;
}

impl Number for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    const TINY: f64 = f64::from_bits(1);
    const SAFE: f64 = f64::MAX / (1u128 << 64) as f64;
    type Plain = tilework_simd::scalar::ScalarF64;
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx2 = tilework_simd::avx2::Avx2F64;
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    type Avx512 = tilework_simd::avx512::Avx512F64;
}

/// Something to do with the vectors of an instruction set, in tiles that fill its registers.
pub(super) trait TileWork<T> {
    /// What it gives.
    type Output;
    /// Does it; must be `#[inline(always)]`.
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) -> Self::Output;
}

/// Does work with the vectors of `isa`.
#[inline]
pub(super) fn with_tiles<T: Number, W: TileWork<T>>(isa: Isa, work: W) -> W::Output {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<T: Number, W: TileWork<T>>(work: W) -> W::Output {
        work.run::<T::Avx2, 6>()
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    fn avx512<T: Number, W: TileWork<T>>(work: W) -> W::Output {
        work.run::<T::Avx512, MOST_ROWS>()
    }
    match isa {
        // SAFETY: `Isa::current`, where every isa comes from, gives only what the CPU has.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx2 => unsafe { avx2(work) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 => unsafe { avx512(work) },
        _ => work.run::<T::Plain, 4>(),
    }
}

/// How many rows of j and lanes of i a tile has under an instruction set.
pub(super) fn tile_shape<T: Number>(isa: Isa) -> (usize, usize) {
    struct Shape;
    impl<T> TileWork<T> for Shape {
        type Output = (usize, usize);
        #[inline(always)]
        fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) -> (usize, usize) {
            (ROWS, VECTORS * V::LANES)
        }
    }
    with_tiles::<T, Shape>(isa, Shape)
}

/// Points of j, component by component, `pitch` numbers apart.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a, T> {
    pub(super) numbers: &'a [T],
    pub(super) pitch: usize,
}

/// `start[row] + <x lane, y row>` for a tile of rows and lanes.
///
/// # Safety
/// `x` is a panel of as many components as there are in `y`; `y` and `start` have `ROWS` rows from
/// `row` on.
#[inline(always)]
unsafe fn products<V: Lanes, const ROWS: usize>(
    x: &[V::Elem],
    y: Columns<'_, V::Elem>,
    start: &[V::Elem],
    row: usize,
) -> [[V; VECTORS]; ROWS] {
    // Plain loops over indices: what iterators and closures hold is not always inlined under the
    // features of the caller.
    let lanes = VECTORS * V::LANES;
    let mut sums = [[V::lit(0.0); VECTORS]; ROWS];
    // SAFETY: the caller's promise: components of the panel are `lanes` apart, and there are as
    // many as columns; all rows exist.
    unsafe {
        let start = start.as_ptr().add(row);
        for r in 0..ROWS {
            sums[r] = [V::lit((*start.add(r)).to_f64()); VECTORS];
        }
        let (mut x_at, mut y_at) = (x.as_ptr(), y.numbers.as_ptr().add(row));
        for _ in 0..x.len() / lanes {
            let mut of_x = [V::lit(0.0); VECTORS];
            for v in 0..VECTORS {
                of_x[v] = V::load(x_at.add(v * V::LANES));
            }
            for r in 0..ROWS {
                let of_y = V::lit((*y_at.add(r)).to_f64());
                for v in 0..VECTORS {
                    sums[r][v] = of_x[v].mul_add(of_y, sums[r][v]);
                }
            }
            x_at = x_at.add(lanes);
            y_at = y_at.wrapping_add(y.pitch);
        }
    }
    sums
}

/// A tile in which a lane is below its limit.
pub(super) struct Found<T> {
    /// The first row of the tile.
    pub(super) row: usize,
    /// Lanes below their limit, row by row.
    pub(super) lanes: [u32; MOST_ROWS],
    /// The tile, row after row of `MOST_LANES` numbers.
    values: [T; MOST_ROWS * MOST_LANES],
}

impl<T: Number> Found<T> {
    pub(super) fn new() -> Found<T> {
        Found { row: 0, lanes: [0; MOST_ROWS], values: [T::ZERO; MOST_ROWS * MOST_LANES] }
    }

    pub(super) fn value(&self, row: usize, lane: usize) -> T {
        self.values[row * MOST_LANES + lane]
    }
}

/// Looks for the next tile in which `start + <x, y>` is below the limit of a lane.
pub(super) struct Filter<'a, T> {
    /// A panel of lanes: component after component.
    pub(super) x: &'a [T],
    /// Whole groups of rows.
    pub(super) y: Columns<'a, T>,
    /// What the products are added to, by row.
    pub(super) start: &'a [T],
    /// One limit for each lane.
    pub(super) limit: &'a [T],
    /// The first row to look at.
    pub(super) from: usize,
    /// Where the tile goes.
    pub(super) found: &'a mut Found<T>,
}

impl<T: Number> TileWork<T> for Filter<'_, T> {
    /// Whether there is one.
    type Output = bool;

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) -> bool {
        let Filter { x, y, start, limit, from, found } = self;
        let components = x.len() / (VECTORS * V::LANES);
        assert!(limit.len() >= VECTORS * V::LANES && start.len().is_multiple_of(ROWS));
        assert!(y.pitch >= start.len() && y.numbers.len() >= components * y.pitch);
        let mut limits = [V::lit(0.0); VECTORS];
        for v in 0..VECTORS {
            // SAFETY: there is a limit for each lane.
            limits[v] = unsafe { V::load(limit.as_ptr().add(v * V::LANES)) };
        }
        let mut row = from;
        while row + ROWS <= start.len() {
            // SAFETY: rows up to `row + ROWS` exist in `start`, so also in every column.
            let sums: [[V; VECTORS]; ROWS] = unsafe { products::<V, ROWS>(x, y, start, row) };
            let mut least = sums[0];
            for r in 1..ROWS {
                for v in 0..VECTORS {
                    least[v] = sums[r][v].min(least[v]);
                }
            }
            let mut any = false;
            for v in 0..VECTORS {
                any |= V::any(least[v].lt(limits[v]));
            }
            if any {
                found.row = row;
                for r in 0..ROWS {
                    found.lanes[r] = 0;
                    for v in 0..VECTORS {
                        found.lanes[r] |= V::lanes(sums[r][v].lt(limits[v])) << (v * V::LANES);
                        let to = &mut found.values[r * MOST_LANES + v * V::LANES..][..V::LANES];
                        // SAFETY: there is room for the lanes of a vector.
                        unsafe { sums[r][v].store(to.as_mut_ptr()) };
                    }
                }
                return true;
            }
            row += ROWS;
        }
        false
    }
}
