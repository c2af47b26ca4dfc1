//! Rows of real numbers and integers at their edges: the values that Python and NumPy 2.4 give where
//! the standard's tables (`conformance`) are silent.

use tilework_ops::{Element, Id, Scalar};

/// An operation on numbers of one dtype, which it also gives.
fn apply<T: Element>(id: Id, operands: &[T]) -> T {
    let operands: Vec<Scalar> = operands.iter().map(|x| Scalar::new(*x)).collect();
    id.evaluate(&operands).expect("the row takes the dtype").get::<T>()
}

#[track_caller]
fn same(got: f64, want: f64) {
    let equal = (got.is_nan() && want.is_nan()) || got.to_bits() == want.to_bits();
    assert!(equal, "{got:?}, not {want:?}");
}

#[test]
fn floored_division_is_pythons() {
    let inf = f64::INFINITY;
    for (x, y, quotient, rest) in [
        (7.0, 2.0, 3.0, 1.0),
        (-7.0, 2.0, -4.0, 1.0),
        (7.0, -2.0, -4.0, -1.0),
        (-7.0, -2.0, 3.0, -1.0),
        (6.0, -2.0, -3.0, -0.0),
        (1.0, 0.1, 9.0, 0.099_999_999_999_999_95),
        (1.0, inf, 0.0, 1.0),
        (1.0, -inf, -1.0, -inf),
        (-1.0, inf, -1.0, inf),
        (-1.0, -inf, 0.0, -1.0),
        (-0.0, 1.0, -0.0, 0.0),
        (0.0, -inf, -0.0, -0.0),
        (inf, 1.0, f64::NAN, f64::NAN),
        (1.0, 0.0, inf, f64::NAN),
        (-1.0, 0.0, -inf, f64::NAN),
        (0.0, 0.0, f64::NAN, f64::NAN),
    ] {
        same(apply(Id::FloorDivide, &[x, y]), quotient);
        same(apply(Id::Remainder, &[x, y]), rest);
    }
    // In single precision the quotient is rounded in single precision, as NumPy has it.
    assert_eq!(apply(Id::FloorDivide, &[1.0f32, 0.1]), 9.0);
    assert_eq!(apply(Id::FloorDivide, &[0.6f32, 0.2]), 3.0);
}

#[test]
fn neighbours() {
    let next = |x: f64, toward: f64| apply(Id::NextAfter, &[x, toward]);
    same(next(0.0, 1.0), 5e-324);
    same(next(0.0, -1.0), -5e-324);
    same(next(5e-324, 0.0), 0.0);
    same(next(-5e-324, 0.0), -0.0);
    same(next(f64::MAX, f64::INFINITY), f64::INFINITY);
    same(next(f64::NEG_INFINITY, 0.0), f64::MIN);
    same(next(1.0, 0.0), 1.0 - 0.5 * f64::EPSILON);
    assert_eq!(apply(Id::NextAfter, &[1.0f32, 2.0]), 1.0 + f32::EPSILON);
}

#[test]
fn sums_of_exponentials_and_sigmoids_keep_their_tails() {
    let inf = f64::INFINITY;
    let logaddexp = |x: f64, y: f64| apply(Id::LogAddExp, &[x, y]);
    same(logaddexp(-inf, -inf), -inf);
    same(logaddexp(-inf, 3.0), 3.0);
    same(logaddexp(inf, -inf), inf);
    same(logaddexp(1000.0, 1000.0), 1000.0 + std::f64::consts::LN_2);
    assert!(logaddexp(f64::NAN, inf).is_nan());
    same(apply(Id::Sigmoid, &[-inf]), 0.0);
    same(apply(Id::Sigmoid, &[inf]), 1.0);
    same(apply(Id::Sigmoid, &[-700.0]), (-700.0f64).exp());
    assert_eq!(apply(Id::Sigmoid, &[-100.0f32]), (-100.0f64).exp() as f32);
    assert!(apply(Id::Sigmoid, &[f64::NAN]).is_nan());
}

#[test]
fn steps_and_zeros() {
    same(apply(Id::Sign, &[-0.0]), 0.0);
    same(apply(Id::Relu, &[-3.0]), 0.0);
    same(apply(Id::Relu, &[f64::NAN]), f64::NAN);
    same(apply(Id::Erf, &[f64::INFINITY]), 1.0);
    same(apply(Id::Erf, &[-0.0]), -0.0);
    assert!((apply(Id::Erf, &[0.5f64]) - 0.520_499_877_813_046_5).abs() < 2e-16);
    assert_eq!(apply(Id::Erf, &[0.5f32]), 0.520_499_9);
    assert!(apply(Id::Acosh, &[0.5f64]).is_nan());
}

#[test]
fn integers_divide_downwards() {
    let both = |x: i64, y: i64| (apply(Id::FloorDivide, &[x, y]), apply(Id::Remainder, &[x, y]));
    assert_eq!((both(-7, 2), both(7, -2), both(i64::MIN, -1)), ((-4, 1), (-4, -1), (i64::MIN, 0)));
    assert_eq!(both(5, 0), (0, 0));
    // Every pair of bytes, by the definition.
    for x in i8::MIN..=i8::MAX {
        for y in (i8::MIN..=i8::MAX).filter(|y| *y != 0) {
            let (wide, over) = (i32::from(x), i32::from(y));
            let floor = (f64::from(x) / f64::from(y)).floor() as i32;
            assert_eq!(apply(Id::FloorDivide, &[x, y]), floor as i8);
            assert_eq!(apply(Id::Remainder, &[x, y]), (wide - floor * over) as i8);
        }
    }
}
