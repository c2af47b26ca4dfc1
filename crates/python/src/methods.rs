//! Methods of arrays that NumPy users expect beyond the standard's: names for functions of the
//! namespace. Reductions are in `statistics`, what concerns memory in `layout`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tilework::{Direction, Index};

use crate::args::{Integers, spread};
use crate::array::{PyArray, to_object};
use crate::convert::ArrayArg;
use crate::errors::OrRaise;
use crate::functions::extras::to_list;
use crate::functions::{elementwise, linalg, manipulation, searching};
use crate::run::run;

type Out<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pymethods]
impl PyArray {
    /// The axes in reverse, or in another order; a view.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3, 4)).transpose(2, 0, 1).shape
    /// (4, 2, 3)
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<PyArray> {
        let reverse = axes.is_empty() || axes.len() == 1 && axes.get_item(0)?.is_none();
        if reverse {
            return Ok(PyArray(self.0.transpose()));
        }
        let axes = spread(axes)?;
        self.0.permute(&axes.0).map_err(|error| error.of("transpose")).py().map(PyArray)
    }

    /// Two axes swapped; a view.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3, 4)).swapaxes(0, 2).shape
    /// (4, 3, 2)
    #[pyo3(signature = (axis1, axis2, /))]
    fn swapaxes(&self, axis1: isize, axis2: isize) -> PyResult<PyArray> {
        let swapped = self.0.swap_axes(axis1, axis2);
        swapped.map_err(|error| error.of("swapaxes")).py().map(PyArray)
    }

    /// Without axes of length 1, all or some; a view.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((1, 3, 1)).squeeze().shape
    /// (3,)
    #[pyo3(signature = (axis=None))]
    fn squeeze(&self, axis: Option<Integers>) -> PyResult<PyArray> {
        self.0.squeeze(axis.as_ref().map(|axis| &axis.0[..])).py().map(PyArray)
    }

    /// A diagonal of two axes, as a new last axis; a view.
    ///
    /// >>> import tilework as tw
    /// >>> tw.arange(9).reshape(3, 3).diagonal().tolist()
    /// [0, 4, 8]
    #[pyo3(signature = (offset=0, axis1=0, axis2=1))]
    fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> PyResult<PyArray> {
        self.0.diagonal(offset, axis1, axis2).py().map(PyArray)
    }

    /// One element as a number of Python: the only one, or the one at an index.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).item(1, 0)
    /// 3
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
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).T.tolist()
    /// [[1, 3], [2, 4]]
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_list(py, &self.0)
    }

    /// The elements as bytes, in row-major order.
    ///
    /// >>> import tilework as tw
    /// >>> list(tw.asarray([1, 2], dtype=tw.uint8).tobytes())
    /// [1, 2]
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        crate::bytes::of(py, &self.0)
    }

    /// Sets every element.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.zeros(3)
    /// >>> x[1:].fill(2)
    /// >>> x.tolist()
    /// [0.0, 2.0, 2.0]
    #[pyo3(signature = (value, /))]
    fn fill(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.set_item(slf.py().Ellipsis(), value)
    }

    /// Elements of an axis picked by integers.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([10, 20, 30]).take([2, 0]).tolist()
    /// [30, 10]
    #[pyo3(signature = (indices, /, axis=None))]
    fn take(
        slf: &Bound<'_, Self>,
        indices: &Bound<'_, PyAny>,
        axis: Option<isize>,
    ) -> PyResult<PyArray> {
        searching::take(slf.py(), slf.as_any(), indices, axis)
    }

    /// Each element repeated.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 2]).repeat(2).tolist()
    /// [1, 1, 2, 2]
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
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([3, 1, 2])
    /// >>> x.sort()
    /// >>> x.tolist()
    /// [1, 2, 3]
    #[pyo3(signature = (axis=-1, kind=None), text_signature = "($self, axis=-1, kind=None)")]
    fn sort(&self, py: Python<'_>, axis: isize, kind: Option<&str>) -> PyResult<()> {
        searching::known_kind("sort", kind)?;
        run(py, self.0.len().saturating_mul(16), self.0.device(), || {
            self.0.sort_in_place(axis, Direction::Ascending)
        })
    }

    /// The indices that would sort this array along an axis.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([3, 1, 2]).argsort().tolist()
    /// [1, 2, 0]
    #[pyo3(signature = (axis=-1, kind=None), text_signature = "($self, axis=-1, kind=None)")]
    fn argsort(&self, py: Python<'_>, axis: isize, kind: Option<&str>) -> PyResult<PyArray> {
        searching::argsort(py, ArrayArg(self.0.clone()), axis, false, true, kind)
    }

    /// The indices of elements that are not zero, one array for each axis.
    ///
    /// >>> import tilework as tw
    /// >>> [axis.tolist() for axis in tw.asarray([[0, 1], [1, 0]]).nonzero()]
    /// [[0, 1], [1, 0]]
    fn nonzero<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        searching::nonzero(py, ArrayArg(self.0.clone()))
    }

    /// Where values would be inserted into this ascending array.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 3, 5]).searchsorted(4).item()
    /// 2
    #[pyo3(signature = (v, /, side="left"))]
    fn searchsorted(slf: &Bound<'_, Self>, v: &Bound<'_, PyAny>, side: &str) -> PyResult<PyArray> {
        searching::searchsorted(slf.py(), slf.as_any(), v, side, None)
    }

    /// Elements held between two bounds.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 5, 9]).clip(2, 6).tolist()
    /// [2, 5, 6]
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
    fn round<'py>(slf: &Bound<'py, Self>, decimals: i32, out: Out<'_, 'py>) -> PyResult<Py<PyAny>> {
        elementwise::round(slf.py(), slf.as_any(), decimals, out)
    }

    /// Complex conjugate.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1 + 2j]).conj().tolist()
    /// [(1-2j)]
    fn conj(&self, py: Python<'_>) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || self.0.conj()).map(PyArray)
    }

    /// Complex conjugate.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1 + 2j]).conjugate().tolist()
    /// [(1-2j)]
    fn conjugate(&self, py: Python<'_>) -> PyResult<PyArray> {
        self.conj(py)
    }

    /// Product of matrices or vectors; of more axes the sum over the last one and the last but one of `other`.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 2, 3]).dot(tw.asarray([4, 5, 6])).item()
    /// 32
    #[pyo3(signature = (other, /))]
    fn dot(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        linalg::dot(slf.py(), slf.as_any(), other)
    }
}
