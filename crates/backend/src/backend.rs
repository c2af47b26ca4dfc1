//! The contract itself: what a backend offers, and the doors through which it is used: [`run`],
//! [`explain`], [`upload`] and [`download`]. Each takes the guards of all blocks, asks the backend and
//! lets the guards go, and gives its caller's name to what fails. [`Held`] does several things with a
//! block under one guard.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use tilework_error::{Error, Result};
use tilework_tape::Tape;

use crate::host::try_zeroed;
use crate::interrupt;
use crate::lock::Access;
use crate::request::Request;
use crate::session::Session;
use crate::storage::Storage;

/// Bytes that go to or from a device in one piece, where they do not go as a whole.
pub const PIECE: usize = 4 << 20;

/// Writes the bytes of a piece, which begins at this place of the whole.
pub type Fill<'a> = &'a mut dyn FnMut(usize, &mut [u8]) -> Result<()>;

/// Takes the bytes of a piece, which begins at this place of the whole.
pub type Take<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<()>;

/// A moment in what a device does: when everything that it was asked for so far is done. The default is that of the call
/// that it is given to.
#[derive(Default)]
pub struct Moment(Option<Box<dyn Any + Send + Sync>>);

impl Moment {
    /// A moment that its device knows by this.
    pub fn new(mark: impl Any + Send + Sync) -> Moment {
        Moment(Some(Box::new(mark)))
    }

    /// What the device knows the moment by; None for the default one, and for those of other backends.
    pub fn mark<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a moment" } else { "now" })
    }
}

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
    /// Every operation asks this of all its blocks: names are too short for a call of `memcmp`.
    #[inline]
    fn eq(&self, other: &DeviceId) -> bool {
        let (a, b) = (self.backend.as_bytes(), other.backend.as_bytes());
        let same_name =
            a.len() == b.len() && (std::ptr::eq(a, b) || a.iter().zip(b).all(|(a, b)| a == b));
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

/// Where a device's memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    /// In the host: its blocks can be read and written directly.
    Host,
    /// On a card of NVIDIA's.
    Cuda,
}

/// What a device can tell about itself, as pairs of a name and a value, in the order to be shown.
pub type Properties = Vec<(&'static str, String)>;

/// Something that runs requests on memory of its own.
pub trait Backend: Send + Sync + 'static {
    /// The device's name.
    fn id(&self) -> DeviceId;

    /// What there is to know about the device.
    fn properties(&self) -> Properties;

    /// Where its memory lies.
    fn memory(&self) -> Memory {
        Memory::Host
    }

    /// Whether work on a few thousand elements is done within microseconds, so that whoever asks for
    /// it may as well wait.
    fn is_quick(&self) -> bool {
        false
    }

    /// Whether it makes a product of matrices of a sum over pairs, of so many batches, i and j: numbers of the pairs by
    /// vectors of j. Then exponentials with many weights are worth two passes, the second of which is such a sum.
    fn multiplies(&self, _sum: &Tape, _sizes: [usize; 3]) -> bool {
        false
    }

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

    /// Copies bytes from the host to a place inside of a block, which the session holds for writing;
    /// a device without host memory overrides it.
    fn upload(&self, session: &Session<'_>, bytes: &[u8], to: &Storage, at: usize) -> Result<()> {
        to.copy_in(session, at, bytes);
        Ok(())
    }

    /// A new block of so many bytes, which `fill` gives piece by piece and in order. A device with
    /// memory of its own may go on meanwhile with what it was asked before.
    fn receive(&self, operation: &'static str, bytes: usize, fill: Fill<'_>) -> Result<Storage> {
        let block = self.allocate(bytes, false)?;
        let mut session = Session::new(operation);
        session.hold(&block, Access::Write, self.id())?;
        let mut piece: Vec<u8> = try_zeroed(operation, bytes.min(PIECE))?;
        for at in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(bytes - at)];
            fill(at, piece)?;
            self.upload(&session, piece, &block, at)?;
        }
        drop(session);
        Ok(block)
    }

    /// Copies bytes from a place inside of a block, which the session holds, to the host; a device
    /// without host memory overrides it.
    fn download(
        &self,
        session: &Session<'_>,
        from: &Storage,
        at: usize,
        bytes: &mut [u8],
    ) -> Result<()> {
        from.copy_out(session, at, bytes);
        Ok(())
    }

    /// The moment when everything asked so far is done. A device that answers when it has done what it was asked needs
    /// none.
    fn moment(&self) -> Result<Moment> {
        Ok(Moment::default())
    }

    /// Gives the bytes that a part of a block, which the session holds, has at a moment since which nobody wrote there, to
    /// the host: piece by piece and in order. A device with memory of its own may bring the next piece while one is taken,
    /// and do meanwhile what it was asked for since.
    fn give(
        &self,
        session: &Session<'_>,
        from: &Storage,
        part: Range<usize>,
        _moment: &Moment,
        take: Take<'_>,
    ) -> Result<()> {
        let mut piece: Vec<u8> = try_zeroed(session.operation(), part.len().min(PIECE))?;
        for at in (0..part.len()).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(part.len() - at)];
            self.download(session, from, part.start + at, piece)?;
            take(at, piece)?;
        }
        Ok(())
    }
}

/// Runs a request for the operation of this name: takes the guards, asks the backend, lets the
/// guards go. Where all that it writes is new and somebody may stop it ([`crate::interruptible`]),
/// it can be stopped.
///
/// An error if the request's blocks are not all on the backend's device.
///
/// # Safety
/// The request is valid: shapes, dtypes and axes are as its fields say, and nothing overlaps that must
/// not. Backends check nothing of that again. Its blocks were made by the backend, or are memory that
/// the backend reaches.
#[inline]
pub unsafe fn run(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<()> {
    let mut session = Session::new(operation);
    session.open(request, backend.id())?;
    run_in(&session, backend, request)
}

fn run_in(session: &Session<'_>, backend: &dyn Backend, request: &Request<'_>) -> Result<()> {
    if session.is_stoppable() {
        return interrupt::stoppable(session.operation(), || backend.run(session, request));
    }
    backend.run(session, request)
}

/// Runs requests as one step of the operation of this name: the guards of all of them are taken at once,
/// before the first begins, so that nobody writes between one and the next.
///
/// `first` write only what nobody else knows yet, for `last` to read, and can be stopped as [`run`] can.
///
/// # Safety
/// As for [`run`], of every request when those before it are done.
pub unsafe fn run_after(
    backend: &dyn Backend,
    operation: &'static str,
    first: &[Request<'_>],
    last: &Request<'_>,
) -> Result<()> {
    let mut session = Session::new(operation);
    session.open_all(first.iter().chain([last]), backend.id())?;
    for request in first {
        match session.may_stop() {
            true => interrupt::stoppable(operation, || backend.run(&session, request))?,
            false => backend.run(&session, request)?,
        }
    }
    run_in(&session, backend, last)
}

/// How a request would be done; the same guards are taken as for doing it.
///
/// # Safety
/// As for [`run`].
pub unsafe fn explain(
    backend: &dyn Backend,
    operation: &'static str,
    request: &Request<'_>,
) -> Result<String> {
    let mut session = Session::new(operation);
    session.open(request, backend.id())?;
    backend.explain(&session, request)
}

/// Copies bytes from the host to a place in a block, as an operation of this name does: it waits for
/// other operations and is refused by guards that users hold.
pub fn upload(
    backend: &dyn Backend,
    operation: &'static str,
    bytes: &[u8],
    to: &Storage,
    at: usize,
) -> Result<()> {
    check_inside(operation, to, at, bytes.len())?;
    if !to.is_writable() {
        return Err(Error::read_only(operation, "the memory is read-only; copy the array first"));
    }
    check_memory(backend, operation, to)?;
    let mut session = Session::new(operation);
    session.hold(to, Access::Write, backend.id())?;
    backend.upload(&session, bytes, to, at)
}

/// Copies bytes from a place in a block to the host; guards as for [`upload`].
pub fn download(
    backend: &dyn Backend,
    operation: &'static str,
    from: &Storage,
    at: usize,
    bytes: &mut [u8],
) -> Result<()> {
    check_inside(operation, from, at, bytes.len())?;
    check_memory(backend, operation, from)?;
    // Opened where it stays, as in `upload`: for a single element, moving it takes longer than the copy.
    let mut session = Session::new(operation);
    session.hold(from, Access::Read, backend.id())?;
    backend.download(&session, from, at, bytes)
}

/// A block that is held for reading, over several copies out of it or requests that read it: all of
/// them see it before, or all after, what others write.
pub struct Held<'a> {
    backend: &'a dyn Backend,
    block: &'a Storage,
    session: Session<'a>,
}

impl<'a> Held<'a> {
    /// Holds a block of the backend's device, as an operation of this name does.
    #[inline]
    pub fn new(
        backend: &'a dyn Backend,
        operation: &'static str,
        block: &'a Storage,
    ) -> Result<Held<'a>> {
        check_memory(backend, operation, block)?;
        let mut session = Session::new(operation);
        session.hold(block, Access::Read, backend.id())?;
        Ok(Held { backend, block, session })
    }

    /// Copies bytes from a place in the block to the host.
    pub fn download(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        check_inside(self.session.operation(), self.block, at, bytes.len())?;
        self.backend.download(&self.session, self.block, at, bytes)
    }

    /// Gives the bytes that a part of the block has at a moment since which nobody wrote there, piece by piece and in order.
    pub fn give(&self, part: Range<usize>, moment: &Moment, take: Take<'_>) -> Result<()> {
        check_inside(self.session.operation(), self.block, part.start, part.len())?;
        self.backend.give(&self.session, self.block, part, moment, take)
    }

    /// Runs a request that reads this block and writes what is new.
    ///
    /// # Panics
    /// If the request touches another block that others know: taking its guard here could wait for
    /// somebody who waits for this one.
    ///
    /// # Safety
    /// As for [`run`].
    pub unsafe fn run(&self, request: &Request<'_>) -> Result<()> {
        let session = Session::within(&self.session, self.block, request);
        run_in(&session, self.backend, request)
    }
}

/// That a block which names a device lies in its memory: a name is all that one needs to make one.
fn check_memory(backend: &dyn Backend, operation: &str, block: &Storage) -> Result<()> {
    if block.is_on_host() == (backend.memory() == Memory::Host) {
        return Ok(());
    }
    let message = format!("the block is not in the memory of {}", backend.id());
    Err(Error::device(operation, message))
}

fn check_inside(operation: &str, storage: &Storage, at: usize, bytes: usize) -> Result<()> {
    if at.checked_add(bytes).is_some_and(|end| end <= storage.bytes()) {
        return Ok(());
    }
    let block = storage.bytes();
    let message = format!("{bytes} bytes from {at} on leave a block of {block} bytes");
    Err(Error::index(operation, message))
}
