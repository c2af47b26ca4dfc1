//! Arrays as variables of formulas: their shapes read as batch axes, rows and components.
//!
//! One place checks what KeOps leaves unchecked: numbers of axes, of rows, of components, batches,
//! dtypes. Called by `lazy` and `genred`, before anything runs.

use tilework_error::{Error, Result, tuple};
use tilework_formula::{Category, Variable};
use tilework_layout::{Dims, broadcast_shapes};
use tilework_ops::{DType, Kind};

use crate::array::Array;
use crate::device::Device;

/// What the variables of a formula have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Extent {
    /// Rows of i, where a variable has any.
    pub(super) m: Option<usize>,
    /// Rows of j.
    pub(super) n: Option<usize>,
    /// All batch axes together.
    pub(super) batch: Dims,
    /// The dtype of all arrays, where there is one.
    pub(super) dtype: Option<DType>,
    /// Where they are.
    pub(super) device: Option<Device>,
}

impl Extent {
    /// How many rows an index has; what no variable has is one row.
    pub(super) fn rows(&self, category: Category) -> usize {
        match category {
            Category::I => self.m.unwrap_or(1),
            Category::J => self.n.unwrap_or(1),
            Category::Parameter => 1,
        }
    }

    /// The same with another number of rows.
    pub(super) fn with_rows(&self, category: Category, rows: usize) -> Extent {
        let mut other = self.clone();
        match category {
            Category::I => other.m = Some(rows),
            Category::J => other.n = Some(rows),
            Category::Parameter => {}
        }
        other
    }

    /// An array in the dtype and on the device of all, which those of weak variables may not be.
    pub(super) fn suited(&self, array: Array) -> Result<Array> {
        let array = match self.dtype {
            Some(dtype) if dtype != array.dtype() => array.astype(dtype)?,
            _ => array,
        };
        match self.device {
            Some(device) if device != array.device() => array.to_device(device),
            _ => Ok(array),
        }
    }

    /// The extent of one variable, whose name is for messages.
    pub(super) fn of(name: &str, array: &Array, variable: Variable) -> Result<Extent> {
        let (shape, category) = (array.shape(), variable.category);
        let axes = if category == Category::Parameter { 1 } else { 2 };
        if array.dtype().kind() == Kind::Complex {
            let message = format!("formulas are real; {} is not supported yet", array.dtype());
            return Err(Error::unsupported(name, message));
        }
        if array.dtype().kind() != Kind::Float {
            let message =
                format!("formulas compute in real floats, not in {}; astype casts", array.dtype());
            return Err(Error::dtype(name, message));
        }
        if shape.len() < axes {
            let wanted = match category {
                Category::Parameter => "(..., dimension)",
                _ => "(..., rows, dimension)",
            };
            let message = format!("shape {} is not {wanted}", tuple(shape));
            return Err(Error::shape(name, message));
        }
        let (batch, rest) = shape.split_at(shape.len() - axes);
        let dim = rest[axes - 1];
        if dim != variable.dim {
            let message = format!(
                "an array of shape {} has vectors of {dim} components, not {}",
                tuple(shape),
                variable.dim
            );
            return Err(Error::shape(name, message));
        }
        Ok(Extent {
            m: (category == Category::I).then(|| rest[0]),
            n: (category == Category::J).then(|| rest[0]),
            batch: Dims::from_slice(batch),
            dtype: Some(array.dtype()),
            device: Some(array.device()),
        })
    }

    /// Both together; an error that names the operation where they do not fit.
    pub(super) fn union(&self, name: &str, other: &Extent) -> Result<Extent> {
        let rows = |index: &str, a: Option<usize>, b: Option<usize>| match (a, b) {
            (Some(a), Some(b)) if a != b => {
                let message = format!("variables have {a} and {b} rows of {index}");
                Err(Error::shape(name, message))
            }
            _ => Ok(a.or(b)),
        };
        if let (Some(a), Some(b)) = (self.dtype, other.dtype)
            && a != b
        {
            let message = format!("variables are {a} and {b}; cast one with astype");
            return Err(Error::dtype(name, message));
        }
        if let (Some(a), Some(b)) = (self.device, other.device)
            && a != b
        {
            let message = format!("operands are on {a} and {b}; move one with to_device(\"{a}\")");
            return Err(Error::device(name, message));
        }
        Ok(Extent {
            m: rows("i", self.m, other.m)?,
            n: rows("j", self.n, other.n)?,
            batch: broadcast_shapes(name, &[&self.batch, &other.batch])?,
            dtype: self.dtype.or(other.dtype),
            device: self.device.or(other.device),
        })
    }
}
