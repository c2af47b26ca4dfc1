//! Formulas as plans know them: variables numbered from 0, the same array in the same role once, so
//! that equal formulas are equal and find their plan.
//!
//! A tensor keeps its numbered form, since it is the same in every reduction of it. The same numbers
//! make it plain parts, which can be stored and sent.

use std::sync::Arc;

use tilework_error::{Error, Result};
use tilework_formula::{Category, Expr, Variable, parse};

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

/// A tensor as plain parts: what [`LazyTensor::from_parts`] makes it of again, anywhere.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The formula, as [`LazyTensor::formula`] numbers its variables.
    pub formula: String,
    /// The symbolic variables, by position.
    pub symbols: Vec<Variable>,
    /// The arrays, numbered after the symbolic variables, and what they vary with.
    pub arrays: Vec<(Category, Array)>,
    /// Whether they take the dtype of the arrays that they meet.
    pub weak: bool,
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

/// The number after those of symbolic variables.
fn after(symbols: &[Variable]) -> usize {
    symbols.iter().map(|symbol| symbol.position.saturating_add(1)).max().unwrap_or(0)
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
            let message = format!(
                "the variable {symbol} has no array yet: make it of one, or give it in a later call"
            );
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
        Renamed::new(&self.bound, after(&self.symbols()), &[]).of(&self.expr)
    }

    /// The tensor as plain parts. Variables of one array become one variable.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::LazyTensor;
    /// let x = Array::from_nested(&[[0.0f64, 3.0], [1.0, 2.0]])?;
    /// let d = LazyTensor::vi(&x)?.sqdist(&LazyTensor::vj(&x)?)?;
    /// let parts = d.parts()?;
    /// assert_eq!((parts.formula.as_str(), parts.arrays.len()), ("SqDist(Vi(0,2), Vj(1,2))", 2));
    /// let again = LazyTensor::from_parts(&parts)?;
    /// assert_eq!(again.sum(1)?.to_vec::<f64>()?, d.sum(1)?.to_vec::<f64>()?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn parts(&self) -> Result<Parts> {
        let symbols = self.symbols();
        let renamed = Renamed::new(&self.bound, after(&symbols), &[]);
        let formula = renamed.of(&self.expr)?.to_string();
        let suited = |(array, variable): (Array, Variable)| {
            Ok((variable.category, self.extent.suited(array)?))
        };
        let arrays = renamed.arrays.into_iter().map(suited).collect::<Result<_>>()?;
        Ok(Parts { formula, symbols, arrays, weak: self.extent.dtype.is_none() })
    }

    /// The tensor of these parts, whose variables are no other tensor's; an error where they do not
    /// fit each other.
    pub fn from_parts(parts: &Parts) -> Result<LazyTensor> {
        let mut made = LazyTensor::constant(0.0);
        for &Variable { position, dim, category } in &parts.symbols {
            made.join("LazyTensor", &LazyTensor::symbolic(position, dim, category)?)?;
        }
        let first = after(&parts.symbols);
        let mut names = Vec::with_capacity(parts.arrays.len());
        for (k, (category, array)) in parts.arrays.iter().enumerate() {
            let own = LazyTensor::variable("LazyTensor", array, *category)?;
            if let Some(variable) = own.expr.as_variable() {
                names.push((Variable { position: first + k, ..variable }, variable));
            }
            made.join("LazyTensor", &own)?;
        }
        let renamed = Renamed { arrays: Vec::new(), names };
        made.expr = renamed.of(&parse::formula(&parts.formula, &[])?)?;
        for variable in Expr::variables_of(std::slice::from_ref(&made.expr))? {
            if !made.bound.iter().any(|known| known.variable == variable) {
                let message = format!("{variable} of the formula is none of the variables");
                return Err(Error::formula(message, None));
            }
        }
        Ok(if parts.weak { made.weak() } else { made })
    }

    /// Whether it is a variable with an array.
    pub(super) fn is_own_variable(&self) -> bool {
        self.expr.as_variable().is_some_and(|variable| variable.position >= OWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn parts_make_the_tensor_again() {
        let x = Array::from_nested(&[[0.5f32, 2.0], [1.0, -1.0]]).unwrap();
        let xi = LazyTensor::vi(&x).unwrap();
        let later = LazyTensor::symbolic(3, 2, Category::J).unwrap();
        let s = LazyTensor::pm(&Array::from_slice(&[0.1f64, 0.3]).unwrap()).unwrap().weak();
        let gone = LazyTensor::vj(&Array::ones(&[4, 2], DType::Float32).unwrap()).unwrap();
        let f = xi.multiply(&later).unwrap().multiply(&s).unwrap();
        // A variable that the formula lost still says how many rows there are.
        let f = f.add(&gone.subtract(&gone).unwrap()).unwrap();
        let again = LazyTensor::from_parts(&f.parts().unwrap()).unwrap();
        assert_eq!(again.to_string(), f.to_string());
        let y = Array::from_nested(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]).unwrap();
        let sums =
            |of: &LazyTensor| of.fill(&[&y]).unwrap().sum(1).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(sums(&again), sums(&f));
        assert!(LazyTensor::from_parts(&s.parts().unwrap()).unwrap().dtype().is_none());
        let parts = xi.sqnorm2().unwrap().parts().unwrap();
        for wrong in [
            Parts { formula: "Vi(1,2)".into(), ..parts.clone() },
            Parts { formula: "Vj(0,2)".into(), ..parts.clone() },
            Parts { formula: "Vi(0,3)".into(), ..parts.clone() },
            Parts { formula: "Sum(Vi(0,2)".into(), ..parts.clone() },
            Parts { arrays: Vec::new(), ..parts },
        ] {
            assert!(LazyTensor::from_parts(&wrong).is_err(), "{wrong:?}");
        }
    }
}
