//! Posterior draws as a table: one row per draw, statistics first (their names end in `__`), then θ.

use std::io::{self, Write};
use std::path::Path;

use ndarray::{Array2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bootstrap::Draw;
use crate::config::printable;
use crate::data::files::open;
use crate::error::{Error, Result};
use crate::math::{mean, quantile_sorted, sd};
use crate::optim::Status;

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

/// Place of `status__` among them.
const STATUS: usize = 5;

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

/// The header line of a table of draws.
pub fn write_header(out: &mut dyn Write, names: &[String], style: NameStyle) -> io::Result<()> {
    let names = names.iter().map(|n| quoted(&style.apply(n)));
    let cells: Vec<String> = STATISTICS.iter().map(|s| s.to_string()).chain(names).collect();
    writeln!(out, "{}", cells.join(","))
}

/// One draw; repeat and draw are counted from 1. Numbers are the shortest that read back exactly.
pub fn write_row(out: &mut dyn Write, repeat: usize, draw: &Draw) -> io::Result<()> {
    let m = &draw.minimum;
    write!(
        out,
        "{repeat},{},{:?},{},{},{},{},{},{:?}",
        draw.index + 1,
        m.value,
        draw.restart,
        m.iterations,
        m.status as u8,
        draw.values.len(),
        draw.hits(),
        m.gradient
    )?;
    m.theta.iter().try_for_each(|v| write!(out, ",{v:?}"))?;
    out.write_all(b"\n")
}

/// A cell as RFC 4180 wants it.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// All columns of a `samples.csv`.
pub struct Table {
    pub names: Vec<String>,
    values: Array2<f64>,
}

impl Table {
    /// Unlike data, draws may hold NaN: where a search failed.
    pub fn read(path: &Path) -> Result<Table> {
        let shown = printable(&path.display().to_string());
        let bad = |what: &str| Error::input(format!("{shown}: {what}"));
        let mut reader = csv::Reader::from_reader(open(path)?);
        let header = reader.headers().map_err(|e| bad(&e.to_string()))?;
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        if !STATISTICS.iter().zip(&names).all(|(a, b)| a == b) || names.len() <= STATISTICS.len() {
            return Err(bad("not a table of draws written by npl"));
        }
        let mut values = Vec::new();
        for record in reader.records() {
            for cell in record.map_err(|e| bad(&e.to_string()))?.iter() {
                values.push(
                    cell.parse::<f64>()
                        .map_err(|_| bad(&format!("\"{}\" is not a number", printable(cell))))?,
                );
            }
        }
        let rows = values.len() / names.len();
        let values =
            Array2::from_shape_vec((rows, names.len()), values).expect("the reader checks row lengths");
        Ok(Table { names, values })
    }

    /// The columns `names` of all draws, in that order.
    pub fn select(&self, names: &[String]) -> Result<Vec<Vec<f64>>> {
        let find = |name: &String| {
            let place = self.names.iter().position(|n| n == name);
            place.ok_or_else(|| Error::input(format!("the draws have no parameter {}", printable(name))))
        };
        let columns = names.iter().map(find).collect::<Result<Vec<usize>>>()?;
        Ok(self.values.outer_iter().map(|row| columns.iter().map(|&j| row[j]).collect()).collect())
    }

    /// One column of all draws that did not fail, or of one repeat. Where a search failed, it left θ somewhere, and
    /// that is no draw.
    pub fn column(&self, j: usize, repeat: Option<usize>) -> Vec<f64> {
        let rows =
            self.values.axis_iter(Axis(0)).filter(|row| row[STATUS] != f64::from(Status::Failed as u8));
        rows.filter(|row| repeat.is_none_or(|r| row[0] == r as f64)).map(|row| row[j]).collect()
    }

    /// A summary of every parameter.
    pub fn summarise(&self, repeat: Option<usize>) -> Vec<Summary> {
        let first = STATISTICS.len();
        let one = |j: usize| Summary::of(&self.names[j], self.column(j, repeat));
        (first..self.names.len()).into_par_iter().map(one).collect()
    }
}

/// Quantiles of a summary.
pub const QUANTILES: [f64; 5] = [0.025, 0.1, 0.5, 0.9, 0.975];

/// Marginal posterior of one parameter, every number with its Monte Carlo standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub parameter: String,
    pub mean: f64,
    pub sd: f64,
    pub quantiles: [f64; 5],
    pub mcse_mean: f64,
    pub mcse_sd: f64,
    pub mcse_quantiles: [f64; 5],
}

impl Summary {
    /// Values that are not numbers (failed draws) are left out.
    pub fn of(parameter: &str, mut values: Vec<f64>) -> Summary {
        values.retain(|v| v.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as f64;
        let (mean, sd) = (mean(&values), sd(&values));
        let fourth = values.iter().map(|v| (v - mean).powi(4)).sum::<f64>() / n;
        let variance = sd * sd;
        Summary {
            parameter: parameter.to_owned(),
            mean,
            sd,
            quantiles: QUANTILES.map(|q| quantile_sorted(&values, q)),
            mcse_mean: sd / n.sqrt(),
            // Delta method: Var(s²) ≈ (m₄ − σ⁴)/B, and sd = √s².
            mcse_sd: if sd > 0.0 {
                ((fourth - variance * variance).max(0.0) / n).sqrt() / (2.0 * sd)
            } else {
                0.0
            },
            mcse_quantiles: QUANTILES.map(|q| quantile_error(&values, q)),
        }
    }

    /// Header of `summary.csv`.
    pub fn header() -> String {
        let labels = ["q2.5", "q10", "q50", "q90", "q97.5"];
        let errors = labels.map(|l| format!("mcse_{l}"));
        format!("parameter,mean,sd,{},mcse_mean,mcse_sd,{}", labels.join(","), errors.join(","))
    }

    /// Line of `summary.csv`.
    pub fn line(&self) -> String {
        let numbers = [self.mean, self.sd].into_iter().chain(self.quantiles);
        let errors = [self.mcse_mean, self.mcse_sd].into_iter().chain(self.mcse_quantiles);
        let cells: Vec<String> = numbers.chain(errors).map(|v| format!("{v:?}")).collect();
        format!("{},{}", quoted(&self.parameter), cells.join(","))
    }
}

/// Half the distance between the order statistics one binomial standard deviation to each side of the quantile.
fn quantile_error(sorted: &[f64], q: f64) -> f64 {
    let n = sorted.len() as f64;
    let spread = (q * (1.0 - q) / n).sqrt();
    let at = |p: f64| quantile_sorted(sorted, p.clamp(0.0, 1.0));
    0.5 * (at(q + spread) - at(q - spread))
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

    #[test]
    fn a_summary_of_known_numbers() {
        let s = Summary::of("x", (0..=1000).rev().map(|i| i as f64).chain([f64::NAN]).collect());
        assert_eq!((s.mean, s.quantiles[2], s.quantiles[0]), (500.0, 500.0, 25.0));
        assert!((s.sd - 289.108_111).abs() < 1e-5);
        assert!((s.mcse_mean - s.sd / 1001f64.sqrt()).abs() < 1e-12);
        // Uniform on 0..1000: the median's standard error is 1000 · ½/√n.
        assert!((s.mcse_quantiles[2] / (500.0 / 1001f64.sqrt()) - 1.0).abs() < 0.01);
    }
}
