//! Work that threads of their own do while whoever asked for it goes on: kernels that a call may not need are compiled so.
//!
//! A piece of work is known by a key; whoever comes to need it waits for that one. A process does not end before its
//! compilers have: their library is unloaded then, which they would not survive. A forked child has none of these
//! threads and waits for none. Called by `compile.rs`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What is being done, by key.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    keys: Mutex<HashSet<Vec<u8>>>,
    done: Condvar,
}

impl Behind {
    /// Has work done, unless it is under way or no thread is to be had.
    pub(crate) fn begin(self: &Arc<Behind>, key: &[u8], work: impl FnOnce() + Send + 'static) {
        if !locked(&self.keys).insert(key.to_vec()) {
            return;
        }
        let under_way =
            UnderWay { behind: self.clone(), key: key.to_vec(), _running: Running::new() };
        // What is not begun is dropped, and so is not under way any more.
        let _ = thread::Builder::new().spawn(move || {
            let _under_way = under_way;
            work();
        });
    }

    /// Waits for work that is under way; whether there was any.
    pub(crate) fn wait(&self, key: &[u8]) -> bool {
        let mut keys = locked(&self.keys);
        if !keys.contains(key) || !RUNNING.is_here() {
            return false;
        }
        while keys.contains(key) {
            keys = self.done.wait(keys).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

/// Held by a thread while it works, also where that panics.
struct UnderWay {
    behind: Arc<Behind>,
    key: Vec<u8>,
    _running: Running,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        locked(&self.behind.keys).remove(&self.key);
        self.behind.done.notify_all();
    }
}

/// How many threads there are, in the process that began them.
struct All {
    count: Mutex<usize>,
    none: Condvar,
    process: AtomicU32,
    told: AtomicBool,
}

static RUNNING: All = All {
    count: Mutex::new(0),
    none: Condvar::new(),
    process: AtomicU32::new(0),
    told: AtomicBool::new(false),
};

impl All {
    /// Whether the threads are those of this process.
    fn is_here(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }
}

/// One of them.
struct Running;

impl Running {
    fn new() -> Running {
        RUNNING.process.store(std::process::id(), Ordering::Release);
        *locked(&RUNNING.count) += 1;
        if !RUNNING.told.swap(true, Ordering::AcqRel) {
            // SAFETY: the function can be called at any time. It is so before whatever the driver's and the compiler's
            // libraries have asked for, which were loaded before.
            unsafe { libc::atexit(wait_for_all) };
        }
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *locked(&RUNNING.count) -= 1;
        RUNNING.none.notify_all();
    }
}

/// Waits until nothing is under way.
pub(crate) extern "C" fn wait_for_all() {
    if !RUNNING.is_here() {
        return;
    }
    let mut count = locked(&RUNNING.count);
    while *count > 0 {
        count = RUNNING.none.wait(count).unwrap_or_else(PoisonError::into_inner);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn whoever_needs_it_waits_for_it_and_others_do_not() {
        let behind = Arc::new(Behind::default());
        let done = Arc::new(AtomicBool::new(false));
        let (go, gone) = mpsc::channel();
        let tell = done.clone();
        behind.begin(b"key", move || {
            gone.recv().unwrap();
            tell.store(true, Ordering::Release);
        });
        behind.begin(b"key", || panic!("it is under way"));
        assert!(!behind.wait(b"another") && !done.load(Ordering::Acquire));
        go.send(()).unwrap();
        behind.wait(b"key");
        assert!(done.load(Ordering::Acquire) && !behind.wait(b"key"));
        behind.begin(b"fails", || panic!("as a compiler might"));
        behind.wait(b"fails");
        wait_for_all();
        assert!(locked(&behind.keys).is_empty());
    }
}
