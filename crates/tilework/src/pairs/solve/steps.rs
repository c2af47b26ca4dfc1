//! The steps of conjugate gradients, and what is left over after them. Called by `conjugate_gradient`,
//! which decides when to go on.

use tilework_error::{Error, Result};

use super::{NOT_FINITE, NOT_POSITIVE, OUT_OF_STEPS, ROUNDING, System, or_one};
use crate::array::Array;

/// How far the steps have come.
///
/// `residual` is what the steps say is left of the right-hand sides. Rounding adds up in it, unlike in
/// that of [`State::rest`], which takes a product of its own.
pub(super) struct State {
    x: Array,
    residual: Array,
    /// Where the next step goes.
    direction: Array,
    /// The squared length of each system's residual.
    square: Array,
    /// What `square` is to come down to.
    limit: Array,
    pub(super) iterations: usize,
    /// The progress that was told, which never goes back.
    done: f64,
    /// The first solution and its residual, once another is looked for ([`State::improve`]).
    pub(super) first: Option<(Array, f64)>,
}

/// What `x` truly leaves of the right-hand sides.
pub(super) struct Rest {
    residual: Array,
    /// The squared length of each system's residual.
    square: Array,
    /// The largest length, relative to the right-hand side of its system.
    pub(super) relative: f64,
}

impl State {
    /// Before the first step: x is zero, and all of the right-hand sides is left.
    pub(super) fn new(system: &System<'_>) -> Result<State> {
        let (rows, tol) = (&system.rows, system.solve.tol);
        Ok(State {
            x: Array::zeros_on(rows.device(), rows.shape(), rows.dtype())?,
            residual: rows.clone(),
            direction: rows.clone(),
            square: system.scale.clone(),
            limit: (&system.scale * (tol * tol))?,
            iterations: 0,
            done: 0.0,
            first: None,
        })
    }

    /// Takes steps until no residual is above its limit, or says why there are no more.
    pub(super) fn iterate(&mut self, system: &System<'_>) -> Result<Option<&'static str>> {
        loop {
            let open = self.square.greater(&self.limit)?;
            if !open.any(())?.item::<bool>()? {
                // NaN is greater than nothing, and good for nothing.
                let finite = self.square.isfinite()?.all(())?.item::<bool>()?;
                return Ok((!finite).then_some(NOT_FINITE));
            }
            if self.iterations == system.most {
                return Ok(Some(OUT_OF_STEPS));
            }
            self.tell(system)?;
            if !self.step(system, &open)? {
                // After many steps a curvature that is lost is lost in rounding.
                return Ok(Some(if self.first.is_none() { NOT_POSITIVE } else { ROUNDING }));
            }
        }
    }

    /// Takes one step, or says false: along the direction of an open system, one that is not done, the
    /// matrix has no positive curvature.
    fn step(&mut self, system: &System<'_>, open: &Array) -> Result<bool> {
        let image = self.image(system, &self.direction)?;
        let curvature = system.columns.dot(&self.direction, &image)?;
        // A NaN is not greater than 0 and not less: it is lost, too.
        let lost = open.logical_and(&curvature.greater(0.0)?.logical_not()?)?;
        if lost.any(())?.item::<bool>()? {
            return Ok(false);
        }
        // A ratio of zero leaves the systems that are done where they are.
        let ratio = |a: &Array, b: &Array| {
            crate::select(open, &(a / &or_one(b)?)?, 0.0)?.to_dtype(system.wide)
        };
        let step = ratio(&self.square, &curvature)?;
        self.x = (&self.x + &(&step * &self.direction)?)?;
        self.residual = (&self.residual - &(&step * &image)?)?;
        let next = system.columns.dot(&self.residual, &self.residual)?;
        let keep = ratio(&next, &self.square)?;
        self.direction = (&self.residual + &(&keep * &self.direction)?)?;
        self.square = next;
        self.iterations += 1;
        Ok(true)
    }

    /// Tells the progress, and gives an error if the work is to be stopped.
    fn tell(&mut self, system: &System<'_>) -> Result<()> {
        let Some(progress) = system.options.progress else { return Ok(()) };
        let done = system.relative(&self.square)?.ln() / system.solve.tol.ln();
        self.done = self.done.max(done.clamp(0.0, 1.0));
        match progress.goes_on(self.done) {
            true => Ok(()),
            false => Err(Error::interrupted("solve", "stopped on request")),
        }
    }

    /// The image of `v`; what its product tells of itself is no progress of the whole.
    fn image(&self, system: &System<'_>, v: &Array) -> Result<Array> {
        system.options.part(self.done..self.done, |options| system.image(v, options))
    }

    /// What is left of the right-hand sides, by a product with `x`.
    pub(super) fn rest(&self, system: &System<'_>) -> Result<Rest> {
        let residual = match self.iterations {
            0 => self.residual.clone(),
            _ => (&system.rows - &self.image(system, &self.x)?)?,
        };
        let square = system.columns.dot(&residual, &residual)?;
        let relative = system.relative(&square)?;
        Ok(Rest { residual, square, relative })
    }

    /// Begins once more from what is left, a little beyond the tolerance so that the truth meets it.
    pub(super) fn improve(&mut self, rest: Rest) -> Result<()> {
        self.first = Some((self.x.clone(), rest.relative));
        self.limit = (&self.limit * 0.25)?;
        self.direction = rest.residual.clone();
        self.residual = rest.residual;
        self.square = rest.square;
        Ok(())
    }

    /// Why a solution whose residual `truth` is above the tolerance is not good enough, if it is not;
    /// `stopped` is why there were no more steps.
    pub(super) fn failure(
        &self,
        system: &System<'_>,
        stopped: Option<&'static str>,
        truth: f64,
    ) -> Result<Option<&'static str>> {
        // Steps beyond a first solution can do it no harm.
        let best = self.first.as_ref().map_or(truth, |(_, before)| before.min(truth));
        let is_solved = self.first.is_some() || stopped.is_none();
        if is_solved && best <= system.allowed(&self.x)? {
            return Ok(None);
        }
        let why = stopped.unwrap_or(ROUNDING);
        Ok(Some(if best.is_finite() { why } else { NOT_FINITE }))
    }

    /// The better of the first solution and the last, whose residual is `truth`, with its residual.
    pub(super) fn best(self, truth: f64) -> (Array, f64) {
        match self.first {
            Some((first, before)) if truth.is_nan() || truth > before => (first, before),
            _ => (self.x, truth),
        }
    }
}
