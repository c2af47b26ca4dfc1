//! Functions of the driver and of NVRTC as tables, and how they are filled from a library.

use std::ffi::{OsStr, c_char, c_int, c_uint, c_void};
use std::fmt;

use libloading::Library;

use super::TensorMap;

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
            $(pub(super) $field: unsafe extern "C" fn($($type),*) -> c_int,)+
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
    context_get_current = "cuCtxGetCurrent" (*mut Handle);
    context_set_current = "cuCtxSetCurrent" (Handle);
    stream_create = "cuStreamCreate" (*mut Handle, c_uint);
    stream_synchronize = "cuStreamSynchronize" (Handle);
    stream_wait_event = "cuStreamWaitEvent" (Handle, Handle, c_uint);
    event_create = "cuEventCreate" (*mut Handle, c_uint);
    event_record = "cuEventRecord" (Handle, Handle);
    event_query = "cuEventQuery" (Handle);
    event_synchronize = "cuEventSynchronize" (Handle);
    event_destroy = "cuEventDestroy_v2" (Handle);
    context_synchronize = "cuCtxSynchronize" ();
    pointer_get_attribute = "cuPointerGetAttribute" (*mut c_void, c_int, Address);
    default_pool = "cuDeviceGetDefaultMemPool" (*mut Handle, c_int);
    pool_set_attribute = "cuMemPoolSetAttribute" (Handle, c_int, *mut c_void);
    pool_get_attribute = "cuMemPoolGetAttribute" (Handle, c_int, *mut c_void);
    pool_trim = "cuMemPoolTrimTo" (Handle, usize);
    alloc_async = "cuMemAllocAsync" (*mut Address, usize, Handle);
    free_async = "cuMemFreeAsync" (Address, Handle);
    alloc_host = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    free_host = "cuMemFreeHost" (*mut c_void);
    memset_async = "cuMemsetD8Async" (Address, u8, usize, Handle);
    copy_to_device = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    memory_info = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    module_load = "cuModuleLoadData" (*mut Handle, *const c_void);
    module_unload = "cuModuleUnload" (Handle);
    module_get_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    function_set_attribute = "cuFuncSetAttribute" (Handle, c_int, c_int);
    tensor_map_encode = "cuTensorMapEncodeTiled" (
        *mut TensorMap, c_int, c_uint, Address, *const u64, *const u64, *const c_uint,
        *const c_uint, c_int, c_int, c_int, c_int
    );
    launch_together = "cuLaunchCooperativeKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void
    );
    launch_kernel = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
}

table! {
    /// The compiler at run time, `libnvrtc`.
    Nvrtc
    get_version = "nvrtcVersion" (*mut c_int, *mut c_int);
    get_number_of_architectures = "nvrtcGetNumSupportedArchs" (*mut c_int);
    get_architectures = "nvrtcGetSupportedArchs" (*mut c_int);
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
