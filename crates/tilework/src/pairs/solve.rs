//! Linear systems (alpha + K) a = b by conjugate gradients, K never stored.
//!
//! All columns of b go through one product at a time. Where the matrix does not mix them, each has steps
//! and a tolerance of its own, and one that is done takes no further steps; where it may, they
//! are one vector. Right-hand sides are scaled by their largest numbers and lengths are taken in
//! float64, so that nothing is lost at either end of the dtype. K must be symmetric and positive,
//! which nobody can check, but what betrays itself (a direction of no positive curvature, numbers
//! that are not finite) is told.

use tilework_error::{Error, Result};
use tilework_formula::{Expr, Variable};

use super::call::Options;
use super::genred::Genred;
use super::lazy::LazyTensor;
use crate::DType;
use crate::array::{Array, Axes};

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Solve {
    /// What is added to the diagonal.
    pub alpha: f64,
    /// The residual, relative to the right-hand side, that is good enough: that of each column, where
    /// columns are solved apart ([`Columns`]). Where rounding
    /// keeps it larger, ten times as much is, and what one product in the dtype is off by, if that is
    /// less than three fifths of its digits.
    pub tol: f64,
    /// The most steps; None is ten for each unknown of a system, and 10,000 at most.
    pub maxiter: Option<usize>,
}

impl Default for Solve {
    fn default() -> Solve {
        Solve { alpha: 1e-10, tol: 1e-6, maxiter: None }
    }
}

/// What a matrix does with the columns of a right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// It multiplies each alone: every column is a system of its own.
    Apart,
    /// It may mix them, as kernels with values in matrices do: all are one vector.
    Mixed,
}

impl Columns {
    /// Those of an unknown variable of a formula.
    pub fn of(formula: &Expr, unknown: Variable) -> Columns {
        match formula.is_componentwise_in(unknown) {
            true => Columns::Apart,
            false => Columns::Mixed,
        }
    }

    /// The axes over which one system goes.
    fn axes(self) -> Axes {
        match self {
            Columns::Apart => Axes::from(-2),
            Columns::Mixed => Axes::from([-2, -1]),
        }
    }
}

const ROUNDING: &str = "rounding keeps the residual above the tolerance";

/// How many times the tolerance rounding may leave of the right-hand side: in float32 every product
/// is rounded by about the usual tolerance.
const SLACK: f64 = 10.0;

/// How many times the rounding of one product the steps may leave.
const STEPS: f64 = 32.0;

/// The share of digits of the dtype that a solution has at least, where rounding keeps more from it: so that what users of
/// KeOps solve in float32, thousands of points with 0.01 on the diagonal, is solved.
const DIGITS: f64 = 0.4;

/// What conjugate gradients found.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The unknowns.
    pub x: Array,
    /// The largest residual of a system, relative to its right-hand side: that of `x` itself, which
    /// the rounding of the dtype may keep above the tolerance.
    pub residual: f64,
    /// How many steps were taken.
    pub iterations: usize,
    /// Why it is not good enough, if it is not.
    pub failure: Option<&'static str>,
}

impl Solution {
    /// The unknowns, or an error that tells the residual.
    pub fn converged(self) -> Result<Array> {
        match self.failure {
            None => Ok(self.x),
            Some(why) => {
                let message = format!(
                    "{why}: the residual is {:.3e} of the right-hand side after {} steps; a larger \
                     alpha or tol, float64 or more steps may help",
                    self.residual, self.iterations
                );
                Err(Error::value("solve", message))
            }
        }
    }
}

impl LazyTensor {
    /// Solves (alpha + K) a = b for the symmetric positive matrix K of this tensor, with `b` of
    /// one number or one row for each i.
    ///
    /// ```
    /// use tilework::pairs::{LazyTensor, Options, Solve};
    /// use tilework::{Array, DType};
    /// let x = Array::linspace(0.0..=1.0, 20, DType::Float64)?.reshape(&[20, 1])?;
    /// let d = LazyTensor::vi(&x)?.sqdist(&LazyTensor::vj(&x)?)?;
    /// let k = (&d * -10.0)?.exp()?;
    /// let system = Solve { alpha: 0.1, ..Solve::default() };
    /// let a = k.solve(&x, &system, &Options::default())?.converged()?;
    /// let back = (&k.matmul(&a)? + &(&a * 0.1)?)?;
    /// assert!((&back - &x)?.abs()?.max(())?.item::<f64>()? < 1e-6);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn solve(&self, b: &Array, system: &Solve, options: &Options<'_>) -> Result<Solution> {
        let (m, n) = self.rows();
        if m != n {
            let message = format!("the matrix has {m} rows and {n} columns, not as many");
            return Err(Error::shape("solve", message));
        }
        let product = |v: &Array, options: &Options<'_>| {
            self.matmul_with(v, options).map_err(|error| error.of("solve"))
        };
        conjugate_gradient(product, b, Columns::Apart, system, options)
    }
}

impl Genred {
    /// Solves for the argument at `unknown`, in which the formula is linear; the array in its place
    /// is the right-hand side.
    pub fn solve(
        &self,
        arrays: &[&Array],
        unknown: usize,
        system: &Solve,
        options: &Options<'_>,
    ) -> Result<Solution> {
        let Some(b) = arrays.get(unknown) else {
            let message = format!("there is no argument {unknown} among {}", arrays.len());
            return Err(Error::value("solve", message));
        };
        let formula = self.reduction().formula();
        let mut variables = formula.variables()?.into_iter();
        let variable = variables.find(|variable| variable.position == unknown);
        let columns = variable.map_or(Columns::Apart, |variable| Columns::of(formula, variable));
        let product = |v: &Array, options: &Options<'_>| {
            let mut arrays = arrays.to_vec();
            arrays[unknown] = v;
            self.call_with(&arrays, options)?.only()
        };
        conjugate_gradient(product, b, columns, system, options)
    }
}

/// Solves (alpha + K) x = b, where `product` multiplies by K with the options that it is given.
///
/// Where the residual of the solution itself is above the tolerance, though steps say otherwise, it is
/// improved once; what rounding then keeps above [`Solve::tol`]'s allowance is a failure. A product in
/// a half type is known to a few units in its last place only, and so is the residual: that is good
/// enough whatever the tolerance.
///
/// Progress is that of the residual on its way to the tolerance, in orders of magnitude.
pub fn conjugate_gradient(
    product: impl Fn(&Array, &Options<'_>) -> Result<Array>,
    b: &Array,
    columns: Columns,
    system: &Solve,
    options: &Options<'_>,
) -> Result<Solution> {
    let Solve { alpha, tol, .. } = *system;
    // A NaN is not in the range either.
    if !(0.0..f64::INFINITY).contains(&tol) || !alpha.is_finite() {
        let message = format!("tol is {tol} and alpha {alpha}: numbers, and tol at least 0");
        return Err(Error::value("solve", message));
    }
    if !b.dtype().is_float() {
        let message = format!("the right-hand side is float32 or another float, not {}", b.dtype());
        return Err(Error::dtype("solve", message));
    }
    let rows = if b.ndim() == 1 { b.expand_dims(1)? } else { b.clone() };
    // What halves are too narrow for is done in float32; the product is in the dtype of b.
    let (dtype, wide) = match rows.dtype() {
        DType::Float64 => (DType::Float64, DType::Float64),
        other => (other, DType::Float32),
    };
    let n = rows.shape().get(rows.ndim().saturating_sub(2)).copied().unwrap_or(0);
    let width = match columns {
        Columns::Apart => 1,
        Columns::Mixed => rows.shape().last().copied().unwrap_or(1),
    };
    let unknowns = n.saturating_mul(width);
    let most = system.maxiter.unwrap_or_else(|| unknowns.saturating_mul(10).min(10_000));
    // Columns of zeros are solved by zeros; dividing by one instead of zero keeps them so.
    let safe = |v: &Array| crate::select(&v.greater(0.0)?, v, 1.0);
    let peak = match rows.len() {
        0 => Array::ones_on(rows.device(), &[1], wide)?,
        _ => rows.to_dtype(wide)?.abs()?.max_keepdims(columns.axes())?,
    };
    let peak = crate::select(&peak.equal(0.0)?, 1.0, &peak)?;
    let rows = (&rows.to_dtype(wide)? / &peak)?;
    let image = |v: &Array, options: &Options<'_>| -> Result<Array> {
        let image = product(&v.to_dtype(dtype)?, options)?.to_dtype(wide)?;
        &image + &(v * alpha)?
    };
    // One number for each system.
    let dot = |u: &Array, v: &Array| {
        let products = (&u.to_dtype(DType::Float64)? * &v.to_dtype(DType::Float64)?)?;
        products.sum_keepdims(columns.axes())
    };
    let scale = dot(&rows, &rows)?;
    let mut limit = (&scale * (tol * tol))?;
    let largest = |square: &Array| -> Result<f64> {
        match square.len() {
            0 => Ok(0.0),
            _ => (square / &safe(&scale)?)?.sqrt()?.max(())?.item::<f64>(),
        }
    };
    // The residual that must be put up with. What is rounded to halves is known to their accuracy only;
    // elsewhere the terms of one product tell how far it is off.
    let allowed = |x: &Array| -> Result<f64> {
        let (eps, least) = (wide.finfo()?.eps, (SLACK * tol).max(4.0 * dtype.finfo()?.eps));
        let terms = image(&x.abs()?, &Options { progress: None, ..*options })?;
        let product = STEPS * eps * largest(&dot(&terms, &terms)?)?;
        // A NaN is no allowance.
        Ok(if product > least { product.min(eps.powf(DIGITS)).max(least) } else { least })
    };
    let mut x = Array::zeros_on(rows.device(), rows.shape(), rows.dtype())?;
    let mut residual = rows.clone();
    let mut direction = rows.clone();
    let mut square = scale.clone();
    let mut iterations = 0;
    let mut done = 0.0f64;
    // The first solution and its residual, once it was improved.
    let mut first: Option<(Array, f64)> = None;
    let (failure, truth) = loop {
        let why = loop {
            let open = square.greater(&limit)?;
            if !open.any(())?.item::<bool>()? {
                // NaN is greater than nothing, and good for nothing.
                let finite = square.isfinite()?.all(())?.item::<bool>()?;
                break (!finite).then_some("numbers are not finite");
            }
            if iterations == most {
                break Some("the limit of steps is reached");
            }
            if let Some(progress) = options.progress {
                done = done.max((largest(&square)?.ln() / tol.ln()).clamp(0.0, 1.0));
                if !progress.goes_on(done) {
                    return Err(Error::interrupted("solve", "stopped on request"));
                }
            }
            let image = options.part(done..done, |options| image(&direction, options))?;
            let curvature = dot(&direction, &image)?;
            let lost = open.logical_and(&curvature.greater(0.0)?.logical_not()?)?;
            if lost.any(())?.item::<bool>()? {
                // After many steps a curvature that is lost is lost in rounding.
                break Some(if first.is_none() { "the matrix is not positive" } else { ROUNDING });
            }
            let step =
                crate::select(&open, &(&square / &safe(&curvature)?)?, 0.0)?.to_dtype(wide)?;
            x = (&x + &(&step * &direction)?)?;
            residual = (&residual - &(&step * &image)?)?;
            let next = dot(&residual, &residual)?;
            let keep = crate::select(&open, &(&next / &safe(&square)?)?, 0.0)?.to_dtype(wide)?;
            direction = (&residual + &(&keep * &direction)?)?;
            square = next;
            iterations += 1;
        };
        // What the recurrence says may be far too good: one more product tells the truth, which decides.
        let rest = match iterations {
            0 => residual.clone(),
            _ => (&rows - &options.part(done..done, |options| image(&x, options))?)?,
        };
        let rest_square = dot(&rest, &rest)?;
        let truth = largest(&rest_square)?;
        if truth <= tol {
            break (None, truth);
        }
        if why.is_some() || first.is_some() || !truth.is_finite() || iterations == most {
            // Steps beyond a first solution can do it no harm.
            let best = first.as_ref().map_or(truth, |(_, before)| before.min(truth));
            let is_solved = first.is_some() || why.is_none();
            if is_solved && best <= allowed(&x)? {
                break (None, truth);
            }
            let why = why.unwrap_or(ROUNDING);
            let why = if best.is_finite() { why } else { "numbers are not finite" };
            break (Some(why), truth);
        }
        // Once more from what is left, a little beyond the tolerance so that the truth meets it.
        first = Some((x.clone(), truth));
        limit = (&limit * 0.25)?;
        (direction, residual, square) = (rest.clone(), rest, rest_square);
    };
    let (x, residual) = match first {
        Some((first, residual)) if truth.is_nan() || truth > residual => (first, residual),
        _ => (x, truth),
    };
    let x = (&x * &peak)?.to_dtype(dtype)?;
    let x = if b.ndim() == 1 { x.squeeze(Some(&[1]))? } else { x };
    Ok(Solution { x, residual, iterations, failure })
}

#[cfg(test)]
mod tests;
