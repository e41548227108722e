//! Data: the observed atoms. Readers, simulators and the train/test split all end in a [`Dataset`].

mod arff;
pub mod blocks;
pub mod by;
pub mod cache;
pub mod collapse;
pub mod columns;
mod decimal;
pub mod design;
mod doubts;
pub mod files;
pub mod formula;
mod idx;
pub mod incoming;
pub mod memory;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
pub mod parquet;
pub mod preparation;
pub mod prepare;
mod records;
mod rows;
mod sealed;
pub mod shape;
pub mod simulate;
pub mod split;
pub mod table;
pub mod text;

use ndarray::{Array1, Array2, Axis};

use crate::config::printable;
use crate::rng::{CHUNK, Rng};
use collapse::Collapsed;
use design::Design;
pub use rows::{Rows, Tile};
pub use sealed::hex;

/// Rows, and a response per row in regression.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    pub x: Rows,
    pub y: Option<Array1<f64>>,
    /// 1 where the response is the time of an event, 0 where it is censored; `None`: all are events.
    pub event: Option<Array1<f64>>,
    /// What is added to the linear predictor of each row; `None`: 0.
    pub offset: Option<Array1<f64>>,
    /// Names of the classes 0, 1, 2, … of a response that is one of several; empty if it is none, or has no names.
    pub classes: Vec<String>,
    /// One name per column of `x`.
    pub columns: Vec<String>,
    /// What each row stands for.
    pub design: Design,
    pub response: ResponseNames,
    /// Of rows that stand for several, which those were.
    pub collapsed: Option<Collapsed>,
}

/// What the columns of the response and of censoring are called, where the data have them and they have names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseNames {
    pub target: Option<String>,
    pub event: Option<String>,
}

impl Dataset {
    pub fn new(x: impl Into<Rows>, y: Option<Array1<f64>>, columns: Vec<String>) -> Self {
        let x = x.into();
        // Bare rows have no names.
        debug_assert!(columns.is_empty() || columns.len() == x.d());
        debug_assert!(y.as_ref().is_none_or(|y| y.len() == x.n()));
        Dataset {
            x,
            y,
            event: None,
            offset: None,
            classes: Vec::new(),
            columns,
            design: Design::default(),
            response: ResponseNames::default(),
            collapsed: None,
        }
    }

    /// One column of numbers, named `y`.
    pub fn from_values(values: Vec<f64>) -> Self {
        let x = Array2::from_shape_vec((values.len(), 1), values).expect("one column holds all values");
        Dataset::new(x, None, vec!["y".into()])
    }

    /// Rows without names: pseudo-samples.
    pub fn unnamed(x: Array2<f64>, y: Option<Array1<f64>>) -> Self {
        let columns = (1..=x.ncols()).map(|j| format!("x{j}")).collect();
        Dataset::new(x, y, columns)
    }

    pub fn n(&self) -> usize {
        self.x.n()
    }

    pub fn d(&self) -> usize {
        self.x.d()
    }

    pub fn with_design(self, design: Design) -> Self {
        Dataset { design, ..self }
    }

    pub fn with_event(self, event: Option<Array1<f64>>) -> Self {
        Dataset { event, ..self }
    }

    pub fn with_offset(self, offset: Option<Array1<f64>>) -> Self {
        Dataset { offset, ..self }
    }

    pub fn with_classes(self, classes: Vec<String>) -> Self {
        Dataset { classes, ..self }
    }

    /// Classes of the response: those with names, or as many as its largest number says.
    pub fn class_count(&self) -> usize {
        let largest = self.y.iter().flatten().fold(-1.0f64, |most, y| most.max(*y));
        if self.classes.is_empty() { (largest + 1.0) as usize } else { self.classes.len() }
    }

    /// Their names, or their numbers.
    pub fn class_names(&self) -> Vec<String> {
        match self.classes.is_empty() {
            true => (0..self.class_count()).map(|k| k.to_string()).collect(),
            false => self.classes.clone(),
        }
    }

    /// What is added to the linear predictor of row i.
    pub fn offset(&self, i: usize) -> f64 {
        self.offset.as_ref().map_or(0.0, |offset| offset[i])
    }

    pub fn with_response_names(self, response: ResponseNames) -> Self {
        Dataset { response, ..self }
    }

    /// cᵢ: how many observations row i stands for.
    pub fn weight(&self, i: usize) -> f64 {
        self.design.weights().map_or(1.0, |c| c[i])
    }

    /// Σ cᵢ, the number of observations.
    pub fn mass(&self) -> f64 {
        self.design.mass(self.n())
    }

    /// Rows before identical ones became one.
    pub fn rows_before(&self) -> usize {
        self.collapsed.map_or(self.n(), |before| before.rows)
    }

    /// A row from the empirical distribution.
    pub fn random_row(&self, rng: &mut Rng) -> usize {
        self.design.random_row(self.n(), rng)
    }

    /// The rows with these indices, in this order.
    pub fn select(&self, rows: &[usize]) -> Dataset {
        let y = self.y.as_ref().map(|y| y.select(Axis(0), rows));
        Dataset::new(self.x.select(rows), y, self.columns.clone())
            .with_design(self.design.select(rows))
            .with_event(self.event.as_ref().map(|event| event.select(Axis(0), rows)))
            .with_offset(self.offset.as_ref().map(|offset| offset.select(Axis(0), rows)))
            .with_classes(self.classes.clone())
            .with_response_names(self.response.clone())
    }

    /// The rows with these indices without names or design: what a loss needs of them, and no more.
    pub fn bare(&self, rows: &[usize]) -> Dataset {
        let of = |values: &Option<Array1<f64>>| values.as_ref().map(|v| v.select(Axis(0), rows));
        Dataset {
            x: self.x.select(rows),
            y: of(&self.y),
            event: of(&self.event),
            offset: of(&self.offset),
            ..Dataset::default()
        }
    }

    /// The rows of both, one set after the other, by the names of the first that has any.
    pub fn stack(first: &Dataset, second: &Dataset) -> Dataset {
        let (Some(some), Some(other)) = (
            [first, second].into_iter().find(|d| d.n() > 0),
            [first, second].into_iter().rfind(|d| d.n() > 0),
        ) else {
            return first.clone();
        };
        if std::ptr::eq(some, other) {
            return Dataset::new(some.x.clone(), some.y.clone(), some.columns.clone())
                .with_event(some.event.clone())
                .with_offset(some.offset.clone())
                .with_classes(some.classes.clone())
                .with_response_names(some.response.clone());
        }
        let x = first.x.stack(&second.x);
        let both = first.y.as_ref().zip(second.y.as_ref());
        let y = both.map(|(a, b)| ndarray::concatenate(Axis(0), &[a.view(), b.view()]).expect("two vectors"));
        let join = |of: fn(&Dataset) -> Option<&Array1<f64>>, or: f64| {
            let one = |data: &Dataset| of(data).cloned().unwrap_or_else(|| Array1::from_elem(data.n(), or));
            let both = || [one(first), one(second)].iter().flatten().copied().collect();
            (of(first).is_some() || of(second).is_some()).then(both)
        };
        let (events, offsets) =
            (join(|data| data.event.as_ref(), 1.0), join(|data| data.offset.as_ref(), 0.0));
        Dataset::new(x, y, first.columns.clone())
            .with_event(events)
            .with_offset(offsets)
            .with_classes(first.classes.clone())
            .with_response_names(first.response.clone())
    }

    /// The first `rows` rows.
    pub fn head(&self, rows: usize) -> Dataset {
        self.select(&(0..rows.min(self.n())).collect::<Vec<_>>())
    }

    /// The table of a numeric file.
    pub fn from_table(table: table::Table) -> crate::error::Result<Dataset> {
        let (frame, _, _) = prepare::frames(table, None, &prepare::Recipe::default())?;
        Ok(prepare::finish(frame, None, &prepare::Recipe::default(), None)?.0)
    }

    /// Mean and variance (divisor n) of each column under the empirical distribution.
    pub fn moments(&self) -> Vec<(f64, f64)> {
        let n = self.mass();
        // Row after row, as they lie in memory.
        let (mut mean, mut variance) = (vec![0.0; self.d()], vec![0.0; self.d()]);
        for (i, row) in self.x.tiles(CHUNK).flat_map(Tile::rows) {
            let c = self.weight(i) / n;
            mean.iter_mut().zip(row).for_each(|(mean, v)| *mean += c * v);
        }
        for (i, row) in self.x.tiles(CHUNK).flat_map(Tile::rows) {
            let c = self.weight(i) / n;
            let columns = variance.iter_mut().zip(&mean).zip(row);
            columns.for_each(|((variance, mean), v)| *variance += c * (v - mean) * (v - mean));
        }
        mean.into_iter().zip(variance).collect()
    }
}

/// Reads a file in a format, and says which bytes it held.
pub fn read(
    path: &std::path::Path,
    format: Format,
    rules: &text::Rules,
) -> crate::error::Result<(table::Table, files::Fingerprint)> {
    let file = files::InputFile::open(path)?;
    let known = || cache::Entry::of(path, format, file.is_compressed(), rules);
    // What is quick to read is not kept.
    let entry = if file.kind() == files::Kind::Other && format != Format::Parquet { known() } else { None };
    if let Some(kept) = entry.as_ref().and_then(|entry| entry.table(rules)) {
        return Ok(kept);
    }
    let (mut table, mut fingerprint) = read_once(path, format, rules)?;
    if table.is_scattered() {
        (table, fingerprint) = read_once(path, format, &text::Rules { gather: None, ..rules.clone() })?;
    }
    entry.into_iter().for_each(|entry| entry.keep(&table, &fingerprint));
    Ok((table, fingerprint))
}

fn read_once(
    path: &std::path::Path,
    format: Format,
    rules: &text::Rules,
) -> crate::error::Result<(table::Table, files::Fingerprint)> {
    let shown = path.display().to_string();
    let mut file = files::InputFile::open(path)?;
    let format = match file.kind() {
        files::Kind::Columns => Format::Columns,
        files::Kind::Parquet => Format::Parquet,
        files::Kind::Other => format,
    };
    let table = match format {
        Format::Parquet if file.is_compressed() => {
            let message =
                "Parquet within gzip is not read: unpack it; its columns are compressed by themselves";
            Err(crate::error::Error::input(format!("{}: {message}", printable(&shown))))
        }
        Format::Parquet => parquet::read(path, &shown, rules),
        Format::Columns => columns::read(file.content(), &shown, rules),
        Format::Idx => idx::read(file.content(), &shown, rules),
        Format::Text => text::read(file.content(), &shown, rules),
    }?;
    let fail = |e: std::io::Error| crate::error::Error::input(format!("{}: {e}", printable(&shown)));
    Ok((table, file.fingerprint().map_err(fail)?))
}

/// Text of any syntax, IDX, columns, or Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Idx,
    Columns,
    Parquet,
}
