//! A value and its gradients in one pass over the pairs.
//!
//! Value and gradients towards variables of the index that survives are sums over the same pairs
//! and share most of their instructions: they are the parts of one longer vector. Gradients towards
//! the reduced index and towards parameters are sums of their own (`gradient`).

use tilework_error::Result;
use tilework_formula::reduction::Slope;
use tilework_formula::{Expr, Reduction, Variable, derive};
use tilework_ops::PairFoldId;

use super::call::{Call, Options};
use super::gradient::Work;
use super::lazy::LazyTensor;
use crate::array::Array;
use crate::s;

impl LazyTensor {
    /// The values of a reduction, and the gradients of the sum of `e` times them (of their sum, if
    /// there is no `e`) towards some variables. What came from one pass may be views of parts of one
    /// array, which nothing else has: copy what is to outlive the others.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::{LazyTensor, Options};
    /// let x = LazyTensor::vi(&Array::from_nested(&[[1.0f64], [2.0]])?)?;
    /// let y = LazyTensor::vj(&Array::from_nested(&[[0.0f64], [5.0], [7.0]])?)?;
    /// let d = x.sqdist(&y)?;
    /// let (value, gradients) =
    ///     d.value_and_grad("Sum", 1, None, &[&x], None, &Options::default())?;
    /// assert_eq!(value.to_vec::<f64>()?, [53.0, 38.0]);
    /// assert_eq!(gradients[0].to_vec::<f64>()?, [-18.0, -12.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn value_and_grad(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        variables: &[&LazyTensor],
        e: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<(Array, Vec<Array>)> {
        let (work, of) = Work::new(self, reduction, axis, weight, variables, options)?;
        work.value_and_grads(&of, e, options)
    }
}

/// Derivatives that go with exponentials in one pass. Of more of them a pass for the value and one for each gradient take
/// less time, since the gradient of wide points is a product of matrices: 4000 x 4000 points of 64 components 195 ms
/// together and 90 apart on a CPU.
const MOST_TOGETHER: usize = 16;

/// A value, and gradients that came with it.
type Together = (Array, Vec<(Variable, Array)>);

impl Work {
    /// The values, and the gradients towards some variables.
    pub(super) fn value_and_grads(
        &self,
        of: &[Variable],
        e: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<(Array, Vec<Array>)> {
        let wide = self.goes_on_in(of);
        if wide != self.dtype {
            let e = e.map(|e| self.checked(e)?.astype(wide)).transpose()?;
            let (value, gradients) = self.cast(wide)?.value_and_grads(of, e.as_ref(), options)?;
            let narrow = |gradient: Array| gradient.astype(self.dtype);
            // Indices and counts are what they are.
            let value = if value.dtype() == wide { narrow(value)? } else { value };
            return Ok((value, gradients.into_iter().map(narrow).collect::<Result<_>>()?));
        }
        let survivor = self.reduction.axis().survivor();
        let here: Vec<Variable> =
            of.iter().copied().filter(|variable| variable.category == survivor).collect();
        let slope = self.reduction.row().slope;
        // Over nothing there is no mean to divide by, and nothing to save.
        let pays = self.extent.rows(self.reduction.axis().reduced()) > 0;
        let sums = pays && matches!(slope, Slope::Sum | Slope::Mean);
        let exponentials = pays
            && slope == Slope::LogSumExp
            && self.reduction.weight().is_none()
            && self.reduction.formula().dim() == 1
            && here.iter().map(|variable| variable.dim).sum::<usize>() <= MOST_TOGETHER;
        // One pass for what goes together, and one for each other variable.
        let passes = 1 + of.len() - if sums || exponentials { here.len() } else { 0 };
        let first = |options: &Options<'_>| match (sums, exponentials) {
            (true, _) => self.summed_together(&here, e, options),
            (_, true) => self.exponentials_together(&here, e, options),
            _ => Ok((self.run(&self.reduction, &self.arrays, options)?, Vec::new())),
        };
        let (value, mut found) = options.pass(0, passes, first)?;
        let mut incoming = e.cloned();
        let mut gradients = Vec::with_capacity(of.len());
        let mut pass = 0;
        for &variable in of {
            let known = found.iter().position(|(known, _)| *known == variable);
            gradients.push(match known {
                Some(known) => found.swap_remove(known).1,
                None => {
                    pass += 1;
                    let ones = || Array::full_on(value.device(), value.shape(), 1.0, self.dtype);
                    let incoming = match &mut incoming {
                        Some(e) => e,
                        none => none.insert(ones()?),
                    };
                    let towards = |options: &Options<'_>| {
                        self.gradient_towards(variable, incoming, Some(&value), options)
                    };
                    options.pass(pass.min(passes - 1), passes, towards)?
                }
            });
        }
        Ok((value, gradients))
    }

    /// A sum of the formula and of its derivatives.
    fn summed_together(
        &self,
        here: &[Variable],
        e: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<Together> {
        let formula = self.reduction.formula();
        let mut arrays = self.arrays.clone();
        let incoming = match e {
            None => Expr::uniform(1.0, formula.dim())?,
            Some(e) => {
                arrays.push(self.checked(e)?);
                let category = self.reduction.axis().survivor();
                let position = arrays.len() - 1;
                Expr::variable(Variable { position, dim: formula.dim(), category })?
            }
        };
        let mut parts = vec![formula.clone()];
        for variable in here {
            parts.push(derive::grad(formula, &Expr::variable(*variable)?, &incoming)?);
        }
        let (name, axis) = (self.reduction.row().name, self.reduction.axis());
        let whole = Reduction::new(name, &Expr::concat(&parts)?, axis, None, None)?;
        let sums = Call::new(&whole, &arrays, &self.extent).run(options)?.only()?;
        self.parted(&sums, formula.dim(), here)
    }

    /// A shifted sum of exponentials, with the derivatives of the exponent as weights.
    fn exponentials_together(
        &self,
        here: &[Variable],
        e: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<Together> {
        let formula = self.reduction.formula();
        let one = Expr::constant(1.0);
        let mut weights = vec![one.clone()];
        for variable in here {
            weights.push(derive::grad(formula, &Expr::variable(*variable)?, &one)?);
        }
        let weight = Expr::concat(&weights)?;
        let name = PairFoldId::MaxSumShiftExpWeight.row().name;
        let whole = Reduction::new(name, formula, self.reduction.axis(), None, Some(&weight))?;
        let sums = Call::new(&whole, &self.arrays, &self.extent).run(options)?.only()?;
        let top = sums.slice(&s![Ellipsis, 0..1])?;
        let sum = sums.slice(&s![Ellipsis, 1..2])?;
        let nothing = top.isinf()?;
        let value = crate::select(&nothing, &top, &(&top + &sum.log()?)?)?;
        // A row without exponentials passes nothing on.
        let mut scale = crate::select(&sum.equal(0.0)?, 0.0, &sum.reciprocal()?)?;
        if let Some(e) = e {
            scale = (&scale * &self.checked(e)?)?;
        }
        // In place, for rows may be many.
        let slopes = sums.slice(&s![Ellipsis, 1..])?;
        slopes.mul_assign(&scale)?;
        let (_, gradients) = self.parted(&slopes, 1, here)?;
        Ok((value, gradients))
    }

    /// The first components, and what follows for each variable: views, since copies would take as much memory again.
    fn parted(&self, sums: &Array, dim: usize, here: &[Variable]) -> Result<Together> {
        let part = |from: usize, len: usize| {
            let (from, to) = (from as isize, (from + len) as isize);
            sums.slice(&s![Ellipsis, from..to])
        };
        let mut from = dim;
        let mut gradients = Vec::with_capacity(here.len());
        for variable in here {
            let gradient = part(from, variable.dim)?;
            let shape = self.arrays[variable.position].shape();
            gradients.push((*variable, self.summed_to(gradient, shape)?));
            from += variable.dim;
        }
        Ok((part(0, dim)?, gradients))
    }
}
