//! Assembled code against the interpreter: the same bits, for both instruction sets.
//!
//! A process decides once whether it assembles and for which instruction set, so a corpus runs in
//! processes of its own: its test runs this file again with `TILEWORK_JIT` and `TILEWORK_ISA` set,
//! and compares the hashes that they print.

use std::process::Command;

use tilework::pairs::{Accuracy, Genred, Options, SumScheme};

use tilework::{Array, DType, Device, Result, Rng};
use tilework_conformance::pairs_random::{random_bits, seeds};

const ALIASES: [&str; 7] =
    ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "a = Vi(1)", "b = Vj(2)", "c = Vj(1)", "w = Vj(37)"];

/// Formulas of which every operation that formulas have is a part.
const FORMULAS: &[&str] = &[
    "Exp(-SqDist(x,y)) * c",
    "Exp(-SqDist(x,y) / (2 + Square(s))) * b",
    "Concat(Exp(-SqDist(x,y)) * c, Grad(Exp(-SqDist(x,y)) * c, x, IntCst(1)))",
    "Exp(-Sqrt(SqDist(x,y))) + (x|y)",
    "Inv(1 + SqDist(x,y)) * y - x / (2 + Square(y))",
    "Rsqrt(SqDist(x,y)) * (x - y)",
    "Powf(2 + Square(x), y)",
    "Atan2(x, y) * Asin(x * y / 30) + Acos(y * x / 30) + Atan(x + y)",
    "Log(1 + Square(x - y)) + Log1p(Square(a * c)) + Abs(x * y)",
    "Tanh(x * y) + Sigmoid(x - y) + Erf(x + y)",
    "Sinh(a * c / 4) + Cosh(a * c / 4) + Expm1(a + c) + Asinh(x * y)",
    "IfElse(x - y, Exp(x), ReLU(y)) + Step(x * y) + Sign(x + y)",
    "Where(x < y, x * x, Max(x + y) - Min(x * y))",
    "ArgMax(x * y) + ArgMin(x + y) * s",
    "Clamp(x * y, s - 1, 2) + Round(x * y, 1) + Mod(x - y, 2, 0.5)",
    "TensorProd(x, b) * c",
    "TensorDot(TensorProd(x, b), y, [3,2], [3], [0], [0])",
    "Extract(Concat(x * y, b), 1, 3) + OneHot(a, 3) * c",
    "Sin(x * y)",
    "Exp(-SqDist(x,y)) * w",
    "w * (x|y)",
    "w * Sin((w|w) * a)",
    "Extract(w, 3, 16) * Exp(-SqDist(x,y))",
];

const REDUCTIONS: &[(&str, Option<usize>)] = &[
    ("Sum", None),
    ("Prod", None),
    ("Any", None),
    ("All", None),
    ("Count", None),
    ("Min_ArgMin", None),
    ("Max_ArgMax", None),
    ("KMin_ArgKMin", Some(3)),
    ("KMax_ArgKMax", Some(7)),
    ("KMin_ArgKMin", Some(40)),
];

const SCALAR_REDUCTIONS: &[(&str, Option<&str>)] = &[
    ("LogSumExp", None),
    ("LogSumExp", Some("b")),
    ("Max_SumShiftExp", None),
    ("SumSoftMaxWeight", Some("Concat(b, x)")),
];

/// Around the widths of vectors and groups of them, with lanes that are i and lanes that are j; each
/// is enough pairs to be assembled.
const SIZES: [(usize, usize); 8] =
    [(17, 1000), (64, 257), (65, 300), (130, 255), (257, 70), (3, 5503), (50, 2601), (300, 270)];

/// Numbers some of which are special.
fn awkward(rng: &Rng, shape: &[usize], dtype: DType, special: bool) -> Result<Array> {
    let plain = rng.normal(shape, dtype)?;
    if !special {
        return Ok(plain);
    }
    let mut numbers = plain.astype(DType::Float64)?.to_vec::<f64>()?;
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-40, 1e30, 500.0];
    for (k, number) in numbers.iter_mut().enumerate().skip(3).step_by(29) {
        *number = odd[k / 29 % odd.len()];
    }
    let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
    Array::from_slice(&numbers)?.reshape(&shape)?.astype(dtype)
}

fn hash(array: &Array) -> Result<u64> {
    let numbers = array.astype(DType::Float64)?.to_vec::<f64>()?;
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    let step = |hash: u64, x: &f64| (hash ^ bits(*x)).wrapping_mul(0x100_0000_01b3).rotate_left(17);
    Ok(numbers.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Runs the corpus and prints a line for every result. Not a test by itself: see the module.
#[test]
#[ignore = "run by `code_and_interpreter_agree`"]
fn corpus() {
    let rng = Rng::new(5);
    for dtype in [DType::Float32, DType::Float64] {
        for (number, (m, n)) in SIZES.into_iter().enumerate() {
            for special in [false, true] {
                let shapes = [[m, 3], [n, 3], [1, 1], [m, 1], [n, 2], [n, 1], [n, 37]];
                let mut arrays: Vec<Array> =
                    shapes.iter().map(|s| awkward(&rng, s, dtype, special).unwrap()).collect();
                arrays[2] = arrays[2].reshape(&[1]).unwrap();
                let arrays: Vec<&Array> = arrays.iter().collect();
                let run = |text: &str, name: &str, k, weight, options: &Options<'_>| {
                    let what = format!("{dtype} {m}x{n} {special} {name} of {text} {options:?}");
                    let call = Genred::with(text, &ALIASES, name, 1, k, weight).expect(&what);
                    let got = call.call_with(&arrays, options).expect(&what);
                    for array in [got.values, got.indices].into_iter().flatten() {
                        println!("case {what}: {:016x}", hash(&array).unwrap());
                    }
                };
                let plain = Options::default();
                for text in FORMULAS {
                    run(text, "Sum", None, None, &plain);
                }
                for (k, (name, kept)) in REDUCTIONS.iter().enumerate() {
                    let text = FORMULAS[(k + number) % 5];
                    run("SqDist(x,y) - 3", name, *kept, None, &plain);
                    run(text, name, *kept, None, &plain);
                }
                for (name, weight) in SCALAR_REDUCTIONS {
                    run("-SqDist(x,y) * 3", name, None, *weight, &plain);
                    run("(x|y) * 40", name, None, *weight, &plain);
                }
                let strict = Options { accuracy: Accuracy::Strict, ..plain };
                let kahan = Options { sums: SumScheme::Kahan, ..plain };
                run(FORMULAS[0], "Sum", None, None, &strict);
                run("-SqDist(x,y)", "LogSumExp", None, None, &strict);
                let double = Options { sums: SumScheme::Double, ..plain };
                run(FORMULAS[1], "Sum", None, None, &kahan);
                for text in ["Exp(-SqDist(x,y)) * w", "Extract(w, 3, 16) * Exp(-SqDist(x,y))"] {
                    run(text, "Sum", None, None, &kahan);
                    run(text, "Sum", None, None, &double);
                }
            }
        }
    }
    // So many that points are looked at before, for exponentials that are never too small.
    let many = [[4100, 3], [4100, 3], [4100, 1]]
        .map(|shape| rng.normal(&shape, DType::Float32).expect("normal"));
    let aliases = ["x = Vi(3)", "y = Vj(3)", "c = Vj(1)"];
    let call = Genred::new(FORMULAS[2], &aliases, "Sum", 1).expect("formula");
    println!("case many: {:016x}", hash(&call.call(&many.each_ref()).expect("call")).unwrap());
    // Wide points, whose gradients are made of sums.
    let aliases = ["x = Vi(37)", "y = Vj(37)", "c = Vj(1)", "e = Vi(1)"];
    let text = "Concat(Exp(-SqDist(x,y) / 30) * c, Grad(Exp(-SqDist(x,y) / 30) * c, x, e))";
    let call = Genred::new(text, &aliases, "Sum", 1).expect("formula");
    for dtype in [DType::Float32, DType::Float64] {
        let wide = [[333, 37], [700, 37], [700, 1], [333, 1]]
            .map(|shape| rng.normal(&shape, dtype).expect("normal"));
        for sums in [SumScheme::Blocks, SumScheme::Kahan, SumScheme::Double] {
            let options = Options { sums, ..Options::default() };
            let got = call.call_with(&wide.each_ref(), &options).expect("call");
            let bits = hash(&got.values.expect("values")).unwrap();
            println!("case wide {dtype} {sums:?}: {bits:016x}");
        }
    }
}

/// The same for formulas made at random.
#[test]
#[ignore = "run by `code_and_interpreter_agree_on_random_formulas`"]
fn random_corpus() {
    random_bits(Device::current(), seeds(150)).iter().for_each(|line| println!("case {line}"));
}

/// What a corpus prints under these settings.
fn lines(corpus: &str, isa: &str, jit: &str) -> Vec<String> {
    let output = Command::new(std::env::current_exe().expect("this test is a file"))
        .args(["--exact", corpus, "--ignored", "--nocapture", "--test-threads", "1"])
        .envs([("TILEWORK_ISA", isa), ("TILEWORK_JIT", jit)])
        .output()
        .expect("the corpus runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{isa} {jit}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter(|line| line.starts_with("case ")).map(str::to_owned).collect()
}

/// Asserts that a corpus of more than `least` results has the same bits both ways.
fn agree(corpus: &str, least: usize) {
    for isa in ["avx512", "avx2"] {
        let (assembled, interpreted) = (lines(corpus, isa, "1"), lines(corpus, isa, "0"));
        assert!(assembled.len() > least, "{isa}: {} cases", assembled.len());
        assert_eq!(assembled.len(), interpreted.len(), "{isa}");
        let differ: Vec<String> = assembled
            .iter()
            .zip(&interpreted)
            .filter(|(a, b)| a != b)
            .map(|(a, b)| format!("{a}\n{b}"))
            .collect();
        assert!(differ.is_empty(), "{isa}: {} differ:\n{}", differ.len(), differ.join("\n"));
    }
}

#[test]
fn code_and_interpreter_agree() {
    agree("corpus", 500);
}

#[test]
fn code_and_interpreter_agree_on_random_formulas() {
    agree("random_corpus", 200);
}
