//! Gradients of reductions, which are reductions again.
//!
//! What the derivative needs beside the incoming gradient (the result, selected indices, ...) is
//! computed here and given as further variables; see `tilework_formula::Adjoint`. Parameters add up
//! their rows, broadcast batches are summed.

use tilework_error::{Error, Result, tuple};
use tilework_formula::reduction::Slope;
use tilework_formula::{Category, Expr, Need, Reduction, Variable};
use tilework_layout::Dims;
use tilework_ops::DType;

use super::call::{Call, Options};
use super::genred::axis_of;
use super::lazy::{self, LazyTensor};
use super::number::Numbered;
use super::variable::Extent;
use crate::array::Array;
use crate::s;

/// What indices are cut at where a dtype does not have them all: exact in float32, and so is what is left
/// of any index that a computer counts to.
const HALF: i64 = 1 << 24;

/// Indices as numbers of a dtype, in one part or in two, the high ones before the low ones.
fn as_numbers(indices: &Array, parts: usize, dtype: DType) -> Result<Array> {
    if parts == 1 {
        return indices.to_dtype(dtype);
    }
    let high = indices.floor_divide(HALF)?;
    let low = (indices - &(&high * HALF)?)?;
    crate::concat(&[&high.astype(dtype)?, &low.astype(dtype)?], -1)
}

fn is_index(need: Need) -> bool {
    matches!(need, Need::Selected | Need::Index)
}

impl LazyTensor {
    /// The gradient of a reduction towards a variable: what the sum of `e` times the result changes
    /// with it. `e` has the shape of the result, the gradient that of the variable's array as rows: `(..., M, D)` of i,
    /// `(..., N, D)` of j, `(..., D)` of a parameter, also where a tensor was made of `(..., M, 1, D)` and the like.
    ///
    /// Extremes pass the gradient to the selected elements. `k` and sums are those of the options.
    ///
    /// ```
    /// use tilework::pairs::{LazyTensor, Options};
    /// use tilework::{Array, DType};
    /// let x = LazyTensor::vi(&Array::from_nested(&[[1.0f64], [2.0]])?)?;
    /// let y = LazyTensor::vj(&Array::from_nested(&[[0.0f64], [5.0], [7.0]])?)?;
    /// let e = Array::ones(&[2, 1], DType::Float64)?;
    /// let g = x.sqdist(&y)?.reduction_grad("Sum", 1, None, &x, &e, &Options::default())?;
    /// assert_eq!(g.to_vec::<f64>()?, [-18.0, -12.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn reduction_grad(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        variable: &LazyTensor,
        e: &Array,
        options: &Options<'_>,
    ) -> Result<Array> {
        let (work, of) = Work::new(self, reduction, axis, weight, &[variable], options)?;
        work.gradient_towards(of[0], e, None, options)
    }
}

/// A reduction with all that its gradients need.
pub(super) struct Work {
    pub(super) reduction: Reduction,
    /// By the position of their variable.
    pub(super) arrays: Vec<Array>,
    pub(super) extent: Extent,
    pub(super) dtype: DType,
}

impl Work {
    /// The work on a reduction of a tensor, and the variables as it numbers them.
    pub(super) fn new(
        tensor: &LazyTensor,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        variables: &[&LazyTensor],
        options: &Options<'_>,
    ) -> Result<(Work, Vec<Variable>)> {
        let mut whole = tensor.bound.clone();
        whole.extend(weight.iter().flat_map(|weight| weight.bound.iter().cloned()));
        variables.iter().try_for_each(|v| lazy::check_has(&whole, &v.bound))?;
        let others: Vec<&LazyTensor> = variables.iter().copied().chain(weight).collect();
        let Numbered { exprs, arrays, extent } = tensor.numbered(&others)?;
        let weight = exprs.get(1 + variables.len());
        let reduction = Reduction::new(reduction, &exprs[0], axis_of(axis)?, options.k, weight)?;
        let mut of = Vec::with_capacity(variables.len());
        for (variable, expr) in variables.iter().zip(&exprs[1..]) {
            match expr.as_variable().filter(|_| variable.is_own_variable()) {
                Some(found) => of.push(found),
                None => {
                    let message = "the gradient is taken towards a variable, made by vi, vj or pm";
                    return Err(Error::value("grad", message));
                }
            }
        }
        Ok((Work::of(reduction, arrays, extent)?, of))
    }

    /// The work on a reduction whose arrays fit its variables.
    pub(super) fn of(reduction: Reduction, arrays: Vec<Array>, extent: Extent) -> Result<Work> {
        let dtype = extent.dtype.ok_or_else(|| Error::value("grad", "there is no array"))?;
        Ok(Work { reduction, arrays, extent, dtype })
    }

    /// The gradient towards a variable; `value` is that of the reduction, where somebody has it.
    pub(super) fn gradient_towards(
        &self,
        of: Variable,
        e: &Array,
        value: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<Array> {
        let dtype = self.goes_on_in(&[of]);
        if dtype == self.dtype {
            return self.gradient(of, e, value, options);
        }
        self.checked(e)?;
        self.cast(dtype)?.gradient(of, &e.astype(dtype)?, None, options)?.astype(self.dtype)
    }

    /// The dtype of what is kept from one pass over the pairs for the next, or summed after the last:
    /// that of the arithmetic. A logarithm of hundreds, rounded to a half, is off by whole factors.
    pub(super) fn goes_on_in(&self, of: &[Variable]) -> DType {
        let is_summed = |variable: &Variable| {
            let shape = self.arrays[variable.position].shape();
            variable.category == Category::Parameter
                || shape[..shape.len() - 2] != self.extent.batch[..]
        };
        match self.reduction.saved().is_empty() && !of.iter().any(is_summed) {
            true => self.dtype,
            false => self.dtype.computes_in(),
        }
    }

    pub(super) fn cast(&self, dtype: DType) -> Result<Work> {
        Ok(Work {
            reduction: self.reduction.clone(),
            arrays: self.arrays.iter().map(|array| array.astype(dtype)).collect::<Result<_>>()?,
            extent: Extent { dtype: Some(dtype), ..self.extent.clone() },
            dtype,
        })
    }

    pub(super) fn run(
        &self,
        reduction: &Reduction,
        arrays: &[Array],
        options: &Options<'_>,
    ) -> Result<Array> {
        Call::new(reduction, arrays, &self.extent).run(options)?.only()
    }

    fn gradient(
        &self,
        of: Variable,
        e: &Array,
        value: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<Array> {
        let reduction = &self.reduction;
        let (axis, width) = (reduction.axis(), reduction.width());
        let e = self.checked(e)?;
        let mut arrays = self.arrays.clone();
        let mut bind = |array: Array, dim: usize, category: Category| {
            arrays.push(array);
            Expr::variable(Variable { position: arrays.len() - 1, dim, category })
        };
        let incoming = bind(e, width, axis.survivor())?;
        let (needs, mut saved) = (reduction.saved(), Vec::new());
        let by =
            needs.iter().map(|need| reduction.saving(need.need)).collect::<Result<Vec<_>>>()?;
        // As many passes over the pairs as there are needs that are reductions and not known, and the last.
        let known = |need: Need| value.filter(|_| need == Need::Result);
        let passes =
            needs.iter().zip(&by).filter(|(need, by)| by.is_some() && known(need.need).is_none());
        let passes = 1 + passes.count();
        let parts = self.index_parts()?;
        for (need, by) in needs.into_iter().zip(by) {
            let pass = saved.len().min(passes - 1);
            let known = known(need.need);
            let made = |options: &Options<'_>| self.saved(need.need, by.as_ref(), known, options);
            let parts = if is_index(need.need) { parts } else { 1 };
            saved.push(bind(options.pass(pass, passes, made)?, parts * need.dim, need.category)?);
        }
        let adjoint = reduction.gradient(&Expr::variable(of)?, &incoming, &saved)?;
        let options = Options { k: None, ..*options };
        let run = |options: &Options<'_>| self.run(&adjoint.reduction, &arrays, options);
        let mut result = options.pass(passes - 1, passes, run)?;
        if adjoint.sum_rows {
            result = result.sum(-2)?;
        }
        self.summed_to(result, self.arrays[of.position].shape())
    }

    /// The incoming gradient in the shape of the result, K and components on one axis.
    pub(super) fn checked(&self, e: &Array) -> Result<Array> {
        let (rows, width) = (self.rows(), self.reduction.width());
        let wanted = Call::new(&self.reduction, &self.arrays, &self.extent).outline().shape;
        // K values of vectors may lie on one axis, and numbers on none.
        let flat: Dims = rows.iter().copied().chain([width]).collect();
        let shape = e.shape();
        let fits = shape == wanted || shape == &flat[..] || (width == 1 && shape == &rows[..]);
        if !fits {
            let (shape, wanted) = (tuple(shape), tuple(&wanted));
            let message = format!("the incoming gradient has shape {shape}, the result {wanted}");
            return Err(Error::shape("grad", message));
        }
        if e.dtype() != self.dtype {
            let message =
                format!("the incoming gradient is {}, the variables are {}", e.dtype(), self.dtype);
            return Err(Error::dtype("grad", message));
        }
        self.in_rows(e, self.reduction.width())
    }

    /// The batch axes of results, and their rows.
    fn rows(&self) -> Dims {
        let rows = self.extent.rows(self.reduction.axis().survivor());
        self.extent.batch.iter().copied().chain([rows]).collect()
    }

    /// A result with all the numbers of a row on one axis.
    fn in_rows(&self, result: &Array, width: usize) -> Result<Array> {
        let shape: Vec<isize> = self.rows().iter().chain([&width]).map(|&n| n as isize).collect();
        result.reshape(&shape)
    }

    /// In how many numbers an index is compared: they must be exact, and points are not to be copied to a
    /// wider dtype for their sake.
    fn index_parts(&self) -> Result<usize> {
        let count = self.extent.rows(self.reduction.axis().reduced());
        // The gap behind a number is eps times the power of two below it.
        let is_exact = count as f64 <= 2.0 / self.dtype.finfo()?.eps;
        Ok(if is_exact { 1 } else { 2 })
    }

    /// One of the things that derivatives need, which takes a pass over the pairs if `by` is one and its result is not known.
    fn saved(
        &self,
        need: Need,
        by: Option<&Reduction>,
        known: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<Array> {
        let device = self.extent.device.unwrap_or_else(crate::Device::current);
        let count = self.extent.rows(self.reduction.axis().reduced());
        match by {
            Some(by) => {
                let mut result = match known {
                    Some(known) => known.clone(),
                    None => self.run(by, &self.arrays, options)?,
                };
                // A row without exponentials passes nothing on: exp(F - infinity) is 0.
                let lifted =
                    |top: &Array| crate::select(&top.equal(f64::NEG_INFINITY)?, f64::INFINITY, top);
                match by.row().slope {
                    Slope::LogSumExp if by.weight().is_none() => result = lifted(&result)?,
                    Slope::Shifted => {
                        let top = lifted(&result.slice(&s![Ellipsis, 0..1])?)?;
                        let sums = result.slice(&s![Ellipsis, 1..])?;
                        result = crate::concat(&[&top, &sums], -1)?;
                    }
                    _ => {}
                }
                let result = self.in_rows(&result, by.width())?;
                match is_index(need) {
                    true => as_numbers(&result, self.index_parts()?, self.dtype),
                    false => result.astype(self.dtype),
                }
            }
            None if need == Need::Index => {
                let parts = self.index_parts()?;
                let exact = if parts == 1 { self.dtype } else { DType::Int64 };
                let indices = Array::arange_on(device, 0, count as i64, 1, exact)?;
                as_numbers(&indices.reshape(&[count as isize, 1])?, parts, self.dtype)
            }
            None => Array::full_on(device, &[1], count as f64, self.dtype),
        }
    }

    /// Sums over the batch axes that a variable was broadcast along.
    pub(super) fn summed_to(&self, result: Array, shape: &[usize]) -> Result<Array> {
        let added = result.ndim() - shape.len();
        let broadcast = |axis: &usize| {
            *axis < added || (shape[axis - added] == 1 && result.shape()[*axis] != 1)
        };
        let axes: Vec<isize> =
            (0..result.ndim()).filter(broadcast).map(|axis| axis as isize).collect();
        let summed = if axes.is_empty() { result } else { result.sum(&axes[..])? };
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        summed.reshape(&shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_is_towards_a_variable_and_not_towards_its_memory() {
        let x = Array::from_nested(&[[1.0f64], [2.0]]).unwrap();
        let y = LazyTensor::vj(&Array::from_nested(&[[3.0f64], [5.0]]).unwrap()).unwrap();
        let gradient = |other: &Array| {
            let (a, b) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vi(other).unwrap());
            let f = a.multiply(&b).unwrap().multiply(&y).unwrap();
            let options = Options::default();
            let both = f.value_and_grad("Sum", 1, None, &[&a], None, &options).unwrap().1;
            let e = Array::ones(&[2, 1], DType::Float64).unwrap();
            let one = f.reduction_grad("Sum", 1, None, &a, &e, &options).unwrap();
            assert_eq!(both[0].to_vec::<f64>().unwrap(), one.to_vec::<f64>().unwrap());
            // A variable that the formula does not have is not taken for one that it has.
            let refused = |tensor: &LazyTensor, of: &LazyTensor, axis| {
                let error = tensor.reduction_grad("Sum", axis, None, of, &e, &options);
                error.unwrap_err().to_string()
            };
            let fresh = LazyTensor::vi(&x).unwrap();
            assert!(refused(&f, &fresh, 1).contains("another variable of this array"));
            let copied = LazyTensor::vi(&x.copy().unwrap()).unwrap();
            assert!(refused(&f, &copied, 1).contains("does not have this variable"));
            let turned = f.t().unwrap();
            assert!(refused(&turned, &a, 0).contains("x.T"));
            let again =
                turned.reduction_grad("Sum", 0, None, &a.t().unwrap(), &e, &options).unwrap();
            assert_eq!(again.to_vec::<f64>().unwrap(), one.to_vec::<f64>().unwrap());
            one.to_vec::<f64>().unwrap()
        };
        assert_eq!(gradient(&x), [8.0, 16.0]);
        assert_eq!(gradient(&x.copy().unwrap()), [8.0, 16.0]);
    }

    #[test]
    fn incoming_gradients_have_the_shape_of_the_result() {
        let column = Array::from_nested(&[[1.0f64], [2.0], [4.0]]).unwrap();
        let rows = Array::from_nested(&[[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
        let options = Options { k: Some(2), ..Options::default() };
        let y = LazyTensor::vj(&column).unwrap();
        for (x, name, right, wrong) in [
            (
                &column,
                "Sum",
                &[&[3, 1][..], &[3]][..],
                &[&[1, 3][..], &[3, 2], &[], &[1, 3, 1]][..],
            ),
            (&rows, "Sum", &[&[3, 2]], &[&[2, 3], &[6], &[3, 1], &[3]]),
            (&rows, "KMin", &[&[3, 2, 2], &[3, 4]], &[&[3, 2], &[4, 3], &[2, 2, 3], &[12]]),
        ] {
            let x = LazyTensor::vi(x).unwrap();
            let f = x.multiply(&y).unwrap();
            let options = Options { k: options.k.filter(|_| name == "KMin"), ..options };
            let gradient = |shape: &[usize], dtype: DType| {
                let e = Array::ones(shape, dtype)?;
                let both = f.value_and_grad(name, 1, None, &[&x], Some(&e), &options);
                let one = f.reduction_grad(name, 1, None, &x, &e, &options);
                assert_eq!(both.is_ok(), one.is_ok(), "{name} {shape:?}");
                one
            };
            for shape in right {
                assert!(gradient(shape, DType::Float64).is_ok(), "{name} {shape:?}");
                let other = gradient(shape, DType::Float32).unwrap_err();
                assert!(matches!(other, Error::DType(_)), "{other}");
            }
            for shape in wrong {
                let error = gradient(shape, DType::Float64).unwrap_err();
                assert!(error.to_string().contains("incoming gradient has shape"), "{error}");
            }
        }
    }

    #[test]
    fn a_product_passes_the_other_factors() {
        let x = LazyTensor::vi(&Array::from_nested(&[[1.0f64], [2.0]]).unwrap()).unwrap();
        for (y, wanted) in [
            ([2.0f64, -3.0, 5.0], [-15.0 * 9.0, 10.0 * 9.0, -6.0 * 9.0]),
            ([2.0, 0.0, 5.0], [0.0, 10.0 * 9.0, 0.0]),
            ([2.0, 0.0, -0.0], [0.0, 0.0, 0.0]),
        ] {
            let y = Array::from_slice(&y).unwrap().reshape(&[3, 1]).unwrap();
            let y = LazyTensor::vj(&y).unwrap();
            let f = x.multiply(&y).unwrap();
            let both = f.value_and_grad("Prod", 1, None, &[&y], None, &Options::default()).unwrap();
            assert_eq!(both.1[0].to_vec::<f64>().unwrap(), wanted);
        }
    }

    #[test]
    fn rows_over_nothing_pass_nothing_on() {
        let x = LazyTensor::vi(&Array::from_nested(&[[1.0f64], [2.0]]).unwrap()).unwrap();
        let none = Array::zeros(&[0, 1], DType::Float64).unwrap();
        let masked = Array::full(&[3, 1], f64::NEG_INFINITY, DType::Float64).unwrap();
        let agree = |f: &LazyTensor, name: &str| {
            let options = Options::default();
            let (value, both) = f.value_and_grad(name, 1, None, &[&x], None, &options).unwrap();
            let e = Array::ones(value.shape(), DType::Float64).unwrap();
            let one = f.reduction_grad(name, 1, None, &x, &e, &options).unwrap();
            assert_eq!(both[0].to_vec::<f64>().unwrap(), [0.0, 0.0], "{name}");
            assert_eq!(one.to_vec::<f64>().unwrap(), [0.0, 0.0], "{name}");
        };
        for name in [
            "Sum",
            "Mean",
            "Prod",
            "Min",
            "Max",
            "LogSumExp",
            "Max_SumShiftExp",
            "Any",
            "Count",
            "ArgMin",
        ] {
            agree(&x.multiply(&LazyTensor::vj(&none).unwrap()).unwrap(), name);
        }
        agree(&x.add(&LazyTensor::vj(&masked).unwrap()).unwrap(), "LogSumExp");
    }

    #[test]
    fn the_logarithm_of_shifted_sums_has_the_gradient_of_log_sum_exp() {
        let x = LazyTensor::vi(&Array::from_nested(&[[0.3f64], [-1.0]]).unwrap()).unwrap();
        let column = |y: &[f64]| Array::from_slice(y).unwrap().reshape(&[4, 1]).unwrap();
        let y = LazyTensor::vj(&column(&[1.0, 2.0, -0.5, 3.0])).unwrap();
        let mask = LazyTensor::vj(&column(&[0.0, 0.0, 0.0, f64::NEG_INFINITY])).unwrap();
        let f = x.multiply(&y).unwrap().multiply(&x).unwrap().add(&mask).unwrap();
        let options = Options::default();
        let gradient = |name: &str, e: &[f64]| {
            let e = Array::from_slice(e).unwrap().reshape(&[2, -1]).unwrap();
            f.value_and_grad(name, 1, None, &[&x], Some(&e), &options).unwrap()
        };
        let wanted = gradient("LogSumExp", &[1.0, 1.0]).1[0].to_vec::<f64>().unwrap();
        // d(m + log s) = dm + ds / s.
        let pairs = gradient("Max_SumShiftExp", &[0.0; 4]).0.to_vec::<f64>().unwrap();
        let e: Vec<f64> = pairs.chunks(2).flat_map(|pair| [1.0, 1.0 / pair[1]]).collect();
        let got = gradient("Max_SumShiftExp", &e).1[0].to_vec::<f64>().unwrap();
        for (got, wanted) in got.iter().zip(&wanted) {
            assert!((got - wanted).abs() < 1e-13 && wanted.is_finite(), "{got}, not {wanted}");
        }
    }

    /// Beyond what float32 counts exactly.
    #[test]
    fn gradients_over_many_indices_stay_in_the_dtype_of_the_points() {
        let n = (1usize << 24) + 5;
        let number = |value: f32| Array::from_nested(&[[value]]).unwrap();
        let flat = |value: f32| number(value).reshape(&[1]).unwrap();
        let x = LazyTensor::vi(&number(1.0)).unwrap();
        let [p, q] = [1e8, 1e8].map(|value| LazyTensor::pm(&flat(value)).unwrap());
        // In float32 the 1 is lost in 1e8, in float64 it is not.
        let seen = x.add(&p).unwrap().subtract(&q).unwrap().square().unwrap();
        let y = Array::zeros(&[n, 1], DType::Float32).unwrap();
        // Two neighbours that are one number of float32.
        let winner = n as isize - 2;
        y.set(&s![winner, ..], -1.0).unwrap();
        y.set(&s![winner - 1, ..], -0.5).unwrap();
        let y = LazyTensor::vj(&y).unwrap();
        let f = seen.add(&y).unwrap();
        let gradient = |name: &str, k: Option<usize>, of: &LazyTensor, e: &[f32]| {
            let options = Options { k, ..Options::default() };
            let e = Array::from_slice(e).unwrap().reshape(&[1, -1]).unwrap();
            f.reduction_grad(name, 1, None, of, &e, &options).unwrap()
        };
        for (name, k, e) in
            [("Mean", None, &[1.0][..]), ("Min", None, &[1.0]), ("KMin", Some(2), &[1.0, 3.0])]
        {
            assert_eq!(gradient(name, k, &x, e).to_vec::<f32>().unwrap(), [0.0], "{name}");
            if name == "Mean" {
                continue;
            }
            let towards_y = gradient(name, k, &y, e);
            let at = |row: isize| towards_y.slice(&s![row, 0]).unwrap().item::<f32>().unwrap();
            let others = if name == "KMin" { 3.0 } else { 0.0 };
            assert_eq!((at(winner), at(winner - 1), at(winner + 1)), (1.0, others, 0.0), "{name}");
            let all = towards_y.sum(()).unwrap().item::<f32>().unwrap();
            assert_eq!(all, 1.0 + others, "{name}");
        }
    }

    #[test]
    fn what_jumps_has_a_gradient_of_zero() {
        let x = LazyTensor::vi(&Array::from_nested(&[[1.0f32], [2.0]]).unwrap()).unwrap();
        let y = LazyTensor::vj(&Array::from_nested(&[[0.0f32], [5.0]]).unwrap()).unwrap();
        for name in ["Count", "ArgMin", "Any"] {
            let f = x.multiply(&y).unwrap();
            let both = f.value_and_grad(name, 1, None, &[&x], None, &Options::default()).unwrap();
            assert_eq!(both.1[0].to_vec::<f32>().unwrap(), [0.0, 0.0], "{name}");
        }
    }
}
