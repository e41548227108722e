//! From a table as read to the numbers a model works on: target, dummies, missing values, standardisation. Every step is
//! declared in the config; nothing happens unasked.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dataset;
use super::table::{Kind, Table};
use crate::config::printable;
use crate::error::{Error, Result};

/// Which levels of a categorical column get a dummy column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dummies {
    /// All but the first in alphabetical order.
    #[default]
    DropFirst,
    /// All.
    KeepAll,
}

/// Which columns are brought to mean 0 and standard deviation 1 (divisor n − 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standardise {
    #[default]
    None,
    /// Numbers; dummies stay 0 and 1.
    Numeric,
    /// Dummies too.
    All,
}

/// Whose mean and standard deviation standardise the test rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StandardiseBy {
    /// Those of the training rows.
    #[default]
    Train,
    /// Its own, as the authors' code does: what the model learnt about units does not quite hold on the test rows.
    Each,
}

/// What happens to missing values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// They are an error.
    #[default]
    Error,
    /// Rows that have any are left out.
    Drop,
    /// Numbers become the mean of their column; a row without a level is left out.
    Mean,
}

/// What happens to a column that cannot be standardised because all its training values are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Constant {
    /// It is an error.
    #[default]
    Error,
    /// It is left out.
    Drop,
    /// It becomes 0.
    Zero,
}

/// What happens to a level that occurs only in the test file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// It is an error.
    #[default]
    Error,
    /// Its row has 0 in all dummies of the column.
    Zero,
}

/// The declared preparation.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Columns to use besides the target; `None`: all.
    pub columns: Option<Vec<String>>,
    pub target: Option<String>,
    /// Texts of the target and what they stand for.
    pub classes: BTreeMap<String, f64>,
    pub dummies: Dummies,
    pub unseen: Unseen,
    pub missing: Missing,
    pub constant: Constant,
    pub standardise: Standardise,
    pub standardise_by: StandardiseBy,
    /// Numbers are divided by this.
    pub divide: Option<f64>,
}

/// What the data became, for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    pub missing_cells: usize,
    pub dropped_rows: usize,
    /// Levels of each categorical column.
    pub levels: Vec<(String, usize)>,
}

/// Rows with dummies and target, missing numbers still NaN: what is split and then standardised.
#[derive(Clone, Debug)]
pub struct Frame {
    x: Array2<f64>,
    y: Option<Array1<f64>>,
    columns: Vec<String>,
    dummy: Vec<bool>,
}

/// How a table becomes a frame: one entry per output column.
struct Layout {
    /// Source column, and the level code of a dummy.
    sources: Vec<(usize, Option<usize>)>,
    columns: Vec<String>,
    target: Option<usize>,
    used: Vec<usize>,
}

impl Frame {
    pub fn n(&self) -> usize {
        self.x.nrows()
    }

    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    pub fn y(&self) -> Option<&Array1<f64>> {
        self.y.as_ref()
    }

    fn select(&self, rows: &[usize]) -> Frame {
        Frame {
            x: self.x.select(Axis(0), rows),
            y: self.y.as_ref().map(|y| y.select(Axis(0), rows)),
            columns: self.columns.clone(),
            dummy: self.dummy.clone(),
        }
    }

    /// Two parts by row numbers.
    pub fn split(&self, train: &[usize], test: &[usize]) -> (Frame, Frame) {
        (self.select(train), self.select(test))
    }

    /// The first `rows` rows.
    pub fn head(self, rows: Option<usize>) -> Frame {
        match rows {
            Some(rows) if rows < self.n() => self.select(&(0..rows).collect::<Vec<_>>()),
            _ => self,
        }
    }
}

/// Tables of one data set into frames with the same columns: the training table, and the test table if it is apart.
pub fn frames(train: Table, test: Option<Table>, recipe: &Recipe) -> Result<(Frame, Option<Frame>, Notes)> {
    let layout = Layout::new(&train, recipe)?;
    let mut notes = Notes { levels: layout.levels(&train), ..Notes::default() };
    let test = test.map(|t| align(&train, t, &layout, recipe)).transpose()?;
    let test = test.map(|t| frame(t, &layout, recipe, &mut notes)).transpose()?;
    let train = frame(train, &layout, recipe, &mut notes)?;
    Ok((train, test, notes))
}

impl Layout {
    fn new(table: &Table, recipe: &Recipe) -> Result<Layout> {
        let target = recipe.target.as_deref().map(|name| table.find(name)).transpose()?;
        let used: Vec<usize> = match &recipe.columns {
            Some(names) => names.iter().map(|n| table.find(n)).collect::<Result<_>>()?,
            None => (0..table.width()).filter(|&j| Some(j) != target).collect(),
        };
        if let Some(name) = target.filter(|t| used.contains(t)).map(|t| &table.names[t]) {
            return Err(Error::input(format!("the target \"{}\" is among `data.columns`", printable(name))));
        }
        // A response alone has an intercept to estimate.
        if used.is_empty() && target.is_none() {
            return Err(Error::input("no columns of the data are chosen"));
        }
        if let Some(i) = (1..used.len()).find(|&i| used[..i].contains(&used[i])) {
            let name = printable(&table.names[used[i]]);
            return Err(Error::input(format!("column \"{name}\" of the data is chosen twice")));
        }
        let (mut sources, mut columns) = (Vec::new(), Vec::new());
        for &j in &used {
            match &table.kinds[j] {
                Kind::Number => {
                    sources.push((j, None));
                    columns.push(table.names[j].clone());
                }
                Kind::Levels(levels) => {
                    let occurs = occurring(table, j, levels.names().len(), &target, &used, recipe);
                    let mut sorted: Vec<(&String, usize)> =
                        levels.names().iter().zip(0..).filter(|(_, code)| occurs[*code]).collect();
                    sorted.sort();
                    let skipped = usize::from(recipe.dummies == Dummies::DropFirst);
                    for (level, code) in sorted.into_iter().skip(skipped) {
                        sources.push((j, Some(code)));
                        columns.push(format!("{}_{level}", table.names[j]));
                    }
                }
            }
        }
        Ok(Layout { sources, columns, target, used })
    }

    fn levels(&self, table: &Table) -> Vec<(String, usize)> {
        let count = |&j: &usize| match &table.kinds[j] {
            Kind::Levels(levels) => Some((table.names[j].clone(), levels.names().len())),
            Kind::Number => None,
        };
        self.used.iter().filter_map(count).collect()
    }
}

/// Which levels of column j occur in a row that is kept: one that is found only beside missing values gets no dummy.
fn occurring(
    table: &Table,
    j: usize,
    levels: usize,
    target: &Option<usize>,
    used: &[usize],
    recipe: &Recipe,
) -> Vec<bool> {
    let mut occurs = vec![false; levels];
    for row in table.cells.chunks_exact(table.width()) {
        if row[j].is_finite() && !is_dropped(table, row, used, target, recipe) {
            occurs[row[j] as usize] = true;
        }
    }
    occurs
}

/// Whether missing values cost the row its place.
fn is_dropped(table: &Table, row: &[f64], used: &[usize], target: &Option<usize>, recipe: &Recipe) -> bool {
    let counts = |j: &usize| recipe.missing != Missing::Mean || matches!(table.kinds[*j], Kind::Levels(_));
    used.iter().chain(target).filter(|j| counts(j)).any(|&j| row[j].is_nan())
}

/// The test table with the level codes of the training table.
fn align(train: &Table, test: Table, layout: &Layout, recipe: &Recipe) -> Result<Table> {
    let mut both = Table { names: train.names.clone(), kinds: train.kinds.clone(), cells: Vec::new() };
    both.append(test, "the test data")?;
    if recipe.unseen == Unseen::Error {
        for &j in &layout.used {
            if let (Kind::Levels(old), Kind::Levels(new)) = (&train.kinds[j], &both.kinds[j])
                && let Some(level) = new.names().get(old.names().len())
            {
                return Err(Error::input(format!(
                    "level \"{}\" of column \"{}\" occurs only in the test data; `data.unseen = \"zero\"` allows that",
                    printable(level),
                    printable(&train.names[j])
                )));
            }
        }
    }
    Ok(both)
}

fn frame(table: Table, layout: &Layout, recipe: &Recipe, notes: &mut Notes) -> Result<Frame> {
    let width = table.width();
    let y = layout.target.map(|t| responses(&table, t, recipe)).transpose()?;
    let mut kept = Vec::new();
    for (i, row) in table.cells.chunks_exact(width).enumerate() {
        notes.missing_cells += layout.used.iter().filter(|&&j| row[j].is_nan()).count();
        match is_dropped(&table, row, &layout.used, &layout.target, recipe) {
            true if recipe.missing == Missing::Error => return Err(first_missing(&table, layout, i)),
            true => notes.dropped_rows += 1,
            false => kept.push(i),
        }
    }
    if kept.is_empty() {
        return Err(Error::input("every row of the data has a missing value"));
    }
    let scale = 1.0 / recipe.divide.unwrap_or(1.0);
    let cell = |i: usize, c: usize| {
        let (j, level) = layout.sources[c];
        let value = table.cells[kept[i] * width + j];
        match level {
            None => value * scale,
            Some(level) => f64::from(value == level as f64),
        }
    };
    let plain = kept.len() == table.rows() && layout.sources.iter().enumerate().all(|(c, s)| *s == (c, None));
    let x = if plain && width == layout.sources.len() && recipe.divide.is_none() {
        Array2::from_shape_vec((kept.len(), width), table.cells).expect("every row has every cell")
    } else {
        Array2::from_shape_fn((kept.len(), layout.sources.len()), |(i, c)| cell(i, c))
    };
    Ok(Frame {
        x,
        y: y.map(|y| kept.iter().map(|&i| y[i]).collect()),
        columns: layout.columns.clone(),
        dummy: layout.sources.iter().map(|(_, level)| level.is_some()).collect(),
    })
}

fn first_missing(table: &Table, layout: &Layout, row: usize) -> Error {
    let missing = |&&j: &&usize| table.cells[row * table.width() + j].is_nan();
    let column = layout.used.iter().chain(&layout.target).find(missing).map_or("", |&j| &table.names[j]);
    Error::input(format!(
        "row {} of the data has no value in column \"{}\"; `data.missing` says what to do: \"drop\" or \"mean\"",
        row + 1,
        printable(column)
    ))
}

/// The target as numbers: by `classes`, or as written; −1 and 1 become 0 and 1.
fn responses(table: &Table, target: usize, recipe: &Recipe) -> Result<Vec<f64>> {
    let Kind::Levels(levels) = &table.kinds[target] else {
        return Ok(table.column(target).collect());
    };
    let name = printable(&table.names[target]);
    let mut values = Vec::new();
    for level in levels.names() {
        values.push(match recipe.classes.get(level) {
            Some(&value) => value,
            None if recipe.classes.is_empty() => level.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| {
                let message = format!(
                    "target \"{name}\" has the value \"{}\"; say what it stands for: `data.classes = {{ \"{}\" = 1, … }}`",
                    printable(level),
                    printable(level)
                );
                Error::input(message)
            })?,
            None => {
                let message = format!("target \"{name}\" has the value \"{}\", not in `data.classes`", printable(level));
                return Err(Error::input(message));
            }
        });
    }
    if values.iter().all(|&v| v == -1.0 || v == 1.0) {
        values.iter_mut().for_each(|v| *v = 0.5 * (*v + 1.0));
    }
    Ok(table.column(target).map(|code| if code.is_nan() { code } else { values[code as usize] }).collect())
}

/// Imputes and standardises the two parts of a repeat.
pub fn finish(train: Frame, test: Option<Frame>, recipe: &Recipe) -> Result<(Dataset, Option<Dataset>)> {
    let own: Vec<Scale> = train.scales(recipe);
    let constant = |j: &usize| own[*j].standardise && own[*j].sd == 0.0;
    let constants: Vec<usize> = (0..own.len()).filter(|j| constant(j)).collect();
    if let (Constant::Error, Some(&j), true) = (recipe.constant, constants.first(), train.n() > 0) {
        return Err(Error::input(format!(
            "column \"{}\" has the same value in all training rows and cannot be standardised; `data.constant` says \
             what to do: \"drop\" or \"zero\"",
            printable(&train.columns[j])
        )));
    }
    let dropped = if recipe.constant == Constant::Drop { constants } else { Vec::new() };
    let kept: Vec<usize> = (0..own.len()).filter(|j| dropped.binary_search(j).is_err()).collect();
    let test = test.map(|test| {
        let scales = match recipe.standardise_by {
            StandardiseBy::Train => own.clone(),
            StandardiseBy::Each => test.scales(recipe),
        };
        test.scaled(&scales, &kept)
    });
    Ok((train.scaled(&own, &kept), test))
}

/// Mean, standard deviation, and whether to use them, of one column.
#[derive(Clone, Copy)]
struct Scale {
    mean: f64,
    sd: f64,
    standardise: bool,
}

impl Frame {
    /// Of the values that are not missing. Two passes: sums of squares of raw values would lose digits.
    fn scales(&self, recipe: &Recipe) -> Vec<Scale> {
        let scale = |(j, column): (usize, ndarray::ArrayView1<f64>)| {
            let known = || column.iter().copied().filter(|v| !v.is_nan());
            let n = known().count() as f64;
            let mean = known().sum::<f64>() / n;
            let sd = (known().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0)).sqrt();
            let standardise = match recipe.standardise {
                Standardise::None => false,
                Standardise::Numeric => !self.dummy[j],
                Standardise::All => true,
            };
            let (mean, sd) =
                (if n > 0.0 { mean } else { 0.0 }, if sd > 1e-14 * mean.abs() { sd } else { 0.0 });
            Scale { mean, sd, standardise }
        };
        self.x.axis_iter(Axis(1)).enumerate().map(scale).collect()
    }

    fn scaled(mut self, scales: &[Scale], kept: &[usize]) -> Dataset {
        for (mut column, scale) in self.x.axis_iter_mut(Axis(1)).zip(scales) {
            let needed = scale.standardise || column.iter().any(|v| v.is_nan());
            if needed {
                column.mapv_inplace(|v| {
                    let v = if v.is_nan() { scale.mean } else { v };
                    match (scale.standardise, scale.sd > 0.0) {
                        (true, true) => (v - scale.mean) / scale.sd,
                        (true, false) => 0.0,
                        (false, _) => v,
                    }
                });
            }
        }
        if kept.len() == self.columns.len() {
            return Dataset::new(self.x, self.y, self.columns);
        }
        let columns = kept.iter().map(|&j| self.columns[j].clone()).collect();
        Dataset::new(self.x.select(Axis(1), kept), self.y, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::{Categorical, Rules, read};

    fn table(text: &str) -> Table {
        let rules = Rules {
            categorical: Categorical::Columns(vec!["c".into()]),
            labels: vec!["y".into()],
            missing: vec!["?".into()],
            ..Rules::default()
        };
        read(text.as_bytes(), "t", &rules).unwrap()
    }

    fn recipe() -> Recipe {
        Recipe { target: Some("y".into()), ..Recipe::default() }
    }

    #[test]
    fn dummies_are_sorted_and_the_first_is_dropped() {
        let text = "a,c,y\n1,z,1\n2,x,0\n3,y,1\n";
        let (frame, _, notes) = frames(table(text), None, &recipe()).unwrap();
        assert_eq!(frame.columns, ["a", "c_y", "c_z"]);
        assert_eq!(frame.x, ndarray::array![[1.0, 0.0, 1.0], [2.0, 0.0, 0.0], [3.0, 1.0, 0.0]]);
        assert_eq!(frame.y.unwrap().to_vec(), [1.0, 0.0, 1.0]);
        assert_eq!(notes.levels, [("c".to_owned(), 3)]);
        let all = Recipe { dummies: Dummies::KeepAll, ..recipe() };
        assert_eq!(frames(table(text), None, &all).unwrap().0.columns, ["a", "c_x", "c_y", "c_z"]);
    }

    #[test]
    fn a_level_found_only_in_dropped_rows_gets_no_dummy() {
        let drop = Recipe { missing: Missing::Drop, ..recipe() };
        let text = "a,c,y\n1,x,1\n?,w,0\n3,z,1\n";
        assert_eq!(frames(table(text), None, &drop).unwrap().0.columns, ["a", "c_z"]);
    }

    #[test]
    fn missing_values_follow_the_policy() {
        let text = "a,c,y\n1,z,1\n?,x,0\n3,?,1\n5,x,0\n";
        let error = frames(table(text), None, &recipe()).unwrap_err().to_string();
        assert!(error.starts_with("row 2 of the data has no value in column \"a\""), "{error}");
        let drop = Recipe { missing: Missing::Drop, ..recipe() };
        let (frame, _, notes) = frames(table(text), None, &drop).unwrap();
        assert_eq!((frame.n(), notes.dropped_rows, notes.missing_cells), (2, 2, 2));
        let mean = Recipe { missing: Missing::Mean, ..recipe() };
        let (frame, _, notes) = frames(table(text), None, &mean).unwrap();
        assert_eq!((frame.n(), notes.dropped_rows), (3, 1));
        let (data, _) = finish(frame, None, &mean).unwrap();
        assert_eq!(data.x.column(0).to_vec(), [1.0, 3.0, 5.0], "imputed by the mean of 1 and 5");
    }

    #[test]
    fn test_rows_are_standardised_by_the_training_rows_or_their_own() {
        let by = |standardise_by| {
            let recipe = Recipe { standardise: Standardise::Numeric, standardise_by, ..recipe() };
            let (train, test) = ("a,c,y\n1,x,1\n3,z,0\n", "a,c,y\n5,x,1\n9,x,0\n");
            let (train, test, _) = frames(table(train), Some(table(test)), &recipe).unwrap();
            finish(train, test, &recipe).unwrap()
        };
        let half = 0.5f64.sqrt();
        let (train, test) = by(StandardiseBy::Train);
        let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&train.x.column(0).to_vec(), [-half, half]));
        assert_eq!(train.x.column(1).to_vec(), [0.0, 1.0], "dummies stay");
        assert!(close(&test.unwrap().x.column(0).to_vec(), [3.0 * half, 7.0 * half]));
        assert!(close(&by(StandardiseBy::Each).1.unwrap().x.column(0).to_vec(), [-half, half]));
    }

    #[test]
    fn constant_columns_follow_the_policy() {
        let with = |constant| {
            let recipe = Recipe { standardise: Standardise::All, constant, ..recipe() };
            let (frame, _, _) = frames(table("a,c,y\n1,x,1\n1,z,0\n"), None, &recipe).unwrap();
            finish(frame, None, &recipe).map(|(d, _)| d)
        };
        assert!(with(Constant::Error).unwrap_err().to_string().contains("column \"a\" has the same value"));
        assert_eq!(with(Constant::Drop).unwrap().columns, ["c_z"]);
        assert_eq!(with(Constant::Zero).unwrap().x.column(0).to_vec(), [0.0, 0.0]);
    }

    #[test]
    fn levels_only_in_the_test_data_are_an_error_or_zero() {
        let with = |unseen| {
            let recipe = Recipe { unseen, ..recipe() };
            let (train, test) = (table("a,c,y\n1,x,1\n2,z,0\n"), table("a,c,y\n1,w,1\n2,z,0\n"));
            frames(train, Some(test), &recipe).map(|(_, test, _)| test.unwrap().x)
        };
        assert!(with(Unseen::Error).unwrap_err().to_string().contains("level \"w\" of column \"c\""));
        assert_eq!(with(Unseen::Zero).unwrap(), ndarray::array![[1.0, 0.0], [2.0, 1.0]]);
    }

    #[test]
    fn targets_are_mapped() {
        let map = |classes: &[(&str, f64)], text: &str| {
            let classes = classes.iter().map(|(k, v)| (k.to_string(), *v)).collect();
            let recipe = Recipe { classes, ..recipe() };
            frames(table(text), None, &recipe)
                .map(|(f, _, _)| f.y.unwrap().to_vec())
                .map_err(|e| e.to_string())
        };
        assert_eq!(map(&[], "a,c,y\n1,x,-1\n1,x,1\n").unwrap(), [0.0, 1.0]);
        assert_eq!(map(&[("no", 0.0), ("yes", 1.0)], "a,c,y\n1,x,yes\n1,x,no\n").unwrap(), [1.0, 0.0]);
        assert!(map(&[], "a,c,y\n1,x,yes\n").unwrap_err().contains("say what it stands for"));
        assert!(map(&[("no", 0.0)], "a,c,y\n1,x,yes\n").unwrap_err().contains("not in `data.classes`"));
    }
}
