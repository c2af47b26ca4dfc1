//! What the namespace tells about itself: `__array_namespace_info__`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use tilework::{DType, Device};

use crate::args::register;
use crate::device::{self, DeviceArg, PyDevice};
use crate::dtype::{self, of_kind};

/// What the namespace offers: capabilities, devices, dtypes and their defaults.
#[pyclass(frozen, name = "NamespaceInfo", module = "tilework")]
pub struct NamespaceInfo;

#[pymethods]
impl NamespaceInfo {
    /// What the standard leaves to choice.
    ///
    /// >>> import tilework as tw
    /// >>> tw.__array_namespace_info__().capabilities()["boolean indexing"]
    /// True
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("boolean indexing", true)?;
        found.set_item("data-dependent shapes", true)?;
        found.set_item("max dimensions", tilework_layout::MAX_AXES)?;
        Ok(found)
    }

    /// Where new arrays are made.
    ///
    /// >>> import tilework as tw
    /// >>> tw.__array_namespace_info__().default_device() == tw.default_device()
    /// True
    fn default_device(&self) -> PyDevice {
        PyDevice(device::current())
    }

    /// The dtypes of new arrays by kind.
    ///
    /// >>> import tilework as tw
    /// >>> tw.__array_namespace_info__().default_dtypes()["integral"]
    /// dtype('int64')
    #[pyo3(signature = (*, device=None))]
    fn default_dtypes<'py>(
        &self,
        py: Python<'py>,
        device: Option<DeviceArg>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _ = device;
        let found = PyDict::new(py);
        for (kind, default) in [
            ("real floating", DType::Float64),
            ("complex floating", DType::Complex128),
            ("integral", DType::Int64),
            ("indexing", DType::Int64),
        ] {
            found.set_item(kind, dtype::object(py, default))?;
        }
        Ok(found)
    }

    /// The standard's dtypes by name, of one kind, some kinds, or all.
    ///
    /// >>> import tilework as tw
    /// >>> sorted(tw.__array_namespace_info__().dtypes(kind="real floating"))
    /// ['float32', 'float64']
    #[pyo3(signature = (*, device=None, kind=None))]
    fn dtypes<'py>(
        &self,
        py: Python<'py>,
        device: Option<DeviceArg>,
        kind: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _ = device;
        let kinds: Option<Vec<String>> = match kind {
            None => None,
            Some(kind) if kind.is_instance_of::<PyString>() => Some(vec![kind.extract()?]),
            Some(kind) => Some(
                kind.extract()
                    .map_err(|_| PyTypeError::new_err("dtypes: a kind is a string or a tuple"))?,
            ),
        };
        let found = PyDict::new(py);
        for candidate in DType::ALL {
            // The half types are ours; the standard does not know them.
            if candidate.is_half() {
                continue;
            }
            let mut wanted = kinds.is_none();
            for kind in kinds.iter().flatten() {
                wanted |= of_kind(candidate, kind)?;
            }
            if wanted {
                found.set_item(candidate.name(), dtype::object(py, candidate))?;
            }
        }
        Ok(found)
    }

    /// All devices of this machine.
    ///
    /// >>> import tilework as tw
    /// >>> tw.__array_namespace_info__().devices() == tw.devices()
    /// True
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, Device::all().into_iter().map(PyDevice))
    }
}

/// What the namespace offers.
///
/// >>> import tilework as tw
/// >>> tw.__array_namespace_info__().capabilities()["boolean indexing"]
/// True
#[pyfunction]
fn __array_namespace_info__() -> NamespaceInfo {
    NamespaceInfo
}

/// Adds the function and the constants to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NamespaceInfo>()?;
    register!(module: __array_namespace_info__);
    module.add("__array_api_version__", "2025.12")?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("e", std::f64::consts::E)?;
    module.add("pi", std::f64::consts::PI)?;
    module.add("inf", f64::INFINITY)?;
    module.add("nan", f64::NAN)?;
    module.add("newaxis", module.py().None())
}
