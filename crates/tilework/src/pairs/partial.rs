//! Partial reductions: states as plain arrays, which can be merged and finished anywhere.
//!
//! Layout, version 1. `values`: `(..., rows, width)` in float32 or float64; `indices`: the same
//! shape, int64, for extremes only; `count`: how many indices were reduced over. The widths and
//! what the numbers mean are those of [`tilework_ops::PairState`].

use tilework_error::{Error, Result, tuple};
use tilework_formula::MAX_DIM;
use tilework_formula::reduction::{Weight, named};
use tilework_ops::pair_fold::{Finish, Monoid};
use tilework_ops::{DType, Kind, PairFoldId, PairShape};

use super::call::{Call, Options, Raw};
use super::lazy::LazyTensor;
use super::stream;
use crate::array::{Array, Direction};
use crate::device::Device;
use crate::s;

/// Whether states have indices beside their values, however many components there are.
pub(super) fn has_indices(monoid: Monoid) -> bool {
    monoid.indices(PairShape { dim: 1, k: 1, weights: 0 }) > 0
}

/// A reduction over some of the indices.
///
/// ```
/// use tilework::pairs::{LazyTensor, Options};
/// use tilework::{Array, s};
/// let points = Array::from_nested(&[[4.0f64], [2.0], [9.0], [2.0]])?;
/// let x = LazyTensor::vi(&Array::from_nested(&[[2.5f64]])?)?;
/// let part = |first: isize| {
///     let y = LazyTensor::vj(&points.slice(&s![first..first + 2])?)?;
///     x.sqdist(&y)?.partial("ArgMin", 1, None, first as i64, &Options::default())
/// };
/// let nearest = part(2)?.merge(&part(0)?)?.finish()?.only()?;
/// assert_eq!(nearest.to_vec::<i64>()?, [1]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Partial {
    fold: PairFoldId,
    shape: PairShape,
    dtype: DType,
    count: u64,
    pub(super) values: Array,
    indices: Option<Array>,
}

impl LazyTensor {
    /// The state of a reduction over the rows at hand, the first of which has the index `offset`
    /// of a longer array.
    pub fn partial(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        offset: i64,
        options: &Options<'_>,
    ) -> Result<Partial> {
        self.with_call(reduction, axis, weight, options.k, |call| {
            Partial::at(call, options, offset)
        })
    }
}

impl Partial {
    /// The version of the layout of [`Partial::arrays`].
    pub const VERSION: u32 = 1;

    /// The state of a call, in blocks where it is long, whose first index is `offset`.
    pub(super) fn at(call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        let last = i64::try_from(call.count()).ok();
        if offset < 0 || last.and_then(|n| offset.checked_add(n)).is_none() {
            let message = format!("the offset {offset} is out of range");
            return Err(Error::value("partial", message));
        }
        stream::partial(call, options, offset)
    }

    /// The state of a call, whose first index is `offset`.
    pub(super) fn of(call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        Partial::with(call, call.states(options, offset)?)
    }

    /// The state of a call, as it came from the device.
    pub(super) fn with(call: &Call<'_>, raw: Raw) -> Result<Partial> {
        let values = raw.values.ok_or_else(|| Error::value("partial", "there is no state"))?;
        Ok(Partial {
            fold: call.reduction.row().fold,
            shape: call.reduction.shape(),
            dtype: call.dtype(),
            count: call.count() as u64,
            values,
            indices: raw.indices,
        })
    }

    pub(super) fn monoid(&self) -> Monoid {
        self.fold.row().monoid
    }

    /// A state of no pairs with these values.
    pub(super) fn of_no_pairs(&self, values: Array) -> Partial {
        Partial { values, count: 0, ..self.clone() }
    }

    /// The same state in float64, where merging rounds.
    pub(super) fn widened(&self) -> Result<Partial> {
        let rounds = matches!(self.monoid(), Monoid::Add | Monoid::Multiply | Monoid::Shifted);
        let dtype = if rounds { DType::Float64 } else { self.values.dtype() };
        Ok(Partial { values: self.values.to_dtype(dtype)?, ..self.clone() })
    }

    /// The same state on another device.
    pub fn to_device(&self, device: Device) -> Result<Partial> {
        let indices = self.indices.as_ref().map(|indices| indices.to_device(device)).transpose()?;
        Ok(Partial { values: self.values.to_device(device)?, indices, ..self.clone() })
    }

    /// What [`Partial::from_arrays`] takes beside the arrays: the reduction's name, the formula's
    /// dimension, K and the weight's dimension, the dtype of the result.
    pub fn layout(&self) -> (&'static str, (usize, usize, usize), DType) {
        let PairShape { dim, k, weights } = self.shape;
        (self.fold.row().name, (dim, k, weights), self.dtype)
    }

    /// Count, values, and indices for extremes.
    pub fn arrays(&self) -> (u64, Array, Option<Array>) {
        (self.count, self.values.clone(), self.indices.clone())
    }

    /// A state from its arrays: the reduction's name, the formula's dimension, K (else 1), the
    /// weight's dimension (else 0), the dtype of the result.
    pub fn from_arrays(
        reduction: &str,
        (dim, k, weights): (usize, usize, usize),
        dtype: DType,
        (count, values, indices): (u64, Array, Option<Array>),
    ) -> Result<Partial> {
        let wrong = |message: String| Error::value("Partial", message);
        let row = named(reduction)?;
        if k == 0 {
            return Err(wrong("K is at least 1".into()));
        }
        // The limit that formulas have, so that a state says no more numbers than can be had.
        if dim.saturating_mul(k).max(weights) > MAX_DIM {
            let message =
                format!("K = {k} of dimension {dim}, weights {weights}: more than {MAX_DIM}");
            return Err(wrong(message));
        }
        let shape = PairShape { dim, k: if row.takes_k { k } else { 1 }, weights };
        if !row.takes(shape) {
            return Err(wrong(format!("{reduction} takes a number, not a vector of {dim}")));
        }
        if weights > 0 && row.weight == Weight::None {
            return Err(wrong(format!("{reduction} has no weights, not {weights}")));
        }
        let width = row.monoid.values(shape);
        let fits = values.ndim() >= 2 && values.shape().last() == Some(&width);
        let float = matches!(values.dtype(), DType::Float32 | DType::Float64);
        let needs = has_indices(row.monoid);
        if dtype.kind() != Kind::Float {
            return Err(wrong(format!("results are in real floats, not in {dtype}")));
        }
        if indices.is_some() && !needs {
            return Err(wrong(format!("{reduction} has no indices")));
        }
        let with_indices = match &indices {
            Some(at) => at.shape() == values.shape() && at.dtype() == DType::Int64,
            None => !needs,
        };
        if !fits || !float || !with_indices {
            let message = format!(
                "{reduction} has values of shape (..., rows, {width}) in float32 or float64{}, not {} of {}",
                if needs { " and indices of the same shape in int64" } else { "" },
                tuple(values.shape()),
                values.dtype()
            );
            return Err(wrong(message));
        }
        let holds = |found: &Array| -> Result<bool> { found.any(())?.item::<bool>() };
        if let Some(at) = &indices {
            // -1 marks what was not found. The last index is not known: the first need not be 0.
            if holds(&at.less(-1)?)? {
                return Err(wrong(format!("{reduction} has indices below -1")));
            }
            if count == 0 && holds(&at.greater_equal(0)?)? {
                return Err(wrong(format!("{reduction} of 0 values has indices")));
            }
        }
        // A mean of nothing that has a sum would be infinite, and wrong after the next merge.
        if count == 0 && row.finish == Finish::OverCount && holds(&values)? {
            return Err(wrong(format!("{reduction} of 0 values has sums that are not 0")));
        }
        Ok(Partial { fold: row.fold, shape, dtype, count, values, indices })
    }

    /// Both together, if they are states of one reduction in one dtype; indices are exact whatever the
    /// order.
    pub fn merge(&self, other: &Partial) -> Result<Partial> {
        let alike = (self.fold, self.dtype) == (other.fold, other.dtype)
            && self.shape == other.shape
            && self.values.shape() == other.values.shape()
            && self.values.dtype() == other.values.dtype();
        if !alike {
            let told = |state: &Partial| {
                let (name, shape) = (state.fold.row().name, tuple(state.values.shape()));
                format!("{name} in {} with values {} {shape}", state.dtype, state.values.dtype())
            };
            let message = format!(
                "the states are of different reductions, shapes or dtypes: {}, and {}",
                told(self),
                told(other)
            );
            return Err(Error::value("merge", message));
        }
        let (values, indices) = match (&self.indices, &other.indices) {
            (Some(at), Some(other_at)) => self.merged_extremes(at, (&other.values, other_at))?,
            _ => (self.merged_sums(&other.values)?, None),
        };
        let count = self.count.saturating_add(other.count);
        Ok(Partial { values, indices, count, ..self.clone() })
    }

    /// Values that are merged number by number, or sums of exponentials: where the arrays are, with
    /// all that the device has.
    fn merged_sums(&self, others: &Array) -> Result<Array> {
        let values = &self.values;
        match self.monoid() {
            Monoid::Multiply => values * others,
            // Truths are 0 and 1.
            Monoid::Any => values.maximum(others),
            Monoid::All => values.minimum(others),
            Monoid::Shifted => {
                let ((held, sums), (taken, other_sums)) =
                    (self.exponents_and_sums(values)?, self.exponents_and_sums(others)?);
                let largest = held.maximum(&taken)?;
                // Equal infinities would give inf - inf; their scale factor is one.
                let scaled = |of: &Array, sums: &Array| -> Result<Array> {
                    let factor = (of - &largest)?.exp()?;
                    &crate::select(&of.equal(&largest)?, 1.0, &factor)? * sums
                };
                let sums = (&scaled(&held, &sums)? + &scaled(&taken, &other_sums)?)?;
                self.joined(&largest, &sums)
            }
            _ => values + others,
        }
    }

    /// The best of both, where the arrays are.
    fn merged_extremes(
        &self,
        at: &Array,
        (others, other_at): (&Array, &Array),
    ) -> Result<(Array, Option<Array>)> {
        let values = &self.values;
        let direction = match self.monoid() {
            Monoid::Largest => Direction::Descending,
            _ => Direction::Ascending,
        };
        if self.shape.k > 1 {
            let both = |held: &Array, taken: &Array| {
                crate::concat(&[&self.ranked(held)?, &self.ranked(taken)?], -2)
            };
            let (values, indices) = (both(values, others)?, both(at, other_at)?);
            // By index, places that are not taken last, and then by value: equal ones keep that order.
            let places = crate::select(&indices.less(0)?, i64::MAX, &indices)?
                .argsort(-2, Direction::Ascending)?;
            let by_index = |of: &Array| of.take_along_axis(&places, -2);
            let (values, indices) = (by_index(&values)?, by_index(&indices)?);
            let order = values.argsort(-2, direction)?;
            let best = order.slice(&s![Ellipsis, ..self.shape.k as isize, ..])?;
            let shape: Vec<isize> = at.shape().iter().map(|&n| n as isize).collect();
            let best_of = |of: &Array| of.take_along_axis(&best, -2)?.reshape(&shape);
            return Ok((best_of(&values)?, Some(best_of(&indices)?)));
        }
        let better = match direction {
            Direction::Descending => others.greater(values)?,
            Direction::Ascending => others.less(values)?,
        };
        let earlier = others.equal(values)?.logical_and(&other_at.less(at)?)?;
        let wins = better.logical_or(&earlier)?.logical_or(&at.less(0)?)?;
        let wins = wins.logical_and(&other_at.greater_equal(0)?)?;
        let indices = crate::select(&wins, other_at, at)?;
        Ok((crate::select(&wins, others, values)?, Some(indices)))
    }

    /// Extremes with an axis of ranks before that of components.
    fn ranked(&self, extremes: &Array) -> Result<Array> {
        self.with_last_axes(extremes, &[self.shape.k, self.shape.dim])
    }

    /// Exponents and their sums with an axis of components before them.
    fn components(&self, exponentials: &Array) -> Result<Array> {
        self.with_last_axes(exponentials, &[self.shape.dim, self.shape.sums()])
    }

    /// The largest exponents of such values, and their sums, by components.
    pub(super) fn exponents_and_sums(&self, values: &Array) -> Result<(Array, Array)> {
        let values = self.components(values)?;
        Ok((values.slice(&s![Ellipsis, 0..1])?, values.slice(&s![Ellipsis, 1..])?))
    }

    /// Values of largest exponents and their sums.
    pub(super) fn joined(&self, exponents: &Array, sums: &Array) -> Result<Array> {
        self.side_by_side(&crate::concat(&[exponents, sums], -1)?)
    }

    /// What has an axis of components with it in the last one.
    fn side_by_side(&self, of_components: &Array) -> Result<Array> {
        let width = of_components.shape().iter().rev().take(2).product();
        self.with_last_axes(of_components, &[width])
    }

    /// Numbers of rows with these axes after the rows.
    fn with_last_axes(&self, numbers: &Array, own: &[usize]) -> Result<Array> {
        let rows = self.values.shape().iter().take(self.values.ndim() - 1);
        let shape: Vec<isize> = rows.chain(own).map(|&n| n as isize).collect();
        numbers.reshape(&shape)
    }

    /// The result.
    pub fn finish(&self) -> Result<super::Reduced> {
        let row = self.fold.row();
        // The sums that a reduction is about: the weighted ones, or the plain one without weights.
        let first = if self.shape.weights == 0 { 1 } else { 2 };
        let column = |k: isize| self.components(&self.values)?.slice(&s![Ellipsis, k..k + 1]);
        let sums = || self.components(&self.values)?.slice(&s![Ellipsis, first..]);
        let values = || match row.finish {
            Finish::AsIs => Ok(self.values.clone()),
            Finish::OverCount => &self.values / self.count as f64,
            Finish::LogSums => {
                let largest = column(0)?;
                let log = (&largest + &sums()?.log()?)?;
                let log = crate::select(&largest.equal(f64::NEG_INFINITY)?, &largest, &log)?;
                self.side_by_side(&log)
            }
            Finish::ShiftedSums => self.side_by_side(&crate::concat(&[&column(0)?, &sums()?], -1)?),
            Finish::SoftMean => self.side_by_side(&(&sums()? / &column(1)?)?),
        };
        // The K values of each row have an axis of their own, if they are vectors.
        let shaped = |array: Array| match row.takes_k && self.shape.dim != 1 {
            true => self.ranked(&array),
            false => Ok(array),
        };
        let values = || shaped(values()?.to_dtype(row.result(self.dtype))?);
        let indices = row.gives_indices.then_some(self.indices.as_ref()).flatten();
        Ok(super::Reduced {
            values: row.gives_values.then(values).transpose()?,
            indices: indices.map(|indices| shaped(indices.clone())).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_no_rows_says_no_more_numbers_than_a_formula_has() {
        let state = |dim: usize, k: usize, weights: usize| {
            let values = Array::zeros(&[0, dim], DType::Float32).unwrap();
            let arrays = (0, values, None);
            Partial::from_arrays("Sum", (dim, k, weights), DType::Float32, arrays)
        };
        for (dim, k, weights) in [(1 << 58, 1, 0), (1 << 20, 2, 0), (1, 1, 1 << 40)] {
            let message = state(dim, k, weights).unwrap_err().to_string();
            assert!(message.contains("more than 1048576"), "{message}");
        }
        assert!(state(1, 0, 0).unwrap_err().to_string().contains("K is at least 1"));
        assert!(state(1, 1, 2).unwrap_err().to_string().contains("Sum has no weights"));
        let empty = state(1 << 20, 1, 0).unwrap();
        assert_eq!(empty.merge(&empty).unwrap().finish().unwrap().only().unwrap().len(), 0);
    }

    #[test]
    fn a_mean_of_nothing_has_no_sum() {
        let state = |count: u64, sum: f64| {
            let values = Array::full(&[2, 1], sum, DType::Float64).unwrap();
            Partial::from_arrays("Mean", (1, 1, 0), DType::Float64, (count, values, None))
        };
        let both = state(0, 0.0).unwrap().merge(&state(2, 3.0).unwrap()).unwrap();
        assert_eq!(both.finish().unwrap().only().unwrap().to_vec::<f64>().unwrap(), [1.5, 1.5]);
        for sum in [1.0, f64::NAN] {
            let message = state(0, sum).unwrap_err().to_string();
            assert!(message.contains("sums that are not 0"), "{message}");
        }
    }
}
