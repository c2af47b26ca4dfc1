//! From the pair section of a tape and a fold to a recorded program.
//!
//! Steps run on vectors that record ([`tilework_simd::record`]), component by component; what other
//! sections computed and the states are leaves. Rows without a recorded function and places of
//! other dtypes are refused, with a reason that `explain` shows. Called by `jit::compile`.

use std::collections::HashMap;

use tilework_ops::{DType, FoldId, Id};
use tilework_simd::record::{
    Instruction, Mask, NONE, Narrow, Op, Recorded, Recording, Value, Wide, recording,
};
use tilework_tape::{Action, Per, SlotId, Step};

use super::fold::{self, Folding};
use super::{LONGEST, meaning};
use crate::pairs::plan::{GIVEN, How, Plan};
use crate::pairs::tile::terms_of;

/// A value from outside of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// A row of numbers of the tile of i, by its bytes from the beginning of the region; or a number
    /// of one i.
    Lanes(u32),
    /// A number of the j at hand, likewise; or a row of numbers.
    Row(u32),
    /// A number that is the same for all pairs, likewise.
    Number(u32),
    /// A row of numbers given for the j at hand, likewise.
    Given(u32),
    /// A state, by its number: what it is at the beginning of a row.
    State(u32),
    /// A row of numbers that belongs to the states and stays, numbered with them.
    Fixed(u32),
    /// The place of the j at hand in its range, as an integer.
    Place,
}

/// A value that is written down where a mask says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) mask: Value,
    pub(super) value: Value,
}

/// What is done for one vector of i and one j, or for one i and one vector of j.
#[derive(Debug)]
pub(super) struct Program {
    /// Whether lanes are j: an i is one number for all lanes, and a j is a row.
    pub(super) across: bool,
    pub(super) instructions: Vec<Instruction>,
    pub(super) leaves: Vec<Leaf>,
    /// What each state becomes; and, in a program of two j, what it is between them.
    pub(super) next: Vec<Value>,
    pub(super) between: Option<Vec<Value>>,
    pub(super) hits: Vec<Hit>,
    /// A value that is written down for every pair.
    pub(super) stored: Option<Value>,
}

impl Program {
    /// How many j it is for.
    pub(super) fn rows(&self) -> usize {
        1 + usize::from(self.between.is_some())
    }

    /// The values that somebody wants.
    pub(super) fn results(&self) -> impl Iterator<Item = Value> + '_ {
        let hits = self.hits.iter().flat_map(|hit| [hit.mask, hit.value]);
        self.next.iter().copied().chain(hits).chain(self.stored)
    }
}

/// Why there is no program.
pub(super) type Refusal = String;

/// The program of a plan and a fold.
pub(super) fn record(plan: &Plan<'_>, folding: Folding, wide: bool) -> Result<Program, Refusal> {
    match (folding.dtype, wide) {
        (DType::Float32, true) => record_as::<Recorded<f32, Wide>>(plan, folding),
        (DType::Float32, false) => record_as::<Recorded<f32, Narrow>>(plan, folding),
        (_, true) => record_as::<Recorded<f64, Wide>>(plan, folding),
        (_, false) => record_as::<Recorded<f64, Narrow>>(plan, folding),
    }
}

fn record_as<V: Recording>(plan: &Plan<'_>, folding: Folding) -> Result<Program, Refusal> {
    let (mut instructions, recorded) = recording(|| {
        let mut recorder = Recorder::<V> {
            plan,
            dtype: folding.dtype,
            slots: HashMap::new(),
            leaves: Vec::new(),
            numbers: HashMap::new(),
        };
        recorder.all(folding)
    });
    let (leaves, folded) = recorded?;
    let fold::Folded { next, hits, stored } = folded;
    // Powers of two that cannot be too small need not be looked at.
    let scaled = instructions.iter_mut().filter(|i| plan.normal && i.op == Op::ScalefWhere);
    scaled.for_each(|i| (i.op, i.args) = (Op::Scalef, [i.args[1], i.args[2], NONE]));
    Ok(Program { across: plan.spread > 1, instructions, leaves, next, between: None, hits, stored })
}

/// The components of a slot.
#[derive(Clone)]
enum Components<V> {
    Numbers(Vec<V>),
    Truths(Vec<Mask>),
}

/// Refuses vectors whose instructions would be too many, before they are recorded.
fn short_enough(len: u32) -> Result<(), Refusal> {
    match len as usize > LONGEST {
        true => Err(format!("a vector of {len} is too long")),
        false => Ok(()),
    }
}

/// The component of a slot, where one stands for all.
fn at<T: Copy>(components: &[T], c: usize) -> T {
    components[if components.len() == 1 { 0 } else { c }]
}

pub(super) struct Recorder<'p, 'a, V> {
    plan: &'p Plan<'a>,
    dtype: DType,
    slots: HashMap<SlotId, Components<V>>,
    leaves: Vec<Leaf>,
    /// The number of every leaf.
    numbers: HashMap<Leaf, u32>,
}

impl<V: Recording> Recorder<'_, '_, V> {
    /// A value from outside, by name.
    pub(super) fn leaf(&mut self, leaf: Leaf) -> V {
        let number = *self.numbers.entry(leaf).or_insert_with(|| {
            self.leaves.push(leaf);
            self.leaves.len() as u32 - 1
        });
        V::leaf(number)
    }

    fn all(&mut self, folding: Folding) -> Result<(Vec<Leaf>, fold::Folded), Refusal> {
        let plan = self.plan;
        for (slot, how, step) in plan.steps(Per::Pair) {
            short_enough(step.slot.len)?;
            let made = match how {
                How::Distance(a, b) => Components::Numbers(vec![self.distance(a, b)?]),
                How::ProductOnto(a, b, c) => {
                    let (a, b, onto) = (self.numbers(a)?, self.numbers(b)?, self.numbers(c)?[0]);
                    let sum = a.iter().zip(&b).fold(onto, |sum, (a, b)| a.fma(*b, sum));
                    Components::Numbers(vec![sum])
                }
                _ => self.step(step)?,
            };
            self.slots.insert(slot, made);
        }
        if let Some(columns) = plan.columns {
            let stored = self.numbers(columns.number)?.first().map(|number| number.value());
            let folded = fold::Folded { stored, ..fold::Folded::default() };
            return Ok((std::mem::take(&mut self.leaves), folded));
        }
        let mut terms = Vec::new();
        for term in &plan.terms {
            short_enough(term.len as u32)?;
            let (a, b) = (self.numbers(term.slot)?, term.factor.map(|slot| self.numbers(slot)));
            let b = b.transpose()?;
            for [first, second] in (0..term.len).map(|c| term.places(c)) {
                terms.push((at(&a, first), b.as_ref().map(|b| at(b, second))));
            }
        }
        let weight = plan.weight.map_or(Ok(Vec::new()), |slot| self.numbers(slot))?;
        let folded = fold::record(self, folding, &terms, &weight);
        Ok((std::mem::take(&mut self.leaves), folded))
    }

    fn components(&mut self, slot: SlotId) -> Result<Components<V>, Refusal> {
        if let Some(known) = self.slots.get(&slot) {
            return Ok(known.clone());
        }
        let (place, held) = (self.plan.places[slot as usize], self.plan.tape.slot(slot));
        if held.dtype != self.dtype {
            return Err(format!("a {} computed before meets pairs", held.dtype));
        }
        short_enough(held.len)?;
        if u32::try_from(place.offset + place.len * place.stride).is_err() {
            return Err("variables before it fill 4 GiB".to_owned());
        }
        let leaf = |c: usize| {
            let offset = (place.offset + c * place.stride) as u32;
            match place.section {
                _ if place.region == GIVEN => Leaf::Given(offset),
                Per::I => Leaf::Lanes(offset),
                Per::J => Leaf::Row(offset),
                _ => Leaf::Number(offset),
            }
        };
        let numbers = (0..place.len).map(|c| self.leaf(leaf(c))).collect();
        self.slots.insert(slot, Components::Numbers(numbers));
        Ok(self.slots[&slot].clone())
    }

    fn numbers(&mut self, slot: SlotId) -> Result<Vec<V>, Refusal> {
        match self.components(slot)? {
            Components::Numbers(numbers) => Ok(numbers),
            Components::Truths(truths) => {
                let one = |mask: &Mask| V::select(*mask, V::lit(1.0), V::lit(0.0));
                Ok(truths.iter().map(one).collect())
            }
        }
    }

    /// The sum over ascending components of the square of the difference, fused.
    fn distance(&mut self, a: SlotId, b: SlotId) -> Result<V, Refusal> {
        let (a, b) = (self.numbers(a)?, self.numbers(b)?);
        let difference = |c: usize| at(&a, c) - at(&b, c);
        let first = difference(0);
        Ok((1..a.len().max(b.len())).fold(first * first, |sum, c| {
            let d = difference(c);
            d.fma(d, sum)
        }))
    }

    /// The sum over terms of products, fused.
    fn dot(a: &[V], b: &[V], terms: impl Iterator<Item = (usize, usize)>) -> V {
        let sum = terms.fold(None, |sum: Option<V>, (k, l)| {
            Some(match sum {
                None => a[k] * b[l],
                Some(sum) => a[k].fma(b[l], sum),
            })
        });
        sum.unwrap_or_else(|| V::lit(0.0))
    }

    fn step(&mut self, step: &Step) -> Result<Components<V>, Refusal> {
        let (x, len) = (&step.operands[..], step.slot.len as usize);
        let numbers = match &step.action {
            Action::Apply(id) => return self.apply(*id, x, len),
            Action::Cast => return self.cast(x[0], step.slot.dtype),
            Action::Select => {
                let masks = match self.components(x[0])? {
                    Components::Truths(truths) => truths,
                    Components::Numbers(_) => return Err("a choice by numbers".to_owned()),
                };
                let (a, b) = (self.numbers(x[1])?, self.numbers(x[2])?);
                (0..len).map(|c| V::select(at(&masks, c), at(&a, c), at(&b, c))).collect()
            }
            Action::Constant(value) => vec![V::lit(value.get::<f64>()); len],
            Action::Extract(start) => self.numbers(x[0])?[*start as usize..][..len].to_vec(),
            Action::Concat => {
                let mut all = Vec::with_capacity(len);
                for &operand in x {
                    all.extend(self.numbers(operand)?);
                }
                all
            }
            Action::Place(start) => {
                let (mut all, inner) = (vec![V::lit(0.0); len], self.numbers(x[0])?);
                all[*start as usize..][..inner.len()].copy_from_slice(&inner);
                all
            }
            Action::Fold(fold) => vec![along(*fold, &self.numbers(x[0])?)?],
            Action::Dot => {
                let (a, b) = (self.numbers(x[0])?, self.numbers(x[1])?);
                vec![Self::dot(&a, &b, (0..a.len()).map(|c| (c, c)))]
            }
            Action::Contract(contraction) => {
                let (a, b) = (self.numbers(x[0])?, self.numbers(x[1])?);
                let (left, right) = terms_of(contraction);
                let mut all = Vec::with_capacity(len);
                for &l in &left.0 {
                    for &r in &right.0 {
                        let summed = left.1.iter().zip(&right.1);
                        let terms = summed.map(|(p, q)| ((l + p) as usize, (r + q) as usize));
                        all.push(Self::dot(&a, &b, terms));
                    }
                }
                all
            }
        };
        Ok(Components::Numbers(numbers))
    }

    fn apply(&mut self, id: Id, x: &[SlotId], len: usize) -> Result<Components<V>, Refusal> {
        let refused = || format!("{} is not assembled", id.row().name);
        let operands: Vec<Components<V>> =
            x.iter().map(|&slot| self.components(slot)).collect::<Result<_, _>>()?;
        let truths: Option<Vec<&Vec<Mask>>> = operands
            .iter()
            .map(|operand| match operand {
                Components::Truths(truths) => Some(truths),
                Components::Numbers(_) => None,
            })
            .collect();
        if let Some(truths) = truths {
            let of = |c: usize| -> Option<Mask> {
                let masks: Vec<Mask> = truths.iter().map(|of| at(of, c)).collect();
                meaning::of_truths(id, &masks)
            };
            let made: Option<Vec<Mask>> = (0..len).map(of).collect();
            return made.map(Components::Truths).ok_or_else(refused);
        }
        let operands: Vec<Vec<V>> =
            x.iter().map(|&slot| self.numbers(slot)).collect::<Result<_, _>>()?;
        let of = |c: usize| -> Vec<V> { operands.iter().map(|of| at(of, c)).collect() };
        if id.row().gives == tilework_ops::Rule::Bool {
            let made: Option<Vec<Mask>> = (0..len).map(|c| meaning::test(id, &of(c))).collect();
            return made.map(Components::Truths).ok_or_else(refused);
        }
        let made: Option<Vec<V>> = (0..len).map(|c| meaning::number(id, &of(c))).collect();
        made.map(Components::Numbers).ok_or_else(refused)
    }

    fn cast(&mut self, from: SlotId, to: DType) -> Result<Components<V>, Refusal> {
        let held = self.plan.tape.slot(from).dtype;
        // Indices along vectors are recorded as numbers from the start.
        let is_number = held == self.dtype || held == DType::Int64 || held == DType::Bool;
        match is_number && to == self.dtype {
            true => self.numbers(from).map(Components::Numbers),
            false => Err(format!("a cast from {held} to {to} is not assembled")),
        }
    }
}

/// A reduction along the components.
fn along<V: Recording>(fold: FoldId, x: &[V]) -> Result<V, Refusal> {
    let better = |a: V, b: V| match fold {
        FoldId::Max | FoldId::ArgMax => a.gt(b),
        _ => a.lt(b),
    };
    let mut held = x[0];
    let mut index = V::lit(0.0);
    for (c, &value) in x.iter().enumerate().skip(1) {
        match fold {
            FoldId::Sum => held = held + value,
            FoldId::Max | FoldId::Min | FoldId::ArgMax | FoldId::ArgMin => {
                let wins = better(value, held) | (value.is_nan() & !held.is_nan());
                held = V::select(wins, value, held);
                index = V::select(wins, V::lit(c as f64), index);
            }
            other => return Err(format!("{} along vectors is not assembled", other.row().name)),
        }
    }
    Ok(if matches!(fold, FoldId::ArgMax | FoldId::ArgMin) { index } else { held })
}
