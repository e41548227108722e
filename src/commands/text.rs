//! Tables for people and programs.

use npl::config::printable;
use npl::report::Report;
use npl::samples::{self, quoted};

use crate::cli::Format;

/// Rows of cells, the first of them the header; the first column is text, the others are numbers. Names of columns
/// and runs are foreign text: for people it is made safe for a terminal, for programs it is quoted.
pub fn render(rows: &[Vec<String>], format: Format) -> String {
    match format {
        Format::Text => aligned(&safe(rows)),
        Format::Markdown => markdown(&safe(rows)),
        Format::Csv => rows
            .iter()
            .map(|row| row.iter().map(|c| quoted(c)).collect::<Vec<_>>().join(",") + "\n")
            .collect(),
    }
}

fn safe(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect()
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |j: usize| rows.iter().filter_map(|r| r.get(j)).map(|c| c.chars().count()).max().unwrap_or(0);
    (0..columns).map(width).collect()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let widths = widths(rows);
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(j, (cell, &w))| match j {
            0 => format!("{cell:<w$}"),
            _ => format!("{cell:>w$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn markdown(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| {
        format!("| {} |\n", row.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let rule = |row: &Vec<String>| {
        let cells: Vec<&str> = (0..row.len()).map(|j| if j == 0 { "---" } else { "---:" }).collect();
        format!("|{}|\n", cells.join("|"))
    };
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        out += &line(row);
        if i == 0 {
            out += &rule(row);
        }
    }
    out
}

/// Four significant digits beyond what the error allows, at least three: enough to read, not more than is known.
pub fn number(value: f64, error: f64) -> String {
    if !value.is_finite() {
        return format!("{value}");
    }
    let from_error = if error > 0.0 && error.is_finite() { 1 - error.log10().floor() as i32 } else { 4 };
    let decimals = from_error.clamp(0, 8) as usize;
    let plain = format!("{value:.decimals$}");
    if value != 0.0 && (value.abs() >= 1e7 || value.abs() < 1e-4) { format!("{value:.3e}") } else { plain }
}

/// The warnings of a run, a line each.
pub fn warnings(report: &Report) -> String {
    report.warnings.iter().map(|w| format!("warning: {}\n", printable(w))).collect()
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Bytes for people.
pub fn bytes(count: f64) -> String {
    let (unit, scale) = match count {
        c if c >= 1e9 => ("GB", 1e9),
        c if c >= 1e6 => ("MB", 1e6),
        c if c >= 1e3 => ("kB", 1e3),
        _ => ("bytes", 1.0),
    };
    if scale == 1.0 { format!("{count:.0} {unit}") } else { format!("{:.1} {unit}", count / scale) }
}

/// Text files of draws above so many bytes are advised against.
const LARGE_TEXT: f64 = 200e6;

/// How large a file of draws will be, and what would make it smaller, if it will be a large text.
pub fn smaller(file: &str, rows: usize, columns: usize) -> Option<String> {
    let size = samples::Format::of(file).ok()?.size(rows, columns);
    let array = samples::Format::Npy.size(rows, columns);
    (size > LARGE_TEXT && size > array).then(|| {
        format!(
            "about {} of text; `--set output.samples=samples.npy` makes {} of it, and is faster to read",
            bytes(size),
            bytes(array)
        )
    })
}

/// Seconds for people.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s => format!("{} h {:.0} min", (s / 3600.0).floor(), s % 3600.0 / 60.0),
    }
}
