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

/// `Partial` of the kernels: where the values and indices of the states of ranges are, and of ranks in slices what `Rows`
/// of `launching_rows` has as `last`.
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

/// Structures of the kernels: numbers one after another, in the order and of the width that the kernels declare, with no gap
/// between them.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident of $bytes:literal { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$doc])*
        pub(super) struct $name { $(pub(super) $field: $type),+ }

        impl $name {
            pub(super) fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity($bytes);
                $(bytes.extend(self.$field.to_le_bytes());)+
                bytes
            }
        }

        const _: () = assert!(0 $(+ size_of::<$type>())+ == $bytes, "as the kernels assert");
    )+};
}

structures! {
    /// `Shape` of `pairs_ends.cu`.
    ShapeWords of 80 {
        m: u64, n: u64, range: u64, start: i64,
        blocks: u32, ranges: u32, lanes: u32, batches: u32, first_batch: u32, first: u32, first_range: u32, unused: u32,
        magic: u64, shift: u64,
    }
    /// `Wide` of `pairs_parts.cu`.
    WideWords of 120 {
        rows: Address, columns: Address, of_columns: Address, row_norms: Address, right: Address, centre: Address,
        row_count: u32, column_count: u32, depth: u32, deep: u32,
        error: f32, least: f32,
        of_norm: f32, of_split: f32, of_largest: f32, of_later: f32, of_centre: f32,
        goes_on: u32, ends: u32,
        dim: u32, first: u32, from: u32, alike: u32, sides: u32,
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
        // Where components are taken one by one, the ranks of one have those of all others between them.
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

/// `Shape` of the kernels, as bytes, of some rows and j; `start` is the index of the first j, and behind the batches are
/// the first block and range.
pub(super) fn shape(
    rows: [usize; 2],
    start: i64,
    cut: Cut,
    batches: Range<usize>,
    [first, range]: [usize; 2],
) -> Vec<u8> {
    let [m, n] = rows.map(|number| number as u64);
    let (magic, shift) = launch::wide_magic(m);
    ShapeWords {
        m,
        n,
        range: cut.range as u64,
        start,
        blocks: cut.blocks as u32,
        ranges: cut.ranges as u32,
        lanes: cut.lanes as u32,
        batches: batches.len() as u32,
        first_batch: batches.start as u32,
        first: first as u32,
        first_range: range as u32,
        unused: 0,
        magic,
        shift: shift.into(),
    }
    .bytes()
}

/// `Apart` of the kernel that merges so many components apart, as bytes.
pub(super) fn apart(count: usize) -> Vec<u8> {
    let (magic, shift) = launch::wide_magic(count as u64);
    words(&[count as u64, magic, shift.into()])
}

/// `Output` of the kernels, as bytes; its numbers are so many components apart.
fn output(target: Option<&Target<'_>>, apart: usize, session: &Session<'_>) -> Vec<u8> {
    let Some(target) = target else { return words(&[0, 0, 0]) };
    let (row, component) = steps(target.layout(), true);
    let component = component * apart as isize;
    words(&[launch::target(target, session), row as u64, component as u64])
}

/// How far it is from one row to the next, and from one component to the next, in elements.
pub(super) fn steps(layout: &Layout, has_rows: bool) -> (isize, isize) {
    match (layout.strides(), has_rows) {
        ([.., row, component], true) => (*row, *component),
        ([.., component], _) => (0, *component),
        _ => (0, 0),
    }
}

/// Numbers as bytes.
pub(super) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
