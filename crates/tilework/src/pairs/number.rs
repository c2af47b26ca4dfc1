//! Formulas as plans know them: variables numbered from 0, the same array in the same role once, so
//! that equal formulas are equal and find their plan.
//!
//! A tensor keeps its numbered form, since it is the same in every reduction of it.

use std::sync::Arc;

use tilework_error::{Error, Result};
use tilework_formula::{Expr, Variable};

use super::lazy::{Bound, LazyTensor, OWN};
use super::variable::Extent;
use crate::array::Array;

/// Formulas with variables numbered from 0, and their arrays.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) exprs: Vec<Expr>,
    /// By the position of their variable.
    pub(super) arrays: Vec<Array>,
    pub(super) extent: Extent,
}

/// What variables are called from now on.
struct Renamed {
    arrays: Vec<(Array, Variable)>,
    names: Vec<(Variable, Variable)>,
}

impl Renamed {
    /// The variables that have arrays, numbered from `first` on. Those of one array are one, but
    /// those to be kept apart are themselves: what is differentiated is a variable and not an array.
    fn new(bound: &[Bound], first: usize, apart: &[Variable]) -> Renamed {
        let mut renamed = Renamed { arrays: Vec::new(), names: Vec::new() };
        for one in bound {
            let Bound { variable, array: Some(array) } = one else { continue };
            let may_join = |bound: &&Bound| !apart.contains(&bound.variable);
            let same = Some(one).filter(may_join).and_then(|one| {
                let same = bound.iter().filter(may_join).find(|known| known.is_alike(one))?;
                renamed.names.iter().find(|(old, _)| *old == same.variable)
            });
            let new = match same {
                Some((_, known)) => *known,
                None => {
                    let new = Variable { position: first + renamed.arrays.len(), ..*variable };
                    renamed.arrays.push((array.clone(), new));
                    new
                }
            };
            renamed.names.push((*variable, new));
        }
        renamed
    }

    fn of(&self, expr: &Expr) -> Result<Expr> {
        expr.substitute(|variable| {
            let (_, new) = self.names.iter().find(|(old, _)| *old == variable)?;
            Expr::variable(*new).ok()
        })
    }
}

impl LazyTensor {
    /// This formula with variables numbered from 0.
    pub(super) fn alone(&self) -> Result<Arc<Numbered>> {
        self.numbered.get_or_try_make(|| self.numbered(&[]).map(Arc::new)).cloned()
    }

    /// This formula and others of the same tensors, with variables numbered from 0. Others that are
    /// variables are no other's.
    pub(super) fn numbered(&self, others: &[&LazyTensor]) -> Result<Numbered> {
        let mut joined = self.unnumbered();
        for other in others {
            joined.join("reduction", other)?;
        }
        if let Some(symbol) = joined.symbols().first() {
            let message = format!("the variable {symbol} has no array yet; fill gives it one");
            return Err(Error::value("reduction", message));
        }
        let apart: Vec<Variable> =
            others.iter().filter_map(|other| other.expr.as_variable()).collect();
        let renamed = Renamed::new(&joined.bound, 0, &apart);
        let tensors = [self].into_iter().chain(others.iter().copied());
        let exprs = tensors.map(|tensor| renamed.of(&tensor.expr)).collect::<Result<_>>()?;
        let mut extent = joined.extent;
        if let Some((first, _)) = renamed.arrays.first() {
            extent.dtype = extent.dtype.or(Some(first.dtype()));
            extent.device = extent.device.or(Some(first.device()));
        }
        let arrays = renamed.arrays.into_iter().map(|(array, _)| extent.suited(array));
        let arrays = arrays.collect::<Result<_>>()?;
        Ok(Numbered { exprs, arrays, extent })
    }

    /// The formula for human eyes: arrays are numbered after the symbolic variables.
    pub(super) fn shown(&self) -> Result<Expr> {
        let first = self.symbols().last().map_or(0, |last| last.position + 1);
        Renamed::new(&self.bound, first, &[]).of(&self.expr)
    }

    /// Whether it is a variable with an array.
    pub(super) fn is_own_variable(&self) -> bool {
        self.expr.as_variable().is_some_and(|variable| variable.position >= OWN)
    }
}
