//! The table of reductions: each is a monoid in four parts (init, step, merge, finish).
//!
//! A reduction first casts elements to the dtype it accumulates in, then folds. `merge(a, b)`
//! combines two partial states where every element of `a` comes before those of `b`; it is
//! associative with `init` as its neutral element, which is what threads, blocks and devices rely
//! on. Backends may fold in any grouping; the reference folds in pairs, so that rounding errors
//! grow with the logarithm of the count.

use std::ops::Range;

use crate::dtype::{Class, DType};
use crate::op::Tolerance::{Exact, Ulp};
use crate::op::{Bool, Gives, Rule, Same, Tolerance};
use crate::scalar::{Element, Value};

/// The index of an element: int64.
pub struct Index;

impl Gives for Index {
    const RULE: Rule = Rule::Index;
    type Of<V: Value> = i64;
    type In<E: Element> = i64;
}

/// What a reduction accumulates in, seen from its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulate {
    /// The input's dtype (in float32 for the half types).
    Same,
    /// 64-bit integers for bool and integers; see [`DType::to_accumulator`].
    Wide,
    /// float64 for bool and integers, the input's dtype otherwise.
    Inexact,
}

/// What a reduction over nothing gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverNothing {
    /// What `init` finishes to.
    Neutral,
    /// An error: there is no answer.
    Error,
}

/// Everything about a reduction that is data.
#[derive(Debug, Clone)]
pub struct FoldRow {
    /// The public name.
    pub name: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
    /// What it accumulates in.
    pub accumulate: Accumulate,
    /// The classes of accumulators it takes, as a mask of [`Class`].
    pub classes: u8,
    /// What it gives, seen from what it accumulates in.
    pub gives: Rule,
    /// What it gives over nothing.
    pub nothing: OverNothing,
    /// The public name of its running form along an axis; None if it has none.
    pub running: Option<&'static str>,
    /// Where tests draw elements from: magnitudes.
    pub domain: Range<f64>,
    /// How far backends, which fold in other groupings, may differ from the meaning.
    pub tolerance: Tolerance,
}

impl FoldRow {
    /// The dtype whose values it folds, given its input's dtype; None where it has no meaning.
    pub const fn accumulates(&self, dtype: DType) -> Option<DType> {
        let wide = match self.accumulate {
            Accumulate::Same => dtype,
            Accumulate::Wide => dtype.to_accumulator(),
            Accumulate::Inexact => match dtype.class() {
                Class::Bool | Class::Int => DType::Float64,
                _ => dtype,
            },
        };
        if self.classes & wide.class() as u8 != 0 { Some(wide) } else { None }
    }

    /// The dtype of its result when it accumulates in `dtype`.
    pub const fn result(&self, dtype: DType) -> DType {
        match self.gives {
            Rule::Same => dtype,
            Rule::Bool => DType::Bool,
            Rule::Part => dtype.part(),
            Rule::Index => DType::Int64,
        }
    }
}

/// A reduction of values to one.
pub trait Fold: 'static {
    /// What it gives.
    type Gives: Gives;

    /// What is known after some elements.
    type State<V: Value>: Copy + Send + Sync;

    /// Its row.
    const ROW: FoldRow;

    /// The state after no element.
    fn init<V: Value>() -> Self::State<V>;

    /// The state after one element more, the one with this index.
    fn step<V: Value>(state: Self::State<V>, value: V, index: i64) -> Self::State<V>;

    /// The state after the elements of `a` followed by those of `b`.
    fn merge<V: Value>(a: Self::State<V>, b: Self::State<V>) -> Self::State<V>;

    /// The result over `count` elements; `correction` is what variances subtract from the count.
    fn finish<V: Value>(
        state: Self::State<V>,
        count: usize,
        correction: f64,
    ) -> <Self::Gives as Gives>::Of<V>;
}

/// Something that a crate wants for every reduction.
pub trait FoldColumn {
    /// What it wants.
    type Cell: Copy;
    /// Where it gets it for reduction `F`.
    type At<F: Fold>: crate::op::Entry<Self::Cell>;
}

macro_rules! folds {
    ($(
        $(#[doc = $doc:literal])+
        $Type:ident $name:ident in $accumulate:ident -> $gives:ident, over nothing $nothing:ident, on [$($class:ident)+] $(running $running:ident)?
        state $state:ty = $init:expr;
        step |$s:ident, $x:ident, $i:ident| $step:expr;
        merge |$a:ident, $b:ident| $merge:expr;
        finish |$f:ident, $n:ident, $correction:ident| $finish:expr;
        test $domain:expr, $tolerance:expr;
    )+) => {
        /// The reductions, one for each row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum FoldId { $($(#[doc = $doc])+ $Type,)+ }

        /// How many reductions there are.
        pub const FOLD_COUNT: usize = [$(FoldId::$Type),+].len();

        /// The rows, in the order of [`FoldId`].
        pub static FOLD_ROWS: [FoldRow; FOLD_COUNT] = [$(<$Type as Fold>::ROW),+];

        impl FoldId {
            /// All reductions, in the order of the table.
            pub const ALL: [FoldId; FOLD_COUNT] = [$(FoldId::$Type),+];

            /// Its row.
            pub fn row(self) -> &'static FoldRow { &FOLD_ROWS[self as usize] }
        }

        /// What a [`FoldColumn`] wants, for every reduction in the order of [`FoldId`].
        pub const fn fold_column<C: FoldColumn>() -> [C::Cell; FOLD_COUNT] {
            [$(<C::At<$Type> as crate::op::Entry<C::Cell>>::VALUE),+]
        }

        $(
            $(#[doc = $doc])+
            pub struct $Type;

            #[allow(unused_variables)]
            impl Fold for $Type {
                type Gives = $gives;
                type State<V: Value> = $state;
                const ROW: FoldRow = FoldRow {
                    name: stringify!($name),
                    doc: concat!($($doc, "\n"),+),
                    accumulate: Accumulate::$accumulate,
                    classes: 0 $(| Class::$class as u8)+,
                    gives: <$gives as Gives>::RULE,
                    nothing: OverNothing::$nothing,
                    running: [$(Some(stringify!($running)),)? None][0],
                    domain: $domain,
                    tolerance: $tolerance,
                };
                #[inline(always)]
                fn init<V: Value>() -> $state { $init }
                #[inline(always)]
                fn step<V: Value>($s: $state, $x: V, $i: i64) -> $state { $step }
                #[inline(always)]
                fn merge<V: Value>($a: $state, $b: $state) -> $state { $merge }
                #[inline(always)]
                fn finish<V: Value>($f: $state, $n: usize, $correction: f64) -> <$gives as Gives>::Of<V> { $finish }
            }
        )+
    };
}

folds! {
    /// Sum of the elements; integers are summed in 64 bits.
    Sum sum in Wide -> Same, over nothing Neutral, on [Int Real Complex] running cumulative_sum
        state V = V::ZERO;
        step |s, x, i| s.plus(x);
        merge |a, b| a.plus(b);
        finish |s, n, correction| s;
        test 0.5..9.0, Ulp(64.0);

    /// Product of the elements; integers are multiplied in 64 bits.
    Prod prod in Wide -> Same, over nothing Neutral, on [Int Real Complex] running cumulative_prod
        state V = V::ONE;
        step |s, x, i| s.times(x);
        merge |a, b| a.times(b);
        finish |s, n, correction| s;
        test 0.9..1.1, Ulp(64.0);

    /// Largest element; NaN if there is one.
    Max max in Same -> Same, over nothing Error, on [Bool Int Real Complex] running cumulative_max
        state Option<V> = None;
        step |s, x, i| Some(match s { Some(m) if m.is_nan() || !m.precedes(x) && !x.is_nan() => m, _ => x });
        merge |a, b| match (a, b) { (Some(_), Some(x)) => Max::step(a, x, 0), (a, None) => a, (None, b) => b };
        finish |s, n, correction| s.unwrap_or(V::ZERO);
        test 0.5..9.0, Ulp(0.0);

    /// Smallest element; NaN if there is one.
    Min min in Same -> Same, over nothing Error, on [Bool Int Real Complex] running cumulative_min
        state Option<V> = None;
        step |s, x, i| Some(match s { Some(m) if m.is_nan() || !x.precedes(m) && !x.is_nan() => m, _ => x });
        merge |a, b| match (a, b) { (Some(_), Some(x)) => Min::step(a, x, 0), (a, None) => a, (None, b) => b };
        finish |s, n, correction| s.unwrap_or(V::ZERO);
        test 0.5..9.0, Ulp(0.0);

    /// Index of the largest element, the first of equals; of the first NaN if there is one.
    ArgMax argmax in Same -> Index, over nothing Error, on [Bool Int Real Complex]
        state Option<(V, i64)> = None;
        step |s, x, i| Some(match s { Some(m) if m.0.is_nan() || !m.0.precedes(x) && !x.is_nan() => m, _ => (x, i) });
        merge |a, b| match (a, b) { (Some(_), Some((x, i))) => ArgMax::step(a, x, i), (a, None) => a, (None, b) => b };
        finish |s, n, correction| s.map_or(-1, |m| m.1);
        test 0.5..9.0, Exact;

    /// Index of the smallest element, the first of equals; of the first NaN if there is one.
    ArgMin argmin in Same -> Index, over nothing Error, on [Bool Int Real Complex]
        state Option<(V, i64)> = None;
        step |s, x, i| Some(match s { Some(m) if m.0.is_nan() || !x.precedes(m.0) && !x.is_nan() => m, _ => (x, i) });
        merge |a, b| match (a, b) { (Some(_), Some((x, i))) => ArgMin::step(a, x, i), (a, None) => a, (None, b) => b };
        finish |s, n, correction| s.map_or(-1, |m| m.1);
        test 0.5..9.0, Exact;

    /// Whether any element is true, that is, not zero.
    Any any in Same -> Bool, over nothing Neutral, on [Bool Int Real Complex]
        state bool = false;
        step |s, x, i| s | x.is_true();
        merge |a, b| a | b;
        finish |s, n, correction| s;
        test 0.5..9.0, Exact;

    /// Whether all elements are true, that is, not zero.
    All all in Same -> Bool, over nothing Neutral, on [Bool Int Real Complex]
        state bool = true;
        step |s, x, i| s & x.is_true();
        merge |a, b| a & b;
        finish |s, n, correction| s;
        test 0.5..9.0, Exact;

    /// How many elements are true, that is, not zero.
    CountNonzero count_nonzero in Same -> Index, over nothing Neutral, on [Bool Int Real Complex]
        state i64 = 0;
        step |s, x, i| s + x.is_true() as i64;
        merge |a, b| a + b;
        finish |s, n, correction| s;
        test 0.5..9.0, Exact;

    /// Arithmetic mean; NaN over nothing.
    Mean mean in Inexact -> Same, over nothing Neutral, on [Real Complex]
        state V = V::ZERO;
        step |s, x, i| s.plus(x);
        merge |a, b| a.plus(b);
        finish |s, n, correction| s.over(n as f64);
        test 0.5..9.0, Ulp(64.0);

    /// Euclidean norm: the square root of the sum of squares.
    Norm norm in Inexact -> Same, over nothing Neutral, on [Real]
        state V = V::ZERO;
        step |s, x, i| s.plus(x.times(x));
        merge |a, b| a.plus(b);
        finish |s, n, correction| V::of_f64(s.to_f64().sqrt());
        test 0.5..9.0, Ulp(64.0);

    /// Variance: the mean square distance from the mean, over count minus correction.
    Var var in Inexact -> Same, over nothing Neutral, on [Real]
        state Moments = Moments::default();
        step |s, x, i| s.merge(Moments::of(x.to_f64()));
        merge |a, b| a.merge(b);
        finish |s, n, correction| V::of_f64(s.variance(correction));
        test 0.5..9.0, Ulp(64.0);

    /// Logarithm of the sum of exponentials, without overflow; minus infinity over nothing.
    LogSumExp logsumexp in Inexact -> Same, over nothing Neutral, on [Real]
        state ScaledSum = ScaledSum::default();
        step |s, x, i| s.merge(ScaledSum { max: x.to_f64(), sum: 1.0 });
        merge |a, b| a.merge(b);
        finish |s, n, correction| V::of_f64(s.max + s.sum.ln());
        test 0.5..9.0, Ulp(64.0);
}

/// Count, mean and sum of squared distances from the mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moments {
    /// How many numbers.
    pub count: f64,
    /// Their mean, rounded,
    pub mean: f64,
    /// and what it lacks: the distance of two means that are near each other, but far from zero, is
    /// known no better than they are.
    pub rest: f64,
    /// Sum of squared distances from the mean.
    pub squares: f64,
}

impl Moments {
    /// The moments of one number.
    pub fn of(x: f64) -> Moments {
        // The variance of anything that is not finite is NaN.
        let squares = if x.is_finite() { 0.0 } else { f64::NAN };
        Moments { count: 1.0, mean: x, rest: 0.0, squares }
    }

    /// The moments of both sets together.
    #[inline(always)]
    pub fn merge(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        if self.count == 0.0 {
            return other;
        }
        if other.count == 0.0 {
            return self;
        }
        let distance = (other.mean - self.mean) + (other.rest - self.rest);
        let shift = distance * (other.count / count);
        let mean = self.mean + shift;
        // Beyond the largest number, the squares alone say what the variance is.
        let mean = if mean.is_finite() { mean } else { self.mean };
        // What rounding took from the sum, whichever of the two is larger.
        let shifted = mean - self.mean;
        let lost = (self.mean - (mean - shifted)) + (shift - shifted);
        Moments {
            count,
            mean,
            rest: if lost.is_finite() { self.rest + lost } else { 0.0 },
            squares: self.squares
                + other.squares
                + distance * distance * (self.count * other.count / count),
        }
    }

    /// Mean square distance, over count minus `correction`; NaN where that is not positive.
    pub fn variance(self, correction: f64) -> f64 {
        let degrees = self.count - correction;
        if degrees > 0.0 { self.squares / degrees } else { f64::NAN }
    }
}

/// The sum of e^x as e^max times a sum of no large terms.
#[derive(Debug, Clone, Copy)]
pub struct ScaledSum {
    /// Largest exponent so far.
    pub max: f64,
    /// Sum of e^(x - max).
    pub sum: f64,
}

impl Default for ScaledSum {
    fn default() -> Self {
        ScaledSum { max: f64::NEG_INFINITY, sum: 0.0 }
    }
}

impl ScaledSum {
    /// Both sums together.
    pub fn merge(self, other: ScaledSum) -> ScaledSum {
        let (low, high) =
            if other.max >= self.max || other.max.is_nan() { (self, other) } else { (other, self) };
        if low.sum == 0.0 || low.max == f64::NEG_INFINITY {
            return if high.max == f64::NEG_INFINITY { ScaledSum::default() } else { high };
        }
        // Equal infinities would give inf - inf; their scale factor is one.
        let scale = if low.max == high.max { 1.0 } else { (low.max - high.max).exp() };
        ScaledSum { max: high.max, sum: high.sum + low.sum * scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold<F: Fold>(values: &[f64], split: usize) -> <F::Gives as Gives>::Of<f64> {
        let run = |range: std::ops::Range<usize>| {
            range.fold(F::init::<f64>(), |state, i| F::step(state, values[i], i as i64))
        };
        F::finish(F::merge(run(0..split), run(split..values.len())), values.len(), 0.0)
    }

    #[test]
    fn merging_at_any_place_gives_the_same() {
        let values = [3.0, -1.0, 7.0, 7.0, 2.0, 7.0, -5.0, -5.0];
        let direct = values.iter().map(|x: &f64| x.exp()).sum::<f64>().ln();
        for split in 0..=values.len() {
            assert_eq!(fold::<Sum>(&values, split), 15.0);
            assert_eq!(fold::<Max>(&values, split), 7.0);
            assert_eq!(fold::<ArgMax>(&values, split), 2);
            assert_eq!(fold::<ArgMin>(&values, split), 6);
            assert_eq!(fold::<CountNonzero>(&values, split), 8);
            assert_eq!(fold::<Norm>(&values, split), 211f64.sqrt());
            assert!((fold::<Var>(&values, split) - 22.859_375).abs() < 1e-12);
            assert!((fold::<LogSumExp>(&values, split) - direct).abs() < 1e-12);
        }
    }

    #[test]
    fn nan_wins_and_the_first_of_them() {
        let values = [3.0, f64::NAN, 7.0, f64::NAN];
        for split in 0..=values.len() {
            assert!(fold::<Max>(&values, split).is_nan() && fold::<Min>(&values, split).is_nan());
            assert_eq!((fold::<ArgMax>(&values, split), fold::<ArgMin>(&values, split)), (1, 1));
            assert!(fold::<Var>(&values, split).is_nan());
        }
    }

    #[test]
    fn logsumexp_of_infinities() {
        let (up, down) = (f64::INFINITY, f64::NEG_INFINITY);
        for split in 0..=2 {
            assert_eq!(fold::<LogSumExp>(&[up, 1.0], split), up);
            assert_eq!(fold::<LogSumExp>(&[up, up], split), up);
            assert_eq!(fold::<LogSumExp>(&[down, down], split), down);
            assert_eq!(fold::<LogSumExp>(&[down, 1.0], split), 1.0);
            assert!(fold::<LogSumExp>(&[f64::NAN, 1.0], split).is_nan());
        }
    }
}
