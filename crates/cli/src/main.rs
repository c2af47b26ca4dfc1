//! The command line: `tilework info`, later `bench` and `reduce`.

#![forbid(unsafe_code)]

mod info;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Arrays with interchangeable backends, and map-reduce over pairs.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the devices of this machine, and why others are missing.
    Info,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Info => info::run(&mut std::io::stdout().lock()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output may stop reading; that is not an error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tilework: {error}");
            ExitCode::FAILURE
        }
    }
}
