//! `+ - * / // % ** @ << >> & | ^ ~ abs` and comparisons, reflected and in place.
//!
//! The shortest way from Python to a kernel: no argument parsing, no object but the result. What is
//! short anyway does not even come through PyO3 (`at_once`).

#![allow(unsafe_op_in_unsafe_fn, reason = "in what PyO3 makes of the macro below")]

use std::ffi::{c_int, c_void};

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tilework::{Arg, Array, DType, Id, apply, apply_into};

use crate::array::PyArray;
use crate::class;
use crate::operand::{self, Operand};
use crate::run::{self, run};

/// `slf op other`, or `other op slf` if reflected; NotImplemented for what is no operand.
#[inline]
fn binary<'py>(
    slf: &Bound<'py, PyArray>,
    other: &Bound<'py, PyAny>,
    id: Id,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let array = &slf.get().0;
    let Some(operand) = Operand::of(other, array.device())? else {
        return Ok(slf.py().NotImplemented());
    };
    let (elements, device) = (run::result_len(&[array.shape(), operand.shape()]), array.device());
    let (array, other) = (array.into(), operand.arg());
    let operands = if reflected { [other, array] } else { [array, other] };
    run(slf.py(), elements, device, || apply(id, &operands))
        .and_then(|x| PyArray(x).into_py_any(slf.py()))
}

/// The short way of an operation: on arrays and plain numbers, little work, no trouble.
///
/// # Safety
/// The addresses are those of valid objects, and the thread is attached.
#[inline]
unsafe fn at_once(id: Id, objects: [*mut ffi::PyObject; 2]) -> Option<Array> {
    let mut device = None;
    let mut operand = |object| {
        // SAFETY: the caller's.
        match unsafe { class::array_at(object) } {
            Some(array) => {
                device = Some(array.device());
                Some((Arg::Array(array), array.shape()))
            }
            // SAFETY: the caller's.
            None => unsafe { operand::plain_number(object) }
                .map(|number| (Arg::Number(number), &[][..])),
        }
    };
    let ((left, a), (right, b)) = (operand(objects[0])?, operand(objects[1])?);
    run::at_once(run::result_len(&[a, b]), device?, || apply(id, &[left, right]))
}

/// The operation that a comparison is.
fn comparing(op: CompareOp) -> Id {
    match op {
        CompareOp::Eq => Id::Equal,
        CompareOp::Ne => Id::NotEqual,
        CompareOp::Lt => Id::Less,
        CompareOp::Le => Id::LessEqual,
        CompareOp::Gt => Id::Greater,
        CompareOp::Ge => Id::GreaterEqual,
    }
}

/// The short way of comparisons.
unsafe extern "C" fn compare(
    left: *mut ffi::PyObject,
    right: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this slot with valid objects, attached.
    unsafe {
        class::through(
            ffi::Py_tp_richcompare,
            || at_once(comparing(CompareOp::from_raw(op)?), [left, right]),
            |function: ffi::richcmpfunc| function(left, right, op),
        )
    }
}

#[inline]
fn unary(slf: &Bound<'_, PyArray>, id: Id) -> PyResult<PyArray> {
    let array = &slf.get().0;
    run(slf.py(), array.len(), array.device(), || apply(id, &[array.into()])).map(PyArray)
}

fn in_place(slf: &Bound<'_, PyArray>, other: &Bound<'_, PyAny>, id: Id) -> PyResult<()> {
    let array = &slf.get().0;
    let other = required(other, array, id.row().name)?;
    run(slf.py(), array.len(), array.device(), || {
        apply_into(id, &[array.into(), other.arg()], array)
    })
}

/// The operand of an object that must be one.
fn required<'a>(
    other: &'a Bound<'_, PyAny>,
    array: &Array,
    operation: &str,
) -> PyResult<Operand<'a>> {
    Operand::of(other, array.device())?.ok_or_else(|| {
        let kind = crate::args::kind_of(other);
        PyTypeError::new_err(format!("{operation}: {kind} is not an array or a number"))
    })
}

macro_rules! operators {
    ($($slot:ident $forward:ident $reflected:ident $in_place:ident $id:ident)*) => {
        /// Slots of the class that try the short way first.
        pub fn shortened() -> Vec<(c_int, *mut c_void)> {
            let compare = (ffi::Py_tp_richcompare, compare as ffi::richcmpfunc as *mut c_void);
            vec![compare, $((ffi::$slot, slots::$forward as ffi::binaryfunc as *mut c_void)),*]
        }

        mod slots {
            use super::{Id, at_once, class, ffi};
            $(
                pub unsafe extern "C" fn $forward(
                    left: *mut ffi::PyObject,
                    right: *mut ffi::PyObject,
                ) -> *mut ffi::PyObject {
                    // SAFETY: the interpreter calls this slot with valid objects, attached.
                    unsafe {
                        class::through(
                            ffi::$slot,
                            || at_once(Id::$id, [left, right]),
                            |function: ffi::binaryfunc| function(left, right),
                        )
                    }
                }
            )*
        }

        #[pymethods]
        impl PyArray {
            $(
                fn $forward<'py>(
                    slf: &Bound<'py, Self>,
                    other: &Bound<'py, PyAny>,
                ) -> PyResult<Py<PyAny>> {
                    binary(slf, other, Id::$id, false)
                }
                fn $reflected<'py>(
                    slf: &Bound<'py, Self>,
                    other: &Bound<'py, PyAny>,
                ) -> PyResult<Py<PyAny>> {
                    binary(slf, other, Id::$id, true)
                }
                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    in_place(slf, other, Id::$id)
                }
            )*
        }
    };
}

operators! {
    Py_nb_add __add__ __radd__ __iadd__ Add
    Py_nb_subtract __sub__ __rsub__ __isub__ Subtract
    Py_nb_multiply __mul__ __rmul__ __imul__ Multiply
    Py_nb_true_divide __truediv__ __rtruediv__ __itruediv__ Divide
    Py_nb_floor_divide __floordiv__ __rfloordiv__ __ifloordiv__ FloorDivide
    Py_nb_remainder __mod__ __rmod__ __imod__ Remainder
    Py_nb_and __and__ __rand__ __iand__ BitwiseAnd
    Py_nb_or __or__ __ror__ __ior__ BitwiseOr
    Py_nb_xor __xor__ __rxor__ __ixor__ BitwiseXor
    Py_nb_lshift __lshift__ __rlshift__ __ilshift__ LeftShift
    Py_nb_rshift __rshift__ __rrshift__ __irshift__ RightShift
}

#[pymethods]
impl PyArray {
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some() {
            return Ok(slf.py().NotImplemented());
        }
        binary(slf, other, Id::Pow, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some() {
            return Ok(slf.py().NotImplemented());
        }
        binary(slf, other, Id::Pow, true)
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        in_place(slf, other, Id::Pow)
    }

    fn __divmod__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        Ok((binary(slf, other, Id::FloorDivide, false)?, binary(slf, other, Id::Remainder, false)?))
    }

    fn __rdivmod__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        Ok((binary(slf, other, Id::FloorDivide, true)?, binary(slf, other, Id::Remainder, true)?))
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        product(slf, other, false)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        product(slf, other, true)
    }

    fn __imatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = &slf.get().0;
        let other = required(other, array, "matmul")?;
        let work = matmul_work(array, other.len());
        run(slf.py(), work, array.device(), || {
            array.matmul_into(&other.to_array(array.device())?, array)
        })
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<PyArray> {
        unary(slf, Id::Negative)
    }

    fn __pos__(slf: &Bound<'_, Self>) -> PyResult<PyArray> {
        unary(slf, Id::Positive)
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<PyArray> {
        unary(slf, Id::Abs)
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<PyArray> {
        unary(slf, Id::BitwiseInvert)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        // No element equals None or a string, as in NumPy; whatever else is no operand may have
        // something to say about it itself.
        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        if equality && (other.is_none() || other.is_instance_of::<PyString>()) {
            let (py, array) = (slf.py(), &slf.get().0);
            let (device, differs) = (array.device(), matches!(op, CompareOp::Ne));
            let all = run(py, array.len(), device, || {
                Array::full_on(device, array.shape(), differs, DType::Bool)
            })?;
            return PyArray(all).into_py_any(py);
        }
        binary(slf, other, comparing(op), false)
    }
}

/// Multiplications of float32 or float64 that the CPU does while it does something with one element.
const PER_ELEMENT: usize = 32;

/// About how many elements take as long as a product.
pub fn matmul_work(left: &Array, right: usize) -> usize {
    let inner = left.shape().last().copied().unwrap_or(1).max(1);
    let multiplications = left.len().saturating_mul(right) / inner;
    let vectors = matches!(left.dtype(), DType::Float32 | DType::Float64);
    if vectors && left.device().is_quick() {
        multiplications / PER_ELEMENT
    } else {
        multiplications
    }
}

fn product<'py>(
    slf: &Bound<'py, PyArray>,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let (py, array) = (slf.py(), &slf.get().0);
    let Some(other) = Operand::of(other, array.device())? else {
        return Ok(py.NotImplemented());
    };
    let work = matmul_work(array, other.len());
    let result = run(py, work, array.device(), || {
        let other = other.to_array(array.device())?;
        if reflected { other.matmul(array) } else { array.matmul(&other) }
    })?;
    PyArray(result).into_py_any(py)
}
