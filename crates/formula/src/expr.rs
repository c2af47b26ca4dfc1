//! Expressions: immutable, hash-consed, cheap to clone, shared between threads.
//!
//! An [`Expr`] is a counted reference to a node that exists once in the process (see
//! `intern.rs`): two expressions are equal exactly if they are the same node. A node knows its
//! dimension, the indices it varies with, and a hash of its structure. Nodes are made by
//! [`Expr::build`] in `build.rs` and by nobody else. Walks over expressions are loops over
//! [`Expr::order`], never recursion, since users build chains as long as they like.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;
use tilework_error::{Error, Result};
use tilework_ops::{FoldId, Id};
use tilework_tape::{Contraction, Per};

use crate::intern::{Mixer, Node};

/// Which array rows a variable takes its values from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Category {
    /// One row for each i (`Vi`).
    I = 0,
    /// One row for each j (`Vj`).
    J = 1,
    /// The same for all pairs (`Pm`).
    Parameter = 2,
}

impl Category {
    /// All categories, by number.
    pub const ALL: [Category; 3] = [Category::I, Category::J, Category::Parameter];

    /// The word of the text syntax.
    pub fn keyword(self) -> &'static str {
        ["Vi", "Vj", "Pm"][self as usize]
    }

    /// What such a variable varies with.
    pub fn per(self) -> Per {
        [Per::I, Per::J, Per::Once][self as usize]
    }

    /// i for j and j for i.
    pub fn transposed(self) -> Category {
        [Category::J, Category::I, Category::Parameter][self as usize]
    }
}

/// Positions that text can name.
pub const POSITIONS: usize = 1_000_000_000;

/// A variable: an argument of the call, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable {
    /// Its place in the list of arguments.
    pub position: usize,
    /// The length of its vectors.
    pub dim: usize,
    /// What it varies with.
    pub category: Category,
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, Variable { position, dim, .. }) = (self.category.keyword(), self);
        // A position beyond what text can name is that of an array whose place is not yet known.
        match *position < POSITIONS {
            true => write!(f, "{word}({position},{dim})"),
            false => write!(f, "{word}({dim})"),
        }
    }
}

/// A float64 compared by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bits(u64);

impl Bits {
    /// The bits of `value`; the sign of zero and the payload of NaN are dropped.
    pub fn new(value: f64) -> Bits {
        match value {
            0.0 => Bits(0),
            x if x.is_nan() => Bits(f64::NAN.to_bits()),
            x => Bits(x.to_bits()),
        }
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// An exchange of the axes of a row-major tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Permutation {
    /// Shape of the operand.
    pub shape: SmallVec<[usize; 4]>,
    /// Where each axis of the operand goes: axis k becomes axis `to[k]`.
    pub to: SmallVec<[usize; 4]>,
}

/// What a node does with its operands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An argument of the call.
    Variable(Variable),
    /// A number that is not zero.
    Constant(Bits),
    /// A vector of so many zeros.
    Zero(usize),
    /// The vector 0, 1, 2, ... of this length.
    Range(usize),
    /// An operation of the table, number by number; operands of dimension 1 broadcast, and
    /// comparisons give 1 or 0.
    Apply(Id),
    /// The second operand where the first is not zero, the third elsewhere.
    Select,
    /// A reduction along the vector to one number.
    Fold(FoldId),
    /// A number repeated.
    Repeat(usize),
    /// The part of the operand that begins at `start`.
    Extract {
        /// First component taken.
        start: usize,
        /// How many are taken.
        len: usize,
    },
    /// The operand from `start` on in a vector of `len` zeros.
    Place {
        /// Where the operand begins.
        start: usize,
        /// Dimension of the result.
        len: usize,
    },
    /// The operands one after the other.
    Concat,
    /// The operand with its axes exchanged.
    Permute(Box<Permutation>),
    /// Sum of products of two vectors.
    Dot,
    /// Sums of products over shared axes of two row-major tensors.
    Contract(Box<Contraction>),
}

/// The operands of a node.
pub type Operands = SmallVec<[Expr; 2]>;

/// A symbolic expression F(p, x_i, y_j).
///
/// ```
/// use tilework_formula::Expr;
/// let (x, y) = (Expr::vi(0, 3)?, Expr::vj(1, 3)?);
/// let k = x.sqdist(&y)?.negative()?.exp()?;
/// assert_eq!(k.dim(), 1);
/// assert_eq!(k, Expr::vi(0, 3)?.sqdist(&y)?.negative()?.exp()?);
/// assert_eq!(k.to_string(), "Exp(-SqDist(Vi(0,3), Vj(1,3)))");
/// # Ok::<(), tilework_error::Error>(())
/// ```
#[derive(Clone)]
pub struct Expr(pub(crate) Arc<Node>);

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({})", self.brief())
    }
}

/// A map from expressions; looked up, never iterated, since its order means nothing.
pub(crate) type Map<V> = HashMap<Expr, V, BuildHasherDefault<Mixer>>;
/// A set of expressions.
pub(crate) type Set = HashSet<Expr, BuildHasherDefault<Mixer>>;

impl Expr {
    /// What it does with its operands.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its operands.
    pub fn operands(&self) -> &[Expr] {
        &self.0.operands
    }

    /// The length of its vectors.
    pub fn dim(&self) -> usize {
        self.0.dim
    }

    /// The indices that it varies with.
    pub fn per(&self) -> Per {
        self.0.per
    }

    /// A hash of its structure, the same in every process of one build.
    pub fn structural_hash(&self) -> u64 {
        self.0.hash
    }

    /// How many nodes stand above each other.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// How many nodes it would have if nothing were shared (saturating).
    pub fn tree_size(&self) -> u64 {
        self.0.tree_size
    }

    /// About how many numbers are read and computed for one pair, if nothing is shared (saturating).
    pub fn work(&self) -> u64 {
        self.0.work
    }

    /// The variable, if it is one.
    pub fn as_variable(&self) -> Option<Variable> {
        match self.kind() {
            Kind::Variable(variable) => Some(*variable),
            _ => None,
        }
    }

    /// The number, if it is a constant of dimension 1.
    pub fn as_constant(&self) -> Option<f64> {
        match self.kind() {
            Kind::Constant(bits) => Some(bits.value()),
            Kind::Zero(1) => Some(0.0),
            _ => None,
        }
    }

    /// The number, if all components are that constant.
    pub fn as_uniform(&self) -> Option<f64> {
        match self.kind() {
            Kind::Constant(bits) => Some(bits.value()),
            Kind::Zero(_) => Some(0.0),
            Kind::Repeat(_) => self.operands()[0].as_constant(),
            _ => None,
        }
    }

    /// Whether it is a vector of zeros.
    pub fn is_zero(&self) -> bool {
        matches!(self.kind(), Kind::Zero(_))
    }

    /// The operands, if it is this operation of the table.
    pub fn operands_of(&self, id: Id) -> Option<&[Expr]> {
        (*self.kind() == Kind::Apply(id)).then(|| self.operands())
    }

    /// All nodes below these, each once, every node after its operands.
    pub fn order(roots: &[Expr]) -> Vec<Expr> {
        let mut order = Vec::new();
        let mut seen = Set::default();
        for root in roots {
            if !seen.insert(root.clone()) {
                continue;
            }
            let mut stack = vec![(root.clone(), 0)];
            while let Some((node, next)) = stack.pop() {
                match node.operands().get(next) {
                    Some(operand) => {
                        let operand = operand.clone();
                        stack.push((node, next + 1));
                        if seen.insert(operand.clone()) {
                            stack.push((operand, 0));
                        }
                    }
                    None => order.push(node),
                }
            }
        }
        order
    }

    /// The variables that these depend on, by position.
    ///
    /// Two variables of one position must agree in dimension and category.
    pub fn variables_of(roots: &[Expr]) -> Result<Vec<Variable>> {
        let order = Expr::order(roots);
        let mut variables: Vec<Variable> = order.iter().filter_map(Expr::as_variable).collect();
        variables.sort_unstable();
        check_positions(&variables)?;
        Ok(variables)
    }

    /// The variables that it depends on, by position.
    pub fn variables(&self) -> Result<Vec<Variable>> {
        Expr::variables_of(std::slice::from_ref(self))
    }

    /// Whether `node` occurs in it.
    pub fn contains(&self, node: &Expr) -> bool {
        Expr::order(std::slice::from_ref(self)).contains(node)
    }

    /// Whether each component depends on no other component of a variable than its own.
    ///
    /// ```
    /// use tilework_formula::Expr;
    /// let (x, b) = (Expr::vi(0, 1)?, Expr::vj(1, 3)?);
    /// let variable = b.as_variable().unwrap();
    /// assert!(x.multiply(&b)?.is_componentwise_in(variable));
    /// assert!(!b.sum()?.multiply(&b)?.is_componentwise_in(variable));
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn is_componentwise_in(&self, variable: Variable) -> bool {
        let mut touched = Set::default();
        Expr::order(std::slice::from_ref(self)).into_iter().all(|node| {
            let is_own = |operand: &Expr| operand.dim() == node.dim();
            let apart = match node.kind() {
                Kind::Variable(own) => *own != variable || touched.insert(node.clone()),
                Kind::Apply(_) | Kind::Select => node
                    .operands()
                    .iter()
                    .all(|operand| is_own(operand) || !touched.contains(operand)),
                _ => !node.operands().iter().any(|operand| touched.contains(operand)),
            };
            if node.operands().iter().any(|operand| touched.contains(operand)) {
                touched.insert(node);
            }
            apart
        })
    }

    /// These expressions made again from their leaves, each node by `remake` from the node and its
    /// new operands. This is how passes and substitutions are written.
    pub fn rebuild(
        roots: &[Expr],
        mut remake: impl FnMut(&Expr, Operands) -> Result<Expr>,
    ) -> Result<Vec<Expr>> {
        let mut made: Map<Expr> = Map::default();
        for node in Expr::order(roots) {
            let operands = node.operands().iter().map(|operand| made[operand].clone()).collect();
            let new = remake(&node, operands)?;
            made.insert(node, new);
        }
        Ok(roots.iter().map(|root| made[root].clone()).collect())
    }

    /// The expression with each variable replaced by what `with` gives for it.
    ///
    /// ```
    /// use tilework_formula::Expr;
    /// let (x, y) = (Expr::vi(0, 3)?, Expr::vj(1, 3)?);
    /// let d = x.subtract(&y)?;
    /// assert_eq!(d.substitute(|v| (v.position == 1).then(|| x.clone()))?, Expr::zero(3)?);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn substitute(&self, with: impl Fn(Variable) -> Option<Expr>) -> Result<Expr> {
        let made = Expr::rebuild(std::slice::from_ref(self), |node, operands| {
            match node.as_variable().and_then(&with) {
                Some(expr) => Ok(expr),
                None if operands[..] == *node.operands() => Ok(node.clone()),
                None => Expr::build(node.kind().clone(), operands),
            }
        })?;
        Ok(made[0].clone())
    }

    /// The expression with i and j exchanged.
    pub fn transpose(&self) -> Result<Expr> {
        self.substitute(|v| {
            Expr::variable(Variable { category: v.category.transposed(), ..v }).ok()
        })
    }
}

/// Whether variables sorted by position agree where they share one.
pub(crate) fn check_positions(sorted: &[Variable]) -> Result<()> {
    for pair in sorted.windows(2) {
        if pair[0].position == pair[1].position && pair[0] != pair[1] {
            let message = format!(
                "argument {} is used both as {} and as {}",
                pair[0].position, pair[0], pair[1]
            );
            return Err(Error::formula(message, None));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_may_travel_between_threads() {
        fn travels<T: Send + Sync + 'static>() {}
        travels::<Expr>();
        travels::<crate::Reduction>();
        travels::<crate::Lowered>();
    }

    #[test]
    fn positions_must_agree() {
        let f = Expr::vi(0, 3).unwrap().add(&Expr::vj(0, 3).unwrap()).unwrap();
        let message = f.variables().unwrap_err().to_string();
        assert_eq!(message, "argument 0 is used both as Vi(0,3) and as Vj(0,3)");
    }

    #[test]
    fn the_hash_is_the_same_in_every_run() {
        let f = Expr::vi(0, 3).unwrap().sqdist(&Expr::vj(1, 3).unwrap()).unwrap().exp().unwrap();
        assert_eq!(f.structural_hash(), f.substitute(|_| None).unwrap().structural_hash());
        assert_ne!(f.structural_hash(), f.transpose().unwrap().structural_hash());
    }
}
