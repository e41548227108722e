//! Delimited text, whitespace-separated text and ARFF into a [`Table`]. What is not clean is refused with its place;
//! nothing is repaired silently.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::blocks::{self, Blocks, Piece, Rows};
use super::collapse::Copies;
use super::records::{Fault, Lines, Quotes, Record, Records, Separator};
use super::table::{Header, Kind, Levels, Table};
use super::{decimal, memory};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::storage::Place;

/// So many bad cells are listed; all are counted.
const LISTED: usize = 10;
/// With `categorical = "auto"`, a column is categorical if one of so many first cells is not a number.
pub(super) const LOOKED_AT: usize = 100;

/// A table that takes more than one in so many parts of the free memory goes to a file: what is prepared of it takes about two more.
pub(super) const SHARE: usize = 4;

/// How to read text.
#[derive(Clone, Debug)]
pub struct Rules {
    pub syntax: Syntax,
    /// `None`: the first line is a header if one of its cells is not a number.
    pub header: Option<bool>,
    /// Column names, instead of a header.
    pub names: Option<Vec<String>>,
    /// Lines to pass over before anything else.
    pub skip_lines: usize,
    /// Lines that begin with this byte are passed over.
    pub comment: Option<u8>,
    /// Cells that mean "missing".
    pub missing: Vec<String>,
    /// The columns to read besides `labels`, `groups`, `weight` and `beside`; `None`: all. What is in the others is not looked at.
    pub columns: Option<Vec<String>>,
    pub categorical: Categorical,
    /// Columns whose cells are texts whatever they look like: targets.
    pub labels: Vec<String>,
    /// Such columns that a file may lack: clusters, strata.
    pub groups: Vec<String>,
    /// A column of numbers that a file may lack.
    pub weight: Option<String>,
    /// More of them: what expressions name.
    pub also: Vec<String>,
    /// Others, that it must have: events, offsets.
    pub beside: Vec<String>,
    /// Characters to cut off the end of the texts of `labels`.
    pub strip: String,
    /// Whether decimals follow a comma, and not a point.
    pub comma: bool,
    /// Read no more rows than this.
    pub rows: Option<usize>,
    /// Of many rows, those that are alike are counted and not kept, where at most one of so many is left.
    pub gather: Option<usize>,
    /// Where the table is to be; left out: in memory as long as that is large enough.
    pub place: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Delimited(u8),
    Whitespace,
    Arff,
}

/// Which columns hold levels.
#[derive(Clone, Debug, PartialEq)]
pub enum Categorical {
    Auto,
    Columns(Vec<String>),
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            syntax: Syntax::Delimited(b','),
            header: None,
            names: None,
            skip_lines: 0,
            comment: None,
            missing: Vec::new(),
            columns: None,
            categorical: Categorical::Columns(Vec::new()),
            labels: Vec::new(),
            groups: Vec::new(),
            weight: None,
            also: Vec::new(),
            beside: Vec::new(),
            strip: String::new(),
            comma: false,
            rows: None,
            gather: None,
            place: None,
        }
    }
}

impl Rules {
    /// The columns to read of a file with this header, in its order.
    pub(super) fn used(&self, header: Header) -> Result<Table> {
        let place = self.place.unwrap_or_default();
        let Some(columns) = &self.columns else {
            let all = (0..header.width()).collect();
            return Ok(Table::new(header, all).placed(place));
        };
        let needed = columns.iter().chain(&self.labels).chain(&self.beside).map(|name| header.find(name));
        let mut places = needed.collect::<Result<Vec<usize>>>()?;
        let optional = self.groups.iter().chain(&self.weight).chain(&self.also);
        places.extend(optional.filter_map(|name| header.find(name).ok()));
        places.sort_unstable();
        places.dedup();
        Ok(Table::new(header, places).placed(place))
    }
}

/// Reads `input`, called `file` in messages.
pub fn read(input: impl Read, file: &str, rules: &Rules) -> Result<Table> {
    read_in_blocks(input, file, rules, blocks::size())
}

/// The same by blocks of so many bytes, which all threads read together; of 0 bytes, line by line.
fn read_in_blocks(input: impl Read, file: &str, rules: &Rules, block: usize) -> Result<Table> {
    let mut lines = Lines::new(input);
    lines.skip_mark().map_err(|e| Error::input(format!("{}: {e}", printable(file))))?;
    match rules.syntax {
        Syntax::Arff => super::arff::read(lines, file, rules),
        Syntax::Delimited(delimiter) => {
            Reader::new(lines, file, rules, Separator::Byte(delimiter)).in_blocks(block).read()
        }
        Syntax::Whitespace => Reader::new(lines, file, rules, Separator::Blanks).in_blocks(block).read(),
    }
}

/// A reader half way through a file.
pub(super) struct Reader<'a, R: Read> {
    records: Records<R>,
    rules: &'a Rules,
    builder: Builder,
    separator: Separator,
    blocks: Blocks,
}

/// A table in the making, with what is wrong so far.
pub(super) struct Builder {
    pub(super) table: Table,
    missing: Vec<Vec<u8>>,
    strip: Vec<u8>,
    pub(super) comma: bool,
    /// Places of the columns that `strip` is for.
    labels: Vec<usize>,
    /// The only texts that a column may have, where the file declares them.
    declared: Vec<Option<HashSet<Vec<u8>>>>,
    /// So many cells fit into memory.
    room: usize,
    /// The table may leave the memory for a file.
    may_move: bool,
    pub(super) file: String,
    /// Rows have numbers, and no lines.
    by_rows: bool,
    /// Rows that are alike may be counted, see [`Rules::gather`].
    gather: Option<usize>,
    /// The row in the making.
    cells_of_row: Vec<f64>,
    bad: Vec<String>,
    bad_count: usize,
}

impl<'a, R: Read> Reader<'a, R> {
    pub(super) fn new(lines: Lines<R>, file: &str, rules: &'a Rules, separator: Separator) -> Self {
        let quotes = if rules.syntax == Syntax::Arff { Quotes::Arff } else { Quotes::Double };
        let records = Records::new(lines, separator, quotes, rules.comment);
        Reader { records, rules, builder: Builder::new(file, rules), separator, blocks: Blocks::new(0) }
    }

    /// By blocks of so many bytes, where all rows are wanted.
    fn in_blocks(mut self, size: usize) -> Self {
        self.blocks = Blocks::new(if self.rules.rows.is_none() { size } else { 0 });
        self
    }

    /// For a file whose columns are known, each a number or one of the texts that are declared.
    pub(super) fn with(mut self, header: Header, declared: Vec<Option<HashSet<Vec<u8>>>>) -> Result<Self> {
        let builder = &mut self.builder;
        builder.use_columns(self.rules, header)?;
        builder.declared = builder.table.places.iter().map(|&j| declared[j].clone()).collect();
        for (kind, _) in builder.table.kinds.iter_mut().zip(&builder.declared).filter(|(_, d)| d.is_some()) {
            *kind = Kind::Levels(Levels::default());
        }
        builder.settle_labels(self.rules)?;
        Ok(self)
    }

    pub(super) fn read(self) -> Result<Table> {
        let Reader { mut records, rules, mut builder, separator, mut blocks } = self;
        let file = builder.file.clone();
        let broken = |fault: Fault| fault.in_file(&file);
        let mut looked_at: Vec<(u64, Vec<Vec<u8>>)> = Vec::new();
        let known = builder.table.header.width() > 0;
        let (mut first, mut started) = (!known, known);
        records.skip(rules.skip_lines).map_err(|e| broken(e.into()))?;
        loop {
            while started && blocks.are_due(&records) {
                let pieces = blocks.next(&mut records, |text| builder.pieces(text, separator, rules.comment));
                match pieces.map_err(|e| broken(e.into()))? {
                    Some(pieces) => pieces.into_iter().for_each(|piece| builder.append(piece)),
                    None => break,
                }
                if builder.is_scattered() {
                    return Ok(builder.table);
                }
            }
            let Some((place, record)) = records.next().map_err(broken)? else { break };
            // A lone blank line is a missing value to one reader and nothing to another: ask instead of guessing. With
            // comments, it may be one of those.
            if let (Some(blank), None) = (place.blank, rules.comment) {
                builder.refuse(format!("{file}:{blank}: blank line"));
            }
            if std::mem::take(&mut first) && builder.name_columns(rules, &record)? {
                continue;
            }
            if started {
                builder.row(place.line, record.len(), |j| record.cell(j));
                if builder.is_scattered() {
                    return Ok(builder.table);
                }
            } else {
                // Kinds of columns are settled on the first rows, which then are read like all others.
                looked_at.push((place.line, record.to_vec()));
                started = looked_at.len() >= LOOKED_AT || rules.categorical != Categorical::Auto;
                if started {
                    builder.settle(rules, &mut looked_at)?;
                }
            }
            if rules.rows.is_some_and(|rows| builder.table.rows() >= rows) {
                break;
            }
            if builder.is_full() {
                return Err(builder.too_large(place.line));
            }
        }
        if !started && !first {
            builder.settle(rules, &mut looked_at)?;
        }
        let mut table = builder.finish()?;
        if let Some(rows) = rules.rows {
            table.truncate(rows);
        }
        Ok(table)
    }
}

impl Builder {
    /// The rows of a block, if there is nothing to say of them and they fit into memory; what does not is found out row by row.
    fn pieces(&mut self, text: &[u8], separator: Separator, comment: Option<u8>) -> Option<Vec<Piece>> {
        let Builder { table, missing, strip, comma, labels, .. } = self;
        let pieces = Rows { table, missing, strip, comma: *comma, labels, separator, comment }.parse(text)?;
        let cells = pieces.iter().map(|piece| piece.cells.len()).sum::<usize>();
        self.has_room(cells).then_some(pieces)
    }

    fn append(&mut self, piece: Piece) {
        self.add(&piece.cells, piece.rows);
    }

    /// So many rows, below the others or among their likes.
    pub(super) fn add(&mut self, cells: &[f64], rows: usize) {
        let table = &mut self.table;
        if let Some(copies) = &mut table.copies {
            let rows = cells.chunks_exact(table.names.len());
            rows.take_while(|row| copies.add(row, &mut table.cells)).for_each(drop);
            table.rows = copies.counts.len();
            return;
        }
        table.cells.extend_from_slice(cells);
        table.rows += rows;
        if let Some(times) = self.gather.filter(|_| table.rows >= Copies::FROM && !table.names.is_empty()) {
            self.gather = None;
            table.gather(times);
        }
    }

    /// More rows differ than was thought: the table is of no use.
    pub(super) fn is_scattered(&self) -> bool {
        self.table.is_scattered()
    }

    /// For rows that are no lines of text, of a table with these columns.
    pub(super) fn of_rows(file: &str, rules: &Rules, header: Header, comma: bool) -> Result<Builder> {
        let mut builder = Builder { by_rows: true, comma, ..Builder::new(file, rules) };
        let width = header.width();
        let header = match &rules.names {
            Some(names) if names.len() == width && header.numbered => Header::named(names.clone()),
            Some(names) if names.len() != width => return Err(builder.names_differ(width, names.len())),
            Some(_) => {
                let message = "the file has names for its columns: leave `data.names` out";
                return Err(Error::input(format!("{}: {message}", builder.file)));
            }
            None => header,
        };
        builder.use_columns(rules, header)?;
        Ok(builder)
    }

    fn names_differ(&self, width: usize, given: usize) -> Error {
        let message = format!("{}: {width} cells a row, and `data.names` has {given} names", self.file);
        Error::input(message)
    }

    /// Whether so many more cells fit where the table is. One that would take much of the memory goes to a file, if it may.
    pub(super) fn has_room(&mut self, more: usize) -> bool {
        let cells = self.table.cells.len().saturating_add(more);
        if self.table.cells.place() == Place::File {
            return self.table.cells.try_reserve(more).is_ok();
        }
        if self.may_move && cells > self.room / SHARE {
            // Without a place for files the table stays where it is.
            self.may_move = false;
            if self.table.cells.move_to_file().is_ok() {
                return self.has_room(more);
            }
        }
        cells <= self.room && self.table.cells.try_reserve(more).is_ok()
    }

    pub(super) fn is_label(&self, j: usize) -> bool {
        self.labels.contains(&j)
    }

    /// Names from the config, the first line or thin air; true if the first line was a header.
    fn name_columns(&mut self, rules: &Rules, record: &Record) -> Result<bool> {
        let width = record.len();
        let (header, is_header) = match &rules.names {
            Some(names) if names.len() == width => {
                (Header::named(names.clone()), rules.header.unwrap_or(false))
            }
            Some(names) => return Err(self.names_differ(width, names.len())),
            None => header_of(record, rules, &self.file)?,
        };
        self.use_columns(rules, header)?;
        Ok(is_header)
    }

    fn use_columns(&mut self, rules: &Rules, header: Header) -> Result<()> {
        self.table = rules.used(header).map_err(|e| self.in_file(e))?;
        self.declared = vec![None; self.table.width()];
        Ok(())
    }

    fn settle(&mut self, rules: &Rules, looked_at: &mut Vec<(u64, Vec<Vec<u8>>)>) -> Result<()> {
        self.settle_kinds(rules, looked_at)?;
        for (line, cells) in looked_at.drain(..) {
            self.row(line, cells.len(), |j| &cells[j]);
        }
        Ok(())
    }

    /// Adds a row, or notes what is wrong with it. Cells that are not used are only counted.
    fn row<'c>(&mut self, line: u64, len: usize, cell: impl Fn(usize) -> &'c [u8]) {
        let width = self.table.header.width();
        if len != width {
            self.refuse(format!("{}:{line}: {len} cells where {width} are expected", self.file));
            return;
        }
        let mut row = std::mem::take(&mut self.cells_of_row);
        row.clear();
        for j in 0..self.table.width() {
            let cell = cell(self.table.places[j]);
            let value = self.value(j, cell);
            row.push(value.unwrap_or(f64::NAN));
            if let Err(why) = value {
                self.refuse(self.place(line, j, cell, why));
            }
        }
        self.add(&row, 1);
        self.cells_of_row = row;
    }

    fn new(file: &str, rules: &Rules) -> Self {
        Builder {
            table: Table::default(),
            missing: rules.missing.iter().map(|m| m.as_bytes().to_vec()).collect(),
            strip: rules.strip.as_bytes().to_vec(),
            comma: rules.comma,
            labels: Vec::new(),
            declared: Vec::new(),
            room: memory::room(),
            may_move: rules.place.is_none(),
            file: printable(file),
            by_rows: false,
            gather: rules.gather,
            cells_of_row: Vec::new(),
            bad: Vec::new(),
            bad_count: 0,
        }
    }

    /// Which columns hold levels: those the config says, or those that look it.
    pub(super) fn settle_kinds(&mut self, rules: &Rules, first: &[(u64, Vec<Vec<u8>>)]) -> Result<()> {
        let texts: HashSet<usize> = match &rules.categorical {
            Categorical::Columns(columns) => {
                let places = columns.iter().map(|c| self.table.header.find(c)).collect::<Result<_>>();
                places.map_err(|e| self.in_file(e))?
            }
            Categorical::Auto => {
                let is_number = |c: &Vec<u8>| number(c, self.comma).is_ok();
                // What marks a missing value elsewhere makes no text of numbers: their reader asks for the marker to be named.
                let is_text =
                    |c: &Vec<u8>| !self.is_missing(c) && !is_number(c) && !c.is_empty() && !is_marker(c);
                let has_text = |j: &usize| first.iter().any(|(_, cells)| cells.get(*j).is_some_and(is_text));
                self.table.places.iter().copied().filter(has_text).collect()
            }
        };
        for (kind, place) in self.table.kinds.iter_mut().zip(&self.table.places) {
            if texts.contains(place) {
                *kind = Kind::Levels(Levels::default());
            }
        }
        self.settle_labels(rules)
    }

    /// Columns of names, whatever they look like.
    fn settle_labels(&mut self, rules: &Rules) -> Result<()> {
        let labels = rules.labels.iter().map(|c| self.table.find(c)).collect::<Result<Vec<_>>>();
        self.labels = labels.map_err(|e| self.in_file(e))?;
        let groups: Vec<usize> = rules.groups.iter().filter_map(|c| self.table.find(c).ok()).collect();
        for &j in self.labels.iter().chain(&groups) {
            self.table.kinds[j] = Kind::Levels(Levels::default());
        }
        Ok(())
    }

    fn in_file(&self, error: Error) -> Error {
        Error::input(format!("{}: {error}", self.file))
    }

    fn is_missing(&self, cell: &[u8]) -> bool {
        self.missing.iter().any(|m| m == cell)
    }

    pub(super) fn value(&mut self, j: usize, cell: &[u8]) -> std::result::Result<f64, &'static str> {
        if self.is_missing(cell) {
            return Ok(f64::NAN);
        }
        match &mut self.table.kinds[j] {
            Kind::Number => number(cell, self.comma),
            Kind::Levels(_) if cell.is_empty() => {
                Err("is a missing value; `data.missing` says what to do with those")
            }
            Kind::Levels(levels) => {
                std::str::from_utf8(cell).map_err(|_| "is not valid UTF-8")?;
                let kept = |b: &u8| !self.labels.contains(&j) || !self.strip.contains(b);
                let end = cell.iter().rposition(kept).map_or(0, |last| last + 1);
                let known = |texts: &HashSet<Vec<u8>>| texts.contains(cell) || texts.contains(&cell[..end]);
                if !self.declared[j].as_ref().is_none_or(known) {
                    return Err("is not among the values that its @attribute declares");
                }
                let is_label = self.labels.contains(&j);
                let text =
                    if is_label { pointed(&cell[..end], self.comma) } else { Cow::Borrowed(&cell[..end]) };
                Ok(levels.code(&text) as f64)
            }
        }
    }

    pub(super) fn place(&self, line: u64, j: usize, cell: &[u8], why: &str) -> String {
        let text = clip(&printable(&String::from_utf8_lossy(cell)));
        let name = printable(&self.table.names[j]);
        format!("{}: column \"{name}\" ({}): \"{text}\" {why}", self.at(line), self.table.places[j] + 1)
    }

    /// A line of the file, or a row of it.
    fn at(&self, line: u64) -> String {
        if self.by_rows { format!("{}: row {line}", self.file) } else { format!("{}:{line}", self.file) }
    }

    pub(super) fn refuse(&mut self, message: String) {
        self.bad_count += 1;
        if self.bad.len() < LISTED {
            self.bad.push(message);
        }
    }

    /// Whether there is no room for another row.
    fn is_full(&mut self) -> bool {
        let width = self.table.width();
        !self.has_room(0) || self.table.cells.try_reserve(width).is_err()
    }

    /// What has been read fills the memory, and there is more.
    pub(super) fn too_large(&self, line: u64) -> Error {
        Error::input(format!(
            "{}: {} rows x {} columns are all that fits into the free memory, {}; `data.columns` says which columns \
             to read, `data.rows` how many rows",
            self.at(line),
            self.table.rows(),
            self.table.width(),
            memory::shown(self.room)
        ))
    }

    pub(super) fn finish(self) -> Result<Table> {
        if self.bad_count > 0 {
            let mut message = self.bad.join("\n");
            if self.bad_count > self.bad.len() {
                message += &format!("\n{}: {} errors in all", self.file, self.bad_count);
            }
            return Err(Error::input(message));
        }
        if self.table.rows() == 0 {
            return Err(Error::input(format!("{}: no rows of data", self.file)));
        }
        Ok(self.table)
    }
}

/// Names of the columns by the first record, or numbers; and whether it has names.
pub(super) fn header_of(record: &Record, rules: &Rules, file: &str) -> Result<(Header, bool)> {
    match rules.header.unwrap_or_else(|| looks_like_header(record, rules)) {
        true => Ok((Header::named(names_in(record.iter(), &format!("{file}:1"))?), true)),
        false => Ok((Header::numbered(record.len()), false)),
    }
}

/// The names of columns, each another; `at`: where they stand.
pub(super) fn names_in<'c>(cells: impl Iterator<Item = &'c [u8]>, at: &str) -> Result<Vec<String>> {
    let at = |j: usize, what: String| Error::input(format!("{at}: column {}: {what}", j + 1));
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for (j, cell) in cells.enumerate() {
        let name = std::str::from_utf8(cell).map_err(|_| at(j, "its name is not valid UTF-8".into()))?;
        if name.is_empty() || name.contains('\0') {
            return Err(at(j, "it has no name".into()));
        }
        if let Some(twin) = places.insert(printable(name), j) {
            let message = format!("the name \"{}\" is that of column {} too", printable(name), twin + 1);
            return Err(at(j, message));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// A first line with a cell that no one would take for a number, good or bad.
fn looks_like_header(record: &Record, rules: &Rules) -> bool {
    let marker = |cell: &[u8]| {
        matches!(cell, b"?" | b"NA" | b"na" | b".") || rules.missing.iter().any(|m| m.as_bytes() == cell)
    };
    record.iter().any(|cell| {
        let cell = &*pointed(cell, rules.comma);
        let text = String::from_utf8_lossy(cell);
        !text.is_empty() && text.parse::<f64>().is_err() && !marker(cell) || text.contains('\0')
    })
}

/// A cell with a point for the comma before its decimals, where it is a number that is written so.
pub(super) fn pointed(cell: &[u8], comma: bool) -> Cow<'_, [u8]> {
    if !comma || number(cell, true).is_err() {
        return Cow::Borrowed(cell);
    }
    Cow::Owned(cell.iter().map(|b| if *b == b',' { b'.' } else { *b }).collect())
}

/// A finite number, with a comma before its decimals, or a point.
pub(super) fn number(cell: &[u8], comma: bool) -> std::result::Result<f64, &'static str> {
    if comma && cell.contains(&b',') {
        let pointed: Vec<u8> = cell.iter().map(|b| if *b == b',' { b'.' } else { *b }).collect();
        return with_point(&pointed);
    }
    if comma && cell.contains(&b'.') && with_point(cell).is_ok() {
        return Err("has a point before its decimals, and `data.decimal` is a comma");
    }
    with_point(cell)
}

/// What is known to stand for a missing value, unless somebody says that it does not.
fn is_marker(cell: &[u8]) -> bool {
    matches!(cell, b"?" | b"NA" | b"na" | b"." | b"NaN" | b"nan")
}

/// A finite number. `f64::from_str` also takes `nan`, `inf` and literals that overflow to infinity.
fn with_point(cell: &[u8]) -> std::result::Result<f64, &'static str> {
    if let Some(value) = decimal::short(cell) {
        return Ok(value);
    }
    if cell.is_empty() {
        return Err("is a missing value; `data.missing` says what to do with those");
    }
    if is_marker(cell) {
        return Err("marks a missing value; name the marker in `data.missing_values`");
    }
    let text = std::str::from_utf8(cell).map_err(|_| "is not valid UTF-8")?;
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        Ok(_) => Err("is not a finite number"),
        Err(_) if text.contains(['\t', ';']) => {
            Err("is not a number; `data.delimiter` says what separates cells")
        }
        Err(_) if text.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            Err("is not a number; `data.decimal = \",\"` reads decimals that follow a comma")
        }
        Err(_) => Err(
            "is not a number; `data.categorical` names columns of text, `data.columns` the only ones to use",
        ),
    }
}

pub(super) fn clip(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8], rules: Rules) -> std::result::Result<Table, String> {
        read(text, "t.csv", &rules).map_err(|e| e.to_string())
    }

    fn values(text: &[u8]) -> Vec<f64> {
        parse(text, Rules::default()).unwrap().cells.to_vec()
    }

    fn error(text: &[u8]) -> String {
        parse(text, Rules::default()).unwrap_err()
    }

    /// Lines of many kinds, good and bad, in any order: table and message are those of the reader that goes line by line.
    #[test]
    fn blocks_of_any_size_are_read_as_lines_are() {
        let lines = [
            "1,2,u",
            "3.5,-4e3,v",
            "5, 6 ,u",
            "7,8,w",
            "\"9\",10,\"u\"",
            "",
            "11,x,u",
            "1,2",
            "# 1,2,3",
            "12,?,v.",
            "13,14,u\r",
            "15,16,\"a\nb\"",
            "17,1e400,v",
            "18,19,",
        ];
        let rules = Rules {
            categorical: Categorical::Columns(vec!["c".into()]),
            labels: vec!["c".into()],
            strip: ".".into(),
            missing: vec!["?".into()],
            ..Rules::default()
        };
        let commented = Rules { comment: Some(b'#'), ..rules.clone() };
        let few = Rules { rows: Some(7), ..rules.clone() };
        let used = Rules { columns: Some(vec!["b".into()]), ..rules.clone() };
        let mut compared = 0;
        for case in 0..400usize {
            let good = case % 3 != 0;
            let mut text = String::from("a,b,c\n");
            for k in 0..40 {
                let pick = (case * 7919 + k * (104_729 + case)) % 97;
                text += lines[if good { pick % 4 } else { pick % lines.len() }];
                text.push('\n');
            }
            if case % 5 == 0 {
                text.pop();
            }
            for rules in [&rules, &commented, &few, &used] {
                let parts = |table: Table| {
                    let levels = |kind: &Kind| match kind {
                        Kind::Number => Vec::new(),
                        Kind::Levels(levels) => levels.names().to_vec(),
                    };
                    let bits: Vec<u64> = table.cells.iter().map(|cell| cell.to_bits()).collect();
                    (table.rows, bits, table.kinds.iter().map(levels).collect::<Vec<_>>())
                };
                let read = |block| {
                    let table = read_in_blocks(text.as_bytes(), "t", rules, block);
                    table.map(parts).map_err(|e| e.to_string())
                };
                let expected = read(0);
                for block in [1, 5, 16, 64, 200, 4096] {
                    assert_eq!(read(block), expected, "{block} bytes of {text}");
                }
                compared += usize::from(expected.is_ok());
            }
        }
        assert!(compared > 1000, "{compared} tables were good");
    }

    #[test]
    fn clean_forms_read_alike() {
        let clean = values(b"a,b\n1,2\n3,4\n");
        assert_eq!(clean, [1.0, 2.0, 3.0, 4.0]);
        let forms: [&[u8]; 8] = [
            b"a,b\r\n1,2\r\n3,4\r\n",
            b"a,b\n1,2\n3,4",
            b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
            b"\xef\xbb\xbf\"a\",b\n1,2\n3,4\n",
            b"\"a\",\"b\"\n\"1\",\"2\"\n3,4\n",
            b"a , b\n 1, 2 \n3,4\n",
            b"1,2\n3,4\n",
            b"a,b\n1,2\n3,4\n\n",
        ];
        for form in forms {
            assert_eq!(values(form), clean, "{}", String::from_utf8_lossy(form));
        }
        let spaces = Rules { syntax: Syntax::Whitespace, ..Rules::default() };
        assert_eq!(parse(b"  1\t 2 \r\n3  4\n", spaces).unwrap().cells, clean);
    }

    #[test]
    fn levels_are_coded_and_markers_are_missing() {
        let rules = Rules {
            categorical: Categorical::Auto,
            missing: vec!["?".into()],
            labels: vec!["y".into()],
            strip: ".".into(),
            comment: Some(b'|'),
            ..Rules::default()
        };
        let table = parse(b"|junk\nsex,age,y\nm,1,0\nf,?,1.\n?,3,1\n", rules).unwrap();
        assert_eq!(table.rows(), 3);
        assert!(matches!(&table.kinds[0], Kind::Levels(l) if l.names() == ["m", "f"]));
        assert_eq!(table.kinds[1], Kind::Number);
        assert!(matches!(&table.kinds[2], Kind::Levels(l) if l.names() == ["0", "1"]));
        assert_eq!(table.column(2).collect::<Vec<_>>(), [0.0, 1.0, 1.0]);
        assert!(table.column(0).nth(2).unwrap().is_nan() && table.column(1).nth(1).unwrap().is_nan());
    }

    #[test]
    fn names_skipped_lines_and_row_limits() {
        let rules = Rules {
            names: Some(vec!["a".into(), "b".into()]),
            skip_lines: 1,
            rows: Some(1),
            ..Rules::default()
        };
        let table = parse(b"junk\n1,2\n3,4\n", rules).unwrap();
        assert_eq!((table.names, table.cells), (vec!["a".to_owned(), "b".to_owned()], vec![1.0, 2.0].into()));
    }

    #[test]
    fn only_the_columns_that_are_used_are_read() {
        let text = b"id,a,note,b,w\nq,1,\xff,3,5\nr,2,,4,6\n";
        let used = |columns: &[&str]| Rules {
            columns: Some(columns.iter().map(|c| c.to_string()).collect()),
            weight: Some("w".into()),
            ..Rules::default()
        };
        let table = parse(text, used(&["b", "2"])).unwrap();
        assert_eq!(table.names, ["a", "b", "w"], "in the order of the file");
        assert_eq!((table.rows(), &table.cells[..]), (2, &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0][..]));
        let places = ["2", "a", "4", "b"].map(|name| table.find(name).unwrap());
        assert_eq!(places, [0, 0, 1, 1], "numbers are those of the file");
        let bare = Rules { header: Some(false), ..used(&["3", "x1"]) };
        let blanks = Rules { syntax: Syntax::Whitespace, ..bare };
        assert_eq!(parse(b"1 a 3\n4 b 6\n", blanks).unwrap().cells, [1.0, 3.0, 4.0, 6.0]);
        let auto = Rules { categorical: Categorical::Auto, ..used(&["a"]) };
        assert_eq!(parse(text, auto).unwrap().kinds, [Kind::Number, Kind::Number]);
        let error = |text: &[u8], columns: &[&str]| parse(text, used(columns)).unwrap_err();
        assert!(
            error(text, &["notes"])
                .contains("t.csv: the data have no column \"notes\"; did you mean \"note\"?")
        );
        assert!(error(text, &["6"]).contains("no column \"6\""));
        assert!(error(b"a,b\n1,x\n2\n", &["a"]).contains("t.csv:3: 1 cells where 2 are expected"));
        assert!(error(text, &["id"]).starts_with("t.csv:2: column \"id\" (1): \"q\" is not a number"));
    }

    #[test]
    fn a_table_ends_with_the_memory() {
        let rules = Rules::default();
        let mut reader =
            Reader::new(Lines::new(&b"a,b\n1,2\n3,4\n5,6\n"[..]), "t.csv", &rules, Separator::Byte(b','));
        (reader.builder.room, reader.builder.may_move) = (3, false);
        let error = reader.read().unwrap_err().to_string();
        assert!(error.starts_with("t.csv:3: 2 rows x 2 columns are all that fits"), "{error}");
    }

    #[test]
    fn bad_cells_are_named_by_line_and_column() {
        assert!(
            error(b"a,b\n1,2\n3,abc\n").starts_with("t.csv:3: column \"b\" (2): \"abc\" is not a number")
        );
        assert!(error(b"1,2\n3,\n").starts_with("t.csv:2: column \"x2\" (2): \"\" is a missing value"));
        for (cell, why) in [
            ("nan", "marks a missing value"),
            ("?", "marks a missing value"),
            ("inf", "is not a finite number"),
            ("1e400", "is not a finite number"),
            ("0x10", "is not a number"),
            ("1;5", "is not a number"),
        ] {
            let expected = format!("t.csv:3: column \"a\" (1): \"{cell}\" {why}");
            assert!(error(format!("a\n1\n{cell}\n").as_bytes()).starts_with(&expected), "{cell}");
        }
        assert!(error(b"a\n\xff\n").contains("not valid UTF-8"));
        assert!(!error(b"a\n\x1b]0;x\x07\n").contains('\x1b'));
    }

    #[test]
    fn broken_tables_are_refused() {
        assert!(error(b"a,b\n1,2\n3\n").contains("t.csv:3: 1 cells where 2 are expected"));
        assert!(error(b"a,a\n1,2\n").contains("the name \"a\" is that of column 1 too"));
        assert!(error(b"a,\n1,2\n").contains("it has no name"));
        assert!(error(b"a,b\n").contains("no rows of data"));
        assert!(error(b"a\n1\n\n2\n").contains("t.csv:3: blank line"));
        assert!(error(b"a\n\n\n1\n2\n").contains("blank line"));
        assert!(error(b"a,b\n\"1,2\n3,4\n").contains("t.csv:2"));
        let many = "x\n".repeat(30);
        assert!(error(format!("a\n{many}").as_bytes()).ends_with("30 errors in all"));
    }
}
