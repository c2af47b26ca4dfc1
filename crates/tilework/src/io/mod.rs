//! Arrays in files: NumPy's `.npy` and `.npz`.
//!
//! May assume nothing of what it reads: every number of a header is checked against the length of
//! the file before memory is asked for, and nothing that a file says is ever executed. Called by
//! users only. Rooms: `header` (the dict at the top of a `.npy`), `npy`, `npz`, `mapped`, `files`
//! (writing through a temporary file), `bytes` (for other formats).

mod bytes;
mod files;
mod header;
mod mapped;
mod npy;
mod npz;

use std::fmt::Display;

use tilework_error::Error;

pub use mapped::{load_mapped, load_mapped_private};
pub use npy::{check_save, load, read_npy, save, write_npy};
pub use npz::{
    Npz, load_npz, read_npz, save_npz, save_npz_compressed, write_npz, write_npz_compressed,
};

/// What is read or written, and by which function: the beginning of every message.
#[derive(Clone, Copy)]
struct Origin<'a> {
    operation: &'static str,
    name: &'a str,
}

impl<'a> Origin<'a> {
    fn new(operation: &'static str, name: &'a str) -> Origin<'a> {
        Origin { operation, name }
    }

    /// The content is not what the format promises.
    fn bad(self, message: impl Display) -> Error {
        Error::format(self.operation, format!("{}: {message}", self.name))
    }

    /// The system refuses.
    fn refused(self, kind: std::io::ErrorKind, why: impl Display) -> Error {
        Error::io(self.operation, kind, format!("{}: {why}", self.name))
    }

    /// As [`Origin::refused`]; an end that comes too early is the file's fault and not the system's.
    fn io(self, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.bad("the data ends too early"),
            std::io::ErrorKind::InvalidData => self.bad(error),
            kind => self.refused(kind, error),
        }
    }
}
