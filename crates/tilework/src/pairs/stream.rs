//! Reductions block by block, through partial states: long ones, and those on another device.
//!
//! What a device prepares is bounded by the blocks and not by the arrays, and of a memory-mapped array
//! no more than a block is needed at a time, so that arrays may be larger than memory. A device that the
//! arrays are not on gets both sides block by block, so that both may be larger than its memory; of
//! the reduced side the next block is copied while the device works on the last. Blocks are cut by
//! size, never by what happens to be free, and merged in order. Memory of a card is not cut here: its
//! backend bounds what it prepares. Called by `call` and `partial`.

use std::ops::Range;

use tilework_backend::release_pages;
use tilework_error::{Error, Result};
use tilework_formula::{Category, Expr};

use super::call::{Call, Options, Reduced};
use super::partial::Partial;
use super::reduce::rows_of;
use super::variable::Extent;
use crate::array::Array;
use crate::device::Device;

/// Bytes of the reduced side that are worked on at once, and of what survives on another device:
/// there the reduced side is copied once for each of its blocks.
const BLOCK: usize = 64 << 20;
const SURVIVING: usize = 4 * BLOCK;

/// Where a call is done, and how it is cut.
pub(super) struct Blocks {
    device: Device,
    /// How many indices that survive make a block, and how many that are reduced.
    surviving: usize,
    reduced: usize,
}

impl Blocks {
    /// None where the call is done as a whole, where its arrays are.
    pub(super) fn of(call: &Call<'_>, options: &Options<'_>) -> Result<Option<Blocks>> {
        let (home, axis) = (call.device(), call.reduction.axis());
        let device = options.device.unwrap_or(home);
        let surviving = call.extent.rows(axis.survivor());
        if device != home {
            let row = row_bytes(call, axis.survivor())?.saturating_add(state_bytes(call, options));
            return Ok(Some(Blocks {
                device,
                surviving: (SURVIVING / row.max(1)).clamp(1, surviving.max(1)),
                reduced: (BLOCK / row_bytes(call, axis.reduced())?.max(1)).max(1),
            }));
        }
        if call.arrays.iter().map(host_bytes).fold(0, usize::saturating_add) <= 2 * BLOCK {
            return Ok(None);
        }
        // Both sides: what a backend packs is bounded by what it is given.
        let rows = |category| Ok::<_, Error>((BLOCK / row_bytes(call, category)?.max(1)).max(1));
        let (survive, reduced) = (rows(axis.survivor())?, rows(axis.reduced())?);
        let long = survive < surviving || reduced < call.count();
        Ok(long.then(|| Blocks { device, surviving: survive.min(surviving).max(1), reduced }))
    }

    /// The result, where the arrays are.
    pub(super) fn run(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Reduced> {
        let home = call.device();
        let options = Options { device: None, ..*options };
        let mut parts: Vec<Reduced> = Vec::new();
        let survivor = call.reduction.axis().survivor();
        for (rows, done) in pieces(call.extent.rows(survivor), self.surviving) {
            let part = options.part(done, |options| {
                let part = Part::of(call, survivor, &rows)?.kept_on(self.device, call)?;
                self.reduce(&part.call(call), options)
            })?;
            parts.push(part.to_device(home)?);
        }
        joined(parts, call.extent.batch.len())
    }

    /// The result of a call whose surviving side is on the device.
    fn reduce(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Reduced> {
        let reduced = call.reduction.axis().reduced();
        if call.count() > self.reduced {
            return self.states(call, options, 0)?.finish();
        }
        let whole = Part::of(call, reduced, &(0..call.count()))?.on(self.device, call)?;
        whole.call(call).run(options)
    }

    /// The states of a call whose surviving side is on the device; its first index is `offset`.
    fn states(&self, call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        let reduced = call.reduction.axis().reduced();
        let mut states: Option<Partial> = None;
        for (rows, done) in pieces(call.count(), self.reduced) {
            let here = Part::of(call, reduced, &rows)?;
            let there = here.on(self.device, call)?;
            // So that two blocks are there at most: this one, and the one that was worked on.
            self.device.synchronize()?;
            let first = i64::try_from(rows.start).ok().and_then(|start| offset.checked_add(start));
            let first = first
                .ok_or_else(|| Error::index("reduction", format!("{} is no index", rows.start)))?;
            let part = options.part(done, |options| {
                let part = Partial::of(&there.call(call), options, first)?;
                options.tell(1.0).map(|()| part)
            })?;
            here.release_pages(call)?;
            states = Some(match states {
                Some(before) => before.merge(&part)?,
                None => part,
            });
        }
        states.ok_or_else(|| Error::value("reduction", "there is no block"))
    }

    /// The states of a call, all of whose surviving side is on the device meanwhile.
    fn partial(&self, call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        let options = Options { device: None, ..*options };
        let survivor = call.reduction.axis().survivor();
        let all = 0..call.extent.rows(survivor);
        let part = Part::of(call, survivor, &all)?.kept_on(self.device, call)?;
        self.states(&part.call(call), &options, offset)?.to_device(call.device())
    }

    /// How the first block would be done, and how many there are.
    pub(super) fn explain(&self, call: &Call<'_>, options: &Options<'_>) -> Result<String> {
        let (home, axis) = (call.device(), call.reduction.axis());
        let [surviving, reduced] = [axis.survivor(), axis.reduced()];
        let rows = [surviving, reduced].map(|category| call.extent.rows(category));
        let first = Part::of(call, surviving, &(0..self.surviving.min(rows[0])))?;
        let first = first.kept_on(self.device, call)?;
        let first = Part::of(&first.call(call), reduced, &(0..self.reduced.min(rows[1])))?;
        let first = first.on(self.device, call)?;
        let how = first.call(call).explain(&Options { device: None, ..*options })?;
        let outer = match rows[0].div_ceil(self.surviving.max(1)) {
            0 | 1 => String::new(),
            outer => format!("{outer} times "),
        };
        let copied = match home == self.device {
            true => String::new(),
            false => format!(", copied from {home} to {}", self.device),
        };
        let (blocks, rows) = (rows[1].div_ceil(self.reduced), self.reduced.min(rows[1]));
        Ok(format!(
            "{how}blocks    {outer}{blocks} of {rows} like this one, states merged in order{copied}\n"
        ))
    }
}

/// The states of a call, whose first index is `offset`, where its arrays are.
pub(super) fn partial(call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
    match Blocks::of(call, options)? {
        Some(blocks) => blocks.partial(call, options, offset),
        None => Partial::of(call, &Options { device: None, ..*options }, offset),
    }
}

/// Arrays of a part of a call, and their extent.
struct Part {
    arrays: Vec<Array>,
    extent: Extent,
}

impl Part {
    /// Views of some indices.
    fn of(call: &Call<'_>, category: Category, rows: &Range<usize>) -> Result<Part> {
        let mut arrays: Vec<Array> = call.arrays.to_vec();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            if variable.category == category {
                arrays[variable.position] = rows_of(&arrays[variable.position], rows)?;
            }
        }
        Ok(Part { arrays, extent: call.extent.with_rows(category, rows.len()) })
    }

    /// All arrays on a device.
    fn on(&self, device: Device, call: &Call<'_>) -> Result<Part> {
        self.moved(device, call, |_| true)
    }

    /// All but what is reduced on a device.
    fn kept_on(&self, device: Device, call: &Call<'_>) -> Result<Part> {
        let reduced = call.reduction.axis().reduced();
        self.moved(device, call, |category| category != reduced)
    }

    fn moved(
        &self,
        device: Device,
        call: &Call<'_>,
        is: impl Fn(Category) -> bool,
    ) -> Result<Part> {
        let mut arrays = self.arrays.clone();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            if is(variable.category) {
                arrays[variable.position] = arrays[variable.position].to_device(device)?;
            }
        }
        let extent = Extent { device: Some(device), ..self.extent.clone() };
        Ok(Part { arrays, extent })
    }

    fn call<'a>(&'a self, whole: &Call<'a>) -> Call<'a> {
        Call::new(whole.reduction, &self.arrays, &self.extent)
    }

    /// What was read of the reduced side's files is not needed again soon; what survives is read
    /// again for the next block.
    fn release_pages(&self, call: &Call<'_>) -> Result<()> {
        let reduced = call.reduction.axis().reduced();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            let array = &self.arrays[variable.position];
            if variable.category == reduced && array.is_contiguous() {
                let (size, from) = (array.dtype().size(), array.offset());
                release_pages(array.storage(), from * size..(from + array.len()) * size);
            }
        }
        Ok(())
    }
}

/// Blocks of so many indices, at least one, each with the part of the work that it is.
fn pieces(count: usize, rows: usize) -> impl Iterator<Item = (Range<usize>, Range<f64>)> {
    (0..count.max(1)).step_by(rows.max(1)).map(move |start| {
        let end = (start + rows.max(1)).min(count);
        let at = |index: usize| index as f64 / count.max(1) as f64;
        (start..end, at(start)..at(end))
    })
}

/// Results of blocks of rows, as one.
fn joined(mut parts: Vec<Reduced>, axis: usize) -> Result<Reduced> {
    if parts.len() <= 1 {
        return parts.pop().ok_or_else(|| Error::value("reduction", "there is no block"));
    }
    let join = |of: fn(&Reduced) -> Option<&Array>| {
        let arrays: Option<Vec<&Array>> = parts.iter().map(of).collect();
        arrays.map(|arrays| crate::concat(&arrays, axis as isize)).transpose()
    };
    let (values, indices) =
        (join(|part| part.values.as_ref())?, join(|part| part.indices.as_ref())?);
    Ok(Reduced { values, indices })
}

fn host_bytes(array: &Array) -> usize {
    if array.storage().is_on_host() { bytes(array) } else { 0 }
}

fn bytes(array: &Array) -> usize {
    array.len().saturating_mul(array.dtype().size())
}

/// Bytes that an index of a category has, in all arrays and batches.
fn row_bytes(call: &Call<'_>, category: Category) -> Result<usize> {
    let rows = call.extent.rows(category).max(1);
    let mut row = 0usize;
    for variable in Expr::variables_of(&call.reduction.outputs())? {
        if variable.category == category {
            row = row.saturating_add(bytes(call.array(variable.position)?) / rows);
        }
    }
    Ok(row)
}

/// Bytes of the states of an index, in all batches.
fn state_bytes(call: &Call<'_>, options: &Options<'_>) -> usize {
    let (row, shape) = (call.reduction.row(), call.reduction.shape());
    let values = row.monoid.values(shape) * row.states(call.accumulates(options.sums)).size();
    let state = values.saturating_add(8 * row.monoid.indices(shape));
    call.extent.batch.iter().fold(state, |bytes, &n| bytes.saturating_mul(n))
}

#[cfg(test)]
mod tests {
    use tilework_backend::Progress;
    use tilework_formula::reduction::{REDUCTIONS, Weight};
    use tilework_formula::{Axis, Reduction};
    use tilework_ops::PairShape;

    use super::super::variable::Extent;
    use super::*;
    use crate::DType;

    /// Where the arrays are, and where they are not.
    fn devices(home: Device) -> Vec<Device> {
        [home, Device::reference()].into_iter().chain(Device::parse("cuda:0")).collect()
    }

    fn assert_alike(name: &str, whole: &Reduced, parts: &Reduced) {
        if let (Some(a), Some(b)) = (&whole.values, &parts.values) {
            let near = |(a, b): (f64, f64)| a == b || (a - b).abs() < 1e-12 * a.abs();
            let about = |x: &Array| (x.dtype(), x.device(), x.shape().to_vec());
            assert_eq!(about(a), about(b), "{name}");
            let floats = |x: &Array| x.astype(DType::Float64).unwrap().to_vec().unwrap();
            let both = floats(a).into_iter().zip(floats(b));
            assert!(both.into_iter().all(near), "{name}");
        }
        let indices = |at: &Option<Array>| at.as_ref().map(|at| at.to_vec::<i64>().unwrap());
        assert_eq!(indices(&whole.indices), indices(&parts.indices), "{name}");
    }

    #[test]
    fn blocks_give_what_the_whole_gives_and_tell_how_far_they_are() {
        let numbers = |rows: usize, seed: u64| {
            crate::Rng::new(seed).normal(&[rows, 2], DType::Float64).unwrap()
        };
        let arrays = [numbers(5, 1), numbers(23, 2)];
        let home = arrays[0].device();
        let (x, y) = (Expr::vi(0, 2).unwrap(), Expr::vj(1, 2).unwrap());
        let (number, vector) = (x.dot(&y).unwrap(), x.multiply(&y).unwrap());
        let weight = y.square().unwrap();
        let extent = Extent {
            m: Some(5),
            n: Some(23),
            dtype: Some(DType::Float64),
            device: Some(home),
            ..Extent::default()
        };
        for row in REDUCTIONS {
            let weight = (row.weight == Weight::Required).then_some(&weight);
            let k = row.takes_k.then_some(3);
            let formulas = [(Axis::I, &number), (Axis::J, &number), (Axis::J, &vector)];
            let shape =
                |dim: usize| PairShape { dim, k: 1, weights: usize::from(weight.is_some()) };
            for (axis, formula) in formulas.into_iter().filter(|(_, f)| row.takes(shape(f.dim()))) {
                let reduction = Reduction::new(row.name, formula, axis, k, weight).unwrap();
                let call = Call::new(&reduction, &arrays, &extent);
                let last = std::sync::Mutex::new(0.0);
                let told = |fraction: f64| {
                    let mut last = last.lock().unwrap();
                    assert!((*last..=1.0).contains(&fraction), "{fraction} after {last}");
                    *last = fraction;
                    true
                };
                let options = Options { progress: Some(Progress(&told)), ..Options::default() };
                let whole = call.run(&Options::default()).unwrap();
                for device in devices(home) {
                    for (surviving, reduced) in [(100, 4), (2, 4), (2, 100)] {
                        *last.lock().unwrap() = 0.0;
                        let blocks = Blocks { device, surviving, reduced };
                        assert_alike(row.name, &whole, &blocks.run(&call, &options).unwrap());
                        let states = blocks.partial(&call, &Options::default(), 0).unwrap();
                        assert_alike(row.name, &whole, &states.finish().unwrap());
                    }
                    let there = Options { device: Some(device), ..Options::default() };
                    let states = partial(&call, &there, 0).unwrap();
                    assert_alike(row.name, &whole, &states.finish().unwrap());
                }
            }
        }
    }

    #[test]
    fn work_on_another_device_is_stopped_and_explained_as_here() {
        let x = crate::Rng::new(3).normal(&[30, 2], DType::Float32).unwrap();
        let (vi, vj) = (Expr::vi(0, 2).unwrap(), Expr::vj(1, 2).unwrap());
        let formula = vi.dot(&vj).unwrap();
        let reduction = Reduction::new("Sum", &formula, Axis::J, None, None).unwrap();
        let arrays = [x.clone(), x.clone()];
        let home = x.device();
        let extent = Extent {
            m: Some(30),
            n: Some(30),
            dtype: Some(x.dtype()),
            device: Some(home),
            ..Extent::default()
        };
        let call = Call::new(&reduction, &arrays, &extent);
        assert!(Blocks::of(&call, &Options::default()).unwrap().is_none());
        for device in devices(home) {
            let blocks = Blocks { device, surviving: 20, reduced: 7 };
            let stop = |fraction: f64| fraction < 0.5;
            let options = Options { progress: Some(Progress(&stop)), ..Options::default() };
            let stopped = blocks.run(&call, &options);
            assert!(matches!(stopped, Err(Error::Interrupted(_))), "{device}");
            let how = blocks.explain(&call, &Options::default()).unwrap();
            assert!(how.contains("2 times 5 of 7 like this one"), "{how}");
            let there = Options { device: Some(device), ..Options::default() };
            let told = call.explain(&there).unwrap().contains("copied from");
            assert_eq!(told, device != home, "{device}");
        }
    }

    #[test]
    fn nothing_is_reduced_on_another_device_too() {
        let none = Array::zeros(&[0, 1], DType::Float64).unwrap();
        let some = Array::ones(&[2, 1], DType::Float64).unwrap();
        for device in devices(some.device()) {
            let options = Options { device: Some(device), ..Options::default() };
            let sum = |x: &Array, y: &Array| {
                let (x, y) = (super::super::LazyTensor::vi(x)?, super::super::LazyTensor::vj(y)?);
                x.multiply(&y)?.reduce("Sum", 1, None, &options)?.only()
            };
            assert_eq!(sum(&some, &none).unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0]);
            assert_eq!(sum(&none, &some).unwrap().shape(), [0, 1]);
        }
    }
}
