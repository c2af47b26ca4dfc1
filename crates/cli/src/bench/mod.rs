//! `tilework bench`: every row of the table against the peers that are installed and against the
//! limits of the machine.
//!
//! `rows` is the table, `work` what a row runs, `rust_peers` and `worker` the contestants from Rust
//! and Python, `limit` the machine itself. The contestants of a row run in turn, round after
//! round, since other work comes and goes on a machine; `outcome` judges, `report`, `chart` and
//! `page` show, and `kept` remembers, so that a run may be interrupted. Needs no Python; with `--peers` it starts one and asks it for NumPy's and PyTorch's times.

mod chart;
mod clock;
mod growth;
mod kept;
mod limit;
mod outcome;
mod page;
mod report;
mod rows;
mod rust_peers;
mod work;
mod worker;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clock::{Times, window};
use kept::Kept;
use limit::{Limit, Need};
use outcome::{Contestant, Outcome, Side, Verdict};
use report::Table;
use rows::Row;
use work::Call;
use worker::Worker;

/// Options of `tilework bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these groups (see --list).
    #[arg(long, value_delimiter = ',')]
    group: Vec<String>,
    /// Only rows whose name contains this.
    #[arg(long, default_value = "")]
    row: String,
    /// How often each contestant of a row is timed; the best counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Two rounds with short windows, and no array beyond 2^24 elements.
    #[arg(long)]
    quick: bool,
    /// The threads that every contestant may use.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Prints the rows with their groups and targets and ends.
    #[arg(long)]
    list: bool,
    /// Measures time against size in place of the rows.
    #[arg(long)]
    growth: bool,
    /// The script that runs NumPy and PyTorch: bench/peers.py.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// The Python for it.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// A folder of CSV files with rows that were measured elsewhere, to join the table.
    #[arg(long)]
    join: Option<PathBuf>,
    /// Where the CSV file and the charts go. Rows that this build has measured there are kept.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// Measures also the rows that this build has measured.
    #[arg(long)]
    again: bool,
    /// Measures nothing: shows all rows that the CSV file has, of whichever build.
    #[arg(long)]
    kept: bool,
    /// A page of documentation whose parts between `<!-- bench NAME -->` and `<!-- end bench -->`
    /// get the figures.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// What the page says about the sources that were measured, such as their commit.
    #[arg(long, default_value = "")]
    sources: String,
}

/// Seconds that a contestant is timed for in a round if its call is shorter.
const WINDOW: f64 = 0.01;

/// A pause before each contestant: threads of the last one may still be looking for work.
const PAUSE: Duration = Duration::from_millis(3);

/// Seconds of a call of a peer that is timed in one round only: a product of float16 takes NumPy six.
const PATIENCE: f64 = 1.0;

/// How often a row that misses is measured, the first time included. All rounds of all contestants
/// count together: what is unlucky in one sitting is so for whom it hits, and the next ones mend it.
const SITTINGS: usize = 3;

/// Runs the benchmark; the table goes to `out`, files to the folder of the options.
pub(crate) fn run(out: &mut impl Write, options: &Options) -> io::Result<()> {
    let chosen = choose(options);
    if options.list {
        for row in &chosen {
            let share =
                row.target.share.map_or(String::new(), |share| format!(",{share} of the limit"));
            writeln!(out, "{},{},{}{share}", row.group, row.name(), row.target.ratio)?;
        }
        return Ok(());
    }
    tilework::set_num_threads(options.threads);
    fs::create_dir_all(&options.out)?;
    let rounds = if options.quick { 2 } else { options.rounds.max(1) };
    let length = if options.quick { WINDOW / 4.0 } else { WINDOW };
    if options.growth {
        return grow(out, options, rounds, length);
    }
    let mut worker = match &options.peers {
        Some(script) => Some(Worker::start(&options.python, script, options.threads)?),
        None => None,
    };
    let contest = contest(options, worker.as_mut())?;
    let stamp = kept::stamp(&contest)?;
    let table = rows::rows();
    let mut kept = Kept::read(&options.out, &table)?;
    let is_kept =
        |kept: &Kept, row: &Row| !options.again && kept.of_build(&row.name(), &stamp).is_some();
    let left: Vec<&Row> = chosen.iter().filter(|row| !is_kept(&kept, row)).collect();
    head(out, &contest, rounds, options.kept, (&kept, chosen.len(), &left))?;
    let joined = join(options.join.as_deref())?;
    if options.kept {
        kept.put(joined)?;
        let outcomes = kept.in_order(&table);
        let names: Vec<String> = outcomes.iter().map(|outcome| outcome.row.clone()).collect();
        let mut lines = Table::begin(out, &names)?;
        outcomes.iter().try_for_each(|outcome| lines.line(out, outcome))?;
        return finish(out, options, &contest, &outcomes, &outcomes);
    }
    let names = chosen.iter().map(Row::name).chain(joined.iter().map(|other| other.row.clone()));
    let mut lines = Table::begin(out, &names.collect::<Vec<_>>())?;
    let mut shown = Vec::new();
    let mut measured = |row: &Row| -> io::Result<Outcome> {
        let started = Instant::now();
        let mut outcome = measure(row, worker.as_mut(), rounds, length)?;
        outcome.build.clone_from(&stamp);
        outcome.round = started.elapsed().as_secs_f64() / rounds as f64;
        Ok(outcome)
    };
    for row in &chosen {
        let outcome = match kept.of_build(&row.name(), &stamp).filter(|_| !options.again) {
            Some(outcome) => outcome.clone(),
            None => {
                let outcome = measured(row)?;
                kept.put(vec![outcome.clone()])?;
                outcome
            }
        };
        lines.line(out, &outcome)?;
        shown.push(outcome);
    }
    let missed = |outcome: &Outcome| outcome.verdict() == Verdict::Miss;
    let sittings = if options.quick { 1 } else { SITTINGS };
    for _ in 1..sittings {
        if !shown.iter().any(missed) {
            break;
        }
        lines.headline(out, "measured again: rows that miss, with all their rounds so far")?;
        for (row, outcome) in chosen.iter().zip(&mut shown).filter(|pair| missed(pair.1)) {
            outcome.add(measured(row)?);
            kept.put(vec![outcome.clone()])?;
            lines.line(out, outcome)?;
        }
    }
    kept.put(joined.clone())?;
    for outcome in joined {
        lines.line(out, &outcome)?;
        shown.push(outcome);
    }
    finish(out, options, &contest, &shown, &kept.in_order(&table))
}

/// Says how many of the shown rows pass; charts and the page are of all that are known.
fn finish(
    out: &mut impl Write,
    options: &Options,
    contest: &str,
    shown: &[Outcome],
    all: &[Outcome],
) -> io::Result<()> {
    summary(out, shown)?;
    write_charts(&options.out, all)?;
    match &options.markdown {
        Some(path) => page::write(path, all, contest, &options.sources),
        None => Ok(()),
    }
}

/// The outcomes of rows that were measured elsewhere: all CSV files of a folder.
fn join(folder: Option<&Path>) -> io::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let Some(folder) = folder else { return Ok(outcomes) };
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    paths.sort();
    for path in paths {
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        outcomes.extend(report::parse(&fs::read_to_string(&path)?).map_err(named)?);
    }
    Ok(outcomes)
}

/// The rows that the options name.
fn choose(options: &Options) -> Vec<Row> {
    let wanted = |row: &Row| {
        let group =
            options.group.is_empty() || options.group.iter().any(|group| group == row.group);
        let small = !options.quick || row.shape.iter().product::<usize>() <= 1 << 24;
        group && (small || row.shape.len() == 3) && row.name().contains(&options.row)
    };
    rows::rows().into_iter().filter(wanted).collect()
}

/// What is measured with whom: rows of another contest are measured again.
fn contest(options: &Options, worker: Option<&mut Worker>) -> io::Result<String> {
    let peers = match worker {
        Some(worker) => worker.versions()?,
        None => "Python's peers not checked".to_owned(),
    };
    let quick = if options.quick { ", quick" } else { "" };
    Ok(format!(
        "tilework {}, {} threads{quick}; {peers}",
        env!("CARGO_PKG_VERSION"),
        options.threads
    ))
}

/// What is measured, how long that takes, and what the columns mean.
fn head(
    out: &mut impl Write,
    contest: &str,
    rounds: usize,
    nothing: bool,
    (kept, chosen, left): (&Kept, usize, &[&Row]),
) -> io::Result<()> {
    writeln!(out, "{contest}; {rounds} rounds")?;
    if !nothing {
        let minutes = kept.estimate(left, rounds).as_secs_f64() / 60.0;
        writeln!(
            out,
            "{chosen} rows, of which {} are kept from a run before; about {minutes:.1} minutes",
            chosen - left.len()
        )?;
    }
    writeln!(out, "a ratio is the peer's time over ours; limit is the machine's time over ours")
}

/// All contestants of a row in turn, round after round.
fn measure(
    row: &Row,
    mut worker: Option<&mut Worker>,
    rounds: usize,
    length: f64,
) -> io::Result<Outcome> {
    let native = || -> tilework::Result<Vec<(Contestant, Call)>> {
        let mut calls = vec![(Contestant::new("tilework", Side::Ours), work::ours(row)?)];
        for (name, call) in rust_peers::peers(row)? {
            calls.push((Contestant::new(name, Side::Rust), call));
        }
        Ok(calls)
    };
    let mut native = native().map_err(io::Error::other)?;
    let need = work::need(row);
    let mut limit = need.map(Limit::new);
    let mut limits = Times::default();
    let mut python = Vec::new();
    if let Some(worker) = &mut worker {
        python.extend(worker.row(&row.name())?.iter().map(|name| Contestant::from_python(name)));
    }
    for _ in 0..rounds {
        for (contestant, call) in &mut native {
            std::thread::sleep(PAUSE);
            let mut failed = None;
            let seconds = window(length, &mut || failed = call().err().or(failed.take()));
            if let Some(error) = failed {
                return Err(io::Error::other(error));
            }
            contestant.times.push(seconds);
        }
        if let Some(worker) = &mut worker {
            let is_slow = |times: &Times| (PATIENCE..f64::INFINITY).contains(&times.best());
            for contestant in python.iter_mut().filter(|peer| !is_slow(&peer.times)) {
                std::thread::sleep(PAUSE);
                contestant.times.push(worker.time(&contestant.name, length)?);
            }
        }
        if let Some(seconds) = limit.as_mut().and_then(|limit| limit.time(length)) {
            limits.push(seconds);
        }
    }
    let contestants = native.into_iter().map(|(contestant, _)| contestant).chain(python).collect();
    Ok(Outcome {
        group: row.group.to_owned(),
        row: row.name(),
        target: row.target,
        contestants,
        limit: limits,
        memory_bound: need.is_some_and(Need::is_memory),
        build: String::new(),
        round: 0.0,
    })
}

fn summary(out: &mut impl Write, outcomes: &[Outcome]) -> io::Result<()> {
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
    let [pass, miss, unknown] = [Verdict::Pass, Verdict::Miss, Verdict::NotChecked].map(count);
    writeln!(out, "{pass} pass, {miss} miss, {unknown} not checked")
}

/// A chart for each group.
fn write_charts(folder: &Path, outcomes: &[Outcome]) -> io::Result<()> {
    let mut groups: Vec<&str> = outcomes.iter().map(|outcome| outcome.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let of_group: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| outcome.group == group).collect();
        fs::write(folder.join(format!("{group}.svg")), chart::bars(group, &of_group))?;
    }
    Ok(())
}

/// Time against size, as a table, a chart and a CSV file.
fn grow(out: &mut impl Write, options: &Options, rounds: usize, length: f64) -> io::Result<()> {
    let (curves, spreads) = growth::run(out, rounds, length)?;
    let mut csv = String::from("operation,size,seconds\n");
    for (name, points) in &curves {
        csv.extend(points.iter().map(|(size, seconds)| format!("{name},{size},{seconds:e}\n")));
    }
    fs::write(options.out.join("growth.csv"), csv)?;
    let title = "time against size, float32";
    let chart =
        chart::curves(title, "size (side of the matrices, or elements)", "seconds", &curves);
    fs::write(options.out.join("growth.svg"), chart)?;
    let verdict = growth::verdict(&spreads);
    if let Some(path) = &options.markdown {
        page::put(path, &[("growth".to_owned(), verdict.clone())])?;
    }
    write!(out, "{verdict}")
}
