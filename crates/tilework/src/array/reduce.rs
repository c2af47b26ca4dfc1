//! Reductions over axes and running reductions: the methods made from the rows of folds.

use tilework_backend::{Reduce, Request, Scan};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Dims, Layout, MAX_AXES, normalize_axes, normalize_axis};
use tilework_ops::fold::OverNothing;
use tilework_ops::{DType, FoldId};

use super::Array;

/// Which axes are reduced: `()` or `None` for all, a number for one, a list for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axes {
    /// All axes.
    All,
    /// These; negative numbers count from the end.
    Some(Vec<isize>),
}

impl From<()> for Axes {
    fn from((): ()) -> Axes {
        Axes::All
    }
}

impl From<isize> for Axes {
    fn from(axis: isize) -> Axes {
        Axes::Some(vec![axis])
    }
}

impl From<Option<isize>> for Axes {
    fn from(axis: Option<isize>) -> Axes {
        axis.map_or(Axes::All, Axes::from)
    }
}

impl From<&[isize]> for Axes {
    fn from(axes: &[isize]) -> Axes {
        Axes::Some(axes.to_vec())
    }
}

impl<const N: usize> From<[isize; N]> for Axes {
    fn from(axes: [isize; N]) -> Axes {
        Axes::Some(axes.to_vec())
    }
}

/// What becomes of the axes that are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepDims {
    /// They go.
    No,
    /// They stay, with length 1.
    Yes,
}

/// The numbers of all axes that there can be.
static NUMBERS: [usize; MAX_AXES] = {
    let mut numbers = [0; MAX_AXES];
    let mut axis = 0;
    while axis < MAX_AXES {
        numbers[axis] = axis;
        axis += 1;
    }
    numbers
};

impl Array {
    /// A reduction of the table; what every method of the same name calls.
    ///
    /// `correction` is what variances subtract from the count.
    pub fn reduce(
        &self,
        fold: FoldId,
        axes: impl Into<Axes>,
        keepdims: KeepDims,
        correction: f64,
    ) -> Result<Array> {
        let row = fold.row();
        let axes = axes.into();
        if fold == FoldId::Var && self.dtype().is_complex() {
            // The mean square distance from the mean is that of both parts together.
            let part = |part: Array| part.reduce(fold, axes.clone(), keepdims, correction);
            return &part(self.real_view()?)? + &part(self.imag_view()?)?;
        }
        let mut some;
        let axes = match axes {
            Axes::All => &NUMBERS[..self.ndim()],
            Axes::Some(axes) => {
                some = normalize_axes(row.name, &axes, self.ndim())?;
                some.sort_unstable();
                &some[..]
            }
        };
        let accumulates = row.accumulates(self.dtype()).ok_or_else(|| {
            Error::dtype(row.name, format!("{} has no meaning here", self.dtype()))
        })?;
        let kept: Dims = match axes.len() == self.ndim() {
            true => Dims::new(),
            false => (0..self.ndim())
                .filter(|axis| !axes.contains(axis))
                .map(|axis| self.shape()[axis])
                .collect(),
        };
        let over_nothing = axes.iter().any(|&axis| self.shape()[axis] == 0);
        if over_nothing && row.nothing == OverNothing::Error {
            let message = format!(
                "shape {} has no element to choose from along {}",
                tuple(self.shape()),
                tuple(axes)
            );
            return Err(Error::value(row.name, message));
        }
        let chooses = matches!(fold, FoldId::Max | FoldId::Min);
        let result = if chooses && axes.iter().all(|&axis| self.shape()[axis] == 1) {
            // Of one element each there is nothing to choose.
            let copy = self.copy().map_err(|error| error.of(row.name))?;
            copy.with_layout(Layout::contiguous(&kept)?)?
        } else {
            let mut fresh =
                self.device.allocate(row.name, &kept, row.result(accumulates), false)?;
            let (input, output) = (self.borrow(), fresh.target());
            let request = Request::Reduce(Reduce { fold, input, axes, correction, output });
            self.device.run(row.name, &request)?;
            Array::from_fresh(fresh, self.device)
        };
        if keepdims == KeepDims::No {
            return Ok(result);
        }
        let shape: Dims = (0..self.ndim())
            .map(|axis| if axes.contains(&axis) { 1 } else { self.shape()[axis] })
            .collect();
        result.with_layout(Layout::contiguous(&shape)?)
    }

    /// Square root of the variance.
    pub fn std(&self, axes: impl Into<Axes>, correction: f64) -> Result<Array> {
        self.std_over(axes.into(), correction, KeepDims::No)
    }

    /// Square root of the variance, with axes of length 1.
    pub fn std_keepdims(&self, axes: impl Into<Axes>, correction: f64) -> Result<Array> {
        self.std_over(axes.into(), correction, KeepDims::Yes)
    }

    fn std_over(&self, axes: Axes, correction: f64, keepdims: KeepDims) -> Result<Array> {
        // Half as many orders of magnitude have squares that half types hold: the root comes first.
        let wide = self.to_dtype(self.dtype().computes_in())?;
        let var = wide.reduce(FoldId::Var, axes, keepdims, correction);
        let std = var.map_err(|error| error.of("std"))?.sqrt()?;
        if self.dtype().is_half() { std.to_dtype(self.dtype()) } else { Ok(std) }
    }

    /// Variance over count minus `correction`; of complex numbers, too, a real number.
    ///
    /// ```
    /// use tilework::{Array, Complex};
    /// let x = Array::from_slice(&[Complex::new(1.0f64, 2.0), Complex::new(3.0, 6.0)])?;
    /// assert_eq!(x.var((), 0.0)?.item::<f64>()?, 5.0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn var(&self, axes: impl Into<Axes>, correction: f64) -> Result<Array> {
        self.reduce(FoldId::Var, axes, KeepDims::No, correction)
    }

    /// Variance over count minus `correction`, with axes of length 1.
    pub fn var_keepdims(&self, axes: impl Into<Axes>, correction: f64) -> Result<Array> {
        self.reduce(FoldId::Var, axes, KeepDims::Yes, correction)
    }

    /// Exponentials that sum to one along an axis, without overflow.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1e4f64, 1e4])?;
    /// assert_eq!(x.softmax(0)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn softmax(&self, axis: isize) -> Result<Array> {
        normalize_axis("softmax", axis, self.ndim())?;
        if self.dtype().is_complex() {
            let message = format!("{} has no meaning here", self.dtype());
            return Err(Error::dtype("softmax", message));
        }
        let dtype = if self.dtype().is_inexact() { self.dtype() } else { DType::Float64 };
        // Exponentials of the half types and their sums, which may be too large, are rounded last.
        let x = self.to_dtype(dtype.computes_in())?;
        if x.is_empty() {
            return x.astype(dtype);
        }
        let result = (&x - &x.max_keepdims(axis)?)?.exp()?;
        result.div_assign(&result.sum_keepdims(axis)?)?;
        result.to_dtype(dtype)
    }

    /// Largest minus smallest element.
    pub fn ptp(&self, axes: impl Into<Axes>) -> Result<Array> {
        let axes = axes.into();
        &self.max(axes.clone())? - &self.min(axes)?
    }

    /// The vector norm of this order over axes: 2 for Euclid's, 1, infinities, 0 for the number of
    /// elements that are not zero, or any other power.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[3.0f64, -4.0])?;
    /// assert_eq!(x.norm((), 2.0)?.item::<f64>()?, 5.0);
    /// assert_eq!(x.norm((), f64::INFINITY)?.item::<f64>()?, 4.0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn norm(&self, axes: impl Into<Axes>, order: f64) -> Result<Array> {
        self.norm_over(axes.into(), order, KeepDims::No)
    }

    /// The vector norm of this order, with axes of length 1.
    pub fn norm_keepdims(&self, axes: impl Into<Axes>, order: f64) -> Result<Array> {
        self.norm_over(axes.into(), order, KeepDims::Yes)
    }

    fn norm_over(&self, axes: Axes, order: f64, keepdims: KeepDims) -> Result<Array> {
        let dtype = if self.dtype().is_inexact() { self.dtype().part() } else { DType::Float64 };
        let fold = |array: &Array, fold| array.reduce(fold, axes.clone(), keepdims, 0.0);
        if order == 2.0 && !self.dtype().is_complex() {
            return fold(self, FoldId::Norm);
        }
        // Powers of the half types are summed before they are rounded to them.
        // Integers have no absolute value of their smallest number, floats do.
        let size = match self.dtype().is_inexact() {
            true => self.abs()?.to_dtype(dtype.computes_in())?,
            false => self.to_dtype(dtype)?.abs()?,
        };
        let norm = match order {
            f64::INFINITY => fold(&size, FoldId::Max),
            f64::NEG_INFINITY => fold(&size, FoldId::Min),
            0.0 => fold(&size, FoldId::CountNonzero),
            1.0 => fold(&size, FoldId::Sum),
            2.0 => fold(&size, FoldId::Norm),
            _ => fold(&size.pow(order)?, FoldId::Sum)?.pow(1.0 / order),
        };
        norm?.to_dtype(dtype)
    }

    /// Running sums along an axis.
    pub fn cumulative_sum(&self, axis: isize) -> Result<Array> {
        self.scan(FoldId::Sum, axis)
    }

    /// Running products along an axis.
    pub fn cumulative_prod(&self, axis: isize) -> Result<Array> {
        self.scan(FoldId::Prod, axis)
    }

    /// A running reduction along an axis, for folds whose row names one: sum, prod, max, min.
    pub fn scan(&self, fold: FoldId, axis: isize) -> Result<Array> {
        let row = fold.row();
        let operation = row.running.ok_or_else(|| {
            let running =
                FoldId::ALL.into_iter().map(FoldId::row).filter(|row| row.running.is_some());
            let names: Vec<&str> = running.map(|row| row.name).collect();
            let message = format!("only {} run along an axis", names.join(", "));
            Error::unsupported(row.name, message)
        })?;
        let axis = normalize_axis(operation, axis, self.ndim())?;
        let accumulates = row.accumulates(self.dtype()).ok_or_else(|| {
            Error::dtype(operation, format!("{} has no meaning here", self.dtype()))
        })?;
        let mut fresh =
            self.device.allocate(operation, self.shape(), row.result(accumulates), false)?;
        let (input, output) = (self.borrow(), fresh.target());
        self.device.run(operation, &Request::Scan(Scan { fold, input, axis, output }))?;
        Ok(Array::from_fresh(fresh, self.device))
    }
}

macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident $keep:ident $fold:ident),* $(,)?) => {
        /// Reductions over all axes (`()`), one (`0`, `-1`) or several (`[0, 2]`); the twin whose
        /// name ends in `_keepdims` leaves axes of length 1 in their place.
        impl Array {
            $(
                $(#[$doc])*
                pub fn $name(&self, axes: impl Into<Axes>) -> Result<Array> {
                    self.reduce(FoldId::$fold, axes, KeepDims::No, 0.0)
                }
                $(#[$doc])*
                pub fn $keep(&self, axes: impl Into<Axes>) -> Result<Array> {
                    self.reduce(FoldId::$fold, axes, KeepDims::Yes, 0.0)
                }
            )*
        }
    };
}

folds! {
    /// Sum of the elements; integers are summed in 64 bits.
    sum sum_keepdims Sum,
    /// Product of the elements; integers are multiplied in 64 bits.
    prod prod_keepdims Prod,
    /// Largest element; NaN if there is one.
    max max_keepdims Max,
    /// Smallest element; NaN if there is one.
    min min_keepdims Min,
    /// Index of the largest element, the first of equals.
    argmax argmax_keepdims ArgMax,
    /// Index of the smallest element, the first of equals.
    argmin argmin_keepdims ArgMin,
    /// Whether any element is not zero.
    any any_keepdims Any,
    /// Whether all elements are not zero.
    all all_keepdims All,
    /// How many elements are not zero.
    count_nonzero count_nonzero_keepdims CountNonzero,
    /// Arithmetic mean.
    mean mean_keepdims Mean,
    /// Logarithm of the sum of exponentials.
    logsumexp logsumexp_keepdims LogSumExp,
}
