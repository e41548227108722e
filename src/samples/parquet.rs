//! Draws as Parquet: a column of doubles for each column of the table, in groups of rows that fit into memory.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::DoubleType;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::format::{Each, Opened, Table};
use super::wrong;
use crate::error::Result as Answer;

pub const ENDING: &str = ".parquet";
pub const MISSING: Option<&str> = None;
pub const NAMES: Option<&str> = None;

pub fn size(rows: usize, columns: usize) -> f64 {
    8.0 * rows as f64 * columns as f64
}

/// Bytes of values in a group of rows.
const GROUP: usize = 32 << 20;

/// Writes a table of draws, row by row.
pub struct Encoder<W: Write + Send> {
    file: SerializedFileWriter<W>,
    group: Vec<Vec<f64>>,
}

impl<W: Write + Send> Encoder<W> {
    pub fn new(out: W, columns: &[String], _rows: usize) -> io::Result<Self> {
        let column = |name: &String| {
            let column = Type::primitive_type_builder(name, Physical::DOUBLE);
            column.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
        };
        let fields = columns.iter().map(column).collect::<Result<Vec<_>>>().map_err(failed)?;
        let schema = Type::group_type_builder("draws").with_fields(fields).build().map_err(failed)?;
        // Nearly all numbers are different: there is nothing for a dictionary, and no use for extremes.
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        Ok(Encoder { file, group: vec![Vec::new(); columns.len()] })
    }

    pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        let row = statistics.iter().chain(theta);
        self.group.iter_mut().zip(row).for_each(|(column, value)| column.push(*value));
        let full = self.group.len() * (self.group[0].len() + 1) * 8 > GROUP;
        if full { self.write_group().map_err(failed) } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for values in &mut self.group {
            let mut column = group.next_column()?.expect("a column for each of the schema");
            column.typed::<DoubleType>().write_batch(values, None, None)?;
            column.close()?;
            values.clear();
        }
        group.close()?;
        Ok(())
    }

    /// A group of rows is written when it is full.
    pub fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<W> {
        if !self.group[0].is_empty() {
            self.write_group().map_err(failed)?;
        }
        self.file.into_inner().map_err(failed)
    }
}

/// The error below, if there is one: a full disk is known by its kind.
fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        error => io::Error::other(error),
    }
}

struct Groups {
    path: PathBuf,
    rows: usize,
}

pub fn open(path: &Path) -> Answer<Opened> {
    let (columns, rows) = shape(path).map_err(|e| wrong(path, &e.to_string()))?;
    Ok((columns, Box::new(Groups { path: path.to_owned(), rows })))
}

impl Table for Groups {
    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Answer<()> {
        scan(&self.path, statistics, range, each).map_err(|e| wrong(&self.path, &e.to_string()))
    }
}

/// Names of the columns, and the number of rows; no columns if some are not doubles.
fn shape(path: &Path) -> io::Result<(Vec<String>, usize)> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let doubles = columns.iter().all(|c| c.physical_type() == Physical::DOUBLE && c.max_def_level() == 0);
    let names = columns.iter().filter(|_| doubles).map(|c| c.name().to_owned()).collect();
    Ok((names, metadata.num_rows() as usize))
}

/// Goes through the rows, until `each` says false: the `first` columns, and `range` of those after them.
fn scan(
    path: &Path,
    first: usize,
    range: Range<usize>,
    each: &mut dyn FnMut(&[f64], &[f64]) -> bool,
) -> io::Result<()> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
    let wanted: Vec<usize> = (0..first).chain(first + range.start..first + range.end).collect();
    let mut row = vec![0.0; wanted.len()];
    for g in 0..file.num_row_groups() {
        let group = file.get_row_group(g).map_err(failed)?;
        let columns: Result<Vec<Vec<f64>>> = wanted.iter().map(|&j| column(group.as_ref(), j)).collect();
        let columns = columns.map_err(failed)?;
        for i in 0..columns[0].len() {
            row.iter_mut().zip(&columns).for_each(|(value, column)| *value = column[i]);
            if !each(&row[..first], &row[first..]) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One column of a group of rows.
fn column(group: &dyn RowGroupReader, j: usize) -> Result<Vec<f64>> {
    let rows = group.metadata().num_rows() as usize;
    let mut values = Vec::with_capacity(rows);
    let mut reader = get_typed_column_reader::<DoubleType>(group.get_column_reader(j)?);
    while values.len() < rows {
        let (read, _, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF(format!("{} of {rows} rows in a column", values.len())));
        }
    }
    Ok(values)
}
