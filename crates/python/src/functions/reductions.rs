//! Statistical functions, any and all, and running sums: from the rows of reductions.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilework::{Array, Axes, DType, FoldId, KeepDims};

use crate::args::{Integers, axes, fits, one_axis, register, target};
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DTypeArg;
use crate::run::run;

/// What a reduction is asked for beside its operand.
pub struct Asked<'a, 'py> {
    pub fold: FoldId,
    pub axes: Axes,
    pub dtype: Option<DType>,
    pub keepdims: bool,
    pub correction: f64,
    pub root: bool,
    pub out: Option<&'a Bound<'py, PyAny>>,
}

impl Asked<'_, '_> {
    /// A reduction over axes with nothing particular about it.
    pub fn over(fold: FoldId, axes: Axes) -> Self {
        Asked { fold, axes, dtype: None, keepdims: false, correction: 0.0, root: false, out: None }
    }
}

/// A reduction; its result, or `out` where there is one.
#[inline]
pub fn reduce(py: Python<'_>, x: &Array, asked: Asked<'_, '_>) -> PyResult<Py<PyAny>> {
    let Asked { fold, axes, dtype, keepdims, correction, root, out } = asked;
    let operation = if root { "std" } else { fold.row().name };
    let result = run(py, x.len(), x.device(), || {
        let (cast, source);
        source = match dtype {
            Some(dtype) => {
                cast = x.to_dtype(dtype)?;
                &cast
            }
            None => x,
        };
        let axes = axes.clone();
        let result = match (root, keepdims) {
            (true, true) => source.std_keepdims(axes, correction),
            (true, false) => source.std(axes, correction),
            (false, true) => source.reduce(fold, axes, KeepDims::Yes, correction),
            (false, false) => source.reduce(fold, axes, KeepDims::No, correction),
        };
        let result = result.map_err(|error| error.of(operation))?;
        match dtype {
            // The variance of complex numbers is real.
            Some(dtype) if fold == FoldId::Var => result.to_dtype(dtype.part()),
            Some(dtype) => result.to_dtype(dtype),
            None => Ok(result),
        }
    })?;
    let Some(out) = out else { return PyArray(result).into_py_any(py) };
    let target = target(out, x.device())?;
    fits(&target, result.shape(), result.dtype(), false)?;
    run(py, result.len(), x.device(), || {
        target.assign(&result).map_err(|error| error.of(operation))
    })?;
    Ok(out.clone().unbind())
}

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, *, keepdims=false))]
        pub fn $name(
            py: Python<'_>,
            x: ArrayArg,
            axis: Option<Integers>,
            keepdims: bool,
        ) -> PyResult<Py<PyAny>> {
            reduce(py, &x.0, Asked { keepdims, ..Asked::over(FoldId::$fold, axes(axis)) })
        }
    )*};
}

macro_rules! with_dtype {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, dtype=None, *, keepdims=false))]
        pub fn $name(
            py: Python<'_>,
            x: ArrayArg,
            axis: Option<Integers>,
            dtype: Option<DTypeArg>,
            keepdims: bool,
        ) -> PyResult<Py<PyAny>> {
            let dtype = dtype.map(|dtype| dtype.0);
            reduce(py, &x.0, Asked { dtype, keepdims, ..Asked::over(FoldId::$fold, axes(axis)) })
        }
    )*};
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, /, axis=None, *, keepdims=false))]
        pub fn $name(
            py: Python<'_>,
            x: ArrayArg,
            axis: Option<isize>,
            keepdims: bool,
        ) -> PyResult<Py<PyAny>> {
            reduce(py, &x.0, Asked { keepdims, ..Asked::over(FoldId::$fold, one_axis(axis)) })
        }
    )*};
}

macro_rules! spreads {
    ($($(#[$doc:meta])* $name:ident $public:literal $root:literal)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(name = $public, signature = (x, /, axis=None, *, correction=0.0, keepdims=false))]
        pub fn $name(
            py: Python<'_>,
            x: ArrayArg,
            axis: Option<Integers>,
            correction: f64,
            keepdims: bool,
        ) -> PyResult<Py<PyAny>> {
            let plain = Asked::over(FoldId::Var, axes(axis));
            reduce(py, &x.0, Asked { keepdims, correction, root: $root, ..plain })
        }
    )*};
}

plain! {
    /// Largest element; NaN if there is one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.max(tw.asarray([[1, 5], [3, 2]]), axis=0).tolist()
    /// [3, 5]
    max Max
    /// Smallest element; NaN if there is one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.min(tw.asarray([3, 1, 2])).item()
    /// 1
    min Min
    /// Arithmetic mean.
    ///
    /// >>> import tilework as tw
    /// >>> tw.mean(tw.asarray([1, 2, 6])).item()
    /// 3.0
    mean Mean
    /// Whether all elements are not zero.
    ///
    /// >>> import tilework as tw
    /// >>> tw.all(tw.asarray([1, 0])).item()
    /// False
    all All
    /// Whether any element is not zero.
    ///
    /// >>> import tilework as tw
    /// >>> tw.any(tw.asarray([1, 0])).item()
    /// True
    any Any
    /// How many elements are not zero.
    ///
    /// >>> import tilework as tw
    /// >>> tw.count_nonzero(tw.asarray([1, 0, 2])).item()
    /// 2
    count_nonzero CountNonzero
    /// Logarithm of the sum of exponentials, without overflow.
    ///
    /// >>> import tilework as tw
    /// >>> tw.logsumexp(tw.asarray([1000.0])).item()
    /// 1000.0
    logsumexp LogSumExp
}

with_dtype! {
    /// Sum of the elements; integers are summed in 64 bits.
    ///
    /// >>> import tilework as tw
    /// >>> tw.sum(tw.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    /// [3, 7]
    sum Sum
    /// Product of the elements; integers are multiplied in 64 bits.
    ///
    /// >>> import tilework as tw
    /// >>> tw.prod(tw.asarray([2, 3, 4])).item()
    /// 24
    prod Prod
}

places! {
    /// Index of the largest element, the first of equals.
    ///
    /// >>> import tilework as tw
    /// >>> tw.argmax(tw.asarray([1, 7, 7])).item()
    /// 1
    argmax ArgMax
    /// Index of the smallest element, the first of equals.
    ///
    /// >>> import tilework as tw
    /// >>> tw.argmin(tw.asarray([3, 1, 1])).item()
    /// 1
    argmin ArgMin
}

spreads! {
    /// Variance; `correction` is subtracted from the count.
    ///
    /// >>> import tilework as tw
    /// >>> tw.var(tw.asarray([1.0, 3.0])).item()
    /// 1.0
    var "var" false
    /// Square root of the variance.
    ///
    /// >>> import tilework as tw
    /// >>> tw.std(tw.asarray([1.0, 3.0])).item()
    /// 1.0
    standard_deviation "std" true
}

/// A running reduction; along the only axis if none is named.
pub fn scan(
    py: Python<'_>,
    x: &Array,
    fold: FoldId,
    axis: Option<isize>,
    dtype: Option<DType>,
    include_initial: bool,
) -> PyResult<PyArray> {
    let axis = match (axis, x.ndim()) {
        (Some(axis), _) => axis,
        (None, 1) => 0,
        (None, axes) => {
            let name = fold.row().name;
            let message = format!("cumulative_{name}: name one of the {axes} axes");
            return Err(PyValueError::new_err(message));
        }
    };
    run(py, x.len(), x.device(), || {
        let source = x.to_dtype(dtype.unwrap_or(x.dtype()))?;
        let result = source.scan(fold, axis)?;
        let result = result.to_dtype(dtype.unwrap_or(result.dtype()))?;
        if !include_initial {
            return Ok(result);
        }
        let mut shape = x.shape().to_vec();
        let at = tilework_layout::normalize_axis("cumulative", axis, x.ndim())?;
        shape[at] = 1;
        let first = if fold == FoldId::Sum { 0 } else { 1 };
        let first = Array::full_on(x.device(), &shape, first, result.dtype())?;
        tilework::concat(&[&first, &result], axis)
    })
    .map(PyArray)
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, /, *, axis=None, dtype=None, include_initial=false))]
        fn $name(
            py: Python<'_>,
            x: ArrayArg,
            axis: Option<isize>,
            dtype: Option<DTypeArg>,
            include_initial: bool,
        ) -> PyResult<PyArray> {
            scan(py, &x.0, FoldId::$fold, axis, dtype.map(|dtype| dtype.0), include_initial)
        }
    )*};
}

scans! {
    /// Running sums along an axis, which may be left out if there is only one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.cumulative_sum(tw.asarray([1, 2, 3])).tolist()
    /// [1, 3, 6]
    cumulative_sum Sum
    /// Running products along an axis, which may be left out if there is only one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.cumulative_prod(tw.asarray([1, 2, 3]), include_initial=True).tolist()
    /// [1, 1, 2, 6]
    cumulative_prod Prod
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: max, min, mean, all, any, count_nonzero, logsumexp, sum, prod, argmax, argmin,
        var, standard_deviation, cumulative_sum, cumulative_prod);
    Ok(())
}
