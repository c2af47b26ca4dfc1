//! Files as memory: a part of a file, mapped, as a block that arrays can share.
//!
//! Called by the readers of array files. The one thing that no check here can ensure is that nobody
//! cuts or rewrites the file in place while it is mapped: that is the promise of whoever calls
//! [`map_file`].

use std::fs::File;
use std::ops::Range;

use memmap2::{Mmap, MmapMut, MmapOptions};
use tilework_error::{Error, Result};

use crate::backend::DeviceId;
use crate::storage::Storage;

/// What a part of a file must be aligned to: the largest element, since a block may be viewed as any
/// dtype. NumPy has always padded its headers to this or more.
const ALIGNMENT: u64 = 16;

/// What becomes of writes to a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// They are errors: the block is read-only.
    ReadOnly,
    /// They stay in this process: the page is copied when it is first written, and the file never
    /// changes.
    CopyOnWrite,
}

/// `bytes` bytes of a file from `offset` on, as a block for `device`, which must be one whose
/// memory is the host's; the mapping ends with the block's last owner.
///
/// None if the part does not begin at a multiple of 16 bytes, or is empty: then the caller reads the
/// file instead.
///
/// # Safety
/// The file stays as it is while it is mapped. If anybody writes to it in place, numbers change under
/// those who read them; if it is cut, reading beyond its end kills the process (that is the system's
/// doing, and the same in every program that maps files). Replacing the file by a rename, as all
/// writers of tilework do, is safe: the mapping keeps the old one.
pub unsafe fn map_file(
    device: DeviceId,
    file: &File,
    offset: u64,
    bytes: usize,
    mapping: Mapping,
) -> Result<Option<Storage>> {
    // A mapping begins at a page, so the offset alone decides the alignment within it.
    if bytes == 0 || !offset.is_multiple_of(ALIGNMENT) {
        return Ok(None);
    }
    let failed = |error: std::io::Error| Error::io("map", error.kind(), error);
    let end = offset.checked_add(bytes as u64);
    let length = file.metadata().map_err(failed)?.len();
    if end.is_none_or(|end| end > length) {
        let message = format!("{bytes} bytes from {offset} on leave a file of {length} bytes");
        return Err(Error::format("map", message));
    }
    let mut options = MmapOptions::new();
    options.offset(offset).len(bytes);
    let block = match mapping {
        Mapping::ReadOnly => {
            // SAFETY: the part lies inside the file (checked above), which stays as it is (the
            // caller's promise).
            let map: Mmap = unsafe { options.map(file) }.map_err(failed)?;
            let address = map.as_ptr().cast_mut();
            // SAFETY: `bytes` bytes are mapped for reading until `map`, which moves into the block
            // without moving its pages, is dropped; the block is not writable, so the address is
            // never written to. Pages of a file are initialised.
            unsafe { Storage::foreign(device, address, bytes, false, true, Box::new(map)) }
        }
        Mapping::CopyOnWrite => {
            // SAFETY: as above; the mapping is private, so writing never reaches the file.
            let mut map: MmapMut = unsafe { options.map_copy(file) }.map_err(failed)?;
            let address = map.as_mut_ptr();
            // SAFETY: as above, and the pages are mapped for writing too.
            unsafe { Storage::foreign(device, address, bytes, true, true, Box::new(map)) }
        }
    };
    block.map(Some)
}

/// Lets the system take back the memory of some bytes of a block that is a file mapped read-only:
/// they are read from the file when they are needed again. Nothing happens to other blocks, nor
/// where the system has no such call. Who reads a file once from end to end stays small by this.
pub fn release_pages(block: &Storage, bytes: Range<usize>) {
    let Some(map) = block.keeper::<Mmap>() else { return };
    let (start, end) = (bytes.start.min(map.len()), bytes.end.min(map.len()));
    #[cfg(unix)]
    if start < end {
        // SAFETY: the mapping is of a file and never written to, so that a page that is dropped
        // comes back with the same bytes; nobody can tell. A failure leaves the pages there.
        let _ = unsafe {
            map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::user::{UserRead, UserWrite};

    const HERE: DeviceId = DeviceId { backend: "cpu", index: None };

    #[test]
    fn maps_a_part_and_keeps_the_file_as_it_was() {
        let path = std::env::temp_dir().join(format!("tilework-mapped-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(&(0..200u8).collect::<Vec<_>>()).unwrap();
        drop(file);
        let file = File::open(&path).unwrap();
        // SAFETY: nobody else knows the file.
        let map = |offset, bytes, mapping| unsafe { map_file(HERE, &file, offset, bytes, mapping) };
        let read = map(64, 100, Mapping::ReadOnly).unwrap().unwrap();
        assert!(!read.is_writable() && (read.address() as usize).is_multiple_of(64));
        assert!(UserWrite::new("test", &read).is_err());
        let private = map(64, 100, Mapping::CopyOnWrite).unwrap().unwrap();
        UserWrite::new("test", &private).unwrap()[0] = 7;
        assert_eq!(UserRead::new("test", &private).unwrap()[..2], [7, 65]);
        assert_eq!(UserRead::new("test", &read).unwrap()[..2], [64, 65]);
        assert!(map(72, 8, Mapping::ReadOnly).unwrap().is_none());
        assert!(map(64, 0, Mapping::ReadOnly).unwrap().is_none());
        for (offset, bytes) in [(0, 201), (208, 1), (u64::MAX - 15, 1), (192, usize::MAX / 2)] {
            assert!(map(offset, bytes, Mapping::ReadOnly).is_err());
        }
        std::fs::remove_file(&path).unwrap();
        release_pages(&read, 0..100);
        release_pages(&private, 0..100);
        assert_eq!(UserRead::new("test", &private).unwrap()[0], 7);
        assert_eq!(UserRead::new("test", &read).unwrap()[99], 163);
    }
}
