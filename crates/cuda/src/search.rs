//! Where the driver and NVRTC are looked for, in order.
//!
//! `TILEWORK_CUDA_PATH`, the pip packages beside tilework and those of the interpreter that it runs in, `CUDA_PATH`
//! and `CUDA_HOME`, then the system's loader. Only absolute directories count, so that nothing is ever
//! loaded from the working directory. Pure but for [`Search::of_process`]; called by `probe.rs`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tilework_fork::ForkOnce;

use crate::driver;

#[cfg(windows)]
const DRIVERS: &[&str] = &["nvcuda.dll"];
#[cfg(not(windows))]
const DRIVERS: &[&str] = &["libcuda.so.1", "libcuda.so"];

#[cfg(windows)]
const COMPILERS: &[&str] = &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
#[cfg(not(windows))]
const COMPILERS: &[&str] = &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// The folders of pip's NVRTC packages, seen from `site-packages`: CUDA 13's and CUDA 12's.
const PIP_FOLDERS: &[&str] = &["nvidia/cu13", "nvidia/cuda_nvrtc"];

/// The folders of an installation that hold libraries.
const LIBRARY_FOLDERS: &[&str] = &["", "lib64", "lib", "bin"];

/// Where to look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// A folder that the user names, before all others.
    pub(crate) named: Option<PathBuf>,
    /// Folders of installed Python packages: that which tilework lies in, and the interpreter's.
    pub(crate) packages: Vec<PathBuf>,
    /// Folders of CUDA toolkits.
    pub(crate) toolkits: Vec<PathBuf>,
    /// Whether the system's loader is asked.
    pub(crate) system: bool,
}

/// The folder of the interpreter's packages.
static INSTALLED: ForkOnce<PathBuf> = ForkOnce::new();

/// Says where the interpreter's packages are installed, before a device is first asked for: a package that is
/// installed as a link to its source does not lie there itself. What is said first counts.
pub fn packages_are_in(folder: PathBuf) {
    INSTALLED.get_or_make(|| folder);
}

impl Search {
    /// What the environment of this process says.
    pub(crate) fn of_process() -> Search {
        let folder = |name| std::env::var_os(name).map(PathBuf::from);
        Search {
            named: folder("TILEWORK_CUDA_PATH"),
            // The extension module is a file of the folder `tilework`.
            packages: driver::own_file()
                .and_then(|file| Some(file.parent()?.parent()?.into()))
                .into_iter()
                .chain(INSTALLED.get().cloned())
                .collect(),
            toolkits: ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(folder).collect(),
            system: true,
        }
    }

    /// Candidates for the driver, the best first. It comes with the system, so that only the user
    /// can name another place.
    pub(crate) fn drivers(&self) -> Vec<OsString> {
        self.candidates(&[], DRIVERS)
    }

    /// Candidates for NVRTC, the best first.
    pub(crate) fn compilers(&self) -> Vec<OsString> {
        let pip = self.packages.iter().flat_map(|folder| PIP_FOLDERS.map_to(folder));
        let folders: Vec<PathBuf> = pip.chain(self.toolkits.iter().cloned()).collect();
        self.candidates(&folders, COMPILERS)
    }

    fn candidates(&self, folders: &[PathBuf], names: &[&str]) -> Vec<OsString> {
        let folders = self.named.iter().chain(folders).filter(|folder| folder.is_absolute());
        let places = folders.flat_map(|folder| LIBRARY_FOLDERS.map_to(folder));
        let files = places.flat_map(|place| names.map_to(&place)).filter(|file| file.is_file());
        let system = names.iter().filter(|_| self.system).map(OsString::from);
        files.map(PathBuf::into_os_string).chain(system).collect()
    }
}

/// Names below a folder.
trait MapTo {
    fn map_to(&self, folder: &Path) -> Vec<PathBuf>;
}

impl MapTo for [&str] {
    fn map_to(&self, folder: &Path) -> Vec<PathBuf> {
        self.iter().map(|name| folder.join(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_order_and_never_beside_the_process() {
        let root = std::env::temp_dir().join(format!("tilework-search-{}", std::process::id()));
        let files = [
            "named/lib64/libnvrtc.so.13",
            "site/nvidia/cu13/lib/libnvrtc.so.13",
            "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "toolkit/lib64/libnvrtc.so",
        ];
        for file in files {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let search = Search {
            named: Some(root.join("named")),
            packages: vec![root.join("source"), root.join("site")],
            toolkits: vec![root.join("toolkit"), "lib64".into(), "".into()],
            system: true,
        };
        let found = search.compilers();
        let expected: Vec<OsString> =
            files.iter().map(|file| root.join(file).into_os_string()).collect();
        assert_eq!(found[..4], expected);
        // After the files that exist, bare names: the system's loader has its own folders.
        assert_eq!(found[4..], COMPILERS.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(search.drivers(), DRIVERS.iter().map(OsString::from).collect::<Vec<_>>());
        let relative = Search { named: Some("named".into()), ..Search::default() };
        assert!(relative.compilers().is_empty() && relative.drivers().is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
