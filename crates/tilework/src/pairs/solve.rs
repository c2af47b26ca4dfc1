//! Linear systems (alpha + K) a = b by conjugate gradients, K never stored.
//!
//! All columns of b go through one product at a time. Where the matrix does not mix them, each has steps
//! and a tolerance of its own, and one that is done takes no further steps; where it may, they
//! are one vector. Right-hand sides are scaled by their largest numbers and lengths are taken in
//! float64, so that nothing is lost at either end of the dtype. K must be symmetric and positive,
//! which nobody can check, but what betrays itself (a direction of no positive curvature, numbers
//! that are not finite) is told. [`conjugate_gradient`] is the plan, `System` what is to be solved,
//! and the steps are in `steps`.

mod steps;

use tilework_error::{Error, Result};
use tilework_formula::{Expr, Variable};

use steps::State;

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

    /// The dot product of the two vectors of each system, in float64.
    fn dot(self, u: &Array, v: &Array) -> Result<Array> {
        let products = (&u.to_dtype(DType::Float64)? * &v.to_dtype(DType::Float64)?)?;
        products.sum_keepdims(self.axes())
    }
}

// Why a solution is not good enough.
const ROUNDING: &str = "rounding keeps the residual above the tolerance";
const NOT_FINITE: &str = "numbers are not finite";
const NOT_POSITIVE: &str = "the matrix is not positive";
const OUT_OF_STEPS: &str = "the limit of steps is reached";

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
    solve: &Solve,
    options: &Options<'_>,
) -> Result<Solution> {
    let system = System::new(&product, b, columns, solve, options)?;
    let mut state = State::new(&system)?;
    let (failure, truth) = loop {
        let stopped = state.iterate(&system)?;
        // What the steps say of the residual may be far too good: one more product tells the truth.
        let rest = state.rest(&system)?;
        if rest.relative <= solve.tol {
            break (None, rest.relative);
        }
        let can_improve = stopped.is_none() && state.first.is_none() && rest.relative.is_finite();
        if !can_improve || state.iterations == system.most {
            break (state.failure(&system, stopped, rest.relative)?, rest.relative);
        }
        state.improve(rest)?;
    };
    let iterations = state.iterations;
    let (x, residual) = state.best(truth);
    let x = (&x * &system.peak)?.to_dtype(system.dtype)?;
    let x = if b.ndim() == 1 { x.squeeze(Some(&[1]))? } else { x };
    Ok(Solution { x, residual, iterations, failure })
}

/// How many times the tolerance rounding may leave of the right-hand side: in float32 every product
/// is rounded by about the usual tolerance.
const SLACK: f64 = 10.0;

/// How many times the rounding of one product the steps may leave.
const STEPS: f64 = 32.0;

/// The share of digits of the dtype that a solution has at least, where rounding keeps more from it: so that what users of
/// KeOps solve in float32, thousands of points with 0.01 on the diagonal, is solved.
const DIGITS: f64 = 0.4;

/// Multiplies by K, with the options that it is given.
type Product<'a> = dyn Fn(&Array, &Options<'_>) -> Result<Array> + 'a;

/// What is to be solved, one system for each column or one for all, and how its vectors are measured.
struct System<'a> {
    product: &'a Product<'a>,
    columns: Columns,
    solve: &'a Solve,
    options: &'a Options<'a>,
    /// The dtype of b, in which products are taken.
    dtype: DType,
    /// The dtype of the steps: what halves are too narrow for is done in float32.
    wide: DType,
    /// The right-hand sides, divided by `peak`.
    rows: Array,
    /// The largest number of each right-hand side, without its sign; one where all are zero.
    peak: Array,
    /// The squared length of each of `rows`.
    scale: Array,
    /// The most steps.
    most: usize,
}

impl<'a> System<'a> {
    fn new(
        product: &'a Product<'a>,
        b: &Array,
        columns: Columns,
        solve: &'a Solve,
        options: &'a Options<'a>,
    ) -> Result<System<'a>> {
        check(b, solve)?;
        let rows = if b.ndim() == 1 { b.expand_dims(1)? } else { b.clone() };
        let most = solve.maxiter.unwrap_or_else(|| usual_steps(&rows, columns));
        let dtype = rows.dtype();
        let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let peak = match rows.len() {
            0 => Array::ones_on(rows.device(), &[1], wide)?,
            _ => rows.to_dtype(wide)?.abs()?.max_keepdims(columns.axes())?,
        };
        // Not `or_one`: a NaN stays one here, so that it is told.
        let peak = crate::select(&peak.equal(0.0)?, 1.0, &peak)?;
        let rows = (&rows.to_dtype(wide)? / &peak)?;
        let scale = columns.dot(&rows, &rows)?;
        Ok(System { product, columns, solve, options, dtype, wide, rows, peak, scale, most })
    }

    /// (alpha + K) v, the left-hand side of what is solved.
    fn image(&self, v: &Array, options: &Options<'_>) -> Result<Array> {
        let image = (self.product)(&v.to_dtype(self.dtype)?, options)?.to_dtype(self.wide)?;
        &image + &(v * self.solve.alpha)?
    }

    /// The largest length of a vector, relative to the right-hand side of its system, from the squared
    /// length of each.
    fn relative(&self, squares: &Array) -> Result<f64> {
        match squares.len() {
            0 => Ok(0.0),
            _ => (squares / &or_one(&self.scale)?)?.sqrt()?.max(())?.item::<f64>(),
        }
    }

    /// The residual of `x` that must be put up with, relative to the right-hand side.
    ///
    /// What is rounded to halves is known to their accuracy only; elsewhere the terms of one product
    /// tell how far it is off.
    fn allowed(&self, x: &Array) -> Result<f64> {
        let eps = self.wide.finfo()?.eps;
        let least = (SLACK * self.solve.tol).max(4.0 * self.dtype.finfo()?.eps);
        let terms = self.image(&x.abs()?, &Options { progress: None, ..*self.options })?;
        let product = STEPS * eps * self.relative(&self.columns.dot(&terms, &terms)?)?;
        // A NaN is no allowance.
        Ok(if product > least { product.min(eps.powf(DIGITS)).max(least) } else { least })
    }
}

/// Refuses settings and right-hand sides that nothing can be solved with.
fn check(b: &Array, solve: &Solve) -> Result<()> {
    let Solve { alpha, tol, .. } = *solve;
    // A NaN is not in the range either.
    if !(0.0..f64::INFINITY).contains(&tol) || !alpha.is_finite() {
        let message = format!("tol is {tol} and alpha {alpha}: numbers, and tol at least 0");
        return Err(Error::value("solve", message));
    }
    if !b.dtype().is_float() {
        let message = format!("the right-hand side is float32 or another float, not {}", b.dtype());
        return Err(Error::dtype("solve", message));
    }
    Ok(())
}

/// The most steps where the caller names none ([`Solve::maxiter`]).
fn usual_steps(rows: &Array, columns: Columns) -> usize {
    let n = rows.shape().get(rows.ndim().saturating_sub(2)).copied().unwrap_or(0);
    let width = match columns {
        Columns::Apart => 1,
        Columns::Mixed => rows.shape().last().copied().unwrap_or(1),
    };
    n.saturating_mul(width).saturating_mul(10).min(10_000)
}

/// One in place of what is not above 0, to divide by: columns of zeros are solved by zeros, and stay so.
fn or_one(v: &Array) -> Result<Array> {
    crate::select(&v.greater(0.0)?, v, 1.0)
}

#[cfg(test)]
mod tests;
