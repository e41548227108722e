//! Posterior draws as a table: one row per draw, statistics first (their names end in `__`), then θ.

mod format;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod read;
mod summary;
mod write;

pub use format::Format;
pub use read::{STRIP, Samples};
pub use summary::{QUANTILES, Summary};
pub use write::Writer;

use crate::bootstrap::Draw;

/// Columns in front of the parameters.
pub const STATISTICS: [&str; 9] = [
    "repeat__",
    "draw__",
    "objective__",
    "restart__",
    "iterations__",
    "status__",
    "restarts__",
    "hits__",
    "gradient__",
];

/// Places of some of them.
const REPEAT: usize = 0;
const OBJECTIVE: usize = 2;
const STATUS: usize = 5;
const GRADIENT: usize = 8;

/// The statistics of a draw; repeat and draw are counted from 1.
fn statistics(repeat: usize, draw: &Draw) -> [f64; STATISTICS.len()] {
    let m = &draw.minimum;
    [
        repeat as f64,
        draw.index as f64 + 1.0,
        m.value,
        draw.restart as f64,
        m.iterations as f64,
        f64::from(m.status as u8),
        draw.values.len() as f64,
        draw.hits() as f64,
        m.gradient,
    ]
}

/// All columns of a table of draws with these parameters.
pub fn columns(parameters: &[String], style: NameStyle) -> Vec<String> {
    STATISTICS.iter().map(|s| s.to_string()).chain(parameters.iter().map(|p| style.apply(p))).collect()
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
    fn apply(self, name: &str) -> String {
        let indices =
            |rest: &str| rest.split('.').all(|i| !i.is_empty() && i.bytes().all(|b| b.is_ascii_digit()));
        match (self, name.split_once('.')) {
            (NameStyle::Bracket, Some((head, rest))) if indices(rest) => {
                format!("{head}[{}]", rest.replace('.', ","))
            }
            _ => name.to_owned(),
        }
    }
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
    }
}
