//! Draws as text under gzip.

use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use super::csv;
pub use super::csv::{MISSING, NAMES, open};

pub const ENDING: &str = ".csv.gz";

/// Bytes of a number, with its comma.
const CELL: f64 = 10.0;

pub fn size(rows: usize, columns: usize) -> f64 {
    CELL * csv::long_cells(rows, columns)
}

/// Numbers are short, and gzip dear by the call.
pub struct Encoder<W: Write>(csv::Encoder<BufWriter<GzEncoder<W>>>);

impl<W: Write> Encoder<W> {
    pub fn new(out: W, columns: &[String], rows: usize, levels: &[String]) -> io::Result<Self> {
        // No time in the header: same draws, same bytes. Digits have next to no repetitions to look for, so a higher level
        // takes five times as long for a twentieth of the size.
        let out = BufWriter::new(GzBuilder::new().mtime(0).write(out, Compression::fast()));
        csv::Encoder::new(out, columns, rows, levels).map(Encoder)
    }

    pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        self.0.put(statistics, theta)
    }

    pub fn finish(self) -> io::Result<W> {
        self.0.finish()?.into_inner().map_err(|e| e.into_error())?.finish()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
