//! From expressions to the tape that backends run.
//!
//! Common parts are one slot, since they are one node; nothing that no output needs is there; the
//! tape's sections say what is computed once, per i, per j and per pair. Half-precision inputs are
//! cast to float32 first and computed there.

use tilework_error::{Error, Result};
use tilework_ops::{DType, Id, Kind as NumberKind, Rule, Scalar};
use tilework_tape::{Builder, Slot, SlotId, Tape};

use crate::evaluate::sources;
use crate::expr::{Expr, Kind, Map, Permutation, Variable};
use crate::passes::{PASSES, Purpose};

/// A tape, and the variables that its inputs are.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The program; its outputs are those asked for, in order.
    pub tape: Tape,
    /// The variable of each input, by position.
    pub variables: Vec<Variable>,
}

/// The tape that computes these expressions from inputs of `dtype`, a real float.
///
/// Inputs are the variables that are used, by position.
///
/// ```
/// use tilework_formula::{Expr, lower::lower};
/// use tilework_ops::DType;
/// let k = Expr::vi(0, 3)?.sqdist(&Expr::vj(1, 3)?)?.negative()?.exp()?;
/// assert_eq!(
///     lower(&[k], DType::Float32)?.tape.to_string(),
///     "per i     %0: float32[3] = input 0\n\
///      per j     %1: float32[3] = input 1\n\
///      per pair  %2: float32[3] = subtract %0 %1\n\
///      per pair  %3: float32 = dot %2 %2\n\
///      per pair  %4: float32 = negative %3\n\
///      per pair  %5: float32 = exp %4\n\
///      gives     %5\n"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn lower(outputs: &[Expr], dtype: DType) -> Result<Lowered> {
    lower_for(outputs, Purpose { dtype, cheap: false })
}

/// The same with the rows that the purpose allows.
pub fn lower_for(outputs: &[Expr], purpose: Purpose) -> Result<Lowered> {
    let dtype = purpose.dtype;
    if dtype.kind() != NumberKind::Float {
        let message = format!("formulas compute in real floats, not in {dtype}");
        return Err(Error::dtype("formula", message));
    }
    let mut outputs = outputs.to_vec();
    for pass in &PASSES {
        outputs = (pass.run)(&outputs, purpose)?;
    }
    let order = Expr::order(&outputs);
    let variables = Expr::variables_of(&outputs)?;
    let cost: usize = order.iter().map(cost).fold(0, usize::saturating_add);
    let steps = cost + 2 * variables.len();
    if steps > usize::from(SlotId::MAX) {
        let most = SlotId::MAX;
        let message = format!(
            "the formula takes {steps} steps, more than {most}; a long sum can be reduced in parts"
        );
        return Err(Error::formula(message, None));
    }
    let mut emit = Emit::new(&variables, dtype)?;
    for node in &order {
        emit.node(node)?;
    }
    let slots: Vec<SlotId> = outputs.iter().map(|output| emit.number(output)).collect();
    Ok(Lowered { tape: emit.build.finish(&slots)?, variables })
}

/// At most so many steps for a node, with those that make a number of a mask or a mask of a number.
fn cost(node: &Expr) -> usize {
    match node.kind() {
        Kind::Variable(_) => 0,
        Kind::Range(len) => 4 * len.next_power_of_two().ilog2() as usize + 1,
        Kind::Permute(permutation) => runs(permutation).len() + 1,
        Kind::Apply(id) if id.row().gives == Rule::Bool => 2,
        Kind::Fold(_) | Kind::Repeat(_) => 2,
        Kind::Select => 3,
        Kind::Dot => 5,
        _ => 1,
    }
}

/// The contiguous pieces of the operand that make up the result of an exchange of axes.
fn runs(permutation: &Permutation) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for source in sources(permutation) {
        match runs.last_mut() {
            Some((start, len)) if *start + *len == source => *len += 1,
            _ => runs.push((source, 1)),
        }
    }
    runs
}

struct Emit {
    build: Builder,
    /// The dtype that is computed in.
    dtype: DType,
    numbers: Map<SlotId>,
    truths: Map<SlotId>,
}

impl Emit {
    fn new(variables: &[Variable], dtype: DType) -> Result<Emit> {
        let mut build = Builder::new();
        let mut inputs = Vec::with_capacity(variables.len());
        for variable in variables {
            let slot = Slot { dtype, len: variable.dim as u32 };
            inputs.push((Expr::variable(*variable)?, build.input(slot, variable.category.per())));
        }
        let compute = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        let mut numbers = Map::default();
        for (variable, slot) in inputs {
            numbers.insert(variable, build.cast(slot, compute));
        }
        Ok(Emit { build, dtype: compute, numbers, truths: Map::default() })
    }

    fn constant(&mut self, value: f64, len: usize) -> SlotId {
        self.build.constant(Scalar::new(value).cast(self.dtype), len as u32)
    }

    /// The slot of a node as numbers; comparisons become numbers when somebody asks.
    fn number(&mut self, node: &Expr) -> SlotId {
        if let Some(slot) = self.numbers.get(node) {
            return *slot;
        }
        let truth = self.truths[node];
        let slot = self.build.cast(truth, self.dtype);
        self.numbers.insert(node.clone(), slot);
        slot
    }

    /// The slot of a node as a mask.
    fn mask(&mut self, node: &Expr) -> Result<SlotId> {
        if let Some(slot) = self.truths.get(node) {
            return Ok(*slot);
        }
        let number = self.number(node);
        let zero = self.constant(0.0, 1);
        let slot = self.build.apply(Id::NotEqual, &[number, zero])?;
        self.truths.insert(node.clone(), slot);
        Ok(slot)
    }

    fn node(&mut self, node: &Expr) -> Result<()> {
        let x = node.operands();
        let slot = match node.kind() {
            Kind::Variable(_) => return Ok(()),
            Kind::Constant(bits) => self.constant(bits.value(), 1),
            Kind::Zero(len) => self.constant(0.0, *len),
            Kind::Range(len) => self.range(*len)?,
            Kind::Apply(id) if id.row().gives == Rule::Bool => {
                let truth = self.comparison(*id, x)?;
                self.truths.insert(node.clone(), truth);
                return Ok(());
            }
            Kind::Apply(id) => {
                let operands: Vec<SlotId> = x.iter().map(|operand| self.number(operand)).collect();
                self.build.apply(*id, &operands)?
            }
            Kind::Select => {
                let mask = self.mask(&x[0])?;
                let (then, otherwise) = (self.number(&x[1]), self.number(&x[2]));
                self.build.select(mask, then, otherwise)?
            }
            Kind::Fold(fold) => {
                let operand = self.number(&x[0]);
                let slot = self.build.fold(*fold, operand)?;
                // Indices are integers on the tape and numbers in formulas.
                self.build.cast(slot, self.dtype)
            }
            Kind::Repeat(len) => {
                let number = self.number(&x[0]);
                self.repeat(number, *len)?
            }
            Kind::Extract { start, len } => {
                let operand = self.number(&x[0]);
                self.build.extract(operand, *start as u32, *len as u32)?
            }
            Kind::Place { start, len } => {
                let operand = self.number(&x[0]);
                self.build.place(operand, *start as u32, *len as u32)?
            }
            Kind::Concat => {
                let operands: Vec<SlotId> = x.iter().map(|operand| self.number(operand)).collect();
                self.build.concat(&operands)?
            }
            Kind::Permute(permutation) => {
                let operand = self.number(&x[0]);
                let mut pieces = Vec::new();
                for (start, len) in runs(permutation) {
                    pieces.push(self.build.extract(operand, start as u32, len as u32)?);
                }
                self.build.concat(&pieces)?
            }
            Kind::Dot => {
                // A number against a vector is left by the rules only in very deep formulas.
                let len = x[0].dim().max(x[1].dim());
                let (mut a, mut b) = (self.number(&x[0]), self.number(&x[1]));
                if x[0].dim() != len {
                    a = self.repeat(a, len)?;
                }
                if x[1].dim() != len {
                    b = self.repeat(b, len)?;
                }
                self.build.dot(a, b)?
            }
            Kind::Contract(contraction) => {
                let (a, b) = (self.number(&x[0]), self.number(&x[1]));
                self.build.contract(a, b, (**contraction).clone())?
            }
        };
        self.numbers.insert(node.clone(), slot);
        Ok(())
    }

    /// 0, 1, 2, ...: the first half, and the same moved on, so that long ones are few steps.
    fn range(&mut self, len: usize) -> Result<SlotId> {
        let mut range = self.constant(0.0, 1);
        let mut have = 1;
        while have < len {
            let step = self.constant(have as f64, 1);
            let mut next = self.build.apply(Id::Add, &[range, step])?;
            let more = have.min(len - have);
            if more < have {
                next = self.build.extract(next, 0, more as u32)?;
            }
            range = self.build.concat(&[range, next])?;
            have += more;
        }
        Ok(range)
    }

    /// A number in many places, by a product with ones, which changes no bit.
    fn repeat(&mut self, number: SlotId, len: usize) -> Result<SlotId> {
        let ones = self.constant(1.0, len);
        self.build.apply(Id::Multiply, &[number, ones])
    }

    /// A comparison, on masks where all operands are masks already.
    fn comparison(&mut self, id: Id, x: &[Expr]) -> Result<SlotId> {
        let masks: Option<Vec<SlotId>> =
            x.iter().map(|operand| self.truths.get(operand).copied()).collect();
        let operands = match masks {
            Some(masks) if id.row().takes(DType::Bool) => masks,
            _ => x.iter().map(|operand| self.number(operand)).collect(),
        };
        self.build.apply(id, &operands)
    }
}
