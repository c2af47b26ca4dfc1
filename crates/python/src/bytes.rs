//! Elements as bytes in row-major order: what pickles hold.

use tilework::{Array, DType, Device, Error, Result};
use tilework_ops::with_element;

/// The elements in row-major order.
pub fn of(array: &Array) -> Result<Vec<u8>> {
    with_element!(array.dtype(), T => {
        let elements = array.to_vec::<T>()?;
        let size = array.dtype().size();
        let mut bytes = Vec::with_capacity(elements.len() * size);
        for element in elements {
            bytes.extend_from_slice(tilework::Scalar::new(element).bytes());
        }
        Ok(bytes)
    })
}

/// The array of such bytes.
pub fn array(dtype: DType, shape: &[usize], bytes: &[u8], device: Device) -> Result<Array> {
    let count = shape.iter().try_fold(1usize, |count, &n| count.checked_mul(n));
    if count.and_then(|count| count.checked_mul(dtype.size())) != Some(bytes.len()) {
        return Err(Error::value("unpickle", "the data do not fill the shape"));
    }
    let _scope = device.scope();
    with_element!(dtype, T => {
        let elements: Vec<T> = bytes
            .chunks_exact(dtype.size())
            .map(|chunk| tilework::Scalar::from_bytes(dtype, chunk).get::<T>())
            .collect();
        Array::from_shape(shape, &elements)
    })
}
