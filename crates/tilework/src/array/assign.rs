//! Writing into arrays: fill and assign, seen through every view of the memory.

use tilework_backend::Target;
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, broadcast_shapes};
use tilework_tape::Tape;

use super::Array;
use super::map::{Arg, common_device, run_map};

impl Array {
    /// Sets every element.
    pub fn fill<'a>(&self, value: impl Into<Arg<'a>>) -> Result<()> {
        self.write("fill", value.into())
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
        self.write("assign", source.into())
    }

    /// Copies `source` into the part that `indices` select: NumPy's `x[...] = source`.
    pub fn set<'a>(&self, indices: &[Index], source: impl Into<Arg<'a>>) -> Result<()> {
        self.slice(indices)?.write("set", source.into())
    }

    fn write(&self, operation: &str, source: Arg<'_>) -> Result<()> {
        common_device(operation, &[Arg::Array(self), source])?;
        let target = Target::shared(operation, self.borrow())?;
        let (source, held) = match source {
            Arg::Array(array) => {
                let all = broadcast_shapes(operation, &[self.shape(), array.shape()]);
                if !all.is_ok_and(|all| all[..] == *self.shape()) {
                    let (from, to) = (tuple(array.shape()), tuple(self.shape()));
                    return Err(Error::shape(
                        operation,
                        format!("shape {from} does not broadcast into {to}"),
                    ));
                }
                if array.overlaps(self)? { (source, Some(array.copy()?)) } else { (source, None) }
            }
            Arg::Number(_) => (source, None),
        };
        let source = held.as_ref().map_or(source, Arg::Array);
        let tape = match source {
            Arg::Array(array) => Tape::cast(array.dtype(), self.dtype()),
            Arg::Number(_) => Tape::copy(self.dtype()),
        };
        run_map(operation, self.device, &tape, &[source], self.dtype(), target)
    }
}
