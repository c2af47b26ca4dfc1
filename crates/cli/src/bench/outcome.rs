//! What was measured for a row, and the verdict.

use super::clock::Times;
use super::rows::{LEVEL, Target};

/// Who ran the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// tilework, called from Rust.
    Ours,
    /// tilework, called from Python.
    OursFromPython,
    /// A library of Rust: shown, but no target refers to it.
    Rust,
    /// A library of Python: what targets refer to.
    Python,
}

/// One contestant's times.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) times: Times,
}

/// The name of tilework called from Python.
const OURS_FROM_PYTHON: &str = "tilework-python";

impl Contestant {
    pub(crate) fn new(name: &str, side: Side) -> Contestant {
        Contestant { name: name.to_owned(), side, times: Times::default() }
    }

    /// A contestant of the Python side.
    pub(crate) fn from_python(name: &str) -> Contestant {
        let ours = name == OURS_FROM_PYTHON;
        Contestant::new(name, if ours { Side::OursFromPython } else { Side::Python })
    }
}

/// A row's times.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) group: String,
    pub(crate) row: String,
    pub(crate) target: Target,
    pub(crate) contestants: Vec<Contestant>,
    /// The machine's own time for the work.
    pub(crate) limit: Times,
    /// Whether that is a limit of memory.
    pub(crate) memory_bound: bool,
    /// What measured it: see `kept`. Empty for rows that were measured elsewhere.
    pub(crate) build: String,
    /// Seconds that a round of all contestants took; 0 where nobody knows.
    pub(crate) round: f64,
}

/// Of the limit of memory: enough, whatever the peers do.
const ENOUGH_OF_MEMORY: f64 = 0.9;

/// Whether a row reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Miss,
    /// No peer that a target refers to was there.
    NotChecked,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Miss => "MISS",
            Verdict::NotChecked => "not checked",
        }
    }
}

impl Outcome {
    fn seconds(&self, side: Side) -> Option<f64> {
        let found = self.contestants.iter().find(|contestant| contestant.side == side)?;
        Some(found.times.get(self.target.by_median))
    }

    /// Our time, called from where the peers of targets are called from if we were.
    pub(crate) fn ours(&self) -> f64 {
        let from_python = self.seconds(Side::OursFromPython);
        from_python.or(self.seconds(Side::Ours)).unwrap_or(f64::INFINITY)
    }

    /// A contestant's time over ours, called from the same language: above 1 we are faster.
    pub(crate) fn ratio(&self, contestant: &Contestant) -> f64 {
        let ours = match contestant.side {
            Side::Ours | Side::Rust => self.seconds(Side::Ours).unwrap_or(f64::INFINITY),
            Side::OursFromPython | Side::Python => self.ours(),
        };
        contestant.times.get(self.target.by_median) / ours
    }

    /// Adds the rounds of another sitting: contestants that were there in both.
    pub(crate) fn add(&mut self, other: Outcome) {
        for theirs in other.contestants {
            if let Some(ours) = self.contestants.iter_mut().find(|ours| ours.name == theirs.name) {
                ours.times.extend(theirs.times);
            }
        }
        self.limit.extend(other.limit);
    }

    /// The ratio to the better of the peers that targets refer to.
    pub(crate) fn worst_ratio(&self) -> Option<f64> {
        let judges = self.contestants.iter().filter(|other| other.side == Side::Python);
        judges.map(|judge| self.ratio(judge)).min_by(f64::total_cmp)
    }

    /// The share of the machine's limit that we reach, if one is known.
    pub(crate) fn share(&self) -> Option<f64> {
        let limit = self.limit.get(self.target.by_median);
        limit.is_finite().then(|| limit / self.ours())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if self.memory_bound && self.share().is_some_and(|share| share >= ENOUGH_OF_MEMORY) {
            return Verdict::Pass;
        }
        let Some(ratio) = self.worst_ratio() else { return Verdict::NotChecked };
        // Whoever is level with the best peer has its share of the limit.
        let near_limit = self
            .target
            .share
            .is_none_or(|least| ratio >= LEVEL || self.share().is_some_and(|share| share >= least));
        if ratio >= self.target.ratio && near_limit { Verdict::Pass } else { Verdict::Miss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(times: &[(&str, Side, f64)], limit: Option<f64>) -> Outcome {
        let contestants = times.iter().map(|(name, side, seconds)| {
            let mut contestant = Contestant::new(name, *side);
            contestant.times.push(*seconds);
            contestant
        });
        let mut outcome = Outcome {
            group: "group".into(),
            row: "row".into(),
            target: 1.5.into(),
            contestants: contestants.collect(),
            limit: Times::default(),
            memory_bound: true,
            build: String::new(),
            round: 0.0,
        };
        if let Some(limit) = limit {
            outcome.limit.push(limit);
        }
        outcome
    }

    #[test]
    fn the_better_peer_from_python_decides() {
        let sides =
            [("tilework", Side::Ours, 1.0), ("ndarray", Side::Rust, 0.1), ("a", Side::Python, 9.0)];
        assert_eq!(outcome(&sides, None).verdict(), Verdict::Pass);
        let better = [&sides[..], &[("b", Side::Python, 1.4)]].concat();
        assert_eq!(outcome(&better, None).verdict(), Verdict::Miss);
        assert_eq!(outcome(&better, Some(0.95)).verdict(), Verdict::Pass);
        assert_eq!(outcome(&sides[..2], None).verdict(), Verdict::NotChecked);
    }

    #[test]
    fn a_share_of_the_limit_or_the_best_peers_is_asked_for() {
        let verdict = |peer: f64, limit: f64| {
            let sides = [("tilework", Side::Ours, 1.0), ("a", Side::Python, peer)];
            let target = Target { share: Some(0.8), ..0.5.into() };
            Outcome { target, memory_bound: false, ..outcome(&sides, Some(limit)) }.verdict()
        };
        assert_eq!(verdict(0.6, 0.85), Verdict::Pass);
        assert_eq!(verdict(0.6, 0.7), Verdict::Miss);
        assert_eq!(verdict(0.98, 0.7), Verdict::Pass);
        assert_eq!(verdict(0.4, 0.9), Verdict::Miss);
    }

    #[test]
    fn rounds_of_several_sittings_count_together() {
        let sitting = |ours: f64, peer: f64, limit: f64| {
            outcome(&[("tilework", Side::Ours, ours), ("a", Side::Python, peer)], Some(limit))
        };
        let mut row = sitting(2.0, 2.5, 0.5);
        assert_eq!(row.verdict(), Verdict::Miss);
        // The peer's better round stays, and the better limit.
        row.add(sitting(1.6, 3.0, 1.0));
        assert_eq!((row.worst_ratio(), row.share()), (Some(2.5 / 1.6), Some(0.5 / 1.6)));
        assert_eq!(row.verdict(), Verdict::Pass);
    }

    #[test]
    fn calls_from_python_are_compared_with_ours_from_python() {
        let sides = [
            ("tilework", Side::Ours, 1.0),
            ("tilework-python", Side::OursFromPython, 2.0),
            ("a", Side::Python, 2.0),
            ("ndarray", Side::Rust, 2.0),
        ];
        let outcome = outcome(&sides, None);
        assert_eq!(outcome.ratio(&outcome.contestants[2]), 1.0);
        assert_eq!(outcome.ratio(&outcome.contestants[3]), 2.0);
    }
}
