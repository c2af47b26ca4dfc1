//! The contract itself: what a backend offers, and the one door through which it is used.

use std::fmt;

use tilework_error::{Error, Result};

use crate::interrupt;
use crate::request::Request;
use crate::session::{Session, UserRead, UserWrite};
use crate::storage::Storage;

/// Names a device: `cpu`, `reference`, `cuda:0`.
#[derive(Debug, Clone, Copy, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::derived_hash_with_manual_eq, reason = "equality below is that of the fields")]
pub struct DeviceId {
    /// The backend's name.
    pub backend: &'static str,
    /// Which of the backend's devices; None where there is only one.
    pub index: Option<u32>,
}

impl PartialEq for DeviceId {
    /// Every operation asks this of all its blocks: the names are mostly one and the same.
    #[inline]
    fn eq(&self, other: &DeviceId) -> bool {
        let same_name = std::ptr::eq(self.backend, other.backend) || self.backend == other.backend;
        same_name && self.index == other.index
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => f.pad(self.backend),
            Some(index) => f.pad(&format!("{}:{index}", self.backend)),
        }
    }
}

/// What a device can tell about itself, as pairs of a name and a value, in the order to be shown.
pub type Properties = Vec<(&'static str, String)>;

/// Something that runs requests on memory of its own.
pub trait Backend: Send + Sync + 'static {
    /// The device's name.
    fn id(&self) -> DeviceId;

    /// What there is to know about the device.
    fn properties(&self) -> Properties;

    /// A new block, with every byte zero if that is asked for.
    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage>;

    /// Does what is asked. The session holds the guards of all blocks of the request.
    fn run(&self, session: &Session<'_>, request: &Request<'_>) -> Result<()>;

    /// How it would do what is asked, for human eyes: sizes, the form chosen and its bounds. May
    /// look at the inputs, and writes nothing.
    fn explain(&self, session: &Session<'_>, request: &Request<'_>) -> Result<String> {
        let _ = (session, request);
        Ok(String::new())
    }

    /// Waits until everything asked so far is done.
    fn synchronize(&self) -> Result<()>;

    /// Copies bytes from the host to a place in a block; a device without host memory overrides it.
    fn upload(&self, bytes: &[u8], storage: &Storage, at: usize) -> Result<()> {
        let mut to = UserWrite::new("upload", storage)?;
        let room = to.get_mut(at..at.saturating_add(bytes.len()));
        room.ok_or_else(|| Error::index("upload", "outside of the block"))?.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies bytes from a place in a block to the host; a device without host memory overrides it.
    fn download(&self, storage: &Storage, at: usize, bytes: &mut [u8]) -> Result<()> {
        let from = UserRead::new("download", storage)?;
        let found = from.get(at..at.saturating_add(bytes.len()));
        bytes.copy_from_slice(
            found.ok_or_else(|| Error::index("download", "outside of the block"))?,
        );
        Ok(())
    }
}

/// Runs a request: takes the guards, asks the backend, lets the guards go. Where all that it
/// writes is new and somebody may stop it ([`crate::interruptible`]), it can be stopped.
///
/// An error if the request's blocks are not all on the backend's device.
pub fn run(backend: &dyn Backend, request: &Request<'_>) -> Result<()> {
    let mut session = Session::new();
    session.open(request, backend.id())?;
    if session.is_stoppable() {
        return interrupt::stoppable(request.name(), || backend.run(&session, request));
    }
    backend.run(&session, request)
}

/// How a request would be done; the same guards are taken as for doing it.
pub fn explain(backend: &dyn Backend, request: &Request<'_>) -> Result<String> {
    let mut session = Session::new();
    session.open(request, backend.id())?;
    backend.explain(&session, request)
}
