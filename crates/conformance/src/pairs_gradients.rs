//! Gradients of reductions over pairs: of few against finite differences, of many against the reference.

use tilework::pairs::{LazyTensor, Options};
use tilework::{Array, DType, Device, Result};

use crate::pairs::{array, close, floats, long_rows, number, within};

type Build = fn(&[LazyTensor]) -> Result<LazyTensor>;

/// Gradients of reductions over many pairs against those of the reference.
pub fn gradients_of_many(device: Device) {
    let build: Build = |v| v[0].sqdist(&v[1])?.multiply(&v[2])?.add(&v[0].dot(&v[1])?);
    for axis in [0, 1] {
        let (m, n) = long_rows(axis, 3);
        for (name, weighted) in
            [("Sum", false), ("Max", false), ("LogSumExp", false), ("SumSoftMaxWeight", true)]
        {
            let run = |device: Device, position: usize| -> Result<Array> {
                let draw = |shape: &[usize], seed: u64| {
                    let count = shape.iter().product();
                    let numbers: Vec<f64> = (0..count).map(|k| number(seed, k)).collect();
                    array(device, shape, DType::Float64, &numbers)
                };
                let v = [
                    LazyTensor::vi(&draw(&[m, 2], 11))?,
                    LazyTensor::vj(&draw(&[n, 2], 12))?,
                    LazyTensor::pm(&draw(&[1], 13))?,
                    LazyTensor::vj(&draw(&[n, 2], 14))?,
                ];
                let weight = weighted.then_some(&v[3]);
                let shape = [if axis == 0 { n } else { m }, if weighted { 2 } else { 1 }];
                let (incoming, options) = (draw(&shape, 99), Options::default());
                build(&v)?.reduction_grad(name, axis, weight, &v[position], &incoming, &options)
            };
            for position in 0..if weighted { 4 } else { 3 } {
                let what = format!("gradient of {name} over {axis} of many towards {position}");
                let [got, expected] = [device, Device::reference()]
                    .map(|device| floats(&run(device, position).expect(&what)));
                let size = expected.iter().fold(1.0f64, |size, x| size.max(x.abs()));
                within(&what, &got, &expected, &vec![1e-12 * size; expected.len()]);
            }
        }
    }
}

/// Values together with their gradients against either by itself, of points that are few enough for one pass and of wider
/// ones; one column of all weights that are masked, and a row that has no others.
pub fn values_with_gradients(device: Device) {
    let build: Build = |v| v[2].add(&v[3])?.subtract(&v[0].sqdist(&v[1])?.multiply(0.1)?);
    for (dim, axis) in [(3, 1), (16, 1), (17, 1), (40, 0), (70, 1)] {
        let (m, n) = (37, 150);
        let draw = |shape: &[usize], seed: u64| {
            let numbers: Vec<f64> = (0..shape.iter().product()).map(|k| number(seed, k)).collect();
            array(device, shape, DType::Float64, &numbers)
        };
        let [rows, columns] = [draw(&[m, 1], 3), draw(&[n, 1], 4)];
        for bias in [&rows, &columns] {
            bias.slice(&tilework::s![5..6])
                .and_then(|it| it.fill(f64::NEG_INFINITY))
                .expect("fill");
        }
        let v = || -> Result<[LazyTensor; 4]> {
            let [x, y] = [draw(&[m, dim], 1), draw(&[n, dim], 2)];
            let [x, y] = [LazyTensor::vi(&x)?, LazyTensor::vj(&y)?];
            Ok([x, y, LazyTensor::vi(&rows)?, LazyTensor::vj(&columns)?])
        };
        let v = v().expect("variables");
        let (f, options) = (build(&v).expect("formula"), Options::default());
        for name in ["LogSumExp", "Sum", "Max"] {
            let value = f.reduce(name, axis, None, &options).and_then(|it| it.only()).expect(name);
            let e = draw(value.shape(), 9);
            let all = v.each_ref();
            let together = f.value_and_grad(name, axis, None, &all, Some(&e), &options);
            let (got, gradients) = together.expect(name);
            let what = format!("{name} over {axis}, {dim} components");
            close(&what, &floats(&got), &floats(&value), 1e-12);
            for (position, (gradient, variable)) in gradients.iter().zip(&v).enumerate() {
                let alone = f.reduction_grad(name, axis, None, variable, &e, &options);
                let alone = floats(&alone.expect(&what));
                close(&format!("{what}, towards {position}"), &floats(gradient), &alone, 1e-11);
            }
        }
    }
}

/// Gradients of reductions against finite differences.
pub fn gradients(device: Device) {
    let (m, n) = (3, 4);
    let draw = |shape: &[usize], seed: u64| {
        let numbers: Vec<f64> = (0..shape.iter().product()).map(|k| number(seed, k)).collect();
        array(device, shape, DType::Float64, &numbers)
    };
    let arrays = [draw(&[2, m, 2], 11), draw(&[n, 2], 12), draw(&[1], 13), draw(&[n, 2], 14)];
    let vector: Build = |v| (&v[0] - &v[1])?.multiply(&v[2])?.sin();
    let scalar: Build = |v| v[0].sqdist(&v[1])?.multiply(&v[2])?.add(&v[0].dot(&v[1])?);
    let positive: Build = |v| v[0].sqdist(&v[1])?.multiply(&v[2])?.exp();
    for (name, build, weighted, k) in [
        ("Sum", vector, false, None),
        ("Mean", vector, false, None),
        ("Prod", positive, false, None),
        ("Min", vector, false, None),
        ("Max", scalar, false, None),
        ("KMin", vector, false, Some(2)),
        ("LogSumExp", scalar, false, None),
        ("LogSumExp", scalar, true, None),
        ("SumSoftMaxWeight", scalar, true, None),
    ] {
        for axis in [0, 1] {
            let options = Options { k, ..Options::default() };
            let tensors = |arrays: &[Array]| -> Result<Vec<LazyTensor>> {
                Ok(vec![
                    LazyTensor::vi(&arrays[0])?,
                    LazyTensor::vj(&arrays[1])?,
                    LazyTensor::pm(&arrays[2])?,
                    // Weights of logarithms are positive.
                    LazyTensor::vj(&arrays[3])?,
                ])
            };
            let weight = |v: &[LazyTensor]| v[3].square()?.add(0.5);
            let value = |arrays: &[Array]| -> Result<Array> {
                let v = tensors(arrays)?;
                let weight = weight(&v)?;
                build(&v)?.reduce(name, axis, weighted.then_some(&weight), &options)?.only()
            };
            let result = value(&arrays).expect(name);
            let e: Vec<f64> = (0..result.len()).map(|k| number(99, k)).collect();
            let incoming = array(device, result.shape(), DType::Float64, &e);
            let v = tensors(&arrays).expect("tensors");
            let of = weight(&v).expect("weight");
            for (position, given) in arrays.iter().enumerate().take(if weighted { 4 } else { 3 }) {
                let what = format!("gradient of {name} over {axis} towards {position}");
                let got = build(&v)
                    .and_then(|f| {
                        let weight = weighted.then_some(&of);
                        f.reduction_grad(name, axis, weight, &v[position], &incoming, &options)
                    })
                    .expect(&what);
                assert_eq!(got.shape(), given.shape(), "{what}");
                let (h, numbers) = (1e-6, floats(given));
                let slope = |c: usize| {
                    let moved = |by: f64| {
                        let mut numbers = numbers.clone();
                        numbers[c] += by;
                        let mut arrays = arrays.clone();
                        arrays[position] = array(device, given.shape(), DType::Float64, &numbers);
                        let values = floats(&value(&arrays).expect(&what));
                        values.iter().zip(&e).map(|(v, e)| v * e).sum::<f64>()
                    };
                    (moved(h) - moved(-h)) / (2.0 * h)
                };
                let expected: Vec<f64> = (0..numbers.len()).map(slope).collect();
                close(&what, &floats(&got), &expected, 1e-6);
            }
        }
    }
}
