//! Reverse mode: the adjoint of the derivative, as an expression.
//!
//! One sweep from the result to the variables, each node visited once, so that derivatives of any
//! order share what they share. The rule of an operation of the table is in its row; the rules of
//! structural nodes are here and in `forward.rs`, which does the same in the other direction.

use std::cell::RefCell;

use tilework_error::{Error, Result};
use tilework_ops::{Algebra, FoldId, Id, Term};
use tilework_tape::Contraction;

use crate::branches::{Part, arrived, joined};
use crate::expr::{Expr, Kind, Map, Set};
use crate::tensor::{contract, free_axes};

/// Derivatives of expressions with more nodes than this are refused: each order multiplies the
/// size, and text such as `Grad(Grad(Grad(...` must end in an error and not in full memory.
pub const MAX_NODES: usize = 50_000;

/// The adjoint of the derivative of `f` with respect to the variable `v`, applied to `e`.
///
/// `e` has the dimension of `f`, the result that of `v`.
///
/// ```
/// use tilework_formula::{Expr, derive};
/// let (x, y) = (Expr::vi(0, 3)?, Expr::vj(1, 3)?);
/// let e = Expr::vi(2, 1)?;
/// let g = derive::grad(&x.sqdist(&y)?, &x, &e)?;
/// assert_eq!(g.to_string(), "2 * Vi(2,1) * (Vi(0,3) - Vj(1,3))");
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn grad(f: &Expr, v: &Expr, e: &Expr) -> Result<Expr> {
    Ok(grads(f, std::slice::from_ref(v), e)?.remove(0))
}

/// The adjoints for several variables in one sweep.
pub fn grads(f: &Expr, variables: &[Expr], e: &Expr) -> Result<Vec<Expr>> {
    for v in variables {
        check_variable("Grad", v)?;
    }
    if e.dim() != f.dim() {
        return crate::infer::mismatch(
            "Grad",
            &[f.clone(), e.clone()],
            "the incoming gradient has the dimension of the formula",
        );
    }
    let order = bounded_order("Grad", f, 1)?;
    let moving = depending(&order, variables);
    let mut adjoints: Map<Vec<Part>> = Map::default();
    adjoints.insert(f.clone(), vec![Part::new(e.clone())]);
    for node in order.iter().rev() {
        if node.operands().is_empty() || !moving.contains(node) {
            continue;
        }
        let Some(parts) = adjoints.get(node) else { continue };
        for g in joined(parts)? {
            if g.value.is_zero() {
                continue;
            }
            for (operand, part) in node.operands().iter().zip(pull_back(node, g, &moving)?) {
                if let Some(part) = part.filter(|part| !part.value.is_zero()) {
                    adjoints.entry(operand.clone()).or_default().push(part);
                }
            }
        }
    }
    let towards = |v: &Expr| match adjoints.get(v) {
        Some(parts) => arrived(parts),
        None => Expr::zero(v.dim()),
    };
    variables.iter().map(towards).collect()
}

pub(crate) fn check_variable(name: &str, v: &Expr) -> Result<()> {
    if v.as_variable().is_some() {
        return Ok(());
    }
    let message = format!("{name}: {} is not a variable; name one as in Vi(0,3)", v.brief());
    Err(Error::formula(message, None))
}

/// The nodes of `f`, if a derivative that is taken `times` stays of a reasonable size.
pub(crate) fn bounded_order(name: &str, f: &Expr, times: usize) -> Result<Vec<Expr>> {
    let order = Expr::order(std::slice::from_ref(f));
    if order.len().saturating_mul(times) > MAX_NODES {
        let message = format!(
            "{name}: {times} derivatives of a formula of {} operations would be too large",
            order.len()
        );
        return Err(Error::formula(message, None));
    }
    Ok(order)
}

/// The nodes that vary with one of the variables.
pub(crate) fn depending(order: &[Expr], variables: &[Expr]) -> Set {
    let mut moving = Set::default();
    for node in order {
        if variables.contains(node) || node.operands().iter().any(|x| moving.contains(x)) {
            moving.insert(node.clone());
        }
    }
    moving
}

/// What goes to each operand of `node` when `g` comes to it; None to operands that do not move.
fn pull_back(node: &Expr, way: Part, moving: &Set) -> Result<Vec<Option<Part>>> {
    let x = node.operands();
    let is_componentwise = matches!(node.kind(), Kind::Apply(_) | Kind::Select);
    let is_joined = *node.kind() == Kind::Concat;
    // Whatever is linear leaves the mask of a whole pair where it is; masks of components go no
    // further than components do.
    let way = if is_componentwise || is_joined { way } else { way.masked_for(1)? };
    let g = &way.value;
    let parts: Vec<Expr> = match node.kind() {
        Kind::Apply(id) => Symbols::adjoint(*id, x, node, g)?,
        Kind::Select => vec![Expr::constant(0.0), g.clone(), g.clone()],
        Kind::Fold(FoldId::Sum) => vec![g.repeat(x[0].dim())?],
        Kind::Fold(FoldId::Max) => vec![x[0].hot_extreme(FoldId::ArgMax)?.multiply(g)?],
        Kind::Fold(FoldId::Min) => vec![x[0].hot_extreme(FoldId::ArgMin)?.multiply(g)?],
        Kind::Repeat(_) => vec![g.sum()?],
        Kind::Extract { start, .. } => vec![g.place(*start, x[0].dim())?],
        Kind::Place { start, .. } => vec![g.extract(*start, x[0].dim())?],
        Kind::Concat => {
            let mut start = 0;
            let mut parts = Vec::with_capacity(x.len());
            for piece in x {
                parts.push(g.extract(start, piece.dim())?);
                start += piece.dim();
            }
            parts
        }
        Kind::Permute(permutation) => {
            let axes = permutation.to.len();
            let (mut shape, mut back) = (vec![0; axes], vec![0; axes]);
            for (axis, to) in permutation.to.iter().enumerate() {
                shape[*to] = permutation.shape[axis];
                back[*to] = axis;
            }
            vec![g.permute(&shape, &back)?]
        }
        Kind::Dot => vec![g.multiply(&x[1])?, g.multiply(&x[0])?],
        Kind::Contract(contraction) => {
            let (a, b) = (&x[0], &x[1]);
            vec![toward_left(contraction, g, b)?, toward_right(contraction, a, g)?]
        }
        // Indices and leaves do not move.
        Kind::Fold(_) | Kind::Variable(_) | Kind::Constant(_) | Kind::Zero(_) | Kind::Range(_) => {
            x.iter().map(|_| Expr::constant(0.0)).collect()
        }
    };
    // Nodes that work number by number may have broadcast their operands.
    let places = if is_componentwise { node.dim() } else { 1 };
    let settle = |(k, part): (usize, Expr)| {
        if !moving.contains(&x[k]) {
            return Ok(None);
        }
        let mut part = match is_joined {
            true => way.piece(x[..k].iter().map(Expr::dim).sum(), part)?,
            false => way.with(part),
        };
        if *node.kind() == Kind::Select {
            part = part.where_(&x[0], k == 1);
        }
        let part = part.masked_for(x[k].dim())?;
        let value = settle(&part.value, x[k].dim(), places)?;
        Ok(Some(part.with(value)))
    };
    parts.into_iter().enumerate().map(settle).collect()
}

/// A gradient in the operand's dimension: what was broadcast is summed, what is uniform repeated.
fn settle(part: &Expr, dim: usize, places: usize) -> Result<Expr> {
    match part.dim() == dim {
        // A number that stands for the same in every place of a broadcast operand counts for each.
        true if dim == 1 && places > 1 => part.scale(places as f64),
        true => Ok(part.clone()),
        false if dim == 1 => part.sum(),
        false => part.repeat(dim),
    }
}

/// The gradient towards the left operand of a contraction: the gradient contracted with the right
/// one over its free axes, in whichever order needs no exchange of axes if there is one.
fn toward_left(c: &Contraction, g: &Expr, right: &Expr) -> Result<Expr> {
    let (left_shape, right_shape) = shapes(c);
    let left_free = free_axes(left_shape.len(), |axis| over_left(c, axis));
    let right_free = free_axes(right_shape.len(), |axis| over_right(c, axis));
    let g_shape = free_shape(&left_shape, &left_free, &right_shape, &right_free);
    // Axes of the gradient: those of left, then those of right. Summed over those of right.
    let pairs: Vec<(usize, usize)> =
        right_free.iter().enumerate().map(|(k, axis)| (left_free.len() + k, *axis)).collect();
    // The summed axes of the contraction, in the order in which they stand in right.
    let mut shared: Vec<(u8, u8)> = c.over.to_vec();
    shared.sort_unstable_by_key(|&(_, r)| r);
    let shared: Vec<usize> = shared.into_iter().map(|(l, _)| l as usize).collect();
    let last: Vec<usize> = left_free.iter().chain(&shared).copied().collect();
    let first: Vec<usize> = shared.iter().chain(&left_free).copied().collect();
    if !last.is_sorted() && first.is_sorted() {
        let swapped: Vec<(usize, usize)> = pairs.iter().map(|&(l, r)| (r, l)).collect();
        return contract((right, &right_shape), (g, &g_shape), &swapped);
    }
    let product = contract((g, &g_shape), (right, &right_shape), &pairs)?;
    let shape: Vec<usize> = last.iter().map(|axis| left_shape[*axis]).collect();
    product.permute(&shape, &last)
}

/// The gradient towards the right operand of a contraction, likewise.
fn toward_right(c: &Contraction, left: &Expr, g: &Expr) -> Result<Expr> {
    let (left_shape, right_shape) = shapes(c);
    let left_free = free_axes(left_shape.len(), |axis| over_left(c, axis));
    let right_free = free_axes(right_shape.len(), |axis| over_right(c, axis));
    let g_shape = free_shape(&left_shape, &left_free, &right_shape, &right_free);
    let pairs: Vec<(usize, usize)> =
        left_free.iter().enumerate().map(|(k, axis)| (*axis, k)).collect();
    let mut shared: Vec<(u8, u8)> = c.over.to_vec();
    shared.sort_unstable_by_key(|&(l, _)| l);
    let shared: Vec<usize> = shared.into_iter().map(|(_, r)| r as usize).collect();
    let first: Vec<usize> = shared.iter().chain(&right_free).copied().collect();
    let last: Vec<usize> = right_free.iter().chain(&shared).copied().collect();
    if !first.is_sorted() && last.is_sorted() {
        let swapped: Vec<(usize, usize)> = pairs.iter().map(|&(l, r)| (r, l)).collect();
        return contract((g, &g_shape), (left, &left_shape), &swapped);
    }
    let product = contract((left, &left_shape), (g, &g_shape), &pairs)?;
    let shape: Vec<usize> = first.iter().map(|axis| right_shape[*axis]).collect();
    product.permute(&shape, &first)
}

fn shapes(c: &Contraction) -> (Vec<usize>, Vec<usize>) {
    let sizes = |shape: &[u32]| shape.iter().map(|n| *n as usize).collect();
    (sizes(&c.left), sizes(&c.right))
}

fn over_left(c: &Contraction, axis: usize) -> bool {
    c.over.iter().any(|&(l, _)| l as usize == axis)
}

fn over_right(c: &Contraction, axis: usize) -> bool {
    c.over.iter().any(|&(_, r)| r as usize == axis)
}

fn free_shape(left: &[usize], lefts: &[usize], right: &[usize], rights: &[usize]) -> Vec<usize> {
    lefts.iter().map(|axis| left[*axis]).chain(rights.iter().map(|axis| right[*axis])).collect()
}

/// Expressions as the algebra that rows write their derivatives in.
pub(crate) struct Symbols {
    terms: RefCell<Vec<Expr>>,
    failed: RefCell<Option<Error>>,
}

impl Symbols {
    /// What the row of `id` sends to each operand when `g` comes to the result.
    pub(crate) fn adjoint(id: Id, x: &[Expr], result: &Expr, g: &Expr) -> Result<Vec<Expr>> {
        let symbols = Symbols { terms: RefCell::new(Vec::new()), failed: RefCell::new(None) };
        let term = |expr: &Expr| Term::new(&symbols, symbols.push(Ok(expr.clone())));
        let operands: Vec<Term> = x.iter().map(term).collect();
        let parts = (id.row().grad)(&operands, term(result), term(g));
        let parts: Vec<Expr> = parts.into_iter().map(|part| symbols.get(part.id())).collect();
        match symbols.failed.take() {
            Some(error) => Err(error),
            None => Ok(parts),
        }
    }

    fn get(&self, id: u32) -> Expr {
        self.terms.borrow()[id as usize].clone()
    }

    /// Remembers a term; the algebra cannot fail, so a failure is kept for the end.
    fn push(&self, expr: Result<Expr>) -> u32 {
        let expr = expr.unwrap_or_else(|error| {
            self.failed.borrow_mut().get_or_insert(error);
            Expr::constant(0.0)
        });
        let mut terms = self.terms.borrow_mut();
        terms.push(expr);
        (terms.len() - 1) as u32
    }
}

impl Algebra for Symbols {
    fn constant(&self, value: f64) -> u32 {
        self.push(Ok(Expr::constant(value)))
    }

    fn apply(&self, op: Id, operands: &[u32]) -> u32 {
        let operands: Vec<Expr> = operands.iter().map(|id| self.get(*id)).collect();
        self.push(Expr::apply(op, &operands))
    }

    fn choose(&self, mask: u32, then: u32, otherwise: u32) -> u32 {
        self.push(self.get(mask).select(&self.get(then), &self.get(otherwise)))
    }
}
