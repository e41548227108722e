//! A table as read: numbers and levels side by side, missing cells as NaN.

use std::collections::HashMap;

use super::collapse::Copies;
use crate::config::{nearest, printable};
use crate::error::{Error, Result};
use crate::storage::{Buffer, Place};

/// A file with more columns is refused: a column costs a few hundred bytes before it has a cell.
pub const MOST_COLUMNS: usize = 1 << 20;

/// What the cells of a column are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    #[default]
    Number,
    /// Codes into a list of levels, in order of appearance.
    Levels(Levels),
}

/// The distinct texts of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    names: Vec<String>,
    codes: HashMap<Vec<u8>, usize>,
}

impl Levels {
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The code of a text that has been seen.
    pub fn known(&self, text: &[u8]) -> Option<usize> {
        self.codes.get(text).copied()
    }

    /// The code of a text, a new one if it has not been seen.
    pub fn code(&mut self, text: &[u8]) -> usize {
        if let Some(&code) = self.codes.get(text) {
            return code;
        }
        let code = self.names.len();
        self.names.push(String::from_utf8_lossy(text).into_owned());
        self.codes.insert(text.to_vec(), code);
        code
    }
}

/// The columns of a file, those that nobody asked for too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub names: Vec<String>,
    /// The file has no names, and these are x1, x2, …
    pub numbered: bool,
}

impl Header {
    /// Names for so many columns without any.
    pub fn numbered(width: usize) -> Header {
        let names = match width {
            1 => vec!["y".to_owned()],
            _ => (1..=width).map(|j| format!("x{j}")).collect(),
        };
        Header { names, numbered: true }
    }

    /// Control characters of names end here: names become those of parameters, in results that terminals and spreadsheets show.
    pub fn named(names: Vec<String>) -> Header {
        Header { names: names.iter().map(|name| printable(name)).collect(), numbered: false }
    }

    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// Place of a column by name, or by number from 1.
    pub fn find(&self, name: &str) -> Result<usize> {
        let harmless = printable(name);
        if let Some(found) = self.names.iter().position(|n| *n == harmless) {
            return Ok(found);
        }
        if let Some(j) = name.parse::<usize>().ok().filter(|j| (1..=self.width()).contains(j)) {
            return Ok(j - 1);
        }
        let unsplit =
            |only: &String| self.width() == 1 && (only.contains([',', ';', '|']) || only.contains("\\u{9}"));
        if let Some(only) = self.names.first().filter(|n| unsplit(n)) {
            return Err(Error::input(format!(
                "the data have no column \"{}\", only one called \"{}\"; `data.delimiter` says what separates cells",
                printable(name),
                printable(only)
            )));
        }
        let hint = match nearest(name, self.names.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean \"{}\"?", printable(near)),
            None if self.width() <= 20 => format!("; they are {}", printable(&self.names.join(", "))),
            None => format!("; it has {} columns", self.width()),
        };
        Err(Error::input(format!("the data have no column \"{}\"{hint}", printable(name))))
    }
}

/// The columns of a file that are used, by name; cells by rows, each a number, the code of a level, or NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub names: Vec<String>,
    pub kinds: Vec<Kind>,
    pub cells: Buffer<f64>,
    /// There may be rows without a cell: those of a file none of whose columns is used.
    pub rows: usize,
    /// All columns of the file, and the places of the used ones among them.
    pub header: Header,
    pub places: Vec<usize>,
    /// Where the rows stood in the table that they are some of; empty if it is the whole.
    pub(crate) origin: Vec<usize>,
    /// Where rows that are alike were counted while they were read: how many each of those that are left stands for.
    pub(crate) copies: Option<Copies>,
}

impl Table {
    /// No rows yet of the columns at these places of a file, all of them numbers.
    pub fn new(header: Header, places: Vec<usize>) -> Table {
        let names = places.iter().map(|&j| header.names[j].clone()).collect();
        Table { names, kinds: vec![Kind::Number; places.len()], header, places, ..Table::default() }
    }

    /// The same columns without a row.
    pub fn empty(&self) -> Table {
        let (header, places) = (self.header.clone(), self.places.clone());
        Table { names: self.names.clone(), kinds: self.kinds.clone(), header, places, ..Table::default() }
    }

    /// With its cells there; before there are any.
    pub fn placed(self, place: Place) -> Table {
        Table { cells: Buffer::new(place), ..self }
    }

    pub fn width(&self) -> usize {
        self.names.len()
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn column(&self, j: usize) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().skip(j).step_by(self.width()).copied()
    }

    /// Place among the used columns of the one with this name, or this number, from 1, in the file.
    pub fn find(&self, name: &str) -> Result<usize> {
        let place = self.header.find(name)?;
        let unread = || Error::input(format!("column \"{}\" of the data was not read", printable(name)));
        self.places.iter().position(|&p| p == place).ok_or_else(unread)
    }

    /// The same table with its columns in the order of `names`; `None` if it has others.
    pub fn reordered(self, names: &[String]) -> Option<Table> {
        if self.names == names {
            return Some(self);
        }
        let places: HashMap<&String, usize> =
            self.names.iter().enumerate().map(|(j, name)| (name, j)).collect();
        let order = names.iter().map(|name| places.get(name).copied()).collect::<Option<Vec<usize>>>()?;
        if order.len() != self.width() {
            return None;
        }
        let width = self.width();
        let mut cells = Buffer::sized(self.cells.place(), self.cells.len());
        let mut moved = vec![0.0; width];
        for row in self.cells.chunks_exact(width) {
            moved.iter_mut().zip(&order).for_each(|(cell, &j)| *cell = row[j]);
            cells.extend_from_slice(&moved);
        }
        let kinds = order.iter().map(|&j| self.kinds[j].clone()).collect();
        let places = order.iter().map(|&j| self.places[j]).collect();
        Some(Table { names: names.to_vec(), kinds, cells, places, ..self })
    }

    /// Without one of its columns.
    pub fn remove(&mut self, name: &str) {
        let Some(gone) = self.names.iter().position(|n| n == name) else { return };
        let width = self.width();
        let mut to = 0;
        for from in (0..self.cells.len()).filter(|at| at % width != gone) {
            self.cells[to] = self.cells[from];
            to += 1;
        }
        self.cells.truncate(to);
        self.names.remove(gone);
        self.kinds.remove(gone);
        self.places.remove(gone);
    }

    /// These rows alone, as if there were no others: levels have codes in the order of appearance among them.
    pub fn select(&self, rows: &[usize]) -> Table {
        let width = self.width();
        let mut kinds: Vec<Kind> = vec![Kind::Number; width];
        let mut cells = Buffer::sized(self.cells.place(), rows.len() * width);
        rows.iter().for_each(|&i| cells.extend_from_slice(&self.cells[i * width..(i + 1) * width]));
        for (j, kind) in self.kinds.iter().enumerate() {
            let Kind::Levels(all) = kind else { continue };
            let (mut levels, mut codes) = (Levels::default(), vec![None; all.names.len()]);
            for cell in cells.iter_mut().skip(j).step_by(width).filter(|cell| !cell.is_nan()) {
                let old = *cell as usize;
                *cell = *codes[old].get_or_insert_with(|| levels.code(all.names[old].as_bytes())) as f64;
            }
            kinds[j] = Kind::Levels(levels);
        }
        Table {
            names: self.names.clone(),
            kinds,
            cells,
            rows: rows.len(),
            header: self.header.clone(),
            places: self.places.clone(),
            origin: rows.iter().map(|&i| self.number(i) - 1).collect(),
            copies: self.copies.as_ref().map(|copies| copies.select(rows)),
        }
    }

    /// How many rows of the file a row stands for.
    pub fn copies_of(&self, row: usize) -> usize {
        self.copies.as_ref().map_or(1, |copies| copies.counts[row] as usize)
    }

    /// How many rows of the file there are in all.
    pub fn rows_of_file(&self) -> usize {
        self.copies.as_ref().map_or(self.rows, |copies| copies.counts.iter().sum::<u64>() as usize)
    }

    /// With rows that are alike as one, if at most one of `times` of the first rows is left; more may come.
    pub(super) fn gather(&mut self, times: usize) {
        let (width, mut copies) = (self.width(), Copies::new(times));
        let mut distinct = Buffer::new(Place::Memory);
        let mut rows = self.cells.chunks_exact(width);
        // Judged by the same rows, however many have come at once.
        let judged = rows.by_ref().take(Copies::FROM).all(|row| copies.add(row, &mut distinct));
        if judged && rows.all(|row| copies.add(row, &mut distinct)) {
            self.rows = copies.counts.len();
            self.cells = distinct;
            self.copies = Some(copies);
        }
    }

    /// Rows were counted, and more differ than was thought.
    pub fn is_scattered(&self) -> bool {
        self.copies.as_ref().is_some_and(Copies::are_too_few)
    }

    /// The number of a row, from 1, in the table that it was read into.
    pub fn number(&self, row: usize) -> usize {
        let first = self.copies.as_ref().map_or(row, |copies| copies.first[row]);
        self.origin.get(row).map_or(first, |&i| i) + 1
    }

    /// With its rows numbered as those of another table.
    pub fn numbered_as(self, other: &Table) -> Table {
        Table { origin: other.origin.clone(), ..self }
    }

    /// The first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        self.cells.truncate(self.rows * self.width());
    }

    /// Another file of the same table below this one; levels keep their names.
    pub fn append(&mut self, other: Table, file: &str) -> Result<()> {
        if self.header.width() == 0 {
            *self = other;
            return Ok(());
        }
        // Without names, a column is known by its number alone.
        let (here, there) = (&self.header, &other.header);
        if here.numbered && there.numbered && here.width() != there.width() {
            return Err(Error::input(format!(
                "{}: {} cells a row, and {} in the training data",
                printable(file),
                there.width(),
                here.width()
            )));
        }
        let differ = format!(
            "{}: its columns ({}) are not those of the training data ({})",
            printable(file),
            named(&other.names),
            named(&self.names)
        );
        let mut other = other.reordered(&self.names).ok_or_else(|| Error::input(differ))?;
        let is_text = |kind: &Kind| matches!(kind, Kind::Levels(_));
        let kinds = self.kinds.iter().zip(&other.kinds);
        if let Some(j) = kinds.into_iter().position(|(here, there)| is_text(here) != is_text(there)) {
            let (here, there) =
                if is_text(&self.kinds[j]) { ("text", "numbers") } else { ("numbers", "text") };
            return Err(Error::input(format!(
                "{}: column \"{}\" has {there}, and {here} in the training data; `data.categorical` can name columns of text",
                printable(file),
                printable(&self.names[j])
            )));
        }
        let recode: Vec<Option<Vec<usize>>> = self.kinds.iter_mut().zip(&other.kinds).map(recode).collect();
        if recode.iter().any(Option::is_some) {
            for row in other.cells.chunks_exact_mut(self.names.len()) {
                for (cell, codes) in row.iter_mut().zip(&recode) {
                    if let Some(codes) = codes.as_ref().filter(|_| cell.is_finite()) {
                        *cell = codes[*cell as usize] as f64;
                    }
                }
            }
        }
        self.rows += other.rows;
        if self.cells.is_empty() {
            self.cells = other.cells;
        } else {
            self.cells.extend_from_slice(&other.cells);
        }
        Ok(())
    }
}

/// A few names, quoted.
fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(8).map(|n| format!("\"{}\"", printable(n))).collect();
    shown.join(", ") + if names.len() > 8 { ", …" } else { "" }
}

/// New codes of the levels of `other` among those of `kind`.
fn recode((kind, other): (&mut Kind, &Kind)) -> Option<Vec<usize>> {
    match (kind, other) {
        (Kind::Levels(levels), Kind::Levels(other)) => {
            Some(other.names.iter().map(|name| levels.code(name.as_bytes())).collect())
        }
        _ => None,
    }
}
