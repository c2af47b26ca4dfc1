//! Texts of whole reductions, and of their derivatives, whose arguments `parse` has read.

use tilework_error::Result;

use super::{Parser, Placed, Value};
use crate::expr::Expr;
use crate::lex;
use crate::reduction::{self, Axis, Reduction};

impl Parser<'_> {
    /// `Name_Reduction(F [, K], survivor [, G])`, where the survivor is 0 for i and 1 for j.
    pub(super) fn reduction(&self, name: &str, arguments: Vec<Placed>, at: usize) -> Result<Value> {
        let fail = |message: String| Err(lex::error(self.text, at, message));
        let row = match reduction::named(name) {
            Ok(row) => row,
            Err(unknown) => return fail(unknown.to_string()),
        };
        let mut formulas = Vec::with_capacity(arguments.len());
        for argument in arguments {
            formulas.push(self.formula(argument)?);
        }
        let mut rest = formulas.into_iter();
        let (Some(formula), k) = (rest.next(), if row.takes_k { rest.next() } else { None }) else {
            return fail(format!("{name}_Reduction takes a formula"));
        };
        let whole = |expr: Expr| {
            let value = expr.as_constant().filter(|x| x.fract() == 0.0 && (0.0..1e9).contains(x));
            value.map(|x| x as usize)
        };
        let k = match k.map(whole) {
            Some(None) => return fail("K must be an integer".into()),
            Some(k) => k,
            None => None,
        };
        let axis = match rest.next().and_then(whole) {
            Some(0) => Axis::J,
            Some(1) => Axis::I,
            _ => return fail("the index that survives must be 0 (i) or 1 (j)".into()),
        };
        let weight = rest.next();
        if rest.next().is_some() {
            return fail(format!("{name}_Reduction takes fewer arguments"));
        }
        let made = Reduction::new(name, &formula, axis, k, weight.as_ref());
        Ok(Value::Reduction(Box::new(self.place(made, at)?)))
    }

    /// `Grad_WithSavedForward(reduction, v, e, saved...)`, and the same for `Diff`.
    pub(super) fn derivative(
        &self,
        name: &str,
        arguments: Vec<Placed>,
        at: usize,
    ) -> Result<Value> {
        let mut rest = arguments.into_iter();
        let Some((Value::Reduction(reduction), _)) = rest.next() else {
            return Err(lex::error(self.text, at, format!("{name} takes a reduction first")));
        };
        let (Some(v), Some(e)) = (rest.next(), rest.next()) else {
            let message = format!("{name} takes a reduction, a variable and a formula");
            return Err(lex::error(self.text, at, message));
        };
        let saved = rest.map(|argument| self.formula(argument)).collect::<Result<Vec<Expr>>>()?;
        // The saved result is always written, also where the derivative does not need it.
        let saved = if reduction.saved().is_empty() { &[] } else { &saved[..] };
        let made = match name {
            "Grad_WithSavedForward" => {
                let (v, e) = (self.formula(v)?, self.formula(e)?);
                reduction.gradient(&v, &e, saved).map(|adjoint| adjoint.reduction)
            }
            _ => reduction.tangent(&self.directions(name, (v, e))?, saved),
        };
        Ok(Value::Reduction(Box::new(self.place(made, at)?)))
    }
}
