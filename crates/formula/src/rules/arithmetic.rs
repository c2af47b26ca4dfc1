//! Rules of sums, products, quotients and powers. Each answers None where it has nothing to say.

use tilework_error::Result;
use tilework_ops::Id;

use super::Candidate;
use crate::build::{is_moderate, is_ordinary};
use crate::evaluate::number;
use crate::expr::{Expr, Kind};

/// What a rule gives.
type Simpler = Result<Option<Expr>>;

pub(super) fn fold_constants(c: &Candidate) -> Simpler {
    let Kind::Apply(id) = c.kind else { return Ok(None) };
    let mut numbers = smallvec::SmallVec::<[f64; 3]>::new();
    for operand in c.operands {
        match operand.as_uniform() {
            Some(number) => numbers.push(number),
            None => return Ok(None),
        }
    }
    Expr::uniform(number(*id, &numbers)?, c.dim).map(Some)
}

pub(super) fn identities(c: &Candidate) -> Simpler {
    Ok(match c.kind {
        Kind::Apply(Id::Positive | Id::Conj | Id::RealPart) => Some(c.operands[0].clone()),
        Kind::Apply(Id::ImagPart) => Some(Expr::zero(c.dim)?),
        _ => None,
    })
}

pub(super) fn add_zero(c: &Candidate) -> Simpler {
    match c.two(Id::Add) {
        Some((a, b)) if b.is_zero() => a.broadcast_to(c.dim).map(Some),
        Some((a, b)) if a.is_zero() => b.broadcast_to(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn subtract_zero(c: &Candidate) -> Simpler {
    match c.two(Id::Subtract) {
        Some((a, b)) if b.is_zero() => a.broadcast_to(c.dim).map(Some),
        Some((a, b)) if a.is_zero() => b.negative()?.broadcast_to(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn subtract_self(c: &Candidate) -> Simpler {
    match c.two(Id::Subtract) {
        Some((a, b)) if a == b => Expr::zero(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn multiply_zero(c: &Candidate) -> Simpler {
    match c.two(Id::Multiply) {
        Some((a, b)) if a.is_zero() || b.is_zero() => Expr::zero(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn multiply_one(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Multiply) else { return Ok(None) };
    for (factor, other) in [(a, b), (b, a)] {
        match factor.as_uniform() {
            Some(1.0) => return other.broadcast_to(c.dim).map(Some),
            Some(-1.0) => return other.negative()?.broadcast_to(c.dim).map(Some),
            _ => {}
        }
    }
    Ok(None)
}

pub(super) fn constant_first(c: &Candidate) -> Simpler {
    match c.two(Id::Multiply) {
        Some((a, b)) if b.as_constant().is_some() => b.multiply(a).map(Some),
        _ => Ok(None),
    }
}

/// The constant factor and the rest, if it is such a product.
fn multiple(expr: &Expr) -> Option<(f64, &Expr)> {
    let operands = expr.operands_of(Id::Multiply)?;
    Some((operands[0].as_constant()?, &operands[1]))
}

pub(super) fn constants_together(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Multiply) else { return Ok(None) };
    let Some(factor) = a.as_constant() else { return Ok(None) };
    if let Some((inner, rest)) = multiple(b) {
        let product = factor * inner;
        return is_ordinary(&product).then(|| rest.scale(product)).transpose();
    }
    match b.operands_of(Id::Negative) {
        Some(rest) => rest[0].scale(-factor).map(Some),
        None => Ok(None),
    }
}

/// Which factor of a product constants and signs belong to, if one is better than the outside: one
/// that varies with fewer indices, so that it is computed less often, or else the number of a
/// number times a vector, where they cost one operation and not one for each component.
fn home(a: &Expr, b: &Expr) -> Option<usize> {
    let per = a.per().union(b.per());
    let dim = a.dim().max(b.dim());
    let fewer = |operand: &Expr| operand.per() != per;
    let number = |operand: &Expr| operand.dim() == 1 && dim > 1;
    let first = |is: &dyn Fn(&Expr) -> bool| [a, b].iter().position(|operand| is(operand));
    first(&fewer).or_else(|| first(&number))
}

/// A product with its home replaced, if it is a product that has one.
fn with_home(expr: &Expr, replace: impl FnOnce(&Expr) -> Result<Expr>) -> Simpler {
    let Some([a, b]) = expr.operands_of(Id::Multiply) else { return Ok(None) };
    match home(a, b) {
        Some(0) => replace(a)?.multiply(b).map(Some),
        Some(_) => a.multiply(&replace(b)?).map(Some),
        None => Ok(None),
    }
}

pub(super) fn constant_inside(c: &Candidate) -> Simpler {
    match c.two(Id::Multiply) {
        Some((a, b)) => match a.as_constant().filter(is_moderate) {
            // What could not be joined with a constant does not belong to it.
            Some(factor) if multiple(b).is_none() => {
                with_home(b, |factor_of| factor_of.scale(factor))
            }
            _ => Ok(None),
        },
        None => Ok(None),
    }
}

pub(super) fn constant_outside(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Multiply) else { return Ok(None) };
    let home = home(a, b);
    let movable = |k: usize| {
        multiple(&c.operands[k]).filter(|(factor, _)| home != Some(k) && is_moderate(factor))
    };
    if let Some((factor, rest)) = movable(0) {
        return rest.multiply(b)?.scale(factor).map(Some);
    }
    match movable(1) {
        // A constant before a multiple has been folded into it before.
        Some((factor, rest)) if a.as_constant().is_none() => {
            a.multiply(rest)?.scale(factor).map(Some)
        }
        _ => Ok(None),
    }
}

pub(super) fn negative_negative(c: &Candidate) -> Simpler {
    let inner = c.one(Id::Negative).and_then(|a| a.operands_of(Id::Negative));
    Ok(inner.map(|operands| operands[0].clone()))
}

pub(super) fn negative_constant(c: &Candidate) -> Simpler {
    match c.one(Id::Negative).and_then(multiple) {
        Some((factor, rest)) => rest.scale(-factor).map(Some),
        None => Ok(None),
    }
}

pub(super) fn negative_inside(c: &Candidate) -> Simpler {
    match c.one(Id::Negative) {
        Some(product) => with_home(product, Expr::negative),
        None => Ok(None),
    }
}

/// Moves signs of two operands out of an operation that is odd in both; the sign of `home` stays.
fn signs_outside(c: &Candidate, id: Id, home: Option<usize>) -> Simpler {
    let Some((a, b)) = c.two(id) else { return Ok(None) };
    let sign = |k: usize| match home == Some(k) {
        true => None,
        false => c.operands[k].operands_of(Id::Negative).map(|inner| &inner[0]),
    };
    match (sign(0), sign(1)) {
        (Some(a), Some(b)) => a.binary(id, b).map(Some),
        (Some(a), None) => a.binary(id, b)?.negative().map(Some),
        (None, Some(b)) => a.binary(id, b)?.negative().map(Some),
        (None, None) => Ok(None),
    }
}

pub(super) fn negative_factor(c: &Candidate) -> Simpler {
    match c.two(Id::Multiply) {
        Some((a, b)) => signs_outside(c, Id::Multiply, home(a, b)),
        None => Ok(None),
    }
}

pub(super) fn negative_quotient(c: &Candidate) -> Simpler {
    signs_outside(c, Id::Divide, None)
}

pub(super) fn add_negative(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Add) else { return Ok(None) };
    if let Some(b) = b.operands_of(Id::Negative) {
        return a.subtract(&b[0]).map(Some);
    }
    match a.operands_of(Id::Negative) {
        Some(a) => b.subtract(&a[0]).map(Some),
        None => Ok(None),
    }
}

pub(super) fn subtract_negative(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Subtract) else { return Ok(None) };
    match b.operands_of(Id::Negative) {
        Some(b) => a.add(&b[0]).map(Some),
        None => Ok(None),
    }
}

pub(super) fn add_self(c: &Candidate) -> Simpler {
    let sign = match c.kind {
        Kind::Apply(Id::Add) => 1.0,
        Kind::Apply(Id::Subtract) => -1.0,
        _ => return Ok(None),
    };
    let parts = |expr: &Expr| match (multiple(expr), expr.operands_of(Id::Negative)) {
        (Some((factor, rest)), _) => (factor, rest.clone()),
        (None, Some(operands)) => (-1.0, operands[0].clone()),
        (None, None) => (1.0, expr.clone()),
    };
    let ((p, a), (q, b)) = (parts(&c.operands[0]), parts(&c.operands[1]));
    let sum = p + sign * q;
    if a != b || !(sum == 0.0 || is_ordinary(&sum)) {
        return Ok(None);
    }
    a.scale(sum)?.broadcast_to(c.dim).map(Some)
}

pub(super) fn common_factor(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Add) else { return Ok(None) };
    let (Some(a), Some(b)) = (a.operands_of(Id::Multiply), b.operands_of(Id::Multiply)) else {
        return Ok(None);
    };
    for (k, l) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        if a[k] == b[l] {
            let rest = a[1 - k].add(&b[1 - l])?;
            return a[k].multiply(&rest)?.broadcast_to(c.dim).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn exp_product(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Multiply) else { return Ok(None) };
    match (a.operands_of(Id::Exp), b.operands_of(Id::Exp)) {
        (Some(a), Some(b)) => a[0].add(&b[0])?.exp()?.broadcast_to(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn self_product(c: &Candidate) -> Simpler {
    match c.two(Id::Multiply) {
        Some((a, b)) if a == b => a.square().map(Some),
        _ => Ok(None),
    }
}

pub(super) fn even_of_negative(c: &Candidate) -> Simpler {
    let Kind::Apply(id @ (Id::Square | Id::Abs | Id::Cos)) = c.kind else { return Ok(None) };
    match c.operands[0].operands_of(Id::Negative) {
        Some(inner) => inner[0].unary(*id).map(Some),
        None => Ok(None),
    }
}

pub(super) fn divide_simply(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Divide) else { return Ok(None) };
    if let Some(divisor) = b.as_constant() {
        // One over a power of two is exact, and then so is the product.
        let exact = divisor.to_bits() << 12 == 0 && is_ordinary(&divisor);
        return if exact { a.scale(1.0 / divisor).map(Some) } else { Ok(None) };
    }
    match a.as_constant() {
        Some(1.0) => b.unary(Id::Reciprocal).map(Some),
        _ if a.is_zero() => Expr::zero(c.dim).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn simple_powers(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Pow) else { return Ok(None) };
    match b.as_constant() {
        Some(0.0) => Expr::uniform(1.0, c.dim).map(Some),
        Some(1.0) => Ok(Some(a.clone())),
        Some(2.0) => a.square().map(Some),
        Some(-1.0) => a.unary(Id::Reciprocal).map(Some),
        _ => Ok(None),
    }
}
