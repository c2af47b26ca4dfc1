//! Comparisons of whole arrays: equal, close, among.

use tilework_error::Result;
use tilework_layout::Index;
use tilework_ops::{DType, Number};

use super::Array;
use super::index::Indexer;
use super::operands::{Arg, common_device};
use super::order::{Direction, Side};

/// What NaN is to another NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// Different, as in arithmetic.
    Unequal,
    /// The same, as in a comparison of results.
    Equal,
}

impl Array {
    /// Whether both have one shape and equal elements.
    ///
    /// ```
    /// use tilework::{Array, Nan};
    /// let x = Array::from_slice(&[1.0f64, f64::NAN])?;
    /// assert!(!x.array_equal(&x, Nan::Unequal)? && x.array_equal(&x, Nan::Equal)?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn array_equal(&self, other: &Array, nan: Nan) -> Result<bool> {
        common_device("array_equal", &[Arg::Array(self), Arg::Array(other)])?;
        if self.shape() != other.shape() {
            return Ok(false);
        }
        let equal = self.equal(other)?;
        let equal = match nan {
            Nan::Equal => equal.logical_or(&self.both_nan(other)?)?,
            Nan::Unequal => equal,
        };
        equal.all(())?.item()
    }

    fn both_nan(&self, other: &Array) -> Result<Array> {
        self.isnan()?.logical_and(&other.isnan()?)
    }

    /// Whether elements differ by at most `atol + rtol * |other|`; infinities are close to
    /// themselves.
    pub fn isclose(&self, other: &Array, rtol: f64, atol: f64, nan: Nan) -> Result<Array> {
        // Differences of unsigned integers and bools are taken as floats.
        let inexact = |array: &Array| {
            let dtype = array.dtype();
            array.to_dtype(if dtype.is_inexact() { dtype } else { DType::Float64 })
        };
        let (a, b) = (inexact(self)?, inexact(other)?);
        let apart = a.subtract(&b).map_err(|error| error.of("isclose"))?.abs()?;
        let allowed = (&(&b.abs()? * rtol)? + atol)?;
        let close = apart.less_equal(&allowed)?.logical_and(&b.isfinite()?)?;
        let close = close.logical_or(&a.equal(&b)?)?;
        match nan {
            Nan::Equal => close.logical_or(&a.both_nan(&b)?),
            Nan::Unequal => Ok(close),
        }
    }

    /// Whether all elements are close: see [`Array::isclose`].
    ///
    /// ```
    /// use tilework::{Array, Nan};
    /// let x = Array::from_slice(&[1.0f64, 1e10])?;
    /// let y = Array::from_slice(&[1.0 + 1e-9, 1.00001e10])?;
    /// assert!(x.allclose(&y, 1e-5, 1e-8, Nan::Unequal)?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn allclose(&self, other: &Array, rtol: f64, atol: f64, nan: Nan) -> Result<bool> {
        let close = self.isclose(other, rtol, atol, nan);
        close.map_err(|error| error.of("allclose"))?.all(())?.item()
    }

    /// Whether each element is among those of another array.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1, 5, 3])?;
    /// assert_eq!(x.isin(&Array::from_slice(&[3, 1])?)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn isin(&self, among: &Array) -> Result<Array> {
        let device = common_device("isin", &[Arg::Array(self), Arg::Array(among)])?;
        if among.is_empty() {
            return Array::full_for("isin", device, self.shape(), Number::Bool(false), DType::Bool);
        }
        let dtype = self.dtype().promote(among.dtype());
        if dtype.is_inexact() && !self.dtype().is_inexact() && !among.dtype().is_inexact() {
            // No dtype holds both: what the other one cannot hold is not among its elements.
            let x = self.astype(among.dtype())?;
            let held = x.equal(self)?;
            return x.isin(among)?.logical_and(&held);
        }
        let sorted = among.to_dtype(dtype)?.ravel()?.sort(0, Direction::Ascending)?;
        let x = self.to_dtype(dtype)?;
        if let Some(found) = by_table(&x, &sorted)? {
            return Ok(found);
        }
        // The first element that is not smaller is the element itself, if it is there.
        let places = sorted.searchsorted(&x, Side::Left)?.minimum(sorted.len() as i64 - 1)?;
        sorted.take(&places, 0)?.equal(&x)
    }
}

/// Integers that a table of all between the smallest and the largest may span, for each element of both
/// arrays: it takes a byte for each, and looking one up a few passes over the elements.
const TABLE_SPAN: usize = 4;

/// Whether each element is among those of `sorted`, of the same dtype, by a table: None where they are
/// not integers near each other, or to read two of them would be to wait for a device.
fn by_table(x: &Array, sorted: &Array) -> Result<Option<Array>> {
    let dtype = x.dtype();
    if !dtype.is_integer() || !x.device.is_quick() {
        return Ok(None);
    }
    let end = |at| sorted.slice(&[Index::At(at)])?.to_scalar().map(|scalar| scalar.to_number());
    let (low, high) = (end(0)?, end(-1)?);
    let (Number::Int(lowest), Number::Int(highest)) = (low, high) else { return Ok(None) };
    let most = x.len().saturating_add(sorted.len()).saturating_mul(TABLE_SPAN);
    let Some(span) = usize::try_from(highest - lowest).ok().filter(|&span| span < most) else {
        return Ok(None);
    };
    // Distances from the smallest may be too large for a narrow dtype, but not for a wide one.
    let place = |elements: &Array| match dtype.size() {
        8 => elements.subtract(low)?.to_dtype(DType::Int64),
        _ => elements.to_dtype(DType::Int64)?.subtract(low),
    };
    let table = Array::full_for("isin", x.device, &[span + 1], Number::Bool(false), DType::Bool)?;
    table.index_set(&[Indexer::Array(&place(sorted)?)], true)?;
    let inside = x.maximum(low)?.minimum(high)?;
    table.take(&place(&inside)?, 0)?.logical_and(&inside.equal(x)?).map(Some)
}
