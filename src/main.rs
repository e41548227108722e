//! The `npl` program: parse, dispatch, print the error, exit code.

mod cli;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use npl::error::Error;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Usage errors exit with 2, --help and --version with 0; a closed pipe is no one's fault.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match commands::dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// `eprintln!` panics when standard error is closed or full; this does not.
fn report(error: &anyhow::Error) -> ExitCode {
    let ours = error.downcast_ref::<Error>();
    match ours {
        Some(Error::ClosedPipe) => {}
        Some(Error::Config(problems)) => {
            let _ = writeln!(std::io::stderr(), "{problems}");
        }
        _ => {
            let _ = writeln!(std::io::stderr(), "npl: {error:#}");
        }
    }
    ExitCode::from(ours.map_or(1, Error::exit_code))
}
