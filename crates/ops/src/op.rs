//! The types behind the table: what an operation is, what it gives, and how other crates derive
//! tables of their own from it.
//!
//! A row of [`crate::rows`] expands to a zero-sized type that implements [`Op`], with one generic
//! function for each class of dtypes that the operation takes, and a [`Row`] of plain data. A
//! crate that needs something per operation (kernels, evaluators) writes a [`Column`] and gets an
//! array by [`crate::column`]; nobody writes a match over operations.

use std::ops::Range;

use crate::algebra::Term;
use crate::dtype::{Class, DType};
use crate::scalar::{Element, Int, Real, Value};
use num_complex::Complex;

/// The dtype of a result, seen from the dtype that the operation computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The operands' dtype.
    Same,
    /// bool, whatever the operands are.
    Bool,
    /// The dtype of the real part.
    Part,
    /// int64, the type of indices and counts.
    Index,
}

/// [`Rule`] as a type, so that signatures follow from it.
pub trait Gives: 'static {
    /// The rule as data.
    const RULE: Rule;
    /// The value that an operation on `V` gives.
    type Of<V: Value>: Value;
    /// The element that an operation on `E` gives.
    type In<E: Element>: Element<V = Self::Of<E::V>>;
}

/// The operands' own type.
pub struct Same;
/// bool.
pub struct Bool;
/// The type of the real part.
pub struct Part;

impl Gives for Same {
    const RULE: Rule = Rule::Same;
    type Of<V: Value> = V;
    type In<E: Element> = E;
}

impl Gives for Bool {
    const RULE: Rule = Rule::Bool;
    type Of<V: Value> = bool;
    type In<E: Element> = bool;
}

impl Gives for Part {
    const RULE: Rule = Rule::Part;
    type Of<V: Value> = V::Part;
    type In<E: Element> = E::Part;
}

/// An operation on `N` operands of one type.
///
/// A class without a meaning cannot be instantiated: the mask in [`Op::ROW`] is made from the
/// meanings that the row gives, and tables ask the mask before they name a function.
pub trait Op<const N: usize>: 'static {
    /// What it gives.
    type Gives: Gives;

    /// Its row.
    const ROW: Row;

    /// Its meaning on bool.
    fn boolean(_: [bool; N]) -> <Self::Gives as Gives>::Of<bool> {
        const { panic!("this row has no meaning for bool") }
    }

    /// Its meaning on integers.
    fn int<T: Int>(_: [T; N]) -> <Self::Gives as Gives>::Of<T> {
        const { panic!("this row has no meaning for integers") }
    }

    /// Its meaning on real numbers.
    fn real<T: Real>(_: [T; N]) -> <Self::Gives as Gives>::Of<T> {
        const { panic!("this row has no meaning for real numbers") }
    }

    /// Its meaning on complex numbers.
    fn complex<T: Real>(_: [Complex<T>; N]) -> <Self::Gives as Gives>::Of<Complex<T>> {
        const { panic!("this row has no meaning for complex numbers") }
    }
}

/// How far a backend's result may lie from the definition's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// The same bits (any NaN equals any NaN).
    Exact,
    /// The same bits for real numbers. Complex products are sums, which a compiler may fuse: two
    /// units in the last place of the modulus.
    Fused,
    /// So many units in the last place of the dtype computed in: what the two may be off together,
    /// where vector mathematics and the C library, each within 2 of the truth, come near that.
    Ulp(f64),
}

/// A derivative: operands, result and what comes from above give what goes to each operand.
pub type Gradient = for<'a> fn(&[Term<'a>], Term<'a>, Term<'a>) -> Vec<Term<'a>>;

/// How integers enter an operation that has no meaning for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ints {
    /// As the least float that NumPy would take: see [`DType::to_inexact`].
    Least,
    /// As float64.
    Double,
}

/// Everything about an operation that is data.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The public name, of the method as of the Python function.
    pub name: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
    /// How many operands it takes.
    pub arity: usize,
    /// The classes it has a meaning for, as a mask of [`Class`].
    pub classes: u8,
    /// What it gives.
    pub gives: Rule,
    /// How integers enter where it has no meaning for them.
    pub ints: Ints,
    /// Whether the half types are left out: what depends on the last bit of a number cannot be
    /// computed in float32 and rounded.
    pub not_half: bool,
    /// Whether integers of one size give the same bits with a sign and without.
    pub signless: bool,
    /// The classes, as a mask, in which every element takes a function call or a division, so that
    /// the compiler finds nothing to vectorise.
    pub calls: u8,
    /// Whether arrays refuse a negative last operand where integers are computed.
    pub natural: bool,
    /// Whether it compares: what it says of two numbers it says of the bools `a > b` and `a < b`.
    pub ordered: bool,
    /// Whether the second operand bounds the first from below and the third from above. A number
    /// beyond all integers of a dtype is a bound that never binds.
    pub between: bool,
    /// The body of a CUDA device function on the same operands.
    pub cuda: &'static str,
    /// Its derivative; operands without one (integers, conditions) get zero.
    pub grad: Gradient,
    /// Where its tests draw operands from; the last range serves all further operands.
    pub domain: &'static [Range<f64>],
    /// How far results of backends may differ from the definition.
    pub tolerance: Tolerance,
}

impl Row {
    /// Whether it has a meaning for the class of `dtype`.
    pub const fn takes(&self, dtype: DType) -> bool {
        self.classes & dtype.class() as u8 != 0 && !(dtype.is_half() && self.not_half)
    }

    /// The dtype that it computes in, given the promoted dtype of its operands; None where it has
    /// no meaning.
    ///
    /// Types climb until there is a meaning: bool to int8, integers to floats, reals to complex.
    pub const fn computes(&self, dtype: DType) -> Option<DType> {
        if self.takes(dtype) {
            return Some(dtype);
        }
        if matches!(dtype, DType::Bool) && self.classes & Class::Int as u8 != 0 {
            return Some(DType::Int8);
        }
        if matches!(dtype.class(), Class::Bool | Class::Int) {
            let float = match self.ints {
                Ints::Least if self.not_half => dtype.to_inexact().computes_in(),
                Ints::Least => dtype.to_inexact(),
                Ints::Double => DType::Float64,
            };
            if self.takes(float) {
                return Some(float);
            }
        }
        None
    }

    /// The dtype that it gives when it computes in `dtype`.
    pub const fn result(&self, dtype: DType) -> DType {
        match self.gives {
            Rule::Same => dtype,
            Rule::Bool => DType::Bool,
            Rule::Part => dtype.part(),
            Rule::Index => DType::Int64,
        }
    }

    /// The range that tests draw operand number `operand` from.
    pub fn domain_of(&self, operand: usize) -> Range<f64> {
        self.domain[operand.min(self.domain.len() - 1)].clone()
    }
}

/// Something that a crate wants for every operation.
pub trait Column {
    /// What it wants.
    type Cell: Copy;
    /// Where it gets it for operation `O`.
    type At<O: Op<N>, const N: usize>: Entry<Self::Cell>;
}

/// One cell of a [`Column`], as a constant of a type.
pub trait Entry<T> {
    /// The cell.
    const VALUE: T;
}
