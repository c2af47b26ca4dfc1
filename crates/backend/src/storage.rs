//! A block of memory on one device, shared by all views of it.
//!
//! Invariants that unsafe code relies on:
//! 1. `address .. address + bytes` is one allocation that lives as long as the block does.
//! 2. On the host, all of its bytes are initialised and it is aligned to at least the largest
//!    element, unless it is foreign, where [`Storage::foreign`] promises both.
//! 3. Bytes are read or written only inside a [`crate::Session`] that holds the block's guard, or
//!    through a guard that the user holds. Foreign code outside is on its own.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tilework_error::{Error, Result};

use crate::backend::DeviceId;
use crate::host;
use crate::lock::BlockLock;

/// A shared block of memory; cloning shares it.
#[derive(Clone)]
pub struct Storage(Arc<Block>);

pub(crate) struct Block {
    address: *mut u8,
    bytes: usize,
    device: DeviceId,
    writable: bool,
    /// Whether the host can read the address.
    on_host: bool,
    pub(crate) lock: BlockLock,
    owner: Owner,
}

enum Owner {
    /// Memory of `host::allocate`.
    Host,
    /// Memory that lives as long as this value.
    Other { _keep: Box<dyn Any + Send + Sync> },
}

// SAFETY: the address is only used under the block's lock (invariant 3), and the memory behind it
// is not tied to a thread.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        if let (Owner::Host, Some(address)) = (&self.owner, std::ptr::NonNull::new(self.address)) {
            // SAFETY: the block came from `host::allocate` with this size, and the last owner is gone.
            unsafe { host::free(address, self.bytes) };
        }
    }
}

impl Storage {
    /// A new block of host memory for `device`, with every byte zero if that is asked for.
    pub fn host(device: DeviceId, bytes: usize, zeroed: bool) -> Result<Storage> {
        let block = host::allocate(bytes).ok_or_else(|| {
            Error::out_of_memory("allocate", format!("no memory for {bytes} bytes on {device}"))
        })?;
        if zeroed && !block.zeroed {
            // SAFETY: the block has at least `bytes` bytes and nobody else knows it yet.
            unsafe { block.address.as_ptr().write_bytes(0, bytes) };
        }
        Ok(Storage(Arc::new(Block {
            address: block.address.as_ptr(),
            bytes,
            device,
            writable: true,
            on_host: true,
            lock: BlockLock::new(),
            owner: Owner::Host,
        })))
    }

    /// Memory that belongs to `keep`, which is dropped with the last view of it.
    ///
    /// # Safety
    /// `address .. address + bytes` is valid for reads, and for writes if `writable`, until `keep` is
    /// dropped; `address` is aligned for every dtype that views of it will have. If `on_host`, its
    /// bytes are initialised and may be accessed by the host from any thread.
    pub unsafe fn foreign(
        device: DeviceId,
        address: *mut u8,
        bytes: usize,
        writable: bool,
        on_host: bool,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Storage {
        let owner = Owner::Other { _keep: keep };
        Storage(Arc::new(Block {
            address,
            bytes,
            device,
            writable,
            on_host,
            lock: BlockLock::new(),
            owner,
        }))
    }

    /// Its size in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The device it lives on.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.0.device
    }

    /// Whether it may be written.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// Whether it is memory that was made elsewhere: see [`Storage::foreign`].
    pub fn is_foreign(&self) -> bool {
        matches!(self.0.owner, Owner::Other { .. })
    }

    /// Whether the host can read it directly.
    #[inline]
    pub fn is_on_host(&self) -> bool {
        self.0.on_host
    }

    /// Where it begins. Reading or writing there is up to invariant 3 of the module.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        self.0.address
    }

    /// Whether both are the same block.
    #[inline]
    pub fn is_same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether somebody else holds the block too.
    #[inline]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    #[inline]
    pub(crate) fn block(&self) -> &Block {
        &self.0
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes on {} at {:?})", self.0.bytes, self.0.device, self.0.address)
    }
}
