//! What `load` gives for a .npz file: a mapping that reads an array when it is asked for.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilework::{Array, Npz, Result};

use crate::array::PyArray;
use crate::device;
use crate::run::detached;
use crate::stream::{Raised, Stream};

/// An open archive, by where it lies.
enum Source {
    File(Npz<BufReader<File>>),
    Stream(Npz<BufReader<Stream>>),
    Memory(Npz<Cursor<Vec<u8>>>),
}

impl Source {
    fn names(&self) -> &[String] {
        match self {
            Source::File(archive) => archive.names(),
            Source::Stream(archive) => archive.names(),
            Source::Memory(archive) => archive.names(),
        }
    }

    fn read(&mut self, name: &str) -> Result<Array> {
        match self {
            Source::File(archive) => archive.read(name),
            Source::Stream(archive) => archive.read(name),
            Source::Memory(archive) => archive.read(name),
        }
    }
}

/// The arrays of a .npz file under their names, each read when it is asked for: what `load` gives.
///
/// >>> import tilework as tw
/// >>> import io
/// >>> file = io.BytesIO()
/// >>> tw.savez(file, tw.zeros(2), weights=tw.ones(3))
/// >>> _ = file.seek(0)
/// >>> with tw.load(file) as arrays:
/// ...     arrays.files, arrays["weights"].tolist()
/// (['arr_0', 'weights'], [1.0, 1.0, 1.0])
#[pyclass(frozen, mapping, name = "NpzFile", module = "tilework")]
pub struct NpzFile {
    /// None when it is closed.
    archive: Mutex<Option<Source>>,
    /// The thread that reads, which must not wait for itself: reading may run Python's code.
    reader: Mutex<Option<ThreadId>>,
    names: Vec<String>,
    raised: Raised,
}

/// How long a thread that waits for another one to read does not look for signals.
const PATIENCE: Duration = Duration::from_millis(1);

impl NpzFile {
    /// The archive at a path, which stays open.
    pub fn of_file(py: Python<'_>, path: PathBuf) -> PyResult<NpzFile> {
        let opened = detached(py, || Npz::open(path).map(Source::File));
        NpzFile::new(opened, Raised::default())
    }

    /// The archive in an open file that begins with `start`, which has been read.
    pub fn of_stream(py: Python<'_>, mut stream: Stream, start: Vec<u8>) -> PyResult<NpzFile> {
        let raised = stream.raised();
        let opened = if stream.can_seek(py)? {
            detached(py, || Npz::new(BufReader::new(stream)).map(Source::Stream))
        } else {
            // A pipe: its end, where the names are, comes last.
            detached(py, || {
                let mut bytes = start;
                stream.read_to_end(&mut bytes).map_err(|error| {
                    tilework::Error::io("load", error.kind(), error.to_string())
                })?;
                Npz::new(Cursor::new(bytes)).map(Source::Memory)
            })
        };
        NpzFile::new(opened, raised)
    }

    fn new(opened: Result<Source>, raised: Raised) -> PyResult<NpzFile> {
        let archive = raised.or(opened.map_err(|error| error.of("load")))?;
        let names = archive.names().to_vec();
        Ok(NpzFile { archive: Mutex::new(Some(archive)), reader: Mutex::new(None), names, raised })
    }

    /// The archive, once no other thread reads it; signals are heard meanwhile.
    fn open(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Source>>> {
        loop {
            match self.archive.try_lock() {
                Ok(archive) => return Ok(archive),
                Err(TryLockError::Poisoned(error)) => return Ok(error.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if *self.reader() == Some(thread::current().id()) {
                let message = "load: this thread is in the middle of reading from the archive";
                return Err(PyRuntimeError::new_err(message));
            }
            py.detach(|| thread::sleep(PATIENCE));
            py.check_signals()?;
        }
    }

    fn reader(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of an array that a key means: also with the ending that members of archives have.
    fn named(&self, key: &Bound<'_, PyAny>) -> Option<&str> {
        let key: String = key.extract().ok()?;
        let find = |name: &str| self.names.iter().find(|known| *known == name);
        find(&key).or_else(|| find(key.strip_suffix(".npy")?)).map(String::as_str)
    }

    /// One of the views that Python makes of mappings.
    fn view<'py>(slf: &Bound<'py, Self>, class: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("collections.abc")?.getattr(class)?.call1((slf,))
    }
}

#[pymethods]
impl NpzFile {
    /// The names of the arrays, in the archive's order.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> tw.load(file).files
    /// ['x']
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.names)
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        let Some(name) = self.named(key) else {
            return Err(PyKeyError::new_err(format!("{} is not in the archive", key.repr()?)));
        };
        let _scope = device::current().scope();
        let mut archive = self.open(py)?;
        *self.reader() = Some(thread::current().id());
        let source = archive.as_mut();
        let read = detached(py, || source.map(|source| source.read(name)));
        *self.reader() = None;
        drop(archive);
        match read {
            Some(array) => self.raised.or(array.map_err(|error| error.of("load"))).map(PyArray),
            None => Err(PyValueError::new_err("load: the archive is closed")),
        }
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        self.named(key).is_some()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.files(py)?.call_method0("__iter__")
    }

    /// The names, as a view.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> list(tw.load(file).keys())
    /// ['x']
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        NpzFile::view(slf, "KeysView")
    }

    /// The arrays, as a view that reads each when it comes to it.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> [x.tolist() for x in tw.load(file).values()]
    /// [[0.0, 0.0]]
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        NpzFile::view(slf, "ValuesView")
    }

    /// Names and arrays, as a view that reads each when it comes to it.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> [(name, x.shape) for name, x in tw.load(file).items()]
    /// [('x', (2,))]
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        NpzFile::view(slf, "ItemsView")
    }

    /// The array of a name, or a default where there is none.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> tw.load(file).get("y") is None
    /// True
    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        match self.named(key) {
            Some(_) => Ok(Some(self.__getitem__(py, key)?.into_pyobject(py)?.into_any())),
            None => Ok(default),
        }
    }

    /// Closes the file, if `load` has opened it: no array can be read any more.
    ///
    /// >>> import tilework as tw
    /// >>> import io
    /// >>> file = io.BytesIO()
    /// >>> tw.savez(file, x=tw.zeros(2))
    /// >>> _ = file.seek(0)
    /// >>> tw.load(file).close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.open(py)?.take();
        drop(closed);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("NpzFile({})", self.names.join(", "))
    }
}

/// Adds the class to the module, and to Python's mappings.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NpzFile>()?;
    let mapping = module.py().import("collections.abc")?.getattr("Mapping")?;
    mapping.call_method1("register", (module.py().get_type::<NpzFile>(),)).map(|_| ())
}
