//! The table of reductions over pairs: each is a monoid in four parts over plain states.
//!
//! `init`, `step(values, weight, index)`, `merge`, `finish`. Merging is associative with `init` as
//! its neutral element; extremes do not depend on the order of blocks either, since ties go to the
//! smaller index. NaN never wins an extreme, indices are integers, and a reduction over nothing
//! gives its neutral value and index -1. Values are f32 or f64, whatever the formula computes in.
//! Formulas, requests and every backend name these rows; how sums are grouped is a backend's own
//! affair and is judged by tolerance.

mod extremes;

use crate::dtype::DType;
use crate::scalar::Real;
use extremes::{step, zip};

/// Whether a reduction takes a second formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It does not.
    None,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// What a state is, and how values enter it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Monoid {
    /// Sums.
    Add,
    /// Products.
    Multiply,
    /// Whether one is not zero.
    Any,
    /// Whether none is zero.
    All,
    /// How many are not zero.
    Count,
    /// The smallest and their indices.
    Smallest,
    /// The largest and their indices.
    Largest,
    /// The largest exponent m, the sum of exp(F - m), and the same sum for each weight.
    Shifted,
}

/// What a state becomes in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Itself.
    AsIs,
    /// Divided by the count.
    OverCount,
    /// Logarithms of the sums.
    LogSums,
    /// The largest exponent and the sums.
    ShiftedSums,
    /// Weighted sums divided by the plain one.
    SoftMean,
}

/// Everything about a reduction that is data.
#[derive(Debug, Clone, Copy)]
pub struct PairFoldRow {
    /// Its name, as `reduction_op=` and before `_Reduction` in text.
    pub name: &'static str,
    /// What it means, as a sentence.
    pub doc: &'static str,
    /// Whether it takes the K smallest or largest.
    pub takes_k: bool,
    /// Whether it takes a second formula.
    pub weight: Weight,
    /// Whether the formula must be a number; see [`PairFoldRow::takes`].
    pub scalar: bool,
    /// Whether values are part of its result.
    pub gives_values: bool,
    /// Whether its values are whole numbers, which are exact and given as int64.
    pub is_whole: bool,
    /// Whether indices are part of its result.
    pub gives_indices: bool,
    /// Its state.
    pub monoid: Monoid,
    /// Its end.
    pub finish: Finish,
}

macro_rules! flag {
    (no) => {
        false
    };
    ($yes:ident) => {
        true
    };
}

macro_rules! is_whole {
    (counts) => {
        true
    };
    ($other:ident) => {
        false
    };
}

macro_rules! table {
    ($($Id:ident $name:literal $doc:literal
        [$k:ident $weight:ident $scalar:ident] -> $values:ident $indices:ident,
        $monoid:ident $finish:ident;)+) => {
        /// The reductions over pairs, one for each row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum PairFoldId { $(#[doc = $doc] $Id,)+ }

        /// The rows, in the order of [`PairFoldId`].
        pub static PAIR_FOLD_ROWS: &[PairFoldRow] = &[$(PairFoldRow {
            name: $name,
            doc: $doc,
            takes_k: flag!($k),
            weight: Weight::$weight,
            scalar: flag!($scalar),
            gives_values: flag!($values),
            is_whole: is_whole!($values),
            gives_indices: flag!($indices),
            monoid: Monoid::$monoid,
            finish: Finish::$finish,
        }),+];

        impl PairFoldId {
            /// All reductions, in the order of the table.
            pub const ALL: &[PairFoldId] = &[$(PairFoldId::$Id),+];
        }
    };
}

table! {
    Sum "Sum" "Sum of the values; 0 over nothing." [no None no] -> values no, Add AsIs;
    Mean "Mean" "Mean of the values; NaN over nothing." [no None no] -> values no, Add OverCount;
    Prod "Prod" "Product of the values; 1 over nothing." [no None no] -> values no, Multiply AsIs;
    Any "Any" "1 if a value is not 0; 0 over nothing." [no None no] -> values no, Any AsIs;
    All "All" "1 if no value is 0; 1 over nothing." [no None no] -> values no, All AsIs;
    Count "Count" "How many values are not 0, in int64." [no None no] -> counts no, Count AsIs;
    Min "Min" "The smallest value; infinity over nothing." [no None no] -> values no, Smallest AsIs;
    Max "Max" "The largest value; minus infinity over nothing." [no None no] -> values no, Largest AsIs;
    ArgMin "ArgMin" "Index of the smallest value." [no None no] -> no indices, Smallest AsIs;
    ArgMax "ArgMax" "Index of the largest value." [no None no] -> no indices, Largest AsIs;
    MinArgMin "Min_ArgMin" "The smallest value and its index." [no None no] -> values indices, Smallest AsIs;
    MaxArgMax "Max_ArgMax" "The largest value and its index." [no None no] -> values indices, Largest AsIs;
    KMin "KMin" "The K smallest values, ascending; infinity where there are fewer." [k None no] -> values no, Smallest AsIs;
    ArgKMin "ArgKMin" "Indices of the K smallest values; -1 where there are fewer." [k None no] -> no indices, Smallest AsIs;
    KMinArgKMin "KMin_ArgKMin" "The K smallest values and their indices." [k None no] -> values indices, Smallest AsIs;
    KMax "KMax" "The K largest values, descending; minus infinity where there are fewer." [k None no] -> values no, Largest AsIs;
    ArgKMax "ArgKMax" "Indices of the K largest values; -1 where there are fewer." [k None no] -> no indices, Largest AsIs;
    KMaxArgKMax "KMax_ArgKMax" "The K largest values and their indices." [k None no] -> values indices, Largest AsIs;
    LogSumExp "LogSumExp" "Logarithm of the (weighted) sum of exponentials; minus infinity over nothing." [no Optional scalar] -> values no, Shifted LogSums;
    LogSumExpWeight "LogSumExpWeight" "Logarithm of the weighted sum of exponentials." [no Required scalar] -> values no, Shifted LogSums;
    MaxSumShiftExp "Max_SumShiftExp" "Largest value m, then the sum of exp(F - m)." [no None scalar] -> values no, Shifted ShiftedSums;
    MaxSumShiftExpWeight "Max_SumShiftExpWeight" "Largest value m, then the weighted sums of exp(F - m)." [no Required scalar] -> values no, Shifted ShiftedSums;
    SumSoftMaxWeight "SumSoftMaxWeight" "Mean of the weights, weighed by exp(F); NaN over nothing." [no Required scalar] -> values no, Shifted SoftMean;
}

/// The numbers that states are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PairShape {
    /// Dimension of the formula.
    pub dim: usize,
    /// How many values are kept, 1 where there is no choice.
    pub k: usize,
    /// Dimension of the weight, 0 where there is none.
    pub weights: usize,
}

impl PairShape {
    /// How many numbers exponentials hold for a component: the exponent and its sums.
    pub fn sums(self) -> usize {
        2 + self.weights
    }
}

/// What is known after some pairs: plain arrays.
///
/// Extremes hold `k * dim` values, best first, and their indices, -1 where there is none yet.
/// Exponentials hold, for one component of F after the other, the largest exponent m, the sum of
/// exp(F - m), and the same sum for each weight. Everything else holds `dim` values.
#[derive(Debug, Clone, PartialEq)]
pub struct PairState<A = f64> {
    /// How many pairs.
    pub count: u64,
    /// Values.
    pub values: Vec<A>,
    /// Indices of values, for extremes.
    pub indices: Vec<i64>,
}

impl Monoid {
    /// How many values a state has.
    pub fn values(self, shape: PairShape) -> usize {
        match self {
            Monoid::Smallest | Monoid::Largest => shape.k * shape.dim,
            Monoid::Shifted => shape.dim * shape.sums(),
            _ => shape.dim,
        }
    }

    /// Whether values are added up, so that it matters how.
    pub fn adds(self) -> bool {
        matches!(self, Monoid::Add | Monoid::Count | Monoid::Shifted)
    }

    /// Whether a state is rounded as pairs enter it. Else it holds values as they came, or flags, and a wider number would
    /// hold nothing more.
    pub fn rounds(self) -> bool {
        self.adds() || self == Monoid::Multiply
    }

    /// How many indices a state has.
    pub fn indices(self, shape: PairShape) -> usize {
        match self {
            Monoid::Smallest | Monoid::Largest => shape.k * shape.dim,
            _ => 0,
        }
    }

    /// The value that a state begins with in place `k` of a component.
    pub fn neutral<A: Real>(self, k: usize) -> A {
        match self {
            Monoid::Add | Monoid::Any | Monoid::Count => A::ZERO,
            Monoid::Multiply | Monoid::All => A::ONE,
            Monoid::Smallest => A::of(f64::INFINITY),
            Monoid::Largest => A::of(f64::NEG_INFINITY),
            Monoid::Shifted if k == 0 => A::of(f64::NEG_INFINITY),
            Monoid::Shifted => A::ZERO,
        }
    }
}

impl PairFoldRow {
    /// Whether it takes formulas of this shape. What must be a number may be a vector all the same
    /// if its logarithm is taken without weights: that of each component.
    pub fn takes(&self, shape: PairShape) -> bool {
        let by_components = self.finish == Finish::LogSums && shape.weights == 0;
        !self.scalar || shape.dim == 1 || by_components
    }

    /// The dtype of its values, where the variables have this one.
    pub fn result(&self, dtype: DType) -> DType {
        if self.is_whole { DType::Int64 } else { dtype }
    }

    /// The dtype of its states, where they are accumulated in this one. Counts are merged with
    /// others of which nobody knows how many there are.
    pub fn states(&self, accumulates: DType) -> DType {
        if self.is_whole { DType::Float64 } else { accumulates }
    }
}

impl PairFoldId {
    /// Its row.
    pub fn row(self) -> &'static PairFoldRow {
        &PAIR_FOLD_ROWS[self as usize]
    }

    /// How many values, and as many indices, one result has.
    ///
    /// ```
    /// use tilework_ops::pair_fold::{PairFoldId, PairShape};
    /// assert_eq!(PairFoldId::ArgKMin.width(PairShape { dim: 2, k: 5, weights: 0 }), 10);
    /// ```
    pub fn width(self, shape: PairShape) -> usize {
        let row = self.row();
        match (row.monoid, row.finish) {
            (Monoid::Shifted, Finish::ShiftedSums) => 1 + shape.weights.max(1),
            (Monoid::Shifted, _) => shape.dim * shape.weights.max(1),
            (monoid, _) => monoid.values(shape),
        }
    }

    /// The state after nothing.
    pub fn init<A: Real>(self, shape: PairShape) -> PairState<A> {
        let monoid = self.row().monoid;
        PairState {
            count: 0,
            values: (0..monoid.values(shape)).map(|k| monoid.neutral(k % shape.sums())).collect(),
            indices: vec![-1; monoid.indices(shape)],
        }
    }

    /// One pair more: the values of the formula (and of the weight) at this index.
    ///
    /// ```
    /// use tilework_ops::pair_fold::{PairFoldId, PairShape};
    /// let shape = PairShape { dim: 1, k: 1, weights: 0 };
    /// let mut state = PairFoldId::ArgMin.init(shape);
    /// for (index, value) in [3.0f32, 1.0, f32::NAN, 1.0].iter().enumerate() {
    ///     PairFoldId::ArgMin.step(shape, &mut state, &[*value], &[], index as i64);
    /// }
    /// assert_eq!(PairFoldId::ArgMin.finish(shape, state).indices, [1]);
    /// ```
    pub fn step<A: Real>(
        self,
        shape: PairShape,
        state: &mut PairState<A>,
        values: &[A],
        weight: &[A],
        index: i64,
    ) {
        state.count += 1;
        let (held, at) = (&mut state.values[..], &mut state.indices[..]);
        match self.row().monoid {
            Monoid::Add => each(held, values, |a, b| a + b),
            Monoid::Multiply => each(held, values, |a, b| a * b),
            Monoid::Any => each(held, values, |a, b| truth(a.is_true() || b.is_true())),
            Monoid::All => each(held, values, |a, b| truth(a.is_true() && b.is_true())),
            Monoid::Count => each(held, values, |a, b| a + truth(b.is_true())),
            Monoid::Smallest => step(shape, (held, at), (values, index), |a, b| a < b),
            Monoid::Largest => step(shape, (held, at), (values, index), |a, b| a > b),
            Monoid::Shifted => {
                let sums: Vec<A> = [A::ONE].iter().chain(weight).copied().collect();
                for (held, value) in held.chunks_exact_mut(shape.sums()).zip(values) {
                    shift_into(held, *value, &sums);
                }
            }
        }
    }

    /// The pairs of another state too.
    pub fn merge<A: Real>(self, shape: PairShape, state: &mut PairState<A>, other: &PairState<A>) {
        state.count += other.count;
        let into = (&mut state.values[..], &mut state.indices[..]);
        self.merge_row(shape, into, (&other.values, &other.indices));
    }

    /// [`PairFoldId::merge`] for states that lie side by side in arrays: the values and the indices
    /// of one row, and of the same row of another array.
    pub fn merge_row<A: Real>(
        self,
        shape: PairShape,
        (held, at): (&mut [A], &mut [i64]),
        (values, indices): (&[A], &[i64]),
    ) {
        match self.row().monoid {
            Monoid::Add | Monoid::Count => each(held, values, |a, b| a + b),
            Monoid::Multiply => each(held, values, |a, b| a * b),
            Monoid::Any => each(held, values, |a, b| truth(a.is_true() || b.is_true())),
            Monoid::All => each(held, values, |a, b| truth(a.is_true() && b.is_true())),
            Monoid::Smallest => zip(shape, (held, at), (values, indices), |a, b| a < b),
            Monoid::Largest => zip(shape, (held, at), (values, indices), |a, b| a > b),
            Monoid::Shifted => {
                let components = held.chunks_exact_mut(shape.sums());
                for (held, of) in components.zip(values.chunks_exact(shape.sums())) {
                    shift_into(held, of[0], &of[1..]);
                }
            }
        }
    }

    /// The result: [`PairFoldId::width`] values, and as many indices for extremes.
    pub fn finish<A: Real>(self, shape: PairShape, mut state: PairState<A>) -> PairState<A> {
        let width = self.finish_row(shape, state.count, &mut state.values).len();
        state.values.drain(..state.values.len() - width);
        state
    }

    /// [`PairFoldId::finish`] in place, for the values of one row of many: they are its last
    /// [`PairFoldId::width`] numbers, and indices are what they were.
    pub fn finish_row<A: Real>(self, shape: PairShape, count: u64, values: &mut [A]) -> &mut [A] {
        // The sums that a reduction is about: the weighted ones, or the plain one without weights.
        let first = if shape.weights == 0 { 1 } else { 2 };
        match self.row().finish {
            Finish::AsIs => values,
            Finish::OverCount => {
                let count = A::of(count as f64);
                values.iter_mut().for_each(|value| *value = *value / count);
                values
            }
            Finish::LogSums => {
                let own = shape.sums();
                // From the last on, each to a place that has been read.
                let mut to = values.len();
                for component in (0..shape.dim).rev() {
                    let max = values[component * own];
                    for k in (first..own).rev() {
                        let sum = values[component * own + k];
                        to -= 1;
                        values[to] = max + sum.by(f64::ln);
                    }
                }
                &mut values[to..]
            }
            Finish::ShiftedSums => {
                values[first - 1] = values[0];
                &mut values[first - 1..]
            }
            Finish::SoftMean => {
                let total = values[1];
                let sums = &mut values[first..];
                sums.iter_mut().for_each(|sum| *sum = *sum / total);
                sums
            }
        }
    }
}

fn truth<A: Real>(is: bool) -> A {
    if is { A::ONE } else { A::ZERO }
}

fn each<A: Real>(held: &mut [A], values: &[A], f: impl Fn(A, A) -> A) {
    for (held, value) in held.iter_mut().zip(values) {
        *held = f(*held, *value);
    }
}

/// Adds sums that are scaled by exp(-exponent).
fn shift_into<A: Real>(state: &mut [A], exponent: A, sums: &[A]) {
    let held = state[0];
    // NaN wins, and stays.
    let max = if held.is_nan() || held > exponent { held } else { exponent };
    // Equal infinities would give inf - inf: their scale factor is one, and that of minus infinity,
    // the exponential of which is 0, is 0. So is what it does to a weight, if that is finite.
    let factor = |of: A| match of {
        _ if of == A::of(f64::NEG_INFINITY) => A::ZERO,
        _ if of == max => A::ONE,
        _ => (of - max).by(f64::exp),
    };
    let (keep, take) = (factor(held), factor(exponent));
    state[0] = max;
    for (held, sum) in state[1..].iter_mut().zip(sums) {
        *held = *held * keep + *sum * take;
    }
}
