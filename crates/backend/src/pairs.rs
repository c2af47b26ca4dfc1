//! The request behind formulas: a tape over pairs (i, j), folded over j.
//!
//! i survives and j is reduced, always: whoever wants the other way round exchanges the two in the
//! tape before asking, so that no backend needs to know of axes. The plane of pairs never exists.
//! Made by `tilework::pairs`, read by every backend.

use std::fmt;

use tilework_ops::pair_fold::{PairFoldId, PairShape};
use tilework_ops::{DType, Real};
use tilework_tape::Tape;

use crate::view::{Target, ViewRef};

/// A choice that users make by name: keywords and options of the command line read one list.
pub trait Named: Copy + PartialEq + 'static {
    /// Names and what they choose; the first name of each choice is the one that is shown.
    const NAMES: &'static [(&'static str, Self)];

    /// The choice of this name, in any case.
    fn named(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, choice)| *choice)
    }

    /// The name that is shown.
    fn name(self) -> &'static str {
        let known = Self::NAMES.iter().find(|(_, choice)| *choice == self);
        known.map_or("", |(name, _)| name)
    }
}

/// How sums over pairs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SumScheme {
    /// In blocks and pairs in the dtype of the formula: at most 256 terms one after the other, and
    /// the sums of such blocks in pairs. Relative to the sum of absolute terms, the error is at most
    /// 256 + log2(N / 256) roundings (1.6e-5 in float32). Terms whose roundings mostly go the same
    /// way, as those of equal ones, come to a quarter of it (4e-6), others stay far below. Cards sum in
    /// runs of runs of 64, whose bound is about the same, and on tensor cores one rounding more for each
    /// panel of j: `explain` names that of a call.
    #[default]
    Blocks,
    /// In blocks with compensation: the error is that of one rounding, and no dtype wider than the
    /// formula's is needed. Of arrays that are taken in parts, that of two: of the parts, and of the whole.
    Kahan,
    /// In blocks and pairs in float64.
    Double,
}

impl Named for SumScheme {
    const NAMES: &'static [(&'static str, SumScheme)] = &[
        ("block_sum", SumScheme::Blocks),
        ("kahan_scheme", SumScheme::Kahan),
        ("double", SumScheme::Double),
        ("auto", SumScheme::Blocks),
        ("direct_sum", SumScheme::Blocks),
        ("blocks", SumScheme::Blocks),
        ("kahan", SumScheme::Kahan),
    ];
}

/// How freely a backend may choose the form that a formula is computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Accuracy {
    /// Cheaper forms within declared bounds: expanded squares where they are proven harmless,
    /// exponentials as exact as the rounding of their argument.
    #[default]
    Declared,
    /// The formula as it is written, with the operations of the table. A card may take exp(a), a = d s of a squared distance
    /// d, as it was rounded, and a number s, with an error of |a| 2^-23 + 2^-22 where the data show that it is a normal number.
    Strict,
}

impl Accuracy {
    /// The largest error of an exponent, so the largest relative error of its exponential, that an
    /// expanded square may cause, in units of roundoff: 1e-5 in float32.
    pub const DECLARED_ERROR: f64 = 167.0;
}

impl Named for Accuracy {
    const NAMES: &'static [(&'static str, Accuracy)] =
        &[("declared", Accuracy::Declared), ("strict", Accuracy::Strict)];
}

/// How the plane of pairs is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scheme {
    /// Whatever suits M, N and the device.
    #[default]
    Auto,
    /// Over i only: one worker sees all j of an i.
    OneD,
    /// Over i and over ranges of j, whose states are merged in order.
    TwoD,
}

impl Named for Scheme {
    const NAMES: &'static [(&'static str, Scheme)] =
        &[("auto", Scheme::Auto), ("1d", Scheme::OneD), ("2d", Scheme::TwoD)];
}

/// Who is told how far long work is, and may stop it.
#[derive(Clone, Copy)]
pub struct Progress<'a>(pub &'a (dyn Fn(f64) -> bool + Sync));

impl Progress<'_> {
    /// Tells that this fraction is done; false if the work is to be stopped.
    pub fn goes_on(&self, fraction: f64) -> bool {
        (self.0)(fraction)
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// A reduction of a formula over the second index of pairs.
#[derive(Debug)]
pub struct PairReduce<'a> {
    /// The formula; its first output is reduced, its second (where the reduction has one) is the
    /// weight. Both are float32 or float64, the same for both.
    pub tape: &'a Tape,
    /// Which reduction.
    pub fold: PairFoldId,
    /// How many values are kept, where it keeps several; else 1.
    pub k: usize,
    /// One view for each input of the tape: the batch axes of the outputs (broadcast by strides of
    /// zero), then the index if it varies with one, then its components.
    pub inputs: &'a [ViewRef<'a>],
    /// How many j there are.
    pub n: usize,
    /// The index of the first j: blocks of a longer j have their own.
    pub start: i64,
    /// How sums are taken.
    pub sums: SumScheme,
    /// Which forms are allowed.
    pub accuracy: Accuracy,
    /// How the plane is cut.
    pub scheme: Scheme,
    /// Whether the outputs are results; otherwise they are the states of
    /// [`tilework_ops::PairState`].
    pub finish: bool,
    /// `[batch.., m, width]`, of any real float dtype, or int64 for whole numbers; None where nobody
    /// wants values.
    pub values: Option<Target<'a>>,
    /// `[batch.., m, width]`, int64; None where nobody wants indices.
    pub indices: Option<Target<'a>>,
    /// Who is told.
    pub progress: Option<Progress<'a>>,
}

impl PairReduce<'_> {
    /// The numbers that states and results are made of.
    pub fn shape(&self) -> PairShape {
        let dim = |k: usize| self.tape.outputs().get(k).map(|&slot| self.tape.slot(slot).len);
        PairShape {
            dim: dim(0).unwrap_or(1) as usize,
            k: self.k,
            weights: dim(1).unwrap_or(0) as usize,
        }
    }

    /// What the formula is computed in.
    pub fn computes(&self) -> DType {
        self.tape.outputs().first().map_or(DType::Float64, |&slot| self.tape.slot(slot).dtype)
    }

    /// What is accumulated in. How sums are taken means nothing to extremes, which are values as they come.
    pub fn accumulates(&self) -> DType {
        let row = self.fold.row();
        // float32 counts so far and no further.
        let too_many = row.is_whole && self.n > 1 << f32::MANTISSA_DIGITS;
        match self.sums {
            SumScheme::Double if row.monoid.rounds() => DType::Float64,
            _ if too_many => DType::Float64,
            _ => self.computes(),
        }
    }

    /// Whether what sums are rounded by is added to them.
    pub fn compensates(&self) -> bool {
        self.sums == SumScheme::Kahan && self.fold.row().monoid.adds()
    }

    /// The shape of the outputs: batch axes, then m, then the width.
    pub fn output_shape(&self) -> &[usize] {
        let target = self.values.as_ref().or(self.indices.as_ref());
        target.map_or(&[], |target| target.layout().shape())
    }
}

/// A number that reductions accumulate in, as an element of memory.
pub trait Accumulator: Real + tilework_ops::Element<V = Self, Raw = Self> {}

impl Accumulator for f32 {}
impl Accumulator for f64 {}
