//! Normal location with known variance (supplement E.1): l(y, θ) = −log N(y; θ, σ²), so θ(F) = ∫ y dF.

use std::f64::consts::TAU;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mean::{squared_error, weighted_means};
use super::{Context, Model, column_names};
use crate::config::Positive;
use crate::data::Dataset;
use crate::optim::Minimum;
use crate::process::base::Normal as NormalBase;
use crate::process::{BaseMeasure, Measure};

pub const STARTER: &str = include_str!("../../configs/starters/normal.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The known variance σ² of every column.
    pub sigma2: Positive,
    /// The parametric prior θ ~ N(0, τ²), for a base measure `"prior_predictive"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<ThetaPrior>,
}

/// θ ~ N(0, τ²).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThetaPrior {
    /// The prior variance τ².
    pub tau2: Positive,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<(&'static str, String)>> {
        let tau2 = self.prior.as_ref().map(|p| p.tau2.get());
        Ok(Box::new(Normal { sigma2: self.sigma2.get(), tau2, columns: context.train.columns.clone() }))
    }
}

struct Normal {
    sigma2: f64,
    tau2: Option<f64>,
    columns: Vec<String>,
}

impl Normal {
    fn log_constant(&self) -> f64 {
        -0.5 * self.columns.len() as f64 * libm::log(TAU * self.sigma2)
    }
}

impl Model for Normal {
    fn names(&self) -> Vec<String> {
        column_names("theta", &self.columns)
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let mass: f64 = f.atoms().map(|a| a.w.iter().sum::<f64>()).sum();
        0.5 / self.sigma2 * squared_error(theta, f) - mass * self.log_constant()
    }

    fn minimise(&self, f: &Measure, _start: &[f64]) -> Minimum {
        let theta = weighted_means(&[f]).remove(0);
        let value = self.loss(&theta, f);
        Minimum::closed_form(theta, value)
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        let constant = self.log_constant();
        for (out, y) in out.iter_mut().zip(at.x.outer_iter()) {
            let square: f64 = y.iter().zip(theta).map(|(y, t)| (y - t) * (y - t)).sum();
            *out = constant - 0.5 / self.sigma2 * square;
        }
        true
    }

    /// ∫ N(y; θ, σ²) N(θ; 0, τ²) dθ = N(y; 0, σ² + τ²).
    fn prior_predictive(&self) -> Option<Box<dyn BaseMeasure>> {
        let sd = (self.sigma2 + self.tau2?).sqrt();
        let d = self.columns.len();
        Some(Box::new(NormalBase { mean: vec![0.0; d], sd: vec![sd; d] }))
    }
}
