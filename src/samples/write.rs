//! Draws into a stream of bytes, in any of the formats.

use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use super::{COUNTS, Format, Sample, npy, quoted};

/// Writes a table of draws, row by row.
pub struct Writer<W: Write + Send> {
    encoder: Encoder<W>,
    /// Which of the first columns are counts.
    counts: Vec<bool>,
}

enum Encoder<W: Write + Send> {
    Csv(W),
    /// Numbers are short, and gzip dear by the call.
    CsvGz(BufWriter<GzEncoder<W>>),
    Npy(W),
    #[cfg(feature = "parquet")]
    Parquet(super::parquet::Encoder<W>),
}

impl<W: Write + Send> Writer<W> {
    /// `rows` is how many there will be: an array says it first, other formats do not ask.
    pub fn new(mut out: W, format: Format, columns: &[String], rows: usize) -> io::Result<Self> {
        let encoder = match format {
            Format::Csv => {
                write_names(&mut out, columns)?;
                Encoder::Csv(out)
            }
            Format::CsvGz => {
                // No time in the header: same draws, same bytes. Digits have next to no repetitions to look for, so a
                // higher level takes five times as long for a twentieth of the size.
                let mut out = BufWriter::new(GzBuilder::new().mtime(0).write(out, Compression::fast()));
                write_names(&mut out, columns)?;
                Encoder::CsvGz(out)
            }
            Format::Npy => {
                npy::write_header(&mut out, rows, columns.len())?;
                Encoder::Npy(out)
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Encoder::Parquet(super::parquet::Encoder::new(out, columns)?),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(io::ErrorKind::Unsupported.into()),
        };
        let counts = columns.iter().map(|c| COUNTS.contains(&c.as_str())).collect();
        Ok(Writer { encoder, counts })
    }

    /// Adds a draw; repeats are counted from 1.
    pub fn put(&mut self, repeat: usize, draw: &Sample) -> io::Result<()> {
        let (statistics, theta) = (draw.statistics(repeat), &draw.theta);
        match &mut self.encoder {
            Encoder::Csv(out) => write_row(out, &self.counts, &statistics, theta),
            Encoder::CsvGz(out) => write_row(out, &self.counts, &statistics, theta),
            Encoder::Npy(out) => {
                statistics.iter().chain(theta).try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
            #[cfg(feature = "parquet")]
            Encoder::Parquet(out) => out.put(&statistics, theta),
        }
    }

    /// What is below, after the last row.
    pub fn finish(self) -> io::Result<W> {
        match self.encoder {
            Encoder::Csv(out) | Encoder::Npy(out) => Ok(out),
            Encoder::CsvGz(out) => out.into_inner().map_err(|e| e.into_error())?.finish(),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(out) => out.finish(),
        }
    }

    /// Passes on what has been written so far, as far as the format can.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Csv(out) | Encoder::Npy(out) => out.flush(),
            Encoder::CsvGz(out) => out.flush(),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(_) => Ok(()),
        }
    }
}

fn write_names(out: &mut dyn Write, columns: &[String]) -> io::Result<()> {
    let cells: Vec<String> = columns.iter().map(|c| quoted(c)).collect();
    writeln!(out, "{}", cells.join(","))
}

/// Numbers are the shortest that read back exactly; counts have no point.
fn write_row(out: &mut dyn Write, counts: &[bool], statistics: &[f64], theta: &[f64]) -> io::Result<()> {
    for (j, value) in statistics.iter().enumerate() {
        let comma = if j > 0 { "," } else { "" };
        if counts[j] { write!(out, "{comma}{value}") } else { write!(out, "{comma}{value:?}") }?;
    }
    theta.iter().try_for_each(|v| write!(out, ",{v:?}"))?;
    out.write_all(b"\n")
}
