//! Draws as Parquet: a column of doubles for each column of the table, in groups of rows that fit into memory.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::format::{Each, Opened, Table};
use super::grouping::PLACE;
use super::{GROUP, wrong};
use crate::error::Result as Answer;

pub const ENDING: &str = ".parquet";
pub const MISSING: Option<&str> = None;
pub const NAMES: Option<&str> = None;

pub fn size(rows: usize, columns: usize) -> f64 {
    8.0 * rows as f64 * columns as f64
}

/// Bytes of values in a group of rows.
const ROW_GROUP: usize = 32 << 20;

/// Writes a table of draws, row by row.
pub struct Encoder<W: Write + Send> {
    file: SerializedFileWriter<W>,
    group: Vec<Vec<f64>>,
    /// Which column is that of the groups of the run, as text, and what it says of each.
    of_groups: Option<usize>,
    levels: Vec<ByteArray>,
}

impl<W: Write + Send> Encoder<W> {
    pub fn new(out: W, columns: &[String], _rows: usize, levels: &[String]) -> io::Result<Self> {
        let of_groups = columns.iter().position(|name| name == GROUP);
        let column = |name: &String| {
            let column = match name == GROUP {
                true => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String)),
                false => Type::primitive_type_builder(name, Physical::DOUBLE),
            };
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
        let levels = levels.iter().map(|level| ByteArray::from(level.as_str())).collect();
        Ok(Encoder { file, group: vec![Vec::new(); columns.len()], of_groups, levels })
    }

    pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
        let row = statistics.iter().chain(theta);
        self.group.iter_mut().zip(row).for_each(|(column, value)| column.push(*value));
        let full = self.group.len() * (self.group[0].len() + 1) * 8 > ROW_GROUP;
        if full { self.write_group().map_err(failed) } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (j, values) in self.group.iter_mut().enumerate() {
            let mut column = group.next_column()?.expect("a column for each of the schema");
            if self.of_groups == Some(j) {
                let level = |v: &f64| self.levels.get((*v as usize).wrapping_sub(1)).cloned();
                let texts: Vec<ByteArray> = values.iter().map(|v| level(v).unwrap_or_default()).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            } else {
                column.typed::<DoubleType>().write_batch(values, None, None)?;
            }
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
    /// Of a run of groups: their names.
    levels: Vec<String>,
}

pub fn open(path: &Path) -> Answer<Opened> {
    let failed = |e: io::Error| wrong(path, &e.to_string());
    let (columns, rows) = shape(path).map_err(failed)?;
    let levels = match columns.get(PLACE).is_some_and(|name| name == GROUP) {
        true => texts(path).map_err(failed)?,
        false => Vec::new(),
    };
    Ok((columns, Box::new(Groups { path: path.to_owned(), rows, levels })))
}

impl Table for Groups {
    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Answer<()> {
        let scanned = scan(&self.path, statistics, range, &self.levels, each);
        scanned.map_err(|e| wrong(&self.path, &e.to_string()))
    }

    fn levels(&self) -> Answer<Vec<String>> {
        Ok(self.levels.clone())
    }
}

/// Names of the columns, and the number of rows; no columns if some are not doubles, that of the groups aside.
fn shape(path: &Path) -> io::Result<(Vec<String>, usize)> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let kind = |c: &ColumnDescPtr| if c.name() == GROUP { Physical::BYTE_ARRAY } else { Physical::DOUBLE };
    let doubles = columns.iter().all(|c| c.physical_type() == kind(c) && c.max_def_level() == 0);
    let names = columns.iter().filter(|_| doubles).map(|c| c.name().to_owned()).collect();
    Ok((names, metadata.num_rows() as usize))
}

/// Goes through the rows, until `each` says false: the `first` columns, and `range` of those after them.
fn scan(
    path: &Path,
    first: usize,
    range: Range<usize>,
    levels: &[String],
    each: &mut dyn FnMut(&[f64], &[f64]) -> bool,
) -> io::Result<()> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
    let wanted: Vec<usize> = (0..first).chain(first + range.start..first + range.end).collect();
    let mut row = vec![0.0; wanted.len()];
    for g in 0..file.num_row_groups() {
        let group = file.get_row_group(g).map_err(failed)?;
        let read = |&j: &usize| match j == PLACE && !levels.is_empty() {
            true => codes(group.as_ref(), levels),
            false => column(group.as_ref(), j),
        };
        let columns: Result<Vec<Vec<f64>>> = wanted.iter().map(read).collect();
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

/// The groups of a run, in the order of their first draws.
fn texts(path: &Path) -> io::Result<Vec<String>> {
    let file = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
    let mut names: Vec<String> = Vec::new();
    for g in 0..file.num_row_groups() {
        let group = file.get_row_group(g).map_err(failed)?;
        for text in texts_of(group.as_ref()).map_err(failed)? {
            let name = String::from_utf8_lossy(text.data());
            if names.iter().rev().all(|known| *known != name) {
                names.push(name.into_owned());
            }
        }
    }
    Ok(names)
}

/// The column of the groups as numbers, from 1.
fn codes(group: &dyn RowGroupReader, levels: &[String]) -> Result<Vec<f64>> {
    let code = |text: ByteArray| levels.iter().position(|level| level.as_bytes() == text.data());
    let texts = texts_of(group)?.into_iter();
    Ok(texts.map(|text| code(text).map_or(f64::NAN, |at| at as f64 + 1.0)).collect())
}

fn texts_of(group: &dyn RowGroupReader) -> Result<Vec<ByteArray>> {
    values_of::<ByteArrayType>(group, PLACE)
}

/// One column of a group of rows.
fn column(group: &dyn RowGroupReader, j: usize) -> Result<Vec<f64>> {
    values_of::<DoubleType>(group, j)
}

fn values_of<T: DataType>(group: &dyn RowGroupReader, j: usize) -> Result<Vec<T::T>> {
    let rows = group.metadata().num_rows() as usize;
    let mut values = Vec::with_capacity(rows);
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(j)?);
    while values.len() < rows {
        let (read, _, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF(format!("{} of {rows} rows in a column", values.len())));
        }
    }
    Ok(values)
}
