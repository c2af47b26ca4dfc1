//! What the tests of maps share: arrays that can be written and read scalar by scalar, values
//! worth testing, and the comparison that a row's tolerance asks for.

#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../rng/mod.rs"]
mod rng;
#[path = "../valid/mod.rs"]
mod valid;

pub(crate) use rng::Rng;

use tilework_backend::{Map, Operand, Request, Storage, Target, UserRead, UserWrite, View};
use tilework_cpu::Cpu;
use tilework_error::Result;
use tilework_layout::{Layout, positions};
use tilework_ops::{Class, DType, Id, Kind, Row, Scalar, Tolerance};
use tilework_tape::Tape;
pub(crate) use valid::run;

/// A view on a block of its own whose elements are `values` in row-major order.
pub(crate) fn array(layout: Layout, dtype: DType, values: &[Scalar]) -> View {
    let elements = layout.span().map_or(layout.offset(), |(_, high)| high + 1);
    let bytes = elements * dtype.size();
    let storage = Storage::host(Cpu::ID, bytes, true).unwrap();
    let view = View::new(storage, layout, dtype).unwrap();
    write(&view, values);
    view
}

/// Writes `values` in row-major order, repeated as often as needed.
pub(crate) fn write(view: &View, values: &[Scalar]) {
    let mut bytes = UserWrite::new("test", view.storage()).unwrap();
    let size = view.dtype().size();
    for (k, position) in positions(view.layout()).enumerate() {
        let value = &values[k % values.len()];
        assert_eq!(value.dtype(), view.dtype());
        bytes[position * size..(position + 1) * size].copy_from_slice(value.bytes());
    }
}

/// The elements in row-major order.
pub(crate) fn read(view: &View) -> Vec<Scalar> {
    let bytes = UserRead::new("test", view.storage()).unwrap();
    let size = view.dtype().size();
    let element = |position| Scalar::from_bytes(view.dtype(), &bytes[position * size..]);
    positions(view.layout()).map(element).collect()
}

/// An array of zeros.
pub(crate) fn zeros(layout: Layout, dtype: DType) -> View {
    array(layout, dtype, &[Scalar::zero(dtype)])
}

/// Runs a tape.
pub(crate) fn map(tape: &Tape, inputs: &[Operand<'_>], output: &View) -> Result<()> {
    let output = Target::shared("test", output.borrow())?;
    run(&Cpu, "test", &Request::Map(Map { tape, inputs, output }))
}

/// Values at which something may go wrong.
pub(crate) fn edges(dtype: DType) -> Vec<Scalar> {
    let parts: Vec<f64> = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        127.5,
        -128.9,
        255.9,
        32767.5,
        65519.0,
        65520.0,
        2147483647.0,
        2147483648.0,
        -2147483649.0,
        4294967295.5,
        9.3e18,
        -9.3e18,
        1.9e19,
        3.5e38,
        1e-40,
        -6e-8,
        1e308,
        1.0 + 1.0 / 2048.0,
        16777217.0,
    ];
    let bits: Vec<u64> =
        vec![0, 1, 2, 127, 128, 255, 32767, 32768, 65535, 1 << 31, u32::MAX as u64, 1 << 63, !0];
    match dtype.kind() {
        Kind::Bool => vec![Scalar::new(true), Scalar::new(false)],
        Kind::Signed | Kind::Unsigned => {
            bits.iter().map(|&b| Scalar::from_bytes(dtype, &b.to_le_bytes())).collect()
        }
        Kind::Float => parts.iter().map(|&x| Scalar::new(x).cast(dtype)).collect(),
        Kind::Complex => {
            let pairs = parts.iter().zip(parts.iter().skip(3).chain(&parts));
            let complex = |(&re, &im): (&f64, &f64)| tilework_ops::Complex::new(re, im);
            pairs.map(complex).map(|z| Scalar::new(z).cast(dtype)).collect()
        }
    }
}

/// Random values of a domain.
pub(crate) fn values(
    dtype: DType,
    domain: std::ops::Range<f64>,
    n: usize,
    rng: &mut Rng,
) -> Vec<Scalar> {
    let mut one = || domain.start + (domain.end - domain.start) * rng.unit();
    let scalar = |_| match dtype.class() {
        Class::Complex => Scalar::new(tilework_ops::Complex::new(one(), one())).cast(dtype),
        Class::Bool => Scalar::new(one() > (domain.start + domain.end) / 2.0),
        _ => Scalar::new(one()).cast(dtype),
    };
    (0..n).map(scalar).collect()
}

/// Whether a result is as near to the definition's as the row says.
pub(crate) fn is_near(row: &Row, computes: DType, got: &Scalar, expected: &Scalar) -> bool {
    let exact = same(got, expected);
    match row.tolerance {
        Tolerance::Exact => exact,
        Tolerance::Fused if !computes.is_complex() => exact,
        Tolerance::Fused => exact || ulps(got, expected) <= 2.0,
        Tolerance::Ulp(_) if exact => true,
        // Two units of float32 may fall on two sides of a boundary of the half type.
        Tolerance::Ulp(_) if computes.size() == 2 => ulps(got, expected) <= 1.0,
        Tolerance::Ulp(most) => ulps(got, expected) <= most,
    }
}

/// The same bits, or NaN in the same parts.
pub(crate) fn same(a: &Scalar, b: &Scalar) -> bool {
    if a == b {
        return true;
    }
    let parts = |x: &Scalar| {
        let z = x.get::<tilework_ops::Complex<f64>>();
        [z.re, z.im].map(|part| if part.is_nan() { u64::MAX } else { part.to_bits() })
    };
    a.dtype() == b.dtype() && a.dtype().is_inexact() && parts(a) == parts(b)
}

/// How far apart two results are, in units in the last place of the second.
pub(crate) fn ulps(a: &Scalar, b: &Scalar) -> f64 {
    let Ok(info) = a.dtype().finfo() else { return f64::INFINITY };
    let parts = |x: &Scalar| {
        let z = x.get::<tilework_ops::Complex<f64>>();
        [z.re, z.im]
    };
    let distance = |(a, b): (f64, f64)| {
        if a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() {
            return 0.0;
        }
        let exponent = b.abs().max(info.smallest_normal).log2().floor();
        let distance = (a - b).abs() / (exponent.exp2() * info.eps);
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    parts(a).into_iter().zip(parts(b)).map(distance).fold(0.0, f64::max)
}

/// What an operation makes of operands, by its definition.
pub(crate) fn expected(id: Id, operands: &[&[Scalar]], n: usize) -> Vec<Scalar> {
    let at = |i: usize| operands.iter().map(|x| x[i % x.len()]).collect::<Vec<_>>();
    (0..n).map(|i| id.evaluate(&at(i)).unwrap()).collect()
}

/// Layouts of a matrix: in order, turned, with gaps, reversed, rows and columns repeated.
pub(crate) fn planes(rows: usize, columns: usize) -> Vec<Layout> {
    let (r, c) = (rows as isize, columns as isize);
    let shape = [rows, columns];
    let last = |a: isize, b: isize| ((r - 1) * a + (c - 1) * b) as usize;
    vec![
        Layout::contiguous(&shape).unwrap(),
        Layout::new(&shape, &[1, r], 3).unwrap(),
        Layout::new(&shape, &[2 * c, 2], 1).unwrap(),
        Layout::new(&shape, &[-c, -1], last(c, 1)).unwrap(),
        Layout::new(&shape, &[1, -(r + 2)], ((c - 1) * (r + 2)) as usize).unwrap(),
        Layout::new(&shape, &[0, 1], 2).unwrap(),
        Layout::new(&shape, &[1, 0], 2).unwrap(),
        Layout::new(&shape, &[0, 2], 2).unwrap(),
        Layout::new(&shape, &[-1, 0], rows).unwrap(),
    ]
}
