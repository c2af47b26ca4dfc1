//! The claim protocol: how a caller and the workers share the pieces of a job.
//!
//! A caller publishes its job in a *slot* and takes part in it. Whoever has time claims a piece from
//! the slot's one atomic word, the caller at the front and workers at the back, until none is left;
//! the caller then waits for pieces that others have begun, and never for anybody who has not. From
//! two ends, calls on the same arrays find in each core's own cache what it had before. With several
//! slots, several callers share the workers. Idle workers watch one word, the *signal*, for a while
//! and then sleep.
//!
//! May assume: a [`Claims`] outlives the threads inside [`Claims::serve`]; pieces never call
//! [`Claims::run`] (the pool runs nested calls inline). Starts no threads itself. Called by
//! `pool.rs`, and by the loom models in `tests/pool_loom.rs`.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

pub use super::sync::PATIENCE;
use super::sync::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Condvar, Mutex, spin_until, wait_a_while,
};

/// The work of a job, called once with the index of each piece.
type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// The most pieces that one job may have: what an end of a slot's word can count.
pub const MAX_PIECES: usize = (1 << PIECE_BITS) - 1;

/// The most workers: what the low bits of the signal can count.
pub const MAX_WORKERS: usize = (1 << WORKER_BITS) - 1;

const PIECE_BITS: u32 = 14;
const WORKER_BITS: u32 = 16;

/// How many sleepers a caller wakes, and how many each of those: a tree, so that neither the
/// caller nor the last worker waits for a long row of system calls.
const FAN_OUT: usize = 2;

/// In `Slot::unfinished`: the caller sleeps until the count is zero.
const CALLER_SLEEPS: usize = 1 << (usize::BITS - 1);

/// A job, on its caller's stack, but on lines of its own: workers look at it while the caller writes
/// what lies beside it.
#[repr(align(128))]
struct Job<'a> {
    work: &'a Work<'a>,
    /// What the first piece that panicked threw.
    panic: std::sync::Mutex<Option<Box<dyn Any + Send>>>,
    /// Whether a piece has panicked, so that the others need not begin.
    failed: std::sync::atomic::AtomicBool,
}

thread_local! {
    /// Where the job whose piece this thread runs says that it has failed; null between pieces.
    static FAILED: Cell<*const std::sync::atomic::AtomicBool> = const { Cell::new(ptr::null()) };
}

/// Whether this thread runs a piece of a job of which another piece has panicked, so that nobody
/// will look at what this one does.
pub fn is_in_vain() -> bool {
    // SAFETY: not null while `Job::run` is below on the stack, which has the job.
    unsafe { FAILED.get().as_ref() }.is_some_and(|failed| failed.load(Relaxed))
}

impl Job<'_> {
    /// Runs a piece.
    fn run(&self, piece: usize) {
        FAILED.set(&self.failed);
        self.attempt(|| (self.work)(piece));
        FAILED.set(ptr::null());
    }

    /// Does a part of the job, unless one has failed, and keeps what it throws.
    fn attempt(&self, work: impl FnOnce()) {
        if self.failed.load(Relaxed) {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            match *first {
                None => *first = Some(payload),
                // Dropping a payload may panic again, and nothing may unwind from here.
                Some(_) => std::mem::forget(payload),
            }
            drop(first);
            // Said only now, so that whoever gives up for that reason is never the first.
            self.failed.store(true, Relaxed);
        }
    }
}

/// A place for one job at a time.
#[repr(align(128))]
struct Slot {
    /// Whether a caller owns this slot. Workers have no business with it, so that it stays in the
    /// caches of callers.
    taken: Alone<AtomicBool>,
    /// From the high bits down: the number of the job, the first of its pieces that nobody has
    /// claimed, and the end of those pieces.
    ///
    /// A claim moves one of the two ends by compare-and-swap. Since the number is part of the word,
    /// a thread that was held up between looking and claiming cannot claim from a later job; and
    /// since both ends are, it cannot claim from a job that has no piece left.
    word: AtomicU64,
    /// The job. Valid while a claimed piece of it has not been reported to `unfinished`.
    job: AtomicPtr<Job<'static>>,
    /// Pieces that have not been reported as done, and [`CALLER_SLEEPS`].
    unfinished: AtomicUsize,
    gate: Mutex<()>,
    bell: Condvar,
}

/// Which of the unclaimed pieces a thread takes.
#[derive(Clone, Copy)]
enum End {
    /// The first: the caller's.
    Front,
    /// The last: the workers'.
    Back,
}

/// A piece that this thread, and no other, has to run.
struct Claim {
    job: *const Job<'static>,
    piece: usize,
    /// Pieces left for others.
    left: usize,
}

impl Slot {
    fn new() -> Self {
        Self {
            taken: Alone(AtomicBool::new(false)),
            word: AtomicU64::new(0),
            job: AtomicPtr::new(ptr::null_mut()),
            unfinished: AtomicUsize::new(0),
            gate: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Makes the pieces of `job` claimable but the first, which the caller has claimed herewith. The
    /// caller owns the slot, and `job` stays where it is until [`Slot::wait`] has returned.
    fn publish(&self, job: &Job<'_>, pieces: usize) {
        self.unfinished.store(pieces, Relaxed);
        self.job.store(ptr::from_ref(job).cast_mut().cast(), Relaxed);
        let number = (self.word.load(Relaxed) >> (2 * PIECE_BITS)).wrapping_add(1);
        let word = (number << (2 * PIECE_BITS)) | (1 << PIECE_BITS) | pieces as u64;
        self.word.store(word, Release);
    }

    /// Takes the piece at one end, if there is one.
    fn claim(&self, from: End) -> Option<Claim> {
        let mut word = self.word.load(Acquire);
        loop {
            let first = (word >> PIECE_BITS) as usize & MAX_PIECES;
            let end = word as usize & MAX_PIECES;
            if first == end {
                return None;
            }
            let (piece, rest) = match from {
                End::Front => (first, word + (1 << PIECE_BITS)),
                End::Back => (end - 1, word - 1),
            };
            // May be the pointer of a later job, but then the exchange fails: `word` has changed.
            let job: *const Job<'static> = self.job.load(Relaxed);
            match self.word.compare_exchange_weak(word, rest, Acquire, Acquire) {
                // A piece of this job has been claimed and not been reported, so its caller waits
                // inside `Claims::run` and the job is alive. It is the job that belongs to `word`:
                // the pointer was stored before `word` was, and the next one is stored only after
                // our report.
                Ok(_) => return Some(Claim { job, piece, left: end - first - 1 }),
                Err(now) => word = now,
            }
        }
    }

    /// Runs pieces from one end until none is left to claim; returns how many. Before the first
    /// one, `on_first` hears how many are left for others.
    fn take_part(&self, from: End, on_first: impl FnOnce(usize)) -> usize {
        let mut on_first = Some(on_first);
        let mut ran = 0;
        while let Some(claim) = self.claim(from) {
            if let Some(on_first) = on_first.take() {
                on_first(claim.left);
            }
            // SAFETY: the piece is claimed and not reported, so the job is alive (see `claim`).
            unsafe { &*claim.job }.run(claim.piece);
            ran += 1;
            if claim.left == 0 {
                break;
            }
        }
        ran
    }

    /// Reports `ran` pieces of a worker as done. After this the job may be gone.
    fn report(&self, ran: usize) {
        if self.unfinished.fetch_sub(ran, AcqRel) == ran | CALLER_SLEEPS {
            drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
            self.bell.notify_all();
        }
    }

    /// Reports `ran` pieces of the caller as done and waits for those of the workers, calling
    /// `meanwhile` now and then.
    fn wait(&self, ran: usize, meanwhile: impl Fn()) {
        if self.unfinished.fetch_sub(ran, AcqRel) == ran {
            return;
        }
        if spin_until(|| self.unfinished.load(Acquire) == 0) {
            return;
        }
        if self.unfinished.fetch_add(CALLER_SLEEPS, AcqRel) == 0 {
            return;
        }
        loop {
            let guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
            if self.unfinished.load(Acquire) == CALLER_SLEEPS {
                return;
            }
            drop(wait_a_while(&self.bell, guard));
            meanwhile();
        }
    }
}

/// A word alone on its cache lines: the workers watch it.
#[repr(align(128))]
struct Alone<T>(T);

/// The slots, and the workers that serve them.
pub struct Claims {
    slots: Box<[Slot]>,
    /// High bits: how often there was news (a job, another number of workers). Low bits: how many
    /// workers sleep. Who brings news and who goes to sleep change the same word, so one of the two
    /// always sees the other: no wake-up can be lost.
    signal: Alone<AtomicU64>,
    /// How many workers there should be.
    wanted: AtomicUsize,
    /// How many there are; changed only under `dormitory`.
    present: AtomicUsize,
    dormitory: Mutex<()>,
    alarm: Condvar,
}

const NEWS: u64 = 1 << WORKER_BITS;

impl Claims {
    /// Room for `slots` jobs at a time, and no workers.
    pub fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::new()).collect(),
            signal: Alone(AtomicU64::new(0)),
            wanted: AtomicUsize::new(0),
            present: AtomicUsize::new(0),
            dormitory: Mutex::new(()),
            alarm: Condvar::new(),
        }
    }

    /// Runs `work(0)` to `work(pieces - 1)`, each once, with the help of whoever serves; returns
    /// when all have ended. False, with nothing run, if every slot is taken.
    ///
    /// If pieces panic, the first panic goes on in the caller when all that had begun have ended,
    /// and no others begin. `meanwhile` is called now and then while the caller has nothing to do
    /// but to wait; it may panic like a piece.
    pub fn run(&self, pieces: usize, work: &Work<'_>, meanwhile: &dyn Fn()) -> bool {
        assert!((1..=MAX_PIECES).contains(&pieces));
        let take =
            |slot: &Slot| slot.taken.0.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        let Some(place) = self.slots.iter().position(take) else {
            return false;
        };
        let slot = &self.slots[place];
        let job = Job { work, panic: std::sync::Mutex::new(None), failed: false.into() };
        slot.publish(&job, pieces);
        let signal = self.signal.0.fetch_add(NEWS, AcqRel);
        // In the first slot this is probably the only job, and who is awake has nothing to do.
        self.wake(signal, if place == 0 { pieces - 1 } else { usize::MAX });
        // From here to the end of `wait` nothing can unwind: pieces are caught, and the job must
        // not leave the stack while workers use it.
        job.run(0);
        let ran = 1 + slot.take_part(End::Front, |_| ());
        slot.wait(ran, || job.attempt(meanwhile));
        slot.taken.0.store(false, Release);
        let panic = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        true
    }

    /// Whether a worker is awake, and will see a job at once unless it has another.
    pub fn is_watched(&self) -> bool {
        let asleep = self.signal.0.load(Relaxed) as usize & MAX_WORKERS;
        asleep < self.present.load(Relaxed)
    }

    /// The life of a worker, which [`Claims::enlist`] has counted: runs pieces of whatever job has
    /// some, watches for news, sleeps. Returns when there are more workers than wanted.
    pub fn serve(&self) {
        loop {
            let seen = self.signal.0.load(Acquire);
            if self.surplus() && self.leave() {
                return;
            }
            if self.help() {
                continue;
            }
            let news = || (self.signal.0.load(Relaxed) ^ seen) >> WORKER_BITS != 0;
            if !spin_until(news) {
                self.sleep(seen);
            }
        }
    }

    /// Sets how many workers there should be. The caller starts the missing ones with
    /// [`Claims::enlist`]; surplus ones leave when they next look.
    pub fn set_wanted(&self, workers: usize) {
        self.wanted.store(workers.min(MAX_WORKERS), Relaxed);
        self.signal.0.fetch_add(NEWS, AcqRel);
        drop(self.dormitory.lock().unwrap_or_else(PoisonError::into_inner));
        self.alarm.notify_all();
    }

    /// How many workers there should be.
    pub fn wanted(&self) -> usize {
        self.wanted.load(Relaxed)
    }

    /// Calls `start` for every worker that is missing; it starts a thread inside
    /// [`Claims::serve`] and says whether that went well. If not, says how many there are.
    pub fn enlist(&self, mut start: impl FnMut() -> bool) -> Result<(), usize> {
        if self.present.load(Relaxed) >= self.wanted.load(Relaxed) {
            return Ok(());
        }
        let _guard = self.dormitory.lock().unwrap_or_else(PoisonError::into_inner);
        while self.present.load(Relaxed) < self.wanted.load(Relaxed) {
            // Counted before it starts, so that its own `leave` finds itself counted.
            self.present.fetch_add(1, Relaxed);
            if !start() {
                return Err(self.present.fetch_sub(1, Relaxed) - 1);
            }
        }
        Ok(())
    }

    fn surplus(&self) -> bool {
        self.present.load(Relaxed) > self.wanted.load(Relaxed)
    }

    /// Strikes the calling worker from the list, unless others have left before.
    fn leave(&self) -> bool {
        let _guard = self.dormitory.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = self.surplus();
        if surplus {
            self.present.fetch_sub(1, Relaxed);
        }
        surplus
    }

    /// Takes part in the first job that has pieces left; says whether there was one.
    fn help(&self) -> bool {
        self.slots.iter().any(|slot| {
            let ran = slot.take_part(End::Back, |left| {
                self.wake(self.signal.0.load(Relaxed), left);
            });
            if ran > 0 {
                slot.report(ran);
            }
            ran > 0
        })
    }

    /// Sleeps until there is news after `seen`.
    fn sleep(&self, seen: u64) {
        let mut guard = self.dormitory.lock().unwrap_or_else(PoisonError::into_inner);
        // Either this comes before the news, whose bringer then sees a sleeper, or the loads below
        // see the news.
        self.signal.0.fetch_add(1, Relaxed);
        while (self.signal.0.load(Relaxed) ^ seen) >> WORKER_BITS == 0 {
            guard = self.alarm.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.signal.0.fetch_sub(1, Relaxed);
    }

    /// Wakes some sleepers, if fewer workers than `useful` are awake.
    fn wake(&self, signal: u64, useful: usize) {
        let sleepers = signal as usize & MAX_WORKERS;
        if sleepers == 0 {
            return;
        }
        let staying = self.present.load(Relaxed).min(self.wanted.load(Relaxed));
        let awake = staying.saturating_sub(sleepers);
        let count = useful.saturating_sub(awake).min(sleepers).min(FAN_OUT);
        if count == 0 {
            return;
        }
        // Who has counted itself among the sleepers holds the dormitory until it sleeps.
        drop(self.dormitory.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in 0..count {
            self.alarm.notify_one();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_claimed_from_both_ends_until_these_meet() {
        let slot = Slot::new();
        let job = Job {
            work: &|_| (),
            panic: std::sync::Mutex::new(None),
            failed: std::sync::atomic::AtomicBool::new(false),
        };
        let piece = |end| slot.claim(end).map(|claim| (claim.piece, claim.left));
        slot.publish(&job, MAX_PIECES);
        // The first piece is the publisher's.
        assert_eq!(piece(End::Front), Some((1, MAX_PIECES - 2)));
        assert_eq!(piece(End::Back), Some((MAX_PIECES - 1, MAX_PIECES - 3)));
        assert_eq!(piece(End::Back), Some((MAX_PIECES - 2, MAX_PIECES - 4)));
        assert_eq!(piece(End::Front), Some((2, MAX_PIECES - 5)));
        // What that job left is nobody's.
        slot.publish(&job, 3);
        assert_eq!(piece(End::Back), Some((2, 1)));
        assert_eq!(piece(End::Front), Some((1, 0)));
        assert_eq!((piece(End::Back), piece(End::Front)), (None, None));
    }
}
