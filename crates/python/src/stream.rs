//! Open files of Python as streams: what `load` reads from and `save` writes to.
//!
//! The work on them runs without the GIL, which each call of the file's methods takes. An exception of
//! the file's own is kept, and raised when the work has failed.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::OrRaise;

/// Bytes that are asked of a file at once: for each there is an object of Python meanwhile.
const PIECE: usize = 1 << 22;

/// An open file.
pub struct Stream {
    file: Py<PyAny>,
    raised: Raised,
}

/// The exception that a file's method ended with.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The result of work on the file; where it failed since the file did, the file's exception.
    pub fn or<T>(&self, result: tilework::Result<T>) -> PyResult<T> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (result, raised) {
            (Err(_), Some(error)) => Err(error),
            (result, _) => result.py(),
        }
    }
}

impl Stream {
    pub fn new(file: &Bound<'_, PyAny>) -> Stream {
        Stream { file: file.clone().unbind(), raised: Raised::default() }
    }

    /// What its methods raise.
    pub fn raised(&self) -> Raised {
        self.raised.clone()
    }

    /// Its first bytes, as many as there are.
    pub fn start<const N: usize>(&mut self) -> PyResult<Vec<u8>> {
        let mut start = Vec::new();
        let read = Read::by_ref(self).take(N as u64).read_to_end(&mut start);
        let raised = self.raised.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match raised {
            Some(error) => Err(error),
            None => read.map(|_| start).map_err(PyErr::from),
        }
    }

    /// Whether its bytes can be read in any order.
    pub fn can_seek(&self, py: Python<'_>) -> PyResult<bool> {
        let file = self.file.bind(py);
        match file.getattr_opt("seekable")? {
            Some(seekable) => seekable.call0()?.extract(),
            None => file.hasattr("seek"),
        }
    }

    fn call<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        Python::attach(|py| {
            work(self.file.bind(py)).map_err(|error| {
                let message = error.to_string();
                *self.raised.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                io::Error::other(message)
            })
        })
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(PIECE);
        self.call(|file| {
            let found = file.call_method1("read", (most,))?;
            if found.is_none() {
                return Err(PyBlockingIOError::new_err("load: the file has no bytes yet"));
            }
            let bytes = found.extract::<PyBackedBytes>().map_err(|_| {
                let kind = found.get_type();
                PyTypeError::new_err(format!("load: read() gives {kind} and not bytes"))
            })?;
            let Some(into) = into.get_mut(..bytes.len()) else {
                let message = format!("load: read({most}) gives {} bytes", bytes.len());
                return Err(PyOSError::new_err(message));
            };
            into.copy_from_slice(&bytes);
            Ok(bytes.len())
        })
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let piece = &from[..from.len().min(PIECE)];
        self.call(|file| {
            let written = file.call_method1("write", (PyBytes::new(file.py(), piece),))?;
            // Files without a buffer may take a part; what is no file of the system often says nothing.
            Ok(written.extract::<usize>().map_or(piece.len(), |written| written.min(piece.len())))
        })
    }

    /// Whether and when to flush is for whoever opened the file to say.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.call(|file| {
            let position = match to {
                SeekFrom::Start(at) => file.call_method1("seek", (at,))?,
                SeekFrom::Current(by) => file.call_method1("seek", (by, 1))?,
                SeekFrom::End(by) => file.call_method1("seek", (by, 2))?,
            };
            position.extract()
        })
    }
}
