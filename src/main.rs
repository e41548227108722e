//! The `npl` program: parse, dispatch, print the error, exit code.

mod cli;
mod commands;

use std::io::{IsTerminal, Write};
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
            let _ = writeln!(std::io::stderr(), "{}", coloured(&problems.to_string(), has_colour()));
        }
        _ => {
            let [red, plain] = if has_colour() { [RED, PLAIN] } else { ["", ""] };
            let _ = writeln!(std::io::stderr(), "{red}npl:{plain} {error:#}");
        }
    }
    ExitCode::from(ours.map_or(1, Error::exit_code))
}

const RED: &str = "\x1b[1;31m";
const CYAN: &str = "\x1b[36m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Standard error is a terminal that knows colours, and nobody wants none (no-color.org).
fn has_colour() -> bool {
    let said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal()
        && !said("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Problems of a file with their places in bold, what is marked in red and advice in cyan.
fn coloured(problems: &str, colour: bool) -> String {
    if !colour {
        return problems.to_owned();
    }
    let line = |line: &str| {
        let is_mark = line.contains('^') && line.chars().all(|c| matches!(c, ' ' | '|' | '^' | '~' | '…'));
        match line.split_once(": ") {
            _ if is_mark => format!("{RED}{line}{PLAIN}"),
            Some((head, rest)) if head.trim_start().starts_with("= ") => {
                format!("{CYAN}{head}:{PLAIN} {rest}")
            }
            Some((head, rest)) if !line.starts_with(' ') => format!("{BOLD}{head}:{PLAIN} {rest}"),
            _ => line.to_owned(),
        }
    };
    problems.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_colours() {
        let text = "x.toml:12:1: unknown key `alpah`; did you mean `alpha`?\n 12 | alpah = 1\n    | ^^^^^\n    = help: so";
        assert_eq!(coloured(text, false), text);
        let shown = coloured(text, true);
        assert!(
            shown.starts_with("\x1b[1mx.toml:12:1:\x1b[0m unknown")
                && shown.contains("\x1b[1;31m    | ^^^^^")
        );
        let bare = [RED, CYAN, BOLD, PLAIN].iter().fold(shown, |text, code| text.replace(code, ""));
        assert_eq!(bare, text);
    }
}
