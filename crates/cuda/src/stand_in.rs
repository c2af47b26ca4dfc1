//! Stand-in libraries that tests build: a driver or a compiler that answers what a test wants.
//!
//! Every function takes two pointers and counts itself, in `CALLS`; `LAST` is for what a test wants to
//! see again. Without a card they show what is asked of the driver, and what is said where something is
//! missing. Used by the tests of `probe.rs` and `device.rs`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::driver::{Driver, Nvrtc};
use crate::probe::{Platform, probe};
use crate::search::Search;

/// Stand-in libraries in a folder of their own, removed when dropped. Libraries stay loaded, so
/// each case has another folder.
pub(crate) struct StandIns(pub(crate) PathBuf);

impl Drop for StandIns {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl StandIns {
    pub(crate) fn new() -> StandIns {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tilework-stand-in-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        StandIns(folder)
    }

    /// Builds a library that has `symbols`, all of which answer 0 but for `special`.
    pub(crate) fn with(self, file: &str, symbols: &[&str], special: &[(&str, &str)]) -> StandIns {
        let mut source = String::from(
            "#![no_std]\nuse core::sync::atomic::{AtomicUsize, Ordering::SeqCst};\n\
             static CALLS: AtomicUsize = AtomicUsize::new(0);\n\
             static LAST: AtomicUsize = AtomicUsize::new(0);\n\
             #[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n",
        );
        for symbol in symbols {
            let found = special.iter().find(|(name, _)| name == symbol);
            let body = found.map_or("0", |(_, body)| body);
            source += &format!(
                "#[unsafe(no_mangle)] #[allow(unused_variables)]\n\
                 pub unsafe extern \"C\" fn {symbol}(a: *mut i32, b: *mut i32) -> i32 {{\n\
                 CALLS.fetch_add(1, SeqCst); let _ = &LAST; {body} }}\n"
            );
        }
        let (text, library) = (self.0.join("source.rs"), self.0.join(file));
        std::fs::write(&text, source).unwrap();
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let built = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=stand_in"])
            .args(["-O", "-Cpanic=abort", "-Clink-arg=-nostartfiles", "-o"])
            .args([&library, &text])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        self
    }

    pub(crate) fn driver(special: &[(&str, &str)]) -> StandIns {
        StandIns::new().with("libcuda.so.1", Driver::SYMBOLS, special)
    }

    pub(crate) fn nvrtc(self, file: &str, version: &str) -> StandIns {
        self.with(file, Nvrtc::SYMBOLS, &[("nvrtcVersion", version)])
    }

    pub(crate) fn probe(&self) -> Result<Platform, String> {
        probe(&Search { named: Some(self.0.clone()), ..Search::default() })
    }
}
