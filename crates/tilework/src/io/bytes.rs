//! Arrays as plain bytes, least byte first, in row-major order.
//!
//! May assume nothing of the bytes; their number must be what shape and dtype ask for. Called by
//! the `serde` conversions, which exist only with that feature.

use tilework_error::{Error, Result, tuple};
use tilework_layout::Layout;
use tilework_ops::DType;

use crate::array::Array;
use crate::device::Device;

/// The elements' bytes.
pub(crate) fn little_endian(operation: &'static str, array: &Array) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    array.compact()?.each_piece(operation, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    turn_around(array.dtype(), &mut bytes);
    Ok(bytes)
}

/// The array of this shape whose elements have these bytes.
pub(crate) fn from_little_endian(
    operation: &'static str,
    dtype: DType,
    shape: &[usize],
    mut bytes: Vec<u8>,
) -> Result<Array> {
    let layout = Layout::contiguous(shape)?;
    if layout.len().checked_mul(dtype.size()) != Some(bytes.len()) {
        let (have, shape) = (bytes.len(), tuple(shape));
        let message = format!("{have} bytes are not an array of shape {shape} and dtype {dtype}");
        return Err(Error::format(operation, message));
    }
    turn_around(dtype, &mut bytes);
    let array = Array::empty_on(Device::current(), shape, dtype)?;
    array.device().upload(operation, &bytes, array.storage(), 0)?;
    Ok(array)
}

/// Between this machine's order of bytes and the one above, which mostly are the same.
fn turn_around(dtype: DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.part().size()).for_each(<[u8]>::reverse);
    }
}
