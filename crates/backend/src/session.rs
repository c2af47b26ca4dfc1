//! Guards: those that an operation holds while it runs, and those that a user holds.
//!
//! An operation takes the guards of all its blocks at once, in the order of their addresses, and
//! may wait for other operations; it never waits for a user's guard but fails with `Borrowed`. So
//! neither can deadlock.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;
use tilework_error::{Error, Result};

use crate::lock::{Access, BlockLock, Conflict, OpGuards, acquire};
use crate::request::Request;
use crate::storage::Storage;

/// Proof that the guards of a request's blocks are held; ends them when dropped.
///
/// It stays on the thread that opened it; kernels pass pointers to their workers and return before
/// it ends.
pub struct Session<'a> {
    _guards: OpGuards<'a>,
    blocks: SmallVec<[(*const u8, Access); 4]>,
    _one_thread: PhantomData<*mut ()>,
}

impl<'a> Session<'a> {
    /// Takes the guards of all blocks that `request` touches.
    pub(crate) fn open(request: &Request<'a>) -> Result<Session<'a>> {
        let mut locks: SmallVec<[(&'a BlockLock, Access); 4]> = SmallVec::new();
        let mut blocks = SmallVec::new();
        request.each_view(&mut |storage: &'a Storage, access, fresh| {
            blocks.push((storage.address() as *const u8, access));
            if !fresh {
                locks.push((&storage.block().lock, access));
            }
        });
        let guards = acquire(&locks).map_err(|conflict| borrowed(request.name(), conflict))?;
        Ok(Session { _guards: guards, blocks, _one_thread: PhantomData })
    }

    /// That this session may read the block.
    pub(crate) fn assert_reads(&self, storage: &Storage) {
        let here = storage.address() as *const u8;
        assert!(
            self.blocks.iter().any(|(block, _)| *block == here),
            "the session does not hold this block"
        );
    }

    /// That this session may write the block.
    pub(crate) fn assert_writes(&self, storage: &Storage) {
        let here = storage.address() as *const u8;
        let writes =
            |(block, access): &(*const u8, Access)| *block == here && *access == Access::Write;
        assert!(self.blocks.iter().any(writes), "the session does not hold this block for writing");
    }
}

fn borrowed(operation: &str, conflict: Conflict) -> Error {
    let held = match conflict.held {
        Access::Read => "read",
        Access::Write => "written",
    };
    Error::borrowed(
        operation,
        format!("the memory is being {held} through a guard; drop the guard first"),
    )
}

/// Bytes of a block that a user reads; writes to it fail until it is dropped.
#[derive(Debug)]
pub struct UserRead {
    storage: Storage,
}

/// Bytes of a block that a user writes; every other use of it fails until it is dropped.
#[derive(Debug)]
pub struct UserWrite {
    storage: Storage,
}

impl UserRead {
    /// The guard on a block of host memory.
    pub fn new(operation: &str, storage: &Storage) -> Result<UserRead> {
        host_only(operation, storage)?;
        storage
            .block()
            .lock
            .lock_user(Access::Read)
            .map_err(|conflict| borrowed(operation, conflict))?;
        Ok(UserRead { storage: storage.clone() })
    }
}

impl UserWrite {
    /// The guard on a block of host memory.
    pub fn new(operation: &str, storage: &Storage) -> Result<UserWrite> {
        host_only(operation, storage)?;
        if !storage.is_writable() {
            return Err(Error::read_only(
                operation,
                "the memory is read-only; copy the array first",
            ));
        }
        storage
            .block()
            .lock
            .lock_user(Access::Write)
            .map_err(|conflict| borrowed(operation, conflict))?;
        Ok(UserWrite { storage: storage.clone() })
    }
}

fn host_only(operation: &str, storage: &Storage) -> Result<()> {
    if storage.is_on_host() {
        return Ok(());
    }
    let message = format!("the memory is on {}; move it with to_device(\"cpu\")", storage.device());
    Err(Error::device(operation, message))
}

fn bytes(storage: &Storage) -> (*mut u8, usize) {
    // A slice needs an address also where there is nothing; foreign memory of no bytes may have none.
    match storage.bytes() {
        0 => (std::ptr::NonNull::<u128>::dangling().as_ptr().cast(), 0),
        bytes => (storage.address(), bytes),
    }
}

impl Deref for UserRead {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let (address, len) = bytes(&self.storage);
        // SAFETY: the bytes are initialised and live as long as the storage (invariants 1 and 2);
        // the user's read guard keeps every writer away.
        unsafe { std::slice::from_raw_parts(address, len) }
    }
}

impl Deref for UserWrite {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let (address, len) = bytes(&self.storage);
        // SAFETY: as for reading; the user's write guard keeps everybody away.
        unsafe { std::slice::from_raw_parts(address, len) }
    }
}

impl DerefMut for UserWrite {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (address, len) = bytes(&self.storage);
        // SAFETY: the user's write guard keeps everybody away, and `&mut self` other slices of it.
        unsafe { std::slice::from_raw_parts_mut(address, len) }
    }
}

impl Drop for UserRead {
    fn drop(&mut self) {
        self.storage.block().lock.unlock_user(Access::Read);
    }
}

impl Drop for UserWrite {
    fn drop(&mut self) {
        self.storage.block().lock.unlock_user(Access::Write);
    }
}
