//! Outcomes for people (one table), for programs (CSV), and back from CSV: rows that another
//! program has measured join the table here.

use std::io::{self, Write};

use super::outcome::{Contestant, Outcome, Side};

/// The columns of the CSV, one line a contestant of a row. Whoever measures rows elsewhere and
/// wants them in the table writes the first six (times in milliseconds).
const COLUMNS: &str = "group,row,contestant,best_ms,median_ms,target,ratio,share_of_limit,verdict,\
                       build,round_s";

/// Peers with columns of their own in the table.
const PEERS: [&str; 4] = ["numpy", "torch", "matrixmultiply", "ndarray"];

/// Those of them that are called from Rust.
const RUST_PEERS: [&str; 2] = ["matrixmultiply", "ndarray"];

pub(crate) fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

/// Milliseconds with three digits that say something.
pub(crate) fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let digits = (2.0 - ms.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{ms:.digits$}")
}

/// The table, line by line as rows are measured: our time, the ratio to each peer, the target and
/// the verdict, the share of the limit.
pub(crate) struct Table {
    /// Of the column of names.
    wide: usize,
    group: String,
}

impl Table {
    /// Writes the head of a table for rows of these names.
    pub(crate) fn begin(out: &mut impl Write, names: &[String]) -> io::Result<Table> {
        let wide = names.iter().map(String::len).max().unwrap_or(0).max(3);
        writeln!(
            out,
            "{:wide$}  {:>9}  {:>11} {:>11}  {:>6}  {:<11} {:>14} {:>7}  {:>5}",
            "row", "ours ms", PEERS[0], PEERS[1], "target", "verdict", PEERS[2], PEERS[3], "limit"
        )?;
        Ok(Table { wide, group: String::new() })
    }

    /// Writes a headline between the rows, after which every group is named again.
    pub(crate) fn headline(&mut self, out: &mut impl Write, text: &str) -> io::Result<()> {
        self.group.clear();
        writeln!(out, "\n{text}")
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
        if outcome.group != self.group {
            self.group.clone_from(&outcome.group);
            writeln!(out, "-- {}", self.group)?;
        }
        let ratio = |name: &str| {
            let found = outcome.contestants.iter().find(|contestant| contestant.name == name);
            found.map(|contestant| outcome.ratio(contestant))
        };
        let judge = |name: &str| ratio(name).map_or("not checked".into(), |r| figure(Some(r)));
        writeln!(
            out,
            "{:wide$}  {:>9}  {:>11} {:>11}  {:>6.2}  {:<11} {:>14} {:>7}  {:>5}{}",
            outcome.row,
            milliseconds(outcome.ours()),
            judge(PEERS[0]),
            judge(PEERS[1]),
            outcome.target.ratio,
            outcome.verdict().word(),
            figure(ratio(PEERS[2])),
            figure(ratio(PEERS[3])),
            figure(outcome.share()),
            others(outcome),
            wide = self.wide,
        )?;
        out.flush()
    }
}

/// Peers without a column.
fn others(outcome: &Outcome) -> String {
    let named = |side: Side| matches!(side, Side::Python | Side::Rust);
    let others = outcome
        .contestants
        .iter()
        .filter(|contestant| named(contestant.side) && !PEERS.contains(&contestant.name.as_str()));
    others.map(|other| format!("  {} {:.2}", other.name, outcome.ratio(other))).collect()
}

/// The outcomes as CSV; the limit is a contestant of its own.
pub(crate) fn csv(out: &mut impl Write, outcomes: &[Outcome]) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")?;
    for outcome in outcomes {
        let (target, verdict) = (outcome.target.ratio, outcome.verdict().word());
        let share = outcome.share().map_or_else(String::new, |share| format!("{share:.3}"));
        let (build, round) = (&outcome.build, outcome.round);
        for contestant in &outcome.contestants {
            writeln!(
                out,
                "{},{},{},{:.6},{:.6},{target},{:.3},{share},{verdict},{build},{round:.2}",
                outcome.group,
                outcome.row,
                contestant.name,
                contestant.times.best() * 1e3,
                contestant.times.median() * 1e3,
                outcome.ratio(contestant),
            )?;
        }
        if outcome.limit.best().is_finite() {
            let (best, median) = (outcome.limit.best() * 1e3, outcome.limit.median() * 1e3);
            writeln!(
                out,
                "{},{},limit,{best:.6},{median:.6},{target},,,,{build},{round:.2}",
                outcome.group, outcome.row
            )?;
        }
    }
    Ok(())
}

/// Outcomes from CSV with at least the first six columns, lines of one row side by side. Names without
/// a meaning here are those of Python's contestants.
pub(crate) fn parse(text: &str) -> Result<Vec<Outcome>, String> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let wrong = |what: &str| format!("line {}: {what}: {line:?}", number + 1);
        let [group, row, name, best, median, target, ..] = fields[..] else {
            return Err(wrong("fewer than six columns"));
        };
        let seconds = |field: &str| {
            field
                .parse::<f64>()
                .map(|ms| ms / 1e3)
                .map_err(|_| wrong("not a number of milliseconds"))
        };
        let (best, median) = (seconds(best)?, seconds(median)?);
        if outcomes.last().is_none_or(|last| last.group != group || last.row != row) {
            let target = target.parse::<f64>().map_err(|_| wrong("not a target"))?;
            outcomes.push(Outcome {
                group: group.to_owned(),
                row: row.to_owned(),
                target: target.into(),
                contestants: Vec::new(),
                limit: super::clock::Times::default(),
                memory_bound: false,
                build: fields.get(9).map_or(String::new(), |&build| build.to_owned()),
                round: fields.get(10).and_then(|round| round.parse().ok()).unwrap_or(0.0),
            });
        }
        let Some(outcome) = outcomes.last_mut() else { continue };
        let times = if name == "limit" {
            &mut outcome.limit
        } else {
            let contestant = match name {
                "tilework" => Contestant::new(name, Side::Ours),
                _ if RUST_PEERS.contains(&name) => Contestant::new(name, Side::Rust),
                _ => Contestant::from_python(name),
            };
            outcome.contestants.push(contestant);
            match outcome.contestants.last_mut() {
                Some(contestant) => &mut contestant.times,
                None => continue,
            }
        };
        // Two of the median around the best have both again.
        [best, median, median].into_iter().for_each(|seconds| times.push(seconds));
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::outcome::Verdict;

    #[test]
    fn rows_measured_elsewhere_join() {
        let text = "group,row,contestant,best_ms,median_ms,target\n\
                    pairs,gauss,tilework,2,3,4\n\
                    pairs,gauss,pykeops,10,12,4\n\
                    calls,x + x,tilework,1,1,1\n";
        let outcomes = parse(text).unwrap();
        assert_eq!(outcomes.len(), 2);
        assert_eq!(outcomes[0].verdict(), Verdict::Pass);
        assert_eq!(outcomes[0].contestants[0].times.median(), 3e-3);
        assert_eq!(outcomes[1].verdict(), Verdict::NotChecked);
        let mut written = Vec::new();
        csv(&mut written, &outcomes).unwrap();
        let again = parse(&String::from_utf8(written).unwrap()).unwrap();
        assert_eq!(again[0].worst_ratio(), outcomes[0].worst_ratio());
        assert!(parse("head\na,b\n").unwrap_err().contains("line 2"));
    }

    #[test]
    fn the_table_says_what_was_not_checked() {
        let outcomes = parse("head\ncalls,x + x,tilework,1,1,1\n").unwrap();
        let mut text = Vec::new();
        let mut table = Table::begin(&mut text, &[]).unwrap();
        table.line(&mut text, &outcomes[0]).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("not checked"));
    }

    #[test]
    fn times_keep_three_digits() {
        let written = [1234.0, 12.34, 0.01234, 1.234e-5].map(|ms: f64| milliseconds(ms / 1e3));
        assert_eq!(written, ["1234", "12.3", "0.0123", "0.000012"]);
    }
}
