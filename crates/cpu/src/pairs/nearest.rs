//! Smallest squared distances by the expanded square as a filter, exact in the end.
//!
//! With both clouds centred, (|x - y|^2 - |x|^2) / 2 is |y|^2 / 2 - <x, y>: one fused product for
//! each component, and a comparison. Its error is bounded ([`Bound`]), so whatever is larger than
//! the K-th smallest upper bound cannot be among the K smallest; the few that are left are computed
//! again by the direct form (the sum over components, ascending, of fused squares of differences)
//! and sorted by value and index. Values and indices are therefore those of the direct form, to the
//! last bit. Where the filter cannot know (numbers that are not finite or too large, too many
//! almost equal distances) or has no memory, a piece is left to the direct way: [`Search::piece`]
//! gives None. Called by `pairs::Job::piece`.

use smallvec::SmallVec;
use tilework_backend::{Accumulator, Accuracy, PairReduce, try_filled, try_room};
use tilework_error::Result;
use tilework_ops::pair_fold::{Monoid, PairState};
use tilework_ops::{Id, Scalar};
use tilework_tape::{Action, SlotId, Step, Tape};

use super::Job;
use super::aligned::Aligned;
use super::candidates::Kept;
use super::form::{distance, step_of};
use super::lanes::{Summed, Work, with_isa};
use super::products::{
    Begin, Block, Columns, Filter, Found, Number, Points, tile_shape, with_tiles,
};
use crate::isa::Isa;

/// i below which vectors of i are not worth filling.
const FEW_ROWS: usize = 32;

/// Distances to choose from, for each that is kept, below which most are candidates.
const CHOICE: usize = 16;

/// Values kept at most.
const MOST_KEPT: usize = 64;

/// Components at most: the bound grows with them.
const MOST_COMPONENTS: usize = 4096;

/// Bytes of a block of points of j: what the first-level cache keeps beside a panel.
const BLOCK_BYTES: usize = 24 << 10;

/// Points of j in a block at most.
const BLOCK: usize = 504;

/// Scale factors at most (and their inverses).
const LARGEST_SCALE: f64 = (1 << 30) as f64;

/// What is done to a distance before it is compared: functions that keep or reverse its order.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then<T> {
    Negate,
    Root,
    Times(T),
    Over(T),
}

/// The smallest squared distances of a point of i to points of j.
#[derive(Debug)]
pub(super) struct Search<T> {
    /// The inputs that are the points.
    x: usize,
    y: usize,
    components: usize,
    k: usize,
    monoid: Monoid,
    then: SmallVec<[Then<T>; 3]>,
}

/// What a piece is about.
struct Piece<T> {
    x: Points<T>,
    y: Points<T>,
    rows: std::ops::Range<usize>,
    js: std::ops::Range<usize>,
    /// The index of the first j of all.
    start: i64,
}

impl<T: Number> Search<T> {
    /// The search that a request is, if it is one and may be filtered.
    pub(super) fn of(request: &PairReduce<'_>, tape: &Tape, m: usize) -> Option<Search<T>> {
        let (n, k) = (request.n, request.k);
        let fits = m >= FEW_ROWS && n >= k.checked_mul(CHOICE)? && (1..=MOST_KEPT).contains(&k);
        let &[output] = tape.outputs() else { return None };
        if request.accuracy == Accuracy::Strict || !fits {
            return None;
        }
        let monoid = request.fold.row().monoid;
        let mut ascending = match monoid {
            Monoid::Smallest => true,
            Monoid::Largest => false,
            _ => return None,
        };
        let (mut slot, mut then, mut scale) = (output, SmallVec::new(), 1.0);
        let (x, y) = loop {
            let step = step_of(tape, slot)?;
            if let Some(points) = distance(tape, step) {
                break points;
            }
            let next;
            (slot, next) = monotone::<T>(tape, step)?;
            if let Then::Times(factor) | Then::Over(factor) = next {
                scale *= factor.f64().abs().max(1.0 / factor.f64().abs());
                ascending ^= factor < T::ZERO;
            }
            ascending ^= next == Then::Negate;
            then.insert(0, next);
        };
        // A NaN is not in the range.
        let fits = ascending && then.len() <= 3 && (1.0..=LARGEST_SCALE).contains(&scale);
        let components = tape.slot(x).len as usize;
        (fits && components <= MOST_COMPONENTS).then_some(Search {
            x: x.into(),
            y: y.into(),
            components,
            k,
            monoid,
            then,
        })
    }

    /// The states of the rows of a piece; None if it must be done directly. `done` is told how many
    /// pairs are done and stops the work by an error.
    ///
    /// # Safety
    /// The points of the piece may be read.
    unsafe fn piece<A>(
        &self,
        isa: Isa,
        piece: &Piece<T>,
        done: impl Fn(u64) -> Result<()>,
    ) -> Result<Option<Vec<PairState<A>>>>
    where
        T: Summed<A>,
        A: Accumulator,
    {
        let (tile_rows, lanes) = tile_shape::<T>(isa);
        let fits = BLOCK_BYTES / (self.components * size_of::<T>());
        let block = fits.clamp(2 * tile_rows, BLOCK).next_multiple_of(tile_rows);
        // A stride that is no power of two keeps the columns of a tile in different cache sets.
        let pitch = block + 64 / size_of::<T>();
        let room = || -> Result<_> {
            // SAFETY: points of the piece.
            let centre = unsafe { piece.y.middle(&piece.js, self.components)? };
            let panels = self.panels(isa, piece, &centre)?;
            let kept = Kept::new(self.k, piece.rows.len(), lanes)?;
            let numbers = try_filled("search", T::ZERO, pitch * self.components)?;
            Ok((centre, panels, kept, numbers, try_filled("search", T::ZERO, block)?))
        };
        let Ok((centre, Some(panels), mut kept, mut numbers, mut halves)) = room() else {
            return Ok(None);
        };
        let mut found = Found::new();
        let bound = Bound::new(self.components);
        for first in piece.js.clone().step_by(block) {
            let count = block.min(piece.js.end - first);
            // SAFETY: points of the piece, and a column has room for `count` of them.
            unsafe { piece.y.load(first, count, self.components, numbers.as_mut_ptr(), pitch) };
            let halves = &mut halves[..count.next_multiple_of(tile_rows)];
            let (columns, points) = (&mut numbers[..], count);
            with_isa(isa, Centre { columns, pitch, points, centre: &centre, halves });
            let Some(radius) = radius(&halves[..count]) else { return Ok(None) };
            // Rows that fill the last tile never come out of the filter.
            halves[count..].fill(T::of(f64::INFINITY));
            kept.begin_block(|row| bound.at(panels.radius[row] + radius));
            let columns = Columns { numbers: &numbers, pitch };
            for (panel, x) in panels.numbers.chunks_exact(lanes * self.components).enumerate() {
                let block = Block { x, y: columns, start: &*halves };
                // The first block is gone through twice: most of it would be candidates.
                let begun = first == piece.js.start;
                if begun {
                    with_tiles(isa, Begin { block, smallest: kept.smallest(panel) });
                }
                let mut from = 0;
                loop {
                    let (smallest, found) = (kept.smallest(panel), &mut found);
                    if !with_tiles(isa, Filter { block, smallest, begun, from, found }) {
                        break;
                    }
                    from = found.row + tile_rows;
                    let place = (first - piece.js.start + found.row) as u32;
                    if !kept.take(found, panel, place) {
                        return Ok(None);
                    }
                }
            }
            done((count * piece.rows.len()) as u64)?;
        }
        Ok(self.finish(isa, piece, &kept).ok())
    }

    /// The points of i as the filter wants them; None if one is too far away.
    fn panels(&self, isa: Isa, piece: &Piece<T>, centre: &[T]) -> Result<Option<Panels<T>>> {
        let (_, lanes) = tile_shape::<T>(isa);
        let (count, components) = (piece.rows.len(), self.components);
        let pitch = count.next_multiple_of(lanes);
        let mut columns = try_filled("search", T::ZERO, pitch * components)?;
        let mut halves = try_filled("search", T::ZERO, pitch)?;
        // SAFETY: points of the piece, and a column has room for all of them.
        unsafe { piece.x.load(piece.rows.start, count, components, columns.as_mut_ptr(), pitch) };
        let (halves_of, points) = (&mut halves[..], count);
        let work = Centre { columns: &mut columns, pitch, points, centre, halves: halves_of };
        with_isa(isa, work);
        if radius(&halves).is_none() {
            return Ok(None);
        }
        let mut numbers = Aligned::filled("search", T::ZERO, pitch * components)?;
        for (panel, numbers) in numbers.chunks_exact_mut(lanes * components).enumerate() {
            for (to, column) in numbers.chunks_exact_mut(lanes).zip(columns.chunks_exact(pitch)) {
                for (to, x) in to.iter_mut().zip(&column[panel * lanes..]) {
                    *to = -*x;
                }
            }
        }
        halves.iter_mut().for_each(|half: &mut T| *half = (*half + *half).sqrt());
        Ok(Some(Panels { numbers, radius: halves }))
    }

    /// Candidates computed again by the direct form.
    fn finish<A>(&self, isa: Isa, piece: &Piece<T>, kept: &Kept<T>) -> Result<Vec<PairState<A>>>
    where
        T: Summed<A>,
        A: Accumulator,
    {
        let mut best = try_room("search", self.k)?;
        let mut states = try_room("search", piece.rows.len())?;
        for _ in piece.rows.clone() {
            let (values, indices) = (try_room("search", self.k)?, try_room("search", self.k)?);
            states.push(PairState { count: piece.js.len() as u64, values, indices });
        }
        let (best, of_rows) = (&mut best, &mut states[..]);
        with_isa(isa, Finish { search: self, piece, kept, best, states: of_rows });
        Ok(states)
    }
}

impl<T: Number + Summed<A>, A: Accumulator> Job<'_, T, A> {
    /// [`Job::piece`] by the filter of `nearest`, where that can.
    pub(super) fn nearest(
        &self,
        batch: usize,
        block: usize,
        range: usize,
    ) -> Result<Option<Vec<PairState<A>>>> {
        let Some(search) = &self.search else { return Ok(None) };
        let (rows, js) = self.ranges(block, range);
        let index = self.batch_index(batch);
        let points = |input: usize| Points::of(&self.operands.sources[input], &index);
        let (x, y) = (points(search.x), points(search.y));
        let piece = Piece { x, y, rows, js, start: self.request.start };
        // SAFETY: the points are indices of the layouts, inside of blocks whose guards the session
        // holds; inputs of a search have the dtype that is computed in.
        unsafe { search.piece(self.isa, &piece, |pairs| self.go_on(pairs)) }
    }
}

/// Points of i in panels, and how far from the centre each is.
struct Panels<T> {
    numbers: Aligned<T>,
    radius: Vec<T>,
}

/// A step as a monotone function of one slot.
fn monotone<T: Number>(tape: &Tape, step: &Step) -> Option<(SlotId, Then<T>)> {
    let constant = |slot: SlotId| match step_of(tape, slot)?.action {
        Action::Constant(value) => Some(value),
        _ => None,
    };
    let number = |value: Scalar| T::of(value.cast(tilework_ops::DType::Float64).get::<f64>());
    match (&step.action, &step.operands[..]) {
        (Action::Apply(Id::Negative), &[a]) => Some((a, Then::Negate)),
        (Action::Apply(Id::Sqrt | Id::SqrtFlat), &[a]) => Some((a, Then::Root)),
        (Action::Apply(Id::Multiply), &[a, b]) => match (constant(a), constant(b)) {
            (Some(factor), _) => Some((b, Then::Times(number(factor)))),
            (_, Some(factor)) => Some((a, Then::Times(number(factor)))),
            _ => None,
        },
        (Action::Apply(Id::Divide), &[a, b]) => Some((a, Then::Over(number(constant(b)?)))),
        _ => None,
    }
}

/// How far (|x - y|^2 - |x|^2) / 2 may be from what the filter computes, and from half of what the
/// direct form gives: a multiple of the square of |x| + |y|, and what underflow adds.
///
/// In units of roundoff and that square, twice: centring 2, the direct form D + 2, |y|^2 / 2 and the
/// products together 2 (D + 1), sums of values and bounds 6, up to three roundings of the distance
/// afterwards 12.
#[derive(Clone, Copy)]
struct Bound<T> {
    relative: T,
    absolute: T,
}

impl<T: Number> Bound<T> {
    fn new(components: usize) -> Bound<T> {
        let d = components as f64;
        Bound {
            relative: T::of((3.0 * d + 32.0) * T::ROUNDOFF / 2.0),
            absolute: T::of((4.0 * d + 4.0 * LARGEST_SCALE) * T::TINY),
        }
    }

    /// The bound where |x| + |y| is at most `reach`.
    #[inline(always)]
    fn at(self, reach: T) -> T {
        self.relative * reach * reach + self.absolute
    }
}

/// The largest distance from the centre, given halves of squares; None if one is not finite or
/// larger than is safe.
fn radius<T: Number>(halves: &[T]) -> Option<T> {
    let (most, mut largest, mut safe) = (T::of(T::SAFE), T::ZERO, true);
    for half in halves {
        largest = if *half > largest { *half } else { largest };
        safe &= *half <= most;
    }
    safe.then(|| (largest + largest).sqrt())
}

/// Moves points by the centre, in columns, and takes halves of their squared norms.
struct Centre<'a, T> {
    columns: &'a mut [T],
    pitch: usize,
    points: usize,
    centre: &'a [T],
    halves: &'a mut [T],
}

impl<T: Number> Work for Centre<'_, T> {
    #[inline(always)]
    fn run(self) {
        let half = T::of(0.5);
        let halves = &mut self.halves[..self.points];
        halves.fill(T::ZERO);
        for (column, centre) in self.columns.chunks_exact_mut(self.pitch).zip(self.centre) {
            for (number, sum) in column.iter_mut().zip(&mut *halves) {
                *number = *number - *centre;
                *sum = (half * *number).mul_add(*number, *sum);
            }
        }
    }
}

/// The K best of the candidates of every row by the direct form.
struct Finish<'a, T, A> {
    search: &'a Search<T>,
    piece: &'a Piece<T>,
    kept: &'a Kept<T>,
    /// Room for K.
    best: &'a mut Vec<(T, u32)>,
    /// Empty states with room for K, one for each row.
    states: &'a mut [PairState<A>],
}

impl<T: Number + Summed<A>, A: Accumulator> Work for Finish<'_, T, A> {
    #[inline(always)]
    fn run(self) {
        let Finish { search, piece, kept, best, states } = self;
        let k = search.k;
        for (row, state) in states.iter_mut().enumerate() {
            best.clear();
            for place in kept.candidates(row) {
                let (i, j) = (piece.rows.start + row, piece.js.start + place as usize);
                let mut sum = T::ZERO;
                for c in 0..search.components {
                    // SAFETY: points of the piece, which the caller of `Search::piece` vouches for.
                    let difference = unsafe { piece.x.at(i, c) - piece.y.at(j, c) };
                    sum = difference.mul_add(difference, sum);
                }
                let value = search.then.iter().fold(sum, |value, then| match then {
                    Then::Negate => -value,
                    Then::Root => value.sqrt(),
                    Then::Times(factor) => value * *factor,
                    Then::Over(divisor) => value / *divisor,
                });
                // A distance has one sign, so magnitudes ascend. Places come in order, so whoever
                // is equal was before.
                let rank = best.partition_point(|(held, _)| held.abs() <= value.abs());
                if rank < k {
                    best.truncate(k - 1);
                    best.insert(rank, (value, place));
                }
            }
            let index = |place: u32| piece.start + (piece.js.start + place as usize) as i64;
            state.values.extend(best.iter().map(|(value, _)| value.to_sum()));
            state.indices.extend(best.iter().map(|(_, place)| index(*place)));
            state.values.resize(k, search.monoid.neutral(0));
            state.indices.resize(k, -1);
        }
    }
}
