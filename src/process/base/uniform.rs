//! Π_j U(y_j; low_j, high_j).

use rand::distr::Distribution;
use rand_distr::Open01;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseMeasure, Context, Problem, Pseudo, fill};
use crate::config::Numbers;
use crate::rng::Rng;

pub fn examples(_columns: &[String]) -> Vec<String> {
    vec!["uniform = { low = -1.0, high = 3.0 }".into()]
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A number, or a list with one per column.
    pub low: Numbers,
    /// A number, or a list with one per column.
    pub high: Numbers,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
        let (low, high) = (context.spread(&self.low, "low")?, context.spread(&self.high, "high")?);
        if low.iter().zip(&high).any(|(a, b)| a >= b) {
            return Err(("high", "must be above `low`".into()));
        }
        Ok(Box::new(Uniform { low, high }))
    }
}

pub struct Uniform {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

impl BaseMeasure for Uniform {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        fill(t, self.low.len(), |j| {
            let u: f64 = Open01.sample(rng);
            self.low[j] + (self.high[j] - self.low[j]) * u
        })
    }

    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        let moments = |(a, b): (&f64, &f64)| (0.5 * (a + b), (b - a) * (b - a) / 12.0);
        Some(self.low.iter().zip(&self.high).map(moments).collect())
    }
}
