//! Parquet: the columns that are used and no others, some rows at a time.

use std::borrow::Cow;
use std::cell::Cell as Flag;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as Parsed};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::Type;

use super::table::{Header, Kind, MOST_COLUMNS, Table};
use super::text::{Builder, Rules, names_in, number};
use crate::config::printable;
use crate::error::{Error, Result, plainly};

/// Cells that are taken at a time.
const BATCH: usize = 1 << 16;
/// Whole numbers up to this are doubles.
const EXACT: i128 = 1 << 53;
/// What no text of a column is, nor what marks a missing value: settles a column as one of texts.
const TEXT: &[u8] = b"\xff";

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A null.
    Missing,
    Number(f64),
    /// A whole number that is no double.
    Large(i128),
    Text(ByteArray),
}

impl Cell {
    fn whole(value: i128) -> Cell {
        if value.abs() <= EXACT { Cell::Number(value as f64) } else { Cell::Large(value) }
    }

    /// As text would have it; of a null, nothing.
    fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Cell::Missing => Cow::Borrowed(b""),
            Cell::Number(value) => Cow::Owned((value + 0.0).to_string().into_bytes()),
            Cell::Large(value) => Cow::Owned(value.to_string().into_bytes()),
            Cell::Text(text) => Cow::Borrowed(text.data()),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(value) => Some(*value),
            Cell::Large(value) => Some(*value as f64),
            Cell::Missing | Cell::Text(_) => None,
        }
    }
}

/// What the cells of a column are, where they are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Values {
    Booleans,
    Integers,
    Unsigned,
    Numbers,
    Texts,
}

/// A file, half read.
pub struct Rows {
    file: SerializedFileReader<Bounded>,
    shown: String,
    header: Header,
    /// Of each column, what it holds, or in words why it is not read, and which it is among those that nested ones have.
    kinds: Vec<std::result::Result<Values, &'static str>>,
    leaves: Vec<usize>,
    /// The columns that are used.
    places: Vec<usize>,
    /// The group of rows that comes next, and the readers of that which is open, with how many of its rows are left.
    group: usize,
    open: Vec<ColumnReader>,
    left: usize,
    /// Columns of the batch, its rows, and that of them which comes next.
    batch: Vec<Vec<Cell>>,
    rows: usize,
    at: usize,
    done: u64,
}

impl Rows {
    pub fn open(path: &Path) -> Result<Rows> {
        let shown = printable(&path.display().to_string());
        let wrong = |what: &str| Error::input(format!("{shown}: {what}"));
        let file = File::open(path).map_err(|e| wrong(&plainly(&e)))?;
        let length = file.metadata().map_err(|e| wrong(&plainly(&e)))?.len();
        let file = guarded(|| SerializedFileReader::new(Bounded { file, length })).map_err(|e| wrong(&e))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        if fields.is_empty() || fields.len() > MOST_COLUMNS {
            return Err(wrong(&format!("{} columns, and 1 to {MOST_COLUMNS} are read", fields.len())));
        }
        let mut leaves = vec![0; fields.len()];
        (0..schema.num_columns()).rev().for_each(|leaf| leaves[schema.get_column_root_idx(leaf)] = leaf);
        let kinds = fields.iter().map(|field| values_of(field)).collect();
        let names = fields.iter().map(|field| field.name().as_bytes());
        let header = Header::named(names_in(names, &shown)?);
        Ok(Rows {
            file,
            shown,
            header,
            kinds,
            leaves,
            places: Vec::new(),
            group: 0,
            open: Vec::new(),
            left: 0,
            batch: Vec::new(),
            rows: 0,
            at: 0,
            done: 0,
        })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The columns to read, by their places in order; before the first row.
    pub fn only(&mut self, places: &[usize]) -> Result<()> {
        self.places = places.to_vec();
        for &place in places {
            let column = || format!("column \"{}\" ({})", self.header.names[place], place + 1);
            if let Err(what) = self.kinds[place] {
                return Err(self.wrong(format!(
                    "{} holds {what}, which are not read: make numbers or texts of them, or leave it out of `data.columns`",
                    column()
                )));
            }
            let groups = self.file.metadata().row_groups().iter();
            let mut codecs = groups.filter_map(|group| group.columns().get(self.leaves[place]));
            let unknown = codecs.find_map(|chunk| unread(chunk.compression()));
            if let Some(codec) = unknown {
                return Err(self.wrong(format!(
                    "{} is compressed with {codec}, and what is read is Snappy, gzip, LZ4, or not compressed: write it anew, \
                     with compression=\"snappy\" in most programs",
                    column()
                )));
            }
        }
        Ok(())
    }

    /// Goes on to the next rows; how many those are, 0 at the end. Their cells are in `batch`.
    fn advance(&mut self) -> Result<usize> {
        let advanced = guarded(|| self.read_batch());
        advanced.map_err(|what| self.wrong(what))
    }

    fn read_batch(&mut self) -> Parsed<usize> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(0);
            }
            let group = self.file.get_row_group(self.group)?;
            self.group += 1;
            let rows = usize::try_from(group.metadata().num_rows());
            self.left = rows.map_err(|_| damaged("a group of rows has less than none"))?;
            let readers = self.places.iter().map(|&place| group.get_column_reader(self.leaves[place]));
            self.open = readers.collect::<Parsed<_>>()?;
        }
        let rows = self.left.min((BATCH / self.places.len().max(1)).max(1));
        self.batch.clear();
        for (reader, &place) in self.open.iter_mut().zip(&self.places) {
            let unsigned = self.kinds[place] == Ok(Values::Unsigned);
            self.batch.push(read_column(reader, rows, unsigned)?);
        }
        self.left -= rows;
        Ok(rows)
    }

    /// The next row, as text would have its cells: those of columns that are not used are empty.
    pub fn next_texts(&mut self) -> Result<Option<(u64, Vec<Vec<u8>>)>> {
        if self.at == self.rows {
            (self.rows, self.at) = (self.advance()?, 0);
            if self.rows == 0 {
                return Ok(None);
            }
        }
        let mut row = vec![Vec::new(); self.header.width()];
        for (&place, cells) in self.places.iter().zip(&self.batch) {
            row[place] = cells[self.at].text().into_owned();
        }
        self.at += 1;
        self.done += 1;
        Ok(Some((self.done, row)))
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::input(format!("{}: {what}", self.shown))
    }
}

/// Reads a file, called `file` in messages, by the rules that are for tables of any kind.
pub fn read(path: &Path, file: &str, rules: &Rules) -> Result<Table> {
    let mut rows = Rows::open(path)?;
    // A file of labels, or of folds, is one column, whatever it is called.
    let lone = rules.names.as_ref().is_some_and(|names| names.len() == 1) && rows.header.width() == 1;
    let header = if lone { Header::numbered(1) } else { rows.header.clone() };
    let mut builder = Builder::of_rows(file, rules, header, false)?;
    let places = builder.table.places.clone();
    rows.only(&places)?;
    // What is text in the file is text for `categorical = "auto"`.
    let first = |kind: &std::result::Result<Values, _>| match kind {
        Ok(Values::Texts) => TEXT.to_vec(),
        _ => b"0".to_vec(),
    };
    builder.settle_kinds(rules, &[(1, rows.kinds.iter().map(first).collect())])?;
    let marker = |text: &String| number(text.as_bytes(), false).ok();
    let markers: Vec<f64> = rules.missing.iter().filter_map(marker).collect();
    let is_text = |j: usize| matches!(builder.table.kinds[j], Kind::Levels(_));
    let texts: Vec<bool> = (0..places.len()).map(is_text).collect();
    let (mut row, mut done) = (vec![0.0; places.len()], 0);
    loop {
        let more = rows.advance()?;
        let left = rules.rows.map_or(more, |most| more.min(most - builder.table.rows()));
        if left == 0 {
            return builder.finish();
        }
        if !builder.has_room(left * places.len()) {
            return Err(builder.too_large(done + 1));
        }
        for i in 0..left {
            done += 1;
            for (j, cells) in rows.batch.iter().enumerate() {
                row[j] = match &cells[i] {
                    Cell::Missing => f64::NAN,
                    cell => match cell.number().filter(|v| !texts[j] && v.is_finite()) {
                        Some(value) if !markers.contains(&value) => value,
                        Some(_) => f64::NAN,
                        None => {
                            let text = cell.text();
                            let value = builder.value(j, &text);
                            if let Err(why) = value {
                                builder.refuse(builder.place(done, j, &text, why));
                            }
                            value.unwrap_or(f64::NAN)
                        }
                    },
                };
            }
            builder.add(&row, 1);
        }
        if builder.is_scattered() {
            return Ok(builder.table);
        }
    }
}

/// What a column holds, or in words why it is not read.
fn values_of(field: &Type) -> std::result::Result<Values, &'static str> {
    let info = field.get_basic_info();
    if field.is_group() || info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return Err("nested values");
    }
    match info.logical_type_ref() {
        Some(LogicalType::Date) => return Err("dates"),
        Some(LogicalType::Time(_)) => return Err("times"),
        Some(LogicalType::Timestamp(_)) => return Err("points in time"),
        Some(LogicalType::Decimal(_)) => return Err("decimals"),
        Some(LogicalType::Json) => return Err("JSON"),
        _ => {}
    }
    let signed = match info.converted_type() {
        ConvertedType::DATE => return Err("dates"),
        ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => return Err("times"),
        ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS => return Err("points in time"),
        ConvertedType::DECIMAL => return Err("decimals"),
        ConvertedType::JSON => return Err("JSON"),
        ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
            false
        }
        _ => !matches!(info.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed),
    };
    match field.get_physical_type() {
        Physical::BOOLEAN => Ok(Values::Booleans),
        Physical::INT32 | Physical::INT64 => Ok(if signed { Values::Integers } else { Values::Unsigned }),
        Physical::INT96 => Err("points in time"),
        Physical::FLOAT | Physical::DOUBLE => Ok(Values::Numbers),
        // Some writers do not say that bytes are text; what is none is told when it is met.
        Physical::BYTE_ARRAY => Ok(Values::Texts),
        Physical::FIXED_LEN_BYTE_ARRAY => Err("bytes of a fixed length"),
    }
}

/// The name of a compression that is not built in.
fn unread(compression: Compression) -> Option<&'static str> {
    match compression {
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::LZO => Some("LZO"),
        Compression::ZSTD(_) => Some("Zstandard"),
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::LZ4
        | Compression::LZ4_RAW => None,
    }
}

fn read_column(reader: &mut ColumnReader, rows: usize, unsigned: bool) -> Parsed<Vec<Cell>> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => cells(reader, rows, |v| Cell::Number(f64::from(v))),
        ColumnReader::Int32ColumnReader(reader) if unsigned => {
            cells(reader, rows, |v| Cell::Number(f64::from(v as u32)))
        }
        ColumnReader::Int32ColumnReader(reader) => cells(reader, rows, |v| Cell::Number(f64::from(v))),
        ColumnReader::Int64ColumnReader(reader) if unsigned => {
            cells(reader, rows, |v| Cell::whole(i128::from(v as u64)))
        }
        ColumnReader::Int64ColumnReader(reader) => cells(reader, rows, |v| Cell::whole(i128::from(v))),
        ColumnReader::FloatColumnReader(reader) => cells(reader, rows, |v| Cell::Number(f64::from(v))),
        ColumnReader::DoubleColumnReader(reader) => cells(reader, rows, Cell::Number),
        ColumnReader::ByteArrayColumnReader(reader) => cells(reader, rows, Cell::Text),
        ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
            Err(damaged("a column changes its type"))
        }
    }
}

/// So many cells of a column, all there are of them.
fn cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    cell: impl Fn(T::T) -> Cell,
) -> Parsed<Vec<Cell>> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read < rows {
        return Err(damaged("a column ends before its group of rows does"));
    }
    let mut values = values.into_iter().map(cell);
    // A column that can have no nulls has no levels.
    if levels.is_empty() {
        return Ok(values.collect());
    }
    let one = |level: i16| match level {
        0 => Ok(Cell::Missing),
        _ => values.next().ok_or_else(|| damaged("a column has fewer values than it says")),
    };
    levels.into_iter().map(one).collect()
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// A file of which nothing is asked beyond its end: what a damaged one says of its lengths reserves no memory.
struct Bounded {
    file: File,
    length: u64,
}

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Bounded {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Parsed<Self::T> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parsed<bytes::Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(damaged("it ends before it says"));
        }
        self.file.get_bytes(start, length)
    }
}

thread_local! {
    /// Whether a panic of this thread is an error in the making.
    static GUARDED: Flag<bool> = const { Flag::new(false) };
}

/// The result of the parser in words. It does not promise that no bytes can make it panic: that is an error like others, and nothing
/// is printed of it.
fn guarded<T>(work: impl FnOnce() -> Parsed<T>) -> std::result::Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
    GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    let what = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(ParquetError::External(inner))) => inner.to_string(),
        Ok(Err(ParquetError::General(what) | ParquetError::EOF(what) | ParquetError::NYI(what))) => what,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "what it says does not go together".into(),
    };
    Err(format!("damaged, or not a Parquet file: {}", printable(&what)))
}
