//! The formulas whose kernels have golden files, with the sizes and the data at which these are what runs.
//!
//! Read by the tests of the cuda crate, which hold the printed text against the files of `golden/pairs` without a
//! card, and by the conformance crate's `pairs_golden`, which runs the same calls on one: there the text of the
//! call is the file, byte for byte, and the numbers are those of the float64 evaluator.

use tilework_ops::DType;

/// The variables of all formulas, and their components.
pub(super) const ALIASES: [(&str, usize); 11] = [
    ("x = Vi(3)", 3),
    ("y = Vj(3)", 3),
    ("s = Pm(1)", 1),
    ("b = Vj(2)", 2),
    ("u = Vi(100)", 100),
    ("v = Vj(100)", 100),
    ("p = Vi(40)", 40),
    ("q = Vj(40)", 40),
    ("w = Vi(70)", 70),
    ("z = Vj(70)", 70),
    ("t = Vi(1)", 1),
];

/// The multiprocessors of the card that the files are for, an H200.
pub(super) const MULTIPROCESSORS: usize = 132;

/// A reduction, and the files of the plans that it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) reduction: &'static str,
    pub(super) k: Option<usize>,
    pub(super) formula: &'static str,
    pub(super) weight: Option<&'static str>,
    pub(super) dtype: DType,
    /// Whether sums are compensated, and whether the accuracy is strict.
    pub(super) compensated: bool,
    pub(super) strict: bool,
    pub(super) files: &'static [File],
}

/// What a file is the text of.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    /// What comes after the name of the case.
    pub(super) suffix: &'static str,
    pub(super) m: usize,
    pub(super) n: usize,
    /// Whether points lie in two clouds so far apart that no square may be expanded.
    pub(super) far: bool,
}

const fn file(suffix: &'static str, m: usize, n: usize, far: bool) -> File {
    File { suffix, m, n, far }
}

// Sizes are about the smallest at which these are what runs, so that tools which look at every access have time for all of
// them; `pairs_sizes` and others run the same kernels at large ones.

/// No square, or none that may be expanded; by threads that own several rows, and of longer vectors, or ranks.
const ONE: &[File] = &[file("", 20_000, 700, false)];
const LONGER: &[File] = &[file("", 1_500, 1_500, false)];
/// As it is written, and expanded: by threads, and about a centre where sums are long, as columns, on tensor cores, by products with right-hand sides.
const THREADS: &[File] = &[file("", 20_000, 3_000, true), file("_expanded", 20_000, 3_000, false)];
const LONG_SUMS: &[File] = &[THREADS[0], THREADS[1], file("_centred", 20_000, 60_000, false)];
const COLUMNS: &[File] = &[file("", 20_000, 8_000, true), file("_columns", 20_000, 8_000, false)];
const WIDE: &[File] = &[file("", 8_000, 1_500, true), file("_wide", 8_000, 1_500, false)];
const WEIGHTED: &[File] = &[file("", 20_000, 1_500, true), file("_weighted", 20_000, 1_500, false)];
/// A filter, or inner products, which any data may have, but which do not pay for few.
const FILTER: &[File] = &[file("", 600, 700, false), file("_wide", 12_000, 4_000, false)];
/// The same of sums so long that threads of other cards would move the points, which something else needs, too.
const BESIDE: &[File] = &[WEIGHTED[0], file("_weighted", 8_000, 40_000, false)];
/// Strict, with exponentials that may be of any size, and of normal numbers.
const STRICT: &[File] = &[ONE[0], file("_normal", 20_000, 3_000, false)];
/// Weights that are as they are written, whatever the data.
const ANY: &[File] = &[file("", 600, 700, false), file("_weighted", 20_000, 1_500, false)];
/// So few pairs that the kernel is one that is compiled soon.
const LITTLE: &[File] = &[file("", 50, 10, false)];

/// A case in float32 with sums and accuracy as they are when nobody asks.
const fn case(
    name: &'static str,
    reduction: &'static str,
    k: Option<usize>,
    formula: &'static str,
    files: &'static [File],
) -> Case {
    let (weight, dtype, compensated, strict) = (None, DType::Float32, false, false);
    Case { name, reduction, k, formula, weight, dtype, compensated, strict, files }
}

const GAUSS: &str = "Exp(-SqDist(x,y) * s) * b";

#[rustfmt::skip]
pub(super) const CASES: [Case; 49] = [
    case("gauss", "Sum", None, GAUSS, LONG_SUMS),
    Case { strict: true, ..case("gauss_strict", "Sum", None, GAUSS, STRICT) },
    Case { dtype: DType::Float64, ..case("gauss_float64", "Mean", None, GAUSS, THREADS) },
    Case { dtype: DType::Float16, compensated: true, ..case("gauss_half", "Sum", None, GAUSS, THREADS) },
    case("gradient", "Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, b)", COLUMNS),
    case("long_vectors", "Sum", None, "Exp(-SqDist(u,v) * s)", WIDE),
    case("nearest", "ArgMin", None, "SqDist(x,y)", ONE),
    case("nearest_ten", "ArgKMin", Some(10), "SqDist(x,y)", LONGER),
    Case { dtype: DType::Float64, ..case("farthest_hundred", "KMax_ArgKMax", Some(100), "SqDist(x,y)", LONGER) },
    case("logarithm", "LogSumExp", None, "-SqDist(x,y) * s", THREADS),
    Case { weight: Some("b"), ..case("soft_mean", "SumSoftMaxWeight", None, "(x|y)", ONE) },
    // Factors near one, whose product is in the range of float32.
    case("choices", "Prod", None, "1 + Where(x < y, x * s, Max(x + y) + ArgMin(y)) / 10000", ONE),
    case("tensors", "Max", None, "TensorDot(Concat(x,y), TensorProd(x,b), [2,3], [3,2], [1], [0])", ONE),
    case("long_weighted", "Sum", None, "Exp(-SqDist(u,v)) * b", WIDE),
    case("long_nearest", "ArgMin", None, "SqDist(u,v)", FILTER),
    case("long_nearest_ten", "KMin_ArgKMin", Some(10), "SqDist(u,v)", FILTER),
    case("long_logarithm", "LogSumExp", None, "-SqDist(u,v) * s", WIDE),
    case("many_components", "Sum", None, "Exp(-SqDist(x,y) * s) * v", WEIGHTED),
    case("long_gradient", "Mean", None, "Concat(Exp(-SqDist(p,q)) * b, Grad(Exp(-SqDist(p,q)) * b, p, b))", WEIGHTED),
    case("sliced_gradient", "Sum", None, "Grad(Exp(-SqDist(u,v)) * b, u, b)", WEIGHTED),
    case("sliced_components", "Sum", None, "Exp(-SqDist(p,q)) * v", WEIGHTED),
    case("laplace", "Sum", None, "Exp(-Sqrt(SqDist(x,y))) * b", ONE),
    case("laplace_scaled", "Mean", None, "Exp(-Sqrt(SqDist(x,y))) * (q * Sum(b))", ANY),
    case("laplace_columns", "Sum", None, "Exp(-Sqrt(SqDist(x,y))) * q", ANY),
    case("little", "Sum", None, GAUSS, LITTLE),
    case("little_wide", "LogSumExp", None, "-SqDist(p,q) * s", LITTLE),
    case("little_long", "ArgMin", None, "SqDist(u,v)", LITTLE),
    case("little_hundred", "ArgKMin", Some(100), "SqDist(x,y)", LITTLE),
    case("incoming", "Sum", None, "Grad(Exp(-SqDist(p,q)) * s, p, t)", WEIGHTED),
    case("two_columns", "Sum", None, "Grad(Exp(-SqDist(p,q)) * b, p, Extract(x, 0, 2))", WEIGHTED),
    case("two_lengths", "Sum", None, "Grad(Exp(-SqDist(u,v) * s) * z, u, w)", LONGER),
    case("cosines", "Sum", None, "(u|v) / (Norm2(u) * Norm2(v)) * b", LONGER),
    case("outer_products", "Sum", None, "Concat(TensorProd(x - y, x - y), x - y)", LONGER),
    case("two_sums", "LogSumExp", None, "(u|v) * s - Sum(Abs(u - v))", LONGER),
    case("several_vectors", "LogSumExp", None, "Sum(Cos(u) * Abs(u - v) * Sin(v)) * s", LONGER),
    case("extremes", "KMin_ArgKMin", Some(20), "Max(Abs(u * Norm2(x) - v)) + Min(u * Norm2(x) + v) * s", LONGER),
    Case { weight: Some("v"), ..case("sliced_soft_mean", "SumSoftMaxWeight", None, "(x|y)", LONGER) },
    case("sliced_ranks", "KMin_ArgKMin", Some(20), "x - y", LONGER),
    case("shifted", "LogSumExp", None, "Elem(b, 0) - SqDist(x,y) * s", THREADS),
    case("shifted_fused", "LogSumExp", None, "SqDist(p,q) * s + Elem(b, 1)", WIDE),
    case("shifted_exponents", "Sum", None, "Exp(Elem(b, 0) / 4 - SqDist(p,q) / 2) * b", WIDE),
    case("products", "Sum", None, "Exp((u|v) * s) * b", FILTER),
    Case { weight: Some("b"), ..case("attention", "SumSoftMaxWeight", None, "(p|q) * s", FILTER) },
    case("points_again", "Sum", None, "Exp(-SqDist(p,q) * s) * q", BESIDE),
    case("counted", "Count", None, "Extract(Concat(x * y, b), 1, 3)", ONE),
    Case { dtype: DType::Float16, ..case("half_logarithm", "LogSumExp", None, "-SqDist(u,v) * s", WIDE) },
    Case { dtype: DType::BFloat16, ..case("half_nearest", "KMin_ArgKMin", Some(10), "SqDist(u,v)", FILTER) },
    Case { dtype: DType::Float16, ..case("half_columns", "Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, b)", COLUMNS) },
    Case { dtype: DType::Float16, ..case("half_gradient", "Mean", None, "Concat(Exp(-SqDist(p,q)) * b, Grad(Exp(-SqDist(p,q)) * b, p, b))", WEIGHTED) },
];

/// What is printed for a formula in the source that `explain()` shows: the text of the kernels that take pairs
/// and that merge, with the names of the files of `kernels` in place of these. The kernels that measure and
/// that make tiles have the same text around other files.
pub(super) fn outline(source: &str) -> String {
    let (mut text, mut wanted, mut inside) = (String::new(), false, false);
    for line in source.lines() {
        wanted = match line {
            "// Pairs" | "// Merge" => true,
            "// Measure" | "// Tiles" => false,
            _ if line.ends_with(" of the other form") => false,
            _ => wanted,
        };
        let begins = line.starts_with("// [");
        if wanted && (begins || !inside) {
            text += line;
            text += "\n";
        }
        inside = (inside || begins) && line != "// ]";
    }
    text
}
