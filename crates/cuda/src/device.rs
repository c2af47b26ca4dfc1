//! One CUDA device as a backend: its context, its stream, and which room does what is asked.
//!
//! Everything is put into one stream, so that what is asked first is done first, whichever host
//! thread asks; it keeps in step with the default stream, which other libraries use. Nothing waits
//! for the device but downloads and [`Backend::synchronize`]. An error that the driver reports late is
//! reported by the next call that hears of it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tilework_backend::{Backend, DeviceId, Memory, Properties, Request, Session, Storage};
use tilework_error::{Error, Result};

use crate::compile::Kernels;
use crate::driver::{Address, Answer, Attribute, Driver, Fault, Grid, Handle, PoolAttribute};
use crate::launch::Args;
use crate::memory::{Home, Staging};
use crate::probe::{Platform, dotted};
use crate::{index, map, matmul, pairs, random, reduce, scan, sort};

/// The name of the backend.
pub(crate) const BACKEND: &str = "cuda";

/// A CUDA device.
#[derive(Debug)]
pub struct Cuda {
    platform: &'static Platform,
    index: u32,
    /// Made when the device is first used: a context costs a tenth of a second and memory.
    opened: OnceLock<Result<Opened>>,
    staging: Staging,
    kernels: Kernels,
}

/// What using a device takes.
#[derive(Debug)]
struct Opened {
    home: Arc<Home>,
    pool: Handle,
    facts: Facts,
}

/// What kernels are chosen by.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Compute capability.
    pub(crate) capability: (i32, i32),
    pub(crate) multiprocessors: u32,
    pub(crate) memory: usize,
}

impl Cuda {
    pub(crate) fn new(platform: &'static Platform, index: u32) -> Cuda {
        Cuda {
            platform,
            index,
            opened: OnceLock::new(),
            staging: Staging::default(),
            kernels: Kernels::default(),
        }
    }

    /// Opens the device if nobody has, and makes its context, which is given back with the stream,
    /// that of this thread.
    pub(crate) fn enter(&self) -> Result<(Handle, Handle)> {
        let Home { context, stream, .. } = **self.home()?;
        self.driver().enter(context).map_err(|fault| self.fault("device", fault))?;
        Ok((context, stream))
    }

    fn opened(&self) -> Result<&Opened> {
        let opened = self.opened.get_or_init(|| {
            open(&self.platform.driver, self.index).map_err(|fault| self.fault("device", fault))
        });
        opened.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        &self.platform.driver
    }

    pub(crate) fn home(&self) -> Result<&Arc<Home>> {
        Ok(&self.opened()?.home)
    }

    pub(crate) fn pool(&self) -> Result<Handle> {
        Ok(self.opened()?.pool)
    }

    pub(crate) fn facts(&self) -> Result<&Facts> {
        Ok(&self.opened()?.facts)
    }

    pub(crate) fn platform(&self) -> &'static Platform {
        self.platform
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Puts a kernel into the stream.
    ///
    /// # Safety
    /// `args` are what the kernel declares; on this grid it stays inside of blocks that the
    /// session holds or that nobody else knows.
    pub(crate) unsafe fn launch(
        &self,
        operation: &str,
        function: Handle,
        grid: Grid,
        mut args: Args,
    ) -> Result<()> {
        let (_, stream) = self.enter()?;
        // SAFETY: as the caller promises; the pointers are to arguments that outlive the call.
        let done = unsafe { self.driver().launch(function, grid, &mut args.pointers(), stream) };
        done.map_err(|fault| self.fault(operation, fault))
    }

    /// Waits until everything in the stream is done.
    pub(crate) fn wait(&self, operation: &str) -> Result<()> {
        let (_, stream) = self.enter()?;
        self.driver().wait(stream).map_err(|fault| self.fault(operation, fault))
    }

    /// What the driver did not do, as an error of `operation`.
    #[cold]
    pub(crate) fn fault(&self, operation: &str, fault: Fault) -> Error {
        Error::driver(operation, format!("{self}: {fault}"))
    }
}

fn open(driver: &'static Driver, index: u32) -> Answer<Opened> {
    let device = driver.device(index)?;
    let facts = Facts {
        name: driver.name(device)?,
        capability: (
            driver.attribute(device, Attribute::Major)?,
            driver.attribute(device, Attribute::Minor)?,
        ),
        multiprocessors: driver.attribute(device, Attribute::Multiprocessors)? as u32,
        memory: driver.total_memory(device)?,
    };
    if driver.attribute(device, Attribute::MemoryPools)? == 0 {
        let meaning = "the device has no memory pools".to_owned();
        return Err(Fault { call: "cuDeviceGetAttribute", code: 0, meaning });
    }
    let context = driver.retain_context(device)?;
    driver.enter(context)?;
    let (stream, pool) = (driver.create_stream()?, driver.default_pool(device)?);
    // Freed memory stays with the process until it is asked back.
    driver.set_pool(pool, PoolAttribute::ReleaseThreshold, u64::MAX)?;
    let home = Arc::new(Home::new(driver, context, stream));
    Ok(Opened { home, pool, facts })
}

impl Backend for Cuda {
    fn id(&self) -> DeviceId {
        DeviceId { backend: BACKEND, index: Some(self.index) }
    }

    fn properties(&self) -> Properties {
        let versions =
            [("driver", self.platform.version), ("nvrtc", self.platform.compiler)].into_iter();
        let versions = versions.map(|(name, version)| (name, format!("CUDA {}", dotted(version))));
        match self.opened() {
            Ok(Opened { facts, .. }) => [
                ("name", facts.name.clone()),
                ("capability", dotted(facts.capability)),
                ("processors", facts.multiprocessors.to_string()),
                ("memory", format!("{} MiB", facts.memory >> 20)),
            ]
            .into_iter()
            .chain(versions)
            .collect(),
            Err(error) => versions.chain([("error", error.to_string())]).collect(),
        }
    }

    fn memory(&self) -> Memory {
        Memory::Cuda
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        self.allocate_storage(bytes, zeroed)
    }

    fn run(&self, session: &Session<'_>, request: &Request<'_>) -> Result<()> {
        let name = session.operation();
        match request {
            Request::Map(request) => map::run(self, session, request, name),
            Request::Reduce(request) => reduce::run(self, session, request, name),
            Request::Scan(request) => scan::run(self, session, request, name),
            Request::Matmul(request) => matmul::run(self, session, request, name),
            Request::Gather(request) => index::gather(self, session, request, name),
            Request::Scatter(request) => index::scatter(self, session, request, name),
            Request::Nonzero(request) => index::nonzero(self, session, request, name),
            Request::Sort(request) => sort::run(self, session, request, name),
            Request::Search(request) => sort::search(self, session, request, name),
            Request::Random(request) => random::run(self, session, request, name),
            Request::PairReduce(request) => pairs::run(self, session, request, name),
        }
    }

    fn explain(&self, session: &Session<'_>, request: &Request<'_>) -> Result<String> {
        match request {
            Request::PairReduce(pairs) => pairs::explain(self, session, pairs, session.operation()),
            _ => Ok(String::new()),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.wait("synchronize")
    }

    fn upload(&self, session: &Session<'_>, bytes: &[u8], to: &Storage, at: usize) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.copy_in(session.operation(), bytes, to.address() as Address + at as Address)
    }

    fn download(
        &self,
        session: &Session<'_>,
        from: &Storage,
        at: usize,
        bytes: &mut [u8],
    ) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.copy_out(session.operation(), from.address() as Address + at as Address, bytes)
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
