//! Work that is done once, however many threads ask for it, and perhaps by threads of their own while whoever asked goes
//! on: kernels are compiled so, and those that a call may not need behind it.
//!
//! A piece of work is known by a key; whoever comes to need it waits for that one. A process does not end before its
//! compilers have: their library clears itself away then, which they would not survive. A forked child has none of these
//! threads and waits for none. Called by `compile.rs`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tilework_fork::ForkMutex;

/// What is being done, or has failed, by key.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    keys: Mutex<HashMap<Vec<u8>, State>>,
    done: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// By a thread of this process.
    UnderWay(u32),
    /// Once is enough.
    Failed,
}

impl Behind {
    /// Has work done that says whether it was, unless it is under way, has failed before, or no thread is to be had.
    pub(crate) fn begin(
        self: &Arc<Behind>,
        key: &[u8],
        work: impl FnOnce() -> bool + Send + 'static,
    ) {
        let begun = State::UnderWay(std::process::id());
        let mut keys = locked(&self.keys);
        if keys.get(key).is_some_and(|&state| state == begun || state == State::Failed) {
            return;
        }
        keys.insert(key.to_vec(), begun);
        drop(keys);
        let under_way = UnderWay { behind: self.clone(), key: key.to_vec(), failed: false };
        // What is not begun is dropped, and so is not under way any more.
        spawn(move || {
            // All of it, and until it panics.
            let mut under_way = under_way;
            under_way.failed = true;
            under_way.failed = !work();
        });
    }

    /// Says that this thread does the work, as long as it holds what it gets; none if another was at it, which is
    /// waited for.
    pub(crate) fn claim(self: &Arc<Behind>, key: &[u8]) -> Option<UnderWay> {
        let here = State::UnderWay(std::process::id());
        let mut keys = locked(&self.keys);
        if keys.get(key) != Some(&here) {
            keys.insert(key.to_vec(), here);
            return Some(UnderWay { behind: self.clone(), key: key.to_vec(), failed: false });
        }
        while keys.get(key) == Some(&here) {
            keys = self.done.wait(keys).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// Held by a thread while it works, also where that panics.
pub(crate) struct UnderWay {
    behind: Arc<Behind>,
    key: Vec<u8>,
    failed: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut keys = locked(&self.behind.keys);
        match self.failed {
            true => keys.insert(std::mem::take(&mut self.key), State::Failed),
            false => keys.remove(&self.key),
        };
        drop(keys);
        self.behind.done.notify_all();
    }
}

/// The threads of a process that have not been waited for.
struct Threads {
    process: u32,
    all: Vec<JoinHandle<()>>,
}

static THREADS: ForkMutex<Threads> = ForkMutex::new(Threads { process: 0, all: Vec::new() });

impl Threads {
    /// Those of this process: a child forgets its parent's, which it does not have.
    fn here(&mut self) -> &mut Vec<JoinHandle<()>> {
        let here = std::process::id();
        if self.process != here {
            self.process = here;
            std::mem::forget(std::mem::take(&mut self.all));
        }
        &mut self.all
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    // Held until the thread is in the list, so that nobody ends without it.
    let mut threads = THREADS.lock();
    let all = threads.here();
    all.retain(|thread| !thread.is_finished());
    all.extend(thread::Builder::new().spawn(work));
    drop(threads);
    wait_at_exit();
}

/// Sees to it that a process waits before it ends, and before what was asked for until now: the compiler asks for some of
/// its clearing away when it is loaded, and for some when it has read its first text. So whoever has had one compiled says so, too.
pub(crate) fn wait_at_exit() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    if TOLD.load(Ordering::Relaxed) < 2 && TOLD.fetch_add(1, Ordering::Relaxed) < 2 {
        extern "C" fn at_exit() {
            wait_for_all();
        }
        // SAFETY: the function can be called at any time.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Waits until nothing is under way, but for what this thread does itself.
pub(crate) fn wait_for_all() {
    let own = thread::current().id();
    loop {
        let mut threads = THREADS.lock();
        let all = threads.here();
        let Some(place) = all.iter().position(|other| other.thread().id() != own) else { return };
        let one = all.swap_remove(place);
        drop(threads);
        // That it panicked, its key knows.
        let _ = one.join();
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
        let done = Arc::new(AtomicUsize::new(0));
        let (go, gone) = mpsc::channel::<()>();
        let count = |by: usize| {
            let done = done.clone();
            move || done.fetch_add(by, Ordering::AcqRel) < usize::MAX
        };
        let first = count(1);
        behind.begin(b"key", move || gone.recv().is_ok() && first());
        // It is under way.
        behind.begin(b"key", count(10));
        drop(behind.claim(b"another").unwrap());
        assert_eq!(done.load(Ordering::Acquire), 0);
        go.send(()).unwrap();
        assert!(behind.claim(b"key").is_none_or(|_| done.load(Ordering::Acquire) == 1));
        assert_eq!(done.load(Ordering::Acquire), 1);
        // What was done is forgotten, what failed is not tried again.
        behind.begin(b"key", count(100));
        behind.begin(b"fails", || false);
        behind.begin(b"panics", || panic!("as a compiler might"));
        wait_for_all();
        behind.begin(b"fails", count(1000));
        behind.begin(b"panics", count(1000));
        wait_for_all();
        assert_eq!(done.load(Ordering::Acquire), 101);
        assert!(locked(&behind.keys).values().all(|state| *state == State::Failed));
    }

    #[test]
    fn a_forked_child_waits_for_no_thread_of_its_parent() {
        let behind = Arc::new(Behind::default());
        let (go, gone) = mpsc::channel::<()>();
        behind.begin(b"key", move || gone.recv().is_ok());
        // SAFETY: the child does nothing but what is tried, and ends without clearing up; should it hang, it is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: asks for a signal.
            unsafe { libc::alarm(20) };
            drop(behind.claim(b"key"));
            wait_for_all();
            behind.begin(b"key", || true);
            drop(behind.claim(b"key"));
            wait_for_all();
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let mut status = -1;
        // SAFETY: writes one number.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        go.send(()).unwrap();
        drop(behind.claim(b"key"));
    }

    #[test]
    fn of_many_threads_one_does_it() {
        let (behind, done) = (Arc::new(Behind::default()), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    // As a module is looked for.
                    while done.load(Ordering::Acquire) == 0 {
                        let Some(_own) = behind.claim(b"key") else { continue };
                        if done.load(Ordering::Acquire) == 0 {
                            thread::sleep(std::time::Duration::from_millis(5));
                            done.fetch_add(1, Ordering::AcqRel);
                        }
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 1);
        assert!(locked(&behind.keys).is_empty());
    }

    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let behind = Arc::new(Behind::default());
        behind.begin(b"key", || {
            wait_for_all();
            true
        });
        drop(behind.claim(b"key"));
        assert!(locked(&behind.keys).is_empty());
    }
}
