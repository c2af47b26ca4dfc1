//! Streams and addresses of other libraries: what they and a device do with shared memory is done in
//! order.
//!
//! Orders are events in streams; the host does not wait. The default stream needs none, since ours
//! keeps in step with it. Called by the Python package, which gives memory to others and takes it.

use tilework_error::Result;

use crate::device::Cuda;
use crate::driver::{Address, Handle};

/// The device that an address belongs to; None if it is no device's.
pub fn device_of(address: usize) -> Option<&'static Cuda> {
    let devices = crate::devices().ok()?;
    let number = devices.first()?.driver().device_of(address as Address).ok()?;
    devices.get(usize::try_from(number).ok()?)
}

impl Cuda {
    /// The handle of the stream that everything asked of the device is put into.
    pub fn stream(&self) -> Result<usize> {
        Ok(self.enter()?.1)
    }

    /// Lets a stream of another library wait for everything asked of the device so far.
    ///
    /// # Safety
    /// `stream` is a stream of this device's primary context that lives, or one of the driver's
    /// numbers for default streams, 1 and 2.
    pub unsafe fn let_wait(&self, stream: usize) -> Result<()> {
        let (_, own) = self.enter()?;
        // SAFETY: ours lives as long as the process, the other by the caller's promise.
        unsafe { self.order(own, stream) }
    }

    /// Lets everything asked of the device from now on wait for what is in another library's
    /// stream.
    ///
    /// # Safety
    /// As [`Cuda::let_wait`].
    pub unsafe fn wait_for(&self, stream: usize) -> Result<()> {
        let (_, own) = self.enter()?;
        // SAFETY: as above.
        unsafe { self.order(stream, own) }
    }

    /// Waits until the device has done everything that anybody asked of it.
    pub fn wait_for_all(&self) -> Result<()> {
        self.enter()?;
        self.driver().wait_for_context().map_err(|fault| self.fault("synchronize", fault))
    }

    /// # Safety
    /// Both are streams of the current context that live.
    unsafe fn order(&self, first: Handle, then: Handle) -> Result<()> {
        // SAFETY: as the caller promises.
        let done = unsafe { self.driver().order(first, then) };
        done.map_err(|fault| self.fault("streams", fault))
    }
}
