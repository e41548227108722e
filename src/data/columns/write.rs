//! Text into a column file, a block of rows at a time: what is in memory does not grow with the rows.

use std::collections::HashMap;
use std::io::Read;

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
    out(&MAGIC)?;
    out(&VERSION.to_le_bytes())?;
    let mut blocks = Blocks { out, last: first_seal() };
    let (mut columns, mut all, mut rows): (Vec<Column>, u64, u32) = (Vec::new(), 0, 0);
    let mut content = Vec::new();
    let (mut most, mut bytes) = (0, 0);
    while let Some((place, record)) = records.next().map_err(|fault| fault.in_file(file))? {
        if let (Some(blank), None) = (place.blank, conversion.comment) {
            return Err(wrong(format!(":{blank}: blank line")));
        }
        if columns.is_empty() {
            let (header, is_header) = header_of(&record, &rules, &shown)?;
            most = (BLOCK / header.width().max(1)).clamp(1, conversion.rows);
            columns.resize_with(header.width(), Column::default);
            for name in &conversion.texts {
                let j = header.find(name).map_err(|e| wrong(format!(": {e}")))?;
                columns[j].kept = true;
            }
            blocks.put(NAMES, &names(&header, conversion.comma))?;
            if is_header {
                continue;
            }
        }
        if record.len() != columns.len() {
            let (line, cells, width) = (place.line, record.len(), columns.len());
            return Err(wrong(format!(":{line}: {cells} cells where {width} are expected")));
        }
        for (column, cell) in columns.iter_mut().zip(record.iter()) {
            let too_many = || wrong(format!(":{}: more texts in a column than can be numbered", place.line));
            column.add(cell, conversion.comma).ok_or_else(too_many)?;
        }
        (rows, all) = (rows + 1, all + 1);
        bytes += record.iter().map(<[u8]>::len).sum::<usize>();
        if rows as usize == most || bytes >= MOST_BYTES {
            bytes = 0;
            rows_into(&mut blocks, &mut columns, &mut content, std::mem::take(&mut rows))?;
        }
    }
    if all == 0 {
        return Err(wrong(": no rows of data".into()));
    }
    if rows > 0 {
        rows_into(&mut blocks, &mut columns, &mut content, rows)?;
    }
    content.clear();
    content.extend(all.to_le_bytes());
    for column in &columns {
        content.push(u8::from(column.numbers));
        content.extend((column.codes.len() as u32).to_le_bytes());
        content.extend(column.others.to_le_bytes());
    }
    blocks.put(END, &content)?;
    let numbers = columns.iter().filter(|column| column.numbers).count();
    Ok(Converted { rows: all, columns: columns.len(), numbers })
}

fn rows_into(blocks: &mut Blocks, columns: &mut [Column], content: &mut Vec<u8>, rows: u32) -> Result<()> {
    content.clear();
    content.extend(rows.to_le_bytes());
    columns.iter_mut().for_each(|column| column.write(content));
    blocks.put(ROWS, content)
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
