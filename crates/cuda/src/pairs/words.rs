//! The arguments of kernels as bytes: structures of `kernels/pairs_ends.cu`, and `Inputs`.
//!
//! Called by `launching` and `launching_wide`.

use std::ops::Range;

use tilework_backend::{Session, Target};
use tilework_layout::Layout;
use tilework_tape::Per;

use super::Job;
use super::choice::Choice;
use super::cut::Cut;
use super::plan::{Plan, Sizes};
use super::slices::Of;
use crate::driver::Address;
use crate::launch::{self, Args};

/// `Partial` of the kernels: values and indices of the states of ranges, and what `Rows` has of slices.
#[derive(Clone, Copy)]
pub(super) struct States {
    pub(super) states: [Address; 2],
    pub(super) last: [u64; 3],
}

impl From<[Address; 2]> for States {
    fn from(states: [Address; 2]) -> States {
        States { states, last: [0; 3] }
    }
}

impl Job<'_> {
    /// The last arguments of kernels that reduce or merge.
    pub(super) fn ends(
        &self,
        session: &Session<'_>,
        plan: &Plan<'_>,
        args: Args,
        States { states, last }: States,
        choice: Choice,
    ) -> Args {
        // Ranks of one component after the other have those of others between them.
        let apart = match plan.slices {
            Some(slices) if slices.of == Of::Each => self.request.shape().dim,
            _ => 1,
        };
        args.bytes(&output(self.request.values.as_ref(), apart, session))
            .bytes(&output(self.request.indices.as_ref(), apart, session))
            .bytes(&words(&[states[0], states[1], last[0], last[1], last[2]]))
            .bytes(&choice.words(plan))
    }

    /// `Inputs` of a plan's kernels.
    pub(super) fn inputs(&self, session: &Session<'_>, plan: &Plan<'_>) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .views(plan)
            .flat_map(|(view, per)| {
                let (row, component) = steps(view.layout(), per != Per::Once);
                words(&[launch::source(view, session), row as u64, component as u64])
            })
            .collect();
        // A formula of no variable still has the argument, and so has one of no number.
        if bytes.is_empty() {
            bytes = words(&[0, 0, 0]);
        }
        let without = bytes.len();
        bytes.extend(plan.arguments().flat_map(u64::to_le_bytes));
        if bytes.len() == without {
            bytes.extend(words(&[0]));
        }
        bytes
    }

    /// `Shape` of the kernels, for a launch over the whole call that begins with this block and range.
    pub(super) fn shape(&self, cut: Cut, first: [usize; 2]) -> Vec<u8> {
        let Sizes { batches, m, n, .. } = self.sizes;
        shape([m, n], self.request.start, cut, 0..batches, first)
    }
}

/// `Shape` of the kernels: rows and j, the index of the first j; batches; the first block and range.
pub(super) fn shape(
    rows: [usize; 2],
    start: i64,
    cut: Cut,
    batches: Range<usize>,
    [first, range]: [usize; 2],
) -> Vec<u8> {
    let mut bytes = words(&[rows[0], rows[1], cut.range].map(|number| number as u64));
    bytes.extend(start.to_le_bytes());
    let short = [cut.blocks, cut.ranges, cut.lanes, batches.len(), batches.start, first, range, 0];
    bytes.extend(short.iter().flat_map(|&number| (number as u32).to_le_bytes()));
    let (magic, shift) = launch::wide_magic(rows[0] as u64);
    bytes.extend(words(&[magic, shift.into()]));
    debug_assert_eq!(bytes.len(), 80, "`Shape` of the kernels");
    bytes
}

/// `Apart` of the kernel that merges so many components apart.
pub(super) fn apart(count: usize) -> Vec<u8> {
    let (magic, shift) = launch::wide_magic(count as u64);
    words(&[count as u64, magic, shift.into()])
}

/// `Output` of the kernels, whose numbers are so many components apart.
fn output(target: Option<&Target<'_>>, apart: usize, session: &Session<'_>) -> Vec<u8> {
    let Some(target) = target else { return words(&[0, 0, 0]) };
    let (row, component) = steps(target.layout(), true);
    let component = component * apart as isize;
    words(&[launch::target(target, session), row as u64, component as u64])
}

/// From one row to the next, and from one component to the next, in elements.
pub(super) fn steps(layout: &Layout, has_rows: bool) -> (isize, isize) {
    match (layout.strides(), has_rows) {
        ([.., row, component], true) => (*row, *component),
        ([.., component], _) => (0, *component),
        _ => (0, 0),
    }
}

pub(super) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
