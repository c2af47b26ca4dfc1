//! `.npy`: one array in a file or a stream.
//!
//! May assume nothing of the data. Data is read straight into the new array's memory and written
//! straight from the old one's; an array that lies in neither order is compacted first. Called by
//! users, and by `npz` for each member.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use tilework_backend::{PIECE, UserWrite, try_zeroed};
use tilework_error::Result;

use super::Origin;
use super::files::{check, replace};
use super::header::Header;
use crate::array::Array;
use crate::device::Device;

/// Writes an array to a `.npy` file, replacing what was there: all of it or nothing.
///
/// The path is used as it is; nothing is appended. The array stays usable meanwhile; what others
/// write to it while it is being saved may be in the file or not. Arrays in Fortran order keep it; others are
/// written in row-major order. bfloat16, for which NumPy has no type, is written the way ml_dtypes
/// does, as two bytes without a meaning (`'<V2'`): `np.load(path).view(ml_dtypes.bfloat16)` reads
/// it in Python, and [`load`] reads it as bfloat16.
///
/// ```
/// use tilework::{Array, load, save};
/// let path = std::env::temp_dir().join(format!("doc-save-{}.npy", std::process::id()));
/// save(&path, &Array::from_slice(&[1.5f32, 2.5])?)?;
/// assert_eq!(load(&path)?.to_vec::<f32>()?, [1.5, 2.5]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn save(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let origin = Origin::new("save", &name);
    replace(origin, path, |file| write_to(origin, file, array))
}

/// Whether [`save`] could begin to write to this path, and which file that would be, through links and
/// by its one real name: for long work that should not end in an error that was there before it.
/// Nothing is changed.
///
/// ```
/// assert!(tilework::check_save("/no/such/folder/x.npy").is_err());
/// let folder = std::env::temp_dir();
/// let twice = folder.join(".").join("x.npy");
/// assert_eq!(tilework::check_save(twice)?, tilework::check_save(folder.join("x.npy"))?);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn check_save(path: impl AsRef<Path>) -> Result<PathBuf> {
    let path = path.as_ref();
    check(Origin::new("save", &path.display().to_string()), path)
}

/// Reads an array from a `.npy` file onto the current device.
///
/// All versions of the format, both orders of axes and of bytes. Sizes are checked against the
/// file's length before memory is asked for. Python objects (pickles) and records are refused.
///
/// ```
/// use tilework::load;
/// let message = load("/no/such/file.npy").unwrap_err().to_string();
/// assert!(message.starts_with("load: /no/such/file.npy: "));
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Array> {
    let name = path.as_ref().display().to_string();
    let origin = Origin::new("load", &name);
    let (file, length) = open(origin, path.as_ref())?;
    read_from(origin, &mut BufReader::new(file), length).map(|(array, _)| array)
}

/// Opens a file; its length too, unless it is a pipe or the like.
pub(super) fn open(origin: Origin<'_>, path: &Path) -> Result<(File, Option<u64>)> {
    let file = File::open(path).map_err(|error| origin.io(error))?;
    let about = file.metadata().map_err(|error| origin.io(error))?;
    if about.is_dir() {
        return Err(origin.refused(ErrorKind::IsADirectory, "a directory"));
    }
    Ok((file, about.is_file().then_some(about.len())))
}

/// Writes an array in the `.npy` format to a stream: see [`save`].
///
/// ```
/// use tilework::{Array, read_npy, write_npy};
/// let mut bytes = Vec::new();
/// write_npy(&mut bytes, &Array::from_slice(&[1i32, 2, 3])?)?;
/// assert_eq!(read_npy(&bytes[..])?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn write_npy(mut writer: impl Write, array: &Array) -> Result<()> {
    let origin = Origin::new("write_npy", "stream");
    write_to(origin, &mut writer, array)?;
    writer.flush().map_err(|error| origin.io(error))
}

/// Reads an array in the `.npy` format from a stream, up to its last byte and no further: see
/// [`load`]. Memory grows with what arrives, not with what the header promises.
pub fn read_npy(mut reader: impl Read) -> Result<Array> {
    let origin = Origin::new("read_npy", "stream");
    read_from(origin, &mut reader, None).map(|(array, _)| array)
}

impl Array {
    /// Writes the array to a `.npy` file: see [`save`](crate::save).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path, self)
    }
}

pub(super) fn write_to(origin: Origin<'_>, writer: &mut dyn Write, array: &Array) -> Result<()> {
    let fortran = !array.is_contiguous() && array.layout().is_f_contiguous();
    let array = if fortran { array.transpose() } else { array.compact()? };
    let mut shape = array.shape().to_vec();
    if fortran {
        shape.reverse();
    }
    let header = Header::write(array.dtype(), &shape, fortran);
    writer.write_all(&header).map_err(|error| origin.io(error))?;
    array.each_piece(origin.operation, &mut |piece| {
        writer.write_all(piece).map_err(|error| origin.io(error))
    })
}

/// Reads an array; also how many bytes that took. `length` is what the reader holds, if known.
pub(super) fn read_from(
    origin: Origin<'_>,
    reader: &mut dyn Read,
    length: Option<u64>,
) -> Result<(Array, u64)> {
    let (header, taken) = Header::read(origin, reader)?;
    let mut held = None;
    let reader: &mut dyn Read = match length {
        Some(length) => {
            header.check_length(origin, taken, length.saturating_sub(taken as u64))?;
            reader
        }
        None => {
            let mut data = Vec::new();
            let limit = header.bytes as u64;
            reader.take(limit).read_to_end(&mut data).map_err(|error| origin.io(error))?;
            header.check_length(origin, taken, data.len() as u64)?;
            held.insert(std::io::Cursor::new(data))
        }
    };
    let flat = [header.bytes / header.dtype.size()];
    let array = Array::unset(origin.operation, Device::current(), &flat, header.dtype)?;
    let word = if header.swapped { header.dtype.part().size() } else { 1 };
    fill(origin, reader, &array, header.bytes, word)?;
    let array = array.with_layout(header.layout()?)?;
    Ok((array, taken as u64 + header.bytes as u64))
}

/// Fills a new array with the next bytes, turning each word around if it has several.
fn fill(
    origin: Origin<'_>,
    reader: &mut dyn Read,
    array: &Array,
    bytes: usize,
    word: usize,
) -> Result<()> {
    let mut next = |piece: &mut [u8]| -> Result<()> {
        reader.read_exact(piece).map_err(|error| origin.io(error))?;
        if word > 1 {
            piece.chunks_exact_mut(word).for_each(<[u8]>::reverse);
        }
        Ok(())
    };
    if bytes == 0 {
        return Ok(());
    }
    if array.storage().is_on_host() {
        let mut guard = UserWrite::new(origin.operation, array.storage())?;
        return next(&mut guard[..bytes]);
    }
    let mut piece: Vec<u8> = try_zeroed(origin.operation, bytes.min(PIECE))?;
    for at in (0..bytes).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(bytes - at)];
        next(piece)?;
        array.device().upload(origin.operation, piece, array.storage(), at)?;
    }
    Ok(())
}
