//! Reductions block by block, through partial states where rows are cut: long ones, and those on another
//! device.
//!
//! What a device prepares is bounded by the blocks and not by the arrays, and of a memory-mapped array
//! no more than a block is needed at a time, so that arrays may be larger than memory. A device that the
//! arrays are not on gets both sides block by block, so that both may be larger than its memory; the
//! next block is copied, and results of the one before are fetched, while the device works on the last, so that the
//! results of two blocks are there at once. Blocks are cut by `cut`, and states merged
//! in order. Memory of a card is not cut here: its backend bounds what it prepares. Called by `call`
//! and `partial`.

use tilework_error::{Error, Result};
use tilework_formula::Expr;
use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;

use super::call::{Call, Options, Raw, Reduced};
use super::cut::{Cut, pieces};
use super::partial::Partial;
use super::parts::{Part, Room, as_one_step};
use super::running::Running;
use crate::array::Array;
use crate::device::Device;

/// Bytes of the reduced side that are worked on at once, and of what survives on another device: there a
/// reduced side of several blocks is copied once for each block of what survives.
const BLOCK: usize = 64 << 20;
const SURVIVING: usize = 4 * BLOCK;

/// Steps of a block that no card waits for, by a guess of those of a pair: some for each component, and some for what is
/// made of them. Cards work on such a block for about 15 ms.
const STEPS_OF_BLOCK: f64 = 2e12;
const STEPS_OF_COMPONENT: usize = 4;
const STEPS_BESIDE: usize = 16;

fn steps_of_pair(call: &Call<'_>) -> Result<f64> {
    let components =
        Expr::variables_of(&call.reduction.outputs())?.iter().map(|it| it.dim).sum::<usize>();
    Ok((STEPS_BESIDE + STEPS_OF_COMPONENT * components) as f64)
}

/// Where a call is done, and how it is cut.
pub(super) struct Blocks {
    device: Device,
    cut: Cut,
}

impl Blocks {
    /// None where the call is done as a whole, where its arrays are.
    pub(super) fn of(call: &Call<'_>, options: &Options<'_>) -> Result<Option<Blocks>> {
        let home = call.device();
        let device = options.device.unwrap_or(home);
        if device != home {
            let mut cut = Cut::of(call, options, [SURVIVING, BLOCK])?;
            // The other side is there for all of them, so they may be smaller, and are not waited for one by one.
            if call.count() <= cut.reduced {
                let batches =
                    cut.batch.iter().fold(call.count().max(1), |all, &n| all.saturating_mul(n));
                let most = STEPS_OF_BLOCK / (steps_of_pair(call)? * batches as f64);
                cut.surviving = cut.surviving.min((most as usize).max(1));
            }
            return Ok(Some(Blocks { device, cut }));
        }
        if call.arrays.iter().map(host_bytes).fold(0, usize::saturating_add) <= 2 * BLOCK {
            return Ok(None);
        }
        // Both sides: what a backend packs is bounded by what it is given.
        let cut = Cut::of(call, options, [BLOCK, BLOCK])?;
        Ok((!cut.is_whole(call)).then_some(Blocks { device, cut }))
    }

    /// The result, where the arrays are.
    pub(super) fn run(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Reduced> {
        as_one_step(call, || {
            let reduce = |part: &Call<'_>, options: &Options<'_>| self.reduce(part, options);
            self.in_blocks(call, options, || call.room(), reduce)
        })
    }

    /// What work gives for each block of what survives, in its place.
    fn in_blocks(
        &self,
        call: &Call<'_>,
        options: &Options<'_>,
        room: impl FnOnce() -> Result<Reduced>,
        work: impl Fn(&Call<'_>, &Options<'_>) -> Result<Reduced>,
    ) -> Result<Reduced> {
        let options = Options { device: None, ..*options };
        let axis = call.reduction.axis();
        let survivor = axis.survivor();
        let [batches, rows] = self.cut.counts(call);
        let parts = batches.saturating_mul(rows);
        let mut room = Room::new(call.device(), parts, room)?;
        for (batches, done) in self.cut.batches(&call.extent.batch) {
            let batch = Part::of_batches(call, &batches)?;
            // What is reduced in one block is copied once for all blocks of what survives in these batches.
            let there = match call.count() <= self.cut.reduced {
                true => batch.begun_on(self.device, call, axis.reduced())?,
                false => batch.clone(),
            };
            let whole = there.call(call);
            options.part(done, |options| {
                for (rows, done) in pieces(call.extent.rows(survivor), self.cut.surviving) {
                    let part = options.part(done, |options| {
                        options.tell(0.0)?;
                        let part =
                            Part::of(&whole, survivor, &rows)?.kept_on(self.device, &whole)?;
                        work(&part.call(&whole), options)
                    })?;
                    room.put(part, (batches.clone(), rows))?;
                }
                Ok::<_, Error>(())
            })?;
            batch.release_pages(call);
        }
        room.finish()
    }

    /// The result of a call whose surviving side is on the device, and the other one too where it is one block.
    fn reduce(&self, call: &Call<'_>, options: &Options<'_>) -> Result<Reduced> {
        match call.count() > self.cut.reduced {
            true => self.states(call, options, 0)?.finish(),
            false => call.run(options),
        }
    }

    /// The states of a call whose surviving side is on the device, those of several blocks as `running`
    /// gives them; its first index is `offset`.
    fn states(&self, call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        let reduced = call.reduction.axis().reduced();
        let mut states = Running::default();
        for (rows, done) in pieces(call.count(), self.cut.reduced) {
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
            here.release_pages(call);
            states.merge(part)?;
        }
        states.finish()
    }

    /// The states of a call, where its arrays are.
    fn partial(&self, call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
        let states = |part: &Call<'_>, options: &Options<'_>| {
            let (_, values, indices) = self.states(part, options, offset)?.arrays();
            Ok(Reduced { values: Some(values.to_dtype(call.holds(options))?), indices })
        };
        let room = || call.state_room(options);
        let Reduced { values, indices } = self.in_blocks(call, options, room, states)?;
        Partial::with(call, Raw { values, indices })
    }

    /// How the first block would be done, and how many there are.
    pub(super) fn explain(&self, call: &Call<'_>, options: &Options<'_>) -> Result<String> {
        let (home, axis) = (call.device(), call.reduction.axis());
        let [surviving, reduced] = [axis.survivor(), axis.reduced()];
        let rows = [surviving, reduced].map(|category| call.extent.rows(category));
        let batch: Vec<_> =
            call.extent.batch.iter().zip(&self.cut.batch).map(|(&n, &len)| 0..len.min(n)).collect();
        let first = Part::of_batches(call, &batch)?;
        let first = Part::of(&first.call(call), surviving, &(0..self.cut.surviving.min(rows[0])))?;
        let first = first.kept_on(self.device, call)?;
        let first = Part::of(&first.call(call), reduced, &(0..self.cut.reduced.min(rows[1])))?;
        let first = first.on(self.device, call)?;
        let how = first.call(call).explain(&Options { device: None, ..*options })?;
        let [batches, outer] = self.cut.counts(call);
        let blocks = pieces(rows[1], self.cut.reduced).len();
        let mut told = match batches {
            1 => String::new(),
            _ => {
                let each = self.cut.batch.iter().product::<usize>();
                let what = if each == 1 { "batch" } else { "batches" };
                format!("{batches} of {each} {what}")
            }
        };
        if batches == 1 || outer > 1 || blocks > 1 {
            told += if batches > 1 { ", each " } else { "" };
            if outer > 1 {
                told += &format!("{outer} times ");
            }
            told += &format!("{blocks} of {}", self.cut.reduced.min(rows[1]));
        }
        told += " like this one";
        if blocks > 1 {
            told += ", states merged in order";
            told += &merging_adds(call, options);
        }
        if home != self.device {
            told += &format!(", copied from {home} to {}", self.device);
        }
        Ok(format!("{how}blocks    {told}\n"))
    }
}

/// The states of a call, whose first index is `offset`, where its arrays are.
pub(super) fn partial(call: &Call<'_>, options: &Options<'_>, offset: i64) -> Result<Partial> {
    match Blocks::of(call, options)?.filter(|_| !call.is_empty()) {
        Some(blocks) => as_one_step(call, || blocks.partial(call, options, offset)),
        None => Partial::of(call, &Options { device: None, ..*options }, offset),
    }
}

/// What the merges of blocks add to the error of a block: those of `running` next to nothing, and its last step
/// a rounding.
fn merging_adds(call: &Call<'_>, options: &Options<'_>) -> String {
    if call.reduction.row().monoid != Monoid::Add {
        return String::new();
    }
    let eps =
        if call.holds(options) == DType::Float64 { f64::EPSILON } else { f32::EPSILON.into() };
    format!(", which adds {:.1e} to the error of a block's sums", eps / 2.0)
}

fn host_bytes(array: &Array) -> usize {
    let bytes = array.len().saturating_mul(array.dtype().size());
    if array.storage().is_on_host() { bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use tilework_backend::{Progress, SumScheme};
    use tilework_formula::reduction::{REDUCTIONS, Weight};
    use tilework_formula::{Axis, Category, Expr, Reduction, Variable};
    use tilework_layout::Dims;
    use tilework_ops::PairShape;

    use super::super::lazy::LazyTensor;
    use super::super::variable::Extent;
    use super::*;
    use crate::s;

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

    fn blocks(device: Device, batch: &[usize], surviving: usize, reduced: usize) -> Blocks {
        Blocks { device, cut: Cut { batch: Dims::from_slice(batch), surviving, reduced } }
    }

    /// Points of i and of j, and what they have in common; their shapes without the last axis.
    fn points(x: &[usize], y: &[usize]) -> ([Array; 2], Extent) {
        let numbers = |rows: &[usize], seed: u64| {
            crate::Rng::new(seed).normal(&[rows, &[2]].concat(), DType::Float64).unwrap()
        };
        let arrays = [numbers(x, 1), numbers(y, 2)];
        let of = |position: usize, category| {
            Extent::of("test", &arrays[position], Variable { position, dim: 2, category }).unwrap()
        };
        let extent = of(0, Category::I).union("test", &of(1, Category::J)).unwrap();
        (arrays, extent)
    }

    /// Every reduction of what these points give, in these blocks.
    fn assert_blocks_give_the_whole(x: &[usize], y: &[usize], cuts: &[(&[usize], usize, usize)]) {
        let (arrays, extent) = points(x, y);
        let home = arrays[0].device();
        let (x, y) = (Expr::vi(0, 2).unwrap(), Expr::vj(1, 2).unwrap());
        let (number, vector) = (x.dot(&y).unwrap(), x.multiply(&y).unwrap());
        let weight = y.square().unwrap();
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
                    for &(batch, surviving, reduced) in cuts {
                        *last.lock().unwrap() = 0.0;
                        let blocks = blocks(device, batch, surviving, reduced);
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
    fn blocks_give_what_the_whole_gives_and_tell_how_far_they_are() {
        let cuts: [(&[usize], usize, usize); 3] = [(&[], 100, 4), (&[], 2, 4), (&[], 2, 100)];
        assert_blocks_give_the_whole(&[5], &[23], &cuts);
    }

    #[test]
    fn so_do_blocks_of_batches_also_where_arrays_are_broadcast() {
        for (x, y) in [(&[5, 3, 4][..], &[3, 7][..]), (&[1, 3, 4], &[5, 1, 7])] {
            let cuts: [(&[usize], usize, usize); 4] =
                [(&[2, 3], 100, 100), (&[1, 2], 100, 100), (&[1, 1], 3, 4), (&[5, 2], 2, 100)];
            assert_blocks_give_the_whole(x, y, &cuts);
        }
    }

    #[test]
    fn states_are_made_block_by_block_of_what_survives() {
        let (arrays, extent) = points(&[7], &[23]);
        let formula = Expr::vi(0, 2).unwrap().dot(&Expr::vj(1, 2).unwrap()).unwrap();
        let reduction = Reduction::new("Sum", &formula, Axis::J, None, None).unwrap();
        let call = Call::new(&reduction, &arrays, &extent);
        for device in devices(arrays[0].device()) {
            for reduced in [4, 100] {
                let told = std::sync::Mutex::new(Vec::new());
                let tell = |fraction: f64| {
                    told.lock().unwrap().push(fraction);
                    true
                };
                let options = Options { progress: Some(Progress(&tell)), ..Options::default() };
                blocks(device, &[], 3, reduced).partial(&call, &options, 0).unwrap();
                let told = told.into_inner().unwrap();
                assert!(told.is_sorted(), "{device}: {told:?}");
                // Every block is begun when its turn comes.
                for first in [0.0, 3.0 / 7.0, 6.0 / 7.0] {
                    assert!(told.contains(&first), "{device}: {told:?}");
                }
            }
        }
    }

    /// Sums of equal terms over blocks of one j, by which merging alone decides.
    #[test]
    fn sums_of_many_blocks_are_as_exact_as_those_of_one() {
        let n = 1000;
        for (dtype, roundoff) in
            [(DType::Float32, f64::from(f32::EPSILON) / 2.0), (DType::Float64, f64::EPSILON / 2.0)]
        {
            // Nearly a power of two, so that roundings of sums go the same way.
            let term = 1.0 + 1020.0 * roundoff;
            let arrays = [(1, 1.0), (n, term)]
                .map(|(rows, value)| Array::full(&[rows, 1], value, dtype).unwrap());
            let of = |position: usize, category| Variable { position, dim: 1, category };
            let [x, y] = [of(0, Category::I), of(1, Category::J)];
            let extent = Extent::of("test", &arrays[0], x).unwrap();
            let extent = extent.union("test", &Extent::of("test", &arrays[1], y).unwrap()).unwrap();
            let [x, y] = [x, y].map(|variable| Expr::variable(variable).unwrap());
            let [product, none] =
                [x.multiply(&y).unwrap(), x.subtract(&x.multiply(&x).unwrap()).unwrap()];
            for (name, formula, weight) in
                [("Sum", &product, None), ("Max_SumShiftExpWeight", &none, Some(&product))]
            {
                let reduction = Reduction::new(name, formula, Axis::J, None, weight).unwrap();
                let call = Call::new(&reduction, &arrays, &extent);
                for sums in [SumScheme::Blocks, SumScheme::Kahan] {
                    let options = Options { sums, ..Options::default() };
                    let blocks = blocks(arrays[0].device(), &[], 1, 1);
                    let sum = blocks.run(&call, &options).unwrap().only().unwrap();
                    let states = blocks.partial(&call, &options, 0).unwrap();
                    assert_eq!(states.arrays().1.dtype(), dtype);
                    for sum in [sum, states.finish().unwrap().only().unwrap()] {
                        let sum = sum.astype(DType::Float64).unwrap().to_vec::<f64>().unwrap();
                        // The terms apart, since their sum is no number of float64.
                        let error = (sum[sum.len() - 1] - n as f64) - (term - 1.0) * n as f64;
                        let allowed = 1.01 * roundoff * n as f64 * term;
                        assert!(error.abs() <= allowed, "{name} in {dtype}: {error:e}");
                    }
                    let told = blocks.explain(&call, &options).unwrap();
                    let added = format!("which adds {roundoff:.1e} to the error");
                    assert_eq!(told.contains(&added), name == "Sum", "{told}");
                }
            }
        }
    }

    #[test]
    fn many_batches_beyond_the_limit_are_cut_between_them() {
        // Rows are views of one, and the memory an eighth.
        let points = |seed: u64| {
            let rows = crate::Rng::new(seed).normal(&[200_000, 1, 6], DType::Float64).unwrap();
            rows.broadcast_to(&[200_000, 8, 6]).unwrap()
        };
        let (x, y) = (points(5), points(6));
        let kernel = |x: &Array, y: &Array| {
            let (x, y) = (LazyTensor::vi(x).unwrap(), LazyTensor::vj(y).unwrap());
            x.sqdist(&y).unwrap()
        };
        let options = Options::default();
        let how = kernel(&x, &y).explain("Sum", 1, None, &options).unwrap();
        // Rows of 48 bytes, those of i with a sum of 8.
        let each = BLOCK / (8 * 56);
        assert!(how.contains(&format!("2 of {each} batches like this one\n")), "{how}");
        let sums = kernel(&x, &y).sum(1).unwrap();
        let half = |k: isize| {
            let rows = |of: &Array| of.slice(&s![100_000 * k..100_000 * (k + 1)]).unwrap();
            let half = kernel(&rows(&x), &rows(&y));
            assert!(!half.explain("Sum", 1, None, &options).unwrap().contains("like this one"));
            half.sum(1).unwrap()
        };
        let wanted = crate::concat(&[&half(0), &half(1)], 0).unwrap();
        assert!(sums.equal(&wanted).unwrap().all(()).unwrap().item::<bool>().unwrap());
    }

    #[test]
    fn blocks_see_what_others_write_whole_or_not_at_all() {
        let (mut arrays, extent) = points(&[1], &[5000]);
        arrays[0].fill(0.0).unwrap();
        arrays[1] = Array::zeros(&[5000, 2], DType::Float64).unwrap();
        let sum = Expr::vi(0, 2).unwrap().add(&Expr::vj(1, 2).unwrap()).unwrap();
        let both = Expr::concat(&[sum.clone(), sum.negative().unwrap()]).unwrap();
        let reduction = Reduction::new("Min", &both, Axis::J, None, None).unwrap();
        let call = Call::new(&reduction, &arrays, &extent);
        let y = &arrays[1];
        for device in devices(y.device()) {
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| (0..300).try_for_each(|k| y.fill(k)));
                while !writer.is_finished() {
                    let blocks = blocks(device, &[], 1, 100);
                    let least = blocks.run(&call, &Options::default()).unwrap().only().unwrap();
                    let least = least.to_vec::<f64>().unwrap();
                    assert_eq!(least[..2], [-least[2], -least[3]], "{device}");
                }
                writer.join().unwrap().unwrap();
            });
        }
    }

    #[test]
    fn a_result_that_has_no_room_is_refused_before_any_work() {
        // More than an address space, so that no system promises it.
        let x = Array::ones(&[1, 1], DType::Float64).unwrap().broadcast_to(&[1 << 46, 1]).unwrap();
        let (i, j) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
        let f = i.multiply(&j).unwrap();
        let refused = f.sum(1).unwrap_err();
        assert!(matches!(refused, Error::OutOfMemory(_)), "{refused}");
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
            let blocks = blocks(device, &[], 20, 7);
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
