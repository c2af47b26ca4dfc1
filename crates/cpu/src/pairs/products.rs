//! Tiles of inner products of points of i with points of j, in registers.
//!
//! The matrix product of a formula: a panel of points of i (its lanes) stays close while points of
//! j pass in groups of a few rows, each component read as a broadcast. Unlike a matrix product it
//! need not write the tile: [`Filter`] compares it with a limit for each lane where it stands, and
//! only tiles that hold something small leave the registers. Points of j lie component by component
//! ([`Columns`]), as the sections of a tape have them. [`Fill`] writes it.
//! Called by `nearest` and `form`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use std::ops::Range;

use tilework_backend::Accumulator;
use tilework_simd::{Lanes, Real};

use super::lanes::{Work, with_isa};
use super::{Source, position};
use crate::isa::Isa;
use crate::map::moves;

/// Vectors of lanes in a panel.
const VECTORS: usize = 2;

/// Rows of a tile at most.
const MOST_ROWS: usize = 12;

/// Lanes of a panel at most.
const MOST_LANES: usize = 32;

/// Points that a centre is the mean of, at most.
const SAMPLE: usize = 256;

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
    pub(super) unsafe fn middle(&self, rows: &Range<usize>, components: usize) -> Vec<T> {
        let step = rows.len().div_ceil(SAMPLE).max(1);
        let mean = |c: usize| {
            let rows = rows.clone().step_by(step);
            let count = rows.len().max(1) as f64;
            // SAFETY: the caller's promise.
            let sum: f64 = rows.map(|row| unsafe { self.at(row, c) }.f64()).sum();
            T::of(sum / count)
        };
        (0..components).map(mean).collect()
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
        to: &mut [T],
        pitch: usize,
    ) {
        let from = self.base.wrapping_offset(first as isize * self.row).cast();
        let to = (to.as_mut_ptr().cast(), (pitch as isize, 1));
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

/// Points in groups, component by component, with their squared norms.
pub(super) struct Packed<T> {
    numbers: Vec<T>,
    components: usize,
    /// Points in a group.
    group: usize,
    /// Numbers from one component to the next: room that a tile may read beyond its last row.
    pitch: usize,
    norms: Vec<T>,
    /// The largest squared norm.
    pub(super) largest: f64,
    /// The largest sum over components of the squared norms of all components up to there: what
    /// the error of a sequential inner product is bounded by, with the other side's.
    pub(super) prefixes: f64,
}

impl<T: Number> Packed<T> {
    /// Points of i: a group is a panel.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn lanes(isa: Isa, points: Points<T>, count: usize, centre: &[T]) -> Self {
        let lanes = tile_shape::<T>(isa).1;
        // SAFETY: the caller's promise.
        unsafe { Packed::new(isa, points, count, centre, (lanes, lanes)) }
    }

    /// Points of j: a group is a block of columns.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn rows(isa: Isa, points: Points<T>, count: usize, centre: &[T]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Packed::new(isa, points, count, centre, (GROUP, GROUP + MOST_ROWS + 4)) }
    }

    /// # Safety
    /// The points may be read.
    unsafe fn new(
        isa: Isa,
        points: Points<T>,
        count: usize,
        centre: &[T],
        (group, pitch): (usize, usize),
    ) -> Self {
        let (components, groups) = (centre.len(), count.div_ceil(group));
        let mut packed = Packed {
            numbers: vec![T::ZERO; groups * components * pitch],
            components,
            group,
            pitch,
            norms: vec![T::ZERO; groups * group],
            largest: 0.0,
            prefixes: 0.0,
        };
        for g in 0..groups {
            let held = group.min(count - g * group);
            let numbers = &mut packed.numbers[g * components * pitch..][..components * pitch];
            // SAFETY: the caller's promise, and a column has room for a group.
            unsafe { points.load(g * group, held, components, numbers, pitch) };
            let norms = &mut packed.norms[g * group..][..held];
            let (largest, prefixes) = (&mut packed.largest, &mut packed.prefixes);
            with_isa(isa, Move { numbers, pitch, centre, norms, largest, prefixes });
        }
        packed
    }

    fn group(&self, number: usize) -> &[T] {
        let size = self.components * self.pitch;
        &self.numbers[number * size..][..size]
    }
}

/// Points of j in a block of columns.
const GROUP: usize = 256;

/// Moves a group by the centre and takes norms, in double precision.
struct Move<'a, T> {
    numbers: &'a mut [T],
    pitch: usize,
    centre: &'a [T],
    norms: &'a mut [T],
    largest: &'a mut f64,
    prefixes: &'a mut f64,
}

impl<T: Number> Work for Move<'_, T> {
    #[inline(always)]
    fn run(self) {
        let mut sums = [(0.0, 0.0); GROUP];
        let sums = &mut sums[..self.norms.len()];
        for (column, centre) in self.numbers.chunks_exact_mut(self.pitch).zip(self.centre) {
            for (number, (norm, prefixes)) in column.iter_mut().zip(&mut *sums) {
                *number = *number - *centre;
                *norm += number.f64() * number.f64();
                *prefixes += *norm;
            }
        }
        for (to, (norm, prefixes)) in self.norms.iter_mut().zip(&*sums) {
            *to = T::of(*norm);
            // A NaN stays, so that whoever compares finds it.
            *self.largest = if *self.largest >= *norm { *self.largest } else { *norm };
            *self.prefixes = if *self.prefixes >= *prefixes { *self.prefixes } else { *prefixes };
        }
    }
}

/// Writes a tile of inner products, or of the squared distances that follow from them.
pub(super) struct Fill<'a, T> {
    pub(super) x: &'a Packed<T>,
    pub(super) y: &'a Packed<T>,
    pub(super) distance: bool,
    pub(super) i: Range<usize>,
    pub(super) j: Range<usize>,
    /// Room for a row of all i for each j.
    pub(super) to: *mut T,
}

impl<T: Number> TileWork<T> for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) {
        let Fill { x, y, distance, i, j, to } = self;
        let (lanes, width) = (VECTORS * V::LANES, i.len());
        assert!(x.group == lanes && y.group == GROUP && y.pitch >= GROUP + ROWS);
        assert!(i.end <= x.norms.len() && j.end <= y.norms.len());
        let zeros = [T::ZERO; MOST_ROWS];
        let mut first = j.start;
        while first < j.end {
            // The rows of one group at a time.
            let end = j.end.min((first / GROUP + 1) * GROUP);
            let numbers = y.group(first / GROUP);
            for panel in i.start / lanes..i.end.div_ceil(lanes) {
                let lane = panel * lanes;
                for row in (first..end).step_by(ROWS) {
                    let columns = Columns { numbers: &numbers[row % GROUP..], pitch: y.pitch };
                    // SAFETY: a column goes on for a tile beyond its group, and so do the numbers
                    // but for the last column, whose end is that of its pitch.
                    let sums = unsafe { products::<V, ROWS>(x.group(panel), columns, &zeros, 0) };
                    for r in 0..ROWS.min(end - row) {
                        let norm = V::lit(Real::to_f64(y.norms[row + r]));
                        let mut tile = [T::ZERO; MOST_LANES];
                        for v in 0..VECTORS {
                            let mut value = sums[r][v];
                            // SAFETY: norms of a whole panel, and room for the lanes of a vector.
                            unsafe {
                                if distance {
                                    let both =
                                        V::load(x.norms.as_ptr().add(lane + v * V::LANES)) + norm;
                                    value = V::lit(0.0).max(value.neg_mul_add(V::lit(2.0), both));
                                }
                                value.store(tile.as_mut_ptr().add(v * V::LANES));
                            }
                        }
                        // The lanes of the panel that are asked for.
                        let (from, until) = (lane.max(i.start), i.end.min(lane + lanes));
                        let to = to.wrapping_add((row + r - j.start) * width + from - i.start);
                        let tile = tile[from - lane..].as_ptr();
                        // SAFETY: there is room for all j times all i.
                        unsafe { to.copy_from_nonoverlapping(tile, until - from) };
                    }
                }
            }
            first = end;
        }
    }
}
