//! `tilework.LazyTensor`: the class, its constructors and attributes, `Vi`, `Vj`, `Pm`.
//!
//! Methods that are functions of formulas or reductions come from the tables (`methods`), operators
//! stand in `operators`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use tilework::Device;
use tilework::formula::Variable;
use tilework::pairs::{Along, Category, LazyArg, LazyTensor, Parts};

use super::operand::{Like, Operand, made_of, number, required_array};
use super::settings::Settings;
use super::work::effort;
use crate::args::{kind_of, not_negative, register};
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::device;
use crate::dtype::{self, PyDType};
use crate::errors::OrRaise;
use crate::run::{result_len, run, volume};

/// A symbolic tensor F(p, x_i, y_j): a formula over pairs with the arrays that its variables are.
///
/// Axes are batch axes, i, j, and the components of the vector. Nothing is computed before a
/// reduction over i or j, and then the M x N plane is never stored. An array `(M, 1, D)` varies
/// with i, `(1, N, D)` with j; `(D,)` is a parameter; `axis` says what `(rows, D)` is.
///
/// >>> import tilework as tw
/// >>> x = tw.asarray([[0.0, 0.0], [1.0, 1.0]])
/// >>> y = tw.asarray([[0.0, 1.0], [1.0, 1.0], [3.0, 0.0]])
/// >>> d = tw.Vi(x).sqdist(tw.Vj(y))
/// >>> d
/// LazyTensor(SqDist(Vi(0,2), Vj(1,2)), shape (2, 3, 1))
/// >>> d.argmin(axis=1).tolist()
/// [[0], [1]]
#[pyclass(frozen, name = "LazyTensor", module = "tilework", weakref)]
pub struct PyLazy(pub LazyTensor);

impl PyLazy {
    /// How much work a reduction of the formula is: what is done without the GIL is judged by it.
    pub fn effort(&self, weight: Option<&LazyTensor>) -> usize {
        let (shape, of_weight) = (self.0.shape(), weight.map(LazyTensor::shape));
        // Batches, i and j of both broadcast, components do not.
        let numbers = match &of_weight {
            Some(other) => result_len(&[&shape[..shape.len() - 1], &other[..other.len() - 1]])
                .saturating_mul(self.0.dim()),
            None => volume(&shape),
        };
        effort(numbers, self.0.expr(), weight.map(LazyTensor::expr))
    }

    pub fn device(&self) -> Device {
        self.0.device().unwrap_or_else(device::current)
    }
}

#[pymethods]
impl PyLazy {
    #[new]
    #[pyo3(signature = (x, axis=None))]
    fn new(x: &Bound<'_, PyAny>, axis: Option<isize>) -> PyResult<PyLazy> {
        if axis.is_none()
            && let Ok(tensor) = x.cast_exact::<PyLazy>()
        {
            return Ok(PyLazy(tensor.get().0.clone()));
        }
        if axis.is_none()
            && let Ok((position, dim, category)) = x.extract::<(isize, isize, isize)>()
        {
            return symbol("LazyTensor", position, dim, category);
        }
        if matches!(axis, None | Some(2))
            && let Some(number) = number(x)?
        {
            return Ok(PyLazy(LazyTensor::constant(number)));
        }
        let array = required_array(x, Like::default(), "LazyTensor")?;
        let made = match axis {
            None => LazyTensor::from_array(&array),
            Some(0) => LazyTensor::vi(&array),
            Some(1) => LazyTensor::vj(&array),
            Some(2) => LazyTensor::pm(&array),
            Some(axis) => {
                let message = format!("LazyTensor: axis {axis} is not 0 (i), 1 (j) or 2");
                return Err(PyValueError::new_err(message));
            }
        };
        made_of(made.map_err(|error| error.of("LazyTensor")).py()?, x)
    }

    /// Batch axes, M and N, and the number of components unless it is 1.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut shape = self.0.shape();
        if self.0.dim() == 1 {
            shape.pop();
        }
        PyTuple::new(py, shape)
    }

    /// Batch axes, M, N and the number of components.
    #[getter]
    fn _shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// Number of axes, batch axes and components included.
    ///
    /// >>> import tilework as tw
    /// >>> tw.Vi(0, 4).dim()
    /// 3
    fn dim(&self) -> usize {
        self.0.shape().len()
    }

    /// Number of components, as in KeOps.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.dim()
    }

    /// Rows of i, if a variable has any.
    #[getter]
    fn ni(&self) -> Option<usize> {
        self.0.extents().0
    }

    /// Rows of j, if a variable has any.
    #[getter]
    fn nj(&self) -> Option<usize> {
        self.0.extents().1
    }

    /// The batch axes.
    #[getter]
    fn batchdims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape()[..self.0.batch_axes()])
    }

    /// Number of batch axes.
    #[getter]
    fn nbatchdims(&self) -> usize {
        self.0.batch_axes()
    }

    /// Type of the arrays' elements; None without arrays.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Option<Py<PyDType>> {
        self.0.dtype().map(|found| dtype::object(py, found))
    }

    /// The formula as text, with variables numbered as in `repr`.
    #[getter]
    fn formula(&self) -> PyResult<String> {
        self.0.formula().py()
    }

    /// KeOps' choice of a device: where the arrays are decides, so that nothing is kept of it.
    #[getter]
    fn backend(&self) -> Option<&str> {
        None
    }

    #[setter]
    fn set_backend(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Settings::default().take("backend", value).map(|_| ())
    }

    /// Block sparsity as KeOps has it: not there yet.
    #[getter]
    fn ranges(&self) -> Option<&str> {
        None
    }

    #[setter]
    fn set_ranges(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Settings::default().take("ranges", value).map(|_| ())
    }

    /// i and j exchanged.
    #[getter]
    #[allow(non_snake_case, reason = "NumPy's name")]
    fn T(&self) -> PyResult<PyLazy> {
        self.t()
    }

    /// i and j exchanged.
    ///
    /// >>> import tilework as tw
    /// >>> (tw.Vi(0, 1) - tw.Vj(1, 1)).t().formula
    /// 'Vj(0,1) - Vi(1,1)'
    pub fn t(&self) -> PyResult<PyLazy> {
        self.0.t().py().map(PyLazy)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    // A tensor never changes, and its variables are what gradients are taken towards.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("tilework._core")?.getattr("_restore_lazy")?;
        let Parts { formula, symbols, arrays, weak } = self.0.parts().py()?;
        let symbols: Vec<(usize, usize, usize)> = symbols
            .into_iter()
            .map(|symbol| (symbol.position, symbol.dim, symbol.category as usize))
            .collect();
        let arrays: Vec<(usize, PyArray)> = arrays
            .into_iter()
            .map(|(category, array)| (category as usize, PyArray(array)))
            .collect();
        Ok((restore, (formula, symbols, arrays, weak).into_pyobject(py)?))
    }

    fn __bool__(&self) -> PyResult<bool> {
        let message = "bool: a LazyTensor has no truth value; reduce it first";
        Err(PyValueError::new_err(message))
    }

    /// All values, or those of some rows of i and j, as an array: for a look inside.
    ///
    /// `rows` and `cols` are slices without steps, or how many of the first to take. Components
    /// are the last axis, unless there is one.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.asarray([[0.0], [1.0], [5.0]])
    /// >>> tw.Vi(x).sqdist(tw.Vj(x)).dense(rows=2).tolist()
    /// [[0.0, 1.0, 25.0], [1.0, 0.0, 16.0]]
    #[pyo3(signature = (rows=None, cols=None))]
    fn dense(
        &self,
        py: Python<'_>,
        rows: Option<&Bound<'_, PyAny>>,
        cols: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArray> {
        let (m, n) = self.0.rows();
        let part = self.0.block(range("rows", rows, m)?, range("columns", cols, n)?).py()?;
        let effort = PyLazy(part.clone()).effort(None);
        run(py, effort, self.device(), || {
            let values = part.dense()?;
            if part.dim() == 1 { values.squeeze(Some(&[-1])) } else { Ok(values) }
        })
        .map(PyArray)
    }

    /// Length of the vector; the only axis is that of the components.
    ///
    /// >>> import tilework as tw
    /// >>> tw.Vi(0, 2).norm(-1).formula
    /// 'Sqrt(SqNorm2(Vi(0,2)))'
    #[pyo3(signature = (dim=-1), text_signature = "($self, dim=-1)")]
    fn norm(&self, dim: isize) -> PyResult<PyLazy> {
        if self.0.along(dim).py()? != Along::Components {
            let message = "norm: the norm is taken along the components, dim=-1";
            return Err(PyValueError::new_err(message));
        }
        self.unary("Norm2")
    }

    /// The components of several tensors, one after the other.
    ///
    /// >>> import tilework as tw
    /// >>> tw.LazyTensor.cat((tw.Vi(0, 2), tw.Vj(1, 3))).formula
    /// 'Concat(Vi(0,2), Vj(1,3))'
    #[staticmethod]
    #[pyo3(signature = (tensors, dim=-1), text_signature = "(tensors, dim=-1)")]
    fn cat(tensors: Vec<Bound<'_, PyAny>>, dim: isize) -> PyResult<PyLazy> {
        PyLazy::concatenate(tensors, dim)
    }

    /// The components of several tensors, one after the other.
    ///
    /// >>> import tilework as tw
    /// >>> tw.LazyTensor.concatenate((tw.Vi(0, 2), tw.Vj(1, 3))).formula
    /// 'Concat(Vi(0,2), Vj(1,3))'
    #[staticmethod]
    #[pyo3(signature = (tensors, axis=-1), text_signature = "(tensors, axis=-1)")]
    fn concatenate(tensors: Vec<Bound<'_, PyAny>>, axis: isize) -> PyResult<PyLazy> {
        let made = tensors.iter().filter_map(|tensor| tensor.cast_exact::<PyLazy>().ok());
        let device = made.filter_map(|tensor| tensor.get().0.device()).next();
        let like = Like { dtype: None, device };
        let operands: Vec<Operand<'_>> = tensors
            .iter()
            .map(|tensor| Operand::required(tensor, like, "concatenate"))
            .collect::<PyResult<_>>()?;
        let operands: Vec<LazyArg<'_>> = operands.iter().map(Operand::arg).collect();
        if let [LazyArg::Tensor(one)] = operands[..] {
            return Ok(PyLazy(one.clone()));
        }
        let made = LazyTensor::function("Concat", &operands, &[]).py()?;
        match made.along(axis).py()? {
            Along::Components => Ok(PyLazy(made)),
            Along::Index(_) => {
                let message = "concatenate: only components can be put together, axis=-1";
                Err(PyValueError::new_err(message))
            }
        }
    }
}

/// The rows, or columns, that an argument of `dense` names.
fn range(
    what: &str,
    rows: Option<&Bound<'_, PyAny>>,
    n: usize,
) -> PyResult<std::ops::Range<usize>> {
    let Some(rows) = rows else { return Ok(0..n) };
    if let Ok(slice) = rows.cast::<PySlice>() {
        let found = slice.indices(n as isize)?;
        if found.step != 1 {
            let message = format!("dense: {what} are taken in steps of 1");
            return Err(PyValueError::new_err(message));
        }
        let start = found.start as usize;
        return Ok(start..start + found.slicelength);
    }
    let count: isize = rows.extract().map_err(|_| {
        let kind = kind_of(rows);
        PyTypeError::new_err(format!("dense: rows and cols are a number or a slice, not {kind}"))
    })?;
    let count = usize::try_from(count).map_err(|_| {
        PyValueError::new_err(format!(
            "dense: {count} {what} cannot be taken; a slice counts from the end"
        ))
    })?;
    Ok(0..count.min(n))
}

/// The category of a number.
fn category(number: usize) -> PyResult<Category> {
    Category::ALL.get(number).copied().ok_or_else(|| {
        let message = format!("the category {number} is not 0 (i), 1 (j) or 2 (parameter)");
        PyValueError::new_err(message)
    })
}

/// A symbolic variable, made by the function of this name.
fn symbol(name: &str, position: isize, dim: isize, of: isize) -> PyResult<PyLazy> {
    let position = not_negative(&format!("{name}: the position"), position)?;
    let dim = not_negative(&format!("{name}: the dimension"), dim)?;
    let category = category(not_negative(&format!("{name}: the category"), of)?)?;
    LazyTensor::symbolic(position, dim, category).map_err(|error| error.of(name)).py().map(PyLazy)
}

/// An array as a variable of this category, or the symbolic variable of an index and a dimension.
fn variable(x: &Bound<'_, PyAny>, dim: Option<isize>, category: usize) -> PyResult<PyLazy> {
    let name = ["Vi", "Vj", "Pm"][category];
    if let Some(dim) = dim {
        return symbol(name, x.extract()?, dim, category as isize);
    }
    if let Ok(tensor) = x.cast_exact::<PyLazy>() {
        return Ok(PyLazy(tensor.get().0.clone()));
    }
    let array = required_array(x, Like::default(), name)?;
    let made = match category {
        0 => LazyTensor::vi(&array),
        1 => LazyTensor::vj(&array),
        _ => LazyTensor::pm(&array),
    };
    made_of(made.map_err(|error| error.of(name)).py()?, x)
}

/// An array `(..., M, D)` with one row for each i; with an index and a dimension, the symbolic
/// variable of a later call.
///
/// >>> import tilework as tw
/// >>> tw.Vi(tw.ones((5, 3)))
/// LazyTensor(Vi(0,3), shape (5, 1, 3))
/// >>> later = (tw.Vi(0, 3) | tw.Vj(tw.ones((4, 3)))).sum(axis=1)
/// >>> later(tw.ones((2, 3))).tolist()
/// [[12.0], [12.0]]
#[pyfunction]
#[pyo3(name = "Vi", signature = (x, dim=None, /))]
fn vi(x: &Bound<'_, PyAny>, dim: Option<isize>) -> PyResult<PyLazy> {
    variable(x, dim, 0)
}

/// An array `(..., N, D)` with one row for each j; see `Vi`.
///
/// >>> import tilework as tw
/// >>> tw.Vj(tw.ones((5, 3)))
/// LazyTensor(Vj(0,3), shape (1, 5, 3))
#[pyfunction]
#[pyo3(name = "Vj", signature = (x, dim=None, /))]
fn vj(x: &Bound<'_, PyAny>, dim: Option<isize>) -> PyResult<PyLazy> {
    variable(x, dim, 1)
}

/// An array `(..., D)`, or a number, that is the same for all pairs; see `Vi`.
///
/// A number, and a list of numbers, takes the dtype of the arrays that it meets.
///
/// >>> import tilework as tw
/// >>> tw.Pm(0.5) * tw.Vi(tw.ones((5, 3)))
/// LazyTensor(Pm(0,1) * Vi(1,3), shape (5, 1, 3))
#[pyfunction]
#[pyo3(name = "Pm", signature = (x, dim=None, /))]
fn pm(x: &Bound<'_, PyAny>, dim: Option<isize>) -> PyResult<PyLazy> {
    variable(x, dim, 2)
}

/// The variable of an array or an index, a dimension (None for an array) and a category: 0 for i,
/// 1 for j, 2 for parameters.
#[pyfunction]
#[pyo3(name = "Var", signature = (x, dim=None, cat=0, /))]
fn var(x: &Bound<'_, PyAny>, dim: Option<isize>, cat: isize) -> PyResult<PyLazy> {
    if let (Some(dim), Ok(position)) = (dim, x.extract::<isize>()) {
        return symbol("Var", position, dim, cat);
    }
    if !(0..=2).contains(&cat) {
        return symbol("Var", 0, 1, cat);
    }
    let made = variable(x, None, cat as usize)?;
    match dim {
        Some(dim) if usize::try_from(dim) != Ok(made.0.dim()) => {
            let message = format!("Var: the array has {} components, not {dim}", made.0.dim());
            Err(PyValueError::new_err(message))
        }
        _ => Ok(made),
    }
}

/// The tensor of a pickle: text, symbolic variables and arrays with their categories.
#[pyfunction]
#[pyo3(signature = (formula, symbols, arrays, weak, /))]
fn _restore_lazy(
    formula: String,
    symbols: Vec<(usize, usize, usize)>,
    arrays: Vec<(usize, ArrayArg)>,
    weak: bool,
) -> PyResult<PyLazy> {
    let symbols = symbols
        .into_iter()
        .map(|(position, dim, of)| Ok(Variable { position, dim, category: category(of)? }));
    let arrays = arrays.into_iter().map(|(of, array)| Ok((category(of)?, array.0)));
    let parts = Parts {
        formula,
        symbols: symbols.collect::<PyResult<_>>()?,
        arrays: arrays.collect::<PyResult<_>>()?,
        weak,
    };
    LazyTensor::from_parts(&parts).py().map(PyLazy)
}

/// Adds the class and the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLazy>()?;
    register!(module: vi, vj, pm, var);
    module.add_function(wrap_pyfunction!(_restore_lazy, module)?)
}
