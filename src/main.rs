//! The `npl` program: parse, dispatch, print the error, exit code.

mod cli;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use npl::error::Error;

fn main() -> ExitCode {
    end_without_memory();
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

/// An allocation that fails ends the program after a line on standard error that says so; with exit code 1, as what else could
/// not go on, and not with a core dump. What was kept of a run stays.
fn end_without_memory() {
    #[cfg(unix)]
    {
        let always = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGABRT, 1, always);
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
