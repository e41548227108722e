//! What can go wrong, sorted by whose turn it is to act: that decides the exit code.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Problems, printable};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub enum Error {
    /// The experiment file is wrong: every problem of it, with its place.
    Config(Problems),
    /// Other input is wrong: a data file, an earlier run, a flag.
    Input(String),
    /// A result file could not be written.
    Write { path: PathBuf, source: io::Error },
    /// The reader of our standard output has gone away, which is its right.
    ClosedPipe,
    /// Told to stop before it was done.
    Interrupted,
    /// The same, by whom, and how to go on; with the exit code that says so.
    Stopped(String, u8),
    /// The run could not go on for another reason.
    Failed(String),
    /// The run finished, but too many of its draws failed.
    FailedDraws(String),
}

impl Error {
    pub fn input(message: impl Into<String>) -> Self {
        Error::Input(message.into())
    }

    /// A failed write to `path`; a closed pipe is not a failure.
    pub fn write(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Error::ClosedPipe,
            _ => Error::Write { path: path.to_owned(), source },
        }
    }

    /// 0 done, 1 the run failed, 2 the input is wrong, 3 too many failed draws, 130 interrupted, 143 terminated.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Config(_) | Error::Input(_) => 2,
            Error::Write { .. } | Error::Failed(_) => 1,
            Error::FailedDraws(_) => 3,
            Error::ClosedPipe => 0,
            Error::Interrupted => 130,
            Error::Stopped(_, code) => *code,
        }
    }
}

/// What the system says of a file, without its number for it.
pub fn plainly(error: &io::Error) -> String {
    let said = error.to_string();
    match said.split_once(" (os error ") {
        Some(_) if error.kind() == io::ErrorKind::NotFound => "no such file".to_owned(),
        Some((words, _)) => words.to_owned(),
        None => said,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Config(problems) => write!(f, "{problems}"),
            Error::Input(message) | Error::Failed(message) | Error::FailedDraws(message) => {
                f.write_str(message)
            }
            Error::Write { path, source } => {
                write!(f, "cannot write {}: {}", printable(&path.display().to_string()), plainly(source))
            }
            Error::ClosedPipe => f.write_str("the reader of standard output has closed it"),
            Error::Interrupted => f.write_str("interrupted; no result file was written"),
            Error::Stopped(message, _) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Error::Config(problems)
    }
}
