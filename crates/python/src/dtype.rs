//! `tilework.dtype`: the types of elements, as Python objects that get along with NumPy's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};
use tilework::DType;
use tilework_ops::Kind;

use crate::array::PyArray;
use crate::convert;
use crate::device;
use crate::errors::OrRaise;

/// The type of an array's elements.
///
/// Made from a name, a Python type, or a NumPy dtype; compares equal to all of them.
///
/// >>> import tilework as tw
/// >>> tw.dtype("float32") == tw.float32
/// True
/// >>> tw.float32
/// dtype('float32')
#[pyclass(frozen, name = "dtype", module = "tilework", weakref)]
pub struct PyDType(pub DType);

/// The object of a dtype: there is one for each.
pub fn object(py: Python<'_>, dtype: DType) -> Py<PyDType> {
    static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();
    let all = OBJECTS.get_or_init(py, || {
        DType::ALL.iter().filter_map(|&dtype| Py::new(py, PyDType(dtype)).ok()).collect()
    });
    all[dtype as usize].clone_ref(py)
}

/// The dtype that an argument names: one of ours, a name, a Python type, a NumPy dtype or scalar
/// type.
pub fn parse(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(dtype) = object.cast_exact::<PyDType>() {
        return Ok(dtype.get().0);
    }
    if let Ok(name) = object.cast::<PyString>() {
        return parse_name(name.to_str()?);
    }
    let py = object.py();
    if object.is_instance_of::<PyType>() {
        let builtin = [
            (py.get_type::<PyBool>(), DType::Bool),
            (py.get_type::<PyInt>(), DType::Int64),
            (py.get_type::<PyFloat>(), DType::Float64),
            (py.get_type::<PyComplex>(), DType::Complex128),
        ];
        if let Some((_, dtype)) = builtin.iter().find(|(class, _)| object.is(class)) {
            return Ok(*dtype);
        }
        // NumPy's scalar types, ml_dtypes' included, carry the name of the dtype.
        if let Ok(name) = object.getattr(intern!(py, "__name__"))?.cast::<PyString>()
            && let Ok(dtype) = parse_name(name.to_str()?)
        {
            return Ok(dtype);
        }
    } else if let Some(name) = object.getattr_opt(intern!(py, "name"))? {
        let native = match object.getattr_opt(intern!(py, "isnative"))? {
            Some(native) => native.is_truthy()?,
            None => true,
        };
        if native && let Ok(name) = name.cast::<PyString>() {
            return parse_name(name.to_str()?);
        }
    }
    Err(PyTypeError::new_err(format!("{} is not a dtype", object.repr()?)))
}

fn parse_name(name: &str) -> PyResult<DType> {
    // Names that NumPy also understands: codes of kind and size, and C's letters.
    let code = name.strip_prefix(['<', '=', '|']).unwrap_or(name);
    let known = match code {
        "?" | "b1" | "bool_" => Some(DType::Bool),
        "i1" | "b" | "byte" => Some(DType::Int8),
        "i2" | "h" | "short" => Some(DType::Int16),
        "i4" | "i" | "intc" => Some(DType::Int32),
        "i8" | "q" | "l" | "p" | "int" | "intp" | "long" | "longlong" => Some(DType::Int64),
        "u1" | "B" | "ubyte" => Some(DType::UInt8),
        "u2" | "H" | "ushort" => Some(DType::UInt16),
        "u4" | "I" | "uintc" => Some(DType::UInt32),
        "u8" | "Q" | "L" | "P" | "uint" | "uintp" | "ulong" | "ulonglong" => Some(DType::UInt64),
        "f2" | "e" | "half" => Some(DType::Float16),
        "f4" | "f" | "single" => Some(DType::Float32),
        "f8" | "d" | "float" | "double" => Some(DType::Float64),
        "c8" | "F" | "csingle" => Some(DType::Complex64),
        "c16" | "D" | "complex" | "cdouble" => Some(DType::Complex128),
        _ => None,
    };
    match known {
        Some(dtype) => Ok(dtype),
        None => name.parse::<DType>().py(),
    }
}

/// NumPy's letter for the kind of a dtype. bfloat16 is void to NumPy.
pub fn kind_letter(dtype: DType) -> char {
    match dtype.kind() {
        _ if dtype == DType::BFloat16 => 'V',
        Kind::Bool => 'b',
        Kind::Signed => 'i',
        Kind::Unsigned => 'u',
        Kind::Float => 'f',
        Kind::Complex => 'c',
    }
}

/// NumPy's code for a dtype, as in `__array_interface__`: `<f4`.
pub fn type_string(dtype: DType) -> String {
    let order = if dtype.size() == 1 { '|' } else { '<' };
    format!("{order}{}{}", kind_letter(dtype), dtype.size())
}

/// The NumPy dtype of ours; bfloat16 comes from ml_dtypes.
pub fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let numpy = py.import("numpy")?;
    if dtype != DType::BFloat16 {
        return numpy.call_method1("dtype", (dtype.name(),));
    }
    let ml_dtypes = py.import("ml_dtypes").map_err(|_| {
        PyTypeError::new_err("NumPy has no bfloat16; install ml_dtypes, or cast to float32 first")
    })?;
    numpy.call_method1("dtype", (ml_dtypes.getattr("bfloat16")?,))
}

#[pymethods]
impl PyDType {
    #[new]
    #[pyo3(signature = (name, /))]
    fn new(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
        Ok(object(py, parse(name)?))
    }

    /// Its name.
    ///
    /// >>> import tilework as tw
    /// >>> tw.float32.name
    /// 'float32'
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes of one element.
    ///
    /// >>> import tilework as tw
    /// >>> tw.complex64.itemsize
    /// 8
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// One letter: b, i, u, f or c; V for bfloat16, which NumPy does not know.
    ///
    /// >>> import tilework as tw
    /// >>> tw.uint8.kind
    /// 'u'
    #[getter]
    fn kind(&self) -> char {
        kind_letter(self.0)
    }

    /// NumPy's code, with byte order and size.
    ///
    /// >>> import tilework as tw
    /// >>> tw.float32.str
    /// '<f4'
    #[getter]
    fn str(&self) -> String {
        type_string(self.0)
    }

    /// NumPy's type of single numbers.
    ///
    /// >>> import tilework as tw
    /// >>> tw.float32.type.__name__
    /// 'float32'
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, self.0)?.getattr("type")
    }

    /// NumPy's dtype of the same name: what `numpy.dtype(...)` asks for.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, self.0)
    }

    /// NumPy's dtype of the same name.
    ///
    /// >>> import tilework as tw
    /// >>> tw.int16.dtype
    /// dtype('int16')
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, self.0)
    }

    /// An array of this dtype, as NumPy's types make numbers: `tw.float32(1.5)`.
    #[pyo3(signature = (value, /))]
    fn __call__(&self, value: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        let device = device::current();
        convert::asarray_on(value, Some(self.0), device).map(PyArray)
    }

    fn __repr__(&self) -> String {
        format!("dtype('{}')", self.0)
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        // None is a dtype to NumPy, float64; here it is none.
        !other.is_none() && parse(other).is_ok_and(|dtype| dtype == self.0)
    }

    fn __hash__(&self) -> isize {
        self.0 as isize + 1
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.get_type::<PyDType>().into_any(), (self.0.name(),)))
    }
}

/// An argument that names a dtype.
#[derive(Clone, Copy)]
pub struct DTypeArg(pub DType);

impl<'py> FromPyObject<'_, 'py> for DTypeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        parse(&object).map(DTypeArg)
    }
}

/// Limits of a floating-point type.
#[pyclass(frozen, name = "finfo_object", module = "tilework", get_all)]
pub struct FInfoObject {
    bits: u32,
    eps: f64,
    max: f64,
    min: f64,
    smallest_normal: f64,
    smallest_subnormal: f64,
    dtype: Py<PyDType>,
}

/// Limits of an integer type.
#[pyclass(frozen, name = "iinfo_object", module = "tilework", get_all)]
pub struct IInfoObject {
    bits: u32,
    max: i128,
    min: i128,
    dtype: Py<PyDType>,
}

#[pymethods]
impl FInfoObject {
    fn __repr__(&self, py: Python<'_>) -> String {
        let FInfoObject { bits, eps, max, min, smallest_normal, .. } = self;
        let dtype = self.dtype.get().0;
        let _ = py;
        format!(
            "finfo(dtype={dtype}, bits={bits}, eps={eps:e}, min={min:e}, max={max:e}, smallest_normal={smallest_normal:e})"
        )
    }
}

#[pymethods]
impl IInfoObject {
    fn __repr__(&self) -> String {
        let IInfoObject { bits, max, min, .. } = self;
        format!("iinfo(dtype={}, bits={bits}, min={min}, max={max})", self.dtype.get().0)
    }
}

/// The dtype of an array, or the dtype itself.
pub fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    match object.cast::<PyArray>() {
        Ok(array) => Ok(array.get().0.dtype()),
        Err(_) => parse(object),
    }
}

/// Limits of a floating-point dtype, or of an array's: bits, eps, min, max, smallest_normal.
///
/// >>> import tilework as tw
/// >>> tw.finfo(tw.float16).max
/// 65504.0
#[pyfunction]
#[pyo3(signature = (r#type, /))]
fn finfo(py: Python<'_>, r#type: &Bound<'_, PyAny>) -> PyResult<FInfoObject> {
    let dtype = dtype_of(r#type)?;
    let info = dtype.finfo().py()?;
    Ok(FInfoObject {
        bits: info.bits,
        eps: info.eps,
        max: info.max,
        min: info.min,
        smallest_normal: info.smallest_normal,
        smallest_subnormal: info.smallest_subnormal,
        dtype: object(py, info.dtype),
    })
}

/// Limits of an integer dtype, or of an array's: bits, min, max.
///
/// >>> import tilework as tw
/// >>> tw.iinfo(tw.int8).min
/// -128
#[pyfunction]
#[pyo3(signature = (r#type, /))]
fn iinfo(py: Python<'_>, r#type: &Bound<'_, PyAny>) -> PyResult<IInfoObject> {
    let info = dtype_of(r#type)?.iinfo().py()?;
    let dtype = object(py, info.dtype);
    Ok(IInfoObject { bits: info.bits, max: info.max, min: info.min, dtype })
}

/// Whether a dtype is of a kind that the standard names.
pub fn of_kind(dtype: DType, kind: &str) -> PyResult<bool> {
    Ok(match kind {
        "bool" => dtype.kind() == Kind::Bool,
        "signed integer" => dtype.kind() == Kind::Signed,
        "unsigned integer" => dtype.kind() == Kind::Unsigned,
        "integral" => dtype.is_integer(),
        "real floating" => dtype.is_float(),
        "complex floating" => dtype.is_complex(),
        "numeric" => dtype.kind() != Kind::Bool,
        other => {
            return Err(PyValueError::new_err(format!("isdtype: no kind is called {other:?}")));
        }
    })
}

/// Adds the class, the dtypes and their limits to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    module.add_class::<FInfoObject>()?;
    module.add_class::<IInfoObject>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), object(module.py(), dtype))?;
    }
    module.add_function(wrap_pyfunction!(finfo, module)?)?;
    module.add_function(wrap_pyfunction!(iinfo, module)?)
}
