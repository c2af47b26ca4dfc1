//! Partial reductions: states as plain arrays, which can be merged and finished anywhere.
//!
//! Layout, version 1. `values`: `(..., rows, width)` in float32 or float64; `indices`: the same
//! shape, int64, for extremes only; `count`: how many indices were reduced over. The widths and
//! what the numbers mean are those of [`tilework_ops::PairState`].

use tilework_backend::Accumulator;
use tilework_error::{Error, Result, tuple};
use tilework_formula::Reduction;
use tilework_formula::reduction::named;
use tilework_ops::{DType, PairFoldId, PairShape, PairState};

use super::call::{Call, Options};
use super::genred::axis_of;
use super::lazy::{LazyTensor, Numbered};
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
        let weights: Vec<&LazyTensor> = weight.into_iter().collect();
        let Numbered { exprs, arrays, extent, .. } = self.numbered(&weights)?;
        let axis = axis_of(axis)?;
        let reduction = Reduction::new(reduction, &exprs[0], axis, options.k, exprs.get(1))?;
        let last = i64::try_from(extent.rows(axis.reduced())).ok();
        if offset < 0 || last.and_then(|n| offset.checked_add(n)).is_none() {
            return Err(Error::value("partial", format!("the offset {offset} is out of range")));
        }
        let call = Call { reduction: &reduction, arrays: &arrays, extent: &extent };
        let raw = call.states(options, offset)?;
        let values = raw.values.ok_or_else(|| Error::value("partial", "there is no state"))?;
        Ok(Partial {
            fold: reduction.row().fold,
            shape: reduction.shape(),
            dtype: extent.dtype.unwrap_or(DType::Float32),
            count: call.count() as u64,
            values,
            indices: raw.indices,
        })
    }
}

impl Partial {
    /// The version of the layout of [`Partial::arrays`].
    pub const VERSION: u32 = 1;

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
        let row =
            named(reduction).ok_or_else(|| wrong(format!("there is no reduction {reduction}")))?;
        if dim == 0 || k == 0 {
            return Err(wrong("the dimension and K are at least 1".into()));
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
        let (mut states, others) = (self.states::<A>()?, other.states::<A>()?);
        for (state, other) in states.iter_mut().zip(&others) {
            self.fold.merge(self.shape, state, other);
        }
        let (values, indices) = self.arrays_of(states, self.values.shape())?;
        let indices = self.indices.as_ref().map(|_| indices);
        Ok(Partial { values, indices, count: self.count + other.count, ..self.clone() })
    }

    /// The result.
    pub fn finish(&self) -> Result<super::Reduced> {
        match self.values.dtype() {
            DType::Float64 => self.finish_in::<f64>(),
            _ => self.finish_in::<f32>(),
        }
    }

    fn finish_in<A: Accumulator>(&self) -> Result<super::Reduced> {
        let states = self.states::<A>()?.into_iter();
        let states = states.map(|state| self.fold.finish(self.shape, state)).collect();
        let row = self.fold.row();
        let mut shape = self.values.shape().to_vec();
        if let Some(width) = shape.last_mut() {
            *width = self.fold.width(self.shape);
        }
        if row.takes_k && self.shape.dim > 1 {
            shape.pop();
            shape.extend([self.shape.k, self.shape.dim]);
        }
        let (values, indices) = self.arrays_of(states, &shape)?;
        Ok(super::Reduced {
            values: row.gives_values.then(|| values.to_dtype(self.dtype)).transpose()?,
            indices: row.gives_indices.then_some(indices),
        })
    }

    fn states<A: Accumulator>(&self) -> Result<Vec<PairState<A>>> {
        let values = self.values.to_vec::<A>()?;
        let width = self.fold.row().monoid.values(self.shape);
        let indices = self.indices.as_ref().map(|at| at.to_vec::<i64>()).transpose()?;
        let state = |(row, values): (usize, &[A])| PairState {
            count: self.count,
            values: values.to_vec(),
            indices: indices.as_ref().map_or(Vec::new(), |at| at[row * width..][..width].to_vec()),
        };
        Ok(values.chunks_exact(width).enumerate().map(state).collect())
    }

    fn arrays_of<A: Accumulator>(
        &self,
        states: Vec<PairState<A>>,
        shape: &[usize],
    ) -> Result<(Array, Array)> {
        let device = self.values.device();
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        let values: Vec<A> = states.iter().flat_map(|state| state.values.clone()).collect();
        let indices: Vec<i64> = states.into_iter().flat_map(|state| state.indices).collect();
        let values = Array::from_slice_on(device, &values)?.reshape(&shape)?;
        let indices = match indices.is_empty() && !values.is_empty() {
            true => Array::from_slice_on(device, &indices)?,
            false => Array::from_slice_on(device, &indices)?.reshape(&shape)?,
        };
        Ok((values, indices))
    }
}
