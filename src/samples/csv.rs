//! Draws as text: comma-separated, with the names of the columns first.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::format::{Each, Opened, Table};
use super::grouping::PLACE;
use super::{COUNTS, GROUP, quoted, wrong};
use crate::config::printable;
use crate::data::files::open as open_file;
use crate::error::Result;

pub const ENDING: &str = ".csv";
pub const MISSING: Option<&str> = None;
pub const NAMES: Option<&str> = None;

/// Bytes of a number, with its comma.
const CELL: f64 = 20.0;

pub fn size(rows: usize, columns: usize) -> f64 {
    CELL * long_cells(rows, columns)
}

/// Most statistics are numbers of one or two digits.
pub fn long_cells(rows: usize, columns: usize) -> f64 {
    rows as f64 * columns.saturating_sub(4) as f64
}

pub struct Encoder<W> {
    out: W,
    /// Which of the first columns are counts.
    counts: Vec<bool>,
    /// Which of them is that of the groups, and what it says of each.
    group: Option<usize>,
    levels: Vec<String>,
}

impl<W: Write> Encoder<W> {
    pub fn new(mut out: W, columns: &[String], _rows: usize, levels: &[String]) -> io::Result<Self> {
        let cells: Vec<String> = columns.iter().map(|c| quoted(c)).collect();
        writeln!(out, "{}", cells.join(","))?;
        let counts = columns.iter().map(|c| COUNTS.contains(&c.as_str())).collect();
        let levels = levels.iter().map(|level| quoted(level)).collect();
        Ok(Encoder { out, counts, group: columns.iter().position(|c| c == GROUP), levels })
    }

    /// Numbers are the shortest that read back exactly; counts have no point.
    pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        let out = &mut self.out;
        for (j, value) in statistics.iter().enumerate() {
            let comma = if j > 0 { "," } else { "" };
            match self.group {
                Some(group) if group == j => {
                    let level = self.levels.get((*value as usize).wrapping_sub(1));
                    write!(out, "{comma}{}", level.map_or("", String::as_str))
                }
                _ if self.counts[j] => write!(out, "{comma}{value}"),
                _ => write!(out, "{comma}{value:?}"),
            }?;
        }
        theta.iter().try_for_each(|v| write!(out, ",{v:?}"))?;
        out.write_all(b"\n")
    }

    pub fn finish(self) -> io::Result<W> {
        Ok(self.out)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text that may be compressed.
struct Text {
    path: PathBuf,
    /// It has a column of groups.
    grouped: bool,
}

pub fn open(path: &Path) -> Result<Opened> {
    let mut reader = csv::Reader::from_reader(open_file(path)?);
    let header = reader.headers().map_err(|e| wrong(path, &e.to_string()))?;
    let columns: Vec<String> = header.iter().map(str::to_owned).collect();
    let grouped = columns.get(PLACE).is_some_and(|name| name == GROUP);
    Ok((columns, Box::new(Text { path: path.to_owned(), grouped })))
}

impl Table for Text {
    fn rows(&self) -> Option<usize> {
        None
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        let bad = |what: &str| wrong(&self.path, what);
        let mut reader = csv::Reader::from_reader(open_file(&self.path)?);
        let mut groups = Groups::default();
        let mut record = csv::StringRecord::new();
        let parameters = statistics + range.start..statistics + range.end;
        let wanted: Vec<usize> = (0..statistics).chain(parameters).collect();
        let mut row = vec![0.0; wanted.len()];
        while reader.read_record(&mut record).map_err(|e| bad(&e.to_string()))? {
            for (value, &j) in row.iter_mut().zip(&wanted) {
                let cell = &record[j];
                if self.grouped && j == PLACE {
                    *value = groups.code(cell) as f64;
                    continue;
                }
                let number = cell.parse::<f64>();
                *value = number.map_err(|_| bad(&format!("\"{}\" is not a number", printable(cell))))?;
            }
            if !each(&row[..statistics], &row[statistics..]) {
                break;
            }
        }
        Ok(())
    }

    fn levels(&self) -> Result<Vec<String>> {
        let mut groups = Groups::default();
        let mut reader = csv::Reader::from_reader(open_file(&self.path)?);
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|e| wrong(&self.path, &e.to_string()))? {
            groups.code(record.get(PLACE).unwrap_or_default());
        }
        Ok(groups.0)
    }
}

/// Groups in the order of their first draws.
#[derive(Default)]
struct Groups(Vec<String>);

impl Groups {
    /// From 1.
    fn code(&mut self, name: &str) -> usize {
        // Draws of a group stand together: it is mostly the last.
        match self.0.iter().rposition(|known| known == name) {
            Some(at) => at + 1,
            None => {
                self.0.push(name.to_owned());
                self.0.len()
            }
        }
    }
}
