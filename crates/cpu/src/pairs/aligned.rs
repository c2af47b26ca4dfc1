//! Numbers that begin on a cache line, so that no vector of them lies across two.
//!
//! Tiles of products read two vectors for every twelve numbers: across lines, they would run at two
//! thirds of their rate. Used by `packed`, `nearest` and `candidates`.

use std::ops::{Deref, DerefMut};

use tilework_backend::try_filled;
use tilework_error::Result;

/// Bytes of a cache line, and of the longest vector.
const LINE: usize = 64;

/// Some numbers, the first of them on a cache line.
pub(super) struct Aligned<T> {
    numbers: Vec<T>,
    first: usize,
}

impl<T: Copy> Aligned<T> {
    /// So many times a value, for `operation`.
    pub(super) fn filled(operation: &'static str, value: T, len: usize) -> Result<Aligned<T>> {
        let before = LINE / size_of::<T>();
        let mut numbers = try_filled(operation, value, len + before)?;
        let first = numbers.as_ptr().align_offset(LINE).min(before);
        numbers.truncate(first + len);
        Ok(Aligned { numbers, first })
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.first..]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.first..]
    }
}
