//! Kernels of a dozen formulas: their text is that of the golden files, and compiles. And which squares may be expanded.
//!
//! The golden files are in `golden/pairs`, and `golden/cases.rs` says what they are of; `golden/squares.txt` holds
//! decisions. `TILEWORK_GOLDEN=write` writes them anew, and their diff is what a change is reviewed by. The conformance crate's
//! `pairs_golden` runs the same cases on a card.

use std::collections::HashSet;

use tilework_backend::Scheme;
use tilework_formula::parse::formula;
use tilework_formula::{Axis, Purpose, Reduction, lower_for};
use tilework_ops::DType;
use tilework_tape::Tape;

use super::folding::Folding;
use super::plan::{Plan, Sizes};
use super::print::{self, Unit};
use super::square::{Products, Sign, Square};
use super::{Forms, Plans};
use cases::{CASES, Case, File};

#[path = "../../golden/cases.rs"]
mod cases;
mod keys;
mod lengths;
mod skeletons;

/// The dtype of most tests.
const F32: DType = DType::Float32;

/// The compute capability of Hopper cards.
const HOPPER: (i32, i32) = (9, 0);

/// Where golden files are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden");

fn aliases() -> [&'static str; 11] {
    cases::ALIASES.map(|(alias, _)| alias)
}

/// Asserts that a text is that of a golden file, or writes it there.
fn golden(name: &str, text: &str) {
    let path = format!("{FOLDER}/{name}");
    if std::env::var_os("TILEWORK_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{path} is not what is printed; see the head of pairs/tests.rs");
}

/// A reduction whose sums and results are of one dtype, as it is without options.
fn plain(reduction: &Reduction, dtype: DType, strict: bool) -> Folding {
    Folding {
        fold: reduction.row().fold,
        shape: reduction.shape(),
        is_part: false,
        computes: dtype,
        accumulates: dtype,
        compensated: false,
        strict,
        finish: true,
        logarithm: false,
        output: dtype,
    }
}

/// The tape of a sum in float32, and how it is folded, without options.
pub(super) fn sum_of(text: &str, aliases: &[&str]) -> (Tape, Folding) {
    let parsed = formula(text, aliases).expect(text);
    let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).expect(text);
    let lowered = lower_for(&reduction.outputs(), Purpose { dtype: F32, cheap: true });
    (lowered.expect(text).tape, plain(&reduction, F32, false))
}

/// Shows the plans of every file to `door`, one for each part, and those of the same call with few rows.
fn each(capability: (i32, i32), mut door: impl FnMut(&str, &[Plan<'_>])) {
    each_plans(capability, |name, far, plans| {
        let expanded = plans.expanded.filter(|_| !far).map(|expanded| vec![expanded.plan]);
        let parts = [plans.direct].into_iter().chain(plans.others);
        door(name, &expanded.unwrap_or_else(|| parts.collect()));
    });
}

/// Like [`each`], but with the plans of both forms, and whether points are far from each other.
fn each_plans(capability: (i32, i32), mut door: impl FnMut(&str, bool, Plans<'_>)) {
    for case in CASES {
        let Case { name, dtype, compensated, strict, .. } = case;
        let parsed = formula(case.formula, &aliases()).expect(name);
        let weight = case.weight.map(|weight| formula(weight, &aliases()).expect(name));
        let reduction =
            Reduction::new(case.reduction, &parsed, Axis::J, case.k, weight.as_ref()).expect(name);
        let (row, purpose) = (reduction.row(), Purpose { dtype, cheap: !strict });
        let lowered = lower_for(&reduction.outputs(), purpose).expect(name);
        let computes = if dtype == DType::Float64 { dtype } else { F32 };
        let folding = Folding {
            compensated,
            output: if row.gives_values { row.result(dtype) } else { computes },
            ..plain(&reduction, computes, strict)
        };
        let forms = Forms::new(&lowered.tape, &folding);
        for &File { suffix, m, n, far } in case.files {
            for (few, m) in [("", m), ("_few", 70)] {
                let sizes = Sizes {
                    batches: 1,
                    m,
                    n,
                    multiprocessors: cases::MULTIPROCESSORS,
                    scheme: Scheme::Auto,
                    capability,
                };
                let plans = Plans::new(&forms, folding, sizes);
                let name = format!("{name}{suffix}{few}");
                let other = !suffix.is_empty() && few.is_empty() && capability == HOPPER;
                let expanded = plans.expanded.is_some() && !far;
                assert!(expanded || !other, "{name} has no such plan");
                door(&name, far, plans);
            }
        }
    }
}

#[test]
fn numbers_are_arguments() {
    let of = |text: &str| {
        let reduction =
            Reduction::new("Sum", &formula(text, &aliases()).unwrap(), Axis::J, None, None)
                .unwrap();
        let purpose = Purpose { dtype: F32, cheap: true };
        let lowered = lower_for(&reduction.outputs(), purpose).unwrap();
        let folding = plain(&reduction, F32, false);
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

/// Points are moved to a centre in long sums, of which the conformance crate's `pairs_centred` has some.
#[test]
fn centres_are_found_where_they_pay() {
    let of = |name: &str, text: &str, dim: usize, m: usize, n: usize| {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
        let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)"];
        let parsed = formula(text, &aliases).unwrap();
        let reduction = Reduction::new(name, &parsed, Axis::J, None, None).unwrap();
        let tape =
            lower_for(&reduction.outputs(), Purpose { dtype: F32, cheap: true }).unwrap().tape;
        let folding = plain(&reduction, F32, false);
        let forms = Forms::new(&tape, &folding);
        let multiprocessors = cases::MULTIPROCESSORS;
        let sizes =
            Sizes { batches: 1, m, n, multiprocessors, scheme: Scheme::Auto, capability: HOPPER };
        Plans::new(&forms, folding, sizes).expanded.is_some_and(|it| it.plan.sections.is_centred())
    };
    const GAUSS: &str = "Exp(-SqDist(x,y) * s) * b";
    const GRADIENT: &str = "Grad(Exp(-SqDist(x,y) * s) * b, x, b)";
    for (dim, m, n) in
        [(3, 100_000, 100_000), (9, 100_000, 100_000), (3, 40_003, 60_001), (9, 40_003, 60_001)]
    {
        assert!(of("Sum", GAUSS, dim, m, n), "{dim}, {m}, {n}");
        assert!(of("Sum", GRADIENT, dim, m, n), "{dim}, {m}, {n}");
        assert!(!of("LogSumExp", "-SqDist(x,y) * s", dim, m, n), "{dim}, {m}, {n}");
    }
    assert!(!of("Sum", GAUSS, 3, 10_000, 10_000) && !of("Sum", GAUSS, 3, 100, 10_000_000));
}

#[test]
fn what_blocks_refuse_has_blocks_of_its_own() {
    let mut blocks_for_one = HashSet::new();
    each_plans(HOPPER, |name, _, plans| {
        let Some(expanded) = plans.expanded.filter(|_| plans.by_block) else { return };
        let (expanded, direct) = (expanded.plan, plans.direct);
        let rows = |plan: &Plan<'_>| plan.cut.blocks * plan.tiling.span();
        assert_eq!(rows(&direct), rows(&expanded), "{name}: {direct:?}");
        assert_eq!(
            direct.tiling.ranges_per_block, expanded.tiling.ranges_per_block,
            "{name}: {direct:?}"
        );
        assert_eq!(direct.cut.range, expanded.cut.range, "{name}: {direct:?}");
        assert_eq!(direct.cut.ranges, expanded.cut.ranges, "{name}: {direct:?}");
        blocks_for_one.insert(direct.cut.blocks / expanded.cut.blocks);
    });
    assert!(blocks_for_one.len() > 1, "{blocks_for_one:?}");
}

/// Calls of few pairs share one kernel, which is not that of many, and ask for no choice of forms.
#[test]
fn few_pairs_have_one_kernel_at_all_sizes() {
    // With whether a million pairs are few.
    for (reduction, k, text, dim, million) in [
        ("Sum", None, "Exp(-SqDist(x,y)) * b", 3, true),
        ("Sum", None, "Exp(-SqDist(x,y)) * b", 64, true),
        ("Sum", None, "Exp(-SqDist(x,y)) * b", 784, false),
        ("LogSumExp", None, "-SqDist(x,y)", 10, true),
        ("ArgKMin", Some(10), "SqDist(x,y)", 3, true),
        ("ArgKMin", Some(100), "SqDist(x,y)", 3, true),
        ("Max", None, "x * y", 64, false),
        ("Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, b)", 64, false),
    ] {
        let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})"), "b = Vj(1)".to_owned()];
        let aliases = [&aliases[0][..], &aliases[1], &aliases[2]];
        let parsed = formula(text, &aliases).expect(text);
        let reduction = Reduction::new(reduction, &parsed, Axis::J, k, None).expect(text);
        let purpose = Purpose { dtype: F32, cheap: true };
        let tape = lower_for(&reduction.outputs(), purpose).expect(text).tape;
        let folding = plain(&reduction, F32, false);
        let forms = Forms::new(&tape, &folding);
        let mut kernels = HashSet::new();
        for (batches, m, n, few) in [
            (1, 1, 1, true),
            (1, 10, 10, true),
            (3, 40, 7, true),
            (1, 1000, if dim <= 10 { 100 } else { 5 }, true),
            (1, 1000, 1000, million),
            (1, 20_000, 20_000, false),
            (1, 100, 1_000_000, false),
            (64, 2000, 2000, false),
        ] {
            let (multiprocessors, scheme) = (cases::MULTIPROCESSORS, Scheme::Auto);
            let sizes = Sizes { batches, m, n, multiprocessors, scheme, capability: HOPPER };
            let plans = Plans::new(&forms, folding, sizes);
            assert_eq!(plans.direct.tiling.few_pairs, few, "{text}, {dim}: {m} x {n}");
            if few {
                assert!(plans.expanded.is_none() && !plans.by_block);
                let ranges = plans.direct.cut.ranges;
                // Ranks begin anew in every range, so that there are as few as keep a card busy.
                let tiles = n.div_ceil(plans.direct.tiling.tile);
                let expected = match (n < 1000, k) {
                    (true, _) => 1..=1,
                    (false, None) => tiles..=tiles,
                    (false, Some(_)) => 1..=tiles - 1,
                };
                assert!(expected.contains(&ranges), "{text}, {dim}: {m} x {n}, {ranges} ranges");
                kernels.insert(super::key::of(&plans.direct, Unit::Pairs));
            }
        }
        assert_eq!(kernels.len(), 1, "{text}, {dim}");
    }
}

/// Of all kernels of a call those that take pairs are compiled first, and of these the one that takes longest.
#[test]
fn what_takes_longest_is_compiled_first() {
    let mut seen = [0; 3];
    each_plans(HOPPER, |name, _, plans| {
        let Some(expanded) = plans.expanded else { return };
        let [written, other] = [&plans.direct, &expanded.plan].map(|plan| Unit::Pairs.turn(plan));
        let kind = match (expanded.plan.tiling.wide.is_some(), expanded.is_filter()) {
            (false, _) => 0,
            (_, true) => 1,
            _ => 2,
        };
        seen[kind] += 1;
        assert_eq!(written < other, kind == 2, "{name}");
        for unit in [Unit::Merge, Unit::Measure, Unit::Tiles] {
            assert!(unit.turn(&expanded.plan) > written.max(other), "{name}");
        }
    });
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// Points that are moved and needed as they are take twice the room, for which tiles are smaller.
#[test]
fn points_have_room_beside_those_that_are_moved() {
    let mut seen = 0;
    each_plans((8, 0), |name, _, plans| {
        if name == "points_again_weighted" {
            let plan = plans.expanded.expect("an expanded square").plan;
            assert!(plan.sections.is_centred() && plan.tiling.tile < plans.direct.tiling.tile);
            seen += 1;
        }
    });
    assert_eq!(seen, 1);
}

/// Launches ask for levels of sums alone, or for tiles too; `check` looks how much kernels declare.
#[test]
fn launches_ask_for_what_kernels_may_not_declare() {
    let mut seen = [0; 2];
    each_plans(HOPPER, |name, _, plans| {
        let expanded = plans.expanded.iter().map(|it| &it.plan);
        for plan in expanded.chain([&plans.direct]).chain(&plans.others) {
            let asks = print::source(plan, Unit::Pairs).unwrap().contains("#define ASKS\n");
            assert_eq!(asks, plan.asked.is_some(), "{name}");
            if let Some(asked) = plan.asked {
                assert!(asked.tiles_at % 16 == 0 && asked.tiles_at <= asked.bytes, "{name}");
                seen[usize::from(asked.tiles_at < asked.bytes)] += 1;
            }
        }
    });
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    each_plans((8, 0), |name, _, plans| assert_eq!(plans.direct.asked, None, "{name}"));
}

/// Kernels of few pairs have rows in shared memory, so that there may be no room for levels.
#[test]
fn levels_of_few_pairs_have_room_beside_rows() {
    let points = ["p", "q", "r", "u", "w"].map(|name| format!("{name} = Vi(64)"));
    let [p, q, r, u, w] = points.each_ref().map(String::as_str);
    let plan = |text: &str, door: &dyn Fn(&Plan<'_>)| {
        let (tape, folding) = sum_of(text, &[p, q, r, u, w, "y = Vj(1)"]);
        let (multiprocessors, scheme) = (cases::MULTIPROCESSORS, Scheme::Auto);
        let capability = (8, 0);
        let sizes = Sizes { batches: 1, m: 10, n: 10, multiprocessors, scheme, capability };
        let forms = Forms::new(&tape, &folding);
        door(&Plans::new(&forms, folding, sizes).direct);
    };
    plan("p * y", &|plan| assert!(plan.tiling.few_pairs && plan.shares_levels));
    plan("(p + y) * (q + y) * (r + y) * (u + y) * (w + y)", &|plan| {
        assert!(plan.tiling.few_pairs && !plan.shares_levels);
    });
}

#[test]
fn text_is_golden() {
    let mut names = HashSet::new();
    each(HOPPER, |name, plans| {
        if name.ends_with("_few") {
            return;
        }
        let units = plans.iter().flat_map(|plan| Unit::of(plan).map(move |unit| (plan, unit)));
        let text = print::sources(units, "").unwrap();
        golden(&format!("pairs/{name}.cu"), &cases::outline(&text));
        names.insert(format!("{name}.cu"));
    });
    for file in std::fs::read_dir(format!("{FOLDER}/pairs")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "{name} is of no case");
    }
}

#[test]
fn a_dozen_formulas_compile() {
    // What other cards have differs where they have less shared memory, or no such tensor cores.
    for (capability, architectures) in [(HOPPER, &["sm_90a"][..]), ((8, 0), &["sm_80", "sm_100"])] {
        let (mut sources, mut seen, mut wide) = (Vec::new(), HashSet::new(), 0);
        each(capability, |name, plans| {
            let units = plans.iter().flat_map(|plan| Unit::of(plan).map(move |unit| (plan, unit)));
            for (plan, unit) in units {
                let text = print::source(plan, unit).unwrap();
                // Many are merged alike.
                if seen.insert(text.clone()) {
                    wide += usize::from(plan.tiling.wide.is_some() && unit == Unit::Pairs);
                    sources.push((format!("{name}, {unit:?}"), text));
                }
            }
        });
        assert_eq!(wide >= 5, capability == HOPPER, "wide squares are printed for Hopper");
        crate::check::compiles_for(architectures, sources);
    }
}

/// Bytes of local memory of a thread, at most, which the driver sets aside for all threads that a card could have: 29 MiB
/// of an H200.
const FRAME: usize = 112;

#[test]
fn what_is_compiled_needs_little_local_memory() {
    const GAUSS: &str = "Exp(-SqDist(x,y)) * b";
    const LAPLACE: &str = "Exp(-Sqrt(SqDist(x,y))) * b";
    const MATERN: &str = "(1 + Sqrt(SqDist(x,y)) + SqDist(x,y) / 3) * Exp(-Sqrt(SqDist(x,y))) * b";
    const GRADIENT: &str = "Grad(Exp(-SqDist(x,y)) * b, x, b)";
    const BOTH: &str = "Concat(Exp(-SqDist(x,y)) * b, Grad(Exp(-SqDist(x,y)) * b, x, b))";
    let (mut sources, mut seen) = (Vec::new(), HashSet::new());
    for (reduction, k, text, dim, width, dtype, strict) in [
        ("Sum", None, GAUSS, 3, 1, F32, false),
        ("Sum", None, GAUSS, 10, 1, F32, false),
        ("Sum", None, GAUSS, 64, 1, F32, false),
        ("Sum", None, GAUSS, 784, 1, F32, false),
        ("Sum", None, GAUSS, 3, 16, F32, false),
        ("Sum", None, GAUSS, 3, 128, F32, false),
        ("Sum", None, GAUSS, 64, 64, F32, false),
        ("Sum", None, LAPLACE, 3, 24, F32, false),
        ("Sum", None, LAPLACE, 9, 32, F32, false),
        ("Sum", None, LAPLACE, 9, 128, F32, false),
        ("Sum", None, MATERN, 3, 24, F32, false),
        ("Sum", None, MATERN, 9, 32, F32, false),
        ("Sum", None, MATERN, 9, 128, F32, false),
        ("Sum", None, "Cos((x|y)) * Exp(-Sum(Abs(x - y))) * b", 9, 32, F32, false),
        ("Sum", None, GAUSS, 3, 1, DType::Float64, false),
        ("Sum", None, BOTH, 10, 1, F32, false),
        ("Sum", None, BOTH, 64, 1, F32, false),
        ("Sum", None, GRADIENT, 64, 1, F32, true),
        ("Sum", None, GRADIENT, 80, 1, F32, true),
        ("Sum", None, BOTH, 200, 1, F32, false),
        ("Sum", None, BOTH, 40, 1, DType::Float64, false),
        ("LogSumExp", None, "SqDist(x,y)", 64, 1, F32, false),
        ("ArgMin", None, "SqDist(x,y)", 64, 1, F32, false),
        ("ArgKMin", Some(10), "SqDist(x,y)", 3, 1, F32, false),
        ("ArgKMin", Some(10), "SqDist(x,y)", 64, 1, F32, false),
        ("ArgKMin", Some(16), "SqDist(x,y)", 64, 1, F32, false),
        ("ArgKMin", Some(16), "SqDist(x,y)", 20, 1, F32, false),
        ("ArgKMin", Some(16), "SqDist(x,y)", 128, 1, F32, false),
        ("ArgKMin", Some(1500), "SqDist(x,y)", 3, 1, F32, false),
        ("ArgKMin", Some(17), "SqDist(x,y)", 65, 1, F32, false),
        ("ArgKMin", Some(100), "SqDist(x,y)", 128, 1, F32, false),
        ("KMax", Some(100), "(x|y)", 784, 1, DType::Float64, false),
        ("ArgKMin", Some(1500), "SqDist(x,y)", 128, 1, F32, false),
        ("SumSoftMaxWeight", None, "(x|y)", 3, 64, F32, false),
        ("SumSoftMaxWeight", None, "-SqDist(x,y)", 10, 17, F32, false),
        ("SumSoftMaxWeight", None, "-SqDist(x,y)", 3, 20, DType::Float64, false),
        ("LogSumExpWeight", None, "(x|y)", 64, 128, F32, false),
        ("Max", None, "x - y", 33, 1, F32, false),
        ("Max", None, "x - y", 200, 1, F32, false),
        ("ArgMin", None, "Abs(x - y)", 40, 1, DType::Float64, false),
        ("Min_ArgMin", None, "Concat(x * y, b)", 100, 40, F32, false),
        ("Sum", None, "(x|y) / (Norm2(x) * Norm2(y)) * b", 784, 1, F32, false),
        ("Sum", None, "Exp(-Sum(Abs(x - y))) * b", 784, 1, F32, false),
        ("ArgMin", None, "WeightedSqDist(q, x, y)", 784, 1, F32, false),
        ("ArgKMin", Some(10), "SqDist(x / q, y / q)", 784, 1, F32, false),
        ("ArgKMin", Some(100), "WeightedSqDist(q, x, y)", 784, 1, F32, false),
        ("LogSumExp", None, "(Normalize(x)|Normalize(y))", 784, 1, DType::Float64, false),
        ("Sum", None, "Sum(Square(x - y) / (x + y)) * b", 784, 1, F32, true),
        ("Sum", None, "Grad(Exp(-SqDist(x,y)) * b, x, e)", 200, 100, F32, false),
        ("KMin", Some(20), "SqDist(x,y) + (e|b)", 200, 100, F32, false),
        ("KMin_ArgKMin", Some(10), "x - y", 3, 1, F32, false),
        ("KMin", Some(50), "Concat(x - y, b)", 10, 1, F32, false),
        ("ArgKMax", Some(3), "x * y", 8, 1, DType::Float64, false),
        ("ArgKMin", Some(100), "x - y", 100, 1, F32, false),
        ("SumSoftMaxWeight", None, "-SqDist(x,y)", 100, 100, F32, false),
        ("Prod", None, "x - y", 200, 1, F32, false),
        ("Sum", None, "TensorProd(x - y, x - y)", 10, 1, F32, false),
        ("Sum", None, "Exp(-SqDist(x,y)) * TensorProd(x - y, x - y)", 12, 1, F32, false),
        ("Count", None, "x - y", 100, 1, F32, false),
        ("ArgKMin", Some(10), "Max(Abs(x - y))", 784, 1, F32, false),
        (
            "ArgKMin",
            Some(100),
            "SqDist(x / Norm2(x), y) + Min(x / Norm2(x) - y)",
            784,
            1,
            F32,
            false,
        ),
        ("KMin", Some(20), "SqDist(x / Norm2(x), y)", 100, 1, DType::Float64, false),
    ] {
        let aliases = [("x = Vi", dim), ("y = Vj", dim), ("b = Vj", width), ("e = Vi", width)];
        let aliases = aliases.into_iter().chain([("q = Pm", dim)]);
        let aliases: Vec<String> = aliases.map(|(name, dim)| format!("{name}({dim})")).collect();
        let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let parsed = formula(text, &aliases).expect(text);
        let weight = reduction.ends_with("Weight").then(|| formula("b", &aliases).expect(text));
        let reduction =
            Reduction::new(reduction, &parsed, Axis::J, k, weight.as_ref()).expect(text);
        let purpose = Purpose { dtype, cheap: !strict };
        let tape = lower_for(&reduction.outputs(), purpose).expect(text).tape;
        let folding = plain(&reduction, dtype, strict);
        let forms = Forms::new(&tape, &folding);
        for points in [50_000, 10] {
            let sizes = Sizes {
                batches: 1,
                m: points,
                n: points,
                multiprocessors: cases::MULTIPROCESSORS,
                scheme: Scheme::Auto,
                capability: (9, 0),
            };
            let Plans { direct, others, expanded, .. } = Plans::new(&forms, folding, sizes);
            let expanded = expanded.map(|expanded| expanded.plan);
            for plan in [direct].iter().chain(&others).chain(&expanded) {
                for unit in Unit::of(plan) {
                    let source = print::source(plan, unit).unwrap();
                    if seen.insert(source.clone()) {
                        let name = format!("{} of {text}, {dim}, {width}", reduction.row().name);
                        sources.push((format!("{name}, {dtype}, {points}, {unit:?}"), source));
                    }
                }
            }
        }
    }
    crate::check::compiles_to(&["sm_90a"], sources, |name, code| {
        let frame = crate::check::frame(code);
        assert!(frame <= FRAME, "{name}: {frame} bytes of local memory");
    });
}

/// The squares that are found, and the largest norms with which they may be used by threads and by tiles, over
/// formulas, reductions, dtypes and lengths.
fn squares() -> String {
    const FORMULAS: [&str; 20] = [
        "Exp(-SqDist(x,y))",
        "Exp(-SqDist(x,y) * s) * b",
        "Exp(SqDist(x,y) / (1 + Square(s)))",
        "-SqDist(x,y) * s",
        "SqDist(x,y)",
        "2 * SqDist(x,y)",
        "Exp(-Sqrt(SqDist(x,y)))",
        "Square(Exp(-SqDist(x,y) * s))",
        "Exp(-SqDist(x,y) * s) * SqDist(x,y)",
        "Exp(-SqDist(x,y)) + Exp(-SqDist(x,y) * s)",
        "Exp(-SqDist(x,y) * s - Square(b))",
        "Grad(Exp(-SqDist(x,y) * s) * b, x, b)",
        "1 + Exp(-SqDist(x,y) * s)",
        "Exp((x|y) * s)",
        "Tanh((x|y) * s)",
        "-SqDist(x,y)",
        "b - SqDist(x,y) * s",
        "b + SqDist(x,y) * s",
        "(b - SqDist(x,y)) / 3",
        "Exp(b - SqDist(x,y) / 3)",
    ];
    let mut text = String::new();
    for of in FORMULAS {
        for (name, weight) in [
            ("Sum", None),
            ("Mean", None),
            ("LogSumExp", None),
            ("LogSumExp", Some("b")),
            ("LogSumExp", Some(of)),
            ("Max", None),
            ("Min", None),
            ("ArgMin", None),
            ("Prod", None),
        ] {
            for (dtype, strict) in [(F32, false), (DType::Float64, false), (F32, true)] {
                let found = [1, 2, 3, 10, 64, 65, 784].map(|dim| {
                    let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
                    let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)", "b = Vj(1)"];
                    let parsed = formula(of, &aliases).expect(of);
                    let weight = weight.map(|weight| formula(weight, &aliases).expect(weight));
                    let Ok(reduction) =
                        Reduction::new(name, &parsed, Axis::J, None, weight.as_ref())
                    else {
                        return "refused".to_owned();
                    };
                    let lowered =
                        lower_for(&reduction.outputs(), Purpose { dtype, cheap: !strict });
                    let tape = lowered.expect(of).tape;
                    let folding = plain(&reduction, dtype, strict);
                    let Some(square) = Square::find(&tape, &folding) else {
                        return "-".to_owned();
                    };
                    let limits = [Products::Fused, Products::Tiles { leave: 32 }].map(|products| {
                        let limit = Square { products, ..square }.limit(&tape);
                        // Threads compute these as they are written.
                        let none = square.is_product() && products == Products::Fused;
                        if none { "-".to_owned() } else { format!("{limit:.6e}") }
                    });
                    let side = match square.outside {
                        Some(Sign::Plus) => "outside",
                        Some(Sign::Minus) => "outside, negative",
                        None => "inside",
                    };
                    format!("{side} {}", limits.join(" "))
                });
                if found.iter().all(|found| found == "-" || found == "refused") {
                    continue;
                }
                let strict = if strict { ", strict" } else { "" };
                let weight = weight.map_or(String::new(), |weight| format!(" by {weight}"));
                text += &format!("{name} of {of}{weight}, {dtype}{strict}: {}\n", found.join(", "));
            }
        }
    }
    text
}

#[test]
fn decisions_about_squares_are_golden() {
    golden("squares.txt", &squares());
}

/// Inner products of short points have no form of threads, and beside tiles of them there is no room for all the columns
/// that squares of as short points have: their exponentials are weights as they are written.
#[test]
fn short_inner_products_are_as_they_are_written() {
    for (text, expanded) in [("Exp((x|y) * s) * v", false), ("Exp(-SqDist(x,y) * s) * v", true)] {
        let (tape, folding) = sum_of(text, &aliases());
        let sizes = Sizes {
            batches: 1,
            m: 100_000,
            n: 100_000,
            multiprocessors: cases::MULTIPROCESSORS,
            scheme: Scheme::Auto,
            capability: HOPPER,
        };
        let forms = Forms::new(&tape, &folding);
        let plans = Plans::new(&forms, folding, sizes);
        assert_eq!(plans.expanded.map(|it| it.square().is_some()), Some(expanded), "{text}");
    }
}

/// Weights that are not of a square are multiplied by many columns as they are written, of float32 and on Hopper, where
/// threads have a form of all components too, and room for what the weights and the columns are made of.
#[test]
fn weights_are_multiplied_as_they_are_written() {
    let aliases = [
        "x = Vi(3)",
        "y = Vj(3)",
        "b = Vj(24)",
        "c = Vj(16)",
        "d = Vj(100)",
        "p = Vi(30)",
        "q = Vj(30)",
        "e = Vi(1)",
    ];
    for (text, taken) in [
        ("Exp(-Sqrt(SqDist(x,y))) * b", true),
        ("Inv(1 + SqDist(x,y)) * d", true),
        ("e * Exp(-Sum(Abs(x - y))) * (b * Sum(b))", true),
        ("Exp(-Sqrt(SqDist(x,y))) * c", false),
        ("Exp(-Sqrt(SqDist(p,q))) * b", false),
        ("Grad(Exp(-Sqrt(SqDist(x,y))) * b, x, b)", false),
        // No slices of threads, and none of what the tiles are made of.
        ("Exp(-Sqrt(SqDist(x,y))) * Extract(d, 0, 80)", false),
        ("Exp(-Sqrt(SqDist(x,y))) * Concat(d, b)", false),
    ] {
        let (tape, folding) = sum_of(text, &aliases);
        let of = |folding: Folding, capability, n| {
            let (multiprocessors, scheme) = (cases::MULTIPROCESSORS, Scheme::Auto);
            let sizes = Sizes { batches: 1, m: n, n, multiprocessors, scheme, capability };
            let forms = Forms::new(&tape, &folding);
            let plans = Plans::new(&forms, folding, sizes);
            plans.expanded.is_some_and(|it| it.square().is_none() && it.plan.right.is_some())
        };
        assert_eq!(of(folding, HOPPER, 20_000), taken, "{text}");
        assert!(!of(folding, HOPPER, 1000), "{text}: few");
        assert!(!of(folding, (8, 0), 20_000), "{text}: Ampere");
        assert!(!of(Folding { compensated: true, ..folding }, HOPPER, 20_000), "{text}: Kahan");
        assert!(!of(Folding { strict: true, ..folding }, HOPPER, 20_000), "{text}: strict");
        let double = Folding { accumulates: DType::Float64, ..folding };
        assert!(!of(double, HOPPER, 20_000), "{text}: double");
    }
}

/// Soft means with many weights, by what they took in one pass and in two.
#[test]
fn second_passes_pay_for_many_weights() {
    let text = "Concat(Exp((x|y) * s), Exp((x|y) * s) * b)";
    for (width, m, n, pays) in
        [(64, 16_131, 1300, true), (64, 4000, 4000, false), (12, 8000, 8000, false)]
    {
        let b = format!("b = Vj({width})");
        let (tape, _) = sum_of(text, &["x = Vi(64)", "y = Vj(64)", "s = Pm(1)", &b]);
        let (multiprocessors, scheme) = (cases::MULTIPROCESSORS, Scheme::Auto);
        let sizes = Sizes { batches: 1, m, n, multiprocessors, scheme, capability: HOPPER };
        assert_eq!(super::pays_twice(&tape, sizes), pays, "{width} weights, {m} x {n}");
    }
}
