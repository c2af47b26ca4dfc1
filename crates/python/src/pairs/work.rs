//! Long work over pairs: without the GIL, with progress, stopped by Ctrl-C.
//!
//! Short work is done as any other operation's. Long work runs on a thread of its own while the
//! caller's waits, looks for signals and shows how far it is: signals reach Python on its main
//! thread only, and that one must not be busy. What handlers and progress functions do then fails
//! where it would have to wait for the work, which waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use tilework::formula::Expr;
use tilework::pairs::{Options, Progress};
use tilework::{Device, Memory, Result, interruptible};
use tilework_backend::in_the_middle;

use super::settings::{Settings, Shown};
use crate::errors::OrRaise;
use crate::run::{bug, run};

/// Numbers for each pair that count as one: a short formula's, whose pairs the other bounds were
/// measured with.
const SHORT_FORMULA: u64 = 16;
/// What work is watched from: milliseconds of the quickest formulas, beside which a thread costs little.
/// Shorter work looks for signals between its pieces, as any other.
const LONG: usize = 1 << 25;
/// The same on devices with memory of their own: calls return while these work, which a thread that waits
/// would undo, and the quickest formulas take some tens of milliseconds.
const LONG_AWAY: usize = 1 << 37;
/// How often signals are looked for, and progress is shown.
const TICK: Duration = Duration::from_millis(50);

/// How much work a formula is that stands for so many numbers, pairs times components: by what is read
/// and computed for each pair, since a pair of long vectors takes as long as many short ones.
pub fn effort(numbers: usize, formula: &Expr, weight: Option<&Expr>) -> usize {
    let weight = weight.map_or(0, Expr::work);
    let each = formula.work().saturating_add(weight) / SHORT_FORMULA;
    let each = usize::try_from(each).unwrap_or(usize::MAX).max(1);
    (numbers / formula.dim().max(1)).saturating_mul(each)
}

/// Does so much work, with the options of these settings and a watch on it.
pub fn watched<T: Send>(
    py: Python<'_>,
    effort: usize,
    device: Device,
    settings: &Settings,
    work: impl Fn(&Options<'_>) -> Result<T> + Sync,
) -> PyResult<T> {
    let shown = settings.progress();
    let long = if device.memory() == Memory::Host { LONG } else { LONG_AWAY };
    if matches!(shown, Shown::Nothing) && effort < long {
        return run(py, effort, device, || work(&settings.options()));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let done = AtomicU64::new(0);
    let told = |fraction: f64| {
        done.fetch_max((fraction.clamp(0.0, 1.0) * PARTS) as u64, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    std::thread::scope(|scope| {
        let (finished, wait) = sync_channel::<()>(1);
        let (told, work) = (&told, &work);
        let options = settings.options();
        let asked = Arc::clone(&stop);
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            let _scope = device.scope();
            let options = Options { progress: Some(Progress(told)), ..options };
            // The reduction asks `told`; what comes before and after it, waiting for memory too, asks this.
            let stop = move || asked.load(Ordering::Relaxed);
            let work = || interruptible(stop, || work(&options));
            let result = catch_unwind(AssertUnwindSafe(work));
            // The receiver outlives this thread.
            let _ = finished.send(());
            result
        });
        // Where the system has no thread left, the work is done here and heeds signals at its end.
        let Ok(worker) = worker else {
            return run(py, effort, device, || work(&settings.options()));
        };
        let mut bar = Bar { began: Instant::now(), drawn: false };
        let mut failure = None;
        let wait = Mutex::new(wait);
        let waited = || wait.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK);
        while py.detach(waited) == Err(RecvTimeoutError::Timeout) {
            if failure.is_some() {
                continue;
            }
            let fraction = done.load(Ordering::Relaxed) as f64 / PARTS;
            let look = || py.check_signals().and_then(|()| bar.show(py, shown, fraction));
            if let Err(error) = in_the_middle(look) {
                stop.store(true, Ordering::Relaxed);
                failure = Some(error);
            }
        }
        let result = worker.join();
        match failure {
            Some(error) => {
                bar.end(py)?;
                Err(error)
            }
            None => {
                if !matches!(shown, Shown::Nothing) {
                    bar.show(py, shown, 1.0)?;
                    bar.end(py)?;
                }
                match result {
                    Ok(Ok(result)) => result.py(),
                    Ok(Err(panic)) => Err(bug(&*panic)),
                    Err(_) => Err(PyRuntimeError::new_err("the working thread ended early")),
                }
            }
        }
    })
}

/// Progress is counted in these parts, so that threads can keep the largest.
const PARTS: f64 = 1e6;

/// What is drawn of progress.
struct Bar {
    began: Instant,
    drawn: bool,
}

impl Bar {
    fn show(&mut self, py: Python<'_>, shown: &Shown, fraction: f64) -> PyResult<()> {
        match shown {
            Shown::Nothing => Ok(()),
            Shown::Told(callback) => {
                // Only False stops: other values are what the function happens to return.
                let answer = callback.bind(py).call1((fraction,))?;
                if !matches!(answer.cast_exact::<PyBool>(), Ok(answer) if !answer.is_true()) {
                    return Ok(());
                }
                Err(PyKeyboardInterrupt::new_err("the progress function said to stop"))
            }
            Shown::Bar => {
                const WIDTH: usize = 40;
                let full = (fraction * WIDTH as f64) as usize;
                let spent = self.began.elapsed().as_secs_f64();
                let left = match fraction {
                    f if f > 0.0 => format!("{:.1} s left", spent * (1.0 - f) / f),
                    _ => "?".into(),
                };
                let text = format!(
                    "\r[{}{}] {:3.0} %  {:.1} s, {left}    ",
                    "#".repeat(full),
                    "-".repeat(WIDTH - full),
                    100.0 * fraction,
                    spent,
                );
                self.drawn = true;
                write(py, &text)
            }
        }
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        if self.drawn { write(py, "\n") } else { Ok(()) }
    }
}

/// Writes to Python's own stderr, which is what notebooks show.
fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if stderr.is_none() {
        return Ok(());
    }
    stderr.call_method1("write", (text,))?;
    stderr.call_method0("flush").map(|_| ())
}
