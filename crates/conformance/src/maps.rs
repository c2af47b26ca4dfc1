//! Elementwise operations, casts and choices on every layout.

use tilework::{Arg, Array, DType, Device, Id, Number, Result, apply, apply_into, concat, select};
use tilework_ops::{ROWS, Tolerance};

use crate::compare::assert_close;
use crate::each;
use crate::layouts::{BASE, CASES};
use crate::values::{draw, draw_special};

fn bases(device: Device, id: Id, dtype: DType, special: bool) -> Result<Vec<Array>> {
    let row = id.row();
    let seed = id as u64 * 1000 + dtype as u64 * 10;
    let draw = if special { draw_special } else { draw };
    let drawn = |k| draw(device, &BASE, dtype, row.domain_of(k), seed + k as u64);
    let mut operands = (0..row.arity).map(drawn).collect::<Result<Vec<Array>>>()?;
    if let Some(last) = operands.last_mut().filter(|_| row.natural && dtype.is_integer()) {
        *last = last.maximum(0)?;
    }
    Ok(operands)
}

fn args(operands: &[Array]) -> Vec<Arg<'_>> {
    operands.iter().map(Arg::Array).collect()
}

/// Every operation on integers and bools: see `operations`. A device that compiles its kernels takes
/// minutes for all dtypes together.
pub fn operations_on_integers(device: Device) {
    operations(device, |dtype| !dtype.is_inexact());
}

/// The same on real numbers.
pub fn operations_on_reals(device: Device) {
    operations(device, |dtype| dtype.is_inexact() && !dtype.is_complex());
}

/// The same on complex numbers.
pub fn operations_on_complex_numbers(device: Device) {
    operations(device, DType::is_complex);
}

/// Every operation, every dtype of some that it takes, every layout, with special values among the
/// elements.
fn operations(device: Device, dtypes: fn(DType) -> bool) {
    each(Id::ALL, |id| {
        let row = id.row();
        let takes = |dtype: &DType| dtypes(*dtype) && row.computes(*dtype).is_some();
        for dtype in DType::ALL.into_iter().filter(takes) {
            for special in [false, true] {
                let here = bases(device, id, dtype, special).expect("bases");
                let there = bases(Device::reference(), id, dtype, special).expect("bases");
                for (name, views) in CASES {
                    let what =
                        format!("{} of {dtype}, {name}, special values: {special}", row.name);
                    let (here, there) = (views(&here).expect(&what), views(&there).expect(&what));
                    let got = apply(id, &args(&here)).expect(&what);
                    let expected = apply(id, &args(&there)).expect(&what);
                    assert_close(&what, &got, &expected, row.tolerance);
                }
            }
        }
    });
}

/// Numbers beside arrays, on either side.
pub fn scalars(device: Device) {
    each(Id::ALL.into_iter().filter(|id| id.row().arity == 2), |id| {
        let row = id.row();
        for dtype in DType::ALL.into_iter().filter(|dtype| row.takes(*dtype)) {
            let number = if dtype.is_inexact() { Number::Float(2.5) } else { Number::Int(1) };
            for (name, views) in &CASES[..6] {
                let what = format!("{} of {dtype} and {number}, {name}", row.name);
                let x =
                    views(&bases(device, id, dtype, false).expect(&what)).expect(&what).remove(0);
                let y = views(&bases(Device::reference(), id, dtype, false).expect(&what))
                    .expect(&what)
                    .remove(0);
                for swap in [false, true] {
                    let run = |array| {
                        let pair = [Arg::Array(array), Arg::Number(number)];
                        apply(id, &if swap { [pair[1], pair[0]] } else { pair })
                    };
                    assert_close(
                        &what,
                        &run(&x).expect(&what),
                        &run(&y).expect(&what),
                        row.tolerance,
                    );
                }
            }
        }
    });
}

/// In place and into other targets, aliased and overlapping: as if the operands were copied first.
pub fn in_place(device: Device) {
    each(Id::ALL, |id| {
        let row = id.row();
        for dtype in DType::ALL.into_iter().filter(|dtype| row.takes(*dtype)) {
            // Comparisons and parts have a dtype of their own, and a target beside the operands.
            let aliased = row.result(dtype) == dtype;
            let bases = bases(device, id, dtype, false).expect("bases");
            for (name, views) in CASES
                .iter()
                .filter(|(name, _)| !name.contains("stride 0") && !name.contains("overlapping"))
            {
                let what = format!("{} of {dtype} in place, {name}", row.name);
                let fresh = || -> Result<Vec<Array>> {
                    views(&bases.iter().map(Array::copy).collect::<Result<Vec<Array>>>()?)
                };
                let operands = fresh().expect(&what);
                let expected = apply(id, &args(&operands)).expect(&what);
                if expected.shape() != operands[0].shape() {
                    continue;
                }
                // Every operand in turn is the target.
                for target in 0..if aliased { operands.len() } else { 0 } {
                    let operands = fresh().expect(&what);
                    if operands[target].shape() != expected.shape() {
                        continue;
                    }
                    apply_into(id, &args(&operands), &operands[target]).expect(&what);
                    assert_close(&what, &operands[target], &expected, Tolerance::Exact);
                }
                let other =
                    Array::zeros_on(device, expected.shape(), expected.dtype()).expect(&what);
                apply_into(id, &args(&operands), &other.flip(None).expect(&what)).expect(&what);
                assert_close(&what, &other.flip(None).expect(&what), &expected, Tolerance::Exact);
            }
        }
    });
    // A target that lies across its operand.
    let x = draw(device, &[40], DType::Float32, -9.0..9.0, 1).expect("draw");
    let (low, high) = (
        x.slice(&tilework::s![..30]).expect("slice"),
        x.slice(&tilework::s![10..]).expect("slice"),
    );
    let expected = low.add(&high).expect("add");
    apply_into(Id::Add, &[Arg::Array(&low), Arg::Array(&high)], &high).expect("add");
    assert_close("add into an overlapping target", &high, &expected, Tolerance::Exact);
    let y = draw(device, &[12, 12], DType::Int64, -9.0..9.0, 2).expect("draw");
    let expected = y.transpose().copy().expect("copy");
    y.assign(&y.transpose()).expect("assign");
    assert_close("assign of its own transpose", &y, &expected, Tolerance::Exact);
}

/// Integers with a sign beside uint64 are compared exactly, though float64 is their common dtype.
pub fn mixed_comparisons(device: Device) {
    const EDGES: [i128; 10] = [
        0,
        1,
        127,
        (1 << 53) + 1,
        (1 << 62) + 1,
        i64::MAX as i128 - 1,
        i64::MAX as i128,
        i64::MAX as i128 + 1,
        u64::MAX as i128 - 1,
        u64::MAX as i128,
    ];
    let column = |dtype: DType| -> (Vec<i128>, Array) {
        let limits = dtype.iinfo().expect("an integer");
        let with_signs = EDGES.into_iter().flat_map(|edge| [edge, -edge, -edge - 1]);
        let held: Vec<i128> =
            with_signs.filter(|x| (limits.min..=limits.max).contains(x)).collect();
        let one = |x: &i128| Array::full_on(device, &[1], Number::Int(*x), dtype).expect("held");
        let all: Vec<Array> = held.iter().map(one).collect();
        let all = concat(&all.iter().collect::<Vec<_>>(), 0).expect("of one dtype");
        (held, all)
    };
    type Meaning = fn(&i128, &i128) -> bool;
    let rows: [(Id, Meaning); 6] = [
        (Id::Equal, i128::eq),
        (Id::NotEqual, i128::ne),
        (Id::Less, i128::lt),
        (Id::LessEqual, i128::le),
        (Id::Greater, i128::gt),
        (Id::GreaterEqual, i128::ge),
    ];
    for signed in [DType::Int8, DType::Int16, DType::Int32, DType::Int64] {
        for (left, right) in [(signed, DType::UInt64), (DType::UInt64, signed)] {
            let ((a, x), (b, y)) = (column(left), column(right));
            for (id, meaning) in rows {
                let what = format!("{} of {left} and {right}", id.row().name);
                let expected: Vec<bool> =
                    a.iter().flat_map(|a| b.iter().map(move |b| meaning(a, b))).collect();
                // Every element beside every other: through strides of 0, in order, and backwards.
                let x = x.expand_dims(1).expect(&what);
                let grid = |array: &Array| array.broadcast_to(&[a.len(), b.len()]).expect(&what);
                let (p, q) = (grid(&x), grid(&y));
                let (p2, q2) = (p.copy().expect(&what), q.copy().expect(&what));
                let turned = |array: &Array| array.flip(None).expect(&what).transpose();
                let results = [
                    apply(id, &args(&[x, y.clone()])),
                    apply(id, &args(&[p2.clone(), q2.clone()])),
                    apply(id, &args(&[turned(&p2), turned(&q)])).map(|result| turned(&result)),
                ];
                for result in results {
                    let result = result.expect(&what);
                    assert_eq!(result.to_vec::<bool>().expect(&what), expected, "{what}");
                }
            }
            let among = |k: &i128| b.contains(k);
            let found = x.isin(&y).expect("isin").to_vec::<bool>().expect("bools");
            assert_eq!(found, a.iter().map(among).collect::<Vec<_>>(), "{left} in {right}");
        }
    }
}

/// Every cast, on some layouts, special values included.
pub fn casts(device: Device) {
    for from in DType::ALL {
        let here = [draw_special(device, &BASE, from, -300.0..300.0, from as u64).expect("draw")];
        let there = [draw_special(Device::reference(), &BASE, from, -300.0..300.0, from as u64)
            .expect("draw")];
        for to in DType::ALL {
            for (name, views) in &CASES[..8] {
                let what = format!("cast of {from} to {to}, {name}");
                let got = views(&here).expect(&what)[0].astype(to).expect(&what);
                let expected = views(&there).expect(&what)[0].astype(to).expect(&what);
                assert_close(&what, &got, &expected, Tolerance::Exact);
            }
        }
    }
}

/// Choices by a mask, for every dtype and layout: bits move unchanged.
pub fn choices(device: Device) {
    for dtype in DType::ALL {
        let make = |device| -> Result<Vec<Array>> {
            Ok(vec![
                draw(device, &BASE, DType::Bool, 0.0..1.0, 1)?,
                draw_special(device, &BASE, dtype, -9.0..9.0, 2)?,
                draw_special(device, &BASE, dtype, -9.0..9.0, 3)?,
            ])
        };
        let (here, there) = (make(device).expect("draw"), make(Device::reference()).expect("draw"));
        for (name, views) in CASES {
            let what = format!("where of {dtype}, {name}");
            let run = |bases: &[Array]| {
                let views = views(bases).expect(&what);
                select(&views[0], &views[1], &views[2]).expect(&what)
            };
            assert_close(&what, &run(&here), &run(&there), Tolerance::Exact);
        }
    }
}

/// That the table is what the suites walk: a row without a meaning would be a hole.
pub fn table() {
    for row in &ROWS {
        assert!(DType::ALL.iter().any(|dtype| row.takes(*dtype)), "{} takes no dtype", row.name);
        assert!(!row.doc.trim().is_empty() && !row.cuda.is_empty(), "{} lacks a column", row.name);
        assert!(
            row.domain.iter().all(|range| range.start < range.end),
            "{} has an empty domain",
            row.name
        );
    }
}
