//! How kernels learn which of two forms of a formula works: `Choice` of `kernels/pairs_ends.cu`.
//!
//! Made by `launching`, and handed on by `launching_wide`.

use super::plan::Plan;
use super::words::words;
use crate::driver::Address;

/// What kernels look at to know whether they are to work.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Where the largest norms are, if one form does all; otherwise 0.
    pub(super) measured: Address,
    /// Where blocks of the expanded form tell whether they refused, if each chooses for itself; otherwise 0.
    pub(super) refused: Address,
    /// Norms up to which the expanded form may be used.
    pub(super) limit: f64,
    /// Blocks of a form that do what one of the expanded form would have done: `parts` of the kernels.
    pub(super) blocks_for_one: usize,
}

impl Choice {
    /// `Choice` of a plan's kernels, as bytes.
    pub(super) fn words(&self, plan: &Plan<'_>) -> Vec<u8> {
        let expanded = u64::from(plan.sections.square.is_some() || plan.right.is_some());
        let blocks_for_one = (self.blocks_for_one as u64) << 32;
        words(&[self.measured, self.refused, self.limit.to_bits(), expanded | blocks_for_one])
    }

    /// The choice of kernels that work without asking, since their form is chosen already. The limit is for forms whose
    /// blocks look at their own norms.
    pub(super) fn made(limit: f64) -> Choice {
        Choice { measured: 0, refused: 0, limit, blocks_for_one: 1 }
    }
}
