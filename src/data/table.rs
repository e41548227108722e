//! A table as read: numbers and levels side by side, missing cells as NaN.

use std::collections::HashMap;

use crate::config::{nearest, printable};
use crate::error::{Error, Result};

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

/// Columns by name; cells by rows, each a number, the code of a level, or NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub names: Vec<String>,
    pub kinds: Vec<Kind>,
    pub cells: Vec<f64>,
}

impl Table {
    pub fn width(&self) -> usize {
        self.names.len()
    }

    pub fn rows(&self) -> usize {
        if self.names.is_empty() { 0 } else { self.cells.len() / self.names.len() }
    }

    pub fn column(&self, j: usize) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().skip(j).step_by(self.width()).copied()
    }

    /// Place of a column by name, or by number from 1.
    pub fn find(&self, name: &str) -> Result<usize> {
        if let Some(found) = self.names.iter().position(|n| n == name) {
            return Ok(found);
        }
        if let Some(j) = name.parse::<usize>().ok().filter(|j| (1..=self.width()).contains(j)) {
            return Ok(j - 1);
        }
        let unsplit = |only: &String| self.width() == 1 && only.contains([',', ';', '\t']);
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

    /// The same table with its columns in the order of `names`; `None` if it has others.
    pub fn reordered(self, names: &[String]) -> Option<Table> {
        if self.names == names {
            return Some(self);
        }
        let place = |name: &String| self.names.iter().position(|n| n == name);
        let order = names.iter().map(place).collect::<Option<Vec<usize>>>()?;
        if order.len() != self.width() {
            return None;
        }
        let width = self.width();
        let cells =
            self.cells.chunks_exact(width).flat_map(|row| order.iter().map(move |&j| row[j])).collect();
        let kinds = order.iter().map(|&j| self.kinds[j].clone()).collect();
        Some(Table { names: names.to_vec(), kinds, cells })
    }

    /// The first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.cells.truncate(rows * self.width());
    }

    /// Another file of the same table below this one; levels keep their names.
    pub fn append(&mut self, other: Table, file: &str) -> Result<()> {
        if self.width() == 0 {
            *self = other;
            return Ok(());
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
        if self.cells.is_empty() {
            self.cells = other.cells;
        } else {
            self.cells.append(&mut other.cells);
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
