//! The program `tilework`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tilework_cli::main(std::env::args_os()))
}
