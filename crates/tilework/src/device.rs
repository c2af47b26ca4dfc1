//! Devices: the one file that names the backends.
//!
//! A [`Device`] is a handle on a backend. Arrays live on one; operations run where their operands
//! are. A new backend is a line in [`KINDS`].

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use tilework_backend::{
    Backend, DeviceId, Fill, Fresh, Held, Memory, Moment, Properties, Request, Storage, download,
    upload,
};
use tilework_cpu::Cpu;
use tilework_error::{Error, Result};
use tilework_fork::{ForkMutex, ForkOnce};
use tilework_layout::Layout;
use tilework_ops::DType;
use tilework_reference::Reference;
use tilework_tape::Tape;

use crate::door::{explain, run, run_after};

/// Where an array lives and operations run: `cpu`, `reference`, `cuda:0`.
///
/// ```
/// use tilework::Device;
/// assert_eq!(Device::parse("cpu")?, Device::cpu());
/// if let Err(why) = Device::parse("cuda:0") {
///     assert!(why.to_string().contains("cuda"));
/// }
/// # Ok::<(), tilework::Error>(())
/// ```
// A thin pointer, so that an array is two words and is handed on in registers.
#[derive(Clone, Copy)]
pub struct Device(&'static &'static dyn Backend);

static REFERENCE: &dyn Backend = &Reference;
static CPU: &dyn Backend = &Cpu;

/// A kind of devices: its name, and how to find those of this machine, or in words why there are
/// none. Kinds are asked only when one of their devices is, since some must be searched for.
type Kind = (&'static str, fn() -> Result<Vec<Device>, &'static str>);

/// The backends, the default first.
static KINDS: [Kind; 3] = [
    ("cpu", || Ok(vec![Device::cpu()])),
    ("reference", || Ok(vec![Device::reference()])),
    ("cuda", || {
        static CARDS: ForkOnce<Vec<&dyn Backend>> = ForkOnce::new();
        let found = tilework_cuda::devices()?;
        let cards = CARDS.get_or_make(|| found.iter().map(|card| card as _).collect());
        Ok(cards.iter().map(Device).collect())
    }),
];

/// How many threads share the work of one operation on the CPU.
pub fn num_threads() -> usize {
    tilework_cpu::pool::threads()
}

/// Sets how many threads share the work of one operation on the CPU, from 1 to 1024.
pub fn set_num_threads(threads: usize) {
    tilework_cpu::pool::set_threads(threads);
}

static DEFAULT: ForkMutex<Option<Device>> = ForkMutex::new(None);

thread_local! {
    // Each with a number of its own: scopes may end in any order, and each ends itself.
    static SCOPED: RefCell<Vec<(u64, Device)>> = const { RefCell::new(Vec::new()) };
}

impl Device {
    /// The native CPU backend.
    pub fn cpu() -> Device {
        Device(&CPU)
    }

    /// The reference backend: slow, obvious, the definition of every operation.
    pub fn reference() -> Device {
        Device(&REFERENCE)
    }

    /// The device of this name, `cuda:1`, or the first of a kind, `cuda`; an error that says why
    /// where there is none.
    pub fn parse(name: &str) -> Result<Device> {
        let kind = name.split(':').next().unwrap_or(name);
        if let Some((_, find)) = KINDS.iter().find(|(known, _)| *known == kind) {
            let missing =
                |why| Error::device("device", format!("{name:?} is not available: {why}"));
            let found = find().map_err(missing)?;
            let wanted = |device: &Device| name == kind || device.to_string() == name;
            if let Some(device) = found.into_iter().find(wanted) {
                return Ok(device);
            }
        }
        let names: Vec<String> = Device::all().iter().map(Device::to_string).collect();
        Err(Error::device(
            "device",
            format!("there is no device {name:?}; there are {}", names.join(", ")),
        ))
    }

    /// The device that a block names.
    pub(crate) fn with_id(id: DeviceId) -> Result<Device> {
        // The host's are always there; every array on memory of others is one of theirs.
        let host = [Device::cpu(), Device::reference()];
        let known = host.into_iter().find(|device| device.id() == id);
        known.map_or_else(|| Device::parse(&id.to_string()), Ok)
    }

    /// All devices of this machine.
    pub fn all() -> Vec<Device> {
        KINDS.iter().filter_map(|(_, find)| find().ok()).flatten().collect()
    }

    /// Kinds of devices that cannot be used here, each with the reason.
    pub fn unavailable() -> Vec<(&'static str, String)> {
        KINDS.iter().filter_map(|(kind, find)| Some((*kind, find().err()?.to_owned()))).collect()
    }

    /// Where new arrays are made: the innermost [`Device::scope`] of this thread, or the process's
    /// default.
    pub fn current() -> Device {
        Device::scoped().unwrap_or_else(|| DEFAULT.lock().unwrap_or(Device::cpu()))
    }

    /// The innermost [`Device::scope`] of this thread, if it is in one.
    pub fn scoped() -> Option<Device> {
        SCOPED.with(|scoped| scoped.borrow().last().map(|(_, device)| *device))
    }

    /// Makes this the process's default.
    pub fn set_default(self) {
        *DEFAULT.lock() = Some(self);
    }

    /// Makes this the default of this thread until the scope is dropped. Of several scopes the one
    /// that began last is in force, whatever the order in which others end.
    ///
    /// ```
    /// use tilework::Device;
    /// let outer = Device::cpu().scope();
    /// let inner = Device::reference().scope();
    /// drop(outer);
    /// assert_eq!(Device::current(), Device::reference());
    /// drop(inner);
    /// assert_eq!(Device::scoped(), None);
    /// ```
    #[must_use = "the scope ends when it is dropped"]
    pub fn scope(self) -> DeviceScope {
        let number = SCOPED.with(|scoped| {
            let mut scoped = scoped.borrow_mut();
            // One more than the last, whose number is the largest: they begin in order.
            let number = scoped.last().map_or(0, |(last, _)| last + 1);
            scoped.push((number, self));
            number
        });
        DeviceScope { number, _one_thread: std::marker::PhantomData }
    }

    /// Its name.
    pub fn id(self) -> DeviceId {
        self.0.id()
    }

    /// Where its memory lies.
    pub fn memory(self) -> Memory {
        self.0.memory()
    }

    /// Whether work on a few thousand elements is done within microseconds.
    #[inline]
    pub fn is_quick(self) -> bool {
        self.0.is_quick()
    }

    /// What the device tells about itself.
    pub fn properties(self) -> Properties {
        self.0.properties()
    }

    /// Waits until everything asked of the device is done.
    pub fn synchronize(self) -> Result<()> {
        self.0.synchronize()
    }

    /// Whether it makes a product of matrices of a sum over so many batches, i and j.
    pub(crate) fn multiplies(self, sum: &Tape, sizes: [usize; 3]) -> bool {
        self.0.multiplies(sum, sizes)
    }

    pub(crate) fn run(self, operation: &'static str, request: &Request<'_>) -> Result<()> {
        run(*self.0, operation, request)
    }

    /// Runs requests as one step, the first of which make what the last reads.
    pub(crate) fn run_after(
        self,
        operation: &'static str,
        first: &[Request<'_>],
        last: &Request<'_>,
    ) -> Result<()> {
        run_after(*self.0, operation, first, last)
    }

    pub(crate) fn explain(self, operation: &'static str, request: &Request<'_>) -> Result<String> {
        explain(*self.0, operation, request)
    }

    /// A block of this device, held for reading by an operation of several steps.
    pub(crate) fn held<'a>(self, operation: &'static str, block: &'a Storage) -> Result<Held<'a>> {
        Held::new(*self.0, operation, block)
    }

    /// The moment when everything asked of the device so far is done.
    pub(crate) fn moment(self) -> Result<Moment> {
        self.0.moment()
    }

    pub(crate) fn upload(
        self,
        operation: &'static str,
        bytes: &[u8],
        to: &Storage,
        at: usize,
    ) -> Result<()> {
        upload(*self.0, operation, bytes, to, at)
    }

    /// A new block that `fill` gives the bytes of.
    pub(crate) fn receive(
        self,
        operation: &'static str,
        bytes: usize,
        fill: Fill<'_>,
    ) -> Result<Storage> {
        self.0.receive(operation, bytes, fill).map_err(|error| error.of(operation))
    }

    pub(crate) fn download(
        self,
        operation: &'static str,
        from: &Storage,
        at: usize,
        bytes: &mut [u8],
    ) -> Result<()> {
        download(*self.0, operation, from, at, bytes)
    }

    /// Memory for a new row-major array of an operation.
    pub(crate) fn allocate(
        self,
        operation: &str,
        shape: &[usize],
        dtype: DType,
        zeroed: bool,
    ) -> Result<Fresh> {
        let bytes = shape.iter().try_fold(dtype.size(), |bytes, &n| bytes.checked_mul(n));
        let Some(bytes) = bytes.filter(|bytes| *bytes <= isize::MAX as usize) else {
            return Err(too_large(operation, shape, dtype));
        };
        let named = |error: Error| error.of(operation);
        Fresh::row_major(self.0.allocate(bytes, zeroed).map_err(named)?, shape, dtype)
            .map_err(named)
    }
}

#[cold]
fn too_large(operation: &str, shape: &[usize], dtype: DType) -> Error {
    if let Err(no_layout) = Layout::contiguous(shape) {
        return no_layout.of(operation);
    }
    let shape = tilework_error::tuple(shape);
    let message = format!("{shape} elements of {dtype} are more than an address space");
    Error::out_of_memory(operation, message)
}

/// Ends a [`Device::scope`] when dropped.
#[derive(Debug)]
pub struct DeviceScope {
    number: u64,
    _one_thread: std::marker::PhantomData<*mut ()>,
}

impl Drop for DeviceScope {
    fn drop(&mut self) {
        // A scope that a thread keeps to its end may outlive the list; then there is nothing to undo.
        let _ = SCOPED.try_with(|scoped| {
            scoped.borrow_mut().retain(|(number, _)| *number != self.number);
        });
    }
}

impl PartialEq for Device {
    /// Every operation asks this of its arrays: they are mostly on one and the same.
    #[inline]
    fn eq(&self, other: &Device) -> bool {
        std::ptr::eq(self.0, other.0) || self.id() == other.id()
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl FromStr for Device {
    type Err = Error;

    /// [`Device::parse`].
    fn from_str(name: &str) -> Result<Device> {
        Device::parse(name)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.id())
    }
}
