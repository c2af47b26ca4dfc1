//! Tiles of inner products of points of i with points of j, in registers.
//!
//! The matrix product of a formula: a panel of points of i (its lanes) stays close while points of
//! j pass in groups of a few rows, each component read as a broadcast. Unlike a matrix product it
//! need not write the tile: [`Filter`] compares it with a limit for each lane where it stands, and
//! only tiles that hold something small leave the registers. Points of j lie component by component
//! ([`Columns`]), as the sections of a tape have them. Called by `nearest` and, to write tiles, by
//! `packed`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use std::ops::Range;

use tilework_backend::{Accumulator, try_room};
use tilework_error::Result;
use tilework_simd::tiles::MOST_ROWS;
use tilework_simd::{Lanes, Level, Real, TileWork, Tiled};

use super::{Source, position};
use crate::isa::Isa;
use crate::map::moves;

/// Vectors of lanes in a panel.
pub(super) const VECTORS: usize = 2;

/// Lanes of a panel at most.
pub(super) const MOST_LANES: usize = 32;

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
    /// Powers of two down to less than one over that of this are normal numbers.
    const NORMAL: f64;
}

impl Number for f32 {
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    const TINY: f64 = f32::from_bits(1) as f64;
    const SAFE: f64 = (1u128 << 64) as f64;
    const NORMAL: f64 = 120.0;
}

impl Number for f64 {
    const ROUNDOFF: f64 = f64::EPSILON / 2.0;
    const TINY: f64 = f64::from_bits(1);
    const SAFE: f64 = f64::MAX / (1u128 << 64) as f64;
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

    /// The largest squared distance of some points from a centre; NaN if one is.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn radius(&self, count: usize, centre: &[T]) -> f64 {
        let square = |row: usize| -> f64 {
            // SAFETY: the caller's promise.
            let x = (0..centre.len()).map(|c| unsafe { self.at(row, c) }.f64() - centre[c].f64());
            x.map(|x| x * x).sum()
        };
        let larger = |a: f64, b: f64| if a >= b || a.is_nan() { a } else { b };
        (0..count).map(square).fold(0.0, larger)
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

/// A tile in which a lane is below its limit.
#[repr(C, align(64))]
pub(super) struct Found<T> {
    /// The tile, row after row of `MOST_LANES` numbers.
    values: [T; MOST_ROWS * MOST_LANES],
    /// The lanes of each row that are below the limit.
    lanes: [u32; MOST_ROWS],
    /// The first row of the tile.
    pub(super) row: usize,
}

impl<T: Number> Found<T> {
    pub(super) fn new() -> Found<T> {
        let values = [T::ZERO; MOST_ROWS * MOST_LANES];
        Found { row: 0, lanes: [0; MOST_ROWS], values }
    }

    /// The rows of the tile: which lanes are below the limit, and the values of all.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, &[T])> + '_ {
        self.lanes.iter().copied().zip(self.values.chunks_exact(MOST_LANES))
    }
}

/// The K smallest upper bounds of every lane of a panel, and how far the values of this block may
/// be from what they stand for.
pub(super) struct Smallest<'a, T> {
    /// K rows of lanes, ascending from row to row.
    pub(super) upper: &'a mut [T],
    /// One bound for each lane.
    pub(super) bound: &'a [T],
}

impl<T: Number> Smallest<'_, T> {
    /// What a value must be below to be among the K smallest.
    #[inline(always)]
    fn limits<V: Lanes<Elem = T>>(&self) -> [V; VECTORS] {
        let lanes = VECTORS * V::LANES;
        assert!(self.bound.len() >= lanes && self.upper.len() >= lanes);
        let last = self.upper.len() - lanes;
        let mut limits = [V::lit(0.0); VECTORS];
        for v in 0..VECTORS {
            // SAFETY: there is a bound for each lane, and a last row of all lanes.
            limits[v] = unsafe {
                V::load(self.upper.as_ptr().add(last + v * V::LANES))
                    + V::load(self.bound.as_ptr().add(v * V::LANES))
            };
        }
        limits
    }

    /// One value more for every lane, each of a point of its own. What is at a rank afterwards is
    /// found from what was there and before it, so that ranks do not wait for each other.
    #[inline(always)]
    fn insert<V: Lanes<Elem = T>>(&mut self, values: [V; VECTORS]) {
        let lanes = VECTORS * V::LANES;
        assert!(self.bound.len() >= lanes);
        let (mut high, mut before) = ([V::lit(0.0); VECTORS], [V::lit(f64::NEG_INFINITY); VECTORS]);
        for v in 0..VECTORS {
            // SAFETY: there is a bound for each lane.
            high[v] = values[v] + unsafe { V::load(self.bound.as_ptr().add(v * V::LANES)) };
        }
        for row in self.upper.chunks_exact_mut(lanes) {
            for v in 0..VECTORS {
                // SAFETY: rows have all lanes.
                unsafe {
                    let to = row.as_mut_ptr().add(v * V::LANES);
                    let held = V::load(to);
                    held.min(before[v].max(high[v])).store(to);
                    before[v] = held;
                }
            }
        }
    }

    /// The values of a tile: its least ones, which is enough where tiles are many, or all.
    #[inline(always)]
    fn insert_tile<V: Lanes<Elem = T>, const ROWS: usize>(
        &mut self,
        sums: &[[V; VECTORS]; ROWS],
        all: bool,
    ) {
        if all {
            for r in 0..ROWS {
                self.insert(sums[r]);
            }
        } else {
            self.insert(least(sums));
        }
    }
}

/// The least value of every lane of a tile, by a few chains that do not wait for each other.
#[inline(always)]
fn least<V: Lanes, const ROWS: usize>(sums: &[[V; VECTORS]; ROWS]) -> [V; VECTORS] {
    let mut chains = [sums[0]; CHAINS];
    for r in 1..ROWS {
        for v in 0..VECTORS {
            chains[r % CHAINS][v] = sums[r][v].min(chains[r % CHAINS][v]);
        }
    }
    for k in 1..CHAINS {
        for v in 0..VECTORS {
            chains[0][v] = chains[k][v].min(chains[0][v]);
        }
    }
    chains[0]
}

/// Chains of minima in a tile.
const CHAINS: usize = 4;

/// A panel of points of i and a block of points of j, whose values are `start + <x, y>`.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, T> {
    /// A panel of lanes: component after component.
    pub(super) x: &'a [T],
    /// Whole groups of rows.
    pub(super) y: Columns<'a, T>,
    /// What the products are added to, by row.
    pub(super) start: &'a [T],
}

impl<T: Number> Block<'_, T> {
    /// Whether there are whole tiles, and a column for each component.
    #[inline(always)]
    fn check<V: Lanes<Elem = T>, const ROWS: usize>(&self) {
        let components = self.x.len() / (VECTORS * V::LANES);
        assert!(self.start.len().is_multiple_of(ROWS) && self.y.pitch >= self.start.len());
        assert!(self.y.numbers.len() >= components * self.y.pitch);
    }
}

/// Takes a block into the smallest upper bounds without looking for what is below them.
pub(super) struct Begin<'a, T> {
    pub(super) block: Block<'a, T>,
    pub(super) smallest: Smallest<'a, T>,
    /// How many rows are begun with, in this block and others.
    pub(super) rows: usize,
}

impl<T: Number> TileWork<T> for Begin<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) {
        let Begin { block, mut smallest, rows } = self;
        block.check::<V, ROWS>();
        let kept = smallest.upper.len() / (VECTORS * V::LANES);
        let every = rows / ROWS < ENOUGH_TILES * kept;
        for tile in 0..block.start.len() / ROWS {
            // SAFETY: the tile's rows exist in `start`, so also in every column.
            let sums = unsafe { products::<V, ROWS>(block.x, block.y, block.start, tile * ROWS) };
            smallest.insert_tile(&sums, every);
        }
    }
}

/// Tiles for each value kept from which the least of each are as good as all values.
const ENOUGH_TILES: usize = 3;

/// Looks for the next tile in which a value is below the limit of its lane.
pub(super) struct Filter<'a, T> {
    pub(super) block: Block<'a, T>,
    pub(super) smallest: Smallest<'a, T>,
    /// Whether the values of the block are in the smallest already.
    pub(super) begun: bool,
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
        let Filter { block, mut smallest, begun, from, found } = self;
        block.check::<V, ROWS>();
        let mut limits = smallest.limits::<V>();
        let mut row = from;
        while row + ROWS <= block.start.len() {
            // SAFETY: rows up to `row + ROWS` exist in `start`, so also in every column.
            let sums = unsafe { products::<V, ROWS>(block.x, block.y, block.start, row) };
            let least = least(&sums);
            let (mut any, mut unknown) = (false, false);
            for v in 0..VECTORS {
                any |= V::any(least[v].lt(limits[v]));
            }
            if any {
                if !begun {
                    // As long as there is no limit every value counts.
                    for v in 0..VECTORS {
                        unknown |= V::any(limits[v].eq(V::lit(f64::INFINITY)));
                    }
                    smallest.insert_tile(&sums, unknown);
                    limits = smallest.limits::<V>();
                }
                (found.row, found.lanes) = (row, [0; MOST_ROWS]);
                for v in 0..VECTORS {
                    for r in 0..ROWS {
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
