//! Exponentials with many weights, in two passes over the pairs.
//!
//! The first finds the largest exponent m of each row, the second the sum of exp(F - m) and that of its products with
//! the weights, which a device may do as a product of matrices. In one pass the largest exponent changes under way, and a
//! thread has a sum to keep for every weight. Both passes together give the state that one gives. Halves are widened
//! before, block by block, since largest exponents are numbers of float32. Called by `call`.

use tilework_backend::{Accuracy, SumScheme};
use tilework_error::{Error, Result};
use tilework_formula::{Expr, Reduction, Variable};
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, PairFoldId};

use super::call::{Call, Options, Raw, Reduced};
use super::cut::{Cut, pieces};
use super::partial::Partial;
use super::parts::{Part, Room, as_one_step};
use super::variable::Extent;
use crate::array::Array;
use crate::s;

/// Weights, and products of them with pairs, below which no device is asked.
const LEAST: usize = 9;
const LITTLE: f64 = 1e8;

/// Bytes of rows and their states that are worked on at once: results are made of these in several steps, and all of that is
/// to be less than 64 MiB.
const BLOCK: usize = 8 << 20;

/// Bytes of halves of the index that is reduced over, which are widened for every block of rows: all of them, or none.
const HALVES: usize = 16 << 20;

/// The two reductions.
pub(super) struct TwoPasses {
    tops: Reduction,
    /// Of the variables and, behind them, the largest exponents.
    sums: Reduction,
    cut: Cut,
}

/// Whether the numbers of a call are to be widened.
fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

/// What a call computes with, for both passes.
fn widened(extent: &Extent) -> Extent {
    let widen = |dtype| if is_half(dtype) { DType::Float32 } else { dtype };
    Extent { dtype: extent.dtype.map(widen), ..extent.clone() }
}

/// The arrays of a call, of which those that its formula has are so widened.
fn widened_arrays(call: &Call<'_>) -> Result<Vec<Array>> {
    let mut arrays = call.arrays.to_vec();
    if is_half(call.dtype()) {
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            let array = &mut arrays[variable.position];
            *array = array.astype(DType::Float32)?;
        }
    }
    Ok(arrays)
}

/// The largest finite number.
fn largest(dtype: DType) -> f64 {
    if dtype == DType::Float64 { f64::MAX } else { f64::from(f32::MAX) }
}

impl TwoPasses {
    /// None where the device makes no product of matrices of the second one.
    pub(super) fn of(call: &Call<'_>, options: &Options<'_>) -> Result<Option<TwoPasses>> {
        let Some(weight) = call.reduction.weight() else { return Ok(None) };
        let rows = call.extent.rows(call.reduction.axis().survivor());
        let products =
            [rows, call.count(), weight.dim()].iter().map(|&n| n as f64).product::<f64>();
        let may = weight.dim() >= LEAST
            && products >= LITTLE
            && call.reduction.row().monoid == Monoid::Shifted
            && options.sums == SumScheme::Blocks
            && options.accuracy == Accuracy::Declared;
        if !may {
            return Ok(None);
        }
        let passes = TwoPasses::new(call, options, weight)?;
        if is_half(call.dtype()) && passes.cut.reduced < call.count() {
            return Ok(None);
        }
        let batches = passes.cut.batch.iter().fold(1, |all: usize, &n| all.saturating_mul(n));
        let sizes = [batches, passes.cut.surviving.min(rows), call.count()];
        let sums = Call::new(&passes.sums, call.arrays, &widened(call.extent)).lowered(options)?;
        Ok(call.device().multiplies(&sums.tape, sizes).then_some(passes))
    }

    fn new(call: &Call<'_>, options: &Options<'_>, weight: &Expr) -> Result<TwoPasses> {
        let (formula, axis) = (call.reduction.formula(), call.reduction.axis());
        let tops = PairFoldId::MaxSumShiftExp.row().name;
        let tops = Reduction::new(tops, formula, axis, None, None)?;
        let (position, category) = (call.arrays.len(), axis.survivor());
        let top = Expr::variable(Variable { position, dim: 1, category })?;
        // An infinite exponent leaves only others like it, each of which counts one.
        let [low, high] = [-largest(call.dtype()), 0.0].map(Expr::constant);
        let exponential = formula.subtract(&top)?.clamp(&low, &high)?.exp()?;
        // Both sums of one pass, so that means are means of the weights, however exponents are rounded.
        let sums = exponential.multiply(&Expr::concat(&[weight.clone(), Expr::constant(1.0)])?)?;
        let sums = Reduction::new(PairFoldId::Sum.row().name, &sums, axis, None, None)?;
        let block = if is_half(call.dtype()) { [BLOCK / 2, HALVES] } else { [BLOCK, usize::MAX] };
        Ok(TwoPasses { tops, sums, cut: Cut::of(call, options, block)? })
    }

    /// The result.
    pub(super) fn run(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Reduced> {
        let finished = |call: &Call<'_>, values: Array| {
            Partial::with(call, Raw { values: Some(values), indices: None })?.finish()
        };
        self.in_blocks(call, options, || call.room(), finished)
    }

    /// The states.
    pub(super) fn states(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Raw> {
        let as_they_are =
            |_: &Call<'_>, values: Array| Ok(Reduced { values: Some(values), indices: None });
        let Reduced { values, indices } =
            self.in_blocks(call, options, || call.state_room(options), as_they_are)?;
        Ok(Raw { values, indices })
    }

    /// What is made of the states of some rows after others.
    fn in_blocks(
        &self,
        call: &Call<'_>,
        options: &Options<'_>,
        room: impl FnOnce() -> Result<Reduced>,
        made: impl Fn(&Call<'_>, Array) -> Result<Reduced>,
    ) -> Result<Reduced> {
        let survivor = call.reduction.axis().survivor();
        as_one_step(call, || {
            let [batches, rows] = self.cut.counts(call);
            let mut room = Room::new(call.device(), batches.saturating_mul(rows), room)?;
            for (batches, done) in self.cut.batches(&call.extent.batch) {
                let batch = Part::of_batches(call, &batches)?;
                let whole = batch.call(call);
                options.part(done, |options| {
                    for (rows, done) in pieces(call.extent.rows(survivor), self.cut.surviving) {
                        let part = Part::of(&whole, survivor, &rows)?;
                        let part = part.call(&whole);
                        let state = options.part(done, |options| self.state(&part, options))?;
                        room.put(made(&part, state)?, (batches.clone(), rows))?;
                    }
                    Ok::<_, Error>(())
                })?;
            }
            room.finish()
        })
    }

    /// The largest exponent, the sum of exponentials, and that of their products with each weight.
    fn state(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Array> {
        let (mut arrays, extent) = (widened_arrays(call)?, widened(call.extent));
        let tops = Call::new(&self.tops, &arrays, &extent);
        let tops = options.pass(0, 2, |options| tops.run(options))?.only()?;
        let top = tops.slice(&s![Ellipsis, 0..1])?;
        // Where nothing counts, nothing is to be infinite.
        arrays.push(top.clip(-largest(call.dtype()), largest(call.dtype()))?);
        let sums = Call::new(&self.sums, &arrays, &extent);
        let sums = options.pass(1, 2, |options| sums.run(options))?.only()?;
        let [weighted, plain] =
            [s![Ellipsis, ..-1], s![Ellipsis, -1..]].map(|part| sums.slice(&part));
        crate::concat(&[&top, &plain?, &weighted?], -1)
    }

    /// How the device would do it.
    pub(super) fn explain(&self, call: &Call<'_>, options: &Options<'_>) -> Result<String> {
        let survivor = call.reduction.axis().survivor();
        let rows = call.extent.rows(survivor).min(self.cut.surviving);
        let lens = call.extent.batch.iter().zip(&self.cut.batch);
        let batches: Vec<_> = lens.map(|(&n, &len)| 0..len.min(n)).collect();
        let batch = Part::of_batches(call, &batches)?;
        let part = Part::of(&batch.call(call), survivor, &(0..rows))?;
        let part = part.call(call);
        let (mut arrays, extent) = (widened_arrays(&part)?, widened(part.extent));
        let tops = Call::new(&self.tops, &arrays, &extent).explain(options)?;
        let shape: Vec<usize> = extent.batch.iter().copied().chain([rows, 1]).collect();
        arrays.push(Array::zeros_on(part.device(), &shape, extent.dtype.unwrap_or(part.dtype()))?);
        let sums = Call::new(&self.sums, &arrays, &extent).explain(options)?;
        let blocks = self.cut.counts(call).iter().product::<usize>();
        let blocks =
            if blocks > 1 { format!(", {blocks} times {rows} rows") } else { String::new() };
        Ok(format!("{} in two passes{blocks}. First\n{tops}Then\n{sums}", call.reduction))
    }
}

#[cfg(test)]
mod tests {
    use tilework_formula::Axis;

    use super::*;

    /// In this dtype over this axis, so many batches and rows at once: a row of ordinary exponents, one that is all -inf, one in which
    /// some are infinite, and one of NaN.
    fn agree(dtype: DType, axis: Axis, batch: &[usize], cut: (&[usize], usize), near: f64) {
        let rng = crate::Rng::new(11);
        let draw = |n: usize, dim: usize| {
            rng.normal(&[batch, &[n, dim]].concat(), DType::Float64).unwrap().astype(dtype).unwrap()
        };
        let (x, y, b) = (draw(4, 3), draw(7, 3), draw(7, 2));
        x.set(&s![Ellipsis, 2, ..], 0.0).unwrap();
        x.set(&s![Ellipsis, 2, 1], largest(dtype)).unwrap();
        let odd = Array::from_slice(&[0.0, f64::NEG_INFINITY, 0.0, f64::NAN]).unwrap();
        let odd = odd.reshape(&[4, 1]).unwrap().astype(dtype).unwrap();
        let (kept, gone) = (axis.survivor(), axis.reduced());
        let arrays = [x, y, b, odd];
        let dims = [(3, kept), (3, gone), (2, gone), (1, kept)];
        let variables = [0, 1, 2, 3].map(|position| {
            let (dim, category) = dims[position];
            Variable { position, dim, category }
        });
        let extents = variables.map(|one| Extent::of("test", &arrays[one.position], one).unwrap());
        let [first, rest @ ..] = extents;
        let extent = rest.iter().fold(first, |all, one| all.union("test", one).unwrap());
        let [x, y, b, odd] = variables.map(|one| Expr::variable(one).unwrap());
        let (formula, weight) = (x.dot(&y).unwrap().add(&odd).unwrap(), b.square().unwrap());
        for name in ["LogSumExp", "SumSoftMaxWeight", "Max_SumShiftExpWeight", "LogSumExpWeight"] {
            let reduction = Reduction::new(name, &formula, axis, None, Some(&weight)).unwrap();
            let call = Call::new(&reduction, &arrays, &extent);
            let options = Options::default();
            let cut = Cut { batch: cut.0.into(), surviving: cut.1, reduced: 7 };
            let passes = TwoPasses { cut, ..TwoPasses::new(&call, &options, &weight).unwrap() };
            let whole = call.run(&options).unwrap().only().unwrap();
            let apart = passes.run(&call, &options).unwrap().only().unwrap();
            let states = call.states(&options, 0).unwrap().values.unwrap();
            let apart_states = passes.states(&call, &options).unwrap().values.unwrap();
            for (one, two) in [(whole, apart), (states, apart_states)] {
                assert_eq!((one.shape(), one.dtype()), (two.shape(), two.dtype()), "{name}");
                let floats = |x: &Array| x.astype(DType::Float64).unwrap().to_vec::<f64>().unwrap();
                for (a, b) in floats(&one).into_iter().zip(floats(&two)) {
                    let same =
                        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= near * a.abs();
                    assert!(same, "{name}, {dtype}, {axis:?}: {a} in one pass, {b} in two");
                }
            }
        }
    }

    #[test]
    fn two_passes_give_what_one_gives() {
        let steps = [1e-5, 1e-13, 1.0 / 1024.0, 1.0 / 128.0];
        let dtypes = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];
        for (dtype, near) in dtypes.into_iter().zip(steps) {
            for (axis, rows) in [(Axis::J, 100), (Axis::J, 2), (Axis::I, 100), (Axis::I, 1)] {
                agree(dtype, axis, &[], (&[], rows), near);
                agree(dtype, axis, &[3], (&[3], rows), near);
                agree(dtype, axis, &[3], (&[2], rows), near);
            }
        }
    }
}
