//! Plain bytes between blocks and memory of others, by several threads where they are many: one alone moves less than a
//! card sends or takes, and new pages are slower still.
//!
//! Assumes nothing of what it is asked: that the session holds a block, and that the part lies inside, is checked where
//! the block tells its address. Called by `backend`.

use std::ptr::copy_nonoverlapping;

use tilework_backend::{Session, Storage};

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
/// # Panics
/// As [`Storage::part_to_write`].
pub(crate) fn copy_in(session: &Session<'_>, bytes: &[u8], block: &Storage, at: usize) {
    let to = Bytes(block.part_to_write(session, at, bytes.len()));
    for_ranges(bytes.len(), SHARE, &|range| {
        let (to, from) = (to.at(range.start), &bytes[range]);
        // SAFETY: ranges lie inside of the part and are apart, and the session holds the block for writing, so that no
        // slice of it is about; threads are done when `for_ranges` is.
        unsafe { copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    });
}

/// Copies bytes out of a block.
///
/// # Panics
/// As [`Storage::part_to_read`].
pub(crate) fn copy_out(session: &Session<'_>, block: &Storage, at: usize, bytes: &mut [u8]) {
    let from = Bytes(block.part_to_read(session, at, bytes.len()).cast_mut());
    let to = Bytes(bytes.as_mut_ptr());
    for_ranges(bytes.len(), SHARE, &|range| {
        // SAFETY: ranges lie inside of part and slice and are apart, and the session holds the block, so that nobody
        // writes it meanwhile; threads are done when `for_ranges` is.
        unsafe { copy_nonoverlapping(from.at(range.start), to.at(range.start), range.len()) }
    });
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tilework_backend::{
        Backend, DeviceId, Held, Moment, Properties, Request, download, upload,
    };
    use tilework_error::Result;

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

    /// Does this to the CPU, whichever bytes it is asked for, in the session that holds their block.
    struct Instead(fn(&Session<'_>, &Storage) -> Result<()>);

    impl Backend for Instead {
        fn id(&self) -> DeviceId {
            Cpu::ID
        }
        fn properties(&self) -> Properties {
            Properties::new()
        }
        fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
            Cpu.allocate(bytes, zeroed)
        }
        fn run(&self, _: &Session<'_>, _: &Request<'_>) -> Result<()> {
            Ok(())
        }
        fn synchronize(&self) -> Result<()> {
            Ok(())
        }
        fn upload(&self, session: &Session<'_>, _: &[u8], to: &Storage, _: usize) -> Result<()> {
            (self.0)(session, to)
        }
        fn download(
            &self,
            session: &Session<'_>,
            from: &Storage,
            _: usize,
            _: &mut [u8],
        ) -> Result<()> {
            (self.0)(session, from)
        }
    }

    fn another() -> Storage {
        Cpu.allocate(32, true).expect("memory")
    }

    /// Also where the end of what is asked for wraps around.
    #[test]
    fn bytes_that_a_session_does_not_hold_are_refused() {
        let panics = |why: &str, work: &dyn Fn() -> Result<()>| {
            let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("not to be had");
            let text = panic.downcast_ref::<&str>().expect("a message");
            assert!(text.contains(why), "{text} is not about: {why}");
        };
        let writing = |work| upload(&Instead(work), "test", &[1], &another(), 0);
        let reading = |work| download(&Instead(work), "test", &another(), 0, &mut [0]);
        let outside = "outside of a block";
        panics(outside, &|| writing(|session, it| Cpu.upload(session, &[1; 8], it, 25)));
        panics(outside, &|| writing(|session, it| Cpu.upload(session, &[1; 8], it, usize::MAX)));
        panics(outside, &|| reading(|session, it| Cpu.download(session, it, 25, &mut [0; 8])));
        panics(outside, &|| reading(|session, it| Cpu.download(session, it, !0, &mut [0; 8])));
        let not_held = "does not hold this block";
        panics(not_held, &|| writing(|session, _| Cpu.upload(session, &[1; 8], &another(), 0)));
        panics(not_held, &|| reading(|session, _| Cpu.download(session, &another(), 0, &mut [0])));
        // Whoever may read a block may not write it.
        panics("for writing", &|| reading(|session, it| Cpu.upload(session, &[1; 8], it, 0)));
        // What is held may be read and written, to its end.
        writing(|session, it| Cpu.upload(session, &[1; 8], it, 24)).expect("it is held");
        writing(|session, it| Cpu.download(session, it, 24, &mut [0; 8])).expect("it is held");
        reading(|session, it| Cpu.download(session, it, 24, &mut [0; 8])).expect("it is held");
    }
}
