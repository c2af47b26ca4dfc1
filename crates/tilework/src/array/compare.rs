//! Comparisons of whole arrays: equal, close, among.

use tilework_error::Result;
use tilework_ops::DType;

use super::Array;
use super::operands::{Arg, common_device};

impl Array {
    /// Whether both have one shape and equal elements; NaN equals NaN if `equal_nan`.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1.0f64, f64::NAN])?;
    /// assert!(!x.array_equal(&x, false)? && x.array_equal(&x, true)?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn array_equal(&self, other: &Array, equal_nan: bool) -> Result<bool> {
        common_device("array_equal", &[Arg::Array(self), Arg::Array(other)])?;
        if self.shape() != other.shape() {
            return Ok(false);
        }
        let equal = self.equal(other)?;
        let equal = if equal_nan { equal.logical_or(&self.both_nan(other)?)? } else { equal };
        equal.all(())?.item()
    }

    fn both_nan(&self, other: &Array) -> Result<Array> {
        self.isnan()?.logical_and(&other.isnan()?)
    }

    /// Whether elements differ by at most `atol + rtol * |other|`; infinities are close to
    /// themselves, NaN to NaN if `equal_nan`.
    pub fn isclose(&self, other: &Array, rtol: f64, atol: f64, equal_nan: bool) -> Result<Array> {
        // Differences of unsigned integers and bools are taken as floats.
        let inexact = |array: &Array| {
            let dtype = array.dtype();
            array.to_dtype(if dtype.is_inexact() { dtype } else { DType::Float64 })
        };
        let (a, b) = (inexact(self)?, inexact(other)?);
        let apart = a.subtract(&b)?.abs()?;
        let allowed = (&(&b.abs()? * rtol)? + atol)?;
        let close = apart.less_equal(&allowed)?.logical_and(&b.isfinite()?)?;
        let close = close.logical_or(&a.equal(&b)?)?;
        if equal_nan { close.logical_or(&a.both_nan(&b)?) } else { Ok(close) }
    }

    /// Whether all elements are close: see [`Array::isclose`].
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1.0f64, 1e10])?;
    /// let y = Array::from_slice(&[1.0 + 1e-9, 1.00001e10])?;
    /// assert!(x.allclose(&y, 1e-5, 1e-8, false)?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn allclose(&self, other: &Array, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
        self.isclose(other, rtol, atol, equal_nan)?.all(())?.item()
    }

    /// Whether each element is among those of another array, or, if `invert`, is not.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1, 5, 3])?;
    /// assert_eq!(x.isin(&Array::from_slice(&[3, 1])?, false)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn isin(&self, among: &Array, invert: bool) -> Result<Array> {
        let device = common_device("isin", &[Arg::Array(self), Arg::Array(among)])?;
        if among.is_empty() {
            return Array::full_on(device, self.shape(), invert, DType::Bool);
        }
        let dtype = self.dtype().promote(among.dtype());
        if dtype.is_inexact() && !self.dtype().is_inexact() && !among.dtype().is_inexact() {
            // No dtype holds both: what the other one cannot hold is not among its elements.
            let x = self.astype(among.dtype())?;
            let held = x.equal(self)?;
            let found = x.isin(among, false)?.logical_and(&held)?;
            return if invert { found.logical_not() } else { Ok(found) };
        }
        let sorted = among.to_dtype(dtype)?.ravel()?.sort(0, false)?;
        let x = self.to_dtype(dtype)?;
        // The first element that is not smaller is the element itself, if it is there.
        let places = sorted.searchsorted(&x, false)?.minimum(sorted.len() as i64 - 1)?;
        let found = sorted.take(&places, 0)?;
        if invert { found.not_equal(&x) } else { found.equal(&x) }
    }
}
