//! Long work over pairs on a device of its own: what is told of it on its way, whichever form does it, and its
//! results. Called by `tests/pairs.rs`.

use std::sync::Mutex;

use tilework::pairs::{Genred, Options, Progress};
use tilework::{Array, DType, Device, Result, Rng, s};

/// What the points of j are like.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Points {
    /// Forms that are chosen by the data may be taken.
    Near,
    /// One is so far away that they may not.
    OneIsFar,
    /// All are the same, so that a filter gives up on its way.
    Equal,
    /// A number of b is so large that tensor cores leave it to others.
    Wild,
}

/// Reduction, K, formula, components of x and y, columns of b, points.
type Case = (&'static str, Option<usize>, &'static str, usize, usize, Points);

const CASES: [Case; 6] = [
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", 64, 1, Points::Near),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", 64, 1, Points::OneIsFar),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", 3, 128, Points::Near),
    ("Sum", None, "Exp(-SqDist(x,y) * s) * b", 3, 20, Points::Wild),
    ("ArgKMin", Some(3), "SqDist(x,y)", 64, 1, Points::Near),
    ("ArgKMin", Some(3), "SqDist(x,y)", 64, 1, Points::Equal),
];

/// Of n by n pairs, which have to be so many that a device takes long for them. Shares of the work are told one
/// after another up to all of it, and never taken back; where the formula is computed as it is written, which takes
/// longest, the first comes early.
pub fn long_work(device: Device, n: usize) {
    for case in CASES {
        let told = Mutex::new(Vec::new());
        let listen = |share: f64| {
            told.lock().expect("nobody panics").push(share);
            true
        };
        let shares = |told: &Mutex<Vec<f64>>| told.lock().expect("nobody panics").clone();
        check(
            device,
            n,
            case,
            &Options { progress: Some(Progress(&listen)), ..Options::default() },
        )
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let told = shares(&told);
        assert!(told.is_sorted(), "{case:?}: {told:?}");
        assert_eq!(told.iter().filter(|share| **share == 1.0).count(), 1, "{case:?}: {told:?}");
        assert_eq!(told.last(), Some(&1.0), "{case:?}: {told:?}");
        if case.5 != Points::Near {
            assert!(told.len() > 2 && told[0] < 0.5, "{case:?}: {told:?}");
        }
    }
}

/// The first rows are those of the CPU.
fn check(device: Device, n: usize, case: Case, options: &Options<'_>) -> Result<()> {
    let (name, k, text, dim, width, points) = case;
    let rng = Rng::new(5);
    let draw = |dim| rng.normal(&[n, dim], DType::Float32);
    let (x, y, b) = (draw(dim)?, draw(dim)?, draw(width)?);
    let s = Array::full(&[1], 1.0 / dim as f64, DType::Float32)?;
    match points {
        Points::Near => {}
        Points::OneIsFar => y.slice(&s![n as isize / 2])?.assign(1e6)?,
        Points::Equal => y.assign(0.5)?,
        Points::Wild => b.slice(&s![n as isize / 2])?.assign(1e17)?,
    }
    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", &aliases[2]];
    let call = Genred::with(text, &aliases, name, 1, k, None)?;
    let few = x.slice(&s![..8])?;
    let expected = call.call(&[&few, &y, &s, &b])?.to_dtype(DType::Float64)?;
    let there = [x, y, s, b].map(|array| array.to_device(device));
    let [x, y, s, b] = there;
    let got = call.call_with(&[&x?, &y?, &s?, &b?], options)?.only()?;
    let got = got.slice(&s![..8])?.to_device(Device::cpu())?.to_dtype(DType::Float64)?;
    let (got, expected) = (got.to_vec::<f64>()?, expected.to_vec::<f64>()?);
    let most = expected.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    // Indices are the same.
    let tolerance = if k.is_some() { 0.0 } else { 1e-4 * most };
    let differ = got.iter().zip(&expected).find(|(a, b)| (*a - *b).abs() > tolerance || a.is_nan());
    assert_eq!(differ, None, "{case:?}");
    Ok(())
}
