//! How a reduction over pairs is cut: rows of i for a thread, tiles and groups of j, ranges of j.
//!
//! Sizes depend on the tape, on M, N, the number of batches and the card, never on the data or the
//! load, so that the order of every sum does too. A scheme is the number of ranges. Made once a call
//! by `pairs::run`; what goes into the kernel's text is in [`Tiling`], the rest is arguments.

use tilework_backend::Scheme;
use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Per, Tape};

use super::arguments;
use super::cost::body;
use super::folding::Folding;
use super::functions::Does;
use super::right::{Difference, Right};
use super::sections::{LONG, Sections};
use super::slices::Slices;
use super::square::Square;
use super::wide::{self, SIDE, Wide};

/// Threads of a block, where there are enough rows.
const THREADS: usize = 128;

/// Rows of i that a thread may own, most first; the first for sums of one number only, which keep little
/// of a row, and those above `ROWS_OF_DOUBLES` not for float64.
const ROWS: [usize; 5] = [8, 6, 4, 2, 1];
const ROWS_OF_DOUBLES: usize = 4;

/// Blocks that a call has, if with fewer rows for a thread.
const LEAST_BLOCKS: usize = 16;

/// Words of registers that the rows of a thread may take, with their states.
const ROW_WORDS: usize = 96;

/// The same for two rows, without which shared memory is read once for every pair.
const TWO_ROWS_WORDS: usize = 160;

/// Words that the values of a group of pairs may take.
const GROUP_WORDS: usize = 48;

/// Steps that the body of the inner loop may have, counted by their cost.
const BODY: usize = 640;

/// Steps of a pair that are few beside the loop's own.
const SHORT_BODY: usize = 8;

/// Bytes of shared memory for the two tiles of a block.
const TILE_BYTES: usize = 40 << 10;

/// Bytes of shared memory that a kernel may declare, on older cards and since Hopper.
const DECLARED: usize = 48 << 10;
const DECLARED_ON_HOPPER: usize = 227 << 10;

/// Bytes of a j that a thread may hold in registers while its tile is not free yet.
const AHEAD_BYTES: usize = 64;

/// j of a range, at least: fewer are not worth a state of their own.
const SHORT_RANGE: usize = 256;

/// j of a range, at most: places in a range are 32 bits.
const LONG_RANGE: usize = 1 << 30;

/// Threads that a multiprocessor is given in a call that is cut over j, so that all are busy to
/// the end.
const THREADS_EACH: usize = 6 << 10;

/// Bytes of states that ranges may take together.
const PARTIAL_BYTES: usize = 32 << 20;

/// The most ranges of a row: more take longer to merge than they save.
const MOST_RANGES: usize = 2048;

/// j of a range for each of the K best that are kept: until a range has seen many times K values,
/// most of them are kept for a while.
const RANGE_PER_RANK: usize = 1024;

/// Threads that merge, at least, where rows have many ranges.
const MERGING_THREADS: usize = 1 << 15;

/// K up to which the K best of a row are in registers.
pub(super) const FEW_RANKS: usize = 16;

/// What a kernel's text is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tiling {
    pub(super) threads: usize,
    /// Rows of i that a thread owns.
    pub(super) rows: usize,
    /// j of a tile in shared memory, or of a product of tiles.
    pub(super) tile: usize,
    /// j that are computed together.
    pub(super) group: usize,
    /// j that a thread holds in registers until their tile is free; none where vectors are long.
    pub(super) ahead: usize,
    /// Where tensor cores make the inner products.
    pub(super) wide: Option<Wide>,
}

impl Tiling {
    /// Rows of i that a block has.
    pub(super) fn span(&self) -> usize {
        self.wide.map_or(self.threads * self.rows, |wide| wide.groups * SIDE)
    }
}

/// How a call is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Blocks of i of a batch.
    pub(super) blocks: usize,
    /// j of a range.
    pub(super) range: usize,
    pub(super) ranges: usize,
    /// Threads that merge the ranges of a row.
    pub(super) lanes: usize,
}

/// The sizes of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) batches: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) multiprocessors: usize,
    pub(super) scheme: Scheme,
    /// The card's compute capability.
    pub(super) capability: (i32, i32),
}

impl Sizes {
    /// Of all batches.
    pub(super) fn pairs(&self) -> f64 {
        self.batches as f64 * self.m as f64 * self.n as f64
    }
}

/// Everything about a call that does not depend on where it is.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) sections: Sections<'a>,
    pub(super) folding: Folding,
    pub(super) tiling: Tiling,
    pub(super) cut: Cut,
    /// Steps of a pair, counted by what they cost.
    pub(super) body: usize,
    /// What the formula's number is multiplied by, where tensor cores do that.
    pub(super) right: Option<Sides<'a>>,
    /// Components that the sums of threads become differences in, at their end.
    pub(super) difference: Option<Difference>,
    /// The slices that the plan is for, one after another, if not for all components.
    pub(super) slices: Option<&'a Slices>,
}

/// Right-hand sides of a plan.
#[derive(Debug)]
pub(super) struct Sides<'a> {
    pub(super) of: &'a Right,
    pub(super) sections: Sections<'a>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        tape: &'a Tape,
        folding: Folding,
        sizes: Sizes,
        square: Option<Square>,
    ) -> Plan<'a> {
        let by_tiles = square.is_some_and(|square| square.leave().is_some());
        let adds = folding.monoid() == Monoid::Add;
        let sections = Sections::new(tape, adds, square, !by_tiles);
        let tiling = match by_tiles {
            true => wide::tiling(&sections, &folding, 0),
            false => tiling(&sections, &folding, sizes.m),
        };
        Plan::of(sections, folding, tiling, sizes, None)
    }

    /// A plan that multiplies weights by right-hand sides.
    pub(super) fn weighted(
        right: &'a Right,
        folding: Folding,
        sizes: Sizes,
        square: Square,
    ) -> Plan<'a> {
        let sections = Sections::new(&right.weight, false, Some(square), false);
        let tiling = wide::tiling(&sections, &folding, right.columns());
        let sides = Sections::new(&right.sides, false, None, false);
        Plan::of(sections, folding, tiling, sizes, Some(Sides { of: right, sections: sides }))
    }

    fn of(
        sections: Sections<'a>,
        folding: Folding,
        tiling: Tiling,
        sizes: Sizes,
        right: Option<Sides<'a>>,
    ) -> Plan<'a> {
        let cut = cut(&tiling, &folding, sizes);
        let body = body(&sections).max(1);
        Plan { sections, folding, tiling, cut, body, right, difference: None, slices: None }
    }

    /// Bytes of the tiles of j that a block declares, where they are more than the card has.
    pub(super) fn too_many_bytes(&self, sizes: &Sizes) -> Option<usize> {
        let each = self.sections.bytes(Per::J).next_multiple_of(16);
        let most = if sizes.capability.0 < 9 { DECLARED } else { DECLARED_ON_HOPPER };
        Some(2 * self.tiling.tile * each).filter(|bytes| *bytes > most)
    }

    /// The bits of the numbers that its kernels get as arguments.
    pub(super) fn arguments(&self) -> impl Iterator<Item = u64> + '_ {
        let sides = self.right.as_ref().map(|right| &right.sections);
        let sections = [Some(&self.sections), sides].into_iter().flatten();
        sections.flat_map(|sections| {
            sections.arguments.iter().map(|&slot| arguments::bits(sections.tape, slot))
        })
    }

    /// What the kernel does with pairs.
    pub(super) fn does(&self) -> Does {
        match self.sections.square {
            _ if self.right.is_some() => Does::Weigh,
            Some(square) if square.is_filter() => Does::Sift,
            _ => Does::Fold,
        }
    }
}

fn tiling(sections: &Sections<'_>, folding: &Folding, m: usize) -> Tiling {
    let body = body(sections).max(1);
    let long = is_long(sections);
    let words = sections.bytes(Per::I).div_ceil(4) + folding.words();
    let adds = folding.monoid() == Monoid::Add;
    let adds_squares = sections.square.is_some() && adds;
    let adds_cheaply = adds && folding.shape.dim == 1 && !folding.strict;
    let doubles = folding.computes == DType::Float64;
    let fits = |rows: &usize| {
        let room = if *rows == 2 { TWO_ROWS_WORDS } else { ROW_WORDS };
        let most = (*rows < ROWS[0] || adds_squares || adds_cheaply)
            && (*rows <= ROWS_OF_DOUBLES || !(doubles || folding.strict));
        rows * words <= room && rows * body <= BODY && !long && most
    };
    let mut rows = ROWS.into_iter().find(fits).unwrap_or(1);
    let mut threads = THREADS;
    // Few rows: smaller blocks first, then fewer rows for a thread.
    let wasteful = |span: usize| 5 * m.div_ceil(span) * span > 6 * m;
    while threads > 32 && wasteful(threads * rows) {
        threads /= 2;
    }
    while let Some(fewer) = ROWS.into_iter().find(|fewer| *fewer < rows && 32 * fewer >= m) {
        rows = fewer;
    }
    while rows > 4 && m > THREADS && m.div_ceil(threads * rows) < LEAST_BLOCKS {
        rows = ROWS.into_iter().find(|fewer| *fewer < rows).unwrap_or(1);
    }
    // Two warps bring a tile in half the time.
    if (threads, rows) == (32, 4) {
        (threads, rows) = (64, 2);
    }
    let of_pair = sections.steps(Per::Pair).map(|(slot, _)| {
        if sections.passing[usize::from(slot)] { 0 } else { sections.tape.slot(slot).len as usize }
    });
    let pair_words = of_pair.sum::<usize>() + folding.shape.dim + folding.shape.weights;
    // Pairs hide each other's latency, and extremes compare the best of a group only; more than
    // that costs registers. Measured on an H200.
    let wished = match folding.monoid() {
        _ if long => 4,
        _ if folding.strict => {
            if adds {
                8
            } else {
                4
            }
        }
        Monoid::Smallest | Monoid::Largest if folding.shape.k * folding.shape.dim <= FEW_RANKS => 4,
        // So little is left to do for a pair that the loop itself would show.
        Monoid::Add if sections.square.is_some() && !doubles && folding.shape.dim <= 2 => 8,
        Monoid::Add if sections.square.is_some() => 4,
        Monoid::Shifted if body <= SHORT_BODY => 8,
        _ => 2,
    };
    let fits = |group: &usize| group * pair_words <= GROUP_WORDS && rows * group * body <= BODY;
    let group = [8, 4, 2].into_iter().filter(|group| *group <= wished).find(fits);
    let group = if long { wished } else { group.unwrap_or(1) };
    let each = sections.bytes(Per::J).next_multiple_of(16).max(16);
    let tile = threads.max(64).min((TILE_BYTES / (2 * each)).max(1));
    let ahead = match each <= AHEAD_BYTES && !long {
        true => tile.div_ceil(threads),
        false => 0,
    };
    Tiling { threads, rows, tile, group, ahead, wide: None }
}

/// Whether there are vectors that are not kept in registers.
fn is_long(sections: &Sections<'_>) -> bool {
    (0..sections.tape.slots()).any(|slot| sections.tape.slot(slot as u16).len > LONG)
}

fn cut(tiling: &Tiling, folding: &Folding, sizes: Sizes) -> Cut {
    let Sizes { batches, m, n, multiprocessors, scheme, .. } = sizes;
    let blocks = m.div_ceil(tiling.span()).max(1);
    let all = batches.saturating_mul(blocks).max(1);
    let wanted = multiprocessors * THREADS_EACH / tiling.threads / all;
    let room =
        PARTIAL_BYTES / batches.saturating_mul(m).saturating_mul(folding.state_bytes()).max(1);
    let ranked = folding.shape.k > 1;
    let short = if ranked { folding.shape.k * RANGE_PER_RANK } else { SHORT_RANGE };
    let ranges = match scheme {
        Scheme::OneD => 1,
        Scheme::TwoD => wanted.clamp(2, n.div_ceil(tiling.tile).max(2)).min(room.max(2)),
        _ => wanted.min(n / short).min(room),
    };
    let ranges = ranges.min(MOST_RANGES).max(n.div_ceil(LONG_RANGE)).max(1);
    let range = n.div_ceil(ranges).next_multiple_of(tiling.tile).max(tiling.tile);
    let ranges = n.div_ceil(range).max(1);
    Cut { blocks, range, ranges, lanes: lanes(batches.saturating_mul(m), ranges) }
}

/// Threads that merge the ranges of each of so many rows: enough for all multiprocessors together.
pub(super) fn lanes(rows: usize, ranges: usize) -> usize {
    let wanted = MERGING_THREADS.div_ceil(rows.max(1)).next_power_of_two();
    if ranges > 8 { wanted.min(32) } else { 1 }
}

#[cfg(test)]
mod tests {
    use tilework_ops::pair_fold::{PairFoldId, PairShape};

    use super::*;
    use tilework_ops::{DType, Id};
    use tilework_tape::{Builder, Slot};

    fn gaussian(dim: u32) -> Tape {
        let mut build = Builder::new();
        let x = build.input(Slot { dtype: DType::Float32, len: dim }, Per::I);
        let y = build.input(Slot { dtype: DType::Float32, len: dim }, Per::J);
        let b = build.input(Slot::scalar(DType::Float32), Per::J);
        let d = build.apply(Id::Subtract, &[x, y]).unwrap();
        let d2 = build.dot(d, d).unwrap();
        let k = build.apply(Id::Exp2Pair, &[d2]).unwrap();
        let kb = build.apply(Id::Multiply, &[k, b]).unwrap();
        build.finish(&[kb]).unwrap()
    }

    fn sum(k: usize) -> Folding {
        Folding {
            fold: PairFoldId::Sum,
            shape: PairShape { dim: 1, k, weights: 0 },
            computes: DType::Float32,
            accumulates: DType::Float32,
            compensated: false,
            strict: false,
            finish: true,
            output: DType::Float32,
        }
    }

    fn sizes(batches: usize, m: usize, n: usize, scheme: Scheme) -> Sizes {
        Sizes { batches, m, n, multiprocessors: 132, scheme, capability: (9, 0) }
    }

    #[test]
    fn every_pair_has_a_thread_and_a_range() {
        for dim in [1, 3, 10, 64, 65, 784] {
            let tape = gaussian(dim);
            for (batches, m, n) in [
                (1, 1, 0),
                (1, 1, 1),
                (1, 100, 10_000_000),
                (64, 2000, 2000),
                (1, 1 << 24, 1 << 24),
            ] {
                for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                    let plan = Plan::new(&tape, sum(1), sizes(batches, m, n, scheme), None);
                    let (tiling, cut) = (plan.tiling, plan.cut);
                    assert!(cut.blocks * tiling.threads * tiling.rows >= m, "{plan:?}");
                    assert!(cut.ranges * cut.range >= n && cut.range <= LONG_RANGE, "{plan:?}");
                    assert!((cut.ranges - 1) * cut.range <= n, "no range is empty: {plan:?}");
                    assert!(scheme != Scheme::OneD || cut.ranges == 1, "{plan:?}");
                    let each = plan.sections.bytes(Per::J).next_multiple_of(16);
                    assert!(2 * tiling.tile * each <= 48 << 10, "{plan:?}");
                    if scheme == Scheme::Auto {
                        assert!(cut.ranges * batches * m * 4 <= 64 << 20 || cut.ranges == 1);
                    }
                }
            }
        }
    }

    #[test]
    fn tiles_fit_shared_memory_or_are_refused() {
        for (dim, old, new) in [(784, true, true), (8192, false, true), (40_000, false, false)] {
            let tape = gaussian(dim);
            for (capability, fits) in [((8, 0), old), ((9, 0), new)] {
                let sizes = Sizes { capability, ..sizes(1, 1000, 1000, Scheme::Auto) };
                let plan = Plan::new(&tape, sum(1), sizes, None);
                assert_eq!(plan.too_many_bytes(&sizes).is_none(), fits, "{dim}, {capability:?}");
            }
        }
    }

    #[test]
    fn schemes_follow_the_sizes() {
        let tape = gaussian(3);
        let ranges =
            |m, n, scheme| Plan::new(&tape, sum(1), sizes(1, m, n, scheme), None).cut.ranges;
        assert!(ranges(100, 10_000_000, Scheme::Auto) > 500);
        assert_eq!(ranges(10, 10, Scheme::Auto), 1);
        assert_eq!(ranges(10_000_000, 10_000_000, Scheme::Auto), 1);
        assert!(ranges(1000, 1000, Scheme::TwoD) > 1);
    }

    #[test]
    fn squared_distances_are_made_on_the_way_and_products_summed_fused() {
        let tape = gaussian(3);
        let plan = Plan::new(&tape, sum(1), sizes(1, 100_000, 100_000, Scheme::Auto), None);
        assert_eq!(plan.sections.passing, [false, false, false, true, false, false, false]);
        assert_eq!(plan.sections.terms.len(), 1);
        assert!(plan.sections.terms[0].factor.is_some());
        assert_eq!((plan.tiling.rows, plan.tiling.group), (8, 2));
    }
}
