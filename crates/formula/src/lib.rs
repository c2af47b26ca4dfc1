//! Symbolic formulas: parse, print, check, simplify, differentiate, lower to a tape.
//!
//! A formula F(p, x_i, y_j) is an [`Expr`]: an immutable graph whose equal parts are one. It comes
//! from text ([`parse`]) or from methods ([`Expr::vi`], [`Expr::exp`], ...), is simplified while it
//! is built ([`rules`]), differentiated any number of times ([`mod@derive`], [`forward`]), reduced over
//! i or j ([`Reduction`]), and leaves as a tape ([`lower()`]). There is no array and no backend here;
//! [`Expr::evaluate`] and [`Reduction::evaluate`] are the oracle in float64.
//!
//! ```
//! use tilework_formula::parse::{Meaning, parse};
//! let text = "Sum_Reduction(Exp(-SqDist(x, y)) * b, 0)";
//! let parsed = parse(text, &["x = Vi(2)", "y = Vj(2)", "b = Vj(1)"])?;
//! let Meaning::Reduction(sum) = parsed.meaning else { unreachable!() };
//! let (values, _) = sum.evaluate(&[&[0.0, 0.0], &[0.0, 0.0, 0.0, 1.0], &[3.0, 2.0]], 1, 2)?;
//! assert!((values[0] - (3.0 + 2.0 * (-1f64).exp())).abs() < 1e-15);
//! # Ok::<(), tilework_error::Error>(())
//! ```

#![forbid(unsafe_code)]

mod adjoint;
mod branches;
mod build;
mod compose;
pub mod declare;
pub mod derive;
mod evaluate;
pub mod expr;
pub mod forward;
pub mod functions;
mod infer;
mod intern;
mod lex;
pub mod lower;
pub mod methods;
pub mod names;
pub mod parse;
pub mod passes;
mod print;
pub mod reduction;
pub mod rules;
mod suggest;
mod tensor;

pub use adjoint::{Adjoint, Need, Saved};
pub use expr::{Category, Expr, Kind, Operands, POSITIONS, Variable};
pub use infer::{MAX_AXES, MAX_DIM};
pub use lower::{Lowered, lower, lower_for};
pub use passes::Purpose;
pub use reduction::{Axis, Reduction, State};
pub use tilework_ops::PairShape as Shape;
