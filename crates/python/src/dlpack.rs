//! DLPack: arrays handed to and taken from other libraries without a copy, by capsules.
//!
//! Versions 1.x (versioned, with flags) and the older form without a version. The structures are
//! those of the published header.

use std::any::Any;
use std::ffi::{CStr, c_void};

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilework::{Array, DType, Device, Memory};
use tilework_ops::Kind;

use crate::array::PyArray;
use crate::buffer;
use crate::class;
use crate::cuda::{self, Borrowed, Lent};
use crate::device::{self, DeviceArg};
use crate::errors::OrRaise;
use crate::memory::{self, Foreign};
use crate::run::run;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DlDType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlDType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

fn dtype_to(dtype: DType) -> DlDType {
    let code = match dtype.kind() {
        _ if dtype == DType::BFloat16 => 4,
        Kind::Signed => 0,
        Kind::Unsigned => 1,
        Kind::Float => 2,
        Kind::Complex => 5,
        Kind::Bool => 6,
    };
    DlDType { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
}

fn dtype_from(dtype: DlDType) -> PyResult<DType> {
    let found = DType::ALL.into_iter().find(|candidate| dtype_to(*candidate) == dtype);
    found.ok_or_else(|| {
        let DlDType { code, bits, lanes } = dtype;
        let message = format!("from_dlpack: no dtype of code {code}, {bits} bits, {lanes} lanes");
        PyBufferError::new_err(message)
    })
}

fn device_of(array: &Array) -> DlDevice {
    let device = array.device();
    match device.memory() {
        Memory::Host => DlDevice { kind: CPU, id: 0 },
        Memory::Cuda => DlDevice { kind: CUDA, id: device.id().index.unwrap_or(0) as i32 },
    }
}

/// What an exported tensor points to, and the array that it keeps; dropped in this order.
struct Kept {
    _lent: Option<Lent>,
    _array: Array,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn export(array: Array, lent: Option<Lent>) -> (DlTensor, *mut c_void) {
    let mut kept = Box::new(Kept {
        shape: array.shape().iter().map(|&n| n as i64).collect(),
        strides: array.strides().iter().map(|&n| n as i64).collect(),
        _lent: lent,
        _array: array.clone(),
    });
    let tensor = DlTensor {
        data: buffer::address(&array).cast(),
        device: device_of(&array),
        ndim: array.ndim() as i32,
        dtype: dtype_to(array.dtype()),
        shape: kept.shape.as_mut_ptr(),
        strides: kept.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    (tensor, Box::into_raw(kept).cast())
}

unsafe extern "C" fn free(managed: *mut Managed) {
    // SAFETY: both boxes were made by `__dlpack__`, and the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

unsafe extern "C" fn free_versioned(managed: *mut Versioned) {
    // SAFETY: both boxes were made by `__dlpack__`, and the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

/// Frees what a capsule holds if nobody took it: takers rename the capsule.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes a capsule of `__dlpack__`; the name says what its pointer is.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            free(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED_NAME.as_ptr()) != 0 {
            free_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED_NAME.as_ptr()).cast());
        }
    }
}

fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null, the name is static, and the destructor fits both.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule)),
        )
    }
}

/// What an array's device does so far comes before what is in the consumer's stream: None is the
/// default stream, -1 that the consumer sees to it.
fn lent(array: &Array, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Lent>> {
    let Some(card) = cuda::card(array.device()) else {
        return Ok(None);
    };
    match stream.map(|stream| stream.extract::<i64>()).transpose()? {
        None => Lent::new(card, cuda::DEFAULT_STREAM).map(Some),
        Some(-1) => Ok(Some(Lent::unordered(card))),
        Some(stream) if stream > 0 => Lent::new(card, stream as usize).map(Some),
        Some(stream) => {
            Err(PyValueError::new_err(format!("__dlpack__: {stream} is not a stream of CUDA")))
        }
    }
}

#[pymethods]
impl PyArray {
    /// The array as a DLPack capsule, for `from_dlpack` of any library.
    #[pyo3(signature = (/, *, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let here = device_of(&self.0);
        if stream.is_some() && here.kind == CPU {
            return Err(PyValueError::new_err("__dlpack__: the CPU has no streams"));
        }
        let elsewhere = match dl_device {
            None => false,
            Some((kind, id)) if (kind, id) == (here.kind, here.id) => false,
            Some((CPU, 0)) => true,
            Some((kind, id)) => {
                let message = format!("__dlpack__: cannot give memory of device ({kind}, {id})");
                return Err(PyBufferError::new_err(message));
            }
        };
        if elsewhere && copy == Some(false) {
            return Err(PyBufferError::new_err("__dlpack__: another device needs a copy"));
        }
        let copied = elsewhere || copy == Some(true);
        let array = if elsewhere {
            run(py, self.0.len(), self.0.device(), || self.0.to_device(Device::cpu()))?
        } else if copied {
            run(py, self.0.len(), self.0.device(), || self.0.copy())?
        } else {
            self.0.clone()
        };
        // PyTorch ends the process when it is given such memory of a card.
        let backwards =
            array.shape().iter().zip(array.strides()).any(|(n, step)| *n > 1 && *step < 0);
        if backwards && device_of(&array).kind == CUDA {
            let message = "__dlpack__: not every library can step backwards; copy the array first";
            return Err(PyBufferError::new_err(message));
        }
        let lent = lent(&array, stream)?;
        let writable = memory::may_be_written(&array);
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let (tensor, context) = export(array, lent);
            let flags = if writable { 0 } else { READ_ONLY } | if copied { IS_COPIED } else { 0 };
            let deleter = Some(free_versioned as unsafe extern "C" fn(*mut Versioned));
            let managed =
                Box::new(Versioned { major: 1, minor: 0, context, deleter, flags, tensor });
            return capsule(py, Box::into_raw(managed).cast(), VERSIONED_NAME);
        }
        if !writable {
            let message =
                "__dlpack__: before version 1.0 there is no word for read-only memory; copy it";
            return Err(PyBufferError::new_err(message));
        }
        let (tensor, context) = export(array, lent);
        let deleter = Some(free as unsafe extern "C" fn(*mut Managed));
        let managed = Box::new(Managed { tensor, context, deleter });
        capsule(py, Box::into_raw(managed).cast(), NAME)
    }

    /// The kind and number of the device, as DLPack counts them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = device_of(&self.0);
        (device.kind, device.id)
    }
}

/// A tensor that was taken from its capsule; gives it back to its maker when dropped.
enum Taken {
    Old(*mut Managed),
    Versioned(*mut Versioned),
}

// SAFETY: the deleter may be called from any thread, says DLPack; nothing else touches the pointer.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a capsule that was renamed, so it is ours to delete, once.
        unsafe {
            match *self {
                Taken::Old(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
                Taken::Versioned(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
            }
        }
    }
}

/// The capsule that an object gives, asked in the newest form that it understands.
fn ask<'py>(
    object: &Bound<'py, PyAny>,
    device: Option<(i32, i32)>,
    stream: Option<usize>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let options = PyDict::new(py);
    if let Some(stream) = stream {
        options.set_item("stream", stream)?;
    }
    let plain = options.copy()?;
    options.set_item("max_version", (1, 1))?;
    if let Some(device) = device {
        options.set_item("dl_device", device)?;
    }
    if let Some(copy) = copy {
        options.set_item("copy", copy)?;
    }
    match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) && copy.is_none() => {
            object.call_method("__dlpack__", (), Some(&plain))
        }
        other => other,
    }
}

/// Where DLPack says that an object's memory lies: the kind of device, and its number.
fn place(object: &Bound<'_, PyAny>) -> PyResult<(i32, i32)> {
    match object.getattr_opt("__dlpack_device__")? {
        Some(method) => {
            let place = method.call0()?;
            Ok((place.get_item(0)?.extract()?, place.get_item(1)?.extract()?))
        }
        None => Ok((CPU, 0)),
    }
}

/// The array of an object with `__dlpack__`, for a device of the host; what lies on a card stays
/// there.
pub fn import(object: &Bound<'_, PyAny>, host: Device, copy: Option<bool>) -> PyResult<Array> {
    let (kind, number) = place(object)?;
    let device = if kind == CUDA { cuda::device(number)? } else { host };
    let card = cuda::card(device);
    let stream = card.map(|card| card.stream()).transpose().py()?;
    let elsewhere = !matches!(kind, CPU | CUDA_HOST | CUDA);
    let capsule = ask(object, elsewhere.then_some((CPU, 0)), stream, copy)?;
    let pointer = capsule.as_ptr();
    // SAFETY: a capsule of this name holds a pointer to this structure; renaming it makes the
    // structure ours, to be deleted once.
    let (taken, tensor, writable) = unsafe {
        if ffi::PyCapsule_IsValid(pointer, VERSIONED_NAME.as_ptr()) != 0 {
            let managed: *mut Versioned =
                ffi::PyCapsule_GetPointer(pointer, VERSIONED_NAME.as_ptr()).cast();
            if (*managed).major != 1 {
                let message = format!("from_dlpack: version {} is not known", (*managed).major);
                return Err(PyBufferError::new_err(message));
            }
            ffi::PyCapsule_SetName(pointer, VERSIONED_USED.as_ptr());
            let writable = (*managed).flags & READ_ONLY == 0;
            (Taken::Versioned(managed), &raw const (*managed).tensor, writable)
        } else if ffi::PyCapsule_IsValid(pointer, NAME.as_ptr()) != 0 {
            let managed: *mut Managed = ffi::PyCapsule_GetPointer(pointer, NAME.as_ptr()).cast();
            ffi::PyCapsule_SetName(pointer, USED.as_ptr());
            (Taken::Old(managed), &raw const (*managed).tensor, true)
        } else {
            return Err(PyTypeError::new_err("from_dlpack: __dlpack__ gave no DLPack capsule"));
        }
    };
    // A maker's work comes before ours in the stream that it was told.
    let keep: Keep = match card {
        Some(card) => Box::new(Borrowed::new(card, taken)),
        None => Box::new(taken),
    };
    // SAFETY: the maker promises a valid tensor whose elements live until the deleter is called.
    let array = unsafe { tensor_array(&*tensor, writable, keep, device)? };
    // Elements at odd addresses are copied.
    if copy == Some(false) && !array.storage().is_foreign() && !array.is_empty() {
        return Err(PyBufferError::new_err("from_dlpack: there is no array here without a copy"));
    }
    Ok(array)
}

/// What foreign memory lives as long as.
type Keep = Box<dyn Any + Send + Sync>;

/// # Safety
/// The tensor and its elements are valid until `keep` is dropped.
unsafe fn tensor_array(
    tensor: &DlTensor,
    writable: bool,
    keep: Keep,
    device: Device,
) -> PyResult<Array> {
    let kinds: &[i32] = if cuda::card(device).is_some() { &[CUDA] } else { &[CPU, CUDA_HOST] };
    if !kinds.contains(&tensor.device.kind) {
        let message = format!("from_dlpack: the memory is not that of {device}");
        return Err(PyBufferError::new_err(message));
    }
    let dtype = dtype_from(tensor.dtype)?;
    let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
    let list = |pointer: *mut i64| match (ndim, pointer.is_null()) {
        (0, _) | (_, true) => &[][..],
        // SAFETY: shape and strides have one number for each axis.
        _ => unsafe { std::slice::from_raw_parts(pointer, ndim) },
    };
    let shape: Vec<usize> = list(tensor.shape).iter().map(|&n| n.max(0) as usize).collect();
    let size = dtype.size() as isize;
    let strides: Vec<isize> = if tensor.strides.is_null() {
        let steps = tilework_layout::contiguous_strides(&shape);
        steps.iter().map(|step| step * size).collect()
    } else {
        list(tensor.strides).iter().map(|&step| (step as isize).wrapping_mul(size)).collect()
    };
    let address = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    let foreign = Foreign { address, shape: &shape, strides: &strides, dtype, writable };
    // SAFETY: the caller's promise.
    unsafe { memory::array(&foreign, device, keep) }
}

/// The array of another library, through DLPack; shares its memory where it can.
///
/// >>> import tilework as tw
/// >>> x = tw.asarray([1.0, 2.0])
/// >>> y = tw.from_dlpack(x)
/// >>> y[0] = 5.0
/// >>> float(x[0])
/// 5.0
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<DeviceArg>,
    copy: Option<bool>,
) -> PyResult<PyArray> {
    if !x.hasattr("__dlpack__")? {
        let kind = x.get_type().name()?;
        return Err(PyTypeError::new_err(format!("from_dlpack: {kind} has no __dlpack__")));
    }
    let ours = class::ours(x).map(Array::device);
    let wanted = device.map(|device| device.0);
    let host = memory::host_of(wanted.or(ours).unwrap_or_else(device::current));
    let array = import(x, host, copy)?;
    // Memory of a card stays there, unless it is wanted elsewhere.
    let there = array.device();
    let to = wanted.unwrap_or_else(|| match there.memory() {
        Memory::Host => ours.unwrap_or_else(device::current),
        Memory::Cuda => there,
    });
    if to == there {
        return Ok(PyArray(array));
    }
    if copy == Some(false) {
        let message = format!("from_dlpack: from {there} to {to} takes a copy");
        return Err(PyBufferError::new_err(message));
    }
    run(x.py(), array.len(), there, || array.to_device(to)).map(PyArray)
}

/// Adds the function to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
