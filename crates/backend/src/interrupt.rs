//! Stopping long work from outside: Ctrl-C, a time limit, a button.
//!
//! [`interruptible`] says whom to ask; [`check`], which the pool of a backend calls between pieces,
//! asks about ten times a second and unwinds out of the kernel if the answer is to stop. [`run`]
//! catches that and makes it `Error::Interrupted`; it asks once more when the kernel is done, since
//! kernels of some microseconds do not, and a program may do nothing but such. Nobody in between has
//! to know: memory of kernels is freed on the way, their results are dropped with the request's fresh
//! targets, and the guards end as always. Requests that write what others can see are never watched,
//! so they run to their end; but a session that waits for its guards asks too (`waiting`), since what
//! has not begun can always be given up. Everything here belongs to one thread: workers do not ask.
//!
//! Unwinding needs panics that unwind: in a program built to abort on panic only waiting is given up.
//!
//! [`run`]: crate::run

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use tilework_error::{Error, Result};

use crate::lock::Waiting;
use crate::session::in_the_middle;

/// How often is asked.
const PERIOD: Duration = Duration::from_millis(100);

/// Who is asked whether to stop, and when next.
struct Watch {
    stop: Box<dyn Fn() -> bool>,
    due: Instant,
}

/// What [`check`] throws.
struct Stopped;

thread_local! {
    static WATCH: Cell<Option<Watch>> = const { Cell::new(None) };
    /// Whether the request that this thread runs may be stopped.
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// Puts a value back into a cell of this thread when dropped.
struct Restore<T: 'static>(&'static std::thread::LocalKey<Cell<T>>, Option<T>);

impl<T> Drop for Restore<T> {
    fn drop(&mut self) {
        if let Some(value) = self.1.take() {
            self.0.set(value);
        }
    }
}

fn replaced<T>(cell: &'static std::thread::LocalKey<Cell<T>>, value: T) -> Restore<T> {
    Restore(cell, Some(cell.replace(value)))
}

/// Does `work`; its operations, a long one or many short ones, ask `stop` about ten times a second
/// whether to give up, and then fail with `Error::Interrupted`. Only operations that make a new array
/// give up; what writes to an array that exists runs to its end once it has begun. What waits for
/// other operations has not. `stop` is called on this thread, in the middle of an operation: where it
/// would have to wait for memory that operations use it gets `Error::Borrowed`.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tilework_backend::interruptible;
/// let end = Instant::now() + Duration::from_secs(2);
/// let answer = interruptible(move || Instant::now() > end, || 6 * 7);
/// assert_eq!(answer, 42);
/// ```
pub fn interruptible<T>(stop: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    let watch = Watch { stop: Box::new(stop), due: Instant::now() + PERIOD };
    let _former = replaced(&WATCH, Some(watch));
    work()
}

/// Whether a request of this thread can be stopped at all.
pub(crate) fn can_stop() -> bool {
    cfg!(panic = "unwind") && is_watched()
}

/// Whether somebody is to be asked on this thread.
pub(crate) fn is_watched() -> bool {
    let watch = WATCH.take();
    let watched = watch.is_some();
    WATCH.set(watch);
    watched
}

/// How this thread waits for other operations.
pub(crate) fn waiting() -> Waiting<'static> {
    match is_watched() {
        true => Waiting::Asking { every: PERIOD, go_on: &|| !is_stopped() },
        false => Waiting::Always,
    }
}

/// Does the work of a request that may be stopped.
pub(crate) fn stoppable(operation: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let _former = replaced(&ARMED, true);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) if is_stopped() => {
            Err(Error::interrupted(operation, "stopped when it was done; its result is dropped"))
        }
        Ok(result) => result,
        Err(thrown) if thrown.is::<Stopped>() => {
            Err(Error::interrupted(operation, "stopped; there is no result"))
        }
        Err(thrown) => resume_unwind(thrown),
    }
}

/// Unwinds if this thread's request may be stopped, it is time to ask, and the answer is to stop.
///
/// Called between pieces of work by whatever shares out pieces, and inside of long ones.
#[inline]
pub fn check() {
    if ARMED.get() && is_stopped() {
        resume_unwind(Box::new(Stopped));
    }
}

/// Whether it is time to ask, and the answer is to stop.
#[cold]
fn is_stopped() -> bool {
    // Who is asked may run other requests (a handler of Python may do anything): not watched by
    // itself, not stopped for another, and not waiting for this one.
    let Some(mut watch) = WATCH.take() else { return false };
    let mut stop = false;
    if Instant::now() >= watch.due {
        let _former = replaced(&ARMED, false);
        stop = in_the_middle(&*watch.stop);
        watch.due = Instant::now() + PERIOD;
    }
    WATCH.set(Some(watch));
    stop
}
