//! One array of indices for the first axis: what most gathers and scatters are, and all that small ones have
//! time for.
//!
//! Whatever needs more than a look at the index (other integers, several indices, nothing to pick) is
//! left to `index`, which calls this first and knows how to refuse.

use tilework_backend::{Gather, Indices, Request, Scatter, Target};
use tilework_error::Result;
use tilework_layout::Dims;
use tilework_ops::DType;

use super::Array;

impl Array {
    /// What int64 numbers, or the true elements of a mask, pick along the first axis; None if there is
    /// more to check first.
    pub(super) fn picked_along_first(
        &self,
        operation: &'static str,
        index: &Array,
    ) -> Result<Option<Array>> {
        let Some((length, rest)) = self.shape().split_first() else { return Ok(None) };
        let found;
        let picks = match index.dtype() {
            DType::Int64 => index,
            DType::Bool if index.shape() == [*length] => {
                found = index.nonzero()?;
                &found[0]
            }
            _ => return Ok(None),
        };
        if picks.device != self.device || picks.is_empty() || rest.contains(&0) {
            return Ok(None);
        }
        let shape: Dims = picks.shape().iter().chain(rest).copied().collect();
        let mut fresh = self.device.allocate(operation, &shape, self.dtype(), false)?;
        let indices = Indices { arrays: &[picks.borrow()], axes: &[0] };
        let gather = Gather { source: self.borrow(), indices, output: fresh.target() };
        self.device.run(operation, &Request::Gather(gather))?;
        Ok(Some(Array::from_fresh(fresh, self.device)))
    }
    /// Writes values, of this array's dtype, to what int64 numbers pick along the first axis; false, with
    /// nothing done, if there is more to check first or something is both read and written.
    pub(super) fn put_along_first(
        &self,
        operation: &'static str,
        picks: &Array,
        values: &Array,
    ) -> Result<bool> {
        let Some((_, rest)) = self.shape().split_first() else { return Ok(false) };
        let meets = |array: &Array| array.storage().may_alias(self.storage());
        if picks.dtype() != DType::Int64
            || picks.device != self.device
            || picks.is_empty()
            || rest.contains(&0)
            || meets(picks)
            || meets(values)
        {
            return Ok(false);
        }
        let shape: Dims = picks.shape().iter().chain(rest).copied().collect();
        let Ok(spread) = values.layout().broadcast_to(&shape) else { return Ok(false) };
        let scatter = Scatter {
            source: values.borrow().with_layout(&spread)?,
            indices: Indices { arrays: &[picks.borrow()], axes: &[0] },
            target: Target::shared(operation, self.borrow())?,
        };
        self.device.run(operation, &Request::Scatter(scatter))?;
        Ok(true)
    }
}
