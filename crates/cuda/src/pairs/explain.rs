//! How a reduction over pairs would be done, as text for `explain()`.

use std::collections::HashSet;
use std::fmt::Write;

use tilework_backend::{Session, SumScheme, square};
use tilework_error::Result;
use tilework_tape::Per;

use super::plan::{Plan, Sizes};
use super::slices::Of;
use super::{Expanded, Job, key, print};
use crate::device::Cuda;

impl Job<'_> {
    /// The plan of this very call, and the source of its kernels: those of the form that the data allow, and those of the
    /// other one, which is launched behind it for what the first refuses.
    pub(super) fn explain(&self, cuda: &Cuda, session: &Session<'_>) -> Result<String> {
        let norms = self.norms(cuda, session)?;
        let allowed =
            |limit: f64| norms.is_some_and(|(norms, _)| norms.iter().all(|x| *x <= limit));
        let chosen = self.expanded.as_ref().filter(|expanded| allowed(expanded.limit));
        let plan = chosen.map_or(&self.direct, |expanded| &expanded.plan);
        let (tiling, cut, sections) = (plan.tiling, plan.cut, &plan.sections);
        let Sizes { batches, m, n, multiprocessors, .. } = self.sizes;
        let mut text = String::new();
        let mut line = |name: &str, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<9} {rest}");
        };
        let pairs = format!("{m} x {n} pairs in {batches} batches");
        line("device", format!("{cuda}, {multiprocessors} multiprocessors, {pairs}"));
        if let Some(slices) = plan.slices {
            let count = slices.firsts().count();
            let what = match slices.of {
                Of::Components | Of::Columns => "components",
                Of::Each => "component with all its ranks",
                Of::Weights => "weights",
                Of::Ranks => "ranks",
            };
            line("slices", format!("{count} of {} {what}, one after another", slices.len));
        }
        if chosen.is_none() && !self.others.is_empty() {
            line("parts", format!("{}, the first as follows", 1 + self.others.len()));
        }
        let steps =
            [(Per::Once, "once"), (Per::I, "per i"), (Per::J, "per j"), (Per::Pair, "per pair")]
                .map(|(per, name)| format!("{} {name}", sections.steps(per).count()));
        line("steps", steps.join(", "));
        let products = sections.terms.iter().filter(|term| term.factor.is_some()).count();
        let passing = sections.passing.iter().filter(|passing| **passing).count();
        line("fused", format!("{passing} vectors into loops, {products} products into sums"));
        if let Some(right) = &plan.right {
            let (dim, columns) = (plan.folding.shape.dim, right.of.columns());
            let how = "TF32 heads and tails on tensor cores, left every 32 of j";
            line("right", format!("weights times {columns} columns for {dim} components, {how}"));
        }
        let (tiles, scheme) = match (tiling.wide, chosen) {
            (Some(wide), Some(expanded)) => {
                let parts = self.parts(expanded);
                let ordered = expanded.square.is_filter();
                let rows = m.min(parts.rows);
                let ranges = parts.cut(&tiling, rows, ordered, &self.sizes).ranges;
                (
                    format!(
                        "{} groups of 64 i by {} j on tensor cores, in {} stages",
                        wide.groups, tiling.tile, wide.stages
                    ),
                    format!(
                        "{}D: pieces of {} i by panels of {} j{}, {ranges} ranges each",
                        if ranges > 1 { 2 } else { 1 },
                        parts.rows,
                        parts.columns,
                        match parts.batches {
                            1 => String::new(),
                            batches => format!(" of {batches} batches at once"),
                        }
                    ),
                )
            }
            _ => (
                format!(
                    "{} {} of {} i, {}{} j in shared memory, {} j at once{}{}",
                    tiling.threads / tiling.team,
                    if tiling.team > 1 { "warps" } else { "threads" },
                    tiling.rows,
                    match tiling.slices {
                        1 => String::new(),
                        slices => format!("{slices} ranges of "),
                    },
                    tiling.tile,
                    tiling.group,
                    match &sections.long {
                        Some(long) => format!(", vectors of {} in chunks", long.depth),
                        None => String::new(),
                    },
                    if tiling.few {
                        ", so few pairs that the kernel is to be compiled soon"
                    } else {
                        ""
                    }
                ),
                match cut.ranges {
                    1 => {
                        format!("1D: {} blocks, every i sees all j in one go", cut.blocks * batches)
                    }
                    ranges => format!(
                        "2D: {} blocks by {ranges} ranges of {} j, merged in order",
                        cut.blocks * batches,
                        cut.range
                    ),
                },
            ),
        };
        line("tiles", tiles);
        line("scheme", scheme);
        let sums = match (plan.folding.compensated, self.request.sums) {
            (true, _) => "compensated",
            (_, SumScheme::Double) => "in float64, in runs of runs of 64",
            _ => "in runs of runs of 64",
        };
        line("sums", sums.to_owned());
        line("form", self.form(norms, chosen));
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

    /// The form that the data allow, and what it may cost.
    fn form(&self, norms: Option<([f64; 2], bool)>, chosen: Option<&Expanded<'_>>) -> String {
        let (Some(expanded), Some(([x, y], moved))) = (&self.expanded, norms) else {
            let why = match &self.direct {
                plan if plan.folding.strict => "accuracy is strict",
                plan if plan.tiling.few => "so few pairs ask for no choice",
                plan if plan.folding.computes != plan.folding.accumulates => {
                    "sums are of another type than what is summed"
                }
                _ => "no square that may be expanded, or none that pays",
            };
            return format!("direct: {why}");
        };
        let tape = expanded.plan.sections.tape;
        let about = if moved { " about a centre" } else { "" };
        let form = match (chosen, expanded.square.leave()) {
            (None, _) if self.by_block => {
                "direct, in blocks whose points are beyond the limit, else expanded".to_owned()
            }
            (None, _) => "direct".to_owned(),
            (_, None) => format!("expanded square{about}"),
            (_, Some(leave)) => format!(
                "{}{about}, float16 heads and tails on tensor cores, left every {leave} of {}",
                if expanded.square.is_product() { "inner product" } else { "expanded square" },
                expanded.square.dim(tape)
            ),
        };
        let (most, limit) = (x.max(y), expanded.limit);
        if expanded.square.is_as_good(tape) {
            if chosen.is_none() {
                return format!("{form}: norms of the exponent up to {most:.3}, limit {limit:.3}");
            }
            let error = expanded.square.error(tape) / 2.0 * f64::from(f32::EPSILON) / 2.0;
            return format!("{form}: error of the product <= {error:.1e} of the norms' product");
        }
        if expanded.square.is_filter() {
            let doubt = (x + y) * expanded.square.doubt(tape);
            return format!(
                "{form}: a filter within {doubt:.1e}, what passes is computed directly"
            );
        }
        // Norms that count for more are shown as they are.
        let dim = expanded.square.dim(tape);
        let counted = match moved && expanded.square.leave().is_none() {
            true => square::fused(dim) / square::fused_about(dim),
            false => 1.0,
        };
        let unless = match expanded.plan.may_give_up() {
            true => ", but what overflows on its way",
            false => "",
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
