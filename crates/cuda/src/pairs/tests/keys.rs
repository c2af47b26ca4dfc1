//! What the text of a kernel depends on is in its key, without which one formula would run another's kernel: plans of golden
//! cases, and of formulas that differ in one thing or another.

use std::collections::HashMap;

use tilework_backend::Scheme;
use tilework_formula::parse::formula;
use tilework_formula::{Axis, Purpose, Reduction, lower_for};
use tilework_ops::DType;

use super::super::plan::{Plan, Sizes};
use super::super::print::{self, Unit};
use super::super::{Forms, Plans, key};
use super::{F32, HOPPER, cases, each_plans, plain};

/// Texts by key, and how many were seen.
#[derive(Default)]
struct Seen {
    texts: HashMap<Vec<u8>, String>,
    all: usize,
}

impl Seen {
    fn see(&mut self, plans: &Plans<'_>, what: &str) {
        let expanded = plans.expanded.iter().map(|expanded| &expanded.plan);
        let all = [&plans.direct].into_iter().chain(&plans.others).chain(expanded);
        let units = all.flat_map(|plan| Unit::of(plan).map(move |unit| (plan, unit)));
        units.for_each(|(plan, unit)| self.see_one(plan, unit, what));
    }

    fn see_one(&mut self, plan: &Plan<'_>, unit: Unit, what: &str) {
        let text = print::source(plan, unit).expect(what);
        self.all += 1;
        let first = self.texts.entry(key::of(plan, unit)).or_insert_with(|| text.clone());
        let other = first.lines().zip(text.lines()).find(|(first, line)| first != line);
        assert!(*first == text, "{unit:?} of {what} has the key of another text: {other:?}");
    }
}

#[test]
fn golden_kernels_of_one_key_have_one_text() {
    for capability in [(8, 0), HOPPER] {
        let mut seen = Seen::default();
        each_plans(capability, |name, _, plans| seen.see(&plans, name));
        assert!(seen.all > seen.texts.len(), "no key was seen twice");
    }
}

#[test]
fn kernels_of_one_key_have_one_text() {
    let mut seen = Seen::default();
    for (text, dim, width) in formulas() {
        let aliases =
            [format!("x = Vi({dim})"), format!("y = Vj({dim})"), format!("b = Vj({width})")];
        let aliases = [&aliases[0][..], &aliases[1], &aliases[2], "s = Pm(1)"];
        let parsed = formula(text, &aliases).expect(text);
        let reductions =
            [("Sum", None), ("LogSumExp", None), ("ArgKMin", Some(3)), ("KMin", Some(20))];
        // Results of many components by one reduction.
        let several = if parsed.dim() > 1 { 1 } else { reductions.len() };
        for (name, k) in &reductions[..several] {
            let reduction = Reduction::new(name, &parsed, Axis::J, *k, None).expect(text);
            for (dtype, strict) in [(F32, false), (F32, true), (DType::Float64, false)] {
                let purpose = Purpose { dtype, cheap: !strict };
                let tape = lower_for(&reduction.outputs(), purpose).expect(text).tape;
                let folding = plain(&reduction, dtype, strict);
                let forms = Forms::new(&tape, &folding);
                for n in [10, 3000, 100_000] {
                    let sizes = Sizes {
                        batches: 1,
                        m: n,
                        n,
                        multiprocessors: cases::MULTIPROCESSORS,
                        scheme: Scheme::Auto,
                        capability: HOPPER,
                    };
                    let what = format!("{name} of {text}, {dim}, {width}, {n}, {dtype}, {strict}");
                    seen.see(&Plans::new(&forms, folding, sizes), &what);
                }
            }
        }
    }
    assert!(seen.all > seen.texts.len() + 100, "few keys were seen twice");
}

/// Formulas, with the lengths of points and of weights.
fn formulas() -> impl Iterator<Item = (&'static str, usize, usize)> {
    let numbers =
        ["-SqDist(x,y)", "-SqDist(x,y) * s", "(x|y) * s", "Sqrt(SqDist(x,y))", "Sum(Abs(x - y))"];
    let sums = ["Exp(-SqDist(x,y)) * b", "Exp((x|y) * s) * b", "Grad(Exp(-SqDist(x,y)) * b, x, b)"];
    let numbers = numbers.into_iter().flat_map(|text| [3, 16, 65].map(|dim| (text, dim, 1)));
    let sums = sums.into_iter().flat_map(|text| {
        let of_dims = [3, 64].map(|dim| [1, 16, 65].map(|width| (text, dim, width)));
        of_dims.into_iter().flatten().filter(|&(text, _, width)| {
            // Of one number only, since a gradient has as many incoming ones.
            width == 1 || !text.starts_with("Grad")
        })
    });
    numbers.chain(sums)
}
