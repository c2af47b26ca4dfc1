//! Gradients on their way back through branches: masks are carried along and applied last.
//!
//! What comes back through the branch that was not taken counts for nothing, but it may be infinite or no
//! number: guarding a pole is what `IfElse` is for. A mask before the branch would make 0 times
//! infinity of it, so masks wait until a gradient arrives. Called by `derive.rs`.

use tilework_error::Result;

use crate::expr::{Expr, Map};

/// More ways to a node than this are summed, masks applied, before they go on, and count where one of them
/// does: each is a derivative of its own, and a chain of branches would double them at every link.
const MOST_WAYS: usize = 4;

/// Where a gradient counts: where a condition holds, or where it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mask {
    condition: Expr,
    holds: bool,
}

impl Mask {
    fn apply(&self, value: &Expr) -> Result<Expr> {
        let zero = Expr::constant(0.0);
        match self.holds {
            true => self.condition.select(value, &zero),
            false => self.condition.select(&zero, value),
        }
    }
}

/// A gradient that has come to a node by some way.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Where it counts: where all of them let it through.
    masks: Vec<Mask>,
    /// What it is there.
    pub(crate) value: Expr,
}

impl Part {
    /// One that counts everywhere.
    pub(crate) fn new(value: Expr) -> Part {
        Part { masks: Vec::new(), value }
    }

    /// Another gradient by the same way.
    pub(crate) fn with(&self, value: Expr) -> Part {
        Part { masks: self.masks.clone(), value }
    }

    /// The gradient of a piece of the vector that this one is of, by the same way.
    pub(crate) fn piece(&self, start: usize, value: Expr) -> Result<Part> {
        let cut = |mask: &Mask| match mask.condition.dim() {
            1 => Ok(mask.clone()),
            _ => Ok(Mask { condition: mask.condition.extract(start, value.dim())?, ..*mask }),
        };
        Ok(Part { masks: self.masks.iter().map(cut).collect::<Result<_>>()?, value })
    }

    /// The same, only where a condition holds or does not.
    pub(crate) fn where_(mut self, condition: &Expr, holds: bool) -> Part {
        self.masks.push(Mask { condition: condition.clone(), holds });
        self
    }

    /// With those masks applied that could not stand before a gradient of this dimension.
    pub(crate) fn masked_for(mut self, dim: usize) -> Result<Part> {
        let stays = |mask: &Mask| mask.condition.dim() == 1 || mask.condition.dim() == dim;
        let (stay, go): (Vec<Mask>, Vec<Mask>) = self.masks.into_iter().partition(stays);
        self.masks = stay;
        self.value = go.iter().try_fold(self.value, |value, mask| mask.apply(&value))?;
        Ok(self)
    }

    /// A value where this part counts, and zero elsewhere.
    fn masked(&self, value: &Expr) -> Result<Expr> {
        self.masks.iter().rev().try_fold(value.clone(), |v, mask| mask.apply(&v))
    }
}

/// What has come to a node: one part for each way, opposite branches joined.
pub(crate) fn joined(parts: &[Part]) -> Result<Vec<Part>> {
    let mut ways: Vec<(Vec<Mask>, Vec<Expr>)> = Vec::new();
    for part in parts {
        match ways.iter_mut().find(|(masks, _)| *masks == part.masks) {
            Some((_, values)) => values.push(part.value.clone()),
            None => ways.push((part.masks.clone(), vec![part.value.clone()])),
        }
    }
    while let Some((one, other)) = opposites(&ways) {
        let (_, values) = ways.remove(other);
        let (mut masks, own) = ways.remove(one);
        let Some(Mask { condition, holds }) = masks.pop() else { break };
        let (own, values) = (total(&own)?, total(&values)?);
        let (yes, no) = if holds { (own, values) } else { (values, own) };
        let value = condition.select(&yes, &no)?;
        match ways.iter_mut().find(|(known, _)| *known == masks) {
            Some((_, values)) => values.push(value),
            None => ways.push((masks, vec![value])),
        }
    }
    let parts: Vec<Part> = ways
        .into_iter()
        .map(|(masks, values)| Ok(Part { masks, value: total(&values)? }))
        .collect::<Result<_>>()?;
    match parts.len() > MOST_WAYS {
        true => Ok(vec![summed(&parts)?]),
        false => Ok(parts),
    }
}

/// All parts as one, which counts where any of them does.
fn summed(parts: &[Part]) -> Result<Part> {
    let part = Part::new(sum(parts)?);
    if parts.iter().any(|part| part.masks.is_empty()) {
        return Ok(part);
    }
    let (one, zero) = (Expr::constant(1.0), Expr::constant(0.0));
    let any = parts.iter().try_fold(zero, |any, part| part.masked(&one)?.select(&one, &any))?;
    Ok(part.where_(&any, true))
}

/// Two ways that part at their last branch, the earlier one first.
fn opposites(ways: &[(Vec<Mask>, Vec<Expr>)]) -> Option<(usize, usize)> {
    let parted = |one: &[Mask], other: &[Mask]| match (one, other) {
        ([before @ .., a], [same @ .., b]) => {
            before == same && a.condition == b.condition && a.holds != b.holds
        }
        _ => false,
    };
    let pairs =
        (0..ways.len()).flat_map(|one| (one + 1..ways.len()).map(move |other| (one, other)));
    pairs.into_iter().find(|&(one, other)| parted(&ways[one].0, &ways[other].0))
}

/// The sum of all that has come to a node, masks applied.
pub(crate) fn arrived(parts: &[Part]) -> Result<Expr> {
    sum(&joined(parts)?)
}

fn sum(parts: &[Part]) -> Result<Expr> {
    total(&parts.iter().map(|part| part.masked(&part.value)).collect::<Result<Vec<Expr>>>()?)
}

/// The sum of gradients; equal ones meet first, which the rules for sums of two would not see.
fn total(parts: &[Expr]) -> Result<Expr> {
    let mut counts: Map<usize> = Map::default();
    for part in parts {
        *counts.entry(part.clone()).or_default() += 1;
    }
    let mut sum: Option<Expr> = None;
    for part in parts {
        let Some(count) = counts.remove(part) else { continue };
        let part = if count == 1 { part.clone() } else { part.scale(count as f64)? };
        sum = Some(match sum {
            Some(sum) => sum.add(&part)?,
            None => part,
        });
    }
    Ok(sum.unwrap_or_else(|| Expr::constant(0.0)))
}
