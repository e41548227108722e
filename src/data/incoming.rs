//! New rows, for prediction: read one after the other and prepared as the training rows of a run were. Nothing grows with their
//! number.

use std::collections::HashMap;
use std::io::Read;

use ndarray::{Array1, Array2};

use super::Dataset;
use super::preparation::{Column, InputColumn, Preparation};
use super::prepare::{Missing, Unseen};
use super::records::{Lines, Quotes, Record, Records, Separator};
use super::table::Header;
use super::text::{self, Rules, Syntax, clip};
use crate::config::printable;
use crate::error::{Error, Result};

/// Some rows.
#[derive(Clone, Debug, Default)]
pub struct NewRows {
    /// Prepared; a row that has what the training rows could not have is 0.
    pub data: Dataset,
    /// Whether a row can be predicted: it lacks nothing.
    pub whole: Vec<bool>,
    /// Cells that are carried through, as they are written.
    pub kept: Vec<Vec<String>>,
}

impl NewRows {
    pub fn n(&self) -> usize {
        self.whole.len()
    }
}

/// A file of new rows, half read.
pub struct Incoming<'a, R> {
    records: Records<R>,
    preparation: &'a Preparation,
    columns: &'a [Column],
    missing: Vec<Vec<u8>>,
    /// Whether decimals follow a comma.
    comma: bool,
    file: String,
    header: Header,
    /// Places of the inputs in the file.
    inputs: Vec<usize>,
    levels: Vec<Option<HashMap<&'a [u8], usize>>>,
    target: Option<usize>,
    event: Option<usize>,
    offset: Option<usize>,
    exposure: Option<usize>,
    keep: Vec<usize>,
    /// A first line that is no header.
    first: Option<(u64, Vec<Vec<u8>>)>,
}

/// What a row became.
struct Row {
    inputs: Vec<f64>,
    response: f64,
    event: f64,
    offset: f64,
    whole: bool,
}

impl<'a, R: Read> Incoming<'a, R> {
    /// Reads the names of the columns. `keep`: columns to carry through.
    pub fn new(
        input: R,
        file: &str,
        rules: &Rules,
        preparation: &'a Preparation,
        round: usize,
        keep: &[String],
    ) -> Result<Self> {
        let file = printable(file);
        let failed = |e: std::io::Error| Error::input(format!("{file}: {e}"));
        let mut lines = Lines::new(input);
        lines.skip_mark().map_err(failed)?;
        let separator = match rules.syntax {
            Syntax::Delimited(byte) => Separator::Byte(byte),
            Syntax::Whitespace => Separator::Blanks,
            Syntax::Arff => {
                return Err(Error::input(format!("{file}: new rows are read from delimited text, not ARFF")));
            }
        };
        let mut records = Records::new(lines, separator, Quotes::Double, rules.comment);
        records.skip(rules.skip_lines).map_err(failed)?;
        let Some((place, record)) = records.next().map_err(|fault| fault.in_file(&file))? else {
            return Err(Error::input(format!("{file}: no rows")));
        };
        let named = header(&file, &record, preparation)?;
        let first = named.is_none().then(|| (place.line, record.to_vec()));
        let header = match named {
            Some(header) => header,
            None => by_place(&file, record.len(), preparation)?,
        };
        let needed = |name: &str| header.find(name).map_err(|e| Error::input(format!("{file}: {e}")));
        let of_input = |input: &InputColumn| {
            needed(&input.name).map_err(|e| match input.made {
                true => Error::input(format!(
                    "{e}; the experiment makes it by an expression, and new rows must have it as a column: expressions are not \
                     applied to them"
                )),
                false => e,
            })
        };
        let inputs = preparation.inputs.iter().map(of_input).collect::<Result<_>>()?;
        let keep = keep.iter().map(|name| needed(name)).collect::<Result<_>>()?;
        let beside = |name: &Option<String>| name.as_deref().map(needed).transpose();
        let (offset, exposure) = (beside(&preparation.offset)?, beside(&preparation.exposure)?);
        let there = |name: &String| header.names.iter().position(|n| n == name);
        let target = preparation.target.as_ref().and_then(|target| there(&target.name));
        let event = preparation.event.as_ref().and_then(there);
        let of_level = |levels: &'a Vec<String>| levels.iter().map(String::as_bytes).zip(0..).collect();
        let levels = preparation.inputs.iter().map(|input| input.levels.as_ref().map(of_level)).collect();
        let missing = rules.missing.iter().map(|m| m.as_bytes().to_vec()).collect();
        let columns = preparation.columns(round);
        Ok(Incoming {
            records,
            preparation,
            columns,
            missing,
            comma: rules.comma,
            file,
            header,
            inputs,
            levels,
            target,
            event,
            offset,
            exposure,
            keep,
            first,
        })
    }

    /// Whether rows have a response, and where events matter, whether it is one.
    pub fn has_response(&self) -> bool {
        self.target.is_some() && (self.preparation.event.is_none() || self.event.is_some())
    }

    /// The next rows, at most so many; `None` at the end.
    pub fn next(&mut self, most: usize) -> Result<Option<NewRows>> {
        let (mut x, mut y, mut event, mut offset) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut whole, mut kept) = (Vec::new(), Vec::new());
        while whole.len() < most {
            let row = match self.first.take() {
                Some((line, cells)) => {
                    let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
                    kept.push(self.carried(&cells));
                    self.row(line, &cells)?
                }
                None => {
                    // The record borrows the reader, and the cells are needed beside it.
                    let file = &self.file;
                    let Some((place, record)) = self.records.next().map_err(|fault| fault.in_file(file))?
                    else {
                        break;
                    };
                    let cells: Vec<Vec<u8>> = record.to_vec();
                    let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
                    if cells.len() == self.header.width() {
                        kept.push(self.carried(&cells));
                    }
                    self.row(place.line, &cells)?
                }
            };
            match row.whole {
                true => {
                    x.extend(self.columns.iter().map(|column| self.preparation.cell(column, &row.inputs)))
                }
                false => x.resize(x.len() + self.columns.len(), 0.0),
            }
            y.push(row.response);
            event.push(row.event);
            offset.push(row.offset);
            whole.push(row.whole);
        }
        if whole.is_empty() {
            return Ok(None);
        }
        let x =
            Array2::from_shape_vec((whole.len(), self.columns.len()), x).expect("every row has every cell");
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        let y = self.has_response().then(|| Array1::from(y));
        let event = self.event.filter(|_| y.is_some()).map(|_| Array1::from(event));
        let offset = (self.offset.is_some() || self.exposure.is_some()).then(|| Array1::from(offset));
        let data = Dataset::new(x, y, names).with_event(event).with_offset(offset);
        let data = data.with_response_names(self.preparation.response_names());
        Ok(Some(NewRows { data: data.with_classes(self.preparation.classes.clone()), whole, kept }))
    }

    fn carried(&self, cells: &[&[u8]]) -> Vec<String> {
        self.keep.iter().map(|&j| String::from_utf8_lossy(cells[j]).into_owned()).collect()
    }

    fn row(&self, line: u64, cells: &[&[u8]]) -> Result<Row> {
        let width = self.header.width();
        if cells.len() != width {
            let message = format!("{}:{line}: {} cells where {width} are expected", self.file, cells.len());
            return Err(Error::input(message));
        }
        let mut row = Row {
            inputs: Vec::with_capacity(self.inputs.len()),
            response: f64::NAN,
            event: 1.0,
            offset: 0.0,
            whole: true,
        };
        for (i, &j) in self.inputs.iter().enumerate() {
            let value = self.input(i, cells[j]).map_err(|why| self.wrong(line, j, cells[j], &why))?;
            if value.is_nan() && self.preparation.missing == Missing::Error {
                let why = "is missing, and the run has `data.missing = \"error\"`";
                return Err(self.wrong(line, j, cells[j], why));
            }
            let imputed = self.preparation.missing == Missing::Mean && self.levels[i].is_none();
            row.whole &= !value.is_nan() || imputed;
            row.inputs.push(value);
        }
        if let (Some(j), Some(target)) = (self.target, &self.preparation.target)
            && !self.is_missing(cells[j])
        {
            let cell = text::pointed(cells[j], self.comma);
            let text = std::str::from_utf8(&cell)
                .map_err(|_| self.wrong(line, j, cells[j], "is not valid UTF-8"))?;
            row.response = target.value(text).map_err(|why| self.wrong(line, j, cells[j], &why))?;
        }
        for (j, is_exposure) in [(self.offset, false), (self.exposure, true)] {
            let Some(j) = j else { continue };
            match text::number(cells[j], self.comma) {
                _ if self.is_missing(cells[j]) && self.preparation.missing != Missing::Error => {
                    row.whole = false
                }
                Ok(exposure) if is_exposure && exposure > 0.0 => row.offset += libm::log(exposure),
                Ok(offset) if !is_exposure => row.offset += offset,
                Ok(_) => return Err(self.wrong(line, j, cells[j], "must be above 0: an exposure")),
                Err(why) => return Err(self.wrong(line, j, cells[j], why)),
            }
        }
        if let Some(j) = self.event.filter(|&j| !self.is_missing(cells[j])) {
            row.event = match text::number(cells[j], self.comma) {
                Ok(event) if event == 0.0 || event == 1.0 => event,
                _ => {
                    return Err(self.wrong(
                        line,
                        j,
                        cells[j],
                        "must be 0 or 1: whether the response is an event",
                    ));
                }
            };
        }
        Ok(row)
    }

    /// A number, or the place of a level; NaN if it is missing.
    fn input(&self, i: usize, cell: &[u8]) -> std::result::Result<f64, String> {
        if self.is_missing(cell) {
            return Ok(f64::NAN);
        }
        let Some(levels) = &self.levels[i] else {
            return text::number(cell, self.comma).map_err(String::from);
        };
        match levels.get(cell) {
            Some(level) => Ok(*level as f64),
            // No dummy is that of no level.
            None if self.preparation.unseen == Unseen::Zero => Ok(-1.0),
            None => {
                Err("is a level that no training row has, and the run has `data.unseen = \"error\"`".into())
            }
        }
    }

    fn is_missing(&self, cell: &[u8]) -> bool {
        self.missing.iter().any(|m| m == cell)
            || cell.is_empty() && self.preparation.missing != Missing::Error
    }

    fn wrong(&self, line: u64, j: usize, cell: &[u8], why: &str) -> Error {
        let text = clip(&printable(&String::from_utf8_lossy(cell)));
        let name = printable(&self.header.names[j]);
        Error::input(format!("{}:{line}: column \"{name}\" ({}): \"{text}\" {why}", self.file, j + 1))
    }
}

/// The names in the first line, if that is what it holds.
fn header(file: &str, record: &Record, preparation: &Preparation) -> Result<Option<Header>> {
    let names: Vec<String> = record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
    let all = preparation.inputs.iter().all(|input| names.contains(&input.name));
    if preparation.places.is_some() && !all {
        return Ok(None);
    }
    for (j, name) in names.iter().enumerate() {
        if let Some(twin) = names[..j].iter().position(|n| n == name) {
            return Err(Error::input(format!(
                "{file}:1: column {}: the name \"{}\" is that of column {} too",
                j + 1,
                printable(name),
                twin + 1
            )));
        }
    }
    Ok(Some(Header::named(names)))
}

/// Names by place, as in the training file; the response may be absent.
fn by_place(file: &str, width: usize, preparation: &Preparation) -> Result<Header> {
    let places = preparation.places.clone().unwrap_or_default();
    if width == places.len() {
        return Ok(Header::named(places));
    }
    let target = preparation.target.as_ref().map(|target| &target.name);
    let without: Vec<String> = places.iter().filter(|name| Some(*name) != target).cloned().collect();
    if width == without.len() {
        return Ok(Header::named(without));
    }
    let or = if without.len() < places.len() {
        format!(", or {} without the response", without.len())
    } else {
        String::new()
    };
    Err(Error::input(format!(
        "{file}: {width} cells a row; the training file has no line of names and {} columns{or}",
        places.len()
    )))
}
