//! How the kernels of threads are cut: rows of i for a thread, ranges of j for a block, tiles and groups of j.
//!
//! Measured on an H200. Called by `plan`, whose head says what sizes may depend on.

use tilework_backend::Scheme;
use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::Per;

use super::cost::body;
use super::cut::SHORT_RANGE;
use super::few;
use super::folding::Folding;
use super::plan::Sizes;
use super::sections::{LONG, Sections};
use super::wide::{SIDE, Wide};

/// Threads of a block, where there are enough rows.
const THREADS: usize = 128;

/// Rows of i that a thread may own, most first. The first is for sums only, which keep little of a row, and not for all
/// of these (`Needs::fit`).
const ROWS: [usize; 5] = [8, 6, 4, 2, 1];

/// The most rows of a thread in float64 and where accuracy is strict. But sums of one number with an expanded square
/// may have `ROWS[0]`.
const ROWS_OF_DOUBLES: usize = 4;

/// Blocks for every four multiprocessors, at least: a call that would have fewer has fewer rows for a thread.
const LEAST_BLOCKS: usize = 3;

/// Words of registers that the rows of a thread may take, with their states.
const ROW_WORDS: usize = 96;

/// Words that `ROWS[0]` rows may take in float64, with their states. They belong to sums of expanded squares, whose
/// threads have all registers that a thread can have, or half of them.
const ROW_WORDS_OF_DOUBLES: usize = 128;

/// Words that two rows may take, with their states: more than others, since with a single row shared memory is read
/// once for every pair.
const TWO_ROWS_WORDS: usize = 160;

/// Registers of a multiprocessor.
const REGISTERS: usize = 1 << 16;

/// Registers that a thread needs beside its rows. Were it two fewer, six blocks of log-sum-exps of three components
/// would share a multiprocessor and take 3.72 ms in place of 3.51.
const BESIDE_ROWS: usize = 18;

/// Words that all rows of a thread take, at most, where they are short.
const SHORT_ROWS: usize = 64;

/// Blocks of `THREADS` threads that a multiprocessor has registers for, where rows are short.
const BLOCKS_OF_SHORT_ROWS: usize = 5;

/// Words that the values of a group of pairs may take, and, in single precision where no square is expanded, the numbers
/// of its j. Longer vectors need no larger groups: their components hide each other's latency.
const GROUP_WORDS: usize = 48;

/// Steps that the body of the inner loop may have, counted by their cost.
const BODY: usize = 640;

/// Steps of a pair, at most, that are few beside those of the loop: of sums that are shifted.
const SHORT_BODY: usize = 8;

/// The same of plain sums that are computed as they are written. Their pairs wait for each other less in groups of four
/// (1e5 x 1e5 exponentials of roots of three components: 5.21 ms, in groups of two 5.34).
const SHORT_BODY_OF_SUMS: usize = 12;

/// Bytes of shared memory for the two tiles of a block.
const TILE_BYTES: usize = 40 << 10;

/// Bytes of a j that a thread may hold in registers while its tile is not free yet.
pub(super) const AHEAD_BYTES: usize = 64;

/// j whose long vectors come in chunks together, where a pair has one number: of plain sums with small states, and of
/// all else, which needs registers of its own.
const CHUNKS_OF: [usize; 2] = [64, 32];

/// The fewest j whose long vectors come in chunks together, where a pair has several numbers.
const LEAST_CHUNKS: usize = 16;

/// Words of a state, at most, that a thread has registers for beside the numbers of pairs with `CHUNKS_OF[0]` j.
const STATE_WORDS_BESIDE_SUMS: usize = 24;

/// Bytes of a j beside its vectors, at most, that there is room for with `CHUNKS_OF[0]` j.
const BYTES_BESIDE_CHUNKS: usize = 64;

/// The most rows of i that a thread owns where its block has several ranges.
const ROWS_OF_SEVERAL_RANGES: usize = 4;

/// The most ranges of a block.
const MOST_RANGES_PER_BLOCK: usize = 8;

/// j that sums compute together where a block has several ranges.
const GROUP_OF_SEVERAL_RANGES: usize = 4;

/// Bytes of j, at most, that a thread of such a block holds in registers until a tile is free.
const AHEAD_BYTES_OF_SEVERAL_RANGES: usize = 192;

/// Blocks for each multiprocessor into which a call is cut where a block has several ranges.
pub(super) const BLOCKS_OF_SEVERAL_RANGES: usize = 8;

/// Blocks of short ranges for each multiprocessor: with fewer j than these have, a call has one range for a block.
const LEAST_BLOCKS_OF_SEVERAL_RANGES: usize = 4;

/// j that are summed by themselves, as in the kernels. Where a block has several ranges, no tile is shorter.
const RUN: usize = 64;

/// K up to which the K best of a row are in registers of a thread.
pub(super) const FEW_RANKS: usize = 16;

/// K up to which the K best of a row are in registers of a team.
pub(super) const RANKS_OF_TEAM: usize = 1024;

/// Threads of a team: a warp.
const TEAM: usize = 32;

/// The most rows of i that a team owns.
const ROWS_OF_TEAM: usize = 2;

/// Words of registers of each thread that the rows of a team may take.
const TEAM_WORDS: usize = 64;

/// Words of registers of each thread that the state of a team takes beside its ranks.
const BESIDE_RANKS: usize = 6;

/// Rows of i that a team may own where long vectors come in chunks, most first. A chunk is read once for all of them.
const ROWS_IN_CHUNKS_OF_TEAMS: [usize; 3] = [4, 2, 1];

/// Bytes of shared memory that a kernel may declare. Some compilers let it declare more, and others refuse that.
const DECLARED: usize = 48 << 10;

/// Bytes of shared memory that a block may have on Hopper, where its launch asks for more than `DECLARED`.
const ROOM_ON_HOPPER: usize = 227 << 10;

/// Components of a chunk of long vectors, where teams own rows.
pub(super) const DEPTHS_OF_CHUNK: usize = 32;

/// Bytes of a vector's components in a chunk, where threads own rows.
pub(super) const CHUNK_BYTES: usize = 64;

/// Bytes of shared memory, at most, that kernels declare beside tiles and levels of sums.
const BESIDE_LEVELS: usize = 3 << 10;

/// How a kernel goes over j: the file of `kernels` that its text has for that, and what it knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Skeleton {
    /// Tiles of short vectors.
    Short,
    /// Tiles of short vectors where pairs are few: compiled soon.
    Few,
    /// Long vectors in chunks, where a thread owns rows by itself.
    Long,
    /// Long vectors in chunks, where a team does.
    LongTeams,
    /// Products of tiles by tensor cores.
    Wide,
}

/// What a kernel's text is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tiling {
    pub(super) threads: usize,
    /// Threads that own rows together, each with its share of j and of states; one unless states are large.
    pub(super) team: usize,
    /// Rows of i that a thread, or a team, owns.
    pub(super) rows: usize,
    /// Ranges of j that a block has threads for, each for all rows; several only where rows are few.
    pub(super) ranges_per_block: usize,
    /// j of a tile in shared memory, or of a product of tiles.
    pub(super) tile: usize,
    /// j that are computed together.
    pub(super) group: usize,
    /// j that a thread holds in registers until their tile is free; none where vectors are long.
    pub(super) ahead: usize,
    /// Whether there are few pairs, for which all of this is such that the kernel is compiled soon.
    pub(super) few_pairs: bool,
    /// Where tensor cores make the inner products, or multiply by right-hand sides.
    pub(super) wide: Option<Wide>,
}

impl Tiling {
    /// Rows of i that a block has.
    pub(super) fn span(&self) -> usize {
        self.wide.map_or(self.threads / self.team * self.rows, |wide| wide.groups * SIDE)
    }

    /// How its kernel goes over j. `sections` are those that the tiling was made for.
    pub(super) fn skeleton(&self, sections: &Sections<'_>) -> Skeleton {
        match sections.long {
            _ if self.wide.is_some() => Skeleton::Wide,
            Some(_) if self.team > 1 => Skeleton::LongTeams,
            Some(_) => Skeleton::Long,
            None if self.few_pairs => Skeleton::Few,
            None => Skeleton::Short,
        }
    }

    /// The share of a block's threads that have rows, in thousandths, where each of its ranges has all m of them.
    fn busy(&self, m: usize) -> usize {
        1000 * self.ranges_per_block * m / (self.threads * self.rows)
    }
}

/// The tiling of a plan whose pairs threads compute. Where it does what blocks of another plan refuse, that one's tiling
/// is `beside`: then several blocks have together the rows of one block of the other, or one has the same rows and
/// ranges.
pub(super) fn tiling(
    sections: &Sections<'_>,
    folding: &Folding,
    sizes: &Sizes,
    beside: Option<&Tiling>,
) -> Tiling {
    let body = body(sections).max(1);
    let team = team(sections, folding, sizes);
    if sections.long.is_some() && team > 1 {
        return in_chunks_of_teams(sections, folding, sizes);
    }
    let words = words_of_state(folding, team);
    if beside.is_none() && few::are(sections, folding, [body, team, words], sizes) {
        return few::tiling(sections, folding, team);
    }
    if sections.long.is_some() {
        return in_chunks(sections, folding, sizes.m);
    }
    let needs = Needs::new(sections, folding, team, body);
    let most_rows = ROWS.into_iter().find(|rows| needs.fit(*rows)).unwrap_or(1);
    let [threads, rows] = match beside {
        Some(other) if other.ranges_per_block > 1 => [other.threads, other.rows],
        Some(other) => {
            let mut parts = ROWS.into_iter().filter(|rows| other.rows.is_multiple_of(*rows));
            [other.threads, parts.find(|rows| needs.fit(*rows)).unwrap_or(1)]
        }
        None => of_rows(most_rows, team, sizes),
    };
    let each = sections.bytes(Per::J).next_multiple_of(16).max(16);
    let by_threads = each <= AHEAD_BYTES && !needs.long;
    let with_ranges = match beside {
        Some(other) => {
            (other.ranges_per_block > 1).then(|| of_ranges(rows, other.ranges_per_block, each))
        }
        None => of_several_ranges(most_rows, each, sizes).filter(|tiling| {
            let (m, span) = (sizes.m, threads * rows);
            let busy = 1000 * m / (span * m.div_ceil(span));
            by_threads && team == 1 && tiling.busy(m) * 10 > 11 * busy
        }),
    };
    let group = needs.group(rows, with_ranges.is_some());
    if let Some(tiling) = with_ranges {
        return Tiling { group, ..tiling };
    }
    let tile = threads.max(64).min((TILE_BYTES / (2 * each)).max(team));
    // Teams have whole groups in a tile.
    let (group, tile) = match team {
        1 => (group, tile),
        _ => {
            let group = group.min(prev_power_of_two(tile / team));
            (group, tile / (group * team) * (group * team))
        }
    };
    let ahead = if by_threads { tile.div_ceil(threads) } else { 0 };
    let (ranges_per_block, few_pairs) = (1, false);
    Tiling { threads, team, rows, ranges_per_block, tile, group, ahead, few_pairs, wide: None }
}

/// What a formula needs of a thread.
struct Needs<'p> {
    sections: &'p Sections<'p>,
    folding: &'p Folding,
    team: usize,
    /// Steps of a pair; words of a row with its state; and those of a pair.
    body: usize,
    row: usize,
    pair: usize,
    long: bool,
    adds: bool,
    doubles: bool,
}

impl<'p> Needs<'p> {
    fn new(
        sections: &'p Sections<'p>,
        folding: &'p Folding,
        team: usize,
        body: usize,
    ) -> Needs<'p> {
        Needs {
            sections,
            folding,
            team,
            body,
            row: sections.bytes(Per::I).div_ceil(4) + words_of_state(folding, team),
            pair: pair_words(sections, folding),
            long: is_long(sections),
            adds: folding.monoid() == Monoid::Add,
            doubles: folding.computes == DType::Float64,
        }
    }

    /// Whether a thread has room for so many rows, and they pay.
    fn fit(&self, rows: usize) -> bool {
        let Needs { folding, team, doubles, adds, .. } = *self;
        let room = match (team, rows) {
            (2.., rows) => usize::from(rows <= ROWS_OF_TEAM) * TEAM_WORDS,
            (_, 2) => TWO_ROWS_WORDS,
            (_, rows) if rows == ROWS[0] && doubles => ROW_WORDS_OF_DOUBLES,
            _ => ROW_WORDS,
        };
        let adds_squares = self.sections.square.is_some() && adds;
        let adds_cheaply = adds && folding.shape.dim == 1 && !folding.strict;
        let pays = match rows == ROWS[0] {
            true if doubles || folding.strict => adds_squares && folding.shape.dim == 1,
            true => adds_squares || adds_cheaply,
            false => rows <= ROWS_OF_DOUBLES || !(doubles || folding.strict),
        };
        rows * self.row <= room && rows * self.body <= BODY && !self.long && pays
    }

    /// Pairs of a row that are computed together. They hide each other's latency, and extremes compare only the best of
    /// a group with what they have; larger groups cost registers. Measured on an H200.
    fn group(&self, rows: usize, several_ranges: bool) -> usize {
        let Needs { sections, folding, doubles, .. } = *self;
        let square = sections.square.is_some();
        let direct = sections.square.is_some_and(|square| square.is_direct());
        let wished = match folding.monoid() {
            _ if self.long => return 4,
            _ if direct => 2,
            _ if folding.strict && self.adds => 8,
            _ if folding.strict => 4,
            _ if self.team > 1 => 2,
            Monoid::Add if several_ranges => GROUP_OF_SEVERAL_RANGES,
            Monoid::Smallest | Monoid::Largest
                if folding.shape.k * folding.shape.dim <= FEW_RANKS =>
            {
                4
            }
            Monoid::Add if square && doubles && rows == ROWS[0] => 2,
            Monoid::Add if square => 4,
            Monoid::Add if self.body <= SHORT_BODY_OF_SUMS && !doubles => 4,
            Monoid::Shifted if self.body <= SHORT_BODY => 8,
            _ => 2,
        };
        let counts_j = !square && !doubles;
        let of_j = if counts_j { sections.bytes(Per::J).div_ceil(4) } else { 0 };
        let fits = |group: &usize| {
            group * self.pair.max(of_j) <= GROUP_WORDS && rows * group * self.body <= BODY
        };
        [8, 4, 2].into_iter().filter(|group| *group <= wished).find(fits).unwrap_or(1)
    }
}

/// Blocks of a kernel that a multiprocessor is to have registers for, where the assembler has to be told; 0 elsewhere.
///
/// It is told for several rows of expanded squares. Of sums that are shifted it would take so few registers by itself
/// that pairs wait for each other (4.0 ms in place of 3.4, of 1e5 x 1e5 points of three components), or more than help.
/// Of plain sums of short points it would order instructions such that pairs wait for each other (3.06 ms in place of
/// 2.82); of sums by differences it is better not told (15.1 ms in place of 13.5, of 2e5 x 2e5).
///
/// And it is told where launches ask for shared memory, of which it does not know: as many blocks as have room, but one
/// where that is fewer than four, which need no registers saved.
pub(super) fn resident(
    sections: &Sections<'_>,
    folding: &Folding,
    tiling: &Tiling,
    asked: Option<Asked>,
) -> usize {
    let of_rows = tiling.rows * (sections.bytes(Per::I).div_ceil(4) + folding.words());
    let expanded = sections.square.is_some_and(|square| !square.is_direct());
    let expanded = expanded && sections.long.is_none() && tiling.wide.is_none();
    match (folding.monoid(), folding.computes) {
        (Monoid::Shifted, DType::Float32) if expanded && tiling.rows >= 4 => {
            REGISTERS / (tiling.threads * (of_rows + BESIDE_ROWS))
        }
        (Monoid::Add, DType::Float32)
            if expanded && tiling.rows == ROWS[0] && of_rows <= SHORT_ROWS =>
        {
            BLOCKS_OF_SHORT_ROWS * THREADS / tiling.threads
        }
        _ => asked.map_or(0, |asked| if asked.blocks() < 4 { 1 } else { asked.blocks() }),
    }
}

/// Bytes of shared memory that a block may have.
pub(super) fn room(sizes: &Sizes) -> usize {
    if sizes.capability == (9, 0) { ROOM_ON_HOPPER } else { DECLARED }
}

/// Bytes of shared memory for what a block has of j: two tiles; or chunks, where vectors are long; or a tile and the
/// block's rows, where pairs are few.
pub(super) fn tile_bytes(sections: &Sections<'_>, folding: &Folding, tiling: &Tiling) -> usize {
    let [i, j] = [Per::I, Per::J].map(|per| sections.bytes(per).next_multiple_of(16));
    match &sections.long {
        Some(_) if tiling.team == 1 => chunk_bytes(sections, folding, tiling.threads, tiling.tile),
        None if tiling.few_pairs => tiling.tile * j + tiling.threads * (i + 16),
        _ => 2 * tiling.ranges_per_block * tiling.tile * j,
    }
}

/// Bytes of the levels of many sums that are seldom looked at, of all rows of a block.
fn level_bytes(folding: &Folding, tiling: &Tiling) -> usize {
    tiling.threads * tiling.rows * folding.seldom_bytes()
}

/// What a launch asks for of shared memory: levels of sums, and behind them the tiles of short vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// Where the tiles begin, in bytes.
    pub(super) tiles_at: usize,
    pub(super) bytes: usize,
    /// Bytes that the kernel declares, at most.
    pub(super) declared: usize,
}

impl Asked {
    /// Blocks that a multiprocessor has shared memory for.
    fn blocks(&self) -> usize {
        ROOM_ON_HOPPER / (self.bytes + self.declared)
    }
}

/// What launches of a kernel ask for; none where it may declare all that it needs.
pub(super) fn asked(
    sections: &Sections<'_>,
    folding: &Folding,
    tiling: &Tiling,
    shares_levels: bool,
) -> Option<Asked> {
    let levels = if shares_levels { level_bytes(folding, tiling) } else { 0 };
    let tiles = tile_bytes(sections, folding, tiling);
    let tiles_at = levels.next_multiple_of(16);
    let bytes = match tiling.skeleton(sections) {
        Skeleton::Wide => return None,
        Skeleton::Short => tiles_at + tiles,
        _ => tiles_at,
    };
    let all = tiles + tiles_at + BESIDE_LEVELS;
    let asked = Asked { tiles_at, bytes, declared: all - bytes };
    (all > DECLARED && bytes > 0).then_some(asked)
}

/// Whether the levels of many sums that are seldom looked at are in shared memory, beside all else there. In local memory
/// they would be set aside for all threads that a card could have.
pub(super) fn shares_levels(
    sections: &Sections<'_>,
    folding: &Folding,
    tiling: &Tiling,
    sizes: &Sizes,
) -> bool {
    let levels = level_bytes(folding, tiling);
    let tiles = tile_bytes(sections, folding, tiling);
    let room = room(sizes).saturating_sub(tiles + BESIDE_LEVELS);
    tiling.wide.is_none() && levels > 0 && levels <= room
}

/// Threads of a block, and rows of i of each of them (of each team): fewer where a call has few rows.
fn of_rows(most_rows: usize, team: usize, sizes: &Sizes) -> [usize; 2] {
    let (m, mut rows, mut threads) = (sizes.m, most_rows, THREADS);
    // Smaller blocks first, then fewer rows for a thread.
    while threads > 32 && is_wasteful(threads / team * rows, m) {
        threads /= 2;
    }
    let enough = |fewer: usize| 32 / team * fewer >= m;
    while let Some(fewer) = ROWS.into_iter().find(|fewer| *fewer < rows && enough(*fewer)) {
        rows = fewer;
    }
    let ranges = if sizes.scheme == Scheme::OneD { 1 } else { sizes.n.div_ceil(THREADS) };
    let blocks = |rows: usize| {
        sizes.batches.saturating_mul(m.div_ceil(threads * rows)).saturating_mul(ranges)
    };
    while rows > 2 && m > THREADS && 4 * blocks(rows) < LEAST_BLOCKS * sizes.multiprocessors {
        rows = ROWS.into_iter().find(|fewer| *fewer < rows).unwrap_or(1);
    }
    // Two warps bring a tile in half the time.
    if (threads, rows) == (32, 4) { [64, 2] } else { [threads, rows] }
}

/// The tiling of blocks with so many ranges of j, of which `each` j takes so many bytes.
fn of_ranges(rows: usize, ranges: usize, each: usize) -> Tiling {
    let room = TILE_BYTES / (2 * each * ranges.max(1));
    let tile = if room >= THREADS { THREADS } else { RUN };
    let ahead = (ranges * tile).div_ceil(THREADS);
    Tiling {
        threads: THREADS,
        team: 1,
        rows,
        ranges_per_block: ranges,
        tile,
        group: 1,
        ahead,
        few_pairs: false,
        wide: None,
    }
}

/// The tiling of blocks with several ranges of j, where rows are few: the one that has most threads at work. A block has
/// threads for each row of each of its ranges; `each` j takes so many bytes.
fn of_several_ranges(most_rows: usize, each: usize, sizes: &Sizes) -> Option<Tiling> {
    let tiling = |rows: usize| {
        let ranges = (THREADS / sizes.m.div_ceil(rows)).min(MOST_RANGES_PER_BLOCK);
        let tiling = of_ranges(rows, ranges, each);
        let fits = 2 * each * ranges * tiling.tile <= TILE_BYTES;
        let ahead = tiling.ahead * each <= AHEAD_BYTES_OF_SEVERAL_RANGES;
        (ranges > 1 && fits && ahead).then_some(tiling)
    };
    let least = SHORT_RANGE * LEAST_BLOCKS_OF_SEVERAL_RANGES * sizes.multiprocessors;
    let enough = |ranges: usize| {
        sizes.n >= 2 * ranges * SHORT_RANGE
            && sizes.n.saturating_mul(sizes.batches) >= ranges * least
    };
    let fit = ROWS.into_iter().filter(|rows| *rows <= most_rows.min(ROWS_OF_SEVERAL_RANGES));
    fit.filter_map(tiling)
        .filter(|it| sizes.scheme != Scheme::OneD && enough(it.ranges_per_block))
        .max_by_key(|it| it.busy(sizes.m))
}

/// The tiling where long vectors come in chunks and threads own rows.
fn in_chunks(sections: &Sections<'_>, folding: &Folding, m: usize) -> Tiling {
    // Numbers of pairs that are more than sums of differences, products and the like need registers of their own.
    let wide = folding.computes == DType::Float64
        || folding.words() > STATE_WORDS_BESIDE_SUMS
        || sections.bytes(Per::J) > BYTES_BESIDE_CHUNKS
        || sections.long.as_ref().is_some_and(|long| !long.vanishes);
    let tile = CHUNKS_OF[usize::from(wide)] / numbers_of_pair(sections).next_power_of_two();
    let tile = tile.max(LEAST_CHUNKS);
    let mut threads = THREADS;
    let too_many =
        |threads: usize| chunk_bytes(sections, folding, threads, tile) + BESIDE_LEVELS > DECLARED;
    while threads > 32 && (is_wasteful(threads, m) || too_many(threads)) {
        threads /= 2;
    }
    let fits = |group: &usize| group * pair_words(sections, folding) <= GROUP_WORDS;
    let group = [4, 2].into_iter().find(fits).unwrap_or(1);
    let (team, rows, ranges_per_block, ahead, few_pairs) = (1, 1, 1, 0, false);
    Tiling { threads, team, rows, ranges_per_block, tile, group, ahead, few_pairs, wide: None }
}

/// Bytes that a block of so many threads declares for a tile of so many j: two chunks of either side, or the numbers of
/// pairs, which take their place; what belongs to the j; and numbers of rows, where other threads need them.
fn chunk_bytes(sections: &Sections<'_>, folding: &Folding, threads: usize, tile: usize) -> usize {
    let number = folding.computes.size();
    let chunks = 2 * (CHUNK_BYTES / number) * ((threads + tile) * number + 2 * 16);
    let of_j = sections.bytes(Per::J).next_multiple_of(16) + sums_of_j(sections) * number;
    let of_rows = threads * bytes_of_row(sections);
    chunks.max(numbers_of_pair(sections) * tile * threads * number) + tile * of_j + of_rows
}

/// The tiling where long vectors come in chunks and teams own rows: so at all sizes, since registers are for the states
/// of teams.
fn in_chunks_of_teams(sections: &Sections<'_>, folding: &Folding, sizes: &Sizes) -> Tiling {
    let (teams, words) = (THREADS / TEAM, words_of_team(folding));
    // A thread has the numbers of as many pairs, whichever they are.
    let numbers = numbers_of_pair(sections);
    let number = folding.computes.size();
    let each = sections.bytes(Per::J).next_multiple_of(16);
    let sums = sums_of_j(sections) * number;
    let has_room = |rows: usize, group: usize| {
        let chunks = group * TEAM * (2 * (DEPTHS_OF_CHUNK * number + 16) + each + sums);
        let of_rows = 2 * DEPTHS_OF_CHUNK * number + bytes_of_row(sections);
        chunks + rows * teams * of_rows + BESIDE_LEVELS <= DECLARED
    };
    let fits = |rows: &usize| {
        rows * words <= TEAM_WORDS
            && rows * numbers <= 4
            && has_room(*rows, 1)
            && (*rows == 1 || 2 * sizes.m > rows * teams)
    };
    let rows = ROWS_IN_CHUNKS_OF_TEAMS.into_iter().find(fits).unwrap_or(1);
    let fits = |group: &usize| has_room(rows, *group) && group * numbers <= 4;
    let group = [4, 2].into_iter().find(fits).unwrap_or(1);
    Tiling {
        threads: THREADS,
        team: TEAM,
        rows,
        ranges_per_block: 1,
        tile: group * TEAM,
        group,
        ahead: 0,
        few_pairs: false,
        wide: None,
    }
}

/// Bytes of a row's numbers where other threads than its own need them, else 0.
fn bytes_of_row(sections: &Sections<'_>) -> usize {
    let needed = sections.long.as_ref().is_some_and(|long| long.of_rows);
    if needed { sections.bytes(Per::I) } else { 0 }
}

/// Numbers of a pair that are folded of long vectors.
fn numbers_of_pair(sections: &Sections<'_>) -> usize {
    sections.long.as_ref().map_or(0, |long| long.numbers.len())
}

/// Numbers that are summed along vectors of a j, and one more: the length of a row of `of_vectors` in
/// `kernels/pairs_chunks.cu`.
fn sums_of_j(sections: &Sections<'_>) -> usize {
    1 + sections.long.as_ref().map_or(0, |long| long.of_j.len())
}

/// Whether blocks of so many rows leave much of the last one idle.
fn is_wasteful(span: usize, m: usize) -> bool {
    5 * m.div_ceil(span) * span > 6 * m
}

/// Threads that own rows together: a warp where more ranks are kept than a thread has registers for and a tile has room
/// for one j of each thread; otherwise one.
fn team(sections: &Sections<'_>, folding: &Folding, sizes: &Sizes) -> usize {
    let many = (FEW_RANKS + 1..=RANKS_OF_TEAM).contains(&folding.shape.k);
    let tiles = 2 * TEAM * sections.bytes(Per::J).next_multiple_of(16);
    let room = tiles + BESIDE_LEVELS <= room(sizes);
    if folding.is_ranked() && many && room { TEAM } else { 1 }
}

/// The largest power of two that is not above a number.
fn prev_power_of_two(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

/// Words of registers that a state takes of each thread of a team, or of one that owns its rows by itself.
fn words_of_state(folding: &Folding, team: usize) -> usize {
    if team > 1 { words_of_team(folding) } else { folding.words() }
}

/// Words of registers of each thread that a team's state takes: values and indices.
fn words_of_team(folding: &Folding) -> usize {
    let each = folding.shape.k.div_ceil(TEAM).next_power_of_two();
    each * (folding.accumulates.size() / 4 + 1) + BESIDE_RANKS
}

/// Words that the values of a pair take.
fn pair_words(sections: &Sections<'_>, folding: &Folding) -> usize {
    let of_pair = sections.steps(Per::Pair).map(|(slot, _)| {
        if sections.passing[usize::from(slot)] { 0 } else { sections.tape.slot(slot).len as usize }
    });
    // Sums take their terms as they are made.
    let values = if sections.terms.is_empty() { folding.shape.dim } else { 0 };
    of_pair.sum::<usize>() + values + folding.shape.weights
}

/// Whether there are vectors that are not kept in registers, nor taken in chunks.
fn is_long(sections: &Sections<'_>) -> bool {
    let has = |slot: u16| sections.tape.slot(slot).len > LONG && !sections.is_point(slot);
    (0..sections.tape.slots()).any(|slot| has(slot as u16))
}
