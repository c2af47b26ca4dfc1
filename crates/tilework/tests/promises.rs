//! What the documentation of arrays promises, beside what backends are compared for: kinds of
//! errors, ranges, accuracy, and names.

use std::collections::HashSet;

use tilework::{
    Arg, Array, DType, Device, Direction, Error, FInfo, FoldId, IInfo, Id, Kind, Nan, PadMode,
    Properties, Rng, Storage, apply, apply_into, concat, s, stack,
};

const FLOATS: [DType; 4] = [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64];

#[test]
fn uniform_numbers_stay_below_one() {
    for dtype in FLOATS {
        let x = Rng::new(11).uniform(&[100_000], dtype).unwrap();
        assert_eq!(x.dtype(), dtype);
        let (low, high) = (x.min(()).unwrap(), x.max(()).unwrap());
        let (low, high) = (low.item::<f64>().unwrap(), high.item::<f64>().unwrap());
        assert!((0.0..0.01).contains(&low), "{dtype}: {low}");
        assert!(high > 0.99 && high < 1.0, "{dtype}: {high}");
    }
}

/// Squares and powers of half types neither overflow nor lose bits before they are summed.
#[test]
fn norms_accumulate_like_sums() {
    for dtype in FLOATS {
        let x = Array::from_slice(&[300.0f64, -400.0]).unwrap().astype(dtype).unwrap();
        for order in [2.0, 3.0] {
            let norm = x.norm((), order).unwrap();
            let exact = (300f64.powf(order) + 400f64.powf(order)).powf(1.0 / order);
            assert_eq!(norm.dtype(), dtype);
            let error = (norm.item::<f64>().unwrap() / exact - 1.0).abs();
            assert!(error < 2.0 * dtype.finfo().unwrap().eps, "{dtype}, order {order}: {error}");
        }
    }
    let z = Array::from_slice(&[tilework::Complex::new(3.0f32, 4.0)]).unwrap();
    let norm = z.norm_keepdims(0, 2.0).unwrap();
    assert_eq!((norm.dtype(), norm.to_vec::<f32>().unwrap()), (DType::Float32, vec![5.0]));
    let counts = Array::from_slice(&[3i8, 0, 4]).unwrap().norm((), 2.0).unwrap();
    assert_eq!(counts.item::<f64>().unwrap(), 5.0);
    // The smallest integers are further from zero than the largest.
    for (order, exact) in [(1.0, 255.0), (f64::INFINITY, 128.0), (f64::NEG_INFINITY, 127.0)] {
        let least = Array::from_slice(&[i8::MIN, 127]).unwrap().norm((), order).unwrap();
        assert_eq!(least.item::<f64>().unwrap(), exact, "{order}");
    }
    let cubes = Array::from_slice(&[i64::MIN]).unwrap().norm((), 3.0).unwrap();
    assert!((cubes.item::<f64>().unwrap() / 2f64.powi(63) - 1.0).abs() < 1e-12);
}

/// As the standard says, what would be divided by no degrees of freedom, or fewer, is NaN.
#[test]
fn variances_without_degrees_of_freedom() {
    for device in [Device::cpu(), Device::reference()] {
        let x = Array::from_slice_on(device, &[1.0f64, 2.0]).unwrap();
        let var = |x: &Array, correction: f64| {
            let var = x.reduce(FoldId::Var, (), tilework::KeepDims::No, correction).unwrap();
            var.item::<f64>().unwrap()
        };
        assert_eq!([0.0, 1.0].map(|c| var(&x, c)), [0.25, 0.5]);
        assert!([2.0, 3.0, f64::NAN].iter().all(|&c| var(&x, c).is_nan()));
        assert!(var(&Array::ones_on(device, &[1], DType::Float32).unwrap(), 1.0).is_nan());
        assert!(var(&Array::ones_on(device, &[0], DType::Float64).unwrap(), 0.0).is_nan());
    }
}

/// Classes count from the end if they are negative, also where the dtype is too narrow for the sum.
#[test]
fn negative_classes_count_from_the_end() {
    let rows = Array::from_slice(&[-1i8, 0, -3]).unwrap().one_hot(3, DType::Int8).unwrap();
    assert_eq!(rows.to_vec::<i8>().unwrap(), [0, 0, 1, 1, 0, 0, 1, 0, 0]);
    let wide = Array::from_slice(&[-100i8]).unwrap().one_hot(250, DType::Int8).unwrap();
    assert_eq!(wide.argmax(1).unwrap().to_vec::<i64>().unwrap(), [150]);
    assert!(Array::from_slice(&[-4i64]).unwrap().one_hot(3, DType::Int8).is_err());
}

/// Axes of no elements broadcast as others do.
#[test]
fn nothing_is_picked_along_an_axis_of_nothing() {
    let none = Array::zeros(&[0, 5], DType::Float32).unwrap();
    let picks = Array::zeros(&[1, 3], DType::Int64).unwrap();
    assert_eq!(none.take_along_axis(&picks, 1).unwrap().shape(), [0, 3]);
    let one = Array::zeros(&[1, 5], DType::Float32).unwrap();
    let picks = Array::zeros(&[0, 3], DType::Int64).unwrap();
    assert_eq!(one.take_along_axis(&picks, 1).unwrap().shape(), [0, 3]);
}

/// A block says which device it is of, which anybody can say.
#[test]
fn blocks_in_other_memory_than_their_device_are_refused() {
    let mut memory = [0u8; 8];
    let cpu = tilework::Device::cpu().id();
    // SAFETY: nobody reads or writes the block, and it ends before the memory.
    let block = unsafe { Storage::on_device(cpu, memory.as_mut_ptr(), 8, Box::new(())) };
    let layout = tilework::Layout::contiguous(&[1]).unwrap();
    let array = Array::from_storage(block.unwrap(), layout, DType::Float64);
    assert!(matches!(array, Err(Error::Device(_))), "{array:?}");
}

#[test]
fn a_result_has_one_ellipsis() {
    let x = Array::zeros(&[2, 3], DType::Float32).unwrap();
    assert!(tilework::einsum("...->...", &[&x]).is_ok());
    for twice in ["...->......", "i...->...i..."] {
        let message = tilework::einsum(twice, &[&x]).unwrap_err().to_string();
        assert!(message.contains("once in a term"), "{twice}: {message}");
    }
}

/// NumPy's dtypes where two kinds of integers meet in a function of real numbers.
#[test]
fn integers_become_floats_one_by_one() {
    use DType::*;
    let cases = [
        (Bool, Bool, Float16),
        (Int8, UInt8, Float16),
        (Bool, UInt8, Float16),
        (Int8, UInt16, Float32),
        (Int16, UInt16, Float32),
        (Int16, UInt8, Float32),
        (Int8, UInt32, Float64),
        (Int32, UInt32, Float64),
        (Int64, UInt64, Float64),
        (Int8, Float16, Float16),
        (Int8, BFloat16, BFloat16),
        (UInt16, Float16, Float32),
    ];
    for (a, b, both) in cases {
        let (x, y) = (Array::ones(&[2], a).unwrap(), Array::ones(&[1], b).unwrap());
        for (x, y) in [(&x, &y), (&y, &x)] {
            for result in [x.atan2(y), x.hypot(y), x.copysign(y), x.logaddexp(y)] {
                assert_eq!(result.unwrap().dtype(), both, "{} and {}", x.dtype(), y.dtype());
            }
        }
    }
    let bytes = Array::ones(&[2], Int8).unwrap();
    assert_eq!(bytes.hypot(3).unwrap().dtype(), Float16);
    // What depends on the last bit has no half types.
    let next = bytes.nextafter(&Array::ones(&[2], UInt8).unwrap()).unwrap();
    assert_eq!(next.dtype(), Float32);
}

/// Whatever helped to do it.
#[test]
fn errors_name_the_operation_that_was_asked_for() {
    let huge = 1 << 61;
    let x = Array::arange(0, 12, 1, DType::Float64).and_then(|x| x.reshape(&[3, 4])).unwrap();
    let rng = Rng::new(1);
    let grown = PadMode::Constant(0.0.into());
    let long = Array::ones(&[], DType::Int8).and_then(|x| x.broadcast_to(&[1 << 62])).unwrap();
    let cases = [
        ("empty", Array::empty(&[huge], DType::Float32)),
        ("zeros", Array::zeros(&[1 << 40, 1 << 30], DType::Float32)),
        ("zeros", Array::zeros(&[0, 1 << 62, 1 << 62], DType::Float32)),
        ("ones", Array::ones(&[huge], DType::Int8)),
        ("full", Array::full(&[huge; 3], 1, DType::Int8)),
        ("eye", Array::eye(huge, huge, 0, DType::Int8)),
        ("arange", Array::arange(0, 1i64 << 60, 1, DType::Int64)),
        ("arange", Array::arange(0.0, 1e18, 1.0, DType::Float64)),
        ("linspace", Array::linspace(0.0..=1.0, huge, DType::Float64)),
        ("uniform", rng.uniform(&[huge], DType::Float64)),
        ("permutation", rng.permutation(huge)),
        ("sample", rng.sample(huge, huge)),
        ("repeat", x.repeat(huge, 0)),
        ("repeat", x.repeat_each(&[0, 0, huge], 0)),
        ("tile", x.tile(&[1 << 59, 1])),
        ("pad", x.pad(&[(huge, 0), (0, 0)], grown)),
        ("stack", stack(&[&long, &long], 0)),
        ("concat", concat(&[&long, &long], 0)),
        ("roll", long.roll(1, 0)),
        ("exp", long.exp()),
        ("copy", long.copy()),
        ("sort", long.sort(0, Direction::Ascending)),
        ("one_hot", Array::from_slice(&[0i64]).and_then(|x| x.one_hot(huge, DType::Int8))),
    ];
    for (operation, result) in cases {
        let Err(error) = result else { panic!("{operation} found memory") };
        let error = error.to_string();
        assert!(error.starts_with(&format!("{operation}: ")), "{operation} says {error}");
    }
}

/// Long ranges are made row by row, and hold what one would count one by one.
#[test]
fn ranges_hold_what_is_counted_one_by_one() {
    for count in [0usize, 1, 2, 7, 4095, 4096, 4097, 8192, 12_345, 40_000] {
        let n = count as i64;
        for device in [Device::cpu(), Device::reference()] {
            let integers = |start: i64, step: i64| (0..n).map(move |k| start + k * step);
            for (start, step) in [(0, 1), (-7, 3), (i64::MAX - 3 * n, 3), (i64::MIN + 5 * n, -5)] {
                let x = Array::arange_on(device, start, start + n * step, step, DType::Int64);
                assert!(integers(start, step).eq(x.unwrap().to_vec::<i64>().unwrap()), "{count}");
            }
            let first = u64::MAX - count as u64;
            let x = Array::arange_on(device, first, u64::MAX, 1, DType::UInt64).unwrap();
            let wanted = first..u64::MAX;
            assert!(wanted.eq(x.to_vec::<u64>().unwrap()), "{count}");
            let x = Array::arange_on(device, 0, n, 1, DType::UInt8).unwrap();
            assert!((0..n).map(|k| k as u8).eq(x.to_vec::<u8>().unwrap()), "{count}");

            let x = Array::arange_on(device, -0.3, -0.3 + 0.1 * n as f64, 0.1, DType::Float64);
            let x = x.unwrap().to_vec::<f64>().unwrap();
            let wanted = (0..x.len()).map(|k| k as f64 * 0.1 + -0.3);
            assert!(x.len().abs_diff(count) <= 1 && x.iter().copied().eq(wanted), "{count}");
            for endpoint in [false, true] {
                let linspace = |start: f64, stop: f64, dtype| match endpoint {
                    true => Array::linspace_on(device, start..=stop, count, dtype),
                    false => Array::linspace_on(device, start..stop, count, dtype),
                };
                let steps = if endpoint { count.saturating_sub(1) } else { count }.max(1) as f64;
                let at = |k: usize, start: f64, stop: f64| match endpoint && k > 0 && k + 1 == count
                {
                    true => stop,
                    false if (stop - start) / steps == 0.0 => {
                        k as f64 / steps * (stop - start) + start
                    }
                    false => k as f64 * ((stop - start) / steps) + start,
                };
                for (start, stop) in [(0.0, 1.0), (2.5, -7.25), (0.0, 5e-324), (3.0, 3.0)] {
                    let x = linspace(start, stop, DType::Float64);
                    let wanted = (0..count).map(|k| at(k, start, stop));
                    assert!(wanted.eq(x.unwrap().to_vec::<f64>().unwrap()), "{count} {stop}");
                }
                let x = linspace(-3.0, 90.5, DType::Int16);
                let wanted = (0..count).map(|k| at(k, -3.0, 90.5).floor() as i16);
                assert!(wanted.eq(x.unwrap().to_vec::<i16>().unwrap()), "{count} {endpoint}");
                let x = linspace(0.0, 1.0, DType::Float32);
                let wanted = (0..count).map(|k| at(k, 0.0, 1.0) as f32);
                assert!(wanted.eq(x.unwrap().to_vec::<f32>().unwrap()), "{count} {endpoint}");
            }
        }
    }
}

#[test]
fn integers_refuse_negative_powers() {
    let x = Array::from_slice(&[2i32, 3]).unwrap();
    for exponents in [Array::from_slice(&[1i32, -1]), Array::from_slice(&[-1i32])] {
        let error = x.pow(&exponents.unwrap()).unwrap_err();
        assert!(matches!(&error, Error::Value(_)), "{error}");
        assert!(error.to_string().starts_with("pow: integers have no negative powers"), "{error}");
    }
    assert!(matches!(x.pow(-1), Err(Error::Value(_))));
    assert!(x.pow(&Array::from_slice::<i32>(&[]).unwrap().reshape(&[0, 1]).unwrap()).is_ok());
    assert_eq!(x.pow(2).unwrap().to_vec::<i32>().unwrap(), [4, 9]);
}

/// A second power is a product: to the last bit, with the dtype of a power, under its name.
#[test]
fn second_powers_are_products() {
    let numbers =
        [0.1, -3.7, 0.0, -0.0, 1e200, 1e-200, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0];
    let x = Array::from_slice(&numbers).unwrap();
    for two in [Arg::from(2), Arg::from(2.0)] {
        let squares = apply(Id::Pow, &[(&x).into(), two]).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(squares, numbers.map(|x| x * x));
    }
    let target = x.copy().unwrap();
    apply_into(Id::Pow, &[(&target).into(), 2.into()], &target).unwrap();
    assert_eq!(target.to_vec::<f64>().unwrap(), numbers.map(|x| x * x));
    assert!(x.pow(2).unwrap().get::<f64>(&[3]).unwrap().is_sign_positive());
    let bytes = Array::from_slice(&[100i8, -3]).unwrap();
    assert_eq!(bytes.pow(2).unwrap().to_vec::<i8>().unwrap(), [16, 9]);
    assert_eq!(bytes.pow(2.0).unwrap().to_vec::<f64>().unwrap(), [10_000.0, 9.0]);
    let bools = Array::from_slice(&[true, false]).unwrap().pow(2).unwrap();
    assert_eq!(bools.dtype(), Array::from_slice(&[true]).unwrap().pow(3).unwrap().dtype());
    let refused = apply_into(Id::Pow, &[(&x).into(), 2.into()], &bytes).unwrap_err();
    assert!(refused.to_string().starts_with("pow: "), "{refused}");
}

#[test]
fn only_some_folds_run_along_an_axis() {
    let x = Array::from_slice(&[3i64, 1, 2]).unwrap();
    assert_eq!(x.scan(FoldId::Min, 0).unwrap().to_vec::<i64>().unwrap(), [3, 1, 1]);
    let error = x.scan(FoldId::Mean, 0).unwrap_err().to_string();
    assert_eq!(error, "mean: only sum, prod, max, min run along an axis");
    let error = x.cumulative_sum(1).unwrap_err().to_string();
    assert!(error.starts_with("cumulative_sum: "), "{error}");
}

#[test]
fn products_tell_dtypes_from_shapes() {
    let (a, b) = (Array::ones(&[2, 2], DType::Float32), Array::ones(&[2, 2], DType::Float64));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(matches!(a.matmul_into(&a, &b), Err(Error::DType(_))));
    let wide = Array::ones(&[2, 3], DType::Float32).unwrap();
    assert!(matches!(a.matmul_into(&a, &wide), Err(Error::Shape(_))));
    let tiles = |dtype| Array::ones(&[2, 2, 8, 8], dtype).unwrap();
    let error = tilework::matmul_tiled(&tiles(DType::Float32), &tiles(DType::Float64));
    let error = error.unwrap_err();
    assert!(matches!(error, Error::DType(_)), "{error}");
    assert_eq!(error.to_string(), "matmul_tiled: tiles of float32 and float64 do not match");
}

/// Halves of one block are not copied: what is written to one is not seen in the other.
#[test]
fn disjoint_parts_of_one_block() {
    let x = Array::arange(0, 8, 1, DType::Float32).unwrap();
    let (low, high) = (x.slice(&s![..4]).unwrap(), x.slice(&s![4..]).unwrap());
    assert!(!low.shares_memory(&high) && low.is_same_block(&high) && low.shares_memory(&x));
    let square = |part: &Array| part.reshape(&[2, 2]).unwrap();
    square(&low).matmul_into(&square(&low), &square(&high)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 2.0, 3.0, 6.0, 11.0]);
    square(&low).matmul_into(&square(&low), &square(&low)).unwrap();
    assert_eq!(low.to_vec::<f32>().unwrap(), [2.0, 3.0, 6.0, 11.0]);
}

#[test]
fn devices_are_values_with_names() {
    let parsed: Device = "reference".parse().unwrap();
    let devices: HashSet<Device> = [Device::cpu(), Device::reference(), parsed].into();
    assert_eq!(devices.len(), 2);
    assert!("nowhere".parse::<Device>().is_err());
    let _: Properties = Device::cpu().properties();
    let info: (FInfo, IInfo) = (DType::Float32.finfo().unwrap(), DType::Int8.iinfo().unwrap());
    assert_eq!((info.0.bits, info.1.bits, DType::Int8.kind()), (32, 8, Kind::Signed));
}

#[test]
fn constructors_work_on_any_device() {
    let there = Device::reference();
    let arrays = [
        Array::ones_on(there, &[2], DType::Int8),
        Array::arange_on(there, 0, 4, 2, DType::Int8),
        Array::linspace_on(there, 0.0..=1.0, 2, DType::Float32),
        Array::eye_on(there, 2, 2, 0, DType::Float32),
        Array::from_shape_on(there, &[1, 2], &[1i32, 2]),
        Array::from_nested_on(there, &[[1i32, 2]]),
    ];
    assert!(arrays.into_iter().all(|array| array.unwrap().device() == there));
}

/// An array without elements may have axes of any size, which are not multiplied blindly.
#[test]
fn views_of_nothing_as_smaller_elements() {
    let empty = Array::zeros(&[0, 1 << 61], DType::Float64).unwrap();
    assert!(matches!(empty.view_as(DType::UInt8), Err(Error::Value(_))));
    assert_eq!(empty.view_as(DType::Complex128).unwrap().shape(), [0, 1 << 60]);
}

/// Any number of decimals is one: numbers without so many stay, and units beyond all numbers give 0.
#[test]
fn rounding_to_any_number_of_decimals() {
    for dtype in FLOATS {
        let max = dtype.finfo().unwrap().max;
        let x = Array::from_slice(&[max, -max, 0.5, f64::INFINITY]).unwrap().astype(dtype).unwrap();
        for decimals in [1, 5, 39, 309, i32::MAX] {
            let rounded = x.round_to(decimals).unwrap();
            assert_eq!(rounded.dtype(), dtype);
            let same = rounded.array_equal(&x, Nan::Unequal).unwrap();
            assert!(same, "{dtype} to {decimals} decimals is {rounded}");
        }
        for decimals in [-310, i32::MIN] {
            let rounded = x.round_to(decimals).unwrap().astype(DType::Float64).unwrap();
            let rounded = rounded.to_vec::<f64>().unwrap();
            assert_eq!(rounded, [0.0, 0.0, 0.0, f64::INFINITY], "{dtype} to {decimals}");
        }
    }
    let whole = Array::from_slice(&[25i64, -25, i64::MAX]).unwrap();
    assert_eq!(whole.round_to(i32::MIN).unwrap().to_vec::<i64>().unwrap(), [0, 0, 0]);
}

#[test]
fn more_parts_than_memory_holds_are_an_error() {
    let x = Array::zeros(&[1], DType::Float32).unwrap().broadcast_to(&[1 << 60]).unwrap();
    assert!(matches!(x.unstack(0), Err(Error::OutOfMemory(_))));
    let nothing = Array::zeros(&[0], DType::Float32).unwrap();
    assert!(matches!(nothing.split(1 << 60, 0), Err(Error::OutOfMemory(_))));
}

/// Strides that are never walked may hold any number; parts of complex numbers have twice as many.
#[test]
fn parts_of_complex_arrays_with_strides_that_nobody_walks() {
    let z = Array::zeros(&[2], DType::Complex64).unwrap();
    for (shape, stride) in [([1], isize::MAX), ([1], isize::MIN), ([0], isize::MAX)] {
        let view = z.as_strided(&shape, &[stride], 0).unwrap();
        assert_eq!(view.real_view().unwrap().shape(), shape);
        assert_eq!(view.imag_view().unwrap().to_vec::<f32>().unwrap(), vec![0.0; shape[0]]);
    }
}

#[test]
fn the_reference_refuses_lines_that_memory_cannot_hold() {
    let one = Array::zeros_on(Device::reference(), &[1], DType::Float32).unwrap();
    let long = one.broadcast_to(&[1 << 58]).unwrap();
    for (operation, result) in [("sum", long.sum(())), ("max", long.max(0))] {
        let refused = result.unwrap_err();
        assert!(matches!(refused, Error::OutOfMemory(_)), "{operation}");
        assert!(refused.to_string().starts_with(operation), "{refused}");
    }
}

/// Powers of pairs that have cheaper spellings are as near to the true ones, also at the ends.
#[test]
fn powers_of_pairs_keep_their_values() {
    use tilework::pairs::{Accuracy, Genred, Options};
    let bases = [0.0, 1e-20, 1e-3, 0.3, 1.0, 2.7, 60.0, 1e6, 1e12, f64::INFINITY, -1.5, f64::NAN];
    let column = |numbers: &[f64], dtype: DType| {
        Array::from_slice(numbers).unwrap().reshape(&[-1, 1]).unwrap().astype(dtype).unwrap()
    };
    type Meaning = fn(f64) -> f64;
    let meanings: [(&str, Meaning); 9] = [
        ("Powf(x * y, 0.5)", |x| x.powf(0.5)),
        ("Powf(x * y, 1.5)", |x| x.powf(1.5)),
        ("Powf(x * y, 2.5)", |x| x.powf(2.5)),
        ("Powf(x * y, -0.5)", |x| x.powf(-0.5)),
        ("Powf(x * y, -1.5)", |x| x.powf(-1.5)),
        ("Powf(2, x * y)", f64::exp2),
        ("Powf(2.718281828459045, -x * y)", |x| (-x).exp()),
        ("Powf(0.1, x * y)", |x| 0.1f64.powf(x)),
        ("XLogX(x * y)", |x| if x == 0.0 { 0.0 } else { x * x.ln() }),
    ];
    for dtype in [DType::Float32, DType::Float64] {
        let (x, y) = (column(&bases, dtype), column(&[1.0], dtype));
        let stored = x.astype(DType::Float64).unwrap().to_vec::<f64>().unwrap();
        let info = dtype.finfo().unwrap();
        for accuracy in [Accuracy::Declared, Accuracy::Strict] {
            for (text, meaning) in &meanings {
                let options = Options { accuracy, ..Options::default() };
                let sum = Genred::new(text, &["x = Vi(1)", "y = Vj(1)"], "Sum", 1).unwrap();
                let got = sum.call_with(&[&x, &y], &options).unwrap().only().unwrap();
                let got = got.astype(DType::Float64).unwrap().to_vec::<f64>().unwrap();
                for (&x, got) in stored.iter().zip(got) {
                    let wanted = meaning(x);
                    let is_beyond = wanted.abs() > info.max;
                    let wanted = if is_beyond { wanted.signum() * f64::INFINITY } else { wanted };
                    let both_none = wanted.is_nan() && got.is_nan();
                    let units = if text.contains(", x") || text.contains(", -x") {
                        // That of the exponent too, which is a hundred at most where the power is ordinary.
                        6.0 + 2.0 * x.abs().min(1e3)
                    } else {
                        6.0
                    };
                    let near = (got - wanted).abs() <= units * info.eps * wanted.abs();
                    let tiny =
                        wanted.abs() < info.smallest_normal && got.abs() < info.smallest_normal;
                    let same = got == wanted || near || tiny || both_none;
                    assert!(same, "{text} of {x} in {dtype}, {accuracy:?}: {got} is not {wanted}");
                }
            }
        }
    }
}
