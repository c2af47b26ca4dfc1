//! Reductions and running sums as methods of arrays.
//!
//! They take NumPy's arguments in NumPy's order, since NumPy's own functions call them
//! (`np.sum(x)`); methods that take the same ones are rows of one macro. The work is that of the
//! functions of the same names.

#![allow(unsafe_op_in_unsafe_fn, reason = "in what PyO3 makes of the macros below")]

use pyo3::prelude::*;
use tilework::FoldId;

use crate::args::{Integers, axes, one_axis};
use crate::array::PyArray;
use crate::dtype::DTypeArg;
use crate::functions::reductions::{Asked, reduce, scan};
use crate::run::run;

type Out<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {
        #[pymethods]
        impl PyArray {$(
            $(#[$doc])*
            #[pyo3(signature = (axis=None, dtype=None, out=None, keepdims=false))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<Integers>,
                dtype: Option<DTypeArg>,
                out: Out<'_, '_>,
                keepdims: bool,
            ) -> PyResult<Py<PyAny>> {
                let dtype = dtype.map(|dtype| dtype.0);
                let plain = Asked::over(FoldId::$fold, axes(axis));
                reduce(py, &self.0, Asked { dtype, keepdims, out, ..plain })
            }
        )*}
    };
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {
        #[pymethods]
        impl PyArray {$(
            $(#[$doc])*
            #[pyo3(signature = (axis=None, out=None, keepdims=false))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<Integers>,
                out: Out<'_, '_>,
                keepdims: bool,
            ) -> PyResult<Py<PyAny>> {
                let plain = Asked::over(FoldId::$fold, axes(axis));
                reduce(py, &self.0, Asked { keepdims, out, ..plain })
            }
        )*}
    };
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {
        #[pymethods]
        impl PyArray {$(
            $(#[$doc])*
            #[pyo3(signature = (axis=None, out=None, *, keepdims=false))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<isize>,
                out: Out<'_, '_>,
                keepdims: bool,
            ) -> PyResult<Py<PyAny>> {
                let plain = Asked::over(FoldId::$fold, one_axis(axis));
                reduce(py, &self.0, Asked { keepdims, out, ..plain })
            }
        )*}
    };
}

macro_rules! spreads {
    ($($(#[$doc:meta])* $name:ident $root:literal)*) => {
        #[pymethods]
        impl PyArray {$(
            $(#[$doc])*
            #[pyo3(signature = (
                axis=None, dtype=None, out=None, ddof=0.0, keepdims=false, *, correction=None
            ))]
            #[allow(clippy::too_many_arguments, reason = "they are NumPy's")]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<Integers>,
                dtype: Option<DTypeArg>,
                out: Out<'_, '_>,
                ddof: f64,
                keepdims: bool,
                correction: Option<f64>,
            ) -> PyResult<Py<PyAny>> {
                let (dtype, correction) = (dtype.map(|dtype| dtype.0), correction.unwrap_or(ddof));
                let plain = Asked::over(FoldId::Var, axes(axis));
                reduce(py, &self.0, Asked { dtype, keepdims, correction, root: $root, out, ..plain })
            }
        )*}
    };
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident $fold:ident)*) => {
        #[pymethods]
        impl PyArray {$(
            $(#[$doc])*
            #[pyo3(signature = (axis=None, dtype=None))]
            fn $name(
                &self,
                py: Python<'_>,
                axis: Option<isize>,
                dtype: Option<DTypeArg>,
            ) -> PyResult<PyArray> {
                let flat = match axis {
                    None => run(py, self.0.len(), self.0.device(), || self.0.ravel())?,
                    Some(_) => self.0.clone(),
                };
                scan(py, &flat, FoldId::$fold, axis, dtype.map(|dtype| dtype.0), false)
            }
        )*}
    };
}

sums! {
    /// Sum of the elements, over all axes or some.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).sum(axis=0).tolist()
    /// [4, 6]
    sum Sum
    /// Product of the elements, over all axes or some.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([2, 3, 4]).prod().item()
    /// 24
    prod Prod
    /// Arithmetic mean, over all axes or some.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 6]]).mean(axis=1, keepdims=True).tolist()
    /// [[1.5], [4.5]]
    mean Mean
}

choices! {
    /// Largest element; NaN if there is one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 5], [3, 2]]).max(axis=1).tolist()
    /// [5, 3]
    max Max
    /// Smallest element; NaN if there is one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([3, 1, 2]).min().item()
    /// 1
    min Min
    /// Whether any element is not zero.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[0, 1], [0, 0]]).any(axis=1).tolist()
    /// [True, False]
    any Any
    /// Whether all elements are not zero.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 0]).all().item()
    /// False
    all All
}

places! {
    /// Index of the largest element, the first of equals.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 7, 7]).argmax().item()
    /// 1
    argmax ArgMax
    /// Index of the smallest element, the first of equals.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[3, 1], [0, 4]]).argmin(axis=1).tolist()
    /// [1, 0]
    argmin ArgMin
}

spreads! {
    /// Square root of the variance; `ddof` or `correction` is subtracted from the count.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1.0, 3.0]).std().item()
    /// 1.0
    std true
    /// Variance; `ddof` or `correction` is subtracted from the count.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1.0, 3.0]).var(ddof=1).item()
    /// 2.0
    var false
}

scans! {
    /// Running sums along an axis; of the flat array if there is none.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).cumsum().tolist()
    /// [1, 3, 6, 10]
    cumsum Sum
    /// Running products along an axis; of the flat array if there is none.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).cumprod(axis=0).tolist()
    /// [[1, 2], [3, 8]]
    cumprod Prod
}
