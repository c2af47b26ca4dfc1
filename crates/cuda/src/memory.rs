//! Device memory: blocks from the driver's pool in the order of the stream, and transfers.
//!
//! The pool keeps what is freed, and small blocks stay in lists of our own, which cost nothing to
//! take from: there is one stream, so that a block can be used again as soon as its last use was
//! asked for. Where nothing is left, what is kept is given back and the allocation tried once more;
//! then it is an error with the sizes, and the device stays usable. Transfers go through pinned
//! buffers in pieces: one piece is copied by the host while the device moves the other. Used by
//! `device.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilework_backend::{Backend, Storage};
use tilework_error::{Error, Result};

use crate::device::Cuda;
use crate::driver::{Address, Answer, Driver, Handle, OUT_OF_MEMORY, PoolAttribute};

/// Bytes of one of the two pinned buffers.
const PIECE: usize = 4 << 20;
/// Bytes of the smallest and of the largest block that is kept in a list, and of all of them.
const SMALLEST: usize = 512;
const LARGEST: usize = 1 << 20;
const MOST: usize = 64 << 20;
/// Lists, one for each power of two.
const LISTS: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

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

/// Where blocks come from and go back to: a context, its stream, and the small blocks that are kept.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) driver: &'static Driver,
    pub(crate) context: Handle,
    pub(crate) stream: Handle,
    kept: Mutex<Kept>,
}

/// Small blocks that nobody uses, by size.
#[derive(Debug, Default)]
struct Kept {
    lists: [Vec<Address>; LISTS],
    bytes: usize,
}

/// Which list blocks for so many bytes are kept in, and how long they are; None for large ones.
fn list(bytes: usize) -> Option<(usize, usize)> {
    let size = bytes.max(SMALLEST).checked_next_power_of_two().filter(|size| *size <= LARGEST)?;
    Some(((size / SMALLEST).trailing_zeros() as usize, size))
}

impl Home {
    pub(crate) fn new(driver: &'static Driver, context: Handle, stream: Handle) -> Home {
        Home { driver, context, stream, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, bytes: usize) -> Answer<Address> {
        let Some((list, size)) = list(bytes) else {
            return self.driver.allocate(bytes, self.stream);
        };
        let mut kept = self.kept();
        if let Some(address) = kept.lists[list].pop() {
            kept.bytes -= size;
            return Ok(address);
        }
        drop(kept);
        self.driver.allocate(size, self.stream)
    }

    /// # Safety
    /// The address came from `allocate` for so many bytes, and everything that uses it is in the
    /// stream already.
    unsafe fn free(&self, address: Address, bytes: usize) {
        if let Some((list, size)) = list(bytes) {
            let mut kept = self.kept();
            if kept.bytes + size <= MOST {
                kept.lists[list].push(address);
                kept.bytes += size;
                return;
            }
        }
        if self.driver.enter(self.context).is_ok() {
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
pub(crate) struct Block {
    home: Arc<Home>,
    bytes: usize,
    pub(crate) address: Address,
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from `allocate`; whatever used it was put into the device's only
        // stream before its last owner went away.
        unsafe { self.home.free(self.address, self.bytes) }
    }
}

/// The pinned buffers, made when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Option<[usize; 2]>>);

impl Cuda {
    /// A block of at least `bytes` bytes that nobody else knows.
    pub(crate) fn allocate_block(&self, bytes: usize) -> Result<Block> {
        self.enter()?;
        let home = self.home()?;
        let allocate = || home.allocate(bytes.max(1));
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

    /// The same with every byte zero.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> Result<Block> {
        let block = self.allocate_block(bytes)?;
        if bytes > 0 {
            // SAFETY: the block has that many bytes and nobody else knows it yet.
            let done = unsafe { self.driver().zero(block.address, bytes, block.home.stream) };
            done.map_err(|fault| self.fault("allocate", fault))?;
        }
        Ok(block)
    }

    fn out_of_memory(&self, bytes: usize) -> Error {
        let left = match self.driver().memory_info() {
            Ok((free, total)) => format!("{free} of {total} are free"),
            Err(fault) => fault.to_string(),
        };
        Error::out_of_memory("allocate", format!("no memory for {bytes} bytes on {self}: {left}"))
    }

    /// The same as storage that arrays can share, with every byte zero if that is asked for.
    pub(crate) fn allocate_storage(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        let allocate = if zeroed { Cuda::allocate_zeroed } else { Cuda::allocate_block };
        let block = allocate(self, bytes)?;
        let address = block.address as *mut u8;
        // SAFETY: the memory belongs to the block, which goes into the storage.
        unsafe { Storage::on_device(self.id(), address, bytes, Box::new(block)) }
    }

    /// Gives memory that nobody uses back to the device.
    pub fn release_cached(&self) -> Result<()> {
        self.enter()?;
        let released = self.home()?.release();
        released.map_err(|fault| self.fault("empty_cache", fault))?;
        self.wait("empty_cache")?;
        self.driver().trim_pool(self.pool()?).map_err(|fault| self.fault("empty_cache", fault))
    }

    /// How much memory is used, kept and free.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.enter()?;
        let fault = |fault| self.fault("memory_info", fault);
        let (free, total) = self.driver().memory_info().map_err(fault)?;
        let pool = self.pool()?;
        let pool = |what| self.driver().pool(pool, what).map_err(fault);
        let (used, reserved) = (pool(PoolAttribute::Used)?, pool(PoolAttribute::Reserved)?);
        let used = (used as usize).saturating_sub(self.home()?.kept().bytes);
        Ok(MemoryInfo { used, reserved: reserved as usize, free, total })
    }

    /// Copies bytes to the device. They may be used again when this returns.
    pub(crate) fn copy_in(&self, operation: &str, bytes: &[u8], to: Address) -> Result<()> {
        self.with_staging(operation, |buffers, stream| {
            for (k, piece) in bytes.chunks(PIECE).enumerate() {
                let buffer = buffers[k % 2] as *mut u8;
                if k >= 2 && k % 2 == 0 {
                    self.wait(operation)?;
                }
                // SAFETY: the piece fits the pinned buffer, which is ours while the lock is held,
                // and whose last transfer is done: both were waited for before the first was
                // filled again. The target is inside of the block.
                unsafe {
                    std::ptr::copy_nonoverlapping(piece.as_ptr(), buffer, piece.len());
                    let to = to + (k * PIECE) as Address;
                    let done = self.driver().to_device(to, buffer, piece.len(), stream);
                    done.map_err(|fault| self.fault(operation, fault))?;
                }
            }
            self.wait(operation)
        })
    }

    /// Copies bytes from the device, after everything asked before is done.
    pub(crate) fn copy_out(&self, operation: &str, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.with_staging(operation, |buffers, stream| {
            let fetch = |k: usize, len: usize| {
                let from = from + (k * PIECE) as Address;
                let buffer = buffers[k % 2] as *mut u8;
                // SAFETY: the piece fits the pinned buffer, which is ours while the lock is held
                // and was emptied before. The source is inside of the block.
                let done = unsafe { self.driver().to_host(buffer, from, len, stream) };
                done.map_err(|fault| self.fault(operation, fault))
            };
            let lens: Vec<usize> = bytes.chunks(PIECE).map(<[u8]>::len).collect();
            if let Some(&first) = lens.first() {
                fetch(0, first)?;
            }
            for (k, piece) in bytes.chunks_mut(PIECE).enumerate() {
                self.wait(operation)?;
                if let Some(&next) = lens.get(k + 1) {
                    fetch(k + 1, next)?;
                }
                // SAFETY: the piece lies in the pinned buffer since the wait above; the transfer
                // that was started since goes into the other buffer.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        buffers[k % 2] as *const u8,
                        piece.as_mut_ptr(),
                        piece.len(),
                    );
                }
            }
            Ok(())
        })
    }

    /// Works with the pinned buffers while nobody else does.
    fn with_staging(
        &self,
        operation: &str,
        work: impl FnOnce([usize; 2], Handle) -> Result<()>,
    ) -> Result<()> {
        let (_, stream) = self.enter()?;
        let mut staging = self.staging().0.lock().unwrap_or_else(PoisonError::into_inner);
        let buffers = match *staging {
            Some(buffers) => buffers,
            None => {
                let pinned = || self.driver().allocate_pinned(PIECE);
                let both = pinned().and_then(|a| Ok([a as usize, pinned()? as usize]));
                *staging.insert(both.map_err(|fault| self.fault(operation, fault))?)
            }
        };
        work(buffers, stream)
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
