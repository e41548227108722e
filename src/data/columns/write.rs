//! Text, or Parquet, into a column file, a block of rows at a time: what is in memory does not grow with the rows.

use std::collections::HashMap;
use std::io::Read;

use super::super::parquet;
use super::super::records::{Lines, Quotes, Records, Separator};
use super::super::table::Header;
use super::super::text::{Rules, Syntax, header_of, number};
use super::*;
use crate::error::{Error, Result};

/// Of a column with more texts than this that are numbers, numbers are kept and not how they were written.
const MOST_TEXTS: usize = 4096;
/// Cells of a block, and bytes of their texts beyond which it ends.
const BLOCK: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 26;

/// How to read the text, and what to keep of it.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub syntax: Syntax,
    /// `None`: the first line is a header if one of its cells is not a number.
    pub header: Option<bool>,
    pub skip_lines: usize,
    pub comment: Option<u8>,
    /// Whether decimals follow a comma, and not a point.
    pub comma: bool,
    /// Columns whose cells are kept as they were written.
    pub texts: Vec<String>,
    /// Rows of a block, at most.
    pub rows: usize,
}

impl Default for Conversion {
    fn default() -> Self {
        Conversion {
            syntax: Syntax::Delimited(b','),
            header: None,
            skip_lines: 0,
            comment: None,
            comma: false,
            texts: Vec::new(),
            rows: 1 << 16,
        }
    }
}

/// What became of the columns of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    pub rows: u64,
    pub columns: usize,
    /// Those of numbers, of which is kept what they are and not how they were written.
    pub numbers: usize,
}

/// A column in the making.
#[derive(Default)]
struct Column {
    codes: HashMap<Vec<u8>, u32>,
    /// Texts that no block has yet.
    new: Vec<Vec<u8>>,
    /// Texts that are no numbers, of all.
    plain: usize,
    /// Some text begins with a zero that no number needs.
    padded: bool,
    /// Its cells are kept as numbers from here on; never if its texts are asked for.
    numbers: bool,
    kept: bool,
    /// Of the block: codes, or the bits of numbers.
    cells: Vec<u64>,
    rewritten: bool,
    /// Cells of numbers that are none.
    others: u64,
}

impl Column {
    fn add(&mut self, cell: &[u8], comma: bool) -> Option<()> {
        if self.numbers
            && let Ok(value) = number(cell, comma)
        {
            self.rewritten = self.rewritten || shortest(value, comma).as_bytes() != cell;
            self.cells.push(value.to_bits());
            return Some(());
        }
        let code = match self.codes.get(cell) {
            Some(&code) => code,
            None => {
                let code = u32::try_from(self.codes.len()).ok()?;
                self.codes.insert(cell.to_vec(), code);
                self.new.push(cell.to_vec());
                self.plain += usize::from(number(cell, comma).is_err());
                let digits = cell.strip_prefix(b"-").unwrap_or(cell);
                self.padded |= digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
                code
            }
        };
        self.others += u64::from(self.numbers);
        self.cells.push(if self.numbers { TEXT | u64::from(code) } else { u64::from(code) });
        Some(())
    }

    /// Its part of a block, and on to the next.
    fn write(&mut self, out: &mut Vec<u8>) {
        out.extend((self.new.len() as u32).to_le_bytes());
        for text in self.new.drain(..) {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text);
        }
        let rewritten = if std::mem::take(&mut self.rewritten) { REWRITTEN } else { 0 };
        let integer = |bits: &u64| {
            let value = f64::from_bits(*bits);
            f64::from(value as i32).to_bits() == *bits
        };
        match (self.numbers, self.codes.len()) {
            (true, _) if self.cells.iter().all(integer) => {
                out.push(INTEGERS | rewritten);
                self.cells.iter().for_each(|bits| out.extend((f64::from_bits(*bits) as i32).to_le_bytes()));
            }
            (true, _) => {
                out.push(DOUBLES | rewritten);
                self.cells.iter().for_each(|bits| out.extend(bits.to_le_bytes()));
            }
            (false, 0..=0x100) => {
                out.push(CODES_1);
                self.cells.iter().for_each(|code| out.push(*code as u8));
            }
            (false, 0..=0x1_0000) => {
                out.push(CODES_2);
                self.cells.iter().for_each(|code| out.extend((*code as u16).to_le_bytes()));
            }
            (false, _) => {
                out.push(CODES_4);
                self.cells.iter().for_each(|code| out.extend((*code as u32).to_le_bytes()));
            }
        }
        self.cells.clear();
        let many = self.codes.len() > MOST_TEXTS && 2 * self.plain < self.codes.len();
        if !self.numbers && !self.kept && !self.padded && many {
            self.numbers = true;
            // Texts that are numbers will not be asked for again.
            self.codes.shrink_to_fit();
        }
    }
}

/// Blocks on their way out.
struct Blocks<'o> {
    out: &'o mut dyn FnMut(&[u8]) -> Result<()>,
    last: Seal,
}

impl Blocks<'_> {
    fn put(&mut self, kind: u8, content: &[u8]) -> Result<()> {
        self.last = seal(&self.last, &[kind], content);
        let length = (content.len() as u64).to_le_bytes();
        [&[kind][..], &length, content, &self.last].into_iter().try_for_each(&mut self.out)
    }
}

/// Converts `input`, called `file` in messages, piece by piece into `out`.
pub fn convert(
    input: impl Read,
    file: &str,
    conversion: &Conversion,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Converted> {
    let shown = crate::config::printable(file);
    let wrong = |what: String| Error::input(format!("{shown}{what}"));
    let separator = match conversion.syntax {
        Syntax::Delimited(byte) => Separator::Byte(byte),
        Syntax::Whitespace => Separator::Blanks,
        Syntax::Arff => return Err(wrong(": ARFF is not converted; save it as CSV".into())),
    };
    let mut lines = Lines::new(input);
    lines.skip_mark().map_err(|e| wrong(format!(": {e}")))?;
    let mut records = Records::new(lines, separator, Quotes::Double, conversion.comment);
    records.skip(conversion.skip_lines).map_err(|e| wrong(format!(": {e}")))?;
    let rules = Rules { header: conversion.header, comma: conversion.comma, ..Rules::default() };
    let mut maker = Maker::new(out, conversion)?;
    while let Some((place, record)) = records.next().map_err(|fault| fault.in_file(file))? {
        if let (Some(blank), None) = (place.blank, conversion.comment) {
            return Err(wrong(format!(":{blank}: blank line")));
        }
        if maker.columns.is_empty() {
            let (header, is_header) = header_of(&record, &rules, &shown)?;
            maker.begin(&header, &shown)?;
            if is_header {
                continue;
            }
        }
        if record.len() != maker.columns.len() {
            let (line, cells, width) = (place.line, record.len(), maker.columns.len());
            return Err(wrong(format!(":{line}: {cells} cells where {width} are expected")));
        }
        maker.row(record.iter(), &|| format!("{shown}:{}", place.line))?;
    }
    maker.end(&shown)
}

/// Converts the rows of a Parquet file. A null is a cell without text.
pub fn convert_parquet(
    mut rows: parquet::Rows,
    file: &str,
    conversion: &Conversion,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Converted> {
    let shown = crate::config::printable(file);
    let mut maker = Maker::new(out, conversion)?;
    maker.begin(rows.header(), &shown)?;
    rows.only(&(0..rows.header().width()).collect::<Vec<usize>>())?;
    while let Some((number, cells)) = rows.next_texts()? {
        maker.row(cells.iter().map(Vec::as_slice), &|| format!("{shown}: row {number}"))?;
    }
    maker.end(&shown)
}

/// A column file in the making.
struct Maker<'o> {
    blocks: Blocks<'o>,
    conversion: &'o Conversion,
    columns: Vec<Column>,
    content: Vec<u8>,
    /// Rows that the file has, those of the block, and the most that a block may have.
    all: u64,
    rows: u32,
    most: usize,
    /// Of the texts of the block.
    bytes: usize,
}

impl<'o> Maker<'o> {
    fn new(out: &'o mut dyn FnMut(&[u8]) -> Result<()>, conversion: &'o Conversion) -> Result<Self> {
        out(&MAGIC)?;
        out(&VERSION.to_le_bytes())?;
        let blocks = Blocks { out, last: first_seal() };
        let (columns, content) = (Vec::new(), Vec::new());
        Ok(Maker { blocks, conversion, columns, content, all: 0, rows: 0, most: 0, bytes: 0 })
    }

    fn begin(&mut self, header: &Header, shown: &str) -> Result<()> {
        self.most = (BLOCK / header.width().max(1)).clamp(1, self.conversion.rows);
        self.columns.resize_with(header.width(), Column::default);
        for name in &self.conversion.texts {
            let j = header.find(name).map_err(|e| Error::input(format!("{shown}: {e}")))?;
            self.columns[j].kept = true;
        }
        self.blocks.put(NAMES, &names(header, self.conversion.comma))
    }

    fn row<'c>(&mut self, cells: impl Iterator<Item = &'c [u8]>, at: &dyn Fn() -> String) -> Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let too_many = || Error::input(format!("{}: more texts in a column than can be numbered", at()));
            column.add(cell, self.conversion.comma).ok_or_else(too_many)?;
            self.bytes += cell.len();
        }
        (self.rows, self.all) = (self.rows + 1, self.all + 1);
        if self.rows as usize == self.most || self.bytes >= MOST_BYTES {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.content.clear();
        self.content.extend(self.rows.to_le_bytes());
        self.columns.iter_mut().for_each(|column| column.write(&mut self.content));
        (self.rows, self.bytes) = (0, 0);
        self.blocks.put(ROWS, &self.content)
    }

    fn end(mut self, shown: &str) -> Result<Converted> {
        if self.all == 0 {
            return Err(Error::input(format!("{shown}: no rows of data")));
        }
        if self.rows > 0 {
            self.close()?;
        }
        self.content.clear();
        self.content.extend(self.all.to_le_bytes());
        for column in &self.columns {
            self.content.push(u8::from(column.numbers));
            self.content.extend((column.codes.len() as u32).to_le_bytes());
            self.content.extend(column.others.to_le_bytes());
        }
        self.blocks.put(END, &self.content)?;
        let numbers = self.columns.iter().filter(|column| column.numbers).count();
        Ok(Converted { rows: self.all, columns: self.columns.len(), numbers })
    }
}

/// Whether columns are known by their numbers alone, whether decimals followed a comma, and the names.
fn names(header: &Header, comma: bool) -> Vec<u8> {
    let mut content = vec![u8::from(header.numbered), u8::from(comma)];
    content.extend((header.width() as u32).to_le_bytes());
    for name in &header.names {
        content.extend((name.len() as u32).to_le_bytes());
        content.extend(name.as_bytes());
    }
    content
}
