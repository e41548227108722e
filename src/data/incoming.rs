//! New rows, for prediction: read one after the other and prepared as the training rows of a run were. Nothing grows with their
//! number.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use ndarray::{Array1, Array2};

use super::Dataset;
use super::parquet;
use super::preparation::{Column, Preparation, Preparations, ReadColumn};
use super::prepare::{Missing, Unseen};
use super::records::{Lines, Quotes, Records, Separator};
use super::shape::Shape;
use super::table::{Header, Kind, Levels, Table};
use super::text::{self, Rules, Syntax, clip};
use crate::config::{nearest, printable};
use crate::error::{Error, Result};
use crate::expression::Fault;

/// What a flag does that spares the column of the groups.
const FORCES: &str = "NAME predicts all rows by the draws of one group";

/// The place of a level that no training row has: no dummy is that of it.
const NO_LEVEL: f64 = -1.0;

/// Some rows.
#[derive(Clone, Debug, Default)]
pub struct NewRows {
    /// Prepared; a row that has what the training rows could not have is 0.
    pub data: Dataset,
    /// Whether a row can be predicted: it lacks nothing.
    pub whole: Vec<bool>,
    /// Cells that are carried through, as they are written.
    pub kept: Vec<Vec<String>>,
    /// Which group each belongs to, from 0; all to the first, where there are no groups.
    pub groups: Vec<usize>,
    /// What was not as the training rows have it, over all rows.
    pub stopgaps: Stopgaps,
}

/// Cells of rows that are predicted all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stopgaps {
    /// Missing, and taken for the mean of the training rows.
    pub imputed: usize,
    /// Of a level that no training row has.
    pub unseen: usize,
}

impl std::ops::AddAssign for Stopgaps {
    fn add_assign(&mut self, more: Stopgaps) {
        self.imputed += more.imputed;
        self.unseen += more.unseen;
    }
}

impl NewRows {
    /// Places of the rows of every group that has any here.
    pub fn by_group(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        self.groups.iter().enumerate().for_each(|(i, group)| found.entry(*group).or_default().push(i));
        found
    }

    /// These rows alone; what stopgaps there are, is known of all of them together.
    pub fn select(&self, rows: &[usize]) -> NewRows {
        NewRows {
            data: self.data.select(rows),
            whole: rows.iter().map(|&i| self.whole[i]).collect(),
            kept: rows.iter().map(|&i| self.kept[i].clone()).collect(),
            groups: rows.iter().map(|&i| self.groups[i]).collect(),
            stopgaps: Stopgaps::default(),
        }
    }

    pub fn n(&self) -> usize {
        self.whole.len()
    }
}

/// Where new rows come from.
pub enum Source<R> {
    Text(R),
    Parquet(parquet::Rows),
}

/// Rows that have been asked for one after the other.
enum Rows<R> {
    Text(Records<R>),
    Parquet(parquet::Rows),
}

impl<R: Read> Rows<R> {
    /// The next row: its number, or that of its line, and its cells as texts.
    fn next(&mut self, file: &str) -> Result<Option<(u64, Vec<Vec<u8>>)>> {
        match self {
            Rows::Text(records) => {
                let next = records.next().map_err(|fault| fault.in_file(file))?;
                Ok(next.map(|(place, record)| (place.line, record.to_vec())))
            }
            Rows::Parquet(rows) => rows.next_texts(),
        }
    }

    /// The text with which a message on a row begins.
    fn at(&self, file: &str, row: u64) -> String {
        match self {
            Rows::Text(_) => format!("{file}:{row}"),
            Rows::Parquet(_) => format!("{file}: row {row}"),
        }
    }
}

/// A file of new rows, half read.
pub struct Incoming<'a, R> {
    rows: Rows<R>,
    /// Of the first group: what all groups have in common.
    preparation: &'a Preparation,
    groups: Vec<Group<'a>>,
    /// What says which group a row belongs to, unless all are of one, and which is known.
    by: Option<Place>,
    known: HashMap<&'a [u8], usize>,
    all_of: usize,
    missing: Vec<Vec<u8>>,
    /// Whether decimals follow a comma.
    comma: bool,
    file: String,
    header: Header,
    inputs: Vec<Place>,
    target: Option<Place>,
    event: Option<Place>,
    offset: Option<Place>,
    exposure: Option<Place>,
    /// What makes columns of those of the file, those that it reads, and whether they are texts.
    shape: Shape,
    reads: Vec<(usize, bool)>,
    keep: Vec<usize>,
    /// A first line that is no header.
    first: Option<(u64, Vec<Vec<u8>>)>,
}

/// How rows of a group are prepared.
struct Group<'a> {
    preparation: &'a Preparation,
    columns: &'a [Column],
    /// Of every input, the places of its levels.
    levels: Vec<Option<HashMap<&'a [u8], usize>>>,
}

impl<'a> Group<'a> {
    fn new(preparation: &'a Preparation, round: usize) -> Group<'a> {
        let of_level = |levels: &'a Vec<String>| levels.iter().map(String::as_bytes).zip(0..).collect();
        let levels = preparation.inputs.iter().map(|input| input.levels.as_ref().map(of_level)).collect();
        Group { preparation, columns: preparation.columns(round), levels }
    }
}

/// Where a column is found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// In the file, from 0.
    File(usize),
    /// Among those that are made by expressions, from 0.
    Made(usize),
}

/// A cell as it is written, or as a number or text that was made would be.
struct Cell<'c> {
    place: Place,
    text: Cow<'c, [u8]>,
    missing: bool,
}

/// What a row became.
struct Row {
    group: usize,
    inputs: Vec<f64>,
    response: f64,
    event: f64,
    offset: f64,
    whole: bool,
    stopgaps: Stopgaps,
}

impl<'a, R: Read> Incoming<'a, R> {
    /// Reads the names of the columns. `group`: that of all rows, where it is known; `keep`: columns to carry through.
    pub fn new(
        input: Source<R>,
        file: &str,
        rules: &Rules,
        preparations: &'a Preparations,
        (group, round): (Option<usize>, usize),
        keep: &[String],
    ) -> Result<Self> {
        let preparation = preparations.of(group.unwrap_or(0));
        let file = printable(file);
        let (mut rows, header, first) = match input {
            Source::Parquet(rows) => {
                let header = rows.header().clone();
                (Rows::Parquet(rows), header, None)
            }
            Source::Text(input) => {
                let mut rows = Rows::Text(records(input, &file, rules)?);
                let Some(first) = rows.next(&file)? else {
                    return Err(Error::input(format!("{file}: no rows")));
                };
                match header(&file, &first.1, preparation)? {
                    Some(header) => (rows, header, None),
                    None => {
                        let header = by_place(&file, first.1.len(), preparation)?;
                        (rows, header, Some(first))
                    }
                }
            }
        };
        let by = preparations.by().filter(|_| group.is_none());
        let needed = |name: &str| header.find(name).map_err(|e| Error::input(format!("{file}: {e}")));
        let all = Shape::of(&preparation.made).map_err(|(name, fault)| {
            Error::input(format!("the expression of {} of the run: {fault}", printable(&name)))
        })?;
        // A column that the experiment makes is made again; if the file lacks what for, its own of that name will do.
        let mut wanted = Vec::new();
        let reads = |name: &str| -> Vec<&ReadColumn> {
            let needs = all.needs(name);
            preparation.reads.iter().filter(|read| needs.contains(&read.name)).collect()
        };
        let mut find = |name: &str| -> Result<Place> {
            let of_file = needed(name);
            if !all.makes(name) {
                return of_file.map(Place::File);
            }
            let lacks = reads(name).into_iter().find_map(|read| needed(&read.name).err());
            match (lacks, of_file) {
                (None, _) => wanted.extend(all.needs(name)),
                (Some(_), Ok(place)) => return Ok(Place::File(place)),
                (Some(lacks), Err(_)) => {
                    let name = printable(name);
                    return Err(Error::input(format!("{lacks}; the experiment makes \"{name}\" of it")));
                }
            }
            let order = preparation.made.iter().position(|made| made.name == name);
            Ok(Place::Made(order.expect("it is made")))
        };
        let mut inputs = Vec::new();
        for input in &preparation.inputs {
            inputs.push(find(&input.name).map_err(|e| match input.made && !all.makes(&input.name) {
                true => Error::input(format!(
                    "{e}; the experiment makes it by an expression, which the run has not kept: run it again, or give new rows \
                     this column"
                )),
                false => e,
            })?);
        }
        let (by, names) = match by {
            Some((name, names)) => {
                let place = find(name).map_err(|e| {
                    Error::input(format!("{e}; it says which group a row belongs to, and --group {FORCES}"))
                })?;
                (Some(place), names)
            }
            None => (None, &[][..]),
        };
        let mut beside = |name: &Option<String>| name.as_deref().map(&mut find).transpose();
        let (offset, exposure) = (beside(&preparation.offset)?, beside(&preparation.exposure)?);
        let mut there = |name: &String| match all.makes(name) {
            true => find(name).ok(),
            false => header.names.iter().position(|n| n == name).map(Place::File),
        };
        let target = preparation.target.as_ref().and_then(|target| there(&target.name));
        let event = preparation.event.as_ref().and_then(there);
        let keep: Vec<usize> = keep.iter().map(|name| needed(name)).collect::<Result<_>>()?;
        let read = |read: &ReadColumn| Some((needed(&read.name).ok()?, read.text));
        let reads: Vec<(usize, bool)> =
            preparation.reads.iter().filter(|read| wanted.contains(&read.name)).filter_map(read).collect();
        if let Rows::Parquet(rows) = &mut rows {
            let places =
                inputs.iter().copied().chain([by, target, event, offset, exposure].into_iter().flatten());
            let of_file = places.filter_map(|place| match place {
                Place::File(j) => Some(j),
                Place::Made(_) => None,
            });
            let mut used: Vec<usize> =
                of_file.chain(reads.iter().map(|(j, _)| *j)).chain(keep.iter().copied()).collect();
            used.sort_unstable();
            used.dedup();
            rows.only(&used)?;
        }
        let shape = all.only(&wanted);
        let missing = rules.missing.iter().map(|m| m.as_bytes().to_vec()).collect();
        let count = preparations.by().map_or(1, |(_, names)| names.len());
        Ok(Incoming {
            rows,
            preparation,
            groups: (0..count).map(|g| Group::new(preparations.of(g), round)).collect(),
            by,
            known: names.iter().map(String::as_bytes).zip(0..).collect(),
            all_of: group.unwrap_or(0),
            missing,
            comma: rules.comma,
            file,
            header,
            inputs,
            target,
            event,
            offset,
            exposure,
            shape,
            reads,
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
        let mut rows: Vec<(u64, Row)> = Vec::new();
        let (mut kept, mut waiting) = (Vec::new(), Vec::new());
        let places = self.reads.iter().map(|(j, _)| *j).collect();
        let mut read = Table::new(self.header.clone(), places);
        for (kind, (_, text)) in read.kinds.iter_mut().zip(&self.reads) {
            *kind = if *text { Kind::Levels(Levels::default()) } else { Kind::Number };
        }
        while rows.len() < most {
            let (line, cells) = match self.first.take() {
                Some(first) => first,
                None => match self.rows.next(&self.file)? {
                    Some(next) => next,
                    None => break,
                },
            };
            let texts: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
            if texts.len() == self.header.width() {
                kept.push(self.carried(&texts));
            }
            rows.push((line, self.row(line, &texts)?));
            self.read(line, &texts, &mut read)?;
            if matches!(self.by, Some(Place::Made(_))) {
                waiting.push(cells);
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        self.make(read, &mut rows, &waiting)?;
        let (mut x, mut y, mut event, mut offset) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut whole, mut groups, mut stopgaps) = (Vec::new(), Vec::new(), Stopgaps::default());
        let width = self.groups[0].columns.len();
        for (_, row) in rows {
            let Group { preparation, columns, .. } = &self.groups[row.group];
            match row.whole {
                true => x.extend(columns.iter().map(|column| preparation.cell(column, &row.inputs))),
                false => x.resize(x.len() + width, 0.0),
            }
            if row.whole {
                stopgaps += row.stopgaps;
            }
            groups.push(row.group);
            y.push(row.response);
            event.push(row.event);
            offset.push(row.offset);
            whole.push(row.whole);
        }
        let x = Array2::from_shape_vec((whole.len(), width), x).expect("every row has every cell");
        let names = self.groups[0].columns.iter().map(|column| column.name.clone()).collect();
        let y = self.has_response().then(|| Array1::from(y));
        let event = self.event.filter(|_| y.is_some()).map(|_| Array1::from(event));
        let offset = (self.offset.is_some() || self.exposure.is_some()).then(|| Array1::from(offset));
        let data = Dataset::new(x, y, names).with_event(event).with_offset(offset);
        let data = data.with_response_names(self.preparation.response_names());
        let data = data.with_classes(self.preparation.classes.clone());
        Ok(Some(NewRows { data, whole, kept, groups, stopgaps }))
    }

    /// What expressions read of a row.
    fn read(&self, line: u64, cells: &[&[u8]], table: &mut Table) -> Result<()> {
        for (&(j, _), kind) in self.reads.iter().zip(&mut table.kinds) {
            let cell = cells[j];
            table.cells.push(match kind {
                _ if self.is_missing(cell) => f64::NAN,
                Kind::Levels(levels) => levels.code(cell) as f64,
                Kind::Number => text::number(cell, self.comma).map_err(|why| {
                    let cell = Cell { place: Place::File(j), text: Cow::Borrowed(cell), missing: false };
                    self.wrong(line, &cell, why)
                })?,
            });
        }
        table.rows += 1;
        Ok(())
    }

    /// The cells that expressions make of what was read. Where one of them says which group a row belongs to, its other cells have
    /// been waiting for that.
    fn make(&self, read: Table, rows: &mut [(u64, Row)], waiting: &[Vec<Vec<u8>>]) -> Result<()> {
        if self.shape.makes_nothing() {
            return Ok(());
        }
        let failed = |(name, fault): (String, Fault)| {
            Error::input(format!("{}: column \"{}\" of the run: {fault}", self.file, printable(&name)))
        };
        let table = self.shape.shaped(read).map_err(failed)?;
        let places: Vec<Option<usize>> = self
            .preparation
            .made
            .iter()
            .map(|made| table.names.iter().position(|name| *name == made.name))
            .collect();
        for (i, (line, row)) in rows.iter_mut().enumerate() {
            let cell = |place: Place| {
                let Place::Made(made) = place else { return None };
                let j = places[made].expect("what is wanted was made");
                let value = table.cells[i * table.width() + j];
                let text = match &table.kinds[j] {
                    _ if value.is_nan() => Vec::new(),
                    Kind::Number => (value + 0.0).to_string().into_bytes(),
                    Kind::Levels(levels) => levels.names()[value as usize].clone().into_bytes(),
                };
                Some(Cell { place, text: Cow::Owned(text), missing: value.is_nan() })
            };
            if let Some(texts) = waiting.get(i) {
                self.assign(*line, row, &cell)?;
                let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
                self.fill(*line, row, &|place| self.of_file(place, &texts))?;
            }
            self.fill(*line, row, &cell)?;
        }
        Ok(())
    }

    /// A cell of the file.
    fn of_file<'c>(&self, place: Place, cells: &[&'c [u8]]) -> Option<Cell<'c>> {
        match place {
            Place::File(j) => {
                Some(Cell { place, text: Cow::Borrowed(cells[j]), missing: self.is_missing(cells[j]) })
            }
            Place::Made(_) => None,
        }
    }

    /// Finds the group of a row, if its cell is there. A row of none lacks something.
    fn assign<'c>(&self, line: u64, row: &mut Row, cell: &dyn Fn(Place) -> Option<Cell<'c>>) -> Result<()> {
        let Some(cell) = self.by.and_then(cell) else { return Ok(()) };
        if cell.missing && self.preparation.missing != Missing::Error {
            row.whole = false;
            return Ok(());
        }
        let hint = || {
            let names = self.known.keys().filter_map(|name| std::str::from_utf8(name).ok());
            let near = nearest(std::str::from_utf8(&cell.text).unwrap_or_default(), names);
            near.map(|name| format!("; did you mean \"{}\"?", printable(name))).unwrap_or_default()
        };
        match self.known.get(cell.text.as_ref()) {
            Some(group) => row.group = *group,
            None if cell.missing => {
                let why = format!("is missing: it says which group a row belongs to; --group {FORCES}");
                return Err(self.wrong(line, &cell, &why));
            }
            None => {
                let why = format!("is a group that the run does not have{}; --group {FORCES}", hint());
                return Err(self.wrong(line, &cell, &why));
            }
        }
        Ok(())
    }

    fn carried(&self, cells: &[&[u8]]) -> Vec<String> {
        self.keep.iter().map(|&j| String::from_utf8_lossy(cells[j]).into_owned()).collect()
    }

    fn row(&self, line: u64, cells: &[&[u8]]) -> Result<Row> {
        let width = self.header.width();
        if cells.len() != width {
            let at = self.rows.at(&self.file, line);
            let message = format!("{at}: {} cells where {width} are expected", cells.len());
            return Err(Error::input(message));
        }
        let mut row = Row {
            group: self.all_of,
            inputs: vec![f64::NAN; self.inputs.len()],
            response: f64::NAN,
            event: 1.0,
            offset: 0.0,
            whole: true,
            stopgaps: Stopgaps::default(),
        };
        if !matches!(self.by, Some(Place::Made(_))) {
            self.assign(line, &mut row, &|place| self.of_file(place, cells))?;
            self.fill(line, &mut row, &|place| self.of_file(place, cells))?;
        }
        Ok(row)
    }

    /// What the cells that are there say of a row.
    fn fill<'c>(&self, line: u64, row: &mut Row, cell: &dyn Fn(Place) -> Option<Cell<'c>>) -> Result<()> {
        for (i, place) in self.inputs.iter().enumerate() {
            let Some(cell) = cell(*place) else { continue };
            let value = self.input(row.group, i, &cell).map_err(|why| self.wrong(line, &cell, &why))?;
            if value.is_nan() && self.preparation.missing == Missing::Error {
                let why = match cell.place {
                    Place::File(_) => "is missing, and the run has `data.missing = \"error\"`",
                    Place::Made(_) => "is no number in this row, and the run has `data.missing = \"error\"`",
                };
                return Err(self.wrong(line, &cell, why));
            }
            let imputed =
                self.preparation.missing == Missing::Mean && self.preparation.inputs[i].levels.is_none();
            row.whole &= !value.is_nan() || imputed;
            row.stopgaps.imputed += usize::from(value.is_nan() && imputed);
            row.stopgaps.unseen +=
                usize::from(value == NO_LEVEL && self.preparation.inputs[i].levels.is_some());
            row.inputs[i] = value;
        }
        let there = |place: Option<Place>| place.and_then(cell);
        if let (Some(cell), Some(target)) = (there(self.target), &self.groups[row.group].preparation.target)
            && !cell.missing
        {
            let pointed = text::pointed(&cell.text, self.has_comma(&cell));
            let text =
                std::str::from_utf8(&pointed).map_err(|_| self.wrong(line, &cell, "is not valid UTF-8"))?;
            row.response = target.value(text).map_err(|why| self.wrong(line, &cell, &why))?;
        }
        for (place, is_exposure) in [(self.offset, false), (self.exposure, true)] {
            let Some(cell) = there(place) else { continue };
            match text::number(&cell.text, self.has_comma(&cell)) {
                _ if cell.missing && self.preparation.missing != Missing::Error => row.whole = false,
                Ok(exposure) if is_exposure && exposure > 0.0 => row.offset += libm::log(exposure),
                Ok(offset) if !is_exposure => row.offset += offset,
                Ok(_) => return Err(self.wrong(line, &cell, "must be above 0: an exposure")),
                Err(why) => return Err(self.wrong(line, &cell, why)),
            }
        }
        if let Some(cell) = there(self.event).filter(|cell| !cell.missing) {
            row.event = match text::number(&cell.text, self.has_comma(&cell)) {
                Ok(event) if event == 0.0 || event == 1.0 => event,
                _ => {
                    return Err(self.wrong(line, &cell, "must be 0 or 1: whether the response is an event"));
                }
            };
        }
        Ok(())
    }

    /// Whether decimals of this cell follow a comma: those that are made here do not.
    fn has_comma(&self, cell: &Cell) -> bool {
        self.comma && matches!(cell.place, Place::File(_))
    }

    /// A number, or the place of a level; NaN if it is missing.
    fn input(&self, group: usize, i: usize, cell: &Cell) -> std::result::Result<f64, String> {
        if cell.missing {
            return Ok(f64::NAN);
        }
        let Some(levels) = &self.groups[group].levels[i] else {
            return text::number(&cell.text, self.has_comma(cell)).map_err(String::from);
        };
        match levels.get(cell.text.as_ref()) {
            Some(level) => Ok(*level as f64),
            None if self.preparation.unseen == Unseen::Zero => Ok(NO_LEVEL),
            None => {
                Err("is a level that no training row has, and the run has `data.unseen = \"error\"`".into())
            }
        }
    }

    fn is_missing(&self, cell: &[u8]) -> bool {
        self.missing.iter().any(|m| m == cell)
            || cell.is_empty() && self.preparation.missing != Missing::Error
    }

    fn wrong(&self, line: u64, cell: &Cell, why: &str) -> Error {
        let text = clip(&printable(&String::from_utf8_lossy(&cell.text)));
        let (name, place) = match cell.place {
            Place::File(j) => (&self.header.names[j], (j + 1).to_string()),
            Place::Made(k) => {
                (&self.preparation.made[k].name, format!("= {}", clip(&self.preparation.made[k].expression)))
            }
        };
        let (name, place) = (printable(name), printable(&place));
        let at = self.rows.at(&self.file, line);
        Error::input(format!("{at}: column \"{name}\" ({place}): \"{text}\" {why}"))
    }
}

/// The records of a text, behind what is to be skipped.
fn records<R: Read>(input: R, file: &str, rules: &Rules) -> Result<Records<R>> {
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
    Ok(records)
}

/// The names in the first line, if that is what it holds.
fn header(file: &str, record: &[Vec<u8>], preparation: &Preparation) -> Result<Option<Header>> {
    let names: Vec<String> = record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
    let of_file = preparation.inputs.iter().filter(|input| !input.made).map(|input| &input.name);
    let all = of_file.chain(preparation.reads.iter().map(|read| &read.name)).all(|name| names.contains(name));
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
