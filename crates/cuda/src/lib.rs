//! The CUDA backend: NVIDIA cards through the driver, with kernels compiled at run time.
//!
//! Nothing of CUDA is needed to build or install tilework. Driver and NVRTC are loaded when a
//! device is first asked for; where one is missing, [`devices`] says why. Rooms: `driver` (foreign
//! functions), `search` and `probe` (what there is), `device` (the backend), `memory`, `transfer`, `interop` (streams of
//! others), `source` and `kernels` (text), `compile`, `behind` and `cache` (code), and one room for each kind of request.

mod behind;
mod cache;
#[cfg(test)]
mod check;
mod compile;
mod device;
mod driver;
mod index;
mod interop;
mod launch;
mod map;
mod matmul;
mod memory;
mod pairs;
mod probe;
mod radix;
mod random;
mod reduce;
mod scan;
mod search;
mod sort;
mod source;
#[cfg(test)]
mod stand_in;
mod transfer;

use tilework_fork::ForkOnce;

pub use device::Cuda;
pub use interop::device_of;
pub use memory::MemoryInfo;
pub use search::packages_are_in;

/// The devices of this machine, or in words why there are none.
///
/// Looks once and remembers; a device costs nothing until it is used.
pub fn devices() -> Result<&'static [Cuda], &'static str> {
    static PLATFORM: ForkOnce<probe::Platform> = ForkOnce::new();
    static DEVICES: ForkOnce<Result<Vec<Cuda>, String>> = ForkOnce::new();
    let devices = DEVICES.get_or_make(|| {
        let platform = PLATFORM.get_or_try_make(|| probe::probe(&search::Search::of_process()))?;
        Ok((0..platform.devices).map(|index| Cuda::new(platform, index)).collect())
    });
    devices.as_ref().map(Vec::as_slice).map_err(String::as_str)
}

/// Waits for kernels that are compiled behind calls that have returned: the next ones find what all others find. For tests and
/// measurements; a process does it by itself before it ends.
#[doc(hidden)]
pub fn finish_compiling() {
    behind::wait_for_all();
}
