//! Methods of arrays that NumPy users expect beyond the standard's.
//!
//! The reductions take NumPy's arguments in NumPy's order, since NumPy's own functions call them
//! (`np.sum(x)`); everything else is a name for a function of the namespace.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tilework::{FoldId, Index};

use crate::args::{self, Integers, axes, one_axis, spread};
use crate::array::{PyArray, to_object};
use crate::convert::ArrayArg;
use crate::dtype::DTypeArg;
use crate::errors::OrRaise;
use crate::functions::extras::to_list;
use crate::functions::manipulation::reshaped;
use crate::functions::reductions::{Asked, reduce, scan};
use crate::functions::{elementwise, linalg, manipulation, searching};
use crate::run::run;

type Out<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pymethods]
impl PyArray {
    /// Sum of the elements, over all axes or some.
    #[pyo3(signature = (axis=None, dtype=None, out=None, keepdims=false))]
    fn sum(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        dtype: Option<DTypeArg>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        let dtype = dtype.map(|dtype| dtype.0);
        reduce(py, &self.0, Asked { dtype, keepdims, out, ..Asked::over(FoldId::Sum, axes(axis)) })
    }

    /// Product of the elements, over all axes or some.
    #[pyo3(signature = (axis=None, dtype=None, out=None, keepdims=false))]
    fn prod(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        dtype: Option<DTypeArg>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        let dtype = dtype.map(|dtype| dtype.0);
        reduce(py, &self.0, Asked { dtype, keepdims, out, ..Asked::over(FoldId::Prod, axes(axis)) })
    }

    /// Arithmetic mean, over all axes or some.
    #[pyo3(signature = (axis=None, dtype=None, out=None, keepdims=false))]
    fn mean(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        dtype: Option<DTypeArg>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        let dtype = dtype.map(|dtype| dtype.0);
        reduce(py, &self.0, Asked { dtype, keepdims, out, ..Asked::over(FoldId::Mean, axes(axis)) })
    }

    /// Square root of the variance; `ddof` or `correction` is subtracted from the count.
    #[pyo3(signature = (axis=None, dtype=None, out=None, ddof=0.0, keepdims=false, *, correction=None))]
    #[allow(clippy::too_many_arguments, reason = "they are NumPy's")]
    fn std(
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
        reduce(py, &self.0, Asked { dtype, keepdims, correction, root: true, out, ..plain })
    }

    /// Variance; `ddof` or `correction` is subtracted from the count.
    #[pyo3(signature = (axis=None, dtype=None, out=None, ddof=0.0, keepdims=false, *, correction=None))]
    #[allow(clippy::too_many_arguments, reason = "they are NumPy's")]
    fn var(
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
        reduce(py, &self.0, Asked { dtype, keepdims, correction, out, ..plain })
    }

    /// Largest element.
    #[pyo3(signature = (axis=None, out=None, keepdims=false))]
    fn max(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::Max, axes(axis)) })
    }

    /// Smallest element.
    #[pyo3(signature = (axis=None, out=None, keepdims=false))]
    fn min(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::Min, axes(axis)) })
    }

    /// Whether any element is not zero.
    #[pyo3(signature = (axis=None, out=None, keepdims=false))]
    fn any(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::Any, axes(axis)) })
    }

    /// Whether all elements are not zero.
    #[pyo3(signature = (axis=None, out=None, keepdims=false))]
    fn all(
        &self,
        py: Python<'_>,
        axis: Option<Integers>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::All, axes(axis)) })
    }

    /// Index of the largest element, the first of equals.
    #[pyo3(signature = (axis=None, out=None, *, keepdims=false))]
    fn argmax(
        &self,
        py: Python<'_>,
        axis: Option<isize>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::ArgMax, one_axis(axis)) })
    }

    /// Index of the smallest element, the first of equals.
    #[pyo3(signature = (axis=None, out=None, *, keepdims=false))]
    fn argmin(
        &self,
        py: Python<'_>,
        axis: Option<isize>,
        out: Out<'_, '_>,
        keepdims: bool,
    ) -> PyResult<Py<PyAny>> {
        reduce(py, &self.0, Asked { keepdims, out, ..Asked::over(FoldId::ArgMin, one_axis(axis)) })
    }

    /// Running sums along an axis; of the flat array if there is none.
    #[pyo3(signature = (axis=None, dtype=None))]
    fn cumsum(
        &self,
        py: Python<'_>,
        axis: Option<isize>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<PyArray> {
        let flat = if axis.is_none() { self.ravel(py)? } else { PyArray(self.0.clone()) };
        scan(py, &flat.0, FoldId::Sum, axis, dtype.map(|dtype| dtype.0), false)
    }

    /// Running products along an axis; of the flat array if there is none.
    #[pyo3(signature = (axis=None, dtype=None))]
    fn cumprod(
        &self,
        py: Python<'_>,
        axis: Option<isize>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<PyArray> {
        let flat = if axis.is_none() { self.ravel(py)? } else { PyArray(self.0.clone()) };
        scan(py, &flat.0, FoldId::Prod, axis, dtype.map(|dtype| dtype.0), false)
    }

    /// Another shape for the same elements; a view where the strides permit.
    #[pyo3(signature = (*shape, copy=None))]
    fn reshape(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyTuple>,
        copy: Option<bool>,
    ) -> PyResult<PyArray> {
        reshaped(py, &self.0, &spread(shape)?.0, copy)
    }

    /// The axes in reverse, or in another order; a view.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<PyArray> {
        let reverse = axes.is_empty() || axes.len() == 1 && axes.get_item(0)?.is_none();
        if reverse {
            return Ok(PyArray(self.0.transpose()));
        }
        self.0.permute(&spread(axes)?.0).py().map(PyArray)
    }

    /// Two axes swapped; a view.
    #[pyo3(signature = (axis1, axis2, /))]
    fn swapaxes(&self, axis1: isize, axis2: isize) -> PyResult<PyArray> {
        self.0.swap_axes(axis1, axis2).py().map(PyArray)
    }

    /// Without axes of length 1, all or some; a view.
    #[pyo3(signature = (axis=None))]
    fn squeeze(&self, axis: Option<Integers>) -> PyResult<PyArray> {
        self.0.squeeze(axis.as_ref().map(|axis| &axis.0[..])).py().map(PyArray)
    }

    /// A diagonal of two axes, as a new last axis; a view.
    #[pyo3(signature = (offset=0, axis1=0, axis2=1))]
    fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> PyResult<PyArray> {
        self.0.diagonal(offset, axis1, axis2).py().map(PyArray)
    }

    /// One axis, in row-major order; a view where the strides permit.
    fn ravel(&self, py: Python<'_>) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || self.0.ravel()).map(PyArray)
    }

    /// One axis, in row-major order; always a copy.
    fn flatten(&self, py: Python<'_>) -> PyResult<PyArray> {
        reshaped(py, &self.0, &[-1], Some(true))
    }

    /// A new array in row-major order.
    fn copy(&self, py: Python<'_>) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || self.0.copy()).map(PyArray)
    }

    /// The elements cast to a dtype; without a copy where none is needed and `copy=False`.
    #[pyo3(signature = (dtype, /, *, copy=true))]
    fn astype(&self, py: Python<'_>, dtype: DTypeArg, copy: bool) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || {
            if copy { self.0.astype(dtype.0) } else { self.0.to_dtype(dtype.0) }
        })
        .map(PyArray)
    }

    /// One element as a number of Python: the only one, or the one at an index.
    #[pyo3(signature = (*index))]
    fn item(&self, py: Python<'_>, index: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        if index.is_empty() {
            return to_object(py, self.number(py)?);
        }
        let Integers(index) = spread(index)?;
        let one = if index.len() == 1 && self.0.ndim() != 1 {
            let flat = run(py, self.0.len(), self.0.device(), || self.0.ravel())?;
            flat.slice(&[Index::At(index[0])]).py()?
        } else {
            let index: Vec<Index> = index.iter().map(|&at| Index::At(at)).collect();
            self.0.slice(&index).py()?
        };
        to_object(py, PyArray(one).number(py)?)
    }

    /// The elements as nested lists of Python's numbers.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_list(py, &self.0)
    }

    /// The elements as bytes, in row-major order.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, self.0.len(), self.0.device(), || crate::bytes::of(&self.0))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sets every element.
    #[pyo3(signature = (value, /))]
    fn fill(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.set_item(slf.py().Ellipsis(), value)
    }

    /// Elements of an axis picked by integers.
    #[pyo3(signature = (indices, /, axis=None))]
    fn take(&self, py: Python<'_>, indices: ArrayArg, axis: Option<isize>) -> PyResult<PyArray> {
        searching::take(py, ArrayArg(self.0.clone()), indices, axis)
    }

    /// Each element repeated.
    #[pyo3(signature = (repeats, /, axis=None))]
    fn repeat(
        &self,
        py: Python<'_>,
        repeats: &Bound<'_, PyAny>,
        axis: Option<isize>,
    ) -> PyResult<PyArray> {
        manipulation::repeat(py, ArrayArg(self.0.clone()), repeats, axis)
    }

    /// Sorts this array along an axis, in place.
    #[pyo3(signature = (axis=-1), text_signature = "($self, axis=-1)")]
    fn sort(&self, py: Python<'_>, axis: isize) -> PyResult<()> {
        run(py, self.0.len().saturating_mul(16), self.0.device(), || {
            self.0.assign(&self.0.sort(axis, false)?)
        })
    }

    /// The indices that would sort this array along an axis.
    #[pyo3(signature = (axis=-1), text_signature = "($self, axis=-1)")]
    fn argsort(&self, py: Python<'_>, axis: isize) -> PyResult<PyArray> {
        searching::argsort(py, ArrayArg(self.0.clone()), axis, false, true)
    }

    /// The indices of elements that are not zero, one array for each axis.
    fn nonzero<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        searching::nonzero(py, ArrayArg(self.0.clone()))
    }

    /// Where values would be inserted into this ascending array.
    #[pyo3(signature = (v, /, side="left"))]
    fn searchsorted(&self, py: Python<'_>, v: &Bound<'_, PyAny>, side: &str) -> PyResult<PyArray> {
        searching::searchsorted(py, ArrayArg(self.0.clone()), v, side, None)
    }

    /// Elements held between two bounds.
    #[pyo3(signature = (min=None, max=None, out=None))]
    fn clip<'py>(
        slf: &Bound<'py, Self>,
        min: Out<'_, 'py>,
        max: Out<'_, 'py>,
        out: Out<'_, 'py>,
    ) -> PyResult<Py<PyAny>> {
        elementwise::clip(slf.py(), slf.as_any(), min, max, out)
    }

    /// Rounded to so many decimals, halves to even; to tens if `decimals` is negative.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1.234, -2.5]).round(1).tolist()
    /// [1.2, -2.5]
    #[pyo3(signature = (decimals=0, out=None))]
    fn round(&self, py: Python<'_>, decimals: i32, out: Out<'_, '_>) -> PyResult<Py<PyAny>> {
        let device = self.0.device();
        let Some(out) = out else {
            let rounded = run(py, self.0.len(), device, || self.0.round_to(decimals))?;
            return Ok(Py::new(py, PyArray(rounded))?.into_any());
        };
        let target = args::target(out, device)?;
        run(py, self.0.len(), device, || target.assign(&self.0.round_to(decimals)?))?;
        Ok(out.clone().unbind())
    }

    /// Complex conjugate.
    fn conj(&self, py: Python<'_>) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || self.0.conj()).map(PyArray)
    }

    /// Complex conjugate.
    fn conjugate(&self, py: Python<'_>) -> PyResult<PyArray> {
        self.conj(py)
    }

    /// Matrix product.
    #[pyo3(signature = (other, /))]
    fn dot<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        linalg::matmul(slf.py(), slf.as_any(), other, None)
    }
}
