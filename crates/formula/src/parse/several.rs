//! Several formulas in brackets, `(x,y)`: the variables and directions of a derivative.

use tilework_error::Result;

use super::{Parser, Placed, Value};
use crate::expr::Expr;
use crate::{forward, lex};

impl Parser<'_> {
    /// What stands in brackets: one value, or formulas with commas between them.
    pub(super) fn bracket(&mut self) -> Result<Value> {
        let first = self.comparison()?;
        if !self.accept(",") {
            return self.expect(")").map(|()| first.0);
        }
        let mut formulas = vec![self.formula(first)?];
        while !self.accept(")") {
            let next = self.comparison()?;
            formulas.push(self.formula(next)?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Value::Tuple(formulas))
    }

    /// The variables and their directions, one or several of each.
    pub(super) fn directions(
        &self,
        name: &str,
        (variables, directions): (Placed, Placed),
    ) -> Result<Vec<(Expr, Expr)>> {
        let at = directions.1;
        let several = |(value, at): Placed| match value {
            Value::Tuple(formulas) => Ok(formulas),
            one => Ok(vec![self.formula((one, at))?]),
        };
        let (variables, directions) = (several(variables)?, several(directions)?);
        if variables.len() != directions.len() {
            let (some, others) = (variables.len(), directions.len());
            let message =
                format!("{name}: {some} variables have {others} directions, not one each");
            return Err(lex::error(self.text, at, message));
        }
        Ok(variables.into_iter().zip(directions).collect())
    }

    /// `Diff(f, (x,y), (u,w))`: the derivative of f when each variable moves in its direction.
    pub(super) fn diff_of_several(&self, arguments: Vec<Placed>, at: usize) -> Result<Value> {
        let count = arguments.len();
        let mut rest = arguments.into_iter();
        let (Some(f), Some(v), Some(u), None) =
            (rest.next(), rest.next(), rest.next(), rest.next())
        else {
            let message = format!("Diff: takes 3 arguments, not {count}");
            return Err(lex::error(self.text, at, message));
        };
        let (f, directions) = (self.formula(f)?, self.directions("Diff", (v, u))?);
        Ok(Value::Formula(self.place(forward::diff(&f, &directions), at)?))
    }
}
