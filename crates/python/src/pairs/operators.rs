//! The operators of `LazyTensor`: arithmetic, comparison, components, products with vectors.

#![allow(unsafe_op_in_unsafe_fn, reason = "in what PyO3 makes of the macro below")]

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PySlice, PyTuple};
use tilework::Array;
use tilework::pairs::{Category, LazyArg, LazyTensor, Reduced};

use super::lazy::PyLazy;
use super::operand::{Like, Operand, array, number, required_array};
use super::reductions::{fits_out, result, summed};
use super::settings::{OF_TIME, Settings};
use super::work::watched;
use crate::array::PyArray;
use crate::class;
use crate::errors::OrRaise;
use crate::memory;

impl PyLazy {
    /// `slf op other`, or `other op slf` if reflected; NotImplemented for what is no operand.
    fn binary(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        name: &str,
        reflected: bool,
    ) -> PyResult<Py<PyAny>> {
        let (py, tensor) = (slf.py(), &slf.get().0);
        let Some(other) = Operand::of(other, Like::tensor(tensor))? else {
            return Ok(py.NotImplemented());
        };
        let operands = match reflected {
            false => [LazyArg::Tensor(tensor), other.arg()],
            true => [other.arg(), LazyArg::Tensor(tensor)],
        };
        let made = LazyTensor::function(name, &operands, &[]).py()?;
        Ok(Py::new(py, PyLazy(made))?.into_any())
    }

    pub fn unary(&self, name: &str) -> PyResult<PyLazy> {
        LazyTensor::function(name, &[LazyArg::Tensor(&self.0)], &[]).py().map(PyLazy)
    }

    /// What is said to whoever takes a tensor for an array.
    #[cold]
    pub fn not_an_array() -> PyErr {
        let message = "asarray: a LazyTensor is a formula over pairs, not an array; reduce it over i or j, as in \
                       .sum(axis=1), .min(axis=1) or K @ b, or compute all of its values with .dense()";
        PyTypeError::new_err(message)
    }

    fn power_of(slf: &Bound<'_, Self>, exponent: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match number(exponent)? {
            Some(number) => {
                let made = slf.get().0.power(number).py()?;
                Ok(Py::new(slf.py(), PyLazy(made))?.into_any())
            }
            None => PyLazy::binary(slf, exponent, "Powf", false),
        }
    }

    /// The product with an array, cast to the dtype of this if asked.
    pub fn times(
        &self,
        py: Python<'_>,
        vector: &Array,
        cast: bool,
        settings: &Settings,
    ) -> PyResult<PyArray> {
        let (tensor, columns) = (&self.0, vector.shape().get(1).copied().unwrap_or(1));
        let effort = self.effort(None).saturating_mul(columns);
        watched(py, effort, self.device(), settings, |options| match tensor.dtype() {
            Some(dtype) if cast => tensor.matmul_with(&vector.to_dtype(dtype)?, options),
            _ => tensor.matmul_with(vector, options),
        })
        .map(PyArray)
    }

    /// The product that SciPy asks for: of vectors of others where these are, since it goes on with memory of the host
    /// wherever the matrix is.
    fn operator(&self, py: Python<'_>, vector: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        let is_ours = class::ours(vector).is_some();
        let like = Like { dtype: self.0.dtype(), device: None };
        let vector = required_array(vector, like, "matvec")?;
        if is_ours {
            return self.times(py, &vector, true, &Settings::default());
        }
        // What was copied to a device was not there.
        let home = match vector.storage().is_foreign() {
            true => vector.device(),
            false => memory::host_of(vector.device()),
        };
        let there = vector.to_device(self.device()).py()?;
        let product = self.times(py, &there, true, &Settings::default())?;
        product.0.to_device(home).py().map(PyArray)
    }
}

/// Whether a tensor has a value for each i, by an array or by a symbolic variable.
fn varies_with_i(tensor: &LazyTensor) -> bool {
    let symbolic =
        |tensor: &LazyTensor| tensor.symbols().iter().any(|symbol| symbol.category == Category::I);
    tensor.extents().0.is_some() || symbolic(tensor)
}

/// Refuses the third argument of Python's `pow`.
fn no_modulus(modulus: &Bound<'_, PyAny>) -> PyResult<()> {
    match modulus.is_none() {
        true => Ok(()),
        false => Err(PyTypeError::new_err("pow: there is no modulus; (x ** n).mod(m) has one")),
    }
}

macro_rules! binary_operators {
    ($($method:ident $reflected:ident $name:literal;)+) => {
        #[pymethods]
        impl PyLazy {
            $(fn $method(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                PyLazy::binary(slf, other, $name, false)
            }
            fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                PyLazy::binary(slf, other, $name, true)
            })+
        }
    };
}

binary_operators! {
    __add__ __radd__ "Add";
    __sub__ __rsub__ "Subtract";
    __mul__ __rmul__ "Mult";
    __truediv__ __rtruediv__ "Divide";
    __floordiv__ __rfloordiv__ "FloorDivide";
    __mod__ __rmod__ "Remainder";
    __or__ __ror__ "Scalprod";
    __and__ __rand__ "LogicalAnd";
    __xor__ __rxor__ "LogicalXor";
}

#[pymethods]
impl PyLazy {
    /// NumPy leaves operators with arrays to the tensor.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    // NumPy would wrap what it cannot read as one object, and go on with that.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__(&self, dtype: Option<Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(PyLazy::not_an_array())
    }

    fn __neg__(&self) -> PyResult<PyLazy> {
        self.unary("Minus")
    }

    fn __invert__(&self) -> PyResult<PyLazy> {
        self.unary("LogicalNot")
    }

    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __abs__(&self) -> PyResult<PyLazy> {
        self.unary("Abs")
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        exponent: &Bound<'_, PyAny>,
        modulus: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        no_modulus(modulus)?;
        PyLazy::power_of(slf, exponent)
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        base: &Bound<'_, PyAny>,
        modulus: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        no_modulus(modulus)?;
        PyLazy::binary(slf, base, "Powf", true)
    }

    /// To the power of a number or a formula.
    ///
    /// >>> import tilework as tw
    /// >>> tw.Vi(0, 2).power(3).formula
    /// 'Pow(Vi(0,2), 3)'
    #[pyo3(signature = (other, /))]
    fn power(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let made = PyLazy::power_of(slf, other)?;
        if made.bind(slf.py()).is(slf.py().NotImplemented()) {
            return Err(PyTypeError::new_err("power: an exponent is a number or a formula"));
        }
        Ok(made)
    }

    fn __richcmp__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let name = match op {
            CompareOp::Lt => "LessThan",
            CompareOp::Le => "LessOrEqual",
            CompareOp::Gt => "GreaterThan",
            CompareOp::Ge => "GreaterOrEqual",
            CompareOp::Eq => "Equal",
            CompareOp::Ne => "NotEqual",
        };
        PyLazy::binary(slf, other, name, false)
    }

    /// Components: `x[k]`, `x[a:b]`, `x[:, :, k]`, `x[..., a:b]`.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyLazy> {
        let key = self.component_key(key)?;
        let dim = self.0.dim() as isize;
        if let Ok(slice) = key.cast::<PySlice>() {
            let found = slice.indices(dim)?;
            if found.step != 1 || found.slicelength == 0 {
                let message = "components are taken in steps of 1, and at least one";
                return Err(PyIndexError::new_err(message));
            }
            return self.0.extract(found.start as usize, found.slicelength).py().map(PyLazy);
        }
        let index: isize = key.extract()?;
        let at = if index < 0 { index + dim } else { index };
        match usize::try_from(at).ok().filter(|_| at < dim) {
            Some(at) => self.0.elem(at).py().map(PyLazy),
            None => {
                let message = format!("component {index} is out of {dim}");
                Err(PyIndexError::new_err(message))
            }
        }
    }

    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let Some(vector) = array(other, Like::tensor(&slf.get().0))? else {
            return Ok(py.NotImplemented());
        };
        let turned = slf.get().t()?;
        let result = match vector.ndim() {
            1 => turned.times(py, &vector, false, &Settings::default())?,
            _ => {
                let vector = vector.matrix_transpose().py()?;
                let product = turned.times(py, &vector, false, &Settings::default())?;
                PyArray(product.0.matrix_transpose().py()?)
            }
        };
        result.into_py_any(py)
    }

    /// The sum over j of this times an array of N numbers or rows, or times another tensor: `K @ v`,
    /// with the keywords of reductions.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0]])
    /// >>> k = tw.Vi(x) + tw.Vj(x)
    /// >>> k.matmul([1.0, 1.0]).tolist()
    /// [1.0, 3.0]
    #[pyo3(signature = (v, /, **options))]
    fn matmul(
        &self,
        py: Python<'_>,
        v: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let mut settings = Settings::default();
        settings.take_all("matmul", options, OF_TIME, |_, _| Ok(false))?;
        if let Ok(other) = v.cast_exact::<PyLazy>() {
            if varies_with_i(&other.get().0) {
                let message = "matmul: the right operand varies with i: products of two symbolic \
                               matrices are not stored. K1 @ (K2 @ b) applies one after the other; \
                               (K1 * K2).sum(axis=1) sums entry by entry";
                return Err(PyValueError::new_err(message));
            }
            let product = self.0.multiply(&other.get().0).py()?;
            return summed(py, &PyLazy(product), 1, settings);
        }
        let vector = required_array(v, Like::tensor(&self.0), "matmul")?;
        fits_out(py, &settings, self.device(), || self.0.matmul_outline(&vector))?;
        let product = self.times(py, &vector, false, &settings)?;
        result(py, Reduced { values: Some(product.0), indices: None }, &settings)
    }

    /// `K @ v`, cast to the tensor's dtype: SciPy's name.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0]])
    /// >>> k = tw.Vi(x) + tw.Vj(x)
    /// >>> k.matvec([1, 1]).tolist()
    /// [1.0, 3.0]
    #[pyo3(signature = (v, /))]
    fn matvec(&self, py: Python<'_>, v: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.operator(py, v)
    }

    /// `K.T @ v`, cast to the tensor's dtype: SciPy's name.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0]])
    /// >>> k = tw.Vi(x) + tw.Vj(x)
    /// >>> k.rmatvec([1, 2]).tolist()
    /// [2.0, 5.0]
    #[pyo3(signature = (v, /))]
    fn rmatvec(&self, py: Python<'_>, v: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.t()?.operator(py, v)
    }

    /// `K @ v` for a matrix: SciPy's name.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0]])
    /// >>> k = tw.Vi(x) + tw.Vj(x)
    /// >>> k.matmat([[1, 0], [0, 1]]).tolist()
    /// [[0.0, 1.0], [1.0, 2.0]]
    #[pyo3(signature = (v, /))]
    fn matmat(&self, py: Python<'_>, v: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.operator(py, v)
    }

    /// `K.T @ v` for a matrix: SciPy's name.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0]])
    /// >>> k = tw.Vi(x) + tw.Vj(x)
    /// >>> k.rmatmat([[1], [2]]).tolist()
    /// [[2.0], [5.0]]
    #[pyo3(signature = (v, /))]
    fn rmatmat(&self, py: Python<'_>, v: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.t()?.operator(py, v)
    }

    /// SciPy's `LinearOperator` of this matrix.
    ///
    /// >>> import tilework as tw
    /// >>> k = tw.Vi(tw.ones((3, 1))) * tw.Vj(tw.ones((2, 1)))
    /// >>> k.aslinearoperator().shape  # doctest: +SKIP
    /// (3, 2)
    fn aslinearoperator<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("scipy.sparse.linalg")?.call_method1("aslinearoperator", (slf,))
    }
}

impl PyLazy {
    /// The part of an index that is about components.
    fn component_key<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Ok(keys) = key.cast::<PyTuple>() else { return Ok(key.clone()) };
        let parts: Vec<Bound<'_, PyAny>> = keys.iter().collect();
        let wrong = || PyIndexError::new_err("only components can be taken: x[:, :, k]");
        let Some((last, others)) = parts.split_last() else { return Err(wrong()) };
        let dots = others.iter().any(|key| key.is_instance_of::<PyEllipsis>());
        let whole = others.iter().all(|key| {
            key.is_instance_of::<PyEllipsis>()
                || key.cast::<PySlice>().is_ok_and(|slice| {
                    slice.getattr("start").is_ok_and(|start| start.is_none())
                        && slice.getattr("stop").is_ok_and(|stop| stop.is_none())
                })
        });
        if whole && (dots || keys.len() == self.0.shape().len()) {
            return Ok(last.clone());
        }
        Err(wrong())
    }
}
