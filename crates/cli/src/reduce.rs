//! `tilework reduce`: a formula, arrays in files, a reduction, and a file for the result.
//!
//! The options for reductions are made from their rows, so that a new row is a new option. Files
//! are mapped and not read: the reduced side is worked through in blocks and may be larger than
//! memory. The result takes its name only when it is whole. Called by `main`.

use std::io::{Error, ErrorKind, IsTerminal, Result, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};
use tilework::formula::reduction::{REDUCTIONS, ReductionRow, Weight};
use tilework::pairs::{Accuracy, Genred, Named, Options, Progress, Scheme, SumScheme};
use tilework::{Array, DType, Device};

/// What the command line says.
pub(crate) struct Arguments {
    formula: String,
    variables: Vec<(&'static str, String)>,
    /// Which, over which axis; none where the line names none.
    reduction: Option<(&'static ReductionRow, usize)>,
    k: Option<usize>,
    weight: Option<String>,
    /// None where nothing is done.
    out: Option<PathBuf>,
    indices: Option<PathBuf>,
    options: Options<'static>,
    device: String,
    quiet: bool,
    explain: bool,
}

/// The options of the reductions, in the order of the table: `sum`, `argkmin`, `min-argmin`.
#[expect(clippy::disallowed_types, reason = "the command line never forks")]
static OPTIONS: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
    REDUCTIONS.iter().map(|row| row.name.to_lowercase().replace('_', "-")).collect()
});

/// The option of a reduction.
fn option(row: &ReductionRow) -> &'static str {
    &OPTIONS[row.fold as usize]
}

impl clap::Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let files = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).num_args(1..).value_name("NAME=FILE").help(help)
        };
        let mut command = command
            .override_usage("tilework reduce [OPTIONS] --REDUCTION <i|j> --out FILE <FORMULA>")
            .arg(Arg::new("formula").required(true).help("The formula, as in KeOps"))
            .arg(
                files(
                    "vi",
                    "Arrays (M, D) with one row for each i; files must stay as they are meanwhile",
                )
                .action(ArgAction::Append),
            )
            .arg(files("vj", "Arrays (N, D) with one row for each j").action(ArgAction::Append))
            .arg(
                files("pm", "Parameters: numbers, or arrays (D,)")
                    .value_name("NAME=NUMBER|FILE")
                    .action(ArgAction::Append),
            )
            .arg(
                Arg::new("k")
                    .long("k")
                    .short('k')
                    .value_parser(clap::value_parser!(usize))
                    .help("How many values are kept, where a reduction keeps several"),
            )
            .arg(Arg::new("weight").long("weight").help("The second formula, where one is taken"))
            .arg(
                Arg::new("out")
                    .long("out")
                    .short('o')
                    .required_unless_present("explain")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("The .npy file for the result"),
            )
            .arg(
                Arg::new("indices")
                    .long("indices")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("The .npy file for indices, where a reduction gives values too"),
            )
            .arg(choice::<Accuracy>("accuracy", "Which forms are allowed"))
            .arg(choice::<Scheme>("scheme", "How the plane of pairs is cut"))
            .arg(choice::<SumScheme>("sums", "How sums are taken"))
            .arg(
                Arg::new("device").long("device").default_value("cpu").help(
                    "Where the work is done: cpu, or cuda:0, which gets the arrays in blocks",
                ),
            )
            .arg(flag("quiet", "Shows no progress").short('q'))
            .arg(flag("explain", "Says how it would be done, and does nothing"))
            .next_help_heading("Reductions (one of them; over i or over j)");
        for row in REDUCTIONS {
            let name = option(row);
            let argument = Arg::new(name)
                .long(name)
                .value_name("i|j")
                .value_parser(["i", "j"])
                .hide_possible_values(true)
                .group("reduction")
                .help(row.doc);
            command = command.arg(argument);
        }
        command.group(ArgGroup::new("reduction").multiple(false))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

fn choice<T: Named + Default>(name: &'static str, help: &'static str) -> Arg {
    let value =
        |(name, choice): &(&'static str, T)| PossibleValue::new(*name).hide(choice.name() != *name);
    let values = PossibleValuesParser::new(T::NAMES.iter().map(value));
    Arg::new(name).long(name).value_parser(values).default_value(T::default().name()).help(help)
}

fn chosen<T: Named>(found: &ArgMatches, name: &str) -> std::result::Result<T, clap::Error> {
    let choice = found.get_one::<String>(name).and_then(|text| T::named(text));
    choice.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(found: &ArgMatches) -> std::result::Result<Arguments, clap::Error> {
        let text = |name: &str| found.get_one::<String>(name).cloned();
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument);
        let reduction = REDUCTIONS.iter().find_map(|row| Some((row, text(option(row))?)));
        // Positions do not matter, names do.
        let of = |category: &'static str| {
            let given = found.get_many::<String>(category).into_iter().flatten();
            given.map(move |text| (category, text.clone()))
        };
        let variables: Vec<_> = of("vi").chain(of("vj")).chain(of("pm")).collect();
        Ok(Arguments {
            formula: text("formula").ok_or_else(missing)?,
            variables,
            reduction: reduction.map(|(row, over)| (row, usize::from(over == "j"))),
            k: found.get_one("k").copied(),
            weight: text("weight"),
            out: found.get_one::<PathBuf>("out").cloned(),
            indices: found.get_one::<PathBuf>("indices").cloned(),
            options: Options {
                accuracy: chosen(found, "accuracy")?,
                scheme: chosen(found, "scheme")?,
                sums: chosen(found, "sums")?,
                ..Options::default()
            },
            device: text("device").ok_or_else(missing)?,
            quiet: found.get_flag("quiet"),
            explain: found.get_flag("explain"),
        })
    }

    fn update_from_arg_matches(
        &mut self,
        found: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(found)?;
        Ok(())
    }
}

fn failed(error: tilework::Error) -> Error {
    let kind = match error {
        tilework::Error::Interrupted(_) => ErrorKind::Interrupted,
        _ => ErrorKind::Other,
    };
    Error::new(kind, error.to_string())
}

/// The array of `NAME=FILE` or `NAME=NUMBER`, and its declaration.
fn variable(category: &str, text: &str, like: Option<DType>) -> Result<(String, Array)> {
    let wrong = |message: String| Error::new(ErrorKind::InvalidInput, message);
    let Some((name, source)) = text.split_once('=') else {
        return Err(wrong(format!("--{category} {text}: NAME=FILE is expected")));
    };
    let array = match (category, source.parse::<f64>()) {
        ("pm", Ok(number)) => {
            Array::full(&[1], number, like.unwrap_or(DType::Float64)).map_err(failed)?
        }
        // SAFETY: the help text asks that files stay as they are while the command runs.
        #[allow(unsafe_code, reason = "files are larger than memory")]
        _ => unsafe { tilework::load_mapped(source) }.map_err(|error| {
            let number = if category == "pm" { "is no number, and " } else { "" };
            wrong(format!("--{category} {text}: {number}{error}"))
        })?,
    };
    // A row of numbers is one number for each index.
    let array = match (category, array.ndim()) {
        ("vi" | "vj", 1) => array.expand_dims(1).map_err(failed)?,
        ("pm", 0) => array.reshape(&[1]).map_err(failed)?,
        _ => array,
    };
    let dim = array.shape().last().copied().unwrap_or(0);
    let word = [("vi", "Vi"), ("vj", "Vj"), ("pm", "Pm")];
    let word = word.iter().find(|(known, _)| *known == category).map_or("Pm", |(_, word)| word);
    Ok((format!("{name} = {word}({dim})"), array))
}

/// Reduces, and writes the result.
pub(crate) fn run(out: &mut impl Write, arguments: &Arguments) -> Result<()> {
    let Some((row, axis)) = arguments.reduction else {
        let message = "name a reduction and what it is over, as in --sum j; --help lists them";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    };
    let device = Device::parse(&arguments.device).map_err(failed)?;
    let mut declarations = Vec::new();
    let mut arrays: Vec<Array> = Vec::new();
    for (category, text) in &arguments.variables {
        let like = arrays.first().map(Array::dtype);
        let (declaration, array) = variable(category, text, like)?;
        declarations.push(declaration);
        arrays.push(array);
    }
    let declarations: Vec<&str> = declarations.iter().map(String::as_str).collect();
    let arrays: Vec<&Array> = arrays.iter().collect();
    let weight = arguments.weight.as_deref();
    if weight.is_some() && row.weight == Weight::None {
        let message = format!("--{} takes no --weight", option(row));
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let both = row.gives_values && row.gives_indices;
    if both != arguments.indices.is_some() {
        let message = match both {
            true => format!("--{} gives indices too: --indices FILE says where to", option(row)),
            false => format!("--{} gives one array; --indices is for two", option(row)),
        };
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let (formula, k) = (&arguments.formula, arguments.k);
    let reduction =
        Genred::with(formula, &declarations, row.name, axis, k, weight).map_err(failed)?;
    let options = Options { device: Some(device), ..arguments.options };
    if arguments.explain {
        let text = reduction.explain(&arrays, &options).map_err(failed)?;
        return writeln!(out, "{text}");
    }
    let Some(to) = &arguments.out else {
        return Err(Error::new(ErrorKind::InvalidInput, "--out FILE says where to"));
    };
    let file = |path: &PathBuf| tilework::check_save(path).map_err(failed);
    let (one, other) = (file(to)?, arguments.indices.as_ref().map(file).transpose()?);
    if other == Some(one) {
        let message = "--indices and --out name one file; the two results need one each";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let reduced = watched(arguments.quiet, |progress| {
        let options = Options { k, progress: Some(progress), ..options };
        reduction.call_with(&arrays, &options)
    })?;
    let (first, second) = match (reduced.values, reduced.indices) {
        (Some(values), indices) => (Some(values), indices),
        (None, indices) => (indices, None),
    };
    if let Some(first) = first {
        tilework::save(to, &first).map_err(failed)?;
    }
    if let (Some(second), Some(path)) = (second, &arguments.indices) {
        tilework::save(path, &second).map_err(failed)?;
    }
    Ok(())
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Does work under a bar, until it is done or somebody presses Ctrl-C.
fn watched<T>(quiet: bool, work: impl FnOnce(Progress<'_>) -> tilework::Result<T>) -> Result<T> {
    // Set once; a second command in one process (in tests) finds it set, which is as good.
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    const STEPS: u64 = 1000;
    let bar = match quiet || !std::io::stderr().is_terminal() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(STEPS),
    };
    let style = ProgressStyle::with_template("[{bar:40}] {percent:>3} %  {elapsed}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (began, shy) = (Instant::now(), Duration::from_millis(300));
    let told = |fraction: f64| {
        // Short work shows no bar.
        if began.elapsed() > shy {
            bar.set_position((fraction * STEPS as f64) as u64);
        }
        !STOP.load(Ordering::Relaxed)
    };
    let result = work(Progress(&told));
    bar.finish_and_clear();
    result.map_err(failed)
}

#[cfg(test)]
mod tests {
    use clap::{Args, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn folder() -> PathBuf {
        use std::sync::atomic::AtomicUsize;
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("tilework-reduce-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn every_reduction_has_an_option() {
        let command = Arguments::augment_args(Command::new("reduce"));
        for row in REDUCTIONS {
            let name = option(row);
            let has = |argument: &Arg| argument.get_long() == Some(name);
            assert!(command.get_arguments().any(has), "{name}");
        }
        command.debug_assert();
    }

    #[test]
    fn a_sum_of_exponentials_from_files_to_a_file() {
        let folder = folder();
        let path = |name: &str| folder.join(name).display().to_string();
        let x = Array::from_nested(&[[0.0f64], [1.0]]).unwrap();
        let b = Array::from_slice(&[1.0f64, 2.0]).unwrap();
        tilework::save(path("x.npy"), &x).unwrap();
        tilework::save(path("b.npy"), &b).unwrap();
        let line = |rest: &[&str]| {
            let mut words: Vec<String> =
                ["reduce", "Exp(-SqDist(x,y)/s)*b", "--vi"].map(String::from).to_vec();
            words.push(format!("x={}", path("x.npy")));
            words.extend(["--vj".into(), format!("y={}", path("x.npy"))]);
            words.push(format!("b={}", path("b.npy")));
            words.extend(["--pm".into(), "s=0.5".into(), "-o".into(), path("a.npy")]);
            words.extend(rest.iter().map(|word| word.to_string()));
            Line::try_parse_from(words).map(|line| line.arguments)
        };
        run(&mut Vec::new(), &line(&["--sum", "j"]).unwrap()).unwrap();
        let e = (-2.0f64).exp();
        let a = tilework::load(path("a.npy")).unwrap().to_vec::<f64>().unwrap();
        assert!((a[0] - (1.0 + 2.0 * e)).abs() < 1e-14 && (a[1] - (e + 2.0)).abs() < 1e-14);
        let both = line(&["--kmax-argkmax", "j", "-k", "1", "--indices", &path("at.npy")]).unwrap();
        run(&mut Vec::new(), &both).unwrap();
        assert_eq!(tilework::load(path("at.npy")).unwrap().to_vec::<i64>().unwrap(), [0, 1]);
        let mut text = Vec::new();
        run(&mut text, &line(&["--sum", "i", "--explain"]).unwrap()).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("per pair"));
        assert!(line(&["--sum", "j", "--min", "j"]).is_err());
        for (rest, says) in [
            (&[][..], "as in --sum j"),
            (&["--sum", "j", "--weight", "b"], "takes no --weight"),
            (&["--min-argmin", "j"], "--indices FILE says where to"),
            (&["--sum", "j", "--indices", "at.npy"], "gives one array"),
            (&["--sum", "j", "--device", "abacus"], "abacus"),
            (&["--min-argmin", "j", "--indices", &path("./a.npy")], "one file"),
        ] {
            let error = run(&mut Vec::new(), &line(rest).unwrap()).unwrap_err().to_string();
            assert!(error.contains(says), "{rest:?}: {error}");
        }
        for (out, says) in
            [("/no/such/folder/a.npy", "/no/such/folder/a.npy: "), ("/", "directory")]
        {
            let arguments = Arguments { out: Some(out.into()), ..line(&["--sum", "j"]).unwrap() };
            let error = run(&mut Vec::new(), &arguments).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
