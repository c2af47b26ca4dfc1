//! The table of formula functions: everything that can be called by name in text, besides the
//! operations of the op table, which are there by themselves under the names of `names.rs`.
//!
//! To add a function, add a row: name, how it is called as a method, what it takes, a line of
//! documentation, and a builder over checked arguments. The parser calls [`call`], tensors find
//! their methods through [`crate::methods`]; dimension checks are the builders'.

use tilework_error::{Error, Result};
use tilework_ops::{FoldId, Id};

use crate::expr::Expr;
use crate::names;
use crate::{derive, forward};

/// What a function takes in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A formula.
    Formula,
    /// A variable.
    Variable,
    /// An integer.
    Integer,
    /// An integer that is not negative.
    Count,
    /// A list of such integers, as in `[2,3]`.
    Counts,
    /// A formula that may be left out.
    MaybeFormula,
    /// A list that may be left out.
    MaybeCounts,
    /// Any number of further formulas.
    Formulas,
}

impl Takes {
    fn describe(self) -> &'static str {
        match self {
            Takes::Formula | Takes::MaybeFormula | Takes::Formulas => "a formula",
            Takes::Variable => "a variable",
            Takes::Integer => "an integer below 9e15",
            Takes::Count => "an integer that is not negative, below 9e15",
            Takes::Counts | Takes::MaybeCounts => "a list of integers such as [2,3]",
        }
    }
}

/// An argument as it was written.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A formula; integers are constant formulas.
    Formula(Expr),
    /// A list of numbers.
    List(Vec<f64>),
}

/// Arguments that fit what the function takes.
pub struct Arguments<'a>(&'a [Argument]);

impl Arguments<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn formula(&self, k: usize) -> Result<&Expr> {
        match self.0.get(k) {
            Some(Argument::Formula(expr)) => Ok(expr),
            _ => Err(missing(k)),
        }
    }

    fn maybe(&self, k: usize) -> Option<&Expr> {
        match self.0.get(k) {
            Some(Argument::Formula(expr)) => Some(expr),
            _ => None,
        }
    }

    fn formulas(&self) -> Vec<Expr> {
        (0..self.count()).filter_map(|k| self.maybe(k).cloned()).collect()
    }

    fn integer(&self, k: usize) -> Result<i64> {
        let value = self.formula(k)?.as_constant().filter(|value| is_integer(*value));
        value.map(|value| value as i64).ok_or_else(|| missing(k))
    }

    fn size(&self, k: usize) -> Result<usize> {
        usize::try_from(self.integer(k)?).map_err(|_| missing(k))
    }

    fn sizes(&self, k: usize) -> Result<Vec<usize>> {
        match self.0.get(k) {
            Some(Argument::List(numbers)) => Ok(numbers.iter().map(|x| *x as usize).collect()),
            None => Ok(Vec::new()),
            Some(Argument::Formula(_)) => Err(missing(k)),
        }
    }
}

// Arguments are checked against the row before its builder runs, so this is not seen unless a row
// and its builder disagree.
fn missing(k: usize) -> Error {
    Error::formula(format!("argument {} is not what the function takes", k + 1), None)
}

fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < 9e15
}

/// A function of formulas.
pub struct Function {
    /// Its name in text.
    pub name: &'static str,
    /// How it is called as a method of one argument: `weightedsqdist(g, s)` names the others. Empty
    /// where it is no method.
    pub method: &'static str,
    /// The names of its arguments, in the order of the text.
    pub arguments: &'static [&'static str],
    /// What they are.
    pub takes: &'static [Takes],
    /// What it means, as a sentence.
    pub doc: &'static str,
    build: fn(&Arguments) -> Result<Expr>,
}

macro_rules! table {
    ($($name:literal $method:literal [$($argument:ident: $takes:ident),*] $doc:literal
        $a:ident => $build:expr;)+) => {
        /// The functions.
        pub static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            method: $method,
            arguments: &[$(stringify!($argument)),*],
            takes: &[$(Takes::$takes),*],
            doc: $doc,
            build: |$a| $build,
        }),+];
    };
}

table! {
    "IntCst" "" [n: Integer] "The integer." a => Ok(a.formula(0)?.clone());
    "RatCst" "" [p: Integer, q: Integer] "A quotient of integers." a => ratio(a.integer(0)?, a.integer(1)?);
    "IntInv" "" [n: Integer] "One over an integer." a => ratio(1, a.integer(0)?);
    "Zero" "" [d: Count] "A vector of zeros." a => Expr::zero(a.size(0)?);
    "Range" "" [d: Count] "The vector 0, 1, 2, ..." a => Expr::range(a.size(0)?);

    "Divide" "divide(g)" [f: Formula, g: Formula] "Quotient." a => a.formula(0)?.divide(a.formula(1)?);
    "Scalprod" "dot(g)" [f: Formula, g: Formula] "Inner product, as f|g." a => a.formula(0)?.dot(a.formula(1)?);
    "Pow" "" [f: Formula, m: Integer] "An integer power." a => a.formula(0)?.power(a.integer(1)? as f64);
    "Round" "round(d=0)" [f: Formula, d: Integer] "Rounded to so many decimals, halves away from zero." a => a.formula(0)?.round(i32::try_from(a.integer(1)?).unwrap_or(i32::MAX));
    "ClampInt" "clampint(a, b)" [f: Formula, a: Integer, b: Integer] "Held between two integers." a => a.formula(0)?.clamp(a.formula(1)?, a.formula(2)?);
    "DiffClampInt" "diffclampint(a, b)" [f: Formula, a: Integer, b: Integer] "1 between two integers or on them, else 0." a => a.formula(0)?.within(a.integer(1)? as f64, a.integer(2)? as f64);
    "Sinc" "sinc()" [f: Formula] "sin(pi f) / (pi f), 1 at 0." a => a.formula(0)?.scale(std::f64::consts::PI)?.unary(Id::SinXDivX);
    "IfElse" "ifelse(a, b)" [f: Formula, a: Formula, b: Formula] "The second where the first is at least 0, else the third." a => a.formula(0)?.ifelse(a.formula(1)?, a.formula(2)?);
    "Where" "where(a, b)" [f: Formula, a: Formula, b: Formula] "The second where the first is not 0, else the third." a => a.formula(0)?.select(a.formula(1)?, a.formula(2)?);

    "Sum" "" [f: Formula] "Sum of the components." a => a.formula(0)?.sum();
    "SumT" "sumt(d)" [f: Formula, d: Count] "A number repeated." a => a.formula(0)?.repeat(a.size(1)?);
    "Max" "" [f: Formula] "The largest component; NaN if there is one." a => a.formula(0)?.fold(FoldId::Max);
    "Min" "" [f: Formula] "The smallest component; NaN if there is one." a => a.formula(0)?.fold(FoldId::Min);
    "ArgMax" "" [f: Formula] "Index of the largest component, the first of equals." a => a.formula(0)?.fold(FoldId::ArgMax);
    "ArgMin" "" [f: Formula] "Index of the smallest component, the first of equals." a => a.formula(0)?.fold(FoldId::ArgMin);
    "SqNorm2" "sqnorm2()" [f: Formula] "Sum of squares." a => a.formula(0)?.sqnorm2();
    "Norm2" "norm2()" [f: Formula] "Length." a => a.formula(0)?.norm2();
    "Normalize" "normalize()" [f: Formula] "Divided by its length; zero stays." a => a.formula(0)?.normalize();
    "SqDist" "sqdist(g)" [f: Formula, g: Formula] "Squared distance." a => a.formula(0)?.sqdist(a.formula(1)?);
    "SqNormIso" "sqnormiso(s)" [s: Formula, f: Formula] "A number times the sum of squares." a => weighted(a, &[1]);
    "SqNormDiag" "sqnormdiag(s)" [s: Formula, f: Formula] "Sum of weighted squares." a => weighted(a, &[a.formula(1)?.dim()]);
    "SymSqNorm" "symsqnorm(s)" [s: Formula, f: Formula] "The quadratic form of a matrix." a => weighted(a, &[a.formula(1)?.dim().saturating_mul(a.formula(1)?.dim())]);
    "WeightedSqNorm" "weightedsqnorm(s)" [s: Formula, f: Formula] "One of the three above, by the size of the weight." a => a.formula(1)?.weighted_sqnorm(a.formula(0)?);
    "WeightedSqDist" "weightedsqdist(g, s)" [s: Formula, f: Formula, g: Formula] "The weighted squared norm of a difference." a => a.formula(1)?.subtract(a.formula(2)?)?.weighted_sqnorm(a.formula(0)?);

    "Elem" "elem(i)" [f: Formula, i: Count] "One component." a => a.formula(0)?.elem(a.size(1)?);
    "ElemT" "elemt(n, i)" [f: Formula, n: Count, i: Count] "A number in a vector of zeros: length, place." a => number(a.formula(0)?)?.place(a.size(2)?, a.size(1)?);
    "Extract" "extract(i, d)" [f: Formula, i: Count, d: Count] "Components: first, how many." a => a.formula(0)?.extract(a.size(1)?, a.size(2)?);
    "ExtractT" "extractt(i, d)" [f: Formula, i: Count, d: Count] "A vector in a vector of zeros: place, length." a => a.formula(0)?.place(a.size(1)?, a.size(2)?);
    "Concat" "concat(g, *more)" [f: Formula, g: Formula, more: Formulas] "Vectors one after the other." a => Expr::concat(&a.formulas());
    "OneHot" "one_hot(D)" [f: Formula, D: Count] "1 at this index, else 0; all 0 where there is no such index." a => a.formula(0)?.one_hot(a.size(1)?);
    "BSpline" "bspline(x, k=0)" [f: Formula, x: Formula, k: Count] "B-splines on knots, at a number, of an order." a => a.formula(0)?.bspline(a.formula(1)?, a.size(2)?);

    "MatVecMult" "matvecmult(g)" [f: Formula, g: Formula] "Matrix times vector." a => a.formula(0)?.matvecmult(a.formula(1)?);
    "VecMatMult" "vecmatmult(g)" [f: Formula, g: Formula] "Vector times matrix." a => a.formula(0)?.vecmatmult(a.formula(1)?);
    "TensorProd" "tensorprod(g)" [f: Formula, g: Formula] "All products." a => a.formula(0)?.tensorprod(a.formula(1)?);
    "DifferenceMatrix" "difference_matrix(g)" [f: Formula, g: Formula] "All differences." a => a.formula(0)?.difference_matrix(a.formula(1)?);
    "Kron" "keops_kron(g, dimf, dimg)" [f: Formula, g: Formula, dimf: Counts, dimg: Counts] "Kronecker product of tensors of these shapes." a => a.formula(0)?.kron(a.formula(1)?, &a.sizes(2)?, &a.sizes(3)?);
    "TensorDot" "keops_tensordot(g, dimf, dimg, contf, contg, perm=None)" [f: Formula, g: Formula, dimf: Counts, dimg: Counts, contf: Counts, contg: Counts, perm: MaybeCounts] "Sum over pairs of axes: shapes, axes, destinations of the result's axes." a => a.formula(0)?.tensordot(a.formula(1)?, (&a.sizes(2)?, &a.sizes(3)?), (&a.sizes(4)?, &a.sizes(5)?), &a.sizes(6)?);
    "Permute" "permute(dims, to)" [f: Formula, dims: Counts, to: Counts] "A tensor of this shape with axis k moved to the k-th place given." a => a.formula(0)?.permute(&a.sizes(1)?, &a.sizes(2)?);

    "Grad" "grad(v, e)" [f: Formula, v: Variable, e: Formula] "Adjoint of the derivative, applied to the third." a => derive::grad(a.formula(0)?, a.formula(1)?, a.formula(2)?);
    "Diff" "diff(v, e)" [f: Formula, v: Variable, e: Formula] "Derivative in a direction." a => forward::diff(a.formula(0)?, &[(a.formula(1)?.clone(), a.formula(2)?.clone())]);
    "GradMatrix" "grad_matrix(v)" [f: Formula, v: Variable] "The Jacobian, row by row." a => forward::grad_matrix(a.formula(0)?, a.formula(1)?);
    "Divergence" "divergence(v)" [f: Formula, v: Variable] "Trace of the Jacobian." a => forward::divergence(a.formula(0)?, a.formula(1)?);
    "Laplacian" "laplacian(v)" [f: Formula, v: Variable] "Divergence of the gradient." a => forward::laplacian(a.formula(0)?, a.formula(1)?);
    "TraceOperator" "trace_operator(v, w=None)" [f: Formula, v: Variable, w: MaybeFormula] "Trace of a linear function of a variable." a => forward::trace_operator(a.formula(0)?, a.formula(1)?, a.maybe(2));
    "AdjointOperator" "adjoint_operator(v, u)" [f: Formula, v: Variable, u: Formula] "Transpose of a linear function of a variable." a => forward::adjoint_operator(a.formula(0)?, a.formula(1)?, a.formula(2)?);
    "SumLinOperator" "sum_lin_operator(v, wl=None, wr=None)" [f: Formula, v: Variable, wl: MaybeFormula, wr: MaybeFormula] "Sum of the entries of a linear function of a variable." a => forward::sum_operator(a.formula(0)?, a.formula(1)?, a.maybe(2), a.maybe(3));
    "Factorize" "factorize(g)" [f: Formula, g: Formula] "The formula itself: what repeats is computed once anyway." a => Ok(a.formula(0)?.clone());
    "AutoFactorize" "auto_factorize()" [f: Formula] "The formula itself: what repeats is computed once anyway." a => Ok(a.formula(0)?.clone());
}

fn ratio(above: i64, below: i64) -> Result<Expr> {
    Expr::constant(above as f64).divide(&Expr::constant(below as f64))
}

fn number(expr: &Expr) -> Result<&Expr> {
    match expr.dim() {
        1 => Ok(expr),
        _ => {
            let message = format!("ElemT: takes a number, but {}", crate::infer::described(expr));
            Err(Error::formula(message, None))
        }
    }
}

/// A weighted norm whose weight has one of these dimensions.
fn weighted(a: &Arguments, dims: &[usize]) -> Result<Expr> {
    let (weight, vector) = (a.formula(0)?, a.formula(1)?);
    if dims.contains(&weight.dim()) {
        return vector.weighted_sqnorm(weight);
    }
    let rule = format!("the weight must have dimension {}", dims[0]);
    crate::infer::mismatch("SqNorm", &[weight.clone(), vector.clone()], &rule)
}

/// Names that KeOps has or had and formulas have not, with what to say about them.
const ABSENT: &[(&str, &str)] = &[
    ("SoftDTW_SqDist", "soft dynamic time warping is not supported yet"),
    ("GaussKernel", "it is gone from KeOps; write Exp(-SqDist(x,y) * g) * b"),
    ("LaplaceKernel", "it is gone from KeOps; write Exp(-Sqrt(SqDist(x,y) * g)) * b"),
    ("CauchyKernel", "it is gone from KeOps; write Inv(1 + SqDist(x,y) * g) * b"),
];

const COMPLEX: &[&str] = &[
    "Real2Complex",
    "Imag2Complex",
    "ComplexReal",
    "ComplexImag",
    "Conj",
    "ComplexAbs",
    "ComplexSquareAbs",
    "ComplexAngle",
    "ComplexSum",
    "ComplexSumT",
    "ComplexAdd",
    "ComplexSubtract",
    "ComplexMult",
    "ComplexDivide",
    "ComplexRealScal",
    "ComplexExp",
    "ComplexExp1j",
];

/// Why a known name cannot be called, if it is one.
pub(crate) fn absent(name: &str) -> Option<String> {
    if COMPLEX.contains(&name) {
        return Some(format!("{name}: complex formulas are not supported yet"));
    }
    let (_, reason) = ABSENT.iter().find(|(absent, _)| *absent == name)?;
    Some(format!("{name}: {reason}"))
}

/// Names of all functions that can be called, in the order of the tables.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let rows = Id::ALL.into_iter().filter(|id| names::is_real(*id)).map(names::of);
    FUNCTIONS.iter().map(|function| function.name).chain(rows)
}

/// The function of this name on these arguments; None if there is no such function.
///
/// ```
/// use tilework_formula::functions::{Argument, call};
/// use tilework_formula::Expr;
/// let x = Expr::vi(0, 3)?;
/// let norm = call("Norm2", &[Argument::Formula(x.clone())]).unwrap()?;
/// assert_eq!(norm, x.norm2()?);
/// assert!(call("Exq", &[]).is_none());
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn call(name: &str, arguments: &[Argument]) -> Option<Result<Expr>> {
    if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
        return Some(
            check(function, arguments).and_then(|()| (function.build)(&Arguments(arguments))),
        );
    }
    let id = names::elementwise(name)?;
    let takes = [Takes::Formula; 3];
    let takes = &takes[..id.row().arity];
    Some(
        check_all(name, takes, arguments)
            .and_then(|()| Expr::apply(id, &Arguments(arguments).formulas())),
    )
}

/// Whether the second argument of a function is a variable, towards which it is differentiated.
///
/// ```
/// use tilework_formula::functions::takes_variable;
/// assert!(takes_variable("Grad") && takes_variable("Laplacian") && !takes_variable("SqDist"));
/// ```
pub fn takes_variable(name: &str) -> bool {
    let function = FUNCTIONS.iter().find(|function| function.name == name);
    function.is_some_and(|function| function.takes.get(1) == Some(&Takes::Variable))
}

/// Whether a function is one of a formula as a linear map of its variable, which then is in it no more.
///
/// ```
/// use tilework_formula::functions::is_of_linear;
/// assert!(is_of_linear("TraceOperator") && !is_of_linear("Grad"));
/// ```
pub fn is_of_linear(name: &str) -> bool {
    matches!(name, "TraceOperator" | "AdjointOperator" | "SumLinOperator")
}

fn check(function: &Function, arguments: &[Argument]) -> Result<()> {
    check_all(function.name, function.takes, arguments)
}

fn check_all(name: &str, takes: &[Takes], arguments: &[Argument]) -> Result<()> {
    let optional = |takes: &&Takes| {
        matches!(takes, Takes::MaybeFormula | Takes::MaybeCounts | Takes::Formulas)
    };
    let least = takes.len() - takes.iter().filter(optional).count();
    let most = if takes.last() == Some(&Takes::Formulas) { usize::MAX } else { takes.len() };
    if arguments.len() < least || arguments.len() > most {
        let wanted = match most {
            usize::MAX => format!("at least {least}"),
            _ if most == least => format!("{least}"),
            _ => format!("{least} to {most}"),
        };
        let message = format!("{name}: takes {wanted} arguments, not {}", arguments.len());
        return Err(Error::formula(message, None));
    }
    for (k, argument) in arguments.iter().enumerate() {
        let takes = takes.get(k).or(takes.last()).copied().unwrap_or(Takes::Formula);
        if !fits(takes, argument) {
            let message = format!("{name}: argument {} must be {}", k + 1, takes.describe());
            return Err(Error::formula(message, None));
        }
    }
    Ok(())
}

fn fits(takes: Takes, argument: &Argument) -> bool {
    let integer = |least: f64| match argument {
        Argument::Formula(expr) => {
            expr.as_constant().is_some_and(|value| is_integer(value) && value >= least)
        }
        Argument::List(_) => false,
    };
    match takes {
        Takes::Formula | Takes::MaybeFormula | Takes::Formulas => {
            matches!(argument, Argument::Formula(_))
        }
        Takes::Variable => {
            matches!(argument, Argument::Formula(expr) if expr.as_variable().is_some())
        }
        Takes::Integer => integer(f64::NEG_INFINITY),
        Takes::Count => integer(0.0),
        Takes::Counts | Takes::MaybeCounts => match argument {
            Argument::List(numbers) => numbers.iter().all(|x| is_integer(*x) && *x >= 0.0),
            Argument::Formula(_) => false,
        },
    }
}
