//! Long reductions block by block, through partial states.
//!
//! What a device prepares for the reduced side is bounded by the block and not by the array, and of
//! a memory-mapped array no more than a block is needed at a time, so that the reduced side may be
//! larger than memory. Blocks are cut by size and merged in order. Memory of a card is not cut here:
//! its backend bounds what it prepares. Called by `call` alone.

use std::ops::Range;

use tilework_backend::release_pages;
use tilework_error::{Error, Result};
use tilework_formula::Expr;

use super::call::{Call, Options, Reduced};
use super::partial::Partial;
use super::reduce::rows_of;
use super::variable::Extent;
use crate::array::Array;

/// Bytes of the reduced side that are worked on at once.
const BLOCK: usize = 64 << 20;

/// How many indices make a block, if the call is longer than two of them.
pub(super) fn block_rows(call: &Call<'_>) -> Result<Option<usize>> {
    let bytes = |array: &Array| match array.storage().is_on_host() {
        true => array.len().saturating_mul(array.dtype().size()),
        false => 0,
    };
    if call.arrays.iter().map(bytes).fold(0, usize::saturating_add) <= 2 * BLOCK {
        return Ok(None);
    }
    let reduced = call.reduction.axis().reduced();
    let mut row = 0usize;
    for variable in Expr::variables_of(&call.reduction.outputs())? {
        if variable.category == reduced {
            let array = call.array(variable.position)?;
            row = row.saturating_add(bytes(array) / call.count().max(1));
        }
    }
    let long = row.saturating_mul(call.count()) > 2 * BLOCK;
    Ok(long.then(|| (BLOCK / row).max(1)))
}

/// The result, from blocks of so many indices.
pub(super) fn run(call: &Call<'_>, options: &Options<'_>, rows: usize) -> Result<Reduced> {
    let count = call.count();
    let mut states: Option<Partial> = None;
    for start in (0..count).step_by(rows) {
        let block = start..(start + rows).min(count);
        let done = block.start as f64 / count as f64..block.end as f64 / count as f64;
        let part = options.part(done, |options| part(call, options, &block))?;
        states = Some(match states {
            Some(before) => before.merge(&part)?,
            None => part,
        });
    }
    let whole = states.ok_or_else(|| Error::value("reduction", "there is no block"))?;
    whole.finish()
}

/// How the first block would be done, and how many there are.
pub(super) fn explain(call: &Call<'_>, options: &Options<'_>, rows: usize) -> Result<String> {
    let (arrays, extent) = block_of(call, &(0..rows))?;
    let how = Call::new(call.reduction, &arrays, &extent).explain(options)?;
    let blocks = call.count().div_ceil(rows);
    Ok(format!("{how}blocks    {blocks} of {rows} like this one, states merged in order\n"))
}

/// The arrays of one block, and their extent.
fn block_of(call: &Call<'_>, block: &Range<usize>) -> Result<(Vec<Array>, Extent)> {
    let reduced = call.reduction.axis().reduced();
    let mut arrays: Vec<Array> = call.arrays.to_vec();
    for variable in Expr::variables_of(&call.reduction.outputs())? {
        if variable.category == reduced {
            arrays[variable.position] = rows_of(&arrays[variable.position], block)?;
        }
    }
    Ok((arrays, call.extent.with_rows(reduced, block.len())))
}

/// The states of one block.
fn part(call: &Call<'_>, options: &Options<'_>, block: &Range<usize>) -> Result<Partial> {
    let (arrays, extent) = block_of(call, block)?;
    let first = i64::try_from(block.start)
        .map_err(|_| Error::index("reduction", format!("{} is no index", block.start)))?;
    let states = Partial::of(&Call::new(call.reduction, &arrays, &extent), options, first)?;
    // Of a mapped file, the part that was read is not needed again soon.
    for array in arrays.iter().filter(|array| array.is_contiguous()) {
        let (size, from) = (array.dtype().size(), array.offset());
        release_pages(array.storage(), from * size..(from + array.len()) * size);
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use tilework_backend::Progress;
    use tilework_formula::reduction::{REDUCTIONS, Weight};
    use tilework_formula::{Axis, Reduction};

    use super::super::variable::Extent;
    use super::*;
    use crate::DType;

    #[test]
    fn blocks_give_what_the_whole_gives_and_tell_how_far_they_are() {
        let numbers = |rows: usize, seed: u64| {
            crate::Rng::new(seed).normal(&[rows, 2], DType::Float64).unwrap()
        };
        let arrays = [numbers(5, 1), numbers(23, 2)];
        let (x, y) = (Expr::vi(0, 2).unwrap(), Expr::vj(1, 2).unwrap());
        let (formula, weight) = (x.dot(&y).unwrap(), y.square().unwrap());
        let extent = Extent {
            m: Some(5),
            n: Some(23),
            dtype: Some(DType::Float64),
            device: Some(arrays[0].device()),
            ..Extent::default()
        };
        for row in REDUCTIONS {
            let weight = (row.weight == Weight::Required).then_some(&weight);
            let k = row.takes_k.then_some(3);
            for axis in [Axis::I, Axis::J] {
                let reduction = Reduction::new(row.name, &formula, axis, k, weight).unwrap();
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
                let parts = run(&call, &options, 4).unwrap();
                if let (Some(a), Some(b)) = (&whole.values, &parts.values) {
                    let near = |(a, b): (f64, f64)| a == b || (a - b).abs() < 1e-12 * a.abs();
                    assert_eq!(a.dtype(), b.dtype(), "{}", row.name);
                    let floats = |x: &Array| x.astype(DType::Float64).unwrap().to_vec().unwrap();
                    let both = floats(a).into_iter().zip(floats(b));
                    assert!(both.into_iter().all(near), "{}", row.name);
                }
                let indices = |at: Option<Array>| at.map(|at| at.to_vec::<i64>().unwrap());
                assert_eq!(indices(whole.indices), indices(parts.indices), "{}", row.name);
            }
        }
        let reduction = Reduction::new("Sum", &formula, Axis::J, None, None).unwrap();
        assert_eq!(block_rows(&Call::new(&reduction, &arrays, &extent)).unwrap(), None);
    }
}
