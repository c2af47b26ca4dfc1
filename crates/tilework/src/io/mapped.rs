//! `.npy` files as arrays without reading them: pages come from the file when they are touched.
//!
//! `unsafe`: that the file stays as it is while arrays on it live is
//! the promise of whoever calls, and no check can stand in for it. Called by users.

#![allow(unsafe_code, reason = "a file that others change is memory that others change")]

use std::io::BufReader;
use std::path::Path;

use tilework_backend::{Mapping, Memory, map_file};
use tilework_error::Result;

use super::Origin;
use super::header::Header;
use super::npy::{load, open};
use crate::array::Array;
use crate::device::Device;

/// The array of a `.npy` file, mapped and read-only: nothing is read before it is used.
///
/// A file that cannot be mapped as it is (bytes in another order, data at an odd place, no
/// elements, a device with memory of its own) is read like [`load`] does.
///
/// # Safety
/// Nobody changes the file in place while the array lives: numbers would change under those who read
/// them, and cutting the file kills the process that reads beyond the end. [`save`](crate::save)
/// replaces files instead of changing them, and is safe therefore.
///
/// ```
/// use tilework::{Array, DType, load_mapped};
/// let path = std::env::temp_dir().join(format!("doc-mapped-{}.npy", std::process::id()));
/// Array::arange(0, 1000, 1, DType::Float64)?.save(&path)?;
/// // SAFETY: nobody else knows the file.
/// let x = unsafe { load_mapped(&path)? };
/// assert_eq!(x.get::<f64>(&[-1])?, 999.0);
/// assert!(x.fill(0.0).is_err() && x.copy()?.fill(0.0).is_ok());
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), tilework::Error>(())
/// ```
pub unsafe fn load_mapped(path: impl AsRef<Path>) -> Result<Array> {
    // SAFETY: the caller's promise.
    unsafe { map("load_mapped", path.as_ref(), Mapping::ReadOnly) }
}

/// [`load_mapped`] for an array that may be written to: pages are copied when they are written, and
/// the file never changes.
///
/// # Safety
/// As [`load_mapped`]: pages that have not been written are the file's.
///
/// ```
/// use tilework::{Array, DType, load, load_mapped_private};
/// let path = std::env::temp_dir().join(format!("doc-private-{}.npy", std::process::id()));
/// Array::ones(&[3], DType::Int32)?.save(&path)?;
/// // SAFETY: nobody else knows the file.
/// let x = unsafe { load_mapped_private(&path)? };
/// x.fill(7)?;
/// assert_eq!(x.to_vec::<i32>()?, [7, 7, 7]);
/// assert_eq!(load(&path)?.to_vec::<i32>()?, [1, 1, 1]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), tilework::Error>(())
/// ```
pub unsafe fn load_mapped_private(path: impl AsRef<Path>) -> Result<Array> {
    // SAFETY: the caller's promise.
    unsafe { map("load_mapped_private", path.as_ref(), Mapping::CopyOnWrite) }
}

/// # Safety
/// As [`load_mapped`].
unsafe fn map(operation: &'static str, path: &Path, mapping: Mapping) -> Result<Array> {
    let name = path.display().to_string();
    let origin = Origin::new(operation, &name);
    let (file, length) = open(origin, path)?;
    let device = Device::current();
    let (Some(length), Memory::Host) = (length, device.memory()) else {
        return load(path);
    };
    let (header, taken) = Header::read(origin, &mut BufReader::new(&file))?;
    header.check_length(origin, taken, length.saturating_sub(taken as u64))?;
    if !header.swapped {
        // SAFETY: the caller's promise.
        let block = unsafe { map_file(device.id(), &file, taken as u64, header.bytes, mapping)? };
        if let Some(block) = block {
            return Array::from_storage(block, header.layout()?, header.dtype);
        }
    }
    load(path)
}
