//! What is decided of a reduction over pairs: what its kernels are made for (`tiling`, `wide`), blocks of i and ranges of
//! j (`cut`).
//!
//! Sizes depend on the tape, on M, N, the number of batches and the card, never on the data or the
//! load, so that the order of every sum does too. A scheme is the number of ranges. Made once a call
//! by `pairs::run`; what goes into the kernel's text is in [`Tiling`], the rest is arguments.

use tilework_backend::Scheme;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::Tape;

use super::arguments;
use super::cost::{self, body};
use super::cut::{self, Cut};
use super::folding::Folding;
use super::functions::Does;
use super::long::Long;
use super::right::{Difference, Right};
use super::sections::Sections;
use super::slices::Slices;
use super::square::Square;
use super::tiling::{self, Asked, Skeleton, Tiling};
use super::wide;

/// Bytes of ranks, at most, that a thread may keep by itself.
const RANKS_BYTES: usize = 2 << 10;

/// Bytes of an array in the arguments of a kernel, with its strides along batch axes.
const ARGUMENTS_OF_ARRAY: usize = 96;

/// Bytes of all else in the arguments of a kernel, but for the formula's numbers.
const BESIDE_ARRAYS: usize = 1 << 10;

/// The sizes of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) batches: usize,
    /// Rows of i of a batch.
    pub(super) m: usize,
    /// j of a batch.
    pub(super) n: usize,
    pub(super) multiprocessors: usize,
    pub(super) scheme: Scheme,
    /// The card's compute capability.
    pub(super) capability: (i32, i32),
}

impl Sizes {
    /// Pairs of all batches.
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
    /// The components that become differences at the end of the sums of threads.
    pub(super) difference: Option<Difference>,
    /// Whether levels of many sums, which are seldom looked at, are in shared memory.
    pub(super) shares_levels: bool,
    /// What its launches ask for, where its kernel needs more shared memory than it may declare.
    pub(super) asked: Option<Asked>,
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
        let planned = |square: Option<Square>| {
            let by_tiles = square.is_some_and(|square| square.leave().is_some());
            let adds = folding.monoid() == Monoid::Add;
            let sections = Sections::new(tape, adds, square, !by_tiles);
            let tiling = match by_tiles {
                true => wide::tiling(&sections, &folding, 0, sizes.m),
                false => tiling::tiling(&sections, &folding, &sizes, None),
            };
            Plan::of(sections, folding, tiling, sizes, None)
        };
        let plan = planned(square);
        // Points that are moved have a place beside those that are not, where something else needs them.
        match square.filter(|_| cost::centre_pays(&plan)) {
            Some(square) => planned(Some(Square { centred: true, ..square })),
            None => plan,
        }
    }

    /// The plan of a formula as it is written, for what blocks of `expanded` refuse: its blocks have the same ranges of j,
    /// and the same rows or a part of them.
    pub(super) fn beside(
        tape: &'a Tape,
        folding: Folding,
        sizes: Sizes,
        expanded: &Plan<'_>,
    ) -> Plan<'a> {
        let sections = Sections::new(tape, folding.monoid() == Monoid::Add, None, true);
        let tiling = tiling::tiling(&sections, &folding, &sizes, Some(&expanded.tiling));
        let plan = Plan::of(sections, folding, tiling, sizes, None);
        let blocks = expanded.cut.blocks * (expanded.tiling.rows / tiling.rows);
        Plan { cut: Cut { blocks, ..expanded.cut }, ..plan }
    }

    /// Whether blocks choose each for itself between the expanded square and the formula as it is written: where threads
    /// compute pairs of short vectors, but for columns, whose loops would lose a tenth of their speed to the look at
    /// norms.
    pub(super) fn chooses(&self) -> bool {
        self.sections.square.is_some() && self.is_short() && self.difference.is_none()
    }

    /// Whether something is taken out of sums at their end, so that they may overflow before where the formula's own sums
    /// do not.
    pub(super) fn is_scaled(&self) -> bool {
        let outside = self.sections.square.and_then(|square| square.outside);
        self.difference.is_some() || (outside.is_some() && self.folding.monoid() == Monoid::Add)
    }

    /// Whether kernels may find on their way that the form is not to be used, after norms allowed it.
    pub(super) fn may_give_up(&self) -> bool {
        self.is_scaled() || self.does() != Does::Fold
    }

    /// Whether threads go over short vectors, each for itself.
    pub(super) fn is_short(&self) -> bool {
        matches!(self.skeleton(), Skeleton::Short | Skeleton::Few) && self.tiling.team == 1
    }

    /// How its kernel goes over j.
    pub(super) fn skeleton(&self) -> Skeleton {
        self.tiling.skeleton(&self.sections)
    }

    /// A plan that multiplies weights, of which a square may be expanded, by right-hand sides.
    pub(super) fn weighted(
        right: &'a Right,
        folding: Folding,
        sizes: Sizes,
        square: Option<Square>,
    ) -> Plan<'a> {
        let sections = Sections::of_weight(&right.weight, square);
        let tiling = wide::tiling(&sections, &folding, right.columns(), sizes.m);
        let sides = Sections::of_sides(&right.sides);
        Plan::of(sections, folding, tiling, sizes, Some(Sides { of: right, sections: sides }))
    }

    fn of(
        sections: Sections<'a>,
        folding: Folding,
        tiling: Tiling,
        sizes: Sizes,
        right: Option<Sides<'a>>,
    ) -> Plan<'a> {
        let depth = sections.long.as_ref().map_or(0, Long::folded);
        let columns = right.as_ref().map_or(0, |right| right.of.columns());
        let body = (body(&sections) + cost::on_tensor_cores(columns)).max(1);
        let cut = cut::of(&tiling, &folding, [body, depth], sizes);
        let shares_levels = tiling::shares_levels(&sections, &folding, &tiling, &sizes);
        let asked = tiling::asked(&sections, &folding, &tiling, shares_levels);
        let (difference, slices) = (None, None);
        Plan {
            sections,
            folding,
            tiling,
            cut,
            body,
            right,
            difference,
            shares_levels,
            asked,
            slices,
        }
    }

    /// Bytes of the tiles of a block, where they are more than it may have on the card.
    pub(super) fn too_many_bytes(&self, sizes: &Sizes) -> Option<usize> {
        Some(tiling::tile_bytes(&self.sections, &self.folding, &self.tiling))
            .filter(|bytes| *bytes > tiling::room(sizes))
    }

    /// Bytes of ranks that a thread would have to keep by itself, where that is too much: the driver sets them aside for
    /// all threads that a card could have.
    pub(super) fn too_many_ranks(&self) -> Option<usize> {
        let alone = self.folding.is_ranked() && self.tiling.team == 1;
        Some(self.folding.state_bytes()).filter(|bytes| alone && *bytes > RANKS_BYTES)
    }

    /// How many arrays a formula has, and how many a kernel with so many bytes of arguments has room for, where they are
    /// too many.
    pub(super) fn too_many_arrays(&self, argument_bytes: usize) -> Option<[usize; 2]> {
        let arrays = self.sections.tape.inputs().len();
        let beside = BESIDE_ARRAYS + self.arguments().count() * size_of::<u64>();
        let most = argument_bytes.saturating_sub(beside) / ARGUMENTS_OF_ARRAY;
        (arrays > most).then_some([arrays, most])
    }

    /// Whether a block has room for its tiles. Those of tensor cores are made so that it has.
    pub(super) fn fits(&self, sizes: &Sizes) -> bool {
        self.tiling.wide.is_some() || self.too_many_bytes(sizes).is_none()
    }

    /// The bits of the numbers that its kernels get as arguments.
    pub(super) fn arguments(&self) -> impl Iterator<Item = u64> + '_ {
        let sides = self.right.as_ref().map(|right| &right.sections);
        let sections = [Some(&self.sections), sides].into_iter().flatten();
        let depths = self.sections.long.iter().flat_map(|long| &long.depths);
        let numbers = sections.flat_map(|sections| {
            sections.arguments.iter().map(|&slot| arguments::bits(sections.tape, slot))
        });
        numbers.chain(depths.map(|&depth| depth.into()))
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

#[cfg(test)]
mod tests {
    use tilework_ops::pair_fold::{PairFoldId, PairShape};

    use super::super::course::STEPS_OF_LAUNCH;
    use super::super::cut::{
        BLOCKS_OF_LAUNCH, LONG_RANGE, LONG_WORK, PARTIAL_BYTES, RANGE_PER_RANK,
    };
    use super::*;
    use tilework_ops::{DType, Id};
    use tilework_tape::{Builder, Per, Slot};

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
            is_part: false,
            computes: DType::Float32,
            accumulates: DType::Float32,
            compensated: false,
            strict: false,
            finish: true,
            logarithm: false,
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
                    let rows = tiling.threads / tiling.ranges_per_block / tiling.team * tiling.rows;
                    assert!(cut.blocks * rows >= m, "{plan:?}");
                    assert!(tiling.ranges_per_block <= cut.ranges, "{plan:?}");
                    assert!(cut.ranges * cut.range >= n && cut.range <= LONG_RANGE, "{plan:?}");
                    assert!((cut.ranges - 1) * cut.range <= n, "no range is empty: {plan:?}");
                    let steps = batches as f64 * m as f64 * n as f64 * plan.body as f64;
                    assert!(
                        scheme != Scheme::OneD || cut.ranges == 1 || steps > STEPS_OF_LAUNCH,
                        "{plan:?}"
                    );
                    let each = plan.sections.bytes(Per::J).next_multiple_of(16);
                    assert!(2 * tiling.tile * each <= 48 << 10, "{plan:?}");
                    if scheme == Scheme::Auto {
                        let long = batches as f64 * m as f64 * n as f64 > LONG_WORK;
                        assert!(
                            cut.ranges * batches * m * 4 <= 64 << 20 || cut.ranges == 1 || long
                        );
                    }
                }
            }
        }
    }

    /// A formula whose vectors stay whole, since another number of the pair is in them; others come in chunks.
    fn of_whole(dim: u32) -> Tape {
        let mut build = Builder::continuing(&gaussian(dim));
        let difference = build.apply(Id::Subtract, &[0, 1]).unwrap();
        let scaled = build.apply(Id::Multiply, &[difference, gaussian(dim).outputs()[0]]).unwrap();
        let rounded = build.apply(Id::Round, &[scaled]).unwrap();
        let product = build.dot(rounded, difference).unwrap();
        build.finish(&[product]).unwrap()
    }

    #[test]
    fn tiles_fit_shared_memory_or_are_refused() {
        let fits = |tape: &Tape, capability| {
            let sizes = Sizes { capability, ..sizes(1, 1000, 1000, Scheme::Auto) };
            Plan::new(tape, sum(1), sizes, None).too_many_bytes(&sizes).is_none()
        };
        for (dim, old, new) in [(784, true, true), (8192, false, true), (40_000, false, false)] {
            let both = of_whole(dim);
            for (capability, fit) in [((8, 0), old), ((9, 0), new)] {
                assert_eq!(fits(&both, capability), fit, "{dim}, {capability:?}");
                assert!(fits(&gaussian(dim), capability), "{dim}, {capability:?}");
            }
        }
    }

    #[test]
    fn arguments_have_room_for_hundreds_of_arrays() {
        for (count, bytes, fits) in [
            (2, 32_764, true),
            (300, 32_764, true),
            (400, 32_764, false),
            (2, 4096, true),
            (40, 4096, false),
        ] {
            let mut build = Builder::new();
            let inputs: Vec<_> =
                (0..count).map(|_| build.input(Slot::scalar(DType::Float32), Per::I)).collect();
            let all = build.concat(&inputs).unwrap();
            let total = build.fold(tilework_ops::FoldId::Sum, all).unwrap();
            let tape = build.finish(&[total]).unwrap();
            let plan = Plan::new(&tape, sum(1), sizes(1, 9, 9, Scheme::Auto), None);
            let refused = plan.too_many_arrays(bytes);
            assert_eq!(refused.map(|[arrays, _]| arrays), (!fits).then_some(count));
            assert!(refused.is_none_or(|[_, most]| 30 < most && most < count), "{refused:?}");
        }
    }

    #[test]
    fn teams_keep_ranks_of_vectors_that_stay_whole() {
        for (dim, team) in [(100, 32), (400, 32), (2000, 1)] {
            let tape = of_whole(dim);
            let ranks = Folding { fold: PairFoldId::ArgKMin, ..sum(1000) };
            let plan = Plan::new(&tape, ranks, sizes(1, 5000, 5000, Scheme::Auto), None);
            assert_eq!(plan.tiling.team, team, "{plan:?}");
            assert_eq!(plan.too_many_ranks().is_some(), team == 1, "{plan:?}");
        }
    }

    #[test]
    fn work_that_is_waited_for_can_be_stopped() {
        for (dim, m, n) in
            [(3, 1_000_000, 100_000_000), (3, 10_000_000, 10_000_000), (1000, 300_000, 300_000)]
        {
            let tape = gaussian(dim);
            for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                let plan = Plan::new(&tape, sum(1), sizes(1, m, n, scheme), None);
                let block = plan.tiling.span() as f64 * plan.cut.range as f64 * plan.body as f64;
                let launch = block * (132 * BLOCKS_OF_LAUNCH) as f64;
                assert!(launch <= 1.5 * STEPS_OF_LAUNCH, "{launch:.1e} steps: {plan:?}");
            }
        }
    }

    #[test]
    fn ranges_balance_the_last_blocks_and_the_states() {
        let tape = gaussian(3);
        let cut = |n| Plan::new(&tape, sum(1), sizes(1, n, n, Scheme::Auto), None).cut;
        assert_eq!([2_000, 5_000, 10_000].map(|n| cut(n).range), [128; 3]);
        let longer = [20_000, 50_000, 100_000, 200_000].map(|n| cut(n).range);
        assert!(longer.is_sorted() && longer[0] <= 256 && longer[2] >= 896, "{longer:?}");
    }

    #[test]
    fn few_rows_share_blocks() {
        let tape = gaussian(3);
        let of = |m, n, scheme| Plan::new(&tape, sum(1), sizes(1, m, n, scheme), None);
        let plan = of(100, 10_000_000, Scheme::Auto);
        assert_eq!((plan.tiling.rows, plan.tiling.ranges_per_block, plan.cut.blocks), (4, 5, 1));
        assert!(plan.cut.ranges.div_ceil(5) > 7 * 132);
        for other in [
            of(100, 10_000_000, Scheme::OneD),
            of(100, 100_000, Scheme::Auto),
            of(128, 10_000_000, Scheme::Auto),
            of(5000, 10_000_000, Scheme::Auto),
        ] {
            assert_eq!(other.tiling.ranges_per_block, 1, "{other:?}");
        }
    }

    #[test]
    fn many_ranks_have_teams() {
        let tape = gaussian(3);
        let of = |k, m, n, scheme| {
            let folding = Folding { fold: PairFoldId::ArgKMin, ..sum(k) };
            Plan::new(&tape, folding, sizes(1, m, n, scheme), None)
        };
        for (k, rows, team) in [(16, 1, 1), (17, 2, 32), (100, 2, 32), (1000, 1, 32), (2000, 1, 1)]
        {
            for (m, n) in [(1, 1), (5, 300), (100_000, 100_000), (100, 10_000_000)] {
                for scheme in [Scheme::Auto, Scheme::OneD, Scheme::TwoD] {
                    let plan = of(k, m, n, scheme);
                    let (tiling, cut) = (plan.tiling, plan.cut);
                    assert_eq!(tiling.team, team, "{plan:?}");
                    assert!(tiling.rows <= rows || team == 1, "{plan:?}");
                    assert!(cut.blocks * tiling.span() >= m, "{plan:?}");
                    assert!(team == 1 || cut.lanes == team, "{plan:?}");
                    assert!(
                        tiling.tile.is_multiple_of(tiling.group * team) || team == 1,
                        "{plan:?}"
                    );
                }
            }
        }
    }

    /// Calls of few rows are cut over j so that a card has something to do, within the memory for states.
    #[test]
    fn ranks_have_blocks_for_all_multiprocessors() {
        for dim in [3, 16, 64, 128, 784] {
            let tape = gaussian(dim);
            for (k, m) in
                [(2, 1), (10, 20), (10, 40), (10, 1000), (10, 5000), (16, 5000), (100, 300)]
            {
                let folding = Folding { fold: PairFoldId::ArgKMin, ..sum(k) };
                let mut before = 0;
                for n in [3000, 10_000, 100_000, 300_000, 1_000_000, 10_000_000] {
                    let plan = Plan::new(&tape, folding, sizes(1, m, n, Scheme::Auto), None);
                    let (tiling, cut) = (plan.tiling, plan.cut);
                    let blocks = cut.blocks * cut.ranges.div_ceil(tiling.ranges_per_block);
                    assert!(cut.ranges * cut.range >= n && (cut.ranges - 1) * cut.range < n);
                    let bytes = cut.ranges * m * folding.state_bytes();
                    assert!(cut.ranges == 1 || bytes <= PARTIAL_BYTES, "{dim}, {k}, {m}: {cut:?}");
                    // Ranges are whole tiles, for which some are longer than they need to be.
                    let few = if n >= 132 * k * RANGE_PER_RANK { 100 } else { 0 };
                    assert!(
                        blocks >= few && blocks * 2 >= before.min(100),
                        "{dim}, {k}, {m}: {n}, {cut:?}"
                    );
                    before = blocks;
                }
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
        assert_eq!(ranges(100_000, 1_000_000, Scheme::OneD), 1);
        // Short enough for launches that end soon and have blocks for all multiprocessors.
        for scheme in [Scheme::Auto, Scheme::OneD] {
            assert!((20..60).contains(&ranges(10_000_000, 10_000_000, scheme)));
        }
        assert!(ranges(10_000_000, 1_000_000_000, Scheme::Auto) > 2000);
        assert!(ranges(1000, 1000, Scheme::TwoD) > 1);
    }

    #[test]
    fn squared_distances_are_made_on_the_way_and_products_summed_fused() {
        let tape = gaussian(3);
        let plan = Plan::new(&tape, sum(1), sizes(1, 100_000, 100_000, Scheme::Auto), None);
        assert_eq!(plan.sections.passing, [false, false, false, true, false, false, false]);
        assert_eq!(plan.sections.terms.len(), 1);
        assert!(plan.sections.terms[0].factor.is_some());
        assert_eq!((plan.tiling.rows, plan.tiling.group), (8, 4));
    }
}
