//! What moves elements without computing: indexing, joins, order, random numbers.

use tilework::{
    Array, DType, Device, Direction, Indexer, KeepDims, PadMode, Result, Rng, Side, concat, s,
    stack,
};
use tilework_ops::{FoldId, Tolerance};

use crate::compare::assert_close;
use crate::values::{draw, draw_special, from_numbers};

/// Runs one program on the device and on the reference; every array it gives must be the same.
fn same(what: &str, device: Device, program: impl Fn(Device) -> Result<Vec<Array>>) {
    let (got, expected) = (program(device).expect(what), program(Device::reference()).expect(what));
    assert_eq!(got.len(), expected.len(), "{what}");
    for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_close(&format!("{what}, result {k}"), got, expected, Tolerance::Exact);
    }
}

fn integers(device: Device, shape: &[usize], low: i64, high: i64, seed: u64) -> Result<Array> {
    draw(device, shape, DType::Int64, low as f64..high as f64, seed)
}

/// Indexing by arrays and masks, for reading and writing, of every dtype.
pub fn indexing(device: Device) {
    for dtype in DType::ALL {
        same(&format!("indexing of {dtype}"), device, |device| {
            let x = draw_special(device, &[4, 5, 6], dtype, -50.0..50.0, 1)?;
            let (i, j) = (integers(device, &[3, 2], -4, 4, 2)?, integers(device, &[2], -5, 5, 3)?);
            let mask = draw(device, &[4, 5], DType::Bool, 0.0..1.0, 4)?;
            let view = x.permute(&[2, 0, 1])?.flip(Some(&[1]))?;
            let along = integers(device, &[4, 5, 3], 0, 6, 5)?;
            let target = x.copy()?;
            target.index_set(&[Indexer::Array(&i), Indexer::from(..), Indexer::from(1)], 1)?;
            target.index_set(&[Indexer::Array(&mask)], &x.slice(&s![0, 0])?)?;
            target.transpose().index_set(
                &[Indexer::from(2), Indexer::Array(&j)],
                &x.slice(&s![..2, 0, 0])?
                    .expand_dims(1)?
                    .slice(&s![.., 0..1])?
                    .broadcast_to(&[2, 4])?,
            )?;
            Ok(vec![
                x.index(&[Indexer::Array(&i)])?,
                x.index(&[Indexer::Array(&i), Indexer::Array(&j)])?,
                x.index(&[Indexer::Array(&i), Indexer::from(..), Indexer::Array(&j)])?,
                x.index(&[Indexer::from(1), Indexer::from(1..), Indexer::Array(&j)])?,
                x.index(&[Indexer::Array(&mask)])?,
                x.index(&[Indexer::Basic(tilework::Index::Ellipsis), Indexer::Array(&i)])?,
                view.index(&[Indexer::Basic(s![..;2][0]), Indexer::Array(&i)])?,
                x.take(&j, 1)?,
                x.take_along_axis(&along, 2)?,
                target,
            ])
        });
    }
    same("nonzero", device, |device| {
        let x = draw(device, &[3, 0, 2], DType::Bool, 0.0..1.0, 1)?;
        let y = integers(device, &[7, 9], -1, 2, 2)?;
        let mut found = y.nonzero()?;
        found.extend(y.transpose().nonzero()?);
        found.push(x.argwhere()?);
        Ok(found)
    });
    let x = Array::zeros_on(device, &[3], DType::Int8).expect("zeros");
    let outside = from_numbers(device, &[1], DType::Int64, &[3.into()]).expect("numbers");
    let error = x.index(&[Indexer::Array(&outside)]).unwrap_err().to_string();
    assert_eq!(error, "index: 3 is out of bounds for axis 0 with size 3");
}

/// Concat, stack, pad, roll, repeat, tile, triangles, differences.
pub fn joins(device: Device) {
    for dtype in DType::ALL {
        same(&format!("joins of {dtype}"), device, |device| {
            let x = draw_special(device, &[3, 4], dtype, -50.0..50.0, 1)?;
            let y = draw(device, &[3, 2], dtype, -50.0..50.0, 2)?;
            Ok(vec![
                concat(&[&x, &y, &x.flip(None)?], 1)?,
                stack(&[&x, &x.flip(Some(&[0]))?], -1)?,
                x.pad(&[(1, 2), (0, 3)], PadMode::Constant(1.into()))?,
                x.pad(&[(1, 2), (2, 3)], PadMode::Wrap)?,
                x.pad(&[(2, 0), (1, 1)], PadMode::Reflect)?,
                x.roll(-5, 1)?,
                x.repeat(3, 0)?,
                x.repeat_each(&[2, 0, 1], 0)?,
                x.tile(&[2, 1, 2])?,
                x.tril(-1)?,
                x.triu(1)?,
            ])
        });
    }
}

/// Sorting, searching and unique elements, with ties, signed zeros and NaN.
pub fn order(device: Device) {
    for dtype in DType::ALL {
        same(&format!("order of {dtype}"), device, |device| {
            let x = draw_special(device, &[6, 70], dtype, -9.0..9.0, 1)?;
            let ties = draw(device, &[500], dtype, -5.0..5.0, 2)?;
            let sorted = ties.sort(0, Direction::Ascending)?;
            let unique = ties.unique()?;
            Ok(vec![
                x.sort(1, Direction::Ascending)?,
                x.sort(0, Direction::Descending)?,
                x.argsort(-1, Direction::Ascending)?,
                x.transpose().argsort(0, Direction::Descending)?,
                ties.argsort(0, Direction::Descending)?,
                sorted.searchsorted(&x, Side::Left)?,
                sorted.searchsorted(&x, Side::Right)?,
                unique.values,
                unique.indices,
                unique.inverse,
                unique.counts,
                x.slice(&s![.., 0..0])?.sort(1, Direction::Ascending)?,
            ])
        });
    }
}

/// Rows that are sorted, folded and summed up in many pieces, with ties, signed zeros and NaN; writes that meet
/// at the same places; and assignments from what they write to.
pub fn long_rows(device: Device) {
    for dtype in DType::ALL {
        same(&format!("long rows of {dtype}"), device, |device| {
            let x = draw_special(device, &[2, 9001], dtype, -9.0..9.0, 1)?;
            let upright = x.transpose();
            let places = integers(device, &[3000], -50, 50, 2)?;
            let target = draw(device, &[50, 3], dtype, -9.0..9.0, 3)?;
            let written = draw(device, &[3000, 3], dtype, -9.0..9.0, 4)?;
            target.index_set(&[Indexer::Array(&places)], &written)?;
            let shifted = x.copy()?;
            shifted.slice(&s![.., 1..])?.assign(&shifted.slice(&s![.., ..-1])?)?;
            let square = x.slice(&s![0, ..8100])?.reshape(&[90, 90])?.copy()?;
            square.assign(&square.transpose())?;
            let mut results = vec![
                x.sort(1, Direction::Ascending)?,
                upright.sort(0, Direction::Descending)?,
                x.flip(None)?.argsort(1, Direction::Ascending)?,
                upright.argsort(0, Direction::Descending)?,
                target,
                shifted,
                square,
            ];
            for fold in [FoldId::ArgMax, FoldId::ArgMin, FoldId::Max, FoldId::Min] {
                // Which of several complex NaN an extreme is, is not promised.
                if dtype.is_complex() {
                    continue;
                }
                for (view, axis) in [(&x, 1), (&upright, 0)] {
                    results.push(view.reduce(fold, axis, KeepDims::No, 0.0)?);
                    if fold.row().running.is_some() {
                        results.push(view.scan(fold, axis)?);
                    }
                }
            }
            if !dtype.is_inexact() {
                results.extend([x.cumulative_sum(1)?, upright.flip(None)?.cumulative_sum(0)?]);
            }
            Ok(results)
        });
    }
}

/// Views of more axes than merge: reductions, products, order and indexing walk them all.
pub fn many_axes(device: Device) {
    same("many axes", device, |device| {
        // Every second element along each axis, so that no two axes are one.
        let x = integers(device, &[3; 11], -9, 9, 1)?.slice(&[s![..;2][0]; 11])?;
        let turned = x.permute(&[10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5])?;
        let picks = integers(device, &[2, 3], -2, 2, 2)?;
        let target = integers(device, &[3; 11], -9, 9, 3)?.slice(&[s![..;2][0]; 11])?;
        target.index_set(&[Indexer::from(..), Indexer::Array(&picks.slice(&s![0])?)], 7)?;
        let mut results = vec![
            x.sum(())?,
            x.sum([0, 2, 4, 6, 8, 10])?,
            x.max(5)?,
            turned.sum([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?,
            x.argmax(4)?,
            x.cumulative_sum(3)?,
            turned.sort(2, Direction::Ascending)?,
            x.argsort(9, Direction::Descending)?,
            x.index(&[Indexer::Array(&picks)])?,
            x.take(&picks.slice(&s![0])?, 6)?,
            x.index(&[Indexer::Array(&x.greater(0)?)])?,
            x.matmul(&turned)?,
            integers(device, &[40], -9, 9, 4)?
                .sort(0, Direction::Ascending)?
                .searchsorted(&turned, Side::Left)?,
            target,
        ];
        results.extend(turned.nonzero()?);
        Ok(results)
    });
}

/// The same numbers on every device; normal ones within two units in the last place.
pub fn random(device: Device) {
    let draw = |device: Device| -> Result<(Vec<Array>, Vec<Array>)> {
        let _scope = device.scope();
        let rng = Rng::new(0x0123_4567_89ab_cdef);
        let exact = vec![
            rng.uniform(&[37], DType::Float32)?,
            rng.uniform(&[5, 7], DType::Float64)?,
            rng.uniform(&[1001], DType::Float16)?,
            rng.uniform(&[1001], DType::BFloat16)?,
            rng.integers(-3, 4, &[100])?,
            rng.integers(i64::MIN, i64::MAX, &[9])?,
            rng.permutation(50)?,
        ];
        Ok((
            exact,
            vec![rng.normal(&[1000], DType::Float32)?, rng.normal(&[1000], DType::Float64)?],
        ))
    };
    let (here, there) = (draw(device).expect("draw"), draw(Device::reference()).expect("draw"));
    for (got, expected) in here.0.iter().zip(&there.0) {
        assert_close("random", got, expected, Tolerance::Exact);
    }
    for (got, expected) in here.1.iter().zip(&there.1) {
        assert_close("random normal", got, expected, Tolerance::Ulp(2.0));
    }
}
