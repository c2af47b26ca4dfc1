//! Figures into a page of documentation: what stands between `<!-- bench NAME -->` and
//! `<!-- end bench -->` is written here, everything else by hand.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::outcome::{Outcome, Verdict};
use super::report::{figure, milliseconds};

/// The name of the part that says what was measured on what, and how many rows pass.
const SUMMARY: &str = "summary";

/// Writes the tables of all groups that the page has a place for, and the summary of them; `sources`
/// says which ones were measured, or nothing.
pub(crate) fn write(
    path: &Path,
    outcomes: &[Outcome],
    contest: &str,
    sources: &str,
) -> io::Result<()> {
    let page = read(path)?;
    let has_place =
        |outcome: &&Outcome| page.lines().any(|line| name(line) == Some(&outcome.group));
    let outcomes: Vec<&Outcome> = outcomes.iter().filter(has_place).collect();
    let mut parts = vec![(SUMMARY.to_owned(), summary(&outcomes, contest, sources))];
    let mut groups: Vec<&str> = outcomes.iter().map(|outcome| outcome.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let rows = outcomes.iter().copied().filter(|outcome| outcome.group == group);
        parts.push((group.to_owned(), table(rows)));
    }
    put(path, &parts)
}

fn named(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| named(path, error))
}

/// The name of the part that begins with this line.
fn name(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- bench ")?.strip_suffix(" -->")
}

/// Writes parts by name into a page.
pub(crate) fn put(path: &Path, parts: &[(String, String)]) -> io::Result<()> {
    let page = fill(&read(path)?, parts).map_err(|error| named(path, error))?;
    fs::write(path, page)
}

fn summary(outcomes: &[&Outcome], contest: &str, sources: &str) -> String {
    let judged = |outcome: &&&Outcome| outcome.verdict() != Verdict::NotChecked;
    let checked = outcomes.iter().filter(judged).count();
    let misses: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.verdict() == Verdict::Miss)
        .map(|outcome| format!("{} ({})", outcome.row, figure(outcome.worst_ratio())))
        .collect();
    let named =
        if misses.is_empty() { String::new() } else { format!(" Not: {}.", misses.join(", ")) };
    let builds: std::collections::BTreeSet<&str> = outcomes
        .iter()
        .map(|outcome| outcome.build.as_str())
        .filter(|build| !build.is_empty())
        .collect();
    let builds = if builds.len() == 1 { "one build" } else { "several builds" };
    let pass = checked - misses.len();
    let sources = if sources.is_empty() { String::new() } else { format!("{sources}; ") };
    format!(
        "{}; {sources}{contest}; rows of {builds}. **{pass} of {checked} rows pass.**{named}\n",
        date(SystemTime::now())
    )
}

/// The rows of a group: our time, called as the peers are and from Rust, and the ratios.
fn table<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let mut text = String::from(
        "| row | ours ms | from Rust ms | NumPy | PyTorch | limit | target | |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let find = |name: &str| outcome.contestants.iter().find(|other| other.name == name);
        let ratio = |name: &str| {
            find(name).map_or(String::new(), |peer| format!("{:.2}", outcome.ratio(peer)))
        };
        let native = find("tilework").map(|ours| ours.times.get(outcome.target.by_median));
        let verdict = match outcome.verdict() {
            Verdict::Miss => "**miss**",
            other => other.word(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {verdict} |",
            outcome.row,
            milliseconds(outcome.ours()),
            native.map_or(String::new(), milliseconds),
            ratio("numpy"),
            ratio("torch"),
            outcome.share().map_or(String::new(), |share| format!("{share:.2}")),
            outcome.target.ratio,
        );
    }
    text
}

/// The page with its named parts replaced; what has no name in it is left out.
fn fill(page: &str, parts: &[(String, String)]) -> Result<String, String> {
    let mut filled = String::with_capacity(page.len());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let Some(name) = name(line) else { continue };
        let part = parts.iter().find(|part| part.0 == name);
        if let Some((_, text)) = part {
            filled.push_str(text);
        }
        loop {
            let old = lines.next().ok_or_else(|| format!("no end of the part {name:?}"))?;
            let end = old == "<!-- end bench -->";
            if part.is_none() || end {
                filled.push_str(old);
                filled.push('\n');
            }
            if end {
                break;
            }
        }
    }
    Ok(filled)
}

/// A day in words.
fn date(time: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut left = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let days = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= days[month] {
        left -= days[month];
        month += 1;
    }
    format!("{} {} {year}", left + 1, MONTHS[month])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::parse;
    use std::time::Duration;

    #[test]
    fn parts_are_replaced_and_the_rest_stays() {
        let page = "a\n<!-- bench x -->\nold\n<!-- end bench -->\nb\n\
                    <!-- bench y -->\nkept\n<!-- end bench -->\n";
        let parts = [("x".to_owned(), "new\n".to_owned())];
        let filled = fill(page, &parts).unwrap();
        assert_eq!(filled, page.replace("old", "new"));
        assert_eq!(fill(&filled, &parts).unwrap(), filled);
        assert!(fill("<!-- bench x -->\nold\n", &parts).is_err());
    }

    #[test]
    fn tables_come_from_the_figures() {
        let text = "head\ng,a,tilework,2,2,1.5\ng,a,numpy,6,6,1.5\ng,a,torch,4,4,1.5\n\
                    g,b,tilework,2,2,1.5\ng,b,torch,2.5,2.5,1.5\n";
        let outcomes = parse(text).unwrap();
        let table = table(outcomes.iter());
        assert!(table.contains("| a | 2.00 | 2.00 | 3.00 | 2.00 |  | 1.5 | pass |"), "{table}");
        assert!(table.contains("| b | 2.00 | 2.00 |  | 1.25 |  | 1.5 | **miss** |"), "{table}");
        let summary = summary(&outcomes.iter().collect::<Vec<_>>(), "two threads", "commit abc");
        assert!(summary.contains("; commit abc; two threads; "), "{summary}");
        assert!(summary.contains("**1 of 2 rows pass.** Not: b (1.25)."), "{summary}");
    }

    #[test]
    fn days_have_names() {
        let day = |days: u64| date(UNIX_EPOCH + Duration::from_secs(86_400 * days + 5));
        let days = [0, 59, 11_016, 11_017, 20_772].map(day);
        let named = [
            "1 January 1970",
            "1 March 1970",
            "29 February 2000",
            "1 March 2000",
            "15 November 2026",
        ];
        assert_eq!(days, named);
    }
}
