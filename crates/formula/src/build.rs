//! Smart constructors: the only way to make a node.
//!
//! [`Expr::build`] checks dimensions, asks the rules, and interns what is left. A node that exists
//! is one that no rule applied to, so building it again from its operands gives it back: that is
//! what lets printed text parse to the same expression.

use smallvec::smallvec;
use tilework_error::{Error, Result};
use tilework_ops::{FoldId, Id};

use crate::expr::{Bits, Category, Expr, Kind, Operands, Variable};
use crate::{infer, intern, rules};

/// Whether a number and its inverse are far from the ends of float32: only such products of factors
/// are joined, since others may make infinities and zeros where there were none.
pub(crate) fn is_ordinary(number: &f64) -> bool {
    (1e-30..1e30).contains(&number.abs())
}

/// Whether a number is so near to 1 that products with it may be taken in another order: what was
/// far from the ends of float32 is still inside.
pub(crate) fn is_moderate(number: &f64) -> bool {
    (1e-7..1e7).contains(&number.abs())
}

impl Expr {
    /// The node of this kind on these operands, simplified.
    pub fn build(kind: Kind, operands: impl Into<Operands>) -> Result<Expr> {
        let mut kind = kind;
        let mut operands = operands.into();
        if let Kind::Apply(id) = kind {
            kind = Kind::Apply(formula_meaning(id, &mut operands));
        }
        if matches!(kind, Kind::Constant(bits) if bits.value() == 0.0) {
            kind = Kind::Zero(1);
        }
        let dim = infer::dim_of(&kind, &operands)?;
        if operands.iter().any(|operand| operand.dim() == 0) {
            return over_nothing(&kind, operands, dim);
        }
        match rules::simplify(&kind, &operands, dim)? {
            Some(simpler) => Ok(simpler),
            None => Ok(intern::intern(kind, operands, dim)),
        }
    }

    /// A variable.
    pub fn variable(variable: Variable) -> Result<Expr> {
        Expr::build(Kind::Variable(variable), smallvec![])
    }

    /// The variable at `position` with one row for each i.
    pub fn vi(position: usize, dim: usize) -> Result<Expr> {
        Expr::variable(Variable { position, dim, category: Category::I })
    }

    /// The variable at `position` with one row for each j.
    pub fn vj(position: usize, dim: usize) -> Result<Expr> {
        Expr::variable(Variable { position, dim, category: Category::J })
    }

    /// The variable at `position` that is the same for all pairs.
    pub fn pm(position: usize, dim: usize) -> Result<Expr> {
        Expr::variable(Variable { position, dim, category: Category::Parameter })
    }

    /// A number; -0 counts as 0.
    pub fn constant(value: f64) -> Expr {
        let kind = if value == 0.0 { Kind::Zero(1) } else { Kind::Constant(Bits::new(value)) };
        intern::intern(kind, smallvec![], 1)
    }

    /// A vector of zeros.
    pub fn zero(dim: usize) -> Result<Expr> {
        Expr::build(Kind::Zero(dim), smallvec![])
    }

    /// The vector 0, 1, 2, ...
    pub fn range(dim: usize) -> Result<Expr> {
        Expr::build(Kind::Range(dim), smallvec![])
    }

    /// A vector of one number in all places.
    pub fn uniform(value: f64, dim: usize) -> Result<Expr> {
        if value == 0.0 || dim == 0 { Expr::zero(dim) } else { Expr::constant(value).repeat(dim) }
    }

    /// An operation of the table, number by number; dimension 1 broadcasts.
    ///
    /// Rows whose array meaning differs from the formula's stand for the latter: `Sqrt` has slope
    /// 0 at 0, `Rsqrt` is 0 at 0.
    pub fn apply(id: Id, operands: &[Expr]) -> Result<Expr> {
        Expr::build(Kind::Apply(id), Operands::from(operands))
    }

    /// An operation of one operand.
    pub fn unary(&self, id: Id) -> Result<Expr> {
        Expr::build(Kind::Apply(id), smallvec![self.clone()] as Operands)
    }

    /// An operation of two operands.
    pub fn binary(&self, id: Id, other: &Expr) -> Result<Expr> {
        Expr::build(Kind::Apply(id), smallvec![self.clone(), other.clone()] as Operands)
    }

    /// Sum.
    pub fn add(&self, other: &Expr) -> Result<Expr> {
        self.binary(Id::Add, other)
    }

    /// Difference.
    pub fn subtract(&self, other: &Expr) -> Result<Expr> {
        self.binary(Id::Subtract, other)
    }

    /// Product.
    pub fn multiply(&self, other: &Expr) -> Result<Expr> {
        self.binary(Id::Multiply, other)
    }

    /// Product with a number.
    pub fn scale(&self, factor: f64) -> Result<Expr> {
        Expr::constant(factor).multiply(self)
    }

    /// Quotient; dividing by what is zero everywhere is an error.
    pub fn divide(&self, other: &Expr) -> Result<Expr> {
        if other.is_zero() && other.dim() > 0 {
            let message = format!("Divide: {} is divided by zero", self.brief());
            return Err(Error::formula(message, None));
        }
        self.binary(Id::Divide, other)
    }

    /// Opposite.
    pub fn negative(&self) -> Result<Expr> {
        self.unary(Id::Negative)
    }

    /// e to its power.
    pub fn exp(&self) -> Result<Expr> {
        self.unary(Id::Exp)
    }

    /// Natural logarithm.
    pub fn log(&self) -> Result<Expr> {
        self.unary(Id::Log)
    }

    /// Square.
    pub fn square(&self) -> Result<Expr> {
        self.unary(Id::Square)
    }

    /// Square root, with slope 0 at 0.
    pub fn sqrt(&self) -> Result<Expr> {
        self.unary(Id::SqrtFlat)
    }

    /// A power by a number: 2, 1/2 and -1/2 are the square and the roots of formulas.
    pub fn power(&self, exponent: f64) -> Result<Expr> {
        match exponent {
            0.5 => self.unary(Id::SqrtFlat),
            -0.5 => self.unary(Id::RsqrtOrZero),
            _ => self.binary(Id::Pow, &Expr::constant(exponent)),
        }
    }

    /// `then` where it is not zero (NaN is not), `otherwise` elsewhere.
    pub fn select(&self, then: &Expr, otherwise: &Expr) -> Result<Expr> {
        let operands: Operands = smallvec![self.clone(), then.clone(), otherwise.clone()];
        Expr::build(Kind::Select, operands)
    }

    /// `then` where it is at least zero, `otherwise` elsewhere and where it is NaN.
    pub fn ifelse(&self, then: &Expr, otherwise: &Expr) -> Result<Expr> {
        Expr::constant(0.0).binary(Id::LessEqual, self)?.select(then, otherwise)
    }

    /// A reduction along the vector: Sum, Max, Min, ArgMax or ArgMin.
    pub fn fold(&self, fold: FoldId) -> Result<Expr> {
        Expr::build(Kind::Fold(fold), smallvec![self.clone()] as Operands)
    }

    /// Sum of its components.
    pub fn sum(&self) -> Result<Expr> {
        self.fold(FoldId::Sum)
    }

    /// The number in `dim` places.
    pub fn repeat(&self, dim: usize) -> Result<Expr> {
        Expr::build(Kind::Repeat(dim), smallvec![self.clone()] as Operands)
    }

    /// Itself if it has this dimension, repeated if it is a number.
    pub fn broadcast_to(&self, dim: usize) -> Result<Expr> {
        if self.dim() == dim { Ok(self.clone()) } else { self.repeat(dim) }
    }

    /// Components `start..start + len`.
    pub fn extract(&self, start: usize, len: usize) -> Result<Expr> {
        Expr::build(Kind::Extract { start, len }, smallvec![self.clone()] as Operands)
    }

    /// Component `index`.
    pub fn elem(&self, index: usize) -> Result<Expr> {
        if index >= self.dim() {
            let message =
                format!("Elem: there is no component {index}: {}", crate::infer::described(self));
            return Err(Error::formula(message, None));
        }
        self.extract(index, 1)
    }

    /// Itself from `start` on in a vector of `len` zeros.
    pub fn place(&self, start: usize, len: usize) -> Result<Expr> {
        Expr::build(Kind::Place { start, len }, smallvec![self.clone()] as Operands)
    }

    /// Vectors one after the other.
    pub fn concat(parts: &[Expr]) -> Result<Expr> {
        Expr::build(Kind::Concat, Operands::from(parts))
    }

    /// Sum of products; a number against a vector multiplies the vector's sum.
    pub fn dot(&self, other: &Expr) -> Result<Expr> {
        Expr::build(Kind::Dot, smallvec![self.clone(), other.clone()] as Operands)
    }

    /// Sum of the squares of the components.
    pub fn sqnorm2(&self) -> Result<Expr> {
        self.dot(self)
    }

    /// Squared distance, of vectors of one dimension.
    pub fn sqdist(&self, other: &Expr) -> Result<Expr> {
        self.subtract(other)?.sqnorm2()
    }
}

/// A node with an operand that has no components: parts of a vector that are not there are left
/// out, and sums over nothing are zero. So no other node ever has such an operand.
fn over_nothing(kind: &Kind, mut operands: Operands, dim: usize) -> Result<Expr> {
    if *kind == Kind::Concat && dim > 0 {
        operands.retain(|operand| operand.dim() > 0);
        return Expr::build(Kind::Concat, operands);
    }
    Expr::zero(dim)
}

/// The row that a formula means where it names this one: comparisons look one way, and rows whose
/// array meaning differs give way to the formula's.
fn formula_meaning(id: Id, operands: &mut Operands) -> Id {
    match id {
        Id::Sqrt => Id::SqrtFlat,
        Id::Rsqrt => Id::RsqrtOrZero,
        Id::Greater | Id::GreaterEqual => {
            operands.reverse();
            if id == Id::Greater { Id::Less } else { Id::LessEqual }
        }
        _ => id,
    }
}
