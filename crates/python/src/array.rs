//! `tilework.Array`: the class, its attributes and its small protocols.
//!
//! The object is a frozen shell around the core's array. Its type object is made in `class`; what it
//! can do stands in the rooms beside: `operators`, `indexing`, `methods`, `statistics`, `buffer`, `dlpack`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};
use tilework::{Array, Number};

use crate::device::{DeviceArg, PyDevice};
use crate::dtype::{self, PyDType};
use crate::errors::OrRaise;
use crate::functions::printing;
use crate::iteration::PyArrayIter;
use crate::memory;
use crate::operand::Operand;
use crate::run::run;

/// An n-dimensional array; made by `asarray`, `zeros`, `arange` and their kin.
///
/// >>> import tilework as tw
/// >>> x = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
/// >>> (x + 1).tolist()
/// [[2.0, 3.0], [4.0, 5.0]]
// Its objects are made by `class`, and so are of the class there, which derives from this one: to say
// what the base is keeps PyO3 from making them.
#[pyclass(frozen, subclass, extends = PyAny, name = "Array", module = "tilework", weakref)]
pub struct PyArray(pub Array);

/// A number that becomes an object of Python.
pub struct PyNumber(pub Number);

impl<'py> IntoPyObject<'py> for PyNumber {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.0 {
            Number::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Number::Int(value) => match i64::try_from(value) {
                Ok(value) => value.into_pyobject(py)?.into_any(),
                Err(_) => value.into_pyobject(py)?.into_any(),
            },
            Number::Float(value) => value.into_pyobject(py)?.into_any(),
            Number::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any(),
        })
    }
}

/// A number as an object of Python.
pub fn to_object(py: Python<'_>, number: Number) -> PyResult<Py<PyAny>> {
    PyNumber(number).into_py_any(py)
}

impl PyArray {
    /// The only element.
    pub fn number(&self, py: Python<'_>) -> PyResult<Number> {
        run(py, 1, self.0.device(), || self.0.to_scalar()).map(|scalar| scalar.to_number())
    }

    /// The only element of an array that stands for a number: NumPy takes no axes but of length 1.
    fn single(&self, py: Python<'_>, to: &str) -> PyResult<Number> {
        if self.0.len() != 1 {
            let shape = shape_text(self.0.shape());
            let message = format!("{to}: an array of shape {shape} is not a single element");
            return Err(PyTypeError::new_err(message));
        }
        self.number(py)
    }
}

/// A shape as people write it.
pub fn shape_text(shape: &[usize]) -> String {
    let parts: Vec<String> = shape.iter().map(usize::to_string).collect();
    if let [one] = &parts[..] { format!("({one},)") } else { format!("({})", parts.join(", ")) }
}

#[pymethods]
impl PyArray {
    /// Length of each axis.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).shape
    /// (2, 3)
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// Number of axes.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).ndim
    /// 2
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// Number of elements.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3)).size
    /// 6
    #[getter]
    fn size(&self) -> usize {
        self.0.len()
    }

    /// Type of the elements.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1.5, 2.5]).dtype
    /// dtype('float64')
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyDType> {
        dtype::object(py, self.0.dtype())
    }

    /// Where it lives.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros(2, device="reference").device
    /// device('reference')
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device())
    }

    /// Bytes of one element.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros(2, dtype=tw.complex64).itemsize
    /// 8
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.dtype().size()
    }

    /// Bytes of all elements.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3), dtype=tw.float32).nbytes
    /// 24
    #[getter]
    fn nbytes(&self) -> u128 {
        self.0.dtype().size() as u128 * self.0.len() as u128
    }

    /// Steps in bytes, one for each axis.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((2, 3), dtype=tw.float32).strides
    /// (12, 4)
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let size = self.0.dtype().size() as isize;
        PyTuple::new(py, self.0.strides().iter().map(|stride| stride * size))
    }

    /// The axes in reverse order.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([[1, 2], [3, 4]]).T.tolist()
    /// [[1, 3], [2, 4]]
    #[getter]
    #[allow(non_snake_case, reason = "the standard's name")]
    fn T(&self) -> PyArray {
        PyArray(self.0.transpose())
    }

    /// The last two axes swapped.
    ///
    /// >>> import tilework as tw
    /// >>> tw.zeros((5, 2, 3)).mT.shape
    /// (5, 3, 2)
    #[getter]
    #[allow(non_snake_case, reason = "the standard's name")]
    fn mT(&self) -> PyResult<PyArray> {
        self.0.matrix_transpose().py().map(PyArray)
    }

    /// The real parts; a view.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([1 + 2j])
    /// >>> x.real[0] = 7
    /// >>> x.tolist()
    /// [(7+2j)]
    #[getter]
    fn real(&self) -> PyResult<PyArray> {
        self.0.real_view().py().map(PyArray)
    }

    /// The imaginary parts: a view of a complex array, zeros that cannot be written for a real one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1 + 2j]).imag.tolist()
    /// [2.0]
    #[getter]
    fn imag(&self, py: Python<'_>) -> PyResult<PyArray> {
        if self.0.dtype().is_complex() {
            return self.0.imag_view().py().map(PyArray);
        }
        run(py, 1, self.0.device(), || {
            Array::zeros_on(self.0.device(), &[], self.0.dtype())?.broadcast_to(self.0.shape())
        })
        .map(PyArray)
    }

    /// Whether the elements lie in row-major order without gaps.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.zeros((2, 3))
    /// >>> x.is_contiguous, x.T.is_contiguous
    /// (True, False)
    #[getter]
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Whether it may be written to: not where its memory is read-only, and not where several indices
    /// reach one element.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray(memoryview(b"abc")).writable, tw.broadcast_to(tw.zeros(1), (3,)).writable
    /// (False, False)
    #[getter]
    fn writable(&self) -> bool {
        memory::may_be_written(&self.0)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0
            .shape()
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("len() of an array of no axes"))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<PyArrayIter> {
        if slf.get().0.ndim() == 0 {
            return Err(PyTypeError::new_err("iteration over an array of no axes"));
        }
        Ok(PyArrayIter::new(slf.get().0.clone()))
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> PyResult<PyArrayIter> {
        if slf.get().0.ndim() == 0 {
            return Err(PyTypeError::new_err("iteration over an array of no axes"));
        }
        Ok(PyArrayIter::new(slf.get().0.flip(Some(&[0])).py()?))
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(value) = Operand::of(value, self.0.device())? else { return Ok(false) };
        run(py, self.0.len(), self.0.device(), || {
            self.0.equal(value.arg())?.any(())?.item::<bool>()
        })
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.len() != 1 {
            let shape = shape_text(self.0.shape());
            return Err(PyValueError::new_err(format!(
                "bool: the truth of an array of shape {shape} is ambiguous; use any() or all()"
            )));
        }
        run(py, 1, self.0.device(), || self.0.item::<bool>())
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.single(py, "int")? {
            Number::Bool(value) => to_object(py, Number::Int(value.into())),
            Number::Complex(_) => Err(PyTypeError::new_err("int: a complex number is no integer")),
            // Python knows integers of any size, and what to say of infinities and NaN.
            Number::Float(value) => {
                let value = value.into_pyobject(py)?;
                Ok(value.call_method0("__int__")?.unbind())
            }
            number => to_object(py, number),
        }
    }

    fn __trunc__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.__int__(py)
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        match self.single(py, "float")? {
            Number::Bool(value) => Ok(value.into()),
            Number::Int(value) => Ok(value as f64),
            Number::Float(value) => Ok(value),
            Number::Complex(_) => Err(PyTypeError::new_err("float: a complex number is not real")),
        }
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        let (re, im) = match self.single(py, "complex")? {
            Number::Bool(value) => (value.into(), 0.0),
            Number::Int(value) => (value as f64, 0.0),
            Number::Float(value) => (value, 0.0),
            Number::Complex(z) => (z.re, z.im),
        };
        Ok(PyComplex::from_doubles(py, re, im))
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.0.ndim() != 0 || !self.0.dtype().is_integer() {
            return Err(PyTypeError::new_err("only an integer array of no axes is an index"));
        }
        to_object(py, self.number(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let options = printing::current(py)?;
        let shown = self.0.display(&options);
        run(py, self.0.len().min(4096), self.0.device(), || Ok(format!("{shown:?}")))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let options = printing::current(py)?;
        let shown = self.0.display(&options);
        run(py, self.0.len().min(4096), self.0.device(), || Ok(shown.to_string()))
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let array = slf.get();
        if spec.is_empty()? {
            return Ok(slf.str()?.into_any().unbind());
        }
        if array.0.ndim() != 0 {
            let shape = shape_text(array.0.shape());
            return Err(PyTypeError::new_err(format!(
                "format: {} is for one number, not for an array of shape {shape}",
                spec.repr()?
            )));
        }
        let value = to_object(slf.py(), array.number(slf.py())?)?;
        Ok(value.bind(slf.py()).call_method1("__format__", (spec,))?.unbind())
    }

    /// `round(x, 2)` rounds each element; `round(x)` of an array of no axes is Python's integer.
    #[pyo3(signature = (ndigits=None))]
    fn __round__<'py>(
        slf: &Bound<'py, Self>,
        ndigits: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (slf.py(), slf.get());
        match ndigits {
            Some(ndigits) => slf.call_method1("round", (ndigits,)),
            None if array.0.ndim() == 0 => {
                to_object(py, array.number(py)?)?.bind(py).call_method0("__round__")
            }
            None => slf.call_method0("round"),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<PyArray> {
        run(py, self.0.len(), self.0.device(), || self.0.copy()).map(PyArray)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.__copy__(py)
    }

    /// The functions of the array API standard that go with this array.
    #[pyo3(signature = (/, *, api_version=None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyModule>> {
        match api_version {
            None | Some("2021.12" | "2022.12" | "2023.12" | "2024.12" | "2025.12") => {
                py.import("tilework")
            }
            Some(other) => {
                let message = format!("__array_namespace__: no version {other:?} of the standard");
                Err(PyValueError::new_err(message))
            }
        }
    }

    /// The same elements on another device; this array itself if it is there already.
    ///
    /// >>> import tilework as tw
    /// >>> tw.asarray([1, 2]).to_device("reference").device
    /// device('reference')
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device(
        slf: &Bound<'_, Self>,
        device: DeviceArg,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyArray>> {
        if stream.is_some() {
            return Err(PyValueError::new_err("to_device: streams are tilework's own affair"));
        }
        let array = &slf.get().0;
        if array.device() == device.0 {
            return Ok(slf.clone().unbind());
        }
        let moved = run(slf.py(), array.len(), array.device(), || array.to_device(device.0))?;
        Ok(PyArray(moved).into_pyobject(slf.py())?.unbind())
    }
}
