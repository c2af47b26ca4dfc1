//! Which generation of processes this is: how many forks lie between it and the first, modulo 16.
//!
//! A forked child has one thread. What other threads of the parent held or waited for when it was
//! forked nobody will ever release or wake, so every lock says in which generation it was last
//! taken, and what operations of an earlier one held counts for nothing. Called by the lock alone.

/// The bits of a lock's state that hold its generation.
pub(super) const MASK: u32 = 0xf << 28;

/// How many generations are told apart.
#[cfg(not(loom))]
pub(super) const COUNT: usize = 16;

#[cfg(not(loom))]
mod process {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// The generation, in its place; the one beyond the last is the first again.
    static CURRENT: AtomicU32 = AtomicU32::new(0);

    /// This process's, as it stands in states.
    #[inline]
    pub(crate) fn current() -> u32 {
        CURRENT.load(Ordering::Relaxed)
    }

    /// Sees to it that forked children are a generation of their own.
    #[inline]
    pub(crate) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            register();
        }
    }

    #[cold]
    fn register() {
        #[cfg(unix)]
        {
            extern "C" fn next() {
                CURRENT.fetch_add(1 << super::MASK.trailing_zeros(), Ordering::Relaxed);
            }
            // SAFETY: `next` stays where it is and only adds to an atomic, which is allowed in a
            // child of a process with several threads.
            unsafe { libc::pthread_atfork(None, None, Some(next)) };
        }
    }
}

/// Models do not fork.
#[cfg(loom)]
mod process {
    pub(crate) fn current() -> u32 {
        0
    }
    pub(crate) fn watch() {}
}

pub(super) use process::{current, watch};
