//! What the names in a loss stand for: columns of the data, and parameters.

use std::collections::BTreeMap;

use super::super::Block;
use crate::data::Dataset;
use crate::expression::{Columns, Leaf, Meaning, Scope};

/// The response and censoring are columns after the covariates.
pub const TARGET: usize = 0;
pub const EVENT: usize = 1;

/// A data set as expressions see it: covariates, the response, and 1 where that is an event.
pub struct DataColumns<'a>(pub &'a Dataset);

impl Columns for DataColumns<'_> {
    fn n(&self) -> usize {
        self.0.n()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        let d = self.0.d();
        match j {
            j if j < d => self.0.x[[i, j]],
            j if j == d + TARGET => self.0.y.as_ref().map_or(f64::NAN, |y| y[i]),
            _ => self.0.event.as_ref().map_or(1.0, |event| event[i]),
        }
    }
}

/// Columns by their names, `x` for all covariates, `y` for the response, `event` for censoring.
pub fn named_columns(data: &Dataset) -> BTreeMap<String, Meaning> {
    let d = data.d();
    let mut known: BTreeMap<String, Meaning> = BTreeMap::new();
    let number = |j: usize| Meaning::Number(Leaf::Column(j));
    for (j, column) in data.columns.iter().enumerate() {
        known.insert(column.clone(), number(j));
    }
    // Names of ours give way to those of the data.
    let own = [
        (data.response.target.as_deref(), data.y.is_some(), d + TARGET),
        (data.response.event.as_deref(), data.event.is_some(), d + EVENT),
        (Some("y"), data.y.is_some(), d + TARGET),
        (Some("event"), data.y.is_some(), d + EVENT),
    ];
    for (name, there, j) in own {
        if let Some(name) = name.filter(|_| there) {
            known.entry(name.to_owned()).or_insert_with(|| number(j));
        }
    }
    if d > 0 {
        known.entry("x".to_owned()).or_insert_with(|| Meaning::Vector((0..d).map(Leaf::Column).collect()));
    }
    known
}

/// Columns; parameters, and their entries.
pub fn scope(data: &Dataset, blocks: &[Block], names: &[String]) -> Scope {
    let mut known = named_columns(data);
    let mut add = |name: &str, meaning: Meaning| {
        let meaning = match known.get(name) {
            Some(_) => Meaning::Two("both a column of the data and a parameter".into()),
            None => meaning,
        };
        known.insert(name.to_owned(), meaning);
    };
    for block in blocks {
        let entries: Vec<Leaf> = block.range.clone().map(Leaf::Parameter).collect();
        let single = names[block.range.start] == block.name;
        match entries[..] {
            [only] if single => add(&block.name, Meaning::Number(only)),
            _ => {
                block.range.clone().for_each(|j| add(&names[j], Meaning::Number(Leaf::Parameter(j))));
                add(&block.name, Meaning::Vector(entries));
            }
        }
    }
    Scope {
        names: known,
        covariates: (0..data.d()).collect(),
        known: "a column of the data, a parameter or a constant",
        hints: Vec::new(),
    }
}
