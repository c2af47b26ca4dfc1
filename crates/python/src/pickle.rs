//! Pickles of arrays, with their elements inside or, from protocol 5 on, beside them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tilework::{Array, DType, Device};

use crate::array::PyArray;
use crate::buffer;
use crate::device;
use crate::errors::OrRaise;
use crate::memory;
use crate::run::{detached, run};

impl PyArray {
    /// How the array is made again from its elements.
    fn reduced<'py>(
        &self,
        py: Python<'py>,
        elements: Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let shape = PyTuple::new(py, self.0.shape())?;
        let state = (self.0.dtype().name(), shape, elements, self.0.device().to_string());
        let restore = py.import("tilework._core")?.getattr("_restore")?;
        Ok((restore, state.into_pyobject(py)?))
    }
}

#[pymethods]
impl PyArray {
    /// Pickles hold dtype, shape, device and the elements in row-major order, little endian.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        self.reduced(py, crate::bytes::of(py, &self.0)?.into_any())
    }

    /// From protocol 5 on the elements are a buffer, which goes beside the pickle where there is somebody
    /// to take it.
    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        protocol: i64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if protocol < 5 || cfg!(target_endian = "big") {
            return self.__reduce__(py);
        }
        self.reduced(py, pickle_buffer(py)?.call1((lined_up(py, &self.0)?,))?)
    }
}

/// The class of buffers that pickles take.
fn pickle_buffer(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("pickle")?.getattr("PickleBuffer")
}

/// The elements in row-major order as an array of the host that the buffer protocol knows, for pickles;
/// the array itself if it is one.
fn lined_up(py: Python<'_>, array: &Array) -> PyResult<PyArray> {
    let host = buffer::on_host(py, array)?;
    let host = run(py, host.len(), host.device(), || {
        if host.is_contiguous() { Ok(host.clone()) } else { host.copy() }
    })?;
    if host.dtype() != DType::BFloat16 {
        return Ok(PyArray(host));
    }
    let (storage, layout) = (host.storage().clone(), host.layout().clone());
    Array::from_storage(storage, layout, DType::UInt16).py().map(PyArray)
}

/// The array whose elements are in a buffer, in row-major order: in its memory where that is the
/// device's and the elements lie as they should, else a copy.
fn of_elements(
    data: &Bound<'_, PyAny>,
    dtype: DType,
    shape: &[usize],
    device: Device,
) -> PyResult<Array> {
    let py = data.py();
    if shape.contains(&0) {
        return Array::zeros_on(device, shape, dtype).py();
    }
    // One axis of bytes, whatever the elements were.
    let bytes = pickle_buffer(py)?.call1((data,))?.call_method0("raw")?;
    let host = memory::host_of(device);
    let bytes = buffer::array(&bytes, host)?
        .ok_or_else(|| PyTypeError::new_err("a pickle's elements are no buffer"))?;
    let lengths: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
    run(py, bytes.len(), device, || {
        let elements = match bytes.view_as(dtype).and_then(|flat| flat.reshape(&lengths)) {
            Ok(elements) => elements,
            // At an odd address, or not as many as there should be, which this says.
            Err(_) => {
                let held = bytes.to_vec::<u8>()?;
                Array::from_bytes_on(host, dtype, shape, &held)?
            }
        };
        elements.to_device(device)
    })
}

/// The array of a pickle. Memory that came beside it is shared where it can be, as with NumPy; bytes,
/// which nobody may write to, are copied.
#[pyfunction]
#[pyo3(signature = (dtype, shape, data, device, /))]
fn _restore(
    py: Python<'_>,
    dtype: &str,
    shape: Vec<usize>,
    data: &Bound<'_, PyAny>,
    device: &str,
) -> PyResult<PyArray> {
    let dtype: DType = dtype.parse::<DType>().py()?;
    // A pickle from a machine with other devices is welcome on this one.
    let device = Device::parse(device).unwrap_or_else(|_| device::current());
    if let Ok(bytes) = data.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        let array = detached(py, || Array::from_bytes_on(device, dtype, &shape, bytes)).py()?;
        return Ok(PyArray(array));
    }
    of_elements(data, dtype, &shape, device).map(PyArray)
}

/// Adds what makes arrays of pickles to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_restore, module)?)
}
