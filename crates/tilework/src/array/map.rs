//! Elementwise work: the methods made from the rows, casts and choices.
//!
//! One path for all: settle the dtype, broadcast, allocate, make a tape, ask the device. What is
//! particular to an operation is in its row.

use std::borrow::Cow;

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Request, Target};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Layout, broadcast_shapes};
use tilework_ops::{DType, Id, Number, Row};
use tilework_tape::{Action, Builder, Per, Slot, Tape};

use super::Array;
use super::operands::{Arg, check_natural, common_device, common_shape, in_range, result_type};
use super::snapshot::Snapshot;
use crate::device::Device;

/// Equality of shapes, which are too short for a call of `memcmp`.
#[inline]
fn is_same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// An operation of the table on arrays and numbers; what every method of the same name calls.
///
/// ```
/// use tilework::{Array, Id, apply};
/// let x = Array::from_slice(&[1.0f64, 4.0])?;
/// assert_eq!(apply(Id::Sqrt, &[(&x).into()])?.to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn apply(id: Id, operands: &[Arg<'_>]) -> Result<Array> {
    let row = id.row();
    if let Some((shorter, base)) = power_by_one(id, operands) {
        return apply(shorter, &[Arg::Array(base)]).map_err(|error| error.of(row.name));
    }
    let operands = &*in_range(row, operands);
    if let Some((array, computes)) = alike(row, operands) {
        check_natural(row, operands, computes)?;
        let (device, tape) = (array.device, Tape::call(id, computes));
        let mut fresh = device.allocate(row.name, array.shape(), row.result(computes), false)?;
        let run = |map: &Request<'_>| device.run(row.name, map);
        ask(row.name, tape, operands, &[], computes, fresh.target(), run)?;
        return Ok(Array::from_fresh(fresh, device));
    }
    settled(row, operands, |computes, device, shape| {
        check_natural(row, operands, computes)?;
        let tape = tape_of(id, operands, computes);
        let mut fresh = device.allocate(row.name, shape, row.result(computes), false)?;
        run_map(row.name, device, &tape, operands, computes, fresh.target())?;
        Ok(Array::from_fresh(fresh, device))
    })
}

/// The same into an array that exists; its shape must be the result's, and the result's dtype must
/// cast to its dtype without falling to a lower kind.
pub fn apply_into(id: Id, operands: &[Arg<'_>], out: &Array) -> Result<()> {
    let row = id.row();
    if let Some((shorter, base)) = power_by_one(id, operands) {
        let written = apply_into(shorter, &[Arg::Array(base)], out);
        return written.map_err(|error| error.of(row.name));
    }
    let operands = &*in_range(row, operands);
    settled(row, operands, |computes, device, shape| {
        check_natural(row, operands, computes)?;
        if device != out.device {
            let message = format!(
                "operands are on {device} and {}; move one with to_device(\"{device}\")",
                out.device
            );
            return Err(Error::device(row.name, message));
        }
        if !shape.is_empty() && *shape != *out.shape() {
            // The target may be larger than the operands, but never the other way round.
            let all = broadcast_shapes(row.name, &[shape, out.shape()])?;
            if all[..] != *out.shape() {
                let message = format!(
                    "the result has shape {}, the target {}",
                    tuple(shape),
                    tuple(out.shape())
                );
                return Err(Error::shape(row.name, message));
            }
        }
        let result = row.result(computes);
        if !result.can_cast_kind(out.dtype()) {
            let message = format!(
                "the result is {result} and is not cast to a target of {}; make a new array",
                out.dtype()
            );
            return Err(Error::dtype(row.name, message));
        }
        let tape = then_cast(tape_of(id, operands, computes), out.dtype());
        run_map_into(row.name, &tape, operands, computes, out)
    })
}

/// A power that one operation gives, with its base: a square or a reciprocal, which have the same special
/// values and are better rounded. (A square root has not: of -0.0 and of minus infinity.)
#[inline]
fn power_by_one<'a>(id: Id, operands: &'a [Arg<'_>]) -> Option<(Id, &'a Array)> {
    let [Arg::Array(base), Arg::Number(exponent)] = operands else { return None };
    if id != Id::Pow {
        return None;
    }
    let shorter = match exponent {
        Number::Int(2) | Number::Float(2.0) => Id::Square,
        Number::Int(-1) | Number::Float(-1.0) if base.dtype().is_float() => Id::Reciprocal,
        _ => return None,
    };
    let same = exponent.promote(base.dtype()) == base.dtype();
    (same && shorter.row().takes(base.dtype())).then_some((shorter, *base))
}

/// Settles what an operation needs to know before it begins, and goes on with it: what it computes
/// in, the device and the shape of the result.
fn settled<T>(
    row: &Row,
    operands: &[Arg<'_>],
    go_on: impl FnOnce(DType, Device, &[usize]) -> Result<T>,
) -> Result<T> {
    let common = result_type(operands)?;
    let device = common_device(row.name, operands)?;
    let meaningless = || Error::dtype(row.name, format!("{common} has no meaning here"));
    let mut computes = row.computes(common).ok_or_else(meaningless)?;
    if computes.is_inexact() && !common.is_inexact() {
        // Integers become floats one by one, as in NumPy: int8 and uint8 are both float16, though
        // together they are int16.
        let float = |operand: &Arg<'_>| match operand {
            Arg::Array(array) => row.computes(array.dtype()),
            Arg::Number(_) => None,
        };
        computes = operands.iter().filter_map(float).reduce(DType::promote).unwrap_or(computes);
    }
    go_on(computes, device, &common_shape(row.name, operands)?)
}

/// The first array, and what the operation computes in, if that is the dtype of all arrays and they
/// have one shape and device: mostly so, and then there is nothing to cast or to broadcast.
#[inline]
fn alike<'a>(row: &Row, operands: &'a [Arg<'_>]) -> Option<(&'a Array, DType)> {
    let mut first: Option<&'a Array> = None;
    for operand in operands {
        match (operand, first) {
            (Arg::Array(array), None) => first = Some(array),
            (Arg::Array(array), Some(first)) => {
                let same = std::ptr::eq(*array, first)
                    || array.dtype() == first.dtype()
                        && array.device == first.device
                        && is_same(array.shape(), first.shape());
                if !same {
                    return None;
                }
            }
            (Arg::Number(_), _) => {}
        }
    }
    let (first, mut dtype) = (first?, first?.dtype());
    for operand in operands {
        if let Arg::Number(number) = operand {
            dtype = number.promote(dtype);
        }
    }
    (dtype == first.dtype() && row.takes(dtype)).then_some((first, dtype))
}

#[inline]
fn tape_of(id: Id, operands: &[Arg<'_>], computes: DType) -> Cow<'static, Tape> {
    let casts =
        |operand: &Arg<'_>| matches!(operand, Arg::Array(array) if array.dtype() != computes);
    if !operands.iter().any(casts) {
        return Cow::Borrowed(Tape::call(id, computes));
    }
    let dtypes: SmallVec<[DType; 3]> = operands
        .iter()
        .map(|operand| match operand {
            Arg::Array(array) => array.dtype(),
            Arg::Number(_) => computes,
        })
        .collect();
    Cow::Owned(Tape::apply_to(id, &dtypes, computes))
}

/// The tape followed by a cast of its result.
pub(super) fn then_cast(tape: Cow<'static, Tape>, dtype: DType) -> Cow<'static, Tape> {
    let result = tape.slot(tape.outputs()[0]).dtype;
    if result == dtype {
        return tape;
    }
    Cow::Owned(tape.into_owned().then(Action::Cast, dtype))
}

/// Broadcasts the operands to an array that others may see, and asks its device. Operands that overlap it
/// other than element by element are copied first, in the same step.
pub(super) fn run_map_into(
    operation: &'static str,
    tape: &Tape,
    operands: &[Arg<'_>],
    computes: DType,
    out: &Array,
) -> Result<()> {
    let target = Target::shared(operation, out.borrow())?;
    let mut overlap = false;
    for operand in operands {
        overlap |= matches!(operand, Arg::Array(array) if array.overlaps(out)?);
    }
    if !overlap {
        return run_map(operation, out.device, tape, operands, computes, target);
    }
    let snapshots = operands.iter().map(|operand| match operand {
        Arg::Array(array) if array.overlaps(out)? => Snapshot::new(operation, array).map(Some),
        _ => Ok(None),
    });
    let snapshots: SmallVec<[Option<Snapshot<'_>>; 3]> = snapshots.collect::<Result<_>>()?;
    let read: SmallVec<[Arg<'_>; 3]> = operands
        .iter()
        .zip(&snapshots)
        .map(|(given, snapshot)| snapshot.as_ref().map_or(*given, |made| Arg::Array(made.copy())))
        .collect();
    let first = snapshots.iter().flatten().map(|snapshot| snapshot.request(operation));
    let first = first.collect::<Result<SmallVec<[Request<'_>; 3]>>>()?;
    run_map_by(operation, tape, &read, computes, target, |map| {
        out.device.run_after(operation, &first, map)
    })
}

/// Broadcasts the operands to the target and asks the device.
pub(super) fn run_map(
    operation: &'static str,
    device: Device,
    tape: &Tape,
    operands: &[Arg<'_>],
    computes: DType,
    output: Target<'_>,
) -> Result<()> {
    run_map_by(operation, tape, operands, computes, output, |map| device.run(operation, map))
}

/// Broadcasts the operands to the target, and has the request run.
pub(super) fn run_map_by(
    operation: &'static str,
    tape: &Tape,
    operands: &[Arg<'_>],
    computes: DType,
    output: Target<'_>,
    run: impl FnOnce(&Request<'_>) -> Result<()>,
) -> Result<()> {
    let shape = output.layout().shape();
    let spreads =
        |operand: &Arg<'_>| matches!(operand, Arg::Array(array) if !is_same(array.shape(), shape));
    let mut layouts: SmallVec<[Option<Layout>; 3]> = SmallVec::new();
    if operands.iter().any(spreads) {
        for operand in operands {
            layouts.push(match operand {
                Arg::Array(array) if spreads(operand) => Some(array.layout().broadcast_to(shape)?),
                _ => None,
            });
        }
    }
    ask(operation, tape, operands, &layouts, computes, output, run)
}

/// Makes the request, with the operands through other layouts where there are some. Always inlined,
/// since a target that is handed on must lie in memory first, and waiting for that shows in small
/// operations.
#[inline(always)]
fn ask(
    operation: &'static str,
    tape: &Tape,
    operands: &[Arg<'_>],
    layouts: &[Option<Layout>],
    computes: DType,
    output: Target<'_>,
    run: impl FnOnce(&Request<'_>) -> Result<()>,
) -> Result<()> {
    let layout = |k: usize| layouts.get(k).and_then(Option::as_ref);
    // Operations have up to three operands; arrays of each length are cheaper than a growing one.
    let (one, two, three);
    let inputs: &[Operand<'_>] = match operands {
        [a] => {
            one = [to_operand(operation, a, layout(0), computes)?];
            &one
        }
        [a, b] => {
            let a = to_operand(operation, a, layout(0), computes)?;
            two = [a, to_operand(operation, b, layout(1), computes)?];
            &two
        }
        _ => {
            let all = operands.iter().enumerate();
            let all = all.map(|(k, x)| to_operand(operation, x, layout(k), computes));
            three = all.collect::<Result<SmallVec<[_; 3]>>>()?;
            &three
        }
    };
    run(&Request::Map(Map { tape, inputs, output }))
}

/// An operand as a request has it, an array through another layout if one is given. Always inlined,
/// so that it is made where it goes.
#[inline(always)]
fn to_operand<'a>(
    operation: &'static str,
    operand: &'a Arg<'_>,
    layout: Option<&'a Layout>,
    computes: DType,
) -> Result<Operand<'a>> {
    Ok(match (operand, layout) {
        (Arg::Array(array), None) => Operand::View(array.borrow()),
        (Arg::Array(array), Some(layout)) => Operand::View(array.borrow().with_layout(layout)?),
        (Arg::Number(number), _) => Operand::Scalar(number.to_scalar(operation, computes)?),
    })
}

/// `then` where `mask` is true, `otherwise` elsewhere: NumPy's `where`.
///
/// ```
/// use tilework::{Array, select};
/// let x = Array::from_slice(&[-1.0f32, 2.0])?;
/// let positive = x.greater(0.0)?;
/// assert_eq!(select(&positive, &x, 0.0)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn select<'a>(
    mask: &Array,
    then: impl Into<Arg<'a>>,
    otherwise: impl Into<Arg<'a>>,
) -> Result<Array> {
    let choices = [then.into(), otherwise.into()];
    let dtype = result_type(&choices)?;
    let operands = [Arg::Array(mask), choices[0], choices[1]];
    let device = common_device("where", &operands)?;
    let shape = common_shape("where", &operands)?;
    let mut build = Builder::new();
    let dtype_of = |arg: &Arg<'_>| match arg {
        Arg::Array(array) => array.dtype(),
        Arg::Number(_) => dtype,
    };
    let slots: SmallVec<[u16; 3]> =
        operands.iter().map(|arg| build.input(Slot::scalar(dtype_of(arg)), Per::I)).collect();
    let condition = build.cast(slots[0], DType::Bool);
    let (a, b) = (build.cast(slots[1], dtype), build.cast(slots[2], dtype));
    let chosen = build.select(condition, a, b)?;
    let tape = build.finish(&[chosen])?;
    let mut fresh = device.allocate("where", &shape, dtype, false)?;
    run_map("where", device, &tape, &operands, dtype, fresh.target())?;
    Ok(Array::from_fresh(fresh, device))
}

impl Array {
    /// A new array with the elements cast to `dtype`; a copy also if it has that dtype.
    ///
    /// Integers wrap, floats are truncated to integers with saturation (NaN becomes 0).
    pub fn astype(&self, dtype: DType) -> Result<Array> {
        self.cast("astype", dtype)
    }

    fn cast(&self, operation: &'static str, dtype: DType) -> Result<Array> {
        let mut fresh = self.device.allocate(operation, self.shape(), dtype, false)?;
        let tape = Tape::casting(self.dtype(), dtype);
        run_map(operation, self.device, tape, &[Arg::Array(self)], dtype, fresh.target())?;
        Ok(Array::from_fresh(fresh, self.device))
    }

    /// This array if it has `dtype`, a cast one otherwise.
    pub fn to_dtype(&self, dtype: DType) -> Result<Array> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.astype(dtype) }
    }

    /// A new array in row-major order.
    pub fn copy(&self) -> Result<Array> {
        self.cast("copy", self.dtype())
    }

    /// This array if it is in row-major order, a copy otherwise.
    pub fn compact(&self) -> Result<Array> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

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
        let computes = self.dtype().computes_in();
        let most = computes.finfo()?.max.log10() as u32;
        let digits = decimals.unsigned_abs();
        // Every number is nearer to zero than to a unit beyond all of them.
        let beyond = decimals < 0 && digits > most;
        let scale = if beyond { 0.0 } else { 10f64.powi(digits.min(most).cast_signed()) };
        // In one go over the numbers.
        let mut build = Builder::new();
        let given = build.input(Slot::scalar(self.dtype()), Per::I);
        let scale_at = build.input(Slot::scalar(computes), Per::I);
        let x = build.cast(given, computes);
        let rounded = match decimals > 0 {
            // Numbers that are too large to be scaled have no decimals.
            true => {
                let scaled = build.apply(Id::Multiply, &[x, scale_at])?;
                let finite = build.apply(Id::IsFinite, &[scaled])?;
                let whole = build.apply(Id::Round, &[scaled])?;
                let rounded = build.apply(Id::Divide, &[whole, scale_at])?;
                build.select(finite, rounded, x)?
            }
            false if beyond => {
                let finite = build.apply(Id::IsFinite, &[x])?;
                let zero = build.apply(Id::Multiply, &[x, scale_at])?;
                build.select(finite, zero, x)?
            }
            false => {
                let scaled = build.apply(Id::Divide, &[x, scale_at])?;
                let whole = build.apply(Id::Round, &[scaled])?;
                build.apply(Id::Multiply, &[whole, scale_at])?
            }
        };
        let result = build.cast(rounded, self.dtype());
        let (tape, operands) = (build.finish(&[result])?, [Arg::Array(self), scale.into()]);
        let mut fresh = self.device.allocate("round", self.shape(), self.dtype(), false)?;
        run_map("round", self.device, &tape, &operands, computes, fresh.target())?;
        Ok(Array::from_fresh(fresh, self.device))
    }
}

/// Methods from the rows: `x.exp()`, `x.add(&y)`, `x.clip(0.0, 1.0)`.
macro_rules! methods {
    ($([[$($doc:literal)+] $Type:ident $name:ident $operands:tt $gives:ident $($mark:ident)?])+) => {
        /// One method for each row of the operation table.
        impl Array {
            $(methods! { @one $($mark)? [$($doc)+] $Type $name $operands })+
        }
    };
    // Rows for formulas only.
    (@one inner $doc:tt $Type:ident $name:ident $operands:tt) => {};
    (@one $mark:ident $($row:tt)+) => {
        methods! { @one $($row)+ }
    };
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident]) => {
        $(#[doc = $doc])+
        pub fn $name(&self) -> Result<Array> {
            apply(Id::$Type, &[Arg::Array(self)])
        }
    };
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident, $b:ident]) => {
        $(#[doc = $doc])+
        pub fn $name<'a>(&self, $b: impl Into<Arg<'a>>) -> Result<Array> {
            apply(Id::$Type, &[Arg::Array(self), $b.into()])
        }
    };
    (@one [$($doc:literal)+] $Type:ident $name:ident [$a:ident, $b:ident, $c:ident]) => {
        $(#[doc = $doc])+
        pub fn $name<'a>(&self, $b: impl Into<Arg<'a>>, $c: impl Into<Arg<'a>>) -> Result<Array> {
            apply(Id::$Type, &[Arg::Array(self), $b.into(), $c.into()])
        }
    };
}

tilework_ops::each_op!(methods);
