//! From a reduction and its arrays to the request: plans, outputs, broadcasting.
//!
//! Tapes are kept by formula, so that a second call of the same formula costs a look-up. A
//! reduction over i is the one over j of the formula with i and j exchanged. May assume arrays that
//! fit their variables (`variable`); called by `reduce`, `genred`, `gradient` and `partial`. What is
//! long, or done on another device, is done in blocks (`stream`), and exponentials with many weights in `two_passes`.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use tilework_backend::{Accuracy, PairReduce, Progress, Request, Scheme, SumScheme, ViewRef};
use tilework_error::{Error, Result};
use tilework_fork::ForkCache;
use tilework_formula::{Axis, Category, Expr, Lowered, Purpose, Reduction, lower_for};
use tilework_layout::{Dims, Layout};
use tilework_ops::DType;

use super::partial::has_indices;
use super::parts::as_one_step;
use super::stream::Blocks;
use super::two_passes::TwoPasses;
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
    /// Which forms are allowed.
    pub accuracy: Accuracy,
    /// How the plane of pairs is cut.
    pub scheme: Scheme,
    /// Where the work is done, if not where the arrays are: they are copied there block by block,
    /// so that they may be larger than its memory, and the result is where they are.
    pub device: Option<Device>,
    /// Is told the fraction that is done, from any thread, and says whether to go on.
    pub progress: Option<Progress<'a>>,
}

impl Options<'_> {
    /// Does a part of longer work with these options, whose progress is that of the whole.
    pub(super) fn part<R>(&self, done: Range<f64>, work: impl FnOnce(&Options<'_>) -> R) -> R {
        let told = |fraction: f64| {
            let so_far = done.start + fraction * (done.end - done.start);
            self.progress.is_none_or(|progress| progress.goes_on(so_far))
        };
        work(&Options { progress: self.progress.map(|_| Progress(&told)), ..*self })
    }

    /// Tells the fraction that is done; an error if the work is to be stopped.
    pub(super) fn tell(&self, fraction: f64) -> Result<()> {
        match self.progress {
            Some(progress) if !progress.goes_on(fraction) => {
                Err(Error::interrupted("reduction", "stopped on request"))
            }
            _ => Ok(()),
        }
    }

    /// The same for pass `k` of `n`.
    pub(super) fn pass<R>(&self, k: usize, n: usize, work: impl FnOnce(&Options<'_>) -> R) -> R {
        let at = |k: usize| k as f64 / n.max(1) as f64;
        self.part(at(k)..at(k + 1), work)
    }
}

/// What a reduction gives.
#[derive(Debug, Clone)]
pub struct Reduced {
    /// Values, in the variables' dtype; counts in int64.
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

    /// The same on another device.
    pub(super) fn to_device(&self, device: Device) -> Result<Reduced> {
        let moved =
            |array: &Option<Array>| array.as_ref().map(|array| array.to_device(device)).transpose();
        Ok(Reduced { values: moved(&self.values)?, indices: moved(&self.indices)? })
    }
}

/// What a reduction will give, known before any work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The shape, of values and indices alike.
    pub shape: Vec<usize>,
    /// The dtype of what [`Reduced::only`] gives.
    pub dtype: DType,
    /// Whether there are values and indices.
    pub is_two: bool,
}

/// What tapes are kept by: formulas, what they are lowered for, and whether i and j are exchanged.
type Key = (SmallVec<[Expr; 2]>, Purpose, bool);

static PLANS: ForkCache<Key, Arc<Lowered>> = ForkCache::new(512);

/// The tape of some formulas, in which j is reduced.
pub(super) fn plan(outputs: Vec<Expr>, purpose: Purpose, axis: Axis) -> Result<Arc<Lowered>> {
    let key: Key = (outputs.into(), purpose, axis == Axis::I);
    if let Some(lowered) = PLANS.get(&key) {
        return Ok(lowered);
    }
    let outputs = match axis {
        Axis::J => key.0.to_vec(),
        Axis::I => key.0.iter().map(Expr::transpose).collect::<Result<_>>()?,
    };
    let lowered = Arc::new(lower_for(&outputs, purpose)?);
    PLANS.insert(key, lowered.clone());
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

/// Which outputs a request has.
struct Wanted {
    /// Results, not states.
    finish: bool,
    /// How many values of which dtype.
    values: Option<(usize, DType)>,
    /// How many indices.
    indices: Option<usize>,
}

impl Wanted {
    fn results(reduction: &Reduction, dtype: DType) -> Wanted {
        let (row, width) = (reduction.row(), reduction.width());
        Wanted {
            finish: true,
            values: row.gives_values.then_some((width, row.result(dtype))),
            indices: row.gives_indices.then_some(width),
        }
    }

    fn states(call: &Call<'_>, options: &Options<'_>) -> Wanted {
        let (row, shape) = (call.reduction.row(), call.reduction.shape());
        let values = (row.monoid.values(shape), call.holds(options));
        let indices = Some(row.monoid.indices(shape)).filter(|width| *width > 0);
        Wanted { finish: false, values: Some(values), indices }
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(reduction: &'a Reduction, arrays: &'a [Array], extent: &'a Extent) -> Self {
        Call { reduction, arrays, extent }
    }

    pub(super) fn dtype(&self) -> DType {
        self.extent.dtype.unwrap_or(DType::Float32)
    }

    /// Where the arrays are.
    pub(super) fn device(&self) -> Device {
        self.extent.device.unwrap_or_else(Device::current)
    }

    /// What tapes are made for.
    fn purpose(&self, options: &Options<'_>) -> Purpose {
        Purpose { dtype: self.dtype(), cheap: options.accuracy == Accuracy::Declared }
    }

    /// The tape, in which j is reduced.
    pub(super) fn lowered(&self, options: &Options<'_>) -> Result<Arc<Lowered>> {
        plan(self.reduction.outputs(), self.purpose(options), self.reduction.axis())
    }

    /// What states are merged in.
    fn accumulates(&self, sums: SumScheme) -> DType {
        match (sums, self.dtype()) {
            (SumScheme::Double, _) | (_, DType::Float64) => DType::Float64,
            _ => DType::Float32,
        }
    }

    /// What states leave a device in.
    pub(super) fn holds(&self, options: &Options<'_>) -> DType {
        self.reduction.row().states(self.accumulates(options.sums))
    }

    /// How many indices are reduced over.
    pub(super) fn count(&self) -> usize {
        self.extent.rows(self.reduction.axis().reduced())
    }

    /// Whether the formula has no components, so that there is nothing to compute.
    pub(super) fn is_empty(&self) -> bool {
        self.reduction.formula().dim() == 0
    }

    /// The result.
    pub(super) fn run(&self, options: &Options<'_>) -> Result<Reduced> {
        if self.is_empty() {
            return self.made(|shape, dtype| Array::zeros_on(self.device(), shape, dtype));
        }
        if let Some(blocks) = Blocks::of(self, options)? {
            return blocks.run(self, options);
        }
        if let Some(passes) = TwoPasses::of(self, options)? {
            return passes.run(self, options);
        }
        let columns = self.by_components(options, |one, options| one.run(options)?.only())?;
        if columns.is_some() {
            return Ok(Reduced { values: columns, indices: None });
        }
        let wanted = Wanted::results(self.reduction, self.dtype());
        let ((), raw) = self.ask(options, 0, wanted, Device::run)?;
        let shaped = |array: Option<Array>| array.map(|array| self.ranked(array)).transpose();
        Ok(Reduced { values: shaped(raw.values)?, indices: shaped(raw.indices)? })
    }

    /// What the result will be.
    pub(super) fn outline(&self) -> Outline {
        let (reduction, row) = (self.reduction, self.reduction.row());
        let rows = self.extent.rows(reduction.axis().survivor());
        let mut shape: Vec<usize> = self.extent.batch.iter().copied().chain([rows]).collect();
        match reduction.formula().dim() {
            dim if row.takes_k && dim != 1 => shape.extend([reduction.k(), dim]),
            _ => shape.push(reduction.width()),
        }
        let dtype = if row.gives_values { row.result(self.dtype()) } else { DType::Int64 };
        Outline { shape, dtype, is_two: row.gives_values && row.gives_indices }
    }

    /// Arrays for the result, made by a function of their shape and dtype.
    fn made(&self, make: impl Fn(&[usize], DType) -> Result<Array>) -> Result<Reduced> {
        let (row, shape) = (self.reduction.row(), self.outline().shape);
        let values = row.gives_values.then(|| make(&shape, row.result(self.dtype())));
        let indices = row.gives_indices.then(|| make(&shape, DType::Int64));
        Ok(Reduced { values: values.transpose()?, indices: indices.transpose()? })
    }

    /// Room for the result.
    pub(super) fn room(&self) -> Result<Reduced> {
        let operation = self.reduction.row().fold.row().name;
        self.made(|shape, dtype| Array::unset(operation, self.device(), shape, dtype))
    }

    /// Room for states.
    pub(super) fn state_room(&self, options: &Options<'_>) -> Result<Reduced> {
        let wanted = Wanted::states(self, options);
        let rows = self.extent.rows(self.reduction.axis().survivor());
        let make = |(width, dtype): (usize, DType)| {
            let shape: Dims = self.extent.batch.iter().copied().chain([rows, width]).collect();
            Array::unset("partial", self.device(), &shape, dtype)
        };
        let values = wanted.values.map(make).transpose()?;
        let indices = wanted.indices.map(|width| make((width, DType::Int64))).transpose()?;
        Ok(Reduced { values, indices })
    }

    /// How the device would do it.
    pub(super) fn explain(&self, options: &Options<'_>) -> Result<String> {
        if self.is_empty() {
            return Ok(format!("{}\nhas no components: nothing is computed\n", self.reduction));
        }
        if let Some(blocks) = Blocks::of(self, options)? {
            return blocks.explain(self, options);
        }
        if let Some(passes) = TwoPasses::of(self, options)? {
            return passes.explain(self, options);
        }
        if let Some([first, ..]) = self.reduction.components()?.as_deref() {
            let how = Call::new(first, self.arrays, self.extent).explain(options)?;
            return Ok(format!("{} by components, the first of which:\n{how}", self.reduction));
        }
        let lowered = self.lowered(options)?;
        let wanted = Wanted::results(self.reduction, self.dtype());
        let (how, _) = self.ask(options, 0, wanted, Device::explain)?;
        Ok(format!("{}\n{}{how}", self.reduction, lowered.tape))
    }

    /// What work gives for each component, side by side, where devices know states of numbers only.
    fn by_components(
        &self,
        options: &Options<'_>,
        work: impl Fn(&Call<'_>, &Options<'_>) -> Result<Array>,
    ) -> Result<Option<Array>> {
        let Some(components) = self.reduction.components()? else { return Ok(None) };
        let column = |(k, one): (usize, &Reduction)| {
            let call = Call::new(one, self.arrays, self.extent);
            options.pass(k, components.len(), |options| work(&call, options))
        };
        let each = || components.iter().enumerate().map(column).collect::<Result<Vec<_>>>();
        let columns = as_one_step(self, each)?;
        crate::concat(&columns.iter().collect::<Vec<_>>(), -1).map(Some)
    }

    /// States, whose first index is `start`.
    pub(super) fn states(&self, options: &Options<'_>, start: i64) -> Result<Raw> {
        if self.is_empty() {
            let rows = self.extent.rows(self.reduction.axis().survivor());
            let shape: Dims = self.extent.batch.iter().copied().chain([rows, 0]).collect();
            let row = self.reduction.row();
            let empty = |dtype: DType| Array::zeros_on(self.device(), &shape, dtype);
            return Ok(Raw {
                values: Some(empty(self.holds(options))?),
                indices: has_indices(row.monoid).then(|| empty(DType::Int64)).transpose()?,
            });
        }
        if let Some(passes) = TwoPasses::of(self, options)? {
            return passes.states(self, options);
        }
        let missing = || Error::value("partial", "there is no state");
        let state = |one: &Call<'_>, options: &Options<'_>| {
            one.states(options, start)?.values.ok_or_else(missing)
        };
        let columns = self.by_components(options, state)?;
        if columns.is_some() {
            return Ok(Raw { values: columns, indices: None });
        }
        self.ask(options, start, Wanted::states(self, options), Device::run).map(|((), raw)| raw)
    }

    /// The K values of each row on an axis of their own, if they are vectors.
    fn ranked(&self, array: Array) -> Result<Array> {
        if !self.reduction.row().takes_k || self.reduction.formula().dim() == 1 {
            return Ok(array);
        }
        let shape = self.outline().shape;
        array.reshape(&shape.iter().map(|&n| n as isize).collect::<Vec<_>>())
    }

    /// Makes the request, asks the device through one of its doors, and gives the outputs.
    fn ask<R>(
        &self,
        options: &Options<'_>,
        start: i64,
        wanted: Wanted,
        door: impl FnOnce(Device, &'static str, &Request<'_>) -> Result<R>,
    ) -> Result<(R, Raw)> {
        let (reduction, extent) = (self.reduction, self.extent);
        let device = self.device();
        let lowered = self.lowered(options)?;
        let rows = extent.rows(reduction.axis().survivor());
        let full = |rest: &[usize]| -> Dims { extent.batch.iter().chain(rest).copied().collect() };
        // Batch axes of one element are none to devices: what has one batch is planned as such.
        let of_one = |axis: &usize| extent.batch[*axis] == 1;
        let ones: SmallVec<[isize; 4]> =
            (0..extent.batch.len()).filter(of_one).map(|axis| axis as isize).collect();
        let mut layouts: SmallVec<[Layout; 4]> = SmallVec::new();
        for variable in &lowered.variables {
            let array = self.array(variable.position)?;
            // The tape's j is what is reduced over.
            let shape = match variable.category {
                Category::Parameter => full(&[variable.dim]),
                Category::I => full(&[rows, variable.dim]),
                Category::J => full(&[self.count(), variable.dim]),
            };
            let whole = array.layout().broadcast_to(&shape)?;
            layouts.push(if ones.is_empty() { whole } else { whole.squeeze(Some(&ones))? });
        }
        let mut inputs: SmallVec<[ViewRef<'_>; 4]> = SmallVec::new();
        for (variable, layout) in lowered.variables.iter().zip(&layouts) {
            inputs.push(self.array(variable.position)?.borrow().with_layout(layout)?);
        }
        let operation = reduction.row().fold.row().name;
        let allocate = |width: usize, dtype: DType| {
            let batch = extent.batch.iter().copied().filter(|&n| n != 1);
            device.allocate(operation, &batch.chain([rows, width]).collect::<Dims>(), dtype, false)
        };
        let mut value_block =
            wanted.values.map(|(width, dtype)| allocate(width, dtype)).transpose()?;
        let mut index_block =
            wanted.indices.map(|width| allocate(width, DType::Int64)).transpose()?;
        let request = Request::PairReduce(PairReduce {
            tape: &lowered.tape,
            fold: reduction.row().fold,
            k: reduction.k(),
            inputs: &inputs,
            n: self.count(),
            start,
            sums: options.sums,
            accuracy: options.accuracy,
            scheme: options.scheme,
            finish: wanted.finish,
            values: value_block.as_mut().map(|block| block.target()),
            indices: index_block.as_mut().map(|block| block.target()),
            progress: options.progress,
        });
        let answer = door(device, operation, &request)?;
        let result = |block| {
            let array = Array::from_fresh(block, device);
            if ones.is_empty() {
                return Ok(array);
            }
            let rest = &array.shape()[array.ndim() - 2..];
            array.reshape(&full(rest).iter().map(|&n| n as isize).collect::<Vec<_>>())
        };
        let raw = Raw {
            values: value_block.map(result).transpose()?,
            indices: index_block.map(result).transpose()?,
        };
        Ok((answer, raw))
    }

    pub(super) fn array(&self, position: usize) -> Result<&Array> {
        let missing = || Error::formula(format!("there is no argument {position}"), None);
        self.arrays.get(position).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lazy::LazyTensor;
    use super::*;

    #[test]
    fn batches_of_one_are_planned_as_none() {
        let points = |m: usize| {
            let numbers = (0..m * 64).map(|k| ((k * 37) % 101) as f32 / 101.0).collect::<Vec<_>>();
            Array::from_slice(&numbers).unwrap().reshape(&[m as isize, 64]).unwrap()
        };
        let (x, y) = (points(300), points(200));
        let kernel = |x: &Array, y: &Array| {
            let (x, y) = (LazyTensor::vi(x).unwrap(), LazyTensor::vj(y).unwrap());
            x.sqdist(&y).unwrap().negative().unwrap().exp().unwrap()
        };
        let plain = kernel(&x, &y);
        let batched =
            kernel(&x.expand_dims(0).unwrap().expand_dims(0).unwrap(), &y.expand_dims(0).unwrap());
        let options = Options { k: Some(3), ..Options::default() };
        for (name, shape) in [("Sum", [1, 1, 300, 1]), ("ArgKMin", [1, 1, 300, 3])] {
            let options = Options { k: options.k.filter(|_| name == "ArgKMin"), ..options };
            let how = plain.explain(name, 1, None, &options).unwrap();
            assert_eq!(batched.explain(name, 1, None, &options).unwrap(), how);
            let result = |of: &LazyTensor| of.reduce(name, 1, None, &options).unwrap().only();
            let (ours, wanted) = (result(&batched).unwrap(), result(&plain).unwrap());
            assert_eq!(ours.shape(), shape);
            assert!(ours.is_contiguous());
            let same = ours.reshape(&[300, shape[3] as isize]).unwrap().equal(&wanted).unwrap();
            assert!(same.all(None).unwrap().item::<bool>().unwrap());
            let states = batched.partial(name, 1, None, 0, &options).unwrap();
            assert_eq!(states.finish().unwrap().only().unwrap().shape(), shape);
        }
        // What has several batches keeps those.
        let three = x.reshape(&[1, 3, 100, 64]).unwrap();
        let sums = kernel(&three, &y).sum(1).unwrap();
        assert_eq!(sums.shape(), [1, 3, 100, 1]);
        let other = sums.reshape(&[300, 1]).unwrap();
        let gap = (&other - &plain.sum(1).unwrap()).unwrap().abs().unwrap().max(None).unwrap();
        assert!(gap.item::<f32>().unwrap() < 1e-5 * 200.0);
    }
}
