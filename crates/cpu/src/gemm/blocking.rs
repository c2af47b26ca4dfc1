//! How a product is cut: a pure function of its sizes, the caches and the number of threads.
//!
//! [`Blocking`], read from top to bottom, is the picture of the loops in `matrix`. Nothing here
//! touches operands. The one cut that decides results, that of K, depends on K and the size of an
//! element alone; all the others only move work between loops and threads.

use super::caches::CacheSizes;
use std::ops::Range;

/// What the choice of blocks depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// Bytes of an element as it is computed (4 for half floats).
    pub size: usize,
    /// Rows of the largest tile.
    pub mr: usize,
    /// Columns of the largest tile.
    pub nr: usize,
    /// Bytes from one row of B to the next if kernels can read B's rows where they lie.
    pub b_pitch: Option<usize>,
    /// Whether kernels can read A where it lies.
    pub a_in_place: bool,
    /// Whether the columns of A, not its rows, are contiguous.
    pub a_by_columns: bool,
}

/// Pieces of C, or of a part of it: so many pieces of rows times so many of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Pieces of rows.
    pub rows: usize,
    /// Pieces of columns.
    pub columns: usize,
}

impl Grid {
    /// All in one piece.
    const WHOLE: Grid = Grid { rows: 1, columns: 1 };

    fn pieces(self) -> usize {
        self.rows * self.columns
    }
}

/// The loops of a product, from the outermost inwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// C is cut into these pieces, any of which any thread may take,
    pub grid: Grid,
    /// but for so many of its last rows,
    pub last_rows: usize,
    /// which are cut finer: two cores are seldom equally fast, and whoever has finished a piece of
    /// the grid first finds something to do there.
    pub finer: Grid,
    /// Columns of a piece are taken about this many at a time,
    pub nc: usize,
    /// K in blocks of this many (the last one shorter),
    pub kc: usize,
    /// that block of B packed, if this says so, to stay in L2;
    pub pack_b: bool,
    /// then rows of A this many at a time,
    pub mc: usize,
    /// packed, if this says so, in panels that stay in L1 while a row of tiles is computed.
    pub pack_a: bool,
    /// Whether it is too little to wake a thread for.
    pub awake_only: bool,
    /// If not 0: K's blocks go to the threads instead of pieces of C, this many at a time, each
    /// with a result of its own, added in order.
    pub k_at_once: usize,
}

/// Up to this many multiplications, times the bytes of an element, a product stays on the calling
/// thread: another one would take as long to see it as it helps.
const ONE_THREAD: usize = 48 * 48 * 48 * 4;
/// Up to this many, only threads that are awake take part: some ten microseconds, which is what
/// waking one takes.
const AWAKE_ONLY: usize = 96 * 96 * 96 * 4;
/// Sizes up to which nothing is packed if A and B can be read in place; in bytes of a row.
const UNPACKED_BYTES: usize = 2048;
/// Rows of C, in bytes of a column of A, from which packing B pays nevertheless: where its rows do
/// not begin at cache lines, so that every vector takes two,
const PACKED_IF_CROSSING: usize = 1024;
/// and where they fall on the same cache sets.
const PACKED_IF_COLLIDING: usize = 2048;
/// Tiles of rows of A that is not packed between two questions whether the product is still wanted.
const UNPACKED_TILES: usize = 16;
/// Columns below which repacking A for every piece of columns costs too much.
const NARROW: usize = 256;
/// Columns at a time: more would leave L2 no room for what streams past.
const MOST_COLUMNS: usize = 512;
/// B may be read by all threads, each with rows of its own, while it takes this part of L2: A, whose
/// lines come one by one, is then read once. Beyond, threads read columns of B of their own.
const SMALL: usize = 16;
/// One part in so many of C's rows is cut finer: enough for cores of which one has three quarters
/// of the other's clock, little enough that packing for small pieces costs a hundredth.
const LAST: usize = 8;
/// Tiles that this part must be high: lower pieces take longer than the faster core would wait.
const LAST_TILES: usize = 4;
/// The most that the results of K's blocks may take.
const PARTIALS: usize = 4 << 20;

impl Blocking {
    /// Length of a block of K: even parts near 2 KiB (512 float32), never above 2.5 KiB.
    /// Long enough to make C's traffic small, short enough for a panel of A to stay in L1 and for
    /// rounding errors not to add up along one chain.
    #[inline]
    pub fn block_of_k(k: usize, size: usize) -> usize {
        let (target, most) = (2048 / size, 2560 / size);
        if k <= most {
            return k;
        }
        let blocks = ((k + target / 2) / target).max(k.div_ceil(most)).max(1);
        k.div_ceil(blocks).next_multiple_of(8).min(k)
    }

    /// Whether a product is for the calling thread alone and K is one block: if its operands are read
    /// in place, there is nothing to cut and nothing to pack.
    #[inline]
    pub(super) fn is_brief(m: usize, n: usize, k: usize, size: usize) -> bool {
        let work = m.saturating_mul(n).saturating_mul(k).saturating_mul(size);
        work <= ONE_THREAD && Self::block_of_k(k, size) == k
    }

    /// Everything in one piece, with tiles of `mr` rows, and nothing packed.
    #[inline]
    pub(super) fn in_place(n: usize, k: usize, mr: usize) -> Blocking {
        Blocking {
            grid: Grid::WHOLE,
            last_rows: 0,
            finer: Grid::WHOLE,
            nc: n,
            kc: k,
            pack_b: false,
            mc: UNPACKED_TILES * mr,
            pack_a: false,
            awake_only: true,
            k_at_once: 0,
        }
    }

    /// The cut for `shape` on a machine with these caches and threads.
    pub fn choose(shape: &Shape, caches: CacheSizes, threads: usize) -> Blocking {
        let Shape { m, n, k, size, mr, nr, .. } = *shape;
        if Self::is_brief(m, n, k, size) && shape.a_in_place && shape.b_pitch.is_some() {
            return Self::in_place(n, k, mr);
        }
        let work = m.saturating_mul(n).saturating_mul(k).saturating_mul(size);
        let brief = work <= ONE_THREAD;
        let kc = Self::block_of_k(k, size);
        let longest = m.max(n).max(k);

        let pack_b = shape.b_pitch.is_none_or(|pitch| {
            // Few columns that fill their rows lie as they would in a panel.
            let as_packed = n <= nr && pitch <= nr * size;
            !as_packed
                && (longest * size > UNPACKED_BYTES
                    || !pitch.is_multiple_of(64) && m * size >= PACKED_IF_CROSSING
                    || pitch.is_multiple_of(2048) && m * size >= PACKED_IF_COLLIDING)
        });
        let pack_a = !shape.a_in_place || (longest * size > UNPACKED_BYTES && n > 2 * nr);

        // Half of L2 for the packed block of B; the rest streams past it.
        let fitting = caches.l2 / 2 / (kc.max(1) * size) / nr * nr;
        let nc = fitting.clamp(4 * nr, MOST_COLUMNS.max(4 * nr));

        let threads = if brief { 1 } else { threads.max(1) };
        let mut grid = Grid::WHOLE;
        let (mut last_rows, mut finer) = (0, Grid::WHOLE);
        let tiles_high = m.div_ceil(mr);
        if threads > 1 && !pack_b && k * n * size <= caches.l2 / SMALL && tiles_high >= threads {
            grid = Grid { rows: threads, columns: 1 };
        } else if threads > 1 {
            grid = Self::pieces_of_threads(shape, (pack_a, pack_b), threads);
            if m >= LAST * LAST_TILES * mr {
                last_rows = m - (m - m / LAST) / mr * mr;
                // As many for each of the grid's: a fifth piece of columns for two threads is one
                // that the other waits for.
                let columns = (n / NARROW / grid.columns).max(1) * grid.columns;
                let rows = (2 * threads).div_ceil(columns).min(last_rows / mr);
                finer = Grid { rows, columns };
            }
        }

        // A row panel of A whose columns are contiguous touches a line per k for a few elements:
        // several panels at once use the whole line. Without panels there is nothing to go on to.
        let mc = match (pack_a, shape.a_by_columns) {
            (false, _) => UNPACKED_TILES * mr,
            (true, true) => 8 * mr,
            (true, false) => mr,
        };

        let blocks = k.div_ceil(kc.max(1));
        let result = m.saturating_mul(n).saturating_mul(size);
        // Rows of A that are read where they lie are long streams: better than parts of all of them.
        let along = !pack_a && !pack_b && !shape.a_by_columns && tiles_high >= 4 * threads;
        let cut_k = threads > 1 && blocks >= threads && !along;
        let k_at_once = if cut_k && result <= PARTIALS / blocks.min(16) {
            // Cutting K packs everything once; cutting C packs A or B again in every piece.
            if m.min(n) < NARROW { (PARTIALS / result).clamp(threads, 64) } else { 0 }
        } else {
            0
        };
        let awake_only = work <= AWAKE_ONLY;
        Blocking { grid, last_rows, finer, nc, kc, pack_b, mc, pack_a, awake_only, k_at_once }
    }

    /// How many of a piece's columns are taken at a time: all of them if they are hardly more than
    /// `nc`, else even parts, since A is packed anew every time.
    pub(super) fn columns_at_once(&self, columns: usize, nr: usize) -> usize {
        let times = columns.div_ceil(self.most_columns()).max(1);
        columns.div_ceil(times).next_multiple_of(nr)
    }

    /// The most columns that are ever taken at a time, but for what makes a tile whole.
    pub(super) fn most_columns(&self) -> usize {
        self.nc + self.nc / 8
    }

    /// How many pieces C is cut into.
    pub(super) fn pieces(&self) -> usize {
        self.grid.pieces() + if self.last_rows > 0 { self.finer.pieces() } else { 0 }
    }

    /// Rows and columns of a piece of C, which has `m` by `n` elements and tiles `nr` wide.
    ///
    /// The large pieces are those at the ends, which threads take first (see `pool`): the first for
    /// the caller, the others for workers.
    pub(super) fn piece(
        &self,
        (m, n): (usize, usize),
        nr: usize,
        index: usize,
    ) -> (Range<usize>, Range<usize>) {
        let upper = m - self.last_rows;
        let small = self.pieces() - self.grid.pieces();
        let (grid, place, first, rows) = match index {
            0 => (self.grid, 0, 0, upper),
            _ if index <= small => (self.finer, index - 1, upper, self.last_rows),
            _ => (self.grid, index - small, 0, upper),
        };
        let rows = part(rows, grid.rows, 1, place / grid.columns);
        (first + rows.start..first + rows.end, part(n, grid.columns, nr, place % grid.columns))
    }

    /// One piece for each thread, with as little repacking as possible.
    fn pieces_of_threads(shape: &Shape, (pack_a, pack_b): (bool, bool), threads: usize) -> Grid {
        let Shape { m, n, mr, nr, .. } = *shape;
        let most_columns = n.div_ceil(nr);
        let most_rows = m.div_ceil(mr);
        // p pieces of columns pack A p times, q pieces of rows pack B q times.
        let mut best = Grid::WHOLE;
        let mut least = usize::MAX;
        for p in 1..=threads.min(most_columns) {
            let q = threads.div_ceil(p).min(most_rows);
            let missing = threads.saturating_sub(p * q);
            let narrow = if n / p < NARROW { n / 8 } else { 0 };
            let cost = missing.saturating_mul(m + n)
                + if pack_a { p * m + narrow } else { 0 }
                + if pack_b { q * n } else { 0 };
            // On a tie cut columns: a row of tiles then stays within few pages of C.
            if cost <= least {
                least = cost;
                best = Grid { rows: q, columns: p };
            }
        }
        best
    }
}

/// The part `index` of `total`, cut into `parts` pieces that are multiples of `unit` (but for the
/// end) and as even as that allows.
pub(super) fn part(total: usize, parts: usize, unit: usize, index: usize) -> Range<usize> {
    let units = total.div_ceil(unit);
    let cut = |i: usize| (units * i / parts * unit).min(total);
    cut(index)..cut(index + 1)
}

/// The length of the longest [`part`].
pub(super) fn widest(total: usize, parts: usize, unit: usize) -> usize {
    (total.div_ceil(unit).div_ceil(parts) * unit).min(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAPPHIRE: CacheSizes = CacheSizes { l1: 48 << 10, l2: 2 << 20, l3: 105 << 20 };

    fn square(n: usize) -> Shape {
        Shape {
            m: n,
            n,
            k: n,
            size: 4,
            mr: 14,
            nr: 32,
            b_pitch: Some(4 * n),
            a_in_place: true,
            a_by_columns: false,
        }
    }

    #[test]
    fn k_is_cut_evenly_near_the_target() {
        let table = [
            (0, 4, 0),
            (1, 4, 1),
            (512, 4, 512),
            (640, 4, 640),
            (641, 4, 328),
            (1000, 4, 504),
            (1024, 4, 512),
            (1025, 4, 520),
            (2048, 4, 512),
            (4096, 4, 512),
            (1024, 8, 256),
            (320, 8, 320),
            (321, 8, 168),
        ];
        for (k, size, kc) in table {
            assert_eq!(Blocking::block_of_k(k, size), kc, "k = {k}, {size} bytes");
        }
        for k in 1..5000 {
            assert!(Blocking::block_of_k(k, 4) <= 640);
        }
    }

    #[test]
    fn known_machines_get_known_blocks() {
        let large = Blocking::choose(&square(1024), SAPPHIRE, 2);
        let expected = Blocking {
            grid: Grid { rows: 1, columns: 2 },
            last_rows: 128,
            finer: Grid { rows: 1, columns: 4 },
            nc: 512,
            kc: 512,
            pack_b: true,
            mc: 14,
            pack_a: true,
            awake_only: false,
            k_at_once: 0,
        };
        assert_eq!(large, expected);

        let odd = Blocking::choose(&square(1025), SAPPHIRE, 2);
        assert_eq!(odd.finer, large.finer);

        let small = Blocking::choose(&square(128), SAPPHIRE, 2);
        assert!(!small.pack_a && !small.pack_b);
        assert_eq!((small.grid, small.last_rows), (Grid { rows: 2, columns: 1 }, 0));
        let smaller = Blocking::choose(&square(64), SAPPHIRE, 2);
        assert_eq!((smaller.grid, smaller.awake_only), (Grid { rows: 2, columns: 1 }, true));

        let tiny = Blocking::choose(&square(32), SAPPHIRE, 2);
        assert_eq!(tiny.pieces(), 1);

        let laptop = Blocking::choose(&square(1024), CacheSizes::FALLBACK, 8);
        assert!(laptop.nc * laptop.kc * 4 <= 256 << 10);
        assert!(laptop.grid.pieces() >= 8);

        let long = Blocking::choose(&Shape { m: 64, n: 64, k: 4096, ..square(64) }, SAPPHIRE, 2);
        assert!(long.k_at_once >= 8);
        let thin = Shape { n: 8, b_pitch: Some(32), ..square(2048) };
        let thin = Blocking::choose(&thin, SAPPHIRE, 2);
        assert_eq!((thin.pack_a, thin.pack_b, thin.k_at_once), (false, false, 0));
        let flat = Blocking::choose(&Shape { k: 64, ..square(4096) }, SAPPHIRE, 2);
        assert_eq!((flat.grid.columns, flat.kc, flat.k_at_once), (2, 64, 0));
    }

    #[test]
    fn pieces_cover_c_once() {
        for (m, n) in [(1024, 1024), (1025, 700), (4096, 64), (230, 9000), (128, 128)] {
            for threads in [1, 2, 3, 16] {
                let shape = Shape { m, n, ..square(2000) };
                let blocking = Blocking::choose(&shape, SAPPHIRE, threads);
                let mut covered = vec![0u8; m * n];
                for index in 0..blocking.pieces() {
                    let (rows, columns) = blocking.piece((m, n), 32, index);
                    rows.for_each(|i| {
                        covered[i * n..][columns.clone()].iter_mut().for_each(|at| *at += 1);
                    });
                }
                assert!(covered.iter().all(|at| *at == 1), "{m} x {n}, {threads} threads");
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        for n in [1, 17, 128, 700, 1024, 3000] {
            let one = Blocking::choose(&square(n), SAPPHIRE, 1);
            for threads in [2, 3, 7, 64] {
                let many = Blocking::choose(&square(n), SAPPHIRE, threads);
                assert_eq!(one.kc, many.kc);
            }
        }
    }

    #[test]
    fn parts_cover_everything_once() {
        for (total, parts, unit) in [(1, 1, 32), (100, 2, 32), (1023, 5, 14), (64, 2, 32)] {
            let mut next = 0;
            for index in 0..parts {
                let range = part(total, parts, unit, index);
                assert_eq!(range.start, next);
                assert!(range.len() <= widest(total, parts, unit));
                next = range.end;
            }
            assert_eq!(next, total);
        }
    }
}
