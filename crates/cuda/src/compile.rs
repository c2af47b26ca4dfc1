//! From source to something that can be launched: NVRTC, the disk, and what is loaded already.
//!
//! Kernels are compiled to machine code for the device at hand, kept on disk and loaded once. A
//! look-up by key comes first, so that a kernel's source is printed only when it is compiled.
//! Called by the rooms that do requests.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use tilework_error::{Error, Result};

use crate::cache::DiskCache;
use crate::device::Cuda;
use crate::driver::{Handle, Nvrtc};
use crate::probe::dotted;

/// Products and sums are fused only where a row says so, so that every device rounds alike.
const OPTIONS: [&CStr; 3] = [c"--std=c++17", c"--fmad=false", c"--disable-warnings"];

/// The kernels that a device has loaded.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    loaded: Mutex<HashMap<Vec<u8>, Arc<Module>>>,
    disk: std::sync::OnceLock<DiskCache>,
}

/// Loaded code; functions are looked up by name when they are first wanted.
#[derive(Debug)]
pub(crate) struct Module {
    handle: Handle,
    functions: Mutex<Vec<(&'static CStr, Handle)>>,
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
    let source = CString::new(source).map_err(|_| "the source holds a zero".to_owned())?;
    let architecture = CString::new(format!("--gpu-architecture={architecture}"))
        .map_err(|_| "the architecture holds a zero".to_owned())?;
    let mut options = vec![architecture.as_c_str()];
    options.extend(OPTIONS);
    nvrtc.compile(&source, &options)
}

impl Cuda {
    /// Whether the module known as `key` is there without compiling anything.
    pub(crate) fn is_loaded(&self, key: &[u8]) -> bool {
        let loaded = self.kernels().loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.contains_key(key)
    }

    /// The module known as `key`, compiled from `source` if nobody has.
    pub(crate) fn module(
        &self,
        operation: &str,
        key: &[u8],
        source: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<Module>> {
        let kernels = self.kernels();
        let loaded = || kernels.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded().get(key) {
            return Ok(module.clone());
        }
        let code = self.code(operation, &source()?)?;
        self.enter()?;
        // SAFETY: the code comes from NVRTC, or from an entry of the cache that is whole.
        let handle = unsafe { self.driver().load_module(&code) };
        let handle = handle.map_err(|fault| self.fault(operation, fault))?;
        let module = Arc::new(Module { handle, functions: Mutex::default() });
        // Whoever was first wins; the other module stays loaded and unused.
        Ok(loaded().entry(key.to_vec()).or_insert(module).clone())
    }

    /// Machine code of a source: from the disk, or compiled and kept there.
    fn code(&self, operation: &str, source: &str) -> Result<Vec<u8>> {
        let architecture = architecture(self.facts()?.capability);
        let compiler = dotted(self.platform().compiler);
        let options = OPTIONS.map(|option| option.to_string_lossy()).join(" ");
        let version = env!("CARGO_PKG_VERSION");
        let key = [&architecture, &compiler, &options, version, source].join("\n");
        let disk = self.kernels().disk.get_or_init(DiskCache::of_process);
        if let Some(code) = disk.get(key.as_bytes()) {
            return Ok(code);
        }
        let code = compile(&self.platform().nvrtc, source, &architecture).map_err(|log| {
            Error::driver(operation, format!("a kernel for {self} does not compile: {log}"))
        })?;
        disk.put(key.as_bytes(), &code);
        Ok(code)
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
        let function = self.driver().function(module.handle, name);
        let function = function.map_err(|fault| self.fault(operation, fault))?;
        functions.push((name, function));
        Ok(function)
    }
}
