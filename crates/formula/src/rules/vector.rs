//! Rules of sums along the vector and of inner products.

use tilework_error::Result;
use tilework_ops::{FoldId, Id};

use super::Candidate;
use crate::build::is_moderate;
use crate::expr::{Expr, Kind};

type Simpler = Result<Option<Expr>>;

/// The operand of a sum along the vector.
fn summed<'a>(c: &Candidate<'a>) -> Option<&'a Expr> {
    (*c.kind == Kind::Fold(FoldId::Sum)).then(|| &c.operands[0])
}

/// The operands of an inner product.
fn dotted<'a>(c: &Candidate<'a>) -> Option<(&'a Expr, &'a Expr)> {
    (*c.kind == Kind::Dot).then(|| (&c.operands[0], &c.operands[1]))
}

/// A number times a vector, if it is such a product and the number may be moved.
fn scaled(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let (s, v) = match expr.operands_of(Id::Multiply)? {
        [s, v] if s.dim() == 1 && v.dim() > 1 => (s, v),
        [v, s] if s.dim() == 1 && v.dim() > 1 => (s, v),
        _ => return None,
    };
    s.as_constant().as_ref().is_none_or(is_moderate).then_some((s, v))
}

pub(super) fn fold_of_number(c: &Candidate) -> Simpler {
    Ok(match c.kind {
        Kind::Fold(_) if c.operands[0].dim() != 1 => None,
        Kind::Fold(FoldId::ArgMax | FoldId::ArgMin) => Some(Expr::constant(0.0)),
        Kind::Fold(_) => Some(c.operands[0].clone()),
        _ => None,
    })
}

pub(super) fn fold_of_repeat(c: &Candidate) -> Simpler {
    let Kind::Fold(fold) = c.kind else { return Ok(None) };
    let number = match c.operands[0].kind() {
        Kind::Zero(_) => Expr::constant(0.0),
        Kind::Repeat(_) => c.operands[0].operands()[0].clone(),
        _ => return Ok(None),
    };
    match fold {
        FoldId::Sum => number.scale(c.operands[0].dim() as f64).map(Some),
        FoldId::ArgMax | FoldId::ArgMin => Ok(Some(Expr::constant(0.0))),
        _ => Ok(Some(number)),
    }
}

pub(super) fn sum_of_placed(c: &Candidate) -> Simpler {
    match summed(c) {
        Some(a) if matches!(a.kind(), Kind::Place { .. }) => a.operands()[0].sum().map(Some),
        _ => Ok(None),
    }
}

pub(super) fn sum_factor(c: &Candidate) -> Simpler {
    match summed(c).and_then(scaled) {
        Some((s, v)) => s.multiply(&v.sum()?).map(Some),
        None => Ok(None),
    }
}

pub(super) fn sum_sign(c: &Candidate) -> Simpler {
    match summed(c).and_then(|a| a.operands_of(Id::Negative)) {
        Some(inner) => inner[0].sum()?.negative().map(Some),
        None => Ok(None),
    }
}

pub(super) fn sum_product(c: &Candidate) -> Simpler {
    let Some(a) = summed(c) else { return Ok(None) };
    if let Some(factors) = a.operands_of(Id::Multiply) {
        return factors[0].dot(&factors[1]).map(Some);
    }
    match a.operands_of(Id::Square) {
        Some(inner) => inner[0].dot(&inner[0]).map(Some),
        None => Ok(None),
    }
}

pub(super) fn dot_zero(c: &Candidate) -> Simpler {
    match dotted(c) {
        Some((a, b)) if a.is_zero() || b.is_zero() => Ok(Some(Expr::constant(0.0))),
        _ => Ok(None),
    }
}

pub(super) fn dot_number(c: &Candidate) -> Simpler {
    let Some((a, b)) = dotted(c) else { return Ok(None) };
    // Numbers first: against a number, a repeated number is a vector to be summed.
    for (number, vector) in [(a, b), (b, a)] {
        if number.dim() == 1 {
            return number.multiply(&vector.sum()?).map(Some);
        }
    }
    for (repeated, vector) in [(a, b), (b, a)] {
        if let Kind::Repeat(_) = repeated.kind() {
            return repeated.operands()[0].multiply(&vector.sum()?).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn dot_placed(c: &Candidate) -> Simpler {
    let Some((a, b)) = dotted(c) else { return Ok(None) };
    for (placed, other) in [(a, b), (b, a)] {
        if let Kind::Place { start, .. } = placed.kind() {
            let part = &placed.operands()[0];
            return part.dot(&other.extract(*start, part.dim())?).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn dot_factor(c: &Candidate) -> Simpler {
    let Some((a, b)) = dotted(c) else { return Ok(None) };
    // The square of a scaled vector stays: its factor is applied before the pairs are formed.
    if a == b {
        return Ok(None);
    }
    for (product, other) in [(a, b), (b, a)] {
        if let Some((s, v)) = scaled(product) {
            return s.multiply(&v.dot(other)?).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn dot_sign(c: &Candidate) -> Simpler {
    let Some((a, b)) = dotted(c) else { return Ok(None) };
    match (a.operands_of(Id::Negative), b.operands_of(Id::Negative)) {
        (Some(a), Some(b)) => a[0].dot(&b[0]).map(Some),
        (Some(a), None) => a[0].dot(b)?.negative().map(Some),
        (None, Some(b)) => a.dot(&b[0])?.negative().map(Some),
        (None, None) => Ok(None),
    }
}
