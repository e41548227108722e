//! Π_j N(y_j; m_j, s_j²).

use rand::distr::Distribution;
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseMeasure, Context, Problem, Pseudo, fill};
use crate::config::Numbers;
use crate::rng::Rng;

pub fn examples(_columns: &[String]) -> Vec<String> {
    vec!["normal = { mean = 0.5, sd = 2.0 }".into()]
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A number, or a list with one per column.
    pub mean: Numbers,
    /// A number, or a list with one per column.
    pub sd: Numbers,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
        let (mean, sd) = (context.spread(&self.mean, "mean")?, context.spread(&self.sd, "sd")?);
        if sd.iter().any(|&s| s <= 0.0) {
            return Err(("sd", "must be greater than 0".into()));
        }
        Ok(Box::new(Normal { mean, sd }))
    }
}

pub struct Normal {
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
}

impl BaseMeasure for Normal {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        fill(t, self.mean.len(), |j| {
            let z: f64 = StandardNormal.sample(rng);
            self.mean[j] + self.sd[j] * z
        })
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        Some(self.mean.iter().zip(&self.sd).map(|(m, s)| (*m, s * s)).collect())
    }
}
