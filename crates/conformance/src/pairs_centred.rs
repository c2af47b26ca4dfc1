//! Exponentials of distances between points that are far from the origin and near each other: devices may expand their
//! squares about a centre of the y, and are as exact as they say.

use tilework::pairs::{Genred, LazyTensor, Options, Scheme};
use tilework::{Array, DType, Device, Rng, s};

use crate::pairs::{after_first_calls, floats};

const GAUSS: &str = "Exp(-SqDist(x,y) * s) * b";
const LOGARITHM: &str = "-SqDist(x,y) * s";
const BOTH: &str = "Concat(Exp(-SqDist(x,y) * s) * b, Grad(Exp(-SqDist(x,y) * s) * b, x, b))";
/// What errors of these are relative to: as in [`crate::pairs_sizes::weighed`].
const SIZES: &str = "Exp(-SqDist(x,y) * s) * Concat(Abs(b), 8 * s * Square(b) * (1 + 0 * y))";

/// The j that devices look for a centre at, as `kernels/pairs_about.cu` finds them.
fn sampled(place: u64, n: usize) -> isize {
    let ratio = 0x9e37_79b9_7f4a_7c15_u64;
    ((u128::from((place + 1).wrapping_mul(ratio)) * n as u128) >> 64) as isize
}

/// How far y is from x, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Odd {
    Nothing,
    /// A number of this size in so many of the points that a centre is found by.
    Sampled(f64, u64),
}

/// Points about other places than the origin, with numbers among them that are none, infinite or far away, where a
/// centre is looked for. M, N and D are such that the device has a choice.
pub fn moved(device: Device, sizes: &[(usize, usize, usize)]) {
    std::thread::scope(|scope| {
        for &sizes in sizes {
            scope.spawn(move || moved_at(device, sizes));
        }
    });
}

fn moved_at(device: Device, (m, n, dim): (usize, usize, usize)) {
    let rng = Rng::new(31);
    let normal = |rows: usize, dim| rng.normal(&[rows, dim], DType::Float64).expect("normal");
    let (x, y, b) = (normal(m, dim), normal(n, dim), normal(n, 1).abs().expect("abs"));
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)"];
    let sizes = Genred::new(SIZES, &aliases, "Sum", 1).expect(SIZES);
    for (name, text) in [("Sum", GAUSS), ("LogSumExp", LOGARITHM), ("Sum", BOTH)] {
        let call = Genred::new(text, &aliases, name, 1).expect(text);
        for (offset, odd) in [
            (0.0f64, Odd::Nothing),
            (1.0, Odd::Nothing),
            (100.0, Odd::Nothing),
            (-1e4, Odd::Nothing),
            (100.0, Odd::Sampled(f64::NAN, 1)),
            (100.0, Odd::Sampled(f64::INFINITY, 1)),
            (100.0, Odd::Sampled(f64::INFINITY, 3)),
            (100.0, Odd::Sampled(1e6, 1)),
            (100.0, Odd::Sampled(-3e38, 3)),
            (3e18, Odd::Nothing),
        ] {
            let what = format!("{name} of {text:.40}, {m} x {n}, D = {dim}, by {offset}, {odd:?}");
            let put =
                |x: &Array| x.add(offset).and_then(|x| x.astype(DType::Float32)).expect("put");
            let (x, y) = (put(&x), put(&y));
            if let Odd::Sampled(number, count) = odd {
                for place in 0..count {
                    let j = sampled(place, n);
                    y.slice(&s![j..j + 1]).and_then(|row| row.fill(number)).expect("fill");
                }
            }
            let scale = Array::full_on(Device::cpu(), &[1], 0.5 / dim as f64, DType::Float32);
            let here = [x, y, scale.expect("full"), b.astype(DType::Float32).expect("b")];
            let there = here.each_ref().map(|x| x.to_device(device).expect("to_device"));
            let there = there.each_ref();
            let said = call.explain(&there, &Options::default()).expect("explain");
            let form = said.lines().find(|line| line.starts_with("form")).unwrap_or_default();
            let near = odd == Odd::Nothing;
            // Logarithms of sums are taken about the origin.
            if device != Device::cpu() && name == "Sum" {
                let expected = [form.contains("expanded square"), form.contains("about a centre")];
                assert_eq!(expected, [near, near && offset != 0.0], "{what}: {form}");
            }
            // What the form may add to the error of an exponent, and what all else does.
            let bound =
                form.split("expanded <= ").nth(1).filter(|_| form.contains("expanded square"));
            let bound: f64 = bound.map_or(1e-5, |bound| bound.trim().parse().expect("a bound"));
            assert!(bound <= 1.0001e-5, "{what}: {form}");
            let exact = here.each_ref().map(|x| x.astype(DType::Float64).expect("astype"));
            for scheme in [Scheme::Auto, Scheme::OneD] {
                let options = Options { scheme, ..Options::default() };
                let run = || {
                    let got = call.call_with(&there, &options).and_then(|got| got.only());
                    got.expect(text)
                };
                let all = run();
                for begin in [0, m as isize - 20] {
                    let some = s![begin..begin + 20];
                    let rows = exact[0].slice(&some).expect("slice");
                    let of = |call: &Genred| {
                        let got = call.call(&[&rows, &exact[1], &exact[2], &exact[3]]);
                        floats(&got.expect(text))
                    };
                    let (expected, sizes) = (of(&call), of(&sizes));
                    let got = floats(&all.slice(&some).expect("slice"));
                    let components = got.len() / 20;
                    for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
                        let size = match name {
                            "Sum" => sizes[k / components * (dim + 1) + k % components],
                            _ => 1.0 + b.abs(),
                        };
                        // Points of this device are float32 numbers, so no difference is lost in them.
                        let limit = if components == 1 { bound + 3e-6 } else { 2e-5 };
                        let same = a == b || a.is_nan() && b.is_nan();
                        assert!(
                            same || (a - b).abs() <= limit * size,
                            "{what}, {scheme:?}: from row {begin} on, number {k} is {a}, not {b} ({size}); {form}"
                        );
                    }
                }
                after_first_calls(device);
                let (all, again) = (floats(&all), floats(&run()));
                let same = all.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{what}, {scheme:?}: other bits");
            }
        }
    }
}

/// Every batch has a centre of its own.
pub fn moved_batches(device: Device, (m, n): (usize, usize)) {
    let rng = Rng::new(32);
    let offsets = [100.0f32, 0.0, -3e3, 7.0];
    let offsets = Array::from_slice(&offsets).and_then(|x| x.reshape(&[4, 1, 1])).expect("offsets");
    let points = |rows: usize| {
        let points = rng.normal(&[4, rows, 3], DType::Float32).and_then(|x| x.add(&offsets));
        points.expect("points")
    };
    let (x, y) = (points(m), points(n));
    let b = rng.normal(&[4, n, 1], DType::Float32).and_then(|b| b.abs()).expect("b");
    let sum = |dtype: DType, device: Device, gradient: bool| {
        let put = |x: &Array| x.astype(dtype).and_then(|x| x.to_device(device)).expect("put");
        let (x, y) = (LazyTensor::vi(&put(&x)).expect("vi"), LazyTensor::vj(&put(&y)).expect("vj"));
        let b = LazyTensor::vj(&put(&b)).expect("vj");
        let d = x.sqdist(&y).and_then(|d| d.multiply(-0.2)).expect("sqdist");
        let terms = d.exp().and_then(|k| k.multiply(&b)).expect("terms");
        let options = Options::default();
        let got = match gradient {
            false => terms.sum(1),
            true => {
                let e = Array::full_on(device, &[4, m, 1], 1.0, dtype).expect("full");
                terms.reduction_grad("Sum", 1, None, &x, &e, &options)
            }
        };
        floats(&got.expect("sum"))
    };
    for gradient in [false, true] {
        let exact = sum(DType::Float64, Device::cpu(), gradient);
        let size = exact.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (k, (a, b)) in sum(DType::Float32, device, gradient).iter().zip(&exact).enumerate() {
            assert!((a - b).abs() <= 1e-5 * size, "number {k} is {a}, not {b}, of {size}");
        }
    }
}
