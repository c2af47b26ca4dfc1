//! How kernels learn which of two forms of a formula works: `Choice` of `kernels/pairs_ends.cu`.
//!
//! Made by `launching`, and handed on by `launching_wide`.

use super::plan::Plan;
use super::words::words;
use crate::driver::Address;

/// Whom kernels ask whether to work.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Where the largest norms are, if one form does all.
    pub(super) measured: Address,
    /// Where blocks of the expanded form tell whether they refused, if each chooses for itself.
    pub(super) refused: Address,
    pub(super) limit: f64,
    /// Blocks of a form that do what one of the expanded form would have done.
    pub(super) parts: usize,
}

impl Choice {
    /// `Choice` of a plan's kernels.
    pub(super) fn words(&self, plan: &Plan<'_>) -> Vec<u8> {
        let expanded = u64::from(plan.sections.square.is_some());
        let parts = (self.parts as u64) << 32;
        words(&[self.measured, self.refused, self.limit.to_bits(), expanded | parts])
    }

    /// None: by this limit the form is chosen already.
    pub(super) fn made(limit: f64) -> Choice {
        Choice { measured: 0, refused: 0, limit, parts: 1 }
    }
}
