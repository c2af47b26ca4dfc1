//! Room for states, which are bytes to the driver, and their merging in pairs.
//!
//! Used by `drive.rs` alone; what the bytes mean is known to the functions of a [`Cell`].

use super::table::Cell;

/// Zeroed room for states, aligned for any of them.
pub(super) struct States(Vec<u128>);

impl States {
    pub(super) fn new(bytes: usize) -> States {
        States(vec![0; bytes.div_ceil(16)])
    }

    pub(super) fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// A pointer to states that several pieces fill, each its own part.
#[derive(Clone, Copy)]
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: pieces write disjoint parts, and nobody reads before all have ended.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The state number `at`, `size` bytes each.
    pub(super) fn state(self, at: usize, size: usize) -> *mut u8 {
        self.0.wrapping_add(at * size)
    }
}

/// Rows of states, merged in pairs as they come: `pairwise.rs` for states that are only bytes.
pub(super) struct Stack {
    cell: &'static Cell,
    n: usize,
    levels: Vec<Option<States>>,
    spare: Vec<States>,
}

impl Stack {
    pub(super) fn new(cell: &'static Cell, n: usize) -> Stack {
        Stack { cell, n, levels: Vec::new(), spare: Vec::new() }
    }

    /// Adds the states that `fill` writes.
    pub(super) fn push(&mut self, fill: impl FnOnce(*mut u8)) {
        let mut states = self.spare.pop().unwrap_or_else(|| States::new(self.n * self.cell.state));
        fill(states.pointer());
        for level in &mut self.levels {
            let Some(mut earlier) = level.take() else {
                *level = Some(states);
                return;
            };
            // SAFETY: both hold `n` states and are different blocks.
            unsafe { (self.cell.merge)(self.n, earlier.pointer(), states.pointer()) };
            self.spare.push(std::mem::replace(&mut states, earlier));
        }
        self.levels.push(Some(states));
    }

    /// The merge of all.
    pub(super) fn into_states(self) -> States {
        let mut all: Option<States> = None;
        for mut earlier in self.levels.into_iter().flatten() {
            if let Some(mut later) = all {
                // SAFETY: both hold `n` states and are different blocks.
                unsafe { (self.cell.merge)(self.n, earlier.pointer(), later.pointer()) };
            }
            all = Some(earlier);
        }
        all.unwrap_or_else(|| {
            let mut states = States::new(self.n * self.cell.state);
            // SAFETY: there is room for `n` states.
            unsafe { (self.cell.init)(self.n, states.pointer()) };
            states
        })
    }

    /// Writes the merge of all to `states`, which have room.
    pub(super) fn finish(self, states: *mut u8) {
        let bytes = self.n * self.cell.state;
        let mut all = self.into_states();
        // SAFETY: both have room for `n` states and are different blocks.
        unsafe { std::ptr::copy_nonoverlapping(all.pointer(), states, bytes) };
    }
}
