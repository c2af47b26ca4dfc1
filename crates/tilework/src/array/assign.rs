//! Writing into arrays: fill and assign, seen through every view of the memory.

use tilework_backend::Target;
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, broadcast_shapes};
use tilework_tape::Tape;

use super::Array;
use super::map::run_map;
use super::operands::{Arg, common_device};

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

    /// Copies `source` into the part that `indices` select: NumPy's `x[...] = source`.
    pub fn set<'a>(&self, indices: &[Index], source: impl Into<Arg<'a>>) -> Result<()> {
        self.slice(indices)?.store("set", source.into())
    }

    fn store(&self, operation: &'static str, source: Arg<'_>) -> Result<()> {
        common_device(operation, &[Arg::Array(self), source])?;
        let target = Target::shared(operation, self.borrow())?;
        let held = match source {
            Arg::Array(array) => self.readable(operation, array)?,
            Arg::Number(_) => None,
        };
        let source = held.as_ref().map_or(source, Arg::Array);
        let tape = match source {
            Arg::Array(array) => Tape::cast(array.dtype(), self.dtype()),
            Arg::Number(_) => Tape::copy(self.dtype()),
        };
        run_map(operation, self.device, &tape, &[source], self.dtype(), target)
    }

    /// What to read in the place of `source`, None if it serves as it is: a copy if it overlaps this
    /// array, and, as NumPy permits, no leading axes of length 1 that this array does not have.
    fn readable(&self, operation: &str, source: &Array) -> Result<Option<Array>> {
        let extra = source.ndim().saturating_sub(self.ndim());
        let (leading, shape) = source.shape().split_at(extra);
        let all = broadcast_shapes(operation, &[self.shape(), shape]);
        if leading.iter().any(|&n| n != 1) || !all.is_ok_and(|all| all[..] == *self.shape()) {
            let (from, to) = (tuple(source.shape()), tuple(self.shape()));
            let message = format!("shape {from} does not broadcast into {to}");
            return Err(Error::shape(operation, message));
        }
        let trimmed = match extra {
            0 => None,
            _ => Some(source.slice(&vec![Index::At(0); extra])?),
        };
        let source = trimmed.as_ref().unwrap_or(source);
        if source.overlaps(self)? { source.copy().map(Some) } else { Ok(trimmed) }
    }
}
