//! Guards that users hold for as long as they please, on blocks of host memory.
//!
//! Whoever meets one that excludes it fails and does not wait; a guard itself waits for operations. Called
//! by arrays that lend their elements.

use std::ops::{Deref, DerefMut};

use tilework_error::{Error, Result};

use crate::lock::Access;
use crate::session::{borrowed, wait};
use crate::storage::Storage;

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
        lock_user(operation, storage, Access::Read)?;
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
        lock_user(operation, storage, Access::Write)?;
        Ok(UserWrite { storage: storage.clone() })
    }
}

/// Takes a block for a guard, after the operations that exclude it.
fn lock_user(operation: &str, storage: &Storage, access: Access) -> Result<()> {
    let lock = &storage.block().lock;
    match lock.try_lock_user(access) {
        Ok(true) => Ok(()),
        Ok(false) => wait(operation, |waiting| lock.lock_user_if(access, waiting)),
        Err(conflict) => Err(borrowed(operation, conflict)),
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
