//! The reduction of a request: what is folded, into what, and how much of that a thread holds.
//!
//! Made by `pairs` from the request, read wherever a plan is made or printed.

use tilework_backend::{Accuracy, PairReduce};
use tilework_ops::DType;
use tilework_ops::pair_fold::{Finish, Monoid, PairFoldId, PairShape};
use tilework_tape::{Slot, Tape};

use super::slices::{Of, Slices};

/// The most sums of a state whose levels are all in registers.
pub(super) const SUMS_IN_REGISTERS: usize = 8;

/// What is folded, and into what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Folding {
    pub(super) fold: PairFoldId,
    pub(super) shape: PairShape,
    /// Whether that is a slice of what a call folds, or a part.
    pub(super) is_part: bool,
    pub(super) computes: DType,
    pub(super) accumulates: DType,
    pub(super) compensated: bool,
    pub(super) strict: bool,
    /// Whether the outputs are results, not states.
    pub(super) finish: bool,
    /// Whether results are logarithms of what they would be.
    pub(super) logarithm: bool,
    /// The dtype of the values that are written.
    pub(super) output: DType,
}

impl Folding {
    /// The folding of all components of a request.
    pub(super) fn new(request: &PairReduce<'_>) -> Folding {
        let accumulates = request.accumulates();
        let output = request.values.as_ref().map_or(accumulates, |target| target.dtype());
        Folding {
            fold: request.fold,
            shape: request.shape(),
            is_part: false,
            computes: request.computes(),
            accumulates,
            compensated: request.compensates(),
            strict: request.accuracy == Accuracy::Strict,
            finish: request.finish,
            logarithm: false,
            output,
        }
    }

    /// The folding of a sum, without options.
    pub(super) fn of_sum(tape: &Tape) -> Folding {
        let slot =
            tape.outputs().first().map_or(Slot::scalar(DType::Float64), |&slot| tape.slot(slot));
        Folding {
            fold: PairFoldId::Sum,
            shape: PairShape { dim: slot.len as usize, k: 1, weights: 0 },
            is_part: false,
            computes: slot.dtype,
            accumulates: slot.dtype,
            compensated: false,
            strict: false,
            finish: true,
            logarithm: false,
            output: slot.dtype,
        }
    }

    /// The folding of a slice, or of all where there are none.
    pub(super) fn sliced(self, slices: Option<&Slices>) -> Folding {
        let mut shape = self.shape;
        if let Some(slices) = slices {
            *match slices.of {
                Of::Components | Of::Each | Of::Columns => &mut shape.dim,
                Of::Weights => &mut shape.weights,
                Of::Ranks => &mut shape.k,
            } = slices.len;
        }
        Folding { shape, is_part: slices.is_some(), ..self }
    }

    pub(super) fn monoid(&self) -> Monoid {
        self.fold.row().monoid
    }

    /// Whether the K best of a single number are kept, in order.
    pub(super) fn is_ranked(&self) -> bool {
        matches!(self.monoid(), Monoid::Smallest | Monoid::Largest)
            && self.shape.k > 1
            && self.shape.dim == 1
    }

    /// Components that are merged apart, each as a state of its own; 1 where states are merged whole. Apart are those of
    /// many sums and their like: a thread could hold all of them in memory only, which is a gigabyte for all threads of
    /// a card.
    pub(super) fn apart(&self) -> usize {
        let monoid = self.monoid();
        let single = matches!(
            monoid,
            Monoid::Add | Monoid::Multiply | Monoid::Any | Monoid::All | Monoid::Count
        );
        let finish = self.fold.row().finish;
        let single = single
            && (!self.finish || matches!(finish, Finish::AsIs | Finish::OverCount))
            && monoid.values(self.shape) == self.shape.dim;
        if single && self.shape.dim > SUMS_IN_REGISTERS { self.shape.dim } else { 1 }
    }

    /// Bytes of the levels of a row's sums that are seldom looked at, with room for one more sum; 0 where sums are few.
    pub(super) fn seldom_bytes(&self) -> usize {
        let sums = match self.monoid() {
            Monoid::Add | Monoid::Count => self.shape.dim + 1,
            Monoid::Shifted => self.shape.weights + 1,
            _ => 0,
        };
        let many = sums > SUMS_IN_REGISTERS && !self.compensated;
        if many { 2 * sums * self.accumulates.size() } else { 0 }
    }

    /// Bytes of a state in memory.
    pub(super) fn state_bytes(&self) -> usize {
        self.monoid().values(self.shape) * self.accumulates.size()
            + self.monoid().indices(self.shape) * 8
    }

    /// Words of registers of a state that the inner loop touches.
    pub(super) fn words(&self) -> usize {
        let (monoid, size) = (self.monoid(), self.accumulates.size() / 4);
        match monoid {
            Monoid::Smallest | Monoid::Largest if self.shape.k == 1 => 2 * self.shape.dim * size,
            // Places are moved by code of their own.
            Monoid::Smallest | Monoid::Largest => 2 * monoid.values(self.shape) * (size + 1),
            // The shift and what belongs to it, beside the levels of the sums.
            Monoid::Shifted => (9 + 4 * (1 + self.shape.weights)) * size,
            // The levels of many sums that are seldom looked at stay in memory.
            Monoid::Add if self.shape.dim > SUMS_IN_REGISTERS && !self.compensated => {
                2 * self.shape.dim * size
            }
            _ => 4 * monoid.values(self.shape) * size,
        }
    }
}
