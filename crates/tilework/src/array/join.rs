//! Arrays from arrays: concat, stack, pad, roll, repeat, tile.

use tilework_backend::try_room;
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Dims, Index, normalize_axis};
use tilework_ops::{DType, Number};

use super::Array;
use super::operands::{Arg, common_device};

/// How [`Array::pad`] fills the margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PadMode {
    /// With a number.
    Constant(Number),
    /// With the element at the edge.
    Edge,
    /// With the elements mirrored at the edge, without the edge itself.
    Reflect,
    /// With the elements mirrored at the edge, and the edge itself.
    Symmetric,
    /// With the elements from the other side.
    Wrap,
}

/// Arrays one after the other along an axis.
///
/// ```
/// use tilework::{Array, concat};
/// let (a, b) = (Array::from_slice(&[1, 2])?, Array::from_slice(&[3])?);
/// assert_eq!(concat(&[&a, &b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn concat(arrays: &[&Array], axis: isize) -> Result<Array> {
    let (first, dtype) = common(arrays, "concat")?;
    let axis = normalize_axis("concat", axis, first.ndim())?;
    let mut shape = Dims::from_slice(first.shape());
    shape[axis] = 0;
    for array in arrays {
        let alike = |k: usize| k == axis || array.shape()[k] == first.shape()[k];
        if array.ndim() != first.ndim() || !(0..first.ndim()).all(alike) {
            let (a, b) = (tuple(first.shape()), tuple(array.shape()));
            return Err(Error::shape(
                "concat",
                format!("shapes {a} and {b} differ beside axis {axis}"),
            ));
        }
        let total = shape[axis].checked_add(array.shape()[axis]);
        shape[axis] = total.ok_or_else(|| Error::shape("concat", "the axis would be too long"))?;
    }
    let result = Array::unset("concat", first.device, &shape, dtype)?;
    let mut start = 0;
    for array in arrays {
        let part = result.layout().narrow(axis.cast_signed(), start, array.shape()[axis])?;
        result.with_layout(part)?.assign(*array)?;
        start += array.shape()[axis];
    }
    Ok(result)
}

/// Arrays of one shape along a new axis.
pub fn stack(arrays: &[&Array], axis: isize) -> Result<Array> {
    let (first, _) = common(arrays, "stack")?;
    normalize_axis("stack", axis, first.ndim() + 1)?;
    if let Some(other) = arrays.iter().find(|array| array.shape() != first.shape()) {
        let (a, b) = (tuple(first.shape()), tuple(other.shape()));
        return Err(Error::shape("stack", format!("shapes {a} and {b} are not the same")));
    }
    let expanded: Vec<Array> =
        arrays.iter().map(|array| array.expand_dims(axis)).collect::<Result<_>>()?;
    concat(&expanded.iter().collect::<Vec<_>>(), axis).map_err(|error| error.of("stack"))
}

fn common<'a>(arrays: &[&'a Array], operation: &str) -> Result<(&'a Array, DType)> {
    let first = arrays.first().ok_or_else(|| Error::value(operation, "there is no array"))?;
    let args: Vec<Arg<'_>> = arrays.iter().map(|array| Arg::Array(array)).collect();
    common_device(operation, &args)?;
    Ok((first, super::result_type(&args)?))
}

impl Array {
    /// A margin of `(before, after)` elements on each axis.
    ///
    /// ```
    /// use tilework::{Array, PadMode};
    /// let x = Array::from_slice(&[1, 2, 3])?;
    /// assert_eq!(x.pad(&[(2, 1)], PadMode::Edge)?.to_vec::<i32>()?, [1, 1, 1, 2, 3, 3]);
    /// assert_eq!(x.pad(&[(2, 1)], PadMode::Reflect)?.to_vec::<i32>()?, [3, 2, 1, 2, 3, 2]);
    /// assert_eq!(x.pad(&[(2, 1)], PadMode::Symmetric)?.to_vec::<i32>()?, [2, 1, 1, 2, 3, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn pad(&self, widths: &[(usize, usize)], mode: PadMode) -> Result<Array> {
        if widths.len() != self.ndim() {
            let message =
                format!("{} pairs of widths for shape {}", widths.len(), tuple(self.shape()));
            return Err(Error::value("pad", message));
        }
        let grown = |(size, (before, after)): (&usize, &(usize, usize))| {
            size.checked_add(*before).and_then(|size| size.checked_add(*after))
        };
        let shape: Option<Dims> = self.shape().iter().zip(widths).map(grown).collect();
        let shape = shape.ok_or_else(|| Error::shape("pad", "an axis would be too long"))?;
        let empty = |axis: &usize| self.shape()[*axis] == 0 && shape[*axis] > 0;
        let result = match mode {
            PadMode::Constant(value) => {
                Array::full_for("pad", self.device, &shape, value, self.dtype())?
            }
            _ => match (0..self.ndim()).find(empty) {
                None => Array::unset("pad", self.device, &shape, self.dtype())?,
                Some(axis) => {
                    let message = format!("axis {axis} has no element to repeat");
                    return Err(Error::value("pad", message));
                }
            },
        };
        // The result without its margins, but for axes before this one.
        let within = |first: usize| {
            let axes = widths.iter().zip(self.shape()).enumerate().skip(first);
            axes.into_iter().try_fold(result.layout().clone(), |layout, (axis, (width, &size))| {
                layout.narrow(axis as isize, width.0, size)
            })
        };
        result.with_layout(within(0)?)?.assign(self)?;
        if matches!(mode, PadMode::Constant(_)) {
            return Ok(result);
        }
        for (axis, &(before, after)) in widths.iter().enumerate() {
            let (size, inside) = (self.shape()[axis], result.with_layout(within(axis)?)?);
            for (start, len) in [(0, before), (before + size, after)] {
                if len > 0 {
                    let first = start as i64 - before as i64;
                    let source = inside.margin_source(axis, first, len, mode)?;
                    let margin = within(axis + 1)?.narrow(axis as isize, start, len)?;
                    let margin = result.with_layout(margin)?;
                    margin.assign(&source).map_err(|error| error.of("pad"))?;
                }
            }
        }
        Ok(result)
    }

    /// What stands at `len` places of a padded axis from place `first` on, counted from where this array
    /// begins: a view where the elements follow each other in either direction, or are all one.
    fn margin_source(&self, axis: usize, first: i64, len: usize, mode: PadMode) -> Result<Array> {
        let size = self.shape()[axis];
        let source = |k: i64| source_of(first + k, size as i64, mode);
        let (begin, end) = (source(0), source(len as i64 - 1));
        let one = mode == PadMode::Edge || size == 1;
        let run = if one { 1 } else { begin.abs_diff(end) as usize + 1 };
        if !one && run != len {
            let picks = collected("pad", len, (0..len as i64).map(source))?;
            let picks = Array::from_slice_on(self.device, &picks)?;
            return self.take(&picks, axis as isize).map_err(|error| error.of("pad"));
        }
        let layout = self.layout().narrow(axis as isize, begin.min(end) as usize, run)?;
        let view = self.with_layout(layout)?;
        if begin > end { view.flip(Some(&[axis as isize])) } else { Ok(view) }
    }

    /// This array if it has memory of its own, a copy if it shares that of another.
    fn apart_from(self, other: &Array) -> Result<Array> {
        if self.is_same_block(other) { self.copy() } else { Ok(self) }
    }

    /// Elements moved by `shift` places along an axis; what leaves one end enters at the other.
    pub fn roll(&self, shift: isize, axis: isize) -> Result<Array> {
        let axis = normalize_axis("roll", axis, self.ndim())?;
        let size = self.shape()[axis];
        if size == 0 {
            return self.copy();
        }
        let cut = size - shift.rem_euclid(size as isize) as usize;
        let parts = self.split_at(&[cut], axis as isize)?;
        concat(&[&parts[1], &parts[0]], axis as isize).map_err(|error| error.of("roll"))
    }

    /// Each element along an axis repeated.
    pub fn repeat(&self, times: usize, axis: isize) -> Result<Array> {
        let at = normalize_axis("repeat", axis, self.ndim())?;
        let mut shape = Dims::from_slice(self.shape());
        shape.insert(at + 1, times);
        let repeated =
            self.expand_dims(at as isize + 1).and_then(|expanded| expanded.broadcast_to(&shape));
        shape.remove(at + 1);
        let grown = shape[at].checked_mul(times);
        shape[at] = grown.ok_or_else(|| Error::shape("repeat", "the axis would be too long"))?;
        let shape: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        repeated
            .and_then(|repeated| repeated.reshape(&shape)?.apart_from(self))
            .map_err(|error| error.of("repeat"))
    }

    /// Element k along an axis repeated `times[k]` times.
    pub fn repeat_each(&self, times: &[usize], axis: isize) -> Result<Array> {
        let axis = normalize_axis("repeat", axis, self.ndim())?;
        if times.len() != self.shape()[axis] {
            let message =
                format!("{} counts for axis {axis} of {}", times.len(), tuple(self.shape()));
            return Err(Error::shape("repeat", message));
        }
        let grown = times.iter().try_fold(0usize, |grown, &n| grown.checked_add(n));
        let grown = grown.ok_or_else(|| Error::shape("repeat", "the axis would be too long"))?;
        let sources = times.iter().enumerate().flat_map(|(k, &n)| std::iter::repeat_n(k as i64, n));
        let picks = collected("repeat", grown, sources)?;
        let picks = Array::from_slice_on(self.device, &picks);
        picks.and_then(|picks| self.take(&picks, axis as isize)).map_err(|error| error.of("repeat"))
    }

    /// The whole array repeated along each axis; missing axes are added in front.
    pub fn tile(&self, times: &[usize]) -> Result<Array> {
        let ndim = self.ndim().max(times.len());
        let padded = |values: &[usize]| -> Dims {
            std::iter::repeat_n(1, ndim - values.len()).chain(values.iter().copied()).collect()
        };
        let (shape, times) = (padded(self.shape()), padded(times));
        // Each axis becomes two: which copy, and where in it.
        let split: Vec<isize> = shape.iter().flat_map(|&n| [1, n as isize]).collect();
        let spread: Dims = times.iter().zip(&shape).flat_map(|(&t, &n)| [t, n]).collect();
        let full: Option<Vec<isize>> = times
            .iter()
            .zip(&shape)
            .map(|(&t, &n)| t.checked_mul(n).and_then(|n| isize::try_from(n).ok()))
            .collect();
        let full = full.ok_or_else(|| Error::shape("tile", "an axis would be too long"))?;
        self.reshape(&split)
            .and_then(|split| split.broadcast_to(&spread)?.reshape(&full)?.apart_from(self))
            .map_err(|error| error.of("tile"))
    }

    /// One axis less: the array's parts along an axis.
    pub fn unstack(&self, axis: isize) -> Result<Vec<Array>> {
        let count = self.shape()[normalize_axis("unstack", axis, self.ndim())?];
        // An axis of stride 0 has any length: more than memory has room for, even.
        let mut parts = try_room("unstack", count)?;
        for k in 0..count {
            parts.push(self.with_layout(self.layout().index_axis(axis, k)?)?);
        }
        Ok(parts)
    }

    /// Differences of neighbours along an axis, `n` times.
    pub fn diff(&self, n: usize, axis: isize) -> Result<Array> {
        let at = normalize_axis("diff", axis, self.ndim())?;
        let mut result = self.clone();
        // After as many differences as there are elements nothing is left to take more of.
        for _ in 0..n.min(self.shape()[at]) {
            let mut index = vec![Index::from(..); at];
            index.push(Index::from(1..));
            let later = result.slice(&index)?;
            index[at] = Index::from(..-1);
            let earlier = result.slice(&index)?;
            result = match self.dtype() {
                DType::Bool => later.not_equal(&earlier)?,
                _ => later.subtract(&earlier)?,
            };
        }
        if n == 0 || self.shape()[at] == 0 { self.copy() } else { Ok(result) }
    }
}

/// So many indices as a list; an error where there is no memory for them.
fn collected(
    operation: &str,
    count: usize,
    indices: impl Iterator<Item = i64>,
) -> Result<Vec<i64>> {
    let mut list = try_room(operation, count)?;
    list.extend(indices);
    Ok(list)
}

/// Which element of an axis stands at place `k` of the padded one.
fn source_of(k: i64, size: i64, mode: PadMode) -> i64 {
    match mode {
        PadMode::Wrap => k.rem_euclid(size),
        PadMode::Reflect if size > 1 => {
            let folded = k.rem_euclid(2 * (size - 1));
            folded.min(2 * (size - 1) - folded)
        }
        PadMode::Symmetric => {
            let folded = k.rem_euclid(2 * size);
            folded.min(2 * size - 1 - folded)
        }
        _ => k.clamp(0, size - 1),
    }
}
