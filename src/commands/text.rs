//! Tables for people and programs.

use npl::config::printable;
use npl::report::Report;
use npl::samples::{self, quoted};
pub use npl::words::{bytes, counted, error, few, number, percent, seconds};

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
        Format::Json => json(rows),
    }
}

/// A list of objects; the first column is text.
fn json(rows: &[Vec<String>]) -> String {
    let Some((header, rows)) = rows.split_first() else { return "[]\n".into() };
    let value = |(j, cell): (usize, &String)| match cell.parse::<f64>() {
        Ok(number) if j > 0 => serde_json::Value::from(number),
        _ if j > 0 && cell.is_empty() => serde_json::Value::Null,
        _ => cell.as_str().into(),
    };
    let object = |row: &Vec<String>| -> serde_json::Value {
        serde_json::Value::Object(header.iter().cloned().zip(row.iter().enumerate().map(value)).collect())
    };
    let list: Vec<serde_json::Value> = rows.iter().map(object).collect();
    serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
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

/// The warnings of a run, a line each.
pub fn warnings(report: &Report) -> String {
    report.warnings.iter().map(|w| format!("warning: {}\n", printable(w))).collect()
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
