//! What all threads of a process share, made so that it survives `fork()`.
//!
//! A forked child has one thread, and waits for ever for what others were to do. [`ForkOnce`] is a
//! value made at first use that nobody waits for; [`ForkMutex`] is for what changes, and
//! [`ForkCache`] is a bounded table behind one.
//!
//! A mutex that another thread of the parent held at that moment stays locked in the child, and what
//! it guards may be half changed. So the thread that forks takes every [`ForkMutex`] before, and both
//! processes release them after: the child finds them free, and what they guard whole.
//!
//! May assume of whoever holds one: it holds it for a look or a change only, takes no other
//! meanwhile, and waits for nothing that a forking thread may hold, such as Python's GIL. Used for
//! the process-wide tables and settings of all floors, which `docs/architecture.md` lists.

mod cache;
mod once;

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use cache::ForkCache;
pub use once::ForkOnce;

/// A mutex in a static that is free in a forked child. Panics while it is held do not poison it:
/// its values must be whole after every step.
pub struct ForkMutex<T: 'static> {
    /// Whether it is in the list of those that are taken before a fork.
    listed: AtomicBool,
    mutex: Mutex<T>,
}

impl<T: Send> ForkMutex<T> {
    /// A mutex on this value, for a static.
    pub const fn new(value: T) -> ForkMutex<T> {
        ForkMutex { listed: AtomicBool::new(false), mutex: Mutex::new(value) }
    }

    /// Takes it, after whoever holds it.
    #[inline]
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        if !self.listed.load(Ordering::Acquire) {
            self.list();
        }
        locked(&self.mutex)
    }

    /// Adds it to the list before it is first taken. A fork holds the list, so that nobody can take
    /// a mutex that the forking thread has not seen.
    #[cold]
    fn list(&'static self) {
        let mut all = locked(&ALL);
        if !self.listed.load(Ordering::Relaxed) {
            all.push(self);
            self.listed.store(true, Ordering::Release);
        }
    }
}

/// A mutex of any type, to be taken before a fork.
trait Hold: Sync {
    /// What holds it until dropped.
    fn hold(&'static self) -> Box<dyn Any>;
}

impl<T: Send> Hold for ForkMutex<T> {
    fn hold(&'static self) -> Box<dyn Any> {
        Box::new(locked(&self.mutex))
    }
}

/// All mutexes that were ever taken.
static ALL: Mutex<Vec<&'static dyn Hold>> = Mutex::new(Vec::new());

/// What a thread holds while it forks: the mutexes, which are released first, and their list.
type Held = (Vec<Box<dyn Any>>, MutexGuard<'static, Vec<&'static dyn Hold>>);

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has forks take and release all mutexes.
///
/// Called when this code is loaded, before any mutex can be taken: if the first to take one called
/// it, a thread that forks at that moment would not see it, and its child would find the list locked.
#[cfg(unix)]
extern "C" fn watch() {
    extern "C" fn before() {
        let all = locked(&ALL);
        let held = all.iter().map(|mutex| mutex.hold()).collect();
        // A thread that forks at its very end has no place to keep them in, and lets them go.
        let _ = HELD.try_with(|place| place.set(Some((held, all))));
    }
    extern "C" fn after() {
        let _ = HELD.try_with(Cell::take);
    }
    // SAFETY: the functions stay where they are. They lock, unlock, allocate and free on the
    // forking thread, which is the child's only one: what it took it may release there, and
    // the allocator is made usable before.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

// SAFETY: the section holds pointers to functions without arguments that the loader calls once,
// after the libraries this one needs; `watch` needs nothing but the C library.
#[cfg(unix)]
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = watch;
