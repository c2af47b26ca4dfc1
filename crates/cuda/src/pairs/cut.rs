//! How a call is cut: blocks of i, and ranges of j where that pays or is asked for.
//!
//! Sizes are those of `plan`, whose head says what they may depend on. Called by `plan`.

use tilework_backend::Scheme;

use super::course::STEPS_OF_LAUNCH;
use super::folding::Folding;
use super::plan::Sizes;
use super::tiling::{BLOCKS_OF_SLICES, Tiling};

/// j of a range, at least: fewer are not worth a state of their own.
pub(super) const SHORT_RANGE: usize = 256;

/// The length of vectors beyond which fewer are.
const DEPTH_OF_RANGE: usize = 64;

/// j of a range, at most: places in a range are 32 bits.
pub(super) const LONG_RANGE: usize = 1 << 30;

/// Threads that a multiprocessor is given in a call that is cut over j, so that all are busy to
/// the end.
const THREADS_EACH: usize = 6 << 10;

/// Bytes of states that ranges may take together.
pub(super) const PARTIAL_BYTES: usize = 32 << 20;

/// The most ranges of a row: more take longer to merge than they save.
const MOST_RANGES: usize = 2048;

/// j of a range for each of the K best that are kept, at least, where a card would have too little to do with fewer ranges;
/// and where it has enough: until a range has seen many times K values, most of them are kept for a while.
pub(super) const RANGE_PER_RANK: usize = 16;
const LONG_RANGE_PER_RANK: usize = 1024;

/// Blocks of ranks for a multiprocessor, with which it has enough to do.
const BLOCKS_OF_RANKS: usize = 2;

/// What a range of ranks costs until it has seen many values, as so many states that are written and merged.
const STATES_OF_START: f64 = 16.0;

/// Pairs from which work is long.
pub(super) const LONG_WORK: f64 = 1e11;

/// Blocks of a launch of long work for a multiprocessor.
pub(super) const BLOCKS_OF_LAUNCH: usize = 8;

/// Instructions, of all lanes of a multiprocessor, that are done while one byte of states is written and merged, of
/// which a card does many at once: on an H200 2.5e11 a second, and 1.5e12 bytes.
const INSTRUCTIONS_PER_BYTE: f64 = 1.0 / 6.0;

/// Threads of a block that merges.
pub(super) const MERGE_THREADS: usize = 128;

/// Threads that merge, at least, where rows have many ranges.
const MERGING_THREADS: usize = 1 << 15;

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

/// How a plan's call is cut: long vectors, of `depth`, are as much work as many short ones; pairs take `body` steps.
pub(super) fn of(
    tiling: &Tiling,
    folding: &Folding,
    [body, depth]: [usize; 2],
    sizes: Sizes,
) -> Cut {
    let Sizes { batches, m, n, .. } = sizes;
    let blocks = if tiling.slices > 1 { 1 } else { m.div_ceil(tiling.span()).max(1) };
    let whole = tiling.slices == 1 && tiling.wide.is_none() && depth == 0;
    let cutter = Cutter {
        tiling,
        folding,
        sizes,
        body,
        depth,
        all: batches.saturating_mul(blocks).max(1),
        ranked: folding.shape.k > 1,
        brief: whole && sizes.pairs() <= LONG_WORK,
    };
    let ranges = cutter.stoppable(cutter.chosen()).max(n.div_ceil(LONG_RANGE)).max(1);
    let range = n.div_ceil(ranges).next_multiple_of(tiling.tile).max(tiling.tile);
    let ranges = n.div_ceil(range).max(1);
    let lanes =
        if tiling.team > 1 { tiling.team } else { lanes(batches.saturating_mul(m), ranges) };
    Cut { blocks, range, ranges, lanes }
}

/// What ranges are chosen by.
struct Cutter<'p> {
    tiling: &'p Tiling,
    folding: &'p Folding,
    sizes: Sizes,
    body: usize,
    depth: usize,
    /// Blocks of i of all batches.
    all: usize,
    /// Whether the best are kept, in order.
    ranked: bool,
    /// Whether all is done in one launch, by rows that are not shared.
    brief: bool,
}

impl Cutter<'_> {
    /// The scheme that is asked for, or what pays.
    fn chosen(&self) -> usize {
        let Cutter { tiling, sizes: Sizes { n, scheme, .. }, .. } = *self;
        let (wanted, room, short) = (self.wanted(), self.room(), self.short());
        let ranges = match scheme {
            Scheme::OneD => 1,
            Scheme::TwoD => wanted.clamp(2, n.div_ceil(tiling.tile).max(2)).min(room.max(2)),
            // Merging would take longer than the few more j.
            _ if tiling.few && n <= 2 * tiling.tile => 1,
            _ if self.brief && !self.ranked => wanted.min(n.div_ceil(short)).min(room),
            _ => wanted.min(n / short).min(room),
        };
        ranges.min(MOST_RANGES * tiling.slices.min(3))
    }

    /// Ranges with which all multiprocessors are busy to the end.
    fn wanted(&self) -> usize {
        let Cutter { tiling, folding, sizes, all, ranked, .. } = *self;
        let Sizes { batches, m, n, multiprocessors, .. } = sizes;
        match tiling.slices {
            1 if tiling.few && ranked => self.least_of_ranks(),
            1 if tiling.few => n.div_ceil(tiling.tile),
            1 if self.brief => {
                let block = tiling.span() as f64 * self.body as f64;
                let bytes = batches as f64 * m as f64 * folding.state_bytes() as f64;
                let bytes = if ranked { bytes * STATES_OF_START } else { bytes };
                let ranges = n.div_ceil(balanced(block, bytes * n as f64).max(tiling.tile));
                if ranked { ranges.max(self.least_of_ranks()) } else { ranges }
            }
            1 => {
                // Long work is launched in pieces, at the end of each of which multiprocessors are idle.
                let long = sizes.pairs() > LONG_WORK;
                let each = if long { 4 * THREADS_EACH } else { THREADS_EACH };
                multiprocessors * each / tiling.threads / all
            }
            slices => (multiprocessors * BLOCKS_OF_SLICES / all).max(1) * slices,
        }
    }

    fn least_of_ranks(&self) -> usize {
        self.sizes.multiprocessors * BLOCKS_OF_RANKS / self.all
    }

    /// Ranges whose states there is memory for.
    fn room(&self) -> usize {
        let rows = self.sizes.batches.saturating_mul(self.sizes.m);
        PARTIAL_BYTES / rows.saturating_mul(self.folding.state_bytes()).max(1)
    }

    /// j of a range, at least.
    fn short(&self) -> usize {
        let (k, tile) = (self.folding.shape.k, self.tiling.tile);
        match self.ranked {
            true if self.brief => k * RANGE_PER_RANK,
            true => {
                let blocks = (self.least_of_ranks() * self.tiling.slices).max(1);
                (self.sizes.n / blocks).clamp(k * RANGE_PER_RANK, k * LONG_RANGE_PER_RANK)
            }
            false if self.brief => tile.min(SHORT_RANGE),
            false => (SHORT_RANGE * DEPTH_OF_RANGE / self.depth.max(DEPTH_OF_RANGE))
                .max(tile.min(SHORT_RANGE)),
        }
    }

    /// Work that is waited for has so many that a launch has blocks for all multiprocessors, whatever scheme is asked for:
    /// without, nobody could stop it. Rows are then taken in pieces, as their states have room, but for ranks
    /// of few, which begin anew in every range.
    fn stoppable(&self, ranges: usize) -> usize {
        let Sizes { n, multiprocessors, .. } = self.sizes;
        let busy = multiprocessors * BLOCKS_OF_LAUNCH;
        let launch = STEPS_OF_LAUNCH / (busy * self.tiling.span() * self.body) as f64;
        match (n as f64 / launch) as usize {
            _ if self.sizes.pairs() * self.body as f64 <= STEPS_OF_LAUNCH => ranges,
            needed if self.ranked && self.all < busy => ranges.max(needed.min(self.room())),
            needed => ranges.max(needed),
        }
    }
}

/// j of a range that cost least: at the end of a call multiprocessors wait for about the time that one of them takes for
/// a block, of so many steps for each j, and each range of all j costs so many bytes of states.
fn balanced(block: f64, bytes: f64) -> usize {
    (bytes * INSTRUCTIONS_PER_BYTE / block.max(1.0)).sqrt() as usize
}

/// Threads that merge the ranges of each of so many rows: enough for all multiprocessors together.
pub(super) fn lanes(rows: usize, ranges: usize) -> usize {
    let wanted = MERGING_THREADS.div_ceil(rows.max(1)).next_power_of_two();
    if ranges > 8 { wanted.min(32) } else { 1 }
}
