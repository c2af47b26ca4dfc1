//! What integers ask for beyond their rows, and what NumPy's habits ask of assignments, on every
//! device of the host.

use tilework::{Array, DType, Device, Element, Error, Id, Number, Result, apply_into};

fn on_each(check: impl Fn(Device)) {
    for device in [Device::cpu(), Device::reference()] {
        let _scope = device.scope();
        check(device);
    }
}

#[test]
fn numbers_beyond_a_dtype_compare_and_do_not_compute() {
    on_each(|_| {
        let x = Array::from_slice(&[0u8, 7, 255]).expect("array");
        for (huge, larger) in [(300i64, false), (-1, true)] {
            let all = |answer: bool| vec![answer; 3];
            let truth = |result: tilework::Result<Array>| result?.to_vec::<bool>();
            assert_eq!(truth(x.greater(huge)), Ok(all(larger)));
            assert_eq!(truth(x.less_equal(huge)), Ok(all(!larger)));
            assert_eq!(truth(x.equal(huge)), Ok(all(false)));
            assert_eq!(truth(x.not_equal(huge)), Ok(all(true)));
            assert_eq!(truth(x.logical_and(huge)), Ok(vec![false, true, true]));
            assert!(matches!(x.add(huge), Err(Error::Overflow(_))));
            assert!(matches!(x.assign(huge), Err(Error::Overflow(_))));
        }
        assert_eq!(x.to_vec::<u8>(), Ok(vec![0, 7, 255]));
    });
}

#[test]
fn negative_powers_of_integers_are_refused() {
    on_each(|_| {
        let x = Array::from_slice(&[1i32, 2, 3]).expect("array");
        let mixed = Array::from_slice(&[0i32, 2, -1]).expect("array");
        assert!(matches!(x.pow(-1), Err(Error::Value(_))));
        assert!(matches!(x.pow(&mixed), Err(Error::Value(_))));
        assert_eq!(
            x.pow(&mixed.abs().expect("abs")).and_then(|y| y.to_vec()),
            Ok(vec![1i32, 4, 3])
        );
        assert_eq!(x.pow(-1.0).map(|y| y.dtype()), Ok(DType::Float64));
    });
}

#[test]
fn signed_results_do_not_enter_unsigned_targets() {
    on_each(|_| {
        let (x, y) = (Array::from_slice(&[1u8, 2]), Array::from_slice(&[1i8, 2]));
        let (x, y) = (x.expect("array"), y.expect("array"));
        let refused = apply_into(Id::Add, &[(&x).into(), (&y).into()], &x);
        assert!(matches!(refused, Err(Error::DType(_))));
        apply_into(Id::Add, &[(&x).into(), 1.into()], &x).expect("a number follows the array");
        assert_eq!(x.to_vec::<u8>(), Ok(vec![2, 3]));
    });
}

#[test]
fn assignments_pass_over_leading_axes_of_length_one() {
    on_each(|_| {
        let target = Array::zeros(&[3], DType::Float32).expect("zeros");
        let row = Array::from_slice(&[1.0f32, 2.0, 3.0]).expect("array");
        target.assign(&row.reshape(&[1, 1, 3]).expect("reshape")).expect("assign");
        assert_eq!(target.to_vec::<f32>(), Ok(vec![1.0, 2.0, 3.0]));
        let column = row.reshape(&[3, 1]).expect("reshape");
        assert!(matches!(target.assign(&column), Err(Error::Shape(_))));
        // The part that is assigned lies in the target itself.
        let back = target.flip(None).and_then(|x| x.reshape_view(&[1, 3])).expect("a view");
        target.assign(&back).expect("assign");
        assert_eq!(target.to_vec::<f32>(), Ok(vec![3.0, 2.0, 1.0]));
    });
}

#[test]
fn the_least_of_nothing_is_an_error_whatever_the_shape() {
    on_each(|_| {
        let nothing = Array::zeros(&[0, 2, 0], DType::Int8).expect("zeros");
        assert!(matches!(nothing.min(0), Err(Error::Value(_))));
        assert!(matches!(nothing.argmax(2), Err(Error::Value(_))));
        assert_eq!(nothing.max(1).map(|x| x.len()), Ok(0));
        assert_eq!(nothing.sum(0).map(|x| x.len()), Ok(0));
    });
}

/// A bound of clip that the dtype cannot hold never binds; one on the wrong side is an error, as for
/// any other operation with such a number.
#[test]
fn bounds_beyond_the_dtype_never_bind() -> Result<()> {
    let x = Array::from_slice(&[0u8, 7, 255])?;
    assert_eq!(x.clip(-5, 300)?.to_vec::<u8>()?, [0, 7, 255]);
    assert_eq!(x.clip(-5, 9)?.to_vec::<u8>()?, [0, 7, 9]);
    assert_eq!(x.clip(-5, 300)?.dtype(), DType::UInt8);
    let y = Array::from_slice(&[i64::MIN, 0, i64::MAX])?;
    let beyond = Number::Int(1 << 100);
    assert_eq!(y.clip(Number::Int(-1 << 100), beyond)?.to_vec::<i64>()?, y.to_vec::<i64>()?);
    for wrong in [x.clip(300, 400), x.clip(-9, -5), x.maximum(-1), x.minimum(256)] {
        assert!(wrong.is_err());
    }
    let out = Array::zeros(&[3], DType::UInt8)?;
    apply_into(Id::Clip, &[(&x).into(), (-5).into(), 300.into()], &out)?;
    assert_eq!(out.to_vec::<u8>()?, [0, 7, 255]);
    Ok(())
}

/// Each of `x` among `values`, against a search in the list.
fn check_isin<T: Element + PartialEq + Copy>(x: &[T], values: &[T]) {
    on_each(|_| {
        let (array, among) = (Array::from_slice(x).unwrap(), Array::from_slice(values).unwrap());
        let found = array.isin(&among).unwrap().to_vec::<bool>().unwrap();
        let expected: Vec<bool> = x.iter().map(|value| values.contains(value)).collect();
        assert_eq!(found, expected);
    });
}

#[test]
fn elements_are_found_among_those_at_the_ends_of_every_dtype() {
    let bytes: Vec<i8> = (-128..=127).collect();
    check_isin(&bytes, &[-128, 127, 3]);
    check_isin(&bytes, &[5]);
    check_isin(&(0..=255).collect::<Vec<u8>>(), &[0, 255, 7, 7]);
    let near = |i: i64| if i % 2 == 0 { i64::MIN + i } else { i64::MAX - i };
    let far: Vec<i64> = (0..300).map(near).collect();
    check_isin(&far, &[i64::MIN, i64::MIN + 9, i64::MIN + 4]);
    check_isin(&far, &[i64::MAX, i64::MAX - 9, i64::MAX - 4]);
    check_isin(&far, &[i64::MAX - 9, i64::MIN + 2]);
    check_isin(&(0..300).map(|i| u64::MAX - i).collect::<Vec<_>>(), &[u64::MAX, u64::MAX - 77]);
    check_isin(&(0..300).collect::<Vec<u64>>(), &[0, u64::MAX]);
    check_isin(&(-3000..3000).collect::<Vec<i32>>(), &(-50..900).step_by(3).collect::<Vec<_>>());
    check_isin(&[1i64, 1 << 40, 7, -(1 << 50)], &[1 << 40, -(1 << 50), 8]);
}
