//! The oracle: an expression for one pair, in float64, node by node.
//!
//! Everything that runs formulas is compared with this. It is the meaning of the rows and of the
//! tape's definitions (inner products ascend and fuse), and knows nothing of tiles or tapes.

use tilework_error::{Error, Result};
use tilework_ops::fold::{ArgMax, ArgMin, Max, Min, Sum};
use tilework_ops::{Fold, FoldId, Gives, Id, Scalar};
use tilework_tape::Contraction;

use crate::expr::{Expr, Kind, Map, Permutation};
use crate::names;

impl Expr {
    /// Its components, given the vectors of the arguments by position.
    ///
    /// ```
    /// use tilework_formula::Expr;
    /// let k = Expr::vi(0, 2)?.sqdist(&Expr::vj(1, 2)?)?;
    /// assert_eq!(k.evaluate(&[&[1.0, 2.0], &[4.0, 6.0]])?, [25.0]);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn evaluate(&self, arguments: &[&[f64]]) -> Result<Vec<f64>> {
        Ok(Expr::evaluate_all(std::slice::from_ref(self), arguments)?.remove(0))
    }

    /// The components of several expressions, sharing what they share.
    pub fn evaluate_all(roots: &[Expr], arguments: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        let mut values: Map<Vec<f64>> = Map::default();
        for node in Expr::order(roots) {
            let value = {
                let operands: Vec<&[f64]> =
                    node.operands().iter().map(|operand| &values[operand][..]).collect();
                evaluate(&node, &operands, arguments)?
            };
            values.insert(node, value);
        }
        Ok(roots.iter().map(|root| values[root].clone()).collect())
    }
}

fn evaluate(node: &Expr, x: &[&[f64]], arguments: &[&[f64]]) -> Result<Vec<f64>> {
    let dim = node.dim();
    let at = |operand: usize, k: usize| x[operand][if x[operand].len() == 1 { 0 } else { k }];
    Ok(match node.kind() {
        Kind::Variable(variable) => match arguments.get(variable.position) {
            Some(argument) if argument.len() == dim => argument.to_vec(),
            Some(argument) => {
                let message = format!("argument for {variable} has {} numbers", argument.len());
                return Err(Error::formula(message, None));
            }
            None => return Err(Error::formula(format!("no argument for {variable}"), None)),
        },
        Kind::Constant(bits) => vec![bits.value()],
        Kind::Zero(_) => vec![0.0; dim],
        Kind::Range(_) => (0..dim).map(|k| k as f64).collect(),
        Kind::Apply(id) => {
            let numbers =
                |k: usize| (0..x.len()).map(|operand| at(operand, k)).collect::<Vec<f64>>();
            (0..dim).map(|k| number(*id, &numbers(k))).collect::<Result<_>>()?
        }
        Kind::Select => {
            (0..dim).map(|k| if at(0, k) != 0.0 { at(1, k) } else { at(2, k) }).collect()
        }
        Kind::Fold(fold) => vec![along(*fold, x[0])],
        Kind::Repeat(_) => vec![x[0][0]; dim],
        Kind::Extract { start, len } => x[0][*start..start + len].to_vec(),
        Kind::Place { start, .. } => {
            let mut placed = vec![0.0; dim];
            placed[*start..start + x[0].len()].copy_from_slice(x[0]);
            placed
        }
        Kind::Concat => x.concat(),
        Kind::Permute(permutation) => sources(permutation).into_iter().map(|k| x[0][k]).collect(),
        Kind::Dot => {
            let len = x[0].len().max(x[1].len());
            vec![(0..len).fold(0.0, |sum: f64, k| at(0, k).mul_add(at(1, k), sum))]
        }
        Kind::Contract(contraction) => contract(contraction, x[0], x[1]),
    })
}

/// An operation of the table on numbers.
pub(crate) fn number(id: Id, operands: &[f64]) -> Result<f64> {
    let scalars: Vec<Scalar> = operands.iter().map(|x| Scalar::new(*x)).collect();
    match id.evaluate(&scalars) {
        Some(result) => Ok(result.get::<f64>()),
        None => {
            Err(Error::formula(format!("{}: has no meaning for real numbers", names::of(id)), None))
        }
    }
}

/// A reduction along a vector, by the definition of its row.
fn along(fold: FoldId, values: &[f64]) -> f64 {
    fn run<F: Fold>(values: &[f64]) -> <F::Gives as Gives>::Of<f64> {
        let step = |state, (k, x): (usize, &f64)| F::step(state, *x, k as i64);
        let state = values.iter().enumerate().fold(F::init::<f64>(), step);
        F::finish(state, values.len(), 0.0)
    }
    match fold {
        FoldId::Max => run::<Max>(values),
        FoldId::Min => run::<Min>(values),
        FoldId::ArgMax => run::<ArgMax>(values) as f64,
        FoldId::ArgMin => run::<ArgMin>(values) as f64,
        _ => run::<Sum>(values),
    }
}

/// For each place of the result of an exchange of axes, the place in its operand.
pub(crate) fn sources(permutation: &Permutation) -> Vec<usize> {
    let axes = permutation.shape.len();
    let mut strides = vec![1; axes];
    for axis in (1..axes).rev() {
        strides[axis - 1] = strides[axis] * permutation.shape[axis];
    }
    // The axes of the result, as axes of the operand.
    let mut from = vec![0; axes];
    for (axis, to) in permutation.to.iter().enumerate() {
        from[*to] = axis;
    }
    positions(&permutation.shape, &strides, &from)
}

/// Positions of all indices over `axes`, the last fastest, the other indices being zero.
fn positions(shape: &[usize], strides: &[usize], axes: &[usize]) -> Vec<usize> {
    axes.iter().fold(vec![0], |bases, &axis| {
        let indices = |base: usize| (0..shape[axis]).map(move |i| base + i * strides[axis]);
        bases.into_iter().flat_map(indices).collect()
    })
}

fn contract(c: &Contraction, left: &[f64], right: &[f64]) -> Vec<f64> {
    let tensor = |shape: &[u32], over: Vec<usize>| {
        let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let free: Vec<usize> = (0..shape.len()).filter(|axis| !over.contains(axis)).collect();
        (positions(&shape, &strides, &free), positions(&shape, &strides, &over))
    };
    let (left_free, left_over) = tensor(&c.left, c.over.iter().map(|o| o.0 as usize).collect());
    let (right_free, right_over) = tensor(&c.right, c.over.iter().map(|o| o.1 as usize).collect());
    let mut result = Vec::with_capacity(left_free.len() * right_free.len());
    for l in &left_free {
        for r in &right_free {
            let pairs = left_over.iter().zip(&right_over);
            result.push(pairs.fold(0.0, |sum: f64, (a, b)| left[l + a].mul_add(right[r + b], sum)));
        }
    }
    result
}
