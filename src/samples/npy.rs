//! Draws as an array: NumPy's `.npy` format, version 1.0, float64 in C order, the names of the columns in a file beside it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::format::{Each, Format, Opened, Table};
use super::grouping::PLACE;
use super::{FOREIGN, GROUP, Grouping, wrong};
use crate::data::files::open as open_file;
use crate::error::Result;

pub const ENDING: &str = ".npy";
pub const MISSING: Option<&str> = None;
pub const NAMES: Option<&str> = Some(".columns.json");

/// Bytes of a file that are read at one time.
const BUFFER: usize = 1 << 16;

pub fn size(rows: usize, columns: usize) -> f64 {
    8.0 * rows as f64 * columns as f64
}

pub struct Encoder<W>(W);

impl<W: Write> Encoder<W> {
    pub fn new(mut out: W, columns: &[String], rows: usize, _levels: &[String]) -> io::Result<Self> {
        write_header(&mut out, rows, columns.len())?;
        Ok(Encoder(out))
    }

    pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        statistics.iter().chain(theta).try_for_each(|v| self.0.write_all(&v.to_le_bytes()))
    }

    pub fn finish(self) -> io::Result<W> {
        Ok(self.0)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Array {
    path: PathBuf,
    start: u64,
    rows: u64,
    columns: usize,
    levels: Vec<String>,
}

/// The file beside an array: names of its columns, and of its groups if it has any.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Names {
    Columns(Vec<String>),
    Grouped { columns: Vec<String>, groups: Vec<String> },
}

/// That file, of draws with these columns beside that of the groups.
pub fn names(columns: &[String], grouping: Option<&Grouping>) -> serde_json::Result<String> {
    let names = match grouping {
        None => Names::Columns(columns.to_vec()),
        Some(all) => Names::Grouped { columns: Grouping::columns(columns), groups: all.names.clone() },
    };
    Ok(serde_json::to_string_pretty(&names)? + "\n")
}

pub fn open(path: &Path) -> Result<Opened> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let names = path.with_file_name(Format::Npy.names_file(&name).expect("an array has one"));
    let found = serde_json::from_reader(open_file(&names)?);
    let (columns, levels) = match found {
        Ok(Names::Columns(columns)) => (columns, Vec::new()),
        Ok(Names::Grouped { columns, groups }) => (columns, groups),
        Err(e) => return Err(wrong(&names, &format!("not a list of names: {e}"))),
    };
    if columns.get(PLACE).is_some_and(|name| name == GROUP) && levels.is_empty() {
        return Err(wrong(&names, "it does not name the groups"));
    }
    open_named(path, columns, levels)
}

/// An array with these columns and groups, whatever its name.
pub fn open_named(path: &Path, columns: Vec<String>, levels: Vec<String>) -> Result<Opened> {
    let fail = |e: io::Error| wrong(path, &e.to_string());
    let mut file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let header = read_header(&mut BufReader::new(&mut file));
    let (start, rows, width) = header.ok_or_else(|| wrong(path, FOREIGN))?;
    if width != columns.len() as u64 {
        let message = format!("{width} columns, and {} names beside it", columns.len());
        return Err(wrong(path, &message));
    }
    let expected = rows.checked_mul(width * 8).and_then(|bytes| bytes.checked_add(start));
    if expected != Some(size) {
        return Err(wrong(path, &format!("not whole: {size} bytes for {rows} draws of {width} numbers")));
    }
    let array = Array { path: path.to_owned(), start, rows, columns: columns.len(), levels };
    Ok((columns, Box::new(array)))
}

impl Table for Array {
    fn rows(&self) -> Option<usize> {
        Some(self.rows as usize)
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()> {
        self.read(statistics, range, each).map_err(|e| wrong(&self.path, &e.to_string()))
    }

    fn levels(&self) -> Result<Vec<String>> {
        Ok(self.levels.clone())
    }
}

impl Array {
    fn read(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> io::Result<()> {
        let mut file = BufReader::with_capacity(BUFFER, File::open(&self.path)?);
        file.seek(SeekFrom::Start(self.start))?;
        let parameters = self.columns - statistics;
        let mut statistics = vec![0.0; statistics];
        let mut theta = vec![0.0; range.len()];
        for _ in 0..self.rows {
            read_numbers(&mut file, &mut statistics)?;
            file.seek_relative(8 * range.start as i64)?;
            read_numbers(&mut file, &mut theta)?;
            file.seek_relative(8 * (parameters - range.end) as i64)?;
            if !each(&statistics, &theta) {
                break;
            }
        }
        Ok(())
    }
}

fn read_numbers(file: &mut impl Read, numbers: &mut [f64]) -> io::Result<()> {
    let mut bytes = [0; 8];
    numbers.iter_mut().try_for_each(|number| {
        file.read_exact(&mut bytes)?;
        *number = f64::from_le_bytes(bytes);
        Ok(())
    })
}

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The array starts at a multiple of this: NumPy wants 64, and with 128 all headers have one length, so that the number
/// of rows can be mended when it is known.
const ALIGNMENT: usize = 128;

pub fn write_header(out: &mut dyn Write, rows: usize, columns: usize) -> io::Result<()> {
    let mut text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let unpadded = MAGIC.len() + 2 + text.len() + 1;
    text += &" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded);
    text += "\n";
    out.write_all(MAGIC)?;
    out.write_all(&(text.len() as u16).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// Where the array starts, its rows and its columns. `None` for what [`write_header`] does not write.
fn read_header(file: &mut dyn Read) -> Option<(u64, u64, u64)> {
    let mut start = [0; MAGIC.len() + 2];
    file.read_exact(&mut start).ok().filter(|()| start.starts_with(MAGIC))?;
    let length = u16::from_le_bytes([start[MAGIC.len()], start[MAGIC.len() + 1]]);
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).ok()?;
    let text = std::str::from_utf8(&text).ok()?;
    let shape = text.strip_prefix("{'descr': '<f8', 'fortran_order': False, 'shape': (")?;
    let (rows, columns) = shape.split_once(')')?.0.split_once(", ")?;
    Some(((start.len() + length as usize) as u64, rows.parse().ok()?, columns.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_aligned_and_reads_back() {
        for (rows, columns) in [(1, 10), (2000, 10_010), (usize::MAX, usize::MAX)] {
            let mut bytes = Vec::new();
            write_header(&mut bytes, rows, columns).unwrap();
            assert_eq!(bytes.len(), ALIGNMENT);
            assert_eq!(bytes.last(), Some(&b'\n'));
            let header = read_header(&mut &bytes[..]);
            assert_eq!(header, Some((bytes.len() as u64, rows as u64, columns as u64)));
            assert_eq!(read_header(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read_header(&mut &b"repeat__,draw__"[..]), None);
    }
}
