//! Memory of others as an array: addresses, shapes and strides that were told to us.
//!
//! What comes through the buffer protocol, DLPack or an array interface ends here. Memory is shared
//! where its address and strides fit its dtype; the host's is copied where they do not.

use std::any::Any;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilework::{Array, DType, Device, Error, Layout, Memory, Result, Storage};
use tilework_layout::Strides;

use crate::errors::OrRaise;

/// An array in memory that somebody else owns.
pub struct Foreign<'a> {
    /// Where the element with index zero on every axis lies.
    pub address: *mut u8,
    /// Length of each axis.
    pub shape: &'a [usize],
    /// Steps in bytes, one for each axis.
    pub strides: &'a [isize],
    /// Type of the elements.
    pub dtype: DType,
    /// Whether it may be written to.
    pub writable: bool,
}

/// The device that stands for host memory when something is meant for `device`.
pub fn host_of(device: Device) -> Device {
    match device.memory() {
        Memory::Host => device,
        Memory::Cuda => Device::cpu(),
    }
}

/// Whether others may be told that they can write to an array: not where its memory is read-only, and
/// not where elements stand for one another, which every write of ours refuses, too.
pub fn may_be_written(array: &Array) -> bool {
    array.is_writable() && !array.layout().has_internal_overlap()
}

/// The array on foreign memory, which lives until `keep` is dropped.
///
/// # Safety
/// Every element that shape and strides reach from the address can be read by the device, and
/// written if `writable`, until `keep` is dropped; on a device of the host by any thread.
pub unsafe fn array(
    foreign: &Foreign<'_>,
    device: Device,
    keep: Box<dyn Any + Send + Sync>,
) -> PyResult<Array> {
    let Foreign { address, shape, strides, dtype, writable } = *foreign;
    let size = dtype.size() as isize;
    if shape.contains(&0) {
        return Array::zeros_on(device, shape, dtype).py();
    }
    let (low, high) = reach(shape, strides).ok_or_else(|| {
        PyValueError::new_err("asarray: shape and strides reach beyond the address space")
    })?;
    let begin = address.wrapping_offset(low);
    let fits = strides.iter().zip(shape).all(|(stride, &n)| n == 1 || stride % size == 0)
        && begin.addr().is_multiple_of(dtype.alignment())
        && low % size == 0;
    let on_host = device.memory() == Memory::Host;
    if !fits && !on_host {
        let message = "asarray: the device's memory is not aligned for its dtype";
        return Err(PyValueError::new_err(message));
    }
    if !fits {
        // SAFETY: the caller promises that every element may be read; `keep` lives until the end.
        let copied = unsafe { gather(foreign) }.py()?;
        return Array::from_bytes_on(device, dtype, shape, &copied).py();
    }
    let steps: Strides = strides
        .iter()
        .zip(shape)
        .map(|(stride, &n)| if n == 1 { 0 } else { stride / size })
        .collect();
    let layout = Layout::new(shape, &steps, (-low / size) as usize).py()?;
    let len = (high - low + size) as usize;
    // SAFETY: the caller promises what `Storage::foreign` asks; `begin .. begin + len` is what the
    // strides reach.
    let storage = unsafe { Storage::foreign(device.id(), begin, len, writable, on_host, keep) };
    let storage = storage.py()?;
    Array::from_storage(storage, layout, dtype).py()
}

/// How far below and above the address the first bytes of elements lie; None on overflow.
fn reach(shape: &[usize], strides: &[isize]) -> Option<(isize, isize)> {
    let (mut low, mut high) = (0isize, 0isize);
    for (&n, &stride) in shape.iter().zip(strides) {
        let last = isize::try_from(n - 1).ok()?.checked_mul(stride)?;
        if last < 0 {
            low = low.checked_add(last)?;
        } else {
            high = high.checked_add(last)?;
        }
    }
    Some((low, high))
}

/// The bytes of all elements in row-major order, whatever their address. A view that repeats its
/// elements may have more than there is memory for: that is an error.
///
/// # Safety
/// As for [`array`]; no axis has length 0.
unsafe fn gather(foreign: &Foreign<'_>) -> Result<Vec<u8>> {
    let Foreign { address, shape, strides, dtype, .. } = *foreign;
    let count = Layout::contiguous(shape)?.len();
    let mut bytes = Vec::new();
    let size = count.checked_mul(dtype.size());
    if size.is_none_or(|size| bytes.try_reserve_exact(size).is_err()) {
        let message = format!("no memory for a copy of {count} elements of {dtype}");
        return Err(Error::out_of_memory("asarray", message));
    }
    let mut index = vec![0usize; shape.len()];
    for _ in 0..count {
        let shift: isize =
            index.iter().zip(strides).map(|(&at, stride)| at as isize * stride).sum();
        // SAFETY: the caller promises that the element at this index can be read.
        let element =
            unsafe { std::slice::from_raw_parts(address.wrapping_offset(shift), dtype.size()) };
        bytes.extend_from_slice(element);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    Ok(bytes)
}
