//! The conventional Bayesian mixture of eq. (9) with spherical covariances, and mixtures of Gaussians as measures to draw from.

use ndarray::Array2;
use rand::distr::Distribution;
use rand_distr::StandardNormal;

use super::MixturePrior;
use super::joint::component;
use super::shaped::Shaped;
use crate::data::Dataset;
use crate::math::{log_dirichlet_constant, log_normal_density};
use crate::model::em::Expectation;
use crate::model::{Block, Joint, Model};
use crate::process::{BaseMeasure, Measure, Pseudo};
use crate::rng::Rng;

pub(super) struct SphericalJoint<'a> {
    pub model: &'a Shaped,
    pub prior: &'a MixturePrior,
    pub data: &'a Dataset,
    pub empirical: Measure<'a>,
}

impl SphericalJoint<'_> {
    fn log_prior(&self, theta: &[f64]) -> f64 {
        let MixturePrior { a0, mu: (m, s), sigma: (log_mean, log_sd) } = self.prior;
        let (model, a0) = (self.model, a0.get());
        // 0 · log 0 is 0 here: a flat prior does not mind the border.
        let logs = if a0 == 1.0 { 0.0 } else { model.pi(theta).iter().map(|p| libm::log(*p)).sum() };
        let dirichlet = log_dirichlet_constant(a0, model.k) + (a0 - 1.0) * logs;
        let means: f64 = model.mu(theta).iter().map(|mu| log_normal_density(*mu, *m, s.get())).sum();
        // log σ ~ N(m, s²) makes log σ² ~ N(2m, 4s²).
        let variance = |v: &f64| {
            let log_v = libm::log(*v);
            log_normal_density(log_v, 2.0 * log_mean, 2.0 * log_sd.get()) - log_v
        };
        dirichlet + means + model.shape(theta).iter().map(variance).sum::<f64>()
    }
}

impl Joint for SphericalJoint<'_> {
    fn names(&self) -> Vec<String> {
        self.model.names()
    }

    fn blocks(&self) -> Vec<Block> {
        self.model.blocks()
    }

    /// Derivatives of the log likelihood by log π, μ and log σ² from the sums of an E step (Fisher's identity).
    fn log_density(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let MixturePrior { a0, mu: (m, s), sigma: (log_mean, log_sd) } = self.prior;
        let (model, n) = (self.model, self.data.mass());
        let (k, d) = (model.k, model.d);
        let mut pass = model.pass(&self.empirical);
        let log_likelihood = n * (model.penalty(theta) - pass.e_step(theta));
        if let Some(gradient) = gradient {
            for c in 0..k {
                let em = pass.spherical(c);
                let v = model.shape(theta)[c];
                gradient[c] = n * em[0] + a0.get() - 1.0;
                for j in 0..d {
                    let i = k + c * d + j;
                    gradient[i] = n * em[1 + j] / v.sqrt() - (theta[i] - m) / (s.get() * s.get());
                }
                let squares: f64 = em[1 + d..].iter().sum();
                let from_prior = (libm::log(v) - 2.0 * log_mean) / (4.0 * log_sd.get() * log_sd.get()) + 1.0;
                gradient[k + k * d + c] = 0.5 * n * (squares - d as f64 * em[0]) - from_prior;
            }
        }
        log_likelihood + self.log_prior(theta)
    }
}

/// The mixture at one θ.
pub(super) struct GaussianMeasure {
    pub pi: Vec<f64>,
    pub d: usize,
    pub mean: Vec<f64>,
    /// L of each component.
    pub factors: Vec<Array2<f64>>,
}

impl BaseMeasure for GaussianMeasure {
    /// Each row from a component of its own.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        let mut x = Array2::zeros((t, self.d));
        let mut z = vec![0.0; self.d];
        for mut row in x.outer_iter_mut() {
            let c = component(&self.pi, rng);
            z.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
            for (i, value) in row.iter_mut().enumerate() {
                let l = self.factors[c].row(i);
                *value = self.mean[c * self.d + i] + l.iter().zip(&z[..=i]).map(|(l, z)| l * z).sum::<f64>();
            }
        }
        Pseudo::Own(Box::new(Dataset::unnamed(x, None)))
    }
}
