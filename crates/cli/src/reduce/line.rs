//! The command line of `tilework reduce`: what it takes, and what it says.
//!
//! The options for reductions are made from their rows, so that a new row is a new option.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use tilework::formula::reduction::{REDUCTIONS, ReductionRow};
use tilework::pairs::{Accuracy, Named, Options, Scheme, SumScheme};

/// What the command line says.
pub(crate) struct Arguments {
    pub(super) formula: String,
    pub(super) variables: Vec<(&'static str, String)>,
    /// Which, over which axis; none where the line names none.
    pub(super) reduction: Option<(&'static ReductionRow, usize)>,
    pub(super) k: Option<usize>,
    pub(super) weight: Option<String>,
    /// None where nothing is done.
    pub(super) out: Option<PathBuf>,
    pub(super) indices: Option<PathBuf>,
    pub(super) options: Options<'static>,
    pub(super) device: String,
    pub(super) quiet: bool,
    pub(super) explain: bool,
}

/// The options of the reductions, in the order of the table: `sum`, `argkmin`, `min-argmin`.
#[expect(clippy::disallowed_types, reason = "the command line never forks")]
static OPTIONS: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
    REDUCTIONS.iter().map(|row| row.name.to_lowercase().replace('_', "-")).collect()
});

/// The option of a reduction.
pub(super) fn option(row: &ReductionRow) -> &'static str {
    &OPTIONS[row.fold as usize]
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let files = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).num_args(1..).value_name("NAME=FILE").help(help)
        };
        let mut command = command
            .override_usage(
                "tilework reduce <FORMULA> --vi NAME=FILE... --vj NAME=FILE... \
                 --REDUCTION <i|j> --out FILE [OPTIONS]",
            )
            .arg(Arg::new("formula").value_name("FORMULA").help("The formula, as in KeOps"))
            .arg(
                files(
                    "vi",
                    "Arrays (M, D) with one row for each i; files must stay as they are meanwhile",
                )
                .action(ArgAction::Append),
            )
            .arg(files("vj", "Arrays (N, D) with one row for each j").action(ArgAction::Append))
            .arg(
                files("pm", "Parameters: numbers (s=0.5, w=1,2,3), or arrays (D,)")
                    .value_name("NAME=NUMBERS|FILE")
                    .action(ArgAction::Append),
            )
            .arg(
                Arg::new("k")
                    .long("k")
                    .alias("K")
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

/// The words of a command line, with a space before formulas that begin with a minus, which clap would
/// take for options.
pub(crate) fn words(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = line.collect();
    if words.get(1).is_none_or(|command| command != "reduce") {
        return words;
    }
    let command = Arguments::augment_args(Command::new("reduce"));
    let is_option = |letter: char| {
        let mut known = command.get_arguments().filter_map(Arg::get_short);
        matches!(letter, '-' | 'h') || known.any(|short| short == letter)
    };
    for word in &mut words[2..] {
        let letters = word.to_str().and_then(|word| word.strip_prefix('-'));
        if letters.and_then(|letters| letters.chars().next()).is_some_and(|one| !is_option(one)) {
            let mut value = OsString::from(" ");
            value.push(&*word);
            *word = value;
        }
    }
    words
}

/// A value without the space that [`words`] put before its minus.
fn as_given(value: &str) -> &str {
    value.strip_prefix(' ').filter(|rest| rest.starts_with('-')).unwrap_or(value)
}

/// Whether a word is `NAME=...`, and not a formula, which may compare by `==`.
fn is_declaration(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, source)| {
        let name = name.trim();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_name) && !source.starts_with('=')
    })
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
        let text =
            |name: &str| found.get_one::<String>(name).map(|text| as_given(text).to_string());
        let path = |name: &str| {
            let path = found.get_one::<PathBuf>(name)?;
            Some(path.to_str().map_or_else(|| path.clone(), |path| as_given(path).into()))
        };
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument);
        let reduction = REDUCTIONS.iter().find_map(|row| Some((row, text(option(row))?)));
        // Positions do not matter, names do.
        let of = |category: &'static str| {
            let given = found.get_many::<String>(category).into_iter().flatten();
            given.map(move |text| (category, as_given(text).to_string()))
        };
        let mut variables: Vec<_> = of("vi").chain(of("vj")).chain(of("pm")).collect();
        // Behind the files of a variable a formula is taken for one more of them.
        let formula = text("formula").or_else(|| {
            let at = variables.iter().position(|(_, text)| !is_declaration(text))?;
            Some(variables.remove(at).1)
        });
        Ok(Arguments {
            formula: formula.ok_or_else(|| {
                let message = "the formula is missing, as in tilework reduce \"SqDist(x,y)\" ...\n";
                clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, message)
            })?,
            variables,
            reduction: reduction.map(|(row, over)| (row, usize::from(over == "j"))),
            k: found.get_one("k").copied(),
            weight: text("weight"),
            out: path("out"),
            indices: path("indices"),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

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
    fn a_formula_stands_anywhere_and_may_begin_with_a_minus() {
        let read = |line: &str| {
            let line = words(line.split(' ').map(OsString::from));
            crate::Arguments::try_parse_from(line).map(|line| match line.command {
                crate::Command::Reduce(arguments) => arguments,
                _ => unreachable!("the line says reduce"),
            })
        };
        let files = "--vi x=x.npy --vj y=y.npy b=b.npy";
        for formula in ["SqDist(x,y)", "-SqDist(x,y)", "-x|y", "x==y", "-1.5*(x|y)", "(x|y)"] {
            for line in [
                format!("tilework reduce {formula} --logsumexp j -oa.npy {files}"),
                format!("tilework reduce --logsumexp j -o a.npy {files} {formula}"),
                format!("tilework reduce -oa.npy {files} {formula} --logsumexp j"),
            ] {
                let found = read(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                assert_eq!(found.formula, formula, "{line}");
                assert_eq!(found.out, Some("a.npy".into()), "{line}");
                let named: Vec<&str> = found.variables.iter().map(|(_, text)| &text[..]).collect();
                assert_eq!(named, ["x=x.npy", "y=y.npy", "b=b.npy"], "{line}");
            }
        }
        let weighed = read("tilework reduce x|y --logsumexp j --weight -y -o a.npy").unwrap();
        assert_eq!(weighed.weight.as_deref(), Some("-y"));
        assert_eq!(read("tilework reduce x --sum j -o -a.npy").unwrap().out, Some("-a.npy".into()));
        for (line, says) in [
            (format!("tilework reduce --sum j -o a.npy {files}"), "the formula is missing"),
            (format!("tilework reduce --summ j -o a.npy {files} -x"), "--summ"),
            (format!("tilework reduce x|y -x --sum j -o a.npy {files}"), "-x"),
        ] {
            let error = read(&line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
