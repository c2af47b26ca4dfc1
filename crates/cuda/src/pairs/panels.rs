//! The parts of a call on tensor cores: pieces of rows by panels of j, within a scratch that does not grow with the call.
//!
//! Points are split into heads and tails a piece and a panel at a time. Sizes depend on the tape, on M, N and the card
//! only. Read by `launching_wide` and `explain`, and by `wide`, which asks whether there is one panel.

use tilework_backend::Scheme;

use super::cut::Cut;
use super::plan::Sizes;
use super::tiling::Tiling;
use super::wide::{SIDE, SPLIT_BYTES};

/// Bytes of a piece (tiles and states) and of a panel (tiles, with what belongs to its j) together.
const PARTS_BYTES: usize = 56 << 20;

/// Bytes of these that a panel may have: `Parts::new` takes the best.
const PANEL_BYTES: [usize; 6] = [36 << 20, 32 << 20, 28 << 20, 24 << 20, 20 << 20, 16 << 20];

/// Bytes of the states of several ranges, beside what a piece leaves for them.
const STATES_BYTES: usize = 4 << 20;

/// The most ranges of a panel.
pub(super) const MOST_RANGES: usize = 64;

/// Whether a panel has so many j, with what belongs to each.
pub(super) fn has_one(dim: u32, n: usize) -> bool {
    n * (dim as usize + 2) * SPLIT_BYTES <= PANEL_BYTES[0]
}

/// The sizes of the parts of a call, each of which is a piece of rows by a panel of j.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Batches that are worked on together: as many as there is room for, where there is for all of one.
    pub(super) batches: usize,
    /// Bytes of a row's tiles.
    pub(super) row: usize,
    /// Bytes of a row's state.
    state: usize,
    /// Bytes of a piece.
    piece: usize,
    /// Rows of a piece, in whole blocks.
    pub(super) rows: usize,
    /// j of a panel, in whole tiles.
    pub(super) columns: usize,
}

impl Parts {
    /// Parts for which there is room: `beside` are bytes of a j beside its point, `state` those of a row's state. Memory is
    /// shared such that there are few panels, each of which is split anew for every piece, and then few pieces.
    pub(super) fn new(
        tiling: &Tiling,
        dim: usize,
        [beside, state]: [usize; 2],
        sizes: &Sizes,
    ) -> Parts {
        let depths = tiling.wide.map_or(SIDE, |wide| wide.depths);
        let row = if depths == 0 { 0 } else { dim.next_multiple_of(depths) * SPLIT_BYTES };
        // Whole rounds of the card's multiprocessors, where there is room for one.
        let (span, round) = (tiling.span(), tiling.span() * sizes.multiprocessors);
        let shared = |panel: usize| {
            let piece = PARTS_BYTES - panel;
            let room = piece / (row + state);
            let step = if room >= round { round } else { span };
            let rows = (room / step * step).max(span).min(sizes.m.next_multiple_of(span));
            let columns = (panel / (row + beside) / tiling.tile * tiling.tile).max(tiling.tile);
            let columns = columns.min(sizes.n.next_multiple_of(tiling.tile));
            let batches = match rows >= sizes.m && columns >= sizes.n {
                true => {
                    let [own, panels] = [rows * (row + state), columns * (row + beside)];
                    (piece / own.max(1)).min(panel / panels.max(1))
                }
                false => 1,
            };
            Parts { batches: batches.clamp(1, sizes.batches), row, state, piece, rows, columns }
        };
        let count = |parts: &Parts| {
            let pieces = sizes.m.div_ceil(parts.rows) * sizes.batches.div_ceil(parts.batches);
            [sizes.n.div_ceil(parts.columns), pieces]
        };
        let [first, others @ ..] = PANEL_BYTES.map(shared);
        others.into_iter().fold(first, |best, it| if count(&it) < count(&best) { it } else { best })
    }

    /// How a part of so many rows of each batch is cut over j: into ranges of whole tiles of its panels, so many that the
    /// last round of blocks leaves few multiprocessors idle. The state of a range goes on from panel to panel, and so over
    /// j that are not neighbours: where the order of equal values counts (`ordered`), several panels have one range each. A
    /// scheme that is asked for is kept to wherever that allows it.
    pub(super) fn cut(&self, tiling: &Tiling, rows: usize, ordered: bool, sizes: &Sizes) -> Cut {
        /// Tiles that take as long as the beginning of a range.
        const START: usize = 6;
        let blocks = rows.div_ceil(tiling.span());
        let tiles = self.columns.div_ceil(tiling.tile).max(1);
        let cost = |ranges: &usize| {
            let rounds = (self.batches * blocks * ranges).div_ceil(sizes.multiprocessors);
            rounds * (tiles.div_ceil(*ranges) + START)
        };
        let rows_bytes = self.batches * rows * self.row;
        let room = (self.piece + STATES_BYTES).saturating_sub(rows_bytes);
        let room = (room / (self.batches * rows * self.state).max(1)).max(1);
        let most = match ordered && self.columns < sizes.n {
            true => 1,
            false => MOST_RANGES.min(tiles).min(room),
        };
        let (least, most) = match sizes.scheme {
            Scheme::OneD => (1, 1),
            Scheme::TwoD => (most.min(2), most),
            _ => (1, most),
        };
        let ranges = (least..=most).min_by_key(cost).unwrap_or(1);
        let range = tiles.div_ceil(ranges) * tiling.tile;
        Cut { blocks, range, ranges: self.columns.div_ceil(range), lanes: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::folding::Folding;
    use super::super::tests::sum_of;
    use super::super::wide::{CENTRE_BYTES, RIGHT_BYTES, Wide};
    use super::super::{Forms, Plans};
    use super::*;
    use tilework_ops::pair_fold::{PairFoldId, PairShape};
    use tilework_tape::Per;

    /// Tiles, states and what belongs to j, whatever the sizes.
    #[test]
    fn parts_take_less_than_64_mib() {
        for (dim, width, k) in
            [(3, 16, 1), (3, 128, 1), (64, 1, 1), (64, 64, 1), (64, 1, 10), (784, 1, 1)]
        {
            let aliases = [("x = Vi", dim), ("y = Vj", dim), ("b = Vj", width)];
            let aliases = aliases.map(|(variable, dim)| format!("{variable}({dim})"));
            let aliases = aliases.each_ref().map(String::as_str);
            let text = if k > 1 { "SqDist(x,y)" } else { "Exp(-SqDist(x,y)) * b" };
            let (tape, folding) = sum_of(text, &aliases[..if k > 1 { 2 } else { 3 }]);
            let folding = match k {
                1 => folding,
                _ => {
                    let shape = PairShape { k, ..folding.shape };
                    Folding { fold: PairFoldId::ArgKMin, shape, ..folding }
                }
            };
            let forms = Forms::new(&tape, &folding);
            for step in 0..400 {
                let m = (2000.0 * 1.018_f64.powi(step)) as usize + step as usize;
                for (batches, n) in [(1, 1_000_000), (1, 140_000), (1, 3000), (300, 2500)] {
                    let (multiprocessors, scheme, capability) = (132, Scheme::Auto, (9, 0));
                    let sizes = Sizes { batches, m, n, multiprocessors, scheme, capability };
                    let plans = Plans::new(&forms, folding, sizes);
                    let Some(expanded) = plans.expanded else { continue };
                    let plan = &expanded.plan;
                    let Some(wide) = plan.tiling.wide else { continue };
                    let beside = plan.sections.bytes(Per::J).next_multiple_of(8);
                    let beside = beside + wide.right * RIGHT_BYTES;
                    let state = plan.folding.state_bytes();
                    let depth = expanded.depth();
                    let parts = Parts::new(&plan.tiling, depth, [beside, state], &sizes);
                    let rows = m.min(parts.rows);
                    let cut = parts.cut(&plan.tiling, rows, expanded.is_filter(), &sizes);
                    let bytes = (parts.rows + parts.columns) * parts.row
                        + parts.columns * beside
                        + rows * cut.ranges * state;
                    let bytes = parts.batches * bytes + CENTRE_BYTES.min(4 * depth * batches);
                    assert!(bytes < 64 << 20, "{dim}, {width}, {k}: {sizes:?}, {parts:?}, {cut:?}");
                }
            }
        }
    }

    #[test]
    fn parts_are_whole_and_fill_the_card() {
        let tiling = |groups, tile| Tiling {
            threads: 128 * (groups + 1),
            team: 1,
            rows: 2,
            ranges_per_block: 1,
            tile,
            group: 4,
            ahead: 0,
            few_pairs: false,
            wide: Some(Wide {
                groups,
                stages: 3,
                resident: false,
                depths: 64,
                shallow: false,
                leaves_per_tile: 2,
                right: 0,
                stage: 0,
                kept: 0,
                shared: 0,
            }),
        };
        for (dim, m, n) in [(64, 100_000, 100_000), (784, 10_000, 10_000), (32 << 10, 7, 1 << 24)] {
            // Four groups are for points of one tile.
            let tilings =
                if dim <= 64 { vec![tiling(2, 128), tiling(4, 64)] } else { vec![tiling(2, 128)] };
            for tiling in tilings {
                let sizes = Sizes {
                    batches: 1,
                    m,
                    n,
                    multiprocessors: 132,
                    scheme: Scheme::Auto,
                    capability: (9, 0),
                };
                let parts = Parts::new(&tiling, dim, [8, 4], &sizes);
                assert!(parts.rows.is_multiple_of(tiling.span()));
                assert!(parts.columns.is_multiple_of(tiling.tile));
                let cut = parts.cut(&tiling, m.min(parts.rows), false, &sizes);
                for (scheme, fits) in [(Scheme::OneD, 1..=1), (Scheme::TwoD, 2..=MOST_RANGES)] {
                    let cut =
                        parts.cut(&tiling, m.min(parts.rows), false, &Sizes { scheme, ..sizes });
                    assert!(fits.contains(&cut.ranges), "{scheme:?}: {cut:?}");
                }
                let ordered = parts.cut(&tiling, m.min(parts.rows), true, &sizes);
                assert!(ordered.ranges == 1 || parts.columns >= n, "{ordered:?}");
                assert!(cut.ranges * cut.range >= parts.columns, "{cut:?}");
                assert!((cut.ranges - 1) * cut.range < parts.columns, "{cut:?}");
                assert!(cut.blocks * tiling.span() >= m.min(parts.rows));
            }
        }
    }
}
