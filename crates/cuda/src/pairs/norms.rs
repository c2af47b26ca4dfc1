//! What an expanded square adds to the functions of sections: norms, and what is done with a row's sums at
//! their end. Called by `functions`.

use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::Per;

use super::functions::Printer;
use super::plan::Plan;
use super::right::Difference;

impl Printer<'_, '_> {
    /// What an expanded square adds to the structures: -2c x and c |x|^2 of i, c |y|^2 of j.
    pub(super) fn norm_members(&self, per: Per) -> String {
        let dim = self.sections.square.map(|square| square.dim(self.sections.tape));
        match (dim, per) {
            (Some(dim), Per::I) if !self.sections.by_tiles() => {
                format!("T product[{dim}]; T norm; ")
            }
            (Some(_), Per::I | Per::J) => "T norm; ".to_owned(),
            _ => String::new(),
        }
    }

    /// Fills them, where no tiles are made, which has norms beside it. Only the last rounding of a norm
    /// counts. Numbers of j that differences cannot be made with make a norm that is above
    /// all limits.
    pub(super) fn norms(&self, per: Per, differences: bool) -> String {
        let Some((square, scale)) = (self.sections.square)
            .filter(|_| !self.sections.by_tiles())
            .and_then(|square| Some((square, square.scale?)))
        else {
            return String::new();
        };
        let (own, point) = match per {
            Per::I => ("x", square.x),
            Per::J => ("y", square.y),
            _ => return String::new(),
        };
        let (dim, scale) = (square.dim(self.sections.tape), self.number(scale, "0", per));
        let number = self.value(point, per);
        let norm = format!(
            "    SquaredNorm<T> norm;\n    ALONG(k, {dim}) norm.add({number});\n\
             \x20   {own}.norm = norm.times((f64){scale});\n"
        );
        match per {
            Per::I => {
                format!("{norm}    ALONG(k, {dim}) x.product[k] = -2 * {scale} * {number};\n")
            }
            _ if differences => {
                let beside = self.sections.held_by(per).filter(|slot| *slot != square.y);
                let wild = beside.map(|slot| {
                    let (len, number) = (self.sections.tape.slot(slot).len, self.value(slot, per));
                    format!("    ALONG(k, {len}) y.norm = is_tame({number}) ? y.norm : not_a_number<T>();\n")
                });
                norm + &wild.collect::<String>()
            }
            _ => norm,
        }
    }

    /// What is left to do with a state after all pairs of row i: the part of |x|^2, and differences.
    pub(super) fn complete(&self, plan: &Plan<'_>) -> String {
        let folding = &plan.folding;
        let outside = self.sections.square.is_some_and(|square| square.outside);
        let completed = match (outside, folding.monoid(), folding.computes) {
            (false, ..) => "",
            (_, Monoid::Shifted, _) => "    s.moved = x.norm;\n",
            (_, _, DType::Float32) => "    s.sums.scale(op_exp2_pair_f32(x.norm));\n",
            _ => "    s.sums.scale(op_exp2_pair_f64(x.norm));\n",
        };
        let differences =
            plan.difference.map_or(String::new(), |Difference { from, len, points }| {
                let load = self.load(points[0], Per::I);
                format!(
                    "    A q = s.sums.total(DIM);\n    ALONG(k, {len}) s.sums.become({from} + k, \
                 fma((A){load}, q, -s.sums.total({from} + k)));\n"
                )
            });
        format!(
            "FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], i64 i, const OfI& x, State& s) \
             {{\n{completed}{differences}}}\n"
        )
    }
}
