//! The prior predictive: covariates from the rows of the data, and for each pseudo-sample θ afresh from its prior, then its response.

use std::sync::Arc;

use rand::distr::Distribution;
use rand_distr::StandardNormal;

use super::{Known, Predictor};
use crate::data::Dataset;
use crate::penalty::{Penalty, Shape};
use crate::process::{BaseMeasure, Pseudo};
use crate::rng::{Purpose, Rng, Seed};

pub(super) struct Predictive {
    law: Arc<dyn Known>,
    penalty: Penalty,
    /// n γ fⱼ of every column.
    strengths: Vec<f64>,
    predictors: usize,
    intercept: Option<(f64, f64)>,
    /// Of log φ.
    auxiliary: Vec<(f64, f64)>,
    rows: Arc<Dataset>,
}

impl Predictive {
    pub fn new(model: &Predictor, rows: &Arc<Dataset>) -> Result<Self, String> {
        if !model.law.is_likelihood() {
            return Err("needs a likelihood to draw responses from, and this loss is none".into());
        }
        let flat =
            "needs a proper prior on the intercept, and it is flat: give `intercept_prior` with the model";
        if model.intercept && model.intercept_prior.is_none() {
            return Err(flat.into());
        }
        let extras = model.law.extras();
        if extras.iter().any(|extra| !extra.support.is_positive()) {
            return Err("needs a proper prior on the cut points, and they have none".into());
        }
        let entries: usize = extras.iter().map(|extra| extra.entries).sum();
        let auxiliary = match model.auxiliary_prior {
            Some(prior) => vec![prior; entries],
            None if entries == 0 => Vec::new(),
            None => {
                let name = &extras[0].name;
                return Err(format!(
                    "needs a proper prior on `{name}`, and it is flat: give `auxiliary_prior` with the model"
                ));
            }
        };
        let strengths: Vec<f64> = model.factors.iter().map(|f| model.n.max(1.0) * model.gamma * f).collect();
        let mut rng = Seed(0).stream(Purpose::Auxiliary, 2, 0);
        if strengths.iter().any(|s| model.penalty.draw(*s, &mut rng).is_none()) {
            return Err("needs a proper prior on the coefficients, and this penalty is none".into());
        }
        Ok(Predictive {
            law: model.law.clone(),
            penalty: model.penalty,
            strengths,
            predictors: model.m(),
            intercept: model.intercept_prior.filter(|_| model.intercept),
            auxiliary,
            rows: rows.clone(),
        })
    }
}

impl BaseMeasure for Predictive {
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let (mut picked, mut y) = (Vec::with_capacity(t), Vec::with_capacity(t));
        let normal = |(mean, sd): (f64, f64), rng: &mut Rng| {
            let z: f64 = StandardNormal.sample(rng);
            mean + sd * z
        };
        for _ in 0..t {
            let row = self.rows.random_row(rng);
            let x = self.rows.x.row(row);
            let mut eta = vec![self.rows.offset(row); self.predictors];
            for eta in &mut eta {
                let draw = |s: &f64, rng: &mut Rng| self.penalty.draw(*s, rng).expect("a proper prior");
                *eta += x.iter().zip(&self.strengths).map(|(x, s)| x * draw(s, rng)).sum::<f64>();
                *eta += self.intercept.map_or(0.0, |prior| normal(prior, rng));
            }
            let phi: Vec<f64> = self.auxiliary.iter().map(|prior| libm::exp(normal(*prior, rng))).collect();
            picked.push(row);
            y.push(self.law.at(&phi).sample(&eta, rng));
        }
        Pseudo::Shared { rows: self.rows.clone(), picked, y: Some(y) }
    }

    fn responses(&self) -> Option<Vec<f64>> {
        let rows = self.sample(100, &mut Seed(0).stream(Purpose::Auxiliary, 1, 0)).to_rows();
        rows.y.map(|y| y.to_vec())
    }
}
