//! Partial reductions: states as plain arrays, which can be merged and finished anywhere.
//!
//! Layout, version 1. `values`: `(..., rows, width)` in float32 or float64; `indices`: the same
//! shape, int64, for extremes only; `count`: how many indices were reduced over. The widths and
//! what the numbers mean are those of [`tilework_ops::PairState`].

use tilework_backend::Accumulator;
use tilework_error::{Error, Result, tuple};
use tilework_formula::reduction::named;
use tilework_ops::{DType, PairFoldId, PairShape, PairState};

use super::call::{Call, Options};
use super::lazy::LazyTensor;
use crate::array::Array;

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
    values: Array,
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
            let last = i64::try_from(call.count()).ok();
            if offset < 0 || last.and_then(|n| offset.checked_add(n)).is_none() {
                let message = format!("the offset {offset} is out of range");
                return Err(Error::value("partial", message));
            }
            Partial::of(call, options, offset)
        })
    }
}

impl Partial {
    /// The version of the layout of [`Partial::arrays`].
    pub const VERSION: u32 = 1;

    /// The state of a call, whose first index is `offset`.
    pub(super) fn of(call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        if call.reduction.components()?.is_some() {
            let message = "a vector has a state for each component; take them one by one";
            return Err(Error::value("partial", message));
        }
        let raw = call.states(options, offset)?;
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
        if dim == 0 || k == 0 {
            return Err(wrong("the dimension and K are at least 1".into()));
        }
        if dim.checked_mul(k).is_none() || weights > isize::MAX as usize {
            return Err(wrong(format!("K = {k} of dimension {dim}, weights {weights}: too many")));
        }
        let shape = PairShape { dim, k: if row.takes_k { k } else { 1 }, weights };
        let width = row.monoid.values(shape);
        let fits = values.ndim() >= 2 && values.shape().last() == Some(&width);
        let float = matches!(values.dtype(), DType::Float32 | DType::Float64);
        let needs = row.monoid.indices(shape) > 0;
        let indices = indices.filter(|_| needs);
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
        Ok(Partial { fold: row.fold, shape, dtype, count, values, indices })
    }

    /// Both together; indices are exact whatever the order.
    pub fn merge(&self, other: &Partial) -> Result<Partial> {
        let alike = self.fold.row().monoid == other.fold.row().monoid
            && self.shape == other.shape
            && self.values.shape() == other.values.shape()
            && self.values.dtype() == other.values.dtype();
        if !alike {
            let message = "the states are of different reductions, shapes or dtypes";
            return Err(Error::value("merge", message));
        }
        match self.values.dtype() {
            DType::Float64 => self.merge_in::<f64>(other),
            _ => self.merge_in::<f32>(other),
        }
    }

    fn merge_in<A: Accumulator>(&self, other: &Partial) -> Result<Partial> {
        let (mut values, others) = (self.values.to_vec::<A>()?, other.values.to_vec::<A>()?);
        let (mut indices, other_indices) = (self.indices_or_none()?, other.indices_or_none()?);
        let width = self.fold.row().monoid.values(self.shape).max(1);
        let mut state = self.fold.init::<A>(self.shape);
        let mut more = state.clone();
        for row in 0..values.len() / width {
            let part = row * width..(row + 1) * width;
            state.values.copy_from_slice(&values[part.clone()]);
            more.values.copy_from_slice(&others[part.clone()]);
            if !indices.is_empty() {
                state.indices.copy_from_slice(&indices[part.clone()]);
                more.indices.copy_from_slice(&other_indices[part.clone()]);
            }
            self.fold.merge(self.shape, &mut state, &more);
            values[part.clone()].copy_from_slice(&state.values);
            if !indices.is_empty() {
                indices[part].copy_from_slice(&state.indices);
            }
        }
        let shape = self.values.shape();
        Ok(Partial {
            values: self.array_of(&values, shape)?,
            indices: self.indices.as_ref().map(|_| self.array_of(&indices, shape)).transpose()?,
            count: self.count.saturating_add(other.count),
            ..self.clone()
        })
    }

    fn indices_or_none(&self) -> Result<Vec<i64>> {
        self.indices.as_ref().map_or(Ok(Vec::new()), |indices| indices.to_vec::<i64>())
    }

    /// The result.
    pub fn finish(&self) -> Result<super::Reduced> {
        match self.values.dtype() {
            DType::Float64 => self.finish_in::<f64>(),
            _ => self.finish_in::<f32>(),
        }
    }

    fn finish_in<A: Accumulator>(&self) -> Result<super::Reduced> {
        let (values, indices) = (self.values.to_vec::<A>()?, self.indices_or_none()?);
        let (row, width) = (self.fold.row(), self.fold.row().monoid.values(self.shape).max(1));
        let mut finished: (Vec<A>, Vec<i64>) = (Vec::new(), Vec::new());
        for (k, values) in values.chunks_exact(width).enumerate() {
            let indices = if indices.is_empty() { &[] } else { &indices[k * width..][..width] };
            let state =
                PairState { count: self.count, values: values.to_vec(), indices: indices.to_vec() };
            let state = self.fold.finish(self.shape, state);
            finished.0.extend(state.values);
            finished.1.extend(state.indices);
        }
        let mut shape = self.values.shape().to_vec();
        if let Some(width) = shape.last_mut() {
            *width = self.fold.width(self.shape);
        }
        if row.takes_k && self.shape.dim > 1 {
            shape.pop();
            shape.extend([self.shape.k, self.shape.dim]);
        }
        let values = || self.array_of(&finished.0, &shape)?.to_dtype(self.dtype);
        let indices = || self.array_of(&finished.1, &shape);
        Ok(super::Reduced {
            values: row.gives_values.then(values).transpose()?,
            indices: row.gives_indices.then(indices).transpose()?,
        })
    }

    fn array_of<T: crate::Element>(&self, elements: &[T], shape: &[usize]) -> Result<Array> {
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        Array::from_slice_on(self.values.device(), elements)?.reshape(&shape)
    }
}
