//! `.npz`: several named arrays in a zip archive.
//!
//! May assume nothing of an archive: what it declares about a member is checked against the
//! archive's length and the member's own header before memory is asked for. Called by users.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tilework_error::{Error, Result};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::Origin;
use super::files::replace;
use super::npy::{open, read_from, write_to};
use crate::array::Array;

/// No deflate stream expands further: a match of 258 bytes takes two bits at least.
const DEFLATE_EXPANDS: u64 = 1032;

/// Writes named arrays to an `.npz` file as they are, replacing what was there: all or nothing.
///
/// Members are called `name.npy`, as NumPy does; a name that ends so already is not changed.
///
/// ```
/// use tilework::{Array, load_npz, save_npz};
/// let path = std::env::temp_dir().join(format!("doc-npz-{}.npz", std::process::id()));
/// let (x, y) = (Array::from_slice(&[1.0f32])?, Array::from_slice(&[2i64, 3])?);
/// save_npz(&path, &[("x", &x), ("y", &y)])?;
/// let arrays = load_npz(&path)?;
/// assert_eq!(arrays[1].0, "y");
/// assert_eq!(arrays[1].1.to_vec::<i64>()?, [2, 3]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn save_npz(path: impl AsRef<Path>, arrays: &[(&str, &Array)]) -> Result<()> {
    write("save_npz", path.as_ref(), arrays, CompressionMethod::Stored)
}

/// [`save_npz`] with every member compressed.
///
/// ```
/// use tilework::{Array, DType, load_npz, save_npz_compressed};
/// let path = std::env::temp_dir().join(format!("doc-npz-small-{}.npz", std::process::id()));
/// save_npz_compressed(&path, &[("zeros", &Array::zeros(&[100_000], DType::Float64)?)])?;
/// assert!(std::fs::metadata(&path).is_ok_and(|file| file.len() < 10_000));
/// assert_eq!(load_npz(&path)?[0].1.shape(), [100_000]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn save_npz_compressed(path: impl AsRef<Path>, arrays: &[(&str, &Array)]) -> Result<()> {
    write("save_npz_compressed", path.as_ref(), arrays, CompressionMethod::Deflated)
}

/// Writes named arrays in the `.npz` format to a stream: see [`save_npz`].
///
/// ```
/// use std::io::Cursor;
/// use tilework::{Array, read_npz, write_npz};
/// let mut stream = Cursor::new(Vec::new());
/// write_npz(&mut stream, &[("x", &Array::from_slice(&[1i32, 2])?)])?;
/// assert_eq!(read_npz(stream)?[0].1.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn write_npz(writer: impl Write + Seek, arrays: &[(&str, &Array)]) -> Result<()> {
    let origin = Origin::new("write_npz", "stream");
    check_names(origin, arrays)?;
    pack(origin, writer, arrays, CompressionMethod::Stored)
}

/// [`write_npz`], compressed: see [`save_npz_compressed`].
pub fn write_npz_compressed(writer: impl Write + Seek, arrays: &[(&str, &Array)]) -> Result<()> {
    let origin = Origin::new("write_npz_compressed", "stream");
    check_names(origin, arrays)?;
    pack(origin, writer, arrays, CompressionMethod::Deflated)
}

fn write(
    operation: &'static str,
    path: &Path,
    arrays: &[(&str, &Array)],
    method: CompressionMethod,
) -> Result<()> {
    let name = path.display().to_string();
    let origin = Origin::new(operation, &name);
    check_names(origin, arrays)?;
    replace(origin, path, |file| pack(origin, file, arrays, method))
}

/// That every array has a name of its own.
fn check_names(origin: Origin<'_>, arrays: &[(&str, &Array)]) -> Result<()> {
    let mut seen = HashSet::new();
    for (name, _) in arrays {
        let key = name.strip_suffix(".npy").unwrap_or(name);
        if key.is_empty() || !seen.insert(key) {
            let message = format!("the name {name:?} is empty or given twice");
            return Err(Error::value(origin.operation, message));
        }
    }
    Ok(())
}

fn pack(
    origin: Origin<'_>,
    writer: impl Write + Seek,
    arrays: &[(&str, &Array)],
    method: CompressionMethod,
) -> Result<()> {
    let mut archive = ZipWriter::new(writer);
    for (name, array) in arrays {
        let member = format!("{}.npy", name.strip_suffix(".npy").unwrap_or(name));
        // Members near four gigabytes need the wider fields, which must be known beforehand.
        let bytes = array.len().saturating_mul(array.dtype().size());
        let large = bytes as u64 > u64::from(u32::MAX) - (1 << 20);
        let options = SimpleFileOptions::default().compression_method(method).large_file(large);
        archive.start_file(member, options).map_err(|error| failed(origin, error))?;
        write_to(origin, &mut archive, array)?;
    }
    archive.finish().map_err(|error| failed(origin, error))?;
    Ok(())
}

/// Reads all arrays of an `.npz` file onto the current device, in the archive's order, with the
/// names that they were saved under. [`Npz`] reads single ones.
///
/// An archive that declares more than its bytes can hold is refused before memory is asked for.
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>> {
    Npz::of_file("load_npz", path.as_ref())?.all()
}

/// Reads all arrays of an archive from a stream, from its beginning: see [`load_npz`].
pub fn read_npz(reader: impl Read + Seek) -> Result<Vec<(String, Array)>> {
    Npz::of_stream("read_npz", "stream".to_owned(), reader)?.all()
}

/// An open `.npz` archive: its names are known, its arrays are read when they are asked for, so that
/// one that cannot be read, or is too large, keeps nobody from the others.
///
/// ```
/// use std::io::Cursor;
/// use tilework::{Array, Npz, write_npz};
/// let mut stream = Cursor::new(Vec::new());
/// write_npz(&mut stream, &[("x", &Array::from_slice(&[1i32, 2])?)])?;
/// let mut archive = Npz::new(stream)?;
/// assert_eq!(archive.names(), ["x"]);
/// assert_eq!(archive.read("x")?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug)]
pub struct Npz<R> {
    archive: ZipArchive<R>,
    operation: &'static str,
    source: String,
    length: u64,
    names: Vec<String>,
    /// Where in the archive the array of each name is.
    places: Vec<usize>,
}

impl Npz<BufReader<File>> {
    /// Opens an `.npz` file.
    pub fn open(path: impl AsRef<Path>) -> Result<Npz<BufReader<File>>> {
        Npz::of_file("load_npz", path.as_ref())
    }

    fn of_file(operation: &'static str, path: &Path) -> Result<Npz<BufReader<File>>> {
        let source = path.display().to_string();
        let origin = Origin::new(operation, &source);
        let (file, length) = open(origin, path)?;
        if length.is_none() {
            return Err(origin.bad("an archive is read from a file, not a pipe"));
        }
        Npz::of_stream(operation, source, BufReader::new(file))
    }
}

impl<R: Read + Seek> Npz<R> {
    /// The archive that a stream holds, from its beginning.
    pub fn new(reader: R) -> Result<Npz<R>> {
        Npz::of_stream("read_npz", "stream".to_owned(), reader)
    }

    fn of_stream(operation: &'static str, source: String, mut reader: R) -> Result<Npz<R>> {
        let origin = Origin::new(operation, &source);
        let length = reader.seek(SeekFrom::End(0)).map_err(|error| origin.io(error))?;
        let archive = ZipArchive::new(reader).map_err(|error| failed(origin, error))?;
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for (place, member) in archive.file_names().enumerate() {
            let member = member.map_err(|error| failed(origin, error))?;
            // Folders, which hold nothing themselves.
            if !member.ends_with(['/', '\\']) {
                names.push(member.strip_suffix(".npy").unwrap_or(&member).to_owned());
                places.push(place);
            }
        }
        Ok(Npz { archive, operation, source, length, names, places })
    }

    /// The names of the arrays, in the archive's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads the array of a name onto the current device.
    pub fn read(&mut self, name: &str) -> Result<Array> {
        match self.names.iter().position(|known| known == name) {
            Some(k) => {
                let mut left = self.length;
                self.member(k, &mut left)
            }
            None => {
                let message = format!("{}: there is no array {name:?}", self.source);
                Err(Error::value(self.operation, message))
            }
        }
    }

    fn all(mut self) -> Result<Vec<(String, Array)>> {
        let mut left = self.length;
        let arrays: Result<Vec<Array>> =
            (0..self.names.len()).map(|k| self.member(k, &mut left)).collect();
        Ok(self.names.into_iter().zip(arrays?).collect())
    }

    /// The array of the k-th name. `left` is how many of the archive's bytes it may take.
    fn member(&mut self, k: usize, left: &mut u64) -> Result<Array> {
        let name = format!("{}: {}", self.source, self.names[k]);
        let origin = Origin::new(self.operation, &name);
        let member = self.archive.by_index(self.places[k]);
        let mut member = member.map_err(|error| failed(origin, error))?;
        let (size, packed) = (member.size(), member.compressed_size());
        // Members of an honest archive lie side by side; ones that overlap multiply what it holds.
        *left = left.checked_sub(packed).ok_or_else(|| {
            origin.bad(format!("the members declare more than the archive's {} bytes", self.length))
        })?;
        let most = match member.compression() {
            CompressionMethod::Stored => packed,
            _ => packed.saturating_mul(DEFLATE_EXPANDS).saturating_add(DEFLATE_EXPANDS),
        };
        if size > most {
            let message = format!("{packed} bytes cannot hold the {size} that are declared");
            return Err(origin.bad(message));
        }
        let (array, read) = read_from(origin, &mut member, Some(size))?;
        if read != size {
            let message = format!("the array takes {read} bytes of a member of {size}");
            return Err(origin.bad(message));
        }
        // The checksum is compared when the end is seen, which an exact read does not do.
        if member.read(&mut [0]).map_err(|error| origin.io(error))? != 0 {
            return Err(origin.bad(format!("the member is longer than the {size} bytes declared")));
        }
        Ok(array)
    }
}

fn failed(origin: Origin<'_>, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => origin.io(error),
        other => origin.bad(other),
    }
}
