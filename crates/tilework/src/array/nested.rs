//! Lists of lists of numbers, as `Array::from_nested` takes them.

use tilework_error::{Error, Result, tuple};
use tilework_ops::Element;

/// Data that nests: an element, or a list of such data of one shape.
pub trait Nested {
    /// The element at the bottom.
    type Element: Element;
    /// The shape that the first of everything has.
    fn shape(&self) -> Vec<usize>;
    /// All elements in row-major order; an error where the shape is another.
    fn flatten(&self, shape: &[usize], into: &mut Vec<Self::Element>) -> Result<()>;
}

macro_rules! leaves {
    ($($type:ty),*) => {$(
        impl Nested for $type {
            type Element = $type;
            fn shape(&self) -> Vec<usize> {
                Vec::new()
            }
            fn flatten(&self, _: &[usize], into: &mut Vec<$type>) -> Result<()> {
                into.push(*self);
                Ok(())
            }
        }
    )*};
}

leaves!(
    bool,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    f32,
    f64,
    tilework_ops::f16,
    tilework_ops::bf16,
    tilework_ops::Complex<f32>,
    tilework_ops::Complex<f64>
);

impl<N: Nested> Nested for [N] {
    type Element = N::Element;
    fn shape(&self) -> Vec<usize> {
        let mut shape = vec![self.len()];
        shape.extend(self.first().map(N::shape).unwrap_or_default());
        shape
    }
    fn flatten(&self, shape: &[usize], into: &mut Vec<N::Element>) -> Result<()> {
        let below = shape.get(1..).unwrap_or_default();
        if let Some(other) = self.iter().map(N::shape).find(|other| other != below) {
            let message = format!("shapes {} and {} in one list", tuple(below), tuple(&other));
            return Err(Error::shape("from_nested", message));
        }
        self.iter().try_for_each(|item| item.flatten(below, into))
    }
}

impl<N: Nested> Nested for Vec<N> {
    type Element = N::Element;
    fn shape(&self) -> Vec<usize> {
        self[..].shape()
    }
    fn flatten(&self, shape: &[usize], into: &mut Vec<N::Element>) -> Result<()> {
        self[..].flatten(shape, into)
    }
}

impl<N: Nested, const K: usize> Nested for [N; K] {
    type Element = N::Element;
    fn shape(&self) -> Vec<usize> {
        self[..].shape()
    }
    fn flatten(&self, shape: &[usize], into: &mut Vec<N::Element>) -> Result<()> {
        self[..].flatten(shape, into)
    }
}
