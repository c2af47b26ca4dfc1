//! Memory for the time of one request, recycled like that of arrays: fresh pages would cost as much
//! as a pass over the elements.
//!
//! A request takes all that it needs before it writes its first result, so that one without memory
//! fails and leaves its target as it was. Used by `gemm`, `matmul`, `reduce`, `scan` and `sort`.

use tilework_backend::{Storage, UserWrite};
use tilework_error::{Error, Result};

use crate::Cpu;

/// The size of a huge page. Memory of half of it and more starts at one where the system has them:
/// packed panels are walked so fast that the translations of small pages are a tenth of the time.
const HUGE: usize = 2 << 20;
/// Smaller memory starts at a page, and the smallest at a cache line, as arrays do.
const PAGE: usize = 4 << 10;
const LINE: usize = 64;

/// Some bytes that nobody else has.
pub(crate) struct Scratch {
    memory: UserWrite,
    start: usize,
    bytes: usize,
}

impl Scratch {
    /// So many bytes for `operation`; what they hold is of no meaning.
    pub(crate) fn new(operation: &str, bytes: usize) -> Result<Scratch> {
        let align = match bytes {
            _ if bytes >= HUGE / 2 => HUGE,
            _ if bytes >= 16 * PAGE => PAGE,
            _ => LINE,
        };
        let storage = Storage::host(Cpu::ID, bytes.saturating_add(align - LINE).max(1), false)
            .map_err(|_| {
                let message = format!("no memory for {bytes} bytes of intermediate results");
                Error::out_of_memory(operation, message)
            })?;
        let start = storage.address().align_offset(align);
        Ok(Scratch { memory: UserWrite::new(operation, &storage)?, start, bytes })
    }

    /// The bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }

    /// The first byte, to be read.
    pub(crate) fn start(&self) -> *const u8 {
        self.memory[self.start..self.start + self.bytes].as_ptr()
    }

    /// The first byte.
    pub(crate) fn pointer(&mut self) -> *mut u8 {
        self.bytes().as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_by_its_size_and_no_size_is_too_large_to_ask_for() {
        for (bytes, align) in
            [(0, LINE), (1, LINE), (70_000, PAGE), (HUGE / 2, HUGE), (5 << 20, HUGE)]
        {
            let mut scratch = Scratch::new("test", bytes).unwrap();
            assert_eq!(scratch.bytes().len(), bytes);
            assert_eq!(scratch.pointer().addr() % align, 0, "{bytes}");
            scratch.bytes().fill(1);
        }
        for bytes in [usize::MAX, usize::MAX - HUGE, isize::MAX as usize] {
            let error = Scratch::new("test", bytes).err().unwrap().to_string();
            assert!(error.starts_with(&format!("test: no memory for {bytes} bytes")), "{error}");
        }
    }
}
