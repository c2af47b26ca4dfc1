//! Elements to test with: drawn from a domain, with the awkward ones of the dtype among them.

use std::ops::Range;

use tilework::{Array, Complex, DType, Device, Number, Result};
use tilework_ops::random::{block, uniform_f64};

/// A row-major array of random elements of `dtype` from a domain, the same for the same seed on
/// every device.
pub fn draw(
    device: Device,
    shape: &[usize],
    dtype: DType,
    domain: Range<f64>,
    seed: u64,
) -> Result<Array> {
    let count: usize = shape.iter().product();
    let numbers: Vec<Number> = (0..count as u64).map(|k| number(dtype, &domain, seed, k)).collect();
    from_numbers(device, shape, dtype, &numbers)
}

/// The same with special values in between: zeros, infinities, NaN, extremes, subnormals.
pub fn draw_special(
    device: Device,
    shape: &[usize],
    dtype: DType,
    domain: Range<f64>,
    seed: u64,
) -> Result<Array> {
    let count: usize = shape.iter().product();
    let special = specials(dtype);
    let pick = |k: u64| {
        let random = block(seed ^ 0x5eed, k);
        match random[3] % 3 {
            0 => special[random[2] as usize % special.len()],
            _ => number(dtype, &domain, seed, k),
        }
    };
    let numbers: Vec<Number> = (0..count as u64).map(pick).collect();
    from_numbers(device, shape, dtype, &numbers)
}

fn number(dtype: DType, domain: &Range<f64>, seed: u64, k: u64) -> Number {
    let words = block(seed, k);
    let scale = |u: f64| domain.start + u * (domain.end - domain.start);
    let x = scale(uniform_f64(words));
    if dtype == DType::Bool {
        Number::Bool(words[3] & 1 == 1)
    } else if let Ok(limits) = dtype.iinfo() {
        Number::Int((x.floor() as i128).clamp(limits.min, limits.max))
    } else if dtype.is_complex() {
        Number::Complex(Complex::new(x, scale(uniform_f64([words[2], words[3], 0, 0]))))
    } else {
        Number::Float(x)
    }
}

fn specials(dtype: DType) -> Vec<Number> {
    if dtype == DType::Bool {
        return vec![Number::Bool(false), Number::Bool(true)];
    }
    if let Ok(limits) = dtype.iinfo() {
        let numbers = [limits.min, limits.min + 1, -1, 0, 1, 2, 7, limits.max - 1, limits.max];
        return numbers.into_iter().filter(|n| *n >= limits.min).map(Number::Int).collect();
    }
    let info = dtype.finfo().expect("what is left is floating point");
    let reals = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        info.max,
        info.min,
        info.smallest_normal,
        -info.smallest_subnormal,
        info.eps,
        1.0 + info.eps,
    ];
    if dtype.is_complex() {
        let pairs = reals
            .iter()
            .flat_map(|&re| [0.0, -1.5, f64::INFINITY, f64::NAN].map(|im| Complex::new(re, im)));
        return pairs.map(Number::Complex).collect();
    }
    reals.into_iter().map(Number::Float).collect()
}

/// An array of these numbers, cast.
pub fn from_numbers(
    device: Device,
    shape: &[usize],
    dtype: DType,
    numbers: &[Number],
) -> Result<Array> {
    tilework_ops::with_element!(dtype, T => {
        let elements: Vec<T> = numbers.iter().map(|number| number.cast(dtype).get::<T>()).collect();
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        Array::from_slice_on(device, &elements)?.reshape(&shape)
    })
}
