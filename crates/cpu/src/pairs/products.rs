//! Tiles of inner products of points of i with points of j, in registers.
//!
//! The matrix product of a formula: a panel of points of i (its lanes) stays close while points of
//! j pass in groups of a few rows, each component read as a broadcast. Unlike a matrix product it
//! need not write the tile: `filter` compares it with a limit for each lane where it stands. Points of
//! j lie component by component ([`Columns`]), as the sections of a tape have them. Called by `filter`,
//! `columns` and `packed`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use std::ops::Range;

use tilework_backend::{Accumulator, try_room};
use tilework_error::Result;
use tilework_simd::{Lanes, Level, Real, TileWork, Tiled};

use super::{Source, position};
use crate::isa::Isa;
use crate::map::moves;
use crate::prefetch;

/// Vectors of lanes in a panel.
pub(super) const VECTORS: usize = 2;

/// Lanes of a panel at most.
pub(super) const MOST_LANES: usize = 32;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Points that a centre is the mean of, at most.
const SAMPLE: usize = 256;

/// A number that formulas are computed in, with its vectors.
pub(super) trait Number: Accumulator + Tiled {
    /// Half the distance from 1 to the next number.
    const ROUNDOFF: f64;
    /// The smallest number above zero.
    const TINY: f64;
    /// Squares up to here may be added and scaled without overflow.
    const SAFE: f64;
    /// More than any value of a filter, for points whose squares are safe.
    const NO_LIMIT: f64 = 64.0 * Self::SAFE;
    /// Whether float64 holds their squares exactly.
    const SHORT: bool;
    /// Powers of two down to less than one over that of this are normal numbers.
    const NORMAL: f64;
}

impl Number for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    const TINY: f64 = f32::from_bits(1) as f64;
    const SAFE: f64 = (1u128 << 64) as f64;
    const SHORT: bool = true;
    const NORMAL: f64 = 120.0;
}

impl Number for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    const TINY: f64 = f64::from_bits(1);
    const SAFE: f64 = f64::MAX / (1u128 << 64) as f64;
    const SHORT: bool = false;
    const NORMAL: f64 = 1000.0;
}

/// Does work with the vectors of `isa`.
#[inline]
pub(super) fn with_tiles<T: Number, W: TileWork<T>>(isa: Isa, work: W) -> W::Output {
    // SAFETY: `Isa::current`, where every isa comes from, gives only what the CPU has.
    unsafe { T::with_tiles(Level::ALL[isa as usize], work) }
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

/// Points of a batch as addresses: row and component steps in elements.
#[derive(Clone, Copy)]
pub(super) struct Points<T> {
    base: *const T,
    row: isize,
    component: isize,
}

// SAFETY: an address; whoever reads from it promises that it may be read, on any thread.
unsafe impl<T: Sync> Sync for Points<T> {}

impl<T: Number> Points<T> {
    /// The points of an input, whose numbers are of this type.
    pub(super) fn of(source: &Source, batch: &[usize]) -> Points<T> {
        let strides = &source.layout.strides()[batch.len()..];
        let base = source.base.cast::<T>().wrapping_offset(position(&source.layout, batch));
        Points { base, row: strides[0], component: strides[1] }
    }

    /// A point near the middle of some: the mean of a sample. Any point is right to centre on, a
    /// near one is good.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn middle(&self, rows: &Range<usize>, components: usize) -> Result<Vec<T>> {
        let step = rows.len().div_ceil(SAMPLE).max(1);
        let mean = |c: usize| {
            let rows = rows.clone().step_by(step);
            let count = rows.len().max(1) as f64;
            // SAFETY: the caller's promise.
            let sum: f64 = rows.map(|row| unsafe { self.at(row, c) }.f64()).sum();
            T::of(sum / count)
        };
        let mut middle = try_room("pack", components)?;
        middle.extend((0..components).map(mean));
        Ok(middle)
    }

    /// A component of a point.
    ///
    /// # Safety
    /// The point may be read.
    #[inline(always)]
    pub(super) unsafe fn at(&self, row: usize, component: usize) -> T {
        let at = row as isize * self.row + component as isize * self.component;
        // SAFETY: the caller's promise.
        unsafe { self.base.offset(at).read_unaligned() }
    }

    /// The largest magnitude of the first components of some points; NaN if one is that.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn largest(&self, count: usize) -> f64 {
        // SAFETY: the caller's promise.
        let numbers = (0..count).map(|row| unsafe { self.at(row, 0) }.f64().abs());
        numbers.fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most })
    }

    /// Has points from `first` on brought near, if they lie close together. There need not be any.
    pub(super) fn fetch(&self, first: usize, count: usize) {
        let row = self.row.unsigned_abs() * size_of::<T>();
        if self.row <= 0 || row > LINE {
            return;
        }
        let from = self.base.wrapping_offset(first as isize * self.row).cast::<u8>();
        (0..count * row).step_by(LINE).for_each(|at| prefetch::into_l2(from.wrapping_add(at)));
    }

    /// Points from `first` on as columns.
    ///
    /// # Safety
    /// The points may be read; `to` has room for all columns.
    pub(super) unsafe fn load(
        &self,
        first: usize,
        count: usize,
        components: usize,
        to: *mut T,
        pitch: usize,
    ) {
        let from = self.base.wrapping_offset(first as isize * self.row).cast();
        let to = (to.cast(), (pitch as isize, 1));
        let steps = (self.component, self.row);
        // SAFETY: the caller's promise.
        unsafe { moves::block(size_of::<T>(), (components, count), to, (from, steps)) };
    }
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
pub(super) unsafe fn products<V: Lanes, const ROWS: usize>(
    x: &[V::Elem],
    y: Columns<'_, V::Elem>,
    start: &[V::Elem],
    row: usize,
) -> [[V; VECTORS]; ROWS] {
    let mut sums = [[V::lit(0.0); VECTORS]; ROWS];
    // SAFETY: the caller's promise.
    unsafe {
        let start = start.as_ptr().add(row);
        for r in 0..ROWS {
            sums[r] = [V::lit((*start.add(r)).to_f64()); VECTORS];
        }
        let y = Columns { numbers: y.numbers.get_unchecked(row..), ..y };
        onto(sums, x, y)
    }
}

/// `sums + <x lane, y row>` for a tile of the first rows, component after component.
///
/// # Safety
/// `x` is a panel of as many components as there are in `y`, each of which has `ROWS` rows.
#[inline(always)]
pub(super) unsafe fn onto<V: Lanes, const ROWS: usize>(
    mut sums: [[V; VECTORS]; ROWS],
    x: &[V::Elem],
    y: Columns<'_, V::Elem>,
) -> [[V; VECTORS]; ROWS] {
    // Plain loops over indices: what iterators and closures hold is not always inlined under the
    // features of the caller.
    let lanes = VECTORS * V::LANES;
    // SAFETY: the caller's promise: components of the panel are `lanes` apart, and there are as
    // many as columns; all rows exist.
    unsafe {
        let (mut x_at, mut y_at) = (x.as_ptr(), y.numbers.as_ptr());
        for _ in 0..x.len() / lanes {
            let mut of_x = [V::lit(0.0); VECTORS];
            for v in 0..VECTORS {
                of_x[v] = V::load(x_at.add(v * V::LANES));
            }
            for r in 0..ROWS {
                let of_y = V::lit((*y_at.add(r)).to_f64());
                for v in 0..VECTORS {
                    sums[r][v] = of_x[v].fma(of_y, sums[r][v]);
                }
            }
            x_at = x_at.add(lanes);
            y_at = y_at.wrapping_add(y.pitch);
        }
    }
    sums
}
