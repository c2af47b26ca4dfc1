//! `x[mask]` and `x[mask] = value` against their definition: elements in order, where the mask is true.

use tilework::{Array, DType, Indexer, Result, s};

/// The whole numbers from 0 on, in a shape.
fn count(shape: &[isize]) -> Result<Array> {
    let len: isize = shape.iter().product();
    Array::arange(0, len as i64, 1, DType::Float32)?.reshape(shape)
}

/// Every third element, and some more.
fn mask_of(shape: &[isize]) -> Result<Array> {
    let places = count(shape)?;
    places.remainder(3.0)?.equal(0.0)?.logical_or(&places.remainder(7.0)?.equal(2.0)?)
}

/// Arrays of one shape, with steps of all kinds: in order, turned, with gaps, backwards.
fn layouts() -> Result<Vec<Array>> {
    Ok(vec![
        count(&[6, 5, 4])?,
        count(&[4, 5, 6])?.transpose(),
        count(&[12, 5, 8])?.slice(&s![..;2, .., 1..;2])?,
        count(&[6, 5, 4])?.flip(Some(&[0, 2]))?,
        count(&[6, 4, 5])?.permute(&[0, 2, 1])?,
    ])
}

/// What the definition picks: rows of what is left after the mask's axes.
fn picked(x: &Array, mask: &Array) -> Result<Vec<f32>> {
    let rest: usize = x.shape()[mask.ndim()..].iter().product();
    let (values, flags) = (x.to_vec::<f32>()?, mask.to_vec::<bool>()?);
    let rows = values.chunks(rest).zip(flags);
    Ok(rows.filter(|(_, flag)| *flag).flat_map(|(row, _)| row.to_vec()).collect())
}

#[test]
fn masks_pick_in_order_from_any_layout() -> Result<()> {
    for x in layouts()? {
        for axes in 1..=3 {
            let shape: Vec<isize> = x.shape()[..axes].iter().map(|&n| n as isize).collect();
            let turned: Vec<isize> = shape.iter().rev().copied().collect();
            for mask in [mask_of(&shape)?, mask_of(&turned)?.transpose()] {
                let got = x.index(&[Indexer::Array(&mask)])?;
                let expected = picked(&x, &mask)?;
                assert_eq!(got.to_vec::<f32>()?, expected, "{:?}", x.strides());
                assert_eq!(got.shape()[1..], x.shape()[axes..]);
            }
        }
    }
    Ok(())
}

#[test]
fn values_are_written_where_the_mask_is_true_and_nowhere_else() -> Result<()> {
    for axes in 1..=3 {
        for k in 0..layouts()?.len() {
            let x = layouts()?.swap_remove(k);
            let shape: Vec<isize> = x.shape()[..axes].iter().map(|&n| n as isize).collect();
            let mask = mask_of(&shape)?;
            let rest: usize = x.shape()[axes..].iter().product();
            let (before, flags) = (x.to_vec::<f32>()?, mask.to_vec::<bool>()?);
            let index = [Indexer::Array(&mask)];
            x.index_set(&index, -1.0)?;
            let one = |k: usize| if flags[k / rest] { -1.0 } else { before[k] };
            let expected: Vec<f32> = (0..before.len()).map(one).collect();
            assert_eq!(x.to_vec::<f32>()?, expected, "one value, {axes} axes, layout {k}");
            // As many values as are picked, counted from 1000 on.
            let picked = x.index(&index)?;
            let shape: Vec<isize> = picked.shape().iter().map(|&n| n as isize).collect();
            x.index_set(&index, &count(&shape)?.add(1000.0)?)?;
            let mut next = 1000.0;
            let each = |k: usize| {
                next += if flags[k / rest] { 1.0 } else { 0.0 };
                if flags[k / rest] { next - 1.0 } else { before[k] }
            };
            let expected: Vec<f32> = (0..before.len()).map(each).collect();
            assert_eq!(x.to_vec::<f32>()?, expected, "many values, {axes} axes, layout {k}");
        }
    }
    Ok(())
}

#[test]
fn a_mask_or_value_may_be_part_of_what_is_written() -> Result<()> {
    let x = mask_of(&[4, 5])?;
    x.index_set(&[Indexer::Array(&x)], false)?;
    assert!(!x.any(())?.item::<bool>()?);
    let y = count(&[4, 5])?;
    let mask = mask_of(&[4, 5])?;
    let value = y.slice(&s![3, 0])?;
    y.index_set(&[Indexer::Array(&mask)], &value)?;
    let flags = mask.to_vec::<bool>()?;
    let expected: Vec<f32> = (0..20).map(|k| if flags[k] { 15.0 } else { k as f32 }).collect();
    assert_eq!(y.to_vec::<f32>()?, expected);
    Ok(())
}

#[test]
fn values_that_do_not_fit_are_errors_and_write_nothing() -> Result<()> {
    let x = Array::zeros(&[3, 4], DType::UInt8)?;
    let mask = mask_of(&[3, 4])?;
    assert!(x.index_set(&[Indexer::Array(&mask)], 300.0).is_err());
    assert!(x.index_set(&[Indexer::Array(&mask)], &Array::zeros(&[2], DType::UInt8)?).is_err());
    let other = mask_of(&[3, 5])?;
    assert!(x.index_set(&[Indexer::Array(&other)], 1.0).is_err());
    assert!(x.index(&[Indexer::Array(&other)]).is_err());
    assert!(!x.any(())?.item::<bool>()?);
    Ok(())
}
