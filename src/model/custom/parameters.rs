//! The parameters of a custom loss, in the order in which they are written.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Block, Support};
use crate::config::{Complaint, Count, InOrder, complaint};

/// The most entries of all parameters together.
const MOST: usize = 100_000;

/// The support of a parameter, and its length: a number, or "x" for one entry for each covariate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Domain {
    /// Any numbers.
    Real(Length),
    /// Numbers above 0.
    Positive(Length),
    /// Numbers between 0 and 1.
    Unit(Length),
    /// Numbers from 0 on that sum to 1.
    Simplex(Length),
    /// Increasing numbers.
    Ordered(Length),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Length {
    Number(Count),
    Covariates(NamedLength),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamedLength {
    /// As many as there are covariates.
    #[serde(rename = "x")]
    X,
}

impl Domain {
    fn parts(&self) -> (Support, &Length) {
        match self {
            Domain::Real(length) => (Support::Real, length),
            Domain::Positive(length) => (Support::Scale, length),
            Domain::Unit(length) => (Support::Unit, length),
            Domain::Simplex(length) => (Support::Simplex, length),
            Domain::Ordered(length) => (Support::Ordered, length),
        }
    }
}

/// Words of the language, which cannot be names.
const WORDS: [&str; 5] = ["and", "or", "not", "let", "if"];

/// Blocks of θ, and the name of every entry.
pub fn lay_out(
    parameters: &InOrder<Domain>,
    columns: &[String],
) -> Result<(Vec<Block>, Vec<String>), Vec<Complaint>> {
    let (mut blocks, mut names, mut found) = (Vec::new(), Vec::new(), Vec::new());
    if parameters.is_empty() {
        return Err(vec![complaint("parameters", "is empty: a loss needs a parameter")]);
    }
    for (name, domain) in &parameters.0 {
        let mut say = |why: String| found.push(complaint(format!("parameters.{name}"), why));
        let letters = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !letters || name.starts_with(|c: char| !c.is_alphabetic()) || name.ends_with("__") {
            say(
                "must be a name of letters, digits and `_`, beginning with a letter and not ending with `__`"
                    .into(),
            );
        }
        if WORDS.contains(&name.as_str()) {
            say(format!("cannot be a name: `{name}` is a word of the language"));
        }
        let (support, length) = domain.parts();
        let len = match length {
            Length::Number(count) => count.get(),
            Length::Covariates(_) => columns.len(),
        };
        match (support, len) {
            (_, 0) => say("is as long as the covariates, and the data have none".into()),
            (Support::Simplex | Support::Ordered, 1) => say("needs two entries or more".into()),
            (_, len) if names.len() + len > MOST => {
                say(format!("is too long: at most {MOST} entries are possible"));
                break;
            }
            _ => {}
        }
        let first = names.len();
        match length {
            Length::Covariates(_) => names.extend(columns.iter().map(|column| format!("{name}.{column}"))),
            Length::Number(count) if count.get() == 1 => names.push(name.clone()),
            Length::Number(count) => names.extend((1..=count.get()).map(|k| format!("{name}.{k}"))),
        }
        blocks.push(Block { name: Cow::Owned(name.clone()), range: first..names.len(), support });
    }
    if found.is_empty() { Ok((blocks, names)) } else { Err(found) }
}
