//! How a reduction over pairs would be done, as text for `explain()`.

use std::fmt::Write;

use tilework_backend::SumScheme;
use tilework_tape::Per;

use super::Job;
use super::lanes::Summed;
use super::plan::How;
use super::products::Number;
use crate::pool;

impl<T: Number + Summed<A>, A: Number> Job<'_, T, A> {
    /// The plan of this very call.
    pub(super) fn explain(&self) -> String {
        let (plan, request) = (&self.plan, self.request);
        let mut text = String::new();
        let mut line = |name: &str, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<9} {rest}");
        };
        let pairs = format!("{} x {} pairs in {} batches", self.m, request.n, self.batches);
        line("cpu", format!("{pairs}, {}, {} threads", self.isa.name(), pool::threads()));
        let steps = |per: Per| plan.steps(per).count();
        line(
            "steps",
            format!(
                "{} once, {} per i, {} per j, {} per pair",
                steps(Per::Once),
                steps(Per::I),
                steps(Per::J),
                steps(Per::Pair)
            ),
        );
        let distances = plan.how.iter().filter(|how| matches!(how, How::Distance(..))).count();
        let fused = plan.terms.iter().filter(|term| term.factor.is_some()).count();
        line(
            "fused",
            format!("{distances} squared distances, {fused} products with the sum they go into"),
        );
        let mut tiles =
            format!("{} i by blocks of {} j, {} j at once", plan.lanes, plan.block, plan.rows);
        if plan.spread > 1 {
            tiles += &format!(", {} of them side by side for every i", plan.spread);
        }
        line("tiles", tiles);
        let scheme = match self.ranges {
            1 => "1D: every i sees all j in one go".to_owned(),
            ranges => {
                let (_, first) = self.ranges(0, 0);
                format!("2D: {ranges} ranges of {} j or a block more, merged in order", first.len())
            }
        };
        line("scheme", scheme);
        let sums = match (self.folding.kahan, request.sums) {
            (true, _) => "compensated",
            (_, SumScheme::Double) => "in float64, in blocks and pairs",
            _ => "in blocks and pairs",
        };
        if request.fold.row().monoid.adds() {
            line("sums", sums.to_owned());
        }
        let form = match &self.search {
            Ok(search) if search.is_direct() => "filtered by the direct form",
            Ok(_) => "filtered by the expanded square, checked by the direct form",
            Err(why) => why.as_ref().unwrap_or(&self.operands.form),
        };
        line("form", form.to_owned());
        if let Some(columns) = self.columns() {
            let from = if columns.packed { ", packed by blocks of j" } else { "" };
            let text = format!("sums of {} components of j by matrix products{from}", columns.len);
            line("columns", text);
        }
        match &self.code {
            Ok(code) => line("loop", format!("assembled: {}", code.describe())),
            Err(why) => line("loop", format!("interpreted: {why}")),
        }
        text
    }
}
