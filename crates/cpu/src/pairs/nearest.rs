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
//!
//! Of few components the direct form is as fast in a filter, and has no bound: the nearest of many
//! points on a line are closer than an expanded square is rounded.

use std::borrow::Cow;

use smallvec::SmallVec;
use tilework_backend::{Accumulator, Accuracy, PairReduce, try_filled};
use tilework_error::Result;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::Tape;

use super::Job;
use super::aligned::Aligned;
use super::candidates::Kept;
use super::filter::{Begin, Block, Filter, Found};
use super::form::distance;
use super::lanes::Summed;
use super::products::{Columns, Number, Points, tile_shape, with_tiles};
use super::rows::Rows;
use super::shortlist::{Finish, Shortlist};
use super::then::{Then, monotone};
use crate::isa::{Isa, Work, with_isa};

/// i below which vectors of i are not worth filling.
const FEW_ROWS: usize = 32;

/// Distances to choose from, for each that is kept, below which most are candidates.
pub(super) const CHOICE: usize = 16;

/// Operations that the filter must save in a row where one is kept, one for each component of a pair
/// and one more: its own work.
const FEW_SAVED: usize = 24 << 10;

/// Points of j gone through twice for each value kept, times operations of a pair, where few are kept: as
/// candidates, as first points are, they would cost more.
const BEGUN: usize = 1024;

/// Rows finished between two looks whether the work is to be stopped.
const FINISHED: usize = 16;

/// Components at most: the bound grows with them, until most points are candidates.
const MOST_COMPONENTS: usize = 1 << 15;

/// Components up to which the filter takes the direct form.
const FEW_COMPONENTS: usize = 1;

/// Bytes of a block of points of j: what the first-level cache keeps beside a panel.
const BLOCK_BYTES: usize = 24 << 10;

/// Points of j in a block at most.
const BLOCK: usize = 504;

/// Scale factors at most (and their inverses).
const LARGEST_SCALE: f64 = (1 << 30) as f64;

/// The smallest squared distances of a point of i to points of j.
#[derive(Debug)]
pub(super) struct Search<T> {
    /// The inputs that are the points.
    x: usize,
    y: usize,
    pub(super) components: usize,
    pub(super) k: usize,
    pub(super) then: SmallVec<[Then<T>; 3]>,
}

/// A search, or why there is no filter for what is one.
pub(super) type Sought<T> = std::result::Result<Search<T>, Option<Cow<'static, str>>>;

/// What a piece is about.
pub(super) struct Piece<'r, T> {
    pub(super) request: &'r PairReduce<'r>,
    pub(super) x: Points<T>,
    pub(super) y: Points<T>,
    pub(super) rows: std::ops::Range<usize>,
    pub(super) js: std::ops::Range<usize>,
}

impl<T: Number> Search<T> {
    /// The search that a request is; or why a search is not filtered, or nothing if it is none.
    pub(super) fn of(request: &PairReduce<'_>, tape: &Tape, m: usize) -> Sought<T> {
        let mut ascending = match request.fold.row().monoid {
            Monoid::Smallest => true,
            Monoid::Largest => false,
            _ => return Err(None),
        };
        let &[output] = tape.outputs() else { return Err(None) };
        let (mut slot, mut then, mut scale) = (output, SmallVec::new(), 1.0);
        let mut rooted = false;
        let (x, y) = loop {
            let step = tape.step_of(slot).ok_or(None)?;
            if let Some(points) = distance(tape, step) {
                break points;
            }
            let next;
            (slot, next) = monotone::<T>(tape, step).ok_or(None)?;
            let turns = match next {
                Then::Times(factor) => {
                    scale *= factor.f64().abs().max(1.0 / factor.f64().abs());
                    factor < T::ZERO
                }
                Then::Negate => true,
                Then::Root(_) => false,
            };
            // A root of what may be negative may be no number, which a list of candidates has no place for.
            if turns && rooted {
                return Err(None);
            }
            ascending ^= turns;
            rooted |= matches!(next, Then::Root(_));
            then.insert(0, next);
        };
        let components = tape.slot(x).len as usize;
        let (n, k) = (request.n, request.k);
        let search = Search { x: x.into(), y: y.into(), components, k, then };
        let why: Cow<'static, str> = match () {
            () if request.accuracy == Accuracy::Strict => "accuracy is strict".into(),
            () if !ascending => "a filter finds what is near, not what is far".into(),
            () if m < FEW_ROWS => format!("a filter does not pay for {m} rows").into(),
            () if k == 0 || n / k < CHOICE => {
                format!("of {n} points to keep {k} leaves a filter too little to throw out").into()
            }
            () if k == 1 && n.saturating_mul(components + 1) < FEW_SAVED => {
                format!("a filter does not pay for {n} points").into()
            }
            () if components > MOST_COMPONENTS => "too many components for a filter".into(),
            // A NaN is not in the range.
            () if search.then.len() > 3 || !(1.0..=LARGEST_SCALE).contains(&scale) => {
                "the distance is scaled too often or too much for a filter".into()
            }
            // Without a bound there is none for what is done afterwards.
            () if search.is_direct() && search.roundings() != 0.0 => {
                "the distance is rounded again, and on a line a filter has no bound for that".into()
            }
            () => return Ok(search),
        };
        Err(Some(format!("direct: {why}").into()))
    }

    /// Whether the filter takes the direct form.
    pub(super) fn is_direct(&self) -> bool {
        self.components <= FEW_COMPONENTS
    }

    /// Roundings of what is done to a distance.
    fn roundings(&self) -> f64 {
        // A root halves what is relative: what is added from then on counts twice.
        let mut power = 1.0;
        let roundings = self.then.iter().map(|then| {
            power *= if matches!(then, Then::Root(_)) { 2.0 } else { 1.0 };
            power * then.roundings()
        });
        roundings.sum()
    }

    /// The states of the rows of a piece, by a filter that is `DIRECT` or not; None if it must be done
    /// directly. `done` is told how many pairs are done and stops the work by an error.
    ///
    /// # Safety
    /// The points of the piece may be read.
    unsafe fn piece<A, const DIRECT: bool>(
        &self,
        isa: Isa,
        piece: &Piece<'_, T>,
        done: impl Fn(u64) -> Result<()>,
    ) -> Result<Option<Rows<A>>>
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
            let centre = match DIRECT {
                true => try_filled("search", T::ZERO, self.components)?,
                // SAFETY: points of the piece.
                false => unsafe { piece.y.middle(&piece.js, self.components)? },
            };
            let panels = self.panels(isa, piece, &centre)?;
            let kept = Kept::new(self.k, piece.rows.len(), lanes)?;
            let numbers = try_filled("search", T::ZERO, pitch * self.components)?;
            Ok((centre, panels, kept, numbers, try_filled("search", T::ZERO, block)?))
        };
        let Ok((centre, Some(panels), mut kept, mut numbers, mut halves)) = room() else {
            return Ok(None);
        };
        let mut found = Found::new();
        let bound = match DIRECT {
            true => Bound { relative: T::ZERO, absolute: T::ZERO },
            false => Bound::new(self.components, self.roundings()),
        };
        let begun = match kept.is_sorted() {
            true => (BEGUN * self.k / (self.components + 2)).next_multiple_of(block).max(block),
            false => 0,
        };
        let begun = piece.js.start..piece.js.end.min(piece.js.start + begun);
        let begins = begun.clone().step_by(block).map(|first| (first, true));
        let all = piece.js.clone().step_by(block).map(|first| (first, false));
        for (first, begins) in begins.chain(all) {
            let count = block.min(piece.js.end - first);
            // SAFETY: points of the piece, and a column has room for `count` of them.
            unsafe { piece.y.load(first, count, self.components, numbers.as_mut_ptr(), pitch) };
            let halves = &mut halves[..count.next_multiple_of(tile_rows)];
            let (columns, points) = (&mut numbers[..], count);
            with_isa(isa, Centre { columns, pitch, points, centre: &centre, halves });
            let Some(radius) = radius(&halves[..count]) else { return Ok(None) };
            if DIRECT {
                halves[..count].fill(T::ZERO);
            }
            // Rows that fill the last tile never come out of the filter.
            halves[count..].fill(T::of(f64::INFINITY));
            kept.begin_block(|row| bound.at(panels.radius[row] + radius));
            let columns = Columns { numbers: &numbers, pitch };
            for (panel, x) in panels.numbers.chunks_exact(lanes * self.components).enumerate() {
                let block = Block::<_, DIRECT> { x, y: columns, start: &*halves };
                if begins {
                    let (smallest, rows) = (kept.smallest(panel), begun.len());
                    with_tiles(isa, Begin { block, smallest, rows });
                    continue;
                }
                // Limits of many come from candidates alone.
                let (mut from, begun) = (0, begun.contains(&first) || !kept.is_sorted());
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
            done(if begins { 0 } else { count * piece.rows.len() } as u64)?;
        }
        let count = piece.rows.len();
        let rows = || -> Result<_> {
            let states = Rows::new(piece.request, count, piece.js.len() as u64)?;
            Ok((states, Shortlist::new(kept.room())?))
        };
        let Ok((mut states, mut list)) = rows() else { return Ok(None) };
        for first in (0..count).step_by(FINISHED) {
            let rows = first..count.min(first + FINISHED);
            let (to, kept, list) = (states.part(rows), &mut kept, &mut list);
            with_isa(isa, Finish { search: self, piece, kept, list, first, to });
            done(0)?;
        }
        Ok(Some(states))
    }

    /// The points of i as the filter wants them; None if one is too far away.
    fn panels(&self, isa: Isa, piece: &Piece<'_, T>, centre: &[T]) -> Result<Option<Panels<T>>> {
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
}

impl<T: Number + Summed<A>, A: Number> Job<'_, T, A> {
    /// [`Job::piece`] by the filter of `nearest`, where that can.
    pub(super) fn nearest(
        &self,
        batch: usize,
        block: usize,
        range: usize,
    ) -> Result<Option<Rows<A>>> {
        let Ok(search) = &self.search else { return Ok(None) };
        let (rows, js) = self.ranges(block, range);
        let index = self.batch_index(batch);
        let points = |input: usize| Points::of(&self.operands.sources[input], &index);
        let (x, y) = (points(search.x), points(search.y));
        let piece = Piece { request: self.request, x, y, rows, js };
        // SAFETY: the points are indices of the layouts, inside of blocks whose guards the session
        // holds; inputs of a search have the dtype that is computed in.
        unsafe {
            let done = |pairs| self.course.go_on(pairs);
            match search.is_direct() {
                true => search.piece::<A, true>(self.isa, &piece, done),
                false => search.piece::<A, false>(self.isa, &piece, done),
            }
        }
    }
}

/// Points of i in panels, and how far from the centre each is.
struct Panels<T> {
    numbers: Aligned<T>,
    radius: Vec<T>,
}

/// How far (|x - y|^2 - |x|^2) / 2 may be from what the filter computes, and from half of what the
/// direct form gives: a multiple of the square of |x| + |y|, and what underflow adds.
///
/// In units of roundoff and that square, twice: centring 2, the direct form D + 2, |y|^2 / 2 and the
/// products together 2 (D + 1), sums of values and bounds 6, and what is done to the distance
/// afterwards ([`Then::roundings`]).
#[derive(Clone, Copy)]
struct Bound<T> {
    relative: T,
    absolute: T,
}

impl<T: Number> Bound<T> {
    fn new(components: usize, roundings: f64) -> Bound<T> {
        let d = components as f64;
        Bound {
            relative: T::of((3.0 * d + 20.0 + roundings) * T::ROUNDOFF / 2.0),
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
