//! Machine code in memory that can be run: written first, then made executable and read-only.

use memmap2::{Mmap, MmapMut};

/// A page or more of code.
#[derive(Debug)]
pub(super) struct Page {
    code: Mmap,
    entry: usize,
}

impl Page {
    /// Code that is entered at an offset; None if the system gives no such memory.
    pub(super) fn new(bytes: &[u8], entry: usize) -> Option<Page> {
        let mut page = MmapMut::map_anon(bytes.len()).ok()?;
        page[..bytes.len()].copy_from_slice(bytes);
        Some(Page { code: page.make_exec().ok()?, entry })
    }

    /// Where the code is entered.
    pub(super) fn entry(&self) -> *const u8 {
        self.code[self.entry..].as_ptr()
    }
}
