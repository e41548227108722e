//! A column file into a table: block after block, by the rules that text is read by.

use std::borrow::Cow;
use std::io::Read;

use super::super::sealed::Bytes;
use super::super::table::{Header, Kind, MOST_COLUMNS, Table};
use super::super::text::{Builder, LOOKED_AT, Rules, number};
use super::*;
use crate::config::printable;
use crate::error::{Error, Result};

/// A block is not longer than this: it ends with the line that makes its texts 64 MiB or more, and no line has more than that.
const LONGEST: u64 = 1 << 28;

/// What was read of a column.
#[derive(Default)]
struct Column {
    texts: Vec<Vec<u8>>,
    /// What they are by the rules, once one is met.
    values: Vec<Option<std::result::Result<f64, &'static str>>>,
}

/// Cells of a column in a block.
#[derive(Default)]
enum Cells {
    Codes(Vec<u32>),
    /// Numbers, and whether how they were written is not known.
    Numbers(Vec<f64>, bool),
    #[default]
    Unread,
}

/// Reads `input`, called `file` in messages, by the rules that are for tables of any kind.
pub fn read(input: impl Read, file: &str, rules: &Rules) -> Result<Table> {
    let shown = printable(file);
    let wrong = |what: &str| Error::input(format!("{shown}: {what}"));
    let mut source = Source { input, last: first_seal(), content: Vec::new() };
    source.begin().map_err(|what| wrong(&what))?;
    let damaged = || wrong("damaged: a block does not say what it should");
    let (kind, content) = source.block().map_err(|what| wrong(&what))?;
    let (header, comma) = (kind == NAMES).then(|| names(content)).flatten().ok_or_else(damaged)?;
    let mut columns: Vec<Column> = Vec::new();
    columns.resize_with(header.width(), Column::default);
    let mut builder = Builder::of_rows(file, rules, header, comma)?;
    let (mut done, mut settled) = (0u64, false);
    loop {
        let (kind, content) = source.block().map_err(|what| wrong(&what))?;
        match kind {
            ROWS => {
                let places = &builder.table.places;
                let (rows, cells) = block(content, &mut columns, places).ok_or_else(damaged)?;
                if !std::mem::replace(&mut settled, true) {
                    let looked_at = first_rows(rows.min(LOOKED_AT), &columns, &cells, comma);
                    builder.settle_kinds(rules, &looked_at)?;
                }
                let left = rules.rows.map_or(usize::MAX, |most| most.saturating_sub(builder.table.rows()));
                add(&mut builder, &mut columns, &cells, rows.min(left), done, rules)?;
                if builder.is_scattered() {
                    return Ok(builder.table);
                }
                done += rows as u64;
                if rules.rows.is_some_and(|most| builder.table.rows() >= most) {
                    return builder.finish();
                }
            }
            END if content.get(..8) == Some(&done.to_le_bytes()[..]) => break,
            _ => return Err(damaged()),
        }
    }
    let more = std::io::copy(&mut source.input, &mut std::io::sink()).map_err(|e| wrong(&e.to_string()))?;
    if more > 0 {
        return Err(wrong(&format!("{more} bytes follow the end of the table")));
    }
    builder.finish()
}

/// The first `rows` rows of a block into the table.
fn add(
    builder: &mut Builder,
    columns: &mut [Column],
    cells: &[Cells],
    rows: usize,
    done: u64,
    rules: &Rules,
) -> Result<()> {
    let places = builder.table.places.clone();
    if !builder.has_room(rows * places.len()) {
        return Err(builder.too_large(done + 1));
    }
    let marker = |text: &String| number(text.as_bytes(), builder.comma).ok();
    let markers: Vec<f64> = rules.missing.iter().filter_map(marker).collect();
    let is_text = |j: usize| matches!(builder.table.kinds[j], Kind::Levels(_));
    let texts: Vec<bool> = (0..places.len()).map(is_text).collect();
    let mut row = vec![0.0; places.len()];
    for i in 0..rows {
        for (j, &place) in places.iter().enumerate() {
            let (column, cells) = (&mut columns[place], &cells[place]);
            let (text, value) = match cells {
                Cells::Numbers(values, _) if !values[i].is_nan() => {
                    if !texts[j] && !markers.contains(&values[i]) {
                        row[j] = values[i];
                        continue;
                    }
                    // A response is the number that its text stands for, however that is written.
                    let label = builder.is_label(j) && !markers.contains(&values[i]);
                    if matches!(cells, Cells::Numbers(_, true)) && !label {
                        return Err(unknown(builder, j));
                    }
                    let text = shortest(values[i], builder.comma).into_bytes();
                    let value = builder.value(j, &text);
                    (Cow::Owned(text), value)
                }
                _ => {
                    let code = cells.code(i);
                    let text = &column.texts[code];
                    let value = *column.values[code].get_or_insert_with(|| builder.value(j, text));
                    (Cow::Borrowed(text), value)
                }
            };
            row[j] = value.unwrap_or(f64::NAN);
            if let Err(why) = value {
                let message = builder.place(done + i as u64 + 1, j, &text, why);
                builder.refuse(message);
            }
        }
        builder.add(&row, 1);
    }
    Ok(())
}

/// How numbers were written matters, and is not known.
fn unknown(builder: &Builder, j: usize) -> Error {
    let name = printable(&builder.table.names[j]);
    Error::input(format!(
        "{}: column \"{name}\" has many numbers, of which the file does not say how they were written, and that matters where they are \
         texts, or mark missing values; `npl convert --text {name}` keeps it",
        builder.file
    ))
}

impl Cells {
    /// The place of the text of cell i.
    fn code(&self, i: usize) -> usize {
        match self {
            Cells::Codes(codes) => codes[i] as usize,
            Cells::Numbers(values, _) => (values[i].to_bits() & !TEXT) as usize,
            Cells::Unread => unreachable!("used columns are read"),
        }
    }
}

/// Texts of the first rows of a block, of all columns: kinds are settled on them.
fn first_rows(rows: usize, columns: &[Column], cells: &[Cells], comma: bool) -> Vec<(u64, Vec<Vec<u8>>)> {
    let text = |column: &Column, cells: &Cells, i: usize| match cells {
        Cells::Unread => Vec::new(),
        Cells::Numbers(values, _) if !values[i].is_nan() => shortest(values[i], comma).into_bytes(),
        cells => column.texts[cells.code(i)].clone(),
    };
    let row = |i: usize| columns.iter().zip(cells).map(|(column, cells)| text(column, cells, i)).collect();
    (0..rows).map(|i| (i as u64 + 1, row(i))).collect()
}

fn text<'b>(bytes: &mut Bytes<'b>) -> Option<&'b [u8]> {
    let length = bytes.number()?;
    bytes.take(length)
}

/// What a block of names says: the header, and whether decimals followed a comma.
fn names(content: &[u8]) -> Option<(Header, bool)> {
    let mut bytes = Bytes(content);
    let (numbered, comma, width) = (bytes.byte()?, bytes.byte()?, bytes.number()?);
    if !(1..=MOST_COLUMNS).contains(&width) {
        return None;
    }
    let name = |_| Some(std::str::from_utf8(text(&mut bytes)?).ok()?.to_owned());
    let names = (0..width).map(name).collect::<Option<Vec<String>>>()?;
    let header = if numbered == 1 { Header::numbered(width) } else { Header::named(names) };
    let mut distinct: Vec<&String> = header.names.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    (distinct.len() == width && bytes.0.is_empty()).then_some((header, comma == 1))
}

/// How many rows a block of rows has, and the cells of the columns that are used.
fn block(content: &[u8], columns: &mut [Column], used: &[usize]) -> Option<(usize, Vec<Cells>)> {
    let mut bytes = Bytes(content);
    let rows = bytes.number()?;
    let mut all = Vec::new();
    for (j, column) in columns.iter_mut().enumerate() {
        for _ in 0..bytes.number()? {
            column.texts.push(text(&mut bytes)?.to_vec());
        }
        column.values.resize(column.texts.len(), None);
        let how = bytes.byte()?;
        let width = match how & !REWRITTEN {
            CODES_1 => 1,
            CODES_2 => 2,
            CODES_4 | INTEGERS => 4,
            DOUBLES => 8,
            _ => return None,
        };
        let cells = bytes.take(rows.checked_mul(width)?)?;
        let is_used = used.binary_search(&j).is_ok();
        all.push(if is_used { decoded(how, width, cells, column.texts.len())? } else { Cells::Unread });
    }
    (rows > 0 && bytes.0.is_empty()).then_some((rows, all))
}

/// Cells that are finite numbers, or places of texts that there are.
fn decoded(how: u8, width: usize, cells: &[u8], texts: usize) -> Option<Cells> {
    let word = |cell: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(cell);
        u64::from_le_bytes(word)
    };
    let words = cells.chunks_exact(width).map(word);
    if matches!(how & !REWRITTEN, CODES_1 | CODES_2 | CODES_4) {
        let code = |word| u32::try_from(word).ok().filter(|&code| (code as usize) < texts);
        return Some(Cells::Codes(words.map(code).collect::<Option<_>>()?));
    }
    let number = |word: u64| {
        let value = if width == 4 { f64::from(word as u32 as i32) } else { f64::from_bits(word) };
        let is_text = width == 8 && word & TEXT == TEXT && ((word & !TEXT) as usize) < texts;
        (value.is_finite() || is_text).then_some(value)
    };
    Some(Cells::Numbers(words.map(number).collect::<Option<_>>()?, how & REWRITTEN != 0))
}

/// Sealed blocks, one after the other.
struct Source<R> {
    input: R,
    last: Seal,
    content: Vec<u8>,
}

const CUT: &str = "cut short: the file ends before its table does";

impl<R: Read> Source<R> {
    fn exactly<const N: usize>(&mut self) -> std::result::Result<[u8; N], String> {
        let mut bytes = [0; N];
        let read = self.input.read_exact(&mut bytes);
        read.map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => CUT.to_owned(),
            _ => e.to_string(),
        })?;
        Ok(bytes)
    }

    /// What every file of this kind begins with.
    fn begin(&mut self) -> std::result::Result<(), String> {
        if self.exactly().map(|magic: [u8; 8]| magic != MAGIC).unwrap_or(true) {
            return Err(
                "not a column file, or damaged at its very beginning; `npl convert` makes one of text".into(),
            );
        }
        match u32::from_le_bytes(self.exactly()?) {
            VERSION => Ok(()),
            other => {
                Err(format!("a column file of version {other}, and this program reads version {VERSION}"))
            }
        }
    }

    /// The next block, if it is what was written.
    fn block(&mut self) -> std::result::Result<(u8, &[u8]), String> {
        let [kind] = self.exactly()?;
        let length = u64::from_le_bytes(self.exactly()?);
        if length > LONGEST {
            return Err("damaged: a block says that it is longer than any is".into());
        }
        self.content.clear();
        // Grows with what is there, not with what the file says of itself.
        let read =
            (&mut self.input).take(length).read_to_end(&mut self.content).map_err(|e| e.to_string())?;
        if (read as u64) < length {
            return Err(CUT.into());
        }
        let found: Seal = self.exactly()?;
        self.last = seal(&self.last, &[kind], &self.content);
        if found != self.last {
            return Err("damaged: a block is not what was written, by its checksum".into());
        }
        Ok((kind, &self.content))
    }
}
