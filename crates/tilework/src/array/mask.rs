//! Masks that are a whole index, `x[mask]` and `x[mask] = value`, and the indices of what is not zero.
//!
//! Most masks have the shape of the array, or of its first axes. Where these can be seen as one axis,
//! the mask picks from that one, with one array of indices in place of several; and a single value is
//! written in one pass over mask and array, with no indices at all. What is anything else stays with
//! `index`, which calls this.

use std::borrow::Cow;
use std::iter;

use smallvec::SmallVec;
use tilework_backend::{Nonzero, Reduce, Request, Target};
use tilework_error::{Error, Result};
use tilework_layout::{Dims, Index};
use tilework_ops::{DType, FoldId};
use tilework_tape::Tape;

use super::Array;
use super::index::Indexer;
use super::map::run_map;
use super::operands::{Arg, common_device};
use crate::door::run_held;

impl Array {
    /// The mask of an index that is nothing else, if it has the shape of this array's first axes.
    fn only_mask<'a>(&self, indices: &[Indexer<'a>]) -> Option<&'a Array> {
        let &[Indexer::Array(mask)] = indices else { return None };
        let fits = self.shape().starts_with(mask.shape());
        (mask.dtype() == DType::Bool && mask.ndim() > 0 && fits).then_some(mask)
    }

    /// This array and the mask that is its only index, both with the axes of the mask as one; None
    /// if there is nothing to join, or no view of that shape.
    pub(super) fn under_flat_mask(
        &self,
        indices: &[Indexer<'_>],
    ) -> Result<Option<(Array, Array)>> {
        let Some(mask) = self.only_mask(indices).filter(|mask| mask.ndim() > 1) else {
            return Ok(None);
        };
        let rest = &self.shape()[mask.ndim()..];
        let shape: Dims = iter::once(mask.len()).chain(rest.iter().copied()).collect();
        let Some(layout) = self.layout().reshape(&shape)? else { return Ok(None) };
        Ok(Some((self.with_layout(layout)?, mask.ravel()?)))
    }

    /// Writes one value, of this array's dtype, where the mask that is the only index is true; false,
    /// with nothing done, if there is another index or more than one value.
    pub(super) fn fill_under_mask(
        &self,
        operation: &'static str,
        indices: &[Indexer<'_>],
        value: &Array,
    ) -> Result<bool> {
        let Some(mask) = self.only_mask(indices).filter(|_| value.ndim() == 0) else {
            return Ok(false);
        };
        common_device(operation, &[Arg::Array(self), Arg::Array(mask)])?;
        let added = self.ndim() - mask.ndim();
        let mask = match added {
            0 => Cow::Borrowed(mask),
            _ => {
                let shape = mask.shape().iter().copied().chain(iter::repeat_n(1, added));
                let shape: SmallVec<[isize; 6]> = shape.map(usize::cast_signed).collect();
                Cow::Owned(mask.reshape(&shape)?)
            }
        };
        let (mask, value) = (apart(mask, self)?, apart(Cow::Borrowed(value), self)?);
        let operands = [Arg::Array(&mask), Arg::Array(&value), Arg::Array(self)];
        let target = Target::shared(operation, self.borrow())?;
        run_map(
            operation,
            self.device,
            Tape::selecting(self.dtype()),
            &operands,
            self.dtype(),
            target,
        )?;
        Ok(true)
    }

    /// The indices of elements that are not zero, one int64 array for each axis.
    pub fn nonzero(&self) -> Result<Vec<Array>> {
        if self.ndim() == 0 {
            return Err(Error::shape(
                "nonzero",
                "an array of no axes has no indices; ravel it first",
            ));
        }
        let found = self.argwhere()?;
        (0..self.ndim()).map(|axis| found.slice(&[Index::from(..), Index::from(axis)])).collect()
    }

    /// The indices of elements that are not zero, one row each, in row-major order.
    pub fn argwhere(&self) -> Result<Array> {
        let mask = match self.dtype() {
            DType::Bool => Cow::Borrowed(self),
            _ => Cow::Owned(self.astype(DType::Bool)?),
        };
        // Held from counting to writing: of a mask that changes in between fewer indices might be
        // written than there is room for.
        let held = self.device.held("nonzero", mask.storage())?;
        let mut count = self.device.allocate("nonzero", &[], DType::Int64, false)?;
        let (fold, axes) = (FoldId::CountNonzero, (0..self.ndim()).collect::<Dims>());
        let (input, output) = (mask.borrow(), count.target());
        let counts = Reduce { fold, input, axes: &axes, correction: 0.0, output };
        run_held(&held, &Request::Reduce(counts))?;
        let count = Array::from_fresh(count, self.device).item::<i64>()? as usize;
        let mut fresh =
            self.device.allocate("nonzero", &[count, self.ndim()], DType::Int64, false)?;
        let output = fresh.target();
        run_held(&held, &Request::Nonzero(Nonzero { input, output }))?;
        drop(held);
        Ok(Array::from_fresh(fresh, self.device))
    }
}

/// An array, copied if it shares memory with another.
fn apart<'a>(array: Cow<'a, Array>, from: &Array) -> Result<Cow<'a, Array>> {
    match array.shares_memory(from) {
        true => array.copy().map(Cow::Owned),
        false => Ok(array),
    }
}
