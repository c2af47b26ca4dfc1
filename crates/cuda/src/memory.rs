//! Device memory: blocks from the driver's pool in the order of a stream.
//!
//! The pool keeps what is freed, and small blocks stay in lists of our own, which cost nothing to
//! take from: there is one stream, so that a block can be used again as soon as its last use was
//! asked for. Where nothing is left, what is kept is given back and the allocation tried once more;
//! then it is an error with the sizes, and the device stays usable. Used by `device.rs`, and by
//! `transfer.rs`, which fills large new blocks in a stream of copies: these are freed in the order of
//! the other like all, which waits for the copies. Fetches beside both are waited for by the host.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilework_backend::{Backend, Storage};
use tilework_error::{Error, Result};

use crate::device::Cuda;
use crate::driver::{Address, Answer, Driver, Entered, Handle, OUT_OF_MEMORY, PoolAttribute};

/// Bytes of the smallest and of the largest block that is kept in a list, and of all of them.
const SMALLEST: usize = 512;
const LARGEST: usize = 4 << 20;
const MOST: usize = 64 << 20;
/// Lists, one for each power of two.
const LISTS: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// Requests so large are held against what is free first: for one that it then refuses the driver's pool gathers
/// all memory of the card, and for a moment no other process has any.
const LARGE: usize = 1 << 30;

/// What a device knows about its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes in use by arrays.
    pub used: usize,
    /// Bytes in use or kept for reuse.
    pub reserved: usize,
    /// Bytes that the device has left.
    pub free: usize,
    /// Bytes that the device has.
    pub total: usize,
}

/// Where blocks come from and go back to: a context, its streams, and the small blocks that are kept.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) driver: &'static Driver,
    context: Handle,
    /// Whether programs that choose no device work on this one.
    is_first: bool,
    /// What the device is asked for, in order.
    pub(crate) stream: Handle,
    /// Copies to new blocks, beside it.
    pub(crate) copies: Handle,
    /// Copies of what was done at some moment, beside it.
    pub(crate) fetches: Handle,
    kept: Mutex<Kept>,
    /// Blocks whose addresses others were told, who read and write them in streams that nobody knows; and whether
    /// there ever were any, which saves a lock where there were none.
    shown: Mutex<HashSet<Address>>,
    any_shown: AtomicBool,
}

/// Small blocks that nobody uses, by size.
#[derive(Debug, Default)]
struct Kept {
    lists: [Vec<Address>; LISTS],
    bytes: usize,
}

/// Memory in which blocks of a launch find what others of it have left, if any ever met: a counter first, and slots
/// behind it. Every byte is [`EMPTY`] before a launch and after it, but for the counter, which may be zero.
#[derive(Debug, Default)]
pub(crate) struct Meeting(Mutex<Option<Block>>);

/// What a place for meetings is filled with, and bytes of it before its slots.
const EMPTY: u8 = 0xff;
pub(crate) const COUNTER: usize = 256;

impl Meeting {
    fn place(&self) -> MutexGuard<'_, Option<Block>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which list blocks for so many bytes are kept in, and how long they are; None for large ones.
fn list(bytes: usize) -> Option<(usize, usize)> {
    let size = bytes.max(SMALLEST).checked_next_power_of_two().filter(|size| *size <= LARGEST)?;
    Some(((size / SMALLEST).trailing_zeros() as usize, size))
}

impl Home {
    /// Makes the streams of a context, which stays that of this thread until the answer is dropped.
    pub(crate) fn new(
        driver: &'static Driver,
        context: Handle,
        is_first: bool,
    ) -> Answer<(Home, Entered<'static>)> {
        let entered = driver.enter(context, is_first)?;
        let [stream, copies, fetches] = [
            driver.create_stream(true)?,
            driver.create_stream(false)?,
            driver.create_stream(false)?,
        ];
        let (kept, shown, any_shown) = Default::default();
        let home =
            Home { driver, context, is_first, stream, copies, fetches, kept, shown, any_shown };
        Ok((home, entered))
    }

    /// Makes the context that of this thread, until the answer is dropped.
    pub(crate) fn enter(&self) -> Answer<Entered<'static>> {
        self.driver.enter(self.context, self.is_first)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether others were told of the block, which they are to be told anew of from now on.
    fn was_shown(&self, address: Address) -> bool {
        self.any_shown.load(Ordering::Relaxed) && self.shown().remove(&address)
    }

    /// A block in the order of the stream; a large one in that of another, if it is asked for.
    fn allocate(&self, bytes: usize, order: Handle) -> Answer<Address> {
        let Some((list, size)) = list(bytes) else {
            let _entered = self.enter()?;
            return self.driver.allocate(bytes, order);
        };
        let mut kept = self.kept();
        if let Some(address) = kept.lists[list].pop() {
            kept.bytes -= size;
            return Ok(address);
        }
        drop(kept);
        let _entered = self.enter()?;
        self.driver.allocate(size, self.stream)
    }

    /// # Safety
    /// The address came from `allocate` for so many bytes, and everything of ours that uses it is over, or
    /// in the stream already.
    unsafe fn free(&self, address: Address, bytes: usize) {
        if self.was_shown(address)
            && let Ok(_entered) = self.enter()
        {
            // Whoever was told of it may still read it. A device that fails here tells the next operation.
            let _ = self.driver.wait_for_context();
        }
        if let Some((list, size)) = list(bytes) {
            let mut kept = self.kept();
            if kept.bytes + size <= MOST {
                kept.lists[list].push(address);
                kept.bytes += size;
                return;
            }
        }
        if let Ok(_entered) = self.enter() {
            // SAFETY: as the caller promises. A failure leaves nothing to be done.
            let _ = unsafe { self.driver.free(address, self.stream) };
        }
    }

    /// Gives what is kept back to the pool: all of it, also where the driver complains about some.
    fn release(&self) -> Answer<()> {
        let kept = std::mem::take(&mut *self.kept());
        let mut done = Ok(());
        for address in kept.lists.into_iter().flatten() {
            // SAFETY: nobody has used the block since it was freed.
            let freed = unsafe { self.driver.free(address, self.stream) };
            done = done.and(freed);
        }
        done
    }
}

/// A block of device memory; freed in the stream's order when dropped.
#[derive(Debug)]
pub(crate) struct Block {
    home: Arc<Home>,
    bytes: usize,
    pub(crate) address: Address,
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from `allocate`; whatever used it was put into the device's stream
        // before its last owner went away, and that stream waits for copies beside it, or the host did
        // where they failed. Fetches are over when whoever asked for them goes on.
        unsafe { self.home.free(self.address, self.bytes) }
    }
}

impl Cuda {
    /// A block of at least `bytes` bytes that nobody else knows.
    pub(crate) fn allocate_block(&self, bytes: usize) -> Result<Block> {
        self.allocate_ordered(bytes, self.home()?.stream)
    }

    /// The same to be filled by copies, and the stream in whose order it is there: large blocks do
    /// not wait for what the device was asked before.
    pub(crate) fn allocate_for_copies(&self, bytes: usize) -> Result<(Block, Handle)> {
        let home = self.home()?;
        let order = if list(bytes).is_some() { home.stream } else { home.copies };
        Ok((self.allocate_ordered(bytes, order)?, order))
    }

    fn allocate_ordered(&self, bytes: usize, order: Handle) -> Result<Block> {
        let home = self.home()?;
        if bytes >= LARGE && !self.has_room(bytes)? {
            self.release_cached()?;
            if !self.has_room(bytes)? {
                return Err(self.out_of_memory(bytes));
            }
        }
        let allocate = || home.allocate(bytes.max(1), order);
        let address = allocate().or_else(|fault| {
            if fault.code != OUT_OF_MEMORY {
                return Err(self.fault("allocate", fault));
            }
            self.release_cached()?;
            allocate().map_err(|fault| match fault.code {
                OUT_OF_MEMORY => self.out_of_memory(bytes),
                _ => self.fault("allocate", fault),
            })
        })?;
        Ok(Block { home: home.clone(), bytes: bytes.max(1), address })
    }

    /// Whether the device and its pool have so many bytes that nobody uses.
    fn has_room(&self, bytes: usize) -> Result<bool> {
        let info = self.memory_info()?;
        Ok(bytes <= info.free + info.reserved.saturating_sub(info.used))
    }

    /// The same with every byte zero.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> Result<Block> {
        self.allocate_filled(bytes, 0)
    }

    /// Launches kernels whose blocks meet in a place with so many bytes for slots. It stays, and nobody takes or
    /// leaves it before they are in the stream.
    pub(crate) fn at_meeting(
        &self,
        slots: usize,
        launch: impl FnOnce(Address) -> Result<()>,
    ) -> Result<()> {
        let mut place = self.meeting.place();
        let address = match place.as_ref().filter(|block| block.bytes >= COUNTER + slots) {
            Some(block) => block.address,
            None => {
                // An allocation may have to take the place back.
                drop(place);
                let block = self.allocate_filled(COUNTER + slots, EMPTY)?;
                place = self.meeting.place();
                place.insert(block).address
            }
        };
        launch(address)
    }

    fn allocate_filled(&self, bytes: usize, with: u8) -> Result<Block> {
        let block = self.allocate_block(bytes)?;
        if bytes > 0 {
            let _entered = self.enter()?;
            // SAFETY: the block has that many bytes and nobody else knows it yet.
            let done = unsafe { self.driver().fill(block.address, with, bytes, block.home.stream) };
            done.map_err(|fault| self.fault("allocate", fault))?;
        }
        Ok(block)
    }

    /// What a refused request is told, when the pool has given back what it gathered for it: it would keep all
    /// memory of the card from everybody else.
    fn out_of_memory(&self, bytes: usize) -> Error {
        let _entered = self.enter();
        if let Err(error) = self.release_cached() {
            return error;
        }
        let left = match self.driver().memory_info() {
            Ok((free, total)) => format!("{free} of {total} are free"),
            Err(fault) => fault.to_string(),
        };
        Error::out_of_memory("allocate", format!("no memory for {bytes} bytes on {self}: {left}"))
    }

    /// The same as storage that arrays can share, with every byte zero if that is asked for.
    pub(crate) fn allocate_storage(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        let allocate = if zeroed { Cuda::allocate_zeroed } else { Cuda::allocate_block };
        self.storage(allocate(self, bytes)?, bytes)
    }

    /// A block as storage that arrays can share.
    pub(crate) fn storage(&self, block: Block, bytes: usize) -> Result<Storage> {
        let address = block.address as *mut u8;
        // SAFETY: the memory belongs to the block, which goes into the storage.
        unsafe { Storage::on_device(self.id(), address, bytes, Box::new(block)) }
    }

    /// Remembers that others were told where a storage of this device begins: they work on it in streams of their
    /// own, and when it is freed, the host waits until they have done.
    pub fn show(&self, storage: &Storage) -> Result<()> {
        let home = self.home()?;
        if !storage.is_foreign() {
            home.any_shown.store(true, Ordering::Relaxed);
            home.shown().insert(storage.address() as Address);
        }
        Ok(())
    }

    /// Gives memory that nobody uses back to the device.
    pub fn release_cached(&self) -> Result<()> {
        let _entered = self.enter()?;
        self.kernels().forget_former();
        self.meeting.place().take();
        let released = self.home()?.release();
        released.map_err(|fault| self.fault("empty_cache", fault))?;
        self.synchronize()?;
        self.driver().trim_pool(self.pool()?).map_err(|fault| self.fault("empty_cache", fault))
    }

    /// How much memory is used, kept and free.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        let _entered = self.enter()?;
        let fault = |fault| self.fault("memory_info", fault);
        let (free, total) = self.driver().memory_info().map_err(fault)?;
        let pool = self.pool()?;
        let pool = |what| self.driver().pool(pool, what).map_err(fault);
        let (used, reserved) = (pool(PoolAttribute::Used)?, pool(PoolAttribute::Reserved)?);
        let size = |block: &Block| list(block.bytes).map_or(block.bytes, |(_, size)| size);
        let unused = self.home()?.kept().bytes + self.meeting.place().as_ref().map_or(0, size);
        let used = (used as usize).saturating_sub(unused);
        Ok(MemoryInfo { used, reserved: reserved as usize, free, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_have_lists_and_large_ones_have_none() {
        assert_eq!(
            (list(1), list(512), list(513)),
            (Some((0, 512)), Some((0, 512)), Some((1, 1024)))
        );
        assert_eq!(list(LARGEST), Some((LISTS - 1, LARGEST)));
        assert_eq!((list(LARGEST + 1), list(usize::MAX)), (None, None));
    }
}
