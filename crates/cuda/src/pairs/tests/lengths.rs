//! Few texts serve vectors of all lengths beyond [`LONG`]: those of points, of right-hand sides and of results.

use std::collections::{BTreeMap, HashSet};

use tilework_backend::Scheme;
use tilework_formula::parse::formula;
use tilework_formula::{Axis, Purpose, Reduction, lower_for};
use tilework_ops::DType;

use super::super::plan::Sizes;
use super::super::print::{self, Unit};
use super::super::sections::LONG;
use super::super::{Forms, Plans};
use super::{HOPPER, plain};

/// The most texts of a unit: as many as there are widths of a product with right-hand sides.
const TEXTS: usize = 8;

/// What has the length that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    Points,
    Columns,
    Both,
}

#[test]
fn no_length_beyond_a_few_is_compiled_anew() {
    use Long::{Both, Columns, Points};
    const GAUSS: &str = "Exp(-SqDist(x,y)) * b";
    const GRADIENT: &str = "Grad(Exp(-SqDist(x,y)) * c, x, c)";
    const TOGETHER: &str = "Concat(Exp(-SqDist(x,y)) * c, Grad(Exp(-SqDist(x,y)) * c, x, c))";
    for (name, text, long) in [
        ("Sum", GAUSS, Points),
        ("Sum", GAUSS, Columns),
        ("Sum", GAUSS, Both),
        ("Sum", "Exp(-SqDist(x,y)) * b * c", Columns),
        ("Sum", "Exp(-SqDist(x,y)) * Exp(b) * d", Columns),
        ("Sum", "Exp(-Sum(Abs(x - y))) * b", Columns),
        ("Sum", GRADIENT, Points),
        ("Sum", TOGETHER, Points),
        ("Sum", "Grad(Exp(-SqDist(x,y)) * b, x, e)", Columns),
        ("Sum", "Grad(Exp(-SqDist(x,y)) * b, x, e)", Both),
        ("Sum", "Exp(-SqDist(x,y)) * (e|b)", Columns),
        ("Sum", "Exp(-SqDist(x,y)) * (e|b)", Both),
        ("Sum", "(x - y) * c", Points),
        ("Sum", "(x|y) * c / (Norm2(x) * Norm2(y))", Points),
        ("LogSumExp", "-SqDist(x,y)", Points),
        ("ArgKMin", "SqDist(x,y)", Points),
        ("Max", "x - y", Points),
        ("SumSoftMaxWeight", "-SqDist(x,y)", Columns),
        ("SumSoftMaxWeight", "-SqDist(x,y)", Both),
    ] {
        for (strict, count) in [(false, 20_000), (false, 2000), (false, 10), (true, 20_000)] {
            let mut texts = BTreeMap::<(usize, u8), HashSet<String>>::new();
            for len in (LONG as usize + 1..400).step_by(13) {
                let dim = if long == Columns { 3 } else { len };
                let width = if long == Points { 1 } else { len };
                let aliases = [("x = Vi", dim), ("y = Vj", dim), ("b = Vj", width)];
                let more = [("c = Vj", 1), ("d = Vj", width), ("e = Vi", width)];
                let aliases =
                    aliases.iter().chain(&more).map(|(name, dim)| format!("{name}({dim})"));
                let aliases: Vec<String> = aliases.collect();
                let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
                let parsed = formula(text, &aliases).expect(text);
                let weight = name.ends_with("Weight").then(|| formula("b", &aliases).expect(text));
                let k = (name == "ArgKMin").then_some(10);
                let reduction =
                    Reduction::new(name, &parsed, Axis::J, k, weight.as_ref()).expect(text);
                let purpose = Purpose { dtype: DType::Float32, cheap: !strict };
                let tape = lower_for(&reduction.outputs(), purpose).expect(text).tape;
                let folding = plain(&reduction, DType::Float32, strict);
                let forms = Forms::new(&tape, &folding);
                let sizes = Sizes {
                    batches: 1,
                    m: count,
                    n: count,
                    multiprocessors: 132,
                    scheme: Scheme::Auto,
                    capability: HOPPER,
                };
                let Plans { direct, others, expanded, .. } = Plans::new(&forms, folding, sizes);
                let expanded = expanded.map(|expanded| expanded.plan);
                let plans = [(0, &direct)].into_iter();
                let plans = plans.chain(others.iter().map(|plan| (1, plan)));
                for (form, plan) in plans.chain(expanded.iter().map(|plan| (2, plan))) {
                    for unit in Unit::of(plan) {
                        let text = print::source(plan, unit).unwrap();
                        texts.entry((form, unit as u8)).or_default().insert(text);
                    }
                }
            }
            for ((form, unit), texts) in texts {
                let count = texts.len();
                assert!(
                    count <= TEXTS,
                    "{name} of {text}, {long:?}: {count} texts of form {form}, unit {unit}"
                );
            }
        }
    }
}
