//! Order: sort, argsort, searchsorted, unique.

use tilework_backend::{Request, Search, Sort, Target};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, normalize_axis};
use tilework_ops::{DType, Id};
use tilework_tape::Tape;

use super::Array;
use super::map::{apply_into, run_map_by};
use super::operands::{Arg, common_device};

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least to the greatest.
    Ascending,
    /// From the greatest to the least.
    Descending,
}

/// On which side of equal elements a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the first of them.
    Left,
    /// After the last of them.
    Right,
}

/// The different elements of an array, ascending, and where they are.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The different elements, ascending; every NaN is different.
    pub values: Array,
    /// For each, the index of its first occurrence in the ravelled array.
    pub indices: Array,
    /// For each element of the array, its place among the values; has the array's shape.
    pub inverse: Array,
    /// For each, how often it occurs.
    pub counts: Array,
}

impl Array {
    /// Elements in order along an axis; equal ones keep their order, NaN come last.
    ///
    /// ```
    /// use tilework::{Array, Direction};
    /// let x = Array::from_slice(&[2.0f32, f32::NAN, 1.0, 3.0])?;
    /// assert_eq!(x.sort(0, Direction::Descending)?.to_vec::<f32>()?[..3], [3.0, 2.0, 1.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sort(&self, axis: isize, direction: Direction) -> Result<Array> {
        self.sorted("sort", axis, direction, false)
    }

    /// Puts the elements in order along an axis, as [`Array::sort`] does, in their place.
    ///
    /// ```
    /// use tilework::{Array, Direction};
    /// let x = Array::from_slice(&[3, 1, 2])?;
    /// x.sort_in_place(0, Direction::Ascending)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sort_in_place(&self, axis: isize, direction: Direction) -> Result<()> {
        let axis = normalize_axis("sort", axis, self.ndim())?;
        let target = Target::shared("sort", self.borrow())?;
        let sorted = Array::unset("sort", self.device, self.shape(), self.dtype())?;
        let output = Target::shared("sort", sorted.borrow())?;
        let descending = direction == Direction::Descending;
        let request = Sort { input: self.borrow(), axis, descending, output, indices: false };
        let (tape, from) = (Tape::casting(self.dtype(), self.dtype()), [Arg::Array(&sorted)]);
        run_map_by("sort", tape, &from, self.dtype(), target, |copy| {
            self.device.run_after("sort", &[Request::Sort(request)], copy)
        })
    }

    /// The indices that would sort the array along an axis.
    pub fn argsort(&self, axis: isize, direction: Direction) -> Result<Array> {
        self.sorted("argsort", axis, direction, true)
    }

    fn sorted(
        &self,
        operation: &'static str,
        axis: isize,
        direction: Direction,
        indices: bool,
    ) -> Result<Array> {
        let axis = normalize_axis(operation, axis, self.ndim())?;
        if self.shape().get(axis) == Some(&1) {
            // Lines of one element are in order.
            return match indices {
                true => Array::zeros_on(self.device, self.shape(), DType::Int64),
                false => self.copy(),
            };
        }
        let dtype = if indices { DType::Int64 } else { self.dtype() };
        let mut fresh = self.device.allocate(operation, self.shape(), dtype, false)?;
        let (input, output) = (self.borrow(), fresh.target());
        let descending = direction == Direction::Descending;
        let request = Sort { input, axis, descending, output, indices };
        self.device.run(operation, &Request::Sort(request))?;
        Ok(Array::from_fresh(fresh, self.device))
    }

    /// Where `values` would be inserted into this ascending array of one axis, on one side of equal
    /// elements.
    ///
    /// ```
    /// use tilework::{Array, Side};
    /// let x = Array::from_slice(&[1, 3, 3, 5])?;
    /// let value = Array::from_slice(&[3])?;
    /// assert_eq!(x.searchsorted(&value, Side::Left)?.to_vec::<i64>()?, [1]);
    /// assert_eq!(x.searchsorted(&value, Side::Right)?.to_vec::<i64>()?, [3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn searchsorted(&self, values: &Array, side: Side) -> Result<Array> {
        if self.ndim() != 1 {
            let message =
                format!("the sorted array has one axis, not shape {}", tuple(self.shape()));
            return Err(Error::shape("searchsorted", message));
        }
        let device = common_device("searchsorted", &[Arg::Array(self), Arg::Array(values)])?;
        let dtype = self.dtype().promote(values.dtype());
        let (sorted, values) = (self.to_dtype(dtype)?, values.to_dtype(dtype)?);
        let mut fresh = device.allocate("searchsorted", values.shape(), DType::Int64, false)?;
        let request = Search {
            sorted: sorted.borrow(),
            values: values.borrow(),
            right: side == Side::Right,
            output: fresh.target(),
        };
        device.run("searchsorted", &Request::Search(request))?;
        Ok(Array::from_fresh(fresh, device))
    }

    /// The different elements of the whole array, where they are and how often.
    pub fn unique(&self) -> Result<Unique> {
        let flat = self.ravel()?;
        let order = flat.argsort(0, Direction::Ascending)?;
        let sorted = flat.take(&order, 0)?;
        let starts = first_of_runs(&sorted)?;
        let heads = starts.nonzero()?.remove(0);
        let values = sorted.take(&heads, 0)?;
        let indices = order.take(&heads, 0)?;
        let ends = super::join::concat(
            &[
                &heads.slice(&[Index::from(1..)])?,
                &Array::from_slice_on(self.device, &[flat.len() as i64])?,
            ],
            0,
        )?;
        let counts = if flat.is_empty() { heads.clone() } else { ends.subtract(&heads)? };
        // The number of starts so far, minus one, is the place among the values.
        let place = starts.to_dtype(DType::Int64)?.cumulative_sum(0)?.subtract(1)?;
        let inverse = Array::unset("unique", self.device, &[flat.len()], DType::Int64)?;
        inverse.index_set(&[super::Indexer::Array(&order)], &place)?;
        let shape: Vec<isize> = self.shape().iter().map(|&n| n as isize).collect();
        Ok(Unique { values, indices, inverse: inverse.reshape(&shape)?, counts })
    }

    /// The different elements, ascending; every NaN is different.
    pub fn unique_values(&self) -> Result<Array> {
        let sorted = self.ravel()?.sort(0, Direction::Ascending)?;
        sorted.index(&[super::Indexer::Array(&first_of_runs(&sorted)?)])
    }
}

/// True where a sorted array of one axis differs from the element before.
fn first_of_runs(sorted: &Array) -> Result<Array> {
    if sorted.len() < 2 {
        return Array::full_on(sorted.device, &[sorted.len()], true, DType::Bool);
    }
    let starts = Array::unset("unique", sorted.device, &[sorted.len()], DType::Bool)?;
    starts.slice(&[Index::from(..1)])?.assign(true)?;
    let later = sorted.slice(&[Index::from(1..)])?;
    let earlier = sorted.slice(&[Index::from(..-1)])?;
    let both = [Arg::Array(&later), Arg::Array(&earlier)];
    apply_into(Id::NotEqual, &both, &starts.slice(&[Index::from(1..)])?)?;
    Ok(starts)
}
