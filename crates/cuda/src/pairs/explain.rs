//! How a reduction over pairs would be done, as text for `explain()`.

use std::fmt::Write;

use tilework_backend::{Session, SumScheme};
use tilework_error::Result;
use tilework_tape::Per;

use super::plan::Sizes;
use super::{Job, print};
use crate::device::Cuda;

impl Job<'_> {
    /// The plan of this very call, and the source of its kernels.
    pub(super) fn explain(&self, cuda: &Cuda, session: &Session<'_>) -> Result<String> {
        let norms = self.norms(cuda, session)?;
        let allowed = |limit: f64| norms.is_some_and(|norms| norms.iter().all(|x| *x <= limit));
        let plan = match &self.expanded {
            Some((plan, limit)) if allowed(*limit) => plan,
            _ => &self.direct,
        };
        let (tiling, cut, sections) = (plan.tiling, plan.cut, &plan.sections);
        let Sizes { batches, m, n, multiprocessors, .. } = self.sizes;
        let mut text = String::new();
        let mut line = |name: &str, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<9} {rest}");
        };
        let pairs = format!("{m} x {n} pairs in {batches} batches");
        line("device", format!("{cuda}, {multiprocessors} multiprocessors, {pairs}"));
        let steps =
            [(Per::Once, "once"), (Per::I, "per i"), (Per::J, "per j"), (Per::Pair, "per pair")]
                .map(|(per, name)| format!("{} {name}", sections.steps(per).count()));
        line("steps", steps.join(", "));
        let products = sections.terms.iter().filter(|term| term.factor.is_some()).count();
        let passing = sections.passing.iter().filter(|passing| **passing).count();
        line("fused", format!("{passing} vectors into loops, {products} products into sums"));
        line(
            "tiles",
            format!(
                "{} threads of {} i, {} j in shared memory, {} j at once",
                tiling.threads, tiling.rows, tiling.tile, tiling.group
            ),
        );
        let scheme = match cut.ranges {
            1 => format!("1D: {} blocks, every i sees all j in one go", cut.blocks * batches),
            ranges => format!(
                "2D: {} blocks by {ranges} ranges of {} j, merged in order",
                cut.blocks * batches,
                cut.range
            ),
        };
        line("scheme", scheme);
        let sums = match (plan.folding.compensated, self.request.sums) {
            (true, _) => "compensated",
            (_, SumScheme::Double) => "in float64, in runs of runs of 64",
            _ => "in runs of runs of 64",
        };
        line("sums", sums.to_owned());
        let form = match (&self.expanded, norms) {
            (Some((_, limit)), Some([x, y])) => {
                let form = if allowed(*limit) { "expanded square" } else { "direct" };
                let most = x.max(y);
                format!(
                    "{form}: norms of the exponent up to {most:.3}, limit {limit:.3}, error of the \
                     exponent expanded <= {:.1e}",
                    most / limit * super::square::allowed(plan.folding.computes)
                )
            }
            _ => "direct".to_owned(),
        };
        line("form", form);
        Ok(text + &print::source(plan)?)
    }
}
