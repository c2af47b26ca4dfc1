//! Functions on dtypes: casts, promotion, questions.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use tilework::{DType, Number};

use crate::args::register;
use crate::array::PyArray;
use crate::class;
use crate::convert::ArrayArg;
use crate::device::DeviceArg;
use crate::dtype::{self, DTypeArg, PyDType};
use crate::operand;
use crate::run::run;

/// The elements cast to a dtype, and moved to a device; without a copy where none is needed and
/// `copy=False`. Complex numbers are no real ones: cast `real(x)` or `imag(x)`.
///
/// >>> import tilework as tw
/// >>> tw.astype(tw.asarray([1.7]), tw.int32).tolist()
/// [1]
#[pyfunction]
#[pyo3(signature = (x, dtype, /, *, copy=true, device=None))]
fn astype(
    py: Python<'_>,
    x: ArrayArg,
    dtype: DTypeArg,
    copy: bool,
    device: Option<DeviceArg>,
) -> PyResult<PyArray> {
    let (from, to) = (x.0.dtype(), dtype.0);
    if from.is_complex() && !to.is_complex() && to != DType::Bool {
        // The standard leaves no way to drop a part by accident; the method is NumPy's.
        return Err(PyTypeError::new_err(format!(
            "astype: {from} to {to} would drop a part; cast real(x) or imag(x)"
        )));
    }
    let device = device.map_or(x.0.device(), |device| device.0);
    run(py, x.0.len(), x.0.device(), || {
        let cast = x.0.to_dtype(dtype.0)?.to_device(device)?;
        if copy && cast.is_same_block(&x.0) { cast.copy() } else { Ok(cast) }
    })
    .map(PyArray)
}

/// The dtype that arrays, dtypes and numbers have together.
///
/// >>> import tilework as tw
/// >>> tw.result_type(tw.int8, tw.uint8, 3)
/// dtype('int16')
#[pyfunction]
#[pyo3(signature = (*arrays_and_dtypes))]
fn result_type(py: Python<'_>, arrays_and_dtypes: &Bound<'_, PyTuple>) -> PyResult<Py<PyDType>> {
    let mut common: Option<DType> = None;
    let mut numbers: Vec<Number> = Vec::new();
    for object in arrays_and_dtypes.iter() {
        if let Some(number) = operand::number(&object)? {
            numbers.push(number);
            continue;
        }
        let dtype = match class::ours(&object) {
            Some(array) => array.dtype(),
            None => match dtype::parse(&object) {
                Ok(dtype) => dtype,
                Err(error) => object.extract::<ArrayArg>().map_err(|_| error)?.0.dtype(),
            },
        };
        common = Some(common.map_or(dtype, |common| common.promote(dtype)));
    }
    for number in numbers {
        common = Some(common.map_or(number.default_dtype(), |common| number.promote(common)));
    }
    let common =
        common.ok_or_else(|| PyValueError::new_err("result_type: there is nothing to promote"))?;
    Ok(dtype::object(py, common))
}

/// Whether promotion takes `from_` (a dtype or an array) to `to` without loss of kind.
///
/// >>> import tilework as tw
/// >>> tw.can_cast(tw.int8, tw.int16), tw.can_cast(tw.float32, tw.int64)
/// (True, False)
#[pyfunction]
#[pyo3(signature = (from_, to, /))]
fn can_cast(from_: &Bound<'_, PyAny>, to: DTypeArg) -> PyResult<bool> {
    Ok(dtype::dtype_of(from_)?.can_cast(to.0))
}

/// Whether a dtype is of a kind: a dtype, a name of the standard ("integral", "real floating",
/// ...), or one of a tuple of these.
///
/// >>> import tilework as tw
/// >>> tw.isdtype(tw.float32, ("integral", "real floating"))
/// True
#[pyfunction]
fn isdtype(dtype: DTypeArg, kind: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(kinds) = kind.cast::<PyTuple>() {
        for kind in kinds.iter() {
            if isdtype(dtype, &kind)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let Ok(name) = kind.cast::<PyString>() else {
        return Ok(dtype::parse(kind)? == dtype.0);
    };
    dtype::of_kind(dtype.0, name.to_str()?)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: astype, result_type, can_cast, isdtype);
    Ok(())
}
