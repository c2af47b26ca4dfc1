//! The CUDA driver and NVRTC as tables of functions: the only foreign functions of this crate.
//!
//! A library is opened by a path or a name, and every function is looked up at once: a missing one
//! is an error with a sentence, so that nothing can fail later for that reason. The methods check
//! the driver's answers and nothing else. Opaque pointers of the driver are [`Handle`]s; what they
//! stand for is known to `device.rs`, which owns them. Called by `probe.rs`, `device.rs`,
//! `compile.rs` and `memory.rs`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::fmt;

use libloading::Library;

/// An opaque pointer of the driver: a context, a stream, a module, a function, a memory pool.
pub(crate) type Handle = usize;

/// An address on a device.
pub(crate) type Address = u64;

/// A call that the driver or NVRTC did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The function that failed.
    pub(crate) call: &'static str,
    /// What it answered.
    pub(crate) code: c_int,
    /// What the library says about the answer.
    pub(crate) meaning: String,
}

/// What the driver answers when there is no memory left.
pub(crate) const OUT_OF_MEMORY: c_int = 2;
/// What the driver answers when there is no device.
pub(crate) const NO_DEVICE: c_int = 100;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {} ({})", self.call, self.code, self.meaning)
    }
}

pub(crate) type Answer<T> = Result<T, Fault>;

/// A table of functions, and how it is filled from a library.
macro_rules! table {
    ($(#[$doc:meta])* $Table:ident $($field:ident = $symbol:literal ($($type:ty),*);)+) => {
        $(#[$doc])*
        pub(crate) struct $Table {
            $($field: unsafe extern "C" fn($($type),*) -> c_int,)+
        }

        impl $Table {
            /// The functions that a library must have, to make stand-ins from.
            #[cfg(test)]
            pub(crate) const SYMBOLS: &[&str] = &[$($symbol),+];

            /// Opens a library by a path or a name, and looks every function up.
            pub(crate) fn open(library: &OsStr) -> Result<$Table, String> {
                let shown = library.to_string_lossy();
                // SAFETY: the initialisers of the driver and of NVRTC have no preconditions. Names
                // come from `search.rs`, which never looks into the working directory.
                let opened = unsafe { Library::new(library) };
                let library = opened.map_err(|error| {
                    let why = std::error::Error::source(&error).unwrap_or(&error);
                    format!("{shown} cannot be loaded ({why})")
                })?;
                let table = $Table {
                    $($field: {
                        // SAFETY: the type is that of the function of this name in the driver's
                        // and NVRTC's public interface, whose symbols are versioned.
                        let found = unsafe { library.get(concat!($symbol, "\0").as_bytes()) };
                        *found.map_err(|_| format!("{shown} has no function {}", $symbol))?
                    },)+
                };
                // Never closed: the table's functions, and threads of the driver, live in it.
                std::mem::forget(library);
                Ok(table)
            }
        }

        impl fmt::Debug for $Table {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($Table))
            }
        }
    };
}

table! {
    /// The driver, `libcuda`.
    Driver
    init = "cuInit" (c_uint);
    driver_get_version = "cuDriverGetVersion" (*mut c_int);
    get_error_string = "cuGetErrorString" (c_int, *mut *const c_char);
    device_get_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut c_int, c_int);
    device_get_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_get_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_total_mem = "cuDeviceTotalMem_v2" (*mut usize, c_int);
    primary_context_retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    context_set_current = "cuCtxSetCurrent" (Handle);
    stream_create = "cuStreamCreate" (*mut Handle, c_uint);
    stream_synchronize = "cuStreamSynchronize" (Handle);
    default_pool = "cuDeviceGetDefaultMemPool" (*mut Handle, c_int);
    pool_set_attribute = "cuMemPoolSetAttribute" (Handle, c_int, *mut c_void);
    pool_get_attribute = "cuMemPoolGetAttribute" (Handle, c_int, *mut c_void);
    pool_trim = "cuMemPoolTrimTo" (Handle, usize);
    alloc_async = "cuMemAllocAsync" (*mut Address, usize, Handle);
    free_async = "cuMemFreeAsync" (Address, Handle);
    alloc_host = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    memset_async = "cuMemsetD8Async" (Address, u8, usize, Handle);
    copy_to_device = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    module_load = "cuModuleLoadData" (*mut Handle, *const c_void);
    module_get_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    launch_kernel = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
}

table! {
    /// The compiler at run time, `libnvrtc`.
    Nvrtc
    get_version = "nvrtcVersion" (*mut c_int, *mut c_int);
    create_program = "nvrtcCreateProgram" (
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char
    );
    compile_program = "nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
    destroy_program = "nvrtcDestroyProgram" (*mut Handle);
    get_cubin_size = "nvrtcGetCUBINSize" (Handle, *mut usize);
    get_cubin = "nvrtcGetCUBIN" (Handle, *mut c_char);
    get_log_size = "nvrtcGetProgramLogSize" (Handle, *mut usize);
    get_log = "nvrtcGetProgramLog" (Handle, *mut c_char);
}

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

/// A stream that does not wait for the legacy default stream.
const STREAM_NON_BLOCKING: c_uint = 1;

/// How a kernel is laid out over the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Blocks in each direction.
    pub(crate) blocks: [u32; 3],
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(crate) shared: u32,
}

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

    /// Makes a context that of the calling thread; every method below works in it.
    pub(crate) fn enter(&self, context: Handle) -> Answer<()> {
        // SAFETY: contexts are retained and never released.
        self.check("cuCtxSetCurrent", unsafe { (self.context_set_current)(context) })
    }

    pub(crate) fn create_stream(&self) -> Answer<Handle> {
        // SAFETY: writes one handle.
        self.ask("cuStreamCreate", |to| unsafe { (self.stream_create)(to, STREAM_NON_BLOCKING) })
    }

    /// Waits until everything in the stream is done.
    pub(crate) fn wait(&self, stream: Handle) -> Answer<()> {
        // SAFETY: streams are never destroyed.
        self.check("cuStreamSynchronize", unsafe { (self.stream_synchronize)(stream) })
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

    /// Host memory that the device can reach without a copy on the way; it is never freed.
    pub(crate) fn allocate_pinned(&self, bytes: usize) -> Answer<*mut u8> {
        let mut address = std::ptr::null_mut();
        // SAFETY: writes one address.
        self.check("cuMemAllocHost", unsafe { (self.alloc_host)(&mut address, bytes) })?;
        Ok(address.cast())
    }

    /// # Safety
    /// The bytes are allocated and nobody else uses them in the order of the stream.
    pub(crate) unsafe fn zero(&self, at: Address, bytes: usize, stream: Handle) -> Answer<()> {
        // SAFETY: as the caller promises.
        self.check("cuMemsetD8Async", unsafe { (self.memset_async)(at, 0, bytes, stream) })
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

    /// Loads machine code into the current context, for as long as the process lives.
    ///
    /// # Safety
    /// `image` is a whole cubin.
    pub(crate) unsafe fn load_module(&self, image: &[u8]) -> Answer<Handle> {
        // SAFETY: as the caller promises; the driver copies what it keeps.
        self.ask("cuModuleLoadData", |to| unsafe { (self.module_load)(to, image.as_ptr().cast()) })
    }

    pub(crate) fn function(&self, module: Handle, name: &CStr) -> Answer<Handle> {
        // SAFETY: modules are never unloaded, and the name ends with a zero.
        self.ask("cuModuleGetFunction", |to| unsafe {
            (self.module_get_function)(to, module, name.as_ptr())
        })
    }

    /// Puts a kernel into the stream.
    ///
    /// # Safety
    /// `arguments` points to one argument for each parameter of the kernel, of its size; what the
    /// kernel does with them on this grid stays inside of memory that is its own in the order of
    /// the stream.
    pub(crate) unsafe fn launch(
        &self,
        function: Handle,
        grid: Grid,
        arguments: &mut [*mut c_void],
        stream: Handle,
    ) -> Answer<()> {
        let Grid { blocks: [x, y, z], threads, shared } = grid;
        // SAFETY: as the caller promises.
        let code = unsafe {
            (self.launch_kernel)(
                function,
                x,
                y,
                z,
                threads,
                1,
                1,
                shared,
                stream,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }
}

impl Nvrtc {
    fn check(&self, call: &'static str, code: c_int) -> Answer<()> {
        match code {
            0 => Ok(()),
            _ => Err(Fault { call, code, meaning: "NVRTC's own code".to_owned() }),
        }
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> Answer<(c_int, c_int)> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two numbers.
        self.check("nvrtcVersion", unsafe { (self.get_version)(&mut major, &mut minor) })?;
        Ok((major, minor))
    }

    /// The machine code of a source; what the compiler says where there is none.
    pub(crate) fn compile(&self, source: &CStr, options: &[&CStr]) -> Result<Vec<u8>, String> {
        let (mut program, nothing) = (0, std::ptr::null());
        // SAFETY: the source ends with a zero; there are no headers.
        let code = unsafe {
            let name = c"tilework.cu".as_ptr();
            (self.create_program)(&mut program, source.as_ptr(), name, 0, nothing, nothing)
        };
        self.check("nvrtcCreateProgram", code).map_err(|fault| fault.to_string())?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program was made above; the options end with zeros and outlive the call.
        let code =
            unsafe { (self.compile_program)(program, options.len() as c_int, options.as_ptr()) };
        let compiled = match self.check("nvrtcCompileProgram", code) {
            Ok(()) => self
                .text("nvrtcGetCUBIN", program, self.get_cubin_size, self.get_cubin)
                .map_err(|fault| fault.to_string()),
            Err(fault) => {
                let log = self.text("nvrtcGetProgramLog", program, self.get_log_size, self.get_log);
                let log = log.unwrap_or_default();
                Err(format!("{fault}: {}", String::from_utf8_lossy(&log).trim_end_matches('\0')))
            }
        };
        // SAFETY: the program was made above and is not used any more.
        unsafe { (self.destroy_program)(&mut program) };
        compiled
    }

    /// Bytes of a program by a pair of functions: one gives their number, one writes them.
    fn text(
        &self,
        call: &'static str,
        program: Handle,
        size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Answer<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: writes one number.
        self.check(call, unsafe { size(program, &mut bytes) })?;
        let mut text = vec![0u8; bytes];
        // SAFETY: writes as many bytes as it has said.
        self.check(call, unsafe { get(program, text.as_mut_ptr().cast()) })?;
        Ok(text)
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
