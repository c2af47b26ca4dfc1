//! Compiled kernels on disk, so that the next process need not compile them.
//!
//! An entry is loaded as code, so it is taken only from a folder and a file that belong to this
//! user, that nobody else can write and that are no symbolic links; otherwise kernels stay in
//! memory and a line says so once. An entry holds its whole key, so that two keys never meet, and a
//! hash of everything, so that a broken one is noticed and rebuilt. It is written to a temporary
//! name and renamed: readers need no lock, and a killed process leaves nothing harmful. Entries have a
//! folder of their own inside of the one that is named, and only files with names of ours are ever
//! removed. Called by `compile.rs`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What every entry begins with; the number is that of the format.
const MAGIC: &[u8; 16] = b"tilework cubin 1";
/// Magic, length of the key, length of the code, hash.
const HEADER: usize = 40;
/// The folder of the entries.
const FOLDER: &str = "kernels";
/// Bytes that the folder may hold; the oldest entries go first.
const LIMIT: u64 = 256 << 20;

/// A folder of compiled kernels, or nothing where there is none to be trusted.
#[derive(Debug)]
pub(crate) struct DiskCache {
    folder: Option<PathBuf>,
    limit: u64,
}

impl DiskCache {
    /// The folder that the environment names, made if it does not exist.
    pub(crate) fn of_process() -> DiskCache {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let named = variable("TILEWORK_CACHE_DIR");
        let users = || {
            let cache = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            Some(cache.or_else(|| Some(variable("HOME")?.join(".cache")))?.join("tilework"))
        };
        match named.or_else(users) {
            Some(folder) => DiskCache::at(&folder.join(FOLDER)).unwrap_or_else(|why| {
                eprintln!("tilework: compiled kernels are not kept on disk: {why}");
                DiskCache { folder: None, limit: 0 }
            }),
            None => DiskCache { folder: None, limit: 0 },
        }
    }

    /// The cache in `folder`; in words why it cannot be used.
    pub(crate) fn at(folder: &Path) -> Result<DiskCache, String> {
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        if !folder.is_absolute() {
            return Err(format!("{} is not an absolute path", folder.display()));
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        // Of a link to a folder that is not there, say what it is and not that it cannot be made.
        let found = fs::symlink_metadata(folder);
        let found =
            found.and_then(|found| if found.is_dir() { made.map(|()| found) } else { Ok(found) });
        let found = found.map_err(failed)?;
        if !found.is_dir() {
            return Err(format!("{} is not a folder of its own", folder.display()));
        }
        if !trusted(&found) {
            let message = "belongs to another user, or others may write it";
            return Err(format!("{} {message}", folder.display()));
        }
        Ok(DiskCache { folder: Some(folder.to_owned()), limit: LIMIT })
    }

    /// The code kept under `key`, if there is a whole and trusted entry.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let path = self.path(key)?;
        // No link is followed, and a pipe with this name does not hold anybody up.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || !trusted(&found) || found.len() > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        file.read_to_end(&mut bytes).ok()?;
        decode(&bytes, key)
    }

    /// Keeps code under `key`. That it cannot be kept is no error: it is compiled again.
    pub(crate) fn put(&self, key: &[u8], code: &[u8]) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(path) = self.path(key) else { return };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file: File =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(&encode(key, code))?;
            drop(file);
            fs::rename(&temporary, &path)
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let _ = self.prune();
    }

    fn path(&self, key: &[u8]) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:016x}.cubin", hash(&[key]))))
    }

    /// Removes the oldest entries until three quarters of the limit are kept, if there are more.
    fn prune(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut files: Vec<(i64, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if let Ok(found) = entry.metadata()
                && is_ours(&path)
            {
                files.push((found.mtime(), found.len(), path));
            }
        }
        let mut bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        if bytes <= self.limit {
            return Ok(());
        }
        files.sort();
        for (_, len, path) in files {
            if bytes <= self.limit / 4 * 3 {
                break;
            }
            // One that another process removed first is gone all the same.
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => bytes -= len,
            }
        }
        Ok(())
    }
}

/// Whether a name is one that `put` gives: a hash, and what an entry or its temporary file ends with.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (hash, end) = name.split_once('.').unwrap_or((name, ""));
    hash.len() == 16
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (end == "cubin" || end.ends_with(".tmp"))
}

/// Whether a file or folder belongs to this user and nobody else may write it.
fn trusted(found: &fs::Metadata) -> bool {
    // SAFETY: asks for a number and cannot fail.
    let user = unsafe { libc::geteuid() };
    found.uid() == user && found.mode() & 0o022 == 0
}

fn encode(key: &[u8], code: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + key.len() + code.len());
    bytes.extend_from_slice(MAGIC);
    for number in [key.len() as u64, code.len() as u64, hash(&[key, code])] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(code);
    bytes
}

fn decode(bytes: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let number = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
    let (kept, code) = rest.split_at_checked(usize::try_from(number(16)?).ok()?)?;
    let whole = header.starts_with(MAGIC)
        && code.len() as u64 == number(24)?
        && hash(&[kept, code]) == number(32)?;
    (whole && kept == key).then(|| code.to_vec())
}

/// FNV-1a over some bytes, each part ended by its length, so that parts do not run together.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325u64;
    for part in parts {
        for &byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            state = (state ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A cache in a folder of its own, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("tilework-cache-{name}-{}", std::process::id());
            Scratch(std::env::temp_dir().join(name))
        }

        fn cache(&self) -> DiskCache {
            DiskCache::at(&self.0).unwrap()
        }

        fn files(&self) -> Vec<PathBuf> {
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn keeps_what_was_put_and_nothing_else() {
        let scratch = Scratch::new("keeps");
        let cache = scratch.cache();
        assert_eq!(fs::metadata(&scratch.0).unwrap().mode() & 0o777, 0o700);
        assert_eq!(cache.get(b"key"), None);
        cache.put(b"key", b"code");
        assert_eq!(scratch.cache().get(b"key").as_deref(), Some(&b"code"[..]));
        cache.put(b"key", b"");
        assert_eq!(cache.get(b"key").as_deref(), Some(&b""[..]));
        assert_eq!(cache.get(b"another"), None);
        assert_eq!(scratch.files().len(), 1, "nothing temporary stays");
    }

    #[test]
    fn a_broken_entry_is_not_taken_and_can_be_rebuilt() {
        let scratch = Scratch::new("broken");
        let cache = scratch.cache();
        cache.put(b"key", b"some machine code");
        let path = scratch.files().remove(0);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x10;
            assert_eq!(decode(&broken, b"key"), None, "byte {at} changed");
            assert_eq!(decode(&whole[..at], b"key"), None, "cut at {at}");
        }
        fs::write(&path, &whole[..20]).unwrap();
        assert_eq!(cache.get(b"key"), None);
        cache.put(b"key", b"again");
        assert_eq!(cache.get(b"key").as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn folders_and_files_that_others_could_change_are_not_trusted() {
        let scratch = Scratch::new("trust");
        let cache = scratch.cache();
        cache.put(b"key", b"code");
        let path = scratch.files().remove(0);
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        allow(&path, 0o620);
        assert_eq!(cache.get(b"key"), None, "others may write the file");
        let moved = scratch.0.join("moved");
        allow(&path, 0o600);
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        assert_eq!(cache.get(b"key"), None, "the file is a link");
        allow(&scratch.0, 0o770);
        assert!(DiskCache::at(&scratch.0).unwrap_err().contains("others may write it"));
        allow(&scratch.0, 0o700);
        let link = Scratch::new("trust-link");
        symlink(&scratch.0, &link.0).unwrap();
        assert!(DiskCache::at(&link.0).unwrap_err().contains("not a folder"));
        fs::remove_file(&link.0).unwrap();
        assert!(DiskCache::at(Path::new("here")).unwrap_err().contains("absolute"));
        assert!(DiskCache::at(&moved).is_err(), "a file is no folder");
    }

    #[test]
    fn stays_below_its_limit() {
        let scratch = Scratch::new("limit");
        let cache = DiskCache { limit: 1000, ..scratch.cache() };
        // What is not ours is neither counted nor removed.
        let theirs = ["thesis.txt", "0123456789abcdef.txt", "model.cubin"];
        let theirs = theirs.map(|name| scratch.0.join(name));
        for path in &theirs {
            fs::write(path, [0; 2000]).unwrap();
        }
        for number in 0..20u8 {
            cache.put(&[number], &[number; 100]);
        }
        assert!(theirs.iter().all(|path| fs::metadata(path).unwrap().len() == 2000));
        let ours: Vec<PathBuf> = scratch.files().into_iter().filter(|path| is_ours(path)).collect();
        let bytes: u64 = ours.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(bytes <= 1000, "{bytes}");
        assert!(ours.len() >= 4, "no more than needed is removed");
        let temporary = ["0123456789abcdef.77-0.tmp", "0123456789abcdef.cubin"];
        assert!(temporary.iter().all(|name| is_ours(Path::new(name))));
    }

    #[test]
    fn many_writers_of_one_key_leave_one_whole_entry() {
        let scratch = Scratch::new("writers");
        let cache = scratch.cache();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        cache.put(b"key", &[7; 5000]);
                        assert_eq!(cache.get(b"key").as_deref(), Some(&[7; 5000][..]));
                    }
                });
            }
        });
        assert_eq!(scratch.files().len(), 1);
    }
}
