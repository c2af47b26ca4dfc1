//! The reader-writer state that every storage block carries; the set of guards of one operation is
//! in `guards`.
//!
//! There are two kinds of holders. *Operations* hold a block for as long as a kernel runs;
//! *users* hold it through a guard for as long as they please. Operations wait for operations and
//! for nothing else; whoever meets a user's guard that excludes it gets a [`Conflict`] at once.
//! Nobody ever waits for a user, so guards cannot deadlock; and an operation takes all its blocks
//! at once in the order of their addresses ([`acquire`]), so operations cannot either. How long it
//! waits each says itself ([`Waiting`]).
//!
//! | wants | waits for | refused by |
//! |---|---|---|
//! | operation reads | an operation that writes, or waits to write | a user who writes |
//! | operation writes | any operation | any user |
//! | user reads | an operation that writes, or waits to write | a user who writes |
//! | user writes | any operation | any user |
//!
//! May assume: one operation takes a block once (`acquire` merges duplicates); every `unlock_*`
//! belongs to a successful `lock_*` with the same access. The lock itself guards no memory; the
//! storage does, on the strength of that pairing, and therefore keeps its lock private.
//! Called by storage (guards) and by the array layer (operations). Holders are not tied to
//! threads: what one thread took another may release.
//!
//! After `fork()` the child has one thread, and what operations of the others held is free again
//! (`generation`); what an operation was writing just then may be half written, as all memory of a
//! forked process may. Guards of users stay, also those of threads that the child has not: meeting
//! one is an error as always, not a wait.
//!
//! The state is one `AtomicU32`; taking and releasing cost one locked instruction each. Threads
//! that wait spin for a few microseconds, then sleep in a global table keyed by the address of the
//! lock (`beds`). Modelled with loom in `tests/lock_loom.rs`.

mod beds;
mod generation;
mod guards;

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use beds::bed;
pub use guards::{OpGuards, acquire, try_acquire};
use sync::AtomicU32;

/// What a holder does with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Reads it, beside other readers.
    Read,
    /// Writes it (and may read it), alone.
    Write,
}

/// A guard held by a user stands against the access that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// What was asked for. In a set in which a block occurs twice: the stronger of the two.
    pub wanted: Access,
    /// What the user's guard does with the block. `Read` against `Read` occurs only where a block
    /// already has [`BlockLock::MAX_USER_READERS`] guards.
    pub held: Access,
    /// Which lock of the list given to [`acquire`] it was; 0 for a single lock.
    pub index: usize,
}

/// What is done where a block is not to be had at once.
#[derive(Clone, Copy)]
pub enum Waiting<'a> {
    /// It is given up.
    Never,
    /// It is waited for, however long it takes.
    Always,
    /// It is waited for, and about so often is asked whether to go on.
    Asking {
        /// The time between two questions.
        every: Duration,
        /// True to go on, false to give up.
        go_on: &'a dyn Fn() -> bool,
    },
}

/// An operation writes. At most one of the two writers is set, and then no reader is counted.
const OP_WRITE: u32 = 1 << 0;
/// A user writes.
const USER_WRITE: u32 = 1 << 1;
/// A writer waits: new readers of both kinds stand back, so that a stream of them cannot starve it.
/// Set by a writer that goes to sleep, cleared by the next writer that takes the block and by one
/// that gives up waiting. While it is set no user can come in, so no writer that waits is refused.
const WRITER_WAITS: u32 = 1 << 2;
/// Threads may sleep in the table on behalf of this lock: whoever lets them go on must wake them.
const SLEEPERS: u32 = 1 << 3;
/// One operation that reads, out of at most 2047; further ones wait.
const OP_READ: u32 = 1 << 4;
const OP_READS: u32 = 0x7ff << 4;
/// One user that reads.
const USER_READ: u32 = 1 << 15;
const USER_READS: u32 = 0x1fff << 15;

const OPS: u32 = OP_WRITE | OP_READS;
const USERS: u32 = USER_WRITE | USER_READS;
const _: () = assert!((OPS | USERS | WRITER_WAITS | SLEEPERS) ^ generation::MASK == u32::MAX);

/// Who wants to hold a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Op,
    User,
}

/// What a state answers to a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It is granted if this state can be put in place of the one that was asked.
    Take(u32),
    Wait,
    Refuse(Access),
}

/// The rules, as a function of the state alone.
fn answer(state: u32, holder: Holder, access: Access) -> Answer {
    match access {
        Access::Read => {
            let (one, all) = match holder {
                Holder::Op => (OP_READ, OP_READS),
                Holder::User => (USER_READ, USER_READS),
            };
            let full = state & all == all;
            if state & USER_WRITE != 0 {
                Answer::Refuse(Access::Write)
            } else if full && holder == Holder::User {
                Answer::Refuse(Access::Read)
            } else if full || state & (OP_WRITE | WRITER_WAITS) != 0 {
                Answer::Wait
            } else {
                Answer::Take(state + one)
            }
        }
        Access::Write => {
            let one = match holder {
                Holder::Op => OP_WRITE,
                Holder::User => USER_WRITE,
            };
            if state & USER_WRITE != 0 {
                Answer::Refuse(Access::Write)
            } else if state & USER_READS != 0 {
                Answer::Refuse(Access::Read)
            } else if state & OPS != 0 {
                Answer::Wait
            } else {
                // Other writers that still wait announce themselves again.
                Answer::Take((state & !WRITER_WAITS) | one)
            }
        }
    }
}

/// A state as this process has to see it: what operations of an earlier generation hold, and who
/// waits among them, is forgotten.
#[inline]
fn renewed(state: u32) -> u32 {
    match generation::current() {
        now if state & generation::MASK == now => state,
        now => state & USERS | now,
    }
}

/// The state of one block: who reads and who writes it.
#[derive(Debug)]
pub struct BlockLock {
    state: AtomicU32,
}

impl Default for BlockLock {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockLock {
    /// How many guards users may hold for reading one block at a time.
    pub const MAX_USER_READERS: usize = (USER_READS / USER_READ) as usize;

    /// A block that nobody holds.
    #[inline]
    pub fn new() -> Self {
        generation::watch();
        Self { state: AtomicU32::new(generation::current()) }
    }

    /// Takes the block for an operation, after the operations that exclude it.
    #[inline]
    pub fn lock_op(&self, access: Access) -> Result<(), Conflict> {
        self.lock(Holder::Op, access, Waiting::Always).map(|_| ())
    }

    /// As [`lock_op`](Self::lock_op), but `Ok(false)` where that would wait.
    #[inline]
    pub fn try_lock_op(&self, access: Access) -> Result<bool, Conflict> {
        self.lock(Holder::Op, access, Waiting::Never)
    }

    /// Releases what [`lock_op`](Self::lock_op) took.
    #[inline]
    pub fn unlock_op(&self, access: Access) {
        let wake = match access {
            Access::Read => {
                let before = self.state.fetch_sub(OP_READ, Release);
                debug_assert!(before & OP_READS != 0, "no operation reads this block");
                let readers = before & OP_READS;
                before & SLEEPERS != 0 && (readers == OP_READ || readers == OP_READS)
            }
            Access::Write => {
                let before = self.state.fetch_sub(OP_WRITE, Release);
                debug_assert!(before & OP_WRITE != 0, "no operation writes this block");
                before & SLEEPERS != 0
            }
        };
        if wake {
            self.wake(SLEEPERS);
        }
    }

    /// Takes the block for a guard that user code holds, after the operations that exclude it.
    #[inline]
    pub fn lock_user(&self, access: Access) -> Result<(), Conflict> {
        self.lock_user_if(access, Waiting::Always).map(|_| ())
    }

    /// As [`lock_user`](Self::lock_user), but `Ok(false)` where that would wait.
    #[inline]
    pub fn try_lock_user(&self, access: Access) -> Result<bool, Conflict> {
        self.lock_user_if(access, Waiting::Never)
    }

    /// As [`lock_user`](Self::lock_user), but `Ok(false)` if waiting was given up.
    #[inline]
    pub fn lock_user_if(&self, access: Access, waiting: Waiting<'_>) -> Result<bool, Conflict> {
        self.lock(Holder::User, access, waiting)
    }

    /// Releases what [`lock_user`](Self::lock_user) took.
    #[inline]
    pub fn unlock_user(&self, access: Access) {
        // Nobody waits for a user, so there is nobody to wake.
        match access {
            Access::Read => {
                let before = self.state.fetch_sub(USER_READ, Release);
                debug_assert!(before & USER_READS != 0, "no user reads this block");
            }
            Access::Write => {
                let before = self.state.fetch_sub(USER_WRITE, Release);
                debug_assert!(before & USER_WRITE != 0, "no user writes this block");
            }
        }
    }

    /// Whether [`lock_op`](Self::lock_op) would have waited at this moment. The answer may be old
    /// when it arrives: who must not wait at all uses [`try_lock_op`](Self::try_lock_op).
    #[inline]
    pub fn would_block_op(&self, access: Access) -> bool {
        answer(renewed(self.state.load(Relaxed)), Holder::Op, access) == Answer::Wait
    }

    /// Whether nobody held the block at this moment.
    #[inline]
    pub fn is_free(&self) -> bool {
        renewed(self.state.load(Relaxed)) & (OPS | USERS) == 0
    }

    /// Takes the block, or is `Ok(false)` if waiting was given up.
    #[inline]
    fn lock(&self, holder: Holder, access: Access, waiting: Waiting<'_>) -> Result<bool, Conflict> {
        // Mostly nobody holds it or waits for it, and one locked instruction does.
        let taken = match (holder, access) {
            (Holder::Op, Access::Read) => OP_READ,
            (Holder::Op, Access::Write) => OP_WRITE,
            (Holder::User, Access::Read) => USER_READ,
            (Holder::User, Access::Write) => USER_WRITE,
        };
        let free = generation::current();
        if self.state.compare_exchange(free, free | taken, Acquire, Relaxed).is_ok() {
            return Ok(true);
        }
        self.lock_slow(holder, access, waiting)
    }

    /// Takes the block in any state.
    #[cold]
    fn lock_slow(
        &self,
        holder: Holder,
        access: Access,
        waiting: Waiting<'_>,
    ) -> Result<bool, Conflict> {
        let mut spins = Spins::new();
        let mut state = self.state.load(Relaxed);
        loop {
            match answer(renewed(state), holder, access) {
                Answer::Take(next) => {
                    match self.state.compare_exchange_weak(state, next, Acquire, Relaxed) {
                        Ok(_) => {
                            // Operations wake the sleepers when they release. A user's release
                            // wakes nobody, and who slept behind this writer is now refused.
                            if next & USER_WRITE != 0 && next & SLEEPERS != 0 {
                                self.wake(SLEEPERS);
                            }
                            return Ok(true);
                        }
                        Err(now) => state = now,
                    }
                }
                Answer::Refuse(held) => {
                    // A writer that has announced itself is never refused before another has taken
                    // the announcement back: users stand behind it, too.
                    return Err(Conflict { wanted: access, held, index: 0 });
                }
                Answer::Wait => {
                    let (limit, go_on) = match waiting {
                        Waiting::Never => return Ok(false),
                        Waiting::Always => (None, None),
                        Waiting::Asking { every, go_on } => (Some(every), Some(go_on)),
                    };
                    if !spins.again() {
                        self.sleep(holder, access, limit);
                        if go_on.is_some_and(|go_on| !go_on()) {
                            // Nobody stands back any longer for a writer that has gone.
                            if access == Access::Write {
                                self.wake(SLEEPERS | WRITER_WAITS);
                            }
                            return Ok(false);
                        }
                    }
                    state = self.state.load(Relaxed);
                }
            }
        }
    }

    /// Sleeps until woken or until so much time has passed, unless there is no reason to wait any
    /// more. May return early.
    fn sleep(&self, holder: Holder, access: Access, limit: Option<Duration>) {
        let announce = match access {
            Access::Read => SLEEPERS,
            Access::Write => SLEEPERS | WRITER_WAITS,
        };
        let bed = bed(self);
        // From here to the wait nobody can clear SLEEPERS: that needs the mutex of the bed.
        let place = bed.enter();
        let mut state = self.state.load(Relaxed);
        while answer(renewed(state), holder, access) == Answer::Wait {
            match self.state.compare_exchange_weak(state, state | announce, Relaxed, Relaxed) {
                Ok(_) => return bed.sleep(place, limit),
                Err(now) => state = now,
            }
        }
    }

    /// Takes these bits back and wakes all who sleep here; they look at the state afresh, and
    /// announce themselves again if they have to wait.
    #[cold]
    fn wake(&self, bits: u32) {
        let bed = bed(self);
        let place = bed.enter();
        self.state.fetch_and(!bits, Relaxed);
        bed.wake(place);
    }
}

/// Waiting awake: about five microseconds in rounds of growing length.
struct Spins {
    round: u32,
}

impl Spins {
    const ROUNDS: u32 = if cfg!(loom) { 0 } else { 7 };

    fn new() -> Self {
        Self { round: 0 }
    }

    /// Spins one more round, or says that it has been enough.
    fn again(&mut self) -> bool {
        if self.round == Self::ROUNDS {
            return false;
        }
        for _ in 0..1 << self.round {
            spin_loop();
        }
        self.round += 1;
        true
    }
}

/// What the lock is made of: the standard library, or loom's model of it.
mod sync {
    #[cfg(loom)]
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU32};
    #[cfg(not(loom))]
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU32};
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The table at the head of this file, state by state.
    #[test]
    fn the_rules() {
        use Access::{Read, Write};
        use Answer::{Refuse, Take, Wait};
        use Holder::{Op, User};
        let cases = [
            (0, [Take(OP_READ), Take(OP_WRITE), Take(USER_READ), Take(USER_WRITE)]),
            (OP_READ, [Take(2 * OP_READ), Wait, Take(OP_READ | USER_READ), Wait]),
            (OP_WRITE, [Wait; 4]),
            (
                USER_READ,
                [Take(OP_READ | USER_READ), Refuse(Read), Take(2 * USER_READ), Refuse(Read)],
            ),
            (USER_WRITE, [Refuse(Write); 4]),
            (OP_READ | WRITER_WAITS, [Wait; 4]),
            (WRITER_WAITS, [Wait, Take(OP_WRITE), Wait, Take(USER_WRITE)]),
            (OP_READS, [Wait, Wait, Take(OP_READS | USER_READ), Wait]),
            (USER_READS, [Take(USER_READS | OP_READ), Refuse(Read), Refuse(Read), Refuse(Read)]),
        ];
        for (state, expected) in cases {
            for sleepers in [0, SLEEPERS] {
                let wishes = [(Op, Read), (Op, Write), (User, Read), (User, Write)];
                for ((holder, access), expected) in wishes.into_iter().zip(expected) {
                    let expected = match expected {
                        Take(next) => Take(next | sleepers),
                        other => other,
                    };
                    let given = answer(state | sleepers, holder, access);
                    assert_eq!(given, expected, "state {state:#x}, {holder:?} {access:?}");
                }
            }
        }
    }
}
