//! `tilework reduce`: a formula, arrays in files, a reduction, and a file for the result.
//!
//! Files are mapped and not read: the reduced side is worked through in blocks and may be larger than
//! memory. The result takes its name only when it is whole. Called by `main`; `line` reads what was
//! asked.

mod line;

use std::io::{Error, ErrorKind, IsTerminal, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tilework::formula::reduction::Weight;
use tilework::pairs::{Genred, Options, Progress};
use tilework::{Array, DType, Device};

use line::option;
pub(crate) use line::{Arguments, words};

fn failed(error: tilework::Error) -> Error {
    let kind = match error {
        tilework::Error::Interrupted(_) => ErrorKind::Interrupted,
        _ => ErrorKind::Other,
    };
    Error::new(kind, error.to_string())
}

/// The numbers of a text such as `1.5` or `1,2,3`.
fn numbers(source: &str) -> Option<Vec<f64>> {
    source.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// The array of `NAME=FILE` or `NAME=NUMBERS`, and its declaration.
fn variable(category: &str, text: &str, like: Option<DType>) -> Result<(String, Array)> {
    let wrong = |message: String| Error::new(ErrorKind::InvalidInput, message);
    let Some((name, source)) = text.split_once('=') else {
        return Err(wrong(format!("--{category} {text}: NAME=FILE is expected")));
    };
    let array = match (category, numbers(source)) {
        ("pm", Some(numbers)) => Array::from_slice(&numbers)
            .and_then(|array| array.astype(like.unwrap_or(DType::Float64)))
            .map_err(failed)?,
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

/// Refuses to write where a variable is read from: files are mapped, and inputs are not ours to replace.
fn replaces_no_input(path: &Path, real: &Path, variables: &[(&str, String)]) -> Result<()> {
    let is_it = |source: &str| std::fs::canonicalize(source).is_ok_and(|source| source == real);
    let reads = |(category, text): &&(&str, String)| {
        let source = text.split_once('=').map(|(_, source)| source);
        source.is_some_and(|it| is_it(it) && !(*category == "pm" && numbers(it).is_some()))
    };
    let Some((category, text)) = variables.iter().find(reads) else { return Ok(()) };
    let message = format!(
        "{} is an input (--{category} {text}); the result needs a file of its own",
        path.display()
    );
    Err(Error::new(ErrorKind::InvalidInput, message))
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
    let file = |path: &PathBuf| {
        let real = tilework::check_save(path).map_err(failed)?;
        replaces_no_input(path, &real, &arguments.variables)?;
        Ok::<_, Error>(real)
    };
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
    use clap::Parser;

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
            (&["--min-argmin", "j", "--indices", &path("./b.npy")], "is an input (--vj b="),
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

    #[test]
    fn parameters_are_vectors_too_and_inputs_stay() {
        let folder = folder();
        let path = |name: &str| folder.join(name).display().to_string();
        let x = Array::from_nested(&[[1.0f32, 2.0, 3.0]]).unwrap();
        tilework::save(path("x.npy"), &x).unwrap();
        let line = |out: &str| {
            let x = format!("x={}", path("x.npy"));
            let words = ["reduce", "(w|x)*y", "--vi", &x, "--vj", &x.replace("x=", "y="), "--pm"];
            let words = words.iter().copied().chain(["w=1,-2,0.5", "--sum", "j", "-o", out]);
            Line::try_parse_from(words).unwrap().arguments
        };
        run(&mut Vec::new(), &line(&path("a.npy"))).unwrap();
        let a = tilework::load(path("a.npy")).unwrap();
        assert_eq!(a.to_vec::<f32>().unwrap(), [-1.5, -3.0, -4.5]);
        let before = std::fs::read(path("x.npy")).unwrap();
        for out in [path("x.npy"), path("./x.npy")] {
            let error = run(&mut Vec::new(), &line(&out)).unwrap_err().to_string();
            assert!(error.contains("is an input (--vi x="), "{error}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("x.npy"), path("link.npy")).unwrap();
            let error = run(&mut Vec::new(), &line(&path("link.npy"))).unwrap_err().to_string();
            assert!(error.contains("link.npy is an input"), "{error}");
        }
        assert_eq!(std::fs::read(path("x.npy")).unwrap(), before);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
