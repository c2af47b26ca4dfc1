//! The buffers of one piece of elementwise work. Called by `chunks`; others size theirs alike.

use std::mem::MaybeUninit;

use super::moves::Line;

/// Bytes of a buffer: small enough that the buffers of a tape stay in the first-level cache.
pub(super) const CHUNK: usize = 2048;

/// How many buffers an arena has on the stack.
const INLINE: usize = 6;

/// Memory for the buffers of one piece of work, aligned to cache lines: on the stack if it fits.
pub(super) struct Arena {
    inline: MaybeUninit<[Line; INLINE * CHUNK / 64]>,
    heap: Vec<MaybeUninit<Line>>,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { inline: MaybeUninit::uninit(), heap: Vec::new() }
    }

    /// The first of `count` buffers, which follow each other.
    pub(super) fn take(&mut self, count: usize) -> *mut u8 {
        if count <= INLINE {
            return self.inline.as_mut_ptr().cast();
        }
        self.heap.resize_with(count * CHUNK / 64, MaybeUninit::uninit);
        self.heap.as_mut_ptr().cast()
    }
}
