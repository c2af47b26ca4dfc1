//! Streams and addresses of other libraries: what they and a device do with shared memory is done in
//! order.
//!
//! Orders are events in streams; the host does not wait. The default stream needs none, since ours
//! keeps in step with it. Called by the Python package, which gives memory to others and takes it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tilework_error::Result;

use crate::device::Cuda;
use crate::driver::{Address, Handle};

/// What others have back when the device is done with it: each with an event, in order.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<VecDeque<(Handle, Owner)>>);

/// What keeps memory of another library.
type Owner = Box<dyn Send>;

impl Waiting {
    fn list(&self) -> MutexGuard<'_, VecDeque<(Handle, Owner)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting", self.list().len())
    }
}

/// The device that an address belongs to; None if it is no device's.
pub fn device_of(address: usize) -> Option<&'static Cuda> {
    let devices = crate::devices().ok()?;
    let number = devices.first()?.driver().device_of(address as Address).ok()?;
    devices.get(usize::try_from(number).ok()?)
}

impl Cuda {
    /// The handle of the stream that everything asked of the device is put into.
    pub fn stream(&self) -> Result<usize> {
        Ok(self.home()?.stream)
    }

    /// Lets a stream of another library wait for everything asked of the device so far.
    ///
    /// # Safety
    /// `stream` is a stream of this device's primary context that lives, or one of the driver's
    /// numbers for default streams, 1 and 2.
    pub unsafe fn let_wait(&self, stream: usize) -> Result<()> {
        // SAFETY: ours lives as long as the process, the other by the caller's promise.
        unsafe { self.order(self.home()?.stream, stream) }
    }

    /// Lets everything asked of the device from now on wait for what is in another library's
    /// stream.
    ///
    /// # Safety
    /// As [`Cuda::let_wait`].
    pub unsafe fn wait_for(&self, stream: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.order(stream, self.home()?.stream) }
    }

    /// Waits until the device has done everything that anybody asked of it.
    pub fn wait_for_all(&self) -> Result<()> {
        let _entered = self.enter()?;
        self.driver().wait_for_context().map_err(|fault| self.fault("synchronize", fault))
    }

    /// Keeps what owns memory of another library until everything asked of the device so far is done.
    /// Nobody waits for that: it is let go by a later call that finds the device done.
    pub fn keep_until_done(&self, owner: Box<dyn Send>) {
        match self.event_of_now() {
            Ok(event) => self.waiting().list().push_back((event, owner)),
            // A device that fails here tells the next operation.
            Err(_) => drop((self.wait("streams"), owner)),
        }
        self.let_go();
    }

    /// Lets go what waited for the device, as far as it is done.
    pub(crate) fn let_go(&self) {
        let mut done: Vec<(Handle, Owner)> = Vec::new();
        let mut list = self.waiting().list();
        if list.is_empty() {
            return;
        }
        let Ok(_entered) = self.enter() else { return };
        // SAFETY: events in the list live.
        while let Some(first) = list.pop_front_if(|first| unsafe { self.driver().is_over(first.0) })
        {
            done.push(first);
        }
        // What is let go may do anything, so it must not find the list locked.
        drop(list);
        for (event, owner) in done {
            // SAFETY: it was in the list, and is not any more.
            unsafe { self.driver().destroy_event(event) };
            drop(owner);
        }
    }

    /// An event that is over when everything asked so far is done.
    pub(crate) fn event_of_now(&self) -> Result<Handle> {
        let _entered = self.enter()?;
        let (driver, stream) = (self.driver(), self.home()?.stream);
        let event = driver.create_event().map_err(|fault| self.fault("streams", fault))?;
        // SAFETY: the event was made above; our stream lives as long as the process.
        if let Err(fault) = unsafe { driver.record(event, stream) } {
            // SAFETY: nobody else knows it.
            unsafe { driver.destroy_event(event) };
            return Err(self.fault("streams", fault));
        }
        Ok(event)
    }

    /// # Safety
    /// Both are streams of the device's context that live.
    unsafe fn order(&self, first: Handle, then: Handle) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: as the caller promises.
        let done = unsafe { self.driver().order(first, then) };
        done.map_err(|fault| self.fault("streams", fault))
    }
}
