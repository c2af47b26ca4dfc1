//! Points packed before a reduction begins: moved by a centre, component by component, with their
//! squared norms and how far they reach.
//!
//! Panels of i and tiles of j lie one after the other for the matrix products that [`Fill`] writes.
//! Norms are those of the points as they are, exact but for their last rounding; the numbers are
//! rounded once. Called by `form`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tilework_backend::square::Reach;
use tilework_error::Result;
use tilework_simd::tiles::MOST_ROWS;
use tilework_simd::{Lanes, Real, TileWork};

use super::aligned::Aligned;
use super::course::Course;
use super::lock;
use super::moved::add_square;
use super::plan::GIVEN_BLOCK;
use super::products::{Columns, MOST_LANES, Number, Points, VECTORS, onto, tile_shape};
use crate::isa::{Isa, Work, with_isa};
use crate::map::moves;
use crate::pool;

/// Points of j that are packed at a time: whole blocks of a plan.
const GROUP: usize = 2 * GIVEN_BLOCK;

/// Components of an expanded square that are summed in order, and how many such sums are; the sums of
/// those are added up. Errors of long ones grow with this, not with their length.
const PARTIAL: usize = 64;

/// Points that one thread packs at a time, or one group.
const PIECE: usize = 512;

/// How points are packed.
#[derive(Clone, Copy)]
struct Order {
    /// Points that are packed together.
    group: usize,
    /// Those of them that lie together, component after component.
    tile: usize,
}

/// Points moved by a centre, with their squared norms.
pub(super) struct Packed<T> {
    numbers: Aligned<T>,
    components: usize,
    order: Order,
    /// One for each point, and room for those of a tile beyond the last.
    norms: Aligned<T>,
    pub(super) reach: Reach,
}

impl<T: Number> Packed<T> {
    /// Points of i: panels.
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
        let order = Order { group: lanes, tile: lanes };
        // SAFETY: the caller's promise.
        unsafe { Packed::new(isa, points, count, centre, order, course) }
    }

    /// Points of j: tiles, each of which is read from its beginning to its end.
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
        let order = Order { group: GROUP, tile: tile_shape::<T>(isa).0 };
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
        let step = order.group * components;
        let mut packed = Packed {
            numbers: Aligned::filled("pack", T::ZERO, step * groups)?,
            components,
            order,
            norms: Aligned::filled("pack", T::ZERO, groups * order.group + MOST_ROWS)?,
            reach: Reach { largest: 0.0, prefixes: 0.0 },
        };
        // Numbers that are not negative are in the order of their bits, with NaN as the largest.
        let most = [AtomicU64::new(0), AtomicU64::new(0)];
        let work = Shared {
            points,
            numbers: packed.numbers.as_mut_ptr(),
            norms: packed.norms.as_mut_ptr(),
        };
        let groups_a_piece = (PIECE / order.group).max(1);
        // A group as columns, before it is cut into tiles.
        let room = if order.tile < order.group { step * size_of::<T>() } else { 0 };
        let failed = Mutex::new(Ok(()));
        pool::run(groups.div_ceil(groups_a_piece), &|piece| {
            if course.go_on(0).is_err() {
                return;
            }
            let first = piece * groups_a_piece;
            let pack = |columns: *mut T| {
                for g in first..groups.min(first + groups_a_piece) {
                    let (from, held) = (g * order.group, order.group.min(count - g * order.group));
                    let work = &work;
                    let numbers = work.numbers.wrapping_add(g * step);
                    let columns = if room > 0 { columns } else { numbers };
                    // SAFETY: the caller's promise; the columns of a group have room for it and are
                    // no other group's.
                    let move_group = unsafe {
                        work.points.load(from, held, components, columns, order.group);
                        let norms = work.norms.wrapping_add(from);
                        let norms = std::slice::from_raw_parts_mut(norms, held);
                        Move { numbers: columns, pitch: order.group, centre, norms, most: &most }
                    };
                    with_isa(isa, move_group);
                    for at in (0..if room > 0 { held } else { 0 }).step_by(order.tile) {
                        let shape = (components, order.tile.min(held - at));
                        let from = columns.wrapping_add(at).cast_const().cast();
                        let to = numbers.wrapping_add(at * components).cast();
                        let steps = [order.tile, order.group].map(|step| (step as isize, 1));
                        // SAFETY: rows of the columns, and a tile of the group with room for them.
                        unsafe {
                            moves::block(size_of::<T>(), shape, (to, steps[0]), (from, steps[1]));
                        }
                    }
                }
            };
            if let Err(error) = moves::with_scratch("pack", room, |columns| pack(columns.cast())) {
                *lock(&failed) = Err(error);
            }
        });
        failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        let [largest, prefixes] = most.map(|most| f64::from_bits(most.into_inner()));
        packed.reach = Reach { largest, prefixes };
        Ok(packed)
    }

    /// The panel or tile that begins with a point.
    fn tile(&self, point: usize) -> &[T] {
        &self.numbers[point * self.components..][..self.order.tile * self.components]
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
        assert!(x.order.tile == lanes && y.order.tile == ROWS);
        assert!(i.end + MOST_ROWS <= x.norms.len() && j.end + MOST_ROWS <= y.norms.len());
        let (mut tile, mut spans) = (Tile::<T>::uninit(), Tile::<T>::uninit());
        // Inner products keep the bits of the formula, squares the bound of their error.
        let part = if distance { PARTIAL } else { x.components };
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
            // Blocks of j need not begin where a tile does.
            for row in (j.start / ROWS * ROWS..j.end).step_by(ROWS) {
                let mut sums = [[V::lit(0.0); VECTORS]; ROWS];
                let sums_of =
                    x.tile(lane).chunks(part * lanes).zip(y.tile(row).chunks(part * ROWS));
                let many = sums_of.len() > PARTIAL;
                for (k, (panel, numbers)) in sums_of.enumerate() {
                    let columns = Columns { numbers, pitch: ROWS };
                    // There are no registers for two tiles: sums so far wait in memory.
                    let anew = k % PARTIAL == 0;
                    match anew {
                        true if k > 0 => {
                            if k > PARTIAL {
                                // SAFETY: sums have been put there.
                                unsafe { add_tile(&mut sums, &spans) };
                            }
                            put_tile(&sums, &mut spans);
                        }
                        true => {}
                        false => put_tile(&sums, &mut tile),
                    }
                    // SAFETY: as many components of a panel and of a tile.
                    sums = unsafe { onto([[V::lit(0.0); VECTORS]; ROWS], panel, columns) };
                    if !anew {
                        // SAFETY: as above.
                        unsafe { add_tile(&mut sums, &tile) };
                    }
                }
                if many {
                    // SAFETY: as above.
                    unsafe { add_tile(&mut sums, &spans) };
                }
                if distance {
                    // SAFETY: there is a norm for every row of a tile.
                    unsafe { squares(&mut sums, of_x, y.norms.as_ptr().add(row)) };
                }
                let rows = row.max(j.start)..j.end.min(row + ROWS);
                let to = to.wrapping_add((rows.start - j.start) * width + from - i.start);
                if whole && rows.len() == ROWS {
                    // SAFETY: there is room for all j times all i.
                    unsafe { put(&sums, to, width) };
                    continue;
                }
                put_tile(&sums, &mut tile);
                for r in 0..rows.len() {
                    let at = (rows.start - row + r) * lanes + from - lane;
                    // SAFETY: there is room for all j times all i, and the tile has been put.
                    unsafe {
                        let tile = tile.as_ptr().cast::<T>().add(at);
                        to.add(r * width).copy_from_nonoverlapping(tile, until - from);
                    }
                }
            }
        }
    }
}

/// Room for the sums of a tile.
type Tile<T> = MaybeUninit<[T; MOST_ROWS * MOST_LANES]>;

/// Squared distances from inner products, the norms of lanes and those of rows: in a loop so small
/// that it is unrolled, and the tile stays in registers.
///
/// # Safety
/// There is a norm for every row.
#[inline(always)]
unsafe fn squares<V: Lanes, const ROWS: usize>(
    sums: &mut [[V; VECTORS]; ROWS],
    of_x: [V; VECTORS],
    norms: *const V::Elem,
) {
    let (two, zero) = (V::lit(2.0), V::lit(0.0));
    for r in 0..ROWS {
        // SAFETY: the caller's promise.
        let norm = V::lit(unsafe { *norms.add(r) }.to_f64());
        for v in 0..VECTORS {
            sums[r][v] = zero.max(sums[r][v].neg_mul_add(two, of_x[v] + norm));
        }
    }
}

/// Writes a tile, rows a step apart.
///
/// # Safety
/// There is room for all rows of all lanes.
#[inline(always)]
unsafe fn put<V: Lanes, const ROWS: usize>(
    sums: &[[V; VECTORS]; ROWS],
    to: *mut V::Elem,
    step: usize,
) {
    for r in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: the caller's promise.
            unsafe { sums[r][v].store(to.add(r * step + v * V::LANES)) };
        }
    }
}

#[inline(always)]
fn put_tile<V: Lanes, const ROWS: usize>(sums: &[[V; VECTORS]; ROWS], tile: &mut Tile<V::Elem>) {
    assert!(ROWS <= MOST_ROWS && VECTORS * V::LANES <= MOST_LANES);
    // SAFETY: a tile has room for all rows of all lanes.
    unsafe { put(sums, tile.as_mut_ptr().cast(), VECTORS * V::LANES) };
}

/// # Safety
/// Sums have been put into the tile.
#[inline(always)]
unsafe fn add_tile<V: Lanes, const ROWS: usize>(
    sums: &mut [[V; VECTORS]; ROWS],
    tile: &Tile<V::Elem>,
) {
    assert!(ROWS <= MOST_ROWS && VECTORS * V::LANES <= MOST_LANES);
    let tile = tile.as_ptr().cast::<V::Elem>();
    for r in 0..ROWS {
        for v in 0..VECTORS {
            // SAFETY: the caller's promise.
            let held = unsafe { V::load(tile.add((r * VECTORS + v) * V::LANES)) };
            sums[r][v] = sums[r][v] + held;
        }
    }
}
