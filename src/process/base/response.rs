//! For regression: f_π(y) f_π(x), eq. (15), a response that is independent of the covariates; and the same with a response
//! that depends on them, as a model at a draw of its parameters has it.

use std::sync::Arc;

use ndarray::Array1;
use rand::distr::Distribution;
use rand_distr::Open01;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::{Columns, Density, example_table};
use super::{BaseMeasure, Context, Problem, Pseudo, own, random_rows};
use crate::config::{Positive, Probability};
use crate::data::Dataset;
use crate::rng::Rng;

pub fn examples(columns: &[String]) -> Vec<String> {
    let covariates = ["\"empirical\"".to_owned(), example_table(columns)];
    let kinds = [
        "bernoulli = 0.3",
        "poisson = 1.5",
        "normal = [0.5, 2.0]",
        "gamma = [2.0, 1.0]",
        "beta = [2.0, 3.0]",
        "categorical = [[0.0, 0.6], [1.0, 0.4]]",
    ];
    let one = |kind: &str, covariates: &String| format!("response = {{ {kind}, covariates = {covariates} }}");
    kinds.iter().flat_map(|kind| covariates.iter().map(|c| one(kind, c))).collect()
}

/// One of `bernoulli`, `poisson`, `normal`, `gamma`, `beta` and `categorical`, and where the covariates come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Probability of a response 1; else it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bernoulli: Option<Probability>,
    /// Mean of a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poisson: Option<Positive>,
    /// Mean and standard deviation of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<(f64, Positive)>,
    /// Shape and rate of a number above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<(Positive, Positive)>,
    /// Both shapes of a beta density, of a number between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<(Positive, Positive)>,
    /// Values and their probabilities; classes by number, from 0: `[[0.0, 0.5], [1.0, 0.3], [2.0, 0.2]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categorical: Option<Vec<(f64, Probability)>>,
    /// Where the covariates come from.
    pub covariates: Covariates,
}

/// f_π(x).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Covariates {
    Named(Named),
    /// A density for every column: `{ age = { normal = [0.0, 1.0] }, sex = { bernoulli = 0.5 } }`.
    Densities(Columns),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// The rows of the training data.
    Empirical,
}

impl Config {
    /// f_π(y).
    fn density(&self) -> Result<Density, Problem> {
        let given = [
            self.bernoulli.map(Density::Bernoulli),
            self.poisson.map(Density::Poisson),
            self.normal.map(|(mean, sd)| Density::Normal(mean, sd)),
            self.gamma.map(|(shape, rate)| Density::Gamma(shape, rate)),
            self.beta.map(|(a, b)| Density::Beta(a, b)),
            self.categorical.clone().map(Density::Categorical),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => one.check().map(|()| one).map_err(|why| ("", why)),
            _ => {
                let kinds = "`bernoulli`, `poisson`, `normal`, `gamma`, `beta` and `categorical`";
                Err(("", format!("needs one of {kinds} for the response")))
            }
        }
    }

    pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
        let density = self.density()?;
        if !context.response {
            let message = "a base measure for a response needs regression data: rows with a response";
            return Err(("", message.into()));
        }
        let rows = context.covariates;
        match &self.covariates {
            Covariates::Densities(columns) => {
                let covariates = columns.densities(&rows.columns).map_err(|why| ("covariates", why))?;
                Ok(Box::new(Regression { covariates, response: density }))
            }
            Covariates::Named(Named::Empirical) if rows.n() == 0 => {
                Err(("covariates", "\"empirical\" needs rows, and the data have none".into()))
            }
            Covariates::Named(Named::Empirical) => Ok(match density {
                Density::Bernoulli(p) => {
                    Box::new(BernoulliResponse::new(vec![p.get(); rows.n()], rows.clone()))
                }
                other => Box::new(DrawnResponse {
                    covariates: rows.clone(),
                    draw: Box::new(move |_, rng| other.draw(rng)),
                }),
            }),
        }
    }
}

/// Covariates drawn from the rows of the training data, by their case weights, and a Bernoulli response. Finite support:
/// atom i < n is row i with response 1, atom n + i is row i with response 0.
pub struct BernoulliResponse {
    /// Of a response 1, for each row.
    p: Vec<f64>,
    covariates: Arc<Dataset>,
    share: Vec<f64>,
}

impl BernoulliResponse {
    pub fn new(p: Vec<f64>, covariates: Arc<Dataset>) -> Self {
        let n = covariates.n();
        let response = |i: usize| if i < n { p[i] } else { 1.0 - p[i - n] };
        let share = |i: usize| response(i) * covariates.weight(i % n) / covariates.mass();
        let share = (0..2 * n).map(share).collect();
        BernoulliResponse { p, covariates, share }
    }
}

impl BaseMeasure for BernoulliResponse {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let n = self.covariates.n();
        let one = |rng: &mut Rng| {
            let row = self.covariates.random_row(rng);
            let u: f64 = Open01.sample(rng);
            if u < self.p[row] { row } else { n + row }
        };
        self.atoms((0..t).map(|_| one(rng)).collect())
    }

    fn shares(&self) -> Option<&[f64]> {
        Some(&self.share)
    }

    fn atoms(&self, numbers: Vec<usize>) -> Pseudo {
        let n = self.covariates.n();
        let y = numbers.iter().map(|&a| f64::from(a < n)).collect();
        let picked = numbers.into_iter().map(|a| a % n).collect();
        Pseudo::Shared { rows: self.covariates.clone(), picked, y: Some(y) }
    }

    fn responses(&self) -> Option<Vec<f64>> {
        Some(vec![0.0, 1.0])
    }
}

/// How the response of a row is drawn.
pub type DrawResponse = Box<dyn Fn(usize, &mut Rng) -> f64 + Send + Sync>;

/// Covariates drawn from the rows of the training data, by their case weights, and a response with a density.
pub struct DrawnResponse {
    pub covariates: Arc<Dataset>,
    pub draw: DrawResponse,
}

impl BaseMeasure for DrawnResponse {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let picked = random_rows(t, &self.covariates, rng);
        let y = picked.iter().map(|&row| (self.draw)(row, rng)).collect();
        Pseudo::Shared { rows: self.covariates.clone(), picked, y: Some(y) }
    }

    fn responses(&self) -> Option<Vec<f64>> {
        Some(super::tried(self))
    }
}

/// Densities for covariates and response.
struct Regression {
    covariates: Vec<Density>,
    response: Density,
}

impl BaseMeasure for Regression {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let x = super::table(t, self.covariates.len(), |j| self.covariates[j].draw(rng));
        let y = Array1::from_iter((0..t).map(|_| self.response.draw(rng)));
        own(Dataset::unnamed(x, Some(y)))
    }

    fn responses(&self) -> Option<Vec<f64>> {
        Some(super::tried(self))
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.covariates.iter().map(Density::moments).collect())
    }
}
