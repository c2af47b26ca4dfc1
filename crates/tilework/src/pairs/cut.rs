//! Where long calls are cut: between batches first, and rows only inside of what is too large by itself.
//!
//! Blocks of whole batches have results that lie side by side: there are no states to write and merge, and
//! what is read lies together. Rows of all batches would leave a few rows of each, where there are many.
//! Blocks are cut by size, never by what happens to be free: the same call is always cut alike. Called
//! by `stream`.

use std::ops::Range;

use smallvec::SmallVec;
use tilework_error::Result;
use tilework_formula::{Category, Expr};
use tilework_layout::Dims;

use super::call::{Call, Options};

/// How much of a call is done at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// How many indices of each batch axis make a block.
    pub(super) batch: Dims,
    /// How many indices that survive make a block, and how many that are reduced.
    pub(super) surviving: usize,
    pub(super) reduced: usize,
}

/// Indices of every batch axis.
pub(super) type Batches = SmallVec<[Range<usize>; 4]>;

impl Cut {
    /// Blocks of so many bytes of what survives, with its states, and of what is reduced. A row that has
    /// more is a block nevertheless.
    pub(super) fn of(
        call: &Call<'_>,
        options: &Options<'_>,
        [surviving, reduced]: [usize; 2],
    ) -> Result<Cut> {
        let axis = call.reduction.axis();
        let mut survivor = Side::of(call, axis.survivor())?;
        survivor.arrays.push((state_bytes(call, options), call.extent.batch.clone()));
        let sides = [
            (survivor, surviving),
            (Side::of(call, axis.reduced())?, reduced),
            (Side::of(call, Category::Parameter)?, reduced),
        ];
        let mut batch = call.extent.batch.clone();
        for (side, limit) in &sides {
            let fitting = side.fitting(&call.extent.batch, *limit);
            batch.iter_mut().zip(fitting).for_each(|(len, fits)| *len = fits.min(*len));
        }
        let rows = |(side, limit): &(Side, usize)| {
            (limit / side.row_bytes(&batch).max(1)).clamp(1, side.rows.max(1))
        };
        let (surviving, reduced) = (rows(&sides[0]), rows(&sides[1]));
        Ok(Cut { batch, surviving, reduced })
    }

    /// Whether it leaves a call in one piece.
    pub(super) fn is_whole(&self, call: &Call<'_>) -> bool {
        self.batch == call.extent.batch
            && self.surviving >= call.extent.rows(call.reduction.axis().survivor())
            && self.reduced >= call.count()
    }

    /// How many blocks of batches there are, and how many of rows that survive in each.
    pub(super) fn counts(&self, call: &Call<'_>) -> [usize; 2] {
        let pairs = call.extent.batch.iter().zip(&self.batch);
        let counts = pairs.map(|(&n, &len)| count(n, len));
        let rows = call.extent.rows(call.reduction.axis().survivor());
        [counts.fold(1, usize::saturating_mul), count(rows, self.surviving)]
    }

    /// Blocks of batches in row-major order, at least one, each with the part of the work that it is.
    pub(super) fn batches(&self, whole: &[usize]) -> impl Iterator<Item = (Batches, Range<f64>)> {
        let counts: Dims = whole.iter().zip(&self.batch).map(|(&n, &len)| count(n, len)).collect();
        let all = counts.iter().fold(1, |all: usize, &n| all.saturating_mul(n));
        let (whole, lens) = (Dims::from_slice(whole), self.batch.clone());
        (0..all).map(move |block| {
            let mut left = block;
            let mut batches: Batches = whole.iter().map(|&n| 0..n).collect();
            for axis in (0..whole.len()).rev() {
                let start = left % counts[axis] * lens[axis];
                batches[axis] = start..(start + lens[axis]).min(whole[axis]);
                left /= counts[axis];
            }
            let at = |block: usize| block as f64 / all as f64;
            (batches, at(block)..at(block + 1))
        })
    }
}

/// How many blocks of so many indices there are, at least one.
fn count(indices: usize, rows: usize) -> usize {
    indices.div_ceil(rows.max(1)).max(1)
}

/// Blocks of so many indices, at least one, each with the part of the work that it is.
pub(super) fn pieces(
    indices: usize,
    rows: usize,
) -> impl ExactSizeIterator<Item = (Range<usize>, Range<f64>)> {
    (0..count(indices, rows)).map(move |piece| {
        let start = piece * rows;
        let end = start.saturating_add(rows).min(indices);
        let at = |index: usize| index as f64 / indices.max(1) as f64;
        (start..end, at(start)..at(end))
    })
}

/// What a call has of one category.
struct Side {
    rows: usize,
    /// Of each array, the bytes of a row in one batch, and its lengths along all batch axes.
    arrays: Vec<(usize, Dims)>,
}

impl Side {
    fn of(call: &Call<'_>, category: Category) -> Result<Side> {
        let mut arrays = Vec::new();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            if variable.category == category {
                let array = call.array(variable.position)?;
                let own = if category == Category::Parameter { 1 } else { 2 };
                let lens = &array.shape()[..array.ndim().saturating_sub(own)];
                let missing = call.extent.batch.len().saturating_sub(lens.len());
                let lens = std::iter::repeat_n(1, missing).chain(lens.iter().copied()).collect();
                arrays.push((variable.dim.saturating_mul(array.dtype().size()), lens));
            }
        }
        Ok(Side { rows: call.extent.rows(category), arrays })
    }

    /// Bytes of a row in a block of so many batches; what is broadcast along an axis is there once.
    fn row_bytes(&self, batch: &[usize]) -> usize {
        let bytes = |(row, lens): &(usize, Dims)| {
            let own = lens.iter().zip(batch).map(|(&n, &len)| if n == 1 { 1 } else { len });
            own.fold(*row, usize::saturating_mul)
        };
        self.arrays.iter().map(bytes).fold(0, usize::saturating_add)
    }

    fn bytes(&self, batch: &[usize]) -> usize {
        self.row_bytes(batch).saturating_mul(self.rows)
    }

    /// How many indices of each batch axis have at most so many bytes, or one where a batch has more.
    fn fitting(&self, whole: &[usize], limit: usize) -> Dims {
        let mut batch = Dims::from_slice(whole);
        for axis in 0..whole.len() {
            if self.bytes(&batch) <= limit {
                break;
            }
            let with = |len: usize| {
                let mut batch = batch.clone();
                batch[axis] = len;
                self.bytes(&batch)
            };
            let (shared, one) = (with(0), with(1));
            if one > shared {
                // Half for what is cut at least: something large that all batches share would leave
                // room for a few of them only, and be read again for each few.
                let room = limit.saturating_sub(shared).max(limit / 2);
                batch[axis] = (room / (one - shared)).clamp(1, whole[axis].max(1));
            }
        }
        batch
    }
}

/// Bytes of the states of an index in one batch.
fn state_bytes(call: &Call<'_>, options: &Options<'_>) -> usize {
    let (row, shape) = (call.reduction.row(), call.reduction.shape());
    let values = row.monoid.values(shape) * call.holds(options).size();
    values.saturating_add(8 * row.monoid.indices(shape))
}

#[cfg(test)]
mod tests {
    use tilework_formula::{Axis, Reduction, Variable};

    use super::super::variable::Extent;
    use super::*;
    use crate::{Array, DType};

    const LIMIT: usize = 64 << 20;

    /// How the sum over j of distances of points in float32 with 10 components is cut, for x and y of
    /// these shapes, whose last axis is left out; of one number, so that any length has room.
    fn cut(x: &[usize], y: &[usize]) -> (Cut, [usize; 2]) {
        let number = Array::ones(&[], DType::Float32).unwrap();
        let points = |rows: &[usize]| number.broadcast_to(&[rows, &[10]].concat()).unwrap();
        let arrays = [points(x), points(y)];
        let variable = |position: usize, category| Variable { position, dim: 10, category };
        let [i, j] = [variable(0, Category::I), variable(1, Category::J)];
        let extent = Extent::of("x", &arrays[0], i).unwrap();
        let extent = extent.union("y", &Extent::of("y", &arrays[1], j).unwrap()).unwrap();
        let [i, j] = [i, j].map(|variable| Expr::variable(variable).unwrap());
        let formula = i.sqdist(&j).unwrap();
        let reduction = Reduction::new("Sum", &formula, Axis::J, None, None).unwrap();
        let call = Call::new(&reduction, &arrays, &extent);
        let cut = Cut::of(&call, &Options::default(), [LIMIT, LIMIT]).unwrap();
        assert_eq!(cut.is_whole(&call), cut.counts(&call) == [1, 1] && cut.reduced >= call.count());
        let counts = cut.counts(&call);
        (cut, counts)
    }

    #[test]
    fn batches_are_cut_before_rows() {
        let shaped = |batch: &[usize], surviving: usize, reduced: usize| Cut {
            batch: Dims::from_slice(batch),
            surviving,
            reduced,
        };
        // A row of x with its state has 44 bytes, one of y 40.
        let many = LIMIT / (20 * 44);
        assert_eq!(cut(&[200_000, 20], &[200_000, 20]), (shaped(&[many], 20, 20), [3, 1]));
        let (cut_of, counts) = cut(&[5_000_000, 1], &[5_000_000, 2]);
        assert_eq!((cut_of, counts), (shaped(&[LIMIT / 80], 1, 2), [6, 1]));
        // The leading axis first; where one of its indices is too large, the next one too.
        let two = cut(&[200_000, 2, 20], &[200_000, 2, 20]);
        assert_eq!(two, (shaped(&[many / 2, 2], 20, 20), [6, 1]));
        let two = cut(&[2, 200_000, 20], &[2, 200_000, 20]);
        assert_eq!(two, (shaped(&[1, many], 20, 20), [6, 1]));
        let two = cut(&[1, 200_000, 20], &[200_000, 20]);
        assert_eq!(two, (shaped(&[1, many], 20, 20), [3, 1]));
        // Rows inside of a batch that is too large by itself.
        let rows = cut(&[3, 50], &[3, 10_000_000]);
        assert_eq!(rows, (shaped(&[1], 50, LIMIT / 40), [3, 1]));
        let rows = cut(&[3, 4_000_000], &[3, 50]);
        assert_eq!(rows, (shaped(&[1], LIMIT / 44, 50), [3, 3]));
        assert_eq!(cut(&[50], &[10_000_000]), (shaped(&[], 50, LIMIT / 40), [1, 1]));
        assert_eq!(cut(&[7, 50], &[7, 60]), (shaped(&[7], 50, 60), [1, 1]));
        assert_eq!(cut(&[0, 50], &[1, 60]), (shaped(&[0], 50, 60), [1, 1]));
    }

    #[test]
    fn what_all_batches_share_does_not_cut_them() {
        for y in [&[1, 10_000_000][..], &[10_000_000]] {
            let (cut, counts) = cut(&[1000, 20], y);
            assert_eq!((&cut.batch[..], cut.reduced), (&[1000][..], LIMIT / 40));
            assert_eq!(counts, [1, 1]);
        }
        // Each side is cut along the axes that it has.
        let (cut, _) = cut(&[20_000, 1, 100], &[1, 20_000, 100]);
        assert_eq!(cut.batch[..], [LIMIT / (4000 + 400 * 20_000), LIMIT / 4000]);
    }

    #[test]
    fn blocks_of_batches_are_all_of_them_once() {
        let cut = Cut { batch: Dims::from_slice(&[2, 3, 1]), surviving: 1, reduced: 1 };
        let mut found = Vec::new();
        let mut last = 0.0;
        for (batches, done) in cut.batches(&[5, 4, 2]) {
            assert!(done.start == last && done.end > last);
            last = done.end;
            for i in batches[0].clone() {
                for j in batches[1].clone() {
                    found.extend(batches[2].clone().map(|k| (i, j, k)));
                }
            }
        }
        assert_eq!((last, found.len()), (1.0, 40));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 40);
        let none = Cut { batch: Dims::new(), surviving: 1, reduced: 1 };
        assert_eq!(none.batches(&[]).map(|(batches, _)| batches.len()).collect::<Vec<_>>(), [0]);
    }
}
