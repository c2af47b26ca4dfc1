//! Writing files so that a failure leaves the old one: a temporary file beside it, then a rename.
//!
//! May assume that the directory of the target can be written to. Called by `npy` and `npz`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tilework_error::Result;

use super::Origin;

/// A file that vanishes unless it is renamed.
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing can be done about a file that does not go, and the first error is the news.
            let _ = fs::remove_file(path);
        }
    }
}

/// A new file beside the one whose place it is to take.
struct Draft {
    file: File,
    path: PathBuf,
    temporary: Temporary,
    target: PathBuf,
}

/// Puts what `write` writes in the place of `path`, all or nothing.
///
/// The new file is on the disk before it takes the old one's name, since some systems report a
/// full disk only then; it has the permissions of the old one. A symbolic link stays, and the file
/// that it names is replaced.
pub(super) fn replace(
    origin: Origin<'_>,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let failed = |error: io::Error| origin.refused(error.kind(), error);
    let Draft { file, path, mut temporary, target } = begin(origin, path)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    write(&mut writer)?;
    writer.flush().map_err(failed)?;
    writer.get_ref().sync_data().map_err(failed)?;
    drop(writer);
    fs::rename(&path, &target).map_err(failed)?;
    temporary.0 = None;
    Ok(())
}

/// The file that [`replace`] would write, by its one real name, if it can begin; leaves everything as
/// it was.
pub(super) fn check(origin: Origin<'_>, path: &Path) -> Result<PathBuf> {
    let Draft { path, target, temporary, .. } = begin(origin, path)?;
    let real = path.canonicalize().map_err(|error| origin.refused(error.kind(), error))?;
    drop(temporary);
    Ok(real.with_file_name(target.file_name().unwrap_or_default()))
}

/// An empty file beside the one that `path` names, with its permissions.
fn begin(origin: Origin<'_>, path: &Path) -> Result<Draft> {
    let failed = |error: io::Error| origin.refused(error.kind(), error);
    let target = named_by(path);
    let old = match fs::metadata(&target) {
        Ok(old) if old.is_file() => Some(old.permissions()),
        Ok(old) if old.is_dir() => {
            return Err(origin.refused(io::ErrorKind::IsADirectory, "a directory"));
        }
        Ok(_) => {
            let message = "not a regular file; write_npy writes to streams";
            return Err(origin.refused(io::ErrorKind::InvalidInput, message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let (path, file) = create_beside(&target).map_err(failed)?;
    let temporary = Temporary(Some(path.clone()));
    if let Some(old) = old {
        file.set_permissions(old).map_err(failed)?;
    }
    Ok(Draft { file, path, temporary, target })
}

/// The file that a path names, through symbolic links, whether or not it is there yet.
fn named_by(path: &Path) -> PathBuf {
    /// As many as Linux follows. What goes on after that is a circle, which the system refuses.
    const LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// A new file in the directory of `target`, under a name that nothing had.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    loop {
        let mut hidden = std::ffi::OsString::from(".");
        // Long names leave no room for ours; the beginning is enough to see what it was to be.
        let known: String = name.to_string_lossy().chars().take(40).collect();
        hidden.push(known);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        hidden.push(format!(".{}-{count}.tmp", std::process::id()));
        let path = target.with_file_name(hidden);
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let folder = std::env::temp_dir().join(format!("tilework-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.npy");
        let origin = Origin::new("save", "x.npy");
        let names = || fs::read_dir(&folder).unwrap().count();
        let broken = |writer: &mut BufWriter<File>| {
            writer.write_all(&[1; 100_000]).map_err(|error| origin.io(error))?;
            Err(origin.refused(io::ErrorKind::StorageFull, "the disk is full"))
        };
        assert!(replace(origin, &path, broken).is_err());
        assert_eq!(names(), 0);
        replace(origin, &path, |file| file.write_all(b"old").map_err(|error| origin.io(error)))
            .unwrap();
        assert!(replace(origin, &path, broken).is_err());
        assert_eq!((fs::read(&path).unwrap(), names()), (b"old".to_vec(), 1));
        assert!(replace(origin, &folder, |_| Ok(())).is_err());
        assert!(replace(origin, &folder.join("no/such/x.npy"), |_| Ok(())).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            let link = |name: &str, to: &str| {
                let link = folder.join(name);
                symlink(to, &link).unwrap();
                link
            };
            let write = |to: &Path, text: &[u8]| {
                replace(origin, to, |file| file.write_all(text).map_err(|error| origin.io(error)))
            };
            // A file, one that is not there yet, and a link to a link: links stay.
            let there = link("there", path.to_str().unwrap());
            write(&there, b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            let dangling = link("dangling", "below/y.npy");
            assert!(write(&dangling, b"no folder").is_err());
            assert!(check(origin, &dangling).is_err());
            fs::create_dir(folder.join("below")).unwrap();
            let real = folder.canonicalize().unwrap().join("below/y.npy");
            assert_eq!(check(origin, &dangling).unwrap(), real);
            assert_eq!(check(origin, &folder.join("below/../below/./y.npy")).unwrap(), real);
            assert_eq!(fs::read_dir(folder.join("below")).unwrap().count(), 0);
            write(&dangling, b"first").unwrap();
            let second = link("below/second", "../dangling");
            write(&second, b"again").unwrap();
            assert_eq!(fs::read(folder.join("below/y.npy")).unwrap(), b"again");
            assert!([there, dangling, second].iter().all(|link| link.is_symlink()));
            // A circle names nothing, and stays too.
            let circle = link("circle", "circle");
            assert!(write(&circle, b"lost").is_err());
            assert!(circle.is_symlink());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
