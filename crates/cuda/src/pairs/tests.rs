//! Kernels of a dozen formulas: their text is that of the golden files, and compiles.
//!
//! The golden files are in `golden/pairs`; `TILEWORK_GOLDEN=write` writes them anew, and their diff
//! is what a change of the printer is reviewed by. The same formulas are compared with the CPU by
//! the conformance crate's `pairs::golden`, on a card.

use std::collections::HashSet;

use tilework_backend::Scheme;
use tilework_formula::parse::formula;
use tilework_formula::{Axis, Purpose, Reduction, lower_for};
use tilework_ops::DType;

use super::folding::Folding;
use super::plan::{Plan, Sizes};
use super::print::{self, Unit};
use super::right::{Columns, Right};
use super::square::Square;
use super::wide;

const ALIASES: [&str; 8] = [
    "x = Vi(3)",
    "y = Vj(3)",
    "s = Pm(1)",
    "b = Vj(2)",
    "u = Vi(100)",
    "v = Vj(100)",
    "p = Vi(40)",
    "q = Vj(40)",
];

/// Name, reduction, K, formula, weight, dtype, whether sums are compensated, whether strict.
type Case = (
    &'static str,
    &'static str,
    Option<usize>,
    &'static str,
    Option<&'static str>,
    DType,
    bool,
    bool,
);

const F32: DType = DType::Float32;
const F64: DType = DType::Float64;

#[rustfmt::skip]
const CASES: [Case; 21] = [
    ("gauss", "Sum", None, "Exp(-SqDist(x,y) * s) * b", None, F32, false, false),
    ("gauss_strict", "Sum", None, "Exp(-SqDist(x,y) * s) * b", None, F32, false, true),
    ("gauss_float64", "Mean", None, "Exp(-SqDist(x,y) * s) * b", None, F64, false, false),
    ("gauss_half", "Sum", None, "Exp(-SqDist(x,y) * s) * b", None, DType::Float16, true, false),
    ("gradient", "Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, b)", None, F32, false, false),
    ("long_vectors", "Sum", None, "Exp(-SqDist(u,v) * s)", None, F32, false, false),
    ("nearest", "ArgMin", None, "SqDist(x,y)", None, F32, false, false),
    ("nearest_ten", "ArgKMin", Some(10), "SqDist(x,y)", None, F32, false, false),
    ("farthest_hundred", "KMax_ArgKMax", Some(100), "SqDist(x,y)", None, F64, false, false),
    ("logarithm", "LogSumExp", None, "-SqDist(x,y) * s", None, F32, false, false),
    ("soft_mean", "SumSoftMaxWeight", None, "(x|y)", Some("b"), F32, false, false),
    ("choices", "Prod", None, "Where(x < y, x * s, Max(x + y) + ArgMin(y))", None, F32, false, false),
    ("tensors", "Max", None, "TensorDot(Concat(x,y), TensorProd(x,b), [2,3], [3,2], [1], [0])", None, F32, false, false),
    ("long_weighted", "Sum", None, "Exp(-SqDist(u,v)) * b", None, F32, false, false),
    ("long_nearest", "ArgMin", None, "SqDist(u,v)", None, F32, false, false),
    ("long_nearest_ten", "KMin_ArgKMin", Some(10), "SqDist(u,v)", None, F32, false, false),
    ("long_logarithm", "LogSumExp", None, "-SqDist(u,v) * s", None, F32, false, false),
    ("many_components", "Sum", None, "Exp(-SqDist(x,y) * s) * v", None, F32, false, false),
    ("long_gradient", "Mean", None, "Concat(Exp(-SqDist(p,q)) * b, Grad(Exp(-SqDist(p,q)) * b, p, b))", None, F32, false, false),
    ("laplace", "Sum", None, "Exp(-Sqrt(SqDist(x,y))) * b", None, F32, false, false),
    ("counted", "Count", None, "Extract(Concat(x * y, b), 1, 3)", None, F32, false, false),
];

/// Does something with the plan of every case.
fn each(mut door: impl FnMut(&str, &Plan<'_>)) {
    for (name, reduction, k, text, weight, dtype, compensated, strict) in CASES {
        let parsed = formula(text, &ALIASES).expect(name);
        let weight = weight.map(|weight| formula(weight, &ALIASES).expect(name));
        let reduction =
            Reduction::new(reduction, &parsed, Axis::J, k, weight.as_ref()).expect(name);
        let purpose = Purpose { dtype, cheap: !strict };
        let lowered = lower_for(&reduction.outputs(), purpose).expect(name);
        let computes = if dtype == F64 { F64 } else { F32 };
        let folding = Folding {
            fold: reduction.row().fold,
            shape: reduction.shape(),
            computes,
            accumulates: computes,
            compensated,
            strict,
            finish: true,
            output: reduction.row().result(dtype),
        };
        for m in [20_000, 70] {
            let sizes = Sizes {
                batches: 1,
                m,
                n: 20_000,
                multiprocessors: 132,
                scheme: Scheme::Auto,
                capability: (9, 0),
            };
            let name = if m == 70 { format!("{name}_few") } else { name.to_owned() };
            door(&name, &Plan::new(&lowered.tape, folding, sizes, None));
            let tape = &lowered.tape;
            let columns = Columns::new(tape);
            if let Some(columns) = &columns
                && let Some(square) = Square::find(&columns.tape, &folding)
            {
                let plan = Plan::new(&columns.tape, folding, sizes, Some(square));
                let difference = Some(columns.difference);
                door(&format!("{name}_columns"), &Plan { difference, ..plan });
            }
            let right = Right::new(tape);
            if let Some(right) = &right
                && let Some(square) = wide::weighed(right, &folding, &sizes)
            {
                let plan = Plan::weighted(right, folding, sizes, square);
                door(&format!("{name}_weighted"), &plan);
            }
            let Some(square) = Square::find(tape, &folding) else { continue };
            let wide = wide::by_tiles(square, tape, &folding, &sizes);
            let fused = square.suits_threads(tape).then_some(square);
            for (square, form) in [(fused, "expanded"), (wide, "wide")] {
                if square.is_some() {
                    let plan = Plan::new(tape, folding, sizes, square);
                    door(&format!("{name}_{form}"), &plan);
                }
            }
        }
    }
}

#[test]
fn numbers_are_arguments() {
    let of = |text: &str| {
        let reduction =
            Reduction::new("Sum", &formula(text, &ALIASES).unwrap(), Axis::J, None, None);
        let purpose = Purpose { dtype: F32, cheap: true };
        let lowered = lower_for(&reduction.unwrap().outputs(), purpose).unwrap();
        let folding = Folding {
            fold: tilework_ops::pair_fold::PairFoldId::Sum,
            shape: tilework_ops::pair_fold::PairShape { dim: 2, k: 1, weights: 0 },
            computes: F32,
            accumulates: F32,
            compensated: false,
            strict: false,
            finish: true,
            output: F32,
        };
        let sizes = Sizes {
            batches: 1,
            m: 1000,
            n: 1000,
            multiprocessors: 132,
            scheme: Scheme::Auto,
            capability: (9, 0),
        };
        let plan = Plan::new(&lowered.tape, folding, sizes, None);
        (
            super::key::of(&plan, Unit::Pairs),
            print::source(&plan, Unit::Pairs).unwrap(),
            plan.arguments().collect::<Vec<u64>>(),
        )
    };
    let (key, text, three) = of("Exp(-SqDist(x,y) * 3) * b");
    let (other_key, other_text, seven) = of("Exp(-SqDist(x,y) * 7) * b");
    assert!(key == other_key && text == other_text && three != seven && three.len() == 1);
    assert!(key != of("Exp(-SqDist(x,y)) * b").0, "this one has no argument");
}

#[test]
fn text_is_golden() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/pairs");
    let write = std::env::var_os("TILEWORK_GOLDEN").is_some_and(|how| how == "write");
    each(|name, plan| {
        if name.contains("_few") {
            return;
        }
        let path = format!("{folder}/{name}.cu");
        let text = print::printed(plan).unwrap().to_string();
        if write {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{path} is not what is printed; see the head of pairs/tests.rs");
    });
}

#[test]
fn a_dozen_formulas_compile() {
    let (mut sources, mut wide, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    each(|name, plan| {
        for unit in Unit::of(plan) {
            let text = print::source(plan, unit).unwrap();
            // Many are merged alike.
            if seen.insert(text.clone()) {
                let hopper = plan.tiling.wide.is_some() && unit != Unit::Merge;
                let to = if hopper { &mut wide } else { &mut sources };
                to.push((format!("{name}, {unit:?}"), text));
            }
        }
    });
    assert!(wide.len() >= 5, "wide squares are printed");
    crate::check::compiles(sources);
    crate::check::compiles_for(&["sm_90a"], wide);
}
