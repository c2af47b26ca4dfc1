//! Evenly spaced numbers: `arange`, `linspace`, and the counting that other rooms need.
//!
//! A long range is the sum of two short ones, broadcast: where a row begins, and the place in the
//! row. So the device makes it in one pass, shared by threads, and it can be stopped. Nothing is
//! rounded that would not be, one by one: integers wrap in 64 bits, and places are exact in float64.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use smallvec::SmallVec;
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{DType, Id, Number};
use tilework_tape::{Builder, Per, Slot, Tape};

use super::Array;
use super::map::{run_map, then_cast};
use super::operands::Arg;
use crate::device::Device;

/// The length of a row: what the host counts by itself.
const ROW: usize = 1 << 12;

/// A range of real numbers, with its end (`0.0..=1.0`) or without it (`0.0..1.0`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    start: f64,
    stop: f64,
    closed: bool,
}

impl From<Range<f64>> for Span {
    fn from(range: Range<f64>) -> Span {
        Span { start: range.start, stop: range.end, closed: false }
    }
}

impl From<RangeInclusive<f64>> for Span {
    fn from(range: RangeInclusive<f64>) -> Span {
        Span { start: *range.start(), stop: *range.end(), closed: true }
    }
}

impl Array {
    /// The numbers from `start` up to, not including, `stop`, in steps.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// assert_eq!(Array::arange(5, 0, -2, DType::Int32)?.to_vec::<i32>()?, [5, 3, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn arange(
        start: impl Into<Number>,
        stop: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
    ) -> Result<Array> {
        Array::arange_on(Device::current(), start, stop, step, dtype)
    }

    /// [`Array::arange`] on a device.
    pub fn arange_on(
        device: Device,
        start: impl Into<Number>,
        stop: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
    ) -> Result<Array> {
        let (start, stop, step) = (start.into(), stop.into(), step.into());
        if let (Number::Int(start), Number::Int(stop), Number::Int(step)) = (start, stop, step) {
            return arange_integers(device, start, stop, step, dtype);
        }
        let real = |number: Number| number.cast(DType::Float64).get::<f64>();
        let (start, stop, step) = (real(start), real(stop), real(step));
        let count = ((stop - start) / step).ceil();
        if step == 0.0 || !count.is_finite() {
            return Err(Error::value(
                "arange",
                format!("no range from {start} to {stop} in steps of {step}"),
            ));
        }
        let steps = [(Id::Multiply, step), (Id::Add, start)];
        counted("arange", device, count.max(0.0) as usize, &steps, false, dtype)
    }

    /// `count` numbers at equal distances in a range, with its end or without it.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let closed = Array::linspace(0.0..=1.0, 5, DType::Float64)?;
    /// assert_eq!(closed.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// let open = Array::linspace(0.0..1.0, 4, DType::Float64)?;
    /// assert_eq!(open.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn linspace(range: impl Into<Span>, count: usize, dtype: DType) -> Result<Array> {
        Array::linspace_on(Device::current(), range, count, dtype)
    }

    /// [`Array::linspace`] on a device.
    pub fn linspace_on(
        device: Device,
        range: impl Into<Span>,
        count: usize,
        dtype: DType,
    ) -> Result<Array> {
        let Span { start, stop, closed } = range.into();
        let intervals = if closed { count.saturating_sub(1) } else { count }.max(1) as f64;
        let span = stop - start;
        let step = span / intervals;
        // A step that vanishes or overflows: scale the fraction instead.
        let fractions = [(Id::Divide, intervals), (Id::Multiply, span), (Id::Add, start)];
        let multiples = [(Id::Multiply, step), (Id::Add, start)];
        let steps = match step == 0.0 || !step.is_finite() {
            true => &fractions[..],
            false => &multiples[..],
        };
        let whole = dtype.is_integer();
        let numbers = counted("linspace", device, count, steps, whole, dtype)?;
        if closed && count > 1 {
            let last = Number::from(if whole { stop.floor() } else { stop }).cast(dtype);
            numbers.slice(&[(count - 1).into()])?.fill(last.to_number())?;
        }
        Ok(numbers)
    }

    /// 0, 1, 2, ... as int64, for an operation.
    pub(super) fn count_for(
        operation: &'static str,
        device: Device,
        count: usize,
    ) -> Result<Array> {
        ramp(operation, device, count, 0, 1, DType::Int64)
    }
}

fn arange_integers(
    device: Device,
    start: i128,
    stop: i128,
    step: i128,
    dtype: DType,
) -> Result<Array> {
    if step == 0 {
        return Err(Error::value("arange", "the step is zero"));
    }
    for number in [start, stop, step] {
        if number < i64::MIN.into() || number > u64::MAX.into() {
            return Err(Error::value("arange", format!("{number} is out of range")));
        }
    }
    let span = if step > 0 { stop - start } else { start - stop };
    let count = if span <= 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
    let count = usize::try_from(count)
        .map_err(|_| Error::out_of_memory("arange", format!("{count} elements")))?;
    let last = start + step * (count as i128 - 1).max(0);
    if dtype.is_integer() {
        // As in NumPy the first two must fit; what counts on from there wraps.
        for number in [start, start + step].into_iter().take(count) {
            Number::Int(number).to_scalar("arange", dtype)?;
        }
    }
    let unsigned = dtype == DType::UInt64;
    let fits = |x: i128| i64::try_from(x).is_ok() || unsigned && u64::try_from(x).is_ok();
    if let Some(number) = [start, last].into_iter().find(|&number| !fits(number)) {
        return Err(Error::value("arange", format!("{number} is out of range")));
    }
    // Both ends fit 64 bits, so the bits between them are right, whatever was cut off the step.
    ramp("arange", device, count, start as i64, step as i64, dtype)
}

/// start, start + step, start + 2 step, ..., wrapping in int64, as `dtype`.
fn ramp(
    operation: &'static str,
    device: Device,
    count: usize,
    start: i64,
    step: i64,
    dtype: DType,
) -> Result<Array> {
    if count <= ROW {
        let number = |k: usize| start.wrapping_add((k as i64).wrapping_mul(step));
        let numbers: Vec<i64> = (0..count).map(number).collect();
        return Array::from_slice_on(device, &numbers)?.to_dtype(dtype);
    }
    let sum = then_cast(Cow::Borrowed(Tape::call(Id::Add, DType::Int64)), dtype);
    Rows { operation, device, start, step, tape: &sum, others: &[] }.make(count)
}

/// 0, 1, 2, ... in float64, each put through steps with a number, rounded down if `whole`, and cast.
fn counted(
    operation: &'static str,
    device: Device,
    count: usize,
    steps: &[(Id, f64)],
    whole: bool,
    dtype: DType,
) -> Result<Array> {
    let mut build = Builder::new();
    let mut input = || build.input(Slot::scalar(DType::Float64), Per::I);
    let (row, place) = (input(), input());
    let inputs: SmallVec<[_; 3]> = steps.iter().map(|_| input()).collect();
    let mut value = build.apply(Id::Add, &[row, place])?;
    for ((id, _), other) in steps.iter().zip(inputs) {
        value = build.apply(*id, &[value, other])?;
    }
    if whole {
        value = build.apply(Id::Floor, &[value])?;
    }
    let value = build.cast(value, dtype);
    let tape = build.finish(&[value])?;
    let others: SmallVec<[_; 3]> = steps.iter().map(|(_, x)| Arg::from(*x)).collect();
    Rows { operation, device, start: 0, step: 1, tape: &tape, others: &others }.make(count)
}

/// A range made row by row.
struct Rows<'a> {
    operation: &'static str,
    device: Device,
    start: i64,
    step: i64,
    /// What is made of where a row begins, the place in the row, and the other numbers.
    tape: &'a Tape,
    others: &'a [Arg<'a>],
}

impl Rows<'_> {
    /// So many numbers. Memory is asked for first: a count that is too large is an error and nothing
    /// else.
    fn make(&self, count: usize) -> Result<Array> {
        let Rows { operation, device, start, step, tape, others } = *self;
        let computes = tape.slot(0).dtype;
        let dtype = tape.slot(tape.outputs()[0]).dtype;
        let mut fresh = device.allocate(operation, &[count], dtype, false)?;
        let mut write = |row: Arg<'_>, place: &Array, layout: &Layout| {
            let mut operands: SmallVec<[Arg<'_>; 5]> = SmallVec::new();
            operands.extend([row, Arg::Array(place)]);
            operands.extend_from_slice(others);
            let target = fresh.target_through(layout)?;
            run_map(operation, device, tape, &operands, computes, target)
        };
        let (rows, rest) = (count / ROW, count % ROW);
        let next_row = step.wrapping_mul(ROW as i64);
        let places = ramp(operation, device, count.min(ROW), 0, step, computes)?;
        if rows > 0 {
            let begins =
                ramp(operation, device, rows, start, next_row, computes)?.expand_dims(1)?;
            write(Arg::Array(&begins), &places, &Layout::contiguous(&[rows, ROW])?)?;
        }
        if rest > 0 {
            let begins = start.wrapping_add(next_row.wrapping_mul(rows as i64));
            let layout = Layout::contiguous(&[rest])?.with_offset(rows * ROW)?;
            write(Arg::from(begins), &places.slice(&[(..rest).into()])?, &layout)?;
        }
        Ok(Array::from_fresh(fresh, device))
    }
}
