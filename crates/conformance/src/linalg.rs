//! Matrix products of every dtype, shape and layout.

use tilework::{
    Array, DType, Device, Result, matmul_naive_flat, matmul_tiled, matmul_tiled_flat, s,
};
use tilework_ops::Tolerance;

use crate::compare::{assert_close, scalars};
use crate::values::draw;

/// The shapes that products are tried on: around tile edges, thin, empty.
const SIZES: &[(usize, usize, usize)] = &[
    (1, 1, 1),
    (2, 3, 4),
    (7, 8, 9),
    (14, 5, 32),
    (15, 17, 33),
    (16, 64, 16),
    (1, 40, 50),
    (50, 40, 1),
    (33, 1, 29),
    (6, 130, 6),
    (65, 64, 63),
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
];

/// Every dtype, operands in row-major and other orders.
pub fn products(device: Device) {
    for dtype in DType::ALL {
        for &(m, k, n) in SIZES {
            for order in 0..4 {
                let what = format!("matmul of {dtype}, {m} x {k} x {n}, order {order}");
                let run = |device| -> Result<(Array, Array)> {
                    let a = operand(device, [m, k], dtype, order & 1 == 1, 1)?;
                    let b = operand(device, [k, n], dtype, order & 2 == 2, 2)?;
                    let bound =
                        a.to_dtype(wide(dtype))?.abs()?.matmul(&b.to_dtype(wide(dtype))?.abs()?)?;
                    Ok((a.matmul(&b)?, bound))
                };
                held(&what, device, run);
            }
        }
    }
}

/// Sums of one term are that term, rounded once, whatever a device does with long ones.
pub fn outer_products(device: Device) {
    for dtype in [DType::Float32, DType::Float64] {
        for (m, n) in [(1, 1), (3, 70), (50, 42), (300, 300), (1500, 1100)] {
            let what = format!("outer product of {dtype}, {m} x {n}");
            let draw = |shape: &[usize], seed| draw(device, shape, dtype, -3.0..3.0, seed);
            let (a, b) = (draw(&[m, 1], 1).expect(&what), draw(&[1, n], 2).expect(&what));
            let (got, expected) = (a.matmul(&b), a.multiply(&b));
            assert_eq!(scalars(&got.expect(&what)), scalars(&expected.expect(&what)), "{what}");
        }
    }
}

fn wide(dtype: DType) -> DType {
    if dtype.is_complex() { DType::Complex128 } else { DType::Float64 }
}

fn operand(
    device: Device,
    shape: [usize; 2],
    dtype: DType,
    transposed: bool,
    seed: u64,
) -> Result<Array> {
    if transposed {
        return Ok(draw(device, &[shape[1], shape[0]], dtype, -3.0..3.0, seed)?.transpose());
    }
    draw(device, &shape, dtype, -3.0..3.0, seed)
}

/// Floating-point products are right relative to the product of the absolute values.
fn assert_product(what: &str, got: &Array, expected: &Array, bound: &Array) {
    let dtype = got.dtype();
    if !dtype.is_inexact() {
        return assert_close(what, got, expected, Tolerance::Exact);
    }
    assert_eq!((got.shape(), dtype), (expected.shape(), expected.dtype()), "{what}");
    let eps = dtype.finfo().expect("floating point").eps;
    for ((a, b), size) in scalars(got).iter().zip(scalars(expected)).zip(scalars(bound)) {
        let (a, b) = (a.get::<tilework::Complex<f64>>(), b.get::<tilework::Complex<f64>>());
        let error = (a.re - b.re).hypot(a.im - b.im);
        let size = size.get::<f64>();
        assert!(error <= 8.0 * eps * size + 1e-300, "{what}: {a} is not {b} (|A||B| is {size})");
    }
}

/// That a device gives the product of the reference; `run` also gives that of the absolute values.
fn held(what: &str, device: Device, run: impl Fn(Device) -> Result<(Array, Array)>) -> [Array; 2] {
    let (got, _) = run(device).expect(what);
    let (expected, bound) = run(Device::reference()).expect(what);
    assert_product(what, &got, &expected, &bound);
    [got, expected]
}

/// Batches that broadcast, vectors, views with any strides, targets, and errors.
pub fn shapes(device: Device) {
    let cases: &[(&[usize], &[usize])] = &[
        (&[5], &[5]),
        (&[3, 5], &[5]),
        (&[5], &[5, 4]),
        (&[2, 3, 5], &[5, 4]),
        (&[2, 1, 3, 5], &[7, 5, 4]),
        (&[5], &[2, 5, 3]),
        (&[2, 3, 5], &[5]),
        (&[0, 3, 5], &[5, 4]),
    ];
    for (a, b) in cases {
        let what = format!("matmul of {a:?} and {b:?}");
        let run = |device| -> Result<Array> {
            draw(device, a, DType::Float64, -1.0..1.0, 1)?.matmul(&draw(
                device,
                b,
                DType::Float64,
                -1.0..1.0,
                2,
            )?)
        };
        assert_close(
            &what,
            &run(device).expect(&what),
            &run(Device::reference()).expect(&what),
            Tolerance::Ulp(64.0),
        );
    }
    let strided = |device| -> Result<Array> {
        let a = draw(device, &[20, 30], DType::Float32, -1.0..1.0, 1)?.slice(&s![..;-2, 1..;3])?;
        let b =
            draw(device, &[40, 10], DType::Float32, -1.0..1.0, 2)?.slice(&s![5..35;3, ..;-1])?;
        let row = draw(device, &[1, 10], DType::Float32, -1.0..1.0, 3)?.broadcast_to(&[10, 10])?;
        a.matmul(&b)?.matmul(&row)
    };
    let bound = Array::full(&[10, 10], 60.0, DType::Float64).expect("full");
    assert_product(
        "strided",
        &strided(device).expect("matmul"),
        &strided(Device::reference()).expect("matmul"),
        &bound,
    );
    let a = draw(device, &[4, 6], DType::Float32, -1.0..1.0, 1).expect("draw");
    let out = Array::zeros_on(device, &[6, 6], DType::Float32).expect("zeros");
    a.transpose().matmul_into(&a, &out.transpose()).expect("matmul");
    assert_close(
        "into",
        &out.transpose(),
        &a.transpose().matmul(&a).expect("matmul"),
        Tolerance::Ulp(4.0),
    );
    assert!(a.matmul(&a).unwrap_err().to_string().contains("6 is not 4"));
    assert!(a.matmul_into(&a, &out).is_err() && a.matmul_into(&a.transpose(), &out).is_err());
}

/// The textbook's kernels give the products of the definition, in every dtype, shape and layout.
pub fn textbook(device: Device) {
    for dtype in DType::ALL {
        let naive = |device| -> Result<(Array, Array)> {
            let a = draw(device, &[2, 1, 5, 7], dtype, -3.0..3.0, 1)?.flip(Some(&[-1]))?;
            let b = draw(device, &[3, 4, 7], dtype, -3.0..3.0, 2)?.matrix_transpose()?;
            let size = |x: &Array| x.to_dtype(wide(dtype))?.abs();
            Ok((a.matmul_naive(&b)?, size(&a)?.matmul(&size(&b)?)?))
        };
        let naive = held(&format!("naive product of {dtype}"), device, naive);
        let tiled = |device| -> Result<(Array, Array)> {
            let a = draw(device, &[3, 2, 3, 3], dtype, -3.0..3.0, 1)?.permute(&[1, 0, 3, 2])?;
            let b =
                draw(device, &[3, 4, 3, 6], dtype, -3.0..3.0, 2)?.slice(&s![.., .., .., ..;-2])?;
            let size = |x: &Array| x.to_dtype(wide(dtype))?.abs();
            Ok((matmul_tiled(&a, &b)?, matmul_tiled(&size(&a)?, &size(&b)?)?))
        };
        let tiled = held(&format!("tiled product of {dtype}"), device, tiled);
        if device == Device::cpu() {
            // In the order and the precision of the definition.
            for [got, expected] in [naive, tiled] {
                assert_close("textbook", &got, &expected, Tolerance::Exact);
            }
        }
        let nothing = |device| -> Result<(Array, Array)> {
            let zeros = |shape: &[usize]| Array::zeros_on(device, shape, dtype);
            let product = matmul_tiled(&zeros(&[2, 0, 3, 3])?, &zeros(&[0, 4, 3, 3])?)?;
            zeros(&[2, 0])?.matmul_naive(&zeros(&[0, 3])?)?;
            Ok((product.copy()?, product.to_dtype(wide(dtype))?))
        };
        held(&format!("tiled sums of nothing in {dtype}"), device, nothing);
    }
    let (a, b) = (
        draw(device, &[16, 24], DType::Float32, -1.0..1.0, 1),
        draw(device, &[24, 8], DType::Float32, -1.0..1.0, 2),
    );
    let (a, b) = (a.expect("draw"), b.expect("draw"));
    let expected = a.matmul(&b).expect("matmul");
    let bound = a
        .abs()
        .and_then(|a| a.matmul(&b.abs()?))
        .and_then(|x| x.astype(DType::Float64))
        .expect("bound");
    assert_product("naive", &a.matmul_naive(&b).expect("naive"), &expected, &bound);
    let tiles = |x: &Array, t: isize| {
        let shape = [x.shape()[0] as isize / t, t, x.shape()[1] as isize / t, t];
        x.reshape(&shape)
            .and_then(|x| x.permute(&[0, 2, 1, 3]))
            .and_then(|x| x.copy())
            .expect("tiles")
    };
    let tiled = matmul_tiled(&tiles(&a, 8), &tiles(&b, 8)).expect("tiled");
    let flat = tiled.permute(&[0, 2, 1, 3]).and_then(|x| x.reshape(&[16, 8])).expect("flat");
    assert_product("tiled", &flat, &expected, &bound);

    // The same on flat buffers, of any step, and with the target among the sources.
    let out = Array::zeros_on(device, &[16 * 8], DType::Float32).expect("zeros");
    let buffer = |x: &Array| x.ravel().and_then(|x| x.copy()).expect("a flat buffer");
    let sizes = [16, 24, 8];
    matmul_naive_flat(&buffer(&a), &buffer(&b), &out, sizes).expect("naive");
    assert_product("flat", &out.reshape(&[16, 8]).expect("view"), &expected, &bound);
    let (left, right) = (buffer(&tiles(&a, 8)), buffer(&tiles(&b, 8)));
    let reversed = out.slice(&s![..;-1]).expect("view");
    matmul_tiled_flat(&left, &right, &reversed, sizes, 8).expect("tiled");
    assert_eq!(
        reversed.to_vec::<f32>().expect("values"),
        buffer(&tiled).to_vec::<f32>().expect("values"),
    );
    let square = tiles(&a.slice(&s![.., ..16]).expect("view"), 4);
    let expected = buffer(&matmul_tiled(&square, &square).expect("tiled"));
    let square = buffer(&square);
    matmul_tiled_flat(&square, &square, &square, [16, 16, 16], 4).expect("in place");
    assert_eq!(square.to_vec::<f32>().expect("values"), expected.to_vec::<f32>().expect("values"));
    for (sizes, tile) in
        [([16, 24, 8], 0), ([16, 24, 8], 3), ([16, 24, 16], 8), ([usize::MAX; 3], 1)]
    {
        assert!(matmul_tiled_flat(&left, &right, &out, sizes, tile).is_err(), "{sizes:?} {tile}");
    }
    assert!(matmul_naive_flat(&a, &right, &out, [16, 24, 8]).is_err(), "two axes");
}
