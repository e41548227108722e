//! How rows of files became the rows of a model, as a value: kept with a run, and enough to prepare any new row as the training
//! rows were.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::ResponseNames;
use super::prepare::{Missing, Unseen};

/// Of the file that a run keeps. Version 1 had no expressions.
pub const VERSION: u32 = 2;

/// The preparation of all rounds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    pub version: u32,
    /// Columns of the training file by their places, where it has no line of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<String>>,
    /// Columns of the file that expressions read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadColumn>,
    /// Columns by expressions, in the order in which they are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeColumn>,
    /// Columns, of the file or made, that covariates are made of.
    pub inputs: Vec<InputColumn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Names of the classes of the response, where it is one of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The column that says whether a response is an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The column of numbers that are added to the linear predictor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// The column of numbers whose logarithms are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<String>,
    pub missing: Missing,
    pub unseen: Unseen,
    /// Numbers are divided by this first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divide: Option<f64>,
    /// The columns of the model, for each repeat or setting of a path; one entry where they are all the same.
    pub rounds: Vec<Vec<Column>>,
}

/// What a run keeps of how its rows were prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Preparations {
    Groups(GroupPreparations),
    One(Box<Preparation>),
}

/// The preparations of groups of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPreparations {
    pub version: u32,
    /// The column that says which group a row belongs to.
    pub by: String,
    /// Names of the groups, in the order of their rounds.
    pub groups: Vec<String>,
    /// One for each group, or one for all of them.
    pub preparations: Vec<Preparation>,
}

impl Preparations {
    pub fn of_groups(by: &str, groups: Vec<String>, preparations: Vec<Preparation>) -> Preparations {
        Preparations::Groups(GroupPreparations { version: VERSION, by: by.to_owned(), groups, preparations })
    }

    /// As a run keeps them; `None` for a text that this version does not know.
    pub fn of_text(text: &str) -> Option<Preparations> {
        let found: Preparations = serde_json::from_str(text).ok()?;
        let sound = match &found {
            Preparations::One(one) => one.is_sound(),
            Preparations::Groups(all) => {
                let count = all.preparations.len();
                (1..=VERSION).contains(&all.version)
                    && !all.groups.is_empty()
                    && (count == 1 || count == all.groups.len())
                    && all.preparations.iter().all(|one| one.is_sound() && one.is_like(&all.preparations[0]))
            }
        };
        sound.then_some(found)
    }

    /// Of a group, from 0; the only one where there are no groups.
    pub fn of(&self, group: usize) -> &Preparation {
        match self {
            Preparations::One(one) => one,
            Preparations::Groups(all) => &all.preparations[group.min(all.preparations.len() - 1)],
        }
    }

    /// Names of the groups, and the column that they are values of.
    pub fn by(&self) -> Option<(&str, &[String])> {
        match self {
            Preparations::One(_) => None,
            Preparations::Groups(all) => Some((&all.by, &all.groups)),
        }
    }

    /// One whose rounds are those of all groups, so many of each, one group after the other.
    pub fn joined(self, each: usize) -> Preparation {
        let Preparations::Groups(all) = &self else { return self.of(0).clone() };
        let rounds = |g| (0..each).map(move |round| (g, round));
        let rounds = (0..all.groups.len()).flat_map(rounds);
        let rounds = rounds.map(|(g, round)| self.of(g).columns(round).to_vec()).collect();
        Preparation { rounds, ..self.of(0).clone() }
    }
}

/// A column of the file that an expression reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadColumn {
    pub name: String,
    /// It holds texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text: bool,
}

/// A column that an expression makes of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeColumn {
    pub name: String,
    pub expression: String,
}

/// A column that covariates are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputColumn {
    pub name: String,
    /// The levels of the training rows, in alphabetical order; none of a column of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// An expression of the experiment made it of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
}

/// How the response is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub name: String,
    /// What its texts stand for; none where they are numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, f64>,
    /// −1 and 1 became 0 and 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signs: bool,
    /// Characters that are cut off the end of its texts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strip: String,
}

/// A column of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// Place of the column of the file among `inputs`, from 0.
    pub input: usize,
    /// Of a dummy: place of its level, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// Others, and levels of theirs, that it is multiplied by: an interaction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<(usize, Option<usize>)>,
    /// Of the training rows: what a missing number becomes.
    pub mean: f64,
    /// Standard deviation of the training rows, where values are brought to mean 0 and standard deviation 1; 0 of a constant
    /// column, which becomes 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// `sd` counts in multiples of 1/`unit`: a power of two, 1 but for columns of very large or very small numbers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: f64,
}

fn one() -> f64 {
    1.0
}

fn is_one(unit: &f64) -> bool {
    *unit == 1.0
}

impl Preparation {
    /// Whether it makes as many columns of the same columns of a file.
    fn is_like(&self, other: &Preparation) -> bool {
        let rounds = self.rounds.len().max(other.rounds.len());
        self.inputs.iter().map(|input| &input.name).eq(other.inputs.iter().map(|input| &input.name))
            && (0..rounds).all(|round| self.columns(round).len() == other.columns(round).len())
    }

    /// Of a version that is known, and without columns and levels that it has not.
    fn is_sound(&self) -> bool {
        let levels = |input: usize| Some(self.inputs.get(input)?.levels.as_ref().map_or(0, Vec::len));
        let is_there = |&(input, level): &(usize, Option<usize>)| {
            levels(input).is_some_and(|count| level.is_none_or(|level| level < count))
        };
        let holds =
            |column: &Column| is_there(&(column.input, column.level)) && column.times.iter().all(is_there);
        let known = (1..=VERSION).contains(&self.version) && !self.rounds.is_empty();
        known && self.rounds.iter().flatten().all(holds)
    }

    /// Of columns that are the model's as they stand.
    pub fn plain(columns: &[String], classes: Vec<String>) -> Preparation {
        let input = |name: &String| InputColumn { name: name.clone(), levels: None, made: false };
        let column = |(input, name): (usize, &String)| Column {
            name: name.clone(),
            input,
            level: None,
            times: Vec::new(),
            mean: 0.0,
            sd: None,
            unit: 1.0,
        };
        Preparation {
            version: VERSION,
            places: None,
            reads: Vec::new(),
            made: Vec::new(),
            inputs: columns.iter().map(input).collect(),
            target: None,
            classes,
            event: None,
            offset: None,
            exposure: None,
            missing: Missing::Error,
            unseen: Unseen::Error,
            divide: None,
            rounds: vec![columns.iter().enumerate().map(column).collect()],
        }
    }

    /// What losses that are expressions call the response.
    pub fn response_names(&self) -> ResponseNames {
        ResponseNames {
            target: self.target.as_ref().map(|target| target.name.clone()),
            event: self.event.clone(),
        }
    }

    /// Whether a column of it is in units of its rows.
    pub fn standardises(&self) -> bool {
        self.rounds.iter().flatten().any(|column| column.sd.is_some())
    }

    /// The columns of a round, from 0.
    pub fn columns(&self, round: usize) -> &[Column] {
        &self.rounds[round.min(self.rounds.len() - 1)]
    }

    /// A cell of the model from the cells of `inputs`: numbers, or places of levels; missing ones NaN.
    pub fn cell(&self, column: &Column, inputs: &[f64]) -> f64 {
        let scale = 1.0 / self.divide.unwrap_or(1.0);
        let part = |input: usize, level: Option<usize>| match level {
            None => inputs[input] * scale,
            Some(level) => f64::from(inputs[input] == level as f64),
        };
        let first = part(column.input, column.level);
        let raw = column.times.iter().fold(first, |product, &(input, level)| product * part(input, level));
        let known = if raw.is_nan() { column.mean } else { raw };
        match column.sd {
            Some(sd) if sd > 0.0 => (known * column.unit - column.mean * column.unit) / sd,
            Some(_) => 0.0,
            None => known,
        }
    }
}

impl Target {
    /// A text as a response, or what is wrong with it.
    pub fn value(&self, text: &str) -> Result<f64, String> {
        let text = text.trim_end_matches(|c| self.strip.contains(c));
        let value = match self.classes.get(text) {
            Some(value) => *value,
            None if !self.classes.is_empty() => return Err("is not in `data.classes` of the run".into()),
            None => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => value,
                _ => return Err("is not a number, as the responses of the run are".into()),
            },
        };
        Ok(if self.signs { 0.5 * (value + 1.0) } else { value })
    }
}
