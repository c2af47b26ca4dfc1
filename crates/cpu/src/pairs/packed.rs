//! Points packed before a reduction begins: moved by a centre, component by component, with their
//! squared norms and how far they reach.
//!
//! Groups of points lie one after the other for the tiles of matrix products that [`Fill`] writes.
//! Norms are those of the points as they are, exact but for their last rounding; the numbers are
//! rounded once. Called by `form`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tilework_error::Result;
use tilework_simd::tiles::MOST_ROWS;
use tilework_simd::{Lanes, Real, TileWork};

use super::aligned::Aligned;
use super::course::Course;
use super::moved::{Reach, add_square};
use super::plan::GIVEN_BLOCK;
use super::products::{Columns, MOST_LANES, Number, Points, VECTORS, products, tile_shape};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// Points of j in a block of columns, and points that are packed at a time: whole blocks of a plan.
const GROUP: usize = 2 * GIVEN_BLOCK;

/// Numbers between columns of a group beyond its own: room for a tile, and a stride that is no power
/// of two, which keeps the columns of a tile in different cache sets.
const BETWEEN: usize = 32;

/// Components of an expanded square that are summed in order, and how many such sums are; the sums of
/// those are added up. Errors of long ones grow with this, not with their length.
const PARTIAL: usize = 64;

/// Groups that one thread packs at a time.
const GROUPS_A_PIECE: usize = 16;

/// How points are packed.
#[derive(Clone, Copy)]
struct Order {
    /// Points in a group.
    group: usize,
    /// Numbers from one component to the next.
    pitch: usize,
    /// Numbers from one group to the next.
    step: usize,
}

/// Points moved by a centre, with their squared norms.
pub(super) struct Packed<T> {
    numbers: Aligned<T>,
    components: usize,
    order: Order,
    norms: Aligned<T>,
    pub(super) reach: Reach,
}

impl<T: Number> Packed<T> {
    /// Points of i: a group is a panel.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn lanes(
        isa: Isa,
        points: Points<T>,
        count: usize,
        centre: &[T],
        course: &Course<'_>,
    ) -> Result<Self> {
        let lanes = tile_shape::<T>(isa).1;
        let order = Order { group: lanes, pitch: lanes, step: lanes * centre.len() };
        // SAFETY: the caller's promise.
        unsafe { Packed::new(isa, points, count, centre, order, course) }
    }

    /// Points of j: a group is a block of columns, with room that a tile may read beyond its last
    /// row.
    ///
    /// # Safety
    /// The points may be read.
    pub(super) unsafe fn rows(
        isa: Isa,
        points: Points<T>,
        count: usize,
        centre: &[T],
        course: &Course<'_>,
    ) -> Result<Self> {
        let pitch = GROUP + BETWEEN;
        let order = Order { group: GROUP, pitch, step: pitch * centre.len() };
        // SAFETY: the caller's promise.
        unsafe { Packed::new(isa, points, count, centre, order, course) }
    }

    /// # Safety
    /// The points may be read.
    unsafe fn new(
        isa: Isa,
        points: Points<T>,
        count: usize,
        centre: &[T],
        order: Order,
        course: &Course<'_>,
    ) -> Result<Self> {
        let (components, groups) = (centre.len(), count.div_ceil(order.group));
        let size = usize::max(order.step * groups, components * order.pitch);
        let mut packed = Packed {
            numbers: Aligned::filled("pack", T::ZERO, size)?,
            components,
            order,
            norms: Aligned::filled("pack", T::ZERO, groups * order.group)?,
            reach: Reach { largest: 0.0, prefixes: 0.0 },
        };
        // Numbers that are not negative are in the order of their bits, with NaN as the largest.
        let most = [AtomicU64::new(0), AtomicU64::new(0)];
        let work = Shared {
            points,
            numbers: packed.numbers.as_mut_ptr(),
            norms: packed.norms.as_mut_ptr(),
        };
        pool::run(groups.div_ceil(GROUPS_A_PIECE), &|piece| {
            if course.go_on(0).is_err() {
                return;
            }
            let first = piece * GROUPS_A_PIECE;
            for g in first..groups.min(first + GROUPS_A_PIECE) {
                let (from, held) = (g * order.group, order.group.min(count - g * order.group));
                let work = &work;
                let numbers = work.numbers.wrapping_add(g * order.step);
                // SAFETY: the caller's promise; the columns of a group have room for it and are
                // no other group's.
                let move_group = unsafe {
                    work.points.load(from, held, components, numbers, order.pitch);
                    let norms = work.norms.wrapping_add(from);
                    let norms = std::slice::from_raw_parts_mut(norms, held);
                    Move { numbers, pitch: order.pitch, centre, norms, most: &most }
                };
                with_isa(isa, move_group);
            }
        });
        let [largest, prefixes] = most.map(|most| f64::from_bits(most.into_inner()));
        packed.reach = Reach { largest, prefixes };
        Ok(packed)
    }

    fn group(&self, number: usize) -> &[T] {
        &self.numbers[number * self.order.step..][..self.components * self.order.pitch]
    }
}

/// Where points come from and go to, for all threads.
struct Shared<T> {
    points: Points<T>,
    numbers: *mut T,
    norms: *mut T,
}

// SAFETY: groups are read and written by one thread each, and are apart.
unsafe impl<T: Sync + Send> Sync for Shared<T> {}

/// Moves a group by the centre and takes norms.
struct Move<'a, T> {
    /// The first number of each column, `pitch` apart.
    numbers: *mut T,
    pitch: usize,
    centre: &'a [T],
    norms: &'a mut [T],
    /// The largest norm and the largest sum of norms, as bits.
    most: &'a [AtomicU64; 2],
}

impl<T: Number> Work for Move<'_, T> {
    #[inline(always)]
    fn run(self) {
        let held = self.norms.len();
        let (mut norms, mut low, mut prefixes) = ([0.0f64; GROUP], [0.0f64; GROUP], [0.0; GROUP]);
        let (norms, low, prefixes) = (&mut norms[..held], &mut low[..held], &mut prefixes[..held]);
        // Norms of what came before the sum of components, and before the sum of such sums.
        let (mut before, mut begun) = ([0.0; GROUP], [0.0; GROUP]);
        for (c, centre) in self.centre.iter().enumerate() {
            if c > 0 && c.is_multiple_of(PARTIAL) {
                before[..held].copy_from_slice(norms);
                (0..held).for_each(|k| prefixes[k] += norms[k] - begun[k]);
            }
            if c > 0 && c.is_multiple_of(PARTIAL * PARTIAL) {
                begun[..held].copy_from_slice(norms);
                (0..held).for_each(|k| prefixes[k] += norms[k]);
            }
            let column = self.numbers.wrapping_add(c * self.pitch);
            // SAFETY: a column has room for the group, which is this thread's.
            let column = unsafe { std::slice::from_raw_parts_mut(column, held) };
            let middle = centre.f64();
            for k in 0..held {
                add_square::<T>((column[k].f64(), middle), &mut norms[k], &mut low[k]);
                column[k] = column[k] - *centre;
                prefixes[k] += norms[k] - before[k];
            }
        }
        if self.centre.len() > PARTIAL {
            (0..held).for_each(|k| prefixes[k] += norms[k] - begun[k]);
        }
        if self.centre.len() > PARTIAL * PARTIAL {
            (0..held).for_each(|k| prefixes[k] += norms[k]);
        }
        for k in 0..held {
            self.norms[k] = T::of(norms[k] + low[k]);
        }
        for (most, values) in self.most.iter().zip([&*norms, &*prefixes]) {
            let bits = values.iter().fold(0, |most, x| x.abs().to_bits().max(most));
            most.fetch_max(bits, Ordering::Relaxed);
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
        assert!(x.order.group == lanes && y.order.group == GROUP);
        assert!(y.order.pitch >= GROUP + ROWS);
        assert!(i.end <= x.norms.len() && j.end <= y.norms.len());
        let zeros = [T::ZERO; MOST_ROWS];
        let (mut tile, mut spans): (Tile<T>, Tile<T>) =
            ([T::ZERO; MOST_ROWS * MOST_LANES], [T::ZERO; MOST_ROWS * MOST_LANES]);
        // Inner products keep the bits of the formula, squares the bound of their error.
        let part = if distance { PARTIAL } else { x.components };
        let mut first = j.start;
        while first < j.end {
            // The rows of one group at a time.
            let end = j.end.min((first / GROUP + 1) * GROUP);
            let numbers = y.group(first / GROUP);
            for panel in i.start / lanes..i.end.div_ceil(lanes) {
                let lane = panel * lanes;
                // The lanes of the panel that are asked for: all, but at the edges.
                let (from, until) = (lane.max(i.start), i.end.min(lane + lanes));
                let whole = until - from == lanes;
                let mut of_x = [V::lit(0.0); VECTORS];
                for v in 0..VECTORS {
                    // SAFETY: norms of a whole panel.
                    of_x[v] = unsafe { V::load(x.norms.as_ptr().add(lane + v * V::LANES)) };
                }
                for row in (first..end).step_by(ROWS) {
                    let mut sums = [[V::lit(0.0); VECTORS]; ROWS];
                    let sums_of = x.group(panel).chunks(part * lanes);
                    let many = sums_of.len() > PARTIAL;
                    for (k, panel) in sums_of.enumerate() {
                        let numbers = &numbers[k * part * y.order.pitch + row % GROUP..];
                        let columns = Columns { numbers, pitch: y.order.pitch };
                        // There are no registers for two tiles: sums so far wait in memory.
                        let anew = k % PARTIAL == 0;
                        match anew {
                            true if k > 0 => {
                                if k > PARTIAL {
                                    add_tile(&mut sums, &spans);
                                }
                                put_tile(&sums, &mut spans);
                            }
                            true => {}
                            false => put_tile(&sums, &mut tile),
                        }
                        // SAFETY: a column goes on for a tile beyond its group, and so do the numbers
                        // but for the last column, whose end is that of its pitch.
                        sums = unsafe { products::<V, ROWS>(panel, columns, &zeros, 0) };
                        if !anew {
                            add_tile(&mut sums, &tile);
                        }
                    }
                    if many {
                        add_tile(&mut sums, &spans);
                    }
                    let rows = ROWS.min(end - row);
                    let to = to.wrapping_add((row - j.start) * width + from - i.start);
                    let (into, step) = if whole { (to, width) } else { (tile.as_mut_ptr(), lanes) };
                    // All rows of the tile by their numbers, in loops so small that they are
                    // unrolled: it stays in registers.
                    if distance {
                        for r in 0..ROWS {
                            // SAFETY: there is a norm for every point.
                            let norm = unsafe { *y.norms.get_unchecked((row + r).min(end - 1)) };
                            let norm = V::lit(Real::to_f64(norm));
                            for v in 0..VECTORS {
                                let square = sums[r][v].neg_mul_add(V::lit(2.0), of_x[v] + norm);
                                sums[r][v] = V::lit(0.0).max(square);
                            }
                        }
                    }
                    for r in 0..ROWS {
                        if r < rows {
                            for v in 0..VECTORS {
                                // SAFETY: there is room for all j times all i, or for a tile.
                                unsafe { sums[r][v].store(into.add(r * step + v * V::LANES)) };
                            }
                        }
                    }
                    for r in 0..if whole { 0 } else { rows } {
                        let tile = tile[r * lanes + from - lane..].as_ptr();
                        // SAFETY: there is room for all j times all i.
                        unsafe { to.add(r * width).copy_from_nonoverlapping(tile, until - from) };
                    }
                }
            }
            first = end;
        }
    }
}

/// Room for the sums of a tile.
type Tile<T> = [T; MOST_ROWS * MOST_LANES];

#[inline(always)]
fn put_tile<V: Lanes, const ROWS: usize>(sums: &[[V; VECTORS]; ROWS], tile: &mut Tile<V::Elem>) {
    assert!(ROWS <= MOST_ROWS && VECTORS * V::LANES <= MOST_LANES);
    for r in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: a tile has room for all rows of all lanes.
            unsafe { sums[r][v].store(tile.as_mut_ptr().add((r * VECTORS + v) * V::LANES)) };
        }
    }
}

#[inline(always)]
fn add_tile<V: Lanes, const ROWS: usize>(sums: &mut [[V; VECTORS]; ROWS], tile: &Tile<V::Elem>) {
    assert!(ROWS <= MOST_ROWS && VECTORS * V::LANES <= MOST_LANES);
    for r in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: as above.
            let held = unsafe { V::load(tile.as_ptr().add((r * VECTORS + v) * V::LANES)) };
            sums[r][v] = sums[r][v] + held;
        }
    }
}
