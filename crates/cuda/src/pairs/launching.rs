//! From plans to launches: kernels that have to be loaded, the choice between forms, and what is measured for it.
//!
//! Where there is a choice, both forms are launched, and kernels look themselves which of them is to work, so that
//! nothing waits. There are two kinds of choice. Each block of the expanded form (or of exponentials of normal numbers,
//! which go the same way) looks at its own points, and the other form does what was refused. Or, where tensor cores take
//! the pairs, both forms look at what `measure` found of all points.
//!
//! Long work is launched in pieces that are waited for, so that it can be stopped (`course`); then the second kind of
//! choice is made here, before the first piece, and again where a form gave up. So are both kinds in the first calls of a
//! formula, as long as the form that is seldom needed is still being compiled. `launching_rows` and `launching_wide`
//! launch the forms. Called by `pairs`.

use std::sync::Arc;

use tilework_backend::Session;
use tilework_error::Result;

use super::choice::Choice;
use super::course::Course;
use super::launching_rows::Share;
use super::plan::Plan;
use super::print::Unit;
use super::{Expanded, Job, cost, key, print};
use crate::compile::Module;
use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, Args, Width};
use crate::memory::Block;

/// Threads of a block of the kernel `measure`.
const MEASURE_THREADS: usize = 256;

/// A kernel that is not loaded.
struct Missing<'r> {
    plan: &'r Plan<'r>,
    unit: Unit,
    key: Vec<u8>,
    /// Whether it is to be compiled while the call goes on.
    behind: bool,
}

/// What was measured, on the device.
pub(super) struct Measured {
    /// Four numbers: the largest norms of i and of j, as they count against the limit; whether the form gave up; and
    /// whether threads move points to a centre.
    pub(super) largest: Block,
    /// What norms were taken about, for each batch; the origin where there is none.
    pub(super) centres: Option<Block>,
}

impl Job<'_> {
    /// Loads and launches all kernels of the call.
    pub(super) fn launch(&self, cuda: &Cuda, session: &Session<'_>) -> Result<()> {
        let course = Course::new(self.request, self.steps());
        let all = self.load(cuda, &course)?;
        self.launch_forms(cuda, session, &course, all)?;
        course.end(cuda, self.name)
    }

    /// Steps of the longest of the forms that may be launched.
    fn steps(&self) -> f64 {
        let steps = |plan: &Plan<'_>| self.sizes.pairs() * cost::steps(plan);
        let expanded = self.expanded.as_ref().map_or(0.0, |expanded| steps(&expanded.plan));
        self.as_written().map(steps).sum::<f64>().max(expanded)
    }

    /// Loads kernels before anything is written, several at the same time where they are to be compiled. Unless the work
    /// is long, those of the form that data seldom ask for are compiled while the call goes on. Who needs them waits for
    /// them, and if they do not compile is told so when the other form has written. Returns whether all are loaded.
    fn load(&self, cuda: &Cuda, course: &Course<'_>) -> Result<bool> {
        let first = self.expanded.iter().map(|expanded| &expanded.plan);
        let mut missing: Vec<Missing<'_>> = Vec::new();
        for (place, plan) in first.chain(self.as_written()).enumerate() {
            let behind = place > 0 && self.expanded.is_some() && !course.is_long();
            for unit in self.units(plan) {
                let key = key::of(plan, unit);
                // Two plans may share what joins their states.
                if !cuda.is_loaded(&key) && missing.iter().all(|other| other.key != key) {
                    missing.push(Missing { plan, unit, key, behind });
                }
            }
        }
        if missing.is_empty() {
            return Ok(true);
        }
        missing.sort_by_key(|it| it.unit.turn(it.plan));
        let (behind, now): (Vec<_>, Vec<_>) = missing.into_iter().partition(|it| it.behind);
        let all = behind.is_empty();
        let load = |it: &Missing<'_>| {
            cuda.module(self.name, &it.key, || print::source(it.plan, it.unit)).map(drop)
        };
        std::thread::scope(|scope| {
            let spawn =
                |other| std::thread::Builder::new().spawn_scoped(scope, move || load(other));
            let (last, others) = now.split_last().unzip();
            let others: Vec<_> =
                others.into_iter().flatten().map(|other| (other, spawn(other))).collect();
            for it in behind {
                cuda.module_behind(it.key, print::source(it.plan, it.unit)?)?;
            }
            last.map_or(Ok(()), load)?;
            // Whoever compiles may not panic; where no thread is to be had, this one compiles.
            others.into_iter().try_for_each(|(other, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| load(other)),
                Err(_) => load(other),
            })
        })?;
        Ok(all)
    }

    /// The kernels of a plan that are launched. Where blocks choose for themselves nothing is measured before.
    pub(super) fn units(&self, plan: &Plan<'_>) -> impl Iterator<Item = Unit> + use<> {
        let by_block = self.by_block;
        Unit::of(plan).filter(move |unit| !(by_block && *unit == Unit::Measure))
    }

    /// The plans of the formula as it is written, one for each part.
    pub(super) fn as_written(&self) -> impl Iterator<Item = &Plan<'_>> {
        [&self.direct].into_iter().chain(&self.others)
    }

    pub(super) fn module(&self, cuda: &Cuda, plan: &Plan<'_>, unit: Unit) -> Result<Arc<Module>> {
        cuda.module(self.name, &key::of(plan, unit), || print::source(plan, unit))
    }

    /// Launches the forms, or the one that is chosen. `all` says that the kernels of both are loaded.
    fn launch_forms(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        course: &Course<'_>,
        all: bool,
    ) -> Result<()> {
        let Some(expanded) = &self.expanded else {
            return self.launch_written(cuda, session, Choice::made(0.0), course);
        };
        let limit = expanded.limit;
        if self.by_block {
            let plans = [&expanded.plan, &self.direct];
            return self.launch_plans(
                cuda,
                session,
                &plans,
                Choice::made(limit),
                Share::WHOLE,
                course,
            );
        }
        let measured = self.measure(cuda, session, expanded)?;
        let choice = Choice { measured: measured.largest.address, ..Choice::made(limit) };
        let launch = || match &measured.centres {
            Some(centres) => {
                self.launch_wide(cuda, session, expanded, choice, centres.address, course)
            }
            None => {
                self.launch_plans(cuda, session, &[&expanded.plan], choice, Share::WHOLE, course)
            }
        };
        if all && !course.is_long() {
            launch()?;
            return self.launch_written(cuda, session, choice, course);
        }
        if self.allows(cuda, choice)? {
            launch()?;
            if !expanded.plan.may_give_up() || self.allows(cuda, choice)? {
                return Ok(());
            }
            course.begin_anew();
        }
        self.launch_written(cuda, session, Choice::made(limit), course)
    }

    /// Whether the data allow the expanded form, by what was measured and by what it found since, when that is done.
    pub(super) fn allows(&self, cuda: &Cuda, choice: Choice) -> Result<bool> {
        let [x, y, gave_up, _] = largest(cuda, self.name, choice.measured)?;
        Ok(x <= choice.limit && y <= choice.limit && gave_up == 0.0)
    }

    /// Launches the formula as it is written, part by part.
    fn launch_written(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        choice: Choice,
        course: &Course<'_>,
    ) -> Result<()> {
        self.as_written().enumerate().try_for_each(|(k, plan)| {
            let share = Share::WHOLE.part(k, 1 + self.others.len());
            self.launch_plans(cuda, session, &[plan], choice, share, course)
        })
    }

    /// The largest norms of the data, if there is a choice that depends on them, and whether they are about a centre, so
    /// that they count for more.
    pub(super) fn norms(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
    ) -> Result<Option<([f64; 2], bool)>> {
        let Some(expanded) = &self.expanded else { return Ok(None) };
        let measured = self.measure(cuda, session, expanded)?;
        let [x, y, _, moved] = largest(cuda, self.name, measured.largest.address)?;
        Ok(Some(([x, y], moved != 0.0)))
    }

    /// Launches the kernels that measure the largest norms, and before them the one that finds centres, if any.
    fn measure(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        expanded: &Expanded<'_>,
    ) -> Result<Measured> {
        let plan = &expanded.plan;
        let largest = cuda.allocate_zeroed(4 * size_of::<f64>())?;
        let centres = match plan.tiling.wide {
            Some(_) => Some(self.centres(cuda, session, expanded)?),
            None => None,
        };
        match &centres {
            Some(centres) if plan.sections.by_tiles() => {
                self.measure_wide(cuda, session, expanded, [largest.address, centres.address])?;
            }
            _ if expanded.square().is_some() => {
                self.measure_narrow(cuda, session, plan, largest.address)?;
            }
            _ => {}
        }
        Ok(Measured { largest, centres })
    }

    /// Launches the kernel that measures norms as threads compute them.
    fn measure_narrow(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        plan: &Plan<'_>,
        largest: Address,
    ) -> Result<()> {
        let module = self.module(cuda, plan, Unit::Measure)?;
        let args = Args::new()
            .bytes(&self.first_nest(plan).encode(Width::Wide))
            .bytes(&self.inputs(session, plan))
            .bytes(&self.shape(plan.cut, [0, 0]))
            .pointer(largest);
        let most = 8 * self.sizes.multiprocessors;
        let blocks = (self.sizes.m + self.sizes.n).div_ceil(4 * MEASURE_THREADS).min(most);
        let batches = self.sizes.batches.min((most / blocks).max(1));
        let grid = launch::grid(self.name, [blocks, batches], MEASURE_THREADS)?;
        let function = cuda.function(self.name, &module, c"measure")?;
        // SAFETY: the source declares these arguments; rows are those of checked layouts, and the
        // block has room for four numbers.
        unsafe { cuda.launch(self.name, function, grid, args) }
    }
}

/// Waits for `measure`, and reads the four numbers that it wrote.
fn largest(cuda: &Cuda, name: &str, measured: Address) -> Result<[f64; 4]> {
    let mut bytes = [0; 32];
    cuda.copy_out(name, measured, &mut bytes)?;
    let number = |at: usize| {
        bytes[at..at + 8].iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
    };
    Ok([0, 8, 16, 24].map(|at| f64::from_bits(number(at))))
}
