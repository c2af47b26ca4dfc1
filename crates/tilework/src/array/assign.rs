//! Writing into arrays: fill and assign, seen through every view of the memory.

use tilework_backend::Moment;
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, Strides, broadcast_shapes};
use tilework_tape::Tape;

use super::Array;
use super::map::run_map_into;
use super::operands::{Arg, common_device};
use crate::device::Device;

impl Array {
    /// Sets every element.
    pub fn fill<'a>(&self, value: impl Into<Arg<'a>>) -> Result<()> {
        self.store("fill", value.into())
    }

    /// Copies `source`, broadcast and cast, into this array.
    ///
    /// ```
    /// use tilework::{Array, DType};
    /// let x = Array::zeros(&[2, 2], DType::Float32)?;
    /// x.assign(&Array::from_slice(&[1i32, 2])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn assign<'a>(&self, source: impl Into<Arg<'a>>) -> Result<()> {
        self.store("assign", source.into())
    }

    /// Copies an array of the same shape and dtype from another device into this one, which nobody else has, for the
    /// operation of this name, as it is at a moment since which nobody wrote it: to the host as its pieces come, where both
    /// lie in one piece.
    ///
    /// That nobody else has it is needed: the source's guard is held over all pieces and the target's taken for each, not
    /// both at once in the order of addresses. Two copies could wait for each other, and others could see half of one.
    pub(crate) fn assign_from(
        &self,
        operation: &'static str,
        source: &Array,
        moment: &Moment,
    ) -> Result<()> {
        let alike = (self.shape(), self.dtype()) == (source.shape(), source.dtype());
        let straight = alike && self.is_contiguous() && source.is_contiguous();
        let [from_host, to_host] = [source, self].map(|array| array.storage().is_on_host());
        if source.device != self.device && !from_host && !to_host {
            // What it has at a moment a device gives to the host alone: another one would get it after all that it does.
            let here = source.to_device_at(Device::cpu(), moment)?;
            return self.assign(&here.to_device(self.device)?);
        }
        if source.device == self.device || !straight || !to_host {
            return self.assign(&source.to_device_at(self.device, moment)?);
        }
        if self.is_empty() {
            return Ok(());
        }
        let size = self.dtype().size();
        let [from, to] = [source, self].map(|array| array.offset() * size);
        // Over all pieces, so that none of them sees a write that others do not.
        let held = source.device.held(operation, source.storage())?;
        held.give(from..from + self.len() * size, moment, &mut |at, piece| {
            self.device.upload(operation, piece, self.storage(), to + at)
        })
    }

    /// Copies `source` into the part that `indices` select: NumPy's `x[...] = source`.
    pub fn set<'a>(&self, indices: &[Index], source: impl Into<Arg<'a>>) -> Result<()> {
        let source = source.into();
        if let Arg::Number(number) = source
            && self.storage().is_on_host()
            && let Some(place) = place(indices, self.ndim())
        {
            // One element, and no request, which would take longer than all the rest.
            let position = self.layout().element(&place)?;
            let element = number.to_scalar("set", self.dtype())?;
            let at = position * self.dtype().size();
            return self.device.upload("set", element.bytes(), self.storage(), at);
        }
        self.slice(indices)?.store("set", source)
    }

    fn store(&self, operation: &'static str, source: Arg<'_>) -> Result<()> {
        common_device(operation, &[Arg::Array(self), source])?;
        let trimmed = match source {
            Arg::Array(array) => self.trimmed(operation, array)?,
            Arg::Number(_) => None,
        };
        let source = trimmed.as_ref().map_or(source, Arg::Array);
        let from = match source {
            Arg::Array(array) => array.dtype(),
            Arg::Number(_) => self.dtype(),
        };
        let tape = Tape::casting(from, self.dtype());
        run_map_into(operation, tape, &[source], self.dtype(), self)
    }

    /// `source` without leading axes of length 1 that this array does not have, which NumPy permits; None
    /// if there are none. An error if it does not broadcast into this array.
    fn trimmed(&self, operation: &str, source: &Array) -> Result<Option<Array>> {
        let extra = source.ndim().saturating_sub(self.ndim());
        let (leading, shape) = source.shape().split_at(extra);
        let all = broadcast_shapes(operation, &[self.shape(), shape]);
        if leading.iter().any(|&n| n != 1) || !all.is_ok_and(|all| all[..] == *self.shape()) {
            let (from, to) = (tuple(source.shape()), tuple(self.shape()));
            let message = format!("shape {from} does not broadcast into {to}");
            return Err(Error::shape(operation, message));
        }
        match extra {
            0 => Ok(None),
            _ => source.slice(&vec![Index::At(0); extra]).map(Some),
        }
    }
}

/// The place of the one element that indices name: integers alone, one for each axis.
fn place(indices: &[Index], ndim: usize) -> Option<Strides> {
    if indices.len() != ndim {
        return None;
    }
    let integer = |index: &Index| if let Index::At(at) = *index { Some(at) } else { None };
    indices.iter().map(integer).collect()
}
