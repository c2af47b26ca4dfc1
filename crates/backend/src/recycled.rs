//! A box whose memory is recycled, for the small things that come and go with every operation.
//!
//! The general allocator takes longer for a view than a kernel for eight elements; the lists of
//! `host` do not. Called by `view` and by arrays.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use tilework_error::{Error, Result};

use crate::host;

/// As a `Box`, with memory that the thread keeps for the next.
pub struct Recycled<T>(NonNull<T>);

// SAFETY: a box owns its value, and its memory is not tied to a thread.
unsafe impl<T: Send> Send for Recycled<T> {}
// SAFETY: as above; a shared box gives shared access to the value only.
unsafe impl<T: Sync> Sync for Recycled<T> {}

impl<T> Recycled<T> {
    /// Boxes a value, as `Box::new` does: without memory the process ends.
    #[inline]
    pub fn new(value: T) -> Recycled<T> {
        Recycled::with(|| value).unwrap_or_else(|_| handle_alloc_error(Layout::new::<T>()))
    }

    /// Boxes a value, or fails without memory.
    #[inline]
    pub fn try_new(value: T) -> Result<Recycled<T>> {
        Recycled::with(|| value)
    }

    /// Boxes what `make` gives. There is room for it first, so that it can be made there.
    #[inline(always)]
    pub(crate) fn with(make: impl FnOnce() -> T) -> Result<Recycled<T>> {
        const { assert!(align_of::<T>() <= host::ALIGNMENT) };
        let Some(block) = host::allocate(size_of::<T>()) else {
            return Err(no_room(size_of::<T>()));
        };
        let place = block.address.cast::<T>();
        // SAFETY: the block has room for a value, is aligned, and nobody else knows it. If `make`
        // panics, only the room is lost.
        unsafe { place.write(make()) };
        Ok(Recycled(place))
    }
}

#[cold]
fn no_room(bytes: usize) -> Error {
    Error::out_of_memory("allocate", format!("no memory for the {bytes} bytes of a view"))
}

impl<T> Drop for Recycled<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the value is there, and nobody uses it any more; the block came from
        // `host::allocate` with this size.
        unsafe {
            self.0.drop_in_place();
            host::free(self.0.cast(), size_of::<T>());
        }
    }
}

impl<T> Deref for Recycled<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the box owns an initialised value.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` is the only access.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Clone> Clone for Recycled<T> {
    #[inline]
    fn clone(&self) -> Recycled<T> {
        Recycled::new(T::clone(self))
    }
}

impl<T: fmt::Debug> fmt::Debug for Recycled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
