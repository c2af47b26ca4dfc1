//! Elements as Rust values: slices behind guards, vectors, iterators, single elements.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use tilework_backend::{PIECE, UserRead, UserWrite, try_zeroed};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Layout, Positions, positions};
use tilework_ops::{Element, Scalar};

use super::Array;

impl Array {
    /// The elements as a slice, for reading. The array must be in row-major order.
    ///
    /// While the guard lives, operations that write to the memory fail with `Borrowed`.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1.0f32, 2.0])?;
    /// let slice = x.read::<f32>()?;
    /// assert_eq!(slice[1], 2.0);
    /// assert!(x.fill(0.0).is_err());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn read<T: Element<Raw = T> + bytemuck::Pod>(&self) -> Result<ReadGuard<T>> {
        let range = self.byte_range::<T>("read")?;
        let bytes = UserRead::new("read", self.storage())?;
        Ok(ReadGuard { bytes, range, element: PhantomData })
    }

    /// The elements as a slice, for writing. The array must be in row-major order.
    ///
    /// While the guard lives, every other use of the memory fails with `Borrowed`.
    pub fn write<T: Element<Raw = T> + bytemuck::Pod>(&self) -> Result<WriteGuard<T>> {
        let range = self.byte_range::<T>("write")?;
        let bytes = UserWrite::new("write", self.storage())?;
        Ok(WriteGuard { bytes, range, element: PhantomData })
    }

    fn byte_range<T: Element>(&self, operation: &str) -> Result<Range<usize>> {
        self.expect_dtype::<T>(operation)?;
        if !self.is_contiguous() {
            let (shape, strides) = (tuple(self.shape()), tuple(self.strides()));
            let message = format!(
                "shape {shape} with strides {strides} is not a slice; compact or to_vec copies"
            );
            return Err(Error::shape(operation, message));
        }
        let size = self.dtype().size();
        let start = if self.is_empty() { 0 } else { self.offset() * size };
        Ok(start..start + self.len() * size)
    }

    fn expect_dtype<T: Element>(&self, operation: &str) -> Result<()> {
        if self.dtype() == T::DTYPE {
            return Ok(());
        }
        let message = format!("the array is {}, not {}; astype casts", self.dtype(), T::DTYPE);
        Err(Error::dtype(operation, message))
    }

    /// A copy of the elements in row-major order, whatever the strides.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.expect_dtype::<T>("to_vec")?;
        let compact = self.compact()?;
        let mut raw = try_zeroed("to_vec", self.len())?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut::<T::Raw, u8>(&mut raw);
        let from = if self.is_empty() { 0 } else { compact.offset() * self.dtype().size() };
        self.device.download("to_vec", compact.storage(), from, bytes)?;
        Ok(raw.into_iter().map(T::from_raw).collect())
    }

    /// The bytes of a row-major array in pieces, each read as an operation of this name does: nothing
    /// is held while `take` works, which may be long or do anything.
    pub(crate) fn each_piece(
        &self,
        operation: &'static str,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(self.is_contiguous());
        let bytes = self.len() * self.dtype().size();
        let start = self.offset() * self.dtype().size();
        let mut piece: Vec<u8> = try_zeroed(operation, bytes.min(PIECE))?;
        for at in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(bytes - at)];
            self.device.download(operation, self.storage(), start + at, piece)?;
            take(piece)?;
        }
        Ok(())
    }

    /// The elements one by one in row-major order; the memory is guarded until the iterator ends.
    pub fn iter<T: Element>(&self) -> Result<Iter<T>> {
        self.expect_dtype::<T>("iter")?;
        let bytes = UserRead::new("iter", self.storage())?;
        Ok(Iter { bytes, positions: positions(self.layout()), element: PhantomData })
    }

    /// The only element, cast to `T` by the rule of [`Array::astype`]: unlike [`Array::to_vec`],
    /// `item::<f64>()` reads a number of any real dtype. [`Array::to_scalar`] keeps the dtype.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[2.75f32])?;
    /// assert_eq!((x.item::<f64>()?, x.item::<i8>()?), (2.75, 2));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn item<T: Element>(&self) -> Result<T> {
        self.to_scalar().map(|scalar| scalar.get())
    }

    /// The only element, with its dtype.
    pub fn to_scalar(&self) -> Result<Scalar> {
        if self.len() != 1 {
            let message = format!("shape {} is not a single element", tuple(self.shape()));
            return Err(Error::shape("item", message));
        }
        let bytes = self.bytes_at("item", self.offset())?;
        Ok(Scalar::from_bytes(self.dtype(), &bytes))
    }

    /// The bytes of the element at a position of the block, and zeros.
    fn bytes_at(&self, operation: &'static str, position: usize) -> Result<[u8; 16]> {
        let (size, mut bytes) = (self.dtype().size(), [0; 16]);
        self.device.download(operation, self.storage(), position * size, &mut bytes[..size])?;
        Ok(bytes)
    }

    /// The element at one index for each axis, as an array of no axes: a copy, which stays as it is
    /// when the array is written to. Negative indices count from the end.
    ///
    /// ```
    /// use tilework::Array;
    /// let x = Array::from_slice(&[1, 2])?;
    /// let last = x.element(&[-1])?;
    /// x.fill(0)?;
    /// assert_eq!((last.ndim(), last.item::<i32>()?), (0, 2));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn element(&self, index: &[isize]) -> Result<Array> {
        let position = self.layout().element(index)?;
        if !self.storage().is_on_host() {
            let place = Layout::new(&[], &[], position)?;
            return self.with_layout(place)?.copy().map_err(|error| error.of("index"));
        }
        // No request, which would take longer than all the rest.
        let mut fresh = self.device.allocate("index", &[], self.dtype(), false)?;
        fresh.fill(&self.bytes_at("index", position)?[..self.dtype().size()]);
        Ok(Array::from_fresh(fresh, self.device))
    }

    /// One element, cast like [`Array::item`]; negative indices count from the end.
    pub fn get<T: Element>(&self, index: &[isize]) -> Result<T> {
        let index: Vec<_> = index.iter().map(|&i| tilework_layout::Index::At(i)).collect();
        self.slice(&index)?.item()
    }
}

/// A slice of an array's elements that may be read.
#[derive(Debug)]
pub struct ReadGuard<T> {
    bytes: UserRead,
    range: Range<usize>,
    element: PhantomData<T>,
}

/// A slice of an array's elements that may be written.
#[derive(Debug)]
pub struct WriteGuard<T> {
    bytes: UserWrite,
    range: Range<usize>,
    element: PhantomData<T>,
}

impl<T: bytemuck::Pod> Deref for ReadGuard<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes[self.range.clone()])
    }
}

impl<T: bytemuck::Pod> Deref for WriteGuard<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes[self.range.clone()])
    }
}

impl<T: bytemuck::Pod> DerefMut for WriteGuard<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.bytes[self.range.clone()])
    }
}

/// The elements of an array, one by one.
#[derive(Debug)]
pub struct Iter<T> {
    bytes: UserRead,
    positions: Positions,
    element: PhantomData<T>,
}

impl<T: Element> Iterator for Iter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let at = self.positions.next()? * size_of::<T::Raw>();
        let raw = bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<T::Raw>()]);
        Some(T::from_raw(raw))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<T: Element> ExactSizeIterator for Iter<T> {}
