//! From a table as read to the numbers a model works on: target, dummies, missing values, standardisation. Every step is
//! declared in the config; nothing happens unasked.

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::{Array1, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collapse::Collapsed;
use super::design::{Design, DesignColumns, Groups};
use super::doubts::doubts;
use super::formula::Formula;
use super::memory;
use super::preparation::{Column, InputColumn, Preparation, Target, VERSION};
use super::table::{Kind, Levels, Table};
use super::text::SHARE;
use super::{Dataset, ResponseNames, Rows};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::expression::Fault;
use crate::storage::{self, Buffer, Place};

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
    /// Columns to use besides the target and those of the design; `None`: all.
    pub columns: Option<Vec<String>>,
    pub target: Option<String>,
    /// Columns that are responses too: they are neither imputed nor standardised.
    pub responses: Vec<String>,
    /// Whether responses are events, or censored.
    pub event: Option<String>,
    /// What is added to the linear predictor, and what multiplies the mean under a log link.
    pub offset: Option<String>,
    pub exposure: Option<String>,
    /// A value of each row that says how rows are split.
    pub fold: Option<String>,
    /// A value of each row that says which group it belongs to.
    pub by: Option<String>,
    pub design: DesignColumns<String>,
    /// Texts of the target and what they stand for.
    pub classes: BTreeMap<String, f64>,
    /// The response is one of several classes, whatever its texts are.
    pub classifies: bool,
    pub dummies: Dummies,
    pub unseen: Unseen,
    pub missing: Missing,
    pub constant: Constant,
    pub standardise: Standardise,
    pub standardise_by: StandardiseBy,
    /// Numbers are divided by this.
    pub divide: Option<f64>,
    /// What the columns become, where it is not one or its dummies each.
    pub formula: Option<Formula>,
    /// Where rows are to be that become more than their tables; left out: in memory as long as that is large enough.
    pub place: Option<Place>,
}

impl Recipe {
    /// Whether a column holds the response, groups or a part of the design.
    pub fn names_text(&self, name: &String) -> bool {
        let named = [&self.target, &self.by].into_iter().any(|column| column.as_ref() == Some(name));
        named || self.design.texts().contains(name)
    }
}

impl Recipe {
    /// With a class for each text of the response, where it is one of several and nobody says which: in the order of
    /// numbers, where all texts are numbers, or of the alphabet.
    fn with_classes(&self, table: &Table, target: Option<usize>) -> Recipe {
        let mut recipe = self.clone();
        let levels = target.map(|j| &table.kinds[j]);
        if let Some(Kind::Levels(levels)) = levels.filter(|_| self.classifies && self.classes.is_empty()) {
            let mut names: Vec<&String> = levels.names().iter().collect();
            let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
            let number = |name: &String| name.parse::<f64>().unwrap_or(0.0);
            match numbers {
                Some(_) => names.sort_by(|a, b| number(a).total_cmp(&number(b)).then(a.cmp(b))),
                None => names.sort(),
            }
            recipe.classes = names.into_iter().cloned().zip((0..).map(f64::from)).collect();
        }
        recipe
    }

    /// The names of classes 0, 1, 2, …, of those that have any.
    fn class_names(&self) -> Vec<String> {
        let most = self.classes.values().fold(-1.0f64, |most, k| most.max(*k));
        let named = |k: usize| {
            let texts = self.classes.iter().filter(|(_, class)| **class == k as f64);
            texts.map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("|")
        };
        if most < 1e6 { (0..(most + 1.0) as usize).map(named).collect() } else { Vec::new() }
    }
}

/// What the data became, for people. Training and test files are counted together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Rows read.
    pub rows: usize,
    /// Rows left out because they stand for no observation.
    #[serde(skip_serializing_if = "is_none")]
    pub rows_of_weight_0: usize,
    /// Rows with missing cells.
    pub rows_with_missing: usize,
    /// Rows left out because of them.
    pub rows_dropped: usize,
    /// Missing cells of the other rows, which get the mean of their column.
    pub cells_imputed: usize,
    /// Training rows that differ, where identical ones became one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<usize>,
    /// Columns of text that look like something else, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Columns with missing cells, and how many those are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, usize>,
    /// The same of the file of an empirical base measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Box<Notes>>,
    /// Categorical columns, with the levels of the rows that are kept, in alphabetical order.
    #[serde(skip)]
    pub levels: Vec<(String, Vec<String>)>,
    /// Columns with their dummies, before constant ones are left out.
    #[serde(skip)]
    pub columns: Vec<String>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Notes {
    /// Of these rows and others, which became the same columns.
    pub fn and(mut self, more: &Notes) -> Notes {
        self.rows += more.rows;
        self.rows_of_weight_0 += more.rows_of_weight_0;
        self.rows_with_missing += more.rows_with_missing;
        self.rows_dropped += more.rows_dropped;
        self.cells_imputed += more.cells_imputed;
        for (name, count) in &more.missing {
            *self.missing.entry(name.clone()).or_default() += count;
        }
        self
    }

    /// What of the files is not in the data as it was written, in a line for each of them.
    pub fn changes(&self) -> Vec<String> {
        let Notes { rows, rows_of_weight_0, rows_dropped, cells_imputed, .. } = self;
        let changes = [
            (rows_of_weight_0, format!("{rows_of_weight_0} of {rows} rows have weight 0 and are left out")),
            (rows_dropped, format!("{rows_dropped} of {rows} rows have missing values and are left out")),
            (cells_imputed, format!("{cells_imputed} missing cells get the mean of their column")),
        ];
        let changes = changes.into_iter().filter(|(count, _)| **count > 0).map(|(_, what)| what);
        let collapsed = self.distinct.map(|distinct| {
            format!("identical training rows are one: {distinct} that differ, each with the number of its copies as its weight")
        });
        let changes = changes.chain(collapsed).collect::<Vec<_>>().join("; ");
        let own = Some(changes).filter(|changes| !changes.is_empty());
        let base = self.base.iter().flat_map(|base| base.changes());
        let doubts = self.doubts.iter().cloned();
        own.into_iter().chain(doubts).chain(base.map(|line| format!("base measure: {line}"))).collect()
    }
}

/// Rows with dummies and target, missing numbers still NaN: what is split and then standardised.
#[derive(Clone, Debug)]
pub struct Frame {
    x: Rows,
    y: Option<Array1<f64>>,
    event: Option<Array1<f64>>,
    offset: Option<Array1<f64>>,
    classes: Vec<String>,
    folds: Option<Vec<String>>,
    /// What says which group a row belongs to: a number, or the code of a level.
    by: Option<Vec<f64>>,
    columns: Vec<String>,
    dummy: Vec<bool>,
    design: Design,
    response: ResponseNames,
    origin: Arc<Origin>,
    /// Of rows that stand for several, which those were.
    collapsed: Option<Collapsed>,
}

/// What the columns of a frame were made of.
#[derive(Clone, Debug, Default)]
struct Origin {
    inputs: Vec<InputColumn>,
    /// Of every column: places of its inputs, and of the levels of dummies; it is the product of them.
    sources: Vec<Vec<(usize, Option<usize>)>>,
    target: Option<Target>,
    /// How they were made of a table.
    pattern: Option<Pattern>,
}

/// The table of the training rows without its rows, and what becomes of its columns.
#[derive(Clone, Debug)]
struct Pattern {
    table: Table,
    layout: Layout,
    recipe: Recipe,
}

/// The columns of a table that are used.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    covariates: Vec<usize>,
    target: Option<usize>,
    event: Option<usize>,
    offset: Option<usize>,
    exposure: Option<usize>,
    fold: Option<usize>,
    pub(super) by: Option<usize>,
    design: DesignColumns<usize>,
}

/// How a table becomes a frame: one entry per output column.
#[derive(Clone, Debug)]
struct Layout {
    chosen: Chosen,
    sources: Vec<Source>,
    columns: Vec<String>,
    /// Categorical columns, with their levels in alphabetical order.
    levels: Vec<(String, Vec<String>)>,
}

/// What an output column is: a source column, or a dummy of it by the code of a level; or a product of some.
#[derive(Clone, Debug)]
struct Source {
    first: (usize, Option<usize>),
    more: Vec<(usize, Option<usize>)>,
}

impl Source {
    fn one(column: usize, level: Option<usize>) -> Source {
        Source { first: (column, level), more: Vec::new() }
    }

    fn parts(&self) -> impl Iterator<Item = &(usize, Option<usize>)> {
        std::iter::once(&self.first).chain(&self.more)
    }

    fn is_dummy(&self) -> bool {
        self.parts().all(|(_, level)| level.is_some())
    }
}

impl Frame {
    pub fn n(&self) -> usize {
        self.x.n()
    }

    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    pub fn y(&self) -> Option<&Array1<f64>> {
        self.y.as_ref()
    }

    /// Rows of another table, with the columns of this one: historical rows. They count by their weights if they have any; clusters,
    /// strata and folds are of the data only.
    pub fn beside(&self, table: Table) -> Result<(Frame, Notes)> {
        let Some(Pattern { table: like, layout, recipe }) = &self.origin.pattern else {
            return Err(Error::input("the data are no table that others could be like"));
        };
        let weight = layout.chosen.design.weight.filter(|&j| table.names.contains(&like.names[j]));
        let table = align(like, without_others(table, like), layout, recipe, "historical rows")?;
        let design = DesignColumns { weight, ..DesignColumns::default() };
        let chosen = Chosen { fold: None, by: None, design, ..layout.chosen.clone() };
        let layout = &Layout { chosen, ..layout.clone() };
        let mut notes = Notes::default();
        let kept = layout.chosen.kept(&table, recipe, &mut notes)?;
        let design = layout.chosen.design(&table, &kept)?;
        let place = table.cells.place();
        Ok((Frame { design, ..frame(table, &kept, layout, place, recipe)? }, notes))
    }

    /// What each row says of how rows are split.
    pub fn folds(&self) -> Option<&[String]> {
        self.folds.as_deref()
    }

    fn select(&self, rows: &[usize]) -> Frame {
        Frame {
            x: self.x.select(rows),
            y: self.y.as_ref().map(|y| y.select(Axis(0), rows)),
            event: self.event.as_ref().map(|event| event.select(Axis(0), rows)),
            offset: self.offset.as_ref().map(|offset| offset.select(Axis(0), rows)),
            classes: self.classes.clone(),
            folds: self.folds.as_ref().map(|folds| rows.iter().map(|&i| folds[i].clone()).collect()),
            by: self.by.as_ref().map(|by| rows.iter().map(|&i| by[i]).collect()),
            columns: self.columns.clone(),
            dummy: self.dummy.clone(),
            design: self.design.select(rows),
            origin: self.origin.clone(),
            response: self.response.clone(),
            collapsed: self.collapsed,
        }
    }

    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The rows of the group with this value, as the table has it.
    pub fn of_group(&self, value: f64) -> Frame {
        let by = self.by.as_deref().unwrap_or_default();
        let rows: Vec<usize> = (0..self.n()).filter(|&i| by[i] == value).collect();
        self.select(&rows)
    }

    /// The first `rows` rows of every group.
    pub fn heads(&self, rows: usize) -> Frame {
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        let first = |by: f64| {
            let count = seen.entry(by.to_bits()).or_default();
            *count += 1;
            *count <= rows
        };
        let kept: Vec<bool> = self.by.iter().flatten().copied().map(first).collect();
        self.select(&(0..kept.len()).filter(|&i| kept[i]).collect::<Vec<_>>())
    }

    /// Two parts by row numbers. Test rows count once each.
    pub fn split(&self, train: &[usize], test: &[usize]) -> (Frame, Frame) {
        (self.select(train), Frame { design: Design::default(), ..self.select(test) })
    }

    /// The first `rows` rows.
    pub fn head(self, rows: Option<usize>) -> Frame {
        match rows {
            Some(rows) if rows < self.n() => self.select(&(0..rows).collect::<Vec<_>>()),
            _ => self,
        }
    }
}

/// Names of the columns of a table that covariates are made of.
pub fn inputs(table: &Table, recipe: &Recipe) -> Result<Vec<String>> {
    let chosen = Chosen::new(table, recipe)?;
    Ok(chosen.covariates.iter().map(|&j| table.names[j].clone()).collect())
}

/// Tables of one data set into frames with the same columns: the training table, and the test table if it is apart.
pub fn frames(train: Table, test: Option<Table>, recipe: &Recipe) -> Result<(Frame, Option<Frame>, Notes)> {
    let chosen = Chosen::new(&train, recipe)?;
    let recipe = &recipe.with_classes(&train, chosen.target);
    let mut notes = Notes::default();
    let kept = chosen.kept(&train, recipe, &mut notes)?;
    let layout = Layout::new(&train, &kept, chosen, recipe);
    layout.check(&train)?;
    // What the tables hold is free again when the frames are made.
    let (rows, held) = test.as_ref().map_or((0, 0), |test| (test.rows(), test.cells.len()));
    let room = memory::room().saturating_add(train.cells.len() + held);
    let wider = layout.place((kept.len() + rows).saturating_mul(layout.columns.len()), room, &train, recipe);
    if wider == Place::Memory {
        layout.fits(kept.len() + rows, room)?;
    }
    let test = test.map(|t| align(&train, t, &layout, recipe, "test data")).transpose()?;
    let test = test
        .map(|t| {
            let kept = layout.chosen.of_test_rows().kept(&t, recipe, &mut notes)?;
            frame(t, &kept, &layout, wider, recipe)
        })
        .transpose()?;
    let design = layout.chosen.design(&train, &kept)?;
    let pattern = Pattern { table: train.empty(), layout: layout.clone(), recipe: recipe.clone() };
    let origin = Arc::new(Origin { pattern: Some(pattern), ..layout.origin(&train, recipe) });
    let rows = || kept.iter().map(|&i| train.copies_of(i)).sum();
    let before = || Collapsed { rows: rows(), kept: kept.len(), whole_weights: true };
    let collapsed = train.copies.is_some().then(before);
    let train = Frame { design, origin, collapsed, ..frame(train, &kept, &layout, wider, recipe)? };
    notes.doubts = doubts(&layout.levels);
    (notes.levels, notes.columns) = (layout.levels, layout.columns);
    Ok((train, test, notes))
}

impl Chosen {
    pub(super) fn new(table: &Table, recipe: &Recipe) -> Result<Chosen> {
        let target = recipe.target.as_deref().map(|name| table.find(name)).transpose()?;
        let find = |name: &Option<String>| name.as_deref().map(|name| table.find(name)).transpose();
        let (event, offset, exposure) =
            (find(&recipe.event)?, find(&recipe.offset)?, find(&recipe.exposure)?);
        let (fold, by) = (find(&recipe.fold)?, find(&recipe.by)?);
        let design = recipe.design.find(table)?;
        let design_keys = design.keys().map(|(key, j)| (format!("`{key}`"), *j));
        let beside = [
            ("`data.event`", event),
            ("`data.offset`", offset),
            ("`data.exposure`", exposure),
            ("`data.split`", fold),
            ("`data.by`", by),
        ];
        let response_keys = [("the target", target)].into_iter().chain(beside);
        let response_keys = response_keys.filter_map(|(key, j)| Some((key.to_owned(), j?)));
        let taken: Vec<(String, usize)> = response_keys.chain(design_keys).collect();
        let covariates: Vec<usize> = match &recipe.columns {
            Some(names) => names.iter().map(|n| table.find(n)).collect::<Result<_>>()?,
            None => (0..table.width()).filter(|j| taken.iter().all(|(_, t)| t != j)).collect(),
        };
        for (i, (key, j)) in taken.iter().enumerate() {
            let name = printable(&table.names[*j]);
            if let Some((other, _)) = taken[..i].iter().find(|(_, t)| t == j) {
                let message = format!("{other} and {key} are the same column, \"{name}\"");
                return Err(Error::input(message));
            }
            if covariates.contains(j) {
                let message = match recipe.formula.is_some() {
                    true => format!("{key}, \"{name}\", is among the terms of `data.formula`"),
                    false => format!("{key}, \"{name}\", is among `data.columns`"),
                };
                return Err(Error::input(message));
            }
        }
        // A response alone has an intercept to estimate.
        if covariates.is_empty() && target.is_none() {
            return Err(Error::input("no columns of the data are chosen"));
        }
        let mut seen = vec![false; table.width()];
        if let Some(&twice) = covariates.iter().find(|&&j| std::mem::replace(&mut seen[j], true)) {
            let name = printable(&table.names[twice]);
            return Err(Error::input(format!("column \"{name}\" of the data is chosen twice")));
        }
        if let Some(j) = design.weight.filter(|&j| table.kinds[j] != Kind::Number) {
            let name = printable(&table.names[j]);
            return Err(Error::input(format!("`data.weight`: column \"{name}\" holds text, not numbers")));
        }
        let is_event = |v: f64| v == 0.0 || v == 1.0;
        type Rule<'a> = (&'a str, Option<usize>, &'a str, &'a dyn Fn(f64) -> bool);
        let rules: [Rule; 3] = [
            ("event", event, "0 or 1", &is_event),
            ("offset", offset, "a number", &f64::is_finite),
            ("exposure", exposure, "above 0", &|v| v > 0.0 && v.is_finite()),
        ];
        for (key, column, what, admits) in rules {
            let Some(j) = column else { continue };
            let name = printable(&table.names[j]);
            if table.kinds[j] != Kind::Number {
                return Err(Error::input(format!("`data.{key}`: column \"{name}\" holds text, not numbers")));
            }
            if let Some(v) = table.column(j).find(|&v| !admits(v) && !v.is_nan()) {
                return Err(Error::input(format!(
                    "`data.{key}`: column \"{name}\" must be {what}, and has {v}"
                )));
            }
        }
        Ok(Chosen { covariates, target, event, offset, exposure, fold, by, design })
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        let response = self.target.into_iter().chain(self.beside());
        self.covariates.iter().copied().chain(response).chain(self.design.keys().map(|(_, j)| *j))
    }

    /// Columns that say more of a response, or of its linear predictor.
    fn beside(&self) -> impl Iterator<Item = usize> {
        [self.event, self.offset, self.exposure, self.fold, self.by].into_iter().flatten()
    }

    /// What is added to the linear predictor of the rows that are kept.
    fn offsets(&self, table: &Table, kept: &[usize]) -> Option<Array1<f64>> {
        let cell = |i: &usize, j: Option<usize>| j.map(|j| table.cells[i * table.width() + j]);
        let of_row = |i| cell(i, self.offset).unwrap_or(0.0) + cell(i, self.exposure).map_or(0.0, libm::log);
        (self.offset.is_some() || self.exposure.is_some()).then(|| kept.iter().map(of_row).collect())
    }

    /// Test rows count once each, whatever they say of a design.
    pub(super) fn of_test_rows(&self) -> Chosen {
        Chosen { design: DesignColumns::default(), ..self.clone() }
    }

    /// The same with the groups in another column.
    pub(super) fn by(&self, column: usize) -> Chosen {
        Chosen { by: Some(column), ..self.clone() }
    }

    /// A row of case weight 0 stands for no observation: it is as if it were not there.
    pub(super) fn is_absent(&self, row: &[f64]) -> bool {
        self.design.weight.is_some_and(|j| row[j] == 0.0)
    }

    /// The design of the rows that are kept.
    fn design(&self, table: &Table, kept: &[usize]) -> Result<Design> {
        let column = |j: usize| kept.iter().map(move |&i| table.cells[i * table.width() + j]);
        let groups = |j: usize| Groups::new(column(j).map(f64::to_bits));
        let (clusters, strata) = (self.design.cluster.map(groups), self.design.stratify.map(groups));
        if let (Some(k), Some(s), Some(clusters)) = (self.design.cluster, self.design.stratify, &clusters) {
            let mut home: Vec<Option<f64>> = vec![None; clusters.count];
            for ((&cluster, stratum), key) in clusters.of.iter().zip(column(s)).zip(column(k)) {
                let first = *home[cluster].get_or_insert(stratum);
                if first != stratum {
                    return Err(Error::input(format!(
                        "`data.cluster`: cluster \"{}\" lies in two strata of `data.stratify`, \"{}\" and \"{}\"",
                        shown(table, k, key),
                        shown(table, s, first),
                        shown(table, s, stratum)
                    )));
                }
            }
        }
        let weights = match &table.copies {
            Some(copies) => Some(kept.iter().map(|&i| copies.counts[i] as f64).collect()),
            None => self.design.weight.map(|j| case_weights(table, j, kept)).transpose()?,
        };
        Ok(Design::new(weights, clusters, strata))
    }

    /// The rows whose missing cells, if they have any, do not cost them their place; what is missing goes into `notes`.
    fn kept(&self, table: &Table, recipe: &Recipe, notes: &mut Notes) -> Result<Vec<usize>> {
        let fatal = |j: usize| {
            let is_design =
                self.design.keys().any(|(_, column)| *column == j) || self.beside().any(|column| column == j);
            let is_response = recipe.responses.contains(&table.names[j]);
            let is_text = matches!(table.kinds[j], Kind::Levels(_));
            is_design || is_response || recipe.missing != Missing::Mean || is_text
        };
        let mut counts = vec![0; table.width()];
        let mut absent = 0;
        let mut kept = Vec::with_capacity(table.rows());
        for (i, row) in table.cells.chunks_exact(table.width()).enumerate() {
            if self.is_absent(row) {
                absent += 1;
                continue;
            }
            if !row.iter().any(|v| v.is_nan()) {
                kept.push(i);
                continue;
            }
            let missing: Vec<usize> = self.all().filter(|&j| row[j].is_nan()).collect();
            let copies = table.copies_of(i);
            missing.iter().for_each(|&j| counts[j] += copies);
            notes.rows_with_missing += if missing.is_empty() { 0 } else { copies };
            match missing.iter().find(|&&j| fatal(j)) {
                Some(&j) if recipe.missing == Missing::Error => return Err(self.missing_cell(table, i, j)),
                Some(_) => notes.rows_dropped += copies,
                None => {
                    notes.cells_imputed += missing.len() * copies;
                    kept.push(i);
                }
            }
        }
        let present = table.rows_of_file() - absent;
        if kept.is_empty() {
            let empty = self.all().find(|&j| present > 0 && counts[j] == present);
            let why = match empty {
                _ if present == 0 => "`data.weight` 0".into(),
                Some(j) => {
                    let name = printable(&table.names[j]);
                    format!(
                        "a missing value: column \"{name}\" has no others; leave it out of `data.columns`"
                    )
                }
                None => "a missing value".to_owned(),
            };
            return Err(Error::input(format!("every row of the data has {why}")));
        }
        notes.rows += table.rows_of_file();
        notes.rows_of_weight_0 += absent;
        for j in self.all().filter(|&j| counts[j] > 0) {
            *notes.missing.entry(table.names[j].clone()).or_default() += counts[j];
        }
        Ok(kept)
    }

    pub(super) fn missing_cell(&self, table: &Table, row: usize, column: usize) -> Error {
        let of_design = self.design.keys().find(|(_, j)| **j == column).map(|(key, _)| key);
        let what = match of_design.or((self.by == Some(column)).then_some("data.by")) {
            Some(key) => format!(", its `{key}`; `data.missing = \"drop\"` leaves such rows out"),
            None => "; `data.missing` says what to do: \"drop\" or \"mean\"".into(),
        };
        let name = printable(&table.names[column]);
        let row = table.number(row);
        Error::input(format!("row {row} of the data has no value in column \"{name}\"{what}"))
    }
}

/// A cell as it was written.
fn shown(table: &Table, j: usize, cell: f64) -> String {
    match &table.kinds[j] {
        Kind::Levels(levels) => printable(&levels.names()[cell as usize]),
        Kind::Number => cell.to_string(),
    }
}

/// Weights outside this range would overflow or vanish in sums.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

fn case_weights(table: &Table, j: usize, kept: &[usize]) -> Result<Vec<f64>> {
    let name = printable(&table.names[j]);
    let weights: Vec<f64> = kept.iter().map(|&i| table.cells[i * table.width() + j]).collect();
    if let Some(i) = weights.iter().position(|c| !WEIGHTS.contains(c)) {
        return Err(Error::input(format!(
            "`data.weight`: row {} has {} in column \"{name}\"; a weight is a number of observations, from 1e-100 to \
             1e100, or 0 for a row to be left out",
            table.number(kept[i]),
            weights[i]
        )));
    }
    let sum: f64 = weights.iter().sum();
    if weights.len() > 1 && sum < 1.0 + 1e-6 {
        return Err(Error::input(format!(
            "`data.weight`: column \"{name}\" sums to {sum}, so that all {} rows together would count as one observation \
             or less; a weight is the number of observations that a row stands for. Weights that are only relative should \
             sum to the number of rows",
            weights.len()
        )));
    }
    Ok(weights)
}

impl Layout {
    fn new(table: &Table, kept: &[usize], chosen: Chosen, recipe: &Recipe) -> Layout {
        let mut layout = Layout { chosen, sources: Vec::new(), columns: Vec::new(), levels: Vec::new() };
        if let Some(formula) = &recipe.formula {
            layout.by_formula(table, kept, formula);
            return layout;
        }
        let skipped = usize::from(recipe.dummies == Dummies::DropFirst);
        for &j in &layout.chosen.covariates {
            let name = &table.names[j];
            match &table.kinds[j] {
                Kind::Number => {
                    layout.sources.push(Source::one(j, None));
                    layout.columns.push(name.clone());
                }
                Kind::Levels(levels) => {
                    let sorted = sorted_levels(table, kept, j, levels);
                    for (level, code) in sorted.iter().skip(skipped) {
                        layout.sources.push(Source::one(j, Some(*code)));
                        layout.columns.push(format!("{name}_{}", printable(level)));
                    }
                    let names = sorted.into_iter().map(|(level, _)| level).collect();
                    layout.levels.push((name.clone(), names));
                }
            }
        }
        layout
    }

    fn by_formula(&mut self, table: &Table, kept: &[usize], formula: &Formula) {
        let levels = |j: usize| match &table.kinds[j] {
            Kind::Number => Vec::new(),
            Kind::Levels(levels) => sorted_levels(table, kept, j, levels),
        };
        for column in formula.design(table, &self.chosen.covariates, &levels).unwrap_or_default() {
            let mut parts = column.parts.into_iter();
            let first = parts.next().expect("a column is made of something");
            self.sources.push(Source { first, more: parts.collect() });
            self.columns.push(column.name);
        }
        for &j in self.chosen.covariates.iter().filter(|&&j| table.kinds[j] != Kind::Number) {
            self.levels
                .push((table.names[j].clone(), levels(j).into_iter().map(|(level, _)| level).collect()));
        }
    }

    /// What the columns are made of, by names.
    fn origin(&self, table: &Table, recipe: &Recipe) -> Origin {
        let covariates = &self.chosen.covariates;
        let levels_of =
            |name: &String| self.levels.iter().find(|(n, _)| n == name).map(|(_, levels)| levels.clone());
        let input = |&j: &usize| InputColumn {
            name: table.names[j].clone(),
            levels: levels_of(&table.names[j]),
            made: false,
        };
        let inputs: Vec<InputColumn> = covariates.iter().map(input).collect();
        let part = |&(j, code): &(usize, Option<usize>)| {
            let input = covariates.iter().position(|c| *c == j).expect("a column is made of a covariate");
            let level =
                code.zip(inputs[input].levels.as_ref()).and_then(|(code, levels)| match &table.kinds[j] {
                    Kind::Levels(all) => levels.iter().position(|level| *level == all.names()[code]),
                    Kind::Number => None,
                });
            (input, level)
        };
        let sources = self.sources.iter().map(|source| source.parts().map(part).collect()).collect();
        let target = self.chosen.target.map(|t| Target {
            name: table.names[t].clone(),
            classes: recipe.classes.clone(),
            signs: has_signs(&table.kinds[t], recipe),
            strip: String::new(),
        });
        Origin { inputs, sources, target, pattern: None }
    }

    /// That the columns which are asked for become any.
    fn check(&self, table: &Table) -> Result<()> {
        let Some(&first) = self.chosen.covariates.first().filter(|_| self.columns.is_empty()) else {
            return Ok(());
        };
        Err(Error::input(format!(
            "no column is left: \"{}\"{} a single level and so no dummy column; leave it out of `data.columns`, or set \
             `data.dummies = \"keep_all\"`",
            printable(&table.names[first]),
            if self.chosen.covariates.len() > 1 { " and all others have" } else { " has" }
        )))
    }

    /// Where so many cells are to be, with room in memory for so many.
    fn place(&self, cells: usize, room: usize, table: &Table, recipe: &Recipe) -> Place {
        let stays = self.columns.len() <= table.width();
        match recipe.place {
            Some(place) => place,
            None if stays || table.cells.place() == Place::File => table.cells.place(),
            // Dummies without end are no large data, but a column that was not meant: these are refused where they do not fit.
            None if cells > room / SHARE
                && 2 * self.numbers() >= self.columns.len()
                && storage::check().is_ok() =>
            {
                Place::File
            }
            None => Place::Memory,
        }
    }

    /// That so many rows fit twice into a memory with room for so many cells: the data, and their layout for the kernels.
    fn fits(&self, rows: usize, room: usize) -> Result<()> {
        let d = self.columns.len();
        let cells = rows.saturating_mul(d);
        let needed = cells.saturating_mul(2);
        if needed <= room {
            return Ok(());
        }
        let size = format!(
            "{rows} rows x {d} columns are {cells} cells, which need {} of memory, and {} are free",
            memory::shown(needed),
            memory::shown(room)
        );
        let (columns, dummies) = ("`data.columns` says which columns to use", d - self.numbers());
        Err(Error::input(match self.levels.iter().max_by_key(|(_, levels)| levels.len()) {
            Some((name, levels)) if 2 * dummies > d => format!(
                "column \"{}\" has {} levels, each with a dummy column of its own: {size}; leave it out ({columns}), \
                 group its levels, or make it `data.cluster`",
                printable(name),
                levels.len()
            ),
            _ => format!("{size}; {columns}, `data.rows` how many rows"),
        }))
    }

    /// Columns that are no dummies.
    fn numbers(&self) -> usize {
        self.sources.iter().filter(|source| !source.is_dummy()).count()
    }
}

/// The levels of a column that occur in the rows that are kept, in alphabetical order, with their codes: one that is found only
/// beside missing values gets no dummy.
fn sorted_levels(table: &Table, kept: &[usize], j: usize, levels: &Levels) -> Vec<(String, usize)> {
    let mut occurs = vec![false; levels.names().len()];
    kept.iter().for_each(|&i| occurs[table.cells[i * table.width() + j] as usize] = true);
    let mut sorted: Vec<(String, usize)> =
        levels.names().iter().cloned().zip(0..).filter(|(_, code)| occurs[*code]).collect();
    sorted.sort();
    sorted
}

/// What is wrong with a formula for this table, if anything is.
pub fn layout_fault(table: &Table, recipe: &Recipe) -> Option<Fault> {
    let formula = recipe.formula.as_ref()?;
    let levels = |j: usize| match &table.kinds[j] {
        Kind::Number => Vec::new(),
        Kind::Levels(levels) => levels.names().iter().cloned().zip(0..).collect(),
    };
    let all: Vec<usize> = (0..table.width()).collect();
    formula.design(table, &all, &levels).err()
}

/// Another table, of `whose` rows, with the level codes of the training table.
fn align(train: &Table, test: Table, layout: &Layout, recipe: &Recipe, whose: &str) -> Result<Table> {
    let test = padded(test, train, &layout.chosen);
    let mut both = train.empty().numbered_as(&test);
    both.append(test, &format!("the {whose}"))?;
    if recipe.unseen == Unseen::Error {
        for &j in &layout.chosen.covariates {
            if let (Kind::Levels(old), Kind::Levels(new)) = (&train.kinds[j], &both.kinds[j])
                && let Some(level) = new.names().get(old.names().len())
            {
                return Err(Error::input(format!(
                    "level \"{}\" of column \"{}\" occurs only in the {whose}; `data.unseen = \"zero\"` allows that",
                    printable(level),
                    printable(&train.names[j])
                )));
            }
        }
    }
    Ok(both)
}

/// Without the columns that the training table has not.
fn without_others(mut table: Table, train: &Table) -> Table {
    let others = table.names.iter().filter(|name| !train.names.contains(name)).cloned().collect::<Vec<_>>();
    others.iter().for_each(|name| table.remove(name));
    table
}

/// Another table, with a missing cell where it lacks a column of the design, or one that says how rows are split.
fn padded(test: Table, train: &Table, chosen: &Chosen) -> Table {
    let own = chosen.design.keys().map(|(_, j)| *j).chain(chosen.fold).chain(chosen.by);
    let absent: Vec<usize> = own.filter(|&j| !test.names.contains(&train.names[j])).collect();
    if absent.is_empty() {
        return test;
    }
    let pad = vec![f64::NAN; absent.len()];
    let mut cells = Buffer::sized(test.cells.place(), test.rows * (test.width() + pad.len()));
    test.cells.chunks_exact(test.width()).for_each(|row| {
        cells.extend_from_slice(row);
        cells.extend_from_slice(&pad);
    });
    let names: Vec<String> = absent.iter().map(|&j| train.names[j].clone()).collect();
    let mut wider = Table { cells, ..test };
    wider.places.extend((0..names.len()).map(|k| wider.header.width() + k));
    wider.header.names.extend_from_slice(&names);
    wider.names.extend(names);
    wider.kinds.extend(absent.iter().map(|&j| train.kinds[j].clone()));
    wider
}

/// The kept rows of a table. Where columns do not become more, the cells stay where they are in memory: a table may be
/// as large as there is room for.
fn frame(table: Table, kept: &[usize], layout: &Layout, wider: Place, recipe: &Recipe) -> Result<Frame> {
    let y = layout.chosen.target.map(|t| responses(&table, t, recipe)).transpose()?;
    let (width, d) = (table.width(), layout.sources.len());
    let scale = 1.0 / recipe.divide.unwrap_or(1.0);
    let cell = |row: &[f64], c: usize| {
        let of = |&(j, level): &(usize, Option<usize>)| match level {
            None => row[j] * scale,
            Some(level) => f64::from(row[j] == level as f64),
        };
        let source = &layout.sources[c];
        source.more.iter().fold(of(&source.first), |product, part| product * of(part))
    };
    let event = layout.chosen.event.map(|j| kept.iter().map(|&i| table.cells[i * width + j]).collect());
    let offset = layout.chosen.offsets(&table, kept);
    let fold = |j: usize| kept.iter().map(|&i| shown(&table, j, table.cells[i * width + j])).collect();
    let folds = layout.chosen.fold.map(fold);
    let by = layout.chosen.by.map(|j| kept.iter().map(|&i| table.cells[i * width + j] + 0.0).collect());
    let name = |column: Option<usize>| column.map(|j| table.names[j].clone());
    let response = ResponseNames { target: name(layout.chosen.target), event: name(layout.chosen.event) };
    let mut cells = table.cells;
    if d <= width {
        let mut row = vec![0.0; width];
        for (to, &from) in kept.iter().enumerate() {
            row.copy_from_slice(&cells[from * width..][..width]);
            (0..d).for_each(|c| cells[to * d + c] = cell(&row, c));
        }
        cells.truncate(kept.len() * d);
        cells.shrink_to_fit();
    } else {
        let mut wider = Buffer::new(wider);
        wider.try_reserve(kept.len() * d).map_err(|why| {
            Error::input(format!(
                "no room for {} rows x {d} columns, {}: {why}",
                kept.len(),
                memory::shown(kept.len() * d)
            ))
        })?;
        let mut made = vec![0.0; d];
        for &i in kept {
            let row = &cells[i * width..][..width];
            made.iter_mut().enumerate().for_each(|(c, made)| *made = cell(row, c));
            wider.extend_from_slice(&made);
        }
        cells = wider;
    }
    Ok(Frame {
        x: Rows::new(cells, kept.len(), d),
        y: y.map(|y| kept.iter().map(|&i| y[i]).collect()),
        event,
        offset,
        folds,
        by,
        classes: if recipe.classifies { recipe.class_names() } else { Vec::new() },
        columns: layout.columns.clone(),
        dummy: layout.sources.iter().map(Source::is_dummy).collect(),
        design: Design::default(),
        origin: Arc::default(),
        response,
        collapsed: None,
    })
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
                let why = match level.trim().parse::<f64>() {
                    Ok(_) => Some("which is not a finite number"),
                    Err(_) if level.replace(',', "").trim().parse::<f64>().is_ok() => {
                        Some("which is no number with its comma: `data.decimal = \",\"` reads decimals that follow one, and commas \
                              between thousands have to go")
                    }
                    Err(_) => None,
                };
                if let Some(why) = why {
                    return Error::input(format!("target \"{name}\" has the value \"{}\", {why}", printable(level)));
                }
                let several = match levels.names().len() > 2 {
                    true => ", or choose a model of several classes, [model.multinomial] or [model.ordered]",
                    false => "",
                };
                let message = format!(
                    "target \"{name}\" has the value \"{}\"; say what it stands for: `data.classes = {{ \"{}\" = 1, … }}`{several}",
                    printable(level),
                    printable(level)
                );
                Error::input(message)
            })?,
            None => {
                let known: Vec<String> = recipe.classes.keys().map(|k| format!("\"{}\"", printable(k))).collect();
                let message = format!(
                    "target \"{name}\" has the value \"{}\", not in `data.classes`, which has {}",
                    printable(level),
                    known.join(", ")
                );
                return Err(Error::input(message));
            }
        });
    }
    if has_signs(&table.kinds[target], recipe) {
        values.iter_mut().for_each(|v| *v = 0.5 * (*v + 1.0));
    }
    Ok(table.column(target).map(|code| if code.is_nan() { code } else { values[code as usize] }).collect())
}

/// Whether all texts of the target are −1 and 1, which become 0 and 1.
fn has_signs(kind: &Kind, recipe: &Recipe) -> bool {
    let Kind::Levels(levels) = kind else { return false };
    let value = |level: &String| recipe.classes.get(level).copied().or_else(|| level.parse().ok());
    levels.names().iter().all(|level| matches!(value(level), Some(-1.0 | 1.0)))
}

/// How [`finish`] makes columns of these training rows, and how their frame was made.
pub fn preparation(train: &Frame, recipe: &Recipe, scales: Option<&Scales>) -> Preparation {
    let Origin { inputs, sources, target, .. } = train.origin.as_ref();
    let column = |(j, scale): (usize, &Scale)| {
        let mut parts = sources[j].iter().copied();
        let (input, level) = parts.next().expect("a column is made of something");
        let sd = scale.standardise.then_some(scale.sd);
        Column {
            name: train.columns[j].clone(),
            input,
            level,
            times: parts.collect(),
            mean: scale.mean,
            sd,
            unit: scale.unit,
        }
    };
    let dropped = |column: &Column| recipe.constant == Constant::Drop && column.sd == Some(0.0);
    let scales = train.scales_or(scales, recipe);
    let columns = scales.iter().enumerate().map(column).filter(|c| !dropped(c)).collect();
    Preparation {
        version: VERSION,
        places: None,
        reads: Vec::new(),
        made: Vec::new(),
        inputs: inputs.clone(),
        target: target.clone(),
        classes: train.classes.clone(),
        event: recipe.event.clone(),
        offset: recipe.offset.clone(),
        exposure: recipe.exposure.clone(),
        missing: recipe.missing,
        unseen: recipe.unseen,
        divide: recipe.divide,
        rounds: vec![columns],
    }
}

/// Imputes and standardises the two parts of a repeat: by their own training rows, or by `scales`.
pub fn finish(
    train: Frame,
    test: Option<Frame>,
    recipe: &Recipe,
    scales: Option<&Scales>,
) -> Result<(Dataset, Option<Dataset>)> {
    let own: Vec<Scale> = train.scales_or(scales, recipe);
    train.check_known(&own, "training")?;
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
    if kept.is_empty() && !own.is_empty() {
        return Err(Error::input(format!(
            "no column is left: all {} have the same value in all training rows, and `data.constant` is \"drop\"",
            own.len()
        )));
    }
    let scale = |test: Frame| {
        let (scales, whose) = match recipe.standardise_by {
            StandardiseBy::Train => (own.clone(), "training"),
            StandardiseBy::Each => (test.scales(recipe), "test"),
        };
        test.check_known(&scales, whose)?;
        Ok::<_, Error>(test.scaled(&scales, &kept))
    };
    let test = test.map(scale).transpose()?;
    Ok((train.scaled(&own, &kept), test))
}

/// Means and standard deviations of all columns.
#[derive(Clone)]
pub struct Scales(Vec<Scale>);

/// Mean, standard deviation, and whether to use them, of one column.
#[derive(Clone, Copy)]
struct Scale {
    /// Observations that have a value.
    known: f64,
    mean: f64,
    /// In units of `unit`.
    sd: f64,
    standardise: bool,
    /// A power of two, 1 but for columns of very large or very small numbers, in units of which nothing overflows or vanishes.
    unit: f64,
}

/// The unit of a column whose largest number is of this size.
fn unit(size: f64) -> f64 {
    match size {
        0.0 | 1e-100..=1e100 => 1.0,
        _ => libm::exp2(-libm::log2(size).floor().clamp(-1000.0, 1000.0)),
    }
}

impl Frame {
    /// Those of these training rows, for the groups of them.
    pub fn scales_of_all(&self, recipe: &Recipe) -> Scales {
        Scales(self.scales(recipe))
    }

    fn scales_or(&self, given: Option<&Scales>, recipe: &Recipe) -> Vec<Scale> {
        given.map_or_else(|| self.scales(recipe), |given| given.0.clone())
    }

    /// Of the values that are not missing, each as often as its row counts. Two passes: sums of squares of raw values would
    /// lose digits. By rows, as the cells lie in memory.
    fn scales(&self, recipe: &Recipe) -> Vec<Scale> {
        let d = self.columns.len();
        let (mut n, mut mean, mut sd) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        let weights = self.design.weights();
        let mut sizes = vec![0.0f64; d];
        self.x
            .iter()
            .for_each(|row| sizes.iter_mut().zip(row).for_each(|(size, v)| *size = size.max(v.abs())));
        let units: Vec<f64> = sizes.into_iter().map(unit).collect();
        let known = |row: &mut dyn FnMut(usize, f64, f64)| {
            for (i, cells) in self.x.iter().enumerate() {
                let c = weights.map_or(1.0, |c| c[i]);
                cells.iter().enumerate().filter(|(_, v)| !v.is_nan()).for_each(|(j, &v)| row(j, c, v));
            }
        };
        known(&mut |j, c, v| {
            n[j] += c;
            mean[j] += c * (v * units[j]);
        });
        (0..d).filter(|&j| n[j] > 0.0).for_each(|j| mean[j] /= n[j]);
        if recipe.standardise != Standardise::None {
            known(&mut |j, c, v| sd[j] += c * (v * units[j] - mean[j]) * (v * units[j] - mean[j]));
            (0..d).for_each(|j| sd[j] = (sd[j] / (n[j] - 1.0)).sqrt());
        }
        let scale = |j: usize| Scale {
            known: n[j],
            mean: mean[j] / units[j],
            unit: units[j],
            sd: if sd[j] > 1e-14 * mean[j].abs() { sd[j] } else { 0.0 },
            standardise: match recipe.standardise {
                _ if recipe.responses.contains(&self.columns[j]) => false,
                Standardise::None => false,
                Standardise::Numeric => !self.dummy[j],
                Standardise::All => true,
            },
        };
        (0..d).map(scale).collect()
    }

    /// That there is a mean for every cell that is missing; `whose` rows it is of.
    fn check_known(&self, scales: &[Scale], whose: &str) -> Result<()> {
        let unknown = |j: &usize| scales[*j].known == 0.0 && self.x.column(*j).any(f64::is_nan);
        match (0..scales.len()).find(unknown) {
            Some(j) => Err(Error::input(format!(
                "column \"{}\" has no value in any {whose} row, and so no mean to impute; leave it out of `data.columns`",
                printable(&self.columns[j])
            ))),
            None => Ok(()),
        }
    }

    fn scaled(mut self, scales: &[Scale], kept: &[usize]) -> Dataset {
        if scales.iter().any(|s| s.standardise) || self.x.whole().iter().any(|v| v.is_nan()) {
            for mut row in self.x.whole_mut().outer_iter_mut() {
                for (v, scale) in row.iter_mut().zip(scales) {
                    let known = if v.is_nan() { scale.mean } else { *v };
                    *v = match (scale.standardise, scale.sd > 0.0) {
                        (true, true) => (known * scale.unit - scale.mean * scale.unit) / scale.sd,
                        (true, false) => 0.0,
                        (false, _) => known,
                    };
                }
            }
        }
        let (x, columns) = match kept.len() == self.columns.len() {
            true => (self.x, self.columns),
            false => (self.x.columns(kept), kept.iter().map(|&j| self.columns[j].clone()).collect()),
        };
        let collapsed = self.collapsed;
        let data = Dataset::new(x, self.y, columns)
            .with_design(self.design)
            .with_event(self.event)
            .with_offset(self.offset)
            .with_classes(self.classes)
            .with_response_names(self.response);
        Dataset { collapsed, ..data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::{Categorical, Rules, read};

    fn column(data: &Dataset, j: usize) -> Vec<f64> {
        data.x.column(j).collect()
    }

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
        assert_eq!(frame.x.whole(), ndarray::array![[1.0, 0.0, 1.0], [2.0, 0.0, 0.0], [3.0, 1.0, 0.0]]);
        assert_eq!(frame.y.unwrap().to_vec(), [1.0, 0.0, 1.0]);
        assert_eq!(notes.levels, [("c".to_owned(), ["x", "y", "z"].map(String::from).to_vec())]);
        let all = Recipe { dummies: Dummies::KeepAll, ..recipe() };
        assert_eq!(frames(table(text), None, &all).unwrap().0.columns, ["a", "c_x", "c_y", "c_z"]);
    }

    #[test]
    fn a_level_found_only_in_dropped_rows_gets_no_dummy() {
        let drop = Recipe { missing: Missing::Drop, ..recipe() };
        let text = "a,c,y\n1,x,1\n?,w,0\n3,z,1\n";
        let (frame, _, notes) = frames(table(text), None, &drop).unwrap();
        assert_eq!(frame.columns, ["a", "c_z"]);
        assert_eq!(notes.levels[0].1, ["x", "z"]);
    }

    #[test]
    fn columns_of_any_scale_are_standardised() {
        let numeric = Recipe { standardise: Standardise::Numeric, ..recipe() };
        let standardised = |scale: &str| {
            let text = format!("a,c,y\n1{scale},z,1\n-3{scale},x,0\n4{scale},x,1\n");
            column(
                &finish(frames(table(&text), None, &numeric).unwrap().0, None, &numeric, None).unwrap().0,
                0,
            )
        };
        let plain = standardised("e0");
        for scale in ["e-300", "e-160", "e160", "e300", "e307"] {
            let near = standardised(scale).iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(near, "{scale}: {:?}, not {plain:?}", standardised(scale));
        }
    }

    #[test]
    fn missing_values_follow_the_policy() {
        let text = "a,c,y\n1,z,1\n?,x,0\n3,?,1\n5,x,0\n";
        let error = frames(table(text), None, &recipe()).unwrap_err().to_string();
        assert!(error.starts_with("row 2 of the data has no value in column \"a\""), "{error}");
        let drop = Recipe { missing: Missing::Drop, ..recipe() };
        let (frame, _, notes) = frames(table(text), None, &drop).unwrap();
        assert_eq!((frame.n(), notes.rows, notes.rows_dropped, notes.rows_with_missing), (2, 4, 2, 2));
        assert_eq!(notes.missing, BTreeMap::from([("a".to_owned(), 1), ("c".to_owned(), 1)]));
        assert_eq!(notes.changes(), ["2 of 4 rows have missing values and are left out"]);
        let mean = Recipe { missing: Missing::Mean, ..recipe() };
        let (frame, _, notes) = frames(table(text), None, &mean).unwrap();
        assert_eq!((frame.n(), notes.rows_dropped, notes.cells_imputed), (3, 1, 1));
        let (data, _) = finish(frame, None, &mean, None).unwrap();
        assert_eq!(column(&data, 0), [1.0, 3.0, 5.0], "imputed by the mean of 1 and 5");
    }

    #[test]
    fn a_column_without_a_value_is_refused() {
        let text = "a,c,y\n?,z,1\n?,x,0\n";
        let with = |missing| {
            let recipe = Recipe { missing, ..recipe() };
            let (frame, _, _) = frames(table(text), None, &recipe)?;
            finish(frame, None, &recipe, None)
        };
        let error = with(Missing::Mean).unwrap_err().to_string();
        assert!(error.starts_with("column \"a\" has no value in any training row"), "{error}");
        let error = with(Missing::Drop).unwrap_err().to_string();
        assert!(error.starts_with("every row of the data has a missing value: column \"a\" has no others"));
    }

    #[test]
    fn no_column_left_is_an_error() {
        let recipe = |standardise| Recipe { standardise, constant: Constant::Drop, ..recipe() };
        let one_level = frames(table("c,y\nx,1\nx,0\n"), None, &recipe(Standardise::All)).unwrap_err();
        assert!(
            one_level.to_string().starts_with("no column is left: \"c\" has a single level"),
            "{one_level}"
        );
        let recipe = recipe(Standardise::Numeric);
        let constant = {
            let rules = Rules { labels: vec!["y".into()], ..Rules::default() };
            let table = read(&b"a,y\n1,1\n1,0\n"[..], "t", &rules).unwrap();
            let (frame, _, _) = frames(table, None, &recipe).unwrap();
            finish(frame, None, &recipe, None).unwrap_err().to_string()
        };
        assert!(constant.starts_with("no column is left: all 1 have the same value"), "{constant}");
    }

    #[test]
    fn data_that_do_not_fit_are_refused_with_their_size() {
        let layout = |text: &str| {
            let (table, recipe) = (table(text), recipe());
            let chosen = Chosen::new(&table, &recipe).unwrap();
            Layout::new(&table, &(0..table.rows()).collect::<Vec<_>>(), chosen, &recipe)
        };
        let dummies = layout("a,c,y\n1,z,1\n2,x,0\n3,w,0\n");
        assert!(dummies.fits(3, 18).is_ok());
        let error = dummies.fits(3, 17).unwrap_err().to_string();
        assert!(error.starts_with("column \"c\" has 3 levels"), "{error}");
        assert!(error.contains("3 rows x 3 columns are 9 cells"), "{error}");
        let numbers = layout("a,b,c,y\n1,2,x,1\n1,2,z,1\n");
        let error = numbers.fits(1_000_000_000, 1_000_000_000).unwrap_err().to_string();
        assert!(
            error.starts_with("1000000000 rows x 3 columns are 3000000000 cells, which need 48.0 GB"),
            "{error}"
        );
    }

    #[test]
    fn test_rows_are_standardised_by_the_training_rows_or_their_own() {
        let by = |standardise_by| {
            let recipe = Recipe { standardise: Standardise::Numeric, standardise_by, ..recipe() };
            let (train, test) = ("a,c,y\n1,x,1\n3,z,0\n", "a,c,y\n5,x,1\n9,x,0\n");
            let (train, test, _) = frames(table(train), Some(table(test)), &recipe).unwrap();
            finish(train, test, &recipe, None).unwrap()
        };
        let half = 0.5f64.sqrt();
        let (train, test) = by(StandardiseBy::Train);
        let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&column(&train, 0), [-half, half]));
        assert_eq!(column(&train, 1), [0.0, 1.0], "dummies stay");
        assert!(close(&column(&test.unwrap(), 0), [3.0 * half, 7.0 * half]));
        assert!(close(&column(&by(StandardiseBy::Each).1.unwrap(), 0), [-half, half]));
    }

    #[test]
    fn constant_columns_follow_the_policy() {
        let with = |constant| {
            let recipe = Recipe { standardise: Standardise::All, constant, ..recipe() };
            let (frame, _, _) = frames(table("a,c,y\n1,x,1\n1,z,0\n"), None, &recipe).unwrap();
            finish(frame, None, &recipe, None).map(|(d, _)| d)
        };
        assert!(with(Constant::Error).unwrap_err().to_string().contains("column \"a\" has the same value"));
        assert_eq!(with(Constant::Drop).unwrap().columns, ["c_z"]);
        assert_eq!(column(&with(Constant::Zero).unwrap(), 0), [0.0, 0.0]);
    }

    #[test]
    fn levels_only_in_the_test_data_are_an_error_or_zero() {
        let with = |unseen| {
            let recipe = Recipe { unseen, ..recipe() };
            let (train, test) = (table("a,c,y\n1,x,1\n2,z,0\n"), table("a,c,y\n1,w,1\n2,z,0\n"));
            frames(train, Some(test), &recipe).map(|(_, test, _)| test.unwrap().x)
        };
        assert!(with(Unseen::Error).unwrap_err().to_string().contains("level \"w\" of column \"c\""));
        assert_eq!(with(Unseen::Zero).unwrap().whole(), ndarray::array![[1.0, 0.0], [2.0, 1.0]]);
    }

    /// Codes of levels are no numbers, nor numbers codes.
    #[test]
    fn a_column_is_text_in_both_parts_or_in_none() {
        let auto = |text: &str| {
            let rules =
                Rules { categorical: Categorical::Auto, labels: vec!["y".into()], ..Rules::default() };
            read(text.as_bytes(), "t", &rules).unwrap()
        };
        let (numbers, texts) = ("a,y\n1,1\n2,0\n", "a,y\nu,1\nv,0\n");
        for (train, test, says) in
            [(numbers, texts, "has text, and numbers"), (texts, numbers, "has numbers, and text")]
        {
            let error = frames(auto(train), Some(auto(test)), &recipe()).unwrap_err().to_string();
            assert!(error.contains("column \"a\"") && error.contains(says), "{error}");
        }
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
