//! Conversions to and from `ndarray`, feature `ndarray`.
//!
//! May assume that an `ndarray` of any strides iterates in row-major order, which is its promise.
//! Elements are copied, except within [`Array::with_ndarray`].

use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn, RawData};
use tilework_error::{Error, Result};
use tilework_ops::Element;

use crate::array::Array;

impl Array {
    /// A copy of the elements as an `ndarray`, in row-major order; the dtype must be `T`'s.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_nested(&[[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.transpose().to_ndarray::<f32>()?, ndarray::array![[1.0, 3.0], [2.0, 4.0]].into_dyn());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.shape()), self.to_vec()?)
            .map_err(|error| Error::shape("to_ndarray", error))
    }

    /// Shows the elements to `f` as an `ndarray`, without a copy if they are in row-major order.
    ///
    /// Meanwhile the memory is guarded as by [`Array::read`].
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let x = Array::ones(&[2, 3], DType::Float64)?;
    /// assert_eq!(x.with_ndarray(|view: ndarray::ArrayViewD<'_, f64>| view.sum())?, 6.0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn with_ndarray<T: Element<Raw = T> + bytemuck::Pod, R>(
        &self,
        f: impl FnOnce(ArrayViewD<'_, T>) -> R,
    ) -> Result<R> {
        let compact = self.compact()?;
        let elements = compact.read::<T>()?;
        let view = ArrayViewD::from_shape(IxDyn(self.shape()), &elements);
        Ok(f(view.map_err(|error| Error::shape("with_ndarray", error))?))
    }

    /// A copy of the elements of an `ndarray` or a view of one, on the current device.
    ///
    /// ```
    /// use tilework::Array;
    /// let columns = ndarray::array![[1i32, 2], [3, 4]].reversed_axes();
    /// assert_eq!(Array::from_ndarray(&columns)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn from_ndarray<T, S, D>(array: &ArrayBase<S, D>) -> Result<Array>
    where
        T: Element,
        S: RawData<Elem = T> + Data,
        D: Dimension,
    {
        match array.as_slice() {
            Some(elements) => Array::from_shape(array.shape(), elements),
            None => {
                let elements: Vec<T> = array.iter().copied().collect();
                Array::from_shape(array.shape(), &elements)
            }
        }
    }
}

impl<T, S, D> TryFrom<&ArrayBase<S, D>> for Array
where
    T: Element,
    S: RawData<Elem = T> + Data,
    D: Dimension,
{
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Array> {
        Array::from_ndarray(array)
    }
}

impl<T, S, D> TryFrom<ArrayBase<S, D>> for Array
where
    T: Element,
    S: RawData<Elem = T> + Data,
    D: Dimension,
{
    type Error = Error;

    fn try_from(array: ArrayBase<S, D>) -> Result<Array> {
        Array::from_ndarray(&array)
    }
}

impl<T: Element> TryFrom<&Array> for ArrayD<T> {
    type Error = Error;

    fn try_from(array: &Array) -> Result<ArrayD<T>> {
        array.to_ndarray()
    }
}

impl<T: Element> TryFrom<Array> for ArrayD<T> {
    type Error = Error;

    fn try_from(array: Array) -> Result<ArrayD<T>> {
        array.to_ndarray()
    }
}
