//! Host memory: aligned blocks that are recycled.
//!
//! A fresh page costs more than the arithmetic of an addition on it, so blocks go back to a list
//! of their size class and are handed out again: small ones per thread without a lock, large ones
//! through one bounded list. Every block is zeroed when it is first taken from the system, so its
//! bytes are always initialised; what a recycled block holds is old data, never undefined.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Alignment of every block, in bytes: a cache line, and the widest vector.
pub(crate) const ALIGNMENT: usize = 64;

/// Blocks up to this size are kept per thread.
const SMALL: usize = 32 << 10;
/// How many blocks of one small class a thread keeps.
const SMALL_KEPT: usize = 16;
/// How many bytes of large blocks the process keeps.
const LARGE_KEPT: usize = 2 << 30;
/// Blocks from this size on are pages of their own.
const MAPPED: usize = 1 << 20;

/// A block of host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostBlock {
    pub(crate) address: NonNull<u8>,
    /// Whether every byte is known to be zero.
    pub(crate) zeroed: bool,
}

/// Size classes grow by a quarter of a power of two, so that at most a fifth is wasted.
fn class(bytes: usize) -> (usize, usize) {
    let bytes = bytes.max(ALIGNMENT);
    let power = usize::BITS - 1 - bytes.leading_zeros();
    let quarter = (1usize << power) / 4;
    let steps = (bytes - (1 << power)).div_ceil(quarter);
    let size = (1usize << power) + steps * quarter;
    // Rounding to the alignment merges the smallest classes, which is what they want.
    (((power as usize) << 2) + steps, size.next_multiple_of(ALIGNMENT))
}

struct Small(Vec<Vec<NonNull<u8>>>);

impl Drop for Small {
    fn drop(&mut self) {
        for (index, blocks) in self.0.iter_mut().enumerate() {
            for block in blocks.drain(..) {
                let size = class_size(index);
                // SAFETY: the block was allocated by `fresh` with the size of its class.
                unsafe { release(block, size) };
            }
        }
    }
}

/// The size of the blocks in a class; the inverse of [`class`].
fn class_size(index: usize) -> usize {
    let (power, steps) = (index >> 2, index & 3);
    ((1usize << power) + steps * ((1usize << power) / 4)).next_multiple_of(ALIGNMENT)
}

thread_local! {
    static KEPT: RefCell<Small> = const { RefCell::new(Small(Vec::new())) };
}

struct Large {
    blocks: Vec<(usize, usize)>,
    bytes: usize,
}

static LARGE: Mutex<Large> = Mutex::new(Large { blocks: Vec::new(), bytes: 0 });

fn large() -> std::sync::MutexGuard<'static, Large> {
    // The list is consistent between any two statements, so a panic elsewhere does not spoil it.
    LARGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A block of at least `bytes`, or None if the system has no memory left.
pub(crate) fn allocate(bytes: usize) -> Option<HostBlock> {
    if bytes > isize::MAX as usize / 2 {
        return None;
    }
    let (index, size) = class(bytes);
    if size <= SMALL {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().0.get_mut(index).and_then(Vec::pop));
        if let Ok(Some(address)) = kept {
            return Some(HostBlock { address, zeroed: false });
        }
    } else {
        let mut large = large();
        if let Some(place) = large.blocks.iter().rposition(|&(_, have)| have == size) {
            let (address, _) = large.blocks.swap_remove(place);
            large.bytes -= size;
            let address = NonNull::new(address as *mut u8)?;
            return Some(HostBlock { address, zeroed: false });
        }
    }
    fresh(size).or_else(|| {
        empty_cache();
        fresh(size)
    })
}

/// Gives a block of `allocate(bytes)` back.
///
/// # Safety
/// `address` comes from `allocate` with the same `bytes`, and nobody uses the block any more.
pub(crate) unsafe fn free(address: NonNull<u8>, bytes: usize) {
    let (index, size) = class(bytes);
    if size <= SMALL {
        let kept = KEPT.try_with(|kept| {
            let lists = &mut kept.borrow_mut().0;
            if lists.len() <= index {
                lists.resize_with(index + 1, Vec::new);
            }
            let list = &mut lists[index];
            let room = list.len() < SMALL_KEPT;
            if room {
                list.push(address);
            }
            room
        });
        if kept == Ok(true) {
            return;
        }
    } else {
        let mut large = large();
        if large.bytes + size <= LARGE_KEPT {
            large.bytes += size;
            large.blocks.push((address.as_ptr() as usize, size));
            return;
        }
    }
    // SAFETY: every block is allocated by `fresh` with the size of its class.
    unsafe { release(address, size) }
}

/// A zeroed block from the system.
fn fresh(size: usize) -> Option<HostBlock> {
    let address = if size >= MAPPED { mapped(size)? } else { allocated(size)? };
    Some(HostBlock { address, zeroed: true })
}

/// # Safety
/// `address` comes from `fresh(size)`.
unsafe fn release(address: NonNull<u8>, size: usize) {
    if size >= MAPPED {
        // SAFETY: `mapped` made it with this size.
        unsafe { unmapped(address, size) }
    } else {
        // SAFETY: `allocated` made it with this layout.
        unsafe { dealloc(address.as_ptr(), Layout::from_size_align_unchecked(size, ALIGNMENT)) }
    }
}

fn allocated(size: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
    // SAFETY: the size is not zero, since classes begin at the alignment.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Pages that the system zeroes when they are first touched, huge ones where it has them; a general
/// allocator would touch every page of an aligned block at once.
#[cfg(unix)]
fn mapped(size: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping touches no other memory.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the range is the mapping; the call only advises.
    unsafe {
        libc::madvise(address, size, libc::MADV_HUGEPAGE);
    }
    NonNull::new(address.cast())
}

#[cfg(not(unix))]
fn mapped(size: usize) -> Option<NonNull<u8>> {
    allocated(size)
}

/// # Safety
/// `address` comes from `mapped(size)`, and nobody uses the block any more.
#[cfg(unix)]
unsafe fn unmapped(address: NonNull<u8>, size: usize) {
    // SAFETY: the mapping has this address and size. That it cannot fail leaves nothing to report.
    unsafe { libc::munmap(address.as_ptr().cast(), size) };
}

/// # Safety
/// `address` comes from `mapped(size)`, and nobody uses the block any more.
#[cfg(not(unix))]
unsafe fn unmapped(address: NonNull<u8>, size: usize) {
    // SAFETY: `allocated` made it with this layout.
    unsafe { dealloc(address.as_ptr(), Layout::from_size_align_unchecked(size, ALIGNMENT)) }
}

/// Gives all recycled blocks of the process, and the small ones of this thread, back to the
/// system.
pub fn empty_cache() {
    let _ = KEPT.try_with(|kept| kept.replace(Small(Vec::new())));
    let blocks = {
        let mut large = large();
        large.bytes = 0;
        std::mem::take(&mut large.blocks)
    };
    for (address, size) in blocks {
        if let Some(address) = NonNull::new(address as *mut u8) {
            // SAFETY: only blocks of `fresh(size)` are in the list, and this one has left it.
            unsafe { release(address, size) };
        }
    }
}

/// How many bytes of host memory are kept for reuse.
pub fn memory_info() -> usize {
    large().bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_bytes_and_waste_little() {
        for bytes in (1..100_000).chain([1 << 20, (1 << 20) + 1, 12_345_678, (3 << 30) + 7]) {
            let (index, size) = class(bytes);
            assert!(
                size >= bytes && size <= (bytes + bytes / 4).max(bytes + ALIGNMENT),
                "{bytes} {size}"
            );
            assert_eq!(class_size(index), size, "{bytes}");
        }
    }

    #[test]
    fn blocks_are_aligned_zeroed_at_first_and_come_back() {
        for bytes in [1, 64, 1000, 40_000, 5 << 20] {
            let block = allocate(bytes).unwrap();
            assert_eq!(block.address.as_ptr() as usize % ALIGNMENT, 0);
            // SAFETY: allocated above with this size, and not used after.
            unsafe { free(block.address, bytes) };
            let again = allocate(bytes).unwrap();
            assert_eq!((again.address, again.zeroed), (block.address, false));
            // SAFETY: as above.
            unsafe { free(again.address, bytes) };
        }
        empty_cache();
        assert!(allocate(usize::MAX / 2).is_none());
    }
}
