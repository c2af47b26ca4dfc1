//! The command line: a thin list of commands, each a module of its own. The program `tilework` and
//! the Python package's script of that name are both `main`.

#![deny(unsafe_code)]

#[cfg(feature = "bench")]
mod bench;
mod info;
mod reduce;

use std::ffi::OsString;
use std::io::Write;

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
    #[cfg(feature = "bench")]
    /// Measures operations against the limits of this machine and against other libraries.
    Bench(Box<bench::Options>),
    /// Reduces a formula over pairs of rows of array files.
    Reduce(Box<reduce::Arguments>),
}

/// Does what the words of a line ask for, the program's name first; the exit code.
pub fn main(line: impl Iterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(reduce::words(line)) {
        Ok(arguments) => arguments,
        Err(asked) => {
            // Help is printed this way too; where nobody reads it, there is nobody to tell.
            let _ = asked.print();
            return u8::try_from(asked.exit_code()).unwrap_or(1);
        }
    };
    let mut out = std::io::stdout().lock();
    let done = match arguments.command {
        Command::Info => info::run(&mut out),
        #[cfg(feature = "bench")]
        Command::Bench(options) => bench::run(&mut out, &options),
        Command::Reduce(arguments) => reduce::run(&mut out, &arguments),
    };
    // Where this is a part of another program, nobody else would.
    match done.and_then(|()| out.flush()) {
        Ok(()) => 0,
        // Whoever reads our output may stop reading; that is not an error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("tilework: {error}");
            // As the shell has it: 128 and the number of the signal.
            if error.kind() == std::io::ErrorKind::Interrupted { 130 } else { 1 }
        }
    }
}
