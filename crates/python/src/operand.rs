//! Arguments as operands: our arrays, Python's numbers, and whatever becomes an array.
//!
//! Numbers of Python are weak and stay numbers; NumPy's scalars have a dtype and are arrays. The
//! order of the questions is the order of what is likely, since this runs in every operation.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple, PyType};
use tilework::{Arg, Array, Complex, DType, Device, Number};

use crate::class;
use crate::convert;

/// An operand: borrowed from Python, a number, or made from something else.
pub enum Operand<'a> {
    /// One of our arrays.
    Ours(&'a Array),
    /// A number of Python.
    Number(Number),
    /// An array made for this call.
    Made(Array),
}

impl<'a> Operand<'a> {
    /// The operand of an object; None if it can be none. What becomes an array goes to `device`.
    #[inline]
    pub fn of(object: &'a Bound<'_, PyAny>, device: Device) -> PyResult<Option<Operand<'a>>> {
        match Operand::known(object)? {
            Some(operand) => Ok(Some(operand)),
            None => Ok(convert::foreign(object, device)?.map(Operand::Made)),
        }
    }

    /// The operand of an object that is written to elements of `dtype`: numbers in lists become that, so
    /// that they must fit as single ones must.
    pub fn written(
        object: &'a Bound<'_, PyAny>,
        dtype: DType,
        device: Device,
    ) -> PyResult<Option<Operand<'a>>> {
        match Operand::known(object)? {
            Some(operand) => Ok(Some(operand)),
            None if convert::is_sequence(object) => {
                convert::asarray_near(object, Some(dtype), device)
                    .map(|list| Some(Operand::Made(list)))
            }
            None => Ok(convert::foreign(object, device)?.map(Operand::Made)),
        }
    }

    /// One of our arrays or a number of Python, which need not be made into anything.
    #[inline]
    fn known(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Operand<'a>>> {
        match class::ours(object) {
            Some(array) => Ok(Some(Operand::Ours(array))),
            None => Ok(number(object)?.map(Operand::Number)),
        }
    }

    /// The operand as the core takes it.
    #[inline]
    pub fn arg(&self) -> Arg<'_> {
        match self {
            Operand::Ours(array) => Arg::Array(array),
            Operand::Number(number) => Arg::Number(*number),
            Operand::Made(array) => Arg::Array(array),
        }
    }

    /// How many elements it has.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Operand::Ours(array) => array.len(),
            Operand::Made(array) => array.len(),
            Operand::Number(_) => 1,
        }
    }

    /// Its shape; a number has no axes.
    pub fn shape(&self) -> &[usize] {
        match self {
            Operand::Ours(array) => array.shape(),
            Operand::Made(array) => array.shape(),
            Operand::Number(_) => &[],
        }
    }

    /// The operand as an array; a number becomes one of no axes.
    pub fn to_array(&self, device: Device) -> tilework::Result<Array> {
        match self {
            Operand::Ours(array) => Ok((*array).clone()),
            Operand::Made(array) => Ok(array.clone()),
            Operand::Number(number) => {
                let made = Array::full_on(device, &[], *number, number.default_dtype());
                made.map_err(|error| error.of("asarray"))
            }
        }
    }
}

/// The number that an object of Python is; None if it is something else.
#[inline]
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    // SAFETY: the object is valid and the thread is attached.
    match unsafe { plain_number(object.as_ptr()) } {
        None => number_of_another_type(object),
        number => Ok(number),
    }
}

/// The number that an object is if it is exactly a float, or an int of 64 bits at most.
///
/// # Safety
/// It is the address of a valid object, and the thread is attached.
#[inline]
pub unsafe fn plain_number(object: *mut ffi::PyObject) -> Option<Number> {
    // SAFETY: the value functions are called on the types that they are for.
    unsafe {
        if ffi::PyFloat_CheckExact(object) != 0 {
            return Some(Number::Float(ffi::PyFloat_AsDouble(object)));
        }
        if ffi::PyLong_CheckExact(object) == 0 {
            return None;
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(object, &mut overflow);
        (overflow == 0).then(|| Number::Int(value.into()))
    }
}

fn number_of_another_type(object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Some(Number::Bool(value.is_true())));
    }
    if let Ok(value) = object.cast_exact::<PyComplex>() {
        use pyo3::types::PyComplexMethods;
        return Ok(Some(Number::Complex(Complex::new(value.real(), value.imag()))));
    }
    if class::ours(object).is_some()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
    {
        return Ok(None);
    }
    // Subclasses, such as those of enum; NumPy's float64 is one of float, but has a dtype.
    let subclass = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>();
    if !subclass || object.hasattr("dtype")? {
        return Ok(None);
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract::<i128>().map(|value| Some(Number::Int(value)));
    }
    if object.is_instance_of::<PyFloat>() {
        return object.extract::<f64>().map(|value| Some(Number::Float(value)));
    }
    let value = object.cast::<PyComplex>()?;
    use pyo3::types::PyComplexMethods;
    Ok(Some(Number::Complex(Complex::new(value.real(), value.imag()))))
}

/// Whether an object is one of NumPy's numbers, dates or texts.
pub fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if let Some(generic) = GENERIC.get(py) {
        return object.is_instance(generic.bind(py));
    }
    // Whoever has a scalar of NumPy's has imported NumPy.
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(numpy) = modules.get_item("numpy") else { return Ok(false) };
    let generic = numpy.getattr("generic")?.cast_into::<PyType>()?.unbind();
    object.is_instance(GENERIC.get_or_init(py, || generic).bind(py))
}
