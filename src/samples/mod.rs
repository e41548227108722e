//! Posterior draws as a table: one row per draw, statistics first (their names end in `__`), then θ.

mod answers;
mod csv;
mod csv_gz;
mod format;
mod grouping;
mod npy;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
mod read;
mod relabel;
mod relation;
mod stream;
mod summary;
mod units;
mod write;

pub use answers::{Answer, Correction, Estimated, Interval, Question, intervals, uncorrectable};
pub use format::Format;
pub use grouping::Grouping;
pub use npy::{names as npy_names, write_header as npy_header};
pub use read::{Columns, STRIP, Samples};
pub use relabel::{AlignedRepeat, Reference, Relabelling};
pub use relation::{Kinship, Relation};
pub use stream::{Choice, Pick, Text, fits};
pub use summary::{QUANTILES, Summary, worth};
pub use units::Units;
pub use write::Writer;

use std::path::Path;

use crate::bytes::{Bytes, bytes};
use crate::config::printable;
use crate::error::Error;
use crate::optim::Status;

/// The first columns of every table of draws. Those of the method follow, then the parameters.
pub const STATISTICS: [&str; 6] =
    ["repeat__", "draw__", "objective__", "restart__", "iterations__", "status__"];

/// Of draws of groups: which of them. A text, or a number from 1 in a file of numbers.
pub const GROUP: &str = "group__";

/// Statistics of the methods.
pub const RESTARTS: &str = "restarts__";
pub const HITS: &str = "hits__";
pub const GRADIENT: &str = "gradient__";
pub const DIVERGENT: &str = "divergent__";
pub const STEP_SIZE: &str = "stepsize__";
pub const LOG_Q: &str = "log_q__";
pub const LOG_WEIGHT: &str = "log_weight__";
/// Of relabelled draws: 0 for a clear assignment, 1 for an ambiguous one, 2 for a draw that was left as it is.
pub const ALIGNMENT: &str = "alignment__";

/// Statistics that are written without a decimal point.
const COUNTS: [&str; 9] =
    ["repeat__", "draw__", "restart__", "iterations__", "status__", RESTARTS, HITS, DIVERGENT, ALIGNMENT];

/// Places of some of them.
const REPEAT: usize = 0;
const DRAW: usize = 1;
const RESTART: usize = 3;
const STATUS: usize = 5;

/// One draw from a posterior, whatever made it: a row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Counted from 0.
    pub index: u64,
    pub theta: Vec<f64>,
    /// What the method made small: the weighted loss, or minus the log posterior density.
    pub objective: f64,
    /// Which restart, or which chain, it comes from; counted from 1.
    pub restart: usize,
    /// Iterations of its search, or steps of its trajectory.
    pub iterations: usize,
    pub status: Status,
    /// The statistics of the method.
    pub extra: Vec<f64>,
}

bytes!(Sample { index, theta, objective, restart, iterations, status, extra });

impl Bytes for Status {
    fn put(&self, out: &mut Vec<u8>) {
        self.code().put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Status> {
        let code = f64::take(from)?;
        Status::ALL.into_iter().find(|status| status.code() == code)
    }
}

impl Sample {
    /// θ is no draw.
    pub fn failed(&self) -> bool {
        self.status.is_lost()
    }

    /// The draw of a row of the table, and its repeat, counted from 1; `None` for a row that is none.
    pub fn of_row(statistics: &[f64], theta: &[f64]) -> Option<(usize, Sample)> {
        let (common, extra) = statistics.split_at_checked(STATISTICS.len())?;
        let count = |v: f64| (v >= 0.0 && v.fract() == 0.0 && v < 9e15).then_some(v as u64);
        let [repeat, draw, objective, restart, iterations, status] = *<&[f64; 6]>::try_from(common).ok()?;
        let sample = Sample {
            index: count(draw)?.checked_sub(1)?,
            theta: theta.to_vec(),
            objective,
            restart: count(restart)? as usize,
            iterations: count(iterations)? as usize,
            status: Status::ALL.into_iter().find(|s| s.code() == status)?,
            extra: extra.to_vec(),
        };
        Some((count(repeat)? as usize, sample))
    }

    /// The statistics in the order of the columns; repeat and draw are counted from 1.
    fn statistics(&self, repeat: usize) -> Vec<f64> {
        let common = [
            repeat as f64,
            self.index as f64 + 1.0,
            self.objective,
            self.restart as f64,
            self.iterations as f64,
            self.status.code(),
        ];
        common.into_iter().chain(self.extra.iter().copied()).collect()
    }
}

/// All columns of a table of draws with these statistics of the method and these parameters.
pub fn columns(extra: &[&str], parameters: &[String], style: NameStyle) -> Vec<String> {
    let statistics = STATISTICS.iter().chain(extra).map(|s| s.to_string());
    statistics.chain(parameters.iter().map(|p| style.apply(p))).collect()
}

/// How parameter names are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum NameStyle {
    /// `mu.1.2`, as CmdStan writes them: what ArviZ reads.
    #[default]
    Dot,
    /// `mu[1,2]`: what R's posterior package reads.
    Bracket,
}

impl NameStyle {
    pub fn apply(self, name: &str) -> String {
        let indices =
            |rest: &str| rest.split('.').all(|i| !i.is_empty() && i.bytes().all(|b| b.is_ascii_digit()));
        match (self, name.split_once('.')) {
            (NameStyle::Bracket, Some((head, rest))) if indices(rest) => {
                format!("{head}[{}]", rest.replace('.', ","))
            }
            _ => name.to_owned(),
        }
    }

    /// A name of either style with dots.
    pub fn dotted(name: &str) -> String {
        match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((head, rest)) => format!("{head}.{}", rest.replace(',', ".")),
            None => name.to_owned(),
        }
    }
}

const FOREIGN: &str = "not a table of draws written by npl";

fn wrong(path: &Path, what: &str) -> Error {
    Error::input(format!("{}: {what}", printable(&path.display().to_string())))
}

/// A cell as RFC 4180 wants it.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bracket_names_are_for_indices_only() {
        assert_eq!(NameStyle::Bracket.apply("mu.1.2"), "mu[1,2]");
        assert_eq!(NameStyle::Bracket.apply("theta.age"), "theta.age");
        assert_eq!(NameStyle::Bracket.apply("theta"), "theta");
        assert_eq!(NameStyle::Dot.apply("mu.1.2"), "mu.1.2");
        assert_eq!(NameStyle::dotted("mu[1,2]"), "mu.1.2");
        assert_eq!(NameStyle::dotted("theta.age"), "theta.age");
    }
}
