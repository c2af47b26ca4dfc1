//! How a call is cut: blocks of i, and ranges of j where that pays or is asked for.
//!
//! Sizes are those of `plan`, whose head says what they may depend on. Called by `plan`.

use tilework_backend::Scheme;

use super::course::STEPS_OF_LAUNCH;
use super::folding::Folding;
use super::plan::Sizes;
use super::tiling::{BLOCKS_OF_SEVERAL_RANGES, Tiling};

/// The fewest j of a range that are worth a state of their own.
pub(super) const SHORT_RANGE: usize = 256;

/// Components of vectors beyond which fewer j are worth a state.
const DEPTH_OF_RANGE: usize = 64;

/// The most j of a range: places in a range are 32 bits.
pub(super) const LONG_RANGE: usize = 1 << 30;

/// Threads that a multiprocessor is given in a call that is cut over j, so that all are busy to
/// the end.
const THREADS_EACH: usize = 6 << 10;

/// Bytes of states that ranges may take together.
pub(super) const PARTIAL_BYTES: usize = 32 << 20;

/// The most ranges of a row: more take longer to merge than they save.
const MOST_RANGES: usize = 2048;

/// The fewest j of a range for each of the K best that are kept, where a card would have too little to do with fewer
/// ranges. Until a range has seen many times K values, most of them are kept for a while.
pub(super) const RANGE_PER_RANK: usize = 16;

/// The same where a card has enough to do.
const LONG_RANGE_PER_RANK: usize = 1024;

/// Blocks of ranks for a multiprocessor, with which it has enough to do.
const BLOCKS_OF_RANKS: usize = 2;

/// What the beginning of a range of ranks costs, until it has seen many values, in states that are written and merged.
const STATES_OF_START: f64 = 16.0;

/// Pairs of a call beyond which work is long, so that it is not done in one launch.
pub(super) const LONG_WORK: f64 = 1e11;

/// Blocks for each multiprocessor that a launch of long work has, at least.
pub(super) const BLOCKS_OF_LAUNCH: usize = 8;

/// Instructions that all lanes of a multiprocessor do while a card writes and merges one byte of states. On an H200 these
/// are 2.5e11 instructions a second, and 1.5e12 bytes a second of the whole card.
const INSTRUCTIONS_PER_BYTE: f64 = 1.0 / 6.0;

/// Threads of a block of the kernel that merges states.
pub(super) const MERGE_THREADS: usize = 128;

/// Threads of all blocks that merge, at least, where rows have many ranges.
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

/// How a plan's call is cut. A pair takes `body` steps, and long vectors have `depth` components in all (0 where there are
/// none): a j of these is as much work as many of short ones.
pub(super) fn of(
    tiling: &Tiling,
    folding: &Folding,
    [body, depth]: [usize; 2],
    sizes: Sizes,
) -> Cut {
    let Sizes { batches, m, n, .. } = sizes;
    let blocks = if tiling.ranges_per_block > 1 { 1 } else { m.div_ceil(tiling.span()).max(1) };
    let whole = tiling.ranges_per_block == 1 && tiling.wide.is_none() && depth == 0;
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

/// What the number of ranges depends on.
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
    /// The ranges of the scheme that is asked for, or as many as pay.
    fn chosen(&self) -> usize {
        let Cutter { tiling, sizes: Sizes { n, scheme, .. }, .. } = *self;
        let (wanted, room, short) = (self.wanted(), self.room(), self.short());
        let ranges = match scheme {
            Scheme::OneD => 1,
            Scheme::TwoD => wanted.clamp(2, n.div_ceil(tiling.tile).max(2)).min(room.max(2)),
            // Merging would take longer than the few more j.
            _ if tiling.few_pairs && n <= 2 * tiling.tile => 1,
            _ if self.brief && !self.ranked => wanted.min(n.div_ceil(short)).min(room),
            _ => wanted.min(n / short).min(room),
        };
        ranges.min(MOST_RANGES * tiling.ranges_per_block.min(3))
    }

    /// Ranges with which all multiprocessors are busy to the end.
    fn wanted(&self) -> usize {
        let Cutter { tiling, folding, sizes, all, ranked, .. } = *self;
        let Sizes { batches, m, n, multiprocessors, .. } = sizes;
        match tiling.ranges_per_block {
            1 if tiling.few_pairs && ranked => self.least_of_ranks(),
            1 if tiling.few_pairs => n.div_ceil(tiling.tile),
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
            several => (multiprocessors * BLOCKS_OF_SEVERAL_RANGES / all).max(1) * several,
        }
    }

    /// Ranges with which a card has enough blocks of ranks.
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
                let blocks = (self.least_of_ranks() * self.tiling.ranges_per_block).max(1);
                (self.sizes.n / blocks).clamp(k * RANGE_PER_RANK, k * LONG_RANGE_PER_RANK)
            }
            false if self.brief => tile.min(SHORT_RANGE),
            false => (SHORT_RANGE * DEPTH_OF_RANGE / self.depth.max(DEPTH_OF_RANGE))
                .max(tile.min(SHORT_RANGE)),
        }
    }

    /// These ranges, or more where work is waited for: so many that a launch, which ends soon, still has blocks for all
    /// multiprocessors, whatever scheme is asked for. Otherwise nobody could stop the work. Their states may need more
    /// room than there is, so that rows are taken in pieces; but ranks of few rows, which begin anew in every range,
    /// have only as many as there is room for.
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

/// The j of a range with which a call takes least time. With longer ranges multiprocessors wait longer at the end of the
/// call: about as long as one takes for a block, which has `block` steps for each j. With shorter ones there are more
/// states: as many `bytes` as all would have with ranges of one j, divided by the j of a range.
fn balanced(block: f64, bytes: f64) -> usize {
    (bytes * INSTRUCTIONS_PER_BYTE / block.max(1.0)).sqrt() as usize
}

/// Threads that merge the ranges of each of so many rows: enough for all multiprocessors together.
pub(super) fn lanes(rows: usize, ranges: usize) -> usize {
    let wanted = MERGING_THREADS.div_ceil(rows.max(1)).next_power_of_two();
    if ranges > 8 { wanted.min(32) } else { 1 }
}
