//! Small blocks that are kept for reuse, for each thread: lists without a lock.
//!
//! A block that is kept holds the address of the next one in its first bytes, so taking one and
//! putting it back are a few instructions. What a thread keeps is released when it ends. Called by
//! `host` alone, which sees to it that the blocks of a class have one size.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use super::{CLASSES, Class};

/// How many blocks of each class a thread keeps: some of every size, and of the smallest, which come and go by
/// the hundred where a program walks over elements, as many as take no more room than a few large ones.
const KEPT: [u32; CLASSES] = {
    let mut kept = [16; CLASSES];
    let mut index = 0;
    while index < CLASSES {
        let many = (64 << 10) / Class::at(index).size as u32;
        if many > kept[index] {
            kept[index] = many;
        }
        index += 1;
    }
    kept
};

/// The blocks of one class.
struct List {
    first: Cell<*mut u8>,
    len: Cell<u32>,
}

struct Lists([List; CLASSES]);

thread_local! {
    static LISTS: Lists = const {
        Lists([const { List { first: Cell::new(ptr::null_mut()), len: Cell::new(0) } }; CLASSES])
    };
}

impl List {
    #[inline]
    fn take(&self) -> Option<NonNull<u8>> {
        let first = NonNull::new(self.first.get())?;
        // SAFETY: a block in a list belongs to the list, and its first bytes are the address that
        // `put` wrote there.
        self.first.set(unsafe { first.cast::<*mut u8>().read() });
        self.len.set(self.len.get() - 1);
        Some(first)
    }

    /// Keeps a block unless there are `most` already.
    ///
    /// # Safety
    /// As [`put`].
    #[inline]
    unsafe fn put(&self, block: NonNull<u8>, most: u32) -> bool {
        if self.len.get() >= most {
            return false;
        }
        // SAFETY: the block is the caller's to give, aligned and longer than an address.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block.as_ptr());
        self.len.set(self.len.get() + 1);
        true
    }
}

impl Lists {
    /// Gives every block back to the system.
    fn release(&self) {
        for (index, list) in self.0.iter().enumerate() {
            while let Some(block) = list.take() {
                // SAFETY: blocks in the list of a class come from `super::fresh` with its size, and
                // this one has left the list.
                unsafe { super::release(block, Class::at(index).size) };
            }
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.release();
    }
}

/// A block of the class, if this thread keeps one.
#[inline]
pub(super) fn take(class: Class) -> Option<NonNull<u8>> {
    LISTS.try_with(|lists| lists.0[class.index].take()).ok().flatten()
}

/// Keeps a block; false if there is no room, and then the block is still the caller's.
///
/// # Safety
/// The block comes from `super::fresh` with the size of the class, and nobody uses it any more.
#[inline]
pub(super) unsafe fn put(class: Class, block: NonNull<u8>) -> bool {
    // SAFETY: the caller's promise.
    LISTS
        .try_with(|lists| unsafe { lists.0[class.index].put(block, KEPT[class.index]) })
        .unwrap_or(false)
}

/// Gives everything that this thread keeps back to the system.
pub(super) fn empty() {
    let _ = LISTS.try_with(Lists::release);
}
