//! How far a call is, who is told, and whether it is to be stopped.
//!
//! Whatever takes long asks [`Course::go_on`] now and then, from any thread: the reduction, and what
//! looks at all points before it begins. Made by `pairs::with_job`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilework_backend::{PairReduce, Progress};
use tilework_error::{Error, Result};

use crate::pool;

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// What is known of a call that is under way.
pub(super) struct Course<'r> {
    name: &'static str,
    progress: Option<Progress<'r>>,
    /// All pairs of the call.
    all: f64,
    done: AtomicU64,
    told: Mutex<Instant>,
    stop: AtomicBool,
}

impl<'r> Course<'r> {
    pub(super) fn new(request: &PairReduce<'r>) -> Course<'r> {
        let rows = match request.output_shape() {
            [rows @ .., _] => rows,
            [] => &[0],
        };
        Course {
            name: request.fold.row().name,
            progress: request.progress,
            all: rows.iter().fold(request.n as f64, |all, &rows| all * rows as f64),
            done: AtomicU64::new(0),
            told: Mutex::new(Instant::now()),
            stop: AtomicBool::new(false),
        }
    }

    /// A call of some pairs for tests.
    #[cfg(test)]
    pub(super) fn heard(progress: Progress<'r>) -> Course<'r> {
        Course { progress: Some(progress), ..Course::unheard() }
    }

    #[cfg(test)]
    pub(super) fn unheard() -> Course<'r> {
        Course {
            name: "test",
            progress: None,
            all: 1.0,
            done: AtomicU64::new(0),
            told: Mutex::new(Instant::now()),
            stop: AtomicBool::new(false),
        }
    }

    /// Has everybody stop who asks.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Notes that so many pairs are done; an error if the work is to be stopped.
    pub(super) fn go_on(&self, pairs: u64) -> Result<()> {
        pool::check();
        let Some(progress) = self.progress else { return Ok(()) };
        let done = self.done.fetch_add(pairs, Ordering::Relaxed) + pairs;
        if let Ok(mut told) = self.told.try_lock()
            && told.elapsed() >= TOLD_EVERY
        {
            if !progress.goes_on(done as f64 / self.all) {
                self.stop();
            }
            *told = Instant::now();
        }
        match self.is_stopped() {
            false => Ok(()),
            true => Err(Error::interrupted(self.name, "stopped on request")),
        }
    }
}
