//! Arrays in files: .npy and .npz, read and written by the core.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::{Array, Error};

use crate::args::register;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::device;
use crate::errors::OrRaise;
use crate::functions::archive::NpzFile;
use crate::run::detached;
use crate::stream::Stream;

/// Where a file is: a path, or an open file of Python's.
enum Place<'py> {
    Path(PathBuf),
    Open(Bound<'py, PyAny>),
}

fn place<'py>(file: &Bound<'py, PyAny>, method: &str) -> PyResult<Place<'py>> {
    if let Ok(path) = file.extract::<PathBuf>() {
        return Ok(Place::Path(path));
    }
    if file.hasattr(method)? {
        return Ok(Place::Open(file.clone()));
    }
    let kind = file.get_type().name()?;
    Err(PyTypeError::new_err(format!("{kind} is neither a path nor an open file")))
}

/// The path with the ending that NumPy adds.
fn ending(path: PathBuf, ending: &str) -> PathBuf {
    if path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending)) {
        return path;
    }
    let mut name = path.into_os_string();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes an array to a .npy file, by path or to an open file.
///
/// >>> import tilework as tw
/// >>> import io
/// >>> file = io.BytesIO()
/// >>> tw.save(file, tw.asarray([1, 2]))
/// >>> _ = file.seek(0)
/// >>> tw.load(file).tolist()
/// [1, 2]
#[pyfunction]
#[pyo3(signature = (file, arr, /))]
fn save(py: Python<'_>, file: &Bound<'_, PyAny>, arr: ArrayArg) -> PyResult<()> {
    match place(file, "write")? {
        Place::Path(path) => detached(py, || tilework::save(ending(path, "npy"), &arr.0)).py(),
        Place::Open(open) => {
            let mut stream = Stream::new(&open);
            let raised = stream.raised();
            let written = detached(py, || tilework::write_npy(&mut stream, &arr.0));
            raised.or(written.map_err(|error| error.of("save")))
        }
    }
}

/// Reads an array from a .npy file, or opens a .npz file, by path or from an open file, which is read up
/// to the array's last byte and no further.
///
/// A .npz file is a mapping from names to arrays, each read when it is asked for; `with` closes it.
///
/// With `mmap_mode="r"` the elements stay in the file until they are used and cannot be written;
/// with "c" they can, but the file does not change. That takes the path of a .npy file.
///
/// >>> import tilework as tw
/// >>> import io
/// >>> file = io.BytesIO()
/// >>> tw.save(file, tw.zeros(2))
/// >>> _ = file.seek(0)
/// >>> tw.load(file).tolist()
/// [0.0, 0.0]
#[pyfunction]
#[pyo3(signature = (file, /, *, mmap_mode=None))]
fn load(py: Python<'_>, file: &Bound<'_, PyAny>, mmap_mode: Option<&str>) -> PyResult<Py<PyAny>> {
    if let Some(mode) = mmap_mode.filter(|mode| !["r", "c"].contains(mode)) {
        let message = format!("load: mmap_mode is \"r\" or \"c\", not {mode:?}");
        return Err(PyValueError::new_err(message));
    }
    let no_map = |what: &str| match mmap_mode {
        Some(_) => Err(PyValueError::new_err(format!("load: {what} cannot be mapped"))),
        None => Ok(()),
    };
    let _scope = device::current().scope();
    let path = match place(file, "read")? {
        Place::Path(path) => path,
        Place::Open(open) => {
            no_map("an open file")?;
            let mut stream = Stream::new(&open);
            let start = stream.start::<4>()?;
            if is_archive(&start) {
                return NpzFile::of_stream(py, stream, start)?.into_py_any(py);
            }
            let raised = stream.raised();
            let read = || tilework::read_npy(Cursor::new(start).chain(&mut stream));
            let array = detached(py, read).map_err(|error| error.of("load"));
            return PyArray(raised.or(array)?).into_py_any(py);
        }
    };
    if is_archive(&start(&path)?) {
        no_map("an archive")?;
        return NpzFile::of_file(py, path)?.into_py_any(py);
    }
    let array = detached(py, || match mmap_mode {
        None => tilework::load(&path),
        // SAFETY: who asks for a map promises that the file stays as it is, as with NumPy.
        Some("r") => unsafe { tilework::load_mapped(&path) },
        // SAFETY: as above.
        Some(_) => unsafe { tilework::load_mapped_private(&path) },
    });
    PyArray(array.py()?).into_py_any(py)
}

/// Whether a file that begins so is a zip archive.
fn is_archive(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06")
}

/// The first bytes of a file.
fn start(path: &PathBuf) -> PyResult<Vec<u8>> {
    let wrong = |error: std::io::Error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), path.clone()))
    };
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(4).read_to_end(&mut start).map_err(wrong)?;
    Ok(start)
}

fn archive(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwds: Option<&Bound<'_, PyDict>>,
    compressed: bool,
) -> PyResult<()> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    for (k, array) in args.iter().enumerate() {
        arrays.push((format!("arr_{k}"), array.extract::<ArrayArg>()?.0));
    }
    for (name, array) in kwds.map(|kwds| kwds.iter()).into_iter().flatten() {
        let name: String = name.extract()?;
        if arrays.iter().any(|(other, _)| *other == name) {
            return Err(PyValueError::new_err(format!("savez: {name:?} is there twice")));
        }
        arrays.push((name, array.extract::<ArrayArg>()?.0));
    }
    let named: Vec<(&str, &Array)> =
        arrays.iter().map(|(name, array)| (name.as_str(), array)).collect();
    match place(file, "write")? {
        Place::Path(path) => {
            let path = ending(path, "npz");
            detached(py, || match compressed {
                true => tilework::save_npz_compressed(path, &named),
                false => tilework::save_npz(path, &named),
            })
            .py()
        }
        Place::Open(open) => {
            let mut bytes = Cursor::new(Vec::new());
            detached(py, || match compressed {
                true => tilework::write_npz_compressed(&mut bytes, &named),
                false => tilework::write_npz(&mut bytes, &named),
            })
            .py()?;
            let mut stream = Stream::new(&open);
            let told = |error: std::io::Error| Error::io("savez", error.kind(), error.to_string());
            stream.raised().or(detached(py, || stream.write_all(bytes.get_ref()).map_err(told)))
        }
    }
}

/// Writes arrays to a .npz file, by path or to an open file, under the names given, or arr_0, arr_1, ...
///
/// >>> import tilework as tw
/// >>> import pathlib, tempfile
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.npz"
/// >>> tw.savez(path, tw.zeros(2), weights=tw.ones(3))
/// >>> sorted(tw.load(path))
/// ['arr_0', 'weights']
#[pyfunction]
#[pyo3(signature = (file, /, *args, **kwds))]
fn savez(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwds: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    archive(py, file, args, kwds, false)
}

/// Writes arrays to a .npz file that is compressed.
///
/// >>> import tilework as tw
/// >>> import pathlib, tempfile
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.npz"
/// >>> tw.savez_compressed(path, zeros=tw.zeros(10_000))
/// >>> path.stat().st_size < 1000
/// True
#[pyfunction]
#[pyo3(signature = (file, /, *args, **kwds))]
fn savez_compressed(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwds: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    archive(py, file, args, kwds, true)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: save, load, savez, savez_compressed);
    Ok(())
}
