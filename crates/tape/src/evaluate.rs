//! What a tape means: one evaluation, number by number, on scalars.

use tilework_error::{Error, Result};
use tilework_ops::{DType, Id, Scalar};

use crate::{Action, Contraction, Slot, Tape};

impl Tape {
    /// The outputs for these inputs, each a vector of its slot's length and dtype.
    pub fn evaluate(&self, inputs: &[&[Scalar]]) -> Result<Vec<Vec<Scalar>>> {
        let fits = |(given, input): (&&[Scalar], &crate::Input)| {
            given.len() == input.slot.len as usize
                && given.iter().all(|x| x.dtype() == input.slot.dtype)
        };
        if inputs.len() != self.inputs().len() || !inputs.iter().zip(self.inputs()).all(fits) {
            return Err(Error::shape("tape", "inputs do not have the declared dtypes and lengths"));
        }
        let mut slots: Vec<Vec<Scalar>> = inputs.iter().map(|input| input.to_vec()).collect();
        for step in self.steps() {
            let operands: Vec<&[Scalar]> =
                step.operands.iter().map(|&id| &slots[id as usize][..]).collect();
            let result = act(&step.action, &operands, step.slot)?;
            slots.push(result);
        }
        Ok(self.outputs().iter().map(|&id| slots[id as usize].clone()).collect())
    }
}

fn act(action: &Action, operands: &[&[Scalar]], slot: Slot) -> Result<Vec<Scalar>> {
    let len = slot.len as usize;
    let at = |operand: usize, k: usize| {
        operands[operand][if operands[operand].len() == 1 { 0 } else { k }]
    };
    Ok(match action {
        Action::Apply(id) => {
            let numbers =
                |k: usize| (0..operands.len()).map(|operand| at(operand, k)).collect::<Vec<_>>();
            (0..len).map(|k| apply(*id, &numbers(k))).collect::<Result<_>>()?
        }
        Action::Cast => (0..len).map(|k| at(0, k).cast(slot.dtype)).collect(),
        Action::Select => {
            (0..len).map(|k| if at(0, k).is_true() { at(1, k) } else { at(2, k) }).collect()
        }
        Action::Constant(value) => vec![*value; len],
        Action::Extract(start) => operands[0][*start as usize..*start as usize + len].to_vec(),
        Action::Concat => operands.concat(),
        Action::Place(start) => {
            let mut placed = vec![Scalar::zero(slot.dtype); len];
            placed[*start as usize..*start as usize + operands[0].len()]
                .copy_from_slice(operands[0]);
            placed
        }
        Action::Fold(id) => vec![id.evaluate(operands[0], operand_dtype(operands, slot), 0.0)],
        Action::Dot => {
            let pairs = operands[0].iter().zip(operands[1]);
            vec![sum_of_products(slot, pairs.map(|(&a, &b)| (a, b)))?]
        }
        Action::Contract(contraction) => contract(contraction, operands, slot)?,
    })
}

fn apply(id: Id, operands: &[Scalar]) -> Result<Scalar> {
    id.evaluate(operands)
        .ok_or_else(|| Error::dtype(id.row().name, format!("no meaning for {operands:?}")))
}

/// In ascending order, each product fused into the sum: the definition of every inner product.
fn sum_of_products(slot: Slot, pairs: impl Iterator<Item = (Scalar, Scalar)>) -> Result<Scalar> {
    let mut sum = Scalar::zero(slot.dtype);
    for (a, b) in pairs {
        sum = apply(Id::Fma, &[a, b, sum])?;
    }
    Ok(sum)
}

fn contract(contraction: &Contraction, operands: &[&[Scalar]], slot: Slot) -> Result<Vec<Scalar>> {
    let Contraction { left, right, over } = contraction;
    let free = |shape: &[u32], summed: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..shape.len()).filter(|&axis| !summed(axis)).collect()
    };
    let left_free = free(left, &|axis| over.iter().any(|&(l, _)| l as usize == axis));
    let right_free = free(right, &|axis| over.iter().any(|&(_, r)| r as usize == axis));
    let left_over: Vec<usize> = over.iter().map(|&(l, _)| l as usize).collect();
    let right_over: Vec<usize> = over.iter().map(|&(_, r)| r as usize).collect();
    let summed = positions(left, &left_over)
        .into_iter()
        .zip(positions(right, &right_over))
        .collect::<Vec<_>>();
    let mut result = Vec::with_capacity(slot.len as usize);
    for &l in &positions(left, &left_free) {
        for &r in &positions(right, &right_free) {
            let pairs = summed.iter().map(|&(a, b)| (operands[0][l + a], operands[1][r + b]));
            result.push(sum_of_products(slot, pairs)?);
        }
    }
    Ok(result)
}

/// Positions of all indices over `axes` of a row-major tensor, the other indices being zero.
fn positions(shape: &[u32], axes: &[usize]) -> Vec<usize> {
    let stride = |axis: usize| shape[axis + 1..].iter().map(|&n| n as usize).product::<usize>();
    axes.iter().fold(vec![0], |bases, &axis| {
        let indices = |base: usize| (0..shape[axis] as usize).map(move |i| base + i * stride(axis));
        bases.into_iter().flat_map(indices).collect()
    })
}

fn operand_dtype(operands: &[&[Scalar]], slot: Slot) -> DType {
    operands[0].first().map_or(slot.dtype, Scalar::dtype)
}
