//! The two nests of a reduction: one over what is kept, one over what is reduced.
//!
//! Axes and output may come from outside. Called by the reductions of every backend: for each
//! element of `kept`, the elements to combine lie at its input position plus each position of
//! `reduced`.

use tilework_error::{Error, Result, tuple};

use crate::{Dims, Layout, LoopNest};

/// Loops over the kept and over the reduced axes of an input.
///
/// Positions of the kept nest point at the lowest element of each group, and positions of the
/// reduced nests are relative to that and never negative, so that plain addition combines them.
///
/// ```
/// # use tilework_layout::{Layout, ReduceNest};
/// let input = Layout::contiguous(&[2, 3])?;
/// let nest = ReduceNest::new(&input, &[1], &Layout::contiguous(&[2])?)?;
/// let mut rows = vec![Vec::new(); 2];
/// for (start, out) in [(0, 0), (3, 1)] {
///     nest.reduced().for_each_run(0..1, |at| rows[out].extend((0..3).map(|i| start + at[0] + i)));
/// }
/// assert_eq!(rows, [[0, 1, 2], [3, 4, 5]]);
/// assert_eq!((nest.kept().lens(), nest.kept().inner_strides()), (&[2][..], &[3, 1][..]));
/// # Ok::<(), tilework_error::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceNest {
    kept: LoopNest,
    reduced: LoopNest,
    reduced_in_order: LoopNest,
}

impl ReduceNest {
    /// Parts `input` into the axes to reduce and the others, which are the axes of `output` in
    /// their order.
    pub fn new(input: &Layout, axes: &[usize], output: &Layout) -> Result<ReduceNest> {
        let op = "reduce";
        let (gone, stay): (Dims, Dims) = (0..input.ndim()).partition(|axis| axes.contains(axis));
        if gone.len() != axes.len() {
            let (axes, shape) = (tuple(axes), tuple(input.shape()));
            let message = format!("{axes} are not different axes of shape {shape}");
            return Err(Error::axis(op, message));
        }
        let expected: Dims = stay.iter().map(|&axis| input.shape()[axis]).collect();
        if output.shape() != expected.as_slice() {
            let message = format!(
                "shape {} without axes {} is {}, not the output's {}",
                tuple(input.shape()),
                tuple(axes),
                tuple(&expected),
                tuple(output.shape())
            );
            return Err(Error::shape(op, message));
        }
        // Where a reduced axis runs backwards, its lowest element is its last.
        let back: Dims = gone.iter().copied().filter(|&axis| input.strides()[axis] < 0).collect();
        let forward = input.reversed(&back);
        let first = if input.is_empty() { 0 } else { input.offset() - forward.offset() };
        let kept = forward.subspace(&stay, forward.offset());
        let reduced = forward.subspace(&gone, 0);
        let reduced_in_order = input.subspace(&gone, first);
        Ok(ReduceNest {
            kept: LoopNest::new(&[&kept, output]),
            reduced: LoopNest::new(&[&reduced]),
            reduced_in_order: LoopNest::in_order(&[&reduced_in_order]),
        })
    }

    /// The kept axes, with the input as operand 0 and the output as operand 1.
    pub fn kept(&self) -> &LoopNest {
        &self.kept
    }

    /// The reduced axes relative to a position of the kept nest, in the order that suits memory.
    pub fn reduced(&self) -> &LoopNest {
        &self.reduced
    }

    /// The same in row-major order of the reduced axes, for arg-reductions and scans: the number
    /// of an element in this walk is its index along the reduced axes taken as one.
    pub fn reduced_in_order(&self) -> &LoopNest {
        &self.reduced_in_order
    }

    /// Number of elements that are combined into each element of the output.
    pub fn reduced_len(&self) -> usize {
        self.reduced.len()
    }
}
