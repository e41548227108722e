//! Draws into a stream of bytes, in any of the formats.

use std::io::{self, Write};

use super::format::Encoder;
use super::{Format, Grouping, Sample, Samples};
use crate::error::Result;

/// Writes a table of draws, row by row.
pub struct Writer<W: Write + Send> {
    encoder: Encoder<W>,
    grouping: Option<Grouping>,
}

impl<W: Write + Send> Writer<W> {
    /// `rows` is how many there will be: an array says it first, other formats do not ask. Where there are groups, their column is
    /// added to the others.
    pub fn new(
        out: W,
        format: Format,
        columns: &[String],
        rows: usize,
        grouping: Option<Grouping>,
    ) -> io::Result<Self> {
        let encoder = match &grouping {
            Some(all) => Encoder::new(out, format, &Grouping::columns(columns), rows, &all.names),
            None => Encoder::new(out, format, columns, rows, &[]),
        }?;
        Ok(Writer { encoder, grouping })
    }

    /// Adds a draw; rounds are counted from 1.
    pub fn put(&mut self, round: usize, draw: &Sample) -> io::Result<()> {
        self.put_row(&draw.statistics(round), &draw.theta)
    }

    /// Adds a draw as another table has it.
    fn put_row(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        match &self.grouping {
            Some(all) => self.encoder.put(&all.row(statistics), theta),
            None => self.encoder.put(statistics, theta),
        }
    }

    /// What is below, after the last row.
    pub fn finish(self) -> io::Result<W> {
        self.encoder.finish()
    }

    /// Passes on what has been written so far, as far as the format can.
    pub fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

impl Samples {
    /// All draws once more, in any format; what is below, after the last of them.
    pub fn copy<W: Write + Send>(&self, out: W, format: Format) -> Result<io::Result<W>> {
        let rows = self.rows()?;
        let mut writer = match Writer::new(out, format, self.columns(), rows, self.grouping()?) {
            Ok(writer) => writer,
            Err(error) => return Ok(Err(error)),
        };
        let mut written = Ok(());
        self.scan(0..self.parameters().len(), |statistics, theta| {
            written = writer.put_row(statistics, theta);
            written.is_ok()
        })?;
        Ok(written.and_then(|()| writer.finish()))
    }
}
