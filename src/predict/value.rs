//! What is asked of new rows by expressions: of their columns, of the parameters and derived quantities of a draw, and of what the
//! model predicts for the row in that draw.

use std::collections::BTreeMap;
use std::path::Path;

use super::Posterior;
use crate::config::{pointed, printable};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::expression::{
    Columns, Compiler, Fault, Leaf, Meaning, Prepared, Program, Scope, parameter_names, parse,
};
use crate::model::{DataColumns, named_columns};
use crate::samples::{NameStyle, Samples};
use crate::store;

/// What a value is called that was given no name.
const UNNAMED: &str = "value";
/// What is predicted, where it is several numbers a vector of them.
const PREDICTION: &str = "prediction";
/// Response and event stand between columns and predictions.
const BESIDE: usize = 2;

/// An expression, and what it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub name: String,
    /// As it was written, the name included, and where the expression begins, in characters.
    text: String,
    from: usize,
}

impl Asked {
    /// `EXPRESSION`, or `NAME = EXPRESSION`.
    pub fn of(text: &str) -> Asked {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let is_name = |name: &str| name.starts_with(|c: char| c.is_alphabetic()) && name.chars().all(part);
        let named =
            text.split_once('=').filter(|(name, rest)| is_name(name.trim()) && !rest.starts_with('='));
        let (name, from) = match named {
            Some((name, _)) => (name.trim(), name.chars().count() + 1),
            None => (UNNAMED, 0),
        };
        Asked { name: name.to_owned(), text: text.to_owned(), from }
    }

    fn compile(&self, compiler: &mut Compiler) -> Result<usize> {
        let expression: String = self.text.chars().skip(self.from).collect();
        let root = parse(&expression).and_then(|node| compiler.scalar(&node));
        root.map_err(|Fault { span, message }| {
            let at = span.start + self.from..span.end + self.from;
            Error::input(format!("--value: {}{}", printable(&message), pointed(&self.text, &at)))
        })
    }
}

/// Values made ready for the draws of a posterior.
pub(super) struct Values {
    pub(super) names: Vec<String>,
    program: Program,
    /// Of every draw, what the values take of it beside the parameters of the model.
    beside: Vec<Vec<f64>>,
    /// How many numbers the model predicts, if they are needed.
    predicted: Option<usize>,
}

impl Posterior {
    /// Asks for values instead of what the model predicts, of rows with a response or without.
    pub fn ask(&mut self, run: &Path, asked: &[Asked], has_response: bool) -> Result<()> {
        let samples = Samples::open(&store::samples_of(run)?)?;
        let own = self.model.names();
        let written = samples.parameters().iter().map(|name| NameStyle::dotted(name));
        let beside: Vec<String> = written.filter(|name| !own.contains(name)).collect();
        let all: Vec<String> = own.iter().chain(&beside).cloned().collect();
        let outputs = self.model.predicted();
        let scope = scope(&self.rows_like(has_response), &all, &outputs);
        let mut compiler = Compiler::new(&scope);
        let roots = asked.iter().map(|one| one.compile(&mut compiler)).collect::<Result<_>>()?;
        let program = Program::new(compiler.tape, roots);
        let first = self.columns().len() + BESIDE;
        let needs_predictions = (0..outputs.len()).any(|m| program.reads(first + m));
        let needed = (0..beside.len()).filter(|k| program.uses(own.len() + k));
        let needed: Vec<usize> = needed.collect();
        let names: Vec<String> = needed.iter().map(|&k| beside[k].clone()).collect();
        let table = samples.table(&[], &names, Some(self.place + 1))?;
        let mut rows = vec![vec![0.0; if needed.is_empty() { 0 } else { beside.len() }]; self.draws.len()];
        for (&k, column) in needed.iter().zip(&table.parameters) {
            rows.iter_mut().zip(column).for_each(|(row, value)| row[k] = *value);
        }
        self.values = Some(Values {
            names: asked.iter().map(|one| one.name.clone()).collect(),
            program,
            beside: rows,
            predicted: needs_predictions.then_some(outputs.len()),
        });
        Ok(())
    }

    /// What is told of a row, by name.
    pub fn told(&self) -> Vec<String> {
        self.values.as_ref().map_or_else(|| self.model.predicted(), |values| values.names.clone())
    }

    /// The values of all rows, row by row, for every draw.
    pub(super) fn values(&self, values: &Values, data: &Dataset) -> Vec<f64> {
        let (n, count) = (data.n(), values.names.len());
        let prepare = |predicted: &[f64], outputs: usize| {
            let panel = values.program.has_margins().then(|| data.x.panel());
            Prepared::new(&values.program, &Rows { data, predicted, outputs }, panel)
        };
        // What no draw changes is looked up once.
        let fixed = values.predicted.is_none().then(|| prepare(&[], 0));
        self.of_every_draw(n * count, |b, theta, out| {
            let all: Vec<f64> = theta.iter().chain(&values.beside[b]).copied().collect();
            let mut fill = |rows: &Prepared| {
                values.program.in_rows(&all, rows, |k, i, value| out[i * count + k] = value);
            };
            match (&fixed, values.predicted) {
                (Some(rows), _) => fill(rows),
                (None, outputs) => {
                    let outputs = outputs.unwrap_or(0);
                    let mut predicted = vec![0.0; n * outputs];
                    self.model.predict(theta, data, &mut predicted);
                    fill(&prepare(&predicted, outputs));
                }
            }
        })
    }
}

/// What names stand for; one that stands for two things can be used for neither.
fn scope(rows: &Dataset, parameters: &[String], outputs: &[String]) -> Scope {
    const COLUMN: &str = "a column of the new rows";
    const DRAWN: &str = "a number of the draws";
    const PREDICTED: &str = "what the model predicts";
    let first = rows.d() + BESIDE;
    let leaves: Vec<Leaf> = (0..outputs.len()).map(|m| Leaf::Column(first + m)).collect();
    let prediction = match leaves[..] {
        [] => None,
        [only] => Some(Meaning::Number(only)),
        _ => Some(Meaning::Vector(leaves.clone())),
    };
    let (entries, mut vectors) = parameter_names(parameters);
    vectors.retain(|head, _| !entries.contains_key(head));
    // A loss of one's own calls it so itself.
    let each = outputs
        .iter()
        .filter(|name| *name != PREDICTION)
        .cloned()
        .zip(leaves.into_iter().map(Meaning::Number));
    let predicted = prediction.map(|meaning| (PREDICTION.to_owned(), meaning)).into_iter().chain(each);
    let drawn = entries.into_iter().chain(vectors).map(|(name, meaning)| (name, meaning, DRAWN));
    let mut names = BTreeMap::new();
    let columns = named_columns(rows).into_iter().map(|(name, meaning)| (name, meaning, COLUMN));
    let predicted = predicted.map(|(name, meaning)| (name, meaning, PREDICTED));
    for (name, meaning, is) in columns.chain(drawn).chain(predicted) {
        let twin = names.get(&name).map(|(_, other): &(Meaning, &str)| format!("both {other} and {is}"));
        names.insert(name, (twin.map_or(meaning, Meaning::Two), is));
    }
    let names = names.into_iter().map(|(name, (meaning, _))| (name, meaning)).collect();
    Scope {
        names,
        covariates: (0..rows.d()).collect(),
        known: match rows.y {
            Some(_) => {
                "a column of the new rows, a parameter or derived quantity of the run, what the model predicts or a constant"
            }
            None => {
                "a column of the new rows, which have no response, a parameter or derived quantity of the run, what the model predicts or \
                 a constant"
            }
        },
        hints: Vec::new(),
    }
}

/// Rows with what is predicted for them in a draw.
struct Rows<'a> {
    data: &'a Dataset,
    predicted: &'a [f64],
    outputs: usize,
}

impl Columns for Rows<'_> {
    fn n(&self) -> usize {
        self.data.n()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        match j.checked_sub(self.data.d() + BESIDE) {
            Some(m) => self.predicted[i * self.outputs + m],
            None => DataColumns(self.data).cell(i, j),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_a_sign_of_its_own() {
        let of = |text: &str| {
            let Asked { name, from, .. } = Asked::of(text);
            (name, from)
        };
        assert_eq!(of("odds = exp(beta.x)"), ("odds".into(), 6));
        assert_eq!(of("risk.ratio=2"), ("risk.ratio".into(), 11));
        for whole in
            ["exp(beta.x)", "a == b", "let r = a; r*r", "a <= b", "if(a == 1, 2, 3)", "2 = a", " = 3"]
        {
            assert_eq!(of(whole), ("value".into(), 0), "{whole}");
        }
    }
}
