//! Tensor algebra on the vector axis: row-major flattenings, contractions, exchanges of axes.
//!
//! Everything is a contraction of two tensors, with an exchange of axes behind it where the order
//! asks for one. Called by users and the function table; `derive.rs` uses [`contract`].

use smallvec::{SmallVec, smallvec};
use tilework_error::{Error, Result};
use tilework_tape::Contraction;

use crate::expr::{Expr, Kind, Operands, Permutation};
use crate::infer;

/// A contraction as a node, from shapes and pairs of axes.
pub(crate) fn contract(
    left: (&Expr, &[usize]),
    right: (&Expr, &[usize]),
    over: &[(usize, usize)],
) -> Result<Expr> {
    if left.1.len().max(right.1.len()) > infer::MAX_AXES {
        let message = format!("TensorDot: more than {} axes", infer::MAX_AXES);
        return Err(Error::formula(message, None));
    }
    // Sizes and axes that do not fit their small types fit no operand either; they saturate here
    // and are refused by the dimension check.
    let sizes = |shape: &[usize]| shape.iter().map(|n| u32::try_from(*n).unwrap_or(0)).collect();
    let axis = |axis: usize| u8::try_from(axis).unwrap_or(u8::MAX);
    let contraction = Contraction {
        left: sizes(left.1),
        right: sizes(right.1),
        over: over.iter().map(|&(l, r)| (axis(l), axis(r))).collect(),
    };
    let operands: Operands = smallvec![left.0.clone(), right.0.clone()];
    Expr::build(Kind::Contract(Box::new(contraction)), operands)
}

/// The axes of a tensor with this many axes that are not in `taken`, in order.
pub(crate) fn free_axes(count: usize, taken: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..count).filter(|axis| !taken(*axis)).collect()
}

impl Expr {
    /// The tensor of this shape with axis k moved to `to[k]`.
    pub fn permute(&self, shape: &[usize], to: &[usize]) -> Result<Expr> {
        let permutation =
            Permutation { shape: SmallVec::from_slice(shape), to: SmallVec::from_slice(to) };
        Expr::build(Kind::Permute(Box::new(permutation)), smallvec![self.clone()] as Operands)
    }

    /// Matrix times vector, with itself as the matrix.
    pub fn matvecmult(&self, vector: &Expr) -> Result<Expr> {
        let columns = vector.dim();
        if columns == 0 || !self.dim().is_multiple_of(columns) {
            return infer::mismatch(
                "MatVecMult",
                &[self.clone(), vector.clone()],
                "the first must be a multiple of the second",
            );
        }
        contract((self, &[self.dim() / columns, columns]), (vector, &[columns]), &[(1, 0)])
    }

    /// Vector times matrix, with itself as the vector.
    pub fn vecmatmult(&self, matrix: &Expr) -> Result<Expr> {
        let rows = self.dim();
        if rows == 0 || !matrix.dim().is_multiple_of(rows) {
            return infer::mismatch(
                "VecMatMult",
                &[self.clone(), matrix.clone()],
                "the second must be a multiple of the first",
            );
        }
        contract((self, &[rows]), (matrix, &[rows, matrix.dim() / rows]), &[(0, 0)])
    }

    /// The matrix of all products: entry (k, l) at k B + l.
    pub fn tensorprod(&self, other: &Expr) -> Result<Expr> {
        contract((self, &[self.dim()]), (other, &[other.dim()]), &[])
    }

    /// The matrix of all differences: entry (k, l) at k B + l.
    pub fn difference_matrix(&self, other: &Expr) -> Result<Expr> {
        let rows = self.tensorprod(&Expr::uniform(1.0, other.dim())?)?;
        rows.subtract(&Expr::uniform(1.0, self.dim())?.tensorprod(other)?)
    }

    /// The Kronecker product of two tensors with the same number of axes.
    pub fn kron(&self, other: &Expr, shape: &[usize], other_shape: &[usize]) -> Result<Expr> {
        let axes = shape.len();
        if axes != other_shape.len() || 2 * axes > infer::MAX_AXES {
            let message = format!(
                "Kron: shapes {shape:?} and {other_shape:?} must have the same number of axes, \
                 at most {}",
                infer::MAX_AXES / 2
            );
            return Err(Error::formula(message, None));
        }
        let outer = contract((self, shape), (other, other_shape), &[])?;
        let both: Vec<usize> = shape.iter().chain(other_shape).copied().collect();
        let to: Vec<usize> = (0..axes).map(|k| 2 * k).chain((0..axes).map(|k| 2 * k + 1)).collect();
        outer.permute(&both, &to)
    }

    /// As NumPy's `tensordot`: sums over pairs of axes, free axes of the first, then of the second.
    /// `to[k]` is where axis k of that result goes; empty for nowhere else.
    pub fn tensordot(
        &self,
        other: &Expr,
        shapes: (&[usize], &[usize]),
        axes: (&[usize], &[usize]),
        to: &[usize],
    ) -> Result<Expr> {
        if axes.0.len() != axes.1.len() {
            let message = format!(
                "TensorDot: {} axes {:?} are paired with {} axes {:?}",
                axes.0.len(),
                axes.0,
                axes.1.len(),
                axes.1
            );
            return Err(Error::formula(message, None));
        }
        let over: Vec<(usize, usize)> =
            axes.0.iter().copied().zip(axes.1.iter().copied()).collect();
        let product = contract((self, shapes.0), (other, shapes.1), &over)?;
        if to.is_empty() {
            return Ok(product);
        }
        let left = free_axes(shapes.0.len(), |axis| axes.0.contains(&axis));
        let right = free_axes(shapes.1.len(), |axis| axes.1.contains(&axis));
        let shape: Vec<usize> = left
            .iter()
            .map(|axis| shapes.0[*axis])
            .chain(right.iter().map(|axis| shapes.1[*axis]))
            .collect();
        product.permute(&shape, to)
    }
}
