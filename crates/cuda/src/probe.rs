//! What there is of CUDA on this machine, and in words why not where there is nothing.
//!
//! Never panics: each way that something can be missing has a sentence of its own, with the way
//! out. Called once by `lib.rs`; the tests run it on libraries that they build.

use std::ffi::OsString;

use crate::driver::{self, Driver, Nvrtc};
use crate::search::Search;

/// The oldest CUDA version whose drivers are used: it brought the memory pools and cubins that
/// the backend needs.
const OLDEST: (i32, i32) = (12, 0);

/// A driver with at least one device, and a compiler whose code it can load.
#[derive(Debug)]
pub(crate) struct Platform {
    pub(crate) driver: Driver,
    pub(crate) nvrtc: Nvrtc,
    /// Major and minor version of the driver's CUDA.
    pub(crate) version: (i32, i32),
    /// Major and minor version of NVRTC.
    pub(crate) compiler: (i32, i32),
    /// How many devices there are, at least one.
    pub(crate) devices: u32,
}

/// Bytes of arguments that a kernel may have, and since which version of the driver and of the compiler so many.
const ARGUMENT_BYTES: [usize; 2] = [4096, 32_764];
const MORE_ARGUMENTS_SINCE: (i32, i32) = (12, 1);

impl Platform {
    /// Bytes of arguments that a kernel may have here.
    pub(crate) fn argument_bytes(&self) -> usize {
        let more = self.version.min(self.compiler) >= MORE_ARGUMENTS_SINCE;
        ARGUMENT_BYTES[usize::from(more)]
    }
}

/// Looks for driver, devices and compiler; the reason where one of them is missing.
pub(crate) fn probe(search: &Search) -> Result<Platform, String> {
    let driver = open(&search.drivers(), Driver::open).map_err(|tried| {
        let ignored = ignored(search);
        format!(
            "there is no CUDA driver: {tried}; install NVIDIA's driver for this machine's card{ignored}"
        )
    })?;
    driver.init().map_err(|fault| match fault.code {
        driver::NO_DEVICE => "the CUDA driver finds no device".to_owned(),
        _ => format!("the CUDA driver does not start: {fault}"),
    })?;
    let version = driver.version().map_err(|fault| format!("the CUDA driver fails: {fault}"))?;
    let version = (version / 1000, version % 1000 / 10);
    if version < OLDEST {
        return Err(format!(
            "the CUDA driver is too old: it knows CUDA {}, and {} or newer is needed; update it",
            dotted(version),
            dotted(OLDEST)
        ));
    }
    let devices =
        driver.device_count().map_err(|fault| format!("the CUDA driver fails: {fault}"))?;
    if devices < 1 {
        return Err("the CUDA driver finds no device".to_owned());
    }
    let (nvrtc, compiler) = compiler(search, version)?;
    Ok(Platform { driver, nvrtc, version, compiler, devices: devices as u32 })
}

/// The first compiler that can be loaded and is not of a newer generation than the driver, which
/// would not load its code.
fn compiler(search: &Search, driver: (i32, i32)) -> Result<(Nvrtc, (i32, i32)), String> {
    let packages = match driver.0 {
        12 => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    };
    let way_out = format!(
        "install it with `pip install {packages}`, or set TILEWORK_CUDA_PATH to the folder of a \
         CUDA toolkit"
    );
    let mut newer = None;
    let mut fits = |name: &std::ffi::OsStr| {
        let nvrtc = Nvrtc::with_builtins(name)?;
        let version = nvrtc.version().map_err(|fault| fault.to_string())?;
        if version.0 > driver.0 {
            newer.get_or_insert((version, name.to_owned()));
            return Err("too new".to_owned());
        }
        Ok((nvrtc, version))
    };
    let found = open(&search.compilers(), &mut fits);
    found.map_err(|tried| match newer {
        Some((version, name)) => format!(
            "NVRTC {} ({}) is newer than the driver, which knows CUDA {}: {way_out}, or update \
             the driver",
            dotted(version),
            name.to_string_lossy(),
            dotted(driver)
        ),
        None => {
            let ignored = ignored(search);
            format!("there is a CUDA driver but no NVRTC ({tried}): {way_out}{ignored}")
        }
    })
}

/// What is said where the folder that the user names could not be looked into.
fn ignored(search: &Search) -> String {
    let why = match &search.named {
        Some(named) if !named.is_absolute() => "not an absolute path",
        Some(named) if !named.is_dir() => "no folder",
        _ => return String::new(),
    };
    format!("; what TILEWORK_CUDA_PATH names is {why}")
}

/// What opening the first candidate that can be opened gives; else why the first of them cannot,
/// which is the one that was most likely meant.
fn open<T>(
    candidates: &[OsString],
    mut open: impl FnMut(&std::ffi::OsStr) -> Result<T, String>,
) -> Result<T, String> {
    let mut why = None;
    for candidate in candidates {
        match open(candidate) {
            Ok(opened) => return Ok(opened),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| "nothing was found".to_owned()))
}

pub(crate) fn dotted(version: (i32, i32)) -> String {
    format!("{}.{}", version.0, version.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in::StandIns;

    impl StandIns {
        fn says(&self, words: &[&str]) {
            let why = self.probe().unwrap_err();
            for word in words {
                assert!(why.contains(word), "{why:?} does not say {word:?}");
            }
        }
    }

    const TWO_DEVICES: &[(&str, &str)] = &[
        ("cuDriverGetVersion", "unsafe { *a = 12040 }; 0"),
        ("cuDeviceGetCount", "unsafe { *a = 2 }; 0"),
    ];

    #[test]
    fn without_a_driver() {
        StandIns::new().says(&["no CUDA driver", "install NVIDIA's driver"]);
        let broken = StandIns::new();
        std::fs::write(broken.0.join("libcuda.so.1"), "not a library").unwrap();
        broken.says(&["no CUDA driver", "cannot be loaded"]);
        let partial = StandIns::new().with("libcuda.so.1", &Driver::SYMBOLS[..5], &[]);
        partial.says(&["no CUDA driver", "has no function cuDeviceGetName"]);
        for (named, why) in [("cuda", "not an absolute path"), ("/no/such", "no folder")] {
            let search = Search { named: Some(named.into()), ..Search::default() };
            let said = probe(&search).unwrap_err();
            assert!(said.contains("TILEWORK_CUDA_PATH") && said.ends_with(why), "{said}");
        }
    }

    #[test]
    fn with_a_driver_that_cannot_be_used() {
        StandIns::driver(&[("cuInit", "100")]).says(&["finds no device"]);
        StandIns::driver(&[("cuInit", "999")]).says(&["does not start", "cuInit", "999"]);
        let old = StandIns::driver(&[("cuDriverGetVersion", "unsafe { *a = 11080 }; 0")]);
        old.says(&["too old", "CUDA 11.8", "12.0", "update"]);
        let alone = StandIns::driver(&TWO_DEVICES[..1]);
        alone.says(&["finds no device"]);
    }

    #[test]
    fn without_a_compiler_that_fits() {
        let none = StandIns::driver(TWO_DEVICES);
        none.says(&["no NVRTC", "pip install nvidia-cuda-nvrtc-cu12", "TILEWORK_CUDA_PATH"]);
        let newer = none.nvrtc("libnvrtc.so.13", "unsafe { *a = 13; *b = 4 }; 0");
        newer.says(&["NVRTC 13.4", "libnvrtc.so.13", "newer than the driver", "CUDA 12.4"]);
        // One that fits is taken, although a newer one comes first.
        let both = newer.nvrtc("libnvrtc.so.12", "unsafe { *a = 12; *b = 9 }; 0");
        let platform = both.probe().unwrap();
        assert_eq!((platform.version, platform.compiler), ((12, 4), (12, 9)));
        assert_eq!(platform.devices, 2);
    }

    #[test]
    fn this_machine_is_probed_without_a_panic() {
        match probe(&Search::of_process()) {
            Ok(platform) => assert!(platform.devices > 0),
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
