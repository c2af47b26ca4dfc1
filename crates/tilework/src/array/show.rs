//! Arrays as text, the way NumPy prints them.

use std::fmt;

use super::Array;

/// How arrays are printed.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array(shape={:?}, dtype={})", self.shape(), self.dtype())
    }
}
