//! The accuracy of every kernel on every level that this machine has, in ulp.
//!
//! `f64` against the tables of data/mpmath (correctly rounded), `f32` against the C library's
//! doubles over sampled bit patterns (more of them with `TILEWORK_SLOW_TESTS`). Prints one line a
//! function and level (`--nocapture`) and asserts the bounds.

use std::path::PathBuf;
use tilework_simd::{Elem, Kernel, Level, kernel};

unsafe extern "C" {
    safe fn exp2(x: f64) -> f64;
    safe fn expm1(x: f64) -> f64;
    safe fn log1p(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
    safe fn cbrt(x: f64) -> f64;
    safe fn erf(x: f64) -> f64;
}

/// Elements on both sides of a call; `f` sees byte pointers.
fn run<T: Copy + Default>(f: Kernel, a: &[T], b: &[T]) -> Vec<T> {
    assert_eq!(a.len(), b.len());
    let mut out = vec![T::default(); a.len()];
    // SAFETY: the level was checked by the caller, the three slices have one length.
    unsafe {
        f(a.len(), out.as_mut_ptr().cast(), a.as_ptr().cast(), b.as_ptr().cast(), a.as_ptr().cast())
    };
    out
}

fn levels() -> Vec<Level> {
    Level::ALL
        .into_iter()
        .filter(|l| {
            let has = l.is_available();
            if !has {
                println!("skipped: this machine has no {l:?}");
            }
            has
        })
        .collect()
}

type Unary = (&'static str, fn(f64) -> f64);
type Binary = (&'static str, fn(f64, f64) -> f64);

const UNARY: &[Unary] = &[
    ("exp", f64::exp),
    ("exp2", |x| exp2(x)),
    ("expm1", |x| expm1(x)),
    ("log", f64::ln),
    ("log1p", |x| log1p(x)),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("sinxdivx", |x| if x == 0.0 { 1.0 } else { x.sin() / x }),
    ("tanh", f64::tanh),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("asinh", |x| asinh(x)),
    ("acosh", |x| acosh(x)),
    ("atanh", |x| atanh(x)),
    ("erf", |x| erf(x)),
    ("sigmoid", |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }),
    ("cbrt", |x| cbrt(x)),
    ("rsqrt", |x| 1.0 / x.sqrt()),
];

const BINARY: &[Binary] = &[
    ("atan2", f64::atan2),
    ("pow", f64::powf),
    ("hypot", f64::hypot),
    ("logaddexp", |a, b| {
        let top = a.max(b);
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if a == b {
            a + std::f64::consts::LN_2
        } else {
            top + log1p((-(a - b).abs()).exp())
        }
    }),
];

/// The distance between neighbours of `f32` at `r`.
fn ulp_at(r: f64) -> f64 {
    let exponent = ((r.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    2f64.powi(exponent - 23)
}

/// The distance of `y` from `r` in ulp of `f32` at `r`; infinite where one is NaN or the zero has
/// the wrong sign.
fn ulp32(y: f32, r: f64) -> f64 {
    if r.is_nan() || y.is_nan() {
        return if r.is_nan() && y.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if r == 0.0 || y == 0.0 && r.abs() > 1e-300 {
        // A result that underflows keeps its sign.
        if y.is_sign_negative() != r.is_sign_negative() {
            return f64::INFINITY;
        }
    }
    // Infinity counts as the next value after the largest.
    let limit = 2f64.powi(128);
    let y = if y.is_infinite() { limit.copysign(f64::from(y)) } else { f64::from(y) };
    let r = r.clamp(-limit, limit);
    (y - r).abs() / ulp_at(r)
}

/// Steps between two doubles, infinite where one is NaN or the zero has the wrong sign.
fn steps64(y: f64, r: f64) -> f64 {
    if r.is_nan() || y.is_nan() {
        return if r.is_nan() && y.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if r == 0.0 && y == 0.0 && y.is_sign_negative() != r.is_sign_negative() {
        return f64::INFINITY;
    }
    let order = |x: f64| {
        let b = x.to_bits() as i64;
        if b < 0 { i64::MIN.wrapping_sub(b) } else { b }
    };
    (i128::from(order(y)) - i128::from(order(r))).abs() as f64
}

fn table(name: &str) -> Vec<(f64, f64, f64)> {
    // A folder of larger tables may stand in for the one that is checked in.
    let folder = std::env::var_os("TILEWORK_MPMATH").map(PathBuf::from);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = folder.unwrap_or_else(|| here.join("../../data/mpmath")).join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let number = |s: &str| f64::from_bits(u64::from_str_radix(s, 16).unwrap());
    text.lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| {
            let (args, result) = l.split_once(' ').unwrap();
            let (a, b) = args.split_once(',').unwrap_or((args, "0"));
            (number(a), number(b), number(result))
        })
        .collect()
}

/// A new function of the table is measured here, or named here with those that formulas use, which
/// `drivers.rs` holds to bounds of their own.
#[test]
fn no_function_is_left_out() {
    let of_formulas = ["rsqrt_or_zero", "exp2_pair", "rcp_pair", "rsqrt_pair", "sqrt_pair"];
    let measured = UNARY.iter().map(|u| u.0).chain(BINARY.iter().map(|b| b.0));
    let known: Vec<&str> = measured.chain(of_formulas).collect();
    for (name, elem, _) in tilework_simd::KERNELS {
        assert!(known.contains(name), "{name} {elem:?} is not measured");
    }
}

#[test]
fn f64_against_tables() {
    let mut failures = Vec::new();
    for name in UNARY.iter().map(|u| u.0).chain(BINARY.iter().map(|b| b.0)) {
        let rows = table(name);
        let a: Vec<f64> = rows.iter().map(|r| r.0).collect();
        let b: Vec<f64> = rows.iter().map(|r| r.1).collect();
        for level in levels() {
            let out = run(kernel(name, Elem::F64, level).unwrap(), &a, &b);
            let (mut worst, mut at) = (0.0, 0);
            for (i, (y, row)) in out.iter().zip(&rows).enumerate() {
                let mut e = steps64(*y, row.2);
                if name == "logaddexp" && e.is_finite() && e > 0.0 {
                    // Cancellation is the sum's own: measured against the larger argument.
                    let scale = row.0.abs().max(row.1.abs()).max(row.2.abs());
                    e = (y - row.2).abs() / (scale * f64::EPSILON);
                }
                if e > worst {
                    (worst, at) = (e, i);
                }
            }
            println!(
                "f64 {name:10} {level:8?} worst {worst:.1} steps from the correct rounding at {:e} {:e}",
                a[at], b[at]
            );
            if worst > 2.0 {
                let (y, row) = (out[at], rows[at]);
                failures.push(format!(
                    "{name} {level:?}: {worst} at {:e},{:e}: {y:e}, not {:e}",
                    row.0, row.1, row.2
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every how manieth bit pattern is tried: `TILEWORK_SLOW_TESTS=1` tries all (hours), a larger
/// number is the step itself.
fn step() -> u64 {
    let asked = std::env::var("TILEWORK_SLOW_TESTS").ok();
    asked.and_then(|s| s.parse().ok()).filter(|s| *s > 0).unwrap_or(4099)
}

#[test]
fn f32_unary_against_libm() {
    let mut failures = Vec::new();
    let step = step();
    for &(name, f) in UNARY {
        let mut worst = [(0.0, 0f32, 0f32, 0f64); 3];
        let mut next = 0u64;
        while next < 1 << 32 {
            let end = (next + step * 65536).min(1 << 32);
            let mut a: Vec<f32> =
                (next..end).step_by(step as usize).map(|b| f32::from_bits(b as u32)).collect();
            if next == 0 {
                let corners =
                    [0.0, 1.0, 0.5, 2.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45];
                a.extend(corners.iter().flat_map(|c| [*c, -c]));
                a.push(f32::NAN);
                // Between the sampled patterns, where functions bend.
                a.extend((0..100_000).map(|i| (i as f32 - 50_000.0) * 0.002));
                a.extend((0..20_000).map(|i| 1.0 + (i as f32 - 10_000.0) * f32::EPSILON));
            }
            next = end;
            let exact: Vec<f64> = a.iter().map(|x| f(f64::from(*x))).collect();
            for level in Level::ALL.into_iter().filter(|l| l.is_available()) {
                let out = run(kernel(name, Elem::F32, level).unwrap(), &a, &a);
                for ((y, r), x) in out.iter().zip(&exact).zip(&a) {
                    let e = ulp32(*y, *r);
                    if e > worst[level as usize].0 {
                        worst[level as usize] = (e, *x, *y, *r);
                    }
                }
            }
        }
        for level in levels() {
            let (e, x, y, r) = worst[level as usize];
            println!("f32 {name:10} {level:8?} worst {e:.3} ulp at {x:e}");
            if e > 2.0 {
                failures.push(format!("{name} {level:?}: {e} ulp at {x:e}: {y:e}, not {r:e}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A small generator; the tests need no good one.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 32 ^ *state
}

#[test]
fn f32_binary_against_libm() {
    let mut failures = Vec::new();
    let count = if step() < 4099 { 20_000_000 } else { 600_000 };
    for &(name, f) in BINARY {
        let mut state = 1;
        let corners =
            [0.0, 1.0, 0.5, 2.0, 3.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::NAN];
        let corners: Vec<f32> = corners.iter().flat_map(|c| [*c, -c]).collect();
        let mut points: Vec<(f32, f32)> =
            corners.iter().flat_map(|a| corners.iter().map(|b| (*a, *b))).collect();
        for i in 0..count {
            let (p, q) = (random(&mut state) as u32, random(&mut state) as u32);
            let near = |r: u32| (f64::from(r) / 2f64.powi(31) - 1.0) as f32;
            points.push(match i % 4 {
                0 => (f32::from_bits(p), f32::from_bits(q)),
                1 => (near(p) * 8.0, near(q) * 8.0),
                2 => (near(p).abs() * 4.0, near(q) * 140.0),
                _ => (f32::from_bits(p & 0x7FFF_FFFF), near(q) * 2.0),
            });
        }
        let (a, b): (Vec<f32>, Vec<f32>) = points.into_iter().unzip();
        for level in levels() {
            let out = run(kernel(name, Elem::F32, level).unwrap(), &a, &b);
            let (mut worst, mut at) = (0.0, 0);
            for i in 0..a.len() {
                let r = f(f64::from(a[i]), f64::from(b[i]));
                let mut e = ulp32(out[i], r);
                if name == "logaddexp" && e.is_finite() && e > 0.0 && r.is_finite() {
                    // Cancellation is the sum's own: measured against the larger argument.
                    let scale = f64::from(a[i].abs().max(b[i].abs())).max(r.abs());
                    e *= ulp_at(r) / ulp_at(scale);
                }
                if e > worst {
                    (worst, at) = (e, i);
                }
            }
            println!("f32 {name:10} {level:8?} worst {worst:.3} ulp at {:e} {:e}", a[at], b[at]);
            if worst > 2.0 {
                failures.push(format!(
                    "{name} {level:?}: {worst} at {:e},{:e}: {:e}, not {:e}",
                    a[at],
                    b[at],
                    out[at],
                    f(a[at].into(), b[at].into())
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
