//! Host memory: aligned blocks that are recycled.
//!
//! A fresh page costs more than the arithmetic of an addition on it, so blocks go back to where
//! their size class is kept and are handed out again: small ones per thread (`small`), large ones
//! for the whole process (`large`). Every block is zeroed when it is first taken from the system,
//! so its bytes are always initialised; what a recycled block holds is old data, never undefined.
//! Called by `storage` and `recycled`.

mod large;
mod small;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use tilework_error::{Error, Result};

/// Alignment of every block, in bytes: a cache line, and the widest vector.
pub(crate) const ALIGNMENT: usize = 64;

/// Blocks up to this size are kept per thread.
const SMALL: usize = 32 << 10;
/// How many size classes there are up to [`SMALL`].
const CLASSES: usize = Class::of(SMALL).index + 1;
/// Blocks from this size on are pages of their own.
const MAPPED: usize = 1 << 20;

/// A block of host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostBlock {
    pub(crate) address: NonNull<u8>,
    /// Whether every byte is known to be zero.
    pub(crate) zeroed: bool,
}

/// Blocks are taken and given back in sizes that grow by a quarter of a power of two, so that at
/// most a fifth is wasted, and that are multiples of the alignment.
#[derive(Debug, Clone, Copy)]
struct Class {
    /// Counts the classes, smallest first.
    index: usize,
    size: usize,
}

/// What the sizes of the smallest class come to before they are counted from zero.
const FIRST: usize = Class::uncounted(ALIGNMENT);

impl Class {
    /// The three highest bits of the last byte's number say it all.
    #[inline(always)]
    const fn uncounted(bytes: usize) -> usize {
        let last = bytes - 1;
        let power = last.ilog2() as usize;
        power * 4 + ((last >> (power - 2)) & 3)
    }

    /// The class whose blocks hold so many bytes.
    #[inline(always)]
    const fn of(bytes: usize) -> Class {
        let bytes = if bytes == 0 { 1 } else { bytes };
        let uncounted = Class::uncounted(bytes.next_multiple_of(ALIGNMENT));
        Class { index: uncounted - FIRST, size: Class::size(uncounted) }
    }

    /// The class with this number.
    const fn at(index: usize) -> Class {
        Class { index, size: Class::size(index + FIRST) }
    }

    #[inline(always)]
    const fn size(uncounted: usize) -> usize {
        (5 + uncounted % 4) << (uncounted / 4 - 2)
    }
}

/// A block of at least `bytes`, or None if the system has no memory left.
#[inline]
pub(crate) fn allocate(bytes: usize) -> Option<HostBlock> {
    if bytes <= SMALL {
        let class = Class::of(bytes);
        return match small::take(class) {
            Some(address) => Some(HostBlock { address, zeroed: false }),
            None => fresh_or_freed(class.size),
        };
    }
    // Of what was asked for: the rest of its class is never written to.
    if bytes > isize::MAX as usize / 2 || !could_be_held(bytes) {
        return None;
    }
    let size = Class::of(bytes).size;
    match large::take(size) {
        Some(address) => Some(HostBlock { address, zeroed: false }),
        None => fresh_or_freed(size),
    }
}

/// Gives a block of `allocate(bytes)` back.
///
/// # Safety
/// `address` comes from `allocate` with the same `bytes`, and nobody uses the block any more.
#[inline]
pub(crate) unsafe fn free(address: NonNull<u8>, bytes: usize) {
    let class = Class::of(bytes);
    // SAFETY: every block is allocated by `fresh` with the size of its class; it is released only
    // if it is not kept, here or when it has left for another.
    unsafe {
        let kept = match bytes <= SMALL {
            true => small::put(class, address),
            false => large::put(address, class.size, |other, size| release(other, size)),
        };
        if !kept {
            release(address, class.size);
        }
    }
}

/// A zeroed block from the system, which is given what is kept if it has nothing else.
#[cold]
fn fresh_or_freed(size: usize) -> Option<HostBlock> {
    fresh(size).or_else(|| {
        empty_cache();
        fresh(size)
    })
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

/// Whether memory and swap are large enough. A system may promise more than it has, and end whoever writes to all
/// of it, which nobody can handle as an error.
#[cfg(target_os = "linux")]
fn could_be_held(bytes: usize) -> bool {
    const WORTH_ASKING: u64 = 1 << 32;
    if (bytes as u64) < WORTH_ASKING {
        return true;
    }
    // SAFETY: numbers and padding, for which zeros are valid.
    let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the system writes the structure.
    if unsafe { libc::sysinfo(&mut info) } != 0 {
        return true;
    }
    let all = (info.totalram as u128 + info.totalswap as u128) * u128::from(info.mem_unit.max(1));
    bytes as u128 <= all
}

#[cfg(not(target_os = "linux"))]
fn could_be_held(_: usize) -> bool {
    true
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
    small::empty();
    while let Some((address, size)) = large::take_any() {
        // SAFETY: only blocks of `fresh(size)` are kept, and this one has left its place.
        unsafe { release(address, size) };
    }
}

/// Zeros in a vector, for work and for results that are no blocks; an error where there is no memory
/// for them.
pub fn try_zeroed<T: bytemuck::Zeroable>(operation: &str, len: usize) -> Result<Vec<T>> {
    with_room::<T, _>(operation, len, || bytemuck::allocation::try_zeroed_vec(len).ok())
}

/// An empty vector with room for so many, as [`try_zeroed`].
pub fn try_room<T>(operation: &str, len: usize) -> Result<Vec<T>> {
    with_room::<T, _>(operation, len, || {
        let mut room = Vec::new();
        room.try_reserve_exact(len).ok().map(|()| room)
    })
}

/// A vector of so many times the same, as [`try_zeroed`].
pub fn try_filled<T: Clone>(operation: &str, value: T, len: usize) -> Result<Vec<T>> {
    let mut filled = try_room(operation, len)?;
    filled.resize(len, value);
    Ok(filled)
}

/// What `make` gives at its second try at the latest: before it, what is kept for reuse is given
/// back.
fn with_room<T, R>(operation: &str, len: usize, make: impl Fn() -> Option<R>) -> Result<R> {
    let bytes = len.saturating_mul(size_of::<T>());
    let make = || if could_be_held(bytes) { make() } else { None };
    let again = || {
        empty_cache();
        make()
    };
    make()
        .or_else(again)
        .ok_or_else(|| Error::out_of_memory(operation, format!("no memory for {bytes} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_bytes_and_waste_little() {
        for bytes in (1..100_000).chain([1 << 20, (1 << 20) + 1, 12_345_678, (3 << 30) + 7]) {
            let Class { index, size } = Class::of(bytes);
            assert!(
                size >= bytes && size <= (bytes + bytes / 4).max(bytes + ALIGNMENT),
                "{bytes} {size}"
            );
            assert_eq!((Class::at(index).size, size % ALIGNMENT), (size, 0), "{bytes}");
            assert_eq!(Class::of(size).index, index, "{bytes}");
        }
        assert_eq!(Class::of(0).index, 0);
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
        assert!(allocate(usize::MAX / 2).is_none());
    }

    /// Whether or not the system would promise it.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_no_machine_could_hold_is_refused() {
        assert!(could_be_held(1 << 20));
        assert!(!could_be_held(1 << 60));
        assert!(try_room::<u8>("test", 1 << 60).is_err());
        assert!(allocate(1 << 60).is_none());
    }

    /// Threads take and put blocks of a few sizes, and nobody ever meets another's stamp.
    #[test]
    fn a_block_has_one_owner() {
        std::thread::scope(|scope| {
            for thread in 1..=4u64 {
                scope.spawn(move || {
                    for round in 0..20_000u64 {
                        let bytes = [90_000, 120_000, 200_000][(round % 3) as usize];
                        let stamp = thread << 32 | round;
                        let block = allocate(bytes).unwrap().address.cast::<u64>();
                        // SAFETY: the block is this thread's until it is freed.
                        unsafe {
                            block.write_volatile(stamp);
                            std::thread::yield_now();
                            assert_eq!(block.read_volatile(), stamp);
                            free(block.cast(), bytes);
                        }
                    }
                });
            }
        });
    }
}
