//! Rows held against values that none of us computed: mpmath tables for real and complex functions,
//! and the special cases of the array API standard. On every device.

use std::path::{Path, PathBuf};

use tilework::{Arg, Array, Complex, DType, Device, FoldId, Id, KeepDims, apply};
use tilework_ops::Tolerance;

#[path = "../../ops/tests/standard_table.rs"]
mod standard_table;

use standard_table::Kind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lines(folder: &str, name: &str) -> Vec<String> {
    let path = root().join("data").join(folder).join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_string)
        .collect()
}

fn bits(hex: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(hex, 16).expect("hexadecimal"))
}

/// How many numbers lie between two, counting the way from one to the other.
fn steps(a: f64, b: f64) -> u64 {
    let order = |x: f64| {
        let bits = x.to_bits() as i64;
        if bits < 0 { i64::MIN - bits } else { bits }
    };
    if a.is_nan() && b.is_nan() { 0 } else { order(a).abs_diff(order(b)) }
}

/// Rows that round and have no table: what they are made of has, or is IEEE arithmetic.
const WITHOUT_TABLE: [Id; 7] =
    [Id::Abs, Id::Sign, Id::Reciprocal, Id::RsqrtOrZero, Id::SqrtFlat, Id::RcpPair, Id::SqrtPair];

/// The operations that must have a table of real values.
fn tabled() -> impl Iterator<Item = Id> {
    let rounds = |id: &Id| matches!(id.row().tolerance, Tolerance::Ulp(_));
    Id::ALL.into_iter().filter(rounds).filter(|id| !WITHOUT_TABLE.contains(id))
}

/// The name of an operation's table: cheaper forms are held against the function itself.
fn table_of(id: Id) -> &'static str {
    let name = id.row().name;
    name.strip_suffix("_pair").unwrap_or(name)
}

#[test]
fn every_table_belongs_to_a_row() {
    for file in std::fs::read_dir(root().join("data/mpmath")).expect("tables") {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(Id::named(&name).is_some(), "{name} is no row");
    }
}

/// Values whose inputs float32 holds exactly, in float32 on every device.
#[test]
fn float32_agrees_with_mpmath() {
    for device in Device::all() {
        for id in tabled() {
            let rows: Vec<(Vec<f64>, f64)> = lines("mpmath", table_of(id))
                .iter()
                .map(|line| parsed(line))
                .filter(|(inputs, _)| {
                    inputs.iter().all(|&x| f64::from(x as f32) == x || x.is_nan())
                })
                .collect();
            assert!(rows.len() >= 5, "{}: {} values", id.row().name, rows.len());
            let column = |k: usize| rows.iter().map(|(x, _)| x[k] as f32).collect::<Vec<f32>>();
            let operands: Vec<Array> = (0..id.row().arity)
                .map(|k| Array::from_slice_on(device, &column(k)).expect("from_slice"))
                .collect();
            let args: Vec<Arg<'_>> = operands.iter().map(Arg::Array).collect();
            let got = apply(id, &args).expect("apply").to_vec::<f32>().expect("to_vec");
            let Tolerance::Ulp(ulps) = id.row().tolerance else { continue };
            for ((inputs, expected), got) in rows.iter().zip(got) {
                let nearest = match *expected as f32 {
                    // As the row says.
                    small if id == Id::Exp2Pair && small.is_subnormal() => 0.0,
                    nearest => nearest,
                };
                // A unit of the last place, where the result is.
                let unit = f64::from(nearest.abs().next_up() - nearest.abs()).max(1.5e-45);
                let cancels = id == Id::LogAddExp
                    && (f64::from(got) - expected).abs()
                        <= 2.0 * f64::from(f32::EPSILON) * inputs[0].abs().max(inputs[1].abs());
                let close = got == nearest
                    || got.is_nan() && nearest.is_nan()
                    || (f64::from(got) - expected).abs() <= (ulps + 0.5) * unit
                    || cancels;
                assert!(
                    close,
                    "{} of {inputs:?} on {device} is {got:e} in float32, not {nearest:e}",
                    id.row().name
                );
            }
        }
    }
}

fn parsed(line: &str) -> (Vec<f64>, f64) {
    let (inputs, result) = line.split_once(' ').expect("inputs and a result");
    (inputs.split(',').map(bits).collect(), bits(result))
}

#[test]
fn real_functions_agree_with_mpmath() {
    for device in Device::all() {
        for id in tabled().filter(|id| table_of(*id) == id.row().name) {
            let rows = lines("mpmath", id.row().name);
            assert!(rows.len() >= 20, "{}: {} values", id.row().name, rows.len());
            let rows: Vec<(Vec<f64>, f64)> = rows.iter().map(|line| parsed(line)).collect();
            let column = |k: usize| rows.iter().map(|(inputs, _)| inputs[k]).collect::<Vec<f64>>();
            let operands: Vec<Array> = (0..id.row().arity)
                .map(|k| Array::from_slice_on(device, &column(k)).expect("from_slice"))
                .collect();
            let args: Vec<Arg<'_>> = operands.iter().map(Arg::Array).collect();
            let got = apply(id, &args).expect("apply").to_vec::<f64>().expect("to_vec");
            for ((inputs, expected), got) in rows.iter().zip(got) {
                // Where a sum of exponentials cancels, the error is bound by the operands.
                let cancels = id == Id::LogAddExp && expected.abs() < inputs[0].abs();
                let close = steps(got, *expected) <= 2
                    || cancels
                        && (got - expected).abs()
                            <= 2.0 * f64::EPSILON * inputs[0].abs().max(inputs[1].abs());
                assert!(
                    close,
                    "{} of {inputs:?} on {device} is {got:e}, not {expected:e}",
                    id.row().name
                );
            }
        }
    }
}

#[test]
fn complex_functions_agree_with_mpmath() {
    let mut checked = 0;
    for device in Device::all() {
        for id in Id::ALL.into_iter().filter(|id| {
            id.row().takes(DType::Complex128)
                && id.row().result(DType::Complex128) == DType::Complex128
        }) {
            let name = if id == Id::Divide { "div" } else { id.row().name };
            for line in lines("complex", name) {
                let (inputs, result) = line.split_once(" -> ").expect("an arrow");
                let parse =
                    |text: &str| -> Vec<f64> { text.split_whitespace().map(bits).collect() };
                let (inputs, expected) = (parse(inputs), parse(result));
                let operands: Vec<Array> = inputs
                    .chunks(2)
                    .map(|z| {
                        Array::from_slice_on(device, &[Complex::new(z[0], z[1])])
                            .expect("from_slice")
                    })
                    .collect();
                let args: Vec<Arg<'_>> = operands.iter().map(Arg::Array).collect();
                let got = apply(id, &args)
                    .and_then(|z| z.reshape(&[])?.item::<Complex<f64>>())
                    .expect("apply");
                let size = expected[0].hypot(expected[1]);
                let error = (got.re - expected[0]).hypot(got.im - expected[1]);
                // Where a part is infinite the modulus says nothing: then each part for itself.
                let same = |a: f64, b: f64| {
                    a == b
                        || a.is_nan() && b.is_nan()
                        || (a - b).abs() <= 4.0 * f64::EPSILON * b.abs()
                };
                let close = error <= 4.0 * f64::EPSILON * size + 2.0 * f64::from_bits(1)
                    || same(got.re, expected[0]) && same(got.im, expected[1]);
                assert!(close, "{name} of {inputs:?} on {device} is {got}, not {expected:?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 6000, "{checked} values");
}

#[test]
fn special_cases_are_the_standards() {
    let rows = standard_table::all(&root());
    let mut checked = 0;
    for device in Device::all() {
        for row in &rows {
            let got = match row.kind {
                Kind::Reduce { correction } => {
                    reduce(device, &row.function, &row.operands[0], correction)
                }
                Kind::Real => elementwise(device, row, &[DType::Float64, DType::Float32]),
                Kind::Complex => elementwise(device, row, &[DType::Complex128]),
            };
            let Some(got) = got else { continue };
            for parts in got {
                assert!(row.expected.admits(&parts, 1e-6), "{} on {device}: {parts:?}", row.text);
                checked += 1;
            }
        }
    }
    assert!(checked > 8000, "{checked} cases");
}

/// The parts of the result in each dtype; None where the function is not an operation of the table.
fn elementwise(
    device: Device,
    row: &standard_table::Row,
    dtypes: &[DType],
) -> Option<Vec<Vec<f64>>> {
    let id = Id::named(&row.function)?;
    let run = |dtype: &DType| {
        let operands: Vec<Array> = row
            .operands
            .iter()
            .map(|parts| {
                let z = Complex::new(parts[0], parts.get(1).copied().unwrap_or(0.0));
                let array = Array::from_slice_on(device, &[z]).expect("from_slice");
                if dtype.is_complex() {
                    array
                } else {
                    array.real_view().and_then(|x| x.astype(*dtype)).expect("real")
                }
            })
            .collect();
        let args: Vec<Arg<'_>> = operands.iter().map(Arg::Array).collect();
        let result = apply(id, &args).expect("apply");
        let value = result.reshape(&[]).and_then(|x| x.to_scalar()).expect("one element");
        let z = value.get::<Complex<f64>>();
        if result.dtype().is_complex() { vec![z.re, z.im] } else { vec![z.re] }
    };
    Some(dtypes.iter().map(run).collect())
}

fn reduce(device: Device, name: &str, list: &[f64], correction: f64) -> Option<Vec<Vec<f64>>> {
    let x = Array::from_slice_on(device, list).expect("from_slice");
    let fold = match name {
        "std" => {
            return Some(vec![vec![x.std((), correction).and_then(|x| x.item()).expect("std")]]);
        }
        _ => FoldId::ALL.into_iter().find(|fold| fold.row().name == name)?,
    };
    Some(vec![vec![
        x.reduce(fold, (), KeepDims::No, correction).and_then(|x| x.item()).expect("reduce"),
    ]])
}
