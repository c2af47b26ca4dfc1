//! Memory for packed panels and partial results: one block per thread, kept between calls.
//!
//! Fresh pages would cost more than packing into them, so a thread keeps its block. A block is
//! taken out while it is in use; a nested user finds none and gets its own, so this may be called
//! from anywhere. Called by `matrix`, `vector` and `plan`.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

/// Panels start at a page.
const ALIGN: usize = 4096;
/// From half of this on, a block is made of huge pages where the system has them: packed panels
/// are walked so fast that the translations of small pages are a tenth of the time.
const HUGE: usize = 2 << 20;
/// What a thread may keep when it is not at work.
const KEPT: usize = 32 << 20;

/// Uninitialised memory, aligned to at least 4096 bytes.
pub(super) struct Block {
    at: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// The layout of a block of at least `bytes`.
    fn layout(bytes: usize) -> Layout {
        let (unit, align) = if bytes >= HUGE / 2 { (HUGE, HUGE) } else { (1 << 16, ALIGN) };
        let bytes = bytes.max(1).next_multiple_of(unit);
        match Layout::from_size_align(bytes, align) {
            Ok(layout) => layout,
            Err(_) => panic!("gemm: a scratch block of {bytes} bytes exceeds the address space"),
        }
    }

    /// A block, if the system has one.
    fn new(layout: Layout) -> Option<Block> {
        // SAFETY: the layout's size is not zero.
        let at = NonNull::new(unsafe { alloc(layout) })?;
        #[cfg(target_os = "linux")]
        if layout.align() == HUGE {
            // SAFETY: the range is this block's own; the advice changes no contents, and whether
            // it is taken does not matter.
            unsafe { libc::madvise(at.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        Some(Block { at, layout })
    }

    /// The first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

thread_local! {
    static KEPT_BLOCK: Cell<Option<Block>> = const { Cell::new(None) };
}

/// Calls `work` with a block of at least `bytes` bytes; `None` if the system has none.
pub(super) fn try_with_block<R>(bytes: usize, work: impl FnOnce(&Block) -> R) -> Option<R> {
    // A thread that is being torn down has no cell any more; it allocates.
    let kept = KEPT_BLOCK.try_with(Cell::take).unwrap_or(None);
    let block = match kept {
        Some(block) if block.layout.size() >= bytes => block,
        _ => Block::new(Block::layout(bytes))?,
    };
    let result = work(&block);
    if block.layout.size() <= KEPT {
        let _ = KEPT_BLOCK.try_with(|cell| cell.set(Some(block)));
    }
    Some(result)
}

/// Calls `work` with a block of at least `bytes` bytes, and ends the process as any failed
/// allocation does if there is none: what a product cannot do without is small.
pub(super) fn with_block<R>(bytes: usize, work: impl FnOnce(&Block) -> R) -> R {
    try_with_block(bytes, work).unwrap_or_else(|| handle_alloc_error(Block::layout(bytes)))
}

/// Calls `work` with the address of at least `bytes` bytes; none are fetched if none are wanted.
#[inline]
pub(super) fn with_room<R>(bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
    if bytes == 0 {
        return work(std::ptr::null_mut());
    }
    with_block(bytes, |block| work(block.start()))
}

/// How many bytes `count` elements of type `T` take, so that what follows is aligned to 128 bytes.
pub(super) fn room<T>(count: usize) -> usize {
    (count * size_of::<T>()).next_multiple_of(128)
}
