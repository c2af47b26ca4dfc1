//! How an array lies in memory, as NumPy speaks of it: `order=`, `flags`, `view` and `flat`.
//!
//! The core knows the orders; here are their letters, and the two small classes that Python sees.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use smallvec::SmallVec;
use tilework::{Array, Index, Order};

use crate::args::spread;
use crate::array::PyArray;
use crate::dtype::DTypeArg;
use crate::errors::OrRaise;
use crate::functions::manipulation::reshaped;
use crate::memory::may_be_written;
use crate::run::run;

/// The order that a letter means.
pub fn order(letter: &str) -> PyResult<Order> {
    Ok(match letter {
        "C" | "c" => Order::RowMajor,
        "F" | "f" => Order::ColumnMajor,
        "A" | "a" => Order::Either,
        "K" | "k" => Order::Keep,
        other => {
            let message = format!("order is \"C\", \"F\", \"A\" or \"K\", not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    })
}

impl PyArray {
    /// Whether the elements are all of a block that was made here, in row-major order.
    fn is_whole_block(&self) -> bool {
        let (array, storage) = (&self.0, self.0.storage());
        let bytes = array.len().checked_mul(array.dtype().size());
        !storage.is_foreign() && array.is_contiguous() && bytes == Some(storage.bytes())
    }
}

#[pymethods]
impl PyArray {
    /// Another shape for the same elements; a view where the strides permit.
    ///
    /// >>> import tilework as tw
    /// >>> tw.arange(6).reshape(2, -1).tolist()
    /// [[0, 1, 2], [3, 4, 5]]
    /// >>> tw.arange(6).reshape((2, 3), order="F").tolist()
    /// [[0, 2, 4], [1, 3, 5]]
    #[pyo3(signature = (*shape, order="C", copy=None))]
    fn reshape(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyTuple>,
        order: &str,
        copy: Option<bool>,
    ) -> PyResult<PyArray> {
        reshaped(py, &self.0, &spread(shape)?.0, order, copy)
    }

    /// One axis, row by row or in another order; a view where the strides permit.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[1, 2], [3, 4]])
    /// >>> x.ravel().tolist(), x.ravel(order="F").tolist()
    /// ([1, 2, 3, 4], [1, 3, 2, 4])
    #[pyo3(signature = (order="C"))]
    fn ravel(&self, py: Python<'_>, order: &str) -> PyResult<PyArray> {
        let order = self::order(order)?;
        run(py, self.0.len(), self.0.device(), || self.0.ravel_in(order)).map(PyArray)
    }

    /// One axis, row by row or in another order; always a copy.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[1, 2], [3, 4]])
    /// >>> tw.shares_memory(x, x.flatten())
    /// False
    #[pyo3(signature = (order="C"))]
    fn flatten(&self, py: Python<'_>, order: &str) -> PyResult<PyArray> {
        let order = self::order(order)?;
        run(py, self.0.len(), self.0.device(), || {
            let flat = self.0.ravel_in(order)?;
            if flat.is_same_block(&self.0) { flat.copy() } else { Ok(flat) }
        })
        .map(PyArray)
    }

    /// A new array, row by row or in another order.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.zeros(2)
    /// >>> x.copy().fill(7)
    /// >>> x.tolist()
    /// [0.0, 0.0]
    #[pyo3(signature = (order="C"))]
    fn copy(&self, py: Python<'_>, order: &str) -> PyResult<PyArray> {
        let order = self::order(order)?;
        run(py, self.0.len(), self.0.device(), || self.0.copy_in(order)).map(PyArray)
    }

    /// The elements cast to a dtype; without a copy where none is needed and `copy=False`.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1.7, -1.7]).astype(tw.int32).tolist()
    /// [1, -1]
    #[pyo3(signature = (dtype, /, order="K", *, copy=true))]
    fn astype(
        &self,
        py: Python<'_>,
        dtype: DTypeArg,
        order: &str,
        copy: bool,
    ) -> PyResult<PyArray> {
        let order = self::order(order)?;
        run(py, self.0.len(), self.0.device(), || match copy {
            true => self.0.astype_in(dtype.0, order),
            false => self.0.to_dtype_in(dtype.0, order),
        })
        .map(PyArray)
    }

    /// The same memory, as elements of another dtype if one is given. Where their sizes differ, the
    /// last axis grows or shrinks.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([1.0, -2.0], dtype=tw.float32)
    /// >>> x.view(tw.uint32).tolist()
    /// [1065353216, 3221225472]
    /// >>> x.view("uint8").shape
    /// (8,)
    #[pyo3(signature = (dtype=None))]
    fn view(&self, dtype: Option<DTypeArg>) -> PyResult<PyArray> {
        match dtype {
            Some(dtype) => self.0.view_as(dtype.0).py().map(PyArray),
            None => Ok(PyArray(self.0.clone())),
        }
    }

    /// How it lies in memory, by NumPy's names.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.zeros((2, 3))
    /// >>> x.flags.c_contiguous, x.T.flags["F_CONTIGUOUS"], x.flags.writeable
    /// (True, True, True)
    #[getter]
    fn flags(&self) -> Flags {
        Flags {
            c_contiguous: self.0.is_contiguous(),
            f_contiguous: self.0.is_column_major(),
            owndata: self.is_whole_block(),
            writeable: may_be_written(&self.0),
            aligned: true,
        }
    }

    /// The elements one after the other, row by row: to iterate over, to index and to assign to.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[1, 2], [3, 4]])
    /// >>> x.T.flat[1] = 9
    /// >>> x.tolist(), [int(element) for element in x.flat]
    /// ([[1, 2], [9, 4]], [1, 2, 9, 4])
    #[getter]
    fn flat(&self) -> Flat {
        Flat { array: self.0.clone(), next: AtomicUsize::new(0) }
    }

    #[setter]
    fn set_flat(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        self.flat().__setitem__(&py.Ellipsis().into_bound(py), values)
    }
}

/// How an array lies in memory: `x.flags`. To be read only: an array is read-only where its memory is.
///
/// >>> import tilework as tw
/// >>> tw.zeros(3).flags["C_CONTIGUOUS"]
/// True
#[pyclass(frozen, get_all, name = "flagsobj", module = "tilework")]
pub struct Flags {
    /// Row by row without gaps.
    c_contiguous: bool,
    /// Column by column without gaps.
    f_contiguous: bool,
    /// Whether it is all of its memory, row by row, and that was made here: not so for slices, transposes
    /// and flips, nor for the memory of other libraries. An array reshaped is like one that was made so.
    owndata: bool,
    /// Whether it may be written to: the memory is not read-only, and no two indices reach one element.
    writeable: bool,
    /// Elements begin where the processor likes them; always.
    aligned: bool,
}

impl Flags {
    /// NumPy's names, its short ones, and the values.
    fn rows(&self) -> [(&'static str, &'static str, bool); 5] {
        [
            ("C_CONTIGUOUS", "C", self.c_contiguous),
            ("F_CONTIGUOUS", "F", self.f_contiguous),
            ("OWNDATA", "O", self.owndata),
            ("WRITEABLE", "W", self.writeable),
            ("ALIGNED", "A", self.aligned),
        ]
    }
}

#[pymethods]
impl Flags {
    /// Row by row without gaps.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).T.flags.contiguous
    /// False
    #[getter]
    fn contiguous(&self) -> bool {
        self.c_contiguous
    }

    /// Row by row or column by column without gaps.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).T.flags.forc
    /// True
    #[getter]
    fn forc(&self) -> bool {
        self.c_contiguous || self.f_contiguous
    }

    /// Column by column without gaps, and not row by row.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).T.flags.fnc
    /// True
    #[getter]
    fn fnc(&self) -> bool {
        self.f_contiguous && !self.c_contiguous
    }

    fn __getitem__(&self, name: &str) -> PyResult<bool> {
        let found =
            self.rows().into_iter().find(|(long, short, _)| [*long, *short].contains(&name));
        found.map(|(_, _, value)| value).ok_or_else(|| PyKeyError::new_err(format!("{name:?}")))
    }

    fn __repr__(&self) -> String {
        let line = |(name, _, value): (&str, &str, bool)| {
            format!("  {name} : {}\n", if value { "True" } else { "False" })
        };
        self.rows().into_iter().map(line).collect()
    }
}

/// The elements of an array one after the other: `x.flat`.
///
/// >>> import tilework as tw
/// >>> len(tw.zeros((2, 3)).flat)
/// 6
#[pyclass(frozen, name = "flatiter", module = "tilework")]
pub struct Flat {
    array: Array,
    /// Which element comes next.
    next: AtomicUsize,
}

impl Flat {
    /// The index of the element at a place.
    fn index(&self, place: usize) -> SmallVec<[isize; 6]> {
        let mut rest = place;
        let mut index = SmallVec::new();
        for &n in self.array.shape().iter().rev() {
            index.push((rest % n).cast_signed());
            rest /= n;
        }
        index.reverse();
        index
    }

    /// The element at a place.
    fn at(&self, py: Python<'_>, place: usize) -> PyResult<PyArray> {
        let index = self.index(place);
        run(py, 1, self.array.device(), || self.array.element(&index)).map(PyArray)
    }

    /// The place that a key names, if it is an integer.
    fn place(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let Ok(key) = key.cast_exact::<PyInt>() else { return Ok(None) };
        let (at, len) = (key.extract::<i64>()?, self.array.len());
        match tilework_layout::resolve_index(at, len) {
            Some(place) => Ok(Some(place)),
            None => {
                let message = format!("flat: {at} is out of bounds for {len} elements");
                Err(PyIndexError::new_err(message))
            }
        }
    }

    /// All elements in one axis: a view where the strides permit.
    fn line<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray>> {
        let line = run(py, self.array.len(), self.array.device(), || self.array.ravel())?;
        PyArray(line).into_pyobject(py)
    }
}

#[pymethods]
impl Flat {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArray>> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        if place >= self.array.len() {
            self.next.store(self.array.len(), Ordering::Relaxed);
            return Ok(None);
        }
        self.at(py, place).map(Some)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(place) = self.place(key)? {
            return self.at(py, place)?.into_bound_py_any(py);
        }
        let part = self.line(py)?.get_item(key)?;
        // What NumPy gives is a copy, whatever the strides.
        part.call_method0("copy")
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        if let Some(place) = self.place(key)? {
            let index: Vec<Index> = self.index(place).into_iter().map(Index::At).collect();
            let view = PyArray(self.array.slice(&index).py()?).into_pyobject(py)?;
            return view.set_item(py.Ellipsis(), values);
        }
        let line = self.line(py)?;
        line.set_item(key, values)?;
        let line = &line.get().0;
        if line.is_same_block(&self.array) {
            return Ok(());
        }
        let shape: Vec<isize> = self.array.shape().iter().map(|&n| n as isize).collect();
        run(py, self.array.len(), self.array.device(), || self.array.assign(&line.reshape(&shape)?))
    }
}

/// Adds the classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Flags>()?;
    module.add_class::<Flat>()
}
