//! The CUDA driver and NVRTC: the only foreign functions of this crate.
//!
//! A library is opened by a path or a name, and every function is looked up at once (`table.rs`): a
//! missing one is an error with a sentence, so that nothing can fail later for that reason. The
//! methods of [`Driver`], here and in `kernels.rs`, and of [`Nvrtc`] check the answers and nothing else. Opaque pointers
//! of the driver are [`Handle`]s; what they stand for is known to `device.rs`, which owns them. Called
//! by `probe.rs`, `device.rs`, `compile.rs` and `memory.rs`.

mod kernels;
mod nvrtc;
mod table;

use std::ffi::{CStr, OsStr, c_int, c_uint, c_void};

pub(crate) use kernels::{Grid, TensorMap};
pub(crate) use table::{Address, Answer, Driver, Fault, Handle, Nvrtc};

/// What the driver answers when there is no memory left.
pub(crate) const OUT_OF_MEMORY: c_int = 2;
/// What the driver answers in a process that was forked after it had started.
pub(crate) const NOT_INITIALISED: c_int = 3;
/// What the driver answers about an event that is not over.
const NOT_READY: c_int = 600;
/// What the driver answers when there is no device.
pub(crate) const NO_DEVICE: c_int = 100;

/// What can be asked about a device; the values are the driver's own numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attribute {
    Multiprocessors = 16,
    Major = 75,
    Minor = 76,
    MemoryPools = 115,
}

/// What can be asked about a memory pool; the values are the driver's own numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PoolAttribute {
    /// Bytes that the pool keeps when nobody uses them.
    ReleaseThreshold = 4,
    /// Bytes that the pool holds.
    Reserved = 5,
    /// Bytes that are in use.
    Used = 7,
}

/// A stream that keeps in step with the default stream, which other libraries work in: what one is
/// asked first is done first.
const STREAM_IN_STEP: c_uint = 0;
/// A stream that keeps in step with nobody.
const STREAM_OF_ITS_OWN: c_uint = 1;
/// An event that only orders.
const EVENT_WITHOUT_TIME: c_uint = 2;
/// The driver's number for the device that an address belongs to.
const DEVICE_OF_ADDRESS: c_int = 9;

impl Driver {
    fn check(&self, call: &'static str, code: c_int) -> Answer<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: writes a pointer to a constant of the library, or nothing for an unknown code.
        unsafe { (self.get_error_string)(code, &mut text) };
        let meaning = match text.is_null() {
            true => "unknown".to_owned(),
            // SAFETY: the driver's text is a constant that ends with a zero.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        Err(Fault { call, code, meaning })
    }

    /// Calls a function that writes one result.
    fn ask<T: Default>(&self, call: &'static str, f: impl FnOnce(*mut T) -> c_int) -> Answer<T> {
        let mut result = T::default();
        let code = f(&mut result);
        self.check(call, code)?;
        Ok(result)
    }

    pub(crate) fn init(&self) -> Answer<()> {
        // SAFETY: may be called at any time.
        self.check("cuInit", unsafe { (self.init)(0) })
    }

    /// The newest CUDA version that the driver knows, as 1000 major + 10 minor.
    pub(crate) fn version(&self) -> Answer<c_int> {
        // SAFETY: writes one number; may be called at any time.
        self.ask("cuDriverGetVersion", |to| unsafe { (self.driver_get_version)(to) })
    }

    pub(crate) fn device_count(&self) -> Answer<c_int> {
        // SAFETY: writes one number; the driver answers with an error before `init`.
        self.ask("cuDeviceGetCount", |to| unsafe { (self.device_get_count)(to) })
    }

    pub(crate) fn device(&self, index: u32) -> Answer<c_int> {
        // SAFETY: writes one number.
        self.ask("cuDeviceGet", |to| unsafe { (self.device_get)(to, index as c_int) })
    }

    pub(crate) fn name(&self, device: c_int) -> Answer<String> {
        let mut name = [0u8; 256];
        let (to, len) = (name.as_mut_ptr().cast(), name.len() as c_int);
        // SAFETY: the driver writes at most `len` bytes, with a zero at the end.
        self.check("cuDeviceGetName", unsafe { (self.device_get_name)(to, len, device) })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    pub(crate) fn attribute(&self, device: c_int, attribute: Attribute) -> Answer<c_int> {
        // SAFETY: writes one number.
        self.ask("cuDeviceGetAttribute", |to| unsafe {
            (self.device_get_attribute)(to, attribute as c_int, device)
        })
    }

    pub(crate) fn total_memory(&self, device: c_int) -> Answer<usize> {
        // SAFETY: writes one number.
        self.ask("cuDeviceTotalMem", |to| unsafe { (self.device_total_mem)(to, device) })
    }

    /// The device's primary context, which lives until the process ends.
    pub(crate) fn retain_context(&self, device: c_int) -> Answer<Handle> {
        // SAFETY: writes one handle.
        self.ask("cuDevicePrimaryCtxRetain", |to| unsafe {
            (self.primary_context_retain)(to, device)
        })
    }

    /// Makes a context that of the calling thread, until the answer is dropped; every method below
    /// works in it. A thread that had none keeps a context that it `may_keep`.
    pub(crate) fn enter(&self, context: Handle, may_keep: bool) -> Answer<Entered<'_>> {
        // SAFETY: writes one handle.
        let former = self.ask("cuCtxGetCurrent", |to| unsafe { (self.context_get_current)(to) })?;
        if former == context {
            return Ok(Entered { driver: self, former: None });
        }
        // SAFETY: contexts are retained and never released.
        self.check("cuCtxSetCurrent", unsafe { (self.context_set_current)(context) })?;
        let back = former != 0 || !may_keep;
        Ok(Entered { driver: self, former: back.then_some(former) })
    }

    /// A stream that keeps in step with the default stream, or with nobody.
    pub(crate) fn create_stream(&self, in_step: bool) -> Answer<Handle> {
        let flags = if in_step { STREAM_IN_STEP } else { STREAM_OF_ITS_OWN };
        // SAFETY: writes one handle.
        self.ask("cuStreamCreate", |to| unsafe { (self.stream_create)(to, flags) })
    }

    /// Waits until everything in the stream is done.
    pub(crate) fn wait(&self, stream: Handle) -> Answer<()> {
        // SAFETY: streams are never destroyed.
        self.check("cuStreamSynchronize", unsafe { (self.stream_synchronize)(stream) })
    }

    /// Lets one stream wait for what is in another so far.
    ///
    /// # Safety
    /// Both are streams of the current context that live.
    pub(crate) unsafe fn order(&self, first: Handle, then: Handle) -> Answer<()> {
        let event = self.create_event()?;
        // SAFETY: the event was made above, the streams live. An event that is still waited for is
        // destroyed when that is over.
        unsafe {
            let recorded = self.record(event, first);
            let ordered = recorded.and_then(|()| self.let_wait(then, event));
            self.destroy_event(event);
            ordered
        }
    }

    /// An event, which is over until it is recorded.
    pub(crate) fn create_event(&self) -> Answer<Handle> {
        // SAFETY: writes one handle.
        self.ask("cuEventCreate", |to| unsafe { (self.event_create)(to, EVENT_WITHOUT_TIME) })
    }

    /// Lets an event be over when the stream has come here.
    ///
    /// # Safety
    /// Event and stream are of the current context and live.
    pub(crate) unsafe fn record(&self, event: Handle, stream: Handle) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuEventRecord", unsafe { (self.event_record)(event, stream) })
    }

    /// Waits until an event is over.
    ///
    /// # Safety
    /// The event lives.
    pub(crate) unsafe fn wait_for_event(&self, event: Handle) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuEventSynchronize", unsafe { (self.event_synchronize)(event) })
    }

    /// Lets a stream wait for an event.
    ///
    /// # Safety
    /// Event and stream are of the current context and live.
    pub(crate) unsafe fn let_wait(&self, stream: Handle, event: Handle) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuStreamWaitEvent", unsafe { (self.stream_wait_event)(stream, event, 0) })
    }

    /// Whether an event is over; what cannot be said is taken for over.
    ///
    /// # Safety
    /// The event lives.
    pub(crate) unsafe fn is_over(&self, event: Handle) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.event_query)(event) != NOT_READY }
    }

    /// # Safety
    /// The event lives, and nobody uses it any more.
    pub(crate) unsafe fn destroy_event(&self, event: Handle) {
        // SAFETY: as the caller promises. A failure leaves nothing to be done.
        unsafe { (self.event_destroy)(event) };
    }

    /// Waits for all streams of the current context.
    pub(crate) fn wait_for_context(&self) -> Answer<()> {
        // SAFETY: has no arguments.
        self.check("cuCtxSynchronize", unsafe { (self.context_synchronize)() })
    }

    /// The number of the device that an address belongs to; an error for any other address.
    pub(crate) fn device_of(&self, address: Address) -> Answer<c_int> {
        // SAFETY: writes one number; the address is only looked up.
        self.ask("cuPointerGetAttribute", |to: *mut c_int| unsafe {
            (self.pointer_get_attribute)(to.cast(), DEVICE_OF_ADDRESS, address)
        })
    }

    pub(crate) fn default_pool(&self, device: c_int) -> Answer<Handle> {
        // SAFETY: writes one handle.
        self.ask("cuDeviceGetDefaultMemPool", |to| unsafe { (self.default_pool)(to, device) })
    }

    pub(crate) fn set_pool(&self, pool: Handle, what: PoolAttribute, value: u64) -> Answer<()> {
        let value: *const u64 = &value;
        // SAFETY: the attributes above are 64-bit numbers, and the driver only reads this one.
        self.check("cuMemPoolSetAttribute", unsafe {
            (self.pool_set_attribute)(pool, what as c_int, value.cast_mut().cast())
        })
    }

    pub(crate) fn pool(&self, pool: Handle, what: PoolAttribute) -> Answer<u64> {
        // SAFETY: the attributes above are 64-bit numbers.
        self.ask("cuMemPoolGetAttribute", |to: *mut u64| unsafe {
            (self.pool_get_attribute)(pool, what as c_int, to.cast())
        })
    }

    /// Gives the pool's unused memory back to the device.
    pub(crate) fn trim_pool(&self, pool: Handle) -> Answer<()> {
        // SAFETY: memory in use is not touched.
        self.check("cuMemPoolTrimTo", unsafe { (self.pool_trim)(pool, 0) })
    }

    /// Memory from the pool, usable in the stream's order; `bytes` is not zero.
    pub(crate) fn allocate(&self, bytes: usize, stream: Handle) -> Answer<Address> {
        // SAFETY: writes one address.
        self.ask("cuMemAllocAsync", |to| unsafe { (self.alloc_async)(to, bytes, stream) })
    }

    /// Gives memory back when the stream has come here.
    ///
    /// # Safety
    /// The address comes from [`Driver::allocate`] and is not used by anything that is put into
    /// the stream later, or into another stream.
    pub(crate) unsafe fn free(&self, address: Address, stream: Handle) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuMemFreeAsync", unsafe { (self.free_async)(address, stream) })
    }

    /// Host memory that the device can reach without a copy on the way.
    pub(crate) fn allocate_pinned(&self, bytes: usize) -> Answer<*mut u8> {
        let mut address = std::ptr::null_mut();
        // SAFETY: writes one address.
        self.check("cuMemAllocHost", unsafe { (self.alloc_host)(&mut address, bytes) })?;
        Ok(address.cast())
    }

    /// # Safety
    /// The address comes from [`Driver::allocate_pinned`], and nobody uses it any more.
    pub(crate) unsafe fn free_pinned(&self, address: *mut u8) {
        // SAFETY: as the caller promises. A failure leaves nothing to be done.
        unsafe { (self.free_host)(address.cast()) };
    }

    /// # Safety
    /// The bytes are allocated and nobody else uses them in the order of the stream.
    pub(crate) unsafe fn fill(
        &self,
        at: Address,
        with: u8,
        bytes: usize,
        stream: Handle,
    ) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuMemsetD8Async", unsafe { (self.memset_async)(at, with, bytes, stream) })
    }

    /// # Safety
    /// `bytes` bytes are allocated at `to` and readable at `from` until the stream has come here.
    pub(crate) unsafe fn to_device(
        &self,
        to: Address,
        from: *const u8,
        bytes: usize,
        stream: Handle,
    ) -> Answer<()> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.copy_to_device)(to, from.cast(), bytes, stream) };
        self.check("cuMemcpyHtoDAsync", code)
    }

    /// # Safety
    /// `bytes` bytes are allocated at `from` and writable at `to` until the stream has come here.
    pub(crate) unsafe fn to_host(
        &self,
        to: *mut u8,
        from: Address,
        bytes: usize,
        stream: Handle,
    ) -> Answer<()> {
        // SAFETY: as the caller promises.
        let code = unsafe { (self.copy_to_host)(to.cast(), from, bytes, stream) };
        self.check("cuMemcpyDtoHAsync", code)
    }

    /// Free and total bytes of the current context's device.
    pub(crate) fn memory_info(&self) -> Answer<(usize, usize)> {
        let mut total = 0;
        // SAFETY: writes two numbers.
        let free =
            self.ask("cuMemGetInfo", |free| unsafe { (self.memory_info)(free, &mut total) })?;
        Ok((free, total))
    }
}

/// A thread's context while it is not the thread's own choice, which comes back when this is dropped.
#[must_use = "the thread leaves the context when it is dropped"]
pub(crate) struct Entered<'d> {
    driver: &'d Driver,
    former: Option<Handle>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(former) = self.former {
            // SAFETY: it was the thread's context before, or is none. A failure leaves nothing to be
            // done.
            unsafe { (self.driver.context_set_current)(former) };
        }
    }
}

/// The file that holds this code: the program, or the Python extension module.
#[cfg(unix)]
pub(crate) fn own_file() -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = own_file as fn() -> Option<std::path::PathBuf> as *const c_void;
    // SAFETY: the address lies in this file's code; the answer is written to `info`.
    let found = unsafe { libc::dladdr(here, &mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the name is a text of the loader that ends with a zero and lives as long as the file
    // is loaded, which it is while this runs.
    let name = found.then(|| unsafe { CStr::from_ptr(info.dli_fname) })?;
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(not(unix))]
pub(crate) fn own_file() -> Option<std::path::PathBuf> {
    std::env::current_exe().ok()
}
