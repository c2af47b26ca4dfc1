//! `tilework.device` and what belongs to the machine: defaults, threads, memory.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use tilework::Device;
use tilework_cpu::pool::MAX_THREADS;

use crate::errors::OrRaise;
use crate::scopes::Scopes;

/// Where arrays live and operations run: "cpu", "reference", "cuda:0".
///
/// Used in a `with` statement, it is where new arrays are made inside of it, by this thread or this task
/// of asyncio.
///
/// >>> import tilework as tw
/// >>> with tw.device("reference"):
/// ...     x = tw.zeros(3)
/// >>> x.device
/// device('reference')
#[pyclass(frozen, name = "device", module = "tilework", weakref)]
pub struct PyDevice(pub Device);

/// The `with` statements that name a device.
static ENTERED: Scopes = Scopes::new("tilework.device");

/// Where new arrays are made: an operation's own device while it works, that of the innermost `with`
/// statement of this context, or the process's default. The core knows the first and the last alone:
/// what it is to make where the second says is told so.
pub fn current() -> Device {
    Device::scoped().or_else(entered).unwrap_or_else(Device::current)
}

fn entered() -> Option<Device> {
    if !ENTERED.is_used() {
        return None;
    }
    Python::attach(|py| {
        let device = ENTERED.innermost(py).ok()??;
        Some(device.cast_exact::<PyDevice>().ok()?.get().0)
    })
}

/// The device that an argument names.
pub fn parse(object: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = object.cast_exact::<PyDevice>() {
        return Ok(device.get().0);
    }
    match object.cast::<PyString>() {
        Ok(name) => Device::parse(name.to_str()?).py(),
        Err(_) => Err(PyTypeError::new_err(format!("{} is not a device", object.repr()?))),
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (name, /))]
    fn new(name: &Bound<'_, PyAny>) -> PyResult<PyDevice> {
        parse(name).map(PyDevice)
    }

    /// Its name.
    ///
    /// >>> import tilework as tw
    /// >>> tw.device("cpu").name
    /// 'cpu'
    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    /// The kind of device: its name without a number.
    ///
    /// >>> import tilework as tw
    /// >>> tw.device("reference").type
    /// 'reference'
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.id().backend
    }

    /// Its number among the devices of its kind; None where there is only one.
    ///
    /// >>> import tilework as tw
    /// >>> tw.device("cpu").index is None
    /// True
    #[getter]
    fn index(&self) -> Option<u32> {
        self.0.id().index
    }

    /// What the device tells about itself, as pairs of a name and a value.
    ///
    /// >>> import tilework as tw
    /// >>> dict(tw.device("cpu").properties)["threads"] == str(tw.get_num_threads())
    /// True
    #[getter]
    fn properties(&self) -> Vec<(&'static str, String)> {
        self.0.properties()
    }

    /// Waits until everything asked of the device is done.
    ///
    /// >>> import tilework as tw
    /// >>> tw.device("cpu").synchronize()
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).py()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        ENTERED.enter(slf.as_any(), slf.as_any())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        ENTERED.leave(slf.as_any())
    }

    fn __repr__(&self) -> String {
        format!("device('{}')", self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        parse(other).is_ok_and(|device| device == self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        // As equal strings do.
        PyString::new(py, &self.0.to_string()).hash()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<PyDevice>().into_any(), (self.0.to_string(),)))
    }
}

/// An argument that names a device.
#[derive(Clone, Copy)]
pub struct DeviceArg(pub Device);

impl<'py> FromPyObject<'_, 'py> for DeviceArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        parse(&object).map(DeviceArg)
    }
}

/// The device that was asked for, or where new arrays are made.
pub fn or_current(device: Option<DeviceArg>) -> Device {
    device.map_or_else(current, |device| device.0)
}

/// All devices of this machine.
///
/// >>> import tilework as tw
/// >>> "cpu" in tw.devices()
/// True
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, Device::all().into_iter().map(PyDevice))
}

/// Where new arrays are made.
///
/// >>> import tilework as tw
/// >>> with tw.device("reference"):
/// ...     str(tw.default_device())
/// 'reference'
#[pyfunction]
fn default_device() -> PyDevice {
    PyDevice(current())
}

/// Makes a device the one where new arrays are made, in all threads.
///
/// >>> import tilework as tw
/// >>> before = tw.default_device()
/// >>> tw.set_default_device("reference")
/// >>> tw.zeros(2).device == "reference"
/// True
/// >>> tw.set_default_device(before)
#[pyfunction]
#[pyo3(signature = (device, /))]
fn set_default_device(device: DeviceArg) {
    device.0.set_default();
}

/// How many threads share the work of one operation.
///
/// >>> import tilework as tw
/// >>> tw.get_num_threads() >= 1
/// True
#[pyfunction]
fn get_num_threads() -> usize {
    tilework::num_threads()
}

/// Sets how many threads share the work of one operation, from 1 to 1024.
///
/// >>> import tilework as tw
/// >>> before = tw.get_num_threads()
/// >>> tw.set_num_threads(2)
/// >>> tw.get_num_threads()
/// 2
/// >>> tw.set_num_threads(before)
#[pyfunction]
#[pyo3(signature = (threads, /))]
fn set_num_threads(threads: &Bound<'_, PyAny>) -> PyResult<()> {
    let number: i128 = threads.extract()?;
    match usize::try_from(number) {
        Ok(number) if (1..=MAX_THREADS).contains(&number) => {
            tilework::set_num_threads(number);
            Ok(())
        }
        _ => {
            let message =
                format!("set_num_threads: {number} is not a number from 1 to {MAX_THREADS}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Gives memory that is kept for reuse back to the system.
///
/// >>> import tilework as tw
/// >>> tw.empty_cache()
#[pyfunction]
fn empty_cache() {
    tilework::empty_cache();
}

/// Why there is no CUDA device; None if there is one.
#[pyfunction]
fn cuda_why_not() -> Option<String> {
    if Device::all().iter().any(|device| device.id().backend == "cuda") {
        return None;
    }
    let missing = Device::unavailable().into_iter().find(|(name, _)| *name == "cuda");
    Some(missing.map_or_else(|| "there is no CUDA device".to_owned(), |(_, why)| why))
}

/// Prints what this build and this machine offer.
#[pyfunction]
fn show_config(py: Python<'_>) -> PyResult<()> {
    py.import("builtins")?.call_method1("print", (config(),)).map(|_| ())
}

/// What this build and this machine offer, as text.
fn config() -> String {
    let mut lines = vec![format!("tilework {}", env!("CARGO_PKG_VERSION"))];
    for device in Device::all() {
        let properties = device.properties();
        let facts: Vec<String> =
            properties.iter().map(|(name, value)| format!("{name} {value}")).collect();
        lines.push(format!("{device}: {}", facts.join(", ")));
    }
    for (name, why) in Device::unavailable() {
        lines.push(format!("{name}: not available, {why}"));
    }
    lines.join("\n")
}

/// Adds the class and the functions on devices to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDevice>()?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(default_device, module)?)?;
    module.add_function(wrap_pyfunction!(set_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(empty_cache, module)?)?;
    module.add_function(wrap_pyfunction!(cuda_why_not, module)?)?;
    module.add_function(wrap_pyfunction!(show_config, module)?)
}
