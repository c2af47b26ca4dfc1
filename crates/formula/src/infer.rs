//! Dimensions: what a node of a kind on given operands has, and what it refuses.
//!
//! Called by [`Expr::build`] before anything else, so that every node that exists has operands
//! that fit. Messages show the operands, shortened, with their dimensions. Variables may have no
//! components, and then what is made of them number by number has none either.

use tilework_error::{Error, Result};
use tilework_ops::FoldId;

use crate::expr::{Expr, Kind};
use crate::names;

/// The largest dimension of a formula: a vector of this length fits caches no more, and the
/// products of dimensions cannot overflow.
pub const MAX_DIM: usize = 1 << 20;

/// At most so many axes in tensor operations.
pub const MAX_AXES: usize = 16;

/// The dimension of a node of this kind on these operands.
pub(crate) fn dim_of(kind: &Kind, operands: &[Expr]) -> Result<usize> {
    let name = names::of_kind(kind);
    let fail = |message: String| Err(Error::formula(format!("{name}: {message}"), None));
    if let Some(arity) = arity(kind)
        && operands.len() != arity
    {
        return fail(format!("takes {arity} operands, not {}", operands.len()));
    }
    let dim = match kind {
        Kind::Variable(variable) => variable.dim,
        Kind::Constant(_) => 1,
        Kind::Zero(len) | Kind::Range(len) => *len,
        Kind::Apply(id) if !names::is_real(*id) => {
            return fail("has no meaning for real numbers".into());
        }
        Kind::Apply(_) | Kind::Select => broadcast(name, operands)?,
        Kind::Fold(FoldId::Max | FoldId::Min | FoldId::ArgMax | FoldId::ArgMin)
            if operands[0].dim() == 0 =>
        {
            return fail(format!("there is none: {}", described(&operands[0])));
        }
        Kind::Fold(FoldId::Sum | FoldId::Max | FoldId::Min | FoldId::ArgMax | FoldId::ArgMin) => 1,
        Kind::Fold(_) => return fail("is no reduction of formulas".into()),
        Kind::Repeat(len) if operands[0].dim() == 1 => *len,
        Kind::Repeat(_) => {
            return fail(format!("repeats a number, but {}", described(&operands[0])));
        }
        Kind::Extract { start, len } => match start.checked_add(*len) {
            Some(end) if end <= operands[0].dim() => *len,
            _ => {
                return fail(format!(
                    "components {start} to {} are not all there: {}",
                    start.saturating_add(*len),
                    described(&operands[0])
                ));
            }
        },
        Kind::Place { start, len } => match start.checked_add(operands[0].dim()) {
            Some(end) if end <= *len => *len,
            _ => {
                return fail(format!(
                    "at place {start} of {len} there is no room: {}",
                    described(&operands[0])
                ));
            }
        },
        Kind::Concat if operands.is_empty() => return fail("takes at least one operand".into()),
        Kind::Concat => operands.iter().map(Expr::dim).fold(0, usize::saturating_add),
        Kind::Permute(permutation) => {
            let (shape, to) = (&permutation.shape, &permutation.to);
            let mut seen = to.clone();
            seen.sort_unstable();
            if shape.len() != to.len() || seen.iter().enumerate().any(|(k, axis)| k != *axis) {
                return fail(format!("{to:?} is no permutation of the axes of {shape:?}"));
            }
            size_is(name, shape.iter().copied(), &operands[0])?
        }
        Kind::Dot => match (operands[0].dim(), operands[1].dim()) {
            (a, b) if a == b || a == 1 || b == 1 => 1,
            _ => return mismatch(name, operands, "they must be equal"),
        },
        Kind::Contract(contraction) => {
            size_is(name, contraction.left.iter().map(|n| *n as usize), &operands[0])?;
            size_is(name, contraction.right.iter().map(|n| *n as usize), &operands[1])?;
            for (k, &(l, r)) in contraction.over.iter().enumerate() {
                let left = contraction.left.get(l as usize);
                let right = contraction.right.get(r as usize);
                match (left, right) {
                    (Some(a), Some(b)) if a == b => {}
                    (Some(a), Some(b)) => {
                        return fail(format!(
                            "axis {l} of {:?} has size {a}, axis {r} of {:?} has size {b}",
                            contraction.left, contraction.right
                        ));
                    }
                    _ => {
                        return fail(format!(
                            "axes {l} and {r} are not both there in {:?} and {:?}",
                            contraction.left, contraction.right
                        ));
                    }
                }
                if contraction.over[..k].iter().any(|&(p, q)| p == l || q == r) {
                    return fail(format!("axis {l} or {r} is contracted twice"));
                }
            }
            let free = |shape: &[u32], is_summed: &dyn Fn(usize) -> bool| {
                let free = shape.iter().enumerate().filter(|(axis, _)| !is_summed(*axis));
                free.fold(1, |size: usize, (_, n)| size.saturating_mul(*n as usize))
            };
            let over = &contraction.over;
            let of_left = free(&contraction.left, &|k| over.iter().any(|o| o.0 as usize == k));
            let of_right = free(&contraction.right, &|k| over.iter().any(|o| o.1 as usize == k));
            of_left.saturating_mul(of_right)
        }
    };
    let may_be_empty = matches!(kind, Kind::Variable(_) | Kind::Zero(_))
        || operands.iter().any(|operand| operand.dim() == 0);
    match dim {
        1..=MAX_DIM => Ok(dim),
        0 if may_be_empty => Ok(0),
        0 => fail("a dimension must be at least 1".into()),
        _ => fail(format!("dimension {dim} is more than {MAX_DIM}")),
    }
}

fn arity(kind: &Kind) -> Option<usize> {
    Some(match kind {
        Kind::Variable(_) | Kind::Constant(_) | Kind::Zero(_) | Kind::Range(_) => 0,
        Kind::Apply(id) => id.row().arity,
        Kind::Select => 3,
        Kind::Fold(_)
        | Kind::Repeat(_)
        | Kind::Extract { .. }
        | Kind::Place { .. }
        | Kind::Permute(_) => 1,
        Kind::Dot | Kind::Contract(_) => 2,
        Kind::Concat => return None,
    })
}

/// The common dimension of operands that are alike or of dimension 1.
pub(crate) fn broadcast(name: &str, operands: &[Expr]) -> Result<usize> {
    let dims = || operands.iter().map(Expr::dim);
    let common = if dims().any(|dim| dim == 0) { 0 } else { dims().max().unwrap_or(1) };
    if operands.iter().all(|operand| operand.dim() == common || operand.dim() == 1) {
        return Ok(common);
    }
    mismatch(name, operands, "they must be equal, or one of them 1")
}

/// The error for operands whose dimensions do not go together.
pub(crate) fn mismatch<T>(name: &str, operands: &[Expr], rule: &str) -> Result<T> {
    let dims: Vec<String> = operands.iter().map(|operand| operand.dim().to_string()).collect();
    let texts: Vec<String> = operands.iter().map(|operand| operand.brief()).collect();
    let message = format!(
        "{name}: dimensions {} do not match, of {}: {rule}",
        dims.join(" and "),
        texts.join(" and ")
    );
    Err(Error::formula(message, None))
}

/// An operand with its dimension, for messages.
pub(crate) fn described(operand: &Expr) -> String {
    format!("{} has dimension {}", operand.brief(), operand.dim())
}

fn size_is(name: &str, shape: impl Iterator<Item = usize>, operand: &Expr) -> Result<usize> {
    let shape: Vec<usize> = shape.collect();
    let size = shape.iter().try_fold(1usize, |size, n| size.checked_mul(*n));
    if shape.len() > MAX_AXES {
        let message = format!("{name}: {} axes are more than {MAX_AXES}", shape.len());
        return Err(Error::formula(message, None));
    }
    match size {
        Some(size) if size == operand.dim() => Ok(size),
        _ => {
            let message =
                format!("{name}: {}, which is not that of shape {shape:?}", described(operand));
            Err(Error::formula(message, None))
        }
    }
}
