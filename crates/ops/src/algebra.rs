//! The small algebra that derivatives are written in.
//!
//! A row's derivative is an expression over [`Term`]s. Whoever wants derivatives (the formula
//! crate, the tests) implements [`Algebra`]: numbers, symbols, anything that can apply an
//! operation of the table.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::rows::Id;

/// Something that operations can be applied to.
pub trait Algebra {
    /// A constant.
    fn constant(&self, value: f64) -> u32;
    /// An operation applied to terms given by their numbers.
    fn apply(&self, op: Id, operands: &[u32]) -> u32;
    /// `then` where the condition `mask` (a comparison's result) holds, `otherwise` elsewhere.
    fn choose(&self, mask: u32, then: u32, otherwise: u32) -> u32;
}

/// A value of an [`Algebra`]; cheap to copy, with operators.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    algebra: &'a dyn Algebra,
    id: u32,
}

impl<'a> Term<'a> {
    /// The term with number `id` in `algebra`.
    pub fn new(algebra: &'a dyn Algebra, id: u32) -> Term<'a> {
        Term { algebra, id }
    }

    /// Its number.
    pub fn id(self) -> u32 {
        self.id
    }

    /// A constant of the same algebra.
    pub fn constant(self, value: f64) -> Term<'a> {
        Term { id: self.algebra.constant(value), ..self }
    }

    /// The constant 0 of the same algebra: the derivative of what does not change.
    pub fn zero(self) -> Term<'a> {
        self.constant(0.0)
    }

    /// A function of one operand.
    pub fn f(self, op: Id) -> Term<'a> {
        Term { id: self.algebra.apply(op, &[self.id]), ..self }
    }

    /// A function of two operands.
    pub fn f2(self, op: Id, other: impl Into<Operand<'a>>) -> Term<'a> {
        let other = other.into().in_algebra_of(self);
        Term { id: self.algebra.apply(op, &[self.id, other.id]), ..self }
    }

    /// `self` where `mask` holds, zero elsewhere.
    pub fn only_where(self, mask: Term<'a>) -> Term<'a> {
        let zero = self.algebra.constant(0.0);
        Term { id: self.algebra.choose(mask.id, self.id, zero), ..self }
    }

    /// `self` where `mask` holds, `other` elsewhere.
    pub fn or_else(self, mask: Term<'a>, other: impl Into<Operand<'a>>) -> Term<'a> {
        let other = other.into().in_algebra_of(self);
        Term { id: self.algebra.choose(mask.id, self.id, other.id), ..self }
    }

    /// The comparison `self < other`.
    pub fn lt(self, other: impl Into<Operand<'a>>) -> Term<'a> {
        self.f2(Id::Less, other)
    }

    /// The comparison `self <= other`.
    pub fn le(self, other: impl Into<Operand<'a>>) -> Term<'a> {
        self.f2(Id::LessEqual, other)
    }

    /// The comparison `self == other`.
    pub fn equals(self, other: impl Into<Operand<'a>>) -> Term<'a> {
        self.f2(Id::Equal, other)
    }
}

/// A term, or a number that becomes a constant.
pub enum Operand<'a> {
    /// A term.
    Term(Term<'a>),
    /// A number.
    Number(f64),
}

impl<'a> Operand<'a> {
    fn in_algebra_of(self, term: Term<'a>) -> Term<'a> {
        match self {
            Operand::Term(term) => term,
            Operand::Number(value) => term.constant(value),
        }
    }
}

impl<'a> From<Term<'a>> for Operand<'a> {
    fn from(term: Term<'a>) -> Self {
        Operand::Term(term)
    }
}

impl From<f64> for Operand<'_> {
    fn from(value: f64) -> Self {
        Operand::Number(value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $id:ident),*) => {$(
        impl<'a, B: Into<Operand<'a>>> $trait<B> for Term<'a> {
            type Output = Term<'a>;
            fn $method(self, other: B) -> Term<'a> {
                self.f2(Id::$id, other)
            }
        }
        impl<'a> $trait<Term<'a>> for f64 {
            type Output = Term<'a>;
            fn $method(self, other: Term<'a>) -> Term<'a> {
                other.constant(self).f2(Id::$id, other)
            }
        }
    )*};
}

operators!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

impl<'a> Neg for Term<'a> {
    type Output = Term<'a>;
    fn neg(self) -> Term<'a> {
        self.f(Id::Negative)
    }
}
