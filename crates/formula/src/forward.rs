//! Forward mode, and what follows from it: Jacobians, divergence, Laplacian, linear operators.
//!
//! A row's rule serves here too: what it sends to operand k when g comes to the result is
//! g times the partial derivative, so the tangent of operand k in place of g gives its share of the
//! result's tangent.

use tilework_error::{Error, Result};
use tilework_ops::{FoldId, Id};

use crate::derive::{self, Symbols, bounded_order, check_variable, depending};
use crate::expr::{Expr, Kind, Map, Operands, Set};
use crate::infer;

/// The derivative of `f` when each variable moves in its direction, a vector of its dimension.
///
/// ```
/// use tilework_formula::{Expr, forward};
/// let (x, u) = (Expr::vi(0, 3)?, Expr::vi(1, 3)?);
/// assert_eq!(forward::diff(&x.exp()?, &[(x, u)])?.to_string(), "Vi(1,3) * Exp(Vi(0,3))");
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn diff(f: &Expr, directions: &[(Expr, Expr)]) -> Result<Expr> {
    let mut tangents: Map<Expr> = Map::default();
    for (v, u) in directions {
        check_variable("Diff", v)?;
        if v.dim() != u.dim() {
            return infer::mismatch(
                "Diff",
                &[v.clone(), u.clone()],
                "a direction has the dimension of its variable",
            );
        }
        let sum = match tangents.remove(v) {
            Some(other) => other.add(u)?,
            None => u.clone(),
        };
        tangents.insert(v.clone(), sum);
    }
    let variables: Vec<Expr> = directions.iter().map(|(v, _)| v.clone()).collect();
    let order = bounded_order("Diff", f, 1)?;
    let moving = depending(&order, &variables);
    for node in &order {
        if moving.contains(node) && !node.operands().is_empty() {
            let tangent = push_forward(node, &tangents, &moving)?.broadcast_to(node.dim())?;
            tangents.insert(node.clone(), tangent);
        }
    }
    match tangents.get(f) {
        Some(tangent) => Ok(tangent.clone()),
        None => Expr::zero(f.dim()),
    }
}

/// The tangent of `node` from those of its operands.
fn push_forward(node: &Expr, tangents: &Map<Expr>, moving: &Set) -> Result<Expr> {
    let x = node.operands();
    let tangent = |k: usize| tangents.get(&x[k]).filter(|_| moving.contains(&x[k]));
    let tangent_or_zero = |k: usize| match tangent(k) {
        Some(tangent) => Ok(tangent.clone()),
        None => Expr::zero(x[k].dim()),
    };
    // Linear nodes do to tangents what they do to values.
    let same = |operands: Operands| Expr::build(node.kind().clone(), operands);
    match node.kind() {
        Kind::Apply(id) => {
            let mut sum = Expr::zero(node.dim())?;
            for k in 0..x.len() {
                if let Some(tangent) = tangent(k) {
                    let share = Symbols::adjoint(*id, x, node, tangent)?.remove(k);
                    sum = sum.add(&share)?;
                }
            }
            Ok(sum)
        }
        Kind::Select => x[0].select(&tangent_or_zero(1)?, &tangent_or_zero(2)?),
        Kind::Fold(FoldId::Max) => x[0].hot_extreme(FoldId::ArgMax)?.dot(&tangent_or_zero(0)?),
        Kind::Fold(FoldId::Min) => x[0].hot_extreme(FoldId::ArgMin)?.dot(&tangent_or_zero(0)?),
        Kind::Fold(FoldId::Sum)
        | Kind::Repeat(_)
        | Kind::Extract { .. }
        | Kind::Place { .. }
        | Kind::Permute(_)
        | Kind::Concat => same((0..x.len()).map(tangent_or_zero).collect::<Result<_>>()?),
        Kind::Dot | Kind::Contract(_) => {
            let left = same([tangent_or_zero(0)?, x[1].clone()].into_iter().collect())?;
            left.add(&same([x[0].clone(), tangent_or_zero(1)?].into_iter().collect())?)
        }
        Kind::Fold(_) | Kind::Variable(_) | Kind::Constant(_) | Kind::Zero(_) | Kind::Range(_) => {
            Expr::zero(node.dim())
        }
    }
}

/// Component `k` of a vector of `dim` is 1, the others 0.
fn basis(k: usize, dim: usize) -> Result<Expr> {
    Expr::constant(1.0).place(k, dim)
}

/// The Jacobian, row by row: entry (k, l) is the derivative of component k of `f` by component l
/// of `v`.
pub fn grad_matrix(f: &Expr, v: &Expr) -> Result<Expr> {
    check_variable("GradMatrix", v)?;
    bounded_order("GradMatrix", f, f.dim())?;
    let row = |k: usize| derive::grad(f, v, &basis(k, f.dim())?);
    let rows: Vec<Expr> = (0..f.dim()).map(row).collect::<Result<_>>()?;
    Expr::concat(&rows)
}

/// The derivatives of every component of `f` by the same component of `v`, where `f` is made of `v` component by component, with
/// numbers that may vary with it, as gradients of kernels are: one vector in place of as many columns as there are components.
fn diagonal(name: &str, f: &Expr, v: &Expr) -> Result<Option<Expr>> {
    let order = bounded_order(name, f, 1)?;
    let moving = depending(&order, std::slice::from_ref(v));
    if v.dim() == 1 || !moving.contains(f) {
        return Ok(None);
    }
    // From the result down to numbers and to the variable.
    let mut needed = Set::default();
    needed.insert(f.clone());
    for node in order.iter().rev().filter(|node| node.dim() > 1 && *node != v) {
        if needed.contains(node) {
            if !matches!(node.kind(), Kind::Apply(_) | Kind::Select) {
                return Ok(None);
            }
            let operands = node.operands().iter().filter(|operand| moving.contains(operand));
            needed.extend(operands.cloned());
        }
    }
    // Of vectors their diagonal, of numbers their gradient: a component of either moves with the same one of the variable.
    let mut slopes: Map<Expr> = Map::default();
    for node in order.iter().filter(|node| needed.contains(node)) {
        let slope = match node.dim() {
            _ if node == v => Expr::uniform(1.0, v.dim())?,
            1 => derive::grad(node, v, &Expr::constant(1.0))?,
            _ => push_forward(node, &slopes, &moving)?.broadcast_to(v.dim())?,
        };
        slopes.insert(node.clone(), slope);
    }
    Ok(slopes.get(f).cloned())
}

/// Terms of a sum that are looked at one by one.
const MOST_TERMS: usize = 256;

/// The sum of all components of a sum, weighted: term by term, so that numbers and inner products are left of the vectors.
fn total(terms: Expr, dim: usize, weight: Option<&Expr>) -> Result<Expr> {
    let (mut sum, mut rest) = (Expr::constant(0.0), vec![(terms, false)]);
    let added = |sum: Expr, term: &Expr, negative: bool| {
        let term = term.broadcast_to(dim)?;
        let own = weight.map_or(Ok(term.clone()), |weight| term.multiply(weight))?.sum()?;
        if negative { sum.subtract(&own) } else { sum.add(&own) }
    };
    let mut taken_apart = 0;
    while let Some((term, negative)) = rest.pop() {
        let part = |k: usize| term.operands()[k].clone();
        taken_apart += 1;
        match term.kind() {
            // Sums that share their terms would have very many of them.
            _ if taken_apart > MOST_TERMS => sum = added(sum, &term, negative)?,
            Kind::Apply(Id::Add) => rest.extend([(part(1), negative), (part(0), negative)]),
            Kind::Apply(Id::Subtract) => rest.extend([(part(1), !negative), (part(0), negative)]),
            Kind::Apply(Id::Negative) => rest.push((part(0), !negative)),
            _ => sum = added(sum, &term, negative)?,
        }
    }
    Ok(sum)
}

/// Sum over k of weight k times the derivative of component k of `f` by component k of `v`.
fn weighted_trace(name: &str, f: &Expr, v: &Expr, weight: Option<&Expr>) -> Result<Expr> {
    check_variable(name, v)?;
    if f.dim() != v.dim() || weight.is_some_and(|w| w.dim() != v.dim() && w.dim() != 1) {
        let mut operands = vec![f.clone(), v.clone()];
        operands.extend(weight.cloned());
        return infer::mismatch(name, &operands, "they must be equal");
    }
    if let Some(diagonal) = diagonal(name, f, v)? {
        return total(diagonal, v.dim(), weight);
    }
    bounded_order(name, f, f.dim())?;
    let mut sum = Expr::constant(0.0);
    for k in 0..f.dim() {
        let column = diff(f, &[(v.clone(), basis(k, v.dim())?)])?;
        let entry = column.elem(k)?;
        let entry = match weight {
            Some(w) if w.dim() == 1 => entry.multiply(w)?,
            Some(w) => entry.multiply(&w.elem(k)?)?,
            None => entry,
        };
        sum = sum.add(&entry)?;
    }
    Ok(sum)
}

/// Sum over k of the derivative of component k of `f` by component k of `v`.
pub fn divergence(f: &Expr, v: &Expr) -> Result<Expr> {
    weighted_trace("Divergence", f, v, None)
}

/// The divergence of the gradient of a number.
pub fn laplacian(f: &Expr, v: &Expr) -> Result<Expr> {
    if f.dim() != 1 {
        let message = format!("Laplacian: takes a number, but {}", infer::described(f));
        return Err(Error::formula(message, None));
    }
    let gradient = derive::grad(f, v, &Expr::constant(1.0))?;
    weighted_trace("Laplacian", &gradient, v, None)
}

/// The trace of `f` as a linear map of `v`, each diagonal entry weighted by `weight`.
pub fn trace_operator(f: &Expr, v: &Expr, weight: Option<&Expr>) -> Result<Expr> {
    weighted_trace("TraceOperator", f, v, weight)
}

/// The transpose of `f` as a linear map of `v`, applied to `u`.
pub fn adjoint_operator(f: &Expr, v: &Expr, u: &Expr) -> Result<Expr> {
    derive::grad(f, v, u)
}

/// The sum of all entries of the matrix of `f` as a linear map of `v`, rows weighted by `left` and
/// columns by `right`.
pub fn sum_operator(f: &Expr, v: &Expr, left: Option<&Expr>, right: Option<&Expr>) -> Result<Expr> {
    let right = match right {
        Some(weight) => weight.broadcast_to(v.dim())?,
        None => Expr::uniform(1.0, v.dim())?,
    };
    let rows = diff(f, &[(v.clone(), right)])?;
    match left {
        Some(weight) => weight.broadcast_to(f.dim())?.dot(&rows),
        None => rows.sum(),
    }
}
