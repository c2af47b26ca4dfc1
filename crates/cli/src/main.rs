//! The command line: a thin list of commands, each a module of its own.

#![deny(unsafe_code)]

mod bench;
mod info;
mod reduce;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Arrays with interchangeable backends, and map-reduce over pairs.
#[derive(Parser)]
#[command(name = "tilework", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the devices of this machine, and why others are missing.
    Info,
    /// Measures operations against the limits of this machine and against other libraries.
    Bench(bench::Options),
    /// Reduces a formula over pairs of rows of array files.
    Reduce(reduce::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(reduce::words(std::env::args_os()));
    let mut out = std::io::stdout().lock();
    let done = match arguments.command {
        Command::Info => info::run(&mut out),
        Command::Bench(options) => bench::run(&mut out, &options),
        Command::Reduce(arguments) => reduce::run(&mut out, &arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output may stop reading; that is not an error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        // As the shell has it: 128 and the number of the signal.
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
            eprintln!("tilework: {error}");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("tilework: {error}");
            ExitCode::FAILURE
        }
    }
}
