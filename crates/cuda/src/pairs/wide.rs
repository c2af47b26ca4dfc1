//! Squares and weights on Hopper's tensor cores: whether they may be taken, and their tiles.
//!
//! Points are split into heads and tails before they are multiplied, part by part (`panels`). Sizes depend on the tape,
//! on M, N and the card only. Asked by `pairs`, read by `plan`; `kernels/pairs_wide.cu` says what the numbers mean
//! there.

use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Per, Tape};

use super::cut::MERGE_THREADS;
use super::folding::Folding;
use super::panels;
use super::plan::Sizes;
use super::right::Right;
use super::sections::Sections;
use super::square::{Products, Square};
use super::tiling::{FEW_RANKS, Tiling};
use super::worth::{self, Worth};

/// Rows of a tile.
pub(super) const SIDE: usize = 64;

/// Bytes of a number in a tile of points: a head and a tail.
pub(super) const SPLIT_BYTES: usize = 4;

/// Bytes of a number in a tile of right-hand sides, whose heads and tails are wider.
pub(super) const RIGHT_BYTES: usize = 8;

/// Components from which tensor cores pay for the smallest squares, which threads compute directly.
const SMALLEST: u32 = 8;

/// Components beyond which tensor cores pay for all else, whose squares threads compute expanded.
pub(super) const NARROW: u32 = 9;

/// Components beyond which tiles of a row do not fit.
const WIDEST: u32 = 32 << 10;

/// The capability of cards whose tensor cores are used.
const HOPPER: (i32, i32) = (9, 0);

/// The most batches.
const BATCHES: usize = (1 << 16) - 1;

/// Bytes, at most, of the centres of all batches.
pub(super) const CENTRE_BYTES: usize = 2 << 20;

/// Columns of right-hand sides, bytes of an i and bytes of a j up to which six groups have registers, where threads
/// compute squares.
const SIX_GROUPS: [usize; 3] = [16, 16, 24];

/// Columns of right-hand sides up to which four groups have registers, where threads compute squares.
const FOUR_GROUPS: usize = 32;

/// The time of a row in blocks of six groups, as a share of that in blocks of four. Blocks of six have more rows, and may
/// waste more at the end.
const TIME_OF_SIX: f64 = 0.94;

/// Bytes of shared memory that a block may have.
const SHARED: usize = 227 << 10;

/// Squares, at most, that a lane of a filter has found and not yet put in their place when its warp goes on: with more,
/// all lanes put theirs.
pub(super) const WAITING: usize = 6;

/// Squares that may come to a lane before it looks how many wait.
pub(super) const EIGHT: usize = 8;

/// Numbers of a j beside its point that registers have room for, and of an i where pairs are weights of right-hand sides.
const BESIDE: usize = 32;

/// Numbers of an i beside its point that registers have room for, where pairs are weights whose squares threads compute.
const BESIDE_NARROW: usize = 4;

/// Words of a row's state that registers have room for.
const STATE_WORDS: usize = 48;

/// What a kernel's text is made for, beside its tiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wide {
    /// Groups of four warps, each with 64 rows of i.
    pub(super) groups: usize,
    pub(super) stages: usize,
    /// Whether the rows' tiles stay in shared memory.
    pub(super) resident: bool,
    /// Components of a tile; none where threads compute squares.
    pub(super) depths: usize,
    /// Whether one tile holds all components.
    pub(super) shallow: bool,
    /// Times that sums leave the tensor core in a tile: `PARTS` of the kernels.
    pub(super) leaves_per_tile: usize,
    /// Columns of right-hand sides.
    pub(super) right: usize,
    /// Bytes of shared memory of a stage.
    pub(super) stage: usize,
    /// Bytes of shared memory for what is kept of rows, behind all stages.
    pub(super) kept: usize,
    /// Bytes of all shared memory.
    pub(super) shared: usize,
}

/// A square by products of tiles, where they pay.
pub(super) fn by_tiles(
    square: Square,
    tape: &Tape,
    folding: &Folding,
    sizes: &Sizes,
) -> Option<Square> {
    let dim = square.dim(tape);
    let worth = match square.is_filter() {
        true if dim < SMALLEST => return None,
        true => Worth::of_filter(dim, folding.shape.k),
        false => Worth::of_square(dim),
    };
    let pays = worth.pays(sizes) && takes(square, tape, folding, sizes).is_ok();
    pays.then_some(Square { products: tiles(&square, tape), ..square })
}

/// Why the square of a formula is not expanded, for human eyes.
pub(super) fn why_not(tape: &Tape, folding: &Folding, sizes: &Sizes) -> &'static str {
    let Some(square) = Square::find(tape, folding) else {
        return "no square that may be expanded";
    };
    let (dim, is_filter) = (square.dim(tape), square.is_filter());
    let least = if is_filter { SMALLEST } else { NARROW + 1 };
    match takes(square, tape, folding, sizes) {
        _ if dim < least => "a square so short would not pay here",
        Err(why) => why,
        Ok(()) => "for so few pairs, or beside all else, it would not pay",
    }
}

/// Whether a filter has enough rows for so many j. States of several panels are of j that are no neighbours, so that ranges
/// of them could not be joined in order.
fn is_enough(dim: u32, sizes: &Sizes) -> bool {
    panels::has_one(dim, sizes.n) || worth::filter_pays_uncut(dim, sizes)
}

/// Whether tensor cores have room for a square, and may take it; or why not.
fn takes(
    square: Square,
    tape: &Tape,
    folding: &Folding,
    sizes: &Sizes,
) -> Result<(), &'static str> {
    suits(square, tape, folding, sizes)?;
    if !square.is_filter() {
        return match folding.words() <= STATE_WORDS {
            true => Ok(()),
            false => Err("tensor cores have no room for so large states"),
        };
    }
    let rules = [
        (square.outside.is_some(), "filters take one number of a pair"),
        // What filters keep of a row is in shared memory.
        (folding.shape.k <= FEW_RANKS, "filters keep 16 of a row at most"),
        (is_enough(square.dim(tape), sizes), "so few rows beside so many j leave the card idle"),
    ];
    keeps(&rules)
}

/// The first rule that does not hold.
fn keeps(rules: &[(bool, &'static str)]) -> Result<(), &'static str> {
    rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
}

/// How a square is computed by tiles, by how many components go through a tensor core at once. These are few where points
/// are short, so that they may be further from the centre than long ones are, for their length. Filters compute anew
/// what they find, so that less accuracy costs little.
fn tiles(square: &Square, tape: &Tape) -> Products {
    let leave = match (square.is_filter(), square.dim(tape)) {
        (true, ..=16) | (false, ..=48) => 16,
        (true, 33..) => 64,
        _ => 32,
    };
    Products::Tiles { leave }
}

/// The square of weights that are multiplied by right-hand sides, where that pays. Threads compute it where points are
/// narrow, products of tiles where they are not.
pub(super) fn weighed(right: &Right, folding: &Folding, sizes: &Sizes) -> Option<Square> {
    let tape = &right.weight;
    let square = Square::find(tape, folding)?;
    let narrow = square.dim(tape) <= NARROW;
    // Threads have no form of their own for inner products, and registers no room for all columns beside tiles.
    if narrow && !square.suits_threads(tape) {
        return None;
    }
    let worth = Worth::of_columns(right.dim, (!narrow).then(|| square.dim(tape)));
    let pays = folding.monoid() == Monoid::Add && !folding.compensated && worth.pays(sizes);
    let points = right.difference.is_none_or(|difference| {
        Some(difference.points) == square.inputs(tape) && square.is_of_inputs(tape)
    });
    let room = has_room_for_sides(right) && on_hopper(square, tape, folding, sizes).is_ok();
    if !pays || !points || !room {
        return None;
    }
    let products = if narrow { Products::Fused } else { tiles(&square, tape) };
    let room = if narrow { BESIDE_NARROW } else { BESIDE };
    let fits = beside(square, tape, Per::I) <= room
        && (narrow || suits(square, tape, folding, sizes).is_ok());
    fits.then_some(Square { products, ..square })
}

/// Whether weights are multiplied by right-hand sides as they are written, where that pays. They need registers for what
/// they are made of, as much as narrow points take.
pub(super) fn weighs_as_written(right: &Right, folding: &Folding, sizes: &Sizes) -> bool {
    let worth = Worth::of_columns(right.dim, None);
    if !right.may_be_as_written(folding) || !takes_floats(folding, sizes) || !worth.pays(sizes) {
        return false;
    }
    let sections = Sections::of_weight(&right.weight, None);
    let numbers = |per: Per| sections.bytes(per) / size_of::<f32>();
    let most = NARROW as usize + BESIDE_NARROW;
    // Vectors of pairs that are stored, each for two j at once.
    let stored =
        sections.steps(Per::Pair).filter(|(slot, _)| !sections.passing[usize::from(*slot)]);
    let stored = stored.map(|(slot, _)| right.weight.slot(slot).len as usize);
    numbers(Per::I) <= most
        && numbers(Per::J) <= 2 * most
        && stored.filter(|&len| len > 1).sum::<usize>() <= most
        && has_room_for_sides(right)
}

/// Whether the threads that make tiles of right-hand sides have room for what they make them of: in shared memory, which
/// kernels may declare up to 48 KiB of.
fn has_room_for_sides(right: &Right) -> bool {
    let bytes = Sections::of_sides(&right.sides).bytes(Per::J).next_multiple_of(8) + 8;
    MERGE_THREADS * bytes <= 48 << 10
}

/// Whether there are tensor cores for what is computed, and few enough batches.
fn takes_floats(folding: &Folding, sizes: &Sizes) -> bool {
    sizes.capability == HOPPER && folding.computes == DType::Float32 && sizes.batches <= BATCHES
}

/// Whether there are tensor cores that take these numbers, and few enough batches; or why not.
fn on_hopper(
    square: Square,
    tape: &Tape,
    folding: &Folding,
    sizes: &Sizes,
) -> Result<(), &'static str> {
    let slots = [Some(square.x), square.factor(), Some(square.difference), Some(square.scaled)];
    let single = slots.iter().flatten().all(|&slot| tape.slot(slot).dtype == DType::Float32);
    let centres = sizes.batches * square.dim(tape) as usize * size_of::<f32>();
    keeps(&[
        (sizes.capability == HOPPER, "only Hopper's tensor cores are used"),
        (single && folding.computes == DType::Float32, "tensor cores take float32 and halves"),
        (takes_floats(folding, sizes) && centres <= CENTRE_BYTES, "there are too many batches"),
    ])
}

/// Whether points can be made into tiles; or why not.
fn suits(
    square: Square,
    tape: &Tape,
    folding: &Folding,
    sizes: &Sizes,
) -> Result<(), &'static str> {
    on_hopper(square, tape, folding, sizes)?;
    keeps(&[
        (square.is_of_inputs(tape), "tensor cores take points that are inputs as they are"),
        (square.dim(tape) <= WIDEST, "the points are too long for tiles"),
        (beside(square, tape, Per::J) <= BESIDE, "a j has too many numbers beside its point"),
    ])
}

/// Numbers of inputs of a section that a formula needs beside the point.
fn beside(square: Square, tape: &Tape, section: Per) -> usize {
    let needed = tape.inputs().iter().zip(0..).filter(|(input, slot)| {
        input.per == section && (!tape.users(*slot).is_empty() || tape.outputs().contains(slot))
    });
    let all = needed.map(|(input, _)| input.slot.len as usize).sum::<usize>();
    all.saturating_sub(square.dim(tape) as usize)
}

/// The tiling of a plan on tensor cores; `right` are columns of right-hand sides, or 0.
///
/// Groups and columns are measured on an H200: as many as registers have room for, with the products of a tile in three
/// sums, or in two where the sum leaves the tensor core once; and where tiles of rows come again with those of j, large
/// tiles, for which memory is fast enough.
pub(super) fn tiling(sections: &Sections<'_>, folding: &Folding, right: usize, m: usize) -> Tiling {
    let square = sections.square;
    let dim = square.map_or(0, |square| square.dim(sections.tape) as usize);
    let leave = square.and_then(|square| square.leave());
    let depths = match dim {
        _ if leave.is_none() => 0,
        ..=32 => 32,
        _ => 64,
    };
    let deep = if depths == 0 { 1 } else { dim.div_ceil(depths) };
    let ranked = folding.shape.k > 1;
    let room = Room {
        deep,
        tile: SIDE * depths * SPLIT_BYTES,
        of_column: right * RIGHT_BYTES + sections.bytes(Per::J).next_multiple_of(8),
        of_row: match square.is_some_and(|square| square.is_filter()) {
            true => 2 * found_bytes(folding.shape.k),
            false => right * size_of::<f32>(),
        },
        least: if right > 0 { 2 } else { 3 },
    };
    let (groups, columns) = match folding.monoid() {
        _ if right > 0 => (groups_of_right(sections, right, m), 64),
        Monoid::Smallest if deep == 1 => {
            let fits = |groups: &usize| room.shared(*groups, 64).resident;
            ([4, 3].into_iter().find(fits).unwrap_or(2), 64)
        }
        Monoid::Smallest if ranked => (2, 64),
        Monoid::Smallest => (2, 128),
        Monoid::Shifted if folding.shape.weights > 0 => (2, 64),
        Monoid::Add if folding.shape.dim > 2 => (2, 64),
        Monoid::Shifted | Monoid::Add if deep == 1 => (3, 64),
        Monoid::Shifted | Monoid::Add => (2, 128),
        _ => (2, 64),
    };
    let Shared { resident, stages, stage, kept, bytes: shared } = room.shared(groups, columns);
    let leaves_per_tile = match leave {
        None => 0,
        Some(leave) if deep == 1 => dim.div_ceil(leave),
        Some(leave) => depths / leave,
    };
    let wide = Wide {
        groups,
        stages,
        resident,
        depths,
        shallow: deep == 1,
        leaves_per_tile,
        right,
        stage,
        kept,
        shared,
    };
    Tiling {
        threads: 128 * (groups + 1),
        team: 1,
        rows: 2,
        ranges_per_block: 1,
        tile: columns,
        group: match folding.monoid() {
            _ if right > 0 => 2,
            Monoid::Shifted if folding.shape.weights == 0 => 8,
            _ => 4,
        },
        ahead: 0,
        few_pairs: false,
        wide: Some(wide),
    }
}

/// Groups that multiply weights by right-hand sides. Of more groups others work while one waits for its products (1e5 x
/// 1e5 pairs of three components with 16 columns: 5.46 ms with six, 5.81 with four). So the number of rows decides which
/// of two kernels a call has.
fn groups_of_right(sections: &Sections<'_>, right: usize, m: usize) -> usize {
    let [columns, of_i, of_j] = SIX_GROUPS;
    let room = right <= columns && sections.bytes(Per::I) <= of_i && sections.bytes(Per::J) <= of_j;
    let rows = |groups: usize| m.next_multiple_of(groups * SIDE) as f64;
    match sections.by_tiles() {
        false if room && TIME_OF_SIX * rows(6) <= rows(4) => 6,
        false if right <= FOUR_GROUPS => 4,
        _ => 2,
    }
}

/// Bytes that a lane of a filter has: for what waits, of both of its rows together, and for what it found of each of them,
/// two more than are asked for. Of each there is a square and where it is.
fn found_bytes(ranks: usize) -> usize {
    (WAITING + EIGHT + 2 * (ranks + 2)) * 8
}

/// What needs shared memory, in bytes.
struct Room {
    /// Tiles of a row along D: a number, not bytes.
    deep: usize,
    /// One of these tiles.
    tile: usize,
    /// What a column has beside its tile.
    of_column: usize,
    /// What is kept for a row: second sums of right-hand sides, or what lanes of a filter have found, of which there are
    /// four for two rows.
    of_row: usize,
    /// Stages that have to be left if the rows' tiles stay: a number, not bytes.
    least: usize,
}

/// How shared memory is used.
struct Shared {
    resident: bool,
    stages: usize,
    stage: usize,
    kept: usize,
    bytes: usize,
}

impl Room {
    fn shared(&self, groups: usize, columns: usize) -> Shared {
        let stage = |rows: usize| {
            (rows + columns / SIDE * self.tile + columns * self.of_column).next_multiple_of(1 << 10)
        };
        let all = groups * self.deep * self.tile;
        // Tiles begin at multiples of 1024.
        let kept = groups * SIDE * self.of_row;
        let beside = kept + 1024;
        let resident = all + beside + self.least * stage(0) <= SHARED;
        let (beside, stage) =
            if resident { (all + beside, stage(0)) } else { (beside, stage(groups * self.tile)) };
        let stages = (SHARED.saturating_sub(beside) / stage).clamp(2, 4);
        Shared { resident, stages, stage, kept, bytes: beside + stages * stage }
    }
}
