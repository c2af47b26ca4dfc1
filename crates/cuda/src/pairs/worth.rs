//! Whether tensor cores pay for squares and right-hand sides, beside what threads take for the same.
//!
//! Everything is counted in components of pairs, by times on an H200 (docs/benchmarks/cuda-pairs.md, sections "Thousands of
//! points" and "Batches"). Asked by `wide`.

use super::plan::Sizes;
use super::sections::LONG;
use super::wide::{NARROW, SIDE};

/// What a call has to save so that it pays.
const LEAST: f64 = 6.5e8;

/// What a filter has to save so that it pays, beside what it computes anew.
const LEAST_OF_FILTER: f64 = 4e8;

/// What a filter has to save beside `LEAST_OF_FILTER` for each component of each rank, since it computes anew what it
/// found.
const LEAST_OF_RANK: f64 = 2.5e6;

/// What a call with right-hand sides has to save so that it pays, in columns of pairs.
const LEAST_OF_COLUMNS: f64 = 1e9;

/// What it costs to split a component of a point of one problem, whose points are in the card's cache.
const SPLITTING: f64 = 50.0;

/// What it costs to split a component of a point of one of many problems.
const SPLITTING_MANY: f64 = 150.0;

/// Components up to which threads compute several pairs at once.
const SEVERAL_PAIRS: u32 = 20;

/// Columns up to which threads sum all of them at once.
const ALL_COLUMNS: usize = 12;

/// As how many a component counts where there are more than `SEVERAL_PAIRS`, and a column where there are more than
/// `ALL_COLUMNS`. Vectors that come in chunks are no such burden.
const CROWDED: f64 = 5.0;

/// As how many a component counts that is no such burden, in one of many problems. Threads are busy with these, and lose
/// less time to the beginnings and ends of blocks.
const OF_MANY: f64 = 2.0;

/// Rows of a block.
const BLOCK_ROWS: usize = 3 * SIDE;

/// What a block takes to begin and to end.
const BLOCK: f64 = 2.6e6;

/// What a row of a filter takes at its end, beside what it computes anew.
const ROW_OF_FILTER: f64 = 1.5e4;

/// What a row of a filter takes to compute anew what it found, for each component of each rank.
const ROW_OF_RANK: f64 = 200.0;

/// What part of the rows that give every multiprocessor a block of 128 is enough for a filter that is not cut over j. With
/// blocks of 256 one multiprocessor of six is busy then: a filter of 64 components looks at 1.49e12 pairs a second with all
/// of them, threads at 1.27e11. Of pairs of which threads compute several at once, all rows are needed.
const PART_OF_ROWS: usize = 3;

/// What a call on tensor cores would save, and what it would take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth {
    /// Components of a pair that threads need not compute.
    saved: f64,
    /// As how many these count in one of many problems.
    saved_of_many: f64,
    /// What has to be saved so that it pays.
    least: f64,
    /// Components of a point that are split.
    split: f64,
    /// What a row takes at its end, in one of many problems.
    row: f64,
}

impl Worth {
    /// The worth of squares that are folded.
    pub(super) fn of_square(dim: u32) -> Worth {
        let [saved, saved_of_many] = beyond_narrow(dim);
        Worth { saved, saved_of_many, least: LEAST, split: dim.into(), row: 0.0 }
    }

    /// The worth of squares whose smallest are looked for.
    pub(super) fn of_filter(dim: u32, ranks: usize) -> Worth {
        let (dim, ranks) = (f64::from(dim), ranks as f64);
        Worth {
            saved: dim,
            saved_of_many: OF_MANY * dim,
            least: LEAST_OF_FILTER + LEAST_OF_RANK * dim * ranks,
            split: dim,
            row: ROW_OF_FILTER + ROW_OF_RANK * dim * ranks,
        }
    }

    /// The worth of columns that weights are multiplied by, with the components of `points` that are split for the weights.
    pub(super) fn of_columns(columns: usize, points: Option<u32>) -> Worth {
        let burden = if columns > ALL_COLUMNS { CROWDED } else { 1.0 };
        let saved = burden * columns as f64;
        let [_, of_points] = points.map_or([0.0; 2], beyond_narrow);
        Worth {
            saved,
            saved_of_many: saved + of_points,
            least: LEAST_OF_COLUMNS,
            split: columns as f64 + points.map_or(0.0, f64::from),
            row: 0.0,
        }
    }

    /// Whether a call saves enough.
    pub(super) fn pays(&self, sizes: &Sizes) -> bool {
        let (m, n) = (sizes.m as f64, sizes.n as f64);
        if sizes.batches == 1 {
            return m * n * self.saved >= self.least + SPLITTING * (m + n) * self.split;
        }
        let blocks = sizes.m.div_ceil(BLOCK_ROWS) as f64;
        let takes = blocks * BLOCK + SPLITTING_MANY * (m + n) * self.split + m * self.row;
        let saves = m * n * self.saved_of_many - takes;
        sizes.batches as f64 * saves >= self.least
    }
}

/// Whether a filter of so few rows pays where these are not cut over j, so that multiprocessors are idle.
pub(super) fn filter_pays_uncut(dim: u32, sizes: &Sizes) -> bool {
    let rows = 2 * SIDE * sizes.multiprocessors;
    sizes.m >= if dim > SEVERAL_PAIRS { rows / PART_OF_ROWS } else { rows }
}

/// Components of a pair that threads need not compute: of one problem, and as how many they count in one of many.
fn beyond_narrow(dim: u32) -> [f64; 2] {
    let beyond = f64::from(dim.saturating_sub(NARROW));
    match (SEVERAL_PAIRS + 1..=LONG).contains(&dim) {
        true => [CROWDED * beyond; 2],
        false => [beyond, OF_MANY * beyond],
    }
}

#[cfg(test)]
mod tests {
    use tilework_backend::Scheme;
    use tilework_ops::pair_fold::{PairFoldId, PairShape};

    use super::super::folding::Folding;
    use super::super::tests::sum_of;
    use super::super::{Forms, Plans};
    use super::*;

    /// By times on an H200: docs/benchmarks/cuda-pairs.md, section "Thousands of points".
    #[test]
    fn tensor_cores_take_what_pays() {
        for (dim, width, batches, m, n, taken) in [
            (64, 1, 1, 1000, 1000, false),
            (64, 1, 1, 2000, 2000, true),
            (32, 1, 1, 2000, 2000, false),
            (32, 1, 1, 3000, 3000, true),
            (16, 1, 1, 6000, 6000, false),
            (16, 1, 1, 20_000, 20_000, true),
            (9, 1, 1, 100_000, 100_000, false),
            (100, 1, 1, 2000, 2000, false),
            (100, 1, 1, 3000, 3000, true),
            (784, 1, 1, 700, 700, false),
            (784, 1, 1, 1200, 1200, true),
            (64, 1, 64, 2000, 2000, true),
            (64, 1, 1000, 500, 500, true),
            (64, 1, 4000, 256, 256, true),
            (64, 1, 15_000, 128, 128, false),
            (32, 1, 1000, 500, 500, true),
            (32, 1, 4000, 256, 256, false),
            (16, 1, 64, 2000, 2000, true),
            (16, 1, 256, 1000, 1000, false),
            (128, 1, 1000, 500, 500, true),
            (64, 64, 6400, 200, 200, true),
            (3, 64, 6400, 200, 200, true),
            (3, 16, 1000, 500, 500, true),
            (3, 16, 6400, 200, 200, false),
            // Splitting all j would take longer than the pairs of so few rows.
            (64, 1, 1, 10, 1_000_000, false),
            (3, 16, 1, 3000, 3000, false),
            (3, 16, 1, 4000, 4000, true),
            (3, 64, 1, 1000, 1000, false),
            (3, 64, 1, 2000, 2000, true),
            (3, 8, 1, 10_000, 10_000, false),
        ] {
            let aliases = [("x = Vi", dim), ("y = Vj", dim), ("b = Vj", width)];
            let aliases = aliases.map(|(variable, dim)| format!("{variable}({dim})"));
            let aliases = aliases.each_ref().map(String::as_str);
            let (tape, folding) = sum_of("Exp(-SqDist(x,y)) * b", &aliases);
            let (multiprocessors, scheme, capability) = (132, Scheme::Auto, (9, 0));
            let sizes = Sizes { batches, m, n, multiprocessors, scheme, capability };
            let forms = Forms::new(&tape, &folding);
            let plans = Plans::new(&forms, folding, sizes);
            let wide = plans.expanded.is_some_and(|expanded| expanded.plan.tiling.wide.is_some());
            assert_eq!(wide, taken, "{dim} components, {width} columns, {batches} x {m} x {n}");
        }
        for (dim, k, batches, m, n, taken) in [
            (7, 1, 1, 100_000, 100_000, false),
            (16, 1, 1, 5000, 5000, false),
            (16, 1, 1, 10_000, 10_000, true),
            (64, 1, 1, 2000, 2000, false),
            (64, 1, 1, 4000, 4000, true),
            (64, 10, 1, 3000, 3000, false),
            (64, 10, 1, 7000, 7000, true),
            (64, 16, 1, 100_000, 100_000, true),
            (64, 17, 1, 100_000, 100_000, false),
            (64, 1, 64, 2000, 2000, true),
            (64, 1, 1000, 500, 500, true),
            (16, 1, 64, 2000, 2000, true),
            (16, 1, 1000, 500, 500, false),
            (64, 10, 64, 2000, 2000, true),
            (64, 10, 1000, 500, 500, false),
            // More j than a panel has.
            (64, 1, 1, 10_000, 1_000_000, true),
            (64, 10, 1, 10_000, 1_000_000, true),
            (784, 10, 1, 10_000, 60_000, true),
            (64, 1, 1, 5000, 1_000_000, false),
            (64, 1, 1, 5000, 100_000, true),
            (16, 1, 1, 10_000, 1_000_000, false),
            (16, 1, 1, 20_000, 1_000_000, true),
        ] {
            let aliases = [("x = Vi", dim), ("y = Vj", dim)];
            let aliases = aliases.map(|(variable, dim)| format!("{variable}({dim})"));
            let aliases = aliases.each_ref().map(String::as_str);
            let (tape, folding) = sum_of("SqDist(x,y)", &aliases);
            let shape = PairShape { k, ..folding.shape };
            let folding = Folding { fold: PairFoldId::ArgKMin, shape, ..folding };
            let (multiprocessors, scheme, capability) = (132, Scheme::Auto, (9, 0));
            let sizes = Sizes { batches, m, n, multiprocessors, scheme, capability };
            let forms = Forms::new(&tape, &folding);
            let wide = Plans::new(&forms, folding, sizes).expanded.is_some();
            assert_eq!(wide, taken, "{k} of {dim} components, {batches} x {m} x {n}");
        }
    }
}
