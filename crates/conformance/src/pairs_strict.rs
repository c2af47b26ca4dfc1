//! What strict exponentials over pairs promise, wherever their arguments are: within the rounding of these, and subnormal
//! numbers where they are such.

use tilework::pairs::{Accuracy, Genred, Options};
use tilework::{Array, DType, Device, Rng, s};

use crate::pairs::{after_first_calls, floats, is_card};

/// Sums of Gaussians of points that are near, of which cards take exponentials as normal numbers, and of points so far that
/// sums are subnormal, in one call: against float64.
pub fn strict_exponentials(device: Device) {
    // So many that a card has a choice.
    let n = if is_card(device) { 4_003 } else { 301 };
    let rng = Rng::new(41);
    let normal = || rng.normal(&[n, 3], DType::Float32).and_then(|x| x.multiply(0.3));
    let (x, y) = (normal().expect("normal"), normal().expect("normal"));
    let half = n as isize / 2;
    let far = x.slice(&s![half..]).expect("slice");
    far.add_assign(10.7).expect("move");
    let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)"];
    let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
    for text in ["Exp(-SqDist(x,y) * s)", "Exp(-(s * SqDist(x,y)))", "Exp(SqDist(x,y) * (-s))"] {
        let call = Genred::new(text, &aliases, "Sum", 1).expect(text);
        let scale = Array::full_on(Device::cpu(), &[1], 0.3, DType::Float32).expect("full");
        let here = [&x, &y, &scale];
        let there = here.map(|x| x.to_device(device).expect("to_device"));
        let exact = here.map(|x| x.astype(DType::Float64).expect("astype"));
        let sums = |arrays: &[Array; 3]| {
            let sums = call.call_with(&arrays.each_ref(), &strict);
            floats(&sums.and_then(|sums| sums.only()).expect(text))
        };
        let expected = sums(&exact);
        let subnormal = |sums: &[f64]| {
            let least = f64::from(f32::MIN_POSITIVE);
            sums[half as usize..].iter().filter(|sum| **sum > 0.0 && **sum < least).count()
        };
        assert!(4 * subnormal(&expected) > n, "{text}: {} of {n}", subnormal(&expected));
        if is_card(device) {
            let said = call.explain(&there.each_ref(), &strict).expect("explain");
            assert!(said.contains("2^-23"), "{text}: not as normal numbers: {said:.2000}");
        }
        for turn in ["first", "second"] {
            let got = sums(&there);
            for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
                // Two roundings of an exponent of up to 100, and those of subnormal terms.
                let near = (a - b).abs() <= 2e-5 * b + n as f64 * 1.4e-45;
                assert!(near, "{text}, {turn} call: element {k} is {a:e}, not {b:e}");
            }
            assert!(8 * subnormal(&got) > n, "{text}: {} of {n} are left", subnormal(&got));
            after_first_calls(device);
        }
    }
}

/// Single terms, of distances that are exact, so near and so far that cards have both of their forms in one call: within
/// the bound that is promised.
pub fn strict_terms(device: Device) {
    let n = if is_card(device) { 4_003 } else { 301 };
    // Of so few bits that squares have no more than float32.
    let distance = |i: usize| (i * 4096 / n) as f32 / 256.0;
    let x: Vec<f32> = (0..n).flat_map(|i| [distance(i), 0.0, 0.0]).collect();
    let x = Array::from_shape(&[n, 3], &x).expect("points");
    let y = Array::zeros(&[n, 3], DType::Float32).expect("points");
    // All terms but one are zero.
    let b = Array::zeros(&[n, 1], DType::Float32).expect("weights");
    b.slice(&s![n as isize / 2]).and_then(|one| one.fill(1.0)).expect("one");
    let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "b = Vj(1)"];
    let call = Genred::new("Exp(-SqDist(x,y) * s) * b", &aliases, "Sum", 1).expect("formula");
    let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
    for scale in [1.0, 0.3f32, 1.3] {
        let s = Array::from_slice(&[scale]).expect("scale");
        let arrays = [&x, &y, &s, &b].map(|array| array.to_device(device).expect("to_device"));
        for turn in ["first", "second"] {
            let sums = call.call_with(&arrays.each_ref(), &strict).and_then(|sums| sums.only());
            for (i, got) in floats(&sums.expect("sums")).into_iter().enumerate() {
                let a = -f64::from(distance(i)).powi(2) * f64::from(scale);
                let bound = (2.0 - a) * f64::from(f32::EPSILON);
                // Subnormal numbers have fewer bits.
                let near = (got - a.exp()).abs() <= bound * a.exp() + 2.8e-45;
                assert!(near, "s = {scale}, a = {a}, {turn} call: {got:e}, not {:e}", a.exp());
            }
            after_first_calls(device);
        }
    }
}

/// Scales that are zero, beyond what log2(e) times may be, missing or of the other sign, at distances that they make small
/// exponents or none of.
pub fn strict_scales(device: Device) {
    let n = if is_card(device) { 4_003 } else { 101 };
    let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)"];
    let call = Genred::new("Exp(SqDist(x,y) * s)", &aliases, "Mean", 1).expect("formula");
    let strict = Options { accuracy: Accuracy::Strict, ..Options::default() };
    let filled = |shape: &[usize], v: f64| Array::full_on(device, shape, v, DType::Float32);
    for (x, s, expected) in [
        (0.0, -3e38, 1.0),
        (0.0, 3e38, 1.0),
        (1e-19, -3e38, (-9f64).exp()),
        (0.5, 0.0, 1.0),
        (0.5, 2.0, 1.5f64.exp()),
        (3.0, 2.5, 67.5f64.exp()),
        (3.2, 3.0, 92.16f64.exp()),
        (3.0, -3.0, (-81f64).exp()),
        (0.0, f64::NAN, f64::NAN),
        (1.0, f64::INFINITY, f64::INFINITY),
    ] {
        let arrays = [filled(&[n, 3], x), filled(&[n, 3], 0.0), filled(&[1], s)];
        let arrays = arrays.map(|array| array.expect("full"));
        let means = call.call_with(&arrays.each_ref(), &strict).and_then(|sums| sums.only());
        let means = floats(&means.expect("means"));
        // float32 ends below the exponential of 92, and what its numbers are made of is rounded.
        let expected = if expected > f64::from(f32::MAX) { f64::INFINITY } else { expected };
        for mean in means {
            let near = (mean / expected - 1.0).abs() <= 3e-5;
            let same = mean == expected || mean.is_nan() && expected.is_nan();
            assert!(near || same, "x = {x}, s = {s}: {mean:e}, not {expected:e}");
        }
        after_first_calls(device);
    }
}
