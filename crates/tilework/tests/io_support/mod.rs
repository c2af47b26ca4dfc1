//! What the tests of files share: folders that go with a test, arrays that can be told apart, and
//! files that NumPy wrote (`scripts/npy_files.py`).

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use tilework::{Array, Complex, DType, Result, write_npy};

pub(crate) fn load_mapped(path: impl AsRef<Path>) -> Result<Array> {
    // SAFETY: tests replace their files, and change none in place.
    unsafe { tilework::load_mapped(path) }
}

pub(crate) fn load_mapped_private(path: impl AsRef<Path>) -> Result<Array> {
    // SAFETY: as above.
    unsafe { tilework::load_mapped_private(path) }
}

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tilework-io-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn numpy(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy").join(name)
}

pub(crate) fn bytes(array: &Array) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_npy(&mut bytes, array).unwrap();
    bytes
}

/// 0, 1, 2, ... with half of it as imaginary part, as the script makes them.
pub(crate) fn numbers(dtype: DType, shape: &[isize]) -> Array {
    let len: isize = shape.iter().product();
    let count = Array::arange(0, len, 1, DType::Float64).unwrap();
    let numbers = match dtype {
        DType::Bool => count.remainder(2.0).unwrap(),
        _ if dtype.is_complex() => count.multiply(Complex::new(1.0, 0.5)).unwrap(),
        _ => count,
    };
    numbers.astype(dtype).unwrap().reshape(shape).unwrap()
}

pub(crate) fn assert_same(found: &Array, wanted: &Array) {
    assert_eq!((found.shape(), found.dtype()), (wanted.shape(), wanted.dtype()));
    assert_eq!(bytes(&found.copy().unwrap()), bytes(&wanted.copy().unwrap()), "{found}\n{wanted}");
}

/// A file with this dict in its header, and this data.
pub(crate) fn with_header(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = (dict.len() as u32).to_le_bytes();
    file.extend(&length[..if version == 1 { 2 } else { 4 }]);
    file.extend(dict.as_bytes());
    file.extend(data);
    file
}
