//! Indexing by arrays: integers, masks, and both mixed with slices, for reading and writing.
//!
//! The rules are NumPy's. Slices, integers and new axes are applied first, as a view; then the axes
//! that arrays index are brought to the front, where a gather or a scatter finds them.

use std::iter;

use smallvec::SmallVec;
use tilework_backend::{Gather, Indices, Request, Scatter, Target, ViewRef};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Dims, Index, broadcast_shapes, normalize_axis};
use tilework_ops::DType;

use super::Array;
use super::operands::{Arg, common_device};
use super::snapshot::Snapshot;

/// One entry of an index: something of a basic index, or an array of integers or bools.
#[derive(Clone)]
pub enum Indexer<'a> {
    /// An integer, a slice, a new axis or an ellipsis.
    Basic(Index),
    /// Integers pick elements of one axis; bools pick where they are true, over as many axes as
    /// they have.
    Array(&'a Array),
}

impl Indexer<'_> {
    fn is_array(&self) -> bool {
        matches!(self, Indexer::Array(_))
    }
}

impl<T: Into<Index>> From<T> for Indexer<'_> {
    fn from(index: T) -> Self {
        Indexer::Basic(index.into())
    }
}

/// An index split into a view and arrays for some of its axes.
struct Advanced {
    /// The array after its basic part, axes that arrays index first.
    front: Array,
    /// One int64 array for each of these axes.
    indices: Vec<Array>,
    /// Which axes they are after the basic part.
    axes: Dims,
    /// Where the axes of the arrays' shape belong in the result.
    place: usize,
    /// The shape that the arrays have together.
    shape: Dims,
}

impl Array {
    /// Elements picked by integers, slices and arrays: NumPy's `x[...]`.
    ///
    /// A view if no array is among the indices, a copy otherwise.
    ///
    /// ```
    /// use tilework::{Array, Indexer};
    /// let x = Array::from_slice(&[10, 20, 30, 40])?;
    /// let picks = Array::from_slice(&[3i64, -4])?;
    /// assert_eq!(x.index(&[Indexer::Array(&picks)])?.to_vec::<i32>()?, [40, 10]);
    /// let mask = x.greater(15)?;
    /// assert_eq!(x.index(&[Indexer::Array(&mask)])?.to_vec::<i32>()?, [20, 30, 40]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn index(&self, indices: &[Indexer<'_>]) -> Result<Array> {
        self.picked("index", indices)
    }

    fn picked(&self, operation: &'static str, indices: &[Indexer<'_>]) -> Result<Array> {
        if let [Indexer::Array(index)] = indices
            && let Some(picked) = self.picked_along_first(operation, index)?
        {
            return Ok(picked);
        }
        if let Some((flat, mask)) = self.under_flat_mask(indices)? {
            return flat.picked(operation, &[Indexer::Array(&mask)]);
        }
        let Some(advanced) = self.advanced(operation, indices)? else {
            return self.slice(&basic(indices));
        };
        let Advanced { front, indices, axes, place, shape } = advanced;
        let rest = &front.shape()[indices.len()..];
        let full: Dims = shape.iter().chain(rest).copied().collect();
        let mut fresh = self.device.allocate(operation, &full, self.dtype(), false)?;
        let arrays: SmallVec<[ViewRef<'_>; 4]> = indices.iter().map(Array::borrow).collect();
        let indices = Indices { arrays: &arrays, axes: &axes };
        let gather = Gather { source: front.borrow(), indices, output: fresh.target() };
        self.device.run(operation, &Request::Gather(gather))?;
        let result = Array::from_fresh(fresh, self.device);
        // The arrays' axes stand in front; bring them to their place.
        let from: Vec<isize> = (0..shape.len() as isize).collect();
        let to: Vec<isize> = (0..shape.len()).map(|k| (place + k) as isize).collect();
        result.move_axes(&from, &to)
    }

    /// Writes to elements picked by integers, slices and arrays: NumPy's `x[...] = source`. Where
    /// an element is picked twice, the last write stays.
    pub fn index_set<'a>(&self, indices: &[Indexer<'_>], source: impl Into<Arg<'a>>) -> Result<()> {
        self.put("index_set", indices, source.into())
    }

    fn put(&self, operation: &'static str, indices: &[Indexer<'_>], source: Arg<'_>) -> Result<()> {
        if !indices.iter().any(Indexer::is_array) {
            return self.slice(&basic(indices))?.assign(source);
        }
        common_device(operation, &[Arg::Array(self), source])?;
        let values = match source {
            Arg::Array(array) => array.to_dtype(self.dtype())?,
            Arg::Number(number) => Array::full_on(self.device, &[], number, self.dtype())?,
        };
        if let [Indexer::Array(picks)] = indices
            && self.put_along_first(operation, picks, &values)?
        {
            return Ok(());
        }
        if self.fill_under_mask(operation, indices, &values)? {
            return Ok(());
        }
        match self.under_flat_mask(indices)? {
            Some((flat, mask)) => flat.put_all(operation, &[Indexer::Array(&mask)], values),
            None => self.put_all(operation, indices, values),
        }
    }

    /// Writes values, of this array's dtype, to what arrays among the indices pick.
    fn put_all(
        &self,
        operation: &'static str,
        indices: &[Indexer<'_>],
        values: Array,
    ) -> Result<()> {
        let Some(advanced) = self.advanced(operation, indices)? else { return Ok(()) };
        let Advanced { front, indices, axes, place, shape } = advanced;
        let rest = &front.shape()[indices.len()..];
        let (before, after) = rest.split_at(place.min(rest.len()));
        let logical: Dims = before.iter().chain(&shape).chain(after).copied().collect();
        let all = broadcast_shapes(operation, &[values.shape(), &logical]);
        if !all.is_ok_and(|all| all == logical) {
            let (from, to) = (tuple(values.shape()), tuple(&logical));
            let message = format!("shape {from} does not broadcast into {to}");
            return Err(Error::shape(operation, message));
        }
        let values = values.broadcast_to(&logical)?;
        let from: Vec<isize> = (0..shape.len()).map(|k| (place + k) as isize).collect();
        let to: Vec<isize> = (0..shape.len() as isize).collect();
        let values = values.move_axes(&from, &to)?;
        let target = Target::shared(operation, front.borrow())?;
        let read: SmallVec<[&Array; 4]> = iter::once(&values).chain(&indices).collect();
        let snapshots = read.iter().map(|array| Snapshot::if_shared(operation, array, self));
        let snapshots: SmallVec<[Option<Snapshot<'_>>; 4]> = snapshots.collect::<Result<_>>()?;
        let views: SmallVec<[ViewRef<'_>; 4]> = read
            .iter()
            .zip(&snapshots)
            .map(|(array, snapshot)| snapshot.as_ref().map_or(*array, Snapshot::copy).borrow())
            .collect();
        let first = snapshots.iter().flatten().map(|snapshot| snapshot.request(operation));
        let first = first.collect::<Result<SmallVec<[Request<'_>; 4]>>>()?;
        let indices = Indices { arrays: &views[1..], axes: &axes };
        let scatter = Request::Scatter(Scatter { source: views[0], indices, target });
        match first.is_empty() {
            true => self.device.run(operation, &scatter),
            false => self.device.run_after(operation, &first, &scatter),
        }
    }

    /// Elements of one axis picked by an array of integers.
    pub fn take(&self, picks: &Array, axis: isize) -> Result<Array> {
        let axis = normalize_axis("take", axis, self.ndim())?;
        let mut indices = vec![Indexer::Basic(Index::from(..)); axis];
        indices.push(Indexer::Array(picks));
        if !picks.dtype().is_integer() {
            return Err(Error::dtype(
                "take",
                format!("indices are integers, not {}", picks.dtype()),
            ));
        }
        self.picked("take", &indices)
    }

    /// For each place of `picks`, the element of this array at that index along one axis; the other
    /// axes broadcast.
    pub fn take_along_axis(&self, picks: &Array, axis: isize) -> Result<Array> {
        let grid = self.along_axis("take_along_axis", picks, axis)?;
        let indices: Vec<Indexer<'_>> = grid.iter().map(Indexer::Array).collect();
        self.broadcast_around(picks, axis)?.picked("take_along_axis", &indices)
    }

    /// Writes `source` to the places that [`Array::take_along_axis`] reads.
    pub fn put_along_axis<'a>(
        &self,
        picks: &Array,
        source: impl Into<Arg<'a>>,
        axis: isize,
    ) -> Result<()> {
        let grid = self.along_axis("put_along_axis", picks, axis)?;
        let indices: Vec<Indexer<'_>> = grid.iter().map(Indexer::Array).collect();
        self.put("put_along_axis", &indices, source.into())
    }

    /// This array broadcast to the shape of `picks` on all axes but one.
    fn broadcast_around(&self, picks: &Array, axis: isize) -> Result<Array> {
        let axis = normalize_axis("take_along_axis", axis, self.ndim())?;
        let mut shape = Dims::from_slice(self.shape());
        for (k, size) in shape.iter_mut().enumerate() {
            if k != axis && *size == 1 {
                *size = picks.shape()[k];
            }
        }
        self.broadcast_to(&shape)
    }

    /// Indices of all axes for the places of `picks`: itself along `axis`, counts along the others.
    fn along_axis(
        &self,
        operation: &'static str,
        picks: &Array,
        axis: isize,
    ) -> Result<Vec<Array>> {
        let axis = normalize_axis(operation, axis, self.ndim())?;
        let fits = |k: usize| {
            let (have, want) = (self.shape()[k], picks.shape()[k]);
            k == axis || have == want || have == 1 || want == 1
        };
        if picks.ndim() != self.ndim() || !(0..self.ndim()).all(fits) {
            let (a, b) = (tuple(self.shape()), tuple(picks.shape()));
            return Err(Error::shape(
                operation,
                format!("indices of shape {b} do not fit an array of {a}"),
            ));
        }
        if !picks.dtype().is_integer() {
            return Err(Error::dtype(
                operation,
                format!("indices are integers, not {}", picks.dtype()),
            ));
        }
        (0..self.ndim())
            .map(|k| {
                if k == axis {
                    return Ok(picks.clone());
                }
                let mut shape = vec![1isize; self.ndim()];
                let (have, want) = (self.shape()[k], picks.shape()[k]);
                shape[k] = if have == 1 { want } else { have } as isize;
                Array::count_for(operation, self.device, shape[k] as usize)?.reshape(&shape)
            })
            .collect()
    }

    /// Splits an index into a view and arrays; None if there is no array among the entries.
    fn advanced(&self, operation: &str, indices: &[Indexer<'_>]) -> Result<Option<Advanced>> {
        if !indices.iter().any(Indexer::is_array) {
            return Ok(None);
        }
        let expanded = self.expand_masks(operation, indices)?;
        // Beside arrays, an integer is an array of one: it takes part in where the axes go.
        let mut view: SmallVec<[Index; 6]> = SmallVec::new();
        let mut arrays: Vec<(usize, Array)> = Vec::new();
        let mut runs = 0;
        let mut in_run = false;
        let mut axis = 0;
        let used = expanded.iter().filter(|entry| entry.uses_axis()).count();
        for entry in &expanded {
            match entry {
                Entry::Basic(Index::Ellipsis) => {
                    let fills = (self.ndim() + 1).saturating_sub(used + 1);
                    view.extend(std::iter::repeat_n(Index::from(..), fills));
                    axis += fills;
                    in_run = false;
                }
                Entry::Basic(Index::NewAxis) => {
                    view.push(Index::NewAxis);
                    axis += 1;
                    in_run = false;
                }
                Entry::Basic(Index::At(at)) => {
                    arrays.push((
                        axis,
                        Array::from_slice_on(self.device, &[*at as i64])?.reshape(&[])?,
                    ));
                    view.push(Index::from(..));
                    axis += 1;
                    runs += usize::from(!in_run);
                    in_run = true;
                }
                Entry::Basic(slice) => {
                    view.push(*slice);
                    axis += 1;
                    in_run = false;
                }
                Entry::Array(array) => {
                    arrays.push((axis, array.clone()));
                    view.push(Index::from(..));
                    axis += 1;
                    runs += usize::from(!in_run);
                    in_run = true;
                }
                Entry::OwnAxis(array) => {
                    arrays.push((axis, array.clone()));
                    view.push(Index::NewAxis);
                    axis += 1;
                    runs += usize::from(!in_run);
                    in_run = true;
                }
            }
        }
        let viewed = self.slice(&view)?;
        let shapes: Vec<&[usize]> = arrays.iter().map(|(_, array)| array.shape()).collect();
        let shape = broadcast_shapes(operation, &shapes)
            .map_err(|error| Error::Index(error.to_string()))?;
        let place = if runs == 1 { arrays.first().map_or(0, |(axis, _)| *axis) } else { 0 };
        let axes: Dims = arrays.iter().map(|(axis, _)| *axis).collect();
        // The request checks the indices that it follows. It sees none where nothing is left to
        // pick, and unsigned ones beyond int64 as negative ones.
        let left = (0..viewed.ndim()).filter(|axis| !axes.contains(axis));
        let nothing =
            left.map(|axis| viewed.shape()[axis]).chain(shape.iter().copied()).any(|n| n == 0);
        let mut indices = Vec::with_capacity(arrays.len());
        for (axis, array) in &arrays {
            common_device(operation, &[Arg::Array(self), Arg::Array(array)])?;
            if nothing || array.dtype() == DType::UInt64 {
                check_bounds(operation, array, *axis, viewed.shape()[*axis])?;
            }
            indices.push(array.to_dtype(DType::Int64)?.broadcast_to(&shape)?);
        }
        let from: Vec<isize> = arrays.iter().map(|(axis, _)| *axis as isize).collect();
        let to: Vec<isize> = (0..arrays.len() as isize).collect();
        let front = viewed.move_axes(&from, &to)?;
        Ok(Some(Advanced { front, indices, axes, place, shape }))
    }

    /// Masks become the integer arrays of their true elements.
    fn expand_masks(&self, operation: &str, indices: &[Indexer<'_>]) -> Result<Vec<Entry>> {
        let mut expanded = Vec::new();
        let axes_of = |index: &Indexer<'_>| match index {
            Indexer::Basic(Index::NewAxis | Index::Ellipsis) => 0,
            Indexer::Array(array) if array.dtype() == DType::Bool => array.ndim(),
            _ => 1,
        };
        let used: usize = indices.iter().map(axes_of).sum();
        if used > self.ndim() {
            let message = format!("{used} indices for shape {}", tuple(self.shape()));
            return Err(Error::index(operation, message));
        }
        let mut axis = 0;
        for index in indices {
            match index {
                Indexer::Basic(Index::Ellipsis) => axis += self.ndim() - used,
                _ => axis += axes_of(index),
            }
            expanded.push(match index {
                Indexer::Basic(basic) => Entry::Basic(*basic),
                Indexer::Array(array) if array.dtype() == DType::Bool => {
                    let first = axis - array.ndim();
                    let covered = &self.shape()[first..axis];
                    // An axis of size zero selects nothing from an axis of any size, as in NumPy.
                    let fits = covered.iter().zip(array.shape()).all(|(n, m)| m == n || *m == 0);
                    if !fits {
                        let (mask, axes) = (tuple(array.shape()), tuple(covered));
                        return Err(Error::index(
                            operation,
                            format!("a mask of shape {mask} on axes of {axes}"),
                        ));
                    }
                    if array.ndim() == 0 {
                        let count = usize::from(array.to_scalar()?.is_true());
                        Entry::OwnAxis(Array::zeros_on(self.device, &[count], DType::Int64)?)
                    } else {
                        let found = array.nonzero()?;
                        expanded.extend(found.into_iter().map(Entry::Array));
                        continue;
                    }
                }
                Indexer::Array(array) if array.dtype().is_integer() => {
                    Entry::Array((*array).clone())
                }
                Indexer::Array(array) => {
                    let message = format!(
                        "arrays used as indices are integers or bools, not {}",
                        array.dtype()
                    );
                    return Err(Error::index(operation, message));
                }
            });
        }
        // What is not indexed is kept whole, as if an ellipsis stood at the end.
        if !expanded.iter().any(|entry| matches!(entry, Entry::Basic(Index::Ellipsis))) {
            expanded.push(Entry::Basic(Index::Ellipsis));
        }
        Ok(expanded)
    }
}

enum Entry {
    Basic(Index),
    Array(Array),
    /// A mask of no axes, as indices (one or none) into a new axis of length 1.
    OwnAxis(Array),
}

impl Entry {
    fn uses_axis(&self) -> bool {
        !matches!(self, Entry::Basic(Index::NewAxis | Index::Ellipsis) | Entry::OwnAxis(_))
    }
}

fn basic(indices: &[Indexer<'_>]) -> SmallVec<[Index; 6]> {
    indices
        .iter()
        .filter_map(|index| match index {
            Indexer::Basic(basic) => Some(*basic),
            Indexer::Array(_) => None,
        })
        .collect()
}

/// That every index lies in `-size .. size`.
pub(super) fn check_bounds(
    operation: &str,
    indices: &Array,
    axis: usize,
    size: usize,
) -> Result<()> {
    if indices.is_empty() {
        return Ok(());
    }
    let (low, high) =
        (indices.min(())?.to_scalar()?.to_number(), indices.max(())?.to_scalar()?.to_number());
    let (tilework_ops::Number::Int(low), tilework_ops::Number::Int(high)) = (low, high) else {
        return Err(Error::dtype(
            operation,
            format!("indices are integers, not {}", indices.dtype()),
        ));
    };
    let size = size as i128;
    for bound in [low, high] {
        if bound < -size || bound >= size {
            let message = format!("{bound} is out of bounds for axis {axis} with size {size}");
            return Err(Error::index(operation, message));
        }
    }
    Ok(())
}
