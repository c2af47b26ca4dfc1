//! How a call is timed, and what is kept of several rounds.

use std::time::Instant;

/// Seconds for one call, over as many as fill `length` seconds, after one that warms up.
pub(crate) fn window(length: f64, call: &mut dyn FnMut()) -> f64 {
    call();
    let start = Instant::now();
    call();
    let once = start.elapsed().as_secs_f64();
    let times = (length / once.max(1e-9)) as u32;
    if times < 2 {
        return once;
    }
    let start = Instant::now();
    (0..times).for_each(|_| call());
    start.elapsed().as_secs_f64() / f64::from(times)
}

/// The times of one contestant, a round each, in seconds for a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, seconds: f64) {
        self.0.push(seconds);
    }

    /// Adds the rounds of another sitting.
    pub(crate) fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    /// The shortest: what the work takes when nothing disturbs it.
    pub(crate) fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The one in the middle.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    pub(crate) fn get(&self, by_median: bool) -> f64 {
        if by_median { self.median() } else { self.best() }
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn keeps_the_best_and_the_median() {
        let times = Times(vec![3.0, 1.0, 2.0]);
        assert_eq!((times.best(), times.median(), times.get(true)), (1.0, 2.0, 2.0));
    }
}
