//! Rules of nodes that move numbers without computing: repeat, extract, place, concatenate,
//! exchange axes, choose.

use smallvec::SmallVec;
use tilework_error::Result;
use tilework_ops::Id;

use super::Candidate;
use crate::expr::{Expr, Kind, Operands, Permutation};

type Simpler = Result<Option<Expr>>;

pub(super) fn repeat_broadcasts(c: &Candidate) -> Simpler {
    let repeated = |operand: &Expr| matches!(operand.kind(), Kind::Repeat(_));
    if !matches!(c.kind, Kind::Apply(_) | Kind::Select) || !c.operands.iter().any(repeated) {
        return Ok(None);
    }
    let numbers = |operand: &Expr| match operand.kind() {
        Kind::Repeat(_) => operand.operands()[0].clone(),
        _ => operand.clone(),
    };
    let operands: Operands = c.operands.iter().map(numbers).collect();
    Expr::build(c.kind.clone(), operands)?.broadcast_to(c.dim).map(Some)
}

/// The placed part and its place, if it is one.
fn placed(expr: &Expr) -> Option<(&Expr, usize)> {
    match expr.kind() {
        Kind::Place { start, .. } => Some((&expr.operands()[0], *start)),
        _ => None,
    }
}

pub(super) fn place_product(c: &Candidate) -> Simpler {
    let Some((a, b)) = c.two(Id::Multiply) else { return Ok(None) };
    for (product, other, first) in [(a, b, true), (b, a, false)] {
        let Some((part, start)) = placed(product) else { continue };
        let other =
            if other.dim() == 1 { other.clone() } else { other.extract(start, part.dim())? };
        let inner = if first { part.multiply(&other)? } else { other.multiply(part)? };
        return inner.place(start, c.dim).map(Some);
    }
    Ok(None)
}

pub(super) fn place_sum(c: &Candidate) -> Simpler {
    let Kind::Apply(id @ (Id::Add | Id::Subtract)) = c.kind else { return Ok(None) };
    match (placed(&c.operands[0]), placed(&c.operands[1])) {
        (Some((a, at)), Some((b, there))) if at == there && a.dim() == b.dim() => {
            a.binary(*id, b)?.place(at, c.dim).map(Some)
        }
        _ => Ok(None),
    }
}

pub(super) fn place_negative(c: &Candidate) -> Simpler {
    match c.one(Id::Negative).and_then(placed) {
        Some((part, start)) => part.negative()?.place(start, c.dim).map(Some),
        None => Ok(None),
    }
}

pub(super) fn select_known(c: &Candidate) -> Simpler {
    let (Kind::Select, [mask, then, otherwise]) = (c.kind, c.operands) else { return Ok(None) };
    if then == otherwise {
        return then.broadcast_to(c.dim).map(Some);
    }
    match mask.as_uniform() {
        Some(0.0) => otherwise.broadcast_to(c.dim).map(Some),
        Some(_) => then.broadcast_to(c.dim).map(Some),
        None => Ok(None),
    }
}

pub(super) fn repeat_once(c: &Candidate) -> Simpler {
    let Kind::Repeat(len) = c.kind else { return Ok(None) };
    match &c.operands[0] {
        zero if zero.is_zero() => Expr::zero(*len).map(Some),
        number if *len == 1 => Ok(Some(number.clone())),
        _ => Ok(None),
    }
}

pub(super) fn extract_all(c: &Candidate) -> Simpler {
    Ok(match c.kind {
        Kind::Extract { .. } if c.operands[0].dim() == c.dim => Some(c.operands[0].clone()),
        _ => None,
    })
}

pub(super) fn extract_inside(c: &Candidate) -> Simpler {
    let Kind::Extract { start, len } = c.kind else { return Ok(None) };
    let operand = &c.operands[0];
    match operand.kind() {
        Kind::Zero(_) => Expr::zero(*len).map(Some),
        Kind::Repeat(_) => operand.operands()[0].repeat(*len).map(Some),
        Kind::Range(_) if *start == 0 => Expr::range(*len).map(Some),
        Kind::Extract { start: first, .. } => {
            operand.operands()[0].extract(first + start, *len).map(Some)
        }
        _ => Ok(None),
    }
}

pub(super) fn extract_placed(c: &Candidate) -> Simpler {
    let Kind::Extract { start, len } = c.kind else { return Ok(None) };
    let Some((part, at)) = placed(&c.operands[0]) else { return Ok(None) };
    let (from, to) = ((*start).max(at), (start + len).min(at + part.dim()));
    if from >= to {
        return Expr::zero(*len).map(Some);
    }
    part.extract(from - at, to - from)?.place(from - start, *len).map(Some)
}

pub(super) fn extract_concat(c: &Candidate) -> Simpler {
    let (Kind::Extract { start, len }, Kind::Concat) = (c.kind, c.operands[0].kind()) else {
        return Ok(None);
    };
    let mut begin = 0;
    for piece in c.operands[0].operands() {
        let end = begin + piece.dim();
        if *start >= begin && start + len <= end {
            return piece.extract(start - begin, *len).map(Some);
        }
        begin = end;
    }
    Ok(None)
}

/// Traces of derivatives ask for one component of each of their columns, which are mostly zeros beside a multiple of one vector.
pub(super) fn elem_sum(c: &Candidate) -> Simpler {
    let (Kind::Extract { start, len: 1 }, Kind::Apply(id)) = (c.kind, c.operands[0].kind()) else {
        return Ok(None);
    };
    let operands = c.operands[0].operands();
    let applies = match id {
        Id::Add | Id::Subtract => operands.iter().any(|operand| placed(operand).is_some()),
        Id::Multiply => operands.iter().any(|operand| operand.dim() == 1),
        Id::Negative => true,
        _ => false,
    };
    if !applies {
        return Ok(None);
    }
    let part = |operand: &Expr| match operand.dim() {
        1 => Ok(operand.clone()),
        _ => operand.elem(*start),
    };
    let parts = operands.iter().map(part).collect::<Result<Operands>>()?;
    Expr::build(Kind::Apply(*id), parts).map(Some)
}

pub(super) fn place_all(c: &Candidate) -> Simpler {
    Ok(match c.kind {
        Kind::Place { .. } if c.operands[0].dim() == c.dim => Some(c.operands[0].clone()),
        Kind::Place { .. } if c.operands[0].is_zero() => Some(Expr::zero(c.dim)?),
        _ => None,
    })
}

pub(super) fn place_placed(c: &Candidate) -> Simpler {
    let Kind::Place { start, len } = c.kind else { return Ok(None) };
    match placed(&c.operands[0]) {
        Some((part, at)) => part.place(start + at, *len).map(Some),
        None => Ok(None),
    }
}

pub(super) fn concat_flat(c: &Candidate) -> Simpler {
    if *c.kind != Kind::Concat {
        return Ok(None);
    }
    if let [one] = c.operands {
        return Ok(Some(one.clone()));
    }
    if c.operands.iter().all(Expr::is_zero) {
        return Expr::zero(c.dim).map(Some);
    }
    if !c.operands.iter().any(|operand| *operand.kind() == Kind::Concat) {
        return Ok(None);
    }
    let mut flat = Operands::new();
    for operand in c.operands {
        match operand.kind() {
            Kind::Concat => flat.extend(operand.operands().iter().cloned()),
            _ => flat.push(operand.clone()),
        }
    }
    Expr::build(Kind::Concat, flat).map(Some)
}

pub(super) fn concat_whole(c: &Candidate) -> Simpler {
    if *c.kind != Kind::Concat {
        return Ok(None);
    }
    let part = |expr: &Expr| match expr.kind() {
        Kind::Extract { start, len } => Some((expr.operands()[0].clone(), *start, *len)),
        _ => None,
    };
    let mut joined = Operands::new();
    for operand in c.operands {
        if let (Some((of, start, len)), Some((before, first, count))) =
            (part(operand), joined.last().and_then(part))
            && of == before
            && first + count == start
        {
            joined.pop();
            joined.push(of.extract(first, count + len)?);
            continue;
        }
        joined.push(operand.clone());
    }
    if joined.len() == c.operands.len() {
        return Ok(None);
    }
    Expr::build(Kind::Concat, joined).map(Some)
}

/// Whether the axes that are longer than 1 keep their order.
fn moves_nothing(permutation: &Permutation) -> bool {
    let axes = permutation.shape.iter().zip(&permutation.to);
    let targets: SmallVec<[usize; 4]> =
        axes.filter(|(size, _)| **size > 1).map(|(_, to)| *to).collect();
    targets.is_sorted()
}

pub(super) fn permute_nothing(c: &Candidate) -> Simpler {
    Ok(match c.kind {
        Kind::Permute(permutation) if moves_nothing(permutation) => Some(c.operands[0].clone()),
        Kind::Permute(_) if c.operands[0].as_uniform().is_some() => Some(c.operands[0].clone()),
        _ => None,
    })
}

pub(super) fn permute_twice(c: &Candidate) -> Simpler {
    let (Kind::Permute(outer), Kind::Permute(inner)) = (c.kind, c.operands[0].kind()) else {
        return Ok(None);
    };
    let mut between = inner.shape.clone();
    for (size, to) in inner.shape.iter().zip(&inner.to) {
        between[*to] = *size;
    }
    if between != outer.shape {
        return Ok(None);
    }
    let to = inner.to.iter().map(|axis| outer.to[*axis]).collect();
    let both = Permutation { shape: inner.shape.clone(), to };
    let operand = c.operands[0].operands()[0].clone();
    Expr::build(Kind::Permute(Box::new(both)), smallvec::smallvec![operand] as Operands).map(Some)
}

pub(super) fn contract_zero(c: &Candidate) -> Simpler {
    match c.kind {
        Kind::Contract(_) if c.operands.iter().any(Expr::is_zero) => Expr::zero(c.dim).map(Some),
        _ => Ok(None),
    }
}
