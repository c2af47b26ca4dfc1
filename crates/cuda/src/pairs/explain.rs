//! How a reduction over pairs would be done, as text for `explain()`.

use std::collections::HashSet;
use std::fmt::{Display, Write};

use tilework_backend::{Session, SumScheme, square};
use tilework_error::Result;
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id};
use tilework_tape::{Action, Per, Tape};

use super::cut::Cut;
use super::folding::Folding;
use super::panels::MOST_RANGES;
use super::plan::{Plan, Sizes};
use super::slices::{Of, Slices};
use super::wide::{self, Wide};
use super::{Expanded, Job, key, print};
use crate::device::Cuda;

/// The relative error of a product of heads and tails: what tails lose of a weight (three of its last places) and of a
/// right-hand side (one), and the product of tails, which is left out.
const TF32_PRODUCT: f64 = (4.0 + 4.0) / (1u32 << 23) as f64;

/// Lines of text, each a name and what is said of it.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, what: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name:<9} {what}");
    }
}

impl Job<'_> {
    /// The plan of this very call, and the source of its kernels: those of the form that norms allow, and those of the
    /// other one, which is launched behind it for what the first refuses.
    pub(super) fn explain(&self, cuda: &Cuda, session: &Session<'_>) -> Result<String> {
        let norms = self.norms(cuda, session)?;
        let allowed =
            |limit: f64| norms.is_some_and(|(norms, _)| norms.iter().all(|x| *x <= limit));
        let chosen = self.expanded.as_ref().filter(|expanded| allowed(expanded.limit));
        let plan = chosen.map_or(&self.direct, |expanded| &expanded.plan);
        let mut lines = Lines::default();
        let Sizes { batches, m, n, multiprocessors, .. } = self.sizes;
        let pairs = format!("{m} x {n} pairs in {batches} batches");
        lines.add("device", format!("{cuda}, {multiprocessors} multiprocessors, {pairs}"));
        if let Some(slices) = plan.slices {
            lines.add("slices", of_slices(slices));
        }
        if chosen.is_none() && !self.others.is_empty() {
            lines.add("parts", format!("{}, the first as follows", 1 + self.others.len()));
        }
        of_sections(plan, &mut lines);
        match plan.tiling.wide.zip(chosen) {
            Some((wide, expanded)) => self.of_tiles(wide, expanded, &mut lines),
            None => self.of_threads(plan, &mut lines),
        }
        if let Some(sums) = self.sums(plan) {
            lines.add("sums", sums);
        }
        lines.add("form", self.form(norms, chosen));
        let mut text = lines.0;
        let written: Vec<&Plan<'_>> = self.as_written().collect();
        let expanded: Vec<&Plan<'_>> = self.expanded.iter().map(|it| &it.plan).collect();
        let forms = if chosen.is_some() { [expanded, written] } else { [written, expanded] };
        let mut seen = HashSet::new();
        for (plans, form) in forms.into_iter().zip(["", " of the other form"]) {
            let units =
                plans.into_iter().flat_map(|plan| self.units(plan).map(move |it| (plan, it)));
            let units: Vec<_> =
                units.filter(|(plan, it)| seen.insert(key::of(plan, *it))).collect();
            text += &print::sources(units, form)?;
        }
        Ok(text)
    }

    /// Tiles and scheme of a plan on tensor cores.
    fn of_tiles(&self, wide: Wide, expanded: &Expanded<'_>, lines: &mut Lines) {
        let (tiling, parts) = (expanded.plan.tiling, self.parts(expanded));
        let (groups, stages) = (wide.groups, wide.stages);
        let blocks = format!("{groups} groups of 64 i by {} j on tensor cores", tiling.tile);
        lines.add("tiles", format!("{blocks}, in {stages} stages"));
        let rows = self.sizes.m.min(parts.rows);
        let ranges = parts.cut(&tiling, rows, expanded.is_filter(), &self.sizes).ranges;
        let together = match parts.batches {
            1 => String::new(),
            batches => format!(" of {batches} batches at once"),
        };
        let scheme = if ranges > 1 { "2D" } else { "1D" };
        let (rows, columns) = (parts.rows, parts.columns);
        let panels = format!("pieces of {rows} i by panels of {columns} j{together}");
        lines.add("scheme", format!("{scheme}: {panels}, {ranges} ranges each"));
    }

    /// Tiles and scheme of a plan whose pairs threads compute.
    fn of_threads(&self, plan: &Plan<'_>, lines: &mut Lines) {
        let (tiling, cut) = (plan.tiling, plan.cut);
        let who = if tiling.team > 1 { "warps" } else { "threads" };
        let owners = format!("{} {who} of {} i", tiling.threads / tiling.team, tiling.rows);
        let ranges = match tiling.ranges_per_block {
            1 => String::new(),
            several => format!("{several} ranges of "),
        };
        let long = match &plan.sections.long {
            Some(long) => {
                let depths: Vec<String> = long.depths.iter().map(u32::to_string).collect();
                format!(", vectors of {} in chunks", depths.join(" and "))
            }
            None => String::new(),
        };
        let few = match tiling.few_pairs {
            true => ", so few pairs that the kernel is to be compiled soon",
            false => "",
        };
        let tile =
            format!("{ranges}{} j in shared memory, {} j at once", tiling.tile, tiling.group);
        lines.add("tiles", format!("{owners}, {tile}{long}{few}"));
        let blocks = cut.blocks * self.sizes.batches;
        let scheme = match cut.ranges {
            1 => format!("1D: {blocks} blocks, every i sees all j in one go"),
            ranges => {
                format!(
                    "2D: {blocks} blocks by {ranges} ranges of {} j, merged in order",
                    cut.range
                )
            }
        };
        lines.add("scheme", scheme);
    }

    /// How terms are summed, and what that may cost; none where nothing is summed.
    fn sums(&self, plan: &Plan<'_>) -> Option<String> {
        let folding = &plan.folding;
        if !folding.monoid().adds() {
            return None;
        }
        let how = match (folding.compensated, self.request.sums) {
            (true, _) => "compensated",
            (_, SumScheme::Double) => "in float64, in runs of runs of 64",
            _ => "in runs of runs of 64",
        };
        let roundoff = match folding.accumulates {
            DType::Float64 => f64::EPSILON / 2.0,
            _ => f64::from(f32::EPSILON) / 2.0,
        };
        let Cut { range, ranges, lanes, .. } = plan.cut;
        let additions = match (folding.compensated, plan.tiling.wide) {
            // To the first order: each stage rounds its result, and so does each panel, whose state goes on to the next.
            (true, None) => 2 * (1 + usize::from(ranges > 1) + usize::from(lanes > 1)),
            (true, Some(_)) => 2 * (3 + self.panels().1),
            (false, None) => additions(range.min(self.sizes.n)) + additions(ranges) + lanes,
            // Additions within a panel; its ranges, and all panels, are joined at the end.
            (false, Some(wide)) => {
                let (terms, panels) = self.panels();
                let own = match wide.right {
                    0 => additions(terms) + 4,
                    _ => additions_of_right(terms),
                };
                own + MOST_RANGES + panels
            }
        };
        Some(match folding.monoid() {
            Monoid::Add => {
                format!(
                    "{how}, error <= {:.1e} of the sum of magnitudes",
                    additions as f64 * roundoff
                )
            }
            _ => how.to_owned(),
        })
    }

    /// j of a panel, and how many panels sums on tensor cores go on through.
    fn panels(&self) -> (usize, usize) {
        let n = self.sizes.n;
        let wide = self.expanded.as_ref().filter(|it| it.plan.tiling.wide.is_some());
        let columns = wide.map_or(n, |expanded| self.parts(expanded).columns.clamp(1, n.max(1)));
        (columns, n.div_ceil(columns.max(1)))
    }

    /// The form that the data allow, and what it may cost.
    fn form(&self, norms: Option<([f64; 2], bool)>, chosen: Option<&Expanded<'_>>) -> String {
        let (Some(expanded), Some(([x, y], moved))) = (&self.expanded, norms) else {
            let why = match &self.direct {
                plan if plan.folding.strict => "accuracy is strict",
                plan if plan.tiling.few_pairs => "so few pairs ask for no choice",
                plan if plan.folding.computes != plan.folding.accumulates => {
                    "sums are of another type than what is summed"
                }
                plan => wide::why_not(plan.sections.tape, &plan.folding, &self.sizes),
            };
            return format!("direct: {why}");
        };
        let unless = match expanded.plan.may_give_up() {
            true => ", but what overflows on its way",
            false => "",
        };
        let Some(square) = expanded.square() else {
            return format!("weights as they are written{unless}");
        };
        let tape = expanded.plan.sections.tape;
        let about = if moved { " about a centre" } else { "" };
        let form = match (chosen, square.leave()) {
            _ if square.is_direct() => {
                let limit = expanded.limit;
                return format!(
                    "direct: accuracy is strict; every operation is as it is written, but for exponents in blocks whose \
                     norms of these are at most {limit:.3} (here up to {:.3}), where exp(a) is a normal number and errs by at most \
                     |a| 2^-23 + 2^-22, a being the product with the rounded distance",
                    x.max(y)
                );
            }
            (None, _) if self.by_block => {
                "direct, in blocks whose points are beyond the limit, else expanded".to_owned()
            }
            (None, _) => "direct".to_owned(),
            (_, None) => format!("expanded square{about}"),
            (_, Some(leave)) => format!(
                "{}{about}, float16 heads and tails on tensor cores, left every {leave} of {}",
                if square.is_product() { "inner product" } else { "expanded square" },
                square.dim(tape)
            ),
        };
        let (most, limit) = (x.max(y), expanded.limit);
        if square.is_as_good(tape) {
            if chosen.is_none() {
                return format!("{form}: norms of the exponent up to {most:.3}, limit {limit:.3}");
            }
            let error = square.error(tape) / 2.0 * f64::from(f32::EPSILON) / 2.0;
            return format!("{form}: error of the product <= {error:.1e} of the norms' product");
        }
        if square.is_filter() && chosen.is_none() {
            return format!("{form}: norms up to {most:.3} leave the range of a filter");
        }
        if square.is_filter() {
            let doubt = (x + y) * square.doubt(tape);
            return format!(
                "{form}: a filter within {doubt:.1e}, what passes is computed directly"
            );
        }
        // Norms about a centre count for more, and are shown as they are.
        let dim = square.dim(tape);
        let counted = match moved && square.leave().is_none() {
            true => square::fused(dim) / square::fused_about(dim),
            false => 1.0,
        };
        format!(
            "{form}{unless}: norms of the exponent up to {:.3}, limit {:.3}, error of the exponent \
             expanded <= {:.1e}",
            most * counted,
            limit * counted,
            most / limit * square::promised(expanded.plan.folding.computes)
        )
    }
}

/// What a plan's formula is made of.
fn of_sections(plan: &Plan<'_>, lines: &mut Lines) {
    let sections = &plan.sections;
    let steps =
        [(Per::Once, "once"), (Per::I, "per i"), (Per::J, "per j"), (Per::Pair, "per pair")]
            .map(|(per, name)| format!("{} {name}", sections.steps(per).count()));
    lines.add("steps", steps.join(", "));
    let products = sections.terms.iter().filter(|term| term.factor.is_some()).count();
    let passing = sections.passing.iter().filter(|passing| **passing).count();
    lines.add("fused", format!("{passing} vectors into loops, {products} products into sums"));
    if let Some(errors) = of_own_instructions(plan) {
        lines.add("own", format!("the card's own {errors}"));
    }
    if let Some(right) = &plan.right {
        let (dim, columns) = (plan.folding.shape.dim, right.of.columns());
        let how = "TF32 heads and tails on tensor cores, left every 32 of j";
        let what = format!("weights times {columns} columns for {dim} components, {how}");
        // Exponents whose norms are small leave no others.
        let of = if plan.sections.square.is_none() { " of weights from 2^-115 on" } else { "" };
        lines.add("right", format!("{what}, error of a product{of} <= {TF32_PRODUCT:.1e}"));
    }
}

/// What is computed by `kernels/pair_math.cu`, and its relative errors; none where nothing is.
fn of_own_instructions(plan: &Plan<'_>) -> Option<String> {
    let Folding { computes, accumulates, strict, .. } = plan.folding;
    let any = |ids: &[Id]| {
        let is = |action: &Action| matches!(action, Action::Apply(id) if ids.contains(id));
        let sides = plan.right.iter().map(|right| &right.sections);
        let tapes = [&plan.sections].into_iter().chain(sides).map(|sections| sections.tape);
        tapes.flat_map(Tape::steps).any(|step| is(&step.action))
    };
    let shifted = plan.folding.monoid() == Monoid::Shifted && !strict;
    let exponentials = any(&[Id::Exp2Pair]) || (shifted && accumulates == DType::Float32);
    let others = any(&[Id::RcpPair, Id::RsqrtPair, Id::SqrtPair]) && computes == DType::Float32;
    let of_exponentials = match computes {
        DType::Float32 => "exponentials within 2^-22 of those of their rounded arguments",
        _ => "exponentials within 1.1 units in the last place of those of their rounded arguments",
    };
    let said = [
        exponentials.then(|| format!("{of_exponentials}, 0 below the normal numbers")),
        others.then(|| "roots and reciprocals within 2^-22.9".to_owned()),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// How many slices there are, and of what.
fn of_slices(slices: &Slices) -> String {
    let what = match slices.of {
        Of::Components | Of::Columns => "components",
        Of::Each => "component with all its ranks",
        Of::Weights => "weights",
        Of::Ranks => "ranks",
    };
    format!("{} of {} {what}, one after another", slices.firsts().count(), slices.len)
}

/// Additions that a term goes through, at most, of so many that are summed as `Cascade` of the kernels does.
fn additions(terms: usize) -> usize {
    let [runs, many, most] = [64, 64 * 64, 64 * 64 * 64].map(|run| terms.div_ceil(run));
    // The levels are added up at the end.
    if terms <= 1 { 0 } else { terms.min(64) + runs.min(64) + many.min(64) + most + 3 }
}

/// Additions that a weight times a right-hand side goes through, at most, of so many: twelve in the tensor core, which
/// rounds twice as much; 64 in a run of what leaves it; and those of all runs.
fn additions_of_right(terms: usize) -> usize {
    2 * 12 + 64 + terms.div_ceil(64 * 32)
}
