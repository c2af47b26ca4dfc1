//! Tiles of values of pairs, compared with a limit for each lane where they stand.
//!
//! Only tiles that hold something small leave the registers. Values are those of `products`, or direct
//! squares of differences. Called by `nearest`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use tilework_simd::tiles::MOST_ROWS;
use tilework_simd::{Lanes, Real, TileWork};

use super::products::{Columns, MOST_LANES, Number, VECTORS, products};

/// A tile in which a lane is within its limit.
#[repr(C, align(64))]
pub(super) struct Found<T> {
    /// The tile, row after row of `MOST_LANES` numbers.
    values: [T; MOST_ROWS * MOST_LANES],
    /// The lanes of each row that are within the limit.
    lanes: [u32; MOST_ROWS],
    /// The first row of the tile.
    pub(super) row: usize,
}

impl<T: Number> Found<T> {
    pub(super) fn new() -> Found<T> {
        let values = [T::ZERO; MOST_ROWS * MOST_LANES];
        Found { row: 0, lanes: [0; MOST_ROWS], values }
    }

    /// The rows of the tile: which lanes are within the limit, and the values of all.
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
    /// What a value must not exceed to be among the K smallest: a number, so that what is infinite never
    /// is.
    #[inline(always)]
    fn limits<V: Lanes<Elem = T>>(&self) -> [V; VECTORS] {
        let lanes = VECTORS * V::LANES;
        assert!(self.bound.len() >= lanes && self.upper.len() >= lanes);
        let last = self.upper.len() - lanes;
        let mut limits = [V::lit(0.0); VECTORS];
        for v in 0..VECTORS {
            // SAFETY: there is a bound for each lane, and a last row of all lanes.
            let limit = unsafe {
                V::load(self.upper.as_ptr().add(last + v * V::LANES))
                    + V::load(self.bound.as_ptr().add(v * V::LANES))
            };
            limits[v] = limit.min(V::lit(T::NO_LIMIT));
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

/// A panel of points of i and a block of points of j, whose values are `start + <x, y>`, or if they are
/// `DIRECT` the squared norms of `x + y` onto `start`.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, T, const DIRECT: bool> {
    /// A panel of lanes: component after component.
    pub(super) x: &'a [T],
    /// Whole groups of rows.
    pub(super) y: Columns<'a, T>,
    /// What the products are added to, by row.
    pub(super) start: &'a [T],
}

impl<T: Number, const DIRECT: bool> Block<'_, T, DIRECT> {
    /// Whether there are whole tiles, and a column for each component.
    #[inline(always)]
    fn check<V: Lanes<Elem = T>, const ROWS: usize>(&self) {
        let components = self.x.len() / (VECTORS * V::LANES);
        assert!(self.start.len().is_multiple_of(ROWS) && self.y.pitch >= self.start.len());
        assert!(self.y.numbers.len() >= components * self.y.pitch);
    }

    /// The values of a tile.
    ///
    /// # Safety
    /// It has been checked, and rows up to `row + ROWS` exist in `start`.
    #[inline(always)]
    unsafe fn values<V: Lanes<Elem = T>, const ROWS: usize>(
        &self,
        row: usize,
    ) -> [[V; VECTORS]; ROWS] {
        if !DIRECT {
            // SAFETY: rows of `start` exist in every column.
            return unsafe { products::<V, ROWS>(self.x, self.y, self.start, row) };
        }
        let lanes = VECTORS * V::LANES;
        let mut sums = [[V::lit(0.0); VECTORS]; ROWS];
        // SAFETY: as above; components of the panel are `lanes` apart.
        unsafe {
            let (start, mut y_at) =
                (self.start.as_ptr().add(row), self.y.numbers.as_ptr().add(row));
            for r in 0..ROWS {
                sums[r] = [V::lit(Real::to_f64(*start.add(r))); VECTORS];
            }
            let mut x_at = self.x.as_ptr();
            for _ in 0..self.x.len() / lanes {
                for r in 0..ROWS {
                    let of_y = V::lit(Real::to_f64(*y_at.add(r)));
                    for v in 0..VECTORS {
                        let difference = V::load(x_at.add(v * V::LANES)) + of_y;
                        sums[r][v] = difference.fma(difference, sums[r][v]);
                    }
                }
                x_at = x_at.add(lanes);
                y_at = y_at.wrapping_add(self.y.pitch);
            }
        }
        sums
    }
}

/// Takes a block into the smallest upper bounds without looking for what is below them.
pub(super) struct Begin<'a, T, const DIRECT: bool> {
    pub(super) block: Block<'a, T, DIRECT>,
    pub(super) smallest: Smallest<'a, T>,
    /// How many rows are begun with, in this block and others.
    pub(super) rows: usize,
}

impl<T: Number, const DIRECT: bool> TileWork<T> for Begin<'_, T, DIRECT> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) {
        let Begin { block, mut smallest, rows } = self;
        block.check::<V, ROWS>();
        let kept = smallest.upper.len() / (VECTORS * V::LANES);
        let every = rows / ROWS < ENOUGH_TILES * kept;
        for tile in 0..block.start.len() / ROWS {
            // SAFETY: checked; the tile's rows exist in `start`.
            let sums = unsafe { block.values::<V, ROWS>(tile * ROWS) };
            smallest.insert_tile(&sums, every);
        }
    }
}

/// Tiles for each value kept from which the least of each are as good as all values.
const ENOUGH_TILES: usize = 3;

/// Looks for the next tile in which a value is within the limit of its lane. What is as large as the limit
/// is if it may be what the limit comes from: where values are in the smallest already, not where K
/// points before it are as near.
pub(super) struct Filter<'a, T, const DIRECT: bool> {
    pub(super) block: Block<'a, T, DIRECT>,
    pub(super) smallest: Smallest<'a, T>,
    /// Whether the values of the block are in the smallest already.
    pub(super) begun: bool,
    /// The first row to look at.
    pub(super) from: usize,
    /// Where the tile goes.
    pub(super) found: &'a mut Found<T>,
}

impl<T: Number, const DIRECT: bool> TileWork<T> for Filter<'_, T, DIRECT> {
    /// Whether there is one.
    type Output = bool;

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) -> bool {
        let Filter { block, mut smallest, begun, from, found } = self;
        block.check::<V, ROWS>();
        let mut limits = smallest.limits::<V>();
        let mut row = from;
        while row + ROWS <= block.start.len() {
            // SAFETY: checked; rows up to `row + ROWS` exist in `start`.
            let sums = unsafe { block.values::<V, ROWS>(row) };
            let least = least(&sums);
            let (mut any, mut unknown) = (false, false);
            for v in 0..VECTORS {
                any |= match begun {
                    true => V::any(least[v].le(limits[v])),
                    false => V::any(least[v].lt(limits[v])),
                };
            }
            if any {
                if !begun {
                    // As long as there is no limit every value counts.
                    for v in 0..VECTORS {
                        unknown |= V::any(limits[v].eq(V::lit(T::NO_LIMIT)));
                    }
                    smallest.insert_tile(&sums, unknown);
                    limits = smallest.limits::<V>();
                }
                (found.row, found.lanes) = (row, [0; MOST_ROWS]);
                for v in 0..VECTORS {
                    for r in 0..ROWS {
                        found.lanes[r] |= V::lanes(sums[r][v].le(limits[v])) << (v * V::LANES);
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
