//! How far a call is, who is told, and whether it is to be stopped.
//!
//! Long work is launched in pieces that are waited for, so that somebody can be asked between them. How long it is, is
//! counted in steps of all forms alike. Where a form gives up and another does its work from the beginning, what was
//! told is not taken back: the rest is the other's share. Made by `launching` for each call.

use std::cell::Cell;

use tilework_backend::{PairReduce, Progress, interrupt};
use tilework_error::{Error, Result};

use crate::device::Cuda;

/// Steps of a launch of long work, about a tenth of a second, so that somebody can stop it or see how far it is. Fewer
/// would leave multiprocessors idle at the end of every launch. Calls of fewer steps are not waited for.
pub(super) const STEPS_OF_LAUNCH: f64 = 3e12;

/// What is known of a call that is under way.
pub(super) struct Course<'r> {
    name: &'static str,
    progress: Option<Progress<'r>>,
    long: bool,
    /// Steps that were launched since somebody was asked.
    since: Cell<f64>,
    /// The share of the call that was told last.
    told: Cell<f64>,
    /// The share that had been told when the form at work began.
    before: Cell<f64>,
}

impl<'r> Course<'r> {
    /// The course of a call whose longest form has so many steps.
    pub(super) fn new(request: &PairReduce<'r>, steps: f64) -> Course<'r> {
        Course::of(request.fold.row().name, request.progress, steps)
    }

    fn of(name: &'static str, progress: Option<Progress<'r>>, steps: f64) -> Course<'r> {
        let [since, told, before] = [const { Cell::new(0.0) }; 3];
        Course { name, progress, long: steps > STEPS_OF_LAUNCH, since, told, before }
    }

    /// Whether the work is waited for, piece by piece.
    pub(super) fn is_long(&self) -> bool {
        self.long
    }

    /// Counts steps that are to be launched next, and says whether somebody is to be asked before.
    pub(super) fn is_due(&self, steps: f64) -> bool {
        let all = self.since.get() + steps;
        let due = self.long && self.since.get() > 0.0 && all > STEPS_OF_LAUNCH;
        self.since.set(if due { steps } else { all });
        due
    }

    /// Waits for what was launched and tells that this fraction of the form at work is done; an error if the work is
    /// to be stopped.
    pub(super) fn go_on(&self, cuda: &Cuda, operation: &str, fraction: f64) -> Result<()> {
        cuda.wait(operation)?;
        interrupt::check();
        self.tell(fraction)
    }

    /// Notes that another form does the work, from the beginning.
    pub(super) fn begin_anew(&self) {
        self.before.set(self.told.get());
    }

    /// Tells that all is done; where the work is long, waits for that before.
    pub(super) fn end(&self, cuda: &Cuda, operation: &str) -> Result<()> {
        if self.long { self.go_on(cuda, operation, 1.0) } else { self.tell(1.0) }
    }

    fn tell(&self, fraction: f64) -> Result<()> {
        let before = self.before.get();
        let told = if fraction < 1.0 { before + (1.0 - before) * fraction } else { 1.0 };
        self.told.set(told);
        match self.progress {
            Some(progress) if !progress.goes_on(told) => {
                Err(Error::interrupted(self.name, "stopped on request"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn somebody_is_asked_before_every_launch_of_long_work_but_the_first() {
        let due = |all: f64, pieces: usize| {
            let course = Course::of("test", None, all);
            (0..pieces).map(|_| course.is_due(all / pieces as f64)).collect::<Vec<_>>()
        };
        assert_eq!(due(3.0 * STEPS_OF_LAUNCH, 3), [false, true, true]);
        assert_eq!(due(STEPS_OF_LAUNCH, 2), [false, false]);
        // Small pieces are launched together.
        let small = due(2.0 * STEPS_OF_LAUNCH, 64);
        assert_eq!(small.iter().filter(|due| **due).count(), 1, "{small:?}");
        // Work that is not long has both of its forms launched.
        let course = Course::of("test", None, STEPS_OF_LAUNCH);
        assert!([STEPS_OF_LAUNCH, STEPS_OF_LAUNCH].iter().all(|steps| !course.is_due(*steps)));
    }

    #[test]
    fn what_was_told_is_not_taken_back() {
        let told = Mutex::new(Vec::new());
        let listen = |fraction| {
            told.lock().unwrap().push(fraction);
            fraction < 1.0
        };
        let course = Course::of("test", Some(Progress(&listen)), 4.0 * STEPS_OF_LAUNCH);
        course.tell(0.25).unwrap();
        course.tell(0.5).unwrap();
        course.begin_anew();
        course.tell(0.0).unwrap();
        course.tell(0.5).unwrap();
        assert!(course.tell(1.0).is_err());
        assert_eq!(*told.lock().unwrap(), [0.25, 0.5, 0.5, 0.75, 1.0]);
    }
}
