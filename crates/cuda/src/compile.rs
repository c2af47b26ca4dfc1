//! From source to something that can be launched: NVRTC, the disk, and what is loaded already.
//!
//! Kernels are compiled to machine code for the device at hand, kept on disk and loaded once. A
//! look-up by key comes first, so that a kernel's source is printed only when it is compiled. Formulas
//! come in any number, so modules are kept in two generations: when the recent one is full it becomes
//! the former one, and what was used in neither is unloaded. Called by the rooms that do requests.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilework_backend::before_long_work;
use tilework_error::{Error, Result};
use tilework_fork::ForkOnce;

use crate::behind::{self, Behind};
use crate::cache::DiskCache;
use crate::device::Cuda;
use crate::driver::{Answer, Handle, Nvrtc};
use crate::memory::Home;
use crate::probe::{Platform, dotted};

/// Products and sums are fused only where a row says so, so that every device rounds alike.
const OPTIONS: [&CStr; 3] = [c"--std=c++17", c"--fmad=false", c"--disable-warnings"];

/// The same, without the parts of the language that no kernel here needs, which take 6 ms of a text to read; and the
/// first compiler that can leave them out.
const MINIMAL: &CStr = c"--minimal";
const MINIMAL_SINCE: (i32, i32) = (12, 4);

/// Options of a compiler.
fn options(compiler: (i32, i32)) -> impl Iterator<Item = &'static CStr> {
    OPTIONS.into_iter().chain((compiler >= MINIMAL_SINCE).then_some(MINIMAL))
}

/// Whose a module is: what its key begins with, so that keys of two rooms never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Room {
    Map,
    Reduce,
    Scan,
    Index,
    Nonzero,
    Sort,
    Radix,
    Random,
    Product,
    Pairs,
}

/// How many modules a generation has.
const GENERATION: usize = 512;

/// The kernels that a device has loaded.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    loaded: Mutex<Loaded<Module>>,
    disk: ForkOnce<DiskCache>,
    behind: Arc<Behind>,
}

type Table<T> = HashMap<Vec<u8>, Arc<T>>;

/// Modules by key.
#[derive(Debug)]
struct Loaded<T> {
    recent: Table<T>,
    former: Table<T>,
}

impl<T> Default for Loaded<T> {
    fn default() -> Loaded<T> {
        Loaded { recent: Table::new(), former: Table::new() }
    }
}

impl<T> Loaded<T> {
    /// A module that is loaded, and what is not kept any more since it was asked for: to be dropped
    /// when the table is not locked.
    fn get(&mut self, key: &[u8]) -> Option<(Arc<T>, Table<T>)> {
        if let Some(module) = self.recent.get(key) {
            return Some((module.clone(), Table::new()));
        }
        let (key, module) = self.former.remove_entry(key)?;
        Some((module.clone(), self.insert(key, module)))
    }

    /// Keeps a module; gives what is not kept any more.
    fn insert(&mut self, key: Vec<u8>, module: Arc<T>) -> Table<T> {
        let mut forgotten = Table::new();
        if self.recent.len() >= GENERATION {
            let full = std::mem::take(&mut self.recent);
            forgotten = std::mem::replace(&mut self.former, full);
        }
        self.recent.insert(key, module);
        forgotten
    }
}

impl Kernels {
    fn loaded(&self) -> MutexGuard<'_, Loaded<Module>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &[u8]) -> Option<Arc<Module>> {
        let found = self.loaded().get(key);
        found.map(|(module, _forgotten)| module)
    }

    /// Keeps a module; whoever was first wins.
    fn keep(&self, key: &[u8], module: Arc<Module>) -> Arc<Module> {
        let mut loaded = self.loaded();
        let (module, _forgotten) = match loaded.get(key) {
            Some(first) => first,
            None => (module.clone(), loaded.insert(key.to_vec(), module)),
        };
        drop(loaded);
        module
    }

    /// Machine code of a source: from the disk, or compiled and kept there; or what the compiler says.
    fn code(
        &self,
        platform: &Platform,
        capability: (i32, i32),
        source: &str,
    ) -> Result<Vec<u8>, String> {
        let architecture = architecture(capability);
        let compiler = dotted(platform.compiler);
        let options: Vec<_> = options(platform.compiler).map(CStr::to_string_lossy).collect();
        let version = env!("CARGO_PKG_VERSION");
        let key = [&architecture, &compiler, &options.join(" "), version, source].join("\n");
        let disk = self.disk.get_or_make(DiskCache::of_process);
        if let Some(code) = disk.get(key.as_bytes()) {
            return Ok(code);
        }
        let code = compile(&platform.nvrtc, source, &architecture)?;
        behind::wait_at_exit();
        disk.put(key.as_bytes(), &code);
        Ok(code)
    }

    /// Unloads what was not used of late, for its memory.
    pub(crate) fn forget_former(&self) {
        let forgotten = std::mem::take(&mut self.loaded().former);
        drop(forgotten);
    }
}

/// Loaded code; functions are looked up by name when they are first wanted. Whoever launches one holds
/// the module until it is in the stream.
#[derive(Debug)]
pub(crate) struct Module {
    home: Arc<Home>,
    handle: Handle,
    functions: Mutex<Vec<(&'static CStr, Handle)>>,
}

impl Module {
    /// Loads code.
    ///
    /// # Safety
    /// It comes from NVRTC, or from an entry of the cache that is whole.
    unsafe fn load(home: &Arc<Home>, code: &[u8]) -> Answer<Arc<Module>> {
        let _entered = home.enter()?;
        // SAFETY: as the caller promises.
        let handle = unsafe { home.driver.load_module(code)? };
        Ok(Arc::new(Module { home: home.clone(), handle, functions: Mutex::default() }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else { return };
        if self.home.driver.wait(self.home.stream).is_ok() {
            // SAFETY: nobody holds the module, so nothing of it can be launched any more, and the
            // stream has come to the end of what was.
            unsafe { self.home.driver.unload_module(self.handle) };
        }
    }
}

/// The name of an architecture for NVRTC; Hopper's own instructions need its `a`.
pub(crate) fn architecture(capability: (i32, i32)) -> String {
    match capability {
        (9, 0) => "sm_90a".to_owned(),
        (major, minor) => format!("sm_{major}{minor}"),
    }
}

/// Machine code of a source for an architecture.
pub(crate) fn compile(nvrtc: &Nvrtc, source: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let version = nvrtc.version().map_err(|fault| fault.to_string())?;
    let source = CString::new(source).map_err(|_| "the source holds a zero".to_owned())?;
    let architecture = CString::new(format!("--gpu-architecture={architecture}"))
        .map_err(|_| "the architecture holds a zero".to_owned())?;
    let mut all = vec![architecture.as_c_str()];
    options(version).for_each(|option| all.push(option));
    nvrtc.compile(&source, &all)
}

impl Cuda {
    /// Whether the module known as `key` is there without compiling anything.
    pub(crate) fn is_loaded(&self, key: &[u8]) -> bool {
        let loaded = self.kernels().loaded();
        loaded.recent.contains_key(key) || loaded.former.contains_key(key)
    }

    /// The module known as `key`, compiled from `source` if nobody has, by one thread of those that ask.
    pub(crate) fn module(
        &self,
        operation: &str,
        key: &[u8],
        source: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<Module>> {
        let kernels = self.kernels();
        if let Some(module) = kernels.get(key) {
            return Ok(module);
        }
        before_long_work(operation)?;
        let _own = loop {
            let own = kernels.behind.claim(key);
            if let Some(module) = kernels.get(key) {
                return Ok(module);
            }
            if own.is_some() {
                break own;
            }
        };
        let code = kernels.code(self.platform(), self.facts()?.capability, &source()?);
        let code = code.map_err(|log| {
            Error::driver(operation, format!("a kernel for {self} does not compile: {log}"))
        })?;
        // SAFETY: the code comes from there.
        let module = unsafe { Module::load(self.home()?, &code) };
        Ok(kernels.keep(key, module.map_err(|fault| self.fault(operation, fault))?))
    }

    /// Has a module compiled and loaded while others go on. Where that fails, whoever needs it is told.
    pub(crate) fn module_behind(&self, key: Vec<u8>, source: String) -> Result<()> {
        let (platform, capability) = (self.platform(), self.facts()?.capability);
        let (home, kernels) = (self.home()?.clone(), self.kernels().clone());
        self.kernels().behind.begin(&key.clone(), move || {
            if kernels.get(&key).is_some() {
                return true;
            }
            let Ok(code) = kernels.code(platform, capability, &source) else { return false };
            // SAFETY: the code comes from there.
            let module = unsafe { Module::load(&home, &code) };
            // What does not load now, for want of memory, may do so later.
            drop(module.map(|module| kernels.keep(&key, module)));
            true
        });
        Ok(())
    }

    /// A function of a module.
    pub(crate) fn function(
        &self,
        operation: &str,
        module: &Module,
        name: &'static CStr,
    ) -> Result<Handle> {
        let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, function)) = functions.iter().find(|(known, _)| *known == name) {
            return Ok(function);
        }
        // Of a card whose context is not the thread's own.
        let _entered = self.enter()?;
        // SAFETY: a module is loaded as long as it lives.
        let function = unsafe { self.driver().function(module.handle, name) };
        let function = function.map_err(|fault| self.fault(operation, fault))?;
        functions.push((name, function));
        Ok(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_are_used_stay_and_the_others_are_bounded() {
        let mut loaded: Loaded<usize> = Loaded::default();
        let mut forgotten = loaded.insert(b"used".to_vec(), Arc::new(7)).len();
        for key in 0..10 * GENERATION {
            forgotten += loaded.insert(key.to_le_bytes().to_vec(), Arc::new(key)).len();
            let (found, dropped) = loaded.get(b"used").unwrap();
            assert_eq!(*found, 7);
            forgotten += dropped.len();
        }
        let kept = loaded.recent.len() + loaded.former.len();
        assert!(kept <= 2 * GENERATION, "{kept}");
        assert_eq!(kept + forgotten, 10 * GENERATION + 1);
        assert!(loaded.get(&0usize.to_le_bytes()).is_none());
    }
}
