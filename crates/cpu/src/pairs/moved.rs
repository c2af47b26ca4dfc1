//! Points moved by a centre, with their squared norms: how far they reach, and how they come into a
//! block.
//!
//! [`reach_of`] looks at all points once, before a form is chosen; it asks now and then whether to go
//! on, and takes squares in the numbers of the formula, rounded up. [`Moved`] writes some points where
//! a loop reads them, whenever it needs them: memory for all would cost more than moving them again.
//! Norms are those of the points as they are, exact but for their last rounding; the numbers are
//! rounded once. Called by `form`, and by `packed` for groups of points.

#![allow(clippy::needless_range_loop, reason = "loops over lanes, which become vectors")]

use std::sync::Mutex;

use tilework_backend::square::Reach;
use tilework_error::Result;

use super::course::Course;
use super::products::{Number, Points};
use super::{lock, share};
use crate::isa::{Isa, Work, with_isa};
use crate::map::moves;
use crate::pool;

/// Points that are moved together: as many sums stay in registers.
const CHUNK: usize = 64;

/// Points that are looked at between two questions whether to go on, at most, and their bytes.
const LOOK: usize = 64 * CHUNK;
const LOOK_BYTES: usize = 256 << 10;

/// Pieces that a look at all points is cut into.
const LOOKS: usize = 64;

/// Adds the square of a difference to a sum, and what the sum loses to `low`, unless the numbers are so
/// much shorter than float64 that it is nothing to them; the difference and what it has lost.
#[inline(always)]
pub(super) fn add_square<T: Number>(
    (x, middle): (f64, f64),
    sum: &mut f64,
    low: &mut f64,
) -> (f64, f64) {
    let d = x - middle;
    if T::SHORT {
        *sum = d.mul_add(d, *sum);
        return (d, 0.0);
    }
    let back = d - x;
    let lost = (x - (d - back)) - (middle + back);
    let square = d * d;
    let before = *sum;
    *sum = before + square;
    let back = *sum - before;
    *low += d.mul_add(d, -square) + 2.0 * d * lost + ((before - (*sum - back)) + (square - back));
    (d, lost)
}

/// How far the first `count` points are from a centre, or a little more; an error if there is no memory or the call
/// is to be stopped.
///
/// # Safety
/// The points may be read.
pub(super) unsafe fn reach_of<T: Number>(
    isa: Isa,
    points: Points<T>,
    count: usize,
    centre: &[T],
    course: &Course<'_>,
) -> Result<Reach> {
    let found = Mutex::new(Ok([0.0f64; 2]));
    let fit = LOOK_BYTES / size_of_val(centre).max(1);
    let pitch = (fit / CHUNK * CHUNK).clamp(CHUNK, LOOK);
    let pieces = count.div_ceil(pitch).min(LOOKS);
    let look = |piece: usize, numbers: *mut T| -> Result<[f64; 2]> {
        let (mut most, rows) = ([0.0f64; 2], share(count, pitch, pieces, piece));
        for first in rows.clone().step_by(pitch) {
            course.go_on(0)?;
            let held = pitch.min(rows.end - first);
            points.fetch(first + held, pitch.min(count - first - held));
            // SAFETY: the caller's promise; there is room for so many points of all components.
            let numbers = unsafe {
                points.load(first, held, centre.len(), numbers, pitch);
                std::slice::from_raw_parts_mut(numbers, pitch * centre.len())
            };
            // Those that fill the last chunk are in the middle.
            for (column, middle) in numbers.chunks_exact_mut(pitch).zip(centre) {
                column[held..held.next_multiple_of(CHUNK)].fill(*middle);
            }
            with_isa(isa, Look { numbers, pitch, held, centre, most: &mut most });
        }
        Ok(most)
    };
    pool::run(pieces, &|piece| {
        let bytes = pitch * size_of_val(centre);
        let most = moves::with_scratch("pack", bytes, |room| look(piece, room.cast()));
        let mut found = lock(&found);
        match (most.and_then(|most| most), &mut *found) {
            (Ok(most), Ok(all)) => *all = [0, 1].map(|k| larger(all[k], most[k])),
            (Err(error), Ok(_)) => *found = Err(error),
            _ => {}
        }
    });
    let most = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    // A difference, a product and sums are rounded, or vanish.
    let roundings = (2 * centre.len() + 4) as f64;
    let [largest, prefixes] =
        most.map(|most| most * (1.0 + roundings * T::ROUNDOFF) + roundings * T::TINY);
    Ok(Reach { largest, prefixes })
}

/// The larger one, which is NaN if one is.
fn larger(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// Squared norms of points in columns that are `pitch` apart, and the largest of them.
struct Look<'a, T> {
    numbers: &'a [T],
    pitch: usize,
    held: usize,
    centre: &'a [T],
    most: &'a mut [f64; 2],
}

impl<T: Number> Work for Look<'_, T> {
    #[inline(always)]
    fn run(self) {
        // Of every lane the largest norm and the largest sum of norms, and a sum of all of them that
        // is NaN as soon as one is.
        let mut most = [[T::ZERO; CHUNK]; 2];
        let mut all = [T::ZERO; CHUNK];
        for first in (0..self.held).step_by(CHUNK) {
            let (mut sums, mut prefixes) = ([T::ZERO; CHUNK], [T::ZERO; CHUNK]);
            for (column, middle) in self.numbers.chunks_exact(self.pitch).zip(self.centre) {
                let column = &column[first..first + CHUNK];
                for k in 0..CHUNK {
                    let d = column[k] - *middle;
                    sums[k] = d.mul_add(d, sums[k]);
                    prefixes[k] = prefixes[k] + sums[k];
                }
            }
            for (most, values) in most.iter_mut().zip([&sums, &prefixes]) {
                for k in 0..CHUNK {
                    most[k] = if values[k] > most[k] { values[k] } else { most[k] };
                }
            }
            for k in 0..CHUNK {
                all[k] = all[k] + prefixes[k];
            }
        }
        for (held, most) in self.most.iter_mut().zip(&most) {
            for (most, all) in most.iter().zip(&all) {
                *held = larger(*held, if all.f64().is_nan() { f64::NAN } else { most.f64() });
            }
        }
    }
}

/// Points that are moved by a centre when they are loaded, and multiplied by a factor; their squared
/// norms are by another.
pub(super) struct Moved<T> {
    pub(super) points: Points<T>,
    pub(super) centre: Vec<T>,
    pub(super) numbers: f64,
    pub(super) norms: f64,
}

impl<T: Number> Moved<T> {
    /// Writes some points as columns, `pitch` apart, and their norms.
    ///
    /// # Safety
    /// The points may be read; there is room for them and for their norms.
    pub(super) unsafe fn load(
        &self,
        isa: Isa,
        rows: std::ops::Range<usize>,
        (to, pitch): (*mut T, usize),
        norms: *mut T,
    ) {
        let Moved { points, centre, numbers, norms: of_norms } = self;
        // The next ones, most likely.
        points.fetch(rows.end, rows.len());
        // SAFETY: the caller's promise.
        let norms = unsafe {
            points.load(rows.start, rows.len(), centre.len(), to, pitch);
            std::slice::from_raw_parts_mut(norms, rows.len())
        };
        with_isa(isa, Move { columns: (to, pitch), centre, factors: (*numbers, *of_norms), norms });
    }
}

/// Moves points that have been loaded.
struct Move<'a, T> {
    columns: (*mut T, usize),
    centre: &'a [T],
    /// Those of numbers and of norms.
    factors: (f64, f64),
    norms: &'a mut [T],
}

impl<T: Number> Work for Move<'_, T> {
    #[inline(always)]
    fn run(self) {
        let ((columns, pitch), (factor, of_norms)) = (self.columns, self.factors);
        for (chunk, norms) in self.norms.chunks_mut(CHUNK).enumerate() {
            let (mut sums, mut lows) = ([0.0; CHUNK], [0.0; CHUNK]);
            let held = norms.len();
            let (sums, lows) = (&mut sums[..held], &mut lows[..held]);
            for (c, middle) in self.centre.iter().enumerate() {
                let column = columns.wrapping_add(c * pitch + chunk * CHUNK);
                // SAFETY: as many points have been loaded, and nobody else has them.
                let column = unsafe { std::slice::from_raw_parts_mut(column, held) };
                let middle = middle.f64();
                for k in 0..held {
                    let (d, lost) =
                        add_square::<T>((column[k].f64(), middle), &mut sums[k], &mut lows[k]);
                    column[k] = T::of(factor.mul_add(d, factor * lost));
                }
            }
            for k in 0..held {
                norms[k] = T::of(of_norms * (sums[k] + lows[k]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tilework_layout::Layout;

    use super::super::Source;
    use super::*;

    fn points(numbers: &[f32], row: isize) -> Points<f32> {
        let layout = Layout::new(&[1, 3], &[row, 1], 0).unwrap();
        Points::of(&Source { base: numbers.as_ptr().cast(), layout }, &[])
    }

    #[test]
    fn all_points_are_within_reach() {
        let mut numbers: Vec<f32> =
            (0..3 * 20_000).map(|k| (k as f32 * 0.7).sin() + 100.0).collect();
        let centre = [100.0f32, 99.5, 100.5];
        for far in [0, 19_999, 12_345] {
            let held = std::mem::replace(&mut numbers[3 * far + 1], 107.0);
            let exact = |row: &[f32]| -> f64 {
                let d = row.iter().zip(&centre).map(|(x, c)| f64::from(*x) - f64::from(*c));
                d.map(|d| d * d).sum()
            };
            let largest = numbers.chunks(3).map(exact).fold(0.0, f64::max);
            let course = Course::unheard();
            let reach = |numbers: &[f32]| {
                // SAFETY: there are so many points.
                unsafe { reach_of(Isa::current(), points(numbers, 3), 20_000, &centre, &course) }
            };
            let found = reach(&numbers).unwrap();
            assert!(found.largest >= largest && found.largest <= largest * 1.00001, "{found:?}");
            assert!(found.prefixes >= largest && found.prefixes <= 3.0 * found.largest);
            numbers[3 * far + 1] = f32::NAN;
            assert!(reach(&numbers).unwrap().largest.is_nan());
            numbers[3 * far + 1] = held;
        }
    }

    #[test]
    fn a_look_at_all_points_can_be_stopped() {
        // More than anybody could look at.
        let (numbers, count) = ([1.0f32; 3], 1 << 60);
        let course = Course::heard(tilework_backend::Progress(&|fraction| {
            assert_eq!(fraction, 0.0);
            false
        }));
        let points = points(&numbers, 0);
        // SAFETY: all points are one.
        let found = unsafe { reach_of(Isa::current(), points, count, &[0.0; 3], &course) };
        assert!(found.unwrap_err().to_string().contains("stopped"));
    }
}
