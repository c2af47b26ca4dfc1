//! A block of memory on one device, shared by all views of it.
//!
//! Invariants that unsafe code relies on:
//! 1. `address .. address + bytes` is one allocation that lives as long as the block does.
//! 2. On the host, all of its bytes are initialised, and it is aligned to at least the largest
//!    element unless it is foreign: [`Storage::foreign`] promises the former, and every
//!    [`crate::View`] checks the latter.
//! 3. Bytes are read or written only inside a [`crate::Session`] that holds the block's guard, or
//!    through a guard that the user holds. Foreign code outside is on its own, and so is whoever
//!    makes several blocks of the same foreign bytes: a guard is a block's, and keeps nobody from
//!    the bytes of another. See [`Storage::may_alias`].

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicUsize, fence};

use tilework_error::{Error, Result};

use crate::backend::DeviceId;
use crate::host;
use crate::lock::BlockLock;
use crate::session::Session;

/// A shared block of memory; cloning shares it.
pub struct Storage(NonNull<Block>);

/// What all owners of a block share: one cache line, which small memory follows directly.
#[repr(align(64))]
pub(crate) struct Block {
    /// How many [`Storage`]s there are.
    owners: AtomicUsize,
    address: *mut u8,
    bytes: usize,
    device: DeviceId,
    pub(crate) lock: BlockLock,
    writable: bool,
    /// Whether the host can read the address.
    on_host: bool,
    /// Whether somebody else made it.
    foreign: bool,
    /// What memory lives as long as that is not of `host`. Boxed twice, since the line has room for
    /// a thin pointer only.
    keep: Option<Box<Keep>>,
}

/// Owns memory that is not of `host`.
type Keep = Box<dyn Any + Send + Sync>;

const HEADER: usize = size_of::<Block>();
const _: () = assert!(HEADER.is_multiple_of(host::ALIGNMENT), "what follows must be aligned");
#[cfg(not(loom))]
const _: () = assert!(HEADER == host::ALIGNMENT, "a header is one cache line");

/// Memory up to this size follows its header in one block of `host`: for small arrays half the
/// work of making one. For larger ones it would only spoil sizes that are powers of two.
const TOGETHER: usize = 2 << 10;

// SAFETY: the address is only used under the block's lock (invariant 3), and the memory behind it
// is not tied to a thread; what keeps it is `Send` and `Sync`.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        if self.block().owners.fetch_add(1, Relaxed) > isize::MAX as usize {
            // Only a program that forgets clones in a loop comes here, and it must not go on to
            // where the count wraps.
            std::process::abort();
        }
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        let owners = &self.block().owners;
        // A sole owner stays alone, since nobody else has anything to clone: it needs no locked
        // instruction. Either way, what others did with the block comes before its end.
        if owners.load(Acquire) != 1 {
            if owners.fetch_sub(1, Release) != 1 {
                return;
            }
            fence(Acquire);
        }
        // SAFETY: this was the last owner.
        unsafe { end(self.0) }
    }
}

/// Gives a block's memory and header back.
///
/// # Safety
/// The block has no owner any more.
#[inline]
unsafe fn end(block: NonNull<Block>) {
    // SAFETY: the header is initialised, and nobody has it any more. Memory of the host came from
    // `host::allocate` with these sizes: see `Storage::host` and `Storage::apart`.
    unsafe {
        let Block { address, bytes, keep, .. } = block.read();
        if keep.is_none() && bytes <= TOGETHER {
            return host::free(block.cast(), HEADER + bytes);
        }
        match keep {
            Some(keep) => drop(keep),
            None => host::free(NonNull::new_unchecked(address), bytes),
        }
        host::free(block.cast(), HEADER);
    }
}

#[cold]
fn no_memory(device: DeviceId, bytes: usize) -> Error {
    Error::out_of_memory("allocate", format!("no memory for {bytes} bytes on {device}"))
}

impl Storage {
    /// A new block of host memory for `device`, with every byte zero if that is asked for.
    #[inline]
    pub fn host(device: DeviceId, bytes: usize, zeroed: bool) -> Result<Storage> {
        let header = if bytes <= TOGETHER { HEADER } else { 0 };
        let Some(block) = host::allocate(header + bytes) else {
            return Err(no_memory(device, bytes));
        };
        // SAFETY: the block is this long, and nobody else knows it yet.
        let address = unsafe {
            let address = block.address.add(header).as_ptr();
            if zeroed && !block.zeroed {
                address.write_bytes(0, bytes);
            }
            address
        };
        // Made where it goes: what has just been written is costly to move.
        let about = || Block {
            owners: AtomicUsize::new(1),
            address,
            bytes,
            device,
            lock: BlockLock::new(),
            writable: true,
            on_host: true,
            foreign: false,
            keep: None,
        };
        if bytes > TOGETHER {
            // SAFETY: without a header nobody knows the memory, which came from `host` above.
            return Storage::apart(about()).inspect_err(|_| unsafe {
                host::free(block.address, bytes);
            });
        }
        let header = block.address.cast();
        // SAFETY: the block begins with room for the header, aligned.
        unsafe { header.write(about()) };
        Ok(Storage(header))
    }

    /// Memory that belongs to `keep`, which is dropped with the last view of it.
    ///
    /// # Safety
    /// `address .. address + bytes` is valid for reads, and for writes if `writable`, until `keep` is
    /// dropped. If `on_host`, its bytes are initialised and may be accessed by the host from any
    /// thread. Nobody writes them while an operation or a guard on this block reads them, nor
    /// touches them while one writes; operations on other blocks of the same bytes count, since each
    /// block is guarded by itself. (One operation on several such blocks is in order.)
    pub unsafe fn foreign(
        device: DeviceId,
        address: *mut u8,
        bytes: usize,
        writable: bool,
        on_host: bool,
        keep: Keep,
    ) -> Result<Storage> {
        Storage::apart(Block {
            owners: AtomicUsize::new(1),
            address,
            bytes,
            device,
            lock: BlockLock::new(),
            writable,
            on_host,
            foreign: true,
            keep: Some(Box::new(keep)),
        })
    }

    /// New memory of a device that the host cannot read; it belongs to `keep`, which is dropped with
    /// the last view of it.
    ///
    /// # Safety
    /// `address .. address + bytes` is the device's to read and write until `keep` is dropped.
    pub unsafe fn on_device(
        device: DeviceId,
        address: *mut u8,
        bytes: usize,
        keep: Keep,
    ) -> Result<Storage> {
        Storage::apart(Block {
            owners: AtomicUsize::new(1),
            address,
            bytes,
            device,
            lock: BlockLock::new(),
            writable: true,
            on_host: false,
            foreign: false,
            keep: Some(Box::new(keep)),
        })
    }

    /// The only owner of a block whose memory does not follow its header; where there is no memory
    /// for the header, foreign memory is let go of and other memory is still the caller's.
    fn apart(about: Block) -> Result<Storage> {
        let Some(header) = host::allocate(HEADER) else {
            return Err(no_memory(about.device, about.bytes));
        };
        let header = header.address.cast();
        // SAFETY: there is room for a header, aligned, and nobody else knows it yet.
        unsafe { header.write(about) };
        Ok(Storage(header))
    }

    /// Its size in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.block().bytes
    }

    /// The device it lives on.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.block().device
    }

    /// Whether it may be written.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.block().writable
    }

    /// Whether it is memory that was made elsewhere: see [`Storage::foreign`].
    pub fn is_foreign(&self) -> bool {
        self.block().foreign
    }

    /// Whether the host can read it directly.
    #[inline]
    pub fn is_on_host(&self) -> bool {
        self.block().on_host
    }

    /// Where it begins. Reading or writing there is up to invariant 3 of the module.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        self.block().address
    }

    /// Copies bytes to a place of a block of host memory.
    ///
    /// # Panics
    /// If they leave the block, which is not the host's or which the session does not hold.
    pub(crate) fn copy_in(&self, session: &Session<'_>, at: usize, bytes: &[u8]) {
        let to = self.part_to_write(session, at, bytes.len());
        // SAFETY: the part lies inside of the block, and the session, which stays on one thread, holds
        // it for writing (checked), so that no slice of it is about.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies bytes from a place of a block of host memory.
    ///
    /// # Panics
    /// As [`Storage::copy_in`].
    pub(crate) fn copy_out(&self, session: &Session<'_>, at: usize, bytes: &mut [u8]) {
        let from = self.part_to_read(session, at, bytes.len());
        // SAFETY: the part lies inside of the block, and the session holds it (checked), so that
        // nobody writes it meanwhile; it is initialised (invariant 2).
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Where a part of a block of host memory begins, for whoever writes it within the session.
    ///
    /// # Panics
    /// If the part leaves the block, which is not the host's or which the session does not hold for writing.
    pub fn part_to_write(&self, session: &Session<'_>, at: usize, bytes: usize) -> *mut u8 {
        session.assert_writes(self);
        self.part(at, bytes)
    }

    /// Where a part of a block of host memory begins, for whoever reads it within the session.
    ///
    /// # Panics
    /// As [`Storage::part_to_write`], but that the session may hold the block for reading.
    pub fn part_to_read(&self, session: &Session<'_>, at: usize, bytes: usize) -> *const u8 {
        session.assert_reads(self);
        self.part(at, bytes)
    }

    /// Where a part of a block of host memory begins.
    fn part(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(self.is_on_host(), "the memory is not the host's");
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes()), "outside of a block");
        self.address().wrapping_add(at)
    }

    /// What keeps foreign memory alive, if it is of this type.
    pub(crate) fn keeper<T: Any>(&self) -> Option<&T> {
        self.block().keep.as_ref()?.downcast_ref()
    }

    /// Whether both are the same block.
    #[inline]
    pub fn is_same(&self, other: &Storage) -> bool {
        self.0 == other.0
    }

    /// Whether some byte may belong to both: they are the same block, or foreign memory is known as
    /// several, as when two arrays are made of one array of NumPy. All memory, that of cards too,
    /// has addresses of its own, so their ranges tell.
    #[inline]
    pub fn may_alias(&self, other: &Storage) -> bool {
        let range = |storage: &Storage| (storage.address().addr(), storage.bytes());
        let ((a, a_bytes), (b, b_bytes)) = (range(self), range(other));
        self.is_same(other) || (a < b + b_bytes && b < a + a_bytes)
    }

    /// Whether somebody else holds the block too.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.block().owners.load(Acquire) > 1
    }

    #[inline]
    pub(crate) fn block(&self) -> &Block {
        // SAFETY: the header is initialised, never changed but through its atomics, and lives as
        // long as there is an owner.
        unsafe { self.0.as_ref() }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Storage({} bytes on {} at {:?})",
            self.block().bytes,
            self.block().device,
            self.block().address
        )
    }
}
