//! The empirical distribution of historical rows, by their case weights: finite support.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseMeasure, Context, Problem, Pseudo, random_rows};
use crate::data::Dataset;
use crate::rng::Rng;

pub fn examples(_columns: &[String]) -> Vec<String> {
    vec!["empirical = { file = \"history.csv\" }".into()]
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Path, looked for like the training file; same columns.
    pub file: String,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
        let history = context.history.clone().expect("read with the data files");
        let (file, d) = (&self.file, context.train.d());
        if history.n() == 0 {
            return Err(("file", format!("{file} has no rows")));
        }
        if history.d() != d {
            return Err(("file", format!("{file} has {} columns and the data {d}", history.d())));
        }
        Ok(Box::new(Empirical::of(history)))
    }
}

pub struct Empirical {
    rows: Arc<Dataset>,
    share: Vec<f64>,
}

impl Empirical {
    pub fn new(rows: Dataset) -> Self {
        Empirical::of(Arc::new(rows))
    }

    fn of(rows: Arc<Dataset>) -> Self {
        let share = (0..rows.n()).map(|i| rows.weight(i) / rows.mass()).collect();
        Empirical { rows, share }
    }
}

impl BaseMeasure for Empirical {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        self.atoms(random_rows(t, &self.rows, rng))
    }

    fn shares(&self) -> Option<&[f64]> {
        Some(&self.share)
    }

    fn atoms(&self, numbers: Vec<usize>) -> Pseudo {
        Pseudo::Shared { rows: self.rows.clone(), picked: numbers, y: None }
    }

    fn responses(&self) -> Option<Vec<f64>> {
        self.rows.y.as_ref().map(|y| y.to_vec())
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.rows.moments())
    }
}
