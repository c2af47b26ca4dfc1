//! Linear systems (alpha + K) a = b by conjugate gradients, K never stored.
//!
//! All columns of b go through one product at a time, each with a step of its own; a column that is
//! done takes no further steps. Columns are scaled by their largest numbers and lengths are taken
//! in float64, so that nothing is lost at either end of the dtype. K must be symmetric and positive,
//! which nobody can check, but what betrays itself (a direction of no positive curvature, numbers
//! that are not finite) is told.

use tilework_error::{Error, Result};

use super::call::Options;
use super::genred::Genred;
use super::lazy::LazyTensor;
use crate::DType;
use crate::array::Array;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Solve {
    /// What is added to the diagonal.
    pub alpha: f64,
    /// The residual of each column, relative to its right-hand side, that is good enough. Where rounding
    /// keeps it larger, ten times as much is, and what one product in the dtype is off by, if that is
    /// less than half of its digits.
    pub tol: f64,
    /// The most steps; None is ten for each row, and 10,000 at most.
    pub maxiter: Option<usize>,
}

impl Default for Solve {
    fn default() -> Solve {
        Solve { alpha: 1e-10, tol: 1e-6, maxiter: None }
    }
}

const ROUNDING: &str = "rounding keeps the residual above the tolerance";

/// How many times the tolerance rounding may leave of the right-hand side: in float32 every product
/// is rounded by about the usual tolerance.
const SLACK: f64 = 10.0;

/// How many times the rounding of one product the steps may leave.
const STEPS: f64 = 32.0;

/// What conjugate gradients found.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The unknowns.
    pub x: Array,
    /// The largest residual of a column, relative to its right-hand side: that of `x` itself, which
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
        conjugate_gradient(|v, options| self.matmul_with(v, options), b, system, options)
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
        let product = |v: &Array, options: &Options<'_>| {
            let mut arrays = arrays.to_vec();
            arrays[unknown] = v;
            self.call_with(&arrays, options)?.only()
        };
        conjugate_gradient(product, b, system, options)
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
    let most = system.maxiter.unwrap_or_else(|| n.saturating_mul(10).min(10_000));
    // Columns of zeros are solved by zeros; dividing by one instead of zero keeps them so.
    let safe = |v: &Array| crate::select(&v.greater(0.0)?, v, 1.0);
    let peak = match n {
        0 => Array::ones_on(rows.device(), &[1], wide)?,
        _ => rows.to_dtype(wide)?.abs()?.max(-2)?.expand_dims(-2)?,
    };
    let peak = crate::select(&peak.equal(0.0)?, 1.0, &peak)?;
    let rows = (&rows.to_dtype(wide)? / &peak)?;
    let image = |v: &Array, options: &Options<'_>| -> Result<Array> {
        let image = product(&v.to_dtype(dtype)?, options)?.to_dtype(wide)?;
        &image + &(v * alpha)?
    };
    // One number for each column, of each batch.
    let dot = |u: &Array, v: &Array| {
        (&u.to_dtype(DType::Float64)? * &v.to_dtype(DType::Float64)?)?.sum(-2)?.expand_dims(-2)
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
        Ok(if product > least { product.min(eps.sqrt()).max(least) } else { least })
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
mod tests {
    use super::*;
    use crate::pairs::Progress;

    fn kernel(n: usize) -> LazyTensor {
        let x = Array::linspace(0.0..=1.0, n, DType::Float64).unwrap();
        let x = x.reshape(&[n as isize, 1]).unwrap();
        let d = LazyTensor::vi(&x).unwrap().sqdist(&LazyTensor::vj(&x).unwrap()).unwrap();
        (&d * -30.0).unwrap().exp().unwrap()
    }

    #[test]
    fn columns_are_solved_apart_and_zeros_stay() {
        let (k, system) = (kernel(40), Solve { alpha: 1e-2, tol: 1e-9, maxiter: None });
        let ones = Array::ones(&[40, 1], DType::Float64).unwrap();
        let ramp = Array::linspace(-1.0..=1.0, 40, DType::Float64).unwrap();
        let ramp = (&ramp.reshape(&[40, 1]).unwrap() * 1e6).unwrap();
        let zeros = Array::zeros(&[40, 1], DType::Float64).unwrap();
        let b = crate::concat(&[&ones, &ramp, &zeros], 1).unwrap();
        let solved = k.solve(&b, &system, &Options::default()).unwrap();
        assert!(solved.failure.is_none() && solved.residual <= 1e-9 && solved.iterations > 1);
        let a = solved.converged().unwrap();
        let back = (&k.matmul(&a).unwrap() + &(&a * 1e-2).unwrap()).unwrap();
        let error = (&back - &b).unwrap().abs().unwrap().max(0).unwrap().to_vec::<f64>().unwrap();
        assert!(error[0] < 1e-7 && error[1] < 1e-1 && error[2] == 0.0, "{error:?}");
    }

    #[test]
    fn progress_follows_the_residual_and_stops_the_work() {
        let (k, ones) = (kernel(40), Array::ones(&[40, 1], DType::Float64).unwrap());
        let system = Solve { alpha: 1e-3, tol: 1e-10, maxiter: None };
        let told = std::sync::Mutex::new(Vec::new());
        let listen = |fraction: f64| {
            told.lock().unwrap().push(fraction);
            true
        };
        let options = Options { progress: Some(Progress(&listen)), ..Options::default() };
        k.solve(&ones, &system, &options).unwrap().converged().unwrap();
        let told = told.into_inner().unwrap();
        assert!(told.is_sorted() && told.iter().any(|f| (0.1..0.9).contains(f)), "{told:?}");
        let stop = Options { progress: Some(Progress(&|_| false)), ..Options::default() };
        assert!(matches!(k.solve(&ones, &system, &stop), Err(Error::Interrupted(_))));
    }

    #[test]
    fn right_hand_sides_of_any_size_are_solved() {
        let system = Solve { alpha: 1.0, tol: 1e-5, maxiter: None };
        let x = Array::linspace(0.0..=1.0, 30, DType::Float64).unwrap();
        let exact = kernel(30).solve(&x, &system, &Options::default()).unwrap().x;
        for (dtype, sizes) in [
            (DType::Float32, &[1e-38, 1e-24, 1.0, 1e20, 1e37][..]),
            (DType::Float16, &[1e-4, 1.0, 1e4]),
            (DType::Float64, &[1e-200, 1e200]),
        ] {
            let narrow = x.to_dtype(dtype).unwrap().reshape(&[30, 1]).unwrap();
            let (xi, yj) = (LazyTensor::vi(&narrow).unwrap(), LazyTensor::vj(&narrow).unwrap());
            let k = (&xi.sqdist(&yj).unwrap() * -30.0).unwrap().exp().unwrap();
            for &size in sizes {
                let b = (&x * size).unwrap().to_dtype(dtype).unwrap();
                let solved = k.solve(&b, &system, &Options::default()).unwrap();
                let found = solved.converged().unwrap().to_dtype(DType::Float64).unwrap();
                let off = (&(&found / size).unwrap() - &exact).unwrap().abs().unwrap();
                let limit = if dtype == DType::Float16 { 1e-2 } else { 1e-4 };
                assert!(off.max(()).unwrap().item::<f64>().unwrap() < limit, "{dtype} {size}");
            }
        }
    }

    /// What was solved is judged by the solution and not by what the steps say of it.
    #[test]
    fn the_residual_of_the_solution_decides() {
        let x = crate::Rng::new(3).uniform(&[300, 1], DType::Float32).unwrap();
        let (xi, xj) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
        let k = (&xi.sqdist(&xj).unwrap() * -30.0).unwrap().exp().unwrap();
        let b = crate::Rng::new(4).normal(&[300], DType::Float32).unwrap();
        let solved = |alpha: f64, tol: f64| {
            let system = Solve { alpha, tol, maxiter: Some(3000) };
            k.solve(&b, &system, &Options::default()).unwrap()
        };
        let own = |alpha: f64, a: &Array| {
            let [a, b, x] = [a, &b, &x].map(|array| array.to_dtype(DType::Float64).unwrap());
            let (xi, xj) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
            let k = (&xi.sqdist(&xj).unwrap() * -30.0).unwrap().exp().unwrap();
            let a = a.reshape(&[300, 1]).unwrap();
            let image = (&k.matmul(&a).unwrap() + &(&a * alpha).unwrap()).unwrap();
            let rest = (&b - &image.reshape(&[300]).unwrap()).unwrap();
            let norm = |v: &Array| v.norm((), 2.0).unwrap().item::<f64>().unwrap();
            norm(&rest) / norm(&b)
        };
        let mut told = Vec::new();
        for (alpha, tol) in [(1e-4, 1e-6), (1e-2, 1e-6), (1e-2, 1e-4), (1.0, 1e-6)] {
            let solution = solved(alpha, tol);
            let truth = own(alpha, &solution.x);
            // Half of the digits of float32 are the most that rounding may take.
            let close = solution.residual <= 3.5e-4;
            assert_eq!(solution.failure.is_none(), close, "{alpha}, {tol}: {}", solution.residual);
            assert!(truth < 1.5 * solution.residual.max(tol), "{alpha}, {tol}: {truth}");
            told.push(solution.failure);
        }
        assert_eq!(told, [Some(ROUNDING), None, None, None]);
    }

    /// Steps that were misled are taken once more from what is left.
    #[test]
    fn what_steps_left_over_is_solved_once_more() {
        let b = Array::linspace(1.0..=2.0, 10, DType::Float64).unwrap();
        let system = Solve { alpha: 0.0, tol: 1e-9, maxiter: None };
        for (wrong, right) in [(1, true), (usize::MAX, false)] {
            let products = std::cell::Cell::new(0);
            let product = |v: &Array, _: &Options<'_>| {
                products.set(products.get() + 1);
                v * if products.get() % 2 == 1 && products.get() <= wrong { 2.01 } else { 2.0 }
            };
            let solution = conjugate_gradient(product, &b, &system, &Options::default()).unwrap();
            assert_eq!(solution.failure, (!right).then_some(ROUNDING));
            assert_eq!((solution.residual < 1e-9, solution.iterations), (right, 2));
        }
    }

    #[test]
    fn right_hand_sides_of_integers_are_refused() {
        let b = Array::ones(&[30], DType::Int64).unwrap();
        let refused = kernel(30).solve(&b, &Solve::default(), &Options::default());
        assert!(matches!(refused, Err(Error::DType(_))), "{refused:?}");
        let same = |v: &Array, _: &Options<'_>| Ok(v.clone());
        let refused = conjugate_gradient(same, &b, &Solve::default(), &Options::default());
        assert!(matches!(refused, Err(Error::DType(_))), "{refused:?}");
    }

    #[test]
    fn failures_tell_the_residual() {
        let k = kernel(30);
        let b = Array::linspace(-1.0..=2.0, 30, DType::Float64).unwrap();
        let few = Solve { alpha: 0.0, tol: 1e-12, maxiter: Some(3) };
        let stopped = k.solve(&b, &few, &Options::default()).unwrap();
        assert!(stopped.residual > 1e-12 && stopped.iterations == 3);
        let message = stopped.converged().unwrap_err().to_string();
        assert!(message.contains("the limit of steps is reached: the residual is"), "{message}");
        let negative = (&k * -1.0).unwrap();
        let message = negative.solve(&b, &Solve::default(), &Options::default()).unwrap();
        assert_eq!(message.failure, Some("the matrix is not positive"));
        let nan = (&b * f64::NAN).unwrap();
        let message = k.solve(&nan, &Solve::default(), &Options::default()).unwrap();
        assert_eq!(message.failure, Some("numbers are not finite"));
        for (tol, alpha) in [(f64::NAN, 1.0), (-1.0, 1.0), (f64::INFINITY, 1.0), (1e-6, f64::NAN)] {
            let system = Solve { alpha, tol, maxiter: None };
            let message = k.solve(&b, &system, &Options::default()).unwrap_err().to_string();
            assert!(message.contains("tol at least 0"), "{message}");
        }
        let oblong = LazyTensor::vi(&b.reshape(&[30, 1]).unwrap()).unwrap();
        assert!(oblong.solve(&b, &few, &Options::default()).is_err());
    }
}
