//! What an expanded square adds to the functions of sections: points about a centre, norms, and what is done with a
//! row's sums at their end. Called by `functions`.

use std::f64::consts::LOG2_E;

use tilework_error::Result;
use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Per, SlotId};

use super::functions::Printer;
use super::plan::Plan;
use super::right::{Difference, FEW_POINTS};
use super::square::{Scale, Sign, Square};

impl Printer<'_, '_> {
    /// What an expanded square adds to the structures at their beginning: the point of j about the centre, and c |y|^2
    /// where no step of the tape stands for that point. Loops over pairs are up to a tenth slower in other orders, as the
    /// assembler has it.
    pub(super) fn first_members(&self, per: Per) -> String {
        match (self.sections.square.filter(|_| self.sections.is_centred()), per) {
            (Some(square), Per::J) => match square.moved {
                Some(moved) if !self.keeps_scaled_point(square) => self.declaration(moved, per),
                Some(_) => String::new(),
                None => format!("T point[{}]; T norm; ", square.dim(self.sections.tape)),
            },
            _ => String::new(),
        }
    }

    /// Whether every j keeps its point times a number, too, where differences are made of columns: of few components.
    fn keeps_scaled_point(&self, square: Square) -> bool {
        square.dim(self.sections.tape) as usize <= FEW_POINTS
    }

    /// What an expanded square adds to the structures at their end: the centre; of i, -2c x (x where differences are
    /// taken) and c |x|^2; of j, what is not at the beginning.
    pub(super) fn last_members(&self, per: Per) -> String {
        let Some(square) = self.sections.square else {
            let has_norm = self.sections.norm().is_some() && matches!(per, Per::I | Per::J);
            return if has_norm { "T norm; ".to_owned() } else { String::new() };
        };
        let (centred, by_tiles) = (self.sections.is_centred(), self.sections.by_tiles());
        match per {
            Per::Once if centred => "const T* centre; ".to_owned(),
            Per::I if !by_tiles => {
                format!("T product[{}]; T norm; ", square.dim(self.sections.tape))
            }
            Per::J if centred => match square.moved {
                Some(moved) if self.keeps_scaled_point(square) => {
                    self.declaration(moved, per) + "T norm; "
                }
                Some(_) => "T norm; ".to_owned(),
                None => String::new(),
            },
            Per::I | Per::J => "T norm; ".to_owned(),
            _ => String::new(),
        }
    }

    /// Statements that fill these members where threads compute squares; with tiles, norms are filled in where tiles are
    /// made. Only the last rounding of a norm counts. Numbers of j that `differences` cannot be made with (`is_tame` of the
    /// kernels) make a norm that is above all limits. About a centre, a row has its point as it is until `about` follows.
    pub(super) fn norms(&self, per: Per, differences: bool) -> String {
        let Some((square, scale)) = self.by_threads() else { return String::new() };
        let scale = &scale[..];
        let (own, point) = match per {
            Per::I => ("x", square.x),
            Per::J => ("y", square.y),
            _ => return String::new(),
        };
        let dim = square.dim(self.sections.tape);
        let number = self.value(point, per);
        let centred = self.sections.is_centred();
        if centred && per == Per::I {
            return format!("    ALONG(k, {dim}) x.product[k] = {number};\n");
        }
        let added = if centred { format!("{number}, p.centre[k]") } else { number.clone() };
        let norm = self.norm(own, &added, dim, scale);
        match per {
            Per::I => {
                let product = if square.is_direct() { "" } else { &format!("-2 * {scale} * ") };
                format!("{norm}    ALONG(k, {dim}) x.product[k] = {product}{number};\n")
            }
            _ => {
                let point = self
                    .sections
                    .placed()
                    .map(|_| format!("    ALONG(k, {dim}) y.point[k] = {number} - p.centre[k];\n"));
                let beside = self
                    .sections
                    .held_by(per)
                    .filter(|slot| differences && *slot != square.moved.unwrap_or(square.y));
                let wild = beside.map(|slot| {
                    let (len, number) = (self.sections.tape.slot(slot).len, self.value(slot, per));
                    format!("    ALONG(k, {len}) y.norm = is_tame({number}) ? y.norm : not_a_number<T>();\n")
                });
                point.unwrap_or_default() + &norm + &wild.collect::<String>()
            }
        }
    }

    /// The square that threads compute, and its scale.
    fn by_threads(&self) -> Option<(Square, String)> {
        let square = self.sections.square.filter(|_| !self.sections.by_tiles())?;
        Some((square, self.scale(square)))
    }

    /// What the distance of a square is multiplied by, the same for all pairs, so that no loop computes it. Of a square that
    /// is not expanded, log2(e) is in it, for the power of two: then norms tell where that is infinite.
    pub(super) fn scale(&self, square: Square) -> String {
        let scale = match square.scale {
            Scale::One => "1".to_owned(),
            Scale::MinusOne => "-1".to_owned(),
            Scale::By(slot) => self.number(slot, "0", Per::I),
        };
        if square.is_direct() { format!("(T)((f64){scale} * {LOG2_E:?})") } else { scale }
    }

    /// Statements that make the norm of the numbers `added`, one for each component.
    fn norm(&self, own: &str, added: &str, dim: u32, scale: &str) -> String {
        format!(
            "    SquaredNorm<T> norm;\n    ALONG(k, {dim}) norm.add({added});\n\
             \x20   {own}.norm = norm.times((f64){scale});\n"
        )
    }

    /// The functions of points that are moved to a centre: `sample`, a component of a j's point as it is, and `about`, which
    /// moves the point of a row.
    pub(super) fn about(&self) -> Result<String> {
        let Some((square, scale)) = self.by_threads().filter(|_| self.sections.is_centred()) else {
            return Ok(String::new());
        };
        let dim = square.dim(self.sections.tape);
        let sample = match self.sections.tape.input_of(square.y) {
            Some(input) => format!("    return widen({});\n", self.load(input, Per::J)),
            // One of all components is kept as they are made, without an array of which any could be asked for.
            None => format!(
                "    OfJ y;\n    T one = 0;\n    const int own = k;\n{}{}    ALONG(k, {dim}) one = k == own ? {} : one;\n    return one;\n",
                self.loads(Per::J),
                self.steps(Per::J)?,
                self.value(square.y, Per::J)
            ),
        };
        let norm = self.norm("x", "x.product[k], p.centre[k]", dim, &scale);
        Ok(format!(
            "FN T sample(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, int k) \
             {{\n{sample}}}\n\
             FN void about(const Once& p, OfI& x) {{\n{norm}\
             \x20   ALONG(k, {dim}) x.product[k] = -2 * {scale} * (x.product[k] - p.centre[k]);\n}}\n"
        ))
    }

    /// The statements of a step that is computed otherwise for an expanded square; none for other steps.
    pub(super) fn expanded_step(&self, slot: SlotId, inside: Per) -> Result<Option<String>> {
        let Some(square) = self.sections.square else { return Ok(None) };
        let (dim, to) = (square.dim(self.sections.tape), self.array(slot, inside));
        if square.moved == Some(slot) {
            let number = self.value(square.y, inside);
            return Ok(Some(format!("    ALONG(k, {dim}) {to}[k] = {number} - p.centre[k];\n")));
        }
        if square.scaled != slot {
            return Ok(None);
        }
        // Last, so that the sum before it is not rounded to what is left of the larger of the two.
        let plus = square.plus.map_or(String::new(), |plus| {
            let number = self.value(plus, inside);
            format!("    EACH(u, G) {to}[0] = {to}[0] + {number};\n")
        });
        if self.sections.by_tiles() {
            return Ok(Some(format!("    EACH(u, G) {to}[0] = square[u];\n{plus}")));
        }
        if square.is_direct() {
            let number = self.value(square.y, inside);
            let body =
                format!("const T d = x.product[k] - {number}; {to}[0] = fma(d, d, {to}[0]);");
            let (sum, scale) = (self.along(dim, &[], &body, inside)?, self.scale(square));
            return Ok(Some(format!(
                "    EACH(u, G) {to}[0] = 0;\n{sum}    EACH(u, G) {to}[0] = {to}[0] * {scale};\n"
            )));
        }
        let norm = if square.outside.is_some() {
            "y[u * LANES].norm"
        } else {
            "x.norm + y[u * LANES].norm"
        };
        let point = match self.sections.placed() {
            Some(_) => "y[u * LANES].point[k]".to_owned(),
            None => self.value(square.moved.unwrap_or(square.y), inside),
        };
        let body = format!("{to}[0] = fma(x.product[k], {point}, {to}[0]);");
        let sum = self.along(dim, &[], &body, inside)?;
        Ok(Some(format!("    EACH(u, G) {to}[0] = {norm};\n{sum}{plus}")))
    }

    /// The functions for a state after all pairs of row i: `complete` applies the part of |x|^2 and makes differences, and
    /// `overflows` says whether sums may have left the range before that.
    pub(super) fn complete(&self, plan: &Plan<'_>) -> String {
        let folding = &plan.folding;
        let outside = self.sections.square.and_then(|square| square.outside);
        let completed = match (outside, folding.monoid(), folding.computes) {
            (None, ..) => "",
            (Some(Sign::Plus), Monoid::Shifted, _) => "    s.moved = x.norm;\n",
            (Some(Sign::Minus), Monoid::Shifted, _) => "    s.moved = -x.norm;\n",
            (_, _, DType::Float32) => "    s.sums.scale(op_exp2_pair_f32(x.norm));\n",
            _ => "    s.sums.scale(op_exp2_pair_f64(x.norm));\n",
        };
        let differences =
            plan.difference.map_or(String::new(), |Difference { from, len, points }| {
                let load = self.load(points[0], Per::I);
                format!(
                    "    A q = s.sums.total(DIM);\n    ALONG(k, {len}) s.sums.become({from} + k, \
                 fma((A)(widen({load}) - p.centre[k]), q, -s.sums.total({from} + k)));\n"
                )
            });
        let overflows = match plan.is_scaled() {
            true => {
                "FN bool overflows(const State& s) {\n    bool wild = false;\n    ALONG(k, DIM) wild |= \
                 !(fabs(s.value(k)) < infinity<A>());\n    return wild;\n}\n"
            }
            false => "FN bool overflows(const State&) { return false; }\n",
        };
        format!(
            "FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, \
             State& s) {{\n{completed}{differences}}}\n{overflows}"
        )
    }
}
