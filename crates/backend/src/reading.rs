//! Several operations of one thread that see blocks as one would: what they read is held from the first
//! to the last.
//!
//! Each of them takes its guards as always. Where a writer waits, new readers stand back for it
//! (`lock`); those of a thread that holds the block already must not, since the writer waits for that thread.
//! So `session` leaves out what is held here. Called by operations that are done in parts.

use std::cell::RefCell;

use tilework_error::Result;

use crate::lock::BlockLock;
use crate::session::Session;
use crate::storage::Storage;

thread_local! {
    /// What operations in parts hold for reading on this thread.
    static HELD: RefCell<Vec<*const BlockLock>> = const { RefCell::new(Vec::new()) };
}

/// Does `work`, whose operations read these blocks and write what nobody else knows: all of them see what
/// other threads write before, or all after. The blocks are taken at once, as by an operation of this name.
///
/// `work` must not wait for anything else that others hold: these may wait for what is held here.
pub fn while_reading<'a, T>(
    operation: &'static str,
    blocks: impl IntoIterator<Item = &'a Storage>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut session = Session::new(operation);
    let mut locks = Vec::new();
    for block in blocks {
        locks.push(std::ptr::from_ref(&block.block().lock));
        session.wish_to_read(block);
    }
    session.take_all()?;
    let _listed = Listed::new(locks);
    work()
}

/// Whether this thread is inside of [`while_reading`] with the block of this lock.
pub(crate) fn holds(lock: &BlockLock) -> bool {
    HELD.with_borrow(|held| held.iter().any(|other| std::ptr::eq(*other, lock)))
}

/// Ends what it has listed when dropped, before the guards end, also when work panics.
struct Listed {
    before: usize,
}

impl Listed {
    fn new(locks: Vec<*const BlockLock>) -> Listed {
        HELD.with_borrow_mut(|held| {
            let before = held.len();
            held.extend(locks);
            Listed { before }
        })
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| held.truncate(self.before));
    }
}
