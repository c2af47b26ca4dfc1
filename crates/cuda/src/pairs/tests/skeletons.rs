//! Every kernel that takes pairs goes over j in a way that knows of its teams, over reductions, ranks, lengths and sizes.

use tilework_backend::Scheme;
use tilework_formula::parse::formula;
use tilework_formula::{Axis, Purpose, Reduction, lower_for};
use tilework_ops::DType;

use super::super::plan::Sizes;
use super::super::print::{self, Unit};
use super::super::{Forms, Plans};
use super::{HOPPER, plain};

/// The number that a name stands for in a text.
fn size(text: &str, name: &str) -> usize {
    let name = format!(" {name} = ");
    let from = text.find(&name).expect(&name) + name.len();
    let end = text[from..].find(|c: char| !c.is_ascii_digit()).expect(&name);
    text[from..from + end].parse().expect(&name)
}

#[test]
fn every_skeleton_knows_its_team() {
    let mut seen = [0; 5];
    for (name, text) in [
        ("ArgKMin", "SqDist(x,y)"),
        ("KMax", "(x|y) * 2"),
        ("ArgKMin", "Sqrt(SqDist(x,y)) * s"),
        ("KMin", "SqNorm2(x) * (x|y)"),
        ("ArgMin", "SqDist(x,y)"),
        ("Sum", "Exp(-SqDist(x,y))"),
        ("LogSumExp", "-SqDist(x,y)"),
        ("Max", "x - y"),
    ] {
        for k in [2, 16, 17, 20, 100, 1024, 1500] {
            let k = name.contains('K').then_some(k);
            for dim in [1, 3, 64, 65, 100, 784] {
                let aliases = [format!("x = Vi({dim})"), format!("y = Vj({dim})")];
                let aliases = [&aliases[0][..], &aliases[1], "s = Pm(1)"];
                let parsed = formula(text, &aliases).expect(text);
                let reduction = Reduction::new(name, &parsed, Axis::J, k, None).expect(text);
                for dtype in [DType::Float32, DType::Float64] {
                    let purpose = Purpose { dtype, cheap: true };
                    let tape = lower_for(&reduction.outputs(), purpose).expect(text).tape;
                    let folding = plain(&reduction, dtype, false);
                    let forms = Forms::new(&tape, &folding);
                    for (m, n) in [
                        (1, 1),
                        (50, 30),
                        (50, 200),
                        (1000, 1000),
                        (100, 200_000),
                        (50_000, 50_000),
                    ] {
                        let sizes = Sizes {
                            batches: 1,
                            m,
                            n,
                            multiprocessors: 132,
                            scheme: Scheme::Auto,
                            capability: HOPPER,
                        };
                        let plans = Plans::new(&forms, folding, sizes);
                        let expanded = plans.expanded.iter().map(|expanded| &expanded.plan);
                        for plan in [&plans.direct].into_iter().chain(&plans.others).chain(expanded)
                        {
                            let what = format!("{name} of {text}, {k:?}, {dim}, {m} x {n}");
                            let text = print::source(plan, Unit::Pairs).expect(&what);
                            let has = |file: &str| text.contains(&format!("// [{file}\n"));
                            let skeletons = [
                                ("pairs_short.cu", true),
                                ("pairs_few.cu", true),
                                ("pairs_long.cu", false),
                                ("pairs_long_teams.cu", true),
                                ("pairs_wide.cu", false),
                            ]
                            .map(|(file, teams)| has(file).then_some(teams));
                            let knows: Vec<bool> = skeletons.iter().flatten().copied().collect();
                            let team = size(&text, "LANES");
                            assert_eq!(knows.len(), 1, "{what} has several skeletons");
                            assert!(team == 1 || knows[0], "{what}: a team of {team}");
                            assert_eq!(team > 1, text.contains("typedef Team<"), "{what}");
                            assert_eq!(team, plan.tiling.team, "{what}");
                            let whole =
                                size(&text, "TILE").is_multiple_of(size(&text, "GROUP") * team);
                            assert!(team == 1 || whole, "{what}: tiles of no whole groups");
                            for (seen, there) in seen.iter_mut().zip(skeletons) {
                                *seen += usize::from(there.is_some());
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
