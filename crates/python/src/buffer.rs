//! The buffer protocol, in both directions, and the NumPy protocols that stand on it.
//!
//! Taken in: NumPy's arrays and scalars, bytes, memoryviews, `array.array`. Given out: the memory
//! of arrays of the host, writable if the array is and no two indices reach one element. What
//! foreign code does with it is outside of the guards, as with NumPy.

use std::ffi::{CStr, c_int, c_void};

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyTuple};
use tilework::{Array, DType, Device};
use tilework_layout::{Dims, Strides};

use crate::array::PyArray;
use crate::cuda;
use crate::dtype::{self, DTypeArg};
use crate::errors::OrRaise;
use crate::memory::{self, Foreign, may_be_written};
use crate::run::run;

/// An array on the memory of an object with a buffer, for a device of the host; None if the object
/// has none.
pub fn array(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Option<Array>> {
    // SAFETY: the object is valid and the thread is attached.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    let Some(buffer) = Taken::from(object) else {
        // CuPy's arrays have the protocol's functions, which refuse: their memory is a card's.
        if cuda::has_interface(object)? {
            return Ok(None);
        }
        // Types that the protocol has no letter for: NumPy's arrays of bfloat16, dates, objects.
        return beyond_the_protocol(object, device).map(Some);
    };
    let view = &buffer.0;
    let Some(dtype) = dtype_of(buffer.format(), view.itemsize as usize) else {
        return beyond_the_protocol(object, device).map(Some);
    };
    if !view.suboffsets.is_null() {
        return Err(PyBufferError::new_err("asarray: buffers of pointers are not supported"));
    }
    let shape: Dims = buffer.list(view.shape).iter().map(|&n| n.max(0) as usize).collect();
    let strides: Strides = if view.strides.is_null() {
        // What ctypes gives: elements in a row need no strides.
        let steps = tilework_layout::contiguous_strides(&shape);
        steps.iter().map(|step| step * view.itemsize).collect()
    } else {
        Strides::from_slice(buffer.list(view.strides))
    };
    let foreign = Foreign {
        address: view.buf.cast(),
        shape: &shape,
        strides: &strides,
        dtype,
        writable: view.readonly == 0,
    };
    // SAFETY: the exporter promises that shape and strides stay inside of its memory until the
    // buffer is released, which is when it is dropped.
    unsafe { memory::array(&foreign, device, Box::new(buffer)) }.map(Some)
}

/// A buffer that was taken from an object; given back when dropped.
struct Taken(Box<ffi::Py_buffer>);

// SAFETY: the structure is only read, and released once, under the GIL; the memory it tells of is
// not tied to a thread.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Taken {
    /// The buffer of an object with shape, strides and format; None if it gives none.
    fn from(object: &Bound<'_, PyAny>) -> Option<Taken> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is valid, the thread is attached, the structure is there to be filled.
        let failed =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_RECORDS_RO) };
        if failed != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(Taken(view))
    }

    fn format(&self) -> &CStr {
        if self.0.format.is_null() {
            return c"B";
        }
        // SAFETY: the exporter keeps the text until the buffer is released.
        unsafe { CStr::from_ptr(self.0.format) }
    }

    /// One of the lists of the structure, which have an entry for each axis.
    fn list(&self, pointer: *const isize) -> &[isize] {
        if self.0.ndim <= 0 || pointer.is_null() {
            return &[];
        }
        // SAFETY: shape and strides were asked for, so they have `ndim` entries, which the exporter keeps until the
        // buffer is released.
        unsafe { std::slice::from_raw_parts(pointer, self.0.ndim as usize) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // An interpreter that is gone has taken the exporter along.
        Python::try_attach(|_| {
            // SAFETY: the buffer was filled by `from`, and is released once, attached.
            unsafe { ffi::PyBuffer_Release(&mut *self.0) };
        });
    }
}

/// The dtype that a buffer's format names, in the machine's byte order.
fn dtype_of(format: &CStr, size: usize) -> Option<DType> {
    let format = format.to_str().ok()?;
    let code = match format.as_bytes().first()? {
        b'@' | b'=' | b'<' => &format[1..],
        b'>' | b'!' if size == 1 => &format[1..],
        _ => format,
    };
    Some(match (code, size) {
        ("?", 1) => DType::Bool,
        ("b", 1) => DType::Int8,
        ("B" | "c", 1) => DType::UInt8,
        ("h", 2) => DType::Int16,
        ("H", 2) => DType::UInt16,
        ("i" | "l", 4) => DType::Int32,
        ("I" | "L", 4) => DType::UInt32,
        ("q" | "l" | "n", 8) => DType::Int64,
        ("Q" | "L" | "N", 8) => DType::UInt64,
        ("e", 2) => DType::Float16,
        ("f", 4) => DType::Float32,
        ("d" | "g", 8) => DType::Float64,
        ("Zf", 8) => DType::Complex64,
        ("Zd", 16) => DType::Complex128,
        _ => return None,
    })
}

/// NumPy arrays whose elements the protocol cannot name: bfloat16 is seen as uint16, the other
/// byte order is copied, and the rest is refused.
fn beyond_the_protocol(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Array> {
    let refuse = || {
        let kind = match object.getattr("dtype") {
            Ok(dtype) => format!("elements of {dtype}"),
            Err(_) => format!("the buffer of {}", object.get_type()),
        };
        PyTypeError::new_err(format!("asarray: {kind} are not numbers of a known dtype"))
    };
    let Some(numpy_dtype) = object.getattr_opt("dtype")? else { return Err(refuse()) };
    let name: String = numpy_dtype.getattr("name")?.extract()?;
    let native: bool = numpy_dtype.getattr_opt("isnative")?.map_or(Ok(true), |b| b.extract())?;
    if name == "bfloat16" {
        let bits = object.call_method1("view", ("uint16",))?;
        let bits = array(&bits, device)?.ok_or_else(refuse)?;
        let (storage, layout) = (bits.storage().clone(), bits.layout().clone());
        return Array::from_storage(storage, layout, DType::BFloat16).py();
    }
    if native || name.parse::<DType>().is_err() {
        return Err(refuse());
    }
    let swapped = object.call_method1("astype", (name,))?;
    let swapped = array(&swapped, device)?.ok_or_else(refuse)?;
    run(object.py(), swapped.len(), device, || swapped.copy())
}

/// The protocol's letters for a dtype; None for bfloat16.
fn format_of(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::Bool => c"?",
        DType::Int8 => c"b",
        DType::Int16 => c"h",
        DType::Int32 => c"i",
        DType::Int64 => c"q",
        DType::UInt8 => c"B",
        DType::UInt16 => c"H",
        DType::UInt32 => c"I",
        DType::UInt64 => c"Q",
        DType::Float16 => c"e",
        DType::BFloat16 => return None,
        DType::Float32 => c"f",
        DType::Float64 => c"d",
        DType::Complex64 => c"Zf",
        DType::Complex128 => c"Zd",
    })
}

/// What a view of ours points to while it is out.
struct Exported {
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Where the first element of an array lies.
pub fn address(array: &Array) -> *mut u8 {
    if array.is_empty() {
        return array.storage().address();
    }
    array.storage().address().wrapping_add(array.offset() * array.dtype().size())
}

/// Steps in bytes.
fn byte_strides(array: &Array) -> Vec<isize> {
    array.strides().iter().map(|stride| stride * array.dtype().size() as isize).collect()
}

/// What the array interfaces of NumPy and CUDA have in common.
pub fn interface<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let interface = PyDict::new(py);
    interface.set_item("version", 3)?;
    interface.set_item("shape", PyTuple::new(py, array.shape())?)?;
    interface.set_item("strides", PyTuple::new(py, byte_strides(array))?)?;
    interface.set_item("typestr", dtype::type_string(array.dtype()))?;
    interface.set_item("data", (address(array).addr(), !may_be_written(array)))?;
    Ok(interface)
}

/// The array itself if the host can read it, a copy on the CPU otherwise.
pub fn on_host(py: Python<'_>, array: &Array) -> PyResult<Array> {
    if array.storage().is_on_host() {
        return Ok(array.clone());
    }
    run(py, array.len(), array.device(), || array.to_device(Device::cpu()))
}

#[pymethods]
impl PyArray {
    /// # Safety
    /// `view` is a buffer structure that Python asks to be filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        // SAFETY: Python passes a valid structure; without an object it counts as not filled.
        unsafe { (*view).obj = std::ptr::null_mut() };
        let array = &slf.get().0;
        let refuse = |why: &str| Err(PyBufferError::new_err(format!("buffer: {why}")));
        let wants = |flag: c_int| flags & flag == flag;
        if !array.storage().is_on_host() {
            return refuse("the memory is on a device; move it with to_device(\"cpu\")");
        }
        let Some(format) = format_of(array.dtype()) else {
            return refuse("the protocol has no letter for bfloat16");
        };
        let writable = may_be_written(array);
        if wants(ffi::PyBUF_WRITABLE) && !writable {
            return refuse("the array is read-only, or some of its elements stand for one another");
        }
        let (rows, columns) = (array.is_contiguous(), array.layout().is_f_contiguous());
        if (wants(ffi::PyBUF_C_CONTIGUOUS) || !wants(ffi::PyBUF_STRIDES)) && !rows
            || wants(ffi::PyBUF_F_CONTIGUOUS) && !columns
            || wants(ffi::PyBUF_ANY_CONTIGUOUS) && !rows && !columns
        {
            return refuse("the array is not contiguous in the order asked for");
        }
        let size = array.dtype().size();
        let Some(len) = array.len().checked_mul(size).and_then(|len| isize::try_from(len).ok())
        else {
            return refuse("its elements, which repeat, have more bytes than an address space");
        };
        let shape = array.shape().iter().map(|&n| n as isize).collect();
        let exported = Box::new(Exported { shape, strides: byte_strides(array) });
        let ndim = array.ndim() as c_int;
        let address = address(array);
        // SAFETY: `view` is valid; everything it points to lives in `exported`, in a static, or in
        // the array, which the view's object keeps.
        unsafe {
            let exported = Box::into_raw(exported);
            (*view).buf = address.cast();
            (*view).len = len;
            (*view).itemsize = size as isize;
            (*view).readonly = c_int::from(!writable);
            (*view).ndim = ndim;
            (*view).format = if wants(ffi::PyBUF_FORMAT) {
                format.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).shape = if wants(ffi::PyBUF_ND) {
                (*exported).shape.as_mut_ptr()
            } else {
                std::ptr::null_mut()
            };
            (*view).strides = if wants(ffi::PyBUF_STRIDES) {
                (*exported).strides.as_mut_ptr()
            } else {
                std::ptr::null_mut()
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = exported.cast::<c_void>();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }

    /// # Safety
    /// `view` was filled by `__getbuffer__` and is released once.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that was put there, and nobody uses it any more.
        drop(unsafe { Box::from_raw((*view).internal.cast::<Exported>()) });
    }

    /// Shape, strides, type and address, as NumPy's protocol has them.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.0.storage().is_on_host() || self.0.dtype() == DType::BFloat16 {
            return Err(PyAttributeError::new_err("__array_interface__"));
        }
        interface(py, &self.0)
    }

    /// A NumPy array on the same memory, or a copy if one is needed or asked for.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let host = on_host(py, &self.0)?;
        let moved = !host.is_same_block(&self.0);
        let seen = if host.dtype() == DType::BFloat16 {
            let bits =
                Array::from_storage(host.storage().clone(), host.layout().clone(), DType::UInt16);
            let bits = PyArray(bits.py()?).into_pyobject(py)?;
            let view = numpy.call_method1("asarray", (PyMemoryView::from(&bits)?,))?;
            view.call_method1("view", (crate::dtype::to_numpy(py, DType::BFloat16)?,))?
        } else {
            let host = PyArray(host).into_pyobject(py)?;
            numpy.call_method1("asarray", (PyMemoryView::from(&host)?,))?
        };
        let wanted = match dtype {
            None => seen.getattr("dtype")?,
            Some(dtype) => match dtype.extract::<DTypeArg>() {
                Ok(ours) => crate::dtype::to_numpy(py, ours.0)?,
                Err(_) => numpy.call_method1("dtype", (dtype,))?,
            },
        };
        let same = seen.getattr("dtype")?.eq(&wanted)?;
        if copy == Some(false) && (moved || !same) {
            let message = "__array__: there is no NumPy array here without a copy";
            return Err(PyValueError::new_err(message));
        }
        if !same {
            return seen.call_method1("astype", (wanted,));
        }
        if copy == Some(true) && !moved { seen.call_method0("copy") } else { Ok(seen) }
    }

    /// The memory, as a memoryview.
    ///
    /// >>> import tilework as tw
    /// >>> list(tw.asarray([1, 2], dtype=tw.uint8).data)
    /// [1, 2]
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf)
    }
}
