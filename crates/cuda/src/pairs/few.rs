//! Calls of few pairs: a kernel that is compiled soon, where one that runs fast would save less time than it takes to
//! compile.
//!
//! A thread owns a row, takes one pair at a time, and vectors are loops (`kernels/pairs_few.cu`): NVRTC takes half as
//! long for that, or a third. One text serves a formula at all such sizes. Called by `tiling` and `print`.

use tilework_tape::Per;

use super::folding::Folding;
use super::plan::{Plan, Sizes};
use super::sections::{LONG, Sections};
use super::tiling::Tiling;

/// Threads of a block. Each owns a row, or all of them one row as a team.
const THREADS: usize = 32;

/// j of a tile: as many as are summed by themselves.
const TILE: usize = 64;

/// j of a tile where vectors are loops. Ranges have a tile each, so that there are twice as many blocks, in which every
/// number waits for the one before.
const TILE_OF_LOOPS: usize = 32;

/// j of a tile whose long vectors come in chunks.
const TILE_OF_LONG: usize = 16;

/// Bytes of shared memory that the rows of a block and a tile of j may take, and also two tiles.
const BYTES: usize = 46 << 10;

/// The longest vectors whose loops are unrolled.
const SHORT: u32 = 16;

/// Numbers of vectors that are computed at once in a loop that is not unrolled: as many as hide what shared memory makes
/// them wait.
pub(super) const AT_A_TIME: usize = 16;

/// What all pairs of a call may cost up to which they are few: on an H200 such calls take about as long by either kernel,
/// 10 us of three components.
const MOST: f64 = 1.6e8;

/// The same of slices, of which a call has several, with a launch for each; of vectors that come in chunks; and of ranks by
/// vectors that are loops: these lose half of their speed.
const MOST_OF_OTHERS: f64 = 2e7;

/// What a word of a state costs a pair in steps: it is read and written where others are in registers.
const STEPS_OF_WORD: usize = 2;

/// The most j of a call whose pairs are few.
const MOST_J: usize = 1024;

/// Steps of a row's pairs, one after another, up to which they are few where vectors come in chunks, of which many j are
/// computed at once, or are loops in every slice or beside ranks.
const STEPS_OF_LOOPS: usize = 2000;

/// The most launches that a call of few pairs in slices may have: each costs later calls as much as all their pairs.
const MOST_LAUNCHES: usize = 6;

/// Whether rows have so few j that vectors may be loops.
pub(super) fn may_loop(sizes: &Sizes) -> bool {
    sizes.n * SHORT as usize <= STEPS_OF_LOOPS
}

/// Whether a call is of few pairs. Each of them has `body` steps, and `team` threads own a row, whose states have so many
/// `words`.
pub(super) fn are(
    sections: &Sections<'_>,
    folding: &Folding,
    [body, team, words]: [usize; 3],
    sizes: &Sizes,
) -> bool {
    if sections.square.is_some() || !sections.together || sizes.n > MOST_J {
        return false;
    }
    let loops = loops(sections, folding, team);
    let alone = !folding.is_part && sections.long.is_none() && !(loops && folding.is_ranked());
    let fits = match sections.long {
        // So many j are computed at once.
        Some(_) => sizes.n * body / TILE_OF_LONG <= STEPS_OF_LOOPS,
        None => {
            let tile = tile(sections, loops);
            let [i, j] = [Per::I, Per::J].map(|per| sections.bytes(per).next_multiple_of(16) + 16);
            let room = 2 * tile * j <= BYTES && THREADS * i + tile * j <= BYTES;
            room && (!loops || alone || sizes.n * body <= STEPS_OF_LOOPS)
        }
    };
    let most = if alone { MOST } else { MOST_OF_OTHERS };
    fits && sizes.pairs() * (body + STEPS_OF_WORD * words) as f64 <= most
}

/// Whether results of many components, for which kernels have no loops, are computed in slices of few components, for
/// which they have: where there are few launches, and all of so few pairs that vectors may be loops.
pub(super) fn pays_in_slices(parts: &[Plan<'_>]) -> bool {
    let launches = parts.iter().flat_map(|plan| plan.slices).map(|it| it.firsts().count()).sum();
    let looped = |plan: &Plan<'_>| {
        plan.tiling.few_pairs && loops(&plan.sections, &plan.folding, plan.tiling.team)
    };
    (1..=MOST_LAUNCHES).contains(&launches) && parts.iter().all(looped)
}

/// Whether the kernel of few pairs has loops along vectors that are not unrolled.
fn loops(sections: &Sections<'_>, folding: &Folding, team: usize) -> bool {
    let unrolled = unrolled(sections, folding, team);
    (0..sections.tape.slots()).any(|slot| sections.tape.slot(slot as u16).len as usize > unrolled)
}

/// What kernels for few pairs are made for: the same at all sizes.
pub(super) fn tiling(sections: &Sections<'_>, folding: &Folding, team: usize) -> Tiling {
    Tiling {
        threads: THREADS,
        team,
        rows: 1,
        ranges_per_block: 1,
        tile: tile(sections, loops(sections, folding, team)),
        group: 1,
        ahead: 0,
        few_pairs: true,
        wide: None,
    }
}

/// j of a tile.
fn tile(sections: &Sections<'_>, loops: bool) -> usize {
    match sections.long {
        Some(_) => TILE_OF_LONG,
        None if loops => TILE_OF_LOOPS,
        None => TILE,
    }
}

/// The longest vectors whose loops are unrolled. Loops over longer ones are soon compiled, but what they go over has to
/// be in shared memory, as rows and tiles are: registers cannot be counted through.
pub(super) fn unrolled(sections: &Sections<'_>, folding: &Folding, team: usize) -> usize {
    let first = sections.tape.inputs().len();
    let fits = |slot: usize| {
        let there = slot < first || sections.run[slot - first];
        let shared = sections.held[slot] && matches!(sections.per[slot], Per::I | Per::J);
        !there
            || shared
            || sections.passing[slot]
            || sections.is_point(slot as u16)
            || sections.tape.slot(slot as u16).len <= SHORT
    };
    // A thread has all numbers of its state, or its share of its team's.
    let values = folding.monoid().values(folding.shape).div_ceil(team);
    let states = values.max(folding.shape.dim).max(folding.shape.weights) <= SHORT as usize;
    let short = states && (0..sections.tape.slots()).all(fits);
    if short { SHORT as usize } else { LONG as usize }
}
