//! How results are held against each other.

use tilework::{Array, Scalar};
use tilework_ops::Tolerance;

/// Panics unless both have one shape, one dtype, and elements within the tolerance.
pub fn assert_close(what: &str, got: &Array, expected: &Array, tolerance: Tolerance) {
    assert_close_beside(what, got, expected, tolerance, 0.0);
}

/// The same where elements were computed beside others of size `beside`, whose last places they
/// cannot do better than.
pub fn assert_close_beside(
    what: &str,
    got: &Array,
    expected: &Array,
    tolerance: Tolerance,
    beside: f64,
) {
    assert_eq!(got.shape(), expected.shape(), "{what}: shapes");
    assert_eq!(got.dtype(), expected.dtype(), "{what}: dtypes");
    for (k, (a, b)) in scalars(got).iter().zip(scalars(expected)).enumerate() {
        assert!(within(a, &b, tolerance, beside), "{what}: element {k} is {a:?}, not {b:?}");
    }
}

/// The elements in row-major order.
pub fn scalars(array: &Array) -> Vec<Scalar> {
    tilework_ops::with_element!(array.dtype(), T => {
        array.to_vec::<T>().expect("the array can be read").into_iter().map(Scalar::new).collect()
    })
}

/// Whether `a` is `b` within a tolerance in units of the last place of its dtype.
pub fn within(a: &Scalar, b: &Scalar, tolerance: Tolerance, beside: f64) -> bool {
    let dtype = a.dtype();
    if !dtype.is_inexact() {
        return a == b;
    }
    let parts = |x: &Scalar| {
        let z = x.get::<tilework::Complex<f64>>();
        [z.re, z.im]
    };
    let (x, y) = (parts(a), parts(b));
    let ulps = match tolerance {
        Tolerance::Fused if dtype.is_complex() => 2.0,
        Tolerance::Exact | Tolerance::Fused => {
            // Bits, so that zeros have signs; but all NaN are alike.
            let same = |p: f64, q: f64| p.to_bits() == q.to_bits() || p.is_nan() && q.is_nan();
            return same(x[0], y[0]) && same(x[1], y[1]);
        }
        Tolerance::Ulp(ulps) => ulps,
    };
    let info = dtype.finfo().expect("floating point");
    // A narrow result is rounded once more after being computed wider.
    let ulps = if dtype.is_half() { ulps.min(1.0) } else { ulps };
    // Complex results are right relative to their modulus, not to each part.
    let size = |v: [f64; 2]| if dtype.is_complex() { v[0].hypot(v[1]) } else { v[0].abs() };
    let unit = (size(y).max(beside) * info.eps).max(info.smallest_subnormal);
    (0..2).all(|part| {
        let (p, q) = (x[part], y[part]);
        p == q
            || p.is_nan() && q.is_nan()
            || (p - q).abs() <= ulps * unit
            || overflowed(p, q, info.max, ulps * info.eps)
    })
}

/// One is infinite where the other is as large as can be, within the tolerance: rounding at the edge
/// of the range.
fn overflowed(p: f64, q: f64, max: f64, relative: f64) -> bool {
    let edge = |x: f64| x.abs() >= max * (1.0 - relative);
    p.is_infinite() != q.is_infinite() && edge(p) && edge(q) && p.signum() == q.signum()
}
