//! Normal location with known variance (supplement E.1): l(y, θ) = −log N(y; θ, σ²), so θ(F) = ∫ y dF.

use std::f64::consts::TAU;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mean::{by_location, squared_error, weighted_means};
use super::{Block, Context, Model, Sampled, Support, column_names};
use crate::config::{Complaint, Positive, complaint};
use crate::data::Dataset;
use crate::math::log_normal_density;
use crate::model::Joint;
use crate::optim::Minimum;
use crate::process::base::Normal as NormalBase;
use crate::process::{BaseMeasure, Measure};

pub const STARTER: &str = include_str!("../../configs/starters/normal.toml");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The known variance σ² of every column.
    pub sigma2: Positive,
    /// The parametric prior θ ~ N(0, τ²): for conventional Bayes, and for a base measure `"prior_predictive"`.
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
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
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

    fn gradient(&self, theta: &[f64], f: &Measure) -> Option<Vec<f64>> {
        Some(by_location(theta, f, 1.0 / self.sigma2))
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
        for (out, y) in out.iter_mut().zip(at.x.iter()) {
            let square: f64 = y.iter().zip(theta).map(|(y, t)| (y - t) * (y - t)).sum();
            *out = constant - 0.5 / self.sigma2 * square;
        }
        true
    }

    /// ∫ N(y; θ, σ²) N(θ; 0, τ²) dθ = N(y; 0, σ² + τ²).
    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        let tau2 = self.tau2.ok_or("needs a prior on θ: [model.normal.prior] is missing")?;
        let sd = (self.sigma2 + tau2).sqrt();
        let d = self.columns.len();
        Ok(Box::new(NormalBase { mean: vec![0.0; d], sd: vec![sd; d] }))
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        let missing = "is missing: conventional Bayes needs a prior on θ, `prior.tau2`";
        let tau2 = self.tau2.ok_or_else(|| complaint("prior", missing))?;
        Ok(Box::new(LocationJoint { model: self, tau2, data }))
    }

    fn sampled(&self) -> Option<Sampled> {
        Some(Sampled::Endless)
    }

    fn sampling(&self, theta: &[f64], _data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        Some(Box::new(NormalBase { mean: theta.to_vec(), sd: vec![self.sigma2.sqrt(); theta.len()] }))
    }
}

/// Π N(yᵢ; θ, σ²) N(θ; 0, τ²).
struct LocationJoint<'a> {
    model: &'a Normal,
    tau2: f64,
    data: &'a Dataset,
}

impl Joint for LocationJoint<'_> {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        vec![Block { name: "theta".into(), range: 0..self.model.columns.len(), support: Support::Location }]
    }

    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let sigma2 = self.model.sigma2;
        let mut slope: Vec<f64> = theta.iter().map(|t| -t / self.tau2).collect();
        let mut value: f64 = theta.iter().map(|t| log_normal_density(*t, 0.0, self.tau2.sqrt())).sum();
        for (i, y) in self.data.x.iter().enumerate() {
            let w = self.data.weight(i);
            let mut square = 0.0;
            for ((y, t), slope) in y.iter().zip(theta).zip(&mut slope) {
                square += (y - t) * (y - t);
                *slope += w * (y - t) / sigma2;
            }
            value += w * (self.model.log_constant() - 0.5 * square / sigma2);
        }
        if let Some(gradient) = gradient {
            gradient.copy_from_slice(&slope);
        }
        value
    }
}
