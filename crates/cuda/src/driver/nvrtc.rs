//! The compiler at run time.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::path::Path;

use libloading::Library;

use super::{Answer, Fault, Handle, Nvrtc};

impl Nvrtc {
    /// Opens the compiler, and what it loads itself when it has its first text: that lies beside it, where some versions
    /// do not look (13.0, as it comes from pip). Once it is loaded all find it by its name.
    pub(crate) fn with_builtins(library: &OsStr) -> Result<Nvrtc, String> {
        let nvrtc = Nvrtc::open(library)?;
        let version = nvrtc.version().map_err(|fault| fault.to_string());
        let beside = Path::new(library).parent().filter(|folder| folder.is_absolute());
        if let (Some(folder), Ok((major, minor))) = (beside, version) {
            let builtins = folder.join(format!("libnvrtc-builtins.so.{major}.{minor}"));
            // SAFETY: a library of NVRTC, in the folder of it; its initialisers have no preconditions.
            let loaded = unsafe { Library::new(builtins) };
            // Never closed. Where it does not load, the compiler looks itself, and says what is missing.
            loaded.map(std::mem::forget).ok();
        }
        Ok(nvrtc)
    }

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

    /// The numbers of the architectures that it compiles for, as 10 major + minor.
    pub(crate) fn architectures(&self) -> Answer<Vec<c_int>> {
        let mut count = 0;
        // SAFETY: writes one number.
        let code = unsafe { (self.get_number_of_architectures)(&mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut numbers = vec![0; count.max(0) as usize];
        // SAFETY: writes as many numbers as it has said.
        let code = unsafe { (self.get_architectures)(numbers.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        Ok(numbers)
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
