//! What only CUDA devices have: memory of their own, and streams that other libraries know.
//!
//! `tilework.cuda` is made of the functions here. DLPack and the CUDA array interface, which is here
//! too, tell each other's streams apart: nobody reads what another has not written yet.

use std::path::PathBuf;

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilework::{Array, DType, Device};
use tilework_backend::Backend;
use tilework_cuda::Cuda;

use crate::array::PyArray;
use crate::buffer;
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::errors::OrRaise;
use crate::memory::{self, Foreign};

/// The driver's number for the default stream of all threads, which protocols mean by None.
pub const DEFAULT_STREAM: usize = 1;
/// That for the default stream of each thread.
const THREAD_STREAM: usize = 2;
/// No stream's number, or that of the default stream where libraries say which one they work in.
const UNKNOWN_STREAM: usize = 0;

/// The card that a device is; None if it is none.
pub fn card(device: Device) -> Option<&'static Cuda> {
    let id = device.id();
    let cards = if id.backend == "cuda" { tilework_cuda::devices().ok() } else { None };
    cards?.get(id.index? as usize)
}

/// The device that is a card of some number; an error that says why where there is none.
pub fn device(number: i32) -> PyResult<Device> {
    Device::parse(&format!("cuda:{number}")).py()
}

/// Memory that a consumer works on in a stream of its own; when dropped, what is asked of the device
/// afterwards waits for it.
pub struct Lent {
    card: &'static Cuda,
    stream: usize,
}

impl Lent {
    /// Lets the consumer's stream wait for what was asked of the device so far.
    pub fn new(card: &'static Cuda, stream: usize) -> PyResult<Lent> {
        // SAFETY: by the protocols, the number is a stream of the consumer on this device.
        unsafe { card.let_wait(stream) }.py()?;
        Ok(Lent { card, stream })
    }

    /// The consumer sees to its order with the device itself, in a stream that nobody tells.
    pub fn unordered(card: &'static Cuda) -> Lent {
        Lent { card, stream: UNKNOWN_STREAM }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The default streams live as long as the process; others may be gone by now. A device that
        // fails here tells the next operation.
        let _ = match self.stream {
            // SAFETY: numbers of default streams.
            DEFAULT_STREAM | THREAD_STREAM => unsafe { self.card.wait_for(self.stream) },
            _ => self.card.wait_for_all(),
        };
    }
}

/// Memory of another library that is written to: when dropped, the stream which that library works in waits for what was
/// asked of the device until then, or the host where nobody knows the stream.
pub struct Written {
    card: &'static Cuda,
    stream: Option<usize>,
}

impl Written {
    pub fn new(card: &'static Cuda, owner: &Bound<'_, PyAny>) -> Written {
        Written { card, stream: current_stream(owner).ok().flatten() }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let ordered = match self.stream {
            // Ours keeps in step with it.
            Some(UNKNOWN_STREAM | DEFAULT_STREAM) => return,
            // SAFETY: the library's current stream when this was made, by the thread that drops it.
            Some(stream) => unsafe { self.card.let_wait(stream) },
            None => self.card.synchronize(),
        };
        // A device that fails here tells the next operation.
        drop(ordered);
    }
}

/// The stream that the library of an array works in at the moment, of those that say so.
fn current_stream(owner: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let (py, module) = (owner.py(), owner.get_type().module()?);
    let stream = match module.to_cow()?.split('.').next() {
        Some("torch") => {
            let device = owner.getattr("device")?;
            let stream = py.import("torch.cuda")?.call_method1("current_stream", (device,))?;
            stream.getattr("cuda_stream")?
        }
        Some("cupy") => {
            py.import("cupy.cuda")?.call_method0("get_current_stream")?.getattr("ptr")?
        }
        _ => return Ok(None),
    };
    stream.extract().map(Some)
}

/// Memory of another library, which has it back some time after this is dropped: when the device is
/// done.
pub struct Borrowed<T: Send + 'static> {
    card: &'static Cuda,
    owner: Option<T>,
}

impl<T: Send + 'static> Borrowed<T> {
    pub fn new(card: &'static Cuda, owner: T) -> Borrowed<T> {
        Borrowed { card, owner: Some(owner) }
    }
}

impl<T: Send + 'static> Drop for Borrowed<T> {
    fn drop(&mut self) {
        // Its owner may use the memory again at once, in a stream that nobody told us.
        if let Some(owner) = self.owner.take() {
            self.card.keep_until_done(Box::new(owner));
        }
    }
}

/// Whether an object offers memory of a CUDA device by the array interface.
pub fn has_interface(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr("__cuda_array_interface__")
}

/// The array of an object with `__cuda_array_interface__`, on the device where its memory lies.
pub fn array(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let interface = object.getattr("__cuda_array_interface__")?;
    let interface = interface.cast::<PyDict>()?;
    let entry = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        Ok(interface.get_item(name)?.filter(|value| !value.is_none()))
    };
    let required = |name: &str| {
        entry(name)?.ok_or_else(|| {
            PyTypeError::new_err(format!("asarray: __cuda_array_interface__ has no {name:?}"))
        })
    };
    if entry("mask")?.is_some() {
        return Err(PyTypeError::new_err("asarray: masked elements are not supported"));
    }
    let shape: Vec<usize> = required("shape")?.extract()?;
    let dtype = required("typestr")?.extract::<DTypeArg>()?.0;
    let (address, read_only): (usize, bool) = required("data")?.extract()?;
    let strides: Vec<isize> = match entry("strides")? {
        Some(strides) => strides.extract()?,
        None => {
            let steps = tilework_layout::contiguous_strides(&shape);
            steps.iter().map(|step| step * dtype.size() as isize).collect()
        }
    };
    if strides.len() != shape.len() {
        return Err(PyValueError::new_err("asarray: strides and shape have not one length"));
    }
    let stream: Option<usize> = entry("stream")?.map(|stream| stream.extract()).transpose()?;
    if shape.contains(&0) {
        // Nothing lies at an address; the first card is as good as any.
        return Array::zeros_on(device(0)?, &shape, dtype).py();
    }
    let Some(card) = tilework_cuda::device_of(address) else {
        let message = format!("asarray: {address:#x} is not memory of a CUDA device");
        return Err(PyValueError::new_err(message));
    };
    match stream {
        Some(0) => return Err(PyValueError::new_err("asarray: 0 is not a stream of CUDA")),
        // SAFETY: by the protocol, the number is a stream of the producer on this device.
        Some(stream) => unsafe { card.wait_for(stream) }.py()?,
        None => {}
    }
    let keep = Box::new(Borrowed::new(card, object.clone().unbind()));
    let address = address as *mut u8;
    let foreign =
        Foreign { address, shape: &shape, strides: &strides, dtype, writable: !read_only };
    let device = device(card.id().index.unwrap_or(0) as i32)?;
    // SAFETY: the producer promises that shape and strides stay inside of its memory as long as the
    // object lives, which the array keeps.
    unsafe { memory::array(&foreign, device, keep) }
}

#[pymethods]
impl PyArray {
    /// Shape, strides, type, address and stream of an array on a CUDA device, as Numba's protocol has
    /// them.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match card(self.0.device()) {
            Some(card) if self.0.dtype() != DType::BFloat16 => {
                let interface = buffer::interface(py, &self.0)?;
                if self.0.is_empty() {
                    interface.set_item("data", (0, !memory::may_be_written(&self.0)))?;
                }
                // PyTorch does not look at the stream, CuPy and Numba wait for it on the host.
                py.detach(|| card.synchronize()).py()?;
                // Nor does anybody say in which stream the memory is used, and when that ends.
                card.show(self.0.storage()).py()?;
                interface.set_item("stream", card.stream().py()?)?;
                Ok(interface)
            }
            _ => Err(PyAttributeError::new_err("__cuda_array_interface__")),
        }
    }
}

fn named(device: DeviceArg) -> PyResult<&'static Cuda> {
    card(device.0)
        .ok_or_else(|| PyValueError::new_err(format!("{} is not a CUDA device", device.0)))
}

/// Bytes used by arrays, used or kept for reuse, free, and in all, of a CUDA device.
#[pyfunction]
#[pyo3(signature = (device, /))]
fn cuda_memory_info(device: DeviceArg) -> PyResult<(usize, usize, usize, usize)> {
    let info = named(device)?.memory_info().py()?;
    Ok((info.used, info.reserved, info.free, info.total))
}

/// Gives memory that a CUDA device keeps for reuse back to it.
#[pyfunction]
#[pyo3(signature = (device, /))]
fn cuda_empty_cache(py: Python<'_>, device: DeviceArg) -> PyResult<()> {
    let card = named(device)?;
    py.detach(|| card.release_cached()).py()
}

/// Waits until everything asked of a CUDA device is done.
#[pyfunction]
#[pyo3(signature = (device, /))]
fn cuda_synchronize(py: Python<'_>, device: DeviceArg) -> PyResult<()> {
    let card = named(device)?;
    py.detach(|| card.synchronize()).py()
}

/// Where pip installs what kernels are compiled with; the module itself may lie elsewhere.
fn installed(py: Python<'_>) -> PyResult<PathBuf> {
    let version = py.version_info();
    let folder = format!("lib/python{}.{}/site-packages", version.major, version.minor);
    Ok(py.import("sys")?.getattr("prefix")?.extract::<PathBuf>()?.join(folder))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    tilework_cuda::packages_are_in(installed(module.py())?);
    module.add_function(wrap_pyfunction!(cuda_memory_info, module)?)?;
    module.add_function(wrap_pyfunction!(cuda_empty_cache, module)?)?;
    module.add_function(wrap_pyfunction!(cuda_synchronize, module)?)
}
