//! Guards that an operation holds while it runs; those of users are in `user`.
//!
//! An operation takes the guards of all its blocks at once, in the order of their addresses, and
//! may wait for other operations; it never waits for a user's guard but fails with `Borrowed`. So
//! neither can deadlock. A thread that must not wait at all, because others need something that it
//! holds (Python's GIL), works inside of [`without_waiting`].

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tilework_error::{Error, Result};

use crate::backend::DeviceId;
use crate::interrupt;
use crate::lock::{Access, BlockLock, Conflict, OpGuards, Waiting};
use crate::reading;
use crate::request::Request;
use crate::storage::Storage;

/// What this thread does where a guard is not to be had at once.
#[derive(Clone, Copy, PartialEq)]
enum Patience {
    /// It waits.
    Waits,
    /// It gives up.
    GivesUp,
    /// It has given up.
    GaveUp,
    /// It fails: an operation further down on its stack may be the one to wait for.
    Fails,
}

thread_local! {
    static PATIENCE: Cell<Patience> = const { Cell::new(Patience::Waits) };
}

/// Does `work`, none of whose operations waits for another operation or does what takes long first; None
/// if one would have, and then that operation and whatever `work` made of its error have not happened.
///
/// For threads that hold something which a running operation may need: they let go of it and do
/// the work again, waiting. Work that writes must do so in its last operation.
#[inline]
pub fn without_waiting<T>(work: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
    PATIENCE.with(|patience| {
        if patience.get() == Patience::Fails {
            return Some(work());
        }
        let _reset = Reset(patience, patience.replace(Patience::GivesUp));
        let result = work();
        if patience.get() == Patience::GaveUp { None } else { Some(result) }
    })
}

/// Before work that takes long and has written nothing yet, as compiling is: an error on a thread that must
/// not wait, which then does the operation again where it may.
pub fn before_long_work(operation: &str) -> Result<()> {
    match PATIENCE.get() {
        Patience::GivesUp | Patience::GaveUp => {
            PATIENCE.set(Patience::GaveUp);
            Err(Error::borrowed(
                operation,
                "this thread must not wait for what has to be done first",
            ))
        }
        Patience::Waits | Patience::Fails => Ok(()),
    }
}

/// Whether only threads inside of `interruptible` wait.
static MUST_BE_WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on no thread of this process waits for another operation but inside of
/// [`crate::interruptible`]; elsewhere operations that would have to wait fail.
///
/// For a program whose threads hold something that running operations need, as a Python module's do,
/// and let go of it wherever they call `interruptible`: what was forgotten fails instead of stopping
/// all of them for ever.
pub fn wait_only_watched() {
    MUST_BE_WATCHED.store(true, Relaxed);
}

/// Does `work` in the middle of an operation that this thread does or waits for: what would wait for
/// another operation fails, since that might be this one.
pub fn in_the_middle<T>(work: impl FnOnce() -> T) -> T {
    PATIENCE.with(|patience| {
        let _reset = Reset(patience, patience.replace(Patience::Fails));
        work()
    })
}

/// Puts the former state back, also when work panics.
struct Reset<'a>(&'a Cell<Patience>, Patience);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Takes what an operation needs and did not get at once, waiting for other operations if this
/// thread may wait. What has not begun can always be given up, also what writes.
#[cold]
pub(crate) fn wait(
    operation: &str,
    mut take: impl FnMut(Waiting<'_>) -> std::result::Result<bool, Conflict>,
) -> Result<()> {
    match PATIENCE.get() {
        Patience::Waits if interrupt::is_watched() || !MUST_BE_WATCHED.load(Relaxed) => {}
        Patience::Waits => {
            let message = "another operation uses the memory, and this thread, which nobody \
                           watches, must not wait for it; this is a bug, please report it";
            return Err(Error::borrowed(operation, message));
        }
        Patience::Fails => {
            let message = "an operation that is under way uses the memory, and a handler that \
                           interrupts one cannot wait for it";
            return Err(Error::borrowed(operation, message));
        }
        Patience::GivesUp | Patience::GaveUp => {
            PATIENCE.set(Patience::GaveUp);
            return Err(Error::borrowed(operation, "another operation uses the memory"));
        }
    }
    match take(interrupt::waiting()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = "stopped while another operation used the memory; nothing was done";
            Err(Error::interrupted(operation, message))
        }
        Err(conflict) => Err(borrowed(operation, conflict)),
    }
}

/// Proof that the guards of a request's blocks are held; ends them when dropped.
///
/// It stays on the thread that opened it; kernels pass pointers to their workers and return before
/// it ends.
pub struct Session<'a> {
    /// What its caller does, for messages.
    operation: &'static str,
    guards: OpGuards<'a>,
    /// The lock of a block that the longer operation, which this is part of, holds for reading.
    held: Option<&'a BlockLock>,
    /// The locks of targets that nobody else knows, which need no guards; a request has two at
    /// most.
    fresh: [Option<&'a BlockLock>; 2],
    /// Whether it writes what others can see.
    writes_shared: bool,
    _one_thread: PhantomData<*mut ()>,
}

impl<'a> Session<'a> {
    /// A session that holds nothing yet.
    #[inline]
    pub(crate) fn new(operation: &'static str) -> Session<'a> {
        Session {
            operation,
            // A constant, for the reason given in `View::boxed`.
            guards: const { OpGuards::new() },
            held: None,
            fresh: [None; 2],
            writes_shared: false,
            _one_thread: PhantomData,
        }
    }

    /// Takes the guards of all blocks that `request` touches, which are all on the device `here`.
    #[inline]
    pub(crate) fn open(&mut self, request: &Request<'a>, here: DeviceId) -> Result<()> {
        let mut elsewhere = None;
        match request {
            // The requests that are often small, in line.
            Request::Map(map) => map.each_view(|storage, access, fresh| {
                self.add(storage, access, fresh, here, &mut elsewhere);
            }),
            Request::Matmul(matmul) => matmul.each_view(|storage, access, fresh| {
                self.add(storage, access, fresh, here, &mut elsewhere);
            }),
            _ => request.each_view(&mut |storage, access, fresh| {
                self.add(storage, access, fresh, here, &mut elsewhere);
            }),
        }
        self.take(here, elsewhere)
    }

    /// [`open`](Self::open) for several requests, all of whose guards are taken at once.
    pub(crate) fn open_all<'r>(
        &mut self,
        requests: impl Iterator<Item = &'r Request<'a>>,
        here: DeviceId,
    ) -> Result<()>
    where
        'a: 'r,
    {
        let mut elsewhere = None;
        for request in requests {
            request.each_view(&mut |storage, access, _| {
                // With its guard also where it is new: there may be more of those than `fresh` holds.
                self.add(storage, access, false, here, &mut elsewhere);
            });
        }
        self.take(here, elsewhere)
    }

    /// A session for a request all of whose blocks are new but this one, which it reads and which
    /// `outer` holds.
    pub(crate) fn within(
        outer: &Session<'_>,
        block: &'a Storage,
        request: &Request<'a>,
    ) -> Session<'a> {
        outer.assert_reads(block);
        let held = Some(&block.block().lock);
        let mut session = Session { held, ..Session::new(outer.operation) };
        request.each_view(&mut |storage, access, fresh| match fresh {
            true => session.add_fresh(storage),
            false => assert!(access == Access::Read && storage.is_same(block), "one block is held"),
        });
        session
    }

    /// Takes the guard of one block, which is on the device `here`.
    pub(crate) fn hold(
        &mut self,
        storage: &'a Storage,
        access: Access,
        here: DeviceId,
    ) -> Result<()> {
        self.guards.wish(&storage.block().lock, access);
        self.writes_shared |= access == Access::Write;
        self.take(here, Some(storage.device()).filter(|there| *there != here))
    }

    /// Takes the guards that were wished for, unless a block is `elsewhere`.
    #[inline]
    fn take(&mut self, here: DeviceId, elsewhere: Option<DeviceId>) -> Result<()> {
        if let Some(there) = elsewhere {
            return Err(apart(self.operation, here, there));
        }
        self.take_all()
    }

    /// Takes what was not to be had at once, without what this thread holds for reading anyway.
    #[cold]
    fn take_rest(&mut self) -> Result<()> {
        if self.guards.writes_one(reading::holds) {
            let message = "an operation of this thread that is under way reads the memory";
            return Err(Error::borrowed(self.operation, message));
        }
        if self.guards.leave_out(reading::holds) {
            return self.take_all();
        }
        wait(self.operation, |waiting| self.guards.take(waiting))
    }

    /// Takes the guards that were wished for.
    #[inline]
    pub(crate) fn take_all(&mut self) -> Result<()> {
        match self.guards.take(Waiting::Never) {
            Ok(true) => Ok(()),
            Ok(false) => self.take_rest(),
            Err(conflict) => Err(borrowed(self.operation, conflict)),
        }
    }

    /// Adds a block to those that are taken for reading, wherever it is.
    pub(crate) fn wish_to_read(&mut self, storage: &'a Storage) {
        self.guards.wish(&storage.block().lock, Access::Read);
    }

    /// Adds a block of the request; it is `elsewhere` if it is not on the device `here`.
    #[inline]
    fn add(
        &mut self,
        storage: &'a Storage,
        access: Access,
        fresh: bool,
        here: DeviceId,
        elsewhere: &mut Option<DeviceId>,
    ) {
        if !fresh {
            self.guards.wish(&storage.block().lock, access);
            self.writes_shared |= access == Access::Write;
        } else {
            self.add_fresh(storage);
        }
        if storage.device() != here {
            *elsewhere = Some(storage.device());
        }
    }

    /// Adds a target that nobody else knows.
    #[inline]
    fn add_fresh(&mut self, storage: &'a Storage) {
        let place = usize::from(self.fresh[0].is_some());
        self.fresh[place] = Some(&storage.block().lock);
    }

    /// The name of the operation that it was opened for, for messages.
    #[inline]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Whether the request can be given up half way: it makes something new, and somebody has
    /// something to say about it.
    #[inline]
    pub(crate) fn is_stoppable(&self) -> bool {
        !self.writes_shared && self.may_stop()
    }

    /// Whether somebody on this thread, which may wait, has something to say about what is not seen
    /// by others.
    #[inline]
    pub(crate) fn may_stop(&self) -> bool {
        PATIENCE.get() == Patience::Waits && interrupt::can_stop()
    }

    /// What this session may do with a block; None if it does not hold it.
    #[inline]
    fn access(&self, storage: &Storage) -> Option<Access> {
        let lock = &storage.block().lock;
        if self.fresh.iter().flatten().any(|fresh| std::ptr::eq(*fresh, lock)) {
            return Some(Access::Write);
        }
        let held = self.held.filter(|held| std::ptr::eq(*held, lock));
        let access = self.guards.access(lock).or(held.map(|_| Access::Read));
        access.or_else(|| reading::holds(lock).then_some(Access::Read))
    }

    /// That this session may read the block.
    #[inline]
    pub(crate) fn assert_reads(&self, storage: &Storage) {
        assert!(self.access(storage).is_some(), "the session does not hold this block");
    }

    /// That this session may write the block.
    #[inline]
    pub(crate) fn assert_writes(&self, storage: &Storage) {
        let writes = self.access(storage) == Some(Access::Write);
        assert!(writes, "the session does not hold this block for writing");
    }
}

#[cold]
fn apart(operation: &str, here: DeviceId, there: DeviceId) -> Error {
    let message =
        format!("operands are on {here} and {there}; move one with to_device(\"{here}\")");
    Error::device(operation, message)
}

#[cold]
pub(crate) fn borrowed(operation: &str, conflict: Conflict) -> Error {
    let held = match conflict.held {
        Access::Read => "read",
        Access::Write => "written",
    };
    Error::borrowed(
        operation,
        format!("the memory is being {held} through a guard; drop the guard first"),
    )
}
