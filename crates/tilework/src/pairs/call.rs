//! From a reduction and its arrays to the request: plans, outputs, broadcasting.
//!
//! Tapes are kept by formula, so that a second call of the same formula costs a look-up. A
//! reduction over i is the one over j of the formula with i and j exchanged. May assume arrays that
//! fit their variables (`variable`); called by `lazy`, `genred`, `gradient` and `partial`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use smallvec::SmallVec;
use tilework_backend::{PairReduce, Progress, Request, SumScheme, ViewRef};
use tilework_error::{Error, Result};
use tilework_formula::{Axis, Category, Expr, Lowered, Reduction, lower};
use tilework_layout::{Dims, Layout};
use tilework_ops::DType;

use super::variable::Extent;
use crate::array::Array;
use crate::device::Device;

/// How a reduction is done, and what it takes beside the formula.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// How many values are kept, for the reductions that keep several.
    pub k: Option<usize>,
    /// How sums are taken.
    pub sums: SumScheme,
    /// Is told the fraction that is done, from any thread, and says whether to go on.
    pub progress: Option<Progress<'a>>,
}

/// What a reduction gives.
#[derive(Debug, Clone)]
pub struct Reduced {
    /// Values, in the variables' dtype.
    pub values: Option<Array>,
    /// Indices, int64.
    pub indices: Option<Array>,
}

impl Reduced {
    /// The values, or the indices of a reduction that gives only those.
    pub fn only(self) -> Result<Array> {
        let found = self.values.or(self.indices);
        found.ok_or_else(|| Error::value("reduction", "there is no result"))
    }
}

/// What tapes are kept by: formulas, the dtype of variables, and whether i and j are exchanged.
type Key = (SmallVec<[Expr; 2]>, DType, bool);

/// Tapes kept at most; beyond that all are forgotten.
const KEPT: usize = 512;

static PLANS: LazyLock<Mutex<HashMap<Key, Arc<Lowered>>>> = LazyLock::new(Mutex::default);

/// The tape of some formulas, in which j is reduced.
pub(super) fn plan(outputs: Vec<Expr>, dtype: DType, axis: Axis) -> Result<Arc<Lowered>> {
    let key: Key = (outputs.into(), dtype, axis == Axis::I);
    let plans = || PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lowered) = plans().get(&key) {
        return Ok(lowered.clone());
    }
    let outputs = match axis {
        Axis::J => key.0.to_vec(),
        Axis::I => key.0.iter().map(Expr::transpose).collect::<Result<_>>()?,
    };
    let lowered = Arc::new(lower(&outputs, dtype)?);
    let mut plans = plans();
    if plans.len() >= KEPT {
        plans.clear();
    }
    plans.insert(key, lowered.clone());
    Ok(lowered)
}

/// A reduction with its arrays by position.
pub(super) struct Call<'a> {
    pub(super) reduction: &'a Reduction,
    pub(super) arrays: &'a [Array],
    pub(super) extent: &'a Extent,
}

/// Outputs as they leave the backend: `[batch.., rows, width]`.
pub(super) struct Raw {
    pub(super) values: Option<Array>,
    pub(super) indices: Option<Array>,
}

impl Call<'_> {
    fn dtype(&self) -> DType {
        self.extent.dtype.unwrap_or(DType::Float32)
    }

    /// What states are accumulated in.
    pub(super) fn accumulates(&self, sums: SumScheme) -> DType {
        match (sums, self.dtype()) {
            (SumScheme::Blocks, dtype) if dtype != DType::Float64 => DType::Float32,
            _ => DType::Float64,
        }
    }

    /// How many indices are reduced over.
    pub(super) fn count(&self) -> usize {
        self.extent.rows(self.reduction.axis().reduced())
    }

    /// The result.
    pub(super) fn run(&self, options: &Options<'_>) -> Result<Reduced> {
        let row = self.reduction.row();
        let width = self.reduction.width();
        let values = row.gives_values.then_some((width, self.dtype()));
        let indices = row.gives_indices.then_some(width);
        let raw = self.ask(options, 0, true, values, indices)?;
        let shaped = |array: Option<Array>| array.map(|array| self.ranked(array)).transpose();
        Ok(Reduced { values: shaped(raw.values)?, indices: shaped(raw.indices)? })
    }

    /// States, whose first index is `start`.
    pub(super) fn states(&self, options: &Options<'_>, start: i64) -> Result<Raw> {
        let (monoid, shape) = (self.reduction.row().monoid, self.reduction.shape());
        let values = Some((monoid.values(shape), self.accumulates(options.sums)));
        let indices = Some(monoid.indices(shape)).filter(|width| *width > 0);
        self.ask(options, start, false, values, indices)
    }

    /// The K values of each row on an axis of their own, if they are vectors.
    fn ranked(&self, array: Array) -> Result<Array> {
        let dim = self.reduction.formula().dim();
        if !self.reduction.row().takes_k || dim == 1 {
            return Ok(array);
        }
        let (_, rows) = array.shape().split_last().unwrap_or((&0, &[]));
        let shape: Vec<isize> = rows.iter().map(|&n| n as isize).collect();
        array.reshape(&[&shape[..], &[self.reduction.k() as isize, dim as isize]].concat())
    }

    /// Asks the device for outputs of these widths.
    fn ask(
        &self,
        options: &Options<'_>,
        start: i64,
        finish: bool,
        values: Option<(usize, DType)>,
        indices: Option<usize>,
    ) -> Result<Raw> {
        let (reduction, extent) = (self.reduction, self.extent);
        let device = extent.device.unwrap_or_else(Device::current);
        let lowered = plan(reduction.outputs(), self.dtype(), reduction.axis())?;
        let rows = extent.rows(reduction.axis().survivor());
        let full = |rest: &[usize]| -> Dims { extent.batch.iter().chain(rest).copied().collect() };
        let mut layouts: SmallVec<[Layout; 4]> = SmallVec::new();
        for variable in &lowered.variables {
            let array = self.array(variable.position)?;
            // The tape's j is what is reduced over.
            let shape = match variable.category {
                Category::Parameter => full(&[variable.dim]),
                Category::I => full(&[rows, variable.dim]),
                Category::J => full(&[self.count(), variable.dim]),
            };
            layouts.push(array.layout().broadcast_to(&shape)?);
        }
        let mut inputs: SmallVec<[ViewRef<'_>; 4]> = SmallVec::new();
        for (variable, layout) in lowered.variables.iter().zip(&layouts) {
            inputs.push(self.array(variable.position)?.borrow().with_layout(layout)?);
        }
        let allocate =
            |width: usize, dtype: DType| device.allocate(&full(&[rows, width]), dtype, false);
        let mut value_block = values.map(|(width, dtype)| allocate(width, dtype)).transpose()?;
        let mut index_block = indices.map(|width| allocate(width, DType::Int64)).transpose()?;
        device.run(&Request::PairReduce(PairReduce {
            tape: &lowered.tape,
            fold: reduction.row().fold,
            k: reduction.k(),
            inputs: &inputs,
            n: self.count(),
            start,
            sums: options.sums,
            finish,
            values: value_block.as_mut().map(|block| block.target()),
            indices: index_block.as_mut().map(|block| block.target()),
            progress: options.progress,
        }))?;
        Ok(Raw {
            values: value_block.map(|block| Array::from_fresh(block, device)),
            indices: index_block.map(|block| Array::from_fresh(block, device)),
        })
    }

    fn array(&self, position: usize) -> Result<&Array> {
        let missing = || Error::formula(format!("there is no argument {position}"), None);
        self.arrays.get(position).ok_or_else(missing)
    }
}
