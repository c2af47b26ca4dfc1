//! What integers ask for beyond their rows: numbers outside of their dtype in comparisons and bounds,
//! negative powers, and rounding to tens. `map` calls the first two before it settles anything else.

use std::borrow::Cow;

use tilework_error::{Error, Result};
use tilework_ops::{DType, Kind, Number, Row, Rule};

use super::Array;
use super::map::{Arg, result_type};

/// The operands, with integers beyond the dtype of the others as what means the same: infinities where
/// only a truth is asked (such a number is larger or smaller than every element, and not zero), and
/// the dtype's limits where it is a bound that never binds.
#[inline]
pub(super) fn in_range<'a, 'b>(row: &Row, operands: &'a [Arg<'b>]) -> Cow<'a, [Arg<'b>]> {
    let truth = matches!(row.gives, Rule::Bool);
    if !truth && !row.between {
        return Cow::Borrowed(operands);
    }
    let instead = |(k, operand): (usize, &Arg<'_>)| {
        let &Arg::Number(Number::Int(i)) = operand else { return None };
        let limits = result_type(operands).and_then(DType::iinfo).ok()?;
        let (bound, limit) = match i {
            _ if i < limits.min => (1, limits.min),
            _ if i > limits.max => (2, limits.max),
            _ => return None,
        };
        let infinity = f64::INFINITY.copysign(i as f64);
        match truth {
            true => Some(Number::Float(infinity)),
            false => (k == bound).then_some(Number::Int(limit)),
        }
    };
    if operands.iter().enumerate().all(|operand| instead(operand).is_none()) {
        return Cow::Borrowed(operands);
    }
    let replaced = |(k, operand): (usize, &Arg<'b>)| match instead((k, operand)) {
        Some(number) => Arg::Number(number),
        None => *operand,
    };
    Cow::Owned(operands.iter().enumerate().map(replaced).collect())
}

/// That the last operand of integers is not negative where the row says so (powers; NumPy refuses
/// them too). An array of exponents is looked at once.
#[inline]
pub(super) fn check_natural(row: &Row, operands: &[Arg<'_>], computes: DType) -> Result<()> {
    if !row.natural || !computes.is_integer() {
        return Ok(());
    }
    let negative = match operands.last() {
        Some(Arg::Number(Number::Int(exponent))) => *exponent < 0,
        Some(Arg::Array(exponents))
            if exponents.dtype().kind() == Kind::Signed && !exponents.is_empty() =>
        {
            exponents.min(())?.item::<i64>()? < 0
        }
        _ => false,
    };
    if negative {
        let message = "integers have no negative powers; cast one operand to a float";
        return Err(Error::value(row.name, message));
    }
    Ok(())
}

impl Array {
    /// Rounded to so many decimals, halves to even; to tens and hundreds if there are less than
    /// none. As in NumPy the scaled number is rounded, so a half that is none in binary may go
    /// either way.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1.25f64, -3.14159])?;
    /// assert_eq!(x.round_to(1)?.to_vec::<f64>()?, [1.2, -3.1]);
    /// assert_eq!(Array::from_slice(&[25i32, 35])?.round_to(-1)?.to_vec::<i32>()?, [20, 40]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn round_to(&self, decimals: i32) -> Result<Array> {
        let whole = !self.dtype().is_inexact();
        if decimals == 0 || whole && decimals > 0 {
            return self.round();
        }
        if whole {
            let rounded = self.to_dtype(DType::Float64)?.round_to(decimals)?;
            return rounded.to_dtype(self.dtype());
        }
        let scale = 10f64.powi(decimals.abs());
        match decimals > 0 {
            true => self.multiply(scale)?.round()?.divide(scale),
            false => self.divide(scale)?.round()?.multiply(scale),
        }
    }
}
