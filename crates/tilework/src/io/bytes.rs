//! Arrays as plain bytes, least byte first, in row-major order.
//!
//! May assume nothing of the bytes; their number must be what shape and dtype ask for. Called by users,
//! by the `serde` conversions and by Python's pickles.

use tilework_error::{Error, Result, tuple};
use tilework_layout::Layout;
use tilework_ops::DType;

use crate::array::Array;
use crate::device::Device;

impl Array {
    /// Writes the bytes of the elements, in row-major order and least byte first, into a slice that
    /// they fill.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let x = Array::from_slice(&[1u16, 515])?;
    /// let mut bytes = [0; 4];
    /// x.read_bytes(&mut bytes)?;
    /// assert_eq!(bytes, [1, 0, 3, 2]);
    /// assert_eq!(Array::from_bytes(DType::UInt16, &[2], &bytes)?.to_vec::<u16>()?, [1, 515]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn read_bytes(&self, into: &mut [u8]) -> Result<()> {
        check("read_bytes", self.dtype(), self.shape(), into.len())?;
        let compact = self.compact()?;
        let start = if self.is_empty() { 0 } else { compact.offset() * self.dtype().size() };
        self.device().download("read_bytes", compact.storage(), start, into)?;
        turn_around(self.dtype(), into);
        Ok(())
    }

    /// The array of this shape whose elements have these bytes: see [`Array::read_bytes`].
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Array> {
        Array::from_bytes_on(Device::current(), dtype, shape, bytes)
    }

    /// [`Array::from_bytes`] on a device.
    pub fn from_bytes_on(
        device: Device,
        dtype: DType,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<Array> {
        check("from_bytes", dtype, shape, bytes.len())?;
        let array = Array::unset("from_bytes", device, shape, dtype)?;
        if cfg!(target_endian = "big") {
            let mut turned = tilework_backend::try_filled("from_bytes", 0, bytes.len())?;
            turned.copy_from_slice(bytes);
            turn_around(dtype, &mut turned);
            device.upload("from_bytes", &turned, array.storage(), 0)?;
        } else {
            device.upload("from_bytes", bytes, array.storage(), 0)?;
        }
        Ok(array)
    }
}

/// That so many bytes are those of an array.
fn check(operation: &str, dtype: DType, shape: &[usize], bytes: usize) -> Result<()> {
    if Layout::contiguous(shape)?.len().checked_mul(dtype.size()) == Some(bytes) {
        return Ok(());
    }
    let shape = tuple(shape);
    let message = format!("{bytes} bytes are not an array of shape {shape} and dtype {dtype}");
    Err(Error::value(operation, message))
}

/// Between this machine's order of bytes and the one above, which mostly are the same.
fn turn_around(dtype: DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.part().size()).for_each(<[u8]>::reverse);
    }
}
