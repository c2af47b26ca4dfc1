//! The one thread pool of the process.
//!
//! [`run`] calls a function for every piece of a job, on the calling thread and on workers that
//! have time. Pieces are claimed one by one, the first ones by the caller and the last ones by
//! workers, so a slow core does not hold up the rest, and the caller never waits for a worker that
//! has not begun a piece: if none wakes up in time, the caller has done it all (`pool/claim.rs`).
//! Workers are started by the first job, watch for the next for about 50 microseconds after each,
//! and then sleep.
//!
//! Which thread runs which piece is left to chance; what the pieces are must not be: cut by size,
//! never by [`threads`], and results come out the same for any number of threads.
//!
//! May assume: pieces do not wait for each other. Calls from inside a piece run inline. If many
//! threads call at once, the first few share the workers and the rest run inline. A forked child
//! starts a pool of its own. Called by every kernel of this crate that has enough work to share;
//! how much that is, the kernels decide through their piece sizes.

mod available;
#[doc(hidden)]
pub mod claim;
mod sync;

use std::cell::Cell;
use std::ops::Range;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use tilework_backend::interrupt;

use claim::{Claims, MAX_PIECES};

/// How many jobs the workers serve at a time; callers beyond that run inline.
const SLOTS: usize = 4;

/// The most threads that can be asked for.
pub const MAX_THREADS: usize = 1024;

/// How many threads work on a job, the caller included; 0 before anybody has asked.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The pool, never freed once it is there; null before the first job, and again in a forked child.
static POOL: AtomicPtr<Claims> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Whether this thread is running pieces.
    static IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work(0)`, `work(1)` to `work(pieces - 1)`, each once, in any order and on any thread;
/// returns when all have ended, and their effects are then visible.
///
/// One piece, one thread or a call from inside a piece: a plain loop on this thread. If a piece
/// panics, the panic goes on in the caller after all pieces that had begun have ended; whether the
/// others have run is then not said. A request that may be stopped is stopped between pieces, in
/// the same way ([`interrupt`]); long pieces call [`check`].
#[inline]
pub fn run(pieces: usize, work: &(dyn Fn(usize) + Sync)) {
    let piece = |piece| {
        check();
        work(piece);
    };
    if pieces <= 1 {
        if pieces == 1 {
            work(0);
        }
    } else if threads() == 1 || IN_PIECE.get() {
        (0..pieces).for_each(piece);
    } else {
        run_shared(pieces, &piece);
    }
}

/// As [`run`], for work of some microseconds: waking a worker that sleeps takes longer than that, so
/// only workers that are awake are asked, unless such work comes in a row.
#[inline]
pub fn run_brief(pieces: usize, work: &(dyn Fn(usize) + Sync)) {
    if pieces > 1 && threads() > 1 && !IN_PIECE.get() && !worth_asking() {
        (0..pieces).for_each(work);
    } else {
        run(pieces, work);
    }
}

/// Whether a worker is awake, or this thread was here just before and has woken none.
fn worth_asking() -> bool {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    // SAFETY: the pool is never freed.
    if unsafe { POOL.load(Ordering::Acquire).as_ref() }.is_some_and(Claims::is_watched) {
        return true;
    }
    let now = Instant::now();
    let last = LAST.replace(Some(now));
    last.is_some_and(|last| now.duration_since(last) < claim::PATIENCE)
}

/// Unwinds out of a piece that nobody will look at, since its request is to be stopped or another
/// piece has panicked. For pieces that take longer than a tenth of a second, several times in each.
#[inline]
pub fn check() {
    interrupt::check();
    if claim::is_in_vain() {
        resume_unwind(Box::new(()));
    }
}

/// Runs `work` on `0..grain`, `grain..2 * grain` and so on up to `len`, each range once, as
/// [`run`] does. The ranges depend on `len` and `grain` only, so that a partial result can be kept
/// under `range.start / grain`; a grain of whole cache lines keeps them aligned.
///
/// `len <= grain` is one call on this thread, and no range is given if `len` is 0. Work that
/// hardly exceeds one grain is not worth sharing and stays on this thread too.
#[inline]
pub fn for_ranges(len: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let grain = grain.max(1);
    if len <= grain {
        if len > 0 {
            work(0..len);
        }
        return;
    }
    let piece = |index: usize| {
        let start = index * grain;
        work(start..len.min(start.saturating_add(grain)));
    };
    let pieces = len.div_ceil(grain);
    if len - grain < grain / 2 {
        (0..pieces).for_each(piece);
    } else {
        run(pieces, &piece);
    }
}

/// How many threads share a job, the caller included: what [`set_threads`] or
/// `TILEWORK_NUM_THREADS` says, else the CPUs that this process may use.
#[inline]
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => default_threads(),
        threads => threads,
    }
}

/// How many threads share a job that this thread would begin now: one alone inside a piece.
#[inline]
pub fn hands() -> usize {
    if IN_PIECE.get() { 1 } else { threads() }
}

/// Sets how many threads share a job, the caller included, from 1 (which 0 also means) to [`MAX_THREADS`].
/// Jobs that are under way keep the threads that they have.
pub fn set_threads(threads: usize) {
    let threads = threads.clamp(1, MAX_THREADS);
    THREADS.store(threads, Ordering::Relaxed);
    // SAFETY: the pool is never freed.
    if let Some(pool) = unsafe { POOL.load(Ordering::Acquire).as_ref() } {
        pool.set_wanted(threads - 1);
    }
}

/// What `TILEWORK_NUM_THREADS` says: a number, or what is wrong with it.
fn named_threads(text: Option<&str>) -> Option<Result<usize, String>> {
    let text = text?.trim();
    if text.is_empty() {
        return None;
    }
    Some(text.parse().ok().filter(|n| (1..=MAX_THREADS).contains(n)).ok_or_else(|| {
        format!("TILEWORK_NUM_THREADS: {text:?} is no number from 1 to {MAX_THREADS}")
    }))
}

/// What `TILEWORK_NUM_THREADS` says that cannot be followed, in words.
pub fn unheeded() -> Option<String> {
    named_threads(std::env::var("TILEWORK_NUM_THREADS").ok().as_deref())?.err()
}

#[cold]
fn default_threads() -> usize {
    let named = named_threads(std::env::var("TILEWORK_NUM_THREADS").ok().as_deref());
    let named = named.and_then(Result::ok);
    let threads = named.unwrap_or_else(available::cpus).clamp(1, MAX_THREADS);
    // No lock, which a fork could leave locked: who comes second takes the first one's answer.
    match THREADS.compare_exchange(0, threads, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => threads,
        Err(set) => set,
    }
}

/// [`run`], on the workers too.
fn run_shared(pieces: usize, work: &(dyn Fn(usize) + Sync)) {
    /// Says that this thread runs pieces, until dropped.
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            IN_PIECE.set(false);
        }
    }
    IN_PIECE.set(true);
    let _inside = Inside;
    let pool = staffed_pool();
    if pieces <= MAX_PIECES {
        if !pool.run(pieces, work, &interrupt::check) {
            (0..pieces).for_each(work);
        }
        return;
    }
    let mut first = 0;
    while first < pieces {
        let batch = (pieces - first).min(MAX_PIECES);
        let work = |index| work(first + index);
        if !pool.run(batch, &work, &interrupt::check) {
            (0..batch).for_each(work);
        }
        first += batch;
    }
}

/// The pool, with its workers started.
fn staffed_pool() -> &'static Claims {
    // SAFETY: the pool is never freed.
    let pool = unsafe { POOL.load(Ordering::Acquire).as_ref() }.unwrap_or_else(found_pool);
    let threads = threads();
    if pool.wanted() != threads - 1 {
        pool.set_wanted(threads - 1);
    }
    let start = || {
        let worker = thread::Builder::new().name("tilework".to_owned());
        let life = || {
            IN_PIECE.set(true);
            pool.serve();
        };
        worker.spawn(life).is_ok()
    };
    if let Err(workers) = pool.enlist(start) {
        // The system gives no more threads: make do, rather than ask again at every job.
        let (relaxed, fewer) = (Ordering::Relaxed, workers + 1);
        _ = THREADS.compare_exchange(threads, fewer, relaxed, relaxed);
    }
    pool
}

#[cold]
fn found_pool() -> &'static Claims {
    forget_in_children();
    let fresh = Box::into_raw(Box::new(Claims::new(SLOTS)));
    match POOL.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: `fresh` is valid, and since it is the pool now it is never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: `fresh` comes from a box and nobody else has seen it.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: not null, so it is the pool, which is never freed.
            unsafe { &*other }
        }
    }
}

/// Sees to it that a forked child, which has none of the workers, begins with no pool.
fn forget_in_children() {
    static DONE: AtomicBool = AtomicBool::new(false);
    #[cfg(unix)]
    {
        extern "C" fn forget() {
            POOL.store(ptr::null_mut(), Ordering::Relaxed);
        }
        if !DONE.swap(true, Ordering::Relaxed) {
            // SAFETY: `forget` stays where it is and does nothing but store to an atomic, which is
            // allowed in a child of a process with several threads.
            unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        }
    }
    #[cfg(not(unix))]
    let _ = &DONE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_that_cannot_be_followed_are_said() {
        assert_eq!(named_threads(None), None);
        assert_eq!(named_threads(Some(" ")), None);
        assert_eq!(named_threads(Some(" 3 ")), Some(Ok(3)));
        for wrong in ["four", "0", "-1", "2.5", "1025"] {
            let error = named_threads(Some(wrong)).unwrap().unwrap_err();
            assert!(error.contains(wrong) && error.contains("TILEWORK_NUM_THREADS"), "{error}");
        }
    }
}
