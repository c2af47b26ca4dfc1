//! Plain bytes between blocks and memory of others, by several threads where they are many: one alone moves less than a
//! card sends or takes, and new pages are slower still.
//!
//! May assume, as the contract says, that parts lie inside of their blocks and that the session holds these. Called by
//! `backend`.

use std::ptr::copy_nonoverlapping;

use tilework_backend::Storage;

use crate::pool::for_ranges;

/// Bytes that a thread takes at a time: a piece of a transfer has four of them, as many as the memory of a card's host
/// is busy with.
const SHARE: usize = 1 << 20;

/// Where bytes are read or written, for several threads.
struct Bytes(*mut u8);

// SAFETY: each thread has a range of its own, of memory that nobody else writes meanwhile: a part of a block that the
// session holds, or a slice that the caller lent for the call.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// The address of a byte; a method, so that closures capture the whole.
    fn at(&self, position: usize) -> *mut u8 {
        self.0.wrapping_add(position)
    }
}

/// Copies bytes into a block.
///
/// # Safety
/// They fit there, and the block is held for writing.
pub(crate) unsafe fn copy_in(bytes: &[u8], block: &Storage, at: usize) {
    let to = Bytes(block.address().wrapping_add(at));
    for_ranges(bytes.len(), SHARE, &|range| {
        let (to, from) = (to.at(range.start), &bytes[range]);
        // SAFETY: as the caller promises; the block is held, so that no slice of it is about.
        unsafe { copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    });
}

/// Copies bytes out of a block.
///
/// # Safety
/// They lie there, and the block is held.
pub(crate) unsafe fn copy_out(block: &Storage, at: usize, bytes: &mut [u8]) {
    let from = Bytes(block.address().wrapping_add(at));
    let to = Bytes(bytes.as_mut_ptr());
    for_ranges(bytes.len(), SHARE, &|range| {
        // SAFETY: as the caller promises, and ranges lie inside of the slice and are apart.
        unsafe { copy_nonoverlapping(from.at(range.start), to.at(range.start), range.len()) }
    });
}

#[cfg(test)]
mod tests {
    use tilework_backend::{Backend, Held, Moment, download, upload};

    use super::*;
    use crate::Cpu;

    /// What lies in a block after copies, and what copies out of it and pieces of it are, at sizes about those of shares.
    #[test]
    fn bytes_come_and_go_whole_and_in_their_place() {
        const AT: usize = 5;
        for len in [0, 1, SHARE - 1, SHARE, SHARE + SHARE / 2 + 1, 3 * SHARE + 7, 9 * SHARE] {
            let bytes: Vec<u8> = (0..len).map(|k| (k % 251 + 1) as u8).collect();
            let block = Cpu.allocate(len + 2 * AT, true).expect("memory");
            upload(&Cpu, "test", &bytes, &block, AT).expect("there is room");
            let mut whole = vec![7; len + 2 * AT];
            download(&Cpu, "test", &block, 0, &mut whole).expect("it is all of it");
            let zeros = [0; AT];
            assert_eq!([&zeros, &bytes[..], &zeros].concat(), whole, "{len}");
            let mut given = Vec::new();
            let held = Held::new(&Cpu, "test", &block).expect("nobody else has it");
            let taken = held.give(AT..AT + len, &Moment::default(), &mut |at, piece| {
                assert_eq!(at, given.len());
                given.extend_from_slice(piece);
                Ok(())
            });
            taken.expect("it lies inside");
            assert_eq!(given, bytes, "{len}");
            let beyond = held.give(AT..len + 2 * AT + 1, &Moment::default(), &mut |_, _| Ok(()));
            assert!(beyond.is_err(), "{len}");
        }
    }
}
