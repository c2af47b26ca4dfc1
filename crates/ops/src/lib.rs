//! The vocabulary of tilework: dtypes and promotion, scalars, the table of operations, the
//! monoids of reductions.
//!
//! Everything that is particular to one operation stands in one row of [`rows`]; everything that is
//! particular to one reduction in one row of [`fold`] (over arrays) or [`pair_fold`] (over pairs).
//! Crates above derive their kernels, methods and tests from these and never match on an operation
//! or a dtype themselves.

#![forbid(unsafe_code)]

pub mod algebra;
pub mod complex;
pub mod dtype;
pub mod evaluate;
pub mod fold;
pub mod number;
pub mod op;
pub mod pair_fold;
pub mod random;
pub mod scalar;
pub mod special;
#[macro_use]
mod table;
pub mod rows;

pub use algebra::{Algebra, Term};
pub use dtype::{Class, DType, FInfo, IInfo, Kind};
pub use fold::{Fold, FoldColumn, FoldId, FoldRow, fold_column};
pub use half::{bf16, f16};
pub use num_complex::Complex;
pub use number::{Number, Scalar};
pub use op::{Column, Entry, Gives, Op, Row, Rule, Tolerance};
pub use pair_fold::{PairFoldId, PairShape, PairState};
pub use random::Distribution;
pub use rows::{COUNT, Id, ROWS, column};
pub use scalar::{Element, Int, Real, Value};
