//! Reductions over pairs: Red_j F(p, x_i, y_j) without the matrix of values.
//!
//! A formula is written with [`LazyTensor`]s, which are formulas with arrays, or as text for a
//! [`Genred`]. A reduction over i (axis 0) or j (axis 1) computes it tile by tile on the arrays'
//! device; derivatives are symbolic and are reductions again. A [`Partial`] is a reduction over
//! some of the indices that can be merged with others. Rooms: `variable` (arrays as variables),
//! `lazy`, `number`, `methods` and `reduce` (LazyTensor), `genred`, `call` (the request), `stream`
//! (long work in blocks, with `cut`, `parts` and `running`), `two_passes` (many weights), `gradient` and `together`, `solve`, `partial`.
//!
//! ```
//! use tilework::Array;
//! use tilework::pairs::LazyTensor;
//! let x = LazyTensor::vi(&Array::from_nested(&[[0.0f32, 0.0], [1.0, 1.0]])?)?;
//! let y = LazyTensor::vj(&Array::from_nested(&[[0.0f32, 1.0], [1.0, 1.0], [3.0, 0.0]])?)?;
//! let nearest = x.sqdist(&y)?.argmin(1)?;
//! assert_eq!(nearest.to_vec::<i64>()?, [0, 1]);
//! # Ok::<(), tilework::Error>(())
//! ```

mod call;
mod cut;
mod genred;
mod gradient;
mod lazy;
mod methods;
mod number;
mod partial;
mod parts;
mod reduce;
mod running;
mod solve;
mod stream;
mod together;
mod two_passes;
mod variable;

pub use call::{Options, Outline, Reduced};
pub use genred::Genred;
pub use lazy::{Along, LazyArg, LazyTensor};
pub use number::Parts;
pub use partial::Partial;
pub use solve::{Columns, Solution, Solve, conjugate_gradient};
pub use tilework_backend::{Accuracy, Named, Progress, Scheme, SumScheme};
pub use tilework_formula::{Axis, Category};
