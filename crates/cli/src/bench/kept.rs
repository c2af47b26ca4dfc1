//! What has been measured already: `bench.csv` of the folder, written anew after every row, so that
//! a run that was interrupted goes on where it ended, and one of a few rows leaves the others alone.
//!
//! A row that this very build measured, against the same peers, is kept; one of another build stays
//! in the file until it is measured again. Called by the benchmark alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::outcome::Outcome;
use super::rows::Row;
use super::{report, work};

/// The file, and what it holds.
pub(crate) struct Kept {
    path: PathBuf,
    outcomes: Vec<Outcome>,
}

/// Says which build measured against whom: eight digits that change with either.
pub(crate) fn stamp(contest: &str) -> io::Result<String> {
    let program = fs::read(std::env::current_exe()?)?;
    // FNV-1a, eight bytes at a time: nothing is kept from anybody.
    let mix = |hash: u64, chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3)
    };
    let chunks = program.chunks(8).chain(contest.as_bytes().chunks(8));
    let hash = chunks.fold(0xcbf2_9ce4_8422_2325, mix);
    Ok(format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff)))
}

/// Seconds of a round of a row that nobody has measured yet: the mean of the table.
const ROUND: f64 = 0.4;

impl Kept {
    /// What the folder's file has; nothing, if there is none.
    pub(crate) fn read(folder: &Path, table: &[Row]) -> io::Result<Kept> {
        let path = folder.join("bench.csv");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        let mut outcomes = report::parse(&text).map_err(named)?;
        for outcome in &mut outcomes {
            // What the file does not say, the table does.
            if let Some(row) = table.iter().find(|row| row.name() == outcome.row) {
                outcome.target = row.target;
                outcome.memory_bound = work::need(row).is_some_and(|need| need.is_memory());
            }
        }
        Ok(Kept { path, outcomes })
    }

    /// The row, if the build of this stamp measured it.
    pub(crate) fn of_build(&self, name: &str, stamp: &str) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.row == name && outcome.build == stamp)
    }

    /// How long so many rounds of these rows take, by what a round of each took before.
    pub(crate) fn estimate(&self, rows: &[&Row], rounds: usize) -> Duration {
        let round = |row: &&Row| {
            let known = self.outcomes.iter().find(|outcome| outcome.row == row.name());
            known.map(|outcome| outcome.round).filter(|round| *round > 0.0).unwrap_or(ROUND)
        };
        Duration::from_secs_f64(rows.iter().map(round).sum::<f64>() * rounds as f64)
    }

    /// Puts outcomes in the place of those of the same rows, and writes the file.
    pub(crate) fn put(&mut self, measured: Vec<Outcome>) -> io::Result<()> {
        for outcome in measured {
            let same =
                |other: &&mut Outcome| other.row == outcome.row && other.group == outcome.group;
            match self.outcomes.iter_mut().find(same) {
                Some(old) => *old = outcome,
                None => self.outcomes.push(outcome),
            }
        }
        // Whoever is interrupted here has the old file or the new one.
        let new = self.path.with_extension("csv.new");
        report::csv(&mut io::BufWriter::new(fs::File::create(&new)?), &self.outcomes)?;
        fs::rename(new, &self.path)
    }

    /// All outcomes: those of the table in its order, group by group, then the others.
    pub(crate) fn in_order(mut self, table: &[Row]) -> Vec<Outcome> {
        let place = |outcome: &Outcome| {
            let row = table.iter().position(|row| row.name() == outcome.row);
            let group = table.iter().position(|row| row.group == outcome.group);
            (group.unwrap_or(usize::MAX), row.unwrap_or(usize::MAX))
        };
        self.outcomes.sort_by_key(place);
        self.outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(row: &str, build: &str, ms: f64) -> Outcome {
        let text = format!("head\ngemm-small,{row},tilework,{ms},{ms},1\n");
        let mut outcome = report::parse(&text).unwrap().remove(0);
        (outcome.build, outcome.round) = (build.to_owned(), 2.0);
        outcome
    }

    /// Rows come back from the file with what the table knows of them, and only those of the same
    /// build count as measured.
    #[test]
    fn what_was_measured_is_found_again() {
        let folder = std::env::temp_dir().join(format!("tilework-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let table = super::super::rows::rows();
        let (first, last) = (table[0].name(), table[table.len() - 1].name());
        let mut kept = Kept::read(&folder, &table).unwrap();
        assert_eq!(kept.estimate(&[&table[0]], 10), Duration::from_secs_f64(10.0 * ROUND));
        kept.put(vec![outcome(&last, "old", 3.0), outcome("x + x", "", 1.0)]).unwrap();
        kept.put(vec![outcome(&first, "new", 2.0)]).unwrap();
        kept.put(vec![outcome(&last, "new", 4.0)]).unwrap();
        let again = Kept::read(&folder, &table).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(again.of_build(&first, "old").is_none());
        assert!(again.of_build(&last, "new").is_some_and(|row| row.ours() == 4e-3));
        assert_eq!(again.estimate(&[&table[0]], 3), Duration::from_secs(6));
        let rows: Vec<String> =
            again.in_order(&table).into_iter().map(|outcome| outcome.row).collect();
        assert_eq!(rows, [first, last, "x + x".to_owned()]);
    }

    #[test]
    fn a_stamp_changes_with_the_peers() {
        assert_eq!(stamp("a").unwrap(), stamp("a").unwrap());
        assert_ne!(stamp("a").unwrap(), stamp("b").unwrap());
    }
}
