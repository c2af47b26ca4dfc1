//! The operands of an operation: arrays and numbers, and what they have in common.
//!
//! Dtype, device and shape are settled here, and what a row's marks ask of operands beyond its
//! dtypes. Called by everything that takes more than one array, first of all by `map`.

use std::borrow::Cow;

use smallvec::SmallVec;
use tilework_error::{Error, Result};
use tilework_layout::{Dims, broadcast_shapes};
use tilework_ops::{DType, Kind, Number, Row, Rule};

use super::Array;
use crate::device::Device;

/// An operand: an array, or a number that takes the array's dtype.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// An array.
    Array(&'a Array),
    /// A number.
    Number(Number),
}

impl<'a> From<&'a Array> for Arg<'a> {
    fn from(array: &'a Array) -> Self {
        Arg::Array(array)
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl From<$type> for Arg<'_> {
            fn from(x: $type) -> Self { Arg::Number(Number::from(x)) }
        }
    )*};
}

numbers!(
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    tilework_ops::Complex<f32>,
    tilework_ops::Complex<f64>,
    tilework_ops::Scalar
);

impl From<Number> for Arg<'_> {
    fn from(x: Number) -> Self {
        Arg::Number(x)
    }
}

/// The dtype that operands have together: arrays promote, numbers follow.
///
/// ```
/// use tilework::{Array, DType, result_type};
/// let x = Array::zeros(&[2], DType::Int8)?;
/// assert_eq!(result_type(&[(&x).into(), 0.5.into()])?, DType::Float64);
/// # Ok::<(), tilework::Error>(())
/// ```
#[inline]
pub fn result_type(operands: &[Arg<'_>]) -> Result<DType> {
    let mut common: Option<DType> = None;
    for operand in operands {
        if let Arg::Array(array) = operand {
            common = Some(match common {
                Some(dtype) if dtype != array.dtype() => dtype.promote(array.dtype()),
                _ => array.dtype(),
            });
        }
    }
    for operand in operands {
        if let Arg::Number(number) = operand {
            common = Some(match common {
                Some(dtype) => number.promote(dtype),
                None => number.default_dtype(),
            });
        }
    }
    common.ok_or_else(|| Error::value("result_type", "there is nothing to promote"))
}

/// The device that all arrays among the operands are on.
#[inline]
pub(crate) fn common_device(operation: &str, operands: &[Arg<'_>]) -> Result<Device> {
    let mut common: Option<Device> = None;
    for operand in operands {
        if let Arg::Array(array) = operand {
            match common {
                Some(device) if device != array.device => {
                    let (here, there) = (device, array.device);
                    let message = format!(
                        "operands are on {here} and {there}; move one with to_device(\"{here}\")"
                    );
                    return Err(Error::device(operation, message));
                }
                _ => common = Some(array.device),
            }
        }
    }
    Ok(common.unwrap_or_else(Device::current))
}

/// The shape that the operands broadcast to.
pub(super) fn common_shape<'a>(operation: &str, operands: &'a [Arg<'_>]) -> Result<Dims> {
    let shape = |operand: &'a Arg<'_>| match operand {
        Arg::Array(array) => Some(array.shape()),
        Arg::Number(_) => None,
    };
    let shapes: SmallVec<[&[usize]; 3]> = operands.iter().filter_map(shape).collect();
    broadcast_shapes(operation, &shapes)
}

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
        // Asked first: where there are no limits, the error that says so takes longer than the operation.
        let integer = result_type(operands).ok().filter(|dtype| dtype.is_integer())?;
        let limits = integer.iinfo().ok()?;
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
