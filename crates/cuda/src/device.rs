//! One CUDA device as a backend: its context, its stream, and which room does what is asked.
//!
//! Everything is put into one stream, so that what is asked first is done first, whichever host thread asks; it
//! keeps in step with the default stream, which other libraries use. Only large new blocks are filled from the host
//! beside it, in a stream of copies, and what was done at an earlier moment is fetched in another. Nothing waits for
//! the device but downloads, what must know whether an index is in bounds, long work over pairs and first calls of its
//! formulas, and [`Backend::synchronize`]. An error that the driver reports late is reported by the next call that
//! hears of it.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tilework_backend::{
    Backend, DeviceId, Fill, Memory, Moment, Properties, Request, Session, Storage, Take,
};
use tilework_error::{Error, Result};
use tilework_fork::ForkOnce;
use tilework_tape::Tape;

use crate::compile::{Kernels, architecture, compile};
use crate::driver::{
    Address, Attribute, Driver, Entered, Fault, Grid, Handle, NOT_INITIALISED, PoolAttribute,
};
use crate::interop::Waiting;
use crate::launch::Args;
use crate::memory::{Home, Meeting};
use crate::probe::{Platform, dotted};
use crate::transfer::Staging;
use crate::{index, map, matmul, pairs, random, reduce, scan, sort};

/// The name of the backend.
pub(crate) const BACKEND: &str = "cuda";

/// A CUDA device.
#[derive(Debug)]
pub struct Cuda {
    platform: &'static Platform,
    index: u32,
    /// Made when the device is first used: a context costs a tenth of a second and memory. What
    /// fails is tried again by the next: a card that others fill may have room later.
    opened: ForkOnce<Opened>,
    opening: Mutex<()>,
    staging: Staging,
    kernels: Arc<Kernels>,
    waiting: Waiting,
    pub(crate) meeting: Meeting,
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
            opened: ForkOnce::new(),
            opening: Mutex::new(()),
            staging: Staging::default(),
            kernels: Arc::default(),
            waiting: Waiting::default(),
            meeting: Meeting::default(),
        }
    }

    /// Opens the device if nobody has, and makes its context that of this thread until the answer is
    /// dropped.
    pub(crate) fn enter(&self) -> Result<Entered<'static>> {
        self.home()?.enter().map_err(|fault| self.fault("device", fault))
    }

    #[inline]
    fn opened(&self) -> Result<&Opened> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    #[cold]
    fn open(&self) -> Result<&Opened> {
        tilework_backend::before_long_work("device")?;
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        self.opened.get_or_try_make(|| {
            open(self.platform, self.index)
                .map_err(|why| Error::driver("device", format!("{self}: {why}")))
        })
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

    pub(crate) fn kernels(&self) -> &Arc<Kernels> {
        &self.kernels
    }

    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
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
        // SAFETY: as the caller promises; the pointers are to arguments that outlive the call.
        unsafe { self.launch_with(operation, function, grid, &mut args.pointers()) }
    }

    /// The same with a pointer to each argument.
    ///
    /// # Safety
    /// As [`Cuda::launch`], for what the pointers are to, which outlives the call.
    pub(crate) unsafe fn launch_with(
        &self,
        operation: &str,
        function: Handle,
        grid: Grid,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let home = self.home()?;
        let _entered = self.enter()?;
        // SAFETY: as the caller promises.
        let done = unsafe { self.driver().launch(function, grid, arguments, home.stream) };
        done.map_err(|fault| self.fault(operation, fault))
    }

    /// Waits until everything in the stream is done.
    pub(crate) fn wait(&self, operation: &str) -> Result<()> {
        let _entered = self.enter()?;
        self.driver().wait(self.home()?.stream).map_err(|fault| self.fault(operation, fault))
    }

    /// What the driver did not do, as an error of `operation`.
    #[cold]
    pub(crate) fn fault(&self, operation: &str, fault: Fault) -> Error {
        let way_out = match fault.code {
            NOT_INITIALISED => {
                "; a process that is forked cannot use a card that its parent has used: start it anew \
                 (in Python, multiprocessing's \"spawn\")"
            }
            _ => "",
        };
        Error::driver(operation, format!("{self}: {fault}{way_out}"))
    }
}

/// The oldest cards whose instructions the kernels use.
const OLDEST: (i32, i32) = (8, 0);

/// Opens a device; in words why not.
fn open(platform: &'static Platform, index: u32) -> Result<Opened, String> {
    let driver = &platform.driver;
    let said = |fault: Fault| fault.to_string();
    let device = driver.device(index).map_err(said)?;
    let ask = |attribute| driver.attribute(device, attribute).map_err(said);
    let facts = Facts {
        name: driver.name(device).map_err(said)?,
        capability: (ask(Attribute::Major)?, ask(Attribute::Minor)?),
        multiprocessors: ask(Attribute::Multiprocessors)? as u32,
        memory: driver.total_memory(device).map_err(said)?,
    };
    let (major, minor) = facts.capability;
    if facts.capability < OLDEST {
        return Err(format!(
            "{} has compute capability {}, and {} (Ampere) or newer is needed",
            facts.name,
            dotted(facts.capability),
            dotted(OLDEST)
        ));
    }
    let known = platform.nvrtc.architectures().unwrap_or_default();
    if !known.is_empty() && !known.contains(&(10 * major + minor)) {
        return Err(format!(
            "NVRTC {} does not know {}, whose compute capability is {}; install a newer one",
            dotted(platform.compiler),
            facts.name,
            dotted(facts.capability)
        ));
    }
    if ask(Attribute::MemoryPools)? == 0 {
        return Err(format!("{} has no memory pools", facts.name));
    }
    // The compiler brings in most of itself for the first text that it is given, an empty one here, in less time than a
    // context takes.
    let context = std::thread::scope(|scope| {
        let begin = || compile(&platform.nvrtc, "", &architecture(facts.capability)).map(drop);
        // Where no thread is to be had, the first kernel has that to wait for.
        let _beside = std::thread::Builder::new().spawn_scoped(scope, begin);
        driver.retain_context(device)
    });
    let context = context.map_err(said)?;
    let (home, _entered) = Home::new(driver, context, index == 0).map_err(said)?;
    let pool = driver.default_pool(device).map_err(said)?;
    // Freed memory stays with the process until it is asked back.
    driver.set_pool(pool, PoolAttribute::ReleaseThreshold, u64::MAX).map_err(said)?;
    Ok(Opened { home: Arc::new(home), pool, facts })
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

    fn multiplies(&self, sum: &Tape, sizes: [usize; 3]) -> bool {
        pairs::multiplies(self, sum, sizes)
    }

    fn explain(&self, session: &Session<'_>, request: &Request<'_>) -> Result<String> {
        match request {
            Request::PairReduce(pairs) => pairs::explain(self, session, pairs, session.operation()),
            _ => Ok(String::new()),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.wait("synchronize")?;
        self.let_go();
        Ok(())
    }

    fn receive(&self, operation: &'static str, bytes: usize, fill: Fill<'_>) -> Result<Storage> {
        self.receive_storage(operation, bytes, fill)
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

    fn moment(&self) -> Result<Moment> {
        self.moment_of_now()
    }

    fn give(
        &self,
        session: &Session<'_>,
        from: &Storage,
        part: Range<usize>,
        moment: &Moment,
        take: Take<'_>,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let first = from.address() as Address + part.start as Address;
        self.give_out(session.operation(), first, part.len(), moment, take)
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use tilework_backend::{Held, without_waiting};

    use super::*;
    use crate::stand_in::StandIns;

    /// A device of a stand-in driver: what is set last is the current context, and how many calls
    /// there were and what was set last can be asked as memory.
    fn device(special: &[(&str, &str)], architectures: &str, index: u32) -> (StandIns, Cuda) {
        const USUAL: &[(&str, &str)] = &[
            ("cuDriverGetVersion", "unsafe { *a = 12040 }; 0"),
            ("cuDeviceGetCount", "unsafe { *a = 2 }; 0"),
            (
                "cuDeviceGetAttribute",
                "unsafe { *a = match b as usize { 75 => 9, 76 => 0, _ => 1 } }; 0",
            ),
            ("cuDevicePrimaryCtxRetain", "unsafe { *a.cast::<usize>() = 1000 }; 0"),
            ("cuCtxGetCurrent", "unsafe { *a.cast::<usize>() = LAST.load(SeqCst) }; 0"),
            ("cuCtxSetCurrent", "LAST.store(a as usize, SeqCst); 0"),
            ("cuMemAllocAsync", "unsafe { *a.cast::<u64>() = 4096 }; 0"),
            (
                "cuMemGetInfo_v2",
                "unsafe { *a.cast() = CALLS.load(SeqCst); *b.cast() = LAST.load(SeqCst) }; 0",
            ),
        ];
        let special: Vec<_> = special.iter().chain(USUAL).copied().collect();
        let nvrtc = [
            ("nvrtcVersion", "unsafe { *a = 12; *b = 4 }; 0"),
            ("nvrtcGetNumSupportedArchs", "unsafe { *a = 1 }; 0"),
            ("nvrtcGetSupportedArchs", architectures),
        ];
        let libraries = StandIns::driver(&special);
        let libraries = libraries.with("libnvrtc.so.12", crate::driver::Nvrtc::SYMBOLS, &nvrtc);
        let platform = Box::leak(Box::new(libraries.probe().unwrap()));
        (libraries, Cuda::new(platform, index))
    }

    const HOPPER: &str = "unsafe { *a = 90 }; 0";

    fn launch(cuda: &Cuda) {
        let grid = Grid::new("test", [1, 1, 1], 32, 0).unwrap();
        // SAFETY: nothing is launched by a stand-in.
        unsafe { cuda.launch("test", 1, grid, Args::new().number(7)).unwrap() };
    }

    /// How many calls there were, and the current context.
    fn seen(cuda: &Cuda) -> (usize, usize) {
        cuda.driver().memory_info().unwrap()
    }

    #[test]
    fn a_small_operation_is_one_launch_and_a_look_at_the_context() {
        let (_libraries, cuda) = device(&[], HOPPER, 0);
        let operation = || {
            let _result = cuda.allocate_block(32).unwrap();
            launch(&cuda);
        };
        operation();
        let before = seen(&cuda).0;
        (0..10).for_each(|_| operation());
        assert_eq!(seen(&cuda).0 - before, 2 * 10 + 1);
    }

    #[test]
    fn threads_that_must_not_wait_neither_open_a_device_nor_compile() {
        let (_libraries, cuda) = device(&[], HOPPER, 0);
        assert!(without_waiting(|| cuda.home()).is_none() && cuda.home().is_ok());
        let module = || cuda.module("test", b"key", || Err(Error::driver("test", "printed")));
        assert!(without_waiting(module).is_none());
        assert!(module().unwrap_err().to_string().contains("printed"));
    }

    #[test]
    fn threads_keep_the_device_that_they_have_chosen() {
        for (index, stays) in [(0, 1000), (1, 0)] {
            let (_libraries, cuda) = device(&[], HOPPER, index);
            launch(&cuda);
            assert_eq!(seen(&cuda).1, stays, "cuda:{index}, no choice before");
            std::mem::forget(cuda.driver().enter(77, true).unwrap());
            launch(&cuda);
            drop(cuda.allocate_block(2 << 20).unwrap());
            cuda.synchronize().unwrap();
            assert_eq!(seen(&cuda).1, 77, "cuda:{index}");
        }
    }

    #[test]
    fn cards_that_kernels_are_not_for_are_refused_in_words() {
        let old = [("cuDeviceGetAttribute", "unsafe { *a = 7 }; 0")];
        let (_libraries, cuda) = device(&old, HOPPER, 0);
        let why = cuda.synchronize().unwrap_err().to_string();
        assert!(why.contains("compute capability 7.7") && why.contains("8.0"), "{why}");
        let (_libraries, cuda) = device(&[], "unsafe { *a = 80 }; 0", 0);
        let why = cuda.synchronize().unwrap_err().to_string();
        assert!(why.contains("NVRTC 12.4 does not know") && why.contains("newer"), "{why}");
    }

    #[test]
    fn a_device_that_could_not_be_opened_is_tried_again() {
        let once = "static ASKED: AtomicUsize = AtomicUsize::new(0);
                    if ASKED.fetch_add(1, SeqCst) == 0 { 2 } else { 0 }";
        let (_libraries, cuda) = device(&[("cuDevicePrimaryCtxRetain", once)], HOPPER, 0);
        let why = cuda.synchronize().unwrap_err().to_string();
        assert!(why.contains("cuDevicePrimaryCtxRetain failed with code 2"), "{why}");
        cuda.synchronize().unwrap();
    }

    #[test]
    fn a_forked_process_is_told_to_start_anew() {
        let (_libraries, cuda) = device(&[("cuLaunchKernel", "3")], HOPPER, 0);
        let grid = Grid::new("exp", [1, 1, 1], 32, 0).unwrap();
        // SAFETY: nothing is launched by a stand-in.
        let why = unsafe { cuda.launch("exp", 1, grid, Args::new()) }.unwrap_err().to_string();
        assert!(why.starts_with("exp: cuda:0") && why.contains("spawn"), "{why}");
    }

    #[test]
    fn owners_are_kept_until_the_device_is_done() {
        let twice = "static ASKED: AtomicUsize = AtomicUsize::new(0);
                     if ASKED.fetch_add(1, SeqCst) < 2 { 600 } else { 0 }";
        let (_libraries, cuda) = device(&[("cuEventQuery", twice)], HOPPER, 0);
        let owner = Arc::new(());
        cuda.keep_until_done(Box::new(owner.clone()));
        cuda.let_go();
        assert_eq!(Arc::strong_count(&owner), 2);
        cuda.synchronize().unwrap();
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    /// Streams are 1, the device's own, 2, that of copies, and 3, that of fetches. `LAST` has the digits of those that calls
    /// were about, in order: after an 8 one that waits for an event, after a 9 one in which memory is freed.
    const STREAMS: [(&str, &str); 4] = [
        (
            "cuStreamCreate",
            "static MADE: AtomicUsize = AtomicUsize::new(1);
             unsafe { *a.cast::<usize>() = MADE.fetch_add(1, SeqCst) }; 0",
        ),
        ("cuCtxGetCurrent", "unsafe { *a.cast::<usize>() = 1000 }; 0"),
        ("cuCtxSetCurrent", "0"),
        ("cuStreamSynchronize", "LAST.store(LAST.load(SeqCst) * 10 + a as usize, SeqCst); 0"),
    ];

    #[test]
    fn a_block_that_nothing_fills_is_freed_after_its_allocation() {
        let freed = "LAST.store(LAST.load(SeqCst) * 100 + 90 + b as usize, SeqCst); 0";
        let special = [&STREAMS[..], &[("cuMemAllocHost_v2", "2"), ("cuMemFreeAsync", freed)]];
        let (_libraries, cuda) = device(&special.concat(), HOPPER, 0);
        let why = cuda.receive("test", 8 << 20, &mut |_, _| Ok(())).unwrap_err().to_string();
        assert!(why.contains("cuMemAllocHost"), "{why}");
        // The host waits for the stream of copies, and frees in the device's own.
        assert_eq!(seen(&cuda).1, 291);
    }

    #[test]
    fn what_was_there_at_a_moment_is_fetched_beside_what_was_asked_since() {
        let pinned = "static mut PLACE: [u64; 8] = [0; 8];
                      unsafe { *a.cast::<*mut u64>() = (&raw mut PLACE).cast() }; 0";
        let waits = "LAST.store(LAST.load(SeqCst) * 100 + 80 + a as usize, SeqCst); 0";
        let recorded = "LAST.store(LAST.load(SeqCst) * 10 + b as usize, SeqCst); 0";
        let calls = [
            ("cuMemAllocHost_v2", pinned),
            ("cuStreamWaitEvent", waits),
            ("cuEventRecord", recorded),
        ];
        let (_libraries, cuda) = device(&[&STREAMS[..], &calls].concat(), HOPPER, 0);
        let block = cuda.allocate(32, false).unwrap();
        let held = Held::new(&cuda, "test", &block).unwrap();
        let moment = cuda.moment().unwrap();
        held.give(0..32, &moment, &mut |_, _| Ok(())).unwrap();
        // The moment is in the device's own stream; that of fetches waits for it, and has the event of what was fetched.
        assert_eq!(seen(&cuda).1, 1833);
        held.give(0..32, &Moment::default(), &mut |_, _| Ok(())).unwrap();
        assert_eq!(seen(&cuda).1, 18331);
    }
}
