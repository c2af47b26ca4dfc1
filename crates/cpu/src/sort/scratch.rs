//! Memory for the time of one sort, recycled like that of arrays: fresh pages would cost as much as
//! a pass over the elements. Used by the driver of this room.

use tilework_backend::{Storage, UserWrite};
use tilework_error::Result;

use crate::Cpu;

/// Bytes, aligned as arrays are.
pub(super) struct Scratch {
    memory: UserWrite,
    bytes: usize,
}

impl Scratch {
    /// So many bytes; what they hold is of no meaning.
    pub(super) fn new(bytes: usize) -> Result<Scratch> {
        let storage = Storage::host(Cpu::ID, bytes.max(1), false)?;
        Ok(Scratch { memory: UserWrite::new("sort", &storage)?, bytes })
    }

    /// The bytes.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }
}
